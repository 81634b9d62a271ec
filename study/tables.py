"""The two tables that everything speaks, `ratings` and `units`, and the files they come in.

Reading keeps every cell as text, so that a label "01" stays "01". The index of a table that was
read says where each row stands, so that a message can name it: `row_number` counts as a person
does, in CSV with the header as row 1, elsewhere by lines or records.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from rubrics.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "FIRST_ROW",
    "RATINGS_COLUMNS",
    "RATING_KEY",
    "UNITS_COLUMNS",
    "read_rater_columns",
    "read_ratings",
    "read_table",
    "row_number",
    "validate_ratings",
    "write_table",
]

RATINGS_COLUMNS = (
    "unit_id",
    "rubric",
    "rater_id",
    "rater_kind",
    "label",
    "p_positive",
    "probabilities",
    "prob_method",
    "draw",
    "order",
    "unscored_reason",
    "seconds",
    "rubric_hash",
    "created_at",
)
RATING_KEY = ("unit_id", "rubric", "rater_id", "order", "draw")
UNITS_COLUMNS = ("unit_id", "cluster_id", "subject", "side")
RATER_KINDS = ("human", "model", "adjudicator")
PROB_METHODS = ("", "logprobs", "draws", "verbalised")
FIRST_ROW = 2
"""The row number of what has index 0: the first row below a header."""

RESERVED_RATERS = ("humans", "models", "all", "baseline:constant", "baseline:random")
"""Names that stand for groups and baselines in results."""
_LONGEST_CELL = 2**31 - 1
_REQUIRED = ("unit_id", "rater_id", "rater_kind", "label")
_NUMBERS = ("p_positive", "seconds")
_LARGE = 1_000_000
"""Bytes from which a plain CSV is read by the fast reader."""
_NOT_PLAIN = (b'"', b"\n\n", b"\n\r", b"\r\r")


def row_number(frame: pd.DataFrame | pd.Series, position: int) -> int:
    """The number of the row at a position, as a person who opens the file counts it."""
    return int(frame.index[position]) + FIRST_ROW


def read_table(path: str | Path) -> pd.DataFrame:
    """A CSV, JSONL or Parquet file (by extension) as text cells; a missing cell is "".

    Raises InputError where the file is absent, of another kind, not UTF-8, or has a broken row.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"there is no file {path.name} in {path.absolute().parent}")
    suffix = path.suffix.casefold()
    if suffix == ".csv":
        return _read_csv(path)
    if suffix in (".jsonl", ".ndjson"):
        return _read_jsonl(path)
    if suffix in (".parquet", ".pq"):
        return _read_parquet(path)
    raise InputError(f"{path.name}: the extension must be .csv, .jsonl or .parquet")


def write_table(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a table as CSV, JSONL or Parquet by extension, whole or not at all."""
    from study.files import atomic_write

    path = Path(path)
    suffix = path.suffix.casefold()
    if suffix == ".csv":
        content = frame.to_csv(index=False, lineterminator="\n").encode()
    elif suffix in (".jsonl", ".ndjson"):
        content = _jsonl(frame).encode()
    elif suffix in (".parquet", ".pq"):
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        content = buffer.getvalue()
    else:
        raise InputError(f"{path.name}: the extension must be .csv, .jsonl or .parquet")
    atomic_write(path, content)


def read_ratings(path: str | Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A ratings file as the `ratings` table and the units columns that came with it.

    `item_id` is accepted for `unit_id`. Columns that `ratings` does not know are units columns.
    """
    frame = read_table(path)
    name = Path(path).name
    if "unit_id" not in frame and "item_id" in frame:
        frame = frame.rename(columns={"item_id": "unit_id"})
    ratings = validate_ratings(frame, name)
    extra = [str(column) for column in frame if column not in RATINGS_COLUMNS]
    return ratings, _units_beside_ratings(frame, ["unit_id", *extra], name)


def read_rater_columns(path: str | Path) -> pd.DataFrame:
    """`rater_id` and the columns of a ratings file that say the same in all rows of each rater."""
    frame = read_table(path)
    extra = [str(name) for name in frame if name not in (*RATINGS_COLUMNS, "item_id")]
    first = frame.groupby("rater_id", sort=False)[extra].transform("first")
    own = [name for name in extra if (frame[name] == first[name]).all()]
    return frame[["rater_id", *own]].drop_duplicates("rater_id").reset_index(drop=True)


def validate_ratings(frame: pd.DataFrame, source: str = "ratings") -> pd.DataFrame:
    """The same rows with every `ratings` column, in the contract's types and order.

    Text columns hold "" where empty, `p_positive` and `seconds` hold NaN, `draw` is an integer from
    0. Raises InputError naming the first row that breaks a rule: a missing id, an unknown rater
    kind, a number that is none, probabilities that are no JSON object, a repeated key, or a rater
    of two kinds.
    """
    import pandas as pd

    for column in _REQUIRED:
        if column not in frame:
            raise InputError(
                f"{source}: the column {column!r} is missing (it has {_listed(frame)}); "
                f"{', '.join(_REQUIRED)} are required"
            )
    if not (pd.api.types.is_integer_dtype(frame.index) and frame.index.is_unique):
        frame = frame.reset_index(drop=True)
    table = pd.DataFrame(index=frame.index)
    for column in RATINGS_COLUMNS:
        given = frame[column] if column in frame else pd.Series("", index=frame.index, dtype=str)
        if column in _NUMBERS:
            table[column] = _numbers(given, column, source)
        elif column == "draw":
            table[column] = _draws(given, source)
        else:
            table[column] = _texts(given)
    _check_rows(table, source)
    return table


def _jsonl(frame: pd.DataFrame) -> str:
    """One object a line; numbers in full precision, which pandas' own writer cuts off."""
    cells = frame.astype(object).where(frame.notna(), None)
    return "".join(
        json.dumps(record, ensure_ascii=False) + "\n" for record in cells.to_dict("records")
    )


def _read_csv(path: Path) -> pd.DataFrame:
    import csv

    import pandas as pd

    large = _read_large_csv(path)
    if large is not None:
        return large
    csv.field_size_limit(_LONGEST_CELL)
    rows = csv.reader(io.StringIO(_utf8(path), newline=""), strict=True)
    try:
        header = next(rows, None)
        if not header:
            raise InputError(f"{path.name}: its first row is blank; it must name the columns")
        _check_header(header, path.name)
        body: list[list[str]] = []
        numbers: list[int] = []
        for number, row in enumerate(rows, start=FIRST_ROW):
            if not row:
                continue
            if len(row) != len(header):
                raise InputError(
                    f"{path.name}, row {number}: {len(row)} cells where the header has "
                    f"{len(header)}; quote cells that hold commas or line breaks"
                )
            body.append(row)
            numbers.append(number - FIRST_ROW)
    except csv.Error as error:
        raise InputError(f"{path.name}, line {rows.line_num}: {error}") from None
    return pd.DataFrame(body, columns=header, index=numbers, dtype=str)


def _read_large_csv(path: Path) -> pd.DataFrame | None:
    """A large plain file, many times as fast; None where anything about it asks for a closer look.

    Without quotes and blank lines there is one way to read a CSV, and a file that is not like that,
    or that has a broken row, is read by the careful reader, which knows what to say of it.
    """
    if path.stat().st_size < _LARGE:
        return None
    from pyarrow import ArrowInvalid, csv, string

    content = path.read_bytes()
    header = content[: content.find(b"\n")].decode("utf-8-sig", errors="replace").rstrip("\r")
    names = header.split(",")
    _check_header(names, path.name)
    if len(names) < 2 or any(mark in content for mark in _NOT_PLAIN):
        return None
    try:
        table = csv.read_csv(
            io.BytesIO(content),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            parse_options=csv.ParseOptions(quote_char=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, string())),
        )
    except ArrowInvalid:
        return None
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _check_header(header: list[str], name: str) -> None:
    seen: set[str] = set()
    for column in header:
        if column in seen:
            raise InputError(f"{name}: two columns are called {column!r}; rename one")
        seen.add(column)


def _read_jsonl(path: Path) -> pd.DataFrame:
    import pandas as pd

    records, numbers = [], []
    for number, line in enumerate(_utf8(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path.name}, line {number}: not valid JSON ({error})") from None
        if not isinstance(record, dict):
            raise InputError(f"{path.name}, line {number}: each line must be a JSON object")
        cells = {key: _cell(value) for key, value in record.items()}
        try:
            "".join(cells.values()).encode()
        except UnicodeEncodeError:
            raise InputError(f"{path.name}, line {number}: half a surrogate pair") from None
        records.append(cells)
        numbers.append(number - FIRST_ROW)
    return pd.DataFrame(records, index=numbers, dtype=str).fillna("")


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        frame = pd.read_parquet(path)
    except Exception as error:  # pyarrow raises many kinds for a file that is no Parquet
        raise InputError(f"{path.name} cannot be read as Parquet: {error}") from None
    cells = {column: frame[column].map(_cell).to_numpy() for column in frame}
    return pd.DataFrame(cells, index=range(1 - FIRST_ROW, len(frame) + 1 - FIRST_ROW), dtype=str)


def _utf8(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path.name}, line {row}: not UTF-8; save the file as UTF-8") from None


def _cell(value: object) -> str:
    if isinstance(value, str):
        return value
    if hasattr(value, "tolist"):  # numpy's scalars and arrays, as Parquet gives them
        value = value.tolist()
    if value is None or str(value) in ("nan", "NaN", "<NA>", "NaT"):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _texts(given: pd.Series) -> pd.Series:
    # Most tables were read as text already: a million cells need no second look.
    return given.fillna("") if given.dtype == "str" else given.map(_cell).astype(str)


def _numbers(given: pd.Series, column: str, source: str) -> pd.Series:
    import pandas as pd

    if pd.api.types.is_numeric_dtype(given):
        numbers = given.astype(float)
    else:
        texts = _texts(given)
        numbers = pd.to_numeric(texts.where(texts != ""), errors="coerce").astype(float)
        _refuse(numbers.isna() & (texts != ""), texts, column, source, "a number")
    bad = ~numbers.between(0, 1) if column == "p_positive" else numbers < 0
    wanted = "between 0 and 1" if column == "p_positive" else "0 or more"
    _refuse(bad & numbers.notna(), numbers.astype(str), column, source, wanted)
    return numbers


def _draws(given: pd.Series, source: str) -> pd.Series:
    texts = _texts(given).replace("", "0")
    distinct = texts.drop_duplicates()
    wanted = "a whole number from 0"
    _refuse(~distinct.str.fullmatch(r"\d{1,9}"), distinct, "draw", source, wanted)
    return texts.astype("int64")


def _refuse(bad: pd.Series, values: pd.Series, column: str, source: str, wanted: str) -> None:
    if bad.any():
        at = int(bad.to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(values, at)}: {column} is {values.iloc[at]!r}; "
            f"it must be {wanted}"
        )


def _check_rows(table: pd.DataFrame, source: str) -> None:
    for column in ("unit_id", "rater_id"):
        _refuse(table[column] == "", table[column], column, source, "filled in")
    _refuse(
        table["rater_id"].isin(RESERVED_RATERS),
        table["rater_id"],
        "rater_id",
        source,
        "another name: this one stands for a group or a baseline in results",
    )
    _refuse(
        ~table["rater_kind"].isin(RATER_KINDS),
        table["rater_kind"],
        "rater_kind",
        source,
        "human, model or adjudicator",
    )
    _refuse(~table["order"].isin(("", "ab", "ba")), table["order"], "order", source, "ab or ba")
    _refuse(
        ~table["prob_method"].isin(PROB_METHODS),
        table["prob_method"],
        "prob_method",
        source,
        "logprobs, draws, verbalised or empty",
    )
    filled = table.loc[table["probabilities"] != "", "probabilities"]
    broken = ~filled.map(_is_object).astype(bool)
    _refuse(broken, filled, "probabilities", source, "a JSON object")
    _check_keys(table, source)


def _check_keys(table: pd.DataFrame, source: str) -> None:
    keys = table[list(RATING_KEY)]
    again = keys.duplicated().to_numpy()
    if again.any():
        at = int(again.argmax())
        first = int((keys == keys.iloc[at]).all(axis=1).to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(keys, at)}: rater {keys['rater_id'].iloc[at]!r} has "
            f"already rated unit {keys['unit_id'].iloc[at]!r} in row {row_number(keys, first)}; "
            "keep one of the two, or number repeats in a column 'draw'"
        )
    kinds = table[["rater_id", "rater_kind"]].drop_duplicates()
    both = kinds["rater_id"].duplicated().to_numpy()
    if both.any():
        at = int(both.argmax())
        rater, kind = kinds.iloc[at]
        raise InputError(
            f"{source}, row {row_number(kinds, at)}: rater {rater!r} is {kind} here and another "
            "kind further up; give the two raters different ids"
        )


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _units_beside_ratings(frame: pd.DataFrame, columns: list[str], source: str) -> pd.DataFrame:
    """One row per unit. A column that differs between the rows of one unit speaks of the rating or
    the rater, not of the unit, and stays out - but a unit cannot lie in two clusters.
    """
    frame = frame[columns]
    first = frame.groupby("unit_id", sort=False).transform("first")
    constant = [column for column in columns[1:] if (frame[column] == first[column]).all()]
    if "cluster_id" in columns and "cluster_id" not in constant:
        at = int((frame["cluster_id"] != first["cluster_id"]).to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(frame, at)}: unit {frame['unit_id'].iloc[at]!r} has "
            f"cluster_id {frame['cluster_id'].iloc[at]!r} here and "
            f"{first['cluster_id'].iloc[at]!r} further up; a unit lies in one cluster"
        )
    return frame[["unit_id", *constant]].drop_duplicates("unit_id").reset_index(drop=True)


def _listed(names: Iterable[object]) -> str:
    return ", ".join(str(name) for name in names) or "no columns"
