"""How often a promised confidence cut breaks its word: `python -m benchmarks.routing`.

Every run draws a study from a population in which the agreement above each cut is known, and asks
for a cut by the product's own code, with a promise and as the confidence filter chooses it. A cut
breaks its word where the agreement above it lies below the target in the population.

The populations (synthetic). A unit's nature is a normal variable, half of its variance the pair's;
people affirm it above a point that fixes the prevalence. A grader sees the variable with an error,
half of it the pair's, and affirms above a point of its own. Its agreement with people is set by how
much it sees where prevalence is .5, and where it is .1 by affirming too often.
*Surer is better*: confidence is how far from that point it sees a unit, and it agrees 5 percentage
points less often than the target. *Empty*: confidence is a random number, and it agrees just less
often than the target, so that every cut breaks its word. *Dips*: agreement lies above the target
for the surest units, well below for the next, and above for the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.thresholds.tuning import ERROR, guaranteed_cut

OUT = RESULTS / "routing.md"
SEED = 20231206
BETTER, EMPTY, DIPS = "surer is better", "empty", "dips"
BELOW = {BETTER: 0.05, EMPTY: 0.001}
"""How far a grader's agreement on all units lies below the target."""
BANDS = ((0.0, 0.45, 0.5), (0.45, 0.6, 1.3), (0.6, 1.0, 0.9))
"""Dips: confidence from, to, and the share of wrong labels there over the share allowed."""
SIGNAL = np.linspace(-8.0, 8.0, 16_001)


@dataclass(frozen=True)
class Cell:
    """A kind of study; prevalence 0 where it plays no part."""

    population: str
    target: float
    prevalence: float
    pairs: int
    subjects: int


CELLS = tuple(
    Cell(population, target, prevalence, pairs, subjects)
    for population, prevalences in ((BETTER, (0.5, 0.1)), (EMPTY, (0.5, 0.1)), (DIPS, (0.0,)))
    for target in (0.9, 0.95)
    for prevalence in prevalences
    for pairs in (50, 100, 250)
    for subjects in (1, 4)
)


@dataclass
class Tally:
    """Runs of a cell: cuts found, with what share of the units, and words broken, by the promise
    and by today's rule; and how often as many more labels as were advised had a cut.
    """

    runs: int = 0
    found: int = 0
    share: float = 0.0
    broken: int = 0
    advised: int = 0
    advised_found: int = 0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


@dataclass(frozen=True)
class Grader:
    """How much of a unit's variance a grader sees, and above which point it affirms."""

    sees: float
    point: float
    prevalence: float

    def agreement(self, distance: float = 0.0) -> float:
        """How often it agrees with people on units so far from its point, or further."""
        density = np.exp(-(SIGNAL**2) / 2) * (np.abs(SIGNAL - self.point) >= distance)
        people = math.sqrt(self.sees) * SIGNAL - ndtri(1 - self.prevalence)
        affirmed = ndtr(people / math.sqrt(1 - self.sees))
        agreed = np.where(self.point < SIGNAL, affirmed, 1 - affirmed)
        return float((density * agreed).sum() / density.sum())


@cache
def grader(agreement: float, prevalence: float) -> Grader:
    """One that agrees with people so often."""
    sees = brentq(lambda own: Grader(own, 0.0, 0.5).agreement() - agreement, 0.1, 1 - 1e-6)
    fair = float(ndtri(1 - prevalence) / math.sqrt(sees))
    if prevalence == 0.5:
        return Grader(sees, fair, prevalence)
    point = brentq(lambda own: Grader(sees, own, prevalence).agreement() - agreement, -3.0, fair)
    return Grader(sees, float(point), prevalence)


def _normal(pairs: int, subjects: int, rng: np.random.Generator) -> np.ndarray:
    shared = rng.normal(size=(pairs, 1)) + rng.normal(size=(pairs, subjects))
    return math.sqrt(0.5) * shared.ravel()


def study(
    cell: Cell, pairs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence, what is wrong, and pairs, each (units,)."""
    size = pairs, cell.subjects
    pair = np.repeat(np.arange(pairs), cell.subjects)
    confidence = rng.random(len(pair))
    if cell.population == DIPS:
        rate = np.zeros(len(pair))
        for start, stop, times in BANDS:
            rate[(confidence >= start) & (confidence < stop)] = times * (1 - cell.target)
        return confidence, ndtr(_normal(*size, rng)) < rate, pair
    who = grader(cell.target - BELOW[cell.population], cell.prevalence)
    unit = _normal(*size, rng)
    seen = math.sqrt(who.sees) * unit + math.sqrt(1 - who.sees) * _normal(*size, rng)
    wrong = (seen > who.point) != (unit > ndtri(1 - cell.prevalence))
    if cell.population == BETTER:
        confidence = 2 * ndtr(np.abs(seen - who.point)) - 1
    return confidence, wrong, pair


def is_broken(cell: Cell, cut: float) -> bool:
    """Whether the agreement above a cut is less than the target in the population."""
    if cell.population == EMPTY:
        return True
    if cell.population == DIPS:
        kept = [max(stop - max(start, cut), 0.0) for start, stop, _ in BANDS]
        wrong = sum(part * times for part, (*_, times) in zip(kept, BANDS, strict=True))
        return wrong > sum(kept)
    who = grader(cell.target - BELOW[BETTER], cell.prevalence)
    return who.agreement(float(ndtri((1 + cut) / 2))) < cell.target


def run_cell(cell: Cell, runs: range, _: int, seed: int) -> dict[Cell, Tally]:
    """Some runs of one cell."""
    tally = Tally()
    for run in runs:
        rng = np.random.default_rng([seed, run, CELLS.index(cell)])
        confidence, wrong, pair = study(cell, cell.pairs, rng)
        promised = guaranteed_cut(confidence, wrong, pair, cell.target, ERROR)
        tally.runs += 1
        if not math.isnan(promised.cut):
            tally.found += 1
            tally.share += float((confidence >= promised.cut).mean())
            tally.broken += is_broken(cell, promised.cut)
        elif math.isfinite(promised.growth):
            tally.advised += 1
            more = study(cell, math.ceil(cell.pairs * promised.growth), rng)
            tally.advised_found += not math.isnan(guaranteed_cut(*more, cell.target, ERROR).cut)
    return {cell: tally}


def document(found: dict[Cell, Tally], runs: int, _: int, seed: int) -> str:
    """The page about all this."""
    bound = ERROR + 2 * math.sqrt(ERROR * (1 - ERROR) / runs)
    over = sum(tally.broken > bound * tally.runs for tally in found.values())
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Routing by confidence: how often a promise is broken",
            "",
            f"Written by `python -m benchmarks.routing`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"{runs:,} simulated studies a line (synthetic). A promised cut says: at least the "
            "target share of the labels at or above it agree with people. It is *broken* where "
            "this is false in the population, which may happen in at most "
            f"{ERROR:.0%} of studies, here up to {bound:.1%}, two Monte Carlo standard errors "
            f"above. {len(found) - over} of {len(found)} lines pass.",
            "",
            "*Routed* is the mean share of units above the cut, none counting as 0. *Advised* is "
            "the share of studies without a promise that are told how many labels would do, and "
            "*then found* how often a new study of that size has one.",
            "",
            "The grader agrees with people a little less often than the target (*empty*: its "
            "confidence says nothing), or 5 percentage points less often (*surer is better*); in "
            "*dips* agreement falls below the target from the surest units to the next, and rises "
            "again. Units of a pair share half of their variance and half of the grader's errors.",
            "",
            "| confidence | target | prevalence | pairs | subjects | broken | "
            "found | routed | advised | then found |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, tally, bound) for cell, tally in found.items()),
            "",
            "With one subject the test is exact. With four, a pair's units may all be wrong "
            "together, and the test allows for any such dependence: it needs as many pairs as with "
            "one subject, or more, and is broken far less often than it may be.",
            "",
        ]
    )


def _line(cell: Cell, tally: Tally, bound: float) -> str:
    mark = " *" if tally.broken > bound * tally.runs else ""
    open_, advised = tally.runs - tally.found, tally.advised
    shares = [
        f"{tally.broken / tally.runs:.3f}{mark}",
        f"{tally.found / tally.runs:.3f}",
        f"{tally.share / tally.runs:.2f}",
        f"{advised / open_:.2f}" if open_ else "",
        f"{tally.advised_found / advised:.2f}" if advised else "",
    ]
    kind = cell.population, cell.target, cell.prevalence or "any", cell.pairs, cell.subjects
    return f"| {' | '.join([*map(str, kind), *shares])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=2000, resamples=0, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
