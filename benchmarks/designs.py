"""How often verdicts are wrong under selective labelling: `python -m benchmarks.designs`.

Who labels an item often depends on labels: a third annotator only where two differ, a second one
mostly on hard items. Every run draws such a study with graders that lie below annotators by the
margin or more, so that any pass is a false one; some of the runs also one with graders as good as
an annotator, so that passes are power. Verdicts are those of `evenhand.analysis.analyse`
(`benchmarks.simulated`).

The population (synthetic). An item has a place on a line, or of several unordered options an
attraction of each, and is more or less hard (log-normal). A rater sees it with an error in
proportion to that, and annotators differ in strictness. Graders at the margin either see worse,
above all on hard items, or see as annotators do and answer wrongly on any item alike. The true
difference is that in kappa if everybody labelled everything. Of items in clusters half the variance
of place, hardness and error is the cluster's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from itertools import groupby, product
from typing import Literal

import numpy as np
import scipy

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from benchmarks.simulated import (
    MARGIN,
    NOMINAL,
    Study,
    Values,
    any_passes,
    most_allowed,
    standard_error,
    verdicts,
)
from evenhand.analysis import Scale

OUT = RESULTS / "designs.md"
SEED = 20261126
NOISE, STRICTNESS = 0.35, 0.25
"""An annotator's error where an item is of usual hardness; how far the strictest is off."""
HARD = 1.3
"""Items at least so hard count as hard: 37%."""
SPOT_CHECKS = 0.1
MOST_CLUSTER = 8
_LARGE, _MOST_FULL = 100_000, 12
"""Items and annotators from which the truth is computed."""

Options = Literal["two", "four unordered", "five ordered"]
Design = Literal["third", "third, spot checks", "crowd", "crowd third", "second", "random second"]
SCALES: dict[Options, Scale] = {
    "two": Scale("r", ("0", "1")),
    "four unordered": Scale("r", ("a", "b", "c", "d")),
    "five ordered": Scale("r", ("1", "2", "3", "4", "5"), "ordinal"),
}
CUTS = {"two": (0.0,), "five ordered": (-1.2, -0.4, 0.4, 1.2)}


@dataclass(frozen=True)
class Cell:
    """A kind of study of so many `items`.

    `design` says who labels what: "third", an annotator who labels only where the two others
    differ, perhaps with spot checks; "crowd third", any of a crowd in that part; "second", a second
    label with the probabilities `shares` on other and on hard items; "random second" with the first
    of them; "crowd", two to five labels of each item by people with unequal loads. Graders are
    `below` annotators, and err `alike` on all items or mostly on hard ones. `is_timed` where it is
    known when labels were given, `is_declared` where overlap is declared to be random.
    """

    family: str
    design: Design
    items: int
    annotators: int = 3
    shares: tuple[float, float] = (0.0, 0.0)
    alike: bool = False
    below: float = MARGIN
    options: Options = "two"
    clustered: bool = False
    graders: int = 1
    is_timed: bool = False
    is_declared: bool = False

    @property
    def good_every(self) -> int:
        """The power is taken from every so many of the runs: from fewer where one takes long."""
        return 8 if self.annotators > 100 or self.graders > 4 else 2

    @property
    def compared(self) -> int:
        """Number of the annotators about whom the truth is: a named third one settles items."""
        return 2 if self.design.startswith("third") else self.annotators

    @property
    def text(self) -> str:
        """The cell in words, without its family and its number of items."""
        parts = []
        if self.design.startswith("third"):
            parts.append(f"named third{self.design.removeprefix('third')}")
        elif self.design == "second":
            other, hard = self.shares
            parts.append(f"second label on {hard:g} of hard, {other:g} of others")
        elif self.design == "random second":
            parts.append("declared" if self.is_declared else "not declared")
        else:
            third = ", third label where two differ" if self.design == "crowd third" else ""
            parts.append(f"{self.annotators} annotators{third}")
        parts += [
            "" if self.below == MARGIN else f"{self.below:g} below",
            "errs alike everywhere" if self.alike else "",
            f"{self.graders} graders" if self.graders > 1 else "",
        ]
        return "; ".join(each for each in parts if each)


def _cells() -> tuple[Cell, ...]:
    third: tuple[Design, ...] = ("third", "third, spot checks")
    shares = ((0.1, 0.9), (0.05, 0.95), (0.15, 0.6), (0.25, 0.45))
    typical: tuple[tuple[Design, int, tuple[float, float], bool], ...] = (
        ("third", 3, (0.0, 0.0), False),
        ("third, spot checks", 3, (0.0, 0.0), False),
        ("crowd third", 12, (0.0, 0.0), False),
        ("second", 2, (0.1, 0.9), True),
        ("second", 2, (0.25, 0.45), False),
        ("second", 2, (0.25, 0.45), True),
    )

    def typically(
        family: str, items: Sequence[int], of: Sequence[int], **more: object
    ) -> list[Cell]:
        return [
            replace(Cell(family, design, n, people, each, alike), **more)  # type: ignore[arg-type]
            for n in items
            for design, people, each, alike in (typical[at] for at in of)
        ]

    return (
        *(Cell("third where two differ", d, n) for d in third for n in (150, 400, 800)),
        *(
            Cell("third where two differ", "third", n, below=b)
            for b in (0.18, 0.29)
            for n in (400, 800)
        ),
        *(Cell("third where two differ", "crowd third", n, 12) for n in (100, 300, 800)),
        *(
            Cell("second label by difficulty", "second", n, 2, each, alike)
            for alike, each, n in product((False, True), shares, (200, 400, 1000))
        ),
        *(
            Cell("crowd, not selective", "crowd", n, people)
            for n in (100, 300)
            for people in (5, 30, 120, 800)
        ),
        *(
            Cell(
                "second label on a random third",
                "random second",
                400,
                2,
                (1 / 3, 1 / 3),
                is_declared=declared,
            )
            for declared in (False, True)
        ),
        Cell("time of labels known", "third", 400, is_timed=True),
        Cell("time of labels known", "crowd third", 300, 12, is_timed=True),
        *typically("items in clusters of 1 to 8", (400, 1000), range(6), clustered=True),
        *typically("four unordered options", (400,), range(6), options="four unordered"),
        *typically("five ordered options", (400,), range(6), options="five ordered"),
        *typically("several graders", (400,), (1, 2, 5), graders=4),
        *typically("several graders", (400,), (1, 2, 5), graders=10),
    )


CELLS = _cells()
"""New ones at the end: a cell's place is part of its seed."""


@dataclass
class Tally:
    """Runs of a cell and false passes in them; runs with good graders and passes in them; how
    selected labels were handled in the former.
    """

    runs: int = 0
    wrong: int = 0
    good_runs: int = 0
    passed: int = 0
    how: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Add another part of the runs."""
        self.runs += other.runs
        self.wrong += other.wrong
        self.good_runs += other.good_runs
        self.passed += other.passed
        self.how += other.how


@dataclass(frozen=True)
class Items:
    """Items: `place` (items, dimensions), how `hard` each is, and its cluster (items,)."""

    place: Values
    hard: Values
    cluster: np.ndarray
    options: Options
    clustered: bool

    @classmethod
    def drawn(cls, n: int, options: Options, clustered: bool, rng: np.random.Generator) -> Items:
        """Draw items."""
        cluster = np.arange(n)
        if clustered:
            cluster = np.repeat(cluster, rng.integers(1, MOST_CLUSTER + 1, n))[:n]
        dimensions = 4 if options == "four unordered" else 1
        whole = cls(np.zeros((n, dimensions)), np.ones(n), cluster, options, clustered)
        place, hard = whole._normal(rng, dimensions), whole._normal(rng, 1)[:, 0]
        return replace(whole, place=place, hard=np.exp(0.8 * hard))

    def _normal(self, rng: np.random.Generator, columns: int) -> Values:
        """Standard normal values (items, columns), half their variance the cluster's."""
        own = rng.normal(size=(len(self.hard), columns))
        if not self.clustered:
            return own
        common = rng.normal(size=(self.cluster[-1] + 1, columns))[self.cluster]
        both: Values = np.sqrt(0.5) * (own + common)
        return both

    def errors(self, rng: np.random.Generator) -> Values:
        """A rater's errors (items, dimensions) where the noise is 1."""
        errors: Values = self.hard[:, None] * self._normal(rng, self.place.shape[1])
        return errors

    def labels(self, errors: Values, strictness: float = 0.0) -> np.ndarray:
        """Codes (items,) of a rater with these errors."""
        seen = self.place + errors
        if self.options == "four unordered":
            favour = strictness * np.array([1.0, -1.0, 0.0, 0.0])
            return np.asarray(np.argmax(seen + favour, axis=1))
        return np.asarray(np.searchsorted(CUTS[self.options], seen[:, 0] + strictness))


def strictness(annotators: int) -> Values:
    """How far each annotator's labels are off to one side."""
    if annotators <= 3:
        return np.array([-STRICTNESS, STRICTNESS, 0.0])[:annotators]
    return np.linspace(-STRICTNESS, STRICTNESS, annotators)


def grades(items: Items, noise: float, flips: float, rng: np.random.Generator) -> np.ndarray:
    """A grader's codes (items,): with its own noise, and on a share `flips` another label."""
    q = len(SCALES[items.options].categories)
    codes = items.labels(noise * items.errors(rng))
    other = (codes + rng.integers(1, q, len(codes))) % q
    return np.where(rng.random(len(codes)) < flips, other, codes)


def weights(options: Options) -> Values:
    """Distances of labels (q, q), by which the deciding kappa is weighted."""
    q = len(SCALES[options].categories)
    if SCALES[options].level == "nominal":
        return 1.0 - np.eye(q)
    steps: Values = np.abs(np.arange(q)[:, None] - np.arange(q)) / (q - 1.0)
    return steps


def kappa_of(table: Values, distance: Values) -> float:
    """Kappa of a table (q, q) of shares."""
    chance = table.sum(axis=1) @ distance @ table.sum(axis=0)
    return float(1 - (table * distance).sum() / chance)


@cache
def _large(options: Options, annotators: int) -> tuple[Items, list[Values], float]:
    """Many items, annotators' labels of them as indicators (items, q), and annotators' kappa."""
    rng = np.random.default_rng(7)
    items = Items.drawn(_LARGE, options, False, rng)
    one = np.eye(len(SCALES[options].categories))
    said = [one[items.labels(NOISE * items.errors(rng), s)] for s in strictness(annotators)]
    between = [said[i].T @ said[j] / _LARGE for i in range(annotators) for j in range(i)]
    return items, said, _mean_kappa(between, options, annotators)


def _mean_kappa(tables: Sequence[Values], options: Options, annotators: int) -> float:
    """Mean kappa of tables; of a crowd that of all of them together, as its pairs share a table."""
    distance = weights(options)
    if annotators > 3:
        return kappa_of(np.mean(tables, axis=0), distance)
    return float(np.mean([kappa_of(each, distance) for each in tables]))


@cache
def errs(options: Options, annotators: int, below: float, alike: bool) -> tuple[float, float]:
    """Noise and share of flipped labels of a grader so far below annotators."""
    items, said, among = _large(options, min(annotators, _MOST_FULL))

    def difference(at: float) -> float:
        own = grades(items, *((NOISE, at) if alike else (at, 0.0)), np.random.default_rng(8))
        one = np.eye(len(SCALES[options].categories))[own]
        both = [each.T @ one / _LARGE for each in said]
        if annotators > 3:
            both = [np.mean(both, axis=0)]
        return _mean_kappa(both, options, 3) - among

    low, high = (0.0, 0.45) if alike else (0.2, 8.0)
    found = float(scipy.optimize.brentq(lambda at: difference(at) + below, low, high, xtol=1e-3))
    return (NOISE, found) if alike else (found, 0.0)


def study(cell: Cell, is_good: bool, rng: np.random.Generator) -> Study:
    """Draw one study, with graders below annotators or as good as one."""
    items = Items.drawn(cell.items, cell.options, cell.clustered, rng)
    full = np.stack(
        [items.labels(NOISE * items.errors(rng), s) for s in strictness(cell.annotators)], axis=1
    )
    noise, flips = (NOISE, 0.0)
    if not is_good:
        noise, flips = errs(cell.options, cell.compared, cell.below, cell.alike)
    given = [grades(items, noise, flips, rng) for _ in range(cell.graders)]
    held, rank = DESIGNS[cell.design](cell, full, items, rng)
    times = None
    if cell.is_timed:
        times = np.where(held, 1e6 * rank + rng.uniform(0, 1e5, rank.shape), np.nan)
    return Study(
        np.where(held, full, -1).astype(np.int16),
        np.stack(given, axis=1).astype(np.int16),
        items.cluster if cell.clustered else None,
        times,
    )


Labelled = tuple[np.ndarray, np.ndarray]
"""Which labels were given, and the place of each among those of its item, (items, annotators)."""


def _third(cell: Cell, full: np.ndarray, items: Items, rng: np.random.Generator) -> Labelled:
    held = np.ones(full.shape, dtype=bool)
    spot = SPOT_CHECKS if "spot" in cell.design else 0.0
    held[:, 2] = (full[:, 0] != full[:, 1]) | (rng.random(len(full)) < spot)
    return held, np.broadcast_to(np.arange(3), full.shape)


def _crowd_third(cell: Cell, full: np.ndarray, items: Items, rng: np.random.Generator) -> Labelled:
    rank = np.argsort(np.argsort(rng.random(full.shape), axis=1), axis=1)
    first, second = (np.take_along_axis(full, (rank == at).argmax(1)[:, None], 1) for at in (0, 1))
    return (rank < 2) | ((rank == 2) & (first != second)), rank


def _second(cell: Cell, full: np.ndarray, items: Items, rng: np.random.Generator) -> Labelled:
    held = np.ones(full.shape, dtype=bool)
    share = np.where(items.hard > HARD, cell.shares[1], cell.shares[0])
    held[:, 1] = rng.random(len(full)) < share
    return held, np.broadcast_to(np.arange(2), full.shape)


def _crowd(cell: Cell, full: np.ndarray, items: Items, rng: np.random.Generator) -> Labelled:
    n, people = full.shape
    load = 1 / np.arange(1, people + 1) ** 0.6
    rank = np.argsort(np.argsort(rng.exponential(size=full.shape) / load, axis=1), axis=1)
    return rank < rng.integers(2, min(people, 5) + 1, n)[:, None], rank


DESIGNS: Mapping[Design, Callable[[Cell, np.ndarray, Items, np.random.Generator], Labelled]] = {
    "third": _third,
    "third, spot checks": _third,
    "crowd": _crowd,
    "crowd third": _crowd_third,
    "second": _second,
    "random second": _second,
}


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some runs of one cell."""
    tally, scale = Tally(), SCALES[cell.options]
    for run in runs:
        for is_good in (False, True)[: 1 if run % cell.good_every else 2]:
            rng = np.random.default_rng([seed, CELLS.index(cell), run, int(is_good)])
            drawn = study(cell, is_good, rng)
            found, how = verdicts(drawn, scale, is_random=cell.is_declared)
            passes = any_passes(found)
            if is_good:
                tally.add(Tally(good_runs=1, passed=passes))
            else:
                tally.add(Tally(runs=1, wrong=passes, how=Counter([how])))
    return {cell: tally}


WAYS = {
    "all": "all labels",
    "first": "first labels",
    "nearly_all": "who labelled all",
    "tie_break": "tie-breaks",
    "unknown": "no verdict",
}


def document(found: Mapping[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    most = most_allowed(runs)
    missed = [cell for cell, each in found.items() if each.wrong / each.runs > most]
    by_chance = float(scipy.stats.binom.sf(math.floor(most * runs), runs, NOMINAL))
    worst = max(each.wrong / each.runs for each in found.values())
    lines = [
        "# Verdicts under selective labelling",
        "",
        f"Written by `python -m benchmarks.designs --runs {runs}`, "
        f"{datetime.now(UTC).date().isoformat()}, seed {seed}, {library_versions()}.",
        "",
        f"False passes: the share of {runs:,} simulated studies a cell (synthetic) in which a "
        f"grader {MARGIN:g} kappa below annotators, or further where the line says so, can replace "
        "one all the same; with several graders, in which any can. The level of a first analysis "
        f"is {NOMINAL:.4f}; a cell passes up to {most:.3f}, two Monte Carlo standard errors above. "
        f"{len(found) - len(missed)} of {len(found)} cells pass; the worst has {worst:.3f}. A cell "
        f"exactly at the level is above that bound with a probability of {by_chance:.3f}; none "
        f"of {runs:,} still allows for a rate of up to {1 - 0.05 ** (1 / runs):.3f} (95%). Power: "
        "the same share where the grader is as good as an annotator, in fewer studies; with "
        "several graders, all as good, any. The last column says which labels agreement was "
        "computed of, as shares of the studies at the margin.",
        "",
        "| kind | design | items | false passes | power | labels that count |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_line(cell, each, most) for cell, each in found.items()),
        "",
        "All cells of a kind together:",
        "",
        "| kind | studies | false passes, together |",
        "| --- | --- | --- |",
    ]
    for family, cells in groupby(found, key=lambda cell: cell.family):
        tallies = [found[cell] for cell in cells]
        number, wrong = (sum(getattr(t, name) for t in tallies) for name in ("runs", "wrong"))
        share = wrong / number
        lines.append(
            f"| {family} | {number:,} | {share:.4f} +- {standard_error(share, number):.4f} |"
        )
    return "\n".join([*lines, ""])


def _line(cell: Cell, tally: Tally, most: float) -> str:
    wrong = tally.wrong / tally.runs
    power = tally.passed / tally.good_runs if tally.good_runs else float("nan")
    ways = ", ".join(
        f"{text} {tally.how[name] / tally.runs:.2f}"
        for name, text in WAYS.items()
        if tally.how[name]
    )
    shares = (
        f"{wrong:.3f} +- {standard_error(wrong, tally.runs):.3f}{' *' if wrong > most else ''}",
        f"{power:.2f} +- {standard_error(power, tally.good_runs):.2f}",
    )
    return f"| {cell.family} | {cell.text} | {cell.items} | {' | '.join(shares)} | {ways} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=80, resamples=10, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
