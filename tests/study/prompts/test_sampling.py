"""The sample keeps every margin, is the same again, and grows without losing a pair."""

from __future__ import annotations

from importlib.resources import as_file, files
from itertools import product
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.study.prompts.pairs import read_pairs
from evenhand.study.prompts.sampling import DEFAULT_STRATA, draw_sample, largest_remainder


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


def test_the_published_set_is_sampled_in_proportion(shared_data: Path) -> None:
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


def test_the_same_seed_gives_the_same_sample_and_another_another(pairs: pd.DataFrame) -> None:
    first = draw_sample(pairs, 150, DEFAULT_STRATA, seed=1)
    assert draw_sample(pairs, 150, DEFAULT_STRATA, seed=1) == first
    assert draw_sample(pairs, 150, DEFAULT_STRATA, seed=2) != first


def test_a_larger_sample_begins_with_the_first(pairs: pd.DataFrame) -> None:
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
def test_the_size_holds_on_any_table(counts: list[int], share: float, seed: int) -> None:
    pairs = crossed(counts)
    size = max(1, round(share * len(pairs)))
    assert len(set(draw_sample(pairs, size, ("one", "two"), seed))) == size


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(3, 9), min_size=9, max_size=9), SHARES, SEEDS)
@example([6, 9, 9, 3, 5, 6, 4, 6, 5], 0.890625, 0)  # here too
def test_two_margins_hold_where_no_cell_is_sparse(
    counts: list[int], share: float, seed: int
) -> None:
    """Margins can clash only where rounding asks more of a sparse table than it has."""
    pairs = crossed(counts)
    sample = draw_sample(pairs, max(1, round(share * len(pairs))), ("one", "two"), seed)
    assert margins_hold(pairs, sample, ("one", "two"))


def test_nested_columns_serve_the_first_one() -> None:
    pairs = pd.DataFrame({"topic": list("aaabbbccc"), "area": list("xxxxxxyyy")})
    pairs.insert(0, "pair_id", [f"p{n}" for n in range(9)])
    sample = draw_sample(pairs, 4, ("topic", "area"), seed=0)
    assert margins_hold(pairs, sample, ("topic",))


def test_impossible_samples_are_refused() -> None:
    pairs = pd.DataFrame({"pair_id": ["p1", "p2"]})
    with pytest.raises(InputError, match="a sample of 3 cannot be drawn from 2 pairs"):
        draw_sample(pairs, 3, (), seed=0)
    with pytest.raises(InputError, match="no column 'topic'"):
        draw_sample(pairs, 1, ("topic",), seed=0)


def test_largest_remainder_by_hand() -> None:
    # shares of 10: 4.55, 3.18, 2.27 -> 4, 3, 2 and the one left goes to .55
    assert largest_remainder({"a": 50, "b": 35, "c": 25}, 10) == {"a": 5, "b": 3, "c": 2}
