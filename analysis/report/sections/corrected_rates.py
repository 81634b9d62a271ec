"""Subjects' rates as graders count them and as people would, and their order."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from evenhand.analysis.report.blocks import Block, Items, ReportSection
from evenhand.analysis.report.figures import ALL_BINARY, Figure
from evenhand.analysis.report.sections.wording import sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import from_to
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_RATES = ["rate_raw", "rate_rogan_gladen", "rate_ppi", "rate_ppi_lambda"]
_RANKS = ["rate_rank_raw", "rate_rank_ppi", "rate_rank_set"]
_ERRORS = ["sensitivity", "specificity", "youden_j"]
_SURE = 0.975
_MOST_COLUMNS = 8
"""Of more subjects the rates by part are in results.csv alone."""


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
        found = [
            *_rates(source, rubric, graders),
            *_differences(source, rubric, graders),
            *_parts(source, rubric, graders),
            *_errors(source, rubric, graders),
        ]
        if sentences := tuple(_sentences(source, rubric, graders)):
            found.append(Items(written("rates.what"), sentences))
        return Layers(
            answers=[_answer(source, rubric, graders)],
            folded=found,
            appendix=_ranks(source, rubric, graders),
        )

    return source.section(
        "corrected-rates",
        written("rates.title"),
        layers_of,
        about=[written("rates.about")],
        otherwise=written("rates.none"),
    )


def _answer(source: Source, rubric: str, graders: list[str]) -> list[object]:
    """The rate on all units, raw and corrected, by the grader that agrees with people most."""
    people = _at(source, rubric, "rate_human", "").get("")
    for grader in source.by_agreement(rubric, graders, ALL_BINARY):
        columns = [_at(source, rubric, name, grader) for name in ("rate_raw", "rate_ppi")]
        raw, corrected = (column.get("") for column in columns)
        if raw and corrected and not corrected.reason:
            said = in_pieces("report.rates", grader=grader, raw=raw, corrected=corrected)
            return sentences(said, in_pieces("report.rates_people", rate=people) if people else [])
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
        draft.group(grader)
        for first, second, figure in _pairs(source, rubric, grader):
            draft.add(written("rates.difference", first=first, second=second), [figure])
    return [*draft.finish()]


def _parts(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    """The rates by PPI++ in every part of the sample, a column for each subject."""
    parts = source.figures.parts(rubric, "rate_ppi")
    subjects = list(dict.fromkeys(each.at for figures in parts.values() for each in figures))
    if not 1 <= len(subjects) <= _MOST_COLUMNS:
        return []
    caption = source.caption(rubric, written("rates.parts"))
    heads = [subject or written("rates.all_units") for subject in subjects]
    draft = TableDraft(caption, "Part", heads, count="")
    for grader in graders:
        draft.group(grader)
        for part, figures in parts.items():
            own = {each.at: each for each in figures if each.raters == ("humans", grader)}
            draft.add(part, [own.get(subject) for subject in subjects])
    return [*draft.finish()]


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
        yield written("rates.none_apart", grader=grader)
    elif below:
        clear = [
            written("rates.above", subject=subject, others=", ".join(others))
            for subject, others in below.items()
        ]
        count = sum(map(len, below.values()))
        yield written(
            "rates.apart", grader=grader, pairs=len(pairs), apart=count, clear="; ".join(clear)
        )


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
        [entry_for(name).label for name in _RANKS],
        count="",
    )
    for grader in graders:
        columns = [_at(source, rubric, name, grader) for name in _RANKS]
        draft.group(grader)
        for subject in columns[0]:
            draft.add(subject, [column.get(subject) for column in columns])
    return [*draft.finish()]


def _sentences(source: Source, rubric: str, graders: list[str]) -> Iterator[str]:
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
        yield from _apart(source, rubric, grader)
        if flips := _at(source, rubric, "rate_order_flip", grader):
            yield from _order_sentences(source, rubric, grader, flips)


def _order_sentences(
    source: Source, rubric: str, grader: str, flips: dict[str, Figure]
) -> Iterator[str]:
    """Yield sentences on whether PPI++ changes the order of the raw rates, and in how many
    resamples.

    A change is only called one where 97.5% of the resamples have it, as a 95% interval would.
    """
    subjects = _at(source, rubric, "rate_raw", grader)
    pairs = {from_to(*pair): pair for pair in permutations(subjects, 2)}
    changed = [figure for figure in flips.values() if figure.says("order_changed")]
    if not changed:
        closest = max(flips.values(), key=lambda figure: figure.bounds[1])
        yield written("rates.order_kept", grader=grader, pair=_swapped(pairs, closest))
    sure = [_swapped(pairs, each) for each in changed if each.bounds[1] >= _SURE]
    unsure = [_swapped(pairs, each) for each in changed if each.bounds[1] < _SURE]
    if sure:
        yield written("rates.order_changed", grader=grader, pairs=", ".join(sure))
    if unsure:
        yield written("rates.order_may_change", grader=grader, pairs=", ".join(unsure))


def _swapped(pairs: dict[str, tuple[str, str]], figure: Figure) -> str:
    """Two subjects, and the share of the resamples in which they change places."""
    first, second = pairs[figure.at]
    names = written("rates.names", first=first, second=second)
    return written("rates.swapped", names=names, share=figure.bounds[1], line=figure.line)
