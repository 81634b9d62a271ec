"""From two tables to results, verdicts and notes: the one entry into the analysis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from analysis.alternative_annotator import EPSILON, add_alt_test_rows
from analysis.bias import BiasSettings, UnitFacts, add_bias_rows
from analysis.categories import add_category_rows
from analysis.ceiling import (
    add_baseline_ceiling_rows,
    add_baseline_rows,
    add_ceiling_rows,
    baselines,
)
from analysis.clarity import add_clarity_rows
from analysis.combine import Readings, combine_readings
from analysis.comparison import add_grader_comparison_rows, add_leniency_rows
from analysis.confidence_filter import ConfidenceRule, add_confidence_rows
from analysis.consensus import add_consensus_rows
from analysis.coverage import add_coverage_rows, add_unscored_rows
from analysis.decision_rule import DecisionRule
from analysis.disagreements import Disagreement, add_disagreement_rows
from analysis.encoding import Coded, LabelMatrix, encode
from analysis.generalizability import VarianceComponents, components_of
from analysis.group_performance import add_group_performance_rows
from analysis.groups import add_group_rows, add_prevalence_rows
from analysis.overall import add_overall_rows
from analysis.pair_rows import add_humans_rows, add_pair_rows
from analysis.pair_rule import pair_verdicts
from analysis.pairs import MAX_LISTED_RATERS, KappaMeans
from analysis.raters import add_rater_rows
from analysis.repeats import add_repeat_rows, repeats_of
from analysis.resampling import IntervalMethod, Resamples
from analysis.results import ResultRows
from analysis.scale import Scale
from analysis.selection import add_price_rows
from analysis.slices import (
    add_main_rows,
    add_rater_slice_rows,
    add_slice_rows,
    check_values,
    members_of,
)
from analysis.stability import add_rewording_rows, add_stability_rows, reworded
from analysis.thresholds import add_threshold_rows
from analysis.usage import add_usage_rows
from analysis.verdicts import Verdict, judge_graders
from analysis.verification import Verification, verify_estimates
from analysis.versions import one_version
from rubrics.errors import InputError
from study.tables import row_number, validate_ratings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "analyse"]

RESAMPLES = 2000
SEED = 20231206
CONFIDENCE = ConfidenceRule()


@dataclass(frozen=True)
class Analysis:
    """What an analysis found: the `results` table, a verdict per rubric and grader, notes, and the
    units where graders and people differ most."""

    results: pd.DataFrame
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verification: Verification | None = None
    rule: DecisionRule = field(default_factory=DecisionRule)
    components: dict[str, VarianceComponents] = field(default_factory=dict)
    """By rubric, where people's labels differ: units, raters, the rest (`generalizability`)."""
    disagreements: list[Disagreement] = field(default_factory=list)


def analyse(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scales: Mapping[str, Scale] | Iterable[Scale],
    *,
    rule: DecisionRule | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    cluster: str = "pair",
    interval_method: IntervalMethod = "percentile",
    epsilon: float = EPSILON,
    slices: Sequence[str] = (),
    variants: Sequence[str] = (),
    groups: Sequence[str] = (),
    confidence: ConfidenceRule = CONFIDENCE,
    raters: pd.DataFrame | None = None,
    rater_slices: Sequence[str] = (),
    sensitivity_cluster: str = "",
    prices: Mapping[tuple[str, str], float] | None = None,
    bias: BiasSettings | None = None,
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    usage: pd.DataFrame | None = None,
    source: str = "ratings",
    verify: bool = False,
    why: bool = False,
) -> Analysis:
    """Everything that can be said of how the raters in `ratings` agree.

    `ratings` and `units` are the two tables of the contract; without `units` every unit is its own
    cluster and there are no subjects. `scales` declares each rubric's categories. `rule` says when
    a grader may stand in for people (see `analysis.verdicts`). Intervals come from `resamples`
    bootstrap draws of clusters: prompt pairs, the units column named by `cluster`, or with "unit"
    single units;
    `interval_method` is "percentile" or "bca" (see `analysis.intervals`). `epsilon` is the handicap
    of the alternative annotator test.

    On request the main figures (people's agreement, each grader's with them, the ceiling
    differences) are repeated: for every value of the units columns `slices`; for the humans of
    every value of the columns `rater_slices` of `raters`, a table with `rater_id`; and, with
    at = "cluster=COLUMN", with intervals from resampling the clusters of `sensitivity_cluster`.
    The slices and groups of people are audited for bias too; `bias` says what the audit has to know
    of groups and models (see `analysis.bias`).

    `variants` are units columns that tell variants of one question apart: how stable are labels
    from one to the next (see `analysis.stability`)? A scale that is a `variant_of` another one
    shows how stable raters are under that one, and nothing else unless people labelled under it.
    `groups` are units columns that say whom a unit is about: does a grader fail one group (see
    `analysis.group_performance`)? `confidence` says which labels of a grader that gives
    probabilities to keep (see `analysis.confidence_filter`).

    `prices` are what 1,000 units cost in US dollars, by (rubric, grader). `rubric_hashes` names, by
    rubric, the versions whose ratings count; `usage` says what graders did and cost (see
    `analysis.usage`); `source` is what messages call the ratings. With `verify` the point estimates
    are held against scikit-learn, krippendorff and statsmodels, which costs the time to load them
    (see `analysis.verification`). With `why` the variance of people's labels is split, too: do they
    differ by unit, by rater, or otherwise?

    Raises InputError where the tables do not hold together, a label lies outside its scale, a
    rubric has no scale, ratings of several versions of one rubric would be mixed, or a column to
    slice by is not there or has more than 50 values.

    >>> import pandas as pd
    >>> labels = {"ann": "yyyynnnn", "ben": "yyynnnnn"}
    >>> ratings = pd.DataFrame(
    ...     [
    ...         {"unit_id": f"u{n}", "rater_id": who, "rater_kind": "human", "label": label}
    ...         for who, given in labels.items()
    ...         for n, label in enumerate(given)
    ...     ]
    ... )
    >>> found = analyse(ratings, None, [Scale("", ("y", "n"))], resamples=200)
    >>> pair = found.results.query("rater_a == 'ann' and rater_b == 'ben'").set_index("statistic")
    >>> pair.loc[["observed_agreement", "cohen_kappa"], "estimate"].tolist()
    [0.875, 0.75]
    """
    from threadpoolctl import threadpool_limits

    rule = rule or DecisionRule()
    if resamples < 1:
        raise InputError(f"resamples is {resamples}; it must be 1 or more")
    if not 0 <= epsilon < 1:
        raise InputError(f"epsilon is {epsilon}; it must lie between 0 and 1")
    request = _Request(
        units=units,
        cluster=cluster,
        sensitivity_cluster=sensitivity_cluster,
        slices=tuple(dict.fromkeys(slices)),
        variants=tuple(dict.fromkeys(variants)),
        groups=tuple(dict.fromkeys(groups)),
        people=members_of(raters, tuple(dict.fromkeys(rater_slices)), slices),
        epsilon=epsilon,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        method=interval_method,
        bias=bias or BiasSettings(),
    )
    declared = _by_name(scales)
    ratings = _with_rubrics(validate_ratings(ratings, source), declared, source)
    parts: list[ResultRows] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []
    components: dict[str, VarianceComponents] = {}
    disagreements: list[Disagreement] = []
    verification = Verification() if verify else None
    # Threads on products this skinny cost more than they bring.
    with threadpool_limits(limits=1, user_api="blas"):
        counted: dict[str, pd.DataFrame] = {}
        for name in declared:
            accepted = None if rubric_hashes is None else rubric_hashes.get(name)
            own = ratings[ratings["rubric"] == name]
            counted[name], about = one_version(own, name, accepted)
            notes += about
        for name, scale in declared.items():
            own = counted[name]
            if own.empty:
                notes.append(f"{name or 'the rubric'}: no ratings")
                continue
            reworded_here = bool(scale.variant_of) and scale.variant_of in declared
            if reworded_here and not own["rater_kind"].eq("human").any():
                continue  # it shows how stable the graders are, beside the rubric it words anew
            readings = combine_readings(own, scale, source)
            labels = encode(readings, scale, units, cluster, request.columns)
            if len(labels.raters) > MAX_LISTED_RATERS:
                notes.append(
                    f"{name or 'the rubric'}: {len(labels.raters)} raters; "
                    f"above {MAX_LISTED_RATERS} pairs of raters appear pooled only"
                )
            if why and (among := components_of(labels)) is not None:
                components[name] = among
            rows = _rubric_rows(labels, request)
            add_bias_rows(
                rows,
                replace(labels, slices=tuple(labels.columns(request.slices))),
                own,
                UnitFacts(readings.units, units),
                units=units,
                cluster=cluster,
                settings=request.bias,
                members=request.people,
                resampled=request.resampled,
            )
            _add_with_other_clusters(rows, readings, scale, request)
            if (own["draw"] > 0).any():
                repeats = repeats_of(own, scale, units, cluster)
                add_repeat_rows(rows, repeats, request.resampled)
            _add_reworded(rows, counted, scale, declared, request)
            add_rater_rows(rows, own, readings, labels)
            disagreements += add_disagreement_rows(rows, readings.units, labels)
            add_usage_rows(rows, usage)
            if verification is not None:
                for view in _views(labels):
                    verification += verify_estimates(rows, view)
            add_price_rows(rows, labels, prices or {})
            parts.append(rows)
            noun = _cluster_noun(units, cluster, scale)
            if not reworded_here:  # another wording is not judged by itself
                verdicts += judge_graders(rows, labels, rule=rule, cluster_noun=noun)
    return Analysis(
        ResultRows.frame(parts), verdicts, notes, verification, rule, components, disagreements
    )


@dataclass(frozen=True)
class _Request:
    """What was asked for, the same for every rubric."""

    units: pd.DataFrame | None
    cluster: str
    sensitivity_cluster: str
    slices: tuple[str, ...]
    variants: tuple[str, ...]
    groups: tuple[str, ...]
    people: dict[str, frozenset[str]]
    epsilon: float
    confidence: ConfidenceRule
    resamples: int
    seed: int
    method: IntervalMethod
    bias: BiasSettings
    _latest: dict[bytes, Resamples] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        """Every units column that is asked for."""
        return tuple(dict.fromkeys((*self.slices, *self.groups, *self.variants)))

    def resampled(self, frequency: npt.NDArray[np.int64]) -> Resamples:
        """Resamples of clusters that stand in the data so often; the latest are kept."""
        key = frequency.tobytes()
        if key not in self._latest:
            self._latest.clear()
            rng = np.random.default_rng(self.seed)
            self._latest[key] = Resamples(frequency, self.resamples, rng, self.method)
        return self._latest[key]


def _rubric_rows(labels: LabelMatrix, request: _Request) -> ResultRows:
    """All rows of one rubric, on the same resamples."""
    rows = ResultRows(labels.scale.name)
    for column in labels.slices:
        check_values(column.name, column.values)
    labels, frequency = labels.folded()
    shared = request.resampled(frequency)
    for view in _views(labels):
        add_pair_rows(rows, view, shared)
        add_humans_rows(rows, view, shared)
        kappas = KappaMeans(view, shared)
        add_group_rows(rows, kappas)
        add_category_rows(rows, view, shared)
        add_prevalence_rows(rows, view, shared)
        add_baseline_rows(rows, view, shared)
        add_ceiling_rows(rows, kappas)
        add_baseline_ceiling_rows(rows, kappas)
        add_alt_test_rows(rows, view, shared, baselines(view, shared), request.epsilon)
        add_consensus_rows(rows, view, shared)
        add_grader_comparison_rows(rows, kappas)
        add_leniency_rows(rows, kappas)
        add_unscored_rows(rows, labels, view, shared)
        add_slice_rows(rows, labels.columns(request.slices), view, shared)
        add_group_performance_rows(rows, view, shared, labels.columns(request.groups))
        add_rater_slice_rows(rows, view, shared, request.people)
    add_coverage_rows(rows, labels, shared)
    add_clarity_rows(rows, labels, shared)
    add_confidence_rows(rows, labels, shared, request.confidence)
    add_stability_rows(rows, labels, shared, labels.columns(request.variants))
    if labels.has_verdicts:
        _add_verdict_rows(rows, labels, shared)
    return rows


def _add_with_other_clusters(
    rows: ResultRows, readings: Readings, scale: Scale, request: _Request
) -> None:
    """The sensitivity line: the main figures with intervals from other clusters."""
    column = request.sensitivity_cluster
    if not column:
        return
    labels, frequency = encode(readings, scale, request.units, column).folded()
    shared = request.resampled(frequency)
    for view in _views(labels):
        add_main_rows(rows, view, shared, at=f"cluster={column}")


def _add_reworded(
    rows: ResultRows,
    counted: Mapping[str, pd.DataFrame],
    scale: Scale,
    declared: Mapping[str, Scale],
    request: _Request,
) -> None:
    """How stable raters are under the other wordings of this rubric, where it has any."""
    others = [each for each in declared.values() if each.variant_of == scale.name]
    if scale.name and others:
        import pandas as pd

        family = [scale, *others]
        ratings = pd.concat([counted[each.name] for each in family])
        matrices = reworded(ratings, family, request.units, request.cluster)
        add_rewording_rows(rows, matrices, request.resampled)


def _views(labels: LabelMatrix) -> list[Coded]:
    """The readings of the labels: the categories, and the binary verdict where there is one."""
    categories = [labels.on_categories()]
    return [*categories, labels.on_verdicts()] if labels.has_verdicts else categories


def _add_verdict_rows(rows: ResultRows, labels: LabelMatrix, shared: Resamples) -> None:
    """What speaks of the binary verdict only: thresholds, the pair rule, overall scores."""
    add_threshold_rows(rows, labels, shared)
    overall = labels
    if labels.scale.unit == "response" and labels.side.max(initial=-1) > 0:
        overall = pair_verdicts(labels)
        add_pair_rows(rows, overall.on_verdicts(), shared, "pair_")
        add_humans_rows(rows, overall.on_verdicts(), shared, "pair_")
    if labels.subjects:
        add_overall_rows(rows, overall, shared)


def _by_name(scales: Mapping[str, Scale] | Iterable[Scale]) -> dict[str, Scale]:
    each = scales.values() if isinstance(scales, Mapping) else scales
    named: dict[str, Scale] = {}
    for scale in each:
        if scale.name in named:
            raise InputError(f"two scales are called {scale.name!r}; give each rubric one")
        named[scale.name] = scale
    return named


def _with_rubrics(
    ratings: pd.DataFrame, declared: Mapping[str, Scale], source: str
) -> pd.DataFrame:
    """Ratings that name no rubric belong to the one there is; each named one needs a scale."""
    if len(declared) == 1:
        only = next(iter(declared))
        ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", only))
    unknown = ~ratings["rubric"].isin(list(declared))
    if unknown.any():
        at = int(unknown.to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(ratings, at)}: no scale is declared for the rubric "
            f"{ratings['rubric'].iloc[at]!r}; declare its categories or leave its rows out"
        )
    return ratings


def _cluster_noun(units: pd.DataFrame | None, cluster: str, scale: Scale) -> str:
    """What a cluster is called in a sentence."""
    if units is None or (cluster == "pair" and "cluster_id" not in units):
        return "unit"
    if cluster != "pair":
        return cluster
    return "pair" if scale.unit else "cluster"
