"""Words of a user's own for graders, from a file: a whole prompt (`judge_prompt`), or other
instructions and examples within the rubric's own frame.

Annotators go on reading the rubric, so grades under such words keep the rubric's hash, and the
grader's id ends in that of the words.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_validator

from evenhand.errors import InputError
from evenhand.rubrics.model import Rubric
from evenhand.rubrics.rendering import PromptText, neutralised, placeholders, prompt_of
from evenhand.texts import written


class OwnWords(BaseModel):
    """The words of one file, and the file's text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
    def read(cls, path: Path) -> Self:
        """Read the words of a TOML file. Raises InputError where it is missing or not valid."""
        return cls.of(*content_of(path), path.name)

    @classmethod
    def of(cls, content: bytes, fields: Mapping[str, Any], name: str) -> Self:
        """Make them of a file's content and fields. Raises InputError where they are not valid."""
        try:
            found = cls.model_validate(fields)
        except ValidationError as error:
            raise InputError(f"{name}: {_sentence(error)}") from None
        found._source = content
        return found


def content_of(path: Path) -> tuple[bytes, dict[str, Any]]:
    """Return the content of a TOML file, and its fields. Raises InputError where there are none."""
    if not path.is_file():
        raise InputError(written("judge_prompt.no_file", file=path))
    content = path.read_bytes()
    try:
        return content, tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(written("judge_prompt.not_text", file=path.name)) from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(written("judge_prompt.no_toml", file=path.name, why=error)) from None


class Reworded(Rubric):
    """A rubric whose text annotators read (`of_people`), while graders read other words."""

    of_people: Rubric

    @property
    def words(self) -> OwnWords:
        """The words that graders read."""
        raise NotImplementedError

    @cached_property
    def hash(self) -> str:
        """Hash of the text that annotators read: grades belong to it."""
        return self.of_people.hash


class Example(BaseModel):
    """A unit as an example: its texts by the rubric's variables, and the label people gave it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

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
            for each in examples:
                tables.append(tomlkit.item(each.model_dump()))
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
        for each in self.examples:
            if each.label not in rubric.categories or set(rubric.variables) - set(each.texts):
                raise InputError(written("judge_prompt.example", rubric=rubric.name))
        own = {name: getattr(rubric, name) for name in Rubric.model_fields}
        own["instructions"] = self.instructions or rubric.instructions
        return InstructedRubric.model_construct(**own | {"own": self, "of_people": rubric})


class InstructedRubric(Reworded):
    """A rubric whose graders read other instructions, or examples."""

    own: Instructions

    @property
    def words(self) -> Instructions:
        """The words that graders read."""
        return self.own

    def for_prompt(self, values: Mapping[str, str]) -> PromptText:
        """Make a prompt of the words, as the rubric makes one of its own."""
        shown = [self.for_people(_plain(each.texts)) for each in self.own.examples]
        labels = (each.label for each in self.own.examples)
        values = _plain(values)
        examples = list(zip(shown, labels, strict=True))
        return prompt_of(self.for_people(values), self.instructions, values, examples)


def _plain(values: Mapping[str, str]) -> dict[str, str]:
    return {name: neutralised(text) for name, text in values.items()}


def _sentence(error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    place = ".".join(map(str, fault["loc"]))
    if fault["type"] == "extra_forbidden":
        return written("judge_prompt.unknown_field", field=place)
    if fault["type"] in ("missing", "string_too_short"):
        return written("judge_prompt.missing", field=place)
    said = str(fault["msg"]).removeprefix("Value error, ")
    return f"{place}: {said}" if place else said
