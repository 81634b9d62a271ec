"""Coverage of subjects' rates by part and by side, simulated: `python -m benchmarks.parts`.

Every run draws a new study of pairs that fall into parts at random, of which people label some, and
asks of the intervals of the analysis how often they hold the truth: a subject's rate in a part, the
differences between the two sides of the pairs, between
subjects, and the ranks that these allow.

The population (synthetic) is neither that of `benchmarks.corrected_rates` nor of
`benchmarks.differences`: an answer's chance is its pair's with probability one half, else its own,
and so is the grader's slip, whose size depends on the part. So every rate is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.coverage import CLOSE_ENOUGH, SEED
from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bootstrap.intervals import Reach, wilson
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.subjects.corrected_rates import (
    RateSums,
    clip_rates,
    corrected_interval,
    paired_half_widths,
    ppi_reach,
    rate_features,
)
from evenhand.analysis.subjects.scores import all_differences, rank_sets

OUT = RESULTS / "coverage-parts.md"
SUBJECTS, RATES = (3, 20), (0.1, 0.5)
COPIED = 0.5
ONE_SIDED = (0.98, 0.02)
"""Rates of the last subject on either side, where there is a one-sided subject."""
APART = 0.2
"""By this share of the rate parts, sides and subjects lie from the middle."""
QUESTIONS = {
    "part": "one subject's rate in a part",
    "sides": "all subjects' differences between sides",
    "differences": "all differences between subjects",
    "ranks": "all subjects' ranks",
}


class Design(NamedTuple):
    """Pairs for each part, labelled and graded only; the grader's chance to affirm what people do,
    and do not, affirm, in each part; whether the last subject is one-sided; and how many times as
    often it is drawn as others.
    """

    labelled: int
    rest: int
    errors: tuple[tuple[float, float], ...]
    one_sided: bool = False
    times: int = 1


GOOD = (0.95, 0.01)
DESIGNS = {
    "3 parts, 40 labelled": Design(40, 130, ((0.95, 0.05), (0.8, 0.1), (0.65, 0.3)), times=5),
    "10 parts, 20 labelled": Design(20, 60, (GOOD,) * 10, one_sided=True),
    "2 parts, 20 labelled": Design(20, 130, (GOOD,) * 2, one_sided=True),
}


class Cell(NamedTuple):
    """One study: its design, how many subjects, and the middle rate."""

    design: str
    subjects: int
    rate: float


class Key(NamedTuple):
    """What a count belongs to: a design and a question."""

    cell: Cell
    question: str


@dataclass
class Count:
    """How many intervals, or sets that must hold together, hold the truth, and their mean width."""

    asked: int = 0
    held: int = 0
    width: float = 0.0

    def add(self, other: Count) -> None:
        """Add another part of the runs."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def count(self, held: bool, width: float) -> None:
        """Count an interval, or a set of them with their mean width."""
        self.add(Count(1, held, width))


def true_rates(cell: Cell) -> np.ndarray:
    """People's rates (parts, subjects, sides). Every second subject treats both sides alike."""
    design = DESIGNS[cell.design]
    parts = np.linspace(-APART, APART, len(design.errors))[:, None, None]
    subjects = np.linspace(-APART, APART, cell.subjects)[:, None]
    sides = np.where(np.arange(cell.subjects)[:, None] % 2, 0.0, [APART, -APART])
    rates = np.asarray(cell.rate * (1.0 + parts + subjects + sides))
    if design.one_sided:
        rates[:, -1] = ONE_SIDED
    return rates


def study(cell: Cell, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each pair's part (pairs,), drawn at random, and people's and the grader's verdicts, each
    (pairs, subjects, sides) of 0 and 1.
    """
    design = DESIGNS[cell.design]
    parts = len(design.errors)
    shape = (parts * (design.labelled + design.rest), cell.subjects, 2)
    part = rng.integers(0, parts, shape[0])

    def chances() -> np.ndarray:
        shared, own = rng.random((shape[0], 1, 1)), rng.random(shape)
        return np.where(rng.random(shape) < COPIED, shared, own)

    people = chances() < true_rates(cell)[part]
    hit, false_alarm = np.array(design.errors)[part].T[:, :, None, None]
    grader = chances() < np.where(people, hit, false_alarm)
    return part, people.astype(float), grader.astype(float)


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Key, Count]:
    """Some runs of one design, through the analysis; each subject's rate is of side a."""
    counts = {Key(cell, question): Count() for question in QUESTIONS}
    true = true_rates(cell)
    first = true[..., 0]
    parts = len(first)
    design = DESIGNS[cell.design]
    n_labelled = parts * design.labelled
    for run in range(design.times * runs.start, design.times * runs.stop):
        rng = np.random.default_rng([seed, cell.subjects, round(100 * cell.rate), parts, run])
        part_of, people, grader = study(cell, rng)
        clusters = len(people)
        labelled = np.arange(clusters) < n_labelled
        people = np.where(labelled[:, None, None], people, np.nan)
        drawn = Resamples(np.ones(clusters), resamples, rng)

        features = rate_features(people[..., 0].ravel(), grader[..., 0].ravel())
        own = np.zeros((clusters, cell.subjects, parts, features.shape[1]))
        own[np.arange(clusters), :, part_of] = features.reshape(clusters, cell.subjects, -1)
        sums = RateSums(*np.moveaxis(drawn.to_rows(own), -1, 0))
        weight = sums.ppi_weight
        rates = sums.ppi(weight)
        for part in range(parts):
            here = part_of == part
            low, high = _interval(
                drawn,
                rates[:, 0, part],
                int((labelled & here).sum()),
                int(here.sum()),
                ppi_reach(own[:, 0, part], float(weight[0, 0, part])),
            )
            held = low <= first[part, 0] <= high
            counts[Key(cell, "part")].count(bool(held), high - low)

        apart = rate_features(
            (people[..., 0] - people[..., 1]).ravel(), (grader[..., 0] - grader[..., 1]).ravel()
        )
        paired = drawn.to_rows(apart.reshape(clusters, cell.subjects, -1))
        of_sides = RateSums(*np.moveaxis(paired, -1, 0))
        sides, people_only = of_sides.ppi(of_sides.ppi_weight), of_sides.reference_rate
        of_all = np.full(cell.subjects, n_labelled)
        reach = paired_half_widths(sides[1:], people_only[0], of_all, 0.05)
        truth = (true[..., 0] - true[..., 1]).mean(axis=0)
        held = (np.abs(sides[0] - truth) <= reach).all()
        counts[Key(cell, "sides")].count(bool(held), 2.0 * reach.mean())

        whole = RateSums(*(each.sum(axis=-1) for each in sums[:7]))
        found = all_differences(whole.ppi(whole.ppi_weight), of_all)
        middle = first.mean(axis=0)
        truth = middle[found.first] - middle[found.second]
        held = ((found.low <= truth) & (truth <= found.high)).all()
        counts[Key(cell, "differences")].count(bool(held), float((found.high - found.low).mean()))
        highest, lowest = rank_sets(found, cell.subjects)
        rank = 1 + (middle > middle[:, None]).sum(axis=1)
        held = ((highest <= rank) & (rank <= lowest)).all()
        counts[Key(cell, "ranks")].count(bool(held), float((lowest - highest).mean()))
    return counts


def _interval(
    drawn: Resamples, values: np.ndarray, labelled: int, units: int, reach: Reach | None
) -> tuple[float, float]:
    """The interval of a corrected rate as the analysis has it."""
    found = drawn.interval(values, labelled)
    within = corrected_interval(found, values[1:], units, (labelled, labelled), reach)
    low, high = clip_rates(np.array([within.low, within.high])).tolist()
    return low, high


def document(found: Mapping[Key, Count], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    today = datetime.now(UTC).date().isoformat()
    rows, short, wide = [], 0, 0
    for key, count in found.items():
        low, high = wilson(count.held / count.asked, count.asked)
        short += high < CLOSE_ENOUGH[0]
        wide += low > CLOSE_ENOUGH[1]
        mark = " *" if high < CLOSE_ENOUGH[0] else " +" if low > CLOSE_ENOUGH[1] else ""
        rows.append(
            f"| {QUESTIONS[key.question]} | {' | '.join(map(str, key.cell))} | "
            f"{count.held / count.asked:.3f} [{low:.3f}, {high:.3f}]{mark} | "
            f"{count.width / count.asked:.3f} |"
        )
    low, high = CLOSE_ENOUGH
    return "\n".join(
        [
            "# Coverage of subjects' rates by part and by side",
            "",
            f"Written by `python -m benchmarks.parts`, {today}, seed {seed}, {library_versions()}.",
            "",
            f"How often nominal 95% intervals hold the truth in {runs:,} simulated studies a cell "
            f"(synthetic), with {resamples:,} resamples of pairs, which fall into parts at random. "
            f"{' '.join(map(_described, DESIGNS))} In brackets stands the Monte Carlo interval "
            "(Wilson, 95%). A cell falls short, and is marked with *, where it lies below "
            f"{low:.2f}; it is wider than need be, and marked with +, where it lies above "
            f"{high:.2f}: of {len(rows)} cells {short} fall short and {wide} are wider. What is "
            "said of all subjects must hold of all at once. The width of ranks is the mean number "
            "of further ranks that a subject may have.",
            "",
            "| question | design | subjects | rate | coverage | mean width |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
    )


def _described(name: str) -> str:
    design = DESIGNS[name]
    hits, alarms = (
        ", ".join(f"{each:.2f}" for each in dict.fromkeys(column))
        for column in zip(*design.errors, strict=True)
    )
    said = (
        f"{name}: on average in each, beside {design.rest} that only the grader graded; this "
        f"affirms {hits} of what people affirm, and {alarms} of the rest"
    )
    if design.times > 1:
        said += f", in {design.times} times as many studies"
    if design.one_sided:
        said += "; the last subject's rates on the two sides are {} and {}".format(*ONE_SIDED)
    return f"{said}."


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    cells = [Cell(*each) for each in product(DESIGNS, SUBJECTS, RATES)]
    simulate_and_write(
        arguments, __doc__, cells, run_cell, document, runs=200, resamples=1000, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
