"""Each benchmark, started on sizes that show nothing but that it runs, writes its page."""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from benchmarks import (
    bias,
    calibration,
    corrected_rates,
    deciding_bound,
    decisions,
    designs,
    differences,
    few_units,
    formats,
    improving,
    injection,
    instant,
    parts,
    preference,
    rates,
    rewording,
    routing,
    scale,
    scales,
    slices,
    uncertainty,
)
from benchmarks.first_minute import MEGABYTES


@dataclass(frozen=True)
class Page:
    """Texts that a page has, lines with how often their beginnings (as regular expressions) come,
    and what of the benchmark is cut down for that.
    """

    has: tuple[str, ...]
    lines: dict[str, int] = field(default_factory=dict)
    cut: dict[str, object] = field(default_factory=dict)


# A cell of every kind that a benchmark tells apart.
DECISIONS = {(cell.kind, cell.graders > 1, cell.looks > 1): cell for cell in decisions.CELLS}
DESIGNS = {(each.family, each.design): each for each in designs.CELLS if each.annotators < 100}
BOUNDS = {(c.world, c.sizes, c.fails_clusters, c.people): c for c in deciding_bound.CELLS}
JUDGED = len(corrected_rates.LABELLED) * len(corrected_rates.JUDGED)
PAGES = {
    "agreement": Page(("| Cohen kappa of two raters | 1,000,000 labels | scikit-learn |",
        "| `evenhand --help` |")),
    "bias": Page(("3 simulated studies a line", *(f"| {cell.title} | " for cell in bias.CELLS))),
    "calibration": Page(("1 simulated studies a line",),
        {r".*no information \|": 5, r"\| ": len(calibration.POPULATIONS) + 4}),
    # Each cell's estimates that are judged, and at .5 all of them once more.
    "corrected_rates": Page(("in 3 simulated studies",),
        {r".*\| 0\.5 \|": JUDGED - 1 + len(corrected_rates.ESTIMATES), r".*\| 0\.02 \|": JUDGED}),
    "coverage": Page(("in 2 simulated studies",), {r".*\| 0\.9 \|": 10}),
    "deciding_bound": Page(("(synthetic)",), {r"\| (latent|cl|beta)": len(BOUNDS)},
        {"CELLS": tuple(BOUNDS.values())}),
    "decisions": Page(("1 simulated studies a cell (synthetic)",), {r"\| 0\.": 8},
        {"CELLS": (*DECISIONS.values(),)}),
    "designs": Page(("1 simulated studies a cell (synthetic)", *(f"\n| {family} |" for family,
        _ in DESIGNS)), cut={"CELLS": tuple(DESIGNS.values())}),
    "differences": Page(("in 2 simulated studies",), dict.fromkeys((rf".*\| {population} \|"
        for population in differences.POPULATIONS), len([*product(differences.SUBJECTS,
        differences.LABELLED, differences.RATES)]))),
    "few_units": Page(("Shares of 1 simulated studies",),
        {rf".*\| {world} \|": 2 * 2 * 2 for world in few_units.WORLDS}, {"UNITS": (6, 40)}),
    "grading": Page(("a synthetic study of 100 response units", "read\n100 times over the run")),
    "improving": Page((*("2 simulated studies (synthetic)", "1 of 1 cells pass",
        "| GPT-4/Vanilla |"), *("\n| 0 | 60 |", "\n| 0.2 | 250 |")), {r"\| 0": 2},
        {"CELLS": improving.CELLS[:1] + improving.CELLS[-1:], "PARTINGS": 3}),
    "injection": Page((), {r"\| steadf.*\| 0\.000 \[": 1, r".*pulled 1.*\| 1\.000 \|$": 1},
        {"CELLS": (injection.Cell("5 points", 8), injection.Cell("yes or no", 12, effect=1.0))}),
    "parts": Page(("in 2 simulated studies",), dict.fromkeys((rf".*\| {re.escape(question)} \|"
        for question in parts.QUESTIONS.values()), len([*product(parts.DESIGNS, parts.SUBJECTS,
        parts.RATES)]))),
    "peers": Page(("| 60 | krippendorff | alpha", "not installed: irrCAC, judgekeeper")),
    "preference": Page(("2 studies a line",),
        {r"\| ": len(preference.POPULATIONS) * len(preference.ESTIMATES) + 2}),
    "rates": Page(("5 a line",), {r"\| ": len(rates.POPULATIONS) + 2}),
    "report": Page(("| 10 pairs x 5 subjects x", "6 humans x 4 graders")),
    "rewording": Page(("2 simulated trials (synthetic)", "pass; the worst is"),
        {r"\| (latent|guessing)": 2},
        {"CELLS": rewording.CELLS[1:2] + rewording.CELLS[-1:], "MANY": 4000}),
    "routing": Page(("1 simulated studies a line (synthetic)",),
        {r"\| [^|]+ \| 0\.95? \|": len(routing.CELLS)}),
    "scales": Page(("1 simulated studies a cell (synthetic)", *(f"\n| {name} | linear | 60 |"
        for name in scales.WORLDS), *(f"\n| {name} | 60 |" for name in scales.DRIFTING)),
        cut={"CELLS": tuple(each for each in scales.CELLS if each.items == 60)}),
    "slices": Page(("1 simulated studies",),
        dict.fromkeys((rf".*\| {re.escape(each.title)} \|" for each in slices.CELLS), 1)),
    "uncertainty": Page(("2 simulated studies a cell (synthetic)",), {r"\| probability \| 0\.": 2},
        {"CELLS": (uncertainty.CELLS[0], uncertainty.CELLS[-1])}),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAGES)
def test_a_benchmark_writes_its_page(name: str, page_of: Callable[[str], str], monkeypatch) -> None:
    for what, value in PAGES[name].cut.items():
        monkeypatch.setattr(import_module(f"benchmarks.{name}"), what, value)
    page = page_of(name)
    assert [text for text in PAGES[name].has if text not in page] == []
    lines = {each: len(re.findall(f"^{each}", page, re.M)) for each in PAGES[name].lines}
    assert lines == PAGES[name].lines


def test_there_is_a_cell_of_every_kind() -> None:
    assert (len(DECISIONS), len(BOUNDS)) == (8, 13)


# Which files of other tools are read


@pytest.mark.slow
def test_the_page_of_formats_is_that_of_the_files(page_of: Callable[[str], str]) -> None:
    page = page_of("formats")
    assert page == formats.OUT.read_text("utf-8")


# What the first minute costs: the core stays small. What it needs comes from the package index


@pytest.mark.thorough
def test_the_core_is_small_and_has_a_verdict_soon(page_of: Callable[[str], str]) -> None:
    page = page_of("first_minute")
    bounds = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+) \| [\d.]+ \| ", page, re.MULTILINE))
    assert 5 < float(bounds["MB of `evenhand` beyond numpy, scipy and pandas"]) <= MEGABYTES
    assert len(bounds) == 3
    rows = re.findall(r"^\| (numpy, scipy, pandas|evenhand) \|(.*)\|$", page, re.MULTILINE)
    assert [len(cells.split("|")) for _, cells in rows] == [5, 5]


# Many annotators at once


@pytest.mark.thorough
def test_the_benchmark_of_many_annotators_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("annotators")
    assert "a synthetic study of 50 tasks that holds\n150 labels" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| SQLite | 2 |")]
    assert [row[2] for row in rows] == ["no", "yes"]
    assert float(re.search(r"a submit, ms of a processor \| ([\d.]+)", page)[1]) > 0
    assert "SQLite: its time for a submit and the next unit" in page
    assert all(row[-3:-1] == ["0", "0"] for row in rows)  # no errors, nothing lost
    assert [row[8] == "-" for row in rows] == [True, False]  # the lead's pages were drawn anew
    assert "| SQLite | 150 |" in page


# What a user waits for, on files that are waited for hardly at all


@pytest.mark.thorough
def test_the_page_has_a_line_for_each_bound_and_each_stage(page_of, monkeypatch):
    case = replace(instant.cases()[1], humans=2, graders=1)
    monkeypatch.setattr(instant, "cases", lambda: [case, case])
    page = page_of("instant")
    lines = (line for line in page.splitlines() if line.endswith(("yes |", "** |")))
    bounds = [line.split(" | ")[-2] for line in lines]
    assert bounds == ["0.10", "1.00", "1.80", "2.50", "1.05", "1.05", "1.05"]
    assert "| `report`, 10 pairs x 5 x 1 rubrics x 2 x 1 |" in page
    rows = page.partition("| stage |")[2].splitlines()
    stages = {row.split(" | ")[0].strip("| ") for row in rows}
    assert {"loading pandas", "all other statistics", "writing files"} <= stages


@pytest.mark.slow
def test_time_within_another_stage_is_counted_once() -> None:
    """By a verb that is over at once: no stage takes part of another's time, or less than none."""
    command = instant.Command("", sys.executable, ["-P", "-m", "evenhand", "--version"])
    spent = instant.stages(command)
    assert {"loading pandas", "loading evenhand", "everything else"} <= set(spent)
    assert min(spent.values()) >= 0.0


# Ratings beyond one table


@pytest.mark.thorough
def test_scale(tmp_path: Path, monkeypatch) -> None:
    assert scale.write_ratings(tmp_path, 1_000, file_rows=150) == 50
    run = scale.measure(tmp_path, 1_000, 50)
    assert run.seconds > 0 < run.megabytes
    monkeypatch.setattr("evenhand.analysis.bootstrap.resamples.GROUPS", 25)
    widths = scale.widths_beside(tmp_path)
    assert {"cohen_kappa", "human_ceiling_difference"} <= {each.statistic for each in widths}
    page = scale.document([run], widths)
    assert "| 1,000 | 50 |" in page
    assert "| cohen_kappa | " in page
