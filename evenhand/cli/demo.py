"""`demo`: a whole study offline, from shipped pairs to a report. Everything in it is synthetic."""

from __future__ import annotations

import argparse
from pathlib import Path

from evenhand.cli.exits import DONE
from evenhand.cli.lead import print_lead_link
from evenhand.cli.reports import print_report
from evenhand.cli.terminal import console, progress_bar
from evenhand.cli.verbs import Parser, Verb
from evenhand.demo.studies import DEMOS, default_folder, is_demo, make_demo
from evenhand.texts import written


def _options(demo: Parser) -> None:
    demo.add_argument(
        "dir", type=Path, nargs="?", metavar="DIR", help="the study's folder (demo-study)"
    )
    demo.add_argument("--study", choices=DEMOS, default=DEMOS[0], help="which study (pairs)")
    app = demo.add_mutually_exclusive_group()
    app.add_argument("--port", type=int, metavar="P", help="port of the app (8501)")
    app.add_argument("--no-app", action="store_true", help="stop after the report")


def _demo(arguments: argparse.Namespace) -> int:
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
    say(written("demo.app"))
    print_lead_link(folder, f"http://localhost:{port}")
    return serve(folder, port=port)


VERBS = (
    Verb("demo", "make a synthetic study offline, report on it and open the app", _options, _demo),
)
