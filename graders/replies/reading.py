"""From what a reply says to its outcome: the one reader, whichever provider's form it came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.graders.grader_settings import REASON_FIRST
from evenhand.graders.replies.extract import (
    LOW_MASS,
    MOST_BEGUN,
    MOST_SPLIT,
    MOST_UNSEEN,
    OptionReading,
    Position,
    fault_of,
    read_options,
)
from evenhand.graders.replies.outcome import Outcome
from evenhand.graders.replies.stated import read_percent, read_reason
from evenhand.rubrics import Rubric, answer_of

NOT_LOGPROBS = "not_logprobs"
"""Key in a reply's evidence: the reason why its figures cannot be log-probabilities."""

PATTERN_SLOW = "pattern_too_slow"
"""Unscored: the pattern of the user's own prompt did not come to an end over this reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """The content of a reply, whichever provider's form it came in: the text, the reason
    `unscored` if it holds no answer, the evidence to keep, and the tokens' probabilities.
    `whole_numbers` is True if every number is one token.
    """

    text: str
    unscored: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    positions: Sequence[Position] = ()
    whole_numbers: bool = False


def outcome_of(said: Said, rubric: Rubric | None, method: str) -> Outcome:
    """Return the outcome of a reply by this method; without a rubric, its text."""
    if rubric is None:
        return Outcome(raw=said.text, evidence=said.evidence)
    if said.unscored:
        return Outcome(unscored_reason=said.unscored, raw=said.text, evidence=said.evidence)
    if method == "verbalised":
        return read_percent(said.text, rubric.categories, said.evidence)
    if method == REASON_FIRST:
        return read_reason(said.text, rubric.parser(), said.evidence)
    try:
        label = rubric.parser().label(said.text)
    except TimeoutError:
        return Outcome(unscored_reason=PATTERN_SLOW, raw=said.text, evidence=said.evidence)
    alone = Outcome(
        label=label or "",
        unscored_reason="" if label else "unparseable",
        raw=said.text,
        evidence=said.evidence,
    )
    if not said.positions or rubric.number:  # a number is several tokens, each of many numbers
        return alone
    if fault := fault_of(said.positions):
        said.evidence[NOT_LOGPROBS] = fault
        return alone
    reading = read_options(
        said.positions,
        answer_of(said.text) or said.text,
        label,
        rubric.categories,
        whole_numbers=said.whole_numbers,
    )
    if reading is None:
        return alone
    said.evidence.update(_evidence(reading, label))
    if "no_probabilities" in said.evidence:
        # Scaled to 1, the little that is known would claim to know what it does not.
        return alone
    return Outcome(
        label=reading.label,
        probabilities=reading.probabilities,
        prob_method="logprobs",
        raw=said.text,
        evidence=said.evidence,
    )


def _evidence(reading: OptionReading, label: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text_label": label,  # what the text says can differ from the most probable option
        "in_option_mass": reading.in_option_mass,
        "low_mass": reading.in_option_mass < LOW_MASS,
        "logprob_position": reading.position,
        "top_logprobs": reading.top,
    }
    if reading.begun > MOST_SPLIT:
        found["may_be_off"] = reading.unseen
    if reading.begun > MOST_BEGUN:
        found |= {"unseen": reading.unseen, "no_probabilities": "not_followed"}
    if reading.unseen > MOST_UNSEEN:
        found |= {"unseen": reading.unseen, "no_probabilities": "not_listed"}
    if reading.split > MOST_SPLIT:
        found |= {"split": reading.split, "no_probabilities": "key_begins_another"}
    return found
