"""Thresholds of graders that give probabilities: the effect of tuning, and the threshold to use.

And the calibration of the probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table, traced
from evenhand.analysis.report.charts.reliability import reliability_diagrams
from evenhand.analysis.report.charts.thresholds import threshold_curves
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.figures import ALL_BINARY, Figure, shown
from evenhand.analysis.report.sections.wording import bare, listed, sentences
from evenhand.analysis.report.source import Layers, Source, reference_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds.rows import AT_THRESHOLD, IN_FORCE
from evenhand.analysis.thresholds.sweep import OBJECTIVES
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

MAIN = "kappa"
"""The objective that the section's sentences are about."""
_OTHERS = [each for each in OBJECTIVES if each != MAIN]
_TITLES = {
    name: written(f"thresholds.objective_{name}")
    for name in ("kappa", "agreement", "f1", "youden", "prevalence")
}
_QUALITY = [
    "brier",
    "ece",
    "brier_recalibrated",
]
_COLUMNS = [
    written(f"thresholds.{name}") for name in ("at_default", "tuned", "at_tuned", "held_out_gain")
]


def section(source: Source) -> ReportSection | None:
    """Tuned thresholds of every rubric that has graders with probabilities."""

    def layers_of(rubric: str) -> Layers:
        found = _advised(source, rubric, [MAIN])
        lines = tuple(_traced(source, rubric, figure) for figure in found)
        advice: list[Block] = [Items(written("thresholds.what"), lines)] if lines else []
        return Layers(
            answers=_answer(source, rubric, found),
            folded=[
                *advice,
                *threshold_curves(source, rubric),
                *_tuned(source, rubric, [MAIN]),
                *_quality(source, rubric),
                *reliability_diagrams(source, rubric),
            ],
            appendix=_tuned(source, rubric, _OTHERS, "others"),
        )

    return source.section(
        "thresholds",
        written("thresholds.title"),
        layers_of,
        about=[written("thresholds.about")],
        otherwise=written("thresholds.none"),
    )


def _answer(source: Source, rubric: str, found: Sequence[Figure]) -> list[list[object]]:
    """Name the threshold to use for each grader, preferably tuned to people."""
    by_people = [each for each in found if each.raters[0] == "humans"] or found
    said: list[list[object]] = []
    kept: dict[str, list[Figure]] = {}
    for advised in by_people:
        grader, (_, gain) = advised.raters[1], _evidence(source, rubric, advised)
        if advised.says("tuned") and gain:
            said.append(
                in_pieces("report.threshold_tuned", grader=grader, threshold=advised, gain=gain)
            )
        else:
            kept.setdefault(advised.estimate, []).append(advised)
    for same in kept.values():
        graders = listed([[each.raters[1]] for each in same])
        said.append(in_pieces("report.threshold_kept", threshold=bare(same[0]), graders=graders))
    return [sentences(*said)] if said else []


def render_thresholds_text(
    analysis: Analysis, context: ReportContext, objective: str = MAIN
) -> list[tuple[list[Table], list[str]]]:
    """Return for every rubric the table of one objective and its sentences, for a terminal."""
    source = Source.of(analysis, context)
    return [
        (
            [
                replace(table, caption=source.marked(table.caption))
                for table in _tuned(source, rubric, [objective])
            ],
            [_sentence(source, rubric, each) for each in _advised(source, rubric, [objective])],
        )
        for rubric in source.figures.rubrics
    ]


def _advised(source: Source, rubric: str, objectives: Sequence[str]) -> list[Figure]:
    found = source.figures.select(rubric, "threshold_recommended", ALL_BINARY)
    return [figure for figure in found if figure.at in objectives]


def _tuned(
    source: Source, rubric: str, objectives: Sequence[str], what: str = "caption"
) -> list[Table]:
    caption = source.caption(rubric, written(f"thresholds.{what}"))
    draft = TableDraft(caption, written("thresholds.tuned_to"), _COLUMNS)
    tuned = source.figures.select(rubric, "threshold", ALL_BINARY)
    for reference, grader in dict.fromkeys(figure.raters for figure in tuned):
        draft.group(_matched(grader, reference))
        for figure in tuned:
            if figure.raters == (reference, grader) and figure.at in objectives:
                draft.add(_TITLES[figure.at], _row(source, rubric, figure))
    return draft.finish()


def _matched(grader: str, reference: str) -> str:
    return written("thresholds.matched_to", grader=grader, reference=reference_title(reference))


def _row(source: Source, rubric: str, tuned: Figure) -> list[Figure | None]:
    """A tuned threshold between the value at the default and its own."""
    name, at = AT_THRESHOLD.get(tuned.at, ""), repr(tuned.bounds[1])

    def figure(statistic: str, at: str) -> Figure | None:
        return source.figures.get(rubric, statistic, *tuned.raters, ALL_BINARY, at)

    return [
        figure(name, source.default_threshold(rubric, tuned.raters)),
        tuned,
        figure(name, at),
        figure("threshold_held_out_gain", tuned.at),
    ]


def _evidence(source: Source, rubric: str, advised: Figure) -> tuple[Figure | None, Figure | None]:
    """The tuned threshold and its held-out gain."""
    names = ("threshold", "threshold_held_out_gain")
    tuned, gain = (
        source.figures.get(rubric, name, *advised.raters, ALL_BINARY, advised.at) for name in names
    )
    return tuned, gain


def _traced(source: Source, rubric: str, advised: Figure) -> str:
    """The sentence with the rows that it was read off."""
    rows = [advised, *_evidence(source, rubric, advised)]
    lines = ", ".join(str(figure.line) for figure in rows if figure)
    return traced(_sentence(source, rubric, advised), lines)


def _sentence(source: Source, rubric: str, advised: Figure) -> str:
    """State which threshold to use, in plain words, with the figures behind the advice."""
    kind, reason, *others = advised.remarks
    at = source.default_threshold(rubric, advised.raters)
    default = shown(float(at), "threshold") if at else written("thresholds.default")
    tuned, gain = _evidence(source, rubric, advised)
    best = f"{tuned.estimate} {tuned.interval}".strip() if tuned else ""
    won = f"{gain.estimate} {gain.interval}".strip() if gain else ""
    why = reason.words
    if kind.code == "tuned":
        answer = "use"
    elif kind.code == "not_identifiable":
        answer = "not_identifiable"
        if reason.code == "interval_too_wide":
            why = written("thresholds.too_wide", why=why, best=best)
    elif tuned is not None and tuned.bounds[1] == float(at or "nan"):
        answer = "not_better"
    else:
        answer = "not_won"
    reference, grader = advised.raters
    said = written(
        f"thresholds.{answer}",
        grader=grader, reference=reference_title(reference), objective=_TITLES[advised.at],
        default=default, best=best, gain=won, why=why,
    )  # fmt: skip
    coarse = [each.words for each in others if each.code == "coarse_draws"]
    more = [f"{each[0].upper()}{each[1:]}." for each in coarse]
    if in_force := source.figures.get(rubric, IN_FORCE, "", grader, ALL_BINARY):
        of = in_force.remarks[0].words
        more.append(written("thresholds.in_force", threshold=in_force.estimate, why=of))
    return " ".join([said, *more])


def _quality(source: Source, rubric: str) -> list[Table]:
    draft = TableDraft(
        source.caption(rubric, written("thresholds.errors")),
        "Grader",
        [entry_for(name).label for name in _QUALITY],
    )
    for figure in source.figures.select(rubric, "brier", ALL_BINARY):
        row = [source.figures.get(rubric, name, *figure.raters, ALL_BINARY) for name in _QUALITY]
        draft.add(_matched(figure.raters[1], figure.raters[0]), row)
    return draft.finish()
