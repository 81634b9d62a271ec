"""Agreement within a group of raters (humans, models, all), and how often categories are used."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    KappaMeans,
    alpha_levels,
    eligible_pairs,
    shared_units,
)
from evenhand.analysis.bootstrap.ratios import ratio
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code, Note
from evenhand.analysis.results import ResultRows, join_notes

__all__ = [
    "add_group_rows",
    "add_prevalence_rows",
    "agreeing_shares",
    "category_shares",
    "coincidences",
    "group_panel",
    "groups",
]

Array = npt.NDArray[np.float64]


def groups(coded: Coded) -> dict[str, tuple[int, ...]]:
    """The groups that have raters, as columns; adjudicators belong to none."""
    humans, models = coded.members("human"), coded.members("model")
    named = {"humans": humans, "models": models, "all": (*humans, *models)}
    return {name: members for name, members in named.items() if members}


def label_counts(coded: Coded, members: Sequence[int]) -> Array:
    """How many of the raters chose each category, (units, q)."""
    codes = coded.codes[:, list(members)]
    return np.stack([(codes == code).sum(axis=1) for code in range(coded.q)], axis=1).astype(float)


def category_shares(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Shares of the categories (rows, q), every labelled unit counting once (Gwet 2014, ch. 5)."""
    labels = counts.sum(axis=1, keepdims=True)
    features = np.hstack([labels > 0, counts / np.maximum(labels, 1.0)])
    sums = resamples.totals(resamples.cluster_sums(coded.clusters, features))
    return ratio(sums[:, 1:], sums[:, :1])


def group_panel(counts: Array, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """The panel of many raters from label counts (units, q): replicates (rows,) by name.

    Observed agreement is the mean over units with at least two labels of the share of agreeing
    pairs of labels. `fleiss_kappa` is its form for unequal numbers of raters (Gwet 2014, ch. 5),
    which with equal numbers is Fleiss 1971.
    """
    identity, quadratic = c.agreement_weights(coded.q), c.agreement_weights(coded.q, "quadratic")
    labels = counts.sum(axis=1)
    features = [labels >= 2, agreeing_shares(counts, identity), agreeing_shares(counts, quadratic)]
    sums = resamples.totals(resamples.cluster_sums(coded.clusters, np.column_stack(features)))
    agreed, weighted = ratio(sums[:, 1], sums[:, 0]), ratio(sums[:, 2], sums[:, 0])
    shares = category_shares(counts, coded, resamples)
    pairs_of_labels = coincidences(counts).reshape(len(counts), -1)
    together = resamples.totals(resamples.cluster_sums(coded.clusters, pairs_of_labels))
    together = together.reshape(-1, coded.q, coded.q)

    panel = {
        "observed_agreement": agreed,
        "fleiss_kappa": c.chance_corrected(agreed, c.scott_expected(shares)),
        "gwet_ac1": c.chance_corrected(agreed, c.gwet_expected(shares, identity)),
        "brennan_prediger": c.chance_corrected(agreed, c.uniform_expected(identity)),
    }
    if coded.level != "nominal":
        panel["gwet_ac2"] = c.chance_corrected(weighted, c.gwet_expected(shares, quadratic))
    for level in alpha_levels(coded):
        panel[f"krippendorff_alpha_{level}"] = c.alpha(together, level, coded.values)
    if coded.is_binary:
        panel["prevalence_index"] = shares[:, 0] - shares[:, 1]
    return panel


def add_group_rows(
    rows: ResultRows, kappas: KappaMeans, names: Sequence[str] = ("humans", "models", "all")
) -> None:
    """The panel and the means over pairs of raters for every group, or those in `names`."""
    coded, resamples = kappas.coded, kappas.resamples
    known: dict[tuple[int, ...], list[tuple[str, Array, float, Note]]] = {}
    for group, members in groups(coded).items():
        if group not in names:
            continue
        counts = label_counts(coded, members)
        pairable = counts.sum(axis=1) >= 2
        numbers = resamples.count(coded.clusters, pairable)
        if members not in known:
            panel = group_panel(counts, coded, resamples)
            known[members] = [(name, values, 0.0, "") for name, values in panel.items()]
            known[members] += _means_over_pairs(members, kappas)
        for name, values, undefined, note in known[members]:
            reason: Code = "no_variation" if pairable.any() else "no_pairable_units"
            rows.add(
                name,
                resamples.interval(values, numbers[1], undefined=undefined, reason=reason),
                numbers,
                rater_a=group,
                subset=coded.subset,
                note=note,
            )


def add_prevalence_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """How often each category is used: by every group, and by each rater where they are listed."""
    who = groups(coded)
    single = range(len(coded.raters))
    if len(coded.raters) > MAX_LISTED_RATERS:
        single_raters = coded.members("model")
    else:
        single_raters = tuple(single)
    who |= {coded.raters[rater]: (rater,) for rater in single_raters}
    categories = coded.categories[:1] if coded.is_binary else coded.categories
    for name, members in who.items():
        counts = label_counts(coded, members)
        numbers = resamples.count(coded.clusters, counts.sum(axis=1) > 0)
        shares = category_shares(counts, coded, resamples)
        for code, category in enumerate(categories):
            rows.add(
                "prevalence",
                resamples.interval(shares[:, code], numbers[1], reason="no_labels"),
                numbers,
                rater_a=name,
                subset=coded.subset,
                at=category,
            )


def _means_over_pairs(
    members: Sequence[int], kappas: KappaMeans
) -> list[tuple[str, Array, float, Note]]:
    pairs, about = eligible_pairs(
        list(combinations(sorted(members), 2)), shared_units(kappas.coded, kappas.resamples)
    )
    return [
        (name, mean.values, mean.undefined, join_notes(mean.note, about))
        for name, mean in kappas.over(pairs).items()
    ]


def agreeing_shares(counts: Array, weights: Array) -> Array:
    """Each unit's (weighted) share of agreeing ordered pairs of labels; 0 below two labels."""
    labels = counts.sum(axis=1)
    agreeing = (counts * (counts @ weights - 1.0)).sum(axis=1)
    pairs = labels * (labels - 1.0)
    return np.asarray(np.divide(agreeing, pairs, out=np.zeros(len(counts)), where=pairs > 0))


def coincidences(counts: Array) -> Array:
    """Each unit's ordered pairs of labels, weighted 1 / (labels - 1): (units, q, q)."""
    q = counts.shape[1]
    pairs = counts[:, :, None] * counts[:, None, :]
    pairs[:, range(q), range(q)] -= counts
    others = counts.sum(axis=1) - 1.0
    weight = np.divide(1.0, others, out=np.zeros(len(counts)), where=others > 0)
    weighted: Array = pairs * weight[:, None, None]
    return weighted
