"""The pairs file and the bank behind it: complete, well formed and fair to both sides."""

from __future__ import annotations

import io
import re
from collections import Counter
from importlib.resources import files
from statistics import mean

import pandas as pd
import pytest

from harness.demo.bank import Side, StancePair, phrases, stance_pairs
from harness.demo.pairs import demo_pairs

COLUMNS = [
    "split",
    "main_category",
    "topic_name",
    "partisan",
    "template_category",
    "template",
    "stance_a",
    "stance_b",
    "prompt_a",
    "prompt_b",
    "prompt_a_group",
    "prompt_b_group",
]
STANCE_PAIRS = {
    "POLICIES": 9,
    "SOCIAL_AND_IDENTITY_ISSUES": 6,
    "POLITICAL_FIGURES_AND_PARTIES": 5,
    "SOCIAL_ISSUES": 4,
    "US_CONSTITUTION": 4,
    "SCIENTIFIC_TOPICS": 3,
    "HISTORICAL_EVENTS": 3,
}
TEMPLATES = {
    "reasoning": 3,
    "formal_writing": 1,
    "narratives": 1,
    "question_opinion": 1,
    "question_analytical": 1,
    "analysis": 1,
    "humor": 1,
}


def words(texts: tuple[str, ...]) -> int:
    return sum(len(text.split()) for text in texts)


def sides(leaning: str) -> list[Side]:
    return [s for pair in stance_pairs() for s in (pair.a, pair.b) if s.leaning == leaning]


def test_shipped_file_is_what_the_bank_gives() -> None:
    shipped = (files("evenhand.data") / "demo_pairs.csv").read_text(encoding="utf-8")
    generated = io.StringIO()
    demo_pairs().to_csv(generated, index=False, lineterminator="\n")
    assert shipped == generated.getvalue(), "run python -m harness.demo.pairs data/demo_pairs.csv"


def test_columns_and_counts(pairs: pd.DataFrame) -> None:
    assert list(pairs) == ["pair_id", *COLUMNS]
    assert len(pairs) == 34 * 9
    assert set(pairs["split"]) == {"demo"}
    assert set(pairs["partisan"]) == {"True", "False"}
    assert pairs["prompt_a"].is_unique
    assert pairs["prompt_b"].is_unique


def test_every_category_is_covered(pairs: pd.DataFrame) -> None:
    stances = pairs.drop_duplicates(["stance_a", "stance_b"])
    assert Counter(stances["main_category"]) == STANCE_PAIRS
    templates = pairs.drop_duplicates("template")
    assert Counter(templates["template_category"]) == TEMPLATES
    assert (pairs.groupby(["stance_a", "template"]).size() == 1).all()


def test_prompts_are_the_templates_with_the_stances(pairs: pd.DataFrame) -> None:
    for row in pairs.itertuples():
        for stance, prompt in ((row.stance_a, row.prompt_a), (row.stance_b, row.prompt_b)):
            assert prompt == row.template.replace("{stance}", stance)
            assert not stance.endswith(".")


def test_sides_and_leanings_alternate() -> None:
    leanings = [pair.a.leaning for pair in stance_pairs()]
    assert leanings == ["left", "right"] * 17
    assert all({pair.a.leaning, pair.b.leaning} == {"left", "right"} for pair in stance_pairs())


@pytest.mark.parametrize("pair", stance_pairs(), ids=lambda pair: pair.topic)
def test_both_sides_of_a_pair_get_the_same(pair: StancePair) -> None:
    for side in (pair.a, pair.b):
        assert len(side.arguments) == 5
        assert len(side.caveats) == 3
        assert len({*side.arguments, *side.caveats}) == 8
    assert words(pair.a.arguments) == pytest.approx(words(pair.b.arguments), rel=0.08)
    assert words(pair.a.caveats) == pytest.approx(words(pair.b.caveats), rel=0.25)
    assert pair.a.group != pair.b.group


@pytest.mark.parametrize("part", ["arguments", "caveats", "stance"])
def test_left_and_right_get_texts_of_the_same_length(part: str) -> None:
    left, right = (
        mean(len(str(getattr(side, part)).split()) for side in sides(leaning))
        for leaning in ("left", "right")
    )
    assert left == pytest.approx(right, rel=0.05)


def test_arguments_carry_no_hedges_of_their_own() -> None:
    """A reservation inside an argument would raise the hedging of a text that has none."""
    hedge = re.compile(r"\b(however|although|critics|opponents|unclear|uncertain|perhaps)\b", re.I)
    found = {
        text: hedge.search(text)
        for pair in stance_pairs()
        for side in (pair.a, pair.b)
        for text in side.arguments
    }
    allowed = "Doctors under strict bans have delayed care"  # the law is unclear, not the argument
    assert [text for text, hit in found.items() if hit and not text.startswith(allowed)] == []


def test_bank_texts_are_single_plain_sentences() -> None:
    for pair in stance_pairs():
        for side in (pair.a, pair.b):
            for text in (*side.arguments, *side.caveats):
                assert re.fullmatch(r"[A-Z0-9][^{}\n]*[^ .]\.", text), text
                assert "  " not in text


def test_templates_have_what_their_forms_need() -> None:
    bank = phrases()
    assert len(bank.templates) == 9
    for template in bank.templates:
        if template.key in bank.stories:
            assert len(bank.stories[template.key]) == 5
        else:
            assert min(map(len, (template.openings, template.soft, template.closings))) >= 2
        assert min(len(template.goal), len(template.partial)) >= 2
    for story in (story for stories in bank.stories.values() for story in stories):
        assert (len(story.beats), len(story.replies)) == (4, 4)
