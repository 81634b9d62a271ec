"""The reader for a file: the one that is named, or the first that recognises its content."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from evenhand.errors import InputError
from evenhand.exchange.readers import (
    argilla,
    deepeval,
    doccano,
    excel,
    hugging_face,
    inspect_logs,
    label_studio,
    langfuse,
    langsmith,
    mlflow,
    pair_votes,
    potato,
    prodigy,
    promptfoo,
)
from evenhand.exchange.readers.rows import Export
from evenhand.exchange.readers.source import Source
from evenhand.study.tables.formats import read_table

TABLE = "table"
"""CSV with any delimiter, JSONL and Parquet as `study.tables` reads them."""


class Reader(Protocol):
    """A module that reads one kind of file."""

    def recognises(self, source: Source) -> bool:
        """Return True if the content is of this kind. Never raises."""

    def read(self, source: Source) -> Export:
        """All ratings. Raises InputError, one sentence, where they cannot be read."""


READERS: dict[str, Reader] = {
    "excel": excel,
    "inspect": inspect_logs,
    "label-studio": label_studio,
    "mlflow": mlflow,
    "langfuse": langfuse,
    "langsmith": langsmith,
    "promptfoo": promptfoo,
    "deepeval": deepeval,
    "argilla": argilla,
    "potato": potato,
    "prodigy": prodigy,
    "doccano": doccano,
    "pair-votes": pair_votes,
    "hugging-face": hugging_face,
}
"""Readers by the name for `--format`, tried in this order."""
FORMATS = (TABLE, *READERS)


def read_export(path: str | Path, form: str | None = None, *, several: bool = False) -> Export:
    """Read a file in the format named, else in the one that its content suggests; a file that no
    reader recognises is a table. With `several` an answer may be a list of labels. Raises
    InputError where it cannot be read, or is not of that format.
    """
    source = Source(Path(path), several=several)
    name = _named(form) if form else format_of(source)
    if name == TABLE or not source.path.exists():
        return Export(read_table(path))
    if form and not READERS[name].recognises(source):
        known = format_of(source)
        also = f"; it looks like {known}" if known != TABLE else ""
        raise InputError(f"{source.name} is not in the format {name}{also}")
    return READERS[name].read(source)


def _named(form: str) -> str:
    """The format of this name, however it is hyphenated. Raises InputError where there is none."""
    for name in FORMATS:
        if form.casefold().replace("_", "").replace("-", "") == name.replace("-", ""):
            return name
    raise InputError(f"there is no format {form!r}; use {', '.join(FORMATS)}")


def format_of(source: Source) -> str:
    """The name of the format that the content is in; `table` where no reader knows it."""
    known = (name for name, reader in READERS.items() if reader.recognises(source))
    return next(known, TABLE)
