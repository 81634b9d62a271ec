"""The pictures: valid Vega-Lite, drawn from results rows alone, safe and legible."""

import re
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest

from evenhand.analysis import Analysis, Scale, StudyFacts, analyse
from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts import ROLES, SERIES, chart_spec, inline_svg, svg_in_scheme
from evenhand.analysis.report.files import render
from evenhand.analysis.report.sections.graders import forest
from evenhand.analysis.report.source import SUBSET_NAMES, Source
from tests.analysis.make import analyse_labels, rows_of
from tests.analysis.report.conftest import STUDY, blocks_of
from tests.analysis.report.small_study import HOSTILE, SCALE, timed
from tests.peers import altair

XY = Scale("", ("x", "y"), affirmative=frozenset({"x"}))


@pytest.fixture(scope="module")
def busy() -> Analysis:
    """With times, slices, prices and subjects: something for every chart."""
    ratings, units = timed()
    facts = StudyFacts(prices={("R", "provider:sure"): 4.0, ("R", "provider:hard"): 1.0})
    return analyse(ratings, units, [SCALE], resamples=50, slices=["topic"], facts=facts)


@pytest.fixture(scope="module")
def charts(busy: Analysis) -> list[Chart]:
    return blocks_of(busy, Chart)


@pytest.fixture(scope="module")
def drawn(charts: list[Chart]) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(inline_svg(dict(c.spec), "x")) for c in charts]  # noqa: S314


@pytest.mark.journey
def test_every_kind_of_picture_is_there_with_words_and_its_numbers(charts):
    captions = "\n".join(chart.caption for chart in charts)
    for what in (
        "and the human ceiling", "price against agreement", "of every two raters",
        "labels of annotators and of each grader", "subjects' scores", "by threshold",
        "calibration of the probabilities",
    ):  # fmt: skip
        assert what in captions
    for chart in charts:
        assert len(chart.alt) > 60
        cells = [cell for table in chart.data for row in table.rows for cell in row.cells]
        drawn = {datum["row"] for datum in chart.spec["data"]["values"]}
        assert drawn <= {cell.line for cell in cells}, chart.caption


@pytest.mark.thorough
def test_specs_are_valid_vega_lite(charts):
    for chart in charts:
        altair.Chart.from_dict(dict(chart.spec), validate=True)


def test_every_datum_is_its_results_row(busy, charts):
    """`row` names the row, `NAME_row` that of the number NAME; bounds are in full precision.
    Bounds of a ceiling are those of another row, or of two rows' difference: see below.
    """
    rows = busy.results.to_dict("records")
    seen = 0
    for datum in (datum for chart in charts for datum in chart.spec["data"]["values"]):
        row = rows[datum["row"] - 2]
        for name in ("estimate", "low", "high"):
            assert datum[name] == row[name] or (datum[name] is None and pd.isna(row[name]))
            seen += 1
        others = {k for k, v in datum.items() if isinstance(v, float)}
        others -= {"estimate", "low", "high", "ceiling", "ceiling_low", "ceiling_high"}
        for bound in others & {"stated_low", "stated_high"}:
            assert datum[bound] == rows[datum["stated_row"] - 2][bound.removeprefix("stated_")]
        others -= {"stated_low", "stated_high"}
        assert others <= {"at", "kept", "price", "stated"}
        if "at" in datum:
            assert datum["at"] == float(row["at"])
        for name in others - {"at"}:
            assert datum[name] == rows[datum[f"{name}_row"] - 2]["estimate"]
    assert seen > 300


@pytest.mark.slow
def test_the_svg_holds_nothing_that_acts_or_loads_and_no_colour_of_its_own(drawn):
    """No colour is fixed, so that light, dark and print can each have their own."""
    allowed = {"svg", "g", "path", "rect", "line", "circle", "text", "tspan"}
    for node in (node for root in drawn for node in root.iter()):
        assert node.tag in allowed
        assert not {name for name in node.attrib if name.startswith("on")}
        assert not {"style", "class", "href", "id", "font-family"} & set(node.attrib)
        for paint in (node.get("fill", "none"), node.get("stroke", "none")):
            assert paint in ("none", "transparent") or paint.startswith("var(--chart-"), paint


@pytest.mark.slow
def test_letters_can_be_read_and_meet_no_others(drawn):
    """Sizes of at least 9 px; labels on one axis line keep clear of one another."""
    for root in drawn:
        for node in root.iter("text"):
            assert float((node.get("font-size") or "").removesuffix("px")) >= 9
        lines: dict[float, list[tuple[float, float]]] = {}
        _place_ticks(root, 0.0, 0.0, lines)
        for line in lines.values():
            for (left, wide), (right, _) in pairwise(sorted(line)):
                assert right - left > wide, line


def _place_ticks(node, x, y, lines):
    """By line the (middle, width) of all centred numbers on it: labels of an axis across."""
    for part in (node.get("transform") or "").split(")"):
        kind, _, numbers = part.strip().partition("(")
        if kind == "translate":
            x, y = (a + float(b) for a, b in zip((x, y), numbers.split(","), strict=True))
        elif kind == "rotate":
            return
    is_number = re.fullmatch(r"[−\d.%]+", node.text or "")
    if node.tag == "text" and node.get("text-anchor") == "middle" and is_number:
        size = float((node.get("font-size") or "").removesuffix("px"))
        lines.setdefault(round(y), []).append((x, 0.64 * size * len(node.text)))
    for child in node:
        _place_ticks(child, x, y, lines)


@pytest.mark.slow
def test_hostile_text_is_text_and_comes_through_whole(hostile_analysis):
    alt = f'{HOSTILE[1]} " onload="x'
    for chart in blocks_of(hostile_analysis, Chart):
        svg = inline_svg(dict(chart.spec), alt)
        root = ElementTree.fromstring(svg)  # noqa: S314
        assert root.get("aria-label") == alt
        assert "onload" not in root.attrib
        assert not re.search(r"<(script|img)", svg)
    text = "<script>alert('1')</script> & \"]]>"
    spec = chart_spec([{"who": text}], {"mark": "text", "encoding": {"text": {"field": "who"}}})
    root = ElementTree.fromstring(inline_svg(spec, "words"))  # noqa: S314
    assert text in [node.text for node in root.iter()]


@pytest.mark.journey
def test_colours_are_defined_and_told_apart_without_colour_vision():
    """Series differ in luminance or shape; shades of a grid rise evenly from light to dark."""
    for sheet in ("report.css", "notebook.css"):
        assert all(f"--chart-{role}:" in render(sheet) for role in ROLES)
    assert len(set(ROLES.values())) == len(ROLES), "each role is told by its colour"

    def luminance(role: str) -> float:
        channels = [int(ROLES[role][at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    shades = [luminance(f"heat-{n}") for n in range(1, 7)]
    assert all(a / b > 1.1 for a, b in pairwise(shades))
    for n, shade in enumerate(shades, 1):
        dark, light = sorted((shade, luminance("heat-high-ink" if n > 4 else "heat-low-ink")))
        assert (light + 0.05) / (dark + 0.05) > 4.5
    # For pages that know no style sheet, each role has its own colour in both schemes.
    mark = {"mark": {"type": "point", "color": SERIES[0]}, "encoding": {"x": {"field": "x"}}}
    for scheme, colour in (("light", SERIES[0]), ("dark", "#56a8e0")):  # --chart-series-1
        svg = svg_in_scheme(inline_svg(chart_spec([{"x": 1}], mark), "words"), scheme)
        assert "var(" not in svg
        assert colour in svg
        assert ElementTree.fromstring(svg).tag.endswith("}svg")  # noqa: S314


def parts_of(spec: Any, name: str) -> Iterator[Any]:
    """Whatever is called `name` within a spec, but not among its data."""
    each = spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ()
    if isinstance(spec, dict):
        yield from ([spec[name]] if name in spec else [])
        each = [value for key, value in spec.items() if key not in ("data", "config")]
    for part in each:
        yield from parts_of(part, name)


def test_every_axis_has_a_name_and_one_that_holds_zero_a_tick_there(charts):
    seen = 0
    for chart, channel in product(charts, ("x", "y")):
        axes = [each for each in parts_of(chart.spec, channel) if isinstance(each, dict)]
        named = [axis.get("title") for axis in axes if "field" in axis]
        assert named and all(named), (chart.caption, channel)
        for axis in axes:
            ticks, domain = axis.get("axis", {}), axis.get("scale", {}).get("domain", (1, 1))
            if "values" in ticks and domain[0] <= 0 <= domain[1]:
                seen += 1
                assert 0 in ticks["values"]
    assert seen > 10


def test_graders_stand_in_the_order_of_their_agreement(busy, charts):
    people = rows_of(busy.results, "cohen_kappa", "humans")
    kappas = people.set_index(["subset", "rater_b"])["estimate"]
    seen = 0
    for chart in charts:
        orders = [*parts_of(chart.spec, "sort"), *parts_of(chart.spec, "domain")]
        orders += [[each["who"] for each in chart.spec["data"]["values"] if "plot" in each]]
        for order in orders:
            graders = [name for name in order or () if str(name).startswith("provider:")]
            graders = graders[: len(set(graders))]  # the forest has them once for each reading
            if len(graders) > 1 and "price" not in chart.caption:
                seen += 1
                by = [[kappas[of, name] for name in graders] for of in ("all", "all|binary")]
                assert any(each == sorted(each, reverse=True) for each in by), chart.caption
    assert seen > 4


def test_one_reading_of_the_forest_is_a_picture_of_its_own(busy):
    source = Source(busy, STUDY).rubric("R")
    (whole,) = forest(source)
    parts = [each for reading in SUBSET_NAMES for each in forest(source, subsets=(reading,))]
    assert [len(each.spec["vconcat"]) for each in (whole, *parts)] == [2, 1, 1]
    values = [datum for each in parts for datum in each.spec["data"]["values"]]
    assert values == whole.spec["data"]["values"]
    # Categories of a yes/no rubric are its binary label, and drawn once.
    labels = {"ann": "xy" * 20, "bo": "xyy" * 13 + "x", "m": "xyyy" * 10}
    source = Source(analyse_labels(labels, XY, ["m"], resamples=10), STUDY)
    [drawn] = forest(source.rubric(""))
    assert len(drawn.spec["vconcat"]) == 1
    assert [len(forest(source.rubric(""), subsets=(each,))) for each in SUBSET_NAMES] == [1, 0]


def test_the_front_joins_what_no_other_beats(charts):
    [front] = [each for each in charts if "price against" in each.caption]
    cheap, dear = sorted(front.spec["data"]["values"], key=lambda each: each["price"])
    assert (cheap["grader"], cheap["price"]) == ("provider:hard", 1.0)
    assert (dear["grader"], dear["price"]) == ("provider:sure", 4.0)
    assert cheap["front"]
    assert dear["front"] == (dear["estimate"] > cheap["estimate"])
    assert "provider:constant" in front.note, "a grader without a price is named"


def test_each_row_of_the_forest_has_the_band_of_annotators():
    labels = {"ann": "xxyy" * 10, "ben": "xxyx" * 10, "m": "xyyy" * 10}
    [drawn] = forest(Source(analyse_labels(labels, XY, ["m"], resamples=50), STUDY).rubric(""))
    values = {datum["who"]: datum for datum in drawn.spec["data"]["values"]}
    people = values.pop(None)
    ceiling = ("ceiling_low", "ceiling", "ceiling_high")
    bands = [[row[end] for end in ceiling] for row in values.values()]
    assert bands == [[people[end] for end in ("low", "estimate", "high")]] * 3
    assert people["ceiling"] is None
    (panel,) = drawn.spec["vconcat"]
    (domain, *others) = [each["scale"]["domain"] for each in parts_of(panel, "y")]
    assert domain == [who for who in values if who] and all(each == domain for each in others)


def test_captions_speak_only_of_what_is_drawn():
    """One person: no ceiling, no band. One grader: no front."""
    found = analyse_labels({"ann": "xy" * 20, "m": "xy" * 20}, XY, ["m"], resamples=20)
    [drawn] = [each for each in blocks_of(found, Chart) if "kappa with annotators" in each.caption]
    assert "ceiling" not in drawn.caption
    assert "band" not in drawn.note + drawn.alt
    assert not any("price" in each.caption for each in blocks_of(found, Chart))
