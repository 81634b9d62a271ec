"""Other tools beside ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import peers


@pytest.mark.thorough
def test_the_benchmark_of_other_tools_holds_their_figures_against_ours(
    page_of: Callable[[str], str],
) -> None:
    page = page_of("peers")
    assert "| 60 | krippendorff | alpha" in page
    assert "not installed: irrCAC, judgekeeper" in page
    ours = peers.Run("evenhand", 1.0, 1.0, 1.0, {"alpha": 0.5, "kappa": 0.3})
    theirs = peers.Run("irrCAC", 1.0, 1.0, 1.0, {"alpha": 0.5001, "kappa": 0.31, "gwet": 0.1})
    assert peers.differences(ours, theirs) == ["irrCAC: kappa is 0.31, ours 0.3"]
