"""One label for each unit from plain labels (units, raters): the majority, and the most likely one.

Labels and categories are as in `plain`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.analysis.agreement import dawid_skene as lc
from evenhand.analysis.agreement.counts import majority_codes
from evenhand.analysis.bootstrap.patterns import count_labels
from evenhand.analysis.labels.plain import encode_labels
from evenhand.analysis.types import Column, Mask
from evenhand.errors import InputError


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


def dawid_skene(
    labels: Any,
    *,
    categories: Column[Hashable],
    raters: Column[Hashable] | None = None,
    starts: int = 1,
) -> lc.DawidSkene:
    """Dawid & Skene's model (1979) of labels (units, raters) by EM; see `DawidSkene`.

    `raters` names the columns; columns of the same name are repeats by one rater, who then has one
    confusion matrix; raters are in the order of first mention. From one start, the shares of
    labels, the fit is the authors' estimate; with more `starts` it is the most likely solution that
    EM finds, as in the reports (ten). Raises InputError below two categories.

    Three raters who agree on the first nine units of ten, one of them alone on the last:

    >>> labels = [["a"] * 3] * 5 + [["b"] * 3] * 4 + [["b", "b", "a"]]
    >>> found = dawid_skene(labels, categories="ab")
    >>> found.converged, found.prevalence.round(3).tolist(), found.codes[-1].item()
    (True, [0.5, 0.5], 1)
    """
    if len(categories) < 2:
        raise InputError("Dawid and Skene's model needs at least two categories; declare them all")
    counts = lc.counts_of_codes(encode_labels(labels, categories), len(categories))
    names = list(range(counts.shape[1])) if raters is None else list(raters)
    if len(names) != counts.shape[1]:
        raise InputError(
            f"raters names {len(names)} columns, and the labels have {counts.shape[1]}"
        )
    columns = [[k for k, name in enumerate(names) if name == one] for one in dict.fromkeys(names)]
    counts = np.stack([counts[:, own].sum(axis=1) for own in columns], axis=1)
    return lc.fit(counts, starts=starts)
