"""Shifts beyond what people's score explains: strictness is none, and what is put in comes out.

Length, self-preference, parts of the sample, groups of people: what was put in is found.
The grader's side less people's, scaled: against plain loops over the units.
"""

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from evenhand.analysis.bias import expected as shift
from evenhand.analysis.bias.audit import findings
from evenhand.analysis.bootstrap.resamples import Resamples
from tests.analysis.bias.samples import RESPONSE, SEES_C, audited, responses, row_of, sample
from tests.peers import optimize, sm, stats

MANY = 60_000
"""Units, so that what is left of an estimate is its bias: a standard error of .005."""


def calls_of(values):
    """Calls (units, people and a grader), each unit a cluster."""
    n, raters = values.shape
    names = tuple(f"r{rater}" for rater in range(raters))
    kinds, unit = ("human",) * (raters - 1) + ("model",), np.arange(n)
    return shift.Calls(names, kinds, values, unit, (), np.full(n, -1), unit, "all|binary")


def _shift(people, grader, x, resamples=1, noisy=False):
    calls = calls_of(np.column_stack([people, grader]).astype(float))
    drawn = Resamples(np.ones(len(x)), resamples, np.random.default_rng(1))
    found = shift.Shifts(calls, x, drawn, noisy=noisy).of(people.shape[1])
    assert found is not None
    return found


def seen(
    n, *, gap=1.0, strict=1.0, noise=0.8, wider=1.0, bias=0.0, people=3, lenient=(0.0, 0.0, 0.0)
):
    """Three people, a grader, and in which half a unit is; the second has `gap` more quality."""
    rng = np.random.default_rng(11)
    x = (np.arange(n) % 2).astype(float)
    quality = rng.normal(size=n) * np.where(x, wider, 1.0) + gap * x
    errors = 0.8 * rng.normal(size=(n, people))
    called = quality[:, None] + errors > gap / 2 + np.array(lenient)[:people]
    grader = quality + noise * rng.normal(size=n) > gap / 2 + strict - bias * x
    return called.astype(float), grader.astype(float), x


@pytest.mark.parametrize("about", [
    *({"gap": gap, "strict": strict, "noise": noise}
      for gap, strict, noise in ((0, -1, 0.5), (0, 1, 1.5), (2, -1, 1.5), (2, 1, 0.5))),
    *({"people": 2}, {"wider": 1.5}, {"lenient": (-0.4, 0.0, 0.5)}),
], ids=str)  # fmt: skip
def test_strict_sharp_and_dull_graders_have_no_shift(about):
    """Nor beside two people, people who differ in leniency, or where one half varies more."""
    people, grader, x = seen(MANY, **about)
    assert _shift(people, grader, x).values[0] == pytest.approx(0.0, abs=0.016)
    if about.get("gap") == 2.0 and about["noise"] == 1.5:
        plain = grader[x == 1].mean() - grader[x == 0].mean()
        assert abs(plain - (people[x == 1].mean() - people[x == 0].mean())) > 0.15


@pytest.mark.slow
def test_against_a_probit_regression_where_the_score_is_known():
    """60 people know a unit's score. Then the shift is what a probit regression of the grader on
    the score and the part gives, as marginal shares: statsmodels.
    """
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


def test_a_bias_comes_out_as_large_as_it_is():
    """Half a standard deviation easier in the second half: as many more calls there."""
    people, grader, x = seen(MANY, gap=0.0, bias=0.5)
    _, fair, _ = seen(MANY, gap=0.0)
    more = (grader - fair)[x == 1].mean()
    assert _shift(people, grader, x).values[0] == pytest.approx(more, abs=0.016)


def test_steps_of_a_directed_call_add_up():
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


def test_with_one_person_the_grader_is_taken_to_see_as_people_do():
    people, grader, x = seen(4000)
    found = _shift(people[:, :1], grader, x)
    assert found.note == shift.SHARPNESS_ASSUMED
    shares = [each[x == part].mean() for each in (people[:, 0], grader) for part in (0, 1)]
    first, second, own_first, own_second = shares
    # By hand: equal steps on the normal scale from the level at which the means agree.
    level = np.linspace(-3, 0, 300_001)
    expected = ndtr(level + ndtri(first)), ndtr(level + ndtri(second))
    at = np.argmin(np.abs(sum(expected) - own_first - own_second))
    by_hand = (own_second - expected[1][at]) - (own_first - expected[0][at])
    assert found.values[0] == pytest.approx(by_hand, abs=1e-4)


def test_degenerate_shifts():
    people, grader, x = seen(400)
    for always in (0.0, 1.0):
        values = _shift(people, np.full_like(grader, always), x, 50).values
        assert values == pytest.approx(0.0, abs=1e-3)
    one_part = _shift(people, grader, np.zeros_like(x), noisy=True)
    assert np.isnan([one_part.values[0], one_part.if_noisy[0]]).all()
    assert one_part.reason == "no_variation"
    assert _shift(people[:, :1], grader, x, noisy=True).if_noisy is None
    people[:, 1:] = np.random.default_rng(2).random((400, 2)) < 0.5
    people[:, 0] = 1 - people[:, 1]
    found = _shift(people, grader, x)
    assert np.isnan(found.values[0])
    assert found.reason == "people_agree_by_chance"


def _along(strict, noisier):
    """People, a grader and a length, with which the noise of all changes."""
    rng = np.random.default_rng(12)
    x = 0.5 * rng.normal(size=MANY)
    quality = rng.normal(size=MANY) + x
    noise = 0.8 * noisier**x
    called = quality[:, None] + noise[:, None] * rng.normal(size=(MANY, 3)) > 0
    grader = quality + noise * rng.normal(size=MANY) > strict
    return called.astype(float), grader.astype(float), x


@pytest.mark.slow
@pytest.mark.parametrize("strict", [-1.0, 1.0])
@pytest.mark.parametrize("noisier", [0.6, 1.0, 1.7])
def test_one_reading_knows_noise_that_changes_with_length(strict, noisier):
    """The other one blames strictness: by .05 and more where noise changes."""
    found = _shift(*_along(strict, noisier), noisy=True)
    assert found.if_noisy[0] == pytest.approx(0.0, abs=0.025)
    if noisier == 1.0:
        assert found.values[0] == pytest.approx(0.0, abs=0.016)
    else:
        assert found.values[0] * np.sign(strict * (noisier - 1.0)) > 0.05


def test_parts_are_values_or_fifths():
    assert shift.strata_of(np.array([0.0, 1.0, 1.0])).sum(axis=0).tolist() == [1, 2]
    assert shift.strata_of(np.arange(50.0)).sum(axis=0).tolist() == [10] * 5
    tied = shift.strata_of(np.array([1.0] * 40 + [2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
    assert (tied.sum(axis=0) > 0).all()
    assert (tied.sum(axis=1) == 1).all()


@pytest.mark.slow
def test_length_of_the_sides():
    """Of the C a tenth goes to the longer side for every doubling: .1 x P(C) per doubling."""
    made = sample(1, pairs=500)
    words = made.rng.integers(60, 600, (len(made.units), 2))
    made.units[["response_a_words", "response_b_words"]] = words.astype(str)
    doublings = np.log2(words[:, 0] / words[:, 1])
    label = made.see(0.8)
    label = made.turned(label, "C", "A", 0.1 * np.maximum(doublings, 0))
    made.rate("wordy", made.turned(label, "C", "B", 0.1 * np.maximum(-doublings, 0)))
    made.rate("fair", made.see(0.8))
    rows = audited(made)
    wordy, fair = (row_of(rows, "bias_length", rater) for rater in ("wordy", "fair"))
    assert 0 < wordy["low"] < 0.1 * SEES_C < wordy["high"]
    assert fair["low"] < 0 < fair["high"]


def test_length_of_a_text_beside_the_response():
    """One judge lets more pass the longer the context is; another does not look at it."""
    made = responses(6, pairs=500)
    words = made.rng.integers(64, 1024, len(made.units))
    made.units["context"] = "a text"
    made.units["context_words"] = words
    made.rate("lost", made.turned(made.see(0.8), "no", "yes", 0.1 * np.log2(words / 64)))
    made.rate("fair", made.see(0.8))
    rows = audited(made, RESPONSE)
    lost, fair = (row_of(rows, "bias_length", name, "all|binary") for name in ("lost", "fair"))
    assert 0 < lost["low"] < 0.1 * (0.8 * 0.7 + 0.2 * 0.5) < lost["high"]
    assert fair["low"] < 0 < fair["high"]
    assert (lost["at"], lost["note"]) == ("context_words", "per doubling of the context")
    said = next(each for each in findings(rows.rows.values()) if each.row["at"] == "context_words")
    assert "length of the context" in said.sentence


def test_units_without_a_length_take_no_part():
    made = sample(3, pairs=30)
    made.units["response_a_words"] = "100"
    made.units["response_b_words"] = ["200", "50", "", "0"] * 30
    made.rate("g", made.see(0.8))
    assert row_of(audited(made), "bias_length", "g")["n_units"] == 60


def test_self_preference():
    """Half of what is not C becomes C where the subject is of the grader's family."""
    made = sample(4, pairs=300)
    own = made.units["subject"].str.startswith("claude").to_numpy()
    label = made.see(0.8)
    for other in "AB":
        label = made.turned(label, other, "C", np.where(own, 0.5, 0.0))
    made.rate("anthropic:claude-opus-5", label)
    made.rate("openai:gpt-5", label)
    rows = audited(made)
    row = row_of(rows, "bias_self_preference", "anthropic:claude-opus-5", "all|binary")
    assert row["low"] < 0.5 * (1 - SEES_C) < row["high"]
    assert row["at"] == "anthropic"
    # The other grader has no subject of its family here.
    assert not any("openai:gpt-5" in key and key[1] == "bias_self_preference" for key in rows.rows)


def test_a_part_of_the_sample():
    """Half of what is not C becomes C on one topic; small parts say so."""
    made = sample(5, pairs=300)
    pair = np.arange(len(made.units)) // 4
    topic = np.where(pair < 6, "rare", np.where(pair % 3 == 0, "soft", "other"))
    made.units["topic"] = topic
    label = made.see(0.8)
    for other in "AB":
        label = made.turned(label, other, "C", np.where(topic == "soft", 0.5, 0.0))
    made.rate("g", label)
    rows = audited(made, slices=["topic"])
    soft = row_of(rows, "bias_slice", "g", "topic=soft|binary")
    assert soft["low"] < 0.5 * (1 - SEES_C) < soft["high"]
    assert "fewer than 10 clusters" in row_of(rows, "bias_slice", "g", "topic=rare|binary")["note"]
    p = row_of(rows, "bias_slice_p", "g", "topic=soft|binary")
    assert p["estimate"] < 0.05
    assert p["note"].endswith("Benjamini-Hochberg over 3 parts of the sample")


def test_a_group_of_people():
    """Two people read the units in their own way, and the grader with them."""
    made = sample(6, pairs=150, people=0)
    theirs = np.where(made.rng.random(len(made.truth)) < 0.3, "C", made.truth)
    for rater, view in (("l1", theirs), ("l2", theirs), ("r1", made.truth), ("r2", made.truth)):
        made.truth, kept = view, made.truth
        made.rate(rater, made.see(0.9), "human")
        made.truth = kept
    made.truth = theirs
    made.rate("g", made.see(0.9))
    members = {"leaning=left": frozenset({"l1", "l2"}), "leaning=right": frozenset({"r1", "r2"})}
    rows = audited(made, members=members)
    row = row_of(rows, "bias_rater_group", "g", "leaning=left")
    assert row["at"] == "right"
    assert row["low"] > 0
    [said] = [each for each in findings(rows.rows.values()) if each.row is row]
    assert "agrees more with annotators of leaning=left than with right" in said.sentence
    assert not any(key[4] == "leaning=right" for key in rows.rows)


@pytest.mark.parametrize("people", [0, 1])
def test_few_people(people):
    """Without annotators there are directions and orders only; with one, nothing is scaled."""
    made = sample(8, pairs=40, people=people)
    made.rate("g", made.see(0.8))
    rows = audited(made)
    tested = [row for key, row in rows.rows.items() if key[1] == "bias_side"]
    assert len(tested) == people
    assert all("taken to see as annotators do" in row["note"] for row in tested)
    assert any(key[1] == "direction_net" and key[2] == "g" for key in rows.rows)


def _plain(values):
    """The level by the definition, unit by unit."""
    people, grader = values[:, :-1], values[:, -1]
    units = [u for u in range(len(values)) if not np.isnan(grader[u]) and (people[u] >= 0).any()]
    person = {u: np.nanmean(people[u]) for u in units}
    twice = [u for u in units if (~np.isnan(people[u])).sum() >= 2]
    both = []
    for u in twice:
        own = people[u][~np.isnan(people[u])]
        products = [own[i] * own[j] for i in range(len(own)) for j in range(len(own)) if i != j]
        both.append(np.mean(products))
    mean_p = np.mean([person[u] for u in twice])
    mean_g = np.mean([grader[u] for u in twice])
    with_person = np.mean([grader[u] * person[u] for u in twice]) - mean_g * mean_p
    r = with_person / (np.mean(both) - mean_p**2)
    return float(np.mean(grader[units]) - r * np.mean([person[u] for u in units]))


def test_the_level_is_the_definition(rng):
    truth = rng.random(90) < 0.4
    values = np.where(rng.random((90, 4)) < 0.8, truth[:, None], rng.random((90, 4)) < 0.5)
    values = values.astype(float)
    values[rng.random((90, 4)) < 0.2] = np.nan
    found = shift.side_shift(calls_of(values), 3, Resamples(np.ones(90), 50, rng))
    assert found is not None and found.note == ""
    assert found.values[0] == pytest.approx(_plain(values))


def test_levels_that_are_not_scaled_or_left_open(rng):
    def found(values):
        drawn = Resamples(np.ones(60), 20, rng)
        return shift.side_shift(calls_of(values), values.shape[1] - 1, drawn)

    values = (rng.random((60, 2)) < [0.5, 0.7]).astype(float)
    alone = found(values)
    assert alone.note == shift.SHARPNESS_ASSUMED
    assert alone.values[0] == pytest.approx(values[:, 1].mean() - values[:, 0].mean())
    for n_twice, note in ((30, ""), (29, shift.SHARPNESS_ASSUMED)):
        values = (rng.random((60, 3)) < 0.5).astype(float)
        values[n_twice:, 1] = np.nan
        assert found(values).note == note
    # Nobody favours a side, the grader does: its level stands as it is.
    values = np.zeros((60, 4))
    values[:12, 3] = 1.0
    assert found(values).values[0] == pytest.approx(0.2)
    # Two people who always contradict each other: no scale, no figure.
    one = (np.arange(60) % 2).astype(float)
    values = np.column_stack([one, 1 - one, one])
    values[0, :2] = 1.0
    assert np.isnan(found(values).values[0])
    assert found(values).reason == "people_agree_by_chance"


ROWS = 40
ONES = np.ones((ROWS, 2))


def _sums(tau, chance, rng):
    """Of three people who see `tau` (rows, strata, units) and a grader who affirms by `chance`."""
    people = rng.random((3, *tau.shape)) < tau
    calls = rng.random(tau.shape) < chance
    n, mean, two = np.full(tau.shape[:2], tau.shape[2]), people.mean(axis=0), people[0] & people[1]
    features = (calls, mean, calls * mean, mean, two, mean, two, two & people[2])
    grader, person, both, *rest = (each.sum(axis=-1).astype(float) for each in features)
    return shift.HumanSums(n, person, n, *rest[:2], n, *rest[2:]), grader, both


def test_noise_is_that_of_a_general_fit(rng):
    """Least squares by scipy, on chances by its bivariate normal law."""
    x = np.linspace(-1.0, 2.0, 5)
    spread = np.exp(0.3 - 0.4 * (x - x.mean()))[None, :, None]
    tau = ndtr(spread * rng.normal(size=(1, 5, 500)) + 0.3 * x[:, None])
    sums, *_ = _sums(tau, tau > 0.5, rng)
    found = shift.Noise.along(sums, x[None])
    mean, two = ((each / sums.n1)[0] for each in (sums.one1, sums.two2))

    def covariance(k, g):
        square = np.exp(2.0 * (k - g * x))
        place, rho = ndtri(mean), square / (1.0 + square)
        law = stats.multivariate_normal.cdf
        both = [law([z, z], cov=[[1.0, r], [r, 1.0]]) for z, r in zip(place, rho, strict=True)]
        return np.array(both) - mean**2

    def off(at):
        return (covariance(*at) - (two - mean**2)) / (mean * (1.0 - mean))

    k, g = optimize.least_squares(off, [0.0, 0.0], xtol=1e-12, ftol=1e-12).x
    assert g == pytest.approx(0.4, abs=0.1)
    assert found.rise[0, 0] == pytest.approx(g, abs=1e-4)
    assert found.fitted_covariance[0] == pytest.approx(covariance(k, g), abs=1e-5)
    ratios = found.strictness_factor[0] / found.strictness_factor[0, 0]
    assert ratios == pytest.approx(np.exp(-g * (x - x[0])), abs=1e-4)


def test_a_solution_has_the_graders_mean_and_covariance(rng):
    tau = ndtr(rng.normal(size=(ROWS, 2, 400)))
    people, grader, both = _sums(tau, ndtr(-0.5 + 0.7 * ndtri(tau)), rng)
    law = shift.ScoreDistribution.of(people, fit_third=True)
    level, share = grader.sum(axis=1) / people.n1.sum(axis=1), grader / people.n1
    together = (0.5 * (both / people.n1 - share * law.tau_mean)).sum(axis=1)
    curves = shift._Curves.of_scores(law, np.full((ROWS, 2), 0.5), ONES, level, together)
    a, b, fits = curves.fitted()
    assert fits.all()
    assert np.abs(curves.at(a, b).residuals()).max() < 1e-9
    assert np.median(b) == pytest.approx(0.7, abs=0.1)
    found = shift.excess_calls(people.n1, grader, both, law, fit_sharpness=True)
    assert np.abs(found.share.sum(axis=1)).max() < 1e-9


def test_a_grader_that_copies_a_person_cannot_be_told(rng):
    """Its errors are that person's: no grader that sees what all people see goes so far along."""
    tau = ndtr(0.6 * rng.normal(size=(ROWS, 2, 600)))
    people, grader, both = _sums(tau, ndtr(ndtri(tau)), rng)
    law = shift.ScoreDistribution.of(people, fit_third=False)
    assert shift.excess_calls(people.n1, grader, both, law, fit_sharpness=True).fits
    # Of three people one is itself.
    copied = people.one3 / 3.0 + 2.0 / 3.0 * people.two2
    found = shift.excess_calls(people.n1, people.one3, copied, law, fit_sharpness=True)
    assert not found.fits
    assert np.isnan(found.share).all()
