"""How often an improved grader is called better."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from benchmarks import improving


@pytest.mark.thorough
def test_the_improving_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(improving, "CELLS", improving.CELLS[:1] + improving.CELLS[-1:])
    monkeypatch.setattr(improving, "PARTINGS", 3)
    page = page_of("improving")
    assert "2 simulated studies (synthetic)" in page
    assert "1 of 1 cells pass" in page
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| 0")]
    assert [row[:2] for row in rows] == [["0", "60"], ["0.2", "250"]]
    assert "| GPT-4/Vanilla |" in page


def test_one_candidate_is_better_by_the_gain_and_the_others_are_as_the_old_one() -> None:
    codes = improving.codes(improving.Cell(60_000, 0.1), np.random.default_rng(3))
    kappas = [cohen_kappa_score(codes[:, 0], codes[:, n]) for n in (1, 3, 4, -1)]
    assert kappas == pytest.approx([0.7, 0.6, 0.5, 0.5], abs=0.015)


@pytest.mark.parametrize("which", improving.SETS, ids=lambda each: each.name)
def test_on_real_votes_a_gain_is_smaller_on_the_labels_kept_for_the_proof(
    which: improving.PublishedSet,
) -> None:
    best = improving.old_ones(which)[-1]
    found = [improving.on_published(which, best, seed) for seed in range(12)]
    proofs = [(gain, proof.estimate) for _, proof, gain, _ in found if proof is not None]
    on_choose, on_prove = np.mean(proofs, axis=0)
    assert on_choose > on_prove
