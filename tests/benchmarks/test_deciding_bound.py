"""How often the deciding bound is wrong, and how often right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from benchmarks import deciding_bound
from benchmarks.deciding_bound import CELLS, MARGIN, Cell
from evenhand.analysis import Scale, analyse

SCALE = Scale("r", ("no", "yes"), affirmative=frozenset({"yes"}))


@pytest.mark.thorough
def test_the_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cell of every population, size of clusters, way to fail, and crowd."""
    kinds = {(c.world, c.sizes, c.fails_clusters, c.people): c for c in CELLS}
    assert len(kinds) == 13
    monkeypatch.setattr(deciding_bound, "CELLS", tuple(kinds.values()))
    page = page_of("deciding_bound")
    lines = [line for line in page.splitlines() if line.startswith(("| latent", "| cl", "| beta"))]
    assert len(lines) == len(kinds)
    assert "(synthetic)" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    "cell",
    [
        CELLS[40],
        CELLS[-3],
        *(pytest.param(CELLS[n], marks=pytest.mark.thorough) for n in (5, 56)),
    ],
    ids=str,
)
def test_it_decides_as_the_product_does(cell: Cell) -> None:
    """On the same labels, but for what else a verdict looks at."""
    agreed = 0
    for run in range(4):
        for below in (0.0, MARGIN):
            rng = np.random.default_rng([run, round(10 * below)])
            labels, clusters = deciding_bound.study(cell, below, rng)
            _, passes = deciding_bound.decided(labels, clusters)
            found = analyse(
                _ratings(labels), _units(clusters), [SCALE], looks=1, resamples=10, min_stability=-1
            )
            judged = found.verdicts[0]["verdict"] in ("may_stand_in", "only_with_correction")
            agreed += judged == passes
    assert agreed >= 7  # what a verdict must also meet may stop one


def _ratings(labels: np.ndarray) -> pd.DataFrame:
    unit, rater = np.nonzero(labels >= 0)
    people = labels.shape[1] - 1
    return pd.DataFrame(
        {
            "unit_id": [f"u{n}" for n in unit],
            "rater_id": [f"h{n}" if n < people else "g" for n in rater],
            "rater_kind": np.where(rater < people, "human", "model"),
            "label": np.where(labels[unit, rater] == 1, "yes", "no"),
        }
    )


def _units(clusters: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "unit_id": [f"u{n}" for n in range(len(clusters))],
            "cluster_id": [f"c{n}" for n in clusters],
        }
    )


@pytest.mark.parametrize("world", ["latent", "classes", "beta"])
def test_graders_lie_below_people_by_the_margin(world: deciding_bound.World) -> None:
    """In one large study, to within its error."""
    cell = Cell(world, 0.5, 0.7, 20_000)
    labels, _ = deciding_bound.study(cell, MARGIN, np.random.default_rng(1))
    agree = 2.0 * labels - 1.0
    people = np.mean([np.mean(agree[:, a] * agree[:, b]) for a, b in ((0, 1), (0, 2), (1, 2))])
    grader = np.mean([np.mean(agree[:, a] * agree[:, 3]) for a in range(3)])
    assert people == pytest.approx(0.7, abs=0.02)
    assert people - grader == pytest.approx(MARGIN, abs=0.02)
