"""The thresholds that a study's graders could be given, and which of them study.toml is to hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study

__all__ = ["recommended_thresholds", "study_thresholds", "write_thresholds"]

Thresholds = dict[str, dict[str, float]]
"""By rubric and grader."""


def study_thresholds(
    study: Study, rubric: str | None = None, reference: str = "humans"
) -> pd.DataFrame:
    """The results rows of `analysis.thresholds.rows`, of one rubric or of all.

    `reference` is whom to match: "humans", or any rater. Raises InputError where there is no such
    rubric or reference.
    """
    import pandas as pd

    from evenhand.analysis import Scale
    from evenhand.analysis.thresholds.results import threshold_results

    if rubric and rubric not in study.rubrics:
        listed = ", ".join(study.rubrics)
        raise InputError(f"the study has no rubric {rubric!r}; it has {listed}")
    ratings, units, hashes = study.ratings(), study.units("all"), study.accepted_hashes()
    parts = [
        threshold_results(
            ratings,
            units,
            Scale.from_rubric(study.rubrics[name], study.config.thresholds.get(name)),
            study.config.analysis,
            reference=reference,
            seed=study.config.seed,
            rubric_hashes=hashes[name],
        )
        for name in ([rubric] if rubric else study.rubrics)
    ]
    return pd.concat([part for part in parts if len(part)] or parts[:1], ignore_index=True)


def recommended_thresholds(results: pd.DataFrame, objective: str) -> Thresholds:
    """Those that are recommended, as they win on units that they were not tuned on."""
    rows = results[(results["statistic"] == "threshold_recommended") & (results["at"] == objective)]
    chosen: Thresholds = {}
    for row in rows[rows["note"].str.startswith("tuned")].to_dict("records"):
        chosen.setdefault(row["rubric"], {})[row["rater_b"]] = row["estimate"]
    return chosen


def write_thresholds(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    """Put thresholds into study.toml, leaving the rest of it as it is."""
    from evenhand.study.settings.study_toml import change_config

    change_config(study.folder, {f"thresholds.{name}": each for name, each in chosen.items()})
