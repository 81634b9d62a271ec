"""Estimates from a study that has begun, to plan how many more people and pairs would decide."""

from __future__ import annotations

import math
from collections.abc import Iterable

from evenhand.analysis.bootstrap.intervals import Deciding
from evenhand.analysis.planning.more_people import Pilot
from evenhand.analysis.results import ResultRow
from evenhand.analysis.verdicts.evidence import NON_INFERIORITY, NON_INFERIORITY_PEOPLE


def pilots(rows: Iterable[ResultRow]) -> list[Pilot]:
    """Return each grader compared with people, on the labels that its verdict is taken from, where
    there are bounds.
    """
    compared = [row for row in rows if row["rater_a"] == "humans" and not row["at"]]
    wider = {
        (row["rubric"], row["rater_b"]): row
        for row in compared
        if row["statistic"] == NON_INFERIORITY_PEOPLE
    }
    return [
        _pilot(row, wider.get((row["rubric"], row["rater_b"])))
        for row in compared
        if row["statistic"] == NON_INFERIORITY and row["high"] > row["low"]
    ]


def _pilot(row: ResultRow, wider: ResultRow | None) -> Pilot:
    from scipy.special import stdtrit

    level = row["deciding"] or Deciding()
    over_people = (wider["deciding"] if wider else None) or Deciding(from_people=math.nan)
    reached = (row["high"] - row["low"]) / 2
    of_clusters = (reached / float(stdtrit(row["n_clusters"] - 1, 1.0 - level.alpha))) ** 2
    share = over_people.from_people
    return Pilot(
        rubric=row["rubric"],
        grader=row["rater_b"],
        difference=row["estimate"],
        margin=level.margin,
        of_clusters=of_clusters,
        clusters=row["n_clusters"],
        of_people=of_clusters * share / (1.0 - share),
        people=over_people.people,
        alpha=level.next_alpha,
    )
