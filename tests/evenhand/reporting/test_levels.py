"""Numbers: whole ones in a row are read as ordered unless another level is declared, through every
door, and each says so; others are read, judged and reported from a file, and from a study.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.exporting import material_of
from evenhand.reporting.load import from_file, from_table, load
from evenhand.reporting.ratings_file.declared import ScaleOptions, ScaleSection, sidecar_path
from evenhand.rubrics import Block, asked_rubric
from evenhand.rubrics.options import whole_numbers_in_a_row
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.disagreements import adjudication_queue
from evenhand.study.tables.columns import folded
from harness.studies import label_all
from tests.cases import refused

SAID = "Labels 1-5 are read as ordered; --level nominal changes that."
IN_PYTHON = "Labels 1-5 are read as ordered; level='nominal' changes that."


def rated(labels: Sequence[object]) -> pd.DataFrame:
    """Labels (synthetic) of two annotators and a grader, who mostly agree, on each of `labels`."""
    rng = np.random.default_rng(3)
    rows = [
        (f"u{n}", who, at, labels[at if rng.random() < 0.8 else rng.integers(len(labels))])
        for who in ("ann", "ben", "g")
        for n, at in enumerate(np.arange(36) % len(labels))
    ]
    table = pd.DataFrame(rows, columns=["unit_id", "rater_id", "p_positive", "label"])
    by_g = table["rater_id"] == "g"
    table["p_positive"] = (table["p_positive"] / max(len(labels) - 1, 1)).where(by_g)
    return table.assign(rater_kind=np.where(by_g, "model", "human"))


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder to work in, with the file r.csv of labels 1 to 5."""
    rated("12345").to_csv("r.csv", index=False)
    return here


DOORS = {
    "check": "check r.csv --resamples 20",
    "gate": "gate r.csv --grader g --require kappa>-1 --resamples 20",
    "select": "select r.csv --resamples 20",
    "plan": "plan r.csv --resamples 20",
    "baseline": "baseline save r.csv --grader g --file b.json",
    "dask": "check r.csv --engine {engine} --resamples 20",
}


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_every_verb_reads_them_as_ordered_and_says_so_unless_a_level_is_declared(
    folder, capsys, engine, door
):
    words = DOORS[door].format(engine=engine).split()
    assert main(words) in (0, 1, 3)
    assert SAID in " ".join(capsys.readouterr().out.split())
    if door == "baseline":
        (scale,) = json.loads((folder / "b.json").read_text("utf-8"))["scales"].values()
        assert scale["level"] == "ordinal"
    assert main([*words, "--level", "nominal"]) in (0, 1, 3)
    assert not re.search("read as ordered|quadratic|linear", capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("how", [eh.check, eh.select, eh.plan, eh.calibrate])
def test_python_names_its_keyword(how):
    asked = {"resamples": 20, "affirmative": [4, 5]}
    found = how(rated([1, 2, 3, 4, 5]), **asked)
    assert IN_PYTHON in " ".join([str(found), *found.notes])
    nominal = how(rated([1, 2, 3, 4, 5]), **asked, level="nominal")
    assert "read as ordered" not in " ".join([str(nominal), *nominal.notes])


def scale_of(seen: Sequence[str], **declared: object) -> tuple[str, tuple[str, ...], str]:
    """What labels are read as, and what is said of it."""
    dataset = from_table(rated(seen), ScaleOptions(**declared))
    (scale,) = dataset.scales.values()
    return scale.level, scale.categories, "\n".join(dataset.notes)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("0123", "0 1 2 3"),
        (("8", "9", "10", "11"), "8 9 10 11"),
        ("125", "1 2 3 4 5"),  # two that nobody gave
        (("1.0", "2.0", "4.0"), "1 2 3 4"),
        (("-1", "0", "1"), "-1 0 1"),
        (("yes", "no"), ""),
        ("01", ""),
        ("3", ""),
        (("0", "50", "100"), ""),
        ("147", ""),
        (("0.5", "1", "1.5"), ""),
        ("123x", ""),
        ("١٢٣", ""),  # digits of another script
    ],
)
def test_which_numbers_are_in_a_row(seen, expected):
    level, categories, said = scale_of(seen)
    row = tuple(map(folded, whole_numbers_in_a_row(seen[::-1])))
    assert row == tuple(expected.split())
    assert level == ("ordinal" if expected else "nominal")
    assert set(categories) == set(row or seen)
    assert said.count("read as ordered") == bool(expected)
    assert said.count("lowest and the highest label seen") == bool(expected)
    assert ("taken as nominal" in said) == (not expected)


@pytest.mark.parametrize("labels", [("1", "2", "3", "99"), ("-1", "1", "2", "3")])
def test_a_code_is_asked_about(labels):
    assert whole_numbers_in_a_row(labels) == ()
    refused("may mean that there is no label", scale_of, labels)
    assert scale_of(labels, categories=labels)[0] == "nominal"


@pytest.mark.parametrize("scale", ["2 4 6 8 10", "20 40 60 80 100", ".2 .4 .6 .8 1"])
def test_a_grader_on_another_scale_is_asked_about(scale):
    table, by_people = rated("12345"), dict(zip("12345", "12344", strict=True))
    is_grade = table["rater_kind"] == "model"
    labels = table["label"].mask(
        is_grade, table["label"].map(dict(zip("12345", scale.split(), strict=True)))
    )
    for options in (ScaleOptions(), ScaleOptions(level="interval")):
        refused(
            "beyond annotators' labels, 1 to 5", from_table, table.assign(label=labels), options
        )
    given = table["label"].where(is_grade, table["label"].map(by_people))
    dataset = from_table(table.assign(label=given), ScaleOptions())
    assert "Only g use the label 5." in dataset.notes
    assert dataset.scales[""].level == "ordinal"


def test_declared_categories_keep_their_order_or_have_that_of_the_numbers():
    for declared, categories in (("54321", "54321"), ("13254", "12345"), ("135", "135")):
        assert scale_of(declared, categories=tuple(declared))[:2] == ("ordinal", tuple(categories))
    assert scale_of("1245", level="ordinal")[:2] == ("ordinal", tuple("12345"))
    assert scale_of("1245", level="nominal")[:2] == ("nominal", tuple("1245"))
    refused("order of an ordinal scale cannot be seen", scale_of, "abc", level="ordinal")


def test_a_sidecar_without_a_level(folder):
    beside, file = sidecar_path(folder / "r.csv"), folder / "r.csv"
    text = '[scales.tone]\ncategories = ["1", "2", "3", "4", "5"]\n'
    beside.write_text(text, "utf-8")
    dataset = from_file(file)
    assert dataset.scales["tone"].level == "ordinal"
    assert "Labels 1-5 of tone are read as ordered; --level nominal changes that." in dataset.notes
    assert from_file(file, ScaleOptions(level="nominal")).scales["tone"].level == "nominal"
    beside.write_text(f'{text}level = "nominal"\n', "utf-8")
    dataset = from_file(file)
    assert dataset.scales["tone"].level == "nominal"
    assert not any("ordered" in note for note in dataset.notes)
    # What is exported names its level, even if it is nominal.
    section = ScaleSection(categories=("1", "2", "3"), level="nominal")
    assert section.model_dump(exclude_defaults=True)["level"] == "nominal"


def test_a_question_with_numbers_for_answers():
    blocks = [Block(column="response", label="Response")]
    for options, level, expected in (
        ("31254", "", "ordinal"), ("12345", "nominal", "nominal"), ("abc", "", "nominal"),
        ("abc", "ordinal", "ordinal"), ("01", "", "nominal"),
        (["-1", "0", "1"], "", "ordinal"), (["-2", "0", "0.5"], "", "nominal"),
    ):  # fmt: skip
        rubric = asked_rubric("How good?", blocks, options=list(options), level=level)
        assert (rubric.level, rubric.categories) == (expected, tuple(sorted(options)))
    for more in ({"scale": "1-5"}, {"options": "abc", "several": True}):
        with pytest.raises(InputError, match="--level goes with --options"):
            asked_rubric("How good?", blocks, level="nominal", **more)


@pytest.mark.slow
def test_label_says_it_too(folder):
    items = pd.DataFrame({"response": ["hello", "bye", "well"]})
    asked = {"question": "How good?", "options": [1, 2, 3, 4, 5]}
    assert IN_PYTHON in eh.label(items, folder / "ordered", **asked).notes
    nominal = eh.label(items, folder / "plain", **asked, level="nominal")
    assert "read as ordered" not in " ".join(nominal.notes)
    assert 'level = "nominal"' in (folder / "plain" / "rubrics" / "rating.toml").read_text("utf-8")


# Numbers

TWO = ScaleOptions(level="interval", kinds={"ann": "human", "ben": "human"})


@pytest.mark.slow
@pytest.mark.parametrize(("off", "units"), [(8.0, 200), (60.0, 60)])
def test_a_file_of_numbers_is_judged(tmp_path, run, off, units):
    file, out = tmp_path / "scores.csv", tmp_path / "out"
    rng = np.random.default_rng(8)
    true = rng.uniform(0, 100, units)
    errors = {"ann": 8.0, "ben": 8.0, "cat": 8.0, "judge": off}
    said = {name: np.clip(rng.normal(true, error), 0, 100) for name, error in errors.items()}
    table = pd.DataFrame(said).round(1).assign(unit_id=[f"u{n}" for n in range(units)])
    table.to_csv(file, index=False)
    words = [file, "--human", "ann,ben,cat", "--model", "judge", "--out", out, "--resamples", "50"]
    assert "as they are numbers, say --level interval" in run.refused("check", *words)
    told = " ".join(run.ok("check", *words, "--level", "interval").split())
    assert ("Use judge for these labels" in told) == (off == 8)
    assert "Labels are numbers from 0 to 100" in told
    results = pd.read_csv(out / "results.csv")
    given = set(results["statistic"])
    assert {"icc_a1", "icc_c1", "krippendorff_alpha_interval", "mean_difference"} <= given
    # Nothing is counted by category: the tables stay short.
    assert not given & {"confusion", "prevalence", "cohen_kappa"}
    assert len(results) < 150
    report = (out / "report.md").read_text("utf-8")
    assert "ICC(A,1)" in report and "mean of the numbers given" in report
    (verdict,) = json.loads((out / "report.json").read_text("utf-8"))["verdicts"]
    assert (verdict["verdict"] == "can_replace") == (off == 8)
    apart = results.query("statistic == 'non_inferiority' and rater_b == 'judge'")["high"].max()
    assert (apart < -0.1) == (off == 60)


def test_numbers_in_other_forms_are_the_same(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text("unit_id,ann,ben\na,0.50,.5\nb,1,1.0\nc,0.25,2.5e-1\n")
    dataset = from_file(file, TWO)
    (scale,) = dataset.scales.values()
    assert scale.categories == ("0.25", "0.5", "1")
    assert scale.is_number
    assert sorted(dataset.ratings["label"].unique()) == ["0.25", "0.5", "1"]
    assert not material_of(file, (), TWO).combined["probabilities"].any(), "for other tools"


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("good", "row 3, column 'ben': the label 'good' is not a number"),
        ("7/10", "the label '7/10' is not a number"),
        ("inf", "the label 'inf' is not a number"),
        ("none", "read it as no label with --missing none"),
        ("120", "column 'ben': the label '120' is none of the 101 numbers from 0 to 100; round"),
    ],
)
def test_what_is_no_number_or_off_the_rubric(tmp_path, cell, told):
    file, rubric = tmp_path / "scores.csv", tmp_path / "quality.toml"
    file.write_text(f"unit_id,ann,ben\na,50,51\nb,20,{cell}\n")
    rubric.write_text(
        'name = "quality"\ntitle = "Quality"\nunit = "response"\nquestion = "How good?"\n'
        'instructions = "Read."\nvariables = ["response"]\n[number]\nlow = 0\nhigh = 100\n'
    )
    of_rubric = ScaleOptions(rubric=str(rubric), kinds=TWO.kinds)
    refused(told, from_file, file, of_rubric if cell == "120" else TWO)


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
        for rater in ("ann", "ben", "cat"):
            said = np.clip(rng.normal(true, 6), 0, 100).astype(int).astype(str)
            label_all(
                AnnotationDesk(study), rater,
                lambda task, _, said=said: said[int(task.values["response"].split()[1])],
            )  # fmt: skip
        assert len(adjudication_queue(study)) < 25  # though hardly any three numbers are the same
    assert main(["report", str(folder)]) == 0
    assert main(["export", str(folder), "--out", str(tmp_path / "out.csv")]) == 0
    again, own = load(tmp_path / "out.csv"), load(folder)
    assert again.scales["rating"].is_number
    assert again.scales["rating"].categories == own.scales["rating"].categories
    assert main(["check", str(tmp_path / "out.csv"), "--out", str(tmp_path / "again")]) == 0
    tables = [pd.read_csv(p / "results.csv") for p in (folder / "report", tmp_path / "again")]
    figures = [table.set_index(["statistic", "rater_a", "rater_b"])["estimate"] for table in tables]
    for key in (("icc_a1", "humans", np.nan), ("human_ceiling_difference", "humans", "judge")):
        assert figures[0][key] == pytest.approx(figures[1][key])
