"""Files that a lead uploads: never larger than declared, kept only as long as they are read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

MOST_MB = 50
TABLES = ["csv", "jsonl"]
OF_TOOLS = [*TABLES, "tsv", "json", "xlsx", "parquet", "arrow", "eval", "zip"]


@contextmanager
def written_down(
    kinds: Sequence[str] = TABLES, /, **files: UploadedFile | None
) -> Iterator[dict[str, Path | None]]:
    """The files in a folder of their own that is gone afterwards, each under the name it is given
    here: what the sender called it never becomes a path.

    Raises InputError where one is too large or of no known kind.
    """
    with tempfile.TemporaryDirectory(prefix="evenhand-upload-") as home:
        yield {name: _saved(Path(home), name, file, kinds) for name, file in files.items()}


def _saved(home: Path, name: str, file: UploadedFile | None, kinds: Sequence[str]) -> Path | None:
    if file is None:
        return None
    if file.size > MOST_MB * 1_000_000:
        raise InputError(
            f"the file of {name} is larger than {MOST_MB} MB; use the command line for it"
        )
    suffix = Path(file.name).suffix.lower()
    if suffix.removeprefix(".") not in kinds:
        raise InputError(
            f"the file of {name} is of no known kind; upload one of {', '.join(kinds)}"
        )
    path = home / f"{name}{suffix}"
    path.write_bytes(file.getbuffer())
    return path
