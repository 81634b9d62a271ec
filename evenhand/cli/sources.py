"""What `select`, `gate` and `plan` read: a study's folder, or a ratings file and its options."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.cli.verbs import Parser, refuse
from evenhand.reporting.analysing import add_analysis_options, analyse_source

if TYPE_CHECKING:
    from evenhand.analysis import Analysis

__all__ = ["add_source", "analysis_of"]


def add_source(
    parser: Parser, text: str, *, without: Collection[str] = (), nargs: Literal["?"] | None = None
) -> None:
    """DIR|RATINGS and the options of a ratings file, `without` those that the verb does not use."""
    parser.add_argument("source", type=Path, metavar="DIR|RATINGS", nargs=nargs, help=text)
    before = parser.options
    add_analysis_options(parser, without)
    of_files = [option for option in parser.options if option not in before]
    parser.set_defaults(of_files=of_files)


def analysis_of(
    arguments: Namespace, *, of_study: Collection[str] = (), why: bool = False
) -> Analysis:
    """The analysis of the source; options that say nothing of a study are refused there.

    `of_study` names the options of files that the verb reads for studies too.
    """
    if arguments.source.is_dir():
        only_files = set(arguments.of_files) - set(of_study)
        refuse(arguments, only_files, "is for a ratings file; a study says it in study.toml")
    analysis, _ = analyse_source(arguments.source, arguments, why=why)
    return analysis
