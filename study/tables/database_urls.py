"""Addresses of databases as study.toml gives them, checked before a driver reads them.

A driver's messages show what it takes for the host; where a password holds an @ that is not
escaped, that would be the tail of the password.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qs, quote

from evenhand.errors import InputError
from evenhand.study.trust import check_variable, inside, is_trusted
from evenhand.texts import written

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
    authority, *behind = re.split(r"[/?#]", rest, maxsplit=1)
    before, _, after = authority.rpartition("@")
    is_clear = "@" not in "".join([before, *behind])
    if not (found and is_clear and all(map(_HOST.fullmatch, after.split(",")))):
        raise InputError(_FORM)


_LIBPQ = ("PGPASSWORD", "PGSERVICE")
"""Variables from which the driver takes a password where the address has none."""
_ELSEWHERE = {"service", "passfile", "sslkey", "gssdelegation"}
"""Parameters of an address that make the driver send what is outside the study's folder."""


def check_store(location: str, folder: Path) -> None:
    """Raise InputError where the `store` of a study's settings would send what it may not to a
    database, or names a file that is not in the study's folder.
    """
    if is_trusted(folder, location):
        return
    names = _VARIABLE.findall(location)
    kind, is_address, rest = location.partition("://")
    if is_address and kind.startswith("sqlite"):  # a file anywhere
        raise InputError(written("trust.outside", key="store", name=location))
    if is_address:
        login = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
        asked = parse_qs(rest.partition("?")[2])
        if not login.partition(":")[2] and "password" not in asked:
            names += [name for name in _LIBPQ if os.environ.get(name)]
        names += sorted(_ELSEWHERE & asked.keys())
    elif not names:
        inside(folder, location, "store")
    for name in names:
        check_variable(folder / "study.toml", "store", name, location)


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
