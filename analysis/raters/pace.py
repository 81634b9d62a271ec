"""How raters work: agreement with the other people, over time as well, time per label, and cost.

Times come from the ratings (`seconds`). Each row is about one rater, so its interval is not
bootstrapped with the others but taken from the rater's own labels.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import numpy as np

from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import MAX_LISTED_RATERS, deciding_kappa
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Interval, Z
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.encoding import combine_readings, encode, one_version
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.labels.units import with_weights
from evenhand.analysis.notes import Note, Remark, join_notes
from evenhand.analysis.types import Array, Codes, DataFrame
from evenhand.analysis.writer import RatedView, RubricView
from evenhand.study.settings.analysis import SEED
from evenhand.study.tables.ratings import validate_ratings

IDLE_SECONDS = 900.0
"""A label that took longer had a pause in it: its time is left out, and counted."""


COST, MODELS = "cost_usd", "models_answered"
PRICE = "price_per_1000_units"
"""US dollars."""


def add_rater_rows(view: RatedView) -> None:
    """Add `rater_agreement` of every human, and `rater_seconds_median` of every rater with times.
    Add nothing if there are too many raters to list.

    Agreement is the share of pairs of labels, the rater's
    and another human's on one unit, that are alike; of numbers one minus their mean distance as a
    share of the scale.
    """
    import pandas as pd

    labels, ratings = view.labels, view.ratings
    if len(labels.raters) > MAX_LISTED_RATERS:
        return
    if len(labels.humans) > 1:
        for human in labels.humans:
            own = np.flatnonzero(labels.codes[:, human] >= 0)
            _add(view, human, own, "rater_agreement", _like_others(labels, human, own))
    known = (ratings["created_at"] != "") | ratings["seconds"].notna()
    first = ratings[known & (ratings["label"] != "")].sort_values("created_at", kind="stable")
    first = first.drop_duplicates(["rater_id", "unit_id"])
    place = pd.Index(view.readings.units).get_indexer(pd.Index(first["unit_id"]))
    for rater, name in enumerate(labels.raters):
        given = (first["rater_id"] == name).to_numpy()
        own, seconds = place[given], first["seconds"].to_numpy(dtype=float)[given]
        idle = int((seconds > IDLE_SECONDS).sum())
        timed = seconds[seconds <= IDLE_SECONDS]
        if len(timed):
            note = f"left out, over {IDLE_SECONDS:g} s: {idle}" if idle else ""
            _add(view, rater, own, "rater_seconds_median", median_interval(timed), note)


def _add(
    view: RatedView, rater: int, units: Codes, statistic: str, found: Interval, note: Note = ""
) -> None:
    labels = view.labels
    counts = (len(units), len(np.unique(labels.clusters[units])))
    if labels.weight is not None:
        note = join_notes(note, Remark("as_sampled"))
    view.add(statistic, found, counts, a=labels.raters[rater], note=note)


def add_usage_rows(view: RubricView) -> None:
    """Add what every grader cost, if the table says so, and the number of models that answered for
    it, where any is known.

    An unknown cost (of a model without a list price) is undefined, not 0. `n_units` counts the
    attempts.
    """
    usage = view.request.facts.usage
    if usage is None:
        return
    for record in usage[usage["rubric"] == view.rows.rubric].to_dict("records"):
        counts, who = (int(record["attempts"]),) * 2, str(record["rater_id"])
        if COST in record:
            view.add(COST, float(record[COST]), counts, b=who, reason="not_known")
        if models := json.loads(record.get("models") or "{}"):
            view.add(MODELS, len(models), counts, b=who)


def add_price_rows(view: RubricView) -> None:
    """Add `price_per_1000_units` of every grader whose price is known: rater_b is the grader."""
    labels = view.labels
    for model in labels.models:
        name, asked = labels.raters[model], int(labels.asked[:, model].sum())
        price = view.request.facts.prices.get((view.rows.rubric, name), np.nan)
        if not np.isnan(price):
            view.add(PRICE, price, (asked, 0), b=name, note="US dollars, all attempts")


def median_interval(values: Array) -> Interval:
    """The median with the order statistics that hold it with at least 95% (Conover 1999, 3.2).

    >>> median_interval(np.arange(1.0, 16.0))
    Interval(estimate=8.0, low=4.0, high=12.0, remarks=())
    """
    from scipy.special import bdtr

    ordered, n = np.sort(values), len(values)
    below = int(np.searchsorted(bdtr(np.arange(n + 1), n, 0.5), 0.025))
    if n == 0:
        return Interval.undefined("no_times")
    if below < 1:  # up to 5 values
        return Interval.point(float(np.median(ordered)), Remark("too_few_labels_for_interval"))
    return Interval(float(np.median(ordered)), float(ordered[below - 1]), float(ordered[n - below]))


def _like_others(labels: LabelMatrix, rater: int, units: Codes) -> Interval:
    """Return the share of pairs of a rater's labels and other humans' on a unit that are alike.

    A ratio; its variance by linearisation, between clusters (Cochran 1977, section 6.3; Kish &
    Frankel 1974).
    """
    others = [human for human in labels.humans if human != rater]
    own, theirs = labels.codes[units, rater][:, None], labels.codes[units][:, others]
    both = (theirs >= 0) & (own >= 0)
    alike = both & (theirs == own)
    if labels.scale.is_number:
        values = np.asarray(labels.scale.values)
        alike = both * (1.0 - np.abs(values[own] - values[theirs]) / max(np.ptp(values), 1e-300))
    same, met = alike.sum(axis=1).astype(float), both.sum(axis=1).astype(float)
    total = met.sum()
    if total == 0:
        return Interval.undefined("no_pairable_units")
    share = float(same.sum() / total)
    _, cluster = np.unique(labels.clusters[units], return_inverse=True)
    by_cluster = np.bincount(cluster, weights=(same - share * met) / total)
    n = len(by_cluster)
    if n < MIN_CLUSTERS:
        return Interval.point(share, Remark("too_few_clusters"))
    reach = Z * float(np.sqrt(n / (n - 1) * (by_cluster**2).sum()))
    return Interval(share, max(share - reach, 0.0), min(share + reach, 1.0))


OVER_TIME_COLUMNS = ("rubric", "until", "labels", "n_units", "estimate", "low", "high")
CUTS = 6
"""Points in time on a rubric: a few are enough to see a line."""


def agreement_over_time(
    ratings: DataFrame,
    scales: Mapping[str, Scale],
    *,
    units: DataFrame | None = None,
    cluster: str = "pair",
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    excluded: Collection[str] = (),
    cuts: int = CUTS,
    resamples: int = 200,
    seed: int = SEED,
) -> DataFrame:
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
            given, found = own.iloc[:end], Interval(np.nan, np.nan, np.nan)
            readings, weighted = combine_readings(given, scale), with_weights(units, given)
            labels, frequency = encode(readings, scale, weighted, cluster).folded()
            coded, rng = labels.on_categories(), np.random.default_rng(seed)
            shared = Resamples(frequency, resamples, rng, weight=labels.weight)
            twice = coded.labelled.sum(axis=1) >= 2
            if n_units := int(frequency[coded.clusters[twice]].sum()):
                kappa = deciding_kappa(coded)
                mean = KappaMeans(coded, shared, [kappa]).among(range(len(coded.raters)))[kappa]
                n_clusters = int(frequency[np.unique(coded.clusters[twice])].sum())
                found = shared.interval(mean.values, n_clusters)
            until = given["created_at"].iloc[-1]
            rows.append((name, until, end, n_units, found.estimate, found.low, found.high))
    return pd.DataFrame(rows, columns=list(OVER_TIME_COLUMNS))
