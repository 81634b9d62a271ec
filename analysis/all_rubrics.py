"""From two tables to results, verdicts and notes: the one entry into the analysis."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from evenhand.analysis.labels.counted import one_version
from evenhand.analysis.labels.scale import Scale
from evenhand.analysis.one_rubric import RubricAnalysis, RubricTask, analyse_rubric
from evenhand.analysis.people.disagreements import GraderDisagreement
from evenhand.analysis.people.ensembles import check_ensembles
from evenhand.analysis.people.slices import members_of
from evenhand.analysis.planning.g_study import VarianceComponents
from evenhand.analysis.request import Request
from evenhand.analysis.results import ResultRow, results_table
from evenhand.analysis.study_facts import StudyFacts
from evenhand.analysis.thresholds.in_force import ThresholdInForce
from evenhand.analysis.verdicts.judge import Verdict
from evenhand.analysis.verification import (
    Libraries,
    Verification,
    in_this_process,
    libraries_are_here,
)
from evenhand.errors import InputError
from evenhand.study.settings.analysis import (
    SEED,
    AnalysisSettings,
    DecisionSettings,
    with_changes,
)
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import validate_ratings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis", "AnalysisSettings", "DecisionSettings", "analyse"]

MAX_NAMED = 12
"""So many people are named in a message."""
_SETTINGS, _DECISION, _FACTS = AnalysisSettings(), DecisionSettings(), StudyFacts()


@dataclass(frozen=True)
class Analysis:
    """What an analysis found: the rows of the `results` table, a verdict per rubric and grader,
    notes, and the units where graders and people differ most."""

    rows: list[ResultRow]
    verdicts: list[Verdict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    verification: Verification | None = None
    settings: AnalysisSettings = _SETTINGS
    decision: DecisionSettings = _DECISION
    components: dict[str, VarianceComponents] = field(default_factory=dict)
    """By rubric, where people's labels differ: units, raters, the rest (`generalizability`)."""
    disagreements: list[GraderDisagreement] = field(default_factory=list)
    thresholds: list[ThresholdInForce] = field(default_factory=list)
    cluster_nouns: dict[str, str] = field(default_factory=dict)
    """By rubric, what a cluster is called in a sentence."""
    orders: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """By rubric and grader, in which orders it read pairs, where that is known."""

    @property
    def rule(self) -> str:
        """What a grader had to meet, in words."""
        return self.decision.rule(self.settings.margin)

    @cached_property
    def results(self) -> pd.DataFrame:
        """The rows as the `results` table of the contract."""
        return results_table(self.rows)


def analyse(
    ratings: pd.DataFrame,
    units: pd.DataFrame | None,
    scales: Mapping[str, Scale] | Iterable[Scale],
    settings: AnalysisSettings = _SETTINGS,
    decision: DecisionSettings = _DECISION,
    *,
    facts: StudyFacts = _FACTS,
    seed: int = SEED,
    verify: bool | Libraries = False,
    why: bool = False,
    pool: Executor | None = None,
    on_stage: Callable[[str], None] | None = None,
    **changes: object,
) -> Analysis:
    """Everything that can be said of how the raters in `ratings` agree.

    `ratings` and `units` are the two tables of the contract; without `units` every unit is its own
    cluster and there are no subjects. `scales` declares each rubric's categories. `settings` and
    `decision` are the sections `[analysis]` and `[decision]` of study.toml, which say of each
    setting what it does; `changes` are single fields of either, such as `slices=["topic"]` or
    `margin=0.05`. `facts` is what else is known of the ratings, `seed` fixes all resampling.

    Intervals come from bootstrap draws of clusters: prompt pairs, the units column named by
    `cluster`, or with "unit" single units (see `analysis.bootstrap.intervals`). On request the main
    figures (people's agreement, each grader's with them, the ceiling differences) are repeated: for
    every value of the units columns `slices`; for the humans of every value of the columns
    `rater_slices` of `facts.raters`; with at = "cluster=COLUMN", with intervals from resampling the
    clusters of `sensitivity_cluster`; and under the subset "raters=all", with those whom
    `facts.excluded` leaves out. The slices and groups of people are audited for bias too.

    `variants` are units columns that tell variants of one question apart: how stable are labels
    from one to the next (see `analysis.agreement.stability`)? A scale that is a `variant_of`
    another one shows how stable raters are under that one, and nothing else unless people labelled
    under it. `groups` are units columns that say whom a unit is about: does a grader fail one group
    (see `analysis.people.group_gap`)?

    With `verify` estimates are checked against scikit-learn, krippendorff and statsmodels,
    which costs the time to load them, where these are installed (see `analysis.verification`);
    unless `verify` says itself who asks them. With
    `why` the variance of people's labels is split, too: do they differ by unit, by rater, or
    otherwise? With a `pool` of processes rubrics are analysed side by side there; they share
    nothing. `on_stage` is told what is being done.

    Raises InputError where the tables do not hold together, a label lies outside its scale, a
    rubric has no scale, ratings of several versions of one rubric would be mixed, a column to
    slice by is not there or has more than 50 values, or a setting is unknown or out of range.

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
    settings, decision = with_changes(settings, decision, changes)
    libraries = (in_this_process if verify is True else verify) or None
    libraries = libraries if libraries_are_here() else None
    request = Request(
        units=units,
        settings=settings,
        decision=decision,
        facts=facts,
        seed=seed,
        people=members_of(facts.raters, settings.rater_slices, settings.slices),
        why=why,
    )
    declared = _by_name(scales)
    ratings = _with_rubrics(validate_ratings(ratings, facts.source), declared, facts.source)
    graders = set(ratings.loc[ratings["rater_kind"] == "model", "rater_id"].unique())
    _check_reference(decision.reference, ratings)
    check_ensembles(settings.ensembles, graders)
    counted, notes = _versions(ratings, declared, facts.rubric_hashes)

    tasks = [
        RubricTask(
            scale,
            counted[name],
            [(other, counted[other.name]) for other in _wordings(scale, declared)],
            request,
            judge=not _is_wording(scale, declared),
            verify=libraries,
        )
        for name, scale in declared.items()
        if not _is_wording(scale, declared) or _has_people(counted[name])
    ]
    analysed = iter((pool.map if pool else map)(analyse_rubric, tasks))
    found = []
    for place, task in enumerate(tasks, start=1):
        if on_stage:
            on_stage(f"analysing {task.scale.name or 'labels'} ({place} of {len(tasks)})")
        found.append(next(analysed))
    return _together(found, notes, request, verify=libraries is not None)


def _together(
    found: Sequence[RubricAnalysis], notes: Sequence[str], request: Request, *, verify: bool
) -> Analysis:
    """The rubrics' analyses as one."""
    verification = sum((each.verification for each in found), Verification())
    return Analysis(
        rows=[row for each in found for row in each.rows.rows.values()],
        verdicts=[verdict for each in found for verdict in each.verdicts],
        notes=[*notes, *(note for each in found for note in each.notes)],
        verification=verification if verify else None,
        settings=request.settings,
        decision=request.decision,
        components={each.rows.rubric: each.components for each in found if each.components},
        disagreements=[one for each in found for one in each.disagreements],
        thresholds=[one for each in found for one in each.thresholds],
        cluster_nouns={each.rows.rubric: each.cluster_noun for each in found},
        orders={each.rows.rubric: each.orders for each in found if each.orders},
    )


def _versions(
    ratings: pd.DataFrame,
    declared: Iterable[str],
    accepted: Mapping[str, Collection[str]] | None,
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Every rubric's ratings that count, and notes on those set aside."""
    counted: dict[str, pd.DataFrame] = {}
    notes: list[str] = []
    for name in declared:
        own = ratings[ratings["rubric"] == name]
        counted[name], about = one_version(
            own, name, None if accepted is None else accepted.get(name)
        )
        notes += about
    return counted, notes


def _wordings(scale: Scale, declared: Mapping[str, Scale]) -> list[Scale]:
    """The other wordings of a rubric among those declared."""
    return [each for each in declared.values() if scale.name and each.variant_of == scale.name]


def _is_wording(scale: Scale, declared: Mapping[str, Scale]) -> bool:
    """Whether a scale words another of those declared differently."""
    return bool(scale.variant_of) and scale.variant_of in declared


def _has_people(ratings: pd.DataFrame) -> bool:
    """Without people's labels another wording only shows how stable graders are."""
    return bool(ratings["rater_kind"].eq("human").any())


def _check_reference(reference: str, ratings: pd.DataFrame) -> None:
    """Refuse a reference who is not there, or is a model."""
    others = ratings.loc[ratings["rater_kind"] != "model", "rater_id"].drop_duplicates()
    if reference and reference not in set(others):
        known = ", ".join(sorted(others)[:MAX_NAMED]) or "nobody"
        raise InputError(
            f"reference is {reference!r}, which is no person or adjudicator here; there are {known}"
        )


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
