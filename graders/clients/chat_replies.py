"""Reading a chat completion: option probabilities, a label, a stated distribution, or its text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from evenhand.graders.failures import FILTERED
from evenhand.graders.replies.extract import LOW_MASS, MOST_UNSEEN, Position, read_options
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.replies.verbalised import read_percent
from evenhand.rubrics import Rubric


class _Part(BaseModel):
    text: str = ""


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: str | None = None

    @property
    def text(self) -> str:
        """What it says; some servers send it in parts."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class _Logprobs(BaseModel):
    content: list[Position] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Completion(BaseModel):
    id: str | None = None
    created: float | None = None
    model: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    choices: list[_Choice]
    usage: dict[str, Any] | None = None


_FILTERED = (  # OpenAI's and Azure's word, then Gemini's and Bedrock's
    "content_filter",
    *("safety", "prohibited_content", "recitation", "blocklist", "spii"),
    "guardrail_intervened",
)
_KEPT = {"model", "id", "created", "system_fingerprint", "service_tier", "usage"}


def parse_reply(
    reply: Mapping[str, Any], rubric: Rubric, method: str = "logprobs", nth: int = 0
) -> Outcome:
    """The outcome in a reply (a chat completion as JSON), with the text as it came; `nth` says
    which, where several draws came in one reply.
    """
    try:
        completion = _Completion.model_validate(reply)
        choice = completion.choices[nth]
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    text = choice.message.text
    evidence = completion.model_dump(include=_KEPT)
    evidence["stop_reason"] = choice.finish_reason
    if nth:
        evidence["choice"] = nth
    if reason := _why_unscored(choice):
        raw = text or choice.message.refusal or ""
        return Outcome(unscored_reason=reason, raw=raw, evidence=evidence)
    if method == "verbalised":
        return read_percent(text.rpartition("</think>")[2], rubric.categories, evidence)
    return _read(choice, text, rubric, evidence)


def read_text(reply: Mapping[str, Any]) -> Outcome:
    """A subject's response: whatever it says, a refusal too.

    >>> read_text({"choices": [{"message": {"content": None, "refusal": "No."}}]}).raw
    'No.'
    """
    try:
        completion = _Completion.model_validate(reply)
        choice = completion.choices[0]
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    evidence = completion.model_dump(include=_KEPT)
    evidence["stop_reason"] = choice.finish_reason
    return Outcome(raw=choice.message.text or choice.message.refusal or "", evidence=evidence)


def _why_unscored(choice: _Choice) -> str:
    if choice.message.refusal:
        return "refusal"
    why = (choice.finish_reason or "").casefold()
    if why.startswith(_FILTERED):
        return FILTERED
    return "truncated" if why == "length" else ""


def _read(choice: _Choice, text: str, rubric: Rubric, evidence: dict[str, Any]) -> Outcome:
    answer = text.rpartition("</think>")[2]  # local servers may leave the thinking in the text
    label = rubric.parser().label(answer)
    positions = (choice.logprobs and choice.logprobs.content) or []
    reading = read_options(positions, answer, label, rubric.categories)
    if reading is None:
        reason = "" if label else "unparseable"
        return Outcome(label=label or "", unscored_reason=reason, raw=text, evidence=evidence)
    evidence |= {
        "text_label": label,  # what the text says can differ from the most probable option
        "in_option_mass": reading.in_option_mass,
        "low_mass": reading.in_option_mass < LOW_MASS,
        "logprob_position": reading.position,
        "top_logprobs": reading.top,
    }
    if reading.unseen > MOST_UNSEEN:
        # Scaled to 1, the little that is listed would claim to know what it does not.
        evidence["unseen"] = reading.unseen
        reason = "" if label else "unparseable"
        return Outcome(label=label or "", unscored_reason=reason, raw=text, evidence=evidence)
    return Outcome(
        label=reading.label,
        probabilities=reading.probabilities,
        prob_method="logprobs",
        raw=text,
        evidence=evidence,
    )
