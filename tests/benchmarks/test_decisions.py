"""How often verdicts are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import decisions


@pytest.mark.thorough
def test_the_decisions_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of every kind, of several graders, and of several looks."""
    kinds = {(cell.kind, cell.graders > 1, cell.looks > 1): cell for cell in decisions.CELLS}
    assert len(kinds) == 8
    monkeypatch.setattr(decisions, "CELLS", tuple(kinds.values()))
    page = page_of("decisions")
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
