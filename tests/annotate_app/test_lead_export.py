"""The lead's page of tables to take away: what the injection audit left, once there was one."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from evenhand.annotate_app.lead import export_page
from evenhand.annotate_app.lead.parts.counting import counted
from evenhand.reporting.exporting import as_csv, attacked_path, exported_attacked
from evenhand.study import Study, open_study
from evenhand.study.access.accounts import set_account
from evenhand.study.store.grades import AttackedGrade
from evenhand.study.tables.attacks import read_attacked

PASSWORD = "correct horse battery"
TITLE = "Answers of the injection audit"
HOSTILE = "=HYPERLINK(1)|secret-subject"


@pytest.fixture
def folder(make_study) -> Path:
    folder = make_study(2)
    with open_study(folder) as study:
        set_account(study.store, "ada", PASSWORD, "lead")
    return folder


def audit(study: Study) -> None:
    about = {"rater_id": "g", "rubric": "shorter", "unit_id": HOSTILE, "suite": "3-abc"}
    digest = study.rubrics["shorter"].hash
    study.store.add_grades(
        AttackedGrade(
            **about, rubric_hash=digest, attack=name, target="", side="", label="L", draw=draw
        )
        for name, draw in (("clean", 0), ("clean", 1), ("placebo", 0))
    )


def shown(folder: Path) -> list[str]:
    """The titles of the page's tables."""

    def script(folder: str, password: str) -> None:
        from evenhand.annotate_app import lead_entry
        from evenhand.annotate_app.lead.export_page import show_export
        from evenhand.study import open_study
        from evenhand.study.access.lead_login import log_in

        with open_study(folder) as study:
            lead_entry._admit(log_in(study.store, "ada", password))
            show_export(study)

    app = AppTest.from_function(script, args=(str(folder), PASSWORD), default_timeout=60).run()
    assert not app.exception
    return [each.proto.label for each in app.get("download_button")]


@pytest.mark.slow
def test_the_audits_answers_are_there_once_there_was_one(folder, tmp_path):
    assert "Ratings" in shown(folder)
    assert TITLE not in shown(folder)
    with open_study(folder) as study:
        audit(study)
        assert TITLE in shown(folder)
        content = counted(study, as_csv, exported_attacked)
        sidecar = export_page._sidecar(study, export_page._ATTACKED).decode()
    assert f"'{HOSTILE}".encode() in content  # as a spreadsheet would run it
    assert pd.read_csv(io.BytesIO(content))["attack"].tolist() == ["clean", "clean", "placebo"]
    file = attacked_path(tmp_path / "ratings.csv")
    file.write_bytes(content)
    assert set(read_attacked(file)["unit_id"]) == {HOSTILE}
    assert f'attacked = "{file.name}"' in sidecar
