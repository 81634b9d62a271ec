"""How the lead sorts disagreements: the latest word counts, under the rubric's text of today."""

from __future__ import annotations

import pytest

from evenhand.analysis.report.sections.disagreements import KINDS as REPORTED
from evenhand.analysis.report.sections.disagreements import kind_title
from evenhand.errors import InputError
from evenhand.study import Study
from evenhand.study.lead.disagreements import KINDS, sort_disagreement, sorted_so_far
from evenhand.study.store.schema import sorted_disagreements
from harness.studies import upgraded_without, with_edited_rubric

UNIT = "p0001|s1|a"


def say(study: Study, kind: str, note: str = "", grader: str = "g", **other: str) -> None:
    about = {"rubric": "refusal", "unit_id": UNIT} | other
    sort_disagreement(study, "lead", **about, grader=grader, kind=kind, note=note)  # type: ignore[arg-type]


def held(study: Study) -> list[tuple[str, str, str]]:
    return [(each.grader, each.kind, each.note) for each in sorted_so_far(study)]


def test_the_report_knows_every_kind() -> None:
    assert KINDS == REPORTED
    assert len({kind_title(kind) for kind in KINDS}) == 3


def test_the_latest_word_counts_and_can_be_taken_back(make_study) -> None:
    study = make_study(pairs=1)
    with upgraded_without(study, sorted_disagreements) as again:
        say(again, "grader_wrong", " it missed the irony\n")
        say(again, "people_wrong", grader="h")
        say(again, "rubric_unclear", "on reflection")
        assert held(again) == [("h", "people_wrong", ""), ("g", "rubric_unclear", "on reflection")]
        say(again, "")
        assert held(again) == [("h", "people_wrong", "")]


@pytest.mark.parametrize("same", [True, False])
def test_under_an_edited_text_only_the_same_meaning_counts(make_study, same: bool) -> None:
    study = make_study(pairs=1)
    say(study, "grader_wrong")
    with with_edited_rubric(study, "refusal", same=same) as edited:
        assert held(edited) == ([("g", "grader_wrong", "")] if same else [])
        say(edited, "rubric_unclear")
        assert held(edited) == [("g", "rubric_unclear", "")]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "nobody"}, "is none of grader_wrong"),
        ({"kind": "grader_wrong", "rubric": "tone"}, "no rubric 'tone'"),
        ({"kind": "grader_wrong", "unit_id": "p0009|s1|a"}, "no response unit 'p0009|s1|a'"),
    ],
)
def test_what_does_not_hold_together_is_refused(make_study, wrong, said) -> None:
    study = make_study(pairs=1)
    with pytest.raises(InputError, match=said.replace("|", r"\|")):
        say(study, **wrong)
    assert held(study) == []
