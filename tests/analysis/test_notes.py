"""Notes are text for people: any of them may be reworded, and nothing is decided otherwise."""

import ast
import json
import re
from pathlib import Path

import pandas as pd
import pytest

from evenhand.analysis import analyse, notes, rank_graders
from evenhand.analysis.notes import TEXTS, WORDS
from evenhand.analysis.report import ReportContext, write_report
from tests.analysis.report.conftest import SCALE, tables


def test_every_code_has_a_text_and_every_text_a_code():
    """Codes are what remarks and reasons, and questions about them, name in the sources."""
    named, words = set(), set()
    for path in Path(notes.__file__).parent.rglob("*.py"):
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
    worded, named = TEXTS.keys() | WORDS.keys(), named & words
    named = {each for each in named if re.fullmatch("[a-z]+(_[a-z]+)+", each)}
    assert named <= worded <= words
    assert len(named) > 40
    assert not [text for text in (TEXTS | WORDS).values() if "_" in text], "words, not codes"


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
