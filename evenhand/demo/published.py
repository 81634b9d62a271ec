"""Published labels that ship with evenhand, and what they teach: a case study at a look.

They are labels alone, as wide tables (`data/published.md` has their sources and licences).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Analysis

_COLUMN = r"^(?P<rater_id>.*?)(?: (?P<order>ab|ba))?$"

Row = tuple[str, str, str, str, str]
"""Key of a figure within its rubric: statistic, rater_a, rater_b, subset, at."""


@dataclass(frozen=True)
class Published:
    """Published labels: their file, the pattern of their human raters' names, the `options` of
    `evenhand check` that declare their scale, the figures that the finding's sentences quote, and
    the number of resamples where the default takes too long for a first look.
    """

    file: str
    people: str
    options: str
    figures: Mapping[str, Row]
    resamples: int | None = None


PUBLISHED = {
    "dices": Published(
        file="dices350.csv",
        people=r"r\d+",
        options="--categories No,Unsure,Yes --affirmative Yes --epsilon 0.1",
        figures={
            "kappa": ("cohen_kappa", "humans", "expert", "all", ""),
            "people_kappa": ("cohen_kappa", "humans", "", "all", ""),
            "people_agree": ("observed_agreement", "humans", "", "all", ""),
            "always_agrees": ("observed_agreement", "humans", "baseline:constant", "all", ""),
            "always_kappa": ("cohen_kappa", "humans", "baseline:constant", "all", ""),
        },
        resamples=200,
    ),
    "llmbar": Published(
        file="llmbar.csv",
        people="gold",
        options="--reference gold --categories 1,2 --sides 1,2 --slice slice",
        figures={
            "best_kappa": ("reference_kappa", "gold", "GPT-4/Vanilla", "all", ""),
            "best_answers": ("coverage", "", "GPT-4/Vanilla", "all", ""),
            "answers": ("coverage", "", "ChatGPT/Vanilla", "all", ""),
            "natural": ("cohen_kappa", "humans", "ChatGPT/Vanilla", "slice=Natural", ""),
            "neighbour": (
                *("cohen_kappa", "humans", "ChatGPT/Vanilla"),
                *("slice=Adversarial/Neighbor", ""),
            ),
        },
    ),
}


def published_labels(study: str) -> pd.DataFrame:
    """Return published labels as a ratings table: a row for each unit, rater and order."""
    import pandas as pd

    published = PUBLISHED[study]
    with as_file(files("evenhand.data") / f"published_{published.file}") as path:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    long = table.melt("item_id", var_name="column", value_name="label")
    raters = long["column"].str.extract(_COLUMN)
    people = raters["rater_id"].str.fullmatch(published.people)
    found = pd.DataFrame(
        {
            "item_id": long["item_id"],
            "rater_id": raters["rater_id"],
            "rater_kind": people.map({True: "human", False: "model"}),
            "label": long["label"],
        }
    )
    if raters["order"].isna().all():
        return found
    parts = found["item_id"].str.rpartition("/")[0]
    return found.assign(order=raters["order"].fillna(""), slice=parts)


def judge_published(study: str, scale: ScaleOptions, folder: Path) -> Analysis:
    """Judge published labels on the scale that their options declare; write them and the report
    into a folder, which is made if need be. A labels file that is there already stays.
    """
    from evenhand.analysis.report import write_report
    from evenhand.reporting.analysing import analyse_dataset
    from evenhand.reporting.load import from_rows
    from evenhand.reporting.ratings_file.dataframes import long_rows
    from evenhand.study.tables.files import atomic_write, check_folder

    check_folder(folder)
    labels, published = published_labels(study), PUBLISHED[study]
    file = published.file
    if published.resamples is not None:
        scale = replace(scale, settings={**scale.settings, "resamples": published.resamples})
    analysis, context = analyse_dataset(from_rows(long_rows(labels, file, scale), scale))
    write_report(analysis, context, folder)
    if not (folder / file).exists():
        atomic_write(folder / file, labels.to_csv(index=False, lineterminator="\r\n").encode())
    return analysis


def finding(study: str, analysis: Analysis) -> list[str]:
    """Return what a case study found, in lines, with the figures of its analysis."""
    rows = {
        (row["statistic"], row["rater_a"], row["rater_b"], row["subset"], row["at"]): row
        for row in analysis.rows
    }
    fields: dict[str, object] = {
        name: rows[key]["estimate"] for name, key in PUBLISHED[study].figures.items()
    }
    verdicts = [verdict["verdict"] for verdict in analysis.verdicts]
    fields |= {f"n_{each}": verdicts.count(each) for each in set(verdicts)}
    return written(f"demo.{study}", graders=len(verdicts), **fields).splitlines()
