"""People's agreement as their labels came in: does it rise, and has it settled?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import deciding_kappa
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.counted import one_version
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.weights import with_weights
from evenhand.study.settings.analysis import SEED
from evenhand.study.tables.ratings import validate_ratings

if TYPE_CHECKING:
    import pandas as pd

OVER_TIME_COLUMNS = ("rubric", "until", "labels", "n_units", "estimate", "low", "high")
CUTS = 6
"""Points in time on a rubric: a few are enough to see a line."""


def agreement_over_time(
    ratings: pd.DataFrame,
    scales: Mapping[str, Scale],
    *,
    units: pd.DataFrame | None = None,
    cluster: str = "pair",
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    excluded: Collection[str] = (),
    cuts: int = CUTS,
    resamples: int = 200,
    seed: int = SEED,
) -> pd.DataFrame:
    """People's mean kappa with one another after each further share of their labels.

    `OVER_TIME_COLUMNS`: a row for each rubric and cut point. The labels of a rubric, in the order
    in which they were given, are cut into `cuts` parts of one size; a row speaks of all labels up
    to its end (`until`, the time of the last one; `labels` of them). The kappa is the one that the
    report decides by, over the same pairs of raters, with a 95% bootstrap over clusters; NaN while
    no two raters share a unit. Labels without a time cannot be placed and are left out.
    """
    import pandas as pd

    ratings = validate_ratings(ratings, "ratings")
    people = ratings[
        (ratings["rater_kind"] == "human")
        & (ratings["label"] != "")
        & (ratings["created_at"] != "")
        & ~ratings["rater_id"].isin(list(excluded))
    ]
    people = people.sort_values("created_at", kind="stable")
    rows = []
    for name, scale in scales.items():
        accepted = None if rubric_hashes is None else rubric_hashes.get(name)
        own, _ = one_version(people[people["rubric"] == name], name, accepted)
        ends = {round(len(own) * part / cuts) for part in range(1, cuts + 1)} - {0}
        for end in sorted(ends):
            given = own.iloc[:end]
            found, n_units = _people_kappa(given, scale, units, cluster, resamples, seed)
            until = given["created_at"].iloc[-1]
            rows.append((name, until, end, n_units, found.estimate, found.low, found.high))
    return pd.DataFrame(rows, columns=list(OVER_TIME_COLUMNS))


def _people_kappa(
    given: pd.DataFrame,
    scale: Scale,
    units: pd.DataFrame | None,
    cluster: str,
    resamples: int,
    seed: int,
) -> tuple[Interval, int]:
    """The mean over pairs of raters, and the number of units that two people labelled."""
    units = with_weights(units, given)
    labels, frequency = encode(combine_readings(given, scale), scale, units, cluster).folded()
    coded = labels.on_categories()
    rng = np.random.default_rng(seed)
    shared = Resamples(frequency, resamples, rng, weight=labels.weight)
    twice = coded.labelled.sum(axis=1) >= 2
    n_units = int(frequency[coded.clusters[twice]].sum())
    if not n_units:
        return Interval(np.nan, np.nan, np.nan), n_units
    name = deciding_kappa(coded)
    mean = KappaMeans(coded, shared, [name]).among(range(len(coded.raters)))[name]
    n_clusters = int(frequency[np.unique(coded.clusters[twice])].sum())
    return shared.interval(mean.values, n_clusters), n_units
