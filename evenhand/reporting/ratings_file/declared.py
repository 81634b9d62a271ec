"""Options that a user declares for a ratings file, and how they are written."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.analysis.labels.scale import Level
    from evenhand.reporting.ratings_file.frames import Table


@dataclass(frozen=True)
class ScaleOptions:
    """Options declared for a ratings file and its analysis; all of them may be left out.

    `format` names a reader of `exchange.readers` where its content does not show which.
    `columns` are its names of our columns, `{ours: theirs}`, and `kinds` are those of its raters.
    `wide` is the pattern of the names of columns that a rater has for each rubric, and `sheet` the
    one of a workbook that is read.
    `rubric` is the only one asked for: a name in the file, a shipped rubric, or a rubric's file.
    `categories` are all permitted labels in order, `affirmative` those that count as yes, `sides`
    the one that favours side a and the one that favours side b; `thresholds` are by grader.
    Units that are `independent` are so even where a column names items that several of them share.
    With `several` each label is a set of options.
    With `normalise` labels and names that look alike are taken for one, with False for different
    ones; None asks.
    `units` is a file or a table of the units' columns; `settings` are those of the analysis that
    replace the study's or the sidecar's own, by name.
    `inferred` kinds were not declared for each rater by name.
    Messages name these as options of the command line, or as they are called `in_python`, and a
    table that is no file by its `name`.
    """

    rubric: str | None = None
    level: Level | None = None
    categories: tuple[str, ...] = ()
    affirmative: tuple[str, ...] | None = None
    sides: tuple[str, ...] | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    format: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    kinds: Mapping[str, str] = field(default_factory=dict)
    wide: str = ""
    sheet: str = ""
    normalise: bool | None = None
    independent: bool = False
    several: bool = False
    units: Path | Table | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    in_python: bool = False
    inferred: bool = False
    name: str = "ratings"

    @property
    def missing(self) -> tuple[str, ...]:
        """The labels that say that there is none."""
        return tuple(self.settings.get("missing", ()))

    def normalise_spelled(self, joins: bool) -> str:
        """The option `normalise` as the user writes it, in Python or on the command line."""
        if self.in_python:
            return f"normalise={joins}"
        return "--normalise" if joins else "--no-normalise"

    @property
    def several_option(self) -> str:
        """The option `several` as the user writes it, in Python or on the command line."""
        return "several=True" if self.in_python else "--several"

    @property
    def independent_option(self) -> str:
        """The option `independent` as the user writes it, in Python or on the command line."""
        return "independent=True" if self.in_python else "--independent"

    def wide_spelled(self, pattern: str) -> str:
        """The option `wide` with a pattern as the user writes it, in Python or on the command line.

        >>> ScaleOptions().wide_spelled("{rater}_{rubric}")
        "--wide '{rater}_{rubric}'"
        """
        return f'wide="{pattern}"' if self.in_python else f"--wide {shlex.quote(pattern)}"

    def spelled(self, name: str, *keys: str) -> str:
        """Return an option with its keys as the user writes it, in Python or on the command line.

        >>> ScaleOptions().spelled("categories", "1", "2"), ScaleOptions().spelled("missing", "-1")
        ('--categories 1,2', '--missing=-1')
        >>> ScaleOptions(in_python=True).spelled("categories", "1", "2")
        "categories=['1', '2']"
        """
        if self.in_python and name == "level":
            return f"level={keys[0]!r}" if keys else "level="
        if self.in_python:
            return f"{name}={list(keys) or ''}"
        mark = "=" if keys and keys[0].startswith("-") else " "
        return f"--{name}{mark}{shlex.quote(','.join(keys))}" if keys else f"--{name}"
