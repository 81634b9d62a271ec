"""Rogan-Gladen and prediction-powered inference, on the published example and against a library's
formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from evenhand.analysis import Bootstrap, ppi_plus_plus, rogan_gladen
from evenhand.errors import InputError
from tests.known_values import known_values

# 70 true positives, 20 false ones, 10 false negatives, 100 true ones; 480 of 1,000 elsewhere.
PEOPLE, GRADER = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], [70, 20, 10, 100], axis=0).T
REST = np.repeat([1, 0], [480, 520])


def test_the_reference_values():
    case = known_values("prevalence_correction")
    counts, expected = case["data"], case["expected"]
    cells = [counts[name] for name in ("TP", "FP", "FN", "TN")]
    people, grader = np.repeat([[1, 1], [0, 1], [1, 0], [0, 0]], cells, axis=0).T
    n, affirmed = counts["unlabeled_n"], counts["unlabeled_positive"]
    rest = np.repeat([1, 0], [affirmed, n - affirmed])

    found = rogan_gladen(people, grader, rest, method="delta")
    known = expected["rogan_gladen"]
    close = {"abs": known["tolerance"]}
    assert found.estimate == pytest.approx(known["estimate"], **close)
    # The file's bounds are 1.96 standard errors away; here the normal quantile is not rounded.
    half = (found.high - found.low) / 2 * 1.96 / norm.ppf(0.975)
    bounds = [found.estimate - half, found.estimate + half]
    assert bounds == pytest.approx(known["delta_method_interval"], **close)
    lee = rogan_gladen(people, grader, rest, method="lee")
    assert [lee.estimate, lee.low, lee.high] == pytest.approx(known["lee2025_interval"], **close)

    ppi = ppi_plus_plus(people, grader, rest, weight=1, method="normal")
    known = expected["ppi_lambda_1"]
    bounds = [ppi.estimate, ppi.low, ppi.high]
    assert bounds == pytest.approx(known["estimate_low_high"], abs=known["tolerance"])
    tuned = ppi_plus_plus(people, grader, rest, method="normal")
    known = expected["ppi_plus_plus"]
    close = {"abs": known["tolerance"]}
    assert tuned.weight == pytest.approx(known["lambda"], **close)
    bounds = [tuned.estimate, tuned.low, tuned.high]
    assert bounds == pytest.approx(known["estimate_low_high"], **close)


def test_by_hand():
    """Rate .48, sensitivity 70/80, specificity 100/120: (.48 + .8333 - 1) / .70833 = .44235."""
    found = rogan_gladen(PEOPLE, GRADER, REST, method="delta")
    assert (found.sensitivity, found.specificity) == pytest.approx((70 / 80, 100 / 120))
    assert found.estimate == pytest.approx((0.48 - 20 / 120) / (70 / 80 - 20 / 120))
    # The weight: cov .35 - .4 * .45 over 1.2 * (.475 * .525), the variance of all 1,200 grades.
    tuned = ppi_plus_plus(PEOPLE, GRADER, REST)
    assert tuned.weight == pytest.approx((0.35 - 0.4 * 0.45) / (1.2 * 0.475 * 0.525))
    assert tuned.estimate == pytest.approx(0.4 + tuned.weight * (0.48 - 0.45))


def test_the_bootstrap_resamples_both_parts():
    """About [.358, .526] is right here; holding the unlabelled rate fixed gives [.371, .513]."""
    found = rogan_gladen(PEOPLE, GRADER, REST)
    assert (found.low, found.high) == pytest.approx((0.358, 0.526), abs=0.006)
    normal = ppi_plus_plus(PEOPLE, GRADER, REST, method="normal")
    drawn = ppi_plus_plus(PEOPLE, GRADER, REST)
    assert (drawn.low, drawn.high) == pytest.approx((normal.low, normal.high), abs=0.006)


def test_clusters_widen_what_goes_together():
    """Every unit four times over in one cluster: four times the variance of as many alone."""
    people, grader, rest = (np.repeat(each, 4) for each in (PEOPLE, GRADER, REST))
    clusters = np.repeat(np.arange(1200), 4)
    alone = rogan_gladen(PEOPLE, GRADER, REST)
    together = rogan_gladen(people, grader, rest, clusters=clusters)
    independent = rogan_gladen(people, grader, rest)
    assert together.estimate == pytest.approx(alone.estimate)
    width = alone.high - alone.low
    assert together.high - together.low == pytest.approx(width, rel=0.05)
    assert independent.high - independent.low == pytest.approx(width / 2, rel=0.1)


def test_a_tie_among_people_counts_half_on_either_side():
    """Two units that people part over are one that they affirm and one that they do not."""
    tied = rogan_gladen([*PEOPLE, 0.5, 0.5], [*GRADER, 1, 1], REST, method="delta")
    split = rogan_gladen([*PEOPLE, 1, 0], [*GRADER, 1, 1], REST, method="delta")
    assert tied == split


def test_people_alone_where_the_grader_never_varies():
    found = ppi_plus_plus(PEOPLE, np.ones(200), np.ones(1000), method="normal")
    assert (found.estimate, found.weight) == (0.4, 0.0)


def test_a_weight_is_never_negative():
    """A grader that turns people's verdicts round is left out, not drawn on upside down."""
    assert ppi_plus_plus(PEOPLE, 1 - GRADER, 1 - REST).weight == 0.0


@pytest.mark.parametrize(
    ("grades", "rest", "note"),
    [
        (1 - GRADER, REST, "grader_not_informative"),
        (np.ones(200), REST, "grader_not_informative"),
        (GRADER, [], "no_unlabelled_units"),
    ],
)
def test_rogan_gladen_has_nothing_to_divide_by(grades, rest, note):
    found = rogan_gladen(PEOPLE, grades, rest)
    assert np.isnan([found.estimate, found.low, found.high]).all()
    assert found.note == note


def test_people_of_one_mind_leave_an_error_rate_unknown():
    assert rogan_gladen(np.ones(200), GRADER, REST).note == "no_variation"
    assert ppi_plus_plus(np.ones(200), GRADER, REST).estimate == 1.0
    assert ppi_plus_plus(PEOPLE, GRADER, []).note == "no_unlabelled_units"


def test_a_corrected_rate_stays_a_rate():
    found = rogan_gladen(PEOPLE, GRADER, np.zeros(1000))
    assert (found.estimate, found.low) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"grades": GRADER * 2}, "must be 0 or 1"),
        ({"reference": PEOPLE + 0.5}, "between 0 and 1"),
        ({"reference": np.full(200, np.nan)}, "none missing"),
        ({"grades": GRADER[1:]}, "199 units"),
        ({"method": "guess"}, "method is 'guess'"),
        ({"clusters": [1, 2]}, "each of the 1200 units"),
        ({"weight": 2}, "weight is 2"),
    ],
)
def test_bad_input(change, says):
    given = {"reference": PEOPLE, "grades": GRADER, "rest": REST} | change
    functions = [ppi_plus_plus] if "weight" in change else [rogan_gladen, ppi_plus_plus]
    for function in functions:
        with pytest.raises(InputError, match=says):
            function(**given)  # type: ignore[arg-type]


def test_the_seed_decides():
    first, again, other = (
        rogan_gladen(PEOPLE, GRADER, REST, bootstrap=Bootstrap(300, seed)) for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_sample_in_which_nobody_affirmed_has_an_interval():
    """0 of 50: Clopper and Pearson's upper bound of the labelled ones, however many are graded."""
    nobody, few = np.zeros(50), np.repeat([1, 0], [3, 47])
    found = ppi_plus_plus(nobody, few, np.repeat([1, 0], [60, 940]))
    assert (found.estimate, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 50))
    everybody = ppi_plus_plus(1 - nobody, 1 - few, np.repeat([0, 1], [60, 940]))
    assert everybody.low == pytest.approx(0.025 ** (1 / 50))
    # Nobody affirmed: there is no sensitivity to correct by.
    assert rogan_gladen(nobody, few, np.ones(100)).note == "no_variation"


def test_few_cases_are_wilsons_and_many_are_the_resamples():
    rest = np.repeat([1, 0], [30, 970])
    people, grader = np.repeat([[1, 1], [0, 1], [0, 0]], [2, 1, 47], axis=0).T
    found = ppi_plus_plus(people, grader, rest, bootstrap=Bootstrap(1000))
    plain = ppi_plus_plus(people, grader, rest, method="normal")
    assert 0 < found.low < found.estimate < found.high
    # The normal interval reaches below 0 and is cut there; Wilson's is not symmetrical.
    assert plain.low == 0.0
    assert found.high - found.estimate > 1.2 * (found.estimate - found.low)
    known = ppi_plus_plus(PEOPLE, GRADER, REST, bootstrap=Bootstrap(4000))
    normal = ppi_plus_plus(PEOPLE, GRADER, REST, method="normal")
    assert (known.low, known.high) == pytest.approx((normal.low, normal.high), abs=0.004)


def test_clusters_of_labelled_units_say_how_far_a_rate_can_be_trusted():
    """Four labelled clusters are too few, however many clusters were graded."""
    people, grader = np.repeat([[1, 1], [0, 1], [0, 0]], [10, 5, 25], axis=0).T
    rest = np.repeat([1, 0], [30, 70])
    clusters = [*np.repeat(["a", "b", "c", "d"], 10), *(f"r{unit}" for unit in range(100))]
    found = ppi_plus_plus(people, grader, rest, clusters=clusters)
    assert np.isnan(found.low)
    assert found.note == "too_few_clusters"
