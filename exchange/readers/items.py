"""Items that a reader found, to be rated by people: the texts of each, who answered, which belong
together, and the tool's own ids, as a table whose columns go by the names that studies use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import label_of, one_line
from evenhand.exchange.readers.source import Record, Source
from evenhand.exchange.readers.texts import ANSWERED, Text, as_messages, cell_of, messages_in
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.study.tables.ratings import RATINGS_COLUMNS
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

ROLES = ("prompt", "context", "reference", "conversation", "response")
"""Columns of texts in the order in which raters read them."""
_GIVEN = {"prompt", "context", "reference"}
_RESPONSES = {*ANSWERED, "conversation", "transcript"} - {"text"}
_UNKNOWN = "unknown"
_TAKEN = re.compile(
    "|".join((*RATINGS_COLUMNS, "subject", "side", *ROLES))
    + r"|epoch|(trace|span|observation|session|run|task)_id"
    + r"|(pair|item|unit|cluster|prompt|response|sample|inclusion)_.*",
    re.I,
)
"""Names with a meaning in a study or for a tool; other facts under such a name get another."""


@dataclass(frozen=True)
class ItemTable:
    """Items as a table of texts. `show` names the columns that raters read (empty: by their names),
    `cluster` that of items that belong together, `units` the ids by which ratings in the same file
    name the items. `notes` say what was taken for what and what was left out.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    show: tuple[str, ...] = ()
    cluster: str = ""
    units: tuple[str, ...] = ()


class ItemRows:
    """The items found so far, one for each id. With `fields` their texts go by names that the
    tool's users gave them, else by `ROLES`.
    """

    def __init__(self, source: Source, *, fields: bool = False) -> None:
        self._name = source.name
        self._fields = fields
        self._items: dict[str, Record] = {}
        self._left_out: Counter[str] = Counter()

    def add(
        self,
        unit: object,
        texts: Mapping[str, Text],
        *,
        subject: object = "",
        cluster: object = "",
        ids: Mapping[str, object] | None = None,
        item_id: object = "",
        about: object = None,
    ) -> None:
        """Add an item: `unit` is its id among the file's ratings, `item_id` the tool's own if it is
        another, `ids` are columns of ids that the tool wants back, `about` what else it says.

        An item without a response is left out; one that comes again, as it does for each annotator
        of some tools, counts once. Raises InputError where it has other texts then.
        """
        texts = {name: text for name, text in texts.items() if text}
        if not texts.keys() - (() if self._fields else _GIVEN):
            self.leave_out(written("left_out.no_response"))
            return
        named = one_line(unit)
        key = named or f"\n{len(self._items)}"
        if key in self._items:
            if self._items[key]["texts"] != texts:
                raise InputError(
                    f"{self._name}: the id {named[:40]!r} comes twice, with other texts; give each "
                    "item an id of its own, or name one file or run at a time"
                )
            return
        self._items[key] = {
            "unit": named,
            "texts": texts,
            "item_id": one_line(item_id) or named,
            "subject": one_line(subject),
            "cluster": one_line(cluster),
            "about": _facts(about) | {own: one_line(each) for own, each in (ids or {}).items()},
        }

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count a record that is no item, by the reason in words."""
        self._left_out[reason] += count

    def items(self, taken: str, cluster: str = "", show: Sequence[str] = ()) -> ItemTable:
        """Return all of it as a table. `taken` says what the file was read as, `cluster` names the
        column of items that belong together, if the file tells, `show` the fields that raters read,
        if it tells that. Raises InputError where there is no item.
        """
        import pandas as pd

        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self._left_out.items())
        notes = [taken, *([written("exchange.left_out", reasons=reasons)] if reasons else [])]
        items = list(self._items.values())
        if not items:
            raise InputError(" ".join([f"{self._name} holds no item to rate.", *notes]))
        texts = [each["texts"] for each in items]
        if not self._fields and any("conversation" in each for each in texts):
            texts = [each if "conversation" in each else _conversation(each) for each in texts]
        texts = _alike(texts)
        names = list(dict.fromkeys(name for each in texts for name in each))
        if not self._fields:
            show = names = sorted(names, key=ROLES.index)
        elif not show and "text" in names and not _RESPONSES & set(names):
            show = ["text"]
        columns = {name: [cell_of(each.get(name, "")) for each in texts] for name in names}
        if all(each["item_id"] for each in items):
            columns["item_id"] = [each["item_id"] for each in items]
        if any(each["subject"] for each in items):
            unsaid = sum(not each["subject"] for each in items)
            notes += [written("exchange.no_subject", count=unsaid, name=_UNKNOWN)] * bool(unsaid)
            columns["subject"] = [each["subject"] or _UNKNOWN for each in items]
        groups = [each["cluster"] or each["item_id"] for each in items]
        together = bool(cluster) and len(set(groups)) < len(groups)
        if together:
            columns[cluster] = groups
        for name in dict.fromkeys(name for each in items for name in each["about"]):
            columns.setdefault(name, [each["about"].get(name, "") for each in items])
        index = range(1 - FIRST_ROW, len(items) + 1 - FIRST_ROW)
        return ItemTable(
            pd.DataFrame(columns, index=index, dtype=str),
            notes,
            tuple(show),
            cluster if together else "",
            tuple(each["unit"] for each in items),
        )


def _alike(items: list[Record]) -> list[Record]:
    """The texts of all items in one form: where one prompt is messages, all are."""
    for name in {name for each in items for name in each if isinstance(each[name], list)}:
        role = "assistant" if name.partition("_")[0] in _RESPONSES else "user"
        items = [each | {name: as_messages(each.get(name, ""), role)} for each in items]
    return items


def _conversation(texts: Record) -> Record:
    reply = {"role": "assistant", "content": texts.get("response", "")}
    rest = {name: text for name, text in texts.items() if name not in ("prompt", "response")}
    return rest | {"conversation": [*as_messages(texts.get("prompt", "")), reply]}


def _facts(about: object) -> dict[str, str]:
    """The single values of what a tool says of an item, by names that mean nothing else here."""
    facts = {}
    for name, value in about.items() if isinstance(about, dict) else ():
        own, label = one_line(name), label_of(value)
        if own and label is not None:
            facts[f"metadata_{own}" if _TAKEN.fullmatch(own) else own] = label
    return facts


def own_fields(fields: object) -> dict[str, Text]:
    """The fields of a task that a tool's user named, as texts or messages by these names."""
    found: dict[str, Text] = {}
    for name, value in fields.items() if isinstance(fields, dict) else ():
        own = one_line(name)
        if own and own not in ("unit_id", "cluster_id", "side", "item_id"):
            messages = messages_in(value) if isinstance(value, list) else None
            found[own] = messages if messages else cell_of(value)
    return found
