"""Every benchmark has a start in the tests, and needs nothing of them."""

from pathlib import Path

import pytest

from tests.benchmarks.conftest import STARTS
from tests.commands import python

ROOT = Path(__file__).resolve().parents[2]
HELPERS = {"commands", "cost", "documents", "simulated"}
BY_PARTS = {"limits", "scale"}
"""Never small enough to be started whole."""


@pytest.mark.slow
def test_every_benchmark_starts_as_a_module_and_needs_nothing_of_the_tests() -> None:
    names = {file.stem for file in (ROOT / "benchmarks").glob("*.py")} - HELPERS
    assert names == STARTS.keys() | BY_PARTS
    starts = (
        "import runpy, sys\n"
        "sys.modules['tests'] = None\n"  # who imports it fails
        "for name in sys.argv[1:]:\n"
        "    sys.argv = [name, '--help']\n"
        "    try: runpy.run_module('benchmarks.' + name, run_name='__main__')\n"
        "    except SystemExit as end: assert end.code == 0\n"
    )
    done = python("-c", starts, *sorted(names), cwd=ROOT, timeout=None)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("usage: ") == len(names)
