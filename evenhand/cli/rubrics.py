"""`rubric`: rubric files, shown and made."""

from __future__ import annotations

import argparse
from pathlib import Path

from evenhand.cli.terminal import console, print_table
from evenhand.cli.verbs import Parser, Verb, add_verbs
from evenhand.errors import InputError


def _options(rubric: Parser) -> None:
    add_verbs(rubric, ACTIONS, dest="action", required=True)


def _no_options(_listing: Parser) -> None:
    """`rubric list` takes nothing."""


def _show_options(show: Parser) -> None:
    show.add_argument("rubric", metavar="NAME|FILE", help="one of `rubric list`, or a .toml file")


def _import_options(imports: Parser) -> None:
    imports.add_argument("file", type=Path, metavar="FILE.py", help="read, never run")
    imports.add_argument(
        "--out", type=Path, default=Path(), metavar="DIR", help="output folder (here)"
    )
    imports.add_argument(
        "--affirmative",
        action="append",
        default=[],
        metavar="RUBRIC=KEY,...",
        help="which options count as affirmative; repeatable",
    )


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
    name, equals, keys = text.partition("=")
    if not equals or not keys:
        raise InputError(f"--affirmative is {text!r}; write RUBRIC=KEY,... such as refusal=4,5")
    return name.replace("_", "-"), tuple(key.strip() for key in keys.split(","))


ACTIONS = (
    Verb("list", "the rubrics that come with evenhand", _no_options, _list),
    Verb("show", "print a rubric as the prompt that graders read", _show_options, _show),
    Verb(
        "import",
        "make rubric files from a Python file of prompts with `Options:` lists",
        _import_options,
        _import,
    ),
)
VERBS = (Verb("rubric", "list, show or import rubrics", _options),)
