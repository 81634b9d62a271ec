"""The units where graders and people differ most, and what graders did and cost."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.people.disagreements import MOST_COUNTED, MOST_LISTED

ORDINAL = Scale("", tuple("12345"), "ordinal", affirmative=frozenset("45"))
NOMINAL = Scale("", tuple("12345"))


def found(columns: dict[str, str], scale: Scale = ORDINAL, p: str = "") -> Analysis:
    """Labels by rater, a letter a unit and a dot for none; raters that begin with m are models."""
    rows = [
        {
            "unit_id": f"u{n}",
            "rater_id": rater,
            "rater_kind": "model" if rater.startswith("m") else "human",
            "label": label,
            "p_positive": int(p[n]) / 10 if rater.startswith("m") and p else None,
        }
        for rater, given in columns.items()
        for n, label in enumerate(given)
        if label != "."
    ]
    return analyse(pd.DataFrame(rows), None, [scale], resamples=10)


def listed(analysis: Analysis) -> list[tuple[str, float]]:
    """Units with the size that their results row says; all of them have theirs."""
    results = analysis.results.set_index(list(analysis.results.columns[:6]))["estimate"]
    found = [each for each in analysis.disagreements if each.key]
    assert [each.size for each in found] == [results.loc[each.key] for each in found]
    return [(each.unit_id, each.size) for each in found]


def test_the_widest_come_first_and_are_bounded() -> None:
    """Against 1 and 1 the grader's 5 is the whole scale; people's own distance is taken off."""
    analysis = found({"ann": "11112233", "ben": "11152233", "m": "54321222"})

    # u3: the grader's 2 is 1/4 from 1 and 3/4 from 5, on average 1/2; people are 1 apart: -1/2.
    assert listed(analysis) == [
        ("u0", 1.0),
        ("u1", 0.75),
        ("u2", 0.5),
        ("u4", 0.25),
        ("u6", 0.25),
    ]
    assert len(listed(analysis)) == MOST_COUNTED
    # u7 is as far as u6, and has no row: the results hold the very widest only.
    assert [each.unit_id for each in analysis.disagreements][MOST_COUNTED:] == ["u7"]
    rows = analysis.results
    assert (rows["statistic"] == "disagreement").sum() == MOST_COUNTED


def test_a_long_list_ends() -> None:
    n = MOST_LISTED + 9
    assert len(found({"ann": "1" * n, "ben": "1" * n, "m": "5" * n}).disagreements) == MOST_LISTED


def test_what_one_person_alone_labelled_comes_after_what_two_agree_on() -> None:
    analysis = found({"ann": "112", "ben": ".12", "m": "524"})

    assert listed(analysis) == [("u2", 0.5), ("u1", 0.25), ("u0", 1.0)]


def test_parts_are_what_the_units_table_says() -> None:
    rows = [
        {"unit_id": f"u{n}", "rater_id": who, "rater_kind": kind, "label": label}
        for n in range(2)
        for who, kind, label in (("ann", "human", "1"), ("m", "model", "5"))
    ]
    units = pd.DataFrame({"unit_id": ["u0", "u1"], "subject": ["s", ""], "topic": ["tax", "war"]})
    analysis = analyse(pd.DataFrame(rows), units, [ORDINAL], resamples=10, slices=["topic"])
    parts = {each.unit_id: dict(each.parts) for each in analysis.disagreements}
    assert parts == {"u0": {"subject": "s", "topic": "tax"}, "u1": {"topic": "war"}}


def test_on_a_nominal_scale_every_other_category_is_as_far() -> None:
    assert listed(found({"ann": "111", "ben": "112", "m": "251"}, NOMINAL)) == [
        ("u0", 1.0),
        ("u1", 1.0),
    ]


def test_more_people_and_a_surer_probability_break_ties() -> None:
    """All three are 1 apart: u2 was labelled by two people; u1's probability is further off."""
    analysis = found({"ann": "111", "ben": "..1", "m": "555"}, p="689")

    assert [each.unit_id for each in analysis.disagreements] == ["u2", "u1", "u0"]
    assert analysis.disagreements[0].people == {"ann": "1", "ben": "1"}


def test_agreement_people_alone_and_unscored_units_give_none() -> None:
    assert not found({"ann": "123", "m": "123"}).disagreements
    assert not found({"ann": "123", "ben": "321"}).disagreements
    assert not found({"ann": "1..", "m": ".55"}).disagreements


def test_usage_becomes_rows_and_unknown_cost_stays_unknown() -> None:
    ratings = pd.DataFrame(
        [
            {"unit_id": f"u{n}", "rater_id": rater, "rater_kind": "model", "label": "1"}
            for n in range(9)
            for rater in ("m:priced", "m:free")
        ]
    )
    usage = pd.DataFrame(
        {
            "rater_id": ["m:priced", "m:free", "m:priced"],
            "rubric": ["", "", "another"],
            "attempts": [12, 9, 5],
            "labelled": [9, 9, 5],
            "cost_usd": [0.125, np.nan, 7.0],
        }
    )
    results = analyse(ratings, None, [ORDINAL], resamples=10, facts=StudyFacts(usage=usage)).results
    rows = results.set_index(["statistic", "rater_b"])

    assert rows.loc[("cost_usd", "m:priced"), "estimate"] == pytest.approx(0.125)
    assert np.isnan(rows.loc[("cost_usd", "m:free"), "estimate"])
    assert rows.loc[("cost_usd", "m:free"), "note"] == "not known"
