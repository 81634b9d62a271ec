"""The benchmarks run, on sizes that show nothing but that they run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks import (
    agreement,
    annotation,
    annotators,
    bias,
    calibration,
    corrected_rates,
    coverage,
    decisions,
    drift,
    formats,
    grading,
    injection,
    peers,
    report,
    routing,
    scale,
    small_samples,
    uncertainty,
)

ROOT = Path(__file__).resolve().parents[2]
STARTED = {
    agreement,
    annotation,
    annotators,
    bias,
    calibration,
    corrected_rates,
    coverage,
    decisions,
    drift,
    formats,
    grading,
    injection,
    peers,
    report,
    routing,
    scale,
    small_samples,
    uncertainty,
}
"""Every one of them runs below, `annotation` in test_annotation.py."""


@pytest.mark.slow
def test_every_benchmark_starts_as_a_module_and_needs_nothing_of_the_tests() -> None:
    names = {file.stem for file in (ROOT / "benchmarks").glob("*.py")} - {
        "commands",
        "cost",
        "documents",
    }
    assert {f"benchmarks.{name}" for name in names} == {each.__name__ for each in STARTED}
    starts = (
        "import runpy, sys\n"
        "sys.modules['tests'] = None\n"  # who imports it fails
        "for name in sys.argv[1:]:\n"
        "    sys.argv = [name, '--help']\n"
        "    try: runpy.run_module('benchmarks.' + name, run_name='__main__')\n"
        "    except SystemExit as end: assert end.code == 0\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", starts, *sorted(names)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(names)


@pytest.mark.thorough
def test_the_benchmark_of_many_annotators_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "load.md"
    few = ["--annotators", "2", "--pauses", "0.2", "--processes", "2", "--seconds", "1"]
    few += ["--pairs", "2", "--raters", "3", "--stores", "SQLite"]
    annotators.main([*few, "--out", str(out)])
    page = out.read_text("utf-8")
    assert "a synthetic study of 50 tasks that holds\n150 labels" in page
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| SQLite | 2 |")]
    assert [row[2] for row in rows] == ["no", "yes"]
    assert float(re.search(r"a submit, ms of a processor \| ([\d.]+)", page)[1]) > 0
    assert "SQLite: its time for a submit and the next unit" in page
    assert all(row[-3:-1] == ["0", "0"] for row in rows)  # no errors, nothing lost
    assert float(rows[1][8]) > 0  # the lead's pages were drawn anew
    assert "| SQLite | 150 |" in page
    assert str(tmp_path) not in page


@pytest.mark.thorough
def test_the_grading_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "grading.md"
    grading.main(["--grades", "100", "--out", str(out)])
    page = out.read_text("utf-8")
    assert "a synthetic study of 100 response units" in page
    assert "read\n100 times over the run" in page


@pytest.mark.thorough
def test_the_speed_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "performance.md"
    few = ["--resamples", "20", "--scale", "0.0005", "--repeats", "1"]
    agreement.main([*few, "--out", str(out)])
    page = out.read_text("utf-8")
    assert "| Cohen kappa of two raters | 1,000,000 labels | scikit-learn |" in page
    assert "| `evenhand --help` |" in page
    assert str(tmp_path) not in page


def test_the_page_of_formats_is_that_of_the_files(tmp_path: Path) -> None:
    out = tmp_path / "formats.md"
    formats.main(["--out", str(out)])
    assert out.read_text("utf-8") == formats.OUT.read_text("utf-8")


@pytest.mark.thorough
def test_the_coverage_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "coverage.md"
    coverage.main(["--runs", "2", "--resamples", "40", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert page.count("| 0.9 |") == 15
    assert "in 2 simulated studies" in page


@pytest.mark.thorough
def test_the_drift_benchmark_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {(each.kind, each.sign): each for each in drift.CELLS if each.pairs == 50}
    monkeypatch.setattr(drift, "CELLS", tuple(kinds.values()))
    out = tmp_path / "drift.md"
    drift.main(["--runs", "2", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert "2 simulated pairs of a baseline and a later run (synthetic)" in page
    assert "9 of 9 shares pass" in page
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 0.")]
    assert [tuple(row[3:5]) for row in rows] == [
        ("asked again", "down"),
        ("asked again", "up"),
        ("keeps", "down"),
    ]


def test_a_grader_in_the_drift_benchmark_moves_as_far_as_it_says() -> None:
    """In a large sample: kappa with people falls by the margin, both ways of changing."""
    for kind in ("asked again", "keeps"):
        cell = drift.Cell(0.3, 60_000, kind=kind)
        codes = drift.grades(cell, 1.0, np.random.default_rng(3))
        before, after = (
            np.mean([cohen_kappa_score(codes[:, n], codes[:, at]) for n in range(3)])
            for at in (3, 4)
        )
        assert before == pytest.approx(0.7, abs=0.01)
        assert after == pytest.approx(0.6, abs=0.01)


@pytest.mark.thorough
def test_the_benchmark_of_small_samples_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "coverage-small.md"
    small_samples.main(["--runs", "2", "--resamples", "40", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 0.")]
    assert len(rows) == 10 * len(small_samples.CELLS)
    assert {tuple(row[:3]) for row in rows} == {
        (f"{cell.prevalence}", f"{cell.pairs}", f"{cell.subjects}") for cell in small_samples.CELLS
    }
    for row in rows:  # what misses on neither side is covered
        covered, below, above = (float(cell.split(" ")[0]) for cell in row[5:8])
        assert covered + below + above == pytest.approx(1.0, abs=0.002)


def test_intervals_that_miss_are_told_by_their_side() -> None:
    cell = small_samples.Cell(0.1, 50, 1)
    found = {
        small_samples.Key(cell, statistic, method): coverage.Tally(runs=100)
        for statistic in coverage.STATISTICS
        for method in coverage.METHODS
    }
    found[small_samples.Key(cell, "kappa", "percentile")] = coverage.Tally(
        runs=100, below=20, above=10, undefined=20
    )
    page = small_samples.document(found, 100, 40, 1)
    assert "1 of 5 cells fall short" in page
    assert "- 0.625: Cohen kappa, two people, verdict, prevalence 0.1, 50 pairs x 1" in page
    assert "misses lie mostly below" in page
    assert "| 0.625 [0.515, 0.723] * | 0.250 | 0.125 | 0.200 |" in page


@pytest.mark.thorough
def test_the_bias_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "bias-audit.md"
    bias.main(["--runs", "3", "--resamples", "40", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert all(f"| {cell.title} | " in page for cell in bias.CELLS)
    assert "3 simulated studies a line" in page


@pytest.mark.parametrize("law", ["normal", "skew", "heavy", "two values"])
def test_quality_has_the_gap_it_claims(law: str) -> None:
    """Without noise a share of .5 is affirmed, and own units by the law's share beyond the gap."""
    rng = np.random.default_rng(5)
    cell = bias.Cell("", law=law, gap=0.0, strict=0.0, pairs=5000, prevalence=0.3)
    people, _, own = bias.draw(cell, rng)
    assert people.mean() == pytest.approx(0.3, abs=0.02)
    apart = people[own == 1].mean() - people[own == 0].mean()
    assert apart == pytest.approx(0.0, abs=0.02)
    better, _, own = bias.draw(bias.replace(cell, gap=1.0), rng)
    assert better[own == 1].mean() - better[own == 0].mean() > 0.2


@pytest.mark.thorough
def test_the_calibration_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "calibration.md"
    few = ["--runs", "1", "--resamples", "20", "--processes", "1"]
    calibration.main([*few, "--out", str(out)])
    page = out.read_text("utf-8")
    assert page.count("no information |") == 5
    assert page.count("\n| ") == len(calibration.POPULATIONS) + 4
    assert "1 simulated studies a line" in page


@pytest.mark.thorough
def test_the_decisions_benchmark_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of every kind, of several graders, and of several looks."""
    kinds = {(cell.kind, cell.graders > 1, cell.looks > 1): cell for cell in decisions.CELLS}
    assert len(kinds) == 8
    monkeypatch.setattr(decisions, "CELLS", tuple(kinds.values()))
    out = tmp_path / "decisions.md"
    decisions.main(["--runs", "1", "--resamples", "20", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert page.count("\n| 0.") == len(decisions.CELLS)
    assert "1 simulated studies a cell (synthetic)" in page


@pytest.mark.thorough
def test_the_decisions_benchmark_adds_the_cells_that_its_page_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, new = decisions.CELLS[0], decisions.Cell(0.5, 20, 1, people=0.2, poor=0.05)
    monkeypatch.setattr(decisions, "CELLS", (kept, new))
    tallies = {(kept, kept.below): decisions.Tally(2, 1, 0), (kept, 0.0): decisions.Tally(2, 2, 1)}
    out = tmp_path / "decisions.md"
    page = decisions.document(tallies, 2, 20, 1)
    out.write_text(page, "utf-8")
    assert decisions.tallies_of(page, 2) == tallies
    few = ["--resamples", "20", "--processes", "1", "--new", "--out", str(out)]
    with pytest.raises(ValueError, match="not written with --runs 1"):
        decisions.main(["--runs", "1", *few])
    decisions.main(["--runs", "2", *few])
    rows = [line for line in out.read_text("utf-8").splitlines() if line.startswith("| 0.")]
    assert rows[0] == "| 0.5 | 50 | 1 | 1 | 1 | labels | 0.500 * | 0.000 | 1.000 | 0.500 |"
    assert rows[1].startswith("| 0.5 | 20 | 1 | 1 | 1 | labels; kappas 0.2 and 0.05 | 0.000 |")
    whole = out.read_text("utf-8")
    decisions.main(["--runs", "2", *few])
    assert out.read_text("utf-8") == whole


def test_graders_of_the_decisions_benchmark_lie_below_people_by_the_margin() -> None:
    person, grader = decisions.qualities(0.1, decisions.MARGIN)
    assert decisions.kappa(0.1, person, person) == pytest.approx(decisions.KAPPA)
    assert decisions.kappa(0.1, person, grader) == pytest.approx(decisions.KAPPA - 0.1)


@pytest.mark.thorough
def test_the_routing_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "routing.md"
    routing.main(["--runs", "1", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert page.count("| 0.9 |") + page.count("| 0.95 |") == len(routing.CELLS)
    assert "1 simulated studies a line (synthetic)" in page


@pytest.mark.parametrize("prevalence", [0.5, 0.1])
def test_agreement_above_a_cut_is_what_is_simulated(prevalence: float) -> None:
    cell = routing.Cell(routing.BETTER, 0.9, prevalence, 50_000, 4)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    assert 1 - wrong.mean() == pytest.approx(0.85, abs=0.005)
    cut = float(np.quantile(confidence, 0.4))
    who = routing.grader(0.85, prevalence)
    exact = who.agreement(float(routing.ndtri((1 + cut) / 2)))
    assert 1 - wrong[confidence >= cut].mean() == pytest.approx(exact, abs=0.005)
    assert routing.is_broken(cell, 0.0)
    assert not routing.is_broken(cell, 0.99)


def test_dips_are_broken_where_the_mean_above_a_cut_is() -> None:
    cell = routing.Cell(routing.DIPS, 0.9, 0.0, 50_000, 1)
    confidence, wrong, _ = routing.study(cell, cell.pairs, np.random.default_rng(1))
    for cut, broken in ((0.7, False), (0.45, True), (0.0, False)):
        assert routing.is_broken(cell, cut) is broken
        assert (wrong[confidence >= cut].mean() > 0.1) is np.bool_(broken)


@pytest.mark.thorough
def test_the_report_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "report.md"
    report.main(["--scale", "0.04", "--studies", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert "| 10 pairs x 5 subjects x" in page
    assert "6 humans x 4 graders" in page
    assert str(tmp_path) not in page


@pytest.mark.thorough
@pytest.mark.browser
def test_the_report_benchmark_measures_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        f"{unit},{rater},human,{(unit + len(rater)) % 3}"
        for unit in range(20)
        for rater in ("a", "bb", "ccc")
    ]
    (tmp_path / "data" / "real").mkdir(parents=True)
    real = tmp_path / "data" / "real" / "newsroom.csv"
    real.write_text("\n".join(["item_id,rater_id,rater_kind,label", *rows, ""]), "utf-8")
    monkeypatch.setenv("EVENHAND_SHARED", str(tmp_path))
    out = tmp_path / "sizes.md"
    report.main(["--pages", "--studies", "0", "--out", str(out)])
    [line] = [line for line in out.read_text("utf-8").splitlines() if "Newsroom" in line]
    _, _, before, after, *_ = line.split("|")
    assert before.strip() == "5,592"
    assert 900 < int(after.replace(",", "")) < 4_000


@pytest.mark.parametrize("prevalence", coverage.SHARES)
def test_the_population_is_what_is_simulated(prevalence: float) -> None:
    """The exact joint distribution against 100 simulated studies."""
    rng = np.random.default_rng(3)
    codes = np.vstack([coverage.simulate(prevalence, rng) for _ in range(100)])
    for first, second, quality in ((0, 1, coverage.HUMAN), (2, 3, coverage.GRADER)):
        cells = codes[:, first].astype(int) * coverage.Q + codes[:, second]
        seen = np.bincount(cells, minlength=coverage.Q**2).reshape(coverage.Q, -1) / len(codes)
        exact = coverage.joint(prevalence, coverage.HUMAN, quality)
        assert exact.sum() == pytest.approx(1.0)
        assert exact.sum(axis=0) == pytest.approx(coverage.SHARES[prevalence])
        assert seen == pytest.approx(exact, abs=0.005)
    verdicts = coverage.verdict_table(exact)
    assert verdicts[0].sum() == pytest.approx(prevalence)


def test_a_cell_passes_where_its_monte_carlo_interval_meets_the_bounds() -> None:
    near = coverage.Tally(runs=4000, below=100, above=196)
    far = coverage.Tally(runs=4000, below=160, above=180)
    assert near.coverage == pytest.approx(0.926)
    assert near.monte_carlo == pytest.approx((0.9175, 0.9337), abs=0.0002)
    assert near.holds
    assert not far.holds


@pytest.mark.thorough
def test_the_coverage_of_corrected_rates_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "coverage-corrected.md"
    few = ["--runs", "3", "--resamples", "40", "--processes", "1"]
    corrected_rates.main([*few, "--out", str(out)])
    page = out.read_text("utf-8")
    # Each cell's estimates that are judged, and at .5 all of them once more.
    small = len(corrected_rates.LABELLED) * len(corrected_rates.JUDGED)
    assert page.count("| 0.5 |") == small + len(corrected_rates.ESTIMATES)
    assert page.count("| 0.02 |") == small
    assert "in 3 simulated studies" in page


@pytest.mark.parametrize("prevalence", corrected_rates.PREVALENCES)
def test_corrected_rates_are_simulated_as_they_are_said_to_be(prevalence: float) -> None:
    """People's rate and the grader's error rates, against 60 simulated studies, or more where few
    units are affirmative.
    """
    rng = np.random.default_rng(5)
    drawn = [
        corrected_rates.simulate(250, prevalence, rng)
        for _ in range(60 if prevalence > 0.05 else 400)
    ]
    people, grader = (np.vstack(each).ravel() for each in zip(*drawn, strict=True))
    sensitivity, specificity = corrected_rates.error_rates(prevalence)
    assert people.mean() == pytest.approx(prevalence, abs=0.004)
    assert grader[people == 1].mean() == pytest.approx(sensitivity, abs=0.006)
    assert 1 - grader[people == 0].mean() == pytest.approx(specificity, abs=0.006)


@pytest.mark.thorough
def test_the_uncertainty_benchmark_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = uncertainty.CELLS[0], uncertainty.CELLS[-1]
    monkeypatch.setattr(uncertainty, "CELLS", cells)
    out = tmp_path / "uncertainty.md"
    uncertainty.main(["--runs", "2", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    assert page.count("\n| probability | 0.") == 2
    assert "2 simulated studies a cell (synthetic)" in page


@pytest.mark.thorough
def test_the_injection_benchmark_writes_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = (injection.Cell("5 points", 8), injection.Cell("yes or no", 12, effect=1.0))
    monkeypatch.setattr(injection, "CELLS", cells)
    out = tmp_path / "injection.md"
    injection.main(["--runs", "2", "--processes", "1", "--out", str(out)])
    page = out.read_text("utf-8")
    steadfast, gullible = (
        line for line in page.splitlines() if line.startswith("| steadf") or "effect 1" in line
    )
    assert "| 0.000 [" in steadfast
    assert gullible.endswith("| 1.000 |")


@pytest.mark.thorough
def test_the_benchmark_of_other_tools_holds_their_figures_against_ours(tmp_path: Path) -> None:
    out = tmp_path / "peers.md"
    peers.main(["--units", "60", "--python", sys.executable, "--out", str(out)])
    page = out.read_text("utf-8")
    assert "| 60 | krippendorff | alpha" in page
    assert "not installed: irrCAC, judgekeeper" in page
    ours = peers.Run("evenhand", 1.0, 1.0, 1.0, {"alpha": 0.5, "kappa": 0.3})
    theirs = peers.Run("irrCAC", 1.0, 1.0, 1.0, {"alpha": 0.5001, "kappa": 0.31, "gwet": 0.1})
    assert peers.differences(ours, theirs) == ["irrCAC: kappa is 0.31, ours 0.3"]


@pytest.mark.thorough
def test_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scale.write_ratings(tmp_path, 1_000, file_rows=150) == 50
    run = scale.measure(tmp_path, 1_000, 50, "stream")
    assert run.seconds > 0 < run.megabytes
    monkeypatch.setattr("evenhand.analysis.bootstrap.pattern_resamples.GROUPS", 25)
    widths = scale.widths_beside(tmp_path)
    assert {"cohen_kappa", "human_ceiling_difference"} <= {each.statistic for each in widths}
    page = scale.document([run], widths)
    assert "| stream | 1,000 | 50 |" in page
    assert "| cohen_kappa | " in page
