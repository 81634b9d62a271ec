"""The work that raters are given: attention checks, the design of their sessions, and the claims
(which rater was given which question), kept in memory in step with the store; and the lead's
decisions while people label.

Every change of a claim carries the next version number. All writers take turns, so the numbers rise
in the order of the commits, and a refresh costs only what changed since the last one.
"""

from __future__ import annotations

import secrets
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa
from pydantic import Field, field_validator

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.study.creation import rewording_of
from evenhand.study.prompts.pairs import CRITERIA, RESPONSE_ID
from evenhand.study.prompts.sampling import digest, drawn
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
from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.decisions import note_act
from evenhand.study.store.schema import (
    attention_labels,
    background_answers,
    claims,
    is_latest,
    lead_events,
    session_events,
)
from evenhand.study.store.store import Event, Store, given_back, rater_kind
from evenhand.study.workspace import Study

# Decisions of the study's lead while people label: to pause, to exclude a rater, to readmit one.
# They are events, each with its author and reason; the latest counts. An exclusion deletes nothing:
# the labels stay, their places go to other raters, and the analysis shows both.

DECISION_COLUMNS = ("kind", "rater_id", "reason", "done_by", "created_at")
_DECISIONS = ("pause", "resume", "exclude", "readmit")
"""The kinds of event that are decisions; the lead's events hold used links too."""
STOPPED_BY = "quality rule"
"""The author of a decision that no person took."""


@dataclass(frozen=True)
class Exclusion:
    """The reason why a rater's labels stay out of the main figures, its author, and its date."""

    reason: str
    done_by: str
    created_at: str


@dataclass(frozen=True)
class Oversight:
    """The lead's decisions in force. `seen` is the last event that it includes."""

    paused: bool = False
    exclusions: Mapping[str, Exclusion] = field(default_factory=dict)
    readmitted: frozenset[str] = frozenset()
    """Raters whose exclusion was taken back, and who were not excluded again."""
    seen: int = 0

    def ended(self, rater_id: str) -> str:
        """Return why a rater gets no further task: "excluded", "paused", or "" where they do."""
        if rater_id in self.exclusions:
            return "excluded"
        return "paused" if self.paused else ""

    def renewed(self, connection: sa.Connection) -> Oversight:
        """Return the decisions up to date with the store; itself where there are no new ones."""
        paused, exclusions, seen = self.paused, dict(self.exclusions), self.seen
        readmitted = set(self.readmitted)
        since = sa.select(lead_events).where(lead_events.c.event_id > self.seen)
        for event in connection.execute(since.order_by(lead_events.c.event_id)):
            seen = event.event_id
            if event.kind in ("pause", "resume"):
                paused = event.kind == "pause"
            elif event.kind == "exclude":
                decision = (event.reason, event.done_by, event.created_at)
                exclusions[event.rater_id] = Exclusion(*decision)
                readmitted.discard(event.rater_id)
            elif event.kind == "readmit":
                exclusions.pop(event.rater_id, None)
                readmitted.add(event.rater_id)
        if seen == self.seen:
            return self
        return Oversight(paused, exclusions, frozenset(readmitted), seen)


def oversight(store: Store) -> Oversight:
    """Read the lead's decisions in force."""
    with store.read() as connection:
        return Oversight().renewed(connection)


def pause(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out no further task until `resume`; answers sent meanwhile are still taken."""
    if not oversight(store).paused:
        note_act(store, "pause", "", reason.strip(), done_by)


def resume(store: Store, reason: str = "", done_by: str = "") -> None:
    """Hand out tasks again."""
    if oversight(store).paused:
        note_act(store, "resume", "", reason.strip(), done_by)


def exclude(store: Store, rater_id: str, reason: str, done_by: str = "") -> None:
    """Declare that a person's labels stay out of the main figures; they get no further task. Raises
    InputError where the reason is empty, or no rater of this name has begun to label.
    """
    if not (reason := reason.strip()):
        raise InputError("an exclusion needs a reason: it stands in the report")
    with store.read() as connection:
        given_work = sa.select(claims.c.task_id).where(claims.c.rater_id == rater_id)
        kind = rater_kind(connection, rater_id)
        known = kind == "human" or (kind == "" and connection.execute(given_work).first())
    if not known:
        raise InputError(f"no annotator {rater_id!r} has labelled in this study")
    already = oversight(store).exclusions.get(rater_id)
    if already is None or already.reason != reason:
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
    query = sa.select(*(lead_events.c[name] for name in DECISION_COLUMNS))
    query = query.where(lead_events.c.kind.in_(_DECISIONS)).order_by(lead_events.c.event_id)
    return store.table(query)


# Who has left, and the places of each side under quotas; admission and sessions both ask.

_ENDS = ("released", "readmitted", "consent", "screened_out")


def ends_of(connection: sa.Connection) -> dict[str, str]:
    """Return why raters ended before they were done, as far as it can free a place."""
    logs: dict[str, list[Event]] = defaultdict(list)
    query = sa.select(session_events).where(session_events.c.kind.in_(_ENDS))
    for row in connection.execute(query.order_by(session_events.c.event_id)):
        logs[row.rater_id].append(Event(row.kind, row.detail, row.created_at))
    ends = dict.fromkeys(Oversight().renewed(connection).exclusions, "stopped")
    for rater, log in logs.items():
        if reason := given_back(log):
            ends[rater] = reason
        elif any(event.kind == "consent" and not event.detail["agreed"] for event in log):
            ends[rater] = "no_consent"
        elif any(event.kind == "screened_out" for event in log):
            ends[rater] = "screened_out"
    return ends


def sides_named(study: Study, connection: sa.Connection, rater_id: str = "") -> dict[str, str]:
    """Return the answers to the question with quotas by rater: those of all, or of this one."""
    asked, given = study.config.side, background_answers.c
    query = sa.select(given.rater_id, given.answer).order_by(given.event_id)
    query = query.where(given.question == asked.key if asked else sa.false())
    query = query.where(given.rater_id == rater_id) if rater_id else query
    return {row.rater_id: row.answer for row in connection.execute(query)}


def side_places(study: Study, connection: sa.Connection) -> dict[str, tuple[int, int]]:
    """Return (people, quota) of each side; people whose part ended before they were done have left
    their place to others.
    """
    if (asked := study.config.side) is None:
        return {}
    named, ends = sides_named(study, connection), ends_of(connection)
    people = Counter(side for rater, side in named.items() if rater not in ends)
    quotas = zip(asked.options, asked.quotas, strict=True)
    return {side: (people[side], quota) for side, quota in quotas}


def has_room(study: Study, connection: sa.Connection, side: str) -> bool:
    """Return False if a side has as many people as its quota."""
    people, quota = side_places(study, connection).get(side, (0, 1))
    return people < quota


# Units whose answer is known, from a file of the study: for practice, and to check attention. Each
# `[[unit]]` has a `name`, `values` (the rubric's variables), `expected` (the accepted categories by
# rubric) and perhaps an `explanation`. The id of such a unit has no "|" in it, so that it is never
# taken for one of the study's own.


class KnownUnit(Section):
    """A unit whose answer is known."""

    name: str = Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")
    values: dict[str, str]
    expected: dict[str, tuple[str, ...]] = Field(min_length=1)
    explanation: str = ""

    @field_validator("expected", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            return value
        return {rubric: [keys] if isinstance(keys, str) else keys for rubric, keys in value.items()}


class _File(Section):
    unit: tuple[KnownUnit, ...] = Field(min_length=1)


class KnownUnits:
    """The units of one file, and the screens that ask about them. None where `file` is "". Raises
    InputError where the file cannot be read or does not fit the rubrics that people label.
    """

    def __init__(self, study: Study, file: str, kind: str) -> None:
        self.study = study
        self.whole = study.config.annotation.screen == "all"
        self._rubrics = study.labelled_rubrics()
        units = _read(study.folder, file) if file else ()
        self.units = {f"{kind}:{unit.name}": unit for unit in units}
        of_units = (self._screens(unit_id, unit, file) for unit_id, unit in self.units.items())
        self.screens: tuple[Screen, ...] = tuple(screen for unit in of_units for screen in unit)
        self.questions = {question.key: question for screen in self.screens for question in screen}

    def __contains__(self, key: object) -> bool:
        return key in self.questions

    def values(self, key: Key, order: str) -> dict[str, str]:
        """The template variables, in the order in which they are shown."""
        rubric = self.questions[key].rubric
        values = self.units[key[0]].values
        if rubric.has_sides:
            texts = {side: values.get(f"response_{side}", "") for side in "ab"}
            return presented_values(rubric, ("", "", ""), order, values, texts)
        return {name: values[name] for name in rubric.variables}

    def accepted(self, key: Key) -> tuple[str, ...]:
        """The right answers in the pair's own orientation; none where any answer will do, and for
        a unit that the file does not have (any more).
        """
        unit = self.units.get(key[0])
        return unit.expected.get(key[1], ()) if unit else ()

    def _screens(self, unit_id: str, unit: KnownUnit, file: str) -> list[Screen]:
        where = f"{file}, item {unit.name!r}"
        wanted = [self._rubric(where, name, keys) for name, keys in unit.expected.items()]
        if len({rubric.unit for rubric in wanted}) > 1:
            raise InputError(f"{where}: its rubrics speak of pairs and of responses; part them")
        if self.whole:
            wanted = [rubric for rubric in self._rubrics if rubric.unit == wanted[0].unit]
        for rubric in wanted:
            if lacking := [name for name in rubric.variables if name not in unit.values]:
                shown = f"which the rubric {rubric.name!r} shows"
                raise InputError(f"{where}: `values` lacks {lacking[0]!r}, {shown}")
        groups = rubrics_by_screen(wanted, self.whole)
        return [tuple(Question(unit_id, rubric) for rubric in group) for group in groups]

    def _rubric(self, where: str, name: str, keys: tuple[str, ...]) -> Rubric:
        match = next((rubric for rubric in self._rubrics if rubric.name == name), None)
        if match is None:
            raise InputError(
                f"{where}: annotators do not label the rubric {name!r}; they label "
                + ", ".join(rubric.name for rubric in self._rubrics)
            )
        unknown = {key for key in keys if not match.kind.takes(key)}
        if unknown or not keys:
            given = f"{min(unknown)!r} is none" if unknown else "name one or more"
            if unknown and not match.kind.is_choice:
                raise InputError(f"{where}: {min(unknown)!r} is {match.kind.none_of}")
            raise InputError(f"{where}: {given} of {name}'s {match.kind.permitted}")
        return match


def _read(folder: Path, file: str) -> tuple[KnownUnit, ...]:
    path = folder / file
    try:
        content = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InputError(f"study.toml names {file}, which cannot be read: {reason}") from None
    units = parsed(_File, content, file).unit
    names = [unit.name for unit in units]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{file}: two items are called {name!r}; give each its own name")
    return units


# Attention checks: units with a known answer, mixed in among the real ones, answers kept apart. On
# the page a check looks like any other unit: it has an opaque task id, counts in the progress, and
# is in the list of earlier answers.

ATTENTION_COLUMNS = ("rater_id", "check_id", "rubric", "expected", "given", "passed", "created_at")


class AttentionChecks(KnownUnits):
    """The study's checks, and where they come for each rater: fixed by the study's own key."""

    def __init__(self, study: Study) -> None:
        settings = study.config.attention
        super().__init__(study, settings.file if settings else "", "check")
        self._every = settings.every if settings else 1

    def left(self, rater_id: str, had: Container[Key]) -> list[Screen]:
        """The checks that are not among those that this rater `had`, in the rater's order."""
        return sorted(
            (screen for screen in self.screens if screen[0].key not in had),
            key=lambda screen: digest(self.study.blinding_key, "check", rater_id, *screen[0].key),
        )

    def due_after(self, rater_id: str, number: int) -> int:
        """Return after how many answers to real units the rater's check of this number (from 0)
        comes: once in every stretch of `every`, at a random place in it.
        """
        key = self.study.blinding_key
        within = drawn(key, self._every, "check", rater_id, str(number))
        return number * self._every + 1 + within

    def order(self, rater_id: str, question: Question) -> str:
        """Return the order of the two sides ("ab" or "ba"), or "" where there is one side only."""
        if question.rubric.unit == "response":
            return ""
        return ("ab", "ba")[drawn(self.study.blinding_key, 2, "order", rater_id, question.unit_id)]


def attention_results(study: Study) -> pd.DataFrame:
    """Return every rater's answer to every check: `rater_id, check_id, rubric, expected, given,
    passed, created_at`; one row per rater, check and rubric, in the order of the answers.

    The latest answer counts. `expected` is what the study's file accepts now ("4 or 5"). `given`
    has the same orientation of the sides; it is empty where the check was skipped, which is a
    failure.
    """
    checks = AttentionChecks(study)
    query = sa.select(attention_labels).order_by(attention_labels.c.event_id)
    latest = is_latest(attention_labels, "rater_id", "unit_id", "rubric")
    rows = []
    for answer in study.store.rows(query.where(latest)):
        if accepted := checks.accepted((answer.unit_id, answer.rubric)):
            check, given = answer.unit_id.partition(":")[2], answer.label
            result = " or ".join(accepted), given, given in accepted, answer.created_at
            rows.append((answer.rater_id, check, answer.rubric, *result))
    return pd.DataFrame(rows, columns=list(ATTENTION_COLUMNS)).astype({"passed": bool})


# The design of the annotators' sessions, fixed by the study's key: the questions and their order.
# The sample is handed out block by block, so that its first pairs reach their full number of raters
# early. Within a block what is judged without the prompt comes before what shows it, and every
# rater has an order of their own, so that no unit is always the first.


class SessionDesign:
    """Questions, their order and their repeats, fixed by the study's settings, sample and key."""

    def __init__(self, study: Study) -> None:
        self.key = study.blinding_key
        self.settings = study.config.annotation
        by_pair: dict[str, list[str]] = {}
        self._response: dict[str, str] = {}
        """The response of each unit that is one of its criteria: these follow one another."""
        if {*CRITERIA} <= {*(units := study.units("sample"))}:
            self._response = dict(zip(units["unit_id"], units[RESPONSE_ID], strict=True))
        for unit, pair in study.labelled_units(units):
            by_pair.setdefault(self._response.get(unit, pair), []).append(unit)
        rubrics = sorted(study.labelled_rubrics(), key=shows_prompt)  # those that hide it first
        self._rewording = rewording_of(study)
        self._stages = list(self._blocks(by_pair, rubrics))
        screens = [screen for stage in self._stages for screen in stage]
        self.questions = {question.key: question for screen in screens for question in screen}
        self.checks = AttentionChecks(study)
        self._keys = [{asked.key for screen in stage for asked in screen} for stage in self._stages]

    @property
    def whole(self) -> bool:
        """True if all rubrics of a unit are on one screen."""
        return self.settings.screen == "all"

    def screens(self, rater_id: str, free: Set[Key]) -> Iterator[Screen]:
        """The questions among `free`, screen by screen in this rater's order. Within a stage of a
        block the subjects mix, so that no one rates one subject in a row. Where another wording is
        tried, units of one wording come together, the first one drawn by the key.
        """

        def place(screen: Screen) -> tuple[str, str]:
            unit, wording = screen[0].unit_id, ""
            if self._rewording:
                names = ",".join(asked.rubric.name for asked in screen)
                wording = self.digest("wording", rater_id, first, names)
            return wording, self.digest("place", rater_id, self._response.get(unit, unit))

        for stage, keys in zip(self._stages, self._keys, strict=True):
            if keys.isdisjoint(free):
                continue  # most stages of most raters: they are not even put in order
            first = stage[0][0].unit_id
            for screen in sorted(stage, key=place):
                if questions := tuple(question for question in screen if question.key in free):
                    yield questions

    def answered(self, held: Set[Key]) -> Set[Key]:
        """Return the questions of which a rater who has these has no need."""
        return self._rewording.answered(held) if self._rewording else held

    def side_order(self, rater_id: str, unit_id: str, shown: Mapping[tuple[str, str], int]) -> str:
        """Return the order in which this rater sees the two sides: "ab" or "ba".

        `shown` counts the units shown to the rater so far, by (subject, order). The order that was
        rarer with this subject is taken, then the one that was rarer overall, then one drawn by the
        key: per rater and subject the two differ by one at most.
        """
        subject = parse_unit_id(unit_id)[1]
        lead = shown.get((subject, "ab"), 0) - shown.get((subject, "ba"), 0)
        if lead == 0:
            lead = sum(n if order == "ab" else -n for (_, order), n in shown.items())
        if lead == 0:
            lead = 1 if int(self.digest("order", rater_id, unit_id)[:8], 16) % 2 else -1
        return "ba" if lead > 0 else "ab"

    def planned_repeats(self, answers: int) -> int:
        """Return how many of a rater's `answers` are asked for again. Fewer where there are too few
        answers for a repeat to keep its distance.
        """
        share = int(self.settings.repeat_share * answers + 1e-9)
        return max(0, min(share, answers - self.settings.repeat_gap))

    def digest(self, *parts: str) -> str:
        return digest(self.key, *parts)

    def _blocks(
        self, by_pair: Mapping[str, list[str]], rubrics: list[Rubric]
    ) -> Iterator[list[Screen]]:
        """Block by block; within a block rubric by rubric, or kind of unit by kind of unit."""
        pairs, size, trial = list(by_pair), self.settings.pairs_per_block, self._rewording
        for start in range(0, len(pairs), size):
            block = [unit for pair in pairs[start : start + size] for unit in by_pair[pair]]
            for asked in rubrics_by_screen(rubrics, self.whole):
                screens = []
                for unit in block:
                    if (parse_unit_id(unit)[2] == "") == asked[0].has_sides:
                        wordings = (trial.asked(of, unit) if trial else of for of in asked)
                        screens.append(tuple(Question(unit, text) for text in wordings if text))
                if any(screens):
                    yield [screen for screen in screens if screen]


# Rubrics that are judged without the prompt, and the raters who may have seen it all the same.
# Which rubrics these are follows from their variables. They come first in a block of pairs; where
# they share a screen with others, are repeated, or are changed later, the prompt is known.

_PROMPTS = {"prompt", "prompt_a", "prompt_b"}


def shows_prompt(rubric: Rubric) -> bool:
    return not _PROMPTS.isdisjoint(rubric.variables)


def judged_without_prompt(rubrics: Sequence[Rubric]) -> list[Rubric]:
    """The rubrics that hide a prompt which another one of them shows."""
    hiding = [rubric for rubric in rubrics if not shows_prompt(rubric)]
    return hiding if len(hiding) < len(rubrics) else []


ONE_TASK = ("rater_id", "unit_id", "rubric", "rubric_hash", "draw")
"""The columns that say which task it is; there is one claim of each."""
_BY_CHANCE = "t"
"""Prefix of ids that cannot be guessed; those from before 0.3.0 are hexadecimal digits."""


def blinded(task_id: str, key: bytes) -> str:
    """Return the name under which a task is sent, from its id in the store. Before 0.3.0 ids were a
    digest of seed, rater and unit, which anyone who guesses these can check. They are no longer
    sent, except for an open task: a page holds its draft under it.
    """
    if task_id.startswith(_BY_CHANCE):
        return task_id
    return _BY_CHANCE + digest(key, "task", task_id)[:24]


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of the claims: a task that was given to a rater. `draw` above 0 is a hidden repeat."""

    task_id: str
    rater_id: str
    unit_id: str
    rubric: str
    rubric_hash: str
    order: str
    draw: int
    claimed_at: str
    state: str = "open"
    version: int = 0

    @classmethod
    def of(cls, rater_id: str, asked: Question, draw: int, order: str, task_id: str) -> Claim:
        """Return the claim of a question that a rater is given now."""
        rubric, now = asked.rubric, utc_now()
        return cls(task_id, rater_id, asked.unit_id, rubric.name, rubric.hash, order, draw, now)

    @property
    def key(self) -> Key:
        return (self.unit_id, self.rubric)

    @property
    def is_check(self) -> bool:
        """True for an attention check: it fills no place, and its answer is not a label."""
        return has_known_answer(self.unit_id)


def last_version(connection: sa.Connection) -> int:
    """The number of the latest change; within a `write()` the next one is free."""
    latest = sa.select(sa.func.coalesce(sa.func.max(claims.c.version), 0))
    return int(connection.execute(latest).scalar_one())


class Changes:
    """Changes of claims within one `write()`, numbered on from the last that the index has seen."""

    def __init__(self, connection: sa.Connection, index: ClaimIndex) -> None:
        self.connection = connection
        self._version = index.seen

    def give(self, claim: Claim) -> Claim:
        """Give a task out; one that was given up before is taken up again, under the id it has."""
        self._version += 1
        values = asdict(claim) | {"version": self._version}
        insert = conflict_free_insert(self.connection, claims).values(values)
        again = {name: values[name] for name in ("claimed_at", "state", "version")}
        taken = insert.on_conflict_do_update(index_elements=ONE_TASK, set_=again)
        task_id = self.connection.execute(taken.returning(claims.c.task_id)).scalar_one()
        return replace(claim, task_id=task_id)

    def mark(self, task_id: str, **values: str) -> None:
        self._version += 1
        changed = sa.update(claims).where(claims.c.task_id == task_id)
        self.connection.execute(changed.values(version=self._version, **values))


class ClaimIndex:
    """All claims under rubric texts that count as the present ones. Use it under the store's lock.
    Only committed claims enter: a transaction that fails leaves no trace here.
    """

    def __init__(self, hashes: set[str]) -> None:
        self._hashes = hashes
        self._by_rater: dict[str, dict[tuple[str, str, int], Claim]] = {}
        self._holders: dict[Key, set[str]] = {}
        self._by_count: dict[int, set[Key]] = {}
        """The questions by their number of holders."""
        self._held: dict[str, set[Key]] = {}
        self._open: dict[tuple[Key, str], str] = {}
        self._side_orders: dict[str, dict[str, str]] = {}
        self.seen = 0

    def refresh(self, connection: sa.Connection) -> None:
        """Take in what changed since the last time."""
        changed = sa.select(claims).where(claims.c.version > self.seen).order_by(claims.c.version)
        for row in connection.execute(changed):
            self.seen = row.version
            if row.rubric_hash in self._hashes:
                self._take(Claim(**row._mapping))

    def of_rater(self, rater_id: str) -> Mapping[tuple[str, str, int], Claim]:
        """The rater's claims by (unit id, rubric, draw)."""
        return self._by_rater.get(rater_id, {})

    def held_by(self, rater_id: str) -> Set[Key]:
        """The questions that the rater has, answered or open."""
        return self._held.get(rater_id, frozenset())

    def full(self, wanted: int, lapsed_before: str, excluded: Set[str] = frozenset()) -> set[Key]:
        """The questions that have their number of raters. A claim that is unanswered and older than
        `lapsed_before` does not count, and neither does any of an excluded rater.
        """
        lapsed = (place for place, claimed_at in self._open.items() if claimed_at < lapsed_before)
        idle = Counter(key for key, rater in lapsed if rater not in excluded)
        for rater in excluded:
            idle.update(self.held_by(rater))
        filled: set[Key] = set()
        for count, keys in self._by_count.items():
            if count >= wanted:
                filled |= keys
        return filled - {key for key, n in idle.items() if len(self._holders[key]) - n < wanted}

    def side_orders(self, rater_id: str) -> Mapping[str, str]:
        """Return the order in which the rater has seen each unit."""
        return self._side_orders.get(rater_id, {})

    def _take(self, claim: Claim) -> None:
        rater, key = claim.rater_id, claim.key
        tasks = self._by_rater.setdefault(rater, {})
        old = tasks.get((*key, claim.draw))
        if old and old.state == "labelled" and old.task_id != claim.task_id:
            return  # labelled under a text that says the same
        tasks[(*key, claim.draw)] = claim
        if claim.is_check:
            return
        if claim.order:
            self._side_orders.setdefault(rater, {}).setdefault(claim.unit_id, claim.order)
        if claim.draw > 0:
            return
        holders = self._holders.setdefault(key, set())
        held = self._held.setdefault(rater, set())
        self._open.pop((key, rater), None)
        before = len(holders)
        if claim.state == "released":
            holders.discard(rater)
            held.discard(key)
        else:
            holders.add(rater)
            held.add(key)
        if len(holders) != before:
            self._by_count.get(before, set()).discard(key)
            self._by_count.setdefault(len(holders), set()).add(key)
        if claim.state == "open":
            self._open[key, rater] = claim.claimed_at


# A rater's next tasks: those that they have open, those that come next, and how many are left.
# Overlap is exact: a question that has its number of raters is given to no one else. A task that
# was given out and not answered counts as one of them until its lease is over.


def answered(tasks: Mapping[tuple[str, str, int], Claim]) -> list[Claim]:
    """A rater's answered tasks, in the order of the answers."""
    done = [claim for claim in tasks.values() if claim.state == "labelled"]
    return sorted(done, key=lambda claim: claim.version)


def asked_together(claim: Claim, other: Claim, whole: bool) -> bool:
    """Return True if two tasks of one rater share a screen."""
    if whole:
        return (claim.unit_id, claim.draw) == (other.unit_id, other.draw)
    return claim.task_id == other.task_id


def in_design(claim: Claim, design: SessionDesign) -> bool:
    """Return True if the task is still to be labelled: the settings may have changed since."""
    return claim.key in design.questions or claim.key in design.checks


@dataclass
class NextTasks:
    """The tasks of one rater at one moment: those given out, those left for them, and the next."""

    rater_id: str
    design: SessionDesign
    index: ClaimIndex
    excluded: Set[str] = frozenset()
    """The raters whose places are to be filled by others."""
    assumed: Set[str] = frozenset()
    """Ids of open tasks of the rater's that are taken as answered, last of all."""

    def __post_init__(self) -> None:
        settings = self.design.settings
        self.tasks = self.index.of_rater(self.rater_id)
        if self.assumed:
            tasks, last = dict(self.tasks), self.index.seen + 1
            for key, claim in self.tasks.items():
                if claim.task_id in self.assumed and claim.state == "open":
                    tasks[key] = replace(claim, state="labelled", version=last)
            self.tasks = tasks
        lapsed_before = minutes_ago(settings.lease_minutes)
        self.full = self.index.full(settings.raters_per_unit, lapsed_before, self.excluded)
        opened = (claim for claim in self.tasks.values() if claim.state == "open")
        self.opened = [claim for claim in opened if in_design(claim, self.design)]
        # A task is lost once its lease is over and other raters have taken its place.
        self.held = [
            claim
            for claim in self.opened
            if claim.claimed_at >= lapsed_before or claim.draw or claim.key not in self.full
        ]
        taken = self.design.answered(self.index.held_by(self.rater_id))
        kept = (claim for claim in self.tasks.values() if claim.state != "released")
        self.checked = {claim.key for claim in kept if claim.is_check}
        self.free = self.design.questions.keys() - taken - self.full

    def progress(self) -> tuple[int, int]:
        """(answers given, answers given and still to be given)."""
        done = firsts = repeats = checks = 0
        for claim in self.tasks.values():
            if claim.is_check:
                checks += claim.state == "labelled"
                continue
            done += claim.state == "labelled"
            firsts += claim.state == "labelled" and claim.draw == 0
            repeats += claim.state != "released" and claim.draw > 0
        firsts += sum(claim.draw == 0 and not claim.is_check for claim in self.held)
        if self.design.settings.units_per_rater:
            firsts += sum(map(len, self._screens()))
        else:
            firsts += len(self.free)
        total = firsts + max(repeats, self.design.planned_repeats(firsts))
        ahead = sum(claim.is_check for claim in self.held)  # checks that are still to come
        if done < total:
            design = self.design.checks
            left = design.left(self.rater_id, self.checked)
            numbered = enumerate(left, start=len(design.screens) - len(left))
            ahead += sum(len(s) for n, s in numbered if design.due_after(self.rater_id, n) < total)
        return done + checks, total + checks + ahead

    def claim(self, connection: sa.Connection) -> list[Claim]:
        """The tasks of the next screen, reserved for this rater; none when nothing is left."""
        changes = Changes(connection, self.index)
        aging = minutes_ago(self.design.settings.lease_minutes / 2)
        renews = any(claim.claimed_at < aging for claim in self.held)
        # Those that others have taken are given up, and leases are renewed: all of them and in
        # order, as a renewed claim has a later version, by which they are shown.
        for claim in sorted(self.opened, key=lambda claim: claim.version):
            if claim not in self.held:
                changes.mark(claim.task_id, state="released")
            elif renews:
                changes.mark(claim.task_id, claimed_at=utc_now())
        if self.held:
            first = min(self.held, key=lambda claim: claim.version)
            return [c for c in self.held if asked_together(c, first, self.design.whole)]
        return self._check(changes) or self._repeats(changes) or self._firsts(changes)

    @cached_property
    def _ahead(self) -> Screen:
        return next(self._screens(), ())

    def _screens(self) -> Iterator[Screen]:
        """Yield the screens left for the rater: free questions, up to the limit of units."""
        most = self.design.settings.units_per_rater
        units = {unit for unit, _ in self.index.held_by(self.rater_id)}
        for screen in self.design.screens(self.rater_id, self.free):
            if not most or screen[0].unit_id in units or len(units) < most:
                units.add(screen[0].unit_id)
                yield screen

    def _check(self, changes: Changes) -> list[Claim]:
        """Claim the next attention check if one is due and has the rubrics of the next unit."""
        checks = self.design.checks
        done = sum(not claim.is_check for claim in answered(self.tasks))
        left = checks.left(self.rater_id, self.checked)
        if not left or done < checks.due_after(self.rater_id, len(checks.screens) - len(left)):
            return []
        asked = {question.rubric.name for question in self._ahead}
        screen = next((screen for screen in left if screen[0].rubric.name in asked), ())
        return [
            self._give(changes, question, 0, checks.order(self.rater_id, question))
            for question in screen
        ]

    def _repeats(self, changes: Changes) -> list[Claim]:
        """A hidden repeat, where one is due: earlier tasks under new ids, the sides as before."""
        design = self.design
        if not design.settings.repeat_share:
            return []
        done = [claim for claim in answered(self.tasks) if not claim.is_check]
        firsts = sum(claim.draw == 0 for claim in done)
        number, stretch = len(done) - firsts, round(1 / design.settings.repeat_share)
        # Each comes at a place of its own within its stretch, and at the end those still due.
        place = ("repeat", self.rater_id, str(number))
        late = drawn(design.key, stretch, *place) if self._ahead else 0
        if number >= design.planned_repeats(firsts - late):
            return []
        gap = design.settings.repeat_gap
        too_fresh = done[-gap:]
        candidates = [
            claim
            for claim in done[:-gap]
            if claim.draw == 0
            and (*claim.key, 1) not in self.tasks
            and in_design(claim, design)
            and not any(asked_together(claim, other, design.whole) for other in too_fresh)
        ]
        if not candidates:
            return []
        chosen = min(candidates, key=lambda c: design.digest("repeat", self.rater_id, *c.key))
        return [
            self._give(changes, design.questions[claim.key], 1, claim.order)
            for claim in candidates
            if asked_together(claim, chosen, design.whole)
        ]

    def _firsts(self, changes: Changes) -> list[Claim]:
        screen = self._ahead
        order = ""
        if screen and screen[0].rubric.has_sides:
            unit, seen = screen[0].unit_id, self.index.side_orders(self.rater_id)
            shown = Counter((parse_unit_id(unit_id)[1], order) for unit_id, order in seen.items())
            order = seen.get(unit) or self.design.side_order(self.rater_id, unit, shown)
        return [self._give(changes, question, 0, order) for question in screen]

    def _give(self, changes: Changes, question: Question, draw: int, order: str) -> Claim:
        task_id = _BY_CHANCE + secrets.token_hex(12)  # nothing can be read from it
        return changes.give(Claim.of(self.rater_id, question, draw, order, task_id))


def minutes_ago(minutes: float) -> str:
    """Return the moment `minutes` ago, as the store writes moments."""
    return (datetime.now(UTC) - timedelta(minutes=minutes)).isoformat(timespec="milliseconds")
