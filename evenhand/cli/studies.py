"""`new`, `extend`: making a study and enlarging it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table
from evenhand.cli.verbs import Parser, Verb
from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study


def _new_options(new: Parser) -> None:
    new.add_argument("dir", type=Path, metavar="DIR", help="the study's folder; must not exist yet")
    new.add_argument("--pairs", type=Path, metavar="FILE", help="the paired prompts")
    new.add_argument(
        "--propositions", type=Path, metavar="FILE", help="statements (id, text) instead of pairs"
    )
    new.add_argument("--wordings", type=Path, metavar="FILE", help="how statements are put")
    new.add_argument("--repeats", type=int, default=1, metavar="K", help="times each is put (1)")
    new.add_argument("--responses", type=Path, metavar="FILE", help="the subjects' responses")
    new.add_argument(
        "--sample", type=int, metavar="N", help="pairs or prompts that people label (250)"
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
    new.add_argument("--raters", type=int, default=3, metavar="N", help="people per unit (3)")
    new.add_argument(
        "--store",
        default="study.db",
        metavar="URL",
        help="a file beside study.toml, or a database's URL (study.db)",
    )


def _extend_options(extend: Parser) -> None:
    extend.add_study()
    extend.add_argument("--pairs", type=int, required=True, metavar="K", help="how many pairs more")
    extend.add_argument(
        "--by",
        choices=["chance", "uncertainty"],
        default="chance",
        help="which pairs: any alike (chance), or rather those where graders differ or are unsure: "
        "saves labels if grades tell what is hard, else costs a few (docs/uncertainty.md)",
    )


def _new(arguments: argparse.Namespace) -> None:
    from evenhand.rubrics import load_rubric
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan, usual_rubrics

    if arguments.raters < 1:
        raise InputError("--raters must be 1 or more")
    if arguments.seed < 0:
        raise InputError("--seed must be 0 or more")
    strata = arguments.stratify
    plan = StudyPlan(
        pairs=arguments.pairs,
        propositions=arguments.propositions,
        wordings=arguments.wordings,
        repeats=arguments.repeats,
        responses=arguments.responses,
        rubrics=[load_rubric(name) for name in arguments.rubric]
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
    create_study(arguments.dir, plan)
    with open_study(arguments.dir) as study:
        describe_study(study)
    _next_steps(arguments.dir, has_responses=arguments.responses is not None)


def _next_steps(folder: Path, *, has_responses: bool) -> None:
    steps = [] if has_responses else [f"import {folder} RESPONSES.jsonl"]
    steps += [f"annotate {folder}", f"grade {folder} --grader baseline:lexical", f"report {folder}"]
    for step, lead in zip(steps, ["Next:", *[" " * 5] * len(steps)], strict=False):
        console().print(f"{lead} evenhand {step}")


def _extend(arguments: argparse.Namespace) -> None:
    from evenhand.study import extend_sample, open_study
    from evenhand.study.prompts.pairs import prompts_noun

    with open_study(arguments.dir) as study:
        before = study.config.sample.pairs
        size = extend_sample(study, arguments.pairs, arguments.by)
    with open_study(arguments.dir) as study:
        noun = prompts_noun(study.store.pairs())
        console().print(f"The sample grew from {before} to {size} {noun}; the first {before} stay.")
        if arguments.by == "uncertainty":
            console().print(
                f"The new {noun} are rather those where graders differ or are unsure; how likely "
                "each was to be picked is kept, and every estimate weights for it."
            )
        describe_study(study)


def describe_study(study: Study) -> None:
    """The sample against the whole, the work it means, and what it can decide."""
    from evenhand.study.prompts.pairs import prompts_noun

    pairs = study.store.pairs()
    sampled = pairs[pairs["sample_position"].notna()]
    say = console().print
    noun = prompts_noun(pairs)
    say(f"{len(sampled)} of {len(pairs)} {noun} are sampled (seed {study.config.seed}).")
    for column in study.config.sample.stratify:
        _print_shares(column, noun, pairs[column], sampled[column])
    _print_workload(study)
    _print_hidden_prompts(study)
    _print_precision(study, sampled)


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


def _print_workload(study: Study) -> None:
    from evenhand.study.workload import workload

    say = console().print
    load = workload(study)
    if not load.rubrics:
        say("No responses yet, so no units to label.")
        return
    print_table(
        ["rubric", "units", "raters each", "judgments", "hours"],
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
        title="Work for people",
    )
    say(
        f"Hours at {load.words_per_minute} words a minute and {load.seconds_to_decide} s to decide."
    )


def _print_hidden_prompts(study: Study) -> None:
    """Which rubrics are judged without the prompt, and whether that can be kept."""
    from evenhand.study.desk.hidden_prompts import judged_without_prompt
    from evenhand.texts import written

    if hiding := judged_without_prompt(study.labelled_rubrics()):
        names = ", ".join(rubric.name for rubric in hiding)
        together = study.config.annotation.screen == "all"
        console().print(written("prompts.together" if together else "prompts.first", rubrics=names))
        if study.config.annotation.repeat_share:
            console().print(written("prompts.repeats", rubrics=names))


def _print_precision(study: Study, sampled: pd.DataFrame) -> None:
    from evenhand.analysis.planning.pass_chance import study_precision

    cluster = study.config.analysis.cluster
    clustered = cluster in sampled  # prompts on one thing resemble one another
    subjects = len(study.config.annotation.subjects or study.subjects()) or 1
    for sentence in study_precision(
        pairs=sampled[cluster].nunique() if clustered else len(sampled),
        subjects=subjects,
        humans=study.config.annotation.raters_per_unit,
        margin=study.config.analysis.margin,
        rule=study.config.decision,
        noun=cluster if clustered else "pair",
    ):
        console().print(sentence)


VERBS = (
    Verb("new", "make a study from paired prompts, or from propositions", _new_options, _new),
    Verb(
        "extend",
        "enlarge the sample; the first pairs and their labels stay",
        _extend_options,
        _extend,
    ),
)
