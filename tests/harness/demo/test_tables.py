"""What evenhand ships for its demos is what the program writes from its seeds."""

from __future__ import annotations

from importlib.resources import as_file, files

import pandas as pd
import pytest

from evenhand.demo import DEMOS
from harness.demo.__main__ import written_tables

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("study", DEMOS)
def test_the_shipped_tables_are_those_that_the_program_writes(study: str) -> None:
    for what, made in written_tables(study).items():
        with as_file(files("evenhand.data") / f"demo_{study}_{what}.parquet") as path:
            pd.testing.assert_frame_equal(pd.read_parquet(path), made, check_dtype=False)
