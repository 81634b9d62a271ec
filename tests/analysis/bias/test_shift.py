"""Shifts beyond what people's score explains: strictness is none, and what is put in comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import multivariate_normal

from evenhand.analysis.bias.expected import _angle, _third_difference
from evenhand.analysis.bias.shift import NOT_SCALED, Calls, Shift, parts_of, shift_with
from evenhand.analysis.bootstrap.resamples import Resamples

MANY = 60_000
"""Units, so that what is left of an estimate is its bias: a standard error of .005."""


def _shift(
    people: np.ndarray,
    grader: np.ndarray,
    x: np.ndarray,
    resamples: int = 1,
    *,
    noisy: bool = False,
) -> Shift:
    n, k = people.shape
    calls = Calls(
        raters=tuple(f"r{rater}" for rater in range(k + 1)),
        kinds=("human",) * k + ("model",),
        values=np.column_stack([people, grader]).astype(float),
        clusters=np.arange(n),
        subjects=(),
        subject=np.full(n, -1),
        unit=np.arange(n),
        subset="all|binary",
    )
    drawn = Resamples(np.ones(n), resamples, np.random.default_rng(1))
    found = shift_with(calls, k, x, drawn, noisy=noisy)
    assert found is not None
    return found


@pytest.fixture
def seen() -> Callable[..., tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """seen(n, gap=1, ...): three people, a grader, and in which half a unit is; quality is normal,
    `gap` standard deviations higher in the second half. Synthetic.
    """

    def make(
        n: int,
        *,
        gap: float = 1.0,
        strict: float = 1.0,
        noise: float = 0.8,
        wider: float = 1.0,
        bias: float = 0.0,
        people: int = 3,
        lenient: tuple[float, ...] = (0.0, 0.0, 0.0),
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(11)
        x = (np.arange(n) % 2).astype(float)
        quality = rng.normal(size=n) * np.where(x, wider, 1.0) + gap * x
        errors = 0.8 * rng.normal(size=(n, people))
        called = quality[:, None] + errors > gap / 2 + np.array(lenient)[:people]
        grader = quality + noise * rng.normal(size=n) > gap / 2 + strict - bias * x
        return called.astype(float), grader.astype(float), x

    return make


@pytest.mark.parametrize("gap", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("strict", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("noise", [0.5, 1.5])
def test_strict_sharp_and_dull_graders_have_no_shift(
    seen: Callable, gap: float, strict: float, noise: float
) -> None:
    people, grader, x = seen(MANY, gap=gap, strict=strict, noise=noise)
    assert _shift(people, grader, x).values[0] == pytest.approx(0.0, abs=0.016)
    if gap == 2.0 and strict and noise == 1.5:
        plain = grader[x == 1].mean() - grader[x == 0].mean()
        of_people = people[x == 1].mean() - people[x == 0].mean()
        assert abs(plain - of_people) > 0.15


@pytest.mark.parametrize(
    "about",
    [{"people": 2}, {"wider": 1.5}, {"lenient": (-0.4, 0.0, 0.5)}],
    ids=["two people", "one half varies more", "people differ in leniency"],
)
def test_nor_with_other_people_and_other_units(seen: Callable, about: dict) -> None:
    people, grader, x = seen(MANY, **about)
    assert _shift(people, grader, x).values[0] == pytest.approx(0.0, abs=0.016)


@pytest.mark.parametrize("sees", [0.8, 0.4, 0.0])
def test_where_units_are_of_two_kinds_little_is_left(sees: float, make_calls: Callable) -> None:
    """Half of one part and a tenth of the other are affirmative; the raters' errors know nothing
    of parts. Quality is not normal at all then, and two people's labels cannot tell: a tenth of
    people's own difference may be left, where the plain difference has up to all of it.
    """
    rng = np.random.default_rng(3)
    n = 20_000
    part = np.arange(n) % 2
    truth = rng.random(n) < np.where(part, 0.5, 0.1)
    people = make_calls(rng, truth, [0.7, 0.7])
    values = np.column_stack([people, make_calls(rng, truth, [sees])])
    x = part.astype(float)
    plain = values[part == 1].mean(axis=0) - values[part == 0].mean(axis=0)
    assert _shift(people, values[:, 2], x).values[0] == pytest.approx(0.0, abs=0.04)
    assert plain[2] == pytest.approx(0.4 * sees, abs=0.02)


def test_where_no_sharpness_fits_nothing_is_told(make_calls: Callable) -> None:
    """A grader who always sees which of two kinds a unit is, beside people whose labels let quality
    seem normal: no sharpness goes so far along with them, and thousands of units show it.
    """
    rng = np.random.default_rng(3)
    part = np.arange(20_000) % 2
    truth = rng.random(20_000) < np.where(part, 0.5, 0.1)
    people, grader = make_calls(rng, truth, [0.7, 0.7]), make_calls(rng, truth, [1.0])[:, 0]
    told = _shift(people[:200], grader[:200], part[:200].astype(float), 50)
    assert not np.isnan(told.values[0])
    found = _shift(people, grader, part.astype(float), 50)
    assert np.isnan(found.values).all()
    assert found.reason == "no_sharpness_fits"


@pytest.mark.slow
def test_against_a_probit_regression_where_the_score_is_known() -> None:
    """60 people know a unit's score. Then the shift is what a probit regression of the grader on
    the score and the part gives, as marginal shares: statsmodels.
    """
    import statsmodels.api as sm

    rng = np.random.default_rng(4)
    n, k = 8000, 60
    x = (np.arange(n) % 2).astype(float)
    place = 0.8 * rng.normal(size=n) + 0.7 * x - 0.3
    people = (rng.random((n, k)) < ndtr(place)[:, None]).astype(float)
    grader = (rng.random(n) < ndtr(-0.6 + 1.1 * place + 0.4 * x)).astype(float)
    found = _shift(people, grader, x).values[0]
    design = np.column_stack([np.ones(n), place, x])
    fitted = sm.Probit(grader, design).fit(disp=False)
    without = fitted.params * [1, 1, 0]
    # The shift is centred: half of the coefficient off the second part, half onto the first.
    without[0] += fitted.params[2] / 2
    beyond = grader - ndtr(design @ without)
    assert fitted.params[2] == pytest.approx(0.4, abs=0.12)
    assert found == pytest.approx(beyond[x == 1].mean() - beyond[x == 0].mean(), abs=0.02)


def test_a_bias_comes_out_as_large_as_it_is(seen: Callable) -> None:
    """Half a standard deviation easier in the second half: as many more calls as the same grader
    makes without it, there.
    """
    people, grader, x = seen(MANY, gap=0.0, bias=0.5)
    _, fair, _ = seen(MANY, gap=0.0)
    assert _shift(people, grader, x).values[0] == pytest.approx(
        (grader - fair)[x == 1].mean(), abs=0.016
    )


def test_steps_of_a_directed_call_add_up(seen: Callable) -> None:
    """-1, 0, 1: the shift of the sum of two steps is the sum of their shifts."""
    people, grader, x = seen(4000, bias=0.5)
    more, also, _ = seen(4000, strict=2.0)
    people, more = people.astype(int), more.astype(int)
    both = _shift(people + people[:, ::-1] - 1, grader + also - 1, x).values[0]
    steps = [
        _shift(people + people[:, ::-1] - 1 >= least, grader + also - 1 >= least, x).values[0]
        for least in (0, 1)
    ]
    assert both == pytest.approx(sum(steps))


def test_with_one_person_the_grader_is_taken_to_see_as_people_do(seen: Callable) -> None:
    people, grader, x = seen(4000)
    found = _shift(people[:, :1], grader, x)
    assert found.note == NOT_SCALED
    shares = [each[x == part].mean() for each in (people[:, 0], grader) for part in (0, 1)]
    first, second, own_first, own_second = shares
    # By hand: equal steps on the normal scale from the level at which the means agree.
    level = np.linspace(-3, 0, 300_001)
    expected = ndtr(level + ndtri(first)), ndtr(level + ndtri(second))
    at = np.argmin(np.abs(sum(expected) - own_first - own_second))
    by_hand = (own_second - expected[1][at]) - (own_first - expected[0][at])
    assert found.values[0] == pytest.approx(by_hand, abs=1e-4)


@pytest.mark.parametrize("always", [0.0, 1.0])
def test_a_constant_grader_has_no_shift(seen: Callable, always: float) -> None:
    people, grader, x = seen(400)
    values = _shift(people, np.full_like(grader, always), x, 50).values
    assert values == pytest.approx(0.0, abs=1e-3)


def test_people_who_agree_by_chance_leave_it_open(seen: Callable) -> None:
    people, grader, x = seen(400)
    people[:, 1:] = np.random.default_rng(2).random((400, 2)) < 0.5
    people[:, 0] = 1 - people[:, 1]
    found = _shift(people, grader, x)
    assert np.isnan(found.values[0])
    assert found.reason == "people_agree_by_chance"


def _along(
    strict: float, *, noisier: float = 1.0, wider: float = 1.0, bias: float = 0.0, people: int = 3
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """People, a grader and a length: noise of all and the spread of quality change with it."""
    rng = np.random.default_rng(12)
    x = 0.5 * rng.normal(size=MANY)
    quality = wider**x * rng.normal(size=MANY) + x
    noise = 0.8 * noisier**x
    called = quality[:, None] + noise[:, None] * rng.normal(size=(MANY, people)) > 0
    grader = quality + noise * rng.normal(size=MANY) > strict - bias * x
    return called.astype(float), grader.astype(float), x


@pytest.mark.slow
@pytest.mark.parametrize("strict", [-1.0, 1.0])
@pytest.mark.parametrize("noisier", [0.6, 1.0, 1.7])
def test_one_reading_knows_noise_that_changes_with_length(strict: float, noisier: float) -> None:
    """The other one blames strictness: by .05 and more where noise changes, which it also does
    within a fifth of the lengths.
    """
    found = _shift(*_along(strict, noisier=noisier), noisy=True)
    assert found.if_noisy is not None
    assert found.if_noisy[0] == pytest.approx(0.0, abs=0.025)
    if noisier == 1.0:
        assert found.values[0] == pytest.approx(0.0, abs=0.016)
    else:
        assert found.values[0] * np.sign(strict * (noisier - 1.0)) > 0.05


@pytest.mark.slow
def test_one_reading_knows_quality_that_spreads_more_with_length() -> None:
    found = _shift(*_along(1.0, wider=1.7), noisy=True)
    assert found.if_noisy is not None
    assert found.values[0] == pytest.approx(0.0, abs=0.016)
    assert found.if_noisy[0] > 0.05


@pytest.mark.slow
def test_both_readings_see_the_same_bias_where_noise_is_equal() -> None:
    found = _shift(*_along(1.0, bias=0.5), noisy=True)
    assert found.if_noisy is not None
    assert found.values[0] > 0.09
    assert found.if_noisy[0] == pytest.approx(found.values[0], abs=0.016)


def test_one_person_tells_nothing_of_noise() -> None:
    assert _shift(*_along(1.0, people=1), noisy=True).if_noisy is None


def test_one_part_is_no_comparison(seen: Callable) -> None:
    people, grader, x = seen(100)
    found = _shift(people, grader, np.zeros_like(x), noisy=True)
    assert np.isnan(found.values[0])
    assert found.if_noisy is not None
    assert np.isnan(found.if_noisy[0])
    assert found.reason == "no_variation"


def test_nothing_in_common_is_no_row(seen: Callable) -> None:
    people, grader, x = seen(20)
    calls = Calls(
        ("h", "g"), ("human", "model"), np.column_stack([people[:, 0], grader * np.nan]),
        np.arange(20), (), np.full(20, -1), np.arange(20), "all",
    )  # fmt: skip
    assert shift_with(calls, 1, x, Resamples(np.ones(20), 1, np.random.default_rng(1))) is None


def test_parts_are_values_or_fifths() -> None:
    assert parts_of(np.array([0.0, 1.0, 1.0])).sum(axis=0).tolist() == [1, 2]
    assert parts_of(np.arange(50.0)).sum(axis=0).tolist() == [10] * 5
    tied = parts_of(np.array([1.0] * 40 + [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
    assert (tied.sum(axis=0) > 0).all()
    assert (tied.sum(axis=1) == 1).all()


@pytest.mark.parametrize("place", [-1.5, 0.0, 0.7])
@pytest.mark.parametrize("correlation", [0.1, 0.6, 0.95])
def test_the_correlation_is_that_of_scipy(place: float, correlation: float) -> None:
    both = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([place, place])
    found = _angle(np.array([[place]]), np.array([[both - ndtr(place) ** 2]]))
    assert np.sin(found[0, 0]) == pytest.approx(correlation, abs=2e-3)


def test_a_third_difference_is_that_of_a_cubic() -> None:
    at = np.array([0.1, 0.25, 0.6, 0.9])
    weights = _third_difference(at)
    assert [float(weights @ at**power) for power in range(4)] == pytest.approx([0, 0, 0, 1])


@pytest.fixture
def make_calls() -> Callable[..., np.ndarray]:
    """Calls (units, raters) that are the truth with each rater's probability, else a coin's."""

    def make(rng: np.random.Generator, truth: np.ndarray, sees: list[float]) -> np.ndarray:
        shape = (len(truth), len(sees))
        return np.where(rng.random(shape) < sees, truth[:, None], rng.random(shape) < 0.5).astype(
            float
        )

    return make
