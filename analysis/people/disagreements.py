"""Units that graders label differently from humans, units without a label, and unclear units.

*Disagreements*: humans agree with each other and a grader gives another label.

*Coverage*: the share of assigned units with a label. Units without a label are reported here, and
count neither as errors nor as absent from the data.

*Clarity*, for a rubric that marks some categories as unclear: do humans find a unit clear? This is
the validation of a stance grader by Feng, Park, Liu & Tsvetkov (2023, section 3 and appendix A.2).
As in their study, the other categories are first collapsed into the rubric's coarser ones, and the
reference is the majority of humans.

*Trial of a wording*: does another wording of a rubric raise people's agreement? Each unit of the
trial was assigned to one wording, for all of its raters, and agreement under a wording is that on
its units. The difference is resampled by cluster, both wordings in the same resamples.
`python -m benchmarks.rewording` shows how often *better* is wrong.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, NamedTuple

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
from evenhand.lazy import pd
from evenhand.texts import written

COVERAGE = "coverage"


def add_coverage_rows(view: RubricView) -> None:
    """Add `coverage`: the share of a rater's assigned units with a valid label or probability.

    Units that humans labelled count as assigned to every grader. `rater_a` is empty and `rater_b`
    the rater; the note counts unscored units by reason. Each bound has a confidence of 97.5%, even
    if none is unscored, so that no resample varies. Sampling weights are not used (`as_sampled`).
    """
    labels, resamples = view.labels, view.resamples
    for rater, name in enumerate(labels.raters):
        assigned = labels.assigned_to(rater)
        scored = labels.scored[:, rater] & assigned
        sums = resamples.sums_by_type(labels.clusters, np.column_stack([scored, assigned]))
        share = Interval(*share_bounds(*resamples.to_clusters(sums).T))
        if not assigned.any():
            share = Interval.undefined("no_labels")
        elif view.count(assigned)[1] < MIN_CLUSTERS:
            share = Interval.point(share.estimate, Remark("too_few_clusters"))
        note = join_notes(unscored_remark(labels, rater, resamples), view.as_sampled)
        view.add(COVERAGE, share, assigned, b=name, note=note)


def unscored_remark(labels: LabelMatrix, rater: int, resamples: Resamples) -> Note:
    """Return counts of a rater's unscored units by reason ("absent": no rating); "" without any."""
    absent = labels.assigned_to(rater) & ~labels.assigned[:, rater]
    n_absent = int(absent @ resamples.frequency[labels.clusters])  # a row may be several units
    reasons = labels.reasons[rater] + Counter({"absent": n_absent})
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))
    return Remark("unscored", (counted,)) if counted else ""


# ---- Disagreements -------------------------------------------------------------------------------
MOST_LISTED = 500
"""Most disagreements listed for each rubric and grader."""
MOST_WITH_ROWS = 5
"""Most listed disagreements that also have rows in the results, with their size."""


@dataclass(frozen=True)
class GraderDisagreement:
    """A unit that a grader gave another `label` than humans. `people` are the humans' labels by
    rater, `parts` the unit's values by column of the units table. The `size` is explained in
    `add_disagreement_rows`; `key` is that of its row in the results, None without a row.
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
    """Return every grader's disagreements with humans, largest first, at most `MOST_LISTED`; add
    rows `disagreement` (at = unit) for the first `MOST_WITH_ROWS`.

    The size is the mean distance from the grader's label to the humans', minus the humans' mean
    distance from each other: 1 where all humans are at one end of the scale and the grader at the
    other, or, on a nominal scale, where all humans agree and the grader differs. One human alone
    shows no agreement, so units with labels of two or more come first. Of equal disagreements,
    those with more humans come first, then those whose probability is further off. `units` are the
    ids of the labels' rows, which are not `folded` (equal units in one row). `distance` (q, q) is
    between categories, by default that of the scale.
    """
    labels, rubric = view.labels, view.rows.rubric
    humans = list(labels.humans)
    disagreements: list[GraderDisagreement] = []
    if not humans:
        return disagreements
    sizes_by_grader = _disagreement_sizes(labels, distance)
    n_humans = (labels.codes[:, humans] >= 0).sum(axis=1)
    affirmative_share, categories = people_means(labels), labels.scale.categories
    columns = [UnitColumn("subject", labels.subjects, labels.subject), *labels.slices]
    for grader, sizes in sizes_by_grader.items():
        probability_gap = np.nan_to_num(np.abs(labels.positive[:, grader] - affirmative_share))
        order = np.lexsort((-probability_gap, -n_humans, -sizes, n_humans < 2))  # last key first
        for rank, row in enumerate(order[sizes[order] > 0][:MOST_LISTED].tolist()):
            codes, name, size = labels.codes[row], labels.raters[grader], float(sizes[row])
            key = None
            if rank < MOST_WITH_ROWS:
                view.add("disagreement", size, (1, 1), a="humans", b=name, at=units[row])
                key = (rubric, "disagreement", "humans", name, "all", units[row])
            disagreement = GraderDisagreement(
                rubric=rubric,
                grader=name,
                unit_id=units[row],
                label=categories[codes[grader]],
                people={labels.raters[k]: categories[codes[k]] for k in humans if codes[k] >= 0},
                size=size,
                parts={
                    column.name: column.values[column.codes[row]]
                    for column in columns
                    if column.values and column.codes[row] >= 0
                },
                key=key,
            )
            disagreements.append(disagreement)
    return disagreements


def _disagreement_sizes(labels: LabelMatrix, distance: Array | None) -> dict[int, Array]:
    """Return the sizes of each grader's disagreements (units,), by its column; 0 without labels."""
    if distance is None and labels.scale.level == "nominal":
        distance = 1.0 - np.eye(len(labels.scale.values))
    elif distance is None:
        values = np.array(labels.scale.values)
        distance = np.abs(values[:, None] - values) / max(np.ptp(values), 1e-12)
    humans, n = np.asarray(labels.humans), len(labels.codes)
    unit, person = np.nonzero(labels.codes[:, humans] >= 0)  # of each label
    human_codes = labels.codes[unit, humans[person]].astype(np.intp)
    n_humans, among_humans, n_pairs = np.bincount(unit, minlength=n), np.zeros(n), np.zeros(n)
    for first, second in label_pairs(unit):  # positions of two labels of the same unit
        distances = distance[human_codes[first], human_codes[second]]
        among_humans += np.bincount(unit[first], distances, n)
        n_pairs += np.bincount(unit[first], minlength=n)
    among_humans /= np.maximum(n_pairs, 1)
    sizes = {}
    for grader in labels.models:
        grades = labels.codes[:, grader].astype(np.intp)
        total = np.bincount(unit, distance[np.maximum(grades, 0)[unit], human_codes], n)
        with_humans = total / np.maximum(n_humans, 1)
        sizes[grader] = np.where((grades >= 0) & (n_humans > 0), with_humans - among_humans, 0.0)
    return sizes


def add_sorted_rows(view: RubricView) -> None:
    """Add `disagreement_sorted` (at = kind): numbers of disagreements that the lead sorted into
    kinds. `n_units` is the number of all sorted disagreements of the grader.
    """
    counts = {
        (grader, kind): count
        for (rubric, grader, kind), count in view.request.facts.sorted.items()
        if rubric == view.rows.rubric
    }
    for (grader, kind), count in counts.items():
        total = sum(number for (other, _), number in counts.items() if other == grader)
        view.add("disagreement_sorted", count, (total, 0), a="humans", b=grader, at=kind)


# ---- Clarity -------------------------------------------------------------------------------------
CLEAR_AGREEMENT = "clear_agreement"


def add_clarity_rows(view: RubricView) -> None:
    """Add `clear_share`, and graders' `clear_agreement` and `mean_confidence`.

    All are on the collapsed categories. `clear_share`: the share of units on which the humans'
    majority is clear. `clear_agreement`: the share of those units on which the grader gives the
    majority's label; the label "unclear" counts as wrong. `mean_confidence` (at = clear or
    unclear): the grader's probability of its likeliest category. The statistics of agreement of
    humans with each other and with graders are added too, with unclear labels left out.
    """
    labels, scale = view.labels, view.labels.scale
    if not (scale.unclear and scale.collapse and labels.humans):
        return
    coded = labels.on_collapsed()
    collapsed, with_unclear = view.seen_as(coded), labels.on_collapsed_or_unclear()
    add_group_rows(collapsed, ["humans"])
    add_humans_rows(collapsed)
    add_ceiling_rows(collapsed)

    add = partial(collapsed.add, a="humans", reason="no_pairable_units")
    majority = majority_codes(label_counts(with_unclear, labels.humans))  # code q: unclear
    is_clear, is_unclear = (majority >= 0) & (majority < coded.q), majority == coded.q
    has_majority = is_clear | is_unclear
    add("clear_share", collapsed.share(is_clear, has_majority), has_majority)
    for grader in labels.models:
        name, grades = labels.raters[grader], with_unclear.codes[:, grader]
        units = is_clear & (grades >= 0)
        add(CLEAR_AGREEMENT, collapsed.share(grades == majority, units), units, b=name)
        confidence = labels.confidence[:, grader]
        has_confidence = ~np.isnan(confidence)
        if not has_confidence.any():
            continue
        for at, part in (("clear", is_clear), (UNCLEAR, is_unclear)):
            units = has_confidence & part
            mean = collapsed.share(np.nan_to_num(confidence), units)  # `share` of numbers: the mean
            add("mean_confidence", mean, units, b=name, at=at)


# ---- Trial of a wording --------------------------------------------------------------------------
TRIAL_ALPHA, TRIAL_DIFFERENCE = "rewording_alpha", "rewording_difference"
TRIAL_FILLED = "rewording_filled"
MIN_TRIAL = 30
"""Fewest clusters with two labels under each wording for which there is an outcome."""


def add_trial_rows(
    rows: ResultRows,
    scale: Scale,
    by_wording: Mapping[str, DataFrame],
    trial: TriedWording,
    request: Request,
) -> None:
    """Add `rewording_alpha`, people's alpha at the scale's level under each wording (at = wording),
    `rewording_difference`, new minus old, and `rewording_filled`, the share of the trial's labels
    that are complete (both at = new wording).

    `by_wording` has the ratings under the old wording and the new one, in this order. Only people's
    ratings of the units that were assigned to the wording count.
    """
    ratings_by_wording, n_filled = [], 0
    for (name, ratings), units in zip(by_wording.items(), (trial.old, trial.new), strict=True):
        human = ratings[(ratings["rater_kind"] == "human") & ratings["unit_id"].isin(set(units))]
        n_raters = human.groupby("unit_id")["rater_id"].nunique()
        n_filled += int(n_raters.clip(upper=trial.raters).sum())  # surplus labels fill no gap
        # A person who labelled under both wordings is a rater of each.
        ratings_by_wording.append(human.assign(rater_id=f"{name}|" + human["rater_id"].astype(str)))
    counted = pd.concat(ratings_by_wording)
    if counted.empty:
        return
    weighted = with_weights(request.units, counted, request.settings.cluster)
    readings = combine_readings(counted, scale)
    labels, frequency = encode(readings, scale, weighted, request.settings.cluster).folded()
    resamples = request.resampled(frequency, labels.weight)
    coded = labels.on_categories()
    view = View.of(rows, coded, resamples)
    alphas, has_pair_by_wording = [], []
    for name in by_wording:
        members = [k for k, rater in enumerate(coded.raters) if rater.startswith(f"{name}|")]
        counts = label_counts(coded, members)
        has_pair = counts.sum(axis=1) >= 2
        panel = group_panel(counts * has_pair[:, None], coded, resamples)
        alpha = panel[f"krippendorff_alpha_{coded.level}"]
        if has_pair.any():
            view.add(TRIAL_ALPHA, alpha, has_pair, a="humans", at=name)
        alphas.append(alpha)
        has_pair_by_wording.append(has_pair)
    n_units = len(trial.old) + len(trial.new)
    _, new_name = by_wording  # the names of both wordings
    share = n_filled / (trial.raters * n_units)
    view.add(TRIAL_FILLED, share, (n_units, labels.n_clusters), a="humans", at=new_name)
    if all(units.any() for units in has_pair_by_wording):
        old, new = alphas
        has_pair = np.logical_or(*has_pair_by_wording)
        view.add(TRIAL_DIFFERENCE, new - old, has_pair, a="humans", at=new_name)


Outcome = Literal["better", "worse", "inconclusive"]


class TrialOutcome(NamedTuple):
    """Outcome of a trial of a wording. `size` is the number of clusters with which a trial would
    show, with a chance of 80%, whether people agree better under the new wording: None if no
    realistic number would, 0 if no larger trial is needed. `filled` is the share of labels given.
    """

    outcome: Outcome
    size: int | None
    filled: float = 1.0

    def sentence(self, new: str, noun: str) -> str:
        """Return the outcome for the wording `new` in words; `noun` is the word for clusters."""
        sentences = [written(f"rewording.{self.outcome}", new=new)]
        if self.filled < 1:
            sentences.append(written("rewording.filled", filled=math.floor(100 * self.filled)))
        elif self.outcome == "inconclusive" and self.size:
            sentences.append(written("rewording.larger", size=self.size, noun=noun))
        elif self.outcome == "inconclusive":
            sentences.append(written("rewording.no_more", noun=noun))
        return " ".join(sentences)


def trial_outcome(
    low: float, estimate: float, high: float, fewest: int, clusters: int, filled: float
) -> TrialOutcome:
    """Return the outcome of a trial, from the difference in alpha with its 95% interval. A trial is
    decided once, as its size was fixed beforehand: when its labels are complete (`filled` is 1).
    `clusters` are those of both wordings, `fewest` those of the wording that has fewer.

    >>> [trial_outcome(0.05, 0.2, 0.35, 30, 60, filled).outcome for filled in (1, 0.9)]
    ['better', 'inconclusive']
    >>> trial_outcome(-0.05, 0.1, 0.25, 30, 60, filled=1).size
    276
    """
    if filled < 1:
        return TrialOutcome("inconclusive", 0, filled)
    if fewest < MIN_TRIAL:
        return TrialOutcome("inconclusive", 2 * MIN_TRIAL)  # for two wordings
    if low > 0 or high < 0:
        return TrialOutcome("better" if low > 0 else "worse", 0)
    if math.isnan(low):
        return TrialOutcome("inconclusive", None)
    more = clusters_to_decide(clusters, [Bound(low, estimate, high, limit=0.0)], at_least=0)
    size = 2 * math.ceil((clusters + more) / 2) if more else None  # half for each wording
    return TrialOutcome("inconclusive", size)
