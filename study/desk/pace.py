"""A rater's progress: the block they are in, the minutes left at their own pace, a day's end.

Everything rests on the rater's own answers. A total is a promise, so it stays as first announced;
the minutes are an estimate, and worded as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from evenhand.study.store.schema import attention_labels, labels

if TYPE_CHECKING:
    from evenhand.study.settings.session import SessionSettings

LEAST_ANSWERS = 5
"""With fewer answers a pace is not estimated."""
_RECENT = 30
"""The pace is that of this many last answers: people grow quicker, and tire."""


@dataclass(frozen=True)
class Pace:
    """A rater's place in the work: block `block` of `blocks`, with about `minutes` to go.

    `minutes` is rounded as people would say it, and None as long as the rater's pace is not known.
    """

    block: int
    blocks: int
    minutes: int | None = None


@dataclass(frozen=True, slots=True)
class Worked:
    """An answer's time (UTC), and the seconds that its unit was in view."""

    at: str
    seconds: float


class WorkLog:
    """The answers of every person in the order in which they came, in step with the store."""

    def __init__(self) -> None:
        self._by_rater: dict[str, list[Worked]] = {}
        self._seen = dict.fromkeys((labels, attention_labels), 0)

    def refresh(self, connection: sa.Connection) -> None:
        """Read the answers since the last refresh. Answers to attention checks are work like any:
        an estimate, or a day's end, that left them out would reveal which they are.
        """
        new: list[tuple[str, str, float]] = []
        for table, seen in self._seen.items():
            columns = (table.c[name] for name in ("event_id", "rater_id", "created_at", "seconds"))
            later = sa.select(*columns).where(table.c.event_id > seen)
            later = later.where(table.c.rater_kind == "human").order_by(table.c.event_id)
            for event_id, rater, at, seconds in connection.execute(later):
                self._seen[table] = event_id
                new.append((at, rater, seconds or 0.0))
        for at, rater, seconds in sorted(new, key=lambda each: each[0]):
            self._by_rater.setdefault(rater, []).append(Worked(at, seconds))

    def of_rater(self, rater_id: str) -> Sequence[Worked]:
        return self._by_rater.get(rater_id, ())


def pace(worked: Sequence[Worked], done: int, total: int, block_size: int) -> Pace:
    """Return the progress of a rater who has given `done` of `total` answers.

    >>> pace([Worked("", 20.0)] * 12, done=12, total=100, block_size=10)
    Pace(block=2, blocks=10, minutes=30)
    """
    blocks = -(-total // block_size)
    return Pace(min(done // block_size + 1, blocks), blocks, minutes_left(worked, total - done))


def minutes_left(worked: Sequence[Worked], left: int) -> int | None:
    """Estimate the minutes that `left` more answers will take; None where too few were timed.

    From the median of the recent answers, which a break or a long text does not move.

    >>> minutes_left([Worked("", 20.0)] * 9 + [Worked("", 3600.0)], left=100)
    35
    """
    timed = [each.seconds for each in worked[-_RECENT:] if each.seconds > 0]
    if len(timed) < LEAST_ANSWERS:
        return None
    return as_people_say(median(timed) * left / 60)


def as_people_say(minutes: float) -> int:
    """Minutes to the minute up to ten, to five up to an hour, to ten up to two hours, then to the
    hour: no finer than the estimate is.

    >>> [as_people_say(each) for each in (0.2, 7.4, 34.2, 96, 200)]
    [1, 7, 35, 100, 180]
    """
    step = next((step for step, most in ((1, 10), (5, 60), (10, 120)) if minutes < most), 60)
    return max(1, step * int(minutes / step + 0.5))


# A day's end

JUST_NOW = timedelta(minutes=1)
"""Why there was no unit is asked a moment after there was none: midnight may lie between."""


def is_enough(settings: SessionSettings, worked: Sequence[Worked], now: datetime) -> bool:
    """Return True if a rater has done what study.toml allows for the day of `now`.

    A unit that was left in view counts as `idle_minutes` at most.
    """
    if not (settings.answers_per_day or settings.minutes_per_day):
        return False
    begun = _day_of(settings, now).astimezone(UTC).isoformat(timespec="milliseconds")
    today = [each for each in worked if each.at >= begun]
    minutes = sum(min(each.seconds / 60, settings.idle_minutes) for each in today)
    return (0 < settings.answers_per_day <= len(today)) or (0 < settings.minutes_per_day <= minutes)


def next_day(settings: SessionSettings, now: datetime) -> datetime:
    """When the day after that of `now` begins in the study's time zone."""
    return _day_of(settings, now, later=1)


def _day_of(settings: SessionSettings, now: datetime, later: int = 0) -> datetime:
    zone = ZoneInfo(settings.time_zone)
    day = now.astimezone(zone).date() + timedelta(days=later)
    return datetime(day.year, day.month, day.day, tzinfo=zone)
