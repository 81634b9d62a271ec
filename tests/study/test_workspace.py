"""What an open study reads: names and units without the texts that subjects wrote."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    "ask",
    [
        lambda study: study.subjects(),
        lambda study: study.units("all"),
        lambda study: study.rubric_units(study.rubrics["refusal"]),
        lambda study: study.units_by_kind("all"),
    ],
)
def test_names_are_learned_without_reading_a_response(make_study, statements, ask):
    study = make_study()
    with statements(study) as sent:
        ask(study)
    assert sent
    assert not [sql for sql in sent if "responses.response" in sql]


def test_subjects_and_units_are_those_of_the_responses(make_study):
    study = make_study(pairs=3, subjects=("s2", "s1"), sample=2)
    assert study.subjects() == ["s1", "s2"]
    by_kind = study.units_by_kind("all")
    assert len(by_kind["pair"]) == 3 * 2
    assert len(by_kind["response"]) == 3 * 2 * 2
    assert by_kind["response"][:2] == ["p0001|s1|a", "p0001|s1|b"]
    for rubric in study.rubrics.values():
        assert study.rubric_units(rubric, "all") == by_kind[rubric.unit]
        assert len(study.rubric_units(rubric)) == len(by_kind[rubric.unit]) * 2 // 3
