"""Disagreements: among people, with an adjudicator's decision on each; between a grader and people,
sorted by who is wrong; and people's flags, with the lead's answers. All append-only.

A decision is a rating of the kind `adjudicator`: appended like any label, never counted as a
person's, and compared with everyone by the analysis.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.desk.claims import SessionDesign, oversight
from evenhand.study.lead.progress import accepted_text, people_labels
from evenhand.study.prompts.units import Key, parse_unit_id
from evenhand.study.store.database import EventLog, append, append_once
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import (
    flag_events,
    is_latest,
    labels,
    remarks,
    sorted_disagreements,
)
from evenhand.study.store.store import ANSWERED, WITHDRAWN, Store, marks_on, remarks_table
from evenhand.study.tables.columns import require_columns
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.study.tables.ratings import RATER_CODE, Mark
from evenhand.study.workspace import Study
from evenhand.texts import written

DECISION_FILE_COLUMNS = ("unit_id", "rubric", "label", "reason")
DECIDED_COLUMNS = ("unit_id", "rubric", "label", "reason", "done_by", "created_at")
_PREFIX = "adjudicator:"


@dataclass(frozen=True)
class QueuedUnit:
    """A unit that people do not agree on. `labels` bear no names, and their order says nothing."""

    unit_id: str
    rubric: str
    labels: tuple[str, ...]
    reasons: tuple[str, ...]
    """Remarks that raters gave with their labels, in an order of its own."""

    @property
    def key(self) -> Key:
        return (self.unit_id, self.rubric)


def adjudication_queue(study: Study) -> list[QueuedUnit]:
    """Return the units to be adjudicated, on which no label has a majority, in the order of
    labelling; decided units have left the queue. Labels of excluded raters, hidden repeats and
    labels under an edited text do not count.
    """
    given, decided = _given(study)
    open_yet = {
        key: labels
        for key, labels in given.items()
        if key not in decided and not study.rubrics[key[1]].kind.have_majority([*labels.values()])
    }
    place = {unit: at for at, unit in enumerate(study.units()["unit_id"])}
    queued = _queued(study, open_yet)
    return sorted(queued, key=lambda item: (place.get(item.unit_id, len(place)), item.rubric))


def queue_length(study: Study) -> int:
    """Count the units without a majority that wait for a decision."""
    return len(adjudication_queue(study))


def open_next(
    study: Study, name: str, passed_over: Collection[Key] = (), at: Key | None = None
) -> tuple[QueuedUnit | None, int]:
    """The unit of the queue that the adjudicator `name` sees next, and the length of the queue.
    Each has an order of their own, so that two at work hardly meet. Units passed over come again
    after the others; the unit `at` comes first, as long as it is in the queue.
    """

    def place(unit: QueuedUnit) -> tuple[bool, bool, str]:
        return unit.key != at, unit.key in passed_over, _digest(name, *unit.key)

    queue = adjudication_queue(study)
    return min(queue, key=place, default=None), len(queue)


def reopen(study: Study, key: Key) -> QueuedUnit:
    """A unit that was decided, so that the decision can be revised. Raises InputError where
    people's labels are gone from it.
    """
    if (given := _given(study)[0].get(key)) is None:
        raise InputError("annotators have no labels on this item that count")
    return _queued(study, {key: given})[0]


def last_label(store: Store) -> int:
    """Return the number of the latest label: later ones have not been seen yet."""
    return store.values(sa.select(sa.func.max(labels.c.event_id)))[0] or 0


def past_decisions(study: Study, name: str = "") -> pd.DataFrame:
    """Return `DECIDED_COLUMNS` of the decisions in force, by one adjudicator or by all, latest
    first. `done_by` is the adjudicator's name, `reason` the remark written with the decision.
    """
    decisions = sa.select(
        *(labels.c[column] for column in DECIDED_COLUMNS[:3]),
        sa.func.coalesce(remarks.c.text, "").label("reason"),
        labels.c.rater_id.label("done_by"),
        labels.c.created_at,
    ).join(remarks, remarks.c.submit_id == labels.c.submit_id, isouter=True)
    by_name = labels.c.rater_id == adjudicator_id(name) if name else sa.true()
    wanted = labels.c.rater_kind == "adjudicator", by_name, accepted_text(study, labels)
    table = study.store.table(decisions.where(*wanted).order_by(labels.c.event_id.desc()))
    table = table.assign(done_by=table["done_by"].str.removeprefix(_PREFIX))
    return table.drop_duplicates(["unit_id", "rubric", "done_by"]).reset_index(drop=True)


def queue_table(queue: Sequence[QueuedUnit]) -> pd.DataFrame:
    """The queue as a table to be filled in: `unit_id, rubric, labels, label, reason`."""
    rows = [(item.unit_id, item.rubric, " ".join(item.labels), "", "") for item in queue]
    return pd.DataFrame(rows, columns=["unit_id", "rubric", "labels", "label", "reason"])


def adjudicator_id(name: str) -> str:
    """Return the rater id of an adjudicator. No rater's code holds a colon, so it is never a
    rater's.

    >>> adjudicator_id("chair")
    'adjudicator:chair'
    """
    return f"{_PREFIX}{name}"


def decide(
    study: Study,
    name: str,
    unit_id: str,
    rubric: str,
    label: str,
    reason: str,
    seen: int | None = None,
) -> str:
    """Append the decision of the adjudicator `name`; it is on disk when this returns.

    Another decision on the same unit is added, and the latest counts. Return a sentence where
    another adjudicator has decided the unit since the label number `seen`, else "". Raises
    InputError where the unit or the label is none of the rubric's, or the reason is empty.
    """
    known = study.units_by_kind("all")
    decision = _checked(study, known, (unit_id, rubric, label, reason))
    others = sa.select(labels).where(
        *(labels.c.unit_id == unit_id, labels.c.rubric == rubric, labels.c.event_id > (seen or 0)),
        *(labels.c.rater_kind == "adjudicator", labels.c.rater_id != adjudicator_id(name)),
    )
    with study.store.write() as connection:
        before = connection.execute(others.order_by(labels.c.event_id.desc())).first()
        _append(connection, name, decision)
    if before is None or seen is None:
        return ""
    who = before.rater_id.removeprefix(_PREFIX)
    return written("lead.decided_meanwhile", who=who, label=before.label)


def import_decisions(study: Study, name: str, table: pd.DataFrame, source: str) -> tuple[int, int]:
    """Append decisions from a filled-in queue, all or none; (decided, rows left without a label).
    Raises InputError naming the first row that does not hold together, and where the name is none.
    """
    if not RATER_CODE.fullmatch(name):
        raise InputError(
            f"{name!r} is no adjudicator's name: 1 to 64 letters, digits, dots, hyphens or "
            "underscores"
        )
    hint = "; a queue is written by `evenhand adjudicate DIR --out FILE`"
    require_columns(table, DECISION_FILE_COLUMNS, source, hint)
    known = {kind: set(ids) for kind, ids in study.units_by_kind("all").items()}
    rows = list(zip(table.index + FIRST_ROW, table.to_dict("records"), strict=True))
    filled: dict[Key, Mapping[str, Any]] = {}
    for number, row in rows:
        if row["label"]:
            try:
                cells = [row[column] for column in DECISION_FILE_COLUMNS]
                decision = _checked(study, known, cells)
                key = (decision["unit_id"], decision["rubric"])
                if key in filled:
                    raise InputError("a row further up decides the same item; keep one of the two")
            except InputError as error:
                raise InputError(f"{source}, row {number}: {error}") from None
            filled[key] = decision
    with study.store.write() as connection:
        for checked in filled.values():
            _append(connection, name, checked)
    return len(filled), len(rows) - len(filled)


def _checked(
    study: Study, known: Mapping[str, Collection[str]], cells: Sequence[str]
) -> dict[str, Any]:
    """The decision in `DECISION_FILE_COLUMNS`, as stored; `known` are the unit ids by kind."""
    unit_id, rubric_name, label, reason = cells
    if (rubric := study.rubrics.get(rubric_name)) is None:
        raise InputError(f"the study has no rubric {rubric_name!r}")
    if (key := rubric.kind.label_of(label)) is None:
        raise InputError(f"label {label!r} is {rubric.kind.none_of}")
    if not reason.strip():
        raise InputError("a decision needs a reason")
    if unit_id not in known[rubric.unit]:
        raise InputError(f"the study has no {rubric.unit} item {unit_id!r}")
    about = {"unit_id": unit_id, "rubric": rubric.name, "rubric_hash": rubric.hash}
    return about | {"label": key, "reason": reason.strip()}


def _append(connection: sa.Connection, name: str, decision: Mapping[str, Any]) -> None:
    common = {column: decision[column] for column in ("unit_id", "rubric", "rubric_hash")}
    common |= {"submit_id": f"decision-{uuid.uuid4().hex}", "created_at": utc_now()}
    common |= {"rater_id": adjudicator_id(name), "order": "", "draw": 0}
    label = common | {"rater_kind": "adjudicator", "label": decision["label"]}
    append(connection, labels, label)
    remark = common | {"kind": "answer", "text": decision["reason"]}
    append_once(connection, remarks, "submit_id", remark)


def _given(study: Study) -> tuple[dict[Key, dict[str, str]], dict[Key, str]]:
    """Return the labels of raters who count, by unit and rubric, then rater; and the latest
    adjudicator's decision on each unit that is decided.
    """
    given: dict[Key, dict[str, str]] = {}
    decided = {}
    excluded = oversight(study.store).exclusions
    for row in people_labels(study).to_dict("records"):
        key = (row["unit_id"], row["rubric"])
        if row["rater_kind"] == "adjudicator":
            decided[key] = row["label"]
        elif row["label"] and row["draw"] == 0 and row["rater_id"] not in excluded:
            given.setdefault(key, {})[row["rater_id"]] = row["label"]
    return given, decided


FINAL_COLUMNS = ("item_id", "rubric", "final_label", "votes", "decided_by", "n_labels")


def final_labels(study: Study) -> pd.DataFrame:
    """Return `FINAL_COLUMNS`, `labels` and `agreement` of every item under every rubric that people
    label: those of the sample in its order, then others with labels.

    `labels` are those that count by rater, `votes` the raters by label, `agreement` the share of
    the commonest, NaN without labels. `final_label` is the latest
    decision of an adjudicator, else the commonest label (as in the report), of numbers the median,
    the lower one of two; empty for a tie or without labels. A set of options is one label.
    """
    given, decided = _given(study)
    rows = []
    for key in dict.fromkeys([*SessionDesign(study).questions, *given, *decided]):
        if (rubric := study.rubrics.get(key[1])) is None:  # taken out of the study since
            continue
        labels = given.get(key, {})
        votes = Counter(labels.values())
        (label, most), (_, second) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
        by = "single" if most == len(labels) == 1 else "majority" if most else ""
        if most and not rubric.kind.listed:  # a number
            label = sorted(labels.values(), key=float)[(len(labels) - 1) // 2]
        elif most and second == most:
            label, by = "", "tie"
        if key in decided:
            label, by = decided[key], "adjudicator"
        agreement = most / len(labels) if labels else math.nan
        rows.append((*key, label, dict(votes), by, len(labels), labels, agreement))
    return pd.DataFrame(rows, columns=[*FINAL_COLUMNS, "labels", "agreement"])


def grader_labels(study: Study) -> dict[Key, dict[str, str]]:
    """Return graders' first labels by item and rubric, then grader."""
    grades = study.ratings()
    grades = grades[(grades["rater_kind"] == "model") & (grades["label"] != "")]
    grades = grades.drop_duplicates(["unit_id", "rubric", "rater_id"])
    by_item: dict[Key, dict[str, str]] = {}
    columns = ["unit_id", "rubric", "rater_id", "label"]
    for unit, rubric, rater, label in grades[columns].itertuples(index=False):
        by_item.setdefault((unit, rubric), {})[rater] = label
    return by_item


def _queued(study: Study, given: Mapping[Key, Mapping[str, str]]) -> list[QueuedUnit]:
    """Return these units with each person's latest remark on their label."""
    remarked = remarks_table(study.store)
    remarked = remarked[
        (remarked["kind"] == "answer")
        & (remarked["text"] != "")
        & ~remarked["rater_id"].isin(set(oversight(study.store).exclusions))
        & ~remarked["rater_id"].str.startswith(_PREFIX)
    ].drop_duplicates(["unit_id", "rubric", "rater_id"], keep="last")
    reasons: dict[Key, list[str]] = {}
    for unit, rubric, text in remarked[["unit_id", "rubric", "text"]].itertuples(index=False):
        reasons.setdefault((unit, rubric), []).append(text)
    return [
        QueuedUnit(*key, _shuffled([*labels.values()], *key), _shuffled(reasons.get(key, []), *key))
        for key, labels in given.items()
    ]


def counted_marks(study: Study, key: Key) -> list[tuple[str, Mark]]:
    """The words of a unit that people marked whose labels count, each with the rater's id."""
    unit, rubric = key
    excluded = oversight(study.store).exclusions
    marks = marks_on(study.store, {(rubric, unit)}).get((rubric, unit), [])
    return [(rater, mark) for rater, mark in marks if rater not in excluded]


def _shuffled(texts: Sequence[str], *key: str) -> tuple[str, ...]:
    """Shuffle texts in a fixed order that hides their authors."""
    places = sorted(range(len(texts)), key=lambda at: _digest(*key, texts[at], str(at)))
    return tuple(texts[at] for at in places)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


# Disagreements between a grader and people, sorted by who is wrong: the grader, people, or the
# rubric's text, which can be read in two ways. The latest judgment on a unit and grader counts, and
# an empty one takes the former back.

Kind = Literal["grader_wrong", "people_wrong", "rubric_unclear"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class SortedDisagreement:
    """A judgment by the lead `done_by` on who is wrong where a grader's label differs from
    people's. `kind` is one of `KINDS`, or empty where a former judgment is taken back.
    """

    rubric: str
    rubric_hash: str
    unit_id: str
    grader: str
    kind: Kind | Literal[""]
    note: str = ""
    done_by: str = ""
    created_at: str = field(default_factory=utc_now)


_LOG = EventLog(sorted_disagreements, SortedDisagreement)


def sort_disagreement(
    study: Study,
    by: str,
    *,
    rubric: str,
    unit_id: str,
    grader: str,
    kind: Kind | Literal[""],
    note: str = "",
) -> None:
    """Append the judgment of the lead `by` on one disagreement; it is on disk when this returns. An
    empty `kind` takes the former one back. Raises InputError where the study has no such rubric or
    unit, or the kind is unknown.
    """
    if (known := study.rubrics.get(rubric)) is None:
        raise InputError(f"the study has no rubric {rubric!r}")
    if kind not in ("", *KINDS):
        raise InputError(f"{kind!r} is none of {', '.join(KINDS)}")
    if unit_id not in study.units_by_kind("all")[known.unit]:
        raise InputError(f"the study has no {known.unit} item {unit_id!r}")
    about = {"rubric": rubric, "rubric_hash": known.hash, "unit_id": unit_id, "grader": grader}
    judgment = SortedDisagreement(**about, kind=kind, note=note.strip(), done_by=by)
    _LOG.append(study.store, [judgment])


def sorted_so_far(study: Study) -> list[SortedDisagreement]:
    """Return the judgments in force, in their order; without those under an edited rubric text."""
    accepted = study.accepted_hashes()
    key = ("rubric", "unit_id", "grader", "rubric_hash")
    latest = _LOG.all(study.store, is_latest(sorted_disagreements, *key))
    counted = (case for case in latest if case.rubric_hash in accepted.get(case.rubric, ()))
    current = {(case.rubric, case.unit_id, case.grader): case for case in counted}
    return [decision for decision in current.values() if decision.kind]


def held_out_units(study: Study, rubric: str) -> list[str]:
    """Return the units of the sample on which a new text of a rubric may be tried: those of pairs
    without any sorted disagreement. A new text may have been written with the others in view.
    """
    ever = _LOG.all(study.store, sorted_disagreements.c.rubric == rubric)
    read = {parse_unit_id(decision.unit_id)[0] for decision in ever}
    units = study.rubric_units(study.rubrics[rubric])
    return [unit for unit in units if parse_unit_id(unit)[0] not in read]


# People's flags on units, and the lead's answer to each, kept with its author. A flag and its
# answers are events. The latest says whether a flag is open; nothing is overwritten.

CLOSED, REOPENED = "closed", "reopened"


@dataclass(frozen=True)
class RaisedFlag:
    """A rater's flag on a unit, and the lead's note. `number` names it in `settle_flag`."""

    number: int
    unit_id: str
    rubric: str
    rater_id: str
    reason: str
    """One of `study.desk.desk.FLAG_REASONS`."""
    text: str
    created_at: str
    is_open: bool = True
    note: str = ""
    """What was done about it, for the leads."""
    done_by: str = ""
    done_at: str = ""


def raised_flags(study: Study) -> list[RaisedFlag]:
    """Return the open flags, oldest first, then those closed, latest first: by a lead, or withdrawn
    by who raised them, as was possible before 0.3.0.
    """
    latest = sa.select(flag_events).where(is_latest(flag_events, "flag_id"))
    in_order = sa.select(remarks).where(remarks.c.kind == "flag").order_by(remarks.c.event_id)
    with study.store.read() as connection:
        settled = {row.flag_id: row for row in connection.execute(latest)}
        rows = connection.execute(in_order).all()
    flags = []
    for row in rows:
        raised = (row.event_id, row.unit_id, row.rubric, row.rater_id, row.reason, row.text)
        done = settled.get(row.event_id)
        is_open = done is None or done.kind == REOPENED
        closing = (done.text, done.done_by, done.created_at) if done else ()
        flags.append(RaisedFlag(*raised, row.created_at, is_open, *closing))
    closed = [flag for flag in flags if not flag.is_open]
    closed.sort(key=lambda flag: flag.done_at, reverse=True)
    return [flag for flag in flags if flag.is_open] + closed


def settle_flag(study: Study, number: int, note: str, done_by: str, answer: str = "") -> None:
    """Close a flag with a note for the leads on what was done about it, and an `answer` that is
    shown to whoever raised it. Raises InputError where the note is empty or there is no such open
    flag.
    """
    if not note.strip():
        raise InputError("say what was done about the flag")
    is_flag = remarks.c.event_id == number, remarks.c.kind == "flag"
    last = sa.select(flag_events.c.kind).where(flag_events.c.flag_id == number)
    with study.store.write() as connection:
        if not connection.execute(sa.select(remarks.c.event_id).where(*is_flag)).first():
            raise InputError(f"there is no flag {number}")
        kinds = list(connection.execute(last.order_by(flag_events.c.event_id)).scalars())
        if kinds and kinds[-1] in (CLOSED, WITHDRAWN):
            raise InputError("this flag is closed already; look at the list again")
        events = [(ANSWERED, answer.strip())] if answer.strip() else []
        for kind, text in (*events, (CLOSED, note.strip())):
            row = {"flag_id": number, "kind": kind, "text": text, "done_by": done_by}
            append(connection, flag_events, row)
