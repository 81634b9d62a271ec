"""Progress of a study's labelling: by rubric, by rater, and the time still needed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import sqlalchemy as sa

from evenhand.study.desk.design import SessionDesign
from evenhand.study.desk.next_tasks import minutes_ago
from evenhand.study.desk.oversight import Oversight
from evenhand.study.lead.people import accepted_text, people_labels
from evenhand.study.store.schema import (
    claims,
    grades,
    labels,
    lead_events,
    look_events,
    pairs,
    responses,
    threshold_events,
)
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study


def data_version(study: Study) -> str:
    """Changes whenever a label, a grade, an exclusion, a tuned threshold, a look at the verdict, a
    sampled pair or a response comes in, or a lead changes the study's files.
    """
    decided = lead_events.c.kind.in_(("exclude", "readmit", "settings", "file"))
    always = (labels, grades, threshold_events, look_events)
    events = dict.fromkeys(always, sa.true()) | {lead_events: decided}
    counts = [
        sa.select(sa.func.coalesce(sa.func.max(table.c.event_id), 0)).where(told).scalar_subquery()
        for table, told in events.items()
    ]
    counts.append(sa.select(sa.func.count(pairs.c.sample_position)).scalar_subquery())
    counts.append(sa.select(sa.func.count()).select_from(responses).scalar_subquery())
    with study.store.read() as connection:
        return "-".join(str(count) for count in connection.execute(sa.select(*counts)).one())


def rubric_progress(study: Study) -> pd.DataFrame:
    """Return a row per rubric that people label: `rubric, units, wanted, done, open, free,
    median_seconds, hours_left`.

    A place is a unit's label by one of the raters that it needs. It is `done`, `open` (given out,
    and its lease not over) or `free`; the three add up to `wanted`. Labels of excluded raters fill
    no place. `hours_left` is the time that the open and the free ones take at the rubric's median
    pace; NaN before anyone has labelled.
    """
    import pandas as pd

    design = SessionDesign(study)
    holders = _holders(study)
    seconds = _human_labels(study).groupby("rubric")["seconds"].median()
    each = study.config.annotation.raters_per_unit
    rows = []
    for rubric in study.asked_rubrics():
        keys = [key for key in design.questions if key[1] == rubric.name]
        held = [holders.get(key, {}) for key in keys]
        done = sum(min(each, states.get("labelled", 0)) for states in held)
        taken = sum(min(each, sum(states.values())) for states in held)
        wanted = each * len(keys)
        median = float(seconds.get(rubric.name, float("nan")))
        rows.append(
            {
                "rubric": rubric.name,
                "units": len(keys),
                "wanted": wanted,
                "done": done,
                "open": taken - done,
                "free": wanted - taken,
                "median_seconds": median,
                "hours_left": (wanted - done) * median / 3600,
            }
        )
    return pd.DataFrame(rows)


def rater_progress(study: Study) -> pd.DataFrame:
    """Return a row per person: `rater_id, state, answers, skipped, open, median_seconds, hours,
    last_answer`.

    `state` is "excluded", "working" (has a task whose lease runs) or "away"; `hours` is the time
    spent on answers, without idle time; repeats count among `answers`.
    """
    import pandas as pd

    opened = _open_tasks(study)
    with study.store.read() as connection:
        excluded = Oversight().renewed(connection).exclusions
    labelled = _human_labels(study)
    rows = []
    for rater in sorted({*labelled["rater_id"], *opened}):
        own = labelled[labelled["rater_id"] == rater]
        waiting = opened.get(rater, 0)
        rows.append(
            {
                "rater_id": rater,
                "state": "excluded" if rater in excluded else "working" if waiting else "away",
                "answers": len(own),
                "skipped": int((own["label"] == "").sum()),
                "open": waiting,
                "median_seconds": own["seconds"].median(),
                "hours": own["seconds"].sum() / 3600,
                "last_answer": own["created_at"].max() if len(own) else "",
            }
        )
    columns = ["rater_id", "state", "answers", "skipped", "open", "median_seconds", "hours"]
    return pd.DataFrame(rows, columns=[*columns, "last_answer"])


def time_left(progress: pd.DataFrame) -> str:
    """Return a sentence on the work that is left, from the table of `rubric_progress`."""
    left = int((progress["wanted"] - progress["done"]).sum())
    if not progress["wanted"].sum():
        return written("progress.nothing")
    if left == 0:
        return written("progress.done")
    hours = progress["hours_left"].sum(min_count=len(progress))
    wanted = int(progress["wanted"].sum())
    if hours != hours:
        return written("progress.left_unknown", left=left, wanted=wanted)
    if hours < 1:
        minutes = math.ceil(60 * hours)
        return written("progress.left_minutes", left=left, wanted=wanted, minutes=minutes)
    return written("progress.left", left=left, wanted=wanted, hours=hours)


def _human_labels(study: Study) -> pd.DataFrame:
    found = people_labels(study)
    return found[found["rater_kind"] == "human"]


def _holders(study: Study) -> dict[tuple[str, str], dict[str, int]]:
    """Count, by (unit, rubric) and state ("labelled" or "open"), the raters who hold it and are not
    excluded.
    """
    raters = sa.func.count(sa.distinct(claims.c.rater_id))
    columns = (claims.c.unit_id, claims.c.rubric, claims.c.state)
    with study.store.read() as connection:
        excluded = Oversight().renewed(connection).exclusions
        query = sa.select(*columns, raters.label("raters")).where(
            _running(study), claims.c.draw == 0, claims.c.rater_id.not_in(list(excluded))
        )
        found: dict[tuple[str, str], dict[str, int]] = {}
        for row in connection.execute(query.group_by(*columns)):
            found.setdefault((row.unit_id, row.rubric), {})[row.state] = row.raters
    return found


def _open_tasks(study: Study) -> dict[str, int]:
    """Count each rater's open tasks with a running lease; 0 for a rater without one."""
    opened = sa.func.sum(sa.case((sa.and_(claims.c.state == "open", _running(study)), 1), else_=0))
    query = sa.select(claims.c.rater_id, opened.label("opened")).group_by(claims.c.rater_id)
    with study.store.read() as connection:
        return {row.rater_id: int(row.opened) for row in connection.execute(query)}


def _running(study: Study) -> sa.ColumnElement[bool]:
    """Claims that hold their place: answered, or open with a lease that is not over."""
    since = minutes_ago(study.config.annotation.lease_minutes)
    open_still = sa.and_(claims.c.state == "open", claims.c.claimed_at >= since)
    return sa.and_(accepted_text(study, claims), sa.or_(claims.c.state == "labelled", open_still))
