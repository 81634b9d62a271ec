"""The app's log: every record on lines of its own that no visitor's text can forge, and a limit
on records per minute, for each visitor and for all.

Much of what is logged comes from a visitor, who may be anyone.
"""

from __future__ import annotations

import logging
import time
import traceback
from collections import Counter
from contextvars import ContextVar

visitor: ContextVar[str] = ContextVar("visitor", default="")
"""Address of the visitor whose request is being handled; "" for none."""

_LONGEST = 1_000
_LONGEST_TRACEBACK = 8_000
_MOST_OF_A_VISITOR = 30
_MOST_IN_ALL = 600
_MINUTE = 60.0


def keep_log_short() -> None:
    """Bound everything that this process logs from now on."""
    bound = _Bound()

    class Logger(logging.getLoggerClass()):  # type: ignore[misc]
        def __init__(self, name: str, level: int = logging.NOTSET) -> None:
            super().__init__(name, level)
            self.addFilter(bound)

    logging.setLoggerClass(Logger)
    logging.root.addFilter(bound)
    for each in logging.root.manager.loggerDict.values():
        if isinstance(each, logging.Logger):
            each.addFilter(bound)


class _Bound(logging.Filter):
    """Lets through as many records as there is room for, one a line, and logs once that it drops
    others.
    """

    def __init__(self) -> None:
        super().__init__()
        self._records: Counter[str] = Counter()
        self._since = time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        address = visitor.get()
        room = self._room(address)
        if room < 0:
            return False
        if room == 0:
            record.msg = f"more of {address or 'the app'} in this minute is left out"
            record.exc_info = None
        else:
            record.msg = one_line(_said(record))
        record.args = ()
        record.exc_text = _told(record)
        return True

    def _room(self, address: str) -> int:
        """Return the number of records that there is room for; 0 once, when it is used up, then
        negative.
        """
        now = time.monotonic()
        if now - self._since >= _MINUTE:
            self._records.clear()
            self._since = now
        # The app's own records are counted apart: no crowd of visitors crowds them out.
        of_all = self._records.total() - self._records[""] if address else 0
        most = _MOST_OF_A_VISITOR if address else _MOST_IN_ALL
        room = min(most - self._records[address], _MOST_IN_ALL - of_all)
        if room >= 0:
            self._records[address] += 1
        return room


def one_line(text: str) -> str:
    r"""A text that cannot look like another line of the log, nor like an order to a terminal.

    >>> one_line("left\n2026-01-01 all is well \x1b[2J")
    'left\\n2026-01-01 all is well \\x1b[2J'
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text):,} characters)"
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _said(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # arguments that do not fit the format must not raise in the caller
        return str(record.msg)


def _told(record: logging.LogRecord) -> str | None:
    """The traceback, each of its lines behind a bar."""
    if not record.exc_info or record.exc_info[0] is None:
        return None
    lines = "".join(traceback.format_exception(*record.exc_info))[-_LONGEST_TRACEBACK:].splitlines()
    return "\n".join(f"  | {one_line(line)}" for line in lines)
