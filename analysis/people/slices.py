"""Main figures repeated: in slices of the units, for subgroups of humans, with other clusters.

A grader can agree well overall and fail on the units about one group, source or topic. For every
value of a units column, the main figures are repeated, with the difference from the other units;
for every group there is balanced accuracy against the majority of humans (as in Tables 4 and 12 of
Feng, Park, Liu & Tsvetkov 2023), with its difference from the other groups.

*Publics* are groups of annotators who read items differently, so that kappa among all annotators is
low although the rubric is clear. A column of a table of annotators explains their labels
(`publics_of`) if labels of two *sides*, its values, are further apart than labels of one side. The
measure is the component between sides of Rao's quadratic entropy (1982), which a noisier side does
not raise. As sides may have labelled different items, a distance is taken minus the mean distance
on its item. Columns are permuted together, and the largest standardised component is tested, which
adjusts for the number of columns and of values in each (Westfall & Young 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
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
from evenhand.analysis.types import Array, Codes, DataFrame, Labels
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError

BALANCED = "group_balanced_accuracy"
NO_UNITS = Remark("no_pairable_units")


def add_main_rows(view: View, *, at: str = "", note: str = "") -> None:
    """Add agreement of humans, of graders with them, and the difference of the two, for one view of
    the labels: `observed_agreement`, the deciding kappa, alpha at the scale's level, and `CEILING`.
    """
    coded, kappa = view.coded, pairwise.deciding_kappa(view.coded)
    levels = pairwise.measurement_of(coded).alpha_levels
    metric = "ordinal" if "ordinal" in levels else levels[0]
    main_names = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    rows = ResultRows(view.rows.rubric, chance=view.rows.chance)  # apart, to add `at` and notes
    main_view = View.of(rows, coded, view.resamples)
    # Put into the cache, as the view would compute the means of all kappas, not only of this one.
    main_view.cache[pairwise.KappaMeans] = pairwise.KappaMeans(coded, view.resamples, [kappa])
    add_group_rows(main_view, ["humans"])
    pairwise.add_humans_rows(main_view, names=["observed_agreement", kappa])
    add_ceiling_rows(main_view)
    for row in rows.rows.values():
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
    are tested together (see `max_t`); the notes have the p values.
    """
    coded, graders = view.coded, view.coded.members("model")
    agreement, is_compared = np.zeros((2, len(coded.codes), len(graders)))
    for k, grader in enumerate(graders):
        agreement[:, k], is_compared[:, k] = unit_agreement(coded, grader)
    notes = max_t_notes([view.parts(agreement, is_compared, column.codes) for column in columns])
    for column, column_notes in zip(columns, notes, strict=True):
        in_slice = column.codes[:, None] == np.arange(len(column.values))
        for k, grader in enumerate(graders):
            sums = view.sums(in_slice * is_compared[:, [k]], in_slice * agreement[:, [k]])
            size, agreed = np.split(sums, 2, axis=1)  # (rows, slices) each
            size_outside = size.sum(axis=1, keepdims=True) - size
            agreed_outside = agreed.sum(axis=1, keepdims=True) - agreed
            difference = ratio(agreed, size) - ratio(agreed_outside, size_outside)
            for code, value in enumerate(column.values):
                units = view.count(in_slice[:, code] & (is_compared[:, k] > 0))
                note = join_notes(pairwise.few_units_note(units), column_notes[code][k])
                about = About(a="humans", b=coded.raters[grader], note=note)
                part = view.on(coded.part(f"{column.name}={value}"))
                part.add("slice_difference", difference[:, code], units, reason=NO_UNITS, **about)


def unit_agreement(coded: Coded, grader: int) -> tuple[Array, Array]:
    """Return a grader's mean agreement with the humans of each unit (units,), and 1 for compared
    units, else 0. The agreement of two labels is 1 or 0; of ordered labels and numbers 1 minus
    their distance as a share of the largest (the linear weights of Cohen 1968).
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
    is_compared = (n_labels > 0) & (grades >= 0)
    return np.where(is_compared, agreed / np.maximum(n_labels, 1.0), 0.0), is_compared.astype(float)


def add_group_performance_rows(view: View, columns: Sequence[UnitColumn]) -> None:
    """Add rows of every grader for every group of the `columns`, against the majority of humans:
    in each group (subset = "column=value") `group_balanced_accuracy`, and `group_difference`, this
    accuracy minus that on all other groups' units. All groups, columns and graders are tested
    together (see `_hits_above_mean`).
    """
    coded, humans = view.coded, view.coded.members("human")
    if not humans:
        return
    reference = coefficients.majority_codes(coefficients.label_counts(coded, humans))
    notes = max_t_notes([_hits_above_mean(view, column, reference) for column in columns])
    q, accuracy = coded.q, coefficients.balanced_accuracy
    for k, grader in enumerate(coded.members("model")):
        name, grades = coded.raters[grader], coded.codes[:, grader]
        for column, column_notes in zip(columns, notes, strict=True):
            compared = (reference >= 0) & (grades >= 0) & (column.codes >= 0)
            cells = np.zeros((len(grades), q * q))  # each unit's cell of the table, 1 there
            cells[np.flatnonzero(compared), (reference * q + grades)[compared]] = 1.0
            whole, groups = view.sums(cells).reshape(-1, q, q), []  # tables (rows, q, q): of all
            for code, value in enumerate(column.values):
                units = compared & (column.codes == code)
                if units.any():
                    table = view.sums(cells * units[:, None]).reshape(-1, q, q)
                    part = view.on(coded.part(f"{column.name}={value}"))
                    add = partial(part.add, units=units, reason=NO_UNITS, a="humans", b=name)
                    add(BALANCED, accuracy(table), note=pairwise.few_units_note(view.count(units)))
                    groups.append((add, table, column_notes[code][k]))  # for the differences
            if len(groups) < 2:
                continue
            for add, table, note in groups:
                add("group_difference", accuracy(table) - accuracy(whole - table), note=note)


def _hits_above_mean(view: View, column: UnitColumn, reference: Codes) -> Parts:
    """Return the outcomes that `max_t` tests: 1 where a grader repeats the majority's category on a
    unit, else 0, minus the share of the category's units in all groups on which it does so.

    All categories count equally, as in balanced accuracy: a group with more units of a harder
    category, or none of an easier one, is no different. Units are permuted within categories.
    """
    coded, graders = view.coded, list(view.coded.members("model"))
    outcome, mass = np.zeros((2, len(reference), len(graders)))  # (units, graders) each
    for k, grader in enumerate(graders):
        grades = coded.codes[:, grader]
        units = np.flatnonzero((reference >= 0) & (grades >= 0) & (column.codes >= 0))
        categories = reference[units]
        is_hit, one_hot = grades[units] == categories, np.eye(coded.q)[categories]
        cells = np.zeros((len(reference), 2 * coded.q))  # hits and units, by category
        cells[units] = np.hstack([one_hot * is_hit[:, None], one_hot])
        n_hits, n_units = np.split(view.sums(cells)[0], 2)  # row 0: in the data
        outcome[units, k] = is_hit - ratio(n_hits, n_units)[categories]
        mass[units, k] = 1.0 / n_units[categories]  # 1 in sum over each category
    return view.parts(outcome, mass, column.codes, reference)  # strata: the categories


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


# ---- Publics -------------------------------------------------------------------------------------
SIDE_KAPPA = "side_kappa"
MIN_GAIN = 0.1
"""Least gain of kappa within sides over that across them that is of practical interest."""
_PERMUTATIONS, _STEPS = 499, 20
"""Permutations of the test, and steps that numbers are rounded to for distances among people."""
_MAX_PAIRS = 50_000_000
"""Most pairs of people times permutations; more pairs get fewer permutations, but at least 99."""


def publics_of(
    coded: Coded, raters: DataFrame | None, level: float, seed: int
) -> dict[str, RaterColumn]:
    """Return the columns of a table of raters that explain the humans' labels, by name.

    Sides are the values that at least two humans have. A column explains labels if the p value of
    the hypothesis that labels are unrelated to it, adjusted for all columns, is at most `level`,
    and kappa is higher within sides than across by at least `MIN_GAIN`. The column that explains
    most is taken first; others must explain labels within its sides, as two correlated columns are
    one finding. Columns of more than `MOST_SIDES` values are left out.
    """
    humans, sides_by_column = list(coded.members("human")), dict[str, Codes]()
    if raters is None or "rater_id" not in raters or raters["rater_id"].duplicated().any():
        return {}
    table = raters.set_index(raters["rater_id"].astype(str)).drop(columns="rater_id")
    table = table.reindex([coded.raters[human] for human in humans])
    for name in table:
        cells = table[name].fillna("").astype(str)
        n_people = cells[cells != ""].value_counts()  # by side
        if len(n_people) <= MOST_SIDES and (n_people >= 2).sum() >= 2:
            large_sides = cells.where(cells.map(n_people) >= 2, "").tolist()
            sides_by_column[str(name)] = UnitColumn.of(str(name), large_sides).codes
    codes = coded.codes[:, humans]
    codes = codes[(codes >= 0).sum(axis=1) >= 2]  # of units with two people's labels
    publics, stratum = dict[str, RaterColumn](), np.zeros(len(humans), dtype=np.intp)  # one stratum
    if not sides_by_column or not len(codes):
        return publics
    among = _DistancesAmong.of(codes, coded)
    n_permutations = int(np.clip(_MAX_PAIRS // max(among.sums.nnz, 1), 99, _PERMUTATIONS))
    while sides_by_column and among.chance > 0:  # 0: all labels are equal
        # (orders, columns, 2): within and across sides. What follows, up to `score`, is (orders,
        # columns), or (columns,) without orders. The first order is that of the data.
        sides, orders = sides_by_column.values(), _orders(stratum, n_permutations, seed)
        distances = np.array([[among.by_sides(side[order]) for side in sides] for order in orders])
        gain = (distances[..., 1] - distances[..., 0]) / among.chance  # in kappa
        gain -= gain[1:].mean(axis=0)  # beyond the permutations' mean, still in kappa
        spread = gain[1:].std(axis=0)  # among the permutations: all orders but the first
        score = gain / np.where(spread > 1e-12, spread, np.inf)  # 0 for a gain that never varies
        best = int(score[0].argmax())
        p = float((score.max(axis=1) >= score[0, best]).mean())
        if p > level or gain[0, best] < MIN_GAIN:
            break
        name = list(sides_by_column)[best]
        kappas = 1.0 - (distances[0, best] + among.mean) / among.chance  # within, across
        publics[name] = RaterColumn(p, *kappas.tolist())
        # Other columns are then permuted within the sides of this one.
        stratum_and_side = np.stack([stratum, sides_by_column.pop(name)])
        stratum = np.unique(stratum_and_side, axis=1, return_inverse=True)[1].reshape(-1)
    return publics


def add_side_kappa_rows(view: RubricView) -> None:
    """Add `side_kappa` of humans within and across the sides (at = "COLUMN=within", "=across") of
    every column that explains their labels: agreement beyond chance, by the weights of the deciding
    kappa, as if all sides had labelled the same items.
    """
    units = view.coded.labelled[:, view.coded.members("human")].sum(axis=1) > 1
    for column, public in view.request.publics.items():
        note = Remark("sides_differ", (public.p,))
        for at, kappa in (("within", public.within), ("across", public.across)):
            view.add(SIDE_KAPPA, kappa, units, a="humans", at=f"{column}={at}", note=note)


class _DistancesAmong(NamedTuple):
    """Distances of people's labels of the same unit, minus the mean distance on the unit: the
    `sums` over pairs of labels of every two people, and the numbers of these `pairs`, both sparse
    (people, people). A pair on a unit with m labels has the weight 1 / (m - 1), so that a unit
    counts as often as it has labels. `mean` is the mean distance of two labels of a unit, `chance`
    that of any two labels.
    """

    sums: Any
    pairs: Any
    mean: float
    chance: float

    @classmethod
    def of(cls, codes: Labels, coded: Coded) -> _DistancesAmong:
        """Return the distances among codes (units, people), which are some of those of `coded`."""
        from scipy import sparse

        unit, person = np.nonzero(codes >= 0)
        m = (codes >= 0).sum(axis=1).astype(float)  # labels of a unit
        code = codes[unit, person].astype(np.intp)  # of each label, like `unit` and `person`
        distances = pairwise.measurement_of(coded).distances
        if coded.is_number:  # rounded to steps of the range: many points would need much memory
            point_of_code, point_values = coded.grid
            code = np.rint(_STEPS * point_values[point_of_code[code]]).astype(np.intp)
            steps = np.arange(_STEPS + 1) / _STEPS
            distances = np.abs(steps[:, None] - steps) ** (2 if coded.ordered == "quadratic" else 1)
        (n, people), q, ones = codes.shape, len(distances), np.ones(len(unit))
        counts = np.bincount(unit * q + code, minlength=n * q).reshape(n, q).astype(float)
        unit_mean = ((counts @ distances) * counts).sum(axis=1) / (m * (m - 1.0))
        totals = counts.sum(axis=0)
        weight = sparse.diags_array(1.0 / (m - 1.0))
        # Rows are units by categories. `labels` has 1 at a person's label, `to_categories` the
        # label's weighted distance from each category: the product sums distances of two people.
        # From these sums goes the mean distance on every unit that both people labelled.
        labels = sparse.csr_array((ones, (unit * q + code, person)), (n * q, people))
        cells = ((unit * q)[:, None] + np.arange(q)).ravel(), np.repeat(person, q)
        weighted = (distances[code] / (m - 1.0)[unit, None]).ravel()
        to_categories = sparse.csr_array((weighted, cells), (n * q, people))
        labelled = sparse.csr_array((ones, (unit, person)), (n, people))
        sums = labels.T @ to_categories
        sums -= labelled.T @ (sparse.diags_array(unit_mean) @ weight) @ labelled
        pairs = labelled.T @ weight @ labelled
        sums, pairs = (
            sparse.csr_array(matrix - sparse.diags_array(matrix.diagonal()))  # no pair with oneself
            for matrix in (sums, pairs)
        )
        mean = float(m @ unit_mean) / float(m.sum())
        return cls(sums, pairs, mean, float(totals @ distances @ totals) / float(totals.sum()) ** 2)

    def by_sides(self, side: Codes) -> tuple[float, float]:
        """Return the mean distance of two labels of one side, and that of labels of two sides, from
        people's `side` (people,).

        A side with the share s of the people has the weight s (1 - s), two sides the product of
        their shares, so that a noisier side raises both means equally.
        """
        is_member = (side[:, None] == np.arange(side.max() + 1)).astype(float)
        share = is_member.mean(axis=0)
        mean = ratio(is_member.T @ (self.sums @ is_member), is_member.T @ (self.pairs @ is_member))
        weight = np.where(np.isnan(mean), 0.0, np.outer(share, share))
        np.fill_diagonal(weight, 0.0)
        across = float(np.nansum(weight * mean) / max(weight.sum(), 1e-300))
        mean_inside = np.diag(mean)
        weight_inside = np.where(np.isnan(mean_inside), 0.0, weight.sum(axis=0))
        within = float(np.nansum(weight_inside * mean_inside) / max(weight_inside.sum(), 1e-300))
        return within, across


def _orders(stratum: Codes, n_permutations: int, seed: int) -> Codes:
    """Return orders of people (1 + permutations, people): first that of the data, then random ones
    that permute people within each `stratum` (people,).
    """
    rng = np.random.default_rng(seed)
    orders = np.tile(np.arange(len(stratum)), (n_permutations + 1, 1))
    for order in orders[1:]:  # the positions of a stratum get its people, in random order
        order[stratum.argsort()] = np.lexsort((rng.random(len(stratum)), stratum))
    return orders
