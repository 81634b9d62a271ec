"""`new`, `extend` and `label`: making a study, enlarging it, and having people rate a file of items
in one command.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evenhand.cli.terminal import print_line, print_lines, print_next, say
from evenhand.cli.verbs import (
    options_of,
    print_lead_link,
    reached_at,
    refuse,
    shared_names,
    study_of,
)
from evenhand.reporting import new_study
from evenhand.reporting.noting import changing_settings, note
from evenhand.reporting.panel import Columns, table_of
from evenhand.reporting.ratings_file.declared import LabelOptions
from evenhand.rubrics import Rubric, load_rubric
from evenhand.study import Study, extend_sample
from evenhand.study.creation import StudyPlan, usual_rubrics
from evenhand.study.desk.claims import judged_without_prompt
from evenhand.study.lead.progress import SECONDS_TO_DECIDE, WORDS_PER_MINUTE
from evenhand.study.prompts.pairs import prompts_noun
from evenhand.study.trust import remember
from evenhand.texts import written

ITEM_OPTIONS = shared_names("items")
"""Options that say what an items file holds, and what is asked."""
SETTLED = {*ITEM_OPTIONS, "--sample", "--stratify", "--seed", "--raters"}
"""Options that a study of items has settled once it is made."""


def label_options(arguments: argparse.Namespace) -> LabelOptions:
    """Return what the command line says of an items file."""
    settled = [option for option in arguments.given if option in SETTLED]
    return options_of(LabelOptions, arguments, given=settled)


def run_label(arguments: argparse.Namespace) -> int:
    from evenhand.annotate_app import serve
    from evenhand.local_page import app_port, open_when_up

    port = app_port(arguments.port)
    folder: Path = arguments.dir or Path(f"{arguments.file.stem}-study")
    wanted = label_options(arguments)
    address, public = reached_at(arguments, port)
    labelling = new_study.label_items(arguments.file, folder, wanted, port=port, address=address)
    print_lines([*labelling.notes, labelling.links_heading])
    for link in labelling.links:
        print_line(link)
    if not public:
        say("items.here_only")
    print_lead_link(folder, address.rstrip("/"))
    if not arguments.no_browser:
        open_when_up(labelling.links[0], port)
    return serve(folder, port=port, public_host=public)


def run_new(arguments: argparse.Namespace) -> None:
    new_study.check_numbers(arguments.raters, arguments.seed)
    made = None
    if arguments.items:
        made = new_study.item_study(arguments.items, label_options(arguments))
    else:
        because = "goes with --items; pairs and propositions have rubrics"
        refuse(arguments, ITEM_OPTIONS, because)
    if made:
        rubrics: Sequence[Rubric] = made.rubrics
    elif arguments.rubric:
        rubrics = [load_rubric(name) for name in arguments.rubric]
    else:
        rubrics = usual_rubrics(propositions=arguments.propositions is not None)
    others = {"items": made and made.items, "rubrics": rubrics, "raters_per_unit": arguments.raters}
    plan = options_of(StudyPlan, arguments, **others)
    if "://" in arguments.store or "$" in arguments.store:
        remember(arguments.dir, [arguments.store])  # as it was typed
    judged = new_study.make_study(arguments.dir, plan, made)
    with study_of(arguments) as study:
        if made:
            print_lines(made.sentences(judged, arguments.dir, study.config.sample.pairs))
        describe_study(study)
    folder = arguments.dir
    has_responses = arguments.responses is not None or made is not None
    steps = [] if has_responses else [f"import {folder} RESPONSES.jsonl"]
    has_cues = any(rubric.lexical for rubric in plan.rubrics)
    grader = "baseline:lexical" if has_cues else "PROVIDER:MODEL"
    steps += [f"annotate {folder}", f"grade {folder} --grader {grader}", f"report {folder}"]
    print_next(*steps)


def run_extend(arguments: argparse.Namespace) -> None:
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
    preview = new_study.preview_of(study)
    noun, counts = preview.noun, {"sampled": preview.sampled, "total": preview.total}
    say("new.sampled", **counts, noun=noun, seed=study.config.seed)
    load = preview.load
    if load:
        columns: Columns = {
            "rubric": lambda each: each.rubric,
            "units": lambda each: f"{each.units}",
            "annotators each": lambda each: f"{each.raters}",
            "labels": lambda each: f"{each.judgments}",
            "hours": lambda each: f"{each.hours:.0f}",
        }
        print_lines([table_of(columns, load, written("new.work"))])
        say("new.hours", words=WORDS_PER_MINUTE, seconds=SECONDS_TO_DECIDE)
    else:
        say("new.no_responses")
    # Rubrics that are judged without the prompt, and whether that can be kept.
    if hiding := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in hiding)
        together = study.config.annotation.screen == "all"
        say("prompts.together" if together else "prompts.first", rubrics=names)
        if study.config.annotation.repeat_share:
            say("prompts.repeats", rubrics=names)
    print_lines(filter(None, (preview.display, *preview.precision, *preview.names)))
