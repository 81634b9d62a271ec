"""Images as a unit's text holds them: a data URI with the picture itself and its description."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

_URI = re.compile(r"data:(image/(?:png|jpeg|webp))(?:;alt=([^;,]*))?;base64,([A-Za-z0-9+/]+={0,2})")
BEGINS = "data:image/"


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
    def said(self) -> str:
        """The image in words, for where only words are shown."""
        return f"[image: {self.alt}]" if self.alt else "[image]"


def image_of(cell: str) -> Image | None:
    """Return the image that a text holds, or None."""
    found = _URI.fullmatch(cell) if cell.startswith(BEGINS) else None
    return Image(found[1], found[3], unquote(found[2] or "")) if found else None


def in_words(cell: str) -> str:
    """Return a text, an image in words.

    >>> in_words("A note"), in_words("data:image/png;base64,AAAA")
    ('A note', '[image]')
    """
    image = image_of(cell)
    return image.said if image else cell
