"""`new`, `extend`: making a study and enlarging it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.items import (
    ITEM_OPTIONS,
    add_item_options,
    asking,
    item_options,
)
from evenhand.cli.terminal import console, print_lines, print_table
from evenhand.cli.verbs import Parser, Verb, refuse
from evenhand.reporting.noting import changing_settings, note
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study
    from evenhand.study.lead.progress import Workload


def _new_options(new: Parser) -> None:
    new.add_argument("dir", type=Path, metavar="DIR", help="the study's folder; must not exist yet")
    new.add_argument("--pairs", type=Path, metavar="FILE", help="the paired prompts")
    new.add_argument(
        "--propositions", type=Path, metavar="FILE", help="statements (id, text) instead of pairs"
    )
    new.add_argument(
        "--items", type=Path, metavar="FILE", help="rows to be rated as they are, instead of pairs"
    )
    add_item_options(new)
    new.add_argument("--wordings", type=Path, metavar="FILE", help="wordings for the statements")
    new.add_argument(
        "--repeats", type=int, default=1, metavar="K", help="how often to ask each prompt (1)"
    )
    new.add_argument("--responses", type=Path, metavar="FILE", help="the subjects' responses")
    new.add_argument(
        "--sample", type=int, metavar="N", help="pairs or prompts to be labelled (250)"
    )
    new.add_argument(
        "--stratify",
        metavar="COL,...",
        help="columns whose shares the sample keeps (template_category,main_category)",
    )
    new.add_argument("--seed", type=int, default=1, metavar="N", help="fixes the sample (1)")
    new.add_argument(
        "--rubric",
        action="append",
        metavar="NAME|FILE",
        help="a rubric of the study, repeatable (all that come with evenhand and fit)",
    )
    new.add_argument("--raters", type=int, default=3, metavar="N", help="annotators per unit (3)")
    new.add_argument(
        "--store",
        default="study.db",
        metavar="URL",
        help="a file beside study.toml, or a database's URL (study.db)",
    )


def _extend_options(extend: Parser) -> None:
    extend.add_study()
    extend.add_argument(
        "--pairs", type=int, required=True, metavar="K", help="how many pairs to add"
    )
    extend.add_argument(
        "--by",
        choices=["chance", "uncertainty"],
        default="chance",
        help="pick pairs at random (chance), or mainly those on which graders differ or are "
        "unsure; this saves labels if grades show what is hard (docs/evidence.md#decisions)",
    )


def _new(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.item_study import item_study
    from evenhand.reporting.new_study import check_numbers, make_study
    from evenhand.rubrics import load_rubric
    from evenhand.study import open_study
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
    with open_study(arguments.dir) as study:
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
    console().print(written("terminal.next", command=indent.join(f"evenhand {s}" for s in steps)))


def _extend(arguments: argparse.Namespace) -> None:
    from evenhand.study import extend_sample, open_study
    from evenhand.study.prompts.pairs import prompts_noun

    with open_study(arguments.dir) as study:
        before = study.config.sample.pairs
        with changing_settings(study):
            size = extend_sample(study, arguments.pairs, arguments.by)
        note(study, "sample", "", f"pairs: {size}")
    with open_study(arguments.dir) as study:
        noun = prompts_noun(study.store.pairs())
        console().print(written("new.grown", before=before, after=size, noun=noun))
        if arguments.by == "uncertainty":
            console().print(written("new.by_uncertainty", noun=noun))
        describe_study(study)


def describe_study(study: Study) -> None:
    """Print the sample and its size, the work it means, and what it can decide."""
    from evenhand.reporting.new_study import preview_of

    found = preview_of(study)
    say, noun = console().print, found.noun
    counts = {"sampled": found.sampled, "total": found.total}
    say(written("new.sampled", **counts, noun=noun, seed=study.config.seed))
    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    for column in study.config.sample.stratify:
        _print_shares(column, noun, pairs[column], sampled[column])
    _print_workload(found.load)
    _print_hidden_prompts(study)
    for sentence in (found.display, *found.precision, *found.names):
        if sentence:
            say(sentence)


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
    say = console().print
    if not load.rubrics:
        say(written("new.no_responses"))
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
    say(written("new.hours", words=load.words_per_minute, seconds=load.seconds_to_decide))


def _print_hidden_prompts(study: Study) -> None:
    """Print which rubrics are judged without the prompt, and whether that can be kept."""
    from evenhand.study.desk.design import judged_without_prompt

    if hiding := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in hiding)
        together = study.config.annotation.screen == "all"
        console().print(written("prompts.together" if together else "prompts.first", rubrics=names))
        if study.config.annotation.repeat_share:
            console().print(written("prompts.repeats", rubrics=names))


VERBS = (
    Verb("new", "make a study from paired prompts, or from propositions", _new_options, _new),
    Verb(
        "extend",
        "enlarge the sample; the first pairs and their labels stay",
        _extend_options,
        _extend,
    ),
)
