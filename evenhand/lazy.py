"""numpy, pandas and pyarrow, imported on first use: most commands and pages need none of them, and
their import takes as long as everything else.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["np", "pa", "pc", "pd", "pq"]


class _LazyModule(ModuleType):
    """A proxy for a module, which it imports when an attribute is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
else:
    np, pd, pa = map(_LazyModule, ("numpy", "pandas", "pyarrow"))
    pc, pq = _LazyModule("pyarrow.compute"), _LazyModule("pyarrow.parquet")
