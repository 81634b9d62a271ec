"""Charts of the report: the colours and the frame of every spec, and the drawing.

A chart is a Vega-Lite spec, a plain dict, that any tool for Vega-Lite reads as well; every datum
names its `row` of results.csv. What is drawn of the data is in `templates/NAME.json`, which
`filled` fills in; what all charts share, colours too, in `templates/frame.json`. Colours are named
by role. The page's style sheet gives each role its value for light, dark and print; the values
there are the light ones, which a viewer without that style sheet shows. Series colours are of the
palette of Okabe & Ito (2008), made for all kinds of colour vision.
"""

from __future__ import annotations

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
from evenhand.texts import marked, visible, visible_in, written

Spec = dict[str, Any]
Datum = dict[str, Any]

_TEMPLATES = Path(__file__).parent / "templates"


@cache
def _template(name: str) -> dict[str, Any]:
    template: dict[str, Any] = json.loads((_TEMPLATES / f"{name}.json").read_text("utf-8"))
    return template


ROLES: dict[str, str] = _template("frame")["colours"]
"""Colours that a chart may use, by role."""
SOFT, PAGE = ROLES["soft"], ROLES["page"]
SERIES = [ROLES[f"series-{n}"] for n in range(1, 7)]
SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down"]
"""A series has a shape as well as a colour: no chart speaks by colour alone."""
HEAT = [ROLES[f"heat-{n}"] for n in range(1, 7)]
MAX_LISTED = 12
"""Raters, graders or subjects drawn at most; the caption names the rest."""

_LETTERS = 12
"""Size of the letters, in pixels as Vega lays them out."""
_LONGEST = 30
_MOST_TICKS = 6
_EDGE = 1e-9


def fill_template(name: str, **values: object) -> dict[str, Any]:
    """Return a template with values: the `spec` of a chart or of a part of one and, of a chart, its
    `caption`, `alt` and `note`.

    A string "$name" stands for a value, a role's colour or, with a dot, a sentence of texts.toml,
    whose fields are values as well (of a list, its items); the key "$" of an object for those
    entries of a value that the object does not have itself. A template may `let` names stand for
    parts that it repeats. KeyError for a name without value.

    >>> filled("forest", caption="Kappa", alt="", panels=[{"$": "not replaced"}])["spec"]["vconcat"]
    [{'$': 'not replaced'}]
    """
    template, given = _template(name), {**ROLES, **values}
    for part, content in template.get("let", {}).items():
        given[part] = _filled(content, given)
    return {part: _filled(content, given) for part, content in template.items() if part != "let"}


def _filled(node: Any, given: Mapping[str, Any]) -> Any:
    """A part of a template with its values, in which nothing is replaced any more."""
    if isinstance(node, str) and node.startswith("$"):
        return _sentence(node[1:], given) if "." in node else given[node[1:]]
    if isinstance(node, list):
        return [_filled(child, given) for child in node]
    if isinstance(node, dict):
        entries = {key: _filled(value, given) for key, value in node.items() if key != "$"}
        return {**given[node["$"]], **entries} if "$" in node else entries
    return node


def _sentence(key: str, given: Mapping[str, object]) -> str:
    fields = {
        name: ", ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in given.items()
    }
    return written(key, **fields)


def chart_spec(data: Sequence[Datum], content: Mapping[str, Any]) -> Spec:
    """A whole Vega-Lite spec: the shared frame, the data, and the parts specific to the chart."""
    return {**fill_template("frame", data=list(data))["spec"], **content}


def unique_values(data: Iterable[Datum], name: str) -> list[str]:
    """Return the values of a field of the data, each once: by default Vega-Lite would sort them.

    >>> in_order([{"grader": "b"}, {"grader": "a"}, {"grader": "b"}], "grader")
    ['b', 'a']
    """
    return list(dict.fromkeys(datum[name] for datum in data))


def heat_cells(
    order: list[str], steps: list[float], *, x: str, y: str, slanted: bool = False
) -> Spec:
    """Cells shaded by the step that their estimate reaches, the number in a colour that is legible
    on the shade.
    """
    across = {"orient": "top", "labelAngle": -35} if slanted else {"labelAngle": 0}
    axes = {"order": order, "x": x, "y": y, "across": across}
    dark = f"datum.estimate >= {steps[3]}"
    spec: Spec = fill_template("grid", **axes, steps=steps, heat=HEAT, dark=dark)["spec"]
    return spec


def omitted_note(
    listed: Sequence[str],
    drawn: Collection[str],
    what: Literal["annotators", "graders", "subjects", "values"] = "graders",
    most: int = MAX_LISTED,
) -> str:
    """Return a chart's note on the items that are not drawn: names beyond the first `most`, and
    names that have no figure. Empty where all are drawn.

    >>> left_out(["a", "b", "c"], ["a"], "subjects", most=2)
    'Only the first 2 subjects are drawn, not c. Not drawn, for lack of a figure: b.'
    >>> left_out(["a"], ["a"])
    ''
    """
    notes = []
    if beyond := listed[most:]:
        of = written(f"chart.{what}")
        notes.append(written("chart.only_first", most=most, what=of, names=join_first(beyond)))
    if lacking := [name for name in listed[:most] if name not in drawn]:
        notes.append(written("chart.no_figure", names=join_first(lacking)))
    return " ".join(notes)


def join_first(names: Sequence[str]) -> str:
    """Names one after the other, of many the first and how many more there are."""
    first, more = ", ".join(names[:MAX_LISTED]), len(names) - MAX_LISTED
    return written("chart.and_more", names=first, more=more) if more > 0 else first


def bounds_of(data: Iterable[Datum]) -> list[float | None]:
    """Return all bounds and estimates of the data."""
    return [datum[name] for datum in data for name in ("low", "estimate", "high")]


def axis_through_zero(bounds: Iterable[float | None]) -> Spec:
    """An axis that holds all of `bounds` and 0, with a tick at 0 and few enough others that no two
    labels meet.

    >>> through_zero([-0.11, None, 0.09])["axis"]["values"]
    [-0.15, -0.1, -0.05, 0.0, 0.05, 0.1]
    """
    numbers = [0.0, *(digit for digit in bounds if digit is not None)]
    low, high = min(numbers), max(numbers)
    width = (high - low) or 1.0
    # The least of 1, 2 or 5 times a power of ten that takes no more than so many steps.
    power = 10.0 ** math.floor(math.log10(width / _MOST_TICKS))
    step = next(digit * power for digit in (1, 2, 5, 10) if width <= digit * power * _MOST_TICKS)
    ticks = range(math.floor(low / step + _EDGE), math.ceil(high / step - _EDGE) + 1)
    values = [round(tick * step, 10) for tick in ticks]
    domain = [min(low, values[0]), max(high, values[-1])]
    scale = {"domain": domain, "nice": False}
    return {"type": "quantitative", "scale": scale, "axis": {"values": values}}


def shorten(name: str) -> str:
    """A name short enough for an axis; its middle is cut, since ids differ at their ends.

    >>> short("provider:a-model-with-quite-a-long-name-20260101@0f3a")
    'provider:a-mode…-20260101@0f3a'
    """
    half = (_LONGEST - 1) // 2
    return name if len(name) <= _LONGEST else f"{name[: half + 1]}…{name[-half:]}"


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Names with what an axis calls them: `short`, but in full where that would be another's too.

    >>> names = [f"Should the rate of tax on the {who} be raised soon" for who in ("rich", "poor")]
    >>> [short(name) == shortened(names)[name] for name in names]
    [False, False]
    """
    brief_names = {name: shorten(name) for name in names}
    times = Counter(brief_names.values())
    return {name: name if times[brief] > 1 else brief for name, brief in brief_names.items()}


_TAGS = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan"}
_ATTRIBUTES = {
    "viewBox", "width", "height", "transform", "d", "x", "y", "x1", "x2", "y1", "y2", "dx", "dy",
    "cx", "cy", "r", "text-anchor", "font-size", "font-weight", "font-style", "opacity", "fill",
    "fill-opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray",
    "stroke-linecap", "stroke-linejoin", "stroke-miterlimit",
}  # fmt: skip
_VARIABLES = {colour: f"var(--chart-{role})" for role, colour in ROLES.items()}
_DEFAULTS = {
    ("opacity", "1"), ("stroke-width", "1"), ("font-weight", "normal"),
    ("transform", "translate(0,0)"),
}  # fmt: skip
_SMALLER = 0.88
"""Letters are drawn smaller than Vega laid them out: the reader's font may be wider than the one
that Vega measured with, and nothing must be cut off."""
_MANY_PLACES = re.compile(r"-?\d+\.\d{3,}")
_CAPTION_LETTERS, _NOTE_LETTERS = 64, 84
"""Letters in a line of a caption, and of the smaller note."""
_IN_TWO_HALVES = re.compile("[\U00010000-\U0010ffff]")
_EMPTY_PATHS = {"", "M0,0h0v0h0Z"}


_SHEET = _TEMPLATES / "colours.css"
_VALUE = re.compile(r"--([\w-]+): (.+);")
_OTHER = re.compile(r"var\(--(\w+)\)")


@cache
def can_draw() -> bool:
    """Return True if the drawing library is installed; one for `check` alone lacks it."""
    return find_spec("vl_convert") is not None


def inline_svg(spec: Spec, alt: str) -> str:
    """The picture as one `svg` element, which a page without scripts, styles or links may hold;
    `alt` describes in words what it shows.

    Vega's drawing is rebuilt from a short list of elements and attributes: nothing else can come
    through, whatever a rater's name contains. Colours become CSS variables, so that one picture
    serves light, dark and print.
    """
    root = ElementTree.fromstring(vega_svg(spec))  # noqa: S314 - by Vega just now, no entities
    width, height = root.get("width", "0"), root.get("height", "0")
    inner = "".join(_element(child) for child in root)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" aria-label={quoteattr(visible(alt))}>{inner}</svg>'


def vega_svg(spec: Spec) -> str:
    """The picture as Vega draws it. Vega shortens texts that are too long, and fails if that splits
    a surrogate pair: then such characters are replaced by their code points.
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
    painted = node.get("fill") or node.get("stroke") or "background" not in node.get("class", "")
    if tag == "path" and (node.get("d", "") in _EMPTY_PATHS or not painted):
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
    if name == "font-size":
        return f"{float(value.removesuffix('px')) * _SMALLER:.1f}px"
    rounded = _MANY_PLACES.sub(lambda number: f"{float(number.group()):.2f}", value)
    return _VARIABLES.get(value, rounded)


def standalone_spec(chart: Chart, mark: str = "") -> Spec:
    """The figure as a file of its own: on white, its caption above it, which ends in the `mark`,
    and its note below.
    """
    texts = {"text": wrap(chart.caption + mark, _CAPTION_LETTERS)}
    texts |= {"subtitle": wrap(chart.note, _NOTE_LETTERS)}
    look = {"fontSize": _LETTERS + 3, "subtitleFontSize": _LETTERS, "subtitleColor": SOFT}
    title = {**texts, "frame": "bounds", **look, "offset": 14}
    frame = {"background": "#ffffff", "padding": 16, "title": title, "description": chart.alt}
    return {**chart.spec, **frame}


def svg_in_scheme(svg: str, scheme: str) -> str:
    """Return a picture of `inline_svg` as a file of its own, in the colours of a scheme."""
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
    return {name: _OTHER.sub(lambda other: values[other[1]], text) for name, text in values.items()}
