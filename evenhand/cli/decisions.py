"""`select`: from agreement to a choice of grader."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Literal

from evenhand.cli.options import add_source, analysis_of
from evenhand.cli.terminal import console, print_table
from evenhand.cli.verbs import Parser, Verb
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.people.majority_rates import Rate
    from evenhand.analysis.results import TableRow
    from evenhand.analysis.verdicts.ranking import Candidate

_UNUSED_BY_SELECT = (
    "--drift-margin",
    "--epsilon",
    "--group",
    "--variant",
    "--sensitivity-cluster",
    "--confidence-cut",
    "--confidence-target",
)
"""A ranking rests on verdicts, the audit and prices; these change none of them."""
_FIGURES: tuple[Literal["estimate"], Literal["low"], Literal["high"]] = ("estimate", "low", "high")
COLUMNS = [
    "grader",
    "verdict",
    "minus people's kappa",
    "kappa",
    "TPR",
    "TNR",
    "coverage",
    "worst fault",
    "USD/1,000",
]


def _select_options(select: Parser) -> None:
    add_source(select, "the labels and grades", without=_UNUSED_BY_SELECT)


def _select(arguments: argparse.Namespace) -> None:
    from evenhand.analysis import rank_graders
    from evenhand.analysis.verdicts.judge import limits_of
    from evenhand.analysis.verdicts.ranking import recommendations
    from evenhand.reporting.load import is_study

    analysis = analysis_of(arguments)
    ranking = rank_graders(analysis.results, analysis.verdicts)
    say = console().print
    if not ranking:
        say(written("select.no_graders"))
        return
    for rubric, candidates in ranking.items():
        print_table([*COLUMNS, "front"], [_row(each) for each in candidates], title=rubric)
    for found in recommendations(ranking):
        say(found.sentence)
    for each in (each for candidates in ranking.values() for each in candidates):
        say(each.verdict["sentence"])
        if each.verdict["more_clusters"] and is_study(arguments.source):
            more = each.verdict["more_clusters"]
            say(f"  evenhand extend {arguments.source} --pairs {more}")
    for limit in limits_of(analysis.verdicts):
        say(limit)
    say(f"{written('select.brackets')} {written('verdict.bounds')}")
    say(written("select.rule", rule=analysis.rule))
    say(written("select.order"))


def _row(candidate: Candidate) -> tuple[str, ...]:
    from evenhand.analysis.verdicts.wording import TITLES

    return (
        candidate.verdict["grader"],
        TITLES[candidate.verdict["verdict"]].short,
        _with_interval(candidate.difference),
        _with_interval(candidate.kappa),
        *(_rate(candidate.verdict["rates"].get(name)) for name in ("tpr", "tnr")),
        f"{candidate.coverage['estimate']:.1%}" if candidate.coverage else "-",
        _fault(candidate),
        f"{candidate.price['estimate']:.2f}" if candidate.price else "-",
        "*" if candidate.best_buy else "",
    )


def _with_interval(row: TableRow | None) -> str:
    """A figure rounded as everywhere else.

    >>> row = {"statistic": "human_ceiling_difference", "estimate": -0.001, "low": -0.03}
    >>> _with_interval(row | {"high": 0.021})
    '+0.00 [-0.03, +0.02]'
    """
    from evenhand.analysis.report.figures import shown

    if row is None or row["estimate"] != row["estimate"]:
        return "-"
    estimate, low, high = (shown(row[name], row["statistic"]) for name in _FIGURES)
    return f"{estimate} [{low}, {high}]" if row["low"] == row["low"] else estimate


def _rate(rate: Rate | None) -> str:
    """A rate against the majority, or the reference.

    >>> _rate({"estimate": 0.9, "low": 0.804, "high": 0.95, "n": 60}), _rate(None)
    ('0.90 [0.80, 0.95]', '-')
    """
    if rate is None or rate["estimate"] is None or rate["low"] is None or rate["high"] is None:
        return "-"
    return f"{rate['estimate']:.2f} [{rate['low']:.2f}, {rate['high']:.2f}]"


def _fault(candidate: Candidate) -> str:
    """A part of the sample in which it fails, or else the largest bias that was found."""
    row, parts = candidate.worst_bias, candidate.verdict["failing_parts"]
    if parts:
        more = f" and {len(parts) - 1} more" if len(parts) > 1 else ""
        return f"fails in {parts[0]}{more}"
    if row is None:
        return "none found"
    from evenhand.analysis.report.figures import shown

    name = row["statistic"].removeprefix("bias_").replace("_", " ")
    return f"{name} {shown(row['estimate'], row['statistic'])}"


VERBS = (
    Verb("select", "rank graders: which one, for what, at what price", _select_options, _select),
)
