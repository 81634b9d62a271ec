"""Whether picking pairs where graders differ saves labels: `python -m benchmarks.uncertainty`.

Every run draws a frame of pairs (synthetic, the population of `benchmarks.decisions`), a first
sample of it by chance, and a larger one twice: by chance, and by what graders say, through the
code of `evenhand extend --by uncertainty`. Both are judged by the bounds that verdicts rest on. The
grader lies below people by exactly the margin, so that any pass is a false one, or is as good as a
person.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import numpy as np
from scipy.special import ndtr, ndtri

from benchmarks.decisions import KAPPA, MARGIN, NOMINAL, PEOPLE, SCALE, SEED, qualities
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.comparison import add_baseline_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.verdicts.evidence import add_deciding_rows
from evenhand.analysis.writer import View
from evenhand.study.prompts.sampling import MAX_RATIO, Wave, chances_for, draw_pairs, inclusion
from evenhand.study.settings.analysis import DecisionSettings

OUT = RESULTS / "uncertainty.md"
FRAME = 1000
RULE = DecisionSettings()
Signal = Literal["probability", "two graders", "nothing"]
"""What tells where graders are unsure: the grader's probability, a second grader's label, or
chance, as where grades are beside the point."""


@dataclass(frozen=True)
class Cell:
    """A kind of study: `first` pairs by chance, then as many as make `pairs`."""

    signal: Signal
    prevalence: float
    first: int
    pairs: int
    subjects: int = 1


CELLS = (
    *(
        Cell(signal, prevalence, *sizes)
        for signal in ("probability", "two graders", "nothing")
        for prevalence in (0.5, 0.1)
        for sizes in ((50, 100), (50, 250), (100, 250))
    ),
    Cell("probability", 0.5, 50, 250, subjects=4),
    Cell("probability", 0.1, 50, 250, subjects=4),
)
WAYS = ("chance", "uncertainty", "unweighted")


@dataclass
class Tally:
    """Runs, and by way of picking: passes, and the estimates' sum and sum of squares."""

    runs: int = 0
    passes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))
    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))
    squares: dict[str, float] = field(default_factory=lambda: dict.fromkeys(WAYS, 0.0))

    def add(self, other: Tally) -> None:
        """Take in another process's share."""
        self.runs += other.runs
        for way in WAYS:
            self.take(way, other.passes[way], other.sums[way], other.squares[way])

    def take(self, way: str, passes: int, total: float, square: float) -> None:
        """Take in what one way of picking came to."""
        self.passes[way] += passes
        self.sums[way] += total
        self.squares[way] += square

    def mean(self, way: str) -> float:
        """The mean estimate."""
        return self.sums[way] / self.runs

    def variance(self, way: str) -> float:
        """The estimates' variance over the runs."""
        return self.squares[way] / self.runs - self.mean(way) ** 2

    def rate(self, way: str) -> float:
        """The share of the runs that pass."""
        return self.passes[way] / self.runs


def frame(cell: Cell, below: float, rng: np.random.Generator) -> tuple[Mask, dict[str, float]]:
    """Labels of people and of the grader (pairs, subjects, raters), and each pair's score."""
    person, grader = qualities(cell.prevalence, below)
    sees = np.array([person] * PEOPLE + [grader] * 2)
    of_pair = rng.normal(size=(FRAME, 1, 1))
    of_unit = rng.normal(size=(FRAME, cell.subjects, 1))
    shared = rng.normal(size=(FRAME, 1, len(sees)))
    alone = rng.normal(size=(FRAME, cell.subjects, len(sees)))
    unit, error = (math.sqrt(0.5) * (a + b) for a, b in ((of_pair, of_unit), (shared, alone)))
    seen = np.sqrt(sees) * unit + np.sqrt(1 - sees) * error
    cut = ndtri(1 - cell.prevalence)
    if cell.signal == "probability":
        differ = _unsure(seen[..., PEOPLE], person * grader, cut)
    elif cell.signal == "two graders":
        differ = 1.0 * ((seen[..., PEOPLE] > cut) != (seen[..., PEOPLE + 1] > cut))
    else:
        differ = 1.0 * (rng.random(seen.shape[:2]) < 0.3)
    scores = {f"p{n}": float(score) for n, score in enumerate(differ.mean(axis=1))}
    return seen[..., : PEOPLE + 1] > cut, scores


def _unsure(signal: Array, shared: float, cut: float) -> Array:
    """4 p (1 - p) of the probability that a person says yes, where p is one half at the cut."""
    own, at_cut = (
        ndtr((math.sqrt(shared) * each - cut) / math.sqrt(1 - shared)) for each in (signal, cut)
    )
    p = np.where(own < at_cut, 0.5 * own / at_cut, 1 - 0.5 * (1 - own) / (1 - at_cut))
    return np.asarray(4 * p * (1 - p))


def judged(
    yes: Mask, picked: Sequence[int], chances: Mapping[str, float] | None
) -> tuple[int, float]:
    """Whether the bounds of a verdict pass on the pairs picked, and the difference estimated.

    The rows that decide (`analysis.verdicts.evidence`) and the rule on them are the product's; all
    else that a report has is left out, as it takes twenty times as long.
    """
    pairs, subjects, raters = yes[picked].shape
    shape, none = (pairs * subjects, raters), np.full(pairs * subjects, -1)
    weight = None
    if chances is not None:
        weight = 1.0 / np.array([chances[f"p{pair}"] for pair in picked])
        weight /= weight.mean()
    labels = LabelMatrix(
        scale=SCALE,
        raters=(*(f"h{n}" for n in range(PEOPLE)), "g"),
        kinds=("human",) * PEOPLE + ("model",),
        codes=yes[picked].reshape(shape).astype(np.int8),
        positive=np.full(shape, np.nan),
        confidence=np.full(shape, np.nan),
        thresholds=np.full(shape, 0.5),
        assigned=np.ones(shape, dtype=bool),
        reasons=tuple(Counter[str]() for _ in range(raters)),
        clusters=np.repeat(np.arange(pairs), subjects),
        n_clusters=pairs,
        subjects=(),
        subject=none,
        pairs=(),
        pair=none,
        side=none,
        weight=weight,
        times_in_rest=np.zeros(len(none)),
    )
    labels, frequency = labels.folded()
    rows, view = ResultRows(SCALE.name), labels.on_categories()
    rows.heaviest = float(labels.people_weight.max())
    data = Resamples(frequency, 0, np.random.default_rng(0), weight=labels.weight)
    add_baseline_rows(View.of(rows, view, data))
    add_deciding_rows(rows, labels, data, MARGIN, RULE)
    found = rows.evidence.get(("g", "all", ""))
    bounds = found.bounds if found else None
    if bounds is None:
        return 0, math.nan
    passes = (
        bounds.difference["low"] > -MARGIN
        and bounds.above_baseline["low"] > 0
        and bounds.people_kappa["low"] >= RULE.min_people_kappa
        and bounds.minority_clusters["estimate"] >= RULE.min_rarer
    )
    return int(passes), bounds.difference["estimate"]


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[tuple[Cell, float], Tally]:
    """Some runs of one cell: at the margin, and as good as a person."""
    tallies = {}
    for below in (MARGIN, 0.0):
        tally = tallies[cell, below] = Tally()
        for run in runs:
            key = [seed, round(1000 * below), run, CELLS.index(cell)]
            rng = np.random.default_rng(key)
            yes, scores = frame(cell, below, rng)
            order = rng.permutation(FRAME).tolist()
            before = dict.fromkeys(scores, cell.first / FRAME)
            chances = chances_for(scores, before, cell.pairs - cell.first)
            left = {f"p{n}": chances[f"p{n}"] for n in order[cell.first :]}
            more = [int(pair[1:]) for pair in draw_pairs(left, rng)]
            waves = [
                Wave(by=by, chances=each, taken=())
                for by, each in (("chance", before), ("uncertainty", chances))
            ]
            sample = [*order[: cell.first], *more]
            found = {
                "chance": judged(yes, order[: cell.pairs], None),
                "uncertainty": judged(yes, sample, inclusion(waves)),
                "unweighted": judged(yes, sample, None),
            }
            if any(math.isnan(estimate) for _, estimate in found.values()):
                continue
            tally.runs += 1
            for way, (passed, estimate) in found.items():
                tally.take(way, passed, estimate, estimate**2)
    return tallies


def document(found: dict[tuple[Cell, float], Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    today = datetime.now(UTC).date().isoformat()
    bound = NOMINAL + 2 * math.sqrt(NOMINAL * (1 - NOMINAL) / runs)
    over = sum(tally.rate("uncertainty") > bound for (_, below), tally in found.items() if below)
    return "\n".join(
        [
            "# Picking pairs where graders differ",
            "",
            f"Written by `python -m benchmarks.uncertainty`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"{runs:,} simulated studies a cell (synthetic), judged by the bounds that verdicts "
            "rest on. A "
            f"frame of {FRAME:,} pairs, {PEOPLE} people with a kappa of {KAPPA:g}; so many pairs "
            "are picked first, by chance, and the rest by chance or by uncertainty, with at most "
            f"{MAX_RATIO:g} times the probability for the least sure pair. *Signal* is what tells "
            "where graders are unsure: the grader's own probability, whether a second grader "
            "differs, or nothing (scores drawn at random, the worst case).",
            "",
            "*Labels saved*: how many fewer pairs, picked by uncertainty, estimate the difference "
            "of kappas as precisely, from the ratio of the two variances; below 0 it costs "
            "labels. *Bias*: the mean estimate minus the true difference, weighted and as if the "
            "pairs had been picked by chance; what is left of the former is what small samples "
            "have in any case. *False passes* of a grader that lies "
            f"{MARGIN:g} below people, the margin: nominal {NOMINAL:.1%}, up to {bound:.1%} is "
            f"within two Monte Carlo standard errors; {over} of {len(found) // 2} cells lie above. "
            "*Power*: passes of a grader as good as a person.",
            "",
            "| signal | prevalence | pairs first | pairs in all | subjects | labels saved | bias | "
            "bias unweighted | false passes | by chance | power | by chance |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, found) for cell, below in found if below),
            "",
        ]
    )


def _line(cell: Cell, found: dict[tuple[Cell, float], Tally]) -> str:
    wrong, right = found[cell, MARGIN], found[cell, 0.0]
    ratios = [each.variance("uncertainty") / each.variance("chance") for each in (wrong, right)]
    cells = [
        cell.signal,
        f"{cell.prevalence:g}",
        str(cell.first),
        str(cell.pairs),
        str(cell.subjects),
        f"{1 - float(np.mean(ratios)):.0%}",
        f"{wrong.mean('uncertainty') + MARGIN:+.3f}",
        f"{wrong.mean('unweighted') + MARGIN:+.3f}",
        f"{wrong.rate('uncertainty'):.3f}",
        f"{wrong.rate('chance'):.3f}",
        f"{right.rate('uncertainty'):.2f}",
        f"{right.rate('chance'):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=600, resamples=10, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
