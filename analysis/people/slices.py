"""Main figures repeated: in parts of the sample, for some of the humans, with other clusters.

A grader can agree well overall and fail the units about one group, source or topic. For every value
of a units column: balanced accuracy against the majority of humans (as in Tables 4 and 12 of Feng,
Park, Liu & Tsvetkov 2023), and the group's difference from the rest.

*Publics*: annotators of two sides may read items in their own ways, and kappa among all of them is
then low although the rubric is clear. A column of annotators explains their labels where labels of
two sides lie further apart than both sides' own: the component between groups of Rao's quadratic
entropy (1982), to which a side that is merely noisier adds nothing. Each pair of labels counts by
how far it differs from the mean pair of its item, as sides may have labelled other items. The
columns of annotators are permuted together; the largest standardised component adjusts for the
number of columns, and of values in each (Westfall & Young 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.pairs import (
    KappaMeans,
    add_humans_rows,
    alpha_levels,
    deciding_kappa,
    distances,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.bootstrap.significance import Parts, max_t_notes
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import MOST_SIDES, Coded, Public, UnitColumn, check_values
from evenhand.analysis.people.comparison import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.statistics import Remark, join_notes
from evenhand.analysis.types import Array, Codes, DataFrame, Labels
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError

FEW_UNITS = 30
SIDE_KAPPA = "side_kappa"
GAP = 0.1
"""Least gain of kappa within sides over that across them: less matters to nobody."""
_SHUFFLES, _STEPS = 499, 20
_MOST_PAIRS = 50_000_000
"""Pairs of people that all shuffles look at; of more there are fewer shuffles, 99 at least."""
BALANCED = "group_balanced_accuracy"


def add_main_rows(view: View, *, at: str = "", note: str = "") -> None:
    """Add the humans' agreement, the graders' agreement with them, and the ceiling differences. The
    statistics are `observed_agreement`, the deciding kappa and alpha at the scale's level.
    """
    coded, kappa = view.coded, deciding_kappa(view.coded)
    levels = alpha_levels(coded)
    metric = "ordinal" if "ordinal" in levels else levels[0]
    main = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    figures = View.of(ResultRows(view.rows.rubric, chance=view.rows.chance), coded, view.resamples)
    figures.known[KappaMeans] = KappaMeans(coded, view.resamples, [kappa])
    add_group_rows(figures, ["humans"])
    add_humans_rows(figures, names=main[:2])
    add_ceiling_rows(figures)
    for row in figures.rows.rows.values():
        if row["statistic"] in main:
            interval = Interval(row["estimate"], row["low"], row["high"], row["remarks"])
            units = row["n_units"], row["n_clusters"]
            about = join_notes(_few(units), note)
            of = About(a=row["rater_a"], b=row["rater_b"], at=at, note=about)
            view.add(row["statistic"], interval, units, **of)


def add_slice_rows(view: RubricView) -> None:
    """Add the main figures in every slice of the units, and `slice_difference` of every grader."""
    coded, columns = view.coded, view.labels.columns(view.request.settings.slices)
    for part, chosen in (part for column in columns for part in column.parts()):
        kept = view.resamples.only(np.unique(coded.clusters[chosen]))
        add_main_rows(View.of(view.rows, coded.only(chosen, coded.part(part)), kept))
    add_slice_difference_rows(view, columns)


def add_slice_difference_rows(view: View, columns: Sequence[UnitColumn]) -> None:
    """Add `slice_difference`: a grader's mean agreement with humans over the units of a slice minus
    that over the rest (see `unit_agreement`). All slices, columns and graders of the view are
    tested together (see `max_t`).
    """
    coded, graders = view.coded, view.coded.members("model")
    agreement, held = np.zeros((2, len(coded.codes), len(graders)))
    for k, grader in enumerate(graders):
        agreement[:, k], held[:, k] = unit_agreement(coded, grader)
    tested = max_t_notes([view.parts(agreement, held, column.codes) for column in columns])
    for column, notes in zip(columns, tested, strict=True):
        inside = column.codes[:, None] == np.arange(len(column.values))
        for k, grader in enumerate(graders):
            sums = view.sums(inside * held[:, [k]], inside * agreement[:, [k]])
            size, agreed = np.split(sums, 2, axis=1)
            rest = (sums_of.sum(axis=1, keepdims=True) - sums_of for sums_of in (agreed, size))
            values = ratio(agreed, size) - ratio(*rest)
            for code, value in enumerate(column.values):
                units = view.count(inside[:, code] & (held[:, k] > 0))
                note = join_notes(_few(units), notes[code][k])
                about = About(a="humans", b=coded.raters[grader], note=note)
                at, why = view.on(coded.part(f"{column.name}={value}")), Remark("no_pairable_units")
                at.add("slice_difference", values[:, code], units, reason=why, **about)


def unit_agreement(coded: Coded, grader: int) -> tuple[Array, Array]:
    """Return a grader's mean agreement with the humans of each unit (units,), and 1 where there is
    any, else 0. The agreement of two labels is 1 or 0; of ordered labels and numbers 1 minus their
    distance as a share of the largest, the linear weights of Cohen (1968).
    """
    counts, code = c.label_counts(coded, coded.people_beside(grader)), coded.codes[:, grader]
    if coded.is_number:
        values = np.asarray(coded.values)
        apart = np.abs(values[:, None] - values)
        weights = 1.0 - apart / max(float(apart.max(initial=0.0)), 1e-300)
    else:
        ordered = coded.level != "nominal"
        weights = c.agreement_weights(coded.q, "linear" if ordered else "identity")
    held = (counts.sum(axis=1) > 0) & (code >= 0)
    agreed = (counts * weights[np.maximum(code, 0)]).sum(axis=1)
    return np.where(held, agreed / np.maximum(counts.sum(axis=1), 1.0), 0.0), held.astype(float)


def members_of(
    raters: DataFrame | None, columns: Sequence[str], units: Sequence[str] = ()
) -> dict[str, frozenset[str]]:
    """Return the raters of every `column=value`. `units` are the columns that units are sliced by.

    Raises InputError where the table or a column is missing, a rater is listed twice, or a column
    is sliced by for units too.
    """
    if not columns:
        return {}
    if raters is None or "rater_id" not in raters:
        raise InputError(
            "slicing by raters needs a table of raters with a column rater_id; give it"
        )
    again = raters["rater_id"].duplicated()
    if again.any():
        who = raters.loc[again, "rater_id"].iloc[0]
        raise InputError(f"raters: {who!r} stands more than once; keep one row for each rater")
    members: dict[str, frozenset[str]] = {}
    for column in columns:
        if column in units:
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
    """Add the main figures with only the humans of every subgroup."""
    coded = view.coded
    for name, members in view.request.people.items():
        kinds = tuple(
            "left out" if kind == "human" and rater not in members else kind
            for rater, kind in zip(coded.raters, coded.kinds, strict=True)
        )
        humans = kinds.count("human")
        if humans:
            part = replace(coded, kinds=kinds, subset=coded.part(name))
            note = "1 human" if humans == 1 else ""
            add_main_rows(View.of(view.rows, part, view.resamples), note=note)


def publics_of(
    coded: Coded, raters: DataFrame | None, level: float, seed: int
) -> dict[str, Public]:
    """Return the columns of a table of raters in which sides of two humans or more differ: p, that
    labels have nothing to do with the column, adjusted for all columns, is at most `level`, and
    kappa is `GAP` or more higher within sides than across. Beyond the column that explains most,
    others must do so within its sides: two columns that go together are one finding. Columns of
    more than `MOST_SIDES` values are not looked at.
    """
    humans, groups = list(coded.members("human")), dict[str, Codes]()
    if raters is None or "rater_id" not in raters or raters["rater_id"].duplicated().any():
        return {}
    table = raters.set_index(raters["rater_id"].astype(str)).drop(columns="rater_id")
    table = table.reindex([coded.raters[human] for human in humans])
    for name in table:
        cells = table[name].fillna("").astype(str)
        size = cells[cells != ""].value_counts()
        if len(size) <= MOST_SIDES and (size >= 2).sum() >= 2:
            large = cells.where(cells.map(size) >= 2, "")
            groups[str(name)] = UnitColumn.of(str(name), large.tolist()).codes
    held = coded.codes[:, humans]
    held = held[(held >= 0).sum(axis=1) >= 2]
    publics, alike = dict[str, Public](), np.zeros(len(humans), dtype=np.intp)
    if not groups or not len(held):
        return publics
    sums, pairs, usual, chance = _distances_among(held, coded)
    while groups:
        shuffles = int(np.clip(_MOST_PAIRS // max(sums.nnz, 1), 99, _SHUFFLES))
        rng = np.random.default_rng(seed)
        orders = np.tile(np.arange(len(alike)), (shuffles + 1, 1))
        for order in orders[1:]:
            order[alike.argsort()] = np.lexsort((rng.random(len(alike)), alike))
        of_each = np.array(
            [[_by_sides(sums, pairs, of[column]) for of in groups.values()] for column in orders]
        )
        gain = (of_each[..., 1] - of_each[..., 0]) / chance
        gain -= gain[1:].mean(axis=0)
        spread = gain[1:].std(axis=0)
        score = gain / np.where(spread > 1e-12, spread, np.inf)
        best = int(score[0].argmax())
        p = float((score.max(axis=1) >= score[0, best]).mean())
        if p > level or not gain[0, best] >= GAP:
            break
        name = list(groups)[best]
        publics[name] = Public(p, *(1.0 - (of_each[0, best] + usual) / chance).tolist())
        both = np.stack([alike, groups.pop(name)])
        alike = np.unique(both, axis=1, return_inverse=True)[1].reshape(-1)
    return publics


def _distances_among(held: Labels, coded: Coded) -> tuple[Any, Any, float, float]:
    """Sums of distances of every two people's labels, and how many pairs of labels they have, each
    (people, people), sparse, from codes (units, people); the mean distance, and by chance. A pair
    counts 1 / (m - 1) in a unit of m labels, and by how much its distance is above the unit's mean.
    """
    from scipy import sparse

    (unit, person), m = np.nonzero(held >= 0), (held >= 0).sum(axis=1).astype(float)
    code, apart = held[unit, person].astype(np.intp), distances(coded)
    if coded.is_number:  # to a twentieth of their range: many points would cost much memory
        place, at = coded.grid
        code = np.rint(_STEPS * at[place[code]]).astype(np.intp)
        steps = np.arange(_STEPS + 1) / _STEPS
        apart = np.abs(steps[:, None] - steps) ** (2 if coded.ordered == "quadratic" else 1)
    (n, people), q, ones = held.shape, len(apart), np.ones(len(unit))
    counts = np.bincount(unit * q + code, minlength=n * q).reshape(n, q).astype(float)
    usual, share = ((counts @ apart) * counts).sum(axis=1) / (m * (m - 1.0)), counts.sum(axis=0)
    weight = sparse.diags_array(1.0 / (m - 1.0))
    given = sparse.csr_array((ones, (unit * q + code, person)), (n * q, people))
    cells = (unit * q)[:, None] + np.arange(q)
    far = (apart[code] / (m - 1.0)[unit, None]).ravel(), (cells.ravel(), np.repeat(person, q))
    shared = sparse.csr_array((ones, (unit, person)), (n, people))
    sums = given.T @ sparse.csr_array(far, (n * q, people))
    sums -= shared.T @ (sparse.diags_array(usual) @ weight) @ shared
    both = sums, shared.T @ weight @ shared
    alone = (sparse.csr_array(matrix - sparse.diags_array(matrix.diagonal())) for matrix in both)
    chance = float(share @ apart @ share) / float(share.sum()) ** 2
    return (*alone, float(m @ usual) / float(m.sum()), chance)


def _by_sides(sums: Any, pairs: Any, group: Codes) -> tuple[float, float]:
    """The mean distance of two labels of one group (people,) and of two, from sums of distances and
    numbers of pairs (people, people). Of shares s of the people, a group counts s(1 - s), and two
    the product of theirs, so that a group that is merely noisier raises both alike.
    """
    member = (group[:, None] == np.arange(group.max() + 1)).astype(float)
    mean = ratio(member.T @ (sums @ member), member.T @ (pairs @ member))
    weight = np.outer(share := member.mean(axis=0), share)
    np.fill_diagonal(weight, 0.0)
    inside, weight = np.diag(mean), np.where(np.isnan(mean), 0.0, weight)
    each = np.where(np.isnan(inside), 0.0, weight.sum(axis=0))
    parts = ((each, inside), (weight, mean))
    within, across = (float(np.nansum(w * d) / max(w.sum(), 1e-300)) for w, d in parts)
    return within, across


def add_side_kappa_rows(view: RubricView) -> None:
    """Add `side_kappa` of humans within and across the sides (at = "column=within") of every column
    that explains their labels: agreement beyond chance, by the weights of the deciding kappa, as if
    all sides had labelled the same items.
    """
    for column, public in view.request.publics.items():
        for at, kappa in (("within", public.within), ("across", public.across)):
            note = Remark("sides_differ", (public.p,))
            units = view.coded.labelled[:, view.coded.members("human")].sum(axis=1) > 1
            view.add(SIDE_KAPPA, kappa, units, a="humans", at=f"{column}={at}", note=note)


def add_other_cluster_rows(view: RatedView) -> None:
    """Add the main figures with intervals from resampling other clusters: at = "cluster=COLUMN".
    Only whole clusters have a weight, which others mix: of weighted ones there are none.
    """
    request, labels = view.request, view.labels
    column = request.settings.sensitivity_cluster
    if not column or labels.weight is not None:
        return
    # Keep the verdicts: folds of these clusters would give other thresholds.
    other = encode(view.readings, labels.scale, request.units, column)
    others, frequency = replace(other, thresholds=labels.thresholds).folded()
    shared = request.resampled(frequency)
    for coded in others.views:
        add_main_rows(View.of(view.rows, coded, shared), at=f"cluster={column}")


def _few(units: tuple[int, int]) -> str:
    return f"fewer than {FEW_UNITS} items" if units[0] < FEW_UNITS else ""


def add_group_performance_rows(view: View, columns: Sequence[UnitColumn]) -> None:
    """Add performance by group for every grader and column, against the majority of humans.

    In each group (subset = "column=value") `group_balanced_accuracy`, and `group_difference`: this
    minus that of all other groups' units, tested together for all groups, columns and graders (see
    `_tested`).
    """
    coded, humans = view.coded, view.coded.members("human")
    if not humans:
        return
    reference = c.majority_codes(c.label_counts(coded, humans))
    notes = max_t_notes([_tested(view, column, reference) for column in columns])
    q, why = coded.q, Remark("no_pairable_units")
    for k, grader in enumerate(coded.members("model")):
        grades, about = coded.codes[:, grader], About(a="humans", b=coded.raters[grader])
        for column, of_column in zip(columns, notes, strict=True):
            both = (reference >= 0) & (grades >= 0) & (column.codes >= 0)
            cells = np.zeros((len(grades), q * q))
            cells[np.flatnonzero(both), (reference * q + grades)[both]] = 1.0
            every, tables = view.sums(cells).reshape(-1, q, q), {}
            for part, chosen in column.parts():
                units = both & chosen
                if units.any():
                    tables[part] = units, view.sums(cells * units[:, None]).reshape(-1, q, q)
            for part, (units, table) in tables.items():
                about["note"], out = _few(view.count(units)), view.on(coded.part(part))
                out.add(BALANCED, c.balanced_accuracy(table), units, reason=why, **about)
            for part, (units, table) in tables.items() if len(tables) > 1 else ():
                apart = c.balanced_accuracy(table) - c.balanced_accuracy(every - table)
                code = column.values.index(part.removeprefix(f"{column.name}="))
                about["note"], out = of_column[code][k], view.on(coded.part(part))
                out.add("group_difference", apart, units, reason=why, **about)


def _tested(view: View, column: UnitColumn, reference: Codes) -> Parts:
    """Return what `max_t` tests: whether a grader repeats the majority's category on a unit, minus
    how often it repeats that category in all groups.

    All categories count equally, as in balanced accuracy. So a group does not differ for having
    more units of a harder category, or none of an easier one; single units change places only with
    others of their category.
    """
    coded, graders = view.coded, list(view.coded.members("model"))
    outcome, mass = np.zeros((2, len(reference), len(graders)))
    for k, grader in enumerate(graders):
        grades = coded.codes[:, grader]
        units = np.flatnonzero((reference >= 0) & (grades >= 0) & (column.codes >= 0))
        right, wanted = grades[units] == reference[units], np.eye(coded.q)[reference[units]]
        cells = np.zeros((len(reference), 2 * coded.q))
        cells[units] = np.hstack([wanted * right[:, None], wanted])
        hits, of = np.split(view.sums(cells)[0], 2)
        outcome[units, k] = right - ratio(hits, of)[reference[units]]
        mass[units, k] = 1.0 / of[reference[units]]
    return view.parts(outcome, mass, column.codes, reference)
