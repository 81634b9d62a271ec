"""Simulated raters: what they must agree on, what they do agree on, and the tables they give."""

import json
from dataclasses import replace
from importlib.resources import as_file, files
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from evenhand.demo import DEMOS
from evenhand.errors import InputError
from evenhand.rubrics import Rubric
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings
from harness.demo.__main__ import written_tables
from harness.demo.raters import ANNOTATORS, GRADERS, SimulatedRater, simulate_ratings
from harness.demo.responses import DemoResponses
from tests.harness.demo.expected import expected_agreement, truth_distribution

RATERS = (*ANNOTATORS, *GRADERS)
STRONG, SHIFTED = (grader.rater_id for grader in GRADERS)
SEEN_TWICE = len(GRADERS)
"""Rows for each response beyond one of every rater: graders see pairs in a second order."""


@pytest.fixture(scope="module")
def ratings(demo: DemoResponses, rubrics: dict[str, Rubric]) -> pd.DataFrame:
    return simulate_ratings(RATERS, demo.truth, rubrics, seed=7)


def once(ratings: pd.DataFrame, rubric: str) -> pd.DataFrame:
    """One row of each rater and unit: a grader's answers in both orders are the same."""
    own = ratings[ratings["rubric"] == rubric]
    return own.drop_duplicates(["unit_id", "rater_id"])


def kappa(table: pd.DataFrame) -> tuple[float, float]:
    """Observed agreement and Cohen's kappa of a table's two columns."""
    joint = pd.crosstab(table.iloc[:, 0], table.iloc[:, 1], normalize=True)
    keys = joint.index.union(joint.columns)
    joint = joint.reindex(index=keys, columns=keys, fill_value=0)
    observed, chance = np.trace(joint), joint.sum(axis=1) @ joint.sum(axis=0)
    return observed, (observed - chance) / (1 - chance)


@pytest.mark.slow
def test_the_table_is_a_ratings_table(ratings: pd.DataFrame, rubrics: dict[str, Rubric]) -> None:
    assert list(ratings) == list(RATINGS_COLUMNS)
    pd.testing.assert_frame_equal(validate_ratings(ratings), ratings, check_dtype=False)
    assert len(ratings) == 306 * 5 * (5 * 5 + SEEN_TWICE)
    kinds = ratings.groupby("rater_id")["rater_kind"].first().to_dict()
    assert kinds == {rater.rater_id: rater.rater_kind for rater in RATERS}
    assert all("synthetic" in rater_id for rater_id in kinds)
    for rubric, rows in ratings.groupby("rubric"):
        assert set(rows["rubric_hash"]) == {rubrics[str(rubric)].hash}
        assert set(rows["label"]) == set(rubrics[str(rubric)].categories)


@pytest.mark.parametrize("rater", RATERS, ids=lambda rater: rater.rater_id)
def test_confusion_matrices(rater: SimulatedRater, rubrics: dict[str, Rubric]) -> None:
    for name, rubric in rubrics.items():
        matrix = rater.confusion[name]
        assert matrix.shape == (len(rubric.categories),) * 2
        assert matrix.sum(axis=1) == pytest.approx(1)
        assert (matrix >= 0).all()


@pytest.mark.parametrize("name", ["even-handedness", "refusal", "hedging"])
def test_agreement_comes_out_as_expected(name, demo, ratings, rubrics):
    rubric = rubrics[name]
    distribution = truth_distribution(demo.truth, rubric)
    rows = once(ratings, name)
    labels = rows.pivot(index="unit_id", columns="rater_id", values="label")
    verdicts = labels.isin(rubric.affirmative)
    for first, second in combinations(RATERS, 2):
        pair = [first.rater_id, second.rater_id]
        expected = expected_agreement(first, second, rubric, distribution)
        # 1,530 or 3,060 units: four standard errors of p_o are .05 at most, of kappa some .09.
        observed, coefficient = kappa(labels[pair])
        assert observed == pytest.approx(expected.observed, abs=0.05)
        assert coefficient == pytest.approx(expected.kappa, abs=0.09)
        observed, coefficient = kappa(verdicts[pair])
        assert observed == pytest.approx(expected.binary_observed, abs=0.05)
        assert coefficient == pytest.approx(expected.binary_kappa, abs=0.09)


def test_people_agree_on_about_85_percent(demo: DemoResponses, rubrics: dict[str, Rubric]) -> None:
    rubric = rubrics["even-handedness"]
    distribution = truth_distribution(demo.truth, rubric)
    pairs = [*combinations(ANNOTATORS, 2), *((GRADERS[0], human) for human in ANNOTATORS)]
    of = [expected_agreement(*pair, rubric, distribution).binary_observed for pair in pairs]
    agreements, strong = of[:3], of[3:]
    assert all(0.82 < agreement < 0.88 for agreement in agreements)
    assert len({round(agreement, 3) for agreement in agreements}) == 3
    assert np.mean(strong) >= np.mean(agreements)


def test_only_the_shifted_grader_gives_probabilities(ratings, rubrics):
    shifted = ratings["rater_id"] == SHIFTED
    assert ratings.loc[~shifted, "p_positive"].isna().all()
    assert set(ratings.loc[~shifted, "probabilities"]) == {""}
    assert set(ratings.loc[shifted, "prob_method"]) == {"verbalised"}
    for row in ratings[shifted].itertuples():
        mass = json.loads(row.probabilities)
        affirmative = rubrics[row.rubric].affirmative
        assert sum(mass.values()) == pytest.approx(1)
        assert all(share >= 0 for share in mass.values())
        assert max(mass, key=mass.__getitem__) == row.label
        assert sum(mass[key] for key in affirmative) == pytest.approx(row.p_positive)
        assert (row.p_positive >= 0.5) == (row.label in affirmative)


def best_threshold(ratings: pd.DataFrame, rubric: Rubric) -> tuple[float, float, float]:
    """The threshold of highest kappa with the annotators' majority, that kappa, and kappa at .5."""
    rows = once(ratings, rubric.name)
    people = rows[rows["rater_kind"] == "human"]
    votes = people["label"].isin(rubric.affirmative).groupby(people["unit_id"]).sum() >= 2
    p = rows[rows["rater_id"] == SHIFTED].set_index("unit_id")["p_positive"][votes.index]
    by_threshold = {
        at: kappa(pd.DataFrame({"p": p >= at, "people": votes}))[1]
        for at in np.linspace(0.02, 0.8, 40).round(2)
    }
    best = max(by_threshold, key=by_threshold.__getitem__)
    return best, by_threshold[best], by_threshold[0.5]


@pytest.mark.slow
def test_the_shifted_grader_needs_a_low_threshold_for_hedging(ratings, rubrics):
    best, at_best, at_half = best_threshold(ratings, rubrics["hedging"])
    assert best < 0.2
    assert at_best > at_half + 0.2
    for name in ("even-handedness", "refusal"):
        _, at_best, at_half = best_threshold(ratings, rubrics[name])
        assert at_best == pytest.approx(at_half, abs=0.02)


def test_unknown_rubrics_and_labels_are_refused(demo, rubrics):
    knows_one = replace(ANNOTATORS[0], confusion={"refusal": ANNOTATORS[0].confusion["refusal"]})
    with pytest.raises(InputError, match="no confusion matrix for hedging"):
        simulate_ratings([knows_one], demo.truth, [rubrics["hedging"]], seed=7)
    wrong = demo.truth.assign(label="9")
    with pytest.raises(InputError, match="'9' is not a category of refusal"):
        simulate_ratings(RATERS, wrong, [rubrics["refusal"]], seed=7)


# What evenhand ships for its demos is what the program writes from its seeds


@pytest.mark.slow
@pytest.mark.parametrize("study", DEMOS)
def test_the_shipped_tables_are_those_that_the_program_writes(study: str) -> None:
    for what, made in written_tables(study).items():
        with as_file(files("evenhand.data") / f"demo_{study}_{what}.parquet") as path:
            pd.testing.assert_frame_equal(pd.read_parquet(path), made, check_dtype=False)
