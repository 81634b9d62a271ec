"""The demo studies: shipped prompts, synthetic responses and ratings, a real lexical grader.

Everything synthetic in them was made by a program from a seed and is shipped as tables
(`data/README.md`), so that a demo is the same in every version.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.graders.running.run import Progress
    from evenhand.study.creation import StudyPlan

DEMOS = ("pairs", "stance", "items")
LEXICAL = "baseline:lexical"
SEED, STANCE_SEED, ITEMS_SEED = 7, 11, 5
PRICES = {
    "synthetic:grader-strong": 0.012,
    "synthetic:grader-shifted": 0.0015,
    "synthetic:grader-steady": 0.008,
    "synthetic:grader-one-sided": 0.0006,
    "synthetic:grader-wavering": 0.002,
}
"""US dollars for each grade; as synthetic as the graders."""
_GRADED = {"pairs": None, "stance": ["stance"]}
"""The rubrics that the lexical grader grades; None for all. It has no cues for those of others."""
_ITEMS_JUDGE = "synthetic_judge"
_STEPS = 4


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


@contextmanager
def planned(study: str, folder: Path) -> Iterator[tuple[StudyPlan, dict[str, object]]]:
    """Yield the plan of a demo in a folder, and the settings of its analysis."""
    from evenhand.rubrics import load_rubric
    from evenhand.study.creation import StudyPlan, usual_rubrics
    from evenhand.study.prompts.items import item_columns, make_items
    from evenhand.study.tables.formats import read_table

    data = files("evenhand.data")
    both: dict[str, Any] = {
        "raters_per_unit": 4,  # one more than synthetic annotators: a visitor can label too
        "synthetic": True,
        "name": f"{folder.name} (synthetic demo)",
    }
    if study == "pairs":
        leanings = tomllib.loads((data / "demo_leanings.toml").read_text("utf-8"))
        rubrics = usual_rubrics(propositions=False)
        with as_file(data / "demo_pairs.csv") as pairs:
            plan = StudyPlan(pairs=pairs, rubrics=rubrics, sample=250, seed=SEED, **both)
            yield plan, {"leanings": leanings}
        return
    if study == "items":
        with as_file(data / "demo_items.csv") as path:
            frame = read_table(path)
        items = make_items(frame, item_columns(frame, path.name, judge=_ITEMS_JUDGE), path.name)
        rubrics = [load_rubric("faithfulness")]
        yield StudyPlan(items=items, rubrics=rubrics, sample=200, seed=ITEMS_SEED, **both), {}
        return
    with (
        as_file(data / "demo_propositions.csv") as propositions,
        as_file(data / "demo_wordings.csv") as wordings,
        as_file(data / "demo_stance_reworded.toml") as reworded,
    ):
        plan = StudyPlan(
            propositions=propositions,
            wordings=wordings,
            repeats=2,
            rubrics=[*usual_rubrics(propositions=True), load_rubric(reworded)],
            sample=40,  # prompts; with four subjects 160 responses
            stratify=("leaning", "proposition"),
            seed=STANCE_SEED,
            **both,
        )
        yield plan, {"groups": ["leaning"]}


def make_demo(study: str, folder: Path, progress: Progress) -> None:
    """Make a demo study: whole, or not at all. Raises InputError where the folder is taken."""
    import pandas as pd

    from evenhand.graders import GradingOptions, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import new_folder
    from evenhand.study.lead.imports import import_ratings
    from evenhand.study.prompts.items import judge_ratings
    from evenhand.study.settings.study_toml import change_config
    from evenhand.study.tables.files import scratch_folder

    def shipped(what: str) -> pd.DataFrame:
        with as_file(files("evenhand.data") / f"demo_{study}_{what}.parquet") as path:
            return pd.read_parquet(path)

    with (
        scratch_folder(new_folder(folder).parent, f".{folder.name}.") as scratch,
        planned(study, folder) as (plan, analysis),
    ):
        building = scratch / "study"
        progress(0, _STEPS, "sampling prompts")
        create_study(building, plan)
        change_config(building, {"analysis": analysis})
        with open_study(building) as made:
            if plan.items is None:
                progress(1, _STEPS, "adding synthetic responses")
                made.store.add_responses(shipped("responses"))
            else:
                progress(1, _STEPS, "adding the judge's labels")
                judged = judge_ratings(plan.items, plan.rubrics[0], _ITEMS_JUDGE, "demo_items.csv")
                import_ratings(made, judged, "demo_items.csv")
            progress(2, _STEPS, "adding synthetic ratings")
            import_ratings(made, shipped("ratings"), "synthetic ratings", PRICES)
            if study in _GRADED:
                progress(3, _STEPS, f"grading with {LEXICAL}")
                grade(made, [LEXICAL], GradingOptions(scope="all", rubrics=_GRADED[study]))
        os.replace(building, folder)
        progress(_STEPS, _STEPS, "done")
