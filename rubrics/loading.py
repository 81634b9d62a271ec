"""Rubric files: TOML, one rubric each, unknown fields refused."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.rubrics.model import Rubric

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from pydantic import ValidationError


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
        return None, _faults_of(error)


def _faults_of(error: ValidationError) -> list[str]:
    """List a rubric's faults, a sentence for each."""
    return [sentence for fault in error.errors(include_url=False) for sentence in _said(fault)]


def _said(fault: Mapping[str, Any]) -> list[str]:
    place = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return [f"unknown field {place!r}; take it out or check its spelling"]
    if fault["type"] == "missing":
        return [f"the field {place!r} is missing"]
    messages = fault["msg"].removeprefix("Value error, ").split("\n")
    return [f"{place}: {message}" if place else message for message in messages]


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
        begun = load_rubric(start).model_copy(update={"name": "draft", "published": ()})
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
    if rubric.number:  # whose numbers are the options
        fields = {key: value for key, value in fields.items() if key not in ("options", "level")}
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
            document["prompt"][key] = _verbatim(value)
    return tomlkit.dumps(document)


def _verbatim(text: str) -> Any:
    """A text in which every blank counts; a multiline string keeps no carriage return."""
    import tomlkit

    return tomlkit.string(text, multiline="\n" in text and "\r" not in text)


def _item(value: Any) -> Any:
    import tomlkit

    if isinstance(value, str) and "\n" in value:
        return tomlkit.string(value + "\n", multiline=True)
    if isinstance(value, dict):
        table = tomlkit.table()
        for key, each in value.items():
            table[key] = _item(each)
        return table
    if isinstance(value, list) and value and isinstance(value[0], dict):
        tables = tomlkit.aot()
        for each in value:
            tables.append(_item(each))
        return tables
    return value
