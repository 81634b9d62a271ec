"""Logs of chat completions: requests with their responses, the output of batches (of OpenAI and
Anthropic) and lists of conversations.
"""

from __future__ import annotations

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.source import Record, Source, inside, text_of
from evenhand.exchange.readers.texts import ASKED, CONTEXT, EXPECTED, messages_in, texts_of
from evenhand.texts import written

_LISTS = ("messages", "conversation", "conversations")
_OWN = {
    "id",
    "custom_id",
    "request",
    "response",
    "result",
    "body",
    "error",
    "method",
    "url",
    *_LISTS,
}
_SAID = {*ASKED, *CONTEXT, *EXPECTED}


def items(source: Source) -> ItemTable | None:
    """A completion is an item; its prompt is what the request holds, in the same record or in one
    with the same `custom_id`. Conversations in one JSON list are items as they are.
    """
    first = source.first
    listed = isinstance(source.document, list) and any(messages_in(first.get(n)) for n in _LISTS)
    if not listed and not _request(first) and not _reply(first):
        return None
    records = source.records()
    asked = {
        key: request
        for each in records
        if (key := text_of(each.get("custom_id"))) and (request := _request(each))
    }
    rows = ItemRows(source)
    answered: set[str] = set()
    for record in records:
        key = text_of(record.get("custom_id"))
        reply, request = _reply(record), _request(record) or asked.get(key)
        whole = next((found for n in _LISTS if (found := messages_in(record.get(n)))), None)
        if key in asked and "response" not in record and "result" not in record:
            continue  # its answer stands on another line
        answered.add(key)
        beside = {name: record[name] for name in record if name not in _OWN}
        made = reply or text_of(record.get("response"))
        said = {name: each for name, each in beside.items() if name in _SAID}
        texts = texts_of(said, made)
        if given := _given(request) or whole:
            texts |= texts_of(given, made)
        rows.add(
            key or record.get("id"),
            {"conversation": whole} if whole and not made else texts,
            subject=inside(reply, "model")
            or inside(reply, "modelVersion")
            or inside(request, "model")
            or record.get("model"),
            about={name: each for name, each in beside.items() if name not in said},
        )
    if not answered:
        raise InputError(
            f"{source.name} holds requests without their responses; put the lines of the batch's "
            "output behind them in one file"
        )
    return rows.items(written("exchange.chat_items"))


def _request(record: Record) -> Record | None:
    """The request of a record: what was sent, as the provider's API takes it."""
    places = [("request", "body"), ("request",)] if "response" in record else []
    places += [("body",), ("params",)] if "custom_id" in record else []
    for place in places:
        held = inside(record, *place)
        if isinstance(held, dict) and _given(held):
            return held
    return None


def _given(request: Record | None) -> object:
    """The messages of a request, with the system prompt that some APIs take apart."""
    names = ("messages", "input", "contents")
    messages = next((found for name in names if (found := inside(request, name))), None)
    system = inside(request, "system") or inside(request, "instructions")
    if isinstance(messages, list) and system:
        return [{"role": "system", "content": system}, *messages]
    return messages


def _reply(record: Record) -> Record | None:
    """The reply of a record: a completion, or a message of Anthropic."""
    for held in (inside(record, "response", "body"), record.get("response"), record,
                 inside(record, "result", "message")):  # fmt: skip
        if isinstance(held, dict) and (
            isinstance(held.get("choices"), list)
            or isinstance(held.get("candidates"), list)
            or held.get("type") == "message"
            or held.get("object") == "response"
        ):
            return held
    return None
