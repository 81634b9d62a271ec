"""A large plain CSV goes through a faster reader, which must not read anything differently."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.study.tables import formats
from evenhand.study.tables.formats import read_table


def _both_ways(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    found: list[object] = []
    for from_size in (0, 10**12):
        monkeypatch.setattr(formats, "_LARGE", from_size)
        try:
            frame = read_table(path)
            found.append((list(frame), frame.to_numpy().tolist(), list(frame.index)))
        except InputError as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n01,1e5\nNA, null \n,\n",
        b"\xef\xbb\xbfa,b\r\n1,2\r\n3,\r\n",
        "ä,b\né,2".encode(),
        b'a,b\n"x,y",2\n',
        b"a,b\n1,2\n\n3,4\n",
        b"a,b\r\n1,2\r\n\r\n3,4\r\n",
        b"a\nx\n\ny\n",
        b"a,b\n",
        b"a,b\n1,2\n1,2,3\n",
        b"a,b\n1,2\n1\n",
        b"a,b\n1,\xff\n",
        b"a,a\n1,2\n",
        b"\n1,2\n",
    ],
)
def test_the_fast_reader_agrees_with_the_careful_one(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    fast, careful = _both_ways(path, monkeypatch)
    assert fast == careful


def test_a_large_file_is_read_fast_and_a_broken_row_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    rows = [f"unit{n:09d},{n % 5}" for n in range(80_000)]
    path.write_text("unit_id,label\n" + "\n".join(rows) + "\n", "utf-8")
    assert path.stat().st_size > formats._LARGE
    frame = read_table(path)
    assert isinstance(frame.index, pd.RangeIndex)
    assert frame["label"].tolist()[:3] == ["0", "1", "2"]
    path.write_text("unit_id,label\n" + "\n".join([*rows, "u"]) + "\n", "utf-8")
    with pytest.raises(InputError, match="row 80002: 1 cells where the header has 2"):
        read_table(path)
