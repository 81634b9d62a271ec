"""The annotators' desk: who labels which unit next, and labels that are safe once acknowledged.

A task is a question as one rater is shown it; a sheet holds the tasks that are asked at once.
Which tasks there are, in which order and with which side first, is the matter of
`study.desk.design`; which of them are a rater's next, of `study.desk.next_tasks`. A task's id says
nothing about the unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.rubrics import PeopleText, Rubric
from evenhand.study.desk.answers import (
    Answer,
    Flag,
    Given,
    Receipt,
    given_answers,
    take_answer,
    take_flag,
)
from evenhand.study.desk.claims import Changes, Claim, ClaimIndex
from evenhand.study.desk.design import SessionDesign
from evenhand.study.desk.next_tasks import NextTasks, answered, asked_together, in_design
from evenhand.study.desk.oversight import Oversight
from evenhand.study.prompts.units import has_known_answer
from evenhand.study.store.schema import claims
from evenhand.study.store.store import rater_kinds
from evenhand.study.tables.ratings import RATER_CODE, RESERVED_RATERS
from evenhand.study.workspace import Study

EARLIER = 30
"""So many answers back can be looked at and changed."""


@dataclass(frozen=True)
class Task:
    """A question, ready to be shown: `people` is in the order `order`."""

    task_id: str
    rubric: Rubric
    order: str
    people: PeopleText
    given: Given | None = None
    """The present answer, where the task is looked at again."""


@dataclass(frozen=True)
class Sheet:
    """What one screen asks, and how far the rater is."""

    tasks: tuple[Task, ...]
    done: int
    total: int
    before: str = ""
    """The task that was answered before these; "" stands for the last one of all."""


class AnnotationDesk:
    """Hands out tasks and takes in answers. Safe under many threads and processes at once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        accepted = study.accepted_hashes().values()
        self._index = ClaimIndex({digest for hashes in accepted for digest in hashes})
        self._oversight = Oversight()
        self._cached: tuple[tuple[int, int], SessionDesign] | None = None

    def register(self, rater_id: str) -> None:
        """Check a rater's code. Raises InputError where it cannot be one."""
        if not RATER_CODE.fullmatch(rater_id):
            raise InputError(
                "a rater code is 1 to 64 letters, digits, dots, hyphens or underscores"
            )
        with self.study.store.read() as connection:
            kind = rater_kinds(connection).get(rater_id, "human")
        if kind != "human" or rater_id in RESERVED_RATERS:
            raise InputError("this code belongs to another kind of rater; choose another one")

    # Handing out

    def next_sheet(self, rater_id: str) -> Sheet | None:
        """What the rater has open, or else what comes next; None when nothing is left for them."""
        design = self._design()
        with self.study.store.write() as connection:
            tasks = self._next_tasks(connection, rater_id, design)
            if self._oversight.ended(rater_id):
                return None
            done, total = tasks.progress()
            claimed = tasks.claim(connection)
        if not claimed:
            return None
        return Sheet(tuple(self._task(claim, design) for claim in claimed), done, total)

    def next_task(self, rater_id: str) -> Task | None:
        """The first task of the next sheet, for raters that take one after the other."""
        sheet = self.next_sheet(rater_id)
        return sheet.tasks[0] if sheet else None

    def progress(self, rater_id: str) -> tuple[int, int]:
        """(answers given, answers given and still to be given by this rater)."""
        design = self._design()
        with self.study.store.read() as connection:
            return self._next_tasks(connection, rater_id, design).progress()

    def ended(self, rater_id: str) -> str:
        """Why the lead lets this rater have no task: "paused", "excluded", or "" where they do."""
        with self.study.store.read() as connection:
            self._oversight = self._oversight.renewed(connection)
            return self._oversight.ended(rater_id)

    def _next_tasks(
        self, connection: sa.Connection, rater_id: str, design: SessionDesign
    ) -> NextTasks:
        self._index.refresh(connection)
        self._oversight = self._oversight.renewed(connection)
        return NextTasks(rater_id, design, self._index, self._oversight.exclusions.keys())

    # Taking in

    def submit(
        self,
        rater_id: str,
        task_id: str,
        submit_id: str,
        option_key: str,
        seconds: float | None = None,
    ) -> Receipt:
        """Store one label; it is on disk when this returns. See `submit_all`."""
        answer = Answer(
            task_id=task_id, submit_id=submit_id, option_key=option_key, seconds=seconds
        )
        return self.submit_all(rater_id, [answer])[0]

    def submit_all(self, rater_id: str, sent: Sequence[Answer | Flag]) -> list[Receipt]:
        """Store answers and flags, all or none; they are on disk when this returns.

        The same `submit_id` again changes nothing. A second answer to a task that has one is
        refused, never silently taken or dropped, unless it says that it is an edit: then both stay
        in the store and the later one counts. An answer to a task whose lease is over is taken all
        the same: work that was done is never lost.
        """
        texts = self._texts_marked(rater_id, sent)
        with self.study.store.write() as connection:
            self._index.refresh(connection)
            changes = Changes(connection, self._index)
            return [self._receipt(changes, rater_id, each, texts) for each in sent]

    def _texts_marked(
        self, rater_id: str, sent: Sequence[Answer | Flag]
    ) -> dict[str, dict[str, str]]:
        """What was shown to whoever marked words in it, by task id."""
        ids = {each.task_id for each in sent if isinstance(each, Answer) and each.evidence}
        if not ids:
            return {}
        query = sa.select(claims).where(claims.c.task_id.in_(ids), claims.c.rater_id == rater_id)
        with self.study.store.read() as connection:
            found = connection.execute(query).all()
        design = self._design()
        return {claim.task_id: self._values(claim, design) for claim in found}

    def _receipt(
        self,
        changes: Changes,
        rater_id: str,
        sent: Answer | Flag,
        texts: Mapping[str, Mapping[str, str]],
    ) -> Receipt:
        claim = changes.connection.execute(
            sa.select(claims).where(claims.c.task_id == sent.task_id, claims.c.rater_id == rater_id)
        ).one_or_none()
        rubric = self.study.rubrics.get(claim.rubric) if claim else None
        if rubric is None:
            return Receipt("unknown_task")
        if isinstance(sent, Flag):
            return take_flag(changes.connection, claim, sent)
        shown = texts.get(sent.task_id, {})
        return take_answer(self.study.store, changes, claim, sent, rubric, shown)

    # Looking back

    def earlier(self, rater_id: str) -> list[Task]:
        """The rater's latest tasks with their answers, the last one first.

        Where tasks are repeated, they reach back less far than a repeat's distance, so that nobody
        finds the first answer while they give the second.
        """
        design = self._design()
        with self.study.store.read() as connection:
            recent = self._recent(connection, rater_id, design)
            given = given_answers(connection, rater_id, recent, self.study.rubrics)
        return [self._task(claim, design, given.get(claim.task_id)) for claim in recent]

    def reopen(self, rater_id: str, task_id: str = "") -> Sheet | None:
        """One of `earlier` (the last, if none is named), to be changed; None if it is not there."""
        design = self._design()
        with self.study.store.read() as connection:
            recent = self._recent(connection, rater_id, design)
            chosen = next((claim for claim in recent if task_id in ("", claim.task_id)), None)
            if chosen is None:
                return None
            shown = [claim for claim in recent[::-1] if asked_together(claim, chosen, design.whole)]
            given = given_answers(connection, rater_id, shown, self.study.rubrics)
        tasks = tuple(self._task(claim, design, given.get(claim.task_id)) for claim in shown)
        older = recent[recent.index(shown[0]) + 1 :] or shown
        return Sheet(tasks, *self.progress(rater_id), before=older[0].task_id)

    def _recent(
        self, connection: sa.Connection, rater_id: str, design: SessionDesign
    ) -> list[Claim]:
        self._index.refresh(connection)
        settings = design.settings
        most = min(EARLIER, settings.repeat_gap) if settings.repeat_share else EARLIER
        done = answered(self._index.of_rater(rater_id))[-most:]
        return [claim for claim in reversed(done) if in_design(claim, design)]

    def _design(self) -> SessionDesign:
        """Worked out anew when the study has grown since: people may be labelling meanwhile."""
        size = self.study.store.size()
        if self._cached is None or self._cached[0] != size:
            self._cached = (size, SessionDesign(self.study))
        return self._cached[1]

    def _task(self, claim: Claim, design: SessionDesign, given: Given | None = None) -> Task:
        rubric = self.study.rubrics[claim.rubric]
        people = rubric.for_people(self._values(claim, design))
        return Task(claim.task_id, rubric, claim.order, people, given)

    def _values(self, claim: Any, design: SessionDesign) -> dict[str, str]:
        """What the task of a claim shows; nothing where the study has it no more."""
        rubric, key = self.study.rubrics.get(claim.rubric), (claim.unit_id, claim.rubric)
        if rubric is None:
            return {}
        if has_known_answer(claim.unit_id):
            return design.checks.values(key, claim.order) if key in design.checks else {}
        return self.study.values(rubric, claim.unit_id, claim.order)
