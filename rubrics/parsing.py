"""Reading a grader's answer against the closed list of options.

A label is never guessed: an option counts only where it is the answer, and only if no other is put
forward in the same reply. Whatever else a reply says is no label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_NAMED = r"answer|option|rating|label|score|grade|verdict|choice|category|judge?ment"
"""What an answer is called when it is announced, and its field in a JSON object."""
_VERBS = (
    r"say|choose|pick|select|give|rate|score|grade|label|assign|answer|judge|call|opt for|"
    r"(?:go|going|settle|settling) (?:with|on|for)"
)
_BEFORE = r"[\s(\[{\"'“‘]*"
# No key is a part of a longer word or number: 4.5, 3,5, 1-2 and 5% name no option.
_WHOLE = r"(?![A-Za-z0-9_+%\u2010-\u2015-]|[.,:/]\d)"
# After an answer comes its end, a mark, or the reason for it; never just another word.
_ENDED = r"(?=\s*$|\s*[\n.,;:!)\]}\"'”’]|\s+(?:[-\u2010-\u2015(]|because\b|since\b))"
_DENIED = re.compile(
    r"\b(?:not|never|neither|nor|cannot|no|without|unlike|wrong|rather than|instead of)\b|n['’]t\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(r"\b(?:if|unless|had|would have|were)\b", re.IGNORECASE)
_FENCE = re.compile(r"\A```\w*\s*\n(.*?)\n?```\Z", re.DOTALL)
_FLAT_OBJECT = re.compile(r"\{[^{}]*\}")


class RubricParser:
    """Finds the one option that an answer names; anything else is no label.

    >>> parse = RubricParser({"A": "First", "B": "Second", "C": "Same"}).label
    >>> answers = ("C", "(c) both help", "Answer: **B**", "A or B", "A response ...")
    >>> [parse(text) for text in answers]
    ['C', 'C', 'B', None, None]
    >>> parse('{"label": "B"}'), parse("Option A would be wrong here, I choose C")
    ('B', None)
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._by_fold = {key.casefold(): key for key in names}
        self._by_name = {name.casefold(): key for key, name in names.items()}
        any_key = "|".join(re.escape(key) for key in sorted(names, key=len, reverse=True))
        key = rf"({any_key}){_WHOLE}"

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

        self._several = compiled(
            rf"\s*[)\]]?\s*(?:/|,|&|or\b|and\b|to\b)\s*[(\[]?(?:{any_key})(?!\w)"
        )
        announced = rf"\b(?:{_NAMED})(?:\s+(?:is|would be|should be))?\s*[:：=]?{_BEFORE}{key}"
        self._answers = (
            compiled(rf"\A{_BEFORE}{key}{_ENDED}"),
            compiled(rf"{announced}{_ENDED}"),
            compiled(rf"<(?:{_NAMED})>\s*{key}\s*</"),
            compiled(rf"\\boxed\{{(?:\\text\{{)?\s*{key}\s*\}}"),
            # At the end: as a sentence or line of its own, or as what was chosen.
            compiled(rf"(?:[.?!]\s+|\n){_BEFORE}{key}[)\]\"'”’]*[.!]?\s*\Z"),
            compiled(
                rf"(?:\b(?:{_VERBS})\b(?:\s+(?:it|this|that|them))?(?:\s+(?:as|at|an?|with))?|->|→)"
                rf"{_BEFORE}{key}[)\]\"'”’]*[.!]?\s*\Z"
            ),
        )
        # Put forward in some way that is no clear answer: another option is in doubt beside it.
        self._mentions = (
            compiled(announced),
            compiled(rf"[(\[]\s*{key}\s*[)\]]"),
            compiled(rf"(?:\A|[.?!]\s+|\n)\W*{key}\s*[.!?)]"),
            compiled(rf"(?<=\s){key}[.)]\s+\w"),
            compiled(rf"\b(?:not|no),?\s+{key}"),
        )

    def label(self, text: str) -> str | None:
        """The key that the answer names, or None where it names none or more than one."""
        bare = re.sub(r"[*`]+", "", _unfenced(text.strip())).strip()
        if whole := self._option(bare):
            return whole
        in_json = set(self._in_json(bare))
        if in_json or isinstance(_json(bare), (dict, list)):
            return (in_json.pop() or None) if len(in_json) == 1 else None
        named, in_doubt = self._read(bare)
        return named.pop() if len(named) == 1 and named >= in_doubt else None

    def _option(self, text: object) -> str | None:
        """The option that a text is, by key or name, but for marks around it."""
        if isinstance(text, bool) or not isinstance(text, (str, int)):
            return None
        folded = str(text).strip().strip("()[]\"'“”‘’ ").casefold().rstrip(".")
        return self._by_fold.get(folded) or self._by_name.get(folded)

    def _in_json(self, text: str) -> Iterator[str]:
        """What the JSON objects in a text give as the answer; "" for one that gives no option."""
        for found in [text, *_FLAT_OBJECT.findall(text)]:
            value = _json(found)
            fields = value if isinstance(value, dict) else {}
            for name, given in fields.items():
                if re.fullmatch(_NAMED, name.strip(), re.IGNORECASE):
                    yield self._option(given) or ""

    def _read(self, text: str) -> tuple[set[str], set[str]]:
        """(named as the answer, all that are put forward) in a text."""
        named: set[str] = set()
        in_doubt: set[str] = set()
        for pattern in self._answers:
            for match in pattern.finditer(text):
                key = self._by_fold[match[1].casefold()]
                is_one = self._several.match(text, match.end(1)) is None
                (named if is_one and _is_meant(text, match) else in_doubt).add(key)
                if not is_one:
                    in_doubt.add("several")
        for pattern in self._mentions:
            in_doubt |= {self._by_fold[match[1].casefold()] for match in pattern.finditer(text)}
        return named - self._denied(text), in_doubt

    def _denied(self, text: str) -> set[str]:
        """Options that are answered somewhere and denied there."""
        found = (match for pattern in self._answers for match in pattern.finditer(text))
        return {self._by_fold[m[1].casefold()] for m in found if not _is_meant(text, m)}


def _is_meant(text: str, match: re.Match[str]) -> bool:
    """Whether nothing before it in its clause denies it, nor in its sentence supposes it only."""
    before = text[: match.start(1)]
    clause = re.split(r"[.!?;,\n]|\bbut\b", before)[-1]
    sentence = re.split(r"[.!?\n]", before)[-1]
    return not (_DENIED.search(clause) or _SUPPOSED.search(sentence))


def _unfenced(text: str) -> str:
    found = _FENCE.match(text)
    return found[1].strip() if found else text


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
