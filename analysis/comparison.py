"""Two raters set against each other: which grader is nearer to people, and who is more lenient."""

from __future__ import annotations

import warnings
from itertools import combinations

import numpy as np
import numpy.typing as npt

from analysis.encoding import Coded
from analysis.pairs import (
    MAX_LISTED_RATERS,
    MIN_SHARED_UNITS,
    KappaMeans,
    deciding_kappa,
    pair_tables,
    shared_units,
)
from analysis.resampling import Interval, interval
from analysis.results import ResultRows, join_notes

__all__ = ["add_grader_comparison_rows", "add_leniency_rows", "majority_codes", "mcnemar_p"]

Array = npt.NDArray[np.float64]

_UNITS_ALONE = "takes units as independent"


def add_grader_comparison_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """`kappa_difference` of every two graders: mean kappa with humans, first less second.

    On the units that both labelled and in the same resamples, so that the difference is paired. The
    note adds McNemar's exact p on agreement with the humans' majority.
    """
    coded, resamples = kappas.coded, kappas.resamples
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    majority = majority_codes(coded)
    for first, second in combinations(coded.members("model"), 2):
        within = coded.labelled[:, first] & coded.labelled[:, second]
        shared = shared_units(coded, resamples, within)
        humans = [h for h in coded.members("human") if shared[h, first] >= MIN_SHARED_UNITS]
        if not humans:
            continue
        by_grader = [
            kappas.over([(human, grader) for human in humans], within)[deciding_kappa(coded)]
            for grader in (first, second)
        ]
        numbers = resamples.count(coded.clusters, within & coded.labelled_by_any(humans))
        judged = within & (majority >= 0)
        p = mcnemar_p(
            coded.codes[judged, first] == majority[judged],
            coded.codes[judged, second] == majority[judged],
            resamples.frequency[coded.clusters[judged]],
        )
        rows.add(
            "kappa_difference",
            interval(
                by_grader[0].values - by_grader[1].values,
                numbers[1],
                undefined=max(mean.undefined for mean in by_grader),
            ),
            numbers,
            rater_a=coded.raters[first],
            rater_b=coded.raters[second],
            subset=coded.subset,
            note=f"McNemar exact p {p:.4g} ({_UNITS_ALONE})",
        )


def add_leniency_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """`stuart_maxwell_p` of each human and grader: do they use the categories equally often?

    Stuart 1955 and Maxwell 1970; with two categories McNemar's test without correction. The note
    has the p adjusted by Holm over the rubric's pairs of a human and a grader.
    """
    from statsmodels.stats.multitest import multipletests

    coded, resamples = kappas.coded, kappas.resamples
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    found: list[tuple[int, int, float]] = []
    for human in coded.members("human"):
        for grader in coded.members("model"):
            both = coded.labelled[:, human] & coded.labelled[:, grader]
            if both.any():
                table = pair_tables(coded, [(human, grader)], resamples)[0, 0]
                found.append((human, grader, _stuart_maxwell_p(table)))
    defined = [p for *_, p in found if not np.isnan(p)]
    adjusted = iter(multipletests(defined, method="holm")[1] if defined else ())
    for human, grader, p in found:
        undefined = np.isnan(p)
        both = coded.labelled[:, human] & coded.labelled[:, grader]
        rows.add(
            "stuart_maxwell_p",
            Interval(p, np.nan, np.nan, "not_testable" if undefined else ""),
            resamples.count(coded.clusters, both),
            rater_a=coded.raters[human],
            rater_b=coded.raters[grader],
            subset=coded.subset,
            note="" if undefined else join_notes(f"Holm p {next(adjusted):.4g}", _UNITS_ALONE),
        )


def majority_codes(coded: Coded) -> npt.NDArray[np.intp]:
    """The category that most humans chose (units,), -1 for none or a tie."""
    codes = coded.codes[:, list(coded.members("human"))]
    counts = np.stack([(codes == code).sum(axis=1) for code in range(coded.q)], axis=1)
    most = counts.max(axis=1)
    alone = ((counts == most[:, None]).sum(axis=1) == 1) & (most > 0)
    return np.where(alone, counts.argmax(axis=1), -1)


def mcnemar_p(
    first: npt.NDArray[np.bool_],
    second: npt.NDArray[np.bool_],
    frequency: npt.NDArray[np.int64],
) -> float:
    """McNemar's exact two-sided p of two graders being right (units,) equally often.

    Where they are never right apart there is nothing to test, and p is 1.

    >>> right = np.array([True] * 9 + [False])
    >>> mcnemar_p(right, ~right, np.ones(10, dtype=int)).__round__(4)
    0.0215
    """
    from statsmodels.stats.contingency_tables import mcnemar

    cells = [frequency[a & b].sum() for a in (first, ~first) for b in (second, ~second)]
    if cells[1] + cells[2] == 0:
        return 1.0
    return float(mcnemar(np.reshape(cells, (2, 2)), exact=True).pvalue)


def _stuart_maxwell_p(table: Array) -> float:
    """NaN where no two categories are ever confused, or only within groups of categories."""
    from statsmodels.stats.contingency_tables import SquareTable

    apart = table - np.diag(np.diag(table))
    confused = (apart.sum(axis=0) + apart.sum(axis=1)) > 0
    if np.array_equal(apart.sum(axis=0), apart.sum(axis=1)):
        return 1.0
    with warnings.catch_warnings():
        # Groups of categories confused among themselves only: the covariance is singular.
        warnings.simplefilter("ignore")
        square = SquareTable(table[np.ix_(confused, confused)], shift_zeros=False)
        return float(square.homogeneity().pvalue)
