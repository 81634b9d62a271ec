"""Trust in settings files: which environment variables they may send to which hosts.

A study's folder may come from anyone, and so may the hosts that its settings name. A file may name
variables with evenhand's prefix, and a provider's key for that provider's host; a secret is never
sent over plain http to another machine. Anything else is sent only once the operator has confirmed
the declaration (the settings that say what is sent where) for its folder; confirmations are stored
outside that folder.
"""

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
_INTERNAL = {"EVENHAND_PASSWORD"}  # variables of the prefix that evenhand reads itself
_confirmed: set[str] = set()  # digests of declarations that this process may send, in any folder


def check_variable(
    file: Path,
    key: str,
    variable: str,
    declaration: object,
    *,
    to: str = "",
    for_host: Collection[str] = (),
) -> None:
    """Raise InputError where a setting (`key`) of a file may not send an environment variable. `to`
    is the URL of its destination, "" where that is no web address; `for_host` are that host's.
    """
    is_allowed = variable in for_host or (variable.startswith(PREFIX) and variable not in _INTERNAL)
    if (is_allowed and not _can_be_overheard(to)) or is_trusted(file.parent, declaration):
        return
    folder = shlex.quote(str(file.parent))
    is_study = file.name == "study.toml"
    command = f"evenhand doctor {folder} --trust" if is_study else "the same command with --trust"
    host = urlsplit(to).netloc.rpartition("@")[2] or "a server"
    fields = {"file": file.name, "key": key, "variable": variable, "to": host}
    text = written("trust.plain" if is_allowed else "trust.variable", command=command, **fields)
    raise InputError(text)


def confirm(declaration: object) -> None:
    """Trust a declaration in any folder, for as long as this process runs."""
    _confirmed.add(_digest("", declaration))


def remember(folder: Path, declarations: Iterable[object]) -> None:
    """Trust these declarations in this folder for good, and confirm them."""
    remembered, new_lines = _remembered(), []
    folder_path = str(folder.resolve())
    for declaration in declarations:
        confirm(declaration)
        if (digest := _digest(folder_path, declaration)) not in remembered:
            new_lines.append(f"{digest} {json.dumps(folder_path)}\n")  # the path is for readers
    if new_lines:
        file = state_folder() / "trusted"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with os.fdopen(os.open(file, flags, 0o600), "a", encoding="utf-8") as stream:
                stream.write("".join(new_lines))
        except OSError as error:
            reason = str(error.strerror).lower()
            raise InputError(written("trust.not_kept", file=file, reason=reason)) from None


def is_trusted(folder: Path, declaration: object) -> bool:
    """Return True if the operator has confirmed the declaration for this folder."""
    if _digest("", declaration) in _confirmed:
        return True
    return _digest(str(folder.resolve()), declaration) in _remembered()


def inside(folder: Path, name: str, key: str, file: str = "study.toml") -> Path:
    """Return the path of a file that a setting (`key`) names, or raise InputError if outside."""
    path = folder / name
    if not Path(os.path.realpath(path)).is_relative_to(folder.resolve()):  # links followed
        raise InputError(written("trust.outside", file=file, key=key, name=name))
    return path


def _can_be_overheard(url: str) -> bool:
    """Return True if a URL sends unencrypted text to another machine.

    >>> [_can_be_overheard(f"http://{host}/v1") for host in ("gw.example", "127.0.0.2:9", "[::1]")]
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
    """Return the digest of a declaration in a folder, or in any folder if it is ""."""
    return hashlib.sha256(json.dumps([folder, declaration], sort_keys=True).encode()).hexdigest()


def state_folder() -> Path:
    """Return the user's folder for evenhand's state (XDG Base Directory Specification)."""
    declared = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (declared if declared.is_absolute() else Path.home() / ".local" / "state") / "evenhand"


def _remembered() -> set[str]:
    """Return the digests of all confirmed declarations."""
    try:
        lines = (state_folder() / "trusted").read_text("utf-8").splitlines()
        return {line.partition(" ")[0] for line in lines}
    except (OSError, RuntimeError, UnicodeDecodeError):  # no such file, or no home
        return set()
