"""A statistic is a function and an entry, which reach all that shows statistics; public names; and
notes, which are text for people: nothing is decided by them.
"""

import ast
import json
import re
import subprocess
import sys
import types
from pathlib import Path

import pandas as pd
import pytest

import evenhand
import evenhand.analysis
from docs.list_statistics import rows_page
from evenhand.analysis import all_rubrics, analyse, rank_graders
from evenhand.analysis.report import ReportContext, write_report
from evenhand.analysis.statistics import NOTE_TEXTS, REPORT_TEXTS, Statistic, find_entry, statistics
from tests.analysis.report.conftest import SCALE, tables

LABELS = {"ann": "yyyynnnn", "ben": "yyynnnnn", "g": "yyyyyynn"}
GIVEN = {"human": ["ann", "ben"], "categories": ["y", "n"], "resamples": 100}


def add_first_rows(view):
    """Add `first_chosen`: how often a grader chooses the first category."""
    for grader in view.coded.members("model"):
        chosen, given = view.coded.codes[:, grader] == 0, view.coded.labelled[:, grader]
        found = view.share(chosen, given)
        view.add("first_chosen", found, given, a="humans", b=view.coded.raters[grader])


@pytest.fixture
def declared(monkeypatch):
    added = all_rubrics.StatisticEntry(add_first_rows, on="labels", needs=["categories"])
    monkeypatch.setattr(all_rubrics, "STATISTICS", (*all_rubrics.STATISTICS, added))
    entry = Statistic("First", "First chosen", "how often", why="Made up.", kind="share")
    monkeypatch.setitem(statistics(), "first_chosen", entry)
    find_entry.cache_clear()


@pytest.mark.slow
def test_a_made_up_statistic_is_in_results_report_gate_and_docs(declared, tmp_path):
    labels = pd.DataFrame({who: list(given * 5) for who, given in LABELS.items()})
    found = evenhand.check(labels, model="g", **GIVEN)
    (row,) = found.results.query("statistic == 'first_chosen'").to_dict("records")
    assert row["low"] < row["estimate"] == 30 / 40 < row["high"]
    found.report(tmp_path)
    assert "First chosen (First)" in (tmp_path / "report.html").read_text("utf-8")
    rule = "first_chosen.low > 0.5, first_chosen.high < 1"
    assert evenhand.gate(labels, grader="g", require=rule, model="g", **GIVEN).passed
    assert "| `first_chosen` | First chosen | how often |" in rows_page()


def test_what_a_statistic_needs_decides_where_it_is_computed(declared):
    labels = pd.DataFrame({who: [f"{n % 9 / 2}" for n in range(40)] for who in LABELS})
    found = evenhand.check(labels, human=["ann", "ben"], model="g", level="interval", resamples=10)
    assert "mean_number" in set(found.results["statistic"])
    assert "first_chosen" not in set(found.results["statistic"])


def test_every_public_name_is_there():
    names = dir(evenhand.analysis)
    assert names == sorted(evenhand.analysis.__all__)
    for name in names:
        # A submodule called like a function would hide it.
        assert not isinstance(getattr(evenhand.analysis, name), types.ModuleType), name
    with pytest.raises(AttributeError, match="cohens_kappa"):
        evenhand.analysis.cohens_kappa  # noqa: B018


def test_importing_loads_no_numerical_library():
    code = "import sys, evenhand.analysis as a; dir(a); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {"numpy", "pandas", "scipy", "sklearn", "statsmodels", "krippendorff"}


@pytest.mark.slow
def test_every_code_has_a_text_and_every_text_a_code():
    """Codes are what remarks and reasons, and questions about them, name in the sources."""
    named, words = set(), set()
    for path in Path(all_rubrics.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words.add(node.value)
            codes = []
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                asks = name in {"Remark", "undefined", "says", "advises", "without"}
                codes += node.args if asks else []
                codes += [each.value for each in node.keywords if each.arg == "reason"]
            found = (each for code in codes for each in ast.walk(code))
            named |= {each.value for each in found if isinstance(each, ast.Constant)}
    texts, named = NOTE_TEXTS | REPORT_TEXTS, named & words
    named = {each for each in named if re.fullmatch("[a-z]+(_[a-z]+)+", each)}
    assert named <= texts.keys() <= words
    assert len(named) > 40
    assert not [text for text in texts.values() if "_" in text], "words, not codes"


@pytest.mark.slow
def test_graders_are_ranked_by_a_table_read_from_its_file(tmp_path):
    ratings, units = tables()
    found = analyse(ratings, units, [SCALE], resamples=200)
    write_report(found, ReportContext("study"), tmp_path)
    empty = {name: [""] for name in ("estimate", "low", "high")}
    table = pd.read_csv(tmp_path / "results.csv", keep_default_na=False, na_values=empty)
    report = json.loads((tmp_path / "report.json").read_text())

    def shown(results, verdicts):
        ranked = rank_graders(results, verdicts)["R"]
        return [
            (each.verdict["grader"], each.agreement, each.worst_bias and each.worst_bias["at"])
            for each in ranked
        ]

    assert shown(table, report["verdicts"]) == shown(found.results, found.verdicts)
