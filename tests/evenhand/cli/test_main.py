"""The command line: one sentence for what is wrong, exit 2, no traceback; light to start; what it
makes of words, and how shells complete them.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from evenhand import __version__
from evenhand.cli.main import GROUPS, Parser, Verb, add_analysis_options, exit_code, settings_of
from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from tests.commands import Run, python

ROOT = Path(__file__).parents[3]
VERBS = [verb for group in GROUPS.values() for verb in group]
GUIDES = ("start", "labels", "label-a-file", "own-rubric", "people", "graders", "ci", "serving")
"""The pages that show how to do a thing."""


def test_every_verb_has_help_is_run_by_a_function_and_stands_in_the_docs(run: Run) -> None:
    guides = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in GUIDES)]
    docs = "".join(guide.read_text("utf-8") for guide in guides)
    for verb in VERBS:
        said = help_of(run, verb.name).partition("\n\n")[2]
        assert said.splitlines()[0].endswith("."), verb  # a sentence on what the verb does
        assert f"evenhand {verb.name} " in docs or f"make {verb.name}" in docs, verb
        for each in verb.actions or [verb]:
            module, _, function = each.table["run"].partition(".")
            assert callable(getattr(import_module(f"evenhand.cli.{module}"), function)), each
    for action in Verb("rubric").actions:
        assert action.name in help_of(run, "rubric")
        assert f"usage: evenhand rubric {action.name} " in help_of(run, "rubric", action.name)


def test_help_shows_each_verb_once_under_a_group(run: Run) -> None:
    overview = help_of(run)
    assert max(map(len, overview.splitlines())) <= 80
    for group, verbs in GROUPS.items():
        listed = overview.partition(f"\n{group}\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == [verb.name for verb in verbs]
    names = [verb.name for verb in VERBS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("verb", "takes", "does_not_take"),
    [
        ("plan", ["--half-width", "--agreement", "--units", "--cluster"], ["--epsilon", "--sides"]),
        ("select", ["--slice", "--margin"], ["--epsilon", "--group"]),
        ("gate", ["--require", "--slice", "--margin"], ["--rater-slice"]),
        ("check", ["--slice", "--margin", "--epsilon", "--sides"], ["--grader"]),
    ],
)
def test_a_verb_shows_the_options_that_it_reads(run, verb, takes, does_not_take):
    shown = set(re.findall(r"--[\w-]+", help_of(run, verb)))
    assert shown.issuperset(takes)
    assert shown.isdisjoint(does_not_take)


def help_of(run: Run, *words: str) -> str:
    return run.ok(*words, "--help")


def test_only_paths_may_have_bytes_that_are_not_utf8(run: Run) -> None:
    assert "is not UTF-8 text" in run.refused("pause", "x", "--reason", "f\udcfcr")
    assert "is not UTF-8 text" in run.refused("check", "x", "--human", "a,\udcfc")
    assert "there is no file" in run.refused("check", "\udcfc.csv")


def test_the_working_folder_cannot_get_in_the_way(tmp_path: Path) -> None:
    for name in ("study", "analysis", "argparse"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('not the program')")
    done = python("-m", "evenhand", "--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"evenhand {__version__}\n")


def test_help_loads_nothing_heavy() -> None:
    script = (
        "import sys; from evenhand.cli.main import main; main(['--help'])\n"
        "heavy = {'pandas', 'numpy', 'sqlalchemy', 'streamlit', 'anthropic', 'openai', 'pydantic',"
        " 'rich', 'scipy', 'sklearn', 'statsmodels', 'jinja2'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    assert python("-c", script, cwd=ROOT, check=True).stderr.strip() == "[]"


@pytest.mark.parametrize(("error", "code", "says"), [
    (InputError("row 3 is empty; fill it"), 2, "evenhand gate: row 3 is empty; fill it\n"),
    (PermissionError(13, "Permission denied", "r.csv"), 2, "evenhand gate: r.csv: permission "),
    (ModuleNotFoundError("No module named 'sqlalchemy.orm'", name="sqlalchemy.orm"), 2,
     "evenhand gate: sqlalchemy is not installed here; write `pip install 'evenhand[study]"),
    (KeyboardInterrupt(), 130, "stopped; what was collected is kept\n"),
    (KeyError("kappa"), 2, "Traceback"),
    (ImportError("no pandas"), 2, "Traceback"),
    (MemoryError(), 2, "Traceback"),
    (ModuleNotFoundError("No module named", name="evenhand.analysis.kappa"), 2, "Traceback"),
])  # fmt: skip
def test_an_error_becomes_one_sentence_and_a_crash_does_not_read_as_not_met(
    error: BaseException, code: int, says: str, capsys
) -> None:
    def run() -> None:
        raise error

    assert exit_code("evenhand gate", run) == code
    said = capsys.readouterr().err
    assert said.startswith(says)
    if says == "Traceback":
        assert said.endswith("gate: this is a fault in evenhand; please report the lines above\n")
    else:
        assert len(said.splitlines()) == 1


def test_a_broken_installation_does_not_read_as_not_met() -> None:
    broken = (
        "import runpy, sys; sys.modules['argparse'] = None;"
        "runpy.run_module('evenhand', run_name='__main__')"
    )
    done = python("-c", broken, "gate")
    assert done.returncode == 2
    assert "import of argparse halted" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "code"), [("coverage > 0.5", 0), ("coverage > 1", 1)])
def test_whoever_stops_listening_does_not_change_the_code(tmp_path, rule, code):
    rows = [f"u{n},{who}" for n in range(4) for who in ("a,human,x", "b,human,x", "g,model,x")]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["unit_id,rater_id,rater_kind,label", *rows]))
    command = [sys.executable, "-P", "-m", "evenhand", "gate", str(file), "--grader", "g"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--require", rule], **pipes) as gate:
        assert gate.stdout and gate.stderr
        gate.stdout.close()
        assert (gate.stderr.read(), gate.wait()) == (b"", code)


OWN = {
    "margin": (["--margin", ".05"], 0.05),
    "resamples": (["--resamples", "300"], 300),
    "cluster": (["--cluster", "unit"], "unit"),
    "epsilon": (["--epsilon", "0.1"], 0.1),
    "slices": (["--slice", "topic", "--slice", "side"], ("topic", "side")),
    "missing": (["--missing", "99,skip"], ("99", "skip")),
    "reference": (["--reference", "ann"], "ann"),
    "seed": (["--seed", "7"], 7),
    "leanings": (
        ["--set", "leanings.l=x,y", "--set", "leanings.r=z"],
        {"l": ("x", "y"), "r": ("z",)},
    ),
    "families": (["--set", "families.acme=our-tune"], {"acme": ("our-tune",)}),
    "margin_share": (["--set", "margin_share=0.2"], 0.2),
    "drift_margin": (["--set", "drift_margin=0.05"], 0.05),
    "scope": (["--set", "scope=like_these"], "like_these"),
    "across_rubrics": (["--set", "across_rubrics=holm"], "holm"),
    "overlap": (["--set", "overlap=random"], "random"),
    "ordered": (["--set", "ordered=quadratic"], "quadratic"),
}
"""Settings with an option of their own, or with entries or words for values."""


def test_what_study_toml_accepts_is_an_option() -> None:
    fields = AnalysisSettings.model_fields | DecisionSettings.model_fields
    for setting in [*fields, "seed"]:
        usual = fields[setting].get_default(call_default_factory=True) if setting in fields else 0
        if isinstance(usual, float):
            value = round(0.9 * usual, 3)
        elif isinstance(usual, int):
            value = not usual if usual is True else usual + 1
        else:
            value = "x" if isinstance(usual, str) else ("x",)
        given = "x" if value == ("x",) else str(value).lower()
        words, value = OWN.get(setting, (["--set", f"{setting}={given}"], value))
        parser = Parser()
        add_analysis_options(parser)
        assert settings_of(parser.parse_args(words)) == {setting: value}, setting


# What Tab does in each shell, without a terminal: LINE is what was typed so far.
TAB = {
    "bash": """
        eval "$(evenhand --completion bash)"
        COMP_LINE="$LINE" COMP_POINT=${#LINE} COMP_TYPE=9
        $(complete -p evenhand | sed "s/.*-F \\([^ ]*\\).*/\\1/") evenhand
        printf '%s\\n' "${COMPREPLY[@]}"
    """,
    "zsh": """
        autoload -Uz compinit && compinit -u -D
        eval "$(evenhand --completion zsh)"
        _describe() { print -l -- ${(P)2} }
        BUFFER=$LINE CURSOR=$#LINE words=(${=LINE})
        $_comps[evenhand]
    """,
    "fish": "evenhand --completion fish | source; complete -C $LINE",
}
QUIET = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shell", "line", "offered"),
    [
        ("bash", "evenhand re", {"report", "reproduce", "respond", "restore"}),
        ("bash", "evenhand rubric suggest --ru", {"--rubric"}),
        ("bash", "evenhand plan --statistic a", {"alpha"}),
        ("bash", "evenhand report my-", {"my-study/"}),
        ("zsh", "evenhand gate labels.csv --req", {"--require"}),
        ("fish", "evenhand gate labels.csv --req", {"--require"}),
    ],
)
def test_tab_completes(shell: str, line: str, offered: set[str], tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "my-study").mkdir()
    (tmp_path / "evenhand").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m evenhand "$@"\n')
    (tmp_path / "evenhand").chmod(0o755)
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LINE": line}
    words = [program, *QUIET[shell], "-c", TAB[shell]]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    # fish and zsh add what an option is about.
    said = {text.partition("\t")[0].partition(":")[0].strip() for text in done.stdout.splitlines()}
    assert said == offered, done.stderr
