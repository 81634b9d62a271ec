"""Reading a grader's answer against the closed list of options.

An option counts only where it is given as the answer: alone, announced, or chosen explicitly.
No other may be put forward with or after it, and it may not be part of a quotation, a denial or
another quantity. Anything else in a reply is not a label.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from evenhand.rubrics.answer_words import FieldNames, words
from evenhand.rubrics.options import NONE, options_in, set_label

_MASKED = "\ue000"
_HAN = "\u3040-\u30ff\u3400-\u9fff"
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0x3000: " ", 0x2212: "-", 0xFE63: "-", 0x00A0: " ", 0x202F: " ", 0x3010: "[", 0x3011: "]",
}  # fmt: skip

_THINKING = (
    r"think|thinking|thought|thoughts|reasoning|reflection|scratchpad|analysis|rationale|"
    r"seed:think|inner_thoughts?|thoughtprocess"
)
_THINKS = re.compile(
    rf"<(?:{_THINKING})>.*?</(?:{_THINKING})>|\[THINK\].*?\[/THINK\]|◁think▷.*?◁/think▷|"
    r"<\|begin_of_thought\|>.*?<\|end_of_thought\|>|<unused94>.*?<unused95>",
    re.DOTALL | re.IGNORECASE,
)
_THOUGHT = re.compile(
    rf"</(?:{_THINKING})>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<unused95>|"
    r"<\|channel\|>\s*final\s*<\|message\|>|(?<=[.!?\s\"')])assistantfinal",
    re.IGNORECASE,
)
_STILL_THINKS = re.compile(
    rf"<(?:{_THINKING})>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<unused94>|<\|channel\|>|"
    r"\A\s*analysis(?=[A-Z])",
    re.IGNORECASE,
)
_TEMPLATE = (
    r"<[|｜][^\s<>]{1,60}[|｜]>|</?(?:s|bos|eos|pad|end_of_turn|start_of_turn|eot|eom|im_end)>|"
    r"\[/?INST\]|\[e~\[|<(?:end_of_utterance|\|?endoftext\|?)>|\[\|endofturn\|\]"
)
_AROUND = re.compile(rf"\A\s*(?:(?:{_TEMPLATE})\s*)+|(?:\s*(?:{_TEMPLATE}))+\s*\Z", re.IGNORECASE)
_WITHIN = re.compile(rf"{_TEMPLATE}|~~|<del>", re.IGNORECASE)

_EMOJI = "[\U0001f000-\U0001faff\u2600-\u2775\u2795-\u27bf\u2b50\u2b55\u200d\u20e3\ufe0e\ufe0f]"

_FENCE = re.compile(r"\A```\w*\s*\n(.*?)\n?```\Z", re.DOTALL)
_QUOTED = re.compile(
    r"```.*?```|\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|„[^“”\n]{1,400}[“”]|«[^»\n]{1,400}»|"
    r"‘[^’\n]{1,400}’|「[^」\n]{1,400}」|『[^』\n]{1,400}』|"
    r"(?<!\w)'[^'\n]{1,400}'(?!\w)|^[ \t]*>[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s|[\n。！？]")
_BEFORE = r"[\s(\[{<\"'“‘「«]*"
_AFTER = r"[\s)\]}>\"'”’」»]*"
# No key is a part of a longer word or number: 4.5, 3,5, 1-2, 5%, U.S. and C'est name no option.
_FROM = r"(?<![\w+%$€£#!¬±≤≥<>~≈/−-])(?<!\d[.,:])"
_WHOLE = r"(?![A-Za-z0-9_+%°½¼¾\u2010-\u2013-]|[^\W\d_" + _HAN + r"]|[.,:/]\d|['’.][^\W\d_])"
_ENDS = (
    rf"(?=\s*\Z|\s*[\n.,;:!|)\]}}。，；！、）”’」]|\s+[\u2010-\u2015(-]|\s*—|"
    rf"\s*(?:\b|(?<=[{_HAN}\s]))(?:{words.BECAUSE}))"
)
_JSON_BESIDE = re.compile(
    rf"{words.SURE}|scale|max|min|out_?of|index|id\b|number|version|length|count|tokens", re.I
)
_SPEAKERS = re.compile(r"^\s*(?:human|user|rater \d+|grader \d+)\s*:", re.IGNORECASE | re.MULTILINE)
_BALLOT = re.compile(r"^[\s•>-]*\[ \]", re.MULTILINE)
_JSON_END = re.compile(r"max|out_?of|scale", re.IGNORECASE)
_OUT_OF = "out of|von|sur|sobre|of|de"
_FOR = r"for|on|in|für|bei|beim"
_BESIDE = re.compile(
    r"[ \t)\](\[/,&.…~–—-]*"
    r"(?:\b(?:or|and|to|oder|und|bis|ou|et|o|y|a|à)\b|或|和|至|か|と)?[ \t(\[]*"
)
_SUBJECT = re.compile(
    r"(?:\A|[.!?\n;:,—-]|\b(?:because|since|while|whereas|and|but|in|weil|während|car|alors que|"
    r"porque|mientras))\s*\Z",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    r"\b(?:an?|option|to|as|is|or|maybe|perhaps|around|about|say|be|it)\s*\Z", re.IGNORECASE
)
_COUNTED = re.compile(r"\s*(?:个|個|条|段|句|种|種|つ|文(?!字)|行|か所|箇所|人|次|回)")
_RUN = re.compile(r"(\W{100})\W+(\W{100})")
"""Of marks or blanks, which patterns would try each by each."""
_NUMBERED = re.compile(r"\b(?:no|nr|nº|art|fig|pp?|vol|ch|sec|approx|ca)\.\s*\Z", re.IGNORECASE)


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
    """

    def __init__(self, names: Mapping[str, str], titles: Iterable[str] = ()) -> None:
        self._by_fold = {key.casefold(): key for key in names}
        self._by_name = {name.casefold(): key for key, name in names.items()}
        self._titles = tuple(title.casefold() for title in titles if title)

    def label(self, text: str) -> str | None:
        """The key that the answer gives, or None where it gives none or more than one."""
        if (bare := _bare(text)) is None:
            return None
        if _SPEAKERS.search(bare) or _BALLOT.search(bare):
            return None
        fields = self._fields.read(bare)
        text = self._keyed(self._pictures.sub(" ", fields.text).strip())
        label = self._in_any(text)
        if label or not (fields.give or fields.unclear):
            return label if {label} >= fields.give and label not in fields.deny else None
        if len(fields.give) != 1 or fields.unclear:
            return None
        (given,) = fields.give
        return given if self._stands(given, text, 0, strict=True) else None

    def _in_any(self, text: str) -> str | None:
        if whole := self._option(text):
            return whole
        objects = list(_objects(text))
        if objects or re.match(r"[\[{]\s*(?:[\"{\]}]|\Z)", text):
            return self._in_json(text, objects)
        return self._in_prose(text)

    @cached_property
    def _fields(self) -> FieldNames:
        return FieldNames(self._by_fold, self._by_name)

    @cached_property
    def _pictures(self) -> re.Pattern[str]:
        return re.compile(
            "(?!)" if re.search(_EMOJI, "".join([*self._by_fold, *self._by_name])) else f"{_EMOJI}+"
        )

    def _keyed(self, text: str) -> str:
        """Turn names with their keys behind them, "Good (3)", into "3 (Good)"."""

        def turned(match: re.Match[str]) -> str:
            name, key = match["name"], match["key"]
            if self._by_name[name.casefold()] != self._by_fold[key.casefold()]:
                return match[0]
            return key if name.casefold() == key.casefold() else f"{match['given']} ({name})"

        of = rf"(?:\s*(?:{words.OUT_OF})\s*{re.escape(self._numbers[1])})?" if self._numbers else ""
        return self._compiled(
            rf"(?<![\w-])(?P<name>{_any_of(self._by_name)})(?:\s*[(\[]\s*(?P<in>)|\s*[:=,–—]\s*|\s+-\s)"
            rf"(?:(?:{words.NOUNS})\s*[:=]?\s*)?(?P<given>(?P<key>{_any_of(self._by_fold)}){of})"
            r"(?(in)\s*[)\]]|(?=\s*(?:\Z|[\n.;)])))"
        ).sub(turned, text)

    # Single expressions.

    def _option(self, value: object) -> str | None:
        """The option that a value matches by key or name, apart from marks around it."""
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        if isinstance(value, float):
            value = int(value) if value.is_integer() else str(value)
        folded = str(value).strip().strip("()[]{}\"'“”‘’「」«» \t\n").casefold().rstrip(".。")
        if found := self._by_fold.get(folded) or self._by_name.get(folded):
            return found
        return self._named(value)

    def _key(self, match: re.Match[str]) -> str:
        return self._by_fold[match["key"].casefold()]

    @cached_property
    def _numbers(self) -> tuple[str, str] | None:
        """The ends of a scale of whole numbers."""
        if not all(re.fullmatch(r"[+-]?\d+", key) for key in self._by_fold):
            return None
        return min(self._by_fold, key=int), max(self._by_fold, key=int)

    @cached_property
    def _expression(self) -> str:
        """A key as it may be written: bracketed, as a fraction of the scale, with its name."""
        key = rf"{_FROM}(?P<key>{_any_of(self._by_fold)})"
        number = of = ""
        if self._numbers:
            of = rf"(?:{re.escape(self._numbers[1])}\s*(?:分|点|段階)?\s*(?:満点)?の?中\s*の?\s*)?"
            most = re.escape(self._numbers[1])
            number = (
                rf"(?:[.,]0+(?![\d%]))?(?:\s*(?:{words.UNITS})(?![A-Za-z]))?"
                rf"(?:{_AFTER}(?:{words.OUT_OF})\s*{most}(?:[.,]0)?(?![\d%]|[.,]\d)|"
                rf"\s*\((?:{words.OUT_OF}|max\.?|满分|滿分)\s*{most}\s*(?:分|点|points?)?\s*(?:満点)?\)|"
                rf"\s*\({most}\s*点満点\))?"
                rf"(?:\s*(?:{words.UNITS})(?![A-Za-z]))?"
            )
        marked = rf"(?:(?:{words.MARKED})\s*[:#]?\s*)?"
        return rf"{_BEFORE}{marked}{of}{_BEFORE}(?P<given>{key}{number}){_WHOLE}{_AFTER}"

    @cached_property
    def _nouns(self) -> str:
        titles = "|".join(map(re.escape, self._titles))
        return f"{words.NOUNS}|{titles}" if titles else words.NOUNS

    @cached_property
    def _announced(self) -> str:
        """ "My final answer is", "Rating (1-5):", "Antwort:"."""
        scale = ""
        if self._numbers:
            least, most = map(re.escape, self._numbers)
            ends = rf"{least}\s*(?:-|–|to|bis|à|a)\s*{most}"
            scale = rf"(?:\s*\(\s*(?:scale|skala)?\s*(?:of|von)?\s*{ends}\s*\))?"
        about = r"(?:\s+(?:for|of) (?:this|the) (?:response|dialogue|text|pair|answer))?"
        beside = rf"{about}(?:\s+(?:score|rating|grade|label|level|{words.AFTER_NOUN}))?"
        # "a 4", but not "A B".
        article = r"(?:\s*(?:an?|eine?|une?|un|una)(?=\s))?" if self._numbers else ""
        dash = "" if any(key[0] in "+-" for key in self._by_fold) else r"|-\s|–\s|—"
        return (
            rf"(?:(?:{words.OWN})\s*)*(?<![A-Za-zÀ-ÿ])(?:{self._nouns})(?![A-Za-zÀ-ÿ]){beside}{scale}"
            rf"\"?\s*(?:(?:{words.MEANS}{dash})|(?:{words.IS})(?![A-Za-zÀ-ÿ])\s*(?:{words.MEANS})?)"
            f"{article}"
        )

    @cached_property
    def _thus(self) -> str:
        verb = r"(?:(?:lautet|ist|wäre|est|es)\s+)?"
        return rf"(?:(?P<thus>{words.THUS})(?![A-Za-zÀ-ÿ])[\s,，、:]*{verb})*"

    def _compiled(self, pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE | re.MULTILINE)

    @cached_property
    def _beside(self) -> str:
        """An option's name after a key."""
        return rf"[\s(\[\"'.:,–—=-]*(?P<name>{_any_of(self._by_name)})(?![\w-])"

    @cached_property
    def _alone(self) -> re.Pattern[str]:
        """An expression that is the whole of a line: "(4/5)", "4 - Mild caveats", "[[B]]"."""
        first = rf"{self._thus}(?:{self._announced})?\s*"
        return self._compiled(rf"{first}{self._expression}(?:{self._beside})?{_AFTER}[.!。]?")

    @cached_property
    def _introduced(self) -> re.Pattern[str]:
        return self._compiled(rf"^[\s>•-]*{self._thus}{self._announced}")

    @cached_property
    def _answers(self) -> tuple[re.Pattern[str], ...]:
        key = self._expression
        bullet = r"[\s>•|–-]*" if not any(key[0] in "+-" for key in self._by_fold) else r"[\s>•|]*"
        begin = rf"(?:^{bullet}|[.!?;,:—–。！？；，：)\n]\s*)"
        tag = rf"(?:final_)?(?:{self._nouns}|final|output)"
        ends = rf"(?:(?:{self._beside})|{_ENDS})"
        boxed = r"\\boxed\{\s*(?:\\(?:text|mathrm|textbf|mathbf|textit)\{)?\s*\(?"
        whole = rf"(?:\s*/\s*{re.escape(self._numbers[1])})?" if self._numbers else ""
        only = rf"(?P<key>{_any_of(self._by_fold)})"
        because = rf"\s*(?:\b|(?<=[{_HAN}\s]))(?:{words.BECAUSE})"
        verb = r"\s+(?:wählen|bewerten|vergeben|geben|einstufen|nehmen)\b"
        marks = r"\s*\Z|\s*[\n.!。！]|\s*[,;—–]|\s*\((?!\?)|\s+-\s"
        chosen = words.CHOSEN if self._numbers else words.CHOSEN.replace("|an?", "")
        stop = rf"(?={marks}|{because}|{verb})"
        return (
            self._compiled(
                rf"{begin}{self._thus}(?P<own>my|our)?\s*{self._announced}\s*{key}{ends}"
            ),
            self._compiled(
                rf"(?:^{bullet}|[.!?;,:—–。！？；，：\n]\s*|\b(?:and|so|und|et|y)\s+){self._thus}"
                rf"(?P<own>(?:{chosen}))\s*:?\s*{key}(?:(?:{self._beside})|{stop})"
            ),
            self._compiled(rf"<{tag}>{_BEFORE}{only}{whole}{_AFTER}</{tag}>"),
            self._compiled(
                rf"^{bullet}{self._thus}{key}(?:is|ist|est|es)\s+(?:(?:{words.OWN})\s*)*"
                rf"(?:{self._nouns})\s*[.!]?\s*$"
            ),
            self._compiled(rf"{boxed}{only}\)?\s*\}}{{1,2}}"),
            self._compiled(rf"\[\[\s*{only}\s*\]\]"),
            self._compiled(
                rf"^{bullet}(?:{self._nouns})\s+{key}(?:{self._beside})?{_AFTER}[.!。]?\s*$"
            ),
            self._compiled(rf"^\s*{self._thus}(?:私は)?{key}(?:{words.CHOSEN_AFTER})[.。!]?\s*$"),
        )

    @cached_property
    def _openings(self) -> re.Pattern[str]:
        """An expression at the very beginning, with its reason behind it on the same line."""
        mark = (
            r"(?P<mark>\s*[.:,;!)\]。，、；]+|\s+[\u2010-\u2015(-]|\s*—|"
            r"\s+(?:because|since|weil|denn|parce|porque|car)\b)"
        )
        return self._compiled(rf"\A{self._expression}(?:{self._beside})?{mark}")

    @cached_property
    def _closings(self) -> re.Pattern[str]:
        """An expression as the last sentence."""
        return self._compiled(rf"[.!?。！？]\s*{self._thus}{self._expression}[.!。]?\s*\Z")

    # Prose.

    def _in_prose(self, text: str) -> str | None:
        text = self._without_quantities(text)
        masked = _QUOTED.sub(self._unless_bare, text)
        found = list(self._given(masked))
        plain = [each for each in found if each.plain]
        keys = {each.key for each in plain or found}
        if len(keys) != 1:
            return None
        (key,) = keys
        end = min(each.end for each in plain or found)
        if self._numbers and self._other_scale.search(text):
            return None
        return key if self._stands(key, text, end, strict=not plain) else None

    def _without_quantities(self, text: str) -> str:
        """The text without other quantities next to the answer, and without the scale's ends."""

        def blank(match: re.Match[str]) -> str:
            return re.sub(r"[^\n]", " ", match[0])

        text = self._quantities.sub(blank, text)
        if self._numbers:
            text = self._scale.sub(blank, text)
        return _without_list_marks(text)

    @cached_property
    def _quantities(self) -> re.Pattern[str]:
        figure = r"(?:\d+(?:[.,]\d+)?|high|medium|low|hoch|mittel|niedrig|高|中|低)"
        sure = rf"(?:\w+ )?(?:{words.SURE})"
        return self._compiled(
            rf"{sure}(?:[\s-]*(?:score|level|rating|wert|niveau|nivel|in \w+))*(?:\s*\([^()\n]*\))?"
            rf"\s*(?:[:=]|is|of|ist|est|es|は|为|是)\s*{figure}"
            rf"(?:\s*(?:%|(?:{words.OUT_OF})\s*\d+(?:[.,]\d+)?))?(?![\w])|"
            rf"\b{figure}[ \t]*%?[ \t]*(?:{words.SURE}|sure|certain|confident)"
        )

    @cached_property
    def _scale(self) -> re.Pattern[str]:
        least, most = map(re.escape, self._numbers or ("", ""))
        ends = rf"{_FROM}{least}\s*(?:-|–|—|~|to|through|bis|à|a|al|至|到|から)\s*{most}"
        on = r"(?:(?:on|auf|sur|en|using)\s+(?:a|an|the|einer|der|une|l['’]|una|la)?\s*)?"
        named = r"(?:\d[- ]?point )?(?:scale|skala|échelle|escala|range)"
        of = r"\s*(?:\(|:)?\s*(?:from|of|von|de|entre)?\s*(?:del?\s*)?"
        behind = "scale|skala|的?(?:量表|评分|尺度)|の尺度|分制|段階"
        return self._compiled(
            rf"{on}{named}{of}{ends}(?![\w.,]\d)\)?|{ends}(?!\d)[\s-]*(?:{behind})"
        )

    def _unless_bare(self, match: re.Match[str]) -> str:
        """Mask a quotation, unless it holds an option and nothing else."""
        text = match[0]
        inner = text.strip("`\"“”„«»‘’「」『』' \n")
        is_code = text.startswith("```")
        if (
            not is_code
            and not text.lstrip().startswith(">")
            and (inner.casefold() in self._by_fold or inner.casefold() in self._by_name)
        ):
            return text
        return re.sub(r"[^\n]", _MASKED, text)

    def _given(self, masked: str) -> Iterator[_Given]:
        lines = [line for line in re.finditer(r"[^\n]+", masked) if line[0].strip()]
        for line in {lines[0], lines[-1]} if lines else ():
            if self._said(masked, line.start(), own=False):
                continue
            match = self._alone.fullmatch(re.sub(r"^[\s•>:,]+", "", line[0]).strip())
            if match is None:
                if key := self._by_name.get(
                    self._introduced.sub("", line[0]).strip(" .。()[]\"'").casefold()
                ):
                    yield _Given(key, line.start(), line.end())
            elif not (self._misnamed(match) or self._listed(masked, line, match)):
                yield _Given(self._key(match), line.start(), line.end())
        for pattern in self._answers:
            for match in pattern.finditer(masked):
                fields = match.groupdict()
                own = bool(fields.get("own") or fields.get("thus"))
                at = match.start() + len(match[0]) - len(match[0].lstrip(" \n.!?;,。！？；，)"))
                if self._misnamed(match) or self._elsewhere(masked, match):
                    continue
                if not self._said(masked, at, own=own):
                    end = match.end("given" if "given" in fields else "key")
                    yield _Given(self._key(match), at, end)
        if (match := self._openings.match(masked)) and self._opens(match, masked):
            yield _Given(self._key(match), 0, match.end("given"), plain=False)
        if (
            (match := self._closings.search(masked))
            and not _NUMBERED.search(masked[: match.start("given")])
            and not self._said(masked, match.start("key"), own=True)
        ):
            yield _Given(self._key(match), match.start("key"), match.end(), plain=False)

    def _listed(self, text: str, line: re.Match[str], match: re.Match[str]) -> bool:
        """Return True if a line is one of several that each begin with a key: a list, not an
        answer.
        """
        if match.start("key") > 3 or (self._numbers and match["given"] != match["key"]):
            return False
        above = text[: line.start()].rpartition("\n")[0].rpartition("\n")[2]
        below = text[line.end() + 1 :].partition("\n")[0]
        return any(self._item.match(each) for each in (above, below))

    @cached_property
    def _item(self) -> re.Pattern[str]:
        return self._compiled(rf"[\s>•(\[-]*(?:{_any_of(self._by_fold)})\s*[).:\]–—-]")

    def _misnamed(self, match: re.Match[str]) -> bool:
        """Return True if a key is followed by another option's name."""
        name = match.groupdict().get("name")
        return name is not None and self._by_name[name.casefold()] != self._key(match)

    def _elsewhere(self, text: str, match: re.Match[str]) -> bool:
        """Return True if the text after a key makes it a place on another scale, a doubt or no
        option.
        """
        rest = text[match.end("key") :].split("\n", 1)[0]
        if re.match(rf"{_AFTER}\s*(?:\(\s*)?\?", rest):
            return True
        if match["key"].casefold() == "no" and re.match(r"\.?\s*\d", rest):
            return True  # a number
        if re.match(r"[,.!]? I(?:['’]ll| can| will)\b (?:help|rate|do|try|assist)", rest):
            return True  # to being asked
        if not self._numbers:
            return False
        most = re.escape(self._numbers[1])
        return bool(
            re.match(
                rf"[^.\n]{{0,12}}?\b(?:{_OUT_OF}) (?:a possible )?(?:{words.TENS})\b", rest, re.I
            )
            or (
                re.match(rf"\s*\(?(?:(?:{_FOR})\s+)?(?:{words.CRITERIA})\b", rest, re.I)
                and not re.match(rf"\s*\(?(?:(?:{_FOR})\s+)?(?:{self._nouns})\b", rest, re.I)
            )
            or re.match(r"\s*\((?:as|so) (?:the|der|die) \w+ (?:says|claims|sagt)", rest)
            or re.match(rf"[^.\n]{{0,12}}?(?:/|\b(?:{_OUT_OF}))\s*(?!{most}\b)\d", rest)
            or re.search(rf"scale (?:of|from)?\s*\d+\s*(?:-|–|to)\s*(?!{most}\b)\d", rest)
            or re.match(r"(?:[.,]0+)?\s*%", rest)
        )

    def _said(self, text: str, at: int, *, own: bool) -> bool:
        """Return True if the words before an answer make it a mere supposition, or somebody else's
        answer.
        """
        before = text[:at].rstrip(" ")
        if not own and re.search(rf"(?:{words.ENDING})\W*\Z", before, re.IGNORECASE):
            return True
        pieces = [each for each in _SENTENCE.split(before) if each and each.strip()]
        on_line = (
            bool(before)
            and not before.endswith("\n")
            and not before.rstrip().endswith((".", "!", "?", "。", "！", "？"))
        )
        lead = pieces[-1] if pieces else ""
        colon = lead.rstrip().endswith((":", "："))
        if not (on_line or colon):
            return False
        if _meets(words.SUPPOSED, lead) and on_line:
            return True
        return (not own or colon) and _meets(words.SAID, lead)

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
                reason = re.match(rf"\s*(?:{words.BECAUSE})", rest, re.IGNORECASE)
                return bracketed or not rest.strip() or rest.startswith("\n") or bool(reason)
            if mark == "(":
                return False
        if len(key) == 1 and mark == "(":
            return bool(re.match(r"[^()\n]*\)\s*(?:[.\n]|\Z)", rest))
        return True

    # Other options put forward.

    def _stands(self, key: str, text: str, start: int, *, strict: bool) -> bool:
        """Return True if nothing from `start` on takes the answer back or puts another option
        forward.
        """
        if _meets(words.BACK, text[start:]):
            return False
        start = 0 if strict else start
        pairs = [match.span() for match in self._pairs.finditer(text) if key not in match.groups()]
        for match in self._keys.finditer(text, start):
            other = self._by_fold[match["key"].casefold()]
            denied = _NOT_MEANT.search(text[max(0, match.start() - 60) : match.start()])
            if other == key:
                if denied and denied[0].casefold().lstrip().startswith(_NOT):
                    return False
                continue
            if self._is_word(other, match, text) and not (strict and len(other) > 1):
                continue
            if any(begin <= match.start() < end for begin, end in pairs) and not strict:
                continue
            if strict or not (denied or self._in_passing(other, match, text, start)):
                return False
        for match in self._phrases.finditer(text, start):
            other = self._by_name[(match["name"] or match["one"]).casefold()]
            denied = _NOT_MEANT.search(text[max(0, match.start() - 60) : match.start()])
            if other != key and not denied:
                return False
        return True

    @cached_property
    def _pairs(self) -> re.Pattern[str]:
        """Two sides named together: "both A and B"."""
        letter = rf"({_any_of(key for key in self._by_fold.values() if key.isalpha()) or '(?!)'})"
        return re.compile(rf"(?<!\w){letter}\s+(?:and|und|et|y|和|与|と)\s+{letter}(?!\w)")

    @cached_property
    def _other_scale(self) -> re.Pattern[str]:
        """Marks of a scale with another upper end."""
        other = rf"(?!{re.escape((self._numbers or ('', ''))[1])}\b)"
        named = r"(?:scale|skala|échelle|escala|range)\D{0,20}?"
        return self._compiled(
            rf"{named}\d+\s*(?:-|–|~|to|bis|à|a|至|到)\s*{other}\d+|\b{other}\d+[- ]point scale|"
            rf"\bmax(?:imum)?\.?\s*(?:of|is|:|=)?\s*{other}\d|\b\d+\s*[-–]\s*{other}\d+ scale|"
            rf"\((?:\d+\s*(?:[-–]|to|bis)|out of|von|sur|sobre)\s*{other}\d+\)|满分\s*{other}\d|"
            rf"\b{other}\d+\s*(?:=|is|being)\s*(?:the )?(?:best|highest|worst|lowest)"
        )

    @cached_property
    def _keys(self) -> re.Pattern[str]:
        return self._compiled(
            rf"(?<![A-Za-z0-9_À-ÿ])(?P<key>{_any_of(self._by_fold)})(?![A-Za-z0-9_À-ÿ]|[.,]\d|['’][^\W\d_])"
        )

    @cached_property
    def _phrases(self) -> re.Pattern[str]:
        """Options' names: those of several words anywhere, of one word only on their own."""
        several = _any_of(name for name in self._by_name if re.search(r"\W", name)) or "(?!)"
        return self._compiled(
            rf"(?<![\w-])(?P<name>{several})(?![\w-])|"
            rf"(?:\A|[\n.:;(\[—–]|\s-)\s*(?P<one>{_any_of(self._by_name)})\s*(?=\Z|[\n.,;:)\]])"
        )

    def _is_word(self, key: str, match: re.Match[str], text: str) -> bool:
        """Return True if a key is used as an ordinary word of the language: "a", "agree", "no"."""
        said = match["key"]
        before, after = text[: match.start()], text[match.end() :]
        if len(key) == 1 and key.isalpha():
            if said == key or re.match(r"\s*(?:\Z|[\n.,;:)!?])", after):
                return False
            return not (before.rstrip(" \"'").endswith(("(", "[")) or self._led(before))
        if not key.isalpha():
            return False
        alone = re.search(r"(?:\A|[\n.:;(\[,!?/—–\"'“]|\s-)\s*\Z", before) and re.match(
            r"\s*(?:\Z|[\n.,;:)\]!?/\"'”]|-\s)", after
        )
        begin = _sentence_start(text, match.start())
        lead = text[max(begin, match.start() - 25) : match.start()]
        return not (alone or self._led(before) or _meets(words.PERHAPS, lead))

    def _led(self, before: str) -> bool:
        """Return True if the words before a key introduce an answer."""
        return bool(self._leads.search(before[-80:]))

    @cached_property
    def _leads(self) -> re.Pattern[str]:
        return re.compile(
            rf"(?:(?<![A-Za-z])(?:{self._nouns}|{words.MARKED}|{words.IS}|to|or|maybe|perhaps)"
            rf"(?![A-Za-z])\s*[:=]?|[:=]|->|→)[\s(\[\"'“]*\Z",
            re.IGNORECASE,
        )

    def _in_passing(self, key: str, match: re.Match[str], text: str, start: int) -> bool:
        """Return True if another option's key is only the name of a side, a count or a place."""
        before, after = text[: match.start()], text[match.end() :]
        between = text[start : match.start()]
        if _BESIDE.fullmatch(between):
            return False
        begin, stop = _sentence_start(text, match.start()), _SENTENCE.search(text, match.end())
        sentence = text[begin : stop.start() if stop else len(text)]
        lead = text[max(begin, match.start() - 25) : match.start()]
        if _meets(words.PERHAPS, sentence if key.isalpha() else lead):
            return False
        if key.isalpha():
            if re.search(rf"(?<![A-Za-z])(?:{words.SIDES})\s*[(\[]?\Z", before, re.IGNORECASE):
                return True
            following = re.match(r"\s+([a-zà-ÿ]+)", after)
            if following is None or not _SUBJECT.search(before):
                return False
            return not _is(words.NOT_AS_WORDS, following[1])
        if re.search(rf"(?<![A-Za-z])(?:{words.PLACES})\s*\Z", before, re.IGNORECASE):
            return True
        if _COUNTED.match(after):
            return True
        following = re.match(r"[\s-]+([^\W\d_]+)", after)
        if following is None:
            return False
        if re.search(r"\b(?:the|all|these|those|its)\s*\Z", before, re.IGNORECASE):
            return True
        if _ARTICLE.search(before) or self._led(before):
            return False
        return not _is(words.NOT_AS_WORDS, following[1])

    # JSON.

    def _in_json(
        self, text: str, objects: list[tuple[int, int, list[tuple[str, Any]]]]
    ) -> str | None:
        """Return the option that the objects in a text give as the answer, if they agree with each
        other and with the words around them.
        """
        answers: set[str] = set()
        after, prose, last = "", "", 0
        for start, end, fields in objects:
            outside = text[last:start]
            prose, last = prose + outside, end
            after += outside if answers else ""
            ended = outside.rstrip().endswith((".", "!", "?", "。")) or not outside.strip()
            lead = "" if ended else _SENTENCE.split(outside.rstrip())[-1]
            given = [value for name, value in fields if self._is_answer(name)]
            if not given:
                if self._gives_any([value for _, value in fields]) and answers:
                    return None
                continue
            if lead and (_meets(words.SAID, lead) or _meets(words.SUPPOSED, lead)):
                return None
            for name, value in fields:
                if self._is_answer(name):
                    if isinstance(value, Mapping):
                        value = next((v for n, v in value.items() if self._is_answer(n)), None)
                    answers.add(self._option(value) or self._named(value) or "")
                elif not _JSON_BESIDE.search(name):
                    if self._gives_any(value):
                        return None
                    after += f"\n{value}" if answers and isinstance(value, str) else ""
                elif _JSON_END.search(name) and self._numbers and not self._is_end(value):
                    return None
        outside = text[last:]
        if len(answers) != 1 or "" in answers:
            return None
        (key,) = answers
        # What the words around an object give as the answer must be the same.
        tail = _SENTENCE.split(outside.strip("\n"))[0] if not outside.startswith("\n") else ""
        if _meets(words.SAID, tail):
            return None
        around = _QUOTED.sub(self._unless_bare, self._without_quantities(prose + outside))
        if {each.key for each in self._given(around)} - {key}:
            return None
        rest = self._without_quantities(f"{after}\n{outside}")
        return key if self._stands(key, f"\n{rest}", 0, strict=False) else None

    def _named(self, value: object) -> str | None:
        """The option that a text such as "4 - Mild caveats" or "4/5" is."""
        if not isinstance(value, str) or "\n" in value.strip():
            return None
        match = self._alone.fullmatch(value.strip())
        return self._key(match) if match and not self._misnamed(match) else None

    def _is_end(self, value: object) -> bool:
        """Return True unless a value is a number other than the scale's upper end."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return not number or value == int((self._numbers or ("", "0"))[1])

    def _is_answer(self, name: str) -> bool:
        first = r"(?:(?:final|overall|my|selected|chosen|correct)[_ -]?)?"
        last = r"(?:[_ -]?(?:label|score|rating|key|value|grade|option))?"
        return _is(rf"{first}(?:{self._nouns}){last}", name.strip())

    def _gives_any(self, value: object) -> bool:
        """Return True if a value, or one within it, is an option and nothing else."""
        if isinstance(value, Mapping):
            return any(self._gives_any(each) for each in [*value, *value.values()])
        if isinstance(value, list):
            return any(map(self._gives_any, value))
        if isinstance(value, tuple):
            return self._gives_any(value[1])
        return self._option(value) is not None or self._named(value) is not None


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
            given = [v for _, _, fields in objects for name, v in fields if self._is_list(name)]
            return self._keys_in(given[0]) if len(given) == 1 and not outside.strip() else None
        if whole := self._keys_in(bare):
            return whole
        announced = self._list_announced.fullmatch(bare.splitlines()[-1].strip() if bare else "")
        return self._keys_in(announced["list"]) if announced else None

    @cached_property
    def _list_announced(self) -> re.Pattern[str]:
        nouns = rf"{self._nouns}|labels|options|answers|categories|choices|keys"
        return self._compiled(rf"(?:(?:my|the|final|selected)\s+)*(?:{nouns})\s*:\s*(?P<list>.+)")

    def _is_list(self, name: str) -> bool:
        return self._is_answer(name) or self._is_answer(name.strip().removesuffix("s"))

    def _keys_in(self, value: object) -> str | None:
        """The label of a list of keys or names, or of a text that is one."""
        if isinstance(value, str):
            text = value.strip().rstrip(".。").strip()
            if text.casefold() in (NONE, "none of these", "none of the options", "[]"):
                return NONE
            listed = options_in(text) if text[:1] == "[" else _LISTED.split(text)
            return self._keys_in(list(listed)) if listed else None
        if not isinstance(value, list):
            return None
        if not value:
            return NONE
        texts = (each.strip(" ()[]\"'.*-•") if isinstance(each, str) else "" for each in value)
        found = [self._by_fold.get(f) or self._by_name.get(f) for f in map(str.casefold, texts)]
        if None in found:
            return None
        return set_label([key for key in found if key], list(self._by_fold.values()))


_LISTED = re.compile(r"\s*[,;\n]\s*(?:and\s+)?|\s+and\s+")


def answer_of(text: str) -> str | None:
    """A reply without the thinking before its answer and the tokens of templates around it; None
    where the thinking never ended, or the reply runs on into another turn.

    >>> answer_of("<think>A or B?</think>\\n\\nB</s>"), answer_of("<think>A, I would say A")
    ('B', None)
    """
    text = _THINKS.sub("\n", text)
    closed = [match.end() for match in _THOUGHT.finditer(text)]
    if closed:
        text = text[closed[-1] :]
    if _STILL_THINKS.search(text):
        return None
    text = _AROUND.sub("", text).strip()
    text = _AROUND.sub("", text).strip()
    return None if _WITHIN.search(text) else text


def _bare(text: str) -> str | None:
    """The answer of a reply in plain words and the usual forms; None as `answer_of` gives it."""
    answer = answer_of(_RUN.sub(r"\1\2", text))
    return None if answer is None else _plain(_unfenced(_spaced(answer)))


def json_fields(text: str) -> list[list[tuple[str, Any]]]:
    """The fields of every JSON object in a text, in their order, none left out.

    >>> json_fields('So: {"reason": "Short.", "label": "B"}')
    [[('reason', 'Short.'), ('label', 'B')]]
    """
    return [fields for _, _, fields in _objects(_unfenced(text))]


def _objects(text: str) -> Iterator[tuple[int, int, list[tuple[str, Any]]]]:
    """The JSON objects in a text: from, to, and their fields in order, none left out."""
    decoder = json.JSONDecoder(object_pairs_hook=_Pairs)
    at = text.find("{")
    while at >= 0:
        end = at + 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            value = None
            if match := re.compile(r"\{[^{}]*\}").match(text, at):
                value, end = _python_dict(match[0]), match.end()
                end = end if value is not None else at + 1
        if isinstance(value, _Pairs):
            yield at, end, list(value.pairs)
        at = text.find("{", end)


class _Pairs(dict[str, Any]):
    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


def _python_dict(text: str) -> _Pairs | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return None
    return _Pairs(list(value.items()))


def _without_list_marks(text: str) -> str:
    """The text without the numbers of a list that counts up from 1."""
    marks = list(re.finditer(r"^[ \t]*\(?(\d+)[.)][ \t]+(?=[^\s\d])", text, re.MULTILINE))
    if [int(mark[1]) for mark in marks] != list(range(1, len(marks) + 1)) or len(marks) < 2:
        return text
    for mark in marks:
        text = text[: mark.start()] + " " * len(mark[0]) + text[mark.end() :]
    return text


def _sentence_start(text: str, at: int) -> int:
    return max((m.end() for m in _SENTENCE.finditer(text, 0, at)), default=0)


def _meets(alternatives: str, text: str) -> bool:
    """Return True if any of the words occurs in a text; in scripts without spaces, anywhere."""
    return bool(_word_pattern(alternatives).search(text))


def _is(alternatives: str, word: str) -> bool:
    return bool(re.fullmatch(f"(?:{alternatives})", word, re.IGNORECASE))


@cache
def _word_pattern(alternatives: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-zÀ-ÿ])(?:{alternatives})(?![A-Za-zÀ-ÿ])", re.IGNORECASE)


_NOT_MEANT = re.compile(rf"(?:{words.NOT_MEANT})[\s(\[\"'“]*\Z", re.IGNORECASE)
_NOT = ("not", "n't", "n’t", "never", "nicht", "kein", "pas", "不是", "并非", "neither", "nor")


def _any_of(names: Iterable[str]) -> str:
    """A pattern of any of these, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _spaced(text: str) -> str:
    """Full-width forms as the usual ones, and a space between Latin and Chinese or Japanese."""
    text = text.translate(_FULL_WIDTH)
    text = re.sub(rf"(?<=[{_HAN}])(?=[A-Za-z0-9+-])", " ", text)
    return re.sub(rf"(?<=[A-Za-z0-9+-])(?=[{_HAN}])", " ", text)


def _plain(text: str) -> str:
    """The text without the marks of Markdown and of formulas around words."""
    text = re.sub(r"\*+|(?<!`)`{1,2}(?!`)|(?<!\w)__?(?=\w)|(?<=\w)__?(?!\w)", "", text)
    text = re.sub(r"^#+\s+", "", text, flags=re.MULTILINE).strip()
    return re.sub(r"\$([^$\n]{1,40})\$", r"\1", text)


def _unfenced(text: str) -> str:
    found = _FENCE.match(text.strip())
    return found[1].strip() if found else text.strip()
