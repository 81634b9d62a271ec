"""What the units table says of the rated units: clusters, subjects, sides and slices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from evenhand.analysis.types import Codes
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd


class AboutUnits(NamedTuple):
    """A cell for each rated unit, "" where it is not known; `slices` are columns by name."""

    cluster: Sequence[str]
    subject: Sequence[str]
    pair: Sequence[str]
    side: Sequence[str]
    slices: Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class UnitColumn:
    """A column as codes (units,), -1 for empty cells, into its values in sorted order."""

    name: str
    values: tuple[str, ...]
    codes: Codes

    @classmethod
    def of(cls, name: str, cells: Sequence[str]) -> UnitColumn:
        """Encode cells. Codes follow the values, so that the order of rows never matters."""
        values = sorted(set(cells) - {""})
        position = {value: code for code, value in enumerate(values)} | {"": -1}
        codes = np.array([position[cell] for cell in cells], dtype=np.intp)
        return cls(name, tuple(values), codes)


def look_up(
    unit_ids: Sequence[str],
    units: pd.DataFrame | None,
    cluster: str = "pair",
    slices: Sequence[str] = (),
) -> AboutUnits:
    """What `units` says of the units with these ids.

    `cluster` is "pair" (the column `cluster_id`), "unit" (each its own) or the name of a column,
    `slices` are names of columns. Without a table, or without `cluster_id`, every unit is its own
    cluster. Raises InputError where a unit is not in the table, a column is not there, or a cluster
    is empty.
    """
    for column in [cluster] if cluster not in ("pair", "unit") else []:
        _check_column(column, units, "cluster by")
    for column in slices:
        _check_column(column, units, "slice by")
    nothing = [""] * len(unit_ids)
    if units is None:
        return AboutUnits(unit_ids, nothing, nothing, nothing, {})
    table = units.drop_duplicates("unit_id").set_index("unit_id")
    missing = [unit for unit in unit_ids if unit not in table.index]
    if missing:
        raise InputError(
            f"the units table has no row for unit {missing[0]!r}, which is rated "
            f"({len(missing)} such units); add it or leave the units table out"
        )
    rated = table.loc[list(unit_ids)]

    def cells(name: str) -> list[str]:
        return rated[name].astype(str).tolist() if name in rated else nothing

    column = "cluster_id" if cluster == "pair" else cluster
    alone = cluster == "unit" or column not in rated
    clusters = list(unit_ids) if alone else cells(column)
    if "" in clusters:
        empty = unit_ids[clusters.index("")]
        raise InputError(f"units: {column} of unit {empty!r} is empty; every unit needs a cluster")
    return AboutUnits(
        cluster=clusters,
        subject=cells("subject"),
        pair=cells("cluster_id"),
        side=cells("side"),
        slices={name: cells(name) for name in slices},
    )


def _check_column(column: str, units: pd.DataFrame | None, purpose: str) -> None:
    if units is None:
        raise InputError(
            f"the column {column!r} to {purpose} needs a units table; give one or leave it out"
        )
    if column not in units or column == "unit_id":
        known = ", ".join(str(name) for name in units if name != "unit_id")
        raise InputError(f"units has no column {column!r} to {purpose}; it has {known}")
