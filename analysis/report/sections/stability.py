"""Stability: do labels stay the same when a question, or the rubric, is worded differently?"""

from __future__ import annotations

from evenhand.analysis.agreement.stability import REWORDED, SPREAD, STABILITY
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.report.blocks import Block, ReportSection, Table
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.sections.published import with_published
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written


def section(source: Source) -> ReportSection | None:
    """Kappa across variants by subject and by grader; None where nothing varies."""
    return source.section(
        "stability",
        written("stability.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=[*_answers(source, rubric), *_graders(source, rubric)],
        ),
        about=[written("stability.about")],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """Name the rater that changes most when the rubric is reworded, and the subject whose answers
    change most when the question is.
    """
    found = defined(source.figures.everywhere(rubric, STABILITY))
    known = [each for each in found if each.interval and not each.subset.endswith(BINARY)]
    by_rubric = [each for each in known if each.at == REWORDED]
    of_subjects = [each for each in known if each.at != REWORDED and each.subset != ALL]
    by_question = [each for each in of_subjects if each.raters[0] == "humans"] or of_subjects
    said: list[list[object]] = []
    if by_rubric:
        least = by_rubric[-1]
        rater = rater_title(least.raters[0])
        said.append(in_pieces("report.reworded", rater=rater, kappa=least))
    if by_question:
        least = by_question[-1]
        place = _place(least.subset)
        said.append(in_pieces("report.answers_vary", at=least.at, subject=place, kappa=least))
    return [sentences(*said)] if said else []


def _answers(source: Source, rubric: str) -> list[Block]:
    """Tabulate subjects' answers as each reader labels them, a table for each varying column."""
    figures = source.figures.everywhere(rubric, STABILITY)
    columns = dict.fromkeys(each.at for each in figures if each.at != REWORDED)
    out: list[Block] = []
    for column in columns:
        draft = _draft(
            source, rubric, written("stability.answers", column=column), written("stability.whose")
        )
        wholes = source.figures.select(rubric, STABILITY, ALL)
        for whole in wholes:
            if whole.at == column and whole.interval:
                draft.group(written("stability.labelled_by", rater=_reader(whole.raters[0])))
                for subset in dict.fromkeys(each.subset for each in figures):
                    if not subset.endswith(BINARY):
                        row = _row(source, rubric, whole.raters, subset, column)
                        draft.add(_place(subset), row)
        out += draft.finish()
    if out and isinstance(first := out[0], Table):  # once is enough, and they fit any column
        quoted = {entry_for(STABILITY).label: "stability_kappa", entry_for(SPREAD).label: SPREAD}
        out[0] = with_published(first, source, rubric, quoted)
    return out


def _graders(source: Source, rubric: str) -> list[Block]:
    draft = _draft(source, rubric, written("stability.graders"), "Rater")
    for figure in source.figures.select(rubric, STABILITY, ALL):
        if figure.at == REWORDED:
            row = _row(source, rubric, figure.raters, ALL, REWORDED)
            draft.add(rater_title(figure.raters[0]), row)
    return [*draft.finish()]


def _draft(source: Source, rubric: str, what: str, stub: str) -> TableDraft:
    labels = [entry_for(name).label for name in (STABILITY, SPREAD)]
    columns = [*labels, written("stability.binary", statistic=labels[0])]
    return TableDraft(source.caption(rubric, what), stub, columns, count="Questions")


def _row(
    source: Source, rubric: str, raters: tuple[str, str], subset: str, at: str
) -> list[Figure | None]:
    return [
        source.figures.get(rubric, STABILITY, *raters, subset, at),
        source.figures.get(rubric, SPREAD, *raters, subset, at),
        source.figures.get(rubric, STABILITY, *raters, subset + BINARY, at),
    ]


def _reader(rater: str) -> str:
    return written("stability.majority") if rater == "humans" else rater


def _place(subset: str) -> str:
    return written("stability.all_subjects") if subset == ALL else subset.removeprefix("subject=")
