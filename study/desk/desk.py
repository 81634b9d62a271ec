"""The annotators' desk: it hands out tasks to raters, and stores their answers and flags before it
acknowledges them. Both are appended, never changed.

A question is a rubric on a unit (a response, or a pair with sides a and b, shown in the order "ab"
or "ba"). A task is a question as one rater is shown it; a sheet holds the tasks of one screen.
`study.desk.claims` decides which tasks come next and in which order. In this file: answers, flags,
progress, tasks and sheets; at the end `AnnotationDesk`, which puts them together.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any, Literal, Protocol
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from evenhand.errors import Refused
from evenhand.rubrics import PeopleText, Rubric
from evenhand.study.desk import claims
from evenhand.study.desk.claims import Claim, NextTasks, SessionDesign, asked_together, blinded
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.settings.study_toml import SessionSettings
from evenhand.study.store import schema
from evenhand.study.store.database import append_once
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import answer_details, flag_events, labels, remarks
from evenhand.study.store.store import ANSWERED, WITHDRAWN, events_of, rater_kind, release_reason
from evenhand.study.tables import ratings
from evenhand.study.workspace import Study

SKIP_REASONS = (
    "skipped_undecidable", "skipped_broken_text", "skipped_language", "skipped_distressing",
    "skipped_other",
)  # fmt: skip
"""Values of `unscored_reason` for a unit that a person skipped."""
FLAG_REASONS = ("harmful", "personal_data", "broken_text", "unclear_rubric", "other")
CONFIDENCE_LEVELS = (1, 2, 3)
DISPLAYS = ("text", "markdown", "opened")
"""Displays: as written, with Markdown rendered, or JSON with every part unfolded."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A label (`option_key`, in the order that was shown), or a reason for none (`skip_reason`)."""

    submit_id: str
    task_id: str
    option_key: str = ""
    skip_reason: str = ""
    seconds: float | None = None
    edit: bool = False
    confidence: int | None = None
    rationale: str = ""
    language: str = ""  # the page's language, or "" if it was not sent
    display: str = ""  # one of DISPLAYS; empty where it is not known
    evidence: tuple[ratings.Mark, ...] = ()  # words marked, in the order of sides that was shown


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A remark on a unit for the study's lead; it is not a label."""

    submit_id: str
    task_id: str
    reason: str
    text: str = ""


Submission = Answer | Flag  # what a rater may send

Receipt = Literal["stored", "duplicate", "already_labelled", "unknown_task", "needs_evidence"]
"""Result of sending an answer or a flag; an invalid one, which no page sends, is "unknown_task"."""


@dataclass(frozen=True)
class StoredAnswer:
    """The latest answer to a task, in the order of sides that was shown."""

    option_key: str = ""
    skip_reason: str = ""
    confidence: int | None = None
    rationale: str = ""
    created_at: str = ""
    evidence: tuple[ratings.Mark, ...] = ()


def store_submission(
    connection: sa.Connection,
    table: sa.Table,
    claim: Any,
    submission: Submission,
    rubric: Rubric,
    texts: Mapping[str, str],
) -> Receipt:
    """Append an answer to `table`, or a flag to the remarks; return its receipt. `claim` is the
    task's `Claim`, or its row of the table of claims. `texts` are those shown; {} without marks.
    """
    submit_id = submission.submit_id
    if isinstance(submission, Flag):
        if submission.reason not in FLAG_REASONS:
            return "unknown_task"
        flag = {"kind": "flag", "reason": submission.reason, "text": submission.text}
        event = _task_columns(claim, submit_id) | flag
        return "stored" if append_once(connection, remarks, "submit_id", event) else "duplicate"
    if refusal := _refusal(submission, rubric, texts):
        return refusal
    if claim.state == "labelled":
        same_task = (table.c[name] == getattr(claim, name) for name in ratings.LABEL_KEY)
        stored = sa.select(table.c.event_id).where(table.c.submit_id == submit_id, *same_task)
        if connection.execute(stored).first():
            return "duplicate"
        if not submission.edit:
            return "already_labelled"
    if not _add_answer(connection, table, claim, submission, rubric):
        return "unknown_task"  # the submit id of another task: a fault of the client
    return "stored"


def _refusal(
    answer: Answer, rubric: Rubric, texts: Mapping[str, str]
) -> Literal["unknown_task", "needs_evidence", ""]:
    """Return the receipt of an answer that cannot be stored; "" if it can be. A valid answer is one
    of the rubric's options or a reason to skip, not both, with marks within the texts.
    """
    option, reason = answer.option_key, answer.skip_reason
    is_known = rubric.kind.takes(option) if option else reason in SKIP_REASONS
    marks_fit = bool(rubric.evidence) and ratings.are_within(answer.evidence, texts)
    if not is_known or (option and reason) or (answer.evidence and not marks_fit):
        return "unknown_task"
    if rubric.evidence == "required" and option and not answer.evidence:
        return "needs_evidence"
    return ""


def _add_answer(
    connection: sa.Connection, table: sa.Table, claim: Any, answer: Answer, rubric: Rubric
) -> bool:
    """Append an answer with its remark and marks; return False if its submit id exists."""
    # All tables of answers: a refusal must not reveal whether a task is an attention check.
    ids = (log.c.submit_id for log in (labels, schema.attention_labels, schema.practice_labels))
    same_id = (sa.select(log).where(log == answer.submit_id) for log in ids)
    if connection.execute(sa.union_all(*same_id)).first():
        return False
    # A unit in view while its rubric changed was answered under the former text.
    is_current = bool(answer.language) and claim.rubric_hash == rubric.hash
    task_columns = _task_columns(claim, answer.submit_id)
    event = task_columns | {
        "rater_kind": "human",
        "label": _swap_key(rubric, claim.order, answer.option_key),
        "unscored_reason": answer.skip_reason,
        "seconds": answer.seconds,
        "page_language": answer.language,
        "shown_hash": rubric.in_language(answer.language).hash if is_current else "",
    }
    if not append_once(connection, table, "submit_id", event):
        return False
    if answer.confidence is not None or answer.rationale:
        remark = {"kind": "answer", "confidence": answer.confidence, "text": answer.rationale}
        append_once(connection, remarks, "submit_id", task_columns | remark)
    if answer.display or answer.evidence:
        marks = ratings.written_marks(_swap_marks(claim.order, answer.evidence))
        details = {"submit_id": answer.submit_id, "display": answer.display, "evidence": marks}
        append_once(connection, answer_details, "submit_id", details)
    return True


def stored_answers(
    connection: sa.Connection, rater_id: str, tasks: Sequence[Claim], study: Study
) -> dict[str, StoredAnswer]:
    """Return the latest answers that count to these tasks of one rater, by task id."""
    units = {claim.unit_id for claim in tasks}
    hashes = {""}.union(*study.accepted_hashes().values())
    latest: dict[claims.TaskKey, Any] = {}
    for table in (labels, schema.attention_labels):
        for row in connection.execute(
            sa.select(table, remarks.c.confidence, remarks.c.text, answer_details.c.evidence)
            .join(remarks, remarks.c.submit_id == table.c.submit_id, isouter=True)
            .join(answer_details, answer_details.c.submit_id == table.c.submit_id, isouter=True)
            .where(table.c.rater_id == rater_id, table.c.unit_id.in_(units))
            .where(table.c.rubric_hash.in_(hashes))  # others may be under a text taken back since
            .order_by(table.c.event_id)
        ):
            latest[row.unit_id, row.rubric, row.draw] = row
    return {
        claim.task_id: StoredAnswer(
            option_key=_swap_key(study.rubrics[claim.rubric], claim.order, answer.label),
            skip_reason=answer.unscored_reason,
            confidence=answer.confidence,
            rationale=answer.text or "",
            created_at=answer.created_at,
            evidence=_swap_marks(claim.order, ratings.read_marks(answer.evidence or []) or ()),
        )
        for claim in tasks
        if (answer := latest.get((*claim.key, claim.draw))) is not None
    }


def _swap_key(rubric: Rubric, order: str, key: str) -> str:
    """Convert an option's key from the order shown to the pair's own, or back."""
    return rubric.swaps[key] if key and order == "ba" else key


def _swap_marks(order: str, marks: tuple[ratings.Mark, ...]) -> tuple[ratings.Mark, ...]:
    """Convert marks from the order shown to the pair's own, or back."""
    return ratings.with_sides_swapped(marks) if order == "ba" else marks


def _task_columns(claim: Any, submit_id: str) -> dict[str, Any]:
    """Return the columns that an event about a task has, with its time."""
    names = ("unit_id", "rubric", "rater_id", "order", "draw", "rubric_hash")
    cells = {name: getattr(claim, name) for name in names}
    return {"submit_id": submit_id, "created_at": utc_now()} | cells


# ---- a rater's flags ----------------------------------------------------------------------------
_MAX_FLAGS = 20  # number of the latest flags on one unit that are shown


@dataclass(frozen=True)
class RaterFlag:
    """A flag as the rater who sent it sees it."""

    task_id: str
    reason: str
    text: str


def rater_flags(
    connection: sa.Connection, rater_id: str, task_claims: Sequence[Claim]
) -> tuple[RaterFlag, ...]:
    """Return a rater's flags on these tasks, in the order of time, without those that were
    withdrawn, as was possible before 0.3.0. A hidden repeat has none of the flags sent when the
    task was first shown: they would reveal the repeat.
    """
    task_ids = {(*claim.key, claim.draw): claim.task_id for claim in task_claims}
    units = {claim.unit_id for claim in task_claims}
    is_withdrawn = sa.exists().where(
        flag_events.c.flag_id == remarks.c.event_id, flag_events.c.kind == WITHDRAWN
    )
    query = sa.select(remarks).where(remarks.c.rater_id == rater_id, remarks.c.unit_id.in_(units))
    query = query.where(remarks.c.kind == "flag", ~is_withdrawn).order_by(remarks.c.event_id)
    flags = [
        RaterFlag(task_id, row.reason, row.text)
        for row in connection.execute(query)
        if (task_id := task_ids.get((row.unit_id, row.rubric, row.draw)))
    ]
    # The limit is for the page of one task; the list of answers asks which of its tasks have any.
    return tuple(flags[-_MAX_FLAGS:]) if len(task_ids) == 1 else tuple(flags)


@dataclass(frozen=True)
class FlagAnswer:
    """A lead's answer to a rater about a flag of theirs."""

    reason: str
    text: str
    answer: str


# ---- a rater's progress: the minutes left at their pace, and the limits of a day ----------------
LEAST_ANSWERS = 5  # fewest answers from which a pace is estimated
_RECENT_ANSWERS = 30  # the pace is that of the last answers, as people grow quicker, and tire


@dataclass(frozen=True, slots=True)
class TimedAnswer:
    """Time (UTC) of an answer, and the seconds for which its unit was in view."""

    answered_at: str
    seconds: float


class WorkLog:
    """The times of every person's answers in their order, in step with the store."""

    def __init__(self) -> None:
        self._by_rater: dict[str, list[TimedAnswer]] = {}
        self._last_events = dict.fromkeys((labels, schema.attention_labels), 0)

    def refresh(self, connection: sa.Connection) -> None:
        """Read new answers. Checks are included, as their absence would reveal which they are."""
        new_rows: list[tuple[str, str, float]] = []
        for table, last_event in self._last_events.items():
            columns = (table.c[name] for name in ("event_id", "rater_id", "created_at", "seconds"))
            query = sa.select(*columns).where(table.c.event_id > last_event)
            query = query.where(table.c.rater_kind == "human").order_by(table.c.event_id)
            for event_id, rater, answered_at, seconds in connection.execute(query):
                self._last_events[table] = event_id
                new_rows.append((ratings.stored_instant(answered_at), rater, seconds or 0.0))
        for answered_at, rater, seconds in sorted(new_rows, key=lambda row: row[0]):
            self._by_rater.setdefault(rater, []).append(TimedAnswer(answered_at, seconds))

    def of_rater(self, rater_id: str) -> Sequence[TimedAnswer]:
        """Return a rater's answers in the order of time."""
        return self._by_rater.get(rater_id, ())


def minutes_left(answers: Sequence[TimedAnswer], left: int) -> int | None:
    """Estimate the minutes that `left` more answers will take; None where too few were timed. The
    median of the recent answers is used, which a break or a long text does not move.

    >>> minutes_left([TimedAnswer("", 20.0)] * 9 + [TimedAnswer("", 3600.0)], left=100)
    35
    """
    seconds = [answer.seconds for answer in answers[-_RECENT_ANSWERS:] if answer.seconds > 0]
    return None if len(seconds) < LEAST_ANSWERS else rounded_minutes(median(seconds) * left / 60)


def rounded_minutes(minutes: float) -> int:
    """Round minutes: to 1 below 10, to 5 below an hour, to 10 below two hours, else to 60.

    >>> [rounded_minutes(minutes) for minutes in (0.2, 7.4, 34.2, 96, 200)]
    [1, 7, 35, 100, 180]
    """
    step = next((step for step, limit in ((1, 10), (5, 60), (10, 120)) if minutes < limit), 60)
    return max(1, step * int(minutes / step + 0.5))


MIDNIGHT_GRACE = timedelta(minutes=1)  # a page that got no task may ask why after midnight


def is_day_over(settings: SessionSettings, answers: Sequence[TimedAnswer], now: datetime) -> bool:
    """Return True at a day's limit of answers or minutes (`idle_minutes` at most per answer)."""
    if not (settings.answers_per_day or settings.minutes_per_day):
        return False  # 0: no limit
    day_start = start_of_day(settings, now).astimezone(UTC).isoformat(timespec="milliseconds")
    today = [answer for answer in answers if answer.answered_at >= day_start]
    minutes = sum(min(answer.seconds / 60, settings.idle_minutes) for answer in today)
    return (0 < settings.answers_per_day <= len(today)) or (0 < settings.minutes_per_day <= minutes)


def start_of_day(settings: SessionSettings, now: datetime, later: int = 0) -> datetime:
    """Return the start of the day of `now`, or `later` days after, in the study's time zone."""
    zone = ZoneInfo(settings.time_zone)
    day = now.astimezone(zone).date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day, tzinfo=zone)


# ---- tasks, sheets, and the list of a rater's earlier answers -----------------------------------
@dataclass(frozen=True)
class Task:
    """A question, ready to be shown: `values` are the rubric's variables in the order `order`."""

    task_id: str
    rubric: Rubric
    order: str
    values: Mapping[str, str]
    stored_answer: StoredAnswer | None = None  # the latest answer, if the task is reopened

    @property
    def people(self) -> PeopleText:
        """The rubric's own words and the unit, as annotators read them."""
        return self.rubric.for_people(self.values)

    def people_in(self, language: str) -> PeopleText:
        """Return the task's text for people in a language, if the rubric is translated into it."""
        return self.rubric.in_language(language).for_people(self.values)


@dataclass(frozen=True)
class Sheet:
    """The tasks of one screen, and the rater's progress: `done` of `total` answers."""

    tasks: tuple[Task, ...]
    done: int
    total: int
    previous_task_id: str = ""  # of the task answered before these; "" means the last of all
    minutes: int | None = None  # estimated minutes left; None while the pace is not known
    flags: tuple[RaterFlag, ...] = ()  # the rater's flags on these tasks
    first_number: int = 0  # of the first task among the rater's answers; 0 if not answered

    @property
    def number(self) -> int:
        """The number that the first of these tasks has, or will have, among the answers."""
        return self.first_number or self.done + 1


PAGE = 30  # answers on a page of the list of earlier answers
_TEXT_CHARACTERS = 160  # the most of a text in an excerpt


@dataclass(frozen=True)
class EarlierAnswer:
    """A row of the list of earlier answers: the task with its answer, and the answer's number."""

    number: int
    task: Task
    excerpt: str
    flagged: bool


@dataclass(frozen=True)
class EarlierPage:
    """A page of a rater's `total` answers, from position `start` on, the latest first."""

    rows: tuple[EarlierAnswer, ...] = ()
    start: int = 0
    total: int = 0


def excerpt(people: PeopleText) -> str:
    """Return the beginnings of an item's texts as they are read, a line for each side."""
    texts_by_side: dict[str, list[str]] = {}
    for block in people.blocks:
        text = " ".join(block.text[: 2 * _TEXT_CHARACTERS].split())  # 2: spaces may be removed
        text = text if len(text) <= _TEXT_CHARACTERS else f"{text[:_TEXT_CHARACTERS]}…"
        texts_by_side.setdefault(block.side, []).append(text)
    line_by_side = {side: " · ".join(texts) for side, texts in texts_by_side.items()}
    lines = (f"{side.upper()}: {line}" if side else line for side, line in line_by_side.items())
    return "\n".join(line[: 2 * _TEXT_CHARACTERS] for line in lines)


TextsByTask = Mapping[str, Mapping[str, str]]  # by task id, then by the rubric's variable


class Desk(Protocol):
    """Interface between the page and a desk: the annotators' one, or the practice's, which has no
    sheet ahead and no earlier answers (the defaults). `AnnotationDesk` says what the methods do.
    """

    study: Study

    def next_sheet(self, rater_id: str) -> Sheet | None: ...
    def progress(self, rater_id: str) -> claims.Progress: ...
    def submit_all(self, rater_id: str, submissions: Sequence[Submission]) -> list[Receipt]: ...

    def sheet_ahead(self, rater_id: str, sheet: Sheet) -> Sheet | None:
        return None

    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None:
        return None

    def earlier(self, rater_id: str, start: int = 0) -> EarlierPage:
        return EarlierPage()

    def has_early_task_ids(self, rater_id: str) -> bool:
        return False

    def answers_to_flags(self, rater_id: str) -> tuple[FlagAnswer, ...]:
        return ()


class AnnotationDesk(Desk):
    """Hands out tasks and takes in answers. Safe under many threads and processes at once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        accepted = study.accepted_hashes().values()
        self._key = study.blinding_key  # read now: the first call may write, which a read forbids
        self._index = claims.ClaimIndex({digest for hashes in accepted for digest in hashes})
        self._oversight = claims.Oversight()
        self._work_log = WorkLog()
        self._design_of_size: tuple[tuple[int, int], SessionDesign] | None = None
        """The store's `size` for which the sessions' design was computed, and the design."""

    def register(self, rater_id: str) -> None:
        """Check a rater's code. Raises InputError where it cannot be used."""
        if not ratings.RATER_CODE.fullmatch(rater_id):
            raise Refused("bad_code")
        with self.study.store.read() as connection:
            kind = rater_kind(connection, rater_id)
        if kind not in ("", "human") or rater_id in ratings.RESERVED_RATERS:
            raise Refused("code_of_another_kind")

    # The next tasks

    def sheet_ahead(self, rater_id: str, sheet: Sheet) -> Sheet | None:
        """Return the sheet after this one, without `minutes`, reserved for the rater, so that their
        page can have it before they ask for it; None where nothing is left, or the day may be over.
        """
        return self.next_sheet(rater_id, sheet)

    def next_sheet(self, rater_id: str, current: Sheet | None = None) -> Sheet | None:
        """Return the rater's open sheet, or else the next one; None when nothing is left. A
        `current` sheet counts as answered.
        """
        design = self._design()
        assumed = {task.task_id for task in current.tasks} if current else set()
        with self.study.store.write() as connection:
            tasks = self._next_tasks(connection, rater_id, design, assumed)
            if self._end_reason(connection, tasks, datetime.now(UTC), n_assumed=len(assumed)):
                return None
            done, total = (current.done, current.total) if current else tasks.progress()
            if not (claimed := tasks.claim_next(connection)):
                return None
            flags = rater_flags(connection, rater_id, claimed)
        sheet_tasks = tuple(self._task(claim, design, None) for claim in claimed)
        minutes = None if current else minutes_left(self._work_log.of_rater(rater_id), total - done)
        return Sheet(sheet_tasks, done + len(assumed), total, minutes=minutes, flags=flags)

    def answers_to_flags(self, rater_id: str) -> tuple[FlagAnswer, ...]:
        """Return the lead's answers to this rater's flags, the first one first."""
        query = (
            sa.select(remarks.c.reason, remarks.c.text, flag_events.c.text.label("answer"))
            .join(flag_events, flag_events.c.flag_id == remarks.c.event_id)
            .where(remarks.c.rater_id == rater_id, flag_events.c.kind == ANSWERED)
            .order_by(flag_events.c.event_id)
        )
        return tuple(FlagAnswer(*row) for row in self.study.store.rows(query))

    def progress(self, rater_id: str) -> claims.Progress:
        """Return this rater's progress."""
        design = self._design()
        with self.study.store.read() as connection:
            return self._next_tasks(connection, rater_id, design).progress()

    def has_labelled(self, rater_id: str) -> bool:
        """Return True once the rater has given a label or a skip, under whatever text."""
        with self.study.store.read() as connection:
            return rater_kind(connection, rater_id) == "human"

    def end_reason(self, rater_id: str) -> str:
        """Return why this rater gets no task though some may be left: the lead has "paused" the
        study or "excluded" them, or the limit of the "day" is reached; "" if they get one.
        """
        design = self._design()
        with self.study.store.read() as connection:
            tasks = self._next_tasks(connection, rater_id, design)
            return self._end_reason(connection, tasks, datetime.now(UTC) - MIDNIGHT_GRACE)

    def _end_reason(
        self, connection: sa.Connection, tasks: NextTasks, now: datetime, n_assumed: int = 0
    ) -> str:
        """Return the reason as `end_reason` does, if `n_assumed` open tasks count as answered."""
        self._work_log.refresh(connection)
        if tasks.rater_id in self._oversight.exclusions:
            return "excluded"
        reason = "paused" if self._oversight.paused else ""
        if tasks.valid_claims:  # open tasks may be answered past a day's limit
            return reason
        session = self.study.config.session
        # An assumed answer counts as two of the longest time, as the rater may also change it.
        longest = TimedAnswer(now.isoformat(timespec="milliseconds"), 60 * session.idle_minutes)
        answers = [*self._work_log.of_rater(tasks.rater_id), *[longest] * (2 * n_assumed)]
        reason = reason or ("day" if is_day_over(session, answers, now) else "")
        done, total = tasks.progress() if reason else (0, 0)
        return reason if done < total else ""

    def _next_tasks(
        self,
        connection: sa.Connection,
        rater_id: str,
        design: SessionDesign,
        assumed: Set[str] = frozenset(),
    ) -> NextTasks:
        """Return the rater's tasks, after reading what changed in the store."""
        self._index.refresh(connection)
        self._oversight = self._oversight.updated(connection)
        return NextTasks(rater_id, design, self._index, self._oversight.exclusions.keys(), assumed)

    # Answers and flags

    def submit_all(self, rater_id: str, submissions: Sequence[Submission]) -> list[Receipt]:
        """Store all answers and flags or none; they are on disk on return. The same `submit_id`
        again changes nothing. A second answer to an answered task is refused unless it is sent as
        an edit: then both stay in the store and the later one counts. An answer to a task whose
        lease is over is stored: work that was done is never lost.
        """
        texts = self._marked_texts(rater_id, submissions)
        with self.study.store.write() as connection:
            self._index.refresh(connection)
            writer = claims.ClaimWriter(connection, self._index)
            return [self._receipt(writer, rater_id, sent, texts) for sent in submissions]

    def _marked_texts(self, rater_id: str, submissions: Sequence[Submission]) -> TextsByTask:
        """Return the texts of each task in which words were marked."""
        answers = (submission for submission in submissions if isinstance(submission, Answer))
        if not (task_ids := {answer.task_id for answer in answers if answer.evidence}):
            return {}
        with self.study.store.read() as connection:
            self._index.refresh(connection)
            claims_by_task = {task: self._claim_of(connection, rater_id, task) for task in task_ids}
        design, by_task = self._design(), claims_by_task.items()
        return {task: self._values(claim, design) for task, claim in by_task if claim}

    def _receipt(
        self, writer: claims.ClaimWriter, rater_id: str, submission: Submission, texts: TextsByTask
    ) -> Receipt:
        """Store one answer or flag, mark its claim as labelled, and return its receipt."""
        claim = self._claim_of(writer.connection, rater_id, submission.task_id)
        rubric = self.study.rubrics.get(claim.rubric) if claim else None
        if rubric is None:
            return "unknown_task"
        table = schema.attention_labels if has_known_answer(claim.unit_id) else labels
        task_texts = texts.get(submission.task_id, {})
        receipt = store_submission(writer.connection, table, claim, submission, rubric, task_texts)
        if not isinstance(submission, Answer) or receipt != "stored" or claim.state == "labelled":
            return receipt
        if release_reason(events_of(writer.connection, rater_id)) != "rejected":
            writer.mark(claim.task_id, state="labelled")
        return receipt

    def _claim_of(self, connection: sa.Connection, rater_id: str, task_id: str) -> Any:
        """Return the row or claim of the rater's task; None if there is none."""
        table = schema.claims
        query = sa.select(table).where(table.c.task_id == task_id, table.c.rater_id == rater_id)
        if row := connection.execute(query).one_or_none():
            return row
        rater_claims = self._index.of_rater(rater_id).values()  # ids of before 0.3.0: see `blinded`
        matches = (claim for claim in rater_claims if blinded(claim.task_id, self._key) == task_id)
        return next(matches, None)

    # Earlier answers

    def stored_submissions(self, rater_id: str, submit_ids: Iterable[str]) -> set[str]:
        """Return the ids of these answers and flags of the rater that are stored."""
        ids = set(submit_ids)
        queries = (
            sa.select(log.c.submit_id).where(log.c.rater_id == rater_id, log.c.submit_id.in_(ids))
            for log in (labels, schema.attention_labels, remarks)
        )
        return set(self.study.store.values(sa.union_all(*queries)))

    def has_early_task_ids(self, rater_id: str) -> bool:
        """Return True if the rater has task ids from before 0.3.0, so perhaps an old page open."""
        with self.study.store.read() as connection:
            self._index.refresh(connection)
            rater_claims = self._index.of_rater(rater_id).values()
            return any(blinded(claim.task_id, self._key) != claim.task_id for claim in rater_claims)

    def earlier(self, rater_id: str, start: int = 0) -> EarlierPage:
        """Return a page of the rater's answers, the latest first, from position `start` on. Where
        tasks are repeated, answers further back than a repeat's distance are left out, so that
        nobody finds the first answer while giving the second.
        """
        design = self._design()
        with self.study.store.read() as connection:
            numbered = self._numbered_answers(connection, rater_id, design)
            listed = numbered[start : start + PAGE]
            claims_listed = [claim for _, claim in listed]
            answers = stored_answers(connection, rater_id, claims_listed, self.study)
            flagged = {flag.task_id for flag in rater_flags(connection, rater_id, claims_listed)}
        tasks = [self._task(claim, design, answers.get(claim.task_id)) for claim in claims_listed]
        rows = (
            EarlierAnswer(number, task, excerpt(task.people), task.task_id in flagged)
            for (number, _), task in zip(listed, tasks, strict=True)
        )
        return EarlierPage(tuple(rows), start, len(numbered))

    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None:
        """Return the sheet of one of the `earlier` answers, by default the last, or None."""
        design = self._design()
        with self.study.store.read() as connection:
            numbered = self._numbered_answers(connection, rater_id, design)
            latest_first = [claim for _, claim in numbered]
            page_id = blinded(task_id, self._key)  # changes ids from before 0.3.0 alone
            matches = (claim for claim in latest_first if not task_id or claim.task_id == page_id)
            if (chosen := next(matches, None)) is None:
                return None
            one_screen, in_order = design.one_screen_per_unit, reversed(latest_first)
            reopened = [claim for claim in in_order if asked_together(claim, chosen, one_screen)]
            answers = stored_answers(connection, rater_id, reopened, self.study)
            flags = rater_flags(connection, rater_id, reopened)
        tasks = tuple(self._task(claim, design, answers.get(claim.task_id)) for claim in reopened)
        position = latest_first.index(reopened[0])
        before = latest_first[position + 1 :] or reopened  # nothing is before the first answer
        done, total = self.progress(rater_id)
        number = numbered[position][0]
        return Sheet(tasks, done, total, before[0].task_id, flags=flags, first_number=number)

    def _numbered_answers(
        self, connection: sa.Connection, rater_id: str, design: SessionDesign
    ) -> list[tuple[int, Claim]]:
        """Return (number from 1, task) of the answers that may be reopened, latest first."""
        self._index.refresh(connection)
        numbered = list(enumerate(claims.answered(self._index.of_rater(rater_id)), start=1))
        if design.settings.repeat_share:
            numbered = numbered[-design.settings.repeat_gap :]
        return [
            (number, replace(claim, task_id=blinded(claim.task_id, self._key)))
            for number, claim in reversed(numbered)
            if claims.in_design(claim, design)
        ]

    def _design(self) -> SessionDesign:
        """Return the sessions' design; it is computed again when there is more to label."""
        size = self.study.store.size()
        if self._design_of_size is None or self._design_of_size[0] != size:
            self._design_of_size = (size, SessionDesign(self.study))
        return self._design_of_size[1]

    def _task(self, claim: Claim, design: SessionDesign, answer: StoredAnswer | None) -> Task:
        """Return the task of a claim, ready to be shown, with the answer to it if there is one."""
        rubric = self.study.rubrics[claim.rubric]
        return Task(claim.task_id, rubric, claim.order, self._values(claim, design), answer)

    def _values(self, claim: Any, design: SessionDesign) -> dict[str, str]:
        """Return the texts that the task of a claim shows; empty if the study no longer has it."""
        rubric, key = self.study.rubrics.get(claim.rubric), (claim.unit_id, claim.rubric)
        if rubric is None:
            return {}
        if has_known_answer(claim.unit_id):
            # Texts of some unit are read, or else a check would be recognised by its quick reply.
            if first_question := next(iter(design.questions), None):
                self.study.store.texts_of([parse_unit_id(first_question[0])[:2]])  # pair, subject
            return design.checks.values(key, claim.order) if key in design.checks.questions else {}
        return self.study.values(rubric, claim.unit_id, claim.order)
