"""The demo: a whole synthetic study, whose report must recover what was put in."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.demo import PRICES, SEED, make_demo
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table
from harness.demo.raters import ANNOTATORS, GRADERS
from harness.demo.responses import demo_responses
from harness.page_size import page_size
from tests.commands import Run
from tests.harness.demo.expected import expected_agreement, truth_distribution

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With fewer resamples than the demo has, which are most of its time."""
    folder = tmp_path_factory.mktemp("demo") / "study"
    make_demo("pairs", folder, lambda *_: None)
    change_config(folder, {"analysis": {"resamples": 200}})
    assert main(["demo", str(folder), "--no-app"]) == 0
    return folder


@pytest.fixture(scope="module")
def results(demo: Path) -> pd.DataFrame:
    table = read_table(demo / "report" / "results.csv")
    for column in ("estimate", "low", "high"):
        table[column] = pd.to_numeric(table[column])
    return table


def test_the_report_recovers_the_known_agreement(demo: Path, results: pd.DataFrame) -> None:
    with open_study(demo) as study:
        truth = demo_responses(study.store.pairs(), SEED).truth
        sampled = truth[truth["unit_id"].isin(study.units("sample")["unit_id"])]
        rubrics = study.rubrics
    inside = []
    for rubric in rubrics.values():
        shares = truth_distribution(sampled, rubric)
        for one, two in itertools.combinations([*ANNOTATORS, *GRADERS], 2):
            expected = expected_agreement(one, two, rubric, shares)
            ids = {one.rater_id, two.rater_id}
            own = results[results["rater_a"].isin(ids) & results["rater_b"].isin(ids)]
            own = own[own["rubric"] == rubric.name].set_index(["statistic", "subset"])
            for statistic, subset, known in [
                ("observed_agreement", "all", expected.observed),
                ("cohen_kappa", "all", expected.kappa),
                ("observed_agreement", "all|binary", expected.binary_observed),
                ("cohen_kappa", "all|binary", expected.binary_kappa),
            ]:
                row = own.loc[[(statistic, subset)]]
                assert len(row) == 1
                inside.append(row["low"].iloc[0] <= known <= row["high"].iloc[0])
    # 3 rubrics x 10 pairs of raters x 4 figures of nominal 95% intervals, not independent
    assert len(inside) == 120
    assert sum(inside) >= 108


def test_the_shifted_grader_is_found_out(results: pd.DataFrame) -> None:
    """Its probabilities on one rubric are deflated: the fitting threshold is far below .5."""
    keys = ["rubric", "statistic", "rater_a", "rater_b", "at"]
    rows = results.set_index(keys)[["estimate", "high"]]
    found = rows.loc[[("hedging", "threshold", "humans", "synthetic:grader-shifted", "kappa")]]
    assert (found.iloc[0] < (0.3, 0.5)).all()


def test_rates_on_everything_graded_are_freed_of_the_graders_errors(results: pd.DataFrame) -> None:
    """The graders graded all 306 pairs, people 250 of them; one grader affirms far too much."""
    whole = results[results["subset"] == "all|binary"]
    rows = whole[(whole["rubric"] == "even-handedness") & (whole["at"] != "")]
    rows = rows.set_index(["statistic", "rater_b", "at"]).sort_index()
    people = rows.loc[("rate_human", "")]
    assert len(people) == 5
    for grader in ("baseline:lexical", "synthetic:grader-shifted", "synthetic:grader-strong"):
        corrected = rows.loc[("rate_ppi", grader)]
        assert set(corrected["n_units"]) == {"306"}
        assert corrected.index.tolist() == people.index.tolist()
        assert ((corrected["estimate"] - people["estimate"]).abs() < 0.04).all()
    raw = rows.loc[("rate_raw", "baseline:lexical")]
    assert (raw["low"] > people["high"]).sum() >= 3


def test_the_subjects_leanings_and_the_lexical_graders_taste_for_words_show(results):
    """The leaning subjects favour their side, by people and by graders alike. The lexical grader's
    cues weigh the length of a response; no simulated rater sees it.
    """
    own = results[results["rubric"] == "even-handedness"]
    net = own[own["statistic"] == "direction_net"].set_index(["subset", "rater_a"])
    assert set(net.loc["all", "at"]) == {"left>right"}
    for rater in ("humans", "synthetic:grader-strong", "baseline:lexical"):
        assert net.loc[("subject=synthetic-left-leaning", rater), "low"] > 0
        assert net.loc[("subject=synthetic-right-leaning", rater), "high"] < 0
    even = net.loc[("subject=synthetic-even", "humans")]
    assert even["low"] < 0 < even["high"]
    length = own[own["statistic"] == "bias_length"].set_index("rater_b")
    assert length.loc["baseline:lexical", "low"] > 0.1
    assert abs(length.loc["synthetic:grader-strong", "estimate"]) < 0.1


def test_price_against_agreement_is_seen(demo: Path, results: pd.DataFrame) -> None:
    """What each grader costs is made up, and said to be; the offline one costs nothing. Pairs cost
    twice as much: they are shown in both orders.
    """
    rows = results[results["statistic"] == "price_per_1000_units"]
    prices = {each.rater_id: PRICES[each.rater_id] for each in GRADERS}
    for rubric, found in rows.groupby("rubric"):
        grades = 2_000 if rubric == "even-handedness" else 1_000
        assert found.set_index("rater_b")["estimate"].to_dict() == pytest.approx(
            {"baseline:lexical": 0.0} | {grader: grades * each for grader, each in prices.items()}
        )
    assert rows["note"].str.endswith("synthetic").all()
    page = (demo / "report" / "report.html").read_text("utf-8")
    assert page.count("price against agreement with annotators <a") == 3


def test_everything_simulated_says_synthetic(demo: Path) -> None:
    report = demo / "report"
    for name in ("report.html", "report.md", "report.json"):
        assert "synthetic" in (report / name).read_text("utf-8").lower(), name
    assert json.loads((report / "report.json").read_text())["study"]["synthetic"] is True
    with open_study(demo) as study:
        assert all("synthetic" in subject for subject in study.subjects())
        assert "synthetic" in study.config.name
        simulated = set(study.ratings()["rater_id"]) - {"baseline:lexical"}
    assert len(simulated) == 5
    assert all("synthetic" in rater for rater in simulated)


def test_a_visitor_finds_units_to_label(demo: Path) -> None:
    from evenhand.study.desk.desk import AnnotationDesk

    with open_study(demo) as study:
        sheet = AnnotationDesk(study).next_sheet("visitor")
        assert sheet is not None
        assert sheet.total == 250 * 5 * 5


def test_a_folder_that_is_no_demo_is_left_alone(tmp_path: Path, run: Run) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert "is not empty" in run.refused("demo", tmp_path, "--no-app")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.browser
def test_the_page_and_its_print_are_short(demo: Path, browser: Browser) -> None:
    size = page_size(browser, demo / "report" / "report.html")
    assert 2_000 < size.height <= 12_000
    assert 2 < size.pages <= 15
