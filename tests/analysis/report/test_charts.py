"""The pictures: valid Vega-Lite, drawn from results rows alone, safe and legible."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts import (
    MAX_LISTED,
    ROLES,
    SERIES,
    chart_spec,
    inline_svg,
    short,
    svg_in_scheme,
)
from evenhand.analysis.report.files import rendered, sections_of
from evenhand.analysis.report.sections.graders import forest
from evenhand.analysis.report.source import READINGS, Source
from tests.analysis.make import analyse_labels, rows_of
from tests.analysis.report.small_study import HOSTILE, SCALE, timed
from tests.peers import altair

XY = Scale("", ("x", "y"), affirmative=frozenset({"x"}))
CEILING_BOUNDS = {"ceiling", "ceiling_low", "ceiling_high"}
"""Those of another row, or of two rows' difference: see the test of the forest's ceilings."""


@pytest.fixture(scope="module")
def busy_analysis() -> Analysis:
    """With times, slices and subjects: something for every chart."""
    ratings, units = timed()
    prices = {("R", "provider:sure"): 4.0, ("R", "provider:hard"): 1.0}
    facts = StudyFacts(prices=prices)
    return analyse(ratings, units, [SCALE], resamples=100, slices=["topic"], facts=facts)


def charts_of(analysis: Analysis) -> list[Chart]:
    sections = sections_of(
        Source(analysis, ReportContext("A study", rubric_titles={"R": "The rubric"}))
    )
    return [block for each in sections for block in each.every_block() if isinstance(block, Chart)]


@pytest.mark.slow
def test_every_kind_of_picture_is_there(busy_analysis):
    captions = [chart.caption for chart in charts_of(busy_analysis)]

    for what in (
        "kappa with annotators, and the human ceiling",
        "price against agreement with annotators",
        "of every two raters",
        "labels of annotators and of each grader",
        "subjects' scores by annotators and by each grader",
        "Cohen κ with annotators, by threshold",
        "calibration of the probabilities",
    ):
        assert any(what in caption for caption in captions), what


@pytest.mark.thorough
def test_specs_are_valid_vega_lite(busy_analysis):
    for chart in charts_of(busy_analysis):
        altair.Chart.from_dict(dict(chart.spec), validate=True)


@pytest.mark.slow
def test_every_datum_is_its_results_row(busy_analysis):
    """`row` names the row, `NAME_row` that of the number NAME; bounds are in full precision."""
    rows = busy_analysis.results.to_dict("records")
    seen = 0
    for chart in charts_of(busy_analysis):
        for datum in chart.spec["data"]["values"]:
            row = rows[datum["row"] - 2]
            for name in ("estimate", "low", "high"):
                given = datum[name]
                assert given == row[name] or (given is None and pd.isna(row[name]))
                seen += 1
            others = {k for k, v in datum.items() if isinstance(v, float)}
            others -= {"estimate", "low", "high"}
            for bound in others & {"stated_low", "stated_high"}:
                row_of_stated = rows[datum["stated_row"] - 2]
                assert datum[bound] == row_of_stated[bound.removeprefix("stated_")]
            others -= {"stated_low", "stated_high", *CEILING_BOUNDS}
            assert others <= {"at", "kept", "price", "stated"}
            if "at" in datum:
                assert datum["at"] == float(row["at"])
            for name in others - {"at"}:
                assert datum[name] == rows[datum[f"{name}_row"] - 2]["estimate"]
    assert seen > 300


def test_every_chart_has_words_and_its_numbers(busy_analysis):
    for chart in charts_of(busy_analysis):
        assert len(chart.alt) > 60
        assert chart.data
        cells = [cell for table in chart.data for row in table.rows for cell in row.cells]
        lines = {cell.line for cell in cells}
        drawn = {datum["row"] for datum in chart.spec["data"]["values"]}
        assert drawn <= lines, chart.caption


def nodes(spec: dict[str, Any]) -> Iterator[ElementTree.Element]:
    return ElementTree.fromstring(inline_svg(spec, "words")).iter()  # noqa: S314


@pytest.mark.slow
def test_the_svg_holds_nothing_that_acts_or_loads_and_no_colour_of_its_own(busy_analysis):
    """No colour is fixed, so that light, dark and print can each have their own."""
    allowed = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan"}
    for chart in charts_of(busy_analysis):
        for node in nodes(dict(chart.spec)):
            assert node.tag in allowed
            assert not {name for name in node.attrib if name.startswith("on")}
            assert not {"style", "class", "href", "id", "font-family"} & set(node.attrib)
            for paint in (node.get("fill", "none"), node.get("stroke", "none")):
                assert paint in ("none", "transparent") or paint.startswith("var(--chart-"), paint


@pytest.mark.parametrize("sheet", ["report.css", "notebook.css"])
def test_the_page_defines_every_colour(sheet):
    style = rendered(sheet)
    for role in ROLES:
        assert f"--chart-{role}:" in style
    assert len(set(ROLES.values())) == len(ROLES), "each role is told by its colour"


@pytest.mark.slow
def test_hostile_names_are_text(hostile_analysis):
    for chart in charts_of(hostile_analysis):
        svg = inline_svg(dict(chart.spec), f'{HOSTILE[1]} " onload="x')
        root = ElementTree.fromstring(svg)  # noqa: S314
        assert root.get("aria-label") == f'{HOSTILE[1]} " onload="x'
        assert "onload" not in root.attrib
        assert not re.search(r"<(script|img)", svg)


@pytest.mark.slow
def test_hostile_text_comes_through_whole():
    text = "<script>alert('1')</script> & \"]]>"
    spec = chart_spec([{"who": text}], {"mark": "text", "encoding": {"text": {"field": "who"}}})
    assert text in [node.text for node in nodes(spec)]


def test_colours_told_apart_without_colour_vision():
    """Series differ in luminance or shape; shades of a grid rise evenly from light to dark."""
    shades = [_luminance(ROLES[f"heat-{n}"]) for n in range(1, 7)]
    assert shades == sorted(shades, reverse=True)
    assert all(a / b > 1.1 for a, b in pairwise(shades))
    for n in range(1, 7):
        ink = ROLES["heat-high-ink" if n > 4 else "heat-low-ink"]
        assert _contrast(ROLES[f"heat-{n}"], ink) > 4.5


def _luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.slow
def test_many_graders_stay_legible_and_it_is_said():
    graders = [f"m:{k:02}" for k in range(MAX_LISTED + 3)]
    labels = {
        rater: ["xy"[(n * 7 + len(rater) * n) % 3 % 2] for n in range(60)]
        for rater in ("ann", "ben", *graders)
    }
    found = analyse_labels(labels, XY, graders, resamples=20)

    forest = next(each for each in charts_of(found) if "human ceiling" in each.caption)
    drawn = {datum["who"] for datum in forest.spec["data"]["values"] if datum["kind"] == "grader"}
    assert len(drawn) == MAX_LISTED
    assert f"first {MAX_LISTED} graders" in forest.note


def test_short_names_keep_both_ends():
    names = [f"provider:some-model-with-a-long-name@{n:04}" for n in range(3)]
    assert len({short(name) for name in names}) == 3
    assert all(len(short(name)) <= 30 for name in names)


def parts_of(spec: Any, name: str) -> Iterator[Any]:
    """Whatever is called `name` within a spec, but not among its data."""
    each = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    if isinstance(spec, dict):
        yield from ([spec[name]] if name in spec else [])
        each = [value for key, value in spec.items() if key not in ("data", "config")]
    for part in each:
        yield from parts_of(part, name)


def test_every_axis_has_a_name(busy_analysis):
    for chart in charts_of(busy_analysis):
        for channel in ("x", "y"):
            axes = [each for each in parts_of(chart.spec, channel) if isinstance(each, dict)]
            named = [axis.get("title") for axis in axes if "field" in axis]
            assert named, chart.caption
            assert all(named), (chart.caption, channel)


def test_an_axis_that_holds_zero_has_a_tick_there(busy_analysis):
    seen = 0
    for chart in charts_of(busy_analysis):
        for channel in ("x", "y"):
            for axis in parts_of(chart.spec, channel):
                if not isinstance(axis, dict) or "values" not in axis.get("axis", {}):
                    continue
                low, high = axis.get("scale", {}).get("domain", (1, 1))
                if low <= 0 <= high:
                    seen += 1
                    assert 0 in axis["axis"]["values"]
    assert seen > 10


@pytest.mark.slow
def test_letters_can_be_read_and_meet_no_others(busy_analysis):
    """Sizes of at least 9 px; labels on one axis line keep clear of one another."""
    for chart in charts_of(busy_analysis):
        for node in nodes(dict(chart.spec)):
            if node.tag == "text":
                assert float((node.get("font-size") or "").removesuffix("px")) >= 9
        for line in lines_of_ticks(dict(chart.spec)):
            for (left, wide), (right, _) in pairwise(sorted(line)):
                assert right - left > wide, (chart.caption, line)


def lines_of_ticks(spec: dict[str, Any]) -> list[list[tuple[float, float]]]:
    """By line the (middle, width) of all centred numbers on it: labels of an axis across."""
    lines: dict[float, list[tuple[float, float]]] = {}

    def walk(node: ElementTree.Element, x: float, y: float) -> None:
        for part in (node.get("transform") or "").split(")"):
            kind, _, numbers = part.strip().partition("(")
            if kind == "translate":
                x, y = (a + float(b) for a, b in zip((x, y), numbers.split(","), strict=True))
            elif kind == "rotate":
                return
        is_number = re.fullmatch(r"[−\d.%]+", node.text or "")
        if node.tag == "text" and node.get("text-anchor") == "middle" and is_number:
            size = float((node.get("font-size") or "").removesuffix("px"))
            lines.setdefault(round(y), []).append((x, 0.64 * size * len(node.text or "")))
        for child in node:
            walk(child, x, y)

    walk(ElementTree.fromstring(inline_svg(spec, "words")), 0.0, 0.0)  # noqa: S314
    return list(lines.values())


def test_graders_stand_in_the_order_of_their_agreement(busy_analysis):
    results = busy_analysis.results
    people = rows_of(results, "cohen_kappa", "humans")
    kappas = people.set_index(["subset", "rater_b"])["estimate"]
    seen = 0
    for chart in charts_of(busy_analysis):
        orders = [*parts_of(chart.spec, "sort"), *parts_of(chart.spec, "domain")]
        orders += [[each["who"] for each in chart.spec["data"]["values"] if "reading" in each]]
        for order in orders:
            graders = [name for name in order or () if str(name).startswith("provider:")]
            graders = graders[: len(set(graders))]  # the forest has them once for each reading
            if len(graders) > 1 and "price" not in chart.caption:
                seen += 1
                assert any(
                    found == sorted(found, reverse=True)
                    for subset in ("all", "all|binary")
                    if (found := [kappas[subset, name] for name in graders])
                ), (chart.caption, graders)
    assert seen > 4


def test_one_reading_of_the_forest_is_a_picture_of_its_own(busy_analysis):
    source = Source(busy_analysis, ReportContext("A study", rubric_titles={"R": "The rubric"}))
    (whole,) = forest(source.on("R"))
    parts = [each for reading in READINGS for each in forest(source.on("R"), readings=(reading,))]
    assert [len(each.spec["vconcat"]) for each in (whole, *parts)] == [2, 1, 1]
    values = [datum for each in parts for datum in each.spec["data"]["values"]]
    assert values == whole.spec["data"]["values"]


def test_the_forest_of_a_yes_no_rubric_is_drawn_once():
    """Its categories are its binary label."""
    labels = {
        rater: ["xy"[n % every == 0] for n in range(40)]
        for rater, every in (("ann", 2), ("bo", 3), ("m", 4))
    }
    found = analyse_labels(labels, XY, ["m"], resamples=20)
    source = Source(found, ReportContext("A study"))
    [drawn] = forest(source.on(""))
    assert len(drawn.spec["vconcat"]) == 1
    assert [len(forest(source.on(""), readings=(each,))) for each in READINGS] == [1, 0]


def test_each_row_of_the_forest_has_the_band_of_annotators():
    labels = {"ann": "xxyy" * 10, "ben": "xxyx" * 10, "m": "xyyy" * 10}
    found = analyse_labels(labels, XY, ["m"], resamples=50)
    [drawn] = forest(Source(found, ReportContext("A study")).on(""))
    values = {datum["who"]: datum for datum in drawn.spec["data"]["values"]}
    people = values.pop(None)
    ends = ("low", "estimate", "high")
    bands = [
        [row[end] for end in ("ceiling_low", "ceiling", "ceiling_high")] for row in values.values()
    ]
    assert bands == [[people[end] for end in ends]] * 3
    assert people["ceiling"] is None
    (panel,) = drawn.spec["vconcat"]
    (domain, *others) = [each["scale"]["domain"] for each in parts_of(panel, "y")]
    assert domain == [who for who in values if who] and all(each == domain for each in others)


def test_captions_speak_only_of_what_is_drawn():
    """One person: no ceiling, no band. One grader: no front."""
    found = analyse_labels({"ann": "xy" * 20, "m": "xy" * 20}, XY, ["m"], resamples=20)
    [drawn] = [each for each in charts_of(found) if "kappa with annotators" in each.caption]
    assert "ceiling" not in drawn.caption
    assert "band" not in drawn.note + drawn.alt
    assert not any("price" in each.caption for each in charts_of(found))


def test_the_front_joins_what_no_other_beats(busy_analysis):
    [front] = [each for each in charts_of(busy_analysis) if "price against" in each.caption]
    values = front.spec["data"]["values"]
    assert {each["grader"]: each["price"] for each in values} == {
        "provider:sure": 4.0,
        "provider:hard": 1.0,
    }
    cheap, dear = sorted(values, key=lambda each: each["price"])
    assert cheap["front"]
    assert dear["front"] == (dear["estimate"] > cheap["estimate"])
    assert "provider:constant" in front.note, "a grader without a price is named"


# For pages that know no style sheet: each role has its own colour in both schemes

POINT = {"mark": {"type": "point", "color": SERIES[0]}, "encoding": {"x": {"field": "x"}}}
SPEC = chart_spec([{"x": 1}], POINT)


@pytest.mark.parametrize(("scheme", "colour"), [("light", SERIES[0]), ("dark", "#56a8e0")])
def test_a_picture_stands_alone(scheme, colour):
    svg = svg_in_scheme(inline_svg(SPEC, "words"), scheme)
    assert "var(" not in svg
    assert colour in svg  # --chart-series-1
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
