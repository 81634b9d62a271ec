"""How often the deciding bound is wrong and how often right: `python -m benchmarks.deciding_bound`.

Every run draws a study in which a grader lies below people by exactly the margin, so that any pass
is a false one, and a study in which it is as good as a person, so that passes are power. One look
is declared, so that a bound has the whole error of 2.5%. Beside the power stands what the same
statistic would reach if its critical value were exact: the one that 2.5% of the cell's own studies
at the margin exceed, which nobody knows who has a single study.

The populations (all synthetic). *latent*: what a unit is like is a normal variable that raters see
with an error. *classes*: units are easy or hard, and every rater errs on a hard one four times as
often. *beta*: a unit's share of yes is drawn from a beta distribution and raters answer by it; a
grader that is worse answers some units by the prevalence alone. Clusters hold one unit, four, or
unequal numbers: *skewed* from 1 to 30, *few large* 30 in 15% of clusters and 2 in the others. A
grader that *fails clusters* is as good as a person on most clusters and says the opposite on all of
a cluster in the others. In a crowd each unit is labelled by a few of many people.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy
from scipy.optimize import brentq
from scipy.special import ndtri

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.bounds import ALPHA, reach
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.verdicts.comparison import Comparator, Comparison, GraderView
from evenhand.study.settings.analysis import DecisionSettings

OUT = RESULTS / "deciding-bound.md"
SEED, MARGIN, RULE = 20231206, 0.1, DecisionSettings()
World = Literal["latent", "classes", "beta"]
Sizes = Literal["one unit", "four units", "skewed", "few large"]
Labels = npt.NDArray[np.int8]
Clusters = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Cell:
    """A kind of study: `clusters` with `sizes`, labelled by `people`, of whom `each` label a unit;
    people's kappa is `agreed`.
    """

    world: World
    prevalence: float
    agreed: float
    clusters: int
    sizes: Sizes = "one unit"
    fails_clusters: bool = False
    people: int = 3
    each: int = 3


CELLS = (
    *(
        Cell("latent", prevalence, agreed, clusters)
        for prevalence in (0.5, 0.3, 0.1)
        for agreed in (0.6, 0.7, 0.8)
        for clusters in (50, 100, 200, 250)
    ),
    *(
        Cell("latent", prevalence, agreed, clusters)
        for prevalence in (0.5, 0.3)
        for agreed in (0.9, 0.95, 0.99)
        for clusters in (50, 100, 250)
    ),
    *(
        Cell(world, prevalence, 0.7, clusters)
        for world in ("classes", "beta")
        for prevalence in (0.5, 0.2)
        for clusters in (50, 100, 250)
    ),
    *(Cell("latent", 0.5, 0.7, clusters, "four units") for clusters in (50, 100)),
    *(
        Cell("latent", 0.5, 0.7, clusters, sizes, fails)
        for sizes in ("four units", "skewed", "few large")
        for fails in (False, True)
        for clusters in (60, 100, 200)
        if fails or sizes != "four units"
    ),
    *(
        Cell("latent", 0.5, 0.7, clusters, people=people, each=each)
        for people, each in ((5, 2), (20, 3), (60, 3), (200, 5))
        for clusters in (100, 300)
    ),
)


@dataclass
class Tally:
    """Chances that the grader is within the margin, -1 where a rule of the verdict stops it, and
    how many studies passed.
    """

    chances: list[float] = field(default_factory=list)
    passed: int = 0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.chances += other.chances
        self.passed += other.passed


@cache
def skills(world: World, prevalence: float, agreed: float, below: float) -> tuple[float, float]:
    """What people's kappa of `agreed`, and a grader's that is `below` theirs, ask of a rater: how
    much of a unit it sees (latent), how often it errs (classes), or how often it answers by the
    prevalence alone (beta).
    """
    if world == "latent":
        person = brentq(lambda own: _kappa_of_latent(prevalence, own, own) - agreed, 1e-4, 1 - 1e-9)
        grader = brentq(
            lambda own: _kappa_of_latent(prevalence, person, own) - agreed + below, 1e-6, 1.0
        )
        return float(person), float(grader)
    if world == "beta":
        return 0.0, below / agreed
    person = brentq(lambda own: _kappa_of_classes(prevalence, own, own) - agreed, 0.0, 0.12)
    grader = brentq(
        lambda own: _kappa_of_classes(prevalence, person, own) - agreed + below, 0.0, 0.12
    )
    return float(person), float(grader)


def _kappa_of_latent(prevalence: float, first: float, second: float) -> float:
    """Kappa of raters who see so much of a normal variable and cut at the same share of yes."""
    likeness, cut = math.sqrt(first * second), ndtri(prevalence)
    latent = scipy.stats.multivariate_normal(cov=[[1.0, likeness], [likeness, 1.0]])
    both = latent.cdf([cut, cut])
    return float((both - prevalence**2) / (prevalence - prevalence**2))


def _kappa_of_classes(prevalence: float, first: float, second: float) -> float:
    """Kappa of raters who err so often on easy units, and four times as often on hard ones."""
    both = ((first, second), (4 * first, 4 * second))
    observed = np.mean([f * s + (1 - f) * (1 - s) for f, s in both])
    says = [prevalence * (1 - 2.5 * own) + (1 - prevalence) * 2.5 * own for own in (first, second)]
    expected = says[0] * says[1] + (1 - says[0]) * (1 - says[1])
    return float((observed - expected) / (1 - expected))


def study(cell: Cell, below: float, rng: np.random.Generator) -> tuple[Labels, Clusters]:
    """Labels (units, people and the grader), 1 yes, 0 no, -1 none; and the units' clusters."""
    n = cell.clusters
    sizes = {
        "one unit": np.ones(n),
        "four units": np.full(n, 4),
        "skewed": np.minimum(1 + np.floor(4 * rng.exponential(size=n) ** 2), 30),
        "few large": np.where(rng.random(n) < 0.15, 30, 2),
    }[cell.sizes].astype(int)
    cluster = np.repeat(np.arange(n), sizes)
    apart = 0.0 if cell.fails_clusters else below
    person, grader = skills(cell.world, cell.prevalence, cell.agreed, apart)
    units, raters = len(cluster), cell.people + 1
    own = np.array([person] * cell.people + [grader])
    if cell.world == "latent":
        of_cluster = 0.5 if cell.sizes != "one unit" else 0.0
        unit = _shared(rng, cluster, (units, 1), of_cluster)
        error = _shared(rng, cluster, (units, raters), of_cluster)
        above = np.sqrt(own) * unit + np.sqrt(1 - own) * error - ndtri(1 - cell.prevalence)
        said = above > 0
    elif cell.world == "classes":
        truth = rng.random((units, 1)) < cell.prevalence
        errs = own * np.where(rng.random((units, 1)) < 0.5, 4.0, 1.0)
        said = truth ^ (rng.random((units, raters)) < errs)
    else:
        alike = cell.agreed  # the correlation of two raters' answers
        total = 1.0 / alike - 1.0
        share = rng.beta(total * cell.prevalence, total * (1 - cell.prevalence), (units, 1))
        blind = rng.random((units, raters)) < own
        said = rng.random((units, raters)) < np.where(blind, cell.prevalence, share)
    labels = said.astype(np.int8)
    if cell.fails_clusters and below:
        fails = (rng.random(n) < below / (2 * cell.agreed))[cluster]
        labels[fails, -1] = 1 - labels[fails, -1]
    if cell.each < cell.people:
        asked = rng.random((units, cell.people)).argsort(axis=1) < cell.each
        labels[:, :-1][~asked] = -1
    return labels, cluster


def _shared(
    rng: np.random.Generator, cluster: Clusters, shape: tuple[int, int], share: float
) -> npt.NDArray[np.float64]:
    """Standard normal variables of which so much of the variance is the cluster's."""
    of_cluster = rng.normal(size=(int(cluster.max()) + 1, shape[1]))[cluster]
    found: npt.NDArray[np.float64] = math.sqrt(share) * of_cluster + math.sqrt(
        1 - share
    ) * rng.normal(size=shape)
    return found


def compared(labels: Labels, clusters: Clusters) -> Comparison | None:
    """The grader, the last column, compared with people by the product's own code."""
    people = labels.shape[1] - 1
    coded = Coded(
        raters=(*(f"h{n}" for n in range(people)), "g"),
        kinds=("human",) * people + ("model",),
        codes=labels,
        clusters=clusters,
        categories=("no", "yes"),
        values=(0.0, 1.0),
        level="nominal",
        subset="all",
    )
    each_once = np.ones(int(clusters.max()) + 1, dtype=np.int64)
    left_out = Resamples(each_once, 0, np.random.default_rng(0), jackknife=True)
    return Comparator(left_out, MARGIN).compare(GraderView(coded, people))


def decided(labels: Labels, clusters: Clusters) -> tuple[float, bool]:
    """(the chance that the grader is within the margin, -1 where a minimum is missed; whether it
    passes at the whole error).
    """
    found = compared(labels, clusters)
    if found is None or not math.isfinite(found.difference):
        return -1.0, False
    moves = found.people_influence
    agree = found.people_kappa - (reach(moves) if np.ptp(moves) > 0 else 0.2)
    enough = math.ceil(found.sample.effective - 1e-9) >= RULE.min_clusters
    enough = enough and found.sample.minority >= RULE.min_rarer
    if not enough or agree < RULE.min_people_kappa:
        return -1.0, False
    below = found.tested_bounds.reach(ALPHA)[0]
    return found.chance_within, found.difference - below > -found.margin


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[tuple[Cell, float], Tally]:
    """Some runs of one cell: a grader at the margin, and one as good as a person."""
    tallies = {}
    for below in (MARGIN, 0.0):
        tally = tallies[cell, below] = Tally()
        for run in runs:
            rng = np.random.default_rng([seed, round(1000 * below), run, CELLS.index(cell)])
            chance, passes = decided(*study(cell, below, rng))
            tally.chances.append(chance)
            tally.passed += passes
    return tallies


def calibration(runs: int, seed: int) -> list[tuple[float, float, int, float]]:
    """(from, to, studies, share that is within the margin) of chances, where the grader's true
    difference is drawn evenly from -.3 to .08 kappa.
    """
    edges = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0]
    rng = np.random.default_rng([seed, 7])
    known: list[tuple[float, bool]] = []
    for prevalence in (0.5, 0.3, 0.1):
        for clusters in (50, 100, 250):
            cell = Cell("latent", prevalence, 0.7, clusters)
            for _ in range(runs):
                below = round(float(rng.uniform(-0.08, 0.3)), 3)
                found = compared(*study(cell, below, rng))
                if found is not None and math.isfinite(found.difference):
                    known.append((found.chance_within, below < MARGIN))
    lines = []
    for low, high in pairwise(edges):
        inside = [within for chance, within in known if low <= chance < high]
        if inside:
            lines.append((low, high, len(inside), float(np.mean(inside))))
    return lines


def document(found: dict[tuple[Cell, float], Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    bound = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    lines, wrong, own, best = [], [], [], []
    for cell in CELLS:
        at_margin, as_good = found[cell, MARGIN], found[cell, 0.0]
        false, power = at_margin.passed / runs, as_good.passed / runs
        critical = float(np.quantile(at_margin.chances, 1 - ALPHA))
        exact = float(np.mean(np.array(as_good.chances) > max(critical, 0.0)))
        wrong.append(false)
        own.append(power)
        best.append(exact)
        mark = " *" if false > bound else ""
        of = "" if cell.each == cell.people else f", {cell.each} a unit"
        kind = "fails clusters" if cell.fails_clusters else "errs anywhere"
        told = (cell.world, cell.prevalence, cell.agreed, f"{cell.people}{of}", cell.clusters)
        share = f"{power / exact:.2f}" if exact >= 0.02 else ""
        lines.append(
            f"| {' | '.join(map(str, told))} | {cell.sizes} | {kind} | {false:.3f}{mark} | "
            f"{power:.3f} | {exact:.3f} | {share} |"
        )
    over = sum(share > bound for share in wrong)
    ratio = sum(own) / sum(best)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# The deciding bound: how often wrong, how often right",
            "",
            f"Written by `python -m benchmarks.deciding_bound --runs {runs}`, {today}, "
            f"seed {seed}, {library_versions()}.",
            "",
            f"{runs:,} simulated studies a cell (synthetic), one declared look at {ALPHA:.1%}. "
            f"*False passes*: a grader {MARGIN:g} kappa below people, the margin, passes. "
            "*Power*: one that is as good as a person passes. *Exact*: the power of the same "
            "statistic with the critical value that is exact in that very cell; *share* is power "
            f"over exact. A cell holds up to {bound:.1%}, two Monte Carlo standard errors above "
            f"{ALPHA:.1%}: {len(wrong) - over} of {len(wrong)} do (a star marks the others). Mean "
            f"size {np.mean(wrong):.4f}, mean power {np.mean(own):.3f}, mean exact power "
            f"{np.mean(best):.3f}: a share of {ratio:.2f}.",
            "",
            "| population | prevalence | people's kappa | people | clusters | of | grader | "
            "false passes | power | exact | share |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *lines,
            "",
            "Where people agree nearly always and a sample is small, the share is low: errors of "
            "the grader that matter most (missed units of the rarer kind) may not have shown yet, "
            "and the bound allows for them. The exact value belongs to a population whose errors "
            "are spread evenly, which nobody knows beforehand. Unequal clusters count by their "
            "effective number; with fewer than 30 of these, or fewer than ten with a label of the "
            "rarer kind, nobody passes.",
            "",
            "## Is the chance a chance?",
            "",
            "Graders whose true difference to people is drawn evenly from -0.3 to 0.08 kappa "
            "(synthetic; people's kappa 0.7; prevalence .5, .3 and .1; 50, 100 and 250 units): of "
            "those whose chance of being within the margin was said to be so high, how many are.",
            "",
            "| chance said | studies | within the margin |",
            "| --- | --- | --- |",
            *(
                f"| {low:g} to {high:g} | {count} | {share:.3f} |"
                for low, high, count, share in calibration(max(runs // 2, 1), seed)
            ),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=500, resamples=0, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
