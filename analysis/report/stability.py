"""Stability: do labels stay the same when a question, or the rubric, is worded differently?"""

from __future__ import annotations

from analysis.report.blocks import Block, Paragraph, Section
from analysis.report.drafting import TableDraft
from analysis.report.figures import ALL, Figure
from analysis.report.glossary import entry_for
from analysis.report.source import READINGS, Source, rater_title
from analysis.stability import REWORDED, SPREAD, STABILITY

__all__ = ["section"]

_STATISTICS = [STABILITY, SPREAD]


def section(source: Source) -> Section | None:
    """Kappa across variants by subject and by grader; nothing where nothing varies."""
    blocks = source.per_rubric(
        lambda rubric: [*_answers(source, rubric), *_graders(source, rubric)]
    )
    if not blocks:
        return None
    about = (
        "The same question in several wordings, paraphrases or draws: the variants are taken as "
        "raters of one unit, so that 1 is an answer that never changes and 0 one that changes as "
        "by chance. Intervals come from resampling the questions."
    )
    return Section("stability", "Stability", (Paragraph(about), *blocks))


def _answers(source: Source, rubric: str) -> list[Block]:
    """One table for each column that varies: subjects' answers as each reader labels them."""
    figures = source.figures.with_statistic(rubric, STABILITY)
    columns = dict.fromkeys(each.at for each in figures if each.at != REWORDED)
    out: list[Block] = []
    for column in columns:
        draft = _draft(source, rubric, f"answers across every {column}")
        for reader in dict.fromkeys(each.raters[0] for each in figures if each.at == column):
            draft.group(f"As {_reader(reader)} labelled them")
            for figure in figures:
                if (figure.at, figure.raters[0]) == (column, reader):
                    draft.add(
                        _place(figure),
                        source.row(rubric, _STATISTICS, figure.raters, figure.subset, column),
                    )
        out += draft.finish()
    return out


def _graders(source: Source, rubric: str) -> list[Block]:
    draft = _draft(source, rubric, "each rater under several wordings of the rubric")
    for figure in source.figures.with_statistic(rubric, STABILITY):
        if figure.at == REWORDED:
            name = f"{rater_title(figure.raters[0])}, {READINGS[figure.subset]}"
            draft.add(name, source.row(rubric, _STATISTICS, figure.raters, figure.subset, REWORDED))
    return [*draft.finish()]


def _draft(source: Source, rubric: str, what: str) -> TableDraft:
    labels = [entry_for(name).label for name in _STATISTICS]
    return TableDraft(source.caption(rubric, what), "Labels", labels, count="Questions")


def _reader(rater: str) -> str:
    return "the majority of people" if rater == "humans" else rater


def _place(figure: Figure) -> str:
    subject = figure.subset.removeprefix("subject=").removesuffix("|binary")
    whose = "all subjects" if subject in (ALL, "all") else subject
    return f"{whose}, {'binary verdict' if figure.subset.endswith('|binary') else 'categories'}"
