"""Agreement on labels that are sets of options, of which none, one or several apply.

Krippendorff's alpha with MASI's distance between sets (Passonneau 2006): 1 - J M, with J the share
of the options chosen by either that both chose (Jaccard's), and M = 1 for equal sets, 2/3 where one
holds the other, 1/3 where they overlap, and 0 where they have nothing in common. Two empty sets are
equal; an empty one has nothing in common with any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.agreement.groups import groups
from evenhand.analysis.agreement.pairs import (
    RunningMean,
    listed_raters,
    pairs_that_meet,
)
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask, code_type
from evenhand.analysis.writer import About, Writer
from evenhand.rubrics.options import NONE, set_label


def jaccard_distances(sets: Mask) -> Array:
    """Distances (n, n) between sets (n, options).

    >>> jaccard_distances(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    apart: Array = 1.0 - _in_common(sets)
    return apart


def masi_distances(sets: Mask) -> Array:
    """Distances (n, n) between sets (n, options); Passonneau (2006).

    >>> two = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    >>> masi_distances(two).round(3).tolist()
    [[0.0, 0.667, 0.889], [0.667, 0.0, 0.667], [0.889, 0.667, 0.0]]
    """
    number = sets.astype(float)
    both, size = number @ number.T, number.sum(axis=1)
    holds = (both == size[:, None]) | (both == size)
    equal = (both == size[:, None]) & (both == size)
    alike = np.select([equal, holds & (both > 0), both > 0], [1.0, 2.0 / 3.0, 1.0 / 3.0], 0.0)
    apart: Array = 1.0 - _in_common(sets) * alike
    return apart


def _in_common(sets: Mask) -> Array:
    number = sets.astype(float)
    both, size = number @ number.T, number.sum(axis=1)
    either = size[:, None] + size - both
    return np.asarray(np.where(either > 0, both / np.maximum(either, 1.0), 1.0))


ALPHA = "krippendorff_alpha_masi"


def sets_of(options: Sequence[Coded], keys: Sequence[str]) -> tuple[Coded, Mask]:
    """Return the sets of options as labels, and which options each holds (sets, options).

    `options` are the answers to each option on the same units by the same raters, code 0 for yes;
    where one is missing, so is the set.
    """
    said = np.stack([each.codes for each in options], axis=-1)
    known = (said >= 0).all(axis=-1)
    found, which = np.unique(said[known] == 0, axis=0, return_inverse=True)
    first = options[0]
    codes = np.full(first.codes.shape, -1, dtype=code_type(max(len(found), 128)))
    codes[known] = which.reshape(-1)
    names = [set_label(np.array(keys)[own].tolist(), keys) or NONE for own in found]
    coded = Coded(
        raters=first.raters,
        kinds=first.kinds,
        codes=codes,
        clusters=first.clusters,
        categories=tuple(names),
        values=tuple(float(at) for at in range(len(found))),
        level="nominal",
        subset="all",
        copies=first.copies,
    )
    return coded, found


def set_alphas(counts: Array, sets: Mask, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Alpha (rows,) and `observed_agreement`, the share of pairs of labels on a unit that are the
    same set, by name, from label counts (units, sets).
    """
    labels = counts.sum(axis=1)
    several = labels >= 2
    counts = counts * several[:, None]
    others = np.where(several, labels - 1.0, 1.0)
    apart = masi_distances(sets)
    within = ((counts @ apart) * counts).sum(axis=1) / others
    alike = (counts * (counts - 1.0)).sum(axis=1) / others
    sums = resamples.sums(coded.clusters, several, ratio(alike, labels * several), within, counts)
    totals = sums[:, 3:]
    pairable = totals.sum(axis=1) - 1.0
    expected = ((totals @ apart) * totals).sum(axis=1)
    defined = expected > 1e-12
    share = pairable * sums[:, 2] / np.where(defined, expected, 1.0)
    return {
        "observed_agreement": ratio(sums[:, 1], sums[:, 0]),
        ALPHA: np.where(defined, 1.0 - share, np.nan),
    }


def add_set_rows(rows: ResultRows, coded: Coded, sets: Mask, resamples: Resamples) -> None:
    """Add `krippendorff_alpha_masi` and `observed_agreement` of every group, of every pair of
    listed raters, and of each grader with humans, a mean over the humans in which each counts by
    the units that it shares with the grader.
    """
    out = Writer.of(rows, coded, resamples)

    def found(members: Sequence[int]) -> tuple[dict[str, Array], Mask]:
        counts = label_counts(coded, members)
        return set_alphas(counts, sets, coded, resamples), counts.sum(axis=1) >= 2

    for a, b in pairs_that_meet(coded, listed_raters(coded)):
        values, units = found([a, b])
        for name, each in values.items():
            out.add(name, each, units, a=coded.raters[a], b=coded.raters[b])
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        pairs = [pair for human in people for pair in pairs_that_meet(coded, (human, grader))]
        means = {name: RunningMean(len(resamples)) for name in ("observed_agreement", ALPHA)}
        units = np.zeros(len(coded.codes), dtype=bool)
        for pair in pairs:
            values, both = found(pair)
            units |= both
            sizes = out.sums(both)
            for name, each in values.items():
                means[name].add(each[:, None], sizes)
        for name, mean in means.items() if pairs else ():
            whole = mean.result()
            lost = whole.undefined
            who = About(a="humans", b=coded.raters[grader], note=whole.note)
            out.add(name, whole.values, units, undefined=lost, **who)
    for group, members in groups(coded).items():
        values, units = found(members)
        why: Code = "no_variation" if units.any() else "no_pairable_units"
        for name, each in values.items():
            out.add(name, each, units, a=group, reason=why)
