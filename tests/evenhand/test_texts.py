"""Every sentence is used, renders with what it is given, and is written as the guide says."""

from __future__ import annotations

import ast
import math
import re
import string
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from evenhand.texts import texts, written

ROOT = Path(__file__).parents[2]
ROOMS = ("analysis", "annotate_app", "evenhand", "exchange", "graders", "rubrics", "study")
MOST_WORDS = 25
WRITERS = ("written", "in_pieces", "say", "warn")
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
    """(file, key, names of the fields given) of every `written`; None where these are not to be
    read off the call.
    """
    for file in (file for room in ROOMS for file in (ROOT / room).rglob("*.py")):
        source = file.read_text("utf-8")
        if not any(f"{name}(" in source for name in WRITERS):
            continue
        nodes = list(ast.walk(ast.parse(source)))
        constants = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WRITERS:
                names = [each.arg for each in node.keywords]
                known = None not in names and isinstance(node.args[0], ast.Constant)
                given = frozenset(filter(None, names)) if known else None
                for key in _keys_of(node.args[0], constants):
                    yield str(file.relative_to(ROOT)), key, given


def _in_templates() -> Iterator[str]:
    for file in (ROOT / "analysis").rglob("*.j2"):
        yield from re.findall(r'written\("([\w.]+)"', file.read_text("utf-8"))


def _keys_of(argument: ast.expr, constants: set[str]) -> list[str]:
    """What a key may be: one, one of two, or room and a name that stands in the same file."""
    if isinstance(argument, ast.Constant):
        return [str(argument.value)]
    if isinstance(argument, ast.IfExp):
        return [*_keys_of(argument.body, constants), *_keys_of(argument.orelse, constants)]
    assert isinstance(argument, ast.JoinedStr), ast.unparse(argument)
    parts = (
        re.escape(str(each.value)) if isinstance(each, ast.Constant) else "([a-z0-9_]+)"
        for each in argument.values
    )
    pattern = re.compile("".join(parts))
    matches = filter(None, map(pattern.fullmatch, texts()))
    found = [each.group() for each in matches if set(each.groups()) <= constants]
    assert found, f"no sentence is called {pattern.pattern}"
    return found


@cache
def calls() -> list[tuple[str, str, frozenset[str] | None]]:
    return sorted(set(_calls()), key=lambda call: call[:2])


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


def test_a_call_gives_what_its_sentence_asks_for() -> None:
    for file, key, given in calls():
        assert key in texts(), f"{file}: no sentence is called {key}"
        assert given in (None, _fields(key)), f"{file}: {key}"


def test_no_sentence_is_left_over() -> None:
    assert set(texts()) == {key for _, key, _ in calls()} | set(_in_templates())


def test_sentences_are_plain() -> None:
    for key in texts():
        text = _rendered(key)
        for sentence in re.split(r"(?<=[.!?:;])\s+|\n+", text):
            assert len(sentence.split()) <= MOST_WORDS, (key, sentence)
        assert not [turn for turn in NOT_SAID if turn in text], (key, text)
        assert "  " not in text, key
        assert text == text.strip(), key


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, np.float64("nan")])
def test_a_number_that_is_none_is_a_dash(value) -> None:
    said = written("lead.kappas", grader=value, people=0.5)
    assert "—" in said
    assert not {"nan", "inf", "None"} & set(re.findall(r"\w+", said))
