"""The page on other tools' files lists what the readers and writers are."""

from __future__ import annotations

from docs.list_formats import PAGE, renewed
from evenhand.exchange.readers.reading import ITEM_READERS
from evenhand.exchange.writers import FORMATS


def test_the_table_is_written_from_the_readers() -> None:
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python docs/list_formats.py"
    assert all(f"| `{name}` |" in page for name in ITEM_READERS)


def test_every_format_that_is_written_is_listed_with_its_suffix() -> None:
    page = PAGE.read_text("utf-8")
    for name, how in FORMATS.items():
        out = f"`{how.suffix}`" if how.suffix else "new folder"
        assert f"| `{name}` | {out} |" in page
