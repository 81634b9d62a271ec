"""The command line, run in this process, and what a command has said."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import main

Done = subprocess.CompletedProcess[str]


class Run:
    """run(verb, argument, ...): as in a terminal, but without another Python to start."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Done:
        words = [str(each) for each in arguments]
        self._capsys.readouterr()
        return Done(words, main(words), *self._capsys.readouterr())

    def ok(self, *arguments: str | Path) -> str:
        """What a command prints that comes to a good end."""
        done = self(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refused(self, *arguments: str | Path) -> str:
        """The one sentence in which a command is refused."""
        done = self(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        return done.stderr


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Run(capsys)


def python(*words: str | Path, **how: Any) -> Done:
    """Another Python and what it says; `how` is as `subprocess.run` takes it."""
    command = [sys.executable, "-P", *map(str, words)]
    return subprocess.run(
        command, **{"capture_output": True, "text": True, "check": False, "timeout": 300} | how
    )


def write_program(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o755)
    return file


def proposals(refusal: str) -> list[str]:
    """The options that a refusal proposes, each as it would be pasted."""
    word = r"(?:'[^']*'(?:\"'\"'[^']*')*|[^\s';,()]+(?:,[^\s';,()]+)*)"
    flag = "--(?:no-normalise|normalise|several|independent)(?![a-z-])"
    found = re.findall(rf"(?:(?:{flag}|--[a-z][a-z-]+[ =]{word}) ?)+", refusal)
    return [each for each in found if not re.search(r"[A-Z]{3}|\.\.\.", each)]
