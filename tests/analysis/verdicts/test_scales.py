"""Neither gross errors that are too rare to be seen, on ordered labels and numbers, nor a labelling
design buys a verdict. All data are synthetic; `benchmarks.scales` and `benchmarks.designs` have
more scales and designs, and many studies of each.
"""

import numpy as np
import pytest

from benchmarks import designs, scales
from evenhand.analysis import Scale
from tests.analysis.simulated_labels import analysed, passes

pytestmark = pytest.mark.slow
NUMBERS, ORDERED = "0-100", "1-5, mostly 4 and 5"


def found_on(name, ordered, items, fault, seed):
    """The analysis of three annotators and a grader with this noise and these shares of errors."""
    world = scales.WORLDS[name]
    drawn = scales.raters(world, items, *fault, np.random.default_rng(seed))
    study, scale = world.study(drawn, ordered)
    return analysed(study.annotators, study.graders, scale, ordered=ordered)


@pytest.mark.parametrize(
    ("name", "ordered", "items", "low"),
    [
        (NUMBERS, "quadratic", 60, 0.020),
        (NUMBERS, "quadratic", 100, 0.020),
        (NUMBERS, "linear", 60, 0.077),
        (ORDERED, "quadratic", 60, 0.024),
        (ORDERED, "quadratic", 100, 0.024),
        (ORDERED, "linear", 60, 0.078),
    ],
)
def test_rare_gross_errors_at_the_margin_do_not_pass(name, ordered, items, low):
    """Shares of labels at the low end, with half the error of an annotator elsewhere, that cost a
    grader the margin. In some of these studies there is hardly any such error to see.
    """
    for seed in range(3):
        assert passes(found_on(name, ordered, items, (0.5, low, 0.0), seed)) == [False], seed


@pytest.mark.parametrize("name", [NUMBERS, ORDERED])
def test_a_grader_without_gross_errors_passes_on_100_items(name):
    assert passes(found_on(name, "linear", 100, (0.5, 0.0, 0.0), 3)) == [True]


@pytest.mark.parametrize(("name", "low"), [(NUMBERS, 0.0146), (ORDERED, 0.015)])
def test_a_version_that_lost_the_margin_by_rare_gross_errors_is_not_called_unchanged(name, low):
    cell = scales.Cell(name, 60, is_drift=True)
    for seed in range(3):
        assert not scales.is_unchanged(cell, low, np.random.default_rng(seed)), seed


def found_in(cell, is_good, seed):
    study = designs.study(cell, is_good, np.random.default_rng(seed))
    return analysed(study.annotators, study.graders, designs.SCALES[cell.options])


@pytest.mark.parametrize("below", [0.18, 0.29])
def test_a_third_label_where_two_differ_lets_no_bad_grader_pass(below):
    """A mean over pairs of annotators, each pair on its own items, lets nearly all such pass."""
    for seed in range(2):
        found = found_in(designs.Cell("", "third", 800, below=below), False, seed)
        assert passes(found) == [False], seed
        assert "Labels by a002 were given mostly where others disagree" in " ".join(found.notes)


def test_a_second_label_on_hard_items_lets_no_bad_grader_pass():
    """Of a grader that errs on all items alike, where people err on hard ones: there, where two
    labelled, it seems to be as good as they are.
    """
    cell = designs.Cell("", "second", 1000, 2, (0.05, 0.9), alike=True)
    found = [found_in(cell, False, seed) for seed in range(3)]
    assert [passes(each) for each in found] == [[False]] * 3
    sentences = " ".join(each.verdicts[0]["sentence"] for each in found)
    assert "do not show how well annotators agree" in sentences


def test_an_annotator_whose_items_have_two_labels_each_can_be_left_out():
    """In a crowd the jackknife over annotators leaves items with one label, and no pair."""
    rng = np.random.default_rng(2)
    people = np.full((60, 40), -1)
    truth = rng.integers(0, 2, 60)
    for item in range(60):
        who = [38, 39] if item == 0 else rng.choice(38, 3, replace=False)
        people[item, who] = np.where(rng.random(len(who)) < 0.1, 1 - truth[item], truth[item])
    (found,) = analysed(people, truth[:, None], Scale("r", ("0", "1"))).verdicts
    assert "40 annotators" in found["sentence"]
