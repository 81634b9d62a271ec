"""Colours of charts for pages that know no style sheet: each role has its own in both schemes."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from evenhand.analysis.report.charts import (
    ROLES,
    SERIES,
    chart_spec,
    in_scheme,
    inline_svg,
    layer,
    svg_in_scheme,
)

SPEC = chart_spec([{"x": 1}], layer("point", {"x": {"field": "x"}}, color=SERIES[0]))


def test_light_is_what_the_sheet_says() -> None:
    drawn = json.dumps(in_scheme(SPEC, "light"))
    assert SERIES[0] in drawn
    assert "var(" not in drawn


def test_dark_leaves_no_light_colour() -> None:
    drawn = json.dumps(in_scheme(SPEC, "dark"))
    assert '"#56a8e0"' in drawn  # --chart-series-1
    assert '"#e5e9ee"' in drawn  # --chart-ink, which is --text
    assert not [role for role, colour in ROLES.items() if f'"{colour}"' in drawn]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_picture_stands_alone(scheme: str) -> None:
    svg = svg_in_scheme(inline_svg(SPEC, "words"), scheme)
    assert "var(" not in svg
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
