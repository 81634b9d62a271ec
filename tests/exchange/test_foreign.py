"""No foreign file is taken for what it is not, and no advice on one leads astray."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks import formats
from tests.cases import one_in
from tests.exchange.foreign import FOREIGN, Foreign, advised, outcome, outcomes

MIXED = [file for file in FOREIGN if file.file.startswith("mixed_")]
OTHERS = [file for file in FOREIGN if file not in MIXED]


@pytest.mark.parametrize("file", [*OTHERS, *one_in(3, MIXED)], ids=lambda file: file.file)
def test_a_foreign_file_is_read_rightly_or_refused(file: Foreign, tmp_path: Path) -> None:
    found = outcome(file, tmp_path)
    assert found.read == bool(file.right), found
    assert found.read or found.said


@pytest.mark.slow
def test_the_page_counts_what_became_of_them() -> None:
    counts = Counter(how for _, how, _ in outcomes())
    assert {how: counts[how] for how in formats.FOREIGN} == formats.FOREIGN
    assert len({file.file for file in FOREIGN}) == len(FOREIGN) == counts.total()


@pytest.mark.parametrize(
    ("said", "options"),
    [
        ("say so with --human ann,ben --model 'a b'", [["--human", "ann,ben", "--model", "a b"]]),
        ("say with --columns unit=item, and say who with --human ann",
         [["--columns", "unit=item", "--human", "ann"]]),
        ("--normalise reads it as 'yes' (4 cells), or declare all labels with --categories",
         [["--normalise"]]),
        ("with --columns unit=COLUMN, or name these with --human and --model", []),
    ],
)  # fmt: skip
def test_advice_is_read_as_it_stands(said: str, options: list[list[str]]) -> None:
    assert list(advised(said)) == options
