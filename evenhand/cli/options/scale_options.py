"""The scale options shared by `check` and similar verbs: the meaning of a ratings file's labels."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import ScaleOptions


FORMAT_OPTION: dict[str, dict[str, Any]] = {
    "--format": {
        "metavar": "NAME",
        "help": "what the file is, where its content does not show it: table (CSV, TSV, JSONL, "
        "Parquet), excel, label-studio, inspect, mlflow and others (docs/formats.md)",
    },
}
FILE_OPTIONS: dict[str, dict[str, Any]] = {
    "--columns": {
        "metavar": "OURS=THEIRS,...",
        "help": "what the file calls its columns, as in unit=item,rater=who,kind=type,label=score",
    },
    "--human": {"metavar": "NAME,...", "help": "which raters, or columns of labels, are people"},
    "--model": {"metavar": "NAME,...", "help": "which raters, or columns of labels, are models"},
}
"""Options for reading a file that others made."""
SCALE_OPTIONS: dict[str, dict[str, Any]] = {
    "--rubric": {"metavar": "NAME|FILE", "help": "only this rubric, on its scale"},
    "--units": {"type": Path, "metavar": "FILE", "help": "columns of the units"},
    "--level": {"choices": ["nominal", "ordinal", "interval"], "help": "(nominal)"},
    "--categories": {"metavar": "KEY,...", "help": "all permitted labels, in order"},
    "--affirmative": {"metavar": "KEY,...", "help": "labels that count as yes"},
    "--sides": {"metavar": "KEY,KEY", "help": "labels that favour side a and side b"},
    "--threshold": {
        "action": "append",
        "metavar": "GRADER=T",
        "help": "the probability from which this grader says yes (0.5)",
    },
    **FORMAT_OPTION,
    **FILE_OPTIONS,
    "--normalise": {
        "action": "store_true",
        "help": "treat labels that differ only by case, outer space or .0 as one, and nan, None, "
        "null as no label; prints how many cells that changed",
    },
    "--independent": {
        "action": "store_true",
        "help": "take every unit as its own, though a column repeats that seems to name items",
    },
}
"""Options that only a ratings file needs: a study has rubrics and units of its own."""


def add_scale_options(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """Add the options on the meaning of a file's labels; `without` lists those that a verb cannot
    use.
    """
    for option, how in SCALE_OPTIONS.items():
        if option not in without:
            parser.add_argument(option, **how)


def scale_options(arguments: argparse.Namespace) -> ScaleOptions:
    """Return the scale declared on the command line."""
    from evenhand.reporting.ratings_file.declared import ScaleOptions

    return ScaleOptions(
        rubric=arguments.rubric,
        level=getattr(arguments, "level", None),
        categories=keys_in(getattr(arguments, "categories", None)) or (),
        affirmative=keys_in(getattr(arguments, "affirmative", None)),
        sides=keys_in(getattr(arguments, "sides", None)),
        thresholds=dict(map(_threshold, getattr(arguments, "threshold", None) or ())),
        normalise=arguments.normalise,
        independent=getattr(arguments, "independent", False),
        format=getattr(arguments, "format", None),
        **file_options(arguments),
    )


def file_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the fields of `ScaleOptions` on a file's columns and raters."""
    from evenhand.reporting.ratings_file.dataframes import kinds_of
    from evenhand.study.tables.names import columns_in

    people, models = keys_in(arguments.human) or (), keys_in(arguments.model) or ()
    return {"columns": columns_in(arguments.columns), "kinds": kinds_of(people, models)}


def keys_in(text: str | None) -> tuple[str, ...] | None:
    """Return the parts of an option's value, separated by commas; None if it was not given."""
    if text is None:
        return None
    return tuple(key.strip() for key in text.split(",") if key.strip())


def _threshold(text: str) -> tuple[str, float]:
    grader, _, number = text.rpartition("=")
    try:
        return grader.strip(), float(number)
    except ValueError:
        raise InputError(f"--threshold is {text!r}; write GRADER=T, as in my-grader=0.2") from None
