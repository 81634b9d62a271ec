"""Files of prompts and responses: pairs of opposing prompts, propositions, and subjects' responses.

Each reader (`read_pairs`, `read_propositions`, `read_responses`) returns one table of texts, a row
for each pair, prompt or response. A subject is a model whose responses are rated; a and b are the
sides of a pair. `name` is always the file's name, for messages. Sections: images, pairs,
propositions, responses, Markdown in them.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import IMAGE_PREFIX, Image, spoken_text
from evenhand.study.tables import columns as table_columns
from evenhand.study.tables.columns import first_repeat, shortened
from evenhand.study.tables.formats import FIRST_ROW, read_table, row_number
from evenhand.texts import written

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.ImageFile import ImageFile

# ---- images that cells name ---------------------------------------------------------------------
# They are read from the file's folder or from the cell itself, never fetched, and stored reduced in
# size. Files may come from anyone, so their sizes are checked before an image is decoded.
MOST_BYTES = 20 * 1024**2  # of one image's file
MOST_PIXELS = 50_000_000  # of one image; of one with transparency half as many
LONGEST_SIDE = 1568  # pixels of the longer side: the most that Anthropic's models use of an image
_TOO_LARGE = "the image has more than {most:,} pixels"
_FORMATS = ("PNG", "JPEG", "WEBP")
_IMAGE_FILE = re.compile(r"[^\s\0][^\n\0]{0,300}\.(png|jpe?g|webp)", re.IGNORECASE)
_MAX_STORED_BYTES = 700_000  # of an image; a larger one is encoded with a lower quality
MOST_WORK = 1_500_000_000  # most pixels to decode in the images of one table; see `_decoding_work`
_MAX_PIXELS_PER_BYTE = 500  # more may be hostile: a small file that takes long to decode
_SUSPICIOUS_FACTOR = 10  # number of times that each pixel of such an image counts
_JPEG_FACTOR = 0.25  # the same for a JPEG, which is decoded at a lower resolution
MOST_KEPT = 256 * 1024**2  # most bytes of the images of one table as they are stored


def looks_like_image(cell: str) -> bool:
    """Return True for the name of an image file, or an image written as a data URI.

    >>> looks_like_image("shots/1.PNG"), looks_like_image("Look at 1.png!")
    (True, False)
    """
    return cell.startswith(IMAGE_PREFIX) or bool(_IMAGE_FILE.fullmatch(cell.strip()))


def images_shown(rubrics: Iterable[Rubric], frame: pd.DataFrame) -> list[str]:
    """Return the columns of a table of prompts or responses that the rubrics show as images."""
    names = {name for rubric in rubrics for name in rubric.images}
    names |= {f"{name}_{side}" for name in names for side in "ab"}  # a column for each side
    return [str(column) for column in frame if column in names]


def with_images(frame: pd.DataFrame, columns: list[str], name: str, folder: Path) -> pd.DataFrame:
    """Return the table with the images of these columns as cells (`Image.cell`), described by the
    column `NAME_alt` if there is one. Raises InputError naming the first row whose cell is neither
    empty nor an image, or at which the images exceed `MOST_WORK` (checked before any is decoded)
    or `MOST_KEPT`.
    """
    image_cells = _image_cells(frame, columns)
    images: dict[str, Image] = {}
    work = n_bytes = 0
    for cell, (row, column) in image_cells.items():
        try:
            work += _decoding_work(cell, folder)
        except ValueError as fault:
            raise InputError(f"{name}, row {row}: {column}: {fault}") from None
        if work > MOST_WORK:
            raise InputError(written("items.many_images", name=name, row=row, side=LONGEST_SIDE))
    for cell, (row, column) in image_cells.items():
        try:
            images[cell] = stored_image(cell, folder)
        except ValueError as fault:
            raise InputError(f"{name}, row {row}: {column}: {fault}") from None
        n_bytes += len(images[cell].data)
        if n_bytes > MOST_KEPT:
            raise InputError(written("items.many_bytes", name=name, row=row, side=LONGEST_SIDE))
    new_columns = {}
    for column in columns:
        alts = frame.get(f"{column}_alt", [""] * len(frame))
        new_columns[column] = [
            replace(images[cell], alt=alt.strip()).cell if cell else ""
            for cell, alt in zip(frame[column].str.strip(), alts, strict=True)
        ]
    return frame.assign(**new_columns)


def _image_cells(frame: pd.DataFrame, columns: Sequence[str]) -> dict[str, tuple[int, str]]:
    """Return for each different image cell, in order, the first (row number, column) of it."""
    first_uses: dict[str, tuple[int, str]] = {}
    for column in columns:
        for row, cell in zip(frame.index + FIRST_ROW, frame[column].str.strip(), strict=True):
            if cell:
                first_uses.setdefault(cell, (row, column))
    return first_uses


@contextmanager
def _open_image(cell: str, folder: Path) -> Iterator[tuple[ImageFile, int]]:
    """Yield an image, opened but not decoded, and its bytes. Raises ValueError for a bad one."""
    from PIL import Image as Pictures  # here `Image` is what a study stores

    content = _image_bytes(cell, folder)
    try:
        with (
            # Redundant: Pillow warns only above a number of pixels that is refused below.
            warnings.catch_warnings(action="ignore", category=Pictures.DecompressionBombWarning),
            Pictures.open(io.BytesIO(content), formats=_FORMATS) as picture,
        ):
            # An image with transparency takes twice the memory.
            max_pixels = MOST_PIXELS // 2 if picture.has_transparency_data else MOST_PIXELS
            if picture.width * picture.height > max_pixels:
                raise ValueError(_TOO_LARGE.format(most=max_pixels))
            yield picture, len(content)
    except Pictures.DecompressionBombError:
        raise ValueError(_TOO_LARGE.format(most=MOST_PIXELS)) from None
    except (OSError, SyntaxError, EOFError, MemoryError):
        raise ValueError("the image is damaged, or no PNG, JPEG or WebP") from None


def _decoding_work(cell: str, folder: Path) -> int:
    """Return the work to decode an image, in pixels."""
    with _open_image(cell, folder) as (picture, n_bytes):
        pixels = picture.width * picture.height
        factor = _SUSPICIOUS_FACTOR if pixels > _MAX_PIXELS_PER_BYTE * n_bytes else 1.0
        factor *= _JPEG_FACTOR if picture.format == "JPEG" else 1
        return int(factor * pixels) + n_bytes  # reading a byte takes as long as a pixel


def stored_image(cell: str, folder: Path) -> Image:
    """Return an image as a study stores it: a JPEG, or a PNG if it has transparent parts, with at
    most `LONGEST_SIDE` pixels a side, no metadata and no description yet. `cell` is a data URI, or
    the name of a file in `folder`. Raises ValueError, with a reason that completes a sentence,
    where the image is missing, damaged or too large.
    """
    from PIL import Image as Pictures
    from PIL import ImageOps

    with _open_image(cell, folder) as (picture, _):
        scale = LONGEST_SIDE / max(picture.size)
        # Decode a JPEG at the lowest resolution that suffices; other formats ignore this.
        picture.draft(None, (ceil(scale * picture.width), ceil(scale * picture.height)))
        mode = "RGBA" if picture.has_transparency_data else "RGB"
        # Resize in place if possible, and rotate last: a copy of a large image takes much memory.
        small = picture if picture.mode == mode else picture.convert(mode)
        small.thumbnail((LONGEST_SIDE, LONGEST_SIDE))
        small = ImageOps.exif_transpose(small)
    small.info.clear()  # a comment or a profile would be written again
    has_transparent_parts = mode == "RGBA" and small.getchannel("A").getextrema() != (255, 255)
    if has_transparent_parts:
        # A whole photograph takes long: a sixteenth of the pixels shows whether it might fit.
        sixteenth = _encoded(small.reduce(4), "PNG", compress_level=3)  # a quarter of each side
        if len(sixteenth) <= _MAX_STORED_BYTES / 4:  # not / 16: fewer pixels compress less well
            encoded = _encoded(small, "PNG", compress_level=3)
            if len(encoded) <= _MAX_STORED_BYTES:
                return Image("image/png", base64.b64encode(encoded).decode())
        # On white, as a page shows the image.
        small = Pictures.alpha_composite(Pictures.new("RGBA", small.size, "white"), small)
    opaque = small.convert("RGB")
    for quality in (90, 75, 50, 30):  # the last is accepted at any size
        encoded = _encoded(opaque, "JPEG", optimize=True, quality=quality)
        if len(encoded) <= _MAX_STORED_BYTES:
            break
    return Image("image/jpeg", base64.b64encode(encoded).decode())


def _image_bytes(cell: str, folder: Path) -> bytes:
    """Return the bytes of an image. Raises ValueError, as `stored_image` does."""
    if cell.startswith(IMAGE_PREFIX):
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
        # A cell may come from anyone: it must not name a file outside the folder.
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            raise ValueError(f"there is no image {cell!r} beside the file")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"the image has more than {MOST_BYTES // 1024**2} MB")
    return content


def _encoded(picture: Picture, format_name: str, **options: int) -> bytes:
    """Return a picture encoded in a format, with Pillow's options."""
    buffer = io.BytesIO()
    picture.save(buffer, format_name, **options)
    return buffer.getvalue()


# ---- pairs of opposing prompts ------------------------------------------------------------------
LENGTH_COLUMNS = ("response_words", "response_a_words", "response_b_words")
_UNIT_COLUMNS = ("sample_position", "unit_id", "cluster_id", "subject", "side", "response")
RESERVED = (*_UNIT_COLUMNS, table_columns.INCLUSION, *LENGTH_COLUMNS)
"""Columns that the table of units adds."""
RESPONSE_ID = "response_id"
CRITERIA = (RESPONSE_ID, "criterion", "points")
"""Columns of items that are criteria: the response they belong to, their texts and points."""
PAIR_ID = re.compile(r"[^\s|]{1,64}")  # | separates the parts of a unit's id


def read_pairs(path: Path, rubrics: Sequence[Rubric] = ()) -> pd.DataFrame:
    """Read a pairs file; return its columns, `pair_id` first. Columns that the `rubrics` show as
    images are read as images. The file needs `prompt_a` and `prompt_b`; every other column is kept.
    Without a column `pair_id` the ids are p0001, p0002, ... in row order. Raises InputError naming
    the first bad row: an empty prompt, two equal prompts, or a pair that occurs twice.
    """
    frame, name = _read_rows(path, "pairs", ("prompt_a", "prompt_b"), RESERVED), path.name
    if "pair_id" not in frame:
        frame.insert(0, "pair_id", numbered_ids(len(frame)))
    _check_pairs(frame, name)
    frame = with_images(frame, images_shown(rubrics, frame), name, path.parent)
    return frame[["pair_id", *(column for column in frame if column != "pair_id")]]


def _read_rows(
    path: Path, noun: str, needed: Sequence[str], reserved: Collection[str] = ()
) -> pd.DataFrame:
    """Read a file of pairs, propositions or wordings (its `noun`). Raises InputError where it lacks
    a needed column, has a reserved one, or has no rows.
    """
    frame, name = read_table(path), path.name
    hint = f"; a {noun} file needs {' and '.join(needed)}"
    table_columns.require_columns(frame, needed, name, hint)
    table_columns.refuse_columns(frame, reserved, name)
    table_columns.require_rows(frame, name, noun)
    return frame


def numbered_ids(count: int) -> list[str]:
    """Return p0001, p0002, ... with as many digits as the last one needs, four at least."""
    width = max(4, len(str(count)))
    return [f"p{n:0{width}d}" for n in range(1, count + 1)]


def sides_of(pairs: pd.DataFrame) -> tuple[str, ...]:
    """Return the sides of prompts: a and b, or a alone where prompts are not paired."""
    return ("a", "b") if "prompt_b" in pairs else ("a",)


def are_comparisons(pairs: pd.DataFrame) -> bool:
    """Return True for comparisons: both sides have the same prompt, which `read_pairs` refuses."""
    if "prompt_b" not in pairs or pairs.empty:
        return False
    return bool(pairs["prompt_a"].eq(pairs["prompt_b"]).all())


def prompts_noun(pairs: pd.DataFrame) -> str:
    """Return the plural noun for the rows of these prompts."""
    if len(sides_of(pairs)) == 2:
        return "comparisons" if are_comparisons(pairs) else "pairs"
    return "items" if "item_id" in pairs else "prompts"


def cluster_noun(pairs: pd.DataFrame, cluster: str) -> str:
    """Return the noun for a cluster of a study with these pairs and the setting `cluster`."""
    if cluster in pairs:  # a column of a user may be named by no noun
        return CLUSTER if cluster == CLUSTER else "cluster"
    return "item" if prompts_noun(pairs) == "items" else "pair"


def _check_pairs(frame: pd.DataFrame, name: str) -> None:
    """Raise InputError for the first row with a bad id, an empty prompt, or a repeated pair."""
    row_of_id: dict[str, int] = {}
    row_of_prompts: dict[tuple[str, str], int] = {}
    for row, pair_id, prompt_a, prompt_b in zip(
        frame.index + FIRST_ROW, frame["pair_id"], frame["prompt_a"], frame["prompt_b"], strict=True
    ):
        where = f"{name}, row {row}"
        if not PAIR_ID.fullmatch(pair_id):
            raise InputError(f"{where}: pair_id {pair_id!r} must be 1-64 characters, no space or |")
        for column, prompt in (("prompt_a", prompt_a), ("prompt_b", prompt_b)):
            if not prompt.strip():
                raise InputError(f"{where}: {column} is empty; fill it in or take the row out")
        if prompt_a == prompt_b:
            raise InputError(f"{where}: prompt_a and prompt_b are the same; a pair needs two sides")
        if first_row := row_of_id.get(pair_id):  # no row has the number 0
            raise InputError(
                f"{where}: pair_id {pair_id!r} stands in row {first_row} too; give it another"
            )
        if first_row := row_of_prompts.get((prompt_a, prompt_b)):
            raise InputError(f"{where}: the same pair stands in row {first_row}; take one out")
        row_of_id[pair_id] = row_of_prompts[prompt_a, prompt_b] = row


# ---- propositions -------------------------------------------------------------------------------
# Statements that prompts ask about, in several wordings and paraphrases, repeatedly. Such a study
# is kept like one of pairs whose prompts have one side: every prompt is a row, with the proposition
# as its cluster and its wording, paraphrase and repeat as columns, so that sampling, the annotation
# page, graders and the analysis need no special case.
CLUSTER, STATEMENT = "proposition", "statement"
"""Columns with the id of the proposition, and with its text as one paraphrase has it."""
VARIANTS = ("wording", "paraphrase", "repeat")  # in which prompts on one proposition differ
PLAIN = {"plain": "{statement}\n\nDo you agree or disagree with this statement, and why?"}
"""The wording of a study without a file of wordings: its name and its template."""
_SLOT = "{statement}"


def read_propositions(
    path: Path,
    wordings: Path | None = None,
    repeats: int = 1,
    *,
    crossed: bool = True,
    rubrics: Sequence[Rubric] = (),
) -> pd.DataFrame:
    """Read the prompts of a propositions file, one row each: `pair_id, proposition, statement,
    wording, paraphrase, repeat, prompt_a`.

    The propositions file has `id` and `text`; rows with the same id are paraphrases of each other,
    and every other column (groups, topics) is kept. The wordings file has `wording` (a name) and
    `template`, a text with {statement} in it; without one there is a plain wording. Each prompt is
    repeated `repeats` times. If not `crossed`, further paraphrases are used in the first wording
    alone. Columns that the `rubrics` show as images are read so. Raises InputError for a bad row.
    """
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; every prompt is put once at least")
    statements = _read_statements(path)
    statements = with_images(statements, images_shown(rubrics, statements), path.name, path.parent)
    templates = _read_wordings(wordings) if wordings else PLAIN
    extra_columns = [column for column in statements if column not in ("id", "text", "paraphrase")]
    first_wording, are_further = next(iter(templates)), statements.duplicated("id")  # paraphrases
    rows = [
        {
            CLUSTER: statement["id"],
            STATEMENT: statement["text"],
            "wording": wording,
            "paraphrase": statement["paraphrase"],
            "repeat": str(repeat),
            "prompt_a": template.replace(_SLOT, statement["text"]),
            **{column: statement[column] for column in extra_columns},
        }
        for statement, is_further in zip(statements.to_dict("records"), are_further, strict=True)
        for wording, template in templates.items()
        if crossed or not is_further or wording == first_wording
        for repeat in range(1, repeats + 1)
    ]
    frame = pd.DataFrame(rows)
    frame.insert(0, "pair_id", numbered_ids(len(frame)))
    return frame


def _read_statements(path: Path) -> pd.DataFrame:
    """Read a propositions file, adding `paraphrase` if absent. Raises InputError for a bad row."""
    reserved = {"pair_id", CLUSTER, STATEMENT, "wording", "repeat", "prompt_a", *RESERVED}
    frame, name = _read_rows(path, "propositions", ("id", "text"), reserved), path.name
    rows = zip(frame.index + FIRST_ROW, frame["id"], frame["text"], strict=True)
    for row, proposition, text in rows:
        if not PAIR_ID.fullmatch(proposition):
            raise InputError(
                f"{name}, row {row}: id {proposition!r} must be 1-64 characters, no space or |"
            )
        if not text.strip():
            raise InputError(f"{name}, row {row}: text is empty; fill it in or take the row out")
    if duplicate := first_repeat(frame, ["id", "text"]):
        row = row_number(frame, duplicate[0])  # the later one
        raise InputError(f"{name}, row {row}: the same text stands under this id further up")
    if "paraphrase" not in frame:
        frame["paraphrase"] = (frame.groupby("id").cumcount() + 1).astype(str)
    elif duplicate := first_repeat(frame, ["id", "paraphrase"]):
        row = row_number(frame, duplicate[0])
        raise InputError(f"{name}, row {row}: this paraphrase of the proposition is there already")
    return frame


def _read_wordings(path: Path) -> dict[str, str]:
    """Return the templates of a wordings file by name. Raises InputError for a bad row."""
    frame, name = _read_rows(path, "wordings", ("wording", "template")), path.name
    templates: dict[str, str] = {}
    rows = zip(frame.index + FIRST_ROW, frame["wording"], frame["template"], strict=True)
    for row, wording, template in rows:
        if not wording.strip() or wording in templates:
            raise InputError(f"{name}, row {row}: give every wording a name of its own")
        if _SLOT not in template:
            raise InputError(f"{name}, row {row}: the template has no {_SLOT} to put the text in")
        templates[wording] = template
    return templates


# ---- responses ----------------------------------------------------------------------------------
SUBJECT = re.compile(r"[^|\x00-\x1f]{1,120}")


def read_responses(path: Path, pairs: pd.DataFrame, rubrics: Iterable[Rubric] = ()) -> pd.DataFrame:
    """Read a responses file as columns `pair_id, side, subject, response`, one row per response;
    responses that the `rubrics` show as images are read as images.

    The file has `subject, response` and either `prompt` (the exact text of a prompt) or `pair_id`
    and, where prompts are paired, `side`. A prompt that is repeated takes a subject's responses to
    it in their order. An empty response counts: a subject may answer with nothing. Raises
    InputError naming the first bad row: an unknown prompt or pair, a second response to the same
    prompt, or a pair of which the subject answered only one side.
    """
    frame, name = read_table(path), path.name
    table_columns.require_columns(frame, ("subject", "response"), name)
    if sides_of(pairs) == ("a",) and "pair_id" in frame and "side" not in frame:
        frame = frame.assign(side="a")
    if not {"pair_id", "side"} <= set(frame) and "prompt" not in frame:
        raise InputError(f"{name}: say what was answered: column 'prompt', or 'pair_id' and 'side'")
    if frame.empty:
        raise InputError(f"{name} holds no responses")
    frame = with_images(frame, images_shown(rubrics, frame[["response"]]), name, path.parent)
    table = _with_pair_and_side(frame, pairs, name)
    _check_responses(table, name, are_paired=len(sides_of(pairs)) == 2)
    return table


def _with_pair_and_side(frame: pd.DataFrame, pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the responses with `pair_id` and `side`, from these columns or by the exact `prompt`.
    The index stays, so that messages can name rows. Raises InputError for the first without them.
    """
    sides, columns = sides_of(pairs), ["pair_id", "side", "subject", "response"]
    if {"pair_id", "side"} <= set(frame):
        pair_ids, permitted = set(pairs["pair_id"]), " or ".join(sides)
        keys = zip(frame.index + FIRST_ROW, frame["pair_id"], frame["side"], strict=True)
        for row, pair, side in keys:
            if pair not in pair_ids:
                raise InputError(f"{name}, row {row}: there is no pair {pair!r} in the study")
            if side not in sides:
                raise InputError(f"{name}, row {row}: side is {side!r}; it must be {permitted}")
        return frame[columns]
    keys_of_prompt: dict[str, list[tuple[str, str]]] = {}  # (pair_id, side) of each prompt
    for side in sides:
        for pair, prompt in zip(pairs["pair_id"], pairs[f"prompt_{side}"], strict=True):
            keys_of_prompt.setdefault(prompt, []).append((pair, side))
    n_located: Counter[tuple[str, str]] = Counter()
    rows, row_indices = [], []
    cells = (frame[column] for column in ("prompt", "subject", "response"))
    for row_index, prompt, subject, response in zip(frame.index, *cells, strict=True):
        if not (matches := keys_of_prompt.get(prompt)):
            raise InputError(
                f"{name}, row {row_index + FIRST_ROW}: no pair has the prompt "
                f"{shortened(prompt, 60)!r}; the text must be exactly that of the pairs file"
            )
        if len(sides) == 1:  # each repeat of a prompt takes the subject's next response to it
            # A surplus one answers the first repeat again, which `_check_responses` refuses.
            matches = [matches[n_located[subject, prompt] % len(matches)]]
            n_located[subject, prompt] += 1
        rows += [(pair, side, subject, response) for pair, side in matches]
        row_indices += [row_index] * len(matches)
    return pd.DataFrame(rows, columns=columns, index=row_indices)


def _check_responses(table: pd.DataFrame, name: str, *, are_paired: bool) -> None:
    """Raise InputError for a bad subject, a repeated response, or a pair with one side."""
    row_of_response: dict[tuple[str, str, str], int] = {}
    cells = (table[column] for column in ("subject", "pair_id", "side"))
    for row, subject, pair, side in zip(table.index + FIRST_ROW, *cells, strict=True):
        if not SUBJECT.fullmatch(subject):
            raise InputError(
                f"{name}, row {row}: subject {subject!r} must be 1-120 characters, none of them |"
            )
        if (subject, pair, side) in row_of_response:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} has answered side {side} of {pair} in row "
                f"{row_of_response[subject, pair, side]} already; keep one response"
            )
        row_of_response[subject, pair, side] = row
    if not are_paired:
        return
    for (subject, pair, side), row in row_of_response.items():
        other_side = "b" if side == "a" else "a"
        if (subject, pair, other_side) not in row_of_response:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} answers side {side} of {pair} but not "
                f"side {other_side}; add the missing response or take this one out"
            )


def with_words(units: pd.DataFrame, responses: pd.DataFrame, shown: Iterable[str]) -> pd.DataFrame:
    """Return the `units` table with the numbers of words of its texts, "" where there is no text.
    Adds `response_words` for a unit of one side, `response_a_words` and `response_b_words` for a
    pair, and NAME_words for each column NAME that is `shown` with them. `responses` has the columns
    `pair_id, subject, side, response`. Words are separated by white space; of a conversation, those
    of its turns count, as a response the subject's turns.
    """
    for column in shown:
        if column in units and f"{column}_words" not in units:
            texts = map(spoken_text, units[column])
            counts = [str(len(text.split())) if text.strip() else "" for text in texts]
            units = units.assign(**{f"{column}_words": counts})
    cells = (responses[column] for column in ("pair_id", "subject", "side", "response"))
    n_words = {  # "0" for an empty response, which is a response all the same
        (pair, subject, side): str(len(spoken_text(text, "assistant").split()))
        for pair, subject, side, text in zip(*cells, strict=True)
    }
    rows = list(zip(units["cluster_id"], units["subject"], units["side"], strict=True))
    new_columns = {"response_words": [n_words.get(row, "") for row in rows]}
    for side in "ab":  # of pairs: the `side` of a pair's unit is ""
        new_columns[f"response_{side}_words"] = [
            "" if unit_side else n_words.get((pair, subject, side), "")
            for pair, subject, unit_side in rows
        ]
    return units.assign(**new_columns)


# ---- Markdown in responses ----------------------------------------------------------------------
MARKDOWN_FROM = 0.5  # share of responses with Markdown from which a new study renders it
_MAX_CHARACTERS = 50_000  # the rest of a text is not looked at

_MARKDOWN = re.compile(
    r"^#{1,6} \S"  # a heading
    r"|^(?:[-*+]|\d{1,3}[.)]) +\S.*\n\n?(?:[-*+]|\d{1,3}[.)]) +\S"  # two entries of a list
    r"|\*\*\S[^\n]*?\*\*"  # strong words
    r"|^```"  # a block of code
    r"|`[^`\n]+`"  # code within a line
    r"|^\|.*\|[ \t]*\n\|[ \t:|-]+\|",  # the head of a table
    re.MULTILINE,
)


def looks_like_markdown(text: str) -> bool:
    """Return True if a text has headings, lists, strong words, code or tables in Markdown's syntax.

    >>> looks_like_markdown("It is **so**."), looks_like_markdown("2 * 3 * 4, a_b and #1")
    (True, False)
    """
    return bool(_MARKDOWN.search(text[:_MAX_CHARACTERS]))


def markdown_share(responses: Iterable[str]) -> float:
    """Return the share of responses that look like Markdown; 0 where there are none."""
    is_markdown = [looks_like_markdown(text) for text in responses]
    return sum(is_markdown) / len(is_markdown) if is_markdown else 0.0
