"""The thresholds that a study's graders could be given, and which of them study.toml is to hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.analysis.results import ResultRow
    from evenhand.study import Study

Thresholds = dict[str, dict[str, float]]
"""By rubric and grader."""


def study_thresholds(
    study: Study, rubric: str | None = None, reference: str = "humans"
) -> list[ResultRow]:
    """The results rows of `analysis.thresholds.rows`, of one rubric or of all.

    `reference` is whom to match: "humans", or any rater. Raises InputError where there is no such
    rubric or reference.
    """
    from evenhand.analysis import Scale
    from evenhand.analysis.thresholds.rows import threshold_results

    if rubric and rubric not in study.rubrics:
        listed = ", ".join(study.rubrics)
        raise InputError(f"the study has no rubric {rubric!r}; it has {listed}")
    ratings, units, hashes = study.ratings(), study.units("all"), study.accepted_hashes()
    return [
        row
        for name in ([rubric] if rubric else study.rubrics)
        for row in threshold_results(
            ratings,
            units,
            Scale.from_rubric(study.rubrics[name], study.config.thresholds.get(name)),
            study.config.analysis,
            reference=reference,
            seed=study.config.seed,
            rubric_hashes=hashes[name],
        )
    ]


def recommended_thresholds(rows: Iterable[ResultRow], objective: str) -> Thresholds:
    """Those that are recommended, as they win on units that they were not tuned on."""
    from evenhand.analysis.notes import says

    chosen: Thresholds = {}
    for row in rows:
        asked = (row["statistic"], row["at"]) == ("threshold_recommended", objective)
        if asked and says(row["remarks"], "tuned"):
            chosen.setdefault(row["rubric"], {})[row["rater_b"]] = row["estimate"]
    return chosen


def write_thresholds(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    """Put thresholds into study.toml, leaving the rest of it as it is."""
    from evenhand.study.settings.study_toml import change_config

    change_config(study.folder, {f"thresholds.{name}": each for name, each in chosen.items()})
