"""The columns that describe units: in the ratings, in a separate table, and those asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.missing import listed
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import RATINGS_COLUMNS, with_unit_id

if TYPE_CHECKING:
    import pandas as pd

_PURPOSES = {
    "slices": "slice by",
    "groups": "group by",
    "variants": "tell variants by",
    "cluster": "cluster by",
    "sensitivity_cluster": "cluster by",
}
"""The settings that name units columns, and what for."""


def with_units(beside: pd.DataFrame, units: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a table of units, which messages call `source`, plus the columns of units in the
    ratings.
    """
    units = with_unit_id(units)
    if "unit_id" not in units:
        raise InputError(
            f"{source}: the column 'unit_id' is missing (it has {listed(units.columns)}); give "
            "that name to the column that identifies the units"
        )
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{source}, row {row_number(units, at)}: unit {units['unit_id'].iloc[at]!r} has more "
            "than one row; keep one for each unit"
        )
    unknown = ~beside["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = beside.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{source} has no row for unit {unit!r}, which was rated; add it")
    own = [column for column in beside if column == "unit_id" or column not in units]
    return units.merge(beside[own], on="unit_id", how="left").fillna("")


def check_asked_for(
    settings: Mapping[str, Any], units: pd.DataFrame, rows: pd.DataFrame, source: str
) -> None:
    """Raise InputError where a setting names a column that no unit has, listing those there are.

    `source` is the name in messages of the table that should have it, `rows` are the ratings.
    """
    for setting, purpose in _PURPOSES.items():
        named = settings.get(setting) or ()
        for column in (named,) if isinstance(named, str) else named:
            if column in units or (setting == "cluster" and column in ("pair", "unit")):
                continue
            if column in rows and column not in RATINGS_COLUMNS:
                first = rows.groupby("unit_id", sort=False)[column].transform("first")
                unit = rows.loc[rows[column] != first, "unit_id"].iloc[0]
                raise InputError(
                    f"{source}: the column {column!r} differs between ratings of unit {unit!r}, so "
                    f"there is nothing to {purpose}; name a column with one value for each unit"
                )
            known = listed(name for name in units if name != "unit_id")
            there = f"it has {known}" if known else "it has no columns that describe units"
            raise InputError(f"{source} has no column {column!r} to {purpose}; {there}")
