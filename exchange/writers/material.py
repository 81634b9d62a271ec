"""Input and output of the writers, and helpers that several of them need."""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

TEXTS = {
    "prompt": "Prompt", "response": "Response", "prompt_a": "Prompt A", "response_a": "Response A",
    "prompt_b": "Prompt B", "response_b": "Response B",
}  # fmt: skip
"""Columns of units with the rated texts, and their headings where they are shown."""
_COMBINED = ("draw", "order")
_FACTS = ("p_positive", "prob_method", "draw", "order", "seconds", "rubric_hash")
_NAMESPACE = uuid.UUID("d1c0b6f0-6f0c-4c39-9f2e-3d2f6d3f6a51")


@dataclass(frozen=True)
class Scale:
    """A rubric as other tools show it: its title, and the name of each label in their order."""

    title: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Material:
    """Ratings on their way to another tool.

    `ratings` is the table of this name, validated. `combined` has its columns too, but one row for
    each rater, unit and rubric: repeated draws and both orders as the analysis takes them. `units`
    has a row for each `unit_id`, the `TEXTS` among its columns where they are known, and perhaps
    the ids by which the tool knows the unit, such as `trace_id` or `item_id`. `scales` are by
    rubric. `notes` hold the assumptions made about a file.
    """

    name: str
    ratings: pd.DataFrame
    combined: pd.DataFrame
    units: pd.DataFrame
    scales: Mapping[str, Scale]
    synthetic: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Made:
    """Output of a writer: `files` by name, `count` of the records that the tool will see, and
    sentences on what could not be carried.

    The files of a format that is a folder have their names in it. Elsewhere "" is the file asked
    for, and any other name is the end of the name of a file next to it.
    """

    files: Mapping[str, bytes]
    count: int
    left_out: list[str]


def rubric_name(rubric: str) -> str:
    """Return the name of a question; tools want a name where a ratings file needs none."""
    return rubric or "label"


def with_label(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows that have a label, and the number without."""
    has = rows["label"] != ""
    left = int((~has).sum())
    return rows[has], [written("writers.unscored", count=left)] if left else []


def grades_only(rows: pd.DataFrame, tool: str) -> tuple[pd.DataFrame, list[str]]:
    """The rows of models, for a tool that keeps human labels under its own accounts.

    Raises InputError where there are none.
    """
    models = rows["rater_kind"] == "model"
    if not models.any():
        raise InputError(f"{tool} is given what models said, and there are no grades yet")
    left = int((~models).sum())
    return rows[models], [written("writers.people", count=left, tool=tool)] if left else []


def not_carried(material: Material, tool: str, carried: Collection[str]) -> list[str]:
    """A sentence on the filled columns of ratings for which the tool has no place."""
    known = {"unit_id", "rubric", "rater_id", "rater_kind", "label", *_COMBINED, *carried}
    rows = material.ratings
    lost = [
        name
        for name in rows
        if name not in known and (rows[name].notna() & (rows[name] != "")).any()
    ]
    columns = ", ".join(map(str, lost))
    return [written("writers.columns", tool=tool, columns=columns)] if lost else []


def combined(material: Material) -> list[str]:
    """A sentence for a tool that holds one label for each rater and unit, if there were more."""
    rows, count = len(material.ratings), len(material.combined)
    return [written("writers.combined", rows=rows, count=count)] if rows > count else []


def facts_of(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The filled cells among these of a row of ratings."""
    return {name: row[name] for name in names if row[name] == row[name] and row[name] != ""}


def tool_id(row: Mapping[Any, Any], unit: Mapping[str, Any], column: str) -> str:
    """Return the id by which a tool knows what was rated: its column of the units, the item's own
    id, or the unit's.

    >>> tool_id({"unit_id": "p1|m|a"}, {"item_id": "tr-1"}, "trace_id")
    'tr-1'
    """
    return str(unit.get(column, unit.get("item_id", row["unit_id"])))


def about_rating(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return who gave a rating, and the facts about it that a tool keeps as metadata."""
    facts = facts_of(row, ("rater_id", "rater_kind", *_FACTS))
    if row["probabilities"]:
        facts["probabilities"] = json.loads(row["probabilities"])
    return facts


def always_same_id(row: Mapping[Any, Any]) -> str:
    """Return an id that a rating has however often it is written."""
    key = [row[name] for name in ("unit_id", "rubric", "rater_id", "order", "draw")]
    return str(uuid.uuid5(_NAMESPACE, json.dumps(key)))


def lines_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return JSON lines."""
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records).encode()


def unit_rows(units: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Map each unit id to its filled cells, as texts and numbers that JSON knows."""
    import pandas as pd

    return {
        str(row["unit_id"]): {
            str(name): cell.item() if hasattr(cell, "item") else cell
            for name, cell in row.items()
            if not pd.isna(cell) and cell != ""
        }
        for row in units.to_dict("records")
    }


def unit_text(cells: Mapping[str, Any]) -> str:
    """Return the rated material as one text; the unit's id where nothing else is known.

    >>> unit_text({"unit_id": "p1", "prompt": "Why?", "response": "So."})
    'Prompt\\n\\nWhy?\\n\\nResponse\\n\\nSo.'
    """
    # A response unit also carries the prompts of its pair.
    ours = [
        name for name in TEXTS if name in cells and ("response" not in cells or "_" not in name)
    ]
    if not any(name.startswith("response") for name in ours):
        return str(cells["unit_id"])
    return "\n\n".join(f"{TEXTS[name]}\n\n{cells[name]}" for name in ours)


def moment(created_at: str) -> str:
    """A time as other tools read it, in UTC; now, where it is not known or cannot be read.

    >>> moment("2026-11-22T13:24:39.123456+01:00")
    '2026-11-22T12:24:39.123Z'
    """
    try:
        at = datetime.fromisoformat(created_at)
    except ValueError:
        at = datetime.now(UTC)
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    how = "milliseconds" if at.microsecond >= 1000 else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=how) + "Z"
