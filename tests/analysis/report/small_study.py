"""A small study that has something for every section of a report, texts that are hostile, and what
the tests read in a report: its page as HTML, and the rows that its figures come from.
"""

import csv
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.analysis import Analysis, Scale

DISAGREEMENTS = "disagreements.html"
HOSTILE = (
    '=cmd|"/c calc"!A1',
    "<script>alert(1)</script>",
    "a|b`c`\n# not a heading",
    "@sum\r+1",
    "![x](http://evil.example/x.png)",
)


def tables(
    people: tuple[str, ...] = ("ann", "ben", "cem"),
    graders: tuple[str, ...] = ("provider:sure", "provider:hard", "provider:constant"),
    subjects: tuple[str, ...] = ("first", "second", "third"),
    pairs: int = 40,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ratings and units: the first grader gives probabilities, the second leaves units unscored,
    the third always says C."""
    rng = np.random.default_rng(11)
    rows: list[dict[str, object]] = []
    units = []
    for pair in range(pairs):
        for subject in subjects:
            unit = f"p{pair:04d}|{subject}"
            units.append({"unit_id": unit, "cluster_id": f"p{pair:04d}", "subject": subject})
            true = rng.choice(3, p=[0.2, 0.15, 0.65])
            noisy = [true if rng.random() < 0.85 else rng.integers(3) for _ in range(5)]
            sure, hard, constant = graders

            def rate(rater: str, kind: str, label: str, unit: str = unit, **more: object) -> None:
                row = {"unit_id": unit, "rubric": "R", "rater_id": rater, "rater_kind": kind}
                rows.append(row | {"label": label} | more)

            for person, code in zip(people, noisy, strict=False):
                rate(person, "human", "ABC"[code])
            probability = float(np.clip((noisy[3] == 2) * 0.7 + rng.random() * 0.3, 0, 1))
            rate(sure, "model", "ABC"[noisy[3]], p_positive=probability)
            if rng.random() < 0.1:
                rate(hard, "model", "", unscored_reason="refused")
            else:
                rate(hard, "model", "ABC"[noisy[4]])
            rate(constant, "model", "C")
    return pd.DataFrame(rows), pd.DataFrame(units)


def timed(**given: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same, with the time of each label and a topic of each unit."""
    ratings, units = tables(**given)
    order = ratings.groupby("rater_id").cumcount()
    stamps = [f"2026-03-02T10:{n // 60:02}:{n % 60:02}+00:00" for n in order]
    ratings = ratings.assign(seconds=20.0 + order % 7, created_at=stamps)
    return ratings, units.assign(topic=["tax", "war"] * (len(units) // 2))


SCALE = Scale(
    "R", ("A", "B", "C"), affirmative=frozenset({"C"}), unit="pair", favours={"A": "a", "B": "b"}
)


def read_results(out: Path) -> list[dict[str, str]]:
    with (out / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass
class Page(HTMLParser):
    """Text of each estimate, with what else its cell holds where it is the only one there, by
    results row; tags and attributes of everything.
    """

    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    cells: list[tuple[int, list[str], str]] = field(default_factory=list)
    bare_cells: list[str] = field(default_factory=list)
    said: str = ""
    _open: list[str] | None = None
    _origins: list[tuple[int, list[str], str]] = field(default_factory=list)
    _figure: bool = False
    _hidden: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append((tag, given))
        if tag in ("td", "dd"):
            self._open, self._origins = [], []
        self._figure = "data-row" in given
        if self._figure:
            key = json.loads(given["data-key"] or "")
            self._origins.append((int(given["data-row"] or 0), key, ""))
        self._hidden = tag == "sup"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "dd") and self._open is not None:
            text = " ".join(self._open)
            if len(self._origins) == 1:
                self.cells.append((*self._origins[0][:2], text))
            elif self._origins:
                self.cells += self._origins
            elif tag == "td":
                self.bare_cells.append(text)
            self._open = None
        elif self._figure and self._open is None:
            self.cells.append(self._origins.pop())
        self._hidden = self._figure = False

    def handle_data(self, data: str) -> None:
        self.said += data
        if self._figure:
            self._origins[-1] = (*self._origins[-1][:2], data.strip())
        if self._open is not None and not self._hidden and data.strip():
            self._open.append(data.strip())


def parse(file: Path) -> Page:
    """Read a page, or the report of a folder."""
    page = Page()
    page.feed((file / "report.html" if file.is_dir() else file).read_text("utf-8"))
    return page


def is_rounded_from(text: str, row: dict[str, str]) -> bool:
    """Whether a shown number is one of the row's, up to rounding to the shown places."""
    places = len(text.partition(".")[2])
    exact = [float(row[name]) for name in ("estimate", "low", "high") if row[name]]
    counts = [int(row["n_units"]), int(row["n_clusters"])]
    if "subjects" in row["note"] and text in re.findall(r"[\d.]+", row["note"]):
        return True  # correlations carry their p and the number of subjects
    near = any(abs(float(text) - value) <= 0.5 * 10**-places + 1e-12 for value in exact)
    return near or ("." not in text and int(text) in counts)


def texts_of(analysis: Analysis, text: str = "word") -> dict[str, Any]:
    """What a context knows of all items on which graders differ from annotators."""
    found = analysis.disagreements
    units = {(each.rubric, each.unit_id) for each in found}
    about = [(each.rubric, each.unit_id, each.grader) for each in found]
    return {
        "texts": {unit: {"Prompt a": text, "Response b": text} for unit in units},
        "remarks": {unit: {"ann": text} for unit in units},
        "replies": {each: [text] for each in about},
        "sortings": dict.fromkeys(about[:2], ("rubric_unclear", text)),
    }
