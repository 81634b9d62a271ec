"""The studies that one command serves behind one address, each under a path of its own.

What is served is what is linked, under its name, in a folder of that command (`VARIABLE`): a lead's
page that makes a study adds a link, and the command takes it up.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from evenhand.errors import InputError
from evenhand.study.settings.session import STUDY_NAME
from evenhand.study.settings.study_toml import FILE_NAME
from evenhand.texts import written

VARIABLE = "EVENHAND_STUDIES"
_TAKEN = ("health", "static")
"""The router's own address, and what nginx takes for Streamlit's files."""


def place_of_studies() -> Path | None:
    """The folder of links; None where this process serves its study alone."""
    place = os.environ.get(VARIABLE, "")
    return Path(place) if place else None


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


def names_in(place: Path) -> list[str]:
    """Return the names of the studies that are served, sorted."""
    return sorted(each.name for each in place.iterdir() if each.is_symlink())


def add_study(place: Path, folder: Path) -> None:
    """Have the command serve one more study, under the name of its folder."""
    (place / folder.name).symlink_to(folder.resolve())
