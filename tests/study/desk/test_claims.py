"""The claims in memory, against a count of the store's rows."""

from __future__ import annotations

import random

import pytest
import sqlalchemy as sa

from evenhand.study.desk.claims import Changes, Claim, ClaimIndex
from evenhand.study.store.schema import claims

_EARLY, _LATE = "2026-01-01T00:00:00.000+00:00", "2026-01-02T00:00:00.000+00:00"


@pytest.mark.parametrize("seed", range(3))
def test_which_questions_are_full_follows_from_the_rows(make_study, seed):
    rng = random.Random(seed)
    index = ClaimIndex({"h"})
    with make_study().store.write() as connection:
        for step in range(120):
            index.refresh(connection)
            rater, unit = f"r{rng.randrange(6)}", f"p{rng.randrange(5)}|s"
            at = rng.choice((_EARLY, _LATE))
            changes = Changes(connection, index)
            changes.give(Claim(f"{rater}-{unit}", rater, unit, "x", "h", "", 0, at))
            if rng.random() < 0.7:
                changes.mark(f"{rater}-{unit}", state=rng.choice(("labelled", "released")))
            if step % 10 == 0:
                index.refresh(connection)
                excluded = set(rng.sample([f"r{n}" for n in range(6)], 2))
                for wanted in (1, 2, 4):
                    assert index.full(wanted, _LATE, excluded) == _full(
                        connection, wanted, excluded
                    )


def _full(connection, wanted, excluded):
    counted = [
        (row.unit_id, row.rubric)
        for row in connection.execute(sa.select(claims))
        if row.rater_id not in excluded
        and (row.state == "labelled" or (row.state == "open" and row.claimed_at >= _LATE))
    ]
    return {key for key in counted if counted.count(key) >= wanted}
