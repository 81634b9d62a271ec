"""Thresholds alone: their rows, for any reference, without the rest of the panel."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.pairs import KappaMeans
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.combine import combine_readings, methods_apart
from evenhand.analysis.labels.counted import one_version, without_excluded
from evenhand.analysis.labels.matrix import LabelMatrix, encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.thresholds.in_force import add_in_force_rows, clusters_labelled
from evenhand.analysis.thresholds.rows import (
    Reference,
    add_threshold_rows,
    human_majority,
    probability_graders,
)
from evenhand.errors import InputError
from evenhand.study.settings.analysis import SEED, AnalysisSettings
from evenhand.study.tables.ratings import validate_ratings

if TYPE_CHECKING:
    import pandas as pd

USUAL = AnalysisSettings()


@dataclass(frozen=True)
class ThresholdResults:
    """The rows, and by grader the clusters that its threshold was tuned on."""

    rows: list[ResultRow]
    clusters: Mapping[str, frozenset[str]]


def threshold_results(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scale: Scale,
    settings: AnalysisSettings = USUAL,
    *,
    reference: str = "humans",
    seed: int = SEED,
    rubric_hashes: Collection[str] | None = None,
    excluded: Mapping[str, str] | None = None,
) -> ThresholdResults:
    """The rows of `analysis.thresholds.rows` for one rubric, as in the `rows` of `analyse`.

    `reference` is "humans", for their majority, or any rater, whose verdicts are then what graders
    are tuned to; `settings` say what is resampled, and how; `excluded` are the people, with the
    reason, whose labels stay out. No rows where nobody gave probabilities on the rubric. Raises
    InputError where there is no such reference.
    """
    checked = validate_ratings(ratings)
    own, _ = one_version(checked[checked["rubric"] == scale.name], scale.name, rubric_hashes)
    own, _ = without_excluded(own, scale.name, excluded or {})
    own, _ = methods_apart(own, scale.name)
    rows = ResultRows(scale.name)
    clusters = {}
    labels = encode(combine_readings(own, scale), scale, units, settings.cluster)
    if labels.has_verdicts and probability_graders(labels):
        wanted = [_reference(labels, reference)]
        rng = np.random.default_rng(seed)
        shared = Resamples(np.ones(labels.n_clusters), settings.resamples, rng, settings.interval)
        kappas = KappaMeans(labels.on_verdicts(), shared)
        add_threshold_rows(rows, labels, shared, kappas, wanted)
        add_in_force_rows(rows, labels, shared)
        clusters = {
            labels.raters[grader]: clusters_labelled(labels, grader, reference)
            for grader in probability_graders(labels)
        }
    return ThresholdResults(list(rows.rows.values()), clusters)


def _reference(labels: LabelMatrix, name: str) -> Reference:
    if name == "humans":
        if not labels.humans:
            raise InputError(
                f"no person has labelled {labels.scale.name!r}; name another reference"
            )
        return human_majority(labels)
    if name not in labels.raters:
        known = ", ".join(["humans", *labels.raters])
        raise InputError(f"there is no rater {name!r} on {labels.scale.name!r}; it has {known}")
    return Reference(name, labels.verdicts[:, labels.raters.index(name)])
