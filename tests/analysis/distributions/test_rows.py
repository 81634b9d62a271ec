"""The rows on people's distribution: who is compared, on which units, by what was stated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse
from evenhand.analysis.bootstrap.resamples import Bootstrap
from evenhand.analysis.distributions.rows import add_distribution_rows
from evenhand.analysis.labels.combine import combine_readings
from evenhand.analysis.labels.encoding import encode
from evenhand.analysis.report import ReportContext
from evenhand.analysis.report.blocks import Items, ReportSection
from evenhand.analysis.report.sections import certainty
from evenhand.analysis.report.source import Source
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.types import Array
from evenhand.study.tables.ratings import validate_ratings
from tests.ratings_files import read_ratings

NAMES = ("no", "unsure", "yes")
THREE = Scale("", NAMES)
VERDICT = Scale("", NAMES, affirmative=frozenset({"yes"}))
TWO = Scale("", ("no", "yes"), affirmative=frozenset({"yes"}))


def shares(units: int, q: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).dirichlet(np.full(q, 0.8), units)


def people(given: Array, number: int, names: Sequence[str] = NAMES) -> pd.DataFrame:
    """So many people's labels of each unit, drawn from its shares (units, q)."""
    rng = np.random.default_rng(7)
    rows = [
        {"unit_id": f"u{unit:03}", "rater_id": f"r{rater}", "rater_kind": "human", "label": label}
        for unit, each in enumerate(given)
        for rater, label in enumerate(rng.choice(names, number, p=each))
    ]
    return pd.DataFrame(rows)


def grader(
    name: str, stated: Array, *, probabilities: bool = True, names: Sequence[str] = NAMES
) -> pd.DataFrame:
    """A grader whose label is the likeliest of what it states, (units, q)."""
    rows = []
    for unit, each in enumerate(stated):
        row = {"unit_id": f"u{unit:03}", "rater_id": name, "rater_kind": "model"}
        row["label"] = names[int(each.argmax())]
        if probabilities:
            row["probabilities"] = json.dumps(dict(zip(names, each.tolist(), strict=True)))
        rows.append(row)
    return pd.DataFrame(rows)


def rows_of(*tables: pd.DataFrame, scale: Scale = THREE, resamples: int = 200) -> ResultRows:
    ratings = validate_ratings(pd.concat(tables, ignore_index=True))
    labels, frequency = encode(combine_readings(ratings, scale), scale).folded()
    rows = ResultRows("")
    add_distribution_rows(rows, labels, Bootstrap(resamples).draw(frequency))
    return rows


def row_of(rows: ResultRows, statistic: str, grader: str = "", at: str = "") -> ResultRow:
    found = rows.get(statistic, "humans", grader, at=at)
    assert found is not None, statistic
    return found


def codes(row: ResultRow) -> set[str]:
    return {remark.code for remark in row["remarks"]}


@pytest.mark.parametrize(("number", "units", "any_rows"), [(4, 60, 0), (5, 29, 0), (5, 30, 1)])
def test_only_where_enough_people_labelled(number: int, units: int, any_rows: int) -> None:
    given = shares(units)
    rows = rows_of(people(given, number), grader("g", given))
    assert bool(rows.rows) == bool(any_rows)


def test_nothing_without_graders() -> None:
    assert not rows_of(people(shares(40), 6)).rows


def test_units_that_too_few_people_labelled_do_not_count() -> None:
    given = shares(40)
    some = people(given, 5)
    fewer = some[~((some["rater_id"] == "r4") & (some["unit_id"] < "u010"))]
    rows = rows_of(fewer, grader("g", given))
    alone = rows_of(some[some["unit_id"] >= "u010"], grader("g", given))
    assert row_of(rows, "total_variation", "g")["n_units"] == 30
    for statistic in ("squared_distance", "forced_choice_agreement"):
        first, second = (row_of(each, statistic, "g")["estimate"] for each in (rows, alone))
        assert first == pytest.approx(second)


def test_by_hand_in_numpy() -> None:
    given, stated = shares(50), shares(50, seed=1)
    labels = people(given, 8)
    rows = rows_of(labels, grader("g", stated))
    counts = labels.groupby(["unit_id", "label"]).size().unstack(fill_value=0)[list(NAMES)]
    seen = counts.to_numpy() / 8
    agree = (counts * (counts - 1)).to_numpy().sum(axis=1) / 56
    expected = {
        "total_variation": 0.5 * np.abs(stated - seen).sum(axis=1).mean(),
        "squared_distance": ((stated**2 - 2 * stated * seen).sum(axis=1) + agree).mean(),
    }
    for statistic, value in expected.items():
        row = row_of(rows, statistic, "g")
        assert row["estimate"] == pytest.approx(value)
        assert row["low"] < value < row["high"]
    worth = row_of(rows, "people_worth", "g")["estimate"]
    assert worth == pytest.approx((1 - agree).mean() / expected["squared_distance"])
    apart = row_of(rows, "total_variation")["estimate"]
    excess = row_of(rows, "total_variation_excess", "g")["estimate"]
    assert excess == pytest.approx(expected["total_variation"] - apart)
    most = seen.max(axis=1, keepdims=True)
    clear = (seen == most).sum(axis=1) == 1
    row = row_of(rows, "forced_choice_agreement", "g")
    assert row["estimate"] == (stated.argmax(axis=1) == seen.argmax(axis=1))[clear].mean()
    assert (row["n_units"], row["note"]) == (clear.sum(), f"{(~clear).sum()} tied units left out")


def test_a_hard_label_counts_as_certain() -> None:
    given = shares(60)
    rows = rows_of(people(given, 6), grader("g", given, probabilities=False))
    certain = rows_of(people(given, 6), grader("g", np.eye(3)[given.argmax(axis=1)]))
    first, second = (row_of(each, "squared_distance", "g") for each in (rows, certain))
    assert first["estimate"] == pytest.approx(second["estimate"])
    assert "hard_labels" in codes(first)
    assert "hard_labels" not in codes(second)


def test_labels_among_probabilities_count_as_certain() -> None:
    given = shares(40)
    mixed = grader("g", given)
    mixed.loc[:9, "probabilities"] = ""
    rows = rows_of(people(given, 6), mixed)
    row = row_of(rows, "total_variation", "g")
    assert (row["n_units"], row["note"]) == (40, "hard labels taken as certain on 10 units")


def test_probabilities_that_do_not_sum_to_one() -> None:
    given = shares(40)
    whole, part = (rows_of(people(given, 6), grader("g", given * of)) for of in (1.0, 0.5))
    first, second = (row_of(each, "squared_distance", "g")["estimate"] for each in (whole, part))
    assert first == pytest.approx(second)


def test_the_probability_of_the_affirmative_answer() -> None:
    """p_positive alone says all of two categories, and of three only the verdict."""
    given = shares(40, 2)
    stated = grader("g", given, probabilities=False, names=("no", "yes"))
    stated["p_positive"] = given[:, 1]
    labels = people(given, 6, ("no", "yes"))
    as_shares = rows_of(labels, grader("g", given, names=("no", "yes")), scale=TWO)
    as_p = rows_of(labels, stated, scale=TWO)
    for subset in ("all", "all|binary"):
        rows = [each.get("squared_distance", "humans", "g", subset) for each in (as_shares, as_p)]
        first, second = (row["estimate"] for row in rows if row)
        assert first == pytest.approx(second)
    three = rows_of(labels, stated, scale=VERDICT)
    assert codes(row_of(three, "squared_distance", "g")) == {"hard_labels"}
    binary = three.get("squared_distance", "humans", "g", "all|binary")
    assert binary is not None
    assert binary["estimate"] == pytest.approx(first)


def test_a_grader_is_not_compared_with_the_person_that_it_repeats() -> None:
    given = shares(60)
    labels = people(given, 6)
    own = labels[labels["rater_id"] == "r0"]
    rows = rows_of(labels, own.assign(rater_id="g", rater_kind="model"))
    alone = rows_of(
        labels[labels["rater_id"] != "r0"], own.assign(rater_id="g", rater_kind="model")
    )
    first, second = (row_of(each, "squared_distance", "g") for each in (rows, alone))
    assert first["estimate"] == pytest.approx(second["estimate"])
    # It would be worth less as one of six whom it is held against.
    assert row_of(rows, "people_worth", "g")["estimate"] == pytest.approx(1, abs=0.3)


def test_a_grader_of_other_units() -> None:
    given = shares(40)
    elsewhere = grader("g", given).assign(unit_id=lambda rows: "x" + rows["unit_id"])
    rows = rows_of(people(given, 6), elsewhere)
    for statistic in ("total_variation", "people_worth", "response_set_agreement"):
        at = "0.1" if statistic == "response_set_agreement" else ""
        row = row_of(rows, statistic, "g", at)
        assert np.isnan(row["estimate"])
        assert codes(row) == {"no_pairable_units"}


def test_people_of_one_mind_measure_nobody() -> None:
    given = np.eye(3)[np.arange(40) % 3]
    rows = rows_of(people(given, 6), grader("g", shares(40)))
    worth = row_of(rows, "people_worth", "g")
    assert np.isnan(worth["estimate"])
    assert codes(worth) == {"no_variation"}
    assert row_of(rows, "total_variation")["estimate"] == 0


def test_a_grader_nearer_than_chance_is_worth_the_most_that_is_said() -> None:
    given = shares(60)
    labels = people(given, 6)
    counts = labels.groupby(["unit_id", "label"]).size().unstack(fill_value=0)[list(NAMES)]
    row = row_of(rows_of(labels, grader("g", counts.to_numpy() / 6)), "people_worth", "g")
    assert (row["estimate"], row["high"]) == (1000, 1000)
    assert "people_or_more" in codes(row)


def section_of(*tables: pd.DataFrame, scale: Scale = THREE) -> ReportSection | None:
    found = analyse(pd.concat(tables, ignore_index=True), None, [scale], resamples=200)
    return certainty.distributions_section(Source.of(found, ReportContext("A study")))


def test_the_report_says_on_how_many_units_several_answers_are_right() -> None:
    given = shares(60)
    tables = people(given, 20), grader("g", given)
    section = section_of(*tables)
    assert section is not None
    said = " ".join(
        each for block in section.every_block() if isinstance(block, Items) for each in block.items
    )
    several = row_of(rows_of(*tables), "response_set_several", at="0.2")["estimate"]
    assert f"On {several:.0%} of units, two labels or more" in said


def test_the_report_says_nothing_where_few_people_label() -> None:
    given = shares(40)
    assert section_of(people(given, 4), grader("g", given)) is None


def test_folding_like_units_changes_nothing() -> None:
    given = np.repeat(shares(4), 60, axis=0)
    labels = validate_ratings(
        pd.concat([people(given, 5), grader("g", given, probabilities=False)], ignore_index=True)
    )
    whole = encode(combine_readings(labels, VERDICT), VERDICT)
    folded, frequency = whole.folded()
    assert len(frequency) < len(given)
    found = []
    for matrix, often in ((whole, np.ones(len(given))), (folded, frequency)):
        rows = ResultRows("")
        add_distribution_rows(rows, matrix, Bootstrap(0).draw(often))
        found.append(rows.rows)
    assert found[0].keys() == found[1].keys()
    for key, row in found[0].items():
        other = found[1][key]
        assert (row["n_units"], row["note"]) == (other["n_units"], other["note"])
        assert row["estimate"] == pytest.approx(other["estimate"], nan_ok=True), key


@pytest.mark.slow
def test_dices(shared_data: Path) -> None:
    """One of the 123 raters, drawn anew for each conversation, is worth one person; most people's
    label is worth a few, and less than always stating people's overall shares."""
    ratings, _ = read_ratings(shared_data / "real" / "dices350.csv")
    rng = np.random.default_rng(2)
    drawn = ratings.iloc[rng.permutation(len(ratings))].drop_duplicates("unit_id")
    others = ratings.drop(drawn.index)
    most = others.groupby("unit_id")["label"].agg(lambda labels: labels.mode()[0])
    majority = drawn.assign(label=drawn["unit_id"].map(most), rater_id="majority")
    graders = pd.concat([drawn.assign(rater_id="person"), majority]).assign(rater_kind="model")
    rows = rows_of(others, graders, scale=Scale("", ("No", "Unsure", "Yes")), resamples=500)
    person, majority_worth, overall = (
        row_of(rows, "people_worth", name) for name in ("person", "majority", "baseline:random")
    )
    assert person["low"] < 1 < person["high"]
    assert 2 < majority_worth["low"] < majority_worth["high"] < 3
    assert overall["low"] > majority_worth["high"]
    ceiling = row_of(rows, "total_variation")
    assert ceiling["estimate"] == pytest.approx(
        row_of(rows, "total_variation", at="halves")["estimate"] / 2**0.5, rel=0.01
    )
