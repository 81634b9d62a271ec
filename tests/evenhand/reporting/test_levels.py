"""Numbers: whole ones in a row are read as ordered unless another level is declared, through every
door, and each says so; others are read, judged and reported from a file, and from a study.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.load import from_file, from_table, load
from evenhand.reporting.ratings_file.declared import ScaleOptions, ScaleSection, sidecar_path
from evenhand.rubrics import Block, asked_rubric
from evenhand.rubrics.options import whole_numbers_in_a_row
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Answer
from evenhand.study.lead.disagreements import adjudication_queue
from evenhand.study.tables.columns import folded
from tests.commands import Run

SAID = "Labels 1-5 are read as ordered; --level nominal changes that."
IN_PYTHON = "Labels 1-5 are read as ordered; level='nominal' changes that."
UNITS = 36


def rated(labels: Sequence[object]) -> pd.DataFrame:
    """Labels (synthetic) of two annotators and a grader, who mostly agree, on each of `labels`."""
    rng = np.random.default_rng(3)
    truth = np.arange(UNITS) % len(labels)
    rows = [
        {
            "unit_id": f"u{n}",
            "rater_id": rater,
            "rater_kind": "model" if rater == "g" else "human",
            "label": labels[at if rng.random() < 0.8 else rng.integers(len(labels))],
            "p_positive": at / max(len(labels) - 1, 1) if rater == "g" else None,
        }
        for rater in ("ann", "ben", "g")
        for n, at in enumerate(truth)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def folder(here: Path) -> Path:
    """A folder to work in, with the file r.csv of labels 1 to 5."""
    rated("12345").to_csv("r.csv", index=False)
    return here


DOORS = {
    "check": "check r.csv --resamples 20",
    "check declared": "check r.csv --categories 1,2,3,4,5 --resamples 20",
    "gate": "gate r.csv --grader g --require kappa>-1 --resamples 20",
    "select": "select r.csv --resamples 20",
    "plan": "plan r.csv --resamples 20",
    "baseline": "baseline save r.csv --grader g --file b.json",
    "dask": "check r.csv --engine {engine} --resamples 20",
}


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_every_verb_reads_them_as_ordered_and_says_so(folder, capsys, engine, door):
    assert main(DOORS[door].format(engine=engine).split()) in (0, 1, 3)
    assert SAID in " ".join(capsys.readouterr().out.split())
    if door == "baseline":
        (scale,) = json.loads((folder / "b.json").read_text("utf-8"))["scales"].values()
        assert scale["level"] == "ordinal"


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_a_declared_level_is_taken(folder: Path, capsys, engine: str, door: str) -> None:
    assert main([*DOORS[door].format(engine=engine).split(), "--level", "nominal"]) in (0, 1, 3)
    said = capsys.readouterr().out
    assert "read as ordered" not in said
    assert "quadratic" not in said
    assert "linear" not in said


@pytest.mark.slow
@pytest.mark.parametrize("how", [eh.check, eh.select, eh.plan, eh.calibrate])
def test_python_names_its_keyword(how) -> None:
    asked = {"resamples": 20, "affirmative": [4, 5]}
    found = how(rated([1, 2, 3, 4, 5]), **asked)
    assert IN_PYTHON in " ".join([str(found), *found.notes])
    nominal = how(rated([1, 2, 3, 4, 5]), **asked, level="nominal")
    assert "read as ordered" not in " ".join([str(nominal), *nominal.notes])


ORDERED = {
    "from 0": (("0", "1", "2", "3"), ("0", "1", "2", "3")),
    "ten and more": (("8", "9", "10", "11"), ("8", "9", "10", "11")),
    "one that nobody gave": (tuple("1245"), tuple("12345")),
    "two that nobody gave": (tuple("125"), tuple("12345")),
    "with a point": (("1.0", "2.0", "4.0"), ("1", "2", "3", "4")),
    "below 0": (("-1", "0", "1"), ("-1", "0", "1")),
}
OTHERS = {
    "yes and no": ("yes", "no"),
    "0 and 1": ("0", "1"),
    "one alone": ("3",),
    "far apart": ("0", "50", "100"),
    "every third": ("1", "4", "7"),
    "decimals": ("0.5", "1", "1.5"),
    "a word among them": ("1", "2", "3", "x"),
    "digits of another script": ("١", "٢", "٣"),
}


@pytest.mark.parametrize("case", ORDERED)
def test_which_numbers_are_in_a_row(case: str) -> None:
    seen, expected = ORDERED[case]
    assert tuple(map(folded, whole_numbers_in_a_row(seen[::-1]))) == expected
    dataset = from_table(rated(seen), ScaleOptions())
    (scale,) = dataset.scales.values()
    assert (scale.level, scale.categories) == ("ordinal", expected)
    assert sum("read as ordered" in note for note in dataset.notes) == 1
    assert sum("lowest and the highest label seen" in note for note in dataset.notes) == 1


@pytest.mark.parametrize("case", OTHERS)
def test_which_are_not(case: str) -> None:
    assert whole_numbers_in_a_row(OTHERS[case]) == ()
    dataset = from_table(rated(OTHERS[case]), ScaleOptions())
    (scale,) = dataset.scales.values()
    assert (scale.level, set(scale.categories)) == ("nominal", set(OTHERS[case]))
    assert any("taken as nominal" in note for note in dataset.notes)


@pytest.mark.parametrize("labels", [("1", "2", "3", "99"), ("-1", "1", "2", "3")])
def test_a_code_is_asked_about(labels: tuple[str, ...]) -> None:
    assert whole_numbers_in_a_row(labels) == ()
    with pytest.raises(InputError, match="may mean that there is no label"):
        from_table(rated(labels), ScaleOptions())
    (scale,) = from_table(rated(labels), ScaleOptions(categories=labels)).scales.values()
    assert scale.level == "nominal"


@pytest.mark.parametrize(
    ("declared", "categories"),
    [("12345", "12345"), ("54321", "54321"), ("13254", "12345"), ("135", "135")],
)
def test_declared_categories_keep_their_order_or_have_that_of_the_numbers(declared, categories):
    dataset = from_table(rated(declared), ScaleOptions(categories=tuple(declared)))
    (scale,) = dataset.scales.values()
    assert (scale.level, scale.categories) == ("ordinal", tuple(categories))
    assert len(dataset.notes) == 2  # one says how the file is read


def test_an_order_that_can_be_seen_need_not_be_declared() -> None:
    (scale,) = from_table(rated("1245"), ScaleOptions(level="ordinal")).scales.values()
    assert scale.categories == tuple("12345")
    (scale,) = from_table(rated("1245"), ScaleOptions(level="nominal")).scales.values()
    assert (scale.level, scale.categories) == ("nominal", tuple("1245"))
    with pytest.raises(InputError, match="order of an ordinal scale cannot be seen"):
        from_table(rated("abc"), ScaleOptions(level="ordinal"))


def test_a_sidecar_without_a_level(folder: Path) -> None:
    beside = sidecar_path(folder / "r.csv")
    text = '[scales.tone]\ncategories = ["1", "2", "3", "4", "5"]\n'
    beside.write_text(text, "utf-8")
    dataset = from_file(folder / "r.csv")
    assert dataset.scales["tone"].level == "ordinal"
    said = "Labels 1-5 of tone are read as ordered; --level nominal changes that."
    assert said in dataset.notes
    declared = from_file(folder / "r.csv", ScaleOptions(level="nominal"))
    assert declared.scales["tone"].level == "nominal"
    beside.write_text(f'{text}level = "nominal"\n', "utf-8")
    dataset = from_file(folder / "r.csv")
    assert dataset.scales["tone"].level == "nominal"
    assert not any("ordered" in note for note in dataset.notes)


def test_an_exported_level_is_written_even_if_nominal() -> None:
    section = ScaleSection(categories=("1", "2", "3"), level="nominal")
    assert section.model_dump(exclude_defaults=True)["level"] == "nominal"


@pytest.mark.parametrize(
    ("options", "level", "expected"),
    [("12345", "", "ordinal"), ("31254", "", "ordinal"), ("12345", "nominal", "nominal"),
     ("abc", "", "nominal"), ("abc", "ordinal", "ordinal"), ("01", "", "nominal")],
)  # fmt: skip
def test_a_question_with_numbers_for_answers(options: str, level, expected: str) -> None:
    blocks = [Block(column="response", label="Response")]
    rubric = asked_rubric("How good?", blocks, options=list(options), level=level)
    assert (rubric.level, rubric.categories) == (expected, tuple(sorted(options)))


@pytest.mark.parametrize("more", [{"scale": "1-5"}, {"options": "abc", "several": True}])
def test_a_level_is_of_options_alone(more) -> None:
    blocks = [Block(column="response", label="Response")]
    with pytest.raises(InputError, match="--level goes with --options"):
        asked_rubric("How good?", blocks, level="nominal", **more)


@pytest.mark.slow
def test_label_says_it_too(folder: Path) -> None:
    items = pd.DataFrame({"response": ["hello", "bye", "well"]})
    asked = {"question": "How good?", "options": [1, 2, 3, 4, 5]}
    assert IN_PYTHON in eh.label(items, folder / "ordered", **asked).notes
    nominal = eh.label(items, folder / "plain", **asked, level="nominal")
    assert "read as ordered" not in " ".join(nominal.notes)
    assert 'level = "nominal"' in (folder / "plain" / "rubrics" / "rating.toml").read_text("utf-8")
    with pytest.raises(InputError, match="level= is 'interval'"):
        eh.label(items, folder / "no", **asked, level="interval")


KINDS = {"ann": "human", "ben": "human", "cat": "human", "judge": "model"}
TWO = ScaleOptions(level="interval", kinds={"ann": "human", "ben": "human"})


def table(path: Path, spread: float = 8.0, judge: float = 8.0, units: int = 80) -> Path:
    rng = np.random.default_rng(8)
    true = rng.uniform(0, 100, units)
    columns = {name: rng.normal(true, judge if name == "judge" else spread) for name in KINDS}
    frame = pd.DataFrame({name: np.clip(each, 0, 100).round(1) for name, each in columns.items()})
    frame.insert(0, "unit_id", [f"u{n}" for n in range(units)])
    frame.to_csv(path, index=False)
    return path


def test_a_file_of_numbers_is_judged(tmp_path: Path, run: Run) -> None:
    file, out = table(tmp_path / "scores.csv", units=200), tmp_path / "out"
    words = [str(file), "--human", "ann,ben,cat", "--model", "judge", "--out", str(out)]
    words += ["--resamples", "100"]
    assert "as they are numbers, say --level interval" in run.refused("check", *words)
    said = " ".join(run.ok("check", *words, "--level", "interval").split())
    assert "Use judge for these labels" in said
    assert "Labels are numbers from 0 to 100" in said
    results = pd.read_csv(out / "results.csv")
    given = set(results["statistic"])
    assert {"icc_a1", "icc_c1", "krippendorff_alpha_interval", "mean_difference"} <= given
    # Nothing is counted by category: the tables stay short.
    assert not given & {"confusion", "prevalence", "cohen_kappa"}
    assert len(results) < 150
    report = (out / "report.md").read_text("utf-8")
    assert "ICC(A,1)" in report and "mean of the numbers given" in report
    analysed = json.loads((out / "report.json").read_text("utf-8"))
    assert analysed["verdicts"][0]["verdict"] == "can_replace"


def test_a_worse_judge_falls_short(tmp_path: Path, run: Run) -> None:
    file = table(tmp_path / "scores.csv", judge=60.0)
    words = ["--human", "ann,ben,cat", "--model", "judge", "--level", "interval"]
    words += ["--resamples", "100"]
    assert "Use judge" not in run.ok("check", file, *words, "--out", tmp_path / "out")
    rows = pd.read_csv(tmp_path / "out" / "results.csv").set_index(["statistic", "rater_b"])
    assert rows.loc[("non_inferiority", "judge"), "high"].max() < -0.1


def test_numbers_in_other_forms_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "scores.csv"
    file.write_text("unit_id,ann,ben\na,0.50,.5\nb,1,1.0\nc,0.25,2.5e-1\n")
    dataset = from_file(file, TWO)
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
        from_file(file, TWO)


def test_a_number_off_the_rubric_is_named(tmp_path: Path) -> None:
    file, rubric = tmp_path / "scores.csv", tmp_path / "quality.toml"
    file.write_text("unit_id,ann,ben\na,50.0,51\nb,20,120\n")
    rubric.write_text(
        'name = "quality"\ntitle = "Quality"\nunit = "response"\nquestion = "How good?"\n'
        'instructions = "Read."\nvariables = ["response"]\n[number]\nlow = 0\nhigh = 100\n'
    )
    told = "row 3, column 'ben': the label '120' is none of the 101 numbers from 0 to 100; round"
    with pytest.raises(InputError, match=told):
        from_file(file, ScaleOptions(rubric=str(rubric), kinds=TWO.kinds))


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
                assert desk.submit_all(rater, [sent]) == ["stored"]
        assert len(adjudication_queue(study)) < 25  # though hardly any three numbers are the same
    assert main(["report", str(folder)]) == 0
    assert main(["export", str(folder), "--out", str(tmp_path / "out.csv")]) == 0
    again, own = load(tmp_path / "out.csv"), load(folder)
    assert again.scales["rating"].is_number
    assert again.scales["rating"].categories == own.scales["rating"].categories
    assert main(["check", str(tmp_path / "out.csv"), "--out", str(tmp_path / "again")]) == 0
    tables = [pd.read_csv(p / "results.csv") for p in (folder / "report", tmp_path / "again")]
    keys = ["statistic", "rater_a", "rater_b"]
    figures = [table.set_index(keys)["estimate"] for table in tables]
    for key in (("icc_a1", "humans", np.nan), ("human_ceiling_difference", "humans", "judge")):
        assert figures[0][key] == pytest.approx(figures[1][key])
