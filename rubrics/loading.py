"""Rubrics from files, from the command line, and with a user's own words for graders.

A rubric's file is TOML, in which unknown fields are refused. The command line gives a question with
its options or a scale. A user's own words for graders come from a file too: a whole prompt, which
also says where in a reply to find the answer, or other instructions and examples in the usual
prompt's frame. Annotators still read the rubric, so grades under such words keep the rubric's hash,
and the grader's id ends in the hash of the words.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Literal, Self
from unicodedata import normalize

from pydantic import PrivateAttr, ValidationError, field_validator, model_validator

from evenhand.errors import InputError
from evenhand.lazy import regex, tomlkit
from evenhand.rubrics.model import PromptTemplate, Rubric
from evenhand.rubrics.options import (
    KEY,
    MOST_NUMBERS,
    MOST_SEVERAL,
    NONE,
    Block,
    Number,
    Option,
    Strict,
    ordered_scale,
    plain_number,
    says_yes,
)
from evenhand.rubrics.parsing import RubricParser, answer_of, json_fields
from evenhand.rubrics.rendering import (
    ANSWERS,
    TEXT_VARIABLES,
    PromptText,
    neutralised,
    placeholders,
    prompt_of,
)
from evenhand.texts import written


@cache
def shipped_rubrics() -> dict[str, str]:
    """Return the texts of the files of the rubrics for pairs and propositions, sorted by name."""
    return _texts_in(files("evenhand.rubrics"))


@cache
def library_rubrics() -> dict[str, str]:
    """Return the texts of the files of the rubrics for items, by name; none is a default."""
    return _texts_in(files("evenhand.rubrics") / "library")


def named_rubrics() -> dict[str, str]:
    """Return the texts of all rubrics that come with evenhand, by name, the library last."""
    return shipped_rubrics() | library_rubrics()


def _texts_in(folder: Traversable) -> dict[str, str]:
    texts = {
        entry.name.removesuffix(".toml"): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".toml")
    }
    return dict(sorted(texts.items()))


def load_rubric(source: str | Path) -> Rubric:
    """Return a rubric that comes with evenhand, by name, or any rubric by the path of its file.

    >>> load_rubric("refusal").categories
    ('1', '2', '3', '4', '5')

    Raises InputError if there is no such rubric, or its file is not valid.
    """
    name = str(source).replace("_", "-")
    file = f"{name}.toml" if name in named_rubrics() else Path(source).name
    return parse_rubric(rubric_text(source), file)


def rubric_text(source: str | Path) -> str:
    """Return the text of a rubric's file by name or path. Raises InputError if there is none."""
    texts, path = named_rubrics(), Path(source)
    if text := texts.get(str(source).replace("_", "-")):
        return text
    if not path.is_file():
        names = ", ".join(texts)
        raise InputError(f"there is no rubric {str(path)!r}: name a file, or one of {names}")
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None


@lru_cache(maxsize=64)  # every opening of a study reads its rubrics
def parse_rubric(text: str, file: str) -> Rubric:
    """Return the rubric of a file's text. Raises InputError, naming `file`, for its first fault."""
    rubric, faults = read_rubric(text)
    if rubric is None:
        raise InputError(f"{file}: {faults[0]}")
    return rubric


def read_rubric(text: str) -> tuple[Rubric | None, list[str]]:
    """Return the rubric of a file's text, or None, and a sentence for each fault."""
    try:
        return Rubric.model_validate(tomllib.loads(text)), []
    except tomllib.TOMLDecodeError as error:
        return None, [f"it is not valid TOML: {error}"]
    except ValidationError as error:
        sentences = []
        for fault in error.errors(include_url=False):
            path = ".".join(map(str, fault["loc"]))
            if fault["type"] == "extra_forbidden":
                sentences.append(f"unknown field {path!r}; take it out or check its spelling")
            elif fault["type"] == "missing":
                sentences.append(f"the field {path!r} is missing")
            else:
                messages = fault["msg"].removeprefix("Value error, ").split("\n")
                sentences += [f"{path}: {message}" if path else message for message in messages]
        return None, sentences


def draft_rubric(name: str, start: str | Path = "") -> str:
    """Return the text of a new rubric file: a commented draft, or the rubric `start` under another
    name. Raises InputError if the name is not valid, or belongs to a rubric of evenhand.
    """
    if name.replace("_", "-") in named_rubrics():
        raise InputError(
            f"{name!r} is a rubric that comes with evenhand; give yours another name, such as "
            f"my-{name}"
        )
    text = (files("evenhand.rubrics") / "templates" / "draft.toml").read_text("utf-8")
    if start:
        comment, blank, _ = text.partition("\n\n")  # at the top of the draft
        draft = load_rubric(start).model_copy(update={"name": "draft"})
        text = comment + blank + dump_rubric(draft)
    text = text.replace('"draft"', json.dumps(name), 1)  # the value of `name`
    parse_rubric(text, f"{name}.toml")  # raises InputError for an invalid name
    return text


# Tables are written last, as TOML reads any key after a table as a part of that table.
_TABLES = ("blocks", "number", "options", "golden", "lexical", "translations")


def dump_rubric(rubric: Rubric) -> str:
    """Return the text of a rubric's file, from which `parse_rubric` makes the same rubric."""
    document = tomlkit.document()
    fields: dict[str, Any] = rubric.model_dump(mode="json", exclude_defaults=True)
    prompt = fields.pop("prompt", None)
    if not rubric.kind.listed:  # a number, from which options and level follow
        del fields["options"], fields["level"]
    tables = {name: fields.pop(name, None) for name in _TABLES}
    for key, value in (fields | tables).items():
        if value is not None:
            document[key] = _toml_item(value)
    if prompt is not None:
        document["prompt"] = tomlkit.table()
        for key, value in prompt.items():
            document["prompt"][key] = _exact_toml_string(value)
    return tomlkit.dumps(document)


def _toml_item(value: Any) -> Any:
    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value + "\n", multiline=True)  # stripped when it is read
    if isinstance(value, dict):
        return tomlkit.item({key: _toml_item(item) for key, item in value.items()})
    return tomlkit.item([_toml_item(item) for item in value] if isinstance(value, list) else value)


def _exact_toml_string(text: str) -> Any:
    """Return a text in which white space counts; a multiline string keeps no carriage return."""
    return tomlkit.string(text, multiline="\n" in text and "\r" not in text)


# ---- a rubric asked on the command line ---------------------------------------------------------

MOST_POINTS = 11  # points of a scale that are options; raters type the number on a longer scale
_SCALE = re.compile(r"(\d{1,4})-(\d{1,4})")  # "1-5"
_KEYS_BY_STEPS = {2: ("A", "B"), 3: ("A", "tie", "B"), 5: ("A2", "A1", "tie", "B1", "B2")}
_PREFERENCES = {  # by an option's key: its name is `items.prefers_...` in texts.toml
    "A": "a", "A1": "a_little", "A2": "a_much", "tie": "tie",
    "B": "b", "B1": "b_little", "B2": "b_much",
}  # fmt: skip
_SIDES: dict[str, Literal["a", "b", ""]] = {"A": "a", "B": "b"}  # by the first letter of a key


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
    """Return a rubric called "rating" on these texts, with options or a scale.

    One of the `options` is affirmative: one that `says_yes`, else the first of two. They are
    ordered by their `level` or, without it, if they are whole numbers in a row; `descriptions`
    are by option name. With `several` any number of them may apply, and none is affirmative. A
    `scale` such as "1-5" has its points as options, or is a number if it is 0-1 or has more than 11
    points. Raises InputError for options and a scale, for neither, and for too many points.

    >>> blocks = [Block(column="response", label="Response")]
    >>> rubric = asked_rubric("Is it polite?", blocks, options=["Yes", "Not at all"])
    >>> rubric.categories, rubric.affirmative, rubric.level
    (('yes', 'not-at-all'), ('yes',), 'nominal')
    >>> asked_rubric("How polite is it?", blocks, scale="1-3").categories
    ('1', '2', '3')
    >>> asked_rubric("How polite is it?", blocks, scale="0-100").number.in_words
    'a whole number from 0 to 100'
    """
    _check_answers_asked(options, scale, level, several=several)
    fields: dict[str, Any] = {
        "name": "rating",
        "title": written("items.title"),
        "unit": "response",
        "question": question,
        "blocks": tuple(blocks),
        "variables": tuple(block.column for block in blocks),
    }
    answers = _points(scale) if scale else [name.strip() for name in options if name.strip()]
    if isinstance(answers, Number):
        return Rubric.model_validate(fields | {"number": answers})
    names = _names_by_key(answers, several=several)
    ordered = () if several or level else ordered_scale([*names])  # () unless whole numbers
    keys = [*(ordered or names)]
    yes = says_yes(names.values())
    affirmative = [key for key in keys if names[key] == yes] or (keys if len(keys) == 2 else [])
    fields |= {
        "level": level or ("ordinal" if scale or ordered else "nominal"),
        "options": [
            Option(key=key, name=names[key], description=(descriptions or {}).get(names[key], ""))
            for key in keys
        ],
        "affirmative": () if scale or several else tuple(affirmative[:1]),
        "several": several,
    }
    return Rubric.model_validate(fields)


def _check_answers_asked(options: Sequence[str], scale: str, level: str, *, several: bool) -> None:
    """Raise InputError if arguments of `asked_rubric` exclude one another."""
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


def _names_by_key(names: Sequence[str], *, several: bool) -> dict[str, str]:
    """Return the names of options by the keys made from them. Raises InputError if keys are not
    distinct, or are too few, or too many for a rubric on which `several` may apply.
    """
    keys = [_key_of(name) or f"option-{n}" for n, name in enumerate(names, start=1)]
    for key, name in zip(keys, names, strict=True):
        if keys.count(key) > 1:
            raise InputError(f"--options: two options are called like {name!r}; give each its own")
    if len(keys) < 2:
        raise InputError("--options: name two options at least, such as --options yes,no")
    if several and len(keys) > MOST_SEVERAL:
        raise InputError(f"--options: {len(keys)} options, more than {MOST_SEVERAL}; group them")
    if several and NONE in keys:
        raise InputError(f"--options: leave {NONE} out; raters can always say that none applies")
    return dict(zip(keys, names, strict=True))


def _points(scale: str) -> list[str] | Number:
    """Return the points of a scale, or the number that it asks for if it has many points."""
    if not (ends := _SCALE.fullmatch(scale.strip())):
        raise InputError(f"--scale is {scale!r}; write its ends, as in --scale 1-5")
    low, high = int(ends[1]), int(ends[2])
    if (low, high) == (0, 1):
        return Number(low=0, high=1, step=0.01)  # a share, not a no and a yes
    if not 2 <= high - low + 1 <= MOST_NUMBERS:
        raise InputError(f"--scale {scale} must have 2 to {MOST_NUMBERS:,} points")
    points = [str(point) for point in range(low, high + 1)]
    return points if len(points) <= MOST_POINTS else Number(low=low, high=high)


def asked_comparison(question: str, blocks: Sequence[Block], steps: int = 3) -> Rubric:
    """Return a rubric called "preference" on two answers, with two, three or five `steps` from one
    to the other. Raises InputError for another number.

    >>> blocks = [Block(column="prompt", label="Prompt"), Block(column="response", label="Answer")]
    >>> asked_comparison("Which is kinder?", blocks, 5).categories
    ('A2', 'A1', 'tie', 'B1', 'B2')
    """
    if steps not in _KEYS_BY_STEPS:
        raise InputError(f"--steps is {steps}; two answers are compared in 2, 3 or 5 steps")
    keys = _KEYS_BY_STEPS[steps]
    sides = [_SIDES.get(key[0], "") for key in keys]  # "tie" favours neither
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
            Option(key=key, name=name, swapped=swapped if swapped != key else "", favours=side)
            for key, swapped, name, side in zip(keys, keys[::-1], names, sides, strict=True)
        ),
    )


def _key_of(name: str) -> str:
    """Return the key of an option of this name, without accents; "" if it has no ASCII letter."""
    number = plain_number(name)  # keeps its sign and its point
    letters = re.sub("[\u0300-\u036f]", "", normalize("NFKD", name.casefold()))
    words = re.sub(r"[^a-z0-9_+-]+", "-", letters).strip("-")[:24]  # as long as `KEY`
    return number if KEY.fullmatch(number) else words


# ---- a user's own words for graders -------------------------------------------------------------
class OwnWords(Strict):
    """A user's words for graders, and the bytes of their file (`source`)."""

    _source: bytes = PrivateAttr(b"")

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits of SHA-256 over all fields."""
        text = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def source(self) -> bytes:
        """The content of the file, unchanged."""
        return self._source

    @classmethod
    def of(cls, content: bytes, fields: Mapping[str, Any], name: str) -> Self:
        """Return the words in the `fields` of a file of this name. Raises InputError if invalid."""
        try:
            words = cls.model_validate(fields)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            path = ".".join(map(str, fault["loc"]))
            if fault["type"] == "extra_forbidden":
                sentence = written("judge_prompt.unknown_field", field=path)
            elif fault["type"] in ("missing", "string_too_short"):
                sentence = written("judge_prompt.missing", field=path)
            else:
                message = str(fault["msg"]).removeprefix("Value error, ")
                sentence = f"{path}: {message}" if path else message
            raise InputError(f"{name}: {sentence}") from None
        words._source = content
        return words


class Reworded(Rubric):
    """A rubric with other `words` for graders, while annotators read the rubric `of_people`."""

    of_people: Rubric
    words: OwnWords

    @classmethod
    def of(cls, rubric: Rubric, words: OwnWords, **fields: Any) -> Self:
        """Return a rubric with other words, and other fields (not validated), for its graders."""
        original = {name: getattr(rubric, name) for name in Rubric.model_fields}
        return cls.model_construct(**original | fields | {"of_people": rubric, "words": words})

    @cached_property
    def hash(self) -> str:
        """The hash of the rubric that annotators read, as grades are compared with their labels."""
        return self.of_people.hash


class Example(Strict):
    """An example for graders: an item's texts by the rubric's variables, and annotators' label."""

    texts: dict[str, str]
    label: str


class Instructions(OwnWords):
    """A user's instructions ("" keeps the rubric's) and examples, in the usual prompt's frame."""

    instructions: str = ""
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.instructions.strip() and not self.examples:
            raise ValueError(written("judge_prompt.nothing"))
        return self

    @classmethod
    def make(
        cls, instructions: str = "", examples: Sequence[Example] = (), remarks: Sequence[str] = ()
    ) -> Instructions:
        """Return instructions with the text of a file as `source`, with `remarks` as comments."""
        document = tomlkit.document()
        for line in remarks:
            document.add(tomlkit.comment(" ".join(line.split())))
        if instructions:
            document["instructions"] = _exact_toml_string(instructions)
        if examples:
            document["examples"] = tomlkit.item([example.model_dump() for example in examples])
        content = tomlkit.dumps(document).encode()
        return cls.of(content, tomllib.loads(content.decode()), "")

    def for_rubric(self, rubric: Rubric) -> InstructedRubric:
        """Return the rubric with these words for its graders. Raises InputError if the rubric has a
        prompt, if its instructions lack a variable that these name, or if an example does not fit.
        """
        if rubric.prompt:
            raise InputError(written("judge_prompt.has_prompt", rubric=rubric.name))
        if unknown := placeholders(self.instructions) - placeholders(rubric.instructions):
            raise InputError(written("judge_prompt.braces", name=min(unknown), rubric=rubric.name))
        for example in self.examples:
            if example.label not in rubric.categories or set(rubric.variables) - set(example.texts):
                raise InputError(written("judge_prompt.example", rubric=rubric.name))
        instructions = self.instructions or rubric.instructions
        return InstructedRubric.of(rubric, self, instructions=instructions)


class InstructedRubric(Reworded):
    """A rubric whose graders read other instructions, or examples."""

    words: Instructions

    def for_prompt(self, values: Mapping[str, str]) -> PromptText:
        """Return the prompt with the user's words, in the same frame as the rubric's."""

        def neutral(texts: Mapping[str, str]) -> dict[str, str]:
            return {name: neutralised(text) for name, text in texts.items()}

        examples = [(self.for_people(neutral(one.texts)), one.label) for one in self.words.examples]
        values = neutral(values)
        return prompt_of(self.for_people(values), self.instructions, values, examples)


# ---- a whole prompt -----------------------------------------------------------------------------
OWN_PROMPT = "#prompt-"
"""Part of the id of a grader that reads a user's own prompt; the prompt's hash follows."""
PATTERN_SECONDS = 1.0
"""Seconds of computing that a pattern may take over one reply; most take less than a hundredth."""
MOST_REPEATED = 10_000
"""Limit of the product of a pattern's repeat counts, as in `a{20}`: all copies are compiled."""
_REPEAT_COUNT = re.compile(r"\{(\d+)")
_STEP = re.compile(r"([A-Za-z_][\w-]*)|\[(\d{1,4})\]")  # "verdict" or "[1]"
_PATH = re.compile(r"(?:\$\.)?[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[\d{1,4}\])*")


def own_prompt_raters(raters: Iterable[str], ids: Mapping[str, str] | None = None) -> list[str]:
    """Return those raters that read a user's own prompt, sorted; `ids` are ids by display name."""
    return sorted(str(rater) for rater in raters if OWN_PROMPT in (ids or {}).get(rater, rater))


def own_prompt_hash(rater: str) -> str:
    """Return the first digits of the hash of a rater's own prompt; "" if it has none."""
    return rater.partition(OWN_PROMPT)[2]


class JudgePrompt(PromptTemplate, OwnWords):
    """A user's own prompt, and the place where a reply has its answer. This is one of three: the
    group of a regular expression, a path in a JSON object such as "scores[0]", or the last line.
    """

    answer_pattern: str = ""
    answer_json: str = ""
    answer_line: Literal["last", ""] = ""

    @field_validator("answer_pattern")
    @classmethod
    def _has_one_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groups
            _compile_with_timeout(pattern)  # raises ValueError if its parts repeat too often
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(written("judge_prompt.no_pattern", why=error)) from None
        if pattern and groups != 1:
            raise ValueError(written("judge_prompt.groups", groups=groups))
        return pattern

    @field_validator("answer_json")
    @classmethod
    def _is_path(cls, path: str) -> str:
        if path and not _PATH.fullmatch(path):
            raise ValueError(written("judge_prompt.no_path", path=path))
        return path

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if sum(map(bool, (self.answer_pattern, self.answer_json, self.answer_line))) != 1:
            raise ValueError(written("judge_prompt.one_place"))
        return self

    @cached_property
    def _pattern(self) -> regex.Pattern[str]:
        return _compile_with_timeout(self.answer_pattern)

    def for_rubric(self, rubric: Rubric) -> JudgedRubric:
        """Return the rubric with this prompt for its graders. Raises InputError if the prompt names
        a text that the rubric's units do not have, or leaves out a response.
        """
        is_of_side = {name: name.endswith(("_a", "_b")) for name in TEXT_VARIABLES}
        texts = [name for name in TEXT_VARIABLES if is_of_side[name] == rubric.has_sides]
        if rubric.unit == "comparison":
            texts = [*ANSWERS]
        allowed = list(dict.fromkeys([*texts, *rubric.variables]))
        in_template, in_system = placeholders(self.template), placeholders(self.system)
        if unknown := (in_template | in_system).difference(allowed):
            facts = {"name": min(unknown), "rubric": rubric.name}
            fields = ", ".join(f"{{{name}}}" for name in allowed)
            raise InputError(written("judge_prompt.unknown", **facts, offered=fields))
        if in_system:
            raise InputError(written("judge_prompt.in_system", name=min(in_system)))
        for name in rubric.variables if rubric.blocks else texts:
            if name.startswith("response") and name not in in_template:
                raise InputError(written("judge_prompt.not_shown", name=name, rubric=rubric.name))
        variables = tuple(name for name in allowed if name in in_template)
        return JudgedRubric.of(rubric, self, prompt=self, variables=variables)

    def pieces(self, reply: str) -> Iterable[str]:
        """Return the texts in a reply in the place of the answer. Raises TimeoutError if the
        pattern takes longer than `PATTERN_SECONDS`.

        >>> prompt = JudgePrompt(template="{response}", answer_json="verdict.scores[1]")
        >>> list(prompt.pieces('Well: {"verdict": {"scores": [1, 4]}}'))
        ['4']
        """
        if self.answer_line:
            return reply.strip().splitlines()[-1:]
        if self.answer_pattern:
            answers = self._pattern.findall(reply, timeout=PATTERN_SECONDS)
            return [answer for answer in answers if answer]
        path = _STEP.findall(self.answer_json.removeprefix("$."))  # name or index of each step
        field, *steps = [name or int(index) for name, index in path]
        fields = [named for json_object in json_fields(reply) for named in json_object]
        values = [value for name, value in fields if name == field]
        answers = [answer for value in values for answer in _values_at(value, steps)]
        return [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]


class JudgedRubric(Reworded):
    """A rubric whose graders read a user's own prompt."""

    prompt: JudgePrompt
    words: JudgePrompt

    @cached_property
    def parser(self) -> RubricParser:
        """The parser that reads the answer in the place that the prompt names."""
        return PlacedParser(self.kind.names, prompt=self.prompt)


def read_own_words(path: Path) -> JudgePrompt | Instructions:
    """Read a file with a prompt, instructions or examples. Raises InputError if it is invalid."""
    if not path.is_file():
        raise InputError(written("judge_prompt.no_file", file=path))
    content = path.read_bytes()
    try:
        fields = tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(written("judge_prompt.not_text", file=path.name)) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(written("judge_prompt.no_toml", file=path.name, why=error)) from None
    kind = JudgePrompt if fields.keys().isdisjoint(Instructions.model_fields) else Instructions
    return kind.of(content, fields, path.name)


class PlacedParser(RubricParser):
    """Parser of the answer in the place that a prompt names; several answers there must agree.

    >>> prompt = JudgePrompt(template="{response}", answer_pattern="Verdict: (.)")
    >>> parse = PlacedParser({"A": "First", "B": "Second"}, prompt=prompt).label
    >>> answers = ("A is vague. Verdict: B", "Verdict: A. Or Verdict: B", "A")
    >>> [parse(text) for text in answers]
    ['B', None, None]
    """

    def __init__(self, names: Mapping[str, str], *, prompt: JudgePrompt) -> None:
        super().__init__(names)
        self._prompt = prompt

    def label(self, text: str) -> str | None:
        """Return the key in the answer's place, or None. Raises TimeoutError as `pieces` does."""
        parse = super().label
        labels = {parse(piece) for piece in self._prompt.pieces(answer_of(text) or "")}
        return labels.pop() if len(labels) == 1 else None


def _compile_with_timeout(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern with `regex`, whose searches take a timeout: with `re` a pattern such as
    `((a|aa)+)b` may take years over a short reply. Raises ValueError if invalid or too repetitive.
    """
    n_copies = math.prod(max(1, int(count)) for count in _REPEAT_COUNT.findall(pattern))
    if n_copies > MOST_REPEATED:
        raise ValueError(f"its parts repeat {n_copies:,} times; at most {MOST_REPEATED:,}")
    try:
        return regex.compile(pattern, regex.VERSION0)
    except regex.error as error:
        raise ValueError(str(error)) from None


def _values_at(value: Any, steps: list[str | int]) -> Iterator[Any]:
    """Yield the values at the end of a path; a name that an object has twice leads to both."""
    if not steps:
        yield value
    elif isinstance(value, Mapping):
        for name, inner in getattr(value, "pairs", value.items()):  # every pair of `json_fields`
            if name == steps[0]:
                yield from _values_at(inner, steps[1:])
    elif isinstance(value, list) and isinstance(steps[0], int) and steps[0] < len(value):
        yield from _values_at(value[steps[0]], steps[1:])
