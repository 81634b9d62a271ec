"""Addresses of databases as study.toml gives them, checked before a driver reads them.

A driver's messages show what it takes for the host; where a password holds an @ that is not
escaped, that would be the tail of the password.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote

from evenhand.errors import InputError

_VARIABLE = re.compile(r"\$\{(\w+)\}")
_DRIVER = re.compile(r"^postgres(ql)?://")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@\[\]]*)(:\d{1,5})?")
_FORM = (
    "the address of the database cannot be read; write "
    "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with %40 for @, %3A for :, %2F for /, %23 for "
    "#, %3F for ? and %25 for % in a password, or leave the password to the environment: ${NAME}"
)


def check_url(url: str) -> None:
    """Raise InputError, which shows nothing of it, where password and host of an address cannot be
    told apart.

    >>> check_url("postgresql://lead:p%40ss@db.example:5432/study?sslmode=verify-full")
    >>> check_url("postgresql://lead:p@ss@db.example/study")
    Traceback (most recent call last):
    evenhand.errors.InputError: the address of the database cannot be read; write ...
    """
    _, found, rest = url.partition("://")
    before, _, after = rest.rpartition("@")
    hosts = re.split(r"[/?#]", after, maxsplit=1)[0].split(",")
    if not (found and "@" not in before and all(map(_HOST.fullmatch, hosts))):
        raise InputError(_FORM)


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
