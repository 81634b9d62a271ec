"""Agreement on single units for every pair of raters, for groups of raters, by category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Chart, Paragraph, Table
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure, defined
from evenhand.analysis.report.sections.ceiling import OF_NUMBERS
from evenhand.analysis.report.sections.parts import slices
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    Layers,
    RubricFigures,
    labels,
    listed,
    pair_title,
    rater_title,
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


def layers(figures: RubricFigures) -> Layers:
    """Every two raters, groups of raters, and parts of the sample."""
    pairs, groups, missing = [], [], []
    for subset, reading in READINGS.items():
        pairs += _pairs(figures, subset)
        of_groups = _groups(figures, subset)
        if of_groups and not figures.pairs(figures.usual(subset), subset):
            why = written("pairs.not_listed", rubric=figures.title, reading=reading)
            missing.append(Paragraph(why))
        groups += of_groups
    matrix = _heat_map(figures, pairs) or pairs
    return Layers(
        answers=[_answer(figures)] if matrix or groups else [],
        folded=_confusions(figures),
        appendix=[*matrix, *missing, *groups, *_on_pairs(figures), *slices(figures)],
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
            if figure.raters[1] == verdict["grader"]
            and figure.subset.removesuffix(BINARY) in failing
            and figure.bounds[2] < 0
        ]
        if parts:
            yield in_pieces("report.parts", grader=verdict["grader"], parts=listed(parts))
    if found and not any(verdict["failing_parts"] for verdict in verdicts):
        yield in_pieces("report.parts_none")


def _pairs(figures: RubricFigures, subset: str) -> list[Table]:
    """Tabulate agreement of every pair of raters that share units."""
    statistics = [*_PANEL, *figures.alphas(subset), *OF_NUMBERS, *_INDICES]
    pairs = figures.pairs(figures.usual(subset), subset)
    what = written("pairs.caption", reading=READINGS[subset])
    who = [(pair_title(pair), pair) for pair in pairs]
    return figures.panel(what, "Raters", statistics, who, subset)


def _groups(figures: RubricFigures, subset: str) -> list[Table]:
    statistics = [*_GROUP_PANEL, *figures.alphas(subset), *OF_NUMBERS[:2], _INDICES[0]]
    what = written("pairs.groups", reading=READINGS[subset])
    who = [(GROUPS[name], (name, "")) for name in figures.groups(subset)]
    return figures.panel(what, "Group", statistics, who, subset)


def _on_pairs(figures: RubricFigures) -> list[Table]:
    """The verdict on a pair, where raters labelled its two responses."""

    def row(raters: tuple[str, str]) -> list[Figure | None]:
        return figures.row(_ON_PAIRS, raters, ALL_BINARY)

    found = figures.select(_ON_PAIRS[0], ALL_BINARY)
    with_people = [figure.raters for figure in found if figure.raters[0] == "humans"]
    rows = [
        (written("pairs.of_raters"), None),
        *((pair_title(pair), row(pair)) for pair in figures.pairs(_ON_PAIRS[0], ALL_BINARY)),
        (written("pairs.with_annotators"), None),
        *((raters[1], row(raters)) for raters in with_people),
    ]
    return figures.table(written("pairs.on_pairs"), "Raters", labels(_ON_PAIRS), rows)


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
        charts.chart_spec(values, {"width": {"step": 50}, "height": {"step": 30}} | grid),
        data,
        written("chart.heat_map_note", dash=DASH) if undefined else "",
    )


def _confusions(figures: RubricFigures) -> list[Chart]:
    """Draw a confusion matrix of each grader against people, as shaded counts."""
    categories = list(dict.fromkeys(figure.at for figure in figures.select("prevalence")))
    graders, annotators = figures.graders(), rater_title("humans")
    cells = {
        (grader, said, graded): figures.get(
            "confusion", "humans", grader, ALL, from_to(said, graded)
        )
        for grader in graders[: charts.MAX_LISTED]
        for said in categories
        for graded in categories
    }
    found = {place: figure for place, figure in cells.items() if figure is not None}
    if not found:
        return []
    values = [
        figure.datum(a=graded, b=said, grader=charts.short(grader))
        for (grader, said, graded), figure in found.items()
    ]
    most = max(figure.bounds[1] for figure in found.values())
    steps = [most * share for share in _COUNT_STEPS]
    grid = charts.shaded(categories, steps, x=written("chart.grader"), y=annotators)
    panel = {"width": max(190, 42 * len(categories)), "height": {"step": 28}} | grid
    tables = [
        table
        for grader in graders[: charts.MAX_LISTED]
        for table in figures.table(
            written("chart.confusion_table", grader=grader),
            annotators,
            categories,
            [(said, [cells[grader, said, graded] for graded in categories]) for said in categories],
            count="",
        )
    ]
    return figures.chart(
        written("chart.confusion"),
        written(
            "chart.confusion_alt",
            graders=", ".join(map(charts.short, graders[: charts.MAX_LISTED])),
        ),
        charts.chart_spec(values, {"facet": charts.one_for_each("grader", values), "spec": panel}),
        tables,
        charts.joined(
            written("chart.confusion_note"),
            charts.left_out(graders, {grader for grader, *_ in found}),
        ),
    )
