"""One label and one probability per rater and unit, from repeated draws and both orders.

Draws combine within an order, then the orders combine: probabilities by their mean, hard labels by
majority, and hard labels that differ between the two orders leave the unit unscored
(`order_disagreement`). A tied majority gives no label (`draw_tie`).

The ratings come from one version of a rubric, without the raters that are excluded. Ratings given
under different wordings of a rubric are different measurements: never pooled.

Pair rule of a study: a rubric on responses gives each pair and subject two units, side a and side
b. The pair's probability is the mean of the two responses' (a hard label counts 1 where
affirmative, else 0) and the verdict is affirmative from the threshold up (Shen et al. 2025).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.types import Array, Codes, DataFrame, Labels, Mask, code_type
from evenhand.errors import InputError
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.texts import written

_NO_LABEL = "no_label"


@dataclass(frozen=True)
class Readings:
    """Combined labels, one row per (unit, rater), sorted by rater, then unit.

    `unit` and `rater` index `units` and `raters`; `code` is the label's category or -1, `positive`
    the probability of the affirmative categories or NaN, `probabilities` (rows, q) those of all
    categories or NaN, `confidence` that of the likeliest category or NaN, `reason` the reason for
    having neither label nor probability, else "". `methods` is how each rater's probabilities were
    obtained, "" where unknown; `draws` is each rater's usual number of draws per unit and order, 0
    where probabilities are not shares of draws.
    """

    units: tuple[str, ...]
    raters: tuple[str, ...]
    kinds: tuple[str, ...]
    unit: Codes
    rater: Codes
    code: Labels
    positive: Array
    probabilities: Array
    confidence: Array
    reason: npt.NDArray[np.object_]
    methods: tuple[str, ...]
    draws: tuple[int, ...]


def methods_apart(ratings: DataFrame, rubric: str) -> tuple[DataFrame, list[str]]:
    """Split each grader whose probabilities were obtained in several ways into one per way.

    The parts are named NAME (logprobs) and NAME (draws), for instance; returns one rubric's ratings
    and a note on each split.

    A token probability, a share of draws and a stated number are three measurements; their mean is
    not a measurement of anything. Rows without a method keep the plain name.
    """
    known = ratings[ratings["prob_method"] != ""]
    ways = known.groupby("rater_id")["prob_method"].unique()
    mixed = ways[ways.map(len) > 1]
    if mixed.empty:
        return ratings, []
    parted = ratings["rater_id"].isin(list(mixed.index)) & (ratings["prob_method"] != "")
    names = ratings["rater_id"] + " (" + ratings["prob_method"] + ")"
    place = f"{rubric}: " if rubric else ""
    notes = [
        place + written("note.methods", rater=rater, methods=" and ".join(sorted(methods)))
        for rater, methods in mixed.items()
    ]
    return ratings.assign(rater_id=ratings["rater_id"].where(~parted, names)), notes


def _methods_and_draws(ratings: DataFrame) -> dict[str, tuple[str, int]]:
    """Return each rater's source of probabilities, and the usual number of draws behind one."""
    known = ratings[ratings["prob_method"] != ""]
    methods = known.groupby("rater_id")["prob_method"].first().to_dict()
    drawn = known[known["prob_method"] == "draws"]
    counts = drawn.groupby(["rater_id", "unit_id", "order"], sort=False).size()
    usual = counts.groupby("rater_id").median().astype(int).to_dict()
    return {str(rater): (str(way), int(usual.get(rater, 0))) for rater, way in methods.items()}


def combine_readings(ratings: DataFrame, scale: Scale, source: str = "ratings") -> Readings:
    """Combine the rows of one rubric (a validated `ratings` table with its original index).

    Raises InputError naming the row whose label or probabilities lie outside the scale.
    """
    import pandas as pd

    # A human's hidden repeats are for intra-rater agreement: the first reading is the label. A
    # grader's draws are draws from one distribution, and are combined.
    hidden = ratings["rater_kind"].ne("model") & ratings["draw"].gt(0)
    if hidden.any():
        earliest = ratings.groupby(["unit_id", "rater_id"], sort=False)["draw"].transform("min")
        ratings = ratings[~hidden | (ratings["draw"] == earliest)]
    units, unit_names = pd.factorize(ratings["unit_id"], sort=True)
    raters, rater_names = pd.factorize(ratings["rater_id"], sort=True)
    orders, _ = pd.factorize(ratings["order"], sort=True)
    labels = _label_codes(ratings, scale, source)
    probabilities = _probabilities(ratings, scale, source)
    reasons = ratings["unscored_reason"].to_numpy(dtype=object)
    usable = (labels >= 0) | (reasons == "")
    positive = ratings["p_positive"].to_numpy(dtype=float, copy=True)
    if scale.affirmative:
        summed = probabilities[:, list(scale.affirmative_codes)].sum(axis=1)
        positive = np.where(np.isnan(positive), np.clip(summed, 0.0, 1.0), positive)
    positive[~usable] = np.nan
    probabilities[~usable] = np.nan

    cells, cell = np.unique(raters * len(unit_names) + units, return_inverse=True)
    if scale.is_number:  # of several draws or orders the median, the lower one of two
        reading, cell_of_reading = cell, np.arange(len(cells))
        label, tied = _median(labels, cell, len(cells)), np.zeros(len(cells), dtype=bool)
    else:
        key = cell * (orders.max(initial=0) + 1) + orders
        _, first_row, reading = np.unique(key, return_index=True, return_inverse=True)
        cell_of_reading = cell[first_row]
        label, tied = _majority(labels, reading, len(first_row), len(scale.categories))
    low, high = _range_of_labels(label, cell_of_reading, len(cells))
    code = np.where(low == high, low, -1)
    mean_positive = _nested_mean(positive[:, None], reading, cell_of_reading, len(cells))[:, 0]
    mean_each = _nested_mean(probabilities, reading, cell_of_reading, len(cells))
    repeated = np.bincount(cell, minlength=len(cells)) > 1
    usual = np.array([scale.untuned_threshold_for(rater) for rater in rater_names])
    threshold = usual[cells // len(unit_names)]
    # The probability of the likeliest category, or else of the likelier verdict.
    known = ~np.isnan(mean_each.sum(axis=1))
    each = np.where(known[:, None], mean_each, 0.0)
    confidence = np.where(known, each.max(axis=1), np.maximum(mean_positive, 1.0 - mean_positive))
    if len(scale.categories) == 2 and len(scale.affirmative) == 1:
        # Without a label, the category on the probability's side of a threshold that is not tuned.
        affirmative = scale.affirmative_codes[0]
        verdict = np.where(mean_positive >= threshold, affirmative, 1 - affirmative)
        code = np.where((code < 0) & ~np.isnan(mean_positive), verdict, code)
    # Where rows were averaged, or there is no label, the most probable category.
    code = np.where(known & (repeated | (code < 0)), each.argmax(axis=1), code)

    unscored = (code < 0) & np.isnan(mean_positive)
    reason = np.full(len(cells), "", dtype=object)
    first_reason = np.full(len(cells), _NO_LABEL, dtype=object)
    given = np.flatnonzero(reasons != "")[::-1]
    first_reason[cell[given]] = reasons[given]
    reason[unscored] = first_reason[unscored]
    has_tie = np.bincount(cell_of_reading[tied], minlength=len(cells)) > 0
    reason[unscored & has_tie] = "draw_tie"
    reason[unscored & (low != high)] = "order_disagreement"
    kinds = ratings.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"]
    measured = _methods_and_draws(ratings)
    return Readings(
        units=tuple(unit_names.tolist()),
        raters=tuple(rater_names.tolist()),
        kinds=tuple(kinds[rater] for rater in rater_names),
        unit=cells % len(unit_names),
        rater=cells // len(unit_names),
        code=code.astype(code_type(len(scale.categories))),
        positive=mean_positive,
        probabilities=mean_each,
        confidence=confidence,
        reason=reason,
        methods=tuple(measured.get(rater, ("", 0))[0] for rater in rater_names),
        draws=tuple(measured.get(rater, ("", 0))[1] for rater in rater_names),
    )


def _label_codes(ratings: DataFrame, scale: Scale, source: str) -> Codes:
    codes = {category: code for code, category in enumerate(scale.categories)} | {"": -1}
    known = ratings["label"].map(codes)
    if known.isna().any():
        at = known.index[known.isna()][0]
        label, keys = shortened(ratings.loc[at, "label"]), scale.categories
        listed = f"{keys[0]} to {keys[-1]}" if scale.is_number else ", ".join(keys)
        raise InputError(
            f"{source}, row {at + FIRST_ROW}: the label {label!r} of rater "
            f"{ratings.loc[at, 'rater_id']!r} is none of the declared categories of "
            f"{scale.name!r} ({listed}); correct the label or declare it"
        )
    return np.asarray(known.to_numpy(), dtype=np.intp)


def _probabilities(ratings: DataFrame, scale: Scale, source: str) -> Array:
    """Return the rows' distributions (rows, q); NaN rows where there is none. Of numbers there is
    none, (rows, 1).
    """
    if scale.is_number:
        return np.full((len(ratings), 1), np.nan)
    out = np.full((len(ratings), len(scale.categories)), np.nan)
    texts = ratings["probabilities"].to_numpy(dtype=object)
    position = {category: code for code, category in enumerate(scale.categories)}
    for row in np.flatnonzero(texts != ""):
        shares = json.loads(texts[row])
        out[row] = 0.0
        for category, share in shares.items():
            is_number = isinstance(share, int | float) and not isinstance(share, bool)
            if category not in position or not is_number or not 0 <= share <= 1:
                number = int(ratings.index.to_numpy()[row]) + FIRST_ROW
                raise InputError(
                    f"{source}, row {number}: probabilities holds "
                    f"{category!r}: {share!r}; it must give each of "
                    f"{', '.join(scale.categories)} a number between 0 and 1"
                )
            out[row, position[category]] = share
    return out


def _majority(labels: Codes, group: Codes, n_groups: int, q: int) -> tuple[Codes, Mask]:
    """Return the most frequent label of each group, -1 for none or a tie; and the ties."""
    labelled = labels >= 0
    counts = np.bincount(group[labelled] * q + labels[labelled], minlength=n_groups * q)
    counts = counts.reshape(n_groups, q)
    most = counts.max(axis=1, initial=0)
    tied = ((counts == most[:, None]).sum(axis=1) > 1) & (most > 0)
    return np.where((most > 0) & ~tied, counts.argmax(axis=1), -1), tied


def _median(labels: Codes, group: Codes, n_groups: int) -> Codes:
    """Return the median label of each group, the lower one of two; -1 for none."""
    labelled = np.flatnonzero(labels >= 0)
    labelled = labelled[np.lexsort((labels[labelled], group[labelled]))]
    count = np.bincount(group[labelled], minlength=n_groups)
    first = np.concatenate([[0], count.cumsum()[:-1]])
    out = np.full(n_groups, -1, dtype=np.intp)
    some = count > 0
    out[some] = labels[labelled[(first + (count - 1) // 2)[some]]]
    return out


def _range_of_labels(label: Codes, cell: Codes, n_cells: int) -> tuple[Codes, Codes]:
    """Return the lowest and highest label of each cell's orders; both -1 where none has one."""
    labelled = label >= 0
    low = np.full(n_cells, np.iinfo(np.intp).max)
    high = np.full(n_cells, -1)
    np.minimum.at(low, cell[labelled], label[labelled])
    np.maximum.at(high, cell[labelled], label[labelled])
    return np.where(high < 0, -1, low), high


def _nested_mean(values: Array, reading: Codes, cell: Codes, n_cells: int) -> Array:
    """Mean over draws within an order, then over the orders, so that both orders weigh the same."""
    return _group_mean(_group_mean(values, reading, len(cell)), cell, n_cells)


def _group_mean(values: Array, group: Codes, n_groups: int) -> Array:
    out = np.empty((n_groups, values.shape[1]))
    for column, each in enumerate(values.T):
        held = ~np.isnan(each)
        if not held.any():
            out[:, column] = np.nan
            continue
        count = np.bincount(group[held], minlength=n_groups).astype(float)
        total = np.bincount(group[held], weights=each[held], minlength=n_groups)
        out[:, column] = np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0)
    return out


ALL_RATERS = "raters=all"
"""Subset whose rows include the excluded raters."""


def one_version(
    ratings: DataFrame, rubric: str, accepted: Collection[str] | None
) -> tuple[DataFrame, list[str]]:
    """Return the ratings of one rubric that count, and notes on those set aside.

    Ratings without a hash (imported ones) always count. Raises InputError where several versions
    are present and none was chosen.
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
    counted = hashes.isin(["", *accepted])
    others = hashes[~counted].value_counts().sort_index()
    notes = [
        f"{rubric}: {written('note.version', count=count, version=version)}"
        for version, count in others.items()
    ]
    return ratings[counted], notes


def without_excluded(
    ratings: DataFrame, rubric: str, excluded: Mapping[str, str]
) -> tuple[DataFrame, list[str]]:
    """Drop excluded raters from one rubric's ratings; the note gives their names and reasons.

    `excluded` gives each rater's reason.
    """
    left_out = ratings["rater_id"].isin(list(excluded))
    if not left_out.any():
        return ratings, []
    names = sorted(set(ratings.loc[left_out, "rater_id"]))
    of = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    who = "; ".join(f"{name}: {excluded[name]}" for name in names)
    note = written(
        "note.excluded",
        count=len(names),
        all=of,
        ratings=int(left_out.sum()),
        reasons=who,
        subset=repr(ALL_RATERS),
    )
    return ratings[~left_out], [f"{rubric}: {note}" if rubric else note]


def pair_verdicts(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with one row per pair and subject, `positive` by the pair rule.

    A rater has a verdict on a pair only where they have one on both responses. Pairs with one
    response are left out. Codes are all missing: a pair has a verdict but no category.
    """
    verdicts = labels.verdicts
    single = np.where(np.isnan(labels.positive), verdicts.astype(float), labels.positive)
    single[verdicts < 0] = np.nan
    a, b = units_of_both_sides(labels)
    return replace(
        labels,
        codes=np.full((len(a), len(labels.raters)), -1, dtype=np.int8),
        positive=(single[a] + single[b]) / 2.0,
        confidence=np.full((len(a), len(labels.raters)), np.nan),
        thresholds=labels.thresholds[a],
        asked=labels.asked[a] | labels.asked[b],
        withheld=None if labels.withheld is None else labels.withheld[a] | labels.withheld[b],
        clusters=labels.clusters[a],
        subject=labels.subject[a],
        pair=labels.pair[a],
        side=np.full(len(a), -1, dtype=np.intp),
        slices=tuple(replace(column, codes=column.codes[a]) for column in labels.slices),
    )


def units_of_both_sides(
    labels: LabelMatrix,
) -> tuple[Codes, Codes]:
    """Return the rows of side a and of side b, for every pair and subject that has both."""
    key = labels.pair * (len(labels.subjects) + 1) + labels.subject + 1
    sided = (labels.side >= 0) & (labels.pair >= 0)
    first, second = (np.flatnonzero(sided & (labels.side == side)) for side in (0, 1))
    _, at_first, at_second = np.intersect1d(key[first], key[second], return_indices=True)
    return first[at_first], second[at_second]
