"""The stance demo: from propositions to a report that finds the faults which were put in."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.demo import STANCE_SEED, make_demo
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.tables.formats import read_table
from harness.demo.stance_raters import ANNOTATORS, REWORDED, WAVERING
from harness.demo.stance_responses import LEVELS, demo_answers
from harness.page_size import page_size

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.thorough

STEADY, ONE_SIDED, WAVERS = (
    f"synthetic:grader-{name}" for name in ("steady", "one-sided", "wavering")
)


@dataclass(frozen=True)
class Made:
    folder: Path
    said: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """As by `evenhand demo --study stance`, stopped before the report, and begun again."""
    folder = tmp_path_factory.mktemp("demo") / "study"
    make_demo("stance", folder, lambda *progress: None)
    with redirect_stdout(io.StringIO()) as said:
        assert main(["demo", str(folder), "--no-app"]) == 0
    return Made(folder, said.getvalue())


@pytest.fixture(scope="module")
def demo(made: Made) -> Path:
    return made.folder


@pytest.fixture(scope="module")
def results(demo: Path) -> pd.DataFrame:
    table = read_table(demo / "report" / "results.csv")
    for column in ("estimate", "low", "high"):
        table[column] = pd.to_numeric(table[column])
    keys = ["rubric", "statistic", "rater_a", "rater_b", "subset", "at"]
    return table.set_index(keys).sort_index()


@pytest.fixture(scope="module")
def truth(demo: Path) -> pd.DataFrame:
    with open_study(demo) as study:
        _, truth = demo_answers(study.store.pairs(), STANCE_SEED)
        return truth.merge(study.units("all"), on="unit_id")


def row(results: pd.DataFrame, statistic: str, a: str, b: str = "", *rest: str) -> pd.Series:
    subset, at = (*rest, "", "")[:2]
    return results.loc[("stance", statistic, a, b, subset or "all", at)]


def two_wordings_kappa(shares: np.ndarray) -> float:
    """Fleiss' kappa of a grader's labels under two wordings that share nothing but the truth."""
    base, other = (WAVERING.confusion[name] for name in ("stance", REWORDED))
    agree = float(shares @ (base * other).sum(axis=1))
    margin = (shares @ base + shares @ other) / 2
    chance = float((margin**2).sum())
    return (agree - chance) / (1 - chance)


def test_the_known_instability_under_another_wording_is_recovered(results, truth):
    shares = truth["label"].value_counts(normalize=True).reindex(list(LEVELS)).to_numpy()
    found = row(results, "stability_fleiss_kappa", WAVERS, "", "all", "rubric")
    assert found["low"] <= two_wordings_kappa(shares) <= found["high"]
    steady = row(results, "stability_fleiss_kappa", STEADY, "", "all", "rubric")
    assert steady["low"] > 0.75 > 0.35 > found["high"]


def test_subjects_that_waver_are_less_stable(results: pd.DataFrame) -> None:
    """Each prompt gets a level drawn anew with probability .1 (left, right), .3 or .5."""
    kappas = {
        subject: row(
            results, "stability_fleiss_kappa", STEADY, "", f"subject=synthetic-{subject}", "wording"
        )
        for subject in ("left", "right", "middle", "evasive")
    }
    assert kappas["middle"]["high"] < min(kappas["left"]["low"], kappas["right"]["low"])
    assert kappas["evasive"]["high"] < kappas["middle"]["estimate"]


def test_the_known_weak_group_is_recovered(results: pd.DataFrame) -> None:
    weak = row(results, "group_difference", "humans", ONE_SIDED, "leaning=right|binary")
    assert weak["high"] < 0
    fair = row(results, "group_difference", "humans", STEADY, "leaning=right|binary")
    assert fair["low"] <= 0 <= fair["high"]


def test_verdicts_follow_from_the_faults(demo: Path) -> None:
    report = json.loads((demo / "report" / "report.json").read_text())
    verdicts = {each["grader"]: each for each in report["verdicts"]}
    # As good as a person, which so few propositions do not show yet.
    assert verdicts[STEADY]["verdict"] == "inconclusive"
    assert verdicts[STEADY]["promising"]
    assert verdicts[STEADY]["chance"] > 0.9
    assert verdicts[ONE_SIDED]["verdict"] != "can_replace"
    assert verdicts["baseline:lexical"]["verdict"] == "inconclusive"
    assert verdicts["baseline:lexical"]["chance"] < 0.1
    # As good as people under one wording, and no longer so under another, as far as so few show
    assert verdicts[WAVERS]["verdict"] == "inconclusive"
    assert "labels change with the rubric's wording" in verdicts[WAVERS]["sentence"]
    assert {each["rubric"] for each in report["verdicts"]} == {"stance"}


def test_a_confidence_filter_mends_the_one_sided_grader(results: pd.DataFrame) -> None:
    every = results.query("statistic == 'confidence_agreement' and rater_b == @ONE_SIDED")
    plain = every.iloc[every.index.get_level_values("at").astype(float).argmin()]
    kept = row(results, "confidence_agreement", "humans", ONE_SIDED, "all|collapsed", "0.9")
    assert plain["high"] < kept["low"]
    surer = row(results, "mean_confidence", "humans", STEADY, "all|collapsed", "clear")
    less = row(results, "mean_confidence", "humans", STEADY, "all|collapsed", "unclear")
    assert surer["low"] > less["high"]


def test_the_report_has_the_sections_of_this_kind_of_study(demo: Path) -> None:
    text = (demo / "report" / "report.md").read_text("utf-8")
    for heading in ("Clear and unclear", "Confidence filter", "Stability", "Groups"):
        assert f"\n## {heading}\n" in text
    assert f"{ONE_SIDED} does worst on leaning=right: -0.26" in text.replace("\\", "")
    assert "(published)" not in text
    assert "prompts sampled" in text
    assert "No overall scores" not in text
    assert "### Stance, reworded" not in text


def test_people_are_asked_under_one_wording_only(demo: Path) -> None:
    with open_study(demo) as study:
        sheet = AnnotationDesk(study).next_sheet("visitor")
        assert sheet is not None
        (task,) = sheet.tasks
        assert task.people.title == "Stance"
        assert sheet.total == 40 * 4
        assert [block.variable for block in task.people.blocks] == ["prompt", "response"]


def test_everything_simulated_says_synthetic(demo: Path) -> None:
    for name in ("report.html", "report.md", "report.json"):
        assert "synthetic" in (demo / "report" / name).read_text("utf-8").lower(), name
    with open_study(demo) as study:
        ratings = study.ratings()
        assert all("synthetic" in subject for subject in study.subjects())
        assert {each.rater_id for each in ANNOTATORS} <= set(ratings["rater_id"])
    simulated = set(ratings["rater_id"]) - {"baseline:lexical"}
    assert len(simulated) == 6
    assert all("synthetic" in rater for rater in simulated)


def test_an_offline_grader_reads_another_wording_too(demo: Path, tmp_path: Path) -> None:
    """A variant is graded like any rubric, where it has what the grader needs."""
    out = tmp_path / "ratings.csv"
    assert main(["export", str(demo), "--out", str(out)]) == 0
    table = read_table(out)
    by_rubric = table[table["rater_kind"] == "model"].groupby("rubric")["rater_id"].unique()
    assert set(by_rubric[REWORDED]) == {STEADY, ONE_SIDED, WAVERS}
    assert not (table[table["rubric"] == REWORDED]["rater_kind"] == "human").any()


def test_a_second_demo_uses_the_first(made: Made) -> None:
    assert "already holds the" in made.said


@pytest.mark.browser
def test_the_page_and_its_print_are_short(demo: Path, browser: Browser) -> None:
    size = page_size(browser, demo / "report" / "report.html")
    assert 2_000 < size.height <= 12_000
    assert 2 < size.pages <= 15
