"""The lead's own texts for annotators, in the languages available.

The original is in study.toml. A file next to it may have the same text in another language:
`consent.de.md`, `instructions.de.md`, `content_warning.de.md`. It is plain text like the original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evenhand.errors import InputError
from evenhand.study.workspace import Study

Name = Literal["consent", "instructions", "content_warning"]


@dataclass(frozen=True)
class OwnText:
    """A text and the language that it is in."""

    text: str
    language: str


class OwnTexts:
    """Read once, when the study is opened. Raises InputError for a file that is not UTF-8 text."""

    def __init__(self, study: Study) -> None:
        config = study.config
        self._usual = config.annotation.language
        self.languages = (self._usual, *config.annotation.languages)
        originals: dict[Name, str] = {
            "consent": config.consent.text if config.consent else "",
            "instructions": config.session.instructions,
            "content_warning": config.session.content_warning,
        }
        self._texts = {(name, self._usual): text for name, text in originals.items() if text}
        for name, _ in list(self._texts):
            for code in config.annotation.languages:
                path = study.folder / f"{name}.{code}.md"
                try:
                    text = path.read_text("utf-8-sig").strip() if path.is_file() else ""
                except UnicodeDecodeError:
                    raise InputError(f"{path.name} is not UTF-8 text; save it as UTF-8") from None
                if text:
                    self._texts[name, code] = text

    def shown(self, name: Name, language: str) -> OwnText:
        """The text in a language, or else the original; empty where the study has none."""
        code = language if (name, language) in self._texts else self._usual
        return OwnText(self._texts.get((name, code), ""), code)
