"""How sure labels are: clear items, shares of people, labels with confidence, other wordings."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.analysis import distributions as named
from evenhand.analysis.agreement.groups import REWORDED, SPREAD, STABILITY
from evenhand.analysis.distributions import MOST_PEOPLE, RIGHT_SHARES
from evenhand.analysis.labels.matrix import BINARY, COLLAPSED
from evenhand.analysis.people.disagreements import ALPHA, CLEAR_AGREEMENT, DIFFERENCE, FILLED, moved
from evenhand.analysis.report.blocks import Block, Part, Table, items, traced
from evenhand.analysis.report.figures import ALL, Figure, Key, defined, lines_of, shown
from evenhand.analysis.report.sections.published import with_published
from evenhand.analysis.report.source import (
    READINGS,
    Column,
    ReportContext,
    RubricFigures,
    Source,
    TableRow,
    listed,
    rater_title,
    rows_of,
    sentences,
)
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds import routing
from evenhand.analysis.thresholds.routing import AGREEMENT, COVERAGE
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis

_SUBSET = ALL + COLLAPSED
_DISTANCE = [named.TOTAL_VARIATION, named.EXCESS, named.WORTH]


# Clear and unclear


def clarity_layers(figures: RubricFigures) -> Part:
    """People and graders on a rubric that calls a category unclear."""
    clear = figures.get("clear_share", "humans", "", _SUBSET)
    agreement = figures.select(CLEAR_AGREEMENT, _SUBSET)
    answer, people = in_pieces("report.clear", share=clear) if clear else [], []
    if clear:
        people = figures.table("clarity.annotators", [(rater_title("humans"), ("humans", ""))])
        if best := defined(agreement)[:1]:
            about = in_pieces("report.clear_best", grader=best[0].raters[1], share=best[0])
            answer = sentences(answer, about)
    of_people = {entry_for(name).label: name for name in ("clear_share", "fleiss_kappa")}
    of_graders = {
        entry_for(CLEAR_AGREEMENT).label: "clear_agreement",
        written("clarity.sure_clear"): "confidence_clear",
        written("clarity.sure_unclear"): "confidence_unclear",
    }
    return Part(
        answers=[answer],
        folded=[
            *with_published(people, figures, of_people),
            *with_published(figures.table("clarity.graders"), figures, of_graders),
        ],
    )


# People's distribution


def distribution_layers(figures: RubricFigures) -> Part:
    """Probabilities and people's shares, and labels where one or several answers are right."""
    folded: list[Block] = []
    appendix: list[Block] = []
    for subset, reading in READINGS.items():
        raters = [e.grader for e in figures.select(named.SQUARED, subset) if e.grader]
        who = [(written("distributions.others"), ("humans", ""))]
        who += [(rater_title(each), ("humans", each)) for each in raters]
        folded += figures.table("distributions.distances", who, on=subset, reading=reading)
        graders = [rater for rater in raters if rater not in BASELINES]
        said = []
        # On how many units several answers are right, at the middle cut-off.
        at = f"{RIGHT_SHARES[len(RIGHT_SHARES) // 2]:g}"
        if several := figures.get(named.SEVERAL, "humans", "", subset, at):
            units, line = several.bounds[1], several.line
            said.append(written("distributions.several", units=units, share=float(at), line=line))
        said += [_closeness(figures, subset, each) for each in graders]
        title = figures.caption(written("distributions.what", reading=reading))
        folded += items(title, filter(None, said))
        appendix += _right_answers(figures, subset, raters)
    found = (each for each in figures.select(named.TOTAL_VARIATION) if each.grader)
    near = defined(each for each in found if each.grader not in BASELINES)
    answers = []
    for best in near[-1:]:
        # Its distance from what other people reach.
        excess = figures.get(named.EXCESS, *best.raters)
        beyond = in_pieces("report.shares_excess", excess=excess) if excess else []
        shares = in_pieces("report.shares", grader=best.grader, distance=best)
        answers.append(sentences(shares, beyond))
    return Part(answers=answers, folded=folded, appendix=appendix)


def _right_answers(figures: RubricFigures, subset: str, raters: list[str]) -> list[Table]:
    """Tabulate how often one answer is right, and one of several, by the share that makes it so."""

    def forced(key: Key) -> Figure | None:
        of_rater = key.statistic != named.SEVERAL
        return figures.by_key(key._replace(statistic=named.FORCED)) if of_rater else None

    places = [(written("distributions.several_units"), named.SEVERAL, "")]
    places += [(written("distributions.one_annotator"), named.RIGHT, "")]
    places += [(rater_title(rater), named.RIGHT, rater) for rater in raters]
    at_shares = [
        (written("distributions.right_from", share=each), {"at": f"{each:g}"})
        for each in RIGHT_SHARES
    ]
    return figures.table(
        "distributions.right_answers",
        [(title, figures.key(name, "humans", rater, subset)) for title, name, rater in places],
        [(entry_for(named.FORCED).label, forced), *at_shares],
        reading=READINGS[subset],
    )


def _closeness(figures: RubricFigures, subset: str, grader: str) -> str:
    """State whether a grader is closer to or further from people's distribution than other people
    are, by the bounds of the difference.
    """
    own, excess, worth = figures.row(_DISTANCE, ("humans", grader), subset)
    if not (own and excess and excess.interval):
        return ""
    low, _, high = excess.bounds
    found = "further" if low > 0 else "closer" if high < 0 else "not_apart"
    lines = f"{own.line}, {excess.line}"
    about = written(
        "distributions.figures", distance=own.estimate, difference=excess.text, lines=lines
    )
    said = written(f"distributions.{found}", grader=grader, figures=about)
    if not worth or worth.reason:
        return said
    if worth.says("people_or_more"):
        return f"{said} {written('distributions.worth_most', most=MOST_PEOPLE)}"
    return f"{said} {written('distributions.worth', annotators=worth.text)}"


# Confidence filter


def confidence_layers(figures: RubricFigures) -> Part:
    """Graders with a confidence: the declared cut, a promise, all cuts."""
    found, routes = figures.everywhere(COVERAGE), list(_routes(figures))
    declared = [each for each in found if each.says("declared_cut")]
    cut = shown(float(declared[0].at), routing.CUT) if declared else ""
    columns = [
        (written("confidence.kept_at", cut=cut), COVERAGE),
        (written("confidence.agreement_at", cut=cut), AGREEMENT),
    ]
    at_cut = figures.table("confidence.caption", rows_of(declared, attrgetter("grader")), columns)
    promised = (
        (written("naming.about", whom=cut.grader, what=text), [cut, *_above(figures, cut)])
        for cut, text in routes
    )
    traces = (traced(sentence, lines_of(shown_in)) for sentence, shown_in in promised)
    promises = items(figures.caption(written("confidence.what")), traces)
    rows = rows_of(found, lambda each: shown(float(each.at), routing.CUT), attrgetter("grader"))
    every_cut = figures.table("confidence.curve", rows)
    return Part(answers=_promised(figures), folded=[*at_cut, *promises, *every_cut])


def _promised(figures: RubricFigures) -> list[list[object]]:
    """The cuts that keep a promise, and the graders for which none does."""
    said, without = [], []
    for cut in figures.everywhere(routing.CUT):
        if above := _above(figures, cut):
            about = dict(zip(("share", "agreement"), above, strict=True))
            said.append(in_pieces("report.cut", grader=cut.grader, cut=cut, **about))
        else:
            without.append([cut.grader])
    if without:
        said.append(in_pieces("report.cut_none", graders=listed(without)))
    return [sentences(*said)]


def render_routing_text(analysis: Analysis) -> list[str]:
    """A sentence or two on every grader with a confidence, on the labels to trust."""
    return [
        written(
            "confidence.routing_on" if figures.rubric else "confidence.routing",
            grader=cut.grader, rubric=figures.rubric, said=text,
        )
        for figures in Source.of(analysis, ReportContext("")).rubrics
        for cut, text in _routes(figures)
    ]  # fmt: skip


def _above(figures: RubricFigures, cut: Figure) -> list[Figure]:
    """Return share and agreement of the labels above the cut; empty without a cut."""
    names = (routing.SHARE, routing.ROUTED_AGREEMENT)
    return list(filter(None, figures.row(names, cut.raters, cut.subset, cut.at)))


def _routes(figures: RubricFigures) -> Iterator[tuple[Figure, str]]:
    """Yield every grader's promised cut with its explanation."""
    for cut in figures.everywhere(routing.CUT):
        target = f"{100 * float(cut.at):g}%"
        if above := _above(figures, cut):
            share, agreement = (each.bounds[1] for each in above)
            below = 1.0 - cut.bounds[1]
            places = max(3, math.ceil(-math.log10(below))) if below > 0 else 3  # 0.99996 is not 1
            yield cut, written(
                "confidence.trust",
                cut=f"{cut.bounds[1]:.{places}f}", certainty=1 - routing.ERROR, target=target,
                agreement=agreement, share=share,
            )  # fmt: skip
        elif cut.reason and cut.reason.code == "unequal_chances":
            yield cut, written("confidence.unequal", target=target)
        elif cut.reason and cut.reason.code != "no_level":
            units, *more = cut.reason.detail
            yield cut, written(
                "confidence.label_more" if more else "confidence.out_of_reach",
                target=target, units=units, more=more and more[0],
            )  # fmt: skip


# Other wordings: do labels stay the same when a question, or the rubric, is worded differently?


def stability_layers(figures: RubricFigures) -> Part:
    """Kappa across variants: subjects' answers as each reader labels them, a table for each varying
    column; then every rater's labels across wordings of the rubric.
    """

    def binary(key: Key) -> Figure | None:
        return figures.by_key(key._replace(subset=key.subset + BINARY))

    kappa, spread = (entry_for(name).label for name in (STABILITY, SPREAD))
    columns: list[str | tuple[str, Column]] = [STABILITY, SPREAD]
    columns.append((written("stability.binary", statistic=kappa), binary))
    found = [each for each in figures.everywhere(STABILITY) if not each.is_binary]
    whole = figures.select(STABILITY)
    subsets = dict.fromkeys(each.subset for each in found)
    answers: list[Table] = []
    for column in dict.fromkeys(each.at for each in found if each.at != REWORDED):
        rows: list[TableRow] = []
        for each in whole:
            if each.at == column and each.interval:
                people = each.rater == "humans"
                reader = written("ceiling.majority") if people else each.rater
                rows.append((written("stability.labelled_by", rater=reader), None))
                rows += [(_place(one), each.key._replace(subset=one)) for one in subsets]
        answers += figures.table("stability.answers", rows, columns, column=column)
    # Once is enough, and they fit any column.
    answers = with_published(answers, figures, {kappa: "stability_kappa", spread: SPREAD})
    reworded = rows_of((e for e in whole if e.at == REWORDED), lambda e: rater_title(e.rater))
    graders = figures.table("stability.graders", reworded, columns)
    return Part(answers=_least_stable(found), folded=[*answers, *graders])


def _least_stable(found: Sequence[Figure]) -> list[list[object]]:
    """Name the rater that changes most when the rubric is reworded, and the subject whose answers
    change most when the question is.
    """
    known = [each for each in defined(found) if each.interval]
    by_rubric = [each for each in known if each.at == REWORDED]
    of_subjects = [each for each in known if each.at != REWORDED and each.subset != ALL]
    by_question = [each for each in of_subjects if each.rater == "humans"] or of_subjects
    said = [
        in_pieces("report.reworded", rater=rater_title(least.rater), kappa=least)
        for least in by_rubric[-1:]
    ]
    said += [
        in_pieces("report.answers_vary", at=least.at, subject=_place(least.subset), kappa=least)
        for least in by_question[-1:]
    ]
    return [sentences(*said)]


def _place(subset: str) -> str:
    return written("stability.all_subjects") if subset == ALL else subset.removeprefix("subject=")


def rewording_layers(figures: RubricFigures) -> Part:
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
    return Part(answers=answers, folded=figures.table("rewording.caption"))
