"""Labels as arrays: from ratings, from tables of plain labels, and from very many ratings.

*Ratings.* `one_version`, `without_excluded` and `split_by_method` choose what counts: one version
of a rubric, without excluded raters; ratings under different wordings are never pooled. Then
`combine_readings` combines repeated draws and both orders into one label and one probability per
rater and unit (`Readings`), and `encode` puts them into arrays (`LabelMatrix`). Draws are combined
within an order, then the orders: probabilities by their mean (labels, if one order has nothing
else, or the mean ties), labels by majority. A tied majority gives no label (`draw_tie`); labels
that differ between the two orders leave the unit unscored (`order_disagreement`).

*Pairs* (`pair_verdicts`). A rubric on single responses gives each pair and subject two units, side
a and side b. The pair's probability is the mean of the two responses' (1 for an affirmative label,
0 for another), and the verdict is affirmative from the threshold up (Shen et al. 2025).
`encode_labels` encodes plain labels, without a `ratings` table.

*Very many ratings* are reduced to the distinct rows of labels, *patterns*, with their counts in
each cluster (`Reduced`). Five raters on five categories have at most 7,776 patterns. Tables of
parts of the ratings can be `merged` in any order, if no unit is in two parts, with the same result.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels import matrix
from evenhand.analysis.labels.scale import Level, Scale, category_values
from evenhand.analysis.types import (
    Array,
    Categories,
    Clusters,
    Codes,
    DataFrame,
    Frequency,
    Labels,
    Mask,
    Sparse,
    code_type,
)
from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.texts import written

if TYPE_CHECKING:
    import pyarrow as pa

_ROUNDING = 1e-12  # by which equal mean probabilities may differ
_NO_LABEL = "no_label"  # reason for a missing label if the ratings give none
MAX_CELLS_OF_LABELS = 100_000_000  # most cells, units times raters, in a table of labels
MAX_CELLS = 500_000_000  # most cells, patterns times columns, in a reduced table


def one_version(
    ratings: DataFrame, rubric: str, accepted: Collection[str] | None
) -> tuple[DataFrame, list[str]]:
    """Return the ratings of the `accepted` versions of one rubric, and notes on the others. Ratings
    without a hash (imported ones) are always returned. Raises InputError if there are several
    versions and none was chosen.
    """
    hashes = ratings["rubric_hash"]
    counts = hashes[hashes != ""].value_counts().sort_index()
    listed = ", ".join(f"{version} ({count} ratings)" for version, count in counts.items())
    if accepted is None:
        if len(counts) > 1:
            raise InputError(
                f"rubric {rubric!r} has ratings of {len(counts)} versions, rubric_hash {listed}; "
                "keep the rows of one of them, or say which versions count"
            )
        return ratings, []
    is_accepted = hashes.isin(["", *accepted])
    notes = [
        f"{rubric}: {written('note.version', count=count, version=version)}"
        for version, count in hashes[~is_accepted].value_counts().sort_index().items()
    ]
    return ratings[is_accepted], notes


def without_excluded(
    ratings: DataFrame, rubric: str, excluded: Mapping[str, str]
) -> tuple[DataFrame, list[str]]:
    """Return one rubric's ratings without raters {name: reason}, and a note that lists these."""
    is_excluded = ratings["rater_id"].isin(list(excluded))
    if not is_excluded.any():
        return ratings, []
    names = sorted(set(ratings.loc[is_excluded, "rater_id"]))
    n_humans = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    reasons = "; ".join(f"{name}: {excluded[name]}" for name in names)
    counts = {"count": len(names), "all": n_humans, "ratings": int(is_excluded.sum())}
    note = written("note.excluded", **counts, reasons=reasons)
    return ratings[~is_excluded], [f"{rubric}: {note}" if rubric else note]


def split_by_method(ratings: DataFrame, rubric: str) -> tuple[DataFrame, list[str]]:
    """Return one rubric's ratings with each grader whose probabilities come from several methods
    split into one per method, such as NAME (logprobs) and NAME (draws), and a note on each split.

    A token probability, a share of draws and a stated number are different measurements, which must
    not be averaged. Rows without a method keep the plain name.
    """
    methods_of = ratings[ratings["prob_method"] != ""].groupby("rater_id")["prob_method"].unique()
    mixed = methods_of[methods_of.map(len) > 1]
    if mixed.empty:
        return ratings, []
    is_split = ratings["rater_id"].isin(list(mixed.index)) & (ratings["prob_method"] != "")
    names = ratings["rater_id"] + " (" + ratings["prob_method"] + ")"
    prefix = f"{rubric}: " if rubric else ""
    notes = [
        prefix + written("note.methods", rater=rater, methods=" and ".join(sorted(methods)))
        for rater, methods in mixed.items()
    ]
    return ratings.assign(rater_id=ratings["rater_id"].where(~is_split, names)), notes


@dataclass(frozen=True)
class Readings:
    """Combined labels, one row per (unit, rater), sorted by rater, then unit."""

    units: tuple[str, ...]
    raters: tuple[str, ...]
    kinds: tuple[str, ...]  # of the raters
    unit: Codes  # position of each row's unit in `units`, (rows,)
    rater: Codes  # position of each row's rater in `raters`, (rows,)
    code: Labels  # category of the label, or -1, (rows,)
    positive: Array  # probability of the affirmative categories, or NaN, (rows,)
    probabilities: Array  # probabilities of all categories, or NaN, (rows, q)
    confidence: Array  # probability of the likeliest category, or NaN, (rows,)
    reason: npt.NDArray[np.object_]  # why there is neither label nor probability, else "", (rows,)
    methods: tuple[str, ...]  # source of each rater's probabilities, "" if unknown
    draws: tuple[int, ...]  # median number per unit and order; 0 if probabilities are not shares


def combine_readings(ratings: DataFrame, scale: Scale, source: str = "ratings") -> Readings:
    """Return the combined labels of one rubric (a validated `ratings` table with its original
    index). A *reading* is a rater and a unit; a *showing* a reading in one order of the responses.

    1. A reading's label is that of its draws and orders (`_combined_labels`).
    2. If there is none and the scale has two categories, it is the verdict at the untuned
       threshold, as a tuned one gives no category (`_with_verdicts`).
    3. If the probabilities of all categories are known, a reading with several rows, or still
       without label, gets the most probable category instead, unless two tie.

    Raises InputError, naming `source` and row, if labels or probabilities lie outside the scale.
    """
    is_repeat = ratings["rater_kind"].ne("model") & ratings["draw"].gt(0)
    if is_repeat.any():  # by humans, for intra-rater agreement only; a grader's draws all stay
        earliest = ratings.groupby(["unit_id", "rater_id"], sort=False)["draw"].transform("min")
        ratings = ratings[~is_repeat | (ratings["draw"] == earliest)]
    unit, unit_names = pd.factorize(ratings["unit_id"], sort=True)
    # Raters are in the order of their ids, and named by their display names.
    id_by_name = {name: scale.ids.get(name, name) for name in ratings["rater_id"].unique()}
    rater, _ = pd.factorize(ratings["rater_id"].map(id_by_name), sort=True)
    rater_names = sorted(id_by_name, key=id_by_name.__getitem__)
    order, _ = pd.factorize(ratings["order"], sort=True)
    readings, reading = np.unique(rater * len(unit_names) + unit, return_inverse=True)
    rater_of_reading, unit_of_reading = np.divmod(readings, len(unit_names))  # undoes the above

    labels = _label_codes(ratings, scale, source)
    reasons = ratings["unscored_reason"].to_numpy(dtype=object)
    combined = _combined_labels(labels, reading, order, scale)
    is_usable = (labels >= 0) | (reasons == "")  # probabilities of a failed answer do not count
    row_positive, row_probabilities = _probabilities(ratings, scale, source)
    row_positive = np.where(is_usable, row_positive, np.nan)
    positive = combined.mean(row_positive[:, None], [scale.affirmative_codes])[:, 0]
    row_probabilities = np.where(is_usable[:, None], row_probabilities, np.nan)
    probabilities = combined.mean(row_probabilities, [[k] for k in range(len(scale.categories))])
    is_complete = ~np.isnan(probabilities.sum(axis=1))
    shares = np.where(is_complete[:, None], probabilities, 0.0)
    is_tied = (shares > shares.max(axis=1, keepdims=True) - _ROUNDING).sum(axis=1) > 1
    threshold = np.array([*map(scale.untuned_threshold_for, rater_names)])[rater_of_reading]
    # Two orders that outweigh each other give no verdict either, though it reaches the threshold.
    is_balanced = combined.orders_differ & is_tied & (np.abs(positive - threshold) < _ROUNDING)
    positive[is_balanced] = np.nan
    # Confidence is the probability of the likeliest category, or else of the likelier verdict.
    confidence = np.where(is_complete, shares.max(axis=1), np.maximum(positive, 1.0 - positive))
    code = _with_verdicts(combined.code, positive, threshold, scale)
    needs_category = (np.bincount(reading, minlength=len(readings)) > 1) | (code < 0)
    code = np.where(is_complete & ~is_tied & needs_category, shares.argmax(axis=1), code)
    is_unscored = (code < 0) & np.isnan(positive)
    kinds = ratings.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"]
    with_method = ratings[ratings["prob_method"] != ""]
    methods = with_method.groupby("rater_id")["prob_method"].first()
    by_draws = with_method[with_method["prob_method"] == "draws"]
    counts = by_draws.groupby(["rater_id", "unit_id", "order"], sort=False).size()
    draws = counts.groupby("rater_id").median().astype(int)
    return Readings(
        units=tuple(unit_names.tolist()),
        raters=tuple(rater_names),
        kinds=tuple(kinds[name] for name in rater_names),
        unit=unit_of_reading,
        rater=rater_of_reading,
        code=code.astype(code_type(len(scale.categories))),
        positive=positive,
        probabilities=probabilities,
        confidence=confidence,
        reason=np.where(is_unscored, _unscored_reasons(reasons, reading, combined), ""),
        methods=tuple(str(methods.get(name, "")) for name in rater_names),
        draws=tuple(int(draws.get(name, 0)) for name in rater_names),
    )


def _with_verdicts(code: Codes, positive: Array, threshold: Array, scale: Scale) -> Codes:
    """Return codes (readings,); on a scale of two categories, one of which is affirmative, missing
    ones are replaced by the verdicts of the probabilities `positive` at each reading's `threshold`.
    """
    if len(scale.categories) != 2 or len(scale.affirmative) != 1:
        return code
    affirmative = scale.affirmative_codes[0]
    verdict = np.where(positive >= threshold, affirmative, 1 - affirmative)
    return np.where((code < 0) & ~np.isnan(positive), verdict, code)


class _CombinedLabels(NamedTuple):
    """Labels combined over draws and orders (see `combine_readings`)."""

    labels: Codes  # (rows,)
    showing: Codes  # of each row, (rows,)
    reading_of_showing: Codes  # (showings,)
    is_labelled: Mask  # (showings,)
    is_tied: Mask  # (showings,)
    code: Codes  # (readings,)
    orders_differ: Mask  # (readings,)

    def mean(self, values: Array, columns: Sequence[Sequence[int]]) -> Array:
        """Return the mean probabilities (readings, k), of both orders with equal weight. `values`
        (rows, k) has a column for the codes in each of `columns`.

        A draw with a label but no probability counts as certain of its label if other draws of its
        showing have probabilities. A reading with a showing of labels alone has NaN.
        """
        n_showings, has_values = len(self.reading_of_showing), ~np.isnan(values).any(axis=1)
        has_some = np.bincount(self.showing[has_values], minlength=n_showings) > 0
        is_certain = ~has_values & (self.labels >= 0) & has_some[self.showing]
        if is_certain.any():
            labels, values = self.labels[is_certain], values.copy()
            values[is_certain] = np.column_stack([np.isin(labels, codes) for codes in columns])
        by_showing = _group_mean(values, self.showing, n_showings)
        means = _group_mean(by_showing, self.reading_of_showing, len(self.code))
        means[self.reading_of_showing[self.is_labelled & ~has_some]] = np.nan
        return means


def _combined_labels(labels: Codes, reading: Codes, order: Codes, scale: Scale) -> _CombinedLabels:
    """Return the combined labels of rows with these codes, readings and orders, (rows,) each."""
    n_readings = int(reading.max(initial=-1)) + 1
    if scale.is_number:  # the median over draws and orders, the lower one of two
        showing, reading_of_showing = reading, np.arange(n_readings)
        has_label = labels >= 0
        by_reading = pd.Series(labels[has_label]).groupby(reading[has_label])
        medians = by_reading.quantile(interpolation="lower")
        label, is_tied = np.full(n_readings, -1), np.zeros(n_readings, dtype=bool)
        label[medians.index] = medians
    else:
        key = reading * (order.max(initial=0) + 1) + order
        _, first_row, showing = np.unique(key, return_index=True, return_inverse=True)
        reading_of_showing = reading[first_row]
        label, is_tied = _majority(labels, showing, len(first_row), len(scale.categories))
    # The orders of a reading agree if the lowest and highest label of its showings are the same.
    labelled = label >= 0
    lowest, highest = np.full(n_readings, np.iinfo(np.intp).max), np.full(n_readings, -1)
    np.minimum.at(lowest, reading_of_showing[labelled], label[labelled])
    np.maximum.at(highest, reading_of_showing[labelled], label[labelled])
    lowest = np.where(highest < 0, -1, lowest)  # no label
    differ = lowest != highest
    code = np.where(differ, -1, lowest)  # orders with different labels give no label
    return _CombinedLabels(labels, showing, reading_of_showing, labelled, is_tied, code, differ)


def _unscored_reasons(
    reasons: npt.NDArray[np.object_], reading: Codes, combined: _CombinedLabels
) -> npt.NDArray[np.object_]:
    """Return the reason for each reading if it has no label, (readings,): orders with different
    labels, a tie of draws, or else the first of its rows' `reasons` (rows,); `reading` is (rows,).
    """
    reasons_by_reading = np.full(len(combined.code), _NO_LABEL, dtype=object)
    with_reason = np.flatnonzero(reasons != "")[::-1]  # the first is written last
    reasons_by_reading[reading[with_reason]] = reasons[with_reason]
    reasons_by_reading[combined.reading_of_showing[combined.is_tied]] = "draw_tie"
    reasons_by_reading[combined.orders_differ] = "order_disagreement"
    return reasons_by_reading


def _label_codes(ratings: DataFrame, scale: Scale, source: str) -> Codes:
    """Return the code of each row's label, -1 for a missing label."""
    codes = {category: code for code, category in enumerate(scale.categories)} | {"": -1}
    mapped = ratings["label"].map(codes)
    if mapped.isna().any():
        row = mapped.index[mapped.isna()][0]  # index 0 is row FIRST_ROW of a file
        label, keys = shortened(ratings.loc[row, "label"]), scale.categories
        keys_in_words = f"{keys[0]} to {keys[-1]}" if scale.is_number else ", ".join(keys)
        raise InputError(
            f"{source}, row {row + FIRST_ROW}: the label {label!r} of rater "
            f"{ratings.loc[row, 'rater_id']!r} is none of the declared categories of "
            f"{scale.name!r} ({keys_in_words}); correct the label or declare it"
        )
    return np.asarray(mapped.to_numpy(), dtype=np.intp)


def _probabilities(ratings: DataFrame, scale: Scale, source: str) -> tuple[Array, Array]:
    """Return each row's probability of an affirmative label, (rows,), and those of all categories,
    (rows, q); NaN if missing. If the first is missing, it is the sum over affirmative categories.
    Numbers have no probabilities of categories: one column of NaN.
    """
    positive = ratings["p_positive"].to_numpy(dtype=float)
    if scale.is_number:
        return positive, np.full((len(ratings), 1), np.nan)
    probabilities = np.full((len(ratings), len(scale.categories)), np.nan)
    texts = ratings["probabilities"].to_numpy(dtype=object)
    code_of = {category: code for code, category in enumerate(scale.categories)}
    for row in np.flatnonzero(texts != ""):
        probabilities[row] = 0.0
        for category, share in json.loads(texts[row]).items():
            is_number = isinstance(share, int | float) and not isinstance(share, bool)
            if category not in code_of or not is_number or not 0 <= share <= 1:
                number = int(ratings.index.to_numpy()[row]) + FIRST_ROW
                raise InputError(
                    f"{source}, row {number}: probabilities holds "
                    f"{category!r}: {share!r}; it must give each of "
                    f"{', '.join(scale.categories)} a number between 0 and 1"
                )
            probabilities[row, code_of[category]] = share
    if scale.affirmative:
        affirmative_share = probabilities[:, list(scale.affirmative_codes)].sum(axis=1)
        positive = np.where(np.isnan(positive), np.clip(affirmative_share, 0.0, 1.0), positive)
    return positive, probabilities


def _majority(labels: Codes, group: Codes, n_groups: int, q: int) -> tuple[Codes, Mask]:
    """Return the most frequent label of each group, -1 if tied or missing, and the mask of ties."""
    labelled = labels >= 0
    counts = np.bincount(group[labelled] * q + labels[labelled], minlength=n_groups * q)
    counts = counts.reshape(n_groups, q)
    largest = counts.max(axis=1, initial=0)
    is_tied = ((counts == largest[:, None]).sum(axis=1) > 1) & (largest > 0)
    return np.where((largest > 0) & ~is_tied, counts.argmax(axis=1), -1), is_tied


def _group_mean(values: Array, group: Codes, n_groups: int) -> Array:
    """Return the mean of values (rows, k) by group, (groups, k), leaving out NaN."""
    means = np.empty((n_groups, values.shape[1]))
    for column, column_values in enumerate(values.T):
        defined = ~np.isnan(column_values)
        count = np.bincount(group[defined], minlength=n_groups).astype(float)
        total = np.bincount(group[defined], weights=column_values[defined], minlength=n_groups)
        means[:, column] = np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0)
    return means


def encode(
    readings: Readings,
    scale: Scale,
    units: DataFrame | None = None,
    cluster: str = "pair",
    slices: Sequence[str] = (),
) -> matrix.LabelMatrix:
    """Return readings as arrays, with each unit's cluster.

    `units` is the `units` table; `cluster` is "pair" (its `cluster_id`) or the name of one of its
    columns, `slices` are names of its columns. Without `units` every unit is its own cluster.
    Raises InputError if a rated unit is not in `units`, a column is missing, or a cluster is empty.
    """
    order = np.argsort([matrix.KIND_ORDER[kind] for kind in readings.kinds], kind="stable").tolist()
    column = np.argsort(order)[readings.rater]  # of each reading's rater in the matrix
    shape = (len(readings.units), len(order))
    if shape[0] * shape[1] > MAX_CELLS_OF_LABELS:
        counts = {"units": shape[0], "raters": shape[1], "most": MAX_CELLS_OF_LABELS}
        raise InputError(written("too_large.places", **counts))
    cells = (readings.unit, column)
    codes = np.full(shape, -1, dtype=readings.code.dtype)
    assigned = np.zeros(shape, dtype=bool)
    codes[cells], assigned[cells] = readings.code, True
    facts = matrix.UnitFacts(readings.units, units)
    clusters = facts.clusters(cluster)
    weight, times_in_rest = facts.weights(clusters), facts.numbers(matrix.TIMES_IN_REST)
    subject, pair, side = (facts.column(name) for name in ("subject", "cluster_id", "side"))
    raters = tuple(readings.raters[rater] for rater in order)
    kinds = tuple(readings.kinds[rater] for rater in order)
    return matrix.LabelMatrix(
        scale=scale,
        raters=raters,
        kinds=kinds,
        codes=codes,
        positive=_as_table(readings.positive, cells, shape),
        confidence=_as_table(readings.confidence, cells, shape),
        thresholds=np.broadcast_to([scale.threshold_for(rater) for rater in raters], shape),
        assigned=assigned,
        reasons=_reason_counts(readings, column, len(order)),
        clusters=clusters.codes,
        n_clusters=len(clusters.values),
        subjects=subject.values,
        subject=subject.codes,
        pairs=pair.values,
        pair=pair.codes,
        side=side.codes,
        slices=facts.slices(slices),
        methods=tuple(readings.methods[rater] for rater in order),
        draws=tuple(readings.draws[rater] for rater in order),
        copies=matrix.copies_among(codes, kinds),
        weight=weight,
        times_in_rest=np.nan_to_num(times_in_rest) * (weight is not None),
        withheld=_withheld_mask(readings, order, scale),
    )


def _reason_counts(readings: Readings, column: Codes, n_raters: int) -> tuple[Counter[str], ...]:
    """Return the counts of each rater's reasons; `column` is the rater's column of each reading."""
    has_reason = readings.reason != ""
    reasons, rater_of_reason = readings.reason[has_reason], column[has_reason]
    return tuple(Counter(reasons[rater_of_reason == rater]) for rater in range(n_raters))


def _as_table(values: Array, cells: tuple[Codes, Codes], shape: tuple[int, int]) -> Array:
    """Return a table (units, raters) with values (cells,) at these cells, NaN elsewhere."""
    if np.isnan(values).all():
        return np.broadcast_to(np.nan, shape)  # needs no memory
    table = np.full(shape, np.nan)
    table[cells] = values
    return table


def _withheld_mask(readings: Readings, order: Sequence[int], scale: Scale) -> Mask | None:
    """Return the mask (units, raters in this order) of labels withheld from graders; None without
    any. Units withheld from a grader are withheld from its parts by method (`split_by_method`).
    """
    withheld = []
    for rater in order:
        name = readings.raters[rater]
        base_name = name.removesuffix(f" ({readings.methods[rater]})")  # before the split
        withheld.append(scale.withheld.get(name) or scale.withheld.get(base_name, frozenset()))
    if not any(withheld):
        return None
    return np.array([[unit in units for units in withheld] for unit in readings.units], dtype=bool)


def pair_verdicts(labels: matrix.LabelMatrix) -> matrix.LabelMatrix:
    """Return the labels with one row per pair and subject, `positive` by the rule for pairs (see
    the module). A rater has a verdict on a pair if they have one on both responses; pairs with one
    response are left out. All codes are missing, as a pair has a verdict but no category.
    """
    verdicts = labels.verdicts
    probability = np.where(np.isnan(labels.positive), verdicts.astype(float), labels.positive)
    probability[verdicts < 0] = np.nan
    a, b = units_of_both_sides(labels)
    return replace(
        labels.of_units(a),
        codes=np.full((len(a), len(labels.raters)), -1, dtype=np.int8),
        positive=(probability[a] + probability[b]) / 2.0,
        confidence=np.full((len(a), len(labels.raters)), np.nan),
        assigned=labels.assigned[a] | labels.assigned[b],
        withheld=None if labels.withheld is None else labels.withheld[a] | labels.withheld[b],
        side=np.full(len(a), -1, dtype=np.intp),
    )


def units_of_both_sides(labels: matrix.LabelMatrix) -> tuple[Codes, Codes]:
    """Return the row numbers of side a and of side b, for every pair and subject with both."""
    # One number for each pair and subject, where -1 (no subject) counts as a subject.
    key = labels.pair * (len(labels.subjects) + 1) + labels.subject + 1
    has_side = (labels.side >= 0) & (labels.pair >= 0)
    side_a, side_b = (np.flatnonzero(has_side & (labels.side == side)) for side in (0, 1))
    _, matched_a, matched_b = np.intersect1d(key[side_a], key[side_b], return_indices=True)
    return side_a[matched_a], side_b[matched_b]


def encode_labels(labels: Any, categories: Categories) -> Labels:
    """Return labels (units, raters) as codes (units, raters), -1 where missing.

    `labels` is anything that numpy converts to a table: nested lists, an array, a DataFrame. One
    sequence, or one string of one-letter labels, is one rater. None, NaN and "" (unless it is a
    category) are missing. Raises InputError for any other label, or rows of different lengths.

    >>> encode_labels([["yes", "no"], ["no", None]], ["yes", "no"]).tolist()
    [[0, 1], [1, -1]]
    """
    if len(categories) < 1 or len(set(categories)) < len(categories):
        raise InputError(f"the categories must all be different, not {_category_list(categories)}")
    table = _label_table(labels)
    is_coded = table.dtype.kind in "iu" and list(categories) == list(range(len(categories)))
    if is_coded and table.min() >= 0 and table.max() < len(categories):
        return table.astype(np.int8)  # already codes: a look-up of a million labels is slow
    table = table.astype(object)
    cells, distinct = pd.factorize(table.ravel())
    position: dict[Hashable, int] = {"": -1} | {label: k for k, label in enumerate(categories)}
    # -2 for an unknown label. The last is for None and NaN, which factorize codes as -1.
    lookup = np.array([position.get(label, -2) for label in distinct] + [-1], dtype=np.int64)
    codes = lookup[cells].reshape(table.shape)
    if (codes == -2).any():
        row, column = np.argwhere(codes == -2)[0]
        raise InputError(
            f"labels, row {row}, column {column} (from 0): {table[row, column]!r} is none of the "
            f"categories {_category_list(categories)}; declare it or correct the label"
        )
    return codes.astype(np.int8)


def coded_raters(
    humans: Labels, graders: Labels, categories: Categories, level: Level
) -> matrix.Coded:
    """Return codes (units, raters) of humans and graders as a view, each unit a cluster."""
    codes = np.hstack([humans, graders])
    return matrix.Coded(
        raters=tuple(str(column) for column in range(codes.shape[1])),
        kinds=("human",) * humans.shape[1] + ("model",) * graders.shape[1],
        codes=codes,
        clusters=np.arange(len(codes)),
        categories=tuple(str(category) for category in categories),
        values=category_values(categories, level),
        level=level,
        subset="all",
    )


def _category_list(categories: Categories) -> str:
    """Return the categories for an error message."""
    return ", ".join(map(str, categories)) or "none"


def _label_table(labels: Any) -> npt.NDArray[Any]:
    """Return labels (units, raters) as an array of objects, or of whole numbers if they are one."""
    table = list(labels) if isinstance(labels, str) else labels
    is_integer = isinstance(table, np.ndarray) and table.dtype.kind in "iu"
    try:
        table = np.asarray(table, dtype=None if is_integer else object)
    except ValueError:  # rows of different lengths
        table = np.empty(0, dtype=object)
    is_nested = not is_integer and any(isinstance(row, (list, tuple)) for row in table)
    if table.ndim == 1 and not is_nested:
        table = table[:, None]
    if table.ndim != 2 or table.size == 0:
        raise InputError(
            "labels must be a table with one row per unit and one column per rater, "
            "with None for a missing label"
        )
    return table


def encode_column(labels: Any, categories: Categories) -> Labels:
    """Return one rater's labels as codes (units,)."""
    codes = encode_labels(labels, categories)
    if codes.shape[1] != 1:
        raise InputError(f"one rater must have one label per unit, not {codes.shape[1]}")
    return codes[:, 0]


def check_same_length(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
    """Raise InputError if two columns have different lengths."""
    if len(first) != len(second):
        raise InputError(
            f"the two sides have {len(first)} and {len(second)} items; give the same items, with "
            "None where there is no label"
        )


def cluster_codes(clusters: Clusters, n: int) -> Codes:
    """Return the cluster code of each of n units, (n,); without `clusters`, each is its own."""
    if clusters is None:
        return np.arange(n)
    codes, _ = pd.factorize(np.asarray(clusters, dtype=object))
    if len(codes) != n or (codes < 0).any():
        raise InputError(f"clusters must name a cluster for each of the {n} items")
    return np.asarray(codes, dtype=np.intp)


def by_kind(kinds: Mapping[str, str]) -> dict[str, str]:
    """Return raters, {name: kind}, in the order humans, adjudicators, models, then by name.

    >>> list(by_kind({"gpt": "model", "ben": "human", "ann": "human"}))
    ['ann', 'ben', 'gpt']
    """
    return dict(sorted(kinds.items(), key=lambda rater: (matrix.KIND_ORDER[rater[1]], rater[0])))


@dataclass(frozen=True)
class Reduced:
    """Ratings of one rubric as patterns, and their counts in each cluster.

    The columns of `patterns` are three blocks, each with a column for each rater: the code of the
    label, -1 for none; 1 if the unit was assigned to the rater, else 0; and the verdict from the
    probability, -1 for none. If units are clusters, `clusters` may be None, and `cells` one row.
    """

    raters: Mapping[str, str]  # {name: kind} in the order of `by_kind`
    patterns: Labels  # (patterns, 3 x raters)
    clusters: pa.Array | None  # names of the clusters, sorted
    cells: Sparse  # numbers of units of each cluster with each pattern, (clusters, patterns)
    reasons: tuple[Counter[str], ...]  # counts of the reasons for missing labels, (raters,)

    @property
    def n_units(self) -> int:
        """Number of units with a rating."""
        return int(self.cells.sum())

    @property
    def times(self) -> Frequency:
        """Number of units of each pattern."""
        return np.asarray(self.cells.sum(axis=0), dtype=np.int64)

    @property
    def is_unclustered(self) -> bool:
        """True if every unit is its own cluster."""
        return self.clusters is None or self.n_units == len(self.clusters)


def reduce_ratings(
    ratings: DataFrame,
    clusters: pd.Series | None,
    scale: Scale,
    raters: Mapping[str, str],
    source: str = "ratings",
) -> Reduced:
    """Return ratings of one rubric (a validated `ratings` table with all rows of each unit) as
    patterns. `clusters` maps units to clusters; `raters` are those of all parts of the ratings.
    Raises InputError as `combine_readings` does.
    """
    import pyarrow as pa
    from scipy.sparse import csr_array, eye_array

    if scale.is_number:
        raise InputError(
            "labels that are numbers hardly repeat, which an engine needs; leave --engine out"
        )
    readings = combine_readings(ratings, scale, source)
    position = {name: column for column, name in enumerate(raters)}
    column = np.array([position[name] for name in readings.raters], dtype=np.intp)[readings.rater]
    shape = (len(readings.units), len(raters))
    codes, assigned, verdicts = (np.full(shape, empty, dtype=np.int8) for empty in (-1, 0, -1))
    threshold = np.array([scale.threshold_for(name) for name in raters])[column]
    codes[readings.unit, column] = readings.code
    assigned[readings.unit, column] = 1
    verdict = np.where(np.isnan(readings.positive), -1, readings.positive >= threshold)
    verdicts[readings.unit, column] = verdict
    # A pattern and a cell for each unit: `merged` adds up those of equal patterns and clusters.
    n = len(readings.units)
    names, cells = None, csr_array(np.ones((1, n), dtype=np.int64))  # without clusters, one row
    if clusters is not None:
        names = pa.array(clusters.loc[list(readings.units)].astype(str).tolist(), pa.large_string())
        cells = eye_array(n, dtype=np.int64, format="csr")
    reasons = _reason_counts(readings, column, len(raters))
    return merged([Reduced(raters, np.hstack([codes, assigned, verdicts]), names, cells, reasons)])


def merged(parts: Sequence[Reduced]) -> Reduced:
    """Return the table of several parts; no unit may be in two. Patterns are ordered by bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from scipy.sparse import block_diag, csr_array

    rows = np.concatenate([part.patterns for part in parts])
    n_raters = len(parts[0].raters)
    if rows.size > MAX_CELLS:
        raise InputError(
            f"{len(rows):,} different rows of labels by {n_raters:,} raters do not fit; "
            "keep the ratings of fewer raters, or pool those who labelled little under one rater_id"
        )
    first, pattern_of_row = matrix.distinct_bytes(rows)
    patterns = rows[first]
    cells = block_diag([part.cells for part in parts], format="coo")
    # Without clusters, each part has one row of cells, and all are added up.
    names, cluster_of_row = None, np.zeros(len(parts), dtype=np.intp)
    if parts[0].clusters is not None:
        all_names = pa.chunked_array([part.clusters for part in parts])
        names = pc.unique(all_names).sort()
        cluster_of_row = pc.index_in(all_names, names).to_numpy()
    shape = (1 if names is None else len(names), len(patterns))
    positions = cluster_of_row[cells.row], pattern_of_row[cells.col]
    cells = csr_array((cells.data, positions), shape=shape)  # adds up equal positions
    by_rater = zip(*(part.reasons for part in parts), strict=True)
    reasons = tuple(sum(counts, Counter[str]()) for counts in by_rater)
    return Reduced(parts[0].raters, patterns, names, cells, reasons)


def name_keys(names: pa.Array) -> npt.NDArray[np.uint64]:
    """Return the hashes (clusters,) by which `resamples_of_patterns` groups clusters. They
    depend on names alone: a cluster has the same resamples in every process and part of the data.
    """
    return pd.util.hash_array(names.to_numpy(zero_copy_only=False)).astype(np.uint64)


@dataclass(frozen=True, kw_only=True)
class PatternMatrix(matrix.LabelMatrix):
    """Labels as patterns, each a row and a cluster of its own. `by_probability` (patterns, raters)
    are the verdicts from probabilities, -1 for none; the probabilities themselves are not stored.
    """

    by_probability: Labels

    @property
    def verdicts(self) -> Labels:
        """Binary verdicts (patterns, raters): 1 affirmative, 0 not, -1 missing."""
        verdicts = np.where(self.by_probability < 0, super().verdicts, self.by_probability)
        return verdicts.astype(np.int8)

    @property
    def scored(self) -> Mask:
        """Mask (patterns, raters) of usable labels or probabilities."""
        return (self.codes >= 0) | (self.by_probability >= 0)


def pattern_matrix(reduced: Reduced, scale: Scale) -> PatternMatrix:
    """Return the patterns of one rubric as a matrix of labels."""
    n, shape = len(reduced.patterns), (len(reduced.patterns), len(reduced.raters))
    names, kinds = tuple(reduced.raters), tuple(reduced.raters.values())
    codes, assigned, by_probability = np.split(reduced.patterns, 3, axis=1)
    no_probabilities: Array = np.broadcast_to(np.nan, shape)
    no_codes = np.full(n, -1, dtype=np.intp)
    return PatternMatrix(
        scale=scale,
        raters=names,
        kinds=kinds,
        codes=np.ascontiguousarray(codes),
        positive=no_probabilities,
        confidence=no_probabilities,
        thresholds=np.broadcast_to([scale.threshold_for(name) for name in names], shape),
        assigned=assigned > 0,
        reasons=reduced.reasons,
        clusters=np.arange(n),
        n_clusters=n,
        times_in_rest=np.zeros(n),
        subjects=(),
        subject=no_codes,
        pairs=(),
        pair=no_codes,
        side=no_codes,
        methods=("",) * len(names),
        draws=(0,) * len(names),
        copies=matrix.copies_among(codes, kinds, reduced.times),
        by_probability=np.ascontiguousarray(by_probability),
    )
