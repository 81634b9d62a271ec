"""Subjects: their rates as graders count them and as people would, and their order; their scores by
rater and how these correlate; whose answers raters prefer; and the side of the pairs that is
favoured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from operator import attrgetter
from typing import Literal

from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.blocks import Chart, Part, Table, items
from evenhand.analysis.report.source import (
    ALL,
    ALL_BINARY,
    Column,
    Figure,
    Key,
    RowPlace,
    RubricFigures,
    Source,
    defined,
    distinct,
    grouped,
    listed,
    rater_title,
    rows_of,
    sentences,
    shown,
)
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.subjects.scores import MEANS, RATES, Measure
from evenhand.texts import DASH, in_pieces, written

_PEOPLE, _GRADER = rater_title("humans"), written("chart.scores_grader")
_CORRECTED, _SIDES, _SHARE = "win_rate_ppi", "rate_side_difference_ppi", "prevalence_ppi"
_STEPS = [0.05, 0.15, 0.3, 0.5, 0.75]
_MOST_PARTS = 40


def overall_layers(figures: RubricFigures) -> Part:
    """Scores and correlations of a rubric that has subjects."""
    scores = figures.select("subject_score", ALL_BINARY)
    columns = _by_raters(figure.rater for figure in scores)
    table = figures.table("overall.caption", sorted(distinct(scores, "at")), columns)
    drawn = _scores(figures, table) or table
    return Part(
        answers=[_alike_overall(figures)] if drawn else [],
        folded=[*drawn, *figures.table("overall.correlations")],
    )


def _by_raters(raters: Iterable[str]) -> list[tuple[str, Column]]:
    """Return a column for each rater, with its figure of the row's statistic."""
    return [(rater_title(rater), {"rater_a": rater}) for rater in dict.fromkeys(raters)]


def _alike_overall(figures: RubricFigures) -> list[object]:
    """Name the graders whose scores correlate best and worst with people's."""
    correlations = figures.select("spearman", ALL_BINARY)
    if not (alike := defined(figure for figure in correlations if figure.rater == "humans")):
        scored = {row.rater for row in figures.select("subject_score", ALL_BINARY)}
        if "humans" in scored or not (graders := defined(correlations)):
            return in_pieces("report.scores_unknown")
        first, second = graders[0].raters
        return in_pieces("report.scores_of_graders", first=first, second=second, rho=graders[0])
    best, worst = alike[0], alike[-1]
    most = in_pieces("report.scores", grader=best.grader, rho=best)
    least = in_pieces("report.scores_least", grader=worst.grader, rho=worst)
    return most if worst is best else sentences(most, least)


def _scores(figures: RubricFigures, data: Iterable[Table]) -> list[Chart]:
    """Draw every subject's score by people and by the grader, a panel for each grader, in the order
    of people's scores; empty where people or graders scored no subject.
    """
    scores = figures.select("subject_score", ALL_BINARY)
    people = {figure.at: figure for figure in scores if figure.rater == "humans"}
    names = dict.fromkeys(figure.rater for figure in scores if figure.rater != "humans")
    graders = figures.by_agreement(names, ALL_BINARY)
    subjects = sorted(people, key=lambda name: people[name].bounds[1], reverse=True)
    values: list[charts.Datum] = []
    drawn = set()
    for grader in graders[: charts.MAX_LISTED]:
        for subject in subjects[: charts.MAX_LISTED]:
            figure = figures.by_key(people[subject].key._replace(rater_a=grader))
            if figure is not None and not figure.reason:
                panel = {"grader": charts.short(grader), "subject": charts.short(subject)}
                values.append(people[subject].datum(who=_PEOPLE, **panel))
                values.append(figure.datum(who=_GRADER, **panel))
                drawn |= {grader, subject}
    if not values:
        return []
    scored = list(dict.fromkeys([*subjects, *(figure.at for figure in scores)]))
    axis = [charts.short(subject) for subject in subjects[: charts.MAX_LISTED] if subject in drawn]
    return figures.chart(
        "scores", values, data,
        charts.left_out(graders, drawn), charts.left_out(scored, drawn, "subjects"),
        x=charts.through_zero(charts.bounds_of(values)),
        people=_PEOPLE, grader=_GRADER, subjects=axis, graders=charts.in_order(values, "grader"),
    )  # fmt: skip


def preference_layers(figures: RubricFigures) -> Part:
    """Win rates and strengths by annotators and by every grader."""
    rates = dict.fromkeys(figure.rater for figure in figures.select("win_rate"))
    graders = figures.by_agreement([name for name in rates if name != "humans"])
    raters = ["humans", *graders]
    rows: list[RowPlace] = []
    for statistic in ("win_rate", "strength"):
        chosen = (row for row in figures.select(statistic) if row.rater in raters)
        rows += [(entry_for(statistic).name, None), *sorted(distinct(chosen, "at"))]
    by_rater = figures.table("preference.caption", rows, _by_raters(raters))
    return Part(
        answers=_preferred(figures, graders),
        folded=[*by_rater, *_corrected(figures, graders)],
        about=[written("preference.strength")],
    )


def _preferred(figures: RubricFigures, graders: list[str]) -> list[list[object]]:
    """Name the subject that each rater prefers."""
    answers: list[list[object]] = []
    for rater in ("humans", *graders):
        for best in defined(figures.select("win_rate", raters=(rater, "")))[:1]:
            whose = "preference_people" if rater == "humans" else "preference_grader"
            about = {"grader": rater, "subject": best.at, "rate": best}
            answers.append(in_pieces(f"report.{whose}", **about))
    return answers


def _corrected(figures: RubricFigures, graders: list[str]) -> list[Table]:
    """Tabulate rates of the answers that a grader alone compared, as people would have it."""
    rows: list[RowPlace] = []
    for grader in graders:
        if defined(figures.select(_CORRECTED, raters=("humans", grader))):
            rates = figures.select("win_rate", raters=(grader, ""))
            rows += [(grader, None), *rows_of(rates, lambda row: row.at)]

    def corrected(key: Key) -> Figure | None:
        return figures.get(_CORRECTED, "humans", key.rater_a, key.subset, key.at)

    return figures.table("preference.corrected", rows, [(entry_for(_CORRECTED).label, corrected)])


def direction_layers(figures: RubricFigures) -> Part:
    """Show annotators and graders on everything, for every subject, for every group; nothing where
    no option favours a side and no unit is one side of a pair.
    """
    net = figures.everywhere("direction_net")
    others = [figure for figure in net if figure.column not in ("subject", "group")]
    sides = {figure.subset: _sides(figure, figure.value) for figure in others}
    rows = rows_of(others, lambda e: rater_title(e.rater), lambda e: sides[e.subset], by="subset")
    unnamed = any(figure.at == "side a>side b" for figure in net)
    return Part(
        answers=_favoured(net),
        folded=[
            *_by_rater(figures, net, "subject", lambda row: row.value),
            *figures.table("direction.by_rater", rows),
        ],
        appendix=_by_rater(figures, net, "group", _sides),
        about=[written("direction.side_a")] if unnamed else [],
    )


def _favoured(net: list[Figure]) -> list[list[object]]:
    """Name the subjects on which people, else the first grader, favour a side; or the widest."""
    intervals = [figure for figure in net if figure.interval]
    raters = [figure.rater for figure in intervals]
    rater = "humans" if "humans" in raters else next(iter(raters), "")
    by_rater = [figure for figure in intervals if figure.rater == rater]
    places = [figure for figure in by_rater if figure.column == "subject"] or by_rater
    if not places:
        return [in_pieces("report.direction_unknown")] if net else []
    who, everywhere = rater_title(rater), written("direction.everywhere")
    favoured = []
    for figure in places:
        if figure.is_clear:
            side = figure.sides[0 if figure.bounds[1] > 0 else 1]
            about = {"place": figure.value or everywhere, "net": figure}
            favoured.append(in_pieces("direction.on", favoured=side, **about))
    if favoured:
        favours = "direction" if rater == "humans" else "direction_by_one"
        return [in_pieces(f"report.{favours}", who=who, favoured=listed(favoured))]
    widest = max(places, key=lambda figure: max(-figure.bounds[0], figure.bounds[2]))
    even = "direction_even" if rater == "humans" else "direction_even_by_one"
    return [in_pieces(f"report.{even}", who=who, place=widest.value or everywhere, net=widest)]


def _by_rater(
    figures: RubricFigures, net: list[Figure], column: str, title: Callable[[Figure], str]
) -> list[Table]:
    """Tabulate every subject or group in a row, every rater in a column."""
    shown = [figure for figure in net if figure.column == column]
    rows: list[RowPlace] = [(_sides(shown[0]), None)] if column == "subject" and shown else []
    rows += rows_of({figure.subset: figure for figure in shown}.values(), title)
    columns = _by_raters(figure.rater for figure in shown)
    return figures.table("direction.by_column", rows, columns, stub=column.title(), column=column)


def _sides(figure: Figure, value: str = "") -> str:
    """Name the two sides of a figure, and the part of the sample, if it has a value."""
    first, second = figure.sides
    if not value:
        return written("direction.sides", first=first, second=second)
    about = {"column": figure.column, "value": value}
    return written("direction.sides_where", first=first, second=second, **about)


def rate_layers(figures: RubricFigures) -> Part:
    """Rates and means, and their order, on a rubric that people labelled and a grader graded."""
    graders = {measure: _graders(figures, measure) for measure in (RATES, MEANS)}
    # People's own rates are the same whoever graded the units.
    compared = {}
    for measure, names in graders.items():
        subjects = [name for name in names if _kind(figures, name, measure) == "own"]
        compared[measure] = [name for name in names if name not in subjects[1:]]
    everyone = list(dict.fromkeys(chain.from_iterable(graders.values())))
    if not (everyone or figures.everywhere(_SHARE)):
        return Part()
    rows: list[RowPlace] = []
    for grader in everyone:
        raw = chain.from_iterable(_raw(figures, grader, measure) for measure in graders)
        keys = (figures.key(RATES.raw, "humans", grader, ALL_BINARY, at) for at in dict(raw))
        rows += [(grader, None), *((key.at or written("rates.all_units"), key) for key in keys)]

    def raw_mean(key: Key) -> Figure | None:
        return figures.get(MEANS.raw, key.rater_b, at=key.at)

    tables = figures.table("rates.caption", rows, [(entry_for(MEANS.raw).label, raw_mean)])
    for measure, names in compared.items():
        tables += _differences(figures, names, measure)
        tables += _publics(figures, names, measure)
    made: list[blocks.Block] = [*tables, *_rates_by_parts(figures, compared[RATES])]
    parts = figures.by_subset(MEANS.powered).items()
    means = chain.from_iterable(raw for subset, raw in parts if subset != ALL)
    title = written("rates.parts", what=written("rates.means"))
    made += _parts_table(figures, compared[MEANS], [*means], title)
    classes, units = figures.everywhere(_SHARE), written("rates.all_units")
    where = {row.key[:-1]: row for row in classes}.values()
    shares = rows_of(where, lambda e: units if e.part == ALL else e.part, lambda e: e.grader)
    columns = [(at, {"at": at}) for at in dict.fromkeys(row.at for row in classes)]
    made += figures.table("rates.shares", shares, columns)
    errors = [(name, ("humans", name)) for name in graders[RATES]]
    made += figures.table("rates.errors", errors)
    made += items(written("rates.what"), _rate_sentences(figures, graders[RATES], compared))
    ranks: list[RowPlace] = []
    for measure in graders:
        ranked = figures.select("rate_rank_set", _on(measure))
        ranks += rows_of(ranked, lambda row: row.at, lambda row: row.grader)
    answers = [_answer(figures, names, measure) for measure, names in graders.items() if names]
    if not graders[RATES] and answers == [in_pieces("report.rates_nothing")]:
        return Part()
    answers += [row for measure in graders for row in _widest_gap(figures, measure)]
    return Part(answers=answers, folded=made, appendix=figures.table("rates.ranks", ranks))


def _differences(figures: RubricFigures, graders: list[str], measure: Measure) -> list[Table]:
    """Tabulate differences between subjects, then those between the sides of pairs."""
    differences: list[RowPlace] = []
    for grader in graders:
        differences.append((_heading(figures, grader, measure), None))
        for first, second, figure in _pairs(figures, grader, measure):
            differences.append((written("rates.difference", first=first, second=second), figure))
    one, other = figures.analysis.settings.sides
    by_side = [row for grader in graders for row in _by_side(figures, grader, measure)]
    units, what = written("rates.all_units"), _what(measure)
    sides = rows_of(
        by_side, lambda row: row.at or units, lambda row: _heading(figures, row.grader, measure)
    )
    column: list[tuple[str, Column]] = [(entry_for(RATES.difference).label, figures.by_key)]
    return [
        *figures.table("rates.differences", differences, column, what=what),
        *figures.table("rates.sides", sides, column, first=one, second=other, what=what),
    ]


def _publics(figures: RubricFigures, graders: list[str], measure: Measure) -> list[Table]:
    """Tabulate each subject's figure by every side of annotators, with the differences of sides and
    the least, a table for each column of annotators.
    """
    made: list[Table] = []
    for column, least in grouped(figures.everywhere(measure.least), attrgetter("column")).items():
        of_sides = (measure.powered, measure.sides)
        by_side = [row for row in figures.everywhere(*of_sides) if row.column == column]
        parts = {(row.statistic, row.subset): _minus(row) for row in by_side}
        columns: list[str | tuple[str, Column]] = [
            (title, {"statistic": statistic, "subset": subset})
            for (statistic, subset), title in parts.items()
        ]
        rows = rows_of(
            (row for row in least if row.grader in graders),
            lambda row: row.at or written("rates.all_units"),
            lambda row: _heading(figures, row.grader, measure),
        )
        named = {"column": column, "what": _what(measure)}
        made += figures.table("rates.publics", rows, [*columns, measure.least], **named)
    return made


def _minus(figure: Figure) -> str:
    """Name the side of annotators of a figure, or the two of a difference."""
    first, _, second = figure.value.partition(">")
    return written("rates.difference", first=first, second=second) if second else first


def _widest_gap(figures: RubricFigures, measure: Measure) -> Iterator[list[object]]:
    """Yield a sentence for each column of annotators on the subject by which their sides differ
    most.
    """
    columns = {row.column for row in figures.everywhere(measure.least)}
    gaps = (row for row in figures.everywhere(measure.sides) if row.column in columns)
    for column, rows in grouped(gaps, attrgetter("column")).items():
        gap = max(rows, key=lambda row: abs(row.bounds[1]))
        first, second = gap.value.split(">")[:2]
        subset = gap.subset.replace(f"={gap.value}", "={}")
        one, other = (
            figures.by_key(gap.key._replace(statistic=measure.powered, subset=subset.format(side)))
            for side in (first, second)
        )
        if one and other:
            subject = gap.at or written("direction.everywhere")
            about = {"first": first, "second": second, "one": one, "other": other, "gap": gap}
            yield in_pieces("report.publics", column=column, subject=subject, **about)


def _on(measure: Measure) -> str:
    return ALL_BINARY if measure.is_rate else ALL


def _what(measure: Measure) -> str:
    return written("rates.rates" if measure.is_rate else "rates.means")


def _graders(figures: RubricFigures, measure: Measure) -> list[str]:
    """Graders with raw rates or means."""
    raw = figures.select(measure.raw, _on(measure))
    return [name for name in dict.fromkeys(e.grader or e.rater for e in raw) if name != "humans"]


def _raw(figures: RubricFigures, grader: str, measure: Measure) -> list[tuple[str, Figure]]:
    """A grader's raw rates or means, with their subjects."""
    raters = ("humans", grader) if measure.is_rate else (grader, "")
    return [(row.at, row) for row in figures.select(measure.raw, _on(measure), raters)]


def with_every_rubric(source: Source, section: blocks.ReportSection) -> blocks.ReportSection:
    """Add a table of two subjects or more by rubric, each corrected by the grader that agrees with
    people most, with the published rates that the study declares; of many subjects it is folded.
    """
    columns: dict[str, dict[str, blocks.Cell]] = {}
    by: dict[str, list[str]] = {}
    kinds: set[str] = set()
    titles = [figures.title for figures in source.rubrics]
    beside = source.context.beside
    citation, quoted = (beside.published.citation, beside.published.figure) if beside else ("", [])
    for figures in source.rubrics:
        shown = figures.select(_statistic(figures), ALL_BINARY)
        graders = dict.fromkeys(row.grader for row in shown if row.at and not row.reason)
        for grader in figures.by_agreement(graders, ALL_BINARY)[:1]:
            title = figures.title
            if titles.count(title) > 1:
                title = f"{title} ({figures.rubric})"
            rates = _at(figures, _statistic(figures), grader)
            columns[title] = {subject: figure.cell for subject, figure in rates.items()}
            declared = {
                row.at: blocks.Cell(row.beside_ours, published=citation)
                for row in quoted
                if (row.rubric, row.between) == (figures.rubric, "subjects") and row.at in rates
            }
            if declared:
                columns[written("rates.published", rubric=title)] = declared
            kinds.add(_kind(figures, grader))
            by.setdefault(_by(figures, grader), []).append(title)
    subjects = dict.fromkeys(subject for cells in columns.values() for subject in cells)
    if len(subjects) < 2:
        return section
    rows = []
    for name in subjects:
        cells = tuple(column.get(name, blocks.Cell()) for column in columns.values())
        rows.append(blocks.Row(name, cells))
    whose = [written("rates.by_rubrics", rubrics=", ".join(by[e]), by=e) for e in by]
    if len(by) == 1:
        whose = [written("rates.by_one", by=next(iter(by)))]
    note = ("PPI++" if "corrected" in kinds else "*", "; ".join(whose))
    (kind,) = kinds if len(kinds) == 1 else ("corrected",)
    caption = written(f"rates.every_rubric_{kind}")
    table = Table(caption, "Subject", tuple(columns), tuple(rows), (note,))
    if len(rows) > charts.MAX_LISTED:
        return replace(section, parts=(Part(title=caption, folded=(table,)), *section.parts))
    return replace(section, blocks=(table,))


def _statistic(figures: RubricFigures, measure: Measure = RATES) -> str:
    """Return the statistic of the rates that are shown: raw ones before annotators labelled."""
    return measure.powered if figures.select(measure.powered, _on(measure)) else measure.raw


def _kind(
    figures: RubricFigures, grader: str, measure: Measure = RATES
) -> Literal["corrected", "own", "raw"]:
    """Return the kind of a grader's rates; *own* if annotators labelled all that it graded."""
    if _statistic(figures, measure) == measure.raw:
        return "raw"
    rates = defined(_at(figures, measure.powered, grader, measure).values())
    by_people = bool(rates) and all(figure.says("peoples_own") for figure in rates)
    return "own" if by_people else "corrected"


def _by(figures: RubricFigures, grader: str, measure: Measure = RATES) -> str:
    """Say whose labels the rates that are shown rest on."""
    kind = _kind(figures, grader, measure)
    labels = kind == "corrected" and not measure.is_rate
    return written(f"rates.by_{'labels' if labels else kind}", grader=grader)


def _answer(figures: RubricFigures, graders: list[str], measure: Measure) -> list[object]:
    """State the rate on all units by the best grader; else the highest and lowest subject."""
    people = figures.get(measure.people, "humans", subset=_on(measure))
    for grader in figures.by_agreement(graders, _on(measure)):
        shown_by = _statistic(figures, measure)
        raw = dict(_raw(figures, grader, measure)).get("")
        rates = dict(_raw(figures, grader, measure))
        if shown_by != measure.raw:
            rates = _at(figures, shown_by, grader, measure)
        corrected = rates.get("")
        what = {"grader": grader, "what": _what(measure).removesuffix("s")}
        if raw and shown_by == measure.raw:
            return in_pieces("report.rates_raw", raw=raw, **what)
        if raw and corrected and not (corrected.reason or corrected.says("peoples_own")):
            rates_of = in_pieces("report.rates", raw=raw, corrected=corrected, **what)
            of_people = in_pieces("report.rates_people", rate=people) if people else []
            return sentences(rates_of, of_people)
        if len(by_subject := defined(rates.values())) > 1:
            first, last = by_subject[0], by_subject[-1]
            about = {"first": first.at, "highest": first, "last": last.at, "lowest": last, **what}
            by = _by(figures, grader, measure)
            return in_pieces("report.rates_of_subjects", by=by, **about)
    return in_pieces("report.rates_nothing")


def _at(
    figures: RubricFigures, statistic: str, grader: str, measure: Measure = RATES
) -> dict[str, Figure]:
    """A grader's figures of one statistic, by their `at`."""
    rows = figures.select(statistic, _on(measure), ("humans", grader))
    return {row.at: row for row in rows}


def _pairs(
    figures: RubricFigures, grader: str, measure: Measure = RATES
) -> list[tuple[str, str, Figure]]:
    """Every two subjects whose difference is known, in the order of the rows."""
    both = (measure.difference, measure.powered)
    differences, subjects = (_at(figures, pair, grader, measure) for pair in both)
    pairs = ((*pair, differences.get(from_to(*pair))) for pair in combinations(subjects, 2))
    return [(first, second, figure) for first, second, figure in pairs if figure]


def _heading(figures: RubricFigures, grader: str, measure: Measure = RATES) -> str:
    return written("rates.own") if _kind(figures, grader, measure) == "own" else grader


def _by_side(figures: RubricFigures, grader: str, measure: Measure = RATES) -> list[Figure]:
    of_sides = (e for e in figures.everywhere(measure.sides) if e.column == "side")
    return [figure for figure in of_sides if figure.raters == ("humans", grader)]


def _side_sentences(figures: RubricFigures, grader: str) -> Iterator[str]:
    """Yield sentences on the sides: every subject with a clear difference, or that none has."""
    names, by = figures.analysis.settings.sides, _by(figures, grader)
    apart = [figure for figure in _by_side(figures, grader) if figure.interval]
    clear = [figure for figure in apart if figure.is_clear]
    for figure in clear:
        sign, (toward, other) = (1, names) if figure.bounds[1] > 0 else (-1, names[::-1])
        ends = sorted(sign * at for at in figure.bounds)
        low, more, high = (shown(row, _SIDES) for row in ends)
        about = {"by": by, "subject": figure.at, "toward": toward, "other": other}
        about |= {"more": f"{more} [{low}, {high}]", "line": f"{figure.line}"}
        yield written("rates.side" if figure.at else "rates.side_of_all", **about)
    if apart and not clear:
        about, one = {"by": by, "first": names[0], "second": names[1]}, not any(e.at for e in apart)
        yield written("rates.no_side_of_all" if one else "rates.no_side", **about)


def _one_sided(figures: RubricFigures, graders: list[str]) -> Iterator[str]:
    """Yield sentences on subjects whose answers to one side alone were graded."""
    by_subjects: dict[tuple[str, ...], list[str]] = {}
    for grader in graders:
        reasons = ((row.at, row.reason) for row in _by_side(figures, grader))
        alone = tuple(at for at, reason in reasons if reason and reason.code == "one_side_only")
        by_subjects.setdefault(alone, []).append(grader)
    for subjects, by in by_subjects.items():
        if subjects and all(subjects):
            yield written("rates.one_side_only", subjects=", ".join(subjects))
        elif subjects:
            yield written("rates.one_side_only_of_all", graders=charts.first_of(by))


def _rates_by_parts(figures: RubricFigures, graders: list[str]) -> list[blocks.Block]:
    """Show the rates in every part of the sample, then those of answers on each side."""
    of_answers = _of_answers(figures)
    made: list[blocks.Block] = []
    kinds = {_kind(figures, grader) for grader in graders}
    rates = [
        rate.without("labelled_by_people").without("peoples_own")
        for rate in chain.from_iterable(figures.parts(_statistic(figures)).values())
    ]
    for what in ("parts", "parts_by_side"):
        chosen = [e for e in rates if (e.column in of_answers) == (what == "parts_by_side")]
        plain = "corrected" not in kinds  # nothing was corrected in them
        title = written(f"rates.{what}_plain" if plain else f"rates.{what}", what=_what(RATES))
        caption = written(f"chart.rates_by_{what}_plain" if plain else f"chart.rates_by_{what}")
        tables = _parts_table(figures, graders, chosen, title)
        drawn = (
            _rates_by_part(figures, grader, chosen, tables, caption)
            for grader in figures.by_agreement(graders, ALL_BINARY)
        )
        made += next(filter(None, drawn), tables)
    return made


def _of_answers(figures: RubricFigures) -> set[str]:
    """The columns whose rates are of single answers, not of pairs with both."""
    columns = {part.partition("=")[0] for part in figures.parts("rate_raw")}
    if "side" not in columns:
        return set()
    return {"side", "leaning"} if figures.analysis.settings.leanings else {"side"}


def _parts_table(
    figures: RubricFigures, graders: list[str], rates: Sequence[Figure], caption: str
) -> list[Table]:
    """Tabulate each grader and part in a row, each subject in a column."""
    by_key = {row.key: row for row in rates}
    subjects = dict.fromkeys(row.at for row in rates)
    if len(subjects) > charts.MAX_LISTED:  # of more, the rates are in results.csv alone
        return []

    def rate(key: Key, *, at: str) -> Figure | None:
        return by_key.get(key._replace(at=at))

    columns = [(at or written("rates.all_units"), partial(rate, at=at)) for at in subjects]
    parts = {row.part: row.key for row in rates}
    rows: list[RowPlace] = []
    for grader in graders:
        of_grader = ((part, key._replace(rater_b=grader)) for part, key in parts.items())
        rows += [(_heading(figures, grader), None), *of_grader]
    return figures.table("rates.parts", rows, columns, caption=caption)


def _rates_by_part(
    figures: RubricFigures, grader: str, rates: Sequence[Figure], data: list[Table], caption: str
) -> list[Chart]:
    """Draw a grader's rates of subjects by part ("column=value"), if it has any."""
    columns = grouped(dict.fromkeys(e.part for e in rates), lambda part: part.partition("=")[0])
    by_place = {(row.part, row.at): row for row in rates if row.grader == grader}
    every = list(dict.fromkeys(subject for _, subject in by_place))
    subjects = every[: charts.MAX_LISTED]
    most = {part for of_column in columns.values() for part in of_column[:_MOST_PARTS]}
    drawn = [part for part in dict.fromkeys(e.part for e in rates) if part in most]
    places = ((part, subject) for part in drawn for subject in subjects)
    shown = [by_place[place] for place in places if place in by_place]
    if all(figure.reason for figure in shown):
        return []
    titles = charts.shortened(subjects) | {"": written("rates.all_units")}
    names = charts.shortened([part.partition("=")[2] for part in drawn])
    values: list[charts.Datum] = []
    for figure in shown:
        mark = "*" if figure.says("few_labelled") else ""
        datum = figure.datum(a=titles[figure.at], b=names[figure.value], column=figure.column)
        values.append(datum | {"shown": f"{figure.estimate}{mark}"})
    heads = [titles[subject] for subject in subjects]
    axes = {"x": written("chart.scores_subject"), "y": written("chart.rates_part")}
    panels = []
    for column, same in grouped(values, lambda datum: datum["column"]).items():
        grid = charts.shaded([*heads, *charts.in_order(same, "b")], _STEPS, **axes, slanted=True)
        panels.append(charts.filled("rates_panel", column=column, grid=grid)["spec"])
    few, undefined = written("chart.few_labelled"), written("chart.heat_map_note", dash=DASH)
    return figures.chart(
        "rates", values, data,
        few if any(figure.says("few_labelled") for figure in shown) else "",
        undefined if any(figure.reason for figure in shown) else "",
        charts.left_out(every, subjects, "subjects"),
        *(charts.left_out(same, drawn, "values", _MOST_PARTS) for same in columns.values()),
        caption=caption, by=_by(figures, grader), subjects=heads, parts=drawn, panels=panels,
    )  # fmt: skip


def _apart(figures: RubricFigures, grader: str, measure: Measure) -> Iterator[str]:
    """Yield a sentence on the subjects that can be told apart."""
    pairs, by = _pairs(figures, grader, measure), _by(figures, grader, measure)
    below: dict[str, list[str]] = {}
    for first, second, figure in pairs:
        if figure.is_clear and figure.interval:
            above, other = (first, second) if figure.bounds[0] > 0 else (second, first)
            below.setdefault(above, []).append(other)
    if not below and pairs:
        yield written("rates.none_apart", by=by)
    elif below:
        clear = [
            written("rates.above", subject=subject, others=", ".join(others))
            for subject, others in below.items()
        ]
        count = sum(map(len, below.values()))
        yield written("rates.apart", by=by, pairs=len(pairs), apart=count, clear="; ".join(clear))


def _rate_sentences(
    figures: RubricFigures, graders: list[str], compared: dict[Measure, list[str]]
) -> Iterator[str]:
    for grader in graders:
        rogan_gladen = _at(figures, "rate_rogan_gladen", grader)
        reasons = {figure.reason and figure.reason.code for figure in rogan_gladen.values()}
        if reasons == {"no_unlabelled_units"}:
            yield written("rates.nothing_else", grader=grader)
        if "grader_not_informative" in reasons:
            j = _at(figures, "youden_j", grader)[""]
            shown = f"{j.estimate} {j.interval}"
            yield written("rates.not_informative", grader=grader, j=shown, line=j.line)
        if grader in compared[RATES]:
            yield from _apart(figures, grader, RATES)
            yield from _side_sentences(figures, grader)
    for grader in compared[MEANS]:
        yield from _apart(figures, grader, MEANS)
    yield from _one_sided(figures, graders)
