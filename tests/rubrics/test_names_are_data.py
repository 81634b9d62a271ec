"""A rubric is data: nothing below the command line knows a shipped one by name or title."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from evenhand.rubrics import load_rubric, shipped_rubrics

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("study", "annotate_app", "graders", "analysis")
ASSETS = {".js", ".html", ".css", ".j2", ".toml"}
WORDS_OF_THEIR_OWN = {
    ("graders/claude.py", "refusal"): "the provider's stop reason and the unscored reason",
    ("graders/openai_chat.py", "refusal"): "the unscored reason",
    (
        "study/prompts/units.py",
        "stance",
    ): "a template variable of the published columns",
}


def strings(path: Path) -> Iterator[str]:
    """What stands in quotes in a file; in Python without docstrings' insides."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        yield from (
            node.value
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
    elif path.suffix in ASSETS:
        yield from re.findall(r"[\"'`]([^\"'`\n]*)[\"'`]", text)


def test_no_package_names_a_shipped_rubric() -> None:
    rubrics = [load_rubric(name) for name in shipped_rubrics()]
    assert len(rubrics) == 4
    forbidden = {rubric.name for rubric in rubrics} | {rubric.title for rubric in rubrics}
    found = set()
    read = 0
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*")):
            for string in strings(path) if path.is_file() else ():
                read += 1
                if string in forbidden:
                    found.add((path.relative_to(ROOT).as_posix(), string))
    assert read > 5000
    assert found == set(WORDS_OF_THEIR_OWN)
