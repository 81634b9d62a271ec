"""Graders compared with people in each part of the sample: a pass on the whole may fail in one.

Only a part in which a grader is clearly below people counts against it: most parts are too small
to show more. Each grader's bounds hold in all of its parts at once (Bonferroni: parts share few
clusters).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.analysis.bootstrap.intervals import MIN_CLUSTERS, Deciding, Interval
from evenhand.analysis.labels.matrix import BINARY, Coded
from evenhand.analysis.labels.units import UnitColumn
from evenhand.analysis.notes import Remark
from evenhand.analysis.results import ResultRow, ResultRows
from evenhand.analysis.types import Codes, Mask
from evenhand.analysis.verdicts.comparison import Beside, Comparison
from evenhand.analysis.verdicts.readings import Reading

PART = "part_non_inferiority"


@dataclass(frozen=True)
class _Part:
    """Units of one part of the sample, and graders compared with people on them."""

    name: str
    chosen: Mask
    beside: Beside

    def of(self, coded: Coded) -> Coded:
        """The labels in this part."""
        return coded.only(self.chosen, coded.part(self.name))


def add_part_rows(
    rows: ResultRows,
    readings: Sequence[Reading],
    beside: Beside,
    columns: Sequence[UnitColumn],
    alpha: float,
    min_rarer: int,
) -> None:
    """`part_non_inferiority` of every grader in every part that units columns tell apart: as
    `non_inferiority`, with bounds that hold in all parts of a grader at once at the level `alpha`.

    There are none where fewer than `min_rarer` clusters have a label of the rarer kind.
    """
    if not readings:
        return
    parts = list(_parts(readings[0].coded.clusters, beside, columns))
    for reading in readings:
        for part in parts:
            coded = part.of(reading.coded)
            people = coded.people_beside(reading.grader)
            inside = coded.labelled[:, reading.grader] & coded.labelled_by_any(people)
            of_part = Reading(coded, reading.grader, reading.at)
            found = part.beside.compared(of_part, to_beat=0.0)
            rows.add(
                PART,
                _bounded(found, alpha / len(parts), min_rarer).held(
                    Deciding(margin=found.margin) if found else None
                ),
                part.beside.left_out.count(coded.clusters, inside),
                rater_a="humans",
                rater_b=coded.raters[reading.grader],
                subset=coded.subset,
                at=reading.at,
            )


def _parts(clusters: Codes, beside: Beside, columns: Sequence[UnitColumn]) -> Iterator[_Part]:
    for column in columns:
        for code, value in enumerate(column.values):
            chosen = column.codes == code
            if chosen.any():
                kept = np.unique(clusters[chosen])
                inside = Beside(beside.left_out.only(kept), beside.margin, beside.margin_share)
                yield _Part(f"{column.name}={value}", chosen, inside)


def _bounded(found: Comparison | None, alpha: float, min_rarer: int) -> Interval:
    if found is None:
        return Interval.undefined("too_few_labels")
    if found.rarer < min_rarer or found.worth < MIN_CLUSTERS or not alpha:
        return Interval.point(found.difference, Remark("too_few_labels"))
    below, above = found.below_people.reach(alpha)
    return Interval(found.difference, found.difference - below, found.difference + above)


def part_of(row: ResultRow) -> str:
    """The name of the part that a row is about."""
    return row["subset"].removesuffix(BINARY)
