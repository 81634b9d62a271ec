"""`new`, `extend`, `import`, `export`: a study and the tables that go in and out of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.cli.terminal import console, print_table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study import Study

__all__ = ["add_verbs"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    new = verbs.add_parser("new", help="make a study from paired prompts, or from propositions")
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
    new.add_argument("--store", default="study.db", metavar="URL", help=argparse.SUPPRESS)
    new.set_defaults(run=_new)

    extend = verbs.add_parser("extend", help="enlarge the sample, keeping the first")
    extend.add_argument("dir", type=Path, metavar="DIR")
    extend.add_argument("--pairs", type=int, required=True, metavar="K", help="how many pairs more")
    extend.set_defaults(run=_extend)

    imports = verbs.add_parser("import", help="add ratings or responses from a file")
    imports.add_argument("dir", type=Path, metavar="DIR")
    imports.add_argument("file", type=Path, metavar="FILE", help=".csv, .jsonl or .parquet")
    imports.add_argument(
        "--kind", choices=["ratings", "responses"], help="what it holds (told by its columns)"
    )
    imports.set_defaults(run=_import)

    export = verbs.add_parser("export", help="write the ratings, and the units")
    export.add_argument("dir", type=Path, metavar="DIR")
    export.add_argument("--out", type=Path, metavar="FILE", help="where the ratings go")
    export.add_argument("--units", type=Path, metavar="FILE", help="where the units go")
    export.add_argument(
        "--remarks", type=Path, metavar="FILE", help="where confidence, reasons and flags go"
    )
    export.set_defaults(run=_export)


def _new(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError
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
    say = console().print
    if not has_responses:
        say(f"Next: evenhand import {folder} RESPONSES.jsonl")
    say(f"Next: evenhand annotate {folder}")
    say(f"      evenhand grade {folder} --grader baseline:lexical")
    say(f"      evenhand report {folder}")


def _extend(arguments: argparse.Namespace) -> None:
    from evenhand.study import extend_sample, open_study
    from evenhand.study.prompts.pairs import prompts_noun

    with open_study(arguments.dir) as study:
        before = study.config.sample.pairs
        size = extend_sample(study, arguments.pairs)
    with open_study(arguments.dir) as study:
        noun = prompts_noun(study.store.pairs())
        console().print(f"The sample grew from {before} to {size} {noun}; the first {before} stay.")
        describe_study(study)


def _import(arguments: argparse.Namespace) -> None:
    from evenhand.study import open_study
    from evenhand.study.tables.ratings import read_table

    with open_study(arguments.dir) as study:
        kind = arguments.kind
        if kind is None:
            has_responses = "response" in read_table(arguments.file)
            kind = "responses" if has_responses else "ratings"
        if kind == "responses":
            _import_responses(study, arguments.file)
        else:
            _import_ratings(study, arguments.file)


def _import_responses(study: Study, file: Path) -> None:
    from evenhand.study.prompts.responses import read_responses

    frame = read_responses(file, study.store.pairs())
    new = study.store.add_responses(frame)
    empty = int((frame["response"].str.strip() == "").sum())
    console().print(
        f"{new} new responses of {frame['subject'].nunique()} subjects; "
        f"{len(frame) - new} were there already; {empty} are empty."
    )


def _import_ratings(study: Study, file: Path) -> None:
    from evenhand.study.lead.imports import import_ratings
    from evenhand.study.tables.ratings import read_ratings

    ratings, _ = read_ratings(file)
    new, known = import_ratings(study, ratings, file.name)
    console().print(
        f"{new} new ratings of {ratings['rater_id'].nunique()} raters; {known} were there already."
    )


def _export(arguments: argparse.Namespace) -> None:
    from evenhand.errors import InputError
    from evenhand.study import open_study
    from evenhand.study.store.remarks import remarks_table
    from evenhand.study.tables.ratings import write_table

    if not (arguments.out or arguments.units or arguments.remarks):
        raise InputError("say what to write: --out FILE for the ratings, --units FILE for units")
    named = [path for path in (arguments.out, arguments.units, arguments.remarks) if path]
    if len(set(named)) < len(named):
        raise InputError("two tables would go to the same file; give each its own")
    with open_study(arguments.dir) as study:
        if arguments.out is not None:
            ratings = study.ratings()
            write_table(ratings, arguments.out)
            console().print(f"{len(ratings)} ratings -> {arguments.out}")
        if arguments.units is not None:
            units = _exported_units(study)
            write_table(units, arguments.units)
            console().print(f"{len(units)} units, sampled or rated -> {arguments.units}")
        if arguments.remarks is not None:
            remarks = remarks_table(study.store)
            write_table(remarks, arguments.remarks)
            console().print(f"{len(remarks)} remarks of raters -> {arguments.remarks}")


def _exported_units(study: Study) -> pd.DataFrame:
    """The sample, then what else was rated: every rating that is exported finds its unit here."""
    import pandas as pd

    sample, every = (study.units_with_lengths(scope) for scope in ("sample", "all"))
    others = set(study.ratings()["unit_id"]) - set(sample["unit_id"])
    return pd.concat([sample, every[every["unit_id"].isin(others)]], ignore_index=True)


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


def _print_precision(study: Study, sampled: pd.DataFrame) -> None:
    from evenhand.analysis.planning.scenarios import study_precision

    cluster = study.config.analysis.cluster
    clustered = cluster in sampled  # prompts on one thing resemble one another
    subjects = len(study.config.annotation.subjects or study.subjects()) or 1
    for sentence in study_precision(
        pairs=sampled[cluster].nunique() if clustered else len(sampled),
        subjects=subjects,
        humans=study.config.annotation.raters_per_unit,
        margin=study.config.analysis.margin,
        noun=cluster if clustered else "pair",
    ):
        console().print(sentence)
