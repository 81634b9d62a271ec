"""The units where graders and people differ most, and what graders did and cost.

Unscored units are shown as coverage and counted as disagreement in a line of their own.

The validation of a stance grader, with the numbers of the published one as its example.

People's agreement under two wordings: each on its own units, beside a second implementation.
"""

import krippendorff
import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.bootstrap.intervals import share_bounds
from evenhand.analysis.people import disagreements as module
from evenhand.analysis.report.files import section_of
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.request import TriedWording
from evenhand.rubrics import load_rubric
from tests.analysis.make import ratings_of, row_of, rows_of, with_confidence
from tests.peers import proportion

ORDINAL = Scale("", tuple("12345"), "ordinal", affirmative=frozenset("45"))


def found(columns, scale=ORDINAL, p=""):
    """Labels by rater, a letter a unit and a dash for none; raters that begin with m are models."""
    ratings = ratings_of(columns, ["m"], {"m": [int(n) / 10 for n in p]} if p else None)
    ratings["unit_id"] = "u" + ratings["unit_id"].str[1:].astype(int).astype(str)
    return analyse(ratings, None, [scale], resamples=10)


def listed(analysis):
    """Units with the size that their results row says; all of them have theirs."""
    results = analysis.results.set_index(list(analysis.results.columns[:6]))["estimate"]
    found = [each for each in analysis.disagreements if each.key]
    assert [each.size for each in found] == [results.loc[each.key] for each in found]
    return [(each.unit_id, each.size) for each in found]


def test_the_widest_come_first_and_are_bounded():
    """Against 1 and 1 the grader's 5 is the whole scale; people's own distance is taken off."""
    analysis = found({"ann": "11112233", "ben": "11152233", "m": "54321222"})
    # u3: the grader's 2 is 1/4 from 1 and 3/4 from 5, on average 1/2; people are 1 apart: -1/2.
    assert listed(analysis) == [("u0", 1.0), ("u1", 0.75), ("u2", 0.5), ("u4", 0.25), ("u6", 0.25)]
    # u7 is as far as u6, and has no row: the results hold the very widest only.
    assert [each.unit_id for each in analysis.disagreements][module.MOST_WITH_ROWS :] == ["u7"]
    assert len(rows_of(analysis, "disagreement")) == len(listed(analysis)) == module.MOST_WITH_ROWS


def test_what_one_person_alone_labelled_comes_after_what_two_agree_on():
    analysis = found({"ann": "112", "ben": "-12", "m": "524"})
    assert listed(analysis) == [("u2", 0.5), ("u1", 0.25), ("u0", 1.0)]


def test_parts_are_what_the_units_table_says():
    ratings = ratings_of({"ann": "11", "m": "55"}, ["m"])
    names = ["u00000", "u00001"]
    units = pd.DataFrame({"unit_id": names, "subject": ["s", ""], "topic": ["tax", "war"]})
    analysis = analyse(ratings, units, [ORDINAL], resamples=10, slices=["topic"])
    parts = {each.unit_id: dict(each.parts) for each in analysis.disagreements}
    assert list(parts.values()) == [{"subject": "s", "topic": "tax"}, {"topic": "war"}]


def test_more_people_and_a_surer_probability_break_ties():
    """All three are 1 apart: u2 was labelled by two annotators; u1's probability is further off."""
    analysis = found({"ann": "111", "ben": "--1", "m": "555"}, p="689")
    assert [each.unit_id for each in analysis.disagreements] == ["u2", "u1", "u0"]
    assert analysis.disagreements[0].people == {"ann": "1", "ben": "1"}


def test_agreement_people_alone_and_unscored_units_give_none():
    assert not found({"ann": "123", "m": "123"}).disagreements
    assert not found({"ann": "123", "ben": "321"}).disagreements
    assert not found({"ann": "1--", "m": "-55"}).disagreements


def test_usage_becomes_rows_and_unknown_cost_stays_unknown():
    ratings = ratings_of({"m:priced": "1" * 9, "m:free": "1" * 9}, ["m:priced", "m:free"])
    usage = pd.DataFrame(
        [("m:priced", "", 12, 9, 0.125), ("m:free", "", 9, 9, np.nan), ("m:priced", "x", 5, 5, 7)],
        columns=["rater_id", "rubric", "attempts", "labelled", "cost_usd"],
    )
    results = analyse(ratings, None, [ORDINAL], resamples=10, facts=StudyFacts(usage=usage)).results
    rows = rows_of(results, "cost_usd").set_index("rater_b")
    assert rows.loc["m:priced", "estimate"] == pytest.approx(0.125)
    assert np.isnan(rows.loc["m:free", "estimate"])
    assert rows.loc["m:free", "note"] == "not known"


@pytest.fixture
def results():
    """40 units; the grader leaves 10 unscored, has no row for 5, agrees on 20 of 25."""
    people = "1" * 40
    grader = "1" * 20 + "2" * 5 + "x" * 10 + "-" * 5
    ratings = ratings_of({"ann": people, "ben": "12" * 20, "g": grader})
    refused = ratings["label"] == "x"
    ratings.loc[refused, "label"] = ""
    ratings["unscored_reason"] = ["refused" if r else "" for r in refused]
    ratings.loc[ratings[refused].index[:3], "unscored_reason"] = "truncated"
    return analyse(ratings, None, [Scale("", ("1", "2"))], resamples=100).results


def test_coverage_is_of_what_people_labelled(results):
    row = row_of(results, "coverage", "", "g")
    assert row["estimate"] == pytest.approx(25 / 40)
    assert row["n_units"] == 40
    assert row["note"] == "unscored: absent 5, refused 7, truncated 3"
    # Near Clopper and Pearson's bounds where units are clusters.
    inner, outer = (proportion.proportion_confint(25, 40, method=how) for how in ("wilson", "beta"))
    assert outer[0] < row["low"] < inner[0] + 0.5 / 40
    assert inner[1] - 0.5 / 40 < row["high"] < outer[1]


def test_full_coverage_has_a_lower_bound(results):
    row = row_of(results, "coverage", "", "ann")
    assert (row["estimate"], row["high"]) == (1.0, 1.0)
    assert row["low"] == pytest.approx(0.025 ** (1 / 40))
    # Four subjects a pair: nothing shows that a pair is more than one piece of evidence.
    assert share_bounds(np.full(40, 4.0), np.full(40, 4.0))[1] == pytest.approx(row["low"])
    assert share_bounds(np.zeros(40), np.ones(40)) == (0.0, 0.0, pytest.approx(1 - row["low"]))


SIDES = Scale.from_rubric(load_rubric("stance"))


def test_shares_agreement_and_confidence():
    """80 of 110 responses are clear to people; the grader is right on 78, and never unclear."""
    people = ["3"] * 40 + ["1"] * 40 + ["U"] * 30
    grader = ["4"] * 39 + ["2"] * 40 + ["3"] + ["2"] * 30  # strength differs: it collapses away
    labels = {"ann": people, "ben": people, "cleo": people, "g": grader}
    ratings = with_confidence(labels, [0.9] * 80 + [0.76] * 30, SIDES.categories)
    results = analyse(ratings, None, [SIDES], resamples=20).results
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
    ratings = with_confidence(labels, [0.8] * 20, SIDES.categories)
    results = analyse(ratings, None, [SIDES], resamples=20).results
    row = results.query("statistic == 'clear_agreement'").iloc[0]
    assert (row["estimate"], row["n_units"]) == (0.75, 20)


KEYS = ("1", "2", "3", "4")
SCALES = [Scale("r", KEYS, "ordinal"), Scale("r-2", KEYS, "ordinal", variant_of="r")]
OLD, NEW = ([f"u{n:03}" for n in range(*span)] for span in ((40, 100), (100, 160)))


def labels_of(rng, units, right):
    """Labels of three people who are right so often, and guess otherwise."""
    truth = rng.integers(0, 4, (len(units), 1))
    guess = rng.integers(0, 4, (len(units), 3))
    given = np.asarray(KEYS)[np.where(rng.random((len(units), 3)) < right, truth, guess)]
    table = ratings_of(dict(zip(("ann", "ben", "cem"), given.T, strict=True)))
    return table.assign(unit_id=np.array(units)[table["unit_id"].str[1:].astype(int)])


def study(rng, before=0.5, after=0.9):
    """40 units before the trial, and 60 under each wording; a grader labelled some."""
    arms_of = (([f"u{n:03}" for n in range(40)], 0.1, "r"), (OLD, before, "r"), (NEW, after, "r-2"))
    parts = [labels_of(rng, units, right).assign(rubric=name) for units, right, name in arms_of]
    graded = labels_of(rng, [*OLD, *NEW], 0.9).query("rater_id == 'ann'")
    grades = [graded.assign(rubric=name, rater_id="g", rater_kind="model") for name in ("r", "r-2")]
    return pd.concat([*parts, *grades], ignore_index=True)


def analysed(ratings, raters=3, **facts):
    known = StudyFacts(rewordings={"r-2": TriedWording("r", OLD, NEW, raters)}, **facts)
    return analyse(ratings, None, SCALES, resamples=60, facts=known)


def answer_of(analysis):
    """The report's answer, with its figures between the words."""
    (answer,) = section_of(Source(analysis, ReportContext("x")), "another-wording").answers
    return "".join(map(str, answer.pieces))


def alpha(ratings, rubric):
    own = ratings[(ratings["rater_kind"] == "human") & (ratings["rubric"] == rubric)]
    own = own[own["unit_id"].isin([*OLD, *NEW])]
    table = own.pivot(index="rater_id", columns="unit_id", values="label")
    return krippendorff.alpha(table.astype(float).to_numpy(), level_of_measurement="ordinal")


@pytest.mark.journey
def test_each_wording_has_its_own_units_and_no_earlier_ones(rng):
    ratings = study(rng)
    rows = analysed(ratings).results.set_index(["statistic", "at"])
    for name in ("r", "r-2"):
        row = rows.loc[(module.TRIAL_ALPHA, name)]
        assert row["estimate"] == pytest.approx(alpha(ratings, name))
        assert row["n_units"] == 60
    difference = rows.loc[(module.TRIAL_DIFFERENCE, "r-2")]
    assert difference["rubric"] == "r"
    assert difference["n_units"] == 120
    assert difference["estimate"] == pytest.approx(alpha(ratings, "r-2") - alpha(ratings, "r"))
    assert 0 < difference["low"] < difference["estimate"] < difference["high"]


@pytest.mark.journey
@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (0.5, 0.95, "Better: "),
        pytest.param(0.95, 0.5, "Worse: ", marks=pytest.mark.slow),
        (0.7, 0.72, "Inconclusive"),
    ],
)
def test_the_report_says_which_wording_people_agree_better_under(rng, before, after, outcome):
    text = answer_of(analysed(study(rng, before, after)))
    assert text.startswith(outcome)
    assert "under r-2 and" in text


@pytest.mark.slow
def test_nothing_is_decided_before_all_labels_are_in(rng):
    ratings = study(rng, 0.5, 0.95)
    text = answer_of(analysed(ratings, raters=4))
    assert text.startswith("Inconclusive")
    assert "So far 75% of the trial's labels are in" in text
    assert "under r-2 and" in text
    lacking = (ratings["unit_id"] == NEW[0]) & (ratings["rater_id"] == "cem")
    assert "So far 99%" in answer_of(analysed(ratings[~lacking]))


@pytest.mark.slow
def test_labels_under_a_wording_that_a_unit_was_not_dealt_to_do_not_count(rng):
    ratings = study(rng)
    stray = ratings[(ratings["unit_id"].isin(OLD)) & (ratings["rater_kind"] == "human")]
    stray = stray.assign(rubric="r-2", label="1")
    every = (analysed(each).results for each in (pd.concat([ratings, stray]), ratings))
    own = (rows[rows["statistic"].str.startswith("rewording_")] for rows in every)
    with_them, without = (rows.reset_index(drop=True) for rows in own)
    assert len(without) == 4
    pd.testing.assert_frame_equal(with_them, without)
