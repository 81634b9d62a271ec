"""Rows collected by a reader: ratings (`Rows`) or items to be rated (`ItemRows`), and what was left
out, with the reason. What evenhand's own writers store in other tools' files is read back, and
plain names tell people from models.
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
from evenhand.exchange.readers.source import (
    ANSWERED,
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
_NO_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no table can hold, or that control a terminal."""
_ROWS_TAKEN = (*RATINGS_COLUMNS, "item_id", "subject", "side", "cluster_id", "")
"""Names of columns with a meaning here; in a file they may mean something else."""
_CARRIED = (
    "p_positive", "prob_method", "order", "draw", "seconds", "unscored_reason", "rubric_hash",
)  # fmt: skip


@dataclass(frozen=True)
class Export:
    """A file as a table of texts: long, with `rater_id`, or wide. `notes` list what was taken for
    what and what was left out. Where `by_unit`, the rows are not those of the file, and
    `left_out` counts by reason what of it is no row. Where `by_score`, raters go by the names of
    scores, which do not show who gave them.
    """

    table: pd.DataFrame
    notes: Sequence[str] = ()
    by_unit: bool = False
    by_score: bool = False
    left_out: Mapping[str, int] = field(default_factory=dict)


class NoRatingError(InputError):
    """A file of a known kind holds no rating."""


class _Found:
    """Records of a file that were left out, counted by the reason in words."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        self._left_out: Counter[str] = Counter()

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count a record that is not kept, by the reason in words."""
        self._left_out[reason] += count

    def _without(self) -> list[str]:
        """A sentence on what was left out, if anything was."""
        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self._left_out.items())
        return [written("exchange.left_out", reasons=reasons)] if reasons else []


class Rows(_Found):
    """The ratings found so far, one for each unit, rubric, rater, order and draw, and `notes` on
    how the file was read.
    """

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._several = source.several
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}
        self._times: dict[tuple[str, ...], str] = {}
        self._units: dict[str, dict[str, str]] = {}
        self.notes: list[str] = []

    def add(
        self, unit: object, rater: object, kind: str, value: Any, rubric: str = "", **more: object
    ) -> None:
        """A rating. What is no label, or names no unit or no rater, is left out and counted; of two
        by one rater on one unit and rubric the later counts. Several labels are a JSON list, where
        an answer may be one. Raises InputError for two different answers of which neither is known
        to be the later.
        """
        given = {"unit_id": unit, "rubric": rubric, "rater_id": rater, "rater_kind": kind, **more}
        row = {name: one_line(part) for name, part in given.items()}
        row["label"] = label_of(value) or ""
        if self._several and isinstance(value, list):
            labels = [label_of(text_of(part)) for part in value]
            if all(labels):
                value, row["label"] = "", json.dumps(list(dict.fromkeys(labels)))
        time = row.get("created_at", "")
        row["created_at"] = stored_instant(time)
        if reason := self._fault_of(row, value):
            self.leave_out(reason)
            return
        key = tuple(row.get(name, "") for name in RATING_KEY)
        if key in self._rows and not self._counts_now(key, row, time):
            return
        self._rows[key], self._times[key] = row, time

    def _counts_now(self, key: tuple[str, ...], row: Mapping[str, str], time: str) -> bool:
        """Return True if an answer replaces the one before; count the one that does not."""
        before = self._rows[key]
        later = is_later(time, self._times[key])
        if row["label"] == before["label"] and later is None:
            self.leave_out(written("left_out.repeated"))
            return False
        if later is None and row["label"] and before["label"]:
            rater, unit = shortened(row["rater_id"]), shortened(row["unit_id"])
            of = f" ({shortened(row['rubric'])})" if row["rubric"] else ""
            one, other = shortened(before["label"]), shortened(row["label"])
            about = {"file": self._name, "rater": rater, "unit": unit, "of": of}
            raise InputError(written("exchange.two_answers", one=one, other=other, **about))
        self.leave_out(written("left_out.earlier"))
        return bool(row["label"]) if later is None else later

    def _fault_of(self, row: Mapping[str, str], value: object) -> str:
        """The reason why a row is not a rating; "" if it is one."""
        if not row["unit_id"]:
            return written("left_out.no_unit")
        if not row["rater_id"]:
            return written("left_out.no_rater")
        if row.get("unscored_reason"):
            return ""
        if isinstance(value, (list, dict)):
            return written("left_out.several")
        if not row["label"]:
            return written("left_out.no_label")
        if self._several and row["label"].startswith("["):
            return ""
        long = len(row["label"]) > LONGEST_LABEL or "\n" in row["label"] or "\r" in row["label"]
        return written("left_out.free_text") if long else ""

    def units(self, named: Sequence[tuple[str, object]]) -> list[str]:
        """The names of units of which the id and the content are given: the ids, but where one id
        has several contents, each with a mark of its own, so that nobody's answers on one are taken
        for answers on another.
        """
        marks: dict[str, set[str]] = defaultdict(set)
        contents = [json.dumps(held, sort_keys=True, default=str) for _, held in named]
        hashes = [sha256(content.encode()).hexdigest()[:6] for content in contents]
        for (unit, _), mark in zip(named, hashes, strict=True):
            marks[unit].add(mark)
        if again := [unit for unit, different in marks.items() if unit and len(different) > 1]:
            first = shortened(again[0])
            self.notes.append(written("exchange.kept_apart", count=len(again), unit=first))
        return [
            f"{unit}#{mark}" if unit and len(marks[unit]) > 1 else unit
            for (unit, _), mark in zip(named, hashes, strict=True)
        ]

    def describe(self, unit: object, columns: object) -> None:
        """Store the file's description of a unit: single values become its columns."""
        if isinstance(columns, dict):
            facts = self._units.setdefault(one_line(unit), {})
            facts |= {
                one_line(name): label
                for name, value in columns.items()
                if one_line(name) not in _ROWS_TAKEN and (label := label_of(value)) is not None
            }

    def export(self, taken: str) -> Export:
        """All of it as a table. Raises NoRatingError where there is none; `taken` names what the
        file was read as.
        """
        left_out = self._without()
        if unnamed := self._left_out[written("left_out.no_rater")]:
            left_out.append(written("exchange.no_rater", count=unnamed, file=self._name))
        if not self._rows:
            raise NoRatingError(" ".join([f"{self._name} holds no rating.", taken, *left_out]))
        rows = list(self._rows.values())
        units: dict[str, dict[str, str]] = {}
        for unit, facts in self._units.items():
            for name, value in facts.items():
                units.setdefault(name, {})[unit] = value
        names = dict.fromkeys(name for row in rows for name in row)
        columns = {name: [row.get(name, "") for row in rows] for name in names}
        for name, facts in units.items():
            # Long texts define no parts.
            if all(len(fact) <= LONGEST_LABEL and "\n" not in fact for fact in facts.values()):
                columns[name] = [facts.get(row["unit_id"], "") for row in rows]
        table, notes = pd.DataFrame(columns, dtype=str), [taken, *self.notes, *left_out]
        return Export(table, notes, by_unit=True, left_out=self._left_out)


def one_line(value: object) -> str:
    """A name on one line.

    >>> one_line("ann\\n"), one_line(None)
    ('ann', '')
    """
    return " ".join((label_of(text_of(value)) or "").split())


def label_of(value: object) -> str | None:
    """A value as a label; None if it is not one. Characters that no table can hold are removed.

    >>> label_of(True), label_of("yes"), label_of(None), label_of(["yes"])
    ('true', 'yes', None, None)
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return _NO_CHARACTER.sub("\ufffd", value) if isinstance(value, str) else None


def rating_columns(metadata: object) -> Record:
    """The columns of a rating in it, and `rater_id`, `rubric` and a known `rater_kind`.

    >>> rating_columns({"rater_id": "ann", "rater_kind": "robot", "topic": "tax"})
    {'rater_id': 'ann'}
    """
    metadata = fields_in(metadata)
    names = ("rater_id", "rubric", *_CARRIED)
    claims = {name: text for name in names if (text := text_of(metadata.get(name)))}
    if (kind := text_of(metadata.get("rater_kind"))) in RATER_KINDS:
        claims["rater_kind"] = kind
    if isinstance(shares := metadata.get("probabilities"), dict):
        numbers: dict[str, float | None] = dict.fromkeys(shares)
        for name, share in shares.items():
            with suppress(ValueError):
                numbers[name] = float(text_of(share))
        claims["probabilities"] = json.dumps(numbers)
    return claims


def plain_kind(name: str) -> str:
    """Kind of rater that the name makes plain: human or model; "" where it may be either.

    >>> [plain_kind(name) for name in ("human_1", "gpt-4o", "openai:gpt-5", "ann", "gpt4_reason")]
    ['human', 'model', 'model', '', '']
    """
    human, model, about = (pattern("raters", part) for part in ("human", "model", "about"))
    if human.fullmatch(name):
        return "human"
    return "model" if model.fullmatch(name) and not about.search(name) else ""


# ---- items --------------------------------------------------------------------------------------
ROLES = ("prompt", "context", "reference", "conversation", "response")
"""Columns of texts in the order in which raters read them."""
_GIVEN = {"prompt", "context", "reference"}
RESPONSES = {*ANSWERED, "conversation", "transcript"} - {"text"}
"""Names of fields that say which one is to be rated."""
_UNKNOWN = "unknown"
_TAKEN_OF_ITEMS = re.compile(
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


class ItemRows(_Found):
    """The items found so far, one for each id. With `fields` their texts go by names that the
    tool's users gave them, else by `ROLES`.
    """

    def __init__(self, source: Source, *, fields: bool = False) -> None:
        super().__init__(source)
        self._fields = fields
        self._items: dict[str, Record] = {}

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
        facts = {}
        for name, value in fields_in(about).items():  # single values, by names of no other meaning
            heading, label = one_line(name), label_of(value)
            if heading and label is not None:
                facts[f"metadata_{heading}" if _TAKEN_OF_ITEMS.fullmatch(heading) else heading] = (
                    label
                )
        about = facts | {name: one_line(given) for name, given in (ids or {}).items()}
        names = {"subject": one_line(subject), "cluster": one_line(cluster)}
        item_id = one_line(item_id) or named
        item = {"unit": named, "texts": texts, "item_id": item_id, "about": about}
        self._items[key] = {**item, **names}

    def items(self, taken: str, cluster: str = "", show: Sequence[str] = ()) -> ItemTable:
        """Return all of it as a table. `taken` says what the file was read as, `cluster` names the
        column of items that belong together, if the file tells, `show` the fields that raters read,
        if it tells that. Raises InputError where there is no item.
        """
        notes = [taken, *self._without()]
        items = list(self._items.values())
        if not items:
            raise InputError(" ".join([f"{self._name} holds no item to rate.", *notes]))
        texts = [dict(item["texts"]) for item in items]
        if not self._fields and any("conversation" in text for text in texts):
            for text in texts:
                if "conversation" not in text:
                    reply = {"role": "assistant", "content": text.pop("response", "")}
                    text["conversation"] = [*as_messages(text.pop("prompt", "")), reply]
        # Where one prompt is messages, all are.
        for name in {name for text in texts for name in text if isinstance(text[name], list)}:
            role = "assistant" if name.partition("_")[0] in RESPONSES else "user"
            texts = [text | {name: as_messages(text.get(name, ""), role)} for text in texts]
        names = list(dict.fromkeys(name for text in texts for name in text))
        if not self._fields:
            show = names = sorted(names, key=ROLES.index)
        elif not show and "text" in names and not RESPONSES & set(names):
            show = ["text"]
        columns = {name: [cell_of(text.get(name, "")) for text in texts] for name in names}
        if all(item["item_id"] for item in items):
            columns["item_id"] = [item["item_id"] for item in items]
        if any(item["subject"] for item in items):
            unsaid = sum(not item["subject"] for item in items)
            notes += [written("exchange.no_subject", count=unsaid, name=_UNKNOWN)] * bool(unsaid)
            columns["subject"] = [item["subject"] or _UNKNOWN for item in items]
        groups = [item["cluster"] or item["item_id"] for item in items]
        together = bool(cluster) and len(set(groups)) < len(groups)
        if together:
            columns[cluster] = groups
        for name in dict.fromkeys(name for item in items for name in item["about"]):
            columns.setdefault(name, [item["about"].get(name, "") for item in items])
        index = range(1 - FIRST_ROW, len(items) + 1 - FIRST_ROW)
        table = pd.DataFrame(columns, index=index, dtype=str)
        units = tuple(item["unit"] for item in items)
        return ItemTable(table, notes, tuple(show), cluster if together else "", units)


class Reader(NamedTuple):
    """One kind of file. `recognises` tells it by its content, and never raises; `ratings` adds all
    ratings of a file, `items` all items to rate, or either gives a table of its own. Both raise
    InputError, one sentence, where they cannot be read. `has_items` tells a file with items, where
    it is not every file of the kind.
    """

    recognises: Callable[[Source], bool]
    ratings: Callable[[Rows, Source], Export | None]
    items: Callable[[ItemRows, Source], ItemTable | None]
    has_items: Callable[[Source], bool] | None = None


def has_fields(
    tool: str, kind: str = "ratings", *, in_tables: bool = False
) -> Callable[[Source], bool]:
    """Return what tells a file by the fields of its first record, or of a typed table's columns."""
    wanted = {*TOOLS[tool][kind]}
    return lambda source: wanted <= {*((in_tables and source.columns) or source.first)}


def users_fields(fields: object) -> dict[str, Text]:
    """The fields of a task that a tool's user named, as texts or messages by these names."""
    texts: dict[str, Text] = {}
    for name, value in fields_in(fields).items():
        field_name = one_line(name)
        if field_name and field_name not in ("unit_id", "cluster_id", "side", "item_id"):
            messages = messages_in(value) if isinstance(value, list) else None
            texts[field_name] = messages if messages else cell_of(value)
    return texts
