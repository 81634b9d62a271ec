"""The GitHub Action and the pre-commit hook, run by hand: every step as it stands in the file."""

import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from harness.action import ActionRun, Runner
from tests.commands import python

ROOT = Path(__file__).parents[2]
RULE = "coverage >= 0.5"
GH = """#!{python}
import json, os, pathlib, sys
log = pathlib.Path(os.environ["GH_LOG"])
words = sys.argv[1:]
body = next((w[6:] for w in words if w.startswith("body=@")), "")
call = {{"words": words, "token": os.environ["GH_TOKEN"]}}
call["body"] = pathlib.Path(body).read_text() if body else ""
log.write_text((log.read_text() if log.exists() else "") + json.dumps(call) + "\\n")
if "--paginate" in words:
    print(os.environ.get("GH_COMMENTS", ""), end="")
sys.exit(int(os.environ.get("GH_CODE", "0")))
"""
"""Stands for the program `gh`: keeps what it was called with, and answers with known comments."""


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels of two annotators and a grader `g` that answers every second unit wrongly."""
    rows = ["unit_id,rater_id,rater_kind,label"]
    for n in range(40):
        people = "yes" if n % 3 else "no"
        rows += [f"u{n},ann,human,{people}", f"u{n},ben,human,{people}"]
        rows += [f"u{n},g,model,{'yes' if n % 2 else 'no'}"]
    file = tmp_path_factory.mktemp("labels") / "my ratings.csv"
    file.write_text("\n".join(rows))
    return file


@pytest.fixture
def runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """A job at a pull request, with evenhand installed and `gh` in the path."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (
        ("gh", GH.format(python=sys.executable)),
        ("evenhand", f'#!/bin/sh\nexec "{sys.executable}" -P -m evenhand "$@"\n'),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("GH_LOG", str(tmp_path / "calls"))
    github = {"event_name": "pull_request", "event.pull_request.number": "7"}
    github |= {"repository": "o/r", "token": "t0ken"}
    return Runner(ROOT / "action.yml", tmp_path / "job", github, str(programs))


def gated(runner: Runner, source: Path, require: str = RULE, **inputs: str) -> ActionRun:
    usual = {"program": "evenhand", "report": "false", "grader": "g"}
    return runner.run(source=str(source), require=require, **(usual | inputs))


def ends_with(runner: Runner, code: int) -> str:
    """A program that decides with this code: what Actions make of it, without the analysis."""
    program = runner.folder.parent / "bin" / f"ends-{code}"
    program.write_text(
        '#!/bin/sh\nfor word; do case "$word" in --summary=*) to="${word#*=}";; esac; done\n'
        f'echo "### evenhand gate: code {code}" > "$to"\nexit {code}\n'
    )
    program.chmod(0o755)
    return str(program)


def calls(runner: Runner) -> list[dict]:
    file = runner.folder.parent / "calls"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.thorough
def test_a_grader_that_passes_with_its_report_and_its_first_comment(runner, ratings):
    done = gated(runner, ratings, report="true", options="--affirmative=yes\n\n--seed=3\n")
    assert (done.code, done.outputs["outcome"]) == (0, "met"), done.log
    assert done.steps == ["Gate", "Report", "Comment", "Outcome"]
    assert done.summary.startswith("### evenhand gate: met\n")
    assert "coverage, estimate: 1, required >= 0.5" in done.summary
    report = Path(done.outputs["report"])
    assert {"report.html", "report.json", "results.csv"} <= {f.name for f in report.iterdir()}
    assert Path(done.outputs["junit"]).read_bytes().startswith(b"<?xml")
    look, write = calls(runner)
    assert look["words"][:3] == ["api", "--paginate", "repos/o/r/issues/7/comments"]
    assert 'startswith("<!-- evenhand gate: gate -->")' in look["words"][-1]
    where = "repos/o/r/issues/7/comments"
    assert write["words"][:5] == ["api", "--silent", "--method", "POST", where]
    assert write["body"] == f"<!-- evenhand gate: gate -->\n{done.summary}"
    assert write["token"] == "t0ken"


@pytest.mark.slow
def test_the_report_reads_the_file_as_the_gate_does(runner, tmp_path):
    """On an ordinal scale: without the gate's options there was no report, or another."""
    rows = [f"u{n},{1 + n % 4},{1 + n % 4},{1 + (n + (n % 9 == 0)) % 4}" for n in range(40)]
    file = tmp_path / "labels.csv"
    file.write_text("\n".join(["unit_id,ann,ben,g", *rows]))
    scale = ["--human=ann,ben", "--model=g", "--level=ordinal", "--categories=1,2,3,4"]
    options = "\n".join([*scale, "", "--affirmative=3,4", "--resamples=100", "--json"])
    done = gated(runner, file, report="true", options=options, comment="false")
    assert done.outputs["outcome"] == "met", done.log
    results = (Path(done.outputs["report"]) / "results.csv").read_text()
    assert "krippendorff_alpha_ordinal" in results
    assert "Declare one with" not in (runner.folder / "evenhand-report.log").read_text()


def test_the_comment_that_is_there_is_written_anew(runner, ratings, monkeypatch):
    monkeypatch.setenv("GH_COMMENTS", "412\n999\n")
    done = gated(runner, ratings, name='x"; rm $(y)', program=ends_with(runner, 1))
    assert (done.code, done.outputs["outcome"]) == (1, "not_met")
    look, write = calls(runner)
    marker = "<!-- evenhand gate: x---rm---y- -->"
    assert f'startswith("{marker}")' in look["words"][-1]
    assert write["words"][2:5] == ["--method", "PATCH", "repos/o/r/issues/comments/412"]
    assert write["body"].startswith(marker + "\n### evenhand gate: code 1")
    done = gated(runner, ratings, program="false")  # which dies with 1: it has not decided
    assert (done.code, done.outputs["outcome"]) == (2, "error")


@pytest.mark.slow
def test_what_we_cannot_tell_fails_unless_the_job_says_so(runner, ratings):
    lone = ratings.with_name("lone.csv")
    header, *rows = ratings.read_text().splitlines()
    lone.write_text("\n".join([header, *rows[3:6]]))  # one unit
    done = gated(runner, lone, "cohen_kappa > 0.5", comment="false")
    assert (done.code, done.outputs["outcome"]) == (3, "inconclusive"), done.log
    assert done.steps == ["Gate", "Outcome"]
    done = gated(runner, lone, inconclusive="pass", program=ends_with(runner, 3))
    assert (done.code, done.outputs["outcome"]) == (0, "inconclusive")


@pytest.mark.slow
def test_wrong_use_is_no_verdict_with_a_pull_request_without_one_or_leave_to_comment(
    runner, ratings, monkeypatch
):
    done = gated(runner, ratings, "kappa is fine", report="true")
    assert (done.code, done.outputs["outcome"], done.outputs["report"]) == (2, "error", "")
    assert "is not a valid condition" in done.log
    assert "it could not run" in done.summary
    assert done.steps == ["Gate", "Comment", "Outcome"]
    monkeypatch.setenv("GH_CODE", "1")
    done = gated(runner, ratings, "no rule")
    assert done.steps == ["Gate", "Comment", "Outcome"]
    assert (done.code, done.outputs["outcome"]) == (2, "error")
    assert "::warning::the comment was not written" in done.log
    runner.github = {**runner.github, "event_name": "push"}
    assert gated(runner, ratings, "no rule").steps == ["Gate", "Outcome"]
    # Inputs reach the shell as they are: what a pull request can name must not be run.
    content = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    for step in content["runs"]["steps"]:
        assert "${{" not in step["run"], step["name"]
        assert "uses" not in step, "an action that is not pinned"
    done = gated(runner, ratings, grader="$(touch owned) `touch owned`")
    assert done.code == 2
    assert "there is no grader '$(touch owned) `touch owned`' here" in done.log
    assert not list(runner.folder.parent.rglob("owned"))


@pytest.mark.slow
def test_the_install_step_takes_what_the_lock_pins_and_then_itself(runner, ratings):
    """With a `python3` that only says what it was asked: the real one needs a network."""
    python = runner.folder.parent / "bin" / "python3"
    python.write_text(
        '#!/bin/sh\nif [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
        'echo "asked: $*"\n'
    )
    python.chmod(0o755)
    done = gated(runner, ratings, "no rule", program="")
    said = re.findall("asked: (.*)", done.log)
    assert said[0] == f"-m venv {runner.folder}/evenhand"
    assert said[1].endswith(f"--require-hashes -r {ROOT}/requirements.lock")
    assert said[2].endswith(f"--no-deps --no-build-isolation {ROOT}")
    assert (runner.folder / "path").read_text() == f"{runner.folder}/evenhand/bin\n"


@pytest.mark.slow
def test_the_hook_names_faults_of_every_file(tmp_path):
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["id"] == "evenhand-rubric"
    assert re.search(hook["files"], "rubrics/hedging.toml")
    assert re.search(hook["files"], "my/rubrics/x.toml")
    assert not re.search(hook["files"], "study.toml")
    (tmp_path / "one.toml").write_text('name = "One"\n')
    (tmp_path / "two.toml").write_text("name = \n")
    program, *words = hook["entry"].split()
    assert program == "evenhand"
    files = [str(ROOT / "rubrics" / "hedging.toml"), "one.toml", "two.toml"]
    done = python("-m", "evenhand", *words, *files, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout.startswith("hedging")
    assert "one.toml: " in done.stderr
    assert "two.toml: " in done.stderr
