"""How often the interval of a tuned threshold holds the true optimum, by simulation.

`python -m benchmarks.calibration`. Every run draws a new study from a population whose best
threshold is known, tunes a threshold, and asks whether its interval holds that one; and what is
recommended. Beside it stands the bootstrap percentile interval of the tuned threshold.

The populations (synthetic). What a grader makes of a unit is normal, and a good deal higher where
people say yes; its probability is a rising function of that, set so that the objective is best at
0.1 exactly. The optimum is solved for on the normal scale, where both error rates are integrals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
from scipy.special import expit, logit, ndtr

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.thresholds.tuning import OBJECTIVES, Graded, Outcomes, sweep, tuning_results

OUT = RESULTS / "calibration.md"
SEED = 20231206
OPTIMUM, DEFAULT = 0.1, 0.5
WANTED = 0.92
"""The least share of runs in which the interval is to hold the optimum."""


@dataclass(frozen=True)
class Population:
    """A grader and a reference.

    `apart` is how far units that people affirm lie above the others, in standard deviations;
    `share` how many they affirm; `same` the part of all this that the units of a cluster share;
    probabilities are rounded up to multiples of `step`, if any.
    """

    name: str
    apart: float
    share: float
    clusters: int
    units: int = 1
    same: float = 0.0
    step: float = 0.0
    objective: str = "kappa"

    @property
    def informed(self) -> bool:
        """Whether the grader knows anything."""
        return self.apart > 0


POPULATIONS = (
    Population("100 pairs", 2.0, 0.4, 100),
    Population("250 pairs", 2.0, 0.4, 250),
    Population("250 pairs, weak grader", 1.0, 0.3, 250),
    Population("250 pairs, rare yes", 3.0, 0.15, 250),
    Population("250 pairs, steps of 0.05", 2.0, 0.4, 250, step=0.05),
    Population("100 pairs x 5 subjects", 2.0, 0.4, 100, units=5, same=0.5),
    Population("1,000 pairs", 2.0, 0.4, 1000),
    Population("1,000 pairs, weak grader", 1.0, 0.3, 1000),
    Population("250 pairs", 2.0, 0.4, 250, objective="agreement"),
    Population("250 pairs", 2.0, 0.4, 250, objective="f1"),
    Population("250 pairs", 2.0, 0.4, 250, objective="youden"),
    Population("250 pairs", 2.0, 0.4, 250, objective="prevalence"),
    Population("100 pairs, no information", 0.0, 0.3, 100),
    Population("250 pairs, no information", 0.0, 0.3, 250),
    Population("1,000 pairs, no information", 0.0, 0.3, 1000),
    Population("250 pairs, no information", 0.0, 0.3, 250, objective="agreement"),
    Population("250 pairs, no information", 0.0, 0.3, 250, objective="prevalence"),
)


@dataclass
class Tally:
    """What became of some runs."""

    runs: int = 0
    held: int = 0
    width: float = 0.0
    percentile_held: int = 0
    advice: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.runs += other.runs
        self.held += other.held
        self.width += other.width
        self.percentile_held += other.percentile_held
        self.advice += other.advice


def optimum(population: Population) -> float:
    """Where the objective is best on the normal scale: units without people's yes are at 0."""
    at = np.linspace(-4.0, population.apart + 4.0, 200_001)
    hits = population.share * ndtr(population.apart - at)
    false = (1.0 - population.share) * ndtr(-at)
    share = np.array([population.share])
    values = OBJECTIVES[population.objective](Outcomes(hits, false, share, 1.0 - share))
    return float(at[values.argmax()])


def simulate(population: Population, rng: np.random.Generator) -> Graded:
    """One study: probabilities against a reference."""
    shape = (population.clusters, population.units)

    def normal() -> np.ndarray:
        of_cluster, own = rng.normal(size=(shape[0], 1)), rng.normal(size=shape)
        part = population.same
        return math.sqrt(part) * of_cluster + math.sqrt(1.0 - part) * own

    affirmed = (ndtr(normal()) < population.share).ravel()
    seen = normal().ravel() + population.apart * affirmed
    middle = optimum(population) if population.informed else 0.0
    positive = expit(seen - middle + (logit(OPTIMUM) if population.informed else 0.0))
    if population.step:
        positive = np.ceil(positive / population.step) * population.step
    clusters = np.repeat(np.arange(shape[0]), shape[1])
    return Graded(positive, affirmed.astype(np.int8), clusters)


def run_population(
    population: Population, runs: range, resamples: int, seed: int
) -> dict[Population, Tally]:
    """Some runs of one population."""
    tally, n = Tally(), population.clusters
    for number in runs:
        graded = simulate(population, np.random.default_rng([seed, number]))
        drawn = Resamples(np.ones(n), resamples, np.random.default_rng([seed, number, 1]))
        found = tuning_results(graded, drawn, n, DEFAULT)[population.objective]
        tally.runs += 1
        tally.held += found.threshold.low <= OPTIMUM <= found.threshold.high
        tally.width += found.threshold.high - found.threshold.low
        swept = sweep(graded, drawn, DEFAULT)[population.objective]
        plain = drawn.interval(swept.threshold, n)
        tally.percentile_held += plain.low <= OPTIMUM <= plain.high
        tally.advice[found.advice.kind] += 1
    return {population: tally}


def document(found: dict[Population, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    informed = {of: tally for of, tally in found.items() if of.informed}
    short = sum(tally.held < WANTED * tally.runs for tally in informed.values())
    passed = f"all {len(informed)} pass" if not short else f"{short} fall short, marked with *"
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Tuned thresholds: the interval, and what is recommended",
            "",
            f"Written by `python -m benchmarks.calibration`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"{runs:,} simulated studies a line (synthetic), {resamples:,} resamples, default "
            f"threshold {DEFAULT}. In the population the objective is best at a threshold of "
            f"{OPTIMUM}, solved for numerically. The interval of the tuned threshold is to hold "
            f"that one in at least {WANTED:.0%} of the studies: {passed}. Beside it stands the "
            "bootstrap percentile interval of the tuned threshold, which is not used: it promises "
            "nothing where what is tuned jumps, and fails where probabilities come in steps (a "
            "threshold of 0.1 and one just above it are then the same verdicts).",
            "",
            "| population | tuned to | interval holds 0.1 | mean width | percentile holds it | "
            "tuned | default | not identifiable |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(of, tally) for of, tally in informed.items()),
            "",
            "A grader without information has no best threshold. What is recommended on it has to "
            "be the default, or that nothing can be identified:",
            "",
            "| population | tuned to | tuned | default | not identifiable |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| {of.name} | {of.objective} | {_advice(tally)} |"
                for of, tally in found.items()
                if not of.informed
            ),
            "",
        ]
    )


def _line(of: Population, tally: Tally) -> str:
    mark = "" if tally.held >= WANTED * tally.runs else " *"
    return (
        f"| {of.name} | {of.objective} | {tally.held / tally.runs:.3f}{mark} | "
        f"{tally.width / tally.runs:.3f} | {tally.percentile_held / tally.runs:.3f} | "
        f"{_advice(tally)} |"
    )


def _advice(tally: Tally) -> str:
    kinds = ("tuned", "default", "not_identifiable")
    return " | ".join(f"{tally.advice[kind] / tally.runs:.3f}" for kind in kinds)


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        POPULATIONS,
        run_population,
        document,
        runs=500,
        resamples=500,
        seed=SEED,
        out=OUT,
    )


if __name__ == "__main__":
    main()
