"""Read the option that a grader's reply gives as its answer: a text in, a key or None out.

An option counts only if it is given as the answer: alone, announced, or chosen explicitly. No
other option may be proposed with or after it, and it may not be part of a quotation, a denial or
another quantity. `RubricParser.label` shows the order:

1. Take out fields that are named after options, "Pass: yes", and note what they say of these.
2. Read the rest as one expression, "4/5", or as JSON, or as prose.
3. If that gives no option, take the one that the fields affirm.

`SeveralParser` reads sets of options. The patterns, here called forms, are by name in
`templates/answer_forms.toml`, and the words in them in `answer_words.toml`. The comment at a line
shows a text that its form matches, or the reply that the line is about.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple

from evenhand.rubrics.options import NONE, options_in, plain_number, set_label
from evenhand.texts import table_of

_FORM_NAME = re.compile(r"\{([A-Za-z_]+)\}")  # the name of another form within a form


def _joined(table: Any) -> Any:
    """Return a table of forms, at any depth, with each list joined by | into one text."""
    if isinstance(table, dict):
        return {name: _joined(part) for name, part in table.items()}
    return ("|".join(table) if isinstance(table, list) else table).replace("\n", "")


_FORM_TEXTS: dict[str, Any] = {
    name: text
    for file in ("answer_words", "answer_forms")
    for name, text in _joined(table_of("evenhand.rubrics", f"templates/{file}.toml")).items()
}


class Forms(dict[str, re.Pattern[str]]):
    """The forms of `answer_forms.toml` by name, each compiled when it is first used. Names in
    capitals are of `answer_words.toml`, and match whole words (in scripts without spaces, any).
    Some forms depend on a rubric's options: those in the file's tables [numbers] or [words] and
    [signed] or [unsigned], and `parts`, forms that are made of the options.

    >>> Forms()["quoted"].sub("", 'Not "B", C')
    'Not , C'
    """

    def __init__(self, *, numbers: bool = False, signed: bool = False, **parts: str) -> None:
        kind, sign = "numbers" if numbers else "words", "signed" if signed else "unsigned"
        self._parts = _FORM_TEXTS | _FORM_TEXTS[kind] | _FORM_TEXTS[sign] | parts

    def __missing__(self, name: str) -> re.Pattern[str]:
        text = self._filled(name)
        if name.isupper():  # of `answer_words.toml`
            text = rf"(?i)(?<![A-Za-zÀ-ÿ])(?:{text})(?![A-Za-zÀ-ÿ])"
        return self.setdefault(name, re.compile(text))

    def _filled(self, name: str) -> str:
        """Return the text of a form with the parts that it names in braces put in."""
        return _FORM_NAME.sub(lambda part: self._filled(part[1]), self._parts[name])


_MASKED = "\ue000"  # replaces each character of a quotation
_LEAD_LENGTH = 25  # characters before a key, in which "perhaps" makes the key a further proposal
_COMMON = Forms()  # forms that are the same whatever the options are
_ANSWER_FORMS = [name for name in _FORM_TEXTS if name.startswith("answer_")]  # explicit answers

# ---- the parser of one option ----
# Forms of answers have the groups key, an option's key ("4"); answer, the key with what belongs to
# it ("4/5"); name, the name next to it, perhaps another option's ("4 (Good)"); own and thus, words
# that make the answer the rater's ("I choose", "I think"). One without a part in a match is None.


@dataclass(slots=True)
class _FieldsRead:
    """A reply's text without its fields, and what these say: keys affirmed, denied, or unclear."""

    text: str
    affirmed: set[str] = field(default_factory=set)
    denied: set[str] = field(default_factory=set)
    is_unclear: bool = False


class _Answer(NamedTuple):
    """An option that ends at `end` in a text: explicit if announced, chosen or alone on a line."""

    key: str
    end: int
    is_explicit: bool = True


class RubricParser:
    """Parser of the one option that an answer gives; anything else is no label. `names` are the
    names of the options by key; `titles` are the rubric's, which may announce an answer.

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
        self._keys = {key.casefold(): key for key in names}  # compared in lower case, as names are
        self._key_by_name = {name.casefold(): key for key, name in names.items()}
        self._key_by_word = self._key_by_name | self._keys
        # Words that may be names of fields: a letter, "yes" or "no" before a colon names none.
        words = filter(re.compile(r"[^\W\d_]{2}").search, self._key_by_word)
        self._field_words = {word for word in words if not _COMMON["yes_or_no"].fullmatch(word)}
        self._titles = tuple(title.casefold() for title in titles if title)  # announce, "Tone: 4"
        self._has_pictures = any(map(_COMMON["pictures"].search, self._key_by_word))  # emoji

    def label(self, text: str) -> str | None:
        """Return the key that a reply gives, or None where it gives none or more than one."""
        plain = _plain_answer(text)
        if plain is None or _COMMON["speakers"].search(plain) or _COMMON["tick_list"].search(plain):
            return None  # no answer; another's turn, "User: ..."; or a list to tick, "[ ] A"
        if self._scale_ends and any("." in key for key in self._keys):  # "1.0", "0.750"
            plain = _COMMON["decimal"].sub(lambda match: plain_number(match[0]), plain)
        fields = self._read_fields(plain)
        text = fields.text if self._has_pictures else _COMMON["pictures"].sub(" ", fields.text)
        text = self._with_keys_first(text.strip())
        if not (label := self._option(text)):
            objects = list(_objects(text))
            # What begins as JSON and cannot be read is no prose either.
            is_json = objects or re.match(r"[\[{]\s*(?:[\"{\]}]|\Z)", text)
            label = self._label_in_json(text, objects) if is_json else self._label_in_prose(text)
        if label:
            return None if fields.affirmed - {label} or label in fields.denied else label
        if len(fields.affirmed) != 1 or fields.is_unclear:
            return None
        (key,) = fields.affirmed  # '"pass": true'
        return key if self._is_uncontested(key, text, 0, is_strict=True) else None

    def _with_keys_first(self, text: str) -> str:
        """Turn names with their keys behind them, "Good (3)", into "3 (Good)"."""

        def key_first(match: re.Match[str]) -> str:
            name, key = match["name"], match["key"]
            if self._has_other_name(match):
                return match[0]
            return key if name.casefold() == key.casefold() else f"{match['answer']} ({name})"

        return self._forms["named_first"].sub(key_first, text)

    # ---- options as names of fields: "Pass: yes", "fail [x]" ----
    # Each `_read_...` adds what a field says to `fields`, and returns what replaces it in the text:
    # "", the option if that is the answer, or the same text if it is no field. The groups of these
    # forms are first (the start of the line, None within a line), word (the option), sep (what
    # separates it), and rest (a text) or value: yes, no, ticked ("✅", "[x]") or unticked ("❌").

    def _read_fields(self, text: str) -> _FieldsRead:
        """Read the options that are names of fields, and take these fields out of the text."""
        fields = _FieldsRead(text)
        for form, read in (
            ("field_with_value", self._read_value),
            ("crossed_field", self._read_cross),
            ("field_with_text", self._read_text),
        ):
            fields.text = self._forms[form].sub(partial(read, fields), fields.text)
        if fields.denied and len(self._keys) == 2 and not (fields.affirmed or fields.is_unclear):
            fields.affirmed = {*self._keys.values()} - fields.denied  # "pass: no" is a fail
        return fields

    def _read_value(self, fields: _FieldsRead, match: re.Match[str]) -> str:
        """Read an option with a yes, a no or a mark after it."""
        word, separator = match["word"], match["sep"]
        key, answer = self._key_by_word[word.casefold()], f"{match['first'] or ''}{word}"
        is_separated = bool(_COMMON["field_separates"].search(separator)) or '"' in separator  # ":"
        if not is_separated and self._key_by_word.get(match["value"].casefold()) == key:
            return match[0]  # "yes (yes)": the same option twice
        is_yes, is_negative = bool(match["yes"] or match["ticked"]), self._is_negative(word)
        is_crossed = bool(match["unticked"]) and match["value"] != "[ ]"
        if not is_separated and (match["ticked"] or (is_crossed and is_negative)):
            return answer  # "B ✅", "fail ❌"
        if word.casefold() not in self._field_words:  # hardly the name of a field
            is_polar = bool(_COMMON["yes_or_no"].fullmatch(word))
            if "?" in separator or (is_polar and not is_separated and not is_crossed):
                return match[0]  # "A? no", "yes, true"
            fields.is_unclear = True  # "A: yes"
            return ""
        if is_yes and not separator.startswith('"'):
            return answer  # "pass: yes"; but '"pass": true' is JSON, which only affirms
        (fields.affirmed if is_yes else fields.denied).add(key)
        if match["first"] is None or not is_separated or (is_negative and not is_yes):
            fields.is_unclear = True  # "pass: no" within a line, "pass [ ]", "fail: no"
        return ""

    def _read_cross(self, fields: _FieldsRead, match: re.Match[str]) -> str:
        """Read an option after a cross: "❌ fail" is the answer, and "❌ pass" decides nothing."""
        if self._is_negative(match["word"]):
            return match["word"]
        fields.is_unclear = True
        return ""

    def _read_text(self, fields: _FieldsRead, match: re.Match[str]) -> str:
        """Read an option with other words after it."""
        if match["word"].casefold() in self._field_words:
            is_answer = self._is_reason(match)  # "Pass: all is well", not "Pass: ok"
        else:  # "A: it is clear", not "A: 3"
            is_assigned = match["sep"] in (":", "=", "→")
            is_answer = not (is_assigned and _COMMON["figure_alone"].fullmatch(match["rest"]))
        if match["first"] is None or is_answer:
            return match[0]
        fields.is_unclear = True
        return ""

    def _is_negative(self, word: str) -> bool:
        """Return True if an option denies by itself, as "incorrect" and "fail" do."""
        folded = word.casefold()
        others = self._field_words - {folded}  # "incorrect" ends with "correct", another option
        return bool(_COMMON["NEGATIVE"].fullmatch(folded)) or any(map(folded.endswith, others))

    def _is_reason(self, match: re.Match[str]) -> bool:
        """Return True if the rest of a field leaves its option an answer: it repeats the option, or
        its first sentence is a reason, without another option. For an option that means faults it
        may count or deny things ("Fail: does not answer"), for others only deny faults.
        """
        word, rest = match["word"], match["rest"].strip()
        if rest.strip(" .()[]\"'").casefold() in self._key_by_word:  # "Pass: (pass)"
            return True
        sentence = re.split(r"(?<=[.!?])\s", rest)[0]
        n_words = len(re.findall(r"\w+", sentence))
        if n_words < 2 or _COMMON["begins_with_yes_or_no"].match(rest) or "?" in sentence:
            return False  # "Pass: ok", "Pass: yes or no", "Pass: is it clear?"
        key = self._key_by_word[word.casefold()]
        others = [other for other in self._field_words if self._key_by_word[other] != key]
        rivals = [other for other in others if word not in other]  # not "incorrect" for "correct"
        if re.search(rf"(?<!\w)(?:{_alternatives(rivals)})(?!\w)", sentence, re.IGNORECASE):
            return False  # "Pass: it would fail"
        means_faults = self._is_negative(word) or bool(_COMMON["fault"].fullmatch(word))  # "errors"
        if re.match(r"\W*\d", rest):  # a count, or else a score
            is_count = bool(re.match(r"\W*[1-9]\d* [^\W\d]", rest)) and n_words == 2
            return means_faults and is_count  # "Fail: 2 errors", not "Pass: 2 errors"
        if not _COMMON["denies"].search(sentence):  # "not", "without"
            return True  # "Pass: all is well"
        denies_faults = bool(_COMMON["no_fault"].search(sentence))  # "no errors"
        if not means_faults:
            return denies_faults  # "Pass: no errors", not "Pass: not clear"
        # "Fail: does not answer", not "Fail: no errors" or "Fail: not true"
        return not denies_faults and n_words > 2 and not _COMMON["denies_option"].match(rest)

    # ---- single expressions ----

    def _option(self, value: object) -> str | None:
        """Return the key that a value is, or whose name it is, apart from marks around it."""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        if isinstance(value, float) and value.is_integer():  # 4.0 in JSON
            value = int(value)
        text = str(value).strip()
        folded = text.strip("()[]{}\"'“”‘’「」«» \t\n").casefold().rstrip(".。")
        if key := self._key_by_word.get(folded):
            return key
        if isinstance(value, int) or "\n" in text:  # no key, or several lines
            return None
        match = self._forms["alone"].fullmatch(text)  # "4 - Mild caveats", "4/5"
        return self._key(match) if match and not self._has_other_name(match) else None

    def _key(self, match: re.Match[str]) -> str:
        return self._keys[match["key"].casefold()]

    def _has_other_name(self, match: re.Match[str]) -> bool:
        """Return True if a key stands with another option's name: it is then no answer."""
        name = match.groupdict().get("name")
        return name is not None and self._key_by_name[name.casefold()] != self._key(match)

    @cached_property
    def _scale_ends(self) -> tuple[str, str] | None:
        """The lowest and the highest key of a scale of numbers; None for other options."""
        if not all(re.fullmatch(r"[+-]?\d+(?:\.\d*[1-9])?", key) for key in self._keys):
            return None
        return min(self._keys, key=float), max(self._keys, key=float)

    @cached_property
    def _forms(self) -> Forms:
        """The forms of answers with these options."""
        keys, names = list(self._keys), list(self._key_by_name)
        lowest, highest = map(re.escape, self._scale_ends or ("", ""))
        chosen = _FORM_TEXTS["CHOSEN"]
        return Forms(
            numbers=bool(self._scale_ends),
            signed=any(key[0] in "+-" for key in keys),
            keys=_alternatives(keys),
            names=_alternatives(names),
            letters=_alternatives(key for key in self._keys.values() if key.isalpha()),
            option_words=_alternatives(filter(None, self._key_by_word)),
            phrases=_alternatives(name for name in names if re.search(r"\W", name)),
            nouns="|".join([_FORM_TEXTS["NOUNS"], *map(re.escape, self._titles)]),
            # No article is passed over before a letter: in "I choose a" it is the option A.
            chosen=chosen if self._scale_ends else chosen.replace("|an?", ""),
            lowest=lowest,
            highest=highest,
        )

    # ---- prose ----

    def _label_in_prose(self, text: str) -> str | None:
        """Return the one option that a text gives explicitly, else as its first or last words."""
        text = self._without_quantities(text)
        answers = list(self._answers_in(text))
        explicit = [answer for answer in answers if answer.is_explicit]
        answers = explicit or answers
        if len({answer.key for answer in answers}) != 1:
            return None
        key, end = answers[0].key, min(answer.end for answer in answers)
        if self._scale_ends and self._forms["other_scale"].search(text):
            return None  # "4 on a scale of 1-10"
        return key if self._is_uncontested(key, text, end, is_strict=not explicit) else None

    def _without_quantities(self, text: str) -> str:
        """Blank out other quantities near the answer, the scale's ends, and numbers of a list."""

        def blank(match: re.Match[str]) -> str:
            return re.sub(r"[^\n]", " ", match[0])

        text = _COMMON["quantity"].sub(blank, text)  # "Confidence: 3"
        if self._scale_ends:
            text = self._forms["scale"].sub(blank, text)  # "On a scale of 1-5"
        numbers = [int(mark[1]) for mark in _COMMON["list_marks"].finditer(text)]
        if len(numbers) > 1 and numbers == [*range(1, len(numbers) + 1)]:
            text = _COMMON["list_marks"].sub(blank, text)  # "1. Clear", "2. Short"
        return text

    def _mask_quotation(self, match: re.Match[str]) -> str:
        """Return a quotation with each character masked, or as it is if it is a mere option."""
        text = match[0]
        inner = text.strip("`\"“”„«»‘’「」『』' \n").casefold()
        if inner in self._key_by_word and not re.match(r"```|\s*>", text):  # code, quoted lines
            return text
        return re.sub(r"[^\n]", _MASKED, text)

    def _answers_in(self, text: str) -> Iterator[_Answer]:
        """Yield the options that a text gives as the answer, outside of quotations."""
        text = _COMMON["quoted"].sub(self._mask_quotation, text)
        lines = [line for line in re.finditer(r"[^\n]+", text) if line[0].strip()]
        for line in {*lines[:1], *lines[-1:]}:  # the first and the last
            if self._is_attributed(text, line.start(), is_own=False):
                continue
            match = self._forms["alone"].fullmatch(re.sub(r"^[\s•>:,]+", "", line[0]).strip())
            if match is None:
                name = self._forms["introduced"].sub("", line[0]).strip(" .。()[]\"'")
                if key := self._key_by_name.get(name.casefold()):  # "My answer: Second"
                    yield _Answer(key, line.end())
            elif not (self._has_other_name(match) or self._is_list_entry(line, match)):
                yield _Answer(self._key(match), line.end())
        for form in _ANSWER_FORMS:
            for match in self._forms[form].finditer(text):
                if self._has_other_name(match) or self._is_disqualified(match):
                    continue
                groups = match.groupdict()
                # Marks at the beginning of a match end the words before: ". Answer: B".
                start = match.end() - len(match[0].lstrip(" \n.!?;,。！？；，)"))
                is_own = bool(groups.get("own") or groups.get("thus"))
                if not self._is_attributed(text, start, is_own=is_own):
                    end = match.end("answer" if "answer" in groups else "key")
                    yield _Answer(self._key(match), end)
        match = self._forms["opening"].match(text)
        if match and self._is_opening_answer(match):  # "B, it is clearer"
            yield _Answer(self._key(match), match.end("answer"), is_explicit=False)
        match = self._forms["closing"].search(text)
        if (
            match
            and not _COMMON["numbered"].search(text[: match.start("answer")])  # "See fig. 4"
            and not self._is_attributed(text, match.start("key"), is_own=True)
        ):
            yield _Answer(self._key(match), match.end(), is_explicit=False)

    def _is_list_entry(self, line: re.Match[str], match: re.Match[str]) -> bool:
        """Return True if a line is one of several that each begin with a key: a list, no answer."""
        if match.start("key") > 3 or (self._scale_ends and match["answer"] != match["key"]):
            return False  # words before the key, "Answer: B", or "4/5": no marks of a list
        above = line.string[: line.start()].rpartition("\n")[0].rpartition("\n")[2]
        below = line.string[line.end() + 1 :].partition("\n")[0]
        return any(self._forms["listed_key"].match(neighbour) for neighbour in (above, below))

    def _is_disqualified(self, match: re.Match[str]) -> bool:
        """Return True if what follows a key makes it another scale's, a doubt or no option."""
        rest = match.string[match.end("key") :].split("\n", 1)[0]
        if _COMMON["doubted"].match(rest):
            return True  # "B?"
        if match["key"].casefold() == "no" and re.match(r"\.?\s*\d", rest):  # "No. 5"
            return True
        return bool(self._scale_ends and self._forms["of_another_scale"].match(rest))  # "4 of 10"

    def _is_attributed(self, text: str, position: int, *, is_own: bool) -> bool:
        """Return True if the words before an answer suppose it, or ascribe it to somebody else. If
        it is the rater's own, as in "I choose B", only words with a colon at their end ascribe it.
        """
        before = text[:position].rstrip(" ")
        if not is_own and _COMMON["ending_before"].search(before):
            return True  # "The text ends with B"
        begins_sentence = before.rstrip().endswith((".", "!", "?", "。", "！", "？"))
        begins_sentence |= not before or before.endswith("\n")
        # The words before it in its sentence, or else the sentence before.
        lead = next(filter(str.strip, reversed(_COMMON["sentence"].split(before))), "")
        if not begins_sentence and _COMMON["SUPPOSED"].search(lead):
            return True  # "If it were short, I choose B"
        may_ascribe = lead.rstrip().endswith((":", "：")) or not (begins_sentence or is_own)
        return may_ascribe and bool(_COMMON["SAID"].search(lead))  # "The text says: B"

    def _is_opening_answer(self, match: re.Match[str]) -> bool:
        """Return True if the key that a reply begins with is an answer, and no count or list."""
        key, mark = self._key(match), match["mark"].strip()  # mark: the punctuation behind it
        rest = match.string[match.end("mark") :]
        if self._has_other_name(match) or self._is_disqualified(match):
            return False
        if match["name"]:  # "4 (Good). It is"
            return True
        if key.isdigit():
            if mark.startswith((".", ")")) and not mark.startswith(".)"):  # "4. The" is of a list
                before = match.string[: match.start("key")].rstrip()
                is_bracketed = before.endswith("(") and mark[0] == ")"
                has_reason = bool(_COMMON["because_next"].match(rest))  # "4. As it helps"
                return is_bracketed or not rest.strip() or rest.startswith("\n") or has_reason
            if mark == "(":  # "4 (of 5 claims)"
                return False
        if len(key) == 1 and mark == "(":
            return bool(re.match(r"[^()\n]*\)\s*(?:[.\n]|\Z)", rest))  # "B (clear)."
        return True

    # ---- other options proposed ----

    def _is_uncontested(self, key: str, text: str, start: int, *, is_strict: bool) -> bool:
        """Return True if nothing from `start`, the end of the answer, takes it back or proposes
        another option: a key that is neither denied nor only mentioned, or a name. Strict, for an
        answer that is not explicit: in all of the text, and no key but a letter used as a word.
        """
        if _COMMON["BACK"].search(text[start:]):  # "on second thought"
            return False
        start = 0 if is_strict else start
        pairs = self._forms["two_sides"].finditer(text)  # of two keys
        sides = [pair.span() for pair in pairs if key not in pair.groups()]  # "C: A and B lie"
        for match in self._forms["any_key"].finditer(text, start):
            other, denial = self._key(match), _denial_before(match)
            if other == key:
                is_harmless = not _COMMON["full_denial"].match(denial)  # unless "... so not B"
            elif is_strict:
                is_harmless = len(other) == 1 and self._is_word(match)  # "B helps a reader"
            else:
                is_harmless = bool(
                    denial  # "not A", "worse than A"
                    or any(begin <= match.start() < end for begin, end in sides)
                    or self._is_word(match)  # "a reader"
                    or self._is_in_passing(match, start)  # "as response A is vague"
                )
            if not is_harmless:
                return False
        for match in self._forms["option_name"].finditer(text, start):
            name = match["name"] or match["one_word"]  # "Mild caveats" or "Good"
            if self._key_by_name[name.casefold()] != key and not _denial_before(match):
                return False  # "B. Or rather First"
        return True

    def _is_word(self, match: re.Match[str]) -> bool:
        """Return True if a key ("any_key") is only a word of its sentence, as "a" and "agree"."""
        key, text, start = self._key(match), match.string, match.start()
        before, after = text[:start], text[match.end() :]
        if not key.isalpha():
            return False
        if len(key) == 1:
            if match["key"] == key or re.match(r"\s*(?:\Z|[\n.,;:)!?])", after):
                return False  # "A" or "a,"
            return not (before.rstrip(" \"'").endswith(("(", "[")) or self._introduces(before))
        begins_clause = re.search(r"(?:\A|[\n.:;(\[,!?/—–\"'“]|\s-)\s*\Z", before)
        ends_clause = re.match(r"\s*(?:\Z|[\n.,;:)\]!?/\"'”]|-\s)", after)
        if begins_clause and ends_clause:  # "It is: agree, mostly"
            return False
        lead = text[max(_sentence_start(text, start), start - _LEAD_LENGTH) : start]
        return not (self._introduces(before) or _COMMON["PERHAPS"].search(lead))

    def _introduces(self, before: str) -> bool:
        """Return True if the words before a key introduce an answer, as "rating" and "or" do."""
        return bool(self._forms["introduces"].search(before[-80:]))  # longer than any such words

    def _is_in_passing(self, match: re.Match[str], answer_end: int) -> bool:
        """Return True if another option's key only names a side ("text A"), a count or a place."""
        key, text, start = self._key(match), match.string, match.start()
        if _COMMON["list_between"].fullmatch(text[answer_end:start]):
            return False  # "B or A"
        begin = _sentence_start(text, start)
        stop = _COMMON["sentence"].search(text, match.end())
        sentence = text[begin : stop.start() if stop else len(text)]
        lead = text[max(begin, start - _LEAD_LENGTH) : start]
        if _COMMON["PERHAPS"].search(sentence if key.isalpha() else lead):
            return False  # "perhaps A"
        only_names = self._names_side if key.isalpha() else self._names_quantity
        return only_names(text[:start], text[match.end() :])

    def _names_side(self, before: str, after: str) -> bool:
        """Return True if a key in letters between these texts is a side, not an answer."""
        if _COMMON["side_before"].search(before):
            return True  # "response A"
        following = re.match(r"\s+([a-zà-ÿ]+)", after)
        if following is None or not _COMMON["clause_start"].search(before):
            return False  # "it is A"
        return not _COMMON["NOT_AS_WORDS"].fullmatch(following[1])  # "while A rambles"

    def _names_quantity(self, before: str, after: str) -> bool:
        """Return True if a key in digits between these texts is a count or place, not an answer."""
        if _COMMON["place_before"].search(before) or _COMMON["counter_word"].match(after):
            return True  # "step 2"
        if (following := re.match(r"[\s-]+([^\W\d_]+)", after)) is None:
            return False  # "not far from 2."
        if re.search(r"\b(?:the|all|these|those|its)\s*\Z", before, re.IGNORECASE):
            return True  # "The 2 claims"
        if _COMMON["article_before"].search(before) or self._introduces(before):
            return False  # "a 2 overall"
        return not _COMMON["NOT_AS_WORDS"].fullmatch(following[1])  # "with 2 flaws", not "2 is"

    # ---- JSON ----

    def _label_in_json(self, text: str, objects: list[JsonObject]) -> str | None:
        """Return the option that the objects in a text give, if they and the words around agree."""
        answers: set[str] = set()  # keys; "" for a field of the answer that holds no option
        around = ""  # the words around the objects
        later = ""  # what comes after the first answer, around the objects and in their fields
        end_before = 0  # position at which the object before ends
        for start, end, fields in objects:
            between, end_before = text[end_before:start], end
            around += between
            later += between if answers else ""
            if not any(self._is_answer_field(name) for name, _ in fields):
                if answers and self._holds_option([value for _, value in fields]):
                    return None  # a further object with an option
                continue
            before = between.rstrip()
            ends = before.endswith((".", "!", "?", "。"))
            lead = "" if ends else _COMMON["sentence"].split(before)[-1]
            if _COMMON["SAID"].search(lead) or _COMMON["SUPPOSED"].search(lead):
                return None  # 'Do not print {"label": "B"}'
            for name, value in fields:
                if self._is_answer_field(name):
                    if isinstance(value, Mapping):  # {"verdict": {"label": "B"}}
                        inner_fields = filter(self._is_answer_field, value)
                        value = next((value[field] for field in inner_fields), None)
                    answers.add(self._option(value) or "")
                elif self._is_field_contrary(name, value):
                    return None
                elif answers and isinstance(value, str) and not _COMMON["other_field"].search(name):
                    later += f"\n{value}"  # such as a "reason", not a "confidence"
        if len(answers) != 1 or "" in answers:
            return None
        (key,) = answers
        behind = text[end_before:]  # the last object
        sentence = _COMMON["sentence"].split(behind.strip("\n"))[0]
        if not behind.startswith("\n") and _COMMON["SAID"].search(sentence):
            return None  # '{"label": "B"} is what the text says'
        around = self._without_quantities(around + behind)
        if any(answer.key != key for answer in self._answers_in(around)):
            return None  # the words around the objects give another answer
        later = self._without_quantities(f"{later}\n{behind}")
        # On a new line, so that an option there is in no list with the answer, such as "B or A".
        return key if self._is_uncontested(key, f"\n{later}", 0, is_strict=False) else None

    def _is_answer_field(self, name: str) -> bool:
        """Return True if a JSON field is called as an answer is, such as "final_score"."""
        return bool(self._forms["field_of_answer"].fullmatch(name.strip()))

    def _is_field_contrary(self, name: str, value: object) -> bool:
        """Return True if a field that is no answer holds an option, or the end of another scale."""
        if not _COMMON["other_field"].search(name):
            return self._holds_option(value)
        if not (self._scale_ends and _COMMON["field_of_scale_end"].search(name)):
            return False
        if isinstance(value, str):
            return bool(self._forms["other_scale"].search(f"scale {value}"))  # "0-10"
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and value != float(self._scale_ends[1])

    def _holds_option(self, value: object) -> bool:
        """Return True if a value, or one within it, is an option and nothing else."""
        if isinstance(value, Mapping):
            return any(self._holds_option(part) for part in [*value, *value.values()])
        if isinstance(value, (list, tuple, set)):
            return any(map(self._holds_option, value))
        return self._option(value) is not None


class SeveralParser(RubricParser):
    """Parser of the options that an answer names, of which any number may apply. It must be a list
    and nothing else, or announced as the answer on the last line.

    >>> parse = SeveralParser({"a": "Billing", "b": "Bug", "c": "Ads", "d": "Bug and ads"}).label
    >>> [parse(text) for text in ("a, c", "Bug and Billing", '["c"]', "none", "Labels: b")]
    ['a;c', 'a;b', 'c', 'none', 'b']
    >>> replies = ('{"labels": ["c", "a"]}', "Bug and ads", "a, bug and ads", "a, maybe c", "")
    >>> [parse(text) for text in replies]
    ['a;c', 'd', None, None, None]
    """

    def label(self, text: str) -> str | None:
        """Return the keys that the answer gives, as a label; None where it is no list of them."""
        if (plain := _plain_answer(text)) is None:
            return None
        if objects := list(_objects(plain)):
            outside = plain[: objects[0].start] + plain[objects[-1].end :]
            values = [
                value
                for json_object in objects
                for name, value in json_object.fields
                if any(map(self._is_answer_field, (name, name.strip().removesuffix("s"))))
            ]
            return self._set_label(values[0]) if len(values) == 1 and not outside.strip() else None
        if label := self._set_label(plain):
            return label
        last_line = plain.splitlines()[-1].strip() if plain else ""
        announced = self._forms["list_announced"].fullmatch(last_line)
        return self._set_label(announced["list"]) if announced else None

    def _set_label(self, value: object) -> str | None:
        """Return the label of a list of keys or names, or of a text that is one; else None."""
        if isinstance(value, str):
            text = value.strip().rstrip(".。").strip()
            if text.casefold() in (NONE, "none of these", "none of the options", "[]"):
                return NONE
            split = _COMMON["between_listed"].split
            words: Sequence[str] | None = [text]
            if text[:1] == "[":
                words = options_in(text)
            elif (folded := text.casefold()) not in self._key_by_word:
                if any(len(split(word)) > 1 and word in folded for word in self._key_by_word):
                    return None  # "a, bug and ads": the last may be one option or two
                words = split(text)
            return self._set_label(list(words)) if words else None
        if not isinstance(value, list):
            return None
        if not value:
            return NONE
        words = [word.strip(" ()[]\"'.*-•") if isinstance(word, str) else "" for word in value]
        keys = [self._key_by_word.get(word.casefold(), "") for word in words]
        return set_label(keys, list(self._keys.values()))


# ---- a reply's answer in plain words, and the JSON objects in it ----
# Signs in ASCII for full-width ones, such as Chinese has, and for other spaces and minus signs.
_ASCII_SIGNS = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ", 0x2212: "-", 0xFE63: "-", 0x00A0: " ", 0x202F: " ", 0x3010: "[", 0x3011: "]",
}  # fmt: skip


def answer_of(text: str) -> str | None:
    """Return a reply without the thinking before its answer and the tokens of templates around it;
    None where the thinking never ended, or the reply runs on into another turn.

    >>> answer_of("<think>A or B?</think>\\n\\nB</s>"), answer_of("<think>A, I would say A")
    ('B', None)
    """
    text = _COMMON["thinks"].sub("\n", text)  # "<think>...</think>"
    text = _COMMON["thought"].split(text)[-1]  # after "</think>"
    if _COMMON["still_thinks"].search(text):  # "<think>..."
        return None
    for _ in range(2):  # tokens within tokens
        text = _COMMON["tokens_around"].sub("", text).strip()  # "[INST] B </s>"
    return None if _COMMON["tokens_within"].search(text) else text  # a further turn: "B</s>[INST]"


def _plain_answer(reply: str) -> str | None:
    """Return the answer of a reply in plain words, without Markdown, or None as `answer_of`."""
    answer = answer_of(_COMMON["long_run"].sub(r"\1\2", reply))  # 200 of a long run of marks stay
    if answer is None:
        return None
    # "unspaced" is where Latin script meets Chinese or Japanese without a space.
    text = _unfenced(_COMMON["unspaced"].sub(" ", answer.translate(_ASCII_SIGNS)))
    text = _COMMON["markdown"].sub("", text)  # "**", "__"
    text = re.sub(r"^#+\s+", "", text, flags=re.MULTILINE).strip()  # headings
    return re.sub(r"\$([^$\n]{1,40})\$", r"\1", text)  # formulas, "$\boxed{B}$"


class JsonObject(NamedTuple):
    """A JSON object in a text: from `start` to `end`, with its fields in order, none left out."""

    start: int
    end: int
    fields: list[tuple[str, Any]]


def json_fields(text: str) -> list[list[tuple[str, Any]]]:
    """Return the fields of every JSON object in a text, in their order, none left out.

    >>> json_fields('So: {"reason": "Short.", "label": "B"}')
    [[('reason', 'Short.'), ('label', 'B')]]
    """
    return [json_object.fields for json_object in _objects(_unfenced(text))]


def _objects(text: str) -> Iterator[JsonObject]:
    """Yield the outermost JSON objects of a text, also those written as Python's dictionaries."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    start = text.find("{")
    while start >= 0:
        end = start + 1
        value: Any = None
        try:
            value, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if match := re.compile(r"\{[^{}]*\}").match(text, start):  # Python's, if not nested
                with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
                    value = ast.literal_eval(match[0])
                if isinstance(value, dict) and all(isinstance(key, str) for key in value):
                    value, end = _Pairs(list(value.items())), match.end()
        if isinstance(value, _Pairs):
            yield JsonObject(start, end, list(value.pairs))
        start = text.find("{", end)


class _Pairs(dict[str, Any]):
    """A JSON object whose `pairs` have every field, also of a name that occurs twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _sentence_start(text: str, position: int) -> int:
    """Return the position at which the sentence around a position begins."""
    return max((m.end() for m in _COMMON["sentence"].finditer(text, 0, position)), default=0)


def _denial_before(match: re.Match[str]) -> str:
    """Return the words directly before a match that deny it ("not", "worse than"), or ""."""
    before = match.string[max(0, match.start() - 60) : match.start()]  # longer than any denial
    denial = _COMMON["denial_at_end"].search(before)
    return denial[0] if denial else ""


def _alternatives(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, longer ones first; without words, nothing."""
    longest_first = sorted(words, key=len, reverse=True)
    return "|".join(map(re.escape, longest_first)) if longest_first else "(?!)"


def _unfenced(text: str) -> str:
    """Return a text without the code fence that may be around all of it."""
    match = _COMMON["fence"].match(text.strip())
    return match[1].strip() if match else text.strip()
