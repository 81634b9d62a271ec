"""numpy and pandas, loaded on their first use: most commands and pages need neither, and to load
them takes as long as all the rest.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["np", "pd"]


class _LazyModule(ModuleType):
    """A module that stands for the one of its name, and loads it when something of it is used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
else:
    np, pd = _LazyModule("numpy"), _LazyModule("pandas")
