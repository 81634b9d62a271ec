"""The items demo: from a file of answers with a judge's labels to the verdict on both judges."""

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.cli.main import main
from evenhand.demo import ITEMS_SEED, default_folder, make_demo
from evenhand.study import open_study
from evenhand.study.tables.formats import read_table
from harness.demo.items import JUDGE, LENIENT, demo_items

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "study"
    make_demo("items", folder, lambda *progress: None)
    assert main(["demo", str(folder), "--no-app"]) == 0
    return folder


def test_the_hidden_judge_may_replace_people_and_the_lenient_one_not(demo: Path) -> None:
    report = json.loads((demo / "report" / "report.json").read_text("utf-8"))
    verdicts = {each["grader"]: each["verdict"] for each in report["verdicts"]}
    assert verdicts == {JUDGE: "can_replace", LENIENT.rater_id: "do_not_use"}
    assert report["study"]["synthetic"] is True


def test_the_report_recovers_the_judges_agreement_with_the_truth(demo: Path) -> None:
    """People's majority is nearly the truth, so the judge agrees with it nearly as often as with
    the truth.
    """
    items, truth = demo_items(ITEMS_SEED)
    shipped = read_table(Path("data/demo_items.csv"))
    assert items["response"].tolist() == shipped["response"].tolist()
    agrees = float(np.mean(shipped[JUDGE].to_numpy() == truth.to_numpy()))
    assert 0.9 < agrees < 0.97
    with open_study(demo) as study:
        ratings = study.ratings()
    own = ratings[ratings["rater_kind"] == "human"].groupby("unit_id")["label"]
    majority = own.agg(lambda labels: labels.mode()[0])
    judged = ratings[ratings["rater_id"] == JUDGE].set_index("unit_id")["label"]
    assert abs(float((judged[majority.index] == majority).mean()) - agrees) < 0.06


def test_who_answered_and_the_judge_are_no_text_of_a_unit(demo: Path) -> None:
    assert default_folder("items").name == "demo-study-items"
    with open_study(demo) as study:
        (rubric,) = study.rubrics.values()
        shown = set(rubric.variables)
        columns = set(study.store.pairs().columns)
    assert shown == {"prompt", "context", "response"}
    assert JUDGE not in columns
