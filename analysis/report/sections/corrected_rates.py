"""Subjects' rates as graders count them and as people would, and the order that they give."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from evenhand.analysis.report.blocks import Block, Items, ReportSection
from evenhand.analysis.report.figures import ALL_BINARY, Figure
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.sections.wording import sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import from_to
from evenhand.texts import in_pieces

_RATES = ["rate_raw", "rate_rogan_gladen", "rate_ppi", "rate_ppi_lambda"]
_RANKS = ["rate_rank_raw", "rate_rank_ppi"]
_ERRORS = ["sensitivity", "specificity", "youden_j"]
_SURE = 0.975
_ABOUT = (
    "A rate is the share of a subject's units (pairs, where the rubric is on responses) whose "
    "verdict is affirmative. The raw rate is the grader's count on everything it graded, and has "
    "its errors in it. Both corrections read those errors off the units that people labelled too, "
    "and their intervals resample these and the others alike. Rogan-Gladen takes it that the "
    "grader errs alike on all subjects, and so cannot change their order; PPI++ does not, and is "
    "the one to read where the two part. "
    "People's rate is the mean over units of the share of human raters who affirm the unit."
)


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
        found = [*_rates(source, rubric, graders), *_errors(source, rubric, graders)]
        if sentences := tuple(_sentences(source, rubric, graders)):
            found.append(Items("What the corrections show", sentences))
        return Layers(
            answers=[_answer(source, rubric, graders)],
            folded=found,
            appendix=_ranks(source, rubric, graders),
        )

    return source.section(
        "corrected-rates",
        "Corrected rates",
        layers_of,
        about=[_ABOUT],
        otherwise="No rate to correct: people and graders gave no binary verdicts to compare.",
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
    """A grader's figures of one statistic, by what stands in `at`."""
    figures = source.figures.select(rubric, statistic, ALL_BINARY)
    return {figure.at: figure for figure in figures if figure.raters == ("humans", grader)}


def _rates(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, "subjects' rates, raw and corrected"),
        "Subject",
        [entry_for(name).label for name in ("rate_raw", "rate_human", *_RATES[1:])],
    )
    people = _at(source, rubric, "rate_human", "")
    for grader in graders:
        draft.group(grader)
        columns = [_at(source, rubric, name, grader) for name in _RATES]
        for subject, raw in columns[0].items():
            corrected = [column.get(subject) for column in columns[1:]]
            draft.add(subject or "All units", [raw, people.get(subject), *corrected])
    return [*draft.finish()]


def _errors(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, "graders' error rates, against the human raters"),
        "Grader",
        [entry_for(name).label for name in _ERRORS],
        count="",
    )
    for grader in graders:
        draft.add(grader, [_at(source, rubric, name, grader).get("") for name in _ERRORS])
    return [*draft.finish()]


def _ranks(source: Source, rubric: str, graders: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, "subjects' places before and after correction, first the highest"),
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
            yield (
                f"{grader} graded only what people labelled, so people's own rates are the answer; "
                "let it grade the rest (evenhand grade --scope all) to have narrower ones."
            )
        if "grader_not_informative" in reasons:
            j = _at(source, rubric, "youden_j", grader)[""]
            yield (
                f"{grader} cannot be corrected by Rogan-Gladen: its sensitivity + specificity - 1 "
                f"is {j.estimate} {j.interval}, which may be 0 (results.csv row {j.line})."
            )
        bias = _at(source, rubric, "rogan_gladen_bias", grader)
        for subject, figure in rogan_gladen.items():
            if figure.says("errors_differ"):
                missed = bias[subject]
                yield (
                    f"{grader} errs differently on {subject}: with error rates of all subjects, "
                    f"Rogan-Gladen misses people's own rate there by {missed.estimate} "
                    f"{missed.interval} (results.csv row {missed.line}). Read its PPI++ rate."
                )
        if flips := _at(source, rubric, "rate_order_flip", grader):
            yield _order_sentence(source, rubric, grader, flips)


def _order_sentence(source: Source, rubric: str, grader: str, flips: dict[str, Figure]) -> str:
    """Whether PPI++ changes the order of the raw rates, and in how many resamples it does.

    A change is only called one where 97.5% of the resamples have it, as a 95% interval would.
    """
    subjects = _at(source, rubric, "rate_raw", grader)
    names = {from_to(*pair): " and ".join(pair) for pair in permutations(subjects, 2)}
    changed = [figure for figure in flips.values() if figure.says("order_changed")]
    if not changed:
        closest = max(flips.values(), key=lambda figure: figure.bounds[1])
        return (
            f"{grader}: PPI++ leaves the subjects in the order of the raw rates; nearest to a "
            f"change are {names[closest.at]}, {_how_often(closest)}."
        )
    sure = [each for each in changed if each.bounds[1] >= _SURE]
    unsure = [each for each in changed if each.bounds[1] < _SURE]
    said = []
    if sure:
        listed = ", ".join(f"{names[each.at]} ({_how_often(each)})" for each in sure)
        said.append(f"PPI++ changes the order of {listed}")
    if unsure:
        listed = ", ".join(f"{names[each.at]} ({_how_often(each)})" for each in unsure)
        said.append(f"the PPI++ estimates swap {listed}, which is not shown to be more than chance")
    return f"{grader}: {'; '.join(said)}."


def _how_often(figure: Figure) -> str:
    return f"swapped in {figure.bounds[1]:.0%} of the resamples, results.csv row {figure.line}"
