"""Stability across variants: known values, a simulated instability, and what is left undefined.

A rater with themselves: repeats of one unit in one order.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.inter_rater import fleiss_kappa

from evenhand.analysis import Scale, analyse
from evenhand.errors import InputError
from tests.known_values import known_values

LEVELS = Scale("level", ("1", "2", "3", "4"), "ordinal", frozenset({"3", "4"}))


def table(
    labels: np.ndarray, rater: str = "g", subject: str = "s"
) -> tuple[pd.DataFrame, pd.DataFrame]:
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


def stability(
    ratings: pd.DataFrame, units: pd.DataFrame, scale: Scale = LEVELS, **options: object
) -> pd.DataFrame:
    options = {"variants": ["wording"], "resamples": 400} | options
    results = analyse(ratings, units, [scale], **options).results  # type: ignore[arg-type]
    return results[results["statistic"].str.startswith("stability")].set_index(
        ["statistic", "rater_a", "subset", "at"]
    )


def test_variants_are_raters_as_in_fleiss_1971():
    """His 30 patients by 6 raters: each patient is a question, each rater a wording."""
    example = known_values("fleiss1971")
    counts = np.array(example["data"]["counts_items_x_categories"])
    labels = np.array(
        [[str(k) for k, n in enumerate(row) for _ in range(n)] for row in counts], dtype=object
    )
    scale = Scale("diagnosis", tuple(str(k) for k in range(counts.shape[1])))
    found = stability(*table(labels), scale=scale)
    assert found.loc[("stability_fleiss_kappa", "g", "all", "wording"), "estimate"] == (
        pytest.approx(fleiss_kappa(counts), abs=1e-12)
    )


@pytest.mark.slow
def test_the_known_instability_of_a_simulated_grader_is_recovered():
    """Each label is kept with probability .7 and drawn evenly from all four otherwise, so two
    variants agree beyond chance with probability .49: Fleiss' kappa is .49.
    """
    inside = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth, noise = rng.integers(1, 5, (150, 1)), rng.integers(1, 5, (150, 6))
        labels = np.where(rng.random((150, 6)) < 0.7, truth, noise).astype(str).astype(object)
        row = stability(*table(labels)).loc[("stability_fleiss_kappa", "g", "all", "wording")]
        assert row["high"] - row["low"] < 0.15
        inside += row["low"] < 0.49 < row["high"]
    assert inside >= 16  # of 20 at 95%: fewer has probability .003


def test_the_spread_is_the_mean_standard_deviation():
    labels = np.array([["1", "3"], ["2", "2"], ["4", ""]] * 4, dtype=object)
    row = stability(*table(labels)).loc[("stability_sd", "g", "all", "wording")]
    # Standard deviations: of 1 and 3, sqrt(2); of 2 and 2, 0; a single label has none.
    assert row["estimate"] == pytest.approx(np.sqrt(2) / 2)
    assert row["n_units"] == 8


def test_subjects_stand_apart_and_together():
    steady = np.array([["1", "1"], ["4", "4"]] * 10, dtype=object)
    shaky = np.array([["1", "4"], ["4", "1"]] * 10, dtype=object)
    parts = [table(steady, subject="steady"), table(shaky, subject="shaky")]
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
    reworded = Scale(
        "level-2", LEVELS.categories, "ordinal", LEVELS.affirmative, variant_of="level"
    )
    first = rng.integers(1, 5, 200)
    moved = np.where(rng.random(200) < 0.5, first, rng.integers(1, 5, 200))
    ratings = pd.DataFrame(
        [
            {"unit_id": f"u{n}", "rubric": rubric, "rater_id": who, "rater_kind": "model"}
            | {"label": str(label)}
            for n in range(200)
            for who, second in (("steady", first), ("moved", moved))
            for rubric, label in (("level", first[n]), ("level-2", second[n]))
        ]
    )
    results = analyse(ratings, None, [LEVELS, reworded], resamples=400).results
    rows = results.query("statistic == 'stability_fleiss_kappa' and subset == 'all'")
    assert set(rows["rubric"]) == {"level"}
    assert set(rows["at"]) == {"rubric"}
    by_rater = rows.set_index("rater_a")
    assert by_rater.loc["steady", "estimate"] == 1
    assert by_rater.loc["moved", "low"] < 0.5 < by_rater.loc["moved", "high"]


def test_a_variant_with_other_categories_is_refused():
    other = Scale("level-2", ("1", "2"), variant_of="level")
    ratings = pd.DataFrame(
        [
            {"unit_id": "u", "rubric": name, "rater_id": "g", "rater_kind": "model", "label": "1"}
            for name in ("level", "level-2")
        ]
    )
    with pytest.raises(InputError, match="same option keys"):
        analyse(ratings, None, [LEVELS, other], resamples=10)


def test_a_constant_reader_is_undefined_with_its_reason():
    labels = np.full((10, 3), "2", dtype=object)
    row = stability(*table(labels)).loc[("stability_fleiss_kappa", "g", "all", "wording")]
    assert np.isnan(row["estimate"])
    assert row["note"].startswith("no_variation")


def test_the_two_sides_of_a_pair_are_questions_of_their_own():
    """Answers to one side must neither hide nor be mixed with those to the other: of 12 pairs side
    a is the same in both wordings, side b never is, so half of the pairs of labels agree.
    """
    steady, moved = np.array([["1", "1"], ["4", "4"]] * 6), np.array([["1", "4"], ["4", "1"]] * 6)
    parts = []
    for side, labels in (("a", steady), ("b", moved)):
        ratings, units = table(labels.astype(object))
        names = side + units["unit_id"]
        parts.append((ratings.assign(unit_id=names), units.assign(unit_id=names, side=side)))
    ratings, units = (pd.concat(tables, ignore_index=True) for tables in zip(*parts, strict=True))
    row = stability(ratings, units).loc[("stability_fleiss_kappa", "g", "all", "wording")]
    assert row["n_units"] == 24
    assert row["estimate"] == pytest.approx(0.0)  # (1/2 - 1/2) / (1 - 1/2)


FOUR = ("1", "2", "3", "4")


def _intra(results: pd.DataFrame, statistic: str, subset: str = "all") -> pd.DataFrame:
    own = (results["statistic"] == statistic) & (results["subset"] == subset)
    return results[own].set_index("rater_a")


@pytest.fixture
def anaesthetists() -> tuple[pd.DataFrame, dict]:
    """Dawid & Skene (1979) as a ratings table: the first anaesthetist has three draws."""
    known = known_values("dawid_skene1979")
    frame = pd.DataFrame(known["data"]).rename(
        columns={"item": "unit_id", "rater": "rater_id", "rating": "label"}
    )
    frame["draw"] = frame.groupby(["unit_id", "rater_id"]).cumcount()
    return frame.astype(str).assign(rater_kind="human"), known["expected"]


@pytest.mark.parametrize(
    ("level", "key"),
    [("nominal", "intra_rater1_kappa_pairs_12_13_23"), ("ordinal", "intra_rater1_kappa_quadratic")],
)
def test_the_first_anaesthetist(anaesthetists, level, key):
    ratings, expected = anaesthetists
    results = analyse(
        ratings, None, [Scale("", FOUR, level)], resamples=300, ordered="quadratic"
    ).results
    kappa, agreement = (_intra(results, f"intra_rater_{name}") for name in ("kappa", "agreement"))
    assert kappa.index.tolist() == ["1"]
    row = kappa.loc["1"]
    assert row["estimate"] == pytest.approx(np.mean(expected[key]), abs=1e-9)
    assert row["low"] < row["estimate"] < row["high"]
    assert row["n_units"] == 45
    assert "mean over 3 pairs of draws" in row["note"]
    own = ratings[ratings["rater_id"] == "1"].pivot(index="unit_id", columns="draw", values="label")
    agreed = [(own[a] == own[b]).mean() for a, b in (("0", "1"), ("0", "2"), ("1", "2"))]
    assert agreement.loc["1", "estimate"] == pytest.approx(np.mean(agreed))


def _drawn(label: str, unit: int, order: str, draw: int, **more: object) -> dict:
    key = {"unit_id": f"u{unit}", "rater_id": "g", "rater_kind": "model"}
    return {**key, "label": label, "order": order, "draw": draw, **more}


def test_an_order_is_no_repeat():
    """Two orders of one unit are two readings; only draws within an order are repeats."""
    rows = [_drawn("12"[n % 2], n, order, 0) for n in range(40) for order in ("ab", "ba")]
    results = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50).results
    assert _intra(results, "intra_rater_kappa").empty
    rows += [_drawn("1", n, "ba", 1) for n in range(20)]
    results = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50).results
    row = _intra(results, "intra_rater_agreement").loc["g"]
    assert (row["estimate"], row["n_units"]) == (0.5, 20)
    assert _intra(results, "intra_rater_kappa").loc["g", "estimate"] == 0.0


def test_the_verdicts_of_repeats_use_the_graders_own_threshold():
    """At .5 every draw is affirmative, at .7 the two draws of odd units differ."""
    rows = [
        _drawn("", n, "", draw, p_positive=0.9 if (n + draw) % 2 else 0.6)
        for n in range(40)
        for draw in (0, 1)
        if n % 2 or draw == 0
    ]
    rows += [_drawn("", n, "", 1, p_positive=0.6) for n in range(0, 40, 2)]
    scale = {"categories": ("1", "2", "3"), "affirmative": frozenset({"1"})}
    for thresholds, agreement in (({}, 1.0), ({"g": 0.7}, 0.5)):
        found = analyse(
            pd.DataFrame(rows), None, [Scale("", thresholds=thresholds, **scale)], resamples=20
        )
        row = _intra(found.results, "intra_rater_agreement", "all|binary").loc["g"]
        assert row["estimate"] == agreement
