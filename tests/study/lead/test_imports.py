"""Ratings from elsewhere, many at once."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
import sqlalchemy as sa

from evenhand.study import Study
from evenhand.study.lead.imports import import_ratings
from evenhand.study.tables.ratings import validate_ratings


@pytest.mark.slow
def test_postgresql_knows_at_once_how_many_came(
    make_session: Callable[..., Study], new_postgresql: Callable[[], str]
) -> None:
    study = make_session(pairs=20, store=new_postgresql())
    units = study.units_by_kind("all")["response"]
    frame = pd.DataFrame({"unit_id": list(units), "rater_id": "ann", "rater_kind": "human"})
    ratings = validate_ratings(frame.assign(rubric="refusal", label="1"))
    assert import_ratings(study, ratings, "test") == (len(units), 0)
    with study.store.read() as connection:
        known = connection.execute(
            sa.text("SELECT reltuples FROM pg_class WHERE relname IN ('labels', 'claims')")
        )
        assert known.scalars().all() == [len(units)] * 2
