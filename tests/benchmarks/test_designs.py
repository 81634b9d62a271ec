"""How often verdicts are wrong under selective labelling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import designs
from benchmarks.simulated import any_passes, verdicts
from tests.analysis.simulated_labels import analysed, passes


@pytest.mark.thorough
def test_the_designs_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of every kind and design."""
    cells = {(each.family, each.design): each for each in designs.CELLS if each.annotators < 100}
    monkeypatch.setattr(designs, "CELLS", tuple(cells.values()))
    page = page_of("designs")
    assert "1 simulated studies a cell (synthetic)" in page
    for family, _ in cells:
        assert f"\n| {family} |" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        designs.Cell("", "third, spot checks", 200),
        designs.Cell("", "third", 200, is_timed=True),
        designs.Cell("", "crowd third", 200, 12, options="four unordered"),
        designs.Cell("", "second", 300, 2, (0.1, 0.9), alike=True),
        designs.Cell("", "second", 300, 2, (0.25, 0.45), clustered=True, options="five ordered"),
        designs.Cell("", "crowd", 300, 30),
        designs.Cell("", "random second", 400, 2, (0.5, 0.5), is_declared=True, graders=3),
    ],
)
def test_verdicts_of_the_benchmark_are_those_of_a_whole_analysis(cell: designs.Cell) -> None:
    scale = designs.SCALES[cell.options]
    for is_good in (False, True):
        study = designs.study(cell, is_good, np.random.default_rng(int(is_good)))
        found, how = verdicts(study, scale, is_random=cell.is_declared)
        overlap = {"overlap": "random"} if cell.is_declared else {}
        whole = analysed(
            study.annotators, study.graders, scale, study.times, study.clusters, **overlap
        )
        assert any_passes(found) == any(passes(whole))
        refused = "differ from the" in whole.verdicts[0]["sentence"]
        assert (how == "unknown") == refused


@pytest.mark.slow
@pytest.mark.parametrize("options", ["two", "four unordered", "five ordered"])
@pytest.mark.parametrize("alike", [False, True])
def test_graders_of_the_benchmark_lie_below_annotators_by_the_margin(
    options: designs.Options, alike: bool
) -> None:
    """By another implementation of kappa, in other items."""
    from sklearn.metrics import cohen_kappa_score

    rng = np.random.default_rng(3)
    items = designs.Items.drawn(200_000, options, False, rng)
    first, second = (
        items.labels(designs.NOISE * items.errors(rng), each) for each in designs.strictness(2)
    )
    grader = designs.grades(items, *designs.errs(options, 2, 0.1, alike), rng)
    weights = "linear" if options == "five ordered" else None
    among = cohen_kappa_score(first, second, weights=weights)
    with_grader = [cohen_kappa_score(each, grader, weights=weights) for each in (first, second)]
    assert np.mean(with_grader) - among == pytest.approx(-0.1, abs=0.01)
