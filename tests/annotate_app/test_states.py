"""Every state of the pages of which docs/screenshots.py takes pictures, looked at by axe."""

from __future__ import annotations

import pytest

from docs.screenshots import take_states

pytestmark = [pytest.mark.browser, pytest.mark.load]


@pytest.mark.parametrize("size", [(390, 844), (1440, 900)], ids=str)
def test_axe_finds_nothing_serious_in_any_state(browser, tmp_path, axe, size):
    take_states(browser, tmp_path, [size], axe)
