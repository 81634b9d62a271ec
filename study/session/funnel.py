"""The funnel of people who came in: from the entry to the end, and where they were lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from evenhand.study.desk.oversight import oversight
from evenhand.study.session.sessions import Sessions
from evenhand.study.session.times import known_raters
from evenhand.study.store.logs.session import events_of
from evenhand.study.store.schema import labels, session_events

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

Stage = Literal["entered", "consented", "passed", "working", "done", "left", "excluded"]


@dataclass(frozen=True)
class Funnel:
    """Counts of people who reached each stage, and of the outcomes.

    `entered`, `consented` and `passed` (all that comes before the first unit) are nested.
    `working`, `done`, `left` (no consent, screened out, or the place given back) and `excluded` are
    disjoint: everyone who passed is in one of them; those who left may have done so earlier.
    """

    entered: int = 0
    consented: int | None = None
    """People who consented; None where the study asks for no consent."""
    passed: int = 0
    working: int = 0
    done: int = 0
    left: int = 0
    excluded: int = 0

    @property
    def stages(self) -> list[tuple[Stage, int]]:
        """The stages that the study has, in their order."""
        counts: dict[Stage, int | None] = {
            "entered": self.entered,
            "consented": self.consented,
            "passed": self.passed,
            "working": self.working,
            "done": self.done,
            "left": self.left,
            "excluded": self.excluded,
        }
        return [(stage, count) for stage, count in counts.items() if count is not None]


def funnel(study: Study) -> Funnel:
    """Count the people who came in, were given a unit, or labelled, by the stage they reached."""
    sessions, excluded = Sessions(study), oversight(study.store).exclusions
    labelled, completed = _labelled(study), _completed(study)
    asks = study.config.consent is not None
    consented = passed = working = done = left = out = 0
    raters = known_raters(study)
    for rater in raters:
        step = sessions.next_step(rater)
        has_passed = step.name == "labelling" or rater in labelled
        passed += has_passed
        consented += asks and (has_passed or _has_consented(study, rater))
        if rater in excluded:
            out += 1
        elif step.name == "ended":
            left += 1
        elif rater in completed:
            done += 1
        elif has_passed:
            working += 1
    return Funnel(len(raters), int(consented) if asks else None, passed, working, done, left, out)


def _has_consented(study: Study, rater: str) -> bool:
    with study.store.read() as connection:
        log = events_of(connection, rater)
    return any(event.kind == "consent" and event.detail.get("agreed") for event in log)


def _labelled(study: Study) -> set[str]:
    people = sa.select(labels.c.rater_id).where(labels.c.rater_kind == "human").distinct()
    with study.store.read() as connection:
        return set(connection.execute(people).scalars())


def _completed(study: Study) -> set[str]:
    ended = sa.select(session_events.c.rater_id).where(session_events.c.kind == "completed")
    with study.store.read() as connection:
        return set(connection.execute(ended).scalars())
