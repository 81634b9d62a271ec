"""Another wording: how far does it move people's agreement with one another?"""

from __future__ import annotations

from evenhand.analysis.people.clarity import ALPHA, DIFFERENCE, FILLED, moved
from evenhand.analysis.report.blocks import ReportSection
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.sections.wording import sentences
from evenhand.analysis.report.source import Layers, Source
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written


def section(source: Source) -> ReportSection | None:
    """People's agreement under two wordings; None where no wording was tried."""
    return source.section(
        "another-wording",
        written("rewording.title"),
        lambda rubric: _layers(source, rubric),
        about=[written("rewording.about")],
    )


def _layers(source: Source, rubric: str) -> Layers:
    under = {each.at: each for each in source.figures.select(rubric, ALPHA, ALL)}
    apart = {each.at: each for each in source.figures.select(rubric, DIFFERENCE, ALL)}
    filled = {each.at: each for each in source.figures.select(rubric, FILLED, ALL)}
    answers, draft = (
        [],
        TableDraft(
            source.caption(rubric, written("rewording.caption")),
            written("rewording.wording"),
            [entry_for(ALPHA).label],
        ),
    )
    for name, figure in under.items():
        draft.add(name, [figure])
    for new, difference in apart.items():
        old = next(each for name, each in under.items() if name not in apart)
        answers.append(_answer(source, rubric, old, under[new], difference, filled[new]))
    return Layers(answers=answers, folded=[*draft.finish()] if under else [])


def _answer(
    source: Source, rubric: str, old: Figure, new: Figure, difference: Figure, filled: Figure
) -> list[object]:
    """State which wording people agree better under, or how many more labels would tell."""
    fewest = min(old.n_clusters, new.n_clusters)
    share = filled.bounds[1]
    found = moved(*difference.bounds, fewest, difference.n_clusters, share)
    noun = source.analysis.cluster_nouns.get(rubric, "cluster")
    figures = in_pieces(
        "rewording.figures", before=old, after=new, new=new.at, difference=difference
    )
    return sentences([found.sentence(new.at, noun)], figures)
