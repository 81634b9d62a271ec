"""Main figures repeated for parts of the units and of the humans, and columns that explain labels.

*Parts.* A grader can agree well overall and fail on the units about one group, source or topic. The
*main figures* (`add_main_rows`) are repeated for each *slice*, the units with one value of a units
column, with the difference from the other units; for each subgroup of humans; and with other
clusters. A *group* is a slice with balanced accuracy against the majority of humans (Tables 4 and
12 of Feng, Park, Liu & Tsvetkov 2023), and its difference from the other groups.

*Columns that explain labels* (`explaining_columns`). Annotators may form publics, which read items
differently, so that kappa among all annotators is low although the rubric is clear. The *sides* of
a column of a table of annotators are the annotators with each of its values. The column explains
labels if labels of two sides are further apart than labels of one side:

1. Sum the distances of the labels of every two people (`_LabelDistances`). As sides may have
   labelled different units, each distance is taken minus the mean distance on its unit.
2. Subtract the mean within sides from that across sides: the component between sides of Rao's
   quadratic entropy (1982), which a noisier side does not raise.
3. Permute people, in all columns together, and test the largest standardised component, which
   adjusts for the number of columns and of values in each (Westfall & Young 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from evenhand.analysis.agreement import coefficients
from evenhand.analysis.agreement import pairs as pairwise
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.bootstrap.significance import Parts, max_t_notes
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import MOST_SIDES, Coded, RaterColumn, UnitColumn, check_values
from evenhand.analysis.people.comparison import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Remark, join_notes
from evenhand.analysis.types import Array, Codes, DataFrame, Integers, Labels, Mask
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError

BALANCED, SIDE_KAPPA = "group_balanced_accuracy", "side_kappa"
NO_UNITS = Remark("no_pairable_units")
MIN_GAIN = 0.1  # least gain of kappa within sides over that across them of practical interest
_PERMUTATIONS, _FEWEST, _MAX_PAIRS = 499, 99, 50_000_000
"""Permutations of people: usual and least number, and the most of them times pairs of people."""
_STEPS = 20  # numbers are rounded to twentieths of their range: many different ones need memory


def add_main_rows(view: View, *, at: str = "", note: str = "") -> None:
    """Add the main figures of one view: agreement of humans, of graders with them, and the
    difference: `observed_agreement`, the deciding kappa, alpha at the scale's level, and `CEILING`.

    The functions that compute these add other rows, too, and set neither `at` nor notes. So they
    write to a draft, from which the main figures are copied to the rows of the view.
    """
    coded, kappa = view.coded, pairwise.deciding_kappa(view.coded)
    levels = pairwise.measurement_of(coded).alpha_levels
    metric = "ordinal" if "ordinal" in levels else levels[0]
    main_names = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    draft = View.of(ResultRows(view.rows.rubric, chance=view.rows.chance), coded, view.resamples)
    # Kappas are looked up in the view's cache: this entry limits them to one of several kappas.
    draft.cache[pairwise.KappaMeans] = pairwise.KappaMeans(coded, view.resamples, [kappa])
    add_group_rows(draft, ["humans"])
    pairwise.add_humans_rows(draft, names=["observed_agreement", kappa])
    add_ceiling_rows(draft)
    for row in draft.rows.rows.values():
        if row["statistic"] in main_names:
            interval = Interval(row["estimate"], row["low"], row["high"], row["remarks"])
            counts = row["n_units"], row["n_clusters"]
            notes = join_notes(pairwise.few_units_note(counts), note)
            about = About(a=row["rater_a"], b=row["rater_b"], at=at, note=notes)
            view.add(row["statistic"], interval, counts, **about)


def add_slice_rows(view: RubricView) -> None:
    """Add the main figures in every slice of the units, and `slice_difference` of every grader."""
    coded, columns = view.coded, view.labels.columns(view.request.settings.slices)
    for column in columns:
        for slice_name, units in column.parts():
            resamples = view.resamples.only(np.unique(coded.clusters[units]))
            add_main_rows(View.of(view.rows, coded.only(units, coded.part(slice_name)), resamples))
    add_slice_difference_rows(view, columns)


def add_slice_difference_rows(view: View, columns: Sequence[UnitColumn]) -> None:
    """Add `slice_difference`: a grader's mean agreement with humans over the units of a slice minus
    that over the other units (see `unit_agreement`). All slices, columns and graders of the view
    are tested together (`significance.max_t`); the notes have the p values.
    """
    coded, graders = view.coded, view.coded.members("model")
    agreement, mass = np.zeros((2, len(coded.codes), len(graders)))
    for k, grader in enumerate(graders):
        agreement[:, k], mass[:, k] = unit_agreement(coded, grader)
    is_compared = mass > 0
    notes = max_t_notes([view.parts(agreement, mass, column.codes) for column in columns])
    for column, column_notes in zip(columns, notes, strict=True):
        in_slice = column.codes[:, None] == np.arange(len(column.values))
        for k, grader in enumerate(graders):
            sums = view.sums(in_slice & is_compared[:, [k]], in_slice * agreement[:, [k]])
            size, agreed = np.split(sums, 2, axis=1)  # (rows, slices) each
            size_outside = size.sum(axis=1, keepdims=True) - size
            agreed_outside = agreed.sum(axis=1, keepdims=True) - agreed
            difference = ratio(agreed, size) - ratio(agreed_outside, size_outside)
            for code, value in enumerate(column.values):
                counts = view.count(in_slice[:, code] & is_compared[:, k])
                note = join_notes(pairwise.few_units_note(counts), column_notes[code][k])
                about = About(a="humans", b=coded.raters[grader], note=note)
                part = view.on(coded.part(f"{column.name}={value}"))
                part.add("slice_difference", difference[:, code], counts, reason=NO_UNITS, **about)


def unit_agreement(coded: Coded, grader: int) -> tuple[Array, Mask]:
    """Return a grader's mean agreement with the humans of each unit (units,), and the mask of units
    that can be compared; elsewhere agreement is 0. The agreement of two labels is 1 or 0; of
    ordered labels and numbers 1 minus their distance as a share of the largest (Cohen 1968).
    """
    counts = coefficients.label_counts(coded, coded.humans_not_copied(grader))
    grades = coded.codes[:, grader]
    if coded.is_number:
        values = np.asarray(coded.values)
        distances = np.abs(values[:, None] - values)
        weights = 1.0 - distances / max(float(distances.max(initial=0.0)), 1e-300)
    else:
        is_ordered = coded.level != "nominal"
        weights = coefficients.agreement_weights(coded.q, "linear" if is_ordered else "identity")
    n_labels, agreed = counts.sum(axis=1), (counts * weights[np.maximum(grades, 0)]).sum(axis=1)
    is_compared = np.asarray((n_labels > 0) & (grades >= 0))
    return np.where(is_compared, agreed / np.maximum(n_labels, 1.0), 0.0), is_compared


def add_group_performance_rows(view: View, columns: Sequence[UnitColumn]) -> None:
    """Add rows of every grader for every group of the `columns`, against the majority of humans:
    in each group (subset = "column=value") `group_balanced_accuracy`, and `group_difference`, this
    accuracy minus that on all other groups' units. All are tested together (`_hits_above_mean`).
    """
    coded, humans = view.coded, view.coded.members("human")
    if not humans:
        return
    majority = coefficients.majority_codes(coefficients.label_counts(coded, humans))
    notes = max_t_notes([_hits_above_mean(view, column, majority) for column in columns])
    q, accuracy = coded.q, coefficients.balanced_accuracy
    for k, grader in enumerate(coded.members("model")):
        name, grades = coded.raters[grader], coded.codes[:, grader]
        for column, column_notes in zip(columns, notes, strict=True):
            is_compared = (majority >= 0) & (grades >= 0) & (column.codes >= 0)
            cells = np.zeros((len(grades), q * q))  # 1 in each unit's cell of the table
            cells[np.flatnonzero(is_compared), (majority * q + grades)[is_compared]] = 1.0
            groups = []
            for code, value in enumerate(column.values):
                units = is_compared & (column.codes == code)
                if not units.any():
                    continue
                writer, counts = view.on(coded.part(f"{column.name}={value}")), view.count(units)
                table = view.sums(cells * units[:, None]).reshape(-1, q, q)
                about = About(a="humans", b=name, note=pairwise.few_units_note(counts))
                writer.add(BALANCED, accuracy(table), counts, reason=NO_UNITS, **about)
                groups.append((writer, counts, table, column_notes[code][k]))
            if len(groups) < 2:
                continue  # no other group to compare with
            whole_table = view.sums(cells).reshape(-1, q, q)
            for writer, counts, table, note in groups:
                difference = accuracy(table) - accuracy(whole_table - table)
                about = About(a="humans", b=name, note=note)
                writer.add("group_difference", difference, counts, reason=NO_UNITS, **about)


def _hits_above_mean(view: View, column: UnitColumn, majority: Codes) -> Parts:
    """Return what `significance.max_t` tests: a grader's hits in the groups of a column.

    A hit is 1 if the grader repeats the majority's category on a unit, else 0. Its outcome is the
    hit minus the share of hits in that category, and its mass 1 over the category's units. So all
    categories count equally, as in balanced accuracy: a group with more units of a harder category,
    or none of an easier one, is no different. Units are permuted within categories.
    """
    coded, graders = view.coded, list(view.coded.members("model"))
    outcome, mass = np.zeros((2, len(majority), len(graders)))  # (units, graders) each
    for k, grader in enumerate(graders):
        grades = coded.codes[:, grader]
        units = np.flatnonzero((majority >= 0) & (grades >= 0) & (column.codes >= 0))
        categories = majority[units]
        is_hit, one_hot = grades[units] == categories, np.eye(coded.q)[categories]
        hits_and_units = np.zeros((len(majority), 2 * coded.q))  # by category
        hits_and_units[units] = np.hstack([one_hot * is_hit[:, None], one_hot])
        n_hits, n_units = np.split(view.sums(hits_and_units)[0], 2)  # row 0: in the data
        outcome[units, k] = is_hit - ratio(n_hits, n_units)[categories]
        mass[units, k] = 1.0 / n_units[categories]
    return view.parts(outcome, mass, column.codes, stratum=majority)


def members_of(
    raters: DataFrame | None, columns: Sequence[str], unit_columns: Sequence[str] = ()
) -> dict[str, frozenset[str]]:
    """Return ids of raters by "column=value", for all values of the `columns` of table `raters`.

    `unit_columns` are those that units are sliced by. Raises InputError if the table or a column is
    missing, a rater is listed twice, or a column is also one of `unit_columns`.
    """
    if not columns:
        return {}
    if raters is None or "rater_id" not in raters:
        raise InputError(
            "slicing by raters needs a table of raters with a column rater_id; give it"
        )
    is_duplicate = raters["rater_id"].duplicated()
    if is_duplicate.any():
        rater = raters.loc[is_duplicate, "rater_id"].iloc[0]
        raise InputError(f"raters: {rater!r} stands more than once; keep one row for each rater")
    members: dict[str, frozenset[str]] = {}
    for column in columns:
        if column in unit_columns:
            raise InputError(
                f"{column!r} is a column of the units and of the raters to slice by; rename one"
            )
        if column not in raters or column == "rater_id":
            names = ", ".join(str(name) for name in raters if name != "rater_id") or "none"
            raise InputError(f"raters has no column {column!r} to slice by; it has {names}")
        cells = raters[column].fillna("").astype(str)
        check_values(column, sorted(set(cells) - {""}))
        for value, ids in raters["rater_id"].groupby(cells, sort=True):
            if value != "":
                members[f"{column}={value}"] = frozenset(ids.astype(str))
    return members


def add_rater_slice_rows(view: RubricView) -> None:
    """Add the main figures for every subgroup of the humans, with the other humans left out."""
    coded = view.coded
    for name, members in view.request.people.items():
        kinds = tuple(
            "left out" if kind == "human" and rater not in members else kind
            for rater, kind in zip(coded.raters, coded.kinds, strict=True)
        )
        if n_humans := kinds.count("human"):
            part = replace(coded, kinds=kinds, subset=coded.part(name))
            note = "1 human" if n_humans == 1 else ""
            add_main_rows(View.of(view.rows, part, view.resamples), note=note)


def add_other_cluster_rows(view: RatedView) -> None:
    """Add the main figures with intervals from resampling other clusters: at = "cluster=COLUMN".
    Weighted labels have no such rows, as their weights are those of the study's clusters.
    """
    request, labels = view.request, view.labels
    column = request.settings.sensitivity_cluster
    if not column or labels.weight is not None:
        return
    # Keep the thresholds: tuned on folds of the other clusters, they would change the labels.
    other = encode(view.readings, labels.scale, request.units, column)
    folded, frequency = replace(other, thresholds=labels.thresholds).folded()
    resamples = request.resampled(frequency)
    for coded in folded.views:
        add_main_rows(View.of(view.rows, coded, resamples), at=f"cluster={column}")


# ---- Columns of annotators that explain their labels ---------------------------------------------
def explaining_columns(
    coded: Coded, raters: DataFrame | None, level: float, seed: int
) -> dict[str, RaterColumn]:
    """Return the columns of a table of raters that explain the humans' labels, by name.

    A column explains labels if the p value of the hypothesis that labels are unrelated to it,
    adjusted for all columns, is at most `level`, and kappa is higher within sides than across by at
    least `MIN_GAIN`. The column that explains most is taken first; others must explain labels
    within its sides, as two correlated columns are one finding.
    """
    humans = list(coded.members("human"))
    sides_by_column = _sides_by_column(raters, [coded.raters[human] for human in humans])
    codes = coded.codes[:, humans]
    codes = codes[(codes >= 0).sum(axis=1) >= 2]  # of units with two people's labels
    explaining = dict[str, RaterColumn]()
    if not sides_by_column or not len(codes):
        return explaining
    distances = _LabelDistances.of(*_codes_and_distances(codes, coded))
    n_permutations = int(np.clip(_MAX_PAIRS // max(distances.sums.nnz, 1), _FEWEST, _PERMUTATIONS))
    stratum = np.zeros(len(humans), dtype=np.intp)  # at first, all people are in one
    while sides_by_column and distances.mean_of_all > 0:  # 0: all labels are equal
        orders = _orders(stratum, n_permutations, seed)
        name, gain, column = _most_explaining(distances, sides_by_column, orders)
        if column.p > level or gain < MIN_GAIN:
            break
        explaining[name] = column
        # Other columns are then permuted within the sides of this one.
        stratum_and_side = np.stack([stratum, sides_by_column.pop(name)])
        stratum = np.unique(stratum_and_side, axis=1, return_inverse=True)[1].reshape(-1)
    return explaining


def _sides_by_column(raters: DataFrame | None, people: list[str]) -> dict[str, Codes]:
    """Return the side of each person, (people,), -1 for none, by column with two sides or more
    (values that at least two people have), and at most `MOST_SIDES` values.
    """
    if raters is None or "rater_id" not in raters or raters["rater_id"].duplicated().any():
        return {}
    table = raters.set_index(raters["rater_id"].astype(str)).drop(columns="rater_id")
    table, sides_by_column = table.reindex(people), dict[str, Codes]()
    for name in table:
        cells = table[name].fillna("").astype(str)
        n_people = cells[cells != ""].value_counts()  # by value
        if len(n_people) <= MOST_SIDES and (n_people >= 2).sum() >= 2:
            large_sides = cells.where(cells.map(n_people) >= 2, "").tolist()
            sides_by_column[str(name)] = UnitColumn.of(str(name), large_sides).codes
    return sides_by_column


def _codes_and_distances(codes: Labels, coded: Coded) -> tuple[Integers, Array]:
    """Return codes (units, people) and the distances of categories (q, q), rounded if numbers."""
    if not coded.is_number:
        return codes, pairwise.measurement_of(coded).distances
    point_of_code, point_values = coded.grid
    step_of_code = np.rint(_STEPS * point_values[point_of_code]).astype(np.intp)
    steps = np.arange(_STEPS + 1) / _STEPS
    distances = np.abs(steps[:, None] - steps) ** (2 if coded.ordered == "quadratic" else 1)
    return np.where(codes >= 0, step_of_code[codes], -1), distances


class _LabelDistances(NamedTuple):
    """Distances of people's labels of the same unit, minus the mean distance on the unit.

    A pair of labels of a unit with m labels has the weight 1 / (m - 1): all labels count equally.
    Here, three people label the first unit, on which the mean distance is 2/3, and two the second:

    >>> labels = np.array([[0, 1, 1], [0, 0, -1]])
    >>> distances = _LabelDistances.of(labels, np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> distances.weights.toarray().tolist()  # 1/2 for a pair on the first, 1 on the second
    [[0.0, 1.5, 0.5], [1.5, 0.0, 0.5], [0.5, 0.5, 0.0]]
    >>> distances.sums.toarray().round(3).tolist()  # 1/2 (1 - 2/3), or 1/2 (0 - 2/3)
    [[0.0, 0.167, 0.167], [0.167, 0.0, -0.333], [0.167, -0.333, 0.0]]
    """

    sums: Any  # weighted sums of the distances for every two people, sparse (people, people)
    weights: Any  # summed weights of these pairs of labels, sparse (people, people)
    mean_in_unit: float  # mean distance of two labels of a unit
    mean_of_all: float  # mean distance of any two labels, which is the distance by chance

    @classmethod
    def of(cls, codes: Integers, distances: Array) -> _LabelDistances:
        """Return distances among labels with these codes (units, people), two or more per unit."""
        from scipy import sparse

        unit, person = np.nonzero(codes >= 0)  # (labels,) each, like `code`
        code = codes[unit, person].astype(np.intp)
        (n, people), q, ones = codes.shape, len(distances), np.ones(len(unit))
        m = (codes >= 0).sum(axis=1).astype(float)  # labels of each unit, (n,)
        counts = np.bincount(unit * q + code, minlength=n * q).reshape(n, q).astype(float)
        unit_mean = ((counts @ distances) * counts).sum(axis=1) / (m * (m - 1.0))
        # For the sums of distances, rows are units by categories, unit * q + code. `labels` has 1
        # where a person chose the category, `to_categories` the weighted distance of the person's
        # label from the category: their product adds up the distances of two people's labels.
        labels = sparse.csr_array((ones, (unit * q + code, person)), (n * q, people))
        cells = ((unit * q)[:, None] + np.arange(q)).ravel(), np.repeat(person, q)
        weighted = (distances[code] / (m - 1.0)[unit, None]).ravel()
        to_categories = sparse.csr_array((weighted, cells), (n * q, people))
        # For what is the same for all labels of a unit, rows are units: 1 where a person labelled.
        labelled = sparse.csr_array((ones, (unit, person)), (n, people))
        weight = sparse.diags_array(1.0 / (m - 1.0))
        unit_means = labelled.T @ (sparse.diags_array(unit_mean) @ weight) @ labelled
        sums, weights = (
            sparse.csr_array(matrix - sparse.diags_array(matrix.diagonal()))  # no pair with oneself
            for matrix in (labels.T @ to_categories - unit_means, labelled.T @ weight @ labelled)
        )
        mean_in_unit, totals = float(m @ unit_mean) / float(m.sum()), counts.sum(axis=0)
        mean_of_all = float(totals @ distances @ totals) / float(totals.sum()) ** 2
        return cls(sums, weights, mean_in_unit, mean_of_all)

    def within_and_across(self, side: Codes) -> tuple[float, float]:
        """Return the mean distances of labels within and across sides, by `side` (people,).

        Two sides with the shares s and t of the people have the weight s t across. One side has the
        weight s (1 - s) within, its total across, so that a noisier side raises both means equally.
        """
        is_member = (side[:, None] == np.arange(side.max() + 1)).astype(float)  # (people, sides)
        share = is_member.mean(axis=0)
        sums, weights = (is_member.T @ (matrix @ is_member) for matrix in (self.sums, self.weights))
        mean = ratio(sums, weights)  # (sides, sides), NaN without labels of the same unit
        weight = np.where(np.isnan(mean), 0.0, np.outer(share, share))
        np.fill_diagonal(weight, 0.0)
        return _weighted_mean(np.diag(mean), weight.sum(axis=0)), _weighted_mean(mean, weight)


def _weighted_mean(values: Array, weight: Array) -> float:
    """Return the weighted mean of the values that are not NaN; 0 if their weights are."""
    weight = np.where(np.isnan(values), 0.0, weight)
    return float(np.nansum(weight * values) / max(weight.sum(), 1e-300))


def _orders(stratum: Codes, n_permutations: int, seed: int) -> Codes:
    """Return orders (1 + permutations, people): the data's, and random ones within each stratum."""
    rng = np.random.default_rng(seed)
    orders = np.tile(np.arange(len(stratum)), (n_permutations + 1, 1))
    for order in orders[1:]:  # the positions of a stratum get its people, in random order
        order[stratum.argsort()] = np.lexsort((rng.random(len(stratum)), stratum))
    return orders


def _most_explaining(
    distances: _LabelDistances, sides_by_column: dict[str, Codes], orders: Codes
) -> tuple[str, float, RaterColumn]:
    """Return the column that explains labels best, its gain of kappa beyond chance, and its p value
    and kappas, from `orders` of the people (see `_orders`).
    """
    means = np.empty((2, len(orders), len(sides_by_column)))  # within and across sides
    for row, order in enumerate(orders):
        for k, side in enumerate(sides_by_column.values()):
            means[:, row, k] = distances.within_and_across(side[order])
    within, across = means
    gain = (across - within) / distances.mean_of_all  # of kappa within sides over that across them
    gain -= gain[1:].mean(axis=0)  # beyond chance: the mean of all orders but that of the data
    spread = gain[1:].std(axis=0)  # (columns,)
    score = gain / np.where(spread > 1e-12, spread, np.inf)  # 0 for a gain that never varies
    best = int(score[0].argmax())
    p = float((score.max(axis=1) >= score[0, best]).mean())  # of the best of all columns
    # Distances are differences from the mean on their unit, which kappa's are not.
    kappas = 1.0 - (means[:, 0, best] + distances.mean_in_unit) / distances.mean_of_all
    return list(sides_by_column)[best], float(gain[0, best]), RaterColumn(p, *kappas.tolist())


def add_side_kappa_rows(view: RubricView) -> None:
    """Add `side_kappa` of humans within and across the sides (at = "COLUMN=within", "=across") of
    every column that explains their labels: agreement beyond chance, by the weights of the deciding
    kappa, as if all sides had labelled the same items.
    """
    units = view.coded.labelled[:, view.coded.members("human")].sum(axis=1) > 1
    for name, column in view.request.explaining.items():
        note = Remark("sides_differ", (column.p,))
        for at, kappa in (("within", column.within), ("across", column.across)):
            view.add(SIDE_KAPPA, kappa, units, a="humans", at=f"{name}={at}", note=note)
