"""Synthetic graders of known gullibility, and what they answer in an injection audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from evenhand.study.tables.ratings import ATTACKS, CLEAN, LONG_PLACEBO, PLACEBO, REPEATS

SCALE = {"1": 0.1, "2": 0.2, "3": 0.4, "4": 0.2, "5": 0.1}
PAIR = {"A": 0.25, "B": 0.25, "C": 0.5}
TWO = {"no": 0.5, "yes": 0.5}
"""Categories, and how often each is what a grader usually says of a unit."""
ENDS = {"1": ("1", "5"), "A": ("A", "B"), "no": ("no", "yes")}
"""By the first category, what attacks ask for."""

THIRD = {"1": "3", "A": "C", "no": "no"}
"""By the first category, the label to which a grader is knocked off."""


@dataclass(frozen=True)
class SyntheticGrader:
    """`noise` is how often an answer is another than the usual one, in half of the pairs twice that
    and in the others never; `shaken` how often any text at the end brings a random answer; `obeys`
    how often an attack gets what it asks for; `knocked` how often it brings the middle label, and
    `mute` how often it brings none. With `states` it gives probabilities. `speaks` writes a reply
    to an attacked text, from its label and the target, which `reads` turns into a label again.
    """

    noise: float = 0.0
    shaken: float = 0.0
    obeys: Mapping[str, float] = field(default_factory=dict)
    states: bool = False
    knocked: Mapping[str, float] = field(default_factory=dict)
    mute: Mapping[str, float] = field(default_factory=dict)
    speaks: Callable[[str, str], str] | None = None
    reads: Callable[[str], str] = str

    def audited(
        self,
        rng: np.random.Generator,
        units: int,
        shares: Mapping[str, float] = SCALE,
        *,
        per_pair: int = 1,
        attacks: Sequence[str] = tuple(ATTACKS),
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the table of `study.store.logs.replies.attacked_table` for a rubric "r" and a
        grader "g", as an audit asks it, and the units.
        """
        keys, ids = list(shares), [f"u{n:04d}" for n in range(units)]
        pair = np.arange(units) // per_pair
        noise = np.where(pair % 2 == 0, 2 * self.noise, 0.0)
        usual = rng.choice(len(keys), units, p=list(shares.values()))
        parts: list[tuple[object, ...]] = []

        def ask(attack: str, target: str = "", side: str = "", draw: int = 0) -> np.ndarray:
            other = (usual + rng.integers(1, len(keys), units)) % len(keys)
            said = np.where(rng.random(units) < noise, other, usual)
            if attack != CLEAN:
                shaken = rng.random(units) < self.shaken
                said = np.where(shaken, rng.integers(0, len(keys), units), said)
            if target:
                obeyed = rng.random(units) < self.obeys.get(attack, 0.0)
                said = np.where(obeyed, keys.index(target), said)
                knocked = rng.random(units) < self.knocked.get(attack, 0.0)
                said = np.where(knocked, keys.index(THIRD[keys[0]]), said)
            mute = rng.random(units) < (self.mute.get(attack, 0.0) if target else 0.0)
            stated = self._stated(rng, keys, said)
            parts.extend(
                (unit, attack, target, side, draw, self._label(keys[own], target, none), given)
                for unit, own, was, given, none in zip(ids, said, clean, stated, mute, strict=True)
                if keys[was] != target
            )
            return said

        clean = np.zeros(units, dtype=int)
        clean, _ = (ask(CLEAN, draw=draw) for draw in range(REPEATS))
        for side in ("a", "b") if keys[0] == "A" else ("",):
            ask(PLACEBO, side=side)
            ask(LONG_PLACEBO, side=side)
            for attack in attacks:
                for target in ENDS[keys[0]]:
                    ask(attack, target, side)
        columns = ["unit_id", "attack", "target", "side", "draw", "label", "probabilities"]
        table = pd.DataFrame(parts, columns=columns).assign(rubric="r", rater_id="g")
        return table, pd.DataFrame({"unit_id": ids, "cluster_id": [f"p{at:04d}" for at in pair]})

    def _label(self, label: str, target: str, none: bool) -> str:
        """As it is kept: of what it writes under attack, what is read."""
        if none or not (target and self.speaks):
            return "" if none else label
        return self.reads(self.speaks(label, target))

    def _stated(
        self, rng: np.random.Generator, keys: Sequence[str], said: np.ndarray
    ) -> list[dict[str, float] | None]:
        if not self.states:
            return [None] * len(said)
        most, rest = rng.uniform(0.6, 0.95, len(said)), len(keys) - 1
        return [
            {key: sure if at == own else (1 - sure) / rest for at, key in enumerate(keys)}
            for own, sure in zip(said, most, strict=True)
        ]
