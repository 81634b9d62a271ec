"""A scorer for Inspect (inspect_ai) that grades by a rubric, as `evenhand grade` does.

Needs `pip install 'evenhand[inspect]'`. Inspect finds it by its entry point, too:
`inspect score LOG --scorer evenhand/grader -S rubric=refusal -S model=openai/gpt-5`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

try:
    from inspect_ai.model import (
        ChatMessageSystem,
        ChatMessageUser,
        ContentImage,
        ContentText,
        GenerateConfig,
        get_model,
    )
    from inspect_ai.scorer import Score, categorical, scorer
except ModuleNotFoundError as absent:
    raise ModuleNotFoundError(
        "evenhand.inspect needs Inspect: pip install 'evenhand[inspect]'", name=absent.name
    ) from absent

from evenhand.errors import InputError
from evenhand.graders.clients import parse_chat_reply
from evenhand.graders.running import grade_of
from evenhand.rubrics import PromptText, Rubric, load_rubric
from evenhand.study.prompts.units import Question, presented_values

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage, Model, ModelOutput
    from inspect_ai.scorer import Scorer, Target
    from inspect_ai.solver import TaskState

__all__ = ["grader"]

_STOPS = {"max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}
"""Why Inspect says that a model stopped, as a chat completion says it."""
_FACTS = (
    "rater_id",
    "rubric",
    "rubric_hash",
    "order",
    "p_positive",
    "probabilities",
    "prob_method",
    "unscored_reason",
)
"""Columns of a grade in the score's metadata."""


@scorer(metrics=categorical())
def grader(
    rubric: str,
    model: str | Model | None = None,
    *,
    order: Literal["ab", "ba"] = "ab",
    probabilities: bool = False,
) -> Scorer:
    """Grade samples by a rubric: a shipped one's name, or a file.

    `model` is the grader; without one it is the model of Inspect's role `grader`, else the model
    that is evaluated. It gets the prompt of `evenhand grade`, and its answer is read in the same
    way: the score's value is the label, and an answer without one leaves the sample unscored.

    A rubric on responses rates the sample's output as the response to its input; metadata `prompt`
    and `response` replace these. A rubric on pairs rates the sample's metadata `prompt_a`,
    `response_a`, `prompt_b` and `response_b`. With the `order` "ba" the grader is shown
    the two sides exchanged; the label is always that of the sample's own sides. Any other variable
    of the rubric is metadata of the same name.

    With `probabilities` the options' probabilities are read off the tokens of the answer, where the
    provider returns them.

    The score's metadata has the columns of a rating (`rater_id`, `rater_kind`, `rubric` and so on;
    see data/README.md). Raises InputError where there is no such rubric, or a sample lacks a text.
    """
    asked = load_rubric(rubric)
    if order == "ba" and asked.unit == "response":
        raise InputError(f"rubric {asked.name!r} rates one response, which has no other order")
    config = GenerateConfig(logprobs=True, top_logprobs=20) if probabilities else GenerateConfig()

    async def score(state: TaskState, target: Target) -> Score:
        who = get_model(role="grader") if model is None else get_model(model)
        prompt = asked.for_prompt(_values(asked, state, order))
        output = await who.generate(_messages(prompt), config=config)
        question = Question(str(state.sample_id), asked, order if asked.has_sides else "")
        outcome = parse_chat_reply(_reply(output), asked)
        grade = grade_of(str(who), question, outcome, provenance={})
        facts = {name: getattr(grade, name) for name in _FACTS}
        metadata = {"rater_kind": "model"}
        metadata |= {name: value for name, value in facts.items() if value not in ("", None)}
        if reason := grade.unscored_reason:
            return Score.unscored(reason=reason, explanation=grade.raw, metadata=metadata)
        label = grade.label
        return Score(value=label, answer=label, explanation=grade.raw, metadata=metadata)

    return score


def _values(rubric: Rubric, state: TaskState, order: str) -> dict[str, str]:
    """The rubric's variables for a sample, in the order in which they are shown."""
    given = {name: str(state.metadata[name]) for name in rubric.variables if name in state.metadata}
    if rubric.unit == "response":
        cells = {"prompt": state.input_text, **given}
        texts = {"a": given.get("response", state.output.completion)}
        return presented_values(rubric, ("", "", "a"), order, cells, texts)
    if rubric.unit == "comparison":  # the prompt is the sample's input
        given = {"prompt": state.input_text, **given}
    for name in rubric.variables:
        if name not in given:
            raise InputError(
                f"sample {state.sample_id!r} has no metadata {name!r}, which rubric "
                f"{rubric.name!r} needs"
            )
    texts = {side: given.get(f"response_{side}", "") for side in "ab"}
    return presented_values(rubric, ("", "", ""), order, given, texts)


def _messages(prompt: PromptText) -> list[ChatMessage]:
    system = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
    if not prompt.images:
        return [*system, ChatMessageUser(content=prompt.user)]
    parts: list[ContentText | ContentImage] = []
    for name, image in prompt.images:
        parts += [ContentText(text=f"<{name}>:"), ContentImage(image=image.uri)]
    return [*system, ChatMessageUser(content=[*parts, ContentText(text=prompt.user)])]


def _reply(output: ModelOutput) -> dict[str, Any]:
    """Return the model's output as a chat completion, which evenhand's graders read."""
    if output.empty:
        return {"choices": []}
    choice = output.choices[0]
    message = {"content": output.completion}
    logprobs = choice.logprobs.model_dump(exclude_none=True) if choice.logprobs else None
    stop = _STOPS.get(choice.stop_reason, choice.stop_reason)
    return {"choices": [{"message": message, "finish_reason": stop, "logprobs": logprobs}]}
