"""Figures and sentences of two synthetic studies with rubrics of every kind, of plans, and of one
grader compared with another, as they were before.

A change that is meant to alter them is written down by `python -m tests.analysis.test_golden` and
reviewed in the diff of `golden/`. Figures are summed by rubric and statistic.
"""

import json
import re
import tempfile
from itertools import permutations, product
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import Analysis, planning
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.verdicts import versions
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from evenhand.study.tables.ratings import validate_ratings
from harness.every_kind import GRADERS, SCALES, analysed_study, selected_study, tables

pytestmark = pytest.mark.journey
GOLDEN = Path(__file__).with_name("golden")
FIGURES = {"figures.csv": analysed_study, "selected.csv": selected_study}
analysis = pytest.fixture(scope="module")(analysed_study)


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


def planned() -> dict[str, float]:
    """Half-widths of intervals, and chances to pass."""
    yes_no = planning.Scenario(0.8, 0.3, overlap=0.8, strictness=0.2)
    points = planning.ScaleScenario(1, 5, 0.7, 2.5, strictness=0.2)
    figures = {"kappa of points": planning.half_width("kappa", 90, points)}
    for name, units in product(("kappa", "alpha", "rate", "threshold"), (30, 90)):
        figures[f"{name} of {units}"] = planning.half_width(name, units, yes_no)
    for name, scenario in {"yes or no": yes_no, "points": points}.items():
        for scope, chances in planning.pass_chances(60, scenario, [2, 4]).items():
            figures |= {f"{name}, {scope}, {k} people": chance for k, chance in chances.items()}
    return figures


def compared() -> dict[str, float | str]:
    """The drift from `sure` to `weak` on each rubric, and whether one improves on the other."""
    ratings, units = tables()
    ratings, rule = validate_ratings(ratings), DecisionSettings(min_clusters=5)
    found: dict[str, float | str] = {}
    for scale in SCALES[:5]:
        labels = versions.paired_labels(ratings[ratings["rubric"] == scale.name], units, scale)
        settings = AnalysisSettings(resamples=40, margin=0.2)
        drift = versions.drift_of(labels, versions.Versions(*GRADERS), settings, rule)
        found[f"{scale.name}: drift"] = drift.sentence
        for row in drift.rows:
            for key in ("estimate", "low", "high"):
                found[f"{scale.name}: {row['statistic']}, {row['rater_a']}, {key}"] = row[key]
        for old, new in permutations(GRADERS):
            found[f"{scale.name}: {new}"] = versions.prove(labels, old, new, rule, 2).sentence
            chance = versions.chance_of_proof(labels, old, new, 80, 0.02)
            found[f"{scale.name}: {new}, chance of a proof"] = chance
        found[f"{scale.name}: provable"] = versions.provable_gain(labels, 40, 0.02)
        too_few = versions.too_few_errors(labels, "sure", 9, 0.02)
        found[f"{scale.name}: errors"] = too_few.most if too_few else "enough"
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_as_before(name: str, request: pytest.FixtureRequest) -> None:
    is_first = name == "figures.csv"
    found = request.getfixturevalue("analysis") if is_first else FIGURES[name]()
    before = pd.read_csv(GOLDEN / name, index_col=["rubric", "statistic"])
    pd.testing.assert_frame_equal(summed(found), before, rtol=1e-5)


def test_every_sentence_is_as_before(analysis: Analysis, tmp_path: Path) -> None:
    before = (GOLDEN / "sentences.txt").read_text("utf-8")
    assert sentences(analysis, tmp_path) == before.splitlines()


@pytest.mark.parametrize("figures", [planned, compared])
def test_plans_and_versions_are_as_before(figures) -> None:
    before = json.loads((GOLDEN / f"{figures.__name__}.json").read_text("utf-8"))
    for name, value in before.items():
        if not isinstance(value, str):
            before[name] = pytest.approx(value, rel=1e-5, nan_ok=True)
    assert figures() == before


if __name__ == "__main__":
    for name, maker in FIGURES.items():
        summed(maker()).to_csv(GOLDEN / name, float_format="%.8g")
    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join(sentences(analysed_study(), Path(folder)))
    (GOLDEN / "sentences.txt").write_text(text + "\n", "utf-8")
    for figures in (planned, compared):
        text = json.dumps(figures(), indent=1)
        (GOLDEN / f"{figures.__name__}.json").write_text(text + "\n", "utf-8")
