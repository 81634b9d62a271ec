"""The demos: synthetic studies, and case studies of published labels.

`make_demo` makes a synthetic study from shipped prompts, responses and ratings, with a real lexical
grader, which counts cue words. A program made the synthetic tables from a seed (`data/README.md`),
so that a demo is the same in every version. `analyse_published` analyses published labels
(`data/published.md` has their sources and licences), and `findings` says what they show.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from evenhand.lazy import pd
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from evenhand.analysis import Analysis
    from evenhand.analysis.results import ResultRow
    from evenhand.graders.running import Progress
    from evenhand.reporting.ratings_file.declared import ScaleOptions
    from evenhand.study.creation import StudyPlan


@dataclass(frozen=True)
class PublishedLabels:
    """A table of `published_labels.toml`: a file of published labels, the options of `evenhand
    check` for it, and the figures that its case study names, each with the key of its result row.
    """

    file: str
    options: str
    figures: Mapping[str, Sequence[str]]
    resamples: int | None = None


_TABLES = table_of("evenhand", "published_labels.toml")
PUBLISHED = {name: PublishedLabels(**table) for name, table in _TABLES.items()}
"""Published labels by the name of their demo."""


def published_labels(study: str) -> pd.DataFrame:
    """Return published labels as a ratings table: a row for each unit (item), rater and order."""
    file = _shipped(f"published_{PUBLISHED[study].file}.gz")
    return pd.read_csv(file, dtype=str, keep_default_na=False)


def analyse_published(study: str, scale: ScaleOptions, folder: Path) -> Analysis:
    """Analyse published labels on a scale, and write them and the report into a folder, which is
    made if missing. An existing file of labels is not overwritten.
    """
    from evenhand.analysis.report import write_report
    from evenhand.reporting.analysing import analyse_dataset
    from evenhand.reporting.load import from_rows
    from evenhand.reporting.ratings_file.dataframes import long_rows
    from evenhand.study.tables.files import atomic_write, check_folder

    check_folder(folder)
    labels, published = published_labels(study), PUBLISHED[study]
    if published.resamples is not None:
        scale = replace(scale, settings={**scale.settings, "resamples": published.resamples})
    analysis, context = analyse_dataset(from_rows(*long_rows(labels, published.file, scale)))
    write_report(analysis, context, folder)
    file = folder / published.file
    if not file.exists():
        atomic_write(file, labels.to_csv(index=False, lineterminator="\r\n").encode())
    return analysis


def findings(study: str, analysis: Analysis) -> list[str]:
    """Return the findings of a case study as sentences, with the figures of its analysis."""
    rows: dict[tuple[str, ...], ResultRow] = {
        (row["statistic"], row["rater_a"], row["rater_b"], row["subset"], row["at"]): row
        for row in analysis.rows
    }
    fields: dict[str, object] = {
        name: rows[tuple(key)]["estimate"] for name, key in PUBLISHED[study].figures.items()
    }
    verdicts = [verdict["verdict"] for verdict in analysis.verdicts]  # codes, one for each grader
    fields |= {f"n_{code}": verdicts.count(code) for code in set(verdicts)}
    fields["graders"] = len(verdicts)
    return written("demo.dices" if study == "dices" else "demo.llmbar", **fields).splitlines()


DEMOS = ("pairs", "stance", "items")
LEXICAL = "baseline:lexical"
SEED, STANCE_SEED, ITEMS_SEED = 7, 11, 5  # of the samples
PRICES = {
    "synthetic:grader-strong": 0.012,
    "synthetic:grader-shifted": 0.0015,
    "synthetic:grader-steady": 0.008,
    "synthetic:grader-one-sided": 0.0006,
    "synthetic:grader-wavering": 0.002,
}
"""Invented prices in US dollars per grade of the synthetic graders."""
_GRADED_RUBRICS = {"pairs": None, "stance": ["stance"]}
"""By demo, the rubrics that have cue words for the lexical grader; None for all."""
_ITEMS_JUDGE = "synthetic_judge"  # the column with a judge's labels in the demo of items
_STEPS = 4  # of `make_demo`, for its progress bar


def default_folder(name: str) -> Path:
    """Return the default folder of a demo.

    >>> default_folder("pairs").name, default_folder("stance").name
    ('demo-study', 'demo-study-stance')
    """
    return Path("demo-study" if name == DEMOS[0] else f"demo-study-{name}")


def is_demo(folder: Path) -> bool:
    """Return True if this folder holds a demo study."""
    try:
        settings = tomllib.loads((folder / "study.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return settings.get("synthetic") is True


def demo_plan(study: str, folder: Path) -> tuple[StudyPlan, dict[str, object]]:
    """Return the plan of a demo in a folder, and the settings of its analysis."""
    from evenhand.rubrics import load_rubric
    from evenhand.study.creation import StudyPlan, usual_rubrics
    from evenhand.study.prompts.items import item_columns, make_items
    from evenhand.study.tables.formats import read_table

    common: dict[str, Any] = {
        "raters_per_unit": 4,  # one more than there are synthetic annotators: the user can label
        "synthetic": True,
        "name": f"{folder.name} (synthetic demo)",
    }
    if study == "pairs":
        leanings = table_of("evenhand.data", "demo_leanings.toml")
        pairs, rubrics = _shipped("demo_pairs.csv"), usual_rubrics(propositions=False)
        plan = StudyPlan(pairs=pairs, rubrics=rubrics, sample=250, seed=SEED, **common)
        return plan, {"leanings": leanings}
    if study == "items":
        path, rubrics = _shipped("demo_items.csv"), [load_rubric("faithfulness")]
        table = read_table(path)
        items = make_items(table, item_columns(table, path.name, judge=_ITEMS_JUDGE), path.name)
        return StudyPlan(items=items, rubrics=rubrics, sample=200, seed=ITEMS_SEED, **common), {}
    reworded = load_rubric(_shipped("demo_stance_reworded.toml"))
    plan = StudyPlan(
        propositions=_shipped("demo_propositions.csv"), wordings=_shipped("demo_wordings.csv"),
        repeats=2, rubrics=[*usual_rubrics(propositions=True), reworded],
        sample=40,  # prompts; with four subjects 160 responses
        stratify=("leaning", "proposition"), seed=STANCE_SEED, **common,
    )  # fmt: skip
    return plan, {"groups": ["leaning"]}


def _shipped(name: str) -> Path:
    """Return the path of a shipped data file."""
    return Path(str(files("evenhand.data") / name))


def make_demo(study: str, folder: Path, progress: Progress) -> None:
    """Make a demo study, completely or not at all. Raises InputError where the folder exists."""
    from evenhand.graders import GradingOptions, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import unused_folder
    from evenhand.study.lead.imports import import_ratings
    from evenhand.study.prompts.items import judge_ratings
    from evenhand.study.settings.study_toml import change_config

    def shipped(table: str) -> pd.DataFrame:
        return pd.read_parquet(_shipped(f"demo_{study}_{table}.parquet"))

    plan, analysis_settings = demo_plan(study, folder)
    with TemporaryDirectory(dir=unused_folder(folder).parent, prefix=f".{folder.name}.") as scratch:
        new_folder = Path(scratch) / "study"
        progress(0, _STEPS, "sampling prompts")
        create_study(new_folder, plan)
        change_config(new_folder, {"analysis": analysis_settings})
        with open_study(new_folder) as demo_study:
            if plan.items is None:
                progress(1, _STEPS, "adding synthetic responses")
                demo_study.store.add_responses(shipped("responses"))
            else:
                progress(1, _STEPS, "adding the judge's labels")
                file = "demo_items.csv"
                labels = judge_ratings(plan.items, plan.rubrics[0], _ITEMS_JUDGE, file)
                import_ratings(demo_study, labels, file)
            progress(2, _STEPS, "adding synthetic ratings")
            import_ratings(demo_study, shipped("ratings"), "synthetic ratings", cost_usd=PRICES)
            if study in _GRADED_RUBRICS:
                progress(3, _STEPS, f"grading with {LEXICAL}")
                options = GradingOptions(scope="all", rubrics=_GRADED_RUBRICS[study])
                grade(demo_study, [LEXICAL], options)
        os.replace(new_folder, folder)
        progress(_STEPS, _STEPS, "done")
