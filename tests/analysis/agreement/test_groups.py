"""Agreement category by category and confusion matrices, counted by hand.
Labels that are sets of options: distances between them, alphas, and what `check` makes.
"""

from __future__ import annotations

import json
from itertools import permutations

import krippendorff
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis import Scale, specific_agreement
from evenhand.analysis.agreement.groups import ALPHA, jaccard_distances, masi_distances
from evenhand.cli.main import main
from tests.analysis.make import analyse_labels, noisy, row_of, rows_of

THREE = ("1", "2", "3")


def _by_hand(rows: list[list[str]], category: str) -> float:
    """Of all ordered pairs of labels whose first is the category, those whose second is too."""
    same = every = 0
    for row in rows:
        given = [label for label in row if label != "-"]
        for first, second in permutations(range(len(given)), 2):
            every += given[first] == category
            same += given[first] == category and given[second] == category
    return same / every if every else np.nan


def test_specific_agreement_and_confusion(rng):
    truth = rng.integers(0, 2, 80)
    labels = {name: noisy(rng, truth, 2, 0.7, missing=0.2) for name in ("ann", "ben", "cem", "g")}
    results = analyse_labels(labels, Scale("", THREE), resamples=200).results
    people = [list(row) for row in zip(*(labels[n] for n in ("ann", "ben", "cem")), strict=True)]
    plain = specific_agreement(
        [[None if x == "-" else x for x in row] for row in people], categories=THREE
    )
    group, pair, with_humans = (
        rows_of(results, "specific_agreement", *raters).set_index("at")
        for raters in (("humans", ""), ("ann", "g"), ("humans", "g"))
    )
    both = [list(row) for row in zip(labels["ann"], labels["g"], strict=True)]
    for category in THREE[:2]:
        assert group.loc[category, "estimate"] == pytest.approx(_by_hand(people, category))
        assert plain[category].estimate == pytest.approx(_by_hand(people, category))
        assert pair.loc[category, "estimate"] == pytest.approx(_by_hand(both, category))
        assert pair.loc[category, "low"] < pair.loc[category, "high"]
    for rows in (group, pair):
        assert np.isnan(rows.loc["3", "estimate"])
        assert rows.loc["3", "note"] == "category_not_used"
    pairs = [[person, g] for row, g in zip(people, labels["g"], strict=True) for person in row]
    pairs = [pair for pair in pairs if "-" not in pair]
    assert with_humans.loc["1", "estimate"] == pytest.approx(_by_hand(pairs, "1"))
    table = rows_of(results, "confusion", "ann", "g").set_index("at")
    assert table.index.tolist() == [f"{a}>{b}" for a in THREE for b in THREE]
    for cell, row in table.iterrows():
        first, second = str(cell).split(">")
        assert row["estimate"] == sum(a == first and g == second for a, g in both)
        assert row["n_units"] == sum("-" not in each for each in both)


def test_positive_and_negative_agreement():
    """Cicchetti & Feinstein (1990): 80 and 5 agreed of 100, .914 and .400."""
    labels = {"ann": "1" * 90 + "2" * 10, "ben": "1" * 80 + "2" * 10 + "1" * 5 + "2" * 5}
    scale = Scale("", ("1", "2"), affirmative=frozenset({"1"}))
    found = analyse_labels(labels, scale, resamples=100)
    rows = rows_of(found, "specific_agreement", "ann", subset="all|binary").set_index("at")
    assert rows["estimate"].round(3).to_dict() == {"affirmative": 0.914, "other": 0.4}


def test_categories_that_hold_an_arrow_stay_apart():
    labels = {"ann": ["a", "a>b"] * 20, "ben": ["b>c", "c"] * 20}
    found = analyse_labels(labels, Scale("", ("a", "a>b", "b>c", "c")), resamples=20)
    cells = rows_of(found, "confusion").query("estimate > 0")
    assert cells["at"].tolist() == ["a>'b>c'", "'a>b'>c"]


KEYS = ("a", "b", "c", "d")


def masi_by_hand(one: frozenset[str], other: frozenset[str]) -> float:
    """The distance of two sets that differ; nltk's `masi_distance` rounds 2/3 to .67 and 1/3 to
    .33, the source does not.
    """
    both, either = len(one & other), len(one | other)
    holds = both in (len(one), len(other))
    return 1.0 - both / either * (2 / 3 if holds else 1 / 3) if both else 1.0


def test_distances_by_hand():
    sets = [frozenset(each) for each in ("", "a", "b", "ab", "bc", "abcd")]
    held = np.array([[key in each for key in KEYS] for each in sets])
    for i, one in enumerate(sets):
        for j, other in enumerate(sets):
            equal = one == other
            jaccard = 0.0 if equal else 1.0 - len(one & other) / len(one | other)
            assert jaccard_distances(held)[i, j] == pytest.approx(jaccard)
            expected = 0.0 if equal else masi_by_hand(one, other)
            assert masi_distances(held)[i, j] == pytest.approx(expected)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_alpha_is_that_of_another_implementation(gaps, rng):
    people = ["ann", "ben", "judge"]
    given = table(60)
    given[people] = given[people].mask(rng.random((60, 3)) < gaps)
    names = sorted(set(given[people].stack().dropna()))
    sets = [frozenset(name.split(";")) - {"none"} for name in names]
    apart = np.array([[masi_by_hand(a, b) if a != b else 0.0 for b in sets] for a in sets])

    def metric(first: np.ndarray, second: np.ndarray, **_: object) -> np.ndarray:
        return apart[first.astype(int), second.astype(int)]

    codes = given[people].replace({name: float(at) for at, name in enumerate(names)}).astype(float)
    theirs = krippendorff.alpha(codes.to_numpy().T, level_of_measurement=metric)
    found = eh.check(given, human=people, several=True).results
    ours = row_of(found, ALPHA, "humans", "", rubric="labels")
    assert ours["estimate"] == pytest.approx(theirs, abs=1e-9)


def test_two_raters_and_the_whole_by_hand():
    """Two units, D_o and D_e in the open: {a} with {a, b}, and {c} with {c}."""
    half = 1.0 - 1 / 2 * 2 / 3  # MASI distance of {a} and {a, b}, one of which holds the other
    observed = 2 * half / 4
    expected = 2 * (1 * 1 * half + 1 * 2 + 1 * 2) / (4 * 3)
    given = pd.DataFrame({"unit_id": ["x", "y"], "ann": ["a", "c"], "ben": ["a;b", "c"]})
    found = eh.check(given, human=["ann", "ben"], several=True).results
    alpha, agreement = (
        row_of(found, statistic, "humans", "", rubric="labels")["estimate"]
        for statistic in (ALPHA, "observed_agreement")
    )
    assert (alpha, agreement) == pytest.approx((1 - observed / expected, 0.5))


def table(units: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    true = rng.random((units, 3)) < 0.45
    columns = {}
    for name in ("ann", "ben", "judge"):
        said = true ^ (rng.random(true.shape) < 0.07)
        columns[name] = [";".join(np.array(KEYS[:3])[own]) or "none" for own in said]
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(units)], **columns})


def test_each_option_has_a_verdict_and_the_whole_has_none():
    found = eh.check(table(), human=["ann", "ben"], model="judge", several=True)
    assert [each["rubric"] for each in found.verdicts] == ["labels/a", "labels/b", "labels/c"]
    assert any("The whole set has agreement by MASI and Jaccard" in note for note in found.notes)
    whole = found.results[found.results["rubric"] == "labels"]
    assert set(whole["statistic"]) == {"observed_agreement", "disagreement", ALPHA}
    assert {("humans", ""), ("humans", "judge"), ("ann", "ben")} <= set(
        zip(whole["rater_a"], whole["rater_b"], strict=True)
    )
    same = (table()["ann"] == table()["ben"]).mean()
    row = row_of(whole, "observed_agreement", "humans", "")
    assert row["estimate"] == pytest.approx(same)


def test_lists_and_semicolons_are_the_same():
    given = table(40)
    lists = given.copy()
    for name in ("ann", "ben", "judge"):
        cells = [[] if cell == "none" else cell.split(";")[::-1] for cell in given[name]]
        lists[name] = [json.dumps(cell) for cell in cells]
    who = {"human": ["ann", "ben"], "model": "judge", "several": True, "resamples": 50}
    one, other = (eh.check(each, **who).results for each in (given, lists))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("cell", "options", "told"),
    [
        ("a;;b", [], "row 2, column 'ben': the label 'a;;b' is no set of options; write a;b"),
        ('{"a": 1}', [], "is no set of options"),
        ("a;z", ["--categories", "a,b,c"], "names 'z', none of a, b, c"),
        ("a", ["--level", "ordinal"], "--level does not go with --several"),
        ("a", ["--engine", "dask"], "--several is not read with --engine"),
    ],
)
def test_what_is_no_set(tmp_path, cell, options, told, capsys):
    file = tmp_path / "labels.csv"
    frame = table(40)
    frame.loc[0, "ben"] = cell
    if "--engine" in options:
        frame = frame.melt("unit_id", var_name="rater_id", value_name="label")
        frame["rater_kind"] = np.where(frame["rater_id"] == "judge", "model", "human")
        who = []
    else:
        who = ["--human", "ann,ben", "--model", "judge"]
    frame.to_csv(file, index=False)
    assert main(["check", str(file), *who, "--several", *options]) == 2
    assert told in capsys.readouterr().err


def test_sets_that_are_all_alike_are_shared_and_do_not_vary():
    given = pd.DataFrame({"unit_id": list("xyz"), "ann": ["a;b"] * 3, "ben": ["b;a"] * 3})
    rows = eh.check(given, human=["ann", "ben"], several=True).results
    whole = rows[(rows["rubric"] == "labels") & (rows["rater_a"] == "humans")]
    alphas = whole[whole["statistic"].str.startswith("krippendorff")]
    assert set(alphas["note"]) == {"no_variation"}
    assert whole.loc[whole["statistic"] == "observed_agreement", "estimate"].tolist() == [1.0]
