"""Ensembles of graders beside their members."""

from __future__ import annotations

from evenhand.analysis.people.beside_members import AVERAGE, BEST, DIFFERENCE, TOGETHER
from evenhand.analysis.report.blocks import Block, Items
from evenhand.analysis.report.figures import Figure
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.source import READINGS, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft

_STATISTICS = (
    "ensemble_agreement",
    "ensemble_kappa",
    "ensemble_balanced_accuracy",
    "ensemble_mean_kappa",
)
_WHO = {
    AVERAGE: "Single graders, average",
    BEST: "Best single grader, held out",
    TOGETHER: "Ensemble",
    DIFFERENCE: "Ensemble less best single",
}


def ensemble_blocks(source: Source, rubric: str) -> list[Block]:
    """A table for each reading of the rubric, and what it shows in a sentence for each ensemble."""
    blocks: list[Block] = []
    for subset, reading in READINGS.items():
        ensembles = source.ensembles(rubric, subset)
        draft = TableDraft(
            source.caption(
                rubric, f"ensembles beside their graders, where all of them labelled, {reading}"
            ),
            "Who with people",
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
            blocks.append(Items(f"What ensembles bring, {reading}", sentences))
    return blocks


def _figure(
    source: Source, rubric: str, statistic: str, ensemble: str, subset: str, at: str
) -> Figure | None:
    return source.figures.get(rubric, statistic, "humans", ensemble, subset, at)


def _sentence(source: Source, rubric: str, ensemble: str, subset: str) -> str:
    """Whether the ensemble beats the best single grader, by the bounds of their difference."""
    figure = _figure(source, rubric, "ensemble_kappa", ensemble, subset, DIFFERENCE)
    if figure is None or not figure.interval:
        return ""
    low, _, high = figure.bounds
    if low > 0:
        found = "agrees with people's majority better than the best single grader"
    elif high < 0:
        found = "agrees with people's majority less well than the best single grader"
    else:
        found = "is not shown to agree better or worse than the best single grader"
    return (
        f"{rater_title(ensemble)} {found} (kappa less that of the grader that is best on other "
        f"clusters: {figure.estimate} {figure.interval}; {figure.n_units} units; "
        f"results.csv row {figure.line})."
    )
