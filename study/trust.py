"""Trust in settings files: what one may take from the environment, and confirmations of more.

A study's folder may come from anybody, and so may the hosts that its settings name. On its own a
file may name variables of evenhand's prefix, and a provider's key for that provider's host; a
secret never travels over plain http to another machine. Anything else is sent once the operator has
confirmed the very declaration for its folder, which is kept outside that folder.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import shlex
from collections.abc import Collection, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from evenhand.errors import InputError
from evenhand.texts import written

PREFIX = "EVENHAND_"
_OWN = {"EVENHAND_PASSWORD"}  # variables of the prefix that evenhand reads itself
_confirmed: set[str] = set()
"""Digests of declarations that this process may send, wherever they stand."""


def check_variable(
    file: Path,
    key: str,
    variable: str,
    declaration: object,
    *,
    to: str = "",
    keys: Collection[str] = (),
) -> None:
    """Raise InputError where a file's `key` may not send `variable`. `to` is the URL that it goes
    to, "" where that is no web address; `keys` are the variables meant for this host;
    `declaration`, as JSON, is all in the file that a confirmation is for.
    """
    is_meant = variable in keys or (variable.startswith(PREFIX) and variable not in _OWN)
    if is_meant and not _is_overheard(to):
        return
    if is_trusted(file.parent, declaration):
        return
    folder = shlex.quote(str(file.parent))
    is_study = file.name == "study.toml"
    command = f"evenhand doctor {folder} --trust" if is_study else "the same command with --trust"
    at = urlsplit(to).netloc.rpartition("@")[2] or "a server"
    fields = {"file": file.name, "key": key, "variable": variable, "to": at}
    sentence = written("trust.plain" if is_meant else "trust.variable", command=command, **fields)
    raise InputError(sentence)


def confirm(declaration: object) -> None:
    """Trust a declaration for as long as this process runs, in whatever folder it stands."""
    _confirmed.add(_digest("", declaration))


def remember(folder: Path, declarations: Iterable[object]) -> None:
    """Trust declarations for good where they stand in this folder, and confirm them."""
    known, lines = _remembered(), []
    for member in declarations:
        confirm(member)
        place = str(folder.resolve())
        if (digest := _digest(place, member)) not in known:
            lines.append(f"{digest} {json.dumps(place)}\n")  # the place is for who looks into it
    if lines:
        file = state_folder() / "trusted"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, flags, 0o600), "a", encoding="utf-8") as out:
                out.write("".join(lines))
        except OSError as error:
            raise InputError(
                written("trust.not_kept", file=file, reason=str(error.strerror).lower())
            ) from None


def is_trusted(folder: Path, declaration: object) -> bool:
    """Return True if the operator has confirmed the declaration for this folder."""
    if _digest("", declaration) in _confirmed:
        return True
    return _digest(str(folder.resolve()), declaration) in _remembered()


def inside(folder: Path, name: str, key: str, file: str = "study.toml") -> Path:
    """Return the path of a file that settings name. Raises InputError where it lies outside."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(folder.resolve()):
        raise InputError(written("trust.outside", file=file, key=key, name=name))
    return path


def _is_overheard(url: str) -> bool:
    """
    >>> [_is_overheard(f"http://{host}/v1") for host in ("gw.example", "127.0.0.2:9", "[::1]")]
    [True, False, False]
    """
    parts = urlsplit(url)
    if parts.scheme != "http":
        return False
    try:
        return not ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return parts.hostname != "localhost"


def _digest(folder: str, declaration: object) -> str:
    text = json.dumps([folder, declaration], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def state_folder() -> Path:
    """The user's folder for evenhand's state, by the XDG Base Directory Specification."""
    home = os.environ.get("XDG_STATE_HOME", "")
    place = Path(home) if Path(home).is_absolute() else Path.home() / ".local" / "state"
    return place / "evenhand"


def _remembered() -> set[str]:
    try:
        lines = (state_folder() / "trusted").read_text("utf-8").splitlines()
        return {line.partition(" ")[0] for line in lines}
    except (OSError, RuntimeError, UnicodeDecodeError):  # no such file, or no home
        return set()
