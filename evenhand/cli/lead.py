"""`lead`, `progress`, `pause`, `quality`, `exclude`, `adjudicate`: what the study's lead does.

Each is also a page of the app; see docs/leading.md.
"""

from __future__ import annotations

import argparse
import getpass
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.app_address import USUAL_ADDRESS, app_address
from evenhand.cli.terminal import console, print_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_verbs", "lead_link", "print_lead_link"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    lead = verbs.add_parser("lead", help="print a link to the lead's pages; it works once")
    lead.add_argument("dir", type=Path, metavar="DIR")
    lead.add_argument(
        "--url", default=USUAL_ADDRESS, metavar="URL", help=f"where the app is ({USUAL_ADDRESS})"
    )
    lead.set_defaults(run=_lead)

    progress = verbs.add_parser("progress", help="how far the labelling is, and what is left")
    progress.add_argument("dir", type=Path, metavar="DIR")
    progress.set_defaults(run=_progress)

    pause = verbs.add_parser("pause", help="hand out no further unit for now; also while it runs")
    pause.add_argument("dir", type=Path, metavar="DIR")
    pause.add_argument("--resume", action="store_true", help="hand out units again")
    pause.add_argument("--reason", default="", metavar="TEXT", help="kept with the decision")
    pause.set_defaults(run=_pause)

    quality = verbs.add_parser("quality", help="whose labels deserve a second look, and why")
    quality.add_argument("dir", type=Path, metavar="DIR")
    quality.add_argument("--out", type=Path, metavar="FILE", help="write the whole table")
    quality.add_argument(
        "--stop", action="store_true", help="exclude whom [quality] stop in study.toml names"
    )
    quality.set_defaults(run=_quality)

    exclude = verbs.add_parser("exclude", help="declare that a rater's labels do not count")
    exclude.add_argument("dir", type=Path, metavar="DIR")
    exclude.add_argument("rater", metavar="RATER")
    exclude.add_argument("--reason", required=True, metavar="TEXT", help="stands in the report")
    exclude.add_argument("--readmit", action="store_true", help="take the exclusion back")
    exclude.set_defaults(run=_exclude)

    adjudicate = verbs.add_parser("adjudicate", help="units that people disagree on; decisions")
    adjudicate.add_argument("dir", type=Path, metavar="DIR")
    adjudicate.add_argument(
        "--rule",
        choices=["any", "no_majority", "distance_2"],
        default="no_majority",
        help="what counts as a disagreement (no_majority)",
    )
    adjudicate.add_argument("--out", type=Path, metavar="FILE", help="the queue, to be filled in")
    adjudicate.add_argument("--decisions", type=Path, metavar="FILE", help="a queue filled in")
    adjudicate.add_argument("--by", metavar="NAME", help="whose decisions these are")
    adjudicate.set_defaults(run=_adjudicate)


def lead_link(folder: Path, url: str) -> str:
    """A link to the lead's pages of the app that stands at `url`."""
    from evenhand.study import open_study
    from evenhand.study.access.lead import LINK_PARAMETER, new_link_token

    address = app_address(url)
    with open_study(folder) as study:
        return f"{address}?{LINK_PARAMETER}={new_link_token(study.store)}"


def print_lead_link(folder: Path, url: str) -> None:
    """Say how to come to the lead's pages of the app that is about to start."""
    link = lead_link(folder, url)
    console().print(f"To lead the study (the link works once, within the hour): {link}")


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
        console().print(f"The study is paused; go on with: evenhand pause {arguments.dir} --resume")


def _pause(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import pause, resume

    with open_study(arguments.dir) as study:
        if arguments.resume:
            resume(study.store, arguments.reason, getpass.getuser())
            console().print("Units are handed out again.")
        else:
            pause(study.store, arguments.reason, getpass.getuser())
            console().print(
                "No further unit is handed out; answers on their way are still taken. "
                f"Go on with: evenhand pause {arguments.dir} --resume"
            )


def _quality(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.quality import stop_flagged, study_quality
    from evenhand.study import open_study
    from evenhand.study.tables.ratings import write_table

    with open_study(arguments.dir) as study:
        table = study_quality(study)
        stopped = stop_flagged(study, table) if arguments.stop else []
    shown = table[["rater_id", "answers", "median_seconds", "agreement", "drift", "flagged"]]
    _print_frame(
        shown, "Raters", {"median_seconds": "{:.0f}", "agreement": "{:.2f}", "drift": "{:+.2f}"}
    )
    for row in table.itertuples():
        if row.excluded:
            console().print(f"{row.rater_id} is excluded: {row.excluded}")
        elif row.reason:
            console().print(f"{row.rater_id}: {row.reason}")
    for rater in stopped:
        console().print(f"{rater} gets no further unit and is excluded.")
    if arguments.out is not None:
        write_table(table, arguments.out)
        console().print(f"{len(table)} raters -> {arguments.out}")


def _exclude(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.desk.oversight import exclude, readmit

    act = readmit if arguments.readmit else exclude
    with open_study(arguments.dir) as study:
        act(study.store, arguments.rater, arguments.reason, getpass.getuser())
    if arguments.readmit:
        console().print(f"{arguments.rater} counts again.")
    else:
        console().print(
            f"{arguments.rater} gets no further unit; the labels are kept, and the report shows "
            "its main figures with and without them."
        )


def _adjudicate(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError
    from evenhand.study import open_study
    from evenhand.study.lead.adjudication import adjudication_queue, import_decisions, queue_table
    from evenhand.study.tables.ratings import read_table, write_table

    if arguments.decisions and not arguments.by:
        raise InputError("say whose decisions these are: --by NAME")
    with open_study(arguments.dir) as study:
        if arguments.decisions:
            table = read_table(arguments.decisions)
            taken, left = import_decisions(study, arguments.by, table, arguments.decisions.name)
            console().print(f"{taken} decisions by {arguments.by}; {left} rows had no label.")
        queue = queue_table(adjudication_queue(study, arguments.rule))
    if arguments.out is not None:
        write_table(queue, arguments.out)
        console().print(f"{len(queue)} units to adjudicate -> {arguments.out}")
    elif queue.empty:
        console().print("Nothing is left to adjudicate.")
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
