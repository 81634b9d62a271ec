"""Rankings: verdict first, then price among those that pass; and who is never recommended.

Whom to use, or what to label first: a sentence that keeps every condition of the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import DecisionSettings, Scale, StudyFacts, analyse, rank_graders
from evenhand.analysis.all_rubrics import RubricTask, analyse_rubric, judge_across_rubrics
from evenhand.analysis.bootstrap.influence import ALPHA, level_of_look
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.significance import holm
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.notes import Remark
from evenhand.analysis.request import Request
from evenhand.analysis.verdicts.evidence import NON_INFERIORITY, View
from evenhand.analysis.verdicts.judge import judge_graders
from evenhand.analysis.verdicts.ranking import Candidate, recommend, recommendations
from evenhand.analysis.verdicts.wording import JUDGEMENTS
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.make import analyse_labels, assert_verdict, noisy, people_of, ratings_of
from tests.ratings_files import read_ratings

TWO = Scale("tone", ("1", "2"), affirmative=frozenset({"1"}))


def ranked(rng, graders, prices, n=400):
    """The ranking of graders given by how often they are right, beside three people at .85."""
    truth = (rng.random(n) < 0.4).astype(int)
    labels = people_of(rng, truth, 0.85)
    labels |= {name: noisy(rng, truth, 2, keep) for name, keep in graders.items()}
    facts = StudyFacts(prices={("tone", name): usd for name, usd in prices.items()})
    found = analyse_labels(labels, TWO, list(graders), resamples=400, facts=facts)
    return rank_graders(found.results, found.verdicts)["tone"]


@pytest.mark.slow
def test_the_cheapest_of_those_that_pass_leads(rng):
    graders = {"dear": 0.95, "cheap": 0.92, "poor": 0.2}
    found = ranked(rng, graders, {"dear": 30.0, "cheap": 2.0, "poor": 0.1})
    assert [each.verdict["grader"] for each in found] == ["cheap", "dear", "poor"]
    assert [each.verdict["verdict"] for each in found] == ["can_replace"] * 2 + ["do_not_use"]
    assert found[0].usd == 2.0


def test_a_threshold_that_wins_elsewhere_is_named(rng):
    """A tuned threshold and what is compared at it, as calibration gives them."""
    truth = (rng.random(400) < 0.4).astype(int)
    labels = people_of(rng, truth, 0.85)
    labels["g"] = noisy(rng, truth, 2, 0.55)
    ratings, request = validate_ratings(ratings_of(labels)), Request(None, AnalysisSettings())
    found = analyse_rubric(RubricTask(TWO, ratings, [], request, judge=True, verify=None))
    assert found.verdicts[0]["verdict"] != "can_replace"
    rows, matrix = found.rows, encode(combine_readings(ratings, TWO), TWO)
    known = rows.compared["g", "all", ""].bounds
    clear = {"low": 0.6, "estimate": 0.7, "high": 0.8}
    known = replace(known, above_baseline=known.above_baseline | clear, people=known.people | clear)

    def judged(code, low):
        rows.rows = {k: v for k, v in rows.rows.items() if "threshold" not in k[1]}
        where = {"rater_a": "humans", "rater_b": "g", "subset": "all|binary", "at": "kappa"}
        tuned = Interval(0.12, 0.1, 0.2)
        rows.add("threshold_recommended", tuned, (400, 400), note=Remark(code), **where)
        difference = known.difference | {"low": low, "estimate": 0.0, "high": 0.05}
        view = View(bounds=replace(known, difference=difference, clusters_to_pass=None))
        rows.compared["g", "all|binary", "held_out"] = view
        rule = DecisionSettings()
        return dict(judge_graders(rows, matrix, rule=rule, cluster_noun="item")[0])

    passed = judged("tuned", -0.05)
    assert_verdict(passed, "can_replace_at_threshold", "at threshold 0.12")
    assert judged("default", -0.05)["verdict"] != "can_replace_at_threshold"
    undecided = judged("tuned", -0.15)
    assert_verdict(undecided, "inconclusive", "With thresholds chosen on other items")


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [
        pytest.param("dices350.csv", marks=pytest.mark.thorough),
        pytest.param("newsroom.csv", marks=pytest.mark.thorough),
        "llmbar.csv",
    ],
)
def test_constant_and_random_graders_are_never_recommended(shared_data, file):
    """On every real data set at hand: each constant category, and random labels at two rates."""
    ratings, _ = read_ratings(shared_data / "real" / file)
    people = ratings[ratings["rater_kind"] == "human"]
    if people["rater_id"].nunique() > 6:
        busiest = people["rater_id"].value_counts().index[:6]
        people = people[people["rater_id"].isin(busiest)]
    categories = tuple(sorted(set(people["label"]) - {""}))
    units = sorted(set(people["unit_id"]))
    rng = np.random.default_rng(5)
    shares = people["label"].value_counts(normalize=True).reindex(categories).to_numpy()
    graders = {f"always {key}": [key] * len(units) for key in categories}
    graders |= {
        "random, even": rng.choice(categories, len(units)).tolist(),
        "random, as annotators": rng.choice(categories, len(units), p=shares).tolist(),
    }
    made = pd.DataFrame(graders, index=pd.Index(units, name="unit_id")).reset_index()
    made = made.melt("unit_id", var_name="rater_id", value_name="label").assign(rater_kind="model")
    given = people[["unit_id", "rater_id", "rater_kind", "label"]]
    both = pd.concat([given, made], ignore_index=True).assign(rubric="r")
    found = analyse(both, None, [Scale("r", categories)], resamples=300)
    assert len(found.verdicts) == len(graders)
    assert {each["verdict"] for each in found.verdicts} <= set(JUDGEMENTS[3:])


def test_where_people_differ_more_than_the_grader_does_with_them_the_rubric_is_first(rng):
    """People may agree too little to judge the grader, which agrees with all of them better."""
    truth = (rng.random(90) < 0.5).astype(int)
    people = people_of(rng, truth, 0.77)
    labels = {**people, "g": noisy(rng, truth, 2, 1.0)}
    found = analyse_labels(labels, TWO, resamples=400, min_people_kappa=0.6)
    ranking = rank_graders(found.results, found.verdicts)
    (candidate,) = ranking["tone"]
    assert candidate.verdict["verdict"] == "inconclusive"
    assert candidate.difference["low"] > 0
    assert candidate.limit == "people_differ_more"
    (advice,) = recommendations(ranking)
    assert "Make the wording of tone clearer before looking for a better grader" in advice.sentence


def candidate(grader, verdict, price=None, **more):
    given = {"rubric": "r", "grader": grader, "verdict": verdict, "reason": "a reason"}
    given |= {"holds_for": "", "threshold": None, "promising": False}
    given |= {"more_clusters": 0, "next": None}
    estimate = more.pop("difference", 0.0)
    figures = {"estimate": estimate, "low": estimate - 0.2, "high": estimate + 0.2}
    cost = None if price is None else {"estimate": price}
    return Candidate(given | more, figures, None, None, None, cost)


PASS, AT = "can_replace", "can_replace_at_threshold"


@pytest.mark.parametrize(
    ("ranked", "said"),
    [
        ([candidate("g", PASS)], "Use g for r."),
        ([candidate("g", PASS, holds_for="labels")], "Use g for r, for its labels only."),
        ([candidate("g", PASS, holds_for="binary")], "Use g for r, for the binary label."),
        ([candidate("g", AT, holds_for="binary", threshold=0.1312)],
         "Use g for r at threshold 0.131, for the binary label."),
        ([candidate("g", "agrees_with_reference", holds_for="binary", threshold=0.25)],
         "Use g for r at threshold 0.25: its binary labels agree with the reference."),
        ([candidate("g", PASS, 1.5), candidate("dear", PASS, 12.0, difference=0.05)],
         "Use g for r: the cheapest that passes. Also passing: dear."),
        ([candidate("g", PASS, 1.5, difference=0.05), candidate("worse", PASS, 12.0)],
         "Use g for r. Also passing: worse."),
        ([candidate("g", PASS), candidate("k", AT, holds_for="binary", threshold=0.2)],
         "Use g for r. Also passing: k (binary label at threshold 0.2)."),
        # What would rather be ruled out is no reason to label more.
        ([candidate("bad", "inconclusive", more_clusters=300),
          candidate("near", "inconclusive", more_clusters=500, promising=True)],
         "No grader recommended yet for r: a reason to decide on near."),
        ([candidate("half", "only_with_correction"),
          candidate("near", "inconclusive", more_clusters=50, promising=True)],
         "No grader recommended yet for r: a reason to decide on near. "
         "Until then use half only with correction (a reason)."),
        ([candidate("bad", "inconclusive")], "No grader recommended yet for r: a reason (bad)."),
        ([candidate("bad", "do_not_use")], "No grader for r. The closest is bad: a reason."),
    ],
)  # fmt: skip
def test_a_recommendation_keeps_the_conditions(ranked, said):
    found = recommend(ranked, "r")
    assert found.sentence == said


# --- The error of a wrong pass over several rubrics: Holm's procedure -----------------------------
@dataclass
class OfGraders:
    """A rubric whose graders pass where their p is at most the error; stands in for an analysis."""

    p: Sequence[float]
    error: float = ALPHA
    judging: bool = True
    verdicts: list[dict] = field(default_factory=list)

    def __post_init__(self):
        self.verdicts = [{"grader": str(n), "sentence": ""} for n in range(len(self.p))]

    def judge(self, error):
        self.error = error

    @property
    def passing(self):
        return {str(n) for n, p in enumerate(self.p) if p <= self.error}


def test_with_one_grader_each_it_is_holm_s_procedure(rng):
    for _ in range(300):
        p = rng.beta(0.4, 8.0, rng.integers(2, 7))
        found = [OfGraders([each]) for each in p]
        judge_across_rubrics(found)
        assert [bool(each.passing) for each in found] == (holm(p) <= ALPHA).tolist()


def by_closed_testing(p):
    """What is rejected where every intersection of hypotheses is tested by Bonferroni over the
    rubrics in it, each by its smallest p (Marcus, Peritz & Gabriel 1976).
    """
    names = [(rubric, n) for rubric, own in enumerate(p) for n in range(len(own))]
    kept = set()
    for chosen in product([False, True], repeat=len(names)):
        inside = [name for name, is_in in zip(names, chosen, strict=True) if is_in]
        rubrics = {rubric for rubric, _ in inside}
        if inside and min(p[r][n] for r, n in inside) > ALPHA / len(rubrics):
            kept |= set(inside)
    return [{str(n) for n in range(len(own)) if (r, n) not in kept} for r, own in enumerate(p)]


def test_with_several_graders_nothing_passes_that_a_closed_test_keeps(rng):
    """Bounds hold for all graders of a rubric at once, so each p counts once for a rubric."""
    for _ in range(150):
        p = [rng.beta(0.3, 8.0, rng.integers(1, 3)) for _ in range(rng.integers(2, 5))]
        found = [OfGraders(each) for each in p]
        judge_across_rubrics(found)
        for own, closed in zip(found, by_closed_testing(p), strict=True):
            assert own.passing <= closed


SCALES = [Scale(name, ("1", "2")) for name in ("clear", "close", "poor")]


@pytest.fixture
def ratings(rng):
    """Three rubrics on which the grader is clearly good, nearly as good, and useless."""

    def of(scale, units, keep):
        truth = rng.integers(0, 2, units)
        labels = people_of(rng, truth, 0.9)
        labels["g"] = noisy(rng, truth, 2, keep)
        return ratings_of(labels).assign(rubric=scale.name)

    sizes = ((600, 0.97), (300, 0.9), (200, 0.3))
    return pd.concat([of(scale, *size) for scale, size in zip(SCALES, sizes, strict=True)])


def judged(ratings, names, **more):
    scales = [each for each in SCALES if each.name in names.split()]
    own = ratings[ratings["rubric"].isin(names.split())]
    return analyse(own, None, scales, resamples=50, **more)


def deciding(found):
    return {row["rubric"]: row for row in found.rows if row["statistic"] == NON_INFERIORITY}


def verdicts(found):
    return {each["rubric"]: each["verdict"] for each in found.verdicts}


@pytest.mark.slow
def test_rubrics_that_do_not_survive_are_inconclusive(ratings):
    alone = deciding(judged(ratings, "close"))["close"]
    neither = judged(ratings, "close poor", across_rubrics="holm", margin=0.001)
    half = deciding(neither)["close"]
    assert half["deciding"].alpha == level_of_look(1, 0, ALPHA / 2)
    margin = -(alone["low"] + half["low"]) / 2
    assert half["low"] < -margin < alone["low"], "it passes at one level and not at the other"

    plain = judged(ratings, "clear close poor", margin=margin)
    assert verdicts(plain)["close"] == "can_replace"
    assert {row["deciding"].alpha for row in deciding(plain).values()} == {level_of_look(1)}

    # The clear one passes at half of the error, so that the close one has it whole.
    both = judged(ratings, "clear close", margin=margin, across_rubrics="holm")
    assert verdicts(both) == {"clear": "can_replace", "close": "can_replace"}
    assert deciding(both)["close"]["low"] == alone["low"]

    # The poor one does not pass, so that two count once the clear one has passed at a third.
    every = judged(ratings, "clear close poor", margin=margin, across_rubrics="holm")
    assert verdicts(every)["clear"] == "can_replace"
    assert verdicts(every)["close"] == "inconclusive"
    row, sentence = deciding(every)["close"], every.verdicts[1]["sentence"]
    assert (row["low"], row["deciding"].alpha) == (half["low"], half["deciding"].alpha)
    assert "98.8% CI" in sentence
    assert "At the level of one rubric it would pass. Over 3 rubrics together (Holm)" in sentence
    assert "(Holm)" not in every.verdicts[0]["sentence"] + every.verdicts[2]["sentence"]
    keys = ["rubric", "statistic", "rater_a", "rater_b", "subset", "at"]
    order = every.results[keys].merge(plain.results[keys].reset_index(), on=keys)["index"]
    assert order.is_monotonic_increasing, "rows stay in their places"


@pytest.mark.slow
def test_a_verdict_against_a_reference_is_held_to_it_too(ratings):
    bars = {"reference": "h0", "reference_kappa": 0.99}
    found = judged(ratings, "close poor", across_rubrics="holm", **bars)
    levels = {
        row["rubric"]: row["deciding"].alpha
        for row in found.rows
        if row["statistic"] == "reference_kappa"
    }
    assert set(levels.values()) == {level_of_look(1, 0, ALPHA / 2)}


def test_one_rubric_is_judged_as_without(ratings):
    found = judged(ratings, "close", across_rubrics="holm")
    assert deciding(found)["close"]["deciding"].alpha == level_of_look(1)
    assert "error held over all rubrics together (Holm)" in found.rule
