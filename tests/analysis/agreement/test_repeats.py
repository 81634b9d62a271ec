"""A rater with themselves: repeats of one unit in one order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from tests.known_values import known_values

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
    [
        ("nominal", "intra_rater1_kappa_pairs_12_13_23"),
        ("ordinal", "intra_rater1_kappa_quadratic"),
    ],
)
def test_the_first_anaesthetist(
    anaesthetists: tuple[pd.DataFrame, dict], level: str, key: str
) -> None:
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


def test_an_order_is_no_repeat() -> None:
    """Two orders of one unit are two readings; only draws within an order are repeats."""
    rows = [_drawn("12"[n % 2], n, order, 0) for n in range(40) for order in ("ab", "ba")]
    results = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50).results
    assert _intra(results, "intra_rater_kappa").empty
    rows += [_drawn("1", n, "ba", 1) for n in range(20)]
    results = analyse(pd.DataFrame(rows), None, [Scale("", FOUR)], resamples=50).results
    row = _intra(results, "intra_rater_agreement").loc["g"]
    assert (row["estimate"], row["n_units"]) == (0.5, 20)
    assert _intra(results, "intra_rater_kappa").loc["g", "estimate"] == 0.0


def test_the_verdicts_of_repeats_use_the_graders_own_threshold() -> None:
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
