"""Studies from the published set, tables in and out by the verbs that people type, under a study's
own names and without codes for no label; and `evenhand export --format` for other tools.
"""

import csv
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from openpyxl import load_workbook

from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.exchange.writers import FORMATS
from evenhand.study import open_study
from evenhand.study.lead.disagreements import FINAL_COLUMNS
from evenhand.study.prompts.sampling import largest_remainder
from evenhand.study.settings.study_toml import change_config
from evenhand.study.tables.formats import read_table, xlsx_bytes
from harness.studies import marked_study, with_edited_rubric, write_pairs
from tests.commands import Run

pytestmark = pytest.mark.journey

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_published_set_becomes_a_study_in_proportion(shared_data, tmp_path, run):
    source, said = shared_data / "eval_set.csv", ""
    for name in ("one", "two"):
        said += run.ok("new", tmp_path / name, "--pairs", source)
        run.ok("export", tmp_path / name, "--units", tmp_path / f"{name}.csv")
    assert "Sampled 250 of 1350 pairs" in said
    assert "kappa between two annotators is known to within" in said
    assert "judge hedging without the prompt: first in each block" in " ".join(said.split())
    first, second = ((tmp_path / f"{name}.csv").read_bytes() for name in ("one", "two"))
    assert first == second
    units, pairs = read_table(tmp_path / "one.csv"), read_table(source)
    assert units["cluster_id"].nunique() == 250
    assert set(pairs.columns) <= set(units.columns)
    sampled = units.drop_duplicates("cluster_id")
    for column in ("template_category", "main_category"):
        share = largest_remainder(pairs[column].value_counts().to_dict(), 250)
        assert sampled[column].value_counts().to_dict() == share


@pytest.mark.parametrize(("marked", "display"), [(2, "text"), (3, "markdown"), (0, "text")])
def test_a_new_study_shows_responses_as_most_are_written_and_says_so(
    tmp_path, run, marked, display
):
    pairs = write_pairs(tmp_path / "pairs.csv", 3)
    rows = ["subject,pair_id,side,response"]
    for n in range(6):
        rows.append(f"s,p{n // 2 + 1:04d},{'ab'[n % 2]},{'It is **so**.' if n < marked else 'So.'}")
    (tmp_path / "r.csv").write_text("\n".join(rows), "utf-8")
    files = ["--pairs", pairs, "--responses", tmp_path / "r.csv", "--sample", "3"]
    said = " ".join(run.ok("new", tmp_path / "study", *files).split())
    assert f"{round(100 * marked / 6)}% look like Markdown" in said
    assert ("with their Markdown rendered" in said) == (display == "markdown")
    with open_study(tmp_path / "study") as study:
        assert study.config.annotation.display == display


def test_responses_may_come_later_and_extend_keeps_the_first(tmp_path: Path, run: Run) -> None:
    source, study = ROOT / "data" / "demo_pairs.csv", tmp_path / "study"
    said = run.ok("new", study, "--pairs", source, "--sample", "30", "--seed", "3")
    assert said.count("Next:") == 1

    def sampled() -> list[str]:
        run.ok("export", study, "--units", tmp_path / "units.csv")
        return read_table(tmp_path / "units.csv")["cluster_id"].drop_duplicates().tolist()

    before, pairs = sampled(), read_table(source)
    prompts = [*pairs["prompt_a"], *pairs["prompt_b"]]
    rows = [{"subject": "s1", "prompt": each, "response": f"On it: {each}"} for each in prompts]
    (tmp_path / "responses.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = run.ok("import", study, tmp_path / "responses.jsonl")
    assert "Added 612 responses (subjects: 1;" in said
    run.ok("extend", study, "--pairs", "20")
    after = sampled()
    assert (len(before), len(after)) == (30, 50)
    assert after[:30] == before
    assert "so 256 are left" in run.refused("extend", study, "--pairs", "2000")
    change_config(study, {"sample": {"pairs": 30}})  # as if a kill had cut the call off
    assert "from 30 to 50" in run.ok("extend", study, "--pairs", "20")
    assert sampled() == after


def test_a_wide_file_is_imported_as_advised_and_other_names_are_understood(
    make_study, tmp_path, run
):
    study = make_study()
    one, two, three = units = study.rubric_units(study.rubrics["refusal"])[:3]
    wide, named, huge = (tmp_path / f"{name}.csv" for name in ("wide", "named", "huge"))
    rows = ["item_id,rubric,ann,gpt", f"{one},refusal,5,5", f"{two},refusal,5,5"]
    wide.write_text("\n".join([*rows, f"{three},refusal,,5"]) + "\n")
    named.write_text(f"item,rubric,who,kind,score\n{three},refusal,ann,human,2\n")
    advised = ["--human", "ann", "--model", "gpt"]
    assert " ".join(advised) in run.refused("import", study.folder, wide)
    run.ok("import", study.folder, wide, *advised)
    run.ok("import", study.folder, named)
    given = study.ratings().set_index(["rater_id", "unit_id"])["label"]
    assert given["ann"].to_dict() == dict(zip(units, "552", strict=True))
    assert given["gpt"].to_dict() == dict.fromkeys(units, "5")
    huge.write_text(named.read_text().replace(",2\n", f",{'2' * 100_000}\n"))
    advised = ["--columns", "unit=item,rater=who,kind=kind,label=score"]
    error = run.refused("import", study.folder, huge, *advised)
    assert "huge.csv, row 2: label '2222222" in error
    assert len(error) < 200


def test_labels_are_imported_under_own_ids_and_names_of_options(here: Path, run: Run) -> None:
    Path("items.csv").write_text("id,response\nx0,A.\nx1,B.\nx2,C.\n")
    options = ("--options", "нет,sí,да,!")
    run.ok("new", "st", "--items", "items.csv", "--question", "Right?", *options)
    Path("labels.csv").write_text("item_id,ann\nx1,да\nx0,sí\nx2,нет\n", "utf-8")
    run.ok("import", "st", "labels.csv", "--human", "ann")
    with open_study("st") as study:
        (rubric,) = study.rubrics.values()
        assert rubric.kind.names == {
            "option-1": "нет",
            "si": "sí",
            "option-3": "да",
            "option-4": "!",
        }
        own = study.units("all").set_index("unit_id")["item_id"]
        given = study.ratings().set_index("unit_id")["label"].rename(own).to_dict()
    assert given == {"x1": "option-3", "x0": "si", "x2": "option-1"}
    Path("labels.csv").write_text("item_id,ann\nx9,да\n", "utf-8")
    refused = run.refused("import", "st", "labels.csv", "--human", "ann")
    assert "`evenhand export st --units units.csv` lists the items" in refused


@pytest.mark.slow
def test_an_edited_rubric_is_noticed_in_the_report(make_study, run: Run) -> None:
    study = make_study()
    run.ok("grade", study.folder, "--grader", "baseline:lexical")
    old = study.rubrics["refusal"].hash
    with_edited_rubric(study, "refusal", same=False).close()
    assert old in run.ok("report", study.folder)
    assert old in (study.folder / "report" / "report.html").read_text()
    assert "refusal" not in set(read_table(study.folder / "report" / "results.csv")["rubric"])


def test_propositions_become_a_study(tmp_path: Path, run: Run) -> None:
    """From a file of statements to labels: no pair anywhere in what is said."""
    statements, wordings = tmp_path / "statements.csv", tmp_path / "wordings.csv"
    rows = [f"s{n},Statement {n} holds.,{'north' if n % 2 else 'south'}\n" for n in range(8)]
    statements.write_text("id,text,region\n" + "".join(rows))
    wordings.write_text('wording,template\nplain,"{statement} Agree?"\nlong,"Think. {statement}"\n')
    study = tmp_path / "study"
    made = ["new", study, "--propositions", statements, "--wordings", wordings]
    said = run.ok(*made, "--sample", "10", "--stratify", "region")
    assert "Sampled 10 of 16 prompts" in said
    assert "propositions can decide" in said
    assert "pair" not in said
    assert sorted(path.name for path in (study / "rubrics").iterdir()) == ["stance.toml"]

    forms = (("Think. {} holds.", "I reject this."), ("{} holds. Agree?", "I support this."))
    rows = [
        {"subject": "s1", "prompt": prompt.format(f"Statement {n}"), "response": response}
        for prompt, response in forms
        for n in range(8)
    ]
    answers = tmp_path / "responses.jsonl"
    answers.write_text("\n".join(map(json.dumps, rows)) + "\n")
    run.ok("import", study, answers)
    run.ok("grade", study, "--grader", "baseline:lexical", "--scope", "all")
    run.ok("report", study)
    results = read_table(study / "report" / "results.csv")
    stability = results[results["statistic"].eq("stability_fleiss_kappa")].set_index("subset")
    # One wording is always answered for, the other always against: as unstable as can be
    assert float(stability.loc["all|binary", "estimate"]) == -1
    assert "The sample grew from 10 to 12 prompts" in run.ok("extend", study, "--pairs", "2")


def test_extend_picks_where_graders_differ_once_all_pairs_are_graded(make_study, run):
    folder = make_study(pairs=24, sample=8).folder
    by_uncertainty = ["extend", folder, "--pairs", "6", "--by", "uncertainty"]
    grade = ["grade", folder, "--grader", "baseline:lexical"]
    run.ok(*grade)
    complaint = run.refused(*by_uncertainty)
    assert f"first run `evenhand grade {folder} --scope all --grader ...`" in complaint
    run.ok(*grade, "--scope", "all")
    said = " ".join(run.ok(*by_uncertainty).split())
    assert "The first 8 and their labels are unchanged." in said
    assert "those on which graders differ or are unsure" in said


DRAWN = """unit_id,rubric,rater_id,rater_kind,label,draw,order,unscored_reason
p0001|m|a,refusal,ann,human,2,0,,
p0001|m|a,refusal,x:drawn,model,1,0,,
p0001|m|a,refusal,x:drawn,model,5,1,,
p0001|m|a,refusal,x:drawn,model,5,2,,
p0001|m|b,refusal,x:drawn,model,3,0,,
p0001|m|b,refusal,x:drawn,model,4,1,,
p0001|m|b,refusal,ann,human,,0,,unclear
p0001|m,even-handedness,ann,human,A,0,,
p0001|m,even-handedness,x:drawn,model,A,0,ab,
p0001|m,even-handedness,x:drawn,model,B,0,ba,
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with draws that differ, orders that differ, and a label that is missing."""
    home = tmp_path_factory.mktemp("exported")
    marked_study(home / "study", pairs=2, rubrics=("refusal", "even-handedness")).close()
    (home / "drawn.csv").write_text(DRAWN)
    assert main(["import", str(home / "study"), str(home / "drawn.csv")]) == 0
    return home / "study"


def test_a_wide_table_holds_what_the_report_compares(folder, run, tmp_path):
    said = run.ok("export", folder, "--out", tmp_path / "wide.csv", "--format", "wide")
    assert "Wrote 3 rows for R and spreadsheets to" in said.replace("\n", " ")
    assert "10 ratings became 6" in said
    rows = {row["unit_id"]: row for row in csv.DictReader((tmp_path / "wide.csv").open())}
    assert {unit: (row["ann"], row["x:drawn"]) for unit, row in rows.items()} == {
        "p0001|m|a": ("2", "5"),  # two of three draws
        "p0001|m|b": ("NA", "NA"),  # no label; a tie of draws
        "p0001|m": ("A", "NA"),  # the two orders disagree
    }


def test_final_labels_come_with_their_items_and_never_as_a_formula(folder, run, tmp_path):
    csv_file, book = tmp_path / "final.csv", tmp_path / "final.xlsx"
    run.ok("export", folder, "--final", "--out", csv_file)
    run.ok("export", folder, "--final", "--out", book)
    table = pd.read_csv(csv_file, dtype=str, keep_default_na=False)
    assert [*table][:7] == [*FINAL_COLUMNS, "cluster_id"]
    row = table.set_index(["item_id", "rubric"]).loc["p0001|m|a", "refusal"]
    assert row[["final_label", "votes", "decided_by"]].tolist() == ["2", '{"2": 1}', "single"]
    assert load_workbook(book).active.max_row == len(table) + 1
    hostile = pd.DataFrame({"=a": ["=1+1", "@x", "#N/A", "a\x00b", "+5"], "n": [1, 2, 3, 4, 5.5]})
    sheet = load_workbook(io.BytesIO(xlsx_bytes(hostile, "x.xlsx"))).active
    cells = [cell for (cell, _) in sheet.iter_rows()]
    assert {cell.data_type for cell in cells} == {"s"}
    assert [cell.value for cell in cells] == ["=a", "=1+1", "@x", "#N/A", "a\ufffdb", "+5"]
    assert [cell.quotePrefix for cell in cells] == [True, True, True, False, False, True]
    with pytest.raises(InputError, match="Excel takes 32,767 characters a cell"):
        xlsx_bytes(pd.DataFrame({"a": ["x" * 32_768]}), "x.xlsx")


def test_tasks_show_what_was_rated(folder: Path, run: Run, tmp_path: Path) -> None:
    said = run.ok("export", folder, "--out", tmp_path / "tasks.json", "--format", "label-studio")
    assert "tasks.config.xml" in said
    assert "annotators' labels (3)" in said
    (task,) = json.loads((tmp_path / "tasks.json").read_text("utf-8"))
    shown = "Prompt\n\nArgue for 1.\n\nResponse\n\n[[p0001|m|a]] A plain answer."
    assert task["data"]["text"] == shown
    assert task["predictions"][0]["result"][0]["value"] == {"choices": ["5"]}
    config = (tmp_path / "tasks.config.xml").read_text("utf-8")
    assert '<Choice value="1" hint="Literal compliance"/>' in config
    assert "Even-handedness" not in config  # no task asks it


def test_only_the_raters_named_are_exported(folder: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "scores.jsonl"
    run.ok("export", folder, "--out", out, "--format", "langfuse", "--rater", "ann")
    scores = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {each["metadata"]["rater_id"] for each in scores} == {"ann"}


def test_somebody_elses_file_goes_to_any_tool(run: Run, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,a,b,gpt\n1,yes,no,yes\n2,no,no,\n")
    named = ["--columns", "unit=item", "--human", "a,b", "--model", "gpt"]
    for name, how in FORMATS.items():
        out = tmp_path / f"{name}{how.suffix}"
        run.ok("export", tmp_path / "labels.csv", "--out", out, "--format", name, *named)
        assert out.exists()
    settings = json.loads((tmp_path / "argilla" / ".argilla" / "settings.json").read_text())
    (question,) = settings["questions"]
    assert question["name"] == "label"
    assert [each["value"] for each in question["settings"]["options"]] == ["no", "yes"]


def test_codes_are_no_labels_and_look_alikes_are_asked_about(run: Run, tmp_path: Path) -> None:
    """Of a judge's labels one is a code and two are spelled otherwise; then of a file's."""
    items, file, study = (tmp_path / name for name in ("items.csv", "labels.csv", "study"))
    labels = enumerate(("yes", "no", "99", "yes", "NO", "yes\u200b"))
    rows = [f"i{n},A text of number {n}.,left,{label}\n" for n, label in labels]
    items.write_text("id,response,side,judge\n" + "".join(rows), "utf-8")

    def labels_of(rater: str) -> list[str]:
        with open_study(study) as opened:
            return opened.ratings().query("rater_id == @rater")["label"].tolist()

    new = ("new", study, "--items", items, "--question", "Good?", "--options", "yes,no")
    said = run.refused(*new, "--judge", "judge")
    assert "row 4: judge is '99', which is no option" in said
    assert "--missing" in said
    done = run(*new, "--judge", "judge", "--missing", "99")
    assert (done.returncode, done.stderr) == (0, "")
    assert labels_of("judge") == ["yes", "no", "yes", "no", "yes"]

    with open_study(study) as opened:
        *units, last = opened.units("all")["unit_id"].tolist()
    for rater, label in (("ann", "yes"), ("Ann", "no")):
        lines = [f"{unit} ,{rater},human,{label}\n" for unit in units]
        lines = ["unit_id,rater_id,rater_kind,label\n", *lines, f"{last} ,{rater},human,99\n"]
        file.write_text("".join(lines))
        if rater == "ann":
            run.refused("import", study, file)
            done = run("import", study, file, "--missing", "99")
            assert (done.returncode, done.stderr) == (0, "")
            assert "Read as no label: 99 (1)" in done.stdout
    assert "'Ann' looks like 'ann'" in run.refused("import", study, file, "--missing", "99")
    change_config(study, {"analysis": {"missing": ["99"]}})
    run.ok("import", study, file, "--no-normalise")
    assert [labels_of(rater) for rater in ("ann", "Ann")] == [["yes"] * 5, ["no"] * 5]
    cells = zip([*units, last], ("Yes", "NA", "", "no.", "YES", "no"), strict=True)
    lines = [f"{unit},cy,human,{label}\n" for unit, label in cells]
    file.write_text("".join(["unit_id,rater_id,rater_kind,label\n", *lines]))
    assert "'Yes' of rater 'cy' looks like 'yes'; --normalise" in run.refused("import", study, file)
    said = run.ok("import", study, file, "--normalise")
    assert "Read as no label: NA (1).\nLeft out: answers without a label (2)." in said
    assert labels_of("cy") == ["yes", "no", "yes", "no"]
