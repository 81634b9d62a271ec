"""Libraries that an installation for `check` alone leaves out, and the extras that bring them."""

from __future__ import annotations

from evenhand.texts import written

_EXTRAS = {
    "grade": ("aiohttp", "anthropic", "genai_prices", "httpx2", "openai", "regex", "tenacity"),
    "report": ("krippendorff", "sklearn", "statsmodels", "vl_convert"),
}
"""Modules by the extra of the package that installs them; others are those of `study`."""


def missing_library(error: Exception) -> str:
    """Say which library is missing and how to install it; "" where an error is about another
    thing.
    """
    name = (error.name or "") if isinstance(error, ModuleNotFoundError) else ""
    library = name.partition(".")[0]
    if library in ("", "evenhand"):
        return ""
    extra = next((name for name, own in _EXTRAS.items() if library in own), "study")
    return written("lean.library", library=library, extra=extra)
