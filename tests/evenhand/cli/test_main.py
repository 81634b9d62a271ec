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
from evenhand.cli.main import GROUPS
from evenhand.cli.verbs import Parser, Verb, add_analysis_options, exit_code, given_settings
from evenhand.errors import InputError
from evenhand.study.settings.analysis import AnalysisSettings, DecisionSettings
from tests.commands import Run, python

ROOT = Path(__file__).parents[3]
VERBS = [verb for group in GROUPS.values() for verb in group]
GUIDES = ("start", "labels", "label-a-file", "own-rubric", "people", "graders", "ci", "serving")
"""The pages that show how to do a thing."""


def test_every_verb_has_help_and_stands_in_the_docs(run: Run) -> None:
    guides = [ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in GUIDES)]
    docs = "".join(guide.read_text("utf-8") for guide in guides)
    for verb in VERBS:
        said = help_of(run, verb.name).partition("\n\n")[2]
        assert said.splitlines()[0].endswith("."), verb  # a sentence on what the verb does
        assert f"evenhand {verb.name} " in docs or f"make {verb.name}" in docs, verb


def test_help_shows_each_verb_once_under_a_group(run: Run) -> None:
    overview = help_of(run)
    assert max(map(len, overview.splitlines())) <= 80
    for group, verbs in GROUPS.items():
        listed = overview.partition(f"\n{group}\n")[2].partition("\n\n")[0].splitlines()
        assert [line.split()[0] for line in listed] == [verb.name for verb in verbs]
    names = [verb.name for verb in VERBS]
    assert len(set(names)) == len(names)


def test_every_verb_is_run_by_a_function() -> None:
    for verb in (own for each in VERBS for own in each.actions or [each]):
        module, _, function = verb.table["run"].partition(".")
        assert callable(getattr(import_module(f"evenhand.cli.{module}"), function)), verb


def test_the_actions_of_a_verb_have_help_too(run: Run) -> None:
    for action in Verb("rubric").actions:
        assert action.name in help_of(run, "rubric")
        assert f"usage: evenhand rubric {action.name} " in help_of(run, "rubric", action.name)


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


@pytest.mark.slow
def test_what_the_system_refuses_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file, no folder")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("unit_id,rater_id,rater_kind,label\nu1,r1,human,1\n")
    done = python("-m", "evenhand", "check", ratings, "--out", tmp_path / "out", cwd=ROOT)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def raising(error: BaseException) -> int:
    def run() -> None:
        raise error

    return exit_code("evenhand gate", run)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (InputError("row 3 is empty; fill it"), 2, "evenhand gate: row 3 is empty; fill it\n"),
        (PermissionError(13, "Permission denied", "r.csv"), 2, "evenhand gate: r.csv: permission "),
        (ModuleNotFoundError("No module named 'sqlalchemy.orm'", name="sqlalchemy.orm"), 2,
         "evenhand gate: sqlalchemy is not installed here; write `pip install 'evenhand[study]"),
        (KeyboardInterrupt(), 130, "stopped; what was collected is kept\n"),
    ],
)  # fmt: skip
def test_an_error_becomes_one_sentence(error: BaseException, code: int, says: str, capsys) -> None:
    assert raising(error) == code
    said = capsys.readouterr().err
    assert said.startswith(says)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [KeyError("kappa"), ImportError("no pandas"), MemoryError(),
     ModuleNotFoundError("No module named", name="evenhand.analysis.kappa")],
)  # fmt: skip
def test_a_crash_does_not_read_as_not_met(error: Exception, capsys) -> None:
    assert raising(error) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith("gate: this is a fault in evenhand; please report the lines above\n")


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


GIVEN = {
    "margin": (["--margin", ".05"], 0.05),
    "resamples": (["--resamples", "300"], 300),
    "cluster": (["--cluster", "unit"], "unit"),
    "epsilon": (["--epsilon", "0.1"], 0.1),
    "slices": (["--slice", "topic", "--slice", "side"], ("topic", "side")),
    "variants": (["--set", "variants=wording"], ("wording",)),
    "groups": (["--set", "groups=region"], ("region",)),
    "rater_slices": (["--set", "rater_slices=leaning"], ("leaning",)),
    "confidence_cut": (["--set", "confidence_cut=0.8"], 0.8),
    "confidence_target": (["--set", "confidence_target=1"], 1.0),
    "ordered": (["--set", "ordered=quadratic"], "quadratic"),
    "clip_scores": (["--set", "clip_scores=false"], False),
    "overlap": (["--set", "overlap=random"], "random"),
    "sensitivity_cluster": (["--set", "sensitivity_cluster=topic"], "topic"),
    "leanings": (
        ["--set", "leanings.l=x,y", "--set", "leanings.r=z"],
        {"l": ("x", "y"), "r": ("z",)},
    ),
    "missing": (["--missing", "99,skip"], ("99", "skip")),
    "families": (["--set", "families.acme=our-tune"], {"acme": ("our-tune",)}),
    "min_coverage": (["--set", "min_coverage=0.5"], 0.5),
    "min_clusters": (["--set", "min_clusters=50"], 50),
    "bias_bound": (["--set", "bias_bound=0.2"], 0.2),
    "max_injection": (["--set", "max_injection=0.3"], 0.3),
    "max_knocked_off": (["--set", "max_knocked_off=0.3"], 0.3),
    "max_silenced": (["--set", "max_silenced=0.3"], 0.3),
    "max_gross": (["--set", "max_gross=0.05"], 0.05),
    "min_stability": (["--set", "min_stability=-1"], -1.0),
    "min_information": (["--set", "min_information=0.3"], 0.3),
    "scope": (["--set", "scope=like_these"], "like_these"),
    "looks": (["--set", "looks=3"], 3),
    "across_rubrics": (["--set", "across_rubrics=holm"], "holm"),
    "margin_share": (["--set", "margin_share=0.2"], 0.2),
    "drift_margin": (["--set", "drift_margin=0.05"], 0.05),
    "min_people_kappa": (["--set", "min_people_kappa=0.1"], 0.1),
    "min_rarer": (["--set", "min_rarer=5"], 5),
    "reference": (["--reference", "ann"], "ann"),
    "reference_kappa": (["--set", "reference_kappa=0.7"], 0.7),
    "reference_sensitivity": (["--set", "reference_sensitivity=0.9"], 0.9),
    "reference_specificity": (["--set", "reference_specificity=0.9"], 0.9),
    "seed": (["--seed", "7"], 7),
}


def read(words: list[str]) -> dict[str, object]:
    parser = Parser()
    add_analysis_options(parser)
    return given_settings(parser.parse_args(words))


@pytest.mark.parametrize(
    "setting", [*AnalysisSettings.model_fields, *DecisionSettings.model_fields, "seed"]
)
def test_what_study_toml_accepts_is_an_option(setting: str) -> None:
    words, value = GIVEN[setting]
    assert read(words) == {setting: value}


def test_a_verb_may_do_without() -> None:
    parser = Parser()
    add_analysis_options(parser, without=("--sides", "epsilon", "looks"))
    assert "--sides" not in parser.format_help()
    assert "--epsilon" not in parser.format_help()
    assert given_settings(parser.parse_args(["--margin", "0.3"])) == {"margin": 0.3}
    with pytest.raises(InputError, match="--set looks changes nothing here"):
        given_settings(parser.parse_args(["--set", "looks=2"]))


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
    done = subprocess.run(
        [program, *QUIET[shell], "-c", TAB[shell]],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LINE": line},
        capture_output=True,
        text=True,
        check=True,
    )
    # fish and zsh add what an option is about.
    said = {text.partition("\t")[0].partition(":")[0].strip() for text in done.stdout.splitlines()}
    assert said == offered, done.stderr
