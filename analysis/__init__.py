"""Agreement of human and model raters: pure functions over two tables.

`analyse` is the entry; the rest is there for those who want one step of it. Names are resolved on
first use, so that importing the package loads no numerical library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.panel import Analysis, analyse
    from analysis.results import RESULTS_COLUMNS, RESULTS_KEY
    from analysis.scale import Scale
    from analysis.verdicts import Verdict

__all__ = ["RESULTS_COLUMNS", "RESULTS_KEY", "Analysis", "Scale", "Verdict", "analyse"]

_HOMES = {
    "Analysis": "analysis.panel",
    "RESULTS_COLUMNS": "analysis.results",
    "RESULTS_KEY": "analysis.results",
    "Scale": "analysis.scale",
    "Verdict": "analysis.verdicts",
    "analyse": "analysis.panel",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'analysis' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
