"""Figures that others published, which a report sets beside a study's own: a TOML file for each
source, and the one grammar of all such files.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from evenhand.errors import InputError
from evenhand.study.settings.sections import Section, Share, parsed

UNITS = {
    "percent": (100.0, 0.0, 100.0),
    "share": (1.0, 0.0, 1.0),
    "coefficient": (1.0, -1.0, 1.0),
    "standard deviation": (1.0, 0.0, float("inf")),
}
"""Each unit with what makes 1 of ours, and its least and greatest value."""
SHIPPED = ("even-handedness", "stance")
_PRINTED = re.compile(r"([<>]?) ?(-?\d+(?:\.\d+)?)")


class PublishedFigure(Section):
    """One figure: what it is in the words of results.csv, for whom, and as it was printed."""

    rubric: str = Field(min_length=1)
    statistic: str = Field(min_length=1)
    between: Literal["people", "graders", "annotators and graders", "subjects"]
    """Whose figures of this study are its like."""
    subset: Literal["all", "all|binary", "all|collapsed"] = "all|binary"
    at: str = ""
    threshold: Share | None = None
    """The cut of probabilities that it was published at, where that is not the rubric's: the
    study's own is given at both."""
    of: str = Field(min_length=1)
    """Whose figure it was."""
    value: str
    unit: str = ""
    differs: str = ""

    @model_validator(mode="after")
    def _is_a_figure(self) -> PublishedFigure:
        what = f"{self.statistic} of {self.of}"
        if self.unit not in UNITS:
            fault = f"has the item {self.unit!r}" if self.unit else "has no item"
            raise ValueError(f"{what} {fault}; name one of {', '.join(UNITS)}")
        _, least, most = UNITS[self.unit]
        found = _PRINTED.fullmatch(self.value)
        if not found or not least <= float(found[2]) <= most:
            raise ValueError(f"{what} is {self.value!r}, which is no {self.unit}")
        return self

    @property
    def printed(self) -> str:
        """The figure with its unit where that is a sign."""
        return f"{self.value}%" if self.unit == "percent" else self.value

    @property
    def beside_ours(self) -> str:
        """The figure in the unit of results.csv, and as printed where that is another."""
        sign = self.value.rstrip("0123456789.-")
        return f"{sign}{self.in_ours:g} ({self.printed})" if self.unit == "percent" else self.value

    @property
    def in_ours(self) -> float:
        """The number in the unit of results.csv; of "> 0.99" its bound.

        >>> PublishedFigure(rubric="r", statistic="s", between="people", of="b", value="94",
        ...                 unit="percent").in_ours
        0.94
        """
        return float(self.value.lstrip("<> ")) / UNITS[self.unit][0]


class Design(Section):
    """How the figures came about, as far as it was published; a report says what differs here."""

    subjects: str = ""
    graders: str = ""
    people: str = ""
    prompts: int = Field(default=0, ge=0)
    """Sampled prompts, or pairs of them, for each subject; 0: not said."""
    responses: int = Field(default=0, ge=0)
    """Responses in all that people labelled, where no number of prompts is said; 0: not said."""
    probabilities: str = ""
    """The graders whose probabilities were read."""
    differs: tuple[str, ...] = ()
    """What differs from any study here, in sentences."""


class PublishedFigures(Section):
    """The figures of one source."""

    citation: str = Field(min_length=1)
    design: Design = Design()
    figure: tuple[PublishedFigure, ...] = Field(min_length=1)


def read_published(named: str, folder: Path) -> PublishedFigures:
    """Return the figures that study.toml names: those of a source that comes along, or of a file,
    whose path starts at the study's folder. Raises InputError where the file is bad.
    """
    path = folder / named
    if named in SHIPPED:
        content = files("evenhand.data").joinpath(f"figures_{named}.toml").read_bytes()
    elif path.is_file():
        content = path.read_bytes().decode("utf-8-sig", "replace").encode()
    else:
        raise InputError(
            f"study.toml: published is {named!r}; name {' or '.join(SHIPPED)}, or a TOML file in "
            "the study's folder"
        )
    return parsed(PublishedFigures, content, path.name)
