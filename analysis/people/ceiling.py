"""Human ceiling: does a grader agree with humans as well as humans agree with each other?

Also the two baselines that any grader has to beat: always the humans' most frequent category, and
random labels at the humans' prevalence.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from evenhand.analysis.agreement.counts import category_shares, label_counts
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    MeanOverPairs,
    RunningMean,
    deciding_kappa,
    pair_statistics,
    shared_units,
)
from evenhand.analysis.bootstrap.intervals import Interval
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Remark, join_notes
from evenhand.analysis.people.crowds import is_crowd, pooled_kappas, said_beside
from evenhand.analysis.results import BASELINES, ResultRows
from evenhand.analysis.statistics import entry_for
from evenhand.analysis.types import Array, Mask
from evenhand.analysis.writer import Writer

CEILING = "human_ceiling_difference"
TOO_FEW_HUMANS = Remark("too_few_shared_by_humans", (MIN_SHARED_UNITS,))
TOO_FEW_UNITS = Remark("too_few_shared_by_grader", (MIN_SHARED_UNITS,))


def add_ceiling_rows(rows: ResultRows, kappas: KappaMeans, kind: str = "model") -> None:
    """Add `human_ceiling_difference` of every grader, or of the raters of another kind.

    The difference is the grader's mean kappa with humans minus the humans' mean kappa among
    themselves, both on the units that the grader labelled and in the same resamples; means over
    pairs of raters that share at least 30 of those units.
    """
    coded = kappas.coded
    out = Writer.of(rows, coded, kappas.resamples)
    for grader in coded.members(kind):
        within = coded.labelled[:, grader]
        beside = coded.people_beside(grader)
        mean = _with_humans(kappas, grader)
        people = _among_humans(kappas, within, beside)
        if (mean is None or people is None) and is_crowd(coded, kappas.resamples, grader):
            _add_pooled(out, kappas, grader)
            continue
        _add_difference(out, coded, coded.raters[grader], within, mean, people, beside)


def add_baseline_ceiling_rows(rows: ResultRows, kappas: KappaMeans) -> None:
    """Add `human_ceiling_difference` of the baselines, on all units."""
    coded, resamples = kappas.coded, kappas.resamples
    out = Writer.of(rows, coded, resamples)
    kappa = pair_statistics(coded)[deciding_kappa(coded)]
    everywhere, humans = np.ones(len(coded.codes), dtype=bool), coded.members("human")
    steady = _steady_humans(coded, resamples)
    for name, share in baselines(coded, resamples).items():
        mean = None
        if steady:
            mean = _plain_mean(kappa(_baseline_tables(coded, resamples, steady, share)))
        people = _among_humans(kappas, everywhere, humans)
        _add_difference(out, coded, name, everywhere, mean, people, humans)


def add_baseline_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add observed agreement and kappa of the two baselines with the humans.

    A baseline's labels do not depend on the unit, so that its table with a human is the product of
    the human's counts and the baseline's shares: expected values, with no random labels drawn.
    """
    out = Writer.of(rows, coded, resamples)
    humans = _steady_humans(coded, resamples) or coded.members("human")
    units = out.count(coded.labelled_by_any(humans))
    over = "1 human" if len(humans) == 1 else f"mean over {len(humans)} humans"
    panel = pair_statistics(coded)
    wanted = ["observed_agreement", "cohen_kappa", deciding_kappa(coded)]
    names = dict.fromkeys(each for each in wanted if each in panel)
    for name, share in baselines(coded, resamples).items():
        tables = _baseline_tables(coded, resamples, humans, share)
        about = join_notes(_description(coded, share), over)
        for statistic in names:
            mean = _plain_mean(panel[statistic](tables))
            constant = name == BASELINES[0] and entry_for(statistic).own_margins
            note = join_notes(Remark("constant_rater") if constant else "", about)
            lost = mean.undefined
            out.add(statistic, mean.values, units, a="humans", b=name, note=note, undefined=lost)


def with_and_among_humans(
    kappas: KappaMeans, retuned: Coded, grader: int
) -> tuple[MeanOverPairs | None, MeanOverPairs | None]:
    """Return both sides of the ceiling difference for other verdicts of a grader.

    `retuned` differs in that grader's codes only, and labels the same units: the humans' side is
    taken from `kappas`, which may have it already. None where too few units are shared.
    """
    kind = deciding_kappa(retuned)
    mean = _with_humans(KappaMeans(retuned, kappas.resamples, [kind]), grader)
    within = retuned.labelled[:, grader]
    return mean, _among_humans(kappas, within, retuned.people_beside(grader))


def _with_humans(kappas: KappaMeans, grader: int) -> MeanOverPairs | None:
    coded, within = kappas.coded, kappas.coded.labelled[:, grader]
    shared = shared_units(coded, kappas.resamples, within)
    pairs = [
        (human, grader)
        for human in coded.people_beside(grader)
        if shared[human, grader] >= MIN_SHARED_UNITS
    ]
    return kappas.over(pairs, within)[deciding_kappa(coded)] if pairs else None


def _among_humans(kappas: KappaMeans, within: Mask, humans: Sequence[int]) -> MeanOverPairs | None:
    shared = shared_units(kappas.coded, kappas.resamples, within)
    pairs = [pair for pair in combinations(humans, 2) if shared[pair] >= MIN_SHARED_UNITS]
    return kappas.over(pairs, within)[deciding_kappa(kappas.coded)] if pairs else None


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


def _baseline_tables(
    coded: Coded, resamples: Resamples, humans: Sequence[int], share: Array
) -> Array:
    """Return expected tables (rows, humans, q, q) of each human with the baseline."""
    chosen = coded.spread(coded.codes[:, list(humans)])
    units = chosen.reshape(len(chosen), -1)
    totals = resamples.sums(coded.clusters, units)
    tables: Array = totals.reshape(-1, len(humans), coded.width)[..., None] * (share @ coded.sides)
    return tables


def _steady_humans(coded: Coded, resamples: Resamples) -> tuple[int, ...]:
    """Return the humans with enough units to count in a mean over raters."""
    labels = shared_units(coded, resamples).diagonal()
    return tuple(human for human in coded.members("human") if labels[human] >= MIN_SHARED_UNITS)


def _add_pooled(out: Writer, kappas: KappaMeans, grader: int) -> None:
    """Add the difference from all pairs of labels, where no two humans share enough units."""
    coded = kappas.coded
    first, second = pooled_kappas(coded, kappas.resamples, grader)
    said = said_beside(coded, kappas.resamples, grader, pooled=True)
    several = np.asarray((said >= 0).any(axis=1))
    if out.count(several)[0] < MIN_SHARED_UNITS:
        few, units = Interval.undefined(TOO_FEW_HUMANS), out.count(several)
        out.add_interval(CEILING, few, units, a="humans", b=coded.raters[grader])
        return
    note = join_notes(
        Remark("pooled_pairs"), f"with humans {first[0]:.4g}; between humans {second[0]:.4g}"
    )
    out.add(CEILING, first - second, several, a="humans", b=coded.raters[grader], note=note)


def _add_difference(
    out: Writer,
    coded: Coded,
    grader: str,
    within: Mask,
    mean: MeanOverPairs | None,
    people: MeanOverPairs | None,
    humans: Sequence[int],
) -> None:
    if not humans:
        return
    units = out.count(within & coded.labelled_by_any(humans))
    if mean is None or people is None:
        few = Interval.undefined(TOO_FEW_UNITS if mean is None else TOO_FEW_HUMANS)
        out.add_interval(CEILING, few, units, a="humans", b=grader)
        return
    kind = "unweighted" if coded.level == "nominal" else "quadratic"
    note = (
        f"{kind} kappa: with humans {mean.values[0]:.4g}, {mean.over}; "
        f"between humans {people.values[0]:.4g}, {people.over}"
    )
    apart, lost = mean.values - people.values, max(mean.undefined, people.undefined)
    out.add(CEILING, apart, units, a="humans", b=grader, note=note, undefined=lost)


def _plain_mean(values: Array) -> MeanOverPairs:
    mean = RunningMean(len(values))
    mean.add(values)
    return mean.result()


def _description(coded: Coded, share: Array) -> str:
    if share.max() == 1.0:
        return f"always {coded.categories[int(share.argmax())]}"
    if coded.is_number:
        return "expected value where numbers are drawn from people's"
    drawn = ", ".join(
        f"{category} {part:.3f}" for category, part in zip(coded.categories, share, strict=True)
    )
    return f"expected value at {drawn}"
