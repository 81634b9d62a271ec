"""How often a new wording is called better that is not: `python -m benchmarks.rewording`.

A trial has pairs of two units, of which half are dealt to each wording, and three people who label
all of them. Under the new wording people agree as they do under the old one, or better by a gain in
alpha. The rows and the decision are the product's own functions (`analysis.people.disagreements`).

Two generators (synthetic), as what is true of one may be an accident of it. *Latent*: what a unit
is like is a normal variable, half of whose variance is its pair's, and whoever sees less of it
agrees less. *Guessing*: a unit has a true one of four ordered options, and a person gives it or
guesses, with a share of guesses that differs by person and by pair.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis import Scale
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.people.disagreements import (
    MIN_TRIAL,
    TRIAL_ALPHA,
    TRIAL_DIFFERENCE,
    add_trial_rows,
    trial_outcome,
)
from evenhand.analysis.request import Request, TriedWording
from evenhand.analysis.results import ResultRows
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings

OUT = RESULTS / "rewording.md"
SEED = 20261124
PEOPLE, UNITS = 3, 2
OLD_ALPHA = 0.45
OPTIONS = 4
SCALES = {
    "latent": Scale("r", ("1", "0"), affirmative=frozenset({"1"})),
    "guessing": Scale("r", tuple(map(str, range(OPTIONS))), "ordinal"),
}
MANY = 40_000
"""Pairs from which a generator's alpha is read off."""


@dataclass(frozen=True)
class Cell:
    """A generator, the pairs of the trial, the gain in alpha, and the share of the first option (of
    the guessing generator: how uneven its options are).
    """

    generator: Literal["latent", "guessing"]
    pairs: int
    gain: float
    prevalence: float = 0.5


CELLS = tuple(
    Cell(generator, pairs, gain, prevalence)
    for generator in ("latent", "guessing")
    for prevalence in (0.5, 0.15)
    for gain in (0.0, 0.2)
    for pairs in (30, 60, 120)
)


@dataclass
class Tally:
    """Runs of a cell, by what was decided."""

    runs: int = 0
    better: int = 0
    worse: int = 0
    difference: float = 0.0

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def codes(
    cell: Cell, share: float, pairs: int, people: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Codes (units, people) of pairs under one wording, of which people see this `share`; `people`
    is how much better than usual each one does.
    """
    if cell.generator == "latent":
        pair = np.repeat(rng.normal(size=(pairs, 1)), UNITS, axis=0)
        unit = math.sqrt(0.5) * pair + math.sqrt(0.5) * rng.normal(size=(pairs * UNITS, 1))
        error = rng.normal(size=(pairs * UNITS, PEOPLE))
        yes = math.sqrt(share) * unit + math.sqrt(1 - share) * error > ndtri(1 - cell.prevalence)
        return np.where(yes, 0, 1)
    rest = (1 - cell.prevalence) / (OPTIONS - 1)
    chances = [cell.prevalence, *[rest] * (OPTIONS - 1)]
    truth = rng.choice(OPTIONS, p=chances, size=(pairs * UNITS, 1))
    hard = np.repeat(rng.uniform(-0.3, 0.3, size=(pairs, 1)), UNITS, axis=0)
    knows = rng.uniform(size=(pairs * UNITS, PEOPLE)) < share + people + hard
    guess = rng.choice(OPTIONS, p=chances, size=(pairs * UNITS, PEOPLE))
    return np.where(knows, truth, guess)


def people_of(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """How much better than usual each person does; they add up to nothing."""
    found = rng.uniform(-0.1, 0.1, size=PEOPLE)
    return np.asarray(found - found.mean())


@cache
def share_for(cell: Cell, alpha: float) -> float:
    """The share of a unit that people see whose alpha is this, by bisection on one large sample."""

    def apart(share: float) -> float:
        rng = np.random.default_rng(1)
        people = np.zeros(PEOPLE)
        return alpha_of(codes(cell, share, MANY // 4, people, rng), cell) - alpha

    return float(brentq(apart, 0.05, 0.99, xtol=1e-3))


def alpha_of(given: npt.NDArray[np.intp], cell: Cell) -> float:
    """Krippendorff's alpha of complete labels, at the level of the generator's scale."""
    counts = np.stack([(given == code).sum(axis=1) for code in range(given.max() + 1)], axis=1)
    total = counts.sum(axis=0).astype(float)
    together = (counts[:, :, None] * counts[:, None, :]).sum(axis=0) / (PEOPLE - 1)
    together = together - np.diag(total) / (PEOPLE - 1)
    place = np.cumsum(total) - total / 2
    apart = np.subtract.outer(place, place) ** 2
    if cell.generator == "latent":
        apart = 1.0 - np.eye(len(total))
    expected = np.outer(total, total) - np.diag(total)
    seen = (together * apart).sum() / total.sum()
    return float(1 - seen / ((expected * apart).sum() / (total.sum() * (total.sum() - 1))))


def ratings_of(given: npt.NDArray[np.intp], scale: Scale, first: int) -> pd.DataFrame:
    """Labels of people on units, from a pair's number on."""
    units = np.arange(len(given))
    pair = first + units // UNITS
    ids = [f"p{p:04}|{u % UNITS}" for p, u in zip(pair, units, strict=True)]
    labels = np.asarray(scale.categories)[given]
    return pd.DataFrame(
        {
            "unit_id": np.repeat(ids, PEOPLE),
            "rater_id": np.tile([f"h{n}" for n in range(PEOPLE)], len(ids)),
            "rater_kind": "human",
            "label": labels.reshape(-1),
            "cluster_id": np.repeat(pair, PEOPLE).astype(str),
        }
    )


def trial(cell: Cell, resamples: int, rng: np.random.Generator) -> Tally:
    """One trial: labels under both wordings, and what is decided."""
    scale, people = SCALES[cell.generator], people_of(rng)
    old, new = (
        ratings_of(
            codes(cell, share_for(plain(cell), alpha), cell.pairs // 2, people, rng), scale, first
        )
        for alpha, first in ((OLD_ALPHA, 0), (OLD_ALPHA + cell.gain, cell.pairs // 2))
    )
    both = pd.concat([old, new])
    units = both[["unit_id", "cluster_id"]].drop_duplicates()
    by_wording = {
        name: validate_ratings(part.drop(columns="cluster_id").assign(rubric=name))
        for name, part in (("old", old), ("new", new))
    }
    rows = ResultRows("r")
    request = Request(units, AnalysisSettings(resamples=resamples))
    dealt = [set(part["unit_id"]) for part in (old, new)]
    add_trial_rows(
        rows, scale, by_wording, TriedWording("old", dealt[0], dealt[1], PEOPLE), request
    )
    row = rows.get(TRIAL_DIFFERENCE, "humans", "", "all", "new")
    alphas = [rows.get(TRIAL_ALPHA, "humans", "", "all", at) for at in by_wording]
    fewest = min(each["n_clusters"] if each else 0 for each in alphas)
    if row is None:
        return Tally(runs=1)
    found = trial_outcome(row["low"], row["estimate"], row["high"], fewest, row["n_clusters"], 1)
    return Tally(1, int(found.outcome == "better"), int(found.outcome == "worse"), row["estimate"])


def plain(cell: Cell) -> Cell:
    """What of a cell decides how people answer."""
    return Cell(cell.generator, 0, 0.0, cell.prevalence)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some trials of one cell."""
    tally = Tally()
    for run in runs:
        tally.add(trial(cell, resamples, np.random.default_rng([seed, run, CELLS.index(cell)])))
    return {cell: tally}


def document(found: dict[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    bound = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    wrong = [
        n / each.runs
        for cell, each in found.items()
        if not cell.gain and cell.pairs // 2 >= MIN_TRIAL
        for n in (each.better, each.worse)
    ]
    passed = sum(share <= bound for share in wrong)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often a new wording is called better",
            "",
            f"Written by `python -m benchmarks.rewording --runs {runs} --resamples {resamples}`, "
            f"{today}, seed {seed}, {library_versions()}.",
            "",
            f"Each cell has {runs:,} simulated trials (synthetic): pairs of {UNITS} units, half of "
            f"them under each wording, all labelled by {PEOPLE} people with an alpha of "
            f"{OLD_ALPHA:g} under the old wording. At gain 0 *better* and *worse* are both wrong, "
            f"and each passes up to {bound:.1%}: nominally {ALPHA:.1%}, and two Monte Carlo "
            f"standard errors above. {passed} of {len(wrong)} pass; the worst is "
            f"{max(wrong, default=0):.3f}. "
            f"With fewer than {MIN_TRIAL} pairs under a wording nothing is decided.",
            "",
            "| generator | share of the first option | gain | pairs | better | worse | mean "
            "difference |",
            "| --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, each) for cell, each in found.items()),
            "",
        ]
    )


def _line(cell: Cell, tally: Tally) -> str:
    cells = [
        cell.generator,
        f"{cell.prevalence:g}",
        f"{cell.gain:g}",
        str(cell.pairs),
        f"{tally.better / tally.runs:.3f}",
        f"{tally.worse / tally.runs:.3f}",
        f"{tally.difference / tally.runs:+.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=300, resamples=1000, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
