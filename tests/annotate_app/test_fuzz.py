"""A rater at several windows and devices who does anything, over lines that break."""

from __future__ import annotations

import pytest

from harness.rater_fuzz import fuzz, fuzzed_study

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def breakable(tmp_path_factory):
    with fuzzed_study(tmp_path_factory.mktemp("fuzz")) as served:
        yield served


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(2), id="2", marks=pytest.mark.thorough),
        pytest.param(range(100, 140), id="40", marks=pytest.mark.load),
    ],
)
def test_what_is_stored_was_on_a_screen_and_what_is_refused_was_told(browser, breakable, seeds):
    assert fuzz(seeds, breakable, browser) == []
