"""The benchmark that needs a browser, in a process of its own."""

from pathlib import Path

import pytest

from tests.benchmarks.conftest import STARTS
from tests.commands import python

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.thorough
@pytest.mark.browser
@pytest.mark.usefixtures("browser")  # or there is none, and this is skipped
def test_the_annotation_benchmark_writes_its_page(tmp_path: Path) -> None:
    out = tmp_path / "annotation.md"
    few = STARTS["annotation"].split()
    done = python("-m", "benchmarks.annotation", *few, "--out", out, cwd=ROOT, timeout=None)
    assert done.returncode == 0, done.stderr
    page = out.read_text("utf-8")
    assert "150 tasks and 100 raters per unit" in page
    for setting in ("as shipped", "Streamlit defaults"):
        assert f"| {setting} | 1 | 2 |" in page
        assert f"| {setting} | 2 |" in page
    assert "| as shipped, 20 ms each way | 1 | 2 |" in page
    assert page.count("| 0 | 0 |\n") == 5  # no errors, nothing lost
