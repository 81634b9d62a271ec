"""`grade` with its options and limits as keywords, as tests vary one or two of them."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import pandas as pd
import sqlalchemy as sa

import evenhand.graders
from evenhand.graders import GradingOptions, RequestLimits, ResponseSummary, RunSummary
from evenhand.study import Study
from evenhand.study.store.schema import grades

FAST = {"wait_scale": 0.0005}
"""Waits between attempts two thousand times shorter, unless a test says otherwise."""
LIMITS = {each.name for each in fields(RequestLimits)}
RUN = ("progress", "batch", "cancel")


def _limits(given: dict[str, Any]) -> RequestLimits:
    return RequestLimits(**FAST | {name: given.pop(name) for name in LIMITS & given.keys()})


def grade(
    study: Study, graders: Sequence[str], rubrics: Sequence[str] | None = None, **given: Any
) -> RunSummary:
    limits = _limits(given)
    run = {name: given.pop(name) for name in RUN if name in given}
    options = GradingOptions(rubrics=rubrics, **given)
    return evenhand.graders.grade(study, graders, options, limits, **run)


def respond(study: Study, subject: str, **given: Any) -> ResponseSummary:
    return evenhand.graders.respond(study, subject, limits=_limits(given), **given)


def rows(study: Study) -> list[dict[str, Any]]:
    """The stored grade events, all columns."""
    with study.store.read() as connection:
        query = sa.select(grades).order_by(grades.c.event_id)
        return [dict(row._mapping) for row in connection.execute(query)]


def decided(study: Study) -> pd.DataFrame:
    """What a run decides, without when and how long."""
    table = study.ratings().drop(columns=["seconds", "created_at"])
    return table.sort_values(["unit_id", "rubric", "order", "draw"], ignore_index=True)
