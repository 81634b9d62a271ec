"""How often a good grader is refused on few units, simulated: `python -m benchmarks.few_units`.

Every run draws a study with two graders: one that labels as people do, and one that always says no.
On a few units, or where hardly any is a yes, both may have said the same everywhere. Refused means
"do not use". The populations (synthetic) are those of `benchmarks.deciding_bound`: what raters see
is normal, a unit is of one of two classes, or people answer it with a probability of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from benchmarks import deciding_bound
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis import Scale, analyse

OUT = RESULTS / "few-units.md"
SEED = 20231206
SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))
WORLDS: tuple[deciding_bound.World, ...] = ("latent", "classes", "beta")
UNITS, RATES, PEOPLE = (6, 10, 20, 40, 80), (0.1, 0.3), (1, 3)
AGREED = 0.7
"""People's kappa with one another, and the good grader's with them."""


class Cell(NamedTuple):
    """A kind of study: the population, units, the share of yes, and how many people label."""

    world: deciding_bound.World
    units: int
    rate: float
    people: int


@dataclass
class Count:
    """Of so many runs, those in which the good grader said one thing only, in which it was refused
    or passed, and in which the one that always says no was refused or passed.
    """

    runs: int = 0
    same: int = 0
    refused: int = 0
    passed: int = 0
    constant_refused: int = 0
    constant_passed: int = 0

    def add(self, other: Count) -> None:
        """Add another part of the runs."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Count]:
    """Some runs of one kind of study, through the whole analysis."""
    count = Count()
    drawn = deciding_bound.Cell(
        world=cell.world,
        prevalence=cell.rate,
        agreed=AGREED,
        clusters=cell.units,
        people=cell.people,
        each=cell.people,
    )
    for run in runs:
        design = [WORLDS.index(cell.world), cell.units, round(100 * cell.rate), cell.people]
        labels, _ = deciding_bound.study(drawn, 0.0, np.random.default_rng([seed, *design, run]))
        graders = {"good": labels[:, -1], "constant": np.zeros(cell.units, dtype=int)}
        raters = {f"h{n}": labels[:, n] for n in range(cell.people)} | graders
        ratings = pd.DataFrame(
            [
                (f"u{unit}", name, "model" if name in graders else "human", ("no", "yes")[said])
                for name, own in raters.items()
                for unit, said in enumerate(own)
            ],
            columns=["unit_id", "rater_id", "rater_kind", "label"],
        )
        found = analyse(ratings.assign(rubric="r"), None, [SCALE], resamples=resamples)
        verdicts = {each["grader"]: each["verdict"] for each in found.verdicts}
        count.runs += 1
        count.same += len(np.unique(graders["good"])) == 1
        count.refused += verdicts["good"] == "do_not_use"
        count.passed += verdicts["good"].startswith("can_replace")
        count.constant_refused += verdicts["constant"] == "do_not_use"
        count.constant_passed += verdicts["constant"].startswith("can_replace")
    return {cell: count}


def document(found: Mapping[Cell, Count], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    rows = [
        f"| {cell.world} | {cell.units} | {cell.rate} | {cell.people} | "
        f"{count.same / count.runs:.2f} | {count.refused / count.runs:.2f} | "
        f"{count.passed / count.runs:.2f} | {count.constant_refused / count.runs:.2f} | "
        f"{count.constant_passed / count.runs:.2f} |"
        for cell, count in found.items()
    ]
    return "\n".join(
        [
            "# A good grader on few units",
            "",
            f"Written by `python -m benchmarks.few_units`, {datetime.now(UTC).date().isoformat()}, "
            f"seed {seed}, {library_versions()}.",
            "",
            f"Shares of {runs:,} simulated studies a line (synthetic), of independent units, with "
            f"{resamples:,} resamples. *Said one thing*: the grader that labels as people do gave "
            'one label everywhere. *Refused* is the verdict "do not use", *passes* one of those '
            'that let it stand in; the rest is "cannot tell".',
            "",
            "| population | units | share of yes | people | good: said one thing | good: refused | "
            "good: passes | constant: refused | constant: passes |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    cells = [Cell(*each) for each in product(WORLDS, UNITS, RATES, PEOPLE)]
    simulate_and_write(
        arguments, __doc__, cells, run_cell, document, runs=100, resamples=100, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
