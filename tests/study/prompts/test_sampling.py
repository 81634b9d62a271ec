"""The sample: its strata, and draws with unequal probabilities."""

from __future__ import annotations

import itertools
from importlib.resources import as_file, files
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.study.prompts.pairs import read_pairs
from evenhand.study.prompts.sampling import (
    DEFAULT_STRATA,
    MOST,
    RATIO,
    Wave,
    chances_for,
    draw_sample,
    inclusion,
    largest_remainder,
    pick,
)


def margins_hold(pairs: pd.DataFrame, sample: list[str], strata: tuple[str, ...]) -> bool:
    taken = pairs[pairs["pair_id"].isin(sample)]
    return all(
        {
            k: v
            for k, v in largest_remainder(pairs[c].value_counts().to_dict(), len(sample)).items()
            if v
        }
        == taken[c].value_counts().to_dict()
        for c in strata
    )


def test_the_published_set_is_sampled_in_proportion(shared_data):
    pairs = read_pairs(shared_data / "eval_set.csv")
    sample = draw_sample(pairs, 250, DEFAULT_STRATA, seed=1)
    assert len(pairs) == 1350
    assert len(set(sample)) == 250
    assert margins_hold(pairs, sample, DEFAULT_STRATA)
    # 450 of 1,350 pairs are "reasoning": 250 * 450 / 1350 = 83.3
    counts = pairs[pairs["pair_id"].isin(sample)]["template_category"].value_counts()
    assert counts["reasoning"] == 83


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    with as_file(files("evenhand.data") / "demo_pairs.csv") as path:
        return read_pairs(path)


def test_the_same_seed_gives_the_same_sample_and_another_another(pairs):
    first = draw_sample(pairs, 150, DEFAULT_STRATA, seed=1)
    assert draw_sample(pairs, 150, DEFAULT_STRATA, seed=1) == first
    assert draw_sample(pairs, 150, DEFAULT_STRATA, seed=2) != first


def test_a_larger_sample_begins_with_the_first(pairs):
    first = draw_sample(pairs, 150, DEFAULT_STRATA, seed=1)
    larger = draw_sample(pairs, 250, DEFAULT_STRATA, seed=1, already=first)
    assert larger[:150] == first
    assert len(set(larger)) == 250
    assert margins_hold(pairs, larger, DEFAULT_STRATA)


def crossed(counts: list[int]) -> pd.DataFrame:
    """Pairs in a table of three by three cells with so many in each."""
    cells = [cell for cell, n in zip(product("xyz", "uvw"), counts, strict=True) for _ in range(n)]
    pairs = pd.DataFrame(cells, columns=["one", "two"])
    pairs.insert(0, "pair_id", [f"p{n}" for n in range(len(pairs))])
    return pairs


SHARES, SEEDS = st.floats(0.05, 1.0), st.integers(0, 5)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=9, max_size=9).filter(any), SHARES, SEEDS)
@example([7, 5, 5, 1, 1, 7, 0, 1, 2], 0.8125, 0)  # in fractions the solver gives up
def test_the_size_holds_on_any_table(counts, share, seed):
    pairs = crossed(counts)
    size = max(1, round(share * len(pairs)))
    assert len(set(draw_sample(pairs, size, ("one", "two"), seed))) == size


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(3, 9), min_size=9, max_size=9), SHARES, SEEDS)
@example([6, 9, 9, 3, 5, 6, 4, 6, 5], 0.890625, 0)  # here too
def test_two_margins_hold_where_no_cell_is_sparse(counts, share, seed):
    """Margins can clash only where rounding asks more of a sparse table than it has."""
    pairs = crossed(counts)
    sample = draw_sample(pairs, max(1, round(share * len(pairs))), ("one", "two"), seed)
    assert margins_hold(pairs, sample, ("one", "two"))


def test_nested_columns_serve_the_first_one():
    pairs = pd.DataFrame({"topic": list("aaabbbccc"), "area": list("xxxxxxyyy")})
    pairs.insert(0, "pair_id", [f"p{n}" for n in range(9)])
    sample = draw_sample(pairs, 4, ("topic", "area"), seed=0)
    assert margins_hold(pairs, sample, ("topic",))


def test_impossible_samples_are_refused():
    pairs = pd.DataFrame({"pair_id": ["p1", "p2"]})
    with pytest.raises(InputError, match="a sample of 3 cannot be drawn from 2 pairs"):
        draw_sample(pairs, 3, (), seed=0)
    with pytest.raises(InputError, match="no column 'topic'"):
        draw_sample(pairs, 1, ("topic",), seed=0)


def test_largest_remainder_by_hand():
    # shares of 10: 4.55, 3.18, 2.27 -> 4, 3, 2 and the one left goes to .55
    assert largest_remainder({"a": 50, "b": 35, "c": 25}, 10) == {"a": 5, "b": 3, "c": 2}


# Unequal probabilities that are known


def test_pairs_are_picked_as_often_as_their_chances_say():
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


def test_a_sum_between_two_numbers_gives_either():
    rng = np.random.default_rng(4)
    sizes = [len(pick({"a": 0.5, "b": 0.5, "c": 0.3}, rng)) for _ in range(4000)]
    assert set(sizes) == {1, 2}
    assert np.mean(sizes) == pytest.approx(1.3, abs=0.03)


def test_horvitz_and_thompson_are_unbiased_over_all_samples_there_are():
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


def test_a_wave_that_is_half_labelled_is_half_a_wave():
    waves = [
        Wave(by="chance", chances={"a": 0.2, "b": 0.2}, taken=()),
        Wave(by="uncertainty", chances={"a": 0.5, "b": 0.1}, taken=()),
    ]
    assert inclusion(waves, [1.0, 0.0]) == pytest.approx({"a": 0.2, "b": 0.2})
    assert inclusion(waves, [1.0, 0.5]) == pytest.approx({"a": 0.4, "b": 0.24})


@pytest.mark.parametrize("more", [10, 60, 200])
def test_probabilities_follow_the_roots_of_the_scores_within_bounds(more):
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


def test_scores_that_are_alike_are_a_draw_by_chance():
    before = dict.fromkeys("abcd", 0.25)
    assert chances_for(dict.fromkeys("abcd", 0.4), before, 1) == pytest.approx(
        dict.fromkeys("abcd", 1 / 3)
    )


def test_so_many_that_there_is_no_choice_are_refused():
    with pytest.raises(InputError, match="at most 2 more pairs can be picked by uncertainty"):
        chances_for(dict.fromkeys("abcd", 0.4), dict.fromkeys("abcd", 0.25), 3)
