"""How often the 95% intervals hold the true value, by simulation: `python -m benchmarks.coverage`.

Every run draws a new study of pairs and subjects from a population whose coefficients are known
exactly, and asks whether each interval holds them. Beside the default, the bootstrap of clusters,
stands that of single units.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's. A rater sees it with an error, of which a part is shared by the rater's labels on one
pair, and answers with the step of the scale in which it falls. Given what the unit is like, raters
are independent: the joint distribution of two raters' labels is a one-dimensional integral.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.pairs import KappaMeans, pair_tables
from evenhand.analysis.bootstrap.intervals import wilson
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.people.comparison import with_and_among_humans

OUT = RESULTS / "coverage.md"
SEED = 20231206
CLOSE_ENOUGH = (0.93, 0.97)

PAIRS, SUBJECTS, HUMANS = 250, 4, 3
SHARED_BY_PAIR = 0.5
"""Share of the variance between units that lies between pairs."""
ERROR_BY_PAIR = 0.5
"""Share of a rater's error that is the same throughout a pair."""
HUMAN, GRADER = 0.85, 0.70
"""Share of the variance of what a rater sees that is the unit's own."""
SHARES = {
    0.5: (0.15, 0.20, 0.15, 0.30, 0.20),
    0.9: (0.02, 0.03, 0.05, 0.30, 0.60),
    0.1: (0.50, 0.25, 0.15, 0.06, 0.04),
    0.05: (0.55, 0.25, 0.15, 0.03, 0.02),
}
"""How often the five categories are used, by prevalence: the last two are affirmative."""
PREVALENCES = (0.5, 0.9)
Q, AFFIRMATIVE_FROM = 5, 3

BOOTSTRAPS = ("cluster", "unit")
STATISTICS = {
    "kappa": "Cohen kappa, two people, verdict",
    "nominal": "Krippendorff alpha nominal, three people, verdict",
    "ordinal": "Krippendorff alpha ordinal, three people, five categories",
    "ceiling": "Human ceiling difference, three people, verdict",
    "ceiling_ordinal": "Human ceiling difference, three people, five categories",
}


class Key(NamedTuple):
    """What a count belongs to."""

    prevalence: float
    statistic: str
    bootstrap: str


@dataclass
class Tally:
    """How the intervals of one cell did."""

    runs: int = 0
    below: int = 0
    above: int = 0
    undefined: int = 0
    width: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def coverage(self) -> float:
        """Share of runs whose interval held the true value; none is a miss."""
        return 1.0 - (self.below + self.above + self.undefined) / self.runs

    @property
    def monte_carlo(self) -> tuple[float, float]:
        """Wilson's 95% interval of the coverage."""
        return wilson(self.coverage, self.runs)

    @property
    def given(self) -> int:
        """Runs that had an interval."""
        return max(1, self.runs - self.undefined)

    @property
    def given_coverage(self) -> float:
        """Share of the intervals there were that held the true value."""
        return 1.0 - (self.below + self.above) / self.given

    @property
    def given_monte_carlo(self) -> tuple[float, float]:
        """Wilson's 95% interval of that."""
        return wilson(self.given_coverage, self.given)

    @property
    def holds(self) -> bool:
        """Whether the Monte Carlo interval meets [.93, .97]."""
        low, high = self.monte_carlo
        return low <= CLOSE_ENOUGH[1] and high >= CLOSE_ENOUGH[0]


@cache
def true_values(prevalence: float) -> dict[str, float]:
    """The population's coefficients, from exact joint distributions of two raters' labels."""
    humans, mixed = joint(prevalence, HUMAN, HUMAN), joint(prevalence, HUMAN, GRADER)
    verdicts, mixed_verdicts = verdict_table(humans), verdict_table(mixed)
    linear = c.agreement_weights(Q, "linear")
    # Alpha's correction for a finite number of labels vanishes.
    endless = 1e12
    found = {
        "kappa": c.kappas(verdicts),
        "nominal": c.alpha(verdicts * endless, "nominal"),
        "ordinal": c.alpha(humans * endless, "ordinal"),
        "ceiling": c.kappas(mixed_verdicts) - c.kappas(verdicts),
        "ceiling_ordinal": c.kappas(mixed, linear) - c.kappas(humans, linear),
    }
    return {name: float(value) for name, value in found.items()}


def joint(prevalence: float, first: float, second: float) -> np.ndarray:
    """How often two raters of these qualities say each two categories, (q, q)."""
    at, weight = np.polynomial.hermite_e.hermegauss(200)
    steps = [
        np.diff(
            ndtr((_cuts(prevalence)[:, None] - math.sqrt(own) * at) / math.sqrt(1 - own)), axis=0
        )
        for own in (first, second)
    ]
    table: np.ndarray = (steps[0] * weight) @ steps[1].T / weight.sum()
    return table


def verdict_table(table: np.ndarray) -> np.ndarray:
    """A table (5, 5) on the categories as one (2, 2) on the verdict, affirmative first."""
    yes, no = slice(AFFIRMATIVE_FROM, None), slice(0, AFFIRMATIVE_FROM)
    return np.array([[table[row, column].sum() for column in (yes, no)] for row in (yes, no)])


def simulate(
    prevalence: float, rng: np.random.Generator, pairs: int = PAIRS, subjects: int = SUBJECTS
) -> np.ndarray:
    """One study's labels (units, humans and then the grader), codes 0 to 4; pairs together."""
    raters = np.array([HUMAN] * HUMANS + [GRADER])
    of_pair, of_unit = rng.normal(size=(pairs, 1)), rng.normal(size=(pairs, subjects))
    unit = math.sqrt(SHARED_BY_PAIR) * of_pair + math.sqrt(1 - SHARED_BY_PAIR) * of_unit
    shared = rng.normal(size=(pairs, 1, len(raters)))
    alone = rng.normal(size=(pairs, subjects, len(raters)))
    error = math.sqrt(ERROR_BY_PAIR) * shared + math.sqrt(1 - ERROR_BY_PAIR) * alone
    seen = np.sqrt(raters) * unit[..., None] + np.sqrt(1 - raters) * error
    inner = _cuts(prevalence)[1:-1]
    codes: np.ndarray = np.searchsorted(inner, seen).astype(np.int8).reshape(-1, len(raters))
    return codes


def replicates(
    codes: np.ndarray, resamples: Resamples, clusters: np.ndarray
) -> dict[str, np.ndarray]:
    """Replicates (rows,) of every statistic, through the same code as the analysis."""
    people = list(range(HUMANS))
    categories = _coded(codes, clusters)
    verdicts = replace(
        categories,
        codes=(codes < AFFIRMATIVE_FROM).astype(np.int8),
        categories=("affirmative", "other"),
        values=(1.0, 0.0),
        level="nominal",
        subset="all|binary",
    )
    found = {"kappa": c.kappas(pair_tables(verdicts, [(0, 1)], resamples))[:, 0]}
    for coded, alpha, ceiling in (
        (verdicts, "nominal", "ceiling"),
        (categories, "ordinal", "ceiling_ordinal"),
    ):
        panel = group_panel(label_counts(coded, people), coded, resamples)
        found[alpha] = panel[f"krippendorff_alpha_{alpha}"]
        means = KappaMeans(coded, resamples)
        _, with_grader, between = with_and_among_humans(means, coded, HUMANS)
        assert with_grader is not None
        assert between is not None
        found[ceiling] = with_grader.values - between.values
    return found


def run_cell(prevalence: float, runs: range, resamples: int, seed: int) -> dict[Key, Tally]:
    """Some runs of one prevalence: every statistic and bootstrap on the same studies."""
    truth = true_values(prevalence)
    tallies: dict[Key, Tally] = {}
    for run in runs:
        rng = np.random.default_rng([seed, round(prevalence * 100), run])
        codes = simulate(prevalence, rng)
        for bootstrap, (labels, clusters, frequency) in _views(codes):
            drawn = Resamples(frequency, resamples, rng)
            for statistic, values in replicates(labels, drawn, clusters).items():
                found = drawn.interval(values, PAIRS)
                tally = tallies.setdefault(Key(prevalence, statistic, bootstrap), Tally())
                tally.runs += 1
                tally.below += found.high < truth[statistic]
                tally.above += found.low > truth[statistic]
                tally.undefined += math.isnan(found.low)
                tally.width += found.high - found.low
    return tallies


def document(found: dict[Key, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    default = [tally for key, tally in found.items() if key.bootstrap == "cluster"]
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Coverage of the intervals",
            "",
            "Written by `python -m benchmarks.coverage`, "
            f"{today}, seed {seed}, {library_versions()}.",
            "",
            f"How often a nominal 95% interval holds the true value, in {runs:,} simulated "
            f"studies a cell (synthetic): {PAIRS} pairs x {SUBJECTS} subjects, {HUMANS} people and "
            f"a grader, {resamples:,} resamples. Half the variance between units lies between "
            f"pairs, and {ERROR_BY_PAIR:.0%} of a rater's error is the same throughout a pair. The "
            "true values are exact integrals of that population, not simulated. In brackets stands "
            "the Monte Carlo interval of the coverage (Wilson, 95%); a cell passes where it meets "
            f"[{CLOSE_ENOUGH[0]:.2f}, {CLOSE_ENOUGH[1]:.2f}], and a cell that does not is marked "
            "with *. Smaller and less balanced studies have [a page of their own]"
            "(coverage-small.md).",
            "",
            _verdict_on(default),
            "",
            *_table(found),
            "",
            "Misses to either side and mean width, cluster bootstrap:",
            "",
            *_sides(found),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        PREVALENCES,
        run_cell,
        document,
        runs=4000,
        resamples=2000,
        seed=SEED,
        out=OUT,
    )


def _cuts(prevalence: float) -> np.ndarray:
    return np.concatenate([[-np.inf], ndtri(np.cumsum(SHARES[prevalence])[:-1]), [np.inf]])


def _coded(codes: np.ndarray, clusters: np.ndarray) -> Coded:
    names = (*(f"h{human}" for human in range(HUMANS)), "grader")
    return Coded(
        raters=names,
        kinds=("human",) * HUMANS + ("model",),
        codes=codes,
        clusters=clusters,
        categories=("1", "2", "3", "4", "5"),
        values=(1.0, 2.0, 3.0, 4.0, 5.0),
        level="ordinal",
        subset="all",
    )


def _views(codes: np.ndarray) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]:
    """Labels, clusters and frequency for the bootstrap of clusters and that of units."""
    yield "cluster", (codes, np.repeat(np.arange(PAIRS), SUBJECTS), np.ones(PAIRS))
    distinct, times = np.unique(codes, axis=0, return_counts=True)
    yield "unit", (distinct, np.arange(len(distinct)), times)


def _verdict_on(default: Sequence[Tally]) -> str:
    away = np.mean([abs(tally.coverage - 0.95) for tally in default])
    short, cells = sum(not tally.holds for tally in default), len(default)
    passed = f"all {cells} cells pass" if not short else f"{short} of {cells} cells fall short"
    return (
        f"With the default, the bootstrap of clusters, {passed}. The mean distance from .95 is "
        f"{away:.4f}. Bootstrapping single units takes the units of a pair as independent, which "
        "they are not."
    )


def _table(found: dict[Key, Tally]) -> Iterator[str]:
    yield f"| prevalence | statistic | true value | {' | '.join(BOOTSTRAPS)} |"
    yield "| --- | --- | --- |" + " --- |" * len(BOOTSTRAPS)
    for prevalence in PREVALENCES:
        truth = true_values(prevalence)
        for statistic, title in STATISTICS.items():
            cells = []
            for bootstrap in BOOTSTRAPS:
                tally = found[Key(prevalence, statistic, bootstrap)]
                low, high = tally.monte_carlo
                mark = "" if tally.holds else " *"
                cells.append(f"{tally.coverage:.3f} [{low:.3f}, {high:.3f}]{mark}")
            shown = f"{truth[statistic]:.3f}"
            yield f"| {prevalence:.1f} | {title} | {shown} | {' | '.join(cells)} |"


def _sides(found: dict[Key, Tally]) -> Iterator[str]:
    yield "| prevalence | statistic | true value above | true value below | mean width |"
    yield "| --- | --- | --- | --- | --- |"
    for prevalence in PREVALENCES:
        for statistic, title in STATISTICS.items():
            tally = found[Key(prevalence, statistic, "cluster")]
            yield (
                f"| {prevalence:.1f} | {title} | {tally.below / tally.runs:.3f} | "
                f"{tally.above / tally.runs:.3f} | {tally.width / tally.runs:.3f} |"
            )


if __name__ == "__main__":
    main()
