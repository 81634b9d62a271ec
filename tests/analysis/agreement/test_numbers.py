"""Numbers as labels: intraclass correlations, and tables of three by three that lose nothing.

Agreement where every unit counts once, against loops over single pairs of labels.
"""

from collections import defaultdict
from dataclasses import replace
from itertools import combinations

import krippendorff
import numpy as np
import pytest

from evenhand.analysis.agreement import numbers, pairs
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.bootstrap.bounds import kappas_of
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import View
from evenhand.errors import InputError
from tests.analysis.make import coded_of, matrix_of
from tests.known_values import known_values
from tests.peers import stats

HUNDRED = Scale("", tuple(str(point) for point in range(101)), "interval")


def _numbers(rng, units, raters, spread=12.0):
    true = rng.uniform(0, 100, units)
    return np.clip(np.round(true[:, None] + rng.normal(0, spread, (units, raters))), 0, 100) + 0.0


def _matrix(values, scale=HUNDRED):
    names = ["ann", "ben", "cat", "dan"]
    names = [*names[: values.shape[1] - 1], "judge"]
    labels = {
        name: ["-" if np.isnan(each) else f"{each:g}" for each in column]
        for name, column in zip(names, values.T, strict=True)
    }
    return matrix_of(labels, scale, ["judge"])


def _resamples(matrix):
    return Resamples(np.ones(matrix.n_clusters), 40, np.random.default_rng(1))


def test_shrout_and_fleiss_1979():
    known = known_values("shrout_fleiss1979")
    values, by_r = known["data"]["items_x_raters"], known["expected"]["R_psych"]
    for kind, name, at in (("agreement", "ICC(A,1)", 1), ("consistency", "ICC(C,1)", 2)):
        found = numbers.intraclass_correlation(values, kind=kind)
        assert found.estimate == pytest.approx(known["expected"]["icc"][name], abs=1e-9)
        assert found.low == pytest.approx(by_r["lower"][at], abs=1e-9)
        assert found.high == pytest.approx(by_r["upper"][at], abs=1e-9)
        assert (found.n, found.k) == (6, 4)


def test_two_raters_from_their_table():
    values = _numbers(np.random.default_rng(4), 60, 3)
    coded = _matrix(values).on_categories()
    table = pairs.pair_tables(coded, [(0, 1)], _resamples(_matrix(values)))[0, 0]
    squares = numbers.squares_of_two(table)
    for kind, ours in (("agreement", squares.agreement), ("consistency", squares.consistency)):
        theirs = numbers.intraclass_correlation(values[:, :2], kind=kind).estimate
        assert float(ours) == pytest.approx(theirs, abs=1e-9)
    first, second = values[:, 0], values[:, 1]
    statistics = pairs.measurement_of(coded).statistics()
    panel = {name: float(of(table)) for name, of in statistics.items()}
    apart = np.abs(first[:, None] - second)
    linear = 1 - np.abs(first - second).mean() / apart.mean()
    assert panel["weighted_kappa_linear"] == pytest.approx(linear)
    squares_apart = ((first - second) ** 2).mean() / (apart**2).mean()
    assert panel["weighted_kappa_quadratic"] == pytest.approx(1 - squares_apart)
    assert panel["mean_difference"] == pytest.approx((second - first).mean())
    assert panel["spearman"] == pytest.approx(stats.spearmanr(first, second).statistic)


def test_ranks_of_a_resample_are_close_to_those_that_are_ranked_anew():
    rng = np.random.default_rng(5)
    quality = rng.normal(size=150)
    values = np.round(50 + 20 * quality[:, None] + rng.normal(0, 15, (150, 2)), -1)  # with ties
    values[4:44] = np.tile(values[:4], (10, 1))
    codes = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    weight = np.where(np.arange(150) < 4, 11.0, 1.0)
    weight[4:44] = 0.0
    whole = stats.spearmanr(*values.T).statistic
    contributions = numbers.rank_contributions(*codes.T, weight)  # weight 11 is 11 units
    assert np.tanh(np.average(contributions, weights=weight)) == pytest.approx(whole)
    drawn = rng.multinomial(150, np.full(150, 1 / 150), 400)
    anew = np.array([stats.spearmanr(*values.repeat(times, axis=0).T).statistic for times in drawn])
    ours = np.tanh(drawn @ numbers.rank_contributions(*codes.T, np.ones(150)) / 150)
    assert np.corrcoef(ours, anew)[0, 1] > 0.98
    assert ours.std() == pytest.approx(anew.std(), rel=0.05)
    assert np.isnan(numbers.rank_contributions(codes[:, 0] * 0, codes[:, 1], weight)).all()
    same = numbers.rank_contributions(codes[:, 0], codes[:, 0], weight)
    assert np.tanh(same) == pytest.approx(1.0)


def test_alpha_of_uneven_numbers_with_gaps():
    rng = np.random.default_rng(6)
    values = np.round(rng.choice([0.0, 0.1, 0.35, 0.5, 0.8, 2.75], (50, 3)), 2)
    values[rng.random(values.shape) < 0.2] = np.nan
    seen = sorted({f"{each:g}" for each in values.ravel() if not np.isnan(each)}, key=float)
    matrix = _matrix(values, scale=Scale("", tuple(seen), "interval", number=True))
    coded = matrix.on_categories()
    panel = group_panel(label_counts(coded, range(3)), coded, _resamples(matrix))
    found = panel["krippendorff_alpha_interval"][0]
    theirs = krippendorff.alpha(values.T, level_of_measurement="interval")
    assert found == pytest.approx(theirs, abs=1e-9)


def test_people_as_a_group_on_units_that_all_labelled():
    values = _numbers(np.random.default_rng(7), 60, 4)
    values[:20, 2] = np.nan
    matrix = _matrix(values)
    rows = ResultRows("")
    numbers.add_number_rows(View.of(rows, matrix.on_categories(), _resamples(matrix)))
    found, expected = rows.get("icc_a1", "humans"), numbers.intraclass_correlation(values[:, :3])
    assert found["estimate"] == pytest.approx(expected.estimate)
    assert found["n_units"] == 40
    assert "3 raters, on the 40 items that all of them labelled" in found["note"]
    assert rows.get("mean_number", "ann")["estimate"] == pytest.approx(values[:, 0].mean())


@pytest.mark.parametrize(
    ("values", "estimate"),
    [
        ([[5, 5], [5, 5], [5, 5]], np.nan),  # nothing varies
        ([[1, 2]], np.nan),  # one unit
        ([[1, 1], [2, 2], [3, 3]], 1.0),  # the same throughout
        ([[1, np.nan], [2, 2], [3, 3], [np.nan, 4]], 1.0),  # gaps: two whole units
    ],
)
def test_degenerate_numbers(values, estimate):
    for kind in ("agreement", "consistency"):
        found = numbers.intraclass_correlation(values, kind=kind)
        assert found.estimate == pytest.approx(estimate, nan_ok=True)


def test_what_is_no_set_of_numbers():
    with pytest.raises(InputError, match="two raters"):
        numbers.intraclass_correlation([[1], [2]])
    with pytest.raises(InputError, match="agreement or consistency"):
        numbers.intraclass_correlation([[1, 2], [2, 3]], kind="absolute")
    with pytest.raises(InputError, match="2002 different numbers, more than 2001; round them"):
        Scale("", tuple(str(n) for n in range(2002)), "interval")


def kappa_by_hand(labels, apart):
    """The size and the kappa of one table, from its pairs of labels."""
    size = sum(weight for weight, _, _ in labels)
    first, second, observed = defaultdict(float), defaultdict(float), 0.0
    for weight, a, b in labels:
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
    with_grader, among = defaultdict(list), defaultdict(list)
    for u in units:
        who = [p for p in range(people.shape[1]) if people[u, p] >= 0]
        counted = list(combinations(who, 2))
        if tie_breaks and len(who) > 2:
            counted = [(a, b) for a, b in counted if people[u, a] != people[u, b]]
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
        found = [kappa_by_hand(labels, apart) for labels in tables.values()]
        found = [(size, kappa) for size, kappa in found if not np.isnan(kappa)]
        means.append(sum(s * k for s, k in found) / sum(s for s, _ in found))
    return means


def labels_of(rng, units, people, q, held):
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
    "two who share no unit": lambda rng, n, k: np.column_stack(
        [np.arange(n) % 2 == 0, np.arange(n) % 2 == 1, np.ones((n, k - 2))]
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
    codes = labels_of(rng, n, k, len(values), DESIGNS[design](rng, n, k))
    level = {"number": "interval"}.get(kind, kind)
    coded = coded_of(codes, level, values, is_number=kind == "number")
    at = np.asarray(values) if kind == "number" else np.arange(len(values))
    apart = np.abs(at[:, None] - at) / np.ptp(at)
    if kind == "nominal":
        apart = (apart > 0) * 1.0
    twice = (codes[:, :-1] >= 0).sum(axis=1) >= 2
    resamples = Resamples(np.ones(n), 0, np.random.default_rng(0))
    overlap = pairs.Overlap.of(coded, resamples, coded.members("human"), twice)
    name = pairs.deciding_kappa(coded)
    statistics = {name: pairs.measurement_of(coded).statistics()[name]}
    expected = by_hand(coded, np.flatnonzero(twice), apart)
    with_grader = pairs.means_with(overlap, codes[:, -1], resamples, statistics)
    among = pairs.means_of(overlap, overlap.tables_among(), resamples, statistics)
    found = [float(means[name].values[0]) for means in (with_grader, among)]
    assert found == pytest.approx(expected, abs=1e-12)
    # The form by which verdicts are bounded gives the same.
    sums = overlap.sums_with_rater(codes[:, -1]).sum(axis=0), overlap.sums_among().sum(axis=0)
    assert [float(kappas_of(each, apart)[0]) for each in sums] == pytest.approx(expected, abs=1e-12)


def test_a_third_label_on_disagreement_counts_as_any_of_the_differing_pairs():
    rng = np.random.default_rng(11)
    held = np.argsort(rng.random((80, 8)), axis=1) < 2
    codes = labels_of(rng, 80, 8, 3, np.ones((80, 8), dtype=bool))
    for unit in range(80):
        first, second = codes[unit, :-1][held[unit]]
        if first != second:
            held[unit, rng.choice(np.flatnonzero(~held[unit]))] = True
    codes[:, :-1][~held] = -1
    coded = replace(coded_of(codes, "nominal", (1.0, 2.0, 3.0)), tie_breaks=True)
    resamples = Resamples(np.ones(80), 0, np.random.default_rng(0))
    overlap = pairs.Overlap.of(coded, resamples, coded.members("human"))
    expected = by_hand(coded, np.arange(80), 1.0 - np.eye(3), tie_breaks=True)
    sums = overlap.sums_with_rater(codes[:, -1]).sum(axis=0), overlap.sums_among().sum(axis=0)
    found = [float(kappas_of(each, 1.0 - np.eye(3))[0]) for each in sums]
    assert found == pytest.approx(expected, abs=1e-12)
    plain = by_hand(coded, np.arange(80), 1.0 - np.eye(3))
    assert abs(plain[1] - expected[1]) > 0.05  # pairs with the third label would lower it
