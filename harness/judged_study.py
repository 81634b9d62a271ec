"""A synthetic study with something of everything that an export must carry.

`late` says 3 where people say 5, so only its probabilities can tell yes from no, and they do so at
another threshold; `partly` graded a part of the units, and all graders more than people labelled.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.reporting.load import from_study
from evenhand.reporting.selecting import calibrate, write_tuned_thresholds
from evenhand.rubrics import load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.claims import exclude
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.grades import GradeAttempt
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import write_pairs, write_responses

LATE, FINE, PARTLY = "late", "fine", "partly"
PEOPLE = ("ann", "ben", "cy", "dee")
SAMPLED, PAIRS = 40, 48
LEADS_WORDS = "told us of an illness"


def judged_study(place: Path) -> Path:
    """Make the study in a folder of `place`, without tuning, exclusions or interim analyses."""
    base = load_rubric("refusal")
    reworded = base.model_copy(
        update={"name": "refusal-2", "variant_of": base.name, "lexical": None}
    )
    plan = StudyPlan(
        pairs=write_pairs(place / "pairs.csv", PAIRS),
        responses=write_responses(place / "responses.jsonl", PAIRS),
        rubrics=[base, reworded],
        sample=SAMPLED,
    )
    folder = place / "study"
    create_study(folder, plan)
    change_config(
        folder,
        {
            "analysis": {"resamples": 100, "cluster": "prompt_a", "groups": ["template_category"]},
            "analysis.leanings": {"left": ["pro"], "right": ["con"]},
            "decision": {"min_rarer": 5, "looks": 4, "bias_bound": 0.5},
            "annotation": {"raters_per_unit": 5},
        },
    )
    with open_study(folder) as study:
        import_ratings(study, _ratings(study), "ratings.csv")
        study.store.add_grades(_paid(study))
    return folder


def tune_and_exclude(study: Study) -> None:
    """Apply tuned thresholds, and exclude an annotator for a reason that is not exported."""
    tuned = calibrate(from_study(study), "refusal")
    assert LATE in tuned.thresholds["refusal"]
    write_tuned_thresholds(study, tuned)
    exclude(study.store, "dee", LEADS_WORDS, "lead")


def _ratings(study: Study) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    sampled = set(study.rubric_units(study.rubrics["refusal"]))
    rows = []

    def rate(unit: str, who: str, label: str, rubric: str = "refusal", **more: object) -> None:
        kind = "human" if who in PEOPLE else "model"
        row = {"unit_id": unit, "rater_id": who, "rater_kind": kind, "rubric": rubric}
        rows.append(row | {"label": label} | more)

    for n, unit in enumerate(study.rubric_units(study.rubrics["refusal"], "all")):
        yes = bool(rng.random() < 0.5)
        for person in PEOPLE:
            if unit in sampled and (person != "cy" or n % 4):
                rate(unit, person, "5" if yes != (rng.random() < 0.08) else "1")
        stated = rng.uniform(0.2, 0.4) if yes else rng.uniform(0.0, 0.1)
        rate(unit, LATE, "3" if yes else "2", p_positive=stated, prob_method="verbalised")
        rate(unit, FINE, "5" if yes != (rng.random() < 0.04) else "1")
        rate(unit, FINE, "5" if yes != (rng.random() < 0.2) else "1", "refusal-2")
        if n < 40:
            rate(unit, PARTLY, "5" if yes != (rng.random() < 0.1) else "1")
    return validate_ratings(pd.DataFrame(rows))


def _paid(study: Study) -> list[GradeAttempt]:
    """Return a grader whose price is known."""
    rubric = study.rubrics["refusal"]
    return [
        GradeAttempt(
            unit_id=unit,
            rubric=rubric.name,
            rater_id="paid",
            label="15"[n % 2],
            rubric_hash=rubric.hash,
            provenance={"cost_usd": 0.002, "tokens": {"input": 100, "output": 1, "cached": 0}},
        )
        for n, unit in enumerate(study.rubric_units(rubric))
    ]
