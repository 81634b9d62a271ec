"""Graders and annotators against the majority of the other humans.

A majority is a reference, not the truth. A grader is compared with that of all humans, and a human
with that of the other humans, so that no rater is compared with their own label.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.analysis.agreement import coefficients as c
from evenhand.analysis.agreement.coefficients import is_tied, label_counts, majority_codes
from evenhand.analysis.agreement.pairs import (
    MAX_LISTED_RATERS,
    deciding_kappa,
    pair_statistics,
    pair_tables,
)
from evenhand.analysis.bootstrap.resamples import count_labels
from evenhand.analysis.labels.encoding import encode_labels
from evenhand.analysis.notes import Code, Remark, join_notes
from evenhand.analysis.types import Column, Mask
from evenhand.analysis.writer import About, RubricView

MAJORITY = "majority"


def add_consensus_rows(view: RubricView) -> None:
    """Add `consensus_agreement` and `consensus_kappa` of graders and, leave-one-out, of humans.

    `at` is the method; `consensus_ties` is the share of the units with two labels or more whose
    majority is tied.
    """
    coded = view.all_labels
    humans = coded.members("human")
    if len(humans) < 2:
        return
    counts = label_counts(coded, humans)
    several = counts.sum(axis=1) >= 2
    values, none = view.share(is_tied(counts), several), Remark("no_pairable_units")
    view.add("consensus_ties", values, several, a="humans", at=MAJORITY, reason=none)
    listed = len(coded.raters) <= MAX_LISTED_RATERS
    judged = (*(humans if listed else ()), *coded.members("model"))
    if not judged or coded.q < 2:
        return
    voters = {rater: tuple(h for h in humans if h != rater) for rater in judged}
    votes = {members: label_counts(coded, members) for members in set(voters.values())}
    majorities = {members: majority_codes(counts) for members, counts in votes.items()}
    ties = {members: view.count(is_tied(counts))[0] for members, counts in votes.items()}
    kappa, panel = deciding_kappa(coded), pair_statistics(coded)
    beside = np.column_stack([majorities[voters[rater]] for rater in judged]).astype(np.int8)
    both = replace(coded, codes=np.hstack([coded.codes[:, judged], beside]))
    pairs = [(k, len(judged) + k) for k in range(len(judged))]
    tables = pair_tables(both, pairs, view.resamples)
    constant = c.constant_raters(tables[0])
    kind = "unweighted kappa" if kappa == "cohen_kappa" else f"{coded.ordered} kappa"
    for statistic, name, about in (
        ("consensus_agreement", "observed_agreement", ""),
        ("consensus_kappa", kappa, kind),
    ):
        values = panel[name](tables)
        for k, rater in enumerate(judged):
            tied = ties[voters[rater]]
            shared = both.labelled[:, k] & (majorities[voters[rater]] >= 0)
            reason: Code = "no_variation" if shared.any() else "no_pairable_units"
            flagged = about and constant[k] and not np.isnan(values[0, k])
            note = join_notes(
                Remark("constant_rater") if flagged else "",
                about,
                "against the other humans" if coded.kinds[rater] == "human" else "",
                f"{tied} {'unit' if tied == 1 else 'units'} tied and left out" if tied else "",
            )
            of = About(a="humans", b=coded.raters[rater], at=MAJORITY, note=note)
            view.add(statistic, values[:, k], shared, reason=reason, **of)


@dataclass(frozen=True)
class Majority:
    """Majority label of each unit (None where tied or without labels), and the ties."""

    labels: tuple[Hashable | None, ...]
    tied: Mask

    @property
    def ties(self) -> float:
        """Share of the units with a label that are tied."""
        known = sum(label is not None for label in self.labels) + int(self.tied.sum())
        return float(self.tied.sum() / known) if known else np.nan


def majority(labels: Any, *, categories: Column[Hashable]) -> Majority:
    """Return the most frequent label of every unit of labels (units, raters); ties are declared.

    >>> found = majority([["a", "a", "b"], ["a", "b", None], [None, "b", None]], categories="ab")
    >>> found.labels, found.tied.tolist()
    (('a', None, 'b'), [False, True, False])
    """
    counts = count_labels(encode_labels(labels, categories), len(categories))
    codes, names = majority_codes(counts), list(categories)
    return Majority(
        tuple(names[code] if code >= 0 else None for code in codes),
        (codes < 0) & (counts.sum(axis=1) > 0),
    )
