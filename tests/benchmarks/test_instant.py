"""What a user waits for, on files that are waited for hardly at all."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks import instant


@pytest.mark.thorough
def test_the_page_has_a_line_for_each_bound_and_each_stage(
    page_of: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = replace(instant.cases()[1], humans=2, graders=1)
    monkeypatch.setattr(instant, "cases", lambda: [case, case])
    page = page_of("instant")
    bounds = [
        line.split(" | ")[-2] for line in page.splitlines() if line.endswith(("yes |", "** |"))
    ]
    assert bounds == ["0.10", "1.00", "1.80", "2.50", "1.05", "1.05", "1.05"]
    assert "| `report`, 10 pairs x 5 x 1 rubrics x 2 x 1 |" in page
    stages = {
        row.split(" | ")[0].strip("| ") for row in page.partition("| stage |")[2].splitlines()
    }
    assert {"loading pandas", "all other statistics", "writing files"} <= stages


@pytest.mark.slow
def test_time_within_another_stage_is_counted_once() -> None:
    """By a verb that is over at once: no stage takes part of another's time, or less than none."""
    command = instant.Command("", sys.executable, ["-P", "-m", "evenhand", "--version"])
    spent = instant.stages(command)
    assert {"loading pandas", "loading evenhand", "everything else"} <= set(spent)
    assert min(spent.values()) >= 0.0
