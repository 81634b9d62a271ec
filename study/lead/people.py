"""Labels of people and adjudicators so far, over time, and of one rater compared with the others:
cheap enough to query every few seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.desk.oversight import oversight
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


# Labels over time


MOST_HOURS = 48
"""A longer study is shown by the day."""


def labels_over_time(study: Study) -> tuple[pd.DataFrame, str]:
    """Count people's labels by hour or day (UTC): a table `start, rubric, labels`, and the step,
    "hour" or "day". Without labels there are no rows.

    Skips and hidden repeats count: they took their time. Labels without a time are left out.
    """
    import pandas as pd

    people = people_labels(study)
    people = people[(people["rater_kind"] == "human") & (people["created_at"] != "")]
    stamps = pd.to_datetime(people["created_at"], utc=True, format="ISO8601")
    hours = (stamps.max() - stamps.min()).total_seconds() / 3600 if len(stamps) else 0.0
    step = "day" if hours > MOST_HOURS else "hour"
    starts = stamps.dt.floor("D" if step == "day" else "h")
    counts = people.groupby([starts.rename("start"), "rubric"]).size().rename("labels")
    found = counts.reset_index()
    return found.assign(start=found["start"].map(pd.Timestamp.isoformat)), step


# One rater compared with the others


ANSWER_COLUMNS = (
    "created_at", "rubric", "unit_id", "label", "others", "seconds", "draw"
)  # fmt: skip
SHARE_COLUMNS = ("rubric", "label", "answers", "share", "others_share")


def rater_answers(study: Study, rater: str) -> pd.DataFrame:
    """`ANSWER_COLUMNS` of a rater's present answers, in the order in which they were given.

    `others` are the labels of everyone else who counts on the same unit, sorted and parted by
    spaces; `label` is empty where the unit was skipped, `draw` above 0 marks a hidden repeat.
    """
    own, others = _parted(study, rater)
    said = others.groupby(["rubric", "unit_id"])["label"].agg(lambda each: " ".join(sorted(each)))
    found = own.join(said.rename("others"), on=["rubric", "unit_id"])
    found = found.assign(others=found["others"].fillna(""))
    found = found.sort_values("created_at", kind="stable").reset_index(drop=True)
    return found[list(ANSWER_COLUMNS)]


def confusions(study: Study, rater: str) -> dict[str, pd.DataFrame]:
    """Return a table for each rubric that counts the others' labels against the rater's.

    Rows are the rater's labels, columns the others'; a cell is a number of units, of which each
    counts once, shared among the labels of the others. Rubrics without shared units, and those that
    ask for a number or for several options, are left out.
    """
    own, others = _parted(study, rater)
    own = own[(own["draw"] == 0) & (own["label"] != "")]
    both = own[["rubric", "unit_id", "label"]].merge(
        others[["rubric", "unit_id", "label"]], on=["rubric", "unit_id"], suffixes=("", "_other")
    )
    both["weight"] = 1 / both.groupby(["rubric", "unit_id"])["label"].transform("size")
    return {
        rubric.name: table.pivot_table(
            index="label", columns="label_other", values="weight", aggfunc="sum", fill_value=0.0
        ).reindex(index=rubric.categories, columns=rubric.categories, fill_value=0.0)
        for rubric in study.asked_rubrics()
        if rubric.is_choice and len(table := both[both["rubric"] == rubric.name])
    }


def label_shares(study: Study, rater: str) -> pd.DataFrame:
    """`SHARE_COLUMNS`: how often a rater uses each label, and the others on the same units. Numbers
    and several options are left out.

    NaN where the others have no label on any of these units.
    """
    import pandas as pd

    own, others = _parted(study, rater)
    own = own[(own["draw"] == 0) & (own["label"] != "")]
    rows = []
    for rubric in study.asked_rubrics():
        mine = own[own["rubric"] == rubric.name]
        theirs = others[(others["rubric"] == rubric.name) & others["unit_id"].isin(mine["unit_id"])]
        for label in rubric.categories if len(mine) and rubric.is_choice else ():
            count = int((mine["label"] == label).sum())
            shares = (count / len(mine), (theirs["label"] == label).mean())
            rows.append((rubric.name, label, count, *shares))
    return pd.DataFrame(rows, columns=list(SHARE_COLUMNS))


def _parted(study: Study, rater: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A rater's answers; and the labels of the others who count, repeats and skips left out."""
    people = people_labels(study)
    people = people[people["rater_kind"] == "human"]
    is_own = people["rater_id"] == rater
    excluded = people["rater_id"].isin(list(oversight(study.store).exclusions))
    counts = ~is_own & ~excluded & (people["draw"] == 0) & (people["label"] != "")
    return people[is_own], people[counts]
