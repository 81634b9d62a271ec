"""Routing rows and their sentences: a cut that is found, one that is not, and hours.

Cuts with a promise: published sample sizes, bets by enumeration, the order of testing.
"""

import math

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, StudyFacts, analyse
from evenhand.analysis.report import ReportContext, render_routing_text, write_report
from evenhand.analysis.thresholds.tuning import CutTest, candidate_cuts, guaranteed_cut
from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from tests.analysis.make import with_confidence
from tests.peers import stats

SCALE = Scale("tone", ("x", "y"))


def graded(said, people, confidence, scale):
    """Two people who agree, and a grader that gives its label this probability."""
    labels = {"ann": people, "ben": people, "g": said}
    return with_confidence(labels, confidence, scale.categories).assign(rubric=scale.name)


def study(right, confidence):
    """The same where so many of the grader's labels are right."""
    people = ["xy"[n % 2] for n in range(len(right))]
    said = ["xy"[(n + (not agrees)) % 2] for n, agrees in enumerate(right)]
    return graded(said, people, confidence, SCALE)


def analysed(ratings, **settings):
    return analyse(ratings, None, [SCALE], resamples=20, **settings)


def routed(found):
    rows = found.results[found.results["statistic"].str.startswith("routing_")]
    return rows.set_index("statistic")


@pytest.fixture(scope="module")
def halves():
    """300 units: 150 sure of .9 and right, 150 sure of .6 and right every other time."""
    return study([True] * 150 + [True, False] * 75, [0.9] * 150 + [0.6] * 150)


def test_the_sure_half_is_trusted(halves):
    found = analysed(halves)
    rows = routed(found)
    figures = {"routing_cut": 0.9, "routing_share": 0.5, "routing_agreement": 1.0}
    assert rows["estimate"].round(6).to_dict() == figures
    assert set(rows["at"]) == {"0.95"}
    assert rows.loc["routing_cut", "note"] == "wrong in at most 0.0251 of studies at this analysis"
    assert rows.loc["routing_agreement", "n_units"] == 150
    share = rows.loc["routing_share"]
    assert share["low"] < 0.5 < share["high"]
    assert render_routing_text(found) == [
        "Routing, g on tone: trust labels with a confidence of 0.900 or more, and ask annotators "
        "about the rest. With 95% certainty, at least 95% of the trusted labels agree with most "
        "annotators; here 100.0% do. This routes 50% of items to the grader."
    ]


def test_with_too_few_units_it_is_said_how_many_more():
    found = analysed(study([True] * 50, np.linspace(0.6, 0.9, 50).tolist()))
    rows = routed(found)
    assert rows.index.tolist() == ["routing_cut"]
    [sentence] = render_routing_text(found)
    told = "no cut can guarantee 95% agreement with 50 items; label about 29 more."
    assert sentence == f"Routing, g on tone: {told}"
    # 72 units, none wrong, are the fewest at the first look's .025; .95^71 is above.
    more = int(sentence.split()[-2])
    assert 72 <= 50 + more < 72 * 1.2
    assert f"50 items: label about {more} more" in rows.loc["routing_cut", "note"]


def test_a_grader_that_agrees_too_seldom_is_not_helped_by_labels():
    assert render_routing_text(analysed(study([True, False] * 60, [0.9] * 120))) == [
        "Routing, g on tone: no cut can guarantee 95% agreement with 120 items. More than twenty "
        "times as many would be needed, if agreement stays as it is."
    ]


@pytest.mark.slow
def test_units_that_were_not_equally_likely_to_be_picked_have_no_promise(halves, tmp_path):
    names = halves["unit_id"].unique()
    chances = np.where(np.arange(len(names)) % 2, 0.2, 1.0)
    units = pd.DataFrame({"unit_id": names, "inclusion_probability": chances})
    found = analyse(halves, units, [SCALE], resamples=20)
    assert render_routing_text(found) == [
        "Routing, g on tone: no cut can guarantee 95% agreement, because items had unequal "
        "sampling probabilities."
    ]
    write_report(found, ReportContext("ratings"), tmp_path)
    assert "because items had unequal sampling" in (tmp_path / "report.md").read_text("utf-8")


@pytest.mark.journey
def test_every_look_has_its_share_of_the_error():
    """60 units, none wrong: enough at .05, not at the .04 of a first look among any number."""
    ratings = study([True] * 60, [0.9] * 60)
    assert np.isnan(routed(analysed(ratings)).loc["routing_cut", "estimate"])
    assert routed(analysed(ratings, looks=1)).loc["routing_cut", "estimate"] == 0.9
    second = analysed(ratings, looks=1, facts=StudyFacts(looks={"tone": 2}))
    assert routed(second).loc["routing_cut", "note"].startswith("no level left")
    assert render_routing_text(second) == []


def test_a_cut_close_to_1_is_not_shown_as_1():
    found = analysed(study([True] * 100 + [False] * 100, [1 - 2e-5] * 100 + [1 - 3e-4] * 100))
    assert "a confidence of 0.99998 or more" in render_routing_text(found)[0]


LEVEL = 0.05


def cut_of(wrong, units=1, target=0.95):
    """The promised cut where unit n is n-th surest, of clusters of so many units; confidence falls
    from 1 in steps of 1 / n."""
    confidence = 1 - np.arange(len(wrong)) / len(wrong)
    return guaranteed_cut(confidence, wrong, np.arange(len(wrong)) // units, target, LEVEL).cut


def test_the_fewest_units_that_pass_are_those_of_wilks():
    """Wilks (1941): 59, 93, 124, 153 and 181 runs for 95% of a population with 95% confidence, as
    0, 1, 2, 3 or 4 of them lie outside (tabulated by Guba, Makai & Pal 2003)."""
    for outside, runs in enumerate((59, 93, 124, 153, 181)):
        for n, enough in ((runs - 1, False), (runs, True)):
            test = CutTest(np.arange(n), 0.05, LEVEL)
            assert test.passes(np.ones(n, dtype=bool), np.arange(n) < outside) is enough


def test_units_alone_have_the_exact_binomial_p(rng):
    test = CutTest(np.arange(80), 0.1, LEVEL)
    for _ in range(20):
        kept, wrong = rng.random(80) < 0.7, rng.random(80) < 0.05
        k, n = int((kept & wrong).sum()), int(kept.sum())
        assert test.p_value(kept, wrong) == pytest.approx(stats.binomtest(k, n, 0.1, "less").pvalue)


@pytest.mark.parametrize("clusters", [20, 40, 100, 400])
@pytest.mark.parametrize("allowed", [0.05, 0.1])
def test_a_bet_holds_its_level_where_clusters_are_wrong_together(clusters, allowed):
    """All three units of a cluster are wrong with the probability that is just allowed: by
    enumeration of how many clusters are."""
    test = CutTest(np.repeat(np.arange(clusters), 3), allowed, LEVEL)
    every = np.ones(3 * clusters, dtype=bool)
    passes = [test.passes(every, test.clusters < k) for k in range(clusters + 1)]
    chance = stats.binom.pmf(np.arange(clusters + 1), clusters, allowed) @ passes
    assert chance <= LEVEL
    assert passes[0] == (chance > 0) == (clusters > 60 or (allowed, clusters) == (0.1, 40))
    assert not passes[-1]


def test_the_p_of_clusters_by_hand():
    test = CutTest(np.repeat(np.arange(50), 2), 0.1, LEVEL)
    kept = np.tile([True, False], 50)
    right = np.zeros(100, dtype=bool)
    # A stake of .99 / .9 wins .1 for each unit kept, and a cluster keeps one of two.
    assert test.p_value(kept, right) == pytest.approx((1 + 0.99 / 0.9 * 0.1 / 2) ** -50)
    assert test.p_value(kept, ~right) == 1.0
    # With ever more clusters less is staked on each, or the first bad one would decide.
    many = CutTest(np.repeat(np.arange(2000), 2), 0.1, LEVEL)
    stake = 0.9 * math.sqrt(2 * math.log(20) / (2000 * 0.09 / 4))
    alone = np.arange(4000) == 0
    assert many.p_value(alone, ~alone) == pytest.approx(1 / (1 + stake / 0.9 * 0.1 / 2))


def test_the_first_cut_that_cannot_be_ruled_out_ends_the_sequence():
    """100 right, 30 wrong, 2,000 right: to trust all would pass, but is never reached."""
    wrong = np.zeros(2130, dtype=bool)
    assert cut_of(wrong) == pytest.approx(1 / 2130)  # all
    wrong[100:130] = True
    assert CutTest(np.arange(2130), 0.05, LEVEL).passes(np.ones(2130, dtype=bool), wrong)
    assert math.isnan(cut_of(np.roll(wrong, 300)))  # the first cut keeps 533
    assert math.isnan(cut_of(wrong))
    assert (1 - cut_of(np.arange(400) >= 200)) * 400 == pytest.approx(200, abs=20)


def test_no_cut_is_tested_that_could_not_pass_or_keeps_under_a_quarter():
    """Two wrong among the surest ten: 59 units would fail by them, 250 of 1,000 do not."""
    wrong = np.arange(1000) < 2
    assert cut_of(wrong) == pytest.approx(0.001)
    assert math.isnan(cut_of(wrong[:100]))
    assert cut_of(np.zeros(59, dtype=bool)) == pytest.approx(1 / 59)
    assert math.isnan(cut_of(np.zeros(58, dtype=bool)))


def test_nothing_depends_on_the_order_of_units_or_on_names_of_clusters(rng):
    confidence, clusters = rng.random(800), np.repeat(np.arange(200), 4)
    wrong = rng.random(800) < 0.1 * (1 - confidence)
    found = guaranteed_cut(confidence, wrong, clusters, 0.9, LEVEL)
    assert not math.isnan(found.cut)
    order = rng.permutation(800)
    moved = confidence[order], wrong[order], 7 * (200 - clusters[order])
    assert guaranteed_cut(*moved, 0.9, LEVEL) == found


def test_equal_confidences_have_one_cut():
    right, same = np.zeros(100, dtype=bool), np.full(100, 0.9)
    assert guaranteed_cut(same, right, np.arange(100), 0.95, LEVEL).cut == 0.9
    assert math.isnan(guaranteed_cut(same, ~right, np.arange(100), 0.95, LEVEL).cut)


@pytest.mark.parametrize(("target", "level"), [(1.0, 0.05), (0.95, 0.0)])
def test_nobody_can_promise_all_or_with_certainty(target, level):
    right = np.zeros(100, dtype=bool)
    found = guaranteed_cut(np.linspace(0, 1, 100), right, np.arange(100), target, level)
    assert math.isnan(found.cut)
    assert found.growth == math.inf


def test_how_many_more_would_do():
    sure = np.linspace(1, 0, 40)
    perfect = guaranteed_cut(sure, np.zeros(40, dtype=bool), np.arange(40), 0.95, LEVEL)
    assert 59 <= 40 * perfect.growth < 70
    often_wrong = guaranteed_cut(sure, np.arange(40) % 5 == 0, np.arange(40), 0.95, LEVEL)
    assert often_wrong.growth == math.inf
    # One wrong in twenty of the surest quarter, one in ten allowed.
    seldom = guaranteed_cut(np.linspace(1, 0, 80), np.arange(80) == 5, np.arange(80), 0.9, LEVEL)
    assert math.isnan(seldom.cut)
    kept = math.ceil(80 * seldom.growth / 4)
    passing = [k for k in range(kept) if stats.binomtest(k, kept, 0.1, "less").pvalue <= LEVEL]
    assert stats.binom.cdf(max(passing), kept, 1 / 20) >= 0.8


SIDES = Scale.from_rubric(load_rubric("stance"))


def filtered(ratings, scale=SIDES, **rule):
    found = analyse(ratings, None, [scale], resamples=20, **rule)
    rows = found.results[found.results["statistic"].str.startswith("confidence_")]
    return rows.set_index(["statistic", "at"])


@pytest.fixture
def surer_is_better():
    """100 units: sure of .95 on 60, all right; of .8 on 20, 16 right; of .6 on 20, 5 right.

    Strength differs throughout (4 where people say 3): it collapses away. Among the unsure 40, ten
    are unclear to people, and the grader calls five of those so.
    """
    people = ["3"] * 60 + ["1"] * 20 + ["1"] * 10 + ["U"] * 10
    said = ["4"] * 60 + ["2"] * 16 + ["4"] * 4 + ["4"] * 10 + ["U"] * 5 + ["4"] * 5
    return graded(said, people, [0.95] * 60 + [0.8] * 20 + [0.6] * 20, SIDES)


@pytest.mark.journey
def test_the_curve_is_what_counting_gives(surer_is_better):
    rows = filtered(surer_is_better, confidence_cut=0.9)
    for cut, kept, right in [(0.6, 100, 81), (0.8, 80, 76), (0.9, 60, 60), (0.95, 60, 60)]:
        coverage = rows.loc[("confidence_coverage", repr(cut))]
        agreement = rows.loc[("confidence_agreement", repr(cut))]
        assert (coverage["estimate"], coverage["n_units"]) == (kept / 100, 100)
        assert agreement["estimate"] == pytest.approx(right / kept)
        assert agreement["n_units"] == kept
        assert ("the declared cut" in agreement["note"]) is (cut == 0.9)
    assert set(rows["subset"]) == {"all|collapsed"}


def test_cuts_to_try_are_bounded_and_occur(rng):
    confidence = rng.random(5000)
    cuts = candidate_cuts(confidence, 0.9)
    assert len(cuts) == 21
    assert set(cuts) - {0.9} <= set(confidence)
    kept = [(confidence >= cut).mean() for cut in cuts if cut != 0.9]
    assert np.allclose(np.diff(kept), -0.05, atol=0.001)


def test_hard_labels_have_no_rows_and_a_cut_or_target_outside_0_and_1_is_refused(surer_is_better):
    assert filtered(surer_is_better.drop(columns="probabilities")).empty
    for rule, must in (("confidence_cut", "be greater than 0"), ("confidence_target", "be less")):
        with pytest.raises(InputError, match=f"{rule} is .*; it must {must}"):
            filtered(surer_is_better, **{rule: 0.0 if "cut" in rule else 1.2})


@pytest.mark.slow
@pytest.mark.parametrize(("clusters", "units"), [(60, 1), (60, 4)])
def test_a_promise_is_broken_in_one_study_of_twenty_at_most(clusters, units, rng):
    """Synthetic: every label is wrong as often as allowed, whatever the confidence."""
    broken = 0
    for _ in range(300):
        wrong = rng.random(clusters * units) < 0.1
        of = np.repeat(np.arange(clusters), units)
        broken += not math.isnan(guaranteed_cut(rng.random(len(of)), wrong, of, 0.9, LEVEL).cut)
    assert broken <= 300 * LEVEL + 2 * math.sqrt(300 * LEVEL * (1 - LEVEL))
    assert units > 1 or broken > 0  # or nothing was tried
