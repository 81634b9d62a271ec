"""The small study analysed, and the same with a hostile text wherever one can stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.analysis import Analysis, analyse
from evenhand.analysis.report import ReportContext, write_report
from tests.analysis.report.small_study import HOSTILE, SCALE, tables


@pytest.fixture(scope="session")
def analysis() -> Analysis:
    ratings, units = tables()
    return analyse(ratings, units, [SCALE], resamples=200)


@pytest.fixture(scope="session")
def hostile_analysis() -> Analysis:
    people, subjects = HOSTILE[:3], (HOSTILE[0], HOSTILE[1], "plain")
    ratings, units = tables(people, (HOSTILE[3], HOSTILE[4], "-minus"), subjects)
    return analyse(ratings, units, [SCALE], resamples=200)


Written = Callable[..., Path]


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Writes a report and returns its folder."""

    def write(analysis: Analysis, **context: object) -> Path:
        out = tmp_path / "made" / "here"
        given = {"name": "A study", "rubric_titles": {"R": "The rubric"}} | context
        write_report(analysis, ReportContext(**given), out)  # type: ignore[arg-type]
        return out

    return write
