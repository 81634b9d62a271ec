"""Which labels of a grader are compared with people's, for a verdict.

The rubric's categories decide, and binary verdicts where a grader gives none. A grader with
probabilities is compared once more, at thresholds tuned on other clusters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.agreement.counts import label_counts
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.thresholds.held_out import held_out_verdicts
from evenhand.analysis.thresholds.references import human_majority, probability_graders
from evenhand.analysis.types import Codes, Mask, Numbers

HELD_OUT, UNTUNED = "held_out", "untuned"
TUNED_FOR = "kappa"


@dataclass(frozen=True)
class Reading:
    """A view of one grader's labels together with all other raters'; `at` tells several apart."""

    coded: Coded
    grader: int
    at: str = ""
    counts_once: bool = True
    """False for a second view of the same labels, with which the level is not shared."""


def readings_of(labels: LabelMatrix) -> Iterator[Reading]:
    """Yield the views of every grader's labels that verdicts use."""
    verdicts = labels.on_verdicts() if labels.has_verdicts else None
    categories = labels.on_categories()
    tunable = probability_graders(labels) if verdicts is not None else []
    for grader in labels.models:
        gives_categories = (labels.codes[:, grader] >= 0).any()
        if gives_categories or verdicts is None:
            yield Reading(categories, grader)
        elif labels.raters[grader] not in labels.scale.tunings:
            yield Reading(verdicts, grader)
        else:
            # Verdicts at a tuned threshold are compared below. Those at the untuned one were a
            # comparison too, before it was tuned.
            yield Reading(verdicts, grader, counts_once=False)
            yield Reading(_at_untuned(labels, verdicts, grader), grader, UNTUNED)
        if verdicts is not None and grader in tunable:
            retuned = _at_held_out(labels, verdicts, grader)
            if retuned is not None:
                yield Reading(retuned, grader, HELD_OUT)


def _at_untuned(labels: LabelMatrix, verdicts: Coded, grader: int) -> Coded:
    """The verdicts, with this grader's at the threshold in use before tuning."""
    held = ~np.isnan(labels.positive[:, grader])
    usual = labels.scale.untuned_threshold_for(labels.raters[grader])
    return _with_verdicts(verdicts, grader, held, labels.positive[held, grader] >= usual)


def _at_held_out(labels: LabelMatrix, verdicts: Coded, grader: int) -> Coded | None:
    """The verdicts, with this grader's at thresholds tuned on other clusters."""
    majority = human_majority(labels).verdicts
    held = ~np.isnan(labels.positive[:, grader])
    if len(np.unique(majority[held & (majority >= 0)])) < 2:
        return None
    name = labels.raters[grader]
    if name in labels.scale.tunings:  # no verdict is made by what was tuned on it
        return verdicts
    default = labels.scale.threshold_for(name)
    found = held_out_verdicts(
        labels.positive[held, grader],
        majority[held],
        labels.clusters[held],
        default,
        labels.weight_of(held),
    )
    if TUNED_FOR not in found:
        return None
    return _with_verdicts(verdicts, grader, held, found[TUNED_FOR])


def if_wrong(labels: LabelMatrix, reading: Reading, mass: Numbers) -> Reading | None:
    """The same view with every missing answer of the grader as wrong as can be: the label furthest
    from those of the unit's annotators; None where no answer is missing.

    `mass` (clusters,) is how much each cluster counts. It spends no level: it says what answers
    that were not given could change about a comparison that is made anyway.
    """
    coded, grader = reading.coded, reading.grader
    people = list(coded.people_beside(grader))
    missing = labels.put_to(grader) & ~labels.scored[:, grader] & coded.labelled_by_any(people)
    if not missing.any():
        return None
    codes = coded.codes.copy()
    codes[missing, grader] = _furthest(coded, people, missing, mass[coded.clusters])
    return replace(reading, coded=replace(coded, codes=codes), counts_once=False)


def _furthest(coded: Coded, people: Sequence[int], units: Mask, mass: Numbers) -> Codes:
    """The label of each of the `units` (chosen units,) furthest on average from those that `people`
    gave it: the one that fewest of them chose, or an end of an ordered scale. Of several the one
    nearest to what they say elsewhere: the more frequent a wrong label is, the more agreement is
    due to chance, and the lower is kappa. `mass` (units,) is how much each unit counts.
    """
    values = np.asarray(coded.values)
    if coded.level == "nominal":
        ends, apart = np.arange(coded.q), 1.0 - np.eye(coded.q)
    else:
        ends = np.array([values.argmin(), values.argmax()])
        apart = np.abs(values[ends][:, None] - values)
    distance = label_counts(coded.only(units, coded.subset), people) @ apart.T
    said = coded.codes[:, people].astype(np.intp)
    given = sum(np.bincount(each[each >= 0], mass[each >= 0], coded.q) for each in said.T)
    usual = np.broadcast_to(apart @ given, distance.shape)
    found: Codes = ends[np.lexsort((-usual, distance))[:, -1]]
    return found


def _with_verdicts(verdicts: Coded, grader: int, held: Mask, affirmed: Mask) -> Coded:
    """The verdicts, with other ones of one grader on the units (units,) in the mask `held`."""
    codes = verdicts.codes.copy()
    codes[held, grader] = np.where(affirmed, 0, 1)
    return replace(verdicts, codes=codes)
