"""How often verdicts are wrong on ordered labels and numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks import scales
from benchmarks.simulated import any_passes, verdicts
from tests.analysis.simulated_labels import analysed, passes


@pytest.mark.thorough
def test_the_scales_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = tuple(each for each in scales.CELLS if each.items == 60)
    monkeypatch.setattr(scales, "CELLS", cells)
    page = page_of("scales")
    assert "1 simulated studies a cell (synthetic)" in page
    for name in scales.WORLDS:
        assert f"\n| {name} | linear | 60 |" in page
    for name in scales.DRIFTING:
        assert f"\n| {name} | 60 |" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        scales.Cell("1-5, spread", 60),
        scales.Cell("0-100", 100),
        scales.Cell("0-100, scale not declared", 60),
        scales.Cell("1-7, unlike strictness", 100, "quadratic"),
    ],
)
@pytest.mark.parametrize("fault", ["low", "good"])
def test_verdicts_of_the_benchmark_are_those_of_a_whole_analysis(
    cell: scales.Cell, fault: scales.Fault
) -> None:
    world, of = scales.WORLDS[cell.world], scales.faults(cell.world, cell.ordered)[fault]
    drawn = scales.raters(world, cell.items, *of, np.random.default_rng(1))
    study, scale = world.study(drawn, cell.ordered)
    found, _ = verdicts(study, scale)
    whole = analysed(study.annotators, study.graders, scale, ordered=cell.ordered)
    assert any_passes(found) == any(passes(whole))


@pytest.mark.parametrize("ordered", ["linear", "quadratic"])
def test_graders_of_the_scales_benchmark_lie_below_annotators_by_the_margin(ordered: str) -> None:
    """By another implementation of kappa, in other items."""
    world = scales.WORLDS["1-5, mostly 4 and 5"]
    for fault in scales.WRONG:
        of = scales.faults(world.text, ordered)[fault]
        said, grader = scales.raters(world, 60_000, *of, np.random.default_rng(3))
        with_grader = [cohen_kappa_score(each, grader, weights=ordered) for each in said.T]
        among = [
            cohen_kappa_score(said[:, i], said[:, j], weights=ordered)
            for i, j in ((0, 1), (0, 2), (1, 2))
        ]
        assert np.mean(with_grader) - np.mean(among) == pytest.approx(-0.1, abs=0.01)
