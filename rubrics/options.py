"""The options of a rubric: a closed list, read by people, graders and parsers alike."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

KEY = re.compile(r"[A-Za-z0-9_+-]{1,24}|-?\d{1,12}\.\d{1,10}")


class Strict(BaseModel):
    """A part of a file, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Texts(Strict):
    """A part of a rubric file, without white space around its texts."""

    model_config = ConfigDict(str_strip_whitespace=True)


FEWEST_NUMBERS, MOST_NUMBERS = 12, 1001


class Number(Texts):
    """A number in place of options: from `low` to `high` in steps of `step`.

    >>> Number(low=0, high=1, step=0.05).places, Number(low=0, high=100).said
    (2, 'a whole number from 0 to 100')
    """

    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    step: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_points(self) -> Self:
        low, high, step = map(_decimal, (self.low, self.high, self.step))
        if not low < high:
            raise ValueError(f"low is {_plain(low)}, which is not below high, {_plain(high)}")
        points = (high - low) / step + 1
        if points != int(points):
            raise ValueError(
                f"steps of {_plain(step)} do not lead from {_plain(low)} to {_plain(high)}"
            )
        if points < FEWEST_NUMBERS:
            raise ValueError(
                f"it has {int(points)} numbers; so few are quicker to choose from: list them as "
                'options, with level = "interval"'
            )
        if points > MOST_NUMBERS:
            raise ValueError(
                f"it has {int(points):,} numbers, more than {MOST_NUMBERS:,}; take longer steps"
            )
        return self

    @property
    def keys(self) -> tuple[str, ...]:
        """The numbers as they are stored, in ascending order: 0.5, not 0.50."""
        low, step = _decimal(self.low), _decimal(self.step)
        points = int((_decimal(self.high) - low) / step) + 1
        return tuple(_plain(low + step * at) for at in range(points))

    @property
    def places(self) -> int:
        """Places behind the point."""
        return max(_places(_decimal(each)) for each in (self.low, self.step))

    @property
    def options(self) -> tuple[Option, ...]:
        """The numbers as options, whose names have all places behind the point."""
        places = self.places
        return tuple(Option(key=key, name=f"{Decimal(key):.{places}f}") for key in self.keys)

    @property
    def said(self) -> str:
        """The number that is asked for, in words."""
        low, high, step = (_plain(_decimal(each)) for each in (self.low, self.high, self.step))
        kind = "whole " if self.step == 1 and not self.places else ""
        steps = "" if self.step == 1 else f" in steps of {step}"
        return f"a {kind}number from {low} to {high}{steps}"


def _decimal(number: float) -> Decimal:
    return Decimal(repr(number))


def _places(number: Decimal) -> int:
    exponent = number.normalize().as_tuple().exponent
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _plain(number: Decimal) -> str:
    return plain_number(f"{number:f}")


def plain_number(text: str) -> str:
    """A number in its shortest form; "" where the text is no finite number.

    >>> [plain_number(text) for text in ("73.0", " 0.50", "-0", "1e2", "nan", "7/10")]
    ['73', '0.5', '0', '100', '', '']
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return ""
    if not number.is_finite() or abs(number.adjusted()) > 30:
        return "0" if number == 0 else ""
    shown = f"{number:f}"
    shown = shown.rstrip("0").rstrip(".") if "." in shown else shown
    return "0" if shown in ("-0", "") else shown


_WHOLE = re.compile(r"(-?[0-9]{1,9})(\.0+)?")
_MOST_MISSING = 2


def whole_numbers_in_a_row(labels: Collection[str]) -> tuple[str, ...]:
    """The labels of an ordered scale of whole numbers, from the lowest to the highest, with those
    in between that nobody used; () where labels are anything else.

    Such labels are three or more whole numbers that make up more than half of all from the lowest
    to the highest, with at most two neighbours missing, and none below 0: a number far from the
    others, or below 0 and apart, is rather a code, such as 99 or -1 for "no answer". Two numbers
    are a yes and a no.

    >>> whole_numbers_in_a_row(["10", "9", "8"]), whole_numbers_in_a_row(["1.0", "2.0", "4.0"])
    (('8', '9', '10'), ('1.0', '2.0', '3.0', '4.0'))
    >>> [whole_numbers_in_a_row(each) for each in (["0", "1"], ["1", "2", "99"], ["1", "2", "x"])]
    [(), (), ()]
    """
    parts = [_WHOLE.fullmatch(label) for label in labels]
    used = sorted({int(part[1]) for part in parts if part})
    endings = {part[2] or "" for part in parts if part}
    if len(used) < max(3, len(labels)) or len(endings) > 1:
        return ()
    low, high = used[0], used[-1]
    gap = max(after - before for before, after in pairwise(used)) - 1
    if gap and (gap > _MOST_MISSING or low < 0 or 2 * len(used) <= high - low + 1):
        return ()
    return tuple(f"{number}{endings.copy().pop()}" for number in range(low, high + 1))


def in_a_row(declared: Sequence[str]) -> tuple[str, ...]:
    """Declared labels as an ordered scale of whole numbers (`whole_numbers_in_a_row`), the lowest
    or, where they are declared so, the highest first; () for any others.

    >>> in_a_row("321"), in_a_row("132"), in_a_row("acb")
    (('3', '2', '1'), ('1', '2', '3'), ())
    """
    upwards = tuple(each for each in whole_numbers_in_a_row(declared) if each in declared)
    return upwards[::-1] if tuple(declared) == upwards[::-1] else upwards


def span_of(ordered: Sequence[str]) -> str:
    """The whole numbers of an ordered scale in short.

    >>> span_of(("5", "4", "3")), span_of(("-1", "0", "1"))
    ('3-5', '-1 to 1')
    """
    low, high = sorted((ordered[0], ordered[-1]), key=float)
    return f"{low} to {high}" if low.startswith("-") else f"{low}-{high}"


COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Block(Texts):
    """A text of the unit that raters read beside the question: the column that holds it, the label
    above it, and how it is shown. Without a `kind` the response is shown as the study shows
    responses, and any other text as plain text.
    """

    column: str
    label: str = Field(min_length=1, max_length=120)
    kind: Literal["text", "markdown", "code", "json", "conversation", "image", ""] = ""
    language: str = ""
    """Of code: the language by whose words it is coloured, as Pygments calls it."""

    @field_validator("language")
    @classmethod
    def _language_is_known(cls, value: str) -> str:
        from pygments.lexers import find_lexer_class_by_name
        from pygments.util import ClassNotFound

        try:
            if value:
                find_lexer_class_by_name(value)
        except ClassNotFound:
            raise ValueError(
                f"{value!r} is no language; write python, sql or another that Pygments knows"
            ) from None
        return value

    @field_validator("column")
    @classmethod
    def _column_is_a_name(cls, value: str) -> str:
        if not COLUMN.fullmatch(value):
            raise ValueError(f"a block's column is lower-case letters, digits and _, not {value!r}")
        if re.search("(^|_)[ab]$", value):
            raise ValueError(
                f"a block's column may not be a or b or end in _a or _b, as {value!r} does"
            )
        return value

    def of_side(self, side: str) -> Block:
        """The block for one of two answers."""
        return self.model_copy(update={"label": f"{self.label} {side.upper()}"})


class Golden(Texts):
    """A golden answer: a unit's `texts` by variable, and the option that is right for it. Graders
    are held against these; raters never see them.
    """

    label: str
    texts: dict[str, str] = Field(min_length=1)


class Option(Texts):
    """A permitted category: the key is stored, and raters read the rest."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()
    swapped: str = ""
    """Key of this choice once the two sides are exchanged; the same key if empty."""
    favours: Literal["a", "b", ""] = ""
    """The side of the pair that this choice finds better served; empty: neither."""

    @field_validator("key")
    @classmethod
    def _key_is_a_token(cls, value: str) -> str:
        if not KEY.fullmatch(value):
            raise ValueError(f"an option key is 1 to 24 letters, digits, _ + or -, not {value!r}")
        return value


NONE, SEPARATOR = "none", ";"
"""The label that says that none of several options applies, and what stands between keys."""
SEPARATORS = ";,#|"
"""What stands between options in files of others."""
MOST_SEVERAL = 30
"""Options of which several may apply, at most: each has figures of its own."""
_ITEM = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d*)?)\s*,?""", re.DOTALL)


def options_in(text: str, separators: str = SEPARATOR) -> tuple[str, ...] | None:
    """Return the options that a cell names, of which several may apply: a list as JSON or Python
    writes it, or options with one of the separators between them; none for `none` and an empty
    cell; None where it is no set of options.

    >>> [options_in(text) for text in ("a; b", '["b", "a"]', "none", "[]", '{"a": 1}', "a;;b")]
    [('a', 'b'), ('b', 'a'), (), (), None, None]
    >>> options_in("a,b", ","), options_in("['a' 'b']"), options_in("[27, 3.0]")
    (('a', 'b'), ('a', 'b'), ('27', '3'))
    """
    text = text.strip()
    if text in ("", NONE):
        return ()
    if text[0] in "[{":
        listed = _listed(text)
        if listed is None:
            return None
    else:
        listed = re.split(f"[{re.escape(separators)}]", text) if separators else [text]
    named = tuple(each.strip() for each in listed)
    return named if all(named) and len(set(named)) == len(named) else None


def _listed(text: str) -> list[str] | None:
    """The texts and numbers of a list or set, as JSON, Python or NumPy write it; else None."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = _written_in_python(text)
    if not isinstance(found, list):
        return None
    texts = [plain_number(str(each)) if isinstance(each, (int, float)) else each for each in found]
    return texts if all(isinstance(each, str) for each in texts) else None


def _written_in_python(text: str) -> list[object] | None:
    if text[0] + text[-1] not in ("[]", "{}"):
        return None
    end, at, found = len(text) - 1, 1, []
    while text[at:end].strip():
        item = _ITEM.match(text, at, end)
        if item is None:
            return None
        try:
            found.append(ast.literal_eval(item[1]))
        except (ValueError, SyntaxError):
            return None
        at = item.end()
    return found


def separators_in(cells: Iterable[str], known: Collection[str] = ()) -> str | None:
    """Return the marks that stand between options in the cells of a column: where options are
    `known` those that leave the fewest others, else the one that parts cells into options that
    stand alone or in other cells, too. "" where a mark is part of a name, or none is there; None
    where that cannot be decided.

    >>> [separators_in(cells) for cells in (["a,b", "b", "a"], ["a, b", "c"], ["a;b", "a,b", "a"])]
    [',', '', None]
    >>> separators_in(["C#;D", "x, y"], ["C#", "D", "x, y"])
    ';'
    """
    every = sorted({cell.strip() for cell in cells})
    joined = [cell for cell in every if cell[:1] not in ("[", "{")]
    marks = [mark for mark in SEPARATORS if any(mark in cell for cell in joined)]
    if known:
        options = {*known, NONE, ""}
        ways = ("", *marks, "".join(marks))
        return min(ways, key=lambda way: len(_options(joined, way) - options))
    shares = {mark: _recurring(every, mark) for mark in marks}
    sure = [mark for mark in marks if shares[mark] >= 0.5 and _is_only(every, mark, marks)]
    if sure and (len(sure) > 1 or (SEPARATOR in marks and sure != [SEPARATOR])):
        return None
    if sure or not any(shares.values()) or marks == [SEPARATOR]:
        return next(iter(sure), SEPARATOR if SEPARATOR in marks else "")
    return None


def _options(cells: Iterable[str], separators: str) -> set[str]:
    return {option for cell in cells for option in options_in(cell, separators) or ()}


def _recurring(cells: Sequence[str], mark: str) -> float:
    """The share of the parts of cells with this mark that stand in another cell, too."""
    sets = {cell: options_in(cell, mark) or () for cell in cells}
    uses = Counter(option for named in sets.values() for option in named)
    parts = {option for cell, named in sets.items() if mark in cell for option in named}
    return sum(uses[part] > 1 for part in parts) / max(len(parts), 1)


def _is_only(cells: Sequence[str], mark: str, marks: Sequence[str]) -> bool:
    """Return True if no other mark parts the options that this one leaves."""
    left = sorted(_options(cells, mark))
    return not any(_recurring(left, other) >= 0.5 for other in marks if other != mark)


def set_label(chosen: Collection[str] | None, keys: Sequence[str]) -> str | None:
    """Return the label of a set of options, in the order of all `keys`; None where one is none of
    them.

    >>> set_label(("c", "a"), "abc"), set_label((), "abc"), set_label(("z",), "abc")
    ('a;c', 'none', None)
    """
    if chosen is None or not set(chosen) <= set(keys):
        return None
    return SEPARATOR.join(key for key in keys if key in chosen) or NONE
