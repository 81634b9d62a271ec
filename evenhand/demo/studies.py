"""The demo studies by name. Each is made whole by one function, loaded when it is asked for."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenhand.graders.running.run import Progress

DEMOS = ("pairs", "stance")


def default_folder(name: str) -> Path:
    """Return the default folder of a demo.

    >>> default_folder("pairs").name, default_folder("stance").name
    ('demo-study', 'demo-study-stance')
    """
    return Path("demo-study" if name == DEMOS[0] else f"demo-study-{name}")


def maker_of(name: str) -> Callable[[Path, Progress], None]:
    """The function that makes a demo in a folder."""
    if name == "stance":
        from evenhand.demo.stance_study import make_stance_demo

        return make_stance_demo
    from evenhand.demo.study import make_demo

    return make_demo


def is_demo(folder: Path) -> bool:
    """Return True if this folder holds a demo study."""
    try:
        settings = tomllib.loads((folder / "study.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        return False
    return settings.get("synthetic") is True
