"""Expected agreement of two simulated raters, computed from their confusion matrices."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.rubrics import Rubric
from harness.demo.raters import SimulatedRater


class ExpectedAgreement(NamedTuple):
    """Observed agreement and Cohen's kappa in expectation, on categories and on the verdict."""

    observed: float
    kappa: float
    binary_observed: float
    binary_kappa: float


def truth_distribution(truth: pd.DataFrame, rubric: Rubric) -> NDArray[np.float64]:
    """Shares of the rubric's categories (length q, in order) among the units of `truth`."""
    labels = truth.loc[truth["rubric"] == rubric.name, "label"]
    counts = labels.value_counts().reindex(list(rubric.categories), fill_value=0)
    return counts.to_numpy(dtype=np.float64) / max(len(labels), 1)


def expected_agreement(
    rater_i: SimulatedRater, rater_j: SimulatedRater, rubric: Rubric, distribution: NDArray
) -> ExpectedAgreement:
    """Return the expected agreement of two simulated raters, given the distribution of the truth.

    Given the truth t, the raters answer independently of each other, so with confusion matrices
    C_i and C_j and shares pi_t the joint distribution of their labels is

        J[k, l] = sum_t pi_t C_i[t, k] C_j[t, l].

    Then p_o = sum_k J[k, k], p_e = sum_k J[k, .] J[., k], and kappa = (p_o - p_e) / (1 - p_e)
    (Cohen 1960). The binary figures are the same on J summed into affirmative and other categories.
    They hold for grades with probabilities at the threshold 0.5, where those of a simulated rater
    agree with its label.
    """
    first, second = rater_i.confusion[rubric.name], rater_j.confusion[rubric.name]
    joint = first.T @ (distribution[:, None] * second)
    positive = np.isin(np.array(rubric.categories), list(rubric.affirmative))
    collapse = np.stack([positive, ~positive]).astype(np.float64)
    return ExpectedAgreement(*_panel(joint), *_panel(collapse @ joint @ collapse.T))


def _panel(joint: NDArray[np.float64]) -> tuple[float, float]:
    observed = float(np.trace(joint))
    by_chance = float(joint.sum(axis=1) @ joint.sum(axis=0))
    return observed, (observed - by_chance) / (1 - by_chance)
