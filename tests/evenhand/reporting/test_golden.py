"""What commands print on synthetic ratings, word for word as before.

A change that is meant to alter it is written down by `python -m tests.evenhand.reporting.
test_golden` and reviewed in the diff of `golden/`.
"""

import contextlib
import io
import shlex
import tempfile
from pathlib import Path

import pytest

from evenhand.cli.main import main
from harness.frozen import CASES, normalised

pytestmark = pytest.mark.journey
GOLDEN = Path(__file__).with_name("golden")
COMMANDS = {
    "gate": None,
    "readme": None,
    "rich": {"variants", "reference", "select-looks", "plan-reference", "save", "compare"},
}
"""Commands by case of `harness.frozen`; None for all of them."""


def transcript(name: str, folder: Path) -> str:
    """Run a case's commands in a folder; return what each prints, and its exit code."""
    (case,) = (case for case in CASES if case.name == name)
    case.make(folder)
    (folder / "out").mkdir()
    chosen, parts = COMMANDS[name], []
    with contextlib.chdir(folder):
        for step, words in case.steps():
            if chosen is None or step in chosen:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                    code = main(words)
                parts.append(f"$ {shlex.join(words)}\n{printed.getvalue()}exit {code}\n")
    return normalised("\n".join(parts), str(folder), ["no day"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_word_is_as_before(name: str, tmp_path: Path) -> None:
    assert transcript(name, tmp_path) == (GOLDEN / f"{name}.txt").read_text("utf-8")


if __name__ == "__main__":
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            (GOLDEN / f"{name}.txt").write_text(transcript(name, Path(folder)), "utf-8")
