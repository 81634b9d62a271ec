"""Verbs that collect labels and responses: `annotate`, `grade`, `respond`, `audit injection`."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from evenhand.cli.main import (
    DONE,
    OVER_BUDGET,
    STOPPED,
    annotators_address,
    call_with,
    print_lead_link,
    refuse,
    study_of,
)
from evenhand.cli.terminal import console, print_lines, print_table, progress_bar, say, warn
from evenhand.errors import InputError
from evenhand.reporting.noting import note, note_edits
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand import graders
    from evenhand.study import Study


def grading_options(arguments: argparse.Namespace) -> graders.GradingOptions:
    """Return the grading options that several verbs have: the rubrics, and how to ask."""
    from evenhand.graders import GradingOptions
    from evenhand.rubrics import read_own_words

    values = dict.fromkeys(("orders", "shard", "units"))  # differ from the command line's
    values["rubrics"] = arguments.rubric
    values["prompt"] = arguments.prompt and read_own_words(arguments.prompt)
    return call_with(GradingOptions, arguments, **values)


def _check_batch(arguments: argparse.Namespace) -> None:
    """Raise InputError where `--cancel` has no batch to cancel."""
    if arguments.cancel:
        if not arguments.batch:
            raise InputError("--cancel ends batches; add --batch")
        reason = "asks nothing, so it cannot end batches; leave one of the two out"
        refuse(arguments, ["--dry-run"], reason)


def request_limits(arguments: argparse.Namespace) -> graders.RequestLimits:
    """Return the limits of a run, from the options on speed and budget."""
    from evenhand.graders import RequestLimits

    return call_with(RequestLimits, arguments)


def run_annotate(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app import serve
    from evenhand.annotate_app.sites import check_names, studies_in, study_path
    from evenhand.local_page import app_port
    from evenhand.reporting.new_study import start_study
    from evenhand.study.settings.study_toml import START, read_config

    port = app_port(arguments.port)
    address, host_name = annotators_address(arguments, port)
    address = address.rstrip("/")
    folders = studies_in(arguments.dirs)
    if len(folders) == 1 and not {*folders[0].glob("*")} - {folders[0] / START}:
        folders = [start_study(folders[0])]
        say("several.start", folder=folders[0].parent)
    named_folders = [folder.resolve() for folder in arguments.dirs]
    path = study_path(arguments.path) if arguments.path else ""
    has_one_study = len(named_folders) == 1 and folders == named_folders
    if path or not has_one_study:  # `--url` may have the same path, and no other
        address = address.removesuffix(path)
        if url_path := urlsplit(address).path:
            fields = {"url": arguments.url, "address": address.removesuffix(url_path)}
            raise InputError(written("several.url_path", **fields))
    if has_one_study:
        (folder,) = arguments.dirs
        prepare_serving(folder, arguments.url or "", address, path)
        say("several.served", name=folders[0].name, address=f"{address}{path}/")
        return serve(folder, port=port, public_host=host_name, path=path)
    refuse(arguments, ["--path"], "is of one study; several have their folders' names")
    check_names(folder.name for folder in folders if folder in named_folders)
    study_by_secret: dict[bytes, str] = {}
    for folder in list(folders):
        try:
            if read_config(folder).oidc:
                raise InputError(written("several.single_sign_on", folder=folder, name=folder.name))
            study_url = f"{address}{study_path(folder.name)}/"
            if folder.name != START:
                say("several.served", name=folder.name, address=study_url)
            secret = prepare_serving(folder, arguments.url or "", address, f"/{folder.name}")
        except InputError as error:
            fields = {"name": folder.name, "error": str(error)}
            if folder in named_folders:
                raise InputError(written("several.of_study", **fields)) from None
            warn("terminal.note", note=written("several.left_out", **fields))
            folders.remove(folder)
            continue
        if (copied := study_by_secret.setdefault(secret, folder.name)) != folder.name:
            raise InputError(written("several.copies", name=folder.name, other=copied))
    check_names(folder.name for folder in folders)
    if not folders:
        raise InputError(written("several.none_left"))
    return serve(folders, port, host_name)


def prepare_serving(folder: Path, url: str, address: str, path: str) -> bytes:
    """Check a study before it is served, behind a proxy if there is a `url`; print its notes and
    the lead's link, and return the secret that signs its links. Raises InputError where the study
    cannot be served, so that the error is not first seen in the browser.
    """
    from evenhand.annotate_app.languages import offered
    from evenhand.study import open_study
    from evenhand.study.access import check_signing, client_secret
    from evenhand.study.keeping import serving_notes
    from evenhand.study.workspace import study_secret

    with open_study(folder) as study:
        study.check_labelled_subjects()
        offered(study.config.annotation)
        if oidc := study.config.oidc:
            client_secret(oidc)
            if urlsplit(oidc.address).path != path:
                fields = {"address": oidc.address, "path": path or "/"}
                raise InputError(written("several.other_address", **fields))
        if study.config.prolific and study.config.prolific.signed_for:
            check_signing()
        notes = study.edited_rubrics()
        note_edits(study)
        if url:
            notes += serving_notes(study, url)
        secret = study_secret(study.store)
    for sentence in notes:
        warn("terminal.note", note=sentence)
    print_lead_link(folder, address, path)
    return secret


def run_grade(arguments: argparse.Namespace) -> int:
    from evenhand.graders import WHOLE, Shard, forecast, grade
    from evenhand.reporting.suggestions import compare_texts
    from evenhand.rubrics import load_rubric

    _check_batch(arguments)
    shard = Shard.parse(arguments.shard) if arguments.shard else WHOLE
    options = grading_options(arguments)
    new_text = None
    if arguments.rubric_file:
        reason = "does not go with --rubric-file, which tries one text on held-out pairs of the "
        refuse(arguments, ["--rubric", "--scope", "--batch"], f"{reason}sample")
        new_text = load_rubric(arguments.rubric_file)
    orders = ("ab", "ba") if arguments.orders == "both" else ("ab",)
    options = replace(options, orders=orders, text=new_text, shard=shard)
    batch = arguments.batch
    with study_of(arguments) as study:
        for sentence in study.edited_rubrics():
            warn("terminal.note", note=sentence)
        if arguments.dry_run:
            print_forecast(forecast(study, arguments.grader, options, batch=batch))
            return DONE
        with progress_bar("grading") as progress:
            batching = {"batch": batch, "cancel": arguments.cancel}
            limits = request_limits(arguments)
            summary = grade(study, arguments.grader, options, limits, progress, **batching)
        graders = [part.rater_id for part in summary.graders]
        for part in summary.graders:
            note(study, "grades", part.rater_id, f"new: {part.scored}")
        print_run(summary)
        print_coverage(study, graders)
        if new_text is not None:
            for grader in graders:
                print_lines(compare_texts(study, new_text, grader).sentences)
    code = print_end("grade", summary)
    if new_text is None:
        say("terminal.next", command=f"evenhand report {arguments.dir}")
    return code


def run_respond(arguments: argparse.Namespace) -> int:
    from evenhand.graders import RunSummary, respond

    system, file = "", arguments.system
    if file:  # sent with every blank of it
        if not file.is_file():
            raise InputError(f"there is no file {file}")
        try:
            system = file.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            raise InputError(f"{file.name} is not UTF-8 text; save it as UTF-8") from None
        if not system.strip():
            raise InputError(f"{file.name} is empty; write the system prompt into it")
    with study_of(arguments) as study, progress_bar("responding") as progress:
        values = {"study": study, "limits": request_limits(arguments), "progress": progress}
        summary = call_with(respond, arguments, system=system, **values)
        run = summary.run
        note(study, "responses", run.rater_id, f"new: {summary.added}")
    console().print(summary.line)
    stopped = [written("grade.respond_stopped", why=run.stopped)] if run.stopped else []
    return print_end("respond", RunSummary((run,), summary.over_budget), stopped)


def run_injection(arguments: argparse.Namespace) -> int:
    from evenhand.graders.injection import AuditOptions, audit_injection, forecast_audit
    from evenhand.reporting.analysing import audits_of

    _check_batch(arguments)
    grading = grading_options(arguments)
    options = AuditOptions(arguments.grader, arguments.units, grading, arguments.attacks)
    batch = arguments.batch
    with study_of(arguments) as study:
        if arguments.dry_run:
            print_forecast(forecast_audit(study, options, batch=batch))
            return DONE
        with progress_bar("auditing") as progress:
            batching = {"batch": batch, "cancel": arguments.cancel}
            limits = request_limits(arguments)
            summary = audit_injection(study, options, limits, progress, **batching)
        (part,) = summary.graders
        note(study, "grades", part.rater_id, f"injection audit, new: {part.scored}")
        print_run(summary)
        for audit in audits_of(study, part.rater_id):
            console().print(audit.sentence(study.config.decision.injection))
    code = print_end("audit injection", summary)
    say("terminal.next", command=f"evenhand report {arguments.dir}")
    return code


def print_run(summary: graders.RunSummary) -> None:
    """Print a table of the run: grades known before, asked for and received, by grader."""
    from evenhand.graders.replies import REPEATED

    rows = []
    for part in summary.graders:
        counts = part.already, part.planned, part.scored, part.unscored.total(), part.unasked
        rows.append([part.rater_id, *map(str, counts)])
    print_table(["grader", "known before", "to ask", "labelled", "unscored", "left"], rows)
    for part in summary.graders:
        for reason, count in sorted(part.unscored.items()):
            say("grade.unscored", grader=part.rater_id, count=count, reason=reason)
        if missing := part.without_probabilities:
            key = "some_without" if missing < part.scored else "all_without"
            numbers = {"missing": missing, "labelled": part.scored}
            say(f"grade.{key}", grader=part.rater_id, **numbers)
        if repeats := part.unscored[REPEATED]:
            say("grade.repeated", grader=part.rater_id, repeats=repeats)


def print_coverage(study: Study, raters: Sequence[str]) -> None:
    """Print coverage and total cost by grader and rubric, and the models that answered."""
    from evenhand.reporting.analysing import counted, several_models
    from evenhand.study.store.store import grade_totals, models_that_answered

    totals = grade_totals(study.store)
    totals = totals[totals["rater_id"].isin(raters)]
    rows = []
    for row in totals.to_dict("records"):
        n_asked = row["labelled"] + row["unscored"]
        cost, cached = row["cost_usd"], row["cached_share"]
        numbers = [
            f"{row['labelled'] / n_asked:.1%}",
            str(n_asked),
            "-" if math.isnan(cost) else f"${cost:.4f}",
            "-" if math.isnan(cached) else f"{cached:.0%}",
        ]
        rows.append([str(row["rater_id"]), str(row["rubric"]), *numbers])
    print_table(["grader", "rubric", "coverage", "grades", "cost", "input from cache"], rows)
    answered = models_that_answered(totals)
    for grader, models in answered.items():
        say("grade.answered", grader=grader, models=counted(models))
    print_warnings(several_models(answered))


def print_end(verb: str, run: graders.RunSummary, stopped: Sequence[str] = ()) -> int:
    """Print a run's warnings and why it ended early, if it did, and return the exit code. `stopped`
    are sentences to print in place of the run's own reasons.
    """
    print_warnings([warning for part in run.graders for warning in part.warnings])
    reasons = stopped or run.stopped
    for sentence in reasons:
        console(stderr=True).print(f"evenhand {verb}: {sentence}")
    if run.over_budget:
        return OVER_BUDGET
    return STOPPED if reasons else DONE


def print_warnings(sentences: Sequence[str]) -> None:
    """Print each warning once."""
    for sentence in dict.fromkeys(sentences):
        warn("terminal.warning", text=sentence)


def print_forecast(forecasts: Sequence[graders.GraderForecast], steps: Sequence[str] = ()) -> None:
    """Print the numbers of requests and costs of a run. `steps` are names of the forecasts where
    these are of several kinds; without them, print also warnings and one prompt of each grader.
    """
    rows, bases = [], dict[str, list[str]]()
    for part, step in zip_longest(forecasts, steps):
        prices = ["unknown"] * 3
        if part.cost is not None:
            min_cost, max_cost = part.cost
            prices = [f"${usd:.2f}" for usd in (min_cost, part.expected or 0.0, max_cost)]
        names = [step, part.rater_id] if step else [part.rater_id]
        rows.append([*names, str(part.already), str(part.new), *prices])
        bases.setdefault(part.basis, []).append(part.rater_id)
    first_columns = ["step", "model"] if steps else ["grader"]
    counts, costs = ["known before", "to ask"], ["cost at least", "expected", "cost at most"]
    print_table([*first_columns, *counts, *costs], rows)
    for basis, raters in bases.items():
        if basis:
            console().print(f"{', '.join(raters)}: {basis}")
    for part in forecasts:
        if part.sample:
            console().print(f"\n{written('grade.first_prompt', grader=part.rater_id)}\n")
            console().print(part.sample.system)
            console().print(f"\n{written('grade.user_part')}\n")
            console().print(part.sample.user)
    if not steps:
        print_warnings([sentence for part in forecasts for sentence in part.warnings])
