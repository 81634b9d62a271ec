"""Large libraries, imported on first use, since most commands need none of them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["httpx2", "jinja2", "np", "pa", "pc", "pd", "pq", "regex", "tomlkit"]


class _LazyModule(ModuleType):
    """A proxy for a module, which it imports when an attribute is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import httpx2
    import jinja2
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import regex
    import tomlkit
else:
    np, pd, pa = map(_LazyModule, ("numpy", "pandas", "pyarrow"))
    pc, pq = _LazyModule("pyarrow.compute"), _LazyModule("pyarrow.parquet")
    httpx2, jinja2, regex, tomlkit = map(_LazyModule, ("httpx2", "jinja2", "regex", "tomlkit"))
