"""`gate`: a rule, or a baseline, that a grader must meet; for CI."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.exits import CANNOT_TELL, DONE, NOT_MET
from evenhand.cli.options import SCALE_OPTIONS, add_engine, add_source, engine_of, given_options
from evenhand.cli.terminal import console, print_line, working
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.visible import escaped_json

if TYPE_CHECKING:
    from evenhand.reporting.gate.checks import Gate

_UNUSED = ("--rater-slice", "--sensitivity-cluster")
"""A rule is held against the verdict and the rows on all units, and these change neither."""
_OF_BASELINE = ("--drift-margin", "--new-rubric")
_CODES = {"met": DONE, "not_met": NOT_MET, "cannot_tell": CANNOT_TELL}


def _options(gate: Parser) -> None:
    gate.add_argument(
        "--grader", required=True, metavar="NAME", help="the grader that the rule is about"
    )
    gate.add_argument(
        "--require",
        metavar="RULE",
        help="comma-separated conditions that must all hold: verdict, and STATISTIC"
        "[.estimate|.low|.high] OP NUMBER, as in kappa.low > 0.6 (verdict, without --baseline)",
    )
    gate.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="it must be unchanged since `evenhand baseline save` wrote this file",
    )
    add_new_rubric(gate)
    gate.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    gate.add_argument("--junit", type=Path, metavar="FILE", help="also write JUnit XML")
    gate.add_argument(
        "--summary", type=Path, metavar="FILE", help="also write Markdown, for a job's summary"
    )
    add_source(gate, "the labels and grades", without=_UNUSED)
    add_engine(gate)


def add_new_rubric(verb: Parser) -> None:
    """Add `--new-rubric`: comparing under a changed rubric is intended."""
    verb.add_argument(
        "--new-rubric",
        action="store_true",
        help="compare with a baseline of an older text of the rubric",
    )


def _gate(arguments: argparse.Namespace) -> int:
    try:
        found = _found(arguments)
        _write(arguments, found)
    except InputError as error:
        if arguments.json:
            print_line(json.dumps({"schema": 1, "outcome": "error", "error": str(error)}))
        raise
    if arguments.json:
        text = json.dumps(found.as_dict(), ensure_ascii=False, allow_nan=False)
        print_line(escaped_json(text))
    else:
        for sentence in (*found.notes, *(each.line for each in found.checks), found.weaker):
            if sentence:
                console().print(sentence)
    return _CODES[found.outcome]


def _found(arguments: argparse.Namespace) -> Gate:
    from evenhand.reporting.gate.checks import gate
    from evenhand.reporting.load import is_study

    engine = engine_of(arguments, arguments.source)
    if engine:
        refuse(arguments, ["--baseline"], "needs the labels in one table; leave --engine out")
    if arguments.baseline is None:
        refuse(arguments, _OF_BASELINE, "is about a comparison with a baseline; add --baseline")
    if not engine and is_study(arguments.source):
        only_files = SCALE_OPTIONS.keys() - {"--rubric"}
        refuse(arguments, only_files, "is for a ratings file; a study has rubrics of its own")
    with working("reading the labels") as tell:
        return gate(
            arguments.source,
            arguments.grader,
            require=arguments.require,
            baseline=arguments.baseline,
            options=given_options(arguments),
            new_rubric=arguments.new_rubric,
            engine=engine,
            on_stage=tell,
        )


def _write(arguments: argparse.Namespace, found: Gate) -> None:
    """The files that were asked for, in one step each."""
    from evenhand.reporting.gate.files import junit_xml, summary_markdown
    from evenhand.study.tables.atomic import atomic_write

    if arguments.junit is not None:
        atomic_write(arguments.junit, junit_xml(found))
    if arguments.summary is not None:
        atomic_write(arguments.summary, summary_markdown(found).encode())


VERBS = (
    Verb(
        "gate", "exit 0 if a grader passes, 1 if not, 3 if we cannot tell: for CI", _options, _gate
    ),
)
