"""The side of the pair, the order of presentation, and what is said of them."""

from dataclasses import replace

import numpy as np
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bias.audit import _spanning, findings, flagged, screening_sentence
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Remark
from evenhand.errors import InputError
from evenhand.study.settings.analysis import GROUP_COLUMNS, AnalysisSettings
from evenhand.study.settings.sections import changed
from tests.analysis.bias.samples import PAIR, RESPONSE, SEES_C, audited, responses, row_of, sample
from tests.peers import stats
from tests.ratings_files import read_ratings

LEANINGS = {"left": ["pro"], "right": ["con"]}
LED = AnalysisSettings(leanings=LEANINGS)


def test_directions_by_hand():
    """g: A on 3 of 8 units, B on 1. People on average: 1 + .5 for side a, 1 + .5 for side b."""
    made = sample(0, pairs=8, subjects=1, people=0)
    for rater, labels in {"ann": "AABCCCCC", "ben": "ACBBCCCC"}.items():
        made.rate(rater, np.array(list(labels)), "human")
    made.rate("g", np.array(list("AAABCCCC")))
    rows = audited(made)
    assert row_of(rows, "direction_net", "g")["estimate"] == (3 - 1) / 8
    assert row_of(rows, "direction_net", "humans")["estimate"] == 0
    assert row_of(rows, "direction_net", "g")["at"] == "side a>side b"


def test_leanings_turn_sides_round():
    """Where the second leaning stands on side a, a lean to it is a lean to A there."""
    made = sample(2)
    made.rate("g", made.turned(made.see(0.8), "C", "A", 0.3))
    plain = row_of(audited(made), "bias_side", "g")
    turned = replace(made, units=made.units.assign(**dict.fromkeys(GROUP_COLUMNS, "")))
    turned.units[list(GROUP_COLUMNS)] = ["con", "pro"]
    row = row_of(audited(turned, settings=LED), "bias_side", "g")
    assert row["at"] == "left>right"
    assert row["estimate"] == pytest.approx(-plain["estimate"])
    assert (row["low"], row["high"]) == pytest.approx((-plain["high"], -plain["low"]))


def test_directions_in_parts():
    made = sample(3, pairs=60)
    made.units["partisan"] = np.where(np.arange(len(made.units)) < 80, "True", "False")
    made.rate("g", np.where(np.arange(len(made.units)) // 4 % 2 == 0, "A", "B"))
    rows = audited(made)
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


@pytest.mark.parametrize(
    ("leanings", "groups", "says"),
    [
        ({"left": ["x"]}, [], "name the two"),
        ({"left": ["x"], "right": ["x", "y"]}, [], "'x' on both sides"),
        (LEANINGS, [], "need the units columns prompt_a_group"),
        (LEANINGS, ["x", "y"], "no item has a group of each leaning"),
    ],
)
def test_bad_leanings(leanings, groups, says):
    made = sample(6, pairs=6)
    made.units[list(GROUP_COLUMNS)[: len(groups)]] = groups
    with pytest.raises(InputError, match=says):
        audited(made, settings=changed(AnalysisSettings(), {"leanings": leanings}))


def test_units_without_a_leaning_take_no_part():
    made = sample(9, pairs=40)
    made.units[list(GROUP_COLUMNS)] = ["pro", "con"]
    made.units.loc[::2, "prompt_b_group"] = "neither"
    made.rate("g", made.see(0.8))
    assert row_of(audited(made, settings=LED), "bias_side", "g")["n_units"] == 80


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
    """The audit's rows on the published graders' labels, in the original orientation."""
    ratings, units = read_ratings(shared_data / "real" / "llmbar.csv")
    scale = Scale("", ("1", "2"), favours={"1": "a", "2": "b"})
    chosen = ratings[ratings["rater_id"].isin([*LLMBAR, "gold"])]
    results = analyse(chosen, units, [scale], resamples=400).results
    return results[results["statistic"].str.startswith("bias_order")]


@pytest.mark.journey
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


def test_without_sides_there_is_no_direction_and_one_order_is_no_question():
    made = sample(3, pairs=20)
    made.rate("g", made.see(0.8), order="ab")
    assert not audited(made, replace(PAIR, unit="", favours={})).rows
    assert not any(key[1].startswith("bias_order") for key in audited(made).rows)


def rows_with(*given, counts=(400, 100)):
    rows = ResultRows("")
    for statistic, subset, at, interval, p in given:
        place = {"rater_a": "humans", "rater_b": "g", "subset": subset, "at": at}
        if statistic == "bias_order":
            place |= {"rater_a": "g", "rater_b": ""}
        rows.add(statistic, interval, counts, **place)
        if p is not None:
            rows.add(f"{statistic}_p", Interval.point(p), counts, **place)
    return rows


SIDE, LENGTH = ("bias_side", "all", "left>right"), ("bias_length", "all", "response_a_words")
NAN = float("nan")
TOO_FEW = Interval(0.3, NAN, NAN, (Remark("too_few_clusters"),))
FOUND = "by 0.20 (95% CI +0.15 to +0.25; corrected p 0.002; 400 items in 100 clusters)."


@pytest.mark.parametrize(("place", "sentence"), [
    (SIDE, "side of the pair: it leans to left rather than right"),
    (("bias_side", "partisan=True|binary", "left>right"),
     "side of the pair where partisan=True: it is more often affirmative on left than on"),
    (("bias_order", "all", ""), "order: it favours the side shown first, by 0.20"),
    (LENGTH, "it leans towards the longer response, for each doubling"),
    (("bias_length", "all|binary", "response_words"), "for each doubling of the response"),
    (("bias_self_preference", "all|binary", "meta"), "subjects of its own family (meta) than"),
    (("bias_slice", "topic=tax|binary", ""), "slice topic=tax: it is more often affirmative"),
])  # fmt: skip
def test_what_was_found(place, sentence):
    [found] = findings(rows_with((*place, Interval(0.2, 0.15, 0.25), 0.002)).rows.values())
    assert found.status == "found"
    assert found.sentence.startswith("g, ")
    assert sentence in found.sentence
    assert found.sentence.endswith(FOUND)


OTHERWISE = {
    "the other way round": (
        *(SIDE, Interval(-0.2, -0.25, -0.15), 0.002, "found"),
        "it leans to right rather than left, beyond what annotators' labels explain, by 0.20",
    ),
    "nothing found says how much could be there": (
        *(SIDE, Interval(0.02, -0.04, 0.08), 0.4, "nothing_found"),
        "g, side of the pair: no bias detected (any bias is at most 0.08, 95% CI; 400 items in "
        "100 clusters).",
    ),
    "what could be there may be more than is tolerated": (
        *(SIDE, Interval(0.02, -0.04, 0.3), 0.4, None),
        "the sample is too small to exclude one of 0.1 (any bias is at most 0.30",
    ),
    # After correction the p is .2: not found, and the sentence does not say so either.
    "an interval without zero is not enough": (
        *(LENGTH, Interval(0.05, 0.01, 0.09), 0.2, "nothing_found", "any bias is at most 0.09"),
    ),
    "noise that may explain a shift is named": (
        ("bias_length", "all|binary", "response_words"),
        Interval(0.1, -0.05, 0.15, (Remark("noise_may_explain", (-0.01,)),)),
        *(0.7, "nothing_found"),
        "g, length: bias or noise, these labels do not say which. It is more often affirmative "
        "for each doubling of the response than annotators' labels explain, by +0.10 if all "
        "labels are equally noisy. If noise changes with the length as annotators' agreement does, "
        "the shift is -0.01 (95% CI of both -0.05 to +0.15; 400 items in 100 clusters).",
    ),
    "too few clusters": (
        *(SIDE, TOO_FEW, None, None),
        "g, side of the pair: inconclusive (too few clusters for an interval).",
    ),
    "annotators agree by chance": (
        *(SIDE, Interval(NAN, NAN, NAN, (Remark("people_agree_by_chance"),)), None, None),
        "inconclusive (annotators agree with one another no better than chance).",
    ),
}


def test_the_reading_without_bounds_gives_the_remark():
    some, most = Remark("resamples_undefined", (1, 9)), Remark("most_resamples_undefined", (5, 9))
    both = _spanning(Interval(0.1, 0.0, 0.2, (some,)), Interval(0.1, NAN, NAN, (most,)))
    assert np.isnan([both.low, both.high]).all()
    assert both.remarks == (most,)


@pytest.mark.parametrize("case", OTHERWISE)
def test_what_is_said_of_a_shift(case):
    place, interval, p, status, sentence = OTHERWISE[case]
    [found] = findings(rows_with((*place, interval, p)).rows.values())
    assert status is None or found.status == status
    assert sentence in found.sentence
    assert not sentence.startswith("g, ") or found.sentence == sentence


def test_only_what_lies_wholly_beyond_the_bound_is_flagged():
    rows = rows_with(
        ("bias_side", "all", "a>b", Interval(0.2, 0.12, 0.28), 0.001),
        ("bias_length", "all", "response_a_words", Interval(0.2, 0.05, 0.35), 0.001),
        ("bias_order", "all", "", Interval(-0.3, -0.35, -0.25), 0.001),
        ("bias_slice", "topic=tax|binary", "", Interval(0.3, 0.2, 0.4), 0.2),
    )
    assert {one.row["statistic"] for one in flagged(rows, "g")} == {"bias_side", "bias_order"}
    assert {one.row["statistic"] for one in flagged(rows, "g", 0.2)} == {"bias_order"}
    assert flagged(rows, "someone else") == []


def test_slices_without_a_finding_share_a_sentence():
    rows = rows_with(
        ("bias_slice", "topic=tax|binary", "", Interval(0.0, -0.1, 0.1), 0.9),
        ("bias_slice", "topic=war|binary", "", Interval(0.1, -0.1, 0.31), 0.3),
        ("bias_slice", "topic=sea|binary", "", TOO_FEW, None),
    )
    assert screening_sentence(findings(rows.rows.values())) == (
        "g, slices: no bias detected in 2 of 3 slices (any bias is at most 0.31, the bound for "
        "topic=war); 1 of 3 slices too small to tell."
    )


@pytest.mark.thorough
def test_an_unbiased_grader_is_left_alone():
    """Every question at once, nothing to find: at most a few of 30 samples may say otherwise."""
    blamed = 0
    for seed in range(30):
        made = sample(seed, pairs=80)
        for column in ("response_a_words", "response_b_words"):
            made.units[column] = made.rng.integers(50, 500, len(made.units))
        made.units["topic"] = made.rng.choice(list("xyz"), len(made.units))
        for order in ("ab", "ba"):
            made.rate("anthropic:claude-opus-5", made.see(0.7), order=order)
        found = findings(audited(made, slices=["topic"], resamples=200).rows.values())
        assert {each.row["statistic"] for each in found} == {
            *("bias_side", "bias_order", "bias_length", "bias_self_preference", "bias_slice")
        }
        blamed += any(each.status == "found" for each in found)
    assert blamed <= 6  # two corrected families at .05 each: 3 expected, over 6 has a chance of 3%
