"""Commands that collect labels and responses: `annotate`, `grade`, `respond`, `audit injection`.
Each function `run_VERB` runs one with its parsed options. Those at the end print a run's results.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evenhand import graders, rubrics
from evenhand.cli import main
from evenhand.cli.terminal import console, print_lines, print_table, progress_bar, say, warn
from evenhand.errors import InputError
from evenhand.reporting.noting import note, note_edits
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.study import Study


def grading_options(arguments: Namespace) -> graders.GradingOptions:
    """Return the grading options that several commands have: the rubrics, and how to ask."""
    prompt = rubrics.read_own_words(arguments.prompt) if arguments.prompt else None
    # These three keep their defaults (None): options of their names mean something else.
    defaults = {"orders": None, "shard": None, "units": None}
    values = {"rubrics": arguments.rubric, "prompt": prompt, **defaults}
    return main.call_with(graders.GradingOptions, arguments, **values)


def _check_batch(arguments: Namespace) -> None:
    """Raise InputError where `--cancel` has no batch to cancel."""
    if arguments.cancel:
        if not arguments.batch:
            raise InputError("--cancel ends batches; add --batch")
        reason = "asks nothing, so it cannot end batches; leave one of the two out"
        main.refuse(arguments, ["--dry-run"], reason)


def request_limits(arguments: Namespace) -> graders.RequestLimits:
    """Return the limits of a run, from the options on speed and budget."""
    return main.call_with(graders.RequestLimits, arguments)


def run_annotate(arguments: Namespace) -> int:
    """Serve the app in which annotators label one study or several, until it is stopped."""
    from evenhand.annotate_app import serve
    from evenhand.annotate_app.sites import check_names, studies_in, study_path
    from evenhand.local_page import app_port
    from evenhand.reporting.new_study import start_study
    from evenhand.study.settings.study_toml import START

    port = app_port(arguments.port)
    address, host_name = main.annotators_address(arguments, port)
    address = address.rstrip("/")
    folders = studies_in(arguments.dirs)
    # An empty folder gets the placeholder study START, or has that of an earlier start.
    if len(folders) == 1 and all(path.name == START for path in folders[0].glob("*")):
        folders = [start_study(folders[0])]
        say("several.start", folder=folders[0].parent)
    typed_folders = [folder.resolve() for folder in arguments.dirs]  # studies, or folders of them
    path = study_path(arguments.path) if arguments.path else ""
    has_one_study = len(typed_folders) == 1 and folders == typed_folders  # no folder of studies
    if path or not has_one_study:  # studies have paths, so that the address must have no other
        address = address.removesuffix(path)
        if url_path := urlsplit(address).path:
            fields = {"url": arguments.url, "address": address.removesuffix(url_path)}
            raise InputError(written("several.url_path", **fields))
    if has_one_study:
        (folder,) = arguments.dirs
        prepare_serving(folder, arguments.url or "", address, path)
        say("several.served", name=folders[0].name, address=f"{address}{path}/")
        return serve(folder, port=port, public_host=host_name, path=path)
    main.refuse(arguments, ["--path"], "is of one study; several have their folders' names")
    # Folders' names become paths: those that were typed must be valid before any study is opened,
    # of the others only those of studies that can be served.
    check_names(folder.name for folder in folders if folder in typed_folders)
    folders = _prepare_several(folders, typed_folders, arguments.url or "", address)
    check_names(folder.name for folder in folders)
    if not folders:
        raise InputError(written("several.none_left"))
    return serve(folders, port=port, public_host=host_name)


def _prepare_several(
    folders: Sequence[Path], typed_folders: Collection[Path], url: str, address: str
) -> list[Path]:
    """Prepare each study (`prepare_serving`), and return the folders of those that can be served.
    A study with a fault is left out with a warning. Raises InputError if its folder is one of those
    that the user typed, or if two studies are copies of one.
    """
    from evenhand.annotate_app.sites import study_path
    from evenhand.study.settings.study_toml import START, read_config

    servable: list[Path] = []
    study_by_secret: dict[bytes, str] = {}  # names; copies of one study have the same secret
    for folder in folders:
        name = folder.name
        try:
            if read_config(folder).oidc:
                raise InputError(written("several.single_sign_on", folder=folder, name=name))
            if name != START:
                say("several.served", name=name, address=f"{address}{study_path(name)}/")
            secret = prepare_serving(folder, url, address, f"/{name}")
        except InputError as error:
            fields = {"name": name, "error": str(error)}
            if folder in typed_folders:
                raise InputError(written("several.of_study", **fields)) from None
            warn("terminal.note", note=written("several.left_out", **fields))
            continue
        if (original := study_by_secret.setdefault(secret, name)) != name:
            raise InputError(written("several.copies", name=name, other=original))
        servable.append(folder)
    return servable


def prepare_serving(folder: Path, url: str, address: str, path: str) -> bytes:
    """Check a study before it is served, behind a proxy if there is a `url`; print its notes and
    the lead's link, and return the secret that signs its links. Raises InputError where the study
    cannot be served, so that the error is not first seen in the browser.
    """
    from evenhand.annotate_app.sites import check_settings
    from evenhand.study import open_study
    from evenhand.study.access import client_secret
    from evenhand.study.keeping import serving_notes
    from evenhand.study.workspace import study_secret

    with open_study(folder) as study:
        check_settings(study)
        if oidc := study.config.oidc:
            client_secret(oidc)  # for its InputError
            if urlsplit(oidc.address).path != path:
                fields = {"address": oidc.address, "path": path or "/"}
                raise InputError(written("several.other_address", **fields))
        notes = study.edited_rubrics()
        note_edits(study)
        if url:
            notes += serving_notes(study, url)
        secret = study_secret(study.store)
    for sentence in notes:
        warn("terminal.note", note=sentence)
    main.print_lead_link(folder, address, path)
    return secret


def run_grade(arguments: Namespace) -> int:
    """Have models label the study's items, or with `--dry-run` forecast the cost."""
    from evenhand.reporting.suggestions import compare_texts

    _check_batch(arguments)
    shard = graders.Shard.parse(arguments.shard) if arguments.shard else graders.WHOLE
    options = grading_options(arguments)
    new_text = None
    if arguments.rubric_file:
        reason = "does not go with --rubric-file, which tries one text on held-out pairs of the "
        main.refuse(arguments, ["--rubric", "--scope", "--batch"], f"{reason}sample")
        new_text = rubrics.load_rubric(arguments.rubric_file)
    orders = ("ab", "ba") if arguments.orders == "both" else ("ab",)
    options = replace(options, orders=orders, text=new_text, shard=shard)
    with main.study_of(arguments) as study:
        for sentence in study.edited_rubrics():
            warn("terminal.note", note=sentence)
        if arguments.dry_run:
            forecasts = graders.forecast(study, arguments.grader, options, batch=arguments.batch)
            print_forecast(forecasts)
            return main.DONE
        with progress_bar("grading") as progress:
            values = {"graders": arguments.grader, "options": options, "progress": progress}
            limits = request_limits(arguments)
            summary = main.call_with(graders.grade, arguments, study=study, limits=limits, **values)
        rater_ids = [grader.rater_id for grader in summary.graders]
        for grader in summary.graders:
            note(study, "grades", grader.rater_id, f"new: {grader.scored}")
        print_run(summary)
        print_coverage(study, rater_ids)
        if new_text is not None:
            for rater_id in rater_ids:
                print_lines(compare_texts(study, new_text, rater_id).sentences)
    code = print_end("grade", summary)
    if new_text is None:
        say("terminal.next", command=f"evenhand report {arguments.dir}")
    return code


def run_respond(arguments: Namespace) -> int:
    """Ask a model for its responses to the study's prompts."""
    system = _system_prompt(arguments.system) if arguments.system else ""
    with main.study_of(arguments) as study, progress_bar("responding") as progress:
        values = {"study": study, "limits": request_limits(arguments), "progress": progress}
        summary = main.call_with(graders.respond, arguments, system=system, **values)
        run = summary.run
        note(study, "responses", run.rater_id, f"new: {summary.added}")
    console().print(summary.line)
    stopped = [written("grade.respond_stopped", why=run.stopped)] if run.stopped else []
    return print_end("respond", graders.RunSummary((run,), summary.over_budget), stopped)


def _system_prompt(file: Path) -> str:
    """Return the text of a file, with all its white space. Raises InputError if it is empty."""
    if not file.is_file():
        raise InputError(f"there is no file {file}")
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is not UTF-8 text; save it as UTF-8") from None
    if not text.strip():
        raise InputError(f"{file.name} is empty; write the system prompt into it")
    return text


def run_injection(arguments: Namespace) -> int:
    """Test a grader against prompt injection, or with `--dry-run` forecast the cost."""
    from evenhand.graders.injection import AuditOptions, audit_injection, forecast_audit
    from evenhand.reporting.analysing import audits_of

    _check_batch(arguments)
    grading = grading_options(arguments)
    options = AuditOptions(arguments.grader, arguments.units, grading, arguments.attacks)
    with main.study_of(arguments) as study:
        if arguments.dry_run:
            print_forecast(forecast_audit(study, options, batch=arguments.batch))
            return main.DONE
        with progress_bar("auditing") as progress:
            values = {"study": study, "limits": request_limits(arguments), "progress": progress}
            summary = main.call_with(audit_injection, arguments, options=options, **values)
        (grader,) = summary.graders
        note(study, "grades", grader.rater_id, f"injection audit, new: {grader.scored}")
        print_run(summary)
        for audit in audits_of(study, grader.rater_id):
            console().print(audit.sentence(study.config.decision.injection))
    code = print_end("audit injection", summary)
    say("terminal.next", command=f"evenhand report {arguments.dir}")
    return code


def print_run(summary: graders.RunSummary) -> None:
    """Print a table of the numbers of grades by grader, then why some have no label."""
    from evenhand.graders.replies import REPEATED

    rows = []
    for grader in summary.graders:
        n_unscored = grader.unscored.total()
        counts = grader.already, grader.planned, grader.scored, n_unscored, grader.unasked
        rows.append([grader.rater_id, *map(str, counts)])
    print_table(["grader", "known before", "to ask", "labelled", "unscored", "left"], rows)
    for grader in summary.graders:
        for reason, count in sorted(grader.unscored.items()):
            say("grade.unscored", grader=grader.rater_id, count=count, reason=reason)
        if n_without := grader.without_probabilities:
            key = "some_without" if n_without < grader.scored else "all_without"
            say(f"grade.{key}", grader=grader.rater_id, missing=n_without, labelled=grader.scored)
        if repeats := grader.unscored[REPEATED]:
            say("grade.repeated", grader=grader.rater_id, repeats=repeats)


def print_coverage(study: Study, raters: Sequence[str]) -> None:
    """Print coverage and total cost by grader and rubric, and the models that answered."""
    from evenhand.reporting.analysing import counted, several_models
    from evenhand.study.store.store import models_that_answered

    totals = study.grade_totals()
    totals = totals[totals["rater_id"].isin(raters)]
    rows = []
    for row in totals.to_dict("records"):
        n_asked = row["labelled"] + row["unscored"]
        cost = "-" if math.isnan(row["cost_usd"]) else f"${row['cost_usd']:.4f}"
        if 0 < row["priced_units"] < row["units"]:  # of others it is not known
            cost = f"at least {cost}"
        cached = "-" if math.isnan(row["cached_share"]) else f"{row['cached_share']:.0%}"
        numbers = [f"{row['labelled'] / n_asked:.1%}", str(n_asked), cost, cached]
        rows.append([str(row["rater_id"]), str(row["rubric"]), *numbers])
    print_table(["grader", "rubric", "coverage", "grades", "cost", "input from cache"], rows)
    models_by_grader = models_that_answered(totals)
    for grader, models in models_by_grader.items():
        say("grade.answered", grader=grader, models=counted(models))
    print_warnings(several_models(models_by_grader))


def print_end(verb: str, run: graders.RunSummary, stopped: Sequence[str] = ()) -> int:
    """Print a run's warnings and why it ended early, if it did, and return the exit code. `stopped`
    are sentences to print in place of the run's own reasons.
    """
    print_warnings([warning for grader in run.graders for warning in grader.warnings])
    reasons = stopped or run.stopped
    for sentence in reasons:
        console(stderr=True).print(f"evenhand {verb}: {sentence}")
    if run.over_budget:
        return main.OVER_BUDGET
    return main.STOPPED if reasons else main.DONE


def print_warnings(sentences: Sequence[str]) -> None:
    """Print each warning once."""
    for sentence in dict.fromkeys(sentences):
        warn("terminal.warning", text=sentence)


def print_forecast(forecasts: Sequence[graders.GraderForecast], steps: Sequence[str] = ()) -> None:
    """Print the numbers of requests and costs of a run. `steps` are names of the forecasts where
    these are of several kinds; without them, print also warnings and one prompt of each grader.
    """
    rows = []
    graders_by_basis: dict[str, list[str]] = {}  # a basis is a sentence on how costs are estimated
    for forecast, step in zip_longest(forecasts, steps):  # step is None without steps
        costs = ["unknown"] * 3
        if forecast.cost is not None:
            at_least, at_most = forecast.cost
            costs = [f"${usd:.2f}" for usd in (at_least, forecast.expected or 0.0, at_most)]
        names = [step, forecast.rater_id] if step else [forecast.rater_id]
        rows.append([*names, str(forecast.already), str(forecast.new), *costs])
        graders_by_basis.setdefault(forecast.basis, []).append(forecast.rater_id)
    columns = ["step", "model"] if steps else ["grader"]
    columns += ["known before", "to ask", "cost at least", "expected", "cost at most"]
    print_table(columns, rows)
    for basis, raters in graders_by_basis.items():
        if basis:
            console().print(f"{', '.join(raters)}: {basis}")
    for forecast in forecasts:
        if forecast.sample:
            console().print(f"\n{written('grade.first_prompt', grader=forecast.rater_id)}\n")
            console().print(forecast.sample.system)
            console().print(f"\n{written('grade.user_part')}\n")
            console().print(forecast.sample.user)
    if not steps:
        print_warnings([warning for forecast in forecasts for warning in forecast.warnings])
