"""Graders compared with annotators: the verdicts, agreement against the human ceiling and against
the price, and the compact panel that a terminal shows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from evenhand.analysis.people.ceiling import CEILING
from evenhand.analysis.people.comparison import MAJORITY, REFERENCE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import Cell, Chart, Part, Row, Table
from evenhand.analysis.report.figures import ALL, ALL_BINARY, Figure, Key, defined, grouped
from evenhand.analysis.report.source import (
    GROUPS,
    READINGS,
    ReportContext,
    RubricFigures,
    Source,
    pair_title,
    rater_title,
    sentences,
)
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import Verdict, limits_of
from evenhand.analysis.verdicts.ranking import Candidate, recommendations
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.texts import DASH, in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

TextTable = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows of a table as text."""
_CONFUSION = ("true_positive", "false_negative", "false_positive", "true_negative")
_PEOPLE = "people"
_SAID = ("kind", "rater", "low", "estimate", "high")


# The first page: advice on each rubric, every verdict with its reason, and the limits


def verdicts_section(source: Source) -> blocks.ReportSection:
    """The answer for each rubric, a cell for each rubric and grader, and all verdicts in full."""
    verdicts = source.analysis.verdicts
    page = _first(source) if verdicts else blocks.Paragraph(written("first.no_verdict"))
    before = blocks.items(written("first.before"), (*limits_of(verdicts), *source.notes))
    return blocks.ReportSection("verdicts", written("first.title"), (page, *before))


def _first(source: Source) -> blocks.FirstPage:
    """Advice with people's agreement with one another; how many people labelled, and when."""
    advice = []
    for found in recommendations(source.ranking):
        figures = source.on(found.rubric)
        agreed = (figures.get(figures.kappa(on), "humans", "", on) for on in (ALL, ALL_BINARY))
        people, sample = next((each for each in agreed if each and not each.reason), None), ""
        if people:
            noun = source.analysis.cluster_nouns.get(found.rubric, "cluster")
            sample = written(
                "first.units" if noun == "unit" else "first.sample",
                units=people.n_units, clusters=people.n_clusters, noun=noun,
            )  # fmt: skip
        cell = people.cell if people else None
        advice.append(blocks.Advice(figures.title, found.sentence, cell, sample))
    facts = source.context.facts
    said = []
    if number := facts.get("human raters"):
        said.append(written("first.one_person" if number == 1 else "first.people", people=number))
    if when := facts.get("labels given"):
        said.append(written("first.dates", when=when))
    cards = verdict_cards(source)
    rubrics = tuple(dict.fromkeys(card.rubric for card in cards))
    by_place = {(card.verdict["grader"], card.rubric): card for card in cards}
    return blocks.FirstPage(
        tuple(advice),
        tuple(said),
        written("first.legend_reference" if source.analysis.decision.reference else "first.legend"),
        rubrics,
        tuple(
            (grader, tuple(by_place.get((grader, rubric)) for rubric in rubrics))
            for grader in dict.fromkeys(grader for grader, _ in by_place)
        ),
        cards,
    )


def verdict_cards(source: Source) -> tuple[blocks.Card, ...]:
    """Every verdict, in the order of the analysis."""
    return tuple(_card(source, verdict) for verdict in source.analysis.verdicts)


def _card(source: Source, verdict: Verdict) -> blocks.Card:
    figures = [source.figures.by_key(tuple(key)) for key in verdict["evidence"]]
    kappas = [source.figures.by_key(tuple(key)) for key in verdict["kappas"]]
    own, people = [*(each.cell if each else None for each in kappas), None, None][:2]
    price = source.on(verdict["rubric"]).get(PRICE, "", verdict["grader"])
    return blocks.Card(
        verdict,
        TITLES[verdict["verdict"]],
        source.context.title_of(verdict["rubric"]),
        (own, people),
        price.cell if price and not price.reason else None,
        tuple(_evidence(figure) for figure in figures if figure is not None),
    )


def _evidence(figure: Figure) -> tuple[str, blocks.Cell]:
    other, label = rater_title(figure.grader), entry_for(figure.statistic).label
    verdict = written("naming.binary_verdict") if figure.subset == ALL_BINARY else ""
    parts = (other if other.startswith("Baseline") else "", label, verdict)
    return ", ".join(filter(None, parts)), figure.cell


# Agreement with annotators


def layers(figures: RubricFigures) -> Part:
    """Graders and baselines compared with annotators."""
    tables = figures.table("ceiling.caption")
    drawn, prices = forest(figures, tables), price_front(figures)
    return Part(
        answers=[_answer(figures)] if tables else [],
        open=[*drawn, *rates_table(figures)],
        folded=prices if drawn else [*tables, *prices],
    )


def _answer(figures: RubricFigures) -> list[object]:
    """People's kappa with each other, and the two graders that are closest to it and furthest."""
    # Graders that give probabilities alone are compared on the binary verdict.
    subset = ALL if figures.graders() else ALL_BINARY
    kappa = figures.kappa(subset)
    people, said = figures.get(kappa, "humans", "", subset), []
    if people and people.reason:
        said = in_pieces("report.ceiling_unknown", reason=people.reason.words)
    elif people:
        said = in_pieces("report.ceiling", people=people)
    compared = (figures.get(kappa, "humans", name, subset) for name in figures.graders(subset))
    graders = defined(compared)
    if not graders:
        return sentences(said, in_pieces("report.ceiling_no_grader"))
    best, worst = graders[0], graders[-1]
    about = {"best": best, "first": best.grader, "worst": worst, "last": worst.grader}
    if best is worst:
        return sentences(said, in_pieces("report.ceiling_grader", name=best.grader, best=best))
    return sentences(said, in_pieces("report.ceiling_graders", **about))


# Forest plot


def forest(
    figures: RubricFigures, data: Iterable[Table] = (), readings: Collection[str] = tuple(READINGS)
) -> list[Chart]:
    """Kappa with annotators of each grader and baseline, the largest first, on the categories and
    on the binary verdict (or one of these `readings`), with annotators' kappa with one another;
    empty where no grader shares items with annotators.

    Each row is drawn against the ceiling on its own items: the band of all items, or a line where
    it has a label for some of them only. Where both readings are the same, as on a yes/no rubric,
    they are drawn once, on the categories.
    """
    found = {subset: _reading(figures, subset) for subset in READINGS}
    # What each says, whatever it is called.
    categories, binary = ([[d[key] for key in _SAID] for d in each] for each in found.values())
    if categories == binary:
        found[ALL_BINARY] = []
    values = [datum for subset in readings for datum in found[subset]]
    if all(datum["kind"] == _PEOPLE for datum in values):
        return []
    together = [datum for datum in values if datum["kind"] == _PEOPLE]
    people = "; ".join(f"{datum['reading']} {datum['label']}" for datum in together)
    fewer = any(datum["ceiling"] is not None and datum["ceiling_low"] is None for datum in values)
    hollow = any(datum["kind"] == "baseline" for datum in values)
    graders = list(dict.fromkeys(g for each in readings for g in figures.graders(each)))
    drawn = ("low", "estimate", "high", "ceiling", "ceiling_low", "ceiling_high")
    bounds = (datum[name] for datum in values for name in drawn)
    x = charts.through_zero(bounds)
    # Names are above the lines, not to their left, so that the figure fits a phone.
    names = {
        reading: [datum["who"] for datum in same if datum["kind"] != _PEOPLE]
        for reading, same in grouped(values, lambda datum: datum["reading"]).items()
    }
    panels = [
        charts.filled("forest_panel", reading=reading, x=x, names=names[reading])["spec"]
        for reading in names
    ]
    return figures.chart(
        "forest", values, data,
        written("chart.forest_band") if people else "",
        written("chart.forest_fewer") if fewer else "",
        written("chart.forest_baselines") if hollow else "",
        charts.left_out(graders, {str(datum["rater"]) for datum in values}),
        caption=written("chart.forest_ceiling" if people else "chart.forest"),
        alt=written("chart.forest_alt_ceiling" if people else "chart.forest_alt", figures=people),
        panels=panels,
    )  # fmt: skip


def _reading(figures: RubricFigures, subset: str) -> list[charts.Datum]:
    kappa = figures.kappa(subset)
    people = figures.get(kappa, "humans", "", subset)
    people = None if people is None or people.reason else people
    kinds = dict.fromkeys(figures.graders(subset)[: charts.MAX_LISTED], "grader")
    kinds |= dict.fromkeys(BASELINES, "baseline")
    found = [(_PEOPLE, people, "")]
    for name, kind in kinds.items():
        found.append((kind, figures.get(kappa, "humans", name, subset), name))
    return [
        figure.datum(
            kind=kind,
            rater=name,
            who=charts.short(rater_title(name)) if name else None,
            reading=f"{entry_for(kappa).label} {READINGS[subset]}",
            label=figure.text,
            **_ceiling(figures, figure, people),
        )
        for kind, figure, name in found
        if figure is not None
    ]


def _ceiling(
    figures: RubricFigures, figure: Figure, people: Figure | None
) -> dict[str, float | None]:
    """Return annotators' kappa with one another on the items of a figure, with its interval where
    these are all items: intervals of others are not computed.
    """
    low = ceiling = high = None
    apart = figures.get(CEILING, *figure.raters, figure.subset)
    if people is not None and figure is not people:
        same = figure.n_units >= people.n_units
        if apart is not None and not apart.reason:
            ceiling = figure.bounds[1] - apart.bounds[1]
            same = math.isclose(ceiling, people.bounds[1], abs_tol=1e-9)
        if same:
            low, ceiling, high = (None if math.isnan(each) else each for each in people.bounds)
    return {"ceiling": ceiling, "ceiling_low": low, "ceiling_high": high}


# Price against agreement


def price_front(figures: RubricFigures) -> list[Chart]:
    """Draw every grader with a known price, by price and by the difference from people that its
    verdict rests on, and the Pareto front of both; empty with fewer than two such graders.
    """
    candidates = figures.source.ranking.get(figures.rubric, ())
    ranked = sorted(candidates, key=lambda each: each.agreement, reverse=True)
    priced = [each for each in ranked if math.isfinite(each.usd) and math.isfinite(each.agreement)]
    drawn = priced[: charts.MAX_LISTED]
    if len(drawn) < 2:
        return []
    values: list[charts.Datum] = []
    rows = []
    for each in drawn:
        if each.difference and each.price:
            difference, price = map(figures.of_row, (each.difference, each.price))
            grader = each.verdict["grader"]
            about = {"price": price.bounds[1], "price_row": price.line, "front": each.best_buy}
            values.append(difference.datum(grader=charts.short(grader), **about))
            rows.append((grader, difference))

    def on_reading(key: Key, *, subset: str) -> Figure | None:
        return figures.by_key(key) if key.subset == subset else None

    columns = [
        (written("chart.price_difference_on", reading=reading), partial(on_reading, subset=subset))
        for subset, reading in READINGS.items()
    ]
    unpriced = _graders([each for each in ranked if each not in priced])
    margin = -figures.analysis.settings.margin
    names = [datum["grader"] for datum in values]
    return figures.chart(
        "price", values, figures.table("chart.price_table", rows, columns),
        charts.left_out(_graders(priced), _graders(drawn)),
        written("chart.price_missing", graders=", ".join(unpriced)) if unpriced else "",
        graders=[charts.short(name) for name in _graders(drawn)],
        x=charts.through_zero(datum["price"] for datum in values),
        y=charts.through_zero([*charts.bounds_of(values), margin]), margin=margin, names=names,
        colours=(charts.SERIES + charts.SERIES)[: len(names)],
        shapes=(charts.SHAPES + charts.SHAPES[1:] + charts.SHAPES[:1])[: len(names)],
    )  # fmt: skip


def _graders(candidates: Sequence[Candidate]) -> list[str]:
    return [each.verdict["grader"] for each in candidates]


# The panel of a terminal, and tables of rates that the report has, too


def render_table_text(analysis: Analysis, context: ReportContext) -> list[TextTable]:
    """(title, columns, rows) for each rubric and reading: groups, pairs of raters, graders with
    people, baselines; then graders' rates against the majority, and the counts behind them. Cells
    are text, the first column names the raters. Verdicts are sentences of their own
    (`analysis.verdicts.judge`). Undefined cells hold a dash, and the title gives the reason.
    """
    source = Source.of(analysis, context)
    found: list[Table] = []
    for figures in source.rubrics:
        first, *others = (_panel(figures, subset) for subset in READINGS)
        found += first
        for panel in others:
            # With two options the binary verdict is the label: once is enough.
            if [_as_text(table)[1:] for table in panel] != [_as_text(table)[1:] for table in first]:
                found += panel
        found += [*rates_table(figures), *confusion_table(figures)]
    return [_as_text(replace(each, caption=source.marked(each.caption))) for each in found]


def _panel(figures: RubricFigures, subset: str) -> list[Table]:
    who = [(GROUPS[name], (name, "")) for name in figures.groups(subset) if name != "all"]
    pairs = figures.pairs(figures.usual(subset), subset)
    pairs += [("humans", name) for name in (*figures.graders(subset), *BASELINES)]
    who += [(pair_title(pair), pair) for pair in pairs]
    return figures.table("naming.categories", who, on=subset, caption=READINGS[subset])


def rates_table(figures: RubricFigures) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary verdict."""
    reference = figures.analysis.decision.reference
    names = list(REFERENCE if reference else MAJORITY)
    graders = (figure.grader for figure in figures.select(names[0], ALL_BINARY))
    who = [(grader, (reference or "humans", grader)) for grader in graders]
    whom = reference or written("ceiling.majority")
    return figures.table("ceiling.rates", who, names, whom=whom)


def confusion_table(figures: RubricFigures) -> list[Table]:
    """Tabulate how many units people's majority, or the reference, and each grader affirm: a
    confusion matrix in a row. Nothing where there is no binary verdict, or units are weighted, so
    that a rate is no ratio of counts.
    """
    reference = figures.analysis.decision.reference
    affirmed, other = REFERENCE if reference else MAJORITY
    if figures.select("effective_clusters"):
        return []
    rows = []
    for positive in figures.select(affirmed, ALL_BINARY):
        if negative := figures.by_key(positive.key._replace(statistic=other)):
            # How many units the grader labels as most people do, and how many not.
            hit, spared = (
                round(each.bounds[1] * each.n_units) if each.n_units else 0
                for each in (positive, negative)
            )
            missed, wrong = positive.n_units - hit, negative.n_units - spared
            cells = (Cell(str(each)) for each in (hit, missed, wrong, spared))
            rows.append(Row(positive.grader, tuple(cells)))
    caption = written("ceiling.confusion", whom=reference or written("ceiling.most"))
    columns = tuple(written(f"ceiling.{each}") for each in _CONFUSION)
    return [Table(figures.caption(caption), "Who", columns, tuple(rows))] if rows else []


def _as_text(table: Table) -> TextTable:
    """The table with the reasons for undefined cells in its title: they have no room in a cell."""
    cells = [cell for row in table.rows for cell in row.cells[1:] if cell.text == DASH]
    title, reasons = table.caption, "; ".join(dict.fromkeys(cell.reason for cell in cells))
    if reasons:
        title = written("naming.undefined", title=title, dash=DASH, reasons=reasons)
    rows = [
        [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
        for row in table.rows
    ]
    return title, [table.stub, *table.columns], rows
