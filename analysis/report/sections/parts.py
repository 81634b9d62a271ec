"""Parts of the sample: where graders agree with people more or less, and which group they fail."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.slices import BALANCED
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Block, Chart, Paragraph, Table
from evenhand.analysis.report.figures import Figure, defined
from evenhand.analysis.report.source import (
    Layers,
    RubricFigures,
    labels,
    pair_title,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_DIFFERENCE = "group_difference"
_MOST_VALUES = 24


# Slices, on the categories


def slices(figures: RubricFigures) -> list[Block]:
    """Chart or tabulate graders' agreement with people by the columns asked for, compared with the
    rest of the units.
    """
    statistics = ["observed_agreement", figures.kappa(), CEILING, "slice_difference"]
    by_subset = figures.by_subset("slice_difference").items()
    on_categories = (s for s in by_subset if "=" in s[0] and not s[0].endswith(BINARY))
    out: list[Block] = []
    for column, found in _by_column(each for _, same in on_categories for each in same).items():
        rows: list[FigureRow] = []
        for grader in dict.fromkeys(figure.raters[1] for figure in found):
            rows.append((pair_title(("humans", grader)), None))
            rows += [
                (_value(each.subset), figures.row(statistics, each.raters, each.subset))
                for each in found
                if each.raters[1] == grader
            ]
        what = written("pairs.parts", column=column)
        tables = figures.table(what, column, labels(statistics), rows)
        out += _slice_plot(figures, column, found, tables) or tables
    return [*out, Paragraph(written("pairs.about_parts"))] if out else []


def _slice_plot(
    figures: RubricFigures, column: str, found: list[Figure], data: list[Table]
) -> list[Chart]:
    """`slice_difference` with its interval, for every value of a column and every grader."""
    graders = figures.by_agreement(dict.fromkeys(figure.raters[1] for figure in found))
    parts = list(dict.fromkeys(_value(figure.subset) for figure in found))
    known = [
        figure
        for figure in found
        if figure.raters[1] in graders[: len(charts.SHAPES)]
        and _value(figure.subset) in parts[:_MOST_VALUES]
        and not figure.reason
    ]
    if not known:
        return []
    values = [
        each.datum(value=charts.short(_value(each.subset)), grader=charts.short(each.raters[1]))
        for each in known
    ]
    drawn = [name for name in graders if any(name == each.raters[1] for each in known)]
    names = [charts.short(name) for name in drawn]
    with_figure = {_value(figure.subset) for figure in known}
    return figures.chart(
        written("chart.parts", column=column),
        written("chart.parts_alt", column=column, graders=", ".join(names)),
        charts.chart_spec(values, _drawing(values, column, names)),
        data,
        charts.joined(
            written("chart.parts_note"),
            charts.left_out(graders, drawn, most=len(charts.SHAPES)),
            charts.left_out(parts, with_figure, "values", _MOST_VALUES),
        ),
    )


def _drawing(values: Sequence[charts.Datum], column: str, graders: Sequence[str]) -> charts.Spec:
    """Estimates and intervals by value, graders one below the other within each."""
    x = charts.through_zero(charts.bounds_of(values), written("chart.parts_axis"))
    by_grader = charts.nominal("grader", title=written("chart.grader"))
    place = {
        "y": charts.nominal("value", sort=None, title=column, scale={"paddingInner": 0.35}),
        "yOffset": charts.nominal("grader", sort=graders),
        "color": by_grader | {"scale": {"domain": graders, "range": charts.SERIES}},
    }
    shape = {"shape": by_grader | {"scale": {"domain": graders, "range": charts.SHAPES}}}
    estimate = {"x": charts.field("estimate", x)}
    zero = {"data": {"values": [{"zero": 0}]}}
    return {
        "width": 420,
        "height": {"step": 12, "for": "offset"},
        "layer": [
            zero | charts.layer("rule", {"x": charts.field("zero", x)}, color=charts.SOFT),
            charts.layer("rule", place | charts.span("x", x), strokeWidth=1.5),
            charts.layer("point", place | estimate | shape, filled=True, size=45, opacity=1),
        ],
    }


# Groups, on the binary verdict where the rubric has one, else on the categories


def group_layers(figures: RubricFigures) -> Layers:
    """Performance by group against people's consensus, where a group column was named."""
    return Layers(
        answers=_answer(figures), folded=_overview(figures), appendix=_differences(figures)
    )


def _answer(figures: RubricFigures) -> list[list[object]]:
    """The grader and the group on which it falls furthest behind its other groups."""
    binary = _is_binary(figures.everywhere(BALANCED))
    found = figures.everywhere(_DIFFERENCE)
    known = defined(each for each in found if each.subset.endswith(BINARY) == binary)
    if not known:
        return []
    worst = min(known, key=lambda each: each.bounds[1])
    group, grader = worst.subset.removesuffix(BINARY), worst.raters[1]
    return [in_pieces("report.group", grader=grader, group=group, difference=worst)]


def _overview(figures: RubricFigures) -> list[Table]:
    """Tabulate each grader's agreement by group."""
    out: list[Table] = []
    for column, pairs, subsets in _groups(figures):
        rows = [
            (pair[1], [figures.get(BALANCED, *pair, each) for each in subsets]) for pair in pairs
        ]
        what = written("groups.caption", column=column)
        out += figures.table(what, "Grader", list(map(_value, subsets)), rows, count="")
    return out


def _differences(figures: RubricFigures) -> list[Table]:
    """Tabulate every group's difference to the rest."""
    label = entry_for(_DIFFERENCE).label
    out: list[Table] = []
    for column, pairs, subsets in _groups(figures):
        rows: list[FigureRow] = []
        for pair in pairs:
            rows.append((pair[1], None))
            rows += [(_value(each), figures.row([_DIFFERENCE], pair, each)) for each in subsets]
        what = written("groups.differences", column=column)
        out += figures.table(what, "Group", [label], rows, drawn=label)
    return out


def _groups(figures: RubricFigures) -> Iterator[tuple[str, list[tuple[str, str]], list[str]]]:
    """Yield every column of groups with the raters that are compared and its subsets."""
    binary = _is_binary(figures.everywhere(BALANCED))
    for column, found in _by_column(figures.everywhere(BALANCED)).items():
        subsets = dict.fromkeys(each.subset for each in found)
        of_reading = [each for each in subsets if each.endswith(BINARY) == binary]
        yield column, list(dict.fromkeys(each.raters for each in found)), of_reading


def _is_binary(found: list[Figure]) -> bool:
    return any(each.subset.endswith(BINARY) for each in found)


def _by_column(found: Iterable[Figure]) -> dict[str, list[Figure]]:
    by_column: dict[str, list[Figure]] = {}
    for figure in found:
        by_column.setdefault(figure.subset.partition("=")[0], []).append(figure)
    return by_column


def _value(subset: str) -> str:
    return subset.partition("=")[2].removesuffix(BINARY)
