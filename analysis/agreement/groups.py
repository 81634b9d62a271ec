"""Agreement within groups of raters and of raters with themselves; the majority of labels.

*Groups* (humans, models, all): coefficients as a whole and on each category, how often categories
are used and which are confused with each other.

*Sets of options*, of which none, one or several apply: Krippendorff's alpha with MASI's distance
between sets (Passonneau 2006): 1 - J M, with J the share of the options chosen by either that both
chose (Jaccard's), and M = 1 for equal sets, 2/3 where one holds the other, 1/3 where they overlap,
and 0 where they have nothing in common. Two empty sets are equal; an empty one has nothing in
common with any other.

*Stability* of a rater's labels, from draw to draw, and when a question is worded differently.
Repeats are several draws of one unit in one order; everything else in the analysis first combines
them into one label (`analysis.labels.encoding`). The same question is put to a subject in several
wordings, as several paraphrases, or several times; and a grader may be asked under several wordings
of a rubric. Variants of one question are treated as raters of one unit: stability is Fleiss' kappa
across them, reported with the mean standard deviation (Feng, Park, Liu & Tsvetkov 2023, appendix
D). Intervals come from resampling the clusters, each of which must hold all variants of a question.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.numbers import AGREEMENT
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    KappaMeans,
    MeanOverTables,
    alpha_levels,
    data_table,
    deciding_kappa,
    listed_raters,
    mean_over_pairs,
    pair_statistics,
    pairs_that_meet,
)
from evenhand.analysis.bootstrap.resamples import Resamples, count_labels, ratio
from evenhand.analysis.labels.encoding import combine_readings, encode, encode_labels
from evenhand.analysis.labels.matrix import WEIGHT, Coded, LabelMatrix, UnitColumn, UnitFacts
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import Note, join_notes
from evenhand.analysis.types import Array, Codes, Column, DataFrame, Labels, Mask, code_type
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError
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
        sides, q = coded.sides, coded.width
        of_category = (sides[:, :, None] * sides[:, None, :]).reshape(-1, q * q)
        sums, weight = counts @ sides, c.one_over(counts.sum(axis=1) - 1.0)
        pairs = (sums[:, :, None] * sums[:, None, :]).reshape(len(sums), -1) - counts @ of_category
        together = resamples.sums(coded.clusters, pairs * weight[:, None]).reshape(-1, q, q)
        return {"krippendorff_alpha_interval": c.alpha_with(together, 1.0 - AGREEMENT)}
    identity, quadratic = c.agreement_weights(coded.q), c.agreement_weights(coded.q, "quadratic")
    labels = counts.sum(axis=1)
    agreeing = c.agreeing_shares(counts, identity), c.agreeing_shares(counts, quadratic)
    sums = resamples.sums(coded.clusters, labels >= 2, *agreeing)
    agreed, weighted = ratio(sums[:, 1], sums[:, 0]), ratio(sums[:, 2], sums[:, 0])
    shares = c.category_shares(counts, coded, resamples)
    pairs = c.coincidences(counts).reshape(len(counts), -1)
    together = resamples.sums(coded.clusters, pairs).reshape(-1, coded.q, coded.q)

    panel = {
        "observed_agreement": agreed,
        "fleiss_kappa": c.chance_corrected(agreed, c.scott_chance(shares, identity)),
        "gwet_ac1": c.chance_corrected(agreed, c.gwet_chance(shares, identity)),
        "brennan_prediger": c.chance_corrected(agreed, c.uniform_chance(shares, identity)),
    }
    if coded.level != "nominal":
        by_chance = c.gwet_chance(shares, quadratic)
        panel["gwet_ac2"] = c.chance_corrected(weighted, by_chance)
    for level in alpha_levels(coded):
        panel[f"krippendorff_alpha_{level}"] = c.alpha(together, level, coded.values)
    if coded.is_binary:
        panel["prevalence_index"] = shares[:, 0] - shares[:, 1]
    return panel


def add_group_rows(view: View, names: Sequence[str] = ("humans", "models", "all")) -> None:
    """Add the panel and the means over tables of raters for every group, or those in `names`."""
    coded, resamples, kappas = view.coded, view.resamples, view.once(KappaMeans)
    by_members: dict[tuple[int, ...], list[tuple[str, Array, float, Note]]] = {}
    for group, members in groups(coded).items():
        if group not in names:
            continue
        counts = c.label_counts(coded, members)
        pairable = counts.sum(axis=1) >= 2
        units = view.count(pairable)
        if members not in by_members:
            panel = group_panel(counts, coded, resamples)
            by_members[members] = [(name, values, 0.0, "") for name, values in panel.items()]
            by_members[members] += [
                (name, mean.values, mean.undefined, mean.note)
                for name, mean in kappas.among(members).items()
            ]
        why = "no_variation" if units[0] else "no_pairable_units"
        for name, values, undefined, note in by_members[members]:
            view.add(name, values, units, a=group, note=note, undefined=undefined, reason=why)


def add_prevalence_rows(view: View) -> None:
    """Add the share of each category, for every group and, where raters are listed, each rater."""
    coded, who = view.coded, groups(view.coded)
    listed = len(coded.raters) <= MAX_LISTED_RATERS
    single = range(len(coded.raters)) if listed else coded.members("model")
    who |= {coded.raters[rater]: (rater,) for rater in single}
    categories = coded.categories[:1] if coded.is_binary else coded.categories
    for name, members in who.items():
        counts = c.label_counts(coded, members)
        units = view.count(counts.sum(axis=1) > 0)
        shares = c.category_shares(counts, coded, view.resamples)
        for category, values in zip(categories, shares.T, strict=False):
            view.add("prevalence", values, units, a=name, at=category, reason="no_labels")


def add_category_rows(view: View) -> None:
    """Add `confusion` (at = "A>B"): how many units `rater_a` labels A and `rater_b` B, for every
    listed pair of raters; for "humans" with a grader, pairs of labels, one from any human.
    """
    coded, resamples = view.coded, view.resamples
    humans = coded.members("human")
    for grader in coded.members("model") if humans else ():
        of_humans = [data_table(coded, human, grader, resamples) for human in humans]
        met = coded.labelled_by_any(humans) & coded.labelled[:, grader]
        _add_confusion(view, np.sum(of_humans, axis=0), met, ("humans", coded.raters[grader]))
    for a, b in pairs_that_meet(coded, listed_raters(coded)):
        both = coded.labelled[:, a] & coded.labelled[:, b]
        names = (coded.raters[a], coded.raters[b])
        _add_confusion(view, data_table(coded, a, b, resamples), both, names)


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
    """Return the sets of options as labels, and which options each holds (sets, options). `options`
    are the answers to each option on the same units by the same raters, code 0 for yes; where one
    is missing, so is the set.
    """
    answers = np.stack([option.codes for option in options], axis=-1)
    complete = (answers >= 0).all(axis=-1)
    sets, which = np.unique(answers[complete] == 0, axis=0, return_inverse=True)
    first = options[0]
    codes = np.full(first.codes.shape, -1, dtype=code_type(max(len(sets), 128)))
    codes[complete] = which.reshape(-1)
    names = [set_label(np.array(keys)[chosen].tolist(), keys) or NONE for chosen in sets]
    coded = Coded(
        raters=first.raters,
        kinds=first.kinds,
        codes=codes,
        clusters=first.clusters,
        categories=tuple(names),
        values=tuple(float(at) for at in range(len(sets))),
        level="nominal",
        subset="all",
        copies=first.copies,
    )
    return coded, sets


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
        counts = c.label_counts(coded, members)
        return set_alphas(counts, sets, coded, resamples), counts.sum(axis=1) >= 2

    for a, b in pairs_that_meet(coded, listed_raters(coded)):
        values, units = found([a, b])
        for name, drawn in values.items():
            view.add(name, drawn, units, a=coded.raters[a], b=coded.raters[b])
    for grader in coded.members("model"):
        people = coded.people_beside(grader)
        pairs = [pair for human in people for pair in pairs_that_meet(coded, (human, grader))]
        means = {name: MeanOverTables(len(resamples)) for name in ("observed_agreement", ALPHA)}
        units = np.zeros(len(coded.codes), dtype=bool)
        for pair in pairs:
            values, both = found(pair)
            units |= both
            sizes = view.sums(both)
            for name, drawn in values.items():
                means[name].add(drawn[:, None], sizes)
        for name, mean in means.items() if pairs else ():
            who = About(a="humans", b=coded.raters[grader], note=mean.note)
            view.add(name, mean.values, units, undefined=mean.undefined, **who)
    for group, members in groups(coded).items():
        values, units = found(members)
        why = "no_variation" if units.any() else "no_pairable_units"
        for name, drawn in values.items():
            view.add(name, drawn, units, a=group, reason=why)


@dataclass(frozen=True)
class Majority:
    """Majority label of each unit (None where tied or without labels), and the ties."""

    labels: tuple[Hashable | None, ...]
    tied: Mask


def majority(labels: Any, *, categories: Column[Hashable]) -> Majority:
    """Return the most frequent label of every unit of labels (units, raters); ties are declared.

    >>> found = majority([["a", "a", "b"], ["a", "b", None], [None, "b", None]], categories="ab")
    >>> found.labels, found.tied.tolist()
    (('a', None, 'b'), [False, True, False])
    """
    counts = count_labels(encode_labels(labels, categories), len(categories))
    codes, names = c.majority_codes(counts), list(categories)
    return Majority(
        tuple(names[code] if code >= 0 else None for code in codes),
        (codes < 0) & (counts.sum(axis=1) > 0),
    )


_BETWEEN = "\x1f"
"""Separator of a unit's id and its order; no id contains it."""


def repeats_of(
    ratings: DataFrame, scale: Scale, units: DataFrame | None = None, cluster: str = "pair"
) -> dict[str, LabelMatrix]:
    """Return each repeating rater's draws, laid out as if every draw were a separate rater.
    `ratings` is a validated table of one rubric. A row of the matrix is a unit in one order that
    the rater read more than once; it belongs to the unit's cluster.
    """
    import pandas as pd

    draws = ratings.groupby(["rater_id", "unit_id", "order"], sort=False)["draw"]
    again = ratings[draws.transform("size") > 1]
    matrices = {}
    for rater, repeats in again.groupby("rater_id", sort=True):
        name = str(rater)
        reading = repeats["unit_id"] + _BETWEEN + repeats["order"]
        as_raters = repeats.assign(rater_id=repeats["draw"].astype(str), unit_id=reading, order="")
        facts = UnitFacts(repeats["unit_id"].tolist(), units)
        clusters = facts.clusters(cluster)
        columns = {"cluster_id": [clusters.values[at] for at in clusters.codes]}
        if (weight := facts.weights(clusters)) is not None:
            columns[WEIGHT] = weight[clusters.codes].tolist()
        table = pd.DataFrame({"unit_id": reading.tolist(), **columns}).drop_duplicates()
        own_scale = replace(scale, threshold=scale.threshold_for(name), thresholds={})
        matrices[name] = encode(combine_readings(as_raters, own_scale), own_scale, table)
    return matrices


def add_repeat_rows(view: RatedView) -> None:
    """Add `intra_rater_agreement` and `intra_rater_kappa` of every rater with repeats. Both are
    plain means over the pairs of a rater's draws.
    """
    if not (view.ratings["draw"] > 0).any():
        return
    request, scale = view.request, view.labels.scale
    matrices = repeats_of(view.ratings, scale, request.units, request.settings.cluster)
    for name, of_draws in _views(view, matrices):
        draws = of_draws.coded
        panel, kappa = pair_statistics(draws), deciding_kappa(draws)
        pairs = list(combinations(range(len(draws.raters)), 2))
        units = of_draws.count(draws.labelled.sum(axis=1) >= 2)
        why = "no_variation" if units[0] else "no_pairable_units"
        wanted = {key: panel[key] for key in ("observed_agreement", kappa) if key in panel}
        kind = "unweighted kappa" if kappa == "cohen_kappa" else f"{draws.ordered} kappa"
        for of, mean in mean_over_pairs(draws, pairs, of_draws.resamples, wanted).items():
            over = f"mean over {mean.n_tables} pairs of draws" if mean.n_tables > 1 else ""
            statistic, about = "intra_rater_kappa", join_notes(kind, over)
            if of == "observed_agreement":
                statistic, about = "intra_rater_agreement", join_notes(over)
            lost, add = mean.undefined, of_draws.add
            add(statistic, mean.values, units, a=name, note=about, undefined=lost, reason=why)


def _views(view: RatedView, matrices: Mapping[str, LabelMatrix]) -> Iterator[tuple[str, View]]:
    """Yield each rater with each view of their labels."""
    for name, matrix in matrices.items():
        folded, frequency = matrix.folded()
        shared = view.request.resampled(frequency, folded.weight)
        yield from ((name, View.of(view.rows, coded, shared)) for coded in folded.views)


STABILITY = "stability_fleiss_kappa"
SPREAD = "stability_sd"
REWORDED = "rubric"
"""The `at` of a grader's stability under several wordings of one rubric."""
HUMANS = "humans"


def add_stability_rows(view: RubricView) -> None:
    """Add the stability of subjects' answers from variant to variant, as each rater labels them.

    `stability_fleiss_kappa` and, on scales with an order, `stability_sd`: `rater_a` is the grader,
    or "humans" for the majority of people; `at` is the column that varies, while all other
    `columns`, the subject, the side and the cluster stay the same; `subset` is "all" or
    "subject=NAME".
    """
    coded, labels = view.coded, view.labels
    columns = labels.columns(view.request.settings.variants)
    readers = {coded.raters[model]: coded.codes[:, model] for model in coded.members("model")}
    if humans := coded.members("human"):
        counts = c.label_counts(coded, humans)  # the majority, of numbers the median
        usual = c.median_codes(counts) if coded.is_number else c.majority_codes(counts)
        readers = {HUMANS: usual.astype(coded.codes.dtype), **readers}
    for (reader, codes), column in product(readers.items(), columns):
        fixed = [other for other in columns if other.name != column.name]
        wide, clusters, subject = _by_variant(labels, codes, column, fixed)
        parts = {coded.subset: np.ones(len(subject), dtype=bool)}
        if len(labels.subjects) > 1:
            for code, name in enumerate(labels.subjects):
                parts[coded.part(f"subject={name}")] = subject == code
        kinds = ("variant",) * len(column.values)
        for subset, inside in parts.items():
            variants = replace(
                coded,
                raters=column.values,
                kinds=kinds,
                codes=wide[inside],
                clusters=clusters[inside],
                subset=subset,
            )
            given = View.of(view.rows, variants, view.resamples)
            _add_rows(given, labels.scale, reader, column.name)


def reworded(
    ratings: DataFrame,
    family: Sequence[Scale],
    units: DataFrame | None = None,
    cluster: str = "pair",
) -> dict[str, LabelMatrix]:
    """Return each rater's labels under a rubric's wordings, each wording as a separate rater.
    `family` is the rubric and its variants, `ratings` those given under them; raters who labelled
    under one of them only are left out. Raises InputError where a variant has other categories.
    """
    base, *others = family
    for other in others:
        if other.categories != base.categories:
            raise InputError(
                f"rubric {other.name!r} is a variant of {base.name!r} but has other categories; "
                "give both the same option keys"
            )
    matrices = {}
    for rater, given in ratings.groupby("rater_id", sort=True):
        if given["rubric"].nunique() < 2:
            continue
        name = str(rater)
        scale = replace(base, threshold=base.threshold_for(name), thresholds={})
        as_raters = given.assign(rater_id=given["rubric"])
        matrices[name] = encode(combine_readings(as_raters, scale), scale, units, cluster)
    return matrices


def add_rewording_rows(view: RatedView, matrices: Mapping[str, LabelMatrix]) -> None:
    """Add a rater's own stability from wording to wording of the rubric: `at` is "rubric"."""
    for name, of_rater in _views(view, matrices):
        _add_rows(of_rater, matrices[name].scale, name, REWORDED)


def _by_variant(
    labels: LabelMatrix, codes: Labels, column: UnitColumn, fixed: Sequence[UnitColumn]
) -> tuple[Labels, Codes, Codes]:
    """Return labels (questions, variants) of one reader, with each question's cluster and subject.
    A question is one cluster, subject, side and value of the other columns. Where several units are
    the same variant of one question, the first one counts.
    """
    labelled = np.flatnonzero((column.codes >= 0) & (codes >= 0))
    question = np.column_stack(
        [labels.clusters, labels.subject, labels.side, *(other.codes for other in fixed)]
    )[labelled]
    distinct, at = np.unique(question, axis=0, return_inverse=True)
    wide = np.full((len(distinct), len(column.values)), -1, dtype=codes.dtype)
    backwards = np.arange(len(labelled))[::-1]
    wide[at.reshape(-1)[backwards], column.codes[labelled][backwards]] = codes[labelled][backwards]
    return wide, distinct[:, 0].astype(np.intp), distinct[:, 1].astype(np.intp)


def _add_rows(view: View, scale: Scale, reader: str, at: str) -> None:
    coded = view.coded
    counts = c.label_counts(coded, range(len(coded.raters)))
    several = counts.sum(axis=1) >= 2
    if not several.any():
        return
    variants = int((coded.labelled & several[:, None]).any(axis=0).sum())
    if not coded.is_number:
        kappa = group_panel(counts * several[:, None], coded, view.resamples)["fleiss_kappa"]
        view.add(STABILITY, kappa, several, a=reader, at=at, note=f"across {variants} variants")
    if not (coded.is_binary or scale.level != "nominal" or scale.unclear):
        return  # no order
    # Standard deviation (divisor n - 1) of each question's values.
    values = np.array([*coded.values, np.nan])
    if not coded.is_binary:
        values[[code for code, key in enumerate(scale.categories) if key in scale.unclear]] = np.nan
    numbers = values[coded.codes]
    n = (~np.isnan(numbers)).sum(axis=1)
    mean = np.nansum(numbers, axis=1) / np.maximum(n, 1)
    squares = np.nansum((numbers - mean[:, None]) ** 2, axis=1)
    spread = view.share(np.sqrt(squares / np.maximum(n - 1, 1)), n >= 2)
    view.add(SPREAD, spread, several, a=reader, at=at)
