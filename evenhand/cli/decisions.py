"""`select` and `gate`: from agreement to a choice of grader, for people and for CI."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.setting_options import add_analysis_options, analyse_asked
from evenhand.cli.terminal import console, print_table

if TYPE_CHECKING:
    from evenhand.analysis.results import TableRow
    from evenhand.analysis.verdicts.ranking import Candidate

__all__ = ["add_verbs"]

EXIT_NOT_MET = 1
COLUMNS = ["grader", "verdict", "to people's kappa", "kappa", "coverage", "worst bias", "USD/1,000"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    select = verbs.add_parser("select", help="rank graders: which one, for what, at what price")
    select.add_argument("source", type=Path, metavar="DIR|RATINGS")
    select.set_defaults(run=_select, declare=add_analysis_options)

    gate = verbs.add_parser("gate", help="exit 0 where a grader meets a rule, 1 where not: for CI")
    gate.add_argument("source", type=Path, metavar="DIR|RATINGS")
    gate.add_argument("--grader", required=True, metavar="NAME", help="whom the rule is about")
    gate.add_argument(
        "--require",
        required=True,
        metavar="RULE",
        help="comma-separated STATISTIC[.estimate|.low|.high] OP NUMBER, all to be met",
    )
    gate.set_defaults(run=_gate, declare=add_analysis_options)


def _select(arguments: argparse.Namespace) -> None:
    from evenhand.analysis import rank_graders

    analysis, _ = analyse_asked(arguments.source, arguments)
    ranking = rank_graders(analysis.results, analysis.verdicts)
    say = console().print
    if not ranking:
        say("No ranking: there are no model graders here to choose from.")
        return
    for rubric, candidates in ranking.items():
        print_table([*COLUMNS, "front"], [_row(each) for each in candidates], title=rubric)
    for each in (each for candidates in ranking.values() for each in candidates):
        say(each.verdict["sentence"])
        if each.verdict["more_clusters"] and arguments.source.is_dir():
            more = each.verdict["more_clusters"]
            say(f"  evenhand extend {arguments.source} --pairs {more}")
    say(f"Rule: {analysis.rule}.")
    say(
        "Order: by verdict; among graders that may stand in the cheapest first, else the one that "
        "agrees with people best. Front (*): no other is as cheap and agrees as well."
    )


def _row(candidate: Candidate) -> tuple[str, ...]:
    from evenhand.analysis.verdicts.words import TITLES

    return (
        candidate.verdict["grader"],
        TITLES[candidate.verdict["verdict"]].short,
        _with_interval(candidate.difference, "+"),
        _with_interval(candidate.kappa, ""),
        f"{candidate.coverage['estimate']:.1%}" if candidate.coverage else "-",
        _bias(candidate.worst_bias),
        f"{candidate.price['estimate']:.2f}" if candidate.price else "-",
        "*" if candidate.best_buy else "",
    )


def _with_interval(row: TableRow | None, sign: str) -> str:
    if row is None or row["estimate"] != row["estimate"]:
        return "-"
    text = f"{row['estimate']:{sign}.2f}"
    if row["low"] == row["low"]:
        text += f" [{row['low']:{sign}.2f}, {row['high']:{sign}.2f}]"
    return text


def _bias(row: TableRow | None) -> str:
    if row is None:
        return "none found"
    name = row["statistic"].removeprefix("bias_").replace("_", " ")
    return f"{name} {row['estimate']:+.2f}"


def _gate(arguments: argparse.Namespace) -> int:
    from evenhand.cli.requirement import check_clauses, parse_requirement

    clauses = parse_requirement(arguments.require)
    analysis, _ = analyse_asked(arguments.source, arguments)
    rubric = _one_rubric(arguments, sorted(set(analysis.results["rubric"])))
    outcomes = check_clauses(clauses, analysis.results, rubric, arguments.grader)
    for outcome in outcomes:
        console().print(outcome.sentence)
    return 0 if all(outcome.is_met for outcome in outcomes) else EXIT_NOT_MET


def _one_rubric(arguments: argparse.Namespace, rubrics: list[str]) -> str:
    """The rubric that is meant; it may be left out where there is one."""
    from evenhand.errors import InputError

    if arguments.rubric is None:
        if len(rubrics) == 1:
            return rubrics[0]
        raise InputError(f"there are several rubrics; name one with --rubric: {', '.join(rubrics)}")
    same = [n for n in rubrics if n.replace("_", "-") == arguments.rubric.replace("_", "-")]
    if same:
        return same[0]
    if arguments.source.is_file() and len(rubrics) == 1:
        return rubrics[0]  # read from a rubric's file
    raise InputError(f"there is no rubric {arguments.rubric!r} here; {', '.join(rubrics)} is")
