"""The log of the injection audit: grades of texts that try to sway a grader.

Append-only, in a table of its own: it never becomes a rating.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.store.grades import TRANSIENT_REASONS
from evenhand.study.store.schema import attacked_grades, is_latest
from evenhand.study.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Trial = tuple[str, str, str, str, int]
"""(unit_id, attack, target, side, draw): one text that was put to a grader."""

_TRIAL = ("unit_id", "attack", "target", "side", "draw")
_KEY = ("rater_id", "rubric", "rubric_hash", "suite", *_TRIAL)


def finished_trials(
    store: Store, rater_id: str, rubric: str, rubric_hashes: Collection[str], suite: str
) -> dict[Trial, str]:
    """Return the trials that a grader need not be asked again, each with its label; "" where none
    came.
    """
    table = attacked_grades
    query = (
        sa.select(*(table.c[name] for name in _TRIAL), table.c.label)
        .where(
            table.c.rater_id == rater_id,
            table.c.rubric == rubric,
            table.c.rubric_hash.in_(rubric_hashes),
            table.c.suite == suite,
            table.c.unscored_reason.not_in(TRANSIENT_REASONS),
        )
        .order_by(table.c.event_id)
    )
    with store.read() as connection:
        return {tuple(row[:5]): row.label for row in connection.execute(query)}


def was_audited(store: Store) -> bool:
    """Return True if a grader of the study ever answered in an audit."""
    table = attacked_grades
    answered = sa.select(table.c.event_id).where(table.c.unscored_reason.not_in(TRANSIENT_REASONS))
    with store.read() as connection:
        return connection.execute(answered.limit(1)).first() is not None


def attacked_table(store: Store, accepted: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Return each grader's latest grades under a text that `accepted` (rubric -> hashes) names, for
    the latest version of the attacks put to it.

    Columns: `rubric, rater_id, unit_id, attack, target, side, draw, label, probabilities` (a dict
    or None).
    """
    table = attacked_grades
    names = ("rubric", "rater_id", *_TRIAL, "label", "probabilities", "rubric_hash", "suite")
    query = (
        sa.select(*(table.c[name] for name in names))
        .where(is_latest(table, *_KEY), table.c.unscored_reason.not_in(TRANSIENT_REASONS))
        .order_by(table.c.event_id)
    )
    found = store.table(query)
    counted = [
        digest in accepted.get(rubric, ())
        for rubric, digest in zip(found["rubric"], found["rubric_hash"], strict=True)
    ]
    found = found.loc[counted]
    newest = found.groupby(["rubric", "rater_id"])["suite"].transform("last")
    found = found[found["suite"] == newest].drop(columns=["suite", "rubric_hash"])
    return found.reset_index(drop=True)
