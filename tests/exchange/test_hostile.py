"""Whatever bytes a file holds, it is read or refused in one sentence, within bounds."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.exchange.readers import source
from evenhand.exchange.readers.reading import FORMATS, read_export, read_items
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions
from tests.exchange.conftest import Wrote
from tests.exchange.test_items import ITEMS
from tests.exchange.test_readers import FILES

ALL = [path for folder in (FILES, ITEMS) for path in sorted(folder.iterdir()) if path.is_file()]
SMALL = [path.read_bytes() for path in ALL if path.stat().st_size]
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)  # fmt: skip


def fault(read: Callable[[], object]) -> str:
    """What is said of a file that is not read; "" where it is read."""
    said = ""
    try:
        read()
    except InputError as refusal:
        said = str(refusal)
    assert "\n" not in said
    return said


def refused(path: Path, form: str | None = None) -> str:
    return fault(lambda: rows_of_file(path, ScaleOptions(format=form)))


def refused_as_items(path: Path) -> str:
    def read() -> None:
        for cell in read_items(path).table.to_numpy().ravel():
            cell.encode()  # what a store can keep
            assert "\0" not in cell

    return fault(read)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_no_bytes_make_a_traceback(data, tmp_path_factory):
    content = data.draw(st.sampled_from(SMALL))
    at = data.draw(st.integers(0, len(content)))
    cut = data.draw(st.integers(0, 40))
    content = content[:at] + data.draw(st.binary(max_size=20)) + content[at + cut :]
    path = tmp_path_factory.getbasetemp() / f"file.{data.draw(st.sampled_from(('csv', 'json')))}"
    path.write_bytes(content)
    refused(path)
    refused_as_items(path)
    refused(path, data.draw(st.sampled_from(FORMATS)))


def leaves(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The places of everything in a JSON value."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [path, *(place for key, each in items for place in leaves(each, (*path, key)))]


FIRST = {
    f"{path.parent.name}/{path.name}": json.loads(text.splitlines()[0])
    if path.suffix == ".jsonl"
    else json.loads(text)
    for path in ALL
    if path.suffix in (".json", ".jsonl")
    for text in [path.read_text()]
}
"""Each as what it holds, of records the first."""


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_another_value_anywhere_makes_no_traceback(data, tmp_path_factory):
    name = data.draw(st.sampled_from(sorted(FIRST)))
    content = json.loads(json.dumps(FIRST[name]))
    *path, last = data.draw(st.sampled_from(leaves(content)[1:]))
    within = content
    for key in path:
        within = within[key]
    within[last] = data.draw(NESTED)
    file = tmp_path_factory.getbasetemp() / "changed.json"
    file.write_text(json.dumps(content))
    refused(file)
    refused_as_items(file)


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return buffer.getvalue()


@pytest.mark.parametrize("name", ["ann.jsonl", "header.json"])
def test_an_archive_that_unpacks_without_end_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MOST_UNPACKED", 1024**2)
    large, file = b" " * 3 * 1024**2, tmp_path / "f.zip"
    several = {name: b"{}", f"samples/{name}": large, "b.jsonl": b" " * 2**22}
    bomb = packed({name: large} if name == "ann.jsonl" else several)
    file.write_bytes(bomb)
    assert "f.zip unpacks to more than 1 MB" in refused(file)
    assert "f.zip unpacks to more than 1 MB" in refused_as_items(file)
    # What a member claims of its size is not believed.
    claimed = bomb.replace((3 * 1024**2).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert claimed != bomb
    file.write_bytes(claimed)
    assert "unpacks to more than 1 MB" in refused(file)


def test_a_damaged_member_a_broken_line_and_another_archive_are_named(tmp_path: Path) -> None:
    content = bytearray((FILES / "inspect.eval").read_bytes())
    start = content.find(b"samples/u1_epoch_1.json") + 40
    content[start : start + 60] = b"x" * 60
    first = (FILES / "langsmith.jsonl").read_text().splitlines()[0]
    for name, held, said in (
        ("f.eval", bytes(content), "samples/u1_epoch_1.json is damaged"),
        ("f.csv", packed({"a.txt": b"x"}), "f.csv is a ZIP archive; unpack it first"),
        (
            "f.jsonl",
            (first + '\n{"key": 1,,}\n').encode(),
            "f.jsonl, line 2 cannot be read as JSON",
        ),
    ):
        (tmp_path / name).write_bytes(held)
        assert said in refused(tmp_path / name)
        assert name == "f.csv" or said in refused_as_items(tmp_path / name)


@pytest.mark.slow
def test_a_workbook_that_claims_a_million_columns_is_bounded(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "wide.xlsx") as made:
        members = {name: made.read(name) for name in made.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    far = (
        b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row></sheetData>'
    )
    members[sheet] = members[sheet].replace(b"</sheetData>", far)
    (tmp_path / "f.xlsx").write_bytes(packed(members))
    assert "more than 2,500 columns" in refused(tmp_path / "f.xlsx")


def test_deep_json_and_a_large_file_are_no_export(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "deep.json").write_text('{"results": ' + "[" * 50_000)
    assert "deep.json holds JSON; write one JSON object a line" in refused(tmp_path / "deep.json")
    monkeypatch.setattr(source, "MOST_BYTES", 1_000)
    said = refused(FILES / "langfuse.json")
    assert "langfuse.json" in said
    # A line is enough to know a tool's file, so that it is not taken for a table.
    for file in ("langsmith_runs.jsonl", "openinference.jsonl", "samples_office.jsonl"):
        said = refused_as_items(ITEMS / file)
        assert said.startswith(f"{file} is too large for an export of a tool (at most 0 MB)")


def test_an_export_without_a_rating_says_what_was_left_out(wrote: Wrote) -> None:
    task = {"id": 1, "data": {}, "annotations": [{"was_cancelled": True}], "predictions": [7]}
    said = refused(wrote([task]))
    assert said.startswith("f.json holds no rating. Read as a Label Studio export.")
    assert "cancelled annotations (1), predictions exported by id only (1)" in said
    # What no table can hold is taken out.
    result = {"type": "choices", "from_name": "q", "value": {"choices": ["y\ud800\0"]}}
    task = {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": [result]}]}
    assert read_export(wrote([task])).table["label"].tolist() == ["y\ufffd\ufffd"]
