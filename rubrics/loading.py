"""Rubrics from files and from the command line. A file is TOML, one rubric each, unknown fields
refused; the command line asks a question with its options or a scale.

Also words of a user's own for graders, from a file: a whole prompt, which says where a reply has
the answer, or other instructions and examples within the rubric's own frame. Annotators go on
reading the rubric, so grades under such words keep the rubric's hash, and the grader's id ends in
that of the words.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import PrivateAttr, ValidationError, field_validator, model_validator

from evenhand.errors import InputError
from evenhand.rubrics.model import PromptTemplate, Rubric
from evenhand.rubrics.options import (
    MOST_NUMBERS,
    MOST_SEVERAL,
    NONE,
    Block,
    Number,
    Option,
    Strict,
    ordered_scale,
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

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import regex


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
    ordered = () if several or level else ordered_scale(keys)
    if ordered:
        names = [names[keys.index(key)] for key in ordered]
        keys = list(ordered)
    meanings = descriptions or {}
    affirmative = [key for key in keys if key in _YES] or (keys[:1] if len(keys) == 2 else [])
    return Rubric.model_validate(
        texts
        | {
            "level": level or ("ordinal" if scale or ordered else "nominal"),
            "options": [
                Option(key=key, name=name, description=meanings.get(name, ""))
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


# A prompt in a user's own words


class OwnWords(Strict):
    """The words of one file, and the file's text."""

    _source: bytes = PrivateAttr(b"")

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits of SHA-256 over the words and how they are used."""
        text = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def source(self) -> bytes:
        """Text of its file, unchanged."""
        return self._source

    @classmethod
    def of(cls, content: bytes, fields: Mapping[str, Any], name: str) -> Self:
        """Make them of a file's content and fields. Raises InputError where they are not valid."""
        try:
            words = cls.model_validate(fields)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            place = ".".join(map(str, fault["loc"]))
            if fault["type"] == "extra_forbidden":
                sentence = written("judge_prompt.unknown_field", field=place)
            elif fault["type"] in ("missing", "string_too_short"):
                sentence = written("judge_prompt.missing", field=place)
            else:
                message = str(fault["msg"]).removeprefix("Value error, ")
                sentence = f"{place}: {message}" if place else message
            raise InputError(f"{name}: {sentence}") from None
        words._source = content
        return words


class Reworded(Rubric):
    """A rubric whose text annotators read (`of_people`), while graders read other `words`."""

    of_people: Rubric
    words: OwnWords

    @classmethod
    def of(cls, rubric: Rubric, words: OwnWords, **changed: Any) -> Self:
        """Return a rubric with other words for its graders."""
        fields = {name: getattr(rubric, name) for name in Rubric.model_fields}
        return cls.model_construct(**fields | changed | {"of_people": rubric, "words": words})

    @cached_property
    def hash(self) -> str:
        """Hash of the text that annotators read: grades belong to it."""
        return self.of_people.hash


class Example(Strict):
    """A unit as an example: its texts by the rubric's variables, and the label people gave it."""

    texts: dict[str, str]
    label: str


class Instructions(OwnWords):
    """Instructions in place of the rubric's ("": the rubric's own), and examples. Question, options
    and the fences around texts stay the rubric's.
    """

    instructions: str = ""
    examples: tuple[Example, ...] = ()

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.instructions.strip() and not self.examples:
            raise ValueError(written("judge_prompt.nothing"))
        return self

    @classmethod
    def written(
        cls, instructions: str = "", examples: Sequence[Example] = (), remarks: Sequence[str] = ()
    ) -> Instructions:
        """Make instructions, with their file: `remarks` stand at its top, and are not part of the
        words.
        """
        import tomlkit

        document = tomlkit.document()
        for line in remarks:
            document.add(tomlkit.comment(" ".join(line.split())))
        if instructions:
            whole = "\n" in instructions and "\r" not in instructions
            document["instructions"] = tomlkit.string(instructions, multiline=whole)
        if examples:
            tables = tomlkit.aot()
            for example in examples:
                tables.append(tomlkit.item(example.model_dump()))
            document["examples"] = tables
        content = tomlkit.dumps(document).encode()
        return cls.of(content, tomllib.loads(content.decode()), "")

    def for_rubric(self, rubric: Rubric) -> InstructedRubric:
        """Return the rubric with these words for its graders. Raises InputError where the rubric
        has a prompt of its own, the instructions name a text that the rubric's do not, or an
        example is of another rubric.
        """
        if rubric.prompt:
            raise InputError(written("judge_prompt.has_prompt", rubric=rubric.name))
        if more := placeholders(self.instructions) - placeholders(rubric.instructions):
            raise InputError(written("judge_prompt.braces", name=min(more), rubric=rubric.name))
        for example in self.examples:
            if example.label not in rubric.categories or set(rubric.variables) - set(example.texts):
                raise InputError(written("judge_prompt.example", rubric=rubric.name))
        instructions = self.instructions or rubric.instructions
        return InstructedRubric.of(rubric, self, instructions=instructions)


class InstructedRubric(Reworded):
    """A rubric whose graders read other instructions, or examples."""

    words: Instructions

    def for_prompt(self, values: Mapping[str, str]) -> PromptText:
        """Make a prompt of the words, as the rubric makes one of its own."""
        units = (values, *(example.texts for example in self.words.examples))
        plain = [{name: neutralised(text) for name, text in unit.items()} for unit in units]
        people, *shown = map(self.for_people, plain)
        labels = (example.label for example in self.words.examples)
        examples = list(zip(shown, labels, strict=True))
        return prompt_of(people, self.instructions, plain[0], examples)


# ---- a whole prompt -----------------------------------------------------------------------------
OWN_PROMPT = "#prompt-"
"""Part of the id of a grader that reads a user's own prompt; the prompt's hash follows."""

PATTERN_SECONDS = 1.0
"""The most seconds of computing that a pattern may take over one reply. Usual ones take less than a
hundredth.
"""

MOST_REPEATED = 10_000
"""The most that a pattern's least counts, as in `a{20}`, may multiply to: all are compiled."""
_LEAST_COUNT = re.compile(r"\{(\d+)")
_STEP = re.compile(r"([A-Za-z_][\w-]*)|\[(\d{1,4})\]")
_PATH = re.compile(r"(?:\$\.)?[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*|\[\d{1,4}\])*")


def with_own_prompt(raters: Iterable[str], ids: Mapping[str, str] | None = None) -> list[str]:
    """Return the raters that read a judge prompt of their user's own, known by their ids: `ids`
    has those of raters that go by other names.
    """
    return sorted(str(rater) for rater in raters if OWN_PROMPT in (ids or {}).get(rater, rater))


def own_prompt_of(rater: str) -> str:
    """Return the first digits of the hash of a rater's own prompt; "" where it has none."""
    return rater.partition(OWN_PROMPT)[2]


class JudgePrompt(PromptTemplate, OwnWords):
    """The prompt, and one of three places where a reply has its answer: the group of a regular
    expression, a value in a JSON object, or the last line.
    """

    answer_pattern: str = ""
    answer_json: str = ""
    answer_line: Literal["last", ""] = ""

    @field_validator("answer_pattern")
    @classmethod
    def _one_group(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groups
            _timed(pattern)
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
    def _one_place(self) -> Self:
        if sum(map(bool, (self.answer_pattern, self.answer_json, self.answer_line))) != 1:
            raise ValueError(written("judge_prompt.one_place"))
        return self

    @cached_property
    def _pattern(self) -> regex.Pattern[str]:
        return _timed(self.answer_pattern)

    def for_rubric(self, rubric: Rubric) -> JudgedRubric:
        """Return the rubric with this prompt for its graders. Raises InputError where the prompt
        names a text that the rubric's units do not have, or leaves out a response.
        """
        texts = [name for name in TEXT_VARIABLES if ("_" in name) == rubric.has_sides]
        if rubric.unit == "comparison":
            texts = [*ANSWERS]
        offered = list(dict.fromkeys([*texts, *rubric.variables]))
        named, in_system = placeholders(self.template), placeholders(self.system)
        if unknown := (named | in_system).difference(offered):
            facts = {"name": min(unknown), "rubric": rubric.name}
            offered = [f"{{{name}}}" for name in offered]
            raise InputError(written("judge_prompt.unknown", **facts, offered=", ".join(offered)))
        if in_system:
            raise InputError(written("judge_prompt.in_system", name=min(in_system)))
        shown = rubric.variables if rubric.blocks else texts
        for name in shown:
            if name.startswith("response") and name not in named:
                raise InputError(written("judge_prompt.not_shown", name=name, rubric=rubric.name))
        variables = tuple(name for name in offered if name in named)
        return JudgedRubric.of(rubric, self, prompt=self, variables=variables)

    def pieces(self, reply: str) -> Iterable[str]:
        """Return the texts found in the place of the answer. Raises TimeoutError where the pattern
        takes longer than `PATTERN_SECONDS` over the reply.

        >>> at = JudgePrompt(template="{response}", answer_json="verdict.scores[1]")
        >>> list(at.pieces('Well: {"verdict": {"scores": [1, 4]}}'))
        ['4']
        """
        if self.answer_line:
            return reply.strip().splitlines()[-1:]
        if self.answer_pattern:
            answers = self._pattern.findall(reply, timeout=PATTERN_SECONDS)
            return [answer for answer in answers if answer]
        path = _STEP.findall(self.answer_json.removeprefix("$."))
        first, *steps = [name or int(place) for name, place in path]
        return [
            value if isinstance(value, str) else json.dumps(value)
            for fields in json_fields(reply)
            for name, held in fields
            if name == first
            for value in _at(held, steps)
        ]


class JudgedRubric(Reworded):
    """A rubric whose graders read a prompt of their user's own."""

    prompt: JudgePrompt
    words: JudgePrompt

    @cached_property
    def parser(self) -> RubricParser:
        """The parser that reads the answer where the prompt says it is."""
        return PlacedParser(self.kind.names, prompt=self.prompt)


def read_own_words(path: Path) -> JudgePrompt | Instructions:
    """Read a file of a user's own words for graders: a whole prompt, or instructions or examples
    alone. Raises InputError where it is missing or not valid.
    """
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
        """Return the key given in that place, or None. Raises TimeoutError as `pieces` does."""
        answer, read = answer_of(text), super().label
        given = {read(piece) for piece in self._prompt.pieces(answer or "")}
        return given.pop() if len(given) == 1 else None


def _timed(pattern: str) -> regex.Pattern[str]:
    """Compile a pattern with the package whose searches end in time: those of `re` cannot, and a
    pattern such as `((a|aa)+)b` may take years over a reply of a few dozen characters.
    """
    import regex  # of all that reads rubrics, only such prompts need it

    times = math.prod(max(1, int(count)) for count in _LEAST_COUNT.findall(pattern))
    if times > MOST_REPEATED:
        raise ValueError(f"its parts repeat {times:,} times; at most {MOST_REPEATED:,}")
    try:
        return regex.compile(pattern, regex.VERSION0)
    except regex.error as error:
        raise ValueError(str(error)) from None


def _at(value: Any, steps: list[str | int]) -> Iterator[Any]:
    """Find the values at a path; a name that occurs twice in an object leads to both."""
    if not steps:
        yield value
    elif isinstance(value, Mapping):
        for name, held in getattr(value, "pairs", value.items()):
            if name == steps[0]:
                yield from _at(held, steps[1:])
    elif isinstance(value, list) and isinstance(steps[0], int) and steps[0] < len(value):
        yield from _at(value[steps[0]], steps[1:])
