"""Ratings that are numbers: read, judged and reported from a file, and from a study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, load
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.adjudication import adjudication_queue

KINDS = {"ann": "human", "ben": "human", "cat": "human", "judge": "model"}
INTERVAL = ScaleOptions(level="interval", kinds=KINDS)


def table(path: Path, spread: float = 8.0, judge: float = 8.0, units: int = 80) -> Path:
    rng = np.random.default_rng(8)
    true = rng.uniform(0, 100, units)
    columns = {name: rng.normal(true, judge if name == "judge" else spread) for name in KINDS}
    frame = pd.DataFrame({name: np.clip(each, 0, 100).round(1) for name, each in columns.items()})
    frame.insert(0, "unit_id", [f"u{n}" for n in range(units)])
    frame.to_csv(path, index=False)
    return path


def test_a_file_of_numbers_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file, out = table(tmp_path / "scores.csv", units=200), tmp_path / "out"
    words = [str(file), "--human", "ann,ben,cat", "--model", "judge", "--out", str(out)]
    assert main(["check", *words]) == 2
    assert "as they are numbers, say --level interval" in capsys.readouterr().err
    assert main(["check", *words, "--level", "interval"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Use judge for these labels" in said
    assert "Labels are numbers from 0 to 100" in said
    results = pd.read_csv(out / "results.csv")
    given = set(results["statistic"])
    assert {"icc_a1", "icc_c1", "krippendorff_alpha_interval", "mean_difference"} <= given
    # Nothing is counted by category: the tables stay short.
    assert not given & {"confusion", "prevalence", "cohen_kappa", "specific_agreement"}
    assert len(results) < 150
    report = (out / "report.md").read_text("utf-8")
    assert "ICC(A,1)" in report and "mean of the numbers given" in report
    analysed = json.loads((out / "report.json").read_text("utf-8"))
    assert analysed["verdicts"][0]["verdict"] == "may_stand_in"


def test_a_worse_judge_falls_short(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    file = table(tmp_path / "scores.csv", judge=60.0)
    words = ["--human", "ann,ben,cat", "--model", "judge", "--level", "interval"]
    assert main(["check", str(file), *words, "--out", str(tmp_path / "out")]) == 0
    assert "Use judge" not in capsys.readouterr().out
    rows = pd.read_csv(tmp_path / "out" / "results.csv").set_index(["statistic", "rater_b"])
    assert rows.loc[("non_inferiority", "judge"), "high"].max() < -0.1


def test_numbers_in_other_forms_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("unit_id,ann,ben\na,0.50,.5\nb,1,1.0\nc,0.25,2.5e-1\n")
    dataset = from_file(
        file, ScaleOptions(level="interval", kinds={"ann": "human", "ben": "human"})
    )
    (scale,) = dataset.scales.values()
    assert scale.categories == ("0.25", "0.5", "1")
    assert scale.is_number
    assert sorted(dataset.ratings["label"].unique()) == ["0.25", "0.5", "1"]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("good", r"row 3, column 'ben': the label 'good' is not a number"),
        ("7/10", "the label '7/10' is not a number"),
        ("inf", "the label 'inf' is not a number"),
        ("none", "read it as no label with --missing none"),
    ],
)
def test_what_is_no_number(tmp_path: Path, cell: str, told: str) -> None:
    file = tmp_path / "scores.csv"
    file.write_text(f"unit_id,ann,ben\na,50,51\nb,20,{cell}\n")
    with pytest.raises(InputError, match=told):
        from_file(file, ScaleOptions(level="interval", kinds={"ann": "human", "ben": "human"}))


def test_a_number_off_the_rubric_is_named(tmp_path: Path) -> None:
    file, rubric = tmp_path / "scores.csv", tmp_path / "quality.toml"
    file.write_text("unit_id,ann,ben\na,50.0,51\nb,20,120\n")
    rubric.write_text(
        'name = "quality"\ntitle = "Quality"\nunit = "response"\nquestion = "How good?"\n'
        'instructions = "Read."\nvariables = ["response"]\n[number]\nlow = 0\nhigh = 100\n'
    )
    options = ScaleOptions(rubric=str(rubric), kinds={"ann": "human", "ben": "human"})
    told = "row 3, column 'ben': the label '120' is none of the 101 numbers from 0 to 100; round"
    with pytest.raises(InputError, match=told):
        from_file(file, options)


@pytest.mark.slow
def test_a_study_of_numbers_from_the_file_to_the_verdict(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    true = np.linspace(2, 98, 60)
    items = pd.DataFrame({"response": [f"Answer {n}" for n in range(60)]})
    items["judge"] = np.clip(rng.normal(true, 6), 0, 100).round()
    items.to_csv(tmp_path / "items.csv", index=False)
    folder = tmp_path / "study"
    ask = ["--question", "How good is it?", "--scale", "0-100", "--judge", "judge"]
    assert main(["new", str(folder), "--items", str(tmp_path / "items.csv"), *ask]) == 0
    with open_study(folder) as study:
        desk = AnnotationDesk(study)
        for rater in ("ann", "ben", "cat"):
            for turn in range(60):
                sheet = desk.next_sheet(rater)
                assert sheet is not None
                (task,) = sheet.tasks
                at = int(task.values["response"].split()[1])
                number = str(int(np.clip(rng.normal(true[at], 6), 0, 100)))
                sent = Answer(submit_id=f"{rater}-{turn}", task_id=task.task_id, option_key=number)
                assert [each.status for each in desk.submit_all(rater, [sent])] == ["stored"]
        waiting = {
            rule: len(adjudication_queue(study, rule))
            for rule in ("any", "no_majority", "distance_2")
        }
    assert waiting["any"] > 50
    assert waiting["no_majority"] <= waiting["distance_2"] < 25
    assert main(["report", str(folder)]) == 0
    assert main(["export", str(folder), "--out", str(tmp_path / "out.csv")]) == 0
    again, own = load(tmp_path / "out.csv"), load(folder)
    assert again.scales["rating"].is_number
    assert again.scales["rating"].categories == own.scales["rating"].categories
    assert main(["check", str(tmp_path / "out.csv"), "--out", str(tmp_path / "again")]) == 0
    figures = [
        pd.read_csv(place / "results.csv").set_index(["statistic", "rater_a", "rater_b"])[
            "estimate"
        ]
        for place in (folder / "report", tmp_path / "again")
    ]
    for key in (("icc_a1", "humans", np.nan), ("human_ceiling_difference", "humans", "judge")):
        assert figures[0][key] == pytest.approx(figures[1][key])
