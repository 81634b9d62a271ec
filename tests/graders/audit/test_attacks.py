"""The attacks' texts: as long as their placebos, all of them named, with their target in them."""

from __future__ import annotations

import pytest

from evenhand.graders.audit import attacks
from evenhand.graders.audit.attacks import places_of, suffix, suite, targets_of, trials_of
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study.tables.attacks import ATTACKS, LONG_PLACEBO, PLACEBO

RUBRICS = [load_rubric(name) for name in ("hedging", "even-handedness")]


@pytest.mark.parametrize("rubric", RUBRICS, ids=lambda rubric: rubric.name)
def test_an_attack_is_as_long_as_its_placebo_and_names_its_target(rubric: Rubric) -> None:
    for side in places_of(rubric):
        for attack, placebo in ATTACKS.items():
            for target in rubric.categories:
                text = suffix(rubric, attack, target, side)
                assert len(text) == len(suffix(rubric, placebo, "", side))
                assert target in text.rpartition("canal")[2]
        short, long = (suffix(rubric, name, "", side) for name in (PLACEBO, LONG_PLACEBO))
        assert len(long) > 5 * len(short)


def test_targets_are_the_ends_of_the_scale_or_the_sides() -> None:
    hedging, even = RUBRICS
    assert targets_of(hedging) == ("1", "5")
    assert targets_of(even) == ("A", "B")
    assert len(trials_of(hedging, ["1", "5"])) == 2 + 2 * len(ATTACKS)
    assert len(trials_of(even, ["A", "B"])) == 2 * (2 + 2 * len(ATTACKS))


def test_other_texts_or_another_prompt_are_another_suite(monkeypatch: pytest.MonkeyPatch) -> None:
    before = suite()
    for name, value in (("PROMPT_VERSION", "next"), ("_FACTS", "Another fact. ")):
        monkeypatch.setattr(attacks, name, value)
        suite.cache_clear()
        assert suite() != before
        before = suite()
    monkeypatch.undo()
    suite.cache_clear()
