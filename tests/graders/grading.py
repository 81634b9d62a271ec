"""`grade` with its options and limits as keywords, as tests vary one or two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import evenhand.graders
from evenhand.graders import GradingOptions, RequestLimits, ResponseSummary, RunSummary
from evenhand.study import Study

LIMITS = {each.name for each in fields(RequestLimits)}
RUN = ("progress", "batch", "cancel")


def grade(
    study: Study, graders: Sequence[str], rubrics: Sequence[str] | None = None, **given: Any
) -> RunSummary:
    limits = RequestLimits(**{name: given.pop(name) for name in LIMITS & given.keys()})
    run = {name: given.pop(name) for name in RUN if name in given}
    options = GradingOptions(rubrics=rubrics, **given)
    return evenhand.graders.grade(study, graders, options, limits, **run)


def respond(study: Study, subject: str, **given: Any) -> ResponseSummary:
    limits = RequestLimits(**{name: given.pop(name) for name in LIMITS & given.keys()})
    return evenhand.graders.respond(study, subject, limits=limits, **given)
