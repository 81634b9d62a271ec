"""What a ratings file says of its units: their columns, and the one that names items they repeat.

Rows that repeat an item are no more evidence than one of them, so an item is a cluster. A column
names the items if some of its cells repeat and

- it is called so: `id`, `item`, `prompt`, `question` and others (`study.tables.columns`); or else
- it repeats as names and texts do: at least half of the rows share their cell with another row, and
  there are more than `MAX_VALUES` different cells, or `MIN_TEXTS` of them that are texts. Numbers
  and dates are no names, and a column of fewer values (a topic, a model) is a slice.

Of several the one with the fewest different cells counts, as the others' repeats lie within it.
Never an item is a column that is empty in more than a tenth of the rows, holds lists or nested
values, is named as an answer or as a fact about the labels, or is a function of the labels, as
their majority or their distribution is.
Where no column does, a table that is several copies of itself is known by its rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from evenhand.analysis.labels.units import MAX_VALUES
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import pattern_of
from evenhand.reporting.ratings_file.columns import is_fact, is_nested
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.columns import listed, names_items
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts, with_unit_id
from evenhand.texts import written

_PURPOSES = {
    "slices": "slice by",
    "groups": "group by",
    "variants": "tell variants by",
    "cluster": "cluster by",
    "sensitivity_cluster": "cluster by",
}
"""The settings that name units columns, and what for."""
MIN_FILLED = 0.9
_MOST_LOOKED_AT = 100
_ANSWER = re.compile(rf"(^|[_\W])({pattern_of('answer')})([_\W]|$)", re.I)
MIN_TEXTS = 10
TEXT_LENGTH = 20
"""Median length, in characters, from which different cells are texts."""
MIN_COPIED = 20
"""A table of fewer different rows may be several copies of itself by chance: that the counts of m
different rows are all multiples of one number has a chance of about 2 ** -m."""
COPIES = "copies"
"""The units column that numbers the rows of which a table holds several copies."""
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([T ].*)?|\d{1,2}:\d{2}.*")


def with_units(beside: pd.DataFrame, units: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return a table of units, which messages call `source`, plus the columns of units in the
    ratings.
    """
    units = with_unit_id(units)
    if "unit_id" not in units:
        raise InputError(
            f"{source}: the column 'unit_id' is missing (it has {listed(units.columns)}); give "
            "that name to the column that identifies the items"
        )
    again = units.duplicated("unit_id").to_numpy()
    if again.any():
        at = int(again.argmax())
        raise InputError(
            f"{source}, row {row_number(units, at)}: item {units['unit_id'].iloc[at]!r} has more "
            "than one row; keep one for each item"
        )
    unknown = ~beside["unit_id"].isin(units["unit_id"])
    if unknown.any():
        unit = beside.loc[unknown, "unit_id"].iloc[0]
        raise InputError(f"{source} has no row for item {unit!r}, which was rated; add it")
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
                    f"{source}: the column {column!r} differs between ratings of item {unit!r}, so "
                    f"there is nothing to {purpose}; name a column with one value for each item"
                )
            known = listed(name for name in units if name != "unit_id")
            there = f"it has {known}" if known else "it has no columns that describe units"
            raise InputError(f"{source} has no column {column!r} to {purpose}; {there}")


def clustered_by_items(
    units: pd.DataFrame, ratings: pd.DataFrame, cluster: str | None, options: ScaleOptions
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Return the units, the column that is their cluster (None: as in the settings), and notes.

    `cluster` is the one asked for, or None. Raises InputError where a cluster is named for units
    that are declared to be independent.
    """
    if options.independent and cluster not in (None, "unit"):
        one, other = options.spelled("cluster", cluster or ""), options.spelled("independent")
        raise InputError(f"{one} and {other} exclude each other; leave one of them out")
    if options.independent:
        return units, "unit", []
    if cluster not in (None, "pair") or "cluster_id" in units:
        return units, None, []
    said = {"independent": options.spelled("independent"), "cluster": options.spelled("cluster")}
    is_rated = units["unit_id"].isin(ratings["unit_id"].unique()).to_numpy()
    rated = units[is_rated]
    if name := item_column(rated, ratings):
        cells = texts(units[name])
        alone = "(" + units["unit_id"].astype(str) + ")"
        units = units.assign(**{name: cells.where(cells != "", alone)})
        items, rows = units.loc[is_rated, name].nunique(), len(rated)
        return units, name, [written("reading.items", column=name, items=items, rows=rows, **said)]
    if COPIES not in units and (copied := _copies(rated, ratings)) is not None:
        numbers = np.full(len(units), "", dtype=object)
        numbers[is_rated] = copied.astype(str)
        items = len(np.unique(copied))
        times = len(rated) // items
        note = written("reading.copies", times=times, items=items, **said)
        return units.assign(**{COPIES: numbers}), COPIES, [note]
    return units, None, []


def item_column(units: pd.DataFrame, ratings: pd.DataFrame) -> str | None:
    """The column that names items which several units share; None where there is none.

    >>> import pandas as pd
    >>> units = pd.DataFrame({"unit_id": list("1234"), "topic": list("aabb"), "Item": list("xyxy")})
    >>> item_column(units, pd.DataFrame({"unit_id": [], "label": []}))
    'Item'
    """
    named, repeating = {}, {}
    for column in map(str, units.columns):
        if column == "unit_id":
            continue
        cells = texts(units[column])
        counts = cells.value_counts(sort=False).drop("", errors="ignore")
        if len(counts) < 2 or counts.max() < 2 or counts.sum() < MIN_FILLED * len(units):
            continue
        if counts.index[:_MOST_LOOKED_AT].map(is_nested).all():
            continue
        if names_items(column):
            named[column] = len(counts)
        elif (
            not is_fact(column)
            and not _ANSWER.search(column)
            and 2 * counts[counts > 1].sum() >= len(units)
            and _are_names(counts.index)
        ):
            repeating[column] = len(counts)
    for found in (named, repeating):
        for column in sorted(found, key=lambda column: (found[column], column)):
            if not _is_of_labels(units, column, ratings):
                return column
    return None


def _is_of_labels(units: pd.DataFrame, column: str, ratings: pd.DataFrame) -> bool:
    """Return True if the labels of a unit, in whatever order, tell its cell in a column, where at
    least `MIN_TEXTS` units have the labels of another.
    """
    given = ratings[ratings["label"] != ""].sort_values("label")
    labels = given.groupby("unit_id")["label"].agg("\n".join)
    cells = texts(units[column]).set_axis(units["unit_id"].to_numpy())
    both = labels.index.intersection(cells.index)
    pairs = list(zip(labels[both], cells[both], strict=True))
    repeats = len(pairs) - len({pattern for pattern, _ in pairs})
    return repeats >= MIN_TEXTS and len(set(pairs)) == len({pattern for pattern, _ in pairs})


def _are_names(values: pd.Index) -> bool:
    """Return True if the different cells are numerous enough, or long enough, to be names."""
    if len(values) < MIN_TEXTS:
        return False
    if len(values) <= MAX_VALUES and values.str.len().to_series().median() < TEXT_LENGTH:
        return False
    others = ~(
        pd.to_numeric(values.to_series(), errors="coerce").notna().to_numpy()
        | values.str.fullmatch(_DATE)
    )
    return bool(others.any())


def _copies(units: pd.DataFrame, ratings: pd.DataFrame) -> np.ndarray | None:
    """Return the row that each unit is a copy of, (units,), if units and labels show that the table
    is several copies of a smaller one; else None.

    Equal rows of the smaller table cannot be told apart; it does not matter which copy is whose.
    """
    if len(units) < 2 * MIN_COPIED:
        return None
    given = ratings[["rubric", "rater_id", "label", "p_positive", "probabilities"]]
    place = pd.Index(units["unit_id"]).get_indexer(pd.Index(ratings["unit_id"]))
    key = np.zeros(len(units), dtype=np.uint64)
    # A sum, as a unit's ratings come in any order.
    np.add.at(key, place, pd.util.hash_pandas_object(given, index=False).to_numpy())
    if about := [name for name in units if name != "unit_id"]:
        own = pd.util.hash_pandas_object(units[about].astype(str), index=False)
        key = np.asarray(key * np.uint64(31) + own.to_numpy(), dtype=np.uint64)
    _, group, counts = np.unique(key, return_inverse=True, return_counts=True)
    times = int(np.gcd.reduce(counts))
    if times < 2 or len(counts) < MIN_COPIED:
        return None
    nth = pd.Series(group).groupby(group).cumcount().to_numpy()
    start = np.concatenate([[0], np.cumsum(counts // times)[:-1]])
    return np.asarray(start[group] + nth % (counts // times)[group])
