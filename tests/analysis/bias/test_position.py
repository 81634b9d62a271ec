"""The side of the pair: whom raters favour, and a grader's own lean.

The order of presentation: flips, moves to the side shown first, and the exact test.
"""

from dataclasses import replace

import numpy as np
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, AnalysisSettings
from evenhand.study.settings.sections import changed
from tests.analysis.bias.samples import RESPONSE, SEES_C, audited, responses, row_of, sample
from tests.peers import stats
from tests.ratings_files import read_ratings


def test_directions_by_hand():
    """g: A on 3 of 8 units, B on 1. People: ann A A B C C C C C, ben A C B B C C C C; on average
    1 + .5 for side a, 1 + .5 for side b.
    """
    made = sample(0, pairs=8, subjects=1, people=0)
    for rater, labels in {"ann": "AABCCCCC", "ben": "ACBBCCCC"}.items():
        made.rate(rater, np.array(list(labels)), "human")
    made.rate("g", np.array(list("AAABCCCC")))
    rows = audited(made)
    assert row_of(rows, "direction_net", "g")["estimate"] == (3 - 1) / 8
    assert row_of(rows, "direction_net", "humans")["estimate"] == 0
    assert row_of(rows, "direction_net", "g")["at"] == "side a>side b"


@pytest.mark.slow
def test_a_lean_is_recovered():
    """Two of ten C turned to A (to B): the net direction moves by .2 times the share of C, and
    by little more, as the grader sees a little less sharply.
    """
    shifts = []
    for seed in range(6):
        made = sample(seed, pairs=200)
        made.rate("to a", made.turned(made.see(0.8), "C", "A", 0.2))
        made.rate("to b", made.turned(made.see(0.8), "C", "B", 0.2))
        rows = audited(made)
        for rater, sign in (("to a", 1), ("to b", -1)):
            row = row_of(rows, "bias_side", rater)
            assert min(row["low"] * sign, row["high"] * sign) > 0
            assert row_of(rows, "bias_side_p", rater)["estimate"] < 0.05
            shifts.append(sign * row["estimate"])
    assert np.mean(shifts) == pytest.approx(0.2 * SEES_C, abs=0.015)


def test_leanings_turn_sides_round():
    """Where the second leaning stands on side a, a lean to it is a lean to A there."""
    made = sample(2)
    made.rate("g", made.turned(made.see(0.8), "C", "A", 0.3))
    plain = row_of(audited(made), "bias_side", "g")
    groups = dict.fromkeys(GROUP_COLUMNS, "")
    turned = replace(made, units=made.units.assign(**groups))
    turned.units[list(GROUP_COLUMNS)] = ["con", "pro"]
    settings = AnalysisSettings(leanings={"left": ["pro"], "right": ["con"]})
    row = row_of(audited(turned, settings=settings), "bias_side", "g")
    assert row["at"] == "left>right"
    assert row["estimate"] == pytest.approx(-plain["estimate"])
    assert (row["low"], row["high"]) == pytest.approx((-plain["high"], -plain["low"]))


def test_groups_and_parts():
    """A group is told on whichever side it stands; of two that only meet each other, one."""
    made = sample(3, pairs=60)
    first = np.arange(len(made.units)) // 4 % 2 == 0
    made.units["prompt_a_group"] = np.where(first, "cats", "dogs")
    made.units["prompt_b_group"] = np.where(first, "dogs", "cats")
    made.units["partisan"] = np.where(np.arange(len(made.units)) < 80, "True", "False")
    made.rate("g", np.where(first, "A", "B"))
    rows = audited(made)
    row = row_of(rows, "direction_net", "g", "group=cats")
    assert (row["estimate"], row["at"]) == (1.0, "cats>dogs")
    assert not any("group=dogs" in key for key in rows.rows)
    subsets = {key[4] for key in rows.rows if key[1] == "bias_side"}
    assert subsets == {"all", "partisan=True", "partisan=False"}
    assert row_of(rows, "direction_net", "g", "subject=other-0")["n_units"] == 60


def test_a_rubric_on_responses_compares_the_two_responses():
    """A quarter of the no on side a turned to yes: .25 x P(no) more yes on a than on b."""
    made = responses(4, pairs=500)
    on_a = made.units["side"].to_numpy() == "a"
    made.rate("g", made.turned(made.see(0.8), "no", "yes", np.where(on_a, 0.25, 0.0)))
    made.rate("even", made.turned(made.see(0.8), "no", "yes", 0.25))
    rows = audited(made, RESPONSE)
    shift = 0.25 * (0.8 * 0.7 + 0.2 * 0.5)
    row = row_of(rows, "bias_side", "g", "all|binary")
    assert row["low"] < shift < row["high"]
    assert (row["n_units"], row["n_clusters"]) == (1000, 500)
    even = row_of(rows, "bias_side", "even", "all|binary")
    assert even["low"] < 0 < even["high"]
    given = made.units.assign(unit=made.units["unit_id"].str[:-2])
    own = made.ratings[made.ratings["rater_id"] == "g"].set_index("unit_id")["label"]
    given["yes"] = (own.loc[made.units["unit_id"]] == "yes").to_numpy(dtype=float)
    wide = given.pivot(index="unit", columns="side", values="yes")
    net = row_of(rows, "direction_net", "g", "all|binary")["estimate"]
    assert net == pytest.approx((wide["a"] - wide["b"]).mean())


def test_without_sides_there_is_no_direction():
    made = sample(5, pairs=20)
    made.rate("g", made.see(0.8))
    rows = audited(made, Scale("", ("A", "B", "C"), affirmative=frozenset({"C"})))
    assert not rows.rows


@pytest.mark.parametrize(
    ("leanings", "says"),
    [
        ({"left": ["x"]}, "name the two"),
        ({"left": ["x"], "right": ["x", "y"]}, "'x' on both sides"),
        ({"left": ["pro"], "right": ["con"]}, "need the units columns prompt_a_group"),
    ],
)
def test_bad_leanings(leanings, says):
    made = sample(6, pairs=6)
    with pytest.raises(InputError, match=says):
        audited(made, settings=changed(AnalysisSettings(), {"leanings": leanings}))


def test_units_without_a_leaning_take_no_part():
    made = sample(9, pairs=40)
    made.units[list(GROUP_COLUMNS)] = ["pro", "con"]
    made.units.loc[::2, "prompt_b_group"] = "neither"
    made.rate("g", made.see(0.8))
    settings = AnalysisSettings(leanings={"left": ["pro"], "right": ["con"]})
    assert row_of(audited(made, settings=settings), "bias_side", "g")["n_units"] == 80


def test_leanings_that_no_unit_has():
    made = sample(7, pairs=6)
    made.units[list(GROUP_COLUMNS)] = ["x", "y"]
    settings = AnalysisSettings(leanings={"left": ["pro"], "right": ["con"]})
    with pytest.raises(InputError, match="no item has a group of each leaning"):
        audited(made, settings=settings)


LLMBAR = {
    "GPT-4/Vanilla": (419, 20, 10),
    "GPT-4/CoT": (419, 32, 13),
    "PaLM2/Vanilla": (415, 83, 32),
    "Falcon/CoT": (416, 362, 1),
}
"""Counted with a spreadsheet's filters in llmbar.csv: units labelled in both orders, and of the
flips those to the output shown first and to the second."""


@pytest.fixture(scope="module")
def llmbar(shared_data):
    """The audit's rows on the published graders' labels, 1 for the first output and 2 for the
    second, in the original orientation.
    """
    ratings, units = read_ratings(shared_data / "real" / "llmbar.csv")
    scale = Scale("", ("1", "2"), favours={"1": "a", "2": "b"})
    chosen = ratings[ratings["rater_id"].isin([*LLMBAR, "gold"])]
    results = analyse(chosen, units, [scale], resamples=400).results
    return results[results["statistic"].str.startswith("bias_order")]


@pytest.mark.parametrize("grader", LLMBAR)
def test_flips_on_published_labels(llmbar, grader):
    rows = llmbar[llmbar["rater_a"] == grader].set_index("statistic")
    units, first, second = LLMBAR[grader]
    flips = rows.loc["bias_order_flips"]
    assert (flips["n_units"], flips["estimate"]) == (units, (first + second) / units)
    assert flips["note"] == f"{first + second} flips"
    assert flips["low"] < flips["estimate"] < flips["high"]
    assert rows.loc["bias_order_first", "estimate"] == first / (first + second)
    assert rows.loc["bias_order", "estimate"] == pytest.approx((first - second) / units)
    p = stats.binomtest(first, first + second).pvalue
    assert f"exact p {p:.4g}" in rows.loc["bias_order", "note"]
    # Two planned questions each, side and order: Holm at most doubles the smaller p.
    assert rows.loc["bias_order_p", "estimate"] == pytest.approx(min(1.0, 2 * p), rel=0.51)


def test_a_known_pull_to_the_first():
    """Of the C three of ten go to the side shown first; in both orders the rest is noise."""
    made = sample(4, pairs=300)
    for order, first in (("ab", "A"), ("ba", "B")):
        made.rate("pulled", made.turned(made.see(0.8), "C", first, 0.3), order=order)
        made.rate("even", made.see(0.8), order=order)
    rows = audited(made)
    pulled, even = (row_of(rows, "bias_order", rater) for rater in ("pulled", "even"))
    assert pulled["low"] < 0.3 * SEES_C < pulled["high"]
    assert abs(even["estimate"]) < 0.05
    assert row_of(rows, "bias_order_p", "pulled")["estimate"] < 0.001
    assert row_of(rows, "bias_order_first", "even")["estimate"] == pytest.approx(0.5, abs=0.1)


def test_one_order_is_no_question():
    made = sample(3, pairs=20)
    made.rate("g", made.see(0.8), order="ab")
    assert not any(key[1].startswith("bias_order") for key in audited(made).rows)
