"""Intervals of small and unbalanced studies, by simulation: `python -m benchmarks.small_samples`.

The population (synthetic) is that of `benchmarks.coverage`, and so are the statistics; intervals
are made as a report makes them, widened where nothing varies. What misses lie on which side is told
apart: one-sided statements ("at least", "at worst") rest on one bound only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import (
    AFFIRMATIVE_FROM,
    CLOSE_ENOUGH,
    HUMANS,
    STATISTICS,
    Q,
    Tally,
    replicates,
    simulate,
    true_values,
)
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import Chance, widened
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.statistics import entry_for

OUT = RESULTS / "coverage-small.md"
SEED = 20231206
ROWS = {
    "kappa": "cohen_kappa",
    "nominal": "krippendorff_alpha_nominal",
    "ordinal": "krippendorff_alpha_ordinal",
    "ceiling": "human_ceiling_difference",
    "ceiling_ordinal": "human_ceiling_difference",
}
"""What results.csv calls the statistics."""
ONE_SIDED = 0.025


class Cell(NamedTuple):
    """A kind of study."""

    prevalence: float
    pairs: int
    subjects: int


class Key(NamedTuple):
    """What a count belongs to."""

    cell: Cell
    statistic: str


CELLS = (
    *(Cell(prevalence, pairs, 1) for prevalence in (0.5, 0.1, 0.05) for pairs in (50, 100)),
    Cell(0.05, 50, 4),
)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Key, Tally]:
    """Some runs of one cell: every statistic on the same studies."""
    truth = true_values(cell.prevalence)
    clusters = np.repeat(np.arange(cell.pairs), cell.subjects)
    tallies: dict[Key, Tally] = {}
    for run in runs:
        rng = np.random.default_rng([seed, round(cell.prevalence * 100), *cell[1:], run])
        codes = simulate(cell.prevalence, rng, cell.pairs, cell.subjects)
        drawn = Resamples(np.ones(cell.pairs), resamples, rng)
        chances = _chances(codes)
        for statistic, values in replicates(codes, drawn, clusters).items():
            kind, apart = entry_for(ROWS[statistic]).kind, chances[statistic]
            found = widened(drawn.interval(values, cell.pairs), cell.pairs, kind, apart)
            given = not np.isnan(found.low)
            tally = tallies.setdefault(Key(cell, statistic), Tally())
            tally.runs += 1
            tally.below += found.high < truth[statistic]
            tally.above += found.low > truth[statistic]
            tally.undefined += not given
            tally.width += found.high - found.low if given else 0.0
    return tallies


def _chances(codes: np.ndarray) -> dict[str, float]:
    """The disagreement by chance of every statistic, from people's labels."""
    shares = np.bincount(codes[:, :HUMANS].ravel(), minlength=Q) / codes[:, :HUMANS].size
    verdict = Chance(np.array([shares[AFFIRMATIVE_FROM:].sum(), shares[:AFFIRMATIVE_FROM].sum()]))
    categories = Chance(shares, ordered="quadratic")
    return {
        statistic: (categories if "ordinal" in statistic else verdict).disagreement(row)
        for statistic, row in ROWS.items()
    }


def document(found: dict[Key, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    today = datetime.now(UTC).date().isoformat()
    error = (ONE_SIDED * (1 - ONE_SIDED) / runs) ** 0.5
    return "\n".join(
        [
            "# Intervals of small and unbalanced studies",
            "",
            "Written by `python -m benchmarks.small_samples`, "
            f"{today}, seed {seed}, {library_versions()}.",
            "",
            f"How often a nominal 95% interval holds the true value, in {runs:,} simulated studies "
            f"a cell (synthetic): {HUMANS} people and a grader, {resamples:,} resamples of pairs, "
            "the population and the statistics of [the page on larger studies](coverage.md). "
            "Prevalence is how often people say yes; categories are five, as rare at the upper "
            "end. In brackets stands the Monte Carlo interval of the coverage (Wilson, 95%); "
            f"marked with * is where it lies wholly below {CLOSE_ENOUGH[0]:.2f}. Misses: the share "
            "of intervals that lie wholly below and wholly above the true value, nominally "
            f"{ONE_SIDED:.1%} each; their Monte Carlo standard error is {error:.1%} there. Studies "
            "that have no interval, since too many resamples leave the statistic undefined, are "
            "counted apart.",
            "",
            *_said(found),
            "",
            "| prevalence | pairs | subjects | statistic | coverage | wholly below | "
            "wholly above | no interval | mean width |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(key, found[key]) for key in found),
            "",
        ]
    )


def _said(found: dict[Key, Tally]) -> Iterator[str]:
    """Where the intervals hold the truth too seldom, the worst first."""
    short = sorted((tally.given_coverage, key) for key, tally in found.items() if _short(tally))
    yield f"{len(short)} of {len(found)} cells fall short."
    yield ""
    for coverage, key in short:
        tally = found[key]
        side = "below" if tally.below > tally.above else "above"
        yield (
            f"- {coverage:.3f}: {STATISTICS[key.statistic]}, prevalence {key.cell.prevalence:g}, "
            f"{key.cell.pairs} pairs x {key.cell.subjects}; misses lie mostly {side} the true value"
        )


def _short(tally: Tally) -> bool:
    return tally.given_monte_carlo[1] < CLOSE_ENOUGH[0]


def _line(key: Key, tally: Tally) -> str:
    low, high = tally.given_monte_carlo
    mark = " *" if _short(tally) else ""
    cells = (
        *key.cell,
        STATISTICS[key.statistic],
        f"{tally.given_coverage:.3f} [{low:.3f}, {high:.3f}]{mark}",
        f"{tally.below / tally.given:.3f}",
        f"{tally.above / tally.given:.3f}",
        f"{tally.undefined / tally.runs:.3f}",
        f"{tally.width / tally.given:.3f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=2000, resamples=2000, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
