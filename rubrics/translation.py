"""A rubric's words in another language: the same options under the same keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from pydantic import Field

from evenhand.rubrics.options import Option, Texts
from evenhand.rubrics.rendering import placeholders

LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language's code as HTML has it: `de`, `pt-BR`."""


class TranslatedOption(Texts):
    """An option's words in another language; key and meaning are the rubric's."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()


class Translation(Texts):
    """All texts of a rubric that people read."""

    title: str = Field(min_length=1)
    question: str = Field(min_length=1)
    instructions: str = Field(min_length=1)
    options: tuple[TranslatedOption, ...]


def check_translation(
    translation: Translation, options: Sequence[Option], used: Collection[str]
) -> None:
    """Raises ValueError where a translation leaves out or adds an option or a variable.

    `used` are the variables in the original's question and instructions.
    """
    original = {option.key: option for option in options}
    keys = [option.key for option in translation.options]
    for key in keys:
        if key not in original:
            raise ValueError(f"option {key!r} is none of the rubric's {', '.join(original)}")
    if missing := [key for key in original if key not in keys]:
        raise ValueError(f"option {missing[0]!r} is missing; translate it too")
    if keys != list(original):
        raise ValueError(f"the options stand in another order; keep {', '.join(original)}")
    for option in translation.options:
        own = original[option.key]
        if bool(option.description) != bool(own.description):
            raise ValueError(f"option {option.key!r}: translate `description`, if there is one")
        if len(option.examples) != len(own.examples):
            raise ValueError(
                f"option {option.key!r} has {len(option.examples)} examples and the original "
                f"{len(own.examples)}; translate each"
            )
        for text in (option.name, option.description, *option.examples):
            if found := placeholders(text):
                raise ValueError(
                    f"option {option.key!r} holds {{{min(found)}}}; variables belong in the "
                    "instructions or the question"
                )
    there = placeholders(translation.question) | placeholders(translation.instructions)
    if differing := there ^ set(used):
        raise ValueError(
            f"{{{min(differing)}}} stands in only one of original and translation; use the same "
            "variables in both"
        )
