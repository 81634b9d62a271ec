"""docs/evidence.md says what the logs in benchmarks/results say."""

import re
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.documents import RESULTS
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "evidence.md"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)*[%x]?")


@dataclass(frozen=True)
class Row:
    """A claim of the page, and the log that it rests on."""

    claim: str
    figures: str
    missed: str
    date: str
    command: str
    log: Path

    def unfounded(self) -> set[str]:
        """The row's date and numbers that do not stand in its log."""
        told = NUMBER.findall(f"{self.claim} {self.figures} {self.missed}")
        log = self.log.read_text("utf-8")
        wanted = {number.rstrip(",") for number in told} - _commanded(self.claim)
        there = {number.rstrip(",") for number in NUMBER.findall(log)}
        return wanted - there | {date for date in [self.date] if date not in log}


def _commanded(claim: str) -> set[str]:
    return {number for code in re.findall(r"`[^`]*`", claim) for number in NUMBER.findall(code)}


def rows(text: str) -> list[Row]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    found = []
    for *told, made_by in (row for row in cells if row[0] not in ("claim", "---")):
        assert len(told) == 4, told
        link = re.fullmatch(r"\[`(.+)`\]\((.+)\)", made_by)
        assert link, made_by
        found.append(Row(*told, command=link[1], log=(PAGE.parent / link[2]).resolve()))
    return found


ROWS = rows(PAGE.read_text("utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.claim[:40])
def test_every_figure_stands_in_the_log_that_its_row_leads_to(row: Row) -> None:
    words = " ".join(row.log.read_text("utf-8").split())
    assert NUMBER.search(row.figures) or row.figures in words
    assert not row.unfounded()


def test_every_log_has_its_claim() -> None:
    assert {row.log for row in ROWS} == set(RESULTS.glob("*.md"))


def test_a_log_that_changed_is_told() -> None:
    made_by = "[`x`](../benchmarks/results/deciding-bound.md)"
    (row,) = rows(f"| a | 88 of 91, at worst 0.9471 | none | 2031-01-01 | {made_by} |")
    assert row.unfounded() == {"0.9471", "2031-01-01"}


def test_every_command_is_one() -> None:
    for row in ROWS:
        python, _, module, *options = shlex.split(row.command)
        assert python == "python"
        assert find_spec(module), module
        if module == "pytest":
            assert (ROOT / options[0]).is_file()
        else:
            assert row.command.partition(" --")[0] in row.log.read_text("utf-8")


def column(log: str, header: str) -> list[float]:
    """The numbers under a header, in the first table of the log that has it."""
    values: list[float] = []
    at = None
    for line in (RESULTS / log).read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if at is None and header in cells:
            at = cells.index(header)
        elif at is not None and not line.startswith("|"):
            break
        elif at is not None and (number := re.match(r"[-+]?\d[\d.]*", cells[at])):
            values.append(float(number[0]))
    return values


@pytest.mark.parametrize(
    ("log", "header", "most", "figure"),
    [
        ("decisions.md", "false passes", max, "0.030"),
        ("designs.md", "false passes", max, "0.067"),
        ("designs.md", "false passes, together", max, "0.0179"),
        ("scales.md", "gross, low end", max, "0.083"),
        ("scales.md", "false unchanged", max, "0.067"),
        ("deciding-bound.md", "false passes", max, "0.047"),
        ("drift.md", "false unchanged, at the margin", max, "0.040"),
        ("drift.md", "false changed, at the margin", max, "0.040"),
        ("calibration.md", "interval holds 0.1", min, "0.974"),
        ("routing.md", "broken", max, "0.051"),
        ("coverage.md", "unit", min, "0.887"),
        ("coverage-small.md", "coverage", min, "0.686"),
        ("coverage-corrected.md", "coverage", min, "0.932"),
        ("coverage-differences.md", "differences", min, "0.938"),
        ("coverage-differences.md", "differences", max, "0.999"),
        ("coverage-parts.md", "coverage", min, "0.945"),
        ("coverage-parts.md", "coverage", max, "1.000"),
        ("coverage-preference.md", "coverage", min, "0.942"),
        ("coverage-preference.md", "coverage", max, "0.977"),
        ("slices.md", "slices", max, "0.060"),
        ("slices.md", "groups", max, "0.060"),
        ("rates.md", "TNR, majority", min, "93.6%"),
    ],
)
def test_what_is_said_to_be_the_worst_is_the_worst(log, header, most, figure):
    assert most(column(log, header)) == float(figure.rstrip("%"))
    assert any(figure in row.figures + row.missed for row in ROWS if row.log.name == log)
