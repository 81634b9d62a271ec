"""Code in colours and JSON that folds: trees of plain data, as `rendered` makes them of Markdown.

What is shown is the text itself, character by character for code; of JSON the same values as they
are written, set out in lines. A text that cannot be drawn so is shown as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

Node = str | list[Any]
"""A text, or [tag, attributes, child, child, ...]; by place, a text may be [first, beyond]."""

LONGEST = 50_000
"""Characters; a longer text is shown as it is written."""
MOST_PARTS = 20_000
"""More are too many for a page."""

_DEEPEST = 40
_OPEN_TO = 2
"""How deep objects and lists of JSON stand open at first."""


@lru_cache(maxsize=64)
def coloured(text: str, language: str) -> tuple[Node, ...] | None:
    """A program's text with its words, strings, numbers and comments told apart; None where it is
    too long.

    >>> coloured("return 'x'  # done", "python")[0]
    ['span', {'class': 'is-keyword'}, 'return']
    """
    from pygments import lex
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, String

    if len(text) > LONGEST:
        return None
    looks = {Comment: "is-comment", Keyword: "is-keyword"}
    looks |= {String: "is-string", Number: "is-number"}
    looks |= {Name.Function: "is-name", Name.Class: "is-name"}
    nodes: list[Node] = []
    for token, said in lex(text, get_lexer_by_name(language, stripnl=False, ensurenl=False)):
        if look := next((name for kind, name in looks.items() if token in kind), ""):
            nodes.append(["span", {"class": look}, said])
        else:
            nodes.append(said)
    shown = "".join(each if isinstance(each, str) else each[2] for each in nodes)
    return tuple(nodes) if shown == text and len(nodes) <= MOST_PARTS else None


class _Written(str):
    """A number as it is written."""

    __slots__ = ()


@lru_cache(maxsize=64)
def folded(text: str) -> tuple[Node, ...] | None:
    """A JSON text as lines, objects and lists within others folded; None where it is no object or
    list, or too long or too deep.

    >>> folded('{"a": [1.50, "b"]}')[0][:3]
    ['details', {'start': 1}, ['summary', {}, '{ 1 }']]
    """
    if len(text) > 4 * LONGEST:
        return None
    try:
        held = json.loads(text, parse_int=_Written, parse_float=_Written, object_pairs_hook=tuple)
        nodes = [_node(held, "", 0)]
    except (ValueError, RecursionError):
        return None
    parts = sum(1 for _ in _all(nodes))
    return tuple(nodes) if isinstance(held, (tuple, list)) and parts <= MOST_PARTS else None


def _node(value: Any, key: str, depth: int) -> Node:
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    name: list[Node] = [["span", {"class": "is-name"}, f"{_quoted(key)}: "]] if key else []
    if isinstance(value, tuple):  # an object: keys and values, and a key may come twice
        inside = [_node(each, own, depth + 1) for own, each in value]
        return _details([*name, f"{{ {len(value)} }}"], inside, depth)
    if isinstance(value, list):
        inside = [_node(each, "", depth + 1) for each in value]
        return _details([*name, f"[ {len(value)} ]"], inside, depth)
    if isinstance(value, str) and not isinstance(value, _Written):
        return ["div", {}, *name, ["span", {"class": "is-string"}, _quoted(value)]]
    plain = str(value) if isinstance(value, _Written) else json.dumps(value)
    return ["div", {}, *name, ["span", {"class": "is-number"}, plain]]


def _details(summary: list[Node], inside: list[Node], depth: int) -> Node:
    return ["details", {"start": int(depth < _OPEN_TO)}, ["summary", {}, *summary], *inside]


def _quoted(text: str) -> str:
    """A text as JSON has it; its line breaks are shown as such."""
    return json.dumps(text, ensure_ascii=False).replace("\\n", "\n")


def _all(nodes: list[Any]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, list):
            yield from _all(node[2:])
