"""The command line, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.cli.main import main
from tests.evenhand.cli.commands import Done, Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """run(verb, argument, ...): as in a terminal, but without another Python to start."""

    def run(*arguments: str | Path) -> Done:
        words = [str(each) for each in arguments]
        return Done(words, main(words), *capsys.readouterr())

    return run
