"""Figures and sentences of two synthetic studies with rubrics of every kind, of plans, and of one
grader compared with another, as they were before.

A change that is meant to alter them is written down by `python -m tests.analysis.test_golden` and
reviewed in the diff of `golden/`. Figures are summed by rubric and statistic.
"""

import json
import re
import tempfile
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import Analysis
from evenhand.analysis.report import ReportContext, write_report
from harness.every_kind import SCALES, analysed_study, plans_and_versions, selected_study

pytestmark = pytest.mark.journey
GOLDEN = Path(__file__).with_name("golden")
STUDIES = {"figures.csv": cache(analysed_study), "selected.csv": selected_study}


def summed(analysis: Analysis) -> pd.DataFrame:
    """Rows by rubric and statistic: how many, and the sums of their numbers."""
    numbers = ["estimate", "low", "high", "n_units", "n_clusters"]
    by_statistic = analysis.results.groupby(["rubric", "statistic"])
    return by_statistic.size().to_frame("rows").join(by_statistic[numbers].sum())


def sentences(analysis: Analysis, folder: Path) -> list[str]:
    """Every different line of the report and its JSON, and every text in its drawings, with # for
    numbers and RUBRIC for a rubric's name.
    """
    titles = {scale.name: scale.name.title() for scale in SCALES}
    write_report(analysis, ReportContext("A study", synthetic=True, rubric_titles=titles), folder)
    kinds = ("md", "json", "html")
    text, data, page = ((folder / f"report.{kind}").read_text("utf-8") for kind in kinds)
    drawn = re.sub(r"<[^>]*>", "\n", "".join(re.findall(r"(?s)<svg.*?</svg>", page)))
    names = "|".join(sorted(titles, key=len, reverse=True))
    text = re.sub(rf"(?i)\b(?:{names})\b", "RUBRIC", "\n".join((text, data, drawn)))
    return list(dict.fromkeys(re.sub(r"[+-]?\d[\d.,]*", "#", text).splitlines()))


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_is_as_before(name: str) -> None:
    before = pd.read_csv(GOLDEN / name, index_col=["rubric", "statistic"])
    pd.testing.assert_frame_equal(summed(STUDIES[name]()), before, rtol=1e-5)


def test_every_sentence_is_as_before(tmp_path: Path) -> None:
    before = (GOLDEN / "sentences.txt").read_text("utf-8")
    assert sentences(STUDIES["figures.csv"](), tmp_path) == before.splitlines()


def test_plans_and_versions_are_as_before() -> None:
    figures, sentences = plans_and_versions()
    before = json.loads((GOLDEN / "plans_and_versions.json").read_text("utf-8"))
    assert sentences == before[1]
    assert figures == pytest.approx(before[0], rel=1e-5, nan_ok=True)


if __name__ == "__main__":
    for name, maker in STUDIES.items():
        summed(maker()).to_csv(GOLDEN / name, float_format="%.8g")
    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join(sentences(STUDIES["figures.csv"](), Path(folder)))
    (GOLDEN / "sentences.txt").write_text(text + "\n", "utf-8")
    text = json.dumps(plans_and_versions(), indent=1)
    (GOLDEN / "plans_and_versions.json").write_text(text + "\n", "utf-8")
