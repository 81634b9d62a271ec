"""`label`: from a file of items to people who rate them, in one command; and the options that say
what an items file holds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.lead import print_lead_link
from evenhand.cli.noting import note, note_edits, operator
from evenhand.cli.terminal import console, print_line
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.exchange.readers.items import ItemTable
    from evenhand.rubrics import Rubric
    from evenhand.study import Study
    from evenhand.study.prompts.items import Items

ASKED_OPTIONS = ("--options", "--scale", "--several", "--steps")
ITEM_OPTIONS = (
    *("--show", "--subject", "--cluster", "--judge", "--each-turn", "--question"),
    *ASKED_OPTIONS,
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


@dataclass(frozen=True)
class ItemStudy:
    """What an items file becomes: items, the rubrics that are asked, and the judge's ratings."""

    items: Items
    rubrics: list[Rubric]
    judged: pd.DataFrame | None
    taken: list[tuple[str, str]]
    notes: Sequence[str] = ()

    def import_judge(self, study: Study, source: str) -> int:
        """Store the judge's labels as a grader's; return how many."""
        if self.judged is None:
            return 0
        from evenhand.study.lead.imports import import_ratings

        return import_ratings(study, self.judged, source)[0]


def item_study(path: Path, arguments: argparse.Namespace) -> ItemStudy:
    """Read the items file that the command line is about. Raises InputError where it is bad, or
    where it is not said what to ask.
    """
    from evenhand.exchange.readers.reading import read_items
    from evenhand.rubrics import asked_rubric, load_rubric
    from evenhand.study.prompts.comparisons import answer_columns, has_one_answer
    from evenhand.study.prompts.items import check_items_table, each_turn, item_columns, make_items

    if arguments.question and arguments.rubric:
        raise InputError(written("items.ask"))
    if not arguments.question:
        refuse(arguments, ASKED_OPTIONS, "goes with --question; a rubric has its own")
    named = [load_rubric(name) for name in arguments.rubric or ()]
    compares = any(rubric.unit == "comparison" for rubric in named)
    compared = compares or not (named or arguments.options or arguments.scale)
    held = read_items(path, arguments.judge or "", compared=compared)
    frame = held.table
    check_items_table(frame, path.name)
    answers = answer_columns(frame, path.name, _listed(arguments.show) or held.show)
    # What is asked of one response is not asked of two answers that stand beside it.
    of_one = has_one_answer(frame) and bool(named or arguments.options or arguments.scale)
    if compares or (answers and not of_one):
        return _comparison_study(path, held, answers, named, arguments)
    refuse(arguments, ["--steps"], "goes with two answers in a row, such as response_a, response_b")
    if not arguments.question and not named:
        raise InputError(written("items.ask"))
    taken = partial(
        item_columns,
        frame,
        path.name,
        subject=arguments.subject or "",
        cluster=arguments.cluster or held.cluster,
        judge=arguments.judge or "",
    )
    show = _listed(arguments.show) or held.show
    try:
        columns = taken(show=show)
    except InputError as fault:
        if show or not sys.stdin.isatty():
            raise
        columns = taken(show=_shown_columns(fault))
    if arguments.each_turn:
        frame, columns = each_turn(frame, columns, path.name)
    items = make_items(frame, columns, path.name, path.parent)
    if arguments.question:
        options, scale = _listed(arguments.options), arguments.scale or ""
        asked = {"options": options, "scale": scale, "several": arguments.several}
        rubrics = [asked_rubric(arguments.question, items.blocks, **asked)]
    else:
        kinds = {block.column: block.kind for block in items.blocks if block.kind}
        rubrics = [rubric.with_kinds(kinds) for rubric in named]
    judged = None
    if items.judged is not None:
        from evenhand.study.prompts.items import judge_ratings

        if len(rubrics) > 1:
            raise InputError("--judge goes with one rubric: a column holds the labels of one")
        judged = judge_ratings(items, rubrics[0], columns.judge, path.name)
    return ItemStudy(items, rubrics, judged, columns.said(), held.notes)


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


def _comparison_study(
    path: Path,
    held: ItemTable,
    answers: tuple[str, ...],
    named: list[Rubric],
    arguments: argparse.Namespace,
) -> ItemStudy:
    """Make comparisons of a file with two answers in a row, or with single answers to the same
    prompts; without a question or a rubric the one called preference is asked.
    """
    from evenhand.rubrics import asked_comparison, load_rubric
    from evenhand.rubrics.rendering import ANSWERS
    from evenhand.study.prompts.comparisons import (
        comparison_columns,
        comparison_judge,
        make_comparisons,
        paired_rows,
    )
    from evenhand.study.prompts.items import item_columns

    name, frame = path.name, held.table
    seldom = ["--options", "--scale", "--several", "--each-turn"]
    refuse(arguments, seldom, "goes with one answer in a row; --steps with two")
    show, subject = _listed(arguments.show), _listed(arguments.subject)
    if not answers:
        refuse(arguments, ["--judge"], "goes with two answers in a row; here a row has one")
        single = item_columns(frame, name, show=show, subject=arguments.subject or "")
        frame, answers = paired_rows(frame, single, name), ANSWERS
        show, subject = [each for each in single.show if each != single.response], []
        show += answers
    columns = comparison_columns(
        frame,
        name,
        (answers[0], answers[1]),
        show=show,
        subject=subject,
        cluster=arguments.cluster or "",
        judge=arguments.judge or "",
    )
    items = make_comparisons(frame, columns, name, path.parent)
    if arguments.question:
        steps = 3 if arguments.steps is None else arguments.steps
        rubrics = [asked_comparison(arguments.question, items.blocks, steps)]
    elif named:
        kinds = {block.column: block.kind for block in items.blocks if block.kind}
        rubrics = [rubric.with_kinds(kinds) for rubric in named]
        for rubric in rubrics:
            if "prompt" in rubric.variables and not columns.items.prompt:
                raise InputError(
                    f"{name}: rubric {rubric.name!r} shows a prompt, and no column is taken for "
                    "it; call one prompt, or leave --rubric out"
                )
    else:
        rubrics = [load_rubric("preference").showing(items.blocks)]
    judged = None
    if items.judged is not None:
        if len(rubrics) > 1:
            raise InputError("--judge goes with one rubric: a column holds the labels of one")
        judged = comparison_judge(items, columns, rubrics[0], name)
    return ItemStudy(items, rubrics, judged, columns.said(), held.notes)


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
    made = item_study(arguments.file, arguments)
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
    made = item_study(arguments.file, arguments)
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
