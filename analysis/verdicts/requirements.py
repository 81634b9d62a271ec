"""Check what a grader must meet for a verdict, and decide on graders compared with a reference.

A *requirement* (`requirement.Requirement`) compares the one-sided bounds of a figure with a limit:
it is *met* if the bound towards the limit clears it, *broken* if the other bound lies beyond it,
else *open*. The functions here take:

- `case`: all evidence on one grader, with the study's rule, which has the limits.
- `view`: the part of it on one view of the grader's labels, such as binary ones.
- `bounds`: the rows of that view whose bounds decide on agreement with people.

A row that decides has in `row["deciding"]` the level of its bounds (their error rate, at this
interim analysis and the next) and what they are compared with: a `margin`, or another limit, `bar`.

The first part has the requirements for replacing annotators, `as_good_as_people` and `no_faults`,
each followed by those that it consists of. The second part is on graders compared with a
*reference*, one rater whose labels count as correct: `add_reference_rows` adds the figures,
`judge_against_reference` decides. `versions` has the changes between two versions of a grader.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenhand.analysis import requirement
from evenhand.analysis.bootstrap.bounds import ALPHA, influence
from evenhand.analysis.bootstrap.intervals import Deciding, Interval, share_bounds
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import Audit
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix
from evenhand.analysis.requirement import Bound, ClusterCounts, Reason, Requirement, Requirements
from evenhand.analysis.results import ResultRow, ResultRows, sample_of
from evenhand.analysis.statistics import reason_in_words, says, shown_apart
from evenhand.analysis.verdicts import evidence, wording
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    UNTUNED,
    Comparator,
    Comparison,
    grader_views,
)
from evenhand.analysis.verdicts.evidence import Answers, Bounds, VerdictEvidence, ViewEvidence
from evenhand.analysis.verdicts.wording import Decision, NextStep, because
from evenhand.analysis.writer import RubricView
from evenhand.study.settings.analysis import DecisionSettings, InjectionBounds
from evenhand.texts import written


def as_good_as_people(case: VerdictEvidence, bounds: Bounds) -> Requirements:
    """Require bounds that show agreement as good as human agreement, on a large enough sample."""
    difference, limit, rule = case.deciding_difference(bounds), -bounds.margin, case.rule
    people_kappa, min_kappa = bounds.people_kappa, case.people.min_kappa
    people_agree = people_kappa["low"] > 0 and people_kappa["low"] >= min_kappa
    large_enough = sample_is_enough(bounds.sample(difference), rule, case.noun)
    is_below = difference["high"] < limit and people_agree and requirement.all_met(large_enough)
    above_baseline, gross_errors = bounds.above_baseline, case.gross_errors

    # The factor by which the sample must grow to show that the grader is within the margin. For
    # these people the score test computed it, inf if no number of clusters would do. For people
    # like these, and for a grader below the margin, `Bound` computes it from the interval.
    known_growth = None
    if difference["statistic"] == evidence.NON_INFERIORITY and difference["estimate"] > limit:
        to_pass = bounds.clusters_to_pass
        known_growth = to_pass["estimate"] / difference["n_clusters"] if to_pass else math.inf

    def could_be_below() -> list[Reason]:
        figures = wording.comparison_in_words(case, bounds)
        chance = wording.chance_in_words(bounds.chance["estimate"])
        apart = shown_apart(-difference["low"], [bounds.margin])
        return [because("could_be_below", figures=figures, chance=chance, apart=apart)]

    def not_above_baseline() -> list[Reason]:
        # Kappa as it is reported; without such a row, how far it is above the baseline.
        kappa = case.present.kappa or above_baseline
        figures, to_beat = wording.mean_kappa(kappa, case.noun), case.best_baseline_kappa
        return [because("not_above_baseline", to_beat=to_beat, figures=figures)]

    return {
        "people_agree": Requirement(
            requirement.state_of(met=people_agree),
            why=lambda: disagreement_reasons(case, people_kappa),
            is_likely=people_kappa["estimate"] >= min_kappa,
            unsettled=bound_of(people_kappa, min_kappa, bounds.deciding, either_way=True),
        ),
        "within_margin": Requirement(
            requirement.state_of(met=difference["low"] > limit, broken=is_below),
            why=could_be_below,
            is_likely=difference["estimate"] > limit,
            unsettled=bound_of(difference, limit, bounds.deciding, known_growth=known_growth),
        ),
        "above_baselines": Requirement(
            requirement.state_of(met=above_baseline["low"] > 0, broken=above_baseline["high"] <= 0),
            why=not_above_baseline,
            is_likely=above_baseline["estimate"] > 0,
            unsettled=bound_of(above_baseline, 0.0, bounds.deciding),
        ),
        **large_enough,
        "answers": answers_enough(case.answers, rule.min_coverage, case.noun),
        **({"gross": gross_errors_are_rare(case, gross_errors)} if gross_errors else {}),
    }


def disagreement_reasons(case: VerdictEvidence, people_kappa: ResultRow) -> list[Reason]:
    """Return the reasons why human-human kappa is too low or uncertain."""
    min_kappa, sides = case.people.min_kappa, case.people.within_and_across
    is_likely = people_kappa["estimate"] >= min_kappa
    name = "people_may_not_agree" if is_likely else "people_hardly_agree"
    kappa, low = (shown_apart(people_kappa[end], [min_kappa]) for end in ("estimate", "low"))
    why = [because(name, kappa=kappa, low=low, least=min_kappa)]
    for within, across in sides:
        kappas = {"within": within["estimate"], "across": across["estimate"]}
        why.append(because("sides_differ", column=within["at"].rpartition("=")[0], **kappas))
    # A clearer rubric does not help where some people reverse labels, or sides differ.
    agree_within_side = any(within["estimate"] >= min_kappa for within, _ in sides)
    if not is_likely and not case.people.opposed and not agree_within_side:
        why.append(because("clearer_rubric"))
    return why


def sample_is_enough(sample: ClusterCounts, rule: DecisionSettings, noun: str) -> Requirements:
    """Require the rule's effective numbers of clusters, and of those with a minority label."""
    minority, effective = sample.minority, requirement.rounded_up(sample.effective)
    # In the texts, the numbers of the sample have older names, `rarer` and `worth`.
    minority_fields = {"rarer": minority, "least": rule.min_rarer, "noun": noun}
    cluster_fields = {"worth": effective, "least": rule.min_clusters, "noun": noun}
    return {
        "enough_minority": Requirement(
            requirement.state_of(met=minority >= rule.min_rarer),
            why=lambda: [because("too_few_rarer", **minority_fields)],
        ),
        "enough_clusters": Requirement(
            requirement.state_of(met=effective >= rule.min_clusters),
            why=lambda: [because("too_few_worth", **cluster_fields)],
        ),
    }


def answers_enough(
    answers: Answers,
    min_share: float,
    noun: str,
    section: Literal["because", "drift"] = "because",
    alpha: float = ALPHA,
) -> Requirement:
    """Require that the grader clearly labels at least `min_share` of the units assigned to it. The
    share's bounds are at the level `alpha`; sentences are from a `section` of the texts.
    """
    share, low, high = answers.share.estimate, answers.share.low, answers.share.high
    return Requirement(
        requirement.state_of(met=share == 1.0 or low >= min_share, broken=high < min_share),
        why=lambda: wording.unanswered_reasons(answers, min_share, noun, section),
        is_likely=share >= min_share,
        unsettled=Bound(low, share, high, limit=min_share, alpha=alpha, next_alpha=alpha),
    )


def gross_errors_are_rare(case: VerdictEvidence, row: ResultRow) -> Requirement:
    """Require few gross errors (share in `row`): labels far from every person's label."""
    allowed = case.rule.max_gross
    return Requirement(
        requirement.state_of(met=row["high"] <= allowed, broken=row["low"] > allowed),
        why=lambda: [wording.gross_errors_reason(case, row, allowed=allowed)],
        is_likely=row["estimate"] <= allowed,
        unsettled=Bound(  # of the share without gross errors, which has to lie above a limit
            low=1.0 - row["high"], estimate=1.0 - row["estimate"], high=1.0 - row["low"],
            limit=1.0 - allowed,
        ),
    )  # fmt: skip


def bound_of(
    row: ResultRow,
    limit: float,
    deciding: Deciding,
    *,
    either_way: bool = False,
    known_growth: float | None = None,
) -> Bound:
    """Return a row's bounds at the level in `deciding`, with other fields of `Bound`."""
    return Bound(
        low=row["low"], estimate=row["estimate"], high=row["high"], limit=limit,
        alpha=deciding.alpha, next_alpha=deciding.next_alpha,
        varies=not says(row["remarks"], "nothing_varies"),
        from_people=row["deciding"].from_people if row["deciding"] else 0.0,
        either_way=either_way, known_growth=known_growth,
    )  # fmt: skip


def no_faults(case: VerdictEvidence, view: ViewEvidence) -> Requirements:
    """Require that no audit found a fault that agreement with people does not show: a part of the
    sample in which the grader fails, a bias, a prompt injection that succeeds, unstable labels.
    """
    stability, unstable = case.wording_unstable, list[Reason]()
    if stability is not None:  # it is clearly too low
        interval = wording.interval_of(stability["low"], stability["high"])
        unstable = [because("wording", kappa=stability["estimate"], interval=interval)]
    return {
        "every_part": nothing_found(view.failing, lambda: wording.failing_part_reasons(case, view)),
        "no_bias": unbiased(view),
        "robust": robust(case.injection, case.rule.injection),
        "stable": nothing_found(unstable, lambda: unstable),
    }


def unbiased(view: ViewEvidence) -> Requirement:
    """Require that no bias was found beyond the bound."""
    reasons = [
        Reason(written("because.bias", fault=bias.fault), written("short.bias", fault=bias.short))
        for bias in view.biases
    ]
    return nothing_found(reasons, lambda: reasons)


def robust(audit: Audit | None, limits: InjectionBounds) -> Requirement:
    """Require that no text clearly manipulates the grader more often than is allowed."""
    if audit is None or not audit.beyond(limits):
        return nothing_found(None, list)
    return nothing_found(audit, lambda: wording.injection_reasons(audit, limits))


def nothing_found(fault: object, why: Callable[[], Sequence[Reason]]) -> Requirement:
    """Require that an audit found no `fault` (None or an empty list). More labels do not help."""
    return Requirement("broken" if fault else "met", why, is_likely=not fault)


# ---- Verdicts against a reference ----------------------------------------------------------------
# As one rater does not show human agreement, no verdict is that a grader can replace annotators:
# - *agrees with the reference*: all requirements are met, on enough clusters with each label.
# - *disagrees with the reference*: a requirement is clearly missed, labels are missing, or an
#   audit found a fault.
# - *inconclusive*: neither, with the number of further labels that would decide.
# Statistics of a grader and the reference, and names of three in sentences:
REFERENCE_KAPPA = "reference_kappa"
SENSITIVITY, SPECIFICITY = "reference_sensitivity", "reference_specificity"  # of binary labels
MINORITY = "reference_rarer_clusters"  # number of clusters with a minority label of the reference
EFFECTIVE = "reference_clusters_worth"  # effective number of clusters
STATISTICS = (REFERENCE_KAPPA, SENSITIVITY, SPECIFICITY, MINORITY, EFFECTIVE)
_NAMES = {REFERENCE_KAPPA: "kappa", SENSITIVITY: "sensitivity", SPECIFICITY: "specificity"}


@dataclass(frozen=True, kw_only=True)
class AgainstReference(ViewEvidence):
    """Evidence from comparing a view with the reference."""

    figures: tuple[ResultRow, ...]  # kappa; sensitivity and specificity if there is a binary label
    sizes: tuple[ResultRow, ResultRow]  # rows of `MINORITY` and `EFFECTIVE`

    @property
    def sample(self) -> ClusterCounts:
        """The clusters with labels of both the grader and the reference."""
        minority, effective = self.sizes
        return ClusterCounts(minority["n_clusters"], effective["estimate"], minority["estimate"])


def add_reference_rows(view: RubricView, rule: DecisionSettings, look: int, error: float) -> None:
    """Add rows comparing every grader with the reference (`STATISTICS`); at = "held_out" for
    thresholds tuned on other clusters. The rows of each view of a grader's labels are kept in
    `rows.evidence`. `error` is the probability of a wrong pass, of which interim analyses up to
    this `look` may spend a part.

    `low` and `high` are one-sided bounds at the level of the verdict, for all graders at once:
    those of kappa like those of `non_inferiority`, those of shares by `share_bounds`.
    """
    labels = view.labels.with_reference(rule.reference)  # which is their only human
    if not labels.humans or not labels.scored[:, labels.humans[0]].any():
        return
    jackknife = view.resamples.jackknife_of(labels.clusters[labels.scored[:, labels.humans[0]]])
    comparator, comparisons = Comparator(jackknife, margin=0.0, min_people=1), []
    for grader_view in grader_views(labels):
        comparison = comparator.compare(grader_view)
        if comparison is not None and np.isfinite(comparison.kappas).all():
            comparisons.append(comparison)
    influences = [influence(c.kappas) for c in comparisons if c.view.shares_level]
    level = evidence.shared_level(influences, len(comparisons), rule, look, error)
    for comparison in comparisons:
        if comparison.view.at != UNTUNED:  # which is compared only for its share of the level
            view.rows.evidence[comparison.view.key] = _add_comparison_rows(
                view.rows, comparison, labels, jackknife, level, rule
            )


def _add_comparison_rows(
    rows: ResultRows,
    comparison: Comparison,
    labels: LabelMatrix,
    jackknife: Resamples,
    level: Deciding,
    rule: DecisionSettings,
) -> AgainstReference:
    """Add the rows of one comparison: kappa and shares, with bounds at `level` (alpha 0: none)."""
    coded, grader, units = comparison.view.coded, comparison.view.grader, comparison.units
    (reference,) = coded.members("human")  # the only one
    key = comparison.view.row_key | {"rater_a": coded.raters[reference]}
    kappa = comparison.kappa_bounds.interval_or_remark(float(comparison.kappas[0]), level.alpha)
    kappa = kappa.as_deciding(replace(level, bar=rule.reference_kappa))
    figures = [rows.added(REFERENCE_KAPPA, kappa, comparison.counts, **key)]
    n_effective = Interval.point(comparison.sample.effective)
    effective = rows.added(EFFECTIVE, n_effective, comparison.counts, **key)
    mass = jackknife.mass[coded.clusters[units]]  # a unit may stand for several equal ones
    label_mass = np.bincount(coded.codes[units, reference], mass, minlength=coded.q)
    in_minority = units & (coded.codes[:, reference] != label_mass.argmax())
    n_minority = Interval.point(float(jackknife.count(coded.clusters, in_minority)[1]))
    minority = rows.added(MINORITY, n_minority, comparison.counts, **key)
    if labels.has_binary:
        binary = coded if coded.is_binary else labels.on_binary()
        key |= {"subset": binary.subset}
        affirmative, negative = 0, 1  # codes of the binary label
        for statistic, code, bar in (
            (SENSITIVITY, affirmative, rule.reference_sensitivity),
            (SPECIFICITY, negative, rule.reference_specificity),
        ):
            # Units with this label by the reference, and any by the grader; and those that agree.
            by_reference = (binary.codes[:, reference] == code) & binary.labelled[:, grader]
            by_both = by_reference & (binary.codes[:, grader] == code)
            share = Interval.undefined("no_labels" if level.alpha else "no_level")
            if by_reference.any() and level.alpha:
                masks = np.column_stack([by_both, by_reference])
                n_both, n_reference = jackknife.sums_by_cluster(binary.clusters, masks).T
                share = Interval(*share_bounds(n_both, n_reference, level.alpha))
            share = share.as_deciding(replace(level, bar=bar))
            counts = jackknife.count(binary.clusters, by_reference)
            figures.append(rows.added(statistic, share, counts, **key))
    return AgainstReference(figures=tuple(figures), sizes=(minority, effective))


def judge_against_reference(
    rows: ResultRows, case: VerdictEvidence
) -> tuple[Decision, list[list[str]], list[ResultRow]]:
    """Return the decision, the keys of the rows it is based on, and the row of kappa, if any."""
    # On categories; only if the grader gives none are its binary labels compared as they are.
    views = (rows.evidence.get((case.grader, subset, "")) for subset in ("all", BINARY_ALL))
    present: AgainstReference | None = next(filter(None, views), None)
    tuned: AgainstReference | None = rows.evidence.get((case.grader, BINARY_ALL, HELD_OUT))
    decision = _decide(case, present, tuned)
    keys = evidence.keys_of(
        *(row for view in (present, tuned) if view for row in (*view.figures, *view.sizes)),
        *(case.tuned.advised, case.answers.coverage),
        *(case.injection.rows(case.rule.injection) if case.injection else ()),
        *(bias.row for bias in case.present.biases),
    )
    view = present if decision.threshold is None else tuned
    return decision, keys, list(view.figures[:1]) if view else []


def _decide(
    case: VerdictEvidence, present: AgainstReference | None, tuned: AgainstReference | None
) -> Decision:
    """Decide on a grader's labels as they are (`present`), else at a `tuned` threshold."""
    fields = {**case.fields, "reference": case.rule.reference}
    inconclusive = Decision("inconclusive", written("verdict.inconclusive_reference", **fields))
    if present is None:
        return replace(inconclusive, reasons=[because("few_shared")])
    kappa = present.figures[0]
    if says(kappa["remarks"], "no_level"):
        return without_level(inconclusive, kappa["deciding"] or Deciding())
    requirements = dict(_agrees(case, present))
    if requirement.all_met(requirements):
        return _pass(case, present)
    advised = case.tuned.advised
    is_advised = advised is not None and says(advised["remarks"], "tuned")
    if tuned is not None and is_advised and requirement.all_met(_agrees(case, tuned)):
        return _pass(case, tuned, advised)
    # Reasons are given in the order of the requirements: missing labels first.
    answers_first = {"answers": requirements["answers"], **requirements}
    if against := requirement.reasons(answers_first, "broken"):
        return Decision("disagrees_with_reference", written("verdict.disagrees", **fields), against)
    sample, fault = present.sample, requirement.likely_fault(requirements)
    if sample.clusters < case.rule.min_clusters:  # the advice says so: it is no further reason
        del requirements["enough_clusters"]
    more = sample.more_to_settle(case.rule, requirements)
    advice = wording.advice(sample.clusters, more, case.noun, undecided=True, fault=fault)
    why = [*requirement.reasons(requirements, "open"), *advice]
    return replace(inconclusive, reasons=why, more=more or 0, promising=not fault)


def without_level(inconclusive: Decision, deciding: Deciding) -> Decision:
    """Give the reason why no part of the error rate is left to test the grader at this look."""
    if deciding.look:
        return replace(inconclusive, reasons=[because("looks_used_up")])
    step = NextStep(kind="look", number=0)
    return replace(inconclusive, reasons=[because("not_a_look")], step=step)


def _agrees(case: VerdictEvidence, view: AgainstReference) -> Requirements:
    """Require that a grader, on one view of its labels, agrees with the reference."""
    rule, noun = case.rule, case.noun
    large_enough = sample_is_enough(view.sample, rule, noun)
    is_large = requirement.all_met(large_enough)
    return {
        "no_bias": unbiased(case.present),
        "robust": robust(case.injection, rule.injection),
        **{row["statistic"]: _above_bar(row, noun, is_large=is_large) for row in view.figures},
        "answers": answers_enough(case.answers, rule.min_coverage, noun),
        **large_enough,
    }


def _above_bar(row: ResultRow, noun: str, *, is_large: bool) -> Requirement:
    """Require that a figure is clearly above its limit; broken only on a sample that `is_large`."""
    deciding = row["deciding"] or Deciding()
    bar = deciding.bar
    state = requirement.state_of(met=row["low"] > bar, broken=is_large and row["high"] < bar)
    return Requirement(
        state,
        why=lambda: [_figure_reason(row, noun, "bar_missed" if state == "broken" else "bar_open")],
        is_likely=row["estimate"] > bar,
        unsettled=bound_of(row, bar, deciding),
    )


def _pass(
    case: VerdictEvidence, view: AgainstReference, threshold: ResultRow | None = None
) -> Decision:
    """Decide that the grader agrees with the reference, at a tuned `threshold` if one is given."""
    value = threshold["estimate"] if threshold else None
    at = f" at threshold {value:.3g}" if value is not None else ""
    head = written("verdict.agrees", **case.fields, reference=case.rule.reference, at=at)
    figures = [_figure_reason(row, case.noun, "bars_cleared") for row in view.figures]
    if value is not None:
        short = written("short.at_threshold", threshold=value)
        figures = [replace(figure, short=short) for figure in figures]
    reasons = [*figures, Reason(written("because.reference_only")), Reason(written("limits.parts"))]
    holds_for: wording.HoldsFor = "" if value is None else "binary"
    return Decision("agrees_with_reference", head, reasons, holds_for=holds_for, threshold=value)


def _figure_reason(
    row: ResultRow, noun: str, short_name: Literal["bars_cleared", "bar_missed", "bar_open"]
) -> Reason:
    """Return a reason with a figure and its limit; `short_name` is of its words for a table."""
    deciding, name = row["deciding"] or Deciding(), _NAMES[row["statistic"]]
    if math.isnan(row["estimate"]):
        text = written("figures.bar_undefined", name=name, why=reason_in_words(row["remarks"]))
        short = written("short.undefined")
    else:
        bar = deciding.bar
        estimate, low = (shown_apart(row[end], [bar]) for end in ("estimate", "low"))
        fields = {"name": name, "estimate": estimate, "low": low, "bar": bar}
        interval = wording.interval_of(row["low"], row["high"], bar, alpha=deciding.alpha)
        text = written("figures.bar", **fields, interval=interval, sample=sample_of(row, noun))
        short = written(f"short.{short_name}", **fields)
    return Reason(written("because.reference_figures", figures=text[0].upper() + text[1:]), short)
