"""Units worth reading: humans agree with each other and a grader gives another label.

Coverage: unscored units are neither wrong nor dropped, so their share is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenhand.analysis.agreement.overlap import entry_pairs
from evenhand.analysis.agreement.pairs import MIN_SHARED_UNITS
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.subjects.scores import people_means
from evenhand.analysis.types import Array
from evenhand.analysis.writer import About, RubricView

COVERAGE = "coverage"
ABSENT = "absent"
UNSCORED_AS_DISAGREEMENT = "observed_agreement_unscored_as_disagreement"


def add_coverage_rows(view: RubricView) -> None:
    """Add `coverage`: the share of a rater's assigned units with a valid label or probability.

    Units that humans labelled count as assigned to every grader. `rater_a` is empty and `rater_b`
    the rater; the note counts the reasons of the unscored ones. Either bound holds with 97.5%, also
    where hardly anything or nothing is unscored.
    """
    labels, resamples = view.labels, view.resamples
    for rater, name in enumerate(labels.raters):
        asked = labels.put_to(rater)
        scored = labels.scored[:, rater] & asked
        sums = resamples.cluster_sums(labels.clusters, np.column_stack([scored, asked]))
        found = Interval(*share_bounds(*resamples.each_cluster(sums).T))
        if not asked.any():
            found = Interval.undefined("no_labels")
        elif view.count(asked)[1] < MIN_CLUSTERS:
            found = Interval.point(found.estimate, Remark("too_few_clusters"))
        about = join_notes(unscored_remark(labels, rater, resamples), view.as_sampled)
        view.add(COVERAGE, found, asked, b=name, note=about)


def add_unscored_rows(view: RubricView) -> None:
    """Add graders' agreement with humans, counting each unscored grade as a disagreement.

    On the units that the grader was asked and two humans labelled (one, where there are fewer than
    30 of them), each counting once, as in its agreement on the units that it scored.
    """
    coded, labels = view.coded, view.labels.in_agreement
    humans = list(coded.members("human"))
    number = coded.labelled[:, humans].sum(axis=1)
    for grader in coded.members("model"):
        put = labels.put_to(grader)
        units = np.asarray(put & (number >= 2))
        if view.count(units)[0] < MIN_SHARED_UNITS:
            units = np.asarray(put & (number >= 1))
        if not units.any():
            continue
        given = coded.codes[:, [grader]]
        agreed = ((given >= 0) & (coded.codes[:, humans] == given)).sum(axis=1)
        agreement = view.share(agreed / np.maximum(number, 1), units)
        note = unscored_remark(labels, grader, view.resamples)
        of = About(a="humans", b=coded.raters[grader], note=note)
        view.add(UNSCORED_AS_DISAGREEMENT, agreement, units, **of)


def unscored_remark(labels: LabelMatrix, rater: int, resamples: Resamples) -> Note:
    """Count the reasons for unscored units; those without any row are absent."""
    absent = labels.put_to(rater) & ~labels.asked[:, rater]
    reasons = labels.reasons[rater] + Counter(
        {ABSENT: int(absent @ resamples.frequency[labels.clusters])}
    )
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return Remark("unscored", (counted,)) if counted else ""


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
    view: RubricView, units: Sequence[str], distance: Array | None = None
) -> list[GraderDisagreement]:
    """Return every grader's disagreements with humans, widest first; add rows for the widest.

    The rows are `disagreement` (at = unit).

    The size is the mean distance from the grader's label to the humans', minus the humans' mean
    distance from each other: 1 where all humans are at one end of the scale and the grader at the
    other, or, on a nominal scale, where all humans agree and the grader differs. One human alone
    shows no agreement, so units that two or more labelled come first. Among equals, those that more
    humans labelled come first, then those whose probability is further off. `units` names the rows
    of the labels, which must not be folded. `distance` (q, q) is that of the categories, if not
    the scale's.
    """
    labels, rows = view.labels, view.rows
    humans = list(labels.humans)
    found: list[GraderDisagreement] = []
    if not humans:
        return found
    if distance is None:
        values = np.array(labels.scale.values)
        distance = np.abs(values[:, None] - values) / max(np.ptp(values), 1e-12)
        if labels.scale.level == "nominal":
            distance = 1.0 - np.eye(len(values))
    unit, person = np.nonzero(labels.codes[:, humans] >= 0)
    given, n = labels.codes[unit, np.asarray(humans)[person]].astype(np.intp), len(labels.codes)
    people, among, met = np.bincount(unit, minlength=n), np.zeros(n), np.zeros(n)
    for i, j in entry_pairs(unit):
        among += np.bincount(unit[i], distance[given[i], given[j]], n)
        met += np.bincount(unit[i], minlength=n)
    among /= np.maximum(met, 1)
    affirmative, keys = people_means(labels), labels.scale.categories
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.slices]
    for grader in labels.models:
        own = labels.codes[:, grader].astype(np.intp)
        to_people = np.bincount(unit, distance[np.maximum(own, 0)[unit], given], n)
        mean = to_people / np.maximum(people, 1)
        size = np.where((own >= 0) & (people > 0), mean - among, 0.0)
        margin = np.nan_to_num(np.abs(labels.positive[:, grader] - affirmative))
        order = np.lexsort((-margin, -people, -size, people < 2))
        widest = order[size[order] > 0][:MOST_LISTED].tolist()
        for place, at in enumerate(widest):
            codes, name, key = labels.codes[at], labels.raters[grader], None
            if place < MOST_COUNTED:
                view.add("disagreement", float(size[at]), (1, 1), a="humans", b=name, at=units[at])
                key = (rows.rubric, "disagreement", "humans", name, "all", units[at])
            one = GraderDisagreement(
                rubric=rows.rubric,
                grader=name,
                unit_id=units[at],
                label=keys[codes[grader]],
                people={labels.raters[h]: keys[codes[h]] for h in labels.humans if codes[h] >= 0},
                size=float(size[at]),
                parts={
                    column.name: column.values[column.codes[at]]
                    for column in columns
                    if column.values and column.codes[at] >= 0
                },
                key=key,
            )
            found.append(one)
    return found


def add_sorted_rows(view: RubricView) -> None:
    """Add `disagreement_sorted` (at = kind): numbers of disagreements that the lead sorted.

    `n_units` counts all of that grader that are sorted.
    """
    counts = view.request.facts.sorted
    own = {key[1:]: count for key, count in counts.items() if key[0] == view.rows.rubric}
    for (grader, kind), count in own.items():
        total = sum(each for (who, _), each in own.items() if who == grader)
        view.add("disagreement_sorted", count, (total, 0), a="humans", b=grader, at=kind)
