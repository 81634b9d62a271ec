"""The main figures again: in parts of the sample, for some of the people, with another cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evenhand.analysis.agreement.groups import add_group_rows
from evenhand.analysis.agreement.pairs import (
    KappaMeans,
    add_humans_rows,
    alpha_levels,
    deciding_kappa,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples, ratio
from evenhand.analysis.bootstrap.significance import benjamini_hochberg, bootstrap_p
from evenhand.analysis.labels.matrix import BINARY, Coded
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Code, join_notes
from evenhand.analysis.people.ceiling import CEILING, add_ceiling_rows
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


MAX_VALUES = 50
"""A column with more values than this does not divide a sample: it names its units."""
FEW_UNITS = 30
NO_LABELS_TO_COMPARE: Code = "no_pairable_units"


def add_main_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, *, at: str = "", note: str = ""
) -> None:
    """How far people agree, how far graders agree with them, and the ceiling differences.

    `observed_agreement`, the kappa that decides and alpha at the scale's level; `coded` says by its
    `subset` what the rows speak of.
    """
    kappa = deciding_kappa(coded)
    metric = "ordinal" if "ordinal" in alpha_levels(coded) else "nominal"
    main = ("observed_agreement", kappa, f"krippendorff_alpha_{metric}", CEILING)
    found = ResultRows(rows.rubric)
    kappas = KappaMeans(coded, resamples, [kappa])
    add_group_rows(found, kappas, ["humans"])
    add_humans_rows(found, coded, resamples, names=main[:2])
    add_ceiling_rows(found, kappas)
    for row in found.rows.values():
        if row["statistic"] not in main:
            continue
        few = f"fewer than {FEW_UNITS} units" if row["n_units"] < FEW_UNITS else ""
        rows.add(
            row["statistic"],
            Interval(row["estimate"], row["low"], row["high"], row["remarks"]),
            (row["n_units"], row["n_clusters"]),
            rater_a=row["rater_a"],
            rater_b=row["rater_b"],
            subset=row["subset"],
            at=at,
            note=join_notes(few, note),
        )


def add_slice_rows(
    rows: ResultRows, columns: Sequence[UnitColumn], coded: Coded, resamples: Resamples
) -> None:
    """The main figures in every slice of the units, and `slice_difference` of every grader.

    That is the share of pairs of labels, a person's and the grader's on one unit, that agree: in
    the slice less in the rest, in the same resamples. All of a reading's are screened together.
    """
    differences: list[_Difference] = []
    for column in columns:
        for code, value in enumerate(column.values):
            chosen = column.codes == code
            if not chosen.any():
                continue
            subset = _subset(f"{column.name}={value}", coded)
            kept, clusters = np.unique(coded.clusters[chosen], return_inverse=True)
            part = replace(
                coded, codes=coded.codes[chosen], clusters=clusters.reshape(-1), subset=subset
            )
            add_main_rows(rows, part, resamples.only(kept))
        differences += _differences(column, coded, resamples)
    _add_differences(rows, differences, resamples)


def members_of(
    raters: pd.DataFrame | None, columns: Sequence[str], units: Sequence[str] = ()
) -> dict[str, frozenset[str]]:
    """The raters of every `column=value`. `units` are the columns that units are sliced by.

    Raises InputError where the table or a column is missing, a rater stands twice, or a column is
    sliced by for units too.
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
    found: dict[str, frozenset[str]] = {}
    for column in columns:
        if column in units:
            raise InputError(
                f"{column!r} is a column of the units and of the raters to slice by; rename one"
            )
        if column not in raters or column == "rater_id":
            known = ", ".join(str(name) for name in raters if name != "rater_id")
            raise InputError(f"raters has no column {column!r} to slice by; it has {known}")
        cells = raters[column].fillna("").astype(str)
        check_values(column, sorted(set(cells) - {""}))
        for value, own in raters["rater_id"].groupby(cells, sort=True):
            if value != "":
                found[f"{column}={value}"] = frozenset(own.astype(str))
    return found


def check_values(column: str, values: Sequence[str]) -> None:
    """Refuse a column that has too many values to slice by."""
    if len(values) > MAX_VALUES:
        raise InputError(
            f"the column {column!r} has {len(values)} values, and at most {MAX_VALUES} can be "
            "sliced by; group them into fewer, or slice by another column"
        )


def add_rater_slice_rows(
    rows: ResultRows, coded: Coded, resamples: Resamples, raters: Mapping[str, frozenset[str]]
) -> None:
    """The main figures with only the humans of every subgroup."""
    for name, members in raters.items():
        kinds = tuple(
            "left out" if kind == "human" and rater not in members else kind
            for rater, kind in zip(coded.raters, coded.kinds, strict=True)
        )
        humans = kinds.count("human")
        if humans:
            part = replace(coded, kinds=kinds, subset=_subset(name, coded))
            add_main_rows(rows, part, resamples, note="1 human" if humans == 1 else "")


@dataclass(frozen=True)
class _Difference:
    """Replicates (rows,) of one grader's agreement in a slice less in the rest."""

    grader: str
    subset: str
    values: Array
    inside: tuple[int, int]


def _differences(column: UnitColumn, coded: Coded, resamples: Resamples) -> Iterator[_Difference]:
    humans = list(coded.members("human"))
    inside = column.codes[:, None] == np.arange(len(column.values))
    known = column.codes >= 0
    for grader in coded.members("model"):
        both = coded.labelled[:, humans] & coded.labelled[:, [grader]]
        agreed = both & (coded.codes[:, humans] == coded.codes[:, [grader]])
        pairs = np.where(known, both.sum(axis=1), 0)
        hits = np.where(known, agreed.sum(axis=1), 0)
        features = np.hstack([inside * hits[:, None], inside * pairs[:, None]])
        sums = resamples.totals(resamples.cluster_sums(coded.clusters, features))
        hit, pair = np.split(sums, 2, axis=1)
        rest = ratio(hit.sum(axis=1, keepdims=True) - hit, pair.sum(axis=1, keepdims=True) - pair)
        values = ratio(hit, pair) - rest
        for code, value in enumerate(column.values):
            yield _Difference(
                coded.raters[grader],
                _subset(f"{column.name}={value}", coded),
                values[:, code],
                resamples.count(coded.clusters, inside[:, code] & (pairs > 0)),
            )


def _add_differences(
    rows: ResultRows, differences: Sequence[_Difference], resamples: Resamples
) -> None:
    raw = np.array([bootstrap_p(each.values[: 1 + resamples.resamples]) for each in differences])
    tested = ~np.isnan(raw)
    adjusted = np.full(len(raw), np.nan)
    adjusted[tested] = benjamini_hochberg(raw[tested])
    for difference, p, corrected in zip(differences, raw, adjusted, strict=True):
        note = ""
        if not np.isnan(p):
            note = f"bootstrap p {p:.4g}; Benjamini-Hochberg p {corrected:.4g} of {tested.sum()}"
        few = difference.inside[0] < FEW_UNITS
        rows.add(
            "slice_difference",
            resamples.interval(
                difference.values, difference.inside[1], reason=NO_LABELS_TO_COMPARE
            ),
            difference.inside,
            rater_a="humans",
            rater_b=difference.grader,
            subset=difference.subset,
            note=join_notes(f"fewer than {FEW_UNITS} units" if few else "", note),
        )


def _subset(name: str, coded: Coded) -> str:
    return name + BINARY if coded.is_binary else name
