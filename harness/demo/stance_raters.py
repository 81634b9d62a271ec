"""The stance demo's raters: three synthetic annotators and three graders with known faults.

One grader is as good as people; one fails the statements of one leaning; one gives other labels
once the rubric is worded differently. All see the truth through confusion matrices, as in
`harness.demo.raters`, and graders are more confident where the truth is clear and where they are
right, so that a confidence filter finds something to filter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from harness.demo.raters import Matrix, SimulatedRater, simulate_ratings
from harness.demo.seeds import generator
from harness.demo.stance_responses import LEVELS

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

REWORDED = "stance-reworded"
WEAK_SIDE = "right"
"""The leaning of the statements on which one grader is weak."""
_STANCE = "stance"
_CONFIDENCE = {"clear": (0.93, 0.06), "unclear": (0.74, 0.12)}
"""Mean and spread of a grader's probability of its label, by whether the truth is clear."""
_UNSURE = 0.15
"""Average reduction of that probability where the label is on the wrong side."""


def _matrix(right: float, near: float, unclear: float) -> Matrix:
    """Return a confusion matrix: rows the truth, columns the answer, in the order of `LEVELS`.

    `right` is the share of labels that are right, `near` of those that are the other one of the
    same side, and `unclear` of those that see no side; the rest goes to the other side. Unclear
    responses are recognised with probability `right`, else taken for any side alike.
    """
    other = (1.0 - right - near - unclear) / 2.0
    rows = []
    for level in range(4):
        row = [other] * 4
        row[level], row[level ^ 1] = right, near
        rows.append([*row, unclear])
    return np.array([*rows, [(1.0 - right) / 4.0] * 4 + [right]])


def _rater(name: str, kind: str, base: Matrix, reworded: Matrix | None = None) -> SimulatedRater:
    confusion = {_STANCE: base} | ({REWORDED: reworded} if reworded is not None else {})
    return SimulatedRater(name, "human" if kind == "human" else "model", confusion)


ANNOTATORS = (
    _rater("synthetic-annotator-1", "human", _matrix(0.86, 0.09, 0.03)),
    _rater("synthetic-annotator-2", "human", _matrix(0.83, 0.10, 0.05)),
    _rater("synthetic-annotator-3", "human", _matrix(0.84, 0.12, 0.02)),
)
_GOOD, _POOR = _matrix(0.90, 0.07, 0.02), _matrix(0.45, 0.15, 0.10)
STEADY = _rater("synthetic:grader-steady", "model", _GOOD, _matrix(0.94, 0.04, 0.01))
ONE_SIDED = _rater("synthetic:grader-one-sided", "model", _GOOD, _GOOD)
ONE_SIDED_WEAK = _rater("synthetic:grader-one-sided", "model", _POOR, _POOR)
WAVERING = _rater("synthetic:grader-wavering", "model", _GOOD, _POOR)


def stance_ratings(
    truth: pd.DataFrame, sampled: set[str], side: pd.Series, rubrics: dict[str, Rubric], seed: int
) -> pd.DataFrame:
    """Return a `ratings` table under both wordings: annotators on the `sampled` units only.

    `truth` has `unit_id, label`; `side` is each unit's leaning, in the order of `truth`.
    """
    base, reworded = (
        truth.assign(rubric=name)[["unit_id", "rubric", "label"]] for name in (_STANCE, REWORDED)
    )
    people = base[base["unit_id"].isin(sampled)]
    both = pd.concat([base, reworded], ignore_index=True)
    weak = pd.concat([side, side], ignore_index=True).eq(WEAK_SIDE).to_numpy()
    grades = [
        simulate_ratings([STEADY, WAVERING], both, rubrics, seed),
        simulate_ratings([ONE_SIDED], both[~weak], rubrics, seed),
        simulate_ratings([ONE_SIDED_WEAK], both[weak], rubrics, seed),
    ]
    known = truth.set_index("unit_id")["label"]
    return pd.concat(
        [
            simulate_ratings(ANNOTATORS, people, rubrics, seed),
            *(_with_confidence(each, known, rubrics[_STANCE], seed) for each in grades),
        ],
        ignore_index=True,
    )


def _with_confidence(
    grades: pd.DataFrame, known: pd.Series, rubric: Rubric, seed: int
) -> pd.DataFrame:
    """Return grades with a probability for every option; `known` is the truth by unit."""
    rng = generator(seed, "confidence", *sorted(set(grades["rater_id"])), len(grades))
    truth = known[grades["unit_id"]]
    is_clear = truth.ne(LEVELS[-1]).to_numpy()
    wrong = truth.map(_side).to_numpy() != grades["label"].map(_side).to_numpy()
    mean = np.where(is_clear, _CONFIDENCE["clear"][0], _CONFIDENCE["unclear"][0])
    mean = np.where(wrong, mean - _UNSURE, mean)
    spread = np.where(is_clear, _CONFIDENCE["clear"][1], _CONFIDENCE["unclear"][1])
    drawn = np.clip(mean + spread * rng.standard_normal(len(grades)), 0.35, 0.995).round(3)
    shares = [
        {key: p if key == label else round((1.0 - p) / 4.0, 5) for key in rubric.categories}
        for label, p in zip(grades["label"], drawn.tolist(), strict=True)
    ]
    return grades.assign(
        probabilities=[json.dumps(each) for each in shares],
        p_positive=[round(sum(each[key] for key in rubric.affirmative), 5) for each in shares],
        prob_method="verbalised",
    )


def _side(level: str) -> int:
    """Return the side of a level: both levels of a side share a number; unclear has its own."""
    return LEVELS.index(level) // 2
