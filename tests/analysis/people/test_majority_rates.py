"""True positive and true negative rates, beside scikit-learn, statsmodels and a direct maximum."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import recall_score
from statsmodels.stats.proportion import proportion_confint

import evenhand as eh
from evenhand.reporting.gate.checks import gate
from evenhand.reporting.library import Check

PEOPLE = ["ann", "ben", "cy"]
DECLARED = {"model": "g", "categories": ["yes", "no"], "affirmative": "yes"}


def labels(
    units: int = 240, seed: int = 3, people: tuple[str, ...] = tuple(PEOPLE)
) -> pd.DataFrame:
    """People right on .85 and .92, a grader right on .9 and .95."""
    rng = np.random.default_rng(seed)
    truth = rng.random(units) < 0.3
    table = pd.DataFrame(index=range(units))
    for rater, true, other in (*((who, 0.85, 0.92) for who in PEOPLE), ("g", 0.9, 0.95)):
        said = np.where(truth, rng.random(units) < true, rng.random(units) > other)
        table[rater] = np.where(said, "yes", "no")
    return table


def rows_of(found: Check) -> pd.DataFrame:
    """The rows of rates by statistic."""
    rows = found.results
    return rows[rows["statistic"].str.match("t[pn]r_")].set_index("statistic")


def test_rates_are_recalls_of_scikit_learn_with_intervals_near_those_of_statsmodels() -> None:
    table = labels()
    found = eh.check(table, human=PEOPLE, **DECLARED)
    majority = (table[PEOPLE] == "yes").sum(axis=1) >= 2
    own = table["g"] == "yes"
    rows = rows_of(found)
    for name, positive in (("tpr", True), ("tnr", False)):
        row, inside = rows.loc[f"{name}_majority"], majority == positive
        hits = int((own[inside] == positive).sum())
        n = int(inside.sum())
        inner, outer = (proportion_confint(hits, n, method=how) for how in ("wilson", "beta"))
        assert row["estimate"] == pytest.approx(
            recall_score(majority, own, pos_label=positive), abs=1e-12
        )
        assert outer[0] - 0.6 / n < row["low"] < inner[0] + 0.6 / n
        assert inner[1] - 0.6 / n < row["high"] < outer[1] + 0.6 / n
        assert row["n_units"] == inside.sum()
        rate = found.verdicts[0]["rates"][name]
        assert rate == {
            "estimate": row["estimate"],
            "low": row["low"],
            "high": row["high"],
            "n": inside.sum(),
        }


def test_ties_are_left_out_and_counted() -> None:
    table = labels()
    found = eh.check(table, human=["ann", "ben"], **{**DECLARED, "model": ["g"]})
    tied = (table["ann"] != table["ben"]).sum()
    rows = rows_of(found)
    assert rows.loc["tpr_majority", "n_units"] + rows.loc["tnr_majority", "n_units"] == 240 - tied
    assert f"{tied} units tied and left out" in rows.loc["tpr_majority", "note"]


@pytest.mark.slow
def test_units_of_one_cluster_count_for_less() -> None:
    table = labels(60)
    pasted = pd.concat([table] * 5, ignore_index=True)
    pasted["cluster_id"] = list(range(60)) * 5
    once, again = (rows_of(eh.check(each, human=PEOPLE, **DECLARED)) for each in (table, pasted))
    for name in ("tpr_majority", "tnr_majority"):
        assert again.loc[name, "estimate"] == once.loc[name, "estimate"]
        widths = [rows.loc[name, "high"] - rows.loc[name, "low"] for rows in (once, again)]
        assert widths[1] >= 0.99 * widths[0], "pasting rows again makes nothing surer"


def test_a_reference_takes_the_majoritys_place() -> None:
    table = labels()
    found = eh.check(table, human=PEOPLE, reference="ann", **DECLARED)
    rows = rows_of(found)
    assert set(rows.index) == {"tpr_reference", "tnr_reference"}
    assert rows.loc["tpr_reference", "estimate"] == recall_score(
        table["ann"] == "yes", table["g"] == "yes"
    )
    assert set(found.verdicts[0]["rates"]) == {"tpr", "tnr"}


def test_without_affirmative_categories_nothing_is_said() -> None:
    found = eh.check(labels(), human=PEOPLE, model="g", categories=["yes", "no"])
    assert rows_of(found).empty
    assert found.verdicts[0]["rates"] == {}
    assert "TPR" not in str(found)


@pytest.mark.slow
def test_the_panel_the_report_and_the_gate_have_them(tmp_path: Path) -> None:
    table = labels()
    found = eh.check(table, human=PEOPLE, **DECLARED)
    assert "TPR" in str(found)
    found.report(tmp_path / "report")
    for name in ("report.html", "report.md"):
        assert "TPR" in (tmp_path / "report" / name).read_text("utf-8")
    told = json.loads((tmp_path / "report" / "report.json").read_text("utf-8"))
    assert told["verdicts"][0]["rates"] == found.verdicts[0]["rates"]

    rows = table.assign(unit_id=[f"u{n}" for n in range(len(table))])
    rows = rows.melt("unit_id", var_name="rater_id", value_name="label")
    rows["rater_kind"] = np.where(rows["rater_id"] == "g", "model", "human")
    file = tmp_path / "r.csv"
    rows.to_csv(file, index=False)
    from evenhand.reporting.ratings_file.declared import ScaleOptions

    options = ScaleOptions(categories=("yes", "no"), affirmative=("yes",))
    rule = "tpr.low > 0.7, tnr > 0.99"
    first, second = gate(file, "g", require=rule, options=options).checks
    assert first.figures["value"] == found.verdicts[0]["rates"]["tpr"]["low"]
    assert (first.outcome, second.outcome) == ("met", "not_met")
    (against,) = gate(file, "g", require="tpr > 0", options=options, reference="ann").checks
    assert "tpr (tpr_reference)" in against.sentence
