"""Files of JSON and archives, as the tests of readers write them."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wrote = Callable[..., Path]
"""Writes what is given into a file of this name, by default f.json; .jsonl gets a line for each."""


def written(file: Path, content: Any) -> Path:
    lines = content if file.suffix == ".jsonl" else [content]
    file.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return file


def packed(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


@pytest.fixture
def wrote(tmp_path: Path) -> Wrote:
    return lambda content, name="f.json": written(tmp_path / name, content)
