"""The charts' colours, light and dark, as the report's style sheet has them, for other pages."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

from evenhand.analysis.report.charts.style import ROLES, Spec

_SHEET = Path(__file__).parents[1] / "templates" / "colours.css"
_VALUE = re.compile(r"--([\w-]+): (.+);")
_OTHER = re.compile(r"var\(--(\w+)\)")


def in_scheme(spec: Spec, scheme: str) -> Spec:
    """Return a spec in the colours of a scheme, "light" or "dark": the browser that draws it knows
    no style sheet.
    """
    values = _values(scheme)
    text = json.dumps(spec)
    for role, colour in ROLES.items():
        text = text.replace(f'"{colour}"', f'"{values[f"chart-{role}"]}"')
    recoloured: Spec = json.loads(text)
    return recoloured


def svg_in_scheme(svg: str, scheme: str) -> str:
    """Return a picture of `svg.inline_svg` as a file of its own, in the colours of a scheme."""
    values = _values(scheme)
    for role in ROLES:
        svg = svg.replace(f"var(--chart-{role})", values[f"chart-{role}"])
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


@cache
def _values(scheme: str) -> dict[str, str]:
    light, _, dark = _SHEET.read_text("utf-8").partition("@media")
    values = dict(_VALUE.findall(light))
    if scheme == "dark":
        values |= _VALUE.findall(dark)
    return {name: _OTHER.sub(lambda other: values[other[1]], each) for name, each in values.items()}
