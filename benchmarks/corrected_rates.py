"""Coverage of corrected rates' intervals, simulated: `python -m benchmarks.corrected_rates`.

Every run draws a new study from a population in which people's rate is known exactly: pairs of
which some are labelled, several subjects, people's verdict and a grader's, which is biased. Beside
the intervals of the analysis stand those of the shortcut that takes the grader's rate on what
nobody labelled for known; in small and unbalanced studies, those of the resamples alone.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's. People and the grader see it with an error, half of whose variance is shared by the
rater's verdicts on one pair, and affirm it above a cut; the grader's is lower: it affirms too much.

Lumpy clusters (synthetic) are of unequal size, and few of them may carry nearly all of a rare
outcome. The grader affirms .8 of what people affirm, and .05 of the rest.

Scores from 1 to 5 (synthetic), on a scale from 0 to 1, are of a normal variable that a pair's
subjects share by half; the grader's have an error of their own, and are higher for the second
subject and lower for the third.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.coverage import CLOSE_ENOUGH, SEED, Tally
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import (
    Interval,
    Reach,
    interval,
    percentile_bounds,
    share_interval,
    widened,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.subjects.corrected_rates import (
    MEANS,
    RateSums,
    clip_rates,
    corrected_interval,
    ppi_reach,
    rate_features,
    rogan_gladen_rate,
)
from evenhand.analysis.subjects.scores import all_differences

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
    "differences": "all differences of subjects, together",
}
JUDGED = ("people", "people_all", "rogan_gladen", "ppi")
"""What must hold its level; the rest is here to be compared with."""


LUMPY_CLUSTERS, LUMPY_REST = (25, 40, 100), 200
LUMPY = {
    "few carry all": "one cluster in twenty has a rate of .95, the others of .0026",
    "logit-normal": "rates with a standard deviation of 1.5 on the logit scale",
    "larger worse": "rates in proportion to the size of the cluster",
    "larger worse, very unequal": "the same, sizes log-normal with a standard deviation of 1",
    "one unit each": "a rate of .05 throughout",
}
SCORE_CLUSTERS = (15, 40, 100)
SCORES = {"skewed": "most are 1", "ceiling": "most are 5", "spread": "all are used"}
_SHIFTS = np.array([0.0, 0.4, -0.4])
TAIL = 0.045
"""The most that either tail may miss in lumpy clusters, where .025 is nominal."""


class Key(NamedTuple):
    """What a count belongs to; `alone` are the resamples' percentiles and nothing else.

    `prevalence` is a rate, or the name of lumpy clusters.
    """

    labelled: int
    prevalence: float | str
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
    _, kept, times = np.unique(kinds, axis=0, return_index=True, return_counts=True)
    reference = np.where(labelled, people, np.nan)[kept].astype(float)
    features = rate_features(reference.ravel(), grader[kept].ravel().astype(float))
    drawn = Resamples(times, resamples, rng)
    sums = drawn.to_rows(features.reshape(len(kept), SUBJECTS, -1))
    own, pooled = RateSums(*sums[:, 0].T), RateSums(*sums.sum(axis=1).T)
    weight, errors = own.ppi_weight, (pooled.sensitivity, pooled.specificity)
    known = np.full(len(sums), own.grader_rate_rest[0])
    return {
        "people": own.reference_rate,
        "people_all": pooled.reference_rate,
        "raw": own.grader_rate,
        "rogan_gladen": rogan_gladen_rate(own.grader_rate, *errors),
        "rogan_gladen_fixed": rogan_gladen_rate(np.full(len(sums), own.grader_rate[0]), *errors),
        "ppi": own.ppi(weight),
        "ppi_fixed": own.reference_rate + weight * (known - own.grader_rate_labelled),
    }


def lumpy(name: str, clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of a kind: how many units people affirm in each, and how many there are."""
    sizes = 1 + rng.poisson(4, clusters)
    if name == "few carry all":
        rates = np.where(rng.random(clusters) < 0.05, 0.95, 0.0026)
    elif name == "logit-normal":
        rates = 1.0 / (1.0 + np.exp(3.85 - 1.5 * rng.normal(size=clusters)))
    elif name == "larger worse":
        rates = 0.12 * sizes / 5.8
    elif name == "one unit each":
        sizes, rates = np.ones_like(sizes), np.full(clusters, 0.05)
    else:
        sizes = np.ceil(np.exp(1.0 + rng.normal(size=clusters))).astype(int)
        rates = 0.01 * sizes
    return rng.binomial(sizes, np.minimum(rates, 0.95)), sizes


@cache
def lumpy_rate(name: str) -> float:
    """The rate of all units that there could be, of two million clusters."""
    cases, sizes = lumpy(name, 2_000_000, np.random.default_rng(SEED))
    return float(cases.sum() / sizes.sum())


def lumpy_intervals(
    name: str, labelled: int, resamples: int, rng: np.random.Generator
) -> dict[str, Interval]:
    """The intervals of people's rate and of PPI++ in one study of lumpy clusters."""
    cases, sizes = lumpy(name, labelled + LUMPY_REST, rng)
    both = rng.binomial(cases, 0.8)
    graded = both + rng.binomial(sizes - cases, 0.05)
    features = np.column_stack([sizes, cases, graded, both, sizes, graded]).astype(float)
    features[labelled:, :4] = features[:labelled, 4:] = 0.0
    drawn = Resamples(np.ones(len(sizes)), resamples, rng)
    sums = RateSums(*drawn.to_rows(features).T)
    weight = sums.ppi_weight
    known = int(sizes[:labelled].sum()), labelled
    reach = ppi_reach(features, float(weight[0]))
    own, ppi = (drawn.interval(each, labelled) for each in (sums.reference_rate, sums.ppi(weight)))
    own = widened(share_interval(own, sums.reference_rate[1:], *known), labelled, "share")
    ppi = corrected_interval(ppi, sums.ppi(weight)[1:], int(sizes.sum()), known, reach)
    return {"people": own, "ppi": ppi}


def scores(name: str, clusters: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores of a kind by people and by the grader, from 0 to 1, each (clusters, subjects)."""
    shared, alone = rng.normal(size=(clusters, 1)), rng.normal(size=(clusters, 3))
    unit = (shared + alone) / math.sqrt(2.0) + [0.0, 0.3, 0.6]
    both = unit, unit + 0.5 * rng.normal(size=unit.shape) + _SHIFTS
    if name == "skewed":
        points = [np.exp(0.6 * each) for each in both]
    else:
        middle, spread = (4.6, 0.7) if name == "ceiling" else (3.0, 1.2)
        points = [middle + spread * each for each in both]
    people, grader = ((np.clip(np.rint(each), 1.0, 5.0) - 1.0) / 4.0 for each in points)
    return people, grader


@cache
def true_scores(name: str) -> np.ndarray:
    """People's mean scores of all units that there could be, (subjects,), of two million."""
    people, _ = scores(name, 2_000_000, np.random.default_rng(SEED))
    return np.asarray(people.mean(axis=0))


def score_intervals(
    name: str, labelled: int, resamples: int, rng: np.random.Generator
) -> tuple[Interval, bool, float]:
    """The interval of the second subject's mean, whether all differences hold, and their width."""
    people, grader = scores(name, labelled + LUMPY_REST, rng)
    people[labelled:] = np.nan
    features = rate_features(people.ravel(), grader.ravel()).reshape(*people.shape, -1)
    drawn = Resamples(np.ones(len(people)), resamples, rng)
    sums = RateSums(*np.moveaxis(drawn.to_rows(features), -1, 0))._replace(ddof=1.0)
    means = sums.ppi(sums.ppi_weight)
    reach = MEANS.reach(math.inf)
    given = drawn.interval(means[:, 1], labelled), means[1:, 1], len(people)
    of_one = corrected_interval(*given, (labelled, labelled), reach)
    found, true = all_differences(means, np.full(3, labelled), is_rate=False), true_scores(name)
    apart = true[found.first] - true[found.second]
    held = bool(((found.low <= apart) & (apart <= found.high)).all())
    return of_one, held, float((found.high - found.low).mean())


def interval_of(
    name: str, values: np.ndarray, labelled: int, reach: Reach | None = None
) -> Interval:
    """The interval of an estimate as the analysis has it; `reach` is that of PPI++."""
    if name in ("raw", "rogan_gladen_fixed", "ppi_fixed"):
        return interval(values, labelled + REST)
    found, drawn = interval(values, labelled), values[1:]
    if name.startswith("people"):
        units = labelled * (SUBJECTS if name == "people_all" else 1)
        return widened(share_interval(found, drawn, units, labelled), labelled, "share")
    sample = (labelled, labelled)
    if name == "rogan_gladen":
        reach = Reach(carriers=labelled)
    return corrected_interval(found, drawn, labelled + REST, sample, reach)


def run_cell(
    cell: tuple[int, float | str], runs: range, resamples: int, seed: int
) -> dict[Key, Tally]:
    """Some runs of one number of labelled pairs and prevalence: every estimate on the same."""
    labelled, kind = cell
    prevalence = kind if isinstance(kind, float) else 0.0
    if isinstance(kind, str):
        prevalence = lumpy_rate(kind) if kind in LUMPY else float(true_scores(kind)[1])
    tallies: dict[Key, Tally] = {}

    def count(key: Key, low: float, high: float) -> None:
        tally = tallies.setdefault(key, Tally())
        tally.runs += 1
        tally.below += high < prevalence
        tally.above += low > prevalence
        tally.undefined += math.isnan(low)
        tally.width += 0.0 if math.isnan(low) else high - low

    for run in runs:
        if isinstance(kind, str) and kind in SCORES:
            rng = np.random.default_rng([seed, labelled, 10 + list(SCORES).index(kind), run])
            of_one, held, width = score_intervals(kind, labelled, resamples, rng)
            count(Key(labelled, kind, "ppi"), of_one.low, of_one.high)
            missed = 0.0 if held else width  # an interval of this width that holds it, or not
            count(
                Key(labelled, kind, "differences"), prevalence + missed, prevalence + missed + width
            )
            continue
        if isinstance(kind, str):
            rng = np.random.default_rng([seed, labelled, list(LUMPY).index(kind), run])
            for name, found in lumpy_intervals(kind, labelled, resamples, rng).items():
                count(Key(labelled, kind, name), found.low, found.high)
            continue
        rng = np.random.default_rng([seed, labelled, round(prevalence * 100), run])
        people, grader = simulate(labelled, kind, rng)
        reach = reach_of(people, grader)
        for name, values in replicates(people, grader, resamples, rng).items():
            found = interval_of(name, values, labelled, reach)
            count(
                Key(labelled, kind, name), *clip_rates(np.array([found.low, found.high])).tolist()
            )
            if name in JUDGED:
                defined = values[1:][~np.isnan(values[1:])]
                # Where the analysis gives no interval there is nothing to compare.
                alone = percentile_bounds(defined) if found.low >= 0 else (math.nan, math.nan)
                count(Key(labelled, kind, name, alone=True), *clip_rates(np.array(alone)).tolist())
    return tallies


def reach_of(people: np.ndarray, grader: np.ndarray) -> Reach | None:
    """The score reach of the first subject's PPI++ rate."""
    reference = people[:, 0].astype(float)
    reference[len(people) - REST :] = np.nan
    features = rate_features(reference, grader[:, 0].astype(float))
    weight = float(RateSums(*features.sum(axis=0)[:, None]).ppi_weight[0])
    return ppi_reach(features, weight)


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
            "than it need be. *Resamples alone* are their 2.5% and 97.5% quantiles, on the same "
            "studies.",
            "",
            *_small_table(found),
            "",
            "## Lumpy clusters",
            "",
            "Clusters of 1 + Poisson(4) units, unless a line says otherwise, and "
            f"{LUMPY_REST} that only the grader graded; it affirms .8 of what people affirm, and "
            ".05 of the rest. "
            + "; ".join(f"*{name}*: {about}" for name, about in LUMPY.items())
            + f". Either tail may miss {TAIL}, where .025 is nominal: {_lumpy_verdict(found)}.",
            "",
            *_lumpy_table(found),
            "",
            "## Scores",
            "",
            "Means of scores from 1 to 5 on a scale from 0 to 1, three subjects, "
            f"{LUMPY_REST} pairs that only the grader graded, with errors that differ by subject: "
            + "; ".join(f"*{name}*, {about}" for name, about in SCORES.items())
            + ". The mean is the second subject's; differences hold where all three do. What does "
            f"not meet [{CLOSE_ENOUGH[0]:.2f}, {CLOSE_ENOUGH[1]:.2f}] is marked with *.",
            "",
            *_score_table(found),
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
        (
            *product(LABELLED, PREVALENCES),
            *product(LUMPY_CLUSTERS, LUMPY),
            *product(SCORE_CLUSTERS, SCORES),
        ),
        run_cell,
        document,
        runs=1000,
        resamples=1000,
        seed=SEED,
        out=OUT,
    )


def _score_table(found: Mapping[Key, Tally]) -> Iterator[str]:
    yield "| scores | labelled pairs | true mean | estimate | coverage | mean width |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, labelled, of in product(SCORES, SCORE_CLUSTERS, ("ppi", "differences")):
        tally = found[Key(labelled, name, of)]
        low, high = tally.monte_carlo
        title = "mean, PPI++" if of == "ppi" else ESTIMATES[of]
        yield (
            f"| {name} | {labelled} | {true_scores(name)[1]:.3f} | {title} | "
            f"{tally.coverage:.3f} [{low:.3f}, {high:.3f}]{'' if tally.holds else ' *'} | "
            f"{tally.width / tally.runs:.3f} |"
        )


def _lumpy_cells() -> Iterator[tuple[str, int, str]]:
    yield from product(LUMPY, LUMPY_CLUSTERS, ("people", "ppi"))


def _tails(tally: Tally) -> tuple[float, float]:
    return tally.above / tally.runs, tally.below / tally.runs


def _lumpy_verdict(found: Mapping[Key, Tally]) -> str:
    worst = {
        (name, labelled, of): max(_tails(found[Key(labelled, name, of)]))
        for name, labelled, of in _lumpy_cells()
    }
    missed = [name for (name, *_), tail in worst.items() if tail > TAIL]
    kept = f"{len(worst) - len(missed)} of {len(worst)} lines keep to it, {max(worst.values()):.3f}"
    if not missed:
        return f"{kept} at worst, and rates that rise with the size of clusters are no exception"
    return f"{kept} at worst; marked with * and **open**: {', '.join(dict.fromkeys(missed))}"


def _lumpy_table(found: Mapping[Key, Tally]) -> Iterator[str]:
    yield "| clusters | labelled | true rate | estimate | truth below, above | mean width |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for name, labelled, of in _lumpy_cells():
        tally = found[Key(labelled, name, of)]
        below, above = _tails(tally)
        mark = " *" if max(below, above) > TAIL else ""
        yield (
            f"| {name} | {labelled} | {lumpy_rate(name):.3f} | {ESTIMATES[of]} | "
            f"{below:.3f}, {above:.3f}{mark} | {tally.width / tally.runs:.3f} |"
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
        for name, title in [*ESTIMATES.items()][:-1]:
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
