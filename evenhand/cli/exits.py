"""Exit codes of the verbs, and the one place where errors become sentences."""

from __future__ import annotations

import sys
from collections.abc import Callable

from evenhand.errors import InputError, StoreAway
from evenhand.reporting.extras import missing_library
from evenhand.visible import visible

DONE = 0
NOT_MET = 1
"""Only `gate` ends so. A crash must not, or it would read as a grader that falls short."""
BAD_INPUT = STOPPED = CRASHED = 2
OVER_BUDGET = 3
INTERRUPTED = 130


def exit_code(command: str, run: Callable[[], int | None]) -> int:
    """Run a command, print an error as one sentence, and return the exit code."""
    try:
        return run() or DONE
    except (InputError, StoreAway) as error:
        _say(f"{command}: {error}")
        return BAD_INPUT
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _say(f"{command}: {place}{(error.strerror or str(error)).lower()}")
        return BAD_INPUT
    except KeyboardInterrupt:
        _say("stopped; what was collected is kept")
        return INTERRUPTED
    except SystemExit as end:  # a library's own: its 1, or its text, which Python ends with 1 too
        if end.code is None or (isinstance(end.code, int) and end.code != NOT_MET):
            return end.code or DONE
        _say(f"{command}: a library ended the program ({end.code}); please report this")
        return CRASHED
    except Exception as error:
        if missing := missing_library(error):
            _say(f"{command}: {missing}")
            return BAD_INPUT
        import traceback

        traceback.print_exc()
        _say(f"{command}: this is a fault in evenhand; please report the lines above")
        return CRASHED


def _say(sentence: str) -> None:
    print(visible(sentence), file=sys.stderr)  # noqa: T201
