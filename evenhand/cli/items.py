"""`label`: from a file of items to people who rate them, in one command; and the options that say
what an items file holds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.lead import print_lead_link
from evenhand.cli.options import add_reach, reached_at
from evenhand.cli.terminal import console, print_line, print_lines
from evenhand.cli.verbs import Parser, Verb
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.item_study import Ask, ItemOptions

ITEM_OPTIONS = (
    *("--show", "--subject", "--cluster", "--judge", "--missing", "--each-turn"),
    "--sheet",
    *("--question", "--options", "--scale", "--several", "--level", "--steps"),
)


def add_item_options(parser: Parser) -> None:
    """Add the options that say what an items file holds, and what is asked."""
    parser.add_argument(
        "--show", metavar="COL,...", help="columns that raters read, in this order (by their names)"
    )
    parser.add_argument(
        "--subject", metavar="COL", help="column that names who answered (COL,COL of two answers)"
    )
    parser.add_argument(
        "--cluster", metavar="COL", help="column of rows that belong together (the same prompt)"
    )
    parser.add_argument(
        "--judge",
        metavar="COL",
        help="column, or judge in a tool's file, whose labels raters never see",
    )
    parser.add_argument(
        "--missing", metavar="VALUE,...", help="the judge's labels that say that there is none"
    )
    parser.add_argument(
        "--each-turn", action="store_true", help="rate each turn of the assistant by itself"
    )
    parser.add_argument("--sheet", metavar="NAME", help="the sheet of a workbook")
    parser.add_argument("--question", metavar="TEXT", help="what to ask, in place of a rubric")
    parser.add_argument("--options", metavar="A,B,...", help="its answers, such as yes,no")
    parser.add_argument(
        "--scale", metavar="1-5", help="or its answers from lowest to highest; 0-100 is a number"
    )
    parser.add_argument(
        "--several", action="store_true", help="any number of the options may apply"
    )
    parser.add_argument(
        "--level",
        choices=["nominal", "ordinal"],
        help="of the options (ordinal for whole numbers in a row, such as 1,2,3; else nominal)",
    )
    parser.add_argument(
        "--steps", type=int, metavar="N", help="2, 3 or 5 steps from one answer to the other (3)"
    )


def item_options(arguments: argparse.Namespace) -> ItemOptions:
    """Return what the command line says of an items file."""
    from evenhand.reporting.item_study import ItemOptions

    return ItemOptions(
        show=_listed(arguments.show),
        subject=_listed(arguments.subject),
        cluster=arguments.cluster or "",
        judge=arguments.judge or "",
        missing=_listed(arguments.missing),
        sheet=arguments.sheet or "",
        each_turn=arguments.each_turn,
        rubrics=arguments.rubric or (),
        question=arguments.question or "",
        options=_listed(arguments.options),
        scale=arguments.scale or "",
        several=arguments.several,
        level=arguments.level or "",
        steps=arguments.steps,
    )


def asking() -> Ask | None:
    """Return the question which columns raters read, if there is somebody to answer."""
    return _shown_columns if sys.stdin.isatty() else None


def _shown_columns(fault: InputError) -> list[str]:
    """Ask at the terminal which columns raters read, where their names do not say it. Raises the
    fault where nothing is answered.
    """
    console().print(str(fault))
    try:
        named = _listed(input(f"{written('items.which')} "))
    except EOFError:
        named = []
    if not named:
        raise fault
    return named


def _listed(text: str | None) -> list[str]:
    return [each.strip() for each in (text or "").split(",") if each.strip()]


def _label_options(label: Parser) -> None:
    label.add_argument("file", type=Path, metavar="FILE", help="a table, or the file of a tool")
    label.add_argument(
        "dir", type=Path, nargs="?", metavar="DIR", help="the study's folder (FILE-study)"
    )
    add_item_options(label)
    label.add_argument(
        "--rubric", action="append", metavar="NAME|FILE", help="a rubric, repeatable"
    )
    label.add_argument("--sample", type=int, metavar="N", help="how many items to label (250)")
    label.add_argument(
        "--stratify", metavar="COL,...", help="columns whose shares the sample keeps"
    )
    label.add_argument("--seed", type=int, default=1, metavar="N", help="fixes the sample (1)")
    label.add_argument("--raters", type=int, metavar="N", help="how many people label (1)")
    add_reach(label)
    label.add_argument(
        "--no-browser", action="store_true", help="only print the links, do not open a page"
    )


def _label(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app.serve import serve
    from evenhand.local_page import app_port, open_when_up
    from evenhand.reporting.labelling import LabelOptions, label_items

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    settled = {*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"}
    wanted = LabelOptions(
        items=item_options(arguments),
        sample=arguments.sample,
        stratify=_listed(arguments.stratify),
        seed=arguments.seed,
        raters=arguments.raters,
        given=[option for option in arguments.given if option in settled],
    )
    address, public = reached_at(arguments, port)
    found = label_items(arguments.file, folder, wanted, port=port, address=address, ask=asking())
    print_lines([*found.notes, found.links_heading])
    for link in found.links:
        print_line(link)
    if not public:
        print_lines([found.reach])
    print_lead_link(folder, address.rstrip("/"))
    if not arguments.no_browser:
        open_when_up(found.links[0], port)
    return serve(folder, port=port, public_host=public)


VERBS = (Verb("label", "have people rate the rows of a file, in one step", _label_options, _label),)
