"""A wide CSV for R: a row for each unit, a column for each rater, NA where there is no label."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.writers.material import (
    TEXTS,
    Made,
    Material,
    combined,
    not_carried,
)
from evenhand.study.tables.formats import csv_bytes, guarded

if TYPE_CHECKING:
    import pandas as pd

MISSING = "NA"
_ORDER = ("human", "adjudicator", "model")


def wide(material: Material) -> Made:
    """Make a CSV: `unit_id`, `rubric` where there are several, the units' columns, then the raters,
    people first. Texts that were rated are left out; a cell that a spreadsheet would run is
    guarded.

    Read it in R with `read.csv(FILE, check.names = FALSE)`.
    """
    import pandas as pd

    rows = material.combined
    if (rows["label"] == MISSING).any():
        raise InputError(f"a label is {MISSING!r}, which R reads as missing; rename it before")
    keys = ["unit_id", "rubric"] if rows["rubric"].nunique() > 1 else ["unit_id"]
    raters = _raters(rows)
    about = material.units.drop(columns=[name for name in TEXTS if name in material.units])
    if again := [name for name in (*about.columns, "rubric") if name in raters]:
        raise InputError(f"a rater and a column of the units are both called {again[0]!r}")
    table = rows.pivot(index=keys, columns="rater_id", values="label")[raters].reset_index()
    table = about.merge(table, on="unit_id", how="right")
    table = table[[*keys, *(name for name in table if name not in keys)]]
    table = table.astype(object).where(table.notna() & (table != ""), MISSING)
    table.columns = pd.Index([guarded(str(name)) for name in table])
    lost = not_carried(material, "A wide table", ())
    return Made({"": csv_bytes(table)}, len(table), [*combined(material), *lost])


def _raters(rows: pd.DataFrame) -> list[str]:
    kinds = rows.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"].to_dict()
    return sorted(map(str, kinds), key=lambda rater: (_ORDER.index(kinds[rater]), rater))
