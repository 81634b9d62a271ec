"""Rubrics from files and from the command line. A file is TOML, one rubric each, unknown fields
refused; the command line asks a question with its options or a scale.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evenhand.errors import InputError
from evenhand.rubrics.model import Rubric
from evenhand.rubrics.options import (
    MOST_NUMBERS,
    MOST_SEVERAL,
    NONE,
    Block,
    Number,
    Option,
    in_a_row,
)
from evenhand.rubrics.rendering import ANSWERS
from evenhand.texts import written

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


@cache
def shipped_rubrics() -> dict[str, str]:
    """Names and file texts of the rubrics that come with evenhand for pairs and propositions, in
    alphabetical order.
    """
    return _texts_in(files("evenhand.rubrics"))


@cache
def library_rubrics() -> dict[str, str]:
    """Names and file texts of the rubrics that come with evenhand for items, in alphabetical order.
    They are used where they are named, and never by default.
    """
    return _texts_in(files("evenhand.rubrics") / "library")


def named_rubrics() -> dict[str, str]:
    """Names and file texts of all rubrics that can be named: the shipped ones, then the library."""
    return shipped_rubrics() | library_rubrics()


def _texts_in(folder: Traversable) -> dict[str, str]:
    texts = {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }
    return dict(sorted(texts.items()))


def load_rubric(source: str | Path) -> Rubric:
    """A rubric that comes with evenhand by name, or any rubric by the path of its file.

    >>> load_rubric("refusal").categories
    ('1', '2', '3', '4', '5')

    Raises InputError where there is no such rubric or the file does not say what a rubric must say.
    """
    name = str(source).replace("_", "-")
    file = f"{name}.toml" if name in named_rubrics() else Path(source).name
    return parse_rubric(rubric_text(source), file)


def rubric_text(source: str | Path) -> str:
    """The text of a rubric's file, by name or path. Raises InputError where there is none."""
    named, path = named_rubrics(), Path(source)
    if text := named.get(str(source).replace("_", "-")):
        return text
    if not path.is_file():
        raise InputError(
            f"there is no rubric {str(path)!r}: name a file, or one of {', '.join(named)}"
        )
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


@lru_cache(maxsize=64)  # every opening of a study reads its rubrics
def parse_rubric(text: str, file: str) -> Rubric:
    """A rubric from the text of its file; `file` is the name used in messages."""
    rubric, faults = read_rubric(text)
    if rubric is None:
        raise InputError(f"{file}: {faults[0]}")
    return rubric


def read_rubric(text: str) -> tuple[Rubric | None, list[str]]:
    """The rubric of a file's text, or None with a sentence for each fault."""
    from pydantic import ValidationError

    try:
        return Rubric.model_validate(tomllib.loads(text)), []
    except tomllib.TOMLDecodeError as error:
        return None, [f"it is not valid TOML: {error}"]
    except ValidationError as error:
        sentences = []
        for fault in error.errors(include_url=False):
            place = ".".join(map(str, fault["loc"]))
            if fault["type"] == "extra_forbidden":
                sentences.append(f"unknown field {place!r}; take it out or check its spelling")
            elif fault["type"] == "missing":
                sentences.append(f"the field {place!r} is missing")
            else:
                messages = fault["msg"].removeprefix("Value error, ").split("\n")
                sentences += [f"{place}: {message}" if place else message for message in messages]
        return None, sentences


def draft_rubric(name: str, start: str | Path = "") -> str:
    """The text of a new rubric file: a commented draft, or the rubric `start` under another name,
    without the figures that others published on it.

    Raises InputError where the name cannot be a rubric's, or belongs to one that comes with
    evenhand.
    """
    if name.replace("_", "-") in named_rubrics():
        raise InputError(
            f"{name!r} is a rubric that comes with evenhand; give yours another name, such as "
            f"my-{name}"
        )
    text = (files("evenhand.rubrics") / "templates" / "draft.toml").read_text("utf-8")
    if start:
        begun = load_rubric(start).model_copy(update={"name": "draft"})
        head, blank, _ = text.partition("\n\n")
        text = head + blank + dump_rubric(begun)
    text = text.replace('"draft"', json.dumps(name), 1)
    parse_rubric(text, f"{name}.toml")
    return text


def dump_rubric(rubric: Rubric) -> str:
    """The rubric as the text of a rubric file; `parse_rubric` of it gives the rubric again."""
    import tomlkit

    document = tomlkit.document()
    fields: dict[str, Any] = rubric.model_dump(mode="json", exclude_defaults=True)
    prompt = fields.pop("prompt", None)
    if not rubric.kind.listed:  # its options are all numbers
        del fields["options"], fields["level"]
    # Tables come last: a key that followed one would be a part of it.
    tables = {
        name: fields.pop(name, None)
        for name in ("blocks", "number", "options", "golden", "lexical", "translations")
    }
    for key, value in (fields | tables).items():
        if value is not None:
            document[key] = _item(value)
    if prompt is not None:
        document["prompt"] = tomlkit.table()
        for key, value in prompt.items():
            # Every blank counts in it; a multiline string keeps no carriage return.
            whole = "\n" in value and "\r" not in value
            document["prompt"][key] = tomlkit.string(value, multiline=whole)
    return tomlkit.dumps(document)


def _item(value: Any) -> Any:
    import tomlkit

    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value + "\n", multiline=True)
    if isinstance(value, dict):
        return tomlkit.item({key: _item(item) for key, item in value.items()})
    return tomlkit.item([_item(item) for item in value] if isinstance(value, list) else value)


# ---- a rubric asked on the command line ---------------------------------------------------------
MOST_POINTS = 11
_SCALE = re.compile(r"(\d{1,4})-(\d{1,4})")
_YES = ("yes", "true", "pass")
_STEPS = {2: ("A", "B"), 3: ("A", "tie", "B"), 5: ("A2", "A1", "tie", "B1", "B2")}
_PREFERENCES = {
    **{"A": "a", "A1": "a_little", "A2": "a_much", "tie": "tie"},
    **{"B": "b", "B1": "b_little", "B2": "b_much"},
}
_SIDES: dict[str, Literal["a", "b", ""]] = {"A": "a", "B": "b"}


def asked_rubric(
    question: str,
    blocks: Sequence[Block],
    *,
    options: Sequence[str] = (),
    scale: str = "",
    several: bool = False,
    level: Literal["nominal", "ordinal", ""] = "",
    descriptions: Mapping[str, str] | None = None,
) -> Rubric:
    """Make a rubric called "rating" on these texts: with `options`, of which the first of two, or
    one called yes, true or pass, is the affirmative one; or with the points of a `scale` such as
    "1-5", of which more than 11 are a number to be typed, as 0-1 is. Options are ordered if their
    `level` says so or, without it, if they are whole numbers in a row. With `several` any number of
    the options may apply, and none is affirmative. `descriptions` say what options mean, by their
    names. Raises InputError where it has neither options
    nor a scale or both, or too many points.

    >>> blocks = [Block(column="response", label="Response")]
    >>> rubric = asked_rubric("Is it polite?", blocks, options=["Yes", "Not at all"])
    >>> rubric.categories, rubric.affirmative, rubric.level
    (('yes', 'not-at-all'), ('yes',), 'nominal')
    >>> asked_rubric("How polite is it?", blocks, scale="1-3").categories
    ('1', '2', '3')
    >>> asked_rubric("How polite is it?", blocks, scale="0-100").number.in_words
    'a whole number from 0 to 100'
    """
    if bool(options) == bool(scale):
        raise InputError("with --question give --options YES,NO or --scale 1-5, one of the two")
    if several and scale:
        raise InputError("--several goes with --options; of a scale one point applies")
    if level not in ("", "nominal", "ordinal"):
        raise InputError(f"--level is {level!r}; options are nominal or ordinal")
    if level and (scale or several):
        raise InputError(
            "--level goes with --options of which one applies; the points of --scale are ordered"
        )
    points = _points(scale) if scale else [name.strip() for name in options if name.strip()]
    texts = {
        "name": "rating",
        "title": written("items.title"),
        "unit": "response",
        "question": question,
        "instructions": written("items.instructions"),
        "blocks": tuple(blocks),
        "variables": tuple(block.column for block in blocks),
    }
    if isinstance(points, Number):
        return Rubric.model_validate(texts | {"number": points})
    names = points
    keys = [_key(name) for name in names]
    for key, name in zip(keys, names, strict=True):
        if keys.count(key) > 1:
            raise InputError(f"--options: two options are called like {name!r}; give each its own")
    if len(keys) < 2:
        raise InputError("--options: name two options at least, such as --options yes,no")
    if several and len(keys) > MOST_SEVERAL:
        raise InputError(f"--options: {len(keys)} options, more than {MOST_SEVERAL}; group them")
    if several and NONE in keys:
        raise InputError(f"--options: leave {NONE} out; raters can always say that none applies")
    ordered = () if several or level else in_a_row(keys)
    if ordered:
        names = [names[keys.index(key)] for key in ordered]
        keys = list(ordered)
    said = descriptions or {}
    affirmative = [key for key in keys if key in _YES] or (keys[:1] if len(keys) == 2 else [])
    return Rubric.model_validate(
        texts
        | {
            "level": level or ("ordinal" if scale or ordered else "nominal"),
            "options": [
                Option(key=key, name=name, description=said.get(name, ""))
                for key, name in zip(keys, names, strict=True)
            ],
            "affirmative": () if scale or several else tuple(affirmative[:1]),
            "several": several,
        }
    )


def _points(scale: str) -> list[str] | Number:
    """Return the points of a scale, or the number that it asks for where it has many."""
    ends = _SCALE.fullmatch(scale.strip())
    if not ends:
        raise InputError(f"--scale is {scale!r}; write its ends, as in --scale 1-5")
    low, high = int(ends[1]), int(ends[2])
    if (low, high) == (0, 1):
        return Number(low=0, high=1, step=0.01)
    if not 2 <= high - low + 1 <= MOST_NUMBERS:
        raise InputError(f"--scale {scale} must have 2 to {MOST_NUMBERS:,} points")
    points = [str(point) for point in range(low, high + 1)]
    return points if len(points) <= MOST_POINTS else Number(low=low, high=high)


def asked_comparison(question: str, blocks: Sequence[Block], steps: int = 3) -> Rubric:
    """Make a rubric called "preference" on two answers, with two, three or five `steps` from one to
    the other. Raises InputError for another number.

    >>> blocks = [Block(column="prompt", label="Prompt"), Block(column="response", label="Answer")]
    >>> asked_comparison("Which is kinder?", blocks, 5).categories
    ('A2', 'A1', 'tie', 'B1', 'B2')
    """
    if steps not in _STEPS:
        raise InputError(f"--steps is {steps}; two answers are compared in 2, 3 or 5 steps")
    keys = _STEPS[steps]
    sides = [_SIDES.get(key[0], "") for key in keys]
    names = [written(f"items.prefers_{_PREFERENCES[key]}") for key in keys]
    return Rubric(
        name="preference",
        title=written("preference.title"),
        unit="comparison",
        level="ordinal" if steps > 2 else "nominal",
        question=question,
        instructions=written("items.instructions_comparison"),
        blocks=tuple(blocks),
        variables=(*(block.column for block in blocks if block.column != "response"), *ANSWERS),
        options=tuple(
            Option(key=key, name=name, swapped=other if other != key else "", favours=side)
            for key, other, name, side in zip(keys, keys[::-1], names, sides, strict=True)
        ),
    )


def _key(name: str) -> str:
    key = re.sub(r"[^a-z0-9_+-]+", "-", name.casefold()).strip("-")[:24]
    if not key:
        raise InputError(f"--options: {name!r} needs a letter or a digit, to be stored by")
    return key
