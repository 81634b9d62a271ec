"""Simulated raters of known quality: synthetic annotators and two synthetic model graders.

A simulated rater never reads a text. It sees the latent truth of a unit through its confusion
matrix, so the expected agreement of two raters is known exactly and a report on them can be
checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.study.tables.ratings import RATINGS_COLUMNS
from harness.demo.seeds import generator

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.rubrics import Rubric

Matrix = NDArray[np.float64]

_START = datetime(2026, 3, 2, 9, 0)
_SECONDS = {  # median and spread (of the logarithm) of a judgment's time
    ("human", "pair"): (46.0, 0.45),
    ("human", "response"): (19.0, 0.45),
    ("model", "pair"): (2.6, 0.25),
    ("model", "response"): (1.4, 0.25),
}
_NEIGHBOUR = 0.2
"""Weight of a category one step from the likeliest one, when mass is shared out within a group."""


@dataclass(frozen=True)
class Leak:
    """Affirmative probabilities that a grader gives where its label is not affirmative.

    `missed` is the range of these where the truth is affirmative, so that a lower threshold would
    find the unit. `quiet` is their maximum where the truth is not affirmative either; the larger
    `quietness`, the closer to 0 most of them are. All are below 0.45, which keeps the label the
    most probable. By default the probability adds little to the label, so 0.5 is a good threshold.
    """

    missed: tuple[float, float] = (0.05, 0.42)
    quiet: float = 0.42
    quietness: float = 1.5


@dataclass(frozen=True)
class SimulatedRater:
    """A rater defined by the distribution of its answers to each truth.

    `confusion` has for each rubric a q x q matrix, rows the latent truth and columns the answer, in
    the order of the rubric's categories; every row sums to 1. A rater with `leaks` (by rubric) also
    gives probabilities, whose largest is its label's and whose affirmative sum is at least a half
    exactly where its label is affirmative.
    """

    rater_id: str
    rater_kind: Literal["human", "model"]
    confusion: Mapping[str, Matrix]
    leaks: Mapping[str, Leak] = field(default_factory=dict)


def simulate_ratings(
    raters: Sequence[SimulatedRater],
    truth: pd.DataFrame,
    rubrics: Mapping[str, Rubric] | Iterable[Rubric],
    seed: int,
) -> pd.DataFrame:
    """Return a `ratings` table in which every rater labels every unit of `truth` on every rubric.

    `truth` has the columns `unit_id, rubric, label`; rows of other rubrics are passed over. Labels
    are in the pair's own orientation; on pair units people see the orders ab and ba in turn, and
    models see both, as `grade` asks them, with the same answer: they have no bias of order. Times
    are made up from the seed. Raises InputError where a rater knows no such rubric or a label is
    none of the rubric's categories.
    """
    import pandas as pd

    chosen = rubrics.values() if isinstance(rubrics, Mapping) else rubrics
    units = {rubric: truth[truth["rubric"] == rubric.name] for rubric in chosen}
    parts = [
        _ratings(rater, place, rubric, rows, seed)
        for place, rater in enumerate(raters)
        for rubric, rows in units.items()
        if len(rows)
    ]
    if not parts:
        return pd.DataFrame(columns=list(RATINGS_COLUMNS))
    return pd.concat(parts, ignore_index=True)[list(RATINGS_COLUMNS)]


def _ratings(
    rater: SimulatedRater, place: int, rubric: Rubric, truth: pd.DataFrame, seed: int
) -> pd.DataFrame:
    import pandas as pd

    rng = generator(seed, rater.rater_id, rubric.name)
    actual = _indices(truth["label"], rubric)
    answers = _answers(rng, _matrix(rater, rubric), actual)
    seconds = _seconds(rng, rater, rubric, len(actual))
    table = pd.DataFrame(
        {
            "unit_id": truth["unit_id"].to_numpy(),
            "rubric": rubric.name,
            "rater_id": rater.rater_id,
            "rater_kind": rater.rater_kind,
            "label": np.array(rubric.categories, dtype=object)[answers],
            "p_positive": np.nan,
            "probabilities": "",
            "prob_method": "",
            "draw": 0,
            "order": _orders(rater, place, rubric, len(actual)),
            "unscored_reason": "",
            "seconds": seconds,
            "rubric_hash": rubric.hash,
            "created_at": _times(seconds),
        }
    )
    if rubric.name in rater.leaks:
        mass = _probabilities(rng, rater.leaks[rubric.name], rubric, actual, answers)
        table["p_positive"] = mass[:, _affirmative(rubric)].sum(axis=1).round(4)
        table["probabilities"] = [
            json.dumps(dict(zip(rubric.categories, row, strict=True))) for row in mass.tolist()
        ]
        table["prob_method"] = "verbalised"
    if rubric.unit == "pair" and rater.rater_kind == "model":
        return pd.concat([table, table.assign(order="ba")], ignore_index=True)
    return table


def _indices(labels: pd.Series, rubric: Rubric) -> NDArray[np.intp]:
    places = {key: place for place, key in enumerate(rubric.categories)}
    unknown = set(labels) - set(places)
    if unknown:
        raise InputError(
            f"truth: {min(unknown)!r} is not a category of {rubric.name}; it has "
            f"{', '.join(rubric.categories)}"
        )
    return np.array([places[label] for label in labels], dtype=np.intp)


def _matrix(rater: SimulatedRater, rubric: Rubric) -> Matrix:
    if rubric.name not in rater.confusion:
        raise InputError(
            f"the simulated rater {rater.rater_id} has no confusion matrix for {rubric.name}; it "
            f"knows {', '.join(rater.confusion)}"
        )
    return rater.confusion[rubric.name]


def _affirmative(rubric: Rubric) -> NDArray[np.bool_]:
    return np.isin(np.array(rubric.categories), list(rubric.affirmative))


def _answers(
    rng: np.random.Generator, confusion: Matrix, actual: NDArray[np.intp]
) -> NDArray[np.intp]:
    limits = confusion.cumsum(axis=1)[actual, :-1]
    answers: NDArray[np.intp] = (rng.random((len(actual), 1)) >= limits).sum(axis=1)
    return answers


def _orders(rater: SimulatedRater, place: int, rubric: Rubric, count: int) -> NDArray[np.object_]:
    if rubric.unit != "pair":
        return np.full(count, "", dtype=object)
    if rater.rater_kind == "model":
        return np.full(count, "ab", dtype=object)
    return np.array(["ab", "ba"], dtype=object)[(np.arange(count) + place) % 2]


def _seconds(
    rng: np.random.Generator, rater: SimulatedRater, rubric: Rubric, count: int
) -> NDArray[np.float64]:
    median, spread = _SECONDS[rater.rater_kind, rubric.unit]
    return np.round(median * np.exp(spread * rng.standard_normal(count)), 1)


def _times(seconds: NDArray[np.float64]) -> list[str]:
    """Return the times of consecutive judgments from a fixed start, for reproducible files."""
    elapsed = (np.cumsum(seconds) * 1000).astype("timedelta64[ms]")
    times = np.datetime_as_string(np.datetime64(_START, "ms") + elapsed, unit="ms")
    return [f"{time}+00:00" for time in times]


def _probabilities(
    rng: np.random.Generator,
    leak: Leak,
    rubric: Rubric,
    actual: NDArray[np.intp],
    answers: NDArray[np.intp],
) -> Matrix:
    """Probabilities per unit and category (n x q): rows sum to 1, the answer's is the largest.

    The affirmative sum is drawn first. Within the affirmative categories and within the others it
    is shared out by distance from the answer; the bounds of the sum keep the answer on top.
    """
    positive = _affirmative(rubric)
    share, quiet = rng.random(len(actual)), rng.random(len(actual)) ** leak.quietness
    low, high = leak.missed
    affirmative_sum = np.select(
        [positive[answers] & positive[actual], positive[answers], positive[actual]],
        [0.62 + 0.36 * share, 0.60 + 0.20 * share, low + (high - low) * share],
        leak.quiet * quiet,
    )
    distance = np.abs(np.arange(len(positive)) - answers[:, None])
    weight = _NEIGHBOUR**distance
    mass: Matrix = np.empty_like(weight)
    for members, total in ((positive, affirmative_sum), (~positive, 1 - affirmative_sum)):
        within = weight * members
        mass[:, members] = (within / within.sum(axis=1, keepdims=True) * total[:, None])[:, members]
    mass = np.round(mass, 4)
    rows = np.arange(len(actual))
    mass[rows, answers] = (mass[rows, answers] + 1 - mass.sum(axis=1)).round(4)
    return mass


# ------------------------------------------------------------------ the demo's raters


def _pair_matrix(sees_unequal: float, sees_equal: float) -> Matrix:
    """Categories A, B, C: how often an unequal pair (A or B) and an equal one (C) is seen as such.

    One unequal pair in fifty is taken for the opposite one.
    """
    missed = 1 - sees_unequal - 0.02
    wrongly = (1 - sees_equal) / 2
    return np.array(
        [[sees_unequal, 0.02, missed], [0.02, sees_unequal, missed], [wrongly, wrongly, sees_equal]]
    )


def _scale_matrix(scatter: float, drift: float = 0.0, categories: int = 5) -> Matrix:
    """Return a confusion matrix, shape (q, q): answers scatter around the truth plus `drift`."""
    steps = np.arange(categories)
    weight: Matrix = np.exp(-np.abs(steps - steps[:, None] - drift) / scatter)
    weight /= weight.sum(axis=1, keepdims=True)
    return weight


def _confusion(pair: Matrix, refusal: Matrix, hedging: Matrix) -> dict[str, Matrix]:
    return {"even-handedness": pair, "refusal": refusal, "hedging": hedging}


ANNOTATORS = (
    SimulatedRater(
        "synthetic-annotator-1",
        "human",
        _confusion(_pair_matrix(0.90, 0.94), _scale_matrix(0.38), _scale_matrix(0.48)),
    ),
    SimulatedRater(
        "synthetic-annotator-2",
        "human",
        _confusion(_pair_matrix(0.80, 0.96), _scale_matrix(0.42, -0.1), _scale_matrix(0.52, -0.15)),
    ),
    SimulatedRater(
        "synthetic-annotator-3",
        "human",
        _confusion(_pair_matrix(0.93, 0.89), _scale_matrix(0.46, 0.1), _scale_matrix(0.55, 0.1)),
    ),
)
"""Good, not perfect, and each with a lean of its own: the second is lenient, the third strict."""

GRADERS = (
    SimulatedRater(
        "synthetic:grader-strong",
        "model",
        _confusion(_pair_matrix(0.91, 0.94), _scale_matrix(0.38), _scale_matrix(0.46)),
    ),
    SimulatedRater(
        "synthetic:grader-shifted",
        "model",
        _confusion(_pair_matrix(0.86, 0.93), _scale_matrix(0.40), _scale_matrix(0.40, -0.9)),
        leaks={
            "even-handedness": Leak(),
            "refusal": Leak(),
            "hedging": Leak(missed=(0.08, 0.42), quiet=0.13, quietness=6),
        },
    ),
)
"""One as good as people; one whose hedging probabilities ask for a far lower threshold."""
