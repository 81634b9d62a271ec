"""How often verdicts are wrong on ordered labels and numbers: `python -m benchmarks.scales`.

Every run draws three annotators' labels and graders that lie below them by the margin, so that any
pass is a false one: one that sees better than annotators but makes gross errors at the low end of
the scale, one that sees as they do and makes fewer of them, one whose gross errors lie anywhere,
and one that is only noisier. One is perfect and one as good as an annotator, so that passes are
power. For drift, the later version of a grader has kept its labels but for gross
errors that cost it the margin, so that "unchanged" is wrong, or has kept all. Verdicts are those of
`evenhand.analysis.analyse` (`benchmarks.simulated`) and of `evenhand.analysis.verdicts.versions`.

The populations (synthetic): an item has a value, which raters see with errors that are Student's t
with 6 degrees of freedom. `WORLDS` says what values are like. The true difference is that in the
deciding kappa, with linear weights, or with quadratic ones where these are declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq

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
from evenhand.analysis.bootstrap.bounds import ALPHA
from evenhand.analysis.verdicts.versions import Versions, drift_of
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings, OrderedWeights

OUT = RESULTS / "scales.md"
SEED = 20261127
ITEMS = (60, 100, 200, 400)
ANNOTATORS = 3
BETTER = 0.5
"""The errors of a grader with gross ones, in those of an annotator."""
_LARGE = 100_000
VERSIONS = Versions("before", "after")

Fault = Literal["low", "rare", "anywhere", "noise", "perfect", "good"]
FAULTS: Mapping[Fault, str] = {
    "low": "gross, low end",
    "rare": "gross, low end, fewer",
    "anywhere": "gross, anywhere",
    "noise": "noise",
    "perfect": "perfect",
    "good": "as an annotator",
}
WRONG: tuple[Fault, ...] = ("low", "rare", "anywhere", "noise")
GOOD_EVERY = 4
"""The power is taken from every so many of the runs."""


class Raters(NamedTuple):
    """Annotators' codes (items, annotators), and codes of a grader (items,)."""

    annotators: np.ndarray
    grader: np.ndarray


@dataclass(frozen=True)
class World:
    """A scale from `low` to `high` with what items' `values` are like, drawn from a number of items
    and a generator; annotators err by `error` and are `strict` in unlike ways. `occurring` where
    only the numbers that occur make up the scale, as in a table without a declared one.
    """

    text: str
    low: int
    high: int
    values: Callable[[int, np.random.Generator], Values]
    error: float
    strict: tuple[float, float, float] = (0.0, 0.0, 0.0)
    occurring: bool = False

    @property
    def is_number(self) -> bool:
        """True where labels are numbers on an interval scale, rather than few ordered options."""
        return self.high > 10

    def cut(self, seen: Values) -> np.ndarray:
        """Codes of labels: the nearest option within the scale."""
        return np.clip(np.round(seen), self.low, self.high).astype(int) - self.low

    def study(self, drawn: Raters, ordered: OrderedWeights) -> tuple[Study, Scale]:
        """Return the labels of a study, and their scale with its weights."""
        codes = np.column_stack([drawn.annotators, drawn.grader])
        labels = np.arange(self.low, self.high + 1)
        if self.occurring:
            used, codes = np.unique(codes, return_inverse=True)
            labels, codes = labels[used], codes.reshape(-1, ANNOTATORS + 1)
        level: Literal["interval", "ordinal"] = "interval" if self.is_number else "ordinal"
        names = tuple(str(each) for each in labels)
        scale = Scale("r", names, level, number=self.is_number, ordered=ordered)
        return Study(codes[:, :ANNOTATORS], codes[:, ANNOTATORS:]), scale


WORLDS: Mapping[str, World] = {
    each.text: each
    for each in (
        World("1-5, spread", 1, 5, lambda n, r: r.normal(3.0, 1.2, n), 0.65),
        World("1-5, mostly 4 and 5", 1, 5, lambda n, r: 5.4 - r.gamma(1.6, 0.55, n), 0.34),
        World("0-10", 0, 10, lambda n, r: 10 * r.beta(2.0, 1.6, n), 0.9),
        World("0-100", 0, 100, lambda n, r: 100 * r.beta(5.0, 2.2, n), 5.1),
        World(
            "0-100, scale not declared",
            *(0, 100),
            lambda n, r: 100 * r.beta(5.0, 2.2, n),
            5.1,
            occurring=True,
        ),
        World("0-100, a third at 100", 0, 100, lambda n, r: r.normal(90.0, 20.0, n), 7.0),
        World("0-100, at both ends", 0, 100, lambda n, r: 100 * r.beta(0.4, 0.4, n), 12.0),
        World(
            "1-7, unlike strictness",
            1,
            7,
            lambda n, r: r.normal(4.2, 1.5, n),
            0.7,
            (-0.7, 0.0, 0.7),
        ),
    )
}


class Cell(NamedTuple):
    """A kind of study; `is_drift` where a later version is compared with an earlier one."""

    world: str
    items: int
    ordered: OrderedWeights = "linear"
    is_drift: bool = False


DRIFTING = ("1-5, mostly 4 and 5", "0-100", "0-100, a third at 100")
SQUARED = {"1-5, spread": (60, 200), "1-5, mostly 4 and 5": (100, 400), "0-100": (100, 200)}


def _items(world: World) -> tuple[int, ...]:
    """Numbers of items: 400 where a study takes little time."""
    if world.occurring:
        return ITEMS[:2]
    return ITEMS if world.high == 5 else ITEMS[:3]


CELLS = (
    *(Cell(name, n) for name, world in WORLDS.items() for n in _items(world)),
    *(Cell(name, n, "quadratic") for name, items in SQUARED.items() for n in items),
    *(Cell(name, n, "linear", True) for name in DRIFTING for n in (60, 200)),
)
"""New ones at the end: a cell's place is part of its seed."""


@dataclass
class Tally:
    """Runs of a cell, and of these with good graders; passes, or "unchanged", by the fault."""

    runs: int = 0
    good_runs: int = 0
    low: int = 0
    rare: int = 0
    anywhere: int = 0
    noise: int = 0
    perfect: int = 0
    good: int = 0

    def add(self, other: Tally) -> None:
        """Add another part of the runs."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def kappa(first: np.ndarray, second: np.ndarray, q: int, ordered: OrderedWeights) -> float:
    """Weighted kappa of two raters' codes (Cohen 1968)."""
    x, y = (np.bincount(each, minlength=q) / len(each) for each in (first, second))
    values, power = np.arange(q), 1 if ordered == "linear" else 2
    chance = x @ np.abs(values[:, None] - values) ** power @ y
    return float(1.0 - (np.abs(first - second) ** power).mean() / chance)


def raters(
    world: World, n: int, noise: float, low: float, anywhere: float, rng: np.random.Generator
) -> Raters:
    """Draw labels; `noise` is a grader's error in those of an annotator, and it gives the lowest
    label, or any, on a share of items.
    """
    values = world.values(n, rng)
    off = world.error * rng.standard_t(6, (n, ANNOTATORS))
    annotators = world.cut(values[:, None] + off + np.array(world.strict))
    grader = world.cut(values + noise * world.error * rng.standard_t(6, n))
    at_random = rng.integers(0, world.high - world.low + 1, n)
    grader = np.where(rng.random(n) < low, 0, grader)
    return Raters(annotators, np.where(rng.random(n) < anywhere, at_random, grader))


def difference(
    name: str, ordered: OrderedWeights, noise: float, low: float, anywhere: float
) -> float:
    """Kappa of a grader (`raters`) with annotators minus theirs with one another, in many items."""
    world = WORLDS[name]
    said, grader = raters(world, _LARGE, noise, low, anywhere, np.random.default_rng(7))
    q, columns = world.high - world.low + 1, list(said.T)
    with_grader = [kappa(each, grader, q, ordered) for each in columns]
    among = [kappa(columns[i], columns[i - 1], q, ordered) for i in range(ANNOTATORS)]
    return float(np.mean(with_grader) - np.mean(among))


@cache
def faults(name: str, ordered: OrderedWeights) -> dict[Fault, tuple[float, float, float]]:
    """Noise and shares of gross errors of each grader."""

    def at_margin(of: Callable[[float], tuple[float, float, float]], most: float) -> float:
        start = 1.0 if most > 1 else 0.0
        return float(
            brentq(lambda x: difference(name, ordered, *of(x)) + MARGIN, start, most, xtol=1e-4)
        )

    def low(share: float) -> tuple[float, float, float]:
        return BETTER, share, 0.0

    def rare(share: float) -> tuple[float, float, float]:
        return 1.0, share, 0.0

    def anywhere(share: float) -> tuple[float, float, float]:
        return BETTER, 0.0, share

    def noise(errors: float) -> tuple[float, float, float]:
        return errors, 0.0, 0.0

    return {
        "low": low(at_margin(low, 0.8)),
        "rare": rare(at_margin(rare, 0.8)),
        "anywhere": anywhere(at_margin(anywhere, 0.9)),
        "noise": noise(at_margin(noise, 10.0)),
        "perfect": noise(0.0),
        "good": noise(1.0),
    }


@cache
def lost(name: str) -> float:
    """Share of labels at the low end that costs a later version of a grader as good as an annotator
    the margin.
    """
    before = difference(name, "linear", 1.0, 0.0, 0.0)

    def change(share: float) -> float:
        return difference(name, "linear", 1.0, share, 0.0) - before

    return float(brentq(lambda share: change(share) + MARGIN, 0.0, 0.8, xtol=1e-4))


def passes(cell: Cell, fault: Fault, rng: np.random.Generator) -> bool:
    """Whether a grader with this fault passes in one study."""
    world = WORLDS[cell.world]
    drawn = raters(world, cell.items, *faults(cell.world, cell.ordered)[fault], rng)
    found, _ = verdicts(*world.study(drawn, cell.ordered))
    return any_passes(found)


def is_unchanged(cell: Cell, share: float, rng: np.random.Generator) -> bool:
    """Whether a version that gives the lowest label on a share of items is called unchanged."""
    world = WORLDS[cell.world]
    drawn = raters(world, cell.items, 1.0, 0.0, 0.0, rng)
    whole, scale = world.study(drawn, "linear")
    before = whole.graders[:, 0]
    after = np.where(rng.random(cell.items) < share, 0, before)
    labels = replace(whole, graders=np.stack([after, before], axis=1)).matrix(scale)
    names = (*labels.raters[:ANNOTATORS], VERSIONS.after, VERSIONS.before)
    settings = AnalysisSettings(margin=MARGIN, resamples=10)
    found = drift_of(replace(labels, raters=names), VERSIONS, settings, DecisionSettings())
    return found.verdict == "unchanged"


def run_cell(cell: Cell, runs: range, resamples: int, seed: int) -> dict[Cell, Tally]:
    """Some runs of one cell."""
    tally = Tally()
    for run in runs:
        tally.runs += 1
        is_good_too = run % GOOD_EVERY == 0
        tally.good_runs += is_good_too
        for at, fault in enumerate(FAULTS if is_good_too else WRONG):
            rng = np.random.default_rng([seed, CELLS.index(cell), run, at])
            if not cell.is_drift:
                found = passes(cell, fault, rng)
            elif fault in ("low", "good"):
                found = is_unchanged(cell, lost(cell.world) if fault == "low" else 0.0, rng)
            else:
                continue
            setattr(tally, fault, getattr(tally, fault) + found)
    return {cell: tally}


def document(found: Mapping[Cell, Tally], runs: int, resamples: int, seed: int) -> str:
    """The page about all this."""
    most, most_drift = most_allowed(runs), most_allowed(runs, ALPHA)
    wrong = [
        getattr(each, fault) / runs
        for cell, each in found.items()
        if not cell.is_drift
        for fault in WRONG
    ]
    over = sum(share > most for share in wrong)
    drifted = [each.low / runs for cell, each in found.items() if cell.is_drift]
    over_drift = sum(share > most_drift for share in drifted)
    together = sum(wrong) / max(len(wrong), 1)
    error = standard_error(together, runs * max(len(wrong), 1))
    return "\n".join(
        [
            "# Verdicts on ordered labels and numbers",
            "",
            f"Written by `python -m benchmarks.scales --runs {runs}`, "
            f"{datetime.now(UTC).date().isoformat()}, seed {seed}, {library_versions()}.",
            "",
            f"Shares of {runs:,} simulated studies a cell (synthetic) of {ANNOTATORS} annotators "
            "and one grader in which the grader can replace an annotator. The first four are false "
            f"passes: the grader lies {MARGIN:g} below annotators in the deciding kappa. The level "
            f"of a first analysis is {NOMINAL:.4f}; a share passes up to {most:.3f}, two Monte "
            f"Carlo standard errors above. {len(wrong) - over} of {len(wrong)} shares pass; the "
            f"worst is {max(wrong, default=0.0):.3f}, all together {together:.4f} +- {error:.4f}. "
            "The last two are power, from a quarter of the studies. *Gross errors*: labels at the "
            "lowest end of the scale, by a grader that sees better than annotators (half their "
            "error) or, *fewer*, as they do; or labels anywhere. Their share at the margin stands "
            "in the last column.",
            "",
            f"| scale | weights | items | {' | '.join(FAULTS.values())} | gross errors |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_line(cell, each, most) for cell, each in found.items() if not cell.is_drift),
            "",
            "## Drift",
            "",
            "A later version of a grader as good as an annotator has kept its labels, but for "
            "labels at the low end on a share of items that costs it the margin: to call it "
            f"unchanged is wrong, and a share passes up to {most_drift:.3f}, two Monte Carlo "
            f"standard errors above {ALPHA:.1%}. {len(drifted) - over_drift} of {len(drifted)} "
            f"shares pass; the worst is {max(drifted, default=0.0):.3f}. Power: it has kept all.",
            "",
            "| scale | items | gross errors | false unchanged | power |",
            "| --- | --- | --- | --- | --- |",
            *(_drift_line(cell, each, most_drift) for cell, each in found.items() if cell.is_drift),
            "",
        ]
    )


def _line(cell: Cell, tally: Tally, most: float) -> str:
    shares = []
    for fault in FAULTS:
        if fault in WRONG:
            share = getattr(tally, fault) / tally.runs
            shares.append(f"{share:.3f}{' *' if share > most else ''}")
        else:
            shares.append(f"{getattr(tally, fault) / max(tally.good_runs, 1):.2f}")
    of = faults(cell.world, cell.ordered)
    gross = f"{of['low'][1]:.3f}, {of['rare'][1]:.3f}, {of['anywhere'][2]:.3f}"
    return f"| {cell.world} | {cell.ordered} | {cell.items} | {' | '.join(shares)} | {gross} |"


def _drift_line(cell: Cell, tally: Tally, most: float) -> str:
    wrong, power = tally.low / tally.runs, tally.good / max(tally.good_runs, 1)
    mark = " *" if wrong > most else ""
    head = f"| {cell.world} | {cell.items} | {lost(cell.world):.3f} |"
    return f"{head} {wrong:.3f}{mark} | {power:.2f} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments, __doc__, CELLS, run_cell, document, runs=80, resamples=10, seed=SEED, out=OUT
    )


if __name__ == "__main__":
    main()
