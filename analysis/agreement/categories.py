"""Agreement on each category, and which categories are confused with each other."""

from __future__ import annotations

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.agreement.groups import groups
from evenhand.analysis.agreement.pairs import (
    data_table,
    listed_raters,
    pairs_that_meet,
    table_chunks,
)
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code
from evenhand.analysis.results import ResultRows, from_to
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import Writer

NOT_USED: Code = "category_not_used"


def add_category_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `specific_agreement` (at = category) of groups, humans with graders, and pairs.

    Also adds `confusion`.

    `confusion` (at = "A>B") counts the units where `rater_a` says A and `rater_b` says B, for every
    listed pair of raters; for "humans" with a grader it counts pairs of labels, one from any human.
    For the binary verdict, specific agreement is positive and negative agreement.
    """
    out = Writer.of(rows, coded, resamples)
    for group, members in groups(coded).items():
        counts = label_counts(coded, members)
        values = group_specific_agreement(counts, coded, resamples)
        paired = counts * (counts.sum(axis=1, keepdims=True) >= 2)
        _add_specific(out, coded, values, paired > 0, (group, ""))
    humans = coded.members("human")
    for grader in coded.members("model"):
        if humans:
            _add_with_humans(out, coded, humans, grader)
    pairs = pairs_that_meet(coded, listed_raters(coded))
    for chunk, tables in table_chunks(coded, pairs, resamples):
        each = c.specific_agreement(tables)
        for k, (a, b) in enumerate(chunk):
            both = coded.labelled[:, a] & coded.labelled[:, b]
            own = coded.codes[:, [a, b], None] == np.arange(coded.q)
            names = (coded.raters[a], coded.raters[b])
            _add_specific(out, coded, each[:, k], own.any(axis=1) & both[:, None], names)
            _add_confusion(out, coded, data_table(coded, a, b, resamples), both, names)


def group_specific_agreement(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Specific agreement of a group (rows, q) from label counts (units, q).

    Of all ordered pairs of labels on a unit whose first is the category, the share whose second is
    too (Uebersax 1982; with two raters Dice's index).
    """
    others = np.maximum(counts.sum(axis=1, keepdims=True) - 1.0, 0.0)
    sums = resamples.sums(coded.clusters, counts * (counts - 1.0), counts * others)
    return ratio(*np.split(sums, 2, axis=1))


def _add_with_humans(out: Writer, coded: Coded, humans: tuple[int, ...], grader: int) -> None:
    """Add rows of a grader with all humans: each pair of labels with the grader counts once."""
    names = ("humans", coded.raters[grader])
    counts = label_counts(coded, humans)
    own = (coded.codes[:, [grader]] == np.arange(coded.q)).astype(float)
    held = own.sum(axis=1, keepdims=True)
    either = counts * held + own * counts.sum(axis=1, keepdims=True)
    values = ratio(*np.split(out.sums(2.0 * counts * own, either), 2, axis=1))
    _add_specific(out, coded, values, either > 0, names)
    tables = [data_table(coded, human, grader, out.resamples) for human in humans]
    met = coded.labelled_by_any(humans) & coded.labelled[:, grader]
    _add_confusion(out, coded, np.sum(tables, axis=0), met, names)


def _add_specific(
    out: Writer, coded: Coded, values: Array, used: Mask, raters: tuple[str, str]
) -> None:
    """Add one row per category; `used` (units, q) marks the units on which it was used."""
    a, b = raters
    for category, each, units in zip(coded.categories, values.T, used.T, strict=True):
        out.add("specific_agreement", each, units, a=a, b=b, at=category, reason=NOT_USED)


def _add_confusion(
    out: Writer, coded: Coded, table: Array, both: Mask, raters: tuple[str, str]
) -> None:
    (a, b), units = raters, out.count(both)
    for first, row in zip(coded.categories, table, strict=True):
        for second, count in zip(coded.categories, row, strict=True):
            at, note = from_to(first, second), out.as_sampled
            out.add_value("confusion", float(count), units, a=a, b=b, at=at, note=note)
