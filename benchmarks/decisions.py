"""How often "may stand in" is wrong, by simulation: `python -m benchmarks.decisions`.

Every run draws a study in which a grader lies below people by exactly the margin, so that any pass
is a false one, and a study in which it is as good as a person, so that passes are power. Verdicts
come from the product's own code: labels to rows to judgement. Beside them stands what a percentile
interval of the ceiling difference would have decided, as version 0.1.0 did.

The population (synthetic). What a unit is like is a normal variable of which half the variance is
its pair's; a rater sees it with an error, half of it shared by the rater's labels on one pair, and
says yes above a cut that fixes the prevalence. People see alike; graders see worse or as they do.
Where people are drawn, their cuts differ as well, and the truth is that of all such people; where a
threshold has to be found, a grader at the margin is so at the best threshold that there is. Some
cells have people who hardly agree, or say how poor the grader is that must not pass.

Beside the power also stands what the same statistic would reach if its critical value were exact:
the one that 2.5% of the cell's own studies at the margin exceed, which nobody knows who has a
single study. `benchmarks.deciding_bound` has more populations, for one grader at one look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd
import scipy
from scipy.special import ndtr, ndtri

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis import Scale
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.pairs import add_humans_rows, add_pair_rows
from evenhand.analysis.bootstrap.bounds import level_of_look
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import BINARY_ALL
from evenhand.analysis.people.comparison import (
    CEILING,
    add_baseline_ceiling_rows,
    add_baseline_rows,
    add_ceiling_rows,
)
from evenhand.analysis.people.disagreements import add_coverage_rows
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.thresholds.tuning import add_threshold_rows, with_held_out_thresholds
from evenhand.analysis.verdicts.evidence import add_deciding_rows
from evenhand.analysis.verdicts.judge import Verdict, judge_graders
from evenhand.analysis.writer import RubricView
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings

OUT = RESULTS / "decisions.md"
SEED = 20231206
MARGIN, KAPPA, PEOPLE, NOMINAL = 0.1, 0.7, 3, 0.025
STRICTNESS, SHIFT = 0.25, -1.0
"""The standard deviation of people's cuts where people are drawn; how far probabilities are off."""
MOST_LOOKS, MOST_PAIRS = 5, 1500
"""Of studies that are extended as advised."""
RULE = DecisionSettings()
FLOOR = RULE.min_people_kappa
CAUGHT = (0.6 - 0.05) / 0.95
"""Kappa with people of a grader that says yes where they do in 6 of 10 units, at prevalence .05."""
SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))
WHAT = {
    "": "labels",
    "default": "probabilities, default threshold",
    "declared": "probabilities, declared threshold",
    "tuned": "probabilities, threshold tuned",
    "drawn": "labels; people drawn",
    "advised": "labels; extended as advised",
}
Cuts = tuple[float, float]
Kind = Literal["", "default", "declared", "tuned", "drawn", "advised"]

_nodes = cache(np.polynomial.hermite_e.hermegauss)
"""Kept, as it takes as long as all else in a kappa together, and there are thousands."""


@dataclass(frozen=True)
class Cell:
    """A kind of study: `looks` at ever more pairs, with equal steps up to `pairs`.

    `kind` is "" for graders that give labels; "default" and "declared" for one with probabilities
    and the right threshold, "tuned" for one whose threshold has to be found; "drawn" where people
    are a sample of a population of people who differ in strictness, and the verdict is about such
    people; "advised" where the first look is at `pairs` and every further one, up to five, at as
    many more as the verdict before advised. `people` is people's kappa, and `poor` that of the
    grader that must not pass, which is below theirs by the margin where it is None.
    """

    prevalence: float
    pairs: int
    subjects: int
    graders: int = 1
    looks: int = 1
    kind: Kind = ""
    people: float = KAPPA
    poor: float | None = None

    @property
    def below(self) -> float:
        """How far the grader that must not pass is below people."""
        return MARGIN if self.poor is None else self.people - self.poor


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
    Cell(0.5, 100, 1, kind="advised"),
    Cell(0.1, 100, 4, kind="advised"),
    *(Cell(0.5, pairs, 1, kind="tuned") for pairs in (50, 100, 250)),
    Cell(0.1, 250, 4, kind="tuned"),
    Cell(0.5, 100, 1, kind="default"),
    Cell(0.5, 100, 1, kind="declared"),
    *(Cell(0.5, pairs, 1, kind="drawn") for pairs in (100, 250, 1000)),
    Cell(0.1, 250, 4, kind="drawn"),
    *(Cell(0.5, 250, 4, people=people, poor=0.05) for people in (0.12, 0.22)),
    *(Cell(0.05, pairs, 4, poor=CAUGHT) for pairs in (100, 250)),
)
"""New ones at the end: a cell's place is part of its seed."""


@dataclass
class Tally:
    """Runs of a cell, passes by the product, passes by percentile intervals, and the best chance
    of a grader to be within the margin, of every run.
    """

    runs: int = 0
    passed: int = 0
    by_percentile: int = 0
    chances: list[float] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.runs += other.runs
        self.passed += other.passed
        self.by_percentile += other.by_percentile
        self.chances += other.chances


def kappa(prevalence: float, first: float, second: float, cuts: Cuts = (0.0, 0.0)) -> float:
    """Kappa of two raters who see so much of what a unit is like, in the population; `cuts` say how
    much stricter than usual each is.
    """
    at, weight = _nodes(200)
    usual = ndtri(1 - prevalence)
    says = [
        1 - ndtr((usual + cut - math.sqrt(own) * at) / math.sqrt(1 - own))
        for own, cut in zip((first, second), cuts, strict=True)
    ]
    one, other, both = (
        float((weight * each).sum() / weight.sum()) for each in (*says, says[0] * says[1])
    )
    expected = one * other + (1 - one) * (1 - other)
    return (2 * both + 1 - one - other - expected) / (1 - expected)


def mean_kappa(prevalence: float, first: float, second: float, strictness: Cuts) -> float:
    """Mean kappa of pairs of raters whose strictness has these standard deviations."""
    at, weight = _nodes(7)
    share = weight / weight.sum()
    return sum(
        float(a * b) * kappa(prevalence, first, second, (strictness[0] * x, strictness[1] * y))
        for x, a in zip(at, share, strict=True)
        for y, b in zip(at, share, strict=True)
    )


def best_kappa(prevalence: float, first: float, second: float) -> float:
    """Kappa where the second one's cut is the best that there is."""
    return max(
        kappa(prevalence, first, second, (0.0, cut)) for cut in np.linspace(-0.6, 0.6, 25).tolist()
    )


@cache
def qualities(
    prevalence: float, below: float, kind: Kind = "", agreed: float = KAPPA
) -> tuple[float, float]:
    """How much people with a kappa of `agreed` see, and a grader whose kappa with them is `below`
    theirs."""

    def people(own: float) -> float:
        if kind == "drawn":
            return mean_kappa(prevalence, own, own, (STRICTNESS, STRICTNESS))
        return kappa(prevalence, own, own)

    def beside(person: float, own: float) -> float:
        if kind == "drawn":
            return mean_kappa(prevalence, person, own, (STRICTNESS, 0.0))
        probabilities = kind in ("default", "declared", "tuned")
        return (best_kappa if probabilities else kappa)(prevalence, person, own)

    person = scipy.optimize.brentq(lambda own: people(own) - agreed, 1e-4, 1 - 1e-6)
    grader = scipy.optimize.brentq(lambda own: beside(person, own) - agreed + below, 1e-6, 1 - 1e-9)
    return float(person), float(grader)


def study(cell: Cell, pairs: int, below: float, rng: np.random.Generator) -> pd.DataFrame:
    """The ratings of one study, with the number of its pair beside each."""
    person, grader = qualities(cell.prevalence, below, cell.kind, cell.people)
    sees = np.array([person] * PEOPLE + [grader] * cell.graders)
    strict = np.zeros(len(sees))
    if cell.kind == "drawn":
        strict[:PEOPLE] = rng.normal(0.0, STRICTNESS, PEOPLE)
    of_pair = rng.normal(size=(pairs, 1, 1))
    of_unit = rng.normal(size=(pairs, cell.subjects, 1))
    shared = rng.normal(size=(pairs, 1, len(sees)))
    alone = rng.normal(size=(pairs, cell.subjects, len(sees)))
    unit, error = (math.sqrt(0.5) * (a + b) for a, b in ((of_pair, of_unit), (shared, alone)))
    above = np.sqrt(sees) * unit + np.sqrt(1 - sees) * error - ndtri(1 - cell.prevalence) - strict
    pair, subject, rater = (index.ravel() for index in np.indices(above.shape))
    names = np.array([*(f"h{n}" for n in range(PEOPLE)), *(f"g{n}" for n in range(cell.graders))])
    ratings = pd.DataFrame(
        {
            "unit_id": [f"p{p}s{s}" for p, s in zip(pair, subject, strict=True)],
            "rater_id": names[rater],
            "rater_kind": np.where(rater < PEOPLE, "human", "model"),
            "label": np.where(above.ravel() > 0, "yes", "no"),
            "pair": pair,
        }
    )
    if cell.kind in ("default", "declared", "tuned"):
        shift = 0.0 if cell.kind == "default" else SHIFT
        by_model = rater >= PEOPLE
        ratings["p_positive"] = np.where(by_model, ndtr(above.ravel() + shift), np.nan)
        ratings.loc[by_model, "label"] = ""
    return ratings


def analysed(
    cell: Cell, ratings: pd.DataFrame, look: int, resamples: int, **by: float
) -> tuple[ResultRows, list[Verdict]]:
    """What the product finds, by those of its parts on which verdicts on such studies rest (a test
    holds them against the whole); `by` are thresholds declared for graders.
    """
    units = ratings[["unit_id", "pair"]].drop_duplicates()
    units = units.assign(cluster_id=units["pair"].astype(str))[["unit_id", "cluster_id"]]
    scale = replace(SCALE, thresholds=by)
    valid = validate_ratings(ratings.drop(columns="pair"))
    labels = with_held_out_thresholds(encode(combine_readings(valid, scale), scale, units))
    folded, frequency = labels.folded()
    shared = Resamples(frequency, resamples, np.random.default_rng(look))
    rows = ResultRows(scale.name)
    views = RubricView.of_labels(rows, folded, lambda: shared, Request(None, AnalysisSettings()))
    for view in views:
        rows.record_chance(view.coded, shared)
        add_pair_rows(view)
        add_humans_rows(view)
        add_group_rows(view)
        add_baseline_rows(view)
        add_ceiling_rows(view)
        add_baseline_ceiling_rows(view)
    add_coverage_rows(views[0])
    if cell.kind == "tuned":
        add_threshold_rows(views[-1])
    rule = DecisionSettings(scope="like_these") if cell.kind == "drawn" else RULE
    add_deciding_rows(rows, folded, shared, MARGIN, rule, look)
    return rows, judge_graders(rows, labels, rule=rule, cluster_noun="pair")


def decided(cell: Cell, below: float, rng: np.random.Generator, resamples: int) -> Tally:
    """Whether any grader passes at any look: by the product, and by percentile intervals; and the
    best of their chances at the last.
    """
    looks = MOST_LOOKS if cell.kind == "advised" else cell.looks
    ratings = study(cell, cell.pairs if cell.kind != "advised" else MOST_PAIRS, below, rng)
    passed, by_percentile, pairs = False, False, cell.pairs
    for look in range(1, looks + 1):
        if cell.kind != "advised":
            pairs = cell.pairs * look // looks
        own = ratings[ratings["pair"] < pairs]
        declared = {"g0": float(ndtr(SHIFT))} if cell.kind == "declared" else {}
        rows, found = analysed(cell, own, look, resamples, **declared)
        verdicts = [verdict["verdict"] for verdict in found]
        passed |= any(each.startswith("can_replace") for each in verdicts)
        by_percentile |= _by_percentile(cell, own, rows, resamples)
        more = found[0]["more_clusters"]
        if cell.kind == "advised" and (verdicts != ["inconclusive"] or not more):
            break
        pairs = min(pairs + more, MOST_PAIRS)
    return Tally(1, passed, by_percentile, [max(each["chance"] or 0.0 for each in found)])


def _by_percentile(cell: Cell, ratings: pd.DataFrame, rows: ResultRows, resamples: int) -> bool:
    """Whether a percentile interval lies above the margin; with a threshold tuned on these very
    labels, where one was.
    """
    if cell.kind == "tuned":
        advised = rows.get("threshold_recommended", "humans", "g0", BINARY_ALL, "kappa")
        if advised is None:
            return False
        rows, _ = analysed(replace(cell, kind=""), ratings, 1, resamples, g0=advised["estimate"])
    read = BINARY_ALL if "p_positive" in ratings else "all"
    found = [rows.get(CEILING, "humans", f"g{n}", read) for n in range(cell.graders)]
    return any(row is not None and row["low"] > -MARGIN for row in found)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[tuple[Cell, float], Tally]:
    """Some runs of one cell: a grader that must not pass, and one as good as a person."""
    tallies = {}
    for below in (cell.below, 0.0):
        tally = tallies[cell, below] = Tally()
        for run in runs:
            rng = np.random.default_rng([seed, round(1000 * below), run, CELLS.index(cell)])
            tally.add(decided(cell, below, rng, resamples))
    return tallies


def document(found: dict[tuple[Cell, float], Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    error = math.sqrt(NOMINAL * (1 - NOMINAL) / runs)
    first = level_of_look(1)
    z_first, z_nominal, z_power = -ndtri(first), -ndtri(NOMINAL), ndtri(0.8)
    dearer = ((z_first + z_power) / (z_nominal + z_power)) ** 2 - 1
    bound = NOMINAL + 2 * error
    wrong = [tally.passed / tally.runs for (_, below), tally in found.items() if below]
    over = sum(share > bound for share in wrong)
    today = datetime.now(UTC).date().isoformat()
    return "\n".join(
        [
            "# How often a verdict is wrong",
            "",
            f"Written by `python -m benchmarks.decisions --runs {runs}`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"False passes: the share of {runs:,} simulated studies a cell (synthetic) in which a "
            f"grader that lies {MARGIN:g} kappa below people, the margin, may stand in all the "
            f"same; with several graders, in which any may. Nominal is {NOMINAL:.1%}; a cell "
            f"passes up to {bound:.1%}, two Monte Carlo standard errors above. "
            f"{len(wrong) - over} of {len(wrong)} cells pass. Power: the same share where graders "
            f"are as good as a person. {PEOPLE} people with a kappa of {KAPPA:g}; looks are at "
            f"equal steps. Beside it, what a percentile interval ({resamples} resamples) would "
            "have let pass. *Exact*: the power of the same statistic, without any floor, with the "
            "critical value that is exact in that very cell.",
            "",
            "| prevalence | pairs | subjects | graders | looks | what | false passes | "
            "by percentile | power | by percentile | exact |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, found, bound) for cell, below in found if below),
            "",
            "Where a row has kappas of its own, the first is people's and the second that of the "
            "grader that must not pass. Where people agree no better than "
            f"`decision.min_people_kappa`, {FLOOR:g}, no grader may pass, not even one as good as "
            "they are: what stands under power is then an error too. A grader with a kappa of "
            f"{CAUGHT:.2f} at prevalence .05 says yes in 60% of the units in which a person does.",
            "",
            "With prevalence .05 or .1 and few pairs nobody passes, as fewer than ten pairs have "
            "a label of the rarer kind: the honest answer is that more must be labelled. Where "
            f"people are drawn, their cuts have a standard deviation of {STRICTNESS:g} and the "
            "verdict speaks of people like these; the percentile interval speaks of these three. "
            "A percentile interval is taken at a threshold tuned on the same labels. Studies that "
            f"are extended as advised begin with so many pairs and end with a decision, where no "
            f"number is advised, after {MOST_LOOKS} looks, or at {MOST_PAIRS:,} pairs.",
            "",
            f"What honesty costs: at its first look a verdict is taken at {first:.1%} instead of "
            f"{NOMINAL:.1%}, so that later looks have something left, which takes {dearer:.0%} "
            "more pairs for a power of 80%. The rest of what percentile intervals had more of is "
            "false passes, and what several graders, looks and tuned thresholds must pay for.",
            "",
        ]
    )


def _line(cell: Cell, found: dict[tuple[Cell, float], Tally], bound: float) -> str:
    wrong, right = found[cell, cell.below], found[cell, 0.0]
    mark = " *" if wrong.passed / wrong.runs > bound else ""
    shares = [
        f"{wrong.passed / wrong.runs:.3f}{mark}",
        f"{wrong.by_percentile / wrong.runs:.3f}",
        f"{right.passed / right.runs:.3f}",
        f"{right.by_percentile / right.runs:.3f}",
        _exact(cell, wrong, right),
    ]
    return f"{_head(cell)} {' | '.join(shares)} |"


def _exact(cell: Cell, wrong: Tally, right: Tally) -> str:
    """Power with the exact critical value, where a single look at these people decides."""
    if cell.looks > 1 or cell.kind in ("advised", "drawn") or cell.poor is not None:
        return "-"
    critical = np.quantile(wrong.chances, 1 - NOMINAL)
    return f"{np.mean(np.array(right.chances) > critical):.3f}"


def _head(cell: Cell) -> str:
    """A row as far as it says what was simulated."""
    looks = f"up to {MOST_LOOKS}" if cell.kind == "advised" else cell.looks
    own = "" if cell.poor is None else f"; kappas {cell.people:g} and {cell.poor:.2f}"
    kind = (cell.prevalence, cell.pairs, cell.subjects, cell.graders, looks, WHAT[cell.kind] + own)
    return f"| {' | '.join(map(str, kind))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=500, resamples=100, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
