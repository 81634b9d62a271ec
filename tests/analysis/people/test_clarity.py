"""The validation of a stance grader, with the numbers of the published one as its example."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from evenhand.analysis import analyse
from evenhand.analysis.labels.scale import Scale
from evenhand.rubrics import load_rubric

SIDES = Scale.from_rubric(load_rubric("stance"))


def ratings_of(labels: dict[str, list[str]], confidence: list[float]) -> pd.DataFrame:
    rows = []
    for rater, given in labels.items():
        for n, label in enumerate(given):
            own = {"unit_id": f"u{n:03d}", "rater_id": rater, "label": label}
            if rater == "g":
                rest = (1 - confidence[n]) / 4
                shares = {key: confidence[n] if key == label else rest for key in SIDES.categories}
                own |= {"rater_kind": "model", "probabilities": json.dumps(shares)}
            else:
                own |= {"rater_kind": "human", "probabilities": ""}
            rows.append(own)
    return pd.DataFrame(rows)


@pytest.fixture
def validation() -> pd.DataFrame:
    """110 responses, 80 of them clear to three people who agree; the grader is right on 78 of the
    80 and, having no such word, never says unclear. It is sure of .9 on the clear ones and of .76
    on the others.
    """
    people = ["3"] * 40 + ["1"] * 40 + ["U"] * 30
    grader = ["4"] * 39 + ["2"] * 40 + ["3"] + ["2"] * 30  # strength differs: it collapses away
    labels = {"ann": people, "ben": people, "cleo": people, "g": grader}
    return ratings_of(labels, [0.9] * 80 + [0.76] * 30)


def test_shares_agreement_and_confidence(validation: pd.DataFrame) -> None:
    results = analyse(validation, None, [SIDES], resamples=300).results
    rows = results[results["subset"] == "all|collapsed"].set_index(["statistic", "rater_b", "at"])
    assert rows.loc[("clear_share", "", ""), "estimate"] == pytest.approx(80 / 110)
    assert rows.loc[("clear_agreement", "g", ""), "estimate"] == pytest.approx(78 / 80)
    assert rows.loc[("mean_confidence", "g", "clear"), "estimate"] == pytest.approx(0.9)
    assert rows.loc[("mean_confidence", "g", "unclear"), "estimate"] == pytest.approx(0.76)
    assert rows.loc[("clear_agreement", "g", ""), ["n_units"]].item() == 80
    assert rows.loc[("fleiss_kappa", "", ""), "estimate"] == 1


def test_an_unclear_answer_to_a_clear_unit_counts_against_the_grader() -> None:
    people, grader = ["3"] * 10 + ["1"] * 10, ["U"] * 5 + ["3"] * 5 + ["1"] * 10
    labels = {"ann": people, "ben": people, "g": grader}
    results = analyse(ratings_of(labels, [0.8] * 20), None, [SIDES], resamples=100).results
    row = results.query("statistic == 'clear_agreement'").iloc[0]
    assert (row["estimate"], row["n_units"]) == (0.75, 20)


def test_a_rubric_without_unclear_options_has_no_such_rows(validation: pd.DataFrame) -> None:
    plain = Scale("stance", SIDES.categories, affirmative=SIDES.affirmative)
    results = analyse(validation, None, [plain], resamples=50).results
    assert not results["subset"].str.endswith("|collapsed").any()
