"""Rows collected by a reader: one for each rating, and what was left out, with the reason. What
evenhand's own writers store in other tools' files is read back, and plain names tell people from
models.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.readers.source import Record, Source, text_of
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.ratings import (
    RATER_KINDS,
    RATING_KEY,
    RATINGS_COLUMNS,
    is_later,
    stored_instant,
)
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

LONGEST_LABEL = 200
"""Characters; a longer answer is a text, not a label."""
_NO_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
"""Characters that no table can hold, or that control a terminal."""
_TAKEN = (*RATINGS_COLUMNS, "item_id", "subject", "side", "cluster_id", "")
"""Names of columns with a meaning here; in a file they may mean something else."""
_CARRIED = (
    "p_positive", "prob_method", "order", "draw", "seconds", "unscored_reason", "rubric_hash",
)  # fmt: skip
_HUMAN = re.compile(r"(human|annotator|expert|crowd ?worker|person)s?([ _.-]?([a-z]|\d+))?", re.I)
_MODEL = re.compile(
    r"([a-z-]+[:/])?(gpt-?\d|chatgpt|claude|gemini|llama|mistral|mixtral|qwen|deepseek|gemma|phi-?\d|"
    r"command-r|grok|o[134](-|$)|llm|model[ _-]?(\d|$))[\w.:/@ -]*",
    re.I,
)
_ABOUT = re.compile(r"reason|explan|comment|note|rationale|confiden|time|cost|prompt|answer", re.I)
"""Names of columns about a rater's label, such as gpt-4o_reason."""


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


class Rows:
    """The ratings found so far, one for each unit, rubric, rater, order and draw."""

    def __init__(self, source: Source) -> None:
        self._name = source.name
        self._several = source.several
        self._rows: dict[tuple[str, ...], dict[str, str]] = {}
        self._times: dict[tuple[str, ...], str] = {}
        self._units: dict[str, dict[str, str]] = {}
        self._left_out: Counter[str] = Counter()
        self._notes: list[str] = []

    def add(
        self,
        unit: object,
        rater: object,
        kind: str,
        value: object,
        rubric: str = "",
        **more: object,
    ) -> None:
        """A rating. What is no label, or names no unit or no rater, is left out and counted; of two
        by one rater on one unit and rubric the later counts. Several labels are a JSON list, where
        an answer may be one. Raises InputError for two different answers of which neither is known
        to be the later.
        """
        given = {"unit_id": unit, "rubric": rubric, "rater_id": rater, "rater_kind": kind, **more}
        row = {name: one_line(each) for name, each in given.items()}
        labels = _labels_in(value) if self._several else None
        if labels is not None:
            value = ""
        row["label"] = json.dumps(labels) if labels is not None else label_of(value) or ""
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
        """Return True if an answer takes the place of the one before; counts the one that does not
        count.
        """
        before = self._rows[key]
        later = is_later(time, self._times[key])
        if row["label"] == before["label"] and later is None:
            self.leave_out(written("left_out.repeated"))
            return False
        if later is None and row["label"] and before["label"]:
            raise InputError(
                written(
                    "exchange.two_answers",
                    file=self._name,
                    rater=shortened(row["rater_id"]),
                    unit=shortened(row["unit_id"]),
                    of=f" ({shortened(row['rubric'])})" if row["rubric"] else "",
                    one=shortened(before["label"]),
                    other=shortened(row["label"]),
                )
            )
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

    def leave_out(self, reason: str, count: int = 1) -> None:
        """Count a record that is not a rating, by the reason in words."""
        self._left_out[reason] += count

    def note(self, text: str) -> None:
        """Keep a sentence on how the file was read."""
        self._notes.append(text)

    def units(self, named: Sequence[tuple[str, object]]) -> list[str]:
        """The names of units of which the id and the content are given: the ids, but where one id
        has several contents, each with a mark of its own, so that nobody's answers on one are taken
        for answers on another.
        """
        marks: dict[str, set[str]] = defaultdict(set)
        own = [_mark(content) for _, content in named]
        for (unit, _), mark in zip(named, own, strict=True):
            marks[unit].add(mark)
        if again := [unit for unit, found in marks.items() if unit and len(found) > 1]:
            self.note(written("exchange.kept_apart", count=len(again), unit=shortened(again[0])))
        return [
            f"{unit}#{mark}" if unit and len(marks[unit]) > 1 else unit
            for (unit, _), mark in zip(named, own, strict=True)
        ]

    def describe(self, unit: object, columns: object) -> None:
        """Store the file's description of a unit: single values become its columns."""
        if isinstance(columns, dict):
            own = self._units.setdefault(one_line(unit), {})
            own |= {
                one_line(name): label
                for name, value in columns.items()
                if one_line(name) not in _TAKEN and (label := label_of(value)) is not None
            }

    def export(self, taken: str) -> Export:
        """All of it as a table. Raises NoRatingError where there is none; `taken` names what the
        file was read as.
        """
        import pandas as pd

        reasons = ", ".join(f"{reason} ({count:,})" for reason, count in self._left_out.items())
        left_out = [written("exchange.left_out", reasons=reasons)] if reasons else []
        if unnamed := self._left_out[written("left_out.no_rater")]:
            left_out.append(written("exchange.no_rater", count=unnamed, file=self._name))
        if not self._rows:
            raise NoRatingError(" ".join([f"{self._name} holds no rating.", taken, *left_out]))
        rows = list(self._rows.values())
        units = self._units_columns()
        names = [*dict.fromkeys(name for row in rows for name in row), *units]
        table = pd.DataFrame(
            {
                name: [
                    row.get(name, "") if name not in units else units[name].get(row["unit_id"], "")
                    for row in rows
                ]
                for name in names
            },
            dtype=str,
        )
        return Export(
            table, [taken, *self._notes, *left_out], by_unit=True, left_out=self._left_out
        )

    def _units_columns(self) -> dict[str, dict[str, str]]:
        """Return the units' descriptions by column, without columns of long texts, which cannot
        define parts of the sample.
        """
        columns: dict[str, dict[str, str]] = {}
        for unit, own in self._units.items():
            for name, value in own.items():
                columns.setdefault(name, {})[unit] = value
        return {
            name: values
            for name, values in columns.items()
            if all(len(each) <= LONGEST_LABEL and "\n" not in each for each in values.values())
        }


def _mark(content: object) -> str:
    """Six characters that differ where contents do."""
    return sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:6]


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


def _labels_in(value: object) -> list[str] | None:
    """The labels of a list of them, each once; None where a value is none."""
    if not isinstance(value, list):
        return None
    labels = [label_of(text_of(each)) for each in value]
    return list(dict.fromkeys(filter(None, labels))) if all(labels) else None


def claimed(metadata: object) -> Record:
    """The columns of a rating in it, and `rater_id`, `rubric` and a known `rater_kind`.

    >>> claimed({"rater_id": "ann", "rater_kind": "robot", "topic": "tax"})
    {'rater_id': 'ann'}
    """
    if not isinstance(metadata, dict):
        return {}
    names = ("rater_id", "rubric", *_CARRIED)
    found = {name: text for name in names if (text := text_of(metadata.get(name)))}
    if (kind := text_of(metadata.get("rater_kind"))) in RATER_KINDS:
        found["rater_kind"] = kind
    if isinstance(shares := metadata.get("probabilities"), dict):
        found["probabilities"] = json.dumps({name: _number(each) for name, each in shares.items()})
    return found


def _number(share: object) -> float | None:
    try:
        return float(text_of(share))
    except ValueError:
        return None


def plain_kind(name: str) -> str:
    """Kind of rater that the name makes plain: human or model; "" where it may be either.

    >>> [plain_kind(name) for name in ("human_1", "gpt-4o", "openai:gpt-5", "ann", "gpt4_reason")]
    ['human', 'model', 'model', '', '']
    """
    if _HUMAN.fullmatch(name):
        return "human"
    return "model" if _MODEL.fullmatch(name) and not _ABOUT.search(name) else ""
