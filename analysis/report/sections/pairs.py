"""Agreement on single units: every pair of raters, groups of raters, categories, parts, groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.slices import BALANCED
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Block, Chart, Paragraph, Table
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure, Key, defined
from evenhand.analysis.report.sections.ceiling import OF_NUMBERS
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    Layers,
    RubricFigures,
    listed,
    pair_title,
    rater_title,
    rows_of,
    sentences,
)
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.evidence import PART
from evenhand.texts import DASH, in_pieces, written

_PANEL = (
    "observed_agreement",
    "cohen_kappa",
    "weighted_kappa_linear",
    "weighted_kappa_quadratic",
    "gwet_ac1",
    "gwet_ac2",
    "brennan_prediger",
)
_INDICES = ("prevalence_index", "bias_index")
_GROUP_PANEL = ("observed_agreement", "fleiss_kappa", *_PANEL[1:])
_ON_PAIRS = ("pair_observed_agreement", "pair_cohen_kappa")
_COUNT_STEPS = [0.01, 0.03, 0.1, 0.25, 0.5]
"""Shares of the largest count: one category often holds most, and the errors matter."""
_KAPPA_STEPS = [0.2, 0.4, 0.6, 0.75, 0.9]
_DIFFERENCE = "group_difference"
_MOST_VALUES = 24


def layers(figures: RubricFigures) -> Layers:
    """Every two raters, groups of raters, and parts of the sample."""
    tables: list[Table] = []
    groups: list[Table] = []
    missing = []
    for subset, reading in READINGS.items():
        alphas, pairs = figures.alphas(subset), figures.pairs(figures.usual(subset), subset)
        statistics = [*_PANEL, *alphas, *OF_NUMBERS, *_INDICES]
        who = [(pair_title(pair), pair) for pair in pairs]
        what = written("pairs.caption", reading=reading)
        tables += figures.panel(what, "Raters", statistics, who, subset)
        statistics = [*_GROUP_PANEL, *alphas, *OF_NUMBERS[:2], _INDICES[0]]
        who = [(GROUPS[name], (name, "")) for name in figures.groups(subset)]
        what = written("pairs.groups", reading=reading)
        of_groups = figures.panel(what, "Group", statistics, who, subset)
        groups += of_groups
        if of_groups and not pairs:
            why = written("pairs.not_listed", rubric=figures.title, reading=reading)
            missing.append(Paragraph(why))
    matrix = _heat_map(figures, tables) or tables
    return Layers(
        answers=[_answer(figures)] if matrix or groups else [],
        folded=_confusions(figures),
        appendix=[*matrix, *missing, *groups, *_on_pairs(figures), *_slices(figures)],
    )


def _answer(figures: RubricFigures) -> list[object]:
    """The two people who agree least and most, and the parts of the sample where graders fail."""
    graders, kappa = figures.graders(), figures.kappa()
    people = [pair for pair in figures.pairs(kappa) if not {*pair} & {*graders}]
    found = [figures.get(kappa, *pair) for pair in people]
    known = defined(found)
    said = in_pieces("report.pair_none")
    if found and not known:
        reasons = [figure.reason.words for figure in found if figure and figure.reason]
        said = in_pieces("report.ceiling_unknown", reason=reasons[0])
    elif len(known) == 1:
        said = in_pieces("report.pair", kappa=known[0])
    elif known:
        high, low = known[0], known[-1]
        first, last = pair_title(low.raters), pair_title(high.raters)
        said = in_pieces("report.pairs", low=low, first=first, high=high, last=last)
    return sentences(said, *_short_in_parts(figures))


def _short_in_parts(figures: RubricFigures) -> Iterator[list[object]]:
    """Yield a sentence for each grader that a verdict finds clearly below people in some part; or
    one that there is none.
    """
    verdicts = [each for each in figures.analysis.verdicts if each["rubric"] == figures.rubric]
    found = figures.everywhere(PART)
    for verdict in verdicts:
        failing = verdict["failing_parts"]
        parts = [
            [f"{figure.subset.removesuffix(BINARY)} (", figure, ")"]
            for figure in found
            if figure.grader == verdict["grader"]
            and figure.subset.removesuffix(BINARY) in failing
            and figure.bounds[2] < 0
        ]
        if parts:
            yield in_pieces("report.parts", grader=verdict["grader"], parts=listed(parts))
    if found and not any(verdict["failing_parts"] for verdict in verdicts):
        yield in_pieces("report.parts_none")


def _on_pairs(figures: RubricFigures) -> list[Table]:
    """The verdict on a pair, where raters labelled its two responses."""
    found = figures.select(_ON_PAIRS[0], ALL_BINARY)
    with_people = [figure for figure in found if figure.rater == "humans"]
    single = [figure for figure in found if figure.rater != "humans" and figure.grader]
    rows = [
        (written("pairs.of_raters"), None),
        *rows_of(single, lambda each: pair_title(each.raters)),
        (written("pairs.with_annotators"), None),
        *rows_of(with_people, lambda each: each.grader),
    ]
    return figures.table(written("pairs.on_pairs"), "Raters", _ON_PAIRS, rows)


def _heat_map(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Kappa of every two raters, people and graders alike; empty where no pair is listed."""
    kappa = figures.kappa()
    pairs = figures.pairs(kappa)
    if not pairs:
        return []
    values: list[charts.Datum] = []
    for pair in pairs:
        figure = figures.get(kappa, *pair)
        if figure is not None:
            first, second = (charts.short(rater_title(rater)) for rater in pair)
            values += [figure.datum(a=first, b=second), figure.datum(a=second, b=first)]
    raters = [charts.short(rater_title(rater)) for rater in figures.raters()]
    undefined = any(each["estimate"] is None for each in values)
    label, rater = entry_for(kappa).label, written("chart.rater")
    grid = charts.shaded(raters, _KAPPA_STEPS, x=rater, y=rater, slanted=True)
    about = {"statistic": label, "reading": READINGS[ALL], "raters": ", ".join(raters)}
    return figures.chart(
        written("chart.heat_map", statistic=label),
        written("chart.heat_map_alt", **about),
        values,
        {"width": {"step": 50}, "height": {"step": 30}} | grid,
        data,
        written("chart.heat_map_note", dash=DASH) if undefined else "",
    )


def _confusions(figures: RubricFigures) -> list[Chart]:
    """Draw a confusion matrix of each grader against people, as shaded counts."""
    categories = list(dict.fromkeys(figure.at for figure in figures.select("prevalence")))
    graders, annotators = figures.graders(), rater_title("humans")
    drawn = graders[: charts.MAX_LISTED]

    def count(key: Key, graded: str) -> Figure | None:
        return figures.by_key(key._replace(at=from_to(key.at, graded)))

    places = [
        (said, graded, figures.key("confusion", "humans", grader, at=said))
        for grader in drawn
        for said in categories
        for graded in categories
    ]
    found = [(*place, figure) for place in places if (figure := count(place[2], place[1]))]
    if not found:
        return []
    values = [
        figure.datum(a=graded, b=said, grader=charts.short(figure.grader))
        for said, graded, _, figure in found
    ]
    most = max(figure.bounds[1] for *_, figure in found)
    steps = [most * share for share in _COUNT_STEPS]
    grid = charts.shaded(categories, steps, x=written("chart.grader"), y=annotators)
    panel = {"width": max(190, 42 * len(categories)), "height": {"step": 28}} | grid
    columns = [(graded, lambda key, graded=graded: count(key, graded)) for graded in categories]
    tables = [
        table
        for grader in drawn
        for table in figures.table(
            written("chart.confusion_table", grader=grader),
            annotators,
            columns,
            [(said, figures.key("confusion", "humans", grader, at=said)) for said in categories],
            count="",
        )
    ]
    return figures.chart(
        written("chart.confusion"),
        written("chart.confusion_alt", graders=", ".join(map(charts.short, drawn))),
        values,
        {"facet": charts.one_for_each("grader", values), "spec": panel},
        tables,
        written("chart.confusion_note"),
        charts.left_out(graders, {figure.grader for *_, figure in found}),
    )


# Slices, on the categories


def _slices(figures: RubricFigures) -> list[Block]:
    """Chart or tabulate graders' agreement with people by the columns asked for, compared with the
    rest of the units.
    """
    statistics = ["observed_agreement", figures.kappa(), CEILING, "slice_difference"]
    by_subset = figures.by_subset("slice_difference").items()
    on_categories = (s for s in by_subset if "=" in s[0] and not s[0].endswith(BINARY))
    out: list[Block] = []
    for column, found in _by_column(each for _, same in on_categories for each in same).items():
        rows = rows_of(
            found, lambda each: _value(each.subset), lambda each: pair_title(each.raters)
        )
        what = written("pairs.parts", column=column)
        tables = figures.table(what, column, statistics, rows)
        out += _slice_plot(figures, column, found, tables) or tables
    return [*out, Paragraph(written("pairs.about_parts"))] if out else []


def _slice_plot(
    figures: RubricFigures, column: str, found: list[Figure], data: list[Table]
) -> list[Chart]:
    """`slice_difference` with its interval, for every value of a column and every grader."""
    graders = figures.by_agreement(dict.fromkeys(figure.grader for figure in found))
    parts = list(dict.fromkeys(_value(figure.subset) for figure in found))
    known = [
        figure
        for figure in found
        if figure.grader in graders[: len(charts.SHAPES)]
        and _value(figure.subset) in parts[:_MOST_VALUES]
        and not figure.reason
    ]
    if not known:
        return []
    values = [
        each.datum(value=charts.short(_value(each.subset)), grader=charts.short(each.grader))
        for each in known
    ]
    drawn = [name for name in graders if any(name == each.grader for each in known)]
    names = [charts.short(name) for name in drawn]
    with_figure = {_value(figure.subset) for figure in known}
    return figures.chart(
        written("chart.parts", column=column),
        written("chart.parts_alt", column=column, graders=", ".join(names)),
        values,
        _drawing(values, column, names),
        data,
        written("chart.parts_note"),
        charts.left_out(graders, drawn, most=len(charts.SHAPES)),
        charts.left_out(parts, with_figure, "values", _MOST_VALUES),
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
    zero = {"x": charts.field("zero", x)}
    return {
        "width": 420,
        "height": {"step": 12, "for": "offset"},
        "layer": [
            charts.line_at(zero, look={"color": charts.SOFT}, zero=0),
            charts.layer("rule", place | charts.span("x", x), strokeWidth=1.5),
            charts.layer("point", place | estimate | shape, size=45, **charts.DOT),
        ],
    }


# Groups, on the binary verdict where the rubric has one, else on the categories


def group_layers(figures: RubricFigures) -> Layers:
    """Performance by group against people's consensus, where a group column was named; then every
    group's difference to the rest.
    """
    found = figures.everywhere(BALANCED)
    binary = any(each.subset.endswith(BINARY) for each in found)
    tables: list[Table] = []
    differences: list[Table] = []
    for column, of_column in _by_column(found).items():
        groups = dict.fromkeys(each.subset for each in of_column)
        subsets = [each for each in groups if each.endswith(BINARY) == binary]
        graders = {each.raters: each for each in of_column}.values()
        tables += figures.table(
            written("groups.caption", column=column),
            "Grader",
            [(_value(subset), {"subset": subset}) for subset in subsets],
            rows_of(graders, lambda each: each.grader),
            count="",
        )
        rows = [
            row
            for each in graders
            for row in (
                (each.grader, None),
                *((_value(subset), each.key._replace(subset=subset)) for subset in subsets),
            )
        ]
        what = written("groups.differences", column=column)
        differences += figures.table(what, "Group", [_DIFFERENCE], rows, drawn=True)
    found = figures.everywhere(_DIFFERENCE)
    known = defined(each for each in found if each.subset.endswith(BINARY) == binary)
    # The grader and the group on which it falls furthest behind its other groups.
    answers = [
        in_pieces(
            "report.group",
            grader=worst.grader, group=worst.subset.removesuffix(BINARY), difference=worst,
        )
        for worst in sorted(known, key=lambda each: each.bounds[1])[:1]
    ]  # fmt: skip
    return Layers(answers=answers, folded=tables, appendix=differences)


def _by_column(found: Iterable[Figure]) -> dict[str, list[Figure]]:
    by_column: dict[str, list[Figure]] = {}
    for figure in found:
        by_column.setdefault(figure.subset.partition("=")[0], []).append(figure)
    return by_column


def _value(subset: str) -> str:
    return subset.partition("=")[2].removesuffix(BINARY)
