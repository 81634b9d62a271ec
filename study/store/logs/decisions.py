"""Decisions in a study and their authors: the lead's acts, looks at the verdict, tuned
thresholds, draws of the sample, and what improving a grader decided. Append-only.
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
from evenhand.study.store.database import Database, EventLog, append
from evenhand.study.store.grades import TRANSIENT_REASONS, utc_now
from evenhand.study.store.schema import (
    attacked_grades,
    flag_events,
    grades,
    labels,
    lead_events,
    look_events,
    sample_waves,
    sorted_disagreements,
    threshold_events,
)
from evenhand.study.store.store import Store
from evenhand.texts import written

# What improving a grader decided: the part of each labelled cluster, the candidates, the winner of
# each choice, each reading of the labels kept for the proof, and what came of it. Append-only,
# among the lead's events. Parts are written down before the first request, candidates and a winner
# before they are used, and a reading before its labels are: a run that is killed and started again
# finds its own, and nobody has to be believed.

PARTED, STARTED, TRIED, CHOSE, READ, ENDED = IMPROVEMENT_KINDS = (
    "improve parted", "improve started", "improve tried", "improve chose", "improve read proof",
    "improve ended",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A candidate: where it comes from, `is_new` if it had no grade on the rubric before it was
    tried, `has_own_text` if it read another text than the old grader, which may have been written
    from the labels to learn from.
    """

    origin: str
    is_new: bool
    has_own_text: bool


@dataclass(frozen=True, kw_only=True)
class ProofReading:
    """A reading of the labels kept for the proof: of which graders, by their rater ids, and a hash
    of people's labels there with both graders' grades, as they are compared.
    """

    old: str
    new: str
    content: str


def note_parts(
    store: Database, rubric: str, parts: Mapping[str, str], cluster: str, done_by: str
) -> None:
    """Append the parts of clusters that had none; `cluster` says what they are. Durable."""
    _append(store, PARTED, rubric, {"cluster": cluster, "parts": dict(parts)}, done_by)


def parts_of(store: Database, rubric: str) -> dict[str, str]:
    """Return the part of each cluster, "learn", "choose" or "prove", as it was given first."""
    parts: dict[str, str] = {}
    for event in _all(store, PARTED, rubric):
        parts = {**event["parts"], **parts}
    return parts


def parted_by(store: Database, rubric: str) -> str:
    """Return what the parted clusters are, as in `[analysis]`; "" where nothing was parted."""
    return next((str(event["cluster"]) for event in _all(store, PARTED, rubric)), "")


def check_clusters(store: Database, rubric: str, cluster: str) -> None:
    """Raise InputError where the rubric's labels were parted by other clusters than these."""
    if (known := parted_by(store, rubric)) and known != cluster:
        raise InputError(written("improve.other_clusters", rubric=rubric, known=known, now=cluster))


def note_old(store: Database, rubric: str, rater: str, *, is_new: bool, done_by: str) -> None:
    """Append the grader to improve, once; `is_new` if it had no grade on the rubric before."""
    if not any(event["old"] == rater for event in _all(store, STARTED, rubric)):
        _append(store, STARTED, rubric, {"old": rater, "is_new": is_new}, done_by)


def graded_here_first(store: Database, rubric: str) -> set[str]:
    """Return graders to improve, and winners, whose first grades on the rubric were asked here."""
    olds = {event["old"]: event["is_new"] for event in _all(store, STARTED, rubric)}
    new = {rater for rater, is_new in olds.items() if is_new}
    new |= {rater for rater, entry in candidates_of(store, rubric).items() if entry.is_new}
    return new & (olds.keys() | chosen_on(store, rubric).keys())


def note_candidates(
    store: Database, rubric: str, raters: Mapping[str, Tried], done_by: str
) -> None:
    """Append candidates that are new, by their rater ids."""
    known = candidates_of(store, rubric)
    if new := {rater: asdict(entry) for rater, entry in raters.items() if rater not in known}:
        _append(store, TRIED, rubric, new, done_by)


def candidates_of(store: Database, rubric: str) -> dict[str, Tried]:
    """Return every candidate so far, by its rater id."""
    tried = (raters.items() for raters in _all(store, TRIED, rubric))
    return {rater: Tried(**entry) for raters in tried for rater, entry in raters}


def note_choice(
    store: Database, rubric: str, new: str, clusters: Sequence[str], done_by: str
) -> None:
    """Append the winner of a choice, and the clusters whose labels chose it."""
    choice = {"new": new, "clusters": list(clusters)}
    if choice not in _all(store, CHOSE, rubric):
        _append(store, CHOSE, rubric, choice, done_by)


def chosen_on(store: Database, rubric: str) -> dict[str, set[str]]:
    """Return for every winner of a choice the clusters that it was chosen on."""
    clusters: dict[str, set[str]] = {}
    for choice in _all(store, CHOSE, rubric):
        clusters.setdefault(choice["new"], set()).update(choice["clusters"])
    return clusters


def texts_led_by(store: Database, rubric: str) -> dict[str, set[str]]:
    """Return for every text that candidates had of their own, by the digits of its hash in a rater
    id, the clusters whose labels led to it: those to learn from, and those that a winner with this
    text was chosen on.
    """
    learn = {unit_id for unit_id, part in parts_of(store, rubric).items() if part == "learn"}
    chosen, led_by = chosen_on(store, rubric), dict[str, set[str]]()
    for rater, tried in candidates_of(store, rubric).items():
        if tried.has_own_text and (text := own_prompt_hash(rater)):
            led_by.setdefault(text, set(learn)).update(chosen.get(rater, ()))
    return led_by


def read_proof(store: Database, rubric: str, reading: ProofReading, done_by: str) -> int:
    """Return the number, from 1, of this reading of the labels kept for the proof; one that is new
    is appended first. A reading of the same content is the same, whatever the graders are called;
    readings of all graders of the rubric are counted together.
    """
    with store.write():
        known = contents_read(store, rubric)
        if reading.content not in known:
            _append(store, READ, rubric, asdict(reading), done_by)
            known.append(reading.content)
    return known.index(reading.content) + 1


def contents_read(store: Database, rubric: str) -> list[str]:
    """Return the contents of the readings of the labels kept for the proof, in their order."""
    return [event["content"] for event in _all(store, READ, rubric)]


def note_end(store: Database, rubric: str, outcome: Mapping[str, Any], done_by: str) -> None:
    """Append what came of it, unless that is known but for the price."""

    def unpriced(end: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in end.items() if name != "price"}

    if unpriced(outcome) not in map(unpriced, _all(store, ENDED, rubric)):
        _append(store, ENDED, rubric, outcome, done_by)


def ends_of(store: Database) -> list[tuple[str, dict[str, Any]]]:
    """Return what came of every run that ended, with its rubric, in the order of time."""
    return _with_rubrics(store, ENDED)


def rubrics_improved(store: Database) -> list[str]:
    """Return the rubrics whose clusters were parted."""
    return list(dict.fromkeys(rubric for rubric, _ in _with_rubrics(store, PARTED)))


def price_of(
    store: Database, rubric: str, raters: Iterable[str], units: Iterable[str]
) -> float | None:
    """Return what these graders' grades of these units, their audits, and all proposals cost since
    the labels were parted, in US dollars, all attempts; None where that is not known.
    """
    since = sa.select(sa.func.min(lead_events.c.created_at)).where(
        lead_events.c.kind == PARTED, lead_events.c.rater_id == rubric
    )
    graded, audited = (
        sa.select(table.c.unit_id, table.c.provenance["cost_usd"].as_float()).where(
            table.c.rubric == rubric,
            table.c.rater_id.in_(list(raters)),
            table.c.created_at >= since.scalar_subquery(),
        )
        for table in (grades, attacked_grades)
    )
    wanted = set(units)
    costs = [price for unit, price in store.rows(graded) if unit in wanted]
    costs += [price for _, price in store.rows(audited)]
    costs += [event["provenance"].get("cost_usd") for event in _all(store, PROPOSED, rubric)]
    return None if None in costs else round(sum(costs), 6)


def _append(
    store: Database, kind: str, rubric: str, detail: Mapping[str, Any], done_by: str
) -> None:
    text = json.dumps(detail, sort_keys=True, ensure_ascii=False, allow_nan=False)
    with store.write() as connection:
        _note(connection, kind, rubric, text, done_by)


def _all(store: Database, kind: str, rubric: str) -> list[dict[str, Any]]:
    return [detail for name, detail in _with_rubrics(store, kind) if name == rubric]


def _with_rubrics(store: Database, kind: str) -> list[tuple[str, dict[str, Any]]]:
    query = sa.select(lead_events.c.rater_id, lead_events.c.reason)
    query = query.where(lead_events.c.kind == kind).order_by(lead_events.c.event_id)
    return [(row.rater_id, json.loads(row.reason)) for row in store.rows(query)]


# What models proposed for a grader: every request that was answered, and what came back, kept
# before anybody reads it

PROPOSED = "improve proposed"


@dataclass(frozen=True, kw_only=True)
class ProposalAttempt:
    """The outcome of a request for words: the model asked, the request's digest and what was sent;
    the reply, or the reason why there is none; and what the request is `about`: the grader whose
    words are to be changed, and the clusters whose labels were read.
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
    """Append what came of requests; durable on return."""
    with store.write():
        for attempt in attempts:
            _append(store, PROPOSED, attempt.rubric, asdict(attempt), "")


def proposals_of(store: Database, rubric: str) -> dict[str, ProposalAttempt]:
    """Return the first answer to each request that need not be sent again, by its digest."""
    first: dict[str, ProposalAttempt] = {}
    for attempt in _all(store, PROPOSED, rubric):
        if attempt["unscored_reason"] not in TRANSIENT_REASONS:
            first.setdefault(attempt["request"], ProposalAttempt(**attempt))
    return first


# The lead's acts: who, when, what; decisions that have a table of their own are read from there

Act = Literal[
    "account", "backup", "exclude", "export", "file", "grades", "import", "invite", "link",
    "logged_out", "pause", "place", "readmit", "responses", "resume", "rewording", "sample",
    "settings", "store", "study", "threshold", "used",
]  # fmt: skip
"""Acts, with decisions about raters and what becomes of links and logins."""
ACT_COLUMNS = ("created_at", "done_by", "kind", "about", "detail")
_NO_ACTS = ("used", "logged_out", PROPOSED, *IMPROVEMENT_KINDS)
_HASHED = ["unit_id", "rater_id", "label", "order", "draw"]


def note_act(store: Database, kind: Act, about: str, detail: str, done_by: str) -> None:
    """Append an act of a lead; `about` is the person or thing it concerns."""
    with store.write() as connection:
        _note(connection, kind, about, detail, done_by)


def _note(connection: sa.Connection, kind: str, about: str, detail: str, done_by: str) -> None:
    event = {"kind": kind, "rater_id": about, "reason": detail, "done_by": done_by}
    append(connection, lead_events, event)


def note_settings(store: Database, text: str, done_by: str = "") -> None:
    """Append that study.toml has changed since the study was last served. Anyone with write access
    may edit the file, so no author is recorded unless `done_by` names one.
    """
    query = sa.select(lead_events.c.reason).where(lead_events.c.kind == "settings")
    query, digest = query.order_by(lead_events.c.event_id.desc()), _settings_digest(text)

    def is_known(connection: sa.Connection) -> bool:
        return (connection.execute(query).scalar() or "").partition(" ")[0] == digest

    with store.read() as connection:
        if is_known(connection):
            return
    with store.write() as connection:
        if not is_known(connection):  # by another process, or the page that wrote it
            _note(connection, "settings", "study.toml", digest, done_by)


def note_files(
    connection: sa.Connection, done_by: str, changed: Mapping[str, tuple[str, str]]
) -> None:
    """Append that a lead changed files: by its name each one's new text, and what is new in it."""
    for name, (text, new) in changed.items():
        if name == "study.toml":
            _note(connection, "settings", name, f"{_settings_digest(text)} {new}", done_by)
        else:
            _note(connection, "file", name, new, done_by)


def _settings_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def acts(store: Database) -> pd.DataFrame:
    """Return the lead's acts in `ACT_COLUMNS`, the latest first."""
    decided = labels.c.rater_kind == "adjudicator"
    flag = sa.cast(flag_events.c.flag_id, sa.Text)
    sources = (
        (lead_events, "rater_id", "reason", lead_events.c.kind, ~lead_events.c.kind.in_(_NO_ACTS)),
        (flag_events, flag, "text", sa.literal("flag ") + flag_events.c.kind, sa.true()),
        (sorted_disagreements, "unit_id", "kind", sa.literal("disagreement"), sa.true()),
        (labels, "unit_id", "label", sa.literal("adjudication"), decided),
    )
    queries = [
        sa.select(
            table.c.created_at,
            (table.c.rater_id if table is labels else table.c.done_by).label("done_by"),
            kind.label("kind"),
            (about if isinstance(about, sa.ColumnElement) else table.c[about]).label("about"),
            table.c[detail].label("detail"),
        ).where(wanted)
        for table, about, detail, kind, wanted in sources
    ]
    table = store.table(sa.union_all(*queries))  # type: ignore[arg-type]
    table = table[::-1].sort_values("created_at", ascending=False, kind="stable")
    table["done_by"] = table["done_by"].str.removeprefix("adjudicator:")
    return table.reset_index(drop=True)


# Looks: each at new labels is another chance to be wrong, so they are counted. Looking again at the
# same labels is the same look.


def labels_hash(ratings: pd.DataFrame) -> str:
    """Return a hash of people's labels (of one rubric) that the order of rows does not change."""
    people = ratings.loc[ratings["rater_kind"] == "human", _HASHED].sort_values(_HASHED)
    return hashlib.sha256(people.to_csv(index=False).encode()).hexdigest()


def look_numbers(store: Store, present: Mapping[str, str], *, record: bool) -> dict[str, int]:
    """Return the number of this look, by rubric, from the hashes of people's labels as they are
    now. A look at new labels is logged if `record`; else its number is 0, for then it is not
    counted.
    """
    with store.write() if record else store.read() as connection:
        known = _known(connection)
        numbers = {}
        for rubric, digest in present.items():
            seen = known.setdefault(rubric, [])
            if digest not in seen and record:
                append(connection, look_events, {"rubric": rubric, "labels_hash": digest})
                seen.append(digest)
            numbers[rubric] = seen.index(digest) + 1 if digest in seen else 0
    return numbers


def coming_looks(store: Store, present: Mapping[str, str]) -> dict[str, int]:
    """Return the number that a look at these labels has, or would have, by rubric; logs nothing."""
    with store.read() as connection:
        known = _known(connection)
    looks = {rubric: [*known.get(rubric, []), digest] for rubric, digest in present.items()}
    return {rubric: looks[rubric].index(digest) + 1 for rubric, digest in present.items()}


def _known(connection: sa.Connection) -> dict[str, list[str]]:
    """The hashes of the labels looked at so far, by rubric, each once and in order."""
    query = sa.select(look_events.c.rubric, look_events.c.labels_hash)
    known: dict[str, list[str]] = {}
    for rubric, digest in connection.execute(query.order_by(look_events.c.event_id)):
        if digest not in known.setdefault(rubric, []):
            known[rubric].append(digest)
    return known


@dataclass(frozen=True, kw_only=True)
class TunedThreshold:
    """A grader's threshold that was tuned on the labels of `clusters` (ids of pairs). It has the
    best `objective` against the `reference` ("humans", or a rater) and replaces `instead_of`, the
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


TUNED_THRESHOLDS = EventLog(threshold_events, TunedThreshold)


# Draws of the sample with known probabilities. A study whose sample was only ever drawn by chance
# has none: there all pairs were equally likely.

WAVES = EventLog(sample_waves, Wave)


def inclusion_so_far(store: Store) -> Mapping[str, float]:
    """Return each pair's probability of being picked and labelled by now; empty where all were
    equal. A pair counts as labelled when any person has labelled it on any rubric: all rubrics of a
    pair are handed out together.
    """
    if not (waves := WAVES.all(store)):
        return {}
    query = sa.select(labels.c.unit_id).where(labels.c.rater_kind == "human").distinct()
    seen = {parse_unit_id(unit)[0] for unit in store.values(query)}
    shares = [len(seen.intersection(wave.taken)) / max(len(wave.taken), 1) for wave in waves]
    return inclusion(waves, shares if any(shares) else ())
