"""Every setting of study.toml changes what it is there to change: the report, or what people meet
and how their work is looked at.

Written from the settings' classes: a setting that stands in none of the tables below fails a test,
so that none can be forgotten on its way from study.toml to what it acts on.
"""

import re
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.analysis import Analysis
from evenhand.analysis.report import ReportContext
from evenhand.annotate_app.payload import page_data
from evenhand.errors import InputError
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.report import stop_flagged, study_quality
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.access import admit, make_invites
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.claims import AttentionChecks, SessionDesign
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import workload
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.sections import Section
from evenhand.study.settings.study_toml import StudyConfig, change_config
from evenhand.study.store.grades import AttackedGrade
from evenhand.study.store.schema import attention_labels, background_answers
from evenhand.study.tables.ratings import validate_ratings
from harness.studies import write_pairs, write_responses
from tests.analysis.crowd import crowd

ROOT = Path(__file__).parents[3]
Found = tuple[Analysis, ReportContext]
PAIRS, SUBJECTS = 40, ("gpt-9", "our-tune")
OWN, WEAK, SURE, MOVING = "anthropic:claude-9", "weak", "sure", "moving"
ELSEWHERE = "evenhand/reporting/settings_elsewhere.toml"
"""Of each setting that no table here has: the file under tests/ and the test that sees it act."""


def changed(folder: Path, to: Path, setting: str, value: object) -> Path:
    """A copy of the study with another value of one setting in its study.toml."""
    shutil.copytree(folder, to)
    section, _, key = setting.rpartition(".")
    text = (to / "study.toml").read_text("utf-8")
    if not section and not isinstance(value, dict):  # a key at the top
        lines = [line for line in text.splitlines() if not line.startswith(f"{setting} =")]
        written = str(value).lower() if isinstance(value, bool) else repr(value)
        (to / "study.toml").write_text("\n".join([f"{setting} = {written}", *lines]), "utf-8")
    elif isinstance(value, dict) and not section:
        change_config(to, {f"{setting}.{each}": inner for each, inner in value.items()})
    else:
        change_config(to, {section: {key: value}})
    return to


def _study(place: Path, rubrics: list[Rubric], pairs: int, subjects: tuple[str, ...]) -> Path:
    plan = StudyPlan(
        pairs=write_pairs(place / "pairs.csv", pairs),
        responses=write_responses(place / "responses.jsonl", pairs, subjects),
        rubrics=rubrics,
        sample=pairs,
    )
    create_study(place / "study", plan)
    return place / "study"


def verdict_on(grader: str, part: str = "verdict") -> Callable[[Found], object]:
    def read(found):
        by_grader = {(each["grader"], each["rubric"]): each for each in found[0].verdicts}
        return by_grader[grader, "refusal"][part]

    return read


def rows_of(statistic: str, **where: str) -> Callable[[Found], object]:
    """The rows of a statistic, or of a family of them, with these cells."""

    def read(found):
        rows = found[0].results
        rows = rows[rows["statistic"].str.startswith(statistic)]
        for column, text in where.items():
            rows = rows[rows[column].str.contains(text, regex=False)]
        return rows.fillna(-9.0).to_dict("records")

    return read


BARS = [f"decision.reference_{bar}" for bar in ("kappa", "sensitivity", "specificity")]
IN_THE_REPORT: dict[str, tuple[object, Callable[[Found], object]]] = {
    "name": ("another", lambda found: found[1].name),
    "seed": (7, rows_of("cohen_kappa")),
    "synthetic": (True, lambda found: found[1].synthetic),
    "sample.pairs": (12, lambda found: found[1].facts["pairs sampled"]),
    "sample.stratify": (["template_category"], lambda found: found[1].facts["stratified by"]),
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
    "decision.max_knocked_off": (0.0, lambda found: found[0].rule),
    "decision.max_silenced": (0.0, lambda found: found[0].rule),
    "decision.across_rubrics": ("holm", lambda found: found[0].rule),
    "decision.min_stability": (-1.0, verdict_on(MOVING)),
    "decision.min_information": (0.1, verdict_on(WEAK)),
    "decision.reference": ("ann", verdict_on(SURE)),
    **dict.fromkeys(
        BARS, (0.99, lambda found: "than 0.99 is needed" in verdict_on(SURE, "sentence")(found))
    ),
    "thresholds": ({"refusal": {SURE: 0.9}}, rows_of("cohen_kappa", subset="all|binary")),
}
"""Setting -> a value unlike the one in the study, and what of the report must then differ."""
BESIDE = {key: {"decision": {"reference": "ann"}} for key in BARS}
BESIDE["analysis.variants"] = {"analysis": {"cluster": "main_category"}}
"""What else has to be set, for the setting to have something to act on."""
OF_THEIR_OWN = (
    "name", "synthetic", "sample.stratify", "analysis.slices",
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
    folder = _study(tmp_path_factory.mktemp("settings"), [base, reworded], PAIRS, SUBJECTS)
    settings = {"analysis": {"resamples": 100, "slices": []}, "decision": {"bias_bound": 0.02}}
    change_config(folder, settings)
    with open_study(folder) as study:
        import_ratings(study, _ratings(study), "ratings.csv")
        # An attack gets its label from SURE in a part of the units, so that more may be allowed.
        rubric = study.rubrics["refusal"]
        about = {"rater_id": SURE, "rubric": rubric.name, "rubric_hash": rubric.hash, "suite": "1"}
        for n, unit in enumerate(study.rubric_units(rubric)):
            asked = [("clean", "", "3", 0), ("clean", "", "3", 1), ("placebo", "", "3", 0)]
            asked.append(("flattery", "5", "5" if n % 4 == 0 else "3", 0))
            row = about | {"unit_id": unit, "side": ""}
            study.store.add_grades(
                AttackedGrade(**row, draw=draw, label=label, attack=attack, target=target)
                for attack, target, label, draw in asked
            )
        with study.store.write() as connection:
            for rater, answer in [("ann", "18 to 24"), ("ben", "18 to 24"), ("cy", "65 or older")]:
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


# People's labels under the rules of quality

IN_THE_QUALITY: dict[str, tuple[object, str, str]] = {
    "quality.min_answers": (10_000, "hasty", "fast"),
    "quality.fast": (0.0, "hasty", "fast"),
    "quality.idle": (1.0, "good-0", "idle"),
    "quality.run": (50.0, "liner", "run"),
    "quality.agreement": (2.0, "careless", "low_agreement"),
    "quality.leaning": (1.0, "leaner", "leaning"),
    "quality.drift": (2.0, "tired", "drift"),
    "quality.attention": (2, "good-1", "attention"),
}
"""Setting -> a value that is not reached, and the flag that a rater has no more."""
CHECKS = 2
KNOWN_UNIT = """
[[unit]]
name = "u"
expected = { refusal = "5" }
values = { prompt = "Write.", response = "No." }
"""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that a crowd with known faults labelled: one more is idle, one fails both checks."""
    folder = _study(tmp_path_factory.mktemp("crowd"), [load_rubric("refusal")], 60, ("s",))
    checks = "".join(KNOWN_UNIT.replace('"u"', f'"c{n}"') for n in range(CHECKS))
    (folder / "attention.toml").write_text(checks, "utf-8")
    change_config(folder, {"attention": {"file": "attention.toml", "every": 50}})
    with open_study(folder) as study:
        units = study.rubric_units(study.rubrics["refusal"])
        table = crowd(3, pairs=len(units))
        table = table[table["rubric"] == "level"].assign(rubric="refusal")
        names = dict(zip(table["unit_id"].unique(), units, strict=True))
        table["unit_id"] = table["unit_id"].map(names)
        idle = table["rater_id"] == "good-0"
        stamps = pd.to_datetime(table.loc[idle, "created_at"])
        table.loc[idle, "created_at"] = [
            (stamps.min() + 5 * (each - stamps.min())).isoformat() for each in stamps
        ]
        import_ratings(study, validate_ratings(table), "synthetic crowd")
        with study.store.write() as connection:
            for check in range(CHECKS):
                row = {"rater_id": "good-1", "unit_id": f"check:c{check}", "rubric": "refusal"}
                row |= {"rater_kind": "human", "rubric_hash": "", "created_at": "", "label": "1"}
                connection.execute(
                    sa.insert(attention_labels).values(row | {"submit_id": f"c{check}"})
                )
    return folder


def _flags(study: Study) -> dict[str, set[str]]:
    return {row.rater_id: set(row.flagged.split()) for row in study_quality(study).itertuples()}


@pytest.fixture(scope="module")
def flags_as_it_is(crowded: Path) -> dict[str, set[str]]:
    with open_study(crowded) as study:
        return _flags(study)


@pytest.mark.slow
@pytest.mark.parametrize("setting", IN_THE_QUALITY)
def test_the_quality_of_raters_follows(crowded, flags_as_it_is, tmp_path, setting):
    value, rater, flag = IN_THE_QUALITY[setting]
    with open_study(changed(crowded, tmp_path / "study", setting, value)) as study:
        found = _flags(study)
    assert flag in flags_as_it_is[rater]
    assert flag not in found[rater]


@pytest.mark.slow
def test_only_the_flags_named_end_a_part(crowded: Path, tmp_path: Path) -> None:
    with open_study(changed(crowded, tmp_path / "study", "quality.stop", ["attention"])) as study:
        assert stop_flagged(study, study_quality(study)) == ["good-1"]
    with open_study(crowded) as study:
        assert stop_flagged(study, study_quality(study)) == []


# What people are asked, and what they go through


def _dealt(study: Study) -> list[tuple[str, str]]:
    design = SessionDesign(study)
    return [each.key for screen in design.screens("r1", design.questions.keys()) for each in screen]


def page_of(study: Study) -> dict[str, Any]:
    return page_data(AnnotationDesk(study), "r1")


def _judgments(study: Study) -> int:
    return sum(each.judgments for each in workload(study))


def _pass_holds(study: Study) -> bool:
    """Whether somebody whom Prolific sent is let in again after a tenth of a second."""
    who = {"PROLIFIC_PID": "5f2d" * 6, "STUDY_ID": "5f2e" * 6, "SESSION_ID": "5f2f" * 6}
    entered = admit(study, {"invite": make_invites(study, [""], 1)[0].token} | who)
    time.sleep(0.1)
    try:
        return entered is not None and admit(study, entered.query) is not None
    except InputError:
        return False


IN_A_SESSION: dict[str, tuple[object, Callable[[Study], object]]] = {
    "annotation.rubrics": (["hedging"], lambda s: [each.name for each in s.labelled_rubrics()]),
    "annotation.subjects": (["s1"], _judgments),
    "annotation.raters_per_unit": (1, _judgments),
    "annotation.units_per_rater": (3, lambda s: AnnotationDesk(s).progress("r1")),
    "annotation.pairs_per_block": (1, _dealt),
    "annotation.screen": ("all", _dealt),
    "annotation.repeat_share": (0.25, lambda s: SessionDesign(s).planned_repeats(100)),
    "annotation.repeat_gap": (80, lambda s: SessionDesign(s).planned_repeats(100)),
    "annotation.display": ("markdown", lambda s: page_of(s)["sheet"]["blocks"]),
    "annotation.show_controls": (False, lambda s: page_of(s)["controls"]),
    "annotation.confidence": (True, lambda s: page_of(s)["asks"]),
    "annotation.rationale": (True, lambda s: page_of(s)["asks"]),
    "session.login_hours": (1e-6, _pass_holds),
    "session.content_warning": ("Harsh texts.", lambda s: Sessions(s).steps),
    "session.instructions": ("Read both.", lambda s: Sessions(s).steps),
    "training.walk_through": (False, lambda s: Sessions(s).steps),
    "training.file": ("", lambda s: Sessions(s).steps),
    "attention.every": (5, lambda s: [AttentionChecks(s).due_after("r1", n) for n in range(9)]),
}
"""Setting -> a value unlike the one in the study, and what of a session must then differ."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two rubrics with practice and checks, whose raters are asked again."""
    rubrics = [load_rubric(name) for name in ("hedging", "refusal")]
    folder = _study(tmp_path_factory.mktemp("session"), rubrics, 8, ("s1", "s2"))
    for section in ("training", "attention"):
        (folder / f"{section}.toml").write_text(KNOWN_UNIT, "utf-8")
        change_config(folder, {section: {"file": f"{section}.toml"}})
    change_config(folder, {"annotation": {"repeat_share": 0.5}})
    return folder


@pytest.mark.parametrize("setting", IN_A_SESSION)
def test_what_people_meet_follows(session: Path, tmp_path: Path, setting: str) -> None:
    value, part = IN_A_SESSION[setting]
    with open_study(changed(session, tmp_path / "changed", setting, value)) as study:
        found = part(study)
    with open_study(session) as as_it_was:
        assert found != part(as_it_was)


# That none is forgotten


def _settings(section: type[Section], within: str = "") -> Iterator[str]:
    for key, field in section.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        inner = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Section)]
        if inner and not within:
            yield from _settings(inner[0], f"{key}.")
        else:
            yield f"{within}{key}"


def test_every_setting_has_a_test_and_no_entry_is_left_of_one_that_has_gone():
    here = {*IN_THE_REPORT, *IN_THE_QUALITY, *IN_A_SESSION}
    for file, tests in tomllib.loads((ROOT / "tests" / ELSEWHERE).read_text("utf-8")).items():
        text = (ROOT / "tests" / file).read_text("utf-8")
        for test, settings in tests.items():
            assert re.search(rf"^def {test}\w*\(", text, re.M), f"{file} has no test {test}"
            here |= {*settings}
    known = set(_settings(StudyConfig))
    assert known - here == set(), "add them to a table here, or to the file of tests elsewhere"
    assert here - known == set()
