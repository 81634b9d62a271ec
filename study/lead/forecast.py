"""The end of a study's labelling, at the pace of the last hours."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from evenhand.study.desk.oversight import oversight
from evenhand.study.lead.people import people_labels
from evenhand.study.lead.progress import rubric_progress

if TYPE_CHECKING:
    from evenhand.study.workspace import Study

WINDOW_HOURS = 24
"""A whole day, so that a study's nights count once it has had one."""
FEWEST_HOURS, FEWEST_LABELS = 2, 20
_ERRORS = 2.0
"""Standard errors of the pace, on either side."""


@dataclass(frozen=True)
class Forecast:
    """The end of the labelling, if the pace of the last `hours` goes on.

    `at`, `earliest` and `latest` are times in UTC; all None where nothing can be said, and `latest`
    alone where labels came too unevenly for a bound.
    """

    done: int
    wanted: int
    hours: int = 0
    """Hours up to now that the pace is of; 0 where there were no labels in them."""
    recent: int = 0
    """Labels in these hours."""
    at: datetime | None = None
    earliest: datetime | None = None
    latest: datetime | None = None

    @property
    def left(self) -> int:
        return self.wanted - self.done


def forecast(study: Study, now: datetime | None = None) -> Forecast:
    """Extrapolate the labels of the last `WINDOW_HOURS`, or of all hours since the first label.

    The range is two standard errors of the mean of the hourly counts, as they vary or as a Poisson
    process would, whichever is more. Hidden repeats and excluded raters fill no place, so they have
    no pace. Without `FEWEST_LABELS` over `FEWEST_HOURS` there is none to extrapolate.
    """
    import pandas as pd

    now = now or datetime.now(UTC)
    progress = rubric_progress(study)
    done, wanted = int(progress["done"].sum()), int(progress["wanted"].sum())
    given = people_labels(study)
    out = given["rater_id"].isin(list(oversight(study.store).exclusions))
    counts = (given["rater_kind"] == "human") & (given["draw"] == 0) & (given["created_at"] != "")
    stamps = pd.to_datetime(given[counts & ~out]["created_at"], utc=True, format="ISO8601")
    ago = (now - stamps).dt.total_seconds() / 3600
    ago = ago[ago >= 0]
    recent = ago[ago < WINDOW_HOURS]
    if recent.empty:
        return Forecast(done, wanted)
    hours = min(math.ceil(ago.max()), WINDOW_HOURS) or 1
    known = Forecast(done, wanted, hours, len(recent))
    if known.left <= 0 or hours < FEWEST_HOURS or len(recent) < FEWEST_LABELS:
        return known
    by_hour = recent.astype(int).value_counts().reindex(range(hours), fill_value=0)
    pace = len(recent) / hours
    error = _ERRORS * math.sqrt(max(float(by_hour.var()), pace) / hours)

    def at(labels_an_hour: float) -> datetime:
        return now + timedelta(hours=known.left / labels_an_hour)

    # A bound of ten times as long as the pace itself says nothing.
    latest = at(pace - error) if error < 0.9 * pace else None
    return Forecast(done, wanted, hours, len(recent), at(pace), at(pace + error), latest)
