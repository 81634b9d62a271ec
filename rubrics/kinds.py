"""The kinds of labels: one option of a closed list, a number, or a set of options.

A rubric's kind (`Rubric.kind`) says how its labels are asked for, shown, read, stored and compared.
To add one, write a `LabelKind` that overrides what differs, and let `Rubric.kind` choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar, Literal

from evenhand.rubrics.options import (
    MOST_SEVERAL,
    NONE,
    SEPARATOR,
    SEPARATORS,
    Number,
    Option,
    options_in,
    plain_number,
    separators_in,
    set_label,
)
from evenhand.rubrics.parsing import RubricParser, SeveralParser

Rule = Literal["any", "no_majority", "distance_2"]
MOST_LISTED = 250
"""Keys that a schema lists; more are numbers. Providers bound the length of an enumeration, and
some take no bounds of a number."""


@dataclass(frozen=True)
class LabelKind:
    """Labels that are one option of a closed list, in an order if the scale has one. Other kinds
    override what differs.
    """

    options: tuple[Option, ...] = ()
    """All labels that may be given, or the options that they are made of."""
    is_ordered: bool = False

    is_choice: ClassVar[bool] = True
    """True where each label is an option, which can be counted and has a probability."""
    is_single: ClassVar[bool] = True
    """True where a label is one value, and not a set of them."""
    in_short: ClassVar[str] = "one option"

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the options, in their order on the scale."""
        return tuple(option.key for option in self.options)

    @property
    def names(self) -> dict[str, str]:
        """The names of the options by key."""
        return {option.key: option.name for option in self.options}

    @property
    def listed(self) -> tuple[Option, ...]:
        """The options that are shown one by one, with their names and descriptions."""
        return self.options

    def choices(self, none: str) -> tuple[Option, ...]:
        """Return what is offered for a click; `none` says that no option applies."""
        return self.listed

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        """Return what the raters' page needs to know besides the choices, worded by `sentence`."""
        return {}

    # Words for people and models.

    @property
    def permitted(self) -> str:
        """The labels that may be given, in words: "yes, no", "a whole number from 0 to 100"."""
        return ", ".join(self.keys)

    def permitted_in(self, sentence: Callable[..., str]) -> str:
        """Return the labels that may be given, in a page's language, whose `sentence` is by key."""
        return ", ".join(option.name for option in self.options)

    @property
    def none_of(self) -> str:
        """What any other text is: "none of yes, no", "not a whole number from 0 to 100"."""
        return f"{'none of' if self.is_choice else 'not'} {self.permitted}"

    @property
    def asked(self) -> str:
        """What a model is asked to answer with."""
        return "the key of one option"

    @property
    def request(self) -> str:
        """The sentence that asks a model for a label and nothing else."""
        *others, last = self.keys
        return f"Answer with {self.asked} and nothing else: {', '.join(others)} or {last}."

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of a label: an enumeration, or of very many keys, which are
        numbers, a number, whose bounds the parser checks.
        """
        if len(self.keys) > MOST_LISTED:
            return {"type": "number"}
        return {"type": "string", "enum": list(self.keys)}

    # Labels and the texts that give them.

    def label_of(self, text: str) -> str | None:
        """Return the label that a cell of a table is, in the form that is stored; None if none."""
        return text if text in self.keys else None

    def takes(self, label: str) -> bool:
        """Return True if a label may be stored: in the form in which `label_of` gives it."""
        return self.label_of(label) == label

    def known_label(self, text: str, known: Mapping[str, str]) -> str:
        """Return the label that another tool's cell is, "" if none; `known` are keys by their
        spellings in lower case.
        """
        plain = text.casefold()
        return known.get(plain) or known.get(plain.removesuffix(".0"), "")

    def parser(self, titles: tuple[str, ...]) -> RubricParser:
        """Return the reader of a model's answer, which the rubric's `titles` may announce."""
        return RubricParser(self.names, titles)

    def parts(self, label: str) -> list[str]:
        """Return the keys of the options that a label names."""
        return [label] if label else []

    def name_of(self, label: str, none: str = NONE) -> str:
        """Return the names of the options that a label names; `none` for that of no option, "" for
        what is no label.
        """
        return ", ".join(filter(None, (self.names.get(key, "") for key in self.parts(label))))

    def title_of(self, label: str) -> str:
        """Return a label as adjudicators read it."""
        return f"{label}: {self.names[label]}" if self.is_choice else label

    def in_order(self, labels: Collection[str]) -> tuple[str, ...]:
        """Return different labels in their order, without what is none."""
        return tuple(key for key in self.keys if key in labels)

    def differ(self, given: Sequence[str], rule: Rule) -> bool:
        """Return True if labels of several people, not all the same, call for an adjudicator (see
        `study.lead.disagreements.disagree`).
        """
        if rule == "no_majority":
            return max(given.count(label) for label in set(given)) * 2 <= len(given)
        if rule == "distance_2" and self.is_ordered:
            places = [at for at, label in enumerate(self.keys) if label in given]
            return bool(places) and places[-1] - places[0] >= 2
        return True

    # The rubric around it.

    def hashed(self, seen: dict[str, Any]) -> dict[str, Any]:
        """Return what a rater sees of a rubric, by field, as its hash takes it."""
        return seen

    def check(self, rubric: Mapping[str, Any]) -> None:
        """Raise ValueError naming the first field of a rubric that does not go with the kind."""


@dataclass(frozen=True)
class NumberKind(LabelKind):
    """Labels that are numbers, which are typed; the options are all that may be given."""

    number: Number = field(kw_only=True)

    is_choice = False
    in_short = "a number"

    @property
    def listed(self) -> tuple[Option, ...]:
        return ()

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        places, said = self.number.places, self.permitted_in(sentence)
        return {"number": self.number.model_dump() | {"places": places, "said": said}}

    @property
    def permitted(self) -> str:
        return self.number.said

    def permitted_in(self, sentence: Callable[..., str]) -> str:
        whole = self.number.step == 1 and self.number.places == 0
        bounds = {name: f"{bound:.12g}" for name, bound in self.number.model_dump().items()}
        return sentence("number.whole", **bounds) if whole else sentence("number.steps", **bounds)

    @property
    def asked(self) -> str:
        return self.permitted

    @property
    def request(self) -> str:
        return f"Answer with {self.asked} and nothing else."

    def label_of(self, text: str) -> str | None:
        return super().label_of(plain_number(text))

    def known_label(self, text: str, known: Mapping[str, str]) -> str:
        return self.label_of(text) or ""

    def differ(self, given: Sequence[str], rule: Rule) -> bool:
        values = sorted(float(label) for label in given)
        tenth = (self.number.high - self.number.low) / 10
        if rule == "distance_2":
            return values[-1] - values[0] >= 2 * tenth * (1 - 1e-9)
        near = [each for each in values if abs(each - median(values)) <= tenth * (1 + 1e-9)]
        return rule == "any" or len(near) * 2 <= len(values)

    def hashed(self, seen: dict[str, Any]) -> dict[str, Any]:
        without = {name: value for name, value in seen.items() if name != "options"}
        return without | {"number": self.number.model_dump(mode="json")}

    def check(self, rubric: Mapping[str, Any]) -> None:
        for name in ("affirmative", "unclear", "collapse"):
            if rubric[name]:
                raise ValueError(f"`{name}` names options; a rubric with [number] has none")
        if rubric["unit"] != "response":
            raise ValueError("a number rates one response; one on two of them needs options")
        if rubric["several"]:
            raise ValueError("`several` does not go with [number]")


@dataclass(frozen=True)
class SetKind(LabelKind):
    """Labels that are sets of options, of which none, one or several apply."""

    is_choice = False
    is_single = False
    in_short = "several options"

    def choices(self, none: str) -> tuple[Option, ...]:
        return (*self.options, Option(key=NONE, name=none))

    def widget(self, sentence: Callable[..., str]) -> dict[str, Any]:
        return {"several": True}

    @property
    def permitted(self) -> str:
        return f"keys with ; between them, or {NONE}: {', '.join(self.keys)}"

    @property
    def asked(self) -> str:
        return (
            "the keys of all options that apply, separated by commas (the word none if there is "
            "none)"
        )

    @property
    def request(self) -> str:
        return f"Answer with {self.asked} and nothing else; the keys are {', '.join(self.keys)}."

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": super().schema()}

    def label_of(self, text: str) -> str | None:
        return set_label(options_in(text, SEPARATORS), self.keys) if text.strip() else None

    def known_label(self, text: str, known: Mapping[str, str]) -> str:
        if not text.strip():
            return ""
        named = options_in(text, separators_in([text.casefold()], known) or "")
        keys = None if named is None else [known.get(each.casefold(), "") for each in named]
        return set_label(keys, self.keys) or ""

    def parser(self, titles: tuple[str, ...]) -> RubricParser:
        return SeveralParser(self.names, titles)

    def parts(self, label: str) -> list[str]:
        return [key for key in label.split(SEPARATOR) if key in self.keys]

    def name_of(self, label: str, none: str = NONE) -> str:
        return none if label == NONE else super().name_of(label)

    def in_order(self, labels: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted(filter(None, labels)))

    def hashed(self, seen: dict[str, Any]) -> dict[str, Any]:
        return seen | {"several": True}

    def check(self, rubric: Mapping[str, Any]) -> None:
        if rubric["unit"] != "response" or rubric["prompt"]:
            other = "[prompt]" if rubric["prompt"] else f'unit = "{rubric["unit"]}"'
            raise ValueError(f"`several` does not go with {other}")
        for name in ("affirmative", "unclear", "collapse", "lexical"):
            if rubric[name]:
                raise ValueError(
                    f"`{name}` does not go with `several`: each option is a yes or no of its own"
                )
        if rubric["level"] != "nominal":
            raise ValueError('options of which several apply have no order; say level = "nominal"')
        if len(self.options) > MOST_SEVERAL:
            raise ValueError(f"`several` takes {MOST_SEVERAL} options at most")
        if NONE in (key.casefold() for key in self.keys):
            raise ValueError(f"{NONE!r} says that no option applies; give the option another key")
