"""Commands that analyse labels: `report`, `check`, `demo` and `reproduce` write a report; `select`,
`plan`, `gate`, `baseline`, `calibrate` and `improve` support a decision on graders. Each function
`run_VERB` runs one of them with its parsed options. `main.call_with` calls a function with the
options named like its parameters; `main.refuse` raises InputError for options without effect.
"""

from __future__ import annotations

import json
import shlex
import sys
import webbrowser
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli import main
from evenhand.cli import ratings as runs  # limits and output of graders' runs
from evenhand.cli.terminal import confirms, print_line, print_lines, progress_bar, say, working
from evenhand.demo import PUBLISHED, analyse_published, default_folder, findings, is_demo, make_demo
from evenhand.errors import InputError
from evenhand.local_page import app_port, open_when_up
from evenhand.reporting.noting import changing_settings, note, note_in, operator
from evenhand.reporting.panel import last_lines
from evenhand.study.tables.files import atomic_write, check_folder
from evenhand.texts import escaped_json, written

if TYPE_CHECKING:
    from evenhand.reporting.gate import Gate
    from evenhand.reporting.selecting import Calibration
    from evenhand.study import Study


def run_report(arguments: Namespace) -> None:
    """Analyse a study, write its report and print the verdicts."""
    out: Path = arguments.out or arguments.dir / "report"
    for folder in filter(None, [out, arguments.figures]):
        check_folder(folder)
    with main.study_of(arguments) as study:
        print_report(study, out, arguments.figures, full=arguments.full)
        note(study, "export", "report.html")
    say("terminal.report", page=out / "report.html")


def print_report(
    study: Study, out: Path, figures: Path | None = None, *, full: bool = False
) -> None:
    """Write a study's report, and figures into a folder if one is named; print the verdicts."""
    from evenhand.analysis.report.files import PUBLISHED
    from evenhand.reporting.report import report_study

    with working("reading the labels") as on_stage:
        analysis = report_study(study, out, figures=figures, full=full, on_stage=on_stage)
    # An edited rubric may have excluded ratings.
    print_lines([*study.edited_rubrics(), *last_lines(analysis)])
    if study.config.published and (out / PUBLISHED).is_file():  # a design may have no figures
        say("reproduction.beside", file=out / PUBLISHED)
    if figures is not None:
        say("terminal.figures", folder=figures)


def run_check(arguments: Namespace) -> None:
    """Analyse a ratings file, print the panel, and write a report if `--out` names a folder."""
    file, out, figures = arguments.file, arguments.out, arguments.figures
    if arguments.full and out is None:
        raise InputError("--full unfolds the page that is written: name a folder for it with --out")
    for folder in filter(None, [out, figures]):
        check_folder(folder)
    if (Path(file) / "study.toml").is_file():
        raise InputError(f"{file} is a study's folder; write `evenhand report {file}`")
    if arguments.engine:
        main.refuse(arguments, ["--write-settings"], "needs the labels in one table")
    from evenhand.reporting.analysing import analyse_file

    # Estimates are verified against other libraries only when files are written, and not with an
    # engine, which has no units to compare.
    verify = not arguments.engine and bool(out or figures)
    analysis, context = main.run_analysis(file, arguments, analyse=analyse_file, verify=verify)
    from evenhand.analysis.report import write_figures, write_report
    from evenhand.reporting.library import Check
    from evenhand.reporting.ratings_file.declared import write_settings

    print_lines(Check(analysis, context).lines)
    if arguments.write_settings:
        say("reading.wrote_settings", file=write_settings(file, main.scale_options(arguments)))
    if out is not None:
        write_report(analysis, context, out, full=arguments.full)
        say("terminal.report", page=out / "report.html")
    if figures is not None:
        with working("drawing figures"):
            write_figures(analysis, context, figures)
        say("terminal.figures", folder=figures)


def run_demo(arguments: Namespace) -> int:
    """Make a synthetic study with a report and serve it, or analyse published labels."""
    if arguments.study in PUBLISHED:
        return _demo_of_published(arguments)
    from evenhand.study import open_study

    folder: Path = arguments.dir or default_folder(arguments.study)
    if is_demo(folder):
        say("demo.kept", folder=folder)
    else:
        with progress_bar("demo study") as progress:
            make_demo(arguments.study, folder, progress)
        say("demo.created", folder=folder)
    with open_study(folder) as study:
        print_report(study, folder / "report")
    say("demo.report", page=folder / "report" / "report.html")
    if arguments.no_app:
        return main.DONE
    from evenhand.annotate_app import serve

    port = app_port(arguments.port)
    address = f"http://localhost:{port}"
    say("demo.app", address=address)
    main.print_lead_link(folder, address)
    return serve(folder, port=port)


def _demo_of_published(arguments: Namespace) -> int:
    """Analyse published labels as `evenhand check` does, and print the equivalent command."""
    study = arguments.study
    reason = f"is for a study with an app, and {study} is a file of labels"
    main.refuse(arguments, ["--port"], reason)
    published, folder = PUBLISHED[study], arguments.dir or Path(study)
    check_parser = main.Parser()  # of `check`, for the options that the published labels need
    main.add_analysis_options(check_parser)
    scale = main.scale_options(check_parser.parse_args(published.options.split()))
    with working("reading the labels"):
        analysis = analyse_published(study, scale, folder)
    print_lines(findings(study, analysis))
    page = folder / "report.html"
    say("terminal.report", page=page)
    command = f"evenhand check {shlex.quote(str(folder / published.file))} {published.options}"
    say("terminal.next", command=command)
    if not arguments.no_app:
        webbrowser.open(page.resolve().as_uri())
    return main.DONE


def run_reproduce(arguments: Namespace) -> int:
    """Repeat a published study: print the forecast, ask for consent, collect, and report."""
    from evenhand.reproduction import Reproduction, collect, forecast_costs, prepare_study
    from evenhand.study.creation import PublishedStudy
    from evenhand.study.settings.analysis import shipped_studies

    if arguments.list or arguments.published is None:
        print_lines(PublishedStudy.read(name).summary_line for name in shipped_studies())
        return main.DONE
    published = PublishedStudy.read(arguments.published)
    folder: Path = arguments.dir or Path(f"{published.name}-study")
    reproduction = main.call_with(Reproduction, arguments, folder=folder, published=published)
    port = app_port(arguments.port)
    limits = runs.request_limits(arguments)
    with working(written("reproduce.pricing")):
        forecast = forecast_costs(reproduction, limits, ready=not arguments.dry_run)
    steps = [*forecast.steps, ("whole", forecast.total)]
    step_names = [written(f"reproduce.{name}") for name, _ in steps]
    runs.print_forecast([grader_forecast for _, grader_forecast in steps], step_names)
    print_lines(forecast.lines)
    budget, expected = limits.budget, forecast.total.expected
    if budget is not None and expected is not None and expected + forecast.spent > budget:
        say("reproduce.over", budget=budget)
    if arguments.dry_run:
        return main.DONE
    if not (arguments.yes or confirms(limits.budget)):
        say("reproduce.declined")
        return main.DONE
    with prepare_study(reproduction) as study:
        collected = collect(study, reproduction, limits, progress_bar)
        print_lines(collected.lines)
        if rater_ids := [grader.rater_id for grader in collected.grades.graders]:
            runs.print_run(collected.grades)
            runs.print_coverage(study, rater_ids)
        if study.ratings().empty:
            say("reproduce.nothing")
        else:
            print_report(study, folder / "report")
            note(study, "export", "report.html")
            say("terminal.report", page=folder / "report" / "report.html")
    code = runs.print_end("reproduce", collected.run)
    has_terminal = sys.stdin.isatty() and sys.stdout.isatty()  # a script must not wait for the app
    wants_app = arguments.raters is not None and not arguments.no_app
    if code == main.DONE and wants_app and has_terminal:
        from evenhand.annotate_app import serve

        address = f"http://localhost:{port}"
        runs.prepare_serving(folder, url="", address=address, path="")
        say("reproduce.page", address=address)
        say("reproduce.again")
        open_when_up(address, port)
        serve(folder, port=port)  # until it is stopped
    say("terminal.next", command=f"evenhand annotate {folder}")
    say("reproduce.again")
    return code


def run_select(arguments: Namespace) -> None:
    """Rank graders by rubric, with verdicts and prices."""
    from evenhand.reporting.load import is_study
    from evenhand.reporting.selecting import Selection

    analysis, _ = main.run_analysis(arguments.source, arguments)
    study = arguments.source if is_study(arguments.source) else None
    print_lines(Selection(analysis, study=study).lines)


def run_plan(arguments: Namespace) -> None:
    """Plan the numbers of items and annotators, from a pilot or from assumptions."""
    from evenhand.reporting.planning import Assumptions, Target, plan_ahead, plan_from

    target = main.call_with(Target, arguments)
    assumption_options = main.shared_option_names("without a pilot")
    assumptions = main.call_with(Assumptions, arguments)
    if arguments.source is not None:
        reason = "is an assumption for planning without a pilot; leave it out"
        main.refuse(arguments, assumption_options, reason)
        analysis, _ = main.run_analysis(arguments.source, arguments, why=True)
        print_lines(plan_from(analysis, target).lines)
        return
    requirements = {"--margin", "--set", "--statistic", "--half-width"}  # need no pilot either
    pilot_options = {*arguments.given_options} - {*assumption_options} - requirements
    main.refuse(arguments, pilot_options, "is about the labels of a pilot; name its folder or file")
    arguments.unused = {*arguments.unused, "overlap", "min_coverage"}  # settings for labels
    with working("simulating"):
        plan = plan_ahead(assumptions, target, main.settings_of(arguments))
    print_lines(plan.lines)


def run_gate(arguments: Namespace) -> int:
    """Check a grader against a rule or a baseline; return 0 if met, 1 if not, 3 if inconclusive."""
    from evenhand.reporting.gate import gate, junit_xml, summary_markdown
    from evenhand.reporting.load import is_study

    try:
        if main.named_engine(arguments, arguments.source):
            reason = "needs the labels in one table; leave --engine out"
            main.refuse(arguments, ["--baseline"], reason)
        elif is_study(arguments.source):
            main.refuse_file_options(arguments, allowed=["--rubric"])
        with working("reading the labels") as on_stage:
            scale = main.scale_options(arguments)
            result = main.call_with(gate, arguments, options=scale, on_stage=on_stage)
        if arguments.junit is not None:
            atomic_write(arguments.junit, junit_xml(result))
        if arguments.summary is not None:
            atomic_write(arguments.summary, summary_markdown(result).encode())
    except InputError as error:
        if arguments.json:
            print_line(json.dumps({"schema": 1, "outcome": "error", "error": str(error)}))
        raise
    _print_gate(arguments, result)
    return result.exit_code


def _print_gate(arguments: Namespace, result: Gate) -> None:
    """Print the outcome of a gate or of a comparison, as JSON or as sentences."""
    if arguments.json:
        print_line(escaped_json(json.dumps(result.as_dict(), ensure_ascii=False, allow_nan=False)))
    else:
        print_lines([*result.notes, *result.lines])


def run_baseline_save(arguments: Namespace) -> None:
    """Save annotators' labels and a grader's grades as the grader's baseline."""
    from evenhand.analysis.verdicts.versions import margin_of
    from evenhand.reporting.gate import baseline_of, write_baseline
    from evenhand.reporting.load import load

    if arguments.source.is_dir():
        main.refuse_file_options(arguments, allowed=["--rubric"])
    with working("reading the labels"):
        dataset = load(arguments.source, main.scale_options(arguments))
        # From a file only the rubric's rows were read, perhaps under another name.
        rubric = arguments.rubric if arguments.source.is_dir() else None
        baseline = baseline_of(dataset, arguments.grader, rubric)
    write_baseline(baseline, arguments.file)
    if arguments.source.is_dir():
        note_in(arguments.source, "export", arguments.file.name)
    print_lines(dataset.notes)
    if dataset.synthetic:
        say("terminal.synthetic")
    names = {"grader": dataset.name_of(baseline.grader), "file": arguments.file}
    say("baseline.saved", units=baseline.n_units, people=baseline.n_people, **names)
    say("baseline.rule", margin=margin_of(baseline.decision, baseline.analysis))


def run_baseline_compare(arguments: Namespace) -> None:
    """Compare a grader's present grades with its baseline."""
    from evenhand.reporting.gate import compare

    if arguments.source.is_dir():
        main.refuse_file_options(arguments, allowed=["--rubric"])
    with working("reading the labels"):
        options = {"baseline": arguments.file, "options": main.scale_options(arguments)}
        result = main.call_with(compare, arguments, **options)
    _print_gate(arguments, result)


def run_calibrate(arguments: Namespace) -> None:
    """Tune graders' thresholds on probabilities; with `--write`, write them to study.toml."""
    from evenhand.reporting.load import from_study
    from evenhand.reporting.selecting import calibrate

    if (threshold := arguments.threshold) is not None:
        if not (arguments.write and arguments.rubric and arguments.grader):
            raise InputError("--threshold needs --write, --rubric and --grader")
        if not 0 <= threshold <= 1:
            raise InputError(f"--threshold is {threshold:g}; it must lie between 0 and 1")
    with main.study_of(arguments) as study:
        with working("reading the labels") as on_stage:
            dataset = from_study(study)
            calibration = main.call_with(calibrate, arguments, dataset=dataset, on_stage=on_stage)
        print_lines(calibration.lines)
        if arguments.write:
            _write_thresholds(study, arguments, calibration)


def _write_thresholds(study: Study, arguments: Namespace, calibration: Calibration) -> None:
    """Write the threshold given, or those selected on held-out units, into study.toml."""
    from evenhand.reporting.selecting import write_thresholds, write_tuned_thresholds

    is_by_hand = arguments.threshold is not None
    thresholds_by_rubric = calibration.thresholds
    if is_by_hand:
        thresholds_by_rubric = {arguments.rubric: {arguments.grader: arguments.threshold}}
    if not thresholds_by_rubric:
        say("calibrate.unchanged")
        return
    with changing_settings(study):
        if is_by_hand:
            write_thresholds(study, thresholds_by_rubric)
        else:
            write_tuned_thresholds(study, calibration)
    for rubric, thresholds in thresholds_by_rubric.items():
        for grader, threshold in thresholds.items():
            note(study, "threshold", f"{rubric}, {grader}", f"{threshold:g}")
            say("calibrate.set", grader=grader, rubric=rubric, threshold=threshold)


def run_improve(arguments: Namespace) -> int:
    """Find a better grader and test it; with `--learn` or `--dry-run`, only prepare that."""
    from evenhand.reporting import improving
    from evenhand.study.tables.formats import write_table

    renamed = {"other_graders": arguments.candidate, "proposals": arguments.propose}
    grading = runs.grading_options(arguments)
    options = main.call_with(improving.ImproveOptions, arguments, grading=grading, **renamed)
    with main.study_of(arguments) as study:
        if arguments.learn:
            units = improving.labels_to_learn(study, options, done_by=operator())
            write_table(units, arguments.learn)
            n_wrong = int((units["agrees"] == "no").sum())
            fields = {"file": arguments.learn, "count": len(units), "wrong": n_wrong}
            say("improve.wrote_learn", **fields, old=options.grader)
            return main.DONE
        if sentence := improving.provable(study, options):
            print_lines([sentence])
        if arguments.dry_run:
            runs.print_forecast(improving.forecast_improving(study, options))
            say("improve.dry_run")
            return main.DONE
        with progress_bar("improving") as progress:
            limits = runs.request_limits(arguments)
            improved = improving.improve(study, options, limits, progress, done_by=operator())
        detail = f"improve {improved.rubric}: {improved.outcome}"
        note(study, "grades", improved.old.rater_id, detail)
        runs.print_run(improved.run)
        print_lines(improved.lines)
    return runs.print_end("improve", improved.run)
