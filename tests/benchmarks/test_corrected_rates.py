"""How often intervals of corrected rates hold the truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks import corrected_rates


@pytest.mark.thorough
def test_the_coverage_of_corrected_rates_writes_its_page(page_of: Callable[[str], str]) -> None:
    page = page_of("corrected_rates")
    # Each cell's estimates that are judged, and at .5 all of them once more.
    small = len(corrected_rates.LABELLED) * len(corrected_rates.JUDGED)
    assert page.count("| 0.5 |") == small + len(corrected_rates.ESTIMATES)
    assert page.count("| 0.02 |") == small
    assert "in 3 simulated studies" in page


@pytest.mark.slow
@pytest.mark.parametrize("prevalence", corrected_rates.PREVALENCES)
def test_corrected_rates_are_simulated_as_they_are_said_to_be(prevalence: float) -> None:
    """People's rate and the grader's error rates, against 60 simulated studies, or more where few
    units are affirmative.
    """
    rng = np.random.default_rng(5)
    drawn = [
        corrected_rates.simulate(250, prevalence, rng)
        for _ in range(60 if prevalence > 0.05 else 400)
    ]
    people, grader = (np.vstack(each).ravel() for each in zip(*drawn, strict=True))
    sensitivity, specificity = corrected_rates.error_rates(prevalence)
    assert people.mean() == pytest.approx(prevalence, abs=0.004)
    assert grader[people == 1].mean() == pytest.approx(sensitivity, abs=0.006)
    assert 1 - grader[people == 0].mean() == pytest.approx(specificity, abs=0.006)
