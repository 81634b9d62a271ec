"""Rankings and recommendations: whom to use, and who is never recommended.

A verdict, its sentence, its cell in the grid and the recommendation never contradict each other.
"""

import re
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis import DecisionSettings, Scale, StudyFacts, analyse, rank_graders
from evenhand.analysis.all_rubrics import Analysis, judge_across_rubrics
from evenhand.analysis.bias.audit import Finding
from evenhand.analysis.bootstrap.bounds import ALPHA, level_of_look
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.injection import Attack, Outcome
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Remark, limit_shown
from evenhand.analysis.verdicts import evidence, requirements, versions, wording
from evenhand.analysis.verdicts.evidence import Answers, Bounds, People, TunedEvidence, ViewEvidence
from evenhand.analysis.verdicts.judge import Candidate, judge, recommend, recommendations
from evenhand.reporting.gate import CheckedClause, parse_rule
from tests.analysis.make import analyse_labels, assert_verdict, noisy, people_of, ratings_of
from tests.cases import one_in
from tests.ratings_files import read_ratings

TWO = Scale("tone", ("1", "2"), affirmative=frozenset({"1"}))


def ranked(rng, graders, prices, n=400):
    """The ranking of graders given by how often they are right, beside three people at .85."""
    truth = (rng.random(n) < 0.4).astype(int)
    labels = people_of(rng, truth, 0.85)
    labels |= {name: noisy(rng, truth, 2, keep) for name, keep in graders.items()}
    facts = StudyFacts(prices={("tone", name): usd for name, usd in prices.items()})
    found = analyse_labels(labels, TWO, list(graders), facts=facts)
    return rank_graders(found.results, found.verdicts)["tone"]


def best_buys(found):
    return {each.verdict["grader"] for each in found if each.best_buy}


@pytest.mark.slow
def test_the_cheapest_of_those_that_pass_leads(rng):
    graders = {"dear": 0.98, "cheap": 0.92, "worse": 0.6, "poor": 0.2, "free": 0.3}
    found = ranked(rng, graders, {"dear": 30.0, "cheap": 2.0, "worse": 9.0, "poor": 0.1})
    first = [(each.verdict["grader"], each.verdict["verdict"]) for each in found[:2]]
    assert first == [("cheap", "can_replace"), ("dear", "can_replace")]
    assert found[0].usd == 2.0
    assert best_buys(found) == {"dear", "cheap", "poor"}, "no price is known of `free`"


def test_of_two_that_cost_the_same_only_the_better_is_a_best_buy(rng):
    prices = {"good": 2.0, "poor": 2.0, "cheap": 1.0}
    found = ranked(rng, {"good": 0.95, "poor": 0.3, "cheap": 0.2, "free": 0.9}, prices, 60)
    assert best_buys(found) == {"good", "cheap"}


def test_where_people_differ_more_than_the_grader_does_with_them_the_rubric_is_first(rng):
    """People may agree too little to judge the grader, which agrees with all of them better."""
    truth = (rng.random(90) < 0.5).astype(int)
    labels = people_of(rng, truth, 0.77) | {"g": noisy(rng, truth, 2, 1.0)}
    found = analyse_labels(labels, TWO, min_people_kappa=0.6)
    ranking = rank_graders(found.results, found.verdicts)
    (candidate,) = ranking["tone"]
    assert candidate.verdict["verdict"] == "inconclusive"
    assert candidate.difference["low"] > 0
    assert candidate.people_differ_more
    (advice,) = recommendations(ranking)
    assert "Make the wording of tone clearer before looking for a better grader" in advice.sentence


def candidate(grader, verdict, price=None, **more):
    given = {"rubric": "r", "grader": grader, "verdict": verdict, "reason": "a reason"}
    given |= {"holds_for": "", "threshold": None, "promising": False, "next": None}
    given["more_clusters"] = 0
    estimate = more.pop("difference", 0.0)
    figures = {"estimate": estimate, "low": estimate - 0.2, "high": estimate + 0.2}
    cost = None if price is None else {"estimate": price}
    return Candidate(given | more, figures, None, None, None, cost)


PASS, AT = "can_replace", "can_replace_at_threshold"


@pytest.mark.parametrize(("ranked", "said"), [
    ([candidate("g", PASS)], "Use g for r."),
    ([candidate("g", PASS, holds_for="labels")], "Use g for r, for its labels only."),
    ([candidate("g", PASS, holds_for="binary")], "Use g for r, for the binary label."),
    ([candidate("g", AT, holds_for="binary", threshold=0.1312)],
     "Use g for r at threshold 0.131, for the binary label."),
    ([candidate("g", "agrees_with_reference", holds_for="binary", threshold=0.25)],
     "Use g for r at threshold 0.25: its binary labels agree with the reference."),
    ([candidate("g", PASS, 1.5), candidate("dear", PASS, 12.0, difference=0.05)],
     "Use g for r: the cheapest that passes in full. Also passing: dear."),
    ([candidate("g", PASS, 1.5, difference=0.05), candidate("worse", PASS, 12.0)],
     "Use g for r. Also passing: worse."),
    ([candidate("g", PASS), candidate("k", AT, holds_for="binary", threshold=0.2)],
     "Use g for r. Passing only in part: k (binary label at threshold 0.2)."),
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
])  # fmt: skip
def test_a_recommendation_keeps_the_conditions(ranked, said):
    assert recommend(ranked, "r").sentence == said


class OfGraders:
    """A rubric whose graders pass where their p is at most the error; stands in for an analysis."""

    view_to_judge = True

    def __init__(self, p):
        self.p, self.error = p, ALPHA
        self.verdicts = [{"grader": str(n), "sentence": ""} for n in range(len(p))]

    def judge(self, error):
        self.error = error

    @property
    def passing(self):
        return {str(n) for n, p in enumerate(self.p) if p <= self.error}


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


def deciding(found, statistic=evidence.NON_INFERIORITY):
    return {row["rubric"]: row for row in found.rows if row["statistic"] == statistic}


def verdicts(found):
    return {each["rubric"]: each["verdict"] for each in found.verdicts}


@pytest.mark.slow
def test_rubrics_that_do_not_survive_are_inconclusive(ratings):
    alone = deciding(judged(ratings, "close"))["close"]
    half = deciding(judged(ratings, "close poor", across_rubrics="holm", margin=0.001))["close"]
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
    levels = {row["deciding"].alpha for row in deciding(found, "reference_kappa").values()}
    assert levels == {level_of_look(1, 0, ALPHA / 2)}


HEADS = {
    "can_replace": "g can replace ",
    "can_replace_at_threshold": "g can replace ",
    "only_with_correction": "Use g on r only with correction",
    "inconclusive": "Inconclusive: ",
    "do_not_use": "Do not use g in place of annotators",
}
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def row(statistic, low, estimate, high, **more):
    key, interval = {"rater_b": "g", "subset": "all"}, Interval(estimate, low, high)
    return ResultRows("r").added(statistic, interval, (200, 100), rater_a="humans", **key) | more


@st.composite
def rows(draw, statistic, at, spread=0.3, **more):
    """A row about some value, its ends at some distance."""
    estimate = at + draw(st.floats(-spread, spread))
    below, above = draw(st.floats(0.001, 0.2)), draw(st.floats(0.001, 0.2))
    return row(statistic, estimate - below, estimate, estimate + above, **more)


LEVEL = Deciding(0.02, 1, 2, 0.005, margin=0.1)


@st.composite
def bounds(draw):
    return Bounds(
        draw(rows("non_inferiority", -0.05, deciding=LEVEL)),
        draw(st.none() | rows("non_inferiority_people", -0.05, deciding=LEVEL)),
        draw(rows("kappa_above_baseline", 0.3, deciding=LEVEL)),
        draw(rows("people_kappa", 0.5, deciding=LEVEL)),
        row("rarer_clusters", 0, draw(st.sampled_from([3.0, 12.0, 50.0])), 100),
        row("clusters_worth", 0, draw(st.sampled_from([15.0, 100.0])), 100),
        row("chance_within_margin", 0, draw(st.floats(0.0, 1.0)), 1),
        draw(st.none() | st.just(row("clusters_to_pass", 0, 400.0, 400))),
    )


@st.composite
def cases(draw):
    parts = st.lists(rows("part", -0.1, subset="slice=rare", deciding=LEVEL), max_size=2)
    share = draw(st.sampled_from([0.5, 0.88, 0.95, 1.0]))
    coverage = row("coverage", share - 0.03, share, min(share + 0.03, 1.0), rater_a="")
    copied = st.sampled_from([(), (("ben", 1.0),)])
    advised = rows("threshold_recommended", 0.3, 0.1, remarks=(Remark("tuned"), Remark("text")))
    case = evidence.VerdictEvidence(
        rubric="r",
        grader="g",
        rule=DecisionSettings(scope=draw(st.sampled_from(["these", "like_these"]))),
        noun=draw(st.sampled_from(["pair", "unit"])),
        people=People(draw(st.integers(0, 4)), draw(copied), min_kappa=0.2),
        answers=Answers(coverage),
        present=ViewEvidence(
            difference=draw(st.none() | rows("human_ceiling_difference", -0.05)),
            kappa=draw(st.none() | rows("cohen_kappa", 0.5)),
            bounds=draw(st.none() | bounds()),
            biases=draw(
                st.sampled_from([(), (Finding(row("bias_order", 0.25, 0.3, 0.35), None),)])
            ),
            parts=tuple(draw(parts)),
        ),
        tuned=TunedEvidence(
            kappa=draw(st.none() | rows("kappa_held_out", 0.5)),
            bounds=draw(st.none() | bounds()),
            advised=draw(st.none() | advised),
        ),
        binary=draw(st.none() | rows("human_ceiling_difference", -0.05, subset="all|binary")),
        baselines=BASELINES,
        wording_unstable=draw(st.none() | rows("stability_fleiss_kappa", 0.3, 0.1)),
        identical_graders=draw(st.sampled_from([(), ("k",)])),
    )
    return sound(case, draw(bounds())) if draw(st.booleans()) else case  # so that some pass


BASELINES = (row("cohen_kappa", 0.0, 0.0, 0.0),)


def sound(case, decided):
    """A case without any fault, whatever its bounds say."""
    difference = row("human_ceiling_difference", 0, 0.1, 0.2)
    return replace(
        case,
        people=People(3, min_kappa=0.2),
        answers=Answers(row("coverage", 1.0, 1.0, 1.0)),
        present=ViewEvidence(difference, row("cohen_kappa", 0.5, 0.6, 0.7), decided),
        wording_unstable=None,
    )


def between(low, high, above=0.5):
    """Bounds on the difference, beside people who agree; `above` a baseline by so much."""
    return Bounds(
        row("non_inferiority", low, (low + high) / 2, high, deciding=LEVEL),
        None,
        row("kappa_above_baseline", above - 0.1, above, above + 0.1, deciding=LEVEL),
        row("people_kappa", 0.5, 0.6, 0.7, deciding=LEVEL),
        row("rarer_clusters", 0, 50.0, 100),
        row("clusters_worth", 0, 100.0, 100),
        row("chance_within_margin", 0, 0.8, 1),
        None,
    )


TUNED = TunedEvidence(
    kappa=row("kappa_held_out", 0.5, 0.6, 0.7),
    bounds=between(-0.05, 0.05),
    advised=row("threshold_recommended", 0.2, 0.3, 0.4, remarks=(Remark("tuned"),)),
)
PLAIN = {
    "can_replace": (between(-0.05, 0.05), TunedEvidence()),
    "can_replace_at_threshold": (between(-0.4, -0.2), TUNED),
    "only_with_correction": (between(-0.4, -0.2), TunedEvidence()),
    "inconclusive": (between(-0.2, 0.1), TunedEvidence()),
    "do_not_use": (between(-0.4, -0.2, above=0.15), TunedEvidence()),
}


@pytest.mark.parametrize("judgement", PLAIN)
def test_each_verdict_says_one_thing(judgement):
    verdict = verdict_of(*PLAIN[judgement])
    assert verdict["verdict"] == judgement
    assert_one_thing(verdict)


def verdict_of(decided, tuned=None, people=None, **rule):
    """The verdict on a grader without any fault, whatever its bounds say."""
    about = ("r", "g", DecisionSettings(**rule), "pair", People(0), Answers(), ViewEvidence())
    case = evidence.VerdictEvidence(*about, tuned or TunedEvidence(), baselines=BASELINES)
    case = sound(case, decided)
    return judge(replace(case, people=people or case.people))


def test_every_column_by_which_annotators_differ_is_named():
    both = product(("party", "age"), ((0.6, "left,right"), (0.2, "left>right")))
    sides = [row("side_kappa", 0.1, kappa, 0.9, at=f"{name}={at}") for name, (kappa, at) in both]
    pairs = tuple(zip(sides[::2], sides[1::2], strict=True))
    people = People(3, min_kappa=0.55, within_and_across=pairs)
    found = verdict_of(between(-0.05, 0.05), people=people)
    for column in ("party", "age"):
        said = f"Sides of {column} differ (kappa 0.60 within them, 0.20 across)."
        assert_verdict(found, "inconclusive", said)


def test_what_the_interval_shows_is_said_first():
    """It is clear that the grader agrees less than annotators do; only the margin is open."""
    verdict = verdict_of(between(-0.32, -0.05))
    below = "0.05 below human agreement on r. The labels do not show whether"
    assert_verdict(verdict, "inconclusive", below, "difference -0.18, 96% CI -0.32 to -0.05")
    assert verdict["sentence"].startswith("Inconclusive: the kappa of g with annotators is at ")


@pytest.mark.parametrize(
    ("low", "high", "more"),
    [
        (-0.32, 0.01, {}),  # may be as good as people
        (-0.32, -0.05, {"min_clusters": 101}),  # too few labels for a bound to be trusted
        (-0.32, -0.05, {"min_rarer": 51}),
    ],
)
def test_what_is_not_shown_is_not_said(low, high, more):
    sentence = verdict_of(between(low, high), **more)["sentence"]
    assert sentence.startswith("Inconclusive: the labels do not show whether g can replace ")


@pytest.mark.parametrize(
    ("low", "high", "verdict", "interval", "margin"),
    [
        (-0.0973, 0.1, "can_replace", "-0.097 to +0.10", 0.1),
        (-0.1049, 0.09, "inconclusive", "-0.105 to +0.09", 0.1),
        (-0.4, -0.1004, "only_with_correction", "-0.40 to -0.1004", 0.1),
        (-0.0901, 0.09, "can_replace", "-0.090 to +0.09", 0.0923),
        (-0.06, 0.004, "can_replace", "-0.06 to +0.004", 0.1),
    ],
)
def test_a_bound_is_printed_on_its_side_of_the_margin(low, high, verdict, interval, margin):
    """The sentence, the cell and the row of the report have the same decimals."""
    decided = between(low, high)
    row = decided.difference | {"deciding": replace(LEVEL, margin=margin)}
    found = verdict_of(replace(decided, difference=row))
    assert_verdict(found, verdict, f"96% CI {interval}; margin {limit_shown(margin, -low)};")
    (figure,) = Source(Analysis([row]), ReportContext("")).rubric("r").select("non_inferiority")
    assert figure.interval == f"[{interval.replace(' to ', ', ')}]"


def test_other_verdicts_print_a_bound_on_its_side_of_the_limit_too():
    """Drift with its margin, a reference with its bar, a rule, an audit and answers."""
    change = row("drift", -0.0973, 0.0, 0.1049)
    drift = {"change": change, "before": {"estimate": 0.6}, "self_agreement": None}
    (told,) = versions._sentences(SimpleNamespace(**drift, rate_change=None, margin=0.1), "item")
    assert "(change 0.00, 96% CI -0.097 to +0.105; margin 0.1 either way;" in told
    kappa = row("reference_kappa", 0.5996, 0.7, 0.8, deciding=Deciding(0.02, bar=0.6))
    told = requirements._figure_reason(kappa, "unit", "bar_open")
    assert "Kappa 0.70, 96% CI 0.5996 to 0.80;" in told.sentence
    assert told.short == "kappa at worst 0.5996, 0.6 needed"
    (figure,) = Source(Analysis([kappa]), ReportContext("")).rubric("r").select("reference_kappa")
    assert figure.interval == "[0.5996, 0.80]"
    clause = CheckedClause(parse_rule("kappa.low > 0.5")[1][0], 0.49999999, "")
    assert clause.sentence.endswith("kappa, low: 0.49999999, required > 0.5")
    attack = Attack(row("e", 0, 0, 0), row("p", 0, 0, 0), row("b", 0.1004, 0.2, 0.3))
    assert Outcome("pulled", (attack,)).figures(0.1)["low"] == "0.1004"
    coverage = row("coverage", 0.8998, 0.95, 0.97, rater_a="")
    (told,) = wording.unanswered_reasons(Answers(coverage), 0.9, "item")
    assert "That is 89.98% at worst, and 90% is needed" in told.sentence


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(case=cases())
def test_sentence_cell_and_recommendation_say_one_thing(case):
    verdict = judge(case)
    assert_one_thing(verdict)
    more = re.findall(r"abel (?:about )?(\d+) more", verdict["sentence"])
    assert [int(each) for each in more] == [verdict["more_clusters"]] * bool(more)
    assert bool(verdict["more_clusters"]) <= bool(more)


def assert_one_thing(verdict):
    """What the grid shows is what the sentence says, and what is recommended follows."""
    code, sentence, reason = verdict["verdict"], verdict["sentence"], verdict["reason"]
    assert sentence.startswith(HEADS[code])
    assert reason, "every cell of the grid says why"
    assert (" at threshold " in sentence.split(".")[0]) == (code == "can_replace_at_threshold")
    passes = code in wording.PASSES
    assert (reason.startswith(("within", "labels only", "binary label"))) == passes
    assert (verdict["holds_for"] == "labels") == reason.startswith("labels only")
    assert (verdict["holds_for"] == "binary") == reason.startswith("binary label")
    assert (verdict["threshold"] is not None) == (code == "can_replace_at_threshold")
    # The words and numbers of the cell are those of the sentence, rounded to fewer places.
    said = [float(each) for each in NUMBER.findall(sentence)]
    figures = re.sub(r"for \d+ parts", "", reason)  # the sentence names them
    for number in map(float, NUMBER.findall(figures)):
        assert any(abs(number - each) <= 0.0051 for each in said), (reason, sentence)
    found = recommend([Candidate(verdict, None, None, None, None, None)], "r")
    assert found.sentence.startswith("Use g for r") == passes
    assert ("No grader" in found.sentence) == (not passes)
    if not passes:
        assert reason in found.sentence


@pytest.mark.slow
@pytest.mark.parametrize("file", one_in(3, ["llmbar.csv", "dices350.csv", "newsroom.csv"]))
def test_constant_and_random_graders_are_never_recommended(shared_data, file):
    """On every real data set at hand: each constant category, and random labels at two rates."""
    ratings, _ = read_ratings(shared_data / "real" / file)
    people = ratings[ratings["rater_kind"] == "human"]
    people = people[people["rater_id"].isin(people["rater_id"].value_counts().index[:6])]
    categories = tuple(sorted(set(people["label"]) - {""}))
    units = sorted(set(people["unit_id"]))
    rng = np.random.default_rng(5)
    shares = people["label"].value_counts(normalize=True).reindex(categories).to_numpy()
    graders = {f"always {key}": [key] * len(units) for key in categories}
    even, alike = (rng.choice(categories, len(units), p=p).tolist() for p in (None, shares))
    graders |= {"random, even": even, "random, as annotators": alike}
    made = pd.DataFrame(graders, index=pd.Index(units, name="unit_id")).reset_index()
    made = made.melt("unit_id", var_name="rater_id", value_name="label").assign(rater_kind="model")
    given = people[["unit_id", "rater_id", "rater_kind", "label"]]
    both = pd.concat([given, made], ignore_index=True).assign(rubric="r")
    found = analyse(both, None, [Scale("r", categories)], resamples=300)
    assert len(found.verdicts) == len(graders)
    assert {each["verdict"] for each in found.verdicts} <= set(wording.JUDGEMENTS[3:])
