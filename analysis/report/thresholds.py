"""Thresholds of graders that give probabilities: the one in use, and what tuning would bring."""

from __future__ import annotations

from analysis.report.blocks import Block, Paragraph, Section, Table
from analysis.report.drafting import TableDraft
from analysis.report.figures import ALL_BINARY, shown
from analysis.report.glossary import entry_for
from analysis.report.source import Source, rater_title

__all__ = ["section"]

_AT = ["cohen_kappa_at_threshold", "observed_agreement_at_threshold"]
_CORRECTED = [f"{name}_corrected" for name in _AT]


def section(source: Source) -> Section:
    """Tuned thresholds of every rubric that has graders with probabilities."""

    def tables(rubric: str) -> list[Block]:
        return [*_tuned(source, rubric), *_at_thresholds(source, rubric)]

    blocks = source.per_rubric(tables)
    if blocks:
        about = (
            "A threshold tuned on these units looks better here than it would elsewhere. Compare "
            "its corrected figures with those of the default, and look at how wide the interval "
            "of the threshold itself is, before changing anything."
        )
        blocks.insert(0, Paragraph(about))
    else:
        why = "No threshold to look at: no grader gave probabilities that could be compared."
        blocks = [Paragraph(why)]
    return Section("thresholds", "Thresholds", tuple(blocks))


def _tuned(source: Source, rubric: str) -> list[Table]:
    figures = source.figures.select(rubric, "threshold", ALL_BINARY)
    objectives = list(dict.fromkeys(figure.at for figure in figures))
    draft = TableDraft(
        source.caption(rubric, "tuned thresholds"),
        "Grader, tuned to",
        [f"Best for {objective}" for objective in objectives],
    )
    by_place = {(*figure.raters, figure.at): figure for figure in figures}
    for reference, grader in dict.fromkeys(figure.raters for figure in figures):
        row = [by_place.get((reference, grader, objective)) for objective in objectives]
        draft.add(f"{grader}, to {rater_title(reference)}", row)
    return draft.finish()


def _at_thresholds(source: Source, rubric: str) -> list[Table]:
    statistics = [*_AT, *_CORRECTED]
    draft = TableDraft(
        source.caption(rubric, "agreement at each threshold"),
        "Threshold",
        [entry_for(name).label for name in statistics],
    )
    places = [
        (figure.raters, figure.at)
        for name in statistics
        for figure in source.figures.select(rubric, name, ALL_BINARY)
    ]
    for raters in dict.fromkeys(raters for raters, _ in places):
        draft.group(f"{raters[1]}, with {rater_title(raters[0])}")
        for at in sorted({at for of, at in places if of == raters}, key=float):
            row = [source.figures.get(rubric, name, *raters, ALL_BINARY, at) for name in statistics]
            draft.add(shown(float(at), "threshold"), row)
    return draft.finish()
