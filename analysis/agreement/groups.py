"""Agreement within a group of raters (humans, models, all), and how often categories are used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import (
    agreeing_shares,
    category_shares,
    coincidences,
    label_counts,
)
from evenhand.analysis.agreement.numbers import AGREEMENT
from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    alpha_levels,
)
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code, Note
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array
from evenhand.analysis.writer import Writer


def groups(coded: Coded) -> dict[str, tuple[int, ...]]:
    """Return the groups that have raters, as columns; adjudicators belong to none."""
    humans, models = coded.members("human"), coded.members("model")
    named = {"humans": humans, "models": models, "all": (*humans, *models)}
    return {name: members for name, members in named.items() if members}


def group_panel(counts: Array, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Panel of coefficients from label counts (units, q): replicates (rows,) by name.

    Observed agreement is the mean over units with at least two labels of the share of agreeing
    pairs of labels. `fleiss_kappa` is its form for unequal numbers of raters (Gwet 2014, ch. 5),
    which with equal numbers is Fleiss 1971.
    """
    if coded.is_number:
        return {"krippendorff_alpha_interval": _number_alpha(counts, coded, resamples)}
    identity, quadratic = c.agreement_weights(coded.q), c.agreement_weights(coded.q, "quadratic")
    labels = counts.sum(axis=1)
    agreeing = agreeing_shares(counts, identity), agreeing_shares(counts, quadratic)
    sums = resamples.sums(coded.clusters, labels >= 2, *agreeing)
    agreed, weighted = ratio(sums[:, 1], sums[:, 0]), ratio(sums[:, 2], sums[:, 0])
    shares = category_shares(counts, coded, resamples)
    pairs_of_labels = coincidences(counts).reshape(len(counts), -1)
    together = resamples.sums(coded.clusters, pairs_of_labels).reshape(-1, coded.q, coded.q)

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


def _number_alpha(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Interval alpha (rows,) of numbers from label counts (units, q)."""
    sides, q = coded.sides, coded.width
    own = (sides[:, :, None] * sides[:, None, :]).reshape(-1, q * q)
    sums, others = counts @ sides, counts.sum(axis=1) - 1.0
    pairs = (sums[:, :, None] * sums[:, None, :]).reshape(len(sums), -1) - counts @ own
    weight = np.divide(1.0, others, out=np.zeros(len(counts)), where=others > 0)
    together = resamples.sums(coded.clusters, pairs * weight[:, None]).reshape(-1, q, q)
    return c.alpha_with(together, 1.0 - AGREEMENT)


def add_group_rows(
    rows: ResultRows, kappas: KappaMeans, names: Sequence[str] = ("humans", "models", "all")
) -> None:
    """Add the panel and the means over tables of raters for every group, or those in `names`."""
    coded, resamples = kappas.coded, kappas.resamples
    out = Writer.of(rows, coded, resamples)
    known: dict[tuple[int, ...], list[tuple[str, Array, float, Note]]] = {}
    for group, members in groups(coded).items():
        if group not in names:
            continue
        counts = label_counts(coded, members)
        pairable = counts.sum(axis=1) >= 2
        units = out.count(pairable)
        if members not in known:
            panel = group_panel(counts, coded, resamples)
            known[members] = [(name, values, 0.0, "") for name, values in panel.items()]
            known[members] += [
                (name, mean.values, mean.undefined, mean.note)
                for name, mean in kappas.among(members).items()
            ]
        why: Code = "no_variation" if units[0] else "no_pairable_units"
        for name, values, undefined, note in known[members]:
            out.add(name, values, units, a=group, note=note, undefined=undefined, reason=why)


def add_prevalence_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add the share of each category, for every group and, where raters are listed, each rater."""
    out, who = Writer.of(rows, coded, resamples), groups(coded)
    listed = len(coded.raters) <= MAX_LISTED_RATERS
    single = range(len(coded.raters)) if listed else coded.members("model")
    who |= {coded.raters[rater]: (rater,) for rater in single}
    categories = coded.categories[:1] if coded.is_binary else coded.categories
    for name, members in who.items():
        counts = label_counts(coded, members)
        units = out.count(counts.sum(axis=1) > 0)
        shares = category_shares(counts, coded, resamples)
        for category, values in zip(categories, shares.T, strict=False):
            out.add("prevalence", values, units, a=name, at=category, reason="no_labels")
