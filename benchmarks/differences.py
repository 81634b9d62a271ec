"""Coverage of subjects' differences and ranks, simulated: `python -m benchmarks.differences`.

Every run draws a new study from a population in which every subject's rate is known exactly, and
asks two things of all intervals together: does each hold the true difference, and does each set of
ranks hold the true rank? Two populations (synthetic). *Spread*: what a unit is like is normal, half
its variance its prompt's, rates lie evenly apart on that scale, one lenient grader. *Alike*: every
prompt has a rate of its own (beta) for all subjects, who are equal, while the grader errs
differently on each: any difference that is found is false.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage import CLOSE_ENOUGH, SEED
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import wilson
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.subjects.corrected_rates import RateSums, rate_features
from evenhand.analysis.subjects.scores import all_differences, rank_sets

OUT = RESULTS / "coverage-differences.md"
REST = 400
POPULATIONS, SUBJECTS, LABELLED, RATES = ("spread", "alike"), (3, 5, 20), (40, 100, 250), (0.1, 0.5)
APART = 0.25
"""On the normal scale the first and last subject of *spread* lie so far from the middle."""


class Cell(NamedTuple):
    """One study's design: which population, subjects, labelled prompts and the middle rate."""

    population: str
    subjects: int
    labelled: int
    rate: float


@dataclass
class Count:
    """Of so many runs: all differences held, all ranks held, mean width, and share of the pairs of
    subjects that were told apart.
    """

    runs: int = 0
    differences: int = 0
    ranks: int = 0
    width: float = 0.0
    apart: float = 0.0

    def add(self, other: Count) -> None:
        """Add another part of the runs."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def study(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One study: the true rates (subjects,), people's and the grader's verdicts, each (prompts,
    subjects) of 0 and 1.
    """
    shape = (cell.labelled + REST, cell.subjects)

    def clustered() -> np.ndarray:
        shared = rng.normal(size=(shape[0], 1))
        return math.sqrt(0.5) * shared + math.sqrt(0.5) * rng.normal(size=shape)

    if cell.population == "spread":
        middle = ndtri(cell.rate) + np.linspace(-APART, APART, cell.subjects)
        unit = clustered()
        seen = math.sqrt(0.8) * unit + math.sqrt(0.2) * clustered()
        people, grader = unit + middle > 0, seen + middle + APART > 0
        return ndtr(middle), people.astype(int), grader.astype(int)
    own = rng.beta(2.0 * cell.rate, 2.0 * (1.0 - cell.rate), size=(shape[0], 1))
    people = rng.random(shape) < own
    hit, false_alarm = np.linspace(0.6, 0.95, cell.subjects), np.linspace(0.3, 0.05, cell.subjects)
    grader = rng.random(shape) < np.where(people, hit, false_alarm)
    return np.full(cell.subjects, cell.rate), people.astype(int), grader.astype(int)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Count]:
    """Some runs of one design, through the analysis."""
    count = Count()
    for run in runs:
        design = [POPULATIONS.index(cell.population), *cell[1:3], round(100 * cell.rate)]
        rng = np.random.default_rng([seed, *design, run])
        true, people, grader = study(cell, rng)
        known = np.arange(len(people))[:, None] < cell.labelled
        reference = np.where(known, people, np.nan)
        features = rate_features(reference.ravel(), grader.ravel().astype(float))
        drawn = Resamples(np.ones(len(people)), resamples, rng)
        sums = drawn.to_rows(features.reshape(*people.shape, -1))
        rates = RateSums(*np.moveaxis(sums, -1, 0))
        labelled = np.full(cell.subjects, cell.labelled)
        found = all_differences(rates.ppi(rates.ppi_weight), labelled)
        apart = true[found.first] - true[found.second]
        highest, lowest = rank_sets(found, cell.subjects)
        first = 1 + (true > true[:, None]).sum(axis=1)
        last = (true >= true[:, None]).sum(axis=1)
        count.runs += 1
        count.differences += bool(((found.low <= apart) & (apart <= found.high)).all())
        count.ranks += bool(((highest <= first) & (last <= lowest)).all())
        count.width += float((found.high - found.low).mean())
        count.apart += float(((found.low > 0) | (found.high < 0)).mean())
    return {cell: count}


def document(found: Mapping[Cell, Count], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    today = datetime.now(UTC).date().isoformat()
    rows, short = [], 0
    for cell, count in found.items():
        low, high = wilson(count.differences / count.runs, count.runs)
        short += high < CLOSE_ENOUGH[0]
        mark = " *" if high < CLOSE_ENOUGH[0] else ""
        rows.append(
            f"| {cell.population} | {cell.subjects} | {cell.labelled} | {cell.rate} | "
            f"{count.differences / count.runs:.3f} [{low:.3f}, {high:.3f}]{mark} | "
            f"{count.ranks / count.runs:.3f} | {count.width / count.runs:.3f} | "
            f"{count.apart / count.runs:.2f} |"
        )
    held = f"all {len(rows)} cells pass" if not short else f"{short} of {len(rows)} fall short"
    return "\n".join(
        [
            "# Coverage of differences and ranks of subjects",
            "",
            f"Written by `python -m benchmarks.differences`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            "How often all nominal 95% intervals of differences between subjects' rates (PPI++) "
            f"hold the truth together, in {runs:,} simulated studies a cell (synthetic): labelled "
            f"prompts and {REST} that only the grader graded, {resamples:,} resamples of prompts. "
            "In brackets stands the Monte Carlo interval (Wilson, 95%); a cell falls short, and is "
            f"marked with *, where it lies below {CLOSE_ENOUGH[0]:.2f}: {held}. *Ranks*: how often "
            "all sets of ranks hold the true ranks, of equal subjects all that they may have. "
            "*Told apart*: the share of pairs of subjects; among those who are alike each is an "
            "error.",
            "",
            "| population | subjects | labelled | rate | differences | ranks | mean width | "
            "told apart |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    cells = [Cell(*each) for each in product(POPULATIONS, SUBJECTS, LABELLED, RATES)]
    simulate_and_write(
        arguments, __doc__, cells, run_cell, document, runs=1000, resamples=1000, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
