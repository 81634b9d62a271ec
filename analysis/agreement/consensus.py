"""Consensus of the human raters: the majority, with ties reported, and Dawid & Skene's estimate.

A consensus is a reference, not the truth. A grader is compared with the consensus of all humans,
and a human with that of the other humans, so that no rater is compared with their own label.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement import dawid_skene as lc
from evenhand.analysis.agreement.counts import is_tied, label_counts, majority_codes
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    deciding_kappa,
    pair_statistics,
    pair_tables,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.notes import Code, Note, Remark, join_notes
from evenhand.analysis.results import ResultRows, from_to
from evenhand.analysis.types import Codes, Numbers
from evenhand.analysis.writer import Writer

MAJORITY, DAWID_SKENE = "majority", "dawid_skene"
TOO_FEW_RATERS: Code = "too_few_raters"
_MOST_RATERS = 100
UNSTABLE = 0.01
"""A consensus is reported as unstable from this share of units that change their category."""


@dataclass(frozen=True)
class _Consensus:
    """A consensus of some humans: codes (units,), -1 for none, with a note and a reason."""

    codes: Codes
    note: Note
    reason: Code | None = None


def add_consensus_rows(rows: ResultRows, coded: Coded, resamples: Resamples) -> None:
    """Add `consensus_agreement` and `consensus_kappa` of graders and, leave-one-out, of humans.

    `at` is the method; `consensus_ties` is the share of the units with two labels or more whose
    majority is tied. The Dawid-Skene fit adds `dawid_skene_prevalence` (at = category) and each
    human's `dawid_skene_confusion` (at = "A>B": how often they say B where it is A).
    """
    humans = coded.members("human")
    if len(humans) < 2:
        return
    out = Writer.of(rows, coded, resamples)
    _add_ties_row(out, coded)
    listed = len(coded.raters) <= MAX_LISTED_RATERS
    judged = (*(humans if listed else ()), *coded.members("model"))
    voters = {rater: tuple(h for h in humans if h != rater) for rater in judged}
    fits = _Fits(coded, resamples.mass[coded.clusters])
    methods: tuple[tuple[str, Callable[[tuple[int, ...]], _Consensus]], ...] = (
        (MAJORITY, partial(_majority, coded, resamples)),
        (DAWID_SKENE, partial(_dawid_skene, fits)),
    )
    for method, consensus_of in methods if judged and coded.q > 1 else ():
        known = {members: consensus_of(members) for members in set(voters.values())}
        references = {rater: known[members] for rater, members in voters.items()}
        _add_agreement_rows(out, coded, method, references)
    if coded.q > 1:
        _add_fit_rows(out, fits, humans, listed)


def _majority(coded: Coded, resamples: Resamples, members: tuple[int, ...]) -> _Consensus:
    counts = label_counts(coded, members)
    tied, _ = resamples.count(coded.clusters, is_tied(counts))
    units = "1 unit" if tied == 1 else f"{tied} units"
    return _Consensus(majority_codes(counts), f"{units} tied and left out" if tied else "")


class _Fits:
    """Dawid & Skene fits to the labels of some humans, each computed once.

    `mass` (units,) is how much each unit counts.
    """

    def __init__(self, coded: Coded, mass: Numbers) -> None:
        self.coded, self._mass = coded, mass
        self._known: dict[tuple[int, ...], lc.DawidSkene] = {}

    def active(self, members: tuple[int, ...]) -> tuple[int, ...]:
        """Return those of the raters who labelled anything."""
        held = np.asarray(self.coded.labelled.any(axis=0))
        return tuple(each for each in members if held[each])

    def of(self, members: tuple[int, ...]) -> lc.DawidSkene | None:
        """Return the fit, or None where fewer than three of the humans labelled anything, or so
        many that each has a few labels only.
        """
        active = self.active(members)
        if not lc.MIN_RATERS <= len(active) <= _MOST_RATERS:
            return None
        if active not in self._known:
            counts = lc.counts_of_codes(self.coded.codes[:, list(active)], self.coded.q)
            self._known[active] = lc.fit(counts, frequency=self._mass)
        return self._known[active]


def _dawid_skene(fits: _Fits, members: tuple[int, ...]) -> _Consensus:
    found = fits.of(members)
    if found is None:
        few = len(fits.active(members)) < lc.MIN_RATERS
        why: Code = TOO_FEW_RATERS if few else "too_few_labels"
        return _Consensus(np.full(len(fits.coded.codes), -1), "", why)
    return _Consensus(
        found.codes, join_notes("consensus held fixed in the resamples", _trouble(found))
    )


def _trouble(found: lc.DawidSkene) -> Note:
    return join_notes(
        "" if found.converged else f"not converged after {found.iterations} steps",
        Remark("unstable_consensus", (found.unstable,)) if found.unstable >= UNSTABLE else "",
    )


def _add_agreement_rows(
    out: Writer, coded: Coded, method: str, references: dict[int, _Consensus]
) -> None:
    kappa = deciding_kappa(coded)
    panel = pair_statistics(coded)
    judged = list(references)
    beside = np.column_stack([references[rater].codes for rater in judged]).astype(np.int8)
    both = replace(coded, codes=np.hstack([coded.codes[:, judged], beside]))
    pairs = [(k, len(judged) + k) for k in range(len(judged))]
    tables = pair_tables(both, pairs, out.resamples)
    constant = c.constant_raters(tables[0])
    kind = "unweighted kappa" if kappa == "cohen_kappa" else f"{coded.ordered} kappa"
    for statistic, name, about in (
        ("consensus_agreement", "observed_agreement", ""),
        ("consensus_kappa", kappa, kind),
    ):
        values = panel[name](tables)
        for k, rater in enumerate(judged):
            consensus = references[rater]
            shared = both.labelled[:, k] & (consensus.codes >= 0)
            reason: Code = "no_variation" if shared.any() else "no_pairable_units"
            flagged = about and constant[k] and not np.isnan(values[0, k])
            out.add(
                statistic,
                values[:, k],
                shared,
                reason=consensus.reason or reason,
                a="humans",
                b=coded.raters[rater],
                at=method,
                note=join_notes(
                    Remark("constant_rater") if flagged else "",
                    about,
                    "against the other humans" if coded.kinds[rater] == "human" else "",
                    consensus.note,
                ),
            )


def _add_ties_row(out: Writer, coded: Coded) -> None:
    counts = label_counts(coded, coded.members("human"))
    several = counts.sum(axis=1) >= 2
    values, none = out.share(is_tied(counts), several), Remark("no_pairable_units")
    out.add("consensus_ties", values, several, a="humans", at=MAJORITY, reason=none)


def _add_fit_rows(out: Writer, fits: _Fits, humans: tuple[int, ...], listed: bool) -> None:
    """Add the parameters of the fit, without intervals."""
    coded, active, found = fits.coded, fits.active(humans), fits.of(humans)
    if found is None:
        return
    add = partial(out.add_value, reason="no_labels", note=_trouble(found))
    units = out.count(coded.labelled_by_any(active))
    for category, share in zip(coded.categories, found.prevalence, strict=True):
        add("dawid_skene_prevalence", share, units, a="humans", at=category)
    for human, confusion in zip(active if listed else (), found.confusion, strict=False):
        own, who = out.count(coded.labelled[:, human]), coded.raters[human]
        for first, row in zip(coded.categories, confusion, strict=True):
            for second, share in zip(coded.categories, row, strict=True):
                add("dawid_skene_confusion", share, own, a=who, at=from_to(first, second))
