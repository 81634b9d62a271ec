"""What the decider draws and takes: closed options, their digits, and nothing of another form."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from evenhand.analysis.results import RESULTS_KEY
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.annotate_app.lead.overview_page import verdict_card
from evenhand.annotate_app.lead.parts.board import BoardCard, board, figures_row
from evenhand.annotate_app.lead.parts.decider import (
    LONGEST_REASON,
    Sent,
    option_rows,
    read_decision,
)
from evenhand.rubrics import load_rubric
from evenhand.rubrics.options import Option

HOSTILE = '<img src=x onerror="document.title=1">'


def test_options_have_the_digits_that_choose_them():
    refusal = option_rows(load_rubric("refusal").options)
    assert [row["digit"] for row in refusal] == [row["key"] for row in refusal]
    pairwise = option_rows(load_rubric("even-handedness").options)
    assert [row["digit"] for row in pairwise] == ["1", "2", "3"][: len(pairwise)]
    many = option_rows([Option(key=f"k{n}", name="x") for n in range(11)])
    assert [row["digit"] for row in many] == [*"123456789", "", ""]
    zero = option_rows([Option(key=key, name="x") for key in ("0", "1", "10")])
    assert [row["digit"] for row in zero] == ["0", "1", ""]


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "token",
        ["token"],
        {"token": 3},
        {"token": "t", "label": ["C"]},
        {"token": "t", "reason": "x" * (LONGEST_REASON + 1)},
    ],
)
def test_what_has_another_form_is_nothing(sent):
    assert read_decision(sent) is None


def test_a_decision_and_a_wish_to_pass():
    assert read_decision({"token": "t", "label": "C", "reason": "so"}) == Sent("t", "C", "so")
    assert read_decision({"token": "t", "passes": True}) == Sent("t", passes=True)
    assert read_decision({"token": "t", "passes": "yes"}) == Sent("t")


def test_the_board_is_text_whoever_wrote_it():
    page = board(HOSTILE, [BoardCard(HOSTILE, HOSTILE, HOSTILE, [HOSTILE], HOSTILE)])
    page += figures_row([(HOSTILE, HOSTILE)])
    assert "<img" not in page
    assert page.count("&lt;img") == 8


def test_a_card_says_what_decided_and_both_kappas_where_they_are_known():
    keys = [["hedging", "cohen_kappa", "humans", rater, "all", ""] for rater in ("some-model", "")]
    rows = pd.DataFrame([dict(zip(RESULTS_KEY, key, strict=True)) for key in keys])
    verdict: Verdict = {
        "rubric": "hedging",
        "grader": "some-model",
        "verdict": "only_with_correction",
        "sentence": "Use it only with correction.",
        "reason": "a failing slice",
        "limits": "",
        "holds_for": "",
        "threshold": None,
        "promising": False,
        "kappas": keys,
        "evidence": [],
        "more_clusters": 0,
        "failing_parts": [],
    }
    card = verdict_card(verdict, rows.assign(estimate=[0.77, 0.82]))
    assert card.words == f"± {TITLES['only_with_correction'].words}"
    assert card.said == [
        "Why: a failing slice.",
        "Kappa 0.77 with people; people with one another 0.82.",
    ]
    assert len(verdict_card(verdict, rows.assign(estimate=[0.77, math.nan])).said) == 1
    verdict["reason"], verdict["kappas"] = "", []
    assert verdict_card(verdict, rows.assign(estimate=[0.77, 0.82])).said == []
