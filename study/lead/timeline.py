"""Counts of people's labels over time, by the hour or by the day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.study.lead.people import people_labels

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.study.workspace import Study

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
