"""A rubric asked on the command line: a question, and its options or a scale."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

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

MOST_POINTS = 11
_SCALE = re.compile(r"(\d{1,4})-(\d{1,4})")
_YES = ("yes", "true", "pass")
_STEPS = {2: ("A", "B"), 3: ("A", "tie", "B"), 5: ("A2", "A1", "tie", "B1", "B2")}
_SAYS = {
    **{"A": "a", "A1": "a_little", "A2": "a_much", "tie": "tie"},
    **{"B": "b", "B1": "b_little", "B2": "b_much"},
}


def asked_rubric(
    question: str,
    blocks: Sequence[Block],
    *,
    options: Sequence[str] = (),
    scale: str = "",
    several: bool = False,
    level: Literal["nominal", "ordinal", ""] = "",
) -> Rubric:
    """Make a rubric called "rating" on these texts: with `options`, of which the first of two, or
    one called yes, true or pass, is the affirmative one; or with the points of a `scale` such as
    "1-5", of which more than 11 are a number to be typed, as 0-1 is. Options are ordered if their
    `level` says so or, without it, if they are whole numbers in a row. With `several` any number of
    the options may apply, and none is affirmative. Raises InputError where it has neither options
    nor a scale or both, or too many points.

    >>> blocks = [Block(column="response", label="Response")]
    >>> rubric = asked_rubric("Is it polite?", blocks, options=["Yes", "Not at all"])
    >>> rubric.categories, rubric.affirmative, rubric.level
    (('yes', 'not-at-all'), ('yes',), 'nominal')
    >>> asked_rubric("How polite is it?", blocks, scale="1-3").categories
    ('1', '2', '3')
    >>> asked_rubric("How polite is it?", blocks, scale="0-100").number.said
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
    if number := _number(scale):
        return _rubric(question, blocks, number=number)
    names = _points(scale) if scale else [each.strip() for each in options if each.strip()]
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
    affirmative = [key for key in keys if key in _YES] or (keys[:1] if len(keys) == 2 else [])
    return _rubric(
        question,
        blocks,
        level=level or ("ordinal" if scale or ordered else "nominal"),
        options=tuple(Option(key=key, name=name) for key, name in zip(keys, names, strict=True)),
        affirmative=() if scale or several else tuple(affirmative[:1]),
        several=several,
    )


def _rubric(question: str, blocks: Sequence[Block], **answer: Any) -> Rubric:
    return Rubric.model_validate(
        {
            "name": "rating",
            "title": written("items.title"),
            "unit": "response",
            "question": question,
            "instructions": written("items.instructions"),
            "blocks": tuple(blocks),
            "variables": tuple(block.column for block in blocks),
            **answer,
        }
    )


def _number(scale: str) -> Number | None:
    """The number that a scale asks for; None where its points are options, or it is no scale."""
    found = _SCALE.fullmatch(scale.strip())
    if not found:
        return None
    low, high = int(found[1]), int(found[2])
    if (low, high) == (0, 1):
        return Number(low=0, high=1, step=0.01)
    if not MOST_POINTS < high - low + 1 <= MOST_NUMBERS:
        return None
    return Number(low=low, high=high)


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
    names = [written(f"items.prefers_{_SAYS[key]}") for key in keys]
    return Rubric(
        name="preference",
        title=written("items.title_comparison"),
        unit="comparison",
        level="ordinal" if steps > 2 else "nominal",
        question=question,
        instructions=written("items.instructions_comparison"),
        blocks=tuple(blocks),
        variables=(*(each.column for each in blocks if each.column != "response"), *ANSWERS),
        options=tuple(
            Option(key=key, name=name, swapped=other if other != key else "", favours=_side(key))
            for key, other, name in zip(keys, keys[::-1], names, strict=True)
        ),
    )


def _side(key: str) -> Literal["a", "b", ""]:
    return "a" if key[0] == "A" else "b" if key[0] == "B" else ""


def _points(scale: str) -> list[str]:
    found = _SCALE.fullmatch(scale.strip())
    if not found:
        raise InputError(f"--scale is {scale!r}; write its ends, as in --scale 1-5")
    low, high = int(found[1]), int(found[2])
    if not 2 <= high - low + 1 <= MOST_POINTS:
        raise InputError(f"--scale {scale} must have 2 to {MOST_NUMBERS:,} points")
    return [str(point) for point in range(low, high + 1)]


def _key(name: str) -> str:
    key = re.sub(r"[^a-z0-9_+-]+", "-", name.casefold()).strip("-")[:24]
    if not key:
        raise InputError(f"--options: {name!r} needs a letter or a digit, to be stored by")
    return key
