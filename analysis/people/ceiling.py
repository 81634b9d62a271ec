"""Human ceiling: does a grader agree with humans as well as humans agree with each other?

Also the two baselines that any grader has to beat: always the humans' most frequent category, and
random labels at the humans' prevalence.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.analysis.agreement.coefficients import category_shares, label_counts
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    MeanOverTables,
    Overlap,
    PairStatistic,
    compared_units,
    deciding_kappa,
    expected_cells,
    means_of,
    means_with,
    pair_statistics,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Bootstrap, Resamples
from evenhand.analysis.labels.encoding import (
    cluster_codes,
    coded_raters,
    encode_column,
    encode_labels,
    same_length,
)
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.labels.scale import Level
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.types import Array, Column, Mask
from evenhand.analysis.writer import About, View
from evenhand.errors import InputError

CEILING = "human_ceiling_difference"
TOO_FEW_HUMANS = Remark("too_few_shared_by_humans", (MIN_SHARED_UNITS,))
TOO_FEW_UNITS = Remark("too_few_shared_by_grader", (MIN_SHARED_UNITS,))


def add_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of every grader. The difference is the grader's kappa with
    humans minus the humans' kappa with one another, both on the units with labels of the grader and
    two humans, with the same weights (`analysis.agreement.pairs`) and in the same resamples.
    """
    coded, kappas = view.coded, view.once(KappaMeans)
    for grader in coded.members("model"):
        if coded.people_beside(grader):
            compared = with_and_among_humans(kappas, coded, grader)
            _add_difference(view, coded.raters[grader], *compared)


def add_baseline_ceiling_rows(view: View) -> None:
    """Add `human_ceiling_difference` of the baselines, on all units that two humans labelled."""
    coded, humans, kappa = view.coded, view.coded.members("human"), deciding_kappa(view.coded)
    if not humans:
        return
    units = np.asarray(coded.labelled[:, list(humans)].sum(axis=1) >= 2)
    enough = view.count(units)[0] >= MIN_SHARED_UNITS
    among = view.once(KappaMeans).among(humans)[kappa] if enough else None
    statistics = {kappa: pair_statistics(coded)[kappa]}
    for name, share in view.once(baselines).items():
        mean = _baseline_means(view, units, share, statistics)[kappa] if enough else None
        _add_difference(view, name, units, mean, among)


def add_baseline_rows(view: View) -> None:
    """Add observed agreement and kappa of the two baselines with the humans. A baseline's labels do
    not depend on the unit, so that its table with a human is the product of the human's counts and
    the baseline's shares: expected values, with no random labels drawn.
    """
    coded, humans = view.coded, view.coded.members("human")
    number = coded.labelled[:, list(humans)].sum(axis=1)
    twice = np.asarray(number >= 2)
    units = twice if view.count(twice)[0] >= MIN_SHARED_UNITS else np.asarray(number >= 1)
    panel = pair_statistics(coded)
    wanted = dict.fromkeys(["observed_agreement", "cohen_kappa", deciding_kappa(coded)])
    statistics = {name: panel[name] for name in wanted if name in panel}
    for name, share in view.once(baselines).items():
        means = _baseline_means(view, units, share, statistics)
        people = int(coded.labelled[units][:, list(humans)].any(axis=0).sum())
        over = "1 human" if people == 1 else f"mean over {people} humans"
        shares = zip(coded.categories, share, strict=True)
        if share.max() == 1.0:
            given = f"always {coded.categories[int(share.argmax())]}"
        elif coded.is_number:
            given = "expected value where numbers are drawn from annotators'"
        else:
            drawn = ", ".join(f"{category} {part:.3f}" for category, part in shares)
            given = f"expected value at {drawn}"
        about = join_notes(given, over)
        for statistic, mean in means.items():
            constant = name == BASELINES[0] and entry_for(statistic).own_margins
            note = join_notes(Remark("constant_rater") if constant else "", about)
            of = About(a="humans", b=name, note=note)
            view.add(statistic, mean.values, units, undefined=mean.undefined, **of)


def with_and_among_humans(
    kappas: KappaMeans, coded: Coded, grader: int, least: int = 2
) -> tuple[Mask, MeanOverTables | None, MeanOverTables | None]:
    """Return the compared units (units,) and both sides of the ceiling difference of a grader.

    `coded` are the labels of `kappas`, but perhaps for those of this grader, on the same units: the
    humans' side is taken from `kappas`, which may have it already. The grader's side is None on
    fewer than 30 units, the humans' side too where few units have two humans' labels, or with
    `least` = 1.
    """
    resamples, kappa = kappas.resamples, deciding_kappa(coded)
    people = coded.people_beside(grader)
    units, both = compared_units(coded, resamples, people, grader, least)
    if resamples.count(coded.clusters, units)[0] < MIN_SHARED_UNITS:
        return units, None, None
    overlap = Overlap.of(coded, resamples, people, units)
    statistics = {kappa: pair_statistics(coded)[kappa]}
    mean = means_with(overlap, coded.codes[:, grader], resamples, statistics)[kappa]
    return units, mean, kappas.among(people, units)[kappa] if both else None


def baselines(coded: Coded, resamples: Resamples) -> dict[str, Array]:
    """Return the baselines' shares of the categories (q,), computed from the humans' labels. The
    constant one says what people say most often, of numbers the one nearest to their mean.
    """
    humans = coded.members("human")
    if not coded.labelled_by_any(humans).any():
        return {}
    prevalence = category_shares(label_counts(coded, humans), coded, resamples)[0]
    constant = np.zeros(coded.q)
    usual = np.abs(np.asarray(coded.values) - prevalence @ coded.values).argmin()
    constant[usual if coded.is_number else prevalence.argmax()] = 1.0
    return dict(zip(BASELINES, (constant, prevalence), strict=True))


def _baseline_means(
    view: View, units: Mask, share: Array, statistics: dict[str, PairStatistic]
) -> dict[str, MeanOverTables]:
    """Means over the humans of statistics of expected tables with a baseline, as `means_with`."""
    coded, resamples = view.coded, view.resamples
    overlap = Overlap.of(coded, resamples, coded.members("human"), units)
    constant = np.zeros(len(units), dtype=np.intp)
    chunks = overlap.with_rater(constant, len(resamples))
    expected = (expected_cells(coded, features, share) for features in chunks)
    return means_of(overlap, expected, resamples, statistics)


def _add_difference(
    view: View, grader: str, units: Mask, mean: MeanOverTables | None, people: MeanOverTables | None
) -> None:
    counts, coded = view.count(units), view.coded
    if mean is None or people is None:
        few = Interval.undefined(TOO_FEW_UNITS if mean is None else TOO_FEW_HUMANS)
        view.add(CEILING, few, counts, a="humans", b=grader)
        return
    kind = "unweighted" if coded.level == "nominal" else coded.ordered
    text = "; ".join(
        ", ".join(filter(None, (f"{whom} humans {kappa.values[0]:.4g}", kappa.over)))
        for whom, kappa in (("with", mean), ("between", people))
    )
    note = join_notes(Remark("pooled_pairs") if mean.pooled else "", f"{kind} kappa: {text}")
    apart, lost = mean.values - people.values, max(mean.undefined, people.undefined)
    view.add(CEILING, apart, counts, a="humans", b=grader, note=note, undefined=lost)


@dataclass(frozen=True, kw_only=True)
class CeilingDifference(Interval):
    """A grader's mean kappa with humans minus the humans' among themselves, with its 95% interval:
    where `low` lies above -margin, the grader is not inferior to humans by that margin.

    `note` explains any NaN, and names the kappas that the difference is of.
    """

    n_units: int
    n_clusters: int


def human_ceiling(
    humans: Any,
    grader: Any,
    *,
    categories: Column[Hashable],
    level: Level = "nominal",
    clusters: Column[Hashable] | None = None,
    bootstrap: Bootstrap | None = None,
) -> CeilingDifference:
    """Estimate `human_ceiling_difference` from a grader's and humans' plain labels.

    The grader's are (units,), the humans' (units, raters).

    Unweighted kappa on the nominal level, linear weights on the others; each unit with labels of
    the grader and two humans counts once (`analysis.agreement.pairs`). The interval resamples
    `clusters` (units,), or else units, jointly for all raters.

    >>> humans = [["a", "a"], ["b", "b"], ["a", "b"], ["b", "b"]] * 10
    >>> found = human_ceiling(humans, [row[0] for row in humans], categories="ab")
    >>> round(found.estimate, 3), found.low > -0.1
    (0.25, True)
    """
    people, grades = encode_labels(humans, categories), encode_column(grader, categories)
    same_length(people, grades)
    coded = coded_raters(people, grades[:, None], categories, level)
    coded = replace(coded, clusters=cluster_codes(clusters, len(grades)))
    resamples = (bootstrap or Bootstrap()).draw(np.ones(int(coded.clusters.max()) + 1))
    rows = ResultRows("")
    rows.know_chance(coded, resamples)
    view = View.of(rows, coded, resamples)
    view.known[KappaMeans] = KappaMeans(coded, resamples, [deciding_kappa(coded)])
    add_ceiling_rows(view)
    row = rows.get(CEILING, "humans", coded.raters[-1])
    if row is None:
        raise InputError("there is no human to compare with; give labels (units, raters)")
    fields = row["estimate"], row["low"], row["high"], row["remarks"]
    return CeilingDifference(*fields, n_units=row["n_units"], n_clusters=row["n_clusters"])
