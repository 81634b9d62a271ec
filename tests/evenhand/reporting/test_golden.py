"""What commands print on synthetic ratings, word for word as before; numbers to ten places, as sums
differ by rounding between processors.

A change that is meant to alter it is written down by `python -m tests.evenhand.reporting.
test_golden` and reviewed in the diff of `golden/`.
"""

import re
import tempfile
from pathlib import Path

import pytest

from harness.frozen import CASES, transcript

pytestmark = pytest.mark.journey
GOLDEN = Path(__file__).with_name("golden")
OF_RICH = {"variants", "reference", "select-looks", "plan-reference", "save", "compare"}
COMMANDS: dict[str, set[str]] = {"gate": set(), "readme": set(), "rich": OF_RICH, "small": set()}
"""Commands by case of `harness.frozen`; none stands for all."""
_LONG = re.compile(r"-?\d+\.\d{11,}(?:e-\d+)?|-?\d(?:\.\d+)?e-\d+")


def printed(name: str, folder: Path) -> str:
    (case,) = (case for case in CASES if case.name == name)
    text = transcript(case, folder, COMMANDS[name])
    return _LONG.sub(lambda number: f"{round(float(number[0]), 10):z.10g}", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_word_is_as_before(name: str, tmp_path: Path) -> None:
    expected = (GOLDEN / f"{name}.txt").read_text("utf-8")
    assert printed(name, tmp_path).split("\n") == expected.split("\n")


if __name__ == "__main__":
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            (GOLDEN / f"{name}.txt").write_text(printed(name, Path(folder)), "utf-8")
