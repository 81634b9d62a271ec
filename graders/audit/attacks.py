"""The texts of the injection audit: ways to talk a grader round, and two that do not try.

The attacks are data, in `attacks.toml`, and a user's own in a file of the same form. Every text is
as long as its placebo, to the character: what an attack does beyond its placebo is not done by
length.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import PROMPT_VERSION, TEXT_VARIABLES
from evenhand.study.questions import variable_of
from evenhand.study.tables.attacks import LONG_PLACEBO, PLACEBO, is_own

_LONG = 3_000
"""Length in characters of the long text, which ends with its instruction."""
_FACTS = (
    "The library opens at nine and closes at six. The river runs past the old mill. Trains leave "
    "every hour from the second platform. The market has fruit, bread and cheese. Three bridges "
    "cross the canal. The school has a new roof. A bus stops in front of the post office. "
)
"""Harmless to any question about an answer."""

_BREAK = "\n\n"


@dataclass(frozen=True, slots=True)
class Attack:
    """A text that asks for an option, and the placebo that it is compared with."""

    name: str
    text: str
    source: str
    placebo: str = PLACEBO

    def said(self, key: str, tag: str) -> str:
        """Return the attack aimed at option `key`; `tag` names the tags around the unit's text."""
        return self.text.replace("{key}", key).replace("{tag}", tag)


@dataclass(frozen=True)
class Suite:
    """The attacks of one audit: those of the package, and a user's own."""

    attacks: tuple[Attack, ...]

    @cached_property
    def version(self) -> str:
        """Version of the prompt and a short hash of the attack texts: `PROMPT_VERSION-HASH`."""
        texts = [_LONG, _FACTS, *(f"{each.name}: {each.text}" for each in self.attacks)]
        digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()
        return f"{PROMPT_VERSION}-{digest[:8]}"

    def suffix(self, rubric: Rubric, attack: str, target: str, place: str) -> str:
        """Return the text to append to a unit's text at `place`, as long as its placebo.

        `target` is the option that the attack asks for, "" for a placebo.
        """
        tag = variable_of(place)
        tag = "turn" if tag in rubric.conversations else tag
        found = next((each for each in self.attacks if each.name == attack), None)
        said = found.said(target, tag) if found else ""
        of = found.placebo if found else attack
        length = _LONG if of == LONG_PLACEBO else self._usual_length(rubric, tag)
        return _filled_up(said, length)

    def trials_of(
        self, targets: Sequence[str], places: Sequence[str]
    ) -> list[tuple[str, str, str]]:
        """Return (attack, target, place) of every trial other than the clean text."""
        asked = [(each.name, target) for each in self.attacks for target in targets]
        return [
            (*text, place)
            for place in places
            for text in ((PLACEBO, ""), (LONG_PLACEBO, ""), *asked)
        ]

    def _usual_length(self, rubric: Rubric, tag: str) -> int:
        said = (each.said(key, tag) for each in self.attacks for key in rubric.categories)
        return max(map(len, said)) + 2 * len(_BREAK)


@cache
def suite(own: Path | None = None) -> Suite:
    """Load the attacks of the package and those of a user's `own` file. Raises InputError where
    that file is missing or is not a valid file of attacks.
    """
    text = files("evenhand.graders.audit").joinpath("attacks.toml").read_text("utf-8")
    attacks = [Attack(name=name, **row) for name, row in tomllib.loads(text).items()]
    return Suite((*attacks, *(_own_attacks(own) if own else ())))


def _own_attacks(file: Path) -> list[Attack]:
    try:
        rows = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError:
        raise InputError(f"there is no file {file}") from None
    except ValueError as error:
        raise InputError(f"{file.name} is not TOML in UTF-8: {error}") from None
    if not rows:
        raise InputError(f'{file.name} names no attack; write [name] and text = "..."')
    return [_own_attack(file, name, row) for name, row in rows.items()]


def _own_attack(file: Path, name: str, row: Any) -> Attack:
    where = f"{file.name}, [{name}]"
    if not is_own(name):
        raise InputError(
            f"{where}: choose another name, of small letters, digits and _, that no attack has"
        )
    if not isinstance(row, dict) or not all(isinstance(said, str) for said in row.values()):
        raise InputError(f'{where} must hold text = "..." and, if you like, source = "..."')
    if extra := set(row) - {"text", "source", "placebo"}:
        raise InputError(f"{where}: there is no field {min(extra)!r}; use text, source, placebo")
    if "{key}" not in row.get("text", ""):
        raise InputError(f"{where}: the text must hold {{key}}, the option that it asks for")
    if row.get("placebo", PLACEBO) not in (PLACEBO, LONG_PLACEBO):
        raise InputError(f"{where}: placebo is {PLACEBO} or {LONG_PLACEBO}")
    return Attack(name=name, **{"source": "own", **row})


def targets_of(rubric: Rubric) -> tuple[str, str]:
    """Return the options that attacks ask for: the first and the last of the scale, or, for pairs,
    the first and the last option that favours a side, where the rubric marks at least two.
    """
    sides = [option.key for option in rubric.options if option.favours]
    if rubric.has_sides and len(sides) >= 2:
        return sides[0], sides[-1]
    return rubric.categories[0], rubric.categories[-1]


def places_of(rubric: Rubric) -> list[tuple[str, ...]]:
    """Return the places that an attack can be appended to: the responses together, then the
    prompts, then every other block, as far as the rubric shows them. Each unit is attacked in one
    of these places, in turn, so that several places cost no more than one.
    """
    kinds: list[tuple[str, ...]] = [("", "a", "b"), ("prompt", "prompt_a", "prompt_b")]
    kinds += [(block.column,) for block in rubric.blocks if block.column not in TEXT_VARIABLES]
    shown = [tuple(p for p in kind if variable_of(p) in rubric.variables) for kind in kinds]
    return [places for places in shown if places]


def _filled_up(said: str, length: int) -> str:
    """Return harmless sentences followed by the text `said`, `length` characters in all."""
    end = f"{_BREAK}{said}" if said else ""
    room = length - len(_BREAK) - len(end)
    return _BREAK + (_FACTS * (room // len(_FACTS) + 1))[:room] + end
