"""The claims (which rater was given which question), kept in memory in step with the store.

Every change of a claim carries the next version number. All writers take turns, so the numbers rise
in the order of the commits, and a refresh costs only what changed since the last one.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import asdict, dataclass, replace

import sqlalchemy as sa

from evenhand.study import seeding
from evenhand.study.prompts.units import has_known_answer, parse_unit_id
from evenhand.study.questions import Key
from evenhand.study.store.database import conflict_free_insert
from evenhand.study.store.schema import claims

_ONE_TASK = ("rater_id", "unit_id", "rubric", "rubric_hash", "draw")
"""The columns that say which task it is; there is one claim of each."""
_BY_CHANCE = "t"
"""Prefix of ids that cannot be guessed; those from before 0.3.0 are hexadecimal digits."""


def new_task_id() -> str:
    """An id drawn by chance: nothing about the task can be read from it."""
    return _BY_CHANCE + secrets.token_hex(12)


def blinded(task_id: str, key: bytes) -> str:
    """Return the name under which a task is sent, from its id in the store.

    Before 0.3.0 ids were a digest of seed, rater and unit, which anyone who guesses these can
    check. They are no longer sent, except for an open task: a page holds its draft under it.
    """
    if task_id.startswith(_BY_CHANCE):
        return task_id
    return _BY_CHANCE + seeding.digest(key, "task", task_id)[:24]


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
        taken = insert.on_conflict_do_update(index_elements=_ONE_TASK, set_=again)
        task_id = self.connection.execute(taken.returning(claims.c.task_id)).scalar_one()
        return replace(claim, task_id=task_id)

    def mark(self, task_id: str, **values: str) -> None:
        self._version += 1
        self.connection.execute(
            sa.update(claims)
            .where(claims.c.task_id == task_id)
            .values(version=self._version, **values)
        )


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
        """The questions that have their number of raters.

        A claim that is unanswered and older than `lapsed_before` does not count, and neither does
        any of an excluded rater.
        """
        idle = Counter(
            key
            for (key, rater), at in self._open.items()
            if at < lapsed_before and rater not in excluded
        )
        for rater in excluded:
            idle.update(self.held_by(rater))
        found: set[Key] = set()
        for count, keys in self._by_count.items():
            if count >= wanted:
                found |= keys
        return found - {key for key, n in idle.items() if len(self._holders[key]) - n < wanted}

    def side_order(self, rater_id: str, unit_id: str) -> str | None:
        """The order in which the rater has seen this unit; None if they have not."""
        return self._side_orders.get(rater_id, {}).get(unit_id)

    def side_orders(self, rater_id: str) -> Counter[tuple[str, str]]:
        """Return the number of units that the rater has seen, by (subject, order)."""
        seen = self._side_orders.get(rater_id, {})
        return Counter((parse_unit_id(unit)[1], order) for unit, order in seen.items())

    def _take(self, claim: Claim) -> None:
        rater, key = claim.rater_id, claim.key
        own = self._by_rater.setdefault(rater, {})
        old = own.get((*key, claim.draw))
        if old and old.state == "labelled" and old.task_id != claim.task_id:
            return  # labelled under a text that says the same
        own[(*key, claim.draw)] = claim
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
