"""The units where graders and people differ most, and what graders did and cost.

Unscored units are shown as coverage and counted as disagreement in a line of their own.
"""

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.bootstrap.intervals import share_bounds
from evenhand.analysis.people.disagreements import MOST_COUNTED, MOST_LISTED
from tests.analysis.make import ratings_of, row_of, rows_of

ORDINAL = Scale("", tuple("12345"), "ordinal", affirmative=frozenset("45"))
NOMINAL = Scale("", tuple("12345"))


def found(columns: dict[str, str], scale: Scale = ORDINAL, p: str = "") -> Analysis:
    """Labels by rater, a letter a unit and a dash for none; raters that begin with m are models."""
    ratings = ratings_of(columns, ["m"], {"m": [int(n) / 10 for n in p]} if p else None)
    ratings["unit_id"] = "u" + ratings["unit_id"].str[1:].astype(int).astype(str)
    return analyse(ratings, None, [scale], resamples=10)


def listed(analysis: Analysis) -> list[tuple[str, float]]:
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
    assert len(listed(analysis)) == MOST_COUNTED
    # u7 is as far as u6, and has no row: the results hold the very widest only.
    assert [each.unit_id for each in analysis.disagreements][MOST_COUNTED:] == ["u7"]
    rows = analysis.results
    assert (rows["statistic"] == "disagreement").sum() == MOST_COUNTED


def test_a_long_list_ends():
    n = MOST_LISTED + 9
    assert len(found({"ann": "1" * n, "ben": "1" * n, "m": "5" * n}).disagreements) == MOST_LISTED


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


def test_on_a_nominal_scale_every_other_category_is_as_far():
    assert listed(found({"ann": "111", "ben": "112", "m": "251"}, NOMINAL)) == [
        ("u0", 1.0),
        ("u1", 1.0),
    ]


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
def results() -> pd.DataFrame:
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
    inner, outer = (proportion_confint(25, 40, method=how) for how in ("wilson", "beta"))
    assert outer[0] < row["low"] < inner[0] + 0.5 / 40
    assert inner[1] - 0.5 / 40 < row["high"] < outer[1]


def test_full_coverage_has_a_lower_bound(results):
    row = row_of(results, "coverage", "", "ann")
    assert (row["estimate"], row["high"]) == (1.0, 1.0)
    assert row["low"] == pytest.approx(0.025 ** (1 / 40))
    # Four subjects a pair: nothing shows that a pair is more than one piece of evidence.
    assert share_bounds(np.full(40, 4.0), np.full(40, 4.0))[1] == pytest.approx(row["low"])
    assert share_bounds(np.zeros(40), np.ones(40)) == (0.0, 0.0, pytest.approx(1 - row["low"]))


def test_pairs_that_are_lost_whole_count_as_one(rng):
    lost = rng.random(200) < 0.1
    whole = share_bounds(np.where(lost, 0.0, 4.0), np.full(200, 4.0))
    once = share_bounds(np.where(lost, 0.0, 1.0), np.ones(200))
    assert whole == pytest.approx(once, abs=0.002)
    apart = share_bounds(rng.binomial(4, 1 - lost.mean(), 200) * 1.0, np.full(200, 4.0))
    assert apart[2] - apart[1] < 0.7 * (whole[2] - whole[1])


def test_unscored_counts_as_disagreement(results):
    row = row_of(results, "observed_agreement_unscored_as_disagreement", "humans", "g")
    # With ann 20 of 40; ben alternates 1, 2: 10 of the first 20, 2 of the next 5.
    assert row["estimate"] == pytest.approx((20 / 40 + 12 / 40) / 2)
    assert row["n_units"] == 40
    pair = row_of(results, "observed_agreement", "ann", "g")
    assert pair["estimate"] == pytest.approx(20 / 25)
    assert pair["n_units"] == 25
