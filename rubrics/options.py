"""The closed list of a rubric's options, and the kinds of labels that they make: one option
(`LabelKind`), a number (`NumberKind`), or a set of options (`SetKind`).

First come the parts of a rubric file (`Number`, `Block`, `Option`), with functions that read scales
of whole numbers and sets of options from texts; then the kinds. A rubric's kind (`Rubric.kind`)
says how labels are asked for, shown, stored and compared; to add one, override `LabelKind`.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from statistics import median
from typing import Any, ClassVar, Literal, Self
from unicodedata import normalize

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from evenhand.texts import table_of

KEY = re.compile(r"[A-Za-z0-9_+-]{1,24}|-?\d{1,12}\.\d{1,10}")  # "A1", "no-answer", "-0.5"


class Strict(BaseModel):
    """A part of a file that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Texts(Strict):
    """A part of a rubric file whose texts lose the white space around them."""

    model_config = ConfigDict(str_strip_whitespace=True)


FEWEST_NUMBERS, MOST_NUMBERS = 12, 1001  # how many numbers a rubric may permit in place of options


class Number(Texts):
    """A number in place of options: from `low` to `high` in steps of `step`.

    >>> Number(low=0, high=1, step=0.05).places, Number(low=0, high=100).in_words
    (2, 'a whole number from 0 to 100')
    """

    low: float = Field(allow_inf_nan=False)
    high: float = Field(allow_inf_nan=False)
    step: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _steps_lead_from_low_to_high(self) -> Self:
        low, high, step = self._decimals
        low_text, high_text, step_text = self._texts
        if not low < high:
            raise ValueError(f"low is {low_text}, which is not below high, {high_text}")
        points = (high - low) / step + 1
        if points != int(points):
            raise ValueError(f"steps of {step_text} do not lead from {low_text} to {high_text}")
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
    def _decimals(self) -> tuple[Decimal, ...]:
        """`low`, `high` and `step`, exactly as they are written."""
        return tuple(Decimal(repr(number)) for number in (self.low, self.high, self.step))

    @property
    def _texts(self) -> list[str]:
        """`low`, `high` and `step` in their shortest form."""
        return [plain_number(f"{number:f}") for number in self._decimals]

    @property
    def keys(self) -> tuple[str, ...]:
        """The numbers as they are stored, in ascending order: 0.5, not 0.50."""
        low, high, step = self._decimals
        points = int((high - low) / step) + 1
        return tuple(plain_number(f"{low + step * point:f}") for point in range(points))

    @property
    def places(self) -> int:
        """Number of decimal places."""
        low, _, step = self._texts
        return max(len(number.partition(".")[2]) for number in (low, step))

    @property
    def options(self) -> tuple[Option, ...]:
        """The numbers as options; each name has all decimal places, as in 0.50."""
        return tuple(Option(key=key, name=f"{Decimal(key):.{self.places}f}") for key in self.keys)

    @property
    def in_words(self) -> str:
        """The number that is asked for, in words."""
        low, high, step = self._texts
        kind = "whole " if self.step == 1 and not self.places else ""
        steps = "" if self.step == 1 else f" in steps of {step}"
        return f"a {kind}number from {low} to {high}{steps}"


def plain_number(text: str) -> str:
    """Return a number in its shortest form; "" if the text is not a finite number.

    >>> [plain_number(text) for text in ("73.0", " 0.50", "-0", "1e2", "nan", "7/10")]
    ['73', '0.5', '0', '100', '', '']
    """
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return ""
    if not number.is_finite() or abs(number.adjusted()) > 30:  # too long to write out
        return "0" if number == 0 else ""
    short = f"{number:f}"
    short = short.rstrip("0").rstrip(".") if "." in short else short
    return "0" if short in ("-0", "") else short


_WHOLE_NUMBER = re.compile(r"(-?[0-9]{1,9})(\.0+)?")
_MOST_MISSING = 2  # numbers next to each other that may be missing from a scale of whole numbers


def whole_numbers_in_a_row(labels: Collection[str]) -> tuple[str, ...]:
    """Return the labels of an ordered scale of whole numbers, from the lowest to the highest, with
    unused numbers in between; () if the labels are anything else.

    Such labels are three or more whole numbers (two are a yes and a no), and more than half of all
    numbers from the lowest to the highest. At most two numbers in a row may be missing, and none if
    any label is below 0: one far from the others is rather a code, as 99 or -1 for "no answer".

    >>> whole_numbers_in_a_row(["10", "9", "8"]), whole_numbers_in_a_row(["1.0", "2.0", "4.0"])
    (('8', '9', '10'), ('1.0', '2.0', '3.0', '4.0'))
    >>> [whole_numbers_in_a_row(row) for row in (["0", "1"], ["1", "2", "99"], ["1", "2", "x"])]
    [(), (), ()]
    """
    matches = list(filter(None, map(_WHOLE_NUMBER.fullmatch, labels)))
    numbers = sorted({int(match[1]) for match in matches})
    endings = {match[2] or "" for match in matches}  # ".0", where pandas wrote the column
    if len(numbers) < max(3, len(labels)) or len(endings) > 1:  # too few, or labels of other forms
        return ()
    low, high, ending = numbers[0], numbers[-1], endings.pop()
    gap = max(after - before for before, after in pairwise(numbers)) - 1
    half_are_missing = 2 * len(numbers) <= high - low + 1
    if gap > _MOST_MISSING or (gap and (low < 0 or half_are_missing)):
        return ()
    return tuple(f"{number}{ending}" for number in range(low, high + 1))


def ordered_scale(declared: Sequence[str]) -> tuple[str, ...]:
    """Return declared labels as an ordered scale of whole numbers (`whole_numbers_in_a_row`), in
    descending order if they are declared so, else in ascending order; () for any other labels.

    >>> ordered_scale("321"), ordered_scale("132"), ordered_scale("acb")
    (('3', '2', '1'), ('1', '2', '3'), ())
    """
    ascending = tuple(label for label in whole_numbers_in_a_row(declared) if label in declared)
    return ascending[::-1] if tuple(declared) == ascending[::-1] else ascending


def span_of(ordered: Sequence[str]) -> str:
    """Return the two ends of an ordered scale of whole numbers as one text.

    >>> span_of(("5", "4", "3")), span_of(("-1", "0", "1"))
    ('3-5', '-1 to 1')
    """
    low, high = sorted((ordered[0], ordered[-1]), key=float)
    return f"{low} to {high}" if low.startswith("-") else f"{low}-{high}"


COLUMN = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Block(Texts):
    """A text of the unit that raters read next to the question: the column that holds it, the label
    above it, and how it is shown. Without a `kind` the response is shown as the study shows
    responses, and any other text as plain text.
    """

    column: str
    label: str = Field(min_length=1, max_length=120)
    kind: Literal["text", "markdown", "code", "json", "conversation", "image", ""] = ""
    language: str = ""
    """Programming language of code, by its name in Pygments, for syntax highlighting."""

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


class Golden(Texts):
    """A unit's `texts` by variable with the correct `label`, to test graders on."""

    label: str
    texts: dict[str, str] = Field(min_length=1)


class Option(Texts):
    """A permitted category: the key is stored, and raters read the rest."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()
    swapped: str = ""
    """Key of the option that this one becomes when the two sides are exchanged; "": the same."""
    favours: Literal["a", "b", ""] = ""
    """The side of the pair that this option favours; "": neither."""

    @field_validator("key")
    @classmethod
    def _key_is_a_token(cls, value: str) -> str:
        if not KEY.fullmatch(value):
            raise ValueError(f"an option key is 1 to 24 letters, digits, _ + or -, not {value!r}")
        return value


NONE, SEPARATOR = "none", ";"
"""The label for no option where several may apply, and the mark between keys in other labels."""
SEPARATORS = ";,#|"
"""Marks between options in files of other tools."""
MOST_SEVERAL = 30  # options of which several may apply, at most: each has figures of its own
_ENTRY = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d*)?)\s*,?""", re.DOTALL)
"""A text or a number of a list as Python writes it, or NumPy, without commas."""


def options_in(text: str, separators: str = SEPARATOR) -> tuple[str, ...] | None:
    """Return the options that a cell names, of which several may apply: a list as JSON or Python
    writes it, or options with one of the separators between them. An empty cell, "none" and "set()"
    name no option. None if the cell is not a set of options.

    >>> [options_in(text) for text in ("a; b", '["b", "a"]', "none", "[]", '{"a": 1}', "a;;b")]
    [('a', 'b'), ('b', 'a'), (), (), None, None]
    >>> options_in("a,b", ","), options_in("['a' 'b']"), options_in("[27, 3.0]")
    (('a', 'b'), ('a', 'b'), ('27', '3'))
    """
    text = text.strip()
    if text in ("", NONE, "set()"):  # the last as Python writes it
        return ()
    if text[0] in "[{":
        if (texts := listed_texts(text)) is None:
            return None
    else:
        texts = re.split(f"[{re.escape(separators)}]", text) if separators else [text]
    options = tuple(option.strip() for option in texts)
    return options if all(options) and len(set(options)) == len(options) else None


def listed_texts(text: str) -> list[str] | None:
    """Return the texts and numbers of a list as JSON, Python or NumPy write it, else None."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        inner = text[1:-1]
        entries = re.compile(rf"(?:{_ENTRY.pattern})*+\s*", re.DOTALL)  # *+ never backtracks
        if text[0] + text[-1] not in ("[]", "{}") or not entries.fullmatch(inner):  # list or set
            return None
        try:
            values = [ast.literal_eval(entry) for entry in _ENTRY.findall(inner)]
        except (ValueError, SyntaxError):
            return None
    if not isinstance(values, list):
        return None
    texts = [plain_number(str(item)) if isinstance(item, (int, float)) else item for item in values]
    return texts if all(isinstance(text, str) for text in texts) else None


def separators_in(cells: Iterable[str], options: Collection[str] = ()) -> str | None:
    """Return the marks between options in the cells of a column. With declared `options` these are
    the marks that leave the fewest undeclared ones. Else it is the one mark that splits cells into
    options of which at least half occur in other cells, too; "" if there is none (a mark may be
    part of a name), and None if this cannot be decided.

    >>> [separators_in(cells) for cells in (["a,b", "b", "a"], ["a, b", "c"], ["a;b", "a,b", "a"])]
    [',', '', None]
    >>> separators_in(["C#;D", "x, y"], ["C#", "D", "x, y"])
    ';'
    """
    distinct = sorted({cell.strip() for cell in cells})
    not_lists = [cell for cell in distinct if cell[:1] not in ("[", "{")]
    marks = [mark for mark in SEPARATORS if any(mark in cell for cell in not_lists)]
    if options:
        declared = {*options, NONE, ""}
        candidates = ("", *marks, "".join(marks))  # of equally good ones the first counts
        return min(candidates, key=lambda mark: len(_distinct_options(not_lists, mark) - declared))
    shares = {mark: _recurring_share(distinct, mark) for mark in marks}
    plausible = []
    for mark in marks:  # plausible if the options that it gives are not split again by another mark
        mark_options = sorted(_distinct_options(distinct, mark))
        other_shares = (_recurring_share(mark_options, other) for other in marks if other != mark)
        if shares[mark] >= 0.5 and all(share < 0.5 for share in other_shares):
            plausible.append(mark)
    # Next to a semicolon, which evenhand itself writes, another mark is not certain.
    if len(plausible) > 1 or (plausible and SEPARATOR in marks and plausible != [SEPARATOR]):
        return None
    if plausible:
        return plausible[0]
    if any(shares.values()) and marks != [SEPARATOR]:  # options recur, but no mark is plausible
        return None
    return SEPARATOR if SEPARATOR in marks else ""  # nothing recurs


def _distinct_options(cells: Iterable[str], separators: str) -> set[str]:
    return {option for cell in cells for option in options_in(cell, separators) or ()}


def _recurring_share(cells: Sequence[str], mark: str) -> float:
    """Return the share (0 to 1) of the options in cells with this mark that other cells have."""
    parts_by_cell = {cell: options_in(cell, mark) or () for cell in cells}
    n_cells = Counter(part for parts in parts_by_cell.values() for part in parts)
    split_off = {part for cell, parts in parts_by_cell.items() if mark in cell for part in parts}
    return sum(n_cells[part] > 1 for part in split_off) / max(len(split_off), 1)


def set_label(chosen: Collection[str] | None, keys: Sequence[str]) -> str | None:
    """Return the label of chosen options, in the order of all `keys`; None if one is not a key.

    >>> set_label(("c", "a"), "abc"), set_label((), "abc"), set_label(("z",), "abc")
    ('a;c', 'none', None)
    """
    if chosen is None or not set(chosen) <= set(keys):
        return None
    return SEPARATOR.join(key for key in keys if key in chosen) or NONE


_OPPOSITES = table_of("evenhand.rubrics", "templates/opposites.toml")  # see the comments there
TRUTH: list[tuple[str, str]] = [(yes, no) for yes, no in _OPPOSITES["truth"]]
RIGHT_OR_WRONG: list[tuple[str, str]] = [(yes, no) for yes, no in _OPPOSITES["right_or_wrong"]]


def says_yes(names: Iterable[str]) -> str:
    """Return the name of the option that says yes, "" if none does: a word whose opposite is an
    option, too; any other word for yes; or of two options the one that does not say no.

    >>> says_yes(["nein", "ja"]), says_yes(["1", "0"]), says_yes(["Yes", "partly", "not at all"])
    ('ja', '1', 'Yes')
    >>> says_yes(["no", "supported"]), says_yes(["left", "right"]), says_yes("123")
    ('supported', '', '')
    """
    by_word = {normalize("NFC", name).casefold(): name for name in names}
    opposites = [*TRUTH, *RIGHT_OR_WRONG]
    words = [yes for yes, no in opposites if {yes, no} <= by_word.keys()]
    words += [yes for yes, _ in opposites if yes in by_word and yes not in _OPPOSITES["next_to_no"]]
    if len(by_word) == 2 and not words:
        nos = [no for _, no in opposites if no in by_word]
        words = [word for word in by_word if nos and word not in nos]
    return by_word[words[0]] if words else ""


# ---- the kinds of labels ------------------------------------------------------------------------

MOST_LISTED = 250
"""Keys that a JSON schema lists at most, as providers bound the length of an enumeration."""


@dataclass(frozen=True)
class LabelKind:
    """Labels that are one option of a closed list; other kinds override what differs."""

    options: tuple[Option, ...] = ()
    """All labels that may be given, or the options that they are made of."""
    is_ordered: bool = False

    is_choice: ClassVar[bool] = True
    """True if each label is an option, which can be counted and has a probability."""
    is_single: ClassVar[bool] = True
    """True if a label is one value, and not a set of values."""
    short_name: ClassVar[str] = "one option"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the options, in their order on the scale."""
        return tuple(option.key for option in self.options)

    @property
    def names(self) -> dict[str, str]:
        """The names of the options by key."""
        return {option.key: option.name for option in self.options}

    @property
    def listed(self) -> tuple[Option, ...]:
        """The options that are shown one by one, with their names and descriptions."""
        return self.options

    def choices(self, none: str) -> tuple[Option, ...]:
        """Return the options to click on; `none` is the name of the choice of no option."""
        return self.listed

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        """Return the settings of a label's control, except choices; `sentence` has texts by key."""
        return {}

    # ---- words for annotators and graders ----

    @property
    def permitted(self) -> str:
        """The labels that may be given, in words: "yes, no", "a whole number from 0 to 100"."""
        return ", ".join(self.keys)

    def permitted_in(self, sentence: Callable[..., str]) -> str:
        """Return `permitted` in the language of a page, whose texts `sentence` gives by key."""
        return ", ".join(option.name for option in self.options)

    @property
    def none_of(self) -> str:
        """The words for any other text: "none of yes, no", "not a whole number from 0 to 100"."""
        return f"{'none of' if self.is_choice else 'not'} {self.permitted}"

    @property
    def answer_form(self) -> str:
        """The form of the answer that a model is asked for."""
        return "the key of one option"

    @property
    def request(self) -> str:
        """The sentence that asks a model for a label and nothing else."""
        *others, last = self.keys
        return f"Answer with {self.answer_form} and nothing else: {', '.join(others)} or {last}."

    def schema(self) -> dict[str, Any]:
        """Return a label's JSON schema: for very many keys a number, checked when it is parsed."""
        if len(self.keys) > MOST_LISTED:
            return {"type": "number"}
        return {"type": "string", "enum": list(self.keys)}

    # ---- labels and the texts that give them ----

    @property
    def spellings(self) -> dict[str, str]:
        """The keys by the texts that stand for them: names that one option has, and the keys."""
        names = [normalize("NFC", option.name) for option in self.options]
        unique = {n: key for n, key in zip(names, self.keys, strict=True) if names.count(n) == 1}
        return unique | {key: key for key in self.keys}

    def label_of(self, text: str) -> str | None:
        """Return the label in a table's cell in the form that is stored; None if it is not one."""
        return self.spellings.get(text)

    def takes(self, label: str) -> bool:
        """Return True if a label may be stored: in the form in which `label_of` gives it."""
        return self.label_of(label) == label

    def imported_label(self, text: str, key_by_spelling: Mapping[str, str]) -> str:
        """Return the label in another tool's cell, "" for none, by its spelling in lower case."""
        folded = text.casefold()  # perhaps "4.0", as pandas writes 4 in a column with gaps
        return key_by_spelling.get(folded) or key_by_spelling.get(folded.removesuffix(".0"), "")

    def parts(self, label: str) -> list[str]:
        """Return the keys of the options that a label names."""
        return [label] if label else []

    def name_of(self, label: str, none: str = NONE) -> str:
        """Return the names of a label's options: `none` if it has no option, "" for no label."""
        return ", ".join(filter(None, (self.names.get(key, "") for key in self.parts(label))))

    def title_of(self, label: str) -> str:
        """Return a label as adjudicators read it."""
        name = self.name_of(label) or label
        return name if name.casefold() == label.casefold() else f"{label}: {name}"

    def in_order(self, labels: Collection[str]) -> tuple[str, ...]:
        """Return distinct labels in their order, without texts that are not labels."""
        return tuple(key for key in self.keys if key in labels)

    def have_majority(self, labels: Sequence[str]) -> bool:
        """Return True if more than half of the labels on an item, one or more, are the same."""
        return max(map(labels.count, labels)) * 2 > len(labels)

    # ---- the rubric with labels of the kind ----

    def hash_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return the `fields` of a rubric that a rater sees, in the form that is hashed."""
        return fields

    def faults(self, rubric: Mapping[str, Any]) -> Iterator[str]:
        """Yield a sentence for each field of a rubric that contradicts the kind: here for none."""
        yield from ()


@dataclass(frozen=True)
class NumberKind(LabelKind):
    """Labels that are numbers, typed by the rater; the options are all permitted numbers."""

    number: Number = field(kw_only=True)

    is_choice = False
    short_name = "a number"

    @property
    def listed(self) -> tuple[Option, ...]:
        return ()

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        places, words = self.number.places, self.permitted_in(sentence)
        return {"number": self.number.model_dump() | {"places": places, "said": words}}

    @property
    def permitted(self) -> str:
        return self.number.in_words

    def permitted_in(self, sentence: Callable[..., str]) -> str:
        bounds = {name: f"{bound:.12g}" for name, bound in self.number.model_dump().items()}
        if self.number.step == 1 and self.number.places == 0:
            return sentence("number.whole", **bounds)
        return sentence("number.steps", **bounds)

    @property
    def answer_form(self) -> str:
        return self.permitted

    @property
    def request(self) -> str:
        return f"Answer with {self.answer_form} and nothing else."

    def label_of(self, text: str) -> str | None:
        number = plain_number(text)
        return number if number in self.keys else None

    def imported_label(self, text: str, key_by_spelling: Mapping[str, str]) -> str:
        return self.label_of(text) or ""

    def have_majority(self, labels: Sequence[str]) -> bool:
        """Return True if more than half are at most a tenth of the scale away from their median."""
        values = [float(label) for label in labels]
        tenth = (self.number.high - self.number.low) / 10 * (1 + 1e-9)  # rounding errors apart
        return sum(abs(value - median(values)) <= tenth for value in values) * 2 > len(values)

    def hash_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        others = {name: value for name, value in fields.items() if name != "options"}
        return others | {"number": self.number.model_dump(mode="json")}

    def faults(self, rubric: Mapping[str, Any]) -> Iterator[str]:
        for name in ("affirmative", "unclear", "collapse"):
            if rubric[name]:
                yield f"`{name}` names options; a rubric with [number] has none"
        if rubric["unit"] != "response":
            yield "a number rates one response; one on two of them needs options"
        if rubric["several"]:
            yield "`several` does not go with [number]"


@dataclass(frozen=True)
class SetKind(LabelKind):
    """Labels that are sets of options, of which none, one or several apply."""

    is_choice = False
    is_single = False
    short_name = "several options"

    def choices(self, none: str) -> tuple[Option, ...]:
        return (*self.options, Option(key=NONE, name=none))

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        return {"several": True}

    @property
    def permitted(self) -> str:
        return f"a set of {', '.join(self.keys)} ({SEPARATOR.join(self.keys[:2])}, or {NONE})"

    @property
    def answer_form(self) -> str:
        return (
            "the keys of all options that apply, separated by commas (the word none if there is "
            "none)"
        )

    @property
    def request(self) -> str:
        keys = ", ".join(self.keys)
        return f"Answer with {self.answer_form} and nothing else; the keys are {keys}."

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().schema()}

    def label_of(self, text: str) -> str | None:
        chosen = options_in(text, SEPARATORS)
        if chosen is None or not text.strip():
            return None
        return set_label([self.spellings.get(option, option) for option in chosen], self.keys)

    def imported_label(self, text: str, key_by_spelling: Mapping[str, str]) -> str:
        if not text.strip():
            return ""
        options = options_in(text, separators_in([text.casefold()], key_by_spelling) or "")
        if options is None:
            return ""
        keys = [key_by_spelling.get(option.casefold(), "") for option in options]
        return set_label(keys, self.keys) or ""

    def parts(self, label: str) -> list[str]:
        return [key for key in label.split(SEPARATOR) if key in self.keys]

    def name_of(self, label: str, none: str = NONE) -> str:
        return none if label == NONE else super().name_of(label)

    def in_order(self, labels: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted(filter(None, labels)))

    def hash_fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        return fields | {"several": True}

    def faults(self, rubric: Mapping[str, Any]) -> Iterator[str]:
        if rubric["unit"] != "response" or rubric["prompt"]:
            other = "[prompt]" if rubric["prompt"] else f'unit = "{rubric["unit"]}"'
            yield f"`several` does not go with {other}"
        for name in ("affirmative", "unclear", "collapse", "lexical"):
            if rubric[name]:
                yield f"`{name}` does not go with `several`: each option is a yes or no of its own"
        if rubric["level"] != "nominal":
            yield 'options of which several apply have no order; say level = "nominal"'
        if len(self.options) > MOST_SEVERAL:
            yield f"`several` takes {MOST_SEVERAL} options at most"
        if NONE in (key.casefold() for key in self.keys):
            yield f"{NONE!r} says that no option applies; give the option another key"
