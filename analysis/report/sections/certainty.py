"""Sections on the certainty of labels: clear items, graders' confidence, stability across
wordings; and on graders' probabilities: tuned thresholds and calibration.

Each `*_part` function makes a section's part on one rubric; `render_*_text` are for a terminal.
`figures` are all figures of the rubric. A name such as "stability.graders" is that of a table in
`report/tables.toml` and of its caption in the texts; "report.cut" is a sentence in the texts.

Several figures of one statistic differ in `at`:

- Confidence (`tuning.COVERAGE`, `AGREEMENT`): the cut, the least confidence of the labels used.
- A cut (the estimate of `tuning.CUT`) and figures above it: the agreement that it guarantees.
- Stability: the column of variants, such as wordings of a prompt; or `REWORDED`, of the rubric.
- A trial of a new wording (`disagreements.TRIAL_...`): the wording.
- Thresholds (`_TUNED`, `_RECOMMENDED`, `_GAIN`): the objective that they are tuned to.
- Values of an objective, such as kappa on the curve (`tuning.CURVE`): the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from evenhand.analysis.agreement.groups import REWORDED, SPREAD, STABILITY
from evenhand.analysis.labels.matrix import BINARY, COLLAPSED
from evenhand.analysis.people import disagreements
from evenhand.analysis.report import charts
from evenhand.analysis.report import source as src
from evenhand.analysis.report.blocks import Chart, Part, Table, items, with_lines
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.thresholds import tuning
from evenhand.texts import in_pieces, written

if TYPE_CHECKING:
    from evenhand.analysis.all_rubrics import Analysis


def clarity_part(figures: src.RubricFigures) -> Part:
    """Make the part on a rubric with a category for unclear items: people's and graders' use."""
    answer: list[object] = []
    tables: list[Table] = []
    if clear := figures.get("clear_share", "humans", "", src.ALL + COLLAPSED):
        answer = in_pieces("report.clear", share=clear)
        people = src.RowSpec(src.rater_title("humans"), ("humans", ""))
        tables = figures.table("clarity.annotators", [people])
        agreement = figures.select(disagreements.CLEAR_AGREEMENT, src.ALL + COLLAPSED)
        if by_size := src.largest_first(agreement):
            best = in_pieces("report.clear_best", grader=by_size[0].grader, share=by_size[0])
            answer = src.join_sentences(answer, best)
    return Part(answers=[answer], folded=[*tables, *figures.table("clarity.graders")])


def confidence_part(figures: src.RubricFigures) -> Part:
    """Make the part on *routing*: trusting a grader's labels only above a cut of its confidence."""
    coverage = figures.select_all(tuning.COVERAGE)
    declared = [row for row in coverage if row.has_remark("declared_cut")]
    declared_cut = _cut_title(declared[0]) if declared else ""
    columns = [(written("confidence.kept_at", cut=declared_cut), tuning.COVERAGE)]
    columns += [(written("confidence.agreement_at", cut=declared_cut), tuning.AGREEMENT)]
    declared_rows = src.rows_of(declared, attrgetter("grader"))
    at_declared = figures.table("confidence.caption", declared_rows, columns)
    sentences = []
    for cut, text in _cut_sentences(figures):
        sentence = written("naming.about", whom=cut.grader, what=text)
        lines = src.lines_of([cut, *_above_cut(figures, cut).values()])
        sentences.append(with_lines(sentence, lines))
    guarantees = items(figures.caption(written("confidence.what")), sentences)
    rows = src.rows_of(coverage, _cut_title, attrgetter("grader"))
    every_cut = figures.table("confidence.curve", rows)
    return Part(answers=_cut_answers(figures), folded=[*at_declared, *guarantees, *every_cut])


def _cut_title(figure: src.Figure) -> str:
    """Return the cut of a figure, rounded for display."""
    return src.format_number(float(figure.at), tuning.CUT)


def _cut_answers(figures: src.RubricFigures) -> list[list[object]]:
    """State the cuts that guarantee an agreement, and the graders that have none."""
    answers, without_cut = [], []
    for cut in figures.select_all(tuning.CUT):
        if above := _above_cut(figures, cut):
            answers.append(in_pieces("report.cut", grader=cut.grader, cut=cut, **above))
        else:
            without_cut.append([cut.grader])
    if without_cut:
        answers.append(in_pieces("report.cut_none", graders=src.join_listed(without_cut)))
    return [src.join_sentences(*answers)]


def _above_cut(figures: src.RubricFigures, cut: src.Figure) -> dict[str, src.Figure]:
    """Return the `share` of labels above a cut and their `agreement`; empty without a cut."""
    statistics = {"share": tuning.SHARE, "agreement": tuning.ROUTED_AGREEMENT}
    keys = ((name, cut.key._replace(statistic=statistics[name])) for name in statistics)
    return {name: figure for name, key in keys if (figure := figures.by_key(key))}


def _cut_sentences(figures: src.RubricFigures) -> Iterator[tuple[src.Figure, str]]:
    """Yield every grader's cut that guarantees an agreement, or is undefined, with a sentence."""
    for cut in figures.select_all(tuning.CUT):
        target, reason = f"{100 * float(cut.at):g}%", cut.reason  # the agreement to guarantee
        if above := _above_cut(figures, cut):
            numbers = {name: figure.exact.estimate for name, figure in above.items()}
            below_1 = 1.0 - cut.exact.estimate  # 0.99996 is not shown as 1
            places = max(3, math.ceil(-math.log10(below_1))) if below_1 > 0 else 3
            fields = {"cut": f"{cut.exact.estimate:.{places}f}", "certainty": 1 - tuning.ERROR}
            yield cut, written("confidence.trust", target=target, **fields, **numbers)
        elif reason and reason.code == "unequal_chances":
            yield cut, written("confidence.unequal", target=target)
        elif reason and reason.code == "promise_needs_more":
            units, more = reason.detail
            yield cut, written("confidence.label_more", target=target, units=units, more=more)
        elif reason and reason.code == "promise_out_of_reach":
            (units,) = reason.detail
            yield cut, written("confidence.out_of_reach", target=target, units=units)


def render_routing_text(analysis: Analysis) -> list[str]:
    """Return a sentence for every grader with a confidence: which of its labels to trust."""
    lines = []
    for figures in src.Source(analysis, src.ReportContext("")).rubrics:
        for cut, text in _cut_sentences(figures):
            fields = {"grader": cut.grader, "rubric": figures.rubric, "sentences": text}
            key = "routing_on" if figures.rubric else "routing"
            lines.append(written(f"confidence.{key}", **fields))
    return lines


def stability_part(figures: src.RubricFigures) -> Part:
    """Make the part on kappa across variants, wordings of one prompt or of the rubric: of subjects'
    answers as labelled by each rater, a table for each column that varies; then of raters' labels.
    """

    def on_binary(key: src.Key) -> src.Figure | None:
        return figures.by_key(key._replace(subset=key.subset + BINARY))

    binary_head = written("stability.binary", statistic=entry_for(STABILITY).label)
    columns: list[src.HeadedColumn] = [STABILITY, SPREAD, (binary_head, on_binary)]
    kappas = [row for row in figures.select_all(STABILITY) if not row.is_binary]
    overall_kappas = figures.select(STABILITY)
    names = dict.fromkeys(row.subset for row in kappas)  # of all subjects together, and of each
    tables: list[Table] = []
    for varying in dict.fromkeys(row.at for row in kappas if row.at != REWORDED):
        rows: list[src.RowSpec] = []
        for row in overall_kappas:
            if row.at == varying and row.interval:  # without an interval it is undefined
                rater = written("ceiling.majority") if row.rater == "humans" else row.rater
                rows.append(src.RowSpec(written("stability.labelled_by", rater=rater)))
                keys = (row.key._replace(subset=name) for name in names)
                rows += [src.RowSpec(src.subject_title(key.subset), key) for key in keys]
        tables += figures.table("stability.answers", rows, columns, column=varying)
    rubric_kappas = [row for row in overall_kappas if row.at == REWORDED]
    reworded = src.rows_of(rubric_kappas, lambda row: src.rater_title(row.rater))
    tables += figures.table("stability.graders", reworded, columns)
    return Part(answers=_stability_answer(kappas), folded=tables)


def _stability_answer(kappas: Sequence[src.Figure]) -> list[list[object]]:
    """Name the rater and the subject that change most when rubric or prompt are reworded."""
    by_size = [row for row in src.largest_first(kappas) if row.interval]
    rubric_kappas = [row for row in by_size if row.at == REWORDED]
    subject_kappas = [row for row in by_size if row.at != REWORDED and row.subset != src.ALL]
    prompt_kappas = [row for row in subject_kappas if row.rater == "humans"] or subject_kappas
    answers = []
    if rubric_kappas:
        rater = src.rater_title(rubric_kappas[-1].rater)
        answers.append(in_pieces("report.reworded", rater=rater, kappa=rubric_kappas[-1]))
    if prompt_kappas:
        least = prompt_kappas[-1]
        subject = src.subject_title(least.subset)
        answers.append(in_pieces("report.answers_vary", at=least.at, subject=subject, kappa=least))
    return [src.join_sentences(*answers)]


def rewording_part(figures: src.RubricFigures) -> Part:
    """Make the part on people's agreement under two wordings of the rubric."""
    names = disagreements.TRIAL_ALPHA, disagreements.TRIAL_DIFFERENCE, disagreements.TRIAL_FILLED
    # Figures by wording. The differences are from the old wording, the only one without.
    alphas, differences, filled = ({row.at: row for row in figures.select(name)} for name in names)
    noun = figures.analysis.cluster_nouns.get(figures.rubric, "cluster")
    answers = []
    for new_wording, difference in differences.items():
        old = next(row for wording, row in alphas.items() if wording not in differences)
        new = alphas[new_wording]
        outcome = disagreements.trial_outcome(
            *difference.exact, fewest=min(old.n_clusters, new.n_clusters),
            clusters=difference.n_clusters, filled=filled[new_wording].exact.estimate,
        )  # fmt: skip
        fields = {"before": old, "after": new, "new": new_wording, "difference": difference}
        numbers = in_pieces("rewording.figures", **fields)
        answers.append(src.join_sentences([outcome.sentence(new_wording, noun)], numbers))
    return Part(answers=answers, folded=figures.table("rewording.caption"))


# ---- Thresholds of graders that give probabilities -----------------------------------------------
# A grader's probabilities become binary labels at a *threshold*. Tuning finds the best one by an
# *objective*, such as kappa with people, and *recommends* it, or the default threshold.
MAIN = "kappa"  # the objective that the sentences and charts are about; tables have the others
_OBJECTIVES = {
    name: written(f"thresholds.objective_{name}")
    for name in ("kappa", "agreement", "f1", "youden", "prevalence")
}
_KINDS = ("tuned", "default", "not_identifiable")  # of recommended thresholds, each with a text
_TUNED, _RECOMMENDED = "threshold", "threshold_recommended"  # statistics: the best, the one to use
_GAIN = "threshold_held_out_gain"  # how much better the best threshold is than the default
_BEST, _DEFAULT = "best", "default"  # marks of points of a chart's curve
_STATED = "reliability_probability"  # statistic of calibration: a stated probability
_SHARE = "reliability"  # and the affirmative share at it


def threshold_part(figures: src.RubricFigures) -> Part:
    """Make the part on tuned thresholds of a rubric that has graders with probabilities."""
    recommended = [row for row in figures.select(_RECOMMENDED, src.ALL_BINARY) if row.at == MAIN]
    sentences = []
    for threshold in recommended:
        evidence = src.lines_of([threshold, *_tuned_and_gain(figures, threshold)])
        sentences.append(with_lines(_threshold_sentence(figures, threshold), evidence))
    briers = figures.select("brier", src.ALL_BINARY)
    rows = [src.RowSpec(_matched_title(*brier.raters), brier.raters) for brier in briers]
    folded = [*items(written("thresholds.what"), sentences), *threshold_curves(figures)]
    folded += [*_tuned_table(figures, [MAIN]), *figures.table("thresholds.errors", rows)]
    folded += reliability_diagrams(figures)
    others = [objective for objective in tuning.OBJECTIVES if objective != MAIN]
    appendix = _tuned_table(figures, others, "others")
    return Part(_advice(figures, recommended), folded=folded, appendix=appendix)


def _advice(figures: src.RubricFigures, recommended: list[src.Figure]) -> list[list[object]]:
    """State the threshold to use for each grader; if any match people's labels, only of those."""
    to_people = [threshold for threshold in recommended if threshold.rater == "humans"]
    answers: list[list[object]] = []
    kept: list[src.Figure] = []  # default thresholds
    for threshold in to_people or recommended:
        _, gain = _tuned_and_gain(figures, threshold)
        if threshold.has_remark("tuned") and gain:
            fields = {"grader": threshold.grader, "threshold": threshold, "gain": gain}
            answers.append(in_pieces("report.threshold_tuned", **fields))
        else:
            kept.append(threshold)
    for equal in src.group_by(kept, attrgetter("estimate")).values():  # equal as shown
        graders = src.join_listed([[threshold.grader] for threshold in equal])
        default = replace(equal[0], interval="")  # the interval is that of the best threshold
        answers.append(in_pieces("report.threshold_kept", threshold=default, graders=graders))
    return [src.join_sentences(*answers)]


def render_thresholds_text(
    analysis: Analysis, context: src.ReportContext, objective: str = MAIN
) -> list[tuple[list[Table], list[str]]]:
    """Return for every rubric the table of one objective and its sentences, for a terminal."""
    source, by_rubric = src.Source(analysis, context), []
    for figures in source.rubrics:
        tables = _tuned_table(figures, [objective])
        marked = [replace(table, caption=source.marked(table.caption)) for table in tables]
        recommended = figures.select(_RECOMMENDED, src.ALL_BINARY)
        chosen = [row for row in recommended if row.at == objective]
        by_rubric.append((marked, [_threshold_sentence(figures, row) for row in chosen]))
    return by_rubric


def _tuned_table(
    figures: src.RubricFigures, objectives: Sequence[str], name: str = "caption"
) -> list[Table]:
    """Tabulate tuned thresholds, with the objective's value at each and its held-out gain."""
    thresholds = figures.select(_TUNED, src.ALL_BINARY)
    tuned = {figure.key: figure for figure in thresholds if figure.at in objectives}

    def value_at(key: src.Key, threshold: str) -> src.Figure | None:
        """Return the value of the objective of a row (`key`) at a threshold, written as `repr`."""
        value = tuning.AT_THRESHOLD.get(key.at, "")
        return figures.by_key(key._replace(statistic=value, at=threshold))

    columns: dict[str, src.Column] = {
        "at_default": lambda key: value_at(key, figures.default_threshold(tuned[key].raters)),
        "tuned": _TUNED,
        "at_tuned": lambda key: value_at(key, repr(tuned[key].exact.estimate)),
        "held_out_gain": _GAIN,
    }
    headed = [(written(f"thresholds.{name}"), column) for name, column in columns.items()]
    rows = src.rows_of(
        tuned.values(), lambda row: _OBJECTIVES[row.at], lambda row: _matched_title(*row.raters)
    )
    return figures.table(f"thresholds.{name}", rows, headed)


def _matched_title(reference: str, grader: str) -> str:
    """Name a grader and the rater that its threshold is to match."""
    return written("thresholds.matched_to", grader=grader, reference=src.reference_title(reference))


def _tuned_and_gain(figures: src.RubricFigures, recommended: src.Figure) -> list[src.Figure | None]:
    """Return [the tuned threshold behind a recommended one, its held-out gain], None if unknown."""
    return [figures.by_key(recommended.key._replace(statistic=name)) for name in (_TUNED, _GAIN)]


def _threshold_sentence(figures: src.RubricFigures, recommended: src.Figure) -> str:
    """State which threshold to use, in plain words, with the figures behind it."""
    # Remarks of `tuning.add_threshold_rows`: the kind of threshold, why, and warnings.
    kind, reason, *warnings = recommended.remarks
    default_at = figures.default_threshold(recommended.raters)
    default = written("thresholds.default")
    if default_at:
        default = src.format_number(float(default_at), "threshold")
    tuned, gain = _tuned_and_gain(figures, recommended)
    best = tuned.text if tuned else ""
    why = reason.words
    if kind.code == "tuned":
        answer = "use"
    elif kind.code == "not_identifiable":
        answer = "not_identifiable"
        if reason.code == "interval_too_wide":
            why = written("thresholds.too_wide", why=why, best=best)
    elif tuned is not None and default_at and tuned.exact.estimate == float(default_at):
        answer = "not_better"
    else:
        answer = "not_won"
    reference, grader = recommended.raters
    fields = {"grader": grader, "reference": src.reference_title(reference), "default": default}
    fields |= {"objective": _OBJECTIVES[recommended.at], "best": best, "why": why}
    sentences = [written(f"thresholds.{answer}", gain=gain.text if gain else "", **fields)]
    coarse = [remark.words for remark in warnings if remark.code == "coarse_draws"]
    sentences += [f"{words[0].upper()}{words[1:]}." for words in coarse]
    if active := figures.get(tuning.ACTIVE_THRESHOLD, "", grader, src.ALL_BINARY):
        origin = active.remarks[0].words
        sentences.append(written("thresholds.in_force", threshold=active.estimate, why=origin))
    return " ".join(sentences)


def threshold_curves(figures: src.RubricFigures) -> list[Chart]:
    """Draw kappa over the thresholds, a panel for each grader; mark the best and the advised."""
    pairs = figures.rater_pairs(figures.select(tuning.CURVE, src.ALL_BINARY))
    values: list[charts.Datum] = []
    points: list[src.Figure] = []  # of all curves
    advice: dict[str, str] = {}  # by grader
    for raters in pairs[: charts.MAX_LISTED]:
        best = figures.get(_TUNED, *raters, src.ALL_BINARY, MAIN)
        recommended = figures.get(_RECOMMENDED, *raters, src.ALL_BINARY, MAIN)
        if best is None or recommended is None:
            continue
        _, grader = raters
        default = figures.default_threshold(raters)
        kind = next(code for code in _KINDS if recommended.has_remark(code))
        numbers = {"estimate": recommended.estimate, "interval": recommended.interval}
        advice[grader] = written(f"chart.advice_{kind}", **numbers)
        panel = {"grader": charts.shorten(grader)}
        for point in figures.select(tuning.CURVE, src.ALL_BINARY, raters):
            threshold = float(point.at)
            mark = _BEST if threshold == best.exact.estimate else ""
            mark = _DEFAULT if point.at == default else mark  # shown if the default is the best
            is_used = threshold == recommended.exact.estimate
            values.append(point.datum(kind="curve", at=threshold, mark=mark, used=is_used, **panel))
            points.append(point)
        values += [best.datum(kind="interval", **panel)]
        values += [recommended.datum(kind="advice", text=advice[grader], **panel)]
    if not values:
        return []
    reference = src.reference_title(pairs[0][0])
    titles = {"statistic": entry_for(tuning.CURVE).label, "reference": reference}
    notes = (written("chart.threshold_advice", grader=name, advice=advice[name]) for name in advice)
    return figures.chart(
        "threshold", values, _curve_table(figures, points, **titles),
        charts.omitted_note([grader for _, grader in pairs], advice),
        **titles, label=written("chart.threshold_label", **titles),
        advice="; ".join(notes), graders=charts.unique_values(values, "grader"),
        y=charts.axis_through_zero(charts.bounds_of(d for d in values if d["kind"] == "curve")),
    )  # fmt: skip


def _curve_table(
    figures: src.RubricFigures, points: Sequence[src.Figure], **fields: str
) -> list[Table]:
    """Tabulate the points of the curves, marking the best and the recommended threshold."""

    def if_in_row(key: src.Key, *, name: str) -> src.Figure | None:
        """Return the best or the recommended threshold (`name`) in the row of this threshold."""
        figure = figures.by_key(key._replace(statistic=name, at=MAIN))
        return figure if figure and float(key.at) == figure.exact.estimate else None

    columns: list[src.HeadedColumn] = [tuning.CURVE]
    for name in (_TUNED, _RECOMMENDED):
        columns.append((entry_for(name).label, partial(if_in_row, name=name)))
    rows = src.rows_of(
        points, lambda row: src.format_number(float(row.at), "threshold"), attrgetter("grader")
    )
    return figures.table("chart.threshold_table", rows, columns, **fields)


def reliability_diagrams(figures: src.RubricFigures) -> list[Chart]:
    """Draw the affirmative share at each stated probability by the isotonic curve, with the band of
    a calibrated grader, a panel for each grader; nothing without probabilities and a reference.
    """
    pairs = figures.rater_pairs(figures.select(_SHARE, src.ALL_BINARY))
    if not pairs:
        return []
    values: list[charts.Datum] = []
    shares: list[src.Figure] = []
    for raters in pairs[: charts.MAX_LISTED]:
        for share in figures.select(_SHARE, src.ALL_BINARY, raters):
            if stated := figures.by_key(share.key._replace(statistic=_STATED)):
                shares.append(share)
                low, probability, high = stated.exact
                fields = {"grader": charts.shorten(raters[1]), "units": share.n_units}
                fields |= {"stated": probability, "stated_row": stated.line}
                values.append(share.datum(**fields, stated_low=low, stated_high=high))

    def probability_title(share: src.Figure) -> str:
        stated = figures.by_key(share.key._replace(statistic=_STATED))
        return src.format_number(stated.exact.estimate, "threshold") if stated else ""

    rows = src.rows_of(shares, probability_title, lambda share: share.grader)
    return figures.chart(
        "reliability", values, figures.table("chart.reliability_table", rows),
        charts.omitted_note([grader for _, grader in pairs], {row.grader for row in shares}),
        reference=src.reference_title(pairs[0][0]), graders=charts.unique_values(values, "grader"),
    )  # fmt: skip
