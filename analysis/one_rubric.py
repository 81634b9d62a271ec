"""Analysis of one rubric: its rows, the verdicts on its graders, and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from evenhand.analysis.agreement import consensus, groups, numbers, overlap, pairs, stability
from evenhand.analysis.agreement.overlap import KappaMeans
from evenhand.analysis.bias import add_bias_rows, position
from evenhand.analysis.bootstrap.influence import ALPHA, level_of_look
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import PatternResamples, Resamples
from evenhand.analysis.distributions import add_distribution_rows
from evenhand.analysis.injection import add_injection_rows
from evenhand.analysis.labels.encoding import (
    combine_readings,
    encode,
    methods_apart,
    pair_verdicts,
    without_excluded,
)
from evenhand.analysis.labels.matrix import BINARY_ALL, LabelMatrix, listed, people_alike
from evenhand.analysis.labels.scale import MAX_CATEGORIES, Scale
from evenhand.analysis.labels.units import (
    UnitColumn,
    UnitFacts,
    check_values,
    effective_size,
    with_weights,
)
from evenhand.analysis.notes import says
from evenhand.analysis.people import (
    alternative_annotator,
    ceiling,
    clarity,
    comparison,
    disagreements,
    reversed_scales,
    slices,
)
from evenhand.analysis.people import selection as selections
from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.planning.g_study import VarianceComponents, components_of
from evenhand.analysis.raters.pace import add_rater_rows
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRows
from evenhand.analysis.subjects import corrected_rates, preference, scores
from evenhand.analysis.thresholds import probabilities, routing
from evenhand.analysis.thresholds import rows as thresholds
from evenhand.analysis.thresholds.rows import ThresholdInForce
from evenhand.analysis.types import DataFrame, Frequency
from evenhand.analysis.usage import add_price_rows, add_usage_rows
from evenhand.analysis.verdicts import evidence, reference
from evenhand.analysis.verdicts.judge import Verdict, judge_graders
from evenhand.analysis.verdicts.wording import PASSES, opposed_in_words
from evenhand.analysis.verification import Libraries, Verification, verify_estimates
from evenhand.errors import InputError
from evenhand.rubrics.own_words import with_own_prompt
from evenhand.texts import written

_JUDGED = frozenset((*evidence.STATISTICS, *reference.STATISTICS))


@dataclass(frozen=True)
class LabelCounts:
    """What one rubric's analysis rests on.

    `items` are those that `annotators` labelled, in so many `clusters`; `shared` those with labels
    of two or more; `missing` counts annotators' labels that were asked for and not given. `graders`
    are names, and `excluded` how many raters were left out. `selection` is a sentence on which
    labels agreement is computed of where further labels were given by labels, else empty.
    """

    annotators: int = 0
    items: int = 0
    clusters: int = 0
    shared: int = 0
    missing: int = 0
    graders: tuple[str, ...] = ()
    excluded: int = 0
    selection: str = ""

    @classmethod
    def of(
        cls,
        labels: LabelMatrix,
        selection: selections.Selection,
        excluded: int = 0,
        times: Frequency | None = None,
    ) -> LabelCounts:
        """Count the labels of one rubric; `times` (units,) is how often each unit occurs."""
        people = list(labels.humans)
        given, asked = labels.scored[:, people], labels.asked[:, people]
        times = np.ones(len(given), dtype=np.int64) if times is None else times
        by_person, unknown = given.sum(axis=1), selection.how == "unknown"
        return cls(
            annotators=len(people),
            items=int(times[by_person >= 1].sum()),
            clusters=len(np.unique(labels.clusters[by_person >= 1])),
            shared=int(times[by_person >= 2].sum()),
            missing=int(times @ (asked & ~given).sum(axis=1)),
            graders=tuple(labels.raters[model] for model in labels.models),
            excluded=excluded,
            selection=written("selection.unknown") if unknown else selection.note,
        )


@dataclass
class RubricAnalysis:
    """Result of the analysis of one rubric, if it has ratings."""

    rows: ResultRows
    cluster_noun: str
    counts: LabelCounts = field(default_factory=LabelCounts)
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    components: VarianceComponents | None = None
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    orders: dict[str, tuple[str, ...]] = field(default_factory=dict)
    verification: Verification = field(default_factory=Verification)
    judging: Judging | None = None
    """What its graders are judged from, if they may be judged again at another level."""

    def judge(self, error: float = ALPHA) -> None:
        """Judge the graders again, where a wrong pass may have this probability."""
        if self.judging is None:
            return
        rows, every = self.rows, tuple(self.rows.rows)
        rows.rows = {key: row for key, row in rows.rows.items() if key[1] not in _JUDGED}
        self.judging.add_rows(rows, error)
        rows.rows = {key: rows.rows[key] for key in (*every, *rows.rows) if key in rows.rows}
        labels, rule = self.judging.labels.in_agreement, self.judging.request.decision
        self.verdicts = judge_graders(rows, labels, rule=rule, cluster_noun=self.cluster_noun)

    @property
    def passing(self) -> set[str]:
        """The graders that pass."""
        return {each["grader"] for each in self.verdicts if each["verdict"] in PASSES}


@dataclass(frozen=True)
class Judging:
    """What the graders of one rubric are judged from: labels, which may be folded, and resamples of
    their clusters.
    """

    labels: LabelMatrix
    resamples: Resamples
    request: Request

    def add_rows(self, rows: ResultRows, error: float = ALPHA) -> None:
        """Add the rows that verdicts rest on, where a wrong pass may have the probability `error`,
        over all graders and looks.
        """
        labels, request = self.labels, self.request
        rule, look = request.decision, request.facts.looks.get(labels.scale.name, 1)
        if rule.reference:
            reference.add_reference_rows(rows, labels, self.resamples, rule, look, error)
            return
        parts = [*labels.columns(request.screened), *labels.sides]
        margin, agreement = request.settings.margin, labels.in_agreement
        given = agreement, self.resamples, margin, rule, look, parts, error
        evidence.add_deciding_rows(rows, *given)

    def kept(self) -> Judging | None:
        """What is needed to judge again, without what was drawn; None where nobody will."""
        if self.request.decision.across_rubrics == "none":
            return None
        request = replace(self.request, units=None, _latest={})
        return Judging(self.labels, self.resamples.left_out(self.labels.clusters), request)


def judge_across_rubrics(found: Sequence[RubricAnalysis]) -> None:
    """Judge the graders of all rubrics so that a wrong pass on any of them has at most the error
    that each rubric has alone: Holm's (1979) procedure, by steps.

    A rubric is one family: its bounds hold for all graders and looks at once. Of k rubrics each is
    judged at 1/k of the error. A rubric all of whose graders pass no longer counts; one of which
    some fail does, since a pass among those may be the wrong one. The others are judged at the
    looser level that this leaves, until nothing changes. Where t rubrics have a grader that must
    not pass, these count as long as none of them does, so that the level at which the first one
    could is at most 1/t of the error.
    """
    family = [each for each in found if each.judging is not None and each.verdicts]
    alone, left = [each.passing for each in family], len(family)
    if left < 2:
        return
    step = left + 1
    while 0 < left < step:
        step = left
        for each in family:
            each.judge(ALPHA / step)
        left = sum(len(each.passing) < len(each.verdicts) for each in family)
    lost = written("because.alone_only", rubrics=len(family))
    for each, passing in zip(family, alone, strict=True):
        for verdict in each.verdicts:
            if verdict["grader"] in passing - each.passing:
                verdict["sentence"] = f"{verdict['sentence']} {lost}"


@dataclass(frozen=True)
class RubricTask:
    """Ratings of one rubric to analyse; `variants` are its other wordings with their ratings.

    Graders are judged only if `judge` is set: a rubric may be present as a mere wording of another.
    """

    scale: Scale
    ratings: DataFrame
    variants: Sequence[tuple[Scale, DataFrame]]
    request: Request
    judge: bool
    verify: Libraries | None


def analyse_rubric(task: RubricTask) -> RubricAnalysis:
    """Analyse one rubric."""
    from threadpoolctl import threadpool_limits

    # Our matrices are narrow: BLAS threads would cost more than they gain.
    with threadpool_limits(limits=1, user_api="blas"):
        return _analysed(task)


def _analysed(task: RubricTask) -> RubricAnalysis:
    scale, ratings, request = task.scale, task.ratings, task.request
    found = RubricAnalysis(ResultRows(scale.name), _cluster_noun(request, scale))
    place = f"{scale.name}: " if scale.name else ""
    if ratings.empty:
        found.notes.append(place + written("note.no_ratings"))
        return found
    own, found.notes = without_excluded(ratings, scale.name, request.facts.excluded)
    if own.empty:
        return found
    own, parted = methods_apart(own, scale.name)
    found.notes += parted
    found.orders = position.orders_seen(own)
    for name, graders in position.by_orders(found.orders).items():
        who, both = listed(graders), name == "both_orders"
        note = written("note.both_orders" if both else "note.one_order", graders=who)
        found.notes.append(place + note)
    if prompted := with_own_prompt(own["rater_id"].unique()):
        found.notes.append(place + written("note.own_prompt", graders=listed(prompted)))
    request = replace(request, units=with_weights(request.units, own))
    readings = combine_readings(own, scale, request.facts.source)
    if scale.is_number:
        low, high = min(scale.values), max(scale.values)
        note = written("note.number", low=low, high=high, ordered=scale.ordered)
        found.notes.append(place + note)
    labels = thresholds.judged_out_of_sample(
        encode(readings, scale, request.units, request.settings.cluster, request.columns)
    )
    is_random = request.settings.overlap == "random" or request.facts.assigned
    rng, once = np.random.default_rng(request.seed), np.ones(labels.n_clusters, dtype=np.int64)
    times = selections.label_times(own, readings.units, labels.raters)
    plain = Resamples(once, 0, np.random.default_rng(0))
    selection = selections.selection_of(labels, plain, rng, times, is_random=is_random)
    labels = replace(labels, counted=selection.counted, tie_breaks=selection.how == "tie_break")
    left_out = ratings["rater_id"].nunique() - own["rater_id"].nunique()
    found.counts = LabelCounts.of(labels, selection, left_out)
    if selection.note:
        found.notes.append(place + selection.note)
    if len(labels.raters) > pairs.MAX_LISTED_RATERS:
        found.notes.append(place + pooled(labels))
    alike = people_alike(labels.copies, labels.raters, labels.humans)
    found.notes += [place + each for each in alike]
    views = labels.in_agreement.views if task.verify else []
    theirs = [task.verify(view, labels.weight) for view in views] if task.verify else []
    if request.why:
        found.components = components_of(labels)
    found.thresholds = thresholds.thresholds_in_force(labels)
    found.notes += [each.note for each in found.thresholds if each.note]
    _refuse_sides_own_columns(labels, request)
    folded, shared = _resampled(labels, request)
    found.rows = rows = rubric_rows(folded, shared, request)
    opposed = reversed_scales.opposed_in(rows)
    found.notes += [place + opposed_in_words(each, "note") for each in opposed]
    if selection.how == "unknown":
        shared = request.resampled(once, labels.weight)
        selections.add_selection_rows(rows, labels, selection, shared)
    weight = labels.people_weight
    if labels.weight is not None and len(weight):  # some pairs were likelier to be picked
        size, counts = effective_size(weight), (int(labels.labelled_by_people.sum()), len(weight))
        about = {"rater_a": "humans", "subset": "all"}
        rows.add("effective_clusters", Interval.point(size), counts, **about)
        fields = {"noun": found.cluster_noun, "labelled": len(weight), "size": size}
        found.notes.append(place + written("note.effective", **fields))
    facts = UnitFacts(readings.units, request.units)
    retuned = thresholds.tuned_on_others(labels)
    for grader in list(retuned):  # audit verdicts at a tuned threshold where it may yet be advised
        advised = rows.get("threshold_recommended", "humans", grader, BINARY_ALL, "kappa")
        if advised is None or says(advised["remarks"], "default"):
            del retuned[grader]
    add_bias_rows(rows, labels, own, facts, request, retuned)
    _add_sides(rows, labels, facts, request)
    preference.add_preference_rows(rows, labels, own, facts, request.resampled)
    attacked, cluster = request.facts.attacked, request.settings.cluster
    add_injection_rows(rows, attacked, request.units, cluster, request.resampled)
    column = request.settings.sensitivity_cluster
    if column and labels.weight is not None:  # only whole clusters have a weight, these mix pairs
        found.notes.append(written("note.no_other_clusters", column=column))
    elif column:
        # The main figures with intervals from other clusters. Keep the verdicts: folds of these
        # clusters would give other thresholds.
        other = encode(readings, labels.scale, request.units, column)
        others, frequency = replace(other, thresholds=labels.thresholds).folded()
        for view in others.views:
            slices.add_main_rows(rows, view, request.resampled(frequency), at=f"cluster={column}")
    if len(own) < len(ratings):  # the main figures with the excluded raters included
        of_all = combine_readings(ratings, scale, request.facts.source)
        whole = encode(of_all, scale, request.units, request.settings.cluster)
        every, frequency = thresholds.judged_out_of_sample(whole).folded()
        slices.add_all_raters_rows(rows, every, request.resampled(frequency, every.weight))
    if (own["draw"] > 0).any():
        repeats = stability.repeats_of(own, scale, request.units, request.settings.cluster)
        stability.add_repeat_rows(rows, repeats, request.resampled)
    if task.variants:
        _add_wordings(rows, own, task, request)
    add_rater_rows(rows, own, readings, labels)
    if not scale.part_of:  # people and graders are compared on the whole set
        found.disagreements = disagreements.add_disagreement_rows(rows, readings.units, labels)
    disagreements.add_sorted_rows(rows, request.facts.sorted)
    add_usage_rows(rows, request.facts.usage)
    add_price_rows(rows, labels, request.facts.prices)
    for view, values in zip(views, theirs, strict=True):
        found.verification += verify_estimates(rows, view.subset, values())
    if task.judge:
        noun = found.cluster_noun
        found.verdicts = judge_graders(
            rows, labels.in_agreement, rule=request.decision, cluster_noun=noun
        )
        found.judging = Judging(folded, shared, request).kept()
    return found


def analyse_sets(name: str, parts: Sequence[RubricTask]) -> RubricAnalysis:
    """Analyse the labels that are sets of options, from the `parts`, a yes or no to each option."""
    request, matrices, keys = parts[0].request, [], []
    found = RubricAnalysis(ResultRows(name), _cluster_noun(request, parts[0].scale))
    for part in parts:
        own, _ = without_excluded(part.ratings, name, request.facts.excluded)
        if own.empty:
            return found
        units = with_weights(request.units, own)
        readings = combine_readings(own, part.scale, request.facts.source)
        matrices.append(encode(readings, part.scale, units, request.settings.cluster))
        keys.append(part.scale.name.rpartition("/")[2])
    coded, sets = groups.sets_of([each.on_categories() for each in matrices], keys)
    first = matrices[0]
    found.counts = LabelCounts.of(first, selections.Selection())
    shared = request.resampled(np.ones(first.n_clusters, dtype=np.int64), first.weight)
    groups.add_set_rows(found.rows, coded, sets, shared)
    if 0 < len(sets) <= MAX_CATEGORIES:
        whole = replace(first, scale=Scale(name, coded.categories), codes=coded.codes)
        given = found.rows, readings.units, whole, groups.jaccard_distances(sets)
        found.disagreements = disagreements.add_disagreement_rows(*given)
    found.notes.append(f"{name}: {written('note.several', options=len(parts))}")
    return found


def pooled(labels: LabelMatrix) -> str:
    """Note which pairs of raters are not listed one by one."""
    many_models = len(labels.models) > pairs.MAX_LISTED_RATERS
    return written(
        "note.pooled",
        raters=len(labels.raters),
        most=pairs.MAX_LISTED_RATERS,
        pairs="pairs of raters" if many_models else "pairs with an annotator",
    )


def _resampled(labels: LabelMatrix, request: Request) -> tuple[LabelMatrix, Resamples]:
    """Return the labels, deduplicated where possible, and resamples of their clusters."""
    patterns, cells = labels.in_patterns()
    if cells is not None:
        each_once = np.ones(labels.n_clusters, dtype=np.int64)
        return patterns, PatternResamples(cells, cells, request.resampled(each_once))
    folded, frequency = labels.folded()
    return folded, request.resampled(frequency, folded.weight)


def rubric_rows(labels: LabelMatrix, shared: Resamples, request: Request) -> ResultRows:
    """Compute all rows of one rubric, on the same resamples of the clusters of `labels`.

    `labels` may be folded.
    """
    rows = ResultRows(labels.scale.name)
    settings = request.settings
    for column in labels.columns((*request.screened, *settings.variants)):
        check_values(column.name, column.values)
    rows.heaviest = float(labels.people_weight.max(initial=1.0))
    agreement = labels.in_agreement
    for view, everything in zip(agreement.views, labels.views, strict=True):
        rows.know_chance(view, shared)
        pairs.add_pair_rows(rows, view, shared)
        overlap.add_humans_rows(rows, view, shared)
        kappas = KappaMeans(view, shared)
        groups.add_group_rows(rows, kappas)
        if view.is_number:
            numbers.add_number_rows(rows, view, shared)
        else:
            groups.add_category_rows(rows, view, shared)
            groups.add_prevalence_rows(rows, view, shared)
        ceiling.add_baseline_rows(rows, view, shared)
        ceiling.add_ceiling_rows(rows, kappas)
        ceiling.add_baseline_ceiling_rows(rows, kappas)
        reversed_scales.add_gross_error_rows(rows, view, shared)
        constants = ceiling.baselines(view, shared)
        alternative_annotator.add_alt_test_rows(rows, view, shared, constants, settings.epsilon)
        if not view.is_number:
            consensus.add_consensus_rows(rows, everything, shared)
        comparison.add_grader_comparison_rows(rows, kappas)
        if not view.is_number:
            comparison.add_leniency_rows(rows, kappas)
            reversed_scales.add_recoded_rows(rows, view, shared)
            disagreements.add_unscored_rows(rows, agreement, view, shared)
        slices.add_slice_rows(rows, labels.columns(settings.slices), view, shared)
        if not view.is_number:
            of_groups = labels.columns(settings.groups)
            slices.add_group_performance_rows(rows, everything, shared, of_groups)
        slices.add_rater_slice_rows(rows, view, shared, request.people)
    reversed_scales.add_annotator_rows(rows, agreement.on_categories(), shared)
    disagreements.add_coverage_rows(rows, labels, shared)
    clarity.add_clarity_rows(rows, labels, shared)
    if not labels.scale.is_number:
        add_distribution_rows(rows, labels, shared)
        routing.add_confidence_rows(rows, labels, shared, settings)
    look, looks = request.facts.looks.get(labels.scale.name, 1), request.decision.looks
    target, level = settings.confidence_target, level_of_look(look, looks, routing.ERROR)
    routing.add_routing_rows(rows, labels, shared, target=target, level=level)
    stability.add_stability_rows(rows, labels, shared, labels.columns(settings.variants))
    if labels.has_verdicts:
        # The last view is the binary verdict.
        reference = request.decision.reference
        beside = labels.beside_only(reference).on_verdicts() if reference else everything
        comparison.add_majority_rows(rows, beside, shared, reference=bool(reference))
        _add_verdict_rows(rows, labels, shared, kappas, request)
    Judging(labels, shared, request).add_rows(rows)
    return rows


def _refuse_sides_own_columns(labels: LabelMatrix, request: Request) -> None:
    """Raise InputError where a column to slice by has the parts that sides make anyway."""
    settings = request.settings
    taken = {each.name: each.values for each in labels.sides}
    if labels.sides and settings.leanings:
        taken["leaning"] = settings.sides
    for column in labels.columns(request.screened):
        if not {*column.values}.isdisjoint(taken.get(column.name, ())):
            raise InputError(
                f"units: {column.name} cannot be a column to slice or group by, since answers to "
                f"both sides are split by {column.name} anyway; leave it out, or rename the column"
            )


def _add_verdict_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    shared: Resamples,
    kappas: KappaMeans,
    request: Request,
) -> None:
    """Add rows for the binary verdict: thresholds, probabilities, the pair rule, scores."""
    thresholds.add_threshold_rows(rows, labels, shared, kappas)
    probabilities.add_probability_rows(rows, labels, shared)
    overall = labels
    if labels.scale.unit == "response" and labels.side.max(initial=-1) > 0:
        overall = pair_verdicts(labels)
        pairs.add_pair_rows(rows, overall.on_verdicts(), shared, "pair_")
        overlap.add_humans_rows(rows, overall.on_verdicts(), shared, "pair_")
    if labels.subjects:
        scores.add_overall_rows(rows, overall, shared)
    strata = overall.columns(request.strata)
    corrected_rates.add_corrected_rate_rows(rows, overall, shared, strata, request.rubrics)
    corrected_rates.add_part_rate_rows(rows, overall, shared, overall.columns(request.screened))
    corrected_rates.add_part_rate_rows(rows, labels, shared, labels.sides)


def _add_sides(rows: ResultRows, labels: LabelMatrix, facts: UnitFacts, request: Request) -> None:
    """Add subjects' rates by leaning, where sides have one, and the sides' differences."""
    if not (labels.sides and labels.has_verdicts):
        return
    settings = request.settings
    shared = request.resampled(np.ones(labels.n_clusters, dtype=np.int64), labels.weight)
    sign = position.orientation(facts, settings)
    if settings.leanings:
        # Side a has the first leaning where the sign is 1, side b where it is -1.
        codes = np.where(sign > 0, labels.side, 1 - labels.side)
        codes = np.where((sign != 0) & (labels.side >= 0), codes, -1)
        leaning = [UnitColumn("leaning", settings.sides, codes)]
        corrected_rates.add_part_rate_rows(rows, labels, shared, leaning)
    given = labels, sign, settings.sides, shared, request.rubrics
    corrected_rates.add_side_difference_rows(rows, *given)


def _add_wordings(rows: ResultRows, ratings: DataFrame, task: RubricTask, request: Request) -> None:
    """Add the stability of raters under the other wordings of this rubric, and how far people's
    agreement moves under wordings that were tried among them.
    """
    import pandas as pd

    every = pd.concat([ratings, *(of_variant for _, of_variant in task.variants)])
    family = [task.scale, *(variant for variant, _ in task.variants)]
    matrices = stability.reworded(every, family, request.units, request.settings.cluster)
    stability.add_rewording_rows(rows, matrices, request.resampled)
    excluded, own = task.request.facts.excluded, (task.scale.name, task.ratings)
    for new, trial in task.request.facts.rewordings.items():
        for variant, theirs in task.variants:
            given = dict([own, (variant.name, theirs)])
            if given.keys() == {trial.of, new}:
                counted = {
                    name: without_excluded(given[name], name, excluded)[0]
                    for name in (trial.of, new)
                }
                clarity.add_trial_rows(rows, task.scale, counted, trial, task.request)


def _cluster_noun(request: Request, scale: Scale) -> str:
    """Return the noun for a cluster in a sentence."""
    units, cluster = request.units, request.settings.cluster
    if units is None or (cluster == "pair" and "cluster_id" not in units):
        return "unit"
    if cluster != "pair":
        noun = cluster.removesuffix("_id")
        return noun if noun.isalpha() else "cluster"
    if "item_id" in units:
        return "item"
    return "pair" if scale.unit else "cluster"
