"""Rubrics that tests read."""

from pathlib import Path

TEXTS = Path(__file__).parent
