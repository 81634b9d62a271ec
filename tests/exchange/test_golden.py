"""Everything that is read from each file, ratings and items, as it was before: every cell, note and
refusal. Tools made those in `files` and `items`; those in `shapes` are as their documentation says.
`python -m tests.exchange.test_golden` writes golden.json anew.
"""

import hashlib
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export, read_items

HERE = Path(__file__).parent
GOLDEN = HERE / "golden.json"
ROOMS = ("files", "items", "shapes")
PATHS = [f"{room}/{path.name}" for room in ROOMS for path in (HERE / room).iterdir()]


def outcome(read: Callable[[Path], Any], path: str) -> Any:
    """What is read: the first row, a hash of each column, and all else; or what is refused."""
    try:
        result = read(HERE / path)
    except InputError as fault:
        return str(fault)
    fields = {name: value for name, value in vars(result).items() if name != "table"}
    cells = {name: "\n".join(column) for name, column in result.table.items()}
    hashes = {name: hashlib.sha256(text.encode()).hexdigest()[:10] for name, text in cells.items()}
    first = next(iter(result.table.to_dict("records")), {})
    seen = {"rows": len(result.table), "first": first, "columns": hashes}
    return json.loads(json.dumps(fields | seen))


def all_of(path: str) -> dict[str, Any]:
    """The ratings of a file, its items, and its items with the labels of the first judge."""
    ratings, items = outcome(read_export, path), outcome(read_items, path)
    notes = " ".join(items["notes"]) if isinstance(items, dict) else ""
    judge = re.search(r"labels by ([^,]+?)(?:,|\. )", notes)
    judged = outcome(partial(read_items, judge=judge[1]), path) if judge else None
    return {"ratings": ratings, "items": items, "judged": judged}


@pytest.mark.parametrize("path", PATHS)
def test_a_file_is_read_as_before(path: str) -> None:
    assert all_of(path) == json.loads(GOLDEN.read_text("utf-8"))[path]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({path: all_of(path) for path in sorted(PATHS)}, indent=1), "utf-8")
