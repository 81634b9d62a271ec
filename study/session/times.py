"""Times of sessions: when each rater began and ended, how long they worked, what they are owed. And
the study's costs, the funnel of those who came, and their answers about themselves.

A rater's work is the time from one thing they did to the next - steps, practice, checks, labels. A
pause longer than `[session] idle_minutes` counts as `idle_minutes`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median_high
from typing import Any, Literal, get_args

import sqlalchemy as sa

from evenhand.lazy import pd
from evenhand.study.desk.claims import SessionDesign
from evenhand.study.desk.oversight import STOPPED_BY, Exclusion, oversight
from evenhand.study.session.sessions import Sessions, Step, known_raters
from evenhand.study.settings.study_toml import PaySettings
from evenhand.study.store.logs.answers import events_of, languages_of_raters
from evenhand.study.store.schema import (
    attention_labels,
    background_answers,
    labels,
    practice_labels,
    session_events,
)
from evenhand.study.store.store import grade_totals
from evenhand.study.workspace import Study
from evenhand.texts import written

TIMES_COLUMNS = (
    "rater_id", "state", "start", "end", "active_seconds", "units", "answers",
    "owed", "currency", "why",
)  # fmt: skip
_BY_OTHERS = ("released", "readmitted")
"""Events that the rater had no hand in."""


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


# What a study costs: amounts owed to people, and spent on graders.


@dataclass(frozen=True)
class Costs:
    """Amounts owed to people by `[pay]`, and spent on graders so far. None where it is not known.

    `expected` is what people are owed once all is labelled; `undecided` counts those for whom the
    lead has to decide. `unpriced` counts graders whose price is not known.
    """

    currency: str = ""
    owed: float | None = None
    expected: float | None = None
    undecided: int = 0
    graders_usd: float | None = None
    unpriced: int = 0


def costs(study: Study) -> Costs:
    """Add up what people are owed so far and in the end, and what graders have cost.

    In the end everybody who is needed is paid for a whole part: the `places` at Prolific, or as
    many as it takes at `units_per_rater` units each; without either nothing is expected.
    """
    totals = grader_costs(study)
    priced = totals["cost_usd"].dropna()
    graders = float(priced.sum()) if len(priced) else None
    unpriced = int(totals["cost_usd"].isna().groupby(totals["rater_id"]).any().sum())
    pay = study.config.pay
    if pay is None:
        return Costs(graders_usd=graders, unpriced=unpriced)
    times = session_times(study, Sessions(study))
    owed = float(times["owed"].sum())
    people = _people_needed(study)
    return Costs(
        currency=pay.currency,
        owed=owed,
        expected=None if people is None else max(people * pay.complete, owed),
        undecided=int(times["owed"].isna().sum()),
        graders_usd=graders,
        unpriced=unpriced,
    )


def grader_costs(study: Study) -> pd.DataFrame:
    """Return what each grader was asked and has cost, as `store.store.grade_totals`."""
    return grade_totals(study.store)


def _people_needed(study: Study) -> int | None:
    annotation, prolific = study.config.annotation, study.config.prolific
    if prolific is not None and prolific.places:
        return prolific.places
    if not annotation.units_per_rater:
        return None
    units = len({unit for unit, _ in SessionDesign(study).questions})
    return math.ceil(units * annotation.raters_per_unit / annotation.units_per_rater)


# The funnel of people who came in: from the entry to the end, and where they were lost.

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


# Raters' answers about themselves, as the table of raters that an analysis can be split by.


def raters_table(study: Study) -> pd.DataFrame:
    """Return a row per rater who answered anything: `rater_id` and a column per background
    question.

    A skipped question is empty. Usable as `analyse(raters=..., rater_slices=[...])`.
    """
    asked = study.config.background.questions if study.config.background else ()
    query = sa.select(background_answers).order_by(background_answers.c.event_id)
    rows = study.store.rows(query)
    answers: dict[str, dict[str, str]] = {}
    for row in rows:
        answers.setdefault(row.rater_id, {})[row.question] = row.answer
    keys = list(dict.fromkeys([*(question.key for question in asked), *(r.question for r in rows)]))
    table = [
        {"rater_id": rater} | {key: given.get(key, "") for key in keys}
        for rater, given in sorted(answers.items())
    ]
    return pd.DataFrame(table, columns=["rater_id", *keys])


def raters_to_split_by(study: Study) -> pd.DataFrame:
    """Return `raters_table` with `page_language`, the language in which each rater was asked, and
    rows for raters who only have a language.
    """
    languages = languages_of_raters(study.store)
    table = raters_table(study)
    if not languages:
        return table
    table = table.set_index("rater_id").reindex(sorted({*table["rater_id"], *languages}))
    table["page_language"] = table.index.map(languages)
    return table.fillna("").rename_axis("rater_id").reset_index()
