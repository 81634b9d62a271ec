"""Labels of people and adjudicators so far: cheap enough to query every few seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.store.schema import labels

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study

PEOPLE_COLUMNS = (
    "unit_id", "rubric", "rater_id", "rater_kind", "draw", "label", "seconds", "created_at"
)  # fmt: skip


def people_labels(study: Study) -> pd.DataFrame:
    """`PEOPLE_COLUMNS` of the present labels under texts that count, in the order of the answers.

    The same as these rows of `Study.ratings()`, without reading a single grade.
    """
    columns = [labels.c[name] for name in PEOPLE_COLUMNS]
    query = sa.select(*columns).where(accepted_text(study, labels)).order_by(labels.c.event_id)
    frame = study.store.table(query).astype({"seconds": "float64"})
    return frame.drop_duplicates(["unit_id", "rubric", "rater_id", "draw"], keep="last")


def accepted_text(study: Study, table: sa.Table) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the row was given under a rubric's text that counts."""
    return sa.or_(
        table.c.rubric_hash == "",
        *(
            sa.and_(table.c.rubric == name, table.c.rubric_hash.in_(hashes))
            for name, hashes in study.accepted_hashes().items()
        ),
    )
