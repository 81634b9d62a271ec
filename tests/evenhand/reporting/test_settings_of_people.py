"""Every setting of study.toml about people changes what they meet, or how their work is looked at.

That none is forgotten is held in `test_settings_in_force`.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.annotate_app.payload import page_data
from evenhand.errors import InputError
from evenhand.reporting.report import stop_flagged, study_quality
from evenhand.rubrics import load_rubric
from evenhand.study import Study, create_study, open_study
from evenhand.study.access.admission import admit, make_invites
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.claims import AttentionChecks, SessionDesign
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.lead.progress import workload
from evenhand.study.session.sessions import Sessions
from evenhand.study.settings.study_toml import change_config
from evenhand.study.store.schema import attention_labels
from evenhand.study.tables.ratings import validate_ratings
from tests.analysis.crowd import crowd
from tests.conftest import write_pairs, write_responses
from tests.evenhand.reporting.settings_elsewhere import changed

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


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that a crowd with known faults labelled: one more is idle, one fails both checks."""
    place = tmp_path_factory.mktemp("crowd")
    pairs = 60
    plan = StudyPlan(
        pairs=write_pairs(place / "pairs.csv", pairs),
        responses=write_responses(place / "responses.jsonl", pairs, ("s",)),
        rubrics=[load_rubric("refusal")],
        sample=pairs,
    )
    folder = place / "study"
    create_study(folder, plan)
    checks = "".join(
        f'[[unit]]\nname = "c{n}"\nexpected = {{ refusal = "5" }}\n'
        'values = { prompt = "Write.", response = "Choose the last option." }\n'
        for n in range(CHECKS)
    )
    (folder / "attention.toml").write_text(checks, "utf-8")
    with (folder / "study.toml").open("a") as file:
        file.write('\n[attention]\nfile = "attention.toml"\nevery = 50\n')
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
    table = study_quality(study)
    return {row.rater_id: set(row.flagged.split()) for row in table.itertuples()}


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


def _asks(study: Study) -> dict[str, Any]:
    """What the annotator's page is told to ask beside the rubric's question."""
    return page_of(study)["asks"]


def _drawn(study: Study) -> list[bool]:
    """Which texts are drawn from their Markdown."""
    return [each["tree"] is not None for each in page_of(study)["sheet"]["blocks"]]


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
        return entered is not None and admit(study, entered.address) is not None
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
    "annotation.display": ("markdown", _drawn),
    "annotation.show_controls": (False, lambda s: page_of(s)["controls"]),
    "annotation.confidence": (True, _asks),
    "annotation.rationale": (True, _asks),
    "session.login_hours": (1e-6, _pass_holds),
    "session.content_warning": ("Harsh texts.", lambda s: Sessions(s).steps),
    "session.instructions": ("Read both.", lambda s: Sessions(s).steps),
    "training.walk_through": (False, lambda s: Sessions(s).steps),
    "training.file": ("", lambda s: Sessions(s).steps),
    "attention.every": (5, lambda s: [AttentionChecks(s).due_after("r1", n) for n in range(9)]),
}
"""Setting -> a value unlike the one in the study, and what of a session must then differ."""

KNOWN_UNITS = """
[[unit]]
name = "u"
expected = { refusal = "5" }
values = { prompt = "Write.", response = "No." }
"""


@pytest.fixture
def session(make_study) -> Path:
    """A study of two rubrics with practice and checks, whose raters are asked again."""
    rubrics = [load_rubric(name) for name in ("hedging", "refusal")]
    folder = make_study(rubrics=rubrics, pairs=8).folder
    for section in ("training", "attention"):
        (folder / f"{section}.toml").write_text(KNOWN_UNITS, "utf-8")
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
