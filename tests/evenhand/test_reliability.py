"""docs/reliability.md and docs/security.md promise only what a test shows."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")
SECURITY = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_named_test_is_there(file: str, name: str) -> None:
    assert name.startswith("test_")
    assert name in functions_of(file)


def test_every_row_names_one() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| (?!---|fault )", line)]
    assert len(rows) > 20
    assert [
        row for row in rows if not re.search(r"`tests/[\w/]+\.py::test_\w+`( \||, )", row)
    ] == []
    assert all(len(row.split(" | ")) == 4 for row in rows)


@pytest.mark.slow
def test_security_names_tests_that_are_there() -> None:
    known = {
        name for file in (ROOT / "tests").rglob("test_*.py") for name in functions_of(str(file))
    }
    named = set(re.findall(r"`(test_\w+)`", SECURITY))
    assert len(named) > 50
    assert named <= known
