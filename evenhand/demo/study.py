"""The demo study: shipped pairs, synthetic responses, synthetic raters, the real lexical grader."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.demo.seeds import DEMO_SEED

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.graders.running.run import Progress
    from evenhand.study import Study

LEXICAL = "baseline:lexical"
SAMPLE = 250
STEPS = 4


def make_demo(folder: Path, progress: Progress) -> None:
    """Make the demo study: whole, or not at all. Raises InputError where the folder is taken."""
    from evenhand.demo.bank import leanings
    from evenhand.graders import GradingOptions, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan, built_whole, new_folder, usual_rubrics
    from evenhand.study.settings.study_toml import change_config

    rubrics = usual_rubrics(propositions=False)
    with (
        built_whole(new_folder(folder)) as building,
        as_file(files("evenhand.data") / "demo_pairs.csv") as pairs,
    ):
        building.rmdir()  # create_study makes it
        progress(0, STEPS, "sampling pairs")
        plan = StudyPlan(
            pairs=pairs,
            rubrics=rubrics,
            sample=SAMPLE,
            seed=DEMO_SEED,
            # One place more than there are synthetic annotators, so that a visitor can label too.
            raters_per_unit=4,
            synthetic=True,
            name=f"{folder.name} (synthetic demo)",
        )
        create_study(building, plan)
        change_config(building, {"analysis": {"leanings": leanings()}})
        with open_study(building) as study:
            progress(1, STEPS, "writing synthetic responses")
            truth = _respond(study)
            progress(2, STEPS, "labelling by synthetic raters")
            _rate(study, truth)
            progress(3, STEPS, f"grading with {LEXICAL}")
            grade(study, [LEXICAL], GradingOptions(scope="all"))
        progress(STEPS, STEPS, "done")


def _respond(study: Study) -> pd.DataFrame:
    """Add the synthetic subjects' responses to every pair; return the truth about them."""
    from evenhand.demo.responses import demo_responses

    made = demo_responses(study.store.pairs(), DEMO_SEED)
    study.store.add_responses(made.responses)
    return made.truth


def _rate(study: Study, truth: pd.DataFrame) -> None:
    """Let the synthetic people rate the sample, and the graders everything."""
    from evenhand.demo.raters import ANNOTATORS, GRADERS, PRICES, simulate_ratings
    from evenhand.study.lead.imports import import_ratings

    sampled = truth[truth["unit_id"].isin(set(study.units("sample")["unit_id"]))]
    for raters, units in ((ANNOTATORS, sampled), (GRADERS, truth)):
        ratings = simulate_ratings(raters, units, study.rubrics, DEMO_SEED)
        import_ratings(study, ratings, "synthetic ratings", PRICES)
