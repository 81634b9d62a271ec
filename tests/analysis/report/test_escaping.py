"""Text in Markdown and in spreadsheets."""

from __future__ import annotations

import pytest

from evenhand.analysis.report.files import markdown
from evenhand.study.tables.spreadsheets import guarded as spreadsheet


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.87 [0.81, 0.92]", r"0.87 \[0.81, 0.92\]"),
        ("-0.05", "-0.05"),
        ("two\nlines\r\nand\ttab", "two lines and tab"),
        ("# heading", r"\# heading"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("a_b*c*", r"a\_b\*c\*"),
        ("x:y@http://h/v1", r"x:y@http:\//h/v1"),
        ("&amp;", "&amp;amp;"),
        ("\\|", r"\\\|"),
    ],
)
def test_markdown(text: str, expected: str) -> None:
    assert markdown(text) == expected


@pytest.mark.parametrize(
    "text", ["=A1", "+A1", "-A1", "@A1", "\tA1", "\rA1", "\nA1", "'=A1", "''-A"]
)
def test_a_guarded_cell_is_safe_and_restorable(text: str) -> None:
    guarded = spreadsheet(text)

    assert guarded == "'" + text


@pytest.mark.parametrize(
    "text", ["", "-1", "+2.5", "-1e-05", "0.5", "r1", "a=b", "p0001|x", "'", "'tis"]
)
def test_harmless_cells_stay(text: str) -> None:
    assert spreadsheet(text) == text
