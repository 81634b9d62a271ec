"""Texts of the annotators' pages that no rubric provides: one TOML file for each language.

`en.toml` is the original, and a test holds the others to its keys and `{fields}`. `[refused]` and
`[background]` are only in the translations: the English reasons for refusing entry are in
`evenhand/texts.toml`, the usual questions about the annotator in `study/settings`.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from evenhand.errors import InputError, Refused
from evenhand.study.settings import study_toml

ORIGINAL = "en"

Sentence = str | dict[str, str]
"""A text with `{fields}`; or, where it counts something, its forms for `one` and for `other`."""


@dataclass(frozen=True)
class Language:
    """Sentences of one language, by the section of its file and the sentence's name."""

    code: str
    name: str
    """Its name in the language itself."""
    dir: str
    """Writing direction, as in HTML."""
    sections: Mapping[str, Any]

    def say(self, key: str, /, **fields: object) -> str:
        """Return the sentence with the key `section.name`, its fields filled in. Where it has two
        forms, the field `count` chooses. Raises KeyError for a missing sentence or field.

        >>> language("en").say("session.place", at=1, of=3)
        'Step 1 of 3'
        """
        sentence: Any = self.sections
        for part in key.split("."):
            sentence = sentence[part]
        if isinstance(sentence, dict):
            sentence = sentence["one" if fields["count"] == 1 else "other"]
        return str(sentence.format(**fields))

    def part(self, section: str) -> dict[str, Sentence]:
        """Return all sentences of a section, for the panel, which fills them in itself."""
        return dict(self.sections[section])

    def complaint(self, error: InputError) -> str:
        """Return an error's sentence, in this language if it has one for it."""
        if not isinstance(error, Refused) or self.code == ORIGINAL:
            return str(error)
        return self.say(f"refused.{error.reason}", **error.fields)

    def background(self, question: study_toml.BackgroundQuestion) -> tuple[str, tuple[str, ...]]:
        """Return a question about the annotator and its options: translated if it is one of the
        usual ones, else in the study's words. What is stored is always in the study's words.
        """
        usual = question.model_copy(update={"quotas": ()}) in study_toml.USUAL_BACKGROUND
        if self.code == ORIGINAL or not usual:
            return question.question, question.options
        translated = self.sections["background"][question.key]
        return translated["question"], tuple(translated["options"])


@cache
def known_languages() -> tuple[str, ...]:
    """Return the codes of all languages that have a file, sorted."""
    names = (file.name for file in files("evenhand.annotate_app.languages").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@cache
def language(code: str) -> Language:
    """Return the language with this code, read from its file."""
    file = files("evenhand.annotate_app.languages").joinpath(f"{code}.toml")
    sections = tomllib.loads(file.read_text("utf-8"))
    return Language(code, sections.pop("name"), sections.pop("dir"), sections)


def codes_english_first() -> list[str]:
    """Return the codes of all languages, for texts shown in all of them."""
    return sorted(known_languages(), key=lambda code: (code != ORIGINAL, code))


ENGLISH = language(ORIGINAL)  # for the study's lead, and for messages at the start of the app


def offered(settings: study_toml.AnnotationSettings) -> dict[str, Language]:
    """Return the languages that annotators can choose from, by code; the study's usual one first.

    Raises InputError where study.toml names a language without a file.
    """
    codes = dict.fromkeys([settings.language, *settings.languages])
    for code in codes:
        if code not in known_languages():
            raise InputError(
                f"study.toml: annotation has the language {code!r}; evenhand knows "
                + ", ".join(known_languages())
            )
    return {code: language(code) for code in codes}


def fitting(preferred: Iterable[str | None], choices: Mapping[str, Language]) -> Language:
    """Return the first of the preferred languages that is a choice (see `offered`), else the first
    choice, the study's usual language. A preferred code may have a region, such as "de-AT".

    >>> both = {"en": language("en"), "de": language("de")}
    >>> fitting([None, "fr", "de-AT"], both).name
    'Deutsch'
    """
    for code in filter(None, preferred):
        for name in (code, code.partition("-")[0]):
            if name in choices:
                return choices[name]
    return next(iter(choices.values()))
