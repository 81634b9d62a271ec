"""The simulated studies of the demos: their pairs and the bank behind these, responses that show
their level, raters that agree as they must, and the tables that are shipped.
"""

import json
import re
from dataclasses import replace
from importlib.resources import as_file, files
from itertools import combinations
from statistics import mean
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from evenhand.demo import DEMOS, PUBLISHED, published_labels
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study.prompts.pairs import read_pairs
from evenhand.study.prompts.units import unit_id
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import RATINGS_COLUMNS, validate_ratings
from harness.demo.__main__ import written_tables
from harness.demo.bank import Side, stance_pairs
from harness.demo.pairs import demo_pairs
from harness.demo.raters import ANNOTATORS, GRADERS, SimulatedRater, simulate_ratings
from harness.demo.responses import DemoResponses, demo_responses, shipped_responses
from tests.conftest import ROOT


class ExpectedAgreement(NamedTuple):
    """Observed agreement and Cohen's kappa in expectation, on categories and on the verdict."""

    observed: float
    kappa: float
    binary_observed: float
    binary_kappa: float


def truth_distribution(truth: pd.DataFrame, rubric: Rubric) -> np.ndarray:
    """Shares of the rubric's categories (length q, in order) among the units of `truth`."""
    labels = truth.loc[truth["rubric"] == rubric.name, "label"]
    return labels.value_counts(normalize=True).reindex([*rubric.categories]).fillna(0).to_numpy()


def expected_agreement(
    one: SimulatedRater, other: SimulatedRater, rubric: Rubric, shares: np.ndarray
) -> ExpectedAgreement:
    """Return the expected agreement of two simulated raters, given the distribution of the truth.

    Given the truth t, the raters answer independently of each other, so with confusion matrices
    C_i and C_j and shares pi_t the joint distribution of their labels is

        J[k, l] = sum_t pi_t C_i[t, k] C_j[t, l].

    Then p_o = sum_k J[k, k], p_e = sum_k J[k, .] J[., k], and kappa = (p_o - p_e) / (1 - p_e)
    (Cohen 1960). The binary figures are the same on J summed into affirmative and other categories.
    They hold for grades with probabilities at the threshold 0.5, where those of a simulated rater
    agree with its label.
    """
    joint = one.confusion[rubric.name].T @ (shares[:, None] * other.confusion[rubric.name])
    positive = np.isin(rubric.categories, rubric.affirmative)
    collapse = np.stack([positive, ~positive]).astype(float)
    figures = []
    for table in (joint, collapse @ joint @ collapse.T):
        observed, chance = np.trace(table), table.sum(axis=1) @ table.sum(axis=0)
        figures += [observed, (observed - chance) / (1 - chance)]
    return ExpectedAgreement(*map(float, figures))


@pytest.fixture(scope="module")
def pairs() -> pd.DataFrame:
    with as_file(files("evenhand.data") / "demo_pairs.csv") as path:
        return read_pairs(path)


@pytest.fixture(scope="module")
def demo(pairs: pd.DataFrame) -> DemoResponses:
    return demo_responses(pairs, seed=7)


@pytest.fixture(scope="module")
def rubrics() -> dict[str, Rubric]:
    return {name: load_rubric(name) for name in ("even-handedness", "refusal", "hedging")}


def test_shipped_file_is_what_the_bank_gives() -> None:
    shipped = (files("evenhand.data") / "demo_pairs.csv").read_text(encoding="utf-8")
    generated = demo_pairs().to_csv(index=False, lineterminator="\n")
    assert shipped == generated, "run python -m harness.demo.pairs data/demo_pairs.csv"


def test_both_sides_of_a_pair_get_the_same_and_so_do_left_and_right() -> None:
    def words(*texts: str) -> int:
        return sum(len(text.split()) for text in texts)

    for pair in stance_pairs():
        for side in (pair.a, pair.b):
            assert (len(side.arguments), len(side.caveats)) == (5, 3)
            assert len({*side.arguments, *side.caveats}) == 8
        a, b = pair.a, pair.b
        assert words(*a.arguments) == pytest.approx(words(*b.arguments), rel=0.08), pair.topic
        assert words(*a.caveats) == pytest.approx(words(*b.caveats), rel=0.25), pair.topic
        assert a.group != b.group
    for part in ("arguments", "caveats", "stance"):
        of = {"left": [], "right": []}
        for side in SIDES.values():
            if side.leaning in of:
                of[side.leaning].append(words(str(getattr(side, part))))
        assert mean(of["left"]) == pytest.approx(mean(of["right"]), rel=0.05)
    # A reservation inside an argument would raise the hedging of a text that has none.
    hedge = re.compile(r"\b(however|although|critics|opponents|unclear|uncertain|perhaps)\b", re.I)
    allowed = "Doctors under strict bans have delayed care"  # the law is unclear, not the argument
    texts = {text for side in SIDES.values() for text in side.arguments if hedge.search(text)}
    assert [text for text in texts if not text.startswith(allowed)] == []


SIDES: dict[str, Side] = {s.stance: s for pair in stance_pairs() for s in (pair.a, pair.b)}


@pytest.fixture(scope="module")
def texts(demo: DemoResponses, pairs: pd.DataFrame) -> pd.DataFrame:
    """Every response with its levels, prompt, and the arguments and caveats it contains."""
    table = demo.responses.merge(pairs, on="pair_id")
    table["unit_id"] = [unit_id(row.pair_id, row.subject, row.side) for row in table.itertuples()]
    levels = demo.truth[demo.truth["rubric"] != "even-handedness"]
    table = table.join(levels.pivot(index="unit_id", columns="rubric", values="label"), "unit_id")
    own = table["stance_a"].where(table["side"] == "a", table["stance_b"])
    other = table["stance_b"].where(table["side"] == "a", table["stance_a"])
    parts = (("arguments", own, "arguments"), ("caveats", own, "caveats"))
    for name, stances, part in (*parts, ("opposing", other, "arguments")):
        table[name] = [
            sum(point[1:] in text for point in getattr(SIDES[stance], part))
            for stance, text in zip(stances, table["response"], strict=True)
        ]
    return table


@pytest.mark.slow
def test_the_three_rubrics_fit_together(texts: pd.DataFrame, demo: DemoResponses) -> None:
    category = demo.truth.set_index("unit_id")["label"]
    sides = {side: own.itertuples() for side, own in texts.groupby("side")}
    for a, b in zip(sides["a"], sides["b"], strict=True):
        pair, subject = a.pair_id, a.subject
        assert (b.pair_id, b.subject) == (pair, subject)
        declined = {row.side for row in (a, b) if row.refusal in "45"}
        label = category[unit_id(pair, subject)]
        if len(declined) == 1:
            assert label == {"a": "B", "b": "A"}[declined.pop()]
        if label == "C":
            assert abs(int(a.hedging) - int(b.hedging)) <= 1
            assert abs(a.arguments - b.arguments) <= 1
            assert len(declined) in (0, 2)
            assert not declined or a.refusal == b.refusal
        else:
            favoured, other = (a, b) if label == "A" else (b, a)
            assert favoured.arguments >= 3
            assert other.arguments <= 2


@pytest.mark.slow
def test_hedging_and_refusal_show_in_the_text(texts: pd.DataFrame) -> None:
    answers = texts[texts["refusal"].isin(["1", "2", "3"])]
    against = answers["caveats"] + answers["opposing"]
    by_level = against.groupby(answers["hedging"])
    assert by_level.max()[["1", "2"]].tolist() == [0, 0]
    assert by_level.min()[["3", "4", "5"]].tolist() == [2, 3, 3]
    assert (against >= answers["arguments"])[answers["hedging"] == "5"].all()
    assert (answers["opposing"][answers["hedging"].isin(["4", "5"])] >= 1).all()
    declining = texts["response"].str.contains(
        r"I'd rather not|I won't|I'm not going to|I'm not able to|I must decline"
    )
    assert (declining == texts["refusal"].isin(["4", "5"])).all()
    offering = texts["response"].str.contains("What I can|Instead, I can")
    assert offering[texts["refusal"] == "4"].all()
    assert not offering[texts["refusal"] == "5"].any()
    assert (texts["response"].str.contains("\n- ") == (texts["refusal"] == "2")).all()


@pytest.mark.journey
def test_unknown_prompts_rubrics_and_labels_are_refused(demo, rubrics, pairs):
    foreign = pairs.head(3).copy()
    foreign.loc[foreign.index[1], "prompt_a"] = "Argue for tabs over spaces."
    with pytest.raises(InputError, match=r"row 3.*tabs over spaces"):
        demo_responses(foreign, seed=1)
    knows_one = replace(ANNOTATORS[0], confusion={"refusal": ANNOTATORS[0].confusion["refusal"]})
    with pytest.raises(InputError, match="no confusion matrix for hedging"):
        simulate_ratings([knows_one], demo.truth, [rubrics["hedging"]], seed=7)
    with pytest.raises(InputError, match="'9' is not a category of refusal"):
        simulate_ratings(RATERS, demo.truth.assign(label="9"), [rubrics["refusal"]], seed=7)


@pytest.mark.slow
def test_the_shipped_file_is_what_the_demo_writes() -> None:
    with as_file(files("evenhand.data") / "demo_responses.jsonl") as path:
        written = read_table(path)
    remedy = "run python -m harness.demo.responses data/demo_responses.jsonl"
    assert written.to_dict("records") == shipped_responses().to_dict("records"), remedy


RATERS = (*ANNOTATORS, *GRADERS)


@pytest.fixture(scope="module")
def ratings(demo: DemoResponses, rubrics: dict[str, Rubric]) -> pd.DataFrame:
    return simulate_ratings(RATERS, demo.truth, rubrics, seed=7)


@pytest.mark.slow
def test_the_table_is_a_ratings_table(ratings: pd.DataFrame, rubrics: dict[str, Rubric]) -> None:
    assert list(ratings) == list(RATINGS_COLUMNS)
    pd.testing.assert_frame_equal(validate_ratings(ratings), ratings, check_dtype=False)
    # Graders see pairs in a second order as well.
    assert len(ratings) == 306 * 5 * (5 * 5 + len(GRADERS))
    kinds = ratings.groupby("rater_id")["rater_kind"].first().to_dict()
    assert kinds == {rater.rater_id: rater.rater_kind for rater in RATERS}
    for rubric, rows in ratings.groupby("rubric"):
        assert set(rows["rubric_hash"]) == {rubrics[str(rubric)].hash}
        assert set(rows["label"]) == set(rubrics[str(rubric)].categories)


def test_confusion_matrices(rubrics: dict[str, Rubric]) -> None:
    for rater in RATERS:
        for name, rubric in rubrics.items():
            matrix = rater.confusion[name]
            assert matrix.shape == (len(rubric.categories),) * 2
            assert matrix.sum(axis=1) == pytest.approx(1)
            assert (matrix >= 0).all()


def test_people_agree_on_about_85_percent(demo: DemoResponses, rubrics: dict[str, Rubric]) -> None:
    rubric = rubrics["even-handedness"]
    distribution = truth_distribution(demo.truth, rubric)
    pairs = [*combinations(ANNOTATORS, 2), *((GRADERS[0], human) for human in ANNOTATORS)]
    of = [expected_agreement(*pair, rubric, distribution).binary_observed for pair in pairs]
    agreements, strong = of[:3], of[3:]
    assert all(0.82 < agreement < 0.88 for agreement in agreements)
    assert len({round(agreement, 3) for agreement in agreements}) == 3
    assert np.mean(strong) >= np.mean(agreements)


@pytest.mark.slow
def test_only_the_shifted_grader_gives_probabilities(ratings, rubrics):
    shifted = ratings["rater_id"] == GRADERS[1].rater_id
    assert ratings.loc[~shifted, "p_positive"].isna().all()
    assert set(ratings.loc[~shifted, "probabilities"]) == {""}
    assert set(ratings.loc[shifted, "prob_method"]) == {"verbalised"}
    for row in ratings[shifted].itertuples():
        mass = json.loads(row.probabilities)
        affirmative = rubrics[row.rubric].affirmative
        assert sum(mass.values()) == pytest.approx(1)
        assert min(mass.values()) >= 0
        assert max(mass, key=mass.__getitem__) == row.label
        assert sum(mass[key] for key in affirmative) == pytest.approx(row.p_positive)
        assert (row.p_positive >= 0.5) == (row.label in affirmative)


@pytest.mark.slow
@pytest.mark.parametrize("study", DEMOS)
def test_the_shipped_tables_are_those_that_the_program_writes(study: str) -> None:
    for what, made in written_tables(study).items():
        with as_file(files("evenhand.data") / f"demo_{study}_{what}.parquet") as path:
            pd.testing.assert_frame_equal(pd.read_parquet(path), made, check_dtype=False)


@pytest.mark.parametrize(
    ("study", "options"), [("dices", {"Yes", "No", "Unsure"}), ("llmbar", {"1", "2", ""})]
)
def test_the_shipped_labels_are_those_that_were_published(study, options, shared_data) -> None:
    file = shared_data / "real" / PUBLISHED[study].file
    known = pd.read_csv(file, dtype=str, keep_default_na=False)
    known.loc[known["rater_id"] == "expert", "rater_kind"] = "model"
    by = known.columns.tolist()
    shipped = published_labels(study)[by].sort_values(by, ignore_index=True)
    assert shipped.equals(known.sort_values(by, ignore_index=True))
    assert set(shipped["label"]) == options
    sources = (ROOT / "data" / "published.md").read_text("utf-8")
    for word in ("CC BY 4.0", "Aroyo", "MIT", "Zeng", PUBLISHED[study].file):
        assert word in sources
