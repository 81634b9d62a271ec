"""Distances from people's shares: by enumeration, and on average over synthetic people."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from evenhand.analysis import distributions as distances
from evenhand.analysis.types import Array

UNITS = {
    "people of one mind": (5, 0, 0),
    "five, split": (3, 1, 1),
    "six": (3, 3, 0),
    "seven": (4, 2, 1),
}


def people_of(counts: tuple[int, ...]) -> list[int]:
    return [category for category, times in enumerate(counts) for _ in range(times)]


def shares_of(labels: list[int], q: int = 3) -> Array:
    return np.bincount(labels, minlength=q) / len(labels)


@pytest.mark.parametrize("counts", UNITS.values(), ids=list(UNITS))
def test_groups_by_every_way_to_draw_them(counts: tuple[int, ...]) -> None:
    people = people_of(counts)
    for size in range(1, len(people) // 2 + 1):
        apart = [
            0.5
            * np.abs(
                shares_of([people[a] for a in one]) - shares_of([people[b] for b in other])
            ).sum()
            for one in combinations(range(len(people)), size)
            for other in combinations(sorted(set(range(len(people))) - set(one)), size)
        ]
        found = distances.between_groups(np.array([counts], dtype=float), np.array([size]))
        assert found == pytest.approx([np.mean(apart)], abs=1e-12)


def test_halves_of_a_hundred_people_by_scipy() -> None:
    affirm = np.array([3, 50, 81])
    split = stats.hypergeom(100, affirm[:, None], 50)
    expected = [
        sum(split.pmf(x)[unit] * abs(2 * x - affirm[unit]) / 50 for x in range(51))
        for unit in range(3)
    ]
    counts = np.column_stack([affirm, 100 - affirm]).astype(float)
    found = distances.between_groups(counts, np.full(3, 50))
    assert found == pytest.approx(
        np.ravel([each[0] if np.ndim(each) else each for each in expected])
    )


@pytest.mark.parametrize("counts", UNITS.values(), ids=list(UNITS))
def test_what_leaves_one_person_out(counts: tuple[int, ...]) -> None:
    people, given = people_of(counts), np.array([counts], dtype=float)
    differ = np.mean([a != b for a, b in combinations(people, 2)])
    assert distances.disagreement(given) == pytest.approx([differ])


def simulated(n: int, shape: tuple[float, ...], units: int = 16000) -> tuple[Array, Array, Array]:
    """What all people say (units, q), how many of n drawn from them do, and a grader's opinion."""
    rng = np.random.default_rng(n)
    shares = rng.dirichlet(shape, units)
    shares, grader = (
        np.repeat(shares, 5, axis=0),
        0.4 * shares + 0.6 * rng.dirichlet(np.ones(len(shape)), units),
    )
    return shares, rng.multinomial(n, shares).astype(float), np.repeat(grader, 5, axis=0)


SHAPES = {"three, apart": (0.5, 0.5, 0.5), "two, lopsided": (9.0, 1.0)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("n", [5, 10, 100])
def test_on_average_few_people_say_what_all_would(n: int, shape: tuple[float, ...]) -> None:
    """(synthetic) Where the plain figure is far off, the corrected one is near the true one."""
    shares, counts, grader = simulated(n, shape)
    true = ((grader - shares) ** 2).sum(axis=1).mean()
    found = distances.squared_distance(grader, counts).mean()
    one = 1.0 - (shares**2).sum(axis=1).mean()
    assert found == pytest.approx(true, abs=0.05 * one / n + 0.01 * true)
    plain = ((grader - counts / n) ** 2).sum(axis=1).mean()
    assert plain - true == pytest.approx(one / n, rel=0.1)
    worth = distances.worth_people(np.array([found]), np.array([one]))[0]
    assert worth == pytest.approx(one / true, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("n", [5, 10, 100])
def test_halves_carried_on_to_all(n: int, shape: tuple[float, ...]) -> None:
    """(synthetic) Within 2% of how far apart two groups of n are; a root of 2 is further off."""
    shares, counts, _ = simulated(n, shape)
    rng = np.random.default_rng(1)
    groups = [rng.multinomial(n, shares) / n for _ in range(8)]
    true = np.mean([0.5 * np.abs(a - b).sum(axis=1).mean() for a, b in combinations(groups, 2)])
    half, quarter = distances.group_sizes(counts)
    near, far = (distances.between_groups(counts, size).mean() for size in (quarter, half))
    steps = distances.reach(counts).mean()
    found = distances.between_whole_groups(np.array(near), np.array(far), steps)
    assert found == pytest.approx(true, rel=0.02)
    by_root = far * np.sqrt(half[0] / n)
    assert abs(by_root / true - 1) > {5: 0.08, 10: 0.03, 100: 0.002}[n]


def test_people_who_never_differ_are_no_distance_apart() -> None:
    none = np.zeros(3)
    assert distances.between_whole_groups(none, none, np.full(3, 2.0)).tolist() == [0, 0, 0]
    assert np.isnan(distances.worth_people(np.array([0.2]), np.array([0.0]))).all()


@pytest.mark.parametrize("m", [1, 3, 20])
def test_the_shares_of_m_people_are_worth_m_people(m: int) -> None:
    rng = np.random.default_rng(m)
    shares, counts, _ = simulated(5, (0.7, 0.7, 0.7))
    group = rng.multinomial(m, shares) / m
    found = distances.worth_people(
        distances.squared_distance(group, counts).mean()[None],
        distances.disagreement(counts).mean()[None],
    )
    assert found == pytest.approx([m], rel=0.08)
