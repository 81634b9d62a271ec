"""The studies that this process serves, each at a path of its own, or one alone.

A lead's page that makes a study adds it here, and it is served from then on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anyio import CapacityLimiter, to_thread

from evenhand.errors import InputError
from evenhand.study.settings.session import STUDY_NAME
from evenhand.study.settings.study_toml import FILE_NAME
from evenhand.texts import written

if TYPE_CHECKING:
    from starlette.types import Scope

Result = TypeVar("Result")

_TAKEN = ("health", "static")
"""The address of all studies' health, and what nginx takes for Streamlit's files."""
_MOST_AT_WORK = 8


@dataclass(frozen=True)
class Site:
    """A study and the path at which its address begins, such as "/refusals"; "" for the root. None
    may join one that is served alone.
    """

    folder: Path
    path: str = ""
    alone: bool = True
    opening: threading.Lock = field(default_factory=threading.Lock, compare=False)
    _room: CapacityLimiter = field(
        default_factory=lambda: CapacityLimiter(_MOST_AT_WORK), compare=False
    )

    async def work(self, function: Callable[..., Result], *arguments: object) -> Result:
        """Run in a thread what asks the store, of a few for this study: while its store hangs,
        threads are left for the others.
        """
        return await to_thread.run_sync(function, *arguments, limiter=self._room)

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return self._room.statistics().tasks_waiting


_sites: dict[str, Site] = {}


def add_study(folder: Path, path: str | None = None) -> Site:
    """Serve one more study, under the name of its folder; or one alone at this path."""
    own = f"/{folder.name}" if path is None else path
    _sites[own] = Site(folder.resolve(), own, path is not None)
    return _sites[own]


def sites() -> list[Site]:
    """The studies that are served, by name."""
    return [_sites[path] for path in sorted(_sites)]


def site_at(path: str) -> Site | None:
    """The study whose address begins so; None where there is none."""
    return _sites.get(path)


def site_of(scope: Scope) -> Site | None:
    """The study that a request is for; None where there is none."""
    return _sites.get(f"/{scope['path'].removeprefix('/').partition('/')[0]}") or _sites.get("")


def study_path(name: str) -> str:
    """Return the path of a study's address, such as "/refusals", of its name, with slashes or
    without. Raises InputError where no path can be called so.
    """
    bare = name.strip("/")
    if not STUDY_NAME.fullmatch(bare) or bare.casefold() in _TAKEN:
        raise InputError(written("several.bad_name", name=name))
    return f"/{bare}"


def studies_in(folders: Iterable[Path]) -> list[Path]:
    """Return these folders, and in place of one that holds studies and is none, those: without
    what a killed run left there, whose name begins with a dot.
    """
    found: list[Path] = []
    for folder in folders:
        within = [] if (folder / FILE_NAME).exists() else sorted(folder.glob(f"[!.]*/{FILE_NAME}"))
        found += [each.parent.resolve() for each in within] or [folder.resolve()]
    return found


def check_names(names: Iterable[str]) -> None:
    """Raise InputError where a name cannot be part of an address, or two would be mixed up."""
    seen: set[str] = set()
    for name in names:
        study_path(name)
        if name.casefold() in seen:
            raise InputError(written("several.same_name", name=name))
        seen.add(name.casefold())
