"""Ends the participation of raters that the study's own rules stop, while the app runs.

Agreement is computed in a separate process: nothing of it enters the process that serves the
annotators, and no annotator waits for it.
"""

from __future__ import annotations

import logging
import threading

from evenhand.errors import InputError, StoreAway
from evenhand.reporting.report import stop_flagged_in
from evenhand.reporting.workers import apart
from evenhand.study import Study
from evenhand.study.lead.progress import data_version

_EVERY_SECONDS = 60.0

_log = logging.getLogger(__name__)


def start_watch(study: Study, every: float = _EVERY_SECONDS) -> threading.Event:
    """Check the raters at this interval if labels came in, in a study whose rules may stop anyone.

    Ends when the event that it returns is set.
    """
    over = threading.Event()
    if study.config.quality.stop:
        threading.Thread(target=_watch, args=(study, every, over), daemon=True).start()
    return over


def _watch(study: Study, every: float, over: threading.Event) -> None:
    seen = ""
    while not over.wait(every):
        try:
            if (present := data_version(study)) != seen:
                seen = present
                apart(stop_flagged_in, study.folder.resolve())
        except (InputError, StoreAway) as error:
            _log.error("the raters could not be looked at: %s", error)
        except Exception:  # a watch that dies would look like a crowd without fault
            _log.exception("the raters could not be looked at")
