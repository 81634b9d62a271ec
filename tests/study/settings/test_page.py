"""The page on study.toml is what the settings' classes say."""

from __future__ import annotations

from pathlib import Path

from evenhand.study.settings.analysis import AnalysisSettings
from evenhand.study.settings.page import page_with_table, settings_in_force
from evenhand.study.settings.session import SampleSettings
from evenhand.study.settings.study_toml import StudyConfig

PAGE = Path(__file__).parents[3] / "docs" / "study-settings.md"


def test_the_table_is_written_from_the_settings() -> None:
    page = PAGE.read_text("utf-8")
    assert page == page_with_table(page), (
        "run: python -m evenhand.study.settings.page docs/study-settings.md"
    )
    assert "| `[analysis] margin` | how far below" in page


def test_the_settings_in_force_are_those_of_the_study() -> None:
    config = StudyConfig(
        name="mine",
        seed=1,
        store="postgresql+psycopg://lead:secret@host/db",
        sample=SampleSettings(pairs=7, stratify=("topic",)),
        analysis=AnalysisSettings(margin=0.2),
    )
    found = {key: (value, says) for key, value, says in settings_in_force(config)}
    assert found["[analysis] margin"][0] == "0.2"
    assert found["[analysis] margin"][1].startswith("how far below")
    assert found["[sample] stratify"][0] == "topic"
    assert found["[training]"][0] == "none"
    assert found["store"][0] == "postgresql+psycopg"
    assert "secret" not in str(found)
    assert "`" not in str(found)
