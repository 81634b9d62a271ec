"""Agreement within a group of raters (humans, models, all), as a whole and on each category.

Also how often categories are used and which are confused with each other, and agreement on labels
that are sets of options, of which none, one or several apply: Krippendorff's alpha with MASI's
distance between sets (Passonneau 2006): 1 - J M, with J the share of the options chosen by either
that both chose (Jaccard's), and M = 1 for equal sets, 2/3 where one holds the other, 1/3 where they
overlap, and 0 where they have nothing in common. Two empty sets are equal; an empty one has nothing
in common with any other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.coefficients import (
    agreeing_shares,
    category_shares,
    coincidences,
    label_counts,
)
from evenhand.analysis.agreement.numbers import AGREEMENT
from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    RunningMean,
    alpha_levels,
    data_table,
    listed_raters,
    pairs_that_meet,
    table_chunks,
)
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code, Note
from evenhand.analysis.results import from_to
from evenhand.analysis.types import Array, Mask, code_type
from evenhand.analysis.writer import About, View
from evenhand.rubrics.options import NONE, set_label


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
        "fleiss_kappa": c.chance_corrected(agreed, c.scott_chance(shares, shares, identity)),
        "gwet_ac1": c.chance_corrected(agreed, c.gwet_chance(shares, shares, identity)),
        "brennan_prediger": c.chance_corrected(agreed, c.uniform_chance(shares, shares, identity)),
    }
    if coded.level != "nominal":
        by_chance = c.gwet_chance(shares, shares, quadratic)
        panel["gwet_ac2"] = c.chance_corrected(weighted, by_chance)
    for level in alpha_levels(coded):
        panel[f"krippendorff_alpha_{level}"] = c.alpha(together, level, coded.values)
    if coded.is_binary:
        panel["prevalence_index"] = shares[:, 0] - shares[:, 1]
    return panel


def _number_alpha(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Interval alpha (rows,) of numbers from label counts (units, q)."""
    sides, q = coded.sides, coded.width
    own = (sides[:, :, None] * sides[:, None, :]).reshape(-1, q * q)
    sums, weight = counts @ sides, c.one_over(counts.sum(axis=1) - 1.0)
    pairs = (sums[:, :, None] * sums[:, None, :]).reshape(len(sums), -1) - counts @ own
    together = resamples.sums(coded.clusters, pairs * weight[:, None]).reshape(-1, q, q)
    return c.alpha_with(together, 1.0 - AGREEMENT)


def add_group_rows(view: View, names: Sequence[str] = ("humans", "models", "all")) -> None:
    """Add the panel and the means over tables of raters for every group, or those in `names`."""
    coded, resamples, kappas = view.coded, view.resamples, view.once(KappaMeans)
    known: dict[tuple[int, ...], list[tuple[str, Array, float, Note]]] = {}
    for group, members in groups(coded).items():
        if group not in names:
            continue
        counts = label_counts(coded, members)
        pairable = counts.sum(axis=1) >= 2
        units = view.count(pairable)
        if members not in known:
            panel = group_panel(counts, coded, resamples)
            known[members] = [(name, values, 0.0, "") for name, values in panel.items()]
            known[members] += [
                (name, mean.values, mean.undefined, mean.note)
                for name, mean in kappas.among(members).items()
            ]
        why: Code = "no_variation" if units[0] else "no_pairable_units"
        for name, values, undefined, note in known[members]:
            view.add(name, values, units, a=group, note=note, undefined=undefined, reason=why)


def add_prevalence_rows(view: View) -> None:
    """Add the share of each category, for every group and, where raters are listed, each rater."""
    coded, who = view.coded, groups(view.coded)
    listed = len(coded.raters) <= MAX_LISTED_RATERS
    single = range(len(coded.raters)) if listed else coded.members("model")
    who |= {coded.raters[rater]: (rater,) for rater in single}
    categories = coded.categories[:1] if coded.is_binary else coded.categories
    for name, members in who.items():
        counts = label_counts(coded, members)
        units = view.count(counts.sum(axis=1) > 0)
        shares = category_shares(counts, coded, view.resamples)
        for category, values in zip(categories, shares.T, strict=False):
            view.add("prevalence", values, units, a=name, at=category, reason="no_labels")


NOT_USED: Code = "category_not_used"


def add_category_rows(view: View) -> None:
    """Add `specific_agreement` (at = category) of groups, humans with graders, and pairs.

    Also adds `confusion`.

    `confusion` (at = "A>B") counts the units where `rater_a` says A and `rater_b` says B, for every
    listed pair of raters; for "humans" with a grader it counts pairs of labels, one from any human.
    For the binary verdict, specific agreement is positive and negative agreement.
    """
    coded, resamples = view.coded, view.resamples
    for group, members in groups(coded).items():
        counts = label_counts(coded, members)
        values = c.group_specific(counts, coded.clusters, resamples)
        paired = counts * (counts.sum(axis=1, keepdims=True) >= 2)
        _add_specific(view, values, paired > 0, (group, ""))
    humans = coded.members("human")
    from_people = label_counts(coded, humans)
    for grader in coded.members("model") if humans else ():
        # Each pair of labels, one from any human, counts once.
        names = "humans", coded.raters[grader]
        own = coded.codes[:, [grader]] == np.arange(coded.q)
        held = own.sum(axis=1, keepdims=True)
        either = from_people * held + own * from_people.sum(axis=1, keepdims=True)
        values = ratio(*np.split(view.sums(2.0 * from_people * own, either), 2, axis=1))
        _add_specific(view, values, either > 0, names)
        of_humans = [data_table(coded, human, grader, resamples) for human in humans]
        met = coded.labelled_by_any(humans) & coded.labelled[:, grader]
        _add_confusion(view, np.sum(of_humans, axis=0), met, names)
    pairs = pairs_that_meet(coded, listed_raters(coded))
    for chunk, tables in table_chunks(coded, pairs, resamples):
        each = c.specific(tables)
        for k, (a, b) in enumerate(chunk):
            both = coded.labelled[:, a] & coded.labelled[:, b]
            used = (coded.codes[:, [a, b], None] == np.arange(coded.q)).any(axis=1)
            names = (coded.raters[a], coded.raters[b])
            _add_specific(view, each[:, k], used & both[:, None], names)
            _add_confusion(view, data_table(coded, a, b, resamples), both, names)


def _add_specific(view: View, values: Array, used: Mask, raters: tuple[str, str]) -> None:
    """Add one row per category; `used` (units, q) marks the units on which it was used."""
    a, b = raters
    for category, each, units in zip(view.coded.categories, values.T, used.T, strict=True):
        view.add("specific_agreement", each, units, a=a, b=b, at=category, reason=NOT_USED)


def _add_confusion(view: View, table: Array, both: Mask, raters: tuple[str, str]) -> None:
    (a, b), units, categories = raters, view.count(both), view.coded.categories
    for first, row in zip(categories, table, strict=True):
        for second, count in zip(categories, row, strict=True):
            at, note = from_to(first, second), view.as_sampled
            view.add("confusion", float(count), units, a=a, b=b, at=at, note=note)


def jaccard_distances(sets: Mask) -> Array:
    """Distances (n, n) between sets (n, options).

    >>> jaccard_distances(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    return np.asarray(1.0 - _in_common(sets))


def masi_distances(sets: Mask) -> Array:
    """Distances (n, n) between sets (n, options); Passonneau (2006).

    >>> two = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    >>> masi_distances(two).round(3).tolist()
    [[0.0, 0.667, 0.889], [0.667, 0.0, 0.667], [0.889, 0.667, 0.0]]
    """
    number = sets.astype(float)
    both, size = number @ number.T, number.sum(axis=1)
    holds = (both == size[:, None]) | (both == size)
    equal = (both == size[:, None]) & (both == size)
    alike = np.select([equal, holds & (both > 0), both > 0], [1.0, 2.0 / 3.0, 1.0 / 3.0], 0.0)
    return np.asarray(1.0 - _in_common(sets) * alike)


def _in_common(sets: Mask) -> Array:
    number = sets.astype(float)
    both, size = number @ number.T, number.sum(axis=1)
    either = size[:, None] + size - both
    return np.asarray(np.where(either > 0, both / np.maximum(either, 1.0), 1.0))


ALPHA = "krippendorff_alpha_masi"


def sets_of(options: Sequence[Coded], keys: Sequence[str]) -> tuple[Coded, Mask]:
    """Return the sets of options as labels, and which options each holds (sets, options).

    `options` are the answers to each option on the same units by the same raters, code 0 for yes;
    where one is missing, so is the set.
    """
    said = np.stack([each.codes for each in options], axis=-1)
    known = (said >= 0).all(axis=-1)
    found, which = np.unique(said[known] == 0, axis=0, return_inverse=True)
    first = options[0]
    codes = np.full(first.codes.shape, -1, dtype=code_type(max(len(found), 128)))
    codes[known] = which.reshape(-1)
    names = [set_label(np.array(keys)[own].tolist(), keys) or NONE for own in found]
    coded = Coded(
        raters=first.raters,
        kinds=first.kinds,
        codes=codes,
        clusters=first.clusters,
        categories=tuple(names),
        values=tuple(float(at) for at in range(len(found))),
        level="nominal",
        subset="all",
        copies=first.copies,
    )
    return coded, found


def set_alphas(counts: Array, sets: Mask, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Alpha (rows,) and `observed_agreement`, the share of pairs of labels on a unit that are the
    same set, by name, from label counts (units, sets).
    """
    labels = counts.sum(axis=1)
    several = labels >= 2
    counts = counts * several[:, None]
    others = np.where(several, labels - 1.0, 1.0)
    apart = masi_distances(sets)
    within = ((counts @ apart) * counts).sum(axis=1) / others
    alike = (counts * (counts - 1.0)).sum(axis=1) / others
    sums = resamples.sums(coded.clusters, several, ratio(alike, labels * several), within, counts)
    totals = sums[:, 3:]
    expected = ((totals @ apart) * totals).sum(axis=1)
    return {
        "observed_agreement": ratio(sums[:, 1], sums[:, 0]),
        ALPHA: c.alpha_of(sums[:, 2], expected, totals),
    }


def add_set_rows(view: View, sets: Mask) -> None:
    """Add `krippendorff_alpha_masi` and `observed_agreement` of every group, of every pair of
    listed raters, and of each grader with humans, a mean over the humans in which each counts by
    the units that it shares with the grader.
    """
    coded, resamples = view.coded, view.resamples

    def found(members: Sequence[int]) -> tuple[dict[str, Array], Mask]:
        counts = label_counts(coded, members)
        return set_alphas(counts, sets, coded, resamples), counts.sum(axis=1) >= 2

    for a, b in pairs_that_meet(coded, listed_raters(coded)):
        values, units = found([a, b])
        for name, each in values.items():
            view.add(name, each, units, a=coded.raters[a], b=coded.raters[b])
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        pairs = [pair for human in people for pair in pairs_that_meet(coded, (human, grader))]
        means = {name: RunningMean(len(resamples)) for name in ("observed_agreement", ALPHA)}
        units = np.zeros(len(coded.codes), dtype=bool)
        for pair in pairs:
            values, both = found(pair)
            units |= both
            sizes = view.sums(both)
            for name, each in values.items():
                means[name].add(each[:, None], sizes)
        for name, mean in means.items() if pairs else ():
            whole = mean.result()
            who = About(a="humans", b=coded.raters[grader], note=whole.note)
            view.add(name, whole.values, units, undefined=whole.undefined, **who)
    for group, members in groups(coded).items():
        values, units = found(members)
        why: Code = "no_variation" if units.any() else "no_pairable_units"
        for name, each in values.items():
            view.add(name, each, units, a=group, reason=why)
