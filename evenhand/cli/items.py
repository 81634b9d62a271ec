"""`label`: from a file of items to people who rate them, in one command; and the options that say
what an items file holds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.lead import print_lead_link
from evenhand.cli.noting import note, note_edits, operator
from evenhand.cli.terminal import console, print_line
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.item_study import ItemStudy

ITEM_OPTIONS = (
    *("--show", "--subject", "--cluster", "--judge", "--each-turn", "--sheet"),
    *("--question", "--options", "--scale", "--several", "--steps"),
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
        "--steps", type=int, metavar="N", help="2, 3 or 5 steps from one answer to the other (3)"
    )


def check_numbers(raters: int, seed: int) -> None:
    """Raise InputError for a number of annotators or a seed that a new study cannot have."""
    from evenhand.study.settings.annotation import MOST_RATERS

    if not 1 <= raters <= MOST_RATERS:
        raise InputError(f"--raters must be 1 to {MOST_RATERS:,}, not {raters:,}")
    if seed < 0:
        raise InputError("--seed must be 0 or more")


def read_item_study(path: Path, arguments: argparse.Namespace) -> ItemStudy:
    """Read the items file that the command line is about. Raises InputError where it is bad, or
    where it is not said what to ask.
    """
    from evenhand.reporting.item_study import ItemOptions, item_study

    options = ItemOptions(
        show=_listed(arguments.show),
        subject=_listed(arguments.subject),
        cluster=arguments.cluster or "",
        judge=arguments.judge or "",
        sheet=arguments.sheet or "",
        each_turn=arguments.each_turn,
        rubrics=arguments.rubric or (),
        question=arguments.question or "",
        options=_listed(arguments.options),
        scale=arguments.scale or "",
        several=arguments.several,
        steps=arguments.steps,
    )
    return item_study(path, options, _shown_columns if sys.stdin.isatty() else None)


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
    label.add_argument("--port", type=int, metavar="P", help="port on this machine (8501)")
    label.add_argument(
        "--no-browser", action="store_true", help="only print the links, do not open a page"
    )


def _label(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app.serve import app_port, open_when_up, serve
    from evenhand.study import open_study
    from evenhand.study.access.admission import make_invites

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    if (folder / "study.toml").is_file():
        _check_same(folder, arguments)
        console().print(written("items.goes_on", folder=folder))
    else:
        _make(folder, arguments)
    with open_study(folder) as study:
        places = study.config.annotation.raters_per_unit
        raters = [f"rater-{n}" for n in range(1, places + 1)]
        invites = make_invites(study, raters, hours=168.0)
        note(study, "invite", "", f"made: {len(raters)}")
    links = [f"http://localhost:{port}?invite={each.token}" for each in invites]
    console().print(written("items.links" if len(links) > 1 else "items.link"))
    for link in links:
        print_line(link)
    print_lead_link(folder, f"http://localhost:{port}")
    if not arguments.no_browser:
        open_when_up(links[0], port)
    return serve(folder, port=port)


def _check_same(folder: Path, arguments: argparse.Namespace) -> None:
    """Raise InputError where the study that is there is of other items, or asks something else."""
    from evenhand.study import open_study

    if not arguments.question and not arguments.rubric:  # only the file is named
        refuse(
            arguments,
            [*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"],
            _settled(folder),
        )
        return
    made = read_item_study(arguments.file, arguments)
    with open_study(folder) as study:
        config, pairs = study.config, study.store.pairs()
        asked = {rubric.hash for rubric in study.rubrics.values()}
    same = asked == {rubric.hash for rubric in made.rubrics}
    same &= pairs.drop(columns="sample_position").equals(made.items.pairs.reset_index(drop=True))
    same &= arguments.sample in (None, config.sample.pairs) and arguments.seed == config.seed
    same &= arguments.raters in (None, config.annotation.raters_per_unit)
    if not same:
        raise InputError(f"what is asked for {_settled(folder)}")


def _settled(folder: Path) -> str:
    return f"is settled in {folder}, which is there already; leave it out, or name a new folder"


def _make(folder: Path, arguments: argparse.Namespace) -> None:
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan

    raters = 1 if arguments.raters is None else arguments.raters
    check_numbers(raters, arguments.seed)
    made = read_item_study(arguments.file, arguments)
    plan = StudyPlan(
        items=made.items,
        rubrics=made.rubrics,
        sample=arguments.sample,
        stratify=_listed(arguments.stratify),
        seed=arguments.seed,
        raters_per_unit=raters,
    )
    create_study(folder, plan)
    with open_study(folder) as study:
        note(study, "study", study.folder.name)
        note_edits(study, operator())
        judged = made.import_judge(study, arguments.file.name)
        print_items(made, judged, folder, study.config.sample.pairs)


def print_items(made: ItemStudy, judged: int, folder: Path, sampled: int) -> None:
    """Print what the columns were taken for, and what was made of them."""
    from evenhand.study.prompts.pairs import prompts_noun

    say = console().print
    for told in made.notes:
        say(told)
    taken = "; ".join(f"{role}: {columns}" for role, columns in made.taken)
    say(written("items.taken", taken=taken))
    noun = prompts_noun(made.items.pairs)
    say(
        written(
            "items.made", folder=folder, sampled=sampled, total=len(made.items.pairs), noun=noun
        )
    )
    if made.judged is not None:
        say(written("items.judged", count=judged, rater=made.judged["rater_id"].iloc[0]))


VERBS = (Verb("label", "have people rate the rows of a file, in one step", _label_options, _label),)
