"""Labels as arrays, from the rows of ratings or from plain labels.

Readings are one label and one probability per rater and unit, from repeated draws and both orders;
a `LabelMatrix` is readings laid out as arrays.

Draws combine within an order, then the orders combine: probabilities by their mean, hard labels by
majority, and hard labels that differ between the two orders leave the unit unscored
(`order_disagreement`). A tied majority gives no label (`draw_tie`).

The ratings come from one version of a rubric, without the raters that are excluded. Ratings given
under different wordings of a rubric are different measurements: never pooled.

Pair rule of a study: a rubric on responses gives each pair and subject two units, side a and side
b. The pair's probability is the mean of the two responses' (a hard label counts 1 where
affirmative, else 0) and the verdict is affirmative from the threshold up (Shen et al. 2025).

*Reduced* ratings are distinct rows of labels, with their counts in each cluster. A million units of
five raters on five categories are at most 7,776 patterns, however many units there are. Tables of
parts of the ratings add up to that of all, whatever the parts and the order of their rows, as long
as no unit's ratings are split: the form is canonical, and holds whole numbers only.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.labels.matrix import (
    KIND_ORDER,
    Coded,
    LabelMatrix,
    UnitFacts,
    copies_among,
    distinct_bytes,
)
from evenhand.analysis.labels.scale import Level, Scale, category_values
from evenhand.analysis.types import (
    Array,
    Codes,
    Column,
    DataFrame,
    Frequency,
    Labels,
    Mask,
    Sparse,
    code_type,
)
from evenhand.errors import InputError
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

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
    with_method = ratings[ratings["prob_method"] != ""]
    ways = with_method.groupby("rater_id")["prob_method"].unique()
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
    by_id = {name: scale.ids.get(name, name) for name in ratings["rater_id"].unique()}
    raters, _ = pd.factorize(ratings["rater_id"].map(by_id), sort=True)
    rater_names = sorted(by_id, key=by_id.__getitem__)
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
        reading, cell_of_reading, given = cell, np.arange(len(cells)), labels >= 0
        medians = pd.Series(labels[given]).groupby(cell[given]).quantile(interpolation="lower")
        label, tied = np.full(len(cells), -1), np.zeros(len(cells), dtype=bool)
        label[medians.index] = medians
    else:
        key = cell * (orders.max(initial=0) + 1) + orders
        _, first_row, reading = np.unique(key, return_index=True, return_inverse=True)
        cell_of_reading = cell[first_row]
        label, tied = _majority(labels, reading, len(first_row), len(scale.categories))
    # Orders that differ leave no label.
    labelled = label >= 0
    low, high = np.full(len(cells), np.iinfo(np.intp).max), np.full(len(cells), -1)
    np.minimum.at(low, cell_of_reading[labelled], label[labelled])
    np.maximum.at(high, cell_of_reading[labelled], label[labelled])
    low = np.where(high < 0, -1, low)
    code = np.where(low == high, low, -1)
    # The mean over draws within an order, then over the orders, so that both weigh the same.
    mean_positive, mean_each = (
        _group_mean(_group_mean(values, reading, len(cell_of_reading)), cell_of_reading, len(cells))
        for values in (positive[:, None], probabilities)
    )
    mean_positive = mean_positive[:, 0]
    repeated = np.bincount(cell, minlength=len(cells)) > 1
    usual = np.array([scale.untuned_threshold_for(rater) for rater in rater_names])
    threshold = usual[cells // len(unit_names)]
    # The probability of the likeliest category, or else of the likelier verdict.
    full = ~np.isnan(mean_each.sum(axis=1))
    shares = np.where(full[:, None], mean_each, 0.0)
    confidence = np.where(full, shares.max(axis=1), np.maximum(mean_positive, 1.0 - mean_positive))
    if len(scale.categories) == 2 and len(scale.affirmative) == 1:
        # Without a label, the category on the probability's side of a threshold that is not tuned.
        affirmative = scale.affirmative_codes[0]
        verdict = np.where(mean_positive >= threshold, affirmative, 1 - affirmative)
        code = np.where((code < 0) & ~np.isnan(mean_positive), verdict, code)
    # Where rows were averaged, or there is no label, the most probable category.
    code = np.where(full & (repeated | (code < 0)), shares.argmax(axis=1), code)

    unscored = (code < 0) & np.isnan(mean_positive)
    reason = np.full(len(cells), "", dtype=object)
    first_reason = np.full(len(cells), _NO_LABEL, dtype=object)
    with_reason = np.flatnonzero(reasons != "")[::-1]
    first_reason[cell[with_reason]] = reasons[with_reason]
    reason[unscored] = first_reason[unscored]
    has_tie = np.bincount(cell_of_reading[tied], minlength=len(cells)) > 0
    reason[unscored & has_tie] = "draw_tie"
    reason[unscored & (low != high)] = "order_disagreement"
    kinds = ratings.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"]
    with_method = ratings[ratings["prob_method"] != ""]
    methods = with_method.groupby("rater_id")["prob_method"].first()
    drawn = with_method[with_method["prob_method"] == "draws"]
    counts = drawn.groupby(["rater_id", "unit_id", "order"], sort=False).size()
    draws = counts.groupby("rater_id").median().astype(int)
    return Readings(
        units=tuple(unit_names.tolist()),
        raters=tuple(rater_names),
        kinds=tuple(kinds[rater] for rater in rater_names),
        unit=cells % len(unit_names),
        rater=cells // len(unit_names),
        code=code.astype(code_type(len(scale.categories))),
        positive=mean_positive,
        probabilities=mean_each,
        confidence=confidence,
        reason=reason,
        methods=tuple(str(methods.get(rater, "")) for rater in rater_names),
        draws=tuple(int(draws.get(rater, 0)) for rater in rater_names),
    )


def _label_codes(ratings: DataFrame, scale: Scale, source: str) -> Codes:
    codes = {category: code for code, category in enumerate(scale.categories)} | {"": -1}
    mapped = ratings["label"].map(codes)
    if mapped.isna().any():
        at = mapped.index[mapped.isna()][0]
        label, keys = shortened(ratings.loc[at, "label"]), scale.categories
        listed = f"{keys[0]} to {keys[-1]}" if scale.is_number else ", ".join(keys)
        raise InputError(
            f"{source}, row {at + FIRST_ROW}: the label {label!r} of rater "
            f"{ratings.loc[at, 'rater_id']!r} is none of the declared categories of "
            f"{scale.name!r} ({listed}); correct the label or declare it"
        )
    return np.asarray(mapped.to_numpy(), dtype=np.intp)


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


def _group_mean(values: Array, group: Codes, n_groups: int) -> Array:
    out = np.empty((n_groups, values.shape[1]))
    for column, of_column in enumerate(values.T):
        held = ~np.isnan(of_column)
        if not held.any():
            out[:, column] = np.nan
            continue
        count = np.bincount(group[held], minlength=n_groups).astype(float)
        total = np.bincount(group[held], weights=of_column[held], minlength=n_groups)
        out[:, column] = np.divide(total, count, out=np.full(n_groups, np.nan), where=count > 0)
    return out


MOST_PLACES = 100_000_000
"""Units times raters: each may have a label, and a table holds a place for it."""


def encode(
    readings: Readings,
    scale: Scale,
    units: DataFrame | None = None,
    cluster: str = "pair",
    slices: Sequence[str] = (),
) -> LabelMatrix:
    """Lay readings out as arrays and find each unit's cluster.

    `units` is the `units` table; `cluster` is "pair" (its `cluster_id`) or the name of one of its
    columns, `slices` are names of its columns. Without `units` every unit is its own cluster.
    Raises InputError where a rated unit is not in `units`, a column is not there, or the cluster
    column is empty.
    """
    order = sorted(range(len(readings.raters)), key=lambda at: (KIND_ORDER[readings.kinds[at]], at))
    column = np.empty(len(order), dtype=np.intp)
    column[order] = np.arange(len(order))
    at = (readings.unit, column[readings.rater])
    shape = (len(readings.units), len(order))
    if shape[0] * shape[1] > MOST_PLACES:
        counts = {"units": shape[0], "raters": shape[1], "most": MOST_PLACES}
        raise InputError(written("too_large.places", **counts))
    codes = np.full(shape, -1, dtype=readings.code.dtype)
    asked = np.zeros(shape, dtype=bool)
    codes[at], asked[at] = readings.code, True
    positive = _laid_out(readings.positive, at, shape)
    confidence = _laid_out(readings.confidence, at, shape)
    distributions, has_shares = {}, ~np.isnan(readings.probabilities[:, 0])
    for rater in np.unique(at[1][has_shares]).tolist():
        rows = has_shares & (at[1] == rater)
        table = np.full((shape[0], readings.probabilities.shape[1]), np.nan)
        table[at[0][rows]] = readings.probabilities[rows]
        distributions[rater] = table
    facts = UnitFacts(readings.units, units)
    clusters = facts.clusters(cluster)
    subject, pair, side = (facts.column(name) for name in ("subject", "cluster_id", "side"))
    raters = tuple(readings.raters[place] for place in order)
    kinds = tuple(readings.kinds[place] for place in order)
    people, graders = (
        [at for at, rater_kind in enumerate(kinds) if rater_kind == kind]
        for kind in ("human", "model")
    )
    return LabelMatrix(
        scale=scale,
        raters=raters,
        kinds=kinds,
        codes=codes,
        positive=positive,
        confidence=confidence,
        thresholds=np.broadcast_to([scale.threshold_for(rater) for rater in raters], shape),
        asked=asked,
        reasons=_reasons(readings, at[1], len(order)),
        clusters=clusters.codes,
        n_clusters=len(clusters.values),
        subjects=subject.values,
        subject=subject.codes,
        pairs=pair.values,
        pair=pair.codes,
        side=side.codes,
        slices=facts.slices(slices),
        methods=tuple(readings.methods[place] for place in order),
        draws=tuple(readings.draws[place] for place in order),
        copies=copies_among(codes, people, graders),
        weight=facts.weights(clusters),
        distributions=distributions,
        withheld=_withheld(readings, order, scale),
    )


def _reasons(readings: Readings, column: Codes, raters: int) -> tuple[Counter[str], ...]:
    """Count each rater's reasons, from the `column` of each reading."""
    given = readings.reason != ""
    reasons, rater = readings.reason[given], column[given]
    return tuple(Counter(reasons[rater == at]) for at in range(raters))


def _laid_out(values: Array, at: tuple[Codes, Codes], shape: tuple[int, int]) -> Array:
    """Values (units, raters), NaN where there is none; if there is none at all, without memory."""
    if np.isnan(values).all():
        return np.broadcast_to(np.nan, shape)
    out = np.full(shape, np.nan)
    out[at] = values
    return out


def _withheld(readings: Readings, order: Sequence[int], scale: Scale) -> Mask | None:
    """Mask (units, raters in this order) of what is withheld from graders; None where nothing is.
    What is withheld from a grader is withheld from its parts by method (`methods_apart`).
    """
    by_rater = []
    for at in order:
        rater = readings.raters[at]
        whole = rater.removesuffix(f" ({readings.methods[at]})")
        by_rater.append(scale.withheld.get(rater) or scale.withheld.get(whole, frozenset()))
    if not any(by_rater):
        return None
    return np.array([[unit in units for units in by_rater] for unit in readings.units], dtype=bool)


def one_version(
    ratings: DataFrame, rubric: str, accepted: Collection[str] | None
) -> tuple[DataFrame, list[str]]:
    """Return the ratings of one rubric that count, and notes on those set aside. Ratings without a
    hash (imported ones) always count. Raises InputError where several versions are present and none
    was chosen.
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
        "note.excluded", count=len(names), all=of, ratings=int(left_out.sum()), reasons=who
    )
    return ratings[~left_out], [f"{rubric}: {note}" if rubric else note]


def pair_verdicts(labels: LabelMatrix) -> LabelMatrix:
    """Return the labels with one row per pair and subject, `positive` by the pair rule. A rater has
    a verdict on a pair only where they have one on both responses. Pairs with one response are left
    out. Codes are all missing: a pair has a verdict but no category.
    """
    verdicts = labels.verdicts
    single = np.where(np.isnan(labels.positive), verdicts.astype(float), labels.positive)
    single[verdicts < 0] = np.nan
    a, b = units_of_both_sides(labels)
    return replace(
        labels.of_units(a),
        codes=np.full((len(a), len(labels.raters)), -1, dtype=np.int8),
        positive=(single[a] + single[b]) / 2.0,
        confidence=np.full((len(a), len(labels.raters)), np.nan),
        asked=labels.asked[a] | labels.asked[b],
        withheld=None if labels.withheld is None else labels.withheld[a] | labels.withheld[b],
        side=np.full(len(a), -1, dtype=np.intp),
    )


def units_of_both_sides(labels: LabelMatrix) -> tuple[Codes, Codes]:
    """Return the rows of side a and of side b, for every pair and subject that has both."""
    key = labels.pair * (len(labels.subjects) + 1) + labels.subject + 1
    sided = (labels.side >= 0) & (labels.pair >= 0)
    first, second = (np.flatnonzero(sided & (labels.side == side)) for side in (0, 1))
    _, at_first, at_second = np.intersect1d(key[first], key[second], return_indices=True)
    return first[at_first], second[at_second]


def encode_labels(labels: Any, categories: Column[Hashable]) -> Labels:
    """Encode labels (units, raters) as codes (units, raters), -1 where missing.

    `labels` is anything that numpy converts to a table: nested lists, an array, a DataFrame; one
    sequence, or one string of labels of one letter, is one rater. None, NaN and "" (unless it is a
    category) are missing. Raises InputError where a label is none of `categories` or the rows have
    different lengths.

    >>> encode_labels([["yes", "no"], ["no", None]], ["yes", "no"]).tolist()
    [[0, 1], [1, -1]]
    """
    import pandas as pd

    if len(categories) < 1 or len(set(categories)) < len(categories):
        raise InputError(f"the categories must all be different, not {_listed(categories)}")
    table = _table(labels)
    whole = table.dtype.kind in "iu" and list(categories) == list(range(len(categories)))
    if whole and table.min() >= 0 and table.max() < len(categories):
        return table.astype(np.int8)  # a look-up of a million labels takes as long as a bootstrap
    table = table.astype(object)
    cells, seen = pd.factorize(table.ravel())
    position: dict[Hashable, int] = {"": -1} | {label: k for k, label in enumerate(categories)}
    lookup = np.array([position.get(label, -2) for label in seen] + [-1], dtype=np.int64)
    codes = lookup[cells].reshape(table.shape)
    if (codes == -2).any():
        row, column = np.argwhere(codes == -2)[0]
        raise InputError(
            f"labels, row {row}, column {column} (from 0): {table[row, column]!r} is none of the "
            f"categories {_listed(categories)}; declare it or correct the label"
        )
    return codes.astype(np.int8)


def coded_raters(
    humans: Labels, graders: Labels, categories: Column[Hashable], level: Level
) -> Coded:
    """Return codes (units, raters) of humans and graders as a view, each unit a cluster."""
    codes = np.hstack([humans, graders])
    return Coded(
        raters=tuple(str(column) for column in range(codes.shape[1])),
        kinds=("human",) * humans.shape[1] + ("model",) * graders.shape[1],
        codes=codes,
        clusters=np.arange(len(codes)),
        categories=tuple(str(category) for category in categories),
        values=category_values(categories, level),
        level=level,
        subset="all",
    )


def _listed(categories: Column[Hashable]) -> str:
    return ", ".join(map(str, categories)) or "none"


def _table(labels: Any) -> npt.NDArray[Any]:
    """Return labels (units, raters) as objects, or an array of whole numbers unchanged."""
    given = list(labels) if isinstance(labels, str) else labels
    whole = isinstance(given, np.ndarray) and given.dtype.kind in "iu"
    try:
        table = np.asarray(given, dtype=None if whole else object)
    except ValueError:
        table = np.empty(0, dtype=object)
    if table.ndim == 1 and (whole or not any(isinstance(cell, (list, tuple)) for cell in table)):
        table = table[:, None]
    if table.ndim != 2 or table.size == 0:
        raise InputError(
            "labels must be a table with one row per unit and one column per rater, "
            "with None for a missing label"
        )
    return table


def encode_column(labels: Any, categories: Column[Hashable]) -> Labels:
    """Encode one rater's labels as codes (units,)."""
    codes = encode_labels(labels, categories)
    if codes.shape[1] != 1:
        raise InputError(f"one rater must have one label per unit, not {codes.shape[1]}")
    return codes[:, 0]


def same_length(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> None:
    """Raise InputError if the two sides cannot be of the same units."""
    if len(first) != len(second):
        raise InputError(
            f"the two sides have {len(first)} and {len(second)} items; give the same items, with "
            "None where there is no label"
        )


def cluster_codes(clusters: Column[Hashable] | None, n: int) -> Codes:
    """Return the cluster of each of n units, (units,); without `clusters` each is its own."""
    import pandas as pd

    if clusters is None:
        return np.arange(n)
    codes, _ = pd.factorize(np.asarray(clusters, dtype=object))
    if len(codes) != n or (codes < 0).any():
        raise InputError(f"clusters must name a cluster for each of the {n} items")
    return np.asarray(codes, dtype=np.intp)


MAX_CELLS = 500_000_000
"""Upper limit of patterns times raters: beyond it there are too many raters for columns."""


def by_kind(kinds: Mapping[str, str]) -> dict[str, str]:
    """Order raters, {name: kind}: humans first, then adjudicators, then models, each by name.

    >>> list(by_kind({"gpt": "model", "ben": "human", "ann": "human"}))
    ['ann', 'ben', 'gpt']
    """
    return dict(sorted(kinds.items(), key=lambda rater: (KIND_ORDER[rater[1]], rater[0])))


@dataclass(frozen=True)
class Reduced:
    """Ratings of one rubric as patterns (patterns, 3 x raters), and their counts in each cluster.

    A pattern holds codes of labels; whether the unit was assigned to the rater; verdicts from
    probabilities, -1 where there is none. `raters` are {name: kind} as `by_kind` orders them.

    `cells` (clusters, patterns) is a sparse matrix of whole numbers. `clusters` are in the order of
    their names; None where every unit is its own cluster, and then the cells have one row.
    """

    raters: Mapping[str, str]
    patterns: Labels
    clusters: pa.Array | None
    cells: Sparse
    reasons: tuple[Counter[str], ...]

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
    """Reduce ratings of one rubric (a validated `ratings` table) that hold all of each unit's rows.
    `clusters` gives each unit's cluster by its id; `raters` are those of all the ratings there are.
    Raises InputError as `combine_readings` does.
    """
    import pyarrow as pa
    from scipy.sparse import csr_array, eye_array

    if scale.is_number:
        raise InputError(
            "labels that are numbers hardly repeat, which an engine needs; leave --engine out"
        )
    readings = combine_readings(ratings, scale, source)
    position = {name: at for at, name in enumerate(raters)}
    column = np.array([position[name] for name in readings.raters], dtype=np.intp)[readings.rater]
    n, r = len(readings.units), len(raters)
    rows = np.full((n, 3 * r), -1, dtype=np.int8)
    rows[:, r : 2 * r] = 0
    rows[readings.unit, column] = readings.code
    rows[readings.unit, r + column] = 1
    threshold = np.array([scale.threshold_for(name) for name in raters])[column]
    verdict = np.where(np.isnan(readings.positive), -1, readings.positive >= threshold)
    rows[readings.unit, 2 * r + column] = verdict
    reasons = _reasons(readings, column, r)
    names, cells = None, csr_array(np.ones((1, n), dtype=np.int64))
    if clusters is not None:
        of_units = clusters.loc[list(readings.units)].astype(str)
        names = pa.array(of_units.tolist(), pa.large_string())
        cells = eye_array(n, dtype=np.int64, format="csr")
    return merged([Reduced(raters, rows, names, cells, reasons)])


def merged(parts: Sequence[Reduced]) -> Reduced:
    """Merge the tables of several parts; no unit may be in two of them. Patterns are ordered as in
    `LabelMatrix.folded`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from scipy.sparse import block_diag, csr_array

    rows = np.concatenate([part.patterns for part in parts])
    if rows.size > MAX_CELLS:
        raise InputError(
            f"{len(rows):,} different rows of labels by {rows.shape[1] // 3:,} raters do not fit; "
            "keep the ratings of fewer raters, or pool those who labelled little under one rater_id"
        )
    first, at = distinct_bytes(rows)
    patterns = rows[first]
    cells = block_diag([part.cells for part in parts], format="coo")
    names, of = None, np.zeros(len(parts), dtype=np.intp)
    if parts[0].clusters is not None:
        given = pa.chunked_array([part.clusters for part in parts])
        names = pc.unique(given).sort()
        of = pc.index_in(given, names).to_numpy()
    shape = (1 if names is None else len(names), len(patterns))
    cells = csr_array((cells.data, (of[cells.row], at[cells.col])), shape=shape)  # adds up
    reasons = [sum(sums, Counter[str]()) for sums in zip(*(p.reasons for p in parts), strict=True)]
    return Reduced(parts[0].raters, patterns, names, cells, tuple(reasons))


@dataclass(frozen=True)
class PatternMatrix(LabelMatrix):
    """Labels as patterns, each a row and a cluster of its own. Of probabilities it holds only the
    verdicts that they give, `given` (patterns, raters), -1 where there is none.
    """

    given: Labels = None  # type: ignore[assignment]

    @property
    def verdicts(self) -> Labels:
        """Binary verdicts (patterns, raters): 1 affirmative, 0 not, -1 missing."""
        return np.where(self.given < 0, super().verdicts, self.given).astype(np.int8)

    @property
    def scored(self) -> Mask:
        """Mask (patterns, raters) of usable labels or probabilities."""
        return (self.codes >= 0) | (self.given >= 0)


def pattern_matrix(reduced: Reduced, scale: Scale) -> PatternMatrix:
    """Return the patterns of one rubric as labels."""
    n, r = len(reduced.patterns), len(reduced.raters)
    names, kinds = tuple(reduced.raters), tuple(reduced.raters.values())
    codes, asked, given = (reduced.patterns[:, k * r : (k + 1) * r] for k in range(3))
    people, models = ([at for at in range(r) if kinds[at] == kind] for kind in ("human", "model"))
    unknown: Array = np.broadcast_to(np.nan, (n, r))
    nothing = np.full(n, -1, dtype=np.intp)
    return PatternMatrix(
        scale=scale,
        raters=names,
        kinds=kinds,
        codes=np.ascontiguousarray(codes),
        positive=unknown,
        confidence=unknown,
        thresholds=np.broadcast_to([scale.threshold_for(name) for name in names], (n, r)),
        asked=asked > 0,
        reasons=reduced.reasons,
        clusters=np.arange(n),
        n_clusters=n,
        subjects=(),
        subject=nothing,
        pairs=(),
        pair=nothing,
        side=nothing,
        methods=("",) * r,
        draws=(0,) * r,
        copies=copies_among(codes, people, models, reduced.times),
        given=np.ascontiguousarray(given),
    )


def name_keys(names: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash the clusters' names (clusters,), the same on every machine."""
    import pandas as pd

    return pd.util.hash_array(names.to_numpy(zero_copy_only=False)).astype(np.uint64)
