"""Words of a user's own for graders, from a file: a whole prompt, which says where a reply has the
answer, or other instructions and examples within the rubric's own frame.

Annotators go on reading the rubric, so grades under such words keep the rubric's hash, and the
grader's id ends in that of the words.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import PrivateAttr, ValidationError, field_validator, model_validator

from evenhand.errors import InputError
from evenhand.rubrics.model import PromptTemplate, Rubric
from evenhand.rubrics.options import Strict
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
    import regex


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
