"""Reading a chat completion: option probabilities, a label, a stated distribution, or its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from evenhand.graders.failures import FILTERED
from evenhand.graders.replies.extract import Position
from evenhand.graders.replies.lenient import OrNone
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.replies.reading import Said, outcome_of
from evenhand.rubrics import Rubric


class _Part(BaseModel):
    text: OrNone[str] = None


class _Function(BaseModel):
    arguments: OrNone[str] = None


class _ToolCall(BaseModel):
    function: OrNone[_Function] = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: OrNone[str] = None
    tool_calls: OrNone[list[_ToolCall]] = None

    @property
    def text(self) -> str:
        """The answer: the content, joined where a server sends it in parts, or the arguments of a
        single tool call.
        """
        calls = [each.function.arguments for each in self.tool_calls or () if each.function]
        if len(calls) == 1 and calls[0]:
            return calls[0]
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Logprobs(BaseModel):
    content: OrNone[list[Position]] = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: OrNone[str] = None
    logprobs: OrNone[_Logprobs] = None


class _Completion(BaseModel):
    id: OrNone[str | int] = None
    created: OrNone[float] = None
    model: OrNone[str] = None
    system_fingerprint: OrNone[str] = None
    service_tier: OrNone[str] = None
    choices: list[Any]
    usage: OrNone[dict[str, Any]] = None


_FILTERED = (  # OpenAI's and Azure's word, then Gemini's and Bedrock's
    "content_filter",
    *("safety", "prohibited_content", "recitation", "blocklist", "spii"),
    "guardrail_intervened",
)
_KEPT = {"model", "id", "created", "system_fingerprint", "service_tier", "usage"}


def parse_reply(
    reply: Mapping[str, Any],
    rubric: Rubric | None,
    method: str = "logprobs",
    nth: int = 0,
    *,
    whole_numbers: bool = False,
) -> Outcome:
    """Return the outcome in a reply (a chat completion as JSON), with its text unchanged; `nth`
    selects one of several draws in the reply. Without a rubric the text is a subject's response,
    whatever it says, even a refusal.

    >>> parse_reply({"choices": [{"message": {"content": None, "refusal": "No."}}]}, None).raw
    'No.'
    """
    try:
        completion = _Completion.model_validate(reply)
        choice = _Choice.model_validate(completion.choices[nth])
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    evidence = completion.model_dump(include=_KEPT)
    evidence |= {"id": str(completion.id or ""), "stop_reason": choice.finish_reason}
    if nth:
        evidence["choice"] = nth
    unscored = _why_unscored(choice)
    text = choice.message.text
    said = Said(
        text=text or ((choice.message.refusal or "") if unscored else ""),
        unscored=unscored,
        evidence=evidence,
        positions=(choice.logprobs and choice.logprobs.content) or (),
        whole_numbers=whole_numbers,
    )
    return outcome_of(said, rubric, method)


def _why_unscored(choice: _Choice) -> str:
    if choice.message.refusal:
        return "refusal"
    why = (choice.finish_reason or "").casefold()
    if why.startswith(_FILTERED):
        return FILTERED
    return "truncated" if why == "length" else ""
