"""Studies (synthetic) in which people labelled some of the pairs and graders graded all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evenhand.analysis import Scale

YES = Scale("R", ("y", "n"), affirmative=frozenset({"y"}), unit="pair")


def study(
    rng: np.random.Generator,
    graders: Mapping[str, Sequence[tuple[float, float]]],
    rates: Sequence[float] = (0.4, 0.6),
    pairs: int = 400,
    labelled: int = 150,
    people: int = 1,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings and units (synthetic): people label some of the pairs and graders all, with the given
    (sensitivity, specificity) on each subject. One person says what is so, more err now and then.
    """
    units = [
        (f"p{p:04d}|s{s}", f"p{p:04d}", f"s{s}") for p in range(pairs) for s in range(len(rates))
    ]
    table = pd.DataFrame(units, columns=["unit_id", "cluster_id", "subject"])
    subject = np.tile(np.arange(len(rates)), pairs)
    truth = rng.random(len(table)) < np.asarray(rates)[subject]
    by_people = np.arange(len(table)) < labelled * len(rates)
    parts = []

    def add(rater: str, kind: str, verdict: np.ndarray, where: np.ndarray) -> None:
        label = np.where(verdict, "y", "n")[where]
        own = {"unit_id": table["unit_id"][where], "rater_id": rater, "rater_kind": kind}
        parts.append(pd.DataFrame(own | {"label": label, "rubric": "R"}))

    for person in range(people):
        wrong = rng.random(len(truth)) < (0.1 if people > 1 else 0.0)
        add(f"h{person}", "human", truth ^ wrong, by_people)
    for grader, errors in graders.items():
        sensitivity, specificity = (np.array(each)[subject] for each in zip(*errors, strict=True))
        chance = np.where(truth, sensitivity, 1.0 - specificity)
        add(grader, "model", rng.random(len(truth)) < chance, np.ones(len(truth), dtype=bool))
    return pd.concat(parts, ignore_index=True), table


def both_sides(
    rng: np.random.Generator,
    graders: Mapping[str, Sequence[tuple[float, float]]],
    rates: Sequence[Sequence[float]],
    **sizes: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same of answers to side a and to side b, with these rates by subject."""
    labels, tables = [], []
    for side, of_side in zip("ab", rates, strict=True):
        ratings, units = study(rng, graders, rates=of_side, **sizes)
        labels.append(ratings.assign(unit_id=ratings["unit_id"] + f"|{side}"))
        tables.append(units.assign(unit_id=units["unit_id"] + f"|{side}", side=side))
    return pd.concat(labels, ignore_index=True), pd.concat(tables, ignore_index=True)
