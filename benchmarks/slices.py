"""How often equal slices and groups are called different: `python -m benchmarks.slices`.

Every run draws a new study (synthetic) whose units lie in slices, and asks of the rows of the
analysis whether some slice has an adjusted p of .05 or less: `slice_difference` in mean agreement,
and `group_difference`, which takes the slices for groups. Where a slice is worse, it asks whether
that one is found. Then it asks how often sides of annotators are named, and graders said to follow
one, where there are none and where there are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.documents import RESULTS, library_versions, simulate_and_write
from evenhand.analysis.bias.audit import AuditRows, add_rater_group_rows
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, UnitColumn
from evenhand.analysis.people.slices import (
    add_group_performance_rows,
    add_slice_difference_rows,
    explaining_columns,
    members_of,
)
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import View

OUT = RESULTS / "slices.md"
SEED = 20231206
LEVEL = 0.05
HUMANS = ("ann", "ben", "cem")
RIGHT, YES = 0.97, 0.35
"""How often an annotator gives the true label, and how often that is yes."""
UNEQUAL = (15, 25, 40, 60, 120, 140)
WHAT = ("slice_difference", "group_difference")


@dataclass(frozen=True)
class Cell:
    """Slices of so many units; a grader agrees with an annotator in a share `rate` of them, of one
    slice in that of `worse`.

    `clusters` are the sizes of clusters, over and over, each with a rate of its own. Slices hold
    whole clusters, but for a share `cut` of units, whose slice is drawn. `weights` are the
    clusters', `yes` each slice's share of yes, `rates` the grader's where the truth is yes, and
    no; `spread` is the slice whose distances vary more. There are `times` as many studies.
    """

    title: str
    sizes: tuple[int, ...]
    rate: float = 0.92
    worse: tuple[int, float] | None = None
    clusters: tuple[int, ...] = ()
    cut: float = 0.0
    weights: tuple[float, ...] = ()
    graders: int = 1
    columns: int = 1
    yes: tuple[float, ...] = ()
    rates: tuple[float, float] | None = None
    spread: int | None = None
    times: int = 1


LUMPY = (1, 2, 4, 8, 15)
CELLS = (
    Cell("6 of 30", (30,) * 6),
    Cell("10 of 40", (40,) * 10),
    Cell("20 of 30", (30,) * 20),
    Cell("6 of 15 to 140, agreement .95", UNEQUAL, 0.95),
    Cell(
        "8 of 10 clusters of 1 to 15, 7 times as many studies", (60,) * 8, clusters=LUMPY, times=7
    ),
    Cell("6 across 60 clusters of 5", (50,) * 6, clusters=(5,), cut=1.0),
    Cell("6 that cut clusters of 1 to 15 in a fifth of units", (60,) * 6, clusters=LUMPY, cut=0.2),
    Cell("6 of 40, weights of 1 to 8", (40,) * 6, weights=(1.0, 2.0, 4.0, 8.0)),
    Cell("two columns of 6, three graders", (40,) * 6, graders=3, columns=2),
    Cell(
        "6 of 60, yes in .1 to .6, right in .75 of yes and .97 of no",
        (60,) * 6,
        yes=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6),
        rates=(0.75, 0.97),
    ),
    Cell("6 of 40, numbers, one slice thrice as spread", (40,) * 6, spread=1),
    Cell("6 of 15 to 140, numbers, that of 25 thrice as spread", UNEQUAL, spread=1),
    Cell("6 of 60, one at .75 among .92", (60,) * 6, worse=(2, 0.75)),
    Cell("6 of 15 to 140, that of 40 at .75 among .95", UNEQUAL, 0.95, worse=(2, 0.75)),
    Cell("8 of 10 clusters, one at .6 among .92", (60,) * 8, worse=(2, 0.6), clusters=LUMPY),
)


@dataclass(frozen=True)
class Sides:
    """180 items of 60 prompts, labelled by annotators of two sides, of whom so many label each, 0
    for all. The sides' views of an item are `apart` standard deviations of what they share; a label
    has an error of `noise` by side. A grader sees what both share, or what its side does. There are
    `columns` of annotators more, of 2 to 9 values, that say nothing. With `selective` labels each
    side labels mostly some models, and items are labelled more the harder they are.
    """

    title: str
    people: tuple[int, int] = (60, 60)
    each: int = 12
    apart: float = 0.0
    noise: tuple[float, float] = (1.0, 1.0)
    follows: bool = False
    columns: int = 8
    selective: bool = False


SIDES = (
    Sides("one view, 60 + 60 annotators"),
    Sides("one view, 100 + 20, the 20 twice as noisy", (100, 20), noise=(1.0, 2.0)),
    Sides("one view, 20 + 100, the 100 twice as noisy", (20, 100), noise=(1.0, 2.0)),
    Sides("one view, selective labels", selective=True),
    Sides("one view, 4 + 4, all label all", (4, 4), 0),
    Sides("two views, 60 + 60, grader between", apart=1.2),
    Sides("two views, 100 + 20, grader between", (100, 20), apart=1.2),
    Sides("two views, 60 + 60, one twice as noisy, grader between", apart=1.2, noise=(1.0, 2.0)),
    Sides("two views, 100 + 20, the 20 twice as noisy", (100, 20), apart=1.2, noise=(1.0, 2.0)),
    Sides("two views, selective labels, grader between", apart=1.2, selective=True),
    Sides("two views, 60 + 60, grader of one side", apart=1.2, follows=True),
    Sides("views half as far apart, 60 + 60, grader of one side", apart=0.6, follows=True),
    Sides("two views, 100 + 20, grader of one side", (100, 20), apart=1.2, follows=True),
    Sides(
        "two views, selective labels, grader of one side", apart=1.2, follows=True, selective=True
    ),
    Sides("two views, 4 + 4, all label all, grader of one side", (4, 4), 0, 1.2, follows=True),
)


def sided(cell: Sides, rng: np.random.Generator) -> tuple[Coded, pd.DataFrame]:
    """Draw the labels of annotators of two sides and a grader, and the table of annotators."""
    side, n = np.repeat([0, 1], cell.people), 180
    shared, own = rng.normal(size=n), rng.normal(size=n) * cell.apart
    view = np.column_stack([shared + own, shared - own])
    strict = 0.4 * rng.normal(size=len(side))
    noise = rng.normal(size=(n, len(side))) * np.array(cell.noise)[side]
    codes = (view[:, side] + strict + noise > 0).astype(np.int8)
    if cell.each:
        picked = rng.random((n, len(side)))
        each = np.full(n, cell.each)
        if cell.selective:
            picked += 0.05 * ((np.arange(n)[:, None] % 3 > 0) == side)
            each = np.where(np.abs(shared) < 0.5, cell.each + 4, cell.each - 4)
        codes[picked.argsort(axis=1).argsort(axis=1) >= each[:, None]] = -1
    grades = view[:, 0] if cell.follows else shared
    codes = np.column_stack([codes, (grades + 0.7 * rng.normal(size=n) > 0).astype(np.int8)])
    raters = (*(f"p{at:03d}" for at in range(len(side))), "grader")
    kinds = ("human",) * len(side) + ("model",)
    clusters = np.arange(n) // 3
    coded = Coded(raters, kinds, codes, clusters, ("no", "yes"), (0.0, 1.0), "nominal", "all")
    others = {
        f"c{at}": rng.integers(0, 2 + at, len(side)).astype(str) for at in range(cell.columns)
    }
    sides = np.array(["left", "right"])[side]
    return coded, pd.DataFrame({"rater_id": raters[:-1], "leaning": sides, **others})


def as_file(coded: Coded, raters: pd.DataFrame) -> pd.DataFrame:
    """The labels as the rows of a file, with the annotators' columns, the prompts and three models;
    of the last third of items the grader's alone.
    """
    labels = pd.DataFrame(coded.codes, columns=coded.raters).melt(ignore_index=False)
    rows = labels.set_axis(["rater_id", "label"], axis=1).reset_index(names="unit_id")
    unit, by_grader = rows["unit_id"], rows["rater_id"] == "grader"
    rows = rows.assign(cluster_id=unit // 3, subject=unit % 3)
    rows["rater_kind"] = np.where(by_grader, "model", "human")
    rows = rows[(rows["label"] >= 0) & (by_grader | (unit < 120))]
    rows["label"] = np.where(rows["label"] == 1, "yes", "no")
    return rows.merge(raters, on="rater_id", how="left").fillna("")


def found_on(cell: Sides, run: int, seed: int) -> tuple[bool, bool, bool]:
    """Return whether sides were named by the leaning, and by another column, and whether the grader
    was said to follow a side of those that were named.
    """
    coded, raters = sided(cell, np.random.default_rng([seed, run]))
    named = explaining_columns(coded, raters, LEVEL, run)
    drawn = np.random.default_rng(run)
    out = View.of(ResultRows(""), coded, Resamples(np.ones(60, dtype=np.int64), 400, drawn))
    audit = AuditRows(out)
    add_rater_group_rows(audit, coded, members_of(raters, list(named)))
    audit.add_tests()
    rows = out.rows.rows.values()
    p = {row["subset"]: row["estimate"] for row in rows if row["statistic"].endswith("_p")}
    follows = any(
        row["statistic"] == "bias_rater_group" and p.get(row["subset"], 1.0) <= LEVEL
        and not row["low"] <= 0 <= row["high"]
        for row in rows
    )  # fmt: skip
    return "leaning" in named, bool(set(named) - {"leaning"}), follows


@dataclass
class Found:
    """In how many studies sides were named, another column was, and a grader of following one."""

    asked: int = 0
    named: int = 0
    other: int = 0
    follows: int = 0

    def add(self, more: Found) -> None:
        """Add another part of the runs."""
        self.asked, self.named = self.asked + more.asked, self.named + more.named
        self.other, self.follows = self.other + more.other, self.follows + more.follows


def sides_of_annotators(found: Mapping[Sides, Found]) -> list[str]:
    """The section on sides of annotators."""
    none = [each for cell, each in found.items() if not cell.apart]
    wrong = sum(each.named + each.other for each in none)
    accused = sum(each.follows for cell, each in found.items() if not cell.follows)
    innocent = sum(each.asked for cell, each in found.items() if not cell.follows)
    return [
        "## Sides of annotators, and graders said to follow one",
        "",
        "180 items of 60 prompts; 12 labels an item unless all label all; the leaning and 8 "
        "further columns of annotators, of 2 to 9 values, that say nothing. The share of studies "
        "(synthetic) in which sides are named by leaning, by another column, and in which the "
        f"grader is said to follow a side. Where there is one view some column is named in {wrong} "
        f"of {sum(each.asked for each in none)} studies; of graders that follow nobody {accused} "
        f"of {innocent} are accused. Drawn {datetime.now(UTC).date().isoformat()}.",
        "",
        "| study | studies | leaning | another column | follows a side |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {cell.title} | {each.asked} | {each.named / each.asked:.3f} | "
            f"{each.other / each.asked:.3f} | {each.follows / each.asked:.3f} |"
            for cell, each in found.items()
        ),
        "",
    ]


class Key(NamedTuple):
    """What a count belongs to."""

    cell: Cell
    statistic: str


@dataclass
class Count:
    """In how many studies a slice was called different."""

    asked: int = 0
    called: int = 0

    def add(self, other: Count) -> None:
        """Add another part of the runs."""
        self.asked, self.called = self.asked + other.asked, self.called + other.called


@dataclass(frozen=True)
class Study:
    """Labels, the columns of slices, and the clusters' weights."""

    coded: Coded
    columns: tuple[UnitColumn, ...]
    weight: np.ndarray | None = None


def draw(cell: Cell, rng: np.random.Generator) -> Study:
    """Draw a study of a cell."""
    n = sum(cell.sizes)
    parts = len(cell.sizes)
    if cell.clusters:
        sizes = np.resize(cell.clusters, n)
        sizes = sizes[: int(np.searchsorted(sizes.cumsum(), n)) + 1]
        clusters = np.repeat(np.arange(len(sizes)), sizes)
        part = (np.arange(len(sizes)) * (parts - 1) % parts)[clusters]
        part = np.where(rng.random(len(part)) < cell.cut, rng.integers(0, parts, len(part)), part)
    else:
        clusters, part = np.arange(n), np.repeat(np.arange(parts), cell.sizes)
    columns = [part, *(rng.permutation(part) for _ in range(1, cell.columns))]
    named = tuple(
        UnitColumn.of(f"c{at}", [f"{each:02d}" for each in codes])
        for at, codes in enumerate(columns)
    )
    raters = (*HUMANS, *(f"g{at}" for at in range(cell.graders)))
    kinds = ("human",) * len(HUMANS) + ("model",) * cell.graders
    if cell.spread is not None:
        codes = _numbers(part == cell.spread, cell.graders, rng)
        names = tuple(str(each) for each in range(101))
        values = tuple(float(each) for each in range(101))
        coded = Coded(raters, kinds, codes, clusters, names, values, "interval", "all", (), True)
        return Study(coded, named)
    rate = np.full(len(part), cell.rate)
    if cell.worse:
        rate[part == cell.worse[0]] = cell.worse[1]
    if cell.clusters:
        rate = rng.beta(10 * rate, 10 * (1 - rate))
        rate = rate[np.unique(clusters, return_index=True)[1]][clusters]
    rate = (rate - (1 - RIGHT)) / (2 * RIGHT - 1)  # of true labels
    truth = rng.random(len(part)) < (np.array(cell.yes)[part] if cell.yes else YES)
    if cell.rates:
        rate = np.where(truth, *cell.rates)
    right = [rng.random(len(part)) < RIGHT for _ in HUMANS]
    right += [rng.random(len(part)) < rate for _ in range(cell.graders)]
    codes = np.column_stack([np.where(each, truth, ~truth) for each in right]).astype(np.int8)
    coded = Coded(raters, kinds, codes, clusters, ("no", "yes"), (0.0, 1.0), "nominal", "all")
    weight = np.resize(cell.weights, len(part)) if cell.weights else None
    return Study(coded, named, weight)


def _numbers(spread: np.ndarray, graders: int, rng: np.random.Generator) -> np.ndarray:
    """Draw numbers of 0 to 100 by annotators who agree, and by graders about 20 above or below."""
    truth = rng.integers(40, 61, len(spread))
    apart = 20.0 + rng.normal(size=(len(spread), graders)) * np.where(spread, 6.0, 2.0)[:, None]
    side = rng.choice([-1, 1], (len(spread), graders))
    people = np.repeat(truth[:, None], len(HUMANS), axis=1)
    grades = truth[:, None] + side * np.rint(np.clip(apart, 0, 40))
    return np.hstack([people, grades]).astype(np.int8)


def adjusted_p(study: Study, statistic: str, rng: np.random.Generator) -> dict[str, float]:
    """Return the adjusted p of every slice in the rows of the analysis, the least of all graders,
    by subset.
    """
    coded, rows = study.coded, ResultRows("")
    resamples = Resamples(np.ones(int(coded.clusters.max()) + 1), 2, rng, weight=study.weight)
    if statistic == "slice_difference":
        add_slice_difference_rows(View.of(rows, coded, resamples), study.columns)
    else:
        add_group_performance_rows(View.of(rows, coded, resamples), study.columns)
    found: dict[str, float] = {}
    for row in rows.rows.values():
        told = re.search(r"max-T p ([\d.e-]+)", row["note"])
        if row["statistic"] == statistic and told:
            found[row["subset"]] = min(float(told[1]), found.get(row["subset"], 1.0))
    return found


def run_cell(cell: Cell | Sides, runs: range, _: int, seed: int) -> dict[Any, Any]:
    """Some runs of one cell, through the analysis; of sides a tenth."""
    if isinstance(cell, Sides):
        found = Found()
        for run in range(-(-runs.start // 10), -(-runs.stop // 10)):
            found.add(Found(1, *map(int, found_on(cell, run, seed))))
        return {cell: found}
    equal = not cell.yes, cell.spread is None
    counts = {Key(cell, name): Count() for name, asked in zip(WHAT, equal, strict=True) if asked}
    for run in range(cell.times * runs.start, cell.times * runs.stop):
        study = draw(cell, np.random.default_rng([seed, run]))
        for key, count in counts.items():
            p = adjusted_p(study, key.statistic, np.random.default_rng(run))
            if cell.worse:
                p = {f"c0={cell.worse[0]:02d}": p[f"c0={cell.worse[0]:02d}"]}
            count.add(Count(1, int(min(p.values()) <= LEVEL)))
    return counts


def document(tallies: Mapping[Any, Any], runs: int, _: int, seed: int) -> str:
    """The page about all this."""
    sides = {key: each for key, each in tallies.items() if isinstance(key, Sides)}
    found = {key: each for key, each in tallies.items() if isinstance(key, Key)}
    today = datetime.now(UTC).date().isoformat()
    shares = [
        (count.called / count.asked, 2.0 * math.sqrt(LEVEL * (1 - LEVEL) / count.asked))
        for key, count in found.items()
        if not key.cell.worse
    ]
    kept = sum(share <= LEVEL + error for share, error in shares)

    def row(cell: Cell) -> str:
        counts = [found.get(Key(cell, name)) for name in WHAT]
        told = (f"{each.called / each.asked:.3f}" if each else "" for each in counts)
        return f"| {cell.title} | {' | '.join(told)} |"

    head = ["| study | slices | groups |", "| --- | --- | --- |"]
    return "\n".join(
        [
            "# Slices and groups called different",
            "",
            f"Written by `python -m benchmarks.slices`, {today}, seed {seed}, "
            f"{library_versions()}.",
            "",
            f"Share of {runs:,} simulated studies (synthetic) in which some slice has an adjusted "
            f"p of {LEVEL} or less: in mean agreement with annotators, and, the slices taken for "
            "groups, in repeating annotators' majority given what it is. Three annotators give the "
            f"true label in {RIGHT:.0%} of units; the grader agrees with one of them in 92%, "
            "unless another rate is named. Clusters have rates of their own (beta distribution, as "
            "of 10 units).",
            "",
            f"## Equal slices: nominal {LEVEL}",
            "",
            f"{kept} of {len(shares)} shares are at most the level and two Monte Carlo standard "
            f"errors; the largest is {max(shares)[0]:.3f}. One line has 7 times as many studies: "
            "with 200 of this seed it had 0.090 and 0.080, and was drawn further to learn whether "
            "that was chance.",
            "",
            *head,
            *(row(cell) for cell in CELLS if not cell.worse),
            "",
            "## One slice is worse: share in which it is found",
            "",
            *head,
            *(row(cell) for cell in CELLS if cell.worse),
            "",
            *sides_of_annotators(sides),
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate, print the page and write it."""
    simulate_and_write(
        arguments,
        __doc__,
        (*CELLS, *SIDES),
        run_cell,
        document,
        runs=200,
        resamples=2,
        seed=SEED,
        out=OUT,
    )


if __name__ == "__main__":
    main()
