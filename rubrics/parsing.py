"""Reading a grader's answer against the closed list of options.

An option counts only where it is given as the answer: alone, announced, or chosen explicitly.
No other may be put forward with or after it, and it may not be part of a quotation, a denial or
another quantity. Anything else in a reply is not a label. The words and forms in which answers are
given, qualified and taken back are tables: `templates/answer_words.toml` and `answer_forms.toml`.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evenhand.rubrics.options import NONE, options_in, set_label
from evenhand.texts import table_of

JsonObject = tuple[int, int, list[tuple[str, Any]]]
"""A JSON object in a text: from, to, and its fields in their order, none left out."""
_MASKED = "\ue000"
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ", 0x2212: "-", 0xFE63: "-", 0x00A0: " ", 0x202F: " ", 0x3010: "[", 0x3011: "]",
}  # fmt: skip
_PART = re.compile(r"\{([A-Za-z_]+)\}")


def _joined(table: Any) -> Any:
    """A table of patterns, each as one text."""
    if isinstance(table, dict):
        return {name: _joined(part) for name, part in table.items()}
    return ("|".join(table) if isinstance(table, list) else table).replace("\n", "")


_TEXTS: dict[str, Any] = {
    name: text
    for file in ("answer_words", "answer_forms")
    for name, text in _joined(table_of("evenhand.rubrics", f"templates/{file}.toml")).items()
}


class Forms(dict[str, re.Pattern[str]]):
    """The patterns of `answer_forms.toml` by name, and those of `answer_words.toml`, in capitals,
    as whole words (in scripts without spaces, anywhere). Each is compiled when it is first used.
    `parts` are those that a rubric's options make.

    >>> Forms()["quoted"].sub("", 'Not "B", C')
    'Not , C'
    """

    def __init__(self, *, numbers: bool = False, signed: bool = False, **parts: str) -> None:
        self._parts = {
            **_TEXTS,
            **_TEXTS["numbers" if numbers else "words"],
            **_TEXTS["signed" if signed else "unsigned"],
            **parts,
        }

    def __missing__(self, name: str) -> re.Pattern[str]:
        text = self._filled(name)
        if name.isupper():
            text = rf"(?i)(?<![A-Za-zÀ-ÿ])(?:{text})(?![A-Za-zÀ-ÿ])"
        pattern = self[name] = re.compile(text)
        return pattern

    def _filled(self, name: str) -> str:
        return _PART.sub(lambda part: self._filled(part[1]), self._parts[name])


_ANY = Forms()
"""Forms that are the same whatever the options are."""


@dataclass(slots=True)
class FieldsRead:
    """A reply whose fields are read: the `text` without them, with the words that a yes affirms in
    their place; the options that the fields `give` and `deny`; `unclear` if one decides nothing.
    """

    text: str
    give: set[str] = field(default_factory=set)
    deny: set[str] = field(default_factory=set)
    unclear: bool = False


_ANSWERS = [name for name in _TEXTS if name.startswith("answer_")]


@dataclass(frozen=True, slots=True)
class _Given:
    """An option given as the answer. `plain`: announced, or alone on its line."""

    key: str
    start: int
    end: int
    plain: bool = True


class RubricParser:
    """Finds the one option that an answer gives; anything else is no label. `titles` are the names
    of the rubric, which may announce an answer.

    >>> parse = RubricParser({"A": "First", "B": "Second", "C": "Same"}).label
    >>> answers = ("C", "(c) both help", "Antwort: **B**", "A or B", "A response ...")
    >>> [parse(text) for text in answers]
    ['C', 'C', 'B', None, None]
    >>> parse('{"label": "B"}'), parse("Answer: B. On second thought A")
    ('B', None)
    >>> RubricParser({"pass": "pass", "fail": "fail"}).label("pass: no")
    'fail'
    """

    def __init__(self, names: Mapping[str, str], titles: Iterable[str] = ()) -> None:
        self._by_fold = {key.casefold(): key for key in names}
        self._by_name = {name.casefold(): key for key, name in names.items()}
        self._of = self._by_name | self._by_fold
        longer = {word for word in self._of if re.search(r"[^\W\d_]{2}", word)}
        self._words = {word for word in longer if not _ANY["polar"].fullmatch(word)}
        self._titles = tuple(title.casefold() for title in titles if title)
        self._is_drawn = bool(_ANY["pictures"].search("".join([*self._by_fold, *self._by_name])))

    def label(self, text: str) -> str | None:
        """The key that the answer gives, or None where it gives none or more than one."""
        if (bare := _bare(text)) is None:
            return None
        if _ANY["speakers"].search(bare) or _ANY["ballot"].search(bare):
            return None
        fields = self._fields(bare)
        text = fields.text if self._is_drawn else _ANY["pictures"].sub(" ", fields.text)
        text = self._keyed(text.strip())
        objects = [] if (label := self._option(text)) else list(_objects(text))
        if objects or (not label and re.match(r"[\[{]\s*(?:[\"{\]}]|\Z)", text)):
            label = self._in_json(text, objects)
        elif not label:
            label = self._in_prose(text)
        if label or not (fields.give or fields.unclear):
            return label if {label} >= fields.give and label not in fields.deny else None
        if len(fields.give) != 1 or fields.unclear:
            return None
        (given,) = fields.give
        return given if self._stands(given, text, 0, strict=True) else None

    def _keyed(self, text: str) -> str:
        """Turn names with their keys behind them, "Good (3)", into "3 (Good)"."""

        def turned(match: re.Match[str]) -> str:
            name, key = match["name"], match["key"]
            if self._by_name[name.casefold()] != self._by_fold[key.casefold()]:
                return match[0]
            return key if name.casefold() == key.casefold() else f"{match['given']} ({name})"

        return self._forms["named_first"].sub(turned, text)

    # Fields.

    def _fields(self, text: str) -> FieldsRead:
        """Read the options that are names of fields: "Pass: yes", "fail [x]"."""
        fields = FieldsRead(text)

        def bare(match: re.Match[str]) -> str:
            word, sep, first = match["word"], match["sep"], match["first"]
            strong = bool(_ANY["field_separates"].search(sep)) or '"' in sep
            if not strong and self._of.get(match["value"].casefold()) == self._of[word.casefold()]:
                return match[0]
            negative = self._is_negative(word)
            yes = bool(match["yes"] or match["done"])
            mark = bool(match["done"] or match["open"]) and not strong and match["value"] != "[ ]"
            if word.casefold() not in self._words:
                if mark and (yes or negative):
                    return f"{first or ''}{word}"
                if "?" in sep or (_ANY["polar"].fullmatch(word) and not (strong or mark)):
                    return match[0]
                fields.unclear = True
                return ""
            key = self._of[word.casefold()]
            if (yes and not sep.startswith('"')) or (negative and mark):
                return f"{first or ''}{word}"
            fields.unclear |= first is None or not strong or (negative and not yes)
            (fields.give if yes else fields.deny).add(key)
            return ""

        def before(match: re.Match[str]) -> str:
            if self._is_negative(match["word"]):
                return match["word"]
            fields.unclear = True
            return ""

        def opened(match: re.Match[str]) -> str:
            word = match["word"].casefold() in self._words
            figure = _ANY["figure_alone"].fullmatch(match["rest"]) and match["sep"] in ":=→"
            if match["first"] is None or (self._is_reason(match) if word else not figure):
                return match[0]
            fields.unclear = True
            return ""

        for form, read in (("field_closed", bare), ("marked_open", before), ("field_open", opened)):
            fields.text = self._forms[form].sub(read, fields.text)
        if fields.deny and not fields.give and not fields.unclear and len(self._by_fold) == 2:
            fields.give = {*self._by_fold.values()} - fields.deny
        return fields

    def _is_negative(self, word: str) -> bool:
        """Return True if an option denies by itself, as "incorrect" and "fail" do."""
        folded = word.casefold()
        if _ANY["NEGATIVE"].fullmatch(folded):
            return True
        return any(folded.endswith(negated) for negated in self._words if negated != folded)

    def _is_reason(self, match: re.Match[str]) -> bool:
        """Return True if what follows an option's word leaves it an answer: "Pass: no errors"."""
        word, rest = match["word"], match["rest"].strip()
        if rest.strip(" .()[]\"'").casefold() in self._of:
            return True
        first = re.split(r"(?<=[.!?])\s", rest)[0]
        length = len(re.findall(r"\w+", first))
        if length < 2 or _ANY["begins_with_polar"].match(rest) or "?" in first:
            return False
        key = self._of[word.casefold()]
        others = [other for other in self._words if self._of[other] != key and word not in other]
        spoken = rf"(?<!\w)(?:{_any_of(others) or '(?!)'})(?!\w)"
        if re.search(spoken, first, re.IGNORECASE):  # the word of another option
            return False
        of_fault = self._is_negative(word) or bool(_ANY["fault"].fullmatch(word))
        if re.match(r"\W*\d", rest):  # a count of faults, or else a score
            return of_fault and bool(re.match(r"\W*[1-9]\d* [^\W\d]", rest)) and length == 2
        if not _ANY["denies"].search(first):
            return True
        denies_fault = bool(_ANY["no_fault"].search(first))
        if not of_fault:
            return denies_fault
        return not denies_fault and length > 2 and not _ANY["denied"].match(rest)

    # Single expressions.

    def _option(self, value: object) -> str | None:
        """The option that a value matches by key or name, apart from marks around it."""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text = str(value).strip()
        folded = text.strip("()[]{}\"'“”‘’「」«» \t\n").casefold().rstrip(".。")
        if key := self._of.get(folded):
            return key
        if isinstance(value, int) or "\n" in text:
            return None
        match = self._forms["alone"].fullmatch(text)  # "4 - Mild caveats", "4/5"
        return self._key(match) if match and not self._misnamed(match) else None

    def _key(self, match: re.Match[str]) -> str:
        return self._by_fold[match["key"].casefold()]

    @cached_property
    def _numbers(self) -> tuple[str, str] | None:
        """The ends of a scale of whole numbers."""
        if not all(re.fullmatch(r"[+-]?\d+", key) for key in self._by_fold):
            return None
        return min(self._by_fold, key=int), max(self._by_fold, key=int)

    @cached_property
    def _forms(self) -> Forms:
        """The forms of answers with these options."""
        keys, names = list(self._by_fold), list(self._by_name)
        least, most = map(re.escape, self._numbers or ("", ""))
        chosen = _TEXTS["CHOSEN"]
        return Forms(
            numbers=bool(self._numbers),
            signed=any(key[0] in "+-" for key in keys),
            keys=_any_of(keys),
            names=_any_of(names),
            letters=_any_of(key for key in self._by_fold.values() if key.isalpha()) or "(?!)",
            option_words=_any_of(filter(None, self._of)) or "(?!)",
            phrases=_any_of(name for name in names if re.search(r"\W", name)) or "(?!)",
            nouns="|".join([_TEXTS["NOUNS"], *map(re.escape, self._titles)]),
            chosen=chosen if self._numbers else chosen.replace("|an?", ""),
            least=least,
            most=most,
        )

    # Prose.

    def _in_prose(self, text: str) -> str | None:
        text = self._without_quantities(text)
        masked = _ANY["quoted"].sub(self._unless_bare, text)
        given = list(self._given(masked))
        plain = [answer for answer in given if answer.plain]
        keys = {answer.key for answer in plain or given}
        if len(keys) != 1:
            return None
        (key,) = keys
        end = min(answer.end for answer in plain or given)
        if self._numbers and self._forms["other_scale"].search(text):
            return None
        return key if self._stands(key, text, end, strict=not plain) else None

    def _without_quantities(self, text: str) -> str:
        """The text without other quantities next to the answer, the scale's ends, and the numbers
        of a list.
        """

        def blank(match: re.Match[str]) -> str:
            return re.sub(r"[^\n]", " ", match[0])

        text = _ANY["quantity"].sub(blank, text)
        if self._numbers:
            text = self._forms["scale"].sub(blank, text)
        marks = list(_ANY["list_marks"].finditer(text))  # the numbers of a list, from 1
        if len(marks) > 1 and [int(mark[1]) for mark in marks] == [*range(1, len(marks) + 1)]:
            for mark in marks:
                text = text[: mark.start()] + " " * len(mark[0]) + text[mark.end() :]
        return text

    def _unless_bare(self, match: re.Match[str]) -> str:
        """Mask a quotation, unless it holds an option and nothing else."""
        text = match[0]
        inner = text.strip("`\"“”„«»‘’「」『』' \n")
        is_code = text.startswith("```")
        if inner.casefold() in self._of and not is_code and not text.lstrip().startswith(">"):
            return text
        return re.sub(r"[^\n]", _MASKED, text)

    def _given(self, masked: str) -> Iterator[_Given]:
        lines = [line for line in re.finditer(r"[^\n]+", masked) if line[0].strip()]
        for line in {lines[0], lines[-1]} if lines else ():
            if self._said(masked, line.start(), is_own=False):
                continue
            match = self._forms["alone"].fullmatch(re.sub(r"^[\s•>:,]+", "", line[0]).strip())
            if match is None:
                if key := self._by_name.get(
                    self._forms["introduced"].sub("", line[0]).strip(" .。()[]\"'").casefold()
                ):
                    yield _Given(key, line.start(), line.end())
            elif not (self._misnamed(match) or self._listed(masked, line, match)):
                yield _Given(self._key(match), line.start(), line.end())
        for name in _ANSWERS:
            for match in self._forms[name].finditer(masked):
                fields = match.groupdict()
                is_own = bool(fields.get("own") or fields.get("thus"))
                at = match.start() + len(match[0]) - len(match[0].lstrip(" \n.!?;,。！？；，)"))
                if self._misnamed(match) or self._elsewhere(masked, match):
                    continue
                if not self._said(masked, at, is_own=is_own):
                    end = match.end("given" if "given" in fields else "key")
                    yield _Given(self._key(match), at, end)
        if (match := self._forms["opening"].match(masked)) and self._opens(match, masked):
            yield _Given(self._key(match), 0, match.end("given"), plain=False)
        if (
            (match := self._forms["closing"].search(masked))
            and not _ANY["numbered"].search(masked[: match.start("given")])
            and not self._said(masked, match.start("key"), is_own=True)
        ):
            yield _Given(self._key(match), match.start("key"), match.end(), plain=False)

    def _listed(self, text: str, line: re.Match[str], match: re.Match[str]) -> bool:
        """Return True if a line is one of several that each begin with a key: a list, no answer."""
        if match.start("key") > 3 or (self._numbers and match["given"] != match["key"]):
            return False
        above = text[: line.start()].rpartition("\n")[0].rpartition("\n")[2]
        below = text[line.end() + 1 :].partition("\n")[0]
        return any(self._forms["listed_key"].match(line) for line in (above, below))

    def _misnamed(self, match: re.Match[str]) -> bool:
        """Return True if a key is followed by another option's name."""
        name = match.groupdict().get("name")
        return name is not None and self._by_name[name.casefold()] != self._key(match)

    def _elsewhere(self, text: str, match: re.Match[str]) -> bool:
        """Return True if what follows a key makes it another scale's, a doubt or no option."""
        rest = text[match.end("key") :].split("\n", 1)[0]
        if _ANY["doubted"].match(rest):
            return True
        if match["key"].casefold() == "no" and re.match(r"\.?\s*\d", rest):
            return True  # a number
        return bool(self._numbers and self._forms["of_another_scale"].match(rest))

    def _said(self, text: str, at: int, *, is_own: bool) -> bool:
        """Return True if the words before an answer suppose it, or make it somebody else's."""
        before = text[:at].rstrip(" ")
        if not is_own and _ANY["ending_before"].search(before):
            return True
        pieces = [piece for piece in _ANY["sentence"].split(before) if piece and piece.strip()]
        ended = not before or before.endswith("\n")
        on_line = not ended and not before.rstrip().endswith((".", "!", "?", "。", "！", "？"))
        lead = pieces[-1] if pieces else ""
        colon = lead.rstrip().endswith((":", "："))
        if on_line and _ANY["SUPPOSED"].search(lead):
            return True
        says = colon or (on_line and not is_own)
        return says and bool(_ANY["SAID"].search(lead))

    def _opens(self, match: re.Match[str], text: str) -> bool:
        """Return True if a reply that begins with a key answers by it, not counts or lists."""
        key, mark = self._key(match), match["mark"].strip()
        rest = text[match.end("mark") :]
        if self._misnamed(match) or self._elsewhere(text, match):
            return False
        if match["name"]:
            return True
        if key.isdigit():
            if mark.startswith((".", ")")) and not mark.startswith(".)"):
                bracketed = text[: match.start("key")].rstrip().endswith("(") and mark[0] == ")"
                reason = _ANY["because_next"].match(rest)
                return bracketed or not rest.strip() or rest.startswith("\n") or bool(reason)
            if mark == "(":
                return False
        if len(key) == 1 and mark == "(":
            return bool(re.match(r"[^()\n]*\)\s*(?:[.\n]|\Z)", rest))
        return True

    # Other options put forward.

    def _stands(self, key: str, text: str, start: int, *, strict: bool) -> bool:
        """Return True if nothing from `start` on takes the answer back or puts forward another."""
        if _ANY["BACK"].search(text[start:]):
            return False
        start = 0 if strict else start
        pairs = [m.span() for m in self._forms["pair"].finditer(text) if key not in m.groups()]
        for match in self._forms["any_key"].finditer(text, start):
            other = self._by_fold[match["key"].casefold()]
            denied = _ANY["not_meant"].search(text[max(0, match.start() - 60) : match.start()])
            if other == key:
                if denied and _ANY["denial_alone"].match(denied[0]):
                    return False
                continue
            if self._is_word(other, match, text) and not (strict and len(other) > 1):
                continue
            if any(begin <= match.start() < end for begin, end in pairs) and not strict:
                continue
            if strict or not (denied or self._in_passing(other, match, text, start)):
                return False
        for match in self._forms["phrase"].finditer(text, start):
            other = self._by_name[(match["name"] or match["one"]).casefold()]
            denied = _ANY["not_meant"].search(text[max(0, match.start() - 60) : match.start()])
            if other != key and not denied:
                return False
        return True

    def _is_word(self, key: str, match: re.Match[str], text: str) -> bool:
        """Return True if a key is used as an ordinary word of the language: "a", "agree", "no"."""
        word = match["key"]
        before, after = text[: match.start()], text[match.end() :]
        if len(key) == 1 and key.isalpha():
            if word == key or re.match(r"\s*(?:\Z|[\n.,;:)!?])", after):
                return False
            return not (before.rstrip(" \"'").endswith(("(", "[")) or self._led(before))
        if not key.isalpha():
            return False
        alone = re.search(r"(?:\A|[\n.:;(\[,!?/—–\"'“]|\s-)\s*\Z", before) and re.match(
            r"\s*(?:\Z|[\n.,;:)\]!?/\"'”]|-\s)", after
        )
        begin = _sentence_start(text, match.start())
        lead = text[max(begin, match.start() - 25) : match.start()]
        return not (alone or self._led(before) or _ANY["PERHAPS"].search(lead))

    def _led(self, before: str) -> bool:
        """Return True if the words before a key introduce an answer."""
        return bool(self._forms["leads"].search(before[-80:]))

    def _in_passing(self, key: str, match: re.Match[str], text: str, start: int) -> bool:
        """Return True if another option's key is only the name of a side, a count or a place."""
        before, after = text[: match.start()], text[match.end() :]
        between = text[start : match.start()]
        if _ANY["list_between"].fullmatch(between):
            return False
        begin = _sentence_start(text, match.start())
        stop = _ANY["sentence"].search(text, match.end())
        sentence = text[begin : stop.start() if stop else len(text)]
        lead = text[max(begin, match.start() - 25) : match.start()]
        if _ANY["PERHAPS"].search(sentence if key.isalpha() else lead):
            return False
        if key.isalpha():
            if _ANY["side_before"].search(before):
                return True
            following = re.match(r"\s+([a-zà-ÿ]+)", after)
            if following is None or not _ANY["subject"].search(before):
                return False
            return not _ANY["NOT_AS_WORDS"].fullmatch(following[1])
        if _ANY["place_before"].search(before) or _ANY["counted"].match(after):
            return True
        following = re.match(r"[\s-]+([^\W\d_]+)", after)
        if following is None:
            return False
        if re.search(r"\b(?:the|all|these|those|its)\s*\Z", before, re.IGNORECASE):
            return True
        if _ANY["article_before"].search(before) or self._led(before):
            return False
        return not _ANY["NOT_AS_WORDS"].fullmatch(following[1])

    # JSON.

    def _in_json(self, text: str, objects: list[JsonObject]) -> str | None:
        """Return the option that the objects in a text give, if they and the words around agree."""
        answers: set[str] = set()
        after, prose, last = "", "", 0
        for start, end, fields in objects:
            outside = text[last:start]
            prose, last = prose + outside, end
            after += outside if answers else ""
            ended = outside.rstrip().endswith((".", "!", "?", "。")) or not outside.strip()
            lead = "" if ended else _ANY["sentence"].split(outside.rstrip())[-1]
            given = [value for name, value in fields if self._is_answer(name)]
            if not given:
                if self._gives_any([value for _, value in fields]) and answers:
                    return None
                continue
            if lead and (_ANY["SAID"].search(lead) or _ANY["SUPPOSED"].search(lead)):
                return None
            for name, value in fields:
                if self._is_answer(name):
                    if isinstance(value, Mapping):
                        value = next((v for n, v in value.items() if self._is_answer(n)), None)
                    answers.add(self._option(value) or "")
                elif not _ANY["field_beside"].search(name):
                    if self._gives_any(value):
                        return None
                    after += f"\n{value}" if answers and isinstance(value, str) else ""
                elif _ANY["field_of_end"].search(name) and self._numbers:
                    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                    if is_number and value != int(self._numbers[1]):  # of another scale
                        return None
        outside = text[last:]
        if len(answers) != 1 or "" in answers:
            return None
        (key,) = answers
        # What the words around an object give as the answer must be the same.
        tail = _ANY["sentence"].split(outside.strip("\n"))[0]
        if not outside.startswith("\n") and _ANY["SAID"].search(tail):
            return None
        around = _ANY["quoted"].sub(self._unless_bare, self._without_quantities(prose + outside))
        if {answer.key for answer in self._given(around)} - {key}:
            return None
        rest = self._without_quantities(f"{after}\n{outside}")
        return key if self._stands(key, f"\n{rest}", 0, strict=False) else None

    def _is_answer(self, name: str) -> bool:
        return bool(self._forms["field_of_answer"].fullmatch(name.strip()))

    def _gives_any(self, value: object) -> bool:
        """Return True if a value, or one within it, is an option and nothing else."""
        if isinstance(value, Mapping):
            return any(self._gives_any(part) for part in [*value, *value.values()])
        if isinstance(value, list):
            return any(map(self._gives_any, value))
        if isinstance(value, tuple):
            return self._gives_any(value[1])
        return self._option(value) is not None


class SeveralParser(RubricParser):
    """Finds the options that an answer names, of which any number may apply. It must be a list and
    nothing else, or announced as the answer on the last line.

    >>> parse = SeveralParser({"a": "Billing", "b": "Bug", "c": "Praise"}).label
    >>> [parse(text) for text in ("a, c", "Bug and Billing", '["c"]', "none", "Labels: b")]
    ['a;c', 'a;b', 'c', 'none', 'b']
    >>> parse('{"labels": ["c", "a"]}'), parse("a, maybe c"), parse("")
    ('a;c', None, None)
    """

    def label(self, text: str) -> str | None:
        """The keys that the answer gives, as a label; None where it is no list of them."""
        if (bare := _bare(text)) is None:
            return None
        objects = list(_objects(bare))
        if objects:
            outside = bare[: objects[0][0]] + bare[objects[-1][1] :]
            given = [
                value
                for _, _, fields in objects
                for name, value in fields
                if self._is_answer(name) or self._is_answer(name.strip().removesuffix("s"))
            ]
            return self._keys_in(given[0]) if len(given) == 1 and not outside.strip() else None
        if whole := self._keys_in(bare):
            return whole
        last = bare.splitlines()[-1].strip() if bare else ""
        announced = self._forms["list_announced"].fullmatch(last)
        return self._keys_in(announced["list"]) if announced else None

    def _keys_in(self, value: object) -> str | None:
        """The label of a list of keys or names, or of a text that is one."""
        if isinstance(value, str):
            text = value.strip().rstrip(".。").strip()
            if text.casefold() in (NONE, "none of these", "none of the options", "[]"):
                return NONE
            listed = options_in(text) if text[:1] == "[" else _ANY["between_listed"].split(text)
            return self._keys_in(list(listed)) if listed else None
        if not isinstance(value, list):
            return None
        if not value:
            return NONE
        texts = (o.strip(" ()[]\"'.*-•") if isinstance(o, str) else "" for o in value)
        keys = [self._of.get(text.casefold()) for text in texts]
        if None in keys:
            return None
        return set_label([key for key in keys if key], list(self._by_fold.values()))


def answer_of(text: str) -> str | None:
    """A reply without the thinking before its answer and the tokens of templates around it; None
    where the thinking never ended, or the reply runs on into another turn.

    >>> answer_of("<think>A or B?</think>\\n\\nB</s>"), answer_of("<think>A, I would say A")
    ('B', None)
    """
    text = _ANY["thinks"].sub("\n", text)
    closed = [match.end() for match in _ANY["thought"].finditer(text)]
    if closed:
        text = text[closed[-1] :]
    if _ANY["still_thinks"].search(text):
        return None
    for _ in range(2):
        text = _ANY["around"].sub("", text).strip()
    return None if _ANY["within"].search(text) else text


def _bare(text: str) -> str | None:
    """The answer of a reply in plain words and the usual forms, without the marks of Markdown and
    of formulas around words; None as `answer_of` gives it.
    """
    answer = answer_of(_ANY["run"].sub(r"\1\2", text))
    if answer is None:
        return None
    # A space between Latin and Chinese or Japanese.
    text = _unfenced(_ANY["unspaced"].sub(" ", answer.translate(_FULL_WIDTH)))
    text = _ANY["markdown"].sub("", text)
    text = re.sub(r"^#+\s+", "", text, flags=re.MULTILINE).strip()
    return re.sub(r"\$([^$\n]{1,40})\$", r"\1", text)


def json_fields(text: str) -> list[list[tuple[str, Any]]]:
    """The fields of every JSON object in a text, in their order, none left out.

    >>> json_fields('So: {"reason": "Short.", "label": "B"}')
    [[('reason', 'Short.'), ('label', 'B')]]
    """
    return [fields for _, _, fields in _objects(_unfenced(text))]


def _objects(text: str) -> Iterator[JsonObject]:
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    at = text.find("{")
    while at >= 0:
        end = at + 1
        value: Any = None
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if match := re.compile(r"\{[^{}]*\}").match(text, at):
                with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                    value = ast.literal_eval(match[0])
                if isinstance(value, dict) and all(isinstance(key, str) for key in value):
                    value, end = _Pairs(list(value.items())), match.end()
        if isinstance(value, _Pairs):
            yield at, end, list(value.pairs)
        at = text.find("{", end)


class _Pairs(dict[str, Any]):
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _sentence_start(text: str, at: int) -> int:
    return max((m.end() for m in _ANY["sentence"].finditer(text, 0, at)), default=0)


def _any_of(names: Iterable[str]) -> str:
    """A pattern of any of these, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _unfenced(text: str) -> str:
    match = _ANY["fence"].match(text.strip())
    return match[1].strip() if match else text.strip()
