"""Ensembles compared with their members: the average grader, the best one, and the ensemble.

The comparison of Feng et al. (2023, Table 6). The best single grader is chosen on other clusters
than those that it is judged on, by its kappa with the humans' majority; else it would look better
than it is, and the ensemble worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    KappaMeans,
    PairStatistic,
    RunningMean,
    add_humans_rows,
    deciding_kappa,
    pair_statistics,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.notes import Code, Note, join_notes
from evenhand.analysis.people.ceiling import add_ceiling_rows
from evenhand.analysis.people.ensembles import ENSEMBLE, Ensemble, with_ensembles
from evenhand.analysis.results import ResultRows
from evenhand.analysis.types import Array, Codes, Integers, Labels
from evenhand.analysis.writer import About, Writer

AVERAGE, BEST, TOGETHER = "average_single", "best_single", "ensemble"
DIFFERENCE = f"{TOGETHER}-{BEST}"

_CHUNK_CELLS = 1_000_000
"""Cells of tables kept in memory at a time."""


def add_ensemble_rows(
    rows: ResultRows,
    labels: LabelMatrix,
    coded: Coded,
    resamples: Resamples,
    wanted: Sequence[Sequence[str]] = (),
) -> None:
    """Compare every ensemble (`rater_b`) with its members, on the units that all of them labelled.

    `ensemble_agreement`, `ensemble_kappa` and `ensemble_balanced_accuracy` are with the humans'
    majority, `ensemble_mean_kappa` is the mean over humans; `at` is `average_single`, `best_single`
    (chosen on other folds), `ensemble`, or `ensemble-best_single`, the difference in the same
    resamples. Ensembles also have agreement and kappa with humans and their
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
        _add_beside_members(Writer.of(rows, extended, resamples), extended, ensemble)


def _add_beside_members(out: Writer, coded: Coded, ensemble: Ensemble) -> None:
    people = majority_codes(label_counts(coded, coded.members("human")))
    everyone = coded.labelled[:, list(ensemble.members)].all(axis=1) & (people >= 0)
    together = everyone & (ensemble.codes >= 0)
    judged = np.flatnonzero(together)
    compared = _Compared(coded, out.resamples, ensemble, judged, people[judged])
    choice, chosen = compared.best_on_other_folds()
    tied, _ = out.count(ensemble.tied & everyone)
    units = out.count(together)
    about = join_notes(
        f"{len(ensemble.members)} graders",
        f"{tied} tied units left out" if tied else "",
        _fewer_than_alone(out, ensemble.name, units[0]),
    )
    notes: dict[str, Note] = {AVERAGE: about, BEST: chosen, TOGETHER: about, DIFFERENCE: "held out"}
    why: Code = "no_variation" if units[0] else "no_pairable_units"
    for statistic, values in compared.statistics(choice).items():
        single, best, own = values[:, :-2].mean(axis=1), values[:, -2], values[:, -1]
        shown = {AVERAGE: single, BEST: best, TOGETHER: own, DIFFERENCE: own - best}
        for at, each in shown.items():
            of = About(a="humans", b=ensemble.name, at=at, note=notes[at])
            out.add(statistic, each, units, reason=why, **of)


def _fewer_than_alone(out: Writer, ensemble: str, units: int) -> str:
    """Note the number of units compared, where it is not all of the ensemble's; else ""."""
    alone = out.rows.get("observed_agreement", "humans", ensemble, out.subset)
    if alone is None or alone["n_units"] == units:
        return ""
    kept = "those with a label of every grader and a majority of people"
    return f"{units} of the ensemble's {alone['n_units']} units, {kept}"


@dataclass(frozen=True)
class _Compared:
    """Ensemble and members on the units (positions) that are judged.

    There `people`, the humans' majority (judged,), all members and the ensemble have a label.
    """

    coded: Coded
    resamples: Resamples
    ensemble: Ensemble
    judged: Codes
    people: Codes

    def statistics(self, choice: Array) -> dict[str, Array]:
        """Return replicates (rows, members + 2): the members, the best of them, and the ensemble.

        The best is by `choice` (judged, members), the share of a unit's copies that each member is
        chosen for.
        """
        kappa = pair_statistics(self.coded)[deciding_kappa(self.coded)]
        functions = {
            "ensemble_agreement": c.observed_agreement,
            "ensemble_kappa": kappa,
            "ensemble_balanced_accuracy": c.balanced_accuracy,
        }
        found = self._measured(self.people, choice, functions)
        held = self.coded.labelled[self.judged]
        frequency = self.resamples.frequency[self.coded.clusters[self.judged]]
        shared = {human: int(frequency @ held[:, human]) for human in self.coded.members("human")}
        enough = [human for human, units in shared.items() if units >= MIN_SHARED_UNITS]
        means = [RunningMean(len(self.resamples)) for _ in range(len(self.ensemble.members) + 2)]
        for human in enough or [human for human, units in shared.items() if units]:
            labels = self.coded.codes[self.judged, human]
            values = self._measured(labels, choice, {"kappa": kappa})["kappa"]
            for voter, mean in enumerate(means):
                mean.add(values[:, [voter]])
        found["ensemble_mean_kappa"] = np.column_stack([mean.result().values for mean in means])
        return found

    def best_on_other_folds(self) -> tuple[Array, str]:
        """Choose the best member for each unit on the other folds than its own.

        Returns the choice as `statistics` takes it, and a note on how often each member was chosen.
        """
        members = self.ensemble.members
        share = self.resamples.fold_shares(self.coded.clusters[self.judged])
        if share.shape[1] < 2:
            return np.zeros((len(self.judged), len(members))), "too few clusters to choose on"
        q, kappa = self.coded.q, pair_statistics(self.coded)[deciding_kappa(self.coded)]
        copies = self.resamples.mass[self.coded.clusters[self.judged]]
        kappas = np.empty((share.shape[1], len(members)))
        for at, member in enumerate(members):
            cell = self.people * q + self.coded.codes[self.judged, member]
            for fold, own in enumerate(share.T):
                others = np.bincount(cell, (1.0 - own) * copies, minlength=q * q)
                kappas[fold, at] = kappa(others.astype(float).reshape(q, q))
        best = np.where(np.isnan(kappas), -np.inf, kappas).argmax(axis=1)
        times = np.bincount(best, minlength=len(members))
        listed = ", ".join(
            f"{self.coded.raters[members[at]]} {times[at]}"
            for at in np.argsort(-times, kind="stable")
            if times[at]
        )
        chosen = f"chosen on other folds, of {share.shape[1]}: {listed}"
        return share @ np.eye(len(members))[best], chosen

    def _measured(
        self,
        reference: Integers,
        choice: Array,
        functions: Mapping[str, PairStatistic],
    ) -> dict[str, Array]:
        """Apply functions to all voters' tables with a reference (judged,).

        Each gives (rows, members + 2).
        """
        rows, voters = len(self.resamples), len(self.ensemble.members) + 2
        found = {name: np.empty((rows, voters)) for name in functions}
        step = max(1, _CHUNK_CELLS // (self.coded.q**2 * max(rows, self.resamples.n_types)))
        for start in range(0, voters, step):
            chunk = range(start, min(start + step, voters))
            tables = self._tables(reference, choice, chunk)
            for name, function in functions.items():
                found[name][:, chunk.start : chunk.stop] = function(tables)
        return found

    def _tables(self, reference: Integers, choice: Array, voters: Sequence[int]) -> Array:
        """Return tables (rows, voters, q, q) of the reference with some of the members + 2.

        The choice of the best is held fixed in the resamples.
        """
        q, n_types, members = self.coded.q, self.resamples.n_types, self.ensemble.members
        known = reference >= 0
        clusters = self.coded.clusters[self.judged][known]

        def counted(codes: Labels, weights: Array | None = None) -> Array:
            cell = (clusters * q + reference[known]) * q + codes[self.judged][known]
            counts = np.bincount(cell, weights, minlength=n_types * q * q)
            return counts.astype(float).reshape(n_types, q * q)

        features = np.zeros((n_types, q * q, len(voters)))
        for at, voter in enumerate(voters):
            if voter < len(members):
                features[:, :, at] = counted(self.coded.codes[:, members[voter]])
            elif voter > len(members):
                features[:, :, at] = counted(self.ensemble.codes)
            else:
                for place, member in enumerate(members):
                    weights = choice[known, place]
                    features[:, :, at] += counted(self.coded.codes[:, member], weights)
        totals = self.resamples.totals(features).reshape(len(self.resamples), q, q, -1)
        return np.moveaxis(totals, -1, 1)
