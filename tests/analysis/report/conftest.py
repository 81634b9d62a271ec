"""The small study analysed, and the same with a hostile text wherever one can stand."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.analysis import Analysis, analyse
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.report.blocks import Block, Chart, Table
from evenhand.analysis.report.files import sections_of
from evenhand.analysis.report.source import Source
from tests.analysis.report.small_study import HOSTILE, SCALE, tables

STUDY = ReportContext("A study")


def blocks_of(analysis: Analysis, kind: type[Block], context: ReportContext = STUDY) -> list[Any]:
    """All blocks of this kind in the sections of the report."""
    sections = sections_of(Source(analysis, context))
    return [b for section in sections for b in section.every_block() if isinstance(b, kind)]


def data_tables(analysis: Analysis, context: ReportContext = STUDY) -> list[Table]:
    """All tables of the report, and those with the data of its charts."""
    blocks = blocks_of(analysis, Block, context)
    return [table for each in blocks if isinstance(each, Chart | Table) for table in each.data]


@pytest.fixture(scope="session")
def analysis() -> Analysis:
    return analyse(*tables(), [SCALE], resamples=200)


@pytest.fixture(scope="session")
def hostile_analysis() -> Analysis:
    people, subjects = HOSTILE[:3], (HOSTILE[0], HOSTILE[1], "plain")
    ratings, units = tables(people, (HOSTILE[3], HOSTILE[4], "-minus"), subjects)
    return analyse(ratings, units, [SCALE], resamples=200)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """written(analysis, **context) -> the folder of the report, to be read only: who asks for the
    same again gets the same.
    """
    known: list[tuple[Analysis, ReportContext, Path]] = []

    def write(analysis: Analysis, **more: object) -> Path:
        given = {"name": "A study", "rubric_titles": {"R": "The rubric"}} | more
        context = ReportContext(**given)  # type: ignore[arg-type]
        for out in (out for of, asked, out in known if of is analysis and asked == context):
            return out
        out = tmp_path_factory.mktemp("report") / "made" / "here"
        write_report(analysis, context, out)
        known.append((analysis, context, out))
        return out

    return write
