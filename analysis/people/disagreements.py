"""Units that graders label differently from humans, units without a label, and unclear units.

*Disagreements*: humans agree with each other and a grader gives another label.

*Coverage*: the share of assigned units with a label; units without one are neither wrong nor
dropped.

*Clarity*, for a rubric that marks some categories as unclear: do humans find a unit clear? It is
the validation of a stance grader by Feng, Park, Liu & Tsvetkov (2023, section 3 and appendix A.2).
The other categories are first collapsed into the rubric's coarser ones, as there, and the reference
is the majority of humans.

*Trial of a wording*: does another wording of a rubric raise people's agreement? Each unit of the
trial was assigned to one wording, for all of its raters, so that agreement under each wording is
that on its own units; the difference is resampled by cluster, both wordings in the same resamples.
`python -m benchmarks.rewording` shows how often *better* is wrong.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np

from evenhand.analysis.agreement.coefficients import label_counts, majority_codes
from evenhand.analysis.agreement.groups import add_group_rows, group_panel
from evenhand.analysis.agreement.pairs import add_humans_rows, label_pairs
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import UNCLEAR, LabelMatrix, UnitColumn, with_weights
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.people.comparison import add_ceiling_rows
from evenhand.analysis.request import Request, TriedWording
from evenhand.analysis.requirement import Bound, clusters_to_decide
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Note, Remark, join_notes
from evenhand.analysis.subjects.scores import people_means
from evenhand.analysis.types import Array, DataFrame
from evenhand.analysis.writer import RubricView, View
from evenhand.texts import written

COVERAGE = "coverage"
ABSENT = "absent"


def add_coverage_rows(view: RubricView) -> None:
    """Add `coverage`: the share of a rater's assigned units with a valid label or probability.

    Units that humans labelled count as assigned to every grader. `rater_a` is empty and `rater_b`
    the rater; the note counts the reasons of the unscored ones. Either bound holds with 97.5%, also
    where hardly anything or nothing is unscored.
    """
    labels, resamples = view.labels, view.resamples
    for rater, name in enumerate(labels.raters):
        assigned = labels.assigned_to(rater)
        scored = labels.scored[:, rater] & assigned
        sums = resamples.cluster_sums(labels.clusters, np.column_stack([scored, assigned]))
        share = Interval(*share_bounds(*resamples.each_cluster(sums).T))
        if not assigned.any():
            share = Interval.undefined("no_labels")
        elif view.count(assigned)[1] < MIN_CLUSTERS:
            share = Interval.point(share.estimate, Remark("too_few_clusters"))
        note = join_notes(unscored_remark(labels, rater, resamples), view.as_sampled)
        view.add(COVERAGE, share, assigned, b=name, note=note)


def unscored_remark(labels: LabelMatrix, rater: int, resamples: Resamples) -> Note:
    """Count the reasons for unscored units; those without any row are absent."""
    absent = labels.assigned_to(rater) & ~labels.assigned[:, rater]
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
    """A unit that a grader labelled differently from humans. `people` are the humans' labels by
    rater. `parts` describes the unit by units column. `key` is that of the results row with the
    `size` of the disagreement, None where there is none.
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
    listed: list[GraderDisagreement] = []
    if not humans:
        return listed
    if distance is None:
        values = np.array(labels.scale.values)
        distance = np.abs(values[:, None] - values) / max(np.ptp(values), 1e-12)
        if labels.scale.level == "nominal":
            distance = 1.0 - np.eye(len(values))
    unit, person = np.nonzero(labels.codes[:, humans] >= 0)
    human_codes = labels.codes[unit, np.asarray(humans)[person]].astype(np.intp)
    n = len(labels.codes)
    n_humans, among, n_pairs = np.bincount(unit, minlength=n), np.zeros(n), np.zeros(n)
    for i, j in label_pairs(unit):
        among += np.bincount(unit[i], distance[human_codes[i], human_codes[j]], n)
        n_pairs += np.bincount(unit[i], minlength=n)
    among /= np.maximum(n_pairs, 1)
    affirmative, keys = people_means(labels), labels.scale.categories
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.slices]
    for grader in labels.models:
        grades = labels.codes[:, grader].astype(np.intp)
        with_humans = np.bincount(unit, distance[np.maximum(grades, 0)[unit], human_codes], n)
        mean = with_humans / np.maximum(n_humans, 1)
        size = np.where((grades >= 0) & (n_humans > 0), mean - among, 0.0)
        margin = np.nan_to_num(np.abs(labels.positive[:, grader] - affirmative))
        order = np.lexsort((-margin, -n_humans, -size, n_humans < 2))
        widest = order[size[order] > 0][:MOST_LISTED].tolist()
        for rank, at in enumerate(widest):
            codes, name, key = labels.codes[at], labels.raters[grader], None
            if rank < MOST_COUNTED:
                view.add("disagreement", float(size[at]), (1, 1), a="humans", b=name, at=units[at])
                key = (rows.rubric, "disagreement", "humans", name, "all", units[at])
            disagreement = GraderDisagreement(
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
            listed.append(disagreement)
    return listed


def add_sorted_rows(view: RubricView) -> None:
    """Add `disagreement_sorted` (at = kind): numbers of disagreements that the lead sorted.
    `n_units` is the number of all sorted disagreements of the grader.
    """
    counts = {
        (grader, kind): count
        for (rubric, grader, kind), count in view.request.facts.sorted.items()
        if rubric == view.rows.rubric
    }
    for (grader, kind), count in counts.items():
        total = sum(number for (other, _), number in counts.items() if other == grader)
        view.add("disagreement_sorted", count, (total, 0), a="humans", b=grader, at=kind)


CLEAR_AGREEMENT = "clear_agreement"


def add_clarity_rows(view: RubricView) -> None:
    """Add `clear_share`, and graders' `clear_agreement` and `mean_confidence`.

    All are on the collapsed categories. `clear_share`: the share of units on which the humans'
    majority is clear. `clear_agreement`: on those, how often the grader gives the same label;
    finding a clear unit unclear counts against it. `mean_confidence` (at = clear or unclear): the
    grader's probability of its likeliest category. The panel of humans with each other and with
    graders is added too, with unclear labels left out.
    """
    labels, scale = view.labels, view.labels.scale
    if not (scale.unclear and scale.collapse and labels.humans):
        return
    coded, as_sorted = labels.on_collapsed(), labels.on_sorted()
    out = view.seen_as(coded)
    add_group_rows(out, ["humans"])
    add_humans_rows(out)
    add_ceiling_rows(out)

    add = partial(out.add, a="humans", reason="no_pairable_units")
    majority = majority_codes(label_counts(as_sorted, labels.humans))
    is_clear, is_unclear = (majority >= 0) & (majority < coded.q), majority == coded.q
    has_majority = is_clear | is_unclear
    add("clear_share", out.share(is_clear, has_majority), has_majority)
    for grader in labels.models:
        name, grades = labels.raters[grader], as_sorted.codes[:, grader]
        units = is_clear & (grades >= 0)
        add(CLEAR_AGREEMENT, out.share(grades == majority, units), units, b=name)
        confidence = labels.confidence[:, grader]
        is_known = ~np.isnan(confidence)
        for at, part in (("clear", is_clear), (UNCLEAR, is_unclear)) if is_known.any() else ():
            units = is_known & part
            mean = out.share(np.nan_to_num(confidence), units)
            add("mean_confidence", mean, units, b=name, at=at)


ALPHA, DIFFERENCE = "rewording_alpha", "rewording_difference"
FILLED = "rewording_filled"
MIN_TRIAL = 30
"""Clusters with two labels under each wording, below which there is no outcome."""


def add_trial_rows(
    rows: ResultRows,
    scale: Scale,
    by_wording: Mapping[str, DataFrame],
    trial: TriedWording,
    request: Request,
) -> None:
    """Add `rewording_alpha`, people's alpha at the scale's level under each wording,
    `rewording_difference`, new minus old, and `rewording_filled`, the share of the trial's labels
    that are in: `at` is the wording, of the latter two the new one.

    `by_wording` has the ratings under the old wording and the new one, in this order. People's
    ratings of the units that were assigned to the wording count.
    """
    import pandas as pd

    parts, n_filled = [], 0
    for (name, ratings), units in zip(by_wording.items(), (trial.old, trial.new), strict=True):
        is_counted = (ratings["rater_kind"] == "human") & ratings["unit_id"].isin(set(units))
        by_people = ratings[is_counted]
        n_raters = by_people.groupby("unit_id")["rater_id"].nunique()
        n_filled += int(n_raters.clip(upper=trial.raters).sum())
        parts.append(by_people.assign(rater_id=f"{name}|" + by_people["rater_id"].astype(str)))
    counted = pd.concat(parts)
    if counted.empty:
        return
    weighted = with_weights(request.units, counted)
    readings = combine_readings(counted, scale)
    labels, frequency = encode(readings, scale, weighted, request.settings.cluster).folded()
    resamples = request.resampled(frequency, labels.weight)
    coded = labels.on_categories()
    out = View.of(rows, coded, resamples)
    alphas, pairable = [], []
    for name in by_wording:
        members = [at for at, rater in enumerate(coded.raters) if rater.startswith(f"{name}|")]
        counts = label_counts(coded, members)
        pairable.append(counts.sum(axis=1) >= 2)
        panel = group_panel(counts * pairable[-1][:, None], coded, resamples)
        alphas.append(panel[f"krippendorff_alpha_{coded.level}"])
        if pairable[-1].any():
            out.add(ALPHA, alphas[-1], pairable[-1], a="humans", at=name)
    n_units, (_, new_name) = len(trial.old) + len(trial.new), by_wording
    share, counts_of_trial = n_filled / (trial.raters * n_units), (n_units, labels.n_clusters)
    out.add(FILLED, share, counts_of_trial, a="humans", at=new_name)
    if all(units.any() for units in pairable):
        old, new = alphas
        out.add(DIFFERENCE, new - old, pairable[0] | pairable[1], a="humans", at=new_name)


Outcome = Literal["better", "worse", "inconclusive"]


@dataclass(frozen=True)
class Moved:
    """Outcome of a trial, and the `size` in clusters at which a trial would show with a chance of
    80% whether people agree better under the new wording: None where no realistic number would, 0
    where there is no need. `filled` is the share of the trial's labels that are in.
    """

    outcome: Outcome
    size: int | None
    filled: float = 1.0

    def sentence(self, new: str, noun: str) -> str:
        """Return the outcome for the wording `new` in words; `noun` is what a cluster is called."""
        sentences = [written(f"rewording.{self.outcome}", new=new)]
        if self.filled < 1:
            sentences.append(written("rewording.filled", filled=math.floor(100 * self.filled)))
        elif self.outcome == "inconclusive" and self.size:
            sentences.append(written("rewording.larger", size=self.size, noun=noun))
        elif self.outcome == "inconclusive":
            sentences.append(written("rewording.no_more", noun=noun))
        return " ".join(sentences)


def moved(
    low: float, estimate: float, high: float, fewest: int, clusters: int, filled: float
) -> Moved:
    """Decide from the difference with its 95% interval, once the trial's labels are all in;
    `fewest` is the number of clusters under the wording that has fewer, `filled` the share that is
    in. The size was fixed beforehand, so there is one decision.

    >>> moved(0.05, 0.2, 0.35, 30, 60, 1).outcome, moved(0.05, 0.2, 0.35, 30, 60, 0.9).outcome
    ('better', 'inconclusive')
    >>> moved(-0.05, 0.1, 0.25, 30, 60, 1).size
    276
    """
    if filled < 1:
        return Moved("inconclusive", 0, filled)
    if fewest < MIN_TRIAL:
        return Moved("inconclusive", 2 * MIN_TRIAL)
    if low > 0 or high < 0:
        return Moved("better" if low > 0 else "worse", 0)
    if math.isnan(low):
        return Moved("inconclusive", None)
    more = clusters_to_decide(clusters, [Bound(low, estimate, high, 0.0)], 0)
    return Moved("inconclusive", clusters + more + (clusters + more) % 2 if more else None)
