"""Route units: the grader's labels count above a confidence cut, a person labels those below it.

Unlike the chosen cut of the confidence filter, this one comes with a promise (see `promise`).
"""

from __future__ import annotations

import math

import numpy as np

from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRows
from evenhand.analysis.thresholds.confidence import Graded, graded_with_confidence
from evenhand.analysis.thresholds.promise import Promise, promised_cut
from evenhand.analysis.writer import About

CUT, SHARE, AGREEMENT = (f"routing_{what}" for what in ("cut", "share", "agreement"))
ERROR = 0.05
"""Share of studies in which a promise may be wrong, over all looks at the labels."""


def add_routing_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    *,
    target: float,
    level: float,
) -> None:
    """Add rows for every grader with a confidence (at = target): `routing_cut`, the lowest that
    promises an agreement of `target` with the majority of people, wrong in at most `level` of
    studies; the share of its labels that the cut keeps, and how often these agree here.

    The promise is for one grader that was chosen beforehand. There is none where pairs were not
    equally likely to be picked: it counts units.
    """
    for graded in graded_with_confidence(rows, labels, resamples):
        found = promised_cut(graded.confidence, ~graded.agreed, graded.out.clusters, target, level)
        _add(graded, found, target, level)


def _add(graded: Graded, found: Promise, target: float, level: float) -> None:
    out, n = graded.out, len(graded.agreed)
    every, keeps = np.ones(n, dtype=bool), graded.confidence >= found.cut
    about = About(a="humans", b=graded.grader, at=repr(target))
    why = _why_not(found, n) if level > 0 else Remark("no_level")
    if out.resamples.weight is not None:
        out.add_value(CUT, math.nan, every, reason=Remark("unequal_chances"), **about)
        return
    stated = About(note=Remark("promised_at", (level,)), **about)
    out.add_value(CUT, found.cut, every, reason=why, **stated)
    if math.isnan(found.cut):
        return
    out.add(SHARE, out.share(keeps, every), every, **about)
    out.add_value(AGREEMENT, float(graded.agreed[keeps].mean()), keeps, **about)


def _why_not(found: Promise, n_units: int) -> Remark:
    if math.isinf(found.growth):
        return Remark("promise_out_of_reach", (n_units,))
    return Remark("promise_needs_more", (n_units, math.ceil(n_units * (found.growth - 1.0))))
