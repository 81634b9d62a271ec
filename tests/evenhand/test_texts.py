"""Every sentence is used, renders with what it is given, and is written as the guide says."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.texts import texts, written

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "annotate_app", "evenhand", "graders", "rubrics", "study")
MOST_WORDS = 25
WRITERS = ("written", "in_pieces")
NOT_SAID = (
    "cannot be told",
    "sat beside",
    "set beside",
    "no condition",
    "stands in",
    "95% interval",
)
"""Turns of phrase that read as translated."""


def _calls() -> Iterator[tuple[str, str, frozenset[str] | None]]:
    """(file, key, names of the fields given) of every sentence; None: they are unpacked."""
    files = (file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
    for file in files:
        source = file.read_text("utf-8")
        if not any(f"{name}(" in source for name in WRITERS):
            continue
        for node in ast.walk(ast.parse(source)):
            is_call = isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS
            if not is_call:
                continue
            for key in _keys_of(node.args[0], file):
                names = [each.arg for each in node.keywords]
                given = None if None in names else frozenset(filter(None, names))
                yield str(file.relative_to(ROOT)), key, given


def _keys_of(argument: ast.expr, file: Path) -> list[str]:
    """What a key may be: one, one of two, or all that an f-string's fixed parts allow."""
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    if isinstance(argument, ast.IfExp):
        return [*_keys_of(argument.body, file), *_keys_of(argument.orelse, file)]
    assert isinstance(argument, ast.JoinedStr), f"{file}: a key that cannot be read off the code"
    parts = (
        re.escape(str(each.value)) if isinstance(each, ast.Constant) else "[a-z0-9_]+"
        for each in argument.values
    )
    pattern = re.compile("".join(parts))
    found = [key for key in texts() if pattern.fullmatch(key)]
    assert found, f"{file}: no sentence is called {pattern.pattern}"
    return found


CALLS = sorted(set(_calls()), key=str)


def _fields(key: str) -> frozenset[str]:
    names = (name for _, name, _, _ in string.Formatter().parse(texts()[key]) if name)
    return frozenset(re.split(r"[.\[]", name)[0] for name in names)


def _rendered(key: str) -> str:
    """The sentence with a word in each place; a number where the place asks for one."""
    filled = {}
    for _, name, form, _ in string.Formatter().parse(texts()[key]):
        if name:
            filled[name] = 0.5 if form else "X"
    return written(key, **filled)


@pytest.mark.parametrize(("file", "key", "given"), CALLS, ids=str)
def test_a_call_gives_what_its_sentence_asks_for(
    file: str, key: str, given: frozenset[str] | None
) -> None:
    assert key in texts(), f"{file}: no sentence is called {key}"
    if given is not None:
        assert given == _fields(key), file


def test_no_sentence_is_left_over() -> None:
    assert set(texts()) == {key for _, key, _ in CALLS}


@pytest.mark.parametrize("key", texts())
def test_a_sentence_is_plain(key: str) -> None:
    text = _rendered(key)
    for sentence in re.split(r"(?<=[.!?:;])\s+|\n+", text):
        assert len(sentence.split()) <= MOST_WORDS, sentence
    assert not [turn for turn in NOT_SAID if turn in text], text
    assert "  " not in text
    assert text == text.strip()
