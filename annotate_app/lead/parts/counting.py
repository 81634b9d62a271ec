"""Counts for the lead's pages, made outside the process that serves the annotators.

With 100,000 labels a table takes a second to count, and Python counts one thing at a time: in the
serving process everyone would wait. So one further process of low priority does it, for all who
look, with a connection of its own to the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import streamlit as st

from evenhand.reporting.live_figures import counted_of
from evenhand.reporting.workers import StandBy
from evenhand.study import Study
from evenhand.study.lead.progress import data_version

Counted = TypeVar("Counted")
_PROCESS = StandBy()
"""One for this process of the app, which no visitor's "clear the caches" ends."""


def counted(study: Study, count: Callable[..., Counted], *arguments: object) -> Counted:
    """Return `count(study, *arguments)` for the present data. `count` is a function of a module
    that has nothing to do with pages: the other process loads it.
    """
    found: Counted = _PROCESS.ask(counted_of, study.folder.resolve(), count, arguments)
    return found


def latest(study: Study, count: Callable[[Study], Counted]) -> Counted:
    """Return `count(study)`, counted once for all viewers, and again when new data has come in or
    the minute is over: leases run out although nothing comes in.
    """
    name, minute = f"{count.__module__}.{count.__qualname__}", int(time.time() // 60)
    found: Counted = _kept(study, count, name, str(study.folder), data_version(study), minute)
    return found


@st.cache_data(max_entries=20, show_spinner=False)
def _kept(
    _study: Study, _count: Callable[[Study], Any], name: str, folder: str, version: str, minute: int
) -> Any:
    return counted(_study, _count)


def stand_by() -> None:
    """Start the process ahead of its use, when somebody logs in who will need it."""
    _PROCESS.prepare()
