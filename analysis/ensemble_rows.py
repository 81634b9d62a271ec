"""Ensembles beside their members: the average single grader, the best one, and the ensemble.

The comparison of Feng et al. (2023, Table 6). The best single grader is chosen on other clusters
than those that it is judged on, by its kappa with people's majority; else it would look better than
it is, and the ensemble worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from analysis import coefficients as c
from analysis.ceiling import add_ceiling_rows
from analysis.consensus import majority_codes
from analysis.encoding import Coded, LabelMatrix
from analysis.ensembles import ENSEMBLE, Ensemble, with_ensembles
from analysis.folds import folds
from analysis.groups import label_counts
from analysis.pair_rows import add_humans_rows
from analysis.pairs import (
    KappaMeans,
    deciding_kappa,
    eligible_pairs,
    pair_statistics,
    pair_tables,
    shared_units,
)
from analysis.resampling import Resamples
from analysis.results import ResultRows, join_notes

__all__ = ["AVERAGE", "BEST", "DIFFERENCE", "TOGETHER", "add_ensemble_rows"]

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.intp]

AVERAGE, BEST, TOGETHER = "average_single", "best_single", "ensemble"
DIFFERENCE = f"{TOGETHER}-{BEST}"


def add_ensemble_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    coded: Coded,
    resamples: Resamples,
    wanted: Sequence[Sequence[str]] = (),
) -> None:
    """Every ensemble (`rater_b`) beside its members, on the units that all of them labelled.

    `ensemble_agreement`, `ensemble_kappa` and `ensemble_balanced_accuracy` are with people's
    majority, `ensemble_mean_kappa` is the mean over people; `at` is `average_single`,
    `best_single` (chosen on other folds), `ensemble`, or `ensemble-best_single`, the difference in
    the same resamples. Ensembles also have agreement and kappa with people and their
    `human_ceiling_difference`, on all units that they have a label for.
    """
    if not coded.members("human"):
        return
    extended, found = with_ensembles(labels, coded, wanted)
    if not found:
        return
    names = tuple(dict.fromkeys(["observed_agreement", "cohen_kappa", deciding_kappa(coded)]))
    kappas = KappaMeans(extended, resamples, [deciding_kappa(coded)])
    add_humans_rows(rows, extended, resamples, names=names, kind=ENSEMBLE)
    add_ceiling_rows(rows, kappas, kind=ENSEMBLE)
    for ensemble in found:
        _add_beside_members(rows, extended, resamples, ensemble)


def _add_beside_members(
    rows: ResultRows, coded: Coded, resamples: Resamples, ensemble: Ensemble
) -> None:
    people = majority_codes(label_counts(coded, coded.members("human")))
    within = (ensemble.codes >= 0) & coded.labelled[:, list(ensemble.members)].all(axis=1)
    judged = within & (people >= 0)
    numbers = resamples.count(coded.clusters, judged)
    best, chosen = _best_single(coded, resamples, ensemble.members, people, judged)
    tied, _ = resamples.count(coded.clusters, ensemble.tied)
    about = join_notes(
        f"{len(ensemble.members)} graders", f"{tied} tied units left out" if tied else ""
    )
    notes = {AVERAGE: about, BEST: chosen, TOGETHER: about, DIFFERENCE: "held out"}
    columns = [coded.codes[:, list(ensemble.members)], best[:, None], ensemble.codes[:, None]]
    beside = replace(
        coded,
        raters=(*coded.raters, "people", *("",) * (len(ensemble.members) + 2)),
        kinds=(*coded.kinds, *("left out",) * (len(ensemble.members) + 3)),
        codes=np.column_stack([coded.codes, people, *columns]).astype(np.int8),
    )
    first = len(coded.raters)
    with_people = _with_people(beside, resamples, first, judged)
    with_people["ensemble_mean_kappa"] = _mean_kappas(beside, resamples, first + 1, within)
    for statistic, values in with_people.items():
        single, held_out, together = values[:, :-2].mean(axis=1), values[:, -2], values[:, -1]
        shown = {
            AVERAGE: single,
            BEST: held_out,
            TOGETHER: together,
            DIFFERENCE: together - held_out,
        }
        for at, replicates in shown.items():
            rows.add(
                statistic,
                resamples.interval(
                    replicates,
                    numbers[1],
                    reason="no_variation" if numbers[0] else "no_pairable_units",
                ),
                numbers,
                rater_a="humans",
                rater_b=ensemble.name,
                subset=coded.subset,
                at=at,
                note=notes[at],
            )


def _with_people(
    coded: Coded, resamples: Resamples, people: int, within: npt.NDArray[np.bool_]
) -> dict[str, Array]:
    """Each later rater with people's majority, which is the rater `people`: (rows, raters)."""
    pairs = [(people, rater) for rater in range(people + 1, len(coded.raters))]
    tables = pair_tables(coded, pairs, resamples, within)
    panel = pair_statistics(coded)
    return {
        "ensemble_agreement": c.observed_agreement(tables),
        "ensemble_kappa": panel[deciding_kappa(coded)](tables),
        "ensemble_balanced_accuracy": c.balanced_accuracy(tables),
    }


def _mean_kappas(
    coded: Coded, resamples: Resamples, first: int, within: npt.NDArray[np.bool_]
) -> Array:
    """Each rater's from `first` mean kappa with people: (rows, raters)."""
    kind = deciding_kappa(coded)
    kappas = KappaMeans(coded, resamples, [kind])
    shared = shared_units(coded, resamples, within)
    means = []
    for rater in range(first, len(coded.raters)):
        pairs, _ = eligible_pairs([(human, rater) for human in coded.members("human")], shared)
        means.append(kappas.over(pairs, within)[kind].values)
    return np.column_stack(means)


def _best_single(
    coded: Coded,
    resamples: Resamples,
    members: tuple[int, ...],
    people: Codes,
    judged: npt.NDArray[np.bool_],
) -> tuple[npt.NDArray[np.int8], str]:
    """On each fold of the judged units the labels of the member that is best on the other folds.

    Codes (units,), -1 elsewhere; and how often each member was chosen.
    """
    codes = np.full(len(coded.codes), -1, dtype=np.int8)
    units = np.flatnonzero(judged)
    fold = folds(coded.clusters[units])
    count = int(fold.max(initial=0)) + 1
    if count < 2:
        return codes, "too few clusters to choose on"
    tables = np.stack(
        [_tables_by_fold(coded, resamples, units, fold, people, member) for member in members],
        axis=1,
    )
    kappas = pair_statistics(coded)[deciding_kappa(coded)](tables.sum(axis=0) - tables)
    best = np.where(np.isnan(kappas), -np.inf, kappas).argmax(axis=1)
    codes[units] = coded.codes[units, np.asarray(members)[best[fold]]]
    times = np.bincount(best, minlength=len(members))
    listed = ", ".join(
        f"{coded.raters[members[at]]} {times[at]}" for at in np.argsort(-times) if times[at]
    )
    return codes, f"chosen on other folds, of {count}: {listed}"


def _tables_by_fold(
    coded: Coded, resamples: Resamples, units: Codes, fold: Codes, people: Codes, member: int
) -> Array:
    """Contingency tables (folds, q, q) of people's majority and one member."""
    q = coded.q
    cell = fold * q * q + people[units] * q + coded.codes[units, member]
    weights = resamples.frequency[coded.clusters[units]]
    size = (int(fold.max()) + 1) * q * q
    return np.bincount(cell, weights, minlength=size).astype(float).reshape(-1, q, q)
