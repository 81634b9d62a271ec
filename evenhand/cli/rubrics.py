"""The commands `rubric ...`: list, show, draft and check rubric files, test a grader on the golden
answers of one (its examples with their right labels), and find what is unclear in a study's rubrics
or test another wording of one. Each function `run_VERB` runs one of them with its parsed options.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from evenhand.cli import ratings as runs  # limits and output of graders' runs
from evenhand.cli.main import BAD_INPUT, DONE, refuse, shared_option_names, study_of
from evenhand.cli.terminal import console, print_next, print_table, progress_bar, say, warn
from evenhand.errors import InputError
from evenhand.rubrics import Rubric, load_rubric, loading, named_rubrics
from evenhand.rubrics.options import NONE
from evenhand.texts import number_of, written

if TYPE_CHECKING:
    from evenhand.reporting.suggestions import DividedRubric, UnclearRubric

_MOST_CHARACTERS = 80  # the most characters of a response that are printed with a wrong answer


def try_golden(rubric: Rubric, arguments: Namespace) -> int:
    """Have graders label the rubric's golden answers, and print how many each got right and which
    it did not. Raises InputError where the rubric has none, or as `grade` does.
    """
    from evenhand.graders import GradingOptions, forecast, grade
    from evenhand.study import create_study, open_study
    from evenhand.study.creation import StudyPlan
    from evenhand.study.prompts.items import golden_comparisons, golden_items

    if not rubric.golden:
        raise InputError(written("golden.none", name=rubric.name))
    items = golden_comparisons(rubric) if rubric.has_sides else golden_items(rubric)
    plan = StudyPlan(items=items, rubrics=[rubric], sample=len(rubric.golden))
    with TemporaryDirectory(prefix="evenhand-") as scratch:
        folder = Path(scratch) / "golden"
        create_study(folder, plan)
        with open_study(folder) as study:
            if arguments.dry_run:
                runs.print_forecast(forecast(study, arguments.grader, GradingOptions()))
                return DONE
            with progress_bar("grading") as progress:
                limits = runs.request_limits(arguments)
                summary = grade(study, arguments.grader, limits=limits, progress=progress)
            graders = [grader_summary.rater_id for grader_summary in summary.graders]
            runs.print_run(summary)
            runs.print_coverage(study, graders)
            ratings = study.ratings()
    for grader in graders:
        graded = ratings[ratings["rater_id"] == grader]
        # A unit with two sides is asked in both orders; labels that differ become "A / B".
        labels_by_unit = graded["label"].fillna("").groupby(graded["unit_id"])
        label_by_unit = {unit: " / ".join(sorted(set(labels))) for unit, labels in labels_by_unit}
        _print_answers(rubric, grader, [label_by_unit.get(unit) for unit in items.unit_ids])
    return runs.print_end("rubric check", summary)


def _print_answers(rubric: Rubric, grader: str, labels: Sequence[str | None]) -> None:
    """Print how many golden answers a grader got right, and those that it did not. A label is None
    if the grader was not asked, and empty if it gave none.
    """
    answers = list(zip(rubric.golden, labels, strict=True))
    n_answered = sum(label is not None for label in labels)
    if not n_answered:
        return
    n_right = sum(golden.label == label for golden, label in answers)
    fields = {"grader": grader, "name": rubric.name, "right": n_right, "total": n_answered}
    say("golden.right", **fields)
    for number, (golden, label) in enumerate(answers, start=1):
        if label in (None, golden.label):
            continue
        text = " ".join(golden.texts.get("response", golden.texts.get("prompt", "")).split())
        text = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}…"
        fields = {"number": number, "right": golden.label, "label": label, "response": text}
        console().print("  " + written("golden.wrong" if label else "golden.no_label", **fields))


def run_new(arguments: Namespace) -> None:
    """Write a commented draft of a rubric into a new file."""
    path = Path(f"{arguments.name}.toml")
    _write_new(path, loading.draft_rubric(arguments.name, arguments.start))
    say("rubric_check.made", path=path)
    print_next(f"rubric check {path}")


def run_list(_arguments: Namespace) -> None:
    """Print a table of the rubrics that can be used by name."""
    rows = []
    for name in named_rubrics():
        rubric = load_rubric(name)
        keys = rubric.kind.permitted.replace(", ", ",")
        rows.append((name, rubric.unit, rubric.level, keys, ",".join(rubric.affirmative)))
    print_table(["rubric", "unit", "level", "options", "affirmative"], rows)


def run_show(arguments: Namespace) -> None:
    """Print a rubric as graders read it, with its limits and the hashes of its translations."""
    rubric = load_rubric(arguments.rubric)
    prompt = rubric.for_prompt({name: f"[{name}]" for name in rubric.variables})
    console().print(f"{rubric.title} (hash {rubric.hash})\n\n{prompt.system}\n\n{prompt.user}")
    if rubric.not_for:
        console().print("\n" + written("rubric_check.not_for", where=rubric.not_for))
    for language, version in rubric.versions.items():
        if version is not rubric:
            console().print("\n" + written("tables.translation", code=language, hash=version.hash))


def run_check(arguments: Namespace) -> int:
    """Check each file separately; with `--grader`, have these graders label the golden answers."""
    if not arguments.grader:
        reason = "goes with --grader, which is asked about the golden answers"
        refuse(arguments, shared_option_names("dry_run"), reason)
    elif len(arguments.files) > 1:
        raise InputError("--grader is asked about one rubric; name one")
    code = max(_check_one(file) for file in arguments.files)
    if code != DONE or not arguments.grader:
        return code
    return try_golden(load_rubric(arguments.files[0]), arguments)


def _check_one(file: str) -> int:
    """Print a file's faults, or else its rubric, and warn if an option's key begins another's."""
    rubric, faults = loading.read_rubric(loading.rubric_text(file))
    if rubric is None:
        for fault in faults:
            console(stderr=True).print(f"evenhand rubric check: {file}: {fault}")
        return BAD_INPUT
    affirmative = ", ".join(rubric.affirmative) or NONE
    fields: dict[str, object] = {"name": rubric.name, "hash": rubric.hash, "unit": rubric.unit}
    fields |= {"level": rubric.level, "threshold": rubric.threshold}
    say("rubric_check.heading", options=rubric.kind.permitted, affirmative=affirmative, **fields)
    say("rubric_check.filled", fields=", ".join(rubric.variables))
    for key, other in permutations((option.key for option in rubric.kind.listed), 2):
        if other.casefold().startswith(key.casefold()):  # both may begin with the same token
            warning = written("rubric_check.begins_another", key=key, longer=other)
            warn("terminal.warning", text=warning)
            break
    return DONE


def run_suggest(arguments: Namespace) -> None:
    """List what a study's rubrics leave unclear, or write a draft of a clearer one."""
    from evenhand.reporting.suggestions import divided_rubrics, unclear_rubrics

    with study_of(arguments) as study:
        rubric_name = arguments.rubric
        if rubric_name and rubric_name not in study.rubrics:
            raise InputError(f"the study has no rubric {rubric_name!r}")
        names = [rubric_name] if rubric_name else [*study.rubrics]
        unclear = [entry for entry in unclear_rubrics(study) if entry.rubric.name in names]
        divided = [entry for entry in divided_rubrics(study) if entry.rubric.name in names]
    if not unclear:
        say("suggest.nothing")
    _print_unclear(unclear)
    _print_divided(divided)
    if arguments.out:
        _write_draft(arguments, divided, unclear)
    elif unclear or divided:
        say("suggest.next")


def _print_unclear(rubrics: Sequence[UnclearRubric]) -> None:
    """Print the items on which a grader's label differs from the annotators', and flagged items."""
    for findings in rubrics:
        unclear = number_of(sum(map(len, findings.groups.values())), "item")
        flags = number_of(len({unit for unit, _ in findings.flags}), "item")
        heading = {"title": findings.rubric.title, "name": findings.rubric.name}
        say("suggest.rubric", **heading, unclear=unclear, flags=flags)
        for (people, grader), units in findings.groups.items():  # by the labels of both
            chosen = {"people": findings.with_names(people), "grader": findings.with_names(grader)}
            sentence = written("suggest.chosen", **chosen, units=number_of(len(units), "item"))
            console().print(f"  {sentence}")
            for unit in units:
                fields = {"unit": unit.unit_id, "grader": unit.grader, "note": _note(unit.note)}
                console().print("    " + written("suggest.unit", **fields))
        if findings.flags:
            console().print("  " + written("suggest.flagged"))
        for unit_id, text in findings.flags:
            console().print("    " + written("suggest.flag", unit=unit_id, note=_note(text)))


def _print_divided(rubrics: Sequence[DividedRubric]) -> None:
    """Print what the items on which annotators differ have in common, and the options confused."""
    for findings in rubrics:
        say("suggest.people", title=findings.rubric.title, name=findings.rubric.name)
        for line in findings.points:
            console().print(f"  {line}")
        for (first, second), count in findings.confusions.items():
            pair = {"one": findings.with_name(first), "other": findings.with_name(second)}
            sentence = written("suggest.confused", **pair, units=number_of(count, "item"))
            console().print(f"  {sentence}")


def _write_draft(
    arguments: Namespace, divided: Sequence[DividedRubric], unclear: Sequence[UnclearRubric]
) -> None:
    """Write a draft of the divided rubric. Raises InputError if there is none, or several."""
    from evenhand.reporting.suggestions import LEAST_UNITS, draft_of, draft_text

    names = [findings.rubric.name for findings in divided]
    if not names:
        fields = {"rubric": arguments.rubric, "least": LEAST_UNITS}
        raise InputError(written("suggest.nothing_to_draft", **fields))
    if len(names) > 1:
        raise InputError(written("suggest.which", names=", ".join(names)))
    flags = [flag for entry in unclear if entry.rubric.name == names[0] for flag in entry.flags]
    with study_of(arguments) as study:
        draft = draft_of(study, divided[0].rubric)
    _write_new(arguments.out, draft_text(draft, divided[0], flags))
    say("suggest.drafted", path=arguments.out)
    print_next(f"rubric check {arguments.out}", f"rubric reword {arguments.dir} {arguments.out}")


def _write_new(path: Path, text: str) -> None:
    """Write a new file. Raises InputError where it exists."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} is there already; choose another name or move it") from None


def run_reword(arguments: Namespace) -> None:
    """Declare a trial of another wording of a rubric, on new items of which half get each one."""
    from evenhand.reporting.noting import changing_settings, operator
    from evenhand.study.creation import declare_rewording

    text, pairs = loading.rubric_text(arguments.file), arguments.pairs
    new = loading.parse_rubric(text, arguments.file.name)
    if pairs < 2:
        raise InputError(f"--pairs is {pairs}; a trial needs 2 or more")
    with study_of(arguments) as study, changing_settings(study):
        n_more = declare_rewording(study, new, text, pairs, operator())
    fields = {"pairs": pairs, "old": new.variant_of, "new": new.name, "more": n_more}
    say("rewording.declared", **fields)
    print_next(f"annotate {arguments.dir}", f"report {arguments.dir}")


def _note(text: str) -> str:
    """Return an annotator's note as one line to append, without control characters."""
    line = "".join(letter for letter in " ".join(text.split()) if letter.isprintable())
    return f": {line}" if line else ""
