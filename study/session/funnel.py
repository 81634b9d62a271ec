"""The funnel of people who came in: from the entry to the end, and where they were lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import sqlalchemy as sa

from evenhand.study.desk.oversight import oversight
from evenhand.study.session.sessions import Sessions
from evenhand.study.session.times import known_raters
from evenhand.study.store.logs.session import events_of
from evenhand.study.store.schema import labels, session_events

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

Stage = Literal["entered", "consented", "passed", "working", "done", "left", "excluded"]


def funnel(study: Study) -> dict[Stage, int]:
    """Count the people who came in, were given a unit, or labelled, by the stages of the study.

    `entered`, `consented` (only where the study asks for it) and `passed` (all that comes before
    the first unit) are nested. `working`, `done`, `left` (no consent, screened out, or the place
    given back) and `excluded` are disjoint: everyone who passed is in one of them; those who left
    may have done so earlier.
    """
    store, sessions = study.store, Sessions(study)
    excluded = oversight(store).exclusions
    people = sa.select(labels.c.rater_id).where(labels.c.rater_kind == "human").distinct()
    ended = sa.select(session_events.c.rater_id).where(session_events.c.kind == "completed")
    labelled, completed = set(store.values(people)), set(store.values(ended))
    asks = study.config.consent is not None
    counts: dict[Stage, int] = dict.fromkeys(get_args(Stage), 0)
    raters = known_raters(study)
    counts["entered"] = len(raters)
    for rater in raters:
        step = sessions.next_step(rater)
        has_passed = step.name == "labelling" or rater in labelled
        counts["passed"] += has_passed
        counts["consented"] += asks and (has_passed or _has_consented(study, rater))
        if rater in excluded:
            counts["excluded"] += 1
        elif step.name == "ended":
            counts["left"] += 1
        elif rater in completed:
            counts["done"] += 1
        elif has_passed:
            counts["working"] += 1
    if not asks:
        del counts["consented"]
    return counts


def _has_consented(study: Study, rater: str) -> bool:
    with study.store.read() as connection:
        log = events_of(connection, rater)
    return any(event.kind == "consent" and event.detail.get("agreed") for event in log)
