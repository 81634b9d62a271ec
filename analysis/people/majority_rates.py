"""True positive and true negative rates of graders, against the majority or one reference.

Of the units whose majority is affirmative (other), or that the one rater who is declared the
reference affirms, the share that the grader calls so. Ties are left out. The interval is that of
every share (`analysis.bootstrap.shares`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

import numpy as np

from evenhand.analysis.agreement.counts import is_tied, label_counts, majority_codes
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.shares import share_bounds
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import Writer

MAJORITY = ("tpr_majority", "tnr_majority")
REFERENCE = ("tpr_reference", "tnr_reference")


class Rate(TypedDict):
    """A rate with its 95% interval, from `n` units; None where it cannot be estimated."""

    estimate: float | None
    low: float | None
    high: float | None
    n: int


def add_majority_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, *, reference: bool = False
) -> None:
    """Add `tpr_majority` and `tnr_majority` of every grader on the binary verdict.

    They are `tpr_reference` and `tnr_reference` where the one human is a `reference`.
    """
    out = Writer.of(rows, coded, resamples)
    for grader, counts in _graders(coded):
        beside = coded.raters[coded.members("human")[0]] if reference else "humans"
        own, tied = coded.codes[:, grader] >= 0, is_tied(counts)
        lone = ~tied & (counts.sum(axis=1) == 1)
        for code, name in enumerate(REFERENCE if reference else MAJORITY):
            whole, found = _share(coded, counts, grader, code, resamples)
            left_out = _counted(out, tied & own, "tied and left out")
            of_one = "" if reference else _counted(out, lone & whole, "labelled by one person")
            note = join_notes(left_out, of_one)
            out.add_interval(name, found, whole, a=beside, b=coded.raters[grader], note=note)


def _graders(coded: Coded) -> Iterator[tuple[int, Array]]:
    """Yield each grader with label counts (units, 2) of the humans whose labels it does not
    repeat.
    """
    for grader in coded.members("model"):
        if people := coded.people_beside(grader):
            yield grader, label_counts(coded, people)


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
            found[name.partition("_")[0]] = Rate(
                estimate=estimate, low=low, high=high, n=row["n_units"]
            )
    return found


def _share(
    coded: Coded, counts: Array, grader: int, code: int, resamples: Resamples
) -> tuple[Mask, Interval]:
    """Estimate the share of a code's units that the grader gives the code too.

    Returns the units (units,) that the majority gives the code, and the share with its interval.
    """
    own = coded.codes[:, grader]
    whole = (majority_codes(counts) == code) & (own >= 0)
    if not (whole.any() and resamples.count(coded.clusters, whole)[0]):
        return whole, Interval.undefined("no_labels")
    sums = resamples.cluster_sums(coded.clusters, np.column_stack([whole & (own == code), whole]))
    if resamples.weight is not None:
        sums = sums * resamples.weight[:, None]
    parts, wholes = resamples.each_cluster(sums).T
    return whole, Interval(*share_bounds(parts, wholes))
