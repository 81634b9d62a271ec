"""A scorer for Inspect (inspect_ai) that grades by a rubric, as `evenhand grade` does.

It needs `pip install 'evenhand[inspect]'`. Inspect also finds it by its entry point:
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

_FINISH_REASONS = {"max_tokens": "length", "model_length": "length"}
"""A chat completion's `finish_reason` for Inspect's `stop_reason`, where they differ."""
_TOP_LOGPROBS = 20  # the most alternatives to a token whose probabilities providers return
_METADATA_FIELDS = (
    "rater_id", "rubric", "rubric_hash", "order", "p_positive", "probabilities", "prob_method",
    "unscored_reason",
)  # fmt: skip
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

    `model` is the grader; by default the model of Inspect's role `grader`, else the model that is
    evaluated. It gets the prompt of `evenhand grade`, and its answer is read in the same way: the
    score's value is the label, and an answer without one leaves the sample unscored.

    A rubric on responses rates the sample's output as the response to its input; metadata `prompt`
    and `response` replace these. A rubric on pairs rates the sample's metadata `prompt_a`,
    `response_a`, `prompt_b` and `response_b`. With the `order` "ba" the grader is shown
    the two sides exchanged; the label is always that of the sample's own sides. Any other variable
    of the rubric is metadata of the same name.

    With `probabilities` the options' probabilities are read from the tokens of the answer, if the
    provider returns them.

    The score's metadata has the columns of a rating (`rater_id`, `rater_kind`, `rubric` and so on;
    see data/README.md). Raises InputError where there is no such rubric, or a sample lacks a text.
    """
    loaded_rubric = load_rubric(rubric)
    if order == "ba" and loaded_rubric.unit == "response":
        name = loaded_rubric.name
        raise InputError(f"rubric {name!r} rates one response, which has no other order")
    top_logprobs = _TOP_LOGPROBS if probabilities else None
    config = GenerateConfig(logprobs=probabilities or None, top_logprobs=top_logprobs)

    async def score(state: TaskState, target: Target) -> Score:
        grader_model = get_model(role="grader") if model is None else get_model(model)
        prompt = loaded_rubric.for_prompt(_shown_values(loaded_rubric, state, order))
        output = await grader_model.generate(_messages(prompt), config=config)
        shown_order = order if loaded_rubric.has_sides else ""
        question = Question(str(state.sample_id), loaded_rubric, shown_order)
        outcome = parse_chat_reply(_reply(output), loaded_rubric)
        grade = grade_of(str(grader_model), question, outcome, provenance={})
        columns = {name: getattr(grade, name) for name in _METADATA_FIELDS}
        metadata = {"rater_kind": "model"}
        metadata |= {name: value for name, value in columns.items() if value not in ("", None)}
        if reason := grade.unscored_reason:
            return Score.unscored(reason=reason, explanation=grade.raw, metadata=metadata)
        label = grade.label
        return Score(value=label, answer=label, explanation=grade.raw, metadata=metadata)

    return score


def _shown_values(rubric: Rubric, state: TaskState, order: str) -> dict[str, str]:
    """Return the rubric's variables for a sample, with the sides in the order that is shown."""
    metadata = state.metadata
    values = {name: str(metadata[name]) for name in rubric.variables if name in metadata}
    if rubric.unit == "response":
        cells = {"prompt": state.input_text, **values}
        unit = ("", "", "a")  # (pair, subject, side); a single response counts as side a
        texts = {"a": values.get("response", state.output.completion)}
        return presented_values(rubric, unit, order, cells, texts)
    if rubric.unit == "comparison":  # the prompt is the sample's input
        values = {"prompt": state.input_text, **values}
    for name in rubric.variables:
        if name not in values:
            raise InputError(
                f"sample {state.sample_id!r} has no metadata {name!r}, which rubric "
                f"{rubric.name!r} needs"
            )
    texts = {side: values.get(f"response_{side}", "") for side in "ab"}
    return presented_values(rubric, ("", "", ""), order, values, texts)  # no side: both


def _messages(prompt: PromptText) -> list[ChatMessage]:
    """Return a prompt as Inspect's messages, with each image after its tag."""
    system = [ChatMessageSystem(content=prompt.system)] if prompt.system else []
    if not prompt.images:
        return [*system, ChatMessageUser(content=prompt.user)]
    content: list[ContentText | ContentImage] = []
    for name, image in prompt.images:
        content += [ContentText(text=f"<{name}>:"), ContentImage(image=image.uri)]
    return [*system, ChatMessageUser(content=[*content, ContentText(text=prompt.user)])]


def _reply(output: ModelOutput) -> dict[str, Any]:
    """Return the model's output in the form of a chat completion."""
    if output.empty:
        return {"choices": []}
    choice = output.choices[0]
    message = {"content": output.completion}
    logprobs = choice.logprobs.model_dump(exclude_none=True) if choice.logprobs else None
    reason = _FINISH_REASONS.get(choice.stop_reason, choice.stop_reason)
    return {"choices": [{"message": message, "finish_reason": reason, "logprobs": logprobs}]}
