"""From two tables to results, verdicts and notes: the one entry into the analysis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from analysis.combine import Readings, combine_readings, methods_apart
from analysis.comparison import add_grader_comparison_rows, add_leniency_rows
from analysis.consensus import add_consensus_rows
from analysis.coverage import add_coverage_rows, add_unscored_rows
from analysis.decision_rule import DecisionRule
from analysis.encoding import Coded, LabelMatrix, encode
from analysis.generalizability import VarianceComponents, components_of
from analysis.groups import add_group_rows, add_prevalence_rows
from analysis.overall import add_overall_rows
from analysis.pair_rows import add_humans_rows, add_pair_rows
from analysis.pair_rule import pair_verdicts
from analysis.pairs import MAX_LISTED_RATERS, KappaMeans
from analysis.probability_quality import add_probability_rows
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
from analysis.thresholds import add_threshold_rows
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


@dataclass(frozen=True)
class Analysis:
    """What an analysis found: the `results` table, a verdict per rubric and grader, and notes."""

    results: pd.DataFrame
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verification: Verification | None = None
    rule: DecisionRule = field(default_factory=DecisionRule)
    components: dict[str, VarianceComponents] = field(default_factory=dict)
    """By rubric, where people's labels differ: units, raters, the rest (`generalizability`)."""


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
    raters: pd.DataFrame | None = None,
    rater_slices: Sequence[str] = (),
    sensitivity_cluster: str = "",
    prices: Mapping[tuple[str, str], float] | None = None,
    bias: BiasSettings | None = None,
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
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

    `prices` are what 1,000 units cost in US dollars, by (rubric, grader). `rubric_hashes` names, by
    rubric, the versions whose ratings count; `source` is what messages call the ratings. With
    `verify` the point estimates are held against scikit-learn, krippendorff and statsmodels, which
    costs the time to load them (see `analysis.verification`). With `why` the variance of people's
    labels is split, too: do they differ by unit, by rater, or otherwise?

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
        people=members_of(raters, tuple(dict.fromkeys(rater_slices)), slices),
        epsilon=epsilon,
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
    verification = Verification() if verify else None
    # Threads on products this skinny cost more than they bring.
    with threadpool_limits(limits=1, user_api="blas"):
        for name, scale in declared.items():
            accepted = None if rubric_hashes is None else rubric_hashes.get(name)
            own, about = one_version(ratings[ratings["rubric"] == name], name, accepted)
            notes += about
            if own.empty:
                notes.append(f"{name or 'the rubric'}: no ratings")
                continue
            own, about = methods_apart(own, name)
            notes += about
            readings = combine_readings(own, scale, source)
            labels = encode(readings, scale, units, cluster, request.slices)
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
                labels,
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
            if verification is not None:
                for view in _views(labels):
                    verification += verify_estimates(rows, view)
            add_price_rows(rows, labels, prices or {})
            parts.append(rows)
            noun = _cluster_noun(units, cluster, scale)
            verdicts += judge_graders(rows, labels, rule=rule, cluster_noun=noun)
    return Analysis(ResultRows.frame(parts), verdicts, notes, verification, rule, components)


@dataclass(frozen=True)
class _Request:
    """What was asked for, the same for every rubric."""

    units: pd.DataFrame | None
    cluster: str
    sensitivity_cluster: str
    slices: tuple[str, ...]
    people: dict[str, frozenset[str]]
    epsilon: float
    resamples: int
    seed: int
    method: IntervalMethod
    bias: BiasSettings
    _latest: dict[bytes, Resamples] = field(default_factory=dict)

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
        add_slice_rows(rows, labels, view, shared)
        add_rater_slice_rows(rows, view, shared, request.people)
    add_coverage_rows(rows, labels, shared)
    if labels.has_verdicts:
        # The last view is the binary verdict.
        _add_verdict_rows(rows, labels, shared, kappas)
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


def _views(labels: LabelMatrix) -> list[Coded]:
    """The readings of the labels: the categories, and the binary verdict where there is one."""
    categories = [labels.on_categories()]
    return [*categories, labels.on_verdicts()] if labels.has_verdicts else categories


def _add_verdict_rows(
    rows: ResultRows, labels: LabelMatrix, shared: Resamples, kappas: KappaMeans
) -> None:
    """What speaks of the binary verdict only: thresholds, probabilities, the pair rule, scores."""
    add_threshold_rows(rows, labels, shared, kappas)
    add_probability_rows(rows, labels, shared)
    overall = labels
    if labels.scale.unit == "response" and labels.side.max(initial=-1) >= 0:
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
