"""Win rates, strengths, order of people, correction and ranking: against sums written out, and on
comparisons whose truth is known. All of them are synthetic.

Bradley-Terry strengths: against a published example, a logistic regression, and tables that have
none.
"""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.report import write_report
from evenhand.analysis.report.source import ReportContext
from evenhand.analysis.subjects.preference import is_linked, strengths, undefined_reason
from tests.analysis.make import by_at
from tests.known_values import known_values
from tests.peers import sm

SCALE = Scale(
    "preference", ("A", "tie", "B"), "ordinal", unit="comparison", favours={"A": "a", "B": "b"}
)
SIDES = {"A2": "a", "A1": "a", "B1": "b", "B2": "b"}
FIVE = replace(SCALE, categories=("A2", "A1", "tie", "B1", "B2"), favours=SIDES)


def study(rng, true, prompts, people=2, labelled=1.0, shared=0.5, ties=0.1, error=0.2):
    """Every two subjects' answers to each prompt; an answer has a quality of its own (sd `shared`),
    people call `ties`, the grader g errs in a share of them.
    """
    units, rows = [], []
    for prompt in range(prompts):
        quality = np.array(true) + rng.normal(0, shared, len(true))
        for one, two in combinations(range(len(true)), 2):
            unit = f"q{prompt:03d}-{one}{two}"
            units.append((unit, f"q{prompt:03d}", "answers", "", f"m{one}", f"m{two}"))
            chance = 1 / (1 + np.exp(quality[two] - quality[one]))
            given = []
            for person in range(people):
                order = ("ab", "ba")[rng.integers(2)]
                label = "A" if rng.random() < chance else "B"
                label = "tie" if rng.random() < ties else label
                given.append((f"h{person}", "human", label, order))
            if prompt < labelled * prompts:
                rows += [(unit, *each) for each in given]
            label = "A" if rng.random() < chance else "B"
            if rng.random() < error:
                label = "A"  # its errors all favour the first subject
            rows += [(unit, "g", "model", label, order) for order in ("ab", "ba")]
    columns = ["unit_id", "cluster_id", "subject", "side", "subject_a", "subject_b"]
    ratings = pd.DataFrame(rows, columns=["unit_id", "rater_id", "rater_kind", "label", "order"])
    return ratings.assign(rubric="preference"), pd.DataFrame(units, columns=columns)


def figures(ratings, units, scale=SCALE, **settings):
    return analyse(ratings, units, [scale], **settings).results


@pytest.mark.journey
def test_win_rates_and_strengths_from_labels_written_out(rng):
    ratings, units = study(rng, [0.8, 0.0, -0.8], 40, people=3)
    results = figures(ratings, units, resamples=100)
    worth = ratings["label"].map({"A": 1.0, "tie": 0.5, "B": 0.0})
    for rater, own in (("humans", "human"), ("g", "model")):
        score = worth[ratings["rater_kind"] == own].groupby(ratings["unit_id"]).mean()
        of_unit = units.set_index("unit_id").join(score.rename("score"))
        wins = np.zeros((3, 3))
        for row in of_unit.itertuples():
            one, two = int(row.subject_a[1]), int(row.subject_b[1])
            wins[one, two] += row.score
            wins[two, one] += 1 - row.score
        rates = wins.sum(axis=1) / (wins.sum(axis=0) + wins.sum(axis=1))
        found = by_at(results, "win_rate", rater)
        assert found["estimate"].tolist() == pytest.approx(rates.tolist())
        assert found["n_units"].tolist() == [80] * 3
        assert found["n_clusters"].tolist() == [40] * 3
        found = by_at(results, "strength", rater)["estimate"]
        assert found.tolist() == pytest.approx(strengths(wins[None])[0].tolist())
        assert found.is_monotonic_decreasing


@pytest.mark.journey
def test_a_verdict_that_turns_with_the_order_is_a_tie(rng):
    ratings, units = study(rng, [0.5, -0.5], 60)
    turned = (ratings["rater_id"] == "g") & (ratings["unit_id"] < "q030")
    ratings.loc[turned, "label"] = np.where(ratings.loc[turned, "order"] == "ab", "A", "B")
    found = by_at(figures(ratings, units, resamples=50), "win_rate", "g")
    rest = ratings[(ratings["rater_id"] == "g") & ~turned & (ratings["order"] == "ab")]
    expected = (0.5 * 30 + (rest["label"] == "A").sum()) / 60
    assert found.loc["m0", "estimate"] == pytest.approx(expected)
    assert found.loc["m0", "n_units"] == 60
    # One order without an answer is no tie.
    ratings.loc[turned & (ratings["order"] == "ba"), "label"] = ""
    ratings.loc[turned & (ratings["order"] == "ab"), "label"] = "A"
    again = by_at(figures(ratings, units, resamples=50), "win_rate", "g")
    assert again.loc["m0", "estimate"] == pytest.approx((30 + (rest["label"] == "A").sum()) / 60)


@pytest.mark.journey
def test_steps_count_by_their_side(rng):
    ratings, units = study(rng, [0.5, 0.0, -0.5], 40)
    much = rng.random(len(ratings)) < 0.5
    stepped = ratings["label"].map({"A": "A1", "B": "B1", "tie": "tie"})
    stepped = stepped.where(~much, stepped.str.replace("1", "2"))
    # The same step in both orders, as here orders that differ are no matter.
    judged = ratings["rater_id"] == "g"
    stepped[judged] = ratings["label"][judged].map({"A": "A2", "B": "B2"})
    three = figures(ratings, units, resamples=50)
    five = figures(ratings.assign(label=stepped), units, FIVE, resamples=50)
    for statistic in ("win_rate", "strength"):
        for rater in ("humans", "g"):
            own, other = (by_at(each, statistic, rater) for each in (three, five))
            pd.testing.assert_frame_equal(own, other)


@pytest.mark.slow
def test_which_answer_a_file_calls_the_first_means_nothing(rng):
    ratings, units = study(rng, [0.5, 0.0, -0.5], 60)
    seen = set(figures(ratings, units, resamples=50)["statistic"])
    assert {"bias_order", "bias_order_flips"} <= seen
    assert not {"direction_net", "bias_side"} & seen
    turned = units.index % 2 == 1
    other = units.copy()
    names = ["subject_a", "subject_b"]
    other.loc[turned, names] = units.loc[turned, names[::-1]].to_numpy()
    swap = {"A": "B", "B": "A", "tie": "tie", "ab": "ba", "ba": "ab"}
    there = ratings["unit_id"].isin(units.loc[turned, "unit_id"])
    same = ratings.copy()
    for column in ("label", "order"):
        same.loc[there, column] = ratings.loc[there, column].map(swap)
    first, second = (figures(*each, resamples=50) for each in ((ratings, units), (same, other)))
    for statistic in ("win_rate", "strength", "bias_order"):
        for name in ("humans", "g"):
            one, two = (by_at(each, statistic, name)["estimate"] for each in (first, second))
            assert one.tolist() == pytest.approx(two.tolist(), abs=1e-9)


@pytest.mark.slow
def test_the_corrected_win_rate_is_that_of_people(rng):
    ratings, units = study(rng, [0.4, 0.0, -0.4], 400, labelled=0.5, error=0.5)
    results = figures(ratings, units, resamples=300)
    everything, _ = study(np.random.default_rng(20), [0.4, 0.0, -0.4], 400, error=0.5)
    full = by_at(figures(everything, units, resamples=10), "win_rate", "humans")["estimate"]
    raw = by_at(results, "win_rate", "g")["estimate"]
    corrected = by_at(results, "win_rate_ppi", "humans", "g")
    assert raw["m0"] > 0.75 > full["m0"]  # the grader is far off
    assert ((corrected["low"] < full) & (full < corrected["high"])).all()
    people = by_at(results, "win_rate", "humans")
    # No wider than people's alone; with so little weight on the grader hardly narrower.
    assert ((corrected["high"] - corrected["low"]) < 1.01 * (people["high"] - people["low"])).all()
    assert corrected.loc["m0", "note"] == "400 of them labelled by annotators"
    # By hand, for the first subject: what the grader says elsewhere, against its own on the sample.
    worth = ratings["label"].map({"A": 1.0, "tie": 0.5, "B": 0.0})
    by_kind = worth.groupby([ratings["rater_kind"], ratings["unit_id"]]).mean()
    own = units.loc[units["subject_a"] == "m0", "unit_id"]
    f, y = by_kind["model"].loc[own], by_kind["human"].reindex(own)
    known = y.notna()
    covariance = np.cov(y[known], f[known], ddof=0)[0, 1]
    expected = covariance / (f.var(ddof=0) * (1 + known.sum() / (~known).sum()))
    moved = y[known].mean() + expected * (f[~known].mean() - f[known].mean())
    assert corrected.loc["m0", "estimate"] == pytest.approx(moved)


@pytest.mark.slow
def test_strengths_that_do_not_exist_are_said(rng, tmp_path):
    ratings, units = study(rng, [0.4, 0.1, -0.1, -0.4], 40)
    own = units.loc[units["subject_a"].eq("m0"), "unit_id"]
    unbeaten = ratings.assign(label=ratings["label"].mask(ratings["unit_id"].isin(own), "A"))
    linked = units[units["subject_b"].eq("m1") | units["subject_a"].eq("m2")]
    apart = ratings[ratings["unit_id"].isin(linked["unit_id"])]
    for given, table, why, said in (
        (unbeaten, units, "subject_unbeaten", "some subjects won, or lost, all comparisons with"),
        (apart, linked, "subjects_not_linked", "some subjects were never compared, not even by"),
    ):
        analysis = analyse(given, table, [SCALE], resamples=50)
        for rater in ("humans", "g"):
            found = by_at(analysis.results, "strength", rater)
            assert found["estimate"].isna().all()
            assert set(found["note"]) == {why}
            assert by_at(analysis.results, "win_rate", rater)["estimate"].notna().all()
        write_report(analysis, ReportContext("study"), tmp_path / why)
        assert said in (tmp_path / why / "report.md").read_text("utf-8")


BASEBALL = known_values("bradley_terry_agresti2002")


def by_regression(wins):
    """The same by a logistic regression without an intercept, a half win having half the weight."""
    n = len(wins)
    rows, won, weights = [], [], []
    for one, two in combinations(range(n), 2):
        row = np.zeros(n)
        row[one], row[two] = 1.0, -1.0
        for first, second, result in ((one, two, 1.0), (two, one, 0.0)):
            if wins[first, second] > 0:
                rows.append(row[1:])
                won.append(result)
                weights.append(wins[first, second])
    family = sm.families.Binomial()
    model = sm.GLM(won, np.array(rows), family=family, freq_weights=np.array(weights))
    found = np.concatenate([[0.0], model.fit(tol=1e-14, maxiter=200).params])
    return found - found.mean()


def test_the_published_strengths_of_seven_teams():
    found = strengths(np.array([BASEBALL["wins"]], dtype=float))[0]
    relative = dict(zip(BASEBALL["teams"], found - found[-1], strict=True))
    assert relative == pytest.approx(BASEBALL["expected"], abs=BASEBALL["tolerance"])


@pytest.mark.journey
@pytest.mark.parametrize("n", [2, 3, 6, 12])
def test_they_are_those_of_a_logistic_regression(n, rng):
    tables = []
    while len(tables) < 5:
        true = rng.normal(0, 1.5, n)
        chance = 1 / (1 + np.exp(true[None, :] - true[:, None]))
        wins = np.triu(rng.binomial(12, chance), 1).astype(float)
        wins += np.triu(rng.integers(0, 2, (n, n)) / 2, 1)  # some ties
        wins = np.triu(wins, 1) + np.triu(12.5 - wins, 1).T
        if is_linked(wins[None])[0]:
            tables.append(wins)
    found = strengths(np.array(tables))
    assert np.abs(found - np.array([by_regression(each) for each in tables])).max() < 1e-6


def test_steep_tables_converge():
    """One lost in 10,000: a full Newton step from the middle would go far beyond."""
    wins = np.array([[[0.0, 9999.0, 9999.0], [1.0, 0.0, 5000.0], [0.5, 5000.0, 0.0]]])
    found = strengths(wins)[0]
    chance = 1 / (1 + np.exp(found[None, :] - found[:, None]))
    played = wins[0] + wins[0].T
    assert (played * chance).sum(axis=1) == pytest.approx(wins[0].sum(axis=1), rel=1e-9)


def test_tables_without_strengths_say_why():
    apart = np.zeros((4, 4))
    apart[0, 1] = apart[1, 0] = apart[2, 3] = apart[3, 2] = 5.0
    one = np.array([[0.0, 1.0], [0.0, 0.0]])
    unbeaten = np.array([[0.0, 3.0, 2.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    for table, why in (
        (apart, "subjects_not_linked"),
        (one, "subject_unbeaten"),
        (unbeaten, "subject_unbeaten"),
        (unbeaten.T, "subject_unbeaten"),
    ):
        assert np.isnan(strengths(table[None])).all()
        assert undefined_reason(table) == why
    # Resamples without strengths leave the others as they are.
    both = strengths(np.array([unbeaten, unbeaten + 0.5 * unbeaten.T]))
    assert np.isnan(both[0]).all()
    assert both[1] == pytest.approx(strengths((unbeaten + 0.5 * unbeaten.T)[None])[0])
