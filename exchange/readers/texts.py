"""Texts that raters read, out of what a tool kept of an answer: the prompt, the context, the
reference and the response, or the messages of a conversation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Written,
    fields_in,
    inside,
    mapped,
    objects,
    only,
    opened,
    pattern,
    text_of,
)

Text = str | list[Record]
"""A text, or messages, each with `role` and `content`, and perhaps `name` and `tool_calls`."""
_NAMES = TOOLS["texts"]
ASKED, ANSWERED = _NAMES["asked"], _NAMES["answered"]
CONTEXT, EXPECTED = _NAMES["context"], _NAMES["expected"]
"""Keys of inputs and outputs by what they hold, the plainest first."""
_LANGUAGE_MODEL = pattern("texts", "language_model")
_OF_REPLY, _SIGNATURE = set(_NAMES["of_reply"]), set(_NAMES["signature"])
_SPOKEN, _THOUGHT = set(_NAMES["spoken"]), set(_NAMES["thought"])
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
    found: dict[str, Text] = {"context": documents(context), "reference": cell_of(expected)}
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
    return cell_of(value)


def at(record: object, path: str) -> Any:
    """Return the value at a path of names, each of which may be a key or a part of a longer one,
    through objects that are kept as JSON; None where the path leads nowhere.

    >>> at({"attributes": '{"llm.name": "m", "llm.id": 1}'}, "attributes.llm.name")
    'm'
    """
    record = fields_in(opened(record))
    if path in record:
        return record[path]
    parts = path.split(".")
    for count in range(1, len(parts)):
        head, rest = ".".join(parts[:count]), ".".join(parts[count:])
        if head in record and (found := at(record[head], rest)) is not None:
            return found
    start = f"{path}."
    return {name[len(start) :]: record[name] for name in record if name.startswith(start)} or None


def first_at(record: object, paths: Iterable[str]) -> Any:
    """Return the first value at one of these paths that is neither missing nor empty; else None."""
    return next((found for path in paths if (found := at(record, path)) not in (None, "")), None)


def name_at(record: object, paths: Iterable[str]) -> str:
    """Return the first name or number at one of these paths; "" where there is none."""
    return next((name for path in paths if (name := text_of(at(record, path)))), "")


def documents(value: object) -> str:
    """Return retrieved documents as one text, with a blank line between two.

    >>> documents([{"page_content": "One."}, "Two."])
    'One.\\n\\nTwo.'
    """
    if isinstance(value, dict) and (own := _under(value, CONTEXT)) is not None:
        value = own
    parts: list[Any] = value if isinstance(value, list) else [value]
    texts = []
    for part in parts:
        for _ in range(_DEEP):
            key = next((name for name in _NAMES["document"] if inside(part, name)), "")
            part = part[key] if key else part
        texts.append(cell_of(part))
    return "\n\n".join(filter(None, texts))


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


def as_messages(text: Text, role: str = "user") -> list[Record]:
    """Return a text as messages: what one of this role said."""
    if isinstance(text, list):
        return text
    return [{"role": role, "content": text}] if text else []


def _message(given: object) -> Record | None:
    if isinstance(given, dict) and isinstance(kwargs := given.get("kwargs"), dict):
        kind = given.get("id")  # as LangChain keeps it: ["langchain", ..., "HumanMessage"]
        last = text_of(kind[-1]) if isinstance(kind, list) and kind else ""
        role = last.removesuffix("Chunk").removesuffix("Message").casefold()
        given = {"type": role} | kwargs
    if not isinstance(given, dict):
        return None
    role = text_of(given.get("role") or given.get("from") or given.get("type"))
    has_role = "role" in given or "from" in given or role in _NAMES["types"]
    calls = [_call(each) for each in given.get("tool_calls") or () if isinstance(each, dict)]
    content = given.get("content", given.get("parts", given.get("value")))  # Google's: parts
    if not has_role or not role or (content is None and not calls):
        return None
    known = {"role": role, "content": _content(content)}
    if name := text_of(given.get("name") or given.get("function")):
        known["name"] = name
    return known | ({"tool_calls": calls} if calls else {})


def _content(content: object) -> object:
    """The content of a message: its text where it is nothing else, or else its parts."""
    if not isinstance(content, list):
        return "" if content is None else mapped(content, _number)
    parts = [
        each
        for each in content
        if text_of(inside(each, "type")) not in _THOUGHT
        and not (inside(each, "thought") or inside(each, "reasoningContent"))
    ]
    kinds = {text_of(inside(each, "type")) or "text" for each in parts if isinstance(each, dict)}
    if kinds <= _SPOKEN:
        said = (inside(each, "text") or inside(each, "refusal") or each for each in parts)
        return "\n".join(filter(None, map(text_of, said)))
    return mapped(parts, _number)


def _call(given: Record) -> Record:
    """A call of a tool as OpenAI writes it; Inspect and LangChain name its parts otherwise."""
    asked = given.get("function")
    if isinstance(asked, dict):
        name, arguments = asked.get("name"), asked.get("arguments")
    else:
        name, arguments = asked or given.get("name"), given.get("arguments", given.get("args"))
    text = arguments if isinstance(arguments, str) else cell_of(arguments)
    return {"function": {"name": text_of(name), "arguments": text}}


def is_reply(value: object) -> bool:
    """Return True if a value is a reply as a provider's API gives it."""
    return isinstance(value, dict) and (
        _reply_in(value) is not value
        or bool(_OF_REPLY & value.keys() and _key_of(value, ANSWERED) in ANSWERED)
    )


def reply_text(cell: str) -> str:
    """Return the text of a cell that holds a provider's reply as JSON, and other cells as they are:
    what answered, and at what cost, is not for annotators. A reply is known by what no data of
    others has.

    >>> reply_text('{"model": "a", "response": "Hi", "done": true}')
    'Hi'
    """
    value = only(opened(cell) if cell[:1] in "[{ \t\r\n" else cell)
    if not isinstance(value, dict) or not is_reply(value):
        return cell
    firsts = [
        each
        for name in ("choices", "candidates", "outputs")
        for each in objects(value.get(name))[:1]
    ]
    is_signed = (
        bool(_SIGNATURE & value.keys())
        or isinstance(value.get("usage"), dict)
        or _LANGUAGE_MODEL.match(text_of(value.get("model")))
        or text_of(value.get("object")).startswith(("chat.completion", "text_completion"))
        or any(_SIGNATURE & each.keys() or inside(each, "content", "parts") for each in firsts)
        or (isinstance(value.get("generations"), list) and "meta" in value)
    )
    return (cell_of(said(value, ANSWERED)) if is_signed else "") or cell


def _reply_in(value: object) -> object:
    """The first reply of a chat completion, of a response or message, or of LangChain's result."""
    if not isinstance(value, dict):
        return value
    parts = objects(value.get("output"))
    if value.get("object") == "response" or any(each.get("type") == "message" for each in parts):
        return [_item(each) for each in parts if each.get("type") not in _THOUGHT]
    for name in ("choices", "generations", "candidates", "results", "outputs"):
        first = value.get(name)
        while isinstance(first, list) and first:
            first = first[0]
        if isinstance(first, dict) and name == "candidates":
            content = first.get("content")
            return {"role": "model", **content} if isinstance(content, dict) else content
        known = isinstance(first, dict) and (
            name < "o" or bool({"outputText", "stop_reason"} & first.keys())
        )
        if isinstance(first, dict) and known:
            return first.get("message") or first.get("text") or first.get("outputText")
        if isinstance(first, list) and name < "o":
            return None
    for message in (inside(value, "output", "message"), value.get("message")):
        if isinstance(message, dict) and "role" in message and _OF_REPLY & value.keys():
            return message
    if value.get("type") == "message" and "role" in value:
        return {"role": value["role"], "content": value.get("content")}
    return value


def _item(item: Record) -> Record:
    """A part of OpenAI's responses as a message: a call of a tool is a message of its own."""
    if item.get("type") == "function_call":
        return {"role": "assistant", "content": "", "tool_calls": [item]}
    if item.get("type") == "message":
        return item
    return {"role": "assistant", "content": [{"type": text_of(item.get("type"))}]}


def _key_of(value: Record, names: Collection[str]) -> str:
    """The key that holds what is said; "" where more is said than one key holds."""
    filled = [
        name
        for name, each in value.items()
        if each not in (None, "", [], {}) and not isinstance(each, (bool, Written))
    ]
    own = [name for name in filled if name in names]
    # What came in may be repeated beside what came out.
    others = {"role", "type", *CONTEXT, *EXPECTED, *_NAMES["settings"], *_OF_REPLY}
    others.update(ASKED if names is ANSWERED else ())
    if len(own) == 1 and others.issuperset(name for name in filled if name not in own):
        return own[0]
    return filled[0] if len(filled) == 1 == len(value) else ""


def _under(value: object, names: Collection[str]) -> object:
    """The first filled value under one of these keys, in whatever is wrapped around them."""
    for _ in range(_DEEP):
        inner = [each for each in value.values() if each] if isinstance(value, dict) else []
        if len(inner) != 1 or not isinstance(inner[0], dict):
            break
        value = inner[0]
    if not isinstance(value, dict):
        return None
    return next((value[name] for name in names if value.get(name)), None)


def cell_of(value: object) -> str:
    """Return a text as a cell of a table can hold it; JSON for messages and anything else, "" for
    what is empty.
    """
    if value is None or value == {} or value == []:
        return ""
    if not isinstance(value, str):
        value = json.dumps(mapped(value, _number), ensure_ascii=False)
    return _NO_TEXT.sub("\ufffd", value)


def _number(value: Any) -> Any:
    """A number of a file as a number again; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, Written) else value
    except ValueError:  # more digits than Python reads, or a date of a typed table
        return str(value)
