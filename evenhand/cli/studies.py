"""`new`, `extend` and `label`: making a study, enlarging it, and having people rate a file of items
in one command.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.options import print_lead_link, reached_at
from evenhand.cli.terminal import console, print_line, print_lines, print_table, say
from evenhand.cli.verbs import keys, refuse, shared_names, study_of
from evenhand.errors import InputError
from evenhand.reporting.noting import changing_settings, note
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.new_study import Ask
    from evenhand.reporting.ratings_file.declared import LabelOptions
    from evenhand.study import Study
    from evenhand.study.lead.progress import Workload

ITEM_OPTIONS = shared_names("items")
"""Options that say what an items file holds, and what is asked."""
SETTLED = {*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"}
"""Options that a study of items has settled once it is made."""


def label_options(arguments: argparse.Namespace) -> LabelOptions:
    """Return what the command line says of an items file."""
    from evenhand.reporting.ratings_file.declared import LabelOptions

    given = {**vars(arguments), "given": [each for each in arguments.given if each in SETTLED]}
    names = [each.name for each in fields(LabelOptions)]
    return LabelOptions(**{name: given[name] for name in names if given.get(name) is not None})


def asking() -> Ask | None:
    """Return the question which columns raters read, if there is somebody to answer."""
    return _shown_columns if sys.stdin.isatty() else None


def _shown_columns(fault: InputError) -> Sequence[str]:
    """Ask at the terminal which columns raters read, where their names do not say it. Raises the
    fault where nothing is answered.
    """
    console().print(str(fault))
    try:
        named = keys(input(f"{written('items.which')} "))
    except EOFError:
        named = ()
    if not named:
        raise fault
    return named


def run_label(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app.serve import serve
    from evenhand.local_page import app_port, open_when_up
    from evenhand.reporting.new_study import label_items

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    wanted = label_options(arguments)
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


def run_new(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.new_study import check_numbers, item_study, make_study
    from evenhand.rubrics import load_rubric
    from evenhand.study.creation import StudyPlan, usual_rubrics
    from evenhand.study.trust import remember

    check_numbers(arguments.raters, arguments.seed)
    made = None
    if arguments.items:
        made = item_study(arguments.items, label_options(arguments), asking())
    else:
        refuse(
            arguments,
            ITEM_OPTIONS,
            "goes with --items; pairs and propositions have rubrics",
        )
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
        stratify=arguments.stratify,
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


def run_extend(arguments: argparse.Namespace) -> None:
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
    rows = []
    for value, count in sorted(whole.value_counts().items()):
        taken = int((sample == value).sum())
        shares = f"{count / len(whole):.1%}", f"{taken / len(sample):.1%}"
        rows.append([str(value), str(count), shares[0], str(taken), shares[1]])
    print_table([column, noun, "share", "sampled", "share of sample"], rows)


def _print_workload(load: Workload) -> None:
    if not load.rubrics:
        say("new.no_responses")
        return
    print_table(
        ["rubric", "units", "annotators each", "labels", "hours"],
        [
            [
                each.rubric,
                f"{each.units}",
                f"{each.raters}",
                f"{each.judgments}",
                f"{each.hours:.0f}",
            ]
            for each in load.rubrics
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
