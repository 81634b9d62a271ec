"""Answers and flags that raters send, and how the store takes them: appended, never changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenhand.rubrics import Rubric
from evenhand.study.desk.claims import Changes, Claim
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.store.database import append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.answers import ANSWERED, WITHDRAWN, add_details, add_remark
from evenhand.study.store.schema import (
    answer_details,
    attention_labels,
    flag_events,
    labels,
    practice_labels,
    remarks,
)
from evenhand.study.store.store import Store
from evenhand.study.tables.evidence import Mark, lie_within, other_way_round, read_marks

SKIP_REASONS = (
    "skipped_undecidable", "skipped_broken_text", "skipped_language", "skipped_distressing",
    "skipped_other",
)  # fmt: skip
"""Values of `unscored_reason` for a unit that a person skipped."""
FLAG_REASONS = ("harmful", "personal_data", "broken_text", "unclear_rubric", "other")
CONFIDENCE_LEVELS = (1, 2, 3)
OF_A_TASK = ("rater_id", "unit_id", "rubric", "draw")
DISPLAYS = ("text", "markdown")
"""Displays of responses: as they were written, or with their Markdown rendered."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A label (`option_key`, as it was shown) or the reason why there is none (`skip_reason`)."""

    submit_id: str
    task_id: str
    option_key: str = ""
    skip_reason: str = ""
    seconds: float | None = None
    edit: bool = False
    confidence: int | None = None
    rationale: str = ""
    language: str = ""
    """The page's language, or "" if it was not sent."""
    display: str = ""
    """One of DISPLAYS; empty where it is not known."""
    evidence: tuple[Mark, ...] = ()
    """The words that decided, as they were shown."""


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A remark on a unit for the study's lead; it is not a label."""

    submit_id: str
    task_id: str
    reason: str
    text: str = ""


@dataclass(frozen=True)
class Receipt:
    """The outcome of one thing sent: stored, duplicate, already_labelled, unknown_task or
    needs_evidence.
    """

    status: str


@dataclass(frozen=True)
class Given:
    """The present answer to a task, as it was shown."""

    option_key: str = ""
    skip_reason: str = ""
    confidence: int | None = None
    rationale: str = ""
    created_at: str = ""
    evidence: tuple[Mark, ...] = ()


def take_answer(
    store: Store,
    changes: Changes,
    claim: Any,
    answer: Answer,
    rubric: Rubric,
    texts: Mapping[str, str],
) -> Receipt:
    """Append an answer to the task of this claim (a row of the claims). `texts` are the texts
    shown; only an answer with marks needs them.
    """
    if refused := why_refused(answer, rubric, texts):
        return Receipt(refused)
    table = attention_labels if has_known_answer(claim.unit_id) else labels
    if claim.state == "labelled":
        if is_stored(changes.connection, table, claim, answer.submit_id):
            return Receipt("duplicate")
        if not answer.edit:
            return Receipt("already_labelled")
    if not add_answer(store, changes.connection, table, claim, answer, rubric):
        return Receipt("unknown_task")  # another task's submit id: a client gone wrong
    if claim.state != "labelled":
        changes.mark(claim.task_id, state="labelled")
    return Receipt("stored")


def why_refused(answer: Answer, rubric: Rubric, texts: Mapping[str, str]) -> str:
    """Why an answer cannot be taken, as its receipt says it; "" where it can."""
    if not _is_possible(answer, rubric):
        return "unknown_task"
    if answer.evidence and not (rubric.evidence and lie_within(answer.evidence, texts)):
        return "unknown_task"
    if rubric.evidence == "required" and answer.option_key and not answer.evidence:
        return "needs_evidence"
    return ""


def _is_possible(answer: Answer, rubric: Rubric) -> bool:
    """Return True if the answer is one of the rubric's options or a reason to skip, not both."""
    return (
        bool(answer.option_key) != bool(answer.skip_reason)
        and (not answer.option_key or rubric.kind.takes(answer.option_key))
        and answer.skip_reason in ("", *SKIP_REASONS)
    )


def is_stored(connection: sa.Connection, table: sa.Table, claim: Any, submit_id: str) -> bool:
    """Return True if this answer to this very task of the rater has arrived before."""
    same = (table.c[name] == getattr(claim, name) for name in OF_A_TASK)
    known = sa.select(table.c.event_id).where(table.c.submit_id == submit_id, *same)
    return connection.execute(known).first() is not None


def arrived(connection: sa.Connection, rater_id: str, submit_ids: Iterable[str]) -> set[str]:
    """Return which of these answers and flags of one rater are in the store."""
    asked = set(submit_ids)
    found = (
        sa.select(table.c.submit_id).where(
            table.c.rater_id == rater_id, table.c.submit_id.in_(asked)
        )
        for table in (labels, attention_labels, remarks)
    )
    return set(connection.execute(sa.union_all(*found)).scalars())


def _is_taken(connection: sa.Connection, submit_id: str) -> bool:
    """Return True if any answer has this submit id. All tables of answers are searched: a refusal
    must not reveal whether a task is an attention check.
    """
    tables = (labels, attention_labels, practice_labels)
    taken = (sa.select(table.c.event_id).where(table.c.submit_id == submit_id) for table in tables)
    return connection.execute(sa.union_all(*taken)).first() is not None


def add_answer(
    store: Store,
    connection: sa.Connection,
    table: sa.Table,
    claim: Any,
    answer: Answer,
    rubric: Rubric,
) -> bool:
    """Append an answer and its remark and marks; return False where its submit id is taken."""
    if _is_taken(connection, answer.submit_id):
        return False
    # A unit in view when its rubric changed was read in the words from before.
    as_now = answer.language and claim.rubric_hash == rubric.hash
    event = _subject_of(claim, answer.submit_id) | {
        "rater_kind": "human",
        "label": _turned(rubric, claim.order, answer.option_key),
        "unscored_reason": answer.skip_reason,
        "seconds": answer.seconds,
        "page_language": answer.language,
        "shown_hash": rubric.in_language(answer.language).hash if as_now else "",
    }
    if not store.add_label(connection, event, table):
        return False
    if answer.confidence is not None or answer.rationale:
        said = {"kind": "answer", "confidence": answer.confidence, "text": answer.rationale}
        add_remark(connection, _subject_of(claim, answer.submit_id) | said)
    if answer.display or answer.evidence:
        marks = _marks_turned(claim.order, answer.evidence)
        add_details(connection, answer.submit_id, answer.display, marks)
    return True


def take_flag(connection: sa.Connection, claim: Any, flag: Flag) -> Receipt:
    """Append a flag on the unit of this claim."""
    if flag.reason not in FLAG_REASONS:
        return Receipt("unknown_task")
    said = {"kind": "flag", "reason": flag.reason, "text": flag.text}
    new = add_remark(connection, _subject_of(claim, flag.submit_id) | said)
    return Receipt("stored" if new else "duplicate")


def given_answers(
    connection: sa.Connection, rater_id: str, shown: Sequence[Claim], rubrics: Mapping[str, Rubric]
) -> dict[str, Given]:
    """The present answers to these tasks of one rater, by task id."""
    latest: dict[tuple[str, str, int], Any] = {}
    for table in (labels, attention_labels):
        query = (
            sa.select(table, remarks.c.confidence, remarks.c.text, answer_details.c.evidence)
            .join(remarks, remarks.c.submit_id == table.c.submit_id, isouter=True)
            .join(answer_details, answer_details.c.submit_id == table.c.submit_id, isouter=True)
            .where(
                table.c.rater_id == rater_id,
                table.c.unit_id.in_({claim.unit_id for claim in shown}),
            )
            .order_by(table.c.event_id)
        )
        for row in connection.execute(query):
            latest[row.unit_id, row.rubric, row.draw] = row
    given = {}
    for claim in shown:
        found = latest.get((*claim.key, claim.draw))
        if found is not None:
            given[claim.task_id] = Given(
                _turned(rubrics[claim.rubric], claim.order, found.label),
                found.unscored_reason,
                found.confidence,
                found.text or "",
                found.created_at,
                _marks_turned(claim.order, read_marks(found.evidence or []) or ()),
            )
    return given


def _turned(rubric: Rubric, order: str, key: str) -> str:
    """An option's key from the order shown to the pair's own, or back."""
    return rubric.swaps[key] if key and order == "ba" else key


def _marks_turned(order: str, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Marks from the order shown to the pair's own, or back."""
    return other_way_round(marks) if order == "ba" else marks


def _subject_of(claim: Any, submit_id: str) -> dict[str, Any]:
    return {
        "submit_id": submit_id,
        "unit_id": claim.unit_id,
        "rubric": claim.rubric,
        "rater_id": claim.rater_id,
        "order": claim.order,
        "draw": claim.draw,
        "rubric_hash": claim.rubric_hash,
        "created_at": utc_now(),
    }


# A rater's own flags: those in force, and how one is withdrawn. Nothing is deleted.

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
