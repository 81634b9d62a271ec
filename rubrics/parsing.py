"""Reading a grader's answer against the closed list of options.

A label is never guessed: an option counts only where it is the answer, and only if no other is put
forward in the same reply. Whatever else a reply says is no label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_NAMED = r"answer|option|rating|label|score|grade|verdict|choice|category|judge?ment"
"""What an answer is called when it is announced, and its field in a JSON object."""
_VERBS = (
    r"say|choose|pick|select|give|rate|score|grade|label|assign|answer|judge|call|opt for|"
    r"(?:go|going|settle|settling) (?:with|on|for)"
)
_BEFORE = r"[\s(\[{\"'“‘]*"
# No key is a part of a longer word or number: 4.5, 3,5, 1-2, 5%, U.S. and C'est name no option.
_WHOLE = r"(?![A-Za-z0-9_+%\u2010-\u2015-]|[.,:/]\d|['’.][^\W\d_])"
_DASH = r"[\u2010-\u2015-]"
_SECOND_THOUGHT = (
    r"actually|correction|final(?:ly)?|revised|wait|maybe|perhaps|possibly|almost|nearly|"
    r"clos(?:e|er) to|leaning|towards?|could be|rather|reflection|meant|while|whereas"
)
# "a" before a word is an article, whatever the options are called.
_NO_ARTICLE = r"(?!(?-i:a)\s+\w)"
# A number with a stop or bracket and then words opens a list or counts something.
_LISTED = r"\d+[ \t]*[.()][ \t]*[\"'“‘]?(?!because\b|since\b)\w"
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
        any_key = _any_of(names)
        key = rf"({any_key}){_WHOLE}"

        def compiled(pattern: str) -> re.Pattern[str]:
            return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

        self._several = compiled(
            rf"\s*[)\]]?\s*(?:/|,|&|or\b|and\b|to\b|(?:{_DASH}|\.\.+|…|~)(?=\s*{_NO_ARTICLE}\S))"
            rf"\s*[(\[]?(?:{any_key})(?!\w)"
        )
        announced = rf"\b(?:{_NAMED})(?:\s+(?:is|would be|should be))?\s*[:：=]?{_BEFORE}{key}"
        chosen = (
            rf"(?:\b(?:{_VERBS})\b(?:\s+(?:it|this|that|them))?(?:\s+(?:as|at|an?|with))?|->|→)"
            rf"{_BEFORE}{key}"
        )
        by_name = "|".join(
            rf"{re.escape(key)}[ \t]*[.()][ \t]*{re.escape(name)}\b" for key, name in names.items()
        )
        self._answers = (
            compiled(rf"\A{_BEFORE}(?:(?={by_name})|(?!{_LISTED})){key}{_ENDED}"),
            compiled(rf"{announced}{_ENDED}"),
            compiled(rf"<(?:{_NAMED})>\s*{key}\s*</"),
            compiled(rf"\\boxed\{{(?:\\text\{{)?\s*{key}\s*\}}"),
            # At the end: as a sentence or line of its own, or as what was chosen.
            compiled(rf"(?:[.?!]\s|\n){_BEFORE}{key}[)\]\"'”’]*[.!]?\s*\Z"),
            compiled(rf"{chosen}[)\]\"'”’]*[.!]?\s*\Z"),
        )
        # Put forward in some way that is no clear answer: another option is in doubt beside it.
        self._mentions = (
            compiled(announced),
            compiled(rf"{chosen}{_ENDED}"),
            compiled(rf"[(\[]\s*{key}\s*[)\]]"),
            compiled(
                rf"(?:\A|[.?!;,|]\s+|\n)\W{{0,9}}{key}\s*(?:\([^)\n]*\)\s*)?(?:[.!?):]|{_DASH})"
            ),
            compiled(rf"[:：]{_BEFORE}{key}{_ENDED}"),
            compiled(
                rf"\b(?:{_SECOND_THOUGHT})\b\W{{0,9}}"
                rf"(?:(?:it['’]s|it is|an?)\s+)?{_NO_ARTICLE}{key}"
            ),
            compiled(rf"(?<=\s){key}[.)]\s+\w"),
            compiled(rf"\b(?:not|no),?\s+{key}"),
        )
        # One word ("Agree") is a name only where it stands by itself, several anywhere.
        phrases = _any_of(name for name in names.values() if " " in name)
        self._mentioned_names = (
            compiled(rf"(?<!\w)({phrases or '(?!)'})(?!\w)"),
            compiled(
                rf"(?:\A|[\n.:;(\[]|{_DASH})\s*({_any_of(names.values())})\s*(?=\Z|[\n.,;:)\]])"
            ),
        )

    def label(self, text: str) -> str | None:
        """The key that the answer names, or None where it names none or more than one."""
        bare = re.sub(r"[*`]+", "", _unfenced(text.strip())).strip()
        if whole := self._option(bare):
            return whole
        in_json = set(self._in_json(bare))
        if in_json or isinstance(_json(bare), (dict, list)):
            is_one = len(in_json) == 1 and in_json >= self._beside_json(bare)
            return (in_json.pop() or None) if is_one else None
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

    def _beside_json(self, text: str) -> set[str]:
        """All that is put forward in a text outside its JSON."""
        if _json(text) is not None:
            return set()
        rest = _FLAT_OBJECT.sub(lambda m: m[0] if _json(m[0]) is None else " ", text)
        return set().union(*self._read(rest))

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
        for pattern in self._mentioned_names:
            in_doubt |= {self._by_name[match[1].casefold()] for match in pattern.finditer(text)}
        return named - self._denied(text), in_doubt

    def _denied(self, text: str) -> set[str]:
        """Options that are answered somewhere and denied there."""
        found = (match for pattern in self._answers for match in pattern.finditer(text))
        return {self._by_fold[m[1].casefold()] for m in found if not _is_meant(text, m)}


def _any_of(words: Iterable[str]) -> str:
    """A pattern of any of these, the longest first."""
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


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
