"""docs/security.md promises only what a test shows."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text("utf-8")
TABLES = re.findall(r"^\|.*\| shown by \|\n\|[- |]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)


@cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_names_a_test() -> None:
    rows = [line for table in TABLES for line in table.splitlines()]
    assert len(TABLES) == 6
    assert len(rows) > 70
    assert [row for row in rows if not re.search(r"\| `test_\w+`(, `test_\w+`)* \|$", row)] == []
    assert {len(row.split(" | ")) for row in rows} == {3, 4}


@pytest.mark.slow
def test_the_named_tests_are_there() -> None:
    known = {
        name for file in (ROOT / "tests").rglob("test_*.py") for name in functions_of(str(file))
    }
    named = set(re.findall(r"`(test_\w+)`", PAGE))
    assert len(named) > 120
    assert named <= known
