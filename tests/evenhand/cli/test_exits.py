"""How verbs end: in a sentence and a code, and in 1 only where `gate` says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli.verbs import exit_code
from evenhand.errors import InputError


def raising(error: BaseException) -> int:
    def run() -> None:
        raise error

    return exit_code("evenhand gate", run)


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (InputError("row 3 is empty; fill it"), 2, "evenhand gate: row 3 is empty; fill it\n"),
        (PermissionError(13, "Permission denied", "r.csv"), 2, "evenhand gate: r.csv: permission "),
        (
            ModuleNotFoundError("No module named 'sqlalchemy.orm'", name="sqlalchemy.orm"),
            2,
            "evenhand gate: sqlalchemy is not installed here; write `pip install 'evenhand[study]",
        ),
        (KeyboardInterrupt(), 130, "stopped; what was collected is kept\n"),
    ],
)
def test_an_error_becomes_one_sentence(
    error: BaseException, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == code
    said = capsys.readouterr().err
    assert said.startswith(says)
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [
        KeyError("kappa"),
        ImportError("no pandas"),
        ModuleNotFoundError("No module named", name="evenhand.analysis.kappa"),
        MemoryError(),
    ],
)
def test_a_crash_does_not_read_as_not_met(
    error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert raising(error) == 2
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert said.endswith(
        "evenhand gate: this is a fault in evenhand; please report the lines above\n"
    )


def test_a_broken_installation_does_not_read_as_not_met() -> None:
    broken = (
        "import runpy, sys; sys.modules['argparse'] = None;"
        "runpy.run_module('evenhand', run_name='__main__')"
    )
    command = [sys.executable, "-P", "-c", broken, "gate"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "import of argparse halted" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "code"), [("coverage > 0.5", 0), ("coverage > 1", 1)])
def test_whoever_stops_listening_does_not_change_the_code(
    tmp_path: Path, rule: str, code: int
) -> None:
    rows = [f"u{n},{who}" for n in range(4) for who in ("a,human,x", "b,human,x", "g,model,x")]
    file = tmp_path / "ratings.csv"
    file.write_text("\n".join(["unit_id,rater_id,rater_kind,label", *rows]))
    command = [sys.executable, "-P", "-m", "evenhand", "gate", str(file), "--grader", "g"]
    with subprocess.Popen(
        [*command, "--require", rule], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as gate:
        assert gate.stdout and gate.stderr
        gate.stdout.close()
        assert (gate.stderr.read(), gate.wait()) == (b"", code)
