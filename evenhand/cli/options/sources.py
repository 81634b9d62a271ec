"""The source that `select`, `gate` and `plan` read: a study's folder, or a ratings file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.cli.options.scale_options import SCALE_OPTIONS
from evenhand.cli.options.setting_options import add_analysis_options, analyse_asked
from evenhand.cli.verbs import Parser, refuse

if TYPE_CHECKING:
    from evenhand.analysis import Analysis


def path_or_address(text: str) -> Path | str:
    """A path, or an address such as s3://BUCKET/FOLDER as it is."""
    return text if "://" in text else Path(text)


def add_source(
    parser: Parser, text: str, *, without: Collection[str] = (), nargs: Literal["?"] | None = None
) -> None:
    """DIR|RATINGS, and how it is analysed, `without` options that the verb has no use for."""
    parser.add_argument(
        "source", type=path_or_address, metavar="DIR|RATINGS", nargs=nargs, help=text
    )
    add_analysis_options(parser, without)


def analysis_of(
    arguments: Namespace, *, of_study: Collection[str] = (), why: bool = False
) -> Analysis:
    """Return the analysis of the source. Options that only a file needs are refused with a study,
    except the options `of_study`, which the verb reads for a study too.
    """
    from evenhand.reporting.load import is_study

    engine = getattr(arguments, "engine", None)
    if not engine and isinstance(arguments.source, Path) and is_study(arguments.source):
        only_files = SCALE_OPTIONS.keys() - set(of_study)
        refuse(arguments, only_files, "is for a ratings file; a study has rubrics of its own")
    analysis, _ = analyse_asked(arguments.source, arguments, why=why)
    return analysis
