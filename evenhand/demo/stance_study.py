"""The stance demo: shipped propositions, synthetic responses and raters, a real lexical grader."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.graders.running.run import Progress
    from evenhand.study import Study

SEED = 11
SAMPLE = 40
"""Prompts that people label; with four subjects 160 responses."""
REPEATS = 2
STEPS = 4


def make_stance_demo(folder: Path, progress: Progress) -> None:
    """Make the demo study: whole, or not at all. Raises InputError where the folder is taken."""
    from evenhand.graders import GradingOptions, grade
    from evenhand.rubrics import load_rubric
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan, built_whole, new_folder, usual_rubrics
    from evenhand.study.settings.study_toml import change_config

    data = files("evenhand.data")
    with (
        built_whole(new_folder(folder)) as building,
        as_file(data / "demo_propositions.csv") as propositions,
        as_file(data / "demo_wordings.csv") as wordings,
        as_file(data / "demo_stance_reworded.toml") as reworded,
    ):
        building.rmdir()  # create_study makes it
        progress(0, STEPS, "sampling prompts")
        plan = StudyPlan(
            propositions=propositions,
            wordings=wordings,
            repeats=REPEATS,
            rubrics=[*usual_rubrics(propositions=True), load_rubric(reworded)],
            sample=SAMPLE,
            stratify=("leaning", "proposition"),
            seed=SEED,
            raters_per_unit=4,  # one place more than synthetic annotators, for a visitor
            synthetic=True,
            name=f"{folder.name} (synthetic demo)",
        )
        create_study(building, plan)
        change_config(building, {"analysis": {"groups": ["leaning"]}})
        with open_study(building) as study:
            progress(1, STEPS, "writing synthetic responses, labelling by synthetic raters")
            _respond_and_rate(study)
            progress(2, STEPS, "grading with baseline:lexical")
            grade(study, ["baseline:lexical"], GradingOptions(scope="all", rubrics=["stance"]))
        progress(STEPS, STEPS, "done")


def _respond_and_rate(study: Study) -> None:
    from evenhand.demo.stance_raters import PRICES, stance_ratings
    from evenhand.demo.stance_responses import demo_answers
    from evenhand.study.lead.imports import import_ratings

    responses, truth = demo_answers(study.store.pairs(), SEED)
    study.store.add_responses(responses)
    sampled = set(study.units("sample")["unit_id"])
    side = truth.merge(study.units("all"), on="unit_id", how="left")["leaning"]
    ratings = stance_ratings(truth, sampled, side, study.rubrics, SEED)
    import_ratings(study, ratings, "synthetic ratings", PRICES)
