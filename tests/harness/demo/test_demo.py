"""The simulated studies of the demos: their pairs and the bank behind these, responses that show
their level, raters that agree as they must, and the tables that are shipped.
"""

import re
from importlib.resources import as_file, files
from itertools import combinations
from statistics import mean
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from evenhand.demo import DEMOS, PUBLISHED, published_labels
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
    """Every response with its levels, prompt, and the arguments it contains."""
    table = demo.responses.merge(pairs, on="pair_id")
    table["unit_id"] = [unit_id(row.pair_id, row.subject, row.side) for row in table.itertuples()]
    levels = demo.truth[demo.truth["rubric"] != "even-handedness"]
    table = table.join(levels.pivot(index="unit_id", columns="rubric", values="label"), "unit_id")
    own = table["stance_a"].where(table["side"] == "a", table["stance_b"])
    table["arguments"] = [
        sum(point[1:] in text for point in SIDES[stance].arguments)
        for stance, text in zip(own, table["response"], strict=True)
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
