"""The page on study.toml is what the settings' classes say."""

from __future__ import annotations

from pathlib import Path

from evenhand.study.settings.page import page_with_table

PAGE = Path(__file__).parents[3] / "docs" / "study-settings.md"


def test_the_table_is_written_from_the_settings() -> None:
    page = PAGE.read_text("utf-8")
    assert page == page_with_table(page), (
        "run: python -m evenhand.study.settings.page docs/study-settings.md"
    )
    assert "| `[analysis] margin` | how far below" in page
