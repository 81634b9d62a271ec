"""The validation of a stance grader, with the numbers of the published one as its example.

People's agreement under two wordings: each on its own units, beside a second implementation.
"""

from collections.abc import Sequence

import krippendorff
import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.people.clarity import ALPHA, DIFFERENCE, FILLED, moved
from evenhand.analysis.report.files import section_of
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.request import TriedWording
from evenhand.rubrics import load_rubric
from tests.analysis.make import ratings_of, with_confidence

SIDES = Scale.from_rubric(load_rubric("stance"))


@pytest.fixture
def validation() -> pd.DataFrame:
    """110 responses, 80 of them clear to three people who agree; the grader is right on 78 of the
    80 and, having no such word, never says unclear. It is sure of .9 on the clear ones and of .76
    on the others.
    """
    people = ["3"] * 40 + ["1"] * 40 + ["U"] * 30
    grader = ["4"] * 39 + ["2"] * 40 + ["3"] + ["2"] * 30  # strength differs: it collapses away
    labels = {"ann": people, "ben": people, "cleo": people, "g": grader}
    return with_confidence(labels, [0.9] * 80 + [0.76] * 30, SIDES.categories)


def test_shares_agreement_and_confidence(validation):
    results = analyse(validation, None, [SIDES], resamples=300).results
    rows = results[results["subset"] == "all|collapsed"].set_index(["statistic", "rater_b", "at"])
    assert rows.loc[("clear_share", "", ""), "estimate"] == pytest.approx(80 / 110)
    assert rows.loc[("clear_agreement", "g", ""), "estimate"] == pytest.approx(78 / 80)
    assert rows.loc[("mean_confidence", "g", "clear"), "estimate"] == pytest.approx(0.9)
    assert rows.loc[("mean_confidence", "g", "unclear"), "estimate"] == pytest.approx(0.76)
    assert rows.loc[("clear_agreement", "g", ""), ["n_units"]].item() == 80
    assert rows.loc[("fleiss_kappa", "", ""), "estimate"] == 1


def test_an_unclear_answer_to_a_clear_unit_counts_against_the_grader():
    people, grader = ["3"] * 10 + ["1"] * 10, ["U"] * 5 + ["3"] * 5 + ["1"] * 10
    labels = {"ann": people, "ben": people, "g": grader}
    results = analyse(
        with_confidence(labels, [0.8] * 20, SIDES.categories), None, [SIDES], resamples=100
    ).results
    row = results.query("statistic == 'clear_agreement'").iloc[0]
    assert (row["estimate"], row["n_units"]) == (0.75, 20)


def test_a_rubric_without_unclear_options_has_no_such_rows(validation):
    plain = Scale("stance", SIDES.categories, affirmative=SIDES.affirmative)
    results = analyse(validation, None, [plain], resamples=50).results
    assert not results["subset"].str.endswith("|collapsed").any()


KEYS = ("1", "2", "3", "4")
SCALES = [Scale("r", KEYS, "ordinal"), Scale("r-2", KEYS, "ordinal", variant_of="r")]
OLD, NEW = ([f"u{n:03}" for n in range(*span)] for span in ((40, 100), (100, 160)))
TRIAL = {*OLD, *NEW}


def labels_of(rng: np.random.Generator, units: Sequence[str], right: float) -> pd.DataFrame:
    """Labels of three people who are right so often, and guess otherwise."""
    truth = rng.integers(0, 4, (len(units), 1))
    guess = rng.integers(0, 4, (len(units), 3))
    given = np.asarray(KEYS)[np.where(rng.random((len(units), 3)) < right, truth, guess)]
    table = ratings_of(dict(zip(("ann", "ben", "cem"), given.T, strict=True)))
    return table.assign(unit_id=np.array(units)[table["unit_id"].str[1:].astype(int)])


def study(rng: np.random.Generator, before: float = 0.5, after: float = 0.9) -> pd.DataFrame:
    """40 units before the trial, and 60 under each wording; a grader labelled some."""
    early, *arms = ([f"u{n:03}" for n in range(*span)] for span in ((40,), (40, 100), (100, 160)))
    arms_of = ((early, 0.1, "r"), (arms[0], before, "r"), (arms[1], after, "r-2"))
    parts = [labels_of(rng, units, right).assign(rubric=name) for units, right, name in arms_of]
    graded = labels_of(rng, [*arms[0], *arms[1]], 0.9).query("rater_id == 'ann'")
    grades = [graded.assign(rubric=name, rater_id="g", rater_kind="model") for name in ("r", "r-2")]
    return pd.concat([*parts, *grades], ignore_index=True)


def analysed(ratings: pd.DataFrame, raters: int = 3, **facts: object) -> Analysis:
    tried = {"r-2": TriedWording("r", OLD, NEW, raters)}
    return analyse(
        ratings, None, SCALES, resamples=200, facts=StudyFacts(rewordings=tried, **facts)
    )


def answer_of(analysis: Analysis) -> str:
    """The report's answer, with its figures between the words."""
    section = section_of(Source(analysis, ReportContext("x")), "another-wording")
    (answer,) = section.answers
    return "".join(map(str, answer.pieces))


def alpha(ratings: pd.DataFrame, rubric: str) -> float:
    own = ratings[(ratings["rater_kind"] == "human") & (ratings["rubric"] == rubric)]
    table = own[own["unit_id"].isin(TRIAL)].pivot_table(
        index="rater_id", columns="unit_id", values="label", aggfunc="first"
    )
    return krippendorff.alpha(table.astype(float).to_numpy(), level_of_measurement="ordinal")


def test_each_wording_has_its_own_units_and_no_earlier_ones(rng):
    ratings = study(rng)
    rows = analysed(ratings).results.set_index(["statistic", "at"])
    for name in ("r", "r-2"):
        row = rows.loc[(ALPHA, name)]
        assert row["estimate"] == pytest.approx(alpha(ratings, name))
        assert row["n_units"] == 60
    difference = rows.loc[(DIFFERENCE, "r-2")]
    assert difference["rubric"] == "r"
    assert difference["n_units"] == 120
    assert difference["estimate"] == pytest.approx(alpha(ratings, "r-2") - alpha(ratings, "r"))
    assert 0 < difference["low"] < difference["estimate"] < difference["high"]


def test_labels_of_the_excluded_do_not_count(rng):
    ratings = study(rng)
    row = analysed(ratings, excluded={"cem": "asked to be"}).results.set_index(["statistic", "at"])
    kept = ratings[ratings["rater_id"] != "cem"]
    assert row.loc[(ALPHA, "r"), "estimate"] == pytest.approx(alpha(kept, "r"))


def test_nothing_is_said_of_wordings_that_were_not_tried(rng):
    found = analyse(study(rng), None, SCALES, resamples=200)
    assert not found.results["statistic"].isin([ALPHA, DIFFERENCE]).any()
    assert section_of(Source(found, ReportContext("x")), "another-wording") is None


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [(0.5, 0.95, "Better: "), (0.95, 0.5, "Worse: "), (0.7, 0.72, "Inconclusive")],
)
def test_the_report_says_which_wording_people_agree_better_under(rng, before, after, outcome):
    text = answer_of(analysed(study(rng, before, after)))
    assert text.startswith(outcome)
    assert "under r-2 and" in text


def test_nothing_is_decided_before_all_labels_are_in(rng):
    ratings = study(rng, 0.5, 0.95)
    text = answer_of(analysed(ratings, raters=4))
    assert text.startswith("Inconclusive")
    assert "So far 75% of the trial's labels are in" in text
    assert "under r-2 and" in text
    lacking = (ratings["unit_id"] == NEW[0]) & (ratings["rater_id"] == "cem")
    assert "So far 99%" in answer_of(analysed(ratings[~lacking]))


def test_labels_under_a_wording_that_a_unit_was_not_dealt_to_do_not_count(rng):
    ratings = study(rng)
    stray = ratings[(ratings["unit_id"].isin(OLD)) & (ratings["rater_kind"] == "human")]
    stray = stray.assign(rubric="r-2", label="1")
    every = (analysed(each).results for each in (pd.concat([ratings, stray]), ratings))
    of_trial = (ALPHA, DIFFERENCE, FILLED)
    with_them, without = (
        rows[rows["statistic"].isin(of_trial)].reset_index(drop=True) for rows in every
    )
    assert len(without) == 4
    pd.testing.assert_frame_equal(with_them, without)


def test_few_clusters_are_never_enough():
    assert moved(0.2, 0.5, 0.8, 10, 25, 1).outcome == "inconclusive"
    assert moved(0.2, 0.5, 0.8, 10, 25, 1).size == 60
    assert moved(-0.1, 0.001, 0.1, 30, 60, 1).size is None
    assert moved(np.nan, 0.0, np.nan, 30, 60, 1).size is None
