"""What `report` and `demo` end in: a few short lines, whatever the study."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.reporting.panel import MOST_LINES, WIDTH, last_lines

GIVEN = {"human": ("yyyynnnn" * 10, "yyynnnnn" * 10), "good": "yyyynnnn" * 5 + "yyynnnnn" * 5}


def labels(rubrics: int, graders: int, name: str = "grader") -> pd.DataFrame:
    """Two people and graders of whom every second is good and the others say no, by rubric."""
    given = dict(zip(("ann", "ben"), GIVEN["human"], strict=True))
    given |= {f"{name}-{n}": "n" * 80 if n % 2 else str(GIVEN["good"]) for n in range(graders)}
    return pd.DataFrame(
        {
            "unit_id": f"u{n}",
            "rater_id": rater,
            "rater_kind": "human" if rater in ("ann", "ben") else "model",
            "rubric": f"rubric-{rubric}",
            "label": label,
        }
        for rubric in range(rubrics)
        for rater, own in given.items()
        for n, label in enumerate(own)
    )


def ended(table: pd.DataFrame) -> list[str]:
    return last_lines(eh.check(table, resamples=20).analysis)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rubrics", "graders", "name"),
    [
        (1, 1, "grader"),
        (1, 14, "a-provider:a-model-with-a-long-name"),
        (3, 3, "grader"),
        (9, 3, "g"),
        (4, 2, "x" * 90),
    ],
)
def test_lines_are_few_and_short(rubrics: int, graders: int, name: str) -> None:
    said = ended(labels(rubrics, graders, name))
    assert len(said) <= MOST_LINES + 1
    assert all(len(line) <= WIDTH for line in said)
    assert said[-1].startswith("The report has ")
    hidden = [line for line in said if "more rubrics" in line]
    told = sum(f"rubric-{n}" in "".join(said) for n in range(rubrics))
    assert bool(hidden) == (told < rubrics)
    if hidden:
        assert hidden == [f"The report has {rubrics - told} more rubrics."]


@pytest.mark.slow
def test_graders_stand_by_rubric_and_verdict() -> None:
    said = ended(labels(2, 3))
    at = said.index("Use grader-0 for rubric-1.")
    assert said[at + 1] == "  can replace: grader-0, grader-2; do not use: grader-1"
    lone = "\n".join(ended(labels(1, 1)))
    assert "can replace:" not in lone
    assert "grader-0" in lone


@pytest.mark.slow
def test_names_that_do_not_fit_are_counted() -> None:
    (line,) = (line for line in ended(labels(1, 14, "a-rather-long-name")) if line[:2] == "  ")
    assert " more" in line
    (line,) = (line for line in ended(labels(1, 4, "y" * 90)) if line[:6] == "  can ")
    assert line == "  can replace: 2; do not use: 2"


def test_without_graders_it_says_so() -> None:
    said = ended(labels(1, 0))
    assert said[0] == "No verdict: there are no model graders here to judge."


@pytest.mark.slow
def test_the_demo_ends_within_a_dozen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from evenhand.cli.main import main

    for _ in range(2):  # made, and found again
        assert main(["demo", str(tmp_path / "d"), "--study", "items", "--no-app"]) == 0
        said = capsys.readouterr().out.replace(str(tmp_path), "").splitlines()
        assert len(said) <= 10
        assert max(map(len, said)) <= 100
        assert "report.html" in said[-1]
