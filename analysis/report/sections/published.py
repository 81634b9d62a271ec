"""Section that compares published figures with the study's own.

A study declares its `Replication`, with the published figures (below, `quoted`). `_matches` pairs
each with the study's figures of the same quantity, for the table and for published.csv.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from evenhand.analysis.agreement.groups import REWORDED, SPREAD, STABILITY
from evenhand.analysis.bias.audit import family_of
from evenhand.analysis.report import blocks
from evenhand.analysis.report import source as src
from evenhand.analysis.report.blocks import Cell, ReportSection, Row, Table
from evenhand.analysis.report.source import Replication
from evenhand.analysis.statistics import entry_for
from evenhand.study.settings.analysis import PublishedFigure
from evenhand.texts import DASH, written

_REPEATED = "repeat"  # the `at` of stability over repeated answers to one prompt
Match = tuple[PublishedFigure, src.Figure | None]
"""A published figure and one of the study's own; None where the study has none yet."""


def section(source: src.Source) -> ReportSection | None:
    """Make the section from the figures that the study declares; None where it declares none."""
    if (declared := source.context.replication) is None:
        return None
    published, matches = declared.published, list(_matches(source, declared))
    # Published figures with an estimate of the study's own, each counted once.
    n_matched = len({id(quoted) for quoted, figure in matches if figure and not figure.reason})
    answer = written("reproduction.answer", matched=n_matched, quoted=len(published.figure))
    differs = blocks.Items(written("reproduction.differs"), tuple(declared.differences))
    about = (written("published.about"), published.citation)
    title = written("reproduction.title")
    if not matches:  # the published design has no figures
        return ReportSection("published-figures", title, (differs,), about=about)
    content, answers = (_table(source, declared, matches), differs), (blocks.Answer((answer,)),)
    return ReportSection("published-figures", title, content, answers, about=about)


def _matches(source: src.Source, declared: Replication) -> Iterator[Match]:
    """Yield every published figure once for each of the study's figures of the same quantity."""
    for quoted in declared.published.figure:
        figures: Sequence[src.Figure | None] = _study_figures(source, declared, quoted) or [None]
        yield from ((quoted, figure) for figure in figures)


def published_rows(source: src.Source, declared: Replication) -> list[Mapping[str, object]]:
    """Return the rows of published.csv, one for each match, numbers as in results.csv."""
    no_numbers = dict.fromkeys(src.Exact._fields)
    return [
        {
            "rubric": quoted.rubric, "statistic": quoted.statistic, "published_of": quoted.of,
            "published": quoted.value, "unit": quoted.unit, "published_number": quoted.as_result,
            "rater_a": figure.rater if figure else "",
            "rater_b": figure.grader if figure else "",
            "statistic_here": figure.statistic if figure else "",
            "subset": figure.subset if figure else quoted.subset,
            "at": figure.at if figure else quoted.at,
            "n_units": figure.n_units if figure else None,
            "n_clusters": figure.n_clusters if figure else None,
            **(figure.exact._asdict() if figure else no_numbers),
            "whose": _raters_title(quoted, figure) if figure else "",
            "note": _missing_reason(source, figure, quoted, declared),
            "differs": quoted.differs, "source": declared.published.citation,
        }
        for quoted, figure in _matches(source, declared)
    ]  # fmt: skip


def _table(source: src.Source, declared: Replication, matches: Sequence[Match]) -> Table:
    """Tabulate each match: the published figure, the study's own, and the raters of the latter."""
    citation = declared.published.citation
    rows: list[Row] = []
    notes: dict[str, str] = {}  # marks of footnotes, by text
    heading, previous = "", None
    for quoted, figure in matches:
        unit = "share" if quoted.unit == "percent" else quoted.unit
        name = source.rubric(quoted.rubric).caption(f"{entry_for(quoted.statistic).name}, {unit}")
        if name != heading:
            heading = name
            rows.append(Row(heading))
        note = quoted.differs
        mark = notes.setdefault(note, src.footnote_mark(len(notes))) if note else ""
        published = Cell(quoted.as_result_text, marks=mark, published=citation)
        if figure:
            study_cell, raters = figure.cell, Cell(_raters_title(quoted, figure))
        else:
            reason = _missing_reason(source, figure, quoted, declared)
            study_cell, raters = Cell(DASH, aside=reason), Cell()
        # A published figure with several of the study's is shown in the first row only.
        published_cell = Cell() if quoted is previous else published
        rows.append(Row(quoted.of, (published_cell, study_cell, raters)))
        previous = quoted
    heads = (written(f"reproduction.{name}") for name in ("published", "here", "whose"))
    caption, stub = written("reproduction.caption"), written("reproduction.figure")
    footnotes = tuple((mark, text) for text, mark in notes.items())
    return Table(caption, stub, tuple(heads), tuple(rows), footnotes)


def _study_figures(
    source: src.Source, declared: Replication, quoted: PublishedFigure
) -> list[src.Figure]:
    """Return the study's figures of the published quantity, also at a threshold that it names."""
    figures = source.rubric(quoted.rubric)
    if quoted.between == "subjects":
        rows = figures.select_all(quoted.statistic)
        if _is_of_one_subject(quoted):
            return [row for row in rows if (row.subset, row.at) == (quoted.subset, quoted.at)]
        # Rewording of the rubric and repeated answers to the same prompt are other quantities.
        rows = [row for row in rows if row.at not in (REWORDED, _REPEATED) and not row.is_binary]
        return [row for row in rows if row.subset != src.ALL] or rows
    rater_pairs: list[tuple[str, str]] = [("humans", "")]
    if quoted.between == "people and graders":
        rater_pairs = [("humans", grader) for grader in declared.graders]
    elif quoted.between == "graders":
        rater_pairs = _grader_pairs(source, declared, quoted)
    # Where single responses were labelled, the published figure is of the verdict on the pair.
    pair_statistic = f"pair_{quoted.statistic}"
    is_on_pairs = quoted.subset in figures.by_subset(pair_statistic)
    statistic = pair_statistic if is_on_pairs else quoted.statistic
    at_of = {statistic: quoted.at}
    if quoted.threshold:
        at_of[f"{statistic}_at_threshold"] = repr(quoted.threshold)
    keys = [(name, *pair, quoted.subset, at) for pair in rater_pairs for name, at in at_of.items()]
    return [figure for figure in (figures.get(*key) for key in keys) if figure]


def _grader_pairs(
    source: src.Source, declared: Replication, quoted: PublishedFigure
) -> list[tuple[str, str]]:
    """Return the pairs of the study's graders that are of the published model families, or all."""
    families, published = source.analysis.settings.families, sorted(quoted.graders)
    pairs = combinations(sorted(declared.graders), 2)
    if not published:
        return list(pairs)
    return [pair for pair in pairs if sorted(family_of(g, families) for g in pair) == published]


def _is_of_one_subject(quoted: PublishedFigure) -> bool:
    """Return True for a figure of one subject, such as a rate: its `at` is the subject's name."""
    return quoted.between == "subjects" and quoted.statistic not in (STABILITY, SPREAD)


def _raters_title(quoted: PublishedFigure, figure: src.Figure) -> str:
    """Name the raters of the study's own figure, with its subject or threshold if it has one."""
    rater = src.rater_title(figure.rater)
    if figure.statistic in (STABILITY, SPREAD):
        fields = {"subject": src.subject_title(figure.subset), "column": figure.at}
        return written("reproduction.answers_of", rater=rater, **fields)
    raters = src.pair_title(figure.raters) if figure.grader else rater
    if _is_of_one_subject(quoted):
        return written("reproduction.of_subject", subject=figure.at, whose=raters)
    if figure.statistic.endswith("_at_threshold"):
        return written("reproduction.at_cut", whose=raters, cut=figure.at)
    return raters


def _missing_reason(
    source: src.Source, figure: src.Figure | None, quoted: PublishedFigure, declared: Replication
) -> str:
    """State why the study has no estimate of its own; empty where it has one."""
    if figure is not None:
        return figure.reason.words if figure.reason else ""
    if _is_of_one_subject(quoted):
        return written("reproduction.no_subject", subject=quoted.at or quoted.of)
    key = {"graders": "two_graders", "subjects": "variants"}.get(quoted.between, "labels")
    if quoted.between == "graders" and len(declared.graders) > 1:
        key = "not_computed" if _grader_pairs(source, declared, quoted) else "not_run"
    return written(f"reproduction.{key}")
