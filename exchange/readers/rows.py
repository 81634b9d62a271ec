"""Rows that a reader collects from a file: ratings (`Rows`) or items to be rated (`ItemRows`).

Both count the records that are left out, by reason. Functions between the two turn a file's values
into names and labels, and recognise models by their names. `Reader`, at the end, is the interface
of all readers.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers.source import (
    RESPONSE_KEYS,
    TOOLS,
    Record,
    Source,
    Text,
    as_messages,
    cell_of,
    fields_in,
    messages_in,
    pattern,
    text_of,
)
from evenhand.lazy import pd
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.study.tables.ratings import (
    RATER_KINDS,
    RATING_KEY,
    RATINGS_COLUMNS,
    is_later,
    stored_instant,
)
from evenhand.texts import written

LONGEST_LABEL = 200
"""Characters; a longer answer is a text, not a label."""
_UNUSABLE_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no table can hold, or that control a terminal."""
_RESERVED_COLUMNS = (*RATINGS_COLUMNS, "item_id", "subject", "side", "cluster_id", "")
"""Columns with a meaning in evenhand, which descriptions of units must not overwrite."""
_METADATA_COLUMNS = (
    "rater_id", "rubric", "p_positive", "prob_method", "order", "draw", "seconds",
    "unscored_reason", "rubric_hash",
)  # fmt: skip
"""Columns of a rating that evenhand's writers store in a tool's metadata."""
_HASH_LENGTH = 6  # characters of the hash that tells units with one id apart


@dataclass(frozen=True)
class Export:
    """The ratings of a file as a table of texts: long, with `rater_id`, or wide. `notes` say how
    the file was read and what was left out. If `by_unit`, the rows are one for each rating and not
    those of the file, and `left_out` counts the other records by reason. If `by_score`, raters are
    named after scores, which do not show who gave them.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    by_unit: bool = False
    by_score: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)


class NoRatingError(InputError):
    """Raised for a file whose format is recognised but which holds no rating."""


class _Collector:
    """The part that `Rows` and `ItemRows` share: it counts the records that are left out."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        self._left_out: Counter[str] = Counter()

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count records that are left out for this reason, which is words for the user."""
        self._left_out[reason] += count

    def _left_out_notes(self) -> list[str]:
        """Return a sentence on the records that were left out, if there are any."""
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self._left_out.items())
        return [written("exchange.left_out", reasons=reasons)] if reasons else []


class Rows(_Collector):
    """The ratings of a file, one for each value of `RATING_KEY`, and `notes` on how it was read."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._may_be_lists = source.several
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}
        self._times: dict[tuple[str, ...], str] = {}
        self._facts_by_unit: dict[str, dict[str, str]] = {}
        self.notes: list[str] = []

    def add(
        self, unit: object, rater: object, kind: str, answer: Any, rubric: str = "", **cells: object
    ) -> None:
        """Add a rating, with further cells by column, unless it has no label, unit or rater. Of two
        ratings by one rater on one unit and rubric, the later one counts. A list is a label if the
        source has `several`. Raises InputError for two labels, neither of them known to be later.
        """
        all_cells = {
            "unit_id": unit,
            "rubric": rubric,
            "rater_id": rater,
            "rater_kind": kind,
        } | cells
        row = {name: one_line(cell) for name, cell in all_cells.items()}
        row["label"] = label_of(answer) or ""
        if self._may_be_lists and isinstance(answer, list):
            labels = [label_of(text_of(part)) for part in answer]
            if all(labels):
                answer = row["label"] = json.dumps(list(dict.fromkeys(labels)))
        time = row.get("created_at", "")
        row["created_at"] = stored_instant(time)
        if reason := self._reason_to_leave_out(row, answer):
            self.leave_out(reason)
            return
        key = tuple(row.get(name, "") for name in RATING_KEY)
        if key in self._rows and not self._replaces(key, row, time):
            return
        self._rows[key], self._times[key] = row, time

    def _replaces(self, key: tuple[str, ...], row: Mapping[str, str], time: str) -> bool:
        """Return True if a rating replaces an earlier one; InputError if neither is the later."""
        earlier_row = self._rows[key]
        later = is_later(time, self._times[key])  # None if one of the times is unknown
        if row["label"] == earlier_row["label"] and later is None:
            self.leave_out(written("left_out.repeated"))
            return False
        if later is None and row["label"] and earlier_row["label"]:
            rater, unit = shortened(row["rater_id"]), shortened(row["unit_id"])
            of = f" ({shortened(row['rubric'])})" if row["rubric"] else ""
            labels = {"one": shortened(earlier_row["label"]), "other": shortened(row["label"])}
            facts = {"file": self._name, "rater": rater, "unit": unit, "of": of}
            raise InputError(written("exchange.two_answers", **labels, **facts))
        self.leave_out(written("left_out.earlier"))
        return bool(row["label"]) if later is None else later

    def _reason_to_leave_out(self, row: Mapping[str, str], answer: object) -> str:
        """Return the reason why a row is not a rating, or "" if it is one."""
        if not row["unit_id"]:
            return written("left_out.no_unit")
        if not row["rater_id"]:
            return written("left_out.no_rater")
        if row.get("unscored_reason"):
            return ""
        if isinstance(answer, (list, dict)):
            return written("left_out.several")
        if not row["label"]:
            return written("left_out.no_label")
        if self._may_be_lists and row["label"].startswith("["):
            return ""
        is_text = len(row["label"]) > LONGEST_LABEL or bool(re.search(r"[\r\n]", row["label"]))
        return written("left_out.free_text") if is_text else ""

    def distinct_units(self, ids: Sequence[str], contents: Iterable[object]) -> list[str]:
        """Return the ids of units, with a hash of the unit's content where contents differ.
        Contents that share an id are different units. `ids` and `contents` have the same length.
        """
        texts = [json.dumps(content, sort_keys=True, default=str) for content in contents]
        hashes = [sha256(text.encode()).hexdigest()[:_HASH_LENGTH] for text in texts]
        hashes_by_id: dict[str, set[str]] = defaultdict(set)
        for unit, digest in zip(ids, hashes, strict=True):
            hashes_by_id[unit].add(digest)
        ambiguous = dict.fromkeys(unit for unit in ids if unit and len(hashes_by_id[unit]) > 1)
        if ambiguous:
            example = shortened(next(iter(ambiguous)))
            self.notes.append(written("exchange.kept_apart", count=len(ambiguous), unit=example))
        return [
            f"{unit}#{digest}" if unit in ambiguous else unit
            for unit, digest in zip(ids, hashes, strict=True)
        ]

    def describe(self, unit: object, description: object) -> None:
        """Store a unit's description, an object, as columns; values with parts are left out."""
        if isinstance(description, dict):
            facts = self._facts_by_unit.setdefault(one_line(unit), {})
            for name, value in description.items():
                column, label = one_line(name), label_of(value)
                if column not in _RESERVED_COLUMNS and label is not None:
                    facts[column] = label

    def export(self, how_read: str) -> Export:
        """Return the ratings as a table, `how_read` as its first note, or raise NoRatingError."""
        left_out_notes = self._left_out_notes()
        if count := self._left_out[written("left_out.no_rater")]:
            left_out_notes.append(written("exchange.no_rater", count=count, file=self._name))
        if not self._rows:
            fault = f"{self._name} holds no rating."
            raise NoRatingError(" ".join([fault, how_read, *left_out_notes]))
        rows = list(self._rows.values())
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name, "") for row in rows] for name in names}
        facts_by_column: dict[str, dict[str, str]] = defaultdict(dict)
        for unit, facts in self._facts_by_unit.items():
            for name, fact in facts.items():
                facts_by_column[name][unit] = fact
        for name, facts in facts_by_column.items():
            # Columns of long texts define no groups of units.
            if all(len(fact) <= LONGEST_LABEL and "\n" not in fact for fact in facts.values()):
                columns[name] = [facts.get(row["unit_id"], "") for row in rows]
        table, notes = pd.DataFrame(columns, dtype=str), [how_read, *self.notes, *left_out_notes]
        return Export(table, notes, by_unit=True, left_out=self._left_out)


def one_line(value: object) -> str:
    """Return a text or a number as a name on one line; "" for other values.

    >>> one_line("ann\\n"), one_line(None)
    ('ann', '')
    """
    return " ".join((label_of(text_of(value)) or "").split())


def label_of(value: object) -> str | None:
    """Return a text or boolean as a label, without unusable characters; None for other values.

    >>> label_of(True), label_of("yes"), label_of(None), label_of(["yes"])
    ('true', 'yes', None, None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return _UNUSABLE_CHARACTER.sub("\ufffd", value) if isinstance(value, str) else None


def rating_columns(metadata: object) -> Record:
    """Return the columns of a rating that evenhand's writers store in a tool's metadata.

    >>> rating_columns({"rater_id": "ann", "rater_kind": "robot", "topic": "tax"})
    {'rater_id': 'ann'}
    """
    metadata = fields_in(metadata)
    columns = {name: text for name in _METADATA_COLUMNS if (text := text_of(metadata.get(name)))}
    if (kind := text_of(metadata.get("rater_kind"))) in RATER_KINDS:
        columns["rater_kind"] = kind
    if isinstance(texts := metadata.get("probabilities"), dict):
        probabilities: dict[str, float | None] = dict.fromkeys(texts)
        for option, text in texts.items():
            with suppress(ValueError):
                probabilities[option] = float(text_of(text))
        columns["probabilities"] = json.dumps(probabilities)
    return columns


def plain_kind(name: str) -> str:
    """Return the kind of a rater by name, "human" or "model"; "" if the name does not show it.

    >>> [plain_kind(name) for name in ("human_1", "gpt-4o", "openai:gpt-5", "ann", "gpt4_reason")]
    ['human', 'model', 'model', '', '']
    """
    if pattern("raters", "human").fullmatch(name):
        return "human"
    is_about_label = pattern("raters", "about").search(name)
    return "model" if pattern("raters", "model").fullmatch(name) and not is_about_label else ""


# ---- items --------------------------------------------------------------------------------------
ROLES = ("prompt", "context", "reference", "conversation", "response")
"""Columns of texts in the order in which raters read them."""
_INPUT_ROLES = {"prompt", "context", "reference"}
RESPONSES = {*RESPONSE_KEYS, "conversation", "transcript"} - {"text"}
"""Names of fields with the text to be rated."""
_NO_SUBJECT = "unknown"
_RESERVED_FACTS = re.compile(
    "|".join((*RATINGS_COLUMNS, "subject", "side", *ROLES))
    + r"|epoch|(trace|span|observation|session|run|task)_id"
    + r"|(pair|item|unit|cluster|prompt|response|sample|inclusion)_.*",
    re.I,
)
"""Names with a meaning in a study or for a tool; facts under such a name are renamed."""


@dataclass(frozen=True)
class ItemTable:
    """Items to be rated, as a table of texts. `notes` say how the file was read and what was left
    out. `show` names the columns that raters read (empty: those with usual names), `cluster` the
    column whose value is shared by items that belong together. `units` are the ids of the items in
    the file's ratings.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    show: tuple[str, ...] = ()
    cluster: str = ""
    units: tuple[str, ...] = ()


class _Item(NamedTuple):
    """An item to be rated; `item_id` is the tool's id, and `facts` are further columns."""

    unit: str
    texts: dict[str, Text]
    item_id: str
    subject: str
    cluster: str
    facts: dict[str, str]


class ItemRows(_Collector):
    """The items of a file by id. Texts are named by `ROLES`, or by the user with `user_fields`."""

    def __init__(self, source: Source, *, user_fields: bool = False) -> None:
        super().__init__(source)
        self._user_fields = user_fields
        self._items: dict[str, _Item] = {}

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
        """Add an item, unless it has no response. `unit` is its id in the file's ratings, and
        `item_id` the tool's id if that differs. `ids` are columns of further ids for export back to
        the tool, and `about` other facts by column. An item that is repeated, as for each annotator
        in files of some tools, counts once. Raises InputError if its texts differ.
        """
        texts = {name: text for name, text in texts.items() if text}
        if not texts.keys() - (() if self._user_fields else _INPUT_ROLES):
            self.leave_out(written("left_out.no_response"))
            return
        unit_id = one_line(unit)
        key = unit_id or f"\n{len(self._items)}"
        if key in self._items:
            if self._items[key].texts != texts:
                raise InputError(
                    f"{self._name}: the id {unit_id[:40]!r} comes twice, with other texts; give "
                    "each item an id of its own, or name one file or run at a time"
                )
            return
        facts = {}
        for name, value in fields_in(about).items():
            column, label = one_line(name), label_of(value)
            if column and label is not None:
                is_reserved = _RESERVED_FACTS.fullmatch(column)
                facts[f"metadata_{column}" if is_reserved else column] = label
        self._items[key] = _Item(
            unit=unit_id,
            texts=texts,
            item_id=one_line(item_id) or unit_id,
            subject=one_line(subject),
            cluster=one_line(cluster),
            facts=facts | {name: one_line(value) for name, value in (ids or {}).items()},
        )

    def items(self, how_read: str, cluster: str = "", show: Sequence[str] = ()) -> ItemTable:
        """Return the items as a table, with `how_read` as its first note. `cluster` and `show`, if
        the file has them, are those of `ItemTable`. Raises InputError if there is no item.
        """
        notes = [how_read, *self._left_out_notes()]
        items = list(self._items.values())
        if not items:
            raise InputError(" ".join([f"{self._name} holds no item to rate.", *notes]))
        columns = self._text_columns([item.texts for item in items])
        if not self._user_fields:
            show = list(columns)
        elif not show and "text" in columns and not RESPONSES & columns.keys():
            show = ["text"]
        if all(item.item_id for item in items):
            columns["item_id"] = [item.item_id for item in items]
        if any(item.subject for item in items):
            if count := sum(not item.subject for item in items):
                notes.append(written("exchange.no_subject", count=count, name=_NO_SUBJECT))
            columns["subject"] = [item.subject or _NO_SUBJECT for item in items]
        clusters = [item.cluster or item.item_id for item in items]
        has_clusters = bool(cluster) and len(set(clusters)) < len(clusters)
        if has_clusters:
            columns[cluster] = clusters
        for name in dict.fromkeys(name for item in items for name in item.facts):
            columns.setdefault(name, [item.facts.get(name, "") for item in items])
        index = range(1 - FIRST_ROW, len(items) + 1 - FIRST_ROW)
        table = pd.DataFrame(columns, index=index, dtype=str)
        units = tuple(item.unit for item in items)
        return ItemTable(table, notes, tuple(show), cluster if has_clusters else "", units)

    def _text_columns(self, texts_of_items: list[dict[str, Text]]) -> dict[str, list[str]]:
        """Return the texts of all items by column, in the order in which raters read them. If one
        item has a conversation, all have one. A column is messages for all items or none.
        """
        items = [dict(texts) for texts in texts_of_items]
        if not self._user_fields and any("conversation" in texts for texts in items):
            for texts in items:
                if "conversation" not in texts:
                    reply = {"role": "assistant", "content": texts.pop("response", "")}
                    texts["conversation"] = [*as_messages(texts.pop("prompt", "")), reply]
        for name in {name for texts in items for name in texts if isinstance(texts[name], list)}:
            role = "assistant" if name.partition("_")[0] in RESPONSES else "user"
            items = [texts | {name: as_messages(texts.get(name, ""), role)} for texts in items]
        names = list(dict.fromkeys(name for texts in items for name in texts))
        if not self._user_fields:
            names.sort(key=ROLES.index)
        return {name: [cell_of(texts.get(name, "")) for texts in items] for name in names}


class Reader(NamedTuple):
    """The functions that read one format of files. `recognises` returns True for a file of the
    format, and never raises. `ratings` adds all ratings of a file to the rows, and `items` all
    items; either may return the table instead. Both raise InputError, one sentence, if the file
    cannot be read. `has_items` returns True for a file with items; without it, all files of the
    format have items.
    """

    recognises: Callable[[Source], bool]
    ratings: Callable[[Rows, Source], Export | None]
    items: Callable[[ItemRows, Source], ItemTable | None]
    has_items: Callable[[Source], bool] | None = None


def has_fields(
    tool: str, kind: str = "ratings", *, parquet: bool = False
) -> Callable[[Source], bool]:
    """Return a function that recognises files by the fields of their first record, those of this
    `kind` of the tool in `TOOLS`; with `parquet` also by the columns of a Parquet file.
    """
    names = {*TOOLS[tool][kind]}
    return lambda source: names <= {*((parquet and source.parquet_columns) or source.first_record)}


def user_texts(fields: object) -> dict[str, Text]:
    """Return the fields of a task, which a user of the tool named, as texts or messages by name."""
    texts: dict[str, Text] = {}
    for name, value in fields_in(fields).items():
        field_name = one_line(name)
        if field_name and field_name not in ("unit_id", "cluster_id", "side", "item_id"):
            messages = messages_in(value) if isinstance(value, list) else None
            texts[field_name] = messages if messages else cell_of(value)
    return texts
