"""A rubric is data: under another name and title a shipped one is shown, graded and analysed just
as it is.
"""

import json
import re
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import page_data
from evenhand.reporting.analysing import analyse_study
from evenhand.rubrics import Rubric, load_rubric, shipped_rubrics
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import meta
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import write_pairs, write_responses
from tests.graders.grading import grade

SHIPPED = sorted(shipped_rubrics())
OTHER_NAMES = {name: f"other-{n}" for n, name in enumerate(SHIPPED)}
"""In the same order, for what is sorted by name."""
STATEMENTS = "id,text,group\n" + "".join(f"t{n},Town {n} needs a park.,left\n" for n in range(20))


def renamed(name: str, folder: Path) -> Rubric:
    """The shipped rubric with nothing changed in its file but name and title."""
    text = (files("evenhand.rubrics") / f"{name}.toml").read_text("utf-8")
    for field, other in (("name", OTHER_NAMES[name]), ("title", f"Titled {name.upper()}")):
        line = f'{field} = "{other}"'
        text, changed = re.subn(f'^{field} = ".*"$', line, text, count=1, flags=re.M)
        assert changed == 1
    path = folder / f"{OTHER_NAMES[name]}.toml"
    path.write_text(text, "utf-8")
    return load_rubric(path)


def made(home: Path, rubrics: list[Rubric]) -> Study:
    """A study of pairs, or of propositions where the rubrics ask about statements."""
    home.mkdir()
    if "statement" not in rubrics[0].variables:
        prompts = {"pairs": write_pairs(home / "pairs.csv", 20)}
        prompts["responses"] = write_responses(home / "responses.jsonl", 20)
    else:
        prompts = {"propositions": home / "propositions.csv"}
        prompts["propositions"].write_text(STATEMENTS, "utf-8")
    create_study(home / "study", StudyPlan(rubrics=rubrics, **prompts))
    change_config(home / "study", {"analysis": {"resamples": 100}})
    study = open_study(home / "study")
    with study.store.write() as connection:  # what comes when follows from the study's secret
        connection.execute(sa.update(meta).where(meta.c.key == "secret").values(value="0" * 64))
    if "propositions" in prompts:
        rows = study.store.pairs()[["pair_id"]].assign(subject="s1", side="a", response="I agree.")
        study.store.add_responses(rows)
    return study


def labels(study: Study) -> pd.DataFrame:
    """Two people and a grader, who answer at random; the same in every study."""
    rng = np.random.default_rng(3)
    rows = [
        {"unit_id": unit, "rubric": name, "rater_id": rater, "rater_kind": kind}
        | {"label": str(rng.choice(rubric.categories)), "rubric_hash": rubric.hash}
        for name, rubric in sorted(study.rubrics.items())
        for unit in study.rubric_units(rubric)
        for rater, kind in (("ann", "human"), ("ben", "human"), ("dice", "model"))
    ]
    return validate_ratings(pd.DataFrame(rows))


def outcome(home: Path, rubrics: list[Rubric]) -> tuple[str, pd.DataFrame, pd.DataFrame]:
    """What an annotator sees first, the lexical grader's grades, the results."""
    with made(home, rubrics) as study:
        seen = json.dumps(page_data(AnnotationDesk(study), "ann")["sheet"])
        for rubric in rubrics:
            seen = seen.replace(rubric.title, "")
        import_ratings(study, labels(study), "test")
        grade(study, ["baseline:lexical"])
        ratings = study.ratings()
        grades = ratings.loc[ratings["rater_id"] == "baseline:lexical", ["rubric", "label"]]
        analysis, _ = analyse_study(study)
    return re.sub(r'"(id|task|wording)": "[^"]*"', "", seen), grades, analysis.results


@pytest.mark.slow
@pytest.mark.parametrize("propositions", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_no_part_knows_a_shipped_rubric(tmp_path: Path, propositions: bool) -> None:
    shipped = [load_rubric(name) for name in SHIPPED]
    assert len(shipped) == 4
    rubrics = [each for each in shipped if ("statement" in each.variables) == propositions]
    seen, grades, results = outcome(tmp_path / "shipped", rubrics)
    others = [renamed(rubric.name, tmp_path) for rubric in rubrics]
    seen_too, grades_too, results_too = outcome(tmp_path / "renamed", others)
    assert len(results) > 50
    assert seen_too == seen
    for table, too in ((grades, grades_too), (results, results_too)):
        again = table.replace({"rubric": OTHER_NAMES})
        pd.testing.assert_frame_equal(too.reset_index(drop=True), again.reset_index(drop=True))
