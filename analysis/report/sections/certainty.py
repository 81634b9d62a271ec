"""Certainty of labels: clear items, shares of people, labels with confidence, other wordings; and
graders' probabilities: their thresholds, the effect of tuning, and their calibration.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.analysis import distributions as named
from evenhand.analysis.agreement.groups import REWORDED, SPREAD, STABILITY
from evenhand.analysis.labels.matrix import BINARY, COLLAPSED
from evenhand.analysis.people.disagreements import ALPHA, CLEAR_AGREEMENT, DIFFERENCE, FILLED, moved
from evenhand.analysis.report import charts
from evenhand.analysis.report.blocks import Block, Chart, Part, Table, items, with_lines
from evenhand.analysis.report.source import (
    ALL,
    ALL_BINARY,
    SUBSET_NAMES,
    Column,
    Figure,
    Key,
    ReportContext,
    RowSpec,
    RubricFigures,
    Source,
    format_number,
    join_listed,
    join_sentences,
    largest_first,
    lines_of,
    rater_title,
    reference_title,
    rows_of,
)
from evenhand.analysis.results import BASELINES
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds import tuning
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis


def clarity_part(figures: RubricFigures) -> Part:
    """People and graders on a rubric that calls a category unclear."""
    answer: list[object] = []
    people: list[Table] = []
    if clear := figures.get("clear_share", "humans", "", ALL + COLLAPSED):
        answer = in_pieces("report.clear", share=clear)
        people = figures.table("clarity.annotators", [(rater_title("humans"), ("humans", ""))])
        for best in largest_first(figures.select(CLEAR_AGREEMENT, ALL + COLLAPSED))[:1]:
            of_best = in_pieces("report.clear_best", grader=best.grader, share=best)
            answer = join_sentences(answer, of_best)
    return Part(answers=[answer], folded=[*people, *figures.table("clarity.graders")])


def distribution_part(figures: RubricFigures) -> Part:
    """Probabilities and people's shares."""
    folded: list[Block] = []
    for subset, reading in SUBSET_NAMES.items():
        raters = [e.grader for e in figures.select(named.SQUARED, subset) if e.grader]
        who = [(written("distributions.others"), ("humans", ""))]
        who += [(rater_title(rater), ("humans", rater)) for rater in raters]
        folded += figures.table("distributions.distances", who, on=subset, reading=reading)
    distances = (row for row in figures.select(named.TOTAL_VARIATION) if row.grader)
    near = largest_first(distance for distance in distances if distance.grader not in BASELINES)
    answers = []
    for best in near[-1:]:
        # Its distance from what other people reach.
        excess = figures.get(named.EXCESS, *best.raters)
        beyond = in_pieces("report.shares_excess", excess=excess) if excess else []
        shares = in_pieces("report.shares", grader=best.grader, distance=best)
        answers.append(join_sentences(shares, beyond))
    return Part(answers=answers, folded=folded)


def confidence_part(figures: RubricFigures) -> Part:
    """Graders with a confidence: the declared cut, a promise, all cuts."""
    coverage, routes = figures.select_all(tuning.COVERAGE), list(_routes(figures))
    declared = [row for row in coverage if row.has_remark("declared_cut")]
    cut = format_number(float(declared[0].at), tuning.CUT) if declared else ""
    columns = [(written("confidence.kept_at", cut=cut), tuning.COVERAGE)]
    columns += [(written("confidence.agreement_at", cut=cut), tuning.AGREEMENT)]
    at_cut = figures.table("confidence.caption", rows_of(declared, attrgetter("grader")), columns)
    traces = []
    for promised, text in routes:
        lines = lines_of([promised, *_above(figures, promised)])
        traces.append(with_lines(written("naming.about", whom=promised.grader, what=text), lines))
    promises = items(figures.caption(written("confidence.what")), traces)
    rows = rows_of(
        coverage, lambda row: format_number(float(row.at), tuning.CUT), attrgetter("grader")
    )
    every_cut = figures.table("confidence.curve", rows)
    return Part(answers=_promised(figures), folded=[*at_cut, *promises, *every_cut])


def _promised(figures: RubricFigures) -> list[list[object]]:
    """The cuts that keep a promise, and the graders for which none does."""
    answers, without = [], []
    for cut in figures.select_all(tuning.CUT):
        if above := _above(figures, cut):
            about = dict(zip(("share", "agreement"), above, strict=True))
            answers.append(in_pieces("report.cut", grader=cut.grader, cut=cut, **about))
        else:
            without.append([cut.grader])
    if without:
        answers.append(in_pieces("report.cut_none", graders=join_listed(without)))
    return [join_sentences(*answers)]


def render_routing_text(analysis: Analysis) -> list[str]:
    """A sentence or two on every grader with a confidence, on the labels to trust."""
    lines = []
    for figures in Source(analysis, ReportContext("")).rubrics:
        for cut, text in _routes(figures):
            about = {"grader": cut.grader, "rubric": figures.rubric, "said": text}
            key = "routing_on" if figures.rubric else "routing"
            lines.append(written(f"confidence.{key}", **about))
    return lines


def _above(figures: RubricFigures, cut: Figure) -> list[Figure]:
    """Return share and agreement of the labels above the cut; empty without a cut."""
    names = (tuning.SHARE, tuning.ROUTED_AGREEMENT)
    return list(filter(None, figures.row(names, cut.raters, cut.subset, cut.at)))


def _routes(figures: RubricFigures) -> Iterator[tuple[Figure, str]]:
    """Yield every grader's promised cut with its explanation."""
    for cut in figures.select_all(tuning.CUT):
        target = f"{100 * float(cut.at):g}%"
        if above := _above(figures, cut):
            share, agreement = (row.bounds[1] for row in above)
            below = 1.0 - cut.bounds[1]
            places = max(3, math.ceil(-math.log10(below))) if below > 0 else 3  # 0.99996 is not 1
            about = {"cut": f"{cut.bounds[1]:.{places}f}", "certainty": 1 - tuning.ERROR}
            about |= {"target": target, "agreement": agreement, "share": share}
            yield cut, written("confidence.trust", **about)
        elif cut.reason and cut.reason.code == "unequal_chances":
            yield cut, written("confidence.unequal", target=target)
        elif cut.reason and cut.reason.code != "no_level":
            units, *more = cut.reason.detail
            about = {"target": target, "units": units, "more": more and more[0]}
            yield cut, written(f"confidence.{'label_more' if more else 'out_of_reach'}", **about)


def stability_part(figures: RubricFigures) -> Part:
    """Kappa across variants: subjects' answers as each reader labels them, a table for each varying
    column; then every rater's labels across wordings of the rubric.
    """

    def binary(key: Key) -> Figure | None:
        return figures.by_key(key._replace(subset=key.subset + BINARY))

    kappa = entry_for(STABILITY).label
    columns: list[str | tuple[str, Column]] = [STABILITY, SPREAD]
    columns.append((written("stability.binary", statistic=kappa), binary))
    kappas = [row for row in figures.select_all(STABILITY) if not row.is_binary]
    whole = figures.select(STABILITY)
    subsets = dict.fromkeys(row.subset for row in kappas)
    answers: list[Table] = []
    for column in dict.fromkeys(row.at for row in kappas if row.at != REWORDED):
        rows: list[RowSpec] = []
        for row in whole:
            if row.at == column and row.interval:
                reader = written("ceiling.majority") if row.rater == "humans" else row.rater
                rows.append((written("stability.labelled_by", rater=reader), None))
                rows += [(_place(one), row.key._replace(subset=one)) for one in subsets]
        answers += figures.table("stability.answers", rows, columns, column=column)
    reworded = rows_of((e for e in whole if e.at == REWORDED), lambda e: rater_title(e.rater))
    graders = figures.table("stability.graders", reworded, columns)
    return Part(answers=_least_stable(kappas), folded=[*answers, *graders])


def _least_stable(kappas: Sequence[Figure]) -> list[list[object]]:
    """Name the rater and the subject that change most when rubric or prompt are reworded."""
    known = [row for row in largest_first(kappas) if row.interval]
    by_rubric = [row for row in known if row.at == REWORDED]
    of_subjects = [row for row in known if row.at != REWORDED and row.subset != ALL]
    by_question = [row for row in of_subjects if row.rater == "humans"] or of_subjects
    answers = []
    for e in by_rubric[-1:]:
        answers.append(in_pieces("report.reworded", rater=rater_title(e.rater), kappa=e))
    for e in by_question[-1:]:
        place = _place(e.subset)
        answers.append(in_pieces("report.answers_vary", at=e.at, subject=place, kappa=e))
    return [join_sentences(*answers)]


def _place(subset: str) -> str:
    return written("stability.all_subjects") if subset == ALL else subset.removeprefix("subject=")


def rewording_part(figures: RubricFigures) -> Part:
    """People's agreement under two wordings, where one was tried: which they agree better under, or
    how many more labels would tell.
    """
    under, apart, filled = (
        {row.at: row for row in figures.select(name)} for name in (ALPHA, DIFFERENCE, FILLED)
    )
    noun = figures.analysis.cluster_nouns.get(figures.rubric, "cluster")
    answers = []
    for name, gap in apart.items():
        old = next(row for wording, row in under.items() if wording not in apart)
        new, share = under[name], filled[name].bounds[1]
        fewest = min(old.n_clusters, new.n_clusters)
        verdict = moved(*gap.bounds, fewest, gap.n_clusters, share)
        about = in_pieces("rewording.figures", before=old, after=new, new=name, difference=gap)
        answers.append(join_sentences([verdict.sentence(name, noun)], about))
    return Part(answers=answers, folded=figures.table("rewording.caption"))


# Thresholds of graders that give probabilities

MAIN = "kappa"
"""The objective that the section's sentences are about."""

_TITLES = {
    name: written(f"thresholds.objective_{name}")
    for name in ("kappa", "agreement", "f1", "youden", "prevalence")
}
_HEADS = [written(f"thresholds.{e}") for e in ("at_default", "tuned", "at_tuned", "held_out_gain")]
_KINDS: tuple[str, ...] = ("tuned", "default", "not_identifiable")
"""Kinds of recommendations, each with its words over a panel."""
_CHOSEN = ("threshold", "threshold_recommended")
_BEST, _DEFAULT = "best", "default"
_STATED, _SHARE = "reliability_probability", "reliability"


def threshold_part(figures: RubricFigures) -> Part:
    """Tuned thresholds of a rubric that has graders with probabilities."""
    advised, lines = _advised(figures, MAIN), []
    for cut in advised:
        lines.append(with_lines(_sentence(figures, cut), lines_of([cut, *_evidence(figures, cut)])))
    who = [(_matched(*row.raters), row.raters) for row in figures.select("brier", ALL_BINARY)]
    folded = [*items(written("thresholds.what"), lines), *threshold_curves(figures)]
    folded += [*_tuned(figures, [MAIN]), *figures.table("thresholds.errors", who)]
    folded += reliability_diagrams(figures)
    others = [objective for objective in tuning.OBJECTIVES if objective != MAIN]
    appendix = _tuned(figures, others, "others")
    return Part(_thresholds_to_use(figures, advised), folded=folded, appendix=appendix)


def _thresholds_to_use(figures: RubricFigures, thresholds: Sequence[Figure]) -> list[list[object]]:
    """Name the threshold to use for each grader, preferably tuned to people."""
    by_people = [threshold for threshold in thresholds if threshold.rater == "humans"] or thresholds
    answers: list[list[object]] = []
    kept: dict[str, list[Figure]] = {}
    for advised in by_people:
        grader, (_, gain) = advised.grader, _evidence(figures, advised)
        if advised.has_remark("tuned") and gain:
            about = {"grader": grader, "threshold": advised, "gain": gain}
            answers.append(in_pieces("report.threshold_tuned", **about))
        else:
            kept.setdefault(advised.estimate, []).append(advised)
    for same in kept.values():
        graders = join_listed([[row.grader] for row in same])
        default = replace(same[0], interval="")  # which is of the best threshold
        answers.append(in_pieces("report.threshold_kept", threshold=default, graders=graders))
    return [join_sentences(*answers)]


def render_thresholds_text(
    analysis: Analysis, context: ReportContext, objective: str = MAIN
) -> list[tuple[list[Table], list[str]]]:
    """Return for every rubric the table of one objective and its sentences, for a terminal."""
    source, by_rubric = Source(analysis, context), []
    for figures in source.rubrics:
        tables = _tuned(figures, [objective])
        marked = [replace(table, caption=source.marked(table.caption)) for table in tables]
        lines = [_sentence(figures, advised) for advised in _advised(figures, objective)]
        by_rubric.append((marked, lines))
    return by_rubric


def _advised(figures: RubricFigures, objective: str) -> list[Figure]:
    thresholds = figures.select("threshold_recommended", ALL_BINARY)
    return [figure for figure in thresholds if figure.at == objective]


def _tuned(figures: RubricFigures, objectives: Sequence[str], what: str = "caption") -> list[Table]:
    """Tabulate tuned thresholds, each between the value at the default and its own."""

    def value_at(key: Key, at: str) -> Figure | None:
        return figures.by_key(key._replace(statistic=tuning.AT_THRESHOLD.get(key.at, ""), at=at))

    def at_default(key: Key) -> Figure | None:
        return value_at(key, figures.default_threshold((key.rater_a, key.rater_b)))

    def at_tuned(key: Key) -> Figure | None:
        return value_at(key, repr(tuned[key].bounds[1]))

    cells: list[Column] = [at_default, {}, at_tuned, "threshold_held_out_gain"]
    thresholds = figures.select("threshold", ALL_BINARY)
    tuned = {figure.key: figure for figure in thresholds if figure.at in objectives}
    rows = rows_of(tuned.values(), lambda e: _TITLES[e.at], lambda e: _matched(*e.raters))
    return figures.table(f"thresholds.{what}", rows, zip(_HEADS, cells, strict=True))


def _matched(reference: str, grader: str) -> str:
    return written("thresholds.matched_to", grader=grader, reference=reference_title(reference))


def _evidence(figures: RubricFigures, advised: Figure) -> list[Figure | None]:
    """The tuned threshold and its held-out gain."""
    names = ("threshold", "threshold_held_out_gain")
    return figures.row(names, advised.raters, ALL_BINARY, advised.at)


def _sentence(figures: RubricFigures, advised: Figure) -> str:
    """State which threshold to use, in plain words, with the figures behind the advice."""
    kind, reason, *others = advised.remarks
    at = figures.default_threshold(advised.raters)
    default = format_number(float(at), "threshold") if at else written("thresholds.default")
    tuned, gain = _evidence(figures, advised)
    best = tuned.text if tuned else ""
    won = gain.text if gain else ""
    why = reason.words
    if kind.code == "tuned":
        answer = "use"
    elif kind.code == "not_identifiable":
        answer = "not_identifiable"
        if reason.code == "interval_too_wide":
            why = written("thresholds.too_wide", why=why, best=best)
    elif tuned is not None and tuned.bounds[1] == float(at or "nan"):
        answer = "not_better"
    else:
        answer = "not_won"
    reference, grader = advised.raters
    about = {"grader": grader, "reference": reference_title(reference), "default": default}
    about |= {"objective": _TITLES[advised.at], "best": best, "gain": won, "why": why}
    lines = [written(f"thresholds.{answer}", **about)]
    coarse = [other.words for other in others if other.code == "coarse_draws"]
    lines += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in coarse]
    if in_force := figures.get(tuning.IN_FORCE, "", grader, ALL_BINARY):
        of = in_force.remarks[0].words
        lines.append(written("thresholds.in_force", threshold=in_force.estimate, why=of))
    return " ".join(lines)


def threshold_curves(figures: RubricFigures) -> list[Chart]:
    """The course of kappa over the thresholds, a panel for each grader, with the best and its
    interval, and the one to use; empty where no grader's probabilities meet a reference.
    """
    graders = figures.rater_pairs(figures.select(tuning.CURVE, ALL_BINARY))
    values: list[charts.Datum] = []
    curves: list[Figure] = []
    advice: dict[str, str] = {}
    for raters in graders[: charts.MAX_LISTED]:
        best, advised = figures.row(_CHOSEN, raters, ALL_BINARY, MAIN)
        if best is None or advised is None:
            continue
        curve = figures.select(tuning.CURVE, ALL_BINARY, raters)
        default = figures.default_threshold(raters)
        kind = next(code for code in _KINDS if advised.has_remark(code))
        about = {"estimate": advised.estimate, "interval": advised.interval}
        text = advice[raters[1]] = written(f"chart.advice_{kind}", **about)
        panel = {"grader": charts.shorten(raters[1])}
        for point in curve:
            at = float(point.at)
            mark = _BEST if at == best.bounds[1] else ""
            mark = _DEFAULT if point.at == default else mark
            used = at == advised.bounds[1]
            values.append(point.datum(kind="curve", at=at, mark=mark, used=used, **panel))
        values += [best.datum(kind="interval", **panel)]
        values += [advised.datum(kind="advice", text=text, **panel)]
        curves += curve
    if not values:
        return []

    def chosen(key: Key, *, name: str) -> Figure | None:
        figure = figures.by_key(key._replace(statistic=name, at=MAIN))
        return figure if figure and float(key.at) == figure.bounds[1] else None

    columns: list[str | tuple[str, Column]] = [tuning.CURVE]
    columns += [(entry_for(n).label, partial(chosen, name=n)) for n in _CHOSEN]
    rows = rows_of(curves, lambda e: format_number(float(e.at), "threshold"), lambda e: e.grader)
    names = {
        "statistic": entry_for(tuning.CURVE).label,
        "reference": reference_title(graders[0][0]),
    }
    every = [written("chart.threshold_advice", grader=e, advice=advice[e]) for e in advice]
    return figures.chart(
        "threshold", values, figures.table("chart.threshold_table", rows, columns, **names),
        charts.omitted_note([name for _, name in graders], advice),
        **names, label=written("chart.threshold_label", **names), marks=_marks(values),
        advice="; ".join(every), graders=charts.unique_values(values, "grader"),
        y=charts.axis_through_zero(charts.bounds_of(d for d in values if d["kind"] == "curve")),
    )  # fmt: skip


def _marks(values: Sequence[charts.Datum]) -> str:
    """Explain the marks that are drawn."""
    drawn = {datum.get("mark") for datum in values}
    strip = any(datum["kind"] == "interval" and datum["low"] is not None for datum in values)
    marks = [written("chart.threshold_default")] if _DEFAULT in drawn else []
    if _BEST in drawn:
        marks.append(written("chart.threshold_best_interval" if strip else "chart.threshold_best"))
    if any(datum.get("used") and datum.get("mark") for datum in values):
        marks.append(written("chart.threshold_used"))
    return " ".join(marks)


def reliability_diagrams(figures: RubricFigures) -> list[Chart]:
    """The share affirmative at each stated probability, without bins, by the isotonic curve, with
    the band of a calibrated grader's curve; a panel for each grader, empty where no grader's
    probabilities meet a reference.
    """
    graders = figures.rater_pairs(figures.select(_SHARE, ALL_BINARY))
    if not (drawn := graders[: charts.MAX_LISTED]):
        return []
    values: list[charts.Datum] = []
    shares: list[Figure] = []
    for raters in drawn:
        for share in figures.select(_SHARE, ALL_BINARY, raters):
            if stated := figures.by_key(share.key._replace(statistic=_STATED)):
                shares.append(share)
                low, middle, high = stated.bounds
                about = {"grader": charts.shorten(raters[1]), "units": share.n_units}
                about |= {"stated": middle, "stated_row": stated.line}
                values.append(share.datum(**about, stated_low=low, stated_high=high))

    def probability(share: Figure) -> str:
        stated = figures.by_key(share.key._replace(statistic=_STATED))
        return format_number(stated.bounds[1], "threshold") if stated else ""

    rows = rows_of(shares, probability, lambda chance: chance.grader)
    return figures.chart(
        "reliability", values, figures.table("chart.reliability_table", rows),
        charts.omitted_note([name for _, name in graders], {share.grader for share in shares}),
        reference=reference_title(drawn[0][0]), graders=charts.unique_values(values, "grader"),
    )  # fmt: skip
