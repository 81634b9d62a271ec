"""How often the intervals of win rates and strengths hold the truth, by simulation.

`python -m benchmarks.preference`. Every run draws a new study (synthetic): subjects answer prompts,
two people compare two answers at a time, and a grader compares all of them in both orders. An
answer to a prompt has a quality of its own about its subject's, so that comparisons on one prompt
go together. People favour what is shown first a little, and call some ties; the grader's errors
favour the first subjects. The truth is what people would say of all prompts that there could be.

Studies come from Philox generators; the analysis draws its resamples from PCG64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks.coverage import CLOSE_ENOUGH, SEED, Tally
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects.preference import add_preference_rows, strengths
from evenhand.analysis.types import Array
from evenhand.analysis.writer import RatedView
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings

OUT = RESULTS / "coverage-preference.md"
SCALE = Scale(
    "preference", ("A", "tie", "B"), "ordinal", unit="comparison", favours={"A": "a", "B": "b"}
)
PEOPLE, TIES, FIRST, ERROR = 2, 0.1, 0.05, 0.2
"""People on a comparison; how often they call a tie; by how much they favour what comes first, as a
chance; how often the grader takes the first subject whatever it says."""
_MANY = 100_000
ESTIMATES = {
    "win_rate": "win rate by people",
    "strength": "strength by people",
    "win_rate_ppi": "win rate, corrected",
}


@dataclass(frozen=True)
class Population:
    """Subjects of some `quality` (log odds) whose answers to a prompt differ from it with a
    standard deviation of `apart`; every two are compared on each of the `prompts`, or (`at_random`)
    only two of them. People compare a `labelled` share of the prompts.
    """

    name: str
    quality: tuple[float, ...]
    prompts: int
    labelled: float = 0.5
    apart: float = 0.5
    at_random: bool = False


POPULATIONS = (
    Population("two subjects, 60 prompts", (0.4, -0.4), 60),
    Population("two subjects, 250 prompts", (0.4, -0.4), 250),
    Population("three subjects, 30 prompts", (0.6, 0.0, -0.6), 30, labelled=0.7),
    Population("three subjects, 60 prompts", (0.6, 0.0, -0.6), 60),
    Population("three, answers far apart", (0.6, 0.0, -0.6), 60, apart=2.0),
    Population("three, one far ahead", (2.5, 0.0, -0.5), 60),
    Population("six subjects, 60 prompts", (1.2, 0.7, 0.6, -0.3, -0.6, -1.6), 60),
    Population(
        "six, two on each of 300 prompts", (1.2, 0.7, 0.6, -0.3, -0.6, -1.6), 300, at_random=True
    ),
)


class Key(NamedTuple):
    """What a count belongs to."""

    population: Population
    estimate: str


@cache
def truth_of(population: Population) -> dict[str, Array]:
    """What people would say of all prompts, by estimate and subject."""
    n, wins = len(population.quality), np.zeros((len(population.quality),) * 2)
    rng = np.random.Generator(np.random.Philox(SEED))
    quality = population.quality + rng.normal(0, population.apart, (_MANY, n))
    for one, two in combinations(range(n), 2):
        chance = 1.0 / (1.0 + np.exp(quality[:, two] - quality[:, one]))
        shown = [np.clip(chance + lean, 0, 1).mean() for lean in (FIRST, -FIRST)]
        wins[one, two] = 0.5 * TIES + (1.0 - TIES) * np.mean(shown)
        wins[two, one] = 1.0 - wins[one, two]
    rates = wins.sum(axis=1) / (n - 1)
    return {"win_rate": rates, "strength": strengths(wins[None])[0], "win_rate_ppi": rates}


def simulate(population: Population, rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One study: its ratings and its units."""
    pairs = list(combinations(range(len(population.quality)), 2))
    units, rows = [], []
    for prompt in range(population.prompts):
        quality = population.quality + rng.normal(0, population.apart, len(population.quality))
        chosen = [pairs[rng.integers(len(pairs))]] if population.at_random else pairs
        for one, two in chosen:
            unit = f"q{prompt:03d}-{one}{two}"
            units.append((unit, f"q{prompt:03d}", f"m{one}", f"m{two}"))
            chance = 1.0 / (1.0 + np.exp(quality[two] - quality[one]))
            if prompt < population.labelled * population.prompts:
                for person in range(PEOPLE):
                    order = ("ab", "ba")[rng.integers(2)]
                    lean = FIRST if order == "ab" else -FIRST
                    label = "A" if rng.random() < np.clip(chance + lean, 0, 1) else "B"
                    label = "tie" if rng.random() < TIES else label
                    rows.append((unit, f"h{person}", "human", label, order))
            label = "A" if rng.random() < chance or rng.random() < ERROR else "B"
            rows += [(unit, "grader", "model", label, order) for order in ("ab", "ba")]
    columns = ["unit_id", "rater_id", "rater_kind", "label", "order"]
    ratings = validate_ratings(pd.DataFrame(rows, columns=columns).assign(rubric=SCALE.name))
    return ratings, pd.DataFrame(units, columns=["unit_id", "cluster_id", "subject_a", "subject_b"])


def run_cell(population: Population, runs: range, resamples: int, seed: int) -> dict[Key, Tally]:
    """Count how often the intervals of these runs hold the truth, subject by subject."""
    truth = truth_of(population)
    found = {Key(population, name): Tally() for name in ESTIMATES}
    for run in runs:
        stream = np.random.SeedSequence([seed, POPULATIONS.index(population), run])
        ratings, units = simulate(population, np.random.Generator(np.random.Philox(stream)))
        readings = combine_readings(ratings, SCALE)
        labels, rows = encode(readings, SCALE, units), ResultRows(SCALE.name)
        request = Request(units, AnalysisSettings(resamples=resamples), seed=run)
        rated = {"ratings": ratings, "all_ratings": ratings, "readings": readings}
        view = RatedView.on_units(rows, labels, request, **rated)
        add_preference_rows(view)
        for name, values in truth.items():
            tally = found[Key(population, name)]
            for subject, value in enumerate(values):
                grader = "grader" if name == "win_rate_ppi" else ""
                row = rows.get(name, "humans", grader, "all", f"m{subject}")
                tally.runs += 1
                if row is None or np.isnan(row["low"]):
                    tally.undefined += 1
                    continue
                tally.below += row["high"] < value
                tally.above += row["low"] > value
                tally.width += row["high"] - row["low"]
    return found


def document(found: Mapping[Key, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page."""
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# Coverage of preferences",
            "",
            f"Written by `python -m benchmarks.preference`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"Simulated, *synthetic*: {runs:,} studies a line, {resamples:,} resamples of prompts; "
            "95% intervals, of every subject. People compare half of the prompts (of 30, seven in "
            "ten), a grader all. Of 100 intervals 95 should hold the truth; those that do not meet "
            f"[{CLOSE_ENOUGH[0]:.2f}, {CLOSE_ENOUGH[1]:.2f}] with the Monte Carlo interval, which "
            "takes a study's subjects for independent, are marked with *.",
            "",
            *_table(found),
            "",
        ]
    )


def _table(found: Mapping[Key, Tally]) -> Iterator[str]:
    yield "| study | estimate | coverage | truth below, above | mean width | no interval |"
    yield "| --- | --- | --- | --- | ---: | ---: |"
    for population in POPULATIONS:
        for name, title in ESTIMATES.items():
            tally = found[Key(population, name)]
            low, high = tally.given_monte_carlo
            holds = low <= CLOSE_ENOUGH[1] and high >= CLOSE_ENOUGH[0]
            yield (
                f"| {population.name} | {title} | "
                f"{tally.given_coverage:.3f} [{low:.3f}, {high:.3f}]{'' if holds else ' *'} | "
                f"{tally.above / tally.given:.3f}, {tally.below / tally.given:.3f} | "
                f"{tally.width / tally.given:.3f} | {tally.undefined / tally.runs:.3f} |"
            )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        POPULATIONS,
        run_cell,
        document,
        runs=1000,
        resamples=1000,
        seed=SEED,
        out=OUT,
    )


if __name__ == "__main__":
    main()
