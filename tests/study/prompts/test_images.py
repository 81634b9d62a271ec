"""Images of an items file are kept small, upright and bare; what is none is refused."""

from __future__ import annotations

import base64
import io
import struct
import zlib

import pandas as pd
import pytest
from PIL import Image as Pictures

from evenhand.errors import InputError
from evenhand.rubrics.content import image_of
from evenhand.study.prompts import images
from evenhand.study.prompts.images import LONGEST_SIDE, stored_image
from evenhand.study.prompts.items import item_columns, make_items


def written(form: str, size: tuple[int, int] = (40, 30), colour: str = "red", **more) -> bytes:
    out = io.BytesIO()
    Pictures.new("RGBA" if colour == "#ff000080" else "RGB", size, colour).save(out, form, **more)
    return out.getvalue()


def read(cell: str) -> Pictures.Image:
    image = image_of(cell)
    assert image is not None
    return Pictures.open(io.BytesIO(base64.b64decode(image.data)))


@pytest.mark.parametrize(
    ("form", "colour", "kept"),
    [
        ("PNG", "red", "JPEG"),
        ("JPEG", "red", "JPEG"),
        ("WEBP", "red", "JPEG"),
        ("PNG", "#ff000080", "PNG"),
    ],
)
def test_an_image_is_decoded_and_written_anew(tmp_path, form, colour, kept):
    (tmp_path / "one.png").write_bytes(written(form, colour=colour))
    picture = read(stored_image("one.png", tmp_path, "a red field"))
    assert (picture.format, picture.size) == (kept, (40, 30))
    said = image_of(stored_image("one.png", tmp_path, "a; b, “c”"))
    assert said is not None
    assert said.alt == "a; b, “c”"
    # The same bytes inside the file.
    uri = f"data:image/png;base64,{base64.b64encode(written(form, colour=colour)).decode()}"
    assert stored_image(uri, tmp_path) == stored_image("one.png", tmp_path)


def test_a_photograph_stands_upright_and_tells_nothing_of_its_camera(tmp_path):
    exif = Pictures.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    exif[0x010F] = "a camera"
    (tmp_path / "photo.jpg").write_bytes(written("JPEG", (3000, 1000), exif=exif))
    picture = read(stored_image("photo.jpg", tmp_path))
    assert picture.size == (LONGEST_SIDE // 3 + 1, LONGEST_SIDE)
    assert not picture.getexif()


def bomb(side: int) -> bytes:
    """A PNG of a few hundred bytes that says how large it is."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", crc)

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 90_000))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (bomb(30_000), "more than 50,000,000 pixels"),
        (bomb(10_000), "more than 50,000,000 pixels"),
        (b"<svg onload='alert(1)'/>", "damaged, or no PNG, JPEG or WebP"),
        (written("GIF"), "damaged, or no PNG, JPEG or WebP"),
        (written("PNG")[:60], "damaged, or no PNG, JPEG or WebP"),
        (written("JPEG", (400, 400))[:300], "damaged, or no PNG, JPEG or WebP"),
        (b"", "damaged, or no PNG, JPEG or WebP"),
    ],
)
def test_what_is_no_image_is_refused(tmp_path, content, told):
    (tmp_path / "one.png").write_bytes(content)
    frame = pd.DataFrame({"image": ["one.png"], "output": ["A field."]})
    columns = item_columns(frame, "f.csv", show=["image", "output"])
    with pytest.raises(InputError, match=f"f.csv, row 2: image: .*{told}"):
        make_items(frame, columns, "f.csv", tmp_path)


def test_nothing_is_fetched_and_nothing_taken_for_an_image(tmp_path, monkeypatch):
    (tmp_path / "one.png").write_bytes(written("PNG"))
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "linked.png").symlink_to(tmp_path / "one.png")
    for cell, told in (
        ("https://example.org/one.png", "nothing is fetched"),
        ("two.png", "there is no image 'two.png' beside the file"),
        ("../one.png", "there is no image '../one.png' beside the file"),
        (str(tmp_path / "one.png"), "there is no image '/.*one.png' beside the file"),
        ("linked.png", "there is no image 'linked.png' beside the file"),
        ("data:image/png;base64,!!!", "no base64"),
    ):
        with pytest.raises(ValueError, match=told):
            stored_image(cell, beside)
    monkeypatch.setattr(images, "MOST_BYTES", 100)
    (tmp_path / "one.png").write_bytes(written("PNG", (400, 400)))
    with pytest.raises(ValueError, match="more than 0 MB"):
        stored_image("one.png", tmp_path)


def test_an_image_belongs_to_its_unit_with_its_description(tmp_path):
    (tmp_path / "one.png").write_bytes(written("PNG"))
    rows = {"image": ["one.png", ""], "image_alt": ["a field", ""], "output": ["Red.", "None."]}
    frame = pd.DataFrame(rows)
    columns = item_columns(frame, "f.csv", show=["image", "output"])
    items = make_items(frame, columns, "f.csv", tmp_path)
    assert [block.kind for block in items.blocks] == ["image", ""]
    first, second = (image_of(cell) for cell in items.pairs["image"])
    assert first is not None
    assert (first.alt, second) == ("a field", None)
