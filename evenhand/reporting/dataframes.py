"""Who is who in a DataFrame of labels: from long or wide to the rows of a ratings file."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.tables.formats import FIRST_ROW, cell_text
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts, with_unit_id

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.scales import ScaleOptions

Names = Hashable | Iterable[Hashable]
"""Several names or labels, or one alone."""
MAX_NAMED = 10


def as_texts(names: Names) -> tuple[str, ...]:
    """Names or labels as files have them.

    >>> as_texts([1, 2.0, "x"]), as_texts("gpt")
    (('1', '2', 'x'), ('gpt',))
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        return (cell_text(names),)
    return tuple(cell_text(each) for each in names)


def kinds_of(human: Names, model: Names) -> dict[str, str]:
    """The kind of each rater that was named. Raises InputError where one is named as both."""
    people, models = as_texts(human), as_texts(model)
    for rater in people:
        if rater in models:
            raise InputError(f"human and model both name {rater!r}; a rater is one of the two")
    return dict.fromkeys(people, "human") | dict.fromkeys(models, "model")


def units_as_texts(given: pd.DataFrame) -> pd.DataFrame:
    """A table of units, with texts for cells."""
    table = _as_in_a_file(given, "units")
    return _with_texts(table, table.columns)


def _as_in_a_file(given: pd.DataFrame, name: str) -> pd.DataFrame:
    """A table with texts for column names and unit ids, and rows numbered so that messages name
    them by the index.
    """
    import pandas as pd

    if not isinstance(given, pd.DataFrame):
        raise InputError(f"{name} must be a DataFrame; `evenhand.read(path)` reads a file")
    table = given.set_axis([cell_text(column) for column in given.columns], axis=1)
    again = table.columns[table.columns.duplicated()]
    if len(again):
        raise InputError(f"{name}: two columns are called {again[0]!r}; rename one")
    if table.index.name in ("unit_id", "item_id") and table.index.name not in table:
        table = table.reset_index()
    numbered = pd.api.types.is_integer_dtype(table.index) and table.index.is_unique
    rows = table.index if numbered else pd.RangeIndex(len(table))
    table = with_unit_id(table.set_axis(rows - FIRST_ROW, axis=0))
    return _with_texts(table, ["unit_id"]) if "unit_id" in table else table


def _with_texts(table: pd.DataFrame, columns: Iterable[Hashable]) -> pd.DataFrame:
    return table.assign(**{str(column): texts(table[column]) for column in columns})


def long_rows(
    given: pd.DataFrame, kinds: Mapping[str, str], name: str, scale: ScaleOptions
) -> tuple[pd.DataFrame, list[str]]:
    """The rows of a ratings file, and a note on raters who were left out.

    `given` is long, with a column `rater_id`, or wide, with a column for each rater in `kinds`,
    which says what the raters are.
    """
    table = _as_in_a_file(given, name)
    left_out: list[str] = []
    if "rater_id" in table:
        table, left_out = _named(table, kinds, name)
    else:
        if "unit_id" not in table:
            table.insert(0, "unit_id", texts(given.index.to_series()).to_numpy())
        table = _melted(table, kinds, name, scale)
    about = [column for column in table if column not in RATINGS_COLUMNS]
    return _with_texts(table, about), left_out


def _named(
    table: pd.DataFrame, kinds: Mapping[str, str], name: str
) -> tuple[pd.DataFrame, list[str]]:
    """A long table's rows of the raters who count: all of them, or those named."""
    if not kinds and "rater_kind" in table:
        return table, []
    if not kinds:
        raise InputError(
            f"{name} has no column 'rater_kind'; say who the raters are with human=[...] and "
            "model=[...]"
        )
    raters = texts(table["rater_id"])
    for rater in kinds:
        if not (raters == rater).any():
            raise InputError(f"{name} has no rater {rater!r}; it has {_listed(raters.unique())}")
    named = raters.map(kinds)
    own = texts(table["rater_kind"]) if "rater_kind" in table else named.fillna("")
    clash = named.notna() & (own != named)
    if clash.any():
        at = int(clash.to_numpy().argmax())
        raise InputError(
            f"{name}: {named.iloc[at]}= names {raters.iloc[at]!r}, whose rater_kind is "
            f"{own.iloc[at]!r}; correct one of the two"
        )
    counts = named.notna() | ~own.isin(["", *kinds.values()])
    found = table[counts].assign(rater_kind=own[counts])
    others = raters[~counts].unique()
    note = f"left out, as human and model do not name them: {_listed(others)}"
    return found, [note] if len(others) else []


def _melted(
    table: pd.DataFrame, kinds: Mapping[str, str], name: str, scale: ScaleOptions
) -> pd.DataFrame:
    """A wide table as a row for each label; a missing cell is none."""
    if not kinds:
        raise InputError(
            f"{name} has no column 'rater_id'; name the columns of the raters' labels with "
            "human=[...] and model=[...]"
        )
    for rater in kinds:
        if rater not in table:
            raise InputError(f"{name} has no column {rater!r}; it has {_listed(table.columns)}")
    about = [column for column in table if column not in kinds]
    for column in about:
        if column in RATINGS_COLUMNS and column not in ("unit_id", "rubric"):
            raise InputError(
                f"{name}: {column!r} means something else where a row is a rating; rename the "
                "column"
            )
    again = table.duplicated([column for column in about if column in ("unit_id", "rubric")])
    if again.any():
        raise InputError(
            f"{name}: unit {table.loc[again, 'unit_id'].iloc[0]!r} has two rows; a wide table has "
            "one for each unit"
        )
    cells = table.melt(about, list(kinds), "rater_id", "label", ignore_index=False)
    cells = cells[cells["label"].notna()]
    cells["label"] = texts(cells["label"])
    _check_cells(cells, name, scale)
    cells["rater_kind"] = cells["rater_id"].map(kinds)
    return cells.reset_index(drop=True)


def _check_cells(cells: pd.DataFrame, name: str, scale: ScaleOptions) -> None:
    """Refuse a label outside the categories declared, by the place that a wide table has it in."""
    outside = ~cells["label"].isin(["", *scale.categories])
    if scale.categories and outside.any():
        first = cells[outside].iloc[0]
        raise InputError(
            f"{name}, row {cells.index[outside][0] + FIRST_ROW}, column {first['rater_id']!r}: the "
            f"label {first['label']!r} is none of the declared categories "
            f"({', '.join(scale.categories)}); correct the label or declare it"
        )


def _listed(names: Iterable[object]) -> str:
    """The first few names, and how many more there are."""
    every = [str(each) for each in names]
    more = len(every) - MAX_NAMED
    listed = ", ".join(every[:MAX_NAMED])
    return f"{listed} and {more} more" if more > 0 else listed
