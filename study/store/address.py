"""The location of the store as `study.toml` gives it: a file in the study's folder, or a database's
URL.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from evenhand.errors import InputError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DRIVER = re.compile(r"^postgres(ql)?://")


def resolved(location: str) -> str:
    """Return the location with each `${NAME}` replaced from the environment, so that no file need
    hold a password. A value within a URL is quoted; a `${NAME}` alone may hold a whole URL.

    Raises InputError where a variable is not set.

    >>> resolved("study.db")
    'study.db'
    >>> resolved("postgresql://lead@host/db")
    'postgresql+psycopg://lead@host/db'
    """

    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1])
        if found is None:
            raise InputError(
                f"study.toml: store names the environment variable {match[1]}, which is not set; "
                "set it"
            )
        return found if match[0] == location else quote(found, safe="")

    return _DRIVER.sub("postgresql+psycopg://", _VARIABLE.sub(value, location))


def is_url(location: str) -> bool:
    """Return True if a resolved location is a database's URL, not a file."""
    return "://" in location
