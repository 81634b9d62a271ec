"""The log of the lead's acts: who, when, what. Events are only ever added; decisions that have a
table of their own are read from there.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

import sqlalchemy as sa

from evenhand.study.store.database import Database
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import flag_events, labels, lead_events, sorted_disagreements

if TYPE_CHECKING:
    import pandas as pd

Act = Literal[
    "account", "backup", "export", "grades", "import", "invite", "link", "place", "responses",
    "sample", "settings", "store", "study", "threshold",
]  # fmt: skip
"""Acts logged only here; `lead_events` has decisions about raters, links and logins too."""
COLUMNS = ("created_at", "done_by", "kind", "about", "detail")
_NO_ACTS = ("used", "logged_out")


def note_act(store: Database, kind: Act, about: str, detail: str, done_by: str) -> None:
    """Append an act of a lead; `about` is the person or thing it concerns."""
    event = {"kind": kind, "rater_id": about, "reason": detail, "done_by": done_by}
    with store.write() as connection:
        connection.execute(sa.insert(lead_events).values(event | {"created_at": utc_now()}))


def note_settings(store: Database, text: str, done_by: str = "") -> None:
    """Append that study.toml has changed since the study was last served. Anyone with write access
    may edit the file, so no author is recorded unless `done_by` names one.
    """
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    query = sa.select(lead_events.c.reason).where(lead_events.c.kind == "settings")
    with store.read() as connection:
        last = connection.execute(query.order_by(lead_events.c.event_id.desc())).scalar()
    if last != digest:
        note_act(store, "settings", "study.toml", digest, done_by)


def acts(store: Database) -> pd.DataFrame:
    """Return the lead's acts in `COLUMNS`, the latest first."""
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
