"""Ensembles beside their members: the average single grader, the best one, and the ensemble.

The comparison of Feng et al. (2023, Table 6). The best single grader is chosen on other clusters
than those that it is judged on, by its kappa with people's majority; else it would look better than
it is, and the ensemble worse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis import coefficients as c
from analysis.ceiling import add_ceiling_rows
from analysis.consensus import majority_codes
from analysis.encoding import Coded, LabelMatrix
from analysis.ensembles import ENSEMBLE, Ensemble, with_ensembles
from analysis.folds import fold_shares
from analysis.groups import label_counts
from analysis.pair_rows import add_humans_rows
from analysis.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    RunningMean,
    deciding_kappa,
    pair_statistics,
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
    everyone = coded.labelled[:, list(ensemble.members)].all(axis=1)
    judged = np.flatnonzero(everyone & (ensemble.codes >= 0) & (people >= 0))
    compared = _Compared(coded, resamples, ensemble, judged, people[judged])
    numbers = resamples.count(coded.clusters[judged], np.ones(len(judged), dtype=np.bool_))
    choice, chosen = compared.best_on_other_folds()
    tied, _ = resamples.count(coded.clusters, ensemble.tied)
    about = join_notes(
        f"{len(ensemble.members)} graders", f"{tied} tied units left out" if tied else ""
    )
    notes = {AVERAGE: about, BEST: chosen, TOGETHER: about, DIFFERENCE: "held out"}
    reason = "no_variation" if numbers[0] else "no_pairable_units"
    for statistic, values in compared.statistics(choice).items():
        single, best, together = values[:, :-2].mean(axis=1), values[:, -2], values[:, -1]
        shown = {AVERAGE: single, BEST: best, TOGETHER: together, DIFFERENCE: together - best}
        for at, replicates in shown.items():
            rows.add(
                statistic,
                resamples.interval(replicates, numbers[1], reason=reason),
                numbers,
                rater_a="humans",
                rater_b=ensemble.name,
                subset=coded.subset,
                at=at,
                note=notes[at],
            )


@dataclass(frozen=True)
class _Compared:
    """An ensemble and its members on the units (positions) that are judged, where `people`, their
    majority (judged,), all members and the ensemble have a label."""

    coded: Coded
    resamples: Resamples
    ensemble: Ensemble
    judged: Codes
    people: Codes

    def statistics(self, choice: Array) -> dict[str, Array]:
        """Replicates (rows, members + 2): the members, the best of them by `choice` (judged,
        members), which is the share of a unit's copies that each is chosen for, and the ensemble.
        """
        kappa = pair_statistics(self.coded)[deciding_kappa(self.coded)]
        tables = self._tables(self.people, choice)
        held = self.coded.labelled[self.judged]
        frequency = self.resamples.frequency[self.coded.clusters[self.judged]]
        shared = {human: int(frequency @ held[:, human]) for human in self.coded.members("human")}
        enough = [human for human, units in shared.items() if units >= MIN_SHARED_UNITS]
        means = [RunningMean(len(tables)) for _ in range(tables.shape[1])]
        for human in enough or [human for human, units in shared.items() if units]:
            values = kappa(self._tables(self.coded.codes[self.judged, human], choice))
            for voter, mean in enumerate(means):
                mean.add(values[:, [voter]])
        return {
            "ensemble_agreement": c.observed_agreement(tables),
            "ensemble_kappa": kappa(tables),
            "ensemble_balanced_accuracy": c.balanced_accuracy(tables),
            "ensemble_mean_kappa": np.column_stack([mean.result().values for mean in means]),
        }

    def best_on_other_folds(self) -> tuple[Array, str]:
        """Which member is best on the other folds than a unit's own, as `statistics` takes it; and
        how often each was chosen."""
        members = self.ensemble.members
        share = fold_shares(self.coded.clusters[self.judged], self.resamples.frequency)
        if share.shape[1] < 2:
            return np.zeros((len(self.judged), len(members))), "too few clusters to choose on"
        q, units = self.coded.q, self.resamples.frequency[self.coded.clusters[self.judged]]
        cells = self.people[:, None] * q + self.coded.codes[self.judged][:, list(members)]
        one_hot = (cells[..., None] == np.arange(q * q)).astype(float)
        by_fold = np.einsum("uk,umc->kmc", share * units[:, None], one_hot)
        others = (by_fold.sum(axis=0) - by_fold).reshape(*by_fold.shape[:2], q, q)
        kappas = pair_statistics(self.coded)[deciding_kappa(self.coded)](others)
        best = np.where(np.isnan(kappas), -np.inf, kappas).argmax(axis=1)
        times = np.bincount(best, minlength=len(members))
        listed = ", ".join(
            f"{self.coded.raters[members[at]]} {times[at]}"
            for at in np.argsort(-times, kind="stable")
            if times[at]
        )
        chosen = f"chosen on other folds, of {share.shape[1]}: {listed}"
        return share @ np.eye(len(members))[best], chosen

    def _tables(self, reference: npt.NDArray[np.integer], choice: Array) -> Array:
        """Tables (rows, members + 2, q, q) of a reference (judged,) with all that `statistics`
        speaks of; in resamples the choice of the best is held fixed."""
        q, n_types, members = self.coded.q, self.resamples.n_types, self.ensemble.members
        known = reference >= 0
        clusters = self.coded.clusters[self.judged][known]
        features = np.zeros((n_types, q * q, len(members) + 2))

        def counted(codes: npt.NDArray[np.int8], weights: Array | None = None) -> Array:
            cell = (clusters * q + reference[known]) * q + codes[self.judged][known]
            counts: Array = np.bincount(cell, weights, minlength=n_types * q * q).astype(float)
            return counts.reshape(n_types, q * q)

        for at, member in enumerate(members):
            codes = self.coded.codes[:, member]
            features[:, :, at] = counted(codes)
            features[:, :, -2] += counted(codes, choice[known, at])
        features[:, :, -1] = counted(self.ensemble.codes)
        totals = self.resamples.totals(features).reshape(len(self.resamples), q, q, -1)
        return np.moveaxis(totals, -1, 1)
