"""Side of the pair: whom raters favour, and whether a grader favours it more than humans do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bias.audit_rows import FEW_CLUSTERS, AuditRows
from evenhand.analysis.bias.beside_people import BesidePeople
from evenhand.analysis.bias.calls import Calls
from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.units import MAX_VALUES, UnitFacts
from evenhand.analysis.results import ResultRows, from_to
from evenhand.analysis.types import Array
from evenhand.analysis.writer import Writer
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, BiasSettings

SHOWN_BY = ("partisan",)
"""Units columns by whose values directions are shown separately."""


@dataclass(frozen=True)
class _Part:
    """Some of the units and the direction in which they are read.

    `sign` (units,) is 1 where side a counts as `first`, -1 where side b does, 0 where the unit
    takes no part.
    """

    subset: str
    first: str
    second: str
    sign: Array

    @property
    def at(self) -> str:
        """The two sides, as in a row's key."""
        return from_to(self.first, self.second)


def add_direction_rows(
    rows: ResultRows, calls: Calls, facts: UnitFacts, settings: BiasSettings, resamples: Resamples
) -> None:
    """Add `direction_net` of humans together and of every grader.

    It is the share of units that favour the first side minus those that favour the second. On
    everything, by the columns `SHOWN_BY`, by subject and by group; each rater on all that it
    called.
    """
    sides = _by_side(calls)
    for part in [*_parts(calls, facts, settings), *_subjects(calls, facts, settings)]:
        _add_directions(rows, calls, sides, part, resamples)
    for part in _groups(calls, facts, resamples):
        _add_directions(rows, calls, sides, part, resamples)


def add_side_rows(audit: AuditRows, calls: Calls, facts: UnitFacts, settings: BiasSettings) -> None:
    """Add `bias_side` of every grader: its net direction minus that of humans, scaled (see
    `analysis.bias.beside_people`).
    """
    for part in _parts(calls, facts, settings):
        seen = calls.oriented(part.sign)
        for grader in calls.graders:
            beside = BesidePeople(seen, grader, audit.resamples)
            if beside.shared.any():
                level = Shift(beside.level(), beside.counts(), beside.note, beside.reason)
                who = calls.raters[grader]
                audit.add("bias_side", who, level, subset=part.subset, at=part.at)


def _add_directions(
    rows: ResultRows, calls: Calls, sides: tuple[Array, Array], part: _Part, resamples: Resamples
) -> None:
    """Add the row of every rater that called a unit of this part."""
    forward = part.sign[:, None] > 0
    used = part.sign != 0
    toward = np.where(forward, *sides)[used]
    away = np.where(forward, *sides[::-1])[used]
    held = ~np.isnan(toward)
    if not held.any():
        return
    kept, clusters = np.unique(calls.clusters[used], return_inverse=True)
    if len(kept) < resamples.n_types:
        resamples = resamples.only(kept)  # a group costs its own clusters' time
    out = Writer(rows, resamples, clusters, part.subset)
    sums = out.sums(np.nan_to_num(toward), np.nan_to_num(away), held)
    to, off, n = np.moveaxis(sums.reshape(len(sums), 3, -1), 1, 0)
    net = ratio(to - off, n)
    for column, rater in enumerate(["humans", *(calls.raters[g] for g in calls.graders)]):
        units = out.count(held[:, column])
        if units[0]:
            few = f"fewer than {FEW_CLUSTERS} clusters" if units[1] < FEW_CLUSTERS else ""
            out.add("direction_net", net[:, column], units, a=rater, at=part.at, note=few)


def _by_side(calls: Calls) -> tuple[Array, Array]:
    """Return how far the mean human and every grader favour side a, and side b.

    Each (units, 1 + graders), NaN where there is no call.
    """
    people = calls.people
    count = (~np.isnan(people)).sum(axis=1).astype(float)
    out = []
    for sign in (1.0, -1.0):
        mean = ratio(np.maximum(np.nan_to_num(people) * sign, 0.0).sum(axis=1), count)
        own = np.maximum(calls.values[:, list(calls.graders)] * sign, 0.0)
        out.append(np.column_stack([mean, own]))
    return out[0], out[1]


def orientation(facts: UnitFacts, settings: BiasSettings) -> Array:
    """Orientation of each unit (units,): 1 where side a is the first of `settings.sides`.

    It is -1 where side b is, 0 where it is not known. Raises InputError where leanings are set and
    no unit of the whole table has one.
    """
    if not settings.leanings:
        return np.ones(len(facts.ids))
    table = facts.table
    if table is None or not {*GROUP_COLUMNS} <= {*table.columns}:
        raise InputError(
            f"leanings need the units columns {' and '.join(GROUP_COLUMNS)}; add them or take the "
            "leanings out"
        )
    of_a, of_b = (table[name].map(settings.sign_of) for name in GROUP_COLUMNS)
    told = of_a.where(of_a == -of_b, 0)
    if not told.any():
        raise InputError(
            "no unit has a group of each leaning on its two sides; the leanings must name values "
            f"of {' and '.join(GROUP_COLUMNS)}"
        )
    return np.asarray(told.loc[facts.ids], dtype=float)


def _parts(calls: Calls, facts: UnitFacts, settings: BiasSettings) -> Iterator[_Part]:
    """Yield the whole sample, and the values of the columns that directions are shown by."""
    sign = orientation(facts, settings)[calls.unit]
    yield _Part(calls.subset, *settings.sides, sign)
    for name in SHOWN_BY:
        column = facts.column(name)
        if 1 < len(column.values) <= MAX_VALUES:
            codes = column.codes[calls.unit]
            for code, value in enumerate(column.values):
                subset = calls.part(f"{name}={value}")
                yield _Part(subset, *settings.sides, np.where(codes == code, sign, 0.0))


def _subjects(calls: Calls, facts: UnitFacts, settings: BiasSettings) -> Iterator[_Part]:
    if len(calls.subjects) > MAX_VALUES:
        return
    sign = orientation(facts, settings)[calls.unit]
    for code, subject in enumerate(calls.subjects):
        subset = calls.part(f"subject={subject}")
        yield _Part(subset, *settings.sides, np.where(calls.subject == code, sign, 0.0))


def _groups(calls: Calls, facts: UnitFacts, resamples: Resamples) -> Iterator[_Part]:
    """Yield each group with enough clusters, on either side, against the groups it is paired with.

    Of two groups that are only paired with each other, the first by name is enough.
    """
    a, b = (np.array(facts.cells(name), dtype=object) for name in GROUP_COLUMNS)
    if not a.any() or not b.any():
        return
    a, b = a[calls.unit], b[calls.unit]
    done: set[tuple[str, ...]] = set()
    for group in sorted({*a, *b} - {""}):
        sign = np.where(a == b, 0.0, 1.0 * (a == group) - 1.0 * (b == group))
        others = tuple(sorted({*b[sign > 0], *a[sign < 0]}))
        enough = resamples.count(calls.clusters, sign != 0)[1] >= FEW_CLUSTERS
        mirrored = len(others) == 1 and (others[0], group) in done
        if not enough or mirrored:
            continue
        done.add((group, *others))
        yield _Part(calls.part(f"group={group}"), group, ", ".join(others), sign)
