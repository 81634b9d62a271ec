"""The pairs file and the bank behind it: complete, well formed and fair to both sides."""

import io
import re
from importlib.resources import files
from statistics import mean

import pytest

from harness.demo.bank import Side, StancePair, stance_pairs
from harness.demo.pairs import demo_pairs


def words(texts: tuple[str, ...]) -> int:
    return sum(len(text.split()) for text in texts)


def sides(leaning: str) -> list[Side]:
    return [s for pair in stance_pairs() for s in (pair.a, pair.b) if s.leaning == leaning]


def test_shipped_file_is_what_the_bank_gives() -> None:
    shipped = (files("evenhand.data") / "demo_pairs.csv").read_text(encoding="utf-8")
    generated = io.StringIO()
    demo_pairs().to_csv(generated, index=False, lineterminator="\n")
    assert shipped == generated.getvalue(), "run python -m harness.demo.pairs data/demo_pairs.csv"


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
