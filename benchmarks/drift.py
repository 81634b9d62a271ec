"""How often a verdict on drift is wrong, by simulation: `python -m benchmarks.drift`.

Every run draws a baseline, people's labels and a grader's, and the same grader's labels later, once
moved by exactly the margin, once not moved, once moved by three times as much. Verdicts come from
the product's own code: labels to rows to judgement. *Unchanged* is wrong at the margin, and so is
*changed*; where nothing moved *changed* is wrong and *unchanged* is power.

The population (synthetic) is that of `benchmarks.decisions`: what a unit is like is a normal
variable of which half the variance is its pair's, and whoever sees less of it agrees less. A grader
is *asked again* and errs anew on every unit, so that no two answers need be the same; or it *keeps*
its answers but for a share of units on which it now answers at random, or of clusters, on all of
which it does (*fails clusters*): these hold 30 units in 15% of cases and 2 in the others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.special import ndtri

from benchmarks.decisions import KAPPA, PEOPLE, kappa
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis import Scale
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.verdicts.versions import LEVEL, Versions, drift_of, paired_labels
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings

OUT = RESULTS / "drift.md"
SEED = 20231206
MARGIN = 0.1
MOVES = {"margin": 1.0, "same": 0.0, "far": 3.0}
"""How far the grader moved, in margins."""
SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))
VERSIONS = Versions("before", "after")
_Kind = Literal["asked again", "keeps", "fails clusters"]
_Counts = Counter[tuple[str, str]]


@dataclass(frozen=True)
class Cell:
    """A kind of baseline, and how the grader changes: `sign` is -1 where it gets worse."""

    prevalence: float
    pairs: int
    subjects: int = 1
    kind: _Kind = "asked again"
    sign: int = -1

    @property
    def units(self) -> npt.NDArray[np.bool_]:
        """Which places (pairs, subjects) hold a unit."""
        held = np.ones((self.pairs, self.subjects), dtype=bool)
        if self.kind == "fails clusters":
            held[round(0.15 * self.pairs) :, 2:] = False
        return held

    @property
    def kappa(self) -> float:
        """The grader's kappa with people before: as good as a person, or with room above it."""
        return KAPPA if self.sign < 0 else KAPPA - MARGIN


_CHANGES: tuple[tuple[_Kind, int], ...] = (("asked again", -1), ("asked again", 1), ("keeps", -1))
CELLS = (
    *(
        Cell(prevalence, pairs, kind=kind, sign=sign)
        for kind, sign in _CHANGES
        for prevalence in (0.5, 0.1, 0.05)
        for pairs in (50, 100, 250)
    ),
    *(Cell(0.1, pairs, 4, kind) for kind in ("asked again", "keeps") for pairs in (50, 250)),
    *(Cell(prevalence, 1000, kind="keeps") for prevalence in (0.1, 0.05)),
    *(Cell(0.5, pairs, 30, kind="fails clusters") for pairs in (40, 100, 200)),
)
"""New ones at the end: a cell's place is part of its seed."""


@dataclass
class Tally:
    """Runs of a cell, and verdicts by how far the grader moved."""

    runs: int = 0
    verdicts: _Counts = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.runs += other.runs
        self.verdicts += other.verdicts

    def share(self, moved: str, verdict: str) -> float:
        """How often a verdict was given on a grader that moved so."""
        return self.verdicts[moved, verdict] / self.runs


@cache
def sees(prevalence: float, agreed: float | None = None) -> float:
    """How much of what a unit is like a person sees, or a grader whose kappa with people is
    `agreed`.
    """
    if agreed is None:
        return float(brentq(lambda own: kappa(prevalence, own, own) - KAPPA, 1e-4, 1 - 1e-6))
    person = sees(prevalence)
    return float(brentq(lambda own: kappa(prevalence, person, own) - agreed, 1e-6, 1 - 1e-9))


def grades(cell: Cell, moved: float, rng: np.random.Generator) -> npt.NDArray[np.int8]:
    """Codes of people, then of the grader before and after, (units, raters); 1 is yes."""
    change = cell.sign * MARGIN * moved
    later = cell.kappa + change if cell.kind == "asked again" else cell.kappa
    own = [sees(cell.prevalence)] * PEOPLE
    own += [sees(cell.prevalence, each) for each in (cell.kappa, later)]
    share = np.array(own)
    shape = (cell.pairs, cell.subjects)
    unit = rng.normal(size=(cell.pairs, 1, 1)) + rng.normal(size=(*shape, 1))
    error = rng.normal(size=(cell.pairs, 1, len(own))) + rng.normal(size=(*shape, len(own)))
    seen = math.sqrt(0.5) * (np.sqrt(share) * unit + np.sqrt(1 - share) * error)
    yes = seen > ndtri(1 - cell.prevalence)
    if cell.kind != "asked again":
        anew = rng.random(shape if cell.kind == "keeps" else (cell.pairs, 1)) < -change / cell.kappa
        yes[..., -1] = np.where(anew, rng.random(shape) < cell.prevalence, yes[..., -2])
    codes: npt.NDArray[np.int8] = yes[cell.units].astype(np.int8)
    return codes


@cache
def blank(cell: Cell) -> LabelMatrix:
    """The labels of such a baseline before anybody has said anything but yes."""
    names = [*(f"h{n}" for n in range(PEOPLE)), VERSIONS.before, VERSIONS.after]
    ratings = [
        {"unit_id": f"p{pair:04}s{subject:02}", "rater_id": name, "label": "yes"}
        for pair, subject in np.argwhere(cell.units)
        for name in names
    ]
    table = pd.DataFrame(ratings).assign(rubric=SCALE.name)
    table["rater_kind"] = np.where(table["rater_id"].str.startswith("h"), "human", "model")
    units = table[["unit_id"]].drop_duplicates()
    units = units.assign(cluster_id=units["unit_id"].str[:5])
    found = paired_labels(validate_ratings(table), units, SCALE)
    assert found.raters == (*names[:PEOPLE], VERSIONS.after, VERSIONS.before)
    return found


def decided(cell: Cell, moved: float, rng: np.random.Generator, resamples: int) -> str:
    """The product's verdict on one pair of versions."""
    before_last = [*range(PEOPLE), PEOPLE + 1, PEOPLE]  # models stand by name
    labels = replace(blank(cell), codes=grades(cell, moved, rng)[:, before_last])
    settings = AnalysisSettings(margin=MARGIN, resamples=resamples)
    return drift_of(labels, VERSIONS, settings, DecisionSettings()).verdict


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some runs of one cell, each with the three moves."""
    tally = Tally()
    for run in runs:
        found: _Counts = Counter()
        for place, (name, moved) in enumerate(MOVES.items()):
            rng = np.random.default_rng([seed, place, run, CELLS.index(cell)])
            if name == "far" and cell.sign > 0:
                continue  # nobody can agree so well with people who differ themselves
            found[name, decided(cell, moved, rng, resamples)] += 1
        tally.add(Tally(1, found))
    return {cell: tally}


def document(found: dict[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    bound = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    wrong = [each.share(*of) for each in found.values() for of in WRONG]
    over = sum(share > bound for share in wrong)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often a verdict on drift is wrong",
            "",
            f"Written by `python -m benchmarks.drift --runs {runs}`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"Each cell has {runs:,} simulated pairs of a baseline and a later run (synthetic): "
            f"{PEOPLE} people with a kappa of {KAPPA:g}, and a grader that agreed with them as "
            f"well, or by the margin less where it moves up. The margin is {MARGIN:g} kappa either "
            f"way, and each one-sided bound is taken at {LEVEL:.1%}. A share of wrong verdicts "
            f"passes up to {bound:.1%}: nominally {ALPHA:.1%}, and two Monte Carlo standard errors "
            f"above. {len(wrong) - over} of {len(wrong)} shares pass.",
            "",
            "| prevalence | pairs | subjects | the grader | moves | false unchanged, at the margin "
            "| false changed, at the margin | false changed, not moved | power: unchanged, not "
            "moved | power: changed, 3 margins |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, each, bound) for cell, each in found.items()),
            "",
            "A grader that is *asked again* errs anew on every unit, as one that answers at a high "
            "temperature does; one that *keeps* its answers gives other ones on a few units only, "
            "as after a small change; one that *fails clusters* answers at random on all units of "
            "some clusters, which are of very unequal size. Where fewer than ten pairs have a "
            "label of the rarer kind, as in most samples here with prevalence .05, we cannot tell: "
            "the answer is to label more.",
            "",
            "The level holds for one comparison. A nightly job compares every night, and a grader "
            f"that sits at the margin is called unchanged in up to {ALPHA:.1%} of the nights.",
            "",
        ]
    )


WRONG = (("margin", "unchanged"), ("margin", "changed"), ("same", "changed"))
POWER = (("same", "unchanged"), ("far", "changed"))


def _line(cell: Cell, tally: Tally, bound: float) -> str:
    wrong = [tally.share(*of) for of in WRONG]
    shares = [f"{share:.3f}{' *' if share > bound else ''}" for share in wrong]
    shares += [f"{tally.share(*of):.3f}" for of in POWER]
    if cell.sign > 0:
        shares[-1] = "-"
    moves = "down" if cell.sign < 0 else "up"
    head = (cell.prevalence, cell.pairs, cell.subjects, cell.kind, moves)
    return f"| {' | '.join([*map(str, head), *shares])} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=1000, resamples=10, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
