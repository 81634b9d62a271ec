"""Labels that were selected by labels: found, and left out of agreement. All data are synthetic."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.analysis import Analysis, Scale
from evenhand.analysis.agreement.coefficients import cohen_kappa
from tests.analysis.make import rows_of
from tests.analysis.simulated_labels import analysed

SCALE = Scale("r", ("0", "1"))


def perceived(
    rng: np.random.Generator, items: int, annotators: int, noise: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels (items, annotators) and of a grader with more noise, and how hard each item is."""
    truth, hard = rng.normal(0, 1, items), np.exp(rng.normal(0, 0.8, items))
    error = hard[:, None] * rng.normal(0, 1, (items, annotators))
    people = (truth[:, None] + 0.35 * error > 0).astype(int)
    return people, (truth + noise * hard * rng.normal(0, 1, items) > 0).astype(int), hard


def estimate(found: Analysis, statistic: str, b: str = "g00") -> float:
    return float(rows_of(found, statistic, "humans", b, subset="all")["estimate"].iloc[0])


def kappa_of(first: np.ndarray, second: np.ndarray) -> float:
    table = np.zeros((2, 2))
    np.add.at(table, (first, second), 1.0)
    return float(cohen_kappa(table))


def with_third_on_disagreement(items: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    people, grader, _ = perceived(np.random.default_rng(seed), items, 3, 1.5)
    people[people[:, 0] == people[:, 1], 2] = -1
    return people, grader


def test_a_third_annotator_of_disagreements_is_left_out_of_agreement():
    people, grader = with_third_on_disagreement(400, 1)
    found = analysed(people, grader[:, None], SCALE)
    between = kappa_of(people[:, 0], people[:, 1])
    assert estimate(found, "people_kappa") == pytest.approx(between, abs=1e-12)
    assert estimate(found, "cohen_kappa", "") == pytest.approx(between, abs=1e-12)
    own = np.mean([kappa_of(people[:, n], grader) for n in (0, 1)])
    assert estimate(found, "cohen_kappa") == pytest.approx(own, abs=1e-12)
    assert any(note.startswith("r: Labels by a002 were given mostly") for note in found.notes)
    assert found.verdicts[0]["verdict"] != "may_stand_in"


def test_overlap_declared_random_is_not_tested():
    people, grader = with_third_on_disagreement(400, 1)
    found = analysed(people, grader[:, None], SCALE, overlap="random")
    # On an item where two differ, one of the three pairs agrees.
    assert estimate(found, "people_kappa") > kappa_of(people[:, 0], people[:, 1]) + 0.05
    assert not [note for note in found.notes if "a002" in note]


def test_with_times_the_first_labels_count():
    rng = np.random.default_rng(3)
    full, grader, _ = perceived(rng, 300, 9, 1.5)
    order = np.argsort(rng.random(full.shape), axis=1)
    people, times = np.full(full.shape, -1), np.full(full.shape, np.nan)
    item = np.arange(len(full))
    for turn in range(3):
        first, second = (full[item, order[:, n]] for n in (0, 1))
        asked = item if turn < 2 else item[first != second]
        who = order[asked, turn]
        people[asked, who], times[asked, who] = full[asked, who], turn + rng.random(len(asked)) / 2
    found = analysed(people, grader[:, None], SCALE, 60 * times)
    notes = [note for note in found.notes if "first 2 labels of each item" in note]
    assert len(notes) == 1
    first_two = np.where(times < 2, people, -1)
    expected = analysed(first_two, grader[:, None], SCALE, overlap="random")
    for statistic in ("people_kappa", "non_inferiority"):
        known = estimate(expected, statistic)
        assert estimate(found, statistic) == pytest.approx(known, abs=1e-12)
    # Without times any two labels that differ may have come first.
    untimed = analysed(people, grader[:, None], SCALE)
    assert any("Third labels were given only where two differ" in note for note in untimed.notes)
    assert abs(estimate(untimed, "people_kappa") - estimate(expected, "people_kappa")) < 0.05


def test_no_verdict_where_hard_items_got_the_second_label():
    people, grader, hard = perceived(np.random.default_rng(5), 600, 2, 0.9)
    rng = np.random.default_rng(6)
    people[rng.random(600) >= np.where(hard > 1.3, 0.9, 0.05), 1] = -1
    found = analysed(people, grader[:, None], SCALE)
    verdict = found.verdicts[0]
    twice, once = (people[:, 1] >= 0).sum(), (people[:, 1] < 0).sum()
    assert verdict["verdict"] == "cannot_tell"
    assert verdict["next"] == {"kind": "overlap", "number": 60}
    sentence = f"The {twice} units with 2 or more human labels differ from the {once} with 1 "
    assert sentence in verdict["sentence"]
    shares = [
        row["estimate"]
        for row in found.rows
        if row["statistic"] == "agreement_by_labels" and row["at"] in ("1", "2+")
    ]
    alone = people[:, 1] < 0
    assert shares[0] == pytest.approx((people[alone, 0] == grader[alone]).mean(), abs=1e-12)
    # The figures shown are those of the same units on both sides.
    both = ~alone
    between = kappa_of(people[both, 0], people[both, 1])
    assert estimate(found, "people_kappa") == pytest.approx(between, abs=1e-12)


def test_second_labels_on_a_random_part_are_seldom_suspected():
    suspected = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        people, grader, _ = perceived(rng, 200, 2, 0.35)
        people[rng.random(200) >= 0.4, 1] = -1
        suspected += analysed(people, grader[:, None], SCALE).verdicts[0]["next"] == {
            "kind": "overlap",
            "number": 60,
        }
    assert suspected <= 6  # a level of .2: more in .004 of such tests


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_nearly_complete_labels_are_all_counted(missing):
    rng = np.random.default_rng(9)
    people, grader, hard = perceived(rng, 200, 3, 0.35)
    hardest = np.argsort(-hard)[: int(missing * 200)]
    people[hardest, 1] = -1
    found = analysed(people, grader[:, None], SCALE)
    assert found.verdicts[0]["next"] != {"kind": "overlap", "number": 60}
    assert not [note for note in found.notes if "left out" in note]
