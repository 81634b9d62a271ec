"""What answers that a grader did not give could change about its verdict."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from evenhand.analysis import Analysis, Scale, analyse
from evenhand.analysis.bootstrap.influence import level_of_look
from evenhand.analysis.verdicts.comparison import _furthest
from evenhand.analysis.verdicts.evidence import IF_WRONG, NON_INFERIORITY, NON_INFERIORITY_PEOPLE
from tests.analysis.make import (
    analyse_labels,
    assert_verdict,
    coded_of,
    noisy,
    people_of,
    ratings_of,
    row_of,
)

TWO = Scale("tone", ("1", "2"))


@pytest.fixture
def labels(rng: np.random.Generator) -> dict[str, list[str]]:
    """Three annotators and a grader that is right a little less often than they."""
    truth = rng.integers(0, 2, 400)
    people = people_of(rng, truth, 0.93)
    return {**people, "g": noisy(rng, truth, 2, 0.91), "truth": [str(n + 1) for n in truth]}


def without_half_of_its_errors(labels: Mapping[str, list[str]]) -> list[str]:
    """The grader's labels, every other wrong one left out."""
    pairs = zip(labels["g"], labels["truth"], strict=True)
    wrong = [n for n, (own, true) in enumerate(pairs) if own != true]
    left_out = set(wrong[::2])
    return ["" if n in left_out else own for n, own in enumerate(labels["g"])]


def judged(labels: Mapping[str, list[str]], **more: object) -> Analysis:
    graders = [name for name in labels if name.startswith("g")]
    given = {name: own for name, own in labels.items() if name != "truth"}
    return analyse_labels(given, TWO, graders, resamples=100, **more)


def test_a_pass_that_rests_on_missing_answers_says_so(labels):
    found = judged({**labels, "g": without_half_of_its_errors(labels)})
    (verdict,) = found.verdicts
    worst = row_of(found, IF_WRONG, "humans", "g", at="")
    assert worst["low"] <= -0.1 < row_of(found, NON_INFERIORITY, "humans", "g", at="")["low"]
    words = "It would not pass if every missing answer were wrong (difference -"
    assert_verdict(verdict, "may_stand_in", words, f"{worst['n_units']} units")
    assert verdict["reason"] == "within the margin of 0.10; not if missing answers were wrong"
    assert ["tone", IF_WRONG, "humans", "g", "all", ""] in verdict["evidence"]


@pytest.mark.parametrize("scope", ["these", "like_these"])
def test_the_worst_case_is_that_of_the_same_labels_given_wrong(labels, scope):
    """As a second implementation: the label that fewer annotators gave, written into the table."""
    answered = without_half_of_its_errors(labels)
    people = zip(*(labels[f"h{k}"] for k in range(3)), strict=True)
    other = ["2" if given.count("1") > 1 else "1" for given in people]
    filled = [own or wrong for own, wrong in zip(answered, other, strict=True)]
    found = judged({**labels, "g": answered}, scope=scope)
    given = judged({**labels, "g": filled}, scope=scope)
    deciding = NON_INFERIORITY if scope == "these" else NON_INFERIORITY_PEOPLE
    worst, same = (
        row_of(found, IF_WRONG, "humans", "g", at=""),
        row_of(given, deciding, "humans", "g", at=""),
    )
    for end in ("n_units", "estimate", "low", "high"):
        assert worst[end] == pytest.approx(same[end], abs=1e-12), end
    assert not any(row["statistic"] == IF_WRONG for row in given.rows), "nothing is missing there"
    assert "missing answer" not in given.verdicts[0]["sentence"]


def test_a_pass_that_survives_says_so(labels):
    found = judged({**labels, "g": ["", *labels["truth"][1:]]})
    (verdict,) = found.verdicts
    words = "It would pass even if every missing answer were wrong (difference"
    assert words in verdict["sentence"]
    assert verdict["reason"] == "within the margin of 0.10"


def test_it_spends_no_level(labels):
    found = judged({**labels, "g": without_half_of_its_errors(labels)})
    for statistic in (NON_INFERIORITY, IF_WRONG):
        (level,) = {row["deciding"] for row in found.rows if row["statistic"] == statistic}
        assert (level.comparisons, level.alpha) == (1, level_of_look(1))


def test_it_is_there_at_a_threshold_chosen_on_other_units(labels, rng):
    ratings = ratings_of({name: labels[name] for name in ("h0", "h1", "h2", "g")})
    truth = np.array(labels["truth"]) == "2"
    p = np.clip(0.1 + 0.2 * truth + rng.normal(0, 0.05, 400), 0, 0.49)
    model = ratings["rater_kind"] == "model"
    ratings["p_positive"] = np.where(model, np.tile(p, 4), np.nan)
    ratings.loc[model, "label"] = np.where(p >= 0.5, "2", "1")
    absent = ratings[model].index[:8]
    scale = Scale("tone", ("1", "2"), affirmative=frozenset("2"))
    found = analyse(ratings.drop(absent), None, [scale], resamples=100)
    (verdict,) = found.verdicts
    assert verdict["verdict"] == "may_stand_in_at_threshold"
    worst = row_of(found, IF_WRONG, "humans", "g", at="held_out")
    assert worst["n_units"] == 400
    assert f"were wrong (difference {worst['estimate']:+.2f}" in verdict["sentence"]


@pytest.mark.parametrize(
    ("level", "furthest"),
    [
        # The one that fewest chose; of two that nobody chose the one that is commoner elsewhere.
        ("nominal", [2, 0, 2, 1]),
        # The further end; from the middle the one nearer to what is said elsewhere.
        ("ordinal", [2, 0, 2, 2]),
    ],
)
def test_a_wrong_answer_is_the_furthest_from_the_unit_s_annotators(level, furthest):
    said = [[0, 0], [2, 1], [1, 1], [2, 0], [2, 2], [2, 2]]
    view = coded_of(np.array([[*own, -1] for own in said]), level)
    units = np.array([True] * 4 + [False] * 2)
    assert _furthest(view, [0, 1], units, np.ones(6)).tolist() == furthest


def test_a_unit_without_an_annotator_is_no_missing_answer():
    """Nor is one that was never put to the grader."""
    people = {f"h{k}": "12" * 30 + " " * 4 for k in range(3)}
    ratings = ratings_of({**people, "g": "12" * 30 + "  11"})
    ratings = ratings[ratings["label"].str.strip() != ""]
    found = analyse(ratings, None, [TWO], resamples=100)
    assert not any(row["statistic"] == IF_WRONG for row in found.rows)
