"""What a unit's text may hold in place of plain text: a conversation, as a list of messages in the
form of OpenAI, Anthropic, Inspect or Langfuse, or an image with its description, as a data URI.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, unquote

ROLES = {
    "system": "system", "developer": "system", "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant", "gpt": "assistant", "model": "assistant",
    "tool": "tool", "function": "tool",
}  # fmt: skip
"""Roles as messages name them, and what each is here."""
_LISTS = ("messages", "conversation", "turns")
MOST_TURNS = 2_000


@dataclass(frozen=True)
class Turn:
    """One turn: who speaks (`ROLES`, or "call" for a request to a tool), the tool's name, and the
    text.
    """

    role: str
    text: str
    name: str = ""


def turns_of(cell: str) -> tuple[Turn, ...]:
    """Return the turns of a conversation in JSON: a list of messages, an object that holds one, one
    message, or the reply of a chat completion.

    Raises ValueError where it is none, naming the turn at fault.

    >>> turns_of('[{"role": "user", "content": "Hi"}, {"from": "gpt", "value": "Hello"}]')
    (Turn(role='user', text='Hi', name=''), Turn(role='assistant', text='Hello', name=''))
    """
    try:
        held = json.loads(cell)
    except (ValueError, RecursionError):
        raise ValueError("it is no JSON list of messages") from None
    if isinstance(held, dict):
        held = _held_in(held)
    if not isinstance(held, list) or not held:
        raise ValueError("it is no list of messages")
    if len(held) > MOST_TURNS:
        raise ValueError(f"it has {len(held):,} turns; at most {MOST_TURNS:,} can be shown")
    turns = tuple(turn for n, message in enumerate(held, 1) for turn in _turns(message, n))
    if not turns:
        raise ValueError("its messages hold no text")
    return turns


def _held_in(held: dict[str, Any]) -> Any:
    if "choices" in held:  # the reply of a chat completion; others of its choices were not sent on
        choices = held["choices"]
        first = choices[0] if isinstance(choices, list) and choices else None
        return [first.get("message")] if isinstance(first, dict) else None
    if "role" in held and "content" in held:
        return [held]
    return next((held[name] for name in _LISTS if name in held), None)


def is_conversation(cell: str) -> bool:
    """Return True if a cell holds a conversation."""
    try:
        return bool(turns_of(cell))
    except ValueError:
        return False


def transcript(turns: tuple[Turn, ...]) -> str:
    """Return a conversation as plain text, for where it is read as one text.

    >>> print(transcript((Turn("user", "Hi"), Turn("call", "{}", "search"))))
    User:
    Hi
    <BLANKLINE>
    Call (search):
    {}
    """
    parts = []
    for turn in turns:
        name = f" ({turn.name})" if turn.name else ""
        parts.append(f"{turn.role.capitalize()}{name}:\n{turn.text}")
    return "\n\n".join(parts)


def as_messages(turns: Iterable[Turn]) -> str:
    """Return turns as a JSON list of messages, of which `turns_of` makes the same turns.

    >>> turns = (Turn("user", "Hi"), Turn("call", "{}", "search"), Turn("tool", "none", "search"))
    >>> turns_of(as_messages(turns)) == turns
    True
    """
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "call":
            call = {"function": {"name": turn.name, "arguments": turn.text}}
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        else:
            messages.append({"role": turn.role, "content": turn.text, "name": turn.name})
    return json.dumps(messages, ensure_ascii=False)


def with_said(turns: tuple[Turn, ...], number: int, more: str) -> tuple[Turn, ...]:
    """Return the turns, that of this `number` (from 0) with `more` text at its end."""
    turn = turns[number]
    return (*turns[:number], replace(turn, text=turn.text + more), *turns[number + 1 :])


def _turns(message: Any, number: int) -> Iterator[Turn]:
    if not isinstance(message, Mapping):
        raise ValueError(f"turn {number} is no message")
    given = message.get("role", message.get("from", message.get("type")))
    role = ROLES.get(str(given).casefold())
    if role is None:
        raise ValueError(f"turn {number} has the role {str(given)[:40]!r}")
    content = message.get("content", message.get("value", message.get("text", "")))
    name = str(message.get("name") or "") if role == "tool" else ""
    yield from _parts(content, role, name)
    for call in message.get("tool_calls") or ():
        if isinstance(call, Mapping):
            asked = call.get("function", call)
            if isinstance(asked, Mapping):
                yield Turn("call", _shown(asked.get("arguments", "")), str(asked.get("name", "")))


def _parts(content: Any, role: str, name: str) -> Iterator[Turn]:
    """Yield what one message says: its text, and calls of tools and their results in between."""
    parts = content if isinstance(content, list) else [content]
    said: list[str] = []
    for part in parts:
        kind = part.get("type", "text") if isinstance(part, Mapping) else "text"
        if kind in ("tool_use", "tool_result"):
            if said:
                yield Turn(role, "\n".join(said), name)
                said = []
            if kind == "tool_use":
                yield Turn("call", _shown(part.get("input", "")), str(part.get("name", "")))
            else:
                yield Turn("tool", _shown(part.get("content", "")))
        elif isinstance(part, Mapping):
            said.append(str(part["text"]) if "text" in part else f"[{kind}]")
        elif part is not None and str(part):
            said.append(str(part))
    if said:
        yield Turn(role, "\n".join(said), name)


def _shown(value: Any) -> str:
    """Return what a tool was sent or gave back: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(v, Mapping) and "text" in v for v in value):
        return "\n".join(str(v["text"]) for v in value)
    return json.dumps(value, ensure_ascii=False, indent=1)


# ---- images -------------------------------------------------------------------------------------
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
