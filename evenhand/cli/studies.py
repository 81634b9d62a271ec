"""`new`, `extend` and `label`: making a study, enlarging it, and having people rate a file of items
in one command.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.lead import print_lead_link
from evenhand.cli.options import add_reach, reached_at
from evenhand.cli.terminal import console, print_line, print_lines, print_table, say
from evenhand.cli.verbs import Parser, Verb, add, add_choice, add_flag, refuse, study_of
from evenhand.errors import InputError
from evenhand.reporting.noting import changing_settings, note
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.new_study import Ask, ItemOptions
    from evenhand.study import Study
    from evenhand.study.lead.progress import Workload

ITEM_OPTIONS = (
    *("--show", "--subject", "--cluster", "--judge", "--missing", "--each-turn"),
    "--sheet",
    *("--question", "--options", "--scale", "--several", "--level", "--steps"),
)


def add_item_options(parser: Parser) -> None:
    """Add the options that say what an items file holds, and what is asked."""
    add(parser, "--show COL,...", "columns that raters read, in this order (by their names)")
    add(parser, "--subject COL", "column that names who answered (COL,COL of two answers)")
    add(parser, "--cluster COL", "column of rows that belong together (the same prompt)")
    add(parser, "--judge COL", "column, or judge in a tool's file, whose labels raters never see")
    add(parser, "--missing VALUE,...", "the judge's labels that say that there is none")
    add_flag(parser, "--each-turn", "rate each turn of the assistant by itself")
    add(parser, "--sheet NAME", "the sheet of a workbook")
    add(parser, "--question TEXT", "what to ask, in place of a rubric")
    add(parser, "--options A,B,...", "its answers, such as yes,no")
    add(parser, "--scale 1-5", "or its answers from lowest to highest; 0-100 is a number")
    add_flag(parser, "--several", "any number of the options may apply")
    add_choice(
        parser,
        "--level",
        ["nominal", "ordinal"],
        "of the options (ordinal for whole numbers in a row, such as 1,2,3; else nominal)",
    )
    add(parser, "--steps N", "2, 3 or 5 steps from one answer to the other (3)", int)


def item_options(arguments: argparse.Namespace) -> ItemOptions:
    """Return what the command line says of an items file."""
    from evenhand.reporting.new_study import ItemOptions

    given = {**vars(arguments), "rubrics": arguments.rubric}
    given |= {name: _listed(given[name]) for name in ("show", "missing", "options")}
    names = [each.name for each in fields(ItemOptions)]
    return ItemOptions(**{name: given[name] for name in names if given.get(name) is not None})


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
    add(label, "file FILE", "a table, or the file of a tool", Path)
    add(label, "dir DIR", "the study's folder (FILE-study)", Path, nargs="?")
    add_item_options(label)
    add(label, "--rubric NAME|FILE", "a rubric, repeatable", action="append")
    add(label, "--sample N", "how many items to label (250)", int)
    add(label, "--stratify COL,...", "columns whose shares the sample keeps")
    add(label, "--seed N", "fixes the sample (1)", int, 1)
    add(label, "--raters N", "how many people label (1)", int)
    add_reach(label)
    add_flag(label, "--no-browser", "only print the links, do not open a page")


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


LABEL = (Verb("label", "have people rate the rows of a file, in one step", _label_options, _label),)


def _new_options(new: Parser) -> None:
    add(new, "dir DIR", "the study's folder; must not exist yet", Path)
    add(new, "--pairs FILE", "the paired prompts", Path)
    add(new, "--propositions FILE", "statements (id, text) instead of pairs", Path)
    add(new, "--items FILE", "rows to be rated as they are, instead of pairs", Path)
    add_item_options(new)
    add(new, "--wordings FILE", "wordings for the statements", Path)
    add(new, "--repeats K", "how often to ask each prompt (1)", int, 1)
    add(new, "--responses FILE", "the subjects' responses", Path)
    add(new, "--sample N", "pairs or prompts to be labelled (250)", int)
    add(
        new,
        "--stratify COL,...",
        "columns whose shares the sample keeps (template_category,main_category)",
    )
    add(new, "--seed N", "fixes the sample (1)", int, 1)
    add(
        new,
        "--rubric NAME|FILE",
        "a rubric of the study, repeatable (all that come with evenhand and fit)",
        action="append",
    )
    add(new, "--raters N", "annotators per unit (3)", int, 3)
    add(
        new,
        "--store URL",
        "a file beside study.toml, or a database's URL (study.db)",
        default="study.db",
    )


def _extend_options(extend: Parser) -> None:
    extend.add_study()
    add(extend, "--pairs K", "how many pairs to add", int, required=True)
    add_choice(
        extend,
        "--by",
        ["chance", "uncertainty"],
        "pick pairs at random (chance), or mainly those on which graders differ or are "
        "unsure; this saves labels if grades show what is hard (docs/evidence.md#decisions)",
        "chance",
    )


def _new(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.new_study import check_numbers, item_study, make_study
    from evenhand.rubrics import load_rubric
    from evenhand.study.creation import StudyPlan, usual_rubrics
    from evenhand.study.trust import remember

    check_numbers(arguments.raters, arguments.seed)
    strata = arguments.stratify
    made = None
    if arguments.items:
        made = item_study(arguments.items, item_options(arguments), asking())
    else:
        refuse(arguments, ITEM_OPTIONS, "goes with --items; pairs and propositions have rubrics")
    plan = StudyPlan(
        pairs=arguments.pairs,
        propositions=arguments.propositions,
        items=made.items if made else None,
        wordings=arguments.wordings,
        repeats=arguments.repeats,
        responses=arguments.responses,
        rubrics=made.rubrics
        if made
        else [load_rubric(name) for name in arguments.rubric]
        if arguments.rubric
        else usual_rubrics(propositions=arguments.propositions is not None),
        sample=arguments.sample,
        stratify=None
        if strata is None
        else [name.strip() for name in strata.split(",") if name.strip()],
        seed=arguments.seed,
        raters_per_unit=arguments.raters,
        store=arguments.store,
    )
    if "://" in arguments.store or "$" in arguments.store:
        remember(arguments.dir, [arguments.store])  # as it was typed
    judged = make_study(arguments.dir, plan, made)
    with study_of(arguments) as study:
        if made:
            print_lines(made.said(judged, arguments.dir, study.config.sample.pairs))
        describe_study(study)
    has_responses = arguments.responses is not None or made is not None
    has_cues = any(rubric.lexical for rubric in plan.rubrics)
    _next_steps(arguments.dir, has_responses=has_responses, has_cues=has_cues)


def _next_steps(folder: Path, *, has_responses: bool, has_cues: bool) -> None:
    steps = [] if has_responses else [f"import {folder} RESPONSES.jsonl"]
    grader = "baseline:lexical" if has_cues else "PROVIDER:MODEL"
    steps += [f"annotate {folder}", f"grade {folder} --grader {grader}", f"report {folder}"]
    indent = "\n      "
    say("terminal.next", command=indent.join(f"evenhand {s}" for s in steps))


def _extend(arguments: argparse.Namespace) -> None:
    from evenhand.study import extend_sample
    from evenhand.study.prompts.pairs import prompts_noun

    with study_of(arguments) as study:
        before = study.config.sample.pairs
        with changing_settings(study):
            size = extend_sample(study, arguments.pairs, arguments.by)
        note(study, "sample", "", f"pairs: {size}")
    with study_of(arguments) as study:
        noun = prompts_noun(study.store.pairs())
        say("new.grown", before=before, after=size, noun=noun)
        if arguments.by == "uncertainty":
            say("new.by_uncertainty", noun=noun)
        describe_study(study)


def describe_study(study: Study) -> None:
    """Print the sample and its size, the work it means, and what it can decide."""
    from evenhand.reporting.new_study import preview_of

    found = preview_of(study)
    noun = found.noun
    counts = {"sampled": found.sampled, "total": found.total}
    say("new.sampled", **counts, noun=noun, seed=study.config.seed)
    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    for column in study.config.sample.stratify:
        _print_shares(column, noun, pairs[column], sampled[column])
    _print_workload(found.load)
    _print_hidden_prompts(study)
    for sentence in (found.display, *found.precision, *found.names):
        if sentence:
            console().print(sentence)


def _print_shares(column: str, noun: str, whole: pd.Series, sample: pd.Series) -> None:
    counts = whole.value_counts()
    taken = sample.value_counts()
    rows = [
        (
            str(value),
            str(count),
            f"{count / len(whole):.1%}",
            str(taken.get(value, 0)),
            f"{taken.get(value, 0) / len(sample):.1%}",
        )
        for value, count in sorted(counts.items())
    ]
    print_table([column, noun, "share", "sampled", "share of sample"], rows)


def _print_workload(load: Workload) -> None:
    if not load.rubrics:
        say("new.no_responses")
        return
    print_table(
        ["rubric", "units", "annotators each", "labels", "hours"],
        [
            (
                item.rubric,
                str(item.units),
                str(item.raters),
                str(item.judgments),
                f"{item.hours:.0f}",
            )
            for item in load.rubrics
        ],
        title=written("new.work"),
    )
    say("new.hours", words=load.words_per_minute, seconds=load.seconds_to_decide)


def _print_hidden_prompts(study: Study) -> None:
    """Print which rubrics are judged without the prompt, and whether that can be kept."""
    from evenhand.study.desk.claims import judged_without_prompt

    if hiding := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in hiding)
        together = study.config.annotation.screen == "all"
        say("prompts.together" if together else "prompts.first", rubrics=names)
        if study.config.annotation.repeat_share:
            say("prompts.repeats", rubrics=names)


VERBS = (
    Verb("new", "make a study from paired prompts, or from propositions", _new_options, _new),
    Verb(
        "extend",
        "enlarge the sample; the first pairs and their labels stay",
        _extend_options,
        _extend,
    ),
)
