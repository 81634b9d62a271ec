"""`rubric`: rubric files, shown, made, checked and tried, and what is unclear in a study's."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evenhand.cli.ratings import (
    print_coverage,
    print_end,
    print_forecast,
    print_run,
    request_limits,
)
from evenhand.cli.terminal import console, print_lines, print_table, progress_bar, say, warn
from evenhand.cli.verbs import BAD_INPUT, DONE, refuse, shared_names, study_of
from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.reporting.suggestions import Divided, UnclearRubric
    from evenhand.rubrics import Rubric
    from evenhand.study import Study

_SHOWN = 80
"""The most characters of a response that stand beside a wrong answer."""


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
                print_forecast(forecast(study, arguments.grader, GradingOptions()))
                return DONE
            with progress_bar("grading") as progress:
                limits = request_limits(arguments)
                summary = grade(study, arguments.grader, limits=limits, progress=progress)
            graders = [part.rater_id for part in summary.graders]
            print_run(summary)
            print_coverage(study, graders)
            ratings = study.ratings()
    for grader in graders:
        own = ratings[ratings["rater_id"] == grader]
        # A unit with two sides is asked in both orders.
        of_unit = own["label"].fillna("").groupby(own["unit_id"])
        given = {unit: " / ".join(sorted(set(labels))) for unit, labels in of_unit}
        _print_answers(rubric, grader, [given.get(unit) for unit in items.unit_ids])
    return print_end("rubric check", summary)


def _print_answers(rubric: Rubric, grader: str, labels: Sequence[str | None]) -> None:
    """Print how many golden answers a grader got right, and those that it did not; a label is None
    where it was not asked, and empty where it gave none.
    """
    asked = [each for each in zip(rubric.golden, labels, strict=True) if each[1] is not None]
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
    from evenhand.rubrics.loading import draft_rubric

    text, path = draft_rubric(arguments.name, arguments.start), Path(f"{arguments.name}.toml")
    _write_new(path, text)
    say("rubric_check.made", path=path)
    say("terminal.next", command=f"evenhand rubric check {path}")


def run_list(_arguments: argparse.Namespace) -> None:
    from evenhand.rubrics import load_rubric, named_rubrics

    rows = []
    for name in named_rubrics():
        rubric = load_rubric(name)
        affirmative = ",".join(rubric.affirmative)
        keys = rubric.kind.permitted.replace(", ", ",")
        rows.append((name, rubric.unit, rubric.level, keys, affirmative))
    print_table(["rubric", "unit", "level", "options", "affirmative"], rows)


def run_show(arguments: argparse.Namespace) -> None:
    from evenhand.rubrics import load_rubric

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
        refuse(arguments, shared_names("dry_run"), because)
    elif len(arguments.files) > 1:
        raise InputError("--grader is asked about one rubric; name one")
    code = max(_check_one(file) for file in arguments.files)
    if code != DONE or not arguments.grader:
        return code
    from evenhand.rubrics import load_rubric

    return try_golden(load_rubric(arguments.files[0]), arguments)


def _check_one(file: str) -> int:
    """Print every fault of a file, or else what will be sent and what in it contradicts itself."""
    from evenhand.rubrics.loading import contradictions, read_rubric, rubric_text

    rubric, faults = read_rubric(rubric_text(file))
    if rubric is None:
        for fault in faults:
            console(stderr=True).print(f"evenhand rubric check: {file}: {fault}")
        return BAD_INPUT
    print_lines(_summary(rubric))
    for sentence in contradictions(rubric):
        warn("terminal.warning", text=sentence)
    return DONE


def _summary(rubric: Rubric) -> list[str]:
    keys = ", ".join(rubric.affirmative)
    counts = written("rubric_check.affirmative", keys=keys) if keys else None
    prompt = rubric.for_prompt({name: f"{{{name}}}" for name in rubric.variables})
    about = {"name": rubric.name, "hash": rubric.hash, "unit": rubric.unit, "level": rubric.level}
    lines = [
        written(
            "rubric_check.heading",
            **about,
            options=rubric.kind.permitted,
            affirmative=counts or written("rubric_check.no_affirmative"),
            threshold=rubric.threshold,
        )
    ]
    if rubric.prompt:
        size = len(prompt.system) + len(prompt.user)
        lines.append(written("rubric_check.verbatim", size=size))
        same = len(prompt.system) + (prompt.cuts[0] if prompt.cuts else 0)
    else:
        lines.append(written("rubric_check.frame", system=len(prompt.system)))
        lines.append(
            written("rubric_check.answer")
            if rubric.kind.is_choice
            else written("rubric_check.answer_other", asked=rubric.kind.asked)
        )
        same = len(prompt.system)
    lines.append(written("rubric_check.cached", characters=same))
    lines.append(written("rubric_check.filled", fields=", ".join(rubric.variables)))
    return lines


def run_suggest(arguments: argparse.Namespace) -> int:
    if arguments.proposer and not (arguments.out or arguments.dry_run):
        raise InputError(written("suggest.with_out"))
    if not arguments.proposer:
        because = "goes with --proposer, which writes a draft"
        refuse(arguments, shared_names("dry_run"), because)
    if arguments.out and arguments.out.exists():  # before money is spent on it
        raise InputError(f"{arguments.out} is there already; choose another name or move it")
    from evenhand.reporting.suggestions import divided_rubrics, unclear_rubrics

    with study_of(arguments) as study:
        wanted = arguments.rubric
        if wanted and wanted not in study.rubrics:
            raise InputError(f"the study has no rubric {wanted!r}")
        found = [own for own in unclear_rubrics(study) if wanted in ("", own.rubric.name)]
        divided = [own for own in divided_rubrics(study) if wanted in ("", own.rubric.name)]
    if not found:
        say("suggest.nothing")
    _print_unclear(found)
    for each in divided:
        _print_divided(each)
    if arguments.out or arguments.proposer:
        return _draft(arguments, divided, found)
    if found or divided:
        say("suggest.next")
    return DONE


def _print_unclear(found: Sequence[UnclearRubric]) -> None:
    for own in found:
        unclear = _count(sum(map(len, own.by_options.values())))
        about = {"title": own.rubric.title, "name": own.rubric.name}
        flags = _count(len({unit for unit, _ in own.flags}))
        say("suggest.rubric", **about, unclear=unclear, flags=flags)
        for (people, grader), units in own.by_options.items():
            chosen = {"people": own.named(people), "grader": own.named(grader)}
            console().print("  " + written("suggest.chosen", **chosen, units=_count(len(units))))
            for each in units:
                who = {"unit": each.unit_id, "grader": each.grader}
                console().print("    " + written("suggest.unit", **who, note=_note(each.note)))
        if own.flags:
            console().print("  " + written("suggest.flagged"))
        for unit, text in own.flags:
            console().print("    " + written("suggest.flag", unit=unit, note=_note(text)))


def _print_divided(own: Divided) -> None:
    say("suggest.people", title=own.rubric.title, name=own.rubric.name)
    for line in own.points:
        console().print(f"  {line}")
    for (one, other), count in own.confusions.items():
        pair = {"one": own.named(one), "other": own.named(other)}
        console().print("  " + written("suggest.confused", **pair, units=_count(count)))


def _draft(
    arguments: argparse.Namespace, divided: Sequence[Divided], unclear: Sequence[UnclearRubric]
) -> int:
    """Write a draft of another wording of the one rubric that is meant."""
    from evenhand.reporting.suggestions import LEAST_UNITS, draft_of, draft_text

    names = [own.rubric.name for own in divided]
    if not names:
        about = {"rubric": arguments.rubric, "least": LEAST_UNITS}
        raise InputError(written("suggest.nothing_to_draft", **about))
    if len(names) > 1:
        raise InputError(written("suggest.which", names=", ".join(names)))
    own = divided[0]
    flags = [flag for each in unclear if each.rubric.name == names[0] for flag in each.flags]
    with study_of(arguments) as study:
        if arguments.proposer:
            draft, code = _proposed(study, arguments, own, flags)
            if draft is None:
                return code
        else:
            draft = draft_of(study, own.rubric)
    _write_new(arguments.out, draft_text(draft, own, flags))
    who = {"path": arguments.out, "proposer": arguments.proposer}
    say("suggest.drafted_by" if arguments.proposer else "suggest.drafted", **who)
    steps = f"rubric check {arguments.out}", f"rubric reword {arguments.dir} {arguments.out}"
    _print_next(*steps)
    return DONE


def _proposed(
    study: Study, arguments: argparse.Namespace, own: Divided, flags: Sequence[tuple[str, str]]
) -> tuple[Rubric | None, int]:
    """Have a model write the draft; None with the exit code where it was not asked, or the money
    was at an end. An answer that is kept is not asked for again.
    """
    from evenhand.graders.running.responding import forecast_proposals, propose
    from evenhand.graders.running.runner import grading_in_rounds
    from evenhand.reporting.suggestions import drafted, request_for

    asked, name, proposer = request_for(own, flags), own.rubric.name, arguments.proposer
    if arguments.dry_run:
        print_forecast([forecast_proposals(study, name, proposer, [asked])])
        return None, DONE
    with grading_in_rounds(study, request_limits(arguments)) as rounds:
        answer = propose(rounds, name, proposer, asked, {"part": "rubric suggest"})
        run = rounds.so_far
    print_run(run)
    code = print_end("rubric suggest", run)
    if answer is None:
        return None, code
    return drafted(study, own, proposer, answer), DONE


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already; choose another name or move it") from None


def _print_next(*steps: str) -> None:
    command = "\n      ".join(f"evenhand {step}" for step in steps)
    say("terminal.next", command=command)


def run_reword(arguments: argparse.Namespace) -> None:
    from evenhand.reporting.noting import changing_settings, operator
    from evenhand.rubrics.loading import parse_rubric, rubric_text
    from evenhand.study.creation import declare_rewording

    text = rubric_text(arguments.file)
    new, pairs = parse_rubric(text, arguments.file.name), arguments.pairs
    if pairs < 2:
        raise InputError(f"--pairs is {pairs}; a trial needs 2 or more")
    with study_of(arguments) as study, changing_settings(study):
        more = declare_rewording(study, new, text, pairs, operator())
    about = {"pairs": pairs, "old": new.variant_of, "new": new.name, "more": more}
    say("rewording.declared", **about)
    _print_next(f"annotate {arguments.dir}", f"report {arguments.dir}")


def _count(units: int) -> str:
    return "1 unit" if units == 1 else f"{units} units"


def _note(text: str) -> str:
    """Return a person's note as one line to append, without control characters."""
    line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return f": {line}" if line else ""
