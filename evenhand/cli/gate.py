"""`gate`: a rule, or a baseline, that a grader must meet, for CI; `baseline`: save and compare."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import (
    FILE_OPTIONS,
    ONLY_CHECK,
    SCALE_OPTIONS,
    add_analysis_options,
    add_engine,
    add_source,
    engine_of,
    given_options,
    setting_names,
)
from evenhand.cli.terminal import console, print_line, print_lines, working
from evenhand.cli.verbs import Parser, Verb, add_verbs, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note_in
from evenhand.texts import written
from evenhand.visible import escaped_json

if TYPE_CHECKING:
    from evenhand.reporting.gate.checks import Gate

_UNUSED = ("rater_slices", "sensitivity_cluster")
"""A rule is held against the verdict and the rows on all units, and these change neither."""
_SETTINGS = {
    *("margin", "drift_margin", "min_coverage", "min_clusters", "min_rarer"),
    *("resamples", "interval", "seed"),
}
"""Settings that a comparison depends on."""
_OF_SAVE = {*SCALE_OPTIONS, *_SETTINGS, "cluster", "reference"} - {*ONLY_CHECK}
_OF_COMPARE = {*FILE_OPTIONS, *_SETTINGS, "--rubric"} - {*ONLY_CHECK}


def _gate_options(gate: Parser) -> None:
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
        _print_json(found)
    else:
        print_lines([*found.notes, *found.lines])
    return found.exit_code


def _print_json(found: Gate) -> None:
    text = json.dumps(found.as_dict(), ensure_ascii=False, allow_nan=False)
    print_line(escaped_json(text))


def _found(arguments: argparse.Namespace) -> Gate:
    from evenhand.reporting.gate.checks import gate
    from evenhand.reporting.load import is_study

    engine = engine_of(arguments, arguments.source)
    if engine:
        refuse(arguments, ["--baseline"], "needs the labels in one table; leave --engine out")
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
    from evenhand.study.tables.files import atomic_write

    if arguments.junit is not None:
        atomic_write(arguments.junit, junit_xml(found))
    if arguments.summary is not None:
        atomic_write(arguments.summary, summary_markdown(found).encode())


def _baseline_options(baseline: Parser) -> None:
    add_verbs(baseline, ACTIONS, dest="action", required=True)


def _save_options(save: Parser) -> None:
    _add_common(save, "the file to write", _OF_SAVE)


def _compare_options(compare: Parser) -> None:
    _add_common(compare, "the baseline", _OF_COMPARE)
    compare.add_argument(
        "--against", metavar="NEW", help="what the grader is called now (as it was)"
    )
    add_new_rubric(compare)
    compare.add_argument(
        "--json", action="store_true", help="print one JSON object and nothing else"
    )


def _add_common(verb: Parser, file: str, options: set[str]) -> None:
    verb.add_argument("source", type=Path, metavar="DIR|RATINGS", help="the labels and grades")
    verb.add_trust()
    verb.add_argument("--grader", required=True, metavar="NAME", help="the grader")
    verb.add_argument("--file", required=True, type=Path, metavar="FILE", help=file)
    add_analysis_options(verb, without={*SCALE_OPTIONS, *setting_names()} - options)


def _refuse_beside_a_study(arguments: argparse.Namespace) -> None:
    if arguments.source.is_dir():
        only_files = SCALE_OPTIONS.keys() - {"--rubric"}
        refuse(arguments, only_files, "is for a ratings file; a study has rubrics of its own")


def _save(arguments: argparse.Namespace) -> None:
    from evenhand.analysis.verdicts.drift import margin_of
    from evenhand.reporting.gate.baseline import baseline_of, write_baseline
    from evenhand.reporting.load import load

    _refuse_beside_a_study(arguments)
    options = given_options(arguments)
    with working("reading the labels"):
        found = load(arguments.source, options)
        # Of a file only the rubric's rows were read, whatever the rubric is called there.
        rubric = arguments.rubric if arguments.source.is_dir() else None
        baseline = baseline_of(found, arguments.grader, rubric)
    write_baseline(baseline, arguments.file)
    if arguments.source.is_dir():
        note_in(arguments.source, "export", arguments.file.name)
    say = console().print
    for sentence in found.notes:
        say(sentence)
    if found.synthetic:
        say(written("terminal.synthetic"))
    fields = {"grader": baseline.grader, "file": arguments.file}
    people = baseline.n_people
    say(written("baseline.saved", units=baseline.n_units, people=people, **fields))
    say(written("baseline.rule", margin=margin_of(baseline.decision, baseline.analysis)))


def _compare(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.gate.checks import compare

    _refuse_beside_a_study(arguments)
    with working("reading the labels"):
        found = compare(
            arguments.source,
            arguments.grader,
            baseline=arguments.file,
            against=arguments.against or "",
            options=given_options(arguments),
            new_rubric=arguments.new_rubric,
        )
    if arguments.json:
        _print_json(found)
    else:
        print_lines([*found.notes, *found.lines])


ACTIONS = (
    Verb("save", "freeze people's labels and a grader's grades in a file", _save_options, _save),
    Verb(
        "compare",
        "is the grader what it was? Unchanged, changed, or we cannot tell",
        _compare_options,
        _compare,
    ),
)
VERBS = (
    Verb(
        "gate",
        "exit 0 if a grader passes, 1 if not, 3 if we cannot tell: for CI",
        _gate_options,
        _gate,
    ),
    Verb("baseline", "has a grader changed since it was checked?", _baseline_options),
)
