"""Ratings of a study or a file, prepared for another tool (`evenhand.exchange.writers`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import InputError
from evenhand.exchange.writers.material import Material, Scale
from evenhand.reporting.exporting import exported_units
from evenhand.reporting.load import from_file, from_study
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.prompts.pairs import are_comparisons
from evenhand.study.store.logs.answers import with_shown

if TYPE_CHECKING:
    import pandas as pd

    from evenhand import analysis
    from evenhand.analysis.dataset import Dataset


def material_of(
    source: Path, raters: Collection[str] = (), options: ScaleOptions | None = None
) -> Material:
    """Return the material for export of a study folder or a ratings file, of these `raters` or of
    all.

    Raises InputError where there are no ratings, or a rater is not among those who rated.
    """
    from evenhand.study import open_study

    if source.is_dir():
        with open_study(source) as study:
            dataset = from_study(study)
            dataset = replace(dataset, ratings=with_shown(study.store, dataset.ratings))
            rated = dataset.ratings["unit_id"]
            units = _with_responses(exported_units(study), study.store.responses(), rated)
            return _material(dataset, units, raters, "the study")
    # What is exported is rows: no cluster is to be looked for among their columns.
    dataset = from_file(source, replace(options or ScaleOptions(), independent=True))
    return _material(dataset, dataset.units, raters, source.name)


def _material(
    dataset: Dataset, units: pd.DataFrame, raters: Collection[str], source: str
) -> Material:
    ratings = _of_raters(dataset.ratings, raters, source)
    rated = set(ratings["rubric"])
    return Material(
        name=dataset.title,
        ratings=ratings,
        combined=_combined(ratings, dataset.scales, source),
        units=units[units["unit_id"].isin(ratings["unit_id"])],
        scales={
            name: _as_seen(name, scale.categories, dataset)
            for name, scale in dataset.scales.items()
            if name in rated
        },
        synthetic=dataset.synthetic,
        notes=list(dataset.notes),
    )


def _as_seen(name: str, categories: Iterable[str], dataset: Dataset) -> Scale:
    names = dataset.names.get(name, {})
    title = dataset.titles.get(name) or name or "Label"
    return Scale(title, {key: names.get(key, key) for key in categories})


def _of_raters(ratings: pd.DataFrame, raters: Collection[str], source: str) -> pd.DataFrame:
    if ratings.empty:
        raise InputError(f"{source} has no ratings yet")
    known = ratings["rater_id"].unique()
    for rater in raters:
        if rater not in known:
            listed = ", ".join(sorted(known))
            raise InputError(f"{source} has no rater {rater!r}; it has {listed}")
    return ratings[ratings["rater_id"].isin(list(raters))] if raters else ratings


def _combined(
    ratings: pd.DataFrame, scales: Mapping[str, analysis.Scale], source: str
) -> pd.DataFrame:
    """Return a row for each rater, unit and rubric, with repeated draws and orders combined as in
    the analysis.
    """
    import pandas as pd

    parts = [
        _one_rubric(own, str(rubric), scales[str(rubric)], source)
        for rubric, own in ratings.groupby("rubric", sort=True)
    ]
    return pd.concat(parts, ignore_index=True)


def _one_rubric(
    ratings: pd.DataFrame, rubric: str, scale: analysis.Scale, source: str
) -> pd.DataFrame:
    import pandas as pd

    from evenhand.analysis.labels.combine import combine_readings, methods_apart

    apart, _ = methods_apart(ratings, rubric)
    found = combine_readings(apart, scale, source)
    names = np.array([*scale.categories, ""], dtype=object)
    return pd.DataFrame(
        {
            "unit_id": np.array(found.units, dtype=object)[found.unit],
            "rubric": rubric,
            "rater_id": np.array(found.raters, dtype=object)[found.rater],
            "rater_kind": np.array(found.kinds, dtype=object)[found.rater],
            "label": names[found.code],
            "p_positive": found.positive,
            "probabilities": [
                ""
                if np.isnan(shares).any()
                else json.dumps(dict(zip(scale.categories, map(float, shares), strict=True)))
                for shares in found.probabilities
            ],
            "unscored_reason": found.reason,
        }
    )


def _with_responses(units: pd.DataFrame, responses: pd.DataFrame, rated: pd.Series) -> pd.DataFrame:
    """Return the units that were rated, with the responses that were rated."""
    units = units[units["unit_id"].isin(rated)]
    if are_comparisons(units):  # one prompt, shown once
        units = units.assign(prompt=units["prompt_a"]).drop(columns=["prompt_a", "prompt_b"])
    texts = {
        (row["pair_id"], row["subject"], row["side"]): row["response"]
        for row in responses.to_dict("records")
    }
    keys = list(zip(units["cluster_id"], units["subject"], units["side"], strict=True))
    return units.assign(
        response=[texts.get(key, "") if key[2] else "" for key in keys],
        response_a=["" if side else texts.get((pair, who, "a"), "") for pair, who, side in keys],
        response_b=["" if side else texts.get((pair, who, "b"), "") for pair, who, side in keys],
    )
