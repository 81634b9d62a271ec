"""Thresholds of graders that give probabilities: what tuning would bring, and what to use.

And whether the probabilities mean what they say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table
from evenhand.analysis.report.charts.reliability import reliability_diagrams
from evenhand.analysis.report.charts.thresholds import threshold_curves
from evenhand.analysis.report.context import ReportContext
from evenhand.analysis.report.figures import ALL_BINARY, Figure, shown
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.sections.wording import bare, listed, sentences
from evenhand.analysis.report.source import Layers, Source, rater_title, reference_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.thresholds.in_force import IN_FORCE
from evenhand.analysis.thresholds.rows import AT_THRESHOLD
from evenhand.analysis.thresholds.sweep import OBJECTIVES
from evenhand.texts import in_pieces

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

MAIN = "kappa"
"""The objective that the section's sentences are about."""
_OTHERS = [each for each in OBJECTIVES if each != MAIN]
_TITLES = {
    "kappa": "kappa",
    "agreement": "agreement",
    "f1": "F1",
    "youden": "Youden's index",
    "prevalence": "the match of shares",
}
_QUALITY = [
    "brier",
    "brier_skill",
    "brier_miscalibration",
    "brier_discrimination",
    "brier_uncertainty",
    "ece",
    "brier_recalibrated",
    "ece_recalibrated",
]
_COLUMNS = ("At the default", "Tuned threshold", "At the tuned one", "Corrected", "Held-out gain")
_ABOUT = (
    "A threshold tuned on these units looks better here than it would elsewhere. It is "
    "recommended only where it beats the default on clusters that it was not tuned on; its "
    "interval holds every threshold that the best one does not clearly beat. The default is the "
    "rubric's threshold, or the one declared in study.toml; never one that was tuned."
)


def section(source: Source) -> ReportSection | None:
    """Tuned thresholds of every rubric that has graders with probabilities."""

    def layers_of(rubric: str) -> Layers:
        found = _advised(source, rubric, [MAIN])
        lines = tuple(_traced(source, rubric, figure) for figure in found)
        advice: list[Block] = [Items("What to use", lines)] if lines else []
        return Layers(
            answers=_answer(source, rubric, found),
            folded=[
                *advice,
                *threshold_curves(source, rubric, MAIN),
                *_tuned(source, rubric, [MAIN]),
                *_quality(source, rubric),
                *reliability_diagrams(source, rubric),
            ],
            appendix=_tuned(source, rubric, _OTHERS, "thresholds tuned to other objectives"),
        )

    return source.section(
        "thresholds",
        "Thresholds",
        layers_of,
        about=[_ABOUT],
        otherwise="No threshold to look at: no grader gave probabilities that could be compared.",
    )


def _answer(source: Source, rubric: str, found: Sequence[Figure]) -> list[list[object]]:
    """Which threshold to use for each grader, to match people where they labelled."""
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
    """For every rubric what a terminal shows: the table of one objective, and its sentences."""
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
    source: Source, rubric: str, objectives: Sequence[str], what: str = "tuned thresholds"
) -> list[Table]:
    draft = TableDraft(source.caption(rubric, what), "Tuned to", _COLUMNS)
    tuned = source.figures.select(rubric, "threshold", ALL_BINARY)
    for reference, grader in dict.fromkeys(figure.raters for figure in tuned):
        draft.group(f"{grader}, to {rater_title(reference)}")
        for figure in tuned:
            if figure.raters == (reference, grader) and figure.at in objectives:
                draft.add(_TITLES[figure.at], _row(source, rubric, figure))
    return draft.finish()


def _row(source: Source, rubric: str, tuned: Figure) -> list[Figure | None]:
    """A tuned threshold between what the default and what it reaches."""
    name, at = AT_THRESHOLD[tuned.at], repr(tuned.bounds[1])

    def figure(statistic: str, at: str) -> Figure | None:
        return source.figures.get(rubric, statistic, *tuned.raters, ALL_BINARY, at)

    return [
        figure(name, source.default_threshold(rubric, tuned.raters)),
        tuned,
        figure(name, at),
        figure(f"{name}_corrected", at),
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
    return f"{_sentence(source, rubric, advised)} (results.csv rows {lines})"


def _sentence(source: Source, rubric: str, advised: Figure) -> str:
    """What to use, in plain words, with the numbers that carry it."""
    reference, grader = advised.raters
    objective = _TITLES[advised.at]
    kind, reason, *others = advised.remarks
    at = source.default_threshold(rubric, advised.raters)
    default = shown(float(at), "threshold") if at else "the default"
    tuned, gain = _evidence(source, rubric, advised)
    best = f"{tuned.estimate} {tuned.interval}".strip() if tuned else ""
    won = f"{gain.estimate} {gain.interval}".strip() if gain else ""
    head = f"{grader}, to match {reference_title(reference)} by {objective}: "
    if kind.code == "tuned":
        text = f"use {best} instead of {default}; held out it gains {won}."
    elif kind.code == "not_identifiable":
        text = f"keep {default}; the best threshold is not identifiable here: {reason.words}"
        text += f" ({best})." if reason.code == "interval_too_wide" else "."
    elif tuned is not None and tuned.bounds[1] == float(at or "nan"):
        text = f"keep {default}; {reason.words}."
    else:
        text = f"keep {default}; the best here is {best}, but held out it gains {won}."
    coarse = [each.words for each in others if each.code == "coarse_draws"]
    beside = [f"{each[0].upper()}{each[1:]}." for each in coarse]
    if in_force := source.figures.get(rubric, IN_FORCE, "", grader, ALL_BINARY):
        beside.append(f"In force: {in_force.estimate}, {in_force.remarks[0].words}.")
    return " ".join([head + text, *beside])


def _quality(source: Source, rubric: str) -> list[Table]:
    draft = TableDraft(
        source.caption(rubric, "errors of the probabilities"),
        "Grader",
        [entry_for(name).label for name in _QUALITY],
    )
    for figure in source.figures.select(rubric, "brier", ALL_BINARY):
        row = [source.figures.get(rubric, name, *figure.raters, ALL_BINARY) for name in _QUALITY]
        draft.add(f"{figure.raters[1]}, to {rater_title(figure.raters[0])}", row)
    return draft.finish()
