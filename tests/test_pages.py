"""Pages say what the code and the logs say: the rooms and arrows of docs/architecture.md, the
figures of docs/evidence.md, llms.txt and SKILL.md, whose commands do what it says.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.documents import RESULTS
from docs.site_map import LIST, for_checkout
from docs.skill import PAGE as SKILL_PAGE
from docs.skill import renewed
from tests.conftest import ROOT

ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text("utf-8")


def test_the_pictures_are_those_of_the_imports() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "draw_architecture.py"))["renewed"](ARCHITECTURE)
    assert drawn == ARCHITECTURE, "run: python docs/draw_architecture.py"


def test_every_room_is_described_and_no_other() -> None:
    drawing = re.compile(r"flowchart TD\n(.*?)```", re.DOTALL)
    _, *parts = re.split(r"^## ", ARCHITECTURE, flags=re.MULTILINE)
    assert len(parts) == 4
    for part in parts:
        rooms = {*re.findall(r"\w+", drawing.findall(part)[0])}
        assert len(rooms) > 5
        assert sorted(re.findall(r"\*\*`(\w+)`\*\*", part)) == sorted(rooms)


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
        commanded = " ".join(re.findall(r"`[^`]*`", self.claim))
        log = self.log.read_text("utf-8")
        wanted, known, there = (
            {number.rstrip(",") for number in each}
            for each in (told, NUMBER.findall(commanded), NUMBER.findall(log))
        )
        return wanted - known - there | {date for date in [self.date] if date not in log}


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


def test_every_figure_stands_in_the_log_that_its_row_leads_to() -> None:
    for row in ROWS:
        log = row.log.read_text("utf-8")
        assert NUMBER.search(row.figures) or row.figures in " ".join(log.split()), row.claim
        assert not row.unfounded(), row.claim
        python, _, module, *options = shlex.split(row.command)
        assert python == "python"
        assert find_spec(module), module
        if module == "pytest":
            assert (ROOT / options[0]).is_file()
        else:
            assert row.command.partition(" --")[0] in log
    assert {row.log for row in ROWS} == set(RESULTS.glob("*.md"))


def test_a_log_that_changed_is_told() -> None:
    made_by = "[`x`](../benchmarks/results/deciding-bound.md)"
    (row,) = rows(f"| a | 88 of 91, at worst 0.9471 | none | 2031-01-01 | {made_by} |")
    assert row.unfounded() == {"0.9471", "2031-01-01"}


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
    """Of the numbers under a header, in the first table of the log that has it."""
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
    assert most(values) == float(figure.rstrip("%"))
    assert any(figure in row.figures + row.missed for row in ROWS if row.log.name == log)


SKILL = SKILL_PAGE.read_text("utf-8")


def test_llms_txt_lists_the_pages_and_the_skill_the_tables_as_they_are() -> None:
    text = LIST.read_text("utf-8")
    assert text == for_checkout(), "run: python -m docs.site_map"
    listed = re.findall(r"^- \[.+?\]\((.+?)\): \S", text, re.MULTILINE)
    assert len(listed) == len(set(listed)) > 20
    assert [file for file in listed if not (ROOT / file).exists()] == []
    assert renewed(SKILL) == SKILL, "run: python -m docs.skill"
    name, description = re.match(r"---\nname: (.+)\ndescription: (.+)\n---\n", SKILL).groups()
    assert name == "evenhand"
    assert 80 < len(description) < 1024
    assert len(SKILL.split()) < 1500


@pytest.mark.slow
def test_who_does_what_the_skill_says_sees_what_it_says(tmp_path: Path) -> None:
    here = Path(sys.executable).parent
    environment = os.environ | {"PATH": f"{here}{os.pathsep}{os.environ['PATH']}"}
    said, compared = "", 0
    block = re.compile(r"^```(sh|output)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    for kind, text in block.findall(SKILL):
        if kind == "sh":
            bash = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
            done = subprocess.run(["bash", "-c", text], check=False, **bash)
            assert not done.stderr, done.stderr
            assert done.returncode == 0
            said = " ".join(done.stdout.split())
        else:
            at = 0
            for line in text.splitlines():
                at = said.find(" ".join(line.split()), at)
                assert at >= 0, f"{line!r} does not stand (in this order) in:\n{said}"
                compared += 1
    assert compared > 10
    assert (tmp_path / "my-report" / "report.html").is_file()
