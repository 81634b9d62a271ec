"""The look of all charts: colours, type, and the frame that every spec shares.

Colours are named by role. The page's style sheet gives each role its value for light, dark and
print; the values here are the light ones, which a viewer without that style sheet shows. Series
colours are of the palette of Okabe & Ito (2008), made for all kinds of colour vision.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from evenhand.texts import written

Spec = dict[str, Any]
Datum = dict[str, Any]

ROLES = {
    "ink": "#1c2430",
    "soft": "#566273",
    "rule": "#d9dee5",
    "page": "#fefefe",
    "band": "#d6e4f2",
    "series-1": "#0072b2",
    "series-2": "#d55e00",
    "series-3": "#009e73",
    "series-4": "#cc79a7",
    "series-5": "#e69f00",
    "series-6": "#56b4e9",
    "heat-1": "#f3f6fa",
    "heat-2": "#dbe6f1",
    "heat-3": "#b7cfe5",
    "heat-4": "#86b1d6",
    "heat-5": "#2f74b0",
    "heat-6": "#11568f",
    "heat-low-ink": "#1c2431",
    "heat-high-ink": "#fffffe",
}
"""Colours that a chart may use, by role."""
INK, SOFT, PAGE = ROLES["ink"], ROLES["soft"], ROLES["page"]
SERIES = [ROLES[f"series-{n}"] for n in range(1, 7)]
SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "triangle-down"]
"""A series has a shape as well as a colour: no chart speaks by colour alone."""
HEAT = [ROLES[f"heat-{n}"] for n in range(1, 7)]
MAX_LISTED = 12
"""Raters, graders or subjects drawn at most; the caption names the rest."""

LETTERS = 12
"""Size of the letters, in pixels as Vega lays them out."""

_SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
_LONGEST = 30
_CONFIG = {
    "aria": False,
    "background": "transparent",
    "padding": 4,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": INK,
        "labelFontSize": LETTERS,
        "labelLimit": 210,
        "labelFlush": False,
        "titlePadding": 10,
        "titleColor": SOFT,
        "titleFontSize": LETTERS,
        "titleFontWeight": "normal",
        "domainColor": ROLES["rule"],
        "tickColor": ROLES["rule"],
        "gridColor": ROLES["rule"],
    },
    "legend": {
        "labelColor": INK,
        "labelFontSize": LETTERS,
        "labelLimit": 210,
        "titleColor": SOFT,
        "titleFontSize": LETTERS,
        "titleFontWeight": "normal",
        "orient": "bottom",
        "columns": 3,
    },
    "header": {
        "labelColor": INK,
        "labelFontSize": LETTERS + 1,
        "labelFontWeight": "bold",
        "labelLimit": 360,
        "labelOrient": "top",
        "labelAnchor": "start",
        "labelAngle": 0,
        "labelPadding": 4,
        "title": None,
    },
    "facet": {"columns": 3, "spacing": 34},
    "title": {"color": INK, "fontSize": LETTERS + 1, "anchor": "start", "frame": "group"},
    "text": {"color": INK, "fontSize": LETTERS},
}


FROM_0_TO_1: Spec = {
    "type": "quantitative",
    "scale": {"domain": [0, 1]},
    "axis": {"values": [0, 0.2, 0.4, 0.6, 0.8, 1]},
}
"""The axis of a share or a probability that is drawn whole."""


def chart_spec(data: Sequence[Datum], content: Mapping[str, Any]) -> Spec:
    """A whole Vega-Lite spec: the shared frame, the data, and the parts specific to the chart."""
    return {
        "$schema": _SCHEMA,
        "config": _CONFIG,
        "data": {"values": list(data)},
        **content,
    }


def layer(mark: str, encoding: Mapping[str, Any], *, where: str = "", **look: Any) -> Spec:
    """Return a layer of a chart: a mark and its look, drawn for the data that meet `where`.

    >>> layer("rule", {"x": field("at")}, where="datum.low > 0", color="red")["transform"]
    [{'filter': 'datum.low > 0'}]
    """
    drawn = {"mark": {"type": mark} | look, "encoding": dict(encoding)}
    return {"transform": [{"filter": where}]} | drawn if where else drawn


def field(name: str, axis: Mapping[str, Any] | None = None) -> Spec:
    """Return an encoding that places or colours a mark by a field of the data, on an axis."""
    return {"field": name} | dict(axis or {})


def span(along: str, axis: Mapping[str, Any], low: str = "low", high: str = "high") -> Spec:
    """Return an encoding from one bound to the other along x or y.

    >>> span("x", {"title": "Kappa"})
    {'x': {'field': 'low', 'title': 'Kappa'}, 'x2': {'field': 'high'}}
    """
    return {along: field(low, axis), f"{along}2": field(high)}


def equality(x: Mapping[str, Any], y: Mapping[str, Any], **look: Any) -> Spec:
    """The line on which a share across and a share upwards are equal."""
    ends = {"values": [{"x": 0, "y": 0, "x2": 1, "y2": 1}]}
    return {"data": ends} | layer("rule", span("x", x, "x", "x2") | span("y", y, "y", "y2"), **look)


def panel_for_each_grader(
    data: Sequence[Datum],
    layer: Sequence[Mapping[str, Any]],
    *,
    height: int | Mapping[str, object],
) -> Spec:
    """Draw the same layers for every `grader` of the data, three panels in a row."""
    panel = {"width": 210, "height": height, "layer": list(layer)}
    return {"facet": one_for_each("grader", data), "spec": panel}


def one_for_each(name: str, data: Sequence[Datum]) -> Spec:
    """Panels by a field, in the order of the data: by default Vega-Lite would sort them by name.

    >>> one_for_each("grader", [{"grader": "b"}, {"grader": "a"}, {"grader": "b"}])["sort"]
    ['b', 'a']
    """
    return {
        "field": name,
        "type": "nominal",
        "sort": list(dict.fromkeys(datum[name] for datum in data)),
    }


def left_out(
    listed: Sequence[str],
    drawn: Collection[str],
    what: Literal["annotators", "graders", "raters", "subjects", "values"] = "graders",
    most: int = MAX_LISTED,
) -> str:
    """Return a chart's note on the items that are not drawn: names beyond the first `most`, and
    names that have no figure. Empty where all are drawn.

    >>> left_out(["a", "b", "c"], ["a"], "raters", most=2)
    'Only the first 2 raters are drawn, not c. Not drawn, for lack of a figure: b.'
    >>> left_out(["a"], ["a"])
    ''
    """
    said = []
    if beyond := listed[most:]:
        of = written(f"chart.{what}")
        said.append(written("chart.only_first", most=most, what=of, names=_listed(beyond)))
    if lacking := [name for name in listed[:most] if name not in drawn]:
        said.append(written("chart.no_figure", names=_listed(lacking)))
    return " ".join(said)


def _listed(names: Sequence[str]) -> str:
    first, more = ", ".join(names[:MAX_LISTED]), len(names) - MAX_LISTED
    return written("chart.and_more", names=first, more=more) if more > 0 else first


def joined(*sentences: str) -> str:
    """A note: its sentences in a row, empty ones left out."""
    return " ".join(filter(None, sentences))


def through_zero(bounds: Iterable[float | None], title: str) -> Spec:
    """An axis that holds all of `bounds` and 0, with a tick at 0 and few enough others that no two
    labels meet.

    >>> through_zero([-0.11, None, 0.09], "Gain")["axis"]["values"]
    [-0.15, -0.1, -0.05, 0.0, 0.05, 0.1]
    """
    known = [0.0, *(each for each in bounds if each is not None)]
    low, high = min(known), max(known)
    step = _step((high - low) or 1.0)
    ticks = range(math.floor(low / step + _EDGE), math.ceil(high / step - _EDGE) + 1)
    values = [round(tick * step, 10) for tick in ticks]
    return {
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [min(low, values[0]), max(high, values[-1])], "nice": False},
        "axis": {"values": values},
    }


_MOST_TICKS = 6
_EDGE = 1e-9


def _step(width: float) -> float:
    """The least of 1, 2 or 5 times a power of ten that takes no more than six steps."""
    power = 10.0 ** math.floor(math.log10(width / _MOST_TICKS))
    return next(each * power for each in (1, 2, 5, 10) if width <= each * power * _MOST_TICKS)


def short(name: str) -> str:
    """A name short enough for an axis; its middle is cut, since ids differ at their ends.

    >>> short("provider:a-model-with-quite-a-long-name-20260101@0f3a")
    'provider:a-mode…-20260101@0f3a'
    """
    half = (_LONGEST - 1) // 2
    return name if len(name) <= _LONGEST else f"{name[: half + 1]}…{name[-half:]}"


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Names with what an axis calls them: `short`, but in full where that would be another's too.

    >>> names = [f"Should the rate of tax on the {who} be raised soon" for who in ("rich", "poor")]
    >>> [short(name) == shortened(names)[name] for name in names]
    [False, False]
    """
    found = {name: short(name) for name in names}
    times = Counter(found.values())
    return {name: name if times[brief] > 1 else brief for name, brief in found.items()}
