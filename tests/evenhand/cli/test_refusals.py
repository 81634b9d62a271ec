"""What cannot be done is one sentence and exit 2, and leaves nothing behind."""

import shlex
import tomllib
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.evenhand.cli.test_calibration import study as tuned_study
from tests.evenhand.cli.test_decisions import ratings as yes_and_no
from tests.evenhand.cli.test_exports import folder as graded
from tests.evenhand.cli.test_gate import folder as with_a_baseline

REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text("utf-8"))
CASES = [(place, *each) for place, cases in REFUSALS.items() for each in cases.items()]
__all__ = ["graded", "tuned_study", "with_a_baseline", "yes_and_no"]


@pytest.fixture
def root() -> Path:
    return ROOT


@pytest.fixture
def exports() -> Path:
    return ROOT / "tests" / "exchange" / "files"


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def new_study(make_study) -> Path:
    return make_study().folder


@pytest.fixture
def with_probabilities(tuned_study) -> Path:
    return tuned_study.folder


@pytest.mark.parametrize(("place", "command", "says"), CASES)
def test_a_command_is_refused_in_one_sentence(run, request, monkeypatch, place, command, says):
    here: Path = request.getfixturevalue(place)
    here = here if here.is_dir() else here.parent
    monkeypatch.chdir(here)
    before = sorted(here.glob("[!.]*"))
    said = run.refused(*shlex.split(command))
    assert says in " ".join(said.split())
    assert "Traceback" not in said
    assert sorted(here.glob("[!.]*")) == before
