"""Disagreements between a grader and people, sorted by who is wrong: the grader, people, or the
rubric's text, which can be read in two ways. Append-only: the latest judgment on a unit and grader
counts, and an empty one takes the former back. And people's flags, with the lead's answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store.database import EventLog, append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.answers import ANSWERED, WITHDRAWN
from evenhand.study.store.schema import flag_events, is_latest, remarks, sorted_disagreements
from evenhand.study.workspace import Study

Kind = Literal["grader_wrong", "people_wrong", "rubric_unclear"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class SortedDisagreement:
    """A judgment by the lead `done_by` on who is wrong where a grader's label differs from
    people's.

    `kind` is one of `KINDS`, or empty where a former judgment is taken back.
    """

    rubric: str
    rubric_hash: str
    unit_id: str
    grader: str
    kind: Kind | Literal[""]
    note: str = ""
    done_by: str = ""
    created_at: str = field(default_factory=utc_now)


_LOG = EventLog(sorted_disagreements, SortedDisagreement)


def sort_disagreement(
    study: Study,
    by: str,
    *,
    rubric: str,
    unit_id: str,
    grader: str,
    kind: Kind | Literal[""],
    note: str = "",
) -> None:
    """Append the judgment of the lead `by` on one disagreement; it is on disk when this returns.

    An empty `kind` takes the former one back. Raises InputError where the study has no such rubric
    or unit, or the kind is unknown.
    """
    known = study.rubrics.get(rubric)
    if known is None:
        raise InputError(f"the study has no rubric {rubric!r}")
    if kind not in ("", *KINDS):
        raise InputError(f"{kind!r} is none of {', '.join(KINDS)}")
    if unit_id not in study.units_by_kind("all")[known.unit]:
        raise InputError(f"the study has no {known.unit} item {unit_id!r}")
    found = SortedDisagreement(
        rubric=rubric,
        rubric_hash=known.hash,
        unit_id=unit_id,
        grader=grader,
        kind=kind,
        note=note.strip(),
        done_by=by,
    )
    _LOG.append(study.store, [found])


def sorted_so_far(study: Study) -> list[SortedDisagreement]:
    """Return the judgments in force, in their order; without those under an edited rubric text."""
    accepted = study.accepted_hashes()
    latest = _LOG.latest(study.store, "rubric", "unit_id", "grader", "rubric_hash")
    counted = (each for each in latest if each.rubric_hash in accepted.get(each.rubric, ()))
    current = {(each.rubric, each.unit_id, each.grader): each for each in counted}
    return [each for each in current.values() if each.kind]


def held_out_units(study: Study, rubric: str) -> list[str]:
    """Return the units of the sample on which a new text of a rubric may be tried: those of pairs
    without any sorted disagreement. A new text may have been written with the others in view.
    """
    ever = _LOG.all(study.store, sorted_disagreements.c.rubric == rubric)
    read = {parse_unit_id(each.unit_id)[0] for each in ever}
    units = study.rubric_units(study.rubrics[rubric])
    return [unit for unit in units if parse_unit_id(unit)[0] not in read]


# People's flags on units, and the lead's answer to each, kept with its author. A flag and its
# answers are events. The latest says whether a flag is open; nothing is overwritten.

CLOSED, REOPENED = "closed", "reopened"


@dataclass(frozen=True)
class RaisedFlag:
    """A rater's flag on a unit, and the lead's answer. `number` names it in `settle_flag`."""

    number: int
    unit_id: str
    rubric: str
    rater_id: str
    reason: str
    """One of `study.desk.desk.FLAG_REASONS`."""
    text: str
    created_at: str
    is_open: bool = True
    answer: str = ""
    done_by: str = ""
    done_at: str = ""
    withdrawn: bool = False
    """True if its rater took it back: then it is closed, and stays so."""


def raised_flags(study: Study) -> list[RaisedFlag]:
    """Return the open flags, oldest first, then those closed or withdrawn, latest first."""
    latest = sa.select(flag_events).where(is_latest(flag_events, "flag_id"))
    raised = sa.select(remarks).where(remarks.c.kind == "flag").order_by(remarks.c.event_id)
    with study.store.read() as connection:
        settled = {row.flag_id: row for row in connection.execute(latest)}
        flags = connection.execute(raised).all()
    found = []
    for row in flags:
        flag = (row.event_id, row.unit_id, row.rubric, row.rater_id, row.reason, row.text)
        done = settled.get(row.event_id)
        is_open = done is None or done.kind == REOPENED
        withdrawn = done is not None and done.kind == WITHDRAWN
        said: tuple[str, str, str] = ("", "", "")
        if done:
            said = (done.text, done.done_by, done.created_at)
        found.append(RaisedFlag(*flag, row.created_at, is_open, *said, withdrawn))
    open_yet = [flag for flag in found if flag.is_open]
    closed = [flag for flag in found if not flag.is_open]
    return open_yet + sorted(closed, key=lambda flag: flag.done_at, reverse=True)


def settle_flag(study: Study, number: int, note: str, done_by: str, answer: str = "") -> None:
    """Close a flag with a note for the leads on what was done about it, and an `answer` that is
    shown to whoever raised it.

    Raises InputError where the note is empty or there is no such open flag.
    """
    if not note.strip():
        raise InputError("say what was done about the flag")
    _append_flag_event(study, number, CLOSED, note.strip(), done_by, answer.strip())


def reopen_flag(study: Study, number: int, done_by: str) -> None:
    """Take it back that a flag is dealt with. Raises InputError where it is open."""
    _append_flag_event(study, number, REOPENED, "", done_by)


def _append_flag_event(
    study: Study, number: int, kind: str, text: str, done_by: str, answer: str = ""
) -> None:
    known = sa.select(remarks.c.event_id).where(
        remarks.c.event_id == number, remarks.c.kind == "flag"
    )
    last = sa.select(flag_events.c.kind).where(flag_events.c.flag_id == number)
    with study.store.write() as connection:
        if connection.execute(known).first() is None:
            raise InputError(f"there is no flag {number}")
        events = connection.execute(last.order_by(flag_events.c.event_id)).scalars()
        kinds = [each for each in events if each != ANSWERED]
        if WITHDRAWN in kinds:
            raise InputError("this flag was withdrawn by the annotator who raised it")
        is_closed = bool(kinds) and kinds[-1] == CLOSED
        if is_closed == (kind == CLOSED):
            state = "closed already" if is_closed else "open already"
            raise InputError(f"this flag is {state}; look at the list again")
        said = [(ANSWERED, answer)] if answer else []
        for each, words in (*said, (kind, text)):
            row = {"flag_id": number, "kind": each, "text": words, "done_by": done_by}
            append(connection, flag_events, row)
