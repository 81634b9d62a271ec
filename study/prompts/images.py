"""Images of an items file: read from beside it, bounded and encoded anew; nothing is fetched."""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import BEGINS, Image
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.texts import written

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageFile import ImageFile

MOST_BYTES = 20 * 1024**2
MOST_PIXELS = 50_000_000
LONGEST_SIDE = 1568
"""Pixels of the longer side that are kept: what Anthropic's models see of an image."""
_TOO_LARGE = "the image has more than {most:,} pixels"
_FORMATS = ("PNG", "JPEG", "WEBP")
_FILE = re.compile(r"[^\s\0][^\n\0]{0,300}\.(png|jpe?g|webp)", re.IGNORECASE)
_LARGEST = 700_000  # bytes of an image as it is kept, beyond which it is written more coarsely
MOST_WORK = 1_500_000_000
"""Pixels of a file's images that are decoded, at most; see `_work`."""
_PLAIN, _MADE_LARGE = 500, 10
"""An image of more pixels to a byte was made to be large: each counts as so many."""
MOST_KEPT = 256 * 1024**2
"""Bytes of a file's images as they are kept, at most."""


def looks_like_image(cell: str) -> bool:
    """Return True for the name of an image file, or an image written as a data URI.

    >>> looks_like_image("shots/1.PNG"), looks_like_image("Look at 1.png!")
    (True, False)
    """
    return cell.startswith(BEGINS) or bool(_FILE.fullmatch(cell.strip()))


def images_shown(rubrics: Iterable[Rubric], frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table of prompts or responses that these rubrics show as images."""
    shown = {name for rubric in rubrics for name in rubric.images}
    sides = {f"{name}_{side}" for name in shown for side in "ab"}
    return [str(column) for column in frame if column in shown | sides]


def with_images(
    frame: pd.DataFrame, columns: Sequence[str], name: str, folder: Path
) -> pd.DataFrame:
    """Return the rows with the images of these columns in them. A column called like an image's
    and `_alt` has its description.

    Raises InputError naming the first row whose cell is neither empty nor an image, or up to which
    there are more images than are read; that is known before one is decoded.
    """
    made: dict[str, Image] = {}

    def kept(cell: str) -> int:
        made[cell] = stored_image(cell, folder)
        return len(made[cell].data)

    def add_up(size: Callable[[str], int], most: int) -> None:
        total, seen = 0, {""}
        for column in columns:
            for row, cell in zip(frame.index + FIRST_ROW, frame[column].str.strip(), strict=True):
                try:
                    total += 0 if cell in seen else size(cell)
                except ValueError as fault:
                    raise InputError(f"{name}, row {row}: {column}: {fault}") from None
                if total > most:
                    what = "bytes" if size is kept else "images"
                    about = {"name": name, "row": row, "side": LONGEST_SIDE}
                    raise InputError(written(f"items.many_{what}", **about))
                seen.add(cell)

    add_up(lambda cell: _work(cell, folder), MOST_WORK)
    add_up(kept, MOST_KEPT)
    cells = {}
    for column in columns:
        alts = frame.get(f"{column}_alt", [""] * len(frame))
        rows = zip(frame[column].str.strip(), alts, strict=True)
        cells[column] = [cell and replace(made[cell], alt=alt.strip()).cell for cell, alt in rows]
    return frame.assign(**cells)


@contextmanager
def _opened(cell: str, folder: Path) -> Iterator[tuple[ImageFile, int]]:
    """An image of which only the head is read, and its size in bytes. Raises ValueError as
    `stored_image` does, also where a fault shows later.
    """
    from PIL import Image as Pictures

    content = _content(cell, folder)
    try:
        with (
            warnings.catch_warnings(
                action="ignore",
                category=Pictures.DecompressionBombWarning,  # ours is the lower bound
            ),
            Pictures.open(io.BytesIO(content), formats=_FORMATS) as picture,
        ):
            # What is transparent stands in memory twice.
            most = MOST_PIXELS // (1 + picture.has_transparency_data)
            if picture.width * picture.height > most:
                raise ValueError(_TOO_LARGE.format(most=most))
            yield picture, len(content)
    except Pictures.DecompressionBombError:
        raise ValueError(_TOO_LARGE.format(most=MOST_PIXELS)) from None
    except (OSError, SyntaxError, EOFError, MemoryError):
        raise ValueError("the image is damaged, or no PNG, JPEG or WebP") from None


def _work(cell: str, folder: Path) -> int:
    """Return how much work it is to decode an image, in pixels."""
    with _opened(cell, folder) as (picture, size):
        # A JPEG is decoded at a lower resolution, and a byte takes as long as a pixel.
        pixels = picture.width * picture.height
        share = 0.25 if picture.format == "JPEG" else 1
        return int(share * pixels * (_MADE_LARGE if pixels > _PLAIN * size else 1)) + size


def stored_image(cell: str, folder: Path) -> Image:
    """Return an image as a study keeps it: a JPEG, or a PNG where parts of it are transparent, with
    no more than `LONGEST_SIDE` pixels a side, no metadata and no description yet.

    `cell` is a data URI, or the name of a file in `folder`. Raises ValueError, with a reason that
    completes a sentence, where the image is missing, damaged or too large.
    """
    from PIL import Image as Pictures
    from PIL import ImageOps

    with _opened(cell, folder) as (picture, _):
        share = LONGEST_SIDE / max(picture.size)
        picture.draft(None, (ceil(share * picture.width), ceil(share * picture.height)))
        mode = "RGBA" if picture.has_transparency_data else "RGB"
        # In place where that can be, and turned last: a copy of a large image is much memory.
        small = picture if picture.mode == mode else picture.convert(mode)
        small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        small = ImageOps.exif_transpose(small)
    small.info.clear()  # a comment or a profile would be written again
    if mode == "RGBA" and small.getchannel("A").getextrema() != (255, 255):
        tried = _encoded(small.reduce(4), "PNG", compress_level=3)  # a whole photograph takes long
        if 16 * len(tried) <= 4 * _LARGEST:
            made = _encoded(small, "PNG", compress_level=3)
            if len(made) <= _LARGEST:
                return Image("image/png", base64.b64encode(made).decode())
        # on white, as a page shows it
        small = Pictures.alpha_composite(Pictures.new("RGBA", small.size, "white"), small)
    plain = small.convert("RGB")
    for quality in (90, 75, 50, 30):
        made = _encoded(plain, "JPEG", optimize=True, quality=quality)
        if len(made) <= _LARGEST:
            break
    return Image("image/jpeg", base64.b64encode(made).decode())


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
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"the image has more than {MOST_BYTES // 1024**2} MB")
    return content


def _encoded(picture: Picture, form: str, **how: int) -> bytes:
    out = io.BytesIO()
    picture.save(out, form, **how)
    return out.getvalue()
