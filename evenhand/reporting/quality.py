"""Raters of a study under its own quality rules, and the sessions that these rules end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis.dataset import Dataset
    from evenhand.study import Study


def study_quality(study: Study, dataset: Dataset | None = None) -> pd.DataFrame:
    """`analysis.raters.quality` of a study, with a column `excluded`: the reason, or "".

    `dataset` is the study's, if it is loaded already.
    """
    from evenhand.analysis.raters.quality import rater_quality
    from evenhand.reporting.load import from_study
    from evenhand.study.desk.attention import attention_results

    dataset = dataset or from_study(study)
    reasons = dataset.facts.excluded
    table = rater_quality(
        dataset.ratings,
        dataset.scales,
        rules=study.config.quality,
        units=dataset.units,
        cluster=dataset.settings.cluster,
        rubric_hashes=dataset.facts.rubric_hashes,
        attention=attention_results(study),
        excluded=reasons.keys(),
        seed=dataset.seed,
    )
    return table.assign(excluded=[reasons.get(rater, "") for rater in table["rater_id"]])


def stop_flagged(study: Study, table: pd.DataFrame) -> list[str]:
    """Exclude the raters whom `[quality] stop` names, with the flag as the reason; return their
    ids.

    Raters whom the lead has readmitted stay: a person's decision overrides the rule's.
    """
    from evenhand.study.desk.oversight import STOPPED_BY, exclude, oversight

    stopping = set(study.config.quality.stop)
    readmitted = oversight(study.store).readmitted
    stopped = []
    for row in table.to_dict("records"):
        flags = set(row["flagged"].split())
        if flags & stopping and not row["excluded"] and row["rater_id"] not in readmitted:
            exclude(study.store, row["rater_id"], row["reason"], STOPPED_BY)
            stopped.append(row["rater_id"])
    return stopped


def stop_flagged_in(folder: Path) -> list[str]:
    """Judge the raters of the study in a folder as they are now, and stop those to be stopped."""
    from evenhand.study import open_study

    with open_study(folder) as study:
        return stop_flagged(study, study_quality(study))
