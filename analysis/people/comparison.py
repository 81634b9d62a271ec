"""Two raters set against each other: which grader is nearer to people, and who is more lenient."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    MIN_SHARED_UNITS,
    KappaMeans,
    data_table,
    deciding_kappa,
    shared_units,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.significance import (
    holm,
    mcnemar_exact,
    mcnemar_mid_p,
    stuart_maxwell,
)
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Codes

_UNITS_ALONE = "takes units as independent"


def add_grader_comparison_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """`kappa_difference` and `mcnemar_p` of every two graders.

    The difference is the first's mean kappa with humans less the second's, on the units that both
    labelled and in the same resamples, so that it is paired.
    """
    coded, resamples = kappas.coded, kappas.resamples
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    majority = majority_codes(label_counts(coded, coded.members("human")))
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
        rows.add(
            "kappa_difference",
            resamples.interval(
                by_grader[0].values - by_grader[1].values,
                numbers[1],
                undefined=max(mean.undefined for mean in by_grader),
            ),
            numbers,
            rater_a=coded.raters[first],
            rater_b=coded.raters[second],
            subset=coded.subset,
        )
        _add_mcnemar_row(rows, coded, resamples, (first, second), majority)


def _add_mcnemar_row(
    rows: ResultRows,
    coded: Coded,
    resamples: Resamples,
    graders: tuple[int, int],
    majority: Codes,
) -> None:
    """`mcnemar_p`, exact: are the two graders equally often of the humans' majority's mind?

    Units without a majority (ties) take no part.
    """
    judged = (coded.labelled[:, list(graders)].all(axis=1)) & (majority >= 0)
    frequency = resamples.frequency[coded.clusters[judged]]
    right = coded.codes[judged][:, list(graders)] == majority[judged, None]
    alone = [int(frequency[right[:, a] & ~right[:, 1 - a]].sum()) for a in (0, 1)]
    rows.add(
        "mcnemar_p",
        Interval(mcnemar_exact(*alone), np.nan, np.nan),
        resamples.count(coded.clusters, judged),
        rater_a=coded.raters[graders[0]],
        rater_b=coded.raters[graders[1]],
        subset=coded.subset,
        note=join_notes(
            f"with the humans' majority only the first {alone[0]}, only the second {alone[1]}",
            f"mid-p {mcnemar_mid_p(*alone):.4g}",
            _UNITS_ALONE,
        ),
    )


def add_leniency_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """`stuart_maxwell_p` of each human and grader: do they use the categories equally often?

    Stuart 1955 and Maxwell 1970; with two categories McNemar's test without correction. The note
    adds Holm's correction over the pairs of one rubric.
    """
    coded, resamples = kappas.coded, kappas.resamples
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    found = []
    for human in coded.members("human"):
        for grader in coded.members("model"):
            table = data_table(coded, human, grader, resamples)
            if table.any():
                found.append((human, grader, stuart_maxwell(table).p))
    adjusted = iter(holm([p for *_, p in found if not np.isnan(p)]))
    for human, grader, p in found:
        undefined = np.isnan(p)
        both = coded.labelled[:, human] & coded.labelled[:, grader]
        rows.add(
            "stuart_maxwell_p",
            Interval.point(p, Remark("not_testable") if undefined else ""),
            resamples.count(coded.clusters, both),
            rater_a=coded.raters[human],
            rater_b=coded.raters[grader],
            subset=coded.subset,
            note="" if undefined else join_notes(f"Holm p {next(adjusted):.4g}", _UNITS_ALONE),
        )
