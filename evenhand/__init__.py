"""May an LLM grader stand in for people?"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
