"""Times of sessions: when each rater began and ended, how long they worked, what they are owed.

A rater's work is the time from one thing they did to the next - steps, practice, checks, labels. A
pause longer than `[session] idle_minutes` counts as `idle_minutes`.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.desk.oversight import STOPPED_BY, Exclusion, oversight
from evenhand.study.session.step import Step
from evenhand.study.store.schema import (
    attention_labels,
    claims,
    labels,
    practice_labels,
    session_events,
)
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.session.sessions import Sessions
    from evenhand.study.settings.session import PaySettings
    from evenhand.study.workspace import Study

TIMES_COLUMNS = (
    "rater_id", "state", "start", "end", "active_seconds", "units", "answers",
    "owed", "currency", "why",
)  # fmt: skip
_BY_OTHERS = ("released", "readmitted")
"""Events that the rater had no hand in."""


def known_raters(study: Study) -> set[str]:
    """Everybody who has come in, been given a unit, or labelled."""
    found: set[str] = set()
    with study.store.read() as connection:
        for table in (session_events, claims):
            found |= set(connection.execute(sa.select(table.c.rater_id).distinct()).scalars())
        people = sa.select(labels.c.rater_id).where(labels.c.rater_kind == "human")
        found |= set(connection.execute(people.distinct()).scalars())
    return found


@dataclass
class _Work:
    """The work of one rater: moments, each with the seconds that the thing done then had taken; the
    units with a label or a skip; the number of labels and skips; and when the page said that they
    are done.
    """

    moments: list[tuple[datetime, float]] = field(default_factory=list)
    units: set[str] = field(default_factory=set)
    answers: int = 0
    completed: str = ""

    @property
    def way(self) -> list[datetime]:
        """All moments in order, from when the first thing was begun."""
        first, seconds = min(self.moments)
        return [first - timedelta(seconds=seconds), *sorted(at for at, _ in self.moments)]


def session_times(study: Study, sessions: Sessions) -> pd.DataFrame:
    """Return a row per rater, `TIMES_COLUMNS`.

    `start` and `end` are the first and last thing that they did (UTC); the time that the first
    label took counts, where nothing came before it. `units` are those with a label or a skip,
    `answers` all labels and skips; practice and checks are in the time, not in the counts. `state`
    is the step they are at, "complete", or why their session ended: "stopped" (by a rule of the
    study) or "excluded" (by the lead) before they were done, "nothing_left" where no unit was left
    for them. `owed` is empty where [pay] sets no amount, or a person has to decide; see `why`.
    """
    import pandas as pd

    excluded = oversight(study.store).exclusions
    idle = study.config.session.idle_minutes * 60
    rows: list[dict[str, Any]] = []
    for rater, work in sorted(_work(study).items()):
        way = work.way
        rows.append(
            {
                "rater_id": rater,
                "state": _state(work, sessions.next_step(rater), excluded.get(rater)),
                "start": way[0].isoformat(timespec="seconds"),
                "end": way[-1].isoformat(timespec="seconds"),
                "active_seconds": _active(way, idle),
                "units": len(work.units),
                "answers": work.answers,
            }
        )
    done = [row["units"] for row in rows if row["state"] == "complete"]
    whole = study.config.annotation.units_per_rater or (median_high(done) if done else 0)
    pay = study.config.pay
    for each in rows:
        amount, why = owed(each["state"], each["units"], whole, pay)
        each |= {"owed": amount, "currency": pay.currency if pay else "", "why": why}
    return pd.DataFrame(rows, columns=list(TIMES_COLUMNS)).astype({"owed": "float64"})


def _work(study: Study) -> dict[str, _Work]:
    """Collect the work of each rater who did anything."""
    found: dict[str, _Work] = defaultdict(_Work)
    with study.store.read() as connection:
        for event in connection.execute(sa.select(session_events)):
            if event.kind in _BY_OTHERS:
                continue
            own = found[event.rater_id]
            own.moments.append((datetime.fromisoformat(event.created_at), 0.0))
            if event.kind == "completed":
                own.completed = own.completed or event.created_at
        for table in (practice_labels, attention_labels, labels):
            for row in connection.execute(sa.select(table).where(table.c.rater_kind == "human")):
                own = found[row.rater_id]
                own.moments.append((datetime.fromisoformat(row.created_at), row.seconds or 0.0))
                if table is labels:
                    own.units.add(row.unit_id)
                    own.answers += 1
    return found


def _state(work: _Work, step: Step, exclusion: Exclusion | None) -> str:
    """See `session_times`; who was done before they were excluded is done."""
    if step.reason:
        return step.reason
    if exclusion and not "" < work.completed <= exclusion.created_at:
        return "stopped" if exclusion.done_by == STOPPED_BY else "excluded"
    if work.completed:
        return "complete" if work.answers else "nothing_left"
    return step.name


def _active(moments: list[datetime], idle_seconds: float) -> float:
    """The seconds between the moments, each gap counting as `idle_seconds` at most.

    >>> nine = datetime(2026, 1, 1, 9)
    >>> _active([nine, nine + timedelta(seconds=40), nine + timedelta(hours=2)], 300.0)
    340.0
    """
    gaps = ((later - earlier).total_seconds() for earlier, later in pairwise(moments))
    return round(sum(min(gap, idle_seconds) for gap in gaps), 1)


# Pay: the amount that each person is owed when their part is over, and the reason


_PAID = ("complete", "screened_out", "nothing_left")
"""Ends with an amount of their own in [pay]."""
_NOTHING = ("no_consent", "returned", "rejected")
_TO_DECIDE = ("excluded", "timed_out")
"""Ends for which nothing is paid until a person has decided."""


def owed(state: str, units: int, whole: int, pay: PaySettings | None) -> tuple[float | None, str]:
    """Return the amount owed to a rater in this state with `units` answered of the `whole` of a
    part, 0 where that is not known yet; None where [pay] sets none or a person has to decide. And
    the reason.
    """
    if state == "stopped":
        return _for_stopped(units, whole, pay)
    if state in _TO_DECIDE:
        return None, written(f"pay.{state}")
    end = state if state in (*_PAID, *_NOTHING) else "at_work"
    why = written(f"pay.{end}")
    if pay is None:
        return None, why
    return getattr(pay, end) if end in _PAID else 0.0, why


def _for_stopped(units: int, whole: int, pay: PaySettings | None) -> tuple[float | None, str]:
    if pay is not None and pay.stopped == "full":
        return pay.complete, written("pay.stopped_full")
    if not whole:
        return None, written("pay.stopped_unknown", units=units)
    share = min(units / whole, 1.0)
    amount = None if pay is None else round(pay.complete * share, 2)
    return amount, written("pay.stopped", units=units, whole=whole)
