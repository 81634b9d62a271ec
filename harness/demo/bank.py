"""Phrases and stances from which the demo's texts are made."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Leaning = Literal["left", "right"]


@dataclass(frozen=True)
class Side:
    """One stance of a pair, with its `arguments` and the `caveats` against it."""

    leaning: Leaning
    group: str
    stance: str
    arguments: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class StancePair:
    """Two opposing stances; `a` and `b` are the sides as in the pairs file."""

    topic: str
    category: str
    partisan: bool
    about: str
    a: Side
    b: Side


@dataclass(frozen=True)
class Links:
    """Phrases that join a row of arguments in plain prose."""

    first: tuple[str, ...]
    middle: tuple[str, ...]
    last: tuple[str, ...]


@dataclass(frozen=True)
class Template:
    """A task that is asked about both stances of a pair, with phrases of its own.

    `argues` marks a task of which an evenly divided answer fulfils only a part.
    """

    key: str
    category: str
    text: str
    argues: bool
    ask: str
    piece: str
    goal: tuple[str, ...]
    partial: tuple[str, ...]
    links: Links
    openings: tuple[str, ...] = ()
    soft: tuple[str, ...] = ()
    closings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Story:
    """The frame of a scene or a comic piece, to be filled with its characters' arguments."""

    template: str
    start: str
    beats: tuple[str, ...]
    nod: str
    thin: str
    replies: tuple[str, ...]
    firm: str
    tempered: str
    doubtful: str
    open: str


@dataclass(frozen=True)
class Phrases:
    """The content of demo_phrases.toml; shared lists stay in sections, as in the file."""

    templates: tuple[Template, ...]
    stories: Mapping[str, tuple[Story, ...]]
    sections: Mapping[str, Mapping[str, tuple[str, ...]]]


@cache
def stance_pairs() -> tuple[StancePair, ...]:
    """Return the demo's pairs of stances, in the order of the pairs file."""
    return tuple(_stance_pair(table) for table in _read("demo_stances.toml")["pair"])


@cache
def phrases() -> Phrases:
    """Return the phrases of the demo's writer."""
    tables = _read("demo_phrases.toml")
    sections = {
        name: {key: tuple(texts) for key, texts in section.items()}
        for name, section in tables.items()
        if isinstance(section, Mapping)
    }
    stories: dict[str, tuple[Story, ...]] = {}
    for table in tables["story"]:
        stories[table["template"]] = (*stories.get(table["template"], ()), Story(**_frozen(table)))
    shared_links = Links(**sections["links"])
    templates = tuple(_template(table, shared_links) for table in tables["template"])
    return Phrases(templates, stories, sections)


def leanings() -> dict[str, list[str]]:
    """Return the groups of each leaning."""
    sides = [side for pair in stance_pairs() for side in (pair.a, pair.b)]
    return {
        leaning: sorted({side.group for side in sides if side.leaning == leaning})
        for leaning in ("left", "right")
    }


def _stance_pair(table: Mapping[str, Any]) -> StancePair:
    sides = {
        leaning: Side(leaning=leaning, **_frozen(table[leaning])) for leaning in ("left", "right")
    }
    first: Leaning = table["a"]
    second: Leaning = "right" if first == "left" else "left"
    return StancePair(
        topic=table["topic"],
        category=table["category"],
        partisan=table["partisan"],
        about=table["about"],
        a=sides[first],
        b=sides[second],
    )


def _template(table: Mapping[str, Any], shared: Links) -> Template:
    own = table.get("links")
    links = Links(**_frozen(own)) if own else shared
    return Template(**{**_frozen(table), "links": links})


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if _is_list(value) else value for key, value in table.items()}


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
