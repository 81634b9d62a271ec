"""Exports at the command line and in Python: one command each, and refusals in one sentence."""

import json
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

import evenhand as eh
from evenhand.exchange.readers.reading import read_export
from evenhand.reporting.load import from_file, from_table
from evenhand.reporting.ratings_file.dataframes import rows_of_file, rows_of_table
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study import open_study
from tests.cases import refused
from tests.commands import Run
from tests.exchange.conftest import Wrote
from tests.exchange.test_readers import ANN, BEN, FILES, GPT, MADE

NAMED = {
    "inspect.eval": ("--human", "ann,ben", "--model", "model_graded_qa"),
    "weave.jsonl": ("--human", "ann,ben", "--model", "judge"),
    "opik.json": ("--human", "ann,ben", "--model", "openai/gpt-5-mini"),
}
"""Files that do not say who is a person, and what says it."""
FEW = ("--resamples", "10")
WORDS = {"y": "yes", "n": "no"}


def lines(*raters: str) -> str:
    """A CSV with a column for each rater."""
    said = zip(*[ANN * 4, BEN * 4, GPT * 4, BEN * 4][: len(raters)], strict=True)
    body = [",".join([f"u{n}", *(WORDS[one] for one in row)]) for n, row in enumerate(said)]
    return "\n".join([",".join(["item", *raters]), *body]) + "\n"


def test_raters_are_told_by_plain_names_alone(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    for one, two, fact in (("human_1", "human_2", "human_mean"), ("ann", "ben", "votes"),
                           ("human_1", "costa", "human_confidence"),
                           ("first_annotator", "second_annotator", "humanMedian")):  # fmt: skip
        file.write_text(lines(one, two, "gpt-4o", fact))
        rows, _ = rows_of_file(file, ScaleOptions())
        kinds = dict(zip(rows["rater_id"], rows["rater_kind"], strict=True))
        assert kinds == {one: "human", two: "human", "gpt-4o": "model"}
    for said, *raters in (
        ("--human ann,ben,system", "ann", "ben", "system"),
        ("--human human_score --model gpt_score$", "human_score", "relevance", "gpt_score"),
        ("--human ann,ben --model gpt$", "ann", "ben", "gpt", "helpfulness"),
        ("--human ann_1,human_type_b --model gpt$", "ann_1", "human_type_b", "gpt"),
        ("--human human_1 --model gpt,gpt_version_2$", "human_1", "gpt", "gpt_version_2"),
    ):
        file.write_text(lines(*raters))
        refused(said, rows_of_file, file, ScaleOptions())
    raters = ("human_1", "human_2", "human_num_3", "gpt")
    scores = pd.DataFrame({rater: [n / 30 for n in range(30)] for rater in raters})
    refused("--human human_1,human_2,human_num_3 ", rows_of_table, scores, ScaleOptions())


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE, ids=lambda made: made.file)
def test_one_command_checks_an_export(made, run: Run) -> None:
    said = " ".join(run.ok("check", FILES / made.file, *NAMED.get(made.file, ()), *FEW).split())
    for note in read_export(FILES / made.file).notes:
        assert note in said
    assert "Agreement" in said


def test_a_gate_reads_what_check_reads(run: Run) -> None:
    rule = ["--require", "observed_agreement > 0.1", "--grader", "openai/gpt-5-mini"]
    assert "met" in run.ok("gate", FILES / "argilla.json", *rule, *FEW)


def test_python_reads_the_same() -> None:
    table = eh.read(FILES / "inspect.eval", human=["ann", "ben"], model="model_graded_qa")
    assert table["rater_kind"].value_counts().to_dict() == {"human": 15, "model": 8}
    assert table["topic"].unique().tolist() == ["sums"]
    assert "Read as an Inspect log with edited scores" in eh.check(table, resamples=10).notes[0]
    wide = eh.read(FILES / "wide.xlsx", columns={"unit": "item"})
    assert set(wide["unit_id"]) == {f"u{n}" for n in range(1, 9)}
    refused(r"human=\['ann', 'ben'\]", eh.read, FILES / "inspect.eval")


def test_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    known = {"name": "size", "source": "ANNOTATION", "dataType": "NUMERIC", "authorUserId": "ann"}
    text = json.dumps([known | {"traceId": f"t{n}"} for n in range(3)])
    (tmp_path / "scores.json").write_text(text.replace("}", ', "value": 4.50}'))
    assert read_export(tmp_path / "scores.json").table["label"].tolist() == ["4.50"] * 3


@pytest.mark.parametrize("file", ["langfuse.json", "langsmith.jsonl"])
def test_the_same_scores_as_csv_and_parquet(file: str, tmp_path: Path) -> None:
    content = (FILES / file).read_text()
    lines_of = content.splitlines() if file.endswith("l") else []
    records = [json.loads(line) for line in lines_of] or json.loads(content)
    table = pd.DataFrame(records["data"] if isinstance(records, dict) else records)
    table = table.map(lambda each: json.dumps(each) if isinstance(each, dict | list) else each)
    table.to_csv(tmp_path / "scores.csv", index=False)
    by = ["unit_id", "rubric", "rater_id", "label"]
    exported, flat = (
        {*map(tuple, read_export(path).table[by].to_numpy())}
        for path in (FILES / file, tmp_path / "scores.csv")
    )
    assert {row for row in exported if row[2] in ("1", "2", "ann", "ben")} <= flat
    votes = tmp_path / "votes.parquet"
    pd.read_json(FILES / "mt_bench.jsonl", lines=True).to_parquet(votes)
    kept = read_export(FILES / "mt_bench.jsonl").table
    pd.testing.assert_frame_equal(read_export(votes).table, kept)


@pytest.mark.slow
def test_a_study_takes_an_export(wrote: Wrote, make_study, run: Run) -> None:
    folder = make_study(pairs=4, subjects=("s",)).folder
    with open_study(folder) as study:
        units = sorted(study.rubric_units(study.rubrics["refusal"]))
    score = {"name": "refusal", "dataType": "CATEGORICAL", "stringValue": "5", "value": 4}
    people = [{"traceId": units[0], "source": "ANNOTATION", "authorUserId": "ann"}]
    people += [{"traceId": unit, "source": "API"} for unit in units[:2]]
    scores = wrote({"data": [{**score, **each} for each in people]}, "scores.json")
    told = "does not say which raters are annotators and which are graders (API)"
    assert told in run.refused("import", folder, scores)
    out = run.ok("import", folder, scores, "--human", "ann", "--model", "API")
    assert "Read as Langfuse scores" in out
    assert "3" in out.splitlines()[-1]


@pytest.mark.journey
def test_the_sheet_of_a_workbook_is_named(tmp_path: Path, run: Run) -> None:
    text, book = lines("human_1", "human_2", "gpt-4o"), openpyxl.Workbook()
    book.active.title = "Costs"
    sheet = book.create_sheet("Ratings")
    for row in text.splitlines():
        book.active.append(["u1", "3"])
        sheet.append(row.split(","))
    book.save(tmp_path / "f.xlsx")
    (tmp_path / "f.csv").write_text(text)
    assert "sheet Ratings" in run.ok("check", tmp_path / "f.xlsx", "--sheet", "Ratings", *FEW)
    several = "f.xlsx has several sheets (Costs, Ratings); name the one to read with --sheet"
    for name, words, told in (
        ("f.xlsx", "", several),
        ("f.xlsx", "--sheet Rating", "no sheet 'Rating' with a cell; it has Costs, Ratings"),
        ("f.csv", "--sheet Ratings", "is no workbook of Excel; leave --sheet out"),
        ("f.csv", "--engine dask --sheet R", "--sheet is not read with --engine"),
    ):
        assert told in run.refused("check", tmp_path / name, *words.split(), *FEW)


GRID = pd.DataFrame(
    {
        f"{who}_{rubric}": [WORDS[one] for one in letters * 4]
        for rubric in ("clarity", "tone")
        for who, letters in (("ann", ANN), ("ben", BEN), ("gpt", GPT))
    }
)


@pytest.mark.journey
def test_columns_of_rater_and_rubric_are_rubrics_of_these_raters(tmp_path: Path, run: Run) -> None:
    file, named = tmp_path / "f.csv", ["--human", "ann,ben", "--model", "gpt"]
    table = GRID.copy()
    table.loc[4, "ben_tone"] = "Yes"
    table.to_csv(file, index=False)
    assert "row 6, column 'ben_tone': the label 'Yes'" in run.refused("check", file, *named)
    GRID.to_csv(file, index=False)
    for wide, says in (
        ("{rater}", "write {rater} and {rubric} once each with a mark between"),
        ("{rater}{rubric}", "write {rater} and {rubric} once each with a mark between"),
        ("{rater}-{rubric}", "has no columns --wide '{rater}-{rubric}' of ann, ben"),
        ("{rubric}_{rater}", "has no columns --wide '{rubric}_{rater}' of ann, ben"),
    ):
        assert says in run.refused("check", file, *named, "--wide", wide)
    told = "in columns named after both: --wide '{rater}_{rubric}'"
    assert told in " ".join(run.ok("check", file, *named, *FEW).split())
    options = ScaleOptions(kinds={"ann": "human", "ben": "human", "gpt": "model"})
    said = from_file(file, options).ratings.query("rubric == 'tone' and rater_id == 'gpt'")
    assert sorted(said["label"]) == sorted(WORDS[one] for one in GPT * 4)
    table = GRID.drop(columns="ben_tone").rename(
        columns=lambda name: name.replace("tone", "a_tone")
    )
    for wide in ("", "{rater}_{rubric}"):  # ben, too, who has no labels on a_tone
        options = ScaleOptions(kinds={"*": "human", "gpt": "model"}, wide=wide)
        assert set(from_table(table, options).ratings["rater_id"]) == {"ann", "ben", "gpt"}


def test_an_option_s_number_is_told_from_its_text(wrote: Wrote) -> None:
    """lm-eval writes the target as text: 1 may be the option called 1, or the second one."""
    asked = {f"gen_args_{at}": {"arg_0": "How many?", "arg_1": f" {at + 1}"} for at in range(3)}
    known = {"doc": {}, "arguments": asked, "filter": "none", "metrics": ["acc"]}
    known["resps"] = [[["-1", "False"]]] * 3
    samples = []
    for target, chosen, acc in (("1", 1, 1.0), ("1", 1, 1.0), ("2", 2, 1.0), ("2", 1, 0.0),
                                ("2", 0, 0.0)):  # fmt: skip
        given = [[str(-abs(at - chosen)), "False"] for at in range(3)]
        own = {"doc_id": len(samples), "target": target, "acc": acc, "filtered_resps": given}
        samples.append(known | own)
    export = read_export(wrote(samples, "samples_x.jsonl"))
    gold = export.table[export.table["rater_id"] == "gold"].set_index("unit_id")["label"].to_dict()
    assert gold == {"0": "2", "1": "2", "2": "3", "3": "3"}  # of the last nothing tells
    assert export.left_out["answers without a label"] == 1


def test_scores_without_a_known_rater_are_code_or_asked_about(wrote: Wrote) -> None:
    rows = json.loads((FILES / "braintrust.json").read_text())
    # Scorers that ask no model are code.
    export = read_export(wrote([row for row in rows if row["span_attributes"]["type"] != "llm"]))
    assert set(export.table["rater_id"]) == {"ann", "ben"}
    assert dict(export.left_out) == {"scores that code computed": 8}
    for row in rows:
        if row["span_id"] == row["root_span_id"]:
            row["scores"]["levenshtein"] = 1
    for file, who in ((wrote(rows), r"levenshtein.*"), (FILES / "opik.json", r"\(sdk\).*")):
        refused(who + r"--human NAME,\.\.\. --model NAME", rows_of_file, file, ScaleOptions())
