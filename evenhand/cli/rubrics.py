"""`rubric`: rubric files, shown, made, checked and tried, and what is unclear in a study's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evenhand.cli import ratings as runs
from evenhand.cli.main import BAD_INPUT, DONE, refuse, shared_option_names, study_of
from evenhand.cli.terminal import console, print_next, print_table, progress_bar, say, warn
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric, loading, named_rubrics
from evenhand.texts import number_of, written

if TYPE_CHECKING:
    from evenhand.reporting.suggestions import Divided, UnclearRubric

_SHOWN = 80
"""The most characters of a response that are printed with a wrong answer."""


def try_golden(rubric: Rubric, arguments: argparse.Namespace) -> int:
    """Ask the graders about the golden answers, and print how many each got right and which not.

    Raises InputError where the rubric has none, or as `grade` does.
    """
    from evenhand.graders import GradingOptions, forecast, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan
    from evenhand.study.prompts.items import golden_comparisons, golden_items

    if not rubric.golden:
        raise InputError(written("golden.none", name=rubric.name))
    items = (golden_comparisons if rubric.has_sides else golden_items)(rubric)
    plan = StudyPlan(items=items, rubrics=[rubric], sample=len(rubric.golden))
    with TemporaryDirectory(prefix="evenhand-") as home:
        folder = Path(home) / "golden"
        create_study(folder, plan)
        with open_study(folder) as study:
            if arguments.dry_run:
                runs.print_forecast(forecast(study, arguments.grader, GradingOptions()))
                return DONE
            with progress_bar("grading") as progress:
                limits = runs.request_limits(arguments)
                summary = grade(study, arguments.grader, limits=limits, progress=progress)
            graders = [part.rater_id for part in summary.graders]
            runs.print_run(summary)
            runs.print_coverage(study, graders)
            ratings = study.ratings()
    for grader in graders:
        graded = ratings[ratings["rater_id"] == grader]
        # A unit with two sides is asked in both orders.
        of_unit = graded["label"].fillna("").groupby(graded["unit_id"])
        given = {unit: " / ".join(sorted(set(labels))) for unit, labels in of_unit}
        _print_answers(rubric, grader, [given.get(unit) for unit in items.unit_ids])
    return runs.print_end("rubric check", summary)


def _print_answers(rubric: Rubric, grader: str, labels: Sequence[str | None]) -> None:
    """Print how many golden answers a grader got right, and those that it did not; a label is None
    where it was not asked, and empty where it gave none.
    """
    asked = [answer for answer in zip(rubric.golden, labels, strict=True) if answer[1] is not None]
    if not asked:
        return
    right = sum(golden.label == label for golden, label in asked)
    about = {"grader": grader, "name": rubric.name, "right": right, "total": len(asked)}
    say("golden.right", **about)
    for number, (golden, label) in enumerate(zip(rubric.golden, labels, strict=True), 1):
        if label in (None, golden.label):
            continue
        shown = golden.texts.get("response", golden.texts.get("prompt", ""))
        text = " ".join(shown.split())
        text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        about = {"number": number, "right": golden.label, "label": label, "response": text}
        console().print("  " + written("golden.wrong" if label else "golden.no_label", **about))


def run_new(arguments: argparse.Namespace) -> None:
    path = Path(f"{arguments.name}.toml")
    _write_new(path, loading.draft_rubric(arguments.name, arguments.start))
    say("rubric_check.made", path=path)
    print_next(f"rubric check {path}")


def run_list(_arguments: argparse.Namespace) -> None:
    rows = []
    for name in named_rubrics():
        rubric = load_rubric(name)
        keys = rubric.kind.permitted.replace(", ", ",")
        rows.append((name, rubric.unit, rubric.level, keys, ",".join(rubric.affirmative)))
    print_table(["rubric", "unit", "level", "options", "affirmative"], rows)


def run_show(arguments: argparse.Namespace) -> None:
    rubric = load_rubric(arguments.rubric)
    prompt = rubric.for_prompt({name: f"[{name}]" for name in rubric.variables})
    console().print(f"{rubric.title} (hash {rubric.hash})\n\n{prompt.system}\n\n{prompt.user}")
    if rubric.not_for:
        console().print("\n" + written("rubric_check.not_for", where=rubric.not_for))
    for code, shown in rubric.versions.items():
        if shown is not rubric:
            console().print("\n" + written("tables.translation", code=code, hash=shown.hash))


def run_check(arguments: argparse.Namespace) -> int:
    """Check every file by itself, so that a fault in one hides none in another; then ask graders
    about the golden answers, where any are named.
    """
    if not arguments.grader:
        because = "goes with --grader, which is asked about the golden answers"
        refuse(arguments, shared_option_names("dry_run"), because)
    elif len(arguments.files) > 1:
        raise InputError("--grader is asked about one rubric; name one")
    code = max(_check_one(file) for file in arguments.files)
    if code != DONE or not arguments.grader:
        return code
    return try_golden(load_rubric(arguments.files[0]), arguments)


def _check_one(file: str) -> int:
    """Print every fault of a file, or else what was read, and whether a key begins another: a
    model's tokens may not tell them apart.
    """
    rubric, faults = loading.read_rubric(loading.rubric_text(file))
    if rubric is None:
        for fault in faults:
            console(stderr=True).print(f"evenhand rubric check: {file}: {fault}")
        return BAD_INPUT
    affirmative = written("rubric_check.no_affirmative")
    if keys := ", ".join(rubric.affirmative):
        affirmative = written("rubric_check.affirmative", keys=keys)
    about: dict[str, object] = {"name": rubric.name, "hash": rubric.hash, "unit": rubric.unit}
    about |= {"level": rubric.level, "threshold": rubric.threshold}
    say("rubric_check.heading", options=rubric.kind.permitted, affirmative=affirmative, **about)
    say("rubric_check.filled", fields=", ".join(rubric.variables))
    for key, longer in permutations((option.key for option in rubric.kind.listed), 2):
        if longer.casefold().startswith(key.casefold()):
            warning = written("rubric_check.begins_another", key=key, longer=longer)
            warn("terminal.warning", text=warning)
            break
    return DONE


def run_suggest(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.suggestions import divided_rubrics, unclear_rubrics

    with study_of(arguments) as study:
        wanted = arguments.rubric
        if wanted and wanted not in study.rubrics:
            raise InputError(f"the study has no rubric {wanted!r}")
        unclear = [case for case in unclear_rubrics(study) if wanted in ("", case.rubric.name)]
        divided = [case for case in divided_rubrics(study) if wanted in ("", case.rubric.name)]
    if not unclear:
        say("suggest.nothing")
    _print_unclear(unclear)
    for points in divided:
        say("suggest.people", title=points.rubric.title, name=points.rubric.name)
        for line in points.points:
            console().print(f"  {line}")
        for (one, other), count in points.confusions.items():
            pair = {"one": points.named(one), "other": points.named(other)}
            console().print(
                "  " + written("suggest.confused", **pair, units=number_of(count, "item"))
            )
    if arguments.out:
        _draft(arguments, divided, unclear)
    elif unclear or divided:
        say("suggest.next")


def _print_unclear(rubrics: Sequence[UnclearRubric]) -> None:
    for rubric in rubrics:
        unclear = number_of(sum(map(len, rubric.by_options.values())), "item")
        about = {"title": rubric.rubric.title, "name": rubric.rubric.name}
        flags = number_of(len({unit for unit, _ in rubric.flags}), "item")
        say("suggest.rubric", **about, unclear=unclear, flags=flags)
        for (people, grader), units in rubric.by_options.items():
            chosen = {"people": rubric.named(people), "grader": rubric.named(grader)}
            console().print(
                "  " + written("suggest.chosen", **chosen, units=number_of(len(units), "item"))
            )
            for learnable in units:
                who = {"unit": learnable.unit_id, "grader": learnable.grader}
                console().print("    " + written("suggest.unit", **who, note=_note(learnable.note)))
        if rubric.flags:
            console().print("  " + written("suggest.flagged"))
        for unit, text in rubric.flags:
            console().print("    " + written("suggest.flag", unit=unit, note=_note(text)))


def _draft(
    arguments: argparse.Namespace, divided: Sequence[Divided], unclear: Sequence[UnclearRubric]
) -> None:
    """Write a draft of another wording of the one rubric that is meant."""
    from evenhand.reporting.suggestions import LEAST_UNITS, draft_of, draft_text

    names = [points.rubric.name for points in divided]
    if not names:
        about = {"rubric": arguments.rubric, "least": LEAST_UNITS}
        raise InputError(written("suggest.nothing_to_draft", **about))
    if len(names) > 1:
        raise InputError(written("suggest.which", names=", ".join(names)))
    flags = [flag for points in unclear if points.rubric.name == names[0] for flag in points.flags]
    with study_of(arguments) as study:
        draft = draft_of(study, divided[0].rubric)
    _write_new(arguments.out, draft_text(draft, divided[0], flags))
    say("suggest.drafted", path=arguments.out)
    print_next(f"rubric check {arguments.out}", f"rubric reword {arguments.dir} {arguments.out}")


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already; choose another name or move it") from None


def run_reword(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.noting import changing_settings, operator
    from evenhand.study.creation import declare_rewording

    text = loading.rubric_text(arguments.file)
    new, pairs = loading.parse_rubric(text, arguments.file.name), arguments.pairs
    if pairs < 2:
        raise InputError(f"--pairs is {pairs}; a trial needs 2 or more")
    with study_of(arguments) as study, changing_settings(study):
        more = declare_rewording(study, new, text, pairs, operator())
    about = {"pairs": pairs, "old": new.variant_of, "new": new.name, "more": more}
    say("rewording.declared", **about)
    print_next(f"annotate {arguments.dir}", f"report {arguments.dir}")


def _note(text: str) -> str:
    """Return a person's note as one line to append, without control characters."""
    line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return f": {line}" if line else ""
