"""Requirements that a grader must meet to replace people, each held against its evidence; and the
verdict on graders against one rater whose labels count as right (a reference).

A requirement is added here, and nowhere else; those against a grader's baseline are in `drift`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.analysis.bootstrap.bounds import ALPHA, influence, level_of_look
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import Audit
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.requirement import (
    Bound,
    ClusterCounts,
    Reason,
    Requirement,
    Requirements,
    all_met,
    likely_fault,
    reasons,
    rounded_up,
    state_of,
)
from evenhand.analysis.results import ResultRow, ResultRows, sample_of
from evenhand.analysis.statistics import reason_in_words, says, shown_apart
from evenhand.analysis.verdicts import wording
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    UNTUNED,
    Comparator,
    Comparison,
    readings_of,
)
from evenhand.analysis.verdicts.evidence import (
    Answers,
    Bounds,
    VerdictEvidence,
    View,
    keys_of,
    shared_level,
)
from evenhand.analysis.verdicts.wording import Decision, NextStep, because
from evenhand.study.settings.analysis import DecisionSettings, InjectionBounds
from evenhand.texts import written


def as_good_as_people(case: VerdictEvidence, bounds: Bounds) -> Requirements:
    """Require what the bounds on one view of the grader's labels must show."""
    difference, margin, rule = case.deciding(bounds), -bounds.margin, case.rule
    people, above, least = bounds.people, bounds.above_baseline, case.people.least_kappa
    agree = people["low"] > 0 and people["low"] >= least
    counts, growth = sample_is_enough(bounds.sample(difference), rule, case.noun), None
    if difference is bounds.difference and difference["estimate"] > margin:
        needed = bounds.clusters_to_pass
        growth = needed["estimate"] / difference["n_clusters"] if needed else math.inf

    def hardly_agree() -> list[Reason]:
        name = "people_may_not_agree" if people["estimate"] >= least else "people_hardly_agree"
        kappa, low = (shown_apart(people[end], [least]) for end in ("estimate", "low"))
        why = [because(name, kappa=kappa, low=low, least=least)]
        for within, across in zip(case.people.sides[::2], case.people.sides[1::2], strict=True):
            apart = {"within": within["estimate"], "across": across["estimate"]}
            column = within["at"].rpartition("=")[0]
            why.append(because("sides_differ", column=column, **apart))
        # A clearer rubric does not help where some of them label the other way round, or by side.
        by_side = any(row["estimate"] >= least for row in case.people.sides[::2])
        if name == "people_hardly_agree" and not case.people.opposed and not by_side:
            why.append(because("clearer_rubric"))
        return why

    def could_be_below() -> list[Reason]:
        fields = {
            "figures": wording.compared(case, bounds),
            "chance": wording.percent(bounds.chance["estimate"]),
            "apart": shown_apart(-difference["low"], [bounds.margin]),
        }
        return [because("could_be_below", **fields)]

    return {
        "people_agree": Requirement(
            state_of(met=agree),
            why=hardly_agree,
            is_likely=people["estimate"] >= least,
            unsettled=bound_of(people, least, bounds.level, either_way=True),
        ),
        "within_margin": Requirement(
            state_of(
                met=difference["low"] > margin,
                broken=difference["high"] < margin and agree and all_met(counts),
            ),
            why=could_be_below,
            is_likely=difference["estimate"] > margin,
            unsettled=bound_of(difference, margin, bounds.level, known_growth=growth),
        ),
        "above_baselines": Requirement(
            state_of(met=above["low"] > 0, broken=above["high"] <= 0),
            why=lambda: [baseline(case, case.present.kappa or above, "not_above_baseline")],
            is_likely=above["estimate"] > 0,
            unsettled=bound_of(above, 0.0, bounds.level),
        ),
        **counts,
        "answers": answers_enough(case.answers, rule.min_coverage, case.noun),
        **({} if case.gross is None else {"gross": gross_errors_are_rare(case, case.gross)}),
    }


def baseline(
    case: VerdictEvidence,
    kappa: ResultRow,
    name: Literal["not_above_baseline", "no_better_than_baseline"],
) -> Reason:
    """Reason that the grader is not clearly better than a baseline, or no better."""
    figures = wording.mean_kappa(kappa, case.noun)
    return because(name, to_beat=case.best_baseline_kappa, figures=figures)


def gross_errors_are_rare(case: VerdictEvidence, row: ResultRow) -> Requirement:
    """Require that gross errors are clearly no more frequent than is allowed."""
    most = case.rule.max_gross
    return Requirement(
        state_of(met=row["high"] <= most, broken=row["low"] > most),
        why=lambda: [wording.gross_errors(case, row, allowed=most)],
        is_likely=row["estimate"] <= most,
        unsettled=Bound(
            1.0 - row["high"], 1.0 - row["estimate"], 1.0 - row["low"], 1.0 - most, ALPHA, ALPHA
        ),
    )


def no_faults(case: VerdictEvidence, view: View) -> Requirements:
    """Require that no audit found what agreement with people does not show: a part of the sample in
    which the grader fails, a bias, a text that manipulates it, a label that changes with the
    rubric's wording.
    """
    unstable = case.wording_unstable

    def moves() -> list[Reason]:
        if unstable is None:
            return []
        interval = wording.interval_of(unstable["low"], unstable["high"])
        return [because("wording", kappa=unstable["estimate"], interval=interval)]

    return {
        "every_part": nothing_found(view.failing, lambda: wording.in_parts(case, view)),
        "no_bias": unbiased(view),
        "robust": robust(case.injection, case.rule.injection),
        "stable": nothing_found(unstable, moves),
    }


def sample_is_enough(sample: ClusterCounts, rule: DecisionSettings, noun: str) -> Requirements:
    """Require clusters in which a person chose another category than the commonest, and clusters
    that carry the information of so many equal ones.
    """
    minority, effective = sample.minority, rounded_up(sample.effective)
    few = {"rarer": minority, "least": rule.min_rarer, "noun": noun}
    unequal = {"worth": effective, "least": rule.min_clusters, "noun": noun}
    return {
        "both_kinds": Requirement(
            state_of(met=minority >= rule.min_rarer), lambda: [because("too_few_rarer", **few)]
        ),
        "enough_clusters": Requirement(
            state_of(met=effective >= rule.min_clusters),
            lambda: [because("too_few_worth", **unequal)],
        ),
    }


def answers_enough(
    answers: Answers,
    least: float,
    noun: str,
    room: Literal["because", "drift"] = "because",
    alpha: float = ALPHA,
) -> Requirement:
    """Require that a grader clearly answers at `least` this share of the units, whose bounds are at
    the level `alpha`; the sentences are those of a `room` of the texts.
    """
    share, fewest, most = answers.share
    return Requirement(
        state_of(met=share == 1.0 or fewest >= least, broken=most < least),
        why=lambda: wording.unanswered(answers, least, noun, room),
        is_likely=share >= least,
        unsettled=Bound(fewest, share, most, least, alpha, alpha),
    )


def unbiased(view: View) -> Requirement:
    """Require that no bias was found beyond the bound."""
    return nothing_found(
        view.biases,
        lambda: [
            replace(because("bias", fault=e.fault), short=written("short.bias", fault=e.short))
            for e in view.biases
        ],
    )


def robust(audit: Audit | None, bounds: InjectionBounds) -> Requirement:
    """Require that no text clearly manipulates the grader more often than is allowed."""
    failed = audit if audit is not None and audit.fails(bounds) else None
    return nothing_found(failed, lambda: wording.injected(failed, bounds) if failed else [])


def nothing_found(fault: object, why: Callable[[], Sequence[Reason]]) -> Requirement:
    """Require that an audit found no `fault` (None, or none in a list); more labels remove none."""
    return Requirement("broken" if fault else "met", why, is_likely=not fault)


def bound_of(
    row: ResultRow,
    limit: float,
    level: Deciding,
    *,
    either_way: bool = False,
    known_growth: float | None = None,
) -> Bound:
    """Return the bound of a row with all that its advice needs: the levels and what varies."""
    return Bound(
        row["low"],
        row["estimate"],
        row["high"],
        limit,
        level.alpha,
        level.next_alpha,
        varies=not says(row["remarks"], "nothing_varies"),
        of_people=row["deciding"].from_people if row["deciding"] else 0.0,
        either_way=either_way,
        known_growth=known_growth,
    )


# Against one rater whose labels count as right: an expert, gold answers, a consensus.
#
# One person does not show how far people agree, so no verdict can say that a grader may replace
# people. It can say that the grader agrees with this one, by bars set with the reference. Decided
# from bounds:
#
# - *agrees with the reference*: all bars are cleared, on clusters enough of both kinds.
# - *disagrees with the reference*: a bar is clearly missed, or answers are missing, or the audit
#   found that it errs to one side.
# - *inconclusive*: neither; with how many more labels would tell.

KAPPA = "reference_kappa"
SENSITIVITY, SPECIFICITY = "reference_sensitivity", "reference_specificity"
MINORITY = "reference_rarer_clusters"
EFFECTIVE = "reference_clusters_worth"
STATISTICS = (KAPPA, SENSITIVITY, SPECIFICITY, MINORITY, EFFECTIVE)
"""All that `add_reference_rows` adds."""


def add_reference_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    rule: DecisionSettings,
    look: int = 1,
    error: float = ALPHA,
) -> None:
    """Add rows comparing every grader with the reference, and at = "held_out" for thresholds tuned
    on other clusters: `reference_kappa`, and where there is a binary label
    `reference_sensitivity` and `reference_specificity`; `reference_rarer_clusters` counts the
    clusters in which the reference chose another category than its commonest,
    `reference_clusters_worth` is their effective number. Those of each view of a grader's labels
    are kept in `rows.compared`.

    `low` and `high` are one-sided bounds at the level of the verdict: kappa's like those of
    `non_inferiority` and for all graders at once, the shares' by Clopper & Pearson (1934) on the
    effective sample size. A pass needs all three bars cleared, so the three need no correction for
    multiple tests.
    """
    alone = labels.with_reference(rule.reference)
    if not alone.humans or not alone.scored[:, alone.humans[0]].any():
        return
    left_out = resamples.left_out(alone.clusters[alone.scored[:, alone.humans[0]]])
    comparator, found = Comparator(left_out, margin=0.0, least=1), []
    for reading in readings_of(alone):
        compared = comparator.compared(reading) if reading.at != UNTUNED else None
        if compared is not None and np.isfinite(compared.kappas).all():
            found.append(compared)
    alpha = level_of_look(look, rule.looks, error)
    level = shared_level(
        [influence(match.kappas) for match in found], len(found), rule, look, error
    )
    for comparison in found:
        view = _add_bars(rows, comparison, alone, left_out, alpha, level, rule)
        rows.compared[comparison.reading.view] = view


@dataclass(frozen=True)
class AgainstReference(View):
    """One view of a grader's labels against the reference: the rows that have a bar to clear (their
    `deciding.bar`), and those of the sample's size, `MINORITY` and `EFFECTIVE`.
    """

    bars: tuple[ResultRow, ...] = ()
    sizes: tuple[ResultRow, ...] = ()

    @property
    def sample(self) -> ClusterCounts:
        """The sample with both labels."""
        minority, effective = self.sizes
        return ClusterCounts(minority["n_clusters"], effective["estimate"], minority["estimate"])


def _add_bars(
    rows: ResultRows,
    compared: Comparison,
    labels: LabelMatrix,
    left_out: Resamples,
    alpha: float,
    level: Deciding,
    rule: DecisionSettings,
) -> AgainstReference:
    """Add the rows of a grader that was compared with the reference, the only human there is, on
    one view of `labels`; the shares' bounds are at `alpha`.
    """
    coded, grader, both = compared.reading.coded, compared.reading.grader, compared.units
    (reference,) = coded.members("human")
    about = compared.reading.key | {"rater_a": coded.raters[reference]}
    used = np.bincount(coded.codes[both, reference], minlength=coded.q)
    other = both & (coded.codes[:, reference] != used.argmax())
    minority = Interval.point(float(left_out.count(coded.clusters, other)[1]))
    effective = Interval.point(compared.sample.effective)
    kappa = compared.above_baseline.bounded(float(compared.kappas[0]), level.alpha)
    kappa = kappa.held(replace(level, bar=rule.reference_kappa))
    bars = [rows.added(KAPPA, kappa, compared.counts, **about)]
    worth = rows.added(EFFECTIVE, effective, compared.counts, **about)
    sizes = rows.added(MINORITY, minority, compared.counts, **about), worth
    if labels.has_verdicts:
        verdicts = coded if coded.is_binary else labels.on_verdicts()
        about |= {"subset": verdicts.subset}
        for name, code, bar in (
            (SENSITIVITY, 0, rule.reference_sensitivity),
            (SPECIFICITY, 1, rule.reference_specificity),
        ):
            whole = (verdicts.codes[:, reference] == code) & verdicts.labelled[:, grader]
            part = whole & (verdicts.codes[:, grader] == code)
            share = Interval.undefined("no_labels")
            if whole.any() and alpha:
                sums = left_out.by_cluster(verdicts.clusters, np.column_stack([part, whole]))
                share = Interval(*share_bounds(sums[:, 0], sums[:, 1], alpha))
            inside = left_out.count(verdicts.clusters, whole)
            bars.append(rows.added(name, share.held(replace(level, bar=bar)), inside, **about))
    return AgainstReference(bars=tuple(bars), sizes=sizes)


def judge_against_reference(
    rows: ResultRows, case: VerdictEvidence
) -> tuple[Decision, list[list[str]], list[ResultRow]]:
    """The decision, the keys of the rows it rests on, and the grader's kappa with the reference,
    where it has one.
    """
    case = replace(case, answers=Answers(case.answers.coverage))
    views = (rows.compared.get((case.grader, subset, "")) for subset in ("all", BINARY_ALL))
    present: AgainstReference | None = next(filter(None, views), None)
    tuned: AgainstReference | None = rows.compared.get((case.grader, BINARY_ALL, HELD_OUT))
    decision = _decide(case, present, tuned)
    keys = keys_of(
        *(row for view in (present, tuned) if view for row in (*view.bars, *view.sizes)),
        *(case.tuned.advised, case.answers.coverage),
        *(case.injection.rows(case.rule.injection) if case.injection else ()),
        *(bias.row for bias in case.present.biases),
    )
    deciding = present if decision.threshold is None else tuned
    return decision, keys, list(deciding.bars[:1]) if deciding else []


def _agrees(case: VerdictEvidence, view: AgainstReference) -> Requirements:
    """Require that a grader, on one view of its labels, agrees with the reference."""
    rule, noun = case.rule, case.noun
    counts = sample_is_enough(view.sample, rule, noun)
    return {
        "no_bias": unbiased(case.present),
        "robust": robust(case.injection, rule.injection),
        **{row["statistic"]: _above_bar(row, noun, decides=all_met(counts)) for row in view.bars},
        "answers": answers_enough(case.answers, rule.min_coverage, noun),
        **counts,
    }


def _level_of(row: ResultRow) -> Deciding:
    """The level of a row's bounds, and the bar that it has to clear."""
    return row["deciding"] or Deciding()


def _above_bar(row: ResultRow, noun: str, *, decides: bool) -> Requirement:
    """Require that a figure is clearly above its bar; below it, that `decides` on a sample that is
    large enough.
    """
    bar = _level_of(row).bar
    state = state_of(met=row["low"] > bar, broken=decides and row["high"] < bar)
    return Requirement(
        state,
        why=lambda: [_figure(row, noun, "bar_missed" if state == "broken" else "bar_open")],
        is_likely=row["estimate"] > bar,
        unsettled=bound_of(row, bar, _level_of(row)),
    )


def _decide(
    case: VerdictEvidence, view: AgainstReference | None, tuned: AgainstReference | None
) -> Decision:
    fields = {**case.fields, "reference": case.rule.reference}
    unclear = Decision("inconclusive", written("verdict.inconclusive_reference", **fields))
    if view is None:
        return replace(unclear, reasons=[because("few_shared")])
    if says(view.bars[0]["remarks"], "no_level"):
        step = NextStep(kind="look", number=0)
        return replace(unclear, reasons=[because("not_a_look")], step=step)
    held = dict(_agrees(case, view))
    if all_met(held):
        return _pass(case, view)
    advised = case.tuned.advised
    is_advised = advised is not None and says(advised["remarks"], "tuned")
    if tuned is not None and is_advised and all_met(_agrees(case, tuned)):
        return _pass(case, tuned, advised)
    if against := reasons({"answers": held["answers"], **held}, "broken"):
        return Decision("disagrees_with_reference", written("verdict.disagrees", **fields), against)
    sample, fails = view.sample, likely_fault(held)
    if sample.clusters < case.rule.min_clusters:  # the advice has it
        del held["enough_clusters"]
    more = sample.more_to_settle(case.rule, held)
    advice = wording.advice(sample.clusters, more, case.noun, undecided=True, fails=fails)
    why = [*reasons(held, "open"), *advice]
    return replace(unclear, reasons=why, more=more or 0, promising=not fails)


def _pass(
    case: VerdictEvidence, view: AgainstReference, threshold: ResultRow | None = None
) -> Decision:
    at = f" at threshold {threshold['estimate']:.3g}" if threshold else ""
    tuned = threshold["estimate"] if threshold else None
    head = written("verdict.agrees", **case.fields, reference=case.rule.reference, at=at)
    figures = [_figure(row, case.noun, "bars_cleared") for row in view.bars]
    if tuned is not None:
        short = written("short.at_threshold", threshold=tuned)
        figures = [replace(figure, short=short) for figure in figures]
    limits = [Reason(written("because.reference_only")), Reason(written("limits.parts"))]
    holds_for: wording.HoldsFor = "" if tuned is None else "binary"
    return Decision("agrees_with_reference", head, [*figures, *limits], 0, holds_for, tuned)


_NAMES = {KAPPA: "kappa", SENSITIVITY: "sensitivity", SPECIFICITY: "specificity"}


def _figure(
    row: ResultRow, noun: str, short: Literal["bars_cleared", "bar_missed", "bar_open"]
) -> Reason:
    """A figure with its bar, as a reason, and `short` in few words."""
    level, name = _level_of(row), _NAMES[row["statistic"]]
    if math.isnan(row["estimate"]):
        text = written("figures.bar_undefined", name=name, why=reason_in_words(row["remarks"]))
        words = written("short.undefined")
    else:
        fields = {
            "name": name,
            "estimate": shown_apart(row["estimate"], [level.bar]),
            "low": shown_apart(row["low"], [level.bar]),
            "bar": level.bar,
        }
        ends = row["low"], row["high"]
        text = written(
            "figures.bar",
            **fields,
            interval=wording.interval_of(*ends, level.bar, alpha=level.alpha),
            sample=sample_of(row, noun),
        )
        words = written(f"short.{short}", **fields)
    return Reason(written("because.reference_figures", figures=text[0].upper() + text[1:]), words)
