"""The command line: thin verbs, one file per family; the only place where all parts meet."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
