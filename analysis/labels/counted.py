"""Selection of ratings: one version of a rubric, without the raters that are excluded.

Ratings given under different wordings of a rubric are different measurements: never pooled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

ALL_RATERS = "raters=all"
"""Subset whose rows include the excluded raters."""


def one_version(
    ratings: pd.DataFrame, rubric: str, accepted: Collection[str] | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the ratings of one rubric that count, and notes on those set aside.

    Ratings without a hash (imported ones) always count. Raises InputError where several versions
    are present and none was chosen.
    """
    hashes = ratings["rubric_hash"]
    counts = hashes[hashes != ""].value_counts().sort_index()
    listed = ", ".join(f"{version} ({count} ratings)" for version, count in counts.items())
    if accepted is None:
        if len(counts) > 1:
            raise InputError(
                f"rubric {rubric!r} has ratings of {len(counts)} versions, rubric_hash {listed}; "
                "keep the rows of one of them, or say which versions count"
            )
        return ratings, []
    counted = hashes.isin(["", *accepted])
    others = hashes[~counted].value_counts().sort_index()
    notes = [
        f"{rubric}: {written('note.version', count=count, version=version)}"
        for version, count in others.items()
    ]
    return ratings[counted], notes


def without_excluded(
    ratings: pd.DataFrame, rubric: str, excluded: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str]]:
    """Drop excluded raters from one rubric's ratings; the note gives their names and reasons.

    `excluded` gives each rater's reason.
    """
    left_out = ratings["rater_id"].isin(list(excluded))
    if not left_out.any():
        return ratings, []
    names = sorted(set(ratings.loc[left_out, "rater_id"]))
    of = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    who = "; ".join(f"{name}: {excluded[name]}" for name in names)
    note = written(
        "note.excluded",
        count=len(names),
        all=of,
        ratings=int(left_out.sum()),
        reasons=who,
        subset=repr(ALL_RATERS),
    )
    return ratings[~left_out], [f"{rubric}: {note}" if rubric else note]
