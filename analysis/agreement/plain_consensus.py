"""One label for each unit from plain labels (units, raters): the majority.

Labels and categories are as in `plain`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.analysis.agreement.counts import majority_codes
from evenhand.analysis.bootstrap.patterns import count_labels
from evenhand.analysis.labels.plain import encode_labels
from evenhand.analysis.types import Column, Mask


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
