"""What of Windows can be stood for here: no fcntl, pwd or resource, no owners and modes of files.

Every process of a test begins by losing them. The platform keeps its name, as libraries would look
for Windows under another; and nothing here has run on Windows itself.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.ports import free_port
from harness.served import answers, holds
from tests.commands import Done, python

pytestmark = pytest.mark.slow

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
def place(tmp_path: Path) -> Path:
    """A folder with labels, and with what Python loads at the start of each process."""
    (tmp_path / "start").mkdir()
    (tmp_path / "start" / "sitecustomize.py").write_text(WITHOUT)
    (tmp_path / "labels.csv").write_text(LABELS)
    return tmp_path


def environment(place: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(place / "start")}


def run(place: Path, *words: str) -> Done:
    return python(*words, cwd=place, env=environment(place))


def test_check_gate_and_python_run(place: Path) -> None:
    lost = run(place, "-c", "import os\nassert not hasattr(os, 'geteuid')\nimport fcntl")
    assert "ModuleNotFoundError" in lost.stderr, "the stub is not in force"
    done = run(place, "-m", "evenhand", "check", "labels.csv", *SCALE, "--out", "report")
    assert done.returncode == 0, done.stderr
    assert "Annotators · g" in done.stdout
    assert (place / "report" / "report.html").is_file()
    rule = ["--grader", "g", "--require", "coverage >= 0.9"]
    done = run(place, "-m", "evenhand", "gate", "labels.csv", *SCALE, *rule)
    assert done.returncode == 0, done.stderr
    done = run(place, "-c", IN_PYTHON)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("python-report")


def test_label_makes_a_study_and_serves_it(place: Path) -> None:
    port = str(free_port())
    words = ["label", "labels.csv", "--question", "Good?", "--options", "y,n", "--show", "ann"]
    words += ["--no-browser", "--port", port]
    command = [sys.executable, "-m", "evenhand", *words]
    app = subprocess.Popen(command, cwd=place, env=environment(place))
    try:
        address = f"http://127.0.0.1:{port}/health"
        assert holds(lambda: app.poll() is not None or answers(address), 120)
        assert app.poll() is None, "it has ended"
    finally:
        app.terminate()
        app.wait(timeout=20)
    study = str(place / "labels-study")
    asked = run(place, "-m", "evenhand", "grade", study, "--grader", "baseline:lexical")
    assert asked.returncode == 2
    assert "models are asked on Linux and macOS; on Windows" in asked.stderr
    assert "Traceback" not in asked.stderr
    assert run(place, "-m", "evenhand", "progress", study).returncode == 0
