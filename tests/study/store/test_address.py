"""Addresses of stores: none shows its password, none ends in a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import InputError, StoreAway
from evenhand.study.store.database import Database
from evenhand.study.tables.pieces import pieces_of

PORT = "127.0.0.1:1"
ADDRESSES = [
    f"postgresql://lead:s3cret@tail9@{PORT}/db",
    f"postgresql://lead:s3cret@tail9/x@{PORT}/db",
    f"postgresql://le@ad:s3cret:tail9@{PORT}/db",
    "postgresql://lead:s3cret@tail9:x@nosuchhost.invalid/db",
    "postgresql://lead:s3cret#tail9@nosuchhost.invalid:notaport/db",
    "postgresql://lead:s3cret@[::1/db",
    "postgresql://lead:s3cret@host:tail9/db",
    "postgresql://lead:s3cret@127.0.0.1:999999/db",
    f"postgresql://lead:s3cret@{PORT}/db?connect_timeout=tail",
    f"postgresql://lead:s3cret%zz@{PORT}/db",
    "postgresql://host/db?application_name=lead:s3cret@tail9",  # a driver takes host for the host
    "postgresql://[",
    "postgresql://:::",
    "://",
    "foo://lead:s3cret@tail9",
    "mysql://lead:s3cret@tail9@h/db",
    "sqlite:////no/such/folder/x.db",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_malformed_is_one_sentence_without_its_password(
    address: str, tmp_path: Path
) -> None:
    """Of version 0.2.0 an @ that was not escaped showed the tail of the password, and a port that
    is no number ended in a traceback.
    """
    with pytest.raises((InputError, StoreAway)) as refused:
        Database.connect(address, tmp_path, patience=1)
    said = str(refused.value)
    assert "s3cret" not in said
    assert "tail9" not in said
    assert "\n" not in said


@pytest.mark.parametrize("address", [each for each in ADDRESSES if each.startswith("postgresql")])
def test_so_it_is_where_ratings_are_read_from_an_address(address: str) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(InputError) as refused:
        pieces_of(address, ["label"], {})
    assert "s3cret" not in str(refused.value)
    assert "tail9" not in str(refused.value)
