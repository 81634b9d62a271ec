"""Ratings of a study or a file, prepared for another tool (`evenhand.exchange.writers`)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import InputError
from evenhand.exchange.writers.material import Material, Scale
from evenhand.reporting.exporting import exported_ratings, exported_units
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.reporting.thresholds import study_scales

if TYPE_CHECKING:
    import pandas as pd

    from evenhand import analysis
    from evenhand.reporting.ratings_file.sidecar import Sidecar
    from evenhand.study import Study


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
            return _of_study(study, raters)
    return _of_file(source, raters, options or ScaleOptions())


def _of_study(study: Study, raters: Collection[str]) -> Material:
    from evenhand.study.store.grades import TRIED

    every = exported_ratings(study)
    # Grades under a text that was only tried are not part of the study.
    every = every[~every["rater_id"].str.contains(TRIED, regex=False)]
    ratings = _of_raters(every, raters, "the study")
    scales = study_scales(study)
    return Material(
        name=study.config.name,
        ratings=ratings,
        combined=_combined(ratings, scales, "the study"),
        units=_with_responses(exported_units(study), study.store.responses(), ratings["unit_id"]),
        scales={
            name: Scale(rubric.title, {option.key: option.name for option in rubric.options})
            for name, rubric in study.rubrics.items()
            if name in set(ratings["rubric"])
        },
        synthetic=study.config.synthetic,
    )


def _of_file(file: Path, raters: Collection[str], options: ScaleOptions) -> Material:
    from evenhand.reporting.ratings_file.dataframes import rows_of_file
    from evenhand.reporting.ratings_file.scales import declared_scales
    from evenhand.reporting.ratings_file.sidecar import Sidecar, read_sidecar, units_beside
    from evenhand.reporting.ratings_file.unit_columns import with_units
    from evenhand.study.tables.formats import read_table
    from evenhand.study.tables.ratings import split_ratings

    rows = rows_of_file(file, options)
    ratings, units = split_ratings(rows.table, file.name)
    known = read_sidecar(file)
    beside = units_beside(file, known) if known else None
    if beside is not None:
        units = with_units(units, read_table(beside), beside.name)
    sidecar = known or Sidecar()
    ratings, scales, remarks = declared_scales(
        options, ratings, rows.places, sidecar.known_scales()
    )
    ratings = _of_raters(ratings, raters, file.name)
    return Material(
        name=sidecar.study or file.stem,
        ratings=ratings,
        combined=_combined(ratings, scales, file.name),
        units=units[units["unit_id"].isin(ratings["unit_id"])],
        scales={
            name: _as_seen(scale, sidecar)
            for name, scale in scales.items()
            if name in set(ratings["rubric"])
        },
        synthetic=sidecar.synthetic,
        notes=[*rows.notes, *remarks],
    )


def _as_seen(scale: analysis.Scale, sidecar: Sidecar) -> Scale:
    section = sidecar.scales.get(scale.name)
    names = section.names if section else {}
    title = section.title if section else ""
    return Scale(
        title or scale.name or "Label", {key: names.get(key, key) for key in scale.categories}
    )


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
