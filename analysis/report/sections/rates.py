"""Subjects' rates as graders count them and as people would, and their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from typing import Literal

from evenhand.analysis.report import blocks, charts
from evenhand.analysis.report.figures import ALL_BINARY, Figure, Key, defined, shown
from evenhand.analysis.report.source import (
    Column,
    Layers,
    RubricFigures,
    Source,
    TableRow,
    rows_of,
    sentences,
)
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.texts import DASH, in_pieces, written

_RATES = ["rate_raw", "rate_rogan_gladen", "rate_ppi"]
_RANKS = "rate_rank_set"
_ERRORS = ["sensitivity", "specificity", "youden_j"]
_DIFFERENCE = "rate_difference_ppi"
_SIDES = "rate_side_difference_ppi"
_PLAIN = {"parts": "parts_plain", "parts_by_side": "parts_by_side_plain"}
"""Captions of rates that nothing was corrected in."""
_STEPS = [0.05, 0.15, 0.3, 0.5, 0.75]
_MOST_PARTS = 40


def with_every_rubric(source: Source, section: blocks.ReportSection) -> blocks.ReportSection:
    """Add a table of all rubrics to the section; one of many subjects is folded."""
    table = _every_rubric(source)
    if table is None:
        return section
    if len(table.rows) > charts.MAX_LISTED:
        part = blocks.Part(table.caption, "", folded=(table,))
        return replace(section, parts=(part, *section.parts))
    return replace(section, blocks=(table,))


def layers(figures: RubricFigures) -> Layers:
    """Rates and their order on a rubric that people labelled and a grader graded."""
    raw = figures.select("rate_raw", ALL_BINARY)
    graders = list(dict.fromkeys(figure.grader for figure in raw))
    if not graders:
        return Layers()
    # People's own rates are the same whoever graded the units.
    own = [grader for grader in graders if _kind(figures, grader) == "own"]
    compared = [grader for grader in graders if grader not in own[1:]]

    def subject(figure: Figure) -> str:
        return figure.at or written("rates.all_units")

    def heading(figure: Figure) -> str:
        return _heading(figures, figure.grader)

    people = (entry_for("rate_human").label, {"statistic": "rate_human", "rater_b": ""})
    columns: list[str | tuple[str, Column]] = [_RATES[0], people, *_RATES[1:]]
    differences: list[TableRow] = []
    for grader in compared:
        differences.append((_heading(figures, grader), None))
        for first, second, figure in _pairs(figures, grader):
            title = written("rates.difference", first=first, second=second)
            differences.append((title, figure))
    one, other = figures.analysis.settings.sides
    by_side = [figure for grader in compared for figure in _by_side(figures, grader)]
    sides = rows_of(by_side, subject, heading)
    ranked = [each for grader in graders for each in _of(figures, _RANKS, grader)]
    ranks = rows_of(ranked, lambda each: each.at, lambda each: each.grader)
    who = [(grader, ("humans", grader)) for grader in graders]
    return Layers(
        answers=[_answer(figures, graders)],
        folded=[
            *figures.table(
                written("rates.caption"), "Subject", columns,
                rows_of(raw, subject, lambda each: each.grader),
            ),
            *figures.table(
                written("rates.differences"), "Subjects", [_DIFFERENCE], differences,
                count="", drawn=True,
            ),
            *figures.table(
                written("rates.sides", first=one, second=other), "Subject", [_SIDES], sides,
                count="Pairs", drawn=True,
            ),
            *_parts(figures, compared),
            *figures.panel(written("rates.errors"), "Grader", _ERRORS, who, ALL_BINARY, count=""),
            *blocks.items(written("rates.what"), _sentences(figures, graders, compared)),
        ],
        appendix=figures.table(written("rates.ranks"), "Subject", [_RANKS], ranks, count=""),
    )  # fmt: skip


def _every_rubric(source: Source) -> blocks.Table | None:
    """Subjects by rubrics, each corrected by the grader that agrees with people most, with the
    published rates where the study declares any; None of fewer than two subjects.
    """
    columns: dict[str, dict[str, blocks.Cell]] = {}
    by: dict[str, list[str]] = {}
    kinds: set[str] = set()
    titles = [figures.title for figures in source.rubrics]
    beside = source.context.beside
    citation, quoted = (beside.published.citation, beside.published.figure) if beside else ("", [])
    for figures in source.rubrics:
        # Those with two subjects' rates.
        found = figures.select(_statistic(figures), ALL_BINARY)
        graders = dict.fromkeys(each.grader for each in found if each.at and not each.reason)
        for grader in figures.by_agreement(graders, ALL_BINARY)[:1]:
            title = figures.title
            if titles.count(title) > 1:
                title = f"{title} ({figures.rubric})"
            rates = _at(figures, _statistic(figures), grader)
            columns[title] = {subject: figure.cell for subject, figure in rates.items()}
            declared = {
                each.at: blocks.Cell(each.beside_ours, published=citation)
                for each in quoted
                if (each.rubric, each.between) == (figures.rubric, "subjects") and each.at in rates
            }
            if declared:
                columns[written("rates.published", rubric=title)] = declared
            kinds.add(_kind(figures, grader))
            by.setdefault(_by(figures, grader), []).append(title)
    subjects = dict.fromkeys(subject for cells in columns.values() for subject in cells)
    if len(subjects) < 2:
        return None
    empty = blocks.Cell()
    rows = [
        blocks.Row(subject, tuple(cells.get(subject, empty) for cells in columns.values()))
        for subject in subjects
    ]
    whose = [
        written("rates.by_rubrics", rubrics=", ".join(titles), by=each)
        for each, titles in by.items()
    ]
    if len(by) == 1:
        whose = [written("rates.by_one", by=next(iter(by)))]
    notes = [("PPI++" if "corrected" in kinds else "*", "; ".join(whose))]
    (kind,) = kinds if len(kinds) == 1 else ("corrected",)
    caption = written(f"rates.every_rubric_{kind}")
    return blocks.Table(caption, "Subject", tuple(columns), tuple(rows), tuple(notes))


def _statistic(figures: RubricFigures) -> str:
    """Return the statistic of the rates that are shown: raw ones before annotators labelled."""
    return "rate_ppi" if figures.select("rate_ppi", ALL_BINARY) else "rate_raw"


def _kind(figures: RubricFigures, grader: str) -> Literal["corrected", "own", "raw"]:
    """Return what a grader's rates are: corrected, raw, or annotators' own, who labelled all of
    the units that it graded.
    """
    if _statistic(figures) == "rate_raw":
        return "raw"
    known = defined(_at(figures, "rate_ppi", grader).values())
    own = bool(known) and all(figure.says("peoples_own") for figure in known)
    return "own" if own else "corrected"


def _by(figures: RubricFigures, grader: str) -> str:
    """Say whose labels the rates that are shown rest on."""
    return written(f"rates.by_{_kind(figures, grader)}", grader=grader)


def _answer(figures: RubricFigures, graders: list[str]) -> list[object]:
    """The rate on all units, raw and corrected, by the grader that agrees with people most; of
    several subjects the highest and the lowest.
    """
    people = _at(figures, "rate_human", "").get("")
    for grader in figures.by_agreement(graders, ALL_BINARY):
        shown_by = _statistic(figures)
        columns = [_at(figures, name, grader) for name in ("rate_raw", shown_by)]
        raw, corrected = (column.get("") for column in columns)
        if raw and shown_by == "rate_raw":
            return in_pieces("report.rates_raw", grader=grader, raw=raw)
        if raw and corrected and not (corrected.reason or corrected.says("peoples_own")):
            said = in_pieces("report.rates", grader=grader, raw=raw, corrected=corrected)
            return sentences(said, in_pieces("report.rates_people", rate=people) if people else [])
        if len(by_subject := defined(columns[1].values())) > 1:
            first, last = by_subject[0], by_subject[-1]
            return in_pieces(
                "report.rates_of_subjects",
                by=_by(figures, grader), first=first.at, highest=first, last=last.at, lowest=last,
            )  # fmt: skip
    return in_pieces("report.rates_nothing")


def _of(figures: RubricFigures, statistic: str, grader: str) -> list[Figure]:
    """A grader's figures of one statistic, in the order of the table."""
    return figures.between(statistic, "humans", grader, ALL_BINARY)


def _at(figures: RubricFigures, statistic: str, grader: str) -> dict[str, Figure]:
    """A grader's figures of one statistic, by their `at`."""
    return {figure.at: figure for figure in _of(figures, statistic, grader)}


def _pairs(figures: RubricFigures, grader: str) -> list[tuple[str, str, Figure]]:
    """Every two subjects whose difference is known, in the order of the rows."""
    found, subjects = (_at(figures, name, grader) for name in (_DIFFERENCE, "rate_raw"))
    pairs = ((*pair, found.get(from_to(*pair))) for pair in combinations(subjects, 2))
    return [(first, second, figure) for first, second, figure in pairs if figure]


def _heading(figures: RubricFigures, grader: str) -> str:
    return written("rates.own") if _kind(figures, grader) == "own" else grader


def _by_side(figures: RubricFigures, grader: str) -> list[Figure]:
    return [
        figure
        for found in figures.parts(_SIDES).values()
        for figure in found
        if figure.raters == ("humans", grader)
    ]


def _side_sentences(figures: RubricFigures, grader: str) -> Iterator[str]:
    """Yield what is said of the sides: every subject with a clear difference, or that none has."""
    names, by = figures.analysis.settings.sides, _by(figures, grader)
    known = [figure for figure in _by_side(figures, grader) if figure.interval]
    clear = [figure for figure in known if not figure.bounds[0] <= 0 <= figure.bounds[2]]
    for figure in clear:
        sign, (toward, other) = (1, names) if figure.bounds[1] > 0 else (-1, names[::-1])
        low, more, high = (
            shown(each, _SIDES) for each in sorted(sign * at for at in figure.bounds)
        )
        yield written(
            "rates.side" if figure.at else "rates.side_of_all",
            by=by, subject=figure.at, toward=toward, other=other,
            more=f"{more} [{low}, {high}]", line=figure.line,
        )  # fmt: skip
    if known and not clear:
        yield written(
            "rates.no_side" if any(figure.at for figure in known) else "rates.no_side_of_all",
            by=by, first=names[0], second=names[1],
        )  # fmt: skip


def _one_sided(figures: RubricFigures, graders: list[str]) -> Iterator[str]:
    """Yield sentences on subjects whose answers to one side alone were graded."""
    found: dict[tuple[str, ...], list[str]] = {}
    for grader in graders:
        alone = [
            figure.at
            for figure in _by_side(figures, grader)
            if figure.reason and figure.reason.code == "one_side_only"
        ]
        found.setdefault(tuple(alone), []).append(grader)
    for subjects in filter(None, found):
        if all(subjects):
            yield written("rates.one_side_only", subjects=", ".join(subjects))
        else:
            yield written("rates.one_side_only_of_all", graders=_some(found[subjects]))


# Parts of the sample


def _parts(figures: RubricFigures, graders: list[str]) -> list[blocks.Block]:
    """The rates by PPI++ in every part of the sample, then those of the answers on each side; drawn
    for the first grader.
    """
    of_answers = _of_answers(figures)
    made: list[blocks.Block] = []
    kinds = {_kind(figures, grader) for grader in graders}
    for what in ("parts", "parts_by_side"):
        parts = {
            part: [each.without("labelled_by_people").without("peoples_own") for each in found]
            for part, found in figures.parts(_statistic(figures)).items()
            if (part.partition("=")[0] in of_answers) == (what == "parts_by_side")
        }
        named = what if "corrected" in kinds else _PLAIN[what]
        tables = _parts_table(figures, graders, parts, written(f"rates.{named}"))
        caption = written(f"chart.rates_by_{named}")
        drawn = (
            _rates_by_part(figures, grader, parts, tables, caption)
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
    figures: RubricFigures, graders: list[str], parts: Mapping[str, Sequence[Figure]], caption: str
) -> list[blocks.Table]:
    """A row for each grader and part, a column for each subject."""
    known = {each.key: each for found in parts.values() for each in found}
    subjects = dict.fromkeys(each.at for each in known.values())
    if len(subjects) > charts.MAX_LISTED:  # of more, the rates are in results.csv alone
        return []

    def rate(key: Key, *, at: str) -> Figure | None:
        return known.get(key._replace(at=at))

    columns = [(at or written("rates.all_units"), partial(rate, at=at)) for at in subjects]
    rows: list[TableRow] = []
    for grader in graders:
        rows.append((_heading(figures, grader), None))
        rows += [(part, found[0].key._replace(rater_b=grader)) for part, found in parts.items()]
    return figures.table(caption, "Part", columns, rows, count="")


def _rates_by_part(
    figures: RubricFigures,
    grader: str,
    parts: Mapping[str, Sequence[Figure]],
    data: list[blocks.Table],
    caption: str,
) -> list[blocks.Chart]:
    """Draw the subjects' rates by part ("column=value"), then by subject; empty where a grader has
    none.
    """
    columns: dict[str, list[str]] = {}
    for part in parts:
        columns.setdefault(part.partition("=")[0], []).append(part)
    own = {part: {e.at: e for e in found if e.grader == grader} for part, found in parts.items()}
    every = list(dict.fromkeys(subject for rates in own.values() for subject in rates))
    subjects = every[: charts.MAX_LISTED]
    most = {part for of_column in columns.values() for part in of_column[:_MOST_PARTS]}
    drawn = [part for part in parts if part in most]
    found = [(part, own[part][name]) for part in drawn for name in subjects if name in own[part]]
    if all(figure.reason for _, figure in found):
        return []
    titles = charts.shortened(subjects) | {"": written("rates.all_units")}
    names = charts.shortened([part.partition("=")[2] for part in drawn])
    values: list[charts.Datum] = []
    rows: dict[str, dict[str, None]] = {}
    for part, figure in found:
        column, _, value = part.partition("=")
        rows.setdefault(column, {})[names[value]] = None
        mark = "*" if figure.says("few_labelled") else ""
        datum = figure.datum(a=titles[figure.at], b=names[value], column=column)
        values.append(datum | {"shown": f"{figure.estimate}{mark}"})
    heads = [titles[subject] for subject in subjects]
    axes = {"x": written("chart.scores_subject"), "y": written("chart.rates_part")}
    panels = [
        charts.panel("column", column, width={"step": 58}, height={"step": 28})
        | charts.shaded([*heads, *of_column], _STEPS, **axes, slanted=True)
        for column, of_column in rows.items()
    ]
    by = _by(figures, grader)
    about = {"subjects": ", ".join(heads), "parts": ", ".join(drawn)}
    few = any(figure.says("few_labelled") for _, figure in found)
    undefined = any(figure.reason for _, figure in found)
    return figures.chart(
        caption,
        written("chart.rates_by_part_alt", by=by, **about),
        values,
        {"vconcat": panels},
        data,
        written("chart.rates_by_part_note", by=by),
        written("chart.few_labelled") if few else "",
        written("chart.heat_map_note", dash=DASH) if undefined else "",
        charts.left_out(every, subjects, "subjects"),
        *(charts.left_out(same, drawn, "values", _MOST_PARTS) for same in columns.values()),
    )


# Sentences


def _missing(figures: RubricFigures, graders: list[str]) -> Iterator[str]:
    """Yield sentences on subjects that answered only some of the prompts, one for graders alike."""
    answers = _of_answers(figures)
    absent: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    unpaired: dict[tuple[str, str, int, int], tuple[list[str], int]] = {}
    for grader in graders:
        there = {
            part: [figure.at for figure in found if figure.raters == ("humans", grader)]
            for part, found in figures.parts("rate_raw").items()
        }
        subjects = dict.fromkeys(_at(figures, "rate_raw", grader))
        subjects |= dict.fromkeys(chain.from_iterable(there.values()))
        for part, present in there.items():
            names = tuple(e for e in subjects if present and e and e not in present)
            if names:
                of_pairs = answers and part.partition("=")[0] not in answers
                which = "no_pairs" if of_pairs else "no_answers"
                absent.setdefault((which, grader, names), []).append(part)
        pairs = _pairs(figures, grader)
        if few := [each for each in pairs if each[2].says("prompts_differ")]:
            first, second, figure = min(few, key=lambda each: _shared(each[2]))
            same = unpaired.setdefault((first, second, *_shared(figure)), ([], figure.line))
            same[0].append(grader)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (which, grader, names), places in absent.items():
        alike.setdefault((which, names, tuple(places)), []).append(grader)
    for (which, *where), by in alike.items():
        lacking, parts = (_some(each) for each in where)
        yield written(f"rates.{which}", subjects=lacking, parts=parts, graders=_some(by))
    for (first, second, shared, every), (by, line) in unpaired.items():
        yield written(
            "rates.prompts_differ",
            graders=_some(by), first=first, second=second, shared=shared, every=every, line=line,
        )  # fmt: skip


def _some(names: Sequence[str]) -> str:
    """Names one after the other, of many the first and how many more there are."""
    said = ", ".join(names[: charts.MAX_LISTED])
    more = len(names) - charts.MAX_LISTED
    return written("rates.and_more", names=said, more=more) if more > 0 else said


def _shared(figure: Figure) -> tuple[int, int]:
    """How many clusters two subjects share, and how many they have together."""
    (detail,) = (each.detail for each in figure.remarks if each.code == "prompts_differ")
    both, either = detail
    return int(str(both)), int(str(either))


def _apart(figures: RubricFigures, grader: str) -> Iterator[str]:
    """Yield a sentence on the subjects that can be told apart."""
    pairs, by = _pairs(figures, grader), _by(figures, grader)
    below: dict[str, list[str]] = {}
    for first, second, figure in pairs:
        low, _, high = figure.bounds
        if low > 0 or high < 0:
            above, other = (first, second) if low > 0 else (second, first)
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


def _sentences(figures: RubricFigures, graders: list[str], compared: list[str]) -> Iterator[str]:
    for grader in graders:
        rogan_gladen = _at(figures, "rate_rogan_gladen", grader)
        reasons = {figure.reason and figure.reason.code for figure in rogan_gladen.values()}
        if reasons == {"no_unlabelled_units"}:
            yield written("rates.nothing_else", grader=grader)
        if "grader_not_informative" in reasons:
            j = _at(figures, "youden_j", grader)[""]
            own = f"{j.estimate} {j.interval}"
            yield written("rates.not_informative", grader=grader, j=own, line=j.line)
        bias = _at(figures, "rogan_gladen_bias", grader)
        for subject, figure in rogan_gladen.items():
            if figure.says("errors_differ"):
                missed = bias[subject]
                yield written(
                    "rates.errors_differ",
                    grader=grader, subject=subject, line=missed.line,
                    missed=f"{missed.estimate} {missed.interval}",
                )  # fmt: skip
        if grader in compared:
            yield from _apart(figures, grader)
            yield from _side_sentences(figures, grader)
    yield from _one_sided(figures, graders)
    yield from _missing(figures, graders)
