"""Images of an items file: read from beside it, bounded, decoded and written anew. Nothing is
fetched.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from pathlib import Path

from evenhand.rubrics.image import BEGINS, Image

MOST_BYTES = 20 * 1024**2
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 1568
"""Pixels of the longer side that are kept: what Anthropic's models see of an image."""
_TOO_LARGE = f"the image has more than {MOST_PIXELS:,} pixels"
_FORMATS = ("PNG", "JPEG", "WEBP")
_FILE = re.compile(r"[^\s\0][^\n\0]{0,300}\.(png|jpe?g|webp)", re.IGNORECASE)
_LARGEST = 700_000
"""Bytes of an image as it is kept, beyond which it is written more coarsely."""


def looks_like_image(cell: str) -> bool:
    """Return True for the name of an image file, or an image written as a data URI.

    >>> looks_like_image("shots/1.PNG"), looks_like_image("Look at 1.png!")
    (True, False)
    """
    return cell.startswith(BEGINS) or bool(_FILE.fullmatch(cell.strip()))


def stored_image(cell: str, folder: Path, alt: str = "") -> str:
    """Return an image as a study keeps it: a data URI of a JPEG, or of a PNG where parts of it are
    transparent, with no more than `LONGEST_SIDE` pixels a side and no metadata.

    `cell` is a data URI, or the name of a file in `folder`. Raises ValueError, with a reason that
    completes a sentence, where the image is missing, damaged or too large.
    """
    from PIL import Image as Pictures
    from PIL import ImageOps

    content = _content(cell.strip(), folder)
    try:
        with (
            warnings.catch_warnings(
                action="ignore",
                category=Pictures.DecompressionBombWarning,  # ours is the lower bound
            ),
            Pictures.open(io.BytesIO(content), formats=_FORMATS) as picture,
        ):
            if picture.width * picture.height > MOST_PIXELS:
                raise ValueError(_TOO_LARGE)
            upright = ImageOps.exif_transpose(picture)
            clear = upright.has_transparency_data
            upright = upright.convert("RGBA" if clear else "RGB")
    except Pictures.DecompressionBombError:
        raise ValueError(_TOO_LARGE) from None
    except (OSError, SyntaxError, EOFError, MemoryError):
        raise ValueError("the image is damaged, or no PNG, JPEG or WebP") from None
    upright.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
    if clear and len(made := _written(upright, "PNG")) <= _LARGEST:
        return Image("image/png", _base64(made), alt).cell
    if clear:  # on white, as a page shows it
        upright = Pictures.alpha_composite(Pictures.new("RGBA", upright.size, "white"), upright)
    plain = upright.convert("RGB")
    made = next(
        (each for q in (90, 75, 50) if len(each := _written(plain, "JPEG", quality=q)) <= _LARGEST),
        _written(plain, "JPEG", quality=30),
    )
    return Image("image/jpeg", _base64(made), alt).cell


def _content(cell: str, folder: Path) -> bytes:
    if cell.startswith(BEGINS):
        try:
            content = base64.b64decode(cell.partition(";base64,")[2], validate=True)
        except binascii.Error:
            raise ValueError("the image is damaged: what it holds is no base64") from None
    else:
        if re.match("[a-z][a-z0-9+.-]+://", cell, re.IGNORECASE):
            raise ValueError(
                "the image is an address, and nothing is fetched; save it beside the file and name "
                "it"
            )
        path = (folder / cell).resolve()
        # A cell is anybody's: it names nothing outside the file's folder.
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise ValueError(f"there is no image {cell!r} beside the file")
        if path.stat().st_size > MOST_BYTES:
            raise ValueError(f"the image has more than {MOST_BYTES // 1024**2} MB")
        content = path.read_bytes()
    if len(content) > MOST_BYTES:
        raise ValueError(f"the image has more than {MOST_BYTES // 1024**2} MB")
    return content


def _written(picture: object, form: str, **how: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, optimize=True, **how)  # type: ignore[attr-defined]
    return out.getvalue()


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
