"""Coverage of corrected rates' intervals, simulated: `python -m benchmarks.corrected_rates`.

Every run draws a new study from a population in which people's rate is known exactly: pairs of
which some are labelled, several subjects, people's verdict and a grader's, which is biased. Beside
the intervals of the analysis stand those of the shortcut that takes the grader's rate on what
nobody labelled for known.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's. People and the grader see it with an error, half of whose variance is shared by the
rater's verdicts on one pair, and affirm it above a cut; the grader's is lower: it affirms too much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage import CLOSE_ENOUGH, SEED, Tally
from benchmarks.documents import library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import interval
from evenhand.analysis.bootstrap.patterns import distinct_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.subjects.formulas import RateSums, clipped, invert, rate_features

OUT = Path(__file__).parent.parent / "docs" / "coverage-corrected.md"

LABELLED, REST, SUBJECTS = 250, 1100, 4
PREVALENCES = (0.1, 0.5)
PAIR_SHARE = 0.5
"""Share of the variance between units that lies between pairs, and of a rater's error."""
PEOPLE, GRADER = 0.90, 0.80
"""Share of the variance of what a rater sees that is the unit's own."""
LENIENCE = 0.25
"""By how many standard deviations the grader's cut lies below people's."""

ESTIMATES = {
    "people": "people's own rate on the sample",
    "raw": "raw rate of the grader",
    "rogan_gladen": "Rogan-Gladen, error rates pooled over subjects",
    "rogan_gladen_fixed": "the same, the grader's rate taken as known",
    "ppi": "PPI++",
    "ppi_fixed": "the same, the grader's rate taken as known",
}
JUDGED = ("people", "rogan_gladen", "ppi")
"""What must hold its level; the rest is here to be compared with."""


class Key(NamedTuple):
    """What a count belongs to."""

    prevalence: float
    estimate: str


def simulate(prevalence: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One study's verdicts of people and of the grader, each (pairs, subjects) of 0 and 1."""
    pairs = LABELLED + REST

    def clustered() -> np.ndarray:
        shared, alone = rng.normal(size=(pairs, 1)), rng.normal(size=(pairs, SUBJECTS))
        return math.sqrt(PAIR_SHARE) * shared + math.sqrt(1.0 - PAIR_SHARE) * alone

    unit, cut = clustered(), -float(ndtri(prevalence))
    people = math.sqrt(PEOPLE) * unit + math.sqrt(1.0 - PEOPLE) * clustered()
    grader = math.sqrt(GRADER) * unit + math.sqrt(1.0 - GRADER) * clustered()
    return (people > cut).astype(int), (grader > cut - LENIENCE).astype(int)


def replicates(people: np.ndarray, grader: np.ndarray, resamples: int, rng: np.random.Generator):
    """Replicates (rows,) of the first subject's rate by every estimate, through the analysis."""
    labelled = (np.arange(len(people)) < LABELLED)[:, None]
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
        "raw": own.raw,
        "rogan_gladen": invert(own.raw, *errors),
        "rogan_gladen_fixed": invert(np.full(len(sums), own.raw[0]), *errors),
        "ppi": own.ppi(weight),
        "ppi_fixed": own.people + weight * (known - own.graded_labelled),
    }


def run_cell(prevalence: float, runs: range, resamples: int, seed: int) -> dict[Key, Tally]:
    """Some runs of one prevalence: every estimate on the same studies."""
    tallies = {Key(prevalence, name): Tally() for name in ESTIMATES}
    for run in runs:
        rng = np.random.default_rng([seed, round(prevalence * 100), run])
        for name, values in replicates(*simulate(prevalence, rng), resamples, rng).items():
            found = interval(values, LABELLED + REST)
            low, high = clipped(np.array([found.low, found.high]))
            tally = tallies[Key(prevalence, name)]
            tally.runs += 1
            tally.below += high < prevalence
            tally.above += low > prevalence
            tally.undefined += math.isnan(low)
            tally.width += high - low
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


def document(found: dict[Key, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    short = sum(not found[Key(p, name)].holds for p in PREVALENCES for name in JUDGED)
    cells = len(PREVALENCES) * len(JUDGED)
    passed = f"all {cells} cells pass" if not short else f"{short} of {cells} cells fall short"
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Coverage of corrected rates",
            "",
            "Written by `python -m benchmarks.corrected_rates`, "
            f"{today}, seed {seed}, {library_versions()}.",
            "",
            "How often a nominal 95% interval of one subject's rate holds people's true rate, in "
            f"{runs:,} simulated studies a cell (synthetic): {LABELLED} labelled pairs and "
            f"{REST:,} that only the grader graded, {SUBJECTS} subjects, {resamples:,} resamples "
            "of pairs. Half the variance between units, and of a rater's error, is shared within a "
            "pair. The true rate is the population's, not simulated. In brackets stands the Monte "
            "Carlo interval of the coverage (Wilson, 95%); a cell passes where it meets "
            f"[{CLOSE_ENOUGH[0]:.2f}, {CLOSE_ENOUGH[1]:.2f}], and one that does not is marked "
            "with *.",
            "",
            f"With the analysis' own intervals {passed}. The raw rate has the grader's errors in "
            "it, and an interval that is the narrower the more it grades. The shortcut resamples "
            "the labelled units only and takes the grader's rate on the others (for Rogan-Gladen, "
            "on all) for known.",
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
        PREVALENCES,
        run_cell,
        document,
        runs=4000,
        resamples=2000,
        seed=SEED,
        out=OUT,
    )


def _table(found: dict[Key, Tally]) -> Iterator[str]:
    yield "| true rate | grader's sensitivity, specificity | estimate | coverage | mean width |"
    yield "| --- | --- | --- | --- | --- |"
    for prevalence in PREVALENCES:
        sensitivity, specificity = error_rates(prevalence)
        for name, title in ESTIMATES.items():
            tally = found[Key(prevalence, name)]
            low, high = tally.monte_carlo
            mark = "" if tally.holds else " *"
            yield (
                f"| {prevalence:.1f} | {sensitivity:.3f}, {specificity:.3f} | {title} | "
                f"{tally.coverage:.3f} [{low:.3f}, {high:.3f}]{mark} | "
                f"{tally.width / tally.runs:.3f} |"
            )


if __name__ == "__main__":
    main()
