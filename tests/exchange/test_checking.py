"""Exports at the command line and in Python: one command each, and refusals in one sentence."""

import json
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export
from evenhand.exchange.readers.rows import Export
from evenhand.reporting.load import from_file
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions
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


def cells(export: Export, columns: str = "unit_id rubric rater_id rater_kind label") -> list:
    return export.table[columns.split()].to_numpy().tolist()


def lines(*raters: str) -> str:
    """A CSV with a column for each rater."""
    said = zip(ANN * 4, BEN * 4, GPT * 4, strict=True)
    body = [",".join([f"u{n}", *(WORDS[one] for one in row)]) for n, row in enumerate(said)]
    return "\n".join([",".join(["item", *raters]), *body]) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("made", MADE, ids=lambda made: made.file)
def test_one_command_checks_an_export(made, run: Run) -> None:
    said = " ".join(run.ok("check", FILES / made.file, *NAMED.get(made.file, ()), *FEW).split())
    for note in read_export(FILES / made.file).notes:
        assert note in said
    assert "Agreement" in said


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_a_table_of_label_studio_is_not_guessed_at(tmp_path, run, delimiter):
    """The tool sorts the columns: a label may come before `id`, and the task's data after it."""
    table = pd.DataFrame({
        "annotation_id": range(4), "annotator": ["ann@example.org", "ben@example.org"] * 2,
        "clear": ["yes", "no", "no", "no"], "created_at": "2026-01-01T00:00:00Z",
        "id": [1, 1, 2, 2], "lead_time": 3.2, "topic": ["tax", "tax", "war", "war"],
    })  # fmt: skip
    file = tmp_path / ("export.tsv" if delimiter == "\t" else "export.csv")
    table.to_csv(file, sep=delimiter, index=False)
    said = run.refused("check", file, *FEW)
    assert "does not say which columns are labels; export the project as JSON" in said
    columns = "unit=id,rater=annotator,label=clear"
    named = ["--columns", columns, "--human", "ann@example.org,ben@example.org"]
    obeyed = ["--format", "table", *named]
    assert "ann@example.org · ben@example.org" in run.ok("check", file, *obeyed, *FEW)


def test_a_person_named_by_id_and_by_address_is_one(wrote: Wrote) -> None:
    def task(unit: int, *people: object) -> dict:
        result = [{"from_name": "fair", "type": "choices", "value": {"choices": ["yes"]}}]
        given = [{"completed_by": each, "result": result} for each in people]
        return {"id": unit, "data": {"text": "t"}, "annotations": given}

    ann, ben = ({"id": at, "email": f"{who}@example.org"} for at, who in ((1, "ann"), (2, "ben")))
    file = wrote([task(1, ann, 2), task(2, 1, ben), task(3, 3)])
    assert sorted(set(eh.read(file)["rater_id"])) == ["3", "ann@example.org", "ben@example.org"]


def test_raters_are_told_by_plain_names_alone(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "f.csv"
    for one, two in (("human_1", "human_2"), ("ann", "ben"), ("human_1", "ben")):
        file.write_text(lines(one, two, "gpt-4o"))
        told = f"annotators `{one}`, `{two}`; grader `gpt-4o`"
        assert told in run.ok("check", file, *FEW)
    file.write_text(lines("ann", "ben", "system"))
    assert "--human ann,ben,system" in run.refused("check", file, *FEW)


def test_a_long_table_without_kinds_is_told_by_plain_names_too(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "long.tsv"
    rows = [f"u{n}\t{who}\tyes" for n in range(3) for who in ("human_1", "claude-3")]
    file.write_text("\n".join(["unit_id\trater_id\tlabel", *rows]) + "\n")
    assert "annotator `human_1`; grader `claude-3`" in run.ok("check", file, *FEW)


def test_a_gate_reads_what_check_reads(run: Run) -> None:
    source = str(FILES / "argilla.json")
    rule = ["--require", "observed_agreement > 0.1", "--grader", "openai/gpt-5-mini"]
    assert "met" in run.ok("gate", source, *rule, *FEW)


def test_python_reads_the_same() -> None:
    table = eh.read(FILES / "inspect.eval", human=["ann", "ben"], model="model_graded_qa")
    assert table["rater_kind"].value_counts().to_dict() == {"human": 15, "model": 8}
    assert table["topic"].unique().tolist() == ["sums"]
    found = eh.check(table, resamples=10)
    assert "Read as an Inspect log with edited scores" in found.notes[0]
    wide = eh.read(FILES / "wide.xlsx", columns={"unit": "item"})
    assert set(wide["unit_id"]) == {f"u{n}" for n in range(1, 9)}
    with pytest.raises(eh.InputError, match=r"human=\['ann', 'ben'\]"):
        eh.read(FILES / "inspect.eval")


def test_numbers_stay_as_they_are_written(tmp_path: Path) -> None:
    scores = [
        {"traceId": f"t{n}", "name": "size", "source": "ANNOTATION", "dataType": "NUMERIC",
         "authorUserId": "ann"}
        for n in range(3)
    ]  # fmt: skip
    text = json.dumps(scores).replace("}", ', "value": 4.50}')
    (tmp_path / "scores.json").write_text(text)
    assert read_export(tmp_path / "scores.json").table["label"].tolist() == ["4.50"] * 3


def test_what_evenhand_puts_into_an_inspect_log_is_read_as_it_was(wrote: Wrote) -> None:
    raters = [
        {"name": "ann", "rubric": "refusal", "rater_id": "ann", "rater_kind": "human"},
        {"name": "gpt", "rubric": "refusal", "rater_id": "openai:gpt", "rater_kind": "model"},
    ]
    known = {"rater_kind": "model", "rater_id": "openai:x", "rubric": "refusal", "p_positive": 0.25}
    scores = {
        "precomputed_scores": {"value": {"ann": "1", "gpt": None}, "metadata": {"raters": raters}},
        "grader": {"value": "2", "metadata": known},
        "match": {"value": "C"},
    }
    log = {"eval": {}, "samples": [{"id": "u1", "epoch": 1, "scores": scores}]}
    export = read_export(wrote(log))
    assert cells(export, "rubric rater_id rater_kind label p_positive") == [
        ["refusal", "ann", "human", "1", ""],
        ["refusal", "openai:x", "model", "2", "0.25"],
    ]
    assert dict(export.left_out) == {"answers without a label": 1, "scores that code computed": 1}


def test_what_evenhand_sends_to_langfuse_mlflow_and_label_studio_is_known(wrote: Wrote) -> None:
    known = {"rater_id": "openai:x", "rater_kind": "model", "p_positive": "0.25", "draw": "1"}
    score = {"id": "s", "traceId": "u1", "name": "fair", "value": "yes", "dataType": "CATEGORICAL"}
    source = {"source_type": "LLM_JUDGE", "source_id": "openai:x"}
    assessment = {
        "assessment_name": "fair", "trace_id": "u1", "source": source, "metadata": known,
        "feedback": {"value": "yes"}, "valid": True,
    }  # fmt: skip
    for content in ({**score, "metadata": known}, assessment):
        (row,) = read_export(wrote([content] * 2, "sent.jsonl")).table.to_dict("records")
        assert {**row, "created_at": ""} == {
            "unit_id": "u1", "rubric": "fair", "rater_kind": "model", "rater_id": "openai:x",
            "label": "yes", "p_positive": "0.25", "draw": "1", "created_at": "",
            **({"unscored_reason": ""} if "unscored_reason" in row else {}),
        }  # fmt: skip
    result = {"from_name": "fair", "type": "choices", "value": {"choices": ["yes"]}}
    prediction = {"model_version": "openai:x", "result": [result]}
    task = {"data": {"unit_id": "u1", "text": "t"}, "predictions": [prediction]}
    (row,) = cells(read_export(wrote([task])), "unit_id rater_id label")
    assert row == ["u1", "openai:x", "yes"]


def test_a_pretended_potato_folder(tmp_path: Path) -> None:
    for name in ("ann", "ben"):
        (tmp_path / name).mkdir()
    state = {
        "user_id": "ann",
        "instance_id_to_label_to_value": {
            "i1": {"mood": {"labels": {"good": True}}, "scale": {"labels": {"scale_3": "3"}}},
            "i2": [[{"schema": "mood", "name": "bad"}, "bad"]],
        },
    }
    (tmp_path / "ann" / "user_state.json").write_text(json.dumps(state))
    old = {"id": "i1", "label_annotations": {"mood": {"good": "1", "bad": "2"}}}
    (tmp_path / "ben" / "annotated_instances.jsonl").write_text(json.dumps(old) + "\n")
    export = read_export(tmp_path)
    assert cells(export, "unit_id rubric rater_id label") == [
        ["i1", "mood", "ann", "good"],
        ["i1", "scale", "ann", "3"],
        ["i2", "mood", "ann", "bad"],
    ]
    assert dict(export.left_out) == {"answers with several labels": 1}


@pytest.mark.parametrize("file", ["langfuse.json", "langsmith.jsonl"])
def test_the_same_scores_as_csv(file: str, tmp_path: Path) -> None:
    content = (FILES / file).read_text()
    lines_of = content.splitlines() if file.endswith("l") else []
    records = [json.loads(line) for line in lines_of] or json.loads(content)
    records = records["data"] if isinstance(records, dict) else records
    table = pd.DataFrame(records)
    table = table.map(lambda each: json.dumps(each) if isinstance(each, dict | list) else each)
    table.to_csv(tmp_path / "scores.csv", index=False)
    people = [
        {tuple(row) for row in export.table[["unit_id", "rubric", "rater_id", "label"]].to_numpy()}
        for export in (read_export(FILES / file), read_export(tmp_path / "scores.csv"))
    ]
    assert {row for row in people[0] if row[2] in ("1", "2", "ann", "ben")} <= people[1]


def test_votes_in_parquet(tmp_path: Path) -> None:
    pd.read_json(FILES / "mt_bench.jsonl", lines=True).to_parquet(tmp_path / "votes.parquet")
    table = read_export(tmp_path / "votes.parquet").table
    pd.testing.assert_frame_equal(table, read_export(FILES / "mt_bench.jsonl").table)


@pytest.mark.slow
def test_a_study_takes_an_export(tmp_path: Path, run: Run) -> None:
    study, scores = tmp_path / "study", tmp_path / "scores.json"
    prompts = "".join(f"For {n},Against {n}\n" for n in range(4))
    (tmp_path / "pairs.csv").write_text(f"prompt_a,prompt_b\n{prompts}")
    said = "".join(f"s,p{n:04d},{side},text\n" for n in range(1, 5) for side in "ab")
    (tmp_path / "said.csv").write_text(f"subject,pair_id,side,response\n{said}")
    new = ["new", str(study), "--pairs", str(tmp_path / "pairs.csv"), "--sample", "4"]
    run.ok(*new, "--responses", tmp_path / "said.csv")
    run.ok("export", study, "--units", tmp_path / "units.csv")
    every = pd.read_csv(tmp_path / "units.csv")["unit_id"]
    units = [unit for unit in every if unit.endswith(("a", "b"))]
    score = {"name": "refusal", "dataType": "CATEGORICAL", "stringValue": "5", "value": 4}
    people = [{"traceId": units[0], "source": "ANNOTATION", "authorUserId": "ann"}]
    people += [{"traceId": unit, "source": "API"} for unit in units[:2]]
    scores.write_text(json.dumps({"data": [{**score, **each} for each in people]}))
    told = "does not say which raters are annotators and which are graders (API)"
    assert told in run.refused("import", study, scores)
    out = run.ok("import", study, scores, "--human", "ann", "--model", "API")
    assert "Read as Langfuse scores" in out
    assert "3" in out.splitlines()[-1]


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_scores_of_langfuse_that_do_not_say_their_type(tmp_path, suffix, wrote):
    scores = [
        {"id": f"s{n}", "name": "fair", "value": n % 2, "traceId": f"t{n}", "source": "ANNOTATION",
         "authorUserId": "ann", "timestamp": "2026-11-01T12:00:00Z"}
        for n in range(4)
    ]  # fmt: skip
    file = wrote({"data": scores})
    if suffix == "csv":
        file = tmp_path / "scores.csv"
        pd.DataFrame(scores).to_csv(file, index=False)
    expected = [[f"t{n}", "fair", "ann", "human", str(n % 2)] for n in range(4)]
    assert cells(read_export(file)) == expected


def workbook(path: Path, **sheets: list[list[str]]) -> Path:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def test_the_sheet_of_a_workbook_is_named(tmp_path: Path, run: Run) -> None:
    rows = [line.split(",") for line in lines("human_1", "human_2", "gpt-4o").splitlines()]
    costs = [["item", "usd"], ["u1", "3"]]
    file = workbook(tmp_path / "f.xlsx", Costs=costs, Ratings=rows)
    (tmp_path / "f.csv").write_text(lines("human_1", "human_2", "gpt-4o"))
    assert "sheet Ratings" in run.ok("check", file, "--sheet", "Ratings", *FEW)
    several = "f.xlsx has several sheets (Costs, Ratings); name the one to read with --sheet"
    for name, words, told in (
        ("f.xlsx", "", several),
        ("f.xlsx", "--sheet Rating", "no sheet 'Rating' with a cell; it has Costs, Ratings"),
        ("f.csv", "--sheet Ratings", "is no workbook of Excel; leave --sheet out"),
        ("f.csv", "--engine dask --sheet R", "--sheet is not read with --engine"),
    ):
        assert told in run.refused("check", tmp_path / name, *words.split(), *FEW)


def grid(pattern: str = "{rater}_{rubric}") -> pd.DataFrame:
    said = {"ann": ANN * 4, "ben": BEN * 4, "gpt": GPT * 4}
    columns = {
        pattern.format(rater=rater, rubric=rubric): [WORDS[one] for one in letters[shift:]]
        for shift, rubric in ((0, "clarity"), (0, "tone"))
        for rater, letters in said.items()
    }
    return pd.DataFrame(columns)


def test_columns_of_rater_and_rubric_are_rubrics_of_these_raters(tmp_path: Path, run: Run) -> None:
    raters = {"human": ["ann", "ben"], "model": "gpt"}
    found = eh.check(grid(), **raters, wide="{rater}_{rubric}", resamples=10)
    kappa = found.results.query("statistic == 'cohen_kappa' and subset == 'all'")
    one = pd.DataFrame({who: grid()[f"{who}_tone"] for who in ("ann", "ben", "gpt")})
    alone = eh.check(one, **raters, resamples=10).results
    alone = alone.query("statistic == 'cohen_kappa' and subset == 'all'")
    for rubric in ("clarity", "tone"):
        own = kappa[kappa["rubric"] == rubric]
        assert own["estimate"].dropna().tolist() == alone["estimate"].dropna().tolist()
    grid().to_csv(tmp_path / "f.csv", index=False)
    named = ["--human", "ann,ben", "--model", "gpt", *FEW]
    assert "in columns named after both: --wide '{rater}_{rubric}'" in " ".join(
        run.ok("check", tmp_path / "f.csv", *named).split()
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--wide", "{rater}"), "write {rater} and {rubric} once each with a mark between"),
        (("--wide", "{rater}{rubric}"), "write {rater} and {rubric} once each with a mark between"),
        (("--wide", "{rater}-{rubric}"), "has no columns --wide '{rater}-{rubric}' of ann, ben"),
        (("--wide", "{rubric}_{rater}"), "has no columns --wide '{rubric}_{rater}' of ann, ben"),
    ],
)
def test_a_pattern_that_no_column_follows(tmp_path, options, says, run):
    grid().to_csv(tmp_path / "f.csv", index=False)
    named = ["--human", "ann,ben", "--model", "gpt"]
    said = run.refused("check", tmp_path / "f.csv", *named, *options, *FEW)
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_label_of_a_grid_is_found_by_row_and_column(tmp_path: Path) -> None:
    table = grid()
    table.loc[4, "ben_tone"] = "Yes"
    table.to_csv(tmp_path / "f.csv", index=False)
    options = ScaleOptions(kinds={"ann": "human", "ben": "human", "gpt": "model"})
    with pytest.raises(InputError, match=r"row 6, column 'ben_tone': the label 'Yes'"):
        from_file(tmp_path / "f.csv", options)


def test_scores_from_an_interface_are_nobody_s() -> None:
    with pytest.raises(InputError, match=r"\(sdk\); say so with --human NAME,\.\.\. --model NAME"):
        rows_of_file(FILES / "opik.json", ScaleOptions())


def test_an_option_s_number_is_told_from_its_text(wrote: Wrote) -> None:
    """lm-eval writes the target as text: 1 may be the option called 1, or the second one."""
    asked = {f"gen_args_{at}": {"arg_0": "How many?", "arg_1": f" {at + 1}"} for at in range(3)}
    samples = [
        {"doc_id": n, "doc": {}, "target": target, "arguments": asked, "filter": "none",
         "resps": [[["-1", "False"]]] * 3, "metrics": ["acc"], "acc": acc,
         "filtered_resps": [[str(-abs(at - chosen)), "False"] for at in range(3)]}
        for n, (target, chosen, acc) in enumerate(
            [("1", 1, 1.0), ("1", 1, 1.0), ("2", 2, 1.0), ("2", 1, 0.0), ("2", 0, 0.0)]
        )
    ]  # fmt: skip
    export = read_export(wrote(samples, "samples_x.jsonl"))
    table = export.table
    gold = table[table["rater_id"] == "gold"].set_index("unit_id")["label"].to_dict()
    assert gold == {"0": "2", "1": "2", "2": "3", "3": "3"}  # of the last nothing tells
    assert export.left_out["answers without a label"] == 1


def call(*feedback: tuple[str, object]) -> dict:
    """A call of Weave with feedback by ann."""
    given = [
        {"feedback_type": kind, "payload": payload, "creator": "ann", "id": str(n)}
        for n, (kind, payload) in enumerate(feedback)
    ]
    known = {"id": "c1", "op_name": "weave:///a/b/op/f:v1", "trace_id": "t1", "inputs": {}}
    return known | {"summary": {"weave": {"feedback": given}}}


def span(**more: object) -> dict:
    """A span of Phoenix."""
    return {"context": {"span_id": "s1", "trace_id": "t1"}, "attributes": {}, **more}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"instance_id": "i1", "user_id": "ann",
          "labels": {"fair": {"labels": {"yes": True, "no": False}}, "stars": {"label": "4"},
                     "why": {"labels": ["clear"]}}},
         [("i1", "fair", "ann", "human", "yes"), ("i1", "stars", "ann", "human", "4"),
          ("i1", "why", "ann", "human", "clear")]),
        (call(("wandb.runnable.judge", {"output": {"fair": True, "reason": "so", "n": 2}})),
         [("c1", "fair", "judge", "", "true"), ("c1", "n", "judge", "", "2")]),
        (call(("wandb.reaction.1", {"alias": ":+1:", "emoji": "x"}), ("mine", {"value": 4})),
         [("c1", "reaction", "ann", "human", ":+1:"), ("c1", "mine", "ann", "", "4")]),
        (span(annotations=[{"name": "fair", "annotator_kind": "HUMAN", "user_id": "u7",
                            "identifier": "app", "result": {"label": None, "score": 1.0}}]),
         [("s1", "fair", "u7", "human", "1.0")]),
        ({"data": [{"span_id": "s1", "name": "fair", "annotator_kind": "LLM", "identifier": "",
                    "metadata": {"model": "gpt-4o"}, "result": {"label": "no"}}], "next": None},
         [("s1", "fair", "gpt-4o", "model", "no")]),
        ({"id": "r1", "span_id": "s1", "root_span_id": "s1", "scores": {"a": 0.5, "b": None}},
         [("r1", "", "a", "", "0.5")]),
        ({"trace": {"id": "t1", "start_time": "2026-01-01T00:00:00Z"},
          "spans": [{"id": "s1", "trace_id": "t1", "feedback_scores": [
              {"name": "fair", "value": 1, "source": "ui", "created_by": "ann"}]}]},
         [("t1/s1", "fair", "ann", "human", "1")]),
        ([{"spec": {"completion_fns": ["m", "g"], "run_config": {}}},
          {"run_id": "r", "event_id": 0, "sample_id": "q", "type": "metrics",
           "data": {"choice": "Yes", "score": 1}}],
         [("q", "graded", "g", "model", "Yes")]),
    ],
)  # fmt: skip
def test_other_forms_of_the_tools_files(content: object, said: list, wrote: Wrote) -> None:
    assert sorted(cells(read_export(wrote(content)))) == sorted([*row] for row in said)


def test_scorers_of_braintrust_that_ask_no_model_are_code(wrote: Wrote) -> None:
    rows = json.loads((FILES / "braintrust.json").read_text())
    alone = [row for row in rows if row["span_attributes"]["type"] != "llm"]
    export = read_export(wrote(alone))
    assert set(export.table["rater_id"]) == {"ann", "ben"}
    assert dict(export.left_out) == {"scores that code computed": 8}


def test_a_score_of_braintrust_without_a_span_is_not_taken_for_a_person(wrote: Wrote) -> None:
    rows = json.loads((FILES / "braintrust.json").read_text())
    for row in rows:
        if row["span_id"] == row["root_span_id"]:
            row["scores"]["levenshtein"] = 1
    with pytest.raises(InputError, match=r"levenshtein.*--human NAME,\.\.\. --model NAME$"):
        rows_of_file(wrote(rows), ScaleOptions())
