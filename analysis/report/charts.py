"""Make the report's charts as Vega-Lite specs, and draw them as SVG.

`fill_template` fills in `templates/NAME.json`. `chart_spec` adds the frame that all charts share
(`templates/frame.json`) and the data; each datum has the number of its `row` in results.csv.
`inline_svg` and `vega_svg` draw. Colours have the names of their roles. The page's style sheet has
their values for light, dark and print; `frame.json` has the light ones for viewers without a style
sheet. Series colours are from the palette of Okabe & Ito (2008), for all kinds of colour vision.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from evenhand.analysis.report.blocks import Chart
from evenhand.texts import mark_of, visible, visible_in, written

Spec = dict[str, Any]
Datum = dict[str, Any]

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _template(name: str) -> dict[str, Any]:
    """Read a template. It is cached, so callers must not change it."""
    template: dict[str, Any] = json.loads((_TEMPLATES / f"{name}.json").read_text("utf-8"))
    return template


ROLES: dict[str, str] = _template("frame")["colours"]
"""Colours of charts, by role."""
SOFT, PAGE = ROLES["soft"], ROLES["page"]
SERIES = [ROLES[f"series-{n}"] for n in range(1, 7)]
SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down"]
"""Each series has a shape as well as a colour, so that no chart depends on colour alone."""
HEAT = [ROLES[f"heat-{n}"] for n in range(1, 7)]
MAX_LISTED = 12
"""Raters, graders or subjects that a chart draws; its note names the others."""

_FONT_SIZE = 12  # in pixels as Vega lays the text out
_MAX_LETTERS = 30  # length of a name on an axis
_MAX_TICKS = 6  # steps between the ticks of an axis
_ROUNDING = 1e-9  # share of a step by which a bound may lie beyond a tick, as numbers are inexact


def fill_template(name: str, **values: object) -> dict[str, Any]:
    """Fill in a template: return a chart's (or part's) `spec`, its `caption`, `alt` and `note`.

    In a template, the string "$name" stands for one of `values` or a role's colour, and "$key.key"
    for a sentence of texts.toml, filled in with `values`. An object's entry {"$": "name"} stands
    for the entries of a value; the object's other entries override them. Parts that a template
    repeats are named under `let`. Raises KeyError for a name without a value.

    >>> filled = fill_template("forest", caption="Kappa", alt="", panels=[{"$": "not replaced"}])
    >>> filled["spec"]["vconcat"]
    [{'$': 'not replaced'}]
    """
    template, by_name = _template(name), {**ROLES, **values}
    for part, content in template.get("let", {}).items():  # first, as the other entries use them
        by_name[part] = _fill(content, by_name)
    return {key: _fill(content, by_name) for key, content in template.items() if key != "let"}


def _fill(node: Any, values: Mapping[str, Any]) -> Any:
    """Fill in a node of a template; the values themselves are left as they are."""
    if isinstance(node, str) and node.startswith("$"):
        return _sentence(node[1:], values) if "." in node else values[node[1:]]
    if isinstance(node, list):
        return [_fill(child, values) for child in node]
    if isinstance(node, dict):
        entries = {key: _fill(value, values) for key, value in node.items() if key != "$"}
        return {**values[node["$"]], **entries} if "$" in node else entries
    return node


def _sentence(key: str, values: Mapping[str, object]) -> str:
    """Return the sentence of texts.toml with this key, filled in; a list's items are joined."""
    fields = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in values.items()
    }
    return written(key, **fields)


def chart_spec(data: Sequence[Datum], content: Mapping[str, Any]) -> Spec:
    """Return a whole Vega-Lite spec: the shared frame, the data, and the chart's `content`."""
    return {**fill_template("frame", data=list(data))["spec"], **content}


def unique_values(data: Iterable[Datum], name: str) -> list[str]:
    """Return the distinct values of a field in the order of the data (Vega-Lite would sort them).

    >>> unique_values([{"grader": "b"}, {"grader": "a"}, {"grader": "b"}], "grader")
    ['b', 'a']
    """
    return list(dict.fromkeys(datum[name] for datum in data))


def heat_cells(
    order: list[str], steps: list[float], *, x: str, y: str, slanted: bool = False
) -> Spec:
    """Return the spec of cells shaded by the highest of `steps` that their estimate reaches, each
    with its number. `order` sorts the values on both axes, whose titles are `x` and `y`.
    """
    across = {"orient": "top", "labelAngle": -35} if slanted else {"labelAngle": 0}
    axes = {"order": order, "x": x, "y": y, "across": across}
    dark_if = f"datum.estimate >= {steps[3]}"  # shades from the fourth on need a light number
    spec: Spec = fill_template("grid", **axes, steps=steps, heat=HEAT, dark=dark_if)["spec"]
    return spec


def omitted_note(
    names: Sequence[str],
    drawn: Collection[str],
    kind: Literal["annotators", "graders", "subjects", "values"] = "graders",
    max_drawn: int = MAX_LISTED,
) -> str:
    """Return a chart's note on names that are not drawn: those beyond the first `max_drawn`, and
    those without a figure. Empty where all are drawn.

    >>> omitted_note(["a", "b", "c"], ["a"], "subjects", max_drawn=2)
    'Only the first 2 subjects are drawn, not c. Not drawn, for lack of a figure: b.'
    >>> omitted_note(["a"], ["a"])
    ''
    """
    notes = []
    if others := names[max_drawn:]:
        fields = {"what": written(f"chart.{kind}"), "names": join_first(others)}
        notes.append(written("chart.only_first", most=max_drawn, **fields))
    if without_figure := [name for name in names[:max_drawn] if name not in drawn]:
        notes.append(written("chart.no_figure", names=join_first(without_figure)))
    return " ".join(notes)


def join_first(names: Sequence[str]) -> str:
    """Join names with commas; of many, only the first and the number of the others."""
    first, n_more = ", ".join(names[:MAX_LISTED]), len(names) - MAX_LISTED
    return written("chart.and_more", names=first, more=n_more) if n_more > 0 else first


def bounds_of(data: Iterable[Datum]) -> list[float | None]:
    """Return all bounds and estimates of the data in one list."""
    return [datum[name] for datum in data for name in ("low", "estimate", "high")]


def axis_through_zero(bounds: Iterable[float | None]) -> Spec:
    """Return an axis that includes all of `bounds` and 0, with a tick at 0 and few others.

    >>> axis_through_zero([-0.11, None, 0.09])["axis"]["values"]
    [-0.15, -0.1, -0.05, 0.0, 0.05, 0.1]
    """
    numbers = [0.0, *(bound for bound in bounds if bound is not None)]
    low, high = min(numbers), max(numbers)
    width = (high - low) or 1.0
    # The smallest of 1, 2 or 5 times a power of ten that takes no more than `_MAX_TICKS` steps.
    power = 10.0 ** math.floor(math.log10(width / _MAX_TICKS))
    step = next(digit * power for digit in (1, 2, 5, 10) if width <= digit * power * _MAX_TICKS)
    ticks = range(math.floor(low / step + _ROUNDING), math.ceil(high / step - _ROUNDING) + 1)
    values = [round(tick * step, 10) for tick in ticks]
    scale = {"domain": [min(low, values[0]), max(high, values[-1])], "nice": False}
    return {"type": "quantitative", "scale": scale, "axis": {"values": values}}


def shorten(name: str) -> str:
    """Shorten a name for an axis. Its middle is cut, since ids differ at their ends.

    >>> shorten("provider:a-model-with-quite-a-long-name-20260101@0f3a")
    'provider:a-mode…-20260101@0f3a'
    """
    half = (_MAX_LETTERS - 1) // 2
    return name if len(name) <= _MAX_LETTERS else f"{name[: half + 1]}…{name[-half:]}"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Return the short name of each name for an axis, or the full name if two would be the same.

    >>> names = [f"Should the rate of tax on the {who} be raised soon" for who in ("rich", "poor")]
    >>> [shorten(name) == short_names(names)[name] for name in names]
    [False, False]
    """
    shortened = {name: shorten(name) for name in names}
    counts = Counter(shortened.values())
    return {name: name if counts[short] > 1 else short for name, short in shortened.items()}


_TAGS = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan"}
_ATTRIBUTES = {
    "viewBox", "width", "height", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy",
    "cx", "cy", "r", "text-anchor", "font-size", "font-weight", "font-style", "opacity", "fill",
    "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
}  # fmt: skip
_VARIABLES = {colour: f"var(--chart-{role})" for role, colour in ROLES.items()}
"""CSS variables, by the value that their colour has in a spec."""
_DEFAULTS = {  # attributes that need not be written
    ("opacity", "1"), ("stroke-width", "1"), ("font-weight", "normal"),
    ("transform", "translate(0,0)"),
}  # fmt: skip
_FONT_SCALE = 0.88
"""Text is drawn smaller than Vega laid it out: the reader's font may be wider than the one that
Vega measured with, and nothing must be cut off."""
_MANY_PLACES = re.compile(r"-?\d+\.\d{3,}")
_CAPTION_LETTERS, _NOTE_LETTERS = 64, 84  # in a line of a caption, and of the smaller note
_SURROGATE_PAIRS = re.compile("[\U00010000-\U0010ffff]")
_EMPTY_PATHS = {"", "M0,0h0v0h0Z"}  # a rectangle without size

_COLOURS = _TEMPLATES / "colours.css"
_DECLARATION = re.compile(r"--([\w-]+): ([^;]+);")  # "--chart-series-1: #0072b2;"
_REFERENCE = re.compile(r"var\(--(\w+)\)")  # "var(--soft)" as a value


@cache
def can_draw() -> bool:
    """Return True if the drawing library is installed; an installation for `check` lacks it."""
    return find_spec("vl_convert") is not None


def inline_svg(spec: Spec, alt: str) -> str:
    """Draw a spec as one `svg` element without scripts, styles or links; `alt` describes it.

    Vega's drawing is rebuilt from a short list of elements and attributes, so that no name can add
    others. Colours become CSS variables, for light, dark and print.
    """
    root = ElementTree.fromstring(vega_svg(spec))  # noqa: S314 - by Vega just now, no entities
    width, height = root.get("width", "0"), root.get("height", "0")
    inner = "".join(_element(child) for child in root)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label={quoteattr(visible(alt))}>{inner}</svg>'


def vega_svg(spec: Spec) -> str:
    """Draw a spec with Vega. Vega shortens long texts, and fails if that splits a surrogate pair;
    the spec is then drawn with code points in place of such characters.
    """
    import vl_convert

    visible_spec = visible_in(spec)
    try:
        return str(vl_convert.vegalite_to_svg(visible_spec))
    except ValueError:
        text = json.dumps(visible_spec, ensure_ascii=False)
        return str(vl_convert.vegalite_to_svg(json.loads(_SURROGATE_PAIRS.sub(mark_of, text))))


def _element(node: ElementTree.Element) -> str:
    """Write a permitted element with its permitted attributes; omit empty groups and paths."""
    tag = node.tag.rpartition("}")[2]
    if tag not in _TAGS or node.get("display") == "none":
        return ""
    if tag == "rect" and node.get("fill") == "transparent":
        return ""
    # Vega draws a path of the class "background" behind each group, mostly without any colour.
    is_painted = node.get("fill") or node.get("stroke") or "background" not in node.get("class", "")
    if tag == "path" and (node.get("d", "") in _EMPTY_PATHS or not is_painted):
        return ""
    inner = escape(node.text or "") if tag in ("text", "tspan") else ""
    inner += "".join(_element(child) for child in node)
    if tag in ("g", "text") and not inner:
        return ""
    attributes = "".join(
        f" {name}={quoteattr(_value(name, value))}"
        for name, value in node.attrib.items()
        if name in _ATTRIBUTES and (name, value) not in _DEFAULTS
    )
    if tag == "g" and not attributes:
        return inner
    return f"<{tag}{attributes}>{inner}</{tag}>" if inner else f"<{tag}{attributes}/>"


def _value(name: str, value: str) -> str:
    """Return the value to write: fonts smaller, numbers rounded, colours as CSS variables."""
    if name == "font-size":
        return f"{float(value.removesuffix('px')) * _FONT_SCALE:.1f}px"
    rounded = _MANY_PLACES.sub(lambda number: f"{float(number.group()):.2f}", value)
    return _VARIABLES.get(value, rounded)


def standalone_spec(chart: Chart, mark: str = "") -> Spec:
    """Return a chart's spec for a file: on white, with its caption plus `mark`, and its note."""
    title = {
        "text": wrap(chart.caption + mark, _CAPTION_LETTERS), "fontSize": _FONT_SIZE + 3,
        "subtitle": wrap(chart.note, _NOTE_LETTERS), "subtitleFontSize": _FONT_SIZE,
        "subtitleColor": SOFT, "frame": "bounds", "offset": 14,
    }  # fmt: skip
    frame = {"background": "#ffffff", "padding": 16, "title": title, "description": chart.alt}
    return {**chart.spec, **frame}


def svg_in_scheme(svg: str, scheme: str) -> str:
    """Return a drawing of `inline_svg` as a separate file, in the colours of a scheme."""
    colours = _colours(scheme)
    for role in ROLES:
        svg = svg.replace(f"var(--chart-{role})", colours[f"chart-{role}"])
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)


@cache
def _colours(scheme: str) -> dict[str, str]:
    """Return the colours of a scheme ("light" or "dark") by CSS variable, from the style sheet."""
    light, _, dark = _COLOURS.read_text("utf-8").partition("@media")  # which begins the dark ones
    values = dict(_DECLARATION.findall(light))
    if scheme == "dark":
        values |= _DECLARATION.findall(dark)
    return {name: _REFERENCE.sub(lambda var: values[var[1]], text) for name, text in values.items()}
