"""A ZIP archive, unpacked within bounds: the sizes that its members declare are not trusted."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

from evenhand.errors import InputError

MOST_UNPACKED = 1024**3
"""Bytes that all members of an archive may hold together."""
_MOST_MEMBERS = 200_000
_STORED, _DEFLATED, _ZSTD = 0, 8, 93
_ENCRYPTED = 0x1
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""A member's own header: the signature, and how long its name and its extra field are."""


class Archive:
    """A ZIP archive whose members are read one at a time. Zstandard (method 93), which Python's own
    reader knows from 3.14 on, is unpacked here.
    """

    def __init__(self, content: bytes, name: str) -> None:
        self._content = content
        self._name = name
        self.keep_within(MOST_UNPACKED)
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()[:_MOST_MEMBERS]
        self._members = {each.filename: each for each in members if not each.is_dir()}

    @classmethod
    def of(cls, path: Path) -> Archive | None:
        """The archive of a file; None if it is not one, or too large to be opened."""
        if path.stat().st_size > MOST_UNPACKED:
            return None
        try:
            return cls(path.read_bytes(), path.name)
        except (zipfile.BadZipFile, ValueError, OSError, struct.error, NotImplementedError):
            return None

    def keep_within(self, most: int) -> None:
        """Limit what is read from now on to this number of bytes."""
        self._most = self._left = most

    @property
    def names(self) -> list[str]:
        """Names of all members."""
        return list(self._members)

    def read(self, name: str) -> bytes:
        """A member's content. Raises InputError where it cannot be unpacked, or is too large."""
        member = self._members[name]
        if member.flag_bits & _ENCRYPTED:
            raise InputError(
                f"{self._name} is encrypted; unpack it, and pack it without a password"
            )
        try:
            content = self._unpacked(member)
        except (zlib.error, struct.error, OSError, ValueError):
            raise InputError(f"{self._name}: {name} is damaged; export the file again") from None
        self._left -= len(content)
        if self._left < 0:
            limit = self._most // 1024**2
            raise InputError(f"{self._name} unpacks to more than {limit:,} MB; export fewer units")
        return content

    def _unpacked(self, member: zipfile.ZipInfo) -> bytes:
        at = member.header_offset
        signature, name, extra = _LOCAL_HEADER.unpack_from(self._content, at)
        if signature != b"PK\x03\x04":
            raise ValueError("no member begins here")
        start = at + _LOCAL_HEADER.size + name + extra
        packed = self._content[start : start + member.compress_size]
        most = self._left + 1
        if member.compress_type == _STORED:
            return packed[:most]
        if member.compress_type == _DEFLATED:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
        if member.compress_type == _ZSTD:
            return _of_zstandard(packed, most)
        raise ValueError("an unknown compression")


def _of_zstandard(packed: bytes, most: int) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(packed), "zstd") as stream:
        content: bytes = stream.read(most)
    return content
