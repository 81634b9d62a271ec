"""How often "may stand in" is wrong, by simulation: `python -m benchmarks.decisions`.

Every run draws a study in which a grader lies below people by exactly the margin, so that any pass
is a false one, and a study in which it is as good as a person, so that passes are power. Verdicts
come from the product's own code: labels to rows to judgement. Beside them stands what a percentile
interval of the ceiling difference would have decided, as version 0.1.0 did.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's; a rater sees it with an error, half of it shared by the rater's labels on one pair, and
says yes above a cut that fixes the prevalence. People see alike; graders see worse or as they do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from benchmarks.documents import library_versions, simulate_and_write
from evenhand.analysis import Scale, StudyFacts, analyse

OUT = Path(__file__).parent.parent / "docs" / "decisions.md"
SEED = 20231206
MARGIN, KAPPA, PEOPLE, NOMINAL = 0.1, 0.7, 3, 0.025
SCALE = Scale("r", ("no", "yes"))


@dataclass(frozen=True)
class Cell:
    """A kind of study: `looks` at ever more pairs, with equal steps up to `pairs`."""

    prevalence: float
    pairs: int
    subjects: int
    graders: int = 1
    looks: int = 1


CELLS = (
    *(
        Cell(prevalence, pairs, subjects)
        for prevalence in (0.5, 0.1, 0.05)
        for pairs in (50, 100, 250)
        for subjects in (1, 4)
    ),
    Cell(0.5, 100, 1, graders=6),
    Cell(0.1, 250, 1, graders=6),
    Cell(0.5, 250, 1, looks=5),
    Cell(0.1, 250, 4, looks=5),
)


@dataclass
class Tally:
    """Runs of a cell, passes by the product, and passes by percentile intervals."""

    runs: int = 0
    passed: int = 0
    by_percentile: int = 0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.runs += other.runs
        self.passed += other.passed
        self.by_percentile += other.by_percentile


def kappa(prevalence: float, first: float, second: float) -> float:
    """Kappa of two raters who see so much of what a unit is like, in the population."""
    at, weight = np.polynomial.hermite_e.hermegauss(200)
    cut = ndtri(1 - prevalence)
    says = [1 - ndtr((cut - math.sqrt(own) * at) / math.sqrt(1 - own)) for own in (first, second)]
    both = float((weight * says[0] * says[1]).sum() / weight.sum())
    expected = prevalence**2 + (1 - prevalence) ** 2
    return float((2 * both + 1 - 2 * prevalence - expected) / (1 - expected))


@cache
def qualities(prevalence: float, below: float) -> tuple[float, float]:
    """How much people see, and a grader whose kappa with them is `below` theirs."""
    person = brentq(lambda own: kappa(prevalence, own, own) - KAPPA, 1e-4, 1 - 1e-6)
    grader = brentq(lambda own: kappa(prevalence, person, own) - KAPPA + below, 1e-6, 1 - 1e-9)
    return float(person), float(grader)


def study(cell: Cell, below: float, rng: np.random.Generator) -> pd.DataFrame:
    """The ratings of one study, with the number of its pair beside each."""
    person, grader = qualities(cell.prevalence, below)
    sees = np.array([person] * PEOPLE + [grader] * cell.graders)
    of_pair = rng.normal(size=(cell.pairs, 1, 1))
    of_unit = rng.normal(size=(cell.pairs, cell.subjects, 1))
    shared = rng.normal(size=(cell.pairs, 1, len(sees)))
    alone = rng.normal(size=(cell.pairs, cell.subjects, len(sees)))
    unit, error = (math.sqrt(0.5) * (a + b) for a, b in ((of_pair, of_unit), (shared, alone)))
    yes = np.sqrt(sees) * unit + np.sqrt(1 - sees) * error > ndtri(1 - cell.prevalence)
    pair, subject, rater = (index.ravel() for index in np.indices(yes.shape))
    names = np.array([*(f"h{n}" for n in range(PEOPLE)), *(f"g{n}" for n in range(cell.graders))])
    return pd.DataFrame(
        {
            "unit_id": [f"p{p}s{s}" for p, s in zip(pair, subject, strict=True)],
            "rater_id": names[rater],
            "rater_kind": np.where(rater < PEOPLE, "human", "model"),
            "label": np.where(yes.ravel(), "yes", "no"),
            "pair": pair,
        }
    )


def decided(cell: Cell, ratings: pd.DataFrame, resamples: int) -> tuple[bool, bool]:
    """Whether any grader passes at any look: by the product, and by percentile intervals."""
    passed = by_percentile = False
    for look in range(1, cell.looks + 1):
        own = ratings[ratings["pair"] < cell.pairs * look / cell.looks]
        units = own[["unit_id", "pair"]].drop_duplicates()
        units = units.assign(cluster_id=units["pair"].astype(str))[["unit_id", "cluster_id"]]
        found = analyse(
            own.drop(columns="pair"),
            units,
            [SCALE],
            facts=StudyFacts(looks={SCALE.name: look}),
            resamples=resamples,
        )
        passed |= any(verdict["verdict"] == "may_stand_in" for verdict in found.verdicts)
        rows = found.results.query("statistic == 'human_ceiling_difference' and subset == 'all'")
        graders = rows["rater_b"].str.startswith("g")
        by_percentile |= bool((rows.loc[graders, "low"] > -MARGIN).any())
    return passed, by_percentile


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[tuple[Cell, float], Tally]:
    """Some runs of one cell: at the margin, and as good as a person."""
    tallies = {}
    for below in (MARGIN, 0.0):
        tally = tallies[cell, below] = Tally()
        for run in runs:
            rng = np.random.default_rng([seed, round(1000 * below), run, hash(cell) % 2**32])
            passed, by_percentile = decided(cell, study(cell, below, rng), resamples)
            tally.add(Tally(1, passed, by_percentile))
    return tallies


def document(found: dict[tuple[Cell, float], Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    error = math.sqrt(NOMINAL * (1 - NOMINAL) / runs)
    bound = NOMINAL + 2 * error
    wrong = [tally.passed / tally.runs for (_, below), tally in found.items() if below]
    over = sum(share > bound for share in wrong)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often a verdict is wrong",
            "",
            f"Written by `python -m benchmarks.decisions`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"False passes: the share of {runs:,} simulated studies a cell (synthetic) in which a "
            f"grader that lies {MARGIN:g} kappa below people, the margin, may stand in all the "
            f"same; with several graders, in which any may. Nominal is {NOMINAL:.1%}; a cell "
            f"passes up to {bound:.1%}, two Monte Carlo standard errors above. "
            f"{len(wrong) - over} of {len(wrong)} cells pass. Power: the same share where graders "
            f"are as good as a person. {PEOPLE} people with a kappa of {KAPPA:g}; looks are at "
            f"equal steps. Beside it, what a percentile interval ({resamples} resamples) would "
            "have let pass.",
            "",
            "| prevalence | pairs | subjects | graders | looks | false passes | by percentile | "
            "power | by percentile |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, found, bound) for cell, below in found if below),
            "",
            "With prevalence .05 or .1 and few pairs nobody passes, as fewer than ten pairs have "
            "a label of the rarer kind: the honest answer is that more must be labelled.",
            "",
        ]
    )


def _line(cell: Cell, found: dict[tuple[Cell, float], Tally], bound: float) -> str:
    wrong, right = found[cell, MARGIN], found[cell, 0.0]
    mark = " *" if wrong.passed / wrong.runs > bound else ""
    shares = [
        f"{wrong.passed / wrong.runs:.3f}{mark}",
        f"{wrong.by_percentile / wrong.runs:.3f}",
        f"{right.passed / right.runs:.3f}",
        f"{right.by_percentile / right.runs:.3f}",
    ]
    kind = (cell.prevalence, cell.pairs, cell.subjects, cell.graders, cell.looks)
    return f"| {' | '.join([*map(str, kind), *shares])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        CELLS,
        run_cell,
        document,
        runs=1000,
        resamples=200,
        seed=SEED,
        out=OUT,
    )


if __name__ == "__main__":
    main()
