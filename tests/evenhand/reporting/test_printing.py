"""Printing a page: what happens where the browser does not manage."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.reporting.report import print_pdf


@pytest.mark.parametrize("does", ["exit 1", "exit 0"], ids=["fails", "prints nothing"])
def test_a_browser_that_does_not_print_is_a_sentence(tmp_path: Path, does: str) -> None:
    browser = tmp_path / "chromium"
    browser.write_text(f"#!/bin/sh\n{does}\n")
    browser.chmod(0o755)
    with pytest.raises(
        InputError, match=r"chromium could not print page\.html; open it in a browser"
    ):
        print_pdf(browser, tmp_path / "page.html", tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()
