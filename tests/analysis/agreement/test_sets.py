"""Labels that are sets of options: distances between them, alphas, and what `check` makes."""

from __future__ import annotations

import json
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import (
    ALPHA,
    jaccard_distances,
    masi_distances,
    set_alphas,
    sets_of,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.cli.main import main

KEYS = ("a", "b", "c", "d")


def masi_by_hand(one: frozenset[str], other: frozenset[str]) -> float:
    """The distance of two sets that differ; nltk's `masi_distance` rounds 2/3 to .67 and 1/3 to
    .33, the source does not.
    """
    both, either = len(one & other), len(one | other)
    holds = both in (len(one), len(other))
    return 1.0 - both / either * (2 / 3 if holds else 1 / 3) if both else 1.0


def labelled(units: int = 60, raters: int = 3, gaps: float = 0.0, seed: int = 1) -> Coded:
    rng = np.random.default_rng(seed)
    true = rng.random((units, len(KEYS))) < 0.35
    parts = []
    missing = rng.random((units, raters)) < gaps
    for at in range(len(KEYS)):
        wrong = rng.random((units, raters)) < 0.15
        codes = np.where(true[:, [at]] ^ wrong, 0, 1).astype(np.int8)
        codes[missing] = -1
        names = tuple(f"r{n}" for n in range(raters))
        parts.append(
            Coded(names, ("human",) * raters, codes, np.arange(units), ("yes", "no"),
                  (1.0, 2.0), "nominal", "all")
        )  # fmt: skip
    return sets_of(parts, KEYS)


def test_distances_by_hand() -> None:
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
def test_alpha_is_that_of_another_implementation(gaps: float) -> None:
    coded, sets = labelled(gaps=gaps)
    counts = label_counts(coded, range(3))
    resamples = Resamples(np.ones(60), 3, np.random.default_rng(1))
    ours = set_alphas(counts, sets, coded, resamples)[ALPHA][0]
    apart = masi_distances(sets)

    def metric(first: np.ndarray, second: np.ndarray, **_: object) -> np.ndarray:
        return apart[first.astype(int), second.astype(int)]

    codes = np.where(coded.codes.T < 0, np.nan, coded.codes.T)
    theirs = krippendorff.alpha(codes, level_of_measurement=metric)
    assert ours == pytest.approx(theirs, abs=1e-9)


def test_two_raters_and_the_whole_by_hand() -> None:
    """Two units, D_o and D_e in the open: {a} with {a, b}, and {c} with {c}."""
    half = 1.0 - 1 / 2 * 2 / 3  # MASI distance of {a} and {a, b}, one of which holds the other
    totals = {"a": 1, "ab": 1, "c": 2}
    observed = 2 * half / 4
    expected = 2 * (1 * 1 * half + 1 * 2 + 1 * 2) / (4 * 3)
    parts = []
    for key in "abc":
        answers = [[key in "a", key in "ab"], [key in "c", key in "c"]]
        codes = np.where(np.array(answers), 0, 1).astype(np.int8)
        parts.append(
            Coded(("x", "y"), ("human",) * 2, codes, np.arange(2), ("yes", "no"), (1.0, 2.0),
                  "nominal", "all")
        )  # fmt: skip
    coded, sets = sets_of(parts, ["a", "b", "c"])
    assert sorted(coded.categories) == sorted(["a", "a;b", "c"]) and sum(totals.values()) == 4
    found = set_alphas(
        label_counts(coded, range(2)),
        sets,
        coded,
        Resamples(np.ones(2), 1, np.random.default_rng()),
    )
    assert found["krippendorff_alpha_masi"][0] == pytest.approx(1 - observed / expected)
    assert found["observed_agreement"][0] == pytest.approx(0.5)


def table(units: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    true = rng.random((units, 3)) < 0.45
    columns = {}
    for name in ("ann", "ben", "judge"):
        said = true ^ (rng.random(true.shape) < 0.07)
        columns[name] = [";".join(np.array(KEYS[:3])[own]) or "none" for own in said]
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(units)], **columns})


def test_each_option_has_a_verdict_and_the_whole_has_none(tmp_path: Path) -> None:
    found = eh.check(table(), human=["ann", "ben"], model="judge", several=True)
    assert [each["rubric"] for each in found.verdicts] == ["labels/a", "labels/b", "labels/c"]
    assert any("The whole set has agreement by MASI and Jaccard" in note for note in found.notes)
    rows = found.results
    whole = rows[rows["rubric"] == "labels"]
    assert set(whole["statistic"]) == {"observed_agreement", "disagreement", ALPHA}
    assert {("humans", ""), ("humans", "judge"), ("ann", "ben")} <= set(
        zip(whole["rater_a"], whole["rater_b"], strict=True)
    )
    same = (table()["ann"] == table()["ben"]).mean()
    own = whole[(whole["rater_a"] == "humans") & (whole["rater_b"] == "")]
    own = own.set_index("statistic")["estimate"]
    assert own["observed_agreement"] == pytest.approx(same)


def test_lists_and_semicolons_are_the_same(tmp_path: Path) -> None:
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
def test_what_is_no_set(
    tmp_path: Path, cell: str, options: list[str], told: str, capsys: pytest.CaptureFixture
) -> None:
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


def test_sets_that_are_all_alike_are_shared_and_do_not_vary() -> None:
    given = pd.DataFrame({"unit_id": list("xyz"), "ann": ["a;b"] * 3, "ben": ["b;a"] * 3})
    rows = eh.check(given, human=["ann", "ben"], several=True).results
    whole = rows[(rows["rubric"] == "labels") & (rows["rater_a"] == "humans")]
    alphas = whole[whole["statistic"].str.startswith("krippendorff")]
    assert set(alphas["note"]) == {"no_variation"}
    assert whole.loc[whole["statistic"] == "observed_agreement", "estimate"].tolist() == [1.0]
