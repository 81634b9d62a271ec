"""Position bias: a side of the pair that is favoured, and the order of presentation.

A grader may favour a side more than humans do; shown the pair in the other order, it may change its
verdict or favour what it is shown first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.analysis.bias.findings import FEW_CLUSTERS, AuditRows
from evenhand.analysis.bias.shift import BesidePeople, Calls, Shift
from evenhand.analysis.bootstrap.resamples import Resamples, Resampling, ratio
from evenhand.analysis.bootstrap.significance import sign_flip
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import LabelMatrix, favour_signs
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import MAX_VALUES, UnitColumn, UnitFacts
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.results import ResultRows, from_to
from evenhand.analysis.types import Array, DataFrame, Mask
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
    people, sides = calls.people, []
    count = (~np.isnan(people)).sum(axis=1).astype(float)
    for side in (1.0, -1.0):  # how far the mean human and every grader favour side a, and side b
        mean = ratio(np.maximum(np.nan_to_num(people) * side, 0.0).sum(axis=1), count)
        own = np.maximum(calls.values[:, list(calls.graders)] * side, 0.0)
        sides.append(np.column_stack([mean, own]))
    for part in _parts(calls, facts, settings, by_subject=True):
        _add_directions(rows, calls, (sides[0], sides[1]), part, resamples)
    for part in _groups(calls, facts, resamples):
        _add_directions(rows, calls, (sides[0], sides[1]), part, resamples)


def add_side_rows(audit: AuditRows, calls: Calls, facts: UnitFacts, settings: BiasSettings) -> None:
    """Add `bias_side` of every grader: its net direction minus that of humans, scaled (see
    `analysis.bias.shift`).
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
    """Add the row of every rater that called a unit of this part. `sides` are how far the mean
    human and every grader favour side a and side b, (units, 1 + graders), NaN for no call.
    """
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


def _parts(
    calls: Calls, facts: UnitFacts, settings: BiasSettings, *, by_subject: bool = False
) -> Iterator[_Part]:
    """Yield the whole sample, and the values of the columns that directions are shown by."""
    sign = orientation(facts, settings)[calls.unit]
    yield _Part(calls.subset, *settings.sides, sign)
    columns = [
        replace(column, codes=column.codes[calls.unit])
        for column in map(facts.column, SHOWN_BY)
        if 1 < len(column.values) <= MAX_VALUES
    ]
    if by_subject and len(calls.subjects) <= MAX_VALUES:
        columns.append(UnitColumn("subject", calls.subjects, calls.subject))
    for name, chosen in (part for column in columns for part in column.parts()):
        yield _Part(calls.part(name), *settings.sides, np.where(chosen, sign, 0.0))


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


_ORDERS = ("ab", "ba")


def orders_seen(ratings: DataFrame) -> dict[str, tuple[str, ...]]:
    """Return the orders in which each grader read pairs; graders without known orders are left out.

    `ratings` is a validated table of one rubric.
    """
    ordered = ratings[ratings["rater_kind"].eq("model") & ratings["order"].isin(_ORDERS)]
    seen = ordered.groupby("rater_id", sort=True)["order"].unique()
    return {str(grader): tuple(sorted(orders)) for grader, orders in seen.items()}


def by_orders(seen: Mapping[str, tuple[str, ...]]) -> dict[str, list[str]]:
    """Group graders by "both_orders" and "one_order".

    >>> by_orders({"a": ("ab",), "b": ("ab", "ba"), "c": ("ab",)})
    {'one_order': ['a', 'c'], 'both_orders': ['b']}
    """
    found: dict[str, list[str]] = {}
    for grader, orders in seen.items():
        found.setdefault("both_orders" if len(orders) > 1 else "one_order", []).append(grader)
    return found


def both_orders_of(
    ratings: DataFrame, scale: Scale, units: DataFrame | None = None, cluster: str = "pair"
) -> dict[str, LabelMatrix]:
    """Return graders that read units in both orders, with each order as a separate rater.

    `ratings` is a validated table of one rubric. Columns are "ab" and "ba"; labels stay in the
    pair's own orientation; a grader's draws within an order are combined.
    """
    ordered = ratings[ratings["rater_kind"].eq("model") & ratings["order"].isin(_ORDERS)]
    orders = ordered.groupby("rater_id", sort=True)["order"].nunique()
    found = {}
    for grader, own in ordered.groupby("rater_id", sort=True):
        if orders[grader] == len(_ORDERS):
            readings = combine_readings(own.assign(rater_id=own["order"], order=""), scale)
            found[str(grader)] = encode(readings, scale, units, cluster)
    return found


def add_order_rows(
    audit: AuditRows,
    matrices: Mapping[str, LabelMatrix],
    resampled: Resampling,
) -> None:
    """Add `bias_order_flips` of every grader that read both orders.

    Where options favour a side, `bias_order_first` and `bias_order` are added too.

    Flips are units labelled differently in the two orders. Of those that move from one side to
    another, or to neither, `bias_order_first` is the share that move to the side shown first;
    `bias_order` is the net gain of a side from being shown first, per unit. Its p is exact, by
    flipping the signs of the clusters' moves.
    """
    for grader, matrix in matrices.items():
        both = np.asarray((matrix.codes >= 0).all(axis=1))
        if both.any():
            each_once = np.ones(matrix.n_clusters, dtype=np.int64)
            own = AuditRows(audit.rows, partial(resampled, each_once, matrix.weight))
            _add_grader(own, grader, matrix, both)
            audit.take(own)


def add_people_order_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    ratings: DataFrame,
    facts: UnitFacts,
    resamples: Resamples,
) -> None:
    """Add `order_gain` of the humans together: what being shown first gains a side.

    It is half the difference between how far labels given in order ab favour side a and how far
    those given in order ba do, as `bias_order` would be if one human read both. Each human sees a
    unit once, so that the labels in the two orders are of different humans or units. `facts`
    describe the units of `labels` in the same order.
    """
    own = ratings[
        ratings["rater_kind"].eq("human") & ratings["draw"].eq(0) & ratings["label"].ne("")
    ]
    own = own[own["order"].isin(_ORDERS)]
    if own["order"].nunique() < len(_ORDERS):
        return
    signs = favour_signs(labels.scale.categories, labels.scale.favours)
    code = {category: at for at, category in enumerate(labels.scale.categories)}
    sign = signs[own["label"].map(code).to_numpy(dtype=np.intp)]
    place = {unit: at for at, unit in enumerate(facts.ids)}
    unit = own["unit_id"].map(place).to_numpy(dtype=np.intp)
    features = []
    for order in _ORDERS:
        shown = own["order"].eq(order).to_numpy()
        for each in (sign, np.ones(len(sign))):
            features.append(np.bincount(unit[shown], each[shown], minlength=len(place)))
    out = Writer(rows, resamples, labels.clusters)
    ab, n_ab, ba, n_ba = out.sums(*features).T
    gain = (ratio(ab, n_ab) - ratio(ba, n_ba)) / 2.0
    note = f"{int(features[1].sum())} labels in order ab, {int(features[3].sum())} in order ba"
    out.add("order_gain", gain, features[1] + features[3] > 0, a="humans", note=note)


def _add_grader(audit: AuditRows, grader: str, matrix: LabelMatrix, both: Mask) -> None:
    codes, clusters = matrix.codes[both], matrix.clusters[both]
    counts = audit.resamples.count(matrix.clusters, both)
    flipped = codes[:, 0] != codes[:, 1]
    signs = favour_signs(matrix.scale.categories, matrix.scale.favours)
    # With order ab side a comes first: a positive move is one to the side shown first.
    move = signs[codes[:, 0]] - signs[codes[:, 1]]
    features = np.ones(len(codes)), flipped, move / 2.0, move > 0, move != 0
    n, flips, net, first, moves = audit.resamples.sums(clusters, *features).T
    add = partial(audit.add, grader=grader, subset="all", alone=True)
    add("bias_order_flips", shift=Shift(ratio(flips, n), counts, f"{flipped.sum()} flips"))
    if not matrix.scale.favours:
        return
    to_first, to_second = int((move > 0).sum()), int((move < 0).sum())
    weighted = audit.resamples.weight is not None  # the exact p is for equally weighted pairs
    found = sign_flip(np.bincount(clusters, weights=np.sign(move)))
    note = join_notes(
        f"{to_first} to the side shown first, {to_second} to the second",
        f"exact p {found.exact:.4g}, mid-p {found.mid_p:.4g}",
        Remark("as_sampled") if weighted else "",
    )
    add("bias_order_first", shift=Shift(ratio(first, moves), counts, note))
    gain = Shift(ratio(net, n), counts, note)
    add("bias_order", shift=gain, exact_p=None if weighted else found.exact)
