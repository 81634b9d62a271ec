"""How each benchmark is started, on sizes that show nothing but that it runs."""

import shlex
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

STARTS = {
    "agreement": "--resamples 20 --scale 0.0005 --repeats 1",
    "annotation": "--sessions 2 --seconds 1 --pause 0.2 --units 2 --pairs 6 --lines 20",
    "annotators": "--annotators 2 --pauses 0.2 --processes 2 --seconds 1 --pairs 2 --raters 3"
    " --stores SQLite",
    "bias": "--runs 3 --resamples 40 --processes 1",
    "calibration": "--runs 1 --resamples 20 --processes 1",
    "corrected_rates": "--runs 3 --resamples 40 --processes 1",
    "coverage": "--runs 2 --resamples 40 --processes 1",
    "deciding_bound": "--runs 1 --processes 1",
    "decisions": "--runs 1 --resamples 20 --processes 1",
    "designs": "--runs 1 --processes 1",
    "differences": "--runs 2 --resamples 40 --processes 1",
    "drift": "--runs 2 --processes 1",
    "few_units": "--runs 1 --resamples 20 --processes 1",
    "first_minute": "--rounds 1 --tools bare evenhand",
    "formats": "",
    "grading": "--grades 100",
    "handling": "--answers 2",
    "improving": "--runs 2 --processes 1",
    "injection": "--runs 2 --processes 1",
    "instant": "--rounds 1 --scale 0.001",
    "parts": "--runs 2 --resamples 40 --processes 1",
    "peers": f"--units 60 --python {shlex.quote(sys.executable)}",
    "preference": "--runs 2 --resamples 40 --processes 1",
    "rates": "--runs 5 --processes 1",
    "rewording": "--runs 2 --resamples 40 --processes 1",
    "report": "--scale 0.04 --studies 1",
    "routing": "--runs 1 --processes 1",
    "slices": "--runs 1 --processes 1",
    "scales": "--runs 1 --processes 1",
    "small_samples": "--runs 2 --resamples 40 --processes 1",
    "uncertainty": "--runs 2 --processes 1",
}


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[str], str]:
    """page_of("drift"): the page that the benchmark writes when it is started so."""

    def page_of(name: str) -> str:
        out = tmp_path / f"{name}.md"
        import_module(f"benchmarks.{name}").main([*shlex.split(STARTS[name]), "--out", str(out)])
        page = out.read_text("utf-8")
        assert str(tmp_path) not in page
        return page

    return page_of
