"""People's flags on units, and the lead's answer to each, kept with its author.

A flag and its answers are events. The latest says whether a flag is open; nothing is overwritten.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.study.store.events import append
from evenhand.study.store.logs.answers import ANSWERED, WITHDRAWN
from evenhand.study.store.schema import flag_events, is_latest, remarks

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

CLOSED, REOPENED = "closed", "reopened"


@dataclass(frozen=True)
class RaisedFlag:
    """A rater's flag on a unit, and the lead's answer. `number` names it in `settle_flag`."""

    number: int
    unit_id: str
    rubric: str
    rater_id: str
    reason: str
    """One of `study.desk.answers.FLAG_REASONS`."""
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
    _append(study, number, CLOSED, note.strip(), done_by, answer.strip())


def reopen_flag(study: Study, number: int, done_by: str) -> None:
    """Take it back that a flag is dealt with. Raises InputError where it is open."""
    _append(study, number, REOPENED, "", done_by)


def _append(
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
            raise InputError("this flag was withdrawn by whoever raised it")
        is_closed = bool(kinds) and kinds[-1] == CLOSED
        if is_closed == (kind == CLOSED):
            state = "closed already" if is_closed else "open already"
            raise InputError(f"this flag is {state}; look at the list again")
        said = [(ANSWERED, answer)] if answer else []
        for each, words in (*said, (kind, text)):
            row = {"flag_id": number, "kind": each, "text": words, "done_by": done_by}
            append(connection, flag_events, row)
