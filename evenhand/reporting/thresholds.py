"""Thresholds of a study: tuned ones, and those to put into study.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.load import from_study, study_scales

if TYPE_CHECKING:
    from evenhand.analysis.results import ResultRow
    from evenhand.analysis.thresholds.rows import ThresholdResults
    from evenhand.study import Study

Thresholds = dict[str, dict[str, float]]
"""By rubric and grader."""


def study_thresholds(
    study: Study,
    rubric: str | None = None,
    reference: str = "humans",
    *,
    on_stage: Callable[[str], None] | None = None,
) -> dict[str, ThresholdResults]:
    """Return the results rows of `analysis.thresholds.rows` and their basis, for one rubric or all.

    `reference` is the rater to match: "humans", or any rater. Without a `rubric`, rubrics without
    that reference are left out. `on_stage` is called with the name of each stage. Raises InputError
    where there is no such rubric, or where the reference is on none.
    """
    from evenhand.analysis.thresholds.references import NoReference
    from evenhand.analysis.thresholds.rows import threshold_results

    if rubric and rubric not in study.rubrics:
        listed = ", ".join(study.rubrics)
        raise InputError(f"the study has no rubric {rubric!r}; it has {listed}")
    dataset = from_study(study)
    found: dict[str, ThresholdResults] = {}
    missing: NoReference | None = None
    for name, scale in dataset.scales.items():
        if name != (rubric or name):
            continue
        if on_stage:
            on_stage(f"tuning thresholds on {name}")
        try:
            found[name] = threshold_results(
                dataset.ratings,
                dataset.units,
                scale,
                dataset.settings,
                reference=reference,
                seed=dataset.seed,
                rubric_hashes=study.accepted_hashes()[scale.part_of or name],
                excluded=dataset.facts.excluded,
            )
        except NoReference as error:
            missing = missing or error
    if missing and not any(each.rows for each in found.values()):
        raise missing
    return found


def recommended_thresholds(rows: Iterable[ResultRow], objective: str) -> Thresholds:
    """Return the recommended thresholds: those that win on units that they were not tuned on."""
    from evenhand.analysis.notes import says

    chosen: Thresholds = {}
    for row in rows:
        asked = (row["statistic"], row["at"]) == ("threshold_recommended", objective)
        if asked and says(row["remarks"], "tuned"):
            chosen.setdefault(row["rubric"], {})[row["rater_b"]] = row["estimate"]
    return chosen


def write_tuned_thresholds(
    study: Study,
    found: Mapping[str, ThresholdResults],
    chosen: Mapping[str, Mapping[str, float]],
    *,
    objective: str,
    reference: str,
) -> None:
    """Put thresholds that were `found` into study.toml, and their basis into the store."""
    from evenhand.study.store.logs.decisions import TUNED_THRESHOLDS, TunedThreshold

    scales = study_scales(study)
    # The store first: a tuned threshold must never appear in study.toml as if put in by hand.
    TUNED_THRESHOLDS.append(
        study.store,
        [
            TunedThreshold(
                rubric=rubric,
                grader=grader,
                threshold=threshold,
                objective=objective,
                reference=reference,
                instead_of=scales[rubric].untuned_threshold_for(grader),
                clusters=sorted(found[rubric].clusters[grader]),
            )
            for rubric, thresholds in chosen.items()
            for grader, threshold in thresholds.items()
        ],
    )
    write_thresholds(study, chosen)


def write_thresholds(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    """Put thresholds into study.toml, leaving the rest of it as it is."""
    from evenhand.study.settings.study_toml import change_config

    change_config(study.folder, {f"thresholds.{name}": each for name, each in chosen.items()})
