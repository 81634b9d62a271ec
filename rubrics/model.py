"""A rubric as its file defines it: a closed list of options, the text that annotators and graders
read, its translations, a prompt for graders alone, and cues for the offline lexical grader.

The parts come first, then `Rubric`: its fields, the checks that they are consistent, and the texts
that it makes of a unit (what gets a label) for annotators (`for_people`) or graders (`for_prompt`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from evenhand.errors import InputError
from evenhand.rubrics.options import (
    Block,
    Golden,
    LabelKind,
    Number,
    NumberKind,
    Option,
    SetKind,
    Strict,
    Texts,
    plain_number,
)
from evenhand.rubrics.parsing import RubricParser, SeveralParser
from evenhand.rubrics.rendering import (
    ANSWERS,
    TEXT_VARIABLES,
    PeopleText,
    PromptText,
    fields_of,
    filled,
    images_of,
    in_words,
    neutralised,
    placeholders,
    prompt_of,
    text_blocks,
)

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language's code as HTML has it: `de`, `pt-BR`."""


class CoarserCategory(Texts):
    """A coarser category: its name and the options that it merges."""

    name: str = Field(min_length=1)
    options: tuple[str, ...] = Field(min_length=1)


class PromptTemplate(Strict):
    """A prompt that replaces the usual frame: `template` with the rubric's variables in braces, and
    a `system` part without variables. White space counts; other braces are text.
    """

    template: str = Field(min_length=1)
    system: str = ""

    def fault(self, variables: Collection[str], blocks: Collection[str] = ()) -> str:
        """Return a sentence on the prompt's fault, or "". `blocks` are variables shown as texts."""
        if in_system := fields_of(self.system, variables):
            return f"`prompt.system` names {{{in_system[0]}}}; fields belong in `prompt.template`"
        in_template = fields_of(self.template, variables)
        for name in variables:
            if name in (*TEXT_VARIABLES, *blocks) and name not in in_template:
                return f"`prompt.template` has no {{{name}}}, which annotators see"
        return ""

    def filled(self, values: Mapping[str, str]) -> PromptText:
        """Return the prompt of one unit. Braces in its texts are not read as fields.

        >>> template = PromptTemplate(template="Rate {response} {like this}.")
        >>> template.filled({"response": "{response} </x>"}).user
        'Rate {response} </x> {like this}.'
        """
        # Providers may cache a prompt up to two positions. All units share what comes before the
        # first field; those with equal other values also what comes before the first of the texts.
        positions = {name: self.template.find(f"{{{name}}}") for name in values}
        of_fields = [position for position in positions.values() if position >= 0]
        of_texts = [positions[name] for name in TEXT_VARIABLES if positions.get(name, -1) >= 0]
        cut_positions = sorted({min(of_fields), min(of_texts or of_fields)} - {0})
        cuts = tuple(len(filled(self.template[:position], values)) for position in cut_positions)
        user = filled(self.template, values)
        return PromptText(system=self.system, user=user, cuts=cuts, verbatim=True)


class TranslatedOption(Texts):
    """An option's words in another language; key and meaning are the rubric's."""

    key: str
    name: str = Field(min_length=1)
    description: str = ""
    examples: tuple[str, ...] = ()


class Translation(Texts):
    """All texts of a rubric that annotators read; a rubric with [number] has no options here."""

    title: str = Field(min_length=1)
    question: str = Field(min_length=1)
    instructions: str = ""
    options: tuple[TranslatedOption, ...] = ()


class Cue(Strict):
    """A case-insensitive regular expression, and the weight that a match adds to the score."""

    pattern: str = Field(min_length=1)
    weight: float

    @field_validator("pattern")
    @classmethod
    def _pattern_compiles(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from None
        return value


class LexicalCues(Strict):
    """Cues by which the offline lexical grader rates a response; nobody else sees them.

    `ordinal` scores one response and places it on the scale; `contrast` scores two responses, each
    score levelling off at plus or minus `scale`, and compares them.
    """

    kind: Literal["ordinal", "contrast"]
    cues: tuple[Cue, ...] = Field(min_length=1)
    scale: float = Field(gt=0)
    """The score, or difference of scores, that places a reading well past the middle."""
    spread: float = Field(gt=0)
    """Standard deviation of the reading: in categories, or of the difference of scores."""
    per_words: int = Field(default=0, ge=0)
    """Count matches per this number of words; 0 counts them as they are."""
    length_weight: float = 0.0
    """Amount that a doubling of the response's length adds to its score (contrast)."""
    tolerance: float = Field(default=0.0, ge=0)
    """The difference of scores within which two responses count as equal (contrast)."""


class PolarityWords(Strict):
    """Words for and against, and how the balance of their masses is placed on the scale.

    The masses of positive and negative words are normalised. A difference beyond `strong` is read
    as the outer option, and equal masses as the option for no lean (Feng, Park, Liu & Tsvetkov
    2023, section 2.1 and Table 7). Users may add words to either list.
    """

    kind: Literal["polarity"]
    positive: tuple[str, ...] = Field(min_length=1)
    negative: tuple[str, ...] = Field(min_length=1)
    strong: float = Field(default=0.3, ge=0, lt=1)
    scale: tuple[str, str, str, str, str]
    """Options from strongly negative to strongly positive, then the option for no lean."""

    @model_validator(mode="after")
    def _words_take_one_side(self) -> Self:
        if both := {*map(str.casefold, self.positive)} & {*map(str.casefold, self.negative)}:
            raise ValueError(f"{min(both)!r} is positive and negative; keep it in one list")
        return self


class Rubric(Texts):
    """A rubric as its file defines it; level and affirmative options are declared, not inferred."""

    name: str
    title: str = Field(min_length=1)
    unit: Literal["pair", "comparison", "response"]
    """A subject's responses to two prompts, two subjects' to one prompt, or one response."""
    level: Literal["nominal", "ordinal", "interval"]
    question: str = Field(min_length=1)
    instructions: str = ""
    variables: tuple[str, ...] = Field(min_length=1)
    blocks: tuple[Block, ...] = ()
    """Texts that raters read, with a label for each; in a comparison the texts that its sides
    share, and `response` for both answers. Their columns are the default of `variables`."""
    options: tuple[Option, ...] = Field(min_length=2)
    number: Number | None = None
    """The number that is asked for, if any; the options are then all permitted numbers."""
    several: bool = False
    """True if none, one or several of the options may apply: a label is a set of them."""
    affirmative: tuple[str, ...] = ()
    threshold: float = Field(default=0.5, ge=0, le=1)  # of the affirmative options' probability
    unclear: tuple[str, ...] = ()
    """Options for units that cannot be decided."""
    collapse: tuple[CoarserCategory, ...] = ()
    """Coarser categories of all options but the unclear ones."""
    variant_of: str = ""
    """Name of the rubric that this one rewords: grades under both show how stable a grader is."""
    prompt: PromptTemplate | None = None
    """Prompt sent to graders word for word, in place of the one made from the annotators' text."""
    lexical: LexicalCues | PolarityWords | None = Field(default=None, discriminator="kind")
    language: str = "en"
    """Language of the rubric's own words."""
    translations: dict[str, Translation] = Field(default_factory=dict)
    """Texts for annotators in other languages, by language code. Graders never see them."""
    evidence: Literal["optional", "required", ""] = ""
    """Request to mark the words that decided: none, optional or required."""
    not_for: str = ""
    """Uses that the rubric is not meant for, as help to choose one. Raters never see it."""
    golden: tuple[Golden, ...] = ()
    """Units with a known correct label, on which graders are tested."""

    @model_validator(mode="before")
    @classmethod
    def _options_of_number(cls, values: Any) -> Any:
        """List the permitted numbers as options if a number is asked for."""
        if not isinstance(values, dict) or values.get("number") is None:
            return values
        number = values["number"]
        if not isinstance(number, Number):
            try:
                number = Number.model_validate(number)
            except ValidationError:  # pydantic reports it; any options prevent further faults
                return values | {"options": Number(low=0, high=100).options, "level": "interval"}
        if values.get("options", number.options) != number.options:
            raise ValueError("a rubric with [number] lists no options; take them out")
        if values.get("level", "interval") != "interval":
            raise ValueError('the level of a number is "interval"; leave `level` out')
        return values | {"number": number, "options": number.options, "level": "interval"}

    @model_validator(mode="before")
    @classmethod
    def _variables_of_blocks(cls, values: Any) -> Any:
        """List blocks' columns and names in braces as variables if none are; drop an old field."""
        if not isinstance(values, dict):
            return values
        values = {name: value for name, value in values.items() if name != "published"}
        if "variables" in values or not values.get("blocks"):
            return values
        columns = [
            block["column"] if isinstance(block, dict) else block.column
            for block in values["blocks"]
            if not isinstance(block, dict) or isinstance(block.get("column"), str)  # else faulty
        ]
        if values.get("unit") == "comparison":
            columns = [*(column for column in columns if column != "response"), *ANSWERS]
        texts = (values.get(name) for name in ("question", "instructions"))
        used = {name for text in texts if isinstance(text, str) for name in placeholders(text)}
        return values | {"variables": (*columns, *sorted(used - set(columns)))}

    @field_validator("name")
    @classmethod
    def _name_is_an_id(cls, value: str) -> str:
        if not NAME.fullmatch(value):
            raise ValueError(f"a rubric's name is lower-case letters, digits and -, not {value!r}")
        return value

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Raise ValueError with the first fault of each check, as others may follow from it."""
        columns = [block.column for block in self.blocks]
        checks = (
            self._key_faults(),
            self.kind.faults(dict(self)),
            self._category_faults(),
            self._variable_faults(),
            self._swap_faults(),
            iter([self.prompt.fault(self.variables, columns)] if self.prompt else []),
            self._golden_faults(),
            self._translation_faults(),
        )
        if faults := [fault for check in checks if (fault := next(check, ""))]:
            raise ValueError("\n".join(faults))
        return self

    # ---- checks: each yields a sentence for each fault of a part of the rubric ----

    def _key_faults(self) -> Iterator[str]:
        keys = self.categories
        if len({key.casefold() for key in keys}) < len(keys):
            yield "two options share a key; give each its own"
        if unknown := set(self.affirmative) - set(keys):
            yield f"affirmative names {min(unknown)!r}, which is no option's key"
        if self.level == "interval" and not all(map(plain_number, keys)):
            yield "an interval scale needs numbers as option keys"

    def _variable_faults(self) -> Iterator[str]:
        used = placeholders(self.question) | placeholders(self.instructions)
        declared = set(self.variables)
        if undeclared := used - declared:
            yield f"the text uses {{{min(undeclared)}}}, which `variables` does not list"
        for option in self.kind.listed:
            yield from _option_faults(option)
        columns = [block.column for block in self.blocks]
        shown = declared & {*TEXT_VARIABLES, *columns}
        is_comparison = self.unit == "comparison"
        for name in ANSWERS:
            if is_comparison and name not in shown:
                yield f"a rubric on comparisons shows {name}"
        for name in ("prompt_a", "prompt_b", "response"):
            if is_comparison and name in shown:
                yield f"a rubric on comparisons shows prompt, response_a and response_b, not {name}"
        for column in columns:
            if columns.count(column) > 1:
                yield f"two blocks show {column!r}; show it once"
            if column not in self.variables and not (is_comparison and column == "response"):
                yield f"`variables` lacks {column!r}, which a block shows"
        if columns and self.unit == "pair":
            yield "`blocks` belong to rubrics on responses; a pair shows its two sides"
        if inline := shown & used:
            yield f"{{{min(inline)}}} is shown beside the rubric; take it out of the text"
        in_prompt = set(fields_of(self.prompt.template, declared)) if self.prompt else set()
        if unused := declared - shown - used - in_prompt:
            fault = f"{min(unused)!r} is listed in `variables`, but no `[[blocks]]` entry shows it"
            yield f"{fault}; add one, or take it out of `variables`"
        if not self.blocks and not any(name.startswith("response") for name in shown):
            yield "`variables` names no response to be rated"
        if self.has_sides != any(name.endswith(("_a", "_b")) for name in shown):
            yield (
                "a rubric on pairs shows prompt_a, response_a, prompt_b, response_b; "
                "one on responses shows prompt, response"
            )

    def _golden_faults(self) -> Iterator[str]:
        if self.golden and self.unit == "pair":
            yield "`golden` belongs to rubrics on responses, not on pairs"
        for number, golden in enumerate(self.golden, 1):
            answer = f"golden answer {number}"
            if not self.kind.takes(golden.label):
                yield f"{answer}: its label is {golden.label!r}, which is no option's key"
            if missing := [name for name in self.variables if not golden.texts.get(name)]:
                yield f"{answer} has no text for {missing[0]!r}"
            if unknown := set(golden.texts) - set(self.variables):
                yield f"{answer} has a text for {min(unknown)!r}, which the rubric does not show"

    def _translation_faults(self) -> Iterator[str]:
        if not LANGUAGE.fullmatch(self.language):
            yield f'language is {self.language!r}; write a code such as "en"'
        for code, translation in self.translations.items():
            if not LANGUAGE.fullmatch(code) or code == self.language:
                yield (
                    f"translations.{code}: name another language than the rubric's own, "
                    f'{self.language!r}, by a code such as "de"'
                )
            for fault in self._faults_of_translation(translation):
                yield f"translations.{code}: {fault}"

    def _faults_of_translation(self, translation: Translation) -> Iterator[str]:
        """Yield a sentence for each option or variable that a translation leaves out or adds."""
        original = {option.key: option for option in self.kind.listed}
        keys = [option.key for option in translation.options]
        for key in keys:
            if key not in original:
                yield f"option {key!r} is none of the rubric's {', '.join(original)}"
        if missing := [key for key in original if key not in keys]:
            yield f"option {missing[0]!r} is missing; translate it too"
        if keys != list(original):
            yield f"the options stand in another order; keep {', '.join(original)}"
        for option in translation.options:
            source = original[option.key]
            if bool(option.description) != bool(source.description):
                yield f"option {option.key!r}: translate `description`, if there is one"
            if len(option.examples) != len(source.examples):
                yield (
                    f"option {option.key!r} has {len(option.examples)} examples and the original "
                    f"{len(source.examples)}; translate each"
                )
            yield from _option_faults(option)
        if bool(translation.instructions) != bool(self.instructions):
            yield "translate `instructions`, if there are any"
        original_variables = placeholders(self.question) | placeholders(self.instructions)
        variables = placeholders(translation.question) | placeholders(translation.instructions)
        if differing := original_variables ^ variables:
            yield (
                f"{{{min(differing)}}} stands in only one of original and translation; use the "
                "same variables in both"
            )

    def _category_faults(self) -> Iterator[str]:
        groups = [group.options for group in self.collapse]
        yield from coarser_faults(self.categories, self.unclear, groups)
        if isinstance(self.lexical, PolarityWords):
            for key in self.lexical.scale:
                if key not in self.categories:
                    yield f"lexical.scale names {key!r}, which is no option's key"

    def _swap_faults(self) -> Iterator[str]:
        swaps = self.swaps
        for key, other in swaps.items():
            if swaps.get(other) != key:
                yield f"`swapped` of option {key!r} must name an option that names it"
            if self.unit == "response" and other != key:
                yield "`swapped` belongs to rubrics on pairs; a response has one side"
        exchanged = {"a": "b", "b": "a", "": ""}
        sides = {option.key: option.favours for option in self.options}
        for key, side in sides.items():
            if sides[swaps[key]] != exchanged[side]:
                yield (
                    f"option {key!r} favours {side!r}, so its `swapped` must name one that favours "
                    f"{exchanged[side]!r}"
                )

    def __hash__(self) -> int:
        return hash((self.name, self.hash))  # a dict of translations has none

    @property
    def kind(self) -> LabelKind:
        """The kind of its labels: one option, a number or a set of options."""
        if self.number:
            return NumberKind(self.options, number=self.number)
        kind = SetKind if self.several else LabelKind
        return kind(self.options, is_ordered=self.level != "nominal")

    @property
    def has_sides(self) -> bool:
        """True if a unit has two sides, whose order differs between raters."""
        return self.unit != "response"

    @property
    def categories(self) -> tuple[str, ...]:
        """The option keys in their order on the scale."""
        return self.kind.keys

    @property
    def swaps(self) -> dict[str, str]:
        """The key that each option's key becomes when the two sides are exchanged."""
        return {option.key: option.swapped or option.key for option in self.options}

    @cached_property
    def hash(self) -> str:
        """16 hexadecimal digits of SHA-256 over everything that a rater sees.

        Level, affirmative and unclear options, favoured sides, coarser categories, threshold,
        lexical cues and golden answers are left out: they change how labels are interpreted, not
        the question to the rater. So are translations, each of which has its own hash
        (`in_language`). A request to mark words is part of the hash if the rubric makes one.
        """
        fields = self.model_dump(
            mode="json",
            include={"title", "unit", "question", "instructions", "variables", "options"},
            exclude={"options": {"__all__": {"favours"}}},
        )
        fields = self.kind.hash_fields(fields)
        if self.blocks:
            fields["blocks"] = [block.model_dump(mode="json") for block in self.blocks]
        if self.evidence:
            fields["evidence"] = self.evidence
        if self.prompt:
            fields["prompt"] = self.prompt.model_dump(mode="json")
        text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def versions(self) -> dict[str, Rubric]:
        """The rubric in each language, by code: the original and its translations."""
        versions = {self.language: self}
        for code, translation in self.translations.items():
            options = tuple(
                option.model_copy(update=dict(translated))
                for option, translated in zip(self.kind.listed, translation.options, strict=True)
            )
            fields = {"language": code, "translations": {}, "options": options or self.options}
            versions[code] = self._changed(dict(translation) | fields)
        return versions

    def _changed(self, fields: dict[str, Any], without: str = "") -> Rubric:
        """Return a validated copy with these fields; the field `without` is derived again."""
        names = (name for name in type(self).model_fields if name != without)
        return Rubric.model_validate({name: getattr(self, name) for name in names} | fields)

    @property
    def conversations(self) -> tuple[str, ...]:
        """The variables that are conversations, shown in turns."""
        return self._variables_of_kind("conversation")

    @property
    def images(self) -> tuple[str, ...]:
        """The variables that are images."""
        return self._variables_of_kind("image")

    def _variables_of_kind(self, kind: str) -> tuple[str, ...]:
        columns = tuple(block.column for block in self.blocks if block.kind == kind)
        is_both_answers = "response" in columns and "response" not in self.variables
        return (*columns, *ANSWERS) if is_both_answers else columns  # the block shows both

    def with_kinds(self, kinds: Mapping[str, str]) -> Rubric:
        """Return the rubric with texts of these kinds, by variable: "conversation" or "image".

        >>> from evenhand.rubrics import load_rubric
        >>> rubric = load_rubric("refusal").with_kinds({"response": "conversation"})
        >>> [(block.label, block.kind) for block in rubric.blocks]
        [('Response', 'conversation')]
        """
        by_column = {block.column: block for block in self.blocks}
        both_answers = ["response"] if self.unit == "comparison" else []  # a block for the two
        for column in [*self.variables, *both_answers]:
            if column in kinds:
                label = TEXT_VARIABLES.get(column, column)
                block = by_column.get(column) or Block(column=column, label=label)
                by_column[column] = block.model_copy(update={"kind": kinds[column]})
        blocks = tuple(by_column.values())
        return self if blocks == self.blocks else self._changed({"blocks": blocks})

    def showing(self, blocks: Sequence[Block]) -> Rubric:
        """Return the rubric with these blocks in place of its texts, under its labels where it has
        any, and without its golden answers, which may lack these texts.

        >>> from evenhand.rubrics import load_rubric
        >>> blocks = [Block(column="context", label="Source"), Block(column="response", label="X")]
        >>> [block.label for block in load_rubric("preference").showing(blocks).blocks]
        ['Source', 'Answer']
        """
        labels = {block.column: block.label for block in self.blocks}
        labelled_blocks = tuple(
            block.model_copy(update={"label": labels.get(block.column, block.label)})
            for block in blocks
        )
        if labelled_blocks == self.blocks:
            return self
        return self._changed({"blocks": labelled_blocks, "golden": ()}, without="variables")

    def in_language(self, code: str) -> Rubric:
        """Return the rubric in a language, or the original if it is not translated. A translation
        has the same keys, and a `hash` over exactly the text that its readers see.
        """
        return self.versions.get(code, self)

    def for_people(self, values: Mapping[str, str]) -> PeopleText:
        """Return the rubric and one unit as the annotation page shows them, in plain text.

        Raises InputError if the unit lacks one of the rubric's variables.
        """
        if missing := [name for name in self.variables if values.get(name) is None]:
            raise InputError(
                f"rubric {self.name!r} needs {missing[0]!r}, which this item does not have; "
                "add that column to the pairs file or take the variable out of the rubric"
            )
        words = {name: in_words(values[name]) for name in self.variables}
        return PeopleText(
            title=self.title,
            question=filled(self.question, words),
            instructions=filled(self.instructions, words),
            kind=self.kind,
            blocks=text_blocks(self.variables, self.blocks, values),
        )

    def for_prompt(self, values: Mapping[str, str]) -> PromptText:
        """Return the grader's prompt: the rubric's `prompt` filled in, with conversations as
        transcripts, or else one made from the text that annotators see. Chat-template tokens in a
        unit's texts are neutralised. Raises InputError as `for_people` does.
        """
        values = {name: neutralised(text) for name, text in values.items()}
        people = self.for_people(values)
        values = {name: values[name] for name in self.variables}
        if self.prompt:
            # Escapes of JSON, or of an image's description, may have hidden a token until now.
            decoded = {
                block.variable: neutralised(block.text)
                for block in people.blocks
                if block.turns or block.image or block.is_missing
            }
            prompt = self.prompt.filled(values | decoded)
            return replace(prompt, kind=self.kind, images=images_of(people))
        return prompt_of(people, self.instructions, values)

    @cached_property
    def parser(self) -> RubricParser:
        """The parser of graders' answers, cached as its patterns take long to compile."""
        parser_class = RubricParser if self.kind.is_single else SeveralParser
        title = self.title.partition(" (")[0]  # "Tone (polite)" is announced as "Tone: ..."
        return parser_class(self.kind.names, titles=(self.name, title))


def coarser_faults(
    categories: Collection[str], unclear: Iterable[str], coarser: Iterable[Iterable[str]]
) -> Iterator[str]:
    """Yield a sentence for each key that is not a category, or is named twice or not at all."""
    groups = [tuple(keys) for keys in coarser]
    keys = [*unclear, *(key for group in groups for key in group)]
    for key in keys:
        if key not in categories:
            yield f"unclear or collapse names {key!r}, which is no option's key"
        if keys.count(key) > 1:
            yield f"unclear and collapse name {key!r} twice; it can mean one thing"
    if groups and (missing := [key for key in categories if key not in keys]):
        yield f"collapse has no place for {missing[0]!r}; name it or call it unclear"


def _option_faults(option: Option | TranslatedOption) -> Iterator[str]:
    """Yield a sentence for each variable in the texts of an option, which must have none."""
    for text in (option.name, option.description, *option.examples):
        for name in sorted(placeholders(text)):
            yield (
                f"option {option.key!r} holds {{{name}}}; variables belong in the "
                "instructions or the question"
            )
