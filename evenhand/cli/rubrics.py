"""`rubric`: rubric files, shown and made."""

from __future__ import annotations

import argparse
from pathlib import Path

from evenhand.cli.terminal import console, print_table

__all__ = ["add_verbs"]


def add_verbs(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rubric = verbs.add_parser("rubric", help="list, show, check or import rubrics")
    actions = rubric.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="the rubrics that come with evenhand")
    listing.set_defaults(run=_list)

    show = actions.add_parser("show", help="print a rubric as the prompt that graders read")
    show.add_argument("rubric", metavar="NAME|FILE")
    show.set_defaults(run=_show)

    imports = actions.add_parser(
        "import",
        help="make rubric files from a Python file of prompts with `Options:` lists; it is "
        "read, never run",
    )
    imports.add_argument("file", type=Path, metavar="FILE.py")
    imports.add_argument("--out", type=Path, default=Path(), metavar="DIR", help="where to (here)")
    imports.add_argument(
        "--affirmative",
        action="append",
        default=[],
        metavar="RUBRIC=KEY,...",
        help="which options count as affirmative; repeatable",
    )
    imports.set_defaults(run=_import)


def _list(_arguments: argparse.Namespace) -> None:
    from evenhand.rubrics import load_rubric, shipped_rubrics

    rows = []
    for name in shipped_rubrics():
        rubric = load_rubric(name)
        affirmative = ",".join(rubric.affirmative)
        rows.append((name, rubric.unit, rubric.level, ",".join(rubric.categories), affirmative))
    print_table(["rubric", "unit", "level", "options", "affirmative"], rows)


def _show(arguments: argparse.Namespace) -> None:
    from evenhand.rubrics import load_rubric

    rubric = load_rubric(arguments.rubric)
    prompt = rubric.for_prompt({name: f"[{name}]" for name in rubric.variables})
    console().print(f"{rubric.title} (hash {rubric.hash})\n\n{prompt.system}\n\n{prompt.user}")


def _import(arguments: argparse.Namespace) -> None:
    from evenhand.rubrics.importing import import_prompts, write_rubrics

    affirmative = dict(_affirmative(text) for text in arguments.affirmative)
    imported = import_prompts(arguments.file, affirmative)
    for found, path in zip(imported, write_rubrics(imported, arguments.out), strict=True):
        rubric = found.rubric
        console().print(
            f"{path}: {rubric.unit}, {rubric.level}, options {', '.join(rubric.categories)}"
        )
        for remark in found.remarks:
            console().print(f"  {remark}")


def _affirmative(text: str) -> tuple[str, tuple[str, ...]]:
    from evenhand.errors import InputError

    name, equals, keys = text.partition("=")
    if not equals or not keys:
        raise InputError(f"--affirmative {text!r} must read RUBRIC=KEY,... for example refusal=4,5")
    return name.replace("_", "-"), tuple(key.strip() for key in keys.split(","))
