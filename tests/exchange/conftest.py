"""Files of JSON, as the tests of readers write them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Wrote = Callable[..., Path]
"""Writes what is given into a file of this name, by default f.json; .jsonl gets a line for each."""


@pytest.fixture
def wrote(tmp_path: Path) -> Wrote:
    def write(content: Any, name: str = "f.json") -> Path:
        file = tmp_path / name
        lines = content if file.suffix == ".jsonl" else [content]
        file.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
        return file

    return write
