"""Terminal, report, JSON and cockpit say the same of one study (synthetic)."""

import io
import json
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pandas as pd
import pytest

from evenhand.analysis import RESULTS_KEY
from evenhand.analysis.report import write_report
from evenhand.analysis.report.source import shown
from evenhand.analysis.verdicts.ranking import deciding_keys
from evenhand.annotate_app.lead.overview_page import main_rows
from evenhand.annotate_app.lead.parts import LiveFigures
from evenhand.cli.main import main
from evenhand.reporting.analysing import analyse_study
from evenhand.reporting.library import Check
from evenhand.reporting.report import study_figures
from evenhand.study import open_study
from evenhand.study.settings.study_toml import change_config
from harness.judged_study import LATE, judged_study

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Told:
    """What each of them says: the texts of `select` and of `check`, the report's files, the
    cockpit's figures.
    """

    select: str
    check: str
    report: dict[str, Any]
    results: pd.DataFrame
    markdown: str
    page: str
    cockpit: LiveFigures

    def verdict(self, grader: str) -> dict[str, Any]:
        (found,) = [each for each in self.report["verdicts"] if each["grader"] == grader]
        return found

    def row(self, *key: str) -> pd.Series:
        return self.results.loc[key]

    def table(self, caption: str) -> dict[str, list[str]]:
        """Cells of a table of report.md by row heading."""
        text = self.markdown.replace("\\", "").split(caption)[1].split("\n\n")
        lines = next(part for part in text if "\n|" in part).strip().splitlines()[2:]
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
        return {heading: cells for heading, *cells in rows}


class Words(HTMLParser):
    """The text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_data(self, data: str) -> None:
        self.found.append(data.strip())


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    place = tmp_path_factory.mktemp("judged")
    folder, out = judged_study(place), place / "out"
    # So few pairs show little: no more than that a quarter of what people share is not lost.
    change_config(folder, {"analysis": {"margin": 0.3}, "decision": {"looks": 1}})
    with open_study(folder) as study:  # as `evenhand report` does, save for the other libraries
        found = analyse_study(study, verify=False)
    write_report(*found, out)
    study_figures(folder, place / "live")
    with redirect_stdout(io.StringIO()) as selected:
        assert main(["select", str(folder)]) == 0
    words = Words()
    words.feed((out / "report.html").read_text("utf-8"))
    return Told(
        selected.getvalue(),
        str(Check(*found)),
        json.loads((out / "report.json").read_text("utf-8")),
        LiveFigures("", out).results.set_index(list(RESULTS_KEY)).sort_index(),
        (out / "report.md").read_text("utf-8"),
        " ".join(" ".join(words.found).split()),
        LiveFigures("", place / "live"),
    )


def test_what_decides_is_one_figure(told: Told) -> None:
    """In `select`, in the report's grid and evidence, in its rows and in the cockpit; above all at
    a threshold, where labels and verdicts lie apart.
    """
    assert told.verdict(LATE)["verdict"] == "can_replace_at_threshold"
    labels = told.row("refusal", "human_ceiling_difference", "humans", LATE, "all", "")
    assert labels["estimate"] < 0, "another number that could be shown in its place"
    grid = told.table("## The answer\n")
    cockpit = main_rows(told.cockpit.results, told.cockpit.report["verdicts"])
    cockpit = cockpit.set_index(list(RESULTS_KEY))
    for verdict in told.report["verdicts"]:
        key, kappa = deciding_keys(verdict["verdict"], verdict["evidence"])
        assert key is not None
        assert kappa is not None
        difference = in_brackets(told.row(*key), key[1])
        assert difference in told.page
        own, people = (told.row(*key)["estimate"] for key in map(tuple, verdict["kappas"]))
        assert f"κ {own:.2f} vs {people:.2f}; {verdict['reason']}" in grid[verdict["grader"]][0]
        (line,) = re.findall(rf"^  {verdict['grader']} .*\[.*", told.select, re.MULTILINE)
        assert difference in line
        assert in_brackets(told.row(*kappa), kappa[1]) in line
        for each in (key, kappa):
            assert in_brackets(cockpit.loc[each], each[1]) == in_brackets(told.row(*each), each[1])
        for text in (told.select, told.check, told.markdown.replace("\\", ""), told.page):
            assert verdict["sentence"] in text
    assert told.cockpit.report["verdicts"] == told.report["verdicts"]


def test_a_direction_has_the_units_of_its_rows(told: Told) -> None:
    """Graders called more units than people did: each cell is on its own row's units."""
    cells = told.table("Refusal: net direction by subject")["s1"]
    of_people, of_late = (
        told.row("refusal", "direction_net", rater, "", "subject=s1|binary", "left>right")[
            "n_units"
        ]
        for rater in ("humans", LATE)
    )
    assert of_people < of_late
    assert cells[0].split()[0] == str(of_people)
    assert f"{of_late} items" not in cells[1]
    assert f"{of_late} items" in cells[2]


def test_people_per_unit_are_those_who_labelled(told: Told) -> None:
    facts = told.report["study"]["facts"]
    assert facts["annotators wanted per item"] == 5
    assert facts["annotators per labelled item"] == "3 to 4, 3.8 on average"
    assert told.cockpit.report["study"]["facts"] == facts
    assert "3 to 4, 3.8 on average" in told.page


def in_brackets(row: pd.Series, statistic: str) -> str:
    estimate, low, high = (shown(float(row[name]), statistic) for name in _FIGURES)
    return f"{estimate} [{low}, {high}]"


_FIGURES = ("estimate", "low", "high")
