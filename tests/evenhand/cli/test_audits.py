"""`audit injection` on the terminal, and what becomes of it, with the offline grader; and models
that answer for a grader: named by `grade` and the report, and `gate` can refuse many. And
`rubric check --grader`: a grader held against the golden answers of a rubric.
"""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.cli.main import OVER_BUDGET
from evenhand.reporting.analysing import analyse_file, analyse_study
from evenhand.rubrics.loading import draft_rubric
from evenhand.study import Study
from evenhand.study.store.logs.replies import attacked_table
from evenhand.study.tables.ratings import ATTACKS
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, labelled, message
from harness.studies import marked_study, with_labels
from tests.commands import Run

pytestmark = pytest.mark.journey

GRADER = "baseline:lexical"


@pytest.fixture
def study(make_study) -> Study:
    return make_study(pairs=4, subjects=("s",))


@pytest.mark.slow
def test_an_audit_says_what_attacks_do_and_analysis_and_exported_files_have_it(
    study, run, tmp_path
):
    folder, out, units = study.folder, tmp_path / "ratings.csv", ("--units", "3")
    only = ["--grader", GRADER, "--rubric", "hedging"]
    audit = ["audit", "injection", folder, *only, *units]
    assert f" {3 * (2 + 2 + 2 * len(ATTACKS))} " in run.ok(*audit, "--dry-run")
    run.ok("grade", folder, *only)
    run.ok("export", folder, "--out", out)
    assert not (tmp_path / "ratings.attacked.csv").exists()
    assert attacked_table(study.store, study.accepted_hashes()).empty
    said = run.ok(*audit)
    assert f"whether {GRADER} is robust to these prompt injections; audit more items." in said
    assert " 0 " in run.ok(*audit)  # nothing is left to ask
    assert "of the injection audit to" in run.ok("export", folder, "--out", out)
    of_study, _ = analyse_study(study, verify=False)
    of_file, _ = analyse_file(out)
    kept = of_study.results["statistic"].str.startswith("injection_")
    assert kept.sum() > 3 * len(ATTACKS)
    assert of_file.results[kept].equals(of_study.results[kept])
    (tmp_path / "ratings.attacked.csv").unlink()
    assert "names the injection audit ratings.attacked.csv" in run("check", out).stderr


@pytest.mark.slow
def test_a_gate_holds_every_attack_against_its_rule(study: Study, run: Run, tmp_path: Path) -> None:
    folder, out = study.folder, tmp_path / "r.csv"
    only = ["--grader", GRADER, "--rubric", "hedging"]
    run.ok("grade", folder, *only)
    said = run.refused("gate", folder, *only, "--require", "injection_bounds.high < 0.1")
    assert f"Run `evenhand audit injection DIR --grader {GRADER}` first." in said
    run.ok("audit", "injection", folder, *only, "--units", "3")
    run.ok("export", folder, "--out", out)
    analysis, _ = analyse_study(study, verify=False)
    worst = analysis.results.set_index("statistic").loc["injection_bounds", "high"].max()
    for source, (bound, code) in itertools.product((folder, out), ((0.001, 0), (-0.001, 1))):
        held = f"injection_bounds.high < {worst + bound:.6f}"
        done = run("gate", source, *only, "--require", held)
        assert (done.returncode, done.stderr) == (code, "")
        assert f"(the worst of {len(ATTACKS)} attacks), high: {worst:.6g}" in done.stdout
    one = run.ok("gate", folder, *only, "--require", "injection_bounds@flattery.high < 2")
    assert "met      injection_bounds at flattery, high" in one
    said = run.refused("gate", folder, *only, "--require", "injection_shift.high < 0.1")
    assert "Use injection_bounds, injection_knocked_off_bounds," in said


@pytest.mark.slow
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
    run.ok("report", study.folder)
    report = (study.folder / "report" / "report.md").read_text("utf-8")
    for said, warned in ((graded.stdout, graded.stderr), (report, report)):
        assert named in said
        assert ("More than one model answered" in warned) == bool(code)
    assert "the replies came from" in report  # the methods paragraph
    done = run("gate", study.folder, "--grader", server.openai, "--require", "models_answered <= 1")
    assert done.returncode == code, done.stdout + done.stderr


CLAUDE = "anthropic:claude-opus-5"


@pytest.fixture
def provider(server: ProtocolServer, monkeypatch, tmp_path: Path) -> ProtocolServer:
    """The provider on loopback; temporary folders are made in an empty one of the test's own."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
    return server


def test_what_a_grader_gets_wrong_is_listed(run, provider, tmp_path):
    # It finds everything faithful, and cannot be read on one answer.
    provider.script = lambda call: message("Hmm.") if "cook" in call.user else labelled("yes")
    said = run.ok("rubric", "check", "faithfulness", "--grader", CLAUDE)
    assert "83.3%" in said  # of the answers could be read
    *_, right, second, third, fifth = said.splitlines()
    assert right.endswith("got 3 of 6 golden answers of faithfulness right.")
    assert second.startswith("  Golden answer 2 is no, and the grader gave yes: Every night, from")
    assert third.startswith("  Golden answer 3 is no, and the grader gave no label: Hanna Lind")
    assert fifth.startswith("  Golden answer 5 is no, and the grader gave yes: The plant stands")
    assert not [*(tmp_path / "temporary").iterdir()]


def test_a_rubric_of_ones_own_with_texts_of_its_own(run, provider, tmp_path):
    text = draft_rubric("mine").replace('column = "response"', 'column = "summary"')
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("texts.response", "texts.summary"))
    provider.script = lambda call: labelled(
        "no" if "Addition" in call.user else "partly" if "times" in call.user else "yes"
    )
    *_, last = run.ok("rubric", "check", file, "--grader", CLAUDE).splitlines()
    assert last.endswith("got 3 of 3 golden answers of mine right.")
    assert all("<summary>" in call.user for call in provider.calls)


def test_what_it_would_cost_is_told_first_and_bounded(run: Run, provider: ProtocolServer) -> None:
    asking = ("rubric", "check", "tone", "--grader", CLAUDE)
    assert "The first prompt of" in run.ok(*asking, "--dry-run")
    assert not provider.calls
    done = run(*asking, "--budget", "0.000001")
    assert done.returncode == OVER_BUDGET
    assert "golden answers" not in done.stdout
    assert "the budget of" in done.stderr


def test_a_comparison_is_put_in_both_orders(run: Run, provider: ProtocolServer) -> None:
    shown = []

    def says_first(call: Call) -> Reply:
        """A grader that likes whatever it reads first."""
        shown.append(call.user)
        return labelled("A")

    provider.script = says_first
    right, first, *_ = run.ok("rubric", "check", "preference", "--grader", CLAUDE).splitlines()[-7:]
    assert right.endswith("got 0 of 6 golden answers of preference right.")
    assert first.startswith("  Golden answer 1 is A, and the grader gave A / B: Translate into")
    leap = [each for each in shown if "leap year?" in each]
    assert sorted("<response_a>\n366\n" in each for each in leap) == [False, True]
    assert all(each.count("leap year? Answer") == 1 for each in leap)
