"""Ensembles: several graders treated as one rater.

There are two kinds of ensemble: the majority of the labels (a tie is no label), and on the binary
verdict the mean of the probabilities compared with the threshold, a hard label counting 1 or 0. An
ensemble needs two members' labels on a unit. It is not a grader: it takes no part in the statistics
of groups, and its kind of rater is "ensemble".
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenhand.analysis.agreement.counts import label_counts, majority_codes
from evenhand.analysis.labels.matrix import Coded, LabelMatrix
from evenhand.analysis.types import Labels, Mask
from evenhand.errors import InputError

ENSEMBLE = "ensemble"
"""Kind of rater of an ensemble, and the beginning of its name."""
MAJORITY, MEAN_PROBABILITY = f"{ENSEMBLE}:majority", f"{ENSEMBLE}:mean_probability"
_MIN_VOTES = 2


@dataclass(frozen=True)
class Ensemble:
    """Labels of an ensemble in one view: codes (units,), -1 for none; `members` are columns."""

    name: str
    members: tuple[int, ...]
    codes: Labels
    tied: Mask


def is_ensemble(rater: str) -> bool:
    """Return True if a rater's name is that of an ensemble."""
    return rater.startswith(f"{ENSEMBLE}:")


def ensemble_title(rater: str) -> str:
    """Return the title of an ensemble.

    >>> ensemble_title("ensemble:mean_probability"), ensemble_title("ensemble:majority(g1, g2)")
    ('Ensemble: mean probability', 'Ensemble: majority of g1, g2')
    """
    way, _, members = rater.removeprefix(f"{ENSEMBLE}:").partition("(")
    of = f" of {members.removesuffix(')')}" if members else ""
    return f"Ensemble: {way.replace('_', ' ')}{of}"


def check_ensembles(wanted: Sequence[Sequence[str]], graders: Collection[str]) -> None:
    """Raise InputError if the ensembles are not valid.

    An ensemble must name at least two graders, all of which exist; no grader may have the name of
    an ensemble.
    """
    for name in sorted(graders):
        if is_ensemble(name):
            raise InputError(f"the grader {name!r} has the name of an ensemble; rename it")
    for members in wanted:
        for name in members:
            if name not in graders:
                known = ", ".join(sorted(graders)) or "none"
                raise InputError(
                    f"an ensemble names {name!r}, which is no grader here; there are: {known}"
                )
        if len(set(members)) < 2:
            raise InputError(
                f"an ensemble needs at least two graders, not {', '.join(members) or 'none'}"
            )


def with_ensembles(
    labels: LabelMatrix, coded: Coded, wanted: Sequence[Sequence[str]] = ()
) -> tuple[Coded, list[Ensemble]]:
    """Return the view with ensembles as further raters, and the ensembles.

    `wanted` names the members of each; without it, there is one ensemble of all graders. An
    ensemble is left out if some of its members did not rate this rubric.
    """
    found: list[Ensemble] = []
    everybody = frozenset(labels.raters[model] for model in labels.models)
    for names in dict.fromkeys(frozenset(each) for each in wanted or (everybody,)):
        members = tuple(at for at in labels.models if labels.raters[at] in names)
        if len(members) < max(_MIN_VOTES, len(names)):
            continue
        which = f"({', '.join(labels.raters[at] for at in members)})" if wanted else ""
        found.append(_majority(coded, members, MAJORITY + which))
        if coded.is_binary and not np.isnan(labels.positive[:, list(members)]).all():
            found.append(_mean_probability(labels, members, MEAN_PROBABILITY + which))
    codes = np.column_stack([coded.codes, *(each.codes for each in found)])
    extended = replace(
        coded,
        raters=(*coded.raters, *(each.name for each in found)),
        kinds=(*coded.kinds, *([ENSEMBLE] * len(found))),
        codes=codes,
    )
    return extended, found


def _majority(coded: Coded, members: tuple[int, ...], name: str) -> Ensemble:
    counts = label_counts(coded, members)
    voted = counts.sum(axis=1) >= _MIN_VOTES
    codes = np.where(voted, majority_codes(counts), -1).astype(np.int8)
    return Ensemble(name, members, codes, voted & (codes < 0))


def _mean_probability(labels: LabelMatrix, members: tuple[int, ...], name: str) -> Ensemble:
    """Combine probabilities by their mean; code 0 is affirmative, as for the binary verdict."""
    own = list(members)
    verdicts, positive = labels.verdicts[:, own], labels.positive[:, own]
    single = np.where(np.isnan(positive), verdicts.astype(float), positive)
    held = verdicts >= 0
    votes = held.sum(axis=1)
    mean = np.where(held, single, 0.0).sum(axis=1) / np.maximum(votes, 1)
    other = mean < labels.scale.threshold_for(name)
    codes = np.where(votes >= _MIN_VOTES, other, -1).astype(np.int8)
    return Ensemble(name, members, codes, np.zeros(len(codes), dtype=np.bool_))
