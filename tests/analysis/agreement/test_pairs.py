"""Agreement where every unit counts once, against loops over single pairs of labels."""

from collections import defaultdict
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from evenhand.analysis.agreement.pairs import (
    Overlap,
    deciding_kappa,
    means_of,
    means_with,
    pair_statistics,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.bootstrap.score import kappas_of
from tests.analysis.make import coded_of


def kappa_by_hand(pairs, apart):
    """The size and the kappa of one table, from its pairs of labels."""
    size = sum(weight for weight, _, _ in pairs)
    first = defaultdict(float)
    second = defaultdict(float)
    observed = 0.0
    for weight, a, b in pairs:
        first[a] += weight / size
        second[b] += weight / size
        observed += weight / size * apart[a, b]
    expected = sum(f * s * apart[a, b] for a, f in first.items() for b, s in second.items())
    return size, 1.0 - observed / expected if expected > 1e-12 else np.nan


def by_hand(coded, units, apart, *, tie_breaks=False):
    """The grader's and people's mean kappa, by loops over units and pairs of labels."""
    people = coded.codes[:, :-1]
    held = [sum(1 for u in units if people[u, p] >= 0) for p in range(people.shape[1])]
    own = {p for p in range(people.shape[1]) if held[p] >= 0.5 * len(units)}
    if sum(1 for p, n in enumerate(held) if n and p not in own) == 1:
        own = {p for p, n in enumerate(held) if n}
    with_grader = defaultdict(list)
    among = defaultdict(list)
    for u in units:
        who = [p for p in range(people.shape[1]) if people[u, p] >= 0]
        all_pairs = list(combinations(who, 2))
        counted = all_pairs
        if tie_breaks and len(who) > 2:
            counted = [(a, b) for a, b in all_pairs if people[u, a] != people[u, b]]
        for a, b in counted:
            weight = 1.0 / len(counted)
            for p in (a, b):
                label = (weight / 2, int(people[u, p]), int(coded.codes[u, -1]))
                with_grader[p if p in own else "others"].append(label)
            x, y = int(people[u, a]), int(people[u, b])
            if a in own and b in own:
                among[(a, b)].append((weight, x, y))
            elif a not in own and b not in own:
                among["others"] += [(weight / 2, x, y), (weight / 2, y, x)]
            else:
                sides = (x, y) if a in own else (y, x)
                among[(a if a in own else b,)].append((weight, *sides))
    means = []
    for tables in (with_grader, among):
        found = [kappa_by_hand(pairs, apart) for pairs in tables.values()]
        found = [(size, kappa) for size, kappa in found if not np.isnan(kappa)]
        means.append(sum(s * k for s, k in found) / sum(s for s, _ in found))
    return means[0], means[1]


def labels(rng, units, people, q, held):
    truth = rng.integers(q, size=units)
    codes = np.empty((units, people + 1), dtype=int)
    for rater in range(people + 1):
        slip = rng.integers(q, size=units)
        codes[:, rater] = np.where(rng.random(units) < 0.7, truth, slip)
    codes[:, :-1][~held] = -1
    return codes


DESIGNS = {
    "everybody": lambda rng, n, k: np.ones((n, k), dtype=bool),
    "a third of the units twice": lambda rng, n, k: np.column_stack(
        [np.ones((n, k - 1)), rng.random(n) < 0.4]
    ).astype(bool),
    "one who labelled few": lambda rng, n, k: rng.random((n, k)) < [0.9] * (k - 1) + [0.2],
    "a crowd": lambda rng, n, k: np.argsort(rng.random((n, k)), axis=1) < 3,
    "two experts and a crowd": lambda rng, n, k: np.column_stack(
        [np.ones((n, 2), dtype=bool), rng.random((n, k - 2)) < 0.15]
    ),
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", ["nominal", "ordinal", "number"])
def test_kappas_are_those_of_loops_over_pairs_of_labels(design, kind):
    rng = np.random.default_rng(7)
    n, k = 60, 9 if "crowd" in design else 3
    values = (0.0, 10.0, 25.0, 60.0, 100.0) if kind == "number" else (1.0, 2.0, 3.0, 4.0)
    codes = labels(rng, n, k, len(values), DESIGNS[design](rng, n, k))
    level = {"number": "interval"}.get(kind, kind)
    coded = coded_of(codes, level, values, is_number=kind == "number")
    at = np.asarray(values) if kind == "number" else np.arange(len(values))
    apart = np.abs(at[:, None] - at) / np.ptp(at)
    if kind == "nominal":
        apart = (apart > 0) * 1.0
    twice = (codes[:, :-1] >= 0).sum(axis=1) >= 2
    resamples = Resamples(np.ones(n), 0, np.random.default_rng(0))
    overlap = Overlap.of(coded, resamples, coded.members("human"), twice)
    name = deciding_kappa(coded)
    statistics = {name: pair_statistics(coded)[name]}
    expected = by_hand(coded, np.flatnonzero(twice), apart)
    found = (
        means_with(overlap, codes[:, -1], resamples, statistics)[name].values[0],
        means_of(overlap, overlap.among(), resamples, statistics)[name].values[0],
    )
    assert found == pytest.approx(expected, abs=1e-12)
    # The form by which verdicts are bounded gives the same.
    sums = overlap.sums_with_rater(codes[:, -1]).sum(axis=0), overlap.sums_among().sum(axis=0)
    assert [float(kappas_of(each, apart)[0]) for each in sums] == pytest.approx(expected, abs=1e-12)


def test_a_third_label_on_disagreement_counts_as_any_of_the_differing_pairs():
    rng = np.random.default_rng(11)
    held = np.argsort(rng.random((80, 8)), axis=1) < 2
    codes = labels(rng, 80, 8, 3, np.ones((80, 8), dtype=bool))
    for unit in range(80):
        first, second = codes[unit, :-1][held[unit]]
        if first != second:
            held[unit, rng.choice(np.flatnonzero(~held[unit]))] = True
    codes[:, :-1][~held] = -1
    coded = replace(coded_of(codes, "nominal", (1.0, 2.0, 3.0)), tie_breaks=True)
    resamples = Resamples(np.ones(80), 0, np.random.default_rng(0))
    overlap = Overlap.of(coded, resamples, coded.members("human"))
    expected = by_hand(coded, np.arange(80), 1.0 - np.eye(3), tie_breaks=True)
    sums = overlap.sums_with_rater(codes[:, -1]).sum(axis=0), overlap.sums_among().sum(axis=0)
    found = [float(kappas_of(each, 1.0 - np.eye(3))[0]) for each in sums]
    assert found == pytest.approx(expected, abs=1e-12)
    plain = by_hand(coded, np.arange(80), 1.0 - np.eye(3))
    assert abs(plain[1] - expected[1]) > 0.05  # pairs with the third label would lower it
