"""Graders against each other, leniency, rates, the human ceiling and baselines, beside other
libraries and sums written out.
"""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis import Scale, alt_test, analyse
from tests.analysis.make import analyse_labels, noisy, people_of, ratings_of, row_of, rows_of
from tests.peers import contingency_tables, metrics, multitest, proportion, stats

TWO = Scale("", ("1", "2"))


def test_the_difference_of_two_graders_is_paired(rng):
    truth = rng.integers(0, 2, 300)
    labels = people_of(rng, truth, 0.8)
    good, poor = noisy(rng, truth, 2, 0.9), noisy(rng, truth, 2, 0.4)
    graders = {"good": good, "poor": poor, "same": good}
    ratings = ratings_of(labels | graders, graders)
    results = analyse(ratings, None, [TWO], resamples=60).results
    row = row_of(results, "kappa_difference", "good", "poor")
    rows = [row_of(results, "cohen_kappa", "humans", name) for name in ("good", "poor")]
    means = [row["estimate"] for row in rows]
    assert row["estimate"] == pytest.approx(means[0] - means[1])
    assert row["low"] > 0
    none = row_of(results, "kappa_difference", "good", "same")
    # They never part on 300 units; of all units 1.2% might still be unlike these.
    apart = 1 - 0.025 ** (1 / 300)
    people = ratings.loc[ratings["rater_kind"] == "human", "label"]
    by_chance = 1 - (people.value_counts(normalize=True) ** 2).sum()
    expected = [0.0, -apart / by_chance, apart / by_chance]
    assert none[["estimate", "low", "high"]].tolist() == pytest.approx(expected)
    assert row_of(results, "mcnemar_p", "good", "same")["estimate"] == 1.0


def test_mcnemar_counts_who_is_of_the_majoritys_mind(rng):
    """Units whose majority is tied take no part; ann and ben are tied on all units but 90."""
    truth = rng.integers(0, 2, 120)
    ann = noisy(rng, truth, 2, 1.0)
    ben = [*ann[:90], *["1" if label == "2" else "2" for label in ann[90:]]]
    g, h = noisy(rng, truth, 2, 0.7), noisy(rng, truth, 2, 0.5)
    labels = {"ann": ann, "ben": ben, "g": g, "h": h}
    row = row_of(analyse_labels(labels, TWO, ["g", "h"]).results, "mcnemar_p", "g", "h")
    right = [np.array(each[:90]) == np.array(ann[:90]) for each in (g, h)]
    table = [[(a & b).sum() for b in (right[1], ~right[1])] for a in (right[0], ~right[0])]
    assert row["estimate"] == pytest.approx(contingency_tables.mcnemar(table, exact=True).pvalue)
    assert row["n_units"] == 90
    assert f"only the first {table[0][1]}, only the second {table[1][0]}" in row["note"]


def test_units_of_one_pair_are_one_piece_of_evidence():
    """g and h part on the four units of 7 pairs, g with people in 6 of them: 2 * 8 / 128."""
    wrong = "2222"
    labels = {"ann": "1111" * 12, "g": "1111" * 6 + wrong + "1111" * 5, "h": wrong * 6 + "1111" * 6}
    ratings = ratings_of(labels, ["g", "h"])
    ids = sorted(set(ratings["unit_id"]))
    units = pd.DataFrame({"unit_id": ids, "cluster_id": [f"p{k // 4}" for k in range(48)]})
    results = analyse(ratings, units, [TWO], resamples=50).results
    row = row_of(results, "mcnemar_p", "g", "h")
    assert row["estimate"] == pytest.approx(16 / 128)
    assert row["note"].startswith("with the humans' majority only the first 24, only the second 4")
    assert row["n_clusters"] == 12
    # ann and h part on 6 pairs, all one way: (6 * 4)^2 / (6 * 4^2) = 6 on one degree of freedom.
    leniency = row_of(results, "stuart_maxwell_p", "ann", "h")
    assert leniency["estimate"] == pytest.approx(0.0143058784)


@pytest.mark.slow
def test_above_12_graders_all_are_compared_with_the_best(rng):
    truth = rng.integers(0, 2, 120)
    labels = people_of(rng, truth, 0.8, 2)
    names = [f"g{k:02}" for k in range(13)]
    labels |= {name: noisy(rng, truth, 2, 0.95 if name == "g07" else 0.5) for name in names}
    results = analyse_labels(labels, TWO, names).results
    rows = results[results["statistic"] == "kappa_difference"]
    assert len(rows) == 12
    assert ((rows["rater_a"] == "g07") | (rows["rater_b"] == "g07")).all()


def test_above_12_raters_graders_are_still_compared(rng):
    truth = rng.integers(0, 2, 60)
    people = {f"h{k:02}": noisy(rng, truth, 2, 0.8) for k in range(12)}
    graders = {name: noisy(rng, truth, 2, share) for name, share in (("g", 0.9), ("k", 0.5))}
    analysis = analyse_labels(people | graders, TWO, ["g", "k"])
    results = analysis.results
    assert row_of(results, "kappa_difference", "g", "k")["estimate"] > 0
    assert row_of(results, "mcnemar_p", "g", "k")["n_units"] <= 60
    assert row_of(results, "cohen_kappa", "g", "k")["n_units"] == 60
    leniency = rows_of(results, "stuart_maxwell_p")[["rater_a", "rater_b"]]
    assert leniency.to_numpy().tolist() == [["humans", "g"], ["humans", "k"]]
    assert not results["rater_a"].isin(people).any()
    told = "There are 14 raters. With more than 12, pairs with an annotator are shown only pooled."
    assert analysis.notes == [told]


def test_all_people_together_count_as_often_as_they_label(rng):
    """The pooled test is that of the sum over people of their labels less the grader's."""
    truth = rng.integers(0, 2, 80)
    people = {f"h{k:02}": noisy(rng, truth, 2, 0.8) for k in range(13)}
    labels = people | {"g": noisy(rng, truth, 2, 0.6)}
    results = analyse_labels(labels, TWO).results
    said = {name: np.array(list(each)) == "1" for name, each in labels.items()}
    apart = sum(said[name].astype(float) for name in people) - 13 * said["g"]
    score = apart.sum() ** 2 / (apart**2).sum()
    row = row_of(results, "stuart_maxwell_p", "humans", "g")
    assert row["estimate"] == pytest.approx(stats.chi2.sf(score, 1))


PEOPLE = ["ann", "ben", "cy"]
DECLARED = {"model": "g", "categories": ["yes", "no"], "affirmative": "yes"}


def labels(units=240, seed=3, people=tuple(PEOPLE)):
    """People right on .85 and .92, a grader right on .9 and .95."""
    rng = np.random.default_rng(seed)
    truth = rng.random(units) < 0.3
    table = pd.DataFrame(index=range(units))
    for rater, true, other in (*((who, 0.85, 0.92) for who in PEOPLE), ("g", 0.9, 0.95)):
        said = np.where(truth, rng.random(units) < true, rng.random(units) > other)
        table[rater] = np.where(said, "yes", "no")
    return table


def rates_of(found):
    """The rows of rates by statistic."""
    rows = found.results
    return rows[rows["statistic"].str.match("t[pn]r_")].set_index("statistic")


def test_rates_are_recalls_of_scikit_learn_with_intervals_near_those_of_statsmodels():
    table = labels()
    found = eh.check(table, human=PEOPLE, resamples=50, **DECLARED)
    majority = (table[PEOPLE] == "yes").sum(axis=1) >= 2
    own = table["g"] == "yes"
    rows = rates_of(found)
    for name, positive in (("tpr", True), ("tnr", False)):
        row, inside = rows.loc[f"{name}_majority"], majority == positive
        hits, n = int((own[inside] == positive).sum()), int(inside.sum())
        inner = proportion.proportion_confint(hits, n, method="wilson")
        outer = proportion.proportion_confint(hits, n, method="beta")
        theirs = metrics.recall_score(majority, own, pos_label=positive)
        assert row["estimate"] == pytest.approx(theirs, abs=1e-12)
        assert outer[0] - 0.6 / n < row["low"] < inner[0] + 0.6 / n
        assert inner[1] - 0.6 / n < row["high"] < outer[1] + 0.6 / n
        figures = {each: row[each] for each in ("estimate", "low", "high")} | {"n": row["n_units"]}
        assert found.verdicts[0]["rates"][name] == figures == figures | {"n": n}


def test_ties_are_left_out_and_counted():
    table = labels()
    found = eh.check(table, human=["ann", "ben"], resamples=50, **{**DECLARED, "model": ["g"]})
    tied = (table["ann"] != table["ben"]).sum()
    rows = rates_of(found)
    assert rows.loc["tpr_majority", "n_units"] + rows.loc["tnr_majority", "n_units"] == 240 - tied
    assert f"{tied} items tied and left out" in rows.loc["tpr_majority", "note"]


def test_a_reference_takes_the_majoritys_place():
    table = labels()
    found = eh.check(table, human=PEOPLE, reference="ann", resamples=50, **DECLARED)
    rows = rates_of(found)
    assert set(rows.index) == {"tpr_reference", "tnr_reference"}
    theirs = metrics.recall_score(table["ann"] == "yes", table["g"] == "yes")
    assert rows.loc["tpr_reference", "estimate"] == theirs
    assert set(found.verdicts[0]["rates"]) == {"tpr", "tnr"}


def test_without_affirmative_categories_nothing_is_said():
    found = eh.check(labels(), human=PEOPLE, model="g", categories=["yes", "no"])
    assert rates_of(found).empty
    assert found.verdicts[0]["rates"] == {}
    assert "TPR" not in str(found)


def _kappa(a, b, weights=None, q=3):
    both = [(x, y) for x, y in zip(a, b, strict=True) if "-" not in (x, y)]
    labels = [str(k + 1) for k in range(q)]
    first, second = zip(*both, strict=True)
    return float(metrics.cohen_kappa_score(first, second, labels=labels, weights=weights))


@pytest.mark.parametrize(("level", "weights"), [("nominal", None), ("ordinal", "linear")])
def test_the_difference_is_between_two_plain_means_on_the_same_units(rng, level, weights):
    truth = rng.integers(0, 3, 200)
    humans = {name: noisy(rng, truth, 3, 0.7) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.6, missing=0.3)
    found = analyse_labels({**humans, "g": grader}, Scale("", ("1", "2", "3"), level))
    on_same = {
        name: [x if g != "-" else "-" for x, g in zip(given, grader, strict=True)]
        for name, given in humans.items()
    }
    with_grader = np.mean([_kappa(given, grader, weights) for given in humans.values()])
    among = np.mean([_kappa(a, b, weights) for a, b in combinations(on_same.values(), 2)])
    row = row_of(found.results, "human_ceiling_difference", "humans", "g")
    assert row["estimate"] == pytest.approx(with_grader - among)
    assert row["low"] < row["estimate"] < row["high"]
    assert row["n_units"] == sum(label != "-" for label in grader)


def test_without_30_shared_units_there_is_no_ceiling():
    results = analyse_labels(dict.fromkeys(("ann", "ben", "g"), "12" * 10), TWO).results
    row = row_of(results, "human_ceiling_difference", "humans", "g")
    assert np.isnan(row["estimate"])
    assert row["note"] == "fewer than 30 items have labels of the grader and an annotator"
    mean = row_of(results, "cohen_kappa", "humans", "g")
    assert mean["estimate"] == pytest.approx(1.0)
    assert "fewer than 30 items" in mean["note"]


def test_baselines_stand_beside_the_humans():
    """ann says 1 on 60 of 80 units, ben on 40: prevalence 5/8, so constant is right 5/8 of it."""
    given = {"ann": "1" * 60 + "2" * 20, "ben": "1" * 40 + "2" * 40}
    results = analyse_labels(given, TWO).results
    constant = row_of(results, "observed_agreement", "humans", "baseline:constant")
    assert constant["estimate"] == pytest.approx((60 / 80 + 40 / 80) / 2)
    assert "always 1" in constant["note"]
    random = row_of(results, "observed_agreement", "humans", "baseline:random")
    expected = [(a * 5 + (80 - a) * 3) / 8 / 80 for a in (60, 40)]
    assert random["estimate"] == pytest.approx(np.mean(expected))
    people = _kappa(*given.values(), q=2)
    for name in ("baseline:constant", "baseline:random"):
        assert row_of(results, "cohen_kappa", "humans", name)["estimate"] == 0.0
        difference = row_of(results, "human_ceiling_difference", "humans", name)
        assert difference["estimate"] == pytest.approx(-people)
    assert "constant_rater" in row_of(results, "cohen_kappa", "humans", "baseline:constant")["note"]


FIVE = ("1", "2", "3", "4", "5")


def _by_hand(humans, grader, epsilon, ordinal):
    """Calderon, Reichart & Dror (2025), one unit and one annotator after the other."""

    def score(label, others):
        if ordinal:
            return -float(np.sqrt(np.mean([(int(label) - int(other)) ** 2 for other in others])))
        return float(np.mean([label == other for other in others]))

    usable = [i for i, row in enumerate(humans) if sum(x != "-" for x in row) >= 2]
    usable = [i for i in usable if grader[i] != "-"]
    p, advantages = [], []
    for j in range(len(humans[0])):
        own = [i for i in usable if humans[i][j] != "-"]
        if len(own) < 30:
            continue
        wins, differences = [], []
        for i in own:
            others = [x for k, x in enumerate(humans[i]) if k != j and x != "-"]
            theirs, mine = score(grader[i], others), score(humans[i][j], others)
            won, lost = theirs >= mine - 1e-12, mine >= theirs - 1e-12
            wins.append(won)
            differences.append(float(lost) - float(won))
        p.append(stats.ttest_1samp(differences, epsilon, alternative="less").pvalue)
        advantages.append(np.mean(wins))
    rejected = multitest.multipletests(p, alpha=0.05, method="fdr_by")[0]
    return float(np.mean(rejected)), float(np.mean(advantages))


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.2])
@pytest.mark.parametrize("keep", [0.3, 0.75])
def test_it_is_the_procedure_of_its_authors(rng, level, epsilon, keep):
    truth = rng.integers(0, 5, 90)
    raters = [noisy(rng, truth, 5, 0.6, missing) for missing in (0.0, 0.1, 0.3, 0.72)]
    humans = [list(row) for row in zip(*raters, strict=True)]
    grader = noisy(rng, truth, 5, keep, missing=0.1)
    *given, own = ([None if cell == "-" else cell for cell in row] for row in [*humans, grader])
    found = alt_test(given, own, categories=FIVE, level=level, epsilon=epsilon)
    winning, advantage = _by_hand(humans, grader, epsilon, level == "ordinal")
    assert found.winning_rate == winning
    assert found.advantage_probability == pytest.approx(advantage)
    assert found.annotators == (0, 1, 2)  # the fourth has under 30 units


def _rows(results, statistic):
    own = rows_of(results, statistic, subset="all")
    assert (own["rater_a"] == "humans").all()
    return own.set_index("rater_b")


def test_rows(rng):
    truth = rng.integers(0, 3, 120)
    labels = {name: noisy(rng, truth, 3, 0.6, missing=0.1) for name in ("ann", "ben", "cem")}
    grader = noisy(rng, truth, 3, 0.7)
    asked = {"resamples": 60, "epsilon": 0.15}
    results = analyse_labels({**labels, "g": grader}, Scale("", FIVE[:3]), **asked).results
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    winning, advantage = _by_hand(humans, grader, 0.15, ordinal=False)
    rate, share = (_rows(results, f"alt_test_{name}") for name in ("winning_rate", "advantage"))
    assert rate.loc["g", "estimate"] == winning
    assert np.isnan(rate.loc["g", "low"])
    assert share.loc["g", "estimate"] == pytest.approx(advantage)
    assert share.loc["g", "low"] < advantage < share.loc["g", "high"]
    assert "epsilon 0.15; 3 of 3 humans with 30 items" in rate.loc["g", "note"]
    constant = [max("123", key="".join("".join(x) for x in labels.values()).count)] * 120
    winning, advantage = _by_hand(humans, constant, 0.15, ordinal=False)
    assert rate.loc["baseline:constant", "estimate"] == winning
    assert share.loc["baseline:constant", "estimate"] == pytest.approx(advantage)


def test_the_random_baseline_is_the_mean_of_many_random_graders(rng):
    labels = {name: rng.choice(["1", "2"], 80, p=[0.7, 0.3]) for name in ("ann", "ben", "cem")}
    results = analyse_labels(labels, TWO).results
    prevalence = np.mean([(given == "1").mean() for given in labels.values()])
    humans = [list(row) for row in zip(*labels.values(), strict=True)]
    graders = (rng.choice(["1", "2"], 80, p=[prevalence, 1 - prevalence]) for _ in range(300))
    drawn = [alt_test(humans, each, categories="12").advantage_probability for each in graders]
    expected = _rows(results, "alt_test_advantage").loc["baseline:random", "estimate"]
    assert expected == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / np.sqrt(300))
