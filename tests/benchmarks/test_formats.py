"""Which files of other tools are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchmarks import formats


@pytest.mark.slow
def test_the_page_of_formats_is_that_of_the_files(page_of: Callable[[str], str]) -> None:
    page = page_of("formats")
    assert page == formats.OUT.read_text("utf-8")
