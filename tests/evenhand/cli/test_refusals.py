"""What cannot be done is one sentence and exit 2, and leaves nothing behind."""

import shlex
import tomllib
from pathlib import Path

import pytest

from tests.commands import Run
from tests.conftest import ROOT
from tests.evenhand.cli.test_decisions import folder as with_a_baseline
from tests.evenhand.cli.test_decisions import ratings as yes_and_no
from tests.evenhand.cli.test_decisions import study as tuned_study
from tests.evenhand.cli.test_small_files import PLACE
from tests.evenhand.cli.test_studies import folder as graded

pytestmark = pytest.mark.journey

REFUSALS = tomllib.loads(Path(__file__).with_name("refusals.toml").read_text("utf-8"))
__all__ = ["graded", "tuned_study", "with_a_baseline", "yes_and_no"]


@pytest.fixture
def place(request: pytest.FixtureRequest) -> Path:
    name, fixtures = request.param, {"with_probabilities": "tuned_study", "empty": "tmp_path"}
    if name in ("root", "exports"):
        return {"root": ROOT, "exports": ROOT / "tests" / "exchange" / "files"}[name]
    if name == "new_study":
        return request.getfixturevalue("make_study")().folder
    if name == "small_files":
        folder = request.getfixturevalue("tmp_path")
        for file, text in PLACE.items():
            (folder / f"{file}.csv").write_text(text, "utf-8")
        return folder
    found = request.getfixturevalue(fixtures.get(name, name))
    found = getattr(found, "folder", found)
    return found if found.is_dir() else found.parent


@pytest.mark.parametrize(
    ("place", "cases"), REFUSALS.items(), indirect=["place"], ids=list(REFUSALS)
)
def test_a_command_is_refused_in_one_sentence(run: Run, place, cases, monkeypatch) -> None:
    monkeypatch.chdir(place)
    before, faults = sorted(place.glob("[!.]*")), {}
    for command, says in cases.items():
        done = run(*shlex.split(command))
        said = " ".join(done.stderr.split())
        is_one = done.returncode == 2 and done.stderr.strip().count("\n") == 0
        if not is_one or says not in said or "Traceback" in said:
            faults[command] = (says, done)
        assert sorted(place.glob("[!.]*")) == before, command
    assert faults == {}
