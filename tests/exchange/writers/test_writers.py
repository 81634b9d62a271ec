"""What is written for other tools, against what their own packages made of it.

`as_tools_say/NAME.json` is what the package of the tool printed of the sample
(`harness/reading_back.py`). Under `-m load` it is asked again.
"""

import csv
import json
import os
import stat
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evenhand.exchange.writers import FORMATS, Material, Output, check_out, format_of, save
from harness.installing import installed, pip_command
from harness.reading_back import PACKAGES
from tests.cases import refused
from tests.commands import python
from tests.conftest import ROOT
from tests.exchange.writers.sample import COMBINED, FORMULA, RATINGS, UNITS, material

HERE = Path(__file__).parent


def made(name: str) -> Output:
    """The sample in a format; Argilla takes one grader, LangSmith ids that are UUIDs."""
    given = material("ann", "openai:gpt-x") if name == "argilla" else material()
    if name == "langsmith":
        runs = [str(uuid.UUID(int=number)) for number in range(len(given.units))]
        given = replace(given, units=given.units.assign(run_id=runs))
    return FORMATS[name].make(given)


def said(name: str) -> Any:
    return json.loads((HERE / "as_tools_say" / f"{name}.json").read_text("utf-8"))


def lines(name: str, given: Material | None = None) -> list[Any]:
    """What is written in lines of JSON, of the sample or of another one."""
    content = (FORMATS[name].make(given) if given else made(name)).files[""].decode()
    return [json.loads(line) for line in content.splitlines()]


def filled(part: Any) -> Any:
    """Without what a tool adds as empty."""
    if isinstance(part, dict):
        return {name: filled(each) for name, each in part.items() if each is not None}
    return [filled(each) for each in part] if isinstance(part, list) else part


def test_mlflow_langfuse_langsmith_and_phoenix_take_every_line_as_it_stands() -> None:
    for name, key in (
        ("mlflow", None),
        ("langfuse", lambda each: each["id"]),
        ("langsmith", lambda each: each["id"]),
        ("phoenix", lambda each: (each["span_id"], each["name"], each["identifier"])),
    ):
        assert lines(name) == said(name)
        if key:
            assert len({*map(key, said(name))}) == len(said(name)) == len(RATINGS) - 1
    assert made("langfuse").left_out == ["Left out: ratings without a label (1)."]
    assessments = said("mlflow")
    by_error = [each["feedback"]["error"] for each in assessments if each["feedback"].get("error")]
    assert [error["error_code"] for error in by_error] == ["refusal"]
    kinds = {(each["source"]["source_id"], each["source"]["source_type"]) for each in assessments}
    assert kinds == {("ann", "HUMAN"), ("ben", "HUMAN"), ("openai:gpt-x", "LLM_JUDGE")}
    sources = [each["feedback_source"] for each in said("langsmith")]
    kinds = {(each["metadata"]["rater_id"], each["type"]) for each in sources}
    assert kinds == {("ann", "api"), ("ben", "api"), ("openai:gpt-x", "model")}


def test_inspect_puts_every_raters_label_on_its_sample() -> None:
    scored = said("inspect")
    assert scored.pop("u4") == {}  # a sample that nobody rated
    assert scored == {
        each["id"]: {"precomputed_scores": {"value": each["value"], "metadata": each["metadata"]}}
        for each in json.loads(made("inspect").files[""])
    }
    assert scored["u1"]["precomputed_scores"]["value"]["tone/ben"] == "harsh"
    (first, *_) = scored["u3"]["precomputed_scores"]["metadata"]["raters"]
    assert first["unscored_reason"] == "refusal"


def test_label_studio_finds_no_fault_in_a_prediction() -> None:
    said_of_it = said("label-studio")
    assert said_of_it["faults"] == []
    assert said_of_it["labels"] == {"tone": ["calm", "harsh"], "length": ["1", "2"]}
    files = made("label-studio").files
    assert json.loads(files[""]) == said_of_it["tasks"]
    assert "hint='Harsh, \"sharp\"'" in files[".config.xml"].decode()
    first, second = (task["predictions"][0] for task in said_of_it["tasks"])
    assert "score" not in first  # two choices have no one probability
    assert second["score"] == 0.875


def test_argilla_reads_the_same_questions_and_suggestions() -> None:
    files = {name: json.loads(content) for name, content in made("argilla").files.items()}
    said_of_it = filled(said("argilla"))
    settings = filled(files[".argilla/settings.json"])
    for name in ("questions", "fields", "distribution", "allow_extra_metadata"):
        assert settings[name] == said_of_it["settings"][name]
    records = said_of_it["records"]
    assert [each.pop("status") for each in records] == ["pending", "pending"]
    assert filled(files["records.json"]) == records
    suggested = {"value": "calm", "score": 0.75, "agent": "openai:gpt-x"}
    assert records[0]["suggestions"]["tone"] == suggested


def test_hugging_face_loads_every_column_of_both_tables(tmp_path: Path) -> None:
    out = tmp_path / "set"
    save(made("hugging-face"), out, FORMATS["hugging-face"])
    for name, rows in (("ratings", RATINGS), ("units", UNITS)):
        loaded, table = said("hugging-face")[name], pd.read_parquet(out / f"{name}.parquet")
        assert loaded == json.loads(table.to_json(orient="records"))
        assert [each["unit_id"] for each in loaded] == [each["unit_id"] for each in rows]
    card = (out / "README.md").read_text("utf-8")
    assert "All ratings are synthetic" in card
    assert "Annotators: 2. Models: 1." in card


def test_a_wide_table_has_a_column_for_each_rater_and_na_where_there_is_none() -> None:
    rows = list(csv.DictReader(made("wide").files[""].decode().splitlines()))
    raters = ["ann", "ben", "openai:gpt-x"]
    assert list(rows[0]) == ["unit_id", "rubric", "cluster_id", "topic", *raters]
    assert [[row[rater] for rater in raters] for row in rows] == [
        ["2", "NA", "1"],
        ["calm", "harsh", "calm"],
        ["harsh", "NA", "harsh"],
        ["NA", "NA", "NA"],
    ]
    assert rows[0]["topic"] == f"'{FORMULA}"
    assert "prompt" not in rows[0]


def test_what_a_format_cannot_say_is_refused_and_no_rater_run_as_a_formula() -> None:
    given, people = material(), material("ann", "ben")
    combined = given.combined
    other = combined.assign(rater_id=combined["rater_id"].replace("ann", "other:x"))
    for name, whole, fault in (
        ("wide", replace(given, combined=combined.assign(label="NA")), "reads as missing"),
        ("wide", replace(given, units=given.units.assign(ann="x")), "both called 'ann'"),
        ("argilla", people, "there are no grades yet"),
        ("label-studio", people, "there are no grades yet"),
        ("argilla", replace(given, combined=other.assign(rater_kind="model")),
         "name one grader with --rater: ben, openai:gpt-x, other:x"),
    ):  # fmt: skip
        refused(fault, FORMATS[name].make, whole)
    renamed = combined.assign(rater_id="=cmd()").drop_duplicates(["unit_id", "rubric"])
    wide = FORMATS["wide"].make(replace(given, combined=renamed)).files[""].decode()
    assert wide.splitlines()[0].endswith(",'=cmd()")


def test_the_ids_by_which_a_tool_knows_a_unit_take_its_place() -> None:
    ids = {"trace_id": "tr-1", "span_id": "s-1", "observation_id": "o-1", "sample_id": 7}
    given = material("ann")
    given = replace(given, units=given.units.assign(**ids, epoch="2.0"))
    mlflow, langfuse = (lines(name, given)[0] for name in ("mlflow", "langfuse"))
    assert (mlflow["trace_id"], mlflow["span_id"]) == ("tr-1", "s-1")
    assert (langfuse["traceId"], langfuse["observationId"]) == ("tr-1", "o-1")
    record = json.loads(FORMATS["inspect"].make(given).files[""])[0]
    assert (record["id"], record["epoch"], record["metadata"]["unit_id"]) == ("7", 2, "u1")
    rated = given.units.drop(columns="response").assign(text="What was rated.")
    tasks = json.loads(FORMATS["label-studio"].make(replace(material(), units=rated)).files[""])
    assert {task["data"]["text"] for task in tasks} == {"What was rated."}


def test_each_says_what_it_could_not_carry() -> None:
    assert made("wide").left_out == [
        f"Repeated draws and both orders were combined as in the report: {len(RATINGS)} ratings "
        f"became {len(COMBINED)}.",
        "A wide table cannot store p_positive, probabilities, prob_method, unscored_reason, "
        "seconds, rubric_hash, created_at.",
    ]
    assert made("mlflow").left_out == []
    assert any("annotators' labels (4)" in each for each in made("label-studio").left_out)


@pytest.mark.parametrize("name", FORMATS)
def test_files_are_the_owners_alone(name: str, tmp_path: Path) -> None:
    how, out = FORMATS[name], tmp_path / f"out{FORMATS[name].suffix}"
    before = os.umask(0)
    try:
        save(made(name), out, how)
    finally:
        os.umask(before)
    places = list(tmp_path.rglob("*"))
    assert len([each for each in places if each.is_file()]) == len(made(name).files)
    for each in places:
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600)


def test_a_folder_is_written_whole_or_not_at_all_and_over_nothing(tmp_path, monkeypatch):
    def full(path: Path, content: bytes) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("evenhand.exchange.writers.atomic_write", full)
    with pytest.raises(OSError, match="no space"):
        save(made("argilla"), tmp_path / "set", FORMATS["argilla"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "README.md").write_text("mine")
    refused("is there already; name a new folder", check_out, tmp_path, FORMATS["hugging-face"])
    told = r"x\.csv: the extension must be \.jsonl for Langfuse"
    refused(told, check_out, Path("x.csv"), FORMATS["langfuse"])


def test_an_unknown_format_suggests_the_nearest() -> None:
    for name, nearest in (("langfus", "langfuse"), ("Label_Studio", "label-studio")):
        refused(rf"did you mean {nearest}\?", format_of, name)


@pytest.mark.load
@pytest.mark.parametrize("name", PACKAGES)
def test_the_tools_own_package_says_the_same(name, tmp_path):
    version = PACKAGES[name][0].partition("==")[2]
    folder = installed(f"{name}-{version}", pip_command(*PACKAGES[name]))
    out = tmp_path / f"out{FORMATS[name].suffix}"
    save(made(name), out, FORMATS[name])
    # In an environment of its own.
    environment = {**os.environ, "PYTHONPATH": str(folder), "HOME": str(tmp_path)}
    done = python(ROOT / "harness" / "reading_back.py", name, out, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == said(name)
