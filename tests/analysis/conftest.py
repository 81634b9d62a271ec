"""Small ratings tables for the analysis tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.labels.scale import Scale
from evenhand.study.tables.ratings import validate_ratings

MakeRatings = Callable[..., pd.DataFrame]
MakeMatrix = Callable[..., LabelMatrix]


def _ratings(labels: Mapping[str, Sequence[str]], models: Sequence[str] = ()) -> pd.DataFrame:
    rows = [
        {
            "unit_id": f"u{n:05d}",
            "rater_id": rater,
            "rater_kind": "model" if rater in models else "human",
            "label": label,
        }
        for rater, given in labels.items()
        for n, label in enumerate(given)
        if label != "-"
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def make_ratings() -> MakeRatings:
    """Ratings from a label per unit: make_ratings({"ann": "yyn-"}, models=["g"]); "-" is no row."""
    return _ratings


@pytest.fixture
def make_matrix() -> MakeMatrix:
    """The same as a LabelMatrix: make_matrix(labels, scale, models=(), clusters=())."""

    def make(
        labels: Mapping[str, Sequence[str]],
        scale: Scale,
        models: Sequence[str] = (),
        clusters: Sequence[str] = (),
    ) -> LabelMatrix:
        ratings = validate_ratings(_ratings(labels, models))
        units = None
        if len(clusters):
            ids = [f"u{n:05d}" for n in range(len(clusters))]
            units = pd.DataFrame({"unit_id": ids, "cluster_id": [str(c) for c in clusters]})
        return encode(combine_readings(ratings, scale), scale, units)

    return make


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers that are the same in every run."""
    return np.random.default_rng(20)


def _noisy(
    rng: np.random.Generator, truth: np.ndarray, q: int, keep: float, missing: float = 0.0
) -> list[str]:
    other = rng.integers(0, q, len(truth))
    code = np.where(rng.random(len(truth)) < keep, truth, other)
    gone = rng.random(len(truth)) < missing
    return ["-" if lost else str(each + 1) for each, lost in zip(code, gone, strict=True)]


@pytest.fixture
def noisy() -> Callable[..., list[str]]:
    """Labels "1".."q" that keep a unit's own with probability `keep`, some of them missing."""
    return _noisy
