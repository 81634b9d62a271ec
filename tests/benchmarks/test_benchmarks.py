"""Each benchmark, started on sizes that show nothing but that it runs, writes its page."""

import os
import re
import shlex
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
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
    drift,
    few_units,
    formats,
    improving,
    injection,
    instant,
    parts,
    preference,
    rates,
    report,
    rewording,
    routing,
    scale,
    scales,
    slices,
    small_samples,
    uncertainty,
)
from benchmarks.first_minute import MEGABYTES
from benchmarks.limits import MOST_MEGABYTES, MOST_SECONDS, large_images, own_keys, taken, wide
from tests.commands import python
from tests.conftest import ROOT

HELPERS = {"commands", "cost", "documents", "simulated"}
STARTS = {
    "annotation": "--sessions 2 --seconds 1 --pause 0.2 --units 2 --pairs 6 --lines 20",
    "annotators": "--annotators 2 --pauses 0.2 --processes 2 --seconds 1 --pairs 2 --raters 3"
    " --stores SQLite",
    "first_minute": "--rounds 1 --tools bare evenhand",
    "formats": "",
    "handling": "--answers 2",
    "instant": "--rounds 1 --scale 0.001",
}
"""Those whose pages are looked at one by one."""


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[str], str]:
    """page_of("drift"): the page that the benchmark writes when it is started so."""

    def page_of(name: str) -> str:
        out = tmp_path / f"{name}.md"
        start = PAGES[name].start if name in PAGES else STARTS[name]
        import_module(f"benchmarks.{name}").main([*shlex.split(start), "--out", str(out)])
        page = out.read_text("utf-8")
        assert str(tmp_path) not in page
        return page

    return page_of


@pytest.mark.slow
def test_every_benchmark_starts_as_a_module_and_needs_nothing_of_the_tests() -> None:
    names = {file.stem for file in (ROOT / "benchmarks").glob("*.py")} - HELPERS
    assert names == STARTS.keys() | PAGES.keys() | {"limits", "scale"}  # these two are never small
    starts = (
        "import runpy, sys; sys.path.insert(0, '.')\n"
        "sys.modules['tests'] = None\n"  # who imports it fails
        "for name in sys.argv[1:]:\n"
        "    sys.argv = [name, '--help']\n"
        "    try: runpy.run_module('benchmarks.' + name, run_name='__main__')\n"
        "    except SystemExit as end: assert end.code == 0\n"
    )
    done = python("-c", starts, *sorted(names), cwd=ROOT, timeout=None)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(names)


@dataclass(frozen=True)
class Page:
    """How a benchmark is started, texts that its page has, lines with how often their beginnings
    (as regular expressions) come, and what of the benchmark is cut down for that.
    """

    start: str
    has: tuple[str, ...]
    lines: dict[str, int] = field(default_factory=dict)
    cut: dict[str, object] = field(default_factory=dict)


# A cell of every kind that a benchmark tells apart.
DECISIONS = {(cell.kind, cell.graders > 1, cell.looks > 1): cell for cell in decisions.CELLS}
DESIGNS = {(each.family, each.design): each for each in designs.CELLS if each.annotators < 100}
BOUNDS = {(c.world, c.sizes, c.fails_clusters, c.people): c for c in deciding_bound.CELLS}
DRIFTS = {(each.kind, each.sign): each for each in drift.CELLS if each.pairs == 50}
JUDGED = len(corrected_rates.LABELLED) * len(corrected_rates.JUDGED)
PAGES = {
    "agreement": Page("--resamples 20 --scale 0.0005 --repeats 1",
        ("| Cohen kappa of two raters | 1,000,000 labels | scikit-learn |",
        "| `evenhand --help` |")),
    "bias": Page("--runs 3 --resamples 40 --processes 1", ("3 simulated studies a line",
        *(f"| {cell.title} | " for cell in bias.CELLS))),
    "calibration": Page("--runs 1 --resamples 20 --processes 1", ("1 simulated studies a line",),
        {r".*no information \|": 5, r"\| ": len(calibration.POPULATIONS) + 4}),
    "corrected_rates": Page("--runs 3 --resamples 40 --processes 1", ("in 3 simulated studies",),
        {r".*\| 0\.5 \|": JUDGED - 1 + len(corrected_rates.ESTIMATES), r".*\| 0\.02 \|": JUDGED}),
    "coverage": Page("--runs 2 --resamples 40 --processes 1", ("in 2 simulated studies",),
        {r".*\| 0\.9 \|": 10}),
    "deciding_bound": Page("--runs 1 --processes 1", ("(synthetic)",),
        {r"\| (latent|cl|beta)": len(BOUNDS)}, {"CELLS": tuple(BOUNDS.values())}),
    "decisions": Page("--runs 1 --resamples 20 --processes 1",
        ("1 simulated studies a cell (synthetic)",), {r"\| 0\.": 8},
        {"CELLS": (*DECISIONS.values(),)}),
    "designs": Page("--runs 1 --processes 1", ("1 simulated studies a cell (synthetic)",
        *(f"\n| {family} |" for family, _ in DESIGNS)), cut={"CELLS": tuple(DESIGNS.values())}),
    "differences": Page("--runs 2 --resamples 40 --processes 1", ("in 2 simulated studies",),
        dict.fromkeys((rf".*\| {each} \|" for each in differences.POPULATIONS),
            len([*product(differences.SUBJECTS, differences.LABELLED, differences.RATES)]))),
    "few_units": Page("--runs 1 --resamples 20 --processes 1", ("Shares of 1 simulated studies",),
        {rf".*\| {world} \|": 2 * 2 * 2 for world in few_units.WORLDS}, {"UNITS": (6, 40)}),
    "grading": Page("--grades 100", ("a synthetic study of 100 response units",
        "read\n100 times over the run")),
    "improving": Page("--runs 2 --processes 1",
        (*("2 simulated studies (synthetic)", "1 of 1 cells pass", "| GPT-4/Vanilla |"),
        *("\n| 0 | 60 |", "\n| 0.2 | 250 |")), {r"\| 0": 2},
        {"CELLS": improving.CELLS[:1] + improving.CELLS[-1:], "PARTINGS": 3}),
    "injection": Page("--runs 2 --processes 1", (), {r"\| steadf.*\| 0\.000 \[": 1,
        r".*pulled 1.*\| 1\.000 \|$": 1},
        {"CELLS": (injection.Cell("5 points", 8), injection.Cell("yes or no", 12, effect=1.0))}),
    "parts": Page("--runs 2 --resamples 40 --processes 1", ("in 2 simulated studies",),
        dict.fromkeys((rf".*\| {re.escape(each)} \|" for each in parts.QUESTIONS.values()),
            len([*product(parts.DESIGNS, parts.SUBJECTS, parts.RATES)]))),
    "peers": Page(f"--units 60 --python {shlex.quote(sys.executable)}",
        ("| 60 | krippendorff | alpha", "not installed: irrCAC, judgekeeper")),
    "preference": Page("--runs 2 --resamples 40 --processes 1", ("2 studies a line",),
        {r"\| ": len(preference.POPULATIONS) * len(preference.ESTIMATES) + 2}),
    "rates": Page("--runs 5 --processes 1", ("5 a line",), {r"\| ": len(rates.POPULATIONS) + 2}),
    "report": Page("--scale 0.04 --studies 1", ("| 10 pairs x 5 subjects x",
        "6 humans x 4 graders")),
    "rewording": Page("--runs 2 --resamples 40 --processes 1", ("2 simulated trials (synthetic)",
        "pass; the worst is"), {r"\| (latent|guessing)": 2},
        {"CELLS": rewording.CELLS[1:2] + rewording.CELLS[-1:], "MANY": 4000}),
    "routing": Page("--runs 1 --processes 1", ("1 simulated studies a line (synthetic)",),
        {r"\| [^|]+ \| 0\.95? \|": len(routing.CELLS)}),
    "drift": Page("--runs 2 --processes 1",
        ("2 simulated pairs of a baseline and a later run (synthetic)", "9 of 9 shares pass"),
        dict.fromkeys((rf"\| 0\..*\| {kind} \| {way}" for kind, way in (("asked again", "down"),
            ("asked again", "up"), ("keeps", "down"))), 1),
        {"CELLS": tuple(DRIFTS.values())}),
    "scales": Page("--runs 1 --processes 1", ("1 simulated studies a cell (synthetic)",
        *(f"\n| {name} | linear | 60 |" for name in scales.WORLDS),
        *(f"\n| {name} | 60 |" for name in scales.DRIFTING)),
        cut={"CELLS": tuple(each for each in scales.CELLS if each.items == 60)}),
    "small_samples": Page("--runs 2 --resamples 40 --processes 1",
        tuple(f"| {c.prevalence} | {c.pairs} | {c.subjects} |" for c in small_samples.CELLS),
        {r"\| 0\.": 5 * len(small_samples.CELLS)}),
    "slices": Page("--runs 1 --processes 1", ("1 simulated studies",),
        dict.fromkeys((rf".*\| {re.escape(each.title)} \|" for each in slices.CELLS), 1)),
    "uncertainty": Page("--runs 2 --processes 1", ("2 simulated studies a cell (synthetic)",),
        {r"\| probability \| 0\.": 2}, {"CELLS": (uncertainty.CELLS[0], uncertainty.CELLS[-1])}),
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


@pytest.mark.slow
def test_the_page_of_formats_is_that_of_the_files(page_of: Callable[[str], str]) -> None:
    assert page_of("formats") == formats.OUT.read_text("utf-8")


@pytest.mark.thorough
def test_the_core_is_small_and_has_a_verdict_soon(page_of: Callable[[str], str]) -> None:
    page = page_of("first_minute")
    bounds = dict(re.findall(r"^\| ([^|]+) \| ([\d.]+) \| [\d.]+ \| ", page, re.MULTILINE))
    assert 5 < float(bounds["MB of `evenhand` beyond numpy, scipy and pandas"]) <= MEGABYTES
    assert len(bounds) == 3
    rows = re.findall(r"^\| (numpy, scipy, pandas|evenhand) \|(.*)\|$", page, re.MULTILINE)
    assert [len(cells.split("|")) for _, cells in rows] == [5, 5]


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (own_keys, "keys.jsonl has more than 2,500 columns; "),
        (wide("csv"), "wide.csv has more than 2,500 columns; "),
        (large_images, "images.csv, row 5: the images up to here exceed what is read "),
    ],
)
def test_a_file_beyond_all_bounds_is_refused_soon(tmp_path, made, said):
    took = taken(made(tmp_path), tmp_path)
    assert (took.code, said in took.said, took.said.count("\n")) == (2, True, 1)
    assert took.seconds < MOST_SECONDS
    assert took.megabytes < MOST_MEGABYTES


@pytest.mark.thorough
@pytest.mark.browser
@pytest.mark.usefixtures("browser")  # or there is none, and this is skipped
def test_the_annotation_benchmark_writes_its_page(tmp_path: Path) -> None:
    """In a process of its own: it needs a browser."""
    out, few = tmp_path / "annotation.md", STARTS["annotation"].split()
    annotation = ("-m", "benchmarks.annotation", *few, "--out", out)
    done = python(*annotation, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, timeout=None)
    assert done.returncode == 0, done.stderr
    page = out.read_text("utf-8")
    assert "150 tasks and 100 raters per unit" in page
    for setting in ("as shipped", "Streamlit defaults"):
        assert f"| {setting} | 1 | 2 |" in page
        assert f"| {setting} | 2 |" in page
    assert "| as shipped, 20 ms each way | 1 | 2 |" in page
    assert page.count("| 0 | 0 |\n") == 5  # no errors, nothing lost


@pytest.mark.thorough
@pytest.mark.browser
def test_the_report_benchmark_measures_pages(tmp_path: Path, monkeypatch) -> None:
    rows = [f"{n},{who},human,{(n + len(who)) % 3}" for n in range(20) for who in ("a", "b", "ccc")]
    real, out = tmp_path / "data" / "real" / "newsroom.csv", tmp_path / "sizes.md"
    real.parent.mkdir(parents=True)
    real.write_text("\n".join(["item_id,rater_id,rater_kind,label", *rows, ""]), "utf-8")
    monkeypatch.setenv("EVENHAND_SHARED", str(tmp_path))
    with ThreadPoolExecutor(1) as pool:  # whose browser minds no other one's loop
        pool.submit(report.main, ["--pages", "--studies", "0", "--out", str(out)]).result()
    [line] = [line for line in out.read_text("utf-8").splitlines() if "Newsroom" in line]
    _, _, before, after, *_ = line.split("|")
    assert before.strip() == "5,592"
    assert 900 < int(after.replace(",", "")) < 4_000
