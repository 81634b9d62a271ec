"""Options whose own word is the name of a field: `correct: no`, `pass - false`, `"relevant": true`;
and the words by which answers are given, qualified and taken back (`templates/answer_words.toml`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from types import SimpleNamespace

_FILE = files("evenhand.rubrics").joinpath("templates", "answer_words.toml")
words = SimpleNamespace(
    **{
        name: "|".join(texts).replace("\n", "")
        for name, texts in tomllib.loads(_FILE.read_text("utf-8")).items()
    }
)
"""Alternatives of patterns by name."""

_SEPARATES = r"(?:[:=→|>?]|->)"
_ENDS = (
    r"(?![\w'’])(?=[\"'”’`]*\s*(?:\Z|[\n.!;,)}\]<|(#\u2013\u2014]|-\s|"
    rf"(?:{words.BECAUSE})))(?!\s*(?:[/|,]|(?:or|oder)\b)?\s*(?:{words.YES}|{words.NO})(?!\w))"
)
_VALUE = (
    rf"(?P<value>(?:(?P<yes>{words.YES})|(?P<no>{words.NO})){_ENDS}|"
    rf"(?P<done>{words.YES_MARKS}|\[x\])|(?P<open>{words.NO_MARKS}|\[ \]))"
)
_FIGURE = r"[\s\d.,/%]+|\s*(?:it|this|that|es|das) \w+(?: not| nicht|n['’]t)\W*"
_FIRST = r"(?P<first>(?:^|[{,<])[\s>•|\"'#–-]*(?:\d+[.)]\s*)?(?:is[_ ])?)?"
_FAULT = re.compile(rf"(?:{words.FAULTS})", re.IGNORECASE)
_NO_FAULT = re.compile(
    rf"(?<!\w)(?:{words.DENIES})\W+(?:\w+\W+){{0,4}}?(?:{words.FAULTS})(?!\w)", re.IGNORECASE
)
_DENIED = re.compile(
    r"\W*(?:not|nicht|pas|never|nie|no (?:it|this|that|he|she|they|we|i|the)\b|nothing|none|"
    r"(?:it|this|that|es|das) \w+(?: not|n['’]t))\b",
    re.IGNORECASE,
)
"""What follows an option for a fault, and may deny it."""


@dataclass(frozen=True, slots=True)
class FieldsRead:
    """A reply whose fields are read: the `text` without them, with the words that a yes affirms in
    their place; the options that the fields `give` and `deny`; `unclear` if one decides nothing.
    """

    text: str
    give: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    unclear: bool = False


class FieldNames:
    """The options of a rubric as names of fields; both mappings lead to keys.

    >>> fields = FieldNames({"pass": "pass", "fail": "fail"}, {})
    >>> fields.read("pass - no reason given").unclear, sorted(fields.read("pass: no").give)
    (True, ['fail'])
    """

    def __init__(self, by_fold: Mapping[str, str], by_name: Mapping[str, str]) -> None:
        self._of = {**by_name, **by_fold}
        self._keys = list(by_fold.values())
        polar = self._polar = re.compile(rf"{words.YES}|{words.NO}", re.IGNORECASE)
        self._words = {
            word
            for word in self._of
            if re.search(r"[^\W\d_]{2}", word) and not polar.fullmatch(word)
        }
        known = sorted(filter(None, self._of), key=len, reverse=True)
        any_word = "|".join(map(re.escape, known)) or "(?!)"
        word = rf"(?<![\w-])(?P<word>{any_word})(?![\w-])"
        flags = re.IGNORECASE | re.MULTILINE
        self._bare = re.compile(rf"{_FIRST}{word}(?P<sep>[^\w+]{{1,12}}?){_VALUE}", flags)
        self._before = re.compile(rf"(?:{words.NO_MARKS})\s*{word}", flags)
        self._open = re.compile(
            rf"{_FIRST}{word}[\"']?\s*(?P<sep>[:=→]|->|[\u2013\u2014]|-(?=\s))(?P<rest>\s*[^\n]*)",
            flags,
        )

    def read(self, text: str) -> FieldsRead:
        """Return the reply with its fields read."""
        give: set[str] = set()
        deny: set[str] = set()
        unclear = False

        def bare(match: re.Match[str]) -> str:
            nonlocal unclear
            word, sep, first = match["word"], match["sep"], match["first"]
            strong = bool(re.search(_SEPARATES, sep)) or '"' in sep
            if not strong and self._of.get(match["value"].casefold()) == self._of[word.casefold()]:
                return match[0]
            negative = self._is_negative(word)
            yes = bool(match["yes"] or match["done"])
            mark = bool(match["done"] or match["open"]) and not strong and match["value"] != "[ ]"
            if word.casefold() not in self._words:
                if mark and (yes or negative):
                    return f"{first or ''}{word}"
                if "?" in sep or (self._polar.fullmatch(word) and not (strong or mark)):
                    return match[0]
                unclear = True
                return ""
            key = self._of[word.casefold()]
            if (yes and not sep.startswith('"')) or (negative and mark):
                return f"{first or ''}{word}"
            unclear = unclear or first is None or not strong or (negative and not yes)
            (give if yes else deny).add(key)
            return ""

        def before(match: re.Match[str]) -> str:
            nonlocal unclear
            if self._is_negative(match["word"]):
                return match["word"]
            unclear = True
            return ""

        def opened(match: re.Match[str]) -> str:
            nonlocal unclear
            word = match["word"].casefold() in self._words
            figure = re.fullmatch(_FIGURE, match["rest"]) and match["sep"] in ":=→"
            if match["first"] is None or (self._is_reason(match) if word else not figure):
                return match[0]
            unclear = True
            return ""

        text = self._bare.sub(bare, text)
        text = self._before.sub(before, text)
        text = self._open.sub(opened, text)
        if deny and not give and not unclear and len(self._keys) == 2:
            give |= {*self._keys} - deny
        return FieldsRead(text, frozenset(give), frozenset(deny), unclear)

    def _is_negative(self, word: str) -> bool:
        """Return True if an option denies by itself, as "incorrect" and "fail" do."""
        folded = word.casefold()
        if re.fullmatch(words.NEGATIVE, folded):
            return True
        return any(folded.endswith(each) for each in self._words if each != folded)

    def _is_reason(self, match: re.Match[str]) -> bool:
        """Return True if what follows an option's word leaves it an answer: "Pass: no errors"."""
        word, rest = match["word"], match["rest"].strip()
        if rest.strip(" .()[]\"'").casefold() in self._of:
            return True
        first = re.split(r"(?<=[.!?])\s", rest)[0]
        length = len(re.findall(r"\w+", first))
        value = rf"\W*(?:{words.YES}|{words.NO})\W*(?:\Z|[.,;:!)\]/|]|or\b|oder\b)"
        if length < 2 or re.match(value, rest, re.IGNORECASE) or "?" in first:
            return False
        if self._names_another(word, first):
            return False
        of_fault = self._is_negative(word) or bool(_FAULT.fullmatch(word))
        if re.match(r"\W*\d", rest):  # a count of faults, or else a score
            return of_fault and bool(re.match(r"\W*[1-9]\d* [^\W\d]", rest)) and length == 2
        denies = re.search(rf"(?<!\w)(?:{words.DENIES})(?!\w)", first, re.IGNORECASE)
        if not denies:
            return True
        denies_fault = bool(_NO_FAULT.search(first))
        if not of_fault:
            return denies_fault
        return not denies_fault and length > 2 and not _DENIED.match(rest)

    def _names_another(self, word: str, sentence: str) -> bool:
        """Return True if a sentence has the word of another option than this one."""
        key = self._of[word.casefold()]
        others = [each for each in self._words if self._of[each] != key and word not in each]
        spoken = "|".join(map(re.escape, others)) or "(?!)"
        return bool(re.search(rf"(?<!\w)(?:{spoken})(?!\w)", sentence, re.IGNORECASE))
