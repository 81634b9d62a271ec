"""Reading a grader's answer against the closed list of options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_WORDS = {"a", "i"}  # keys that open an English sentence: "A response that ..." is no answer


class RubricParser:
    """Finds the one option that an answer names; anything else is no label.

    >>> parse = RubricParser({"A": "First", "B": "Second", "C": "Same"}).label
    >>> answers = ("C", "(c) both help", "Answer: **B**", "A or B", "A response ...")
    >>> [parse(text) for text in answers]
    ['C', 'C', 'B', None, None]
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._by_fold = {key.casefold(): key for key in names}
        self._by_name = {name.casefold(): key for key, name in names.items()}
        keys = "|".join(re.escape(key) for key in sorted(names, key=len, reverse=True))
        # No key is a part of a longer word or number: 4.5, 3,5, 1-2 and 5% name no option.
        end = r"(?![A-Za-z0-9_+%\u2010-\u2015-]|[.,:]\d)"
        self._leading = re.compile(rf"[\s(\[*\"'`]*({keys}){end}(.?)", re.IGNORECASE)
        self._bracketed = re.compile(rf"[(\[]\s*({keys})\s*[)\]]", re.IGNORECASE)
        # A key that is a sentence by itself: "Not A. C."
        self._alone = re.compile(
            rf"(?:^|[.?!,;:]\s+|\n\s*)\W*({keys})\s*(?:[.!?]|$)", re.IGNORECASE
        )
        self._announced = re.compile(
            rf"\b(?:answer|option|rating|label)(?:\s+is)?\s*[:=]?[\s(\[*\"'`]*({keys}){end}",
            re.IGNORECASE,
        )

    def label(self, text: str) -> str | None:
        """The key that the answer names, or None where it names none or more than one."""
        stripped = text.strip()
        folded = stripped.casefold().rstrip(".")
        if folded in self._by_fold:
            return self._by_fold[folded]
        if folded in self._by_name:
            return self._by_name[folded]
        bracketed = self._found(self._bracketed.findall(stripped))
        announced = self._found(self._announced.findall(stripped))
        leading = self._found(self._leads(stripped))
        alone = self._found(self._alone.findall(stripped))
        for found in (announced, leading, bracketed):
            if len(found) == 1 and len(found | bracketed | announced | alone) == 1:
                return found.pop()
        return None

    def _found(self, keys: Iterable[str]) -> set[str]:
        return {self._by_fold[key.casefold()] for key in keys}

    def _leads(self, text: str) -> list[str]:
        """The key that the answer opens with, unless it opens a sentence or a list of options."""
        match = self._leading.match(text)
        if match is None:
            return []
        key, after = match[1], match[2]
        rest = text[match.end(1) :]
        if re.match(rf"\s*(?:/|,|or\b|and\b|to\b)\s*[(\[]?(?:{self._any()})(?!\w)", rest, re.I):
            return []
        if key.casefold() in _WORDS and after.isspace():
            return []
        return [key]

    def _any(self) -> str:
        return "|".join(re.escape(key) for key in self._by_fold.values())
