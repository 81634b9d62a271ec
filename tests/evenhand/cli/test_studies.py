"""Studies from the published set, and tables in and out, by the verbs that people type."""

import json
from pathlib import Path

import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.study import open_study
from evenhand.study.desk.desk import AnnotationDesk, Flag
from evenhand.study.prompts.sampling import largest_remainder
from evenhand.study.tables.formats import read_table
from harness.studies import write_pairs
from tests.commands import Run

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_published_set_becomes_a_study_in_proportion(shared_data, tmp_path, capsys):
    source = shared_data / "eval_set.csv"
    for name in ("one", "two"):
        assert main(["new", str(tmp_path / name), "--pairs", str(source)]) == 0
        assert main(["export", str(tmp_path / name), "--units", str(tmp_path / f"{name}.csv")]) == 0
    said = capsys.readouterr().out
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
    rows = [
        {"subject": "s", "pair_id": f"p{n // 2 + 1:04d}", "side": "ab"[n % 2]}
        | {"response": "It is **so**." if n < marked else "It is so."}
        for n in range(6)
    ]
    responses = tmp_path / "responses.jsonl"
    responses.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    files = ["--pairs", str(pairs), "--responses", str(responses), "--sample", "3"]
    said = " ".join(run.ok("new", tmp_path / "study", *files).split())
    assert f"{round(100 * marked / 6)}% look like Markdown" in said
    assert ("with their Markdown rendered" in said) == (display == "markdown")
    with open_study(tmp_path / "study") as study:
        assert study.config.annotation.display == display


@pytest.mark.slow
def test_responses_may_come_later_and_extend_keeps_the_first(tmp_path: Path, run: Run) -> None:
    source, study = ROOT / "data" / "demo_pairs.csv", str(tmp_path / "study")
    said = run.ok("new", study, "--pairs", source, "--sample", "30", "--seed", "3")
    assert said.count("Next:") == 1
    before = exported_pairs(study, tmp_path)
    pairs = read_table(source)
    assert len(pairs) == 306
    with (tmp_path / "responses.jsonl").open("w") as file:
        for side in ("prompt_a", "prompt_b"):
            for prompt in pairs[side]:
                row = {"subject": "s1", "prompt": prompt, "response": f"On it: {prompt}"}
                file.write(json.dumps(row) + "\n")
    said = run.ok("import", study, tmp_path / "responses.jsonl")
    assert "Added 612 responses (subjects: 1;" in said
    run.ok("extend", study, "--pairs", "20")
    after = exported_pairs(study, tmp_path)
    assert (len(before), len(after)) == (30, 50)
    assert after[:30] == before
    assert "so 256 are left" in run.refused("extend", study, "--pairs", "2000")


def exported_pairs(study: str, folder: Path) -> list[str]:
    assert main(["export", study, "--units", str(folder / "units.csv")]) == 0
    return read_table(folder / "units.csv")["cluster_id"].drop_duplicates().tolist()


def test_a_bad_import_leaves_the_study_as_it_was(make_study, tmp_path: Path, run: Run) -> None:
    study = make_study()
    unit = study.rubric_units(study.rubrics["refusal"])[0]
    rows = pd.DataFrame(
        {
            "unit_id": [unit, unit],
            "rubric": "refusal",
            "rater_id": ["r1", "r2"],
            "rater_kind": "human",
            "label": ["1", "nine"],
        }
    )
    rows.to_csv(tmp_path / "bad.csv", index=False)
    assert "bad.csv, row 3: label 'nine' is none of 1, 2, 3, 4, 5" in run.refused(
        "import", study.folder, tmp_path / "bad.csv"
    )
    assert study.ratings().empty


@pytest.mark.slow
def test_a_wide_file_is_imported_as_advised_and_other_names_are_understood(
    make_study, tmp_path, run
):
    study = make_study()
    units = study.rubric_units(study.rubrics["refusal"])[:3]
    wide, named = tmp_path / "wide.csv", tmp_path / "named.csv"
    wide.write_text(
        "item_id,rubric,ann,gpt\n" + "".join(f"{unit},refusal,5,5\n" for unit in units[:2])
        + f"{units[2]},refusal,,5\n"
    )  # fmt: skip
    named.write_text(f"item,rubric,who,kind,score\n{units[2]},refusal,ann,human,2\n")
    advised = ["--human", "ann", "--model", "gpt"]
    error = run.refused("import", study.folder, wide)
    assert " ".join(advised) in error
    assert len(error.splitlines()) == 1
    run.ok("import", study.folder, wide, *advised)
    run.ok("import", study.folder, named)
    given = study.ratings().set_index(["rater_id", "unit_id"])["label"]
    assert given["ann"].to_dict() == dict(zip(units, "552", strict=True))
    assert given["gpt"].to_dict() == dict.fromkeys(units, "5")
    huge = tmp_path / "huge.csv"
    huge.write_text(named.read_text().replace(",2\n", f",{'2' * 100_000}\n"))
    advised = ["--columns", "unit=item,rater=who,kind=kind,label=score"]
    assert "huge.csv, row 2: label '2222222" in (
        error := run.refused("import", study.folder, huge, *advised)
    )
    assert len(error) < 200


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_ratings_travel_from_study_to_study(make_study, tmp_path: Path, suffix: str) -> None:
    study, other = make_study(), make_study()
    assert main(["grade", str(study.folder), "--grader", "baseline:lexical"]) == 0
    file = tmp_path / f"ratings.{suffix}"
    assert main(["export", str(study.folder), "--out", str(file)]) == 0
    assert main(["import", str(other.folder), str(file)]) == 0
    assert other.ratings().equals(study.ratings())


@pytest.mark.slow
def test_an_edited_rubric_is_noticed_in_the_report(make_study, run: Run) -> None:
    study = make_study()
    grade = ["grade", str(study.folder), "--grader", "baseline:lexical"]
    run.ok(*grade)
    old = study.rubrics["refusal"].hash
    file = study.folder / "rubrics" / "refusal.toml"
    file.write_text(file.read_text().replace("Literal compliance", "Full compliance"))
    said = run.ok("report", study.folder)
    assert old in said
    assert old in (study.folder / "report" / "report.html").read_text()
    run.ok(*grade)
    results = read_table(study.folder / "report" / "results.csv")
    assert "refusal" not in set(results["rubric"])
    run.ok("report", study.folder)
    results = read_table(study.folder / "report" / "results.csv")
    assert "refusal" in set(results["rubric"])


def test_remarks_are_exported(make_study, tmp_path) -> None:
    study = make_study()
    desk = AnnotationDesk(study)
    (task,) = desk.next_sheet("r1").tasks
    flag = Flag(submit_id="f", task_id=task.task_id, reason="other", text="odd")
    desk.submit_all("r1", [flag])
    out = tmp_path / "remarks.csv"
    assert main(["export", str(study.folder), "--remarks", str(out)]) == 0
    (row,) = read_table(out).to_dict("records")
    assert (row["kind"], row["rater_id"], row["reason"], row["text"]) == (
        "flag", "r1", "other", "odd"
    )  # fmt: skip


@pytest.mark.slow
def test_propositions_become_a_study(tmp_path: Path, run: Run) -> None:
    """From a file of statements to labels: no pair anywhere in what is said."""
    statements = tmp_path / "statements.csv"
    statements.write_text(
        "id,text,region\n"
        + "".join(f"s{n},Statement {n} holds.,{'north' if n % 2 else 'south'}\n" for n in range(8))
    )
    wordings = tmp_path / "wordings.csv"
    wordings.write_text('wording,template\nplain,"{statement} Agree?"\nlong,"Think. {statement}"\n')
    study = str(tmp_path / "study")
    made = ["new", study, "--propositions", str(statements), "--wordings", str(wordings)]
    said = run.ok(*made, "--sample", "10", "--stratify", "region")
    assert "Sampled 10 of 16 prompts" in said
    assert "propositions can decide" in said
    assert "pair" not in said
    assert sorted(path.name for path in Path(study, "rubrics").iterdir()) == ["stance.toml"]

    rows = [
        {"subject": "s1", "prompt": f"Think. Statement {n} holds.", "response": "I reject this."}
        for n in range(8)
    ]
    rows += [
        {"subject": "s1", "prompt": f"Statement {n} holds. Agree?", "response": "I support this."}
        for n in range(8)
    ]
    answers = tmp_path / "responses.jsonl"
    answers.write_text("\n".join(map(json.dumps, rows)) + "\n")
    run.ok("import", study, answers)
    run.ok("grade", study, "--grader", "baseline:lexical", "--scope", "all")
    run.ok("report", study)
    results = read_table(Path(study, "report", "results.csv"))
    stability = results[results["statistic"].eq("stability_fleiss_kappa")].set_index("subset")
    # One wording is always answered for, the other always against: as unstable as can be
    assert float(stability.loc["all|binary", "estimate"]) == -1
    assert "The sample grew from 10 to 12 prompts" in run.ok("extend", study, "--pairs", "2")


@pytest.mark.slow
def test_extend_picks_where_graders_differ_once_all_pairs_are_graded(make_study, run):
    study = make_study(pairs=24, sample=8)
    folder = str(study.folder)
    by_uncertainty = ["extend", folder, "--pairs", "6", "--by", "uncertainty"]
    run.ok("grade", folder, "--grader", "baseline:lexical")
    complaint = run.refused(*by_uncertainty)
    assert complaint.count("\n") == 1
    assert f"first run `evenhand grade {folder} --scope all --grader ...`" in complaint
    run.ok("grade", folder, "--grader", "baseline:lexical", "--scope", "all")
    said = " ".join(run.ok(*by_uncertainty).split())
    assert "The first 8 and their labels are unchanged." in said
    assert "those on which graders differ or are unsure" in said
