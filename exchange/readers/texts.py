"""What a tool kept of one answer, as texts that raters read: the prompt, the context, the reference
and the response, or the messages of a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from evenhand.errors import InputError
from evenhand.exchange.readers.source import Record, Written, inside, parsed, text_of

Text = str | list[Record]
"""A text, or messages, each with `role` and `content`, and perhaps `name` and `tool_calls`."""
ASKED = (
    "question", "query", "prompt", "input", "user_input", "user_query", "instruction", "request",
    "message", "messages", "text", "inputs", "kwargs", "args",
)  # fmt: skip
ANSWERED = (
    "answer", "response", "output", "completion", "generation", "result", "final_output",
    "message", "messages", "content", "text", "outputs",
)  # fmt: skip
CONTEXT = (
    "context", "contexts", "retrieved_contexts", "retrieval_context", "documents",
    "source_documents", "passages", "passage", "docs",
)  # fmt: skip
EXPECTED = (
    "reference", "expected_output", "expected_response", "expected", "ground_truth", "target",
    "reference_output", "reference_answer", "gold",
)  # fmt: skip
"""Keys of inputs and outputs by what they hold, the plainest first."""
KNOWN = frozenset((*ASKED, *ANSWERED, *CONTEXT, *EXPECTED))
_DOCUMENT = ("page_content", "pageContent", "content", "text", "document", "document.content")
_TYPES = {"human", "ai", "system", "tool", "user", "assistant", "function"}
_DEEP = 8
"""Layers of wrapping that are looked through."""
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
"""Characters that no text of a study can hold."""


def texts_of(
    given: object, made: object, *, context: object = None, expected: object = None
) -> dict[str, Text]:
    """Return the texts of an answer by name: `prompt`, `context`, `reference` and `response`, those
    that there are. Where the answer is more than one text, such as calls of tools, `conversation`
    takes the place of prompt and response.
    """
    if context is None:
        context = next(
            (own for each in (given, made) if (own := _under(each, CONTEXT)) is not None), None
        )
    if expected is None:
        expected = _under(given, EXPECTED)
    prompt, response = said(given, ASKED), said(made, ANSWERED)
    found: dict[str, Text] = {"context": documents(context), "reference": _as_text(expected)}
    if isinstance(response, list):
        asked = as_messages(prompt)
        # Some tools keep the whole history as the answer.
        found["conversation"] = response if response[: len(asked)] == asked else asked + response
    else:
        found |= {"prompt": prompt, "response": response}
    return {name: text for name, text in found.items() if text}


def said(value: object, names: Collection[str]) -> Text:
    """Return what an input or output says, out of what a tool wraps around it: a text, or messages
    where one text does not hold them; JSON for what has another form.

    >>> said({"question": "Why?", "top_k": Written("3")}, ASKED)
    'Why?'
    >>> said([{"role": "user", "content": "Why?"}], ASKED)
    'Why?'
    >>> said({"a": "x", "b": Written("1")}, ASKED)
    '{"a": "x", "b": 1}'
    """
    for _ in range(_DEEP):
        value = _reply_in(value)
        if (messages := messages_in(value)) is not None:
            only = messages[0]
            plain = len(messages) == 1 and "tool_calls" not in only and only["role"] != "system"
            return only["content"] if plain and isinstance(only["content"], str) else messages
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        elif isinstance(value, dict) and (key := _key_of(value, names)):
            value = value[key]
        else:
            break
    return _as_text(value)


def opened(value: object) -> object:
    """Return what a text of JSON holds, where a tool keeps values as JSON; other values as they
    are.
    """
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parsed(value.encode(errors="replace"), "")
    except InputError:
        return value


def documents(value: object) -> str:
    """Return retrieved documents as one text, with a blank line between two.

    >>> documents([{"page_content": "One."}, "Two."])
    'One.\\n\\nTwo.'
    """
    if isinstance(value, dict) and (own := _under(value, CONTEXT)) is not None:
        value = own
    parts = value if isinstance(value, list) else [value]
    return "\n\n".join(text for part in parts if (text := _document(part)))


def _document(part: object) -> str:
    for _ in range(_DEEP):
        key = isinstance(part, dict) and next((name for name in _DOCUMENT if part.get(name)), "")
        if not key or not isinstance(part, dict):
            break
        part = part[key]
    return _as_text(part)


def messages_in(value: object) -> list[Record] | None:
    """Return the messages that a value is, in one form whichever library wrote them; None if it is
    none.
    """
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not value:
        return None
    found = [_message(each) for each in value]
    return [each for each in found if each] if all(found) else None


def as_messages(text: Text) -> list[Record]:
    """Return a prompt as messages: a text is what the user said."""
    if isinstance(text, list):
        return text
    return [{"role": "user", "content": text}] if text else []


def cell_of(text: Text) -> str:
    """Return a text, or messages as JSON, as a cell of a table."""
    return _as_text(text)


def _message(given: object) -> Record | None:
    if isinstance(given, dict) and isinstance(kwargs := given.get("kwargs"), dict):
        kind = given.get("id")  # as LangChain keeps it: ["langchain", ..., "HumanMessage"]
        last = text_of(kind[-1]) if isinstance(kind, list) and kind else ""
        role = last.removesuffix("Chunk").removesuffix("Message").casefold()
        given = {"type": role} | kwargs
    if not isinstance(given, dict):
        return None
    role = text_of(given.get("role") or given.get("from") or given.get("type"))
    has_role = "role" in given or "from" in given or role in _TYPES
    calls = [_call(each) for each in given.get("tool_calls") or () if isinstance(each, dict)]
    content = given.get("content", given.get("value"))
    if not has_role or not role or (content is None and not calls):
        return None
    known = {"role": role, "content": _plain(content) if content is not None else ""}
    if isinstance(content, list) and len(content) == 1 and text_of(inside(content[0], "text")):
        known["content"] = content[0]["text"]
    if name := text_of(given.get("name") or given.get("function")):
        known["name"] = name
    return known | ({"tool_calls": calls} if calls else {})


def _call(given: Record) -> Record:
    """A call of a tool as OpenAI writes it; Inspect and LangChain name its parts otherwise."""
    asked = given.get("function")
    if isinstance(asked, dict):
        name, arguments = asked.get("name"), asked.get("arguments")
    else:
        name, arguments = asked or given.get("name"), given.get("arguments", given.get("args"))
    text = arguments if isinstance(arguments, str) else _as_text(arguments)
    return {"function": {"name": text_of(name), "arguments": text}}


def _reply_in(value: object) -> object:
    """The first reply of a chat completion, of Anthropic's message or of LangChain's result."""
    if isinstance(value, dict):
        for name in ("choices", "generations"):
            first = value.get(name)
            while isinstance(first, list) and first:
                first = first[0]
            if isinstance(first, dict):
                return first.get("message") or first.get("text")
            if isinstance(first, list):
                return None
        if value.get("type") == "message" and "role" in value:
            return {"role": value["role"], "content": value.get("content")}
    return value


def _key_of(value: Record, names: Collection[str]) -> str:
    """The key that holds what is said; "" where more is said than one key holds."""
    filled = [name for name, each in value.items() if each not in (None, "", [], {})]
    if len(filled) == 1:
        return filled[0]
    beside = [name for name in filled if name not in KNOWN and not _is_setting(value[name])]
    return "" if beside else next((name for name in names if name in filled), "")


def _is_setting(value: object) -> bool:
    return isinstance(value, (bool, Written))


def _under(value: object, names: Collection[str]) -> object:
    """The first filled value under one of these keys."""
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in names if value.get(name)), None)


def _as_text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(_plain(value), ensure_ascii=False)
    return _NO_TEXT.sub("\ufffd", value)


def _plain(value: Any) -> Any:
    """A value with its numbers as numbers again."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Written):
        try:
            return json.loads(value)
        except ValueError:  # more digits than Python reads, or a date of a typed table
            return str(value)
    return value
