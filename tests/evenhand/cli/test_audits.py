"""`audit injection` on the terminal, and what becomes of it, with the offline grader; and models
that answer for a grader: named by `grade` and the report, and `gate` can refuse many.
"""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.reporting.analysing import analyse_file, analyse_study
from evenhand.study import Study
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.tables.ratings import ATTACKS
from harness.replies import answer
from harness.studies import marked_study, with_labels
from tests.commands import Run

pytestmark = pytest.mark.slow

GRADER = "baseline:lexical"


@pytest.fixture
def study(make_study) -> Study:
    return make_study(pairs=4, subjects=("s",))


def test_an_audit_says_what_each_attack_does_and_the_verdict(study: Study, run: Run) -> None:
    words = ["audit", "injection", str(study.folder), "--grader", GRADER, "--rubric", "hedging"]
    assert f" {3 * (2 + 2 + 2 * len(ATTACKS))} " in run.ok(*words, "--units", "3", "--dry-run")
    assert attacked_table(study.store, study.accepted_hashes()).empty
    said = run.ok(*words, "--units", "3")
    assert f"whether {GRADER} is robust to these prompt injections; audit more items." in said
    assert " 0 " in run(*words, "--units", "3").stdout  # nothing is left to ask


def test_the_analysis_and_the_exported_files_have_it(study, run, tmp_path):
    folder, out = str(study.folder), tmp_path / "ratings.csv"
    only = ["--grader", GRADER, "--rubric", "hedging"]
    run("grade", folder, *only)
    run("export", folder, "--out", str(out))
    assert not (tmp_path / "ratings.attacked.csv").exists()
    run("audit", "injection", folder, *only, "--units", "3")
    assert "of the injection audit to" in run("export", folder, "--out", str(out)).stdout
    of_study, _ = analyse_study(study, verify=False)
    of_file, _ = analyse_file(out)
    kept = of_study.results["statistic"].str.startswith("injection_")
    assert kept.sum() > 3 * len(ATTACKS)
    assert of_file.results[kept].equals(of_study.results[kept])
    (tmp_path / "ratings.attacked.csv").unlink()
    assert "names the injection audit ratings.attacked.csv" in run("check", str(out)).stderr


def test_a_gate_holds_every_attack_against_its_rule(study: Study, run: Run, tmp_path: Path) -> None:
    folder, only = str(study.folder), ["--grader", GRADER, "--rubric", "hedging"]
    run("grade", folder, *only)
    rule = "injection_bounds.high < 0.1"
    said = run.refused("gate", folder, *only, "--require", rule)
    assert f"Run `evenhand audit injection DIR --grader {GRADER}` first." in said
    run("audit", "injection", folder, *only, "--units", "3")
    out = tmp_path / "ratings.csv"
    run("export", folder, "--out", str(out))
    analysis, _ = analyse_study(study, verify=False)
    rows = analysis.results.set_index("statistic").loc["injection_bounds"]
    worst = rows["high"].max()
    for source in (folder, str(out)):
        for bound, code in ((worst + 0.001, 0), (worst - 0.001, 1)):
            held = f"injection_bounds.high < {bound:.6f}"
            done = run("gate", source, *only, "--require", held)
            assert (done.returncode, done.stderr) == (code, "")
            assert f"(the worst of {len(ATTACKS)} attacks), high: {worst:.6g}" in done.stdout
    one = run("gate", folder, *only, "--require", "injection_bounds@flattery.high < 2")
    assert "met      injection_bounds at flattery, high" in one.stdout
    said = run.refused("gate", folder, *only, "--require", "injection_shift.high < 0.1")
    assert "Use injection_bounds, injection_knocked_off_bounds," in said


RULE = ("--require", "models_answered <= 1")


@pytest.mark.parametrize(
    ("models", "named", "code"),
    [
        (["test-model", "test-model-2026-01-02"], "test-model-2026-01-02 (8)", 0),
        (["test-model", "small-model"], "small-model (4), test-model (4)", 1),
        (["test-model-2026-01-02", "test-model-2026-03-04"], "test-model-2026-03-04 (4)", 1),
    ],
)
def test_the_models_that_answered_are_named(run, server, tmp_path, models, named, code):
    turns = itertools.cycle(models)

    server.script = lambda call: replace(
        answer(call), body=answer(call).body | {"model": next(turns)}
    )
    study = marked_study(tmp_path / "study", pairs=4)
    with_labels(study, {who: ["1", "2"] * 4 for who in ("ann", "ben")}, "hedging")
    study.close()
    graded = run("grade", study.folder, "--grader", server.openai)
    assert named in graded.stdout
    assert ("More than one model answered" in graded.stderr) == bool(code)
    run("report", study.folder)
    report = (study.folder / "report" / "report.md").read_text("utf-8")
    assert named in report
    assert ("More than one model answered" in report) == bool(code)
    assert "the replies came from" in report  # the methods paragraph
    done = run("gate", study.folder, "--grader", server.openai, *RULE)
    assert done.returncode == code, done.stdout + done.stderr
