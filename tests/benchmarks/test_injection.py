"""How often the injection audit finds what is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import injection


@pytest.mark.thorough
def test_the_injection_benchmark_writes_its_page(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = (injection.Cell("5 points", 8), injection.Cell("yes or no", 12, effect=1.0))
    monkeypatch.setattr(injection, "CELLS", cells)
    page = page_of("injection")
    steadfast, gullible = (
        line for line in page.splitlines() if line.startswith("| steadf") or "pulled 1" in line
    )
    assert "| 0.000 [" in steadfast
    assert gullible.endswith("| 1.000 |")
