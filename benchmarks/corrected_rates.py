"""Coverage of corrected rates' intervals, simulated: `python -m benchmarks.corrected_rates`.

Every run draws a new study from a population in which people's rate is known exactly: pairs of
which some are labelled, several subjects, people's verdict and a grader's, which is biased. Beside
the intervals of the analysis stand those of the shortcut that takes the grader's rate on what
nobody labelled for known; in small and unbalanced studies, those of the resamples alone.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's. People and the grader see it with an error, half of whose variance is shared by the
rater's verdicts on one pair, and affirm it above a cut; the grader's is lower: it affirms too much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage import CLOSE_ENOUGH, SEED, Tally
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.boundary import FEW_CASES, share_interval, widened
from evenhand.analysis.bootstrap.intervals import Interval, interval, percentile_bounds
from evenhand.analysis.bootstrap.patterns import distinct_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.subjects.formulas import (
    RateSums,
    clipped,
    corrected_interval,
    invert,
    rate_features,
)

OUT = RESULTS / "coverage-corrected.md"

LABELLED, REST, SUBJECTS = (50, 100, 250), 1100, 4
PREVALENCES = (0.02, 0.05, 0.1, 0.5)
USUAL = tuple(product((250,), (0.1, 0.5)))
"""The (labelled, prevalence) at which all estimates are compared."""
PAIR_SHARE = 0.5
"""Share of the variance between units that lies between pairs, and of a rater's error."""
PEOPLE, GRADER = 0.90, 0.80
"""Share of the variance of what a rater sees that is the unit's own."""
LENIENCE = 0.25
"""By how many standard deviations the grader's cut lies below people's."""

ESTIMATES = {
    "people": "people's own rate on the sample",
    "people_all": "the same, all subjects together",
    "raw": "raw rate of the grader",
    "rogan_gladen": "Rogan-Gladen, error rates pooled over subjects",
    "rogan_gladen_fixed": "the same, the grader's rate taken as known",
    "ppi": "PPI++",
    "ppi_fixed": "the same, the grader's rate taken as known",
}
JUDGED = ("people", "people_all", "rogan_gladen", "ppi")
"""What must hold its level; the rest is here to be compared with."""


class Key(NamedTuple):
    """What a count belongs to; `alone` are the resamples' percentiles and nothing else."""

    labelled: int
    prevalence: float
    estimate: str
    alone: bool = False


def simulate(
    labelled: int, prevalence: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """One study's verdicts of people and of the grader, each (pairs, subjects) of 0 and 1."""
    pairs = labelled + REST

    def clustered() -> np.ndarray:
        shared, alone = rng.normal(size=(pairs, 1)), rng.normal(size=(pairs, SUBJECTS))
        return math.sqrt(PAIR_SHARE) * shared + math.sqrt(1.0 - PAIR_SHARE) * alone

    unit, cut = clustered(), -float(ndtri(prevalence))
    people = math.sqrt(PEOPLE) * unit + math.sqrt(1.0 - PEOPLE) * clustered()
    grader = math.sqrt(GRADER) * unit + math.sqrt(1.0 - GRADER) * clustered()
    return (people > cut).astype(int), (grader > cut - LENIENCE).astype(int)


def replicates(
    people: np.ndarray, grader: np.ndarray, resamples: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Replicates (rows,) of the first subject's rate by every estimate, through the analysis."""
    labelled = (np.arange(len(people)) < len(people) - REST)[:, None]
    kinds = np.where(labelled, people + 2 * grader, 4 + grader)
    kept, times = distinct_rows(list(kinds.T))
    reference = np.where(labelled, people, np.nan)[kept].astype(float)
    features = rate_features(reference.ravel(), grader[kept].ravel().astype(float))
    drawn = Resamples(times, resamples, rng)
    sums = drawn.totals(features.reshape(len(kept), SUBJECTS, -1))
    own, pooled = RateSums(*sums[:, 0].T), RateSums(*sums.sum(axis=1).T)
    weight, errors = own.ppi_weight, (pooled.sensitivity, pooled.specificity)
    known = np.full(len(sums), own.elsewhere[0])
    return {
        "people": own.people,
        "people_all": pooled.people,
        "raw": own.raw,
        "rogan_gladen": invert(own.raw, *errors),
        "rogan_gladen_fixed": invert(np.full(len(sums), own.raw[0]), *errors),
        "ppi": own.ppi(weight),
        "ppi_fixed": own.people + weight * (known - own.graded_labelled),
    }


def interval_of(name: str, values: np.ndarray, labelled: int) -> Interval:
    """The interval of an estimate as the analysis has it."""
    if name in ("raw", "rogan_gladen_fixed", "ppi_fixed"):
        return interval(values, labelled + REST)
    found, drawn = interval(values, labelled), values[1:]
    if name.startswith("people"):
        units = labelled * (SUBJECTS if name == "people_all" else 1)
        return widened(share_interval(found, drawn, units, labelled), labelled, "share")
    sample = (labelled, labelled)
    return corrected_interval(found, drawn, labelled + REST, sample)


def run_cell(cell: tuple[int, float], runs: range, resamples: int, seed: int) -> dict[Key, Tally]:
    """Some runs of one number of labelled pairs and prevalence: every estimate on the same."""
    labelled, prevalence = cell
    tallies: dict[Key, Tally] = {}

    def count(key: Key, low: float, high: float) -> None:
        tally = tallies.setdefault(key, Tally())
        tally.runs += 1
        tally.below += high < prevalence
        tally.above += low > prevalence
        tally.undefined += math.isnan(low)
        tally.width += 0.0 if math.isnan(low) else high - low

    for run in runs:
        rng = np.random.default_rng([seed, labelled, round(prevalence * 100), run])
        for name, values in replicates(*simulate(*cell, rng), resamples, rng).items():
            found = interval_of(name, values, labelled)
            count(Key(*cell, name), *clipped(np.array([found.low, found.high])).tolist())
            if name in JUDGED:
                defined = values[1:][~np.isnan(values[1:])]
                # Where the analysis gives no interval there is nothing to compare.
                alone = percentile_bounds(defined) if found.low >= 0 else (math.nan, math.nan)
                count(Key(*cell, name, alone=True), *clipped(np.array(alone)).tolist())
    return tallies


def error_rates(prevalence: float) -> tuple[float, float]:
    """The grader's sensitivity and specificity in the population, by quadrature."""
    at, weight = np.polynomial.hermite_e.hermegauss(200)
    cut = -float(ndtri(prevalence))
    affirms = [
        1.0 - ndtr((limit - math.sqrt(own) * at) / math.sqrt(1.0 - own))
        for own, limit in ((PEOPLE, cut), (GRADER, cut - LENIENCE))
    ]
    both = float((affirms[0] * affirms[1] * weight).sum() / weight.sum())
    raw = float((affirms[1] * weight).sum() / weight.sum())
    return both / prevalence, 1.0 - (raw - both) / (1.0 - prevalence)


def document(found: Mapping[Key, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    judged = [found[Key(*cell, name)] for cell in product(LABELLED, PREVALENCES) for name in JUDGED]
    short = sum(tally.given_monte_carlo[1] < CLOSE_ENOUGH[0] for tally in judged)
    passed = (
        f"all {len(judged)} cells pass" if not short else f"{short} of {len(judged)} fall short"
    )
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Coverage of corrected rates",
            "",
            "Written by `python -m benchmarks.corrected_rates`, "
            f"{today}, seed {seed}, {library_versions()}.",
            "",
            "How often a nominal 95% interval of one subject's rate holds people's true rate, in "
            f"{runs:,} simulated studies a cell (synthetic): labelled pairs and "
            f"{REST:,} that only the grader graded, {SUBJECTS} subjects, {resamples:,} resamples "
            "of pairs. Half the variance between units, and of a rater's error, is shared within a "
            "pair. The true rate is the population's, not simulated. In brackets stands the Monte "
            "Carlo interval of the coverage (Wilson, 95%), of the studies that have an interval.",
            "",
            "## Small and unbalanced studies",
            "",
            f"A cell falls short, and is marked with *, where that interval lies below "
            f"{CLOSE_ENOUGH[0]:.2f}: {passed}. Above {CLOSE_ENOUGH[1]:.2f} an interval is wider "
            f"than it need be: Wilson's for fewer than {FEW_CASES} expected cases takes that for "
            "never being a single number. *Resamples alone* are their 2.5% and 97.5% quantiles, on "
            "the same studies.",
            "",
            *_small_table(found),
            "",
            "## What to hold fixed",
            "",
            f"{USUAL[0][0]} labelled pairs. The raw rate has the grader's errors in "
            "it, and an interval that is the narrower the more it grades. The shortcut resamples "
            "the labelled units only and takes the grader's rate on the others (for Rogan-Gladen, "
            f"on all) for known. What does not meet [{CLOSE_ENOUGH[0]:.2f}, {CLOSE_ENOUGH[1]:.2f}] "
            "is marked with *.",
            "",
            *_table(found),
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        tuple(product(LABELLED, PREVALENCES)),
        run_cell,
        document,
        runs=1000,
        resamples=1000,
        seed=SEED,
        out=OUT,
    )


def _small_table(found: Mapping[Key, Tally]) -> Iterator[str]:
    yield (
        "| labelled | true rate | estimate | coverage | truth below, above | mean width | "
        "no interval | resamples alone |"
    )
    yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
    for labelled, prevalence in product(LABELLED, PREVALENCES):
        for name in JUDGED:
            tally = found[Key(labelled, prevalence, name)]
            alone = found[Key(labelled, prevalence, name, alone=True)]
            low, high = tally.given_monte_carlo
            mark = " *" if high < CLOSE_ENOUGH[0] else ""
            yield (
                f"| {labelled} | {prevalence} | {ESTIMATES[name]} | "
                f"{tally.given_coverage:.3f} [{low:.3f}, {high:.3f}]{mark} | "
                f"{tally.above / tally.given:.3f}, {tally.below / tally.given:.3f} | "
                f"{tally.width / tally.given:.3f} | {tally.undefined / tally.runs:.2f} | "
                f"{alone.given_coverage:.3f} |"
            )


def _table(found: Mapping[Key, Tally]) -> Iterator[str]:
    yield "| true rate | grader's sensitivity, specificity | estimate | coverage | mean width |"
    yield "| --- | --- | --- | --- | --- |"
    for labelled, prevalence in USUAL:
        sensitivity, specificity = error_rates(prevalence)
        for name, title in ESTIMATES.items():
            tally = found[Key(labelled, prevalence, name)]
            low, high = tally.monte_carlo
            mark = "" if tally.holds else " *"
            yield (
                f"| {prevalence:.1f} | {sensitivity:.3f}, {specificity:.3f} | {title} | "
                f"{tally.coverage:.3f} [{low:.3f}, {high:.3f}]{mark} | "
                f"{tally.width / tally.runs:.3f} |"
            )


if __name__ == "__main__":
    main()
