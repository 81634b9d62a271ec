"""How often the intervals of true positive and true negative rates hold the truth, by simulation.

`python -m benchmarks.rates`. Every run draws a new study (synthetic): three people and a grader,
whose rates of both kinds are .6, .7, .8, .9 or .95 in turn. The truth is the grader's rate where
the majority of such people says so, among all units that there could be.

Under "errors shared" people and the grader tend to fail on the same units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache

import numpy as np
from scipy.special import expit, logit

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import BINARY_ALL, Coded
from evenhand.analysis.people.comparison import MAJORITY, add_majority_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import View

OUT = RESULTS / "rates.md"
SEED = 20231206
RATES = (0.6, 0.7, 0.8, 0.9, 0.95)
_MANY = 200_000


@dataclass(frozen=True)
class Population:
    """Studies of so many clusters of `units` units. `people` are their true positive and negative
    rates; `apart` is how far, in standard deviations on the logit scale, clusters differ in how
    hard they are for the grader, and `shared` the same of units for everybody.
    """

    name: str
    prevalence: float
    clusters: int
    units: int = 1
    people: tuple[tuple[float, float], ...] = ((0.9, 0.95),) * 3
    apart: float = 0.0
    shared: float = 0.0

    def drawn(self, clusters: int, rate: float, rng: np.random.Generator) -> tuple[Mask, Mask]:
        """What is so (units,), and who says so, (units, people and the grader)."""
        n = clusters * self.units
        truth = rng.random(n) < self.prevalence
        hard = self.shared * rng.standard_normal(n)
        harder = np.repeat(self.apart * rng.standard_normal(clusters), self.units)
        said = []
        for own in (*self.people, (rate, rate)):
            right = logit(np.where(truth, *own)) - hard - (harder if own == (rate, rate) else 0.0)
            said.append(np.where(rng.random(n) < expit(right), truth, ~truth))
        return truth, np.column_stack(said)


_UNLIKE = ((0.95, 0.98), (0.85, 0.95), (0.75, 0.9))
POPULATIONS = (
    *(
        Population(f"{n} units, prevalence {prevalence:g}", prevalence, n)
        for n in (50, 100, 250)
        for prevalence in (0.05, 0.1, 0.3, 0.5)
    ),
    Population("100 clusters of 4", 0.3, 100, 4, apart=1.0),
    Population("40 clusters of 10", 0.3, 40, 10, apart=1.0),
    Population("people unlike one another, 250 units", 0.3, 250, people=_UNLIKE),
    Population("errors shared, 250 units", 0.3, 250, shared=1.0),
)


@cache
def truths(population: Population, rate: float) -> Array:
    """The grader's rates against the majority: (2,)."""
    rng = np.random.default_rng((SEED, int(1000 * rate)))
    _, said = population.drawn(_MANY // population.units, rate, rng)
    majority, own = said[:, :-1].sum(axis=1) > len(population.people) / 2, said[:, -1]
    return np.array([own[majority].mean(), 1 - own[~majority].mean()])


@dataclass
class Tally:
    """How often (2,) intervals held the truth, of how many."""

    held: Array = field(default_factory=lambda: np.zeros(2))
    runs: Array = field(default_factory=lambda: np.zeros(2))

    def add(self, other: Tally) -> None:
        """Take in another."""
        self.held, self.runs = self.held + other.held, self.runs + other.runs


def run_cell(
    population: Population, runs: range, _resamples: int, seed: int
) -> dict[object, Tally]:
    """Some runs of a population."""
    tally = Tally()
    for run in runs:
        rng = np.random.default_rng((seed, POPULATIONS.index(population), run))
        rate = RATES[run % len(RATES)]
        _, said = population.drawn(population.clusters, rate, rng)
        found = rates_found(said, population)
        truth = truths(population, rate)
        known = ~np.isnan(found[:, 0])
        inside = (found[:, 1] <= truth) & (truth <= found[:, 2])
        held: Array = (known & inside).astype(float)
        tally.add(Tally(held, known.astype(float)))
    return {(population,): tally}


def rates_found(said: Mask, population: Population) -> Array:
    """Estimate and both bounds of the two rates, (2, 3), NaN where there are none."""
    raters = said.shape[1]
    coded = Coded(
        raters=tuple(f"r{n}" for n in range(raters)),
        kinds=("human",) * (raters - 1) + ("model",),
        codes=np.where(said, 0, 1).astype(np.int8),
        clusters=np.repeat(np.arange(population.clusters), population.units),
        categories=("affirmative", "other"),
        values=(1.0, 0.0),
        level="nominal",
        subset=BINARY_ALL,
    )
    rows = ResultRows("r")
    shared = Resamples(np.ones(population.clusters, dtype=np.int64), 1, np.random.default_rng(0))
    add_majority_rows(View.of(rows, coded, shared))
    found = np.full((2, 3), np.nan)
    for at, name in enumerate(MAJORITY):
        if row := rows.get(name, "humans", coded.raters[-1], BINARY_ALL):
            found[at] = row["estimate"], row["low"], row["high"]
    return found


def document(found: dict[tuple[Population], Tally], runs: int, _resamples: int, seed: int) -> str:
    """The page."""
    lines = [
        "# True positive and true negative rates: do their intervals hold?",
        "",
        f"Measured {datetime.now(UTC):%Y-%m-%d} by `python -m benchmarks.rates` "
        f"({library_versions()}, seed {seed}), on *synthetic* studies: {runs:,} a line. "
        "Three people are right on 90% of what is so and 95% of what is not, unless a line says "
        "otherwise; the grader's rates are .6 to .95. Intervals are to hold the truth in 95%. The "
        "last column shows what a true rate of .9 comes to against the majority, whose own errors "
        "count against the grader.",
        "",
        "| studies | TPR, majority | TNR, majority | TPR of .9, against the majority |",
        "| --- | ---: | ---: | ---: |",
    ]
    for (population,), tally in sorted(
        found.items(), key=lambda each: POPULATIONS.index(each[0][0])
    ):
        share = np.divide(tally.held, tally.runs, out=np.full(2, np.nan), where=tally.runs > 0)
        cells = [f"{each:.1%}" if each == each else "-" for each in share]
        majority = truths(population, 0.9)[0]
        lines.append(f"| {population.name} | {' | '.join(cells)} | {majority:.2f} |")
    lines += [
        "",
        "With 50 units and a prevalence of .05 a rate rests on two or three units; where there is "
        "none it is undefined, and the study is left out.",
        "",
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the simulation, print its page and write it."""
    simulate_and_write(
        arguments,
        __doc__ or "",
        POPULATIONS,
        run_cell,
        document,
        runs=2000,
        resamples=0,
        seed=SEED,
        out=OUT,
    )


if __name__ == "__main__":
    main()
