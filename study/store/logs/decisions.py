"""Logs of decisions and their authors, append-only; the lead is the person who runs the study.

The steps of improving a grader, models' proposals and the lead's acts are rows of one table,
`lead_events`, in which the column `rater_id` has what an event is about, often a rubric, and
`reason` its detail, for an improvement as JSON. Interim analyses ("looks"), tuned thresholds and
draws of the sample have tables of their own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics.loading import own_prompt_hash
from evenhand.study.prompts.sampling import Wave, inclusion
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store import schema
from evenhand.study.store.database import Database, EventLog, append
from evenhand.study.store.grades import TRANSIENT_REASONS, utc_now
from evenhand.study.store.schema import flag_events, grades, labels, lead_events, look_events
from evenhand.study.store.store import Store
from evenhand.texts import written

# ---- steps of improving a grader ----------------------------------------------------------------
# The part of each labelled cluster (training "learn", selection "choose", test "prove"), the
# candidates, the winners, the readings of the test labels, and the outcome. Each is recorded before
# it is used: a run that was killed and is started again reads its records, and the log proves the
# order. Kinds of events, with their details:
PARTED = "improve parted"  # {"cluster": kind of the clusters, "parts": {cluster: part}}
STARTED = "improve started"  # {"old": rater id of the grader to improve, "is_new"}
TRIED = "improve tried"  # {rater id: fields of `CandidateRecord`}
CHOSE = "improve chose"  # {"new": rater id of the winner, "clusters": ids}
READ = "improve read proof"  # fields of `ProofReading`
ENDED = "improve ended"  # outcome of the run
_IMPROVEMENT_KINDS = (PARTED, STARTED, TRIED, CHOSE, READ, ENDED)


@dataclass(frozen=True, kw_only=True)
class CandidateRecord:
    """A candidate: its `origin`; `is_new` if it had no grade on the rubric before it was tried;
    `has_own_text` if it reads another text than the old grader, perhaps from the training labels.
    """

    origin: str
    is_new: bool
    has_own_text: bool


@dataclass(frozen=True, kw_only=True)
class ProofReading:
    """A reading of the test labels: both graders' rater ids, and a hash of all labels compared."""

    old: str
    new: str
    content: str


def note_parts(
    store: Database, rubric: str, parts: Mapping[str, str], cluster: str, done_by: str
) -> None:
    """Append the parts of clusters that had none; `cluster` is the kind of the clusters."""
    _append_detail(store, PARTED, rubric, {"cluster": cluster, "parts": dict(parts)}, done_by)


def parts_of(store: Database, rubric: str) -> dict[str, str]:
    """Return the part of each cluster, "learn", "choose" or "prove", as it was first assigned."""
    parts: dict[str, str] = {}
    for event in _details_of(store, PARTED, rubric):
        parts = {**event["parts"], **parts}
    return parts


def split_cluster_kind(store: Database, rubric: str) -> str:
    """Return the kind of the clusters that have parts, as in `[analysis]`; "" if none have."""
    return next((str(event["cluster"]) for event in _details_of(store, PARTED, rubric)), "")


def check_clusters(store: Database, rubric: str, cluster: str) -> None:
    """Raise InputError if the rubric's labels were split by another kind of cluster."""
    if (kind := split_cluster_kind(store, rubric)) and kind != cluster:
        raise InputError(written("improve.other_clusters", rubric=rubric, known=kind, now=cluster))


def note_start(store: Database, rubric: str, rater: str, *, is_new: bool, done_by: str) -> None:
    """Append the grader to improve, once; `is_new` if it had no grade on the rubric before."""
    if not any(event["old"] == rater for event in _details_of(store, STARTED, rubric)):
        _append_detail(store, STARTED, rubric, {"old": rater, "is_new": is_new}, done_by)


def note_candidates(
    store: Database, rubric: str, raters: Mapping[str, CandidateRecord], done_by: str
) -> None:
    """Append candidates that are not recorded yet, by their rater ids."""
    recorded = candidates_of(store, rubric)
    if new := {rater: asdict(raters[rater]) for rater in raters if rater not in recorded}:
        _append_detail(store, TRIED, rubric, new, done_by)


def candidates_of(store: Database, rubric: str) -> dict[str, CandidateRecord]:
    """Return every candidate so far, by its rater id."""
    entries: dict[str, dict[str, Any]] = {}
    for tried in _details_of(store, TRIED, rubric):
        entries |= tried
    return {rater: CandidateRecord(**entry) for rater, entry in entries.items()}


def note_choice(
    store: Database, rubric: str, winner: str, clusters: Sequence[str], done_by: str
) -> None:
    """Append the winner of a choice, and the clusters whose labels chose it."""
    choice = {"new": winner, "clusters": list(clusters)}
    if choice not in _details_of(store, CHOSE, rubric):
        _append_detail(store, CHOSE, rubric, choice, done_by)


def chosen_on(store: Database, rubric: str) -> dict[str, set[str]]:
    """Return for every winner of a choice the clusters whose labels chose it."""
    clusters: dict[str, set[str]] = {}
    for choice in _details_of(store, CHOSE, rubric):
        clusters.setdefault(choice["new"], set()).update(choice["clusters"])
    return clusters


def influences_on_texts(store: Database, rubric: str) -> dict[str, set[str]]:
    """Return for each candidate's text (by the digits of its hash in a rater id) the clusters whose
    labels influenced it: those of training, and those by which a winner with this text was chosen.
    """
    parts, chosen = parts_of(store, rubric), chosen_on(store, rubric)
    training_clusters = {cluster for cluster, part in parts.items() if part == "learn"}
    clusters_by_text: dict[str, set[str]] = {}
    for rater, candidate in candidates_of(store, rubric).items():
        if candidate.has_own_text and (text := own_prompt_hash(rater)):
            clusters_by_text.setdefault(text, set(training_clusters)).update(chosen.get(rater, ()))
    return clusters_by_text


def note_reading(store: Database, rubric: str, reading: ProofReading, done_by: str) -> int:
    """Return the number, from 1, of this reading of the test labels; a new one is appended first.
    Readings with the same content are one, whatever the graders are called; readings of all graders
    of the rubric are counted together.
    """
    with store.write():  # one reading at a time: two never get the same number
        contents = contents_read(store, rubric)
        if reading.content not in contents:
            _append_detail(store, READ, rubric, asdict(reading), done_by)
            contents.append(reading.content)
    return contents.index(reading.content) + 1


def contents_read(store: Database, rubric: str) -> list[str]:
    """Return the `content` of each reading of the test labels, in the order of time."""
    return [event["content"] for event in _details_of(store, READ, rubric)]


def note_end(store: Database, rubric: str, outcome: Mapping[str, Any], done_by: str) -> None:
    """Append the outcome of a run, unless one that differs at most in the price is recorded."""

    def unpriced(end: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in end.items() if name != "price"}

    if unpriced(outcome) not in map(unpriced, _details_of(store, ENDED, rubric)):
        _append_detail(store, ENDED, rubric, outcome, done_by)


def ends_of(store: Database) -> list[tuple[str, dict[str, Any]]]:
    """Return the outcome of every run that ended, with its rubric, in the order of time."""
    return _details_by_rubric(store, ENDED)


def rubrics_improved(store: Database) -> list[str]:
    """Return the rubrics whose labelled clusters have parts."""
    return list(dict.fromkeys(rubric for rubric, _ in _details_by_rubric(store, PARTED)))


def price_of(
    store: Database, rubric: str, raters: Iterable[str], units: Iterable[str]
) -> float | None:
    """Return what improving a grader has cost since the labels were split, in US dollars: these
    graders' attempts at these units, their injection audits, and all proposals. None if unknown.
    """
    split_at = sa.select(sa.func.min(lead_events.c.created_at)).where(
        lead_events.c.kind == PARTED, lead_events.c.rater_id == rubric
    )
    graded, audited = (
        sa.select(table.c.unit_id, table.c.provenance["cost_usd"].as_float()).where(
            table.c.rubric == rubric,
            table.c.rater_id.in_(list(raters)),
            table.c.created_at >= split_at.scalar_subquery(),
        )
        for table in (grades, schema.attacked_grades)
    )
    unit_ids = set(units)
    costs = [price for unit, price in store.rows(graded) if unit in unit_ids]
    costs += [price for _, price in store.rows(audited)]
    costs += [event["provenance"].get("cost_usd") for event in _details_of(store, PROPOSED, rubric)]
    return None if None in costs else round(sum(costs), 6)


def _append_detail(
    store: Database, kind: str, rubric: str, detail: Mapping[str, Any], done_by: str
) -> None:
    """Append an event about a rubric, with its detail as JSON."""
    text = json.dumps(detail, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with store.write() as connection:
        _note(connection, kind, rubric, text, done_by)


def _details_of(store: Database, kind: str, rubric: str) -> list[dict[str, Any]]:
    """Return the details of all events of a kind about a rubric, in the order of time."""
    return [detail for name, detail in _details_by_rubric(store, kind) if name == rubric]


def _details_by_rubric(store: Database, kind: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (rubric, detail) of all events of a kind, in the order of time."""
    query = sa.select(lead_events.c.rater_id, lead_events.c.reason)
    query = query.where(lead_events.c.kind == kind).order_by(lead_events.c.event_id)
    return [(row.rater_id, json.loads(row.reason)) for row in store.rows(query)]


# ---- models' proposals for a grader's text ------------------------------------------------------
# Every answered request is recorded before its reply is used.
PROPOSED = "improve proposed"  # fields of `ProposalAttempt`


@dataclass(frozen=True, kw_only=True)
class ProposalAttempt:
    """The result of a request for a text: the model asked (`proposer`), the request's digest and
    messages; the reply, or the reason why there is none; and what it is `about`: the grader whose
    text is to be changed, and the clusters whose labels were read.
    """

    rubric: str
    proposer: str
    request: str
    system: str
    user: str
    about: Mapping[str, Any] = field(default_factory=dict)
    reply: str = ""
    unscored_reason: str = ""
    provenance: dict[str, Any] = field(default_factory=dict)


def note_proposals(store: Database, attempts: Sequence[ProposalAttempt]) -> None:
    """Append the results of requests; on disk on return."""
    with store.write():
        for attempt in attempts:
            _append_detail(store, PROPOSED, attempt.rubric, asdict(attempt), "")


def proposals_of(store: Database, rubric: str) -> dict[str, ProposalAttempt]:
    """Return the first reply to each request that need not be sent again, by its digest."""
    first_replies: dict[str, ProposalAttempt] = {}
    for attempt in _details_of(store, PROPOSED, rubric):
        if attempt["unscored_reason"] not in TRANSIENT_REASONS:
            first_replies.setdefault(attempt["request"], ProposalAttempt(**attempt))
    return first_replies


# ---- acts of leads ------------------------------------------------------------------------------
# Who did what, and when. Some decisions are in other tables, which `acts` reads as well.
Act = Literal[
    "account", "backup", "exclude", "export", "file", "grades", "import", "invite", "link",
    "logged_out", "pause", "place", "readmit", "responses", "resume", "rewording", "sample",
    "settings", "store", "study", "threshold", "used",
]  # fmt: skip
"""Kinds of entries: acts, decisions about raters, uses and ends of links (`_NOT_ACTS`)."""
ACT_COLUMNS = ("created_at", "done_by", "kind", "about", "detail")
_NOT_ACTS = ("used", "logged_out", PROPOSED, *_IMPROVEMENT_KINDS)


def note_act(store: Database, kind: Act, about: str, detail: str, done_by: str) -> None:
    """Append an act of a lead; `about` is the person or thing it concerns."""
    with store.write() as connection:
        _note(connection, kind, about, detail, done_by)


def _note(connection: sa.Connection, kind: str, about: str, detail: str, done_by: str) -> None:
    """Append one of the lead's events: the table keeps `about` as rater_id, `detail` as reason."""
    event = {"kind": kind, "rater_id": about, "reason": detail, "done_by": done_by}
    append(connection, lead_events, event)


def note_settings(store: Database, text: str, done_by: str = "") -> None:
    """Append that study.toml has changed since the study was last served. Anyone with write access
    may edit the file, so no author is recorded unless `done_by` names one.
    """
    digest = _settings_digest(text)
    logged = sa.select(lead_events.c.reason).where(lead_events.c.kind == "settings")

    def is_known(connection: sa.Connection) -> bool:
        latest = connection.execute(logged.order_by(lead_events.c.event_id.desc())).scalar() or ""
        return latest.partition(" ")[0] == digest  # "DIGEST", or "DIGEST SUMMARY OF CHANGES"

    with store.read() as connection:
        if is_known(connection):
            return
    with store.write() as connection:
        if not is_known(connection):  # by another process, or the page that wrote it
            _note(connection, "settings", "study.toml", digest, done_by)


def note_files(
    connection: sa.Connection, done_by: str, changed: Mapping[str, tuple[str, str]]
) -> None:
    """Append that a lead changed files: (new text, summary of changes) by the file's name."""
    for name, (text, summary) in changed.items():
        if name == "study.toml":
            _note(connection, "settings", name, f"{_settings_digest(text)} {summary}", done_by)
        else:
            _note(connection, "file", name, summary, done_by)


def _settings_digest(text: str) -> str:
    """Return the digits by which the log identifies a text of study.toml."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def acts(store: Database) -> pd.DataFrame:
    """Return the lead's acts, with the columns `ACT_COLUMNS`, the latest first."""
    lead_kind = lead_events.c.kind
    adjudications = _acts_in(labels, sa.literal("adjudication"), "unit_id", "label", "rater_id")
    queries = (
        _acts_in(lead_events, lead_kind, "rater_id", "reason").where(~lead_kind.in_(_NOT_ACTS)),
        _acts_in(flag_events, sa.literal("flag ") + flag_events.c.kind, "flag_id", "text"),
        _acts_in(schema.sorted_disagreements, sa.literal("disagreement"), "unit_id", "kind"),
        adjudications.where(labels.c.rater_kind == "adjudicator"),
    )
    table = store.table(sa.union_all(*queries))  # type: ignore[arg-type]
    table = table[::-1].sort_values("created_at", ascending=False, kind="stable")  # ties as well
    table["done_by"] = table["done_by"].str.removeprefix("adjudicator:")
    return table.reset_index(drop=True)


def _acts_in(
    table: sa.Table, kind: sa.ColumnElement[str], about: str, detail: str, done_by: str = "done_by"
) -> sa.Select[Any]:
    """Return the query for the acts in a table; `about`, `detail`, `done_by` name its columns."""
    columns = (table.c.created_at, table.c[done_by], kind, table.c[about], table.c[detail])
    texts = (sa.cast(column, sa.Text) for column in columns)  # the id of a flag is a number
    named: list[Any] = [text.label(name) for text, name in zip(texts, ACT_COLUMNS, strict=True)]
    return sa.select(*named)


# ---- interim analyses ---------------------------------------------------------------------------
# They are called looks. Each look at new labels is another chance of an error, so they are counted;
# another analysis of the same labels is the same look.
_HASHED_COLUMNS = ["unit_id", "rater_id", "label", "order", "draw"]


def labels_hash(ratings: pd.DataFrame) -> str:
    """Return a hash of labels (of one rubric) that ignores the order of rows."""
    labels_in_order = ratings[_HASHED_COLUMNS].sort_values(_HASHED_COLUMNS)
    return hashlib.sha256(labels_in_order.to_csv(index=False).encode()).hexdigest()


def look_numbers(store: Store, present: Mapping[str, str], *, record: bool) -> dict[str, int]:
    """Return the number of this look, by rubric, from the `present` hashes of people's labels. A
    look at new labels is logged if `record`; else its number is 0, as it is not counted.
    """
    numbers = {}
    with store.write() if record else store.read() as connection:
        past_looks = _past_looks(connection)
        for rubric, digest in present.items():
            hashes = past_looks.get(rubric, [])
            if digest not in hashes and record:
                append(connection, look_events, {"rubric": rubric, "labels_hash": digest})
                hashes = [*hashes, digest]
            numbers[rubric] = hashes.index(digest) + 1 if digest in hashes else 0
    return numbers


def coming_looks(store: Store, present: Mapping[str, str]) -> dict[str, int]:
    """Return the number that a look at these labels has, or would have, by rubric."""
    with store.read() as connection:
        past_looks = _past_looks(connection)
    # The first index of a digest: that of the past look at these labels, else that of a new one.
    looks = {rubric: [*past_looks.get(rubric, []), digest] for rubric, digest in present.items()}
    return {rubric: looks[rubric].index(digest) + 1 for rubric, digest in present.items()}


def _past_looks(connection: sa.Connection) -> dict[str, list[str]]:
    """Return the hashes of the labels of past looks, by rubric, each once and in order."""
    query = sa.select(look_events.c.rubric, look_events.c.labels_hash)
    hashes_by_rubric: dict[str, list[str]] = {}
    for rubric, digest in connection.execute(query.order_by(look_events.c.event_id)):
        if digest not in hashes_by_rubric.setdefault(rubric, []):
            hashes_by_rubric[rubric].append(digest)
    return hashes_by_rubric


# ---- tuned thresholds, and draws of the sample --------------------------------------------------
@dataclass(frozen=True, kw_only=True)
class TunedThreshold:
    """A grader's threshold, tuned on the labels of `clusters` (ids of pairs). It has the best
    `objective` against the `reference` ("humans", or a rater) and replaces `instead_of`, the
    rubric's threshold or a declared one.
    """

    rubric: str
    grader: str
    threshold: float
    objective: str
    reference: str
    instead_of: float
    clusters: Sequence[str]
    created_at: str = field(default_factory=utc_now)


TUNED_THRESHOLDS = EventLog(schema.threshold_events, TunedThreshold)

WAVES = EventLog(schema.sample_waves, Wave)
"""Draws of the sample with known probabilities: none while all pairs were equally likely."""


def current_inclusion(store: Store) -> Mapping[str, float]:
    """Return each pair's probability of being picked and labelled by now; empty where all are
    equal. One label of an annotator counts for the pair: its rubrics are handed out together.
    """
    if not (waves := WAVES.all(store)):
        return {}
    query = sa.select(labels.c.unit_id).where(labels.c.rater_kind == "human").distinct()
    labelled = {parse_unit_id(unit).pair_id for unit in store.values(query)}
    shares = [len(labelled.intersection(wave.taken)) / max(len(wave.taken), 1) for wave in waves]
    return inclusion(waves, shares if any(shares) else ())  # before the first label: whole waves
