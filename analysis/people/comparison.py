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
from evenhand.analysis.bootstrap.significance import (
    holm,
    mcnemar_exact,
    mcnemar_mid_p,
    stuart_maxwell,
)
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import join_notes
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Codes
from evenhand.analysis.writer import About, Writer

_UNITS_ALONE = "takes units as independent"


def add_grader_comparison_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """`kappa_difference` and `mcnemar_p` of every two graders.

    The difference is the first's mean kappa with humans less the second's, on the units that both
    labelled and in the same resamples, so that it is paired.
    """
    coded, resamples = kappas.coded, kappas.resamples
    if len(coded.raters) > MAX_LISTED_RATERS:
        return
    out = Writer.of(rows, coded, resamples)
    majority = majority_codes(label_counts(coded, coded.members("human")))
    for first, second in combinations(coded.members("model"), 2):
        within = coded.labelled[:, first] & coded.labelled[:, second]
        shared = shared_units(coded, resamples, within)
        humans = [h for h in coded.members("human") if shared[h, first] >= MIN_SHARED_UNITS]
        if not humans:
            continue
        one, other = (
            kappas.over([(human, grader) for human in humans], within)[deciding_kappa(coded)]
            for grader in (first, second)
        )
        units = within & coded.labelled_by_any(humans)
        apart, lost = one.values - other.values, max(one.undefined, other.undefined)
        names = About(a=coded.raters[first], b=coded.raters[second])
        out.add("kappa_difference", apart, units, undefined=lost, **names)
        _add_mcnemar_row(out, coded, [first, second], majority)


def _add_mcnemar_row(out: Writer, coded: Coded, graders: list[int], majority: Codes) -> None:
    """`mcnemar_p`, exact: are the two graders equally often of the humans' majority's mind?

    Units without a majority (ties) take no part.
    """
    judged = coded.labelled[:, graders].all(axis=1) & (majority >= 0)
    frequency = out.resamples.frequency[coded.clusters[judged]]
    right = coded.codes[judged][:, graders] == majority[judged, None]
    alone = [int(frequency[right[:, a] & ~right[:, 1 - a]].sum()) for a in (0, 1)]
    a, b = (coded.raters[grader] for grader in graders)
    note = join_notes(
        f"with the humans' majority only the first {alone[0]}, only the second {alone[1]}",
        f"mid-p {mcnemar_mid_p(*alone):.4g}",
        _UNITS_ALONE,
    )
    out.add_value("mcnemar_p", mcnemar_exact(*alone), judged, a=a, b=b, note=note)


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
    out = Writer.of(rows, coded, resamples)
    for (human, grader, p), adjusted in zip(found, holm([p for *_, p in found]), strict=True):
        both = coded.labelled[:, human] & coded.labelled[:, grader]
        note = "" if np.isnan(p) else join_notes(f"Holm p {adjusted:.4g}", _UNITS_ALONE)
        names = About(a=coded.raters[human], b=coded.raters[grader], note=note)
        out.add_value("stuart_maxwell_p", p, both, reason="not_testable", **names)
