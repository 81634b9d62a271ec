"""Graders compared with annotators: the verdicts, agreement against the human ceiling and against
the price, and the compact panel that a terminal shows; and their audits: biases that shift graders'
labels but not people's, and texts that manipulate graders.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.analysis.bias.audit import (
    BOUND,
    PLANNED,
    SCREENED,
    Finding,
    findings,
    screening_sentence,
)
from evenhand.analysis.injection import UNSCORED, audits, named
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.comparison import MAJORITY, REFERENCE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import Chart, Items, Part, Table, items, with_lines
from evenhand.analysis.report.source import (
    ALL,
    ALL_BINARY,
    GROUPS,
    SUBSET_NAMES,
    Column,
    Figure,
    Key,
    ReportContext,
    RowSpec,
    RubricFigures,
    Source,
    distinct_rows,
    group_by,
    join_listed,
    join_sentences,
    largest_first,
    lines_of,
    pair_title,
    rater_title,
    rows_of,
)
from evenhand.analysis.results import BASELINES, sample_of
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.judge import Candidate, best_first, limits_of, recommendations
from evenhand.analysis.verdicts.wording import TITLES
from evenhand.study.tables.ratings import LONG_PLACEBO, PLACEBO
from evenhand.texts import DASH, in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis


TextTable = tuple[str, list[str], list[list[str]]]
"""Title, columns and rows of a table as text."""
_PEOPLE = "people"


def verdicts_section(source: Source) -> blocks.ReportSection:
    """The answer for each rubric, a cell for each rubric and grader, and all verdicts in full."""
    verdicts = source.analysis.verdicts
    page = _first(source) if verdicts else blocks.Paragraph(written("first.no_verdict"))
    before = blocks.items(written("first.before"), (*limits_of(verdicts), *source.notes))
    return blocks.ReportSection("verdicts", written("first.title"), (page, *before))


def _first(source: Source) -> blocks.FirstPage:
    """Advice with people's agreement with one another; how many people labelled, and when."""
    advice = []
    for recommended in recommendations(source.ranking):
        figures = source.on(recommended.rubric)
        agreed = (figures.get(figures.kappa(on), "humans", "", on) for on in (ALL, ALL_BINARY))
        people, sample = next((row for row in agreed if row and not row.reason), None), ""
        if people:
            noun = source.analysis.cluster_nouns.get(recommended.rubric, "cluster")
            size = {"n_units": people.n_units, "n_clusters": people.n_clusters}
            sample = sample_of(size, noun)
        cell = people.cell if people else None
        advice.append(blocks.Advice(figures.title, recommended.sentence, cell, sample))
    facts, described = source.context.facts, []
    if number := facts.get("annotators"):
        one = number == 1
        described.append(written("first.one_person" if one else "first.people", people=number))
    if when := facts.get("labels given"):
        described.append(written("first.dates", when=when))
    cards = verdict_cards(source)
    rubrics = tuple(dict.fromkeys(card.rubric for card in cards))
    by_place = {(card.verdict["grader"], card.rubric): card for card in cards}
    graders = best_first(source.ranking)
    return blocks.FirstPage(
        tuple(advice),
        tuple(described),
        written("first.legend_reference" if source.analysis.decision.reference else "first.legend"),
        rubrics,
        tuple((name, tuple(by_place.get((name, of)) for of in rubrics)) for name in graders),
        cards,
    )


def verdict_cards(source: Source) -> tuple[blocks.Card, ...]:
    """Return a card for every verdict, in the order of the analysis."""
    cards = []
    for verdict in source.analysis.verdicts:
        evidence = [source.figures.get(tuple(key)) for key in verdict["evidence"]]
        kappas = [source.figures.get(tuple(key)) for key in verdict["kappas"]]
        grader, people = [*(kappa.cell if kappa else None for kappa in kappas), None, None][:2]
        price = source.on(verdict["rubric"]).get(PRICE, "", verdict["grader"])
        card = blocks.Card(
            verdict,
            TITLES[verdict["verdict"]],
            source.context.title_of(verdict["rubric"]),
            (grader, people),
            price.cell if price and not price.reason else None,
            tuple(_evidence(figure) for figure in evidence if figure is not None),
        )
        cards.append(card)
    return tuple(cards)


def _evidence(figure: Figure) -> tuple[str, blocks.Cell]:
    other, label = rater_title(figure.grader), entry_for(figure.statistic).label
    verdict = written("naming.binary_verdict") if figure.subset == ALL_BINARY else ""
    parts = (other if other.startswith("Baseline") else "", label, verdict)
    return ", ".join(filter(None, parts)), figure.cell


def ceiling_part(figures: RubricFigures) -> Part:
    """Graders and baselines compared with annotators."""
    tables = figures.table("ceiling.caption")
    drawn, prices = forest(figures, tables), price_front(figures)
    folded = prices if drawn else [*tables, *prices]
    return Part([_answer(figures)] if tables else [], [*drawn, *rates_table(figures)], folded)


def _answer(figures: RubricFigures) -> list[object]:
    """People's kappa with each other, and the two graders that are closest to it and furthest."""
    # Graders that give probabilities alone are compared on the binary label.
    subset = ALL if figures.graders() else ALL_BINARY
    kappa = figures.kappa(subset)
    people, sentence = figures.get(kappa, "humans", "", subset), []
    if people and people.reason:
        sentence = in_pieces("report.ceiling_unknown", reason=people.reason.words)
    elif people:
        sentence = in_pieces("report.ceiling", people=people)
    compared = (figures.get(kappa, "humans", name, subset) for name in figures.graders(subset))
    if not (graders := largest_first(compared)):
        return join_sentences(sentence, in_pieces("report.ceiling_no_grader"))
    best, worst = graders[0], graders[-1]
    if best is worst:
        return join_sentences(
            sentence, in_pieces("report.ceiling_grader", name=best.grader, best=best)
        )
    about = {"best": best, "first": best.grader, "worst": worst, "last": worst.grader}
    return join_sentences(sentence, in_pieces("report.ceiling_graders", **about))


def forest(
    figures: RubricFigures,
    data: Iterable[Table] = (),
    readings: Collection[str] = tuple(SUBSET_NAMES),
) -> list[Chart]:
    """Kappa with annotators of each grader and baseline, the largest first, on the categories and
    on the binary label (or one of these `readings`), with annotators' kappa with one another;
    empty where no grader shares items with annotators.

    Each row is drawn against the ceiling, the band of annotators' kappa on all items. Where both
    readings are the same, as on a yes/no rubric, they are drawn once, on the categories.
    """
    plots = {subset: _reading(figures, subset) for subset in SUBSET_NAMES}
    compared = ("kind", "rater", "low", "estimate", "high")
    categories, binary = ([[d[key] for key in compared] for d in plot] for plot in plots.values())
    if categories == binary:
        plots[ALL_BINARY] = []
    values = [datum for subset in readings for datum in plots[subset]]
    if all(datum["kind"] == _PEOPLE for datum in values):
        return []
    together = [datum for datum in values if datum["kind"] == _PEOPLE]
    people = "; ".join(f"{datum['reading']} {datum['label']}" for datum in together)
    hollow = any(datum["kind"] == "baseline" for datum in values)
    graders = list(dict.fromkeys(g for view in readings for g in figures.graders(view)))
    drawn = ("low", "estimate", "high", "ceiling", "ceiling_low", "ceiling_high")
    x = charts.axis_through_zero(datum[name] for datum in values for name in drawn)
    panels = []
    for reading, same in group_by(values, lambda datum: datum["reading"]).items():
        # Names are above the lines, not to their left, so that the figure fits a phone.
        names = [datum["who"] for datum in same if datum["kind"] != _PEOPLE]
        panels.append(
            charts.fill_template("forest_panel", reading=reading, x=x, names=names)["spec"]
        )
    return figures.chart(
        "forest", values, data,
        written("chart.forest_band") if people else "",
        written("chart.forest_baselines") if hollow else "",
        charts.omitted_note(graders, {str(datum["rater"]) for datum in values}),
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
    drawn = [(_PEOPLE, people, "")]
    drawn += [(kinds[e], figures.get(kappa, "humans", e, subset), e) for e in kinds]
    reading = f"{entry_for(kappa).label} {SUBSET_NAMES[subset]}"
    values: list[charts.Datum] = []
    for kind, figure, name in drawn:
        if figure is not None:
            who = charts.shorten(rater_title(name)) if name else None
            about: charts.Datum = {"kind": kind, "rater": name, "who": who, "reading": reading}
            ends = people.bounds if people and name else [math.nan] * 3
            for end, bound in zip(("ceiling_low", "ceiling", "ceiling_high"), ends, strict=True):
                about[end] = None if math.isnan(bound) else bound
            values.append(figure.datum(label=figure.text, **about))
    return values


def price_front(figures: RubricFigures) -> list[Chart]:
    """Draw every grader with a known price, by price and by the difference from people that its
    verdict rests on, and the Pareto front of both; empty with fewer than two such graders.
    """
    candidates = figures.source.ranking.get(figures.rubric, ())
    ranked = sorted(candidates, key=lambda grader: grader.agreement, reverse=True)
    priced = [each for each in ranked if math.isfinite(each.usd) and math.isfinite(each.agreement)]
    if len(drawn := priced[: charts.MAX_LISTED]) < 2:
        return []
    values: list[charts.Datum] = []
    rows = []
    for grader in drawn:
        if grader.difference and grader.price:
            difference, price = map(figures.of_row, (grader.difference, grader.price))
            rows.append((grader.verdict["grader"], difference))
            about = {"price": price.bounds[1], "price_row": price.line, "front": grader.best_buy}
            values.append(difference.datum(grader=charts.shorten(rows[-1][0]), **about))

    def on_reading(key: Key, *, subset: str) -> Figure | None:
        return figures.by_key(key) if key.subset == subset else None

    columns = [
        (written("chart.price_difference_on", reading=reading), partial(on_reading, subset=subset))
        for subset, reading in SUBSET_NAMES.items()
    ]
    unpriced = _graders([grader for grader in ranked if grader not in priced])
    margin = -figures.analysis.settings.margin
    names = [datum["grader"] for datum in values]
    return figures.chart(
        "price", values, figures.table("chart.price_table", rows, columns),
        charts.omitted_note(_graders(priced), _graders(drawn)),
        written("chart.price_missing", graders=", ".join(unpriced)) if unpriced else "",
        graders=[charts.shorten(name) for name in _graders(drawn)],
        x=charts.axis_through_zero(datum["price"] for datum in values),
        y=charts.axis_through_zero([*charts.bounds_of(values), margin]), margin=margin, names=names,
        colours=(charts.SERIES + charts.SERIES)[: len(names)],
        shapes=(charts.SHAPES + charts.SHAPES[1:] + charts.SHAPES[:1])[: len(names)],
    )  # fmt: skip


def _graders(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.verdict["grader"] for candidate in candidates]


# The panel of a terminal, and tables of rates that the report has, too


def render_table_text(analysis: Analysis, context: ReportContext) -> list[TextTable]:
    """(title, columns, rows) for each rubric and reading: groups, pairs of raters, graders with
    people, baselines; then graders' rates against the majority. Cells are text, the first column
    names the raters. Verdicts are sentences of their own (`analysis.verdicts.judge`). Undefined
    cells hold a dash, and the title gives the reason.
    """
    source = Source(analysis, context)
    tables: list[Table] = []
    for figures in source.rubrics:
        first, binary = (_panel(figures, subset) for subset in SUBSET_NAMES)
        tables += first
        # With two options the binary label is the label: once is enough.
        if [_as_text(table)[1:] for table in binary] != [_as_text(table)[1:] for table in first]:
            tables += binary
        tables += rates_table(figures)
    return [_as_text(replace(table, caption=source.marked(table.caption))) for table in tables]


def _panel(figures: RubricFigures, subset: str) -> list[Table]:
    who = [(GROUPS[name], (name, "")) for name in figures.groups(subset) if name != "all"]
    pairs = figures.pairs(figures.general_statistic(subset), subset)
    pairs += [("humans", name) for name in (*figures.graders(subset), *BASELINES)]
    who += [(pair_title(pair), pair) for pair in pairs]
    return figures.table("naming.categories", who, on=subset, caption=SUBSET_NAMES[subset])


def rates_table(figures: RubricFigures) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary label."""
    reference = figures.analysis.decision.reference
    names = list(REFERENCE if reference else MAJORITY)
    graders = (figure.grader for figure in figures.select(names[0], ALL_BINARY))
    who = [(grader, (reference or "humans", grader)) for grader in graders]
    reader = reference or written("ceiling.majority")
    return figures.table("ceiling.rates", who, names, whom=reader)


def _as_text(table: Table) -> TextTable:
    """Write a table with the reasons for undefined cells in its title: a cell has no room."""
    cells = [cell for row in table.rows for cell in row.cells[1:] if cell.text == DASH]
    title = table.caption
    if reasons := "; ".join(dict.fromkeys(cell.reason for cell in cells)):
        title = written("naming.undefined", title=title, dash=DASH, reasons=reasons)
    rows = [
        [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
        for row in table.rows
    ]
    return title, [table.stub, *table.columns], rows


# Audits

_DETAILS = ("bias_order_flips", "bias_order_first")
_PLACEBOS = {PLACEBO: written("injection.placebo"), LONG_PLACEBO: written("injection.placebo_long")}
_STATUSES = {name: name for name in ("pulled", "knocked_off", "silenced", "withstands")}
_STATUSES |= {"inconclusive": "open"}
"""Answer to every status of the injection audit."""


def bias_part(figures: RubricFigures) -> Part:
    """Sentences first, then the figures of every question, then the parts of the sample."""
    audited = findings([row for row in figures.analysis.rows if row["rubric"] == figures.rubric])

    def p(key: Key) -> Figure | None:
        row = figures.by_key(key._replace(statistic=f"{key.statistic}_p"))
        return row and row.without("uncorrected_p")  # which is in results.csv

    def questions(statistics: Sequence[str]) -> list[RowSpec]:
        rows = figures.select_all(*statistics)
        return rows_of(rows, _heading, lambda row: entry_for(row.statistic).name, by="statistic")

    shift, p_value = (written(f"bias_section.{name}") for name in ("shift", "p"))
    columns: list[tuple[str, Column]] = [(shift, {}), (p_value, p)]
    screened = figures.select_all(*SCREENED)
    by_part = distinct_rows(screened, "subset", lambda subset: subset.removesuffix(BINARY))
    graders = dict.fromkeys(figure.grader for figure in screened)
    of_graders = [(grader, {"rater_b": grader}) for grader in graders]
    planned = figures.table("bias_section.caption", questions(PLANNED), columns)
    details = figures.table("bias_section.details", questions(_DETAILS))
    parts = figures.table("bias_section.parts", by_part, of_graders)
    answers = [_biases(figures, audited)] if audited else []
    return Part(answers, folded=[*_found(figures, audited), *planned], appendix=[*details, *parts])


def _biases(figures: RubricFigures, every: list[Finding]) -> list[object]:
    """The biases that were found, those beyond the bound first; or the widest interval."""
    biases = [bias for bias in every if bias.status == "found"]
    large = [figures.of_row(bias.row) for bias in biases if bias.beyond(BOUND)]
    small = [figures.of_row(bias.row) for bias in biases if not bias.beyond(BOUND)]
    if biases:
        beyond = in_pieces("report.bias", found=_shifts(large)) if large else []
        within = in_pieces("report.bias_small", found=_shifts(small)) if small else []
        return join_sentences(beyond, within)
    if not (limits := [bias for bias in every if bias.p and bias.row["statistic"] in PLANNED]):
        return in_pieces("report.bias_unknown")
    shift = figures.of_row(max(limits, key=lambda limit: limit.largest).row)
    return in_pieces("report.bias_none", shift=shift, asked=_asked(shift))


def _shifts(figures: list[Figure]) -> list[object]:
    """List figures, each with its grader and question."""
    return join_listed([[f"{_asked(figure)} ", figure] for figure in figures], "; ")


def _asked(figure: Figure) -> str:
    return f"{_heading(figure)}: {entry_for(figure.statistic).name.lower()}"


def _found(figures: RubricFigures, every: list[Finding]) -> list[Items]:
    """List the biases found, then planned questions and parts of the sample without any."""
    format_number = [_traced(figures, bias) for bias in every if bias.status == "found"]
    others = (bias for bias in every if bias.status != "found" and bias.row["statistic"] in PLANNED)
    screened = (bias for bias in every if bias.row["statistic"] in SCREENED)
    by_grader = group_by(sorted(screened, key=attrgetter("grader")), attrgetter("grader"))
    rest = [_traced(figures, other) for other in others]
    rest += filter(None, map(screening_sentence, by_grader.values()))
    found = items(written("bias_section.found"), format_number)
    return [*found, *items(written("bias_section.rest"), rest)]


def _traced(figures: RubricFigures, finding: Finding) -> str:
    """The sentence, marked where it lies beyond the bound, with the rows that it was read off."""
    sentence = finding.sentence
    if finding.beyond(BOUND):
        sentence = written("bias_section.beyond", sentence=sentence, bound=BOUND)
    return with_lines(sentence, lines_of(map(figures.of_row, finding.rows)))


def _heading(figure: Figure) -> str:
    """Name the grader of a row, the part of the sample and the sides."""
    first, second = figure.sides
    sides = written("direction.sides", first=first, second=second) if second else first
    about = ["" if figure.part == "all" else figure.part, sides]
    return ", ".join([figure.grader or figure.rater, *filter(None, about)])


def injection_part(figures: RubricFigures) -> Part:
    """Sentences on every grader that was audited, then every attack, placebos first."""
    bounds = figures.analysis.decision.injection
    audited = [made for made in audits(figures.analysis.rows) if made.rubric == figures.rubric]
    if not audited:
        return Part()

    def attack(figure: Figure) -> str:
        kind = _PLACEBOS.get(figure.at) or named(figure.at)
        return written("injection.row", grader=figure.rater, attack=kind)

    answers, lines = [], []
    for audit in audited:
        # The verdict and the worst attack on its most telling question.
        outcome, bound = audit.telling(bounds)[0]
        worst, status = outcome.worst(bound), _STATUSES[audit.status(bounds)]
        about = {"attack": worst.name, "effect": figures.of_row(worst.bounds)}
        answers.append(in_pieces(f"report.injection_{status}", grader=audit.grader, **about))
        rows = lines_of(map(figures.of_row, audit.rows(bounds)))
        lines.append(with_lines(audit.sentence(bounds), rows))
    attacks = figures.table("injection.caption", rows_of(figures.select_all(UNSCORED), attack))
    return Part(answers=answers, folded=[*items(written("bias_section.found"), lines), *attacks])
