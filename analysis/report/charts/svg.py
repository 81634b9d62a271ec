"""From a Vega-Lite spec to inline SVG that a page without scripts, styles or links may hold.

Vega's drawing is parsed and rebuilt from a short list of elements and attributes: nothing else can
come through, whatever a rater's name contains. Colours become CSS variables, so that one
picture serves light, dark and print.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.util import find_spec
from textwrap import wrap
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts.style import LETTERS, ROLES, SOFT, Spec
from evenhand.visible import marked, visible, visible_in

_TAGS = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan"}
_ATTRIBUTES = {
    "viewBox", "width", "height", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy",
    "cx", "cy", "r", "text-anchor", "font-size", "font-weight", "font-style", "opacity", "fill",
    "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
}  # fmt: skip
_VARIABLES = {colour: f"var(--chart-{role})" for role, colour in ROLES.items()}
_DEFAULTS = {("opacity", "1"), ("stroke-width", "1"), ("font-weight", "normal")}
_SMALLER = 0.88
"""Letters are drawn smaller than Vega laid them out: the reader's font may be wider than the one
that Vega measured with, and nothing must be cut off."""
_LONG_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_CAPTION_LETTERS, _NOTE_LETTERS = 64, 84
"""Letters in a line of a caption, and of the smaller note."""
_IN_TWO_HALVES = re.compile("[\U00010000-\U0010ffff]")
_EMPTY_PATHS = {"", "M0,0h0v0h0Z"}


@cache
def can_draw() -> bool:
    """Return True if the drawing library is installed; one for `check` alone lacks it."""
    return find_spec("vl_convert") is not None


def inline_svg(spec: Spec, alt: str) -> str:
    """The picture as one `svg` element; `alt` describes in words what it shows."""
    root = ElementTree.fromstring(vega_svg(spec))  # noqa: S314 - by Vega just now, no entities
    width, height = root.get("width", "0"), root.get("height", "0")
    inner = "".join(_element(child) for child in root)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label={quoteattr(visible(alt))}>{inner}</svg>'


def vega_svg(spec: Spec) -> str:
    """The picture as Vega draws it.

    Vega shortens texts that are too long, and fails if that splits a surrogate pair: then such
    characters are replaced by their code points.
    """
    import vl_convert

    shown = visible_in(spec)
    try:
        return str(vl_convert.vegalite_to_svg(shown))
    except ValueError:
        text = json.dumps(shown, ensure_ascii=False)
        return str(vl_convert.vegalite_to_svg(json.loads(_IN_TWO_HALVES.sub(marked, text))))


def _element(node: ElementTree.Element) -> str:
    """A permitted element with its permitted attributes; empty groups and paths are left out."""
    tag = node.tag.rpartition("}")[2]
    if tag not in _TAGS or node.get("display") == "none":
        return ""
    if tag == "rect" and node.get("fill") == "transparent":
        return ""
    if tag == "path" and (node.get("d", "") in _EMPTY_PATHS or not _is_painted(node)):
        return ""
    inner = escape(node.text or "") if tag in ("text", "tspan") else ""
    inner += "".join(_element(child) for child in node)
    if tag in ("g", "text") and not inner:
        return ""
    attributes = _attributes(node)
    if tag == "g" and not attributes:
        return inner
    return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"


def _is_painted(path: ElementTree.Element) -> bool:
    """Return False for a background that Vega draws for a group with neither fill nor line."""
    return "background" not in path.get("class", "") or bool(path.get("fill") or path.get("stroke"))


def _attributes(node: ElementTree.Element) -> str:
    kept = [
        f" {name}={quoteattr(_value(name, value))}"
        for name, value in node.attrib.items()
        if name in _ATTRIBUTES
        and (name, value) not in _DEFAULTS
        and (name, value) != ("transform", "translate(0,0)")
    ]
    return "".join(kept)


def _value(name: str, value: str) -> str:
    if name == "font-size":
        return f"{float(value.removesuffix('px')) * _SMALLER:.1f}px"
    if value in _VARIABLES:
        return _VARIABLES[value]
    return _LONG_NUMBER.sub(lambda number: f"{float(number.group()):.2f}", value)


def standalone_spec(chart: Chart, mark: str = "") -> Spec:
    """The figure as a file of its own: on white, its caption above it, which ends in the `mark`,
    and its note below.
    """
    title = {
        "text": wrap(chart.caption + mark, _CAPTION_LETTERS),
        "subtitle": wrap(chart.note, _NOTE_LETTERS),
        "frame": "bounds",
        "fontSize": LETTERS + 3,
        "subtitleColor": SOFT,
        "subtitleFontSize": LETTERS,
        "offset": 14,
    }
    frame = {"background": "#ffffff", "padding": 16, "title": title, "description": chart.alt}
    return {**chart.spec, **frame}
