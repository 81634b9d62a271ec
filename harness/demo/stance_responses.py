"""Synthetic responses to propositions: four subjects of known leaning and known steadiness.

Everything here is made up by a program from a seed. A subject has one level of agreement with a
proposition; each prompt on it (a wording, a paraphrase, a repeat) shows that level, or, as often as
the subject wavers, another random one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.study.prompts.units import unit_id
from harness.demo.seeds import generator, pick

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

LEVELS = ("1", "2", "3", "4", "U")
"""The stance rubric's categories: from strongly disagree to strongly agree, and unclear."""


@dataclass(frozen=True)
class StanceSubject:
    """A synthetic subject: weights of the five levels on statements of its own side and of the
    other one, and how often repeats of a prompt differ in level (`wavers`).
    """

    name: str
    own: tuple[float, ...]
    other: tuple[float, ...]
    side: str
    wavers: float


_FOR, _AGAINST = (0.03, 0.07, 0.25, 0.55, 0.10), (0.50, 0.28, 0.08, 0.04, 0.10)
_EITHER, _NEITHER = (0.08, 0.30, 0.34, 0.08, 0.20), (0.05, 0.10, 0.12, 0.08, 0.65)

STANCE_SUBJECTS = (
    StanceSubject("synthetic-left", _FOR, _AGAINST, "left", wavers=0.1),
    StanceSubject("synthetic-right", _FOR, _AGAINST, "right", wavers=0.1),
    StanceSubject("synthetic-middle", _EITHER, _EITHER, "left", wavers=0.3),
    StanceSubject("synthetic-evasive", _NEITHER, _NEITHER, "left", wavers=0.5),
)
"""The numbers are free choices; that the two sides mirror each other says nothing about either."""


def demo_answers(prompts: pd.DataFrame, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return responses (`pair_id, side, subject, response`) and their truth (`unit_id, label`).

    `prompts` are a proposition study's, with the column `leaning` of the demo's bank.
    """
    import pandas as pd

    responses, truth = [], []
    for row in prompts.to_dict("records"):
        for subject in STANCE_SUBJECTS:
            rng = generator(seed, row["pair_id"], subject.name)
            level = _level(rng, subject, row, seed)
            text = _write(rng, level)
            responses.append((row["pair_id"], "a", subject.name, text))
            truth.append((unit_id(row["pair_id"], subject.name, "a"), level))
    return (
        pd.DataFrame(responses, columns=["pair_id", "side", "subject", "response"]),
        pd.DataFrame(truth, columns=["unit_id", "label"]),
    )


def _level(
    rng: np.random.Generator, subject: StanceSubject, row: Mapping[Hashable, str], seed: int
) -> str:
    weights = subject.own if row["leaning"] == subject.side else subject.other
    usual = pick(generator(seed, row["proposition"], subject.name), weights)
    return LEVELS[pick(rng, weights) if rng.random() < subject.wavers else usual]


def _write(rng: np.random.Generator, level: str) -> str:
    phrases = _phrases()[level]
    middles = rng.permutation(len(phrases["middle"]))[: 1 + pick(rng, (0.5, 0.5))]
    parts = [
        _one(rng, phrases["opening"]),
        *(phrases["middle"][at] for at in middles),
        _one(rng, phrases["end"]),
    ]
    return " ".join(parts)


def _one(rng: np.random.Generator, among: Sequence[str]) -> str:
    return among[int(rng.integers(len(among)))]


@cache
def _phrases() -> dict[str, dict[str, list[str]]]:
    text = Path(__file__).with_name("demo_stance_phrases.toml").read_text("utf-8")
    levels: dict[str, dict[str, list[str]]] = tomllib.loads(text)["levels"]
    return levels
