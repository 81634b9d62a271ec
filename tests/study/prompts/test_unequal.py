"""Picking with unequal probabilities: that they are what they are said to be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.study.prompts.sampling import MOST, RATIO, Wave, chances_for, inclusion, pick


def test_pairs_are_picked_as_often_as_their_chances_say() -> None:
    chances = {"a": 0.9, "b": 0.5, "c": 0.35, "d": 0.15, "e": 0.1, "f": 0.0}
    rng = np.random.default_rng(4)
    drawn = [pick(chances, rng) for _ in range(20_000)]
    assert {len(each) for each in drawn} == {2}  # their sum
    for pair, chance in chances.items():
        share = np.mean([pair in each for each in drawn])
        assert share == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 20_000))
    # The order says nothing of the chances: part of what was picked is a smaller draw.
    first = np.mean([each[0] == "a" for each in drawn])
    assert first == pytest.approx(0.45, abs=0.015)


def test_a_sum_between_two_numbers_gives_either() -> None:
    rng = np.random.default_rng(4)
    sizes = [len(pick({"a": 0.5, "b": 0.5, "c": 0.3}, rng)) for _ in range(4000)]
    assert set(sizes) == {1, 2}
    assert np.mean(sizes) == pytest.approx(1.3, abs=0.03)


def test_horvitz_and_thompson_are_unbiased_over_all_samples_there_are() -> None:
    # Three pairs; the first wave takes one of them by chance. All ways of both waves, weighed.
    values, names = {"a": 1.0, "b": 5.0, "c": 10.0}, ("a", "b", "c")
    second = {"a": 0.1, "b": 0.4, "c": 0.7}
    waves = [
        Wave(by="chance", chances=dict.fromkeys(names, 1 / 3), taken=()),
        Wave(by="uncertainty", chances=second, taken=()),
    ]
    likely = inclusion(waves)
    expected = 0.0
    for first in names:
        left = [name for name in names if name != first]
        for took in itertools.product((True, False), repeat=2):
            chance = np.prod(
                [second[n] if t else 1 - second[n] for n, t in zip(left, took, strict=True)]
            )
            sample = [first, *(n for n, t in zip(left, took, strict=True) if t)]
            expected += chance / 3 * sum(values[name] / likely[name] for name in sample)
    assert expected == pytest.approx(16.0)


def test_a_wave_that_is_half_labelled_is_half_a_wave() -> None:
    waves = [
        Wave(by="chance", chances={"a": 0.2, "b": 0.2}, taken=()),
        Wave(by="uncertainty", chances={"a": 0.5, "b": 0.1}, taken=()),
    ]
    assert inclusion(waves, [1.0, 0.0]) == pytest.approx({"a": 0.2, "b": 0.2})
    assert inclusion(waves, [1.0, 0.5]) == pytest.approx({"a": 0.4, "b": 0.24})


@pytest.mark.parametrize("more", [10, 60, 200])
def test_probabilities_follow_the_roots_of_the_scores_within_bounds(more: int) -> None:
    rng = np.random.default_rng(1)
    scores = {f"p{n}": float(score) for n, score in enumerate(rng.random(400))}
    scores |= {"least": 0.0, "most": 1.0}
    before = dict.fromkeys(scores, 0.1)
    chances = chances_for(scores, before, more)
    in_all = inclusion(
        [Wave(by="chance", chances=before, taken=()), Wave(by="u", chances=chances, taken=())]
    )
    # As many as were asked for are expected of those that are not in the sample yet.
    assert sum(0.9 * chance for chance in chances.values()) == pytest.approx(more)
    assert min(in_all.values()) >= 0.1 - 1e-12
    assert max(in_all.values()) <= MOST
    free = {pair: each for pair, each in in_all.items() if 0.1 + 1e-9 < each < MOST - 1e-9}
    over = [each / np.sqrt(1 / (RATIO**2 - 1) + scores[pair]) for pair, each in free.items()]
    assert max(over) == pytest.approx(min(over))
    assert in_all["most"] <= RATIO * in_all["least"] + 1e-9


def test_scores_that_are_alike_are_a_draw_by_chance() -> None:
    before = dict.fromkeys("abcd", 0.25)
    assert chances_for(dict.fromkeys("abcd", 0.4), before, 1) == pytest.approx(
        dict.fromkeys("abcd", 1 / 3)
    )


def test_so_many_that_there_is_no_choice_are_refused() -> None:
    with pytest.raises(InputError, match="at most 2 more pairs can be picked by uncertainty"):
        chances_for(dict.fromkeys("abcd", 0.4), dict.fromkeys("abcd", 0.25), 3)
