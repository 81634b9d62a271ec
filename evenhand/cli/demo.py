"""`demo`: a look, offline: a whole study, from shipped pairs to a report, in which everything is
synthetic; or a verdict on published labels.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from evenhand.cli.exits import DONE
from evenhand.cli.lead import print_lead_link
from evenhand.cli.options import add_analysis_options, given_options
from evenhand.cli.reports import print_report
from evenhand.cli.terminal import console, progress_bar, working
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.demo.published import PUBLISHED, finding, judge_published
from evenhand.demo.studies import DEMOS, default_folder, is_demo, make_demo
from evenhand.texts import written


def _options(demo: Parser) -> None:
    demo.add_argument(
        "dir", type=Path, nargs="?", metavar="DIR", help="the study's folder (demo-study)"
    )
    demo.add_argument(
        "--study",
        choices=(*DEMOS, *PUBLISHED),
        default=DEMOS[0],
        help=f"which study: synthetic ones, or published labels ({DEMOS[0]})",
    )
    app = demo.add_mutually_exclusive_group()
    app.add_argument("--port", type=int, metavar="P", help="port of the app (8501)")
    app.add_argument("--no-app", action="store_true", help="make the report, open nothing")


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.study in PUBLISHED:
        return _published(arguments)
    from evenhand.study import open_study

    say = console().print
    folder: Path = arguments.dir or default_folder(arguments.study)
    if is_demo(folder):
        say(written("demo.kept", folder=folder))
    else:
        with progress_bar("demo study") as progress:
            make_demo(arguments.study, folder, progress)
        say(written("demo.created", folder=folder))
    with open_study(folder) as study:
        print_report(study, folder / "report")
    say(written("demo.report", page=folder / "report" / "report.html"))
    if arguments.no_app:
        return DONE
    from evenhand.annotate_app.serve import serve
    from evenhand.local_page import app_port

    port = app_port(arguments.port)
    address = f"http://localhost:{port}"
    say(written("demo.app", address=address))
    print_lead_link(folder, address)
    return serve(folder, port=port)


def _published(arguments: argparse.Namespace) -> int:
    """Judge published labels as `evenhand check` does, with the options that are printed."""
    import webbrowser

    study = arguments.study
    refuse(arguments, ["--port"], f"is for a study with an app, and {study} is a file of labels")
    published, folder = PUBLISHED[study], arguments.dir or Path(study)
    check = Parser()
    add_analysis_options(check)
    scale = given_options(check.parse_args(published.options.split()))
    with working("reading the labels"):
        analysis = judge_published(study, scale, folder)
    say = console().print
    for line in finding(study, analysis):
        say(line)
    page = folder / "report.html"
    say(written("terminal.report", page=page))
    command = f"evenhand check {shlex.quote(str(folder / published.file))} {published.options}"
    say(written("terminal.next", command=command))
    if not arguments.no_app:
        webbrowser.open(page.resolve().as_uri())
    return DONE


VERBS = (
    Verb(
        "demo",
        "look offline at a synthetic study, or at published labels",
        _options,
        _demo,
    ),
)
