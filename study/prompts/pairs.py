"""Prompts as they come in files, in pairs or as propositions, and subjects' responses to them.
Images are read from beside the file, bounded and encoded anew; nothing is fetched.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.rubrics.rendering import IMAGE_PREFIX, Image
from evenhand.study.tables.columns import (
    INCLUSION,
    first_repeat,
    refuse_columns,
    require_columns,
    require_rows,
)
from evenhand.study.tables.formats import FIRST_ROW, read_table, row_number
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
    return cell.startswith(IMAGE_PREFIX) or bool(_FILE.fullmatch(cell.strip()))


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


LENGTH_COLUMNS = ("response_words", "response_a_words", "response_b_words")
RESERVED = (
    *("sample_position", "unit_id", "cluster_id", "subject", "side", "response"),
    INCLUSION,
    *LENGTH_COLUMNS,
)
"""Columns that the units of a study have of their own."""
RESPONSE_ID = "response_id"
CRITERIA = (RESPONSE_ID, "criterion", "points")
"""Columns of items that are criteria: which are of one response, their texts and points."""
PAIR_ID = re.compile(r"[^\s|]{1,64}")


def read_pairs(path: str | Path, rubrics: Sequence[Rubric] = ()) -> pd.DataFrame:
    """A pairs file with its columns as they are, and `pair_id` first; what the `rubrics` show as an
    image is made one.

    Needs `prompt_a` and `prompt_b`; every other column is carried along. Without a column `pair_id`
    the ids are p0001, p0002, ... in row order. Raises InputError naming the first bad row: a prompt
    that is empty, two prompts that are the same, or a pair that occurs twice.
    """
    frame = read_table(path)
    name = Path(path).name
    needed = ("prompt_a", "prompt_b")
    require_columns(frame, needed, name, "; a pairs file needs prompt_a and prompt_b")
    refuse_columns(frame, RESERVED, name)
    require_rows(frame, name, "pairs")
    if "pair_id" not in frame:
        frame.insert(0, "pair_id", numbered_ids(len(frame)))
    _check_pairs(frame, name)
    frame = with_images(frame, images_shown(rubrics, frame), name, Path(path).parent)
    return frame[["pair_id", *(column for column in frame if column != "pair_id")]]


def numbered_ids(count: int) -> list[str]:
    """p0001, p0002, ... with as many digits as the last one needs.

    >>> numbered_ids(2)
    ['p0001', 'p0002']
    """
    width = max(4, len(str(count)))
    return [f"p{n:0{width}d}" for n in range(1, count + 1)]


def sides_of(pairs: pd.DataFrame) -> tuple[str, ...]:
    """The sides that prompts have: a and b, or a alone where prompts are not paired."""
    return ("a", "b") if "prompt_b" in pairs else ("a",)


def are_comparisons(pairs: pd.DataFrame) -> bool:
    """Return True where both sides have one prompt, as no file of pairs may have them."""
    if "prompt_b" not in pairs or pairs.empty:
        return False
    return bool(pairs["prompt_a"].eq(pairs["prompt_b"]).all())


def prompts_noun(pairs: pd.DataFrame) -> str:
    """Return the noun for the rows of these prompts in a sentence."""
    if len(sides_of(pairs)) == 2:
        return "comparisons" if are_comparisons(pairs) else "pairs"
    return "items" if "item_id" in pairs else "prompts"


def cluster_noun(pairs: pd.DataFrame, cluster: str) -> str:
    """Return the noun for what counts as one where the clusters are those of a setting."""
    if cluster in pairs:
        return cluster.removesuffix("_id")
    return "item" if prompts_noun(pairs) == "items" else "pair"


def _check_pairs(frame: pd.DataFrame, name: str) -> None:
    ids: dict[str, int] = {}
    seen: dict[tuple[str, str], int] = {}
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
        if pair_id in ids:
            raise InputError(
                f"{where}: pair_id {pair_id!r} stands in row {ids[pair_id]} too; give it another"
            )
        if (prompt_a, prompt_b) in seen:
            raise InputError(
                f"{where}: the same pair stands in row {seen[prompt_a, prompt_b]}; "
                "take one of the two out"
            )
        ids[pair_id] = seen[prompt_a, prompt_b] = row


# Propositions: one statement each, put to subjects as it is worded, paraphrased and repeated. Such
# a study is kept like one of pairs whose prompts have one side: every prompt is a row of its own,
# with the proposition as its cluster and its wording, paraphrase and repeat as columns, so that
# sampling, the annotation page, graders and the analysis need no special case.

CLUSTER = "proposition"
STATEMENT = "statement"
VARIANTS = ("wording", "paraphrase", "repeat")
"""Columns that tell prompts on one proposition apart."""

PLAIN = {"plain": "{statement}\n\nDo you agree or disagree with this statement, and why?"}
_SLOT = "{statement}"


def read_propositions(
    path: str | Path,
    wordings: str | Path | None = None,
    repeats: int = 1,
    *,
    crossed: bool = True,
    rubrics: Sequence[Rubric] = (),
) -> pd.DataFrame:
    """Read the prompts of a propositions file, one row each: `pair_id, proposition, statement,
    wording, paraphrase, repeat, prompt_a`.

    The propositions file has `id` and `text`; rows that share an id are paraphrases of each other,
    and every other column (groups, topics) is carried along. The wordings file has `wording` (a
    name) and `template`, a text with {statement} in it; without one there is a plain wording. Each
    prompt is put `repeats` times. If not `crossed`, further paraphrases are put in the first
    wording alone. What the `rubrics` show as an image is made one. Raises InputError naming the
    first bad row.
    """
    if repeats < 1:
        raise InputError(f"repeats is {repeats}; every prompt is put once at least")
    statements = _read_statements(path)
    images = images_shown(rubrics, statements)
    statements = with_images(statements, images, Path(path).name, Path(path).parent)
    templates = _read_wordings(wordings) if wordings else PLAIN
    others = [column for column in statements if column not in ("id", "text", "paraphrase")]
    usual, further = next(iter(templates)), statements.duplicated("id")
    rows = [
        {
            CLUSTER: statement["id"],
            STATEMENT: statement["text"],
            "wording": wording,
            "paraphrase": statement["paraphrase"],
            "repeat": str(repeat),
            "prompt_a": template.replace(_SLOT, statement["text"]),
            **{column: statement[column] for column in others},
        }
        for statement, again in zip(statements.to_dict("records"), further, strict=True)
        for wording, template in templates.items()
        if crossed or not again or wording == usual
        for repeat in range(1, repeats + 1)
    ]
    frame = pd.DataFrame(rows)
    frame.insert(0, "pair_id", numbered_ids(len(frame)))
    return frame


def _read_statements(path: str | Path) -> pd.DataFrame:
    frame = read_table(path)
    name = Path(path).name
    require_columns(frame, ("id", "text"), name, "; a propositions file needs id and text")
    taken = {"pair_id", CLUSTER, STATEMENT, "wording", "repeat", "prompt_a", *RESERVED}
    refuse_columns(frame, taken, name)
    require_rows(frame, name, "propositions")
    rows = zip(frame.index + FIRST_ROW, frame["id"], frame["text"], strict=True)
    for row, proposition, text in rows:
        if not PAIR_ID.fullmatch(proposition):
            raise InputError(
                f"{name}, row {row}: id {proposition!r} must be 1-64 characters, no space or |"
            )
        if not text.strip():
            raise InputError(f"{name}, row {row}: text is empty; fill it in or take the row out")
    if again := first_repeat(frame, ["id", "text"]):
        row = row_number(frame, again[0])
        raise InputError(f"{name}, row {row}: the same text stands under this id further up")
    if "paraphrase" not in frame:
        frame["paraphrase"] = (frame.groupby("id").cumcount() + 1).astype(str)
    elif again := first_repeat(frame, ["id", "paraphrase"]):
        row = row_number(frame, again[0])
        raise InputError(f"{name}, row {row}: this paraphrase of the proposition is there already")
    return frame


def _read_wordings(path: str | Path) -> dict[str, str]:
    frame = read_table(path)
    name = Path(path).name
    needed = ("wording", "template")
    require_columns(frame, needed, name, "; a wordings file needs wording and template")
    require_rows(frame, name, "wordings")
    templates: dict[str, str] = {}
    rows = zip(frame.index + FIRST_ROW, frame["wording"], frame["template"], strict=True)
    for row, wording, template in rows:
        if not wording.strip() or wording in templates:
            raise InputError(f"{name}, row {row}: give every wording a name of its own")
        if _SLOT not in template:
            raise InputError(f"{name}, row {row}: the template has no {_SLOT} to put the text in")
        templates[wording] = template
    return templates


def with_words(
    units: pd.DataFrame, responses: pd.DataFrame, shown: Iterable[str] = ()
) -> pd.DataFrame:
    """The `units` table with its texts' numbers of words, "" where there is no text.

    `response_words` on a unit of one side, `response_a_words` and `response_b_words` on a pair, and
    for a column that is `shown` beside a response one with its name and `_words`. `responses` has
    the columns `pair_id, subject, side, response`; words are parted by white space.
    """
    for column in shown:
        if column in units and f"{column}_words" not in units:
            counts = [str(len(text.split()) or "") for text in units[column]]
            units = units.assign(**{f"{column}_words": counts})
    keys = zip(responses["pair_id"], responses["subject"], responses["side"], strict=True)
    words = dict(zip(keys, (str(len(text.split())) for text in responses["response"]), strict=True))
    rows = list(zip(units["cluster_id"], units["subject"], units["side"], strict=True))
    of_pair = [row[:2] if not row[2] else ("", "") for row in rows]
    cells = (rows, [(*pair, "a") for pair in of_pair], [(*pair, "b") for pair in of_pair])
    counted = ([words.get(key, "") for key in keys] for keys in cells)
    return units.assign(**dict(zip(LENGTH_COLUMNS, counted, strict=True)))


# Subjects' responses as they come in files: each found by its prompt, or by its pair and side

SUBJECT = re.compile(r"[^|\x00-\x1f]{1,120}")


def read_responses(
    path: str | Path, pairs: pd.DataFrame, rubrics: Iterable[Rubric] = ()
) -> pd.DataFrame:
    """A responses file as columns `pair_id, side, subject, response`, one row per response; where
    the `rubrics` show it as an image, it is made one.

    The file has `subject, response` and either `prompt` (the exact text of a prompt) or `pair_id`
    and, where prompts are paired, `side`. A prompt that is put several times takes a subject's
    responses to it in their order. An empty response is a response: a subject may answer with
    nothing. Raises InputError naming the first bad row: an unknown prompt or pair, a second
    response to the same prompt, or a pair of which the subject answered only one side.
    """
    frame = read_table(path)
    name = Path(path).name
    require_columns(frame, ("subject", "response"), name)
    if sides_of(pairs) == ("a",) and "pair_id" in frame and "side" not in frame:
        frame = frame.assign(side="a")
    if not {"pair_id", "side"} <= set(frame) and "prompt" not in frame:
        raise InputError(
            f"{name}: say what was answered: a column 'prompt', or 'pair_id' and 'side'"
        )
    if frame.empty:
        raise InputError(f"{name} holds no responses")
    images = images_shown(rubrics, frame[["response"]])
    frame = with_images(frame, images, name, Path(path).parent)
    table = _located(frame, pairs, name)
    _check_responses(table, name, are_paired=len(sides_of(pairs)) == 2)
    return table.drop(columns="row")


def _located(frame: pd.DataFrame, pairs: pd.DataFrame, name: str) -> pd.DataFrame:
    number = frame.index + FIRST_ROW
    if {"pair_id", "side"} <= set(frame):
        known, sides = set(pairs["pair_id"]), sides_of(pairs)
        for row, pair, side in zip(number, frame["pair_id"], frame["side"], strict=True):
            if pair not in known:
                raise InputError(f"{name}, row {row}: there is no pair {pair!r} in the study")
            if side not in sides:
                raise InputError(
                    f"{name}, row {row}: side is {side!r}; it must be {' or '.join(sides)}"
                )
        return frame[["pair_id", "side", "subject", "response"]].assign(row=number)
    places: dict[str, list[tuple[str, str]]] = {}
    for side in sides_of(pairs):
        for pair, prompt in zip(pairs["pair_id"], pairs[f"prompt_{side}"], strict=True):
            places.setdefault(prompt, []).append((pair, side))
    located: Counter[tuple[str, str]] = Counter()
    rows = []
    cells = (frame[column] for column in ("prompt", "subject", "response"))
    for row, prompt, subject, response in zip(number, *cells, strict=True):
        if not (matches := places.get(prompt)):
            short = prompt if len(prompt) <= 60 else prompt[:57] + "..."
            raise InputError(
                f"{name}, row {row}: no pair has the prompt {short!r}; the text must be "
                "exactly that of the pairs file"
            )
        if len(sides_of(pairs)) == 1:
            matches = matches[located[subject, prompt] % len(matches) :][:1]
            located[subject, prompt] += 1
        rows += [(pair, side, subject, response, row) for pair, side in matches]
    return pd.DataFrame(rows, columns=["pair_id", "side", "subject", "response", "row"])


def _check_responses(table: pd.DataFrame, name: str, *, are_paired: bool) -> None:
    rows: dict[tuple[str, str, str], int] = {}
    columns = ["subject", "pair_id", "side", "row"]
    for subject, pair, side, row in table[columns].itertuples(index=False):
        if not SUBJECT.fullmatch(subject):
            raise InputError(
                f"{name}, row {row}: subject {subject!r} must be 1-120 characters, none of them |"
            )
        if (subject, pair, side) in rows:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} has answered side {side} of {pair} in row "
                f"{rows[subject, pair, side]} already; keep one response"
            )
        rows[subject, pair, side] = row
    for (subject, pair, side), row in rows.items() if are_paired else ():
        other = "b" if side == "a" else "a"
        if (subject, pair, other) not in rows:
            raise InputError(
                f"{name}, row {row}: subject {subject!r} answers side {side} of {pair} but not "
                f"side {other}; add the missing response or take this one out"
            )


MARKDOWN_FROM = 0.5
"""From this share of them on, responses are shown as Markdown in a new study."""
_LONGEST = 50_000

_LOOKS_MARKED = re.compile(
    r"^#{1,6} \S"
    r"|^(?:[-*+]|\d{1,3}[.)]) +\S.*\n\n?(?:[-*+]|\d{1,3}[.)]) +\S"
    r"|\*\*\S[^\n]*?\*\*"
    r"|^```"
    r"|`[^`\n]+`"
    r"|^\|.*\|[ \t]*\n\|[ \t:|-]+\|",
    re.MULTILINE,
)


def looks_like_markdown(text: str) -> bool:
    """Return True if a text has headings, lists, strong words, code or tables in Markdown's syntax.

    >>> looks_like_markdown("It is **so**."), looks_like_markdown("2 * 3 * 4, a_b and #1")
    (True, False)
    """
    return bool(_LOOKS_MARKED.search(text[:_LONGEST]))


def markdown_share(responses: Iterable[str]) -> float:
    """The share of responses that look like Markdown; 0 where there are none."""
    marked = [looks_like_markdown(text) for text in responses]
    return sum(marked) / len(marked) if marked else 0.0
