"""People's distribution: are a grader's probabilities the shares of people, and who ranks first?"""

from __future__ import annotations

from collections.abc import Callable

from evenhand.analysis import distributions as named
from evenhand.analysis.distributions import MIN_PEOPLE, MOST_PEOPLE, RIGHT_SHARES
from evenhand.analysis.report.blocks import Block, Items, ReportSection
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import READINGS, Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.texts import in_pieces, written

_DISTANCE = [named.TOTAL_VARIATION, named.EXCESS, named.WORTH]


def section(source: Source) -> ReportSection | None:
    """Probabilities and people's shares, and labels where one or several answers are right."""
    return source.section(
        "distributions",
        written("distributions.title"),
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=_every(source, rubric, _distances, _said),
            appendix=_every(source, rubric, _right_answers),
        ),
        about=[written("distributions.about", least=MIN_PEOPLE)],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The grader nearest to people's shares, and its distance from what other people reach."""
    found = source.figures.select(rubric, named.TOTAL_VARIATION, ALL)
    graders = [each for each in found if each.raters[1] and each.raters[1] not in BASELINES]
    if not (near := defined(graders)):
        return []
    best = near[-1]
    said = in_pieces("report.shares", grader=best.raters[1], distance=best)
    excess = source.figures.get(rubric, named.EXCESS, *best.raters, ALL)
    return [sentences(said, in_pieces("report.shares_excess", excess=excess) if excess else [])]


def _every(source: Source, rubric: str, *blocks_of: Callable[..., list[Block]]) -> list[Block]:
    """Blocks on either reading of the rubric."""
    blocks: list[Block] = []
    for subset in READINGS:
        figures = source.figures.select(rubric, named.SQUARED, subset)
        raters = [figure.raters[1] for figure in figures if figure.raters[1]]
        for each in blocks_of:
            blocks += each(source, rubric, subset, raters)
    return blocks


def _distances(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    draft = TableDraft(
        source.caption(rubric, written("distributions.distances", reading=READINGS[subset])),
        "Who",
        [entry_for(name).label for name in _DISTANCE],
    )
    for rater in ["", *raters]:
        row = source.row(rubric, _DISTANCE, ("humans", rater), subset)
        draft.add(rater_title(rater) if rater else written("distributions.others"), row)
    return [*draft.finish()]


def _right_answers(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    shares = [f"{share:g}" for share in RIGHT_SHARES]
    draft = TableDraft(
        source.caption(rubric, written("distributions.right_answers", reading=READINGS[subset])),
        "Who",
        [
            entry_for(named.FORCED).label,
            *(written("distributions.right_from", share=each) for each in RIGHT_SHARES),
        ],
    )
    get = source.figures.get
    several = [get(rubric, named.SEVERAL, "humans", "", subset, at) for at in shares]
    draft.add(written("distributions.several_units"), [None, *several])
    for rater in ["", *raters]:
        forced = get(rubric, named.FORCED, "humans", rater, subset)
        right = [get(rubric, named.RIGHT, "humans", rater, subset, at) for at in shares]
        draft.add(
            rater_title(rater) if rater else written("distributions.one_annotator"),
            [forced, *right],
        )
    return [*draft.finish()]


def _said(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    graders = [rater for rater in raters if rater not in BASELINES]
    said = [_several(source, rubric, subset)]
    said += [_closeness(source, rubric, subset, grader) for grader in graders]
    sentences = tuple(sentence for sentence in said if sentence)
    title = written("distributions.what", reading=READINGS[subset])
    return [Items(source.caption(rubric, title), sentences)] if sentences else []


def _several(source: Source, rubric: str, subset: str) -> str:
    """State on how many units several answers are right, at the middle cut-off; empty where
    unknown.
    """
    at = f"{RIGHT_SHARES[len(RIGHT_SHARES) // 2]:g}"
    several = source.figures.get(rubric, named.SEVERAL, "humans", "", subset, at)
    if several is None:
        return ""
    units, line = several.bounds[1], several.line
    return written("distributions.several", units=units, share=float(at), line=line)


def _closeness(source: Source, rubric: str, subset: str, grader: str) -> str:
    """State whether a grader is closer to or further from people's distribution than other people
    are, by the bounds of the difference.
    """
    own, excess, worth = source.row(rubric, _DISTANCE, ("humans", grader), subset)
    if not (own and excess and excess.interval):
        return ""
    low, _, high = excess.bounds
    found = "further" if low > 0 else "closer" if high < 0 else "not_apart"
    figures = written(
        "distributions.figures",
        distance=own.estimate,
        difference=f"{excess.estimate} {excess.interval}",
        lines=f"{own.line}, {excess.line}",
    )
    said = [written(f"distributions.{found}", grader=grader, figures=figures)]
    if worth and not worth.reason:
        said.append(_worth(worth))
    return " ".join(said)


def _worth(worth: Figure) -> str:
    if worth.says("people_or_more"):
        return written("distributions.worth_most", most=MOST_PEOPLE)
    annotators = f"{worth.estimate} {worth.interval}".rstrip()
    return written("distributions.worth", annotators=annotators)
