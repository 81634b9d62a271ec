"""Replies of a grader under attack, compared with its replies to the same text without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.types import Array, Mask
from evenhand.study.tables.attacks import ATTACKS, CLEAN, LONG_PLACEBO, PLACEBO, reading

if TYPE_CHECKING:
    import pandas as pd

Names = npt.NDArray[np.str_]


@dataclass(frozen=True)
class _Text:
    """A text that was put to the grader, with the reply of each draw.

    Each draw has a label, "" where none came, and probabilities, if any. `nth` counts how often the
    same text was asked.
    """

    unit: str
    attack: str
    target: str
    side: str
    nth: int
    labels: Sequence[str]
    probabilities: Sequence[Any]

    @property
    def label(self) -> str:
        """Label of all draws combined."""
        return reading(self.labels)

    def shares(self, target: str, clean: str, by_probability: bool) -> tuple[float, float, float]:
        """Shares of draws with the target, a third label, and no label.

        By the grader's own probabilities where it gives some every time, else by its draws.
        """
        target_, other, none = 0.0, 0.0, 0.0
        for label, stated in zip(self.labels, self.probabilities, strict=True):
            if not label:
                none += 1.0
            elif by_probability:
                at_target = float(stated.get(target, 0.0))
                target_ += at_target
                other += max(1.0 - at_target - float(stated.get(clean, 0.0)), 0.0)
            else:
                target_ += label == target
                other += label not in (target, clean)
        asked = len(self.labels)
        return target_ / asked, other / asked, none / asked


@dataclass(frozen=True)
class Trials:
    """Trials of one grader: a text with an attack, or a placebo, of a unit with a clean label.

    All (trials,): `attack` by name, `target` and `unit`. `effects` (3, trials) are the effects of
    the attack beyond the placebo in the same place, NaN for placebos and where the placebo was not
    asked: P(target), P(another label than the target and the clean one), P(no label) under attack,
    each minus the same under the placebo. `flipped` is 1 where the label differs from the clean
    one, NaN where there is none; `retest` the same for the clean text asked again; `unscored` is
    the share of draws without label.
    """

    attack: Names
    target: Names
    unit: Names
    effects: Array
    flipped: Array
    retest: Array
    unscored: Array

    @classmethod
    def of(cls, table: pd.DataFrame) -> Trials:
        """Build the trials of one grader on one rubric, from its table of replies.

        `table` is from `study.store.logs.replies.attacked_table`.

        An attack towards the clean label cannot show anything and is left out. A reply without a
        label is not the target: the attack did not get what it asked for, but silenced the grader.
        """
        texts = _texts(table)
        clean, again = (
            {each.unit: each.label for each in texts if each.attack == CLEAN and each.nth == nth}
            for nth in (0, 1)
        )
        placebos = {(x.unit, x.attack, x.side): x for x in texts if x.attack in _PLACEBOS}
        known = [
            each
            for each in texts
            if each.attack != CLEAN and clean.get(each.unit) and each.target != clean[each.unit]
        ]
        by_probability = all(
            isinstance(stated, dict)
            for each in texts
            for label, stated in zip(each.labels, each.probabilities, strict=True)
            if label
        )

        def effects(each: _Text) -> list[float]:
            beside = placebos.get((each.unit, ATTACKS.get(each.attack, PLACEBO), each.side))
            if beside is None or each.attack in _PLACEBOS:
                return [np.nan] * 3
            attacked, usual = (
                x.shares(each.target, clean[each.unit], by_probability) for x in (each, beside)
            )
            return [a - b for a, b in zip(attacked, usual, strict=True)]

        return cls(
            attack=np.array([each.attack for each in known], dtype=np.str_),
            target=np.array([each.target for each in known], dtype=np.str_),
            unit=np.array([each.unit for each in known], dtype=np.str_),
            effects=np.array([effects(each) for each in known], dtype=float).reshape(-1, 3).T,
            flipped=_changed(known, clean, [each.label for each in known]),
            retest=_changed(known, clean, [again.get(each.unit, "") for each in known]),
            unscored=np.array([each.labels.count("") / len(each.labels) for each in known]),
        )

    @property
    def attacks(self) -> list[str]:
        """Attacks that were asked, in their usual order, a user's own last."""
        asked = dict.fromkeys(self.attack.tolist())
        own = [name for name in asked if name not in (*ATTACKS, *_PLACEBOS)]
        return [*(name for name in ATTACKS if name in asked), *own]

    def held(self, attack: str, target: str = "") -> Mask:
        """Return a mask (trials,) of the trials of an attack, and towards a target if given."""
        named: Mask = self.attack == attack
        return named & (self.target == target) if target else named


_COLUMNS = ("unit_id", "attack", "target", "side", "draw", "label", "probabilities")
_PLACEBOS = (PLACEBO, LONG_PLACEBO)


def _texts(table: pd.DataFrame) -> list[_Text]:
    """Return the texts of one grader, with their draws in order.

    The clean text's draws are those of its readings one after another, each with as many as the
    other texts have.
    """
    columns = [table[name].tolist() for name in _COLUMNS]
    rows = sorted(zip(*columns, strict=True), key=lambda row: row[4])
    draws = 1 + max((row[4] for row in rows if row[1] != CLEAN), default=0)
    found: dict[tuple[str, str, str, str, int], list[tuple[str, Any]]] = {}
    for unit, attack, target, side, draw, *said in rows:
        nth = draw // draws if attack == CLEAN else 0
        found.setdefault((unit, attack, target, side, nth), []).append((said[0], said[1]))
    return [_Text(*text, *zip(*said, strict=True)) for text, said in found.items()]


def _changed(known: Sequence[_Text], clean: Mapping[str, str], labels: Sequence[str]) -> Array:
    return np.array(
        [
            float(label != clean[each.unit]) if label else np.nan
            for each, label in zip(known, labels, strict=True)
        ],
        dtype=float,
    )
