"""Agreement category by category, and which categories are taken for which."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.groups import groups, label_counts
from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS, data_table, table_chunks
from evenhand.analysis.bootstrap.resamples import Interval, Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code
from evenhand.analysis.results import ResultRows, from_to

__all__ = ["add_category_rows", "group_specific_agreement"]

Array = npt.NDArray[np.float64]

NOT_USED: Code = "category_not_used"


def add_category_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """`specific_agreement` (at = category) of groups, graders with humans, and pairs; `confusion`.

    `confusion` (at = "A>B") counts the units where `rater_a` says A and `rater_b` says B, for every
    pair of raters that is listed; of "humans" with a grader, the pairs of labels, one of any human.
    On the binary verdict specific agreement is positive and negative agreement.
    """
    for group, members in groups(coded).items():
        counts = label_counts(coded, members)
        values = group_specific_agreement(counts, coded, resamples)
        paired = counts * (counts.sum(axis=1, keepdims=True) >= 2)
        _add_specific(rows, coded, resamples, values, paired > 0, (group, ""))
    humans = coded.members("human")
    for grader in coded.members("model"):
        if humans:
            _add_with_humans(rows, coded, resamples, humans, grader)
            _add_confusion_with_humans(rows, coded, resamples, humans, grader)
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    pairs = [
        (a, b)
        for a, b in combinations(range(len(coded.raters)), 2)
        if (coded.labelled[:, a] & coded.labelled[:, b]).any()
    ]
    for chunk, tables in table_chunks(coded, pairs, resamples):
        each = c.specific_agreement(tables)
        for k, (a, b) in enumerate(chunk):
            both = coded.labelled[:, a] & coded.labelled[:, b]
            own = coded.codes[:, [a, b], None] == np.arange(coded.q)
            names = (coded.raters[a], coded.raters[b])
            used = own.any(axis=1) & both[:, None]
            _add_specific(rows, coded, resamples, each[:, k], used, names)
            _add_confusion(rows, coded, resamples, (a, b))


def group_specific_agreement(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Specific agreement of a group (rows, q) from label counts (units, q).

    Of all ordered pairs of labels on a unit whose first is the category, the share whose second is
    too (Uebersax 1982; with two raters Dice's index).
    """
    labels = counts.sum(axis=1, keepdims=True)
    features = np.hstack([counts * (counts - 1.0), counts * np.maximum(labels - 1.0, 0.0)])
    same, every = np.split(
        resamples.totals(resamples.cluster_sums(coded.clusters, features)), 2, axis=1
    )
    return np.asarray(np.divide(same, every, out=np.full(same.shape, np.nan), where=every > 0))


def _add_with_humans(
    rows: ResultRows, coded: Coded, resamples: Resamples, humans: tuple[int, ...], grader: int
) -> None:
    """A grader with all humans: every pair of labels, one of them the grader's, counts once."""
    counts = label_counts(coded, humans)
    own = (coded.codes[:, [grader]] == np.arange(coded.q)).astype(float)
    held = own.sum(axis=1, keepdims=True)
    either = counts * held + own * counts.sum(axis=1, keepdims=True)
    sums = resamples.totals(
        resamples.cluster_sums(coded.clusters, np.hstack([2.0 * counts * own, either]))
    )
    same, every = np.split(sums, 2, axis=1)
    values = np.divide(same, every, out=np.full(same.shape, np.nan), where=every > 0)
    _add_specific(rows, coded, resamples, values, either > 0, ("humans", coded.raters[grader]))


def _add_specific(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    values: Array,
    used: npt.NDArray[np.bool_],
    raters: tuple[str, str],
) -> None:
    """One row per category; `used` (units, q) says on which units it was in play."""
    for code, category in enumerate(coded.categories):
        numbers = resamples.count(coded.clusters, used[:, code])
        rows.add(
            "specific_agreement",
            resamples.interval(values[:, code], numbers[1], reason=NOT_USED),
            numbers,
            rater_a=raters[0],
            rater_b=raters[1],
            subset=coded.subset,
            at=category,
        )


def _add_confusion(
    rows: ResultRows, coded: Coded, resamples: Resamples, pair: tuple[int, int]
) -> None:
    both = coded.labelled[:, pair[0]] & coded.labelled[:, pair[1]]
    numbers = resamples.count(coded.clusters, both)
    names = (coded.raters[pair[0]], coded.raters[pair[1]])
    _add_cells(rows, coded, data_table(coded, *pair, resamples), numbers, names)


def _add_confusion_with_humans(
    rows: ResultRows, coded: Coded, resamples: Resamples, humans: tuple[int, ...], grader: int
) -> None:
    table = sum(
        (data_table(coded, human, grader, resamples) for human in humans),
        start=np.zeros((coded.q, coded.q)),
    )
    either = coded.labelled_by_any(humans) & coded.labelled[:, grader]
    numbers = resamples.count(coded.clusters, either)
    _add_cells(rows, coded, table, numbers, ("humans", coded.raters[grader]))


def _add_cells(
    rows: ResultRows,
    coded: Coded,
    table: Array,
    numbers: tuple[int, int],
    raters: tuple[str, str],
) -> None:
    for row, a in zip(table, coded.categories, strict=True):
        for count, b in zip(row, coded.categories, strict=True):
            rows.add(
                "confusion",
                Interval(float(count), np.nan, np.nan),
                numbers,
                rater_a=raters[0],
                rater_b=raters[1],
                subset=coded.subset,
                at=from_to(a, b),
            )
