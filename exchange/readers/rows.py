"""Rows that a reader collects from a file: ratings (`Rows`) or items to be rated (`ItemRows`), each
with counts of the records that were left out, by reason. An item is called a unit in ratings.
`Reader`, at the end, is one kind of file. The functions between make names and labels of a file's
values, and tell people from models by name.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers import source as src
from evenhand.lazy import pd
from evenhand.study.tables import ratings
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.texts import written

LONGEST_LABEL = 200  # characters; a longer answer is a text, not a label
_UNUSABLE_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no table can hold, or that control a terminal."""
_RESERVED_COLUMNS = (*ratings.RATINGS_COLUMNS, "item_id", "side", "")
"""Columns with a meaning here; in a file they may mean something else."""
_METADATA_COLUMNS = (
    "p_positive", "prob_method", "order", "draw", "seconds", "unscored_reason", "rubric_hash",
)  # fmt: skip
"""Columns of a rating that evenhand's writers store in a tool's metadata, unchanged."""


@dataclass(frozen=True)
class Export:
    """The ratings of a file as a table of texts: long, with `rater_id`, or wide. `notes` say how
    the file was read and what was left out; `left_out` counts this by reason. With `by_unit`
    messages name units, as rows are not the file's; with `by_score` raters are called after scores,
    and with `guessed_kinds` kinds of raters are what their names suggest.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    by_unit: bool = False
    by_score: bool = False
    guessed_kinds: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)


class NoRatingError(InputError):
    """The error for a file of a known kind that holds no rating."""


class _Collector:
    """The base of `Rows` and `ItemRows`: it counts the records of a file that are left out."""

    def __init__(self, source: src.Source) -> None:
        self._name = source.name
        self._left_out: Counter[str] = Counter()  # by the reason in words

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count records that are left out for this reason."""
        self._left_out[reason] += count

    def _left_out_notes(self) -> list[str]:
        """Return a sentence on the records that were left out, if there are any."""
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self._left_out.items())
        return [written("exchange.left_out", reasons=reasons)] if reasons else []


class Rows(_Collector):
    """The ratings of a file by `RATING_KEY` and kind of rater, and `notes` on how it was read."""

    def __init__(self, source: src.Source) -> None:
        super().__init__(source)
        self._several = source.several
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}
        self._times: dict[tuple[str, ...], str] = {}  # as the file has them, by the same keys
        self._facts: dict[str, dict[str, str]] = {}  # by unit and column
        self.notes: list[str] = []

    def add(
        self, unit: object, rater: object, kind: str, value: Any, rubric: str = "", **others: object
    ) -> None:
        """Add a rating, with `others` of its columns. One without label, unit or rater is left out
        and counted; of two by one rater on one unit and rubric the later counts. A list is a label
        if the source has `several`. Raises InputError if it is not known which of two is later.
        """
        cells = {"unit_id": unit, "rubric": rubric, "rater_id": rater, "rater_kind": kind, **others}
        row = {name: one_line(cell) for name, cell in cells.items()}
        row["label"] = label_of(value) or ""  # "" for a list
        if self._several and isinstance(value, list):
            labels = [label_of(src.text_of(part)) for part in value]
            if all(labels):
                row["label"] = json.dumps(list(dict.fromkeys(labels)))
        time = row.get("created_at", "")
        row["created_at"] = ratings.stored_instant(time)
        key = tuple(row.get(name, "") for name in (*ratings.RATING_KEY, "rater_kind"))
        if reason := self._fault_of(row, value):
            self.leave_out(reason)
        elif key not in self._rows or self._replaces(key, row, time):
            self._rows[key], self._times[key] = row, time

    def _replaces(self, key: tuple[str, ...], row: Mapping[str, str], time: str) -> bool:
        """Return True if an answer replaces the one before it in the file, and count the other as
        left out. Raises InputError for two labels if it is not known which is the later.
        """
        before = self._rows[key]
        is_later = ratings.is_later(time, self._times[key])  # None: not known
        if is_later is None and row["label"] == before["label"]:
            self.leave_out(written("left_out.repeated"))
            return False
        if is_later is None and row["label"] and before["label"]:
            rater, unit = shortened(row["rater_id"]), shortened(row["unit_id"])
            rubric = f" ({shortened(row['rubric'])})" if row["rubric"] else ""
            labels = {"one": shortened(before["label"]), "other": shortened(row["label"])}
            facts = {"file": self._name, "rater": rater, "unit": unit, "of": rubric}
            raise InputError(written("exchange.two_answers", **labels, **facts))
        self.leave_out(written("left_out.earlier"))
        # If it is not known which is the later, only one of the two has a label, and counts.
        return bool(row["label"]) if is_later is None else is_later

    def _fault_of(self, row: Mapping[str, str], value: object) -> str:
        """Return the reason why a row is not a rating, or "" if it is one."""
        if not row["unit_id"]:
            return written("left_out.no_unit")
        if not row["rater_id"]:
            return written("left_out.no_rater")
        if row.get("unscored_reason"):
            return ""
        if not row["label"] and isinstance(value, (list, dict)):
            return written("left_out.several")
        if not row["label"]:
            return written("left_out.no_label")
        if self._several and row["label"].startswith("["):
            return ""  # a list of labels, which may be long
        is_text = len(row["label"]) > LONGEST_LABEL or bool(re.search(r"[\r\n]", row["label"]))
        return written("left_out.free_text") if is_text else ""

    def units(self, contents: Sequence[tuple[str, object]]) -> list[str]:
        """Return the names of units, from (id, content) pairs: the id alone or, where an id comes
        with several contents and so names several units, the id and a hash of the content.
        """
        ids = [unit for unit, _ in contents]
        texts = [json.dumps(content, sort_keys=True, default=str) for _, content in contents]
        hashes = [sha256(text.encode()).hexdigest()[:6] for text in texts]
        hashes_by_id: dict[str, set[str]] = defaultdict(set)
        id_hashes = list(zip(ids, hashes, strict=True))
        for unit, digest in id_hashes:
            hashes_by_id[unit].add(digest)
        ambiguous = dict.fromkeys(unit for unit in ids if unit and len(hashes_by_id[unit]) > 1)
        if ambiguous:
            first = shortened(next(iter(ambiguous)))
            self.notes.append(written("exchange.kept_apart", count=len(ambiguous), unit=first))
        return [f"{unit}#{digest}" if unit in ambiguous else unit for unit, digest in id_hashes]

    def describe(self, unit: object, columns: object) -> None:
        """Store the facts about a unit that are single values, not lists or objects, by column."""
        if isinstance(columns, dict):
            facts = self._facts.setdefault(one_line(unit), {})
            for name, value in columns.items():
                column, label = one_line(name), label_of(value)
                if column not in _RESERVED_COLUMNS and label is not None:
                    facts[column] = label

    def export(self, how_read: str) -> Export:
        """Return the ratings as a table, `how_read` as its first note, or raise NoRatingError."""
        left_out = self._left_out_notes()
        if unnamed := self._left_out[written("left_out.no_rater")]:
            left_out.append(written("exchange.no_rater", count=unnamed, file=self._name))
        if not self._rows:
            raise NoRatingError(" ".join([f"{self._name} holds no rating.", how_read, *left_out]))
        rows = list(self._rows.values())
        people = {row["rater_id"] for row in rows if row["rater_kind"] in ("human", "adjudicator")}
        for row in rows:
            if row["rater_kind"] == "model" and row["rater_id"] in people:
                row["rater_id"] += " (model)"  # two raters of one name
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name, "") for row in rows] for name in names}
        facts_by_column: dict[str, dict[str, str]] = defaultdict(dict)  # a fact by column and unit
        for unit, facts in self._facts.items():
            for name, fact in facts.items():
                facts_by_column[name][unit] = fact
        for name, facts in facts_by_column.items():
            columns[name] = [facts.get(row["unit_id"]) or row.get(name, "") for row in rows]
        table, notes = pd.DataFrame(columns, dtype=str), [how_read, *self.notes, *left_out]
        return Export(table, notes, by_unit=True, left_out=self._left_out)


def one_line(value: object) -> str:
    """Return a text or a number as a name on one line; "" for other values.

    >>> one_line("ann\\n"), one_line(None)
    ('ann', '')
    """
    return " ".join((label_of(src.text_of(value)) or "").split())


def label_of(value: object) -> str | None:
    """Return a text, or true or false, as a label, without characters that no table can hold; None
    for other values. A number is a text here: sources give its digits (`src.Numeral`).

    >>> label_of(True), label_of("yes"), label_of(None), label_of(["yes"])
    ('true', 'yes', None, None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"  # as JSON writes it
    return _UNUSABLE_CHARACTER.sub("\ufffd", value) if isinstance(value, str) else None


def rating_columns(metadata: object) -> src.Record:
    """Return the columns of a rating that evenhand's writers store in a tool's metadata.

    >>> rating_columns({"rater_id": "ann", "rater_kind": "robot", "topic": "tax"})
    {'rater_id': 'ann'}
    """
    metadata = src.fields_in(metadata)
    names = ("rater_id", "rubric", *_METADATA_COLUMNS)
    columns = {name: text for name in names if (text := src.text_of(metadata.get(name)))}
    if (kind := src.text_of(metadata.get("rater_kind"))) in ratings.RATER_KINDS:
        columns["rater_kind"] = kind
    if isinstance(shares := metadata.get("probabilities"), dict):
        numbers: dict[str, float | None] = dict.fromkeys(shares)
        for name, share in shares.items():
            with suppress(ValueError):
                numbers[name] = float(src.text_of(share))
        columns["probabilities"] = json.dumps(numbers)
    return columns


def plain_kind(name: str) -> str:
    """Return the kind of rater that a name shows, "human" or "model"; "" if it may be either.

    >>> [plain_kind(name) for name in ("human_1", "gpt-4o", "openai:gpt-5", "ann", "gpt4_reason")]
    ['human', 'model', 'model', '', '']
    """
    human, model, about = (src.pattern("raters", key) for key in ("human", "model", "about"))
    if human.fullmatch(name):
        return "human"
    # "gpt4_reason" and the like may be columns about a model's grade, not graders.
    return "model" if model.fullmatch(name) and not about.search(name) else ""


# ---- items --------------------------------------------------------------------------------------

ROLES = ("prompt", "context", "reference", "conversation", "response")
"""Columns of texts in the order in which raters read them."""
_INPUTS = {"prompt", "context", "reference"}
RESPONSES = {*src.ANSWERED, "conversation", "transcript"} - {"text"}
"""Names of fields that hold the text to be rated; a field called "text" may be an input instead."""
_UNKNOWN = "unknown"  # the subject of items that name none
_RESERVED_FACTS = re.compile(
    "|".join((*ratings.RATINGS_COLUMNS, "subject", "side", *ROLES))
    + r"|epoch|(trace|span|observation|session|run|task)_id"
    + r"|(pair|item|unit|cluster|prompt|response|sample|inclusion)_.*",
    re.I,
)
"""Names with a meaning in a study or for a tool; facts under such a name are renamed."""


@dataclass(frozen=True)
class ItemTable:
    """Items as a table of texts. `show` names the columns that raters read ((): to be recognised by
    their names), `cluster` the column whose value related items share ("": none). `units` are the
    ids of the items in the file's ratings. `notes` say how the file was read and what was left out.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    show: tuple[str, ...] = ()
    cluster: str = ""
    units: tuple[str, ...] = ()


class ItemRows(_Collector):
    """The items of a file by id. Texts are named by `ROLES` or, with `users_fields`, by a user."""

    def __init__(self, source: src.Source, *, users_fields: bool = False) -> None:
        super().__init__(source)
        self._users_fields = users_fields
        self._items: dict[str, src.Record] = {}

    def add(
        self,
        unit: object,
        texts: Mapping[str, src.Text],
        *,
        subject: object = "",
        cluster: object = "",
        ids: Mapping[str, object] | None = None,
        item_id: object = "",
        about: object = None,
    ) -> None:
        """Add an item: `unit` is its id in the file's ratings, `item_id` the tool's id if it
        differs, `ids` are columns of further ids for export to the tool, `about` are other facts.
        An item without a response is left out. A repeated item counts once, since some tools write
        it for each annotator; raises InputError if the repetition has other texts.
        """
        texts = {name: text for name, text in texts.items() if text}
        inputs = set() if self._users_fields else _INPUTS  # any field of a user may be a response
        if texts.keys() <= inputs:
            self.leave_out(written("left_out.no_response"))
            return
        unit_id = one_line(unit)
        key = unit_id or f"\n{len(self._items)}"  # unlike any id, which has no line break
        if key in self._items:
            if self._items[key]["texts"] != texts:
                raise InputError(
                    f"{self._name}: the id {unit_id[:40]!r} comes twice, with other texts; give "
                    "each item an id of its own, or name one file or run at a time"
                )
            return
        facts = {}
        for name, value in src.fields_in(about).items():
            column, label = one_line(name), label_of(value)
            if column and label is not None:
                facts[f"metadata_{column}" if _RESERVED_FACTS.fullmatch(column) else column] = label
        self._items[key] = {
            "unit": unit_id,
            "texts": texts,
            "item_id": one_line(item_id) or unit_id,
            "about": facts | {name: one_line(value) for name, value in (ids or {}).items()},
            "subject": one_line(subject),
            "cluster": one_line(cluster),
        }

    def items(self, how_read: str, cluster: str = "", show: Sequence[str] = ()) -> ItemTable:
        """Return the items as a table, with a first note on how the file was read. `cluster` and
        `show`, if the file tells them, are those of `ItemTable`. Raises InputError without items.
        """
        notes = [how_read, *self._left_out_notes()]
        if not (items := list(self._items.values())):
            raise InputError(" ".join([f"{self._name} holds no item to rate.", *notes]))
        rows = [dict(item["texts"]) for item in items]  # texts by name
        # Raters read all items in one form: if one is a conversation, all are shown as such.
        if not self._users_fields and any("conversation" in row for row in rows):
            for row in rows:
                if "conversation" not in row:
                    reply = {"role": "assistant", "content": row.pop("response", "")}
                    row["conversation"] = [*src.as_messages(row.pop("prompt", "")), reply]
        with_messages = {name for row in rows for name in row if isinstance(row[name], list)}
        for name in with_messages:  # in all rows, so that a column has one form
            role = "assistant" if name.partition("_")[0] in RESPONSES else "user"  # "response_a"
            rows = [row | {name: src.as_messages(row.get(name, ""), role)} for row in rows]
        names = list(dict.fromkeys(name for row in rows for name in row))
        if not self._users_fields:
            show = names = sorted(names, key=ROLES.index)
        elif not show and "text" in names and not RESPONSES & set(names):
            show = ["text"]  # the response, since no other name is a response's
        columns = {name: [src.text_or_json(row.get(name, "")) for row in rows] for name in names}
        if all(item["item_id"] for item in items):
            columns["item_id"] = [item["item_id"] for item in items]
        if any(item["subject"] for item in items):
            if unknown := sum(not item["subject"] for item in items):
                notes.append(written("exchange.no_subject", count=unknown, name=_UNKNOWN))
            columns["subject"] = [item["subject"] or _UNKNOWN for item in items]
        clusters = [item["cluster"] or item["item_id"] for item in items]  # else one of its own
        has_clusters = bool(cluster) and len(set(clusters)) < len(clusters)  # of two or more items
        if has_clusters:
            columns[cluster] = clusters
        for name in dict.fromkeys(name for item in items for name in item["about"]):
            columns.setdefault(name, [item["about"].get(name, "") for item in items])
        index = range(1 - FIRST_ROW, len(items) + 1 - FIRST_ROW)  # messages add it: 1, 2, ...
        table = pd.DataFrame(columns, index=index, dtype=str)
        units = tuple(item["unit"] for item in items)
        return ItemTable(table, notes, tuple(show), cluster if has_clusters else "", units)


class Reader(NamedTuple):
    """One kind of file. `recognises` returns True for its content, and never raises. `ratings` and
    `items` add all of a file's ratings, or items to rate, to the rows or return a table; they raise
    InputError, one sentence, for a file that they cannot read. `has_items` returns True for a file
    with items; None if every file of the kind has some.
    """

    recognises: Callable[[src.Source], bool]
    ratings: Callable[[Rows, src.Source], Export | None]
    items: Callable[[ItemRows, src.Source], ItemTable | None]
    has_items: Callable[[src.Source], bool] | None = None


def has_fields(
    tool: str, kind: str = "ratings", *, in_tables: bool = False
) -> Callable[[src.Source], bool]:
    """Return a function that recognises files whose first record has these fields of the tool."""
    names = {*src.TOOLS[tool][kind]}
    if in_tables:  # the columns of a Parquet file may be these, too
        return lambda source: names <= {*(source.columns or source.first)}
    return lambda source: names <= source.first.keys()


def users_fields(fields: object) -> dict[str, src.Text]:
    """Return the fields of a task, which a user of the tool named, as texts or messages by name."""
    texts: dict[str, src.Text] = {}
    for name, value in src.fields_in(fields).items():
        field_name = one_line(name)
        if field_name and field_name not in ("unit_id", "cluster_id", "side", "item_id"):
            messages = src.messages_in(value) if isinstance(value, list) else None
            texts[field_name] = messages or src.text_or_json(value)
    return texts
