"""The log of draws with known probabilities: the chances of each draw, and the pairs it took.

Append-only. A study whose sample was only ever drawn by chance has none: there all pairs were
equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from evenhand.study.prompts.unequal import Wave, inclusion
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import labels, sample_waves
from evenhand.study.store.store import Store

_COLUMNS = [sample_waves.c[name] for name in Wave.__dataclass_fields__]


def extend_by_waves(store: Store, known: Sequence[str], waves: Sequence[Wave]) -> None:
    """Add the pairs that the last wave took to the sample, behind those `known` to be in it, and
    log the waves. Raises InputError where the sample has changed meanwhile.
    """
    rows = [
        {
            "by": wave.by,
            "chances": dict(wave.chances),
            "taken": list(wave.taken),
            "created_at": utc_now(),
        }
        for wave in waves
    ]
    store.extend_sample(known, waves[-1].taken, log=(sample_waves, rows))


def sample_waves_of(store: Store) -> list[Wave]:
    """All waves, in the order in which they came."""
    with store.read() as connection:
        found = connection.execute(sa.select(*_COLUMNS).order_by(sample_waves.c.event_id))
        return [Wave(**row._mapping) for row in found]


def inclusion_so_far(store: Store) -> Mapping[str, float]:
    """Return each pair's probability of being picked and labelled by now; empty where all were
    equal.

    A pair counts as labelled when any person has labelled it on any rubric: all rubrics of a pair
    are handed out together.
    """
    waves = sample_waves_of(store)
    if not waves:
        return {}
    with store.read() as connection:
        query = sa.select(labels.c.unit_id).where(labels.c.rater_kind == "human").distinct()
        seen = {parse_unit_id(unit)[0] for unit in connection.execute(query).scalars()}
    shares = [len(seen.intersection(wave.taken)) / max(len(wave.taken), 1) for wave in waves]
    return inclusion(waves, shares if any(shares) else ())
