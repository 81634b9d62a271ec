"""Files that are small and large at once are refused soon, in one sentence."""

import pytest

from benchmarks.limits import MOST_MEGABYTES, MOST_SECONDS, large_images, own_keys, taken, wide


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "said"),
    [
        (own_keys, "keys.jsonl has more than 2,500 columns; "),
        (wide("csv"), "wide.csv has more than 2,500 columns; "),
        (large_images, "images.csv, row 5: the images up to here exceed what is read "),
    ],
)
def test_a_file_beyond_all_bounds_is_refused_soon(tmp_path, made, said):
    took = taken(made(tmp_path), tmp_path)
    assert (took.code, said in took.said, took.said.count("\n")) == (2, True, 1)
    assert took.seconds < MOST_SECONDS
    assert took.megabytes < MOST_MEGABYTES
