"""Sections on raters: each rater's labels, agreement of every two raters, graders' performance in
groups of units, and the units where graders and people differ most.

Each `*_part` function makes a section's part on one rubric, of its `figures`: these are rounded
numbers of the results (`source.Figure`) on one rater or two, "humans" for all people. `page_of`
collects all disagreements for a separate page, on which they can be searched and filtered.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from operator import attrgetter

from evenhand.analysis.labels.matrix import AFFIRMATIVE
from evenhand.analysis.people.annotators import BY_LABELS, ITEM_CLASSES
from evenhand.analysis.people.disagreements import COVERAGE, GraderDisagreement
from evenhand.analysis.people.slices import BALANCED, SIDE_KAPPA
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report import source as src
from evenhand.analysis.report.blocks import Block, Chart, GivenLabel, Paragraph, Part, Table
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.evidence import PART
from evenhand.rubrics.rendering import passages_of
from evenhand.study.tables.ratings import pieces
from evenhand.texts import DASH, in_pieces, written

_AGREEMENT, _MEAN = "rater_agreement", "mean_number"
_COUNT_STEPS = [0.01, 0.03, 0.1, 0.25, 0.5]
"""Steps of shading, as shares of the largest count; small ones, so that few errors are visible."""
_KAPPA_STEPS = [0.2, 0.4, 0.6, 0.75, 0.9]


def label_part(figures: src.RubricFigures) -> Part:
    """Make the part on raters' labels: shares of categories, coverage, agreement and speed."""
    shares = [share for view in src.SUBSET_NAMES for share in figures.select("prevalence", view)]
    numbers = figures.select(_MEAN)
    coverage_by_rater = {figure.grader: figure for figure in figures.select(COVERAGE)}
    share_columns: list[src.HeadedColumn] = []
    for subset, category in dict.fromkeys((share.subset, share.at) for share in shares):
        is_affirmative = (subset, category) == (src.ALL_BINARY, AFFIRMATIVE)
        heading = written("raters.affirmative") if is_affirmative else category
        key_parts = {"statistic": "prevalence", "subset": subset, "at": category}
        share_columns.append((heading, key_parts))
    coverage_column = (entry_for(COVERAGE).label, lambda key: coverage_by_rater.get(key.rater_a))
    by_rater = partial(src.distinct_rows, by="rater", title=src.rater_title)
    tables = figures.table("raters.caption", by_rater(shares), [*share_columns, coverage_column])
    tables += figures.table("raters.numbers", by_rater(numbers), [_MEAN, coverage_column])
    on_work = [*figures.select(_AGREEMENT), *figures.select("rater_seconds_median")]
    raters = dict.fromkeys(figure.rater for figure in on_work)
    work = figures.table("raters.work", [src.RowSpec(name, (name, "")) for name in raters])
    return Part(_label_answer(figures, has_labels=bool(tables)), folded=[*tables, *work])


def _label_answer(figures: src.RubricFigures, *, has_labels: bool) -> list[list[object]]:
    """Name the people who agree least and most with others, and the grader of least coverage."""
    answers: list[list[object]] = []
    if agreements := src.largest_first(figures.select(_AGREEMENT)):
        high, low = agreements[0], agreements[-1]
        fields = {"low": low, "low_rater": low.rater, "high": high, "high_rater": high.rater}
        key = "people_numbers" if figures.select(_MEAN) else "people"
        answers.append(in_pieces(f"report.{key}", **fields))
    elif has_labels:
        answers.append(in_pieces("report.pair_none"))
    graders, coverage = set(figures.graders()), figures.select(COVERAGE)
    of_graders = src.largest_first(figure for figure in coverage if figure.grader in graders)
    if of_graders and of_graders[-1].exact.estimate < 1:
        least = of_graders[-1]
        answers.append(in_pieces("report.coverage", grader=least.grader, share=least))
    elif of_graders:
        answers.append(in_pieces("report.coverage_all"))
    return [src.join_sentences(*answers)]


def pair_part(figures: src.RubricFigures) -> Part:
    """Make the part on agreement of every two raters, in groups and in parts of the sample."""
    pair_tables, groups = figures.table("pairs.caption"), figures.table("pairs.groups")
    pairs = _heat_map(figures, pair_tables) or pair_tables
    return Part(
        answers=[_pair_answer(figures)] if pairs or groups else [],
        folded=[*_confusion_chart(figures), *_contested_tables(figures)],
        appendix=[*pairs, *groups, *_verdicts_on_pairs(figures), *_slice_tables(figures)],
    )


def _pair_answer(figures: src.RubricFigures) -> list[object]:
    """Name the people who agree least and most, and parts of the sample where graders fail."""
    graders, statistic = set(figures.graders()), figures.kappa()
    of_people = (pair for pair in figures.pairs(statistic) if graders.isdisjoint(pair))
    kappas = [figures.get(statistic, *pair) for pair in of_people]
    defined_kappas = src.largest_first(kappas)
    answer = in_pieces("report.pair_none")
    if kappas and not defined_kappas:
        reasons = [kappa.reason.words for kappa in kappas if kappa and kappa.reason]
        answer = in_pieces("report.ceiling_unknown", reason=reasons[0])
    elif len(defined_kappas) == 1:
        answer = in_pieces("report.pair", kappa=defined_kappas[0])
    elif defined_kappas:
        high, low = defined_kappas[0], defined_kappas[-1]
        fields = {"low": low, "low_pair": low.pair, "high": high, "high_pair": high.pair}
        answer = in_pieces("report.pairs", **fields)
    return src.join_sentences(answer, *_failing_part_sentences(figures))


def _failing_part_sentences(figures: src.RubricFigures) -> Iterator[list[object]]:
    """Yield a sentence for each grader clearly below people in some part, or one that none is."""
    verdicts = [one for one in figures.analysis.verdicts if one["rubric"] == figures.rubric]
    differences = figures.select_all(PART)  # of a grader from people, in each part
    below = [difference for difference in differences if difference.exact.high < 0]
    for verdict in verdicts:
        grader, failing = verdict["grader"], verdict["failing_parts"]
        if failed := [one for one in below if one.grader == grader and one.part in failing]:
            parts = src.join_listed([[f"{one.part} (", one, ")"] for one in failed])
            yield in_pieces("report.parts", grader=grader, parts=parts)
    if differences and not any(verdict["failing_parts"] for verdict in verdicts):
        yield in_pieces("report.parts_none")


def _verdicts_on_pairs(figures: src.RubricFigures) -> list[Table]:
    """Tabulate agreement on the verdict on a pair, where raters labelled its responses singly."""
    agreements = figures.select("pair_observed_agreement", src.ALL_BINARY)
    with_people = [figure for figure in agreements if figure.rater == "humans"]
    of_two = [figure for figure in agreements if figure.rater != "humans" and figure.grader]
    rows = [src.RowSpec(written("pairs.of_raters")), *src.rows_of(of_two, attrgetter("pair"))]
    rows.append(src.RowSpec(written("pairs.with_annotators")))
    rows += src.rows_of(with_people, attrgetter("grader"))
    return figures.table("pairs.on_pairs", rows)


def _heat_map(figures: src.RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Draw kappa of every two raters, people and graders; nothing where no pair is listed."""
    kappa, axis = figures.kappa(), written("chart.rater")
    values: list[charts.Datum] = []
    for pair in figures.pairs(kappa):
        if figure := figures.get(kappa, *pair):
            first, second = (charts.shorten(src.rater_title(rater)) for rater in pair)
            values += [figure.datum(a=first, b=second), figure.datum(a=second, b=first)]
    if not values:
        return []
    names = dict.fromkeys(chain.from_iterable(figures.pairs(figures.agreement_or_kappa())))
    graders = [name for name in figures.graders() if name in names]
    people_first = [*(name for name in names if name not in graders), *graders]
    raters = [charts.shorten(src.rater_title(name)) for name in people_first]
    has_undefined = any(datum["estimate"] is None for datum in values)
    return figures.chart(
        "heat_map", values, data,
        written("chart.heat_map_note", dash=DASH) if has_undefined else "",
        statistic=entry_for(kappa).label, subset=src.SUBSET_NAMES[src.ALL], raters=raters,
        grid=charts.heat_cells(raters, _KAPPA_STEPS, x=axis, y=axis, slanted=True),
    )  # fmt: skip


def _contested_tables(figures: src.RubricFigures) -> list[Table]:
    """Tabulate graders' agreement by how far annotators agree on an item, with the agreement of one
    annotator with the others; and agreement within and across annotators' sides, such as parties.
    """

    def of_annotator(key: src.Key) -> src.Figure | None:
        """Return the agreement of one annotator on the items of a grader's row (`key`)."""
        return figures.by_key(key._replace(at=f"{key.at}: annotators"))

    agreements = [figure for figure in figures.select(BY_LABELS) if figure.at in ITEM_CLASSES]
    rows = src.rows_of(agreements, attrgetter("at"), attrgetter("grader"))
    columns: list[src.HeadedColumn] = [(written("chart.grader"), figures.by_key)]
    columns.append((src.rater_title("humans"), of_annotator))
    sides = src.rows_of(figures.select(SIDE_KAPPA), attrgetter("at"))
    return [*figures.table("pairs.contested", rows, columns), *figures.table("pairs.sides", sides)]


def _confusion_chart(figures: src.RubricFigures) -> list[Chart]:
    """Draw a confusion matrix of each grader against people, as shaded counts."""
    categories = list(dict.fromkeys(figure.at for figure in figures.select("prevalence")))
    graders, annotators = figures.graders(), src.rater_title("humans")
    drawn = graders[: charts.MAX_LISTED]

    def count(key: src.Key, *, grade: str) -> src.Figure | None:
        """Return the number of items that people label `key.at`, and the grader labels `grade`."""
        return figures.by_key(key._replace(at=from_to(key.at, grade)))

    columns = [(grade, partial(count, grade=grade)) for grade in categories]
    values: list[charts.Datum] = []
    tables: list[Table] = []
    counts: list[src.Figure] = []
    for grader in drawn:
        keys = [figures.key("confusion", "humans", grader, at=label) for label in categories]
        rows = [src.RowSpec(key.at, key) for key in keys]
        for key, grade in product(keys, categories):
            if figure := count(key, grade=grade):
                counts.append(figure)
                values.append(figure.datum(a=grade, b=key.at, grader=charts.shorten(grader)))
        fields = {"stub": annotators, "grader": grader}
        tables += figures.table("chart.confusion_table", rows, columns, **fields)
    if not counts:
        return []
    largest = max(figure.exact.estimate for figure in counts)
    steps = [largest * share for share in _COUNT_STEPS]
    width = max(190, 42 * len(categories))  # of a panel in pixels, so that the counts fit
    return figures.chart(
        "confusion", values, tables,
        charts.omitted_note(graders, {figure.grader for figure in counts}),
        graders=[charts.shorten(name) for name in drawn], width=width,
        panels=charts.unique_values(values, "grader"),
        grid=charts.heat_cells(categories, steps, x=written("chart.grader"), y=annotators),
    )  # fmt: skip


def _slice_tables(figures: src.RubricFigures) -> list[Block]:
    """Tabulate graders' agreement with people in each part of the sample, and outside of it."""
    differences = chain.from_iterable(figures.by_subset("slice_difference").values())
    on_categories = (one for one in differences if "=" in one.subset and not one.is_binary)
    tables: list[Block] = []
    for column, column_figures in src.group_by(on_categories, attrgetter("column")).items():
        rows = src.rows_of(column_figures, attrgetter("value"), attrgetter("pair"))
        tables += figures.table("pairs.parts", rows, stub=column, column=column)
    return [*tables, Paragraph(written("pairs.about_parts"))] if tables else []


def group_part(figures: src.RubricFigures) -> Part:
    """Make the part on graders' agreement with people's consensus in each group of units, and each
    group's difference from the others; on the binary label where there is one.
    """
    agreements = figures.select_all(BALANCED)
    has_binary = any(figure.is_binary for figure in agreements)
    tables: list[Table] = []
    differences: list[Table] = []
    for column, on_column in src.group_by(agreements, attrgetter("column")).items():
        groups = {one.subset: one.value for one in on_column if one.is_binary == has_binary}
        one_per_grader = {figure.raters: figure for figure in on_column}.values()
        rows = src.rows_of(one_per_grader, attrgetter("grader"))
        columns = [(group, {"subset": subset}) for subset, group in groups.items()]
        tables += figures.table("groups.caption", rows, columns, column=column)
        group_rows: list[src.RowSpec] = []  # under a heading for each grader
        for figure in one_per_grader:
            group_rows.append(src.RowSpec(figure.grader))
            for subset, group in groups.items():
                group_rows.append(src.RowSpec(group, figure.key._replace(subset=subset)))
        differences += figures.table("groups.differences", group_rows, column=column)
    answers = []
    gaps = figures.select_all("group_difference")
    if estimated := src.largest_first(gap for gap in gaps if gap.is_binary == has_binary):
        worst = min(estimated, key=lambda gap: gap.exact.estimate)  # furthest behind other groups
        fields = {"grader": worst.grader, "group": worst.part, "difference": worst}
        answers.append(in_pieces("report.group", **fields))
    return Part(answers=answers, folded=tables, appendix=differences)


# Disagreements

Disagreements = Sequence[GraderDisagreement]
_MAX_UNITS = 3  # of each rubric in the report; the text of the section has this number, too
PAGE = "disagreements.html"
KINDS = ("grader_wrong", "people_wrong", "rubric_unclear")  # into which the lead sorts them
NOT_SORTED = ""  # kind of a disagreement that the lead has not sorted


def with_page(source: src.Source, section: blocks.ReportSection) -> blocks.ReportSection:
    """Add a link to the page of all disagreements, where there is one."""
    if not has_page(source.analysis.disagreements, source.context):
        return section
    return replace(section, blocks=(Paragraph(written("disagreement.link"), PAGE), *section.blocks))


def disagreement_part(figures: src.RubricFigures) -> Part:
    """Make the part on the largest disagreements, and on the kinds that the lead sorted them as."""
    disagreements = figures.analysis.disagreements
    on_rubric = [item for item in disagreements if item.rubric == figures.rubric]
    units = []
    for item in _largest(figures, on_rubric):
        sizes = []
        if item.key and (size := figures.by_key(item.key)):
            cell = replace(size.cell, interval="", aside="")
            sizes.append((entry_for(size.statistic).label, cell))
        units.append((_unit([item], figures.context), tuple(sizes)))
    to_read = [blocks.UnitsToRead(written("disagreement.widest"), tuple(units))] if units else []
    graders = figures.sorted_by_agreement(dict.fromkeys(item.grader for item in on_rubric))
    names = src.join_listed([[grader] for grader in graders])
    counts = figures.select("disagreement_sorted")  # by grader and kind
    keys = {count.grader: count.key for count in counts}
    rows = [src.RowSpec(grader, keys[grader]) for grader in figures.sorted_by_agreement(keys)]
    kinds = [(kind_title(kind), {"at": kind}) for kind in sorted({count.at for count in counts})]
    sums = figures.table("disagreement.sums", rows, kinds)
    answers = [in_pieces("report.disagreements", graders=names)] if on_rubric else []
    about = [] if has_page(disagreements, figures.context) else [written("disagreement.no_texts")]
    return Part(answers, folded=[*to_read, *sums], about=about)


def _largest(figures: src.RubricFigures, items: Disagreements) -> list[GraderDisagreement]:
    """Return the largest disagreements on different units; in ties, that of the best grader."""
    with_size = [item for item in items if item.key]
    order = figures.sorted_by_agreement(dict.fromkeys(item.grader for item in with_size))
    with_size.sort(key=lambda item: order.index(item.grader))  # the next sort is stable
    by_unit = src.group_by(sort_disagreements(with_size), attrgetter("unit_id"))
    return [on_unit[0] for on_unit in by_unit.values()][:_MAX_UNITS]


@dataclass(frozen=True)
class DisagreementsPage:
    """The units, each rubric's largest disagreement first, and the values to filter them by:
    `rubrics` and `kinds` are (value, title), `parts` the values of each units column.
    """

    units: Sequence[blocks.DisagreedUnit]
    rubrics: Sequence[tuple[str, str]]
    graders: Sequence[str]
    parts: Mapping[str, Sequence[str]]
    kinds: Sequence[tuple[str, str]]


def has_page(disagreements: Disagreements, context: src.ReportContext) -> bool:
    """Return True if there is a disagreement whose texts are known."""
    return any((item.rubric, item.unit_id) in context.texts for item in disagreements)


def page_of(disagreements: Disagreements, context: src.ReportContext) -> DisagreementsPage:
    """Collect all disagreements, those on one unit together."""
    by_unit = src.group_by(sort_disagreements(disagreements), attrgetter("rubric", "unit_id"))
    rubrics = list(dict.fromkeys(item.rubric for item in disagreements))
    keys = [key for rubric in rubrics for key in by_unit if key[0] == rubric]
    units = [_unit(by_unit[key], context) for key in keys]
    parts: dict[str, set[str]] = {}
    for column, value in chain.from_iterable(item.parts.items() for item in disagreements):
        parts.setdefault(column, set()).add(value)
    labels = chain.from_iterable(unit.graders for unit in units)
    titles = {label.kind: label.kind_title for label in labels if label.kind}
    not_sorted = [(NOT_SORTED, written("disagreement.not_sorted"))] if titles else []
    return DisagreementsPage(
        units=units, rubrics=[(rubric, context.title_of(rubric)) for rubric in rubrics],
        graders=sorted({item.grader for item in disagreements}),
        parts={name: sorted(values) for name, values in parts.items() if len(values) > 1},
        kinds=[*sorted(titles.items()), *not_sorted],
    )  # fmt: skip


def sort_disagreements(items: Iterable[GraderDisagreement]) -> list[GraderDisagreement]:
    """Sort disagreements: two people's labels or more first, then by size, by number of people."""
    return sorted(items, key=lambda item: (len(item.people) < 2, -item.size, -len(item.people)))


def _unit(items: Disagreements, context: src.ReportContext) -> blocks.DisagreedUnit:
    """Collect labels, texts and reasons of the disagreements on one unit."""
    first = items[0]
    key = (first.rubric, first.unit_id)
    names = context.label_names.get(first.rubric, {})
    reasons = context.remarks.get(key, {})
    people = [
        GivenLabel(rater, label, names.get(label, ""), reasons.get(rater, ""))
        for rater, label in sorted(first.people.items())
    ]
    graders = []
    for item in items:
        replies = context.replies.get((*key, item.grader), ())
        kind, note = context.sortings.get((*key, item.grader), (NOT_SORTED, ""))
        sorting = {"kind": kind, "kind_title": kind_title(kind) if kind else "", "note": note}
        name = names.get(item.label, "")
        graders.append(GivenLabel(item.grader, item.label, name, replies=replies, **sorting))
    texts, marks = context.texts.get(key, {}), context.marks.get(key, ())
    title_by_variable = {title.lower().replace(" ", "_"): title for title in texts}
    marked = {}
    for variable in sorted({mark.text for _, mark in marks} & title_by_variable.keys()):
        title = title_by_variable[variable]
        text_marks = [(rater, mark) for rater, mark in marks if mark.text == variable]
        marked[title] = pieces(texts[title], text_marks)
    about = first.rubric, context.title_of(first.rubric), first.unit_id, tuple(first.parts.items())
    return blocks.DisagreedUnit(*about, people, graders, side_by_side(texts, marked), marked)


def side_by_side(texts: Mapping[str, str], whole: Collection[str] = ()) -> tuple[blocks.Texts, ...]:
    """Arrange a unit's texts by name in columns: one for each side of a pair, then one for others.
    Passages are numbered, with their sources and metadata, except in `whole` texts.

    >>> side_by_side({"Prompt a": "For?", "Prompt b": "Against?", "Topic": "Tax"})
    ((('Prompt a', 'For?'),), (('Prompt b', 'Against?'),), (('Topic', 'Tax'),))
    >>> side_by_side({"Sources": '[{"text": "Rain.", "source": "a.pdf"}, {"text": "Sun."}]'})
    ((('Sources, 1 of 2 - a.pdf', 'Rain.'), ('Sources, 2 of 2', 'Sun.')),)
    """
    columns: dict[str, list[tuple[str, str]]] = {"a": [], "b": [], "": []}
    for name, text in texts.items():
        side = name.rpartition(" ")[2]
        passages = [] if name in whole else passages_of(text)
        titled = [] if passages else [(name, text)]
        for n, (passage, source, metadata) in enumerate(passages, 1):
            about = f"\n{json.dumps(metadata, ensure_ascii=False)}" if metadata else ""
            source = f" - {source[:200]}" if source else ""
            titled.append((f"{name}, {n} of {len(passages)}{source}", passage + about))
        columns[side if side in columns else ""] += titled
    return tuple(tuple(column) for column in columns.values() if column)


def kind_title(kind: str) -> str:
    """Return the title of a kind that disagreements are sorted into.

    >>> kind_title("rubric_unclear")
    'Rubric allows both'
    """
    return written(f"disagreement.kind_{kind}")
