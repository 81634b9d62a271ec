"""Route units: the grader's labels count above a confidence cut, a person labels those below it.

Feng, Park, Liu & Tsvetkov (2023, appendix A.2) drop what their stance grader labels with a
confidence below 0.9. The declared cut is shown with all others. The cut for routing comes with a
promise: the labels above it agree often enough. The promise is that of Jung, Brahman & Choi (2024),
by fixed-sequence testing as in Learn then Test (Angelopoulos, Bates, Candes, Jordan & Lei 2025).
Cuts are tested from the highest down, each at the full level, against the hypothesis that labels
above it are wrong more often than allowed. The first cut where this cannot be ruled out ends the
sequence, and the last before it is the answer. A wrong promise needs a false rejection at one
certain cut, the highest that is not good enough; so the level is that of a single test, however
many cuts are tried.

The sequence does not depend on any labels. Its cuts lie at ranks of the confidence, a
twentieth of the units apart. It starts at the highest cut that keeps a quarter of the units and
would pass if no label were wrong: cuts above that could only end it. Skipping a cut for how little
it keeps leaves the level as it is where agreement does not fall as confidence rises; where it does
fall, no harm was seen (benchmarks/results/routing.md).

The tests hold in finite samples. With one unit in each cluster, the wrong labels among those kept
are binomial, and the test is exact. With several, a cluster's units may all be wrong together, and
only the mean over clusters of a bounded number is tested: by a bet (Waudby-Smith & Ramdas 2024).
A bet of a fixed share of the capital on every cluster gains nothing on average where labels are
wrong more often than allowed, so the capital grows to 1 / p with probability p at most (Markov).
The largest cluster seen is taken to be as large as any.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import takewhile

import numpy as np
from scipy.special import bdtr

from evenhand.analysis.agreement.coefficients import label_counts, majority_codes
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.requirement import POWER
from evenhand.analysis.statistics import Remark
from evenhand.analysis.types import Array, Codes, Mask
from evenhand.analysis.writer import About, RubricView, Writer

COVERAGE, AGREEMENT = "confidence_coverage", "confidence_agreement"
MAX_CUTS = 20


@dataclass(frozen=True)
class Graded:
    """Labels of one grader on units with a majority of people, all (units,): its confidence, and
    whether it agreed with the majority; `out` writes rows on these units.
    """

    out: Writer
    grader: str
    confidence: Array
    agreed: Mask


def add_confidence_rows(view: RubricView) -> None:
    """Add coverage against agreement for every grader with a confidence.

    `confidence_coverage` and `confidence_agreement` (at = cut): the share of its labels that the
    cut keeps, and how often those agree with the majority of people - on the coarser categories
    with unclear as one more where the rubric has them.
    """
    declared = view.request.settings.confidence_cut
    for graded in graded_with_confidence(view):
        out, cuts = graded.out, candidate_cuts(graded.confidence, declared)
        keeps, every = graded.confidence[:, None] >= cuts, np.ones(len(graded.agreed), dtype=bool)
        *both, units = out.sums(keeps, keeps & graded.agreed[:, None], every).T
        kept, agreed = np.split(np.array(both), 2)
        for at, cut in enumerate(cuts.tolist()):
            note = Remark("declared_cut") if cut == declared else ""
            about = About(a="humans", b=graded.grader, at=repr(cut), note=note)
            add = partial(out.add, reason="nothing_kept", **about)
            add(COVERAGE, ratio(kept[at], units), every)
            add(AGREEMENT, ratio(agreed[at], kept[at]), keeps[:, at])


def graded_with_confidence(view: RubricView) -> Iterator[Graded]:
    """Yield every grader with a confidence, on the units where people have a majority."""
    labels = view.labels
    if not labels.humans:
        return
    coded = labels.on_sorted()
    majority = majority_codes(label_counts(coded, labels.humans))
    for grader in labels.models:
        grades, confidence = coded.codes[:, grader], labels.confidence[:, grader]
        held = (majority >= 0) & (grades >= 0) & ~np.isnan(confidence)
        if held.any():
            yield Graded(
                view.on(coded.subset, labels.clusters[held]),
                labels.raters[grader],
                # Means over draws that differ in the last digit only are one confidence.
                np.round(confidence[held], 12),
                (grades == majority)[held],
            )


def candidate_cuts(confidence: Array, declared: float) -> Array:
    """Cuts to try, in ascending order: the declared one and the distinct confidences (units,). If
    there are more than 20, those that split the units into twentieths.

    >>> candidate_cuts(np.array([0.6, 0.8, 0.8]), 0.9).tolist()
    [0.6, 0.8, 0.9]
    """
    distinct = np.unique(confidence)
    if len(distinct) > MAX_CUTS:
        ranks = np.arange(MAX_CUTS) / MAX_CUTS
        distinct = np.quantile(confidence, ranks, method="higher")
    return np.unique(np.append(distinct, declared))


FIRST = 0.25
"""No cut is tested that keeps less: the first test would be one of few units, however many there
are, and a lower share saves little."""
REALISTIC = 20
"""Largest multiple of the present sample for which a number of units is named."""
STEPS = 20
"""Cuts are tested a twentieth of the units apart."""
MOST = 0.99
"""The largest share of what may be staked without risking ruin at one cluster."""


@dataclass(frozen=True)
class AboveCut:
    """The test that labels above a cut are wrong more often than `allowed`, at a one-sided `level`.
    `clusters` (units,) are codes from 0 up. Units count alike, as in `confidence_agreement`.

    >>> one_each = AboveCut(np.arange(60), 0.05, 0.05)
    >>> kept, none, one = np.ones(60, bool), np.zeros(60, bool), np.arange(60) < 1
    >>> round(one_each.p(kept, none), 4), round(one_each.p(kept, one), 4)
    (0.0461, 0.1916)
    """

    clusters: Codes
    allowed: float
    level: float

    @cached_property
    def largest(self) -> int:
        """Units in the largest cluster."""
        return int(np.bincount(self.clusters).max())

    def passes(self, kept: Mask, wrong: Mask) -> bool:
        """Return True if labels kept, some of them wrong, both (units,), meet the promise."""
        return self.p(kept, wrong) <= self.level

    def p(self, kept: Mask, wrong: Mask) -> float:
        """Return the probability of at most this number of wrong labels among those kept, if labels
        are wrong more often than allowed; an upper bound where clusters have several units.
        """
        if self.largest > 1:
            return math.exp(-max(self._capital(self._stake, kept, wrong), 0.0))
        return float(bdtr((kept & wrong).sum(), kept.sum(), self.allowed))

    @property
    def price(self) -> float:
        """Number of units that are worth one unit that is alone in its cluster: 1 to `largest`."""
        if self.largest == 1:
            return 1.0
        every = np.ones(len(self.clusters), dtype=bool)
        return -len(every) * math.log1p(-self.allowed) / self._capital(self._stake, every, ~every)

    def chance(self, kept: float, rate: float) -> float:
        """Return the probability that this number of kept labels passes if they are wrong at this
        rate.
        """
        alone = math.floor(kept / self.price + 1e-9)
        passing = bdtr(np.arange(alone + 1), alone, self.allowed) <= self.level
        return float(bdtr(passing.sum() - 1, alone, rate)) if passing.any() else 0.0

    @cached_property
    def _stake(self) -> float:
        """Optimal fixed stake for this number of clusters by Waudby-Smith & Ramdas (2024, section
        4.2); for the variance, that of a cut which keeps half of the units with half of the wrong
        labels allowed.
        """
        n = len(np.unique(self.clusters))
        variance = self.allowed * (1.0 - self.allowed) / 4.0
        return min(
            MOST, (1.0 - self.allowed) * math.sqrt(-2.0 * math.log(self.level) / n / variance)
        )

    def _capital(self, stake: float, kept: Mask, wrong: Mask) -> float:
        """The logarithm of the capital after betting on all clusters, from a start of 1."""
        gains = np.where(kept, self.allowed - wrong, 0.0) / self.largest / (1.0 - self.allowed)
        return float(np.log1p(stake * np.bincount(self.clusters, weights=gains)).sum())


@dataclass(frozen=True)
class Promise:
    """The lowest `cut` that keeps the promise, NaN where none does; and by what factor the sample
    must grow until one does in 80% of studies, if labels stay as often wrong as they are; infinite
    where no realistic number would do.
    """

    cut: float
    growth: float = 1.0


def promised_cut(
    confidence: Array, wrong: Mask, clusters: Codes, target: float, level: float
) -> Promise:
    """The lowest cut above which labels agree with a share of `target` or more, wrong in at most
    `level` of studies. `confidence`, `wrong` and `clusters` are (units,).

    >>> sure = np.arange(200) / 200
    >>> promised_cut(sure, sure < 0.3, np.arange(200), 0.95, 0.05)
    Promise(cut=0.305, growth=1.0)
    """
    _, codes = np.unique(clusters, return_inverse=True)
    test = AboveCut(codes, 1.0 - target, level)
    if not (test.allowed > 0 and level > 0):
        return Promise(math.nan, math.inf)
    # The cuts in the order of testing: a matter of confidence only.
    n, falling, none_wrong = len(confidence), np.sort(confidence)[::-1], np.zeros_like(wrong)
    ranks = range(math.ceil(n * FIRST) - 1, n)
    start = bisect_left(
        ranks, True, key=lambda rank: test.passes(confidence >= falling[rank], none_wrong)
    )
    tried = ranks[start:]
    cuts = np.unique(falling[[*tried[:: max(1, n // STEPS)], *tried[-1:]]])[::-1].tolist()
    passing = list(takewhile(lambda cut: test.passes(confidence >= cut, wrong), cuts))
    if passing:
        return Promise(passing[-1])
    # By what factor the sample must grow until the first cut is likely to pass.
    surest = np.argsort(-confidence, kind="stable")
    least = test.price * math.ceil(math.log(test.level) / math.log1p(-test.allowed))
    for growth in np.geomspace(1.0, REALISTIC, STEPS + 1)[1:]:
        share = max(least / (growth * n), FIRST)
        rate = wrong[surest[: math.ceil(share * n)]].mean()
        if share <= 1.0 and test.chance(max(least, share * growth * n), rate) >= POWER:
            return Promise(math.nan, float(growth))
    return Promise(math.nan, math.inf)


CUT, SHARE, ROUTED_AGREEMENT = (f"routing_{what}" for what in ("cut", "share", "agreement"))
ERROR = 0.05
"""Share of studies in which a promise may be wrong, over all looks at the labels."""


def add_routing_rows(view: RubricView) -> None:
    """Add rows for every grader with a confidence (at = target): `routing_cut`, the lowest that
    promises an agreement of `confidence_target` with the majority of people, wrong in at most
    `ERROR` of studies; the share of its labels that the cut keeps, and how often these agree here.

    The promise is for one grader that was chosen beforehand. There is none where pairs were not
    equally likely to be picked: it counts units.
    """
    request = view.request
    look, target = request.facts.looks.get(view.rows.rubric, 1), request.settings.confidence_target
    level = level_of_look(look, request.decision.looks, ERROR)
    for graded in graded_with_confidence(view):
        best = promised_cut(graded.confidence, ~graded.agreed, graded.out.clusters, target, level)
        out, n = graded.out, len(graded.agreed)
        every, keeps = np.ones(n, dtype=bool), graded.confidence >= best.cut
        about = About(a="humans", b=graded.grader, at=repr(target))
        if out.resamples.weight is not None:
            out.add(CUT, math.nan, every, reason=Remark("unequal_chances"), **about)
            continue
        why = Remark("promise_out_of_reach", (n,))
        if not level > 0:
            why = Remark("no_level")
        elif not math.isinf(best.growth):
            why = Remark("promise_needs_more", (n, math.ceil(n * (best.growth - 1.0))))
        stated = About(note=Remark("promised_at", (level,)), **about)
        out.add(CUT, best.cut, every, reason=why, **stated)
        if not math.isnan(best.cut):
            out.add(SHARE, out.share(keeps, every), every, **about)
            out.add(ROUTED_AGREEMENT, float(graded.agreed[keeps].mean()), keeps, **about)
