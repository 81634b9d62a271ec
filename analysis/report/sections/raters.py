"""The raters: how much each labelled and how fast, and their use of the categories."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evenhand.analysis.agreement.pairs import DECIDING_KAPPAS
from evenhand.analysis.labels.encoding import ALL_RATERS
from evenhand.analysis.labels.matrix import AFFIRMATIVE, BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.disagreements import COVERAGE, UNSCORED_AS_DISAGREEMENT
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Block, Chart, Paragraph, Table
from evenhand.analysis.report.figures import ALL, ALL_BINARY, defined
from evenhand.analysis.report.source import (
    READINGS,
    Layers,
    RubricFigures,
    TableRow,
    distinct,
    rater_title,
    rows_of,
    sentences,
)
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_WORK = ("rater_agreement", "rater_seconds_median")
_MEAN = "mean_number"
_UNSCORED = ["observed_agreement", UNSCORED_AS_DISAGREEMENT]
_WITH_EXCLUDED = {ALL: ALL_RATERS, ALL_BINARY: ALL_RATERS + BINARY}
_EXCLUSION_PANEL = ["observed_agreement", *DECIDING_KAPPAS, CEILING]
_MOST = 2 * charts.MAX_LISTED
_LEGIBLE = 0.05
"""A share below this has no room for its category's name."""


def layers(figures: RubricFigures) -> Layers:
    """Labels given, shares of the categories, coverage, and the bounds due to missing grades."""
    shares = [each for subset in READINGS for each in figures.select("prevalence", subset)]
    numbers = figures.select(_MEAN)
    coverage = {figure.grader: figure for figure in figures.select(COVERAGE)}
    affirmed = (ALL_BINARY, AFFIRMATIVE)
    places = dict.fromkeys((figure.subset, figure.at) for figure in shares)
    of_shares = [
        (
            written("raters.affirmative") if (subset, at) == affirmed else at,
            {"statistic": "prevalence", "subset": subset, "at": at},
        )
        for subset, at in places
    ]
    covered = (entry_for(COVERAGE).label, lambda key: coverage.get(key.rater_a))
    tables = [
        table
        for what, columns, found in (
            (written("raters.caption"), of_shares, shares),
            (written("raters.numbers"), [_MEAN], numbers),
        )
        for table in figures.table(
            what,
            "Rater",
            [*columns, covered],
            distinct(found, "rater", rater_title),
            count=written("raters.labelled_units"),
        )
    ]
    known = {figure.rater for figure in (*shares, *numbers)}
    workers = dict.fromkeys(each.rater for name in _WORK for each in figures.select(name))
    who = [(rater, (rater, "")) for rater in workers]
    return Layers(
        answers=_answer(figures, labelled=bool(tables)),
        folded=[
            *(_distribution(figures, tables) or tables),
            *([] if coverage.keys() <= known else [Paragraph(written("raters.not_listed"))]),
            *figures.panel(written("raters.work"), "Rater", _WORK, who, count="Labels"),
            *_exclusions(figures),
        ],
        appendix=_sensitivity(figures),
    )


def _answer(figures: RubricFigures, *, labelled: bool) -> list[list[object]]:
    """State how far single people agree with the others, and which grader left most units out."""
    said: list[list[object]] = []
    if people := defined(figures.select(_WORK[0])):
        high, low = people[0], people[-1]
        about = {"low": low, "first": low.rater, "high": high, "last": high.rater}
        numbers = figures.select(_MEAN)
        said.append(in_pieces("report.people_numbers" if numbers else "report.people", **about))
    elif labelled:
        said.append(in_pieces("report.pair_none"))
    graders = set(figures.graders())
    if scored := defined(e for e in figures.select(COVERAGE) if e.grader in graders):
        least = scored[-1]
        if least.bounds[1] < 1:
            said.append(in_pieces("report.coverage", grader=least.grader, share=least))
        else:
            said.append(in_pieces("report.coverage_all"))
    return [sentences(*said)]


def _sensitivity(figures: RubricFigures) -> Sequence[Block]:
    """Tabulate agreement if every missing answer of a grader were a disagreement."""
    by_reading = {on: figures.select(UNSCORED_AS_DISAGREEMENT, on) for on in READINGS}
    rows: list[TableRow] = []
    for subset, found in by_reading.items():
        rows.append((written("raters.with_annotators", reading=READINGS[subset]), None))
        rows += rows_of((e for e in found if e.says("unscored")), lambda e: e.grader)
    tables = figures.table(written("raters.sensitivity"), "Grader", _UNSCORED, rows)
    if any(by_reading.values()) and not tables:
        return [Paragraph(written("raters.none_unscored"))]
    return tables


def _exclusions(figures: RubricFigures) -> list[Block]:
    """People among themselves and every grader with them; empty where no rater is excluded."""
    rows: list[TableRow] = []
    for main, everyone in _WITH_EXCLUDED.items():
        found = figures.select(figures.usual(main), everyone)
        compared = [figure for figure in found if figure.rater == "humans"]
        for title, subset in (("without", main), ("with", everyone)):
            binary = subset.endswith(BINARY)
            name = written(f"exclusions.{title}_binary" if binary else f"exclusions.{title}")
            rows.append((name, None))
            rows += [
                (rater_title(each.grader or "humans"), each.key._replace(subset=subset))
                for each in compared
            ]
    tables = figures.table(written("exclusions.caption"), "Rater", _EXCLUSION_PANEL, rows)
    return [Paragraph(written("exclusions.about")), *tables] if tables else []


def _distribution(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Stacked shares of the categories, a bar for each rater; empty where there are more categories
    than can be told apart.
    """
    shares = figures.select("prevalence")
    categories = list(dict.fromkeys(figure.at for figure in shares))
    raters = figures.graders_last(figure.rater for figure in shares)
    if not 2 <= len(categories) <= len(charts.HEAT):
        return []
    values: list[charts.Datum] = []
    drawn: dict[str, str] = {}
    for rater in raters[:_MOST]:
        start = 0.0  # of a part, which is only its place in the drawing
        for figure in figures.between("prevalence", rater):
            share = figure.bounds[1]
            if not math.isnan(share):
                who = drawn[rater] = charts.short(rater_title(rater))
                end = start + share
                place = {"from": start, "to": end, "middle": (start + end) / 2}
                text = figure.at if share >= _LEGIBLE else ""
                values.append(figure.datum(who=who, category=figure.at, text=text, **place))
                start = end
    who = ", ".join(dict.fromkeys(drawn.values()))
    return figures.chart(
        written("chart.shares"),
        written("chart.shares_alt", raters=who, categories=", ".join(categories)),
        values,
        _drawing(categories),
        data,
        charts.left_out(raters, drawn, "raters", _MOST),
    )


def _drawing(categories: Sequence[str]) -> charts.Spec:
    """The bars, each part in the shade of its category, with its name where there is room."""
    shades = (charts.HEAT if len(categories) > 3 else charts.HEAT[1::2])[: len(categories)]
    of_shade = zip(categories, shades, strict=True)
    bright = [category for category, shade in of_shade if shade in charts.HEAT[4:]]
    x: charts.Spec = {
        "type": "quantitative",
        "title": written("chart.shares_axis"),
        "scale": {"domain": [0, 1]},
    }
    part = charts.span("x", {"axis": {"format": ".0%"}} | x, "from", "to")
    shade = charts.nominal(
        "category",
        sort=None,
        title=written("chart.shares_category"),
        scale={"domain": categories, "range": shades},
        legend={"symbolType": "square", "columns": len(categories)},
    )
    is_bright = {"field": "category", "oneOf": bright}
    ink = {
        "condition": {"test": is_bright, "value": charts.ROLES["heat-high-ink"]},
        "value": charts.ROLES["heat-low-ink"],
    }
    name = {"x": charts.field("middle", x), "text": charts.nominal("text"), "color": ink}
    return {
        "width": 420,
        "height": {"step": 24},
        "encoding": {"y": charts.nominal("who", sort=None, title=written("chart.rater"))},
        "layer": [
            charts.layer(
                "bar", part | {"color": shade}, stroke=charts.ROLES["page"], height={"band": 0.85}
            ),
            charts.layer("text", name),
        ],
    }
