"""Thresholds of graders with probabilities: tuned ones, and those to put into study.toml."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.analysis import Analysis
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.notes import says
from evenhand.analysis.report import ReportContext, render_thresholds_text
from evenhand.analysis.results import ResultRow, results_table
from evenhand.analysis.thresholds.rows import NoReference, ThresholdResults, threshold_results
from evenhand.errors import InputError
from evenhand.reporting.load import study_scales
from evenhand.reporting.panel import Line, Shown
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study

Thresholds = dict[str, dict[str, float]]
"""By rubric and grader."""


@dataclass(frozen=True, repr=False)
class Calibration(Shown):
    """Thresholds tuned to one `objective`: what was `found` by rubric, the `rows` of the graders
    asked for, the rubrics `left_out` because nobody of the reference labelled them.
    """

    found: Mapping[str, ThresholdResults]
    rows: Sequence[ResultRow]
    context: ReportContext
    objective: str
    reference: str
    left_out: Sequence[str] = ()

    @property
    def notes(self) -> list[str]:
        """Notes on how the labels were read."""
        return self.context.said

    @property
    def results(self) -> pd.DataFrame:
        """The figures of all objectives, defined in docs/statistics.md: a row for each statistic,
        reference and grader.
        """
        return results_table(self.rows)

    @property
    def thresholds(self) -> Thresholds:
        """The recommended thresholds, by rubric and grader: those that win on units that they were
        not tuned on.
        """
        chosen: Thresholds = {}
        for row in self.rows:
            asked = (row["statistic"], row["at"]) == ("threshold_recommended", self.objective)
            if asked and says(row["remarks"], "tuned"):
                chosen.setdefault(row["rubric"], {})[row["rater_b"]] = row["estimate"]
        return chosen

    @property
    def lines(self) -> list[Line]:
        """A table for each rubric and its advice; then the rubrics that were left out."""
        lines: list[Line] = []
        analysis = Analysis(list(self.rows))
        for tables, sentences in render_thresholds_text(analysis, self.context, self.objective):
            for table in tables:
                cells = [
                    [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
                    for row in table.rows
                ]
                lines.append((table.caption, [table.stub, *table.columns], cells))
            lines += sentences
        if self.left_out:
            of_people = self.reference == "humans"
            whom = written("naming.reference") if of_people else self.reference
            rubrics = ", ".join(self.left_out)
            lines.append(written("calibrate.left_out", whom=whom, rubrics=rubrics))
        return lines


def calibrate(
    dataset: Dataset,
    rubric: str | None = None,
    *,
    grader: str | None = None,
    reference: str = "humans",
    objective: str = "kappa",
    on_stage: Callable[[str], None] | None = None,
) -> Calibration:
    """Tune thresholds on one rubric or all, and show those of one grader or all.

    `reference` is the rater to match: "humans", or any rater. Without a `rubric`, rubrics without
    that reference are left out. `on_stage` is called with the name of each stage. Raises InputError
    where there is no such rubric, where the reference is on none, or where there are no
    probabilities to tune a threshold on.
    """
    found = _tuned(dataset, rubric, reference, on_stage or (lambda stage: None))
    every = [row for each in found.values() for row in each.rows]
    rows = [row for row in every if grader in (None, row["rater_b"])]
    if not rows:
        whose = f" of {grader}" if grader else ""
        raise InputError(f"there are no probabilities{whose} to tune a threshold on")
    context = ReportContext(
        name=dataset.name,
        synthetic=dataset.synthetic,
        facts={},
        notes=dataset.notes,
        rubric_titles=dataset.titles,
    )
    left = [] if rubric else [name for name in dataset.scales if name not in found]
    return Calibration(found, rows, context, objective, reference, left)


def _tuned(
    dataset: Dataset, rubric: str | None, reference: str, on_stage: Callable[[str], None]
) -> dict[str, ThresholdResults]:
    """Return the results rows of `analysis.thresholds.rows` and their basis, by rubric."""
    hashes = dataset.facts.rubric_hashes
    if rubric and rubric not in (rubrics := hashes or dataset.scales):
        whose = dataset.name if hashes is None else "the study"
        raise InputError(f"{whose} has no rubric {rubric!r}; it has {', '.join(rubrics)}")
    found: dict[str, ThresholdResults] = {}
    missing: NoReference | None = None
    for name, scale in dataset.scales.items():
        if name != (rubric or name):
            continue
        on_stage(f"tuning thresholds on {name}")
        try:
            found[name] = threshold_results(
                dataset.ratings,
                dataset.units,
                scale,
                dataset.settings,
                reference=reference,
                seed=dataset.seed,
                rubric_hashes=hashes.get(scale.part_of or name) if hashes else None,
                excluded=dataset.facts.excluded,
            )
        except NoReference as error:
            missing = missing or error
    if missing and not any(each.rows for each in found.values()):
        raise missing
    return found


def write_tuned_thresholds(study: Study, tuned: Calibration) -> None:
    """Put the recommended thresholds into study.toml, and their basis into the store."""
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
                objective=tuned.objective,
                reference=tuned.reference,
                instead_of=scales[rubric].untuned_threshold_for(grader),
                clusters=sorted(tuned.found[rubric].clusters[grader]),
            )
            for rubric, thresholds in tuned.thresholds.items()
            for grader, threshold in thresholds.items()
        ],
    )
    write_thresholds(study, tuned.thresholds)


def write_thresholds(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    """Put thresholds into study.toml, leaving the rest of it as it is."""
    from evenhand.study.settings.study_toml import change_config

    change_config(study.folder, {f"thresholds.{name}": each for name, each in chosen.items()})
