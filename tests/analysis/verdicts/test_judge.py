"""Verdicts come from bounds: what passes, what fails, and what cannot be told.

A grader that fails in a part of the sample does not pass, and the sentence names the part.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import RESULTS_KEY, Scale, Verdict, analyse
from evenhand.analysis.planning.scenarios import ScaleScenario
from evenhand.analysis.study_facts import StudyFacts
from evenhand.study.settings.analysis import OrderedWeights

TWO = Scale("tone", ("1", "2"))


@pytest.fixture
def verdict_on(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> Callable[..., Verdict]:
    """The verdict on a grader that is right with `keep`, beside humans that are so with .85."""

    def judge(grader: float | list[str], n: int = 400, humans: int = 3, **fields: object):
        truth = (rng.random(n) < 0.3).astype(int)
        labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(humans)}
        labels["g"] = grader if isinstance(grader, list) else noisy(rng, truth, 2, grader)
        ratings = make_ratings(labels, ["g"])
        found = analyse(ratings, None, [TWO], resamples=400, **fields)
        assert len(found.verdicts) == 1
        keys = set(found.results[list(RESULTS_KEY)].itertuples(index=False, name=None))
        assert {tuple(key) for key in found.verdicts[0]["evidence"]} <= keys
        return found.verdicts[0]

    return judge


def test_as_good_as_people(verdict_on: Callable) -> None:
    verdict = verdict_on(0.92)
    assert verdict["verdict"] == "may_stand_in"
    assert verdict["grader"] == "g"
    assert verdict["sentence"].startswith("g can replace a human rater on tone. It agrees")
    assert "% CI +" in verdict["sentence"]
    assert verdict["reason"] == "within the margin of 0.10"
    assert "400 units" in verdict["sentence"]
    assert "3 people" in verdict["sentence"]


def test_far_below_people(verdict_on: Callable) -> None:
    assert verdict_on(0.3)["verdict"] == "do_not_use"


@pytest.mark.parametrize("n", [20, 60, 400])
@pytest.mark.parametrize("label", ["1", "2"])
@pytest.mark.parametrize("humans", [1, 2, 3])
def test_a_constant_grader_never_passes(
    verdict_on: Callable, n: int, label: str, humans: int
) -> None:
    verdict = verdict_on([label] * n, n=n, humans=humans, margin=1.5)
    assert verdict["verdict"] == ("do_not_use" if n >= 60 else "cannot_tell")


@pytest.mark.parametrize("humans", ["ann", "ann ben"])
def test_a_good_grader_that_met_one_kind_of_unit_is_not_refused(
    humans: str, make_ratings: Callable
) -> None:
    """With few units, or few of the rarer kind, a grader that knows both may give one label."""
    for people in ("1112", "1" * 38 + "22", "1" * 95 + "2" * 5):
        labels = dict.fromkeys(humans.split(), people) | {"g": "1" * len(people)}
        found = analyse(make_ratings(labels, ["g"]), None, [TWO], resamples=100)
        (verdict,) = found.verdicts
        assert verdict["verdict"] == "cannot_tell"
        assert "no realistic number" not in verdict["sentence"].lower()


def test_a_constant_grader_does_not_pass_where_people_hardly_vary(make_ratings: Callable) -> None:
    people = {"ann": "1" * 99 + "2", "ben": "1" * 100, "g": "1" * 100}
    found = analyse(make_ratings(people, ["g"]), None, [TWO], resamples=400, margin=1.0)
    assert found.verdicts[0]["verdict"] != "may_stand_in"


def test_a_random_grader_never_passes(verdict_on: Callable) -> None:
    assert verdict_on(0.0, margin=1.5)["verdict"] != "may_stand_in"


def test_too_few_labels_say_how_many_more(verdict_on: Callable) -> None:
    verdict = verdict_on(0.85, n=150, margin=0.1)
    assert verdict["verdict"] == "cannot_tell"
    assert "Label about" in verdict["sentence"]
    assert "more units" in verdict["sentence"]
    assert verdict["reason"] == f"label about {verdict['more_clusters']} more units"


def test_perfect_agreement_on_few_clusters_is_not_enough(make_ratings: Callable) -> None:
    labels = {"ann": "12" * 20, "ben": "12" * 20, "g": "12" * 20}
    ratings = make_ratings(labels, ["g"])
    units = ratings[["unit_id"]].drop_duplicates()
    units = units.assign(cluster_id=[f"c{n // 4}" for n in range(len(units))])
    verdict = analyse(ratings, units, [TWO], resamples=200).verdicts[0]
    assert verdict["verdict"] == "cannot_tell"
    # A grader at the margin errs in 1 of 20, so that ten without an error are what it mostly shows.
    assert "Its agreement could lie more than the margin below people's" in verdict["sentence"]
    assert verdict["more_clusters"] <= 100


def test_one_person_is_no_ceiling(verdict_on: Callable) -> None:
    verdict = verdict_on(0.9, humans=1)
    assert verdict["verdict"] == "cannot_tell"
    assert "Only one person labelled" in verdict["sentence"]
    assert verdict["reason"] == "only one person labelled"


def test_a_grader_without_people(make_ratings: Callable) -> None:
    verdict = analyse(make_ratings({"g": "12" * 40}, ["g"]), None, [TWO], resamples=100).verdicts[0]
    assert verdict["verdict"] == "cannot_tell"
    assert "No person has labelled" in verdict["sentence"]


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    ("units", "unscored", "verdict", "sentence"),
    [
        (400, 80, "do_not_use", "no answer on 20% of 400 units"),
        (400, 40, "cannot_tell", "answered 90.0% of what was put to it"),
        (400, 16, "may_stand_in", "no answer on 4% of units"),
    ],
)
def test_coverage(
    make_ratings: Callable,
    noisy: Callable,
    rng: np.random.Generator,
    absent: bool,
    units: int,
    unscored: int,
    verdict: str,
    sentence: str,
) -> None:
    """A row that is missing is no more an answer than an empty one."""
    truth = rng.integers(0, 2, units)
    labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(3)}
    grader = noisy(rng, truth, 2, 0.97)
    grader[:unscored] = [""] * unscored
    ratings = make_ratings({**labels, "g": grader}, ["g"])
    if absent:
        ratings = ratings[(ratings["rater_id"] != "g") | (ratings["label"] != "")]
    found = analyse(ratings, None, [TWO], resamples=200).verdicts[0]
    assert found["verdict"] == verdict
    assert sentence in found["sentence"]
    assert ("absent" in found["sentence"]) == absent


def test_labels_that_pass_do_not_speak_for_binary_verdicts(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    """A grader that labels as people do, with probabilities far too low for the threshold."""
    truth = (rng.random(400) < 0.4).astype(int)
    labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(3)}
    labels["g"] = noisy(rng, truth, 2, 0.9)
    ratings = make_ratings(labels, ["g"])
    p = np.where(ratings["label"] == "2", 0.2, 0.1)
    ratings["p_positive"] = np.where(ratings["rater_kind"] == "model", p, np.nan)
    scale = Scale("tone", ("1", "2"), affirmative=frozenset("2"))
    verdict = analyse(ratings, None, [scale], resamples=400).verdicts[0]
    assert verdict["verdict"] == "may_stand_in"
    assert "This does not hold for its binary verdicts (difference -" in verdict["sentence"]
    assert verdict["holds_for"] == "labels"
    assert verdict["reason"] == "labels only: its binary verdicts fall short"


@pytest.mark.parametrize("look", [0, 15])
def test_no_sentence_has_a_bound_that_does_not_exist(
    make_ratings: Callable, rng: np.random.Generator, look: int
) -> None:
    """A constant label with probabilities that another threshold may read better, at a look for
    which no level is left, or hardly any.
    """
    truth = rng.random(36) < 0.4
    people = {f"h{k}": np.where(truth ^ (rng.random(36) < 0.06), "2", "1") for k in range(3)}
    ratings = make_ratings({**people, "g": "1" * 36}, ["g"])
    p = np.clip(0.1 + 0.25 * truth + rng.normal(0, 0.1, 36), 0, 0.49)
    ratings["p_positive"] = np.where(ratings["rater_kind"] == "model", np.tile(p, 4), np.nan)
    scale = Scale("tone", ("1", "2"), affirmative=frozenset("2"))
    facts = StudyFacts(looks={"tone": look})
    verdict = analyse(ratings, None, [scale], resamples=200, facts=facts).verdicts[0]
    assert verdict["verdict"] == "cannot_tell"
    assert "—" not in verdict["sentence"]
    assert "100% CI" not in verdict["sentence"]
    assert ("make a report when you want a verdict" in verdict["sentence"]) == (look == 0)


def test_where_nothing_can_be_said_nothing_is_said_to_hold(make_ratings: Callable) -> None:
    found = analyse(
        make_ratings({"ann": "1" * 50, "ben": "1" * 50, "g": "1" * 50}, ["g"]), None, [TWO]
    )
    assert found.verdicts[0]["verdict"] == "cannot_tell"
    assert "Not known" not in found.verdicts[0]["sentence"]


def test_a_difference_of_nothing_has_no_side(make_ratings: Callable) -> None:
    """Each of the three is wrong on ten units of their own, so all kappas are alike."""

    def wrong_from(start: int) -> str:
        flipped = {*range(start, start + 5), *range(start + 50, start + 55)}
        return "".join("12"[(unit >= 50) ^ (unit in flipped)] for unit in range(100))

    labels = {"ann": wrong_from(0), "ben": wrong_from(5), "g": wrong_from(10)}
    found = analyse(make_ratings(labels, ["g"]), None, [TWO], resamples=200)
    assert "difference 0.00," in found.verdicts[0]["sentence"]


def test_people_who_may_hardly_agree_are_asked_for_more_labels(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 40)
    labels = {f"h{k}": noisy(rng, truth, 2, 0.5) for k in range(3)} | {"g": "12" * 20}
    found = analyse(make_ratings(labels, ["g"]), None, [TWO], resamples=100).verdicts[0]
    assert found["verdict"] == "cannot_tell"
    assert "not clear that people agree" in found["sentence"]
    assert found["more_clusters"] > 0


@pytest.mark.slow
def test_nobody_is_told_off_beside_people_who_hardly_agree(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 900)
    labels = {f"h{k}": noisy(rng, truth, 2, 0.2) for k in range(3)}
    labels["g"] = noisy(rng, rng.integers(0, 2, 900), 2, 0.5)
    found = analyse(make_ratings(labels, ["g"]), None, [TWO], resamples=100, margin=0.01).verdicts[
        0
    ]
    assert found["verdict"] == "cannot_tell"
    assert "People hardly agree" in found["sentence"]


@pytest.mark.parametrize(("ordered", "least"), [("linear", "0.17"), ("quadratic", "0.31")])
def test_people_must_agree_as_much_on_a_scale_as_on_two_categories(
    make_ratings: Callable, rng: np.random.Generator, ordered: OrderedWeights, least: str
) -> None:
    raters = ScaleScenario(1, 5, 0.15, 3.0).draw(rng, (1, 300), 3, graders=1)[:, 0]
    labels = dict(zip(("h0", "h1", "h2", "g"), raters, strict=True))
    scale = Scale("r", ("0", "1", "2", "3", "4"), "ordinal")
    ratings = make_ratings(labels, ["g"])
    found = analyse(ratings, None, [scale], resamples=10, ordered=ordered).verdicts[0]
    assert f"{least} is needed" in found["sentence"]


@pytest.fixture
def judged(make_ratings: Callable, noisy: Callable, rng: np.random.Generator) -> Callable:
    """The verdict on a grader that is inverted on the first units, the slice `rare`."""

    def judge(
        n: int, inverted: int, of_slice: int, slices: tuple[str, ...], **fields: float
    ) -> Verdict:
        truth = rng.integers(0, 2, n)
        labels = {f"h{k}": noisy(rng, truth, 2, 0.85) for k in range(3)}
        seen = np.where(np.arange(n) < inverted, 1 - truth, truth)
        ratings = make_ratings(labels | {"g": noisy(rng, seen, 2, 0.93)}, ["g"])
        names = ratings["unit_id"].drop_duplicates()
        where = np.where(np.arange(n) < of_slice, "rare", "usual")
        units = pd.DataFrame({"unit_id": names, "cluster_id": names, "slice": where})
        found = analyse(ratings, units, [TWO], resamples=200, slices=slices, **fields)
        return found.verdicts[0]

    return judge


def test_a_failing_part_fails(judged: Callable) -> None:
    verdict = judged(1000, 50, 50, ("slice",))
    assert verdict["verdict"] == "only_with_correction"
    assert "not for slice=rare" in verdict["sentence"]
    assert "every part" not in verdict["limits"]
    assert verdict["reason"] == "falls short for slice=rare"


def test_labels_are_not_promised_to_help_who_fails_in_a_part(judged: Callable) -> None:
    """On the whole it lies within the margin by its estimate, and may or may not be below."""
    verdict = judged(1000, 80, 80, ("slice",), margin=0.08, min_information=1)
    assert verdict["verdict"] == "cannot_tell"
    assert "Its agreement could lie more than the margin below" in verdict["sentence"]
    assert "It would probably fail: label about" in verdict["sentence"]
    assert not verdict["promising"]


def test_nothing_is_known_of_parts_that_nobody_looked_at(judged: Callable) -> None:
    verdict = judged(1000, 50, 50, ())
    assert verdict["verdict"] == "may_stand_in"
    assert "nor in every part of the sample" in verdict["limits"]


def test_parts_that_are_looked_at_and_fine_are_named(judged: Callable) -> None:
    verdict = judged(1000, 0, 400, ("slice",))
    assert verdict["verdict"] == "may_stand_in"
    assert "holds in each part looked at (slice=rare, slice=usual)" in verdict["sentence"]


def test_a_part_that_is_too_small_is_not_known(judged: Callable) -> None:
    verdict = judged(600, 12, 12, ("slice",))
    assert verdict["verdict"] == "may_stand_in"
    assert (
        "within the margin in slice=usual; too few labels to tell in 1 of 2" in verdict["sentence"]
    )


@pytest.mark.thorough
def test_good_grader_are_seldom_said_to_fail_in_a_part(
    make_ratings: Callable, noisy: Callable
) -> None:
    """Synthetic: 8 parts of 40 units, as good as people; a false alarm in 2.5% at most."""
    alarms = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        truth = (rng.random(320) < 0.3).astype(int)
        labels = {f"h{k}": noisy(rng, truth, 2, 0.7) for k in range(3)}
        ratings = make_ratings(labels | {"g": noisy(rng, truth, 2, 0.7)}, ["g"])
        names = ratings["unit_id"].drop_duplicates()
        units = pd.DataFrame({"unit_id": names, "part": [f"p{n % 8}" for n in range(320)]})
        verdict = analyse(ratings, units, [TWO], resamples=10, slices=("part",)).verdicts[0]
        alarms += "not for part" in verdict["sentence"]
    assert alarms <= 4  # more than 4 of 40 at 2.5% happen once in 300
