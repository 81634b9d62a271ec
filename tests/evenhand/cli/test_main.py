"""The command line: one sentence for what is wrong, exit 2, no traceback; light to start."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand import __version__
from evenhand.cli.main import GROUPS, main
from evenhand.cli.rubrics import ACTIONS
from tests.evenhand.cli.commands import Run

ROOT = Path(__file__).parents[3]
VERBS = [verb for group in GROUPS.values() for verb in group]
GUIDES = ("start", "labels", "label-a-file", "own-rubric", "people", "graders", "ci", "serving")
"""The pages that show how to do a thing."""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["frobnicate"], "invalid choice: 'frobnicate'"),
        (["new", "x"], "paired prompts (--pairs FILE), of propositions (--propositions FILE) or"),
        (["new", "x", "--pairs", "none.csv"], "there is no file none.csv"),
        (["new", "x", "--pairs", "README.md"], "the extension must be"),
        (["extend", "data", "--pairs", "5"], "data is not a study"),
        (["report", "nowhere"], "nowhere is not a study"),
        (["report", "nowhere", "--out", "README.md"], "README.md is a file; name a folder"),
        (["annotate", "nowhere"], "nowhere is not a study"),
        (["grade", "nowhere", "--grader", "baseline:lexical"], "nowhere is not a study"),
        (["check", "nowhere.csv"], "there is no file nowhere.csv"),
        (["check", "data/demo_pairs.csv"], "the column 'unit_id' is missing"),
        (["check", "docs"], "docs is a folder; name a file in it"),
        (["rubric", "show", "politeness"], "there is no rubric 'politeness'"),
        (["export", "nowhere", "--out", "r.csv"], "nowhere is not a study"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_exit_2(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(ROOT)
    done = run(*arguments)
    assert done.returncode == 2
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_every_verb_has_help_and_stands_in_the_docs(capsys: pytest.CaptureFixture[str]) -> None:
    guides = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in GUIDES)]
    docs = "".join(guide.read_text("utf-8") for guide in guides)
    for verb in VERBS:
        said = help_of(capsys, verb.name).partition("\n\n")[2]
        assert said.splitlines()[0].endswith("."), verb  # a sentence on what the verb does
        assert f"evenhand {verb.name} " in docs or f"make {verb.name}" in docs, verb


def test_help_shows_each_verb_once_under_a_group(capsys: pytest.CaptureFixture[str]) -> None:
    overview = help_of(capsys)
    assert max(map(len, overview.splitlines())) <= 80
    for group, verbs in GROUPS.items():
        listed = overview.partition(f"\n{group}\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == [verb.name for verb in verbs]
    names = [verb.name for verb in VERBS]
    assert len(set(names)) == len(names)


def test_the_actions_of_a_verb_have_help_too(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ACTIONS:
        assert action.name in help_of(capsys, "rubric")
        assert f"usage: evenhand rubric {action.name} " in help_of(capsys, "rubric", action.name)


@pytest.mark.parametrize(
    ("verb", "takes", "does_not_take"),
    [
        ("plan", ["--half-width", "--agreement", "--units", "--cluster"], ["--epsilon", "--sides"]),
        ("select", ["--slice", "--margin"], ["--epsilon", "--group"]),
        ("gate", ["--require", "--slice", "--margin"], ["--rater-slice"]),
        ("check", ["--slice", "--margin", "--epsilon", "--sides"], ["--grader"]),
    ],
)
def test_a_verb_shows_the_options_that_it_reads(
    capsys: pytest.CaptureFixture[str], verb: str, takes: list[str], does_not_take: list[str]
) -> None:
    shown = set(re.findall(r"--[\w-]+", help_of(capsys, verb, asked="--help-all")))
    assert shown.issuperset(takes)
    assert shown.isdisjoint(does_not_take)
    needed = set(re.findall(r"--[\w-]+", help_of(capsys, verb)))
    assert needed < shown
    assert {"--human", "--model", "--margin", "--help-all"} <= needed


def help_of(capsys: pytest.CaptureFixture[str], *words: str, asked: str = "--help") -> str:
    capsys.readouterr()
    assert main([*words, asked]) == 0
    return capsys.readouterr().out


def test_the_working_folder_cannot_get_in_the_way(tmp_path: Path) -> None:
    for name in ("study", "analysis", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the program')")
    command = [sys.executable, "-P", "-m", "evenhand", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"evenhand {__version__}\n")


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


@pytest.mark.slow
def test_what_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, no folder")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("unit_id,rater_id,rater_kind,label\nu1,r1,human,1\n")
    command = [sys.executable, "-P", "-m", "evenhand", "check", ratings, "--out", tmp_path / "out"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
