"""How often a changed grader is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks import drift


@pytest.mark.thorough
def test_the_drift_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = {(each.kind, each.sign): each for each in drift.CELLS if each.pairs == 50}
    monkeypatch.setattr(drift, "CELLS", tuple(kinds.values()))
    page = page_of("drift")
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
