"""Conversations as turns: lists of messages in the form of OpenAI, Anthropic, Inspect, Langfuse."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
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
