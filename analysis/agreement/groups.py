"""Agreement within groups of raters and of raters with themselves; the majority of labels.

*Groups* are humans, models and all. They have coefficients, the share of each category, and the
categories that are confused with each other. A *view* is the labels, as categories or as binary
labels, with resamples of their clusters; row 0 of arrays (rows, ...) is the data.

*Sets of options* are the labels if several options can apply. Their agreement is Krippendorff's
alpha with the MASI distance (Passonneau 2006): 1 - J M. J is Jaccard's share, of the options that
either rater chose, the share that both chose. M is 1 for equal sets, 2/3 if one set contains the
other, 1/3 if they overlap, and 0 if they are disjoint. Two empty sets are equal.

*Stability* is the agreement of a rater's labels between *draws* (repeated labels of one unit), or
between wordings of one question: several wordings given to a subject, or of the rubric given to a
grader. Variants of a question are treated as raters of one unit. Stability is Fleiss' kappa
across them, reported with the mean standard deviation (Feng, Park, Liu & Tsvetkov 2023, appendix
D). Intervals come from resampling clusters; a cluster must contain all variants of a question.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement import pairs as pairwise
from evenhand.analysis.agreement.numbers import MOMENT_WEIGHTS
from evenhand.analysis.bootstrap.resamples import Resamples, count_labels, ratio
from evenhand.analysis.labels.encoding import combine_readings, encode, encode_labels
from evenhand.analysis.labels.matrix import WEIGHT, Coded, LabelMatrix, UnitColumn, UnitFacts
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import join_notes
from evenhand.analysis.types import Array, Categories, Codes, DataFrame, Labels, Mask, code_type
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics.options import NONE, set_label

MASI_ALPHA = "krippendorff_alpha_masi"
"""Statistic of alpha with the MASI distance."""
STABILITY = "stability_fleiss_kappa"
SPREAD = "stability_sd"
"""Statistics of stability: the kappa, and the mean standard deviation."""
REWORDED = "rubric"
"""Cell `at` in the results of a grader's stability under several wordings of one rubric."""
HUMANS = "humans"
"""Cell `rater_a` in the results of the stability of people's majority labels."""
_SEPARATOR = "\x1f"
"""Separator of a unit's id and its order; no id contains it."""


def groups(coded: Coded) -> dict[str, tuple[int, ...]]:
    """Return the columns of each group of raters, by name; adjudicators belong to no group."""
    humans, models = coded.members("human"), coded.members("model")
    members_by_group = {"humans": humans, "models": models, "all": (*humans, *models)}
    return {name: members for name, members in members_by_group.items() if members}


def group_panel(counts: Array, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Return a group's coefficients by name, (rows,) each, from label counts (units, q).

    Observed agreement is the mean share of agreeing pairs of labels, over units with two labels or
    more. `fleiss_kappa` is that of Gwet (2014, ch. 5), which with equal numbers of raters is that
    of Fleiss (1971). Labels that are numbers have Krippendorff's alpha only.
    """
    if coded.is_number:
        coincidences = _number_coincidences(counts, coded, resamples)
        return {"krippendorff_alpha_interval": c.alpha_with(coincidences, 1.0 - MOMENT_WEIGHTS)}
    identity, quadratic = c.agreement_weights(coded.q), c.agreement_weights(coded.q, "quadratic")
    agreeing = c.agreeing_shares(counts, identity), c.agreeing_shares(counts, quadratic)
    n, agreed_sum, weighted_sum = resamples.sums(coded.clusters, counts.sum(1) >= 2, *agreeing).T
    agreed, weighted = ratio(agreed_sum, n), ratio(weighted_sum, n)
    shares = c.category_shares(counts, coded, resamples)
    unit_pairs = c.coincidences(counts).reshape(len(counts), -1)
    coincidences = resamples.sums(coded.clusters, unit_pairs).reshape(-1, coded.q, coded.q)

    panel = {
        "observed_agreement": agreed,
        "fleiss_kappa": c.chance_corrected(agreed, c.scott_chance(shares, identity)),
        "gwet_ac1": c.chance_corrected(agreed, c.gwet_chance(shares, identity)),
        "brennan_prediger": c.chance_corrected(agreed, c.uniform_chance(shares, identity)),
    }
    if coded.level != "nominal":
        panel["gwet_ac2"] = c.chance_corrected(weighted, c.gwet_chance(shares, quadratic))
    for level in pairwise.measurement_of(coded).alpha_levels:
        panel[f"krippendorff_alpha_{level}"] = c.alpha(coincidences, level, coded.values)
    if coded.is_binary:
        panel["prevalence_index"] = shares[:, 0] - shares[:, 1]
    return panel


def _number_coincidences(counts: Array, coded: Coded, resamples: Resamples) -> Array:
    """Return the coincidence matrices (rows, 3, 3) of numbers from label counts (units, q). A label
    is counted as its three terms (`number_terms`), a pair of labels as the products of the terms.
    """
    terms = coded.terms
    self_pairs = counts @ (terms[:, :, None] * terms[:, None, :]).reshape(len(terms), -1)
    sums = counts @ terms  # over the labels of a unit, (units, 3)
    unit_pairs = (sums[:, :, None] * sums[:, None, :]).reshape(len(sums), -1) - self_pairs
    weight = c.one_over(counts.sum(axis=1) - 1.0)[:, None]
    return resamples.sums(coded.clusters, unit_pairs * weight).reshape(-1, 3, 3)


def add_group_rows(view: View, names: Sequence[str] = ("humans", "models", "all")) -> None:
    """Add `group_panel` and the mean kappas over pairs of raters (`KappaMeans`) of these groups."""
    coded = view.coded
    panels: dict[tuple[int, ...], dict[str, Array]] = {}  # "all" may equal "humans"
    for group, members in groups(coded).items():
        if group not in names:
            continue
        counts = c.label_counts(coded, members)
        pairable = counts.sum(axis=1) >= 2
        out, size = view.over(pairable), view.count(pairable)
        kappas = out.once(pairwise.KappaMeans)  # shared by the view's statistics
        if members not in panels:
            panels[members] = group_panel(counts, coded, out.resamples)
        reason = "no_variation" if size.units else "no_pairable_units"
        for name, values in panels[members].items():
            out.add(name, values, size, a=group, reason=reason)
        for name, mean in kappas.among(members).items():
            about = About(a=group, note=mean.note)
            out.add(name, mean.values, size, undefined=mean.undefined, reason=reason, **about)


def add_prevalence_rows(view: View) -> None:
    """Add the share of each category for every group and rater; if raters are many, for graders."""
    coded, raters_by_name = view.coded, groups(view.coded)
    is_listed = len(coded.raters) <= pairwise.MAX_LISTED_RATERS
    single_raters = range(len(coded.raters)) if is_listed else coded.members("model")
    raters_by_name |= {coded.raters[rater]: (rater,) for rater in single_raters}
    categories = coded.categories[:1] if coded.is_binary else coded.categories  # 1 of 2 suffices
    for name, members in raters_by_name.items():
        counts = c.label_counts(coded, members)
        has_label = counts.sum(axis=1) > 0
        out, size = view.over(has_label), view.count(has_label)
        shares = c.category_shares(counts, coded, out.resamples)
        for category, values in zip(categories, shares.T, strict=False):
            out.add("prevalence", values, size, a=name, at=category, reason="no_labels")


def add_category_rows(view: View) -> None:
    """Add `confusion` (`at` is "A>B") for every listed pair of raters: the number of units that
    `rater_a` labels A and `rater_b` labels B. For "humans" with a grader it is the number of pairs
    of a human's label and the grader's.
    """
    coded, resamples, humans = view.coded, view.resamples, view.coded.members("human")
    for grader in coded.members("model") if humans else ():
        human_tables = [pairwise.data_table(coded, human, grader, resamples) for human in humans]
        shared = coded.labelled_by_any(humans) & coded.labelled[:, grader]
        _add_confusion(view, np.sum(human_tables, axis=0), shared, "humans", coded.raters[grader])
    for a, b in pairwise.pairs_that_meet(coded, pairwise.listed_raters(coded)):
        shared = coded.labelled[:, a] & coded.labelled[:, b]
        table = pairwise.data_table(coded, a, b, resamples)
        _add_confusion(view, table, shared, coded.raters[a], coded.raters[b])


def _add_confusion(view: View, table: Array, shared: Mask, a: str, b: str) -> None:
    """Add a row for each cell of a table (q, q) of raters `a` and `b`, who share units `shared`."""
    size, categories = view.count(shared), view.coded.categories
    for first, row in zip(categories, table, strict=True):
        for second, count in zip(categories, row, strict=True):
            at, note = from_to(first, second), view.as_sampled
            view.add("confusion", float(count), size, a=a, b=b, at=at, note=note)


@dataclass(frozen=True)
class Majority:
    """Majority label of each unit, None if tied or without labels, and the mask of the ties."""

    labels: tuple[Hashable | None, ...]
    tied: Mask


def majority(labels: Any, *, categories: Categories) -> Majority:
    """Return the most frequent label of each unit, from a table of labels (units, raters).

    >>> labels = [["a", "a", "b"], ["a", "b", None], [None, "b", None], [None, None, None]]
    >>> result = majority(labels, categories="ab")
    >>> result.labels, result.tied.tolist()
    (('a', None, 'b', None), [False, True, False, False])
    """
    counts = count_labels(encode_labels(labels, categories), len(categories))
    codes, names = c.majority_codes(counts), list(categories)
    return Majority(tuple(names[code] if code >= 0 else None for code in codes), c.is_tied(counts))


def jaccard_distances(sets: Mask) -> Array:
    """Return Jaccard's distances (n, n) between sets (n, options), from 0 to 1.

    >>> jaccard_distances(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0]], dtype=bool)).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    return np.asarray(1.0 - _jaccard_similarities(sets))


def masi_distances(sets: Mask) -> Array:
    """Return MASI's distances (n, n) between sets (n, options), from 0 to 1 (Passonneau 2006).

    >>> sets = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]], dtype=bool)
    >>> masi_distances(sets).round(3).tolist()
    [[0.0, 0.667, 0.889], [0.667, 0.0, 0.667], [0.889, 0.667, 0.0]]
    """
    common = sets.astype(float) @ sets.T
    is_subset, overlaps = common == sets.sum(axis=1)[:, None], common > 0
    is_equal, is_nested = is_subset & is_subset.T, (is_subset | is_subset.T) & overlaps
    monotonicity = np.select([is_equal, is_nested, overlaps], [1.0, 2.0 / 3.0, 1.0 / 3.0], 0.0)
    return np.asarray(1.0 - _jaccard_similarities(sets) * monotonicity)


def _jaccard_similarities(sets: Mask) -> Array:
    """Return the shares (n, n) of the options in either of two sets that are in both."""
    common, size = sets.astype(float) @ sets.T, sets.sum(axis=1)
    union = size[:, None] + size - common
    return np.asarray(np.where(union > 0, common / np.maximum(union, 1.0), 1.0))


def sets_of(options: Sequence[Coded], keys: Sequence[str]) -> tuple[Coded, Mask]:
    """Return the labels with each set of options as a category, and a mask (sets, options) of the
    options in each set.

    `options` are the answers to each option on the same units by the same raters, code 0 for yes;
    `keys` are the options' names. If the answer to one option is missing, the label is missing.
    """
    answers = np.stack([option.codes for option in options], axis=-1)
    is_complete = (answers >= 0).all(axis=-1)
    sets, set_codes = np.unique(answers[is_complete] == 0, axis=0, return_inverse=True)
    codes = np.full(options[0].codes.shape, -1, dtype=code_type(len(sets)))
    codes[is_complete] = set_codes.reshape(-1)
    names = [set_label(np.array(keys)[is_in].tolist(), keys) or NONE for is_in in sets]
    coded = replace(
        options[0],
        codes=codes,
        categories=tuple(names),
        values=tuple(map(float, range(len(sets)))),
        level="nominal",
        subset="all",
        tie_breaks=False,
    )
    return coded, sets


def set_alphas(counts: Array, sets: Mask, coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Return alpha and `observed_agreement` (the share of a unit's pairs of labels that are the
    same set) by name, each (rows,), from label counts (units, sets).
    """
    n_labels = counts.sum(axis=1)
    pairable = n_labels >= 2
    counts = counts * pairable[:, None]
    n_others = np.where(pairable, n_labels - 1.0, 1.0)
    distances = masi_distances(sets)
    observed_distances = ((counts @ distances) * counts).sum(axis=1) / n_others
    same_set = (counts * (counts - 1.0)).sum(axis=1) / n_others / np.maximum(n_labels, 1.0)
    sums = resamples.sums(coded.clusters, pairable, same_set, observed_distances, counts)
    n_pairable, same_set_sum, observed_sum = sums[:, :3].T
    totals = sums[:, 3:]
    expected_sum = ((totals @ distances) * totals).sum(axis=1)
    return {
        "observed_agreement": ratio(same_set_sum, n_pairable),
        MASI_ALPHA: c.alpha_from_sums(observed_sum, expected_sum, totals),
    }


def add_set_rows(view: View, sets: Mask) -> None:
    """Add `krippendorff_alpha_masi` and `observed_agreement` of every group, of every pair of
    listed raters, and of each grader with humans: a mean over the humans, weighted by the number of
    units that each shares with the grader.
    """
    coded, resamples = view.coded, view.resamples

    def alphas_of(members: Sequence[int]) -> tuple[dict[str, Array], Mask]:
        """Return the statistics of some raters by name, and the mask of their units."""
        counts = c.label_counts(coded, members)
        return set_alphas(counts, sets, coded, resamples), counts.sum(axis=1) >= 2

    def add_rows(members: Sequence[int], a: str, b: str = "") -> None:
        """Add the statistics of some raters to the rows of `a` and `b`."""
        alphas, units = alphas_of(members)
        reason = "no_variation" if units.any() else "no_pairable_units"
        for name, values in alphas.items():
            view.add(name, values, units, a=a, b=b, reason=reason)

    for a, b in pairwise.pairs_that_meet(coded, pairwise.listed_raters(coded)):
        add_rows((a, b), coded.raters[a], coded.raters[b])
    for grader in coded.members("model"):
        means: dict[str, pairwise.MeanOverTables] = {}
        units = np.zeros(len(coded.codes), dtype=bool)
        for human in coded.humans_not_copied(grader):
            shared = coded.labelled[:, human] & coded.labelled[:, grader]
            if not shared.any():
                continue
            units |= shared
            for name, values in alphas_of((human, grader))[0].items():
                mean = means.setdefault(name, pairwise.MeanOverTables(len(resamples)))
                mean.add(values[:, None], view.sums(shared))
        for name, mean in means.items():
            raters = About(a="humans", b=coded.raters[grader], note=mean.note)
            view.add(name, mean.values, units, undefined=mean.undefined, **raters)
    for group, members in groups(coded).items():
        add_rows(members, group)


def repeats_of(
    ratings: DataFrame, scale: Scale, units: DataFrame | None, cluster: str
) -> dict[str, LabelMatrix]:
    """Return the labels of each rater with repeats, by rater: a matrix with a column for each draw.

    `ratings` is a validated table of one rubric. A row of the matrix is a unit, in one `order` of
    presentation, that the rater labelled more than once; it belongs to the unit's cluster. Draws
    take the place of raters, all with the rater's threshold.
    """
    draws = ratings.groupby(["rater_id", "unit_id", "order"], sort=False)["draw"]
    repeated = ratings[draws.transform("size") > 1]
    matrices = {}
    for rater, repeats in repeated.groupby("rater_id", sort=True):
        name = str(rater)
        ids = repeats["unit_id"] + _SEPARATOR + repeats["order"]
        as_raters = repeats.assign(rater_id=repeats["draw"].astype(str), unit_id=ids, order="")
        facts = UnitFacts(repeats["unit_id"].tolist(), units)
        clusters = facts.clusters(cluster)
        columns = {"cluster_id": [clusters.values[code] for code in clusters.codes]}
        if (weight := facts.weights(clusters)) is not None:
            columns[WEIGHT] = weight[clusters.codes].tolist()
        table = pd.DataFrame({"unit_id": ids.tolist(), **columns}).drop_duplicates()
        rater_scale = replace(scale, threshold=scale.threshold_for(name), thresholds={})
        matrices[name] = encode(combine_readings(as_raters, rater_scale), rater_scale, table)
    return matrices


def add_repeat_rows(view: RatedView) -> None:
    """Add `intra_rater_agreement` and `intra_rater_kappa` of every rater with repeats. Both are
    plain means over the pairs of a rater's draws.
    """
    if not (view.ratings["draw"] > 0).any():  # a rater's first label of a unit is draw 0
        return
    request, scale = view.request, view.labels.scale
    matrices = repeats_of(view.ratings, scale, request.units, request.settings.cluster)
    for name, draw_view in _rater_views(view, matrices):
        draws = draw_view.coded
        panel, kappa = pairwise.measurement_of(draws).statistics(), pairwise.deciding_kappa(draws)
        statistics = {key: panel[key] for key in ("observed_agreement", kappa) if key in panel}
        pairs = list(combinations(range(len(draws.raters)), 2))
        means = pairwise.mean_over_pairs(draws, pairs, draw_view.resamples, statistics)
        size = draw_view.count(draws.labelled.sum(axis=1) >= 2)
        reason = "no_variation" if size.units else "no_pairable_units"
        weighting = "unweighted" if kappa == "cohen_kappa" else draws.ordered
        for key, mean in means.items():
            statistic, kappa_note = "intra_rater_agreement", ""
            if key == kappa:
                statistic, kappa_note = "intra_rater_kappa", f"{weighting} kappa"
            pairs_note = f"mean over {mean.n_tables} pairs of draws" if mean.n_tables > 1 else ""
            about = About(a=name, note=join_notes(kappa_note, pairs_note))
            values, undefined = mean.values, mean.undefined
            draw_view.add(statistic, values, size, undefined=undefined, reason=reason, **about)


def _rater_views(
    view: RatedView, matrices: Mapping[str, LabelMatrix]
) -> Iterator[tuple[str, View]]:
    """Yield each rater's name with each view of their matrix, deduplicated and resampled."""
    for name, matrix in matrices.items():
        folded, frequency = matrix.folded()
        resamples = view.request.resampled(frequency, folded.weight)
        yield from ((name, View.of(view.rows, coded, resamples)) for coded in folded.views)


def add_stability_rows(view: RubricView) -> None:
    """Add the stability of subjects' answers across the variants of a question, as labelled by each
    rater: `stability_fleiss_kappa` and, on scales with an order, `stability_sd`.

    `rater_a` is the grader, or "humans" for people's majority (for numbers, their median). `at` is
    the units column that varies, while the other columns of variants, the subject, the side of the
    pair and the cluster stay the same. `subset` is "all" or "subject=NAME".
    """
    coded, labels = view.coded, view.labels
    columns = labels.columns(view.request.settings.variants)
    codes_by_rater = {coded.raters[n]: coded.codes[:, n] for n in coded.members("model")}
    if humans := coded.members("human"):
        counts = c.label_counts(coded, humans)
        people_codes = c.median_codes(counts) if coded.is_number else c.majority_codes(counts)
        codes_by_rater = {HUMANS: people_codes.astype(coded.codes.dtype), **codes_by_rater}
    for (rater, codes), column in product(codes_by_rater.items(), columns):
        other_columns = [other for other in columns if other.name != column.name]
        variant_codes, clusters, subject = _by_variant(labels, codes, column, other_columns)
        questions_by_subset = {coded.subset: np.ones(len(subject), dtype=bool)}
        if len(labels.subjects) > 1:
            for code, name in enumerate(labels.subjects):
                questions_by_subset[coded.part(f"subject={name}")] = subject == code
        # The variants take the place of raters, the questions that of units.
        variants = replace(coded, raters=column.values, kinds=("variant",) * len(column.values))
        for subset, chosen in questions_by_subset.items():
            part_codes, part_clusters = variant_codes[chosen], clusters[chosen]
            part = replace(variants, codes=part_codes, clusters=part_clusters, subset=subset)
            part_view = View.of(view.rows, part, view.resamples)
            _add_stability_of_rater(part_view, labels.scale, rater, column.name)


def reworded(
    ratings: DataFrame, family: Sequence[Scale], units: DataFrame | None, cluster: str
) -> dict[str, LabelMatrix]:
    """Return each rater's labels by rater, with a column for each wording of a rubric.

    `family` is the rubric and its variants, `ratings` are the ratings under all of them. Raters who
    labelled under a single one are left out. Raises InputError if a variant has other categories.
    """
    base, *others = family
    for other in others:
        if other.categories != base.categories:
            raise InputError(
                f"rubric {other.name!r} is a variant of {base.name!r} but has other categories; "
                "give both the same option keys"
            )
    matrices = {}
    for rater, rater_ratings in ratings.groupby("rater_id", sort=True):
        if rater_ratings["rubric"].nunique() < 2:
            continue
        name = str(rater)
        scale = replace(base, threshold=base.threshold_for(name), thresholds={})
        as_raters = rater_ratings.assign(rater_id=rater_ratings["rubric"])
        matrices[name] = encode(combine_readings(as_raters, scale), scale, units, cluster)
    return matrices


def add_rewording_rows(view: RatedView, matrices: Mapping[str, LabelMatrix]) -> None:
    """Add the stability of each rater's labels across wordings of the rubric: `at` is "rubric"."""
    for name, rater_view in _rater_views(view, matrices):
        _add_stability_of_rater(rater_view, matrices[name].scale, name, REWORDED)


def _by_variant(
    labels: LabelMatrix, codes: Labels, column: UnitColumn, other_columns: Sequence[UnitColumn]
) -> tuple[Labels, Codes, Codes]:
    """Return one rater's labels (questions, variants), and each question's cluster and subject. A
    question is one cluster, subject, side and value of the other columns. If several units are the
    same variant of a question, the first one counts.
    """
    labelled = np.flatnonzero((column.codes >= 0) & (codes >= 0))[::-1]  # the first is written last
    keys = [labels.clusters, labels.subject, labels.side, *(other.codes for other in other_columns)]
    distinct, question = np.unique(np.column_stack(keys)[labelled], axis=0, return_inverse=True)
    variant_codes = np.full((len(distinct), len(column.values)), -1, dtype=codes.dtype)
    variant_codes[question.reshape(-1), column.codes[labelled]] = codes[labelled]
    return variant_codes, distinct[:, 0].astype(np.intp), distinct[:, 1].astype(np.intp)


def _add_stability_of_rater(view: View, scale: Scale, rater: str, at: str) -> None:
    """Add the stability of one rater's labels across the variants, the raters of the `view`."""
    coded = view.coded
    counts = c.label_counts(coded, range(len(coded.raters)))
    pairable = counts.sum(axis=1) >= 2  # a single label must not count in chance agreement either
    if not pairable.any():
        return
    n_variants = int((coded.labelled & pairable[:, None]).any(axis=0).sum())
    panel = group_panel(counts * pairable[:, None], coded, view.resamples)
    if "fleiss_kappa" in panel:
        note = f"across {n_variants} variants"
        view.add(STABILITY, panel["fleiss_kappa"], pairable, a=rater, at=at, note=note)
    # A scale with an unclear category is nominal only because that one has no place in the order.
    has_order = coded.is_binary or scale.level != "nominal" or bool(scale.unclear)
    if not has_order:
        return
    # Standard deviation (divisor n - 1) of each question's values.
    values = np.array([*coded.values, np.nan])  # NaN is last, where the code -1 points
    if not coded.is_binary:
        values[[code for code, key in enumerate(scale.categories) if key in scale.unclear]] = np.nan
    numbers = values[coded.codes]
    n_values = (~np.isnan(numbers)).sum(axis=1)
    mean = np.nansum(numbers, axis=1) / np.maximum(n_values, 1)
    squares = np.nansum((numbers - mean[:, None]) ** 2, axis=1)
    deviations = np.sqrt(squares / np.maximum(n_values - 1, 1))
    view.add(SPREAD, view.share(deviations, n_values >= 2), pairable, a=rater, at=at)
