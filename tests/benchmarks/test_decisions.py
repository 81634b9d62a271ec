"""How often verdicts are wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks import decisions
from evenhand.analysis import analyse


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        decisions.Cell(0.5, 60, 1),
        decisions.Cell(0.5, 200, 1),
        decisions.Cell(0.1, 100, 4, graders=3),
        decisions.Cell(0.5, 100, 4, kind="drawn"),
        decisions.Cell(0.5, 100, 1, kind="tuned"),
        decisions.Cell(0.5, 100, 4, kind="declared"),
        decisions.Cell(0.5, 100, 4, people=0.22, poor=0.05),
    ],
)
@pytest.mark.parametrize("below", [0.0, 0.1])
def test_verdicts_of_the_decisions_benchmark_are_those_of_a_whole_analysis(
    cell: decisions.Cell, below: float
) -> None:
    ratings = decisions.study(cell, cell.pairs, below, np.random.default_rng([1, cell.pairs]))
    by = {"g0": 0.2} if cell.kind == "declared" else {}
    _, found = decisions.analysed(cell, ratings, 1, 20, **by)
    units = ratings[["unit_id", "pair"]].drop_duplicates().rename(columns={"pair": "cluster_id"})
    whole = analyse(
        ratings.drop(columns="pair"),
        units.astype(str),
        [replace(decisions.SCALE, thresholds=by)],
        scope="like_these" if cell.kind == "drawn" else "these",
        resamples=20,
    )
    kept = ("verdict", "more_clusters", "chance", "threshold")
    assert [[each[name] for name in kept] for each in found] == [
        [each[name] for name in kept] for each in whole.verdicts
    ]


def test_graders_of_the_decisions_benchmark_lie_below_people_by_the_margin() -> None:
    person, grader = decisions.qualities(0.1, decisions.MARGIN)
    assert decisions.kappa(0.1, person, person) == pytest.approx(decisions.KAPPA)
    assert decisions.kappa(0.1, person, grader) == pytest.approx(decisions.KAPPA - 0.1)
