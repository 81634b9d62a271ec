"""The raters: how much each labelled and how fast, and their use of the categories; how every two
agree, and groups of raters; graders in every part of the sample and group of units; and the units
where graders and people differ most, with a page of all of them that can be searched and filtered.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from operator import attrgetter

from evenhand.analysis.labels.matrix import AFFIRMATIVE
from evenhand.analysis.people.annotators import BY_LABELS, CONTESTED
from evenhand.analysis.people.disagreements import COVERAGE, GraderDisagreement
from evenhand.analysis.people.slices import BALANCED, SIDE_KAPPA
from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import Block, Chart, GivenLabel, Paragraph, Part, Table
from evenhand.analysis.report.source import (
    ALL,
    ALL_BINARY,
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
    pair_title,
    rater_title,
    rows_of,
)
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.verdicts.evidence import PART
from evenhand.rubrics.rendering import passages_of
from evenhand.study.tables.ratings import pieces
from evenhand.texts import DASH, in_pieces, written

_AGREEMENT, _MEAN = "rater_agreement", "mean_number"
_COUNT_STEPS = [0.01, 0.03, 0.1, 0.25, 0.5]
"""Shares of the largest count: one category often holds most, and the errors matter."""
_KAPPA_STEPS = [0.2, 0.4, 0.6, 0.75, 0.9]
_DIFFERENCE = "group_difference"


def label_part(figures: RubricFigures) -> Part:
    """Labels given, shares of the categories, coverage, and the bounds due to missing grades."""
    shares = [row for subset in SUBSET_NAMES for row in figures.select("prevalence", subset)]
    numbers = figures.select(_MEAN)
    coverage = {figure.grader: figure for figure in figures.select(COVERAGE)}
    columns: list[str | tuple[str, Column]] = []
    for subset, at in dict.fromkeys((figure.subset, figure.at) for figure in shares):
        affirmed = (subset, at) == (ALL_BINARY, AFFIRMATIVE)
        place = {"statistic": "prevalence", "subset": subset, "at": at}
        columns.append((written("raters.affirmative") if affirmed else at, place))
    covered = (entry_for(COVERAGE).label, lambda key: coverage.get(key.rater_a))
    by_rater = partial(distinct_rows, by="rater", title=rater_title)
    tables = figures.table("raters.caption", by_rater(shares), [*columns, covered])
    tables += figures.table("raters.numbers", by_rater(numbers), [_MEAN, covered])
    listed_all = coverage.keys() <= {figure.rater for figure in (*shares, *numbers)}
    work = (_AGREEMENT, "rater_seconds_median")
    workers = dict.fromkeys(row.rater for name in work for row in figures.select(name))
    return Part(
        answers=_answer(figures, labelled=bool(tables)),
        folded=[
            *tables,
            *([] if listed_all else [Paragraph(written("raters.not_listed"))]),
            *figures.table("raters.work", [(rater, (rater, "")) for rater in workers]),
        ],
    )


def _answer(figures: RubricFigures, *, labelled: bool) -> list[list[object]]:
    """State how far single people agree with the others, and which grader left most units out."""
    answers: list[list[object]] = []
    if people := largest_first(figures.select(_AGREEMENT)):
        high, low = people[0], people[-1]
        about = {"low": low, "first": low.rater, "high": high, "last": high.rater}
        numbers = figures.select(_MEAN)
        answers.append(in_pieces("report.people_numbers" if numbers else "report.people", **about))
    elif labelled:
        answers.append(in_pieces("report.pair_none"))
    graders = set(figures.graders())
    for least in largest_first(e for e in figures.select(COVERAGE) if e.grader in graders)[-1:]:
        some = in_pieces("report.coverage", grader=least.grader, share=least)
        answers.append(some if least.bounds[1] < 1 else in_pieces("report.coverage_all"))
    return [join_sentences(*answers)]


def pair_part(figures: RubricFigures) -> Part:
    """Every two raters, groups of raters, and parts of the sample."""
    groups: list[Table] = []
    missing = []
    for subset, reading in SUBSET_NAMES.items():
        of_groups = figures.table("pairs.groups", on=subset, reading=reading)
        groups += of_groups
        if of_groups and not figures.pairs(figures.general_statistic(subset), subset):
            why = written("pairs.not_listed", rubric=figures.title, reading=reading)
            missing.append(Paragraph(why))
    tables = figures.table("pairs.caption")
    matrix = _heat_map(figures, tables) or tables
    return Part(
        answers=[_agreeing(figures)] if matrix or groups else [],
        folded=[*_confusions(figures), *_contested(figures)],
        appendix=[*matrix, *missing, *groups, *_on_pairs(figures), *_slices(figures)],
    )


def _agreeing(figures: RubricFigures) -> list[object]:
    """The two people who agree least and most, and the parts of the sample where graders fail."""
    graders, kappa = figures.graders(), figures.kappa()
    people = [pair for pair in figures.pairs(kappa) if not {*pair} & {*graders}]
    kappas = [figures.get(kappa, *pair) for pair in people]
    defined_kappas = largest_first(kappas)
    agreement = in_pieces("report.pair_none")
    if kappas and not defined_kappas:
        reasons = [figure.reason.words for figure in kappas if figure and figure.reason]
        agreement = in_pieces("report.ceiling_unknown", reason=reasons[0])
    elif len(defined_kappas) == 1:
        agreement = in_pieces("report.pair", kappa=defined_kappas[0])
    elif defined_kappas:
        high, low = defined_kappas[0], defined_kappas[-1]
        first, last = pair_title(low.raters), pair_title(high.raters)
        agreement = in_pieces("report.pairs", low=low, first=first, high=high, last=last)
    return join_sentences(agreement, *_short_in_parts(figures))


def _short_in_parts(figures: RubricFigures) -> Iterator[list[object]]:
    """Yield a sentence for each grader clearly below people in some part, or for none."""
    verdicts = [case for case in figures.analysis.verdicts if case["rubric"] == figures.rubric]
    parts_of_all = figures.select_all(PART)
    below = group_by((e for e in parts_of_all if e.bounds[2] < 0), lambda figure: figure.grader)
    for verdict in verdicts:
        grader, failing = verdict["grader"], verdict["failing_parts"]
        if parts := [e for e in below.get(grader, ()) if e.part in failing]:
            named = join_listed([[f"{figure.part} (", figure, ")"] for figure in parts])
            yield in_pieces("report.parts", grader=grader, parts=named)
    if parts_of_all and not any(verdict["failing_parts"] for verdict in verdicts):
        yield in_pieces("report.parts_none")


def _on_pairs(figures: RubricFigures) -> list[Table]:
    """The verdict on a pair, where raters labelled its two responses."""
    agreement = figures.select("pair_observed_agreement", ALL_BINARY)
    with_people = [figure for figure in agreement if figure.rater == "humans"]
    single = [figure for figure in agreement if figure.rater != "humans" and figure.grader]
    rows = [(written("pairs.of_raters"), None), *rows_of(single, lambda e: pair_title(e.raters))]
    rows += [(written("pairs.with_annotators"), None), *rows_of(with_people, lambda e: e.grader)]
    return figures.table("pairs.on_pairs", rows)


def _heat_map(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Kappa of every two raters, people and graders alike; empty where no pair is listed."""
    kappa, rater = figures.kappa(), written("chart.rater")
    values: list[charts.Datum] = []
    for pair in figures.pairs(kappa):
        if figure := figures.get(kappa, *pair):
            first, second = (charts.shorten(rater_title(rater)) for rater in pair)
            values += [figure.datum(a=first, b=second), figure.datum(a=second, b=first)]
    if not values:
        return []
    single = figures.graders_last(chain.from_iterable(figures.pairs(figures.general_statistic())))
    raters = [charts.shorten(rater_title(name)) for name in single]
    undefined = any(row["estimate"] is None for row in values)
    return figures.chart(
        "heat_map", values, data, written("chart.heat_map_note", dash=DASH) if undefined else "",
        statistic=entry_for(kappa).label, reading=SUBSET_NAMES[ALL], raters=raters,
        grid=charts.heat_cells(raters, _KAPPA_STEPS, x=rater, y=rater, slanted=True),
    )  # fmt: skip


def _contested(figures: RubricFigures) -> list[Table]:
    """Tabulate graders' agreement by how far annotators agree on an item, compared with that of an
    annotator left out, and agreement within and across sides of annotators.
    """
    contested = [row for row in figures.select(BY_LABELS) if row.at in CONTESTED]

    def left_out(key: Key) -> Figure | None:
        return figures.by_key(key._replace(at=f"{key.at}: annotators"))

    rows = rows_of(contested, lambda row: row.at, lambda row: row.grader)
    columns: list[str | tuple[str, Column]] = [(written("chart.grader"), figures.by_key)]
    tables = figures.table("pairs.contested", rows, [*columns, (rater_title("humans"), left_out)])
    sides = rows_of(figures.select(SIDE_KAPPA), lambda row: row.at)
    return [*tables, *figures.table("pairs.sides", sides)]


def _confusions(figures: RubricFigures) -> list[Chart]:
    """Draw a confusion matrix of each grader against people, as shaded counts."""
    categories = list(dict.fromkeys(figure.at for figure in figures.select("prevalence")))
    graders, annotators = figures.graders(), rater_title("humans")
    drawn = graders[: charts.MAX_LISTED]

    def count(key: Key, graded: str) -> Figure | None:
        return figures.by_key(key._replace(at=from_to(key.at, graded)))

    columns = [(graded, lambda key, graded=graded: count(key, graded)) for graded in categories]
    values: list[charts.Datum] = []
    tables: list[Table] = []
    counts: list[Figure] = []
    for grader in drawn:
        rows = [(row, figures.key("confusion", "humans", grader, at=row)) for row in categories]
        for (label, key), graded in product(rows, categories):
            if figure := count(key, graded):
                counts.append(figure)
                values.append(figure.datum(a=graded, b=label, grader=charts.shorten(grader)))
        named = {"stub": annotators, "grader": grader}
        tables += figures.table("chart.confusion_table", rows, columns, **named)
    if not counts:
        return []
    most = max(figure.bounds[1] for figure in counts)
    steps = [most * share for share in _COUNT_STEPS]
    return figures.chart(
        "confusion", values, tables,
        charts.omitted_note(graders, {figure.grader for figure in counts}),
        graders=[charts.shorten(name) for name in drawn],
        panels=charts.unique_values(values, "grader"), width=max(190, 42 * len(categories)),
        grid=charts.heat_cells(categories, steps, x=written("chart.grader"), y=annotators),
    )  # fmt: skip


def _slices(figures: RubricFigures) -> list[Block]:
    """Tabulate graders' agreement with people on the categories, by the columns asked for, compared
    with the rest of the units.
    """
    differences = chain.from_iterable(figures.by_subset("slice_difference").values())
    on_categories = (row for row in differences if "=" in row.subset and not row.is_binary)
    out: list[Block] = []
    for column, of_column in group_by(on_categories, attrgetter("column")).items():
        rows = rows_of(of_column, lambda row: row.value, lambda row: pair_title(row.raters))
        out += figures.table("pairs.parts", rows, stub=column, column=column)
    return [*out, Paragraph(written("pairs.about_parts"))] if out else []


def group_part(figures: RubricFigures) -> Part:
    """Performance by group against people's consensus, where a group column was named; then every
    group's difference to the rest; on the binary label where there is one.
    """
    balanced = figures.select_all(BALANCED)
    binary = any(row.is_binary for row in balanced)
    tables: list[Table] = []
    differences: list[Table] = []
    for column, of_column in group_by(balanced, attrgetter("column")).items():
        groups = {row.subset: row.value for row in of_column if row.is_binary == binary}
        graders = {row.raters: row for row in of_column}.values()
        of_groups = [(value, {"subset": subset}) for subset, value in groups.items()]
        by_grader = rows_of(graders, lambda row: row.grader)
        tables += figures.table("groups.caption", by_grader, of_groups, column=column)
        rows: list[RowSpec] = []
        for row in graders:
            places = ((value, row.key._replace(subset=name)) for name, value in groups.items())
            rows += [(row.grader, None), *places]
        differences += figures.table("groups.differences", rows, column=column)
    apart = largest_first(e for e in figures.select_all(_DIFFERENCE) if e.is_binary == binary)
    # The grader and the group on which it falls furthest behind its other groups.
    answers = [
        in_pieces("report.group", grader=worst.grader, group=worst.part, difference=worst)
        for worst in sorted(apart, key=lambda row: row.bounds[1])[:1]
    ]
    return Part(answers=answers, folded=tables, appendix=differences)


# Disagreements

_SHOWN = 3
"""Units of each rubric. The text says so too."""
PAGE = "disagreements.html"
NOT_SORTED = ""
KINDS = ("grader_wrong", "people_wrong", "rubric_unclear")
"""Kinds that the lead may sort a disagreement as."""


def with_page(source: Source, section: blocks.ReportSection) -> blocks.ReportSection:
    """Add a link to the page of all disagreements, where there is one."""
    if not has_page(source.analysis.disagreements, source.context):
        return section
    link = Paragraph(written("disagreement.link"), PAGE)
    return replace(section, blocks=(link, *section.blocks))


def disagreement_part(figures: RubricFigures) -> Part:
    """A handful of units, folded, and the number of disagreements that the lead sorted as each
    kind.
    """
    every = figures.analysis.disagreements
    of_rubric = [unit for unit in every if unit.rubric == figures.rubric]
    units = []
    for unit in _widest(figures, of_rubric):
        size = figures.by_key(unit.key) if unit.key else None
        cell = size and (entry_for(size.statistic).label, replace(size.cell, interval="", aside=""))
        units.append((_unit([unit], figures.context), (cell,) if cell else ()))
    to_read = [blocks.UnitsToRead(written("disagreement.widest"), tuple(units))] if units else []
    graders = figures.by_agreement(dict.fromkeys(unit.grader for unit in of_rubric))
    named = join_listed([[grader] for grader in graders])
    counts = figures.select("disagreement_sorted")
    by_grader = {figure.grader: figure for figure in counts}
    rows = [(grader, by_grader[grader]) for grader in figures.by_agreement(by_grader)]
    kinds = [(kind_title(kind), {"at": kind}) for kind in sorted({e.at for e in counts})]
    sums = figures.table("disagreement.sums", rows, kinds)
    no_texts = [] if has_page(every, figures.context) else [written("disagreement.no_texts")]
    answers = [in_pieces("report.disagreements", graders=named)] if of_rubric else []
    return Part(answers, folded=[*to_read, *sums], about=no_texts)


def _widest(figures: RubricFigures, every: list[GraderDisagreement]) -> list[GraderDisagreement]:
    """The widest on different units; among equals by the grader that agrees best with people."""
    sized = [unit for unit in every if unit.key]
    order = figures.by_agreement(dict.fromkeys(unit.grader for unit in sized))
    sized.sort(key=lambda unit: order.index(unit.grader))
    by_unit = group_by(widest_first(sized), lambda unit: unit.unit_id)
    return [same[0] for same in by_unit.values()][:_SHOWN]


@dataclass(frozen=True)
class DisagreementsPage:
    """The units, the widest disagreement of each rubric first, and what they can be filtered by."""

    units: Sequence[blocks.DisagreedUnit]
    rubrics: Sequence[tuple[str, str]]
    graders: Sequence[str]
    parts: Mapping[str, Sequence[str]]
    kinds: Sequence[tuple[str, str]]


def has_page(every: Sequence[GraderDisagreement], context: ReportContext) -> bool:
    """Return True if there is a disagreement whose texts are known."""
    return any((unit.rubric, unit.unit_id) in context.texts for unit in every)


def page_of(every: Sequence[GraderDisagreement], context: ReportContext) -> DisagreementsPage:
    """Collect all disagreements, those on one unit together."""
    by_unit = group_by(widest_first(every), lambda unit: (unit.rubric, unit.unit_id))
    rubrics = list(dict.fromkeys(unit.rubric for unit in every))
    units = [_unit(by_unit[e], context) for name in rubrics for e in by_unit if e[0] == name]
    parts: dict[str, set[str]] = {}
    for column, value in (part for unit in every for part in unit.parts.items()):
        parts.setdefault(column, set()).add(value)
    titles = {given.kind: given.sorted for unit in units for given in unit.graders if given.kind}
    not_sorted = [(NOT_SORTED, written("disagreement.not_sorted"))] if titles else []
    return DisagreementsPage(
        units=units,
        rubrics=[(rubric, context.title_of(rubric)) for rubric in rubrics],
        graders=sorted({unit.grader for unit in every}),
        parts={name: sorted(values) for name, values in parts.items() if len(values) > 1},
        kinds=[*sorted(titles.items()), *not_sorted],
    )


def widest_first(every: Iterable[GraderDisagreement]) -> list[GraderDisagreement]:
    """Sort disagreements: units that two people or more labelled first, then by size, then by
    number of people.
    """
    return sorted(every, key=lambda unit: (len(unit.people) < 2, -unit.size, -len(unit.people)))


def _unit(of_unit: Sequence[GraderDisagreement], context: ReportContext) -> blocks.DisagreedUnit:
    """Collect all that is known of a unit; texts with marked words are in pieces."""
    first = of_unit[0]
    key = (first.rubric, first.unit_id)
    names = context.label_names.get(first.rubric, {})
    reasons, texts = context.remarks.get(key, {}), context.texts.get(key, {})
    people = [
        GivenLabel(rater, label, names.get(label, ""), reasons.get(rater, ""))
        for rater, label in sorted(first.people.items())
    ]
    graders = []
    for unit in of_unit:
        replies = context.replies.get((*key, unit.grader), ())
        kind, note = context.sorted.get((*key, unit.grader), (NOT_SORTED, ""))
        title, name = kind_title(kind) if kind else "", names.get(unit.label, "")
        graders.append(GivenLabel(unit.grader, unit.label, name, "", replies, kind, title, note))
    marked = {}
    marks, titles = context.marks.get(key, ()), {e.lower().replace(" ", "_"): e for e in texts}
    for variable in sorted({mark.text for _, mark in marks} & titles.keys()):
        marked_here = [(rater, mark) for rater, mark in marks if mark.text == variable]
        marked[titles[variable]] = pieces(texts[titles[variable]], marked_here)
    about = first.rubric, context.title_of(first.rubric), first.unit_id, tuple(first.parts.items())
    return blocks.DisagreedUnit(*about, people, graders, side_by_side(texts, marked), marked)


def side_by_side(texts: Mapping[str, str], whole: Collection[str] = ()) -> tuple[blocks.Texts, ...]:
    """A unit's texts under their names: those of a pair's sides in a column each, then others.
    Passages are numbered, under their sources with what is known of them, but in `whole` texts.

    >>> side_by_side({"Prompt a": "For?", "Prompt b": "Against?", "Topic": "Tax"})
    ((('Prompt a', 'For?'),), (('Prompt b', 'Against?'),), (('Topic', 'Tax'),))
    >>> side_by_side({"Sources": '[{"text": "Rain.", "source": "a.pdf"}, {"text": "Sun."}]'})
    ((('Sources, 1 of 2 - a.pdf', 'Rain.'), ('Sources, 2 of 2', 'Sun.')),)
    """
    columns: dict[str, list[tuple[str, str]]] = {"a": [], "b": [], "": []}
    for name, text in texts.items():
        side = name.rpartition(" ")[2]
        passages = [] if name in whole else passages_of(text)
        parts = []
        for at, (passage, source, rest) in enumerate(passages, 1):
            about = f"\n{json.dumps(rest, ensure_ascii=False)}" if rest else ""
            title = f"{name}, {at} of {len(passages)}{' - ' * bool(source)}{source[:200]}"
            parts.append((title, passage + about))
        columns[side if side in columns else ""] += parts or [(name, text)]
    return tuple(tuple(column) for column in columns.values() if column)


def kind_title(kind: str) -> str:
    """Return the title of a kind that disagreements are sorted into.

    >>> kind_title("rubric_unclear")
    'Rubric unclear'
    """
    return written(f"disagreement.kind_{kind}")
