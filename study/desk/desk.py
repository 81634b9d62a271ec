"""The annotators' desk: hands out tasks to raters, and takes in answers and flags, which are stored
before they are acknowledged: appended, never changed.

A task is a question as one rater is shown it; a sheet holds the tasks that are asked at once.
`study.desk.claims` settles the questions, their order and their sides, and which of them are a
rater's next. A task's id is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from statistics import median
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from evenhand.errors import Refused
from evenhand.rubrics import PeopleText, Rubric
from evenhand.study.desk.claims import (
    Changes,
    Claim,
    ClaimIndex,
    NextTasks,
    Oversight,
    SessionDesign,
    answered,
    asked_together,
    blinded,
    in_design,
)
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.settings.study_toml import SessionSettings
from evenhand.study.store.database import append_once
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import (
    answer_details,
    attention_labels,
    claims,
    flag_events,
    labels,
    practice_labels,
    remarks,
)
from evenhand.study.store.store import ANSWERED, WITHDRAWN, rater_kind
from evenhand.study.tables.ratings import (
    RATER_CODE,
    RESERVED_RATERS,
    Mark,
    lie_within,
    other_way_round,
    read_marks,
    written_marks,
)
from evenhand.study.workspace import Study

SKIP_REASONS = (
    "skipped_undecidable", "skipped_broken_text", "skipped_language", "skipped_distressing",
    "skipped_other",
)  # fmt: skip
"""Values of `unscored_reason` for a unit that a person skipped."""
FLAG_REASONS = ("harmful", "personal_data", "broken_text", "unclear_rubric", "other")
CONFIDENCE_LEVELS = (1, 2, 3)
OF_A_TASK = ("rater_id", "unit_id", "rubric", "draw")
DISPLAYS = ("text", "markdown", "opened")
"""Displays: as written, with Markdown rendered, or JSON of which all stood open."""


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


Receipt = Literal["stored", "duplicate", "already_labelled", "unknown_task", "needs_evidence"]
"""What became of an answer or a flag."""


@dataclass(frozen=True)
class Given:
    """The present answer to a task, as it was shown."""

    option_key: str = ""
    skip_reason: str = ""
    confidence: int | None = None
    rationale: str = ""
    created_at: str = ""
    evidence: tuple[Mark, ...] = ()


def take(
    connection: sa.Connection,
    table: sa.Table,
    claim: Any,
    sent: Answer | Flag,
    rubric: Rubric,
    texts: Mapping[str, str],
) -> Receipt:
    """Append what was sent about the task of this claim (a row of the claims), an answer to this
    table. `texts` are the texts shown; only an answer with marks needs them.
    """
    if isinstance(sent, Flag):
        if sent.reason not in FLAG_REASONS:
            return "unknown_task"
        flag = {"kind": "flag", "reason": sent.reason, "text": sent.text}
        event = _subject_of(claim, sent.submit_id) | flag
        new = append_once(connection, remarks, "submit_id", event)
        return "stored" if new else "duplicate"
    if refused := _why_refused(sent, rubric, texts):
        return refused
    if claim.state == "labelled":
        same = (table.c[name] == getattr(claim, name) for name in OF_A_TASK)
        arrived = sa.select(table.c.event_id).where(table.c.submit_id == sent.submit_id, *same)
        if connection.execute(arrived).first():
            return "duplicate"
        if not sent.edit:
            return "already_labelled"
    if not _add_answer(connection, table, claim, sent, rubric):
        return "unknown_task"  # another task's submit id: a client gone wrong
    return "stored"


def _why_refused(
    answer: Answer, rubric: Rubric, texts: Mapping[str, str]
) -> Literal["unknown_task", "needs_evidence", ""]:
    """Return why an answer cannot be taken, as its receipt says it; "" where it can: it is one of
    the rubric's options or a reason to skip, not both.
    """
    if (
        bool(answer.option_key) == bool(answer.skip_reason)
        or (answer.option_key and not rubric.kind.takes(answer.option_key))
        or answer.skip_reason not in ("", *SKIP_REASONS)
    ):
        return "unknown_task"
    if answer.evidence and not (rubric.evidence and lie_within(answer.evidence, texts)):
        return "unknown_task"
    if rubric.evidence == "required" and answer.option_key and not answer.evidence:
        return "needs_evidence"
    return ""


def _add_answer(
    connection: sa.Connection, table: sa.Table, claim: Any, answer: Answer, rubric: Rubric
) -> bool:
    """Append an answer and its remark and marks; return False where its submit id is taken."""
    # All tables of answers: a refusal must not reveal whether a task is an attention check.
    ids = (log.c.submit_id for log in (labels, attention_labels, practice_labels))
    taken = (sa.select(log).where(log == answer.submit_id) for log in ids)
    if connection.execute(sa.union_all(*taken)).first():
        return False
    # A unit in view when its rubric changed was read in the words from before.
    as_now = answer.language and claim.rubric_hash == rubric.hash
    about = _subject_of(claim, answer.submit_id)
    event = about | {
        "rater_kind": "human",
        "label": _turned(rubric, claim.order, answer.option_key),
        "unscored_reason": answer.skip_reason,
        "seconds": answer.seconds,
        "page_language": answer.language,
        "shown_hash": rubric.in_language(answer.language).hash if as_now else "",
    }
    if not append_once(connection, table, "submit_id", event):
        return False
    if answer.confidence is not None or answer.rationale:
        remark = {"kind": "answer", "confidence": answer.confidence, "text": answer.rationale}
        append_once(connection, remarks, "submit_id", about | remark)
    if answer.display or answer.evidence:
        marks = written_marks(_marks_turned(claim.order, answer.evidence))
        details = {"submit_id": answer.submit_id, "display": answer.display, "evidence": marks}
        append_once(connection, answer_details, "submit_id", details)
    return True


def given_answers(
    connection: sa.Connection, rater_id: str, shown: Sequence[Claim], rubrics: Mapping[str, Rubric]
) -> dict[str, Given]:
    """The present answers to these tasks of one rater, by task id."""
    units = {claim.unit_id for claim in shown}
    latest: dict[tuple[str, str, int], Any] = {}
    for table in (labels, attention_labels):
        query = (
            sa.select(table, remarks.c.confidence, remarks.c.text, answer_details.c.evidence)
            .join(remarks, remarks.c.submit_id == table.c.submit_id, isouter=True)
            .join(answer_details, answer_details.c.submit_id == table.c.submit_id, isouter=True)
            .where(table.c.rater_id == rater_id, table.c.unit_id.in_(units))
            .order_by(table.c.event_id)
        )
        for row in connection.execute(query):
            latest[row.unit_id, row.rubric, row.draw] = row
    return {
        claim.task_id: Given(
            _turned(rubrics[claim.rubric], claim.order, last.label),
            last.unscored_reason,
            last.confidence,
            last.text or "",
            last.created_at,
            _marks_turned(claim.order, read_marks(last.evidence or []) or ()),
        )
        for claim in shown
        if (last := latest.get((*claim.key, claim.draw))) is not None
    }


def _turned(rubric: Rubric, order: str, key: str) -> str:
    """An option's key from the order shown to the pair's own, or back."""
    return rubric.swaps[key] if key and order == "ba" else key


def _marks_turned(order: str, marks: tuple[Mark, ...]) -> tuple[Mark, ...]:
    """Marks from the order shown to the pair's own, or back."""
    return other_way_round(marks) if order == "ba" else marks


def _subject_of(claim: Any, submit_id: str) -> dict[str, Any]:
    names = ("unit_id", "rubric", "rater_id", "order", "draw", "rubric_hash")
    task = {name: getattr(claim, name) for name in names}
    return {"submit_id": submit_id, "created_at": utc_now()} | task


# A rater's own flags

_MOST = 20  # flags on one unit that are shown, the latest


@dataclass(frozen=True)
class OwnFlag:
    """A flag as its rater sees it."""

    task_id: str
    reason: str
    text: str


def standing_flags(
    connection: sa.Connection, rater_id: str, shown: Sequence[Claim]
) -> tuple[OwnFlag, ...]:
    """The flags on these tasks of one rater, in their order, without those that were withdrawn, as
    was possible before 0.3.0. A hidden repeat shows none of those on its first showing: they would
    give it away.
    """
    tasks = {(*claim.key, claim.draw): claim.task_id for claim in shown}
    units = {claim.unit_id for claim in shown}
    of_units = remarks.c.rater_id == rater_id, remarks.c.unit_id.in_(units)
    withdrawn = flag_events.c.flag_id == remarks.c.event_id, flag_events.c.kind == WITHDRAWN
    stands = remarks.c.kind == "flag", ~sa.exists().where(*withdrawn)
    query = sa.select(remarks).where(*of_units, *stands).order_by(remarks.c.event_id)
    flags = [
        OwnFlag(task_id, row.reason, row.text)
        for row in connection.execute(query)
        if (task_id := tasks.get((row.unit_id, row.rubric, row.draw)))
    ]
    return tuple(flags[-_MOST:]) if len(tasks) == 1 else tuple(flags)


@dataclass(frozen=True)
class FlagAnswer:
    """A lead's answer to a rater about a flag of theirs."""

    reason: str
    text: str
    answer: str


# A rater's progress: the minutes left at their own pace, a day's end.
# The total is what is given and still to be given, as others leave it; the minutes are an estimate
# from the rater's own answers, and worded as one.

LEAST_ANSWERS = 5
"""With fewer answers a pace is not estimated."""
_RECENT = 30  # the pace is that of this many last answers: people grow quicker, and tire


@dataclass(frozen=True, slots=True)
class Worked:
    """An answer's time (UTC), and the seconds that its unit was in view."""

    at: str
    seconds: float


class WorkLog:
    """The answers of every person in the order in which they came, in step with the store."""

    def __init__(self) -> None:
        self._by_rater: dict[str, list[Worked]] = {}
        self._seen = dict.fromkeys((labels, attention_labels), 0)

    def refresh(self, connection: sa.Connection) -> None:
        """Read the answers since the last refresh. Answers to attention checks are work like any:
        an estimate, or a day's end, that left them out would reveal which they are.
        """
        new: list[tuple[str, str, float]] = []
        for table, seen in self._seen.items():
            columns = (table.c[name] for name in ("event_id", "rater_id", "created_at", "seconds"))
            later = sa.select(*columns).where(table.c.event_id > seen)
            later = later.where(table.c.rater_kind == "human").order_by(table.c.event_id)
            for event_id, rater, at, seconds in connection.execute(later):
                self._seen[table] = event_id
                new.append((at, rater, seconds or 0.0))
        for at, rater, seconds in sorted(new, key=lambda row: row[0]):
            self._by_rater.setdefault(rater, []).append(Worked(at, seconds))

    def of_rater(self, rater_id: str) -> Sequence[Worked]:
        return self._by_rater.get(rater_id, ())


def minutes_left(worked: Sequence[Worked], left: int) -> int | None:
    """Estimate the minutes that `left` more answers will take; None where too few were timed.

    From the median of the recent answers, which a break or a long text does not move.

    >>> minutes_left([Worked("", 20.0)] * 9 + [Worked("", 3600.0)], left=100)
    35
    """
    timed = [work.seconds for work in worked[-_RECENT:] if work.seconds > 0]
    if len(timed) < LEAST_ANSWERS:
        return None
    return as_people_say(median(timed) * left / 60)


def as_people_say(minutes: float) -> int:
    """Minutes to the minute up to ten, to five up to an hour, to ten up to two hours, then to the
    hour: no finer than the estimate is.

    >>> [as_people_say(each) for each in (0.2, 7.4, 34.2, 96, 200)]
    [1, 7, 35, 100, 180]
    """
    step = next((step for step, most in ((1, 10), (5, 60), (10, 120)) if minutes < most), 60)
    return max(1, step * int(minutes / step + 0.5))


JUST_NOW = timedelta(minutes=1)
"""The reason for no unit is asked a moment after there was none: midnight may lie between."""


def is_enough(settings: SessionSettings, worked: Sequence[Worked], now: datetime) -> bool:
    """Return True if a rater has done what study.toml allows for the day of `now`. A unit that was
    left in view counts as `idle_minutes` at most.
    """
    if not (settings.answers_per_day or settings.minutes_per_day):
        return False
    begun = day_of(settings, now).astimezone(UTC).isoformat(timespec="milliseconds")
    today = [work for work in worked if work.at >= begun]
    minutes = sum(min(work.seconds / 60, settings.idle_minutes) for work in today)
    return (0 < settings.answers_per_day <= len(today)) or (0 < settings.minutes_per_day <= minutes)


def day_of(settings: SessionSettings, now: datetime, later: int = 0) -> datetime:
    """Return the beginning of the day of `now`, or so many days later, in the study's time zone."""
    zone = ZoneInfo(settings.time_zone)
    day = now.astimezone(zone).date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day, tzinfo=zone)


# Tasks and sheets: a task is one question as shown to a rater, a sheet the tasks asked at once. And
# the list of a rater's earlier answers.


@dataclass(frozen=True)
class Task:
    """A question, ready to be shown: `values` are the rubric's variables in the order `order`."""

    task_id: str
    rubric: Rubric
    order: str
    values: Mapping[str, str]
    given: Given | None = None
    """The present answer, where the task is looked at again."""

    @property
    def people(self) -> PeopleText:
        """The rubric's own words and the unit."""
        return self.rubric.for_people(self.values)

    def people_in(self, language: str) -> PeopleText:
        """Return the task's text for people in a language, if the rubric is translated into it."""
        return self.rubric.in_language(language).for_people(self.values)


@dataclass(frozen=True)
class Sheet:
    """The tasks of one screen, and the rater's progress."""

    tasks: tuple[Task, ...]
    done: int
    total: int
    before: str = ""
    """The task that was answered before these; "" means the last one of all."""
    minutes: int | None = None
    """About so many minutes are left; None as long as the pace is not known."""
    flags: tuple[OwnFlag, ...] = ()
    """The rater's own flags on these tasks."""
    answered_as: int = 0
    """The number of the first of these tasks among the rater's answers, where it is answered."""

    @property
    def number(self) -> int:
        """The number that the first of these tasks has, or will have, among the answers."""
        return self.answered_as or self.done + 1


PAGE = 30
"""Answers on a page of the list."""
_EXCERPT = 160


@dataclass(frozen=True)
class EarlierAnswer:
    """A line of the list: the task with its answer, and its number among the rater's answers."""

    number: int
    task: Task
    excerpt: str
    flagged: bool


@dataclass(frozen=True)
class EarlierPage:
    """A page of answers from place `start` on, the latest first, of `found` in all."""

    rows: tuple[EarlierAnswer, ...] = ()
    start: int = 0
    found: int = 0


def excerpt(people: PeopleText) -> str:
    """Return the beginning of the first response."""
    responses = sorted(people.blocks, key=lambda block: block.kind != "response")
    return responses[0].text[:_EXCERPT] if responses else ""


Sent = Answer | Flag
"""The things that a rater may send."""


class Desk(Protocol):
    """Interface that the page needs of a desk: the annotators' one, or that of the practice. One
    that does not say otherwise looks neither ahead nor back.
    """

    study: Study

    def next_sheet(self, rater_id: str) -> Sheet | None: ...
    def progress(self, rater_id: str) -> tuple[int, int]: ...
    def submit_all(self, rater_id: str, sent: Sequence[Sent]) -> list[Receipt]: ...

    def sheet_ahead(self, rater_id: str, sheet: Sheet) -> Sheet | None:
        return None

    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None:
        return None

    def earlier(self, rater_id: str, start: int = 0) -> EarlierPage:
        return EarlierPage()

    def began_before_keys(self, rater_id: str) -> bool:
        return False

    def answers_to_flags(self, rater_id: str) -> tuple[FlagAnswer, ...]:
        return ()


class AnnotationDesk(Desk):
    """Hands out tasks and takes in answers. Safe under many threads and processes at once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        accepted = study.accepted_hashes().values()
        self._key = study.blinding_key  # now: it cannot be read within another transaction
        self._index = ClaimIndex({digest for hashes in accepted for digest in hashes})
        self._oversight = Oversight()
        self._work = WorkLog()
        self._cached: tuple[tuple[int, int], SessionDesign] | None = None

    def register(self, rater_id: str) -> None:
        """Check a rater's code. Raises InputError where it cannot be one."""
        if not RATER_CODE.fullmatch(rater_id):
            raise Refused("bad_code")
        with self.study.store.read() as connection:
            kind = rater_kind(connection, rater_id)
        if kind not in ("", "human") or rater_id in RESERVED_RATERS:
            raise Refused("code_of_another_kind")

    # Handing out

    def next_sheet(self, rater_id: str) -> Sheet | None:
        """Return the sheet that the rater has open, or else the next one; None when nothing is left
        for them.
        """
        return self._sheet(rater_id)

    def sheet_ahead(self, rater_id: str, sheet: Sheet) -> Sheet | None:
        """Return the sheet that comes after this one, reserved for the rater, so that it can be on
        their page before they ask for it; None where nothing is left, or the day may be over.
        """
        return self._sheet(rater_id, sheet)

    def _sheet(self, rater_id: str, before: Sheet | None = None) -> Sheet | None:
        """Return the rater's next sheet, once the one `before` is answered."""
        design = self._design()
        assumed = {task.task_id for task in before.tasks} if before else set()
        with self.study.store.write() as connection:
            tasks = self._next_tasks(connection, rater_id, design, assumed)
            if self._ended(connection, tasks, datetime.now(UTC), more=len(assumed)):
                return None
            counts = (before.done, before.total) if before else tasks.progress()
            if not (claimed := tasks.claim(connection)):
                return None
            done, total = counts
            flags = standing_flags(connection, rater_id, claimed)
        shown = tuple(self._task(claim, design) for claim in claimed)
        worked = self._work.of_rater(rater_id)
        minutes = None if before else minutes_left(worked, total - done)
        return Sheet(shown, done + len(assumed), total, minutes=minutes, flags=flags)

    def answers_to_flags(self, rater_id: str) -> tuple[FlagAnswer, ...]:
        """The lead's answers to this rater's flags, the first one first."""
        query = (
            sa.select(remarks.c.reason, remarks.c.text, flag_events.c.text.label("answer"))
            .join(flag_events, flag_events.c.flag_id == remarks.c.event_id)
            .where(remarks.c.rater_id == rater_id, flag_events.c.kind == ANSWERED)
            .order_by(flag_events.c.event_id)
        )
        return tuple(FlagAnswer(*row) for row in self.study.store.rows(query))

    def progress(self, rater_id: str) -> tuple[int, int]:
        """Return (answers given, answers given and still to be given by this rater)."""
        design = self._design()
        with self.study.store.read() as connection:
            return self._next_tasks(connection, rater_id, design).progress()

    def ended(self, rater_id: str) -> str:
        """Return why this rater gets no task though some may be left: the lead has "paused" it or
        "excluded" them, or it is enough for the "day"; "" where they get one.
        """
        design = self._design()
        with self.study.store.read() as connection:
            tasks = self._next_tasks(connection, rater_id, design)
            return self._ended(connection, tasks, datetime.now(UTC) - JUST_NOW)

    def _ended(
        self, connection: sa.Connection, tasks: NextTasks, now: datetime, more: int = 0
    ) -> str:
        """Return the same as `ended`, once the rater has given so many `more` answers. The unit at
        hand is finished, and a day ends only where more is left.
        """
        self._work.refresh(connection)
        by_lead = self._oversight.ended(tasks.rater_id)
        if by_lead or tasks.held:
            return by_lead
        at, idle = now.isoformat(timespec="milliseconds"), self.study.config.session.idle_minutes
        # What is in view counts as long as it can; a change of an earlier answer may come between.
        ahead = [Worked(at, 60 * idle)] * (2 * more)
        worked = [*self._work.of_rater(tasks.rater_id), *ahead]
        over = is_enough(self.study.config.session, worked, now)
        done, total = tasks.progress() if over else (0, 0)
        return "day" if done < total else ""

    def _next_tasks(
        self,
        connection: sa.Connection,
        rater_id: str,
        design: SessionDesign,
        assumed: Set[str] = frozenset(),
    ) -> NextTasks:
        self._index.refresh(connection)
        self._oversight = self._oversight.renewed(connection)
        excluded = self._oversight.exclusions.keys()
        return NextTasks(rater_id, design, self._index, excluded, assumed)

    # Taking in

    def submit_all(self, rater_id: str, sent: Sequence[Sent]) -> list[Receipt]:
        """Store everything that was sent, all or none; it is on disk when this returns.

        The same `submit_id` again changes nothing. A second answer to an answered task is refused,
        never silently taken or dropped, unless it is sent as an edit: then both stay in the store
        and the later one counts. An answer to a task whose lease is over is taken all the same:
        work that was done is never lost.
        """
        texts: dict[str, Mapping[str, str]] = {}  # by task id: those in which words were marked
        if ids := {post.task_id for post in sent if isinstance(post, Answer) and post.evidence}:
            with self.study.store.read() as connection:
                self._index.refresh(connection)
                about = {task: self._sent_about(connection, rater_id, task) for task in ids}
            design = self._design()
            texts = {task: self._values(claim, design) for task, claim in about.items() if claim}
        with self.study.store.write() as connection:
            self._index.refresh(connection)
            changes = Changes(connection, self._index)
            return [self._receipt(changes, rater_id, post, texts) for post in sent]

    def _receipt(
        self, changes: Changes, rater_id: str, sent: Sent, texts: Mapping[str, Mapping[str, str]]
    ) -> Receipt:
        claim = self._sent_about(changes.connection, rater_id, sent.task_id)
        rubric = self.study.rubrics.get(claim.rubric) if claim else None
        if rubric is None:
            return "unknown_task"
        table = attention_labels if has_known_answer(claim.unit_id) else labels
        shown = texts.get(sent.task_id, {})
        receipt = take(changes.connection, table, claim, sent, rubric, shown)
        is_new = receipt == "stored" and claim.state != "labelled"
        if isinstance(sent, Answer) and is_new:
            changes.mark(claim.task_id, state="labelled")
        return receipt

    def _sent_about(self, connection: sa.Connection, rater_id: str, task_id: str) -> Any:
        """Return the claim (or its row) of the rater's own task with this id, or None. A page left
        open over an upgrade still sends the old id.
        """
        of_task = claims.c.task_id == task_id, claims.c.rater_id == rater_id
        if row := connection.execute(sa.select(claims).where(*of_task)).one_or_none():
            return row
        of_rater = self._index.of_rater(rater_id).values()
        return next((c for c in of_rater if blinded(c.task_id, self._key) == task_id), None)

    # Looking back

    def arrived(self, rater_id: str, submit_ids: Iterable[str]) -> set[str]:
        """Return which of these answers and flags of the rater are stored."""
        asked = set(submit_ids)
        tables = (table.c for table in (labels, attention_labels, remarks))
        queries = (
            sa.select(table.submit_id).where(table.rater_id == rater_id, table.submit_id.in_(asked))
            for table in tables
        )
        return set(self.study.store.values(sa.union_all(*queries)))

    def began_before_keys(self, rater_id: str) -> bool:
        """Return True if the rater has task ids from before 0.3.0, so perhaps an old page."""
        with self.study.store.read() as connection:
            self._index.refresh(connection)
            given_out = self._index.of_rater(rater_id).values()
            return any(blinded(claim.task_id, self._key) != claim.task_id for claim in given_out)

    def earlier(self, rater_id: str, start: int = 0) -> EarlierPage:
        """The rater's answers, the last one first, from place `start` on. Where tasks are repeated,
        they reach back less far than a repeat's distance, so that no one finds the first answer
        while giving the second.
        """
        design = self._design()
        with self.study.store.read() as connection:
            numbered = self._numbered(connection, rater_id, design)
        listed = numbered[start : start + PAGE]
        of_page = [claim for _, claim in listed]
        with self.study.store.read() as connection:
            given = given_answers(connection, rater_id, of_page, self.study.rubrics)
            flagged = {flag.task_id for flag in standing_flags(connection, rater_id, of_page)}
        tasks = [self._task(claim, design, given.get(claim.task_id)) for claim in of_page]
        rows = (
            EarlierAnswer(number, task, excerpt(task.people), task.task_id in flagged)
            for (number, _), task in zip(listed, tasks, strict=True)
        )
        return EarlierPage(tuple(rows), start, len(numbered))

    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None:
        """Reopen one of the `earlier` answers (by default the last); None if it is not there."""
        design = self._design()
        with self.study.store.read() as connection:
            numbered = self._numbered(connection, rater_id, design)
            recent = [claim for _, claim in numbered]
            wanted = blinded(task_id, self._key)
            of_task = (claim for claim in recent if not task_id or claim.task_id == wanted)
            if (chosen := next(of_task, None)) is None:
                return None
            shown = [claim for claim in recent[::-1] if asked_together(claim, chosen, design.whole)]
            given = given_answers(connection, rater_id, shown, self.study.rubrics)
            flags = standing_flags(connection, rater_id, shown)
        tasks = tuple(self._task(claim, design, given.get(claim.task_id)) for claim in shown)
        older = recent[recent.index(shown[0]) + 1 :] or shown
        number = next(number for number, claim in numbered if claim is shown[0])
        done, total = self.progress(rater_id)
        before = older[0].task_id
        return Sheet(tasks, done, total, before, flags=flags, answered_as=number)

    def _numbered(
        self, connection: sa.Connection, rater_id: str, design: SessionDesign
    ) -> list[tuple[int, Claim]]:
        """The answered tasks that may be looked at again, the last one first, each after its number
        in the order of the rater's answers, from 1 on.
        """
        self._index.refresh(connection)
        done = list(enumerate(answered(self._index.of_rater(rater_id)), start=1))
        if design.settings.repeat_share:
            done = done[-design.settings.repeat_gap :]
        return [
            (number, replace(claim, task_id=blinded(claim.task_id, self._key)))
            for number, claim in reversed(done)
            if in_design(claim, design)
        ]

    def _design(self) -> SessionDesign:
        """Return the sessions' design, computed again when the study has grown meanwhile."""
        size = self.study.store.size()
        if self._cached is None or self._cached[0] != size:
            self._cached = (size, SessionDesign(self.study))
        return self._cached[1]

    def _task(self, claim: Claim, design: SessionDesign, given: Given | None = None) -> Task:
        rubric = self.study.rubrics[claim.rubric]
        values = self._values(claim, design)
        return Task(claim.task_id, rubric, claim.order, values, given)

    def _values(self, claim: Any, design: SessionDesign) -> dict[str, str]:
        """Return the texts that the task of a claim shows; empty if the study no longer has it."""
        rubric, key = self.study.rubrics.get(claim.rubric), (claim.unit_id, claim.rubric)
        if rubric is None:
            return {}
        if has_known_answer(claim.unit_id):
            for unit, _ in islice(design.questions, 1):  # else a check would take less time
                self.study.store.texts_of([parse_unit_id(unit)[:2]])
            return design.checks.values(key, claim.order) if key in design.checks else {}
        return self.study.values(rubric, claim.unit_id, claim.order)
