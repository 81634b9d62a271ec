"""Studies from the published set, and tables in and out, by the verbs that people type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from evenhand.cli.main import main
from evenhand.study import Study, open_study
from evenhand.study.desk.answers import Flag
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.prompts.sampling import largest_remainder
from evenhand.study.tables.formats import read_table
from harness.studies import write_pairs

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.slow
def test_the_published_set_becomes_a_study_in_proportion(
    shared_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    tmp_path: Path, capsys: pytest.CaptureFixture[str], marked: int, display: str
) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv", 3)
    rows = [
        {"subject": "s", "pair_id": f"p{n // 2 + 1:04d}", "side": "ab"[n % 2]}
        | {"response": "It is **so**." if n < marked else "It is so."}
        for n in range(6)
    ]
    responses = tmp_path / "responses.jsonl"
    responses.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    files = ["--pairs", str(pairs), "--responses", str(responses), "--sample", "3"]
    assert main(["new", str(tmp_path / "study"), *files]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{round(100 * marked / 6)}% look like Markdown" in said
    assert ("with their Markdown rendered" in said) == (display == "markdown")
    with open_study(tmp_path / "study") as study:
        assert study.config.annotation.display == display


@pytest.mark.slow
def test_responses_may_come_later_and_extend_keeps_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, study = ROOT / "data" / "demo_pairs.csv", str(tmp_path / "study")
    assert main(["new", study, "--pairs", str(source), "--sample", "30", "--seed", "3"]) == 0
    assert capsys.readouterr().out.count("Next:") == 1
    before = exported_pairs(study, tmp_path)
    pairs = read_table(source)
    assert len(pairs) == 306
    with (tmp_path / "responses.jsonl").open("w") as file:
        for side in ("prompt_a", "prompt_b"):
            for prompt in pairs[side]:
                row = {"subject": "s1", "prompt": prompt, "response": f"On it: {prompt}"}
                file.write(json.dumps(row) + "\n")
    assert main(["import", study, str(tmp_path / "responses.jsonl")]) == 0
    assert "Added 612 responses (subjects: 1;" in capsys.readouterr().out
    assert main(["extend", study, "--pairs", "20"]) == 0
    after = exported_pairs(study, tmp_path)
    assert (len(before), len(after)) == (30, 50)
    assert after[:30] == before
    assert main(["extend", study, "--pairs", "2000"]) == 2
    assert "so 256 are left" in capsys.readouterr().err


def exported_pairs(study: str, folder: Path) -> list[str]:
    assert main(["export", study, "--units", str(folder / "units.csv")]) == 0
    return read_table(folder / "units.csv")["cluster_id"].drop_duplicates().tolist()


def test_a_bad_import_leaves_the_study_as_it_was(
    make_study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
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
    assert main(["import", str(study.folder), str(tmp_path / "bad.csv")]) == 2
    assert "bad.csv, row 3: label 'nine' is none of 1, 2, 3, 4, 5" in capsys.readouterr().err
    assert study.ratings().empty


@pytest.mark.slow
def test_a_wide_file_is_imported_as_advised_and_other_names_are_understood(
    make_study, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study()
    units = study.rubric_units(study.rubrics["refusal"])[:3]
    wide, named = tmp_path / "wide.csv", tmp_path / "named.csv"
    wide.write_text(
        "item_id,rubric,ann,gpt\n" + "".join(f"{unit},refusal,5,5\n" for unit in units[:2])
        + f"{units[2]},refusal,,5\n"
    )  # fmt: skip
    named.write_text(f"item,rubric,who,kind,score\n{units[2]},refusal,ann,human,2\n")
    advised = ["--human", "ann", "--model", "gpt"]
    assert main(["import", str(study.folder), str(wide)]) == 2
    error = capsys.readouterr().err
    assert " ".join(advised) in error
    assert len(error.splitlines()) == 1
    assert main(["import", str(study.folder), str(wide), *advised]) == 0
    assert main(["import", str(study.folder), str(named)]) == 0
    given = study.ratings().set_index(["rater_id", "unit_id"])["label"]
    assert given["ann"].to_dict() == dict(zip(units, "552", strict=True))
    assert given["gpt"].to_dict() == dict.fromkeys(units, "5")
    huge = tmp_path / "huge.csv"
    huge.write_text(named.read_text().replace(",2\n", f",{'2' * 100_000}\n"))
    capsys.readouterr()
    advised = ["--columns", "unit=item,rater=who,kind=kind,label=score"]
    assert main(["import", str(study.folder), str(huge), *advised]) == 2
    assert "huge.csv, row 2: label '2222222" in (error := capsys.readouterr().err)
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
def test_an_edited_rubric_is_noticed_in_the_report(
    make_study, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study()
    grade = ["grade", str(study.folder), "--grader", "baseline:lexical"]
    assert main(grade) == 0
    old = study.rubrics["refusal"].hash
    file = study.folder / "rubrics" / "refusal.toml"
    file.write_text(file.read_text().replace("Literal compliance", "Full compliance"))
    capsys.readouterr()
    assert main(["report", str(study.folder)]) == 0
    said = capsys.readouterr().out
    assert old in said
    assert old in (study.folder / "report" / "report.html").read_text()
    assert main(grade) == 0
    results = read_table(study.folder / "report" / "results.csv")
    assert "refusal" not in set(results["rubric"])
    assert main(["report", str(study.folder)]) == 0
    results = read_table(study.folder / "report" / "results.csv")
    assert "refusal" in set(results["rubric"])


def test_remarks_are_exported(make_study, tmp_path) -> None:
    study = make_study()
    desk = AnnotationDesk(study)
    task = desk.next_task("r1")
    flag = Flag(submit_id="f", task_id=task.task_id, reason="other", text="odd")
    desk.submit_all("r1", [flag])
    out = tmp_path / "remarks.csv"
    assert main(["export", str(study.folder), "--remarks", str(out)]) == 0
    (row,) = read_table(out).to_dict("records")
    assert (row["kind"], row["rater_id"], row["reason"], row["text"]) == (
        "flag", "r1", "other", "odd"
    )  # fmt: skip


@pytest.mark.slow
def test_propositions_become_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert main([*made, "--sample", "10", "--stratify", "region"]) == 0
    said = capsys.readouterr().out
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
    assert main(["import", study, str(answers)]) == 0
    assert main(["grade", study, "--grader", "baseline:lexical", "--scope", "all"]) == 0
    assert main(["report", study]) == 0
    results = read_table(Path(study, "report", "results.csv"))
    stability = results[results["statistic"].eq("stability_fleiss_kappa")].set_index("subset")
    # One wording is always answered for, the other always against: as unstable as can be
    assert float(stability.loc["all|binary", "estimate"]) == -1
    assert main(["extend", study, "--pairs", "2"]) == 0
    assert "The sample grew from 10 to 12 prompts" in capsys.readouterr().out


@pytest.mark.slow
def test_extend_picks_where_graders_differ_once_all_pairs_are_graded(
    make_study: Callable[..., Study], capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(pairs=24, sample=8)
    folder = str(study.folder)
    by_uncertainty = ["extend", folder, "--pairs", "6", "--by", "uncertainty"]
    assert main(["grade", folder, "--grader", "baseline:lexical"]) == 0
    capsys.readouterr()
    assert main(by_uncertainty) == 2
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert f"first run `evenhand grade {folder} --scope all --grader ...`" in complaint
    assert main(["grade", folder, "--grader", "baseline:lexical", "--scope", "all"]) == 0
    assert main(by_uncertainty) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "The first 8 and their labels are unchanged." in said
    assert "those on which graders differ or are unsure" in said


def test_a_slip_in_the_number_of_raters_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Version 0.2.0 asked for an array of 21.8 TiB."""
    pairs = write_pairs(tmp_path / "pairs.csv")
    new = ["new", str(tmp_path / "study"), "--pairs", str(pairs), "--raters", "100000"]
    assert main(new) == 2
    assert capsys.readouterr().err.count("--raters must be 1 to 1,000, not 100,000") == 1
    assert not (tmp_path / "study").exists()
    assert main(["plan", "--raters", "100000"]) == 2
