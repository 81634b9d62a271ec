"""A grader held against a rubric's golden answers, in a study that is made for it and then gone."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evenhand.cli.exits import DONE
from evenhand.cli.ratings import (
    ended,
    print_coverage,
    print_forecast,
    print_run,
    print_stop,
    request_limits,
)
from evenhand.cli.terminal import console, progress_bar
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

_SHOWN = 80
"""The most characters of a response that stand beside a wrong answer."""


def try_golden(rubric: Rubric, arguments: argparse.Namespace) -> int:
    """Ask the graders about the golden answers, and print how many each got right and which not.

    Raises InputError where the rubric has none, or as `grade` does.
    """
    from evenhand.graders import GradingOptions, forecast, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan
    from evenhand.study.prompts.comparisons import golden_comparisons
    from evenhand.study.prompts.items import golden_items

    if not rubric.golden:
        raise InputError(written("golden.none", name=rubric.name))
    items = (golden_comparisons if rubric.has_sides else golden_items)(rubric)
    plan = StudyPlan(items=items, rubrics=[rubric], sample=len(rubric.golden))
    with TemporaryDirectory(prefix="evenhand-") as home:
        folder = Path(home) / "golden"
        create_study(folder, plan)
        with open_study(folder) as study:
            if arguments.dry_run:
                print_forecast(forecast(study, arguments.grader, GradingOptions()))
                return DONE
            with progress_bar("grading") as progress:
                limits = request_limits(arguments)
                summary = grade(study, arguments.grader, limits=limits, progress=progress)
            graders = [part.rater_id for part in summary.graders]
            print_run(summary)
            print_coverage(study, graders)
            ratings = study.ratings()
    for grader in graders:
        own = ratings[ratings["rater_id"] == grader]
        # A unit with two sides is asked in both orders.
        of_unit = own["label"].fillna("").groupby(own["unit_id"])
        given = {unit: " / ".join(sorted(set(labels))) for unit, labels in of_unit}
        _print_answers(rubric, grader, [given.get(unit) for unit in items.unit_ids])
    warnings = [warning for part in summary.graders for warning in part.warnings]
    print_stop("rubric check", summary.stopped, warnings)
    return ended(over_budget=summary.over_budget, stopped=bool(summary.stopped))


def _print_answers(rubric: Rubric, grader: str, labels: Sequence[str | None]) -> None:
    """Print how many golden answers a grader got right, and those that it did not; a label is None
    where it was not asked, and empty where it gave none.
    """
    asked = [each for each in zip(rubric.golden, labels, strict=True) if each[1] is not None]
    if not asked:
        return
    right = sum(golden.label == label for golden, label in asked)
    about = {"grader": grader, "name": rubric.name, "right": right, "total": len(asked)}
    console().print(written("golden.right", **about))
    for number, (golden, label) in enumerate(zip(rubric.golden, labels, strict=True), 1):
        if label in (None, golden.label):
            continue
        shown = golden.texts.get("response", golden.texts.get("prompt", ""))
        text = " ".join(shown.split())
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        about = {"number": number, "right": golden.label, "label": label, "response": text}
        console().print("  " + written("golden.wrong" if label else "golden.no_label", **about))
