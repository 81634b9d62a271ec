"""Weighted criteria: from a file of labels, or a study of items, to the score of each response."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.gate import baseline_of, compare, write_baseline
from evenhand.reporting.load import from_table
from evenhand.reporting.new_study import create_items
from evenhand.reporting.ratings_file.declared import LabelOptions, ScaleOptions
from evenhand.study import open_study
from evenhand.study.desk.claims import SessionDesign
from evenhand.study.lead.imports import import_ratings
from evenhand.study.tables.ratings import validate_ratings
from tests.cases import refused

ANNOTATORS, FAIR, GENEROUS = ("ann", "ben", "cem"), "gpt-fair", "gpt-generous"


def labelled_criteria(responses: int = 40) -> pd.DataFrame:
    """Synthetic labels of 5 to 12 criteria of each response. Annotators and graders err in 8% of
    labels; the generous grader overlooks most of what gives negative points.
    """
    rng, rows = np.random.default_rng(7), []
    for number in range(responses):
        good = rng.beta(4, 2)
        for place in range(rng.integers(5, 13)):
            points = int(rng.choice([10, 7, 5, 3, -4, -8])) if place else 10
            met = rng.random() < (good if points > 0 else 1 - good)
            of = {"response_id": f"r{number}", "model": f"m{number % 2}", "response": "An answer."}
            of |= {"criterion": f"States {place}.", "points": str(points)}
            of |= {"axis": str(rng.choice(["accuracy", "completeness"]))}
            for rater in (*ANNOTATORS, FAIR, GENEROUS):
                label = met ^ (rng.random() < 0.08)
                if rater == GENEROUS and points < 0:
                    label &= rng.random() < 0.2
                rows.append(of | {"rater": rater, "label": "met" if label else "not met"})
    return pd.DataFrame(rows)


def by_hand(table: pd.DataFrame, *, clip: bool = True) -> dict[tuple[str, str], float]:
    """HealthBench's score of each response by each rater, of rows added up one by one."""
    met, most = {}, {}
    for row in table.itertuples():
        key, points = (row.response_id, row.rater), int(row.points)
        met[key] = met.get(key, 0) + (points if row.label == "met" else 0)
        most[key] = most.get(key, 0) + max(points, 0)
    scores = {key: total / most[key] for key, total in met.items()}
    return {key: min(max(score, 0.0), 1.0) if clip else score for key, score in scores.items()}


@pytest.mark.journey
def test_scores_are_weighted_points_and_kinds_show_what_a_grader_gets_wrong(tmp_path):
    table = labelled_criteria()
    dataset = from_table(table, ScaleOptions())
    scores = dataset.ratings.query("rubric == 'score'").set_index(["unit_id", "rater_id"])["label"]
    assert scores.astype(float).to_dict() == pytest.approx(by_hand(table), abs=1e-6)
    assert any("were clipped" in note for note in dataset.notes)
    raw = from_table(table, ScaleOptions(settings={"clip_scores": False}))
    lowest = raw.ratings.query("rubric == 'score'")["label"].astype(float).min()
    assert lowest == pytest.approx(min(by_hand(table, clip=False).values()), abs=1e-6)
    assert lowest < 0
    assert not any("were clipped" in note for note in raw.notes)
    write_baseline(baseline_of(raw, FAIR, "score"), tmp_path / "b.json")
    compared = compare(table, FAIR, baseline=tmp_path / "b.json")  # which says how scores are made
    kappas = [row for row in compared.rows if row["statistic"] == "weighted_kappa_linear"]
    assert [row["estimate"] for row in kappas if row["rater_a"] != "humans"] == [1]
    results = dataset.changed(resamples=20).analyse()
    assert {each["rubric"] for each in results.verdicts} == {"criteria", "score"}
    people = pd.Series({k: v for k, v in by_hand(table).items() if k[1] in ANNOTATORS})
    of_m0 = people[[int(response[1:]) % 2 == 0 for response, _ in people.index]].mean()
    rows = results.results.set_index(["rubric", "statistic", "rater_b", "subset", "at"])["estimate"]
    assert rows["score", "mean_ppi", FAIR, "all", "m0"] == pytest.approx(of_m0, abs=1e-6)
    wrong = results.results.query("statistic == 'slice_difference' and rater_b == @GENEROUS")
    assert wrong.set_index("subset")["high"]["points_sign=negative"] < 0
    assert {"axis=accuracy", "points_sign=negative"} <= {*wrong["subset"]}


def test_only_a_complete_set_has_a_score():
    dataset = from_table(labelled_criteria(6).drop(index=[0, 5]), ScaleOptions(rubric="score"))
    labels = dataset.ratings.query("rubric == 'score'").set_index(["unit_id", "rater_id"])["label"]
    assert labels[labels == ""].index.tolist() == [("r0", "ann")]
    assert any("score: Labels of criteria missing: 2" in note for note in dataset.notes)


@pytest.mark.parametrize(("declared", "own"), [("model", "subject"), ("axis", "response_id")])
def test_a_response_is_in_the_cluster_that_its_criteria_share(declared, own):
    table = labelled_criteria(6)
    units = from_table(table.assign(cluster_id=table[declared]), ScaleOptions()).units
    scored = units[units["unit_id"].isin(table["response_id"])]
    assert scored["cluster_id"].tolist() == scored[own].tolist()


def changed(table, column, cell):
    return table.assign(**{column: table[column].where(table.index != 6, cell)})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: changed(t, "criterion", ""), "row 6: has '5' points and no criterion"),
        (lambda t: changed(t, "response_id", ""), "row 6: no response is named"),
        (lambda t: changed(t, "points", "x"), "row 6: points is 'x'; give the number of points"),
        (lambda t: changed(t, "points", "1"), "row 6: 'States 1.' of response 'r0' has '1' points"),
        (lambda t: t.assign(points="-2"), "row 0: response 'r0' has no criterion with positive"),
        (lambda t: t.assign(label=t["label"].str.len().astype(str)), "and these have 3, 7; name"),
        (lambda t: t.drop(columns="criterion"), "has points ('points') and no column of criteria"),
    ],
)
def test_bad_criteria_are_named(spoil, message):
    assert message in refused("", from_table, spoil(labelled_criteria(6)), ScaleOptions())


@pytest.mark.slow
def test_a_study_keeps_criteria_of_a_response_together_and_scores_it(tmp_path):
    table, file, folder = labelled_criteria(8), tmp_path / "items.csv", tmp_path / "study"
    judged = table[table["rater"] == GENEROUS].drop(columns="rater")
    judged.to_csv(file, index=False)
    asked = LabelOptions(question="Met?", options=["met", "not met"], judge="label", sample=30)
    create_items(folder, file, asked)
    with open_study(folder) as study:
        sampled = study.units("sample")
        assert 30 <= len(sampled) < 42 and sampled["response_id"].nunique() < 8
        sizes = judged["response_id"].value_counts()
        assert sampled["response_id"].value_counts().eq(sizes).reindex(sampled["response_id"]).all()
        design = SessionDesign(study)
        order = [each[0].unit_id for each in design.screens("ann", set(design.questions))]
        shown = sampled.set_index("unit_id").loc[order]
        runs = (shown["response_id"] != shown["response_id"].shift()).sum()
        assert runs == shown["response_id"].nunique()
        people = sampled.merge(table, on=["response_id", "criterion"]).query("rater in @ANNOTATORS")
        label = people["label"].str.replace(" ", "-")
        cells = {"unit_id": people["unit_id"], "rater_id": people["rater"], "label": label}
        labels = validate_ratings(pd.DataFrame(cells).assign(rater_kind="human", rubric="rating"))
        import_ratings(study, labels, "labels.csv")
        analysis, context = analyse_study(study, resamples=20)
    assert {each["rubric"] for each in analysis.verdicts} == {"rating", "rating-score"}
    assert context.rubric_titles["rating-score"] == "Rating: score of the response"
