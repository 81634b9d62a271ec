"""Three logs that only grow: an adjudicator's decisions on items on which annotators disagree; the
lead's judgments on disagreements between a grader and annotators; flags, and answers to them. In
tables and code an item is a unit, and a question (`Key`) is a unit under a rubric. In each log the
latest row counts, of those on the same question, grader or flag.

A decision is a rating of the kind `adjudicator`: appended like any label, never counted as an
annotator's, and compared with every rater by the analysis.
"""

from __future__ import annotations

import hashlib
import math
import uuid
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics import Rubric
from evenhand.study.desk.claims import SessionDesign, oversight
from evenhand.study.lead.progress import people_labels
from evenhand.study.prompts.units import Key, parse_unit_id
from evenhand.study.store import schema
from evenhand.study.store.database import EventLog, append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import flag_events, labels, remarks
from evenhand.study.store.store import ANSWERED, WITHDRAWN, Store, marks_on, remarks_table
from evenhand.study.tables.columns import require_columns
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.study.tables.ratings import RATER_CODE, Mark
from evenhand.study.workspace import Study
from evenhand.texts import written

DECISION_FILE_COLUMNS = ("unit_id", "rubric", "label", "reason")
DECIDED_COLUMNS = ("unit_id", "rubric", "label", "reason", "done_by", "created_at")
_PREFIX = "adjudicator:"  # of an adjudicator's rater id
_IMPORTED = "decision-import-"  # beginning of the submit ids of decisions from a file


@dataclass(frozen=True)
class QueuedUnit:
    """A unit without a majority label, under one rubric; `labels` are shuffled, without names."""

    unit_id: str
    rubric: str
    labels: tuple[str, ...]
    reasons: tuple[str, ...]  # remarks that came with the labels, shuffled independently

    @property
    def key(self) -> Key:
        """The question: unit id and rubric."""
        return (self.unit_id, self.rubric)


def adjudication_queue(study: Study) -> list[QueuedUnit]:
    """Return the units without a majority label and without a decision, in the order of labelling.
    Labels of excluded raters, hidden repeats and labels under an edited text do not count.
    """
    labels_by_key, decisions = _counted_labels(study)
    undecided = {}
    for (unit_id, rubric), by_rater in labels_by_key.items():
        kind = study.rubrics[rubric].kind
        if (unit_id, rubric) not in decisions and not kind.have_majority([*by_rater.values()]):
            undecided[unit_id, rubric] = by_rater
    positions = {unit: position for position, unit in enumerate(study.units()["unit_id"])}
    queue = _queue_units(study, undecided)
    last = len(positions)
    return sorted(queue, key=lambda unit: (positions.get(unit.unit_id, last), unit.rubric))


def open_next(
    study: Study, name: str, skipped: Collection[Key] = (), wanted: Key | None = None
) -> tuple[QueuedUnit | None, int]:
    """Return the queue's unit that the adjudicator `name` sees next, and the queue's length. Each
    has another order, so two rarely open one unit. `wanted` comes first, `skipped` units last.
    """

    def position(unit: QueuedUnit) -> tuple[bool, bool, str]:
        return unit.key != wanted, unit.key in skipped, _digest(name, *unit.key)  # False is first

    queue = adjudication_queue(study)
    return min(queue, key=position, default=None), len(queue)


def reopen(study: Study, key: Key) -> QueuedUnit:
    """Return a decided unit to be decided again. Raises InputError if no label on it counts."""
    labels_by_key, _ = _counted_labels(study)
    if (labels_of_unit := labels_by_key.get(key)) is None:
        raise InputError("annotators have no labels on this item that count")
    return _queue_units(study, {key: labels_of_unit})[0]


def last_label_id(store: Store) -> int:
    """Return the event id of the latest label, 0 before any; see `decide`."""
    return store.values(sa.select(sa.func.max(labels.c.event_id)))[0] or 0


def past_decisions(study: Study, name: str = "", prefix: str = "") -> pd.DataFrame:
    """Return `DECIDED_COLUMNS` of the last decision on a unit, by one adjudicator or each, latest
    first, among those whose submit ids have this prefix. `done_by` is the adjudicator's name,
    `reason` the remark written with the decision.
    """
    decisions = sa.select(
        *(labels.c[column] for column in ("unit_id", "rubric", "label")),
        sa.func.coalesce(remarks.c.text, "").label("reason"),
        labels.c.rater_id.label("done_by"),
        labels.c.created_at,
    ).join(remarks, remarks.c.submit_id == labels.c.submit_id, isouter=True)
    by_name = labels.c.rater_id == adjudicator_id(name) if name else sa.true()
    decisions = decisions.where(labels.c.submit_id.startswith(prefix))
    is_accepted = schema.accepted_text(labels, study.accepted_hashes())
    conditions = labels.c.rater_kind == "adjudicator", by_name, is_accepted
    table = study.store.table(decisions.where(*conditions).order_by(labels.c.event_id.desc()))
    table = table.assign(done_by=table["done_by"].str.removeprefix(_PREFIX))
    return table.drop_duplicates(["unit_id", "rubric", "done_by"]).reset_index(drop=True)


def queue_table(queue: Sequence[QueuedUnit]) -> pd.DataFrame:
    """Return the queue as a table to be filled in: `unit_id, rubric, labels, label, reason`."""
    rows = [(item.unit_id, item.rubric, " ".join(item.labels), "", "") for item in queue]
    return pd.DataFrame(rows, columns=["unit_id", "rubric", "labels", "label", "reason"])


def adjudicator_id(name: str) -> str:
    """Return the rater id of an adjudicator; no annotator's code has a colon.

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
    since: int | None = None,
) -> str:
    """Append the decision of the adjudicator `name`; it is on disk on return. The latest decision
    on a unit counts. Return a sentence where another adjudicator has decided it after the label of
    id `since` (`last_label_id`), else "". Raises InputError for a bad unit, label or reason.
    """
    unit_ids = study.units_by_kind("all")
    decision = _checked_decision(study, unit_ids, (unit_id, rubric, label, reason))
    is_on_item = labels.c.unit_id == unit_id, labels.c.rubric == rubric
    by_another = labels.c.rater_kind == "adjudicator", labels.c.rater_id != adjudicator_id(name)
    is_later = labels.c.event_id > (since or 0)
    later_decisions = sa.select(labels).where(*is_on_item, *by_another, is_later)
    with study.store.write() as connection:
        other = connection.execute(later_decisions.order_by(labels.c.event_id.desc())).first()
        _append_decision(connection, name, decision)
    if other is None or since is None:
        return ""
    author = other.rater_id.removeprefix(_PREFIX)
    return written("lead.decided_meanwhile", who=author, label=other.label)


def import_decisions(study: Study, name: str, table: pd.DataFrame, source: str) -> tuple[int, int]:
    """Append the decisions in a filled-in `queue_table`, all or none; return the numbers of new
    decisions, and of rows without a label. Raises InputError for an invalid row or name.
    """
    if not RATER_CODE.fullmatch(name):
        raise InputError(
            f"{name!r} is no adjudicator's name: 1 to 64 letters, digits, dots, hyphens or "
            "underscores"
        )
    hint = "; a queue is written by `evenhand adjudicate DIR --out FILE`"
    require_columns(table, DECISION_FILE_COLUMNS, source, hint)
    unit_ids = {kind: set(ids) for kind, ids in study.units_by_kind("all").items()}
    rows = list(zip(table.index + FIRST_ROW, table.to_dict("records"), strict=True))
    decisions: dict[Key, dict[str, Any]] = {}
    for number, row in rows:
        if not row["label"]:
            continue
        try:
            cells = [row[column] for column in DECISION_FILE_COLUMNS]
            decision = _checked_decision(study, unit_ids, cells)
            key = (decision["unit_id"], decision["rubric"])
            if key in decisions:
                raise InputError("a row further up decides the same item; keep one of the two")
        except InputError as error:
            raise InputError(f"{source}, row {number}: {error}") from None
        decisions[key] = decision
    with study.store.write() as connection:
        # What was imported last is known: it takes nothing back that was decided here since.
        stored = past_decisions(study, name, _IMPORTED)[[*DECISION_FILE_COLUMNS]]
        last = set(stored.itertuples(index=False, name=None))
        new = [it for key, it in decisions.items() if (*key, it["label"], it["reason"]) not in last]
        for decision in new:
            _append_decision(connection, name, decision, _IMPORTED)
    return len(new), len(rows) - len(decisions)


def _checked_decision(
    study: Study, unit_ids: Mapping[str, Collection[str]], cells: Sequence[str]
) -> dict[str, Any]:
    """Return a decision as stored, from its `DECISION_FILE_COLUMNS`; `unit_ids` by kind of unit."""
    unit_id, rubric_name, label, reason = cells
    if (rubric := study.rubrics.get(rubric_name)) is None:
        raise InputError(f"the study has no rubric {rubric_name!r}")
    if (stored_label := rubric.kind.label_of(label)) is None:
        raise InputError(f"label {label!r} is {rubric.kind.none_of}")
    if not reason.strip():
        raise InputError("a decision needs a reason")
    if unit_id not in unit_ids[rubric.unit]:
        raise InputError(f"the study has no {rubric.unit} item {unit_id!r}")
    columns = {"unit_id": unit_id, "rubric": rubric.name, "rubric_hash": rubric.hash}
    return columns | {"label": stored_label, "reason": reason.strip()}


def _append_decision(
    connection: sa.Connection, name: str, decision: Mapping[str, Any], prefix: str = "decision-"
) -> None:
    """Append a decision as a label, and its reason as a remark, under a new id with this prefix."""
    columns = {column: decision[column] for column in ("unit_id", "rubric", "rubric_hash")}
    columns |= {"submit_id": prefix + uuid.uuid4().hex, "created_at": utc_now()}
    # A decision has no order of sides, and is no hidden repeat, whose `draw` is above 0.
    columns |= {"rater_id": adjudicator_id(name), "order": "", "draw": 0}
    append(connection, labels, columns | {"rater_kind": "adjudicator", "label": decision["label"]})
    append(connection, remarks, columns | {"kind": "answer", "text": decision["reason"]})


def _counted_labels(study: Study) -> tuple[dict[Key, dict[str, str]], dict[Key, str]]:
    """Return annotators' labels that count, by question, then rater; and the latest decisions."""
    labels_by_key: dict[Key, dict[str, str]] = {}
    decisions = {}
    excluded = oversight(study.store).exclusions
    for row in people_labels(study).to_dict("records"):
        key = (row["unit_id"], row["rubric"])
        if row["rater_kind"] == "adjudicator":
            decisions[key] = row["label"]
        elif row["label"] and row["draw"] == 0 and row["rater_id"] not in excluded:
            labels_by_key.setdefault(key, {})[row["rater_id"]] = row["label"]
    return labels_by_key, decisions


FINAL_COLUMNS = ("item_id", "rubric", "final_label", "votes", "decided_by", "n_labels")


def final_labels(study: Study) -> pd.DataFrame:
    """Return `FINAL_COLUMNS`, `labels` and `agreement` of every item under every rubric that people
    label: those of the sample in its order, then others with labels. `labels` are those that count,
    by rater; `votes` the number of raters by label; `agreement` the share of the most frequent
    label, NaN without labels. `final_label` is an adjudicator's latest decision, else the most
    frequent label (as in the report), for numbers the lower median; empty for a tie or without
    labels. A set of options is one label.
    """
    labels_by_key, decisions = _counted_labels(study)
    rows = []
    for key in dict.fromkeys([*SessionDesign(study).questions, *labels_by_key, *decisions]):
        _, rubric_name = key
        if (rubric := study.rubrics.get(rubric_name)) is None:  # removed from the study since
            continue
        item_labels = labels_by_key.get(key, {})
        n_labels, votes = len(item_labels), Counter(item_labels.values())
        label, decided_by = _voted_label(rubric, votes)
        if key in decisions:
            label, decided_by = decisions[key], "adjudicator"
        agreement = max(votes.values()) / n_labels if votes else math.nan
        rows.append((*key, label, dict(votes), decided_by, n_labels, item_labels, agreement))
    return pd.DataFrame(rows, columns=[*FINAL_COLUMNS, "labels", "agreement"])


def _voted_label(rubric: Rubric, votes: Counter[str]) -> tuple[str, str]:
    """Return annotators' final label of an item, and how they decided it; see `final_labels`."""
    if not votes:
        return "", ""
    (label, n_votes), *others = votes.most_common(2)
    decided_by = "single" if votes.total() == 1 else "majority"
    if not rubric.kind.listed:  # a number: the lower median
        return sorted(votes.elements(), key=float)[(votes.total() - 1) // 2], decided_by
    if others and others[0][1] == n_votes:
        return "", "tie"
    return label, decided_by


def grader_labels(study: Study) -> dict[Key, dict[str, str]]:
    """Return graders' first labels by question, then grader."""
    grades = study.ratings()
    grades = grades[(grades["rater_kind"] == "model") & (grades["label"] != "")]
    grades = grades.drop_duplicates(["unit_id", "rubric", "rater_id"])
    by_question: dict[Key, dict[str, str]] = {}
    columns = ["unit_id", "rubric", "rater_id", "label"]
    for unit, rubric, rater, label in grades[columns].itertuples(index=False):
        by_question.setdefault((unit, rubric), {})[rater] = label
    return by_question


def _queue_units(study: Study, labels_by_key: Mapping[Key, Mapping[str, str]]) -> list[QueuedUnit]:
    """Return these units with their labels, and the remarks with annotators' answers that count."""
    excluded, reasons = oversight(study.store).exclusions, defaultdict[Key, list[str]](list)
    for remark in counted_remarks(study).to_dict("records"):
        rater, text = remark["rater_id"], remark["text"]
        is_counted = rater not in excluded and not rater.startswith(_PREFIX)
        if is_counted and remark["kind"] == "answer" and text:
            reasons[remark["unit_id"], remark["rubric"]].append(text)
    return [
        QueuedUnit(*key, _shuffled([*by_rater.values()], *key), _shuffled(reasons[key], *key))
        for key, by_rater in labels_by_key.items()
    ]


def counted_remarks(study: Study) -> pd.DataFrame:
    """Return the rows of `remarks_table` that came with an answer that counts, without hidden
    repeats, and the flags that were not withdrawn.
    """
    is_counted = labels.c.draw == 0, schema.accepted_text(labels, study.accepted_hashes())
    latest = sa.select(sa.func.max(labels.c.event_id)).where(*is_counted)
    latest = latest.group_by(labels.c.unit_id, labels.c.rubric, labels.c.rater_id)
    with_answer = sa.select(labels.c.submit_id).where(labels.c.event_id.in_(latest))
    is_present = sa.or_(remarks.c.kind == "flag", remarks.c.submit_id.in_(with_answer))
    table = remarks_table(study.store, is_present)
    return table[table["withdrawn_at"] == ""]


def counted_marks(
    study: Study, units: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return (rater id, mark) for the words marked in answers that count, by (rubric, unit id)."""
    is_excluded = labels.c.rater_id.in_([*oversight(study.store).exclusions])
    return marks_on(
        study.store, units, schema.accepted_text(labels, study.accepted_hashes()), ~is_excluded
    )


def _shuffled(texts: Sequence[str], *key: str) -> tuple[str, ...]:
    """Return texts in a reproducible order that hides their authors."""
    order = sorted(range(len(texts)), key=lambda index: _digest(*key, texts[index], str(index)))
    return tuple(texts[index] for index in order)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


# Disagreements between a grader and annotators, sorted by the lead: is the grader wrong, are the
# annotators, or is the rubric's text unclear? The latest judgment on a unit and grader counts.

Kind = Literal["grader_wrong", "people_wrong", "rubric_unclear"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, kw_only=True)
class SortedDisagreement:
    """A lead's judgment on a grader's label that differs from annotators'; `kind` "" revokes it."""

    rubric: str
    rubric_hash: str
    unit_id: str
    grader: str
    kind: Kind | Literal[""]
    note: str = ""
    done_by: str = ""
    created_at: str = field(default_factory=utc_now)


_LOG = EventLog(schema.sorted_disagreements, SortedDisagreement)


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
    """Append the judgment of the lead `by` on one disagreement; it is on disk on return. An empty
    `kind` takes the former one back. Raises InputError for an unknown rubric, unit or kind.
    """
    if (study_rubric := study.rubrics.get(rubric)) is None:
        raise InputError(f"the study has no rubric {rubric!r}")
    if kind not in ("", *KINDS):
        raise InputError(f"{kind!r} is none of {', '.join(KINDS)}")
    if unit_id not in study.units_by_kind("all")[study_rubric.unit]:
        raise InputError(f"the study has no {study_rubric.unit} item {unit_id!r}")
    key = {"rubric": rubric, "rubric_hash": study_rubric.hash, "unit_id": unit_id}
    judgment = SortedDisagreement(**key, grader=grader, kind=kind, note=note.strip(), done_by=by)
    _LOG.append(study.store, [judgment])


def sorted_cases(study: Study) -> list[SortedDisagreement]:
    """Return the latest judgments on units and graders, unless revoked, under texts that count."""
    accepted = study.accepted_hashes()
    key = ("rubric", "unit_id", "grader", "rubric_hash")
    # The log is in order, so of the latest judgments under several texts the last one counts.
    latest_by_case = {
        (judgment.rubric, judgment.unit_id, judgment.grader): judgment
        for judgment in _LOG.all(study.store, schema.is_latest(schema.sorted_disagreements, *key))
        if judgment.rubric_hash in accepted.get(judgment.rubric, ())
    }
    return [judgment for judgment in latest_by_case.values() if judgment.kind]


def held_out_units(study: Study, rubric: str) -> list[str]:
    """Return the sampled units on which a new rubric text may be tried: of pairs never judged."""
    all_judgments = _LOG.all(study.store, schema.sorted_disagreements.c.rubric == rubric)
    judged_pairs = {parse_unit_id(judgment.unit_id).pair_id for judgment in all_judgments}
    units = study.rubric_units(study.rubrics[rubric])
    return [unit for unit in units if parse_unit_id(unit).pair_id not in judged_pairs]


# Annotators' flags on units, and what leads did about them: events, of which the latest counts

CLOSED, REOPENED = "closed", "reopened"


@dataclass(frozen=True)
class RaisedFlag:
    """A rater's flag on a unit, and the lead's note. `settle_flag` takes its `number`."""

    number: int
    unit_id: str
    rubric: str
    rater_id: str
    reason: str  # one of `study.desk.desk.FLAG_REASONS`
    text: str
    created_at: str
    is_open: bool = True
    note: str = ""  # what was done about the flag, for the leads
    done_by: str = ""
    done_at: str = ""


def raised_flags(study: Study) -> list[RaisedFlag]:
    """Return the open flags, oldest first, then the closed or withdrawn ones, latest first."""
    latest = sa.select(flag_events).where(schema.is_latest(flag_events, "flag_id"))
    in_order = sa.select(remarks).where(remarks.c.kind == "flag").order_by(remarks.c.event_id)
    latest_by_flag = {row.flag_id: row for row in study.store.rows(latest)}
    flags = []
    columns = ("unit_id", "rubric", "rater_id", "reason", "text", "created_at")
    for row in study.store.rows(in_order):
        cells = {name: getattr(row, name) for name in columns}
        if (event := latest_by_flag.get(row.event_id)) is not None:
            cells |= {"note": event.text, "done_by": event.done_by, "done_at": event.created_at}
        is_open = event is None or event.kind == REOPENED
        flags.append(RaisedFlag(number=row.event_id, is_open=is_open, **cells))
    closed_flags = [flag for flag in flags if not flag.is_open]
    closed_flags.sort(key=lambda flag: flag.done_at, reverse=True)
    return [flag for flag in flags if flag.is_open] + closed_flags


def settle_flag(study: Study, number: int, note: str, done_by: str, answer: str = "") -> None:
    """Close a flag with a note for the leads on what was done, and an `answer` for its rater.
    Raises InputError where the note is empty or there is no such open flag.
    """
    if not note.strip():
        raise InputError("say what was done about the flag")
    is_flag = remarks.c.event_id == number, remarks.c.kind == "flag"
    kinds_query = sa.select(flag_events.c.kind).where(flag_events.c.flag_id == number)
    with study.store.write() as connection:
        if not connection.execute(sa.select(remarks.c.event_id).where(*is_flag)).first():
            raise InputError(f"there is no flag {number}")
        kinds = list(connection.execute(kinds_query.order_by(flag_events.c.event_id)).scalars())
        if kinds and kinds[-1] in (CLOSED, WITHDRAWN):
            raise InputError("this flag is closed already; look at the list again")
        events = [(ANSWERED, answer.strip())] if answer.strip() else []
        for kind, text in (*events, (CLOSED, note.strip())):
            row = {"flag_id": number, "kind": kind, "text": text, "done_by": done_by}
            append(connection, flag_events, row)
