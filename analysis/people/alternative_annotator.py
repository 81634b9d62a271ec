"""Alternative annotator test: would a grader be as good a choice as one of the humans?

Calderon, Reichart & Dror (2025), "The alternative annotator test for LLM-as-a-judge". A pass is not
non-inferiority, and a constant can pass: no verdict rests on it, and the baselines are reported
with it.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.bootstrap.resamples import count_labels
from evenhand.analysis.bootstrap.significance import benjamini_yekutieli
from evenhand.analysis.labels.encoding import (
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.scale import Level, category_values
from evenhand.analysis.notes import Code, Remark, join_notes
from evenhand.analysis.people.ceiling import baselines
from evenhand.analysis.types import Array, Codes, Column, Integers, Mask
from evenhand.analysis.writer import RubricView, Writer

EPSILON = 0.2
"""The cost-benefit handicap that the authors advise where the humans are experts."""
FALSE_DISCOVERY_RATE = 0.05
PASSING_RATE = 0.5
NO_ELIGIBLE: Code = "no_eligible_annotator"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class AltTest:
    """Result of the test; the arrays have one entry per eligible annotator.

    `annotators` are columns of the humans' labels; `advantage` is how often the grader is at least
    as close to the other humans as the annotator is; `p` is one-sided; `rejected` after
    Benjamini-Yekutieli; `zero_variance` marks annotators whose differences are all the same.
    """

    annotators: tuple[int, ...]
    n: Integers
    advantage: Array
    p: Array
    rejected: Mask
    zero_variance: Mask
    epsilon: float

    @property
    def winning_rate(self) -> float:
        """Share of the annotators that the grader may replace; NaN where none is eligible."""
        return float(self.rejected.mean()) if len(self.rejected) else np.nan

    @property
    def advantage_probability(self) -> float:
        """Mean advantage over the annotators; NaN where none is eligible."""
        return float(self.advantage.mean()) if len(self.advantage) else np.nan

    @property
    def passed(self) -> bool:
        """True if the winning rate reaches one half. Never a verdict by itself."""
        return bool(self.winning_rate >= PASSING_RATE)


@dataclass(frozen=True)
class _Comparisons:
    """Comparisons of the grader with each human on each unit, expected over the grader's labels.

    All arrays are (comparisons,): the `unit`, the `human`, `wins` (grader at least as close to the
    others), `difference` (human's win minus grader's) and `squared`, its square.
    """

    unit: Codes
    human: Codes
    wins: Array
    difference: Array
    squared: Array

    def of(self, humans: Sequence[int]) -> _Comparisons:
        """Return the comparisons with some of the humans, numbered in this order."""
        place = np.full(int(self.human.max(initial=-1)) + 1, -1)
        place[list(humans)] = np.arange(len(humans))
        kept = place[self.human] >= 0
        return _Comparisons(
            self.unit[kept],
            place[self.human[kept]],
            self.wins[kept],
            self.difference[kept],
            self.squared[kept],
        )


def add_alt_test_rows(view: RubricView) -> None:
    """Add `alt_test_winning_rate` and `alt_test_advantage` of every grader and baseline.

    Baselines' labels do not depend on the unit, so that expected comparisons replace random labels.
    The advantage has a bootstrap interval; the winning rate counts rejections of a test that takes
    units as independent, so it has none.
    """
    coded, epsilon = view.coded, view.request.settings.epsilon
    members = list(coded.members("human"))
    if not members:
        return
    humans = coded.codes[:, members]
    one_hot = np.vstack([np.eye(coded.q), np.zeros(coded.q)])
    graders = {coded.raters[g]: one_hot[coded.codes[:, g]] for g in coded.members("model")}
    of_baselines = view.once(baselines)
    graders |= {name: np.tile(share, (len(humans), 1)) for name, share in of_baselines.items()}
    values = None if coded.level == "nominal" else np.asarray(coded.values)
    frequency = view.resamples.frequency[coded.clusters].astype(float)
    for name, labels in graders.items():
        compared = _compare(humans, labels, values)
        found = _tested(compared, len(members), frequency, epsilon, MIN_SHARED_UNITS)
        compared, n = compared.of(found.annotators), len(found.annotators)
        met = np.bincount(compared.unit, minlength=len(humans)) > 0
        units = view.count(met)
        flat = int(found.zero_variance.sum())
        passes = "passes" if found.passed else "does not pass"
        outcome = f"{passes} (at {PASSING_RATE:g}; no verdict); t tests take items as independent"
        about = join_notes(
            Remark("zero_variance", (flat, n)) if flat else "",
            f"epsilon {epsilon:g}",
            f"{n} of {len(members)} humans with {MIN_SHARED_UNITS} items",
        )
        add = partial(view.add, units=units, a="humans", b=name, reason=NO_ELIGIBLE)
        wins = join_notes(about, outcome if n else "", view.as_sampled)
        add("alt_test_winning_rate", found.winning_rate, note=wins)
        add("alt_test_advantage", _advantages(compared, n, view), note=about)


def _tested(
    found: _Comparisons, humans: int, count: Array, epsilon: float, min_units: int
) -> AltTest:
    from scipy.special import stdtr

    weight = count[found.unit]
    n = np.bincount(found.human, weight, humans).astype(float)
    eligible = np.flatnonzero(n >= max(min_units, 2))
    n = n[eligible]
    advantage, mean, square = (
        np.bincount(found.human, each * weight, humans)[eligible] / n
        for each in (found.wins, found.difference, found.squared)
    )
    variance = np.maximum(square - mean**2, 0.0) * n / (n - 1.0)
    flat, below = variance < _ROUNDING, mean - epsilon
    # A t test; without variance 0 or 1, by the sign.
    t = below / np.sqrt(np.where(flat, 1.0, variance) / n)
    p = np.where(flat, np.where(below < -_ROUNDING, 0.0, 1.0), stdtr(n - 1.0, t))
    return AltTest(
        annotators=tuple(int(each) for each in eligible),
        n=n.astype(np.int64),
        advantage=advantage,
        p=p,
        rejected=benjamini_yekutieli(p) <= FALSE_DISCOVERY_RATE,
        zero_variance=flat,
        epsilon=epsilon,
    )


def _compare(humans: Integers, grader: Array, values: Array | None) -> _Comparisons:
    """Compare the grader with each human, both scored against the other humans."""
    q = grader.shape[1]
    counts = count_labels(humans, q)
    usable = (counts.sum(axis=1) >= 2) & (grader.sum(axis=1) > 0)
    unit, human = np.nonzero((humans >= 0) & usable[:, None])
    own = humans[unit, human].astype(np.intp)
    # Distance of each category from all labels of a unit; the annotator's own is subtracted below.
    distance = 1.0 - np.eye(q) if values is None else np.subtract.outer(values, values) ** 2
    total = counts @ distance
    human_loss = total[unit, own]
    wins, difference, squared = np.zeros((3, len(unit)))
    for code in range(q):
        likely = grader[unit, code]
        loss = total[unit, code] - distance[code][own]
        won, lost = loss <= human_loss + _ROUNDING, human_loss <= loss + _ROUNDING
        gap = lost.astype(float) - won
        wins += likely * won
        difference += likely * gap
        squared += likely * gap**2
    return _Comparisons(unit, human, wins, difference, squared)


def _advantages(compared: _Comparisons, humans: int, out: Writer) -> Array:
    """Mean over annotators of the share of units that the grader wins, (rows,); without the rows of
    the jackknife.
    """
    from scipy.sparse import csr_array

    resamples, ones = out.resamples, np.ones(len(compared.unit))
    if humans == 0:
        return np.full(len(resamples), np.nan)
    at, shape = (out.clusters[compared.unit], compared.human), (resamples.n_types, humans)
    won, held = (csr_array((each, at), shape=shape) for each in (compared.wins, ones))
    shares = []
    for block in resamples.blocks():
        number = np.asarray(block @ held, dtype=float)
        missing = np.full(number.shape, np.nan)
        shares.append(np.divide(block @ won, number, out=missing, where=number > 0).mean(axis=1))
    return np.concatenate(shares)


def alt_test(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    epsilon: float = EPSILON,
    min_units: int = MIN_SHARED_UNITS,
) -> AltTest:
    """Run the alternative annotator test (Calderon, Reichart & Dror 2025); see `AltTest`.

    `humans` are labels (units, raters), `grader` labels (units,). Exact matches count on the
    nominal level, the root mean square error of the categories' values on the others. `epsilon` is
    .2 for experts (the default), .15 for skilled annotators and .1 for a crowd, as its authors
    advise. A pass is not non-inferiority: a constant can pass.

    A grader that repeats the labels of the first of three humans, who agree on three units of four:

    >>> humans = [["a", "a", "a"], ["b", "b", "b"], ["a", "a", "b"], ["b", "b", "b"]] * 10
    >>> found = alt_test(humans, [row[0] for row in humans], categories="ab")
    >>> found.winning_rate, found.advantage_probability, found.passed
    (1.0, 1.0, True)
    """
    people, own = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, own)
    one_hot = np.vstack([np.eye(len(categories)), np.zeros(len(categories))])
    values = None if level == "nominal" else np.asarray(category_values(categories, level))
    compared = _compare(people, one_hot[own], values)
    return _tested(compared, people.shape[1], np.ones(len(people)), epsilon, min_units)
