"""Agreement category by category and confusion matrices, counted by hand.
Labels that are sets of options: distances between them, alphas, and what `check` makes.

The majority of the other humans, against plain counts.
"""

from dataclasses import replace
from itertools import permutations

import krippendorff
import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.analysis import Scale, analyse, specific_agreement
from evenhand.analysis.agreement.groups import MASI_ALPHA, jaccard_distances, masi_distances
from evenhand.cli.main import main
from tests.analysis.make import analyse_labels, noisy, ratings_of, row_of, rows_of
from tests.cases import refused
from tests.known_values import known_values
from tests.peers import inter_rater

THREE = ("1", "2", "3")


def _by_hand(rows, category):
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
    people = [list(row) for row in zip(*(labels[n] for n in ("ann", "ben", "cem")), strict=True)]
    given = [[None if x == "-" else x for x in row] for row in people]
    plain = specific_agreement(given, categories=THREE)
    for category in THREE[:2]:
        assert plain[category].estimate == pytest.approx(_by_hand(people, category))
    both = [list(row) for row in zip(labels["ann"], labels["g"], strict=True)]
    results = analyse_labels(labels, Scale("", THREE)).results
    table = rows_of(results, "confusion", "ann", "g").set_index("at")
    assert table.index.tolist() == [f"{a}>{b}" for a in THREE for b in THREE]
    for cell, row in table.iterrows():
        first, second = str(cell).split(">")
        assert row["estimate"] == sum(a == first and g == second for a, g in both)
        assert row["n_units"] == sum("-" not in each for each in both)


def test_categories_that_hold_an_arrow_stay_apart():
    labels = {"ann": ["a", "a>b"] * 20, "ben": ["b>c", "c"] * 20}
    found = analyse_labels(labels, Scale("", ("a", "a>b", "b>c", "c")))
    cells = rows_of(found, "confusion").query("estimate > 0")
    assert cells["at"].tolist() == ["a>'b>c'", "'a>b'>c"]


KEYS = ("a", "b", "c", "d")


def masi_by_hand(one, other):
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


@pytest.mark.journey
def test_alpha_is_that_of_another_implementation(rng):
    people = ["ann", "ben", "judge"]
    given = table(60)
    given[people] = given[people].mask(rng.random((60, 3)) < 0.3)
    names = sorted(set(given[people].stack().dropna()))
    sets = [frozenset(name.split(";")) - {"none"} for name in names]
    apart = np.array([[masi_by_hand(a, b) if a != b else 0.0 for b in sets] for a in sets])
    codes = given[people].replace({name: float(at) for at, name in enumerate(names)}).astype(float)
    theirs = krippendorff.alpha(
        codes.to_numpy().T, level_of_measurement=lambda a, b, **_: apart[np.intp(a), np.intp(b)]
    )
    same = eh.analysis.observed_agreement(given[people], categories=names).estimate
    found = eh.check(given, human=people, several=True, resamples=20).results
    for statistic, expected in ((MASI_ALPHA, theirs), ("observed_agreement", same)):
        ours = row_of(found, statistic, "humans", "", rubric="labels")
        assert ours["estimate"] == pytest.approx(expected, abs=1e-9)


def table(units=80):
    rng = np.random.default_rng(2)
    true = rng.random((units, 3)) < 0.45
    columns = {}
    for name in ("ann", "ben", "judge"):
        said = true ^ (rng.random(true.shape) < 0.07)
        columns[name] = [";".join(np.array(KEYS[:3])[own]) or "none" for own in said]
    return pd.DataFrame({"unit_id": [f"u{n}" for n in range(units)], **columns})


@pytest.mark.journey
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
    found = eh.check(given, human=["ann", "ben"], several=True, resamples=20)
    assert row_of(found, MASI_ALPHA, "humans", rubric="labels")["note"] == "no_variation"
    assert row_of(found, "observed_agreement", "humans", rubric="labels")["estimate"] == 1.0


LEVELS = Scale("level", ("1", "2", "3", "4"), "ordinal", frozenset({"3", "4"}))


def worded(labels, rater="g", subject="s"):
    """Ratings and units from labels (questions, wordings) of one grader; "" is no response."""
    rows = [
        (f"{subject}-{question}-{wording}", f"q{question:03d}", subject, f"w{wording}", label)
        for question, row in enumerate(labels)
        for wording, label in enumerate(row)
        if label
    ]
    units = pd.DataFrame(rows, columns=["unit_id", "cluster_id", "subject", "wording", "label"])
    ratings = units[["unit_id", "label"]].assign(rater_id=rater, rater_kind="model")
    return ratings, units.drop(columns="label")


def stability(ratings, units, scale=LEVELS, **options):
    options = {"variants": ["wording"], "resamples": 50} | options
    rows = analyse(ratings, units, [scale], **options).results
    rows = rows[rows["statistic"].str.startswith("stability")]
    return rows.set_index(["statistic", "rater_a", "subset", "at"])


def test_variants_are_raters_as_in_fleiss_1971():
    """His 30 patients by 6 raters: each patient is a question, each rater a wording."""
    counts = np.array(known_values("fleiss1971")["data"]["counts_items_x_categories"])
    labels = [[str(k) for k, n in enumerate(row) for _ in range(n)] for row in counts]
    scale = Scale("diagnosis", tuple(str(k) for k in range(counts.shape[1])))
    ratings, units = worded(labels)
    people = ratings.assign(rater_id="ann", rater_kind="human")
    rows = stability(pd.concat([ratings, people]), units, scale=scale)
    for rater in ("g", "humans"):
        estimate = rows.loc[("stability_fleiss_kappa", rater, "all", "wording"), "estimate"]
        assert estimate == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)


def test_the_spread_is_the_mean_standard_deviation():
    labels = np.array([["1", "3"], ["2", "2"], ["4", ""]] * 4, dtype=object)
    row = stability(*worded(labels)).loc[("stability_sd", "g", "all", "wording")]
    # Standard deviations: of 1 and 3, sqrt(2); of 2 and 2, 0; a single label has none.
    assert (row["estimate"], row["n_units"]) == (pytest.approx(np.sqrt(2) / 2), 8)


def test_subjects_stand_apart_and_together():
    steady = np.array([["1", "1"], ["4", "4"]] * 10, dtype=object)
    shaky = np.array([["1", "4"], ["4", "1"]] * 10, dtype=object)
    parts = [worded(steady, subject="steady"), worded(shaky, subject="shaky")]
    ratings, units = (pd.concat(each, ignore_index=True) for each in zip(*parts, strict=True))
    kappa = stability(ratings, units).loc["stability_fleiss_kappa"]["estimate"]
    assert kappa[("g", "subject=steady", "wording")] == 1
    # Opposite answers, each category half the time: observed 0, expected .5.
    assert kappa[("g", "subject=shaky", "wording")] == pytest.approx(-1)
    assert kappa[("g", "all", "wording")] == pytest.approx(0)


def test_other_variant_columns_stay_fixed():
    """Labels follow the paraphrase, so wordings are perfectly stable and paraphrases are not."""
    rows = [
        (f"q{q}-{w}-{p}", f"q{q}", "s", w, p, "1" if (q + int(p)) % 2 else "4")
        for q in range(8)
        for w in ("x", "y")
        for p in ("1", "2")
    ]
    names = ["unit_id", "cluster_id", "subject", "wording", "paraphrase", "label"]
    units = pd.DataFrame(rows, columns=names)
    ratings = units[["unit_id", "label"]].assign(rater_id="g", rater_kind="model")
    found = stability(ratings, units, variants=["wording", "paraphrase"])
    kappa = found.loc["stability_fleiss_kappa"]["estimate"]
    assert kappa[("g", "all", "wording")] == 1
    assert kappa[("g", "all", "paraphrase")] == pytest.approx(-1)


def test_a_grader_that_moves_with_the_rubrics_wording_shows_it(rng):
    reworded = replace(LEVELS, name="level-2", variant_of="level")
    first = rng.integers(1, 5, 200)
    moved = np.where(rng.random(200) < 0.5, first, rng.integers(1, 5, 200))
    seconds = {"steady": first, "moved": moved}
    wordings = {"level": dict.fromkeys(seconds, first), "level-2": seconds}
    ratings = pd.concat(
        ratings_of({who: own.astype(str) for who, own in given.items()}, [*given]).assign(rubric=of)
        for of, given in wordings.items()
    )
    results = analyse(ratings, None, [LEVELS, reworded], resamples=100).results
    rows = results.query("statistic == 'stability_fleiss_kappa' and subset == 'all'")
    assert (set(rows["rubric"]), set(rows["at"])) == ({"level"}, {"rubric"})
    by_rater = rows.set_index("rater_a")
    assert by_rater.loc["steady", "estimate"] == 1
    assert by_rater.loc["moved", "low"] < 0.5 < by_rater.loc["moved", "high"]


def test_a_variant_with_other_categories_is_refused():
    other = Scale("level-2", ("1", "2"), variant_of="level")
    ratings = pd.concat(ratings_of({"g": "1"}).assign(rubric=of) for of in ("level", "level-2"))
    refused("same option keys", analyse, ratings, None, [LEVELS, other], resamples=10)


def test_the_two_sides_of_a_pair_are_questions_of_their_own():
    """Of 12 pairs side a is the same in both wordings, side b never is: half agree."""
    steady, moved = np.array([["1", "1"], ["4", "4"]] * 6), np.array([["1", "4"], ["4", "1"]] * 6)
    parts = []
    for side, labels in (("a", steady), ("b", moved)):
        ratings, units = worded(labels.astype(object))
        names = side + units["unit_id"]
        parts.append((ratings.assign(unit_id=names), units.assign(unit_id=names, side=side)))
    ratings, units = (pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))
    row = stability(ratings, units).loc[("stability_fleiss_kappa", "g", "all", "wording")]
    assert row["n_units"] == 24
    assert row["estimate"] == pytest.approx(0.0)  # (1/2 - 1/2) / (1 - 1/2)


FOUR = ("1", "2", "3", "4")


def test_the_first_anaesthetist():
    """Dawid & Skene (1979) as a ratings table: the first anaesthetist has three draws."""
    known = known_values("dawid_skene1979")
    names = {"item": "unit_id", "rater": "rater_id", "rating": "label"}
    ratings = pd.DataFrame(known["data"]).rename(columns=names)
    ratings["draw"] = ratings.groupby(["unit_id", "rater_id"]).cumcount()
    ratings = ratings.astype(str).assign(rater_kind="human")
    expected = known["expected"]["intra_rater1_kappa_quadratic"]
    asked = {"resamples": 100, "ordered": "quadratic"}
    found = analyse(ratings, None, [Scale("", FOUR, "ordinal")], **asked)
    row = row_of(found, "intra_rater_kappa")
    assert row["rater_a"] == "1"
    assert row["estimate"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert row["low"] < row["estimate"] < row["high"]
    assert row["n_units"] == 45
    assert "mean over 3 pairs of draws" in row["note"]
    own = ratings[ratings["rater_id"] == "1"].pivot(index="unit_id", columns="draw", values="label")
    agreed = [(own[a] == own[b]).mean() for a, b in (("0", "1"), ("0", "2"), ("1", "2"))]
    assert row_of(found, "intra_rater_agreement", "1")["estimate"] == pytest.approx(np.mean(agreed))


def _drawn(label, unit, order, draw, **more):
    key = {"unit_id": f"u{unit}", "rater_id": "g", "rater_kind": "model"}
    return {**key, "label": label, "order": order, "draw": draw, **more}


def test_an_order_is_no_repeat():
    """Two orders of one unit are two readings; only draws within an order are repeats."""
    rows = [_drawn("12"[n % 2], n, order, 0) for n in range(40) for order in ("ab", "ba")]
    found = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50)
    assert rows_of(found, "intra_rater_kappa").empty
    rows += [_drawn("1", n, "ba", 1) for n in range(20)]
    found = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50)
    row = row_of(found, "intra_rater_agreement", "g")
    assert (row["estimate"], row["n_units"]) == (0.5, 20)
    assert row_of(found, "intra_rater_kappa", "g")["estimate"] == 0.0


def test_the_verdicts_of_repeats_use_the_graders_own_threshold():
    """At .5 every draw is affirmative, at .7 the two draws of odd items differ."""
    rows = [
        _drawn("", n, "", draw, p_positive=0.9 if n % 2 and not draw else 0.6)
        for n in range(40)
        for draw in (0, 1)
    ]
    scale = {"categories": ("1", "2", "3"), "affirmative": frozenset({"1"})}
    for thresholds, agreement in (({}, 1.0), ({"g": 0.7}, 0.5)):
        own = Scale("", thresholds=thresholds, **scale)
        found = analyse(pd.DataFrame(rows), None, [own], resamples=20)
        row = row_of(found, "intra_rater_agreement", "g", subset="all|binary")
        assert row["estimate"] == agreement


def test_adjudicators_have_no_vote():
    labels = {"ann": "1122" * 10, "ben": "1121" * 10, "chair": "2222" * 10, "g": "2122" * 10}
    ratings = ratings_of(labels)
    ratings.loc[ratings["rater_id"] == "chair", "rater_kind"] = "adjudicator"
    scale = Scale("", ("1", "2"), affirmative=frozenset("1"))
    found = analyse(ratings, None, [scale], resamples=20)
    row = row_of(found, "tnr_majority", "humans", "g", subset="all|binary")
    assert (row["estimate"], row["n_units"], row["note"]) == (1.0, 10, "10 items tied and left out")
