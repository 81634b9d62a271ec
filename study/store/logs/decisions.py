"""What was decided in a study and by whom: the lead's acts, looks at the verdict, tuned
thresholds, and draws of the sample. Append-only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from evenhand.study.prompts.sampling import Wave, inclusion
from evenhand.study.prompts.units import parse_unit_id
from evenhand.study.store.database import Database
from evenhand.study.store.events import EventLog, append
from evenhand.study.store.grades import utc_now
from evenhand.study.store.logs.improvements import KINDS as IMPROVEMENTS
from evenhand.study.store.logs.improvements import PROPOSED
from evenhand.study.store.schema import (
    flag_events,
    labels,
    lead_events,
    look_events,
    sample_waves,
    sorted_disagreements,
    threshold_events,
)
from evenhand.study.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

Act = Literal[
    "account", "backup", "export", "file", "grades", "import", "invite", "link", "place",
    "responses", "rewording", "sample", "settings", "store", "study", "threshold",
]  # fmt: skip
"""Acts logged only here; `lead_events` has decisions about raters, links and logins too."""
ACT_COLUMNS = ("created_at", "done_by", "kind", "about", "detail")
_NO_ACTS = ("used", "logged_out", PROPOSED, *IMPROVEMENTS)
_TOLD = ["unit_id", "rater_id", "label", "order", "draw"]


# Acts: who, when, what; decisions that have a table of their own are read from there


def note_act(store: Database, kind: Act, about: str, detail: str, done_by: str) -> None:
    """Append an act of a lead; `about` is the person or thing it concerns."""
    event = {"kind": kind, "rater_id": about, "reason": detail, "done_by": done_by}
    with store.write() as connection:
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
            event = {"kind": "settings", "rater_id": "study.toml", "reason": digest}
            append(connection, lead_events, event | {"done_by": done_by})


def note_files(
    connection: sa.Connection, done_by: str, changed: Mapping[str, tuple[str, str]]
) -> None:
    """Append, within a `write()`, that a lead changed files of the study: by its name each file's
    new text, and what is new in it.
    """
    for name, (text, said) in changed.items():
        is_settings = name == "study.toml"
        detail = f"{_settings_digest(text)} {said}" if is_settings else said
        kind: Act = "settings" if is_settings else "file"
        event = {"kind": kind, "rater_id": name, "reason": detail, "done_by": done_by}
        append(connection, lead_events, event)


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
    found = store.table(sa.union_all(*queries))  # type: ignore[arg-type]
    found = found[::-1].sort_values("created_at", ascending=False, kind="stable")
    return found.assign(done_by=found["done_by"].str.removeprefix("adjudicator:")).reset_index(
        drop=True
    )


# Looks: each at new labels is another chance to be wrong, so they are counted. Looking again at the
# same labels is the same look.


def labels_hash(ratings: pd.DataFrame) -> str:
    """Return a hash of people's labels (of one rubric) that the order of rows does not change."""
    people = ratings.loc[ratings["rater_kind"] == "human", _TOLD].sort_values(_TOLD)
    return hashlib.sha256(people.to_csv(index=False).encode()).hexdigest()


def look_numbers(store: Store, present: Mapping[str, str], *, record: bool) -> dict[str, int]:
    """Return the number of this look, by rubric, from the hashes of people's labels as they are
    now.

    A look at new labels is logged if `record`; else its number is 0, for then it is not counted.
    """
    with store.write() if record else store.read() as connection:
        known = _known(connection)
        found = {}
        for rubric, digest in present.items():
            seen = known.setdefault(rubric, [])
            if digest not in seen and record:
                append(connection, look_events, {"rubric": rubric, "labels_hash": digest})
                seen.append(digest)
            found[rubric] = seen.index(digest) + 1 if digest in seen else 0
    return found


def coming_looks(store: Store, present: Mapping[str, str]) -> dict[str, int]:
    """Return the number that a look at these labels has, or would have, by rubric; logs nothing."""
    with store.read() as connection:
        known = _known(connection)
    return {
        rubric: [*known.get(rubric, []), digest].index(digest) + 1
        for rubric, digest in present.items()
    }


def _known(connection: sa.Connection) -> dict[str, list[str]]:
    """The hashes of the labels looked at so far, by rubric, each once and in order."""
    query = sa.select(look_events.c.rubric, look_events.c.labels_hash)
    known: dict[str, list[str]] = {}
    for rubric, digest in connection.execute(query.order_by(look_events.c.event_id)):
        if digest not in known.setdefault(rubric, []):
            known[rubric].append(digest)
    return known


# Tuned thresholds, with the labels that each of them rests on


@dataclass(frozen=True, kw_only=True)
class TunedThreshold:
    """A grader's threshold that was tuned on the labels of `clusters` (ids of pairs).

    It has the best `objective` against the `reference` ("humans", or a rater) and replaces
    `instead_of`, the rubric's threshold or a declared one.
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
    equal.

    A pair counts as labelled when any person has labelled it on any rubric: all rubrics of a pair
    are handed out together.
    """
    waves = WAVES.all(store)
    if not waves:
        return {}
    with store.read() as connection:
        query = sa.select(labels.c.unit_id).where(labels.c.rater_kind == "human").distinct()
        seen = {parse_unit_id(unit)[0] for unit in connection.execute(query).scalars()}
    shares = [len(seen.intersection(wave.taken)) / max(len(wave.taken), 1) for wave in waves]
    return inclusion(waves, shares if any(shares) else ())
