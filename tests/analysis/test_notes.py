"""Notes are text for people: any of them may be reworded, and nothing is decided otherwise."""

import ast
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand.analysis import Scale, analyse, notes, rank_graders
from evenhand.analysis.notes import TEXTS, WORDS
from evenhand.analysis.report import ReportContext, write_report
from tests.analysis.make import YES, ratings_of, study
from tests.analysis.report.conftest import SCALE, tables


def _studies():
    rng = np.random.default_rng(20)
    ratings, units = tables()
    units["kind"] = np.where(np.arange(len(units)) < 9, "rare", "usual")
    graders = {"even": [(0.9, 0.85)] * 2, "uneven": [(0.95, 0.6), (0.6, 0.95)]}
    graders |= {"blind": [(0.5, 0.5)] * 2}
    graded, parts = study(rng, graders, rates=(0.5, 0.45), people=2)
    alone, of_one = study(rng, graders, pairs=60, labelled=50)
    return [
        analyse(ratings, units, [SCALE], resamples=200, slices=["kind"]),
        analyse(graded, parts, [YES], resamples=200),
        analyse(alone, of_one, [YES], resamples=200, slices=["subject"]),
        _thresholds(rng),
    ]


@pytest.fixture(scope="module")
def plain():
    return _studies()


def _thresholds(rng):
    """Graders whose probabilities are low, as they should be, or noise; one on few units."""
    truth = rng.random(300) < 0.4
    said = {f"h{n}": np.where(truth ^ (rng.random(300) < 0.05), "y", "n") for n in range(3)}
    stated = {
        "low": 0.1 + 0.2 * truth + 0.1 * rng.random(300),
        "usual": np.clip(0.2 + 0.6 * truth + 0.1 * rng.normal(size=300), 0, 1),
        "noise": rng.random(300),
        "few": (0.3 + 0.4 * truth)[:20],
    }
    labels = said | {name: np.where(p >= 0.5, "y", "n") for name, p in stated.items()}
    scale = Scale("", ("y", "n"), affirmative=frozenset({"y"}))
    return analyse(ratings_of(labels, [*stated], stated), None, [scale], resamples=200)


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
def test_graders_are_ranked_by_a_table_read_from_its_file(plain, tmp_path):
    (found, *_) = plain
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
