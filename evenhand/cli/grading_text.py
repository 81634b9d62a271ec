"""Output of `grade` and `respond` on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.graders import GraderForecast, GraderSummary, GradingOptions, RunSummary
    from evenhand.rubrics import Rubric
    from evenhand.study import Study


def print_run(summary: RunSummary) -> None:
    """Print a table of the run: grades known before, asked for and received, by grader."""
    from evenhand.graders.replies.draws import REPEATED

    print_table(
        ["grader", "known before", "to ask", "labelled", "unscored", "left"],
        [_counts(part) for part in summary.graders],
    )
    for part in summary.graders:
        for reason, count in sorted(part.unscored.items()):
            console().print(
                written("grade.unscored", grader=part.rater_id, count=count, reason=reason)
            )
        if missing := part.without_probabilities:
            name = "some_without" if missing < part.scored else "all_without"
            numbers = {"missing": missing, "labelled": part.scored}
            console().print(written(f"grade.{name}", grader=part.rater_id, **numbers))
        if repeats := part.unscored[REPEATED]:
            console().print(written("grade.repeated", grader=part.rater_id, repeats=repeats))


def _counts(part: GraderSummary) -> tuple[str, ...]:
    unscored = sum(part.unscored.values())
    numbers = (part.already, part.planned, part.scored, unscored, part.unasked)
    return (part.rater_id, *map(str, numbers))


def print_orders(study: Study, options: GradingOptions) -> None:
    """Print the orders in which pairs are shown, if a rubric is about pairs."""
    names = options.rubrics or study.rubrics
    asked = [options.text] if options.text else [study.rubrics[name] for name in names]
    if any(rubric.unit == "pair" for rubric in asked):
        both = len(options.orders) > 1
        console().print(written("grade.both_orders" if both else "grade.one_order"))


def print_coverage(study: Study, raters: Sequence[str]) -> None:
    """Print coverage and total cost by grader and rubric."""
    from evenhand.study.store.totals import grade_totals

    totals = grade_totals(study.store)
    rows = []
    for row in totals[totals["rater_id"].isin(raters)].to_dict("records"):
        asked = row["labelled"] + row["unscored"]
        known = row["cost_usd"] == row["cost_usd"]
        cached = row["cached_share"]
        rows.append(
            (
                str(row["rater_id"]),
                str(row["rubric"]),
                f"{row['labelled'] / asked:.1%}",
                str(asked),
                f"${row['cost_usd']:.4f}" if known else "-",
                f"{cached:.0%}" if cached == cached else "-",
            )
        )
    print_table(["grader", "rubric", "coverage", "grades", "cost", "input from cache"], rows)


def print_trial(study: Study, text: Rubric, tried: Sequence[str]) -> None:
    """Print how each grader's agreement with people changes with another text of a rubric."""
    from evenhand.reporting.trial import compare_texts

    for rater in tried:
        for sentence in compare_texts(study, text, rater).sentences:
            console().print(sentence)


def print_stop(verb: str, stopped: Sequence[str], warnings: Sequence[str]) -> None:
    """Warnings, and why a run ended early."""
    for sentence in dict.fromkeys(warnings):
        console(stderr=True).print(written("terminal.warning", text=sentence))
    for sentence in stopped:
        console(stderr=True).print(f"evenhand {verb}: {sentence}")


def print_forecast(forecasts: Sequence[GraderForecast]) -> None:
    """Print the number of requests and the cost of a run, and one prompt of each grader."""
    print_table(
        ["grader", "known before", "to ask", "cost at least", "expected", "cost at most"],
        [
            (
                part.rater_id,
                str(part.already),
                str(part.new),
                *_prices(part),
            )
            for part in forecasts
        ],
    )
    for part in forecasts:
        if part.basis:
            console().print(f"{part.rater_id}: {part.basis}")
        if part.sample:
            console().print(f"\n{written('grade.first_prompt', grader=part.rater_id)}\n")
            console().print(part.sample.system)
            console().print(f"\n{written('grade.user_part')}\n")
            console().print(part.sample.user)
    print_stop("grade", (), [sentence for part in forecasts for sentence in part.warnings])


def _prices(part: GraderForecast) -> tuple[str, ...]:
    if part.cost is None:
        return ("unknown",) * 3
    least, most = part.cost
    likely = least if part.expected is None else part.expected
    return tuple(f"${usd:.2f}" for usd in (least, likely, most))
