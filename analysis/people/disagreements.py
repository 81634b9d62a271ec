"""Units worth reading: where people agree with each other and a grader says something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Labels

MOST_LISTED = 5
"""So many units for each rubric and grader."""


@dataclass(frozen=True)
class GraderDisagreement:
    """One unit that a grader labelled unlike people. `people` are their labels by rater.

    `key` and `probability_key` are the results rows that hold the size of the disagreement and the
    grader's probability (None where it gave none).
    """

    rubric: str
    grader: str
    unit_id: str
    label: str
    people: Mapping[str, str]
    key: tuple[str, ...]
    probability_key: tuple[str, ...] | None = None


def add_disagreement_rows(
    rows: ResultRows, units: Sequence[str], labels: LabelMatrix
) -> list[GraderDisagreement]:
    """`disagreement` (at = unit) of every grader's widest ones, and `disagreement_probability`.

    The size is the mean distance from the grader's label to people's, less people's mean distance
    from each other: 1 where all people stand at one end of the scale and the grader at the other,
    or, on a nominal scale, where all people say the same and the grader something else. Among
    equals, units that more people labelled come first, then those whose probability is further off.
    `units` names the rows of `labels`, which must not be folded.
    """
    humans = list(labels.humans)
    found: list[GraderDisagreement] = []
    if not humans:
        return found
    distance = _distances(labels)
    each = np.where(labels.codes >= 0, labels.codes, 0)
    held = (labels.codes[:, humans] >= 0).astype(float)
    among = _mean_among(distance, each[:, humans], held)
    affirmative = _people_affirmative(labels, humans)
    for grader in labels.models:
        own = labels.codes[:, grader]
        to_people = (distance[each[:, [grader]], each[:, humans]] * held).sum(axis=1)
        mean = to_people / np.maximum(held.sum(axis=1), 1.0)
        size = np.where((own >= 0) & held.any(axis=1), mean - among, 0.0)
        margin = np.nan_to_num(np.abs(labels.positive[:, grader] - affirmative))
        widest = np.lexsort((-margin, -held.sum(axis=1), -size))[:MOST_LISTED]
        for unit in widest[size[widest] > 0]:
            found.append(_add(rows, labels, units[unit], int(unit), grader, float(size[unit])))
    return found


def _add(
    rows: ResultRows, labels: LabelMatrix, name: str, unit: int, grader: int, size: float
) -> GraderDisagreement:
    who = labels.raters[grader]

    def add(statistic: str, value: float) -> tuple[str, ...]:
        one = Interval.point(value)
        rows.add(statistic, one, (1, 1), rater_a="humans", rater_b=who, subset="all", at=name)
        return (rows.rubric, statistic, "humans", who, "all", name)

    key = add("disagreement", size)
    probability = float(labels.positive[unit, grader])
    given = not np.isnan(probability)
    categories, codes = labels.scale.categories, labels.codes[unit]
    return GraderDisagreement(
        rubric=rows.rubric,
        grader=who,
        unit_id=name,
        label=categories[codes[grader]],
        people={labels.raters[h]: categories[codes[h]] for h in labels.humans if codes[h] >= 0},
        key=key,
        probability_key=add("disagreement_probability", probability) if given else None,
    )


def _distances(labels: LabelMatrix) -> Array:
    """Between categories (q, q), 1 at most."""
    if labels.scale.level == "nominal":
        return 1.0 - np.eye(len(labels.scale.categories))
    values = np.array(labels.scale.values)
    return np.asarray(np.abs(values[:, None] - values) / max(np.ptp(values), 1e-12))


def _mean_among(distance: Array, codes: Labels, held: Array) -> Array:
    """People's mean distance from each other on each unit; 0 where there is one person."""
    total, pairs = np.zeros(len(codes)), np.zeros(len(codes))
    for first in range(codes.shape[1]):
        for second in range(first):
            both = held[:, first] * held[:, second]
            total += distance[codes[:, first], codes[:, second]] * both
            pairs += both
    return np.divide(total, pairs, out=np.zeros(len(codes)), where=pairs > 0)


def _people_affirmative(labels: LabelMatrix, humans: list[int]) -> Array:
    """The share of people whose verdict is affirmative, NaN where there is none."""
    verdicts = labels.verdicts[:, humans]
    held = (verdicts >= 0).sum(axis=1)
    agreed = (verdicts == 1).sum(axis=1).astype(float)
    return ratio(agreed, held)
