"""Comparisons of raters: which grader is closer to humans, and which rater is more lenient.

Also the true positive and true negative rates of graders, against the majority or one reference.
Of the units whose majority is affirmative (other), or that the one rater who is declared the
reference affirms, the share that the grader calls so. Ties are left out. The interval is that of
every share (`analysis.bootstrap.intervals`).
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import TypedDict

import numpy as np

from evenhand.analysis.agreement.coefficients import is_tied, label_counts, majority_codes
from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    MIN_SHARED_UNITS,
    deciding_kappa,
    listed_raters,
)
from evenhand.analysis.bootstrap.intervals import Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import clustered_homogeneity, holm, sign_flip
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import About, View, Writer


def add_grader_comparison_rows(view: View) -> None:
    """Add `kappa_difference` and `mcnemar_p` of every two graders.

    Above 12 graders, of the best one and every other.

    The difference is the first's mean kappa with humans minus the second's, on the units that both
    labelled and in the same resamples, so that it is paired.
    """
    coded, resamples, kappas = view.coded, view.resamples, view.once(KappaMeans)
    graders = coded.members("model")
    pairs, name = list(combinations(graders, 2)), deciding_kappa(coded)

    def kappa(grader: int) -> float:
        row = view.rows.get(name, "humans", coded.raters[grader], coded.subset)
        return -math.inf if row is None or math.isnan(row["estimate"]) else row["estimate"]

    if len(graders) > MAX_LISTED_RATERS:
        best = max(graders, key=kappa)
        pairs = [(min(best, g), max(best, g)) for g in graders if g != best]
    humans = coded.members("human")
    majority = majority_codes(label_counts(coded, humans))
    for first, second in pairs:
        within = coded.labelled[:, first] & coded.labelled[:, second]
        units = within & coded.labelled_by_any(humans)
        if view.count(units)[0] < MIN_SHARED_UNITS:
            continue
        one, other = (kappas.with_rater(humans, each, units)[name] for each in (first, second))
        apart, lost = one.values - other.values, max(one.undefined, other.undefined)
        names = About(a=coded.raters[first], b=coded.raters[second])
        view.add("kappa_difference", apart, units, undefined=lost, **names)
        if coded.is_number:
            continue
        # Do the two equally often match the humans' majority? Ties take no part; signs are flipped
        # for whole clusters.
        judged = within & (majority >= 0)
        right = coded.codes[:, [first, second]] == majority[:, None]
        alone = [judged & right[:, a] & ~right[:, 1 - a] for a in (0, 1)]
        found = sign_flip(_by_cluster(coded, resamples, alone[0] * 1.0 - alone[1])[:, 0])
        only_one, only_other = (view.count(units)[0] for units in alone)
        names["note"] = join_notes(
            f"with the humans' majority only the first {only_one}, only the second {only_other}",
            f"mid-p {found.mid_p:.4g}",
            view.as_sampled,
        )
        view.add("mcnemar_p", found.exact, judged, **names)


def add_leniency_rows(view: View) -> None:
    """Add `stuart_maxwell_p` of humans with graders: do they use categories equally often?

    Where there are too many humans to list, the rows are of each grader and all humans together,
    who then count as often as they label. The note adds Holm's correction over the rows of one
    rubric.
    """
    coded, resamples = view.coded, view.resamples
    humans = coded.members("human")
    people = {"humans": humans}
    if len(listed_raters(coded)) == len(coded.raters):
        people = {coded.raters[human]: (human,) for human in humans}
    found = []
    for name, members in people.items():
        counts = label_counts(coded, members)
        for grader in coded.members("model"):
            both = (counts.sum(axis=1) > 0) & coded.labelled[:, grader]
            if both.any():
                own = coded.codes[:, [grader]] == np.arange(coded.q)
                apart = (counts - own * counts.sum(axis=1, keepdims=True)) * both[:, None]
                apart = _by_cluster(coded, resamples, apart)
                if resamples.weight is not None:
                    apart = apart * np.repeat(resamples.weight, resamples.frequency)[:, None]
                p = clustered_homogeneity(apart).p
                found.append((name, coded.raters[grader], both, p))
    for (a, b, both, p), adjusted in zip(found, holm([p for *_, p in found]), strict=True):
        note = "" if np.isnan(p) else f"Holm p {adjusted:.4g}"
        view.add("stuart_maxwell_p", p, both, reason="not_testable", a=a, b=b, note=note)


def _by_cluster(coded: Coded, resamples: Resamples, apart: Array) -> Array:
    """Sum differences of units, (units,) or (units, k), over each cluster: (clusters, k)."""
    sums = resamples.cluster_sums(coded.clusters, apart.reshape(len(apart), -1))
    return resamples.each_cluster(sums)


MAJORITY = ("tpr_majority", "tnr_majority")
REFERENCE = ("tpr_reference", "tnr_reference")


class Rate(TypedDict):
    """A rate with its 95% interval, from `n` units; None where it cannot be estimated."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int


def add_majority_rows(view: View, *, reference: bool = False) -> None:
    """Add `tpr_majority` and `tnr_majority` of every grader on the binary verdict.

    They are `tpr_reference` and `tnr_reference` where the one human is a `reference`.
    """
    coded = view.coded
    for grader in coded.members("model"):
        people, given = coded.people_beside(grader), coded.codes[:, grader]
        if not people:
            continue
        beside = coded.raters[coded.members("human")[0]] if reference else "humans"
        counts = label_counts(coded, people)
        tied, majority = is_tied(counts), majority_codes(counts)
        lone = ~tied & (counts.sum(axis=1) == 1)
        for code, name in enumerate(REFERENCE if reference else MAJORITY):
            whole, found = (majority == code) & (given >= 0), Interval.undefined("no_labels")
            if whole.any() and view.count(whole)[0]:
                both = np.column_stack([whole & (given == code), whole])
                found = Interval(*share_bounds(*view.each_cluster(both).T))
            left_out = _counted(view, tied & (given >= 0), "tied and left out")
            of_one = "" if reference else _counted(view, lone & whole, "labelled by one annotator")
            note = join_notes(left_out, of_one)
            view.add(name, found, whole, a=beside, b=coded.raters[grader], note=note)


def _counted(out: Writer, units: Mask, what: str) -> str:
    count = out.count(units)[0] if units.any() else 0
    return f"{count} {'unit' if count == 1 else 'units'} {what}" if count else ""


def rates_of(rows: ResultRows, people: str, grader: str) -> dict[str, Rate]:
    """Return the rates of one grader for its verdict.

    `tpr` and `tnr` are against the majority of `people` ("humans", or the reference); empty where
    there is no binary verdict.
    """
    found: dict[str, Rate] = {}
    for name in (*MAJORITY, *REFERENCE):
        row = rows.get(name, people, grader, BINARY_ALL)
        if row is not None:
            ends = (row["estimate"], row["low"], row["high"])
            estimate, low, high = (None if np.isnan(end) else end for end in ends)
            rate = Rate(estimate=estimate, low=low, high=high, n=row["n_units"])
            found[name.partition("_")[0]] = rate
    return found
