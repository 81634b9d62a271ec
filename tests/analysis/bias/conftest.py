"""Synthetic raters whose lean is known, since it was put there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest

from analysis import Scale

PAIR = Scale(
    "pair", ("A", "B", "C"), affirmative=frozenset({"C"}), unit="pair", favours={"A": "a", "B": "b"}
)
RESPONSE = Scale("response", ("no", "yes"), affirmative=frozenset({"yes"}), unit="response")


@dataclass
class Sample:
    """A synthetic study on pairs: what is true of each unit, and tables as they grow."""

    rng: np.random.Generator
    truth: np.ndarray
    units: pd.DataFrame
    rows: list[pd.DataFrame] = field(default_factory=list)

    def rate(
        self,
        rater: str,
        labels: np.ndarray,
        kind: str = "model",
        order: str = "",
        scale: Scale = PAIR,
    ) -> None:
        table = {"unit_id": self.units["unit_id"], "rater_id": rater, "rater_kind": kind}
        self.rows.append(
            pd.DataFrame({**table, "label": labels, "order": order, "rubric": scale.name})
        )

    def see(self, sees: float, lean: np.ndarray | float = 0.0) -> np.ndarray:
        """Labels A, B, C: the truth with probability `sees`, else any; and of the C so many (a
        share of units) turned to A (lean above 0) or to B (below 0).
        """
        n = len(self.truth)
        other = self.rng.choice(["A", "B", "C"], n)
        label = np.where(self.rng.random(n) < sees, self.truth, other)
        turned = (label == "C") & (self.rng.random(n) < np.abs(lean))
        return np.where(turned, np.where(np.asarray(lean) > 0, "A", "B"), label)

    @property
    def ratings(self) -> pd.DataFrame:
        return pd.concat(self.rows, ignore_index=True)


@pytest.fixture
def sample() -> Callable[..., Sample]:
    """sample(seed, pairs=120, subjects=4, shares=(.25, .1, .65)): units whose true label is A, B, C
    in these shares, three people who see it in 8 of 10 units.
    """

    def make(
        seed: int,
        pairs: int = 120,
        subjects: int = 4,
        shares: tuple[float, float, float] = (0.25, 0.1, 0.65),
        people: int = 3,
    ) -> Sample:
        rng = np.random.default_rng(seed)
        names = [f"claude-{n}" if n % 2 else f"other-{n}" for n in range(subjects)]
        units = pd.DataFrame(
            [
                {"unit_id": f"p{p:03d}|{name}", "cluster_id": f"p{p:03d}", "subject": name}
                for p in range(pairs)
                for name in names
            ]
        )
        truth = rng.choice(["A", "B", "C"], len(units), p=shares)
        made = Sample(rng, truth, units)
        for person in range(people):
            made.rate(f"h{person}", made.see(0.8), "human")
        return made

    return make


@pytest.fixture
def row_of() -> Callable[..., pd.Series]:
    """row_of(results, statistic, grader, subset="all"): the one row."""

    def find(results: pd.DataFrame, statistic: str, grader: str, subset: str = "all") -> pd.Series:
        own = results[
            (results["statistic"] == statistic)
            & ((results["rater_b"] == grader) | (results["rater_a"] == grader))
            & (results["subset"] == subset)
        ]
        assert len(own) == 1, own
        return own.iloc[0]

    return find
