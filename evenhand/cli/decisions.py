"""`select`, `plan`, `calibrate`, `gate`, `baseline` and `improve`: from agreement to a decision."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import (
    FILE_OPTIONS,
    ONLY_CHECK,
    SCALE_OPTIONS,
    add_analysis_options,
    add_engine,
    add_source,
    analysis_of,
    engine_of,
    given_options,
    given_settings,
    refuse_of_files,
    setting_names,
)
from evenhand.cli.ratings import (
    add_asking,
    add_pace,
    ended,
    grading_options,
    print_forecast,
    print_run,
    print_stop,
    request_limits,
)
from evenhand.cli.terminal import console, print_line, print_lines, progress_bar, say, working
from evenhand.cli.verbs import DONE, Parser, Verb, add, add_choice, add_flag, refuse, study_of
from evenhand.errors import InputError
from evenhand.reporting.noting import changing_settings, note, note_in, operator
from evenhand.reporting.planning import STATISTICS, Assumptions
from evenhand.visible import escaped_json

if TYPE_CHECKING:
    from evenhand.reporting.gate.checks import Gate
    from evenhand.reporting.improving import ImproveOptions
    from evenhand.reporting.thresholds import Calibration
    from evenhand.study import Study

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


ASSUMED = [f"--{each.name}" for each in fields(Assumptions)]
RULE = ("--margin", "--set")
"""Requirements on a grader, with a pilot or without."""
_UNUSED_BY_PLAN = (
    *("slices", "groups", "variants", "rater_slices", "sensitivity_cluster"),
    *("epsilon", "leanings", "families", "confidence_cut", "confidence_target"),
    *("min_coverage", "min_stability", "min_information", "bias_bound"),
    *("max_injection", "max_knocked_off", "max_silenced", "drift_margin", "overlap"),
)
"""What says nothing of people's agreement, nor of how many pairs decide."""


def _plan_options(plan: Parser) -> None:
    add_choice(plan, "--statistic", STATISTICS, "(kappa)", "kappa")
    add(plan, "--half-width W", "half-width of the 95%% CI (0.1)", float, 0.1)
    assumed = plan.add_argument_group("without a pilot")
    add(assumed, "--agreement P", "of two annotators, on yes/no labels (0.85)", float)
    add(assumed, "--prevalence P", "share of affirmatives (0.5)", float)
    add(assumed, "--scale LOW-HIGH", "of labels that are not yes/no: 1-5, 0-100", default="")
    add(
        assumed,
        "--correlation R",
        "on a scale, of two annotators' labels; about their ICC or quadratic kappa (0.7)",
        float,
    )
    add(assumed, "--mean M", "on a scale, of the labels (its middle)", float)
    add(assumed, "--raters N", "annotators per unit (3)", int, 3)
    add(assumed, "--overlap P", "units that all label (1.0)", float, 1.0)
    add(assumed, "--subjects N", "answers per pair (1)", int, 1)
    add(assumed, "--likeness R", "of a pair's answers, 0 to 1 (1)", float, 1.0)
    add(
        assumed,
        "--strictness SD",
        "standard deviation of annotators' cut-offs, where what they cut has one of 1 (0.25, "
        "lower above 88%% agreement)",
        float,
    )
    add(assumed, "--power P", "chance to pass that is wanted (0.8)", float, 0.8)
    add_source(plan, "a pilot, if there is one", without=_UNUSED_BY_PLAN, nargs="?")


def _plan(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.planning import Wanted, plan_ahead, plan_from

    wanted = Wanted(arguments.statistic, arguments.half_width)
    assumed = Assumptions(
        **{each.name: getattr(arguments, each.name) for each in fields(Assumptions)}
    )
    if arguments.source is not None:
        refuse(arguments, ASSUMED, "is an assumption for planning without a pilot; leave it out")
        print_lines(plan_from(analysis_of(arguments, why=True), wanted).lines)
        return
    elsewhere = set(arguments.given) - {*ASSUMED, *RULE, "--statistic", "--half-width"}
    refuse(arguments, elsewhere, "is about the labels of a pilot; name its folder or file")
    settings = given_settings(arguments)
    with working("simulating"):
        found = plan_ahead(assumed, wanted, settings)
    print_lines(found.lines)


PLANNING = (
    Verb(
        "plan", "how many pairs and annotators a verdict or an interval needs", _plan_options, _plan
    ),
)


_UNUSED_BY_GATE = ("rater_slices", "sensitivity_cluster")
"""A rule is held against the verdict and the rows on all units, and these change neither."""
_SETTINGS = {
    *("margin", "drift_margin", "min_coverage", "min_clusters", "min_rarer"),
    *("resamples", "interval", "seed"),
}
"""Settings that a comparison depends on."""
_OF_SAVE = {*SCALE_OPTIONS, *_SETTINGS, "cluster", "reference"} - {*ONLY_CHECK}
_OF_COMPARE = {*FILE_OPTIONS, *_SETTINGS, "--rubric"} - {*ONLY_CHECK}


def _gate_options(gate: Parser) -> None:
    add(gate, "--grader NAME", "the grader that the rule is about", required=True)
    add(
        gate,
        "--require RULE",
        "comma-separated conditions that must all hold: verdict, and STATISTIC"
        "[.estimate|.low|.high] OP NUMBER, as in kappa.low > 0.6 (verdict, without --baseline)",
    )
    add(
        gate,
        "--baseline FILE",
        "it must be unchanged since `evenhand baseline save` wrote this file",
        Path,
    )
    add_new_rubric(gate)
    add_flag(gate, "--json", "print one JSON object and nothing else")
    add(gate, "--junit FILE", "also write JUnit XML", Path)
    add(gate, "--summary FILE", "also write Markdown, for a job's summary", Path)
    add_source(gate, "the labels and grades", without=_UNUSED_BY_GATE)
    add_engine(gate)


def add_new_rubric(verb: Parser) -> None:
    """Add `--new-rubric`: comparing under a changed rubric is intended."""
    add_flag(verb, "--new-rubric", "compare with a baseline of an older text of the rubric")


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


def _write(arguments: argparse.Namespace, found: Gate) -> None:
    """The files that were asked for, in one step each."""
    from evenhand.reporting.gate.checks import junit_xml, summary_markdown
    from evenhand.study.tables.files import atomic_write

    if arguments.junit is not None:
        atomic_write(arguments.junit, junit_xml(found))
    if arguments.summary is not None:
        atomic_write(arguments.summary, summary_markdown(found).encode())


def _save_options(save: Parser) -> None:
    _add_common(save, "the file to write", _OF_SAVE)


def _compare_options(compare: Parser) -> None:
    _add_common(compare, "the baseline", _OF_COMPARE)
    add(compare, "--against NEW", "what the grader is called now (as it was)")
    add_new_rubric(compare)
    add_flag(compare, "--json", "print one JSON object and nothing else")


def _add_common(verb: Parser, file: str, options: set[str]) -> None:
    add(verb, "source DIR|RATINGS", "the labels and grades", Path)
    verb.add_trust()
    add(verb, "--grader NAME", "the grader", required=True)
    add(verb, "--file FILE", file, Path, required=True)
    add_analysis_options(verb, without={*SCALE_OPTIONS, *setting_names()} - options)


def _save(arguments: argparse.Namespace) -> None:
    from evenhand.analysis.verdicts.drift import margin_of
    from evenhand.reporting.gate.baseline import baseline_of, write_baseline
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
    for sentence in found.notes:
        console().print(sentence)
    if found.synthetic:
        say("terminal.synthetic")
    fields = {"grader": baseline.grader, "file": arguments.file}
    people = baseline.n_people
    say("baseline.saved", units=baseline.n_units, people=people, **fields)
    say("baseline.rule", margin=margin_of(baseline.decision, baseline.analysis))


def _baseline_compare(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.gate.checks import compare

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
    if arguments.json:
        _print_json(found)
    else:
        print_lines([*found.notes, *found.lines])


BASELINE_ACTIONS = (
    Verb("save", "freeze people's labels and a grader's grades in a file", _save_options, _save),
    Verb(
        "compare",
        "is the grader what it was? Unchanged, changed, or we cannot tell",
        _compare_options,
        _baseline_compare,
    ),
)
OBJECTIVES = ("kappa", "agreement", "f1", "youden", "prevalence")


def _calibrate_options(calibrate: Parser) -> None:
    calibrate.add_study()
    add(calibrate, "--rubric NAME", "only this rubric")
    add(calibrate, "--grader NAME", "only this grader")
    add(calibrate, "--reference humans|RATER", "whom to match (humans)", default="humans")
    add_choice(calibrate, "--objective", OBJECTIVES, "(kappa)", "kappa")
    add_flag(calibrate, "--write", "write recommended thresholds to study.toml")
    add(calibrate, "--threshold T", "with --write: set this threshold by hand", float)


def _calibrate(arguments: argparse.Namespace) -> None:
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
        if arguments.write and arguments.threshold is not None:
            _write_declared(study, arguments)
        elif arguments.write:
            _write_tuned(study, found)


def _check_threshold(arguments: argparse.Namespace) -> None:
    if not (arguments.write and arguments.rubric and arguments.grader):
        raise InputError("--threshold needs --write, --rubric and --grader")
    if not 0 <= arguments.threshold <= 1:
        raise InputError(f"--threshold is {arguments.threshold:g}; it must lie between 0 and 1")


def _write_declared(study: Study, arguments: argparse.Namespace) -> None:
    """Put the threshold that was named into study.toml."""
    from evenhand.reporting.thresholds import write_thresholds

    chosen = {arguments.rubric: {arguments.grader: arguments.threshold}}
    with changing_settings(study):
        write_thresholds(study, chosen)
    _say_written(study, chosen)


def _write_tuned(study: Study, found: Calibration) -> None:
    """Put thresholds that win on held-out units into study.toml, and their basis into the store."""
    from evenhand.reporting.thresholds import write_tuned_thresholds

    chosen = found.thresholds
    if not chosen:
        say("calibrate.unchanged")
        return
    asked = {"objective": found.objective, "reference": found.reference}
    with changing_settings(study):
        write_tuned_thresholds(study, found.found, chosen, **asked)
    _say_written(study, chosen)


def _say_written(study: Study, chosen: Mapping[str, Mapping[str, float]]) -> None:
    for rubric, thresholds in chosen.items():
        for grader, threshold in thresholds.items():
            note(study, "threshold", f"{rubric}, {grader}", f"{threshold:g}")
            say("calibrate.set", grader=grader, rubric=rubric, threshold=threshold)


def _improve_options(improve: Parser) -> None:
    improve.add_study()
    add(improve, "--rubric NAME", "the rubric it grades", required=True)
    add(improve, "--grader GRADER", "the old grader, as `grade` names it", required=True)
    add(
        improve,
        "--candidates DIR",
        "judge prompts to try in its place, one TOML file each (docs/graders.md)",
        Path,
    )
    add(
        improve,
        "--candidate GRADER",
        "another grader to try, asked as the old one is; repeatable",
        default=[],
        action="append",
    )
    add(
        improve,
        "--propose K",
        "have GEPA (an extra) propose up to K sets of instructions from what it got wrong",
        int,
        0,
    )
    add(improve, "--proposer GRADER", "the model that writes them (the old grader's)", default="")
    add(improve, "--draws K", "ask K times, as the grader is asked (1)", int, 1)
    add_asking(improve)
    add(
        improve,
        "--learn FILE",
        "write the units to learn from, with labels and reasons, and ask nothing",
        Path,
    )
    add_flag(improve, "--dry-run", "show what would be asked and cost; no network")
    add_pace(improve)


def _improve(arguments: argparse.Namespace) -> int:
    from evenhand.graders.running.runner import RunSummary
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
        print_run(RunSummary(tuple(found.graders), found.over_budget))
        print_lines(found.lines)
    print_stop("improve", found.stopped, [w for each in found.graders for w in each.warnings])
    return ended(over_budget=found.over_budget, stopped=bool(found.stopped))


def _write_learn(study: Study, options: ImproveOptions, file: Path) -> int:
    from evenhand.reporting.improving import labels_to_learn
    from evenhand.study.tables.formats import write_table

    found = labels_to_learn(study, options, done_by=operator())
    write_table(found, file)
    wrong = int((found["agrees"] == "no").sum())
    about = {"file": file, "count": len(found), "wrong": wrong, "old": options.grader}
    say("improve.wrote_learn", **about)
    return DONE


VERBS = (
    Verb("select", "rank graders: which one, for what, at what price", _select_options, _select),
    Verb(
        "gate",
        "exit 0 if a grader passes, 1 if not, 3 if we cannot tell: for CI",
        _gate_options,
        _gate,
    ),
    Verb("baseline", "has a grader changed since it was checked?", BASELINE_ACTIONS),
    Verb(
        "calibrate",
        "find the threshold at which probabilities match people",
        _calibrate_options,
        _calibrate,
    ),
    Verb(
        "improve",
        "find a better grader, and prove it on labels kept for that",
        _improve_options,
        _improve,
    ),
)
