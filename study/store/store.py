"""The contents of a study's store: pairs, subjects' responses, raters' ratings, and their totals.

`Store` reads and writes the main tables; its methods that write are durable when they return. The
functions after it, in sections, read raters' kinds, totals and costs of graders, and what comes
with people's labels: details of each answer, remarks and flags, page languages, and the events of
their sessions, all append-only and never part of the `ratings` table.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.store import schema
from evenhand.study.store.database import Database, EventLog, append
from evenhand.study.store.grades import ASKED_AGAIN, TRANSIENT_REASONS, TRIED_MARK, GradeAttempt
from evenhand.study.store.schema import answer_details, flag_events, grades, labels, session_events
from evenhand.study.tables.ratings import (
    LABEL_KEY,
    RATING_KEY,
    RATINGS_COLUMNS,
    Mark,
    read_marks,
    validate_ratings,
)

_RESPONSE_KEY = (schema.responses.c.pair_id, schema.responses.c.subject, schema.responses.c.side)


class Store(Database):
    """A study's data: pairs, responses, labels and grades."""

    # Pairs and responses

    def add_pairs(self, frame: pd.DataFrame, sample: Sequence[str]) -> None:
        """Add every pair of the file; `sample` has the ids of the sampled ones in their order."""
        sample_positions = {pair: position for position, pair in enumerate(sample)}
        rows = []
        for position, record in enumerate(frame.to_dict("records")):
            pair = record.pop("pair_id")
            cells = {str(key): value for key, value in record.items()}
            row = {"pair_id": pair, "position": position, "cells": cells}
            rows.append(row | {"sample_position": sample_positions.get(pair)})
        with self.write() as connection:
            connection.execute(sa.insert(schema.pairs), rows)

    def extend_sample(
        self, known: Sequence[str], more: Sequence[str], waves: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """Add `more` pairs to the sample, after those `known` to be in it, and log the `waves` that
        drew them (rows of `sample_waves`). Raises InputError if the sample has changed meanwhile.
        """
        with self.write() as connection:
            if self.sample() != list(known):  # read within this transaction
                raise InputError("the sample was enlarged meanwhile; look at it and run this again")
            for position, pair in enumerate(more, start=len(known)):
                update = sa.update(schema.pairs).where(schema.pairs.c.pair_id == pair)
                connection.execute(update.values(sample_position=position))
            append(connection, schema.sample_waves, *waves)

    def pairs(self) -> pd.DataFrame:
        """Return all pairs in file order: `pair_id`, `sample_position` (NaN if none), cells."""
        rows = self.rows(sa.select(schema.pairs).order_by(schema.pairs.c.position))
        keys = ({"pair_id": row.pair_id, "sample_position": row.sample_position} for row in rows)
        return pd.DataFrame([key | row.cells for key, row in zip(keys, rows, strict=True)])

    def sample(self) -> list[str]:
        """Return the sampled pair ids in their order of labelling."""
        query = sa.select(schema.pairs.c.pair_id).where(schema.pairs.c.sample_position.is_not(None))
        return list(self.values(query.order_by(schema.pairs.c.sample_position)))

    def size(self) -> tuple[int, int]:
        """Return (sampled pairs, responses), which changes whenever there is more to label."""
        sampled = sa.select(sa.func.count(schema.pairs.c.sample_position)).scalar_subquery()
        answered = sa.select(sa.func.count()).select_from(schema.responses).scalar_subquery()
        ((pairs_sampled, responses_given),) = self.rows(sa.select(sampled, answered))
        return pairs_sampled, responses_given

    def add_responses(self, frame: pd.DataFrame) -> int:
        """Add `pair_id, side, subject, response` rows; return the number of new ones. Raises
        InputError where a response differs from one that is stored: labels may rest on it.
        """
        with self.write() as connection:
            rows = connection.execute(sa.select(schema.responses))
            stored = {(row.pair_id, row.subject, row.side): row.response for row in rows}
            new_rows: list[dict[str, Any]] = []
            for row in frame.to_dict("records"):
                key = (row["pair_id"], row["subject"], row["side"])
                if key not in stored:
                    new_rows.append({str(name): cell for name, cell in row.items()})
                elif stored[key] != row["response"]:
                    raise InputError(
                        f"subject {key[1]!r} already has another response to {key[0]} side "
                        f"{key[2]}; responses do not change once they are in a study: use another "
                        "subject name"
                    )
            if new_rows:
                connection.execute(sa.insert(schema.responses), new_rows)
        return len(new_rows)

    def subjects(self) -> list[str]:
        """Return the subjects that have a response, in alphabetical order."""
        return sorted(self.values(sa.select(schema.responses.c.subject).distinct()))

    def answered(self) -> pd.DataFrame:
        """Return the keys of all responses, without the texts: `pair_id, subject, side`."""
        return self.table(sa.select(*_RESPONSE_KEY).order_by(*_RESPONSE_KEY))

    def responses(self) -> pd.DataFrame:
        """Return all responses: `pair_id, subject, side, response`."""
        return self.table(sa.select(schema.responses).order_by(*_RESPONSE_KEY))

    def texts_of(
        self, keys: Sequence[tuple[str, str]]
    ) -> dict[tuple[str, str], tuple[dict[str, str], dict[str, str]]]:
        """Return (pair's cells, responses by side) of a few hundred keys (pair_id, subject)."""
        ids = {pair for pair, _ in keys}
        subjects = {subject for _, subject in keys}
        pairs, responses = schema.pairs.c, schema.responses.c
        pair_query = sa.select(pairs.pair_id, pairs.cells).where(pairs.pair_id.in_(ids))
        conditions = responses.pair_id.in_(ids), responses.subject.in_(subjects)
        texts: dict[tuple[str, str], dict[str, str]] = {key: {} for key in keys}
        with self.read() as connection:
            cells = {row.pair_id: row.cells for row in connection.execute(pair_query)}
            for row in connection.execute(sa.select(schema.responses).where(*conditions)):
                # The two conditions also meet pairs and subjects that were not asked for together.
                if (row.pair_id, row.subject) in texts:
                    texts[row.pair_id, row.subject][row.side] = row.response
        return {(pair, subject): (cells[pair], sides) for (pair, subject), sides in texts.items()}

    # Labels and grades

    def add_grades(self, attempts: Iterable[GradeAttempt]) -> None:
        """Append grade attempts in one transaction, each to the table of its class."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for attempt in attempts:
            rows.setdefault(attempt.table, []).append(attempt.row())
        with self.write() as connection:
            for table, table_rows in rows.items():
                connection.execute(sa.insert(schema.metadata.tables[table]), table_rows)

    def finished_grades(
        self,
        rater_id: str,
        rubric: str,
        rubric_hashes: Collection[str],
        *,
        labelled_only: bool = False,
    ) -> set[tuple[str, str, int]]:
        """Return (unit_id, order, draw) of every grade that need not be requested again. A grade
        counts under any of these texts of the rubric (see `Study.accepted_hashes`). With
        `labelled_only` a result without a label is requested again, and so is a label without
        probabilities of a grader that gave some on this rubric.
        """
        query = sa.select(grades.c.unit_id, grades.c.order, grades.c.draw).where(
            grades.c.rater_id == rater_id,
            grades.c.rubric == rubric,
            grades.c.rubric_hash.in_(rubric_hashes),
            grades.c.unscored_reason.not_in(TRANSIENT_REASONS),
            grades.c.provenance[ASKED_AGAIN].as_boolean().is_not(True),
        )
        if labelled_only:
            other = grades.alias()
            is_same = (other.c.rater_id == rater_id) & (other.c.rubric == rubric)
            gives_some = sa.exists().where(is_same, other.c.prob_method != "")
            query = query.where(schema.is_scored, (grades.c.prob_method != "") | ~gives_some)
        return {(row.unit_id, row.order, row.draw) for row in self.rows(query)}

    def ratings(self, accepted: Mapping[str, Collection[str]]) -> pd.DataFrame:
        """Return the `ratings` table: the current label or grade of every key, all raters. Current
        is the latest one under a text that `accepted` (rubric -> hashes) names, a grader's result
        without a label only if it never gave one, and a failed request only if there is nothing
        else; where a key has none, the latest under an older text.
        """
        rows: list[tuple[Any, ...]] = []
        with self.read() as connection:
            for table, key in ((labels, LABEL_KEY), (grades, RATING_KEY)):
                columns = {name: table.c[name] for name in RATINGS_COLUMNS}
                # Stored as JSON texts, probabilities need not be parsed: the table has texts.
                as_text = {"probabilities": sa.cast(table.c.probabilities, sa.Text)}
                query = sa.select(*(columns | as_text).values()).order_by(table.c.event_id)
                query = query.where(_is_current(table, key, accepted))
                # All at once: row by row SQLAlchemy takes four times as long.
                rows += map(tuple, connection.execute(query).all())
        frame = pd.DataFrame(rows, columns=list(RATINGS_COLUMNS))
        frame["probabilities"] = frame["probabilities"].fillna("")
        return validate_ratings(frame, "the store")

    def text_versions(self) -> dict[tuple[str, str], int]:
        """Return the number of ratings of each (rubric, rubric_hash), without ratings that have no
        hash and without grades given while trying another text.
        """
        counts: Counter[tuple[str, str]] = Counter()
        with self.read() as connection:
            for table in (labels, grades):
                key = (table.c.rubric, table.c.rubric_hash)
                is_tried = table.c.rater_id.contains(TRIED_MARK, autoescape=True)
                query = sa.select(*key, sa.func.count()).where(table.c.rubric_hash != "", ~is_tried)
                for rubric, digest, count in connection.execute(query.group_by(*key)):
                    counts[rubric, digest] += count
        return counts


def _is_current(
    table: sa.Table, key: Sequence[str], accepted: Mapping[str, Collection[str]]
) -> sa.ColumnElement[bool]:
    """Return an SQL condition: the row is the current one with its key (see `Store.ratings`)."""
    is_accepted = schema.accepted_text(table, accepted)
    # People may take a label back.
    has_label = [is_accepted & schema.is_scored] if table is grades else []
    is_reply = table.c.unscored_reason.not_in(TRANSIENT_REASONS)
    ranks = [rank.desc() for rank in (is_accepted, *has_label, is_reply, table.c.event_id)]
    place = sa.func.row_number().over(partition_by=[table.c[name] for name in key], order_by=ranks)
    ranked = sa.select(table.c.event_id, place.label("place")).subquery()
    return table.c.event_id.in_(sa.select(ranked.c.event_id).where(ranked.c.place == 1))


def rater_kind(connection: sa.Connection, rater_id: str) -> str:
    """Return a rater's kind (`RATER_KINDS`); "" if they have given neither label nor grade."""
    for table in (labels, grades):
        kinds = sa.select(table.c.rater_kind).where(table.c.rater_id == rater_id).limit(1)
        if kind := connection.execute(kinds).scalar():
            return str(kind)
    return ""


def rater_kinds(connection: sa.Connection) -> dict[str, str]:
    """Return the kind of every rater who has given a label or a grade."""
    kinds: dict[str, str] = {}
    for table in (labels, grades):
        query = sa.select(table.c.rater_id, table.c.rater_kind).distinct()
        kinds |= {row.rater_id: row.rater_kind for row in connection.execute(query)}
    return kinds


def imported_graders(store: Store) -> set[tuple[str, str]]:
    """Return the graders with grades that were imported, as (rubric, rater id)."""
    is_imported = grades.c.provenance["imported_from"].as_string().is_not(None)
    query = sa.select(grades.c.rubric, grades.c.rater_id).where(is_imported).distinct()
    with store.read() as connection:
        return {(row.rubric, row.rater_id) for row in connection.execute(query)}


def all_labels_were_assigned(store: Store) -> bool:
    """Return True if the study's pages asked for every label by a person, so that no label decided
    which units a person was given. Imported labels have no `shown_hash`.
    """
    query = sa.select(sa.func.count()).select_from(labels).where(labels.c.shown_hash == "")
    return store.values(query) == [0]


TOTALS_COLUMNS = (
    "rater_id", "rubric", "attempts", "units", "labelled", "unscored", "unscored_reasons",
    "low_mass", "without_probabilities", "tokens_input", "tokens_output", "tokens_cached",
    "cached_share", "cost_usd", "priced_units", "models", "first_at", "last_at",
)  # fmt: skip

_GRADER = (grades.c.rater_id, grades.c.rubric)  # a grader's totals are separate by rubric


def grade_totals(store: Store, accepted: Mapping[str, Collection[str]]) -> pd.DataFrame:
    """Return a row for every grader and rubric, sorted by both, with `TOTALS_COLUMNS`.

    Some columns count the current attempt at each question (see `Store.ratings`): `labelled`;
    `unscored`, with `unscored_reasons` (a JSON object reason -> count); among the labelled
    `low_mass`, with most of the probability on tokens that are no options, and
    `without_probabilities`, though requested. All other columns count all attempts; `units` are
    those asked about. `tokens_input` includes `tokens_cached`, those read from the provider's
    cache. `models` is a JSON object of the numbers of replies, by the names that the models gave.
    Tokens and `cost_usd` are NaN where they are not known: a server without usage, a model without
    a price. Offline graders cost 0. If only some costs are known, `cost_usd` is their sum, and
    `priced_units` has fewer than `units`.
    """
    is_current = _is_current(grades, RATING_KEY, accepted)
    facts = grades.c.provenance
    returned_model = facts["returned_model"].as_string()
    has_low_mass = facts["low_mass"].as_boolean() & (grades.c.prob_method != "")
    has_none = (facts["method"].as_string() == "logprobs") & (grades.c.prob_method == "")
    tokens = (
        sa.func.sum(facts["tokens", kind].as_integer()).label(f"tokens_{kind}")
        for kind in ("input", "output", "cached")
    )
    count, cost = sa.func.count(), facts["cost_usd"].as_float()
    unit_count = sa.func.count(grades.c.unit_id.distinct())
    sums = (
        sa.select(
            *_GRADER,
            count.label("attempts"),
            unit_count.label("units"),
            count.filter(is_current, schema.is_scored).label("labelled"),
            count.filter(is_current, ~schema.is_scored).label("unscored"),
            count.filter(is_current, schema.is_scored, has_low_mass).label("low_mass"),
            count.filter(is_current, schema.is_scored, has_none).label("without_probabilities"),
            *tokens,
            sa.func.sum(cost).label("cost_usd"),
            unit_count.filter(cost.is_not(None)).label("priced_units"),
            sa.func.min(grades.c.created_at).label("first_at"),
            sa.func.max(grades.c.created_at).label("last_at"),
        )
        .group_by(*_GRADER)
        .order_by(*_GRADER)
    )
    with store.read() as connection:
        rows = [dict(row._mapping) for row in connection.execute(sums)]
        reasons = _counts_of(connection, grades.c.unscored_reason, is_current, ~schema.is_scored)
        models = _counts_of(connection, returned_model, returned_model != "")
    for row in rows:
        grader = row["rater_id"], row["rubric"]
        row["unscored_reasons"] = json.dumps(reasons.get(grader, {}))
        row["models"] = json.dumps(_merged_versions(models.get(grader, {})))
    numbers = ["tokens_input", "tokens_output", "tokens_cached", "cost_usd", "cached_share"]
    frame = pd.DataFrame(rows, columns=list(TOTALS_COLUMNS)).astype(dict.fromkeys(numbers, float))
    return frame.assign(cached_share=frame["tokens_cached"] / frame["tokens_input"])


def _counts_of(
    connection: sa.Connection, value: sa.ColumnElement[str], *where: sa.ColumnElement[bool]
) -> dict[tuple[str, str], dict[str, int]]:
    """Return the numbers of grades by value, sorted by it, for each (rater id, rubric)."""
    query = sa.select(*_GRADER, value, sa.func.count()).where(*where).group_by(*_GRADER, value)
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for rater, rubric, text, count in sorted(connection.execute(query).all()):
        counts.setdefault((rater, rubric), {})[text] = count
    return counts


_VERSION = re.compile(r"[-@:](?:20\d\d-?\d\d-?\d\d|\d{3,4}|latest)$")  # at the end of a name


def models_that_answered(totals: pd.DataFrame) -> dict[str, dict[str, int]]:
    """Return for each grader the models that answered, over all rubrics, with their replies."""
    replies: dict[str, Counter[str]] = {}
    for rater, models in zip(totals["rater_id"], totals["models"], strict=True):
        replies.setdefault(str(rater), Counter()).update(json.loads(models))
    return {rater: _merged_versions(models) for rater, models in replies.items() if models}


def _merged_versions(replies: Mapping[str, int]) -> dict[str, int]:
    """Return replies by model, most first; a name without a version joins its commonest version.

    >>> _merged_versions({"gpt-5": 2, "openai/gpt-5-2025-08-07": 3, "gpt-4o-mini": 9})
    {'gpt-4o-mini': 9, 'openai/gpt-5-2025-08-07': 5}
    """
    short_names = {name: name.rpartition("/")[2].casefold() for name in replies}
    counts: dict[str, int] = {}  # by short name
    full_names: dict[str, str] = {}  # by short name
    # Longer names come first, so that versions come before the name without one.
    for name in sorted(replies, key=lambda name: -len(short_names[name])):
        versions = [known for known in counts if _VERSION.sub("", known) == short_names[name]]
        short_name = max(versions, key=lambda version: counts[version], default=short_names[name])
        counts[short_name] = counts.get(short_name, 0) + replies[name]
        full_names.setdefault(short_name, name)
    most_first = sorted(counts, key=lambda short: (-counts[short], full_names[short]))
    return {full_names[short_name]: counts[short_name] for short_name in most_first}


def total_spent(store: Store) -> float:
    """Return the known US dollars spent on grades and responses, or set aside for lost replies."""
    with store.read() as connection:
        return math.fsum(
            connection.execute(sa.select(sa.func.sum(table.c.provenance[name].as_float()))).scalar()
            or 0.0
            for table in (grades, schema.response_attempts)
            for name in ("cost_usd", "held_usd")
        )


# ---- what comes with people's labels ------------------------------------------------------------
ANSWERS_COLUMNS = (*RATING_KEY, "rubric_hash", "label", "created_at", "display", "evidence")
REMARKS_COLUMNS = (
    "kind", "unit_id", "rubric", "rater_id", "order", "draw", "confidence", "reason", "text",
    "rubric_hash", "created_at",
)  # fmt: skip
WITHDRAWN = "withdrawn"  # kind of event: a rater withdraws their flag
ANSWERED = "answered"  # kind of event: the lead answers the rater who raised a flag
_ENGLISH = ("", "en")  # "": not recorded


def answers_table(store: Store) -> pd.DataFrame:
    """Return `ANSWERS_COLUMNS` of the latest answer of every person to every question, in the order
    of time, with imported answers and skips. `display` is "" where it is not known, `evidence` a
    JSON list of `{"text", "start", "end"}`.
    """
    label_columns = (labels.c[name] for name in ANSWERS_COLUMNS[:-2])  # the last two: details
    table = store.table(
        sa.select(*label_columns, answer_details.c.display, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(labels.c.rater_kind == "human", schema.is_latest(labels, *LABEL_KEY, "rubric_hash"))
        .order_by(labels.c.event_id)
    )
    evidence = [json.dumps(marks or []) for marks in table["evidence"]]
    return table.assign(display=table["display"].fillna("").astype(str), evidence=evidence)


def marks_on(
    store: Store, units: Collection[tuple[str, str]], *where: sa.ColumnElement[bool]
) -> dict[tuple[str, str], list[tuple[str, Mark]]]:
    """Return (rater id, words marked as evidence) in the latest answers `where` these conditions
    hold, by (rubric, unit id), without answers to unannounced repeats. For hundreds of units.
    """
    ids = {unit for _, unit in units}
    query = (
        sa.select(labels.c.rubric, labels.c.unit_id, labels.c.rater_id, answer_details.c.evidence)
        .join(answer_details, answer_details.c.submit_id == labels.c.submit_id, isouter=True)
        .where(labels.c.rater_kind == "human", labels.c.draw == 0, *where)
        .where(labels.c.unit_id.in_(ids))
        .order_by(labels.c.event_id)
    )
    latest = {(row.rubric, row.unit_id, row.rater_id): row.evidence for row in store.rows(query)}
    marked: dict[tuple[str, str], list[tuple[str, Mark]]] = {}
    for rubric, unit, rater in sorted(latest):
        marks = read_marks(latest[rubric, unit, rater] or []) or ()
        if marks and (rubric, unit) in units:
            marked.setdefault((rubric, unit), []).extend((rater, mark) for mark in marks)
    return marked


def remarks_table(store: Store, *where: sa.ColumnElement[bool]) -> pd.DataFrame:
    """Return all remarks, edits included: `REMARKS_COLUMNS`, and `withdrawn_at` ("" if not)."""
    withdrawn = (
        sa.select(sa.func.min(flag_events.c.created_at))
        .where(flag_events.c.flag_id == schema.remarks.c.event_id, flag_events.c.kind == WITHDRAWN)
        .scalar_subquery()
    )
    columns = (schema.remarks.c[name] for name in REMARKS_COLUMNS)
    query = sa.select(*columns, sa.func.coalesce(withdrawn, "").label("withdrawn_at"))
    query = query.where(*where).order_by(schema.remarks.c.event_id)
    return store.table(query).astype({"confidence": "Int64"})


def with_shown(store: Store, ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the ratings with `page_language` and `shown_hash`, empty for graders and where not
    known; without these columns if all pages were in English.
    """
    key = [*RATING_KEY, "rubric_hash"]
    columns = [labels.c[name] for name in (*key, *schema.SHOWN)]
    shown = store.table(sa.select(*columns).where(schema.is_latest(labels, *key)))
    if shown["page_language"].isin(_ENGLISH).all():
        return ratings
    return ratings.merge(shown, on=key, how="left").fillna(dict.fromkeys(schema.SHOWN, ""))


def languages_of_raters(store: Store) -> dict[str, str]:
    """Return the language of each rater's page; "" where it changed between labels."""
    query = sa.select(labels.c.rater_id, labels.c.page_language).distinct()
    languages: dict[str, str] = {}
    for rater, code in store.rows(query.where(labels.c.page_language != "")):
        languages[rater] = "" if rater in languages else code
    return languages


# ---- the log of each rater's session ------------------------------------------------------------
# A rater's present step follows from these events, so that after a reload, on another computer or
# after a crash they continue where they were.
EventKind = Literal[
    "entered",  # came in: {"way"}
    "welcome_read",  # {"text"}: hash of the text read
    "consent",  # {"agreed", "text"}
    "rubric_read",  # {"rubric", "text"}
    "feedback_read",  # {"unit", "rubric", "attempt"}
    "comprehension",  # {"answers", "right", "text"}
    "background_done",
    "side_answered",  # took one of the places of a side (see `desk.claims`)
    "screened_out",  # failed practice or comprehension; {"side": True} if the side was full
    "completed",  # nothing was left to label
    "released",  # the place was given back: {"reason"}
    "readmitted",
]


@dataclass(frozen=True)
class Event:
    """An event of a rater's session."""

    kind: str
    detail: dict[str, Any]
    created_at: str


def add_event(connection: sa.Connection, rater_id: str, kind: EventKind, **detail: Any) -> None:
    """Append one event within a `write()`."""
    append(connection, session_events, {"rater_id": rater_id, "kind": kind, "detail": detail})


def events_of(connection: sa.Connection, rater_id: str) -> list[Event]:
    """Return a rater's events in the order of time."""
    return EventLog(session_events, Event).within(connection, session_events.c.rater_id == rater_id)


def release_reason(log: Sequence[Event]) -> str:
    """Return why the rater's place was released for good; "" if they still have it."""
    changes = [event for event in log if event.kind in ("released", "readmitted")]
    if not changes or changes[-1].kind == "readmitted":
        return ""
    return str(changes[-1].detail["reason"])
