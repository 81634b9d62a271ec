"""Other wordings: do labels stay the same when a question, or the rubric, is worded differently?"""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.analysis.agreement.stability import REWORDED, SPREAD, STABILITY
from evenhand.analysis.labels.matrix import BINARY
from evenhand.analysis.people.clarity import ALPHA, DIFFERENCE, FILLED, moved
from evenhand.analysis.report.blocks import Table
from evenhand.analysis.report.figures import ALL, Figure, defined
from evenhand.analysis.report.sections.published import with_published
from evenhand.analysis.report.source import (
    Layers,
    RubricFigures,
    labels,
    rater_title,
    sentences,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.texts import in_pieces, written


def stability_layers(figures: RubricFigures) -> Layers:
    """Kappa across variants by subject and by grader."""
    return Layers(answers=_least_stable(figures), folded=[*_answers(figures), *_graders(figures)])


def _least_stable(figures: RubricFigures) -> list[list[object]]:
    """Name the rater that changes most when the rubric is reworded, and the subject whose answers
    change most when the question is.
    """
    found = defined(figures.everywhere(STABILITY))
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
    return [sentences(*said)]


def _answers(figures: RubricFigures) -> list[Table]:
    """Tabulate subjects' answers as each reader labels them, a table for each varying column."""
    found = figures.everywhere(STABILITY)
    subsets = dict.fromkeys(each.subset for each in found if not each.subset.endswith(BINARY))
    out: list[Table] = []
    for column in dict.fromkeys(each.at for each in found if each.at != REWORDED):
        rows: list[FigureRow] = []
        for whole in figures.select(STABILITY):
            if whole.at == column and whole.interval:
                people = whole.raters[0] == "humans"
                reader = written("stability.majority") if people else whole.raters[0]
                rows.append((written("stability.labelled_by", rater=reader), None))
                rows += [
                    (_place(subset), _row(figures, whole.raters, subset, column))
                    for subset in subsets
                ]
        what = written("stability.answers", column=column)
        out += _table(figures, what, written("stability.whose"), rows)
    # Once is enough, and they fit any column.
    kappa, spread = labels((STABILITY, SPREAD))
    return with_published(out, figures, {kappa: "stability_kappa", spread: SPREAD})


def _graders(figures: RubricFigures) -> list[Table]:
    rows = [
        (rater_title(each.raters[0]), _row(figures, each.raters, ALL, REWORDED))
        for each in figures.select(STABILITY)
        if each.at == REWORDED
    ]
    return _table(figures, written("stability.graders"), "Rater", rows)


def _table(figures: RubricFigures, what: str, stub: str, rows: Sequence[FigureRow]) -> list[Table]:
    columns = labels((STABILITY, SPREAD))
    columns.append(written("stability.binary", statistic=columns[0]))
    return figures.table(what, stub, columns, rows, count="Questions")


def _row(
    figures: RubricFigures, raters: tuple[str, str], subset: str, at: str
) -> list[Figure | None]:
    binary = figures.get(STABILITY, *raters, subset + BINARY, at)
    return [*figures.row((STABILITY, SPREAD), raters, subset, at), binary]


def _place(subset: str) -> str:
    return written("stability.all_subjects") if subset == ALL else subset.removeprefix("subject=")


def rewording_layers(figures: RubricFigures) -> Layers:
    """People's agreement under two wordings, where one was tried: which they agree better under, or
    how many more labels would tell.
    """
    under, apart, filled = (
        {each.at: each for each in figures.select(name)} for name in (ALPHA, DIFFERENCE, FILLED)
    )
    noun = figures.analysis.cluster_nouns.get(figures.rubric, "cluster")
    answers = []
    for name, difference in apart.items():
        old = next(each for wording, each in under.items() if wording not in apart)
        new, share = under[name], filled[name].bounds[1]
        fewest = min(old.n_clusters, new.n_clusters)
        found = moved(*difference.bounds, fewest, difference.n_clusters, share)
        about = in_pieces(
            "rewording.figures", before=old, after=new, new=name, difference=difference
        )
        answers.append(sentences([found.sentence(name, noun)], about))
    rows = [(name, [figure]) for name, figure in under.items()]
    what, stub = written("rewording.caption"), written("rewording.wording")
    return Layers(answers=answers, folded=figures.table(what, stub, labels([ALPHA]), rows))
