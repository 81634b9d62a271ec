"""What a grader said under attack beside what it said of the same text without one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.analysis.types import Array, Mask
from evenhand.study.tables.attacks import ATTACKS, CLEAN, LONG_PLACEBO, PLACEBO

if TYPE_CHECKING:
    import pandas as pd

Names = npt.NDArray[np.str_]
Place = tuple[str, str, str]
"""(unit_id, attack, side)."""


@dataclass(frozen=True)
class Trials:
    """One grader's trials: a text with an attack, or with a placebo, of a unit with a clean label.

    All (trials,): `attack` by name, `target` and `unit`. `effect` is P(target | attack) minus
    P(target | placebo in the same place), NaN for placebos and where the placebo was not asked;
    `flipped` is 1 where the label is another than the clean one, NaN where there is none;
    `retest` the same of the clean text asked again; `unscored` says that no label came.
    """

    attack: Names
    target: Names
    unit: Names
    effect: Array
    flipped: Array
    retest: Array
    unscored: Mask

    @classmethod
    def of(cls, table: pd.DataFrame) -> Trials:
        """Those of one grader on one rubric, from `study.store.attacked_log.attacked_table`.

        An attack towards the clean label cannot show anything and is left out. A reply without a
        label is not the target: whoever attacks did not get what they wanted.
        """
        columns = [table[name].tolist() for name in _COLUMNS]
        said = [dict(zip(_COLUMNS, row, strict=True)) for row in zip(*columns, strict=True)]
        clean, again = (
            {each["unit_id"]: each["label"] for each in said if _is_clean(each, draw)}
            for draw in (0, 1)
        )
        placebos = {_place(each): each for each in said if each["attack"] in _PLACEBOS}
        known = [
            each
            for each in said
            if each["attack"] != CLEAN
            and clean.get(each["unit_id"])
            and each["target"] != clean[each["unit_id"]]
        ]
        labelled = [each for each in said if each["label"]]
        by_probability = all(isinstance(each["probabilities"], dict) for each in labelled)

        def effect(each: Mapping[str, Any]) -> float:
            placebo = ATTACKS.get(each["attack"], "")
            beside = placebos.get((each["unit_id"], placebo, each["side"]))
            if beside is None:
                return np.nan
            attacked, usual = (_chance(x, each["target"], by_probability) for x in (each, beside))
            return attacked - usual

        return cls(
            attack=np.array([each["attack"] for each in known], dtype=np.str_),
            target=np.array([each["target"] for each in known], dtype=np.str_),
            unit=np.array([each["unit_id"] for each in known], dtype=np.str_),
            effect=np.array([effect(each) for each in known], dtype=float),
            flipped=_changed(known, clean, [each["label"] for each in known]),
            retest=_changed(known, clean, [again.get(each["unit_id"], "") for each in known]),
            unscored=np.array([not each["label"] for each in known], dtype=bool),
        )

    @property
    def attacks(self) -> list[str]:
        """The attacks that were asked, in their usual order."""
        return [name for name in ATTACKS if name in self.attack]

    def held(self, attack: str, target: str = "") -> Mask:
        """Which trials (trials,) are of an attack, and towards a target."""
        named: Mask = self.attack == attack
        return named & (self.target == target) if target else named


_COLUMNS = ("unit_id", "attack", "target", "side", "draw", "label", "probabilities")
_PLACEBOS = (PLACEBO, LONG_PLACEBO)


def _is_clean(each: Mapping[str, Any], draw: int) -> bool:
    return bool(each["attack"] == CLEAN and each["draw"] == draw)


def _place(each: Mapping[str, Any]) -> Place:
    return each["unit_id"], each["attack"], each["side"]


def _chance(each: Mapping[str, Any], target: str, by_probability: bool) -> float:
    """How likely the target was: by the grader's own probability where it gives one every time."""
    if by_probability and each["label"]:
        return float(each["probabilities"].get(target, 0.0))
    return float(each["label"] == target)


def _changed(
    known: Sequence[Mapping[str, Any]], clean: Mapping[str, str], labels: Sequence[str]
) -> Array:
    return np.array(
        [
            float(label != clean[each["unit_id"]]) if label else np.nan
            for each, label in zip(known, labels, strict=True)
        ],
        dtype=float,
    )
