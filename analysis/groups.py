"""Agreement within a group of raters: humans, models, all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt

from analysis import coefficients as c
from analysis.encoding import Coded
from analysis.pairs import (
    alpha_levels,
    eligible_pairs,
    mean_over_pairs,
    pair_statistics,
    shared_units,
)
from analysis.resampling import Resamples, interval
from analysis.results import ResultRows, join_notes

__all__ = ["add_group_rows", "group_members", "group_panel"]

Array = npt.NDArray[np.float64]

_MEANS_OF_PAIRS = ("cohen_kappa", "weighted_kappa_linear", "weighted_kappa_quadratic", "scott_pi")
"""Statistics of two raters that have no form of their own for many."""


def group_members(coded: Coded) -> dict[str, tuple[int, ...]]:
    """The groups that have raters; adjudicators belong to none."""
    humans, models = coded.members("human"), coded.members("model")
    groups = {"humans": humans, "models": models, "all": (*humans, *models)}
    return {name: members for name, members in groups.items() if members}


def group_panel(counts: Array, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """The panel of many raters from label counts (units, q): replicates (rows,) by name.

    Agreement is the mean over units with two labels or more of the share of agreeing pairs of
    labels; category shares are means over all labelled units, so that every unit counts once
    however many raters it had (Gwet 2014, chapter 5; with equal numbers of raters Fleiss 1971).
    Also `shares` (rows, q).
    """
    q = coded.q
    labels = counts.sum(axis=1)
    pairable = labels >= 2
    possible = np.where(pairable, labels * (labels - 1), 1.0)
    identity, quadratic = c.agreement_weights(q), c.agreement_weights(q, "quadratic")

    def agreeing(weights: Array) -> Array:
        pairs: Array = (counts * (counts @ weights - 1.0)).sum(axis=1) / possible
        return np.where(pairable, pairs, 0.0)

    features = np.column_stack(
        [
            pairable,
            agreeing(identity),
            agreeing(quadratic),
            labels > 0,
            counts / np.maximum(labels, 1.0)[:, None],
            _coincidences(counts),
        ]
    )
    sums = resamples.totals(resamples.cluster_sums(coded.clusters, features))
    units, plain, weighted, any_label = (_or_nan(sums[:, k], sums[:, 0 if k < 3 else 3]) for k in range(4))
    del units, any_label
    shares = sums[:, 4 : 4 + q] / np.where(sums[:, 3] > 0, sums[:, 3], np.nan)[:, None]
    coincidences = sums[:, 4 + q :].reshape(-1, q, q)

    panel = {
        "observed_agreement": plain,
        "fleiss_kappa": c.chance_corrected(plain, c.scott_expected(shares)),
        "gwet_ac1": c.chance_corrected(plain, c.gwet_expected(shares, identity)),
    }
    if coded.level != "nominal":
        panel["gwet_ac2"] = c.chance_corrected(weighted, c.gwet_expected(shares, quadratic))
    panel["brennan_prediger"] = c.chance_corrected(plain, c.uniform_expected(identity))
    for level in alpha_levels(coded):
        panel[f"krippendorff_alpha_{level}"] = c.alpha(coincidences, level, coded.values)
    if coded.is_binary:
        panel["prevalence_index"] = shares[:, 0] - shares[:, 1]
    return panel | {"shares": shares}
