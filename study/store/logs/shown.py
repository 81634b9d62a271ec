"""The languages in which people were asked, kept with their labels for comparing languages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.store.schema import SHOWN, is_latest, labels
from evenhand.study.tables.ratings import RATING_KEY

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.store.store import Store

_ORIGINAL = ("", "en")


def with_shown(store: Store, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings with `page_language` and `shown_hash`, empty for graders and where not
    known.

    Without the columns where everyone was asked in English.
    """
    key = [*RATING_KEY, "rubric_hash"]
    columns = [labels.c[name] for name in (*key, *SHOWN)]
    shown = store.table(sa.select(*columns).where(is_latest(labels, *key)))
    if shown["page_language"].isin(_ORIGINAL).all():
        return ratings
    found = ratings.merge(shown, on=key, how="left")
    return found.fillna(dict.fromkeys(SHOWN, ""))


def languages_of_raters(store: Store) -> dict[str, str]:
    """The language of each rater's page; "" where it changed between labels."""
    query = sa.select(labels.c.rater_id, labels.c.page_language).distinct()
    with store.read() as connection:
        rows = connection.execute(query.where(labels.c.page_language != "")).all()
    found: dict[str, str] = {}
    for rater, code in rows:
        found[rater] = "" if rater in found else code
    return found
