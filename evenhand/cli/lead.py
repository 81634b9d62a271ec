"""`lead`, `progress`, `pause`, `quality`, `exclude`, `adjudicate`: the tasks of a study's lead.

Each is also a page of the app; see docs/people.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import USUAL_ADDRESS, app_address
from evenhand.cli.terminal import console, print_table
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.reporting.noting import note, operator
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd


def _lead_options(lead: Parser) -> None:
    lead.add_study()
    lead.add_argument(
        "--url", default=USUAL_ADDRESS, metavar="URL", help=f"where the app is ({USUAL_ADDRESS})"
    )


def _progress_options(progress: Parser) -> None:
    progress.add_study()


def _pause_options(pause: Parser) -> None:
    pause.add_study()
    pause.add_argument("--resume", action="store_true", help="hand out units again")
    pause.add_argument("--reason", default="", metavar="TEXT", help="kept with the decision")


def _quality_options(quality: Parser) -> None:
    quality.add_study()
    quality.add_argument("--out", type=Path, metavar="FILE", help="write the whole table to a file")
    quality.add_argument(
        "--stop", action="store_true", help="exclude raters as [quality] stop in study.toml says"
    )


def _exclude_options(exclude: Parser) -> None:
    exclude.add_study()
    exclude.add_argument("rater", metavar="RATER")
    exclude.add_argument("--reason", required=True, metavar="TEXT", help="shown in the report")
    exclude.add_argument("--readmit", action="store_true", help="take the exclusion back")


def _adjudicate_options(adjudicate: Parser) -> None:
    adjudicate.add_study()
    adjudicate.add_argument(
        "--out", type=Path, metavar="FILE", help="write the queue, to be filled in"
    )
    adjudicate.add_argument(
        "--decisions", type=Path, metavar="FILE", help="import a completed queue"
    )
    adjudicate.add_argument("--by", metavar="NAME", help="who made these decisions")


def lead_link(folder: Path, url: str) -> str:
    """Return a link to the lead's pages of the app at `url`."""
    from evenhand.study import open_study
    from evenhand.study.access.lead_login import LINK_PARAMETER, new_link_token

    address = app_address(url)
    with open_study(folder) as study:
        note(study, "link")
        return f"{address}?{LINK_PARAMETER}={new_link_token(study.store)}"


def print_lead_link(folder: Path, url: str, path: str = "") -> None:
    """Print how to reach the lead's pages of the app that is about to start, at a `path` of its own
    where there are several.

    The link itself is printed on a terminal only: the output of a service is kept in a log.
    """
    if sys.stdout.isatty():
        console().print(written("terminal.lead_link", link=lead_link(folder, url + path)))
    else:
        at = f" --url {url}{path}" if path else ""
        console().print(written("terminal.lead_link_elsewhere", folder=f"{folder}{at}"))


def _lead(arguments: argparse.Namespace) -> None:
    console().print(lead_link(arguments.dir, arguments.url))


def _progress(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import oversight
    from evenhand.study.lead.progress import rater_progress, rubric_progress, time_left

    with open_study(arguments.dir) as study:
        rubrics, raters = rubric_progress(study), rater_progress(study)
        paused = oversight(study.store).paused
    _print_frame(rubrics, "By rubric", {"median_seconds": "{:.0f}", "hours_left": "{:.1f}"})
    if len(raters):
        _print_frame(raters, "By rater", {"median_seconds": "{:.0f}", "hours": "{:.1f}"})
    console().print(time_left(rubrics))
    if paused:
        console().print(written("progress.paused", folder=arguments.dir))


def _pause(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import pause, resume

    with open_study(arguments.dir) as study:
        if arguments.resume:
            resume(study.store, arguments.reason, operator())
            console().print(written("oversight.resumed"))
        else:
            pause(study.store, arguments.reason, operator())
            console().print(written("oversight.paused", folder=arguments.dir))


def _quality(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.quality import stop_flagged, study_quality
    from evenhand.study import open_study
    from evenhand.study.tables.formats import write_table

    with open_study(arguments.dir) as study:
        table = study_quality(study)
        stopped = stop_flagged(study, table) if arguments.stop else []
        if arguments.out is not None:
            write_table(table, arguments.out)
            note(study, "export", arguments.out.name)
    if table.empty:
        console().print(written("oversight.nobody"))
    else:
        shown = table[["rater_id", "answers", "median_seconds", "agreement", "drift", "flagged"]]
        formats = {"median_seconds": "{:.0f}", "agreement": "{:.2f}", "drift": "{:+.2f}"}
        _print_frame(shown, "Raters", formats)
    for row in table.to_dict("records"):
        rater, excluded, reason = row["rater_id"], row["excluded"], row["reason"]
        if excluded:
            console().print(written("oversight.is_excluded", rater=rater, reason=excluded))
        elif reason:
            console().print(written("oversight.flagged", rater=rater, reason=reason))
    for rater in stopped:
        console().print(written("oversight.stopped", rater=rater))
    if arguments.out is not None:
        console().print(written("oversight.wrote_raters", count=len(table), file=arguments.out))


def _exclude(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import exclude, readmit

    act = readmit if arguments.readmit else exclude
    with open_study(arguments.dir) as study:
        act(study.store, arguments.rater, arguments.reason, operator())
    said = "readmitted" if arguments.readmit else "excluded"
    console().print(written(f"oversight.{said}", rater=arguments.rater))


def _adjudicate(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.lead.adjudication import adjudication_queue, import_decisions, queue_table
    from evenhand.study.tables.formats import read_table, write_table

    if arguments.decisions and not arguments.by:
        raise InputError("say who made these decisions: add --by NAME")
    if not arguments.decisions:
        refuse(arguments, ["--by"], "says who made the decisions; add --decisions FILE")
    with open_study(arguments.dir) as study:
        if arguments.decisions:
            table = read_table(arguments.decisions)
            taken, left = import_decisions(study, arguments.by, table, arguments.decisions.name)
            said = written("oversight.decisions", count=taken, name=arguments.by, left=left)
            console().print(said)
            note(study, "import", arguments.decisions.name, f"decisions of {arguments.by}: {taken}")
        queue = queue_table(adjudication_queue(study))
        if arguments.out is not None:
            write_table(queue, arguments.out)
            note(study, "export", arguments.out.name)
    if arguments.out is not None:
        console().print(written("oversight.wrote_queue", count=len(queue), file=arguments.out))
    elif queue.empty:
        console().print(written("oversight.adjudicated"))
    else:
        _print_frame(queue[["unit_id", "rubric", "labels"]], "To adjudicate", {})


def _print_frame(frame: pd.DataFrame, title: str, formats: dict[str, str]) -> None:
    def cell(column: str, value: object) -> str:
        if value != value:  # NaN: not known
            return "-"
        return formats[column].format(value) if column in formats else str(value)

    print_table(
        [str(column).replace("_", " ") for column in frame],
        [
            [cell(str(column), value) for column, value in row.items()]
            for row in frame.to_dict("records")
        ],
        title=title,
    )


VERBS = (
    Verb("lead", "print a link to the lead's pages; it works once", _lead_options, _lead),
    Verb("progress", "how far the labelling is, and what is left", _progress_options, _progress),
    Verb("pause", "stop handing out units, or --resume", _pause_options, _pause),
    Verb("quality", "whose labels deserve a second look, and why", _quality_options, _quality),
    Verb("exclude", "leave a rater's labels out, with a reason", _exclude_options, _exclude),
    Verb(
        "adjudicate",
        "list units that annotators disagree on; import decisions",
        _adjudicate_options,
        _adjudicate,
    ),
)
