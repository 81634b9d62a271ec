"""The fixture for other projects' tests, in a pytest run of its own. And what of Windows can be
stood for here: no fcntl, pwd or resource, no owners and modes of files. Every process of a test
begins by losing them. The platform keeps its name, and nothing here has run on Windows itself.
"""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from harness.ports import free_port
from harness.served import answers, holds
from tests.commands import python

ROOT = Path(__file__).parents[2]
TESTS = """
import sys

def test_without_it():
    assert not [name for name in sys.modules if name.startswith(("evenhand.", "pandas", "numpy"))
                and name != "evenhand.pytest_plugin"]

def test_met(evenhand_gate):
    found = evenhand_gate("ratings.csv", "g", require="coverage >= 1")
    assert found.outcome == "met"

def test_not_met(evenhand_gate):
    evenhand_gate("ratings.csv", "g", require="cohen_kappa > 0.9")

def test_doubt(evenhand_gate):
    evenhand_gate("lone.csv", "g", require="cohen_kappa > 0")

def test_doubt_that_is_let_pass(evenhand_gate):
    evenhand_gate("lone.csv", "g", require="cohen_kappa > 0", undecided="skip")

def test_wrong_use(evenhand_gate):
    evenhand_gate("ratings.csv", "nobody", require="coverage >= 1")

def test_wrong_word(evenhand_gate):
    evenhand_gate("ratings.csv", "g", requires="coverage >= 1")

WIDE = {"human": ["ann", "ben"], "model": "g", "affirmative": "yes", "resamples": 20}
RULE = "coverage >= 1, tpr > 0"

def test_a_table(evenhand_gate):
    import pandas as pd

    table = pd.read_csv("wide.csv")
    for ratings in (table, table.to_dict("list"), table.to_dict("records")):
        evenhand_gate(ratings, "g", require=RULE, **WIDE)

def test_a_file_of_another_tool(evenhand_gate):
    found = evenhand_gate("langfuse.json", "openai/gpt-5-mini", require="coverage >= 0.9")
    assert "Langfuse" in found.notes[0]

def test_units(evenhand_gate):
    evenhand_gate("ratings.csv", "g", require="coverage >= 1", units="units.csv", cluster="topic")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    table = pd.DataFrame(
        [
            (f"u{n}", who, "model" if who == "g" else "human", "yes" if n % each else "no")
            for n in range(40)
            for who, each in (("ann", 3), ("ben", 3), ("g", 2))
        ],
        columns=["unit_id", "rater_id", "rater_kind", "label"],
    )
    table.to_csv(tmp_path / "ratings.csv", index=False)
    table[3:6].to_csv(tmp_path / "lone.csv", index=False)  # one unit
    (tmp_path / "test_grader.py").write_text(TESTS)
    wide = table.pivot(index="unit_id", columns="rater_id", values="label").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    units = wide.assign(topic=["tax", "war"] * 20)[["unit_id", "topic"]]
    units.to_csv(tmp_path / "units.csv", index=False)
    shutil.copy(ROOT / "tests" / "exchange" / "files" / "langfuse.json", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_project_gates_its_grader_with_the_fixture(project: Path) -> None:
    words = ["-m", "pytest", "-p", "evenhand.pytest_plugin", "-rA", "-q"]
    words += ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:rerunfailures"]
    done = python(*words, cwd=project)
    assert "4 failed, 5 passed, 1 skipped" in done.stdout, done.stdout
    for name in ("without_it", "met"):
        assert f"PASSED test_grader.py::test_{name}" in done.stdout
    assert "not met  cohen_kappa, estimate" in done.stdout
    assert "inconclusive  cohen_kappa, estimate: undefined" in done.stdout
    assert "there is no grader 'nobody' here" in done.stdout
    assert "gate has no argument requires; did you mean require?" in done.stdout


@pytest.mark.journey
def test_pytest_finds_it_and_pays_nothing() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (entry,) = project["entry-points"]["pytest11"].items()
    assert entry == ("evenhand.pytest_plugin", "evenhand.pytest_plugin")
    loaded = (
        "import pytest, sys; before = set(sys.modules); import evenhand.pytest_plugin;"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))"
        ";print(*[name for name in sys.modules if name.startswith('evenhand.')])"
    )
    rooms, own = python("-c", loaded, cwd=ROOT, check=True).stdout.splitlines()
    assert own == "evenhand.pytest_plugin"
    assert not {"numpy", "pandas", "scipy", "pydantic", "streamlit"} & set(rooms.split())


WITHOUT = """
import os, signal, sys
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
for name in ("geteuid", "getuid", "getegid", "getgid", "fchmod", "fchown", "chown", "nice",
             "lchown", "fork", "forkpty", "pread", "pwrite", "getpgid", "killpg", "setsid"):
    if hasattr(os, name):
        delattr(os, name)
os.getlogin = lambda: "someone"
"""
LABELS = "unit_id,ann,ben,g\n" + "".join(
    f"u{n},{'yn'[n % 2]},{'yn'[(n + (n % 9 == 0)) % 2]},{'yn'[(n + (n % 7 == 0)) % 2]}\n"
    for n in range(60)
)
SCALE = ["--human", "ann,ben", "--model", "g", "--categories", "y,n", "--resamples", "50"]
IN_PYTHON = """
import evenhand as eh
found = eh.check(eh.read("labels.csv", human=["ann", "ben"], model="g"), resamples=50)
print(found.report("python-report"), found.verdicts[0]["verdict"])
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with labels; and what Python loads at the start of each process."""
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(WITHOUT)
    (tmp_path / "labels.csv").write_text(LABELS)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "start"))
    return tmp_path


def run(place: Path, *words: str) -> str:
    """What a process without them says that comes to a good end."""
    return python(*words, cwd=place, check=True).stdout


@pytest.mark.slow
def test_check_gate_and_python_run(place: Path) -> None:
    lost = python("-c", "import os\nassert not hasattr(os, 'geteuid')\nimport fcntl", cwd=place)
    assert "ModuleNotFoundError" in lost.stderr, "the stub is not in force"
    said = run(place, "-m", "evenhand", "check", "labels.csv", *SCALE, "--out", "report")
    assert "Annotators · g" in said
    assert (place / "report" / "report.html").is_file()
    rule = ["--grader", "g", "--require", "coverage >= 0.9"]
    run(place, "-m", "evenhand", "gate", "labels.csv", *SCALE, *rule)
    assert run(place, "-c", IN_PYTHON).startswith("python-report")


@pytest.mark.slow
def test_label_makes_a_study_and_serves_it(place: Path) -> None:
    port = str(free_port())
    words = ["label", "labels.csv", "--question", "Good?", "--options", "y,n", "--show", "ann"]
    command = [sys.executable, "-m", "evenhand", *words, "--no-browser", "--port", port]
    app = subprocess.Popen(command, cwd=place)
    try:
        address = f"http://127.0.0.1:{port}/health"
        assert holds(lambda: app.poll() is not None or answers(address), 120)
        assert app.poll() is None, "it has ended"
    finally:
        app.terminate()
        app.wait(timeout=20)
    grade = ["grade", place / "labels-study", "--grader", "baseline:lexical"]
    asked = python("-m", "evenhand", *grade, cwd=place)
    assert asked.returncode == 2
    assert "models are asked on Linux and macOS; on Windows" in asked.stderr
    assert "Traceback" not in asked.stderr
    run(place, "-m", "evenhand", "progress", "labels-study")
