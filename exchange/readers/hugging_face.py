"""Hugging Face datasets: the folder of `save_to_disk`, or of a repository with Parquet files, and a
single Parquet or Arrow file of Argilla, or of votes between two models.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.exchange.readers.argilla import (
    items_of_dataset,
    questions_in,
    rows_of_dataset,
)
from evenhand.exchange.readers.items import ItemTable
from evenhand.exchange.readers.pair_votes import answers, are_votes, have_answers, votes
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import (
    MOST_BYTES,
    Source,
    Written,
    columns_of,
    inside,
    label_cell,
)
from evenhand.study.tables.formats import FIRST_ROW, cell_text
from evenhand.study.tables.limits import check_arrow, check_parquet
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

_SUFFIXES = (".arrow", ".parquet")
_OURS = "ratings.parquet"
"""The one of several tables that has ratings, in a folder that evenhand wrote."""
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")


def recognises(source: Source) -> bool:
    if source.path.is_dir():
        return bool(_files(source.path))
    if source.path.suffix.casefold() == ".arrow":
        return source.head.startswith(_ARROW)
    names = columns_of(source)
    return bool(questions_in(names)) or are_votes(names)


def read(source: Source) -> Export:
    """A table, long or wide, as in a CSV file, labels by name; or Argilla's records."""
    columns, records, files = _dataset(source)
    if questions := questions_in(columns):
        return rows_of_dataset(source, records, questions)
    if are_votes(columns):
        return votes(source, records)
    return Export(_frame(columns, records), [written("exchange.hugging_face", files=files)])


def items(source: Source) -> ItemTable | None:
    """A row is an item, with the columns of a CSV file; or Argilla's records, or answers that were
    compared.
    """
    if not recognises(source):
        return None
    columns, records, files = _dataset(source)
    if questions_in(columns):
        return items_of_dataset(source, records)
    if have_answers(columns):
        return answers(source, records)
    notes = [written("exchange.hugging_face", files=files)]
    return ItemTable(_frame(columns, records), notes)


def _frame(columns: list[str], records: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    cells = {name: [label_cell(each[name]) for each in records] for name in columns}
    return pd.DataFrame(cells, index=index, dtype=str)


def _dataset(source: Source) -> tuple[list[str], list[dict[str, Any]], int]:
    """The columns and rows of the largest table among the files, and how many files there are."""
    files = _files(source.path) if source.path.is_dir() else [source.path]
    if not files:
        raise InputError(f"{source.name} holds no Arrow and no Parquet file")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    tables: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    try:
        for file in files:
            table = _table(file)
            tables[tuple(table.column_names)].append(_records(table, file))
    except InputError:
        raise
    except Exception as fault:  # pyarrow raises many kinds for a file that is damaged
        kind = type(fault).__name__
        raise InputError(f"{source.name}: {file.name} cannot be read ({kind})") from None
    columns, parts = max(tables.items(), key=lambda each: sum(map(len, each[1])))
    return list(columns), [record for part in parts for record in part], len(files)


def _files(folder: Path) -> list[Path]:
    """The data of a folder: in it, in `data`, or in a folder for each split or configuration."""
    if (folder / _OURS).is_file():
        return [folder / _OURS]
    return [
        path
        for pattern in ("*", "*/*", "*/*/*")
        for path in sorted(folder.glob(pattern))
        if path.suffix.casefold() in _SUFFIXES and path.is_file() and "cache-" not in path.name
    ]


def _table(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    if file.suffix.casefold() != ".arrow":
        check_parquet(file)
        return parquet.read_table(file)
    with pa.memory_map(str(file)) as stream:
        is_file = file.read_bytes()[:6] == b"ARROW1"
        opened = pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream)
        table = opened.read_all()
        check_arrow(table, file.name)
        return table


def _records(table: Any, file: Path) -> list[dict[str, Any]]:
    """The rows as Python has them, numbers as texts, class labels by name."""
    names = _class_names(table, file)
    return [
        {
            name: _named(value, names[name]) if name in names else _plain(value)
            for name, value in row.items()
        }
        for row in table.to_pylist()
    ]


def _class_names(table: Any, file: Path) -> dict[str, list[str]]:
    """The names of a class label's numbers, by column, as `datasets` notes them."""
    noted = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    features = inside(json.loads(noted), "info", "features")
    beside = file.parent / "dataset_info.json"
    if features is None and beside.is_file():
        features = inside(json.loads(beside.read_text("utf-8")), "features")
    return {
        name: [str(each) for each in feature["names"]]
        for name, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, int):
        return Written(names[value]) if 0 <= value < len(names) else None
    return _plain(value)


def _plain(value: Any) -> Any:
    """A value as in a JSON file, numbers as texts; nested values as they are."""
    if isinstance(value, (list, dict, bool, str)) or value is None:
        return value
    return Written(cell_text(value))
