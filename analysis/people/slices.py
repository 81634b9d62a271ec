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

    The functions that compute these add other rows, too, and set neither `at` nor notes: they write
    to other `ResultRows`, from which the main figures are copied to those of the view.
    """
    coded, kappa = view.coded, pairwise.deciding_kappa(view.coded)
    levels = pairwise.measurement_of(coded).alpha_levels
    metric = "ordinal" if "ordinal" in levels else levels[0]
    main_names = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    computed = ResultRows(view.rows.rubric, chance=view.rows.chance)
    computing_view = View.of(computed, coded, view.resamples)
    # Without this entry in its cache, the view would compute the means of all kappas.
    computing_view.cache[pairwise.KappaMeans] = pairwise.KappaMeans(coded, view.resamples, [kappa])
    add_group_rows(computing_view, ["humans"])
    pairwise.add_humans_rows(computing_view, names=["observed_agreement", kappa])
    add_ceiling_rows(computing_view)
    for row in computed.rows.values():
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
                    part, counts = view.on(coded.part(f"{column.name}={value}")), view.count(units)
                    about = About(a="humans", b=name, note=pairwise.few_units_note(counts))
                    part.add(BALANCED, accuracy(table), counts, reason=NO_UNITS, **about)
                    groups.append((part, counts, table, column_notes[code][k]))
            if len(groups) < 2:
                continue  # no other group to compare with
            for part, counts, table, note in groups:
                difference = accuracy(table) - accuracy(whole - table)
                about = About(a="humans", b=name, note=note)
                part.add("group_difference", difference, counts, reason=NO_UNITS, **about)


def _hits_above_mean(view: View, column: UnitColumn, reference: Codes) -> Parts:
    """Return what `significance.max_t` tests: a grader's hits in the groups of a column.

    A hit is 1 if the grader repeats the majority's category on a unit, else 0. Its outcome is the
    hit minus the share of hits in that category, and its mass 1 over the category's units. So all
    categories count equally, as in balanced accuracy: a group with more units of a harder category,
    or none of an easier one, is no different. Units are permuted within categories.
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
        mass[units, k] = 1.0 / n_units[categories]
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
MIN_GAIN = 0.1  # least gain of kappa within sides over that across them of practical interest
_PERMUTATIONS, _MAX_PAIRS = 499, 50_000_000
"""Permutations of the test. If there are more than `_MAX_PAIRS` of these times the pairs of people,
there are fewer permutations, but at least 99."""


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
        orders = _orders(stratum, n_permutations, seed)
        name, gain, public = _most_explaining(among, sides_by_column, orders)
        if public.p > level or gain < MIN_GAIN:
            break
        publics[name] = public
        # Other columns are then permuted within the sides of this one.
        stratum_and_side = np.stack([stratum, sides_by_column.pop(name)])
        stratum = np.unique(stratum_and_side, axis=1, return_inverse=True)[1].reshape(-1)
    return publics


def _most_explaining(
    among: _DistancesAmong, sides_by_column: dict[str, Codes], orders: Codes
) -> tuple[str, float, RaterColumn]:
    """Return the column that explains labels best, its gain of kappa beyond chance, and its p value
    and kappas, from `orders` (orders, people) of the people: first the data's, then permuted ones.
    """
    sides = sides_by_column.values()
    distances = np.array([[among.by_sides(side[order]) for side in sides] for order in orders])
    within, across = np.moveaxis(distances, -1, 0)  # (orders, columns)
    gain = (across - within) / among.chance  # of kappa within sides over that across them
    gain -= gain[1:].mean(axis=0)  # beyond chance: the mean of all orders but the data's
    spread = gain[1:].std(axis=0)  # (columns,)
    score = gain / np.where(spread > 1e-12, spread, np.inf)  # 0 for a gain that never varies
    best = int(score[0].argmax())
    p = float((score.max(axis=1) >= score[0, best]).mean())  # of the best of all columns
    # Distances are differences from the mean on their unit, which kappa's are not.
    kappas = 1.0 - (distances[0, best] + among.mean) / among.chance
    return list(sides_by_column)[best], float(gain[0, best]), RaterColumn(p, *kappas.tolist())


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


_STEPS = 20  # of their range that numbers are rounded to: many different ones need much memory


class _DistancesAmong(NamedTuple):
    """Distances of people's labels of the same unit, minus the mean distance on the unit.

    A pair of labels of a unit with m labels has the weight 1 / (m - 1): all labels count equally.
    """

    sums: Any  # weighted sums of the distances for every two people, sparse (people, people)
    pairs: Any  # summed weights of these pairs of labels, sparse (people, people)
    mean: float  # of the distances of two labels of a unit
    chance: float  # mean of the distances of any two labels

    @classmethod
    def of(cls, codes: Labels, coded: Coded) -> _DistancesAmong:
        """Return the distances among codes (units, people), which are some of those of `coded`."""
        from scipy import sparse

        unit, person = np.nonzero(codes >= 0)  # (labels,) each, like `code`
        code = codes[unit, person].astype(np.intp)
        distances = pairwise.measurement_of(coded).distances  # (q, q)
        if coded.is_number:
            point_of_code, point_values = coded.grid
            code = np.rint(_STEPS * point_values[point_of_code[code]]).astype(np.intp)
            steps = np.arange(_STEPS + 1) / _STEPS
            distances = np.abs(steps[:, None] - steps) ** (2 if coded.ordered == "quadratic" else 1)
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
        sums, pairs = labels.T @ to_categories - unit_means, labelled.T @ weight @ labelled
        sums, pairs = (
            sparse.csr_array(matrix - sparse.diags_array(matrix.diagonal()))  # no pair with oneself
            for matrix in (sums, pairs)
        )
        totals, mean = counts.sum(axis=0), float(m @ unit_mean) / float(m.sum())
        return cls(sums, pairs, mean, float(totals @ distances @ totals) / float(totals.sum()) ** 2)

    def by_sides(self, side: Codes) -> tuple[float, float]:
        """Return the mean distances of labels within and across sides, by `side` (people,).

        Two sides with the shares s and t of the people have the weight s t across. One side has the
        weight s (1 - s) within, its total across, so that a noisier side raises both means equally.
        """
        is_member = (side[:, None] == np.arange(side.max() + 1)).astype(float)  # (people, sides)
        share = is_member.mean(axis=0)
        mean = ratio(is_member.T @ (self.sums @ is_member), is_member.T @ (self.pairs @ is_member))
        weight = np.where(np.isnan(mean), 0.0, np.outer(share, share))  # like `mean` (sides, sides)
        np.fill_diagonal(weight, 0.0)
        across = float(np.nansum(weight * mean) / max(weight.sum(), 1e-300))
        mean_inside = np.diag(mean)
        weight_inside = np.where(np.isnan(mean_inside), 0.0, weight.sum(axis=0))
        within = float(np.nansum(weight_inside * mean_inside) / max(weight_inside.sum(), 1e-300))
        return within, across


def _orders(stratum: Codes, n_permutations: int, seed: int) -> Codes:
    """Return orders (1 + permutations, people): the data's, and random ones within each stratum."""
    rng = np.random.default_rng(seed)
    orders = np.tile(np.arange(len(stratum)), (n_permutations + 1, 1))
    for order in orders[1:]:  # the positions of a stratum get its people, in random order
        order[stratum.argsort()] = np.lexsort((rng.random(len(stratum)), stratum))
    return orders
