"""Order of presentation: does a grader change its verdict, or favour what it is shown first?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.bias.audit_rows import AuditRows
from evenhand.analysis.bias.shift import Shift
from evenhand.analysis.bootstrap.resamples import Resamples, Resampling, ratio
from evenhand.analysis.bootstrap.significance import sign_flip
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import LabelMatrix, favour_signs
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import UnitFacts
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Mask
from evenhand.analysis.writer import Writer

if TYPE_CHECKING:
    import pandas as pd

_ORDERS = ("ab", "ba")


def orders_seen(ratings: pd.DataFrame) -> dict[str, tuple[str, ...]]:
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


def listed(names: Sequence[str]) -> str:
    """Join graders' names for use within a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def both_orders_of(
    ratings: pd.DataFrame, scale: Scale, units: pd.DataFrame | None = None, cluster: str = "pair"
) -> dict[str, LabelMatrix]:
    """Return graders that read units in both orders, with each order as a separate rater.

    `ratings` is a validated table of one rubric. Columns are "ab" and "ba"; labels stay in the
    pair's own orientation; a grader's draws within an order are combined.
    """
    ordered = ratings[ratings["rater_kind"].eq("model") & ratings["order"].isin(_ORDERS)]
    orders = ordered.groupby("rater_id", sort=True)["order"].nunique()
    return {
        str(grader): encode(
            combine_readings(own.assign(rater_id=own["order"], order=""), scale),
            scale,
            units,
            cluster,
        )
        for grader, own in ordered.groupby("rater_id", sort=True)
        if orders[grader] == len(_ORDERS)
    }


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
    ratings: pd.DataFrame,
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
