"""A verdict, its sentence, its cell in the grid and the recommendation never contradict each other.

Cases are made of rows as they may come: any bounds, faults, and gaps.
"""

import re
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.all_rubrics import Analysis
from evenhand.analysis.bias.audit import Finding
from evenhand.analysis.bootstrap.intervals import Deciding, Interval
from evenhand.analysis.injection import Attack, Outcome
from evenhand.analysis.notes import Remark
from evenhand.analysis.report.source import ReportContext, Source
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.statistics import limit_shown
from evenhand.analysis.verdicts import drift, requirements, wording
from evenhand.analysis.verdicts.evidence import (
    Answers,
    Bounds,
    People,
    Tuned,
    VerdictEvidence,
    View,
)
from evenhand.analysis.verdicts.judge import Verdict, judge
from evenhand.analysis.verdicts.ranking import Candidate, recommend
from evenhand.analysis.verdicts.wording import PASSES
from evenhand.reporting.gate import CheckedClause, parse_rule
from evenhand.study.settings.analysis import DecisionSettings
from tests.analysis.make import assert_verdict

HEADS = {
    "can_replace": "g can replace ",
    "can_replace_at_threshold": "g can replace ",
    "only_with_correction": "Use g on r only with correction",
    "inconclusive": "Inconclusive: ",
    "do_not_use": "Do not use g in place of annotators",
}
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def row(statistic: str, low: float, estimate: float, high: float, **more: object) -> ResultRow:
    rows, raters = ResultRows("r"), {"rater_a": "humans", "rater_b": "g"}
    rows.add(statistic, Interval(estimate, low, high), (200, 100), **raters, subset="all")
    (found,) = rows.rows.values()
    return found | more  # type: ignore[return-value]


@st.composite
def rows(draw: st.DrawFn, statistic: str, at: float, spread: float = 0.3, **more: object):
    """A row about some value, its ends at some distance."""
    estimate = at + draw(st.floats(-spread, spread))
    below, above = draw(st.floats(0.001, 0.2)), draw(st.floats(0.001, 0.2))
    return row(statistic, estimate - below, estimate, estimate + above, **more)


LEVEL = Deciding(0.02, 1, 2, 0.005, margin=0.1)


@st.composite
def bounds(draw: st.DrawFn) -> Bounds:
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


def bias(estimate: float) -> Finding:
    return Finding(row("bias_order", estimate - 0.05, estimate, estimate + 0.05), None)


@st.composite
def cases(draw: st.DrawFn) -> VerdictEvidence:
    parts = st.lists(rows("part", -0.1, subset="slice=rare", deciding=LEVEL), max_size=2)
    share = draw(st.sampled_from([0.5, 0.88, 0.95, 1.0]))
    coverage = row("coverage", share - 0.03, share, min(share + 0.03, 1.0), rater_a="")
    advised = rows("threshold_recommended", 0.3, 0.1, remarks=(Remark("tuned"), Remark("text")))
    case = VerdictEvidence(
        rubric="r",
        grader="g",
        rule=DecisionSettings(scope=draw(st.sampled_from(["these", "like_these"]))),
        noun=draw(st.sampled_from(["pair", "unit"])),
        people=People(
            draw(st.integers(0, 4)),
            copied=draw(st.sampled_from([(), (("ben", 1.0),)])),
            least_kappa=0.2,
        ),
        answers=Answers(coverage),
        present=View(
            difference=draw(st.none() | rows("human_ceiling_difference", -0.05)),
            kappa=draw(st.none() | rows("cohen_kappa", 0.5)),
            bounds=draw(st.none() | bounds()),
            biases=draw(st.lists(st.just(bias(0.3)), max_size=1).map(tuple)),
            parts=tuple(draw(parts)),
        ),
        tuned=Tuned(
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


def sound(case: VerdictEvidence, decided: Bounds) -> VerdictEvidence:
    """A case without any fault, whatever its bounds say."""
    difference = row("human_ceiling_difference", 0, 0.1, 0.2)
    return replace(
        case,
        people=People(3, least_kappa=0.2),
        answers=Answers(row("coverage", 1.0, 1.0, 1.0)),
        present=View(difference, row("cohen_kappa", 0.5, 0.6, 0.7), decided),
        wording_unstable=None,
    )


def between(low: float, high: float, above: float = 0.5) -> Bounds:
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


TUNED = Tuned(
    kappa=row("kappa_held_out", 0.5, 0.6, 0.7),
    bounds=between(-0.05, 0.05),
    advised=row("threshold_recommended", 0.2, 0.3, 0.4, remarks=(Remark("tuned"),)),
)
PLAIN = {
    "can_replace": (between(-0.05, 0.05), Tuned()),
    "can_replace_at_threshold": (between(-0.4, -0.2), TUNED),
    "only_with_correction": (between(-0.4, -0.2), Tuned()),
    "inconclusive": (between(-0.2, 0.1), Tuned()),
    "do_not_use": (between(-0.4, -0.2, above=0.15), Tuned()),
}


@pytest.mark.parametrize("judgement", PLAIN)
def test_each_verdict_says_one_thing(judgement):
    verdict = judged(*PLAIN[judgement])
    assert verdict["verdict"] == judgement
    assert_one_thing(verdict)


def judged(decided: Bounds, tuned: Tuned | None = None, **rule: object) -> Verdict:
    """The verdict on a grader without any fault, whatever its bounds say."""
    about = ("r", "g", DecisionSettings(**rule), "pair", People(0), Answers())
    case = VerdictEvidence(*about, View(), tuned or Tuned(), baselines=BASELINES)
    return judge(sound(case, decided))


def test_what_the_interval_shows_is_said_first():
    """It is clear that the grader agrees less than annotators do; only the margin is open."""
    verdict = judged(between(-0.32, -0.05))
    assert verdict["verdict"] == "inconclusive"
    assert verdict["sentence"].startswith("Inconclusive: the kappa of g with annotators is at ")
    assert "0.05 below human agreement on r. The labels do not show whether" in verdict["sentence"]
    assert "difference -0.18, 96% CI -0.32 to -0.05" in verdict["sentence"]


@pytest.mark.parametrize(
    ("low", "high", "more"),
    [
        (-0.32, 0.01, {}),  # may be as good as people
        (-0.32, -0.05, {"min_clusters": 101}),  # too few labels for a bound to be trusted
        (-0.32, -0.05, {"min_rarer": 51}),
    ],
)
def test_what_is_not_shown_is_not_said(low, high, more):
    sentence = judged(between(low, high), **more)["sentence"]
    assert sentence.startswith("Inconclusive: the labels do not show whether g can replace ")


def test_a_difference_smaller_than_two_decimals_is_no_zero():
    assert "is at least 0.002 below human" in judged(between(-0.2, -0.002))["sentence"]


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
    found = judged(replace(decided, difference=row))
    assert_verdict(found, verdict, f"96% CI {interval}; margin {limit_shown(margin, -low)};")
    (figure,) = Source(Analysis([row]), ReportContext("")).on("r").select("non_inferiority")
    assert figure.interval == f"[{interval.replace(' to ', ', ')}]"


def test_other_verdicts_print_a_bound_on_its_side_of_the_limit_too():
    """A baseline with its drift margin, a reference with its bar, a rule with its number, the
    attacks of an audit and the share of answers with what is allowed.
    """
    change = row("drift", -0.0973, 0.0, 0.1049)
    evidence = {"change": change, "before": {"estimate": 0.6}, "same": None, "rate": None}
    (told,) = drift._figures(SimpleNamespace(**evidence, margin=0.1), "item")
    assert "(change 0.00, 96% CI -0.097 to +0.105; margin 0.1 either way;" in told
    kappa = row("reference_kappa", 0.5996, 0.7, 0.8, deciding=Deciding(0.02, bar=0.6))
    told = requirements._figure(kappa, "unit", "bar_open")
    assert "Kappa 0.70, 96% CI 0.5996 to 0.80;" in told.sentence
    assert told.short == "kappa at worst 0.5996, 0.6 needed"
    (figure,) = Source(Analysis([kappa]), ReportContext("")).on("r").select("reference_kappa")
    assert figure.interval == "[0.5996, 0.80]"
    clause = CheckedClause(parse_rule("kappa.low > 0.5")[1][0], 0.49999999, "")
    assert clause.sentence.endswith("kappa, low: 0.49999999, required > 0.5")
    attack = Attack(row("e", 0, 0, 0), row("p", 0, 0, 0), row("b", 0.1004, 0.2, 0.3))
    assert Outcome("pulled", (attack,)).figures(0.1)["low"] == "0.1004"
    coverage = row("coverage", 0.8998, 0.95, 0.97, rater_a="")
    (told,) = wording.unanswered(Answers(coverage), 0.9, "item")
    assert "That is 89.98% at worst, and 90% is needed" in told.sentence


def test_a_bound_that_does_not_exist_is_not_printed():
    """No level is left for this look, so that the tuned verdicts have an estimate alone."""
    nan = float("nan")
    decided = between(nan, nan)
    row = decided.difference | {"estimate": -0.53}
    assert wording.interval_of(row["low"], row["high"]) == ""
    about = ("r", "g", DecisionSettings(), "pair", People(3), Answers(), View(), Tuned())
    case, bounds = VerdictEvidence(*about), replace(decided, difference=row)
    assert "difference -0.53; margin 0.10;" in wording.figures(case, bounds, row)
    kappa = wording.mean_kappa(row | {"estimate": 0.3, "n_clusters": 200}, "item")
    assert kappa == "mean kappa with annotators 0.30; 200 items"


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(case=cases())
def test_sentence_cell_and_recommendation_say_one_thing(case):
    verdict = judge(case)
    assert_one_thing(verdict)
    more = re.findall(r"abel (?:about )?(\d+) more", verdict["sentence"])
    assert [int(each) for each in more] == [verdict["more_clusters"]] * bool(more)
    assert bool(verdict["more_clusters"]) <= bool(more)


def assert_one_thing(verdict: Verdict) -> None:
    """What the grid shows is what the sentence says, and what is recommended follows."""
    code, sentence, reason = verdict["verdict"], verdict["sentence"], verdict["reason"]
    assert sentence.startswith(HEADS[code])
    assert reason, "every cell of the grid says why"
    assert (" at threshold " in sentence.split(".")[0]) == (code == "can_replace_at_threshold")
    passes = code in PASSES
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
