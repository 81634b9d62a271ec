"""Sections on graders: verdicts, agreement compared with human agreement (the ceiling) and price,
audits of bias and prompt injection (`*_part` makes a part on one rubric); tables for a terminal.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from evenhand.analysis.bias import audit as bias_audit
from evenhand.analysis.bias.audit import BOUND, PLANNED, SCREENED, Finding
from evenhand.analysis.injection import UNSCORED, audits, name_in_words
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.comparison import MAJORITY, REFERENCE
from evenhand.analysis.raters import PRICE
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report import source as src
from evenhand.analysis.report.blocks import Chart, Items, Part, Table, items, with_lines
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
_PEOPLE = "people"  # kind of a forest plot's datum with human-human kappa


def verdicts_section(source: src.Source) -> blocks.ReportSection:
    """Make the section with advice on each rubric, an overview of verdicts, and all verdicts."""
    verdicts = source.analysis.verdicts
    page = _first_page(source) if verdicts else blocks.Paragraph(written("first.no_verdict"))
    limits = blocks.items(written("first.before"), (*limits_of(verdicts), *source.notes))
    return blocks.ReportSection("verdicts", written("first.title"), (page, *limits))


def _first_page(source: src.Source) -> blocks.FirstPage:
    """Make the block with advice, human agreement, facts about the labels, and the verdicts."""
    advice = []
    for recommendation in recommendations(source.ranking):
        rubric, sample = recommendation.rubric, ""
        figures = source.rubric(rubric)
        kappas = (figures.get(figures.kappa(on), "humans", "", on) for on in src.SUBSET_NAMES)
        people = next((kappa for kappa in kappas if kappa and not kappa.reason), None)
        if people:
            noun = source.analysis.cluster_nouns.get(rubric, "cluster")
            sample = sample_of({"n_units": people.n_units, "n_clusters": people.n_clusters}, noun)
        cell = people.cell if people else None
        advice.append(blocks.Advice(figures.title, recommendation.sentence, cell, sample))
    facts = []
    if n_annotators := source.context.facts.get("annotators"):
        key = "one_person" if n_annotators == 1 else "people"
        facts.append(written(f"first.{key}", people=n_annotators))
    if dates := source.context.facts.get("labels given"):
        facts.append(written("first.dates", when=dates))
    cards = verdict_cards(source)
    rubrics = tuple(dict.fromkeys(card.rubric for card in cards))
    by_cell = {(card.verdict["grader"], card.rubric): card for card in cards}
    rows = tuple(
        (grader, tuple(by_cell.get((grader, rubric)) for rubric in rubrics))
        for grader in best_first(source.ranking)
    )
    key = "legend_reference" if source.analysis.decision.reference else "legend"
    legend = written(f"first.{key}")
    return blocks.FirstPage(tuple(advice), tuple(facts), legend, rubrics, rows, cards)


def verdict_cards(source: src.Source) -> tuple[blocks.Card, ...]:
    """Return a card for every verdict, in the order of the analysis."""
    cards = []
    for verdict in source.analysis.verdicts:
        kappas = [source.figures.get(tuple(key)) for key in verdict["kappas"]]
        cells = [figure.cell if figure else None for figure in kappas]
        kappa, human_kappa, *_ = (*cells, None, None)  # there may be none, or the grader's alone
        price = source.rubric(verdict["rubric"]).get(PRICE, "", verdict["grader"])
        price_cell = price.cell if price and not price.reason else None
        title, rubric = TITLES[verdict["verdict"]], source.context.title_of(verdict["rubric"])
        figures = (source.figures.get(tuple(key)) for key in verdict["evidence"])
        evidence = tuple(_titled_cell(figure) for figure in figures if figure is not None)
        cards.append(blocks.Card(verdict, title, rubric, kappa, human_kappa, price_cell, evidence))
    return tuple(cards)


def _titled_cell(figure: src.Figure) -> tuple[str, blocks.Cell]:
    """Return the title and the cell of a figure that a verdict rests on."""
    baseline = src.rater_title(figure.grader) if figure.grader in BASELINES else ""
    binary = written("naming.binary_verdict") if figure.subset == src.ALL_BINARY else ""
    parts = (baseline, entry_for(figure.statistic).label, binary)
    return ", ".join(filter(None, parts)), figure.cell


def ceiling_part(figures: src.RubricFigures) -> Part:
    """Make the part that compares graders and baselines with annotators."""
    tables = figures.table("ceiling.caption")
    chart, prices = forest(figures, tables), price_front(figures)
    answers = [_ceiling_answer(figures)] if tables else []
    folded = prices if chart else [*tables, *prices]  # a chart has the tables as its data
    return Part(answers, open=[*chart, *rates_table(figures)], folded=folded)


def _ceiling_answer(figures: src.RubricFigures) -> list[object]:
    """State human-human kappa, and the graders with the highest and the lowest kappa."""
    # Graders that give probabilities alone are compared on the binary label.
    subset = src.ALL if figures.graders() else src.ALL_BINARY
    kappa = figures.kappa(subset)
    people, people_sentence = figures.get(kappa, "humans", "", subset), []
    if people and people.reason:
        people_sentence = in_pieces("report.ceiling_unknown", reason=people.reason.words)
    elif people:
        people_sentence = in_pieces("report.ceiling", people=people)
    kappas = (figures.get(kappa, "humans", name, subset) for name in figures.graders(subset))
    if not (by_size := src.largest_first(kappas)):
        return src.join_sentences(people_sentence, in_pieces("report.ceiling_no_grader"))
    best, worst = by_size[0], by_size[-1]
    if len(by_size) == 1:
        only = in_pieces("report.ceiling_grader", name=best.grader, best=best)
        return src.join_sentences(people_sentence, only)
    fields = {"best": best, "first": best.grader, "worst": worst, "last": worst.grader}
    return src.join_sentences(people_sentence, in_pieces("report.ceiling_graders", **fields))


def forest(
    figures: src.RubricFigures,
    data: Iterable[Table] = (),
    subsets: Collection[str] = (src.ALL, src.ALL_BINARY),
) -> list[Chart]:
    """Draw each grader's and baseline's kappa with annotators, the largest first, on the `subsets`
    (categories and binary label); nothing where no grader shares items with annotators.

    The band behind each row is human-human kappa on all items. Where both plots would be the same,
    as for a yes/no rubric, only the one on the categories is drawn. The axis has 0 and 1.
    """
    plots = {subset: _forest_data(figures, subset) for subset in src.SUBSET_NAMES}
    what_is_drawn = itemgetter("kind", "rater", "low", "estimate", "high")
    if [*map(what_is_drawn, plots[src.ALL])] == [*map(what_is_drawn, plots[src.ALL_BINARY])]:
        plots[src.ALL_BINARY] = []
    values = [datum for subset in subsets for datum in plots[subset]]
    human_kappas = [datum for datum in values if datum["kind"] == _PEOPLE]
    if len(human_kappas) == len(values):  # neither a grader nor a baseline
        return []
    people = "; ".join(f"{datum['plot']} {datum['label']}" for datum in human_kappas)
    has_baseline = any(datum["kind"] == "baseline" for datum in values)
    graders = list(dict.fromkeys(name for subset in subsets for name in figures.graders(subset)))
    bounds = ("low", "estimate", "high", "ceiling", "ceiling_low", "ceiling_high")
    x = charts.axis_through_zero([1.0, *(datum[name] for datum in values for name in bounds)])
    x["axis"]["grid"] = False  # names stand within the figure
    panels = []
    for title, plot_values in src.group_by(values, lambda datum: datum["plot"]).items():
        # Names are above the lines, not to their left, so that the figure fits a phone.
        names = [datum["who"] for datum in plot_values if datum["kind"] != _PEOPLE]
        panels.append(charts.fill_template("forest_panel", title=title, x=x, names=names)["spec"])
    return figures.chart(
        "forest", values, data,
        written("chart.forest_band") if people else "",
        written("chart.forest_baselines") if has_baseline else "",
        charts.omitted_note(graders, {str(datum["rater"]) for datum in values}),
        caption=written("chart.forest_ceiling" if people else "chart.forest"),
        alt=written("chart.forest_alt_ceiling" if people else "chart.forest_alt", figures=people),
        panels=panels,
    )  # fmt: skip


def _forest_data(figures: src.RubricFigures, subset: str) -> list[charts.Datum]:
    """Return a plot's data: human-human kappa, then graders and baselines with it as `ceiling`."""
    kappa = figures.kappa(subset)
    people = figures.get(kappa, "humans", "", subset)
    people = None if people is None or people.reason else people
    kinds = dict.fromkeys(figures.graders(subset)[: charts.MAX_LISTED], "grader")
    kinds |= dict.fromkeys(BASELINES, "baseline")
    rows = [(_PEOPLE, people, "")]
    rows += [(kinds[name], figures.get(kappa, "humans", name, subset), name) for name in kinds]
    title = f"{entry_for(kappa).name} ({src.SUBSET_NAMES[subset]})"
    values: list[charts.Datum] = []
    for kind, figure, name in rows:
        if figure is not None:
            short_name = charts.shorten(src.rater_title(name)) if name else None
            datum = figure.datum(label=figure.text, kind=kind, rater=name, who=short_name)
            ceiling = people.datum() if people and name else {}
            datum |= {"ceiling_low": ceiling.get("low"), "ceiling": ceiling.get("estimate")}
            datum |= {"ceiling_high": ceiling.get("high"), "plot": title}
            values.append(datum)
    return values


def price_front(figures: src.RubricFigures) -> list[Chart]:
    """Draw every grader with a known price, by price and by the ceiling difference in its verdict,
    and the Pareto front of both; nothing with fewer than two such graders.
    """
    candidates = figures.source.ranking.get(figures.rubric, ())
    ranked = sorted(candidates, key=lambda candidate: candidate.agreement, reverse=True)
    priced = [one for one in ranked if math.isfinite(one.usd) and math.isfinite(one.agreement)]
    drawn = priced[: charts.MAX_LISTED]
    if len(drawn) < 2:
        return []
    values: list[charts.Datum] = []
    rows = []
    for candidate in drawn:
        if candidate.difference and candidate.price:  # always: tells the type checker
            grader = candidate.verdict["grader"]
            difference, price = map(figures.of_row, (candidate.difference, candidate.price))
            rows.append(src.RowSpec(grader, difference.key))
            fields = {"grader": charts.shorten(grader), "price": price.exact.estimate}
            fields |= {"price_row": price.line, "front": candidate.best_buy}
            values.append(difference.datum(**fields))

    def figure_on(key: src.Key, *, subset: str) -> src.Figure | None:
        """Return a grader's difference for the column of its own subset; None for the other's."""
        return figures.by_key(key) if key.subset == subset else None

    columns = [
        (written("chart.price_difference_on", subset=name), partial(figure_on, subset=subset))
        for subset, name in src.SUBSET_NAMES.items()
    ]
    unpriced = _names([candidate for candidate in ranked if candidate not in priced])
    least = -figures.analysis.settings.margin  # difference that is still non-inferior
    short_names = [datum["grader"] for datum in values]
    # From the seventh grader on colours repeat, each with the shape of the next colour.
    colours, shapes = charts.SERIES * 2, charts.SHAPES + charts.SHAPES[1:] + charts.SHAPES[:1]
    return figures.chart(
        "price", values, figures.table("chart.price_table", rows, columns),
        charts.omitted_note(_names(priced), _names(drawn)),
        written("chart.price_missing", graders=", ".join(unpriced)) if unpriced else "",
        graders=[charts.shorten(name) for name in _names(drawn)],
        x=charts.axis_through_zero(datum["price"] for datum in values),
        y=charts.axis_through_zero([*charts.bounds_of(values), least]), margin=least,
        names=short_names, colours=colours[: len(values)], shapes=shapes[: len(values)],
    )  # fmt: skip


def _names(candidates: Sequence[Candidate]) -> list[str]:
    """Return the names of the candidates' graders."""
    return [candidate.verdict["grader"] for candidate in candidates]


# Tables for a terminal


def render_table_text(analysis: Analysis, context: src.ReportContext) -> list[TextTable]:
    """Return the tables of each rubric, on the categories and on the binary label: agreement of
    groups, pairs of raters, graders with people, and baselines; then graders' rates against the
    majority. The first column names the raters. Undefined cells have a dash, the title a reason.
    """
    source = src.Source(analysis, context)
    tables: list[Table] = []
    for figures in source.rubrics:
        categories, binary = (_panel(figures, subset) for subset in src.SUBSET_NAMES)
        tables += categories
        # With two options the binary label equals the label: the tables differ in the title alone.
        if [_as_text(table)[1:] for table in categories] != [_as_text(tab)[1:] for tab in binary]:
            tables += binary
        tables += rates_table(figures)
    return [_as_text(replace(table, caption=source.marked(table.caption))) for table in tables]


def _panel(figures: src.RubricFigures, subset: str) -> list[Table]:
    """Tabulate groups, pairs of raters, graders with people and baselines on one subset."""
    rows = [row for row in figures.rater_rows("groups", subset) if row.key != ("all", "")]
    rows += figures.rater_rows("pairs", subset)
    with_people = (("humans", name) for name in (*figures.graders(subset), *BASELINES))
    rows += [src.RowSpec(src.pair_title(pair), pair) for pair in with_people]
    return figures.table("naming.categories", rows, on=subset, caption=src.SUBSET_NAMES[subset])


def rates_table(figures: src.RubricFigures) -> list[Table]:
    """Tabulate graders' true positive and true negative rates, if there is a binary label."""
    reference = figures.analysis.decision.reference
    statistics = list(REFERENCE if reference else MAJORITY)
    graders = (figure.grader for figure in figures.select(statistics[0], src.ALL_BINARY))
    rows = [src.RowSpec(grader, (reference or "humans", grader)) for grader in graders]
    compared_with = reference or written("ceiling.majority")
    return figures.table("ceiling.rates", rows, statistics, whom=compared_with)


def _as_text(table: Table) -> TextTable:
    """Write a table with the reasons for undefined cells in its title, as cells are narrow."""
    undefined = [cell for row in table.rows for cell in row.cells[1:] if cell.text == DASH]
    title = table.caption
    if reasons := "; ".join(dict.fromkeys(cell.reason for cell in undefined)):
        title = written("naming.undefined", title=title, dash=DASH, reasons=reasons)
    rows = [
        [row.heading, *(f"{cell.text} {cell.interval}".strip() for cell in row.cells)]
        for row in table.rows
    ]
    return title, [table.stub, *table.columns], rows


# Audits

_DETAILS = ("bias_order_flips", "bias_order_first")  # statistics that the appendix lists
_PLACEBOS = {PLACEBO: written("injection.placebo"), LONG_PLACEBO: written("injection.placebo_long")}
_KEY_ENDS = {name: name for name in ("pulled", "knocked_off", "silenced", "withstands")}
_KEY_ENDS |= {"inconclusive": "open"}
"""End of the key of an audit's sentence, by the audit's status."""


def bias_part(figures: src.RubricFigures) -> Part:
    """Make the part on bias: findings, planned questions, and an appendix with screened parts."""
    rows = [row for row in figures.analysis.rows if row["rubric"] == figures.rubric]
    findings = bias_audit.findings(rows)

    def p_value(key: src.Key) -> src.Figure | None:
        p = figures.by_key(key._replace(statistic=f"{key.statistic}_p"))
        return p.without("uncorrected_p") if p else None  # this remark is in results.csv

    def rows_of_questions(statistics: Sequence[str]) -> list[src.RowSpec]:
        shifts = figures.select_all(*statistics)
        return src.rows_of(
            shifts, _heading, lambda row: entry_for(row.statistic).name, by="statistic"
        )

    columns: list[src.HeadedColumn] = [(written("bias_section.shift"), figures.by_key)]
    columns.append((written("bias_section.p"), p_value))
    screened = figures.select_all(*SCREENED)
    by_part = src.distinct_rows(screened, "subset", lambda subset: subset.removesuffix(BINARY))
    graders = dict.fromkeys(figure.grader for figure in screened)
    grader_columns = [(grader, {"rater_b": grader}) for grader in graders]
    planned = figures.table("bias_section.caption", rows_of_questions(PLANNED), columns)
    details = figures.table("bias_section.details", rows_of_questions(_DETAILS))
    parts = figures.table("bias_section.parts", by_part, grader_columns)
    answers = [_bias_answer(figures, findings)] if findings else []
    folded = [*_finding_lists(figures, findings), *planned]
    return Part(answers, folded=folded, appendix=[*details, *parts])


def _bias_answer(figures: src.RubricFigures, findings: list[Finding]) -> list[object]:
    """State the biases found, those above `BOUND` first; if there is none, the largest possible."""
    biases = [bias for bias in findings if bias.status == "found"]
    large = [figures.of_row(bias.row) for bias in biases if bias.beyond(BOUND)]
    small = [figures.of_row(bias.row) for bias in biases if not bias.beyond(BOUND)]
    if biases:
        beyond = in_pieces("report.bias", found=_list_shifts(large)) if large else []
        within = in_pieces("report.bias_small", found=_list_shifts(small)) if small else []
        return src.join_sentences(beyond, within)
    tested = [finding for finding in findings if finding.p and finding.row["statistic"] in PLANNED]
    if not tested:
        return in_pieces("report.bias_unknown")
    widest = max(tested, key=lambda finding: finding.largest)  # the largest that is not excluded
    shift = figures.of_row(widest.row)
    return in_pieces("report.bias_none", shift=shift, asked=_question(shift))


def _list_shifts(figures: list[src.Figure]) -> list[object]:
    """List figures, each after its grader and question, in pieces of a sentence."""
    return src.join_listed([[f"{_question(figure)} ", figure] for figure in figures], "; ")


def _question(figure: src.Figure) -> str:
    """Name the grader and the question of a figure of the audit."""
    return f"{_heading(figure)}: {entry_for(figure.statistic).name.lower()}"


def _finding_lists(figures: src.RubricFigures, findings: list[Finding]) -> list[Items]:
    """List the biases found; then planned questions without one, and what the screening showed."""
    found = [_finding_sentence(figures, bias) for bias in findings if bias.status == "found"]
    planned = (finding for finding in findings if finding.row["statistic"] in PLANNED)
    others = [_finding_sentence(figures, item) for item in planned if item.status != "found"]
    screened = [finding for finding in findings if finding.row["statistic"] in SCREENED]
    by_grader = src.group_by(sorted(screened, key=attrgetter("grader")), attrgetter("grader"))
    others += filter(None, map(bias_audit.screening_sentence, by_grader.values()))
    found_items = items(written("bias_section.found"), found)
    return [*found_items, *items(written("bias_section.rest"), others)]


def _finding_sentence(figures: src.RubricFigures, finding: Finding) -> str:
    """Return the sentence of a finding, with its rows, and with `BOUND` if the bias exceeds it."""
    sentence = finding.sentence
    if finding.beyond(BOUND):
        sentence = written("bias_section.beyond", sentence=sentence, bound=BOUND)
    return with_lines(sentence, src.lines_of(map(figures.of_row, finding.rows)))


def _heading(figure: src.Figure) -> str:
    """Name the grader of a row, the part of the sample, and the two sides (or one) of its `at`."""
    first, second = figure.sides
    sides = written("direction.sides", first=first, second=second) if second else first
    part = "" if figure.part == "all" else figure.part
    return ", ".join(filter(None, [figure.grader or figure.rater, part, sides]))


def injection_part(figures: src.RubricFigures) -> Part:
    """Make the part on prompt injection: sentences on every audited grader, then all attacks."""
    limits = figures.analysis.decision.injection
    audited = [audit for audit in audits(figures.analysis.rows) if audit.rubric == figures.rubric]
    if not audited:
        return Part()

    def title(figure: src.Figure) -> str:
        attack = _PLACEBOS.get(figure.at) or name_in_words(figure.at)
        return written("injection.row", grader=figure.rater, attack=attack)

    answers, lines = [], []
    for audit in audited:
        outcome, limit = audit.deciding_outcomes(limits)[0]
        worst, key_end = outcome.worst(limit), _KEY_ENDS[audit.status(limits)]
        fields = {"attack": worst.name, "effect": figures.of_row(worst.bounds)}
        answers.append(in_pieces(f"report.injection_{key_end}", grader=audit.grader, **fields))
        rows = src.lines_of(map(figures.of_row, audit.rows(limits)))
        lines.append(with_lines(audit.sentence(limits), rows))
    attacks = figures.table("injection.caption", src.rows_of(figures.select_all(UNSCORED), title))
    return Part(answers=answers, folded=[*items(written("bias_section.found"), lines), *attacks])
