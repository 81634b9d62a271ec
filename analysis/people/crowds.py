"""Crowds, whose members each labelled little: all pairs of labels pooled.

A mean of kappas over pairs of humans needs each pair to share units. A crowd has few such pairs,
and most of its labels would be thrown away. There observed and expected agreement are taken over
all pairs of labels, as Krippendorff's alpha does (2004), and no labels are lost.
"""

from __future__ import annotations

import numpy as np

from evenhand.analysis.agreement.pairs import (
    MIN_SHARED_UNITS,
    deciding_kappa,
    pair_statistics,
    shared_units,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.analysis.types import Array, Labels


def is_crowd(coded: Coded, resamples: Resamples, grader: int) -> bool:
    """Return True if humans share so few units that pairs of them would be left out of a mean."""
    within = coded.labelled[:, grader]
    people = list(coded.people_beside(grader))
    shared = shared_units(coded, resamples, within)
    some = [person for person in people if shared[person, grader] > 0]
    if len(some) < 3:
        return False
    between = shared[np.ix_(some, some)][np.triu_indices(len(some), 1)]
    few = shared[some, grader] < MIN_SHARED_UNITS
    return bool(few.any() or (between < MIN_SHARED_UNITS).any())


def pooled_kappas(coded: Coded, resamples: Resamples, grader: int) -> tuple[Array, Array]:
    """Return a grader's kappa with humans, and theirs among themselves, from pooled pairs of
    labels.

    Replicates (rows,) each, row 0 the data. A unit counts by its number of human labels, as in
    Krippendorff's alpha (2004), of which the humans' kappa is the form without his correction for
    few units.
    """
    q = coded.width
    each = coded.spread(said_beside(coded, resamples, grader, pooled=True))
    chosen, own = each.sum(axis=1), coded.spread(coded.codes[:, grader])
    with_grader = chosen[:, :, None] * own[:, None, :]
    among = chosen[:, :, None] * chosen[:, None, :] - np.einsum("urj,urk->ujk", each, each)
    among /= np.maximum(chosen.sum(axis=1) - 1.0, 1.0)[:, None, None]
    kappa = pair_statistics(coded)[deciding_kappa(coded)]
    first, second = (
        kappa(resamples.sums(coded.clusters, each.reshape(len(each), -1)).reshape(-1, q, q))
        for each in (with_grader, among)
    )
    return first, second


def said_beside(coded: Coded, resamples: Resamples, grader: int, *, pooled: bool) -> Labels:
    """Return codes (units, humans) of the humans compared with a grader, where both labelled.

    In a crowd (`pooled`), only where two humans labelled.
    """
    people = list(coded.people_beside(grader))
    within = coded.labelled[:, grader]
    if not pooled:
        shared = shared_units(coded, resamples, within)
        people = [each for each in people if shared[each, grader] >= MIN_SHARED_UNITS]
    said = np.where(within[:, None], coded.codes[:, people], -1)
    if pooled:
        said = np.where((said >= 0).sum(axis=1, keepdims=True) >= 2, said, -1)
    return said
