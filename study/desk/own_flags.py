"""A rater's own flags: those in force, and how one is withdrawn. Nothing is deleted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenhand.study.desk.answers import OF_A_TASK, Receipt
from evenhand.study.desk.claims import Claim
from evenhand.study.store.events import append
from evenhand.study.store.logs.answers import ANSWERED, WITHDRAWN
from evenhand.study.store.schema import flag_events, remarks

_MOST = 20
"""Flags on one unit that are shown, the latest."""


@dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """A rater's withdrawal of a flag of theirs; `flag_id` is its submit id."""

    submit_id: str
    task_id: str
    flag_id: str


@dataclass(frozen=True)
class OwnFlag:
    """A flag that was not withdrawn, as its rater sees it."""

    flag_id: str
    task_id: str
    reason: str
    text: str


def standing_flags(
    connection: sa.Connection, rater_id: str, shown: Sequence[Claim]
) -> tuple[OwnFlag, ...]:
    """The flags on these tasks of one rater that were not withdrawn, in their order.

    A hidden repeat shows none of those on its first showing: they would give it away.
    """
    tasks = {(*claim.key, claim.draw): claim.task_id for claim in shown}
    units = {claim.unit_id for claim in shown}
    query = (
        sa.select(remarks)
        .where(
            remarks.c.rater_id == rater_id,
            remarks.c.unit_id.in_(units),
            remarks.c.kind == "flag",
            ~_is_withdrawn(remarks.c.event_id),
        )
        .order_by(remarks.c.event_id)
    )
    found = [
        OwnFlag(row.submit_id, tasks[row.unit_id, row.rubric, row.draw], row.reason, row.text)
        for row in connection.execute(query)
        if (row.unit_id, row.rubric, row.draw) in tasks
    ]
    return tuple(found[-_MOST:]) if len(tasks) == 1 else tuple(found)


@dataclass(frozen=True)
class FlagAnswer:
    """What a lead answers a rater about a flag of theirs."""

    reason: str
    text: str
    answer: str


def answers_to_flags(connection: sa.Connection, rater_id: str) -> tuple[FlagAnswer, ...]:
    """The answers to one rater's flags, in the order in which they were given."""
    query = (
        sa.select(remarks.c.reason, remarks.c.text, flag_events.c.text.label("answer"))
        .join(flag_events, flag_events.c.flag_id == remarks.c.event_id)
        .where(remarks.c.rater_id == rater_id, flag_events.c.kind == ANSWERED)
        .order_by(flag_events.c.event_id)
    )
    return tuple(FlagAnswer(*row) for row in connection.execute(query))


def take_withdrawal(connection: sa.Connection, claim: Any, withdrawal: Withdrawal) -> Receipt:
    """Append that a flag on the task of this claim is withdrawn; the flag itself stays."""
    own = sa.select(remarks.c.event_id, _is_withdrawn(remarks.c.event_id)).where(
        remarks.c.kind == "flag",
        remarks.c.submit_id == withdrawal.flag_id,
        *(remarks.c[name] == getattr(claim, name) for name in OF_A_TASK),
    )
    flag = connection.execute(own).first()
    if flag is None:
        return Receipt("unknown_task")
    if flag[1]:
        return Receipt("duplicate")
    row = {"flag_id": flag.event_id, "kind": WITHDRAWN, "text": "", "done_by": claim.rater_id}
    append(connection, flag_events, row)
    return Receipt("stored")


def _is_withdrawn(flag_id: sa.Column[int]) -> sa.Exists:
    withdrawn = (flag_events.c.flag_id == flag_id, flag_events.c.kind == WITHDRAWN)
    return sa.exists().where(*withdrawn)
