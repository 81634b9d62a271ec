"""A verdict, its sentence, its cell in the grid and the recommendation never contradict each other.

Cases are made of rows as they may come: any bounds, faults, and gaps.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.analysis.bias import Finding
from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.case import Answers, Bounds, Case, People, Tuned, View
from evenhand.analysis.verdicts.judge import Verdict, _judge
from evenhand.analysis.verdicts.ranking import Candidate, recommend
from evenhand.analysis.verdicts.wording import PASSES
from evenhand.study.settings.analysis import DecisionSettings

HEADS = {
    "may_stand_in": "g can replace ",
    "may_stand_in_at_threshold": "g can replace ",
    "only_with_correction": "Use g on r only with correction",
    "cannot_tell": "We cannot tell yet whether g can replace ",
    "do_not_use": "Do not use g in place of people",
}
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def row(statistic: str, low: float, estimate: float, high: float, **more: object) -> ResultRow:
    filled = {
        "rubric": "r",
        "statistic": statistic,
        "rater_a": "humans",
        "rater_b": "g",
        "subset": "all",
        "at": "",
        "n_units": 200,
        "n_clusters": 100,
        "estimate": estimate,
        "low": low,
        "high": high,
        "note": "",
        "remarks": (),
        "deciding": None,
    }
    return filled | more  # type: ignore[return-value]


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
def cases(draw: st.DrawFn) -> Case:
    parts = st.lists(rows("part", -0.1, subset="slice=rare", deciding=LEVEL), max_size=2)
    share = draw(st.sampled_from([0.5, 0.88, 0.95, 1.0]))
    coverage = row("coverage", share - 0.03, share, min(share + 0.03, 1.0), rater_a="")
    advised = rows("threshold_recommended", 0.3, 0.1, remarks=(Remark("tuned"), Remark("text")))
    case = Case(
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
        moving=draw(st.none() | rows("stability_fleiss_kappa", 0.3, 0.1)),
        twins=draw(st.sampled_from([(), ("k",)])),
    )
    return sound(case, draw(bounds())) if draw(st.booleans()) else case  # so that some pass


BASELINES = (row("cohen_kappa", 0.0, 0.0, 0.0),)


def sound(case: Case, decided: Bounds) -> Case:
    """A case without any fault, whatever its bounds say."""
    difference = row("human_ceiling_difference", 0, 0.1, 0.2)
    return replace(
        case,
        people=People(3, least_kappa=0.2),
        answers=Answers(row("coverage", 1.0, 1.0, 1.0)),
        present=View(difference, row("cohen_kappa", 0.5, 0.6, 0.7), decided),
        moving=None,
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
    "may_stand_in": (between(-0.05, 0.05), Tuned()),
    "may_stand_in_at_threshold": (between(-0.4, -0.2), TUNED),
    "only_with_correction": (between(-0.4, -0.2), Tuned()),
    "cannot_tell": (between(-0.2, 0.1), Tuned()),
    "do_not_use": (between(-0.4, -0.2, above=0.15), Tuned()),
}


@pytest.mark.parametrize("judgement", PLAIN)
def test_each_verdict_says_one_thing(judgement: str) -> None:
    decided, tuned = PLAIN[judgement]
    about = ("r", "g", DecisionSettings(), "pair", People(0), Answers())
    verdict = _judge(sound(Case(*about, View(), tuned, baselines=BASELINES), decided))
    assert verdict["verdict"] == judgement
    assert_one_thing(verdict)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(case=cases())
def test_sentence_cell_and_recommendation_say_one_thing(case: Case) -> None:
    verdict = _judge(case)
    assert_one_thing(verdict)
    more = re.findall(r"abel (?:about )?(\d+) more", verdict["sentence"])
    assert [int(each) for each in more] == [verdict["more_clusters"]] * bool(more)
    assert bool(verdict["more_clusters"]) <= bool(more)


def assert_one_thing(verdict: Verdict) -> None:
    """What the grid shows is what the sentence says, and what is recommended follows."""
    code, sentence, reason = verdict["verdict"], verdict["sentence"], verdict["reason"]
    assert sentence.startswith(HEADS[code])
    assert reason, "every cell of the grid says why"
    assert (" at threshold " in sentence.split(".")[0]) == (code == "may_stand_in_at_threshold")
    passes = code in PASSES
    assert (reason.startswith(("within", "labels only", "binary verdict"))) == passes
    assert (verdict["holds_for"] == "labels") == reason.startswith("labels only")
    assert (verdict["holds_for"] == "binary") == reason.startswith("binary verdict")
    assert (verdict["threshold"] is not None) == (code == "may_stand_in_at_threshold")
    # The words and numbers of the cell are those of the sentence, rounded to fewer places.
    said = [float(each) for each in NUMBER.findall(sentence)]
    figures = re.sub(r"for \d+ parts", "", reason)  # the sentence names them
    for number in map(float, NUMBER.findall(figures)):
        assert any(abs(number - each) <= 0.0051 for each in said), (reason, sentence)

    found = recommend([Candidate(verdict, None, None, None, None, None)], "r")
    assert found is not None
    assert found.sentence.startswith("Use g for r") == passes
    assert ("No grader" in found.sentence) == (not passes)
    if not passes:
        assert reason in found.sentence
