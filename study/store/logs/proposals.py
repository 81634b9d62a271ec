"""What models proposed for a grader: every request that was answered, and what came back. Kept
before anybody reads it, append-only, among the lead's events.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from evenhand.study.store.events import append
from evenhand.study.store.grades import TRANSIENT_REASONS
from evenhand.study.store.schema import lead_events

if TYPE_CHECKING:
    from evenhand.study.store.database import Database

PROPOSED = "improve proposed"


@dataclass(frozen=True, kw_only=True)
class ProposalAttempt:
    """What came of a request for words: the model asked, the request's digest and what was sent;
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
    with store.write() as connection:
        for each in attempts:
            text = json.dumps(asdict(each), sort_keys=True, ensure_ascii=False, allow_nan=False)
            event = {"kind": PROPOSED, "rater_id": each.rubric, "reason": text, "done_by": ""}
            append(connection, lead_events, event)


def proposals_of(store: Database, rubric: str) -> dict[str, ProposalAttempt]:
    """Return the first answer to each request that need not be sent again, by its digest."""
    query = sa.select(lead_events.c.reason).order_by(lead_events.c.event_id)
    query = query.where(lead_events.c.kind == PROPOSED, lead_events.c.rater_id == rubric)
    found: dict[str, ProposalAttempt] = {}
    with store.read() as connection:
        for text in connection.execute(query).scalars():
            attempt = ProposalAttempt(**json.loads(text))
            if attempt.unscored_reason not in TRANSIENT_REASONS:
                found.setdefault(attempt.request, attempt)
    return found
