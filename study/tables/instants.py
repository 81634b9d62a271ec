"""Times as tools write them, in one form: UTC, ISO 8601, as the tables keep them."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?\s?(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.I
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}(\.\d+)?|\d{15,16}|\d{18,19}")
"""Seconds since 1970, or thousandths, millionths and billionths of them, from 1973 on."""
_UNITS = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
_ZONES = timedelta(hours=26)
"""So far apart may two clocks be that show the same time."""


def instant_of(text: str) -> datetime | None:
    """The moment that a text names, without a zone where it names none; None if it is no time.

    >>> instant_of("2026-05-01T10:30:00+02:00") == instant_of("2026-05-01 08:30Z")
    True
    >>> instant_of("1777624200000").isoformat(), instant_of("soon")
    ('2026-05-01T08:30:00+00:00', None)
    """
    text = text.strip()
    try:
        if _EPOCH.fullmatch(text):
            whole = text.partition(".")[0]
            unit = _UNITS[math.ceil((len(whole) - 1) / 3) * 3 + 1]
            seconds, rest = divmod(int(whole), unit)
            fraction = float(f"0{text[len(whole) :]}") if "." in text else 0.0
            past = timedelta(seconds=seconds, microseconds=(rest + fraction) * 1_000_000 / unit)
            return datetime.fromtimestamp(0, UTC) + past
        if _DAY.fullmatch(text):
            return datetime.fromisoformat(text)
        if (match := _ISO.fullmatch(text)) is None:
            return None
        day, time, seconds_part, digits, zone = match.groups()
        zone = {"Z": "+00:00", "UTC": "+00:00"}.get((zone or "").upper(), zone or "")
        fraction_part = f".{digits[:6]:0<6}" if digits else ""
        return datetime.fromisoformat(f"{day}T{time}{seconds_part or ':00'}{fraction_part}{zone}")
    except (ValueError, OverflowError):  # the 32nd of a month
        return None


def stored_instant(text: str) -> str:
    """The moment as the tables keep it, fractions of a second included; one without a zone is taken
    for UTC, and "" is what no time gives.

    >>> stored_instant("2026-05-01T10:30:00.25+02:00"), stored_instant("1777624200")
    ('2026-05-01T08:30:00.250+00:00', '2026-05-01T08:30:00.000+00:00')
    """
    found = instant_of(text)
    if found is None:
        return ""
    try:
        utc = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:  # within hours of the year 1
        return ""
    return utc.isoformat(timespec="microseconds" if utc.microsecond % 1000 else "milliseconds")


def is_later(one: str, other: str) -> bool | None:
    """Return True if the first text names a later moment than the second; None where nothing tells:
    one is no time, both are one moment, or one has no zone and may be before or after.

    >>> is_later("2026-05-01T10:30+02:00", "2026-05-01T09:00Z")
    False
    >>> is_later("2026-05-01T10:30", "2026-05-01T09:00Z"), is_later("", "2026-05-01")
    (None, None)
    """
    first, second = instant_of(one), instant_of(other)
    if first is None or second is None:
        return None
    if (first.tzinfo is None) == (second.tzinfo is None):
        return None if first == second else first > second
    apart = first.replace(tzinfo=None) - second.replace(tzinfo=None)
    return None if abs(apart) <= _ZONES else apart > timedelta()
