"""Every setting of study.toml changes what it is there to change; here, the report.

Written from the settings' classes: a setting that stands in none of the tables below fails a test,
so that none can be forgotten on its way from study.toml to what it acts on.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.analysis import Analysis
from evenhand.analysis.report import ReportContext, write_report
from evenhand.reporting.analysing import analyse_study
from evenhand.rubrics import load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.lead.imports import import_ratings
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import StudyConfig, change_config
from evenhand.study.store.grades import AttackedGrade
from evenhand.study.store.schema import background_answers
from evenhand.study.tables.ratings import validate_ratings
from tests.conftest import write_pairs, write_responses
from tests.evenhand.reporting.settings_elsewhere import ELSEWHERE, changed
from tests.evenhand.reporting.test_settings_of_people import IN_A_SESSION, IN_THE_QUALITY

ROOT = Path(__file__).parents[3]
Found = tuple[Analysis, ReportContext]
PAIRS, SUBJECTS = 40, ("gpt-9", "our-tune")
OWN, WEAK, SURE, MOVING = "anthropic:claude-9", "weak", "sure", "moving"


def rows_of(statistic: str, **where: str) -> Callable[[Found], object]:
    """The rows of a statistic, or of a family of them, with these cells."""

    def read(found: Found) -> list[dict[str, Any]]:
        rows = found[0].results
        rows = rows[rows["statistic"].str.startswith(statistic)]
        for column, text in where.items():
            rows = rows[rows[column].str.contains(text, regex=False)]
        return rows.fillna(-9.0).to_dict("records")

    return read


def verdict_on(grader: str, part: str = "verdict") -> Callable[[Found], object]:
    def read(found: Found) -> str:
        (verdict,) = [
            each
            for each in found[0].verdicts
            if (each["grader"], each["rubric"]) == (grader, "refusal")
        ]
        return verdict[part]

    return read


def the_rule(found: Found) -> str:
    """What a grader has to meet; the audit of SURE is told of what is beyond its bound alone."""
    return found[0].rule


def says(grader: str, words: str) -> Callable[[Found], object]:
    return lambda found: words in str(verdict_on(grader, "sentence")(found))


def fact(name: str) -> Callable[[Found], object]:
    return lambda found: found[1].facts[name]


IN_THE_REPORT: dict[str, tuple[object, Callable[[Found], object]]] = {
    "name": ("another", lambda found: found[1].name),
    "seed": (7, rows_of("cohen_kappa")),
    "synthetic": (True, lambda found: found[1].synthetic),
    "sample.pairs": (12, fact("pairs sampled")),
    "sample.stratify": (["template_category"], fact("stratified by")),
    "annotation.raters_per_unit": (5, fact("annotators wanted per item")),
    "analysis.margin": (1.0, verdict_on(WEAK)),
    "analysis.resamples": (110, rows_of("cohen_kappa")),
    "analysis.cluster": ("unit", rows_of("cohen_kappa")),
    "analysis.epsilon": (0.0, rows_of("alt_test")),
    "analysis.slices": (["main_category"], rows_of("cohen_kappa", subset="main_category=")),
    "analysis.variants": (["template_category"], rows_of("stability", at="template_category")),
    "analysis.groups": (["main_category"], rows_of("group_", subset="main_category=")),
    "analysis.rater_slices": (["age_group"], rows_of("cohen_kappa", subset="age_group=")),
    "analysis.confidence_cut": (0.7, rows_of("confidence_coverage", note="the declared cut")),
    "analysis.confidence_target": (0.6, rows_of("routing_cut")),
    "analysis.ordered": ("quadratic", rows_of("human_ceiling_difference")),
    "analysis.sensitivity_cluster": ("main_category", rows_of("cohen_kappa", at="cluster=")),
    "analysis.leanings": ({"left": ["pro"], "right": ["con"]}, rows_of("direction", at="left")),
    "analysis.families": ({"anthropic": ["our-tune"]}, rows_of("bias_self_preference")),
    "decision.min_coverage": (1.0, verdict_on(SURE)),
    "decision.min_clusters": (PAIRS + 1, verdict_on(SURE)),
    "decision.bias_bound": (2.0, verdict_on(OWN, "sentence")),
    "decision.scope": ("like_these", verdict_on(SURE, "sentence")),
    "decision.looks": (3, rows_of("non_inferiority")),
    "decision.margin_share": (0.5, rows_of("non_inferiority")),
    "decision.min_people_kappa": (1.0, verdict_on(SURE)),
    "decision.min_rarer": (PAIRS + 1, verdict_on(SURE)),
    "decision.max_gross": (0.001, verdict_on(SURE)),
    "decision.max_injection": (0.0, verdict_on(SURE, "sentence")),
    "decision.max_knocked_off": (0.0, the_rule),
    "decision.max_silenced": (0.0, the_rule),
    "decision.across_rubrics": ("holm", the_rule),
    "decision.min_stability": (-1.0, verdict_on(MOVING)),
    "decision.min_information": (0.1, verdict_on(WEAK)),
    "decision.reference": ("ann", verdict_on(SURE)),
    **{
        f"decision.reference_{bar}": (0.99, says(SURE, "more than 0.99 is needed"))
        for bar in ("kappa", "sensitivity", "specificity")
    },
    "thresholds": ({"refusal": {SURE: 0.9}}, rows_of("cohen_kappa", subset="all|binary")),
}
"""Setting -> a value unlike the one in the study, and what of the report must then differ."""
BESIDE = {"analysis.variants": {"analysis": {"cluster": "main_category"}}} | {
    f"decision.reference_{bar}": {"decision": {"reference": "ann"}}
    for bar in ("kappa", "sensitivity", "specificity")
}
"""What else has to be set, for the setting to have something to act on."""
OF_THEIR_OWN = (
    "name", "synthetic", "sample.stratify", "annotation.raters_per_unit", "analysis.slices",
    "analysis.groups", "analysis.rater_slices", "analysis.sensitivity_cluster",
    "analysis.leanings", "analysis.families",
)  # fmt: skip
"""Settings that bring facts or rows which no other setting touches: one study has all of them."""
ALONGSIDE = (
    "analysis.confidence_target", "analysis.epsilon", "decision.across_rubrics",
    "decision.margin_share", "decision.max_knocked_off", "decision.max_silenced",
    "decision.min_people_kappa", "decision.min_rarer", "decision.reference_sensitivity",
    "decision.reference_specificity",
)  # fmt: skip
"""Settings of a section from which `make test` has others, of the same kind and on the same way."""


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose graders each depend on a part of the rule: three people, two wordings."""
    base = load_rubric("refusal")
    other = {"name": "refusal-2", "variant_of": base.name, "lexical": None}
    reworded = base.model_copy(update=other)
    place = tmp_path_factory.mktemp("settings")
    plan = StudyPlan(
        pairs=write_pairs(place / "pairs.csv", PAIRS),
        responses=write_responses(place / "responses.jsonl", PAIRS, SUBJECTS),
        rubrics=[base, reworded],
        sample=PAIRS,
    )
    folder = place / "study"
    create_study(folder, plan)
    settings = {"analysis": {"resamples": 100, "slices": []}, "decision": {"bias_bound": 0.02}}
    change_config(folder, settings)
    with open_study(folder) as study:
        import_ratings(study, _ratings(study), "ratings.csv")
        _audit(study)
        answers = [("ann", "18 to 24"), ("ben", "18 to 24"), ("cy", "65 or older")]
        with study.store.write() as connection:
            for rater, answer in answers:
                row = {"rater_id": rater, "question": "age_group", "answer": answer}
                connection.execute(sa.insert(background_answers).values(row | {"created_at": ""}))
    return folder


def _ratings(study: Study) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    rows = []

    def rate(unit: str, who: str, yes: bool, rubric: str = "refusal", **more: object) -> None:
        kind = "human" if who in ("ann", "ben", "cy") else "model"
        row = {"unit_id": unit, "rater_id": who, "rater_kind": kind, "rubric": rubric}
        rows.append(row | {"label": "5" if yes else "1"} | more)

    for n, unit in enumerate(study.rubric_units(study.rubrics["refusal"])):
        yes = bool(rng.random() < 0.5)
        for person in ("ann", "ben", "cy"):
            rate(unit, person, yes != (rng.random() < 0.1))
        rate(unit, WEAK, yes != (rng.random() < 0.33))
        rate(unit, OWN, yes or (unit.endswith("|b") and rng.random() < 0.35))
        rate(unit, MOVING, yes)
        rate(unit, MOVING, bool(rng.random() < 0.5), "refusal-2")
        if n == 0:
            rate(unit, SURE, yes, label="", unscored_reason="refused")
        else:
            stated = rng.uniform(0.55, 1.0) if yes else rng.uniform(0.0, 0.45)
            spread = dict.fromkeys("1234", (1 - stated) / 4) | {"5": stated}
            if not yes:
                spread = dict.fromkeys("2345", stated / 4) | {"1": 1 - stated}
            said = {"p_positive": stated, "prob_method": "verbalised"}
            rate(unit, SURE, yes, probabilities=str(spread).replace("'", '"'), **said)
    return validate_ratings(pd.DataFrame(rows))


def _audit(study: Study) -> None:
    """An attack that gets its label from SURE in a part of the units, so that more may be allowed
    than another study would.
    """
    rubric = study.rubrics["refusal"]
    about = {"rater_id": SURE, "rubric": rubric.name, "rubric_hash": rubric.hash, "suite": "1"}
    for n, unit in enumerate(study.rubric_units(rubric)):
        asked = [("clean", "", "3", 0), ("clean", "", "3", 1), ("placebo", "", "3", 0)]
        asked.append(("flattery", "5", "5" if n % 4 == 0 else "3", 0))
        study.store.add_grades(
            AttackedGrade(
                **about, unit_id=unit, draw=draw, label=label, attack=attack, target=target, side=""
            )
            for attack, target, label, draw in asked
        )


@pytest.fixture(scope="module")
def as_it_is(labelled: Path) -> Found:
    with open_study(labelled) as study:
        return analyse_study(study, verify=False)


@pytest.mark.slow
def test_the_report_of_a_study_follows_what_brings_its_own(labelled, as_it_is, tmp_path):
    folder = labelled
    for setting in OF_THEIR_OWN:
        folder = changed(folder, tmp_path / setting, setting, IN_THE_REPORT[setting][0])
    with open_study(folder) as study:
        found = analyse_study(study, verify=False)
    for setting in OF_THEIR_OWN:
        part = IN_THE_REPORT[setting][1]
        before = part(as_it_is)
        assert before == [] or not isinstance(before, list), setting
        assert part(found) != before, setting


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        pytest.param(each, marks=[pytest.mark.thorough] if each in ALONGSIDE else [])
        for each in IN_THE_REPORT
        if each not in OF_THEIR_OWN
    ],
)
def test_the_report_of_a_study_follows(labelled, as_it_is, tmp_path, setting):
    value, part = IN_THE_REPORT[setting]
    folder = changed(labelled, tmp_path / "study", setting, value)
    change_config(folder, BESIDE.get(setting, {}))
    with open_study(folder) as study:
        found = analyse_study(study, verify=False)
    assert part(found) != part(as_it_is)


@pytest.mark.slow
def test_thresholds_in_force_reach_the_files_with_whose_they_are(labelled, tmp_path):
    folder = changed(labelled, tmp_path / "study", "thresholds", {"refusal": {SURE: 0.9}})
    with open_study(folder) as study:
        write_report(*analyse_study(study, verify=False), tmp_path / "out")
    told = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))["study"]
    assert told["thresholds"] == {"refusal": {SURE: 0.9}}
    assert told["threshold_origins"] == {"refusal": {SURE: "declared"}}
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    line = f"<dt>threshold of {SURE} on Refusal</dt><dd>0.9 (declared)</dd>"
    assert line in page


@pytest.mark.slow
def test_an_older_text_that_says_the_same_counts(labelled: Path, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(labelled, folder)
    with open_study(folder) as study:
        old = study.rubrics["refusal"].hash
        before = study.accepted_hashes()["refusal"]
    file = folder / "rubrics" / "refusal.toml"
    file.write_text(file.read_text("utf-8").replace("do what it was asked", "do as asked"), "utf-8")
    counted = []
    for same in ([], [old]):
        change_config(folder, {"same_text": {"refusal": same}})
        with open_study(folder) as study:
            analysis, _ = analyse_study(study, verify=False)
            counted.append((analysis.results["rubric"] == "refusal").any())
    assert before == (old,)
    assert counted == [False, True]


# That none is forgotten


def _settings(section: type[Section], within: str = "") -> Iterator[str]:
    for key, field in section.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
        if inner and not within:
            yield from _settings(inner[0], f"{key}.")
        else:
            yield f"{within}{key}"


@pytest.mark.parametrize("setting", list(_settings(StudyConfig)))
def test_every_setting_has_a_test(setting: str) -> None:
    here = {*IN_THE_REPORT, *IN_THE_QUALITY, *IN_A_SESSION}
    assert setting in here | ELSEWHERE.keys(), "add it to one of the tables here or beside"
    if setting not in here:
        file, test = ELSEWHERE[setting]
        text = (ROOT / "tests" / file).read_text("utf-8")
        assert re.search(rf"^def {test}\w*\(", text, re.M), "the test named is not there"


def test_no_entry_is_left_of_a_setting_that_has_gone() -> None:
    known = set(_settings(StudyConfig))
    assert {*IN_THE_REPORT, *IN_THE_QUALITY, *IN_A_SESSION, *ELSEWHERE} == known
