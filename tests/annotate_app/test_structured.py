"""Code and JSON are drawn with the same characters and values as graders get."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.annotate_app.structured import coloured, folded
from evenhand.rubrics import Block

CODE = "# a\tcomment\ndef f(x):\n    return 'ü' + \"<b>\"  # 1\n\n"


def said(nodes: Any) -> str:
    return "".join(node if isinstance(node, str) else said(node[2:]) for node in nodes)


@pytest.mark.parametrize("text", [CODE, "", "\n\n", "no code at all", "def broken(:"])
def test_code_is_coloured_and_stays_as_it_is(text):
    nodes = coloured(text, "python")
    assert nodes is not None
    assert said(nodes) == text


@given(st.text(max_size=60))
def test_no_character_of_code_is_lost(text):
    nodes = coloured(text, "sql")
    assert nodes is None or said(nodes) == text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_every_value_of_json_is_shown(value):
    nodes = folded(json.dumps(value, ensure_ascii=False))
    if not isinstance(value, (dict, list)):
        assert nodes is None
        return
    assert nodes is not None
    for each in leaves(value):
        shown = json.dumps(each, ensure_ascii=False).replace("\\n", "\n")
        assert shown in said(nodes)


def leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each)]
    return [value]


def test_numbers_and_keys_stay_as_they_are_written():
    nodes = folded('{"big": 12345678901234567890123, "two": 1.50, "two": -0.0e5}')
    assert nodes is not None
    for each in ("12345678901234567890123", "1.50", "-0.0e5"):
        assert each in said(nodes)
    assert said(nodes).count('"two"') == 2


@pytest.mark.parametrize(
    "text", ["[" * 5000, '{"a": ', "plain", "3", '"text"', "[" * 60 + "]" * 60]
)
def test_what_is_none_is_shown_as_it_is(text):
    assert folded(text) is None


def test_what_a_lexer_would_change_is_shown_as_it_is():
    assert coloured("x\r\ny", "python") is None


def test_a_language_that_nobody_knows_is_refused():
    with pytest.raises(ValueError, match="'klingon' is no language"):
        Block(column="code", label="Code", kind="code", language="klingon")
