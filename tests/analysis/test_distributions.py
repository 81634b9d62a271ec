"""Distances from people's shares: by enumeration, and on average over synthetic people.

The rows on people's distribution: who is compared, on which units, by what was stated.
"""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale
from evenhand.analysis import distributions as distances
from evenhand.analysis.all_rubrics import views_of
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.make import ratings_of
from tests.peers import stats

# People of one mind; five who are split; six, and seven.
UNITS = [(5, 0, 0), (3, 1, 1), (3, 3, 0), (4, 2, 1)]


@pytest.mark.parametrize("counts", UNITS)
def test_groups_by_every_way_to_draw_them(counts):
    people = np.repeat(np.arange(3), counts)
    for size in range(1, len(people) // 2 + 1):
        groups = list(combinations(range(len(people)), size))
        shares = {each: np.bincount(people[[*each]], minlength=3) / size for each in groups}
        apart = [
            0.5 * np.abs(shares[one] - shares[other]).sum()
            for one in groups
            for other in groups
            if not set(one) & set(other)
        ]
        found = distances.between_groups(np.array([counts], dtype=float), np.array([size]))
        assert found == pytest.approx([np.mean(apart)], abs=1e-12)


def test_halves_of_a_hundred_people_by_scipy():
    affirm = np.array([3, 50, 81])
    split = stats.hypergeom(100, affirm[:, None], 50)
    expected = sum(split.pmf(x).ravel() * abs(2 * x - affirm) / 50 for x in range(51))
    counts = np.column_stack([affirm, 100 - affirm]).astype(float)
    assert distances.between_groups(counts, np.full(3, 50)) == pytest.approx(expected)


def simulated(n, shape, units=16000):
    """What all people say (units, q), how many of n drawn from them do, and a grader's opinion."""
    rng = np.random.default_rng(n)
    shares = rng.dirichlet(shape, units)
    grader = 0.4 * shares + 0.6 * rng.dirichlet(np.ones(len(shape)), units)
    shares = np.repeat(shares, 5, axis=0)
    return shares, rng.multinomial(n, shares).astype(float), np.repeat(grader, 5, axis=0)


SHAPES = {"three, apart": (0.5, 0.5, 0.5), "two, lopsided": (9.0, 1.0)}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("n", [5, 10, 100])
def test_on_average_few_people_say_what_all_would(n, shape):
    """(synthetic) Where the plain figure is far off, the corrected one is near the true one."""
    shares, counts, grader = simulated(n, shape)
    true = ((grader - shares) ** 2).sum(axis=1).mean()
    found = distances.squared_distance(grader, counts).mean()
    one = 1.0 - (shares**2).sum(axis=1).mean()
    assert found == pytest.approx(true, abs=0.05 * one / n + 0.01 * true)
    plain = ((grader - counts / n) ** 2).sum(axis=1).mean()
    assert plain - true == pytest.approx(one / n, rel=0.1)
    worth = distances.equivalent_people(np.array([found]), np.array([one]))[0]
    assert worth == pytest.approx(one / true, rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
@pytest.mark.parametrize("n", [5, 10, 100])
def test_halves_carried_on_to_all(n, shape):
    """(synthetic) Within 2% of how far apart two groups of n are; a root of 2 is further off."""
    shares, counts, _ = simulated(n, shape)
    rng = np.random.default_rng(1)
    groups = [rng.multinomial(n, shares) / n for _ in range(8)]
    true = np.mean([0.5 * np.abs(a - b).sum(axis=1).mean() for a, b in combinations(groups, 2)])
    half, quarter = distances.group_sizes(counts)
    near, far = (distances.between_groups(counts, size).mean() for size in (quarter, half))
    steps = distances.steps_to_all(counts).mean()
    found = distances.between_whole_groups(np.array(near), np.array(far), steps)
    assert found == pytest.approx(true, rel=0.02)
    by_root = far * np.sqrt(half[0] / n)
    assert abs(by_root / true - 1) > {5: 0.08, 10: 0.03, 100: 0.002}[n]


NAMES = ("no", "unsure", "yes")
THREE = Scale("", NAMES)
VERDICT = Scale("", NAMES, affirmative=frozenset({"yes"}))
TWO = Scale("", ("no", "yes"), affirmative=frozenset({"yes"}))


def shares(units, q=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(q, 0.8), units)


def people(given, number, names=NAMES):
    """So many people's labels of each unit, drawn from its shares (units, q)."""
    rng = np.random.default_rng(7)
    labels = np.transpose([rng.choice(names, number, p=each) for each in given])
    return ratings_of({f"r{rater}": own for rater, own in enumerate(labels)})


def grader(name, stated, *, probabilities=True, names=NAMES):
    """A grader whose label is the likeliest of what it states, (units, q)."""
    rows = []
    for unit, each in enumerate(stated):
        row = {"unit_id": f"u{unit:05d}", "rater_id": name, "rater_kind": "model"}
        row["label"] = names[int(each.argmax())]
        if probabilities:
            row["probabilities"] = json.dumps(dict(zip(names, each.tolist(), strict=True)))
        rows.append(row)
    return pd.DataFrame(rows)


def rows_of(*tables, scale=THREE, resamples=200):
    ratings = validate_ratings(pd.concat(tables, ignore_index=True))
    labels, frequency = encode(combine_readings(ratings, scale), scale).folded()
    drawn = Bootstrap(resamples).draw(frequency)
    views = views_of(ResultRows(""), labels, lambda: drawn, Request(None, AnalysisSettings()))
    for view in views["labels"] if labels.models else ():
        distances.add_distribution_rows(view)
    return views["labels"][0].rows


def row_of(rows, statistic, grader="", at=""):
    found = rows.get(statistic, "humans", grader, at=at)
    assert found is not None, statistic
    return found


def codes(row):
    return {remark.code for remark in row["remarks"]}


@pytest.mark.parametrize(("number", "units", "any_rows"), [(4, 60, 0), (5, 29, 0), (5, 30, 1)])
def test_only_where_enough_people_labelled(number, units, any_rows):
    given = shares(units)
    assert bool(rows_of(people(given, number), grader("g", given)).rows) == any_rows


def test_by_hand_in_numpy():
    given, stated = shares(50), shares(50, seed=1)
    labels = people(given, 8)
    rows = rows_of(labels, grader("g", stated))
    counts = labels.groupby(["unit_id", "label"]).size().unstack(fill_value=0)[list(NAMES)]
    seen = counts.to_numpy() / 8
    agree = (counts * (counts - 1)).to_numpy().sum(axis=1) / 56
    expected = {
        "total_variation": 0.5 * np.abs(stated - seen).sum(axis=1).mean(),
        "squared_distance": ((stated**2 - 2 * stated * seen).sum(axis=1) + agree).mean(),
    }
    for statistic, value in expected.items():
        row = row_of(rows, statistic, "g")
        assert row["estimate"] == pytest.approx(value)
        assert row["low"] < value < row["high"]
    worth = row_of(rows, "people_worth", "g")["estimate"]
    assert worth == pytest.approx((1 - agree).mean() / expected["squared_distance"])
    apart = row_of(rows, "total_variation")["estimate"]
    excess = row_of(rows, "total_variation_excess", "g")["estimate"]
    assert excess == pytest.approx(expected["total_variation"] - apart)


def test_a_hard_label_counts_as_certain_and_a_part_of_the_probability_as_the_whole():
    given = shares(60)
    certain = np.eye(3)[given.argmax(axis=1)]
    graders = [grader("g", given, probabilities=False)]
    graders += [grader("g", stated) for stated in (certain, given, given * 0.5)]
    found = (rows_of(people(given, 6), each) for each in graders)
    hard, sure, whole, part = (row_of(rows, "squared_distance", "g") for rows in found)
    assert hard["estimate"] == pytest.approx(sure["estimate"])
    assert [("hard_labels" in codes(row)) for row in (hard, sure)] == [True, False]
    assert part["estimate"] == pytest.approx(whole["estimate"])


def test_the_probability_of_the_affirmative_answer():
    """p_positive alone says all of two categories, and of three only the verdict."""
    given = shares(40, 2)
    stated = grader("g", given, probabilities=False, names=("no", "yes"))
    stated["p_positive"] = given[:, 1]
    labels = people(given, 6, ("no", "yes"))
    as_shares = rows_of(labels, grader("g", given, names=("no", "yes")), scale=TWO)
    as_p = rows_of(labels, stated, scale=TWO)
    for subset in ("all", "all|binary"):
        rows = [each.get("squared_distance", "humans", "g", subset) for each in (as_shares, as_p)]
        first, second = (row["estimate"] for row in rows if row)
        assert first == pytest.approx(second)
    three = rows_of(labels, stated, scale=VERDICT)
    assert codes(row_of(three, "squared_distance", "g")) == {"hard_labels"}
    binary = three.get("squared_distance", "humans", "g", "all|binary")
    assert binary["estimate"] == pytest.approx(first)


def test_a_grader_is_not_compared_with_the_person_that_it_repeats():
    labels = people(shares(60), 6)
    own = labels[labels["rater_id"] == "r0"].assign(rater_id="g", rater_kind="model")
    rows, alone = rows_of(labels, own), rows_of(labels[labels["rater_id"] != "r0"], own)
    first, second = (row_of(each, "squared_distance", "g") for each in (rows, alone))
    assert first["estimate"] == pytest.approx(second["estimate"])
    # It would be worth less as one of six whom it is held against.
    assert row_of(rows, "people_worth", "g")["estimate"] == pytest.approx(1, abs=0.3)


def test_people_of_one_mind_measure_nobody():
    rows = rows_of(people(np.eye(3)[np.arange(40) % 3], 6), grader("g", shares(40)))
    worth = row_of(rows, "people_worth", "g")
    assert np.isnan(worth["estimate"])
    assert codes(worth) == {"no_variation"}
    assert row_of(rows, "total_variation")["estimate"] == 0


def test_a_grader_nearer_than_chance_is_worth_the_most_that_is_said():
    labels = people(shares(60), 6)
    counts = labels.groupby(["unit_id", "label"]).size().unstack(fill_value=0)[list(NAMES)]
    row = row_of(rows_of(labels, grader("g", counts.to_numpy() / 6)), "people_worth", "g")
    assert (row["estimate"], row["high"]) == (1000, 1000)
    assert "people_or_more" in codes(row)
