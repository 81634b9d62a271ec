"""What sessions took: when each rater began and ended, how long they worked, what they are owed.

A rater's work is the way from one thing they did to the next - steps, practice, checks, labels. A
pause that is longer than `[session] idle_minutes` counts as so many minutes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.desk.oversight import STOPPED_BY, Exclusion, oversight
from evenhand.study.session.pay import owed
from evenhand.study.store.schema import (
    attention_labels,
    claims,
    labels,
    practice_labels,
    session_events,
)

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.session.sessions import Sessions
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


def session_times(study: Study, sessions: Sessions) -> pd.DataFrame:
    """One row per rater, `TIMES_COLUMNS`.

    `start` and `end` are the first and last thing that they did (UTC); the time that the first
    label took counts, where nothing went before it. `units` are those with a label or a skip,
    `answers` all labels and skips; practice and checks are in the time, not in the counts. `state`
    is the step they are at, "complete", or why their session ended: "stopped" (by a rule of the
    study) or "excluded" (by the lead) before they were done, "nothing_left" where no unit was left
    for them. `owed` is empty where [pay] sets no amount, or a person has to decide; see `why`.
    """
    import pandas as pd

    moments: dict[str, list[tuple[datetime, float]]] = defaultdict(list)
    units: dict[str, set[str]] = defaultdict(set)
    answers: dict[str, int] = defaultdict(int)
    completed: dict[str, str] = {}
    excluded = oversight(study.store).exclusions
    with study.store.read() as connection:
        for event in connection.execute(sa.select(session_events)):
            if event.kind not in _BY_OTHERS:
                moments[event.rater_id].append((datetime.fromisoformat(event.created_at), 0.0))
            if event.kind == "completed":
                completed.setdefault(event.rater_id, event.created_at)
        for table in (practice_labels, attention_labels, labels):
            for row in connection.execute(sa.select(table).where(table.c.rater_kind == "human")):
                at = datetime.fromisoformat(row.created_at)
                moments[row.rater_id].append((at, row.seconds or 0.0))
                if table is labels:
                    units[row.rater_id].add(row.unit_id)
                    answers[row.rater_id] += 1
    idle = study.config.session.idle_minutes * 60
    rows: list[dict[str, Any]] = []
    for rater in sorted(moments):
        first, seconds = min(moments[rater])
        own = [first - timedelta(seconds=seconds), *sorted(at for at, _ in moments[rater])]
        step = sessions.next_step(rater)
        done_at = completed.get(rater, "")
        if step.reason:
            state = step.reason
        elif rater in excluded and not "" < done_at <= excluded[rater].created_at:
            state = _who_stopped(excluded[rater])
        elif done_at:
            state = "complete" if answers[rater] else "nothing_left"
        else:
            state = step.name
        rows.append(
            {
                "rater_id": rater,
                "state": state,
                "start": _written(own[0]),
                "end": _written(own[-1]),
                "active_seconds": _active(own, idle),
                "units": len(units[rater]),
                "answers": answers[rater],
            }
        )
    whole = _whole_part(study, rows)
    pay = study.config.pay
    for each in rows:
        due = owed(each["state"], each["units"], whole, pay)
        each |= {"owed": due.amount, "currency": pay.currency if pay else "", "why": due.why}
    return pd.DataFrame(rows, columns=list(TIMES_COLUMNS)).astype({"owed": "float64"})


def _who_stopped(exclusion: Exclusion) -> str:
    return "stopped" if exclusion.done_by == STOPPED_BY else "excluded"


def _whole_part(study: Study, rows: Sequence[Mapping[str, Any]]) -> int:
    """How many units a part has: as set, else what those who are done answered at the median; 0
    where nobody is done.
    """
    done = [row["units"] for row in rows if row["state"] == "complete"]
    return study.config.annotation.units_per_rater or (median_high(done) if done else 0)


def _active(moments: list[datetime], idle_seconds: float) -> float:
    """The seconds between the moments, each gap counting as `idle_seconds` at most.

    >>> nine = datetime(2026, 1, 1, 9)
    >>> _active([nine, nine + timedelta(seconds=40), nine + timedelta(hours=2)], 300.0)
    340.0
    """
    gaps = ((later - earlier).total_seconds() for earlier, later in pairwise(moments))
    return round(sum(min(gap, idle_seconds) for gap in gaps), 1)


def _written(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")
