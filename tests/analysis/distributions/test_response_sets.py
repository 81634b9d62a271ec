"""Which labels are right, with every person left out in turn."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis.distributions import (
    right_by_others,
    right_labels,
    right_without_one,
)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("counts", [(4, 1, 0), (7, 2, 1), (5, 5, 0), (60, 25, 15), (1, 2, 2)])
def test_one_person_is_left_out_at_a_time(counts: tuple[int, ...], share: float) -> None:
    people = np.repeat(np.arange(3), counts)
    right = np.zeros((len(people), 3))
    for at in range(len(people)):
        rest = np.delete(people, at)
        for label in range(3):
            given = int((rest == label).sum())
            right[at, label] = given >= 2 and given / len(rest) >= share - 1e-9
    given_counts = np.array([counts], dtype=float)
    assert right_without_one(given_counts, share)[0] == pytest.approx(right.mean(axis=0))
    own = right[np.arange(len(people)), people].mean()
    assert right_by_others(given_counts, share) == pytest.approx([own])


def test_a_label_that_one_person_gave_is_not_right() -> None:
    counts = np.array([[4.0, 1.0], [8.0, 2.0], [19.0, 1.0]])
    assert right_labels(counts, 0.1).tolist() == [[True, False], [True, True], [True, False]]
