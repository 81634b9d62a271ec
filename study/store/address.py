"""Where `study.toml` says that the store is: a file beside it, or a database's URL."""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from evenhand.errors import InputError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DRIVER = re.compile(r"^postgres(ql)?://")


def resolved(location: str) -> str:
    """The location with each `${NAME}` taken from the environment, so that a password need not
    stand in a file. What stands within a URL is quoted; a `${NAME}` alone may hold a whole URL.

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
    """Whether a resolved location is a database's URL, not a file."""
    return "://" in location
