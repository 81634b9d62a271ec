"""What graders replied, word for word."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import sqlalchemy as sa

from evenhand.study.store.schema import grades
from evenhand.study.store.store import Store

_AT_ONCE = 400
"""Units in one query."""

About = tuple[str, str, str]
"""(rubric, unit id, grader)."""


def raw_replies(
    store: Store, wanted: Sequence[About], accepted: Mapping[str, Collection[str]]
) -> dict[About, list[str]]:
    """The latest reply to every order and draw of each grade wanted, by (rubric, unit id, grader).

    Only replies under a text that `accepted` (rubric -> hashes) names; a reply that was given
    several times stands once, and one without words not at all.
    """
    keys, latest = set(wanted), dict[tuple[About, str, int], str]()
    units = list(dict.fromkeys(unit for _, unit, _ in wanted))
    columns = [
        grades.c[name]
        for name in ("rubric", "unit_id", "rater_id", "order", "draw", "rubric_hash", "raw")
    ]
    query = sa.select(*columns).order_by(grades.c.event_id)
    with store.read() as connection:
        for start in range(0, len(units), _AT_ONCE):
            some = grades.c.unit_id.in_(units[start : start + _AT_ONCE])
            for rubric, unit, grader, order, draw, digest, raw in connection.execute(
                query.where(some)
            ):
                key = (rubric, unit, grader)
                if key in keys and digest in accepted.get(rubric, ()):
                    latest[key, order, draw] = raw
    found: dict[About, list[str]] = {}
    for (key, _, _), raw in sorted(latest.items()):
        if raw.strip() and raw not in found.setdefault(key, []):
            found[key].append(raw)
    return {key: said for key, said in found.items() if said}
