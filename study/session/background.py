"""Raters' answers about themselves, as the table of raters that an analysis can be split by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.store.logs.answers import languages_of_raters
from evenhand.study.store.schema import background_answers

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study


def raters_table(study: Study) -> pd.DataFrame:
    """Return a row per rater who answered anything: `rater_id` and a column per background
    question.

    A skipped question is empty. Usable as `analyse(raters=..., rater_slices=[...])`.
    """
    import pandas as pd

    asked = study.config.background.questions if study.config.background else ()
    query = sa.select(background_answers).order_by(background_answers.c.event_id)
    rows = study.store.rows(query)
    answers: dict[str, dict[str, str]] = {}
    for row in rows:
        answers.setdefault(row.rater_id, {})[row.question] = row.answer
    keys = list(dict.fromkeys([*(question.key for question in asked), *(r.question for r in rows)]))
    table = [
        {"rater_id": rater} | {key: given.get(key, "") for key in keys}
        for rater, given in sorted(answers.items())
    ]
    return pd.DataFrame(table, columns=["rater_id", *keys])


def raters_to_split_by(study: Study) -> pd.DataFrame:
    """Return `raters_table` with `page_language`, the language in which each rater was asked, and
    rows for raters who only have a language.
    """
    languages = languages_of_raters(study.store)
    table = raters_table(study)
    if not languages:
        return table
    table = table.set_index("rater_id").reindex(sorted({*table["rater_id"], *languages}))
    table["page_language"] = table.index.map(languages)
    return table.fillna("").rename_axis("rater_id").reset_index()
