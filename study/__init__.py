"""Studies and their store: pairs, units, sampling, assignment, labels and grades."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.study.creation import create_study, extend_sample
    from evenhand.study.workspace import Study, open_study

__all__ = ["Study", "create_study", "extend_sample", "open_study"]

_HOMES = {
    "Study": "evenhand.study.workspace",
    "open_study": "evenhand.study.workspace",
    "create_study": "evenhand.study.creation",
    "extend_sample": "evenhand.study.creation",
}


def __getattr__(name: str) -> Any:
    # Resolved on first use: reading a table must not load the database.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
