"""`select`, `plan`, `calibrate`, `gate`, `baseline` and `improve`: from agreement to a decision."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import (
    analysis_of,
    engine_of,
    given_options,
    given_settings,
    refuse_of_files,
)
from evenhand.cli.ratings import (
    grading_options,
    print_end,
    print_forecast,
    print_run,
    request_limits,
)
from evenhand.cli.terminal import console, print_line, print_lines, progress_bar, say, working
from evenhand.cli.verbs import DONE, options_of, refuse, shared_names, study_of
from evenhand.errors import InputError
from evenhand.reporting.noting import changing_settings, note, note_in, operator
from evenhand.visible import escaped_json

if TYPE_CHECKING:
    from evenhand.reporting.gate import Gate
    from evenhand.reporting.improving import ImproveOptions
    from evenhand.reporting.thresholds import Calibration
    from evenhand.study import Study


def run_select(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.load import is_study
    from evenhand.reporting.selecting import Selection

    analysis = analysis_of(arguments)
    study = arguments.source if is_study(arguments.source) else None
    print_lines(Selection(analysis, study=study).lines)


RULE = ("--margin", "--set")
"""Requirements on a grader, with a pilot or without."""


def run_plan(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.planning import Assumptions, Wanted, plan_ahead, plan_from

    wanted = Wanted(arguments.statistic, arguments.half_width)
    options = shared_names("without a pilot")
    assumed = options_of(Assumptions, arguments)
    if arguments.source is not None:
        refuse(arguments, options, "is an assumption for planning without a pilot; leave it out")
        print_lines(plan_from(analysis_of(arguments, why=True), wanted).lines)
        return
    elsewhere = set(arguments.given) - {*options, *RULE, "--statistic", "--half-width"}
    refuse(arguments, elsewhere, "is about the labels of a pilot; name its folder or file")
    settings = given_settings(arguments)
    with working("simulating"):
        found = plan_ahead(assumed, wanted, settings)
    print_lines(found.lines)


def run_gate(arguments: argparse.Namespace) -> int:
    from evenhand.reporting.gate import junit_xml, summary_markdown
    from evenhand.study.tables.files import atomic_write

    try:
        found = _found(arguments)
        if arguments.junit is not None:
            atomic_write(arguments.junit, junit_xml(found))
        if arguments.summary is not None:
            atomic_write(arguments.summary, summary_markdown(found).encode())
    except InputError as error:
        if arguments.json:
            print_line(json.dumps({"schema": 1, "outcome": "error", "error": str(error)}))
        raise
    _print_gate(arguments, found)
    return found.exit_code


def _print_gate(arguments: argparse.Namespace, found: Gate) -> None:
    if arguments.json:
        text = json.dumps(found.as_dict(), ensure_ascii=False, allow_nan=False)
        print_line(escaped_json(text))
    else:
        print_lines([*found.notes, *found.lines])


def _found(arguments: argparse.Namespace) -> Gate:
    from evenhand.reporting.gate import gate
    from evenhand.reporting.load import is_study

    engine = engine_of(arguments, arguments.source)
    if engine:
        refuse(arguments, ["--baseline"], "needs the labels in one table; leave --engine out")
    if not engine and is_study(arguments.source):
        refuse_of_files(arguments, but=["--rubric"])
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


def run_save(arguments: argparse.Namespace) -> None:
    from evenhand.analysis.verdicts.drift import margin_of
    from evenhand.reporting.gate import baseline_of, write_baseline
    from evenhand.reporting.load import load

    if arguments.source.is_dir():
        refuse_of_files(arguments, but=["--rubric"])
    options = given_options(arguments)
    with working("reading the labels"):
        found = load(arguments.source, options)
        # Of a file only the rubric's rows were read, whatever the rubric is called there.
        rubric = arguments.rubric if arguments.source.is_dir() else None
        baseline = baseline_of(found, arguments.grader, rubric)
    write_baseline(baseline, arguments.file)
    if arguments.source.is_dir():
        note_in(arguments.source, "export", arguments.file.name)
    print_lines(found.notes)
    if found.synthetic:
        say("terminal.synthetic")
    fields = {"grader": baseline.grader, "file": arguments.file}
    people = baseline.n_people
    say("baseline.saved", units=baseline.n_units, people=people, **fields)
    say("baseline.rule", margin=margin_of(baseline.decision, baseline.analysis))


def run_baseline_compare(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.gate import compare

    if arguments.source.is_dir():
        refuse_of_files(arguments, but=["--rubric"])
    with working("reading the labels"):
        found = compare(
            arguments.source,
            arguments.grader,
            baseline=arguments.file,
            against=arguments.against or "",
            options=given_options(arguments),
            new_rubric=arguments.new_rubric,
        )
    _print_gate(arguments, found)


def run_calibrate(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.load import from_study
    from evenhand.reporting.thresholds import calibrate

    if arguments.threshold is not None:
        _check_threshold(arguments)
    with study_of(arguments) as study:
        with working("reading the labels") as tell:
            found = calibrate(
                from_study(study),
                arguments.rubric,
                grader=arguments.grader,
                reference=arguments.reference,
                objective=arguments.objective,
                on_stage=tell,
            )
        print_lines(found.lines)
        if arguments.write:
            _write_thresholds(study, arguments, found)


def _check_threshold(arguments: argparse.Namespace) -> None:
    if not (arguments.write and arguments.rubric and arguments.grader):
        raise InputError("--threshold needs --write, --rubric and --grader")
    if not 0 <= arguments.threshold <= 1:
        raise InputError(f"--threshold is {arguments.threshold:g}; it must lie between 0 and 1")


def _write_thresholds(study: Study, arguments: argparse.Namespace, found: Calibration) -> None:
    """Put the threshold that was named, or those that win on held-out units, into study.toml."""
    from evenhand.reporting.thresholds import write_thresholds, write_tuned_thresholds

    by_hand = arguments.threshold is not None
    named = {arguments.rubric: {arguments.grader: arguments.threshold}}
    chosen = named if by_hand else found.thresholds
    if not chosen:
        say("calibrate.unchanged")
        return
    with changing_settings(study):
        if by_hand:
            write_thresholds(study, chosen)
        else:
            write_tuned_thresholds(study, found)
    for rubric, thresholds in chosen.items():
        for grader, threshold in thresholds.items():
            note(study, "threshold", f"{rubric}, {grader}", f"{threshold:g}")
            say("calibrate.set", grader=grader, rubric=rubric, threshold=threshold)


def run_improve(arguments: argparse.Namespace) -> int:
    from evenhand.graders.running import RunSummary
    from evenhand.reporting.improving import ImproveOptions, forecast_improving, improve, provable
    from evenhand.reporting.suggestions import rubric_first

    options = ImproveOptions(
        rubric=arguments.rubric,
        grader=arguments.grader,
        grading=grading_options(arguments),
        candidates=arguments.candidates,
        others=arguments.candidate,
        proposals=arguments.propose,
        proposer=arguments.proposer,
    )
    with study_of(arguments) as study:
        if arguments.learn:
            return _write_learn(study, options, arguments.learn)
        if said := provable(study, options):
            console().print(said)
        if first := rubric_first(study, options):
            console().print(first)
        if arguments.dry_run:
            print_forecast(forecast_improving(study, options))
            say("improve.dry_run")
            return DONE
        with progress_bar("improving") as progress:
            limits = request_limits(arguments)
            found = improve(study, options, limits, progress, done_by=operator())
        note(study, "grades", found.old.rater_id, f"improve {found.rubric}: {found.outcome}")
        run = RunSummary(tuple(found.graders), found.over_budget)
        print_run(run)
        print_lines(found.lines)
    return print_end("improve", run, found.stopped)


def _write_learn(study: Study, options: ImproveOptions, file: Path) -> int:
    from evenhand.reporting.improving import labels_to_learn
    from evenhand.study.tables.formats import write_table

    found = labels_to_learn(study, options, done_by=operator())
    write_table(found, file)
    wrong = int((found["agrees"] == "no").sum())
    about = {"file": file, "count": len(found), "wrong": wrong, "old": options.grader}
    say("improve.wrote_learn", **about)
    return DONE
