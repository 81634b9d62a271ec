"""People's distribution: are a grader's probabilities the shares of people, and who ranks first?"""

from __future__ import annotations

from collections.abc import Callable

from evenhand.analysis.distributions import rows as named
from evenhand.analysis.distributions.distances import MOST_PEOPLE
from evenhand.analysis.distributions.response_sets import AFFIRMED_SHARES, RIGHT_SHARES
from evenhand.analysis.distributions.stated import MIN_PEOPLE
from evenhand.analysis.report.blocks import Block, Items, ReportSection
from evenhand.analysis.report.figures import ALL, Figure
from evenhand.analysis.report.glossary import entry_for
from evenhand.analysis.report.sections.wording import defined, sentences
from evenhand.analysis.report.source import READINGS, Layers, Source, rater_title
from evenhand.analysis.report.table_draft import TableDraft
from evenhand.analysis.results import BASELINES
from evenhand.texts import in_pieces

_DISTANCE = [named.TOTAL_VARIATION, named.EXCESS, named.CROSS_ENTROPY, named.CROSS_EXCESS]
_ABOUT = (
    "Where people differ, a grader can still be right about how many people say what. Its "
    f"probabilities are compared with people's shares, on units that at least {MIN_PEOPLE} people "
    "labelled. The noise ceiling is the distance of another group of as many people. A grader that "
    "knew the shares of all people like these would be closer still. A grader without "
    "probabilities counts as certain of its label."
)


def section(source: Source) -> ReportSection | None:
    """Probabilities beside people's shares, and labels beside one and several right answers."""
    return source.section(
        "distributions",
        "People's distribution",
        lambda rubric: Layers(
            answers=_answer(source, rubric),
            folded=_every(source, rubric, _distances, _said),
            appendix=_every(source, rubric, _right_answers, _verdicts_by_share),
        ),
        about=[_ABOUT],
    )


def _answer(source: Source, rubric: str) -> list[list[object]]:
    """The grader nearest to people's shares, and how far it is from what other people reach."""
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
    columns = [*_DISTANCE, named.WORTH]
    draft = TableDraft(
        source.caption(rubric, f"probabilities and people's shares, {READINGS[subset]}"),
        "Who",
        [entry_for(name).label for name in columns],
    )
    floor = source.figures.get(rubric, named.ENTROPY, "humans", "", subset)
    draft.add("Lowest possible", [None, None, floor, None, None])
    for rater in ["", *raters]:
        row = source.row(rubric, columns, ("humans", rater), subset)
        draft.add(rater_title(rater) if rater else "Other people", row)
    return [*draft.finish()]


def _right_answers(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    shares = [f"{share:g}" for share in RIGHT_SHARES]
    draft = TableDraft(
        source.caption(rubric, f"one right answer and several, {READINGS[subset]}"),
        "Who",
        [entry_for(named.FORCED).label, *(f"Right from {float(each):.0%}" for each in shares)],
    )
    get = source.figures.get
    several = [get(rubric, named.SEVERAL, "humans", "", subset, at) for at in shares]
    draft.add("Units with several right answers", [None, *several])
    for rater in ["", *raters]:
        forced = get(rubric, named.FORCED, "humans", rater, subset)
        right = [get(rubric, named.RIGHT, "humans", rater, subset, at) for at in shares]
        draft.add(rater_title(rater) if rater else "A person", [forced, *right])
    return [*draft.finish()]


def _verdicts_by_share(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    shares = [f"{share:g}" for share in AFFIRMED_SHARES]
    draft = TableDraft(
        source.caption(rubric, "agreement where a share of people makes a unit affirmative"),
        "Grader",
        [f"From {float(each):.0%}" for each in shares],
    )
    for rater in raters:
        row = [
            source.figures.get(rubric, named.AFFIRMED, "humans", rater, subset, at) for at in shares
        ]
        draft.add(rater_title(rater), row)
    return [*draft.finish()]


def _said(source: Source, rubric: str, subset: str, raters: list[str]) -> list[Block]:
    graders = [rater for rater in raters if rater not in BASELINES]
    said = [_several(source, rubric, subset)]
    said += [_closeness(source, rubric, subset, grader) for grader in graders]
    said += _orders(source, rubric, subset)
    sentences = tuple(sentence for sentence in said if sentence)
    title = f"Graders and people's shares, {READINGS[subset]}"
    return [Items(source.caption(rubric, title), sentences)] if sentences else []


def _several(source: Source, rubric: str, subset: str) -> str:
    """On how many units right answers are several, at the middle cut-off."""
    at = f"{RIGHT_SHARES[len(RIGHT_SHARES) // 2]:g}"
    several = source.figures.get(rubric, named.SEVERAL, "humans", "", subset, at)
    if several is None:
        return ""
    return (
        f"On {several.bounds[1]:.0%} of units, two labels or more were each given by at least "
        f"{float(at):.0%} of people (results.csv row {several.line}). Where right answers are "
        "several, agreement with most people's label alone can rank graders wrongly."
    )


def _closeness(source: Source, rubric: str, subset: str, grader: str) -> str:
    """Whether a grader is as near as other people, by the bounds of the difference."""
    own, excess, *_, worth = source.row(
        rubric, [*_DISTANCE, named.WORTH], ("humans", grader), subset
    )
    if not (own and excess and excess.interval):
        return ""
    low, _, high = excess.bounds
    found = "not shown to be closer or further than"
    if low > 0:
        found = "further from people's shares than"
    elif high < 0:
        found = "closer to people's shares than"
    worth_said = "" if not worth or worth.reason else f" It is worth {_people(worth)}."
    lines = f"results.csv rows {own.line}, {excess.line}"
    return (
        f"{grader} is {found} another group of as many people would be: its distance is "
        f"{own.estimate}, the difference {excess.estimate} {excess.interval} ({lines}).{worth_said}"
    )


def _people(worth: Figure) -> str:
    if worth.says("people_or_more"):
        return f"{MOST_PEOPLE:,} people or more"
    return f"{worth.estimate} people {worth.interval}".rstrip()


def _orders(source: Source, rubric: str, subset: str) -> list[str]:
    """The pairs of graders that agreement with one right answer and distance rank differently."""
    said = []
    for forced in source.figures.select(rubric, named.FORCED_DIFFERENCE, subset):
        names = forced.raters
        apart = source.figures.get(rubric, named.SQUARED_DIFFERENCE, *names, subset)
        if apart is None or not forced.bounds[1] * apart.bounds[1] > 0:
            continue
        first, second = names if forced.bounds[1] > 0 else names[::-1]
        sure = [not each.bounds[0] <= 0 <= each.bounds[2] for each in (forced, apart)]
        clear = {2: "both differences are clear", 0: "neither difference is clear"}
        word = clear.get(sum(sure)) or (
            "only the first difference is clear" if sure[0] else "only the second is clear"
        )
        said.append(
            f"The order of graders depends on the measure. {first} agrees with most people's label "
            f"more often than {second}, but {second} is closer to people's shares "
            f"({names[0]} minus {names[1]}: agreement {forced.estimate} {forced.interval}, squared "
            f"distance {apart.estimate} {apart.interval}; {word}; results.csv rows {forced.line}, "
            f"{apart.line})."
        )
    return said
