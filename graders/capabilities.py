"""Warnings before a run, from a small table: what a model cannot give, and when it retires."""

from __future__ import annotations

import re
import tomllib
from datetime import UTC, date, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.graders.options import GraderSettings
from evenhand.graders.replies import binomial_interval
from evenhand.graders.spec import GraderSpec
from evenhand.texts import written

_FEW_DRAWS = 30


def warnings_about(
    spec: GraderSpec, settings: GraderSettings, today: date | None = None
) -> list[str]:
    """Return the warnings that a user should read before paying, one sentence each.

    >>> from evenhand.graders.spec import parse_spec
    >>> for sentence in warnings_about(
    ...     parse_spec("openai:gpt-5"), GraderSettings("logprobs"), date(2026, 11, 21)
    ... ):
    ...     print(sentence)
    gpt-5 retires on 2026-12-11. After that its grades cannot be collected again.
    gpt-5 gives no token probabilities. Expect hard labels, or use --draws or --method verbalised.
    """
    today = today or datetime.now(UTC).date()
    said = about_retirement(spec, today)
    if settings.method == "logprobs":
        said += _about_probabilities(spec.model, _entry(spec), today)
    if spec.speaks == "messages" and settings.method == "label":
        said.append(written("grade.hard_label", model=spec.model))
    if settings.method == "draws" and settings.draws < _FEW_DRAWS:
        draws = settings.draws
        low, high = binomial_interval(round(draws / 2), draws)
        rare = binomial_interval(0, draws)[1]
        said.append(written("grade.coarse_draws", draws=draws, low=low, high=high, rare=rare))
    return said


def probabilities_need_no_effort(spec: GraderSpec) -> bool:
    """Return True if a model gives token probabilities only without reasoning. A gateway's
    `openai/NAME` is looked up as NAME.
    """
    name = spec.model.rpartition("/")[2]
    return any(
        entry.get("effort") == "none" and re.search(entry["match"], name) for entry in _table()
    )


def takes_images(spec: GraderSpec) -> bool:
    """Return False where it is known that a grader takes no images. A server may still refuse one,
    and the run then stops at its first reply.
    """
    if spec.speaks not in ("messages", "chat"):
        return False
    return _entry(spec).get("images", True) is not False


def about_retirement(spec: GraderSpec, today: date | None = None) -> list[str]:
    """Return a warning where the table knows that the model retires or has retired, else []."""
    entry = _entry(spec)
    if entry.get("retired"):
        return [written("grade.retired", model=spec.model)]
    if not (retires := entry.get("retires")):
        return []
    if date.fromisoformat(retires) <= (today or datetime.now(UTC).date()):
        return [written("grade.retired_on", model=spec.model, day=retires)]
    return [written("grade.retires_on", model=spec.model, day=retires)]


def _about_probabilities(model: str, entry: dict[str, Any], today: date) -> list[str]:
    rule, until = entry.get("probabilities", ""), entry.get("probabilities_until")
    if rule == "never" or (until and date.fromisoformat(until) <= today):
        return [written("grade.no_probabilities", model=model)]
    if rule:
        return [written("grade.probabilities_if", model=model, rule=rule)]
    return [written("grade.probabilities_until", model=model, day=until)] if until else []


def _entry(spec: GraderSpec) -> dict[str, Any]:
    if not spec.at.is_own:
        return {}
    found = (
        entry
        for entry in _table()
        if entry["provider"] == spec.provider and re.search(entry["match"], spec.model)
    )
    return next(found, {})


@cache
def _table() -> tuple[dict[str, Any], ...]:
    text = files("evenhand.graders").joinpath("capabilities.toml").read_text("utf-8")
    return tuple(tomllib.loads(text)["models"])
