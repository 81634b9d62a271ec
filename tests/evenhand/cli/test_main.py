"""The command line: one sentence for what is wrong, exit 2, no traceback; light to start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli.main import build_parser, main

ROOT = Path(__file__).parents[3]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "evenhand", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["new", "x"], "paired prompts (--pairs FILE) or of propositions (--propositions FILE)"),
        (["new", "x", "--pairs", "none.csv"], "there is no file none.csv"),
        (["new", "x", "--pairs", "README.md"], "the extension must be"),
        (["extend", "data", "--pairs", "5"], "data is not a study"),
        (["report", "nowhere"], "nowhere is not a study"),
        (["annotate", "nowhere"], "nowhere is not a study"),
        (["grade", "nowhere", "--grader", "baseline:lexical"], "nowhere is not a study"),
        (["check", "nowhere.csv"], "there is no file nowhere.csv"),
        (["check", "data/demo_pairs.csv"], "the column 'unit_id' is missing"),
        (["check", "data"], "there is no file data"),
        (["rubric", "show", "politeness"], "there is no rubric 'politeness'"),
        (["export", "nowhere", "--out", "r.csv"], "nowhere is not a study"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_2(arguments: list[str], says: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_every_verb_has_help_and_stands_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    (verbs,) = (
        action.choices
        for action in build_parser()._actions
        if hasattr(action, "choices") and action.dest == "verb"
    )
    readme = (ROOT / "README.md").read_text("utf-8")
    for verb in verbs:
        capsys.readouterr()
        assert main([verb, "--help"]) == 0
        said = capsys.readouterr().out.partition("\n\n")[2]
        assert said.splitlines()[0].endswith("."), verb  # a sentence on what the verb does
        assert f"evenhand {verb} " in readme or f"make {verb}" in readme, verb


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from evenhand.cli.main import main; main(['--help'])\n"
        "heavy = {'pandas', 'numpy', 'sqlalchemy', 'streamlit', 'anthropic', 'openai', 'pydantic',"
        " 'rich', 'scipy', 'sklearn', 'statsmodels', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr.strip() == "[]"


def test_what_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, no folder")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("unit_id,rater_id,rater_kind,label\nu1,r1,human,1\n")
    done = run("check", str(ratings), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
