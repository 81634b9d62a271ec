"""A study's injection audit by itself, before or without a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.analysis.injection import Audit
    from evenhand.study import Study


def audits_of(study: Study, grader: str) -> list[Audit]:
    """Return the injection audits of one grader (its rater id), by rubric; the same rows as in the
    report.
    """
    import numpy as np

    from evenhand.analysis.bootstrap.resamples import Resamples
    from evenhand.analysis.injection import add_injection_rows, audits
    from evenhand.analysis.results import ResultRows
    from evenhand.analysis.types import Frequency
    from evenhand.reporting.load import from_study

    dataset = from_study(study)
    settings, table, found = dataset.settings, dataset.facts.attacked, []
    if table is None:
        return []
    table = table[table["rater_id"] == grader]

    def resampled(frequency: Frequency) -> Resamples:
        rng = np.random.default_rng(dataset.seed)
        return Resamples(frequency, settings.resamples, rng, settings.interval)

    for rubric in study.rubrics:
        rows = ResultRows(rubric)
        add_injection_rows(rows, table, dataset.units, settings.cluster, resampled)
        found += audits(rows.rows.values())
    return found
