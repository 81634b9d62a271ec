"""Subjects' rates as graders count them and as people would, and their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import Literal

from evenhand.analysis.report.blocks import Block, Cell, Items, Part, ReportSection, Row, Table
from evenhand.analysis.report.charts.grids import rates_by_part
from evenhand.analysis.report.charts.style import MAX_LISTED
from evenhand.analysis.report.figures import ALL_BINARY, Figure, shown
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_RATES = ["rate_raw", "rate_rogan_gladen", "rate_ppi"]
_RANKS = "rate_rank_set"
_ERRORS = ["sensitivity", "specificity", "youden_j"]
_MOST_COLUMNS = MAX_LISTED
"""Of more subjects the rates by part are in results.csv alone."""
_SIDES = "rate_side_difference_ppi"
_PLAIN = {"parts": "parts_plain", "parts_by_side": "parts_by_side_plain"}
"""Captions of rates that nothing was corrected in."""


def section(source: Source) -> ReportSection | None:
    """Rates and their order for every rubric that people labelled and a grader graded."""

    def layers_of(rubric: str) -> Layers:
        graders = list(
            dict.fromkeys(
                figure.raters[1] for figure in source.figures.select(rubric, "rate_raw", ALL_BINARY)
            )
        )
        if not graders:
            return Layers()
        # People's own rates are the same whoever graded the units.
        own = [grader for grader in graders if _kind(source, rubric, grader) == "own"]
        compared = [grader for grader in graders if grader not in own[1:]]
        found = [
            *_rates(source, rubric, graders),
            *_differences(source, rubric, compared),
            *_sides(source, rubric, compared),
            *_parts(source, rubric, compared),
            *_errors(source, rubric, graders),
        ]
        if sentences := tuple(_sentences(source, rubric, graders, compared)):
            found.append(Items(written("rates.what"), sentences))
        return Layers(
            answers=[_answer(source, rubric, graders)],
            folded=found,
            appendix=_ranks(source, rubric, graders),
        )

    found = source.section(
        "corrected-rates",
        written("rates.title"),
        layers_of,
        about=[written("rates.about")],
        otherwise=written("rates.none"),
    )
    table = _every_rubric(source)
    if found is None or table is None:
        return found
    if len(table.rows) > MAX_LISTED:
        return replace(found, parts=(Part(table.caption, "", folded=(table,)), *found.parts))
    return replace(found, blocks=(table,))


def _every_rubric(source: Source) -> Table | None:
    """Subjects by rubrics, each corrected by the grader that agrees with people most; None of fewer
    than two subjects.
    """
    columns: dict[str, dict[str, Cell]] = {}
    by: dict[str, list[str]] = {}
    kinds: set[str] = set()
    titles = [source.context.title_of(rubric) for rubric in source.figures.rubrics]
    for rubric in source.figures.rubrics:
        if grader := _best(source, rubric):
            title = source.context.title_of(rubric)
            if titles.count(title) > 1:
                title = f"{title} ({rubric})"
            rates = _at(source, rubric, _statistic(source, rubric), grader)
            columns[title] = {subject: figure.cell for subject, figure in rates.items()}
            if declared := _declared(source, rubric, rates):
                columns[written("rates.published", rubric=title)] = declared
            kinds.add(_kind(source, rubric, grader))
            by.setdefault(_by(source, rubric, grader), []).append(title)
    subjects = dict.fromkeys(subject for cells in columns.values() for subject in cells)
    if len(subjects) < 2:
        return None
    rows = [
        Row(subject, tuple(cells.get(subject, Cell()) for cells in columns.values()))
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
    return Table(caption, "Subject", tuple(columns), tuple(rows), tuple(notes))


def _declared(source: Source, rubric: str, subjects: Iterable[str]) -> dict[str, Cell]:
    """The published rates of these subjects, where the study declares any."""
    beside, known = source.context.beside, {*subjects}
    if beside is None:
        return {}
    return {
        each.at: Cell(each.beside_ours, published=beside.published.citation)
        for each in beside.published.figure
        if (each.rubric, each.between) == (rubric, "subjects") and each.at in known
    }


def _statistic(source: Source, rubric: str) -> str:
    """Return the statistic of the rates that are shown: raw ones before annotators labelled."""
    corrected = source.figures.select(rubric, "rate_ppi", ALL_BINARY)
    return "rate_ppi" if corrected else "rate_raw"


def _kind(source: Source, rubric: str, grader: str) -> Literal["corrected", "own", "raw"]:
    """Return what a grader's rates are: corrected, raw, or annotators' own, who labelled all of
    the units that it graded.
    """
    if _statistic(source, rubric) == "rate_raw":
        return "raw"
    known = defined(_at(source, rubric, "rate_ppi", grader).values())
    own = bool(known) and all(figure.says("peoples_own") for figure in known)
    return "own" if own else "corrected"


def _by(source: Source, rubric: str, grader: str) -> str:
    """Say whose labels the rates that are shown rest on."""
    return written(f"rates.by_{_kind(source, rubric, grader)}", grader=grader)


def _best(source: Source, rubric: str) -> str:
    """The grader that agrees with people most among those with two subjects' rates."""
    found = source.figures.select(rubric, _statistic(source, rubric), ALL_BINARY)
    graders = [figure.raters[1] for figure in found if figure.at and not figure.reason]
    return next(iter(source.by_agreement(rubric, dict.fromkeys(graders), ALL_BINARY)), "")


def _answer(source: Source, rubric: str, graders: list[str]) -> list[object]:
    """The rate on all units, raw and corrected, by the grader that agrees with people most; of
    several subjects the highest and the lowest.
    """
    people = _at(source, rubric, "rate_human", "").get("")
    for grader in source.by_agreement(rubric, graders, ALL_BINARY):
        shown_by = _statistic(source, rubric)
        columns = [_at(source, rubric, name, grader) for name in ("rate_raw", shown_by)]
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
                by=_by(source, rubric, grader),
                first=first.at, highest=first, last=last.at, lowest=last,
            )  # fmt: skip
    return in_pieces("report.rates_nothing")


def _at(source: Source, rubric: str, statistic: str, grader: str) -> dict[str, Figure]:
    """A grader's figures of one statistic, by their `at`."""
    figures = source.figures.select(rubric, statistic, ALL_BINARY)
    return {figure.at: figure for figure in figures if figure.raters == ("humans", grader)}


def _rates(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("rates.caption")),
        "Subject",
        [entry_for(name).label for name in ("rate_raw", "rate_human", *_RATES[1:])],
    )
    people = _at(source, rubric, "rate_human", "")
    for grader in graders:
        draft.group(grader)
        columns = [_at(source, rubric, name, grader) for name in _RATES]
        for subject, raw in columns[0].items():
            corrected = [column.get(subject) for column in columns[1:]]
            draft.add(subject or written("rates.all_units"), [raw, people.get(subject), *corrected])
    return [*draft.finish()]


def _pairs(source: Source, rubric: str, grader: str) -> list[tuple[str, str, Figure]]:
    """Every two subjects whose difference is known, in the order of the rows."""
    found = _at(source, rubric, "rate_difference_ppi", grader)
    subjects = _at(source, rubric, "rate_raw", grader)
    pairs = ((*pair, found.get(from_to(*pair))) for pair in combinations(subjects, 2))
    return [(first, second, figure) for first, second, figure in pairs if figure]


def _differences(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    label = entry_for("rate_difference_ppi").label
    caption = source.caption(rubric, written("rates.differences"))
    draft = TableDraft(caption, "Subjects", [label], count="", drawn=label)
    for grader in graders:
        draft.group(_heading(source, rubric, grader))
        for first, second, figure in _pairs(source, rubric, grader):
            draft.add(written("rates.difference", first=first, second=second), [figure])
    return [*draft.finish()]


def _heading(source: Source, rubric: str, grader: str) -> str:
    own = _kind(source, rubric, grader) == "own"
    return written("rates.own") if own else grader


def _sides(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    """The difference between the two sides of the pairs, for every subject."""
    label = entry_for(_SIDES).label
    first, second = source.analysis.settings.sides
    caption = source.caption(rubric, written("rates.sides", first=first, second=second))
    draft = TableDraft(caption, "Subject", [label], count="Pairs", drawn=label)
    for grader in graders:
        draft.group(_heading(source, rubric, grader))
        for figure in _by_side(source, rubric, grader):
            draft.add(figure.at or written("rates.all_units"), [figure])
    return [*draft.finish()]


def _by_side(source: Source, rubric: str, grader: str) -> list[Figure]:
    return [
        figure
        for figures in source.figures.parts(rubric, _SIDES).values()
        for figure in figures
        if figure.raters == ("humans", grader)
    ]


def _side_sentences(source: Source, rubric: str, grader: str) -> Iterator[str]:
    """Yield what is said of the sides: every subject with a clear difference, or that none has."""
    figures = _by_side(source, rubric, grader)
    names = source.analysis.settings.sides
    known = [figure for figure in figures if figure.interval]
    clear = [figure for figure in known if not figure.bounds[0] <= 0 <= figure.bounds[2]]
    for figure in clear:
        sign, (toward, other) = (1, names) if figure.bounds[1] > 0 else (-1, names[::-1])
        low, more, high = (
            shown(each, _SIDES) for each in sorted(sign * at for at in figure.bounds)
        )
        yield written(
            "rates.side" if figure.at else "rates.side_of_all",
            by=_by(source, rubric, grader), subject=figure.at, toward=toward, other=other,
            more=f"{more} [{low}, {high}]", line=figure.line,
        )  # fmt: skip
    if known and not clear:
        yield written(
            "rates.no_side" if any(figure.at for figure in known) else "rates.no_side_of_all",
            by=_by(source, rubric, grader), first=names[0], second=names[1],
        )  # fmt: skip


def _one_sided(source: Source, rubric: str, graders: list[str]) -> Iterator[str]:
    """Yield sentences on subjects whose answers to one side alone were graded."""
    found: dict[tuple[str, ...], list[str]] = {}
    for grader in graders:
        alone = [
            figure.at
            for figure in _by_side(source, rubric, grader)
            if figure.reason and figure.reason.code == "one_side_only"
        ]
        found.setdefault(tuple(alone), []).append(grader)
    for subjects in filter(None, found):
        if all(subjects):
            yield written("rates.one_side_only", subjects=", ".join(subjects))
        else:
            yield written("rates.one_side_only_of_all", graders=_some(found[subjects]))


def _parts(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    """The rates by PPI++ in every part of the sample, then those of the answers on each side."""
    every, own = _by_part(source, rubric), _of_answers(source, rubric)
    both = {part: figures for part, figures in every.items() if part.partition("=")[0] not in own}
    sides = {part: figures for part, figures in every.items() if part not in both}
    return [
        *_parts_of(source, rubric, graders, both, "parts"),
        *_parts_of(source, rubric, graders, sides, "parts_by_side"),
    ]


def _of_answers(source: Source, rubric: str) -> set[str]:
    """The columns whose rates are of single answers, not of pairs with both."""
    columns = {part.partition("=")[0] for part in source.figures.parts(rubric, "rate_raw")}
    if "side" not in columns:
        return set()
    return {"side", "leaning"} if source.analysis.settings.leanings else {"side"}


def _parts_of(
    source: Source,
    rubric: str,
    graders: list[str],
    found: dict[str, dict[tuple[str, str], Figure]],
    what: Literal["parts", "parts_by_side"],
) -> list[Block]:
    """A column for each subject; drawn for the first grader."""
    subjects = list(dict.fromkeys(at for figures in found.values() for _, at in figures))
    if not subjects:
        return []
    tables: list[Table] = []
    kinds = {_kind(source, rubric, grader) for grader in graders}
    named = what if "corrected" in kinds else _PLAIN[what]
    if len(subjects) <= _MOST_COLUMNS:
        caption = source.caption(rubric, written(f"rates.{named}"))
        heads = [subject or written("rates.all_units") for subject in subjects]
        draft = TableDraft(caption, "Part", heads, count="")
        for grader in graders:
            draft.group(_heading(source, rubric, grader))
            for part, figures in found.items():
                draft.add(part, [figures.get((grader, subject)) for subject in subjects])
        tables = draft.finish()
    for grader in source.by_agreement(rubric, graders, ALL_BINARY):
        own = {
            part: {at: figure for (by, at), figure in figures.items() if by == grader}
            for part, figures in found.items()
        }
        by = _by(source, rubric, grader)
        caption = source.caption(rubric, written(f"chart.rates_by_{named}"))
        if drawn := rates_by_part(by, own, tuple(tables), caption):
            return [*drawn]
    return [*tables]


def _by_part(source: Source, rubric: str) -> dict[str, dict[tuple[str, str], Figure]]:
    """The corrected rates by grader and subject, in every part of the sample."""
    return {
        part: {
            (each.raters[1], each.at): each.without("labelled_by_people").without("peoples_own")
            for each in figures
        }
        for part, figures in source.figures.parts(rubric, _statistic(source, rubric)).items()
    }


def _missing(source: Source, rubric: str, graders: list[str]) -> Iterator[str]:
    """Yield sentences on subjects that answered only some of the prompts, one for graders alike."""
    answers = _of_answers(source, rubric)
    parts: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    unpaired: dict[tuple[str, str, int, int], tuple[list[str], int]] = {}
    for grader in graders:
        there = {
            part: [figure.at for figure in figures if figure.raters == ("humans", grader)]
            for part, figures in source.figures.parts(rubric, "rate_raw").items()
        }
        subjects = dict.fromkeys(_at(source, rubric, "rate_raw", grader))
        subjects |= dict.fromkeys(chain.from_iterable(there.values()))
        for part, present in there.items():
            if absent := [each for each in subjects if present and each and each not in present]:
                of_pairs = answers and part.partition("=")[0] not in answers
                which = "no_pairs" if of_pairs else "no_answers"
                parts.setdefault((which, grader, tuple(absent)), []).append(part)
        pairs = _pairs(source, rubric, grader)
        if few := [each for each in pairs if each[2].says("prompts_differ")]:
            first, second, figure = min(few, key=lambda each: _shared(each[2]))
            same = unpaired.setdefault((first, second, *_shared(figure)), ([], figure.line))
            same[0].append(grader)
    alike: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (which, grader, lacking), where in parts.items():
        alike.setdefault((which, lacking, tuple(where)), []).append(grader)
    for (which, lacking, places), by in alike.items():
        yield written(
            f"rates.{which}", subjects=_some(lacking), parts=_some(places), graders=_some(by)
        )
    for (first, second, shared, every), (by, line) in unpaired.items():
        yield written(
            "rates.prompts_differ",
            graders=_some(by), first=first, second=second, shared=shared, every=every, line=line,
        )  # fmt: skip


def _some(names: Sequence[str]) -> str:
    """Names one after the other, of many the first and how many more there are."""
    said = ", ".join(names[:MAX_LISTED])
    more = len(names) - MAX_LISTED
    return written("rates.and_more", names=said, more=more) if more > 0 else said


def _shared(figure: Figure) -> tuple[int, int]:
    """How many clusters two subjects share, and how many they have together."""
    (detail,) = (each.detail for each in figure.remarks if each.code == "prompts_differ")
    both, either = detail
    return int(str(both)), int(str(either))


def _apart(source: Source, rubric: str, grader: str) -> Iterator[str]:
    """Yield a sentence on the subjects that can be told apart."""
    pairs = _pairs(source, rubric, grader)
    below: dict[str, list[str]] = {}
    for first, second, figure in pairs:
        low, _, high = figure.bounds
        if low > 0 or high < 0:
            above, other = (first, second) if low > 0 else (second, first)
            below.setdefault(above, []).append(other)
    if not below and pairs:
        yield written("rates.none_apart", by=_by(source, rubric, grader))
    elif below:
        clear = [
            written("rates.above", subject=subject, others=", ".join(others))
            for subject, others in below.items()
        ]
        count, by = sum(map(len, below.values())), _by(source, rubric, grader)
        yield written("rates.apart", by=by, pairs=len(pairs), apart=count, clear="; ".join(clear))


def _errors(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("rates.errors")),
        "Grader",
        [entry_for(name).label for name in _ERRORS],
        count="",
    )
    for grader in graders:
        draft.add(grader, [_at(source, rubric, name, grader).get("") for name in _ERRORS])
    return [*draft.finish()]


def _ranks(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("rates.ranks")),
        "Subject",
        [entry_for(_RANKS).label],
        count="",
    )
    for grader in graders:
        draft.group(grader)
        for subject, figure in _at(source, rubric, _RANKS, grader).items():
            draft.add(subject, [figure])
    return [*draft.finish()]


def _sentences(
    source: Source, rubric: str, graders: list[str], compared: list[str]
) -> Iterator[str]:
    for grader in graders:
        rogan_gladen = _at(source, rubric, "rate_rogan_gladen", grader)
        reasons = {figure.reason and figure.reason.code for figure in rogan_gladen.values()}
        if reasons == {"no_unlabelled_units"}:
            yield written("rates.nothing_else", grader=grader)
        if "grader_not_informative" in reasons:
            j = _at(source, rubric, "youden_j", grader)[""]
            own = f"{j.estimate} {j.interval}"
            yield written("rates.not_informative", grader=grader, j=own, line=j.line)
        bias = _at(source, rubric, "rogan_gladen_bias", grader)
        for subject, figure in rogan_gladen.items():
            if figure.says("errors_differ"):
                missed = bias[subject]
                yield written(
                    "rates.errors_differ",
                    grader=grader, subject=subject, line=missed.line,
                    missed=f"{missed.estimate} {missed.interval}",
                )  # fmt: skip
        if grader in compared:
            yield from _apart(source, rubric, grader)
            yield from _side_sentences(source, rubric, grader)
    yield from _one_sided(source, rubric, graders)
    yield from _missing(source, rubric, graders)
