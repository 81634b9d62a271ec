"""The parts of labelled clusters: by shares, in every stratum, and for good; the choice among
candidates, and the proof of the best one.
"""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from benchmarks import improving
from evenhand.analysis.bootstrap.bounds import level_of_reading
from evenhand.analysis.verdicts import versions
from evenhand.study.settings.analysis import DecisionSettings
from tests.peers import metrics

RULE = DecisionSettings()
OLD, NEW = improving.OLD, "new00"
PEOPLE = improving.PEOPLE


def labels(shares, units=120, seed=2):
    """Labels of people who are right on 95% of the items, and of graders on these shares."""
    rng, found = np.random.default_rng(seed), improving.blank(units)
    truth = rng.random(units) < 0.5
    codes = np.full_like(found.codes, -1)
    for at, name in enumerate(found.raters):
        if at < PEOPLE or name in shares:
            codes[:, at] = np.where(rng.random(units) < shares.get(name, 0.95), truth, ~truth)
    return replace(found, codes=codes)


def unanswered(found, name, every):
    codes = found.codes.copy()
    codes[::every, found.raters.index(name)] = -1
    return replace(found, codes=codes)


def chosen(found, names):
    asked, clusters = [], [str(n) for n in range(120)]

    def labels_of(names, clusters):
        asked.append((tuple(names), len(clusters)))
        codes = found.codes.copy()
        codes[len(clusters) :] = -1
        return replace(found, codes=codes)

    return versions.choose(OLD, names, clusters, labels_of, RULE), asked


def test_the_better_half_goes_on_to_more_clusters():
    shares = {OLD: 0.7, **{f"new{n:02}": 0.55 + 0.02 * n for n in range(7)}, "new07": 0.95}
    choice, asked = chosen(labels(shares), [name for name in shares if name != OLD])
    assert choice.best == "new07"
    assert [size for _, size in asked] == versions.round_sizes(120, 8) == [30, 60, 120]
    assert [len(names) for names, _ in asked] == [9, 5, 3]
    assert all(OLD in each.scores for each in choice.rounds)
    assert choice.gain > 0


def test_where_none_is_better_than_the_old_one_none_is_chosen():
    choice, _ = chosen(labels({OLD: 0.9, "new00": 0.6, "new01": 0.7}), ["new00", "new01"])
    assert choice.best == ""
    assert math.isnan(choice.gain)


def test_a_grader_that_answers_only_what_is_easy_comes_last():
    found = labels({OLD: 0.6, "new00": 1.0, "new01": 0.9})
    choice, _ = chosen(unanswered(found, "new00", 4), ["new00", "unseen", "new01"])
    assert choice.best == "new01"
    assert choice.rounds[0].scores["unseen"].answered == 0


def test_a_gain_is_the_difference_of_the_mean_kappas_with_its_bounds_at_the_level():
    found = labels({OLD: 0.6, NEW: 0.9})
    gain = versions.prove(found, OLD, NEW, RULE, look=1)
    people = found.codes[:, :PEOPLE].T
    own = (found.codes[:, found.raters.index(name)] for name in (OLD, NEW))
    old, new = (np.mean([metrics.cohen_kappa_score(p, codes) for p in people]) for codes in own)
    assert gain.outcome == "better"
    assert gain.estimate == pytest.approx(new - old)
    assert 0 < gain.low < gain.estimate < gain.high
    assert gain.level == level_of_reading(1)
    assert gain.sentence.startswith("Better. Kappa with annotators is")
    back = versions.prove(found, NEW, OLD, RULE, look=1)
    assert back.outcome == "worse"
    assert (back.low, back.high) == pytest.approx((-gain.high, -gain.low), abs=1e-3)


def test_each_further_reading_costs_level_until_none_is_left():
    found, declared = labels({OLD: 0.6, NEW: 0.9}), RULE.model_copy(update={"looks": 1})
    first, third = (versions.prove(found, OLD, NEW, RULE, look=look) for look in (1, 3))
    assert third.level < first.level
    assert third.low < first.low
    over = versions.prove(found, OLD, NEW, declared, look=2)
    assert (over.outcome, over.level) == ("not_shown", 0.0)
    assert "no error rate is left" in over.sentence


@pytest.mark.parametrize(
    ("units", "every", "rule", "why"),
    [
        (25, 1000, {}, "needs 30 labelled test items"),
        (60, 1000, {"min_clusters": 100}, "needs 100 clusters"),
        (60, 1000, {"min_rarer": 50}, "a minority label"),
        (120, 5, {}, "It answered 80% of the items, and 90% is needed."),
    ],
)
def test_better_needs_the_labels_that_a_verdict_needs(units, every, rule, why):
    found = labels({OLD: 0.5, NEW: 1.0}, units)
    found = unanswered(found, NEW, every) if every < units else found
    gain = versions.prove(found, OLD, NEW, RULE.model_copy(update=rule), look=1)
    assert gain.outcome == "not_shown"
    assert why in gain.sentence


def test_a_proof_is_likelier_the_larger_the_gain_and_the_more_clusters_it_has():
    large, small = labels({OLD: 0.6, NEW: 0.9}), labels({OLD: 0.75, NEW: 0.85})
    assert versions.chance_of_proof(large, OLD, NEW, 200, 0.01125) > 0.99
    few = versions.chance_of_proof(small, OLD, NEW, 30, 0.01125)
    assert few < versions.chance_of_proof(small, OLD, NEW, 2000, 0.01125)
    assert few < 0.1
    assert versions.chance_of_proof(large, NEW, OLD, 200, 0.01125) == 0.0, "nothing was gained"
    assert versions.chance_of_proof(large, OLD, NEW, 200, 0.0) == 0.0, "no error rate is left"


def test_the_gain_that_a_proof_can_show_falls_with_the_root_of_the_clusters():
    found = labels({OLD: 0.7})
    few, many = (versions.provable_gain(found, clusters, 0.01125) for clusters in (30, 120))
    assert few == pytest.approx(2 * many)
    assert 0.2 < many < 0.35
    same = replace(found, codes=np.zeros_like(found.codes))
    assert math.isnan(versions.provable_gain(same, 30, 0.01125))


def test_how_often_the_old_grader_is_wrong_is_bounded_above():
    found = labels({OLD: 0.97})
    wrong = (found.codes[:, :PEOPLE] != found.codes[:, [found.raters.index(OLD)]]).any(axis=1)
    errors, needed = versions.too_few_errors(found, OLD, 1, 0.01125)
    assert wrong.mean() < errors < wrong.mean() + 0.1
    assert needed == 7
    assert versions.too_few_errors(found, OLD, 1000, 0.01125) is None
    assert versions.too_few_errors(found, "unknown", 1, 0.01125) is None
    same = replace(found, codes=np.zeros_like(found.codes))
    assert versions.too_few_errors(same, OLD, 1, 0.01125).most < errors


def test_the_content_of_a_proof_is_people_and_both_graders_and_nothing_else():
    found = labels({OLD: 0.6, NEW: 0.9, "new01": 0.5})
    known = versions.content_hash(found, OLD, NEW)

    def changed(name):
        codes = found.codes.copy()
        at = 0 if name == "h0" else found.raters.index(name)
        codes[3, at] = 1 - codes[3, at]
        return versions.content_hash(replace(found, codes=codes), OLD, NEW)

    assert known == changed("new01"), "a grader that is not compared"
    turned = versions.content_hash(found, NEW, OLD)
    assert len({known, changed("h0"), changed(OLD), changed(NEW), turned}) == 5
    positive = np.where(np.isnan(found.positive), 0.5, found.positive)
    for other in ({"positive": positive}, {"thresholds": found.thresholds + 0.1}):
        assert versions.content_hash(replace(found, **other), OLD, NEW) != known


def strata(count, every=4):
    return {f"p{n:04}": "yes" if n % every == 0 else "no" for n in range(count)}


@pytest.mark.parametrize("count", [60, 61, 119, 250])
def test_every_part_has_its_share_of_every_stratum(count):
    given = strata(count)
    found = versions.split_clusters(given, seed=3, rubric="r")
    assert found.keys() == given.keys()
    for stratum in ("yes", "no"):
        own = Counter(found[each] for each, value in given.items() if value == stratum)
        for part, share in versions.SHARES.items():
            assert abs(own[part] - share * own.total()) < 2


def test_the_order_of_the_clusters_does_not_matter_but_seed_and_rubric_do():
    given = strata(100)
    found = versions.split_clusters(given, seed=3, rubric="r")
    assert versions.split_clusters(dict(reversed(given.items())), seed=3, rubric="r") == found
    assert versions.split_clusters(given, seed=4, rubric="r") != found
    assert versions.split_clusters(given, seed=3, rubric="s") != found


def test_a_cluster_whose_labels_were_withdrawn_keeps_its_part():
    first = versions.split_clusters(strata(60), seed=3, rubric="r")
    assert versions.split_clusters(strata(50), first, seed=3, rubric="r") == first


def test_a_cluster_counts_by_the_rarest_label_that_a_person_gave_in_it():
    rows = [
        ("u1", "ann", "human", "no"), ("u2", "ann", "human", "yes"), ("u3", "ann", "human", "no"),
        ("u4", "ann", "human", "no"), ("u3", "m", "model", "yes"), ("u5", "m", "model", "no"),
        ("u6", "ann", "human", ""),
    ]  # fmt: skip
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label"])
    clusters = {"u1": "p1", "u2": "p1", "u3": "p2", "u4": "p3", "u5": "p4", "u6": "p5"}
    assert versions.strata_of(ratings, clusters) == {"p1": "yes", "p2": "no", "p3": "no"}
    assert versions.majority_label(ratings) == "no"


@pytest.mark.parametrize(
    ("count", "every", "wanted"),
    [(59, 2, 60), (60, 2, 0), (60, 4, 80), (60, 1000, 1200), (0, 1, 60), (80, 4, 0)],
)
def test_too_few_clusters_or_of_the_rarer_kind_are_refused_with_a_number(count, every, wanted):
    assert versions.clusters_to_split(strata(count, every), "no", 30, 10) == wanted
