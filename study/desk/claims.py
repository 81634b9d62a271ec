"""The work that raters are given: which questions in which order, and who has claimed which.

- A *question* is a rubric on a unit; its *key* is (unit id, rubric name). The unit is a pair of
  responses (side "" in its id) or one of them (side a or b). A *screen* shows one or several.
- A *task* is a question for one rater. Its *draw* is 0, and above in a hidden repeat of it.
- A *claim* records that a task was given out. Without an answer it counts for a limited time, its
  *lease*. By a *first* claim, one of draw 0 on a unit of the sample, a rater *holds* a question.

In this order: the lead's decisions; raters who left, and quotas; units with a known answer, such as
attention checks; `SessionDesign`, the questions and their order; `ClaimIndex`, all claims in
memory, in step with the store; and `NextTasks`, a rater's next tasks.

Every change of a claim carries the next version number. Writers take turns, so the numbers rise in
the order of the commits, and a refresh reads only what changed since the last one.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, NamedTuple

import sqlalchemy as sa
from pydantic import BeforeValidator, Field

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.study.creation import rewording_of
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID
from evenhand.study.prompts.sampling import digest, seeded_number
from evenhand.study.prompts.units import (
    Key,
    Question,
    Screen,
    has_known_answer,
    parse_unit_id,
    presented_values,
    rubrics_by_screen,
)
from evenhand.study.settings.sections import Section, parsed
from evenhand.study.store import schema
from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.decisions import note_act
from evenhand.study.store.store import Event, Store, rater_kind, release_reason
from evenhand.study.workspace import Study

# Decisions of the study's lead while people label: to pause, to exclude a rater, to readmit one.
# They are events, each with its author and reason; the latest counts. An exclusion deletes nothing:
# the labels stay, their places go to other raters, and the analysis shows both.

DECISION_COLUMNS = ("kind", "rater_id", "reason", "done_by", "created_at")
_DECISIONS = ("pause", "resume", "exclude", "readmit")  # kinds of `lead_events` that are decisions
STOPPED_BY = "quality rule"  # author of an exclusion by a rule of the study, not by a person


@dataclass(frozen=True)
class Exclusion:
    """The reason why a rater's labels stay out of the main figures, its author, and its date."""

    reason: str
    done_by: str
    created_at: str


@dataclass(frozen=True)
class Oversight:
    """The lead's decisions that apply now. `last_event` is the id of the last event included."""

    paused: bool = False
    exclusions: Mapping[str, Exclusion] = field(default_factory=dict)
    readmitted: frozenset[str] = frozenset()  # raters excluded before, but no longer
    last_event: int = 0

    def updated(self, connection: sa.Connection) -> Oversight:
        """Return the decisions that apply once those after `last_event` are included."""
        paused, last_event = self.paused, self.last_event
        exclusions, readmitted = dict(self.exclusions), set(self.readmitted)
        event_id = schema.lead_events.c.event_id
        new_events = sa.select(schema.lead_events).where(event_id > self.last_event)
        for event in connection.execute(new_events.order_by(event_id)):
            last_event = event.event_id
            if event.kind in ("pause", "resume"):
                paused = event.kind == "pause"
            elif event.kind == "exclude":
                exclusion = Exclusion(event.reason, event.done_by, event.created_at)
                exclusions[event.rater_id] = exclusion
                readmitted.discard(event.rater_id)
            elif event.kind == "readmit":
                exclusions.pop(event.rater_id, None)
                readmitted.add(event.rater_id)
        return Oversight(paused, exclusions, frozenset(readmitted), last_event)


def oversight(store: Store) -> Oversight:
    """Read the lead's decisions that apply now."""
    with store.read() as connection:
        return Oversight().updated(connection)


def pause(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out no further task until `resume`; answers sent meanwhile are still taken."""
    if not oversight(store).paused:
        note_act(store, "pause", "", reason.strip(), done_by)


def resume(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out tasks again."""
    if oversight(store).paused:
        note_act(store, "resume", "", reason.strip(), done_by)


def exclude(store: Store, rater_id: str, reason: str, done_by: str = "") -> None:
    """Exclude a person's labels from the main figures; they get no further task. Raises InputError
    where the reason is empty, or no rater of this name has begun to label.
    """
    if not (reason := reason.strip()):
        raise InputError("an exclusion needs a reason: it stands in the report")
    with store.read() as connection:
        claimed = sa.select(schema.claims.c.task_id).where(schema.claims.c.rater_id == rater_id)
        kind = rater_kind(connection, rater_id)
        has_begun = kind == "human" or (kind == "" and connection.execute(claimed).first())
    if not has_begun:
        raise InputError(f"no annotator {rater_id!r} has labelled in this study")
    current = oversight(store).exclusions.get(rater_id)
    if current is None or current.reason != reason:
        note_act(store, "exclude", rater_id, reason, done_by)


def readmit(store: Store, rater_id: str, reason: str, done_by: str = "") -> None:
    """Take an exclusion back. Raises InputError where there is none, or no reason is given."""
    if not (reason := reason.strip()):
        raise InputError("say why the annotator is readmitted")
    if rater_id not in oversight(store).exclusions:
        raise InputError(f"rater {rater_id!r} is not excluded")
    note_act(store, "readmit", rater_id, reason, done_by)


def decisions_table(store: Store) -> pd.DataFrame:
    """Return every decision of the lead in the order in which it was taken."""
    columns = schema.lead_events.c
    query = sa.select(*(columns[name] for name in DECISION_COLUMNS))
    return store.table(query.where(columns.kind.in_(_DECISIONS)).order_by(columns.event_id))


# Raters who left before they had finished, and quotas of raters by their answer to one background
# question, `StudyConfig.side`. (Everywhere else in this file, sides are the responses of a pair.)

_ENDING_EVENTS = ("released", "readmitted", "consent", "comprehension", "screened_out")


def ends_of(connection: sa.Connection) -> dict[str, str]:
    """Return the reason for each rater who left or was sent away before they had finished:
    "stopped" (excluded), "no_consent", "screened_out", or why their places were released.
    """
    logs: dict[str, list[Event]] = defaultdict(list)
    query = sa.select(schema.session_events).where(schema.session_events.c.kind.in_(_ENDING_EVENTS))
    for row in connection.execute(query.order_by(schema.session_events.c.event_id)):
        logs[row.rater_id].append(Event(row.kind, row.detail, row.created_at))
    columns = schema.claims.c.rater_id, sa.func.max(schema.claims.c.claimed_at)
    last_claims = dict(connection.execute(sa.select(*columns).group_by(columns[0])).all())
    ends = dict.fromkeys(Oversight().updated(connection).exclusions, "stopped")  # see `free_again`
    for rater, log in logs.items():
        if reason := release_reason(log) or end_in(log, last_claims.get(rater, "")):
            ends[rater] = reason
    return ends


def end_in(log: Sequence[Event], last_claim: str = "") -> str:
    """Return "no_consent" or "screened_out" if a rater's session ended so; "" if not, or if they
    came past it after a change: they agreed, were right, or got a task (the last at `last_claim`).
    """
    times = {"no_consent": "", "screened_out": ""}  # of each end; "" if there is none
    for event in log:
        if event.kind == "consent":
            times["no_consent"] = "" if event.detail["agreed"] else event.created_at
        elif event.kind == "screened_out":
            times["screened_out"] = event.created_at
        elif event.kind == "comprehension" and all(event.detail["right"]):
            times["screened_out"] = ""
    return next((end for end, time in times.items() if time > last_claim), "")


def quota_answers(study: Study, connection: sa.Connection, rater_id: str = "") -> dict[str, str]:
    """Return the answers to the question with quotas, by rater: of all who have one, or of one."""
    question, columns = study.config.side, schema.background_answers.c
    query = sa.select(columns.rater_id, columns.answer).order_by(columns.event_id)
    query = query.where(columns.question == question.key if question else sa.false())
    query = query.where(columns.rater_id == rater_id) if rater_id else query
    return {row.rater_id: row.answer for row in connection.execute(query)}


def quota_places(study: Study, connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Return (number of raters, quota) of each answer; raters who left unfinished do not count."""
    if (question := study.config.side) is None:
        return {}
    answers, ends = quota_answers(study, connection), ends_of(connection)
    n_raters = Counter(answer for rater, answer in answers.items() if rater not in ends)
    quotas = zip(question.options, question.quotas, strict=True)
    return {answer: (n_raters[answer], quota) for answer, quota in quotas}


def has_room(study: Study, connection: sa.Connection, answer: str) -> bool:
    """Return False if an answer has as many raters as its quota. One without a quota has room."""
    n_raters, quota = quota_places(study, connection).get(answer, (0, float("inf")))
    return n_raters < quota


def has_place(study: Study, connection: sa.Connection, rater_id: str = "") -> bool:
    """Return True if there is a place for a newcomer (""), or for this rater to go on. A rater who
    has not left still has one; one who has needs it again, in their quota and as a participant.
    """
    ends = ends_of(connection)  # why raters left; for some reasons their places are free again
    if rater_id and rater_id not in ends:
        return True
    answers = quota_answers(study, connection, rater_id).values() if rater_id else ()
    if not all(has_room(study, connection, answer) for answer in answers):
        return False
    settings, participant = study.config.prolific, schema.participant_entries.c.rater_id
    participants = set(connection.execute(sa.select(participant).distinct()).scalars())
    came_another_way = bool(rater_id) and rater_id not in participants
    if settings is None or not settings.places or came_another_way:
        return True
    holders = (rater for rater in participants if ends.get(rater) not in settings.free_again)
    return len({*holders} - {rater_id}) < settings.places


# Units with a known answer, from a file of the study: for practice, and for attention checks. A
# `[[unit]]` has a `name`, `values` (the rubric's variables), `expected` (the accepted options by
# rubric) and perhaps an `explanation`. Its id has no "|", which the id of any unit of a sample has.

_as_list = BeforeValidator(lambda keys: [keys] if isinstance(keys, str) else keys)
"""One key may be written without the brackets of a list."""


class KnownUnit(Section):
    """A unit with a known answer: an entry of the file."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")
    values: dict[str, str]
    expected: dict[str, Annotated[tuple[str, ...], _as_list]] = Field(min_length=1)
    explanation: str = ""


class _UnitsFile(Section):
    """A file of units with a known answer."""

    unit: tuple[KnownUnit, ...] = Field(min_length=1)


class KnownUnits:
    """The units of one file, and the screens that ask about them; empty where `file` is "". Raises
    InputError where the file cannot be read or does not fit the rubrics that people label.
    """

    def __init__(self, study: Study, file: str, kind: str) -> None:
        self.study = study
        self.one_screen_per_unit = study.config.annotation.screen == "all"
        self._rubrics = study.labelled_rubrics()
        units = _read_units(study.folder, file) if file else ()
        self.units = {f"{kind}:{unit.name}": unit for unit in units}  # such as "check:read-on"
        self.screens: list[Screen] = []
        for unit_id, unit in self.units.items():
            self.screens += self._screens_of(unit_id, unit, file)
        self.questions = {question.key: question for screen in self.screens for question in screen}

    def values(self, key: Key, order: str) -> dict[str, str]:
        """Return the values of a rubric's variables for a unit, with its sides in this `order`."""
        unit_id, _ = key
        rubric, values = self.questions[key].rubric, self.units[unit_id].values
        if rubric.has_sides:
            texts = {side: values.get(f"response_{side}", "") for side in "ab"}
            unit = ("", "", "")  # of no pair or subject; the third means both sides
            return presented_values(rubric, unit, order, cells=values, texts=texts)
        return {name: values[name] for name in rubric.variables}

    def accepted(self, key: Key) -> tuple[str, ...]:
        """Return the accepted answers, if sides are shown with a before b; () if any will do."""
        unit_id, rubric_name = key
        return self.units[unit_id].expected.get(rubric_name, ()) if unit_id in self.units else ()

    def _screens_of(self, unit_id: str, unit: KnownUnit, file: str) -> list[Screen]:
        """Return the screens of a unit. Raises InputError where it does not fit its rubrics."""
        entry = f"{file}, item {unit.name!r}"
        rubrics = [self._matching_rubric(entry, name, keys) for name, keys in unit.expected.items()]
        if len({rubric.unit for rubric in rubrics}) > 1:
            raise InputError(f"{entry}: its rubrics speak of pairs and of responses; part them")
        if self.one_screen_per_unit:
            rubrics = [rubric for rubric in self._rubrics if rubric.unit == rubrics[0].unit]
        for rubric in rubrics:
            if missing := [name for name in rubric.variables if name not in unit.values]:
                shown_by = f"which the rubric {rubric.name!r} shows"
                raise InputError(f"{entry}: `values` lacks {missing[0]!r}, {shown_by}")
        groups = rubrics_by_screen(rubrics, self.one_screen_per_unit)
        return [tuple(Question(unit_id, rubric) for rubric in group) for group in groups]

    def _matching_rubric(self, entry: str, name: str, keys: tuple[str, ...]) -> Rubric:
        """Return this labelled rubric. Raises InputError if `keys` are not options of it."""
        rubric = next((rubric for rubric in self._rubrics if rubric.name == name), None)
        if rubric is None:
            raise InputError(
                f"{entry}: annotators do not label the rubric {name!r}; they label "
                + ", ".join(rubric.name for rubric in self._rubrics)
            )
        unknown = {key for key in keys if not rubric.kind.takes(key)}
        if unknown and not rubric.kind.is_choice:
            raise InputError(f"{entry}: {min(unknown)!r} is {rubric.kind.none_of}")
        if unknown or not keys:
            problem = f"{min(unknown)!r} is none" if unknown else "name one or more"
            raise InputError(f"{entry}: {problem} of {name}'s {rubric.kind.permitted}")
        return rubric


def _read_units(folder: Path, file: str) -> tuple[KnownUnit, ...]:
    """Read the file of units with known answers. Raises InputError where it is not valid."""
    try:
        content = (folder / file).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"study.toml names {file}, which cannot be read: {reason}") from None
    units = parsed(_UnitsFile, content, file).unit
    for name, count in Counter(unit.name for unit in units).items():
        if count > 1:
            raise InputError(f"{file}: two items are called {name!r}; give each its own name")
    return units


# Attention checks: units with a known answer, mixed with those of the sample; their answers are
# stored apart. On the page a check looks like any other unit: it has an opaque task id, counts in
# the progress, and is in the list of earlier answers.

ATTENTION_COLUMNS = ("rater_id", "check_id", "rubric", "expected", "given", "passed", "created_at")


class AttentionChecks(KnownUnits):
    """The study's checks. Its blinding key fixes when each rater is given each of them."""

    def __init__(self, study: Study) -> None:
        settings = study.config.attention
        super().__init__(study, settings.file if settings else "", kind="check")
        self._every = settings.every if settings else 1

    def remaining(self, rater_id: str, given_checks: Container[Key]) -> list[tuple[int, Screen]]:
        """Return (number, screen) of this rater's next checks; numbers go on from those given."""
        screens = sorted(
            (screen for screen in self.screens if screen[0].key not in given_checks),
            key=lambda screen: digest(self.study.blinding_key, "check", rater_id, *screen[0].key),
        )
        return list(enumerate(screens, start=len(self.screens) - len(screens)))

    def due_after(self, rater_id: str, number: int) -> int:
        """Return the number of answers to units of the sample after which the rater's check
        `number` (from 0) comes: one in every stretch of `every` answers, at a random point of it.
        """
        blinding_key, parts = self.study.blinding_key, ("check", rater_id, str(number))
        return number * self._every + 1 + seeded_number(blinding_key, self._every, *parts)

    def order(self, rater_id: str, question: Question) -> str:
        """Return the order of the two sides ("ab" or "ba"), or "" where there is one side only."""
        if question.rubric.unit == "response":
            return ""
        parts = ("order", rater_id, question.unit_id)
        return ("ab", "ba")[seeded_number(self.study.blinding_key, 2, *parts)]


def attention_results(study: Study) -> pd.DataFrame:
    """Return `ATTENTION_COLUMNS` of every rater's latest answer to every check, one row per rater,
    check and rubric, in the order of the answers. `expected` are the answers that the study's file
    accepts now ("4 or 5"); `given` has the same order of sides, and is empty for a check skipped.
    """
    checks = AttentionChecks(study)
    query = sa.select(schema.attention_labels).order_by(schema.attention_labels.c.event_id)
    latest = schema.is_latest(schema.attention_labels, "rater_id", "unit_id", "rubric")
    rows = []
    for answer in study.store.rows(query.where(latest)):
        if accepted := checks.accepted((answer.unit_id, answer.rubric)):
            question = (answer.rater_id, answer.unit_id.partition(":")[2], answer.rubric)
            result = (" or ".join(accepted), answer.label, answer.label in accepted)
            rows.append((*question, *result, answer.created_at))
    return pd.DataFrame(rows, columns=list(ATTENTION_COLUMNS)).astype({"passed": bool})


# The design of the annotators' sessions, fixed by the blinding key: the questions and their order.
# Units are handed out in groups: those of a pair, or of a response where they are its criteria. A
# block is `pairs_per_block` groups in the order of the sample, so that the first pairs reach their
# full number of raters early. A stage is a block under one rubric, or under all with the same kind
# of unit: rubrics that hide the prompt come before those that show it. Within a stage the order
# differs by rater, so that no unit is always the first.


class Stage(NamedTuple):
    """Screens that a rater finishes before the next stage, and the keys of their questions."""

    screens: list[Screen]
    keys: frozenset[Key]


class SessionDesign:
    """Questions, their order and repeats, fixed by settings, sample and blinding key of a study."""

    def __init__(self, study: Study) -> None:
        self.blinding_key = study.blinding_key
        self.settings = study.config.annotation
        self.one_screen_per_unit = self.settings.screen == "all"
        self._rewording = rewording_of(study)  # the trial of a new wording on some pairs, if any
        units = study.units("sample")
        self._response_of_unit: dict[str, str] = {}
        """The response that each criterion belongs to; its criteria come one after another."""
        if {*CRITERIA} <= {*units.columns}:
            self._response_of_unit = dict(zip(units["unit_id"], units[RESPONSE_ID], strict=True))
        groups: dict[str, list[str]] = {}
        for unit, pair in study.labelled_units(units):
            groups.setdefault(self._response_of_unit.get(unit, pair), []).append(unit)
        self._stages = [*self._stages_of([*groups.values()], study.labelled_rubrics())]
        screens = (screen for stage in self._stages for screen in stage.screens)
        self.questions = {question.key: question for screen in screens for question in screen}
        self.checks = AttentionChecks(study)

    def screens(self, rater_id: str, free: Set[Key]) -> Iterator[Screen]:
        """Yield the questions among `free`, screen by screen in this rater's order. Within a stage
        the subjects mix, so that no one rates one subject in a row. Where another wording is tried,
        units of one wording come together; the blinding key fixes which is first.
        """
        for stage in self._stages:
            if stage.keys.isdisjoint(free):
                continue  # most stages of most raters need no sorting
            sort_key = partial(self._sort_key, rater_id, stage.screens[0][0].unit_id)
            for screen in sorted(stage.screens, key=sort_key):
                if questions := tuple(question for question in screen if question.key in free):
                    yield questions

    def _sort_key(self, rater_id: str, first_unit: str, screen: Screen) -> tuple[str, str]:
        """Return a screen's sort key for a rater in the stage that begins with `first_unit`."""
        unit, wording = screen[0].unit_id, ""
        if self._rewording:
            # Each wording is a rubric with its own name, so its screens stay together. The unit
            # lets the order of the wordings differ from stage to stage.
            names = ",".join(question.rubric.name for question in screen)
            wording = self.digest("wording", rater_id, first_unit, names)
        return wording, self.digest("place", rater_id, self._response_of_unit.get(unit, unit))

    def with_counterparts(self, keys: Set[Key]) -> Set[Key]:
        """Return the questions that a rater must not be given once they were given these."""
        return self._rewording.with_counterparts(keys) if self._rewording else keys

    def side_order(self, rater_id: str, unit_id: str, shown: Mapping[tuple[str, str], int]) -> str:
        """Return the order in which this rater sees the two sides: "ab" or "ba". `shown` counts the
        units shown to the rater so far, by (subject, order). The order that was rarer with this
        subject is taken, then the one that was rarer overall, then one drawn by the blinding key.
        Per rater and subject the two counts differ by one at most.
        """
        subject = parse_unit_id(unit_id).subject
        surplus_ab = shown.get((subject, "ab"), 0) - shown.get((subject, "ba"), 0)
        if surplus_ab == 0:
            surplus_ab = sum(n if order == "ab" else -n for (_, order), n in shown.items())
        if surplus_ab == 0:
            surplus_ab = 1 if int(self.digest("order", rater_id, unit_id)[:8], 16) % 2 else -1
        return "ba" if surplus_ab > 0 else "ab"

    def planned_repeats(self, n_first_answers: int) -> int:
        """Return the repeats due after so many first answers; the last `repeat_gap` have none."""
        share = self.settings.repeat_share
        n_repeats = int(share * n_first_answers + 1e-9)  # as 0.29 * 100 is below 29
        return max(0, min(n_repeats, n_first_answers - self.settings.repeat_gap))

    def digest(self, *parts: str) -> str:
        """Return 64 hexadecimal digits fixed by the blinding key and the parts."""
        return digest(self.blinding_key, *parts)

    def _stages_of(self, groups: list[list[str]], rubrics: Sequence[Rubric]) -> Iterator[Stage]:
        """Yield the stages of groups of units: block by block, those that hide the prompt first."""
        size = self.settings.pairs_per_block
        hiding_first = sorted(rubrics, key=shows_prompt)
        rubrics_of_stages = rubrics_by_screen(hiding_first, self.one_screen_per_unit)
        for start in range(0, len(groups), size):
            units = [unit for group in groups[start : start + size] for unit in group]
            for stage_rubrics in rubrics_of_stages:
                has_sides = stage_rubrics[0].has_sides  # then on pairs' units, whose side is ""
                fitting = (unit for unit in units if (parse_unit_id(unit).side == "") == has_sides)
                screens = [self._screen(unit, stage_rubrics) for unit in fitting]
                if screens := [screen for screen in screens if screen]:
                    keys = frozenset(question.key for screen in screens for question in screen)
                    yield Stage(screens, keys)

    def _screen(self, unit: str, rubrics: list[Rubric]) -> Screen:
        """Return a unit's questions under these rubrics, each in the unit's wording."""
        trial = self._rewording
        wordings = (trial.wording(rubric, unit) if trial else rubric for rubric in rubrics)
        return tuple(Question(unit, wording) for wording in wordings if wording)  # None: trial over


# Rubrics that hide the prompt come first in a block of pairs. A rater may still have seen the
# prompt, where such a rubric shares a screen with others, is repeated, or is changed later.

_PROMPT_VARIABLES = {"prompt", "prompt_a", "prompt_b"}


def shows_prompt(rubric: Rubric) -> bool:
    """Return True if one of the rubric's variables is the prompt."""
    return not _PROMPT_VARIABLES.isdisjoint(rubric.variables)


def judged_without_prompt(rubrics: Sequence[Rubric]) -> list[Rubric]:
    """Return the rubrics that hide a prompt which another of them shows."""
    hiding = [rubric for rubric in rubrics if not shows_prompt(rubric)]
    return hiding if len(hiding) < len(rubrics) else []


# Claims, and all of them in memory

TASK_COLUMNS = ("rater_id", "unit_id", "rubric", "rubric_hash", "draw")
"""Columns that identify a task; each task has one claim."""
TaskKey = tuple[str, str, int]
"""(unit id, rubric name, draw): one rater's task, under any text of the rubric."""
_RANDOM_ID = "t"  # prefix of random ids; those from before 0.3.0 are hexadecimal digits


def blinded(task_id: str, blinding_key: bytes) -> str:
    """Return the id under which a task is sent to the page. It is the one in the store, except for
    ids from before 0.3.0: these are digests of seed, rater and unit, by which anyone could check a
    guess of them, so the page gets a hash of them with the study's blinding key.
    """
    if task_id.startswith(_RANDOM_ID):
        return task_id
    return _RANDOM_ID + digest(blinding_key, "task", task_id)[:24]


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the claims: a task given to a rater."""

    task_id: str
    rater_id: str
    unit_id: str
    rubric: str
    rubric_hash: str
    order: str  # in which the sides are shown, "ab" or "ba"; "" where there is one only
    draw: int
    claimed_at: str
    state: str = "open"  # or "labelled", "released"
    version: int = 0  # number of its latest change

    @classmethod
    def of(cls, rater_id: str, question: Question, draw: int, order: str, task_id: str) -> Claim:
        """Return a new claim of a question that a rater is given now."""
        rubric, now = question.rubric, utc_now()
        return cls(task_id, rater_id, question.unit_id, rubric.name, rubric.hash, order, draw, now)

    @property
    def key(self) -> Key:
        """The question: unit id and rubric."""
        return (self.unit_id, self.rubric)

    @property
    def is_check(self) -> bool:
        """True for an attention check, whose answer is not a label."""
        return has_known_answer(self.unit_id)

    @property
    def is_first(self) -> bool:
        """True for a first draw of a sample's question: it counts for its `raters_per_unit`."""
        return self.draw == 0 and not self.is_check


def last_version(connection: sa.Connection) -> int:
    """Return the number of the latest change; within a `write()` the next one is free."""
    latest = sa.select(sa.func.coalesce(sa.func.max(schema.claims.c.version), 0))
    return int(connection.execute(latest).scalar_one())


class ClaimWriter:
    """A writer of changes of claims, for one `write()` within which `index` was refreshed."""

    def __init__(self, connection: sa.Connection, index: ClaimIndex) -> None:
        self.connection = connection
        self._version = index.last_version  # each change gets the next one

    def add(self, claim: Claim) -> Claim:
        """Store a claim and return it; one that was released is opened again under its id."""
        self._version += 1
        values = asdict(claim) | {"version": self._version}
        insert = conflict_free_insert(self.connection, schema.claims).values(values)
        renewed = {name: values[name] for name in ("claimed_at", "state", "version")}
        upsert = insert.on_conflict_do_update(index_elements=TASK_COLUMNS, set_=renewed)
        task_id = self.connection.execute(upsert.returning(schema.claims.c.task_id)).scalar_one()
        return replace(claim, task_id=task_id)

    def mark(self, task_id: str, **values: str) -> None:
        """Set columns of a claim, such as its `state` or `claimed_at`."""
        self._version += 1
        changed = sa.update(schema.claims).where(schema.claims.c.task_id == task_id)
        self.connection.execute(changed.values(version=self._version, **values))


class ClaimIndex:
    """All claims whose rubric's hash is in `hashes`. Use it under the store's lock. Only committed
    claims enter: a transaction that fails leaves no trace here. A rater holds a question from the
    first claim until that is released, and also once it is answered.
    """

    def __init__(self, hashes: set[str]) -> None:
        self._hashes = hashes
        self._by_rater: defaultdict[str, dict[TaskKey, Claim]] = defaultdict(dict)
        self._side_orders: defaultdict[str, dict[str, str]] = defaultdict(dict)  # by rater, unit
        self.last_version = 0
        # Who holds what, in four ways, so that `full_questions` need not read all claims:
        self._holders: defaultdict[Key, set[str]] = defaultdict(set)  # raters, by question
        self._keys_of_rater: defaultdict[str, set[Key]] = defaultdict(set)  # questions, by rater
        self._keys_by_count: defaultdict[int, set[Key]] = defaultdict(set)  # by number of holders
        self._open_since: dict[tuple[Key, str], str] = {}  # time of a first claim without an answer

    def refresh(self, connection: sa.Connection) -> None:
        """Read the claims that changed since the last refresh."""
        changed = sa.select(schema.claims).where(schema.claims.c.version > self.last_version)
        for row in connection.execute(changed.order_by(schema.claims.c.version)):
            self.last_version = row.version
            claim = Claim(**row._mapping)
            if claim.order and not claim.is_check:  # under any text: a unit keeps its order
                self._side_orders[claim.rater_id].setdefault(claim.unit_id, claim.order)
            if claim.rubric_hash in self._hashes:
                self._enter(claim)

    def of_rater(self, rater_id: str) -> Mapping[TaskKey, Claim]:
        """Return the rater's claims."""
        return self._by_rater.get(rater_id, {})

    def held_by(self, rater_id: str) -> Set[Key]:
        """Return the questions that the rater holds, answered or open."""
        return self._keys_of_rater.get(rater_id, frozenset())

    def side_orders(self, rater_id: str) -> Mapping[str, str]:
        """Return the order of sides in which the rater has seen each unit."""
        return self._side_orders.get(rater_id, {})

    def full_questions(self, n_raters: int, lapsed_before: str, excluded: Set[str]) -> set[Key]:
        """Return the questions with `n_raters` holders or more, where neither `excluded` raters
        count nor those whose open claim is from before `lapsed_before`.
        """
        n_uncounted = Counter(  # holders who do not count, by question: late ones, then excluded
            key
            for (key, rater), claimed_at in self._open_since.items()
            if claimed_at < lapsed_before and rater not in excluded
        )
        for rater in excluded:
            n_uncounted.update(self.held_by(rater))
        full = set[Key]()
        for n_holders, keys in self._keys_by_count.items():  # at first all holders count
            if n_holders >= n_raters:
                full |= keys
        for key, count in n_uncounted.items():
            if len(self._holders[key]) - count < n_raters:
                full.discard(key)
        return full

    def _enter(self, claim: Claim) -> None:
        """Enter a changed claim; a first one also changes who holds its question."""
        rater, key = claim.rater_id, claim.key
        tasks, task_key = self._by_rater[rater], (*key, claim.draw)
        former = tasks.get(task_key)
        if former and former.state == "labelled" and former.task_id != claim.task_id:
            return  # keep the answer: it is under another text of the rubric that counts as equal
        tasks[task_key] = claim
        if not claim.is_first:
            return
        holders = self._holders[key]
        self._keys_by_count[len(holders)].discard(key)
        if claim.state == "released":
            holders.discard(rater)
            self._keys_of_rater[rater].discard(key)
        else:
            holders.add(rater)
            self._keys_of_rater[rater].add(key)
        self._keys_by_count[len(holders)].add(key)
        self._open_since.pop((key, rater), None)
        if claim.state == "open":
            self._open_since[key, rater] = claim.claimed_at


# A rater's tasks: the open ones, the next ones, and how many are left. A question is given to
# exactly `raters_per_unit` raters. A task without an answer counts for `lease_minutes`.


def answered(tasks: Mapping[TaskKey, Claim]) -> list[Claim]:
    """Return a rater's answered tasks, in the order of the answers."""
    labelled = [claim for claim in tasks.values() if claim.state == "labelled"]
    return sorted(labelled, key=lambda claim: claim.version)


def asked_together(claim: Claim, other: Claim, one_screen_per_unit: bool) -> bool:
    """Return True if two tasks of one rater share a screen."""
    if one_screen_per_unit:
        return (claim.unit_id, claim.draw) == (other.unit_id, other.draw)
    return claim.task_id == other.task_id


def in_design(claim: Claim, design: SessionDesign) -> bool:
    """Return True if the task's question is still asked: the study's settings may have changed."""
    return claim.key in design.questions or claim.key in design.checks.questions


class Progress(NamedTuple):
    """Numbers of answers that a rater has given (`done`), and will have given in the end."""

    done: int
    total: int


@dataclass
class NextTasks:
    """The tasks of one rater at one moment, and the questions that may still become tasks."""

    rater_id: str
    design: SessionDesign
    index: ClaimIndex
    excluded: Set[str] = frozenset()  # raters whose claims do not count
    assumed: Set[str] = frozenset()  # ids of the rater's open tasks that count as answered just now
    tasks: Mapping[TaskKey, Claim] = field(init=False)  # all of the rater's
    open_claims: list[Claim] = field(init=False)  # of tasks without an answer that are still asked
    valid_claims: list[Claim] = field(init=False)  # of these, those that no other has taken over
    given_checks: set[Key] = field(init=False)  # attention checks that the rater has been given
    free_questions: Set[Key] = field(init=False)  # those that may still be given to the rater

    def __post_init__(self) -> None:
        settings = self.design.settings
        self.tasks = self.index.of_rater(self.rater_id)
        if self.assumed:  # these are the last answers: `answered` sorts by version
            tasks, version = dict(self.tasks), self.index.last_version + 1
            for key, claim in self.tasks.items():
                if claim.task_id in self.assumed and claim.state == "open":
                    tasks[key] = replace(claim, state="labelled", version=version)
            self.tasks = tasks
        lapsed_before = minutes_ago(settings.lease_minutes)
        full = self.index.full_questions(settings.raters_per_unit, lapsed_before, self.excluded)
        unanswered = (claim for claim in self.tasks.values() if claim.state == "open")
        self.open_claims = [claim for claim in unanswered if in_design(claim, self.design)]
        # A first task goes to others once its lease is over and the question has enough of them.
        self.valid_claims = [
            claim
            for claim in self.open_claims
            if claim.claimed_at >= lapsed_before or claim.draw or claim.key not in full
        ]
        unreleased = (claim for claim in self.tasks.values() if claim.state != "released")
        self.given_checks = {claim.key for claim in unreleased if claim.is_check}
        closed = self.design.with_counterparts(self.index.held_by(self.rater_id))
        self.free_questions = self.design.questions.keys() - closed - full

    def progress(self) -> Progress:
        """Return the rater's progress, attention checks included."""
        answers = [claim for claim in self.tasks.values() if claim.state == "labelled"]
        n_checks_done = sum(claim.is_check for claim in answers)
        n_done = len(answers) - n_checks_done
        given = (claim for claim in self.tasks.values() if claim.state != "released")
        n_repeats = sum(not (claim.is_check or claim.is_first) for claim in given)
        # `_screens` keeps to the limit on units. Without one it yields every free question.
        is_limited = self.design.settings.units_per_rater > 0
        n_free = sum(map(len, self._screens())) if is_limited else len(self.free_questions)
        n_first = sum(claim.is_first for claim in (*answers, *self.valid_claims)) + n_free
        total = n_first + max(n_repeats, self.design.planned_repeats(n_first))
        n_checks_left = sum(claim.is_check for claim in self.valid_claims)
        if n_done < total:  # a check that is due only after the last answer never comes
            checks = self.design.checks
            for number, screen in checks.remaining(self.rater_id, self.given_checks):
                if checks.due_after(self.rater_id, number) < total:
                    n_checks_left += len(screen)
        return Progress(n_done + n_checks_done, total + n_checks_done + n_checks_left)

    def claim_next(self, connection: sa.Connection) -> list[Claim]:
        """Return the tasks of the next screen, reserved for this rater; none if nothing is left."""
        writer = ClaimWriter(connection, self.index)
        self._update_leases(writer)
        if self.valid_claims:
            first = min(self.valid_claims, key=lambda claim: claim.version)
            together = self.design.one_screen_per_unit
            return [claim for claim in self.valid_claims if asked_together(claim, first, together)]
        return self._claim_check(writer) or self._claim_repeat(writer) or self._claim_first(writer)

    def _update_leases(self, writer: ClaimWriter) -> None:
        """Release the open tasks that others have taken over. If a lease of the valid ones is half
        over, renew all of these in their order: each gets a new version, by which tasks are shown.
        """
        half_lease_ago = minutes_ago(self.design.settings.lease_minutes / 2)
        needs_renewal = any(claim.claimed_at < half_lease_ago for claim in self.valid_claims)
        for claim in sorted(self.open_claims, key=lambda claim: claim.version):
            if claim not in self.valid_claims:
                writer.mark(claim.task_id, state="released")
            elif needs_renewal:
                writer.mark(claim.task_id, claimed_at=utc_now())

    @cached_property
    def _next_screen(self) -> Screen:
        """The next screen of new questions; empty if none is left."""
        return next(self._screens(), ())

    def _screens(self) -> Iterator[Screen]:
        """Yield the screens left for the rater: free questions, up to the limit of units."""
        max_units = self.design.settings.units_per_rater
        kept = (*answered(self.tasks), *self.valid_claims)  # others may have taken over the rest
        units = {claim.unit_id for claim in kept if claim.is_first}
        for screen in self.design.screens(self.rater_id, self.free_questions):
            if not max_units or screen[0].unit_id in units or len(units) < max_units:
                units.add(screen[0].unit_id)
                yield screen

    def _claim_check(self, writer: ClaimWriter) -> list[Claim]:
        """Claim the next attention check if one is due and has the rubrics of the next unit."""
        rater, checks = self.rater_id, self.design.checks
        n_answers = sum(not claim.is_check for claim in answered(self.tasks))
        remaining = checks.remaining(rater, self.given_checks)
        if not remaining or n_answers < checks.due_after(rater, remaining[0][0]):
            return []
        rubrics = {question.rubric.name for question in self._next_screen}
        screen = next((screen for _, screen in remaining if screen[0].rubric.name in rubrics), ())
        return [
            self._give(writer, question, draw=0, order=checks.order(rater, question))
            for question in screen
        ]

    def _claim_repeat(self, writer: ClaimWriter) -> list[Claim]:
        """Claim a hidden repeat if one is due: earlier tasks under new ids, same side order."""
        design = self.design
        if not design.settings.repeat_share:
            return []
        answers = [claim for claim in answered(self.tasks) if not claim.is_check]
        if not self._is_repeat_due(answers):
            return []
        rater, gap, together = self.rater_id, design.settings.repeat_gap, design.one_screen_per_unit
        recent = answers[-gap:]
        candidates = [
            claim
            for claim in answers[:-gap]
            if claim.is_first
            and (*claim.key, 1) not in self.tasks  # not repeated yet
            and in_design(claim, design)
            and not any(asked_together(claim, other, together) for other in recent)
        ]
        if not candidates:
            return []
        drawn = min(candidates, key=lambda claim: design.digest("repeat", rater, *claim.key))
        return [
            self._give(writer, design.questions[claim.key], draw=1, order=claim.order)
            for claim in candidates
            if asked_together(claim, drawn, together)
        ]

    def _is_repeat_due(self, answers: Sequence[Claim]) -> bool:
        """Return True if a rater's answers have fewer repeats than are planned by now. With a share
        of 0.25 one is planned after each 4 first answers. So that it cannot be foreseen, it comes
        0 to 3 of them later, fixed by the blinding key; without delay if no question is left.
        """
        design, delay = self.design, 0  # first answers
        n_first = sum(claim.is_first for claim in answers)
        n_repeats = len(answers) - n_first
        if self._next_screen:
            spacing = round(1 / design.settings.repeat_share)  # first answers for each repeat
            parts = ("repeat", self.rater_id, str(n_repeats))
            delay = seeded_number(design.blinding_key, spacing, *parts)
        return n_repeats < design.planned_repeats(n_first - delay)

    def _claim_first(self, writer: ClaimWriter) -> list[Claim]:
        """Claim the next screen of new questions, in the unit's order of sides."""
        screen, order = self._next_screen, ""
        if screen and screen[0].rubric.has_sides:
            unit = screen[0].unit_id
            orders = self.index.side_orders(self.rater_id)
            shown = Counter((parse_unit_id(seen).subject, orders[seen]) for seen in orders)
            order = orders.get(unit) or self.design.side_order(self.rater_id, unit, shown)
        return [self._give(writer, question, draw=0, order=order) for question in screen]

    def _give(self, writer: ClaimWriter, question: Question, draw: int, order: str) -> Claim:
        """Store and return a new claim of a question for this rater."""
        task_id = _RANDOM_ID + secrets.token_hex(12)  # random: it reveals nothing
        return writer.add(Claim.of(self.rater_id, question, draw, order, task_id))


def minutes_ago(minutes: float) -> str:
    """Return the time `minutes` ago, in the form in which the store writes times."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
