"""Ratings beyond one table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import scale


@pytest.mark.thorough
def test_scale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert scale.write_ratings(tmp_path, 1_000, file_rows=150) == 50
    run = scale.measure(tmp_path, 1_000, 50)
    assert run.seconds > 0 < run.megabytes
    monkeypatch.setattr("evenhand.analysis.bootstrap.patterns.GROUPS", 25)
    widths = scale.widths_beside(tmp_path)
    assert {"cohen_kappa", "human_ceiling_difference"} <= {each.statistic for each in widths}
    page = scale.document([run], widths)
    assert "| 1,000 | 50 |" in page
    assert "| cohen_kappa | " in page
