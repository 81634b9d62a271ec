"""Collect the evidence that a verdict on a grader is based on.

1. `add_deciding_rows` compares every grader with people (`verdicts.comparison`), and adds the rows
   that decide: differences and kappas with one-sided bounds. The labels that a grader is compared
   on are a *view*: categories, binary labels, or binary labels at a threshold tuned on other
   clusters (see the table of `comparison.grader_views`).
2. `evidence_on` collects these and other rows in the `VerdictEvidence` on one grader. Its parts
   come first in the module: `Bounds`, `ViewEvidence`, `People`, `Answers`.

A row is identified by its statistic, two raters ("humans" are all people, "" is nobody), the
`subset` of labels ("all", or `BINARY_ALL` for binary labels) and `at`, for several rows of one
statistic. `row["deciding"]` has the level of a row's bounds, and what these are compared with: a
`margin` for differences, a `bar` for other statistics (`Deciding`).

A verdict tests the null hypothesis that the grader lies further below people than the margin.
Variances are computed under this hypothesis. The level of the bounds is corrected for all looks
(interim analyses) at the study and for all graders of the rubric (`analysis.bootstrap.bounds`).
Bounds are for these people and clusters like these; with three people or more also for people like
these, with the jackknife's variance over people.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Self

import numpy as np
from scipy.special import betaincinv

from evenhand.analysis.agreement.coefficients import kappa_on_scale
from evenhand.analysis.agreement.groups import REWORDED, STABILITY
from evenhand.analysis.agreement.pairs import deciding_kappa
from evenhand.analysis.bias.audit import Finding, flagged
from evenhand.analysis.bootstrap.bounds import (
    ALPHA,
    level_of_look,
    reach,
    reach_over_people,
    simultaneous_level,
    standard_error,
)
from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Deciding, Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.injection import Audit, audits
from evenhand.analysis.labels.matrix import BINARY, BINARY_ALL, Copy, LabelMatrix, UnitColumn
from evenhand.analysis.people import annotators
from evenhand.analysis.people.comparison import CEILING
from evenhand.analysis.people.disagreements import COVERAGE
from evenhand.analysis.people.slices import SIDE_KAPPA
from evenhand.analysis.requirement import ClusterCounts, level_for_power
from evenhand.analysis.results import BASELINES, ResultRow, ResultRows, key_of
from evenhand.analysis.statistics import Note, Remark, says
from evenhand.analysis.thresholds.tuning import ACTIVE_THRESHOLD, CEILING_HELD_OUT, KAPPA_HELD_OUT
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.verdicts.comparison import (
    HELD_OUT,
    TUNED_FOR,
    UNTUNED,
    Comparator,
    Comparison,
    GraderView,
    grader_views,
    with_missing_as_wrong,
)
from evenhand.study.settings.analysis import DecisionSettings
from evenhand.texts import written

# Statistics that `add_deciding_rows` adds. Some are stored under older words.
NON_INFERIORITY = "non_inferiority"  # grader-human minus human-human kappa, for these people
NON_INFERIORITY_PEOPLE = "non_inferiority_people"  # the same, for people like these
IF_WRONG = "non_inferiority_unscored_as_disagreement"  # one of both, with missing labels as wrong
PART = "part_non_inferiority"  # the difference in a part of the sample
ABOVE_BASELINE = "kappa_above_baseline"  # grader-human kappa minus the better baseline's
PEOPLE_KAPPA = "people_kappa"  # human-human kappa
MINORITY_CLUSTERS = "rarer_clusters"  # effective number of clusters with a minority label
EFFECTIVE_CLUSTERS = "clusters_worth"  # effective number of clusters
CHANCE = "chance_within_margin"  # probability that the grader is within the margin
CLUSTERS_NEEDED = "clusters_to_pass"  # number of clusters that would show that it is
STATISTICS = (
    NON_INFERIORITY, NON_INFERIORITY_PEOPLE, IF_WRONG, PART, ABOVE_BASELINE, PEOPLE_KAPPA,
    MINORITY_CLUSTERS, EFFECTIVE_CLUSTERS, CHANCE, CLUSTERS_NEEDED,
)  # fmt: skip
_RECOMMENDED = "threshold_recommended"  # a statistic of `thresholds.tuning`


@dataclass(frozen=True)
class Bounds:
    """Rows with the bounds on a grader compared with people, as `add_deciding_rows` adds them."""

    difference: ResultRow  # NON_INFERIORITY
    like_these: ResultRow | None  # NON_INFERIORITY_PEOPLE; None for fewer than three people
    above_baseline: ResultRow
    people_kappa: ResultRow
    minority_clusters: ResultRow
    effective_clusters: ResultRow
    chance: ResultRow
    clusters_to_pass: ResultRow | None  # None if it is shown already, or no number would show it
    if_missing_wrong: ResultRow | None = None  # IF_WRONG; None if no label is missing

    @property
    def rows(self) -> tuple[ResultRow | None, ...]:
        """All rows of the bounds."""
        return tuple(vars(self).values())

    def sample(self, difference: ResultRow) -> ClusterCounts:
        """Return the size of the sample that a difference was computed on."""
        effective = self.effective_clusters["estimate"]
        minority = self.minority_clusters["estimate"]
        return ClusterCounts(difference["n_clusters"], effective, minority)

    @property
    def passes_if_missing_wrong(self) -> bool:
        """True if the grader would be within the margin with every missing label wrong."""
        row = self.if_missing_wrong
        return row is None or row["low"] > -margin_of(row)

    @property
    def margin(self) -> float:
        """The largest permitted gap of the grader's kappa below people's."""
        return margin_of(self.difference)

    @property
    def deciding(self) -> Deciding:
        """The level of the bounds at this look and at the next, and the margin."""
        return self.difference["deciding"] or Deciding()

    @property
    def has_no_level(self) -> bool:
        """True if no part of the error rate is left for this look, or this analysis is no look."""
        return says(self.difference["remarks"], "no_level")


@dataclass(frozen=True)
class ViewEvidence:
    """A grader compared with people on one view of its labels."""

    difference: ResultRow | None = None  # kappa with people minus human-human kappa, as reported
    kappa: ResultRow | None = None  # mean kappa with people, as reported
    bounds: Bounds | None = None  # what decides
    biases: tuple[Finding, ...] = ()
    parts: tuple[ResultRow, ...] = ()  # `PART`, for each tested part of the sample

    @property
    def failing(self) -> list[ResultRow]:
        """Rows of the parts in which the grader is clearly below people."""
        return [row for row in self.parts if row["high"] < -margin_of(row)]


@dataclass(frozen=True)
class TunedEvidence(ViewEvidence):
    """A grader's binary labels at thresholds that were tuned on other clusters.

    Bounds, parts and biases are always of these held-out labels. If the study uses a tuned
    threshold (`active`), the grader's binary labels as they are have it already: `difference` and
    `kappa` are then the rows of these. Else they are rows of the held-out labels, too.
    """

    advised: ResultRow | None = None  # threshold that tuning advises, with a remark (`advises`)
    active: ResultRow | None = None  # tuned threshold in use
    present_is_tuned: bool = False  # `VerdictEvidence.present` is on binary labels at `active`

    @classmethod
    def of(cls, rows: ResultRows, grader: str, rule: DecisionSettings, *, is_binary: bool) -> Self:
        """Collect the evidence. With `is_binary`, `present` is on binary labels, not categories."""

        def binary_row(statistic: str, at: str = "") -> ResultRow | None:
            return rows.get(statistic, "humans", grader, BINARY_ALL, at)

        active = rows.get(ACTIVE_THRESHOLD, "", grader, BINARY_ALL)
        if active is not None:
            difference, kappa = binary_row(CEILING), binary_row("cohen_kappa")
        else:
            difference = binary_row(CEILING_HELD_OUT, TUNED_FOR)
            kappa = binary_row(KAPPA_HELD_OUT, TUNED_FOR)
        held_out = rows.evidence.get((grader, BINARY_ALL, HELD_OUT), ViewEvidence())
        return cls(
            difference=difference, kappa=kappa, bounds=held_out.bounds, parts=held_out.parts,
            biases=tuple(flagged(rows, grader, rule.bias_bound, held_out=True)),
            advised=binary_row(_RECOMMENDED, TUNED_FOR), active=active,
            present_is_tuned=active is not None and is_binary,
        )  # fmt: skip

    @property
    def threshold(self) -> ResultRow | None:
        """The tuned threshold in use, or else the advised one."""
        return self.active or self.advised

    def advises(self, *kinds: str) -> bool:
        """Return True if tuning advises one of these kinds: tuned, default, not_identifiable."""
        if self.active is not None:  # the advice was taken
            return "tuned" in kinds
        remarks = self.advised["remarks"] if self.advised is not None else ()
        return any(says(remarks, kind) for kind in kinds)


@dataclass(frozen=True)
class People:
    """The people that a grader is compared with."""

    number: int  # without those in `copied`
    copied: tuple[tuple[str, float], ...] = ()  # whose labels the grader repeats, on which share
    copied_rows: tuple[ResultRow | None, ...] = ()  # the grader's agreement with those in `copied`
    min_kappa: float = 0.0  # human-human kappa below which no grader can be evaluated
    share_units: bool = True  # some unit has labels of two people
    opposed: tuple[annotators.Opposed, ...] = ()  # who reverse or exchange labels
    within_and_across: tuple[tuple[ResultRow, ResultRow], ...] = ()
    """Kappa within and across sides, for each column that divides people into sides that differ."""

    @classmethod
    def of(
        cls, rows: ResultRows, labels: LabelMatrix, copies: list[Copy], min_kappa: float
    ) -> Self:
        """Collect the evidence on people; `copies` are the grader's copies of raters' labels."""
        names, shares = labels.raters, {copy.duplicate_of: copy.share for copy in copies}
        pairs = ((names[copy.duplicate_of], names[copy.rater]) for copy in copies)
        # `add_side_kappa_rows` adds two rows for each column: within sides, then across them.
        sides = [row for row in rows.rows.values() if row["statistic"] == SIDE_KAPPA]
        return cls(
            number=len(set(labels.humans) - set(shares)),
            copied=tuple((names[n], share) for n, share in shares.items() if n in labels.humans),
            copied_rows=tuple(rows.get("observed_agreement", *pair) for pair in pairs),
            min_kappa=min_kappa,
            share_units=bool((labels.scored[:, labels.humans].sum(axis=1) >= 2).any()),
            opposed=tuple(annotators.opposed_in(rows)),
            within_and_across=tuple(zip(sides[::2], sides[1::2], strict=True)),
        )


@dataclass(frozen=True)
class Answers:
    """The units that a grader labelled, of those assigned to it."""

    coverage: ResultRow | None = None  # the share of these units
    scored: ResultRow | None = None  # agreement with people on the units that it labelled

    @property
    def share(self) -> Interval:
        """The share that the grader labelled; 0 where no unit was assigned."""
        if self.coverage is None:
            return Interval(0.0, 0.0, 0.0)
        share, low, high = (self.coverage[end] for end in ("estimate", "low", "high"))
        return Interval(share, share, share) if math.isnan(low) else Interval(share, low, high)


@dataclass(frozen=True)
class VerdictEvidence:
    """The evidence on one grader."""

    rubric: str
    grader: str
    rule: DecisionSettings  # what a grader must meet
    noun: str  # the word for a cluster
    people: People
    answers: Answers
    present: ViewEvidence  # on the labels as they are: categories, or binary labels if it has none
    tuned: TunedEvidence  # on binary labels at tuned thresholds
    binary: ResultRow | None = None  # difference on binary labels, if categories decide
    is_binary_only: bool = False  # binary labels decide, but the rubric has more categories
    baselines: tuple[ResultRow, ...] = ()  # kappas of the baselines with people
    wording_unstable: ResultRow | None = None  # stability across wordings, if clearly too low
    injection: Audit | None = None
    identical_graders: tuple[str, ...] = ()  # graders with the same labels
    recoded: tuple[ResultRow, ...] = ()  # kappas of its recoded labels (reversed, ...), best first
    selective: tuple[ResultRow, ResultRow] | None = None
    """Agreement on units with few labels and with more, if labels decided which units got more."""
    gross_errors: ResultRow | None = None  # share of gross errors, on an ordered scale
    points: str = "points"  # the name of the scale's steps

    @property
    def fields(self) -> dict[str, str]:
        """Fields of the verdict's first sentence."""
        people = written("whom.like_these" if self.is_for_people_like_these else "whom.these")
        place = f" on {self.rubric}" if self.rubric else ""
        return {"grader": self.grader, "whom": people, "place": place}

    @property
    def is_for_people_like_these(self) -> bool:
        """True if the verdict is about people like these, False if about these people."""
        return self.rule.scope == "like_these"

    @property
    def best_baseline_kappa(self) -> float:
        """The better baseline's kappa."""
        return max((row["estimate"] for row in self.baselines), default=math.nan)

    @property
    def has_too_few_people(self) -> bool:
        """True if there are too few people for the scope of the rule."""
        return self.people.number < (3 if self.is_for_people_like_these else 2)

    def deciding_difference(self, bounds: Bounds) -> ResultRow:
        """Return the difference by the rule's scope: for these people, or for people like these."""
        return (bounds.like_these if self.is_for_people_like_these else None) or bounds.difference

    @property
    def keys(self) -> list[list[str]]:
        """The keys of the rows that the verdict is based on."""
        present, tuned, answers = self.present, self.tuned, self.answers
        return keys_of(
            present.difference, present.kappa, *(present.bounds.rows if present.bounds else ()),
            self.binary, answers.coverage, answers.scored,
            *(tuned.bounds.rows if tuned.bounds else ()),
            tuned.difference, tuned.kappa, tuned.advised, tuned.active,
            *self.baselines, *(bias.row for bias in present.biases),
            *(self.injection.rows(self.rule.injection) if self.injection else ()),
            self.wording_unstable, *present.parts, *tuned.parts, *self.recoded,
            *(self.selective or ()), self.gross_errors, *self.people.copied_rows,
            *(row for person in self.people.opposed for row in (person.as_given, person.recoded)),
            *chain.from_iterable(self.people.within_and_across),
        )  # fmt: skip


def margin_of(row: ResultRow) -> float:
    """Return the margin of a row with a difference from human agreement; NaN if not tested."""
    return row["deciding"].margin if row["deciding"] else math.nan


def part_name(row: ResultRow) -> str:
    """Return the name of a row's part of the sample."""
    return row["subset"].removesuffix(BINARY)


def keys_of(*rows: ResultRow | None) -> list[list[str]]:
    """Return the keys of rows (`RESULTS_KEY`), each once."""
    return [list(key) for key in dict.fromkeys(key_of(row) for row in rows if row is not None)]


def evidence_on(
    rows: ResultRows, labels: LabelMatrix, grader: str, rule: DecisionSettings, noun: str
) -> VerdictEvidence:
    """Collect the evidence on a grader, from the rows of `add_deciding_rows` and of other
    statistics. Its labels as they are (`present`) are categories, or binary if it gives none.
    """
    kappa, subset = labels.scale.deciding_kappa, "all"
    difference = rows.get(CEILING, "humans", grader)
    binary = rows.get(CEILING, "humans", grader, BINARY_ALL)
    is_binary = binary is not None and (difference is None or difference["n_units"] == 0)
    if is_binary:  # the grader gives no categories: its binary labels decide
        kappa, subset = "cohen_kappa", BINARY_ALL
        difference, binary = binary, None

    def row_with_people(statistic: str, at: str = "") -> ResultRow | None:
        """The row of the grader with people, on the labels that the verdict is on."""
        return rows.get(statistic, "humans", grader, subset, at)

    def rows_with(statistic: str, subset: str) -> list[ResultRow]:
        """The grader's rows of a statistic with any raters and any `at`."""
        with_name = (row for row in rows.rows.values() if row["statistic"] == statistic)
        return [row for row in with_name if (row["rater_b"], row["subset"]) == (grader, subset)]

    compared = rows.evidence.get((grader, subset, ""), ViewEvidence())
    biases = tuple(flagged(rows, grader, rule.bias_bound))
    present = replace(compared, difference=difference, kappa=row_with_people(kappa), biases=biases)
    copies = [copy for copy in labels.copies if copy.rater == labels.raters.index(grader)]
    repeated = [copy.duplicate_of for copy in copies]
    min_kappa = _min_people_kappa(rows, labels, rule, is_binary=is_binary)
    wordings = rows.get(STABILITY, grader, "", "all", REWORDED)
    is_unstable = wordings is not None and wordings["high"] < rule.min_stability
    # If labels decided which units got more, this statistic has two rows at numbers of labels, such
    # as "1" and "2+", in one subset. Its other rows are at a class of item, such as "unanimous".
    by_n_labels = (
        [row for row in rows_with(annotators.BY_LABELS, name) if row["at"][0].isdigit()]
        for name in ("all", BINARY_ALL)
    )
    few_and_more = [(pair[0], pair[1]) for pair in by_n_labels if len(pair) == 2]
    recoded = (row_with_people(annotators.RECODED, kind) for kind in annotators.RECODINGS)
    baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
    injections = (audit for audit in audits(rows.rows.values()) if audit.grader == grader)
    return VerdictEvidence(
        rubric=labels.scale.name, grader=grader, rule=rule, noun=noun,
        people=People.of(rows, labels, copies, min_kappa),
        answers=Answers(rows.get(COVERAGE, "", grader), row_with_people("observed_agreement")),
        present=present,
        tuned=TunedEvidence.of(rows, grader, rule, is_binary=is_binary),
        binary=binary, is_binary_only=is_binary and len(labels.scale.categories) > 2,
        baselines=tuple(filter(None, baselines)),
        wording_unstable=wordings if is_unstable else None,
        injection=next(injections, None),
        identical_graders=tuple(labels.raters[n] for n in repeated if n in labels.models),
        recoded=tuple(sorted(filter(None, recoded), key=lambda row: -row["estimate"])),
        selective=next(iter(few_and_more), None),
        gross_errors=next(iter(rows_with(annotators.GROSS, "all")), None),
        points="points" if labels.scale.has_numbers else "steps of the scale",
    )  # fmt: skip


def _min_people_kappa(
    rows: ResultRows, labels: LabelMatrix, rule: DecisionSettings, *, is_binary: bool
) -> float:
    """Return the human-human kappa below which no grader can be evaluated: for two categories the
    rule's minimum; for an ordered scale the weighted kappa that shows as much (`kappa_on_scale`);
    else the minimum in proportion to the agreement expected by chance, if that is less than the 1/2
    of two balanced categories: with more categories, a lower kappa shows as much.
    """
    chance, min_kappa = rows.chance.get(""), rule.min_people_kappa  # "": of the categories
    if is_binary:
        return min_kappa
    if labels.scale.level != "nominal":
        return kappa_on_scale(min_kappa, labels.scale.ordered)
    return min_kappa * (min(2.0 * float((chance.shares**2).sum()), 1.0) if chance else 1.0)


def add_deciding_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    resamples: Resamples,
    margin: float,
    rule: DecisionSettings,
    look: int = 1,
    parts: Sequence[UnitColumn] = (),
    error: float = ALPHA,
) -> None:
    """Add the rows that decide verdicts (`STATISTICS`), at = "held_out" for thresholds tuned on
    other clusters; `PART` in each part of the sample by the columns `parts`. The evidence on each
    view of a grader's labels is kept in `rows.evidence`.

    `low` and `high` are one-sided bounds, each at the level of the verdict, so that the probability
    of a wrong pass is at most `error`, over all graders and looks up to this `look`. They are
    computed from the jackknife: of `resamples` only the clusters are used, and no draws.
    """
    if not labels.humans:
        return
    # Clusters without a person's label have no information about people, and are not counted.
    labelled = np.flatnonzero((labels.codes[:, list(labels.humans)] >= 0).any(axis=1))
    jackknife = resamples.jackknife_of(labels.clusters[labelled])
    comparator = Comparator(jackknife, margin, rule.margin_share)
    views, comparisons = list(grader_views(labels)), []
    for view in views:
        kappa, subset = deciding_kappa(view.coded), view.coded.subset
        baselines = (rows.get(kappa, "humans", name, subset) for name in BASELINES)
        best_kappa = max((row["estimate"] for row in baselines if row), default=math.nan)
        comparison = comparator.compare(view, best_kappa)
        if comparison is not None and not math.isnan(comparison.baseline_difference):
            comparisons.append(comparison)
    if not comparisons:
        return

    influences = [c.tested_influence for c in comparisons if c.view.shares_level]
    level = shared_level(influences, len(comparisons), rule, look, error)
    bounds: dict[tuple[str, str, str], Bounds] = {}
    for comparison in comparisons:
        view, best_kappa = comparison.view, comparison.best_baseline_kappa
        if view.at == UNTUNED:  # compared only for its share of the level
            continue
        bounds[view.key] = _add_bounds(rows, comparison, level, rule)
        worst_view = with_missing_as_wrong(labels, view, jackknife.mass.astype(float))
        worst_case = comparator.compare(worst_view, best_kappa) if worst_view else None
        if worst_case is not None:
            row = _add_worst_case(rows, worst_case, level, rule)
            bounds[view.key] = replace(bounds[view.key], if_missing_wrong=row)
    tested = [view for view in views if view.at != UNTUNED]
    by_view = add_part_rows(rows, tested, comparator, parts, level.alpha, rule.min_rarer)
    for key, part_rows in by_view.items():
        rows.evidence[key] = ViewEvidence(bounds=bounds.get(key), parts=part_rows)


def shared_level(
    influences: Sequence[Array], comparisons: int, rule: DecisionSettings, look: int, error: float
) -> Deciding:
    """Return the level of each bound at this `look` and the next, so that all bounds hold together
    except in a share `error` of studies. `influences` are those of the clusters (clusters,) on each
    estimate, `comparisons` is the number of comparisons.
    """
    alpha, next_alpha = (level_of_look(n, rule.looks, error) for n in (look, look + 1))
    if not alpha:
        return Deciding(alpha=0.0, look=look, comparisons=comparisons, next_alpha=0.0)
    defined = [influence for influence in influences if not np.isnan(influence).any()]
    shared = simultaneous_level(np.column_stack(defined), alpha) if defined else alpha
    next_shared = shared * next_alpha / alpha  # the same share of alpha as at this look
    return Deciding(alpha=shared, look=look, comparisons=comparisons, next_alpha=next_shared)


def _add_bounds(
    rows: ResultRows, comparison: Comparison, level: Deciding, rule: DecisionSettings
) -> Bounds:
    """Add the rows of a comparison and return them, without the worst case."""
    alpha, margin = level.alpha, comparison.margin

    def add(statistic: str, interval: Interval, note: Note = "", **limits: Any) -> ResultRow:
        """Add a row with bounds at the `level`; `limits` are further fields of `Deciding`."""
        bounds, key = interval.as_deciding(replace(level, **limits)), comparison.view.row_key
        return rows.added(statistic, bounds, comparison.counts, **key, note=note)

    difference = comparison.tested_bounds.interval_or_remark(comparison.difference, alpha)
    like_these = _over_people(comparison, difference, alpha)
    variance = comparison.people_variance + standard_error(comparison.tested_influence) ** 2
    from_people = comparison.people_variance / variance if variance > 0 else 0.0
    # The row for people like these has the same limit, -margin, but as its `bar`: a `margin` would
    # repeat in its note the remark that the row for these people already has.
    people: dict[str, Any] = {"people": comparison.n_people, "from_people": from_people}
    people["bar"] = -margin
    at_margin: dict[str, Any] = {"margin": margin, "margin_share": comparison.margin_share}
    pooled = Remark("pooled_pairs") if comparison.is_pooled else ""
    lead = comparison.baseline_difference
    above = comparison.kappa_bounds.interval_or_remark(lead, alpha)
    constant = Remark("constant_rater") if comparison.is_constant else ""
    if comparison.is_constant:  # the grader equals a baseline, in every sample
        above = Interval(lead, lead, lead)
    people_kappa = _people_kappa(comparison, alpha, rows.heaviest)
    chance = comparison.chance_within_for(rule.scope)
    to_pass, sample = _clusters_to_pass(comparison, difference, level), comparison.sample
    return Bounds(  # rows are added in this order
        difference=add(NON_INFERIORITY, difference, pooled, **at_margin),
        like_these=add(NON_INFERIORITY_PEOPLE, like_these, **people) if like_these else None,
        above_baseline=add(ABOVE_BASELINE, above, constant, bar=0.0),
        people_kappa=add(PEOPLE_KAPPA, people_kappa, pooled),
        chance=add(CHANCE, Interval.point(chance), margin=margin),
        clusters_to_pass=add(CLUSTERS_NEEDED, Interval.point(to_pass)) if to_pass else None,
        effective_clusters=add(EFFECTIVE_CLUSTERS, Interval.point(sample.effective)),
        minority_clusters=add(MINORITY_CLUSTERS, Interval.point(sample.minority)),
    )


def _over_people(comparison: Comparison, difference: Interval, alpha: float) -> Interval | None:
    """Widen bounds to those for people like these; None without, or for fewer than three people."""
    if math.isnan(comparison.people_variance) or not alpha or math.isnan(difference.low):
        return None
    estimate = difference.estimate
    distances = np.array([estimate - difference.low, difference.high - estimate])
    people_variance, clusters = comparison.people_variance, comparison.sample.effective
    reaches = reach_over_people(distances, people_variance, comparison.n_people, clusters, alpha)
    below, above = reaches.tolist()
    return Interval(estimate, estimate - below, estimate + above)


def _people_kappa(comparison: Comparison, alpha: float, heaviest: float) -> Interval:
    """Return human-human kappa with both one-sided bounds, from the influence of each cluster
    (`bounds.reach`). That is not enough where people differ in no cluster, or in few: further
    clusters in which they differ may be unobserved. If they differ in a share s of all clusters,
    kappa is 1 - s / (1 - chance agreement). Clopper & Pearson (1934) bound s:

    - If no cluster varies, from 0 of n clusters. Both bounds are that far from the estimate, as
      unobserved clusters could move it that far.
    - Else from the clusters in which people differ, up to 1 if these are all. Kappa is at least
      that high: with few such clusters, Hall's correction in `reach` goes too far below.

    Unobserved clusters may all have the largest weight of a cluster, `heaviest`.
    """
    estimate, contributions = comparison.people_kappa, comparison.people_influence
    if math.isnan(estimate):
        return Interval.undefined("too_few_raters")
    if not alpha:
        return Interval(estimate, math.nan, math.nan, (Remark("no_level"),))
    chance_disagreement = max(1.0 - comparison.chance_agreement, 1e-9)
    if not np.ptp(contributions) > 0:
        share = 1.0 - alpha ** (heaviest / max(comparison.sample.clusters, 1))
        distance = float(min(share / chance_disagreement, 2.0))
        remarks = (Remark("nothing_varies"),)
        return Interval(estimate, estimate - distance, min(estimate + distance, 1.0), remarks)
    differ, alike = comparison.clusters_differing, comparison.clusters_alike
    share = heaviest * float(betaincinv(differ + 1, alike, 1.0 - alpha)) if alike else 1.0
    least = min(1.0 - share / chance_disagreement, estimate)
    below, above = reach(contributions, alpha), reach(-contributions, alpha)
    return Interval(estimate, max(estimate - below, least), min(estimate + above, 1.0))


def _clusters_to_pass(comparison: Comparison, difference: Interval, level: Deciding) -> int | None:
    """Return the number of clusters that would show at the next look that the grader is within the
    margin, in 80% of studies if the estimates stay; None if that is shown, or no number would do.
    """
    if not difference.low <= -comparison.margin < difference.estimate or not level.next_alpha > 0:
        return None
    # `growth` is until the bound of a study with exactly these estimates clears the margin. For 80%
    # of studies to clear it at `next_alpha`, that one study must clear it at a stricter level.
    growth = comparison.tested_bounds.growth(comparison.null, level_for_power(level.next_alpha))
    return math.ceil(growth * comparison.sample.clusters) if growth < math.inf else None


def _add_worst_case(
    rows: ResultRows, worst_case: Comparison, level: Deciding, rule: DecisionSettings
) -> ResultRow:
    """Add the row of a comparison with missing labels as wrong, for the people in `rule.scope`."""
    at_margin = replace(level, margin=worst_case.margin, margin_share=worst_case.margin_share)
    difference = worst_case.tested_bounds.interval_or_remark(worst_case.difference, level.alpha)
    if rule.scope == "like_these":
        difference = _over_people(worst_case, difference, level.alpha) or difference
    key = worst_case.view.row_key
    return rows.added(IF_WRONG, difference.as_deciding(at_margin), worst_case.counts, **key)


def add_part_rows(
    rows: ResultRows,
    views: Sequence[GraderView],
    comparator: Comparator,
    columns: Sequence[UnitColumn],
    alpha: float,
    min_minority: int,
) -> dict[tuple[str, str, str], tuple[ResultRow, ...]]:
    """Add `part_non_inferiority` of every grader in every part of the sample by `columns`, and
    return these rows by view. Bounds are as for `non_inferiority`, and hold in all parts of a
    grader at once at the level `alpha` (Bonferroni: parts share few clusters).

    A grader that passes on the whole may fail in a part. Only a part in which it is clearly below
    people counts against it, as most parts are too small to show more. There are no bounds where
    fewer than `min_minority` clusters have a minority label.
    """
    parts: list[tuple[str, Mask, Comparator]] = []
    for name, inside in chain.from_iterable(column.parts() for column in columns):
        jackknife = comparator.jackknife.only(np.unique(views[0].coded.clusters[inside]))
        part_comparator = Comparator(jackknife, comparator.margin, comparator.margin_share)
        parts.append((name, inside, part_comparator))
    rows_by_view = {}
    for view in views:
        view_rows = []
        for name, inside, part_comparator in parts:
            coded = view.coded.only(inside, view.coded.part(name))
            people = coded.humans_not_copied(view.grader)
            both = coded.labelled[:, view.grader] & coded.labelled_by_any(people)
            counts = part_comparator.jackknife.count(coded.clusters, both)
            part = GraderView(coded, view.grader, view.at)
            comparison = part_comparator.compare(part, over_people=False)
            bounds = _part_bounds(comparison, alpha / len(parts), min_minority)
            view_rows.append(rows.added(PART, bounds, counts, **part.row_key))
        rows_by_view[view.key] = tuple(view_rows)
    return rows_by_view


def _part_bounds(comparison: Comparison | None, alpha: float, min_minority: int) -> Interval:
    """Return the difference in a part, with bounds at level `alpha` if the part is large enough."""
    if comparison is None:
        return Interval.undefined("too_few_labels")
    sample, at_margin = comparison.sample, Deciding(margin=comparison.margin)
    is_large = sample.minority >= min_minority and sample.effective >= MIN_CLUSTERS
    if math.isnan(comparison.difference) or (alpha and is_large):
        bounds = comparison.tested_bounds.interval_or_remark(comparison.difference, alpha)
    else:
        bounds = Interval.point(comparison.difference, Remark("too_few_labels"))
    return bounds.as_deciding(at_margin)
