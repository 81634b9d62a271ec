"""Write a study's report (`report_study`) and the figures for the lead's pages (`study_figures`),
and assess raters' quality (`study_quality`, `stop_flagged`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from evenhand.lazy import pd
from evenhand.reporting.workers import workers
from evenhand.study import Study, open_study
from evenhand.study.desk.claims import STOPPED_BY, attention_results, exclude, oversight
from evenhand.study.lead.disagreements import final_labels
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.study.tables.formats import write_table
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.types import Array

Result = TypeVar("Result")


def report_study(
    study: Study,
    out: Path,
    *,
    figures: Path | None = None,
    full: bool = False,
    on_stage: Callable[[str], None] | None = None,
) -> Analysis:
    """Analyse a study on all cores and write report.html, .md, .json and results.csv into `out`,
    and each figure and table as a file into `figures`, if that is named. On a `full` page
    everything is unfolded. `on_stage` is called with the name of each stage. Raises InputError if
    nothing is labelled yet.
    """
    from evenhand.analysis.report import write_figures, write_report
    from evenhand.reporting.analysing import analyse_study

    report_stage = on_stage or (lambda stage: None)
    report_stage("reading the labels")
    with workers() as pool:
        analysis, context = analyse_study(study, pool=pool, on_stage=report_stage)
    report_stage("writing the report")
    write_report(analysis, context, out, full=full)
    if figures is not None:
        report_stage("drawing figures")
        write_figures(analysis, context, figures)
    return analysis


_MOST_RATERS = 40  # annotators in a table of their agreement with one another, on a page
QUALITY_FILE = "quality.csv"
DISAGREEMENTS_FILE = "disagreements.json"
FORESTS_FILE = "forests.json"
BELOW = "▼"  # marks a grader whose interval lies wholly below that of annotators


def study_figures(
    folder: Path, out: Path, on_stage: Callable[[str], None] = lambda stage: None
) -> None:
    """Write into `out` a study's report files, its table of raters (`QUALITY_FILE`), disagreements
    of graders and annotators, the widest first (`DISAGREEMENTS_FILE`), and forest plots of kappa
    on the categories (`FORESTS_FILE`). `on_stage` is called with the name of each stage. The
    figures are not verified against other libraries: for decisions use `evenhand report`. Raises
    InputError if nothing is labelled yet.
    """
    from evenhand.analysis.report import write_report
    from evenhand.analysis.report.charts import can_draw, inline_svg
    from evenhand.analysis.report.sections.graders import forest
    from evenhand.analysis.report.sections.raters import sort_disagreements
    from evenhand.analysis.report.source import ALL, Source
    from evenhand.reporting.analysing import analyse_study, with_ids

    with open_study(folder) as study:
        on_stage(written("lead.stage_reading"))
        analysis, context = analyse_study(study, verify=False, look=False, on_stage=on_stage)
        new_folder(out)
        on_stage(written("lead.stage_raters"))
        write_table(study_quality(study), out / QUALITY_FILE)
    on_stage(written("lead.stage_writing"))
    write_report(analysis, context, out)
    forests = [  # the page's table has the binary label, at the thresholds of verdicts
        (figures.title, chart)
        for figures in Source(analysis, context).rubrics
        for chart in forest(figures, subsets=[ALL])
    ]
    for datum in (datum for _, chart in forests for datum in chart.spec["data"]["values"]):
        high, ceiling_low = datum["high"], datum["ceiling_low"]  # None if undefined
        if datum["kind"] == "grader" and None not in (high, ceiling_low) and high < ceiling_low:
            datum["label"] += f" {BELOW}"
    drawings = [
        {"rubric": rubric, "note": chart.note, "alt": chart.alt}
        | {"svg": inline_svg(dict(chart.spec), chart.alt)}
        for rubric, chart in (forests if can_draw() else ())
    ]
    atomic_write(out / FORESTS_FILE, json.dumps(drawings).encode())
    widest = with_ids(sort_disagreements(analysis.disagreements), analysis.ids)
    atomic_write(out / DISAGREEMENTS_FILE, json.dumps([asdict(unit) for unit in widest]).encode())


def call_on(folder: Path, function: Callable[..., Result], arguments: Sequence[object]) -> Result:
    """Return `function(study, *arguments)`: a process can be sent a study's folder, no study."""
    with open_study(folder) as study:
        return function(study, *arguments)


def count_look(folder: Path) -> None:
    """Count an interim analysis of the present labels, so that the next figures have verdicts."""
    from evenhand.reporting.load import from_study

    with open_study(folder) as study:
        from_study(study, look=True)


def agreement_of_pairs(study: Study) -> dict[str, tuple[list[str], Array, Array]]:
    """Return, by rubric, its annotators (n), the number of items shared by each two (n, n), and
    their Cohen's kappa (n, n), weighted if options are ordered, NaN if undefined. Numbers, sets of
    options and rubrics of too many annotators for a page are left out.
    """
    from evenhand.analysis.agreement.coefficients import agreement_weights, kappas

    final, agreement = final_labels(study), {}  # a row of `final` has an item's labels by rater
    for name, rubric in study.rubrics.items():
        labels = pd.DataFrame([*final[final["rubric"] == name]["labels"]])  # (items, raters)
        raters, n_raters = sorted(map(str, labels)), labels.shape[1]
        keys, n_keys = rubric.kind.keys, len(rubric.kind.keys)
        if rubric.kind.listed and rubric.kind.is_single and 1 < n_raters <= _MOST_RATERS:
            one_hot = labels[raters].to_numpy()[..., None] == keys  # (items, raters, keys)
            flat = one_hot.astype(int).reshape(-1, n_raters * n_keys)
            # Counts of items by the labels of each two annotators: (raters, raters, keys, keys).
            tables = (flat.T @ flat).reshape(n_raters, n_keys, n_raters, n_keys).swapaxes(1, 2)
            weights = "identity" if rubric.level == "nominal" else study.config.analysis.ordered
            kappa = kappas(tables, agreement_weights(n_keys, weights))
            agreement[name] = raters, tables.sum((2, 3)), kappa
    return agreement


def study_quality(study: Study) -> pd.DataFrame:
    """Return the table of `rater_quality`, with the reason why a rater is `excluded`, "" if not."""
    from evenhand.analysis.raters import rater_quality
    from evenhand.reporting.load import from_study

    dataset = from_study(study)
    reasons, checks = dataset.facts.excluded, attention_results(study)
    if study.config.annotation.screen == "all":  # all questions of a check are one screen
        checks = checks.groupby(["rater_id", "check_id"])["passed"].all().reset_index()
    table = rater_quality(
        dataset.ratings,
        dataset.scales,
        rules=study.config.quality,
        units=dataset.units,
        cluster=dataset.settings.cluster,
        rubric_hashes=dataset.facts.rubric_hashes,
        attention=checks,
        excluded=reasons.keys(),
        seed=dataset.seed,
    )
    return table.assign(excluded=[reasons.get(rater, "") for rater in table["rater_id"]])


def stop_flagged(study: Study, table: pd.DataFrame) -> list[str]:
    """Exclude raters of `table` with a flag of `[quality] stop`, unless readmitted; return ids."""
    stop_flags = set(study.config.quality.stop)
    readmitted = oversight(study.store).readmitted
    stopped = []
    for row in table.to_dict("records"):
        flags = set(row["flagged"].split())
        if flags & stop_flags and not row["excluded"] and row["rater_id"] not in readmitted:
            exclude(study.store, row["rater_id"], row["reason"], STOPPED_BY)
            stopped.append(row["rater_id"])
    return stopped


def stop_flagged_in(folder: Path) -> list[str]:
    """Exclude the flagged raters of the study in a folder (`stop_flagged`); return their ids."""
    with open_study(folder) as study:
        return stop_flagged(study, study_quality(study))
