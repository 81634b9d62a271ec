"""Main figures repeated: in parts of the sample, for some of the humans, with other clusters.

A grader can agree well overall and fail the units about one group, source or topic. For every value
of a units column: balanced accuracy against the majority of humans (as in Tables 4 and 12 of Feng,
Park, Liu & Tsvetkov 2023), and the group's difference from the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.pairs import (
    KappaMeans,
    add_humans_rows,
    alpha_levels,
    deciding_kappa,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import ratio
from evenhand.analysis.bootstrap.significance import Parts, max_t_notes
from evenhand.analysis.labels.encoding import ALL_RATERS, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.units import UnitColumn, check_values
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.people.ceiling import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, DataFrame
from evenhand.analysis.writer import About, RatedView, RubricView, View
from evenhand.errors import InputError

FEW_UNITS = 30
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


def add_all_raters_rows(view: RubricView, everyone: LabelMatrix) -> None:
    """Add the main figures with the excluded raters among the humans: subset `raters=all`.
    `everyone` are the labels with theirs.
    """
    labels, frequency = everyone.folded()
    shared = view.request.resampled(frequency, labels.weight)
    for coded in labels.views:
        add_main_rows(View.of(view.rows, replace(coded, subset=coded.part(ALL_RATERS)), shared))


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
