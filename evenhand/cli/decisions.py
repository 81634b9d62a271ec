"""`select`: from agreement to a choice of grader."""

from __future__ import annotations

import argparse

from evenhand.cli.options import add_source, analysis_of
from evenhand.cli.terminal import print_lines
from evenhand.cli.verbs import Parser, Verb

_UNUSED_BY_SELECT = (
    *("drift_margin", "epsilon", "groups", "variants"),
    *("sensitivity_cluster", "confidence_cut", "confidence_target"),
)
"""A ranking rests on verdicts, the audit and prices; these change none of them."""


def _select_options(select: Parser) -> None:
    add_source(select, "the labels and grades", without=_UNUSED_BY_SELECT)


def _select(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.load import is_study
    from evenhand.reporting.selecting import Selection

    analysis = analysis_of(arguments)
    study = arguments.source if is_study(arguments.source) else None
    print_lines(Selection(analysis, study=study).lines)


VERBS = (
    Verb("select", "rank graders: which one, for what, at what price", _select_options, _select),
)
