"""The log of looks at the verdict: people's labels at each time the verdict was asked for.

Each look at new labels is another chance to be wrong, so looks are counted. Looking again at the
same labels is the same look. Append-only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import look_events
from evenhand.study.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["coming_looks", "labels_hash", "look_numbers"]

_TOLD = ["unit_id", "rater_id", "label", "order", "draw"]


def labels_hash(ratings: pd.DataFrame) -> str:
    """Return a hash of people's labels that does not depend on the order of the rows (`ratings` of
    one rubric).
    """
    people = ratings.loc[ratings["rater_kind"] == "human", _TOLD].sort_values(_TOLD)
    return hashlib.sha256(people.to_csv(index=False).encode()).hexdigest()


def look_numbers(store: Store, present: Mapping[str, str], *, record: bool) -> dict[str, int]:
    """Return the number of this look, by rubric, from the hashes of people's labels as they are
    now.

    A look at new labels is logged if `record`; else its number is 0, for then it is not counted.
    """
    with store.write() if record else store.read() as connection:
        known = _known(connection)
        found = {}
        for rubric, labels in present.items():
            seen = known.setdefault(rubric, [])
            if labels not in seen and record:
                row = {"rubric": rubric, "labels_hash": labels, "created_at": utc_now()}
                connection.execute(sa.insert(look_events).values(row))
                seen.append(labels)
            found[rubric] = seen.index(labels) + 1 if labels in seen else 0
    return found


def coming_looks(store: Store, present: Mapping[str, str]) -> dict[str, int]:
    """Return the number that a look at these labels has, or would have, by rubric; logs nothing."""
    with store.read() as connection:
        known = _known(connection)
    return {
        rubric: [*known.get(rubric, []), labels].index(labels) + 1
        for rubric, labels in present.items()
    }


def _known(connection: sa.Connection) -> dict[str, list[str]]:
    """The hashes of the labels looked at so far, by rubric, each once and in order."""
    query = sa.select(look_events.c.rubric, look_events.c.labels_hash)
    known: dict[str, list[str]] = {}
    for rubric, labels in connection.execute(query.order_by(look_events.c.event_id)):
        if labels not in known.setdefault(rubric, []):
            known[rubric].append(labels)
    return known
