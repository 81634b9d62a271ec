"""What of Windows can be stood for here: no fcntl, pwd or resource, no owners and modes of files.

Every process of a test begins by losing them. The platform keeps its name, as libraries would look
for Windows under another; and nothing here has run on Windows itself.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from harness.ports import free_port
from harness.served import answers, holds
from tests.commands import python

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


def test_check_gate_and_python_run(place: Path) -> None:
    lost = python("-c", "import os\nassert not hasattr(os, 'geteuid')\nimport fcntl", cwd=place)
    assert "ModuleNotFoundError" in lost.stderr, "the stub is not in force"
    said = run(place, "-m", "evenhand", "check", "labels.csv", *SCALE, "--out", "report")
    assert "Annotators · g" in said
    assert (place / "report" / "report.html").is_file()
    rule = ["--grader", "g", "--require", "coverage >= 0.9"]
    run(place, "-m", "evenhand", "gate", "labels.csv", *SCALE, *rule)
    assert run(place, "-c", IN_PYTHON).startswith("python-report")


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
