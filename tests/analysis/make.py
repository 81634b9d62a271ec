"""Makers of small tables of ratings, and their analyses, for the analysis tests."""

import json

import numpy as np
import pandas as pd

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.labels.encoding import combine_readings, encode
from evenhand.analysis.labels.matrix import Coded
from evenhand.study.tables.ratings import validate_ratings


def ratings_of(labels, graders=("g",), positive=None):
    """A ratings table from a label per unit by rater, of which "-" is no row; all raters but the
    graders are people. `positive` are the probabilities by unit that some of them state.
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


def with_confidence(labels, confidence, categories):
    """Ratings of which the grader `g` gives its label this probability, alike to all others."""
    ratings, others = ratings_of(labels), len(categories) - 1
    stated = [
        json.dumps({key: p if key == own else (1 - p) / others for key in categories})
        for own, p in zip(labels["g"], confidence, strict=True)
    ]
    ratings["probabilities"] = ""
    ratings.loc[ratings["rater_id"] == "g", "probabilities"] = stated
    return ratings


def matrix_of(labels, scale, graders=("g",), clusters=()):
    """The same as a LabelMatrix, with the cluster of each unit."""
    ratings = validate_ratings(ratings_of(labels, graders))
    units = None
    if len(clusters):
        ids = [f"u{n:05d}" for n in range(len(clusters))]
        units = pd.DataFrame({"unit_id": ids, "cluster_id": [str(c) for c in clusters]})
    return encode(combine_readings(ratings, scale), scale, units)


def coded_of(codes, level="nominal", values=(1.0, 2.0, 3.0), raters=(), *, is_number=False):
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


def analyse_labels(labels, scale, graders=("g",), **settings):
    """Their analysis on one rubric, each unit a cluster; bounds of verdicts need no resamples."""
    return analyse(ratings_of(labels, graders), None, [scale], **{"resamples": 20, **settings})


def verdict_on(labels, scale, **settings):
    """The verdict on the one grader `g`."""
    (verdict,) = analyse_labels(labels, scale, **settings).verdicts
    return verdict


def assert_verdict(verdict, code, *words):
    """Whether the verdict is this one, and its sentence has these words."""
    assert verdict["verdict"] == code, verdict["sentence"]
    for each in words:
        assert each in verdict["sentence"]


def noisy(rng, truth, q, keep, missing=0.0):
    """Labels "1".."q" that keep a unit's own with probability `keep`, some of them missing."""
    other = rng.integers(0, q, len(truth))
    code = np.where(rng.random(len(truth)) < keep, truth, other)
    gone = rng.random(len(truth)) < missing
    return ["-" if lost else str(each + 1) for each, lost in zip(code, gone, strict=True)]


def people_of(rng, truth, keep, people=3, q=2):
    """Such labels of so many people, h0 and so on."""
    return {f"h{k}": noisy(rng, truth, q, keep) for k in range(people)}


def rows_of(found, statistic, rater_a=None, rater_b=None, **where):
    """Rows of the results with this statistic, and these raters, `subset` and `at` where given."""
    rows = found if isinstance(found, pd.DataFrame) else found.results
    asked = {"statistic": statistic, "rater_a": rater_a, "rater_b": rater_b, **where}
    for name, value in asked.items():
        if value is not None:
            rows = rows[rows[name] == value]
    return rows


def row_of(found, statistic, *raters, **where):
    """The one such row."""
    rows = rows_of(found, statistic, *raters, **where)
    assert len(rows) == 1, rows
    return rows.iloc[0]


YES = Scale("R", ("y", "n"), affirmative=frozenset({"y"}), unit="pair")


def study(rng, graders, rates=(0.4, 0.6), pairs=400, labelled=150, people=1):
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

    def add(rater, kind, verdict, where):
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


def both_sides(rng, graders, rates, **sizes):
    """The same of answers to side a and to side b, with these rates by subject."""
    labels, tables = [], []
    for side, of_side in zip("ab", rates, strict=True):
        ratings, units = study(rng, graders, rates=of_side, **sizes)
        labels.append(ratings.assign(unit_id=ratings["unit_id"] + f"|{side}"))
        tables.append(units.assign(unit_id=units["unit_id"] + f"|{side}", side=side))
    return pd.concat(labels, ignore_index=True), pd.concat(tables, ignore_index=True)


def by_at(found, statistic, *raters, **where):
    """These rows by their `at`."""
    return rows_of(found, statistic, *raters, **where).set_index("at")


START = pd.Timestamp("2026-01-05T08:00:00Z")


def analysed(annotators, graders, scale, times=None, clusters=None, **settings):
    """Analyse codes of labels by annotators (items, annotators), -1 for none, and by graders
    (items, graders) at a first look; `times` (items, annotators) are in seconds.
    """
    people = {f"a{n:03}": codes for n, codes in enumerate(annotators.T)}
    models = {f"g{n:02}": codes for n, codes in enumerate(graders.T)}
    words = np.array([*scale.categories, "-"])
    ratings = ratings_of({who: words[own] for who, own in (people | models).items()}, [*models])
    if times is not None:
        at = dict(zip(people, times.T, strict=True))
        given = zip(ratings["rater_id"], ratings["unit_id"].str[1:].astype(int), strict=True)
        ratings["created_at"] = [
            (START + pd.Timedelta(seconds=at[who][n])).isoformat() if who in at else ""
            for who, n in given
        ]
    units = None
    if clusters is not None:
        units = pd.DataFrame({"unit_id": [f"u{n:05}" for n in range(len(graders))]})
        units["cluster_id"] = [f"c{n:04}" for n in clusters]
    asked = {"resamples": 10, "facts": StudyFacts(looks={scale.name: 1}), **settings}
    return analyse(ratings, units, [scale], **asked)


def passes(found):
    """Whether each grader can replace an annotator."""
    return [each["verdict"].startswith("can_replace") for each in found.verdicts]
