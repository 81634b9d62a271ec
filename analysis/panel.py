"""From two tables to results, verdicts and notes: the one entry into the analysis."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from analysis.ceiling import add_baseline_rows, add_ceiling_rows
from analysis.combine import combine_readings
from analysis.comparison import add_grader_comparison_rows, add_leniency_rows
from analysis.coverage import add_coverage_rows, add_unscored_rows
from analysis.encoding import LabelMatrix, encode
from analysis.groups import add_group_rows, add_prevalence_rows
from analysis.overall import add_overall_rows
from analysis.pair_rule import pair_verdicts
from analysis.pairs import MAX_LISTED_RATERS, KappaMeans, add_humans_rows, add_pair_rows
from analysis.resampling import Resamples
from analysis.results import ResultRows
from analysis.scale import Scale
from analysis.thresholds import add_threshold_rows
from analysis.verdicts import Verdict, judge_graders
from analysis.versions import one_version
from rubrics.errors import InputError
from study.tables import FIRST_ROW, validate_ratings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "analyse"]

RESAMPLES = 2000
SEED = 20231206
MARGIN = 0.1


@dataclass(frozen=True)
class Analysis:
    """What an analysis found: the `results` table, a verdict per rubric and grader, and notes."""

    results: pd.DataFrame
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def analyse(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scales: Mapping[str, Scale] | Iterable[Scale],
    *,
    margin: float = MARGIN,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    cluster: str = "pair",
    rubric_hashes: Mapping[str, Collection[str]] | None = None,
    source: str = "ratings",
) -> Analysis:
    """Everything that can be said of how the raters in `ratings` agree.

    `ratings` and `units` are the two tables of the contract; without `units` every unit is its own
    cluster and there are no subjects. `scales` declares each rubric's categories. A grader may
    stand in for people if the lower bound of its `human_ceiling_difference` lies above `-margin`
    (and more, see `analysis.verdicts`). Intervals come from `resamples` bootstrap draws of
    clusters: prompt pairs, or the units column named by `cluster`. `rubric_hashes` names, by
    rubric, the versions whose ratings count; `source` is what messages call the ratings.

    Raises InputError where the tables do not hold together, a label lies outside its scale, a
    rubric has no scale, or ratings of several versions of one rubric would be mixed.

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

    if resamples < 1 or not 0 < margin < 2:
        raise InputError(
            f"resamples is {resamples} and margin is {margin}; "
            "resamples must be 1 or more and the margin between 0 and 2"
        )
    declared = _by_name(scales)
    ratings = _with_rubrics(validate_ratings(ratings, source), declared, source)
    parts: list[ResultRows] = []
    verdicts: list[Verdict] = []
    notes: list[str] = []
    # Threads on products this skinny cost more than they bring.
    with threadpool_limits(limits=1, user_api="blas"):
        for name, scale in declared.items():
            accepted = None if rubric_hashes is None else rubric_hashes.get(name)
            own, about = one_version(ratings[ratings["rubric"] == name], name, accepted)
            notes += about
            if own.empty:
                notes.append(f"{name or 'the rubric'}: no ratings")
                continue
            labels = encode(combine_readings(own, scale, source), scale, units, cluster)
            if len(labels.raters) > MAX_LISTED_RATERS:
                notes.append(
                    f"{name or 'the rubric'}: {len(labels.raters)} raters; "
                    f"above {MAX_LISTED_RATERS} pairs of raters appear pooled only"
                )
            rows = _rubric_rows(labels, resamples, seed)
            parts.append(rows)
            noun = _cluster_noun(units, cluster, scale)
            verdicts += judge_graders(rows, labels, margin=margin, cluster_noun=noun)
    return Analysis(ResultRows.frame(parts), verdicts, notes)


def _rubric_rows(labels: LabelMatrix, resamples: int, seed: int) -> ResultRows:
    """All rows of one rubric, on the same resamples."""
    rows = ResultRows(labels.scale.name)
    labels, frequency = labels.folded()
    shared = Resamples(frequency, resamples, np.random.default_rng(seed))
    views = [labels.on_categories()]
    if labels.has_verdicts:
        views.append(labels.on_verdicts())
    for view in views:
        add_pair_rows(rows, view, shared)
        add_humans_rows(rows, view, shared)
        kappas = KappaMeans(view, shared)
        add_group_rows(rows, kappas)
        add_prevalence_rows(rows, view, shared)
        add_baseline_rows(rows, view, shared)
        add_ceiling_rows(rows, kappas)
        add_grader_comparison_rows(rows, kappas)
        add_leniency_rows(rows, kappas)
        add_unscored_rows(rows, labels, view, shared)
    add_coverage_rows(rows, labels, shared)
    if labels.has_verdicts:
        _add_verdict_rows(rows, labels, shared)
    return rows


def _add_verdict_rows(rows: ResultRows, labels: LabelMatrix, shared: Resamples) -> None:
    """What speaks of the binary verdict only: thresholds, the pair rule, overall scores."""
    add_threshold_rows(rows, labels, shared)
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
            f"{source}, row {at + FIRST_ROW}: no scale is declared for the rubric "
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
