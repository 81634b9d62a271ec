"""Published examples of many raters, and other libraries on random labels with gaps.

Agreement category by category and confusion matrices, counted by hand.
Labels that are sets of options: distances between them, alphas, and what `check` makes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import krippendorff
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis import Scale, analyse, specific_agreement
from evenhand.analysis.agreement.coefficients import label_counts
from evenhand.analysis.agreement.groups import (
    ALPHA,
    group_panel,
    groups,
    jaccard_distances,
    masi_distances,
    set_alphas,
    sets_of,
)
from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import Coded
from evenhand.cli.main import main

# Fleiss (1971), Psychological Bulletin 76:378-382: 30 patients, 6 psychiatrists, 5 diagnoses.
FLEISS = """
0 0 0 6 0|0 3 0 0 3|0 1 4 0 1|0 0 0 0 6|0 3 0 3 0|2 0 4 0 0|0 0 4 0 2|2 0 3 1 0|2 0 0 4 0|0 0 0 0 6
1 0 0 5 0|1 1 0 4 0|0 3 3 0 0|1 0 0 5 0|0 2 0 3 1|0 0 5 0 1|3 0 0 1 2|5 1 0 0 0|0 2 0 4 0|1 0 2 0 3
0 0 0 0 6|0 1 0 5 0|0 2 0 1 3|2 0 0 4 0|1 0 0 4 1|0 5 0 1 0|4 0 0 0 2|0 2 0 4 0|1 0 5 0 0|0 0 0 0 6
"""
# Krippendorff (2011), example C: four raters, twelve units, "-" missing. Gwet (2014), p. 120, has
# the same labels as raw4raters (but for the order of the units).
KRIPPENDORFF = {"a": "123321412---", "b": "1233224125--", "c": "-33323422513", "d": "12332441251-"}
FIVE = ("1", "2", "3", "4", "5")


def _panel(matrix, members=None):
    coded = matrix.on_categories()
    resamples = Resamples(np.ones(matrix.n_clusters), 3, np.random.default_rng(1))
    counts = label_counts(coded, members or range(len(coded.raters)))
    return {name: values[0] for name, values in group_panel(counts, coded, resamples).items()}


def test_fleiss_1971(make_matrix: Callable) -> None:
    counts = [
        [int(n) for n in cell.split()] for cell in FLEISS.strip().replace("\n", "|").split("|")
    ]
    labels = [[str(k + 1) for k in range(5) for _ in range(row[k])] for row in counts]
    raters = {f"r{j}": [row[j] for row in labels] for j in range(6)}
    panel = _panel(make_matrix(raters, Scale("", FIVE)))
    assert panel["observed_agreement"] == pytest.approx(0.5555555556)
    assert panel["fleiss_kappa"] == pytest.approx(0.4302445201)


def test_krippendorff_2011_example_c(make_matrix: Callable) -> None:
    panel = _panel(make_matrix(KRIPPENDORFF, Scale("", FIVE, "interval")))
    assert panel["krippendorff_alpha_nominal"] == pytest.approx(0.743421052632)
    assert panel["krippendorff_alpha_ordinal"] == pytest.approx(0.815387503755)
    assert panel["krippendorff_alpha_interval"] == pytest.approx(0.849107142857)


def test_gwet_2014_raw4raters(make_matrix: Callable) -> None:
    """Unequal numbers of raters, and a unit with one label that counts towards the shares only."""
    panel = _panel(make_matrix(KRIPPENDORFF, Scale("", FIVE, "ordinal")))
    assert panel["fleiss_kappa"] == pytest.approx(0.7611692754)
    assert panel["gwet_ac1"] == pytest.approx(0.7754440681)
    assert panel["gwet_ac2"] == pytest.approx(0.9140007236)
    assert panel["brennan_prediger"] == pytest.approx(0.7727272727)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_alpha_is_that_of_the_krippendorff_package(
    make_matrix: Callable, noisy: Callable, rng: np.random.Generator, missing: float
) -> None:
    import krippendorff

    truth = rng.integers(0, 4, 80)
    raters = {name: noisy(rng, truth, 4, keep=0.6, missing=missing) for name in "abcde"}
    values = [[np.nan if x == "-" else float(x) for x in given] for given in raters.values()]
    panel = _panel(make_matrix(raters, Scale("", FIVE[:4], "interval")))
    for level in ("nominal", "ordinal", "interval"):
        theirs = krippendorff.alpha(
            reliability_data=values, level_of_measurement=level, value_domain=[1, 2, 3, 4]
        )
        assert panel[f"krippendorff_alpha_{level}"] == pytest.approx(theirs)


def test_fleiss_is_that_of_statsmodels(
    make_matrix: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    from statsmodels.stats.inter_rater import aggregate_raters, fleiss_kappa

    truth = rng.integers(0, 3, 60)
    raters = {name: noisy(rng, truth, 3, keep=0.5) for name in "abcd"}
    table, _ = aggregate_raters(np.array([list(map(int, given)) for given in raters.values()]).T)
    panel = _panel(make_matrix(raters, Scale("", FIVE[:3])))
    assert panel["fleiss_kappa"] == pytest.approx(fleiss_kappa(table, method="fleiss"))


def test_adjudicators_belong_to_no_group(make_matrix: Callable) -> None:
    from dataclasses import replace

    matrix = make_matrix({"ann": "112", "ben": "122", "chair": "112"}, Scale("", ("1", "2")))
    coded = replace(matrix.on_categories(), kinds=("human", "human", "adjudicator"))
    assert groups(coded) == {"humans": (0, 1), "all": (0, 1)}


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


def _at(results: pd.DataFrame, statistic: str, raters: tuple[str, str]) -> pd.DataFrame:
    own = (results["rater_a"] == raters[0]) & (results["rater_b"] == raters[1])
    own &= (results["statistic"] == statistic) & (results["subset"] == "all")
    return results[own].set_index("at")


def test_specific_agreement_and_confusion(
    make_ratings: Callable, noisy: Callable, rng: np.random.Generator
) -> None:
    truth = rng.integers(0, 2, 80)
    labels = {name: noisy(rng, truth, 2, 0.7, missing=0.2) for name in ("ann", "ben", "cem", "g")}
    results = analyse(make_ratings(labels, ["g"]), None, [Scale("", THREE)], resamples=200).results
    people = [list(row) for row in zip(*(labels[n] for n in ("ann", "ben", "cem")), strict=True)]
    plain = specific_agreement(
        [[None if x == "-" else x for x in row] for row in people], categories=THREE
    )
    group = _at(results, "specific_agreement", ("humans", ""))
    pair = _at(results, "specific_agreement", ("ann", "g"))
    both = [list(row) for row in zip(labels["ann"], labels["g"], strict=True)]
    for category in THREE[:2]:
        assert group.loc[category, "estimate"] == pytest.approx(_by_hand(people, category))
        assert plain[category].estimate == pytest.approx(_by_hand(people, category))
        assert pair.loc[category, "estimate"] == pytest.approx(_by_hand(both, category))
        assert pair.loc[category, "low"] < pair.loc[category, "high"]
    for rows in (group, pair):
        assert np.isnan(rows.loc["3", "estimate"])
        assert rows.loc["3", "note"] == "category_not_used"
    with_humans = _at(results, "specific_agreement", ("humans", "g"))
    pairs = [[person, g] for row, g in zip(people, labels["g"], strict=True) for person in row]
    pairs = [pair for pair in pairs if "-" not in pair]
    assert with_humans.loc["1", "estimate"] == pytest.approx(_by_hand(pairs, "1"))

    table = _at(results, "confusion", ("ann", "g"))
    assert table.index.tolist() == [f"{a}>{b}" for a in THREE for b in THREE]
    for cell, row in table.iterrows():
        first, second = str(cell).split(">")
        assert row["estimate"] == sum(a == first and g == second for a, g in both)
        assert row["n_units"] == sum("-" not in each for each in both)


def test_positive_and_negative_agreement(make_ratings: Callable) -> None:
    """Cicchetti & Feinstein (1990): 80 and 5 agreed of 100, .914 and .400."""
    labels = {"ann": "1" * 90 + "2" * 10, "ben": "1" * 80 + "2" * 10 + "1" * 5 + "2" * 5}
    scale = Scale("", ("1", "2"), affirmative=frozenset({"1"}))
    results = analyse(make_ratings(labels), None, [scale], resamples=100).results
    own = (results["rater_a"] == "ann") & (results["subset"] == "all|binary")
    found = results[own & (results["statistic"] == "specific_agreement")].set_index("at")
    assert found["estimate"].round(3).to_dict() == {"affirmative": 0.914, "other": 0.4}


def test_categories_that_hold_an_arrow_stay_apart(make_ratings: Callable) -> None:
    scale = Scale("", ("a", "a>b", "b>c", "c"))
    ratings = make_ratings({"ann": ["a", "a>b"] * 20, "ben": ["b>c", "c"] * 20})
    found = analyse(ratings, None, [scale], resamples=20).results
    cells = found[(found["statistic"] == "confusion") & (found["estimate"] > 0)]
    assert cells["at"].tolist() == ["a>'b>c'", "'a>b'>c"]


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
