"""Declared exclusions: the main figures leave the raters out, and stand beside those with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenhand.analysis.bootstrap.resamples import Resamples
from evenhand.analysis.labels.matrix import LabelMatrix
from evenhand.analysis.people.slices import add_main_rows
from evenhand.analysis.results import ResultRows

if TYPE_CHECKING:
    import pandas as pd

ALL_RATERS = "raters=all"
"""The subset whose rows count the excluded raters too."""


def without_excluded(
    ratings: pd.DataFrame, rubric: str, excluded: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str]]:
    """One rubric's ratings without those of excluded raters, and a note that says who and why.

    `excluded` gives each rater's reason.
    """
    left_out = ratings["rater_id"].isin(list(excluded))
    if not left_out.any():
        return ratings, []
    names = sorted(set(ratings.loc[left_out, "rater_id"]))
    of = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    who = "; ".join(f"{name}: {excluded[name]}" for name in names)
    note = (
        f"{rubric or 'the rubric'}: {len(names)} of {of} people excluded, with "
        f"{int(left_out.sum())} ratings ({who}); rows of the subset {ALL_RATERS!r} count them too"
    )
    return ratings[~left_out], [note]


def add_all_raters_rows(rows: ResultRows, everyone: LabelMatrix, resamples: Resamples) -> None:
    """The main figures with the excluded raters among the people: subset `raters=all`."""
    add_main_rows(rows, everyone.on_categories(ALL_RATERS), resamples)
    if everyone.has_verdicts:
        add_main_rows(rows, everyone.on_verdicts(ALL_RATERS), resamples)
