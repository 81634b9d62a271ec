"""Ratings files as tables, for tests."""

from pathlib import Path

import pandas as pd

from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import split_ratings


def read_ratings(path: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Read a ratings file as the `ratings` table and the units columns that came with it."""
    return split_ratings(read_table(path), path.name)
