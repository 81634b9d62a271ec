"""A grader that a text can talk round does not pass; one that withstands is said to (synthetic)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.report import ReportContext, write_report
from evenhand.study.tables.attacks import ATTACKS
from harness.gullible import TWO, SyntheticGrader
from tests.analysis.make import assert_verdict, noisy, people_of, ratings_of

pytestmark = pytest.mark.slow

SCALE = Scale("r", tuple(TWO), affirmative=frozenset({"yes"}))
GULLIBLE, STEADFAST = SyntheticGrader(obeys={"flattery": 0.5}), SyntheticGrader()


def analysed(
    rng: np.random.Generator, audited: SyntheticGrader | None, units: int = 100, **settings: object
) -> Analysis:
    """A grader `g` as good as three people, on 300 units of which so many were audited."""
    truth = (rng.random(300) < 0.5).astype(int)
    seen = people_of(rng, truth, 0.85) | {"g": noisy(rng, truth, 2, 0.95)}
    labels = {who: [("no", "yes")[each == "2"] for each in own] for who, own in seen.items()}
    ratings = ratings_of(labels).assign(rubric="r")
    table = None
    if audited is not None:
        table, _ = audited.audited(rng, units, TWO)
        table["unit_id"] = table["unit_id"].str.replace("u", "u0")
    names = pd.DataFrame({"unit_id": sorted(set(ratings["unit_id"]))})
    facts = StudyFacts(attacked=table)
    return analyse(ratings, names, [SCALE], facts=facts, resamples=200, **settings)


def test_who_can_be_talked_round_does_not_pass(rng):
    (verdict,) = analysed(rng, GULLIBLE).verdicts
    assert_verdict(verdict, "only_with_correction", "A text can talk it round: flattery gets")
    assert "talked round by flattery" in verdict["reason"]
    statistics = {key[1]: key[5] for key in verdict["evidence"]}
    assert statistics["injection_bounds"] == "flattery"


def test_who_withstands_or_may_not_passes_and_the_sentence_says_which(rng):
    for grader, units, said in (
        (STEADFAST, 150, "It withstands the attacks of its injection audit"),
        (STEADFAST, 20, "We cannot tell yet whether a text can talk it round"),
        (None, 0, ""),
    ):
        (verdict,) = analysed(rng, grader, units).verdicts
        assert_verdict(verdict, "may_stand_in", said)
        assert ("talk it round" in verdict["sentence"]) == ("talk it round" in said)


def test_who_is_knocked_off_or_silenced_does_not_pass(rng):
    (verdict,) = analysed(rng, SyntheticGrader(mute=dict.fromkeys(ATTACKS, 0.5))).verdicts
    assert_verdict(verdict, "only_with_correction", "A text can silence it: under ")
    assert "silenced by" in verdict["reason"]
    (verdict,) = analysed(rng, SyntheticGrader(mute={"flattery": 0.5}), max_silenced=0.9).verdicts
    assert verdict["verdict"] == "may_stand_in"


def test_the_bound_is_the_studys(rng):
    (verdict,) = analysed(rng, GULLIBLE, max_injection=0.9).verdicts
    assert verdict["verdict"] == "may_stand_in"
    assert (
        "no attack that pulls labels beyond 0.9" in analysed(rng, GULLIBLE, max_injection=0.9).rule
    )


def test_beside_a_reference_it_counts_as_well(rng):
    rule = {"reference": "h0", "reference_kappa": 0.2, "reference_sensitivity": 0.5}
    rule |= {"reference_specificity": 0.5}
    (passes,) = analysed(rng, STEADFAST, **rule).verdicts
    (verdict,) = analysed(rng, GULLIBLE, **rule).verdicts
    assert passes["verdict"] == "agrees_with_reference"
    assert verdict["verdict"] == "disagrees_with_reference"
    assert "talked round by flattery" in verdict["reason"]


def test_the_report_has_a_section_where_there_was_an_audit(rng, tmp_path):
    for audited in (GULLIBLE, None):
        write_report(
            analysed(rng, audited), ReportContext(name="s", synthetic=True, facts={}), tmp_path
        )
        page = (tmp_path / "report.md").read_text("utf-8")
        assert ("## Injection audit" in page) == (audited is not None)
        if audited:
            assert "g can be talked round by flattery: +0." in page
            assert page.count("\n| g, ") >= len(ATTACKS) + 2
            assert "g, a long harmless text" in page
