"""The rows of every pair of raters, and of each grader with people in general."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    PairStatistic,
    eligible_pairs,
    mean_over_pairs,
    pair_statistics,
    shared_units,
    table_chunks,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows, join_notes

__all__ = ["add_humans_rows", "add_pair_rows"]


def add_pair_rows(rows: ResultRows, coded: Coded, resamples: Resamples, prefix: str = "") -> None:
    """Every pair of raters that share units (unless there are too many raters to list).

    `prefix` goes before the statistics' names, for labels that are not on single units.
    """
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    shared = shared_units(coded, resamples)
    pairs = [pair for pair in combinations(range(len(coded.raters)), 2) if shared[pair] > 0]
    statistics = _chosen(pair_statistics(coded), prefix)
    for chunk, tables in table_chunks(coded, pairs, resamples):
        constant = c.constant_raters(tables[0])
        for name, statistic in statistics.items():
            values = statistic(tables)
            flagged = constant & ("kappa" in name) & ~np.isnan(values[0])
            for k, (a, b) in enumerate(chunk):
                counts = resamples.count(
                    coded.clusters, coded.labelled[:, a] & coded.labelled[:, b]
                )
                rows.add(
                    prefix + name,
                    resamples.interval(values[:, k], counts[1]),
                    counts,
                    rater_a=coded.raters[a],
                    rater_b=coded.raters[b],
                    subset=coded.subset,
                    note=Remark("constant_rater") if flagged[k] else "",
                )


def add_humans_rows(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    prefix: str = "",
    names: Sequence[str] = (),
    kind: str = "model",
) -> None:
    """Each grader, or rater of another kind, against people in general: the mean over the humans.

    Only the statistics in `names`, if any are given.
    """
    shared = shared_units(coded, resamples)
    humans = coded.members("human")
    statistics = _chosen(pair_statistics(coded), prefix, names)
    for grader in coded.members(kind):
        pairs, about = eligible_pairs([(human, grader) for human in humans], shared)
        if not pairs:
            continue
        people = [human for human, _ in pairs]
        either = coded.labelled_by_any(people) & coded.labelled[:, grader]
        counts = resamples.count(coded.clusters, either)
        used = set(coded.codes[either, grader].tolist())
        for name, mean in mean_over_pairs(coded, pairs, resamples, statistics).items():
            constant = Remark("constant_rater") if len(used) == 1 and "kappa" in name else ""
            rows.add(
                prefix + name,
                resamples.interval(mean.values, counts[1], undefined=mean.undefined),
                counts,
                rater_a="humans",
                rater_b=coded.raters[grader],
                subset=coded.subset,
                note=join_notes(constant, mean.note, about),
            )


def _chosen(
    statistics: dict[str, PairStatistic], prefix: str, names: Sequence[str] = ()
) -> dict[str, PairStatistic]:
    """With a prefix, only agreement and kappa: the two that speak of a study's overall verdicts."""
    wanted = ("observed_agreement", "cohen_kappa") if prefix else (names or tuple(statistics))
    return {name: statistics[name] for name in wanted}
