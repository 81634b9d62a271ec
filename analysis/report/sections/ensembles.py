"""Ensembles of graders compared with their members."""

from __future__ import annotations

from evenhand.analysis.people.beside_members import AVERAGE, BEST, DIFFERENCE, TOGETHER
from evenhand.analysis.report.blocks import Block, Items
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.source import READINGS, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import written

_STATISTICS = (
    "ensemble_agreement",
    "ensemble_kappa",
    "ensemble_balanced_accuracy",
    "ensemble_mean_kappa",
)
_WHO = {
    AVERAGE: written("ensembles.average"),
    BEST: written("ensembles.best"),
    TOGETHER: written("ensembles.together"),
    DIFFERENCE: written("ensembles.difference"),
}


def ensemble_blocks(source: Source, rubric: str) -> list[Block]:
    """A table for each label view of the rubric, and its result in a sentence for each ensemble."""
    blocks: list[Block] = []
    for subset, reading in READINGS.items():
        ensembles = source.ensembles(rubric, subset)
        draft = TableDraft(
            source.caption(rubric, written("ensembles.caption", reading=reading)),
            "Rater",
            [entry_for(name).label for name in _STATISTICS],
        )
        for name in ensembles:
            draft.group(rater_title(name))
            for at, title in _WHO.items():
                row = [_figure(source, rubric, each, name, subset, at) for each in _STATISTICS]
                draft.add(title, row)
        blocks += draft.finish()
        said = [_sentence(source, rubric, name, subset) for name in ensembles]
        if sentences := tuple(sentence for sentence in said if sentence):
            blocks.append(Items(written("ensembles.what", reading=reading), sentences))
    return blocks


def _figure(
    source: Source, rubric: str, statistic: str, ensemble: str, subset: str, at: str
) -> Figure | None:
    return source.figures.get(rubric, statistic, "humans", ensemble, subset, at)


def _sentence(source: Source, rubric: str, ensemble: str, subset: str) -> str:
    """State if the ensemble beats the best single grader, by the bounds of their difference."""
    figure = _figure(source, rubric, "ensemble_kappa", ensemble, subset, DIFFERENCE)
    if figure is None or not figure.interval:
        return ""
    low, _, high = figure.bounds
    found = "better" if low > 0 else "worse" if high < 0 else "not_shown"
    figures = written(
        "ensembles.figures",
        difference=f"{figure.estimate} {figure.interval}",
        units=figure.n_units,
        line=figure.line,
    )
    return written(f"ensembles.{found}", ensemble=rater_title(ensemble), figures=figures)
