"""Numbers as labels: intraclass correlations, and tables of three by three that lose nothing."""

import krippendorff
import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import group_panel
from evenhand.analysis.agreement.numbers import (
    MeanSquares,
    add_number_rows,
    intraclass_correlation,
    moments,
    rank_contributions,
    squares_of_two,
)
from evenhand.analysis.agreement.pairs import pair_statistics, pair_tables
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import View
from evenhand.errors import InputError
from tests.analysis.make import matrix_of
from tests.known_values import known_values
from tests.peers import formula, sm, stats

POINTS = tuple(str(point) for point in range(101))


def _numbers(rng, units, raters, spread=12.0):
    true = rng.uniform(0, 100, units)
    return np.clip(np.round(true[:, None] + rng.normal(0, spread, (units, raters))), 0, 100) + 0.0


def _matrix(values, **more):
    names = ["ann", "ben", "cat", "dan"]
    names = [*names[: values.shape[1] - 1], "judge"]
    labels = {
        name: ["-" if np.isnan(each) else f"{each:g}" for each in column]
        for name, column in zip(names, values.T, strict=True)
    }
    scale = more.pop("scale", Scale("", POINTS, "interval"))
    return matrix_of(labels, scale, ["judge"], **more)


def _resamples(matrix):
    return Resamples(np.ones(matrix.n_clusters), 40, np.random.default_rng(1))


def test_shrout_and_fleiss_1979():
    known = known_values("shrout_fleiss1979")
    values, by_r = known["data"]["items_x_raters"], known["expected"]["R_psych"]
    for kind, name, at in (("agreement", "ICC(A,1)", 1), ("consistency", "ICC(C,1)", 2)):
        found = intraclass_correlation(values, kind=kind)
        assert found.estimate == pytest.approx(known["expected"]["icc"][name], abs=1e-9)
        assert found.low == pytest.approx(by_r["lower"][at], abs=1e-9)
        assert found.high == pytest.approx(by_r["upper"][at], abs=1e-9)
        assert (found.n, found.k) == (6, 4)


def test_mean_squares_are_those_of_an_analysis_of_variance():
    x = _numbers(np.random.default_rng(3), 30, 4)
    long = pd.DataFrame(
        {"y": x.ravel(), "unit": np.repeat(np.arange(30), 4), "rater": np.tile(np.arange(4), 30)}
    )
    theirs = sm.stats.anova_lm(formula.ols("y ~ C(unit) + C(rater)", long).fit())["mean_sq"]
    ours = MeanSquares.of(
        np.array(30.0), x.sum(axis=0), (x.sum(axis=1) ** 2).sum(), np.array((x**2).sum())
    )
    found = [ours.units, ours.raters, ours.rest]
    assert [float(each) for each in found] == pytest.approx(list(theirs), rel=1e-9)


def test_two_raters_from_their_table():
    values = _numbers(np.random.default_rng(4), 60, 3)
    coded = _matrix(values).on_categories()
    table = pair_tables(coded, [(0, 1)], _resamples(_matrix(values)))[0, 0]
    squares = squares_of_two(moments(table))
    for kind, ours in (("agreement", squares.agreement), ("consistency", squares.consistency)):
        theirs = intraclass_correlation(values[:, :2], kind=kind).estimate
        assert float(ours) == pytest.approx(theirs, abs=1e-9)
    first, second = values[:, 0], values[:, 1]
    panel = {name: float(of(table)) for name, of in pair_statistics(coded).items()}
    apart = np.abs(first[:, None] - second)
    linear = 1 - np.abs(first - second).mean() / apart.mean()
    assert panel["weighted_kappa_linear"] == pytest.approx(linear)
    squares_apart = ((first - second) ** 2).mean() / (apart**2).mean()
    assert panel["weighted_kappa_quadratic"] == pytest.approx(1 - squares_apart)
    assert panel["mean_difference"] == pytest.approx((second - first).mean())
    assert panel["rms_difference"] == pytest.approx(np.sqrt(((second - first) ** 2).mean()))
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
    contributions = rank_contributions(*codes.T, weight)  # a unit of the weight 11 is 11 units
    assert np.tanh(np.average(contributions, weights=weight)) == pytest.approx(whole)
    drawn = rng.multinomial(150, np.full(150, 1 / 150), 400)
    anew = np.array([stats.spearmanr(*values.repeat(times, axis=0).T).statistic for times in drawn])
    ours = np.tanh(drawn @ rank_contributions(*codes.T, np.ones(150)) / 150)
    assert np.corrcoef(ours, anew)[0, 1] > 0.98
    assert ours.std() == pytest.approx(anew.std(), rel=0.05)
    assert np.isnan(rank_contributions(codes[:, 0] * 0, codes[:, 1], weight)).all()
    same = rank_contributions(codes[:, 0], codes[:, 0], weight)
    assert np.tanh(same) == pytest.approx(1.0)


def test_alpha_of_uneven_numbers_with_gaps():
    rng = np.random.default_rng(6)
    values = np.round(rng.choice([0.0, 0.1, 0.35, 0.5, 0.8, 2.75], (50, 3)), 2)
    values[rng.random(values.shape) < 0.2] = np.nan
    seen = sorted({f"{each:g}" for each in values.ravel() if not np.isnan(each)}, key=float)
    scale = Scale("", tuple(seen), "interval", number=True)
    coded = _matrix(values, scale=scale).on_categories()
    matrix = _matrix(values, scale=scale)
    counts = label_counts(coded, range(3))
    found = group_panel(counts, coded, _resamples(matrix))["krippendorff_alpha_interval"][0]
    theirs = krippendorff.alpha(values.T, level_of_measurement="interval")
    assert found == pytest.approx(theirs, abs=1e-9)


def test_people_as_a_group_on_units_that_all_labelled():
    values = _numbers(np.random.default_rng(7), 60, 4)
    values[:20, 2] = np.nan
    matrix = _matrix(values)
    rows = ResultRows("")
    add_number_rows(View.of(rows, matrix.on_categories(), _resamples(matrix)))
    found = rows.get("icc_a1", "humans")
    assert found["estimate"] == pytest.approx(intraclass_correlation(values[:, :3]).estimate)
    assert found["n_units"] == 40
    assert "3 raters, on the 40 items that all of them labelled" in found["note"]
    mean = rows.get("mean_number", "ann")
    assert mean["estimate"] == pytest.approx(values[:, 0].mean())


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
        found = intraclass_correlation(values, kind=kind)
        assert found.estimate == pytest.approx(estimate, nan_ok=True)


def test_what_is_no_set_of_numbers():
    with pytest.raises(InputError, match="two raters"):
        intraclass_correlation([[1], [2]])
    with pytest.raises(InputError, match="agreement or consistency"):
        intraclass_correlation([[1, 2], [2, 3]], kind="absolute")


def test_too_many_different_numbers():
    with pytest.raises(InputError, match="2002 different numbers, more than 2001; round them"):
        Scale("", tuple(str(n) for n in range(2002)), "interval")
