"""The log of tuned thresholds, with the labels that each of them rests on. Append-only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field

import sqlalchemy as sa

from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import threshold_events
from evenhand.study.store.store import Store


@dataclass(frozen=True, kw_only=True)
class TunedThreshold:
    """A grader's threshold that was tuned on the labels of `clusters` (ids of pairs).

    It has the best `objective` against the `reference` ("humans", or a rater) and replaces
    `instead_of`, the rubric's threshold or a declared one.
    """

    rubric: str
    grader: str
    threshold: float
    objective: str
    reference: str
    instead_of: float
    clusters: Collection[str]
    created_at: str = field(default_factory=utc_now)


def add_tuned_thresholds(store: Store, tuned: Sequence[TunedThreshold]) -> None:
    """Append tuned thresholds; durable on return."""
    rows = [{**asdict(each), "clusters": sorted(each.clusters)} for each in tuned]
    if rows:
        with store.write() as connection:
            connection.execute(sa.insert(threshold_events), rows)


def tuned_thresholds(store: Store) -> list[TunedThreshold]:
    """All that were ever tuned, in the order in which they came."""
    columns = [threshold_events.c[name] for name in TunedThreshold.__dataclass_fields__]
    with store.read() as connection:
        found = connection.execute(sa.select(*columns).order_by(threshold_events.c.event_id))
        return [TunedThreshold(**row._mapping) for row in found]
