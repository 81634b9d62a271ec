"""Which labels of a grader are compared with people's, for a verdict.

The rubric's categories decide, and binary verdicts where a grader gives none. A grader with
probabilities is compared once more, at thresholds tuned on other clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.thresholds.held_out import held_out_verdicts
from evenhand.analysis.thresholds.references import human_majority, probability_graders
from evenhand.analysis.types import Mask

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


def _with_verdicts(verdicts: Coded, grader: int, held: Mask, affirmed: Mask) -> Coded:
    """The verdicts, with other ones of one grader on the units (units,) in the mask `held`."""
    codes = verdicts.codes.copy()
    codes[held, grader] = np.where(affirmed, 0, 1)
    return replace(verdicts, codes=codes)
