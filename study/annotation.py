"""The annotators' desk: who labels which unit next, and labels that are safe once acknowledged.

A task is one unit under one rubric for one rater. Tasks are handed out in the order of the sample,
so that units reach their full number of raters early; the order of the sides is drawn per rater and
unit from the study's seed. A task's id says nothing about the unit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rubrics import PeopleText, Rubric
from rubrics.errors import InputError
from study.grades import utc_now
from study.schema import claims, labels
from study.units import parse_unit_id
from study.workspace import Study

__all__ = ["AnnotationDesk", "Receipt", "Task"]

RATER_CODE = re.compile(r"[A-Za-z0-9._-]{1,64}")
PAIRS_PER_BLOCK = 10
"""A rater works through so many pairs on one rubric before the next rubric asks about them."""


@dataclass(frozen=True)
class Task:
    """One unit under one rubric, ready to be shown: `people` is in the order `order`."""

    task_id: str
    rubric: Rubric
    order: str
    people: PeopleText
    done: int
    total: int


@dataclass(frozen=True)
class Receipt:
    """What became of a submitted label: stored, duplicate, already_labelled or unknown_task."""

    status: str


@dataclass(frozen=True)
class _Place:
    """A unit under a rubric: a row of the list of all that people are to label."""

    unit_id: str
    rubric: Rubric

    @property
    def key(self) -> tuple[str, str]:
        return (self.unit_id, self.rubric.name)


_Claims = dict[tuple[str, str], bool]


class AnnotationDesk:
    """Hands out tasks and takes in labels. Safe under many threads and processes at once."""

    def __init__(self, study: Study) -> None:
        self.study = study
        accepted = study.accepted_hashes().values()
        self._hashes = {digest for hashes in accepted for digest in hashes}
        self._cached: tuple[tuple[int, int], list[_Place]] | None = None

    def register(self, rater_id: str) -> None:
        """Check a rater's code. Raises InputError where it cannot be one."""
        if not RATER_CODE.fullmatch(rater_id):
            raise InputError(
                "a rater code is 1 to 64 letters, digits, dots, hyphens or underscores"
            )
        with self.study.store.read() as connection:
            kind = connection.execute(
                sa.select(labels.c.rater_kind).where(labels.c.rater_id == rater_id).limit(1)
            ).scalar_one_or_none()
        if kind not in (None, "human"):
            raise InputError("this code belongs to another kind of rater; choose another one")

    def next_task(self, rater_id: str) -> Task | None:
        """The rater's open task, or else the next one; None when nothing is left for this rater."""
        places = self._places()
        with self.study.store.write() as connection:
            mine = self._own_claims(connection, rater_id)
            place = next((place for place in places if mine.get(place.key) is False), None)
            place = place or self._claim(connection, rater_id, mine, places)
            done, total = self._progress(connection, mine, places)
        if place is None:
            return None
        order = self._order(rater_id, place)
        values = self.study.values(place.rubric, place.unit_id, order)
        return Task(
            task_id=self._task_id(rater_id, place),
            rubric=place.rubric,
            order=order,
            people=place.rubric.for_people(values),
            done=done,
            total=total,
        )

    def submit(
        self,
        rater_id: str,
        task_id: str,
        submit_id: str,
        option_key: str,
        seconds: float | None = None,
    ) -> Receipt:
        """Store one label; it is on disk when this returns.

        `option_key` is the option as it was shown. The same `submit_id` again changes nothing; a
        second answer to a task that has one is refused, never silently taken or dropped.
        """
        with self.study.store.write() as connection:
            claim = connection.execute(
                sa.select(claims).where(claims.c.task_id == task_id, claims.c.rater_id == rater_id)
            ).one_or_none()
            if claim is None or option_key not in self.study.rubrics[claim.rubric].categories:
                return Receipt("unknown_task")
            if claim.labelled:
                known = connection.execute(
                    sa.select(labels.c.event_id).where(
                        labels.c.submit_id == submit_id, labels.c.rater_id == rater_id
                    )
                )
                return Receipt("duplicate" if known.first() else "already_labelled")
            event = self._label_event(claim, submit_id, option_key, seconds)
            if not self.study.store.add_label(connection, event):
                return Receipt("unknown_task")  # another task's submit id: a client gone wrong
            connection.execute(
                sa.update(claims).where(claims.c.task_id == task_id).values(labelled=True)
            )
        return Receipt("stored")

    def progress(self, rater_id: str) -> tuple[int, int]:
        """(labels given, labels given plus tasks still open to this rater)."""
        places = self._places()
        with self.study.store.read() as connection:
            return self._progress(connection, self._own_claims(connection, rater_id), places)

    # The list of all there is to label

    def _places(self) -> list[_Place]:
        """In the order of labelling: block by block of pairs, within a block rubric by rubric.

        Worked out anew when the study has grown since: people may be labelling meanwhile.
        """
        size = self.study.store.size()
        if self._cached is None or self._cached[0] != size:
            self._cached = (size, list(self._ordered(self._labelled_units())))
        return self._cached[1]

    def _labelled_units(self) -> dict[str, list[str]]:
        """Per sampled pair, in order, the units of the subjects whose responses people label."""
        subjects = set(self.study.config.annotation.subjects)
        by_pair: dict[str, list[str]] = {}
        units = self.study.units("sample")
        for unit, pair, subject in zip(
            units["unit_id"], units["cluster_id"], units["subject"], strict=True
        ):
            if subject and (not subjects or subject in subjects):
                by_pair.setdefault(pair, []).append(unit)
        return by_pair

    def _ordered(self, by_pair: dict[str, list[str]]) -> Iterator[_Place]:
        pairs = list(by_pair)
        for start in range(0, len(pairs), PAIRS_PER_BLOCK):
            chosen = pairs[start : start + PAIRS_PER_BLOCK]
            block = [unit for pair in chosen for unit in by_pair[pair]]
            # Within a block the subjects mix, so that nobody rates one subject in a row.
            block.sort(key=lambda unit: self._digest("place", unit))
            for rubric in self.study.labelled_rubrics():
                for unit in block:
                    if (parse_unit_id(unit)[2] == "") == (rubric.unit == "pair"):
                        yield _Place(unit, rubric)

    # Claims

    def _own_claims(self, connection: sa.Connection, rater_id: str) -> _Claims:
        """The rater's tasks under texts that count as the present ones; True where labelled."""
        rows = connection.execute(
            sa.select(claims).where(
                claims.c.rater_id == rater_id, claims.c.rubric_hash.in_(self._hashes)
            )
        )
        return {(row.unit_id, row.rubric): row.labelled for row in rows}

    def _claim(
        self, connection: sa.Connection, rater_id: str, mine: _Claims, places: list[_Place]
    ) -> _Place | None:
        place = next(self._free(connection, mine, places), None)
        if place is None:
            return None
        connection.execute(
            sa.insert(claims).values(
                task_id=self._task_id(rater_id, place),
                rater_id=rater_id,
                unit_id=place.unit_id,
                rubric=place.rubric.name,
                rubric_hash=place.rubric.hash,
                order=self._order(rater_id, place),
                claimed_at=utc_now(),
            )
        )
        mine[place.key] = False
        return place

    def _free(
        self, connection: sa.Connection, mine: _Claims, places: list[_Place]
    ) -> Iterator[_Place]:
        """Places that this rater has not had and that still want raters."""
        wanted = self.study.config.annotation.raters_per_unit
        rows = connection.execute(
            sa.select(claims.c.unit_id, claims.c.rubric)
            .where(claims.c.rubric_hash.in_(self._hashes))
            .group_by(claims.c.unit_id, claims.c.rubric)
            .having(sa.func.count(sa.distinct(claims.c.rater_id)) >= wanted)
        )
        full = {(row.unit_id, row.rubric) for row in rows}
        for place in places:
            if place.key not in mine and place.key not in full:
                yield place

    def _progress(
        self, connection: sa.Connection, mine: _Claims, places: list[_Place]
    ) -> tuple[int, int]:
        done = sum(mine.values())
        waiting = len(mine) - done
        return done, done + waiting + sum(1 for _ in self._free(connection, mine, places))

    # What is fixed by the study's seed

    def _digest(self, *parts: str) -> str:
        text = "\x1f".join([str(self.study.config.seed), *parts])
        return hashlib.sha256(text.encode()).hexdigest()

    def _task_id(self, rater_id: str, place: _Place) -> str:
        return self._digest("task", rater_id, *place.key, place.rubric.hash)[:24]

    def _order(self, rater_id: str, place: _Place) -> str:
        if place.rubric.unit != "pair":
            return ""
        return "ba" if int(self._digest("order", rater_id, place.unit_id)[:8], 16) % 2 else "ab"

    def _label_event(
        self, claim: sa.Row[Any], submit_id: str, option_key: str, seconds: float | None
    ) -> dict[str, Any]:
        rubric = self.study.rubrics[claim.rubric]
        return {
            "submit_id": submit_id,
            "unit_id": claim.unit_id,
            "rubric": claim.rubric,
            "rater_id": claim.rater_id,
            "rater_kind": "human",
            "label": rubric.swap(option_key) if claim.order == "ba" else option_key,
            "order": claim.order,
            "seconds": seconds,
            "rubric_hash": claim.rubric_hash,
            "created_at": utc_now(),
        }
