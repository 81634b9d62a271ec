"""JSON of no one tool: logs of chat completions, and data in a few general shapes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import (
    LONGEST_LABEL,
    Export,
    ItemRows,
    ItemTable,
    Reader,
    Rows,
    label_of,
    one_line,
    plain_kind,
)
from evenhand.exchange.readers.source import (
    TOOLS,
    Record,
    Source,
    fields_in,
    inside,
    objects,
    pattern,
    text_of,
)
from evenhand.exchange.readers.texts import ASKED, CONTEXT, EXPECTED, messages_in, texts_of
from evenhand.lazy import pd
from evenhand.study.tables.columns import likely_columns, names_items
from evenhand.study.tables.formats import FIRST_ROW, cell_text, check_table
from evenhand.texts import written

# ---- chat completions ---------------------------------------------------------------------------
# Requests with their responses, the output of batches (of OpenAI and Anthropic), and lists of
# conversations.
_CHAT = TOOLS["chat"]
_SAID = {*ASKED, *CONTEXT, *EXPECTED}


def _is_chat(source: Source) -> bool:
    first = source.first
    lists = (messages_in(first.get(name)) for name in _CHAT["lists"])
    listed = isinstance(source.document, list) and any(lists)
    return listed or bool(_request(first) or _reply(first))


def _chat_items(rows: ItemRows, source: Source) -> None:
    """A completion is an item; its prompt is what the request holds, in the same record or in one
    with the same `custom_id`. Conversations in one JSON list are items as they are.
    """
    records = source.records()
    asked = {
        key: request
        for each in records
        if (key := text_of(each.get("custom_id"))) and (request := _request(each))
    }
    answered: set[str] = set()
    for record in records:
        key = text_of(record.get("custom_id"))
        reply, request = _reply(record), _request(record) or asked.get(key)
        whole = next((found for n in _CHAT["lists"] if (found := messages_in(record.get(n)))), None)
        if key in asked and "response" not in record and "result" not in record:
            continue  # its answer stands on another line
        answered.add(key)
        beside = {name: record[name] for name in record if name not in _CHAT["own"]}
        made = reply or text_of(record.get("response"))
        said = {name: each for name, each in beside.items() if name in _SAID}
        texts = texts_of(said, made)
        if given := _given(request) or whole:
            texts |= texts_of(given, made)
        if whole and not made:
            texts = {"conversation": whole}
        named = (inside(reply, "model"), inside(reply, "modelVersion"), inside(request, "model"))
        subject = next(filter(None, named), record.get("model"))
        about = {name: each for name, each in beside.items() if name not in said}
        rows.add(key or record.get("id"), texts, subject=subject, about=about)
    if not answered:
        raise InputError(
            f"{source.name} holds requests without their responses; put the lines of the batch's "
            "output behind them in one file"
        )


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


# ---- general shapes -----------------------------------------------------------------------------
# Items in a list, by their ids, or inside a wrapper, with the answers of several raters inside each
# of them; or raters with their answers by item. Answers are a list of objects that name the rater,
# an object of labels by rater or by question, or a list of labels. Anything else is refused with
# the path of its key.
_MOST_LOOKED_AT = 50
_DEEPEST = 4
"""Wrappers around each other."""
_MOST_KEYS, _QUOTED = 12, 60
"""Keys below each other, and characters of them in a message."""
_FEW_LABELS = 20
_JSON = TOOLS["json"]
_PEOPLE, _MACHINES = _JSON["people"], _JSON["machines"]
_WHO, _WHAT, _WHEN = _JSON["who"], _JSON["what"], _JSON["when"]
_SURELY_WHO = _WHO[:12]
_ANSWERS, _NAMES = pattern("json", "answers"), pattern("json", "names")


@dataclass(frozen=True)
class _Answer:
    """A label in an item, or what is below a key and known of the labels there: who gave it, on
    what question, and when; the item and the path, for messages; and the key of answers that it is
    under. Raters without a name go by their place in a list (`placed`).
    """

    item: str
    path: str
    key: str
    value: Any
    rater: str = ""
    rubric: str = ""
    time: object = ""
    placed: bool = False

    def below(self, name: str, value: object) -> _Answer:
        """What is under a name in this value."""
        return replace(self, path=f"{self.path}.{name}", value=value)

    def on(self, question: str) -> _Answer:
        """The same as an answer to this part of the question."""
        return replace(self, rubric=f"{self.rubric}.{question}".strip("."))

    @property
    def fault(self) -> InputError:
        """The error to raise for what is no answer."""
        return InputError(
            f"{self.item}: {one_line(self.path)} names no annotator, or holds no label; write the "
            'answers as a list of objects, such as [{"annotator": "ann", "label": "yes"}]'
        )


def _is_json(source: Source) -> bool:
    if source.header:
        return False
    document = source.document
    if isinstance(document, dict) and source.path.suffix.casefold() == ".json":
        return any(map(_is_container, document.values()))
    records = objects(document) if isinstance(document, list) else [source.first]
    return any(_carriers(each) or _parts(each) for each in islice(records, _MOST_LOOKED_AT))


def _read_json(rows: Rows, source: Source) -> Export | None:
    """An item is a unit, by an id of its own; who labels it a rater. Flat items are a table."""
    where, records = _items_in(source)
    records = [each for record in records for each in _whole(record)]
    if not any(_carriers(record) for record in records):
        return Export(_table(records, source.name), _notes(where))
    rows.note(written("exchange.json_where", where=where))
    key = _id_key(records)
    units = [
        one_line(record.get(key)) if key else str(number)
        for number, record in enumerate(records, start=1)
    ]
    contents = []
    for record in records:  # without the answers to it
        carriers = _carriers(record)
        contents.append({name: record[name] for name in record if name not in carriers})
    units = rows.units(list(zip(units, contents, strict=True)))
    labels: set[str] = set()
    placed = False
    for unit, record in zip(units, records, strict=True):
        rows.describe(unit, {name: record[name] for name in record if name != key})
        place = f"{source.name}, item {unit}"
        for name in _carriers(record):
            below = _parallel(name, record[name], record) or record[name]
            for answer in _answers(_Answer(place, name, name, below)):
                kind, time = _kind(answer.rater, answer.key), answer.time
                labels.add(text_of(answer.value))
                placed = placed or answer.placed
                rows.add(unit, answer.rater, kind, answer.value, answer.rubric, created_at=time)
    judges = _judges(records, labels)
    for unit, record in zip(units, records, strict=True):
        for judge in judges:
            rows.add(unit, judge, "model", record.get(judge))
    used = dict.fromkeys(name for record in records for name in _carriers(record))
    rows.note(written("exchange.json_answers", keys=", ".join(used)))
    if placed:
        rows.note(written("exchange.json_places"))
    if judges:
        rows.note(written("exchange.json_judges", names=", ".join(judges)))
    return None


def _json_items(_: ItemRows, source: Source) -> ItemTable:
    """An item is one, with its columns; what is nested stays JSON."""
    where, records = _items_in(source)
    return ItemTable(_table(records, source.name), _notes(where))


def _notes(where: str) -> list[str]:
    return [written("exchange.json_items"), written("exchange.json_where", where=where)]


# ---- where the items are ------------------------------------------------------------------------


def _items_in(source: Source) -> tuple[str, list[Record]]:
    """The words for where the items are, and the items. Raises InputError where nothing tells."""
    if not isinstance(source.document, dict) or source.path.suffix.casefold() != ".json":
        return "one list", source.records()
    return _descend(source.document, source.name, "")


def _descend(given: object, name: str, path: str) -> tuple[str, list[Record]]:
    where = path or "one object"
    if isinstance(given, list):
        return where, objects(given)
    values = fields_in(given)
    if len(values) > 1 and all(isinstance(each, dict) for each in values.values()):
        if turned := _by_item(values):
            return f"{where}, by annotator and item", turned
        if set.intersection(*({*each} for each in values.values())):
            return f"{where}, by id", [{"id": key, **each} for key, each in values.items()]
    if len(values) > 1 and all(objects(each) for each in values.values()):
        return f"{where}, in several lists", _joined(values)
    inner = {key: each for key, each in values.items() if _is_container(each)}
    if not inner or path.count(".") >= _DEEPEST:
        place = f"{name}, {one_line(path)}" if path else name
        raise InputError(
            f"{place} is JSON without a list of items; write a list of objects, an item each, such "
            'as [{"item": "a", "annotations": {"ann": "yes"}}]'
        )
    longest = max(inner, key=lambda key: len(inner[key]))
    if [len(each) for each in inner.values()].count(len(inner[longest])) > 1:
        several = one_line(", ".join(inner))[:_QUOTED]
        keys = "".join(f'["{key}"]' for key in f"{path}.{longest}".split(".") if key)
        query = shlex.quote(one_line(f".{keys}"))
        raise InputError(
            f"{name} has several lists of the same length ({several}), and nothing tells which has "
            f"the items; write one of them to a file: jq {query} {shlex.quote(name)} > items.json"
        )
    return _descend(inner[longest], name, f"{path}.{longest}".strip("."))


def _is_container(value: object) -> bool:
    """Return True if there may be items in a value."""
    if isinstance(value, dict):
        return any(isinstance(each, (dict, list)) for each in value.values()) or len(value) > 1
    return bool(objects(value))


def _by_item(given: Mapping[str, Record]) -> list[Record]:
    """The items of answers by rater and item; none where the objects are items. Raters are fewer
    than items, which they share, and labels are few.
    """
    known = dict.fromkeys(item for own in given.values() for item in own)
    answers = [answer for own in given.values() for answer in own.values()]
    shared = len(answers) > len(known)
    if not shared or len(known) <= 2 * len(given):
        return []
    plain = all(isinstance(each, (str, bool)) for each in answers)
    few = len({str(each) for each in answers}) <= _FEW_LABELS if plain else False
    if not few and not all(isinstance(each, dict) and {*each} & {*_WHAT} for each in answers):
        return []
    return [
        {"id": item, "annotations": {who: own[item] for who, own in given.items() if item in own}}
        for item in known
    ]


def _joined(given: Mapping[str, Any]) -> list[Record]:
    """The objects of several lists, with the list that each is from: that of a rater, where lists
    are about the same items, or a part of the data.
    """
    every = [record for own in given.values() for record in objects(own)]
    key = next((name for name in every[0] if names_items(name)), "")
    ids = [{text_of(each.get(key)) for each in objects(own)} for own in given.values()]
    called = "annotator" if key and ids[0] & set().union(*ids[1:]) else "part"
    return [{called: name, **record} for name, own in given.items() for record in objects(own)]


def _parts(record: Record) -> str:
    """The key of parts of an item that are rated, as the sentences of a summary; "" for none."""
    if _carriers(record):
        return ""
    found = [key for key, value in record.items() if (own := objects(value)) and _carriers(own[0])]
    return found[0] if len(found) == 1 else ""


def _whole(record: Record) -> list[Record]:
    """The parts of an item that are rated, or the item."""
    if not (key := _parts(record)):
        return [record]
    own = {name: value for name, value in record.items() if name != key}
    found = _id_key([own])
    return [
        {**own, found or "id": f"{text_of(own.get(found))}/{number}", "cluster": own.get(found)}
        | {name: value for name, value in part.items() if name != found}
        for number, part in enumerate(objects(record[key]), start=1)
    ]


def _id_key(records: list[Record]) -> str:
    """The key that names each item; "" where none has a name in all of them."""
    able = [name for name in records[0] if all(label_of(each.get(name)) for each in records)]
    several = [name for name in able if len({text_of(each[name]) for each in records}) > 1]
    return likely_columns(several or able, ["unit_id"]).get("unit_id", "")


def _table(records: list[Record], source: str) -> pd.DataFrame:
    columns = {name for each in records for name in each}
    check_table(columns, len(records), source)
    cells = [{name: cell_text(value) for name, value in each.items()} for each in records]
    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    return pd.DataFrame(cells, index=index, dtype=str).fillna("")


# ---- the answers in an item ---------------------------------------------------------------------


def _carriers(record: Record) -> list[str]:
    """The keys of an item below which there are answers; none for a row of one rater."""
    if any(_person(record.get(name)) for name in _SURELY_WHO):
        return []
    return [key for key, value in record.items() if _carries(key, value, record)]


def _carries(key: str, value: object, record: Record) -> bool:
    if isinstance(value, dict):
        return bool(_ANSWERS.fullmatch(key))
    if found := objects(value):
        named = all(any(_person(each.get(name)) for name in _WHO) for each in found)
        return len(found) == len(value) and (named or bool(_ANSWERS.fullmatch(key)))  # type: ignore[arg-type]
    if isinstance(value, list):
        return bool(
            _ANSWERS.fullmatch(key) and pattern("json", "list").search(key)
        ) and not _NAMES.fullmatch(key)
    return bool(_ANSWERS.fullmatch(key)) and bool(_parallel(key, value, record))


def _parallel(key: str, value: object, record: Record) -> dict[str, str]:
    """Labels by rater, where a key beside it has as many raters as this one has labels."""
    labels = _split(value)
    for name in record:
        if name != key and _NAMES.fullmatch(name):
            raters = _split(record[name])
            if len(raters) == len(labels) == len({*raters}) and (
                len(labels) > 1 or isinstance(value, list)
            ):
                return dict(zip(raters, labels, strict=True))
    return {}


def _split(value: object) -> list[str]:
    if isinstance(value, list):
        return [one_line(each) for each in value]
    return [each.strip() for each in value.split(",")] if isinstance(value, str) else []


def _answers(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers below a key. Raises InputError for what is no answer."""
    value = given.value
    if value is None or isinstance(value, (str, bool)):
        if not given.rater:
            raise given.fault
        yield given
    elif isinstance(value, list):
        yield from _listed(given)
    elif given.path.count(".") > _MOST_KEYS:
        raise replace(given, path=f"{given.path[:_QUOTED]}...").fault
    elif isinstance(value, dict) and any(text in value for text in _WHAT):
        yield from _record(given)
    elif isinstance(value, dict):
        for name, inner in value.items():
            below = given.below(name, inner)
            if given.rater:
                yield from _answers(below.on(name))
            elif _names_rater(name, inner):
                yield from _answers(replace(below, rater=one_line(name)))
            else:
                yield from _of_question(below.on(name))
    else:
        raise given.fault


def _names_rater(name: str, inner: object) -> bool:
    """Return True if a key is a rater's name by its own look, or by what is below it."""
    if pattern("json", "person").fullmatch(name) or plain_kind(name):
        return True
    if isinstance(inner, dict):
        return any(text in inner for text in _WHAT)
    return not isinstance(inner, list)


def _of_question(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers to a question. Beside them there may be their mean or their majority."""
    own = fields_in(given.value)
    nested = [
        name for name in own if isinstance(own[name], (dict, list)) and _ANSWERS.fullmatch(name)
    ]
    if not nested:
        yield from _answers(given)
    for name in nested:
        yield from _answers(replace(given.below(name, own[name]), key=name))


def _listed(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers of a list: objects that name their raters, or labels in the order of the
    raters; the labels of one rater are a set.
    """
    value = given.value
    if given.rater and not any(isinstance(each, (dict, list)) for each in value):
        yield replace(given, value=value[0] if len(value) == 1 else value)
        return
    words = re.split(r"[ _-]", given.key.lower())
    known = [word for word in words if re.fullmatch(f"{_PEOPLE}|{_MACHINES}", word)]
    stem = next((word.rstrip("s") for word in known if word != "individual"), "annotator")
    for number, each in enumerate(value, start=1):
        path, rater = f"{given.path}[{number - 1}]", given.rater or f"{stem}_{number}"
        own = replace(given, path=path, value=each, rater=rater)
        if isinstance(each, dict):
            placed = not given.rater and not any(_person(each.get(name)) for name in _WHO)
            for answer in _record(own):
                yield replace(answer, placed=placed)
        elif isinstance(each, (str, bool)) or each is None:
            yield replace(own, placed=True)
        else:
            raise own.fault


def _record(given: _Answer) -> Iterator[_Answer]:
    """Yield the answers of an object of one rater: its label, or its numbers by question."""
    value = given.value
    who = next((name for name in _WHO if _person(value.get(name))), "")
    what = next((name for name in _WHAT if name in value), "")
    asked = next((name for name in _JSON["asked"] if text_of(value.get(name))), "")
    given = replace(
        given,
        rater=_person(value.get(who)) or given.rater,
        rubric=text_of(value.get(asked)) or given.rubric,
        time=next((value[name] for name in _WHEN if text_of(value.get(name))), given.time),
    )
    if not given.rater:
        raise given.fault
    if what:
        yield from _answers(given.below(what, value[what]))
        return
    for name, label in value.items():
        number = isinstance(label, bool) or (isinstance(label, str) and type(label) is not str)
        if number and name not in (who, asked, *_WHEN) and not names_items(name):
            yield replace(given.on(name), value=label)


def _person(value: object) -> str:
    """The name of a rater: a text or a number, or an object with one."""
    if isinstance(value, dict):
        value = next(
            (value[name] for name in ("email", "name", "username", "id") if name in value), ""
        )
    found = one_line(value)
    return found if len(found) <= LONGEST_LABEL else ""


def _kind(rater: str, key: str) -> str:
    """The kind of a rater by name, or by the key above the answers; "" where neither shows it."""
    if kind := plain_kind(rater):
        return kind
    if pattern("json", "machine").search(key):
        return "model"
    is_person = pattern("json", "person").fullmatch(rater)
    return "human" if is_person or re.fullmatch(f"({_PEOPLE})_\\d+", rater) else ""


def _judges(records: list[Record], labels: set[str]) -> list[str]:
    """The keys of models' labels beside those of people: by name, and with no other labels."""
    return [
        name
        for name in records[0]
        if pattern("json", "judge").search(name)
        and {text_of(each.get(name)) for each in records} <= {*labels, ""}
        and any(text_of(each.get(name)) for each in records)
    ]


READERS = {
    "chat": Reader(_is_chat, lambda rows, source: None, _chat_items),
    "json": Reader(_is_json, _read_json, _json_items),
}
