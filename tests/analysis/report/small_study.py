"""A small study that has something for every section of a report, and texts that are hostile."""

from __future__ import annotations

import numpy as np
import pandas as pd

from evenhand.analysis import Scale

HOSTILE = (
    '=cmd|"/c calc"!A1',
    "<script>alert(1)</script>",
    "a|b`c`\n# not a heading",
    "@sum\r+1",
    "![x](http://evil.example/x.png)",
)


def tables(
    people: tuple[str, ...] = ("ann", "ben", "cem"),
    graders: tuple[str, ...] = ("provider:sure", "provider:hard", "provider:constant"),
    subjects: tuple[str, ...] = ("first", "second", "third"),
    pairs: int = 40,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings and units: the first grader gives probabilities, the second leaves units unscored,
    the third always says C."""
    rng = np.random.default_rng(11)
    rows: list[dict[str, object]] = []
    units = []
    for pair in range(pairs):
        for subject in subjects:
            unit = f"p{pair:04d}|{subject}"
            units.append({"unit_id": unit, "cluster_id": f"p{pair:04d}", "subject": subject})
            true = rng.choice(3, p=[0.2, 0.15, 0.65])
            noisy = [true if rng.random() < 0.85 else rng.integers(3) for _ in range(5)]
            sure, hard, constant = graders

            def rate(rater: str, kind: str, label: str, unit: str = unit, **more: object) -> None:
                row = {"unit_id": unit, "rubric": "R", "rater_id": rater, "rater_kind": kind}
                rows.append(row | {"label": label} | more)

            for person, code in zip(people, noisy, strict=False):
                rate(person, "human", "ABC"[code])
            probability = float(np.clip((noisy[3] == 2) * 0.7 + rng.random() * 0.3, 0, 1))
            rate(sure, "model", "ABC"[noisy[3]], p_positive=probability)
            if rng.random() < 0.1:
                rate(hard, "model", "", unscored_reason="refused")
            else:
                rate(hard, "model", "ABC"[noisy[4]])
            rate(constant, "model", "C")
    return pd.DataFrame(rows), pd.DataFrame(units)


def timed(**given: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same, with the time of each label and a topic of each unit."""
    ratings, units = tables(**given)
    order = ratings.groupby("rater_id").cumcount()
    stamps = [f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00" for n in order]
    ratings = ratings.assign(seconds=20.0 + order % 7, created_at=stamps)
    return ratings, units.assign(topic=["tax", "war"] * (len(units) // 2))


SCALE = Scale(
    "R", ("A", "B", "C"), affirmative=frozenset({"C"}), unit="pair", favours={"A": "a", "B": "b"}
)
