"""Images as a unit's text holds them: a data URI with the picture itself and its description."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

_URI = re.compile(r"data:(image/(?:png|jpeg|webp))(?:;alt=([^;,]*))?;base64,([A-Za-z0-9+/]+={0,2})")
BEGINS = "data:image/"
MISSING = "[image missing]"
"""The words in place of an image that is not in the form in which a study keeps images."""
_PNG = b"\x89PNG\r\n\x1a\n"
_CHUNKS = {b"IHDR", b"PLTE", b"tRNS", b"IDAT", b"IEND"}
_JFIF, _SCAN = 0xE0, 0xDA
_SEGMENTS = [bytes([each]) for each in (_JFIF, 0xDB, 0xC0, 0xC2, 0xC4, 0xDD, _SCAN)]
_PLAIN_JFIF = re.compile(rb"JFIF\0.{7}\0\0", re.DOTALL)  # without a preview
_NEXT_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7]")


@dataclass(frozen=True)
class Image:
    """An image: its media type, its bytes in base64, and its description in words, if any."""

    media: str
    data: str
    alt: str = ""

    @property
    def uri(self) -> str:
        """The image as an address that holds it."""
        return f"data:{self.media};base64,{self.data}"

    @property
    def cell(self) -> str:
        """The image as a unit's text holds it, of which `image_of` makes the same image.

        >>> image = Image("image/png", "AAAA", "A cat; asleep")
        >>> image.cell, image_of(image.cell) == image
        ('data:image/png;alt=A%20cat%3B%20asleep;base64,AAAA', True)
        """
        alt = f";alt={quote(self.alt, safe='')}" if self.alt else ""
        return f"data:{self.media}{alt};base64,{self.data}"

    @property
    def is_bare(self) -> bool:
        """True for the form in which a study keeps images: a PNG or JPEG that holds pixels, and no
        text, profile, preview or other fact about how it was made.
        """
        try:
            content = base64.b64decode(self.data, validate=True)
        except binascii.Error:
            return False
        held = {"image/png": _in_png, "image/jpeg": _in_jpeg}.get(self.media)
        return held is not None and held(content)

    @property
    def said(self) -> str:
        """The image in words, for where only words are shown."""
        return f"[image: {self.alt}]" if self.alt else "[image]"


def image_of(cell: str) -> Image | None:
    """Return the image that a text holds, or None."""
    found = _URI.fullmatch(cell) if cell.startswith(BEGINS) else None
    return Image(found[1], found[3], unquote(found[2] or "")) if found else None


def shown_image(cell: str) -> Image | None:
    """Return the image that a text holds in the form in which a study keeps images, or None."""
    image = image_of(cell)
    return image if image and image.is_bare else None


def in_words(cell: str) -> str:
    """Return a text, an image in words.

    >>> in_words("A note"), in_words("data:image/png;base64,AAAA"), in_words("data:image/gif;,A")
    ('A note', '[image]', '[image missing]')
    """
    if not cell.lstrip().startswith(BEGINS):
        return cell
    image = image_of(cell)
    return image.said if image else MISSING


def _in_png(content: bytes) -> bool:
    """Return True if a PNG has the chunks that make its pixels, and nothing else."""
    at, names = len(_PNG), []
    while at < len(content):
        names.append(content[at + 4 : at + 8])
        at += 12 + int.from_bytes(content[at : at + 4], "big")
    whole = content.startswith(_PNG) and at == len(content) and names[-1:] == [b"IEND"]
    return whole and {*names} <= _CHUNKS


def _in_jpeg(content: bytes) -> bool:
    """Return True if a JPEG has the segments that make its pixels, and nothing else."""
    at = 2
    while content[at : at + 1] == b"\xff" and content[at + 1 : at + 2] in _SEGMENTS:
        marker, begin = content[at + 1], at + 4
        at += 2 + int.from_bytes(content[at + 2 : begin], "big")
        if marker == _JFIF and not _PLAIN_JFIF.fullmatch(content[begin:at]):
            return False
        if marker == _SCAN:
            found = _NEXT_MARKER.search(content, at)
            at = found.start() if found else len(content)
    return content.startswith(b"\xff\xd8") and content[at:] == b"\xff\xd9"
