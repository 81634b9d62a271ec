"""Each small file gets the answer that its careful reader would give."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.evenhand.cli.commands import Done, Run, proposals
from tests.evenhand.cli.small_files import CASES, Case
from tests.evenhand.cli.small_verdicts import VERDICTS

FEW = ("--resamples", "20")


@pytest.fixture
def answer(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """answer(case, options): what evenhand says of the file, typed in its folder."""
    monkeypatch.chdir(tmp_path)

    def answer(case: Case, options: str = "") -> Done:
        content = case.content if isinstance(case.content, bytes) else case.content.encode()
        Path(case.file).write_bytes(content)
        return run(*shlex.split(f"{case.command} {options}"), *FEW)

    return answer


@pytest.mark.parametrize("case", [*CASES, *VERDICTS], ids=lambda case: case.name)
def test_a_small_file_gets_its_answer(answer, case: Case) -> None:
    done = answer(case)
    said = done.stdout + done.stderr
    assert done.returncode == case.code, said
    for words in (*case.says, case.mend):
        assert words in said
    if case.code == 2:
        assert "kappa" not in done.stdout  # no figures before the fault
        assert len(done.stderr.splitlines()) == 1
        assert len(done.stderr) < 500
        assert "['" not in done.stderr  # no lists of Python


@pytest.mark.parametrize("case", [case for case in CASES if case.mend], ids=lambda case: case.name)
def test_what_is_advised_helps(answer, case: Case) -> None:
    done = answer(case, case.mend)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("case", [case for case in CASES if case.code == 2], ids=lambda c: c.name)
def test_every_option_that_is_proposed_leads_on(answer, case: Case) -> None:
    """It is read, or another fault is named: nobody is sent round in a circle."""
    first = answer(case)
    for each in proposals(first.stderr):
        again = answer(case, each)
        assert again.returncode == 0 or again.stderr != first.stderr, each
        assert "Traceback" not in again.stderr
        assert "unrecognized" not in again.stderr


def test_every_case_has_a_name_of_its_own() -> None:
    cases = [*CASES, *VERDICTS]
    assert len({case.name for case in cases}) == len(cases)
    assert len(cases) >= 40
