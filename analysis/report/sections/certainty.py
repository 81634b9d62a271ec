"""How sure people and graders are: clear items, shares of people, labels with confidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from evenhand.analysis import distributions as named
from evenhand.analysis.distributions import MIN_PEOPLE, MOST_PEOPLE, RIGHT_SHARES
from evenhand.analysis.labels.matrix import COLLAPSED, UNCLEAR
from evenhand.analysis.notes import Remark
from evenhand.analysis.people.clarity import CLEAR_AGREEMENT
from evenhand.analysis.report.blocks import Block, Items, ReportSection, Table, traced
from evenhand.analysis.report.figures import ALL, Figure, defined, shown
from evenhand.analysis.report.sections.published import with_published
from evenhand.analysis.report.source import (
    READINGS,
    Layers,
    ReportContext,
    RubricFigures,
    Source,
    labels,
    listed,
    rater_title,
    sentences,
)
from evenhand.analysis.report.tables import FigureRow
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds import routing
from evenhand.analysis.thresholds.routing import AGREEMENT, COVERAGE
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

_SUBSET = ALL + COLLAPSED
_PEOPLE = ["clear_share", "fleiss_kappa", "observed_agreement"]
_SURE = {"clear": written("clarity.sure_clear"), UNCLEAR: written("clarity.sure_unclear")}
_DISTANCE = [named.TOTAL_VARIATION, named.EXCESS, named.WORTH]
_CURVE = [COVERAGE, AGREEMENT]


# Clear and unclear


def clarity_layers(figures: RubricFigures) -> Layers:
    """People and graders on a rubric that calls a category unclear."""
    return Layers(answers=_clear(figures), folded=[*_people(figures), *_graders(figures)])


def _clear(figures: RubricFigures) -> list[list[object]]:
    """State how often people see a side, and which grader agrees best with them there."""
    clear = figures.get("clear_share", "humans", "", _SUBSET)
    if clear is None:
        return []
    said = in_pieces("report.clear", share=clear)
    if agree := defined(figures.select(CLEAR_AGREEMENT, _SUBSET)):
        about = {"grader": agree[0].raters[1], "share": agree[0]}
        said = sentences(said, in_pieces("report.clear_best", **about))
    return [said]


def _people(figures: RubricFigures) -> list[Table]:
    if figures.get(_PEOPLE[0], "humans", "", _SUBSET) is None:
        return []
    who = [(rater_title("humans"), ("humans", ""))]
    what = written("clarity.annotators")
    tables = figures.panel(what, "Who", _PEOPLE, who, _SUBSET, count="")
    quoted = {entry_for(name).label: name for name in _PEOPLE[:2]}
    return with_published(tables, figures, quoted)


def _graders(figures: RubricFigures) -> list[Table]:
    agreement = figures.select(CLEAR_AGREEMENT, _SUBSET)
    rows = [
        (
            each.raters[1],
            [each, *(figures.get("mean_confidence", *each.raters, _SUBSET, at) for at in _SURE)],
        )
        for each in agreement
    ]
    label = entry_for(CLEAR_AGREEMENT).label
    quoted = {
        label: "clear_agreement",
        _SURE["clear"]: "confidence_clear",
        _SURE[UNCLEAR]: "confidence_unclear",
    }
    tables = figures.table(
        written("clarity.graders"), "Grader", [label, *_SURE.values()], rows, count=""
    )
    return with_published(tables, figures, quoted)


# People's distribution


def distributions_section(source: Source) -> ReportSection | None:
    """Probabilities and people's shares, and labels where one or several answers are right."""
    return source.section(
        "distributions",
        written("distributions.title"),
        lambda figures: Layers(
            answers=_nearest(figures),
            folded=_on_readings(figures, _distances, _closeness_of_each),
            appendix=_on_readings(figures, _right_answers),
        ),
        about=[written("distributions.about", least=MIN_PEOPLE)],
    )


def _nearest(figures: RubricFigures) -> list[list[object]]:
    """The grader nearest to people's shares, and its distance from what other people reach."""
    found = figures.select(named.TOTAL_VARIATION)
    graders = [each for each in found if each.raters[1] and each.raters[1] not in BASELINES]
    if not (near := defined(graders)):
        return []
    best = near[-1]
    said = in_pieces("report.shares", grader=best.raters[1], distance=best)
    excess = figures.get(named.EXCESS, *best.raters)
    return [sentences(said, in_pieces("report.shares_excess", excess=excess) if excess else [])]


def _on_readings(figures: RubricFigures, *blocks_of: Callable[..., Sequence[Block]]) -> list[Block]:
    """Blocks on either reading of the rubric."""
    blocks: list[Block] = []
    for subset in READINGS:
        raters = [each.raters[1] for each in figures.select(named.SQUARED, subset)]
        for each in blocks_of:
            blocks += each(figures, subset, list(filter(None, raters)))
    return blocks


def _distances(figures: RubricFigures, subset: str, raters: list[str]) -> list[Table]:
    who = [(written("distributions.others"), ("humans", ""))]
    who += [(rater_title(each), ("humans", each)) for each in raters]
    what = written("distributions.distances", reading=READINGS[subset])
    return figures.panel(what, "Who", _DISTANCE, who, subset)


def _right_answers(figures: RubricFigures, subset: str, raters: list[str]) -> list[Table]:
    def at_shares(statistic: str, rater: str) -> list[Figure | None]:
        ats = (f"{share:g}" for share in RIGHT_SHARES)
        return [figures.get(statistic, "humans", rater, subset, at) for at in ats]

    several = [None, *at_shares(named.SEVERAL, "")]
    rows: list[FigureRow] = [(written("distributions.several_units"), several)]
    titles = {"": written("distributions.one_annotator")}
    for rater, title in (titles | {each: rater_title(each) for each in raters}).items():
        forced = figures.get(named.FORCED, "humans", rater, subset)
        rows.append((title, [forced, *at_shares(named.RIGHT, rater)]))
    right = (written("distributions.right_from", share=each) for each in RIGHT_SHARES)
    what = written("distributions.right_answers", reading=READINGS[subset])
    return figures.table(what, "Who", [entry_for(named.FORCED).label, *right], rows)


def _closeness_of_each(figures: RubricFigures, subset: str, raters: list[str]) -> list[Block]:
    graders = [rater for rater in raters if rater not in BASELINES]
    said = [_several(figures, subset), *(_closeness(figures, subset, each) for each in graders)]
    known = tuple(filter(None, said))
    title = written("distributions.what", reading=READINGS[subset])
    return [Items(figures.caption(title), known)] if known else []


def _several(figures: RubricFigures, subset: str) -> str:
    """State on how many units several answers are right, at the middle cut-off; empty where
    unknown.
    """
    at = f"{RIGHT_SHARES[len(RIGHT_SHARES) // 2]:g}"
    several = figures.get(named.SEVERAL, "humans", "", subset, at)
    if several is None:
        return ""
    units, line = several.bounds[1], several.line
    return written("distributions.several", units=units, share=float(at), line=line)


def _closeness(figures: RubricFigures, subset: str, grader: str) -> str:
    """State whether a grader is closer to or further from people's distribution than other people
    are, by the bounds of the difference.
    """
    own, excess, worth = figures.row(_DISTANCE, ("humans", grader), subset)
    if not (own and excess and excess.interval):
        return ""
    low, _, high = excess.bounds
    found = "further" if low > 0 else "closer" if high < 0 else "not_apart"
    about = written(
        "distributions.figures",
        distance=own.estimate,
        difference=f"{excess.estimate} {excess.interval}",
        lines=f"{own.line}, {excess.line}",
    )
    said = written(f"distributions.{found}", grader=grader, figures=about)
    if not worth or worth.reason:
        return said
    if worth.says("people_or_more"):
        return f"{said} {written('distributions.worth_most', most=MOST_PEOPLE)}"
    annotators = f"{worth.estimate} {worth.interval}".rstrip()
    return f"{said} {written('distributions.worth', annotators=annotators)}"


# Confidence filter


def confidence_layers(figures: RubricFigures) -> Layers:
    """Graders with a confidence: the declared cut, a promise, all cuts."""
    return Layers(
        answers=_promised(figures),
        folded=[*_declared_cut(figures), *_promises(figures), *_every_cut(figures)],
    )


def _promised(figures: RubricFigures) -> list[list[object]]:
    """The cuts that keep a promise, and the graders for which none does."""
    said, without = [], []
    for cut in figures.everywhere(routing.CUT):
        share, agreement, *_ = [*_above(figures, cut), None, None]
        grader = cut.raters[1]
        if share and agreement:
            about = {"grader": grader, "cut": cut, "share": share, "agreement": agreement}
            said.append(in_pieces("report.cut", **about))
        else:
            without.append([grader])
    if without:
        said.append(in_pieces("report.cut_none", graders=listed(without)))
    return [sentences(*said)]


def render_routing_text(analysis: Analysis) -> list[str]:
    """A sentence or two on every grader with a confidence, on the labels to trust."""
    return [
        written(
            "confidence.routing_on" if figures.rubric else "confidence.routing",
            grader=cut.raters[1], rubric=figures.rubric, said=text,
        )
        for figures in Source.of(analysis, ReportContext("")).rubrics
        for cut, text in _routes(figures)
    ]  # fmt: skip


def _promises(figures: RubricFigures) -> list[Block]:
    said = []
    for cut, text in _routes(figures):
        lines = ", ".join(str(each.line) for each in (cut, *_above(figures, cut)))
        said.append(traced(written("naming.about", whom=cut.raters[1], what=text), lines))
    return [Items(figures.caption(written("confidence.what")), tuple(said))] if said else []


def _above(figures: RubricFigures, cut: Figure) -> list[Figure]:
    """Return share and agreement of the labels above the cut; empty without a cut."""
    names = (routing.SHARE, routing.ROUTED_AGREEMENT)
    return list(filter(None, figures.row(names, cut.raters, cut.subset, cut.at)))


def _routes(figures: RubricFigures) -> Iterator[tuple[Figure, str]]:
    """Yield every grader's promised cut with its explanation."""
    for cut in figures.everywhere(routing.CUT):
        target = f"{100 * float(cut.at):g}%"
        if above := _above(figures, cut):
            yield cut, _route(cut, target, *above)
        elif cut.reason and cut.reason.code != "no_level":
            yield cut, _no_route(cut.reason, target)


def _no_route(reason: Remark, target: str) -> str:
    if reason.code == "unequal_chances":
        return written("confidence.unequal", target=target)
    units, *more = reason.detail
    if not more:
        return written("confidence.out_of_reach", target=target, units=units)
    return written("confidence.label_more", target=target, units=units, more=more[0])


def _route(cut: Figure, target: str, share: Figure, agreement: Figure) -> str:
    below = 1.0 - cut.bounds[1]
    places = max(3, math.ceil(-math.log10(below))) if below > 0 else 3  # 0.99996 is not 1
    return written(
        "confidence.trust",
        cut=f"{cut.bounds[1]:.{places}f}", certainty=1 - routing.ERROR, target=target,
        agreement=agreement.bounds[1], share=share.bounds[1],
    )  # fmt: skip


def _declared_cut(figures: RubricFigures) -> list[Table]:
    """Tabulate each grader at the declared cut."""
    declared = [each for each in figures.everywhere(COVERAGE) if each.says("declared_cut")]
    if not declared:
        return []
    cut = shown(float(declared[0].at), routing.CUT)
    columns = [written(f"confidence.{name}", cut=cut) for name in ("kept_at", "agreement_at")]
    rows = [
        (each.raters[1], figures.row(_CURVE, each.raters, each.subset, each.at))
        for each in declared
    ]
    return figures.table(written("confidence.caption"), "Grader", columns, rows)


def _every_cut(figures: RubricFigures) -> list[Table]:
    """Coverage against agreement as the cut rises."""
    found = figures.everywhere(COVERAGE)
    rows: list[FigureRow] = []
    for raters in dict.fromkeys(figure.raters for figure in found):
        rows.append((raters[1], None))
        rows += [
            (shown(float(e.at), routing.CUT), figures.row(_CURVE, raters, e.subset, e.at))
            for e in found
            if e.raters == raters
        ]
    return figures.table(written("confidence.curve"), "Cut", labels(_CURVE), rows, count="")
