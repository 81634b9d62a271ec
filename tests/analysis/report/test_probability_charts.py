"""What the pictures of probabilities show: thresholds and reliability."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Chart
from evenhand.analysis.report.charts import MAX_LISTED, inline_svg
from evenhand.analysis.report.sections.thresholds import reliability_diagrams, threshold_curves
from evenhand.analysis.report.source import RubricFigures, Source

YES = Scale("tone", ("y", "n"), affirmative=frozenset({"y"}))


def source_of(units: int, graders: int = 1, person: str = "") -> RubricFigures:
    """Graders that state a probability q where q times 4, up to 1, would be right, and a person
    who says `person`, or else y with that chance."""
    rng = np.random.default_rng(5)
    rows: list[dict[str, object]] = []
    for n in range(units):
        chance = rng.random() ** 2
        said = person or ("y" if rng.random() < 1 / (1 + np.exp(-14 * (chance - 0.5))) else "n")
        rows.append({"unit_id": f"u{n}", "rater_id": "ann", "rater_kind": "human", "label": said})
        for grader in range(graders):
            stated = {"p_positive": round(chance / 4, 6), "label": "n"}
            rows.append(
                {"unit_id": f"u{n}", "rater_id": f"g{grader:02}", "rater_kind": "model"} | stated
            )
    found = analyse(pd.DataFrame(rows).assign(rubric="tone"), None, [YES], resamples=100)
    return Source.of(found, ReportContext("study")).on("tone")


def data_of(chart: Chart, **where: object) -> list[dict[str, Any]]:
    """Data that have these values."""
    values = chart.spec["data"]["values"]
    return [each for each in values if all(each.get(k) == v for k, v in where.items())]


@pytest.fixture(scope="module")
def shifted() -> RubricFigures:
    return source_of(400)


def test_a_shifted_grader_peaks_below_its_default(shifted: RubricFigures) -> None:
    """People part at a stated 1/8; the default of 1/2 is never reached."""
    [chart] = threshold_curves(shifted)
    curve = data_of(chart, kind="curve")
    [best] = data_of(chart, mark="best")
    [default] = data_of(chart, mark="default")
    [interval] = data_of(chart, kind="interval")

    assert max(curve, key=lambda each: each["estimate"])["at"] == best["at"]
    assert best["at"] == interval["estimate"] == pytest.approx(0.125, abs=0.03)
    assert interval["low"] <= best["at"] <= interval["high"] < default["at"] == 0.5
    assert (best["used"], default["used"]) == (True, False)
    assert f"g00: use {best['at']:.3g} [" in chart.alt


def test_where_nothing_is_recommended_the_default_is_filled() -> None:
    [chart] = threshold_curves(source_of(25))
    assert [each["used"] for each in data_of(chart, mark="default")] == [True]
    assert not any(each["used"] for each in data_of(chart, mark="best"))
    assert "g00: keep 0.5: the best is uncertain." in chart.alt


def test_without_intervals_nothing_is_shaded() -> None:
    [chart] = threshold_curves(source_of(4))
    assert all(each["low"] is None for each in chart.spec["data"]["values"])
    inline_svg(dict(chart.spec), chart.alt)


def test_nothing_is_drawn_where_people_say_one_thing() -> None:
    assert threshold_curves(source_of(40, person="y")) == []


def test_a_grader_that_understates_lies_above_the_line(shifted: RubricFigures) -> None:
    [chart] = reliability_diagrams(shifted)
    points = data_of(chart)
    steps = {each["estimate"]: each["units"] for each in points}
    assert sum(steps.values()) == 400
    assert all(0 <= each["stated"] <= 0.25 for each in points)
    assert [each["estimate"] for each in points] == sorted(each["estimate"] for each in points)
    above = [each for each in points if each["stated"] > 0.15 and each["stated_high"] < 1]
    assert above
    assert all(each["estimate"] > each["stated_high"] > each["stated"] for each in above)


@pytest.mark.slow
def test_every_panel_has_a_cap() -> None:
    many = source_of(40, graders=MAX_LISTED + 2)
    for chart in (
        *threshold_curves(many),
        *reliability_diagrams(many),
    ):
        assert len({each["grader"] for each in data_of(chart)}) == MAX_LISTED
        assert f"first {MAX_LISTED} graders" in chart.note
