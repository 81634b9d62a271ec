"""Units worth reading: humans agree with each other and a grader gives another label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.analysis.agreement.overlap import entry_pairs
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes

MOST_LISTED = 500
"""Most units listed for each rubric and grader."""
MOST_COUNTED = 5
"""Number of listed units that have rows in the results, with their size."""


@dataclass(frozen=True)
class GraderDisagreement:
    """A unit that a grader labelled differently from humans. `people` are their labels by rater.

    `parts` describes the unit by units column. `key` is the results row that holds the `size` of
    the disagreement, None where there is none.
    """

    rubric: str
    grader: str
    unit_id: str
    label: str
    people: Mapping[str, str]
    size: float
    parts: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] | None = None


def add_disagreement_rows(
    rows: ResultRows, units: Sequence[str], labels: LabelMatrix, distance: Array | None = None
) -> list[GraderDisagreement]:
    """Return every grader's disagreements with humans, widest first; add rows for the widest.

    The rows are `disagreement` (at = unit).

    The size is the mean distance from the grader's label to the humans', minus the humans' mean
    distance from each other: 1 where all humans are at one end of the scale and the grader at the
    other, or, on a nominal scale, where all humans agree and the grader differs. One human alone
    shows no agreement, so units that two or more labelled come first. Among equals, those that more
    humans labelled come first, then those whose probability is further off. `units` names the rows
    of `labels`, which must not be folded. `distance` (q, q) is that of the categories, where it is
    not the scale's.
    """
    humans = list(labels.humans)
    found: list[GraderDisagreement] = []
    if not humans:
        return found
    distance = _distances(labels) if distance is None else distance
    unit, person = np.nonzero(labels.codes[:, humans] >= 0)
    given, n = labels.codes[unit, np.asarray(humans)[person]].astype(np.intp), len(labels.codes)
    among, people = _mean_among(distance, unit, given, n), np.bincount(unit, minlength=n)
    affirmative = _people_affirmative(labels, humans)
    for grader in labels.models:
        own = labels.codes[:, grader].astype(np.intp)
        to_people = np.bincount(unit, distance[np.maximum(own, 0)[unit], given], n)
        mean = to_people / np.maximum(people, 1)
        size = np.where((own >= 0) & (people > 0), mean - among, 0.0)
        margin = np.nan_to_num(np.abs(labels.positive[:, grader] - affirmative))
        order = np.lexsort((-margin, -people, -size, people < 2))
        widest = order[size[order] > 0][:MOST_LISTED].tolist()
        for place, at in enumerate(widest):
            one = _disagreement(rows.rubric, labels, units[at], at, grader, float(size[at]))
            if place < MOST_COUNTED:
                one = _counted(rows, one)
            found.append(one)
    return found


def _disagreement(
    rubric: str, labels: LabelMatrix, name: str, unit: int, grader: int, size: float
) -> GraderDisagreement:
    categories, codes = labels.scale.categories, labels.codes[unit]
    return GraderDisagreement(
        rubric=rubric,
        grader=labels.raters[grader],
        unit_id=name,
        label=categories[codes[grader]],
        people={labels.raters[h]: categories[codes[h]] for h in labels.humans if codes[h] >= 0},
        size=size,
        parts=_parts(labels, unit),
    )


def _parts(labels: LabelMatrix, unit: int) -> dict[str, str]:
    """Return the subject of one unit and its values of the requested units columns."""
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.slices]
    return {
        column.name: column.values[column.codes[unit]]
        for column in columns
        if column.values and column.codes[unit] >= 0
    }


def _counted(rows: ResultRows, found: GraderDisagreement) -> GraderDisagreement:
    """Add a disagreement's row to the results, and return it with its key."""
    who, at, size = found.grader, found.unit_id, Interval.point(found.size)
    rows.add("disagreement", size, (1, 1), rater_a="humans", rater_b=who, subset="all", at=at)
    return replace(found, key=(rows.rubric, "disagreement", "humans", who, "all", at))


def add_sorted_rows(rows: ResultRows, counts: Mapping[tuple[str, str, str], int]) -> None:
    """Add `disagreement_sorted` (at = kind): numbers of disagreements that the lead sorted.

    `counts` are by (rubric, grader, kind). `n_units` counts all of that grader that are sorted.
    """
    own = {key[1:]: count for key, count in counts.items() if key[0] == rows.rubric}
    for (grader, kind), count in own.items():
        total = sum(each for (who, _), each in own.items() if who == grader)
        found = Interval.point(float(count))
        about = {"rater_a": "humans", "rater_b": grader, "subset": "all", "at": kind}
        rows.add("disagreement_sorted", found, (total, 0), **about)


def _distances(labels: LabelMatrix) -> Array:
    """Return the distances between categories (q, q), 1 at most."""
    if labels.scale.level == "nominal":
        return 1.0 - np.eye(len(labels.scale.categories))
    values = np.array(labels.scale.values)
    return np.asarray(np.abs(values[:, None] - values) / max(np.ptp(values), 1e-12))


def _mean_among(distance: Array, unit: Codes, given: Codes, n: int) -> Array:
    """Return the humans' mean distance from each other on each of n units; 0 with a single human.
    Their labels come with their `unit`, which ascends, and code.
    """
    total, pairs = np.zeros(n), np.zeros(n)
    for i, j in entry_pairs(unit):
        total += np.bincount(unit[i], distance[given[i], given[j]], n)
        pairs += np.bincount(unit[i], minlength=n)
    return np.divide(total, pairs, out=np.zeros(n), where=pairs > 0)


def _people_affirmative(labels: LabelMatrix, humans: list[int]) -> Array:
    """Return the share of humans whose verdict is affirmative, NaN where there is none."""
    verdicts = labels.verdicts[:, humans]
    held = (verdicts >= 0).sum(axis=1)
    agreed = (verdicts == 1).sum(axis=1).astype(float)
    return ratio(agreed, held)
