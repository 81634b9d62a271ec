"""Labels that were selected by labels: found, and left out of agreement. All data are synthetic."""

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale
from evenhand.analysis.agreement.coefficients import kappas
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.people.annotators import add_annotator_rows, label_times, opposed_in
from evenhand.analysis.results import ResultRows
from evenhand.analysis.writer import View
from evenhand.reporting.load import load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from tests.analysis.make import analysed, coded_of, rows_of

SCALE = Scale("r", ("0", "1"))
OVERLAP = {"kind": "overlap", "number": 60}


def perceived(rng, items, annotators, noise):
    """Labels (items, annotators) and of a grader with more noise, and how hard each item is."""
    truth, hard = rng.normal(0, 1, items), np.exp(rng.normal(0, 0.8, items))
    error = hard[:, None] * rng.normal(0, 1, (items, annotators))
    people = (truth[:, None] + 0.35 * error > 0).astype(int)
    return people, (truth + noise * hard * rng.normal(0, 1, items) > 0).astype(int), hard


def estimate(found, statistic, b="g00"):
    return float(rows_of(found, statistic, "humans", b, subset="all")["estimate"].iloc[0])


def kappa_of(first, second):
    table = np.zeros((2, 2))
    np.add.at(table, (first, second), 1.0)
    return float(kappas(table))


def test_a_third_annotator_of_disagreements_is_left_out_of_agreement():
    people, grader, _ = perceived(np.random.default_rng(1), 400, 3, 1.5)
    people[people[:, 0] == people[:, 1], 2] = -1
    found = analysed(people, grader[:, None], SCALE)
    between = kappa_of(people[:, 0], people[:, 1])
    assert estimate(found, "people_kappa") == pytest.approx(between, abs=1e-12)
    assert estimate(found, "cohen_kappa", "") == pytest.approx(between, abs=1e-12)
    own = np.mean([kappa_of(people[:, n], grader) for n in (0, 1)])
    assert estimate(found, "cohen_kappa") == pytest.approx(own, abs=1e-12)
    assert any(note.startswith("r: Labels by a002 were given mostly") for note in found.notes)
    assert found.verdicts[0]["verdict"] != "can_replace"


@pytest.mark.slow
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
    assert sum("first 2 labels of each item" in note for note in found.notes) == 1
    expected = analysed(np.where(times < 2, people, -1), grader[:, None], SCALE, overlap="random")
    for statistic in ("people_kappa", "non_inferiority"):
        assert estimate(found, statistic) == pytest.approx(estimate(expected, statistic), abs=1e-12)
    # Without times any two labels that differ may have come first.
    untimed = analysed(people, grader[:, None], SCALE)
    assert any("Third labels were given only where two differ" in note for note in untimed.notes)
    assert abs(estimate(untimed, "people_kappa") - estimate(expected, "people_kappa")) < 0.05


def test_a_time_is_that_of_a_rater_s_first_label():
    rows = [(9, "u", "1"), (5, "u", "0"), (1, "u", ""), (7, "v", "1"), (3, "w", "1")]
    table = pd.DataFrame(rows, columns=["created_at", "unit_id", "label"]).assign(rater_id="ann")
    table["created_at"] = [f"1970-01-01T00:00:0{second}Z" for second in table["created_at"]]
    np.testing.assert_array_equal(label_times(table, ["u", "v"], ["ann"]), [[5], [7]])
    assert label_times(table.assign(created_at=""), ["u"], ["ann"]) is None


def test_no_verdict_where_hard_items_got_the_second_label():
    people, grader, hard = perceived(np.random.default_rng(5), 600, 2, 0.9)
    people[np.random.default_rng(6).random(600) >= np.where(hard > 1.3, 0.9, 0.05), 1] = -1
    found = analysed(people, grader[:, None], SCALE)
    verdict = found.verdicts[0]
    twice, once = (people[:, 1] >= 0).sum(), (people[:, 1] < 0).sum()
    assert verdict["verdict"] == "inconclusive"
    assert verdict["next"] == OVERLAP
    told = f"The {twice} items with labels from 2 or more may differ from the {once} with 1 "
    assert told in verdict["sentence"]
    alone, shares = people[:, 1] < 0, rows_of(found, "agreement_by_labels").set_index("at")
    own = (people[alone, 0] == grader[alone]).mean()
    assert shares.loc["1", "estimate"] == pytest.approx(own, abs=1e-12)
    # The figures shown are those of the same units on both sides.
    both = ~alone
    between = kappa_of(people[both, 0], people[both, 1])
    assert estimate(found, "people_kappa") == pytest.approx(between, abs=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.03])
def test_nearly_complete_labels_are_all_counted(missing):
    people, grader, hard = perceived(np.random.default_rng(9), 200, 3, 0.35)
    people[np.argsort(-hard)[: int(missing * 200)], 1] = -1  # the hardest
    found = analysed(people, grader[:, None], SCALE)
    assert found.verdicts[0]["next"] != OVERLAP
    assert not [note for note in found.notes if "left out" in note]


NAMES = ("ann", "ben", "cy", "dan", "eve", "fay")


def opposed(codes, q, level="ordinal"):
    """Those who are named where people gave these codes (units, people)."""
    units, people = codes.shape
    names = NAMES[:people] if people <= 6 else [f"w{at}" for at in range(people)]
    rows = ResultRows("r")
    drawn = Resamples(np.ones(units, dtype=np.int64), 0, np.random.default_rng(0))
    add_annotator_rows(View.of(rows, coded_of(codes, level, np.arange(1.0, q + 1), names), drawn))
    return opposed_in(rows)


def people_of(true, q, people, rng):
    """Labels that are right, but for one in five."""
    shape = (len(true), people)
    return np.where(rng.random(shape) < 0.2, rng.integers(0, q, shape), true[:, None])


REVERSED = [(5, "ordinal", [4, 3, 2, 1, 0], "reversed"), (2, "nominal", [1, 0], "reversed")]


@pytest.mark.parametrize(
    ("q", "level", "code", "how"), [*REVERSED, (3, "nominal", [1, 0, 2], "exchanged")]
)
def test_whoever_labels_the_other_way_round_is_named(q, level, code, how):
    rng = np.random.default_rng(1)
    codes = people_of(rng.integers(0, q, 80), q, 4, rng)
    codes[:, 2] = np.array(code)[codes[:, 2]]
    (found,) = opposed(codes, q, level)
    assert (found.annotator, found.others, found.recoding) == ("cy", "ann, ben, dan", how)
    assert found.is_sure
    assert found.as_given["estimate"] < 0.1 < 0.4 < found.recoded["estimate"]


def test_two_of_a_crowd_are_named_though_nobody_labels_everything():
    rng = np.random.default_rng(3)
    codes = people_of(rng.integers(0, 5, 400), 5, 20, rng)
    codes[rng.random(codes.shape) > 0.25] = -1
    codes[:, 4:6] = np.where(codes[:, 4:6] < 0, -1, 4 - codes[:, 4:6])
    assert {each.annotator for each in opposed(codes, 5)} == {"w4", "w5"}


@pytest.mark.parametrize("turned", [[1], [2, 3]])
def test_of_equal_sides_it_is_not_said_which(turned):
    rng = np.random.default_rng(4)
    codes = people_of(rng.integers(0, 5, 60), 5, 2 * len(turned), rng)
    codes[:, turned] = 4 - codes[:, turned]
    found = opposed(codes, 5)
    assert len(found) == len(turned)
    assert not any(each.is_sure for each in found)


def test_nobody_is_named_among_people_who_only_differ():
    """Neither noise, nor a harsh annotator, nor one who hardly ever says yes, nor few units."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        true = rng.integers(0, 5, 100)
        assert not opposed(rng.integers(0, 5, (100, 3)), 5)
        codes = people_of(true, 5, 3, rng)
        codes[:, 0] = np.maximum(codes[:, 0] - 3, 0)
        assert not opposed(codes, 5)
        codes[:, 0] = rng.integers(0, 5, 100)
        assert not opposed(codes, 5)
        assert not opposed((rng.random((1000, 3)) < 0.04).astype(int), 2, "nominal")
        assert not opposed(rng.integers(0, 4, (60, 4)), 4, "nominal")
        codes = people_of(rng.integers(0, 4, 60), 4, 4, rng)
        assert not opposed(codes, 4, "nominal")
        codes[:, 3] = rng.integers(0, 4, 60)
        assert not opposed(codes, 4, "nominal")
        few = people_of(true[:20], 5, 3, rng)
        few[:, 2] = 4 - few[:, 2]
        assert not opposed(few, 5)


def verdict(table, *people):
    kinds = dict.fromkeys(people, "human") | {"gpt": "model"}
    dataset = load(table, ScaleOptions(kinds=kinds, categories=tuple("12345")))
    found = dataset.changed(resamples=20).analyse()
    return dict(found.verdicts[0]), " ".join(found.notes)


@pytest.mark.journey
def test_no_grader_passes_beside_them():
    """Of six, one reversed lowers people's agreement far below that of a good grader with them."""
    rng = np.random.default_rng(6)
    codes = people_of(rng.integers(5, size=300), 5, 7, rng) + 1
    codes[:, 5] = 6 - codes[:, 5]
    table = pd.DataFrame(codes.astype(str), columns=[*NAMES, "gpt"])
    table.insert(0, "unit_id", [f"u{n}" for n in range(300)])
    found, _ = verdict(table, *NAMES)
    assert found["verdict"] == "inconclusive"
    assert found["next"] == {"kind": "annotators", "number": 1}
    found, notes = verdict(table.drop(columns="fay"), *NAMES[:5])
    assert found["verdict"] == "can_replace"
    assert "other way round" not in notes
