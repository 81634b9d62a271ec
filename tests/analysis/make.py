"""Makers of small tables of ratings, and their analyses, for the analysis tests."""

import json
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from evenhand.analysis import Analysis, Scale, Verdict, analyse
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.labels.scale import Level
from evenhand.study.tables.ratings import validate_ratings

Labels = Mapping[str, Sequence[str]]
"""A label per unit by rater; "-" is no row."""


def ratings_of(
    labels: Labels,
    graders: Sequence[str] = ("g",),
    positive: Mapping[str, Sequence[float]] | None = None,
) -> pd.DataFrame:
    """The same as a ratings table; all raters but the graders are people. `positive` are the
    probabilities by unit that some of them state.
    """
    rows = [
        {
            "unit_id": f"u{n:05d}",
            "rater_id": rater,
            "rater_kind": "model" if rater in graders else "human",
            "label": label,
        }
        for rater, given in labels.items()
        for n, label in enumerate(given)
        if label != "-"
    ]
    table = pd.DataFrame(rows)
    if positive is not None:
        unit = table["unit_id"].str[1:].astype(int)
        table["p_positive"] = [
            positive[who][n] if who in positive else np.nan
            for who, n in zip(table["rater_id"], unit, strict=True)
        ]
    return table


def with_confidence(
    labels: Labels, confidence: Sequence[float], categories: Sequence[str]
) -> pd.DataFrame:
    """Ratings of which the grader `g` gives its label this probability, alike to all others."""
    ratings, others = ratings_of(labels), len(categories) - 1
    stated = [
        json.dumps({key: p if key == own else (1 - p) / others for key in categories})
        for own, p in zip(labels["g"], confidence, strict=True)
    ]
    ratings["probabilities"] = ""
    ratings.loc[ratings["rater_id"] == "g", "probabilities"] = stated
    return ratings


def matrix_of(
    labels: Labels, scale: Scale, graders: Sequence[str] = ("g",), clusters: Sequence[str] = ()
) -> LabelMatrix:
    """The same as a LabelMatrix, with the cluster of each unit."""
    ratings = validate_ratings(ratings_of(labels, graders))
    units = None
    if len(clusters):
        ids = [f"u{n:05d}" for n in range(len(clusters))]
        units = pd.DataFrame({"unit_id": ids, "cluster_id": [str(c) for c in clusters]})
    return encode(combine_readings(ratings, scale), scale, units)


def coded_of(
    codes: np.ndarray,
    level: Level = "nominal",
    values: Sequence[float] = (1.0, 2.0, 3.0),
    raters: Sequence[str] = (),
    *,
    is_number: bool = False,
) -> Coded:
    """Codes (units, raters), each unit a cluster; the last rater is a grader, but where people are
    named.
    """
    units, people = len(codes), codes.shape[1] - 1
    return Coded(
        raters=tuple(raters) or (*(f"h{n:03}" for n in range(people)), "g"),
        kinds=("human",) * len(raters) or ("human",) * people + ("model",),
        codes=codes.astype(np.int16),
        clusters=np.arange(units),
        categories=tuple(f"{value:g}" for value in values),
        values=tuple(values),
        level=level,
        subset="all",
        is_number=is_number,
    )


def analyse_labels(
    labels: Labels, scale: Scale, graders: Sequence[str] = ("g",), **settings: object
) -> Analysis:
    """Their analysis on one rubric, each unit a cluster."""
    return analyse(ratings_of(labels, graders), None, [scale], **settings)


def verdict_on(labels: Labels, scale: Scale, **settings: object) -> Verdict:
    """The verdict on the one grader `g`."""
    (verdict,) = analyse_labels(labels, scale, **settings).verdicts
    return verdict


def assert_verdict(verdict: Verdict, code: str, *words: str) -> None:
    """Whether the verdict is this one, and its sentence has these words."""
    assert verdict["verdict"] == code, verdict["sentence"]
    for each in words:
        assert each in verdict["sentence"]


def noisy(
    rng: np.random.Generator, truth: np.ndarray, q: int, keep: float, missing: float = 0.0
) -> list[str]:
    """Labels "1".."q" that keep a unit's own with probability `keep`, some of them missing."""
    other = rng.integers(0, q, len(truth))
    code = np.where(rng.random(len(truth)) < keep, truth, other)
    gone = rng.random(len(truth)) < missing
    return ["-" if lost else str(each + 1) for each, lost in zip(code, gone, strict=True)]


def people_of(
    rng: np.random.Generator, truth: np.ndarray, keep: float, people: int = 3, q: int = 2
) -> dict[str, list[str]]:
    """Such labels of so many people, h0 and so on."""
    return {f"h{k}": noisy(rng, truth, q, keep) for k in range(people)}


def rows_of(
    found: Analysis | pd.DataFrame,
    statistic: str,
    rater_a: str | None = None,
    rater_b: str | None = None,
    **where: str,
) -> pd.DataFrame:
    """Rows of the results with this statistic, and these raters, `subset` and `at` where given."""
    rows = found if isinstance(found, pd.DataFrame) else found.results
    asked = {"statistic": statistic, "rater_a": rater_a, "rater_b": rater_b, **where}
    for name, value in asked.items():
        if value is not None:
            rows = rows[rows[name] == value]
    return rows


def row_of(found: Analysis | pd.DataFrame, statistic: str, *raters: str, **where: str) -> pd.Series:
    """The one such row."""
    rows = rows_of(found, statistic, *raters, **where)
    assert len(rows) == 1, rows
    return rows.iloc[0]


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
