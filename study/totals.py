"""What graders did and cost, added up from their attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from study.schema import grades

if TYPE_CHECKING:
    import pandas as pd

    from study.store import Store

__all__ = ["grade_totals"]

_KEY = ("unit_id", "rubric", "rater_id", "order", "draw")


def grade_totals(store: Store) -> pd.DataFrame:
    """See `Store.grade_totals`."""
    import pandas as pd

    facts = grades.c.provenance
    number = sa.func.coalesce
    last = sa.select(sa.func.max(grades.c.event_id)).group_by(*(grades.c[name] for name in _KEY))
    current = grades.c.event_id.in_(last)
    query = (
        sa.select(
            grades.c.rater_id,
            grades.c.rubric,
            sa.func.count().label("attempts"),
            sa.func.count(sa.distinct(grades.c.unit_id)).label("units"),
            _count_where(sa.and_(current, grades.c.label != "")).label("labelled"),
            _count_where(sa.and_(current, grades.c.label == "")).label("unscored"),
            sa.func.sum(facts["cost_usd"].as_float()).label("cost_usd"),
            sa.func.sum(number(facts["tokens", "input"].as_integer(), 0)).label("input"),
            sa.func.sum(number(facts["tokens", "cached"].as_integer(), 0)).label("cached"),
        )
        .group_by(grades.c.rater_id, grades.c.rubric)
        .order_by(grades.c.rater_id, grades.c.rubric)
    )
    with store.read() as connection:
        rows = [dict(row._mapping) for row in connection.execute(query)]
    for row in rows:
        row["cached_share"] = row.pop("cached") / (row.pop("input") or float("nan"))
    columns = [
        "rater_id",
        "rubric",
        "attempts",
        "units",
        "labelled",
        "unscored",
        "cost_usd",
        "cached_share",
    ]
    return pd.DataFrame(rows, columns=columns).astype({"cost_usd": "float64"})


def _count_where(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return sa.func.sum(sa.case((condition, 1), else_=0))
