"""Graders' replies: word for word, and the facts that identify each reply."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from evenhand.study.store.grades import TRANSIENT_REASONS
from evenhand.study.store.schema import attacked_grades, grades
from evenhand.study.store.store import Store
from evenhand.texts import written

_AT_ONCE = 400
"""Units in one query."""

About = tuple[str, str, str]
"""(rubric, unit id, grader)."""


def known_replies(store: Store, rater_id: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Return the facts that identify each reply a grader gave, under attack too, by
    `Question.prompted`.
    """
    asked = ("unit_id", "rubric", "order")
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    with store.read() as connection:
        for table, names in (
            (grades, asked),
            (attacked_grades, (*asked, "attack", "target", "side")),
        ):
            facts = table.c.provenance
            query = sa.select(
                *(table.c[name] for name in names),
                facts["reply_id"].as_string(),
                facts["created"].as_float(),
                facts["choice"].as_integer(),
            ).where(table.c.rater_id == rater_id, table.c.unscored_reason.not_in(TRANSIENT_REASONS))
            for *prompted, reply_id, created, choice in connection.execute(query):
                made_out = {"reply_id": reply_id, "created": created, "choice": choice}
                found.setdefault(tuple(prompted), []).append(made_out)
    return found


def gave_without_reasoning(store: Store, rater_id: str) -> bool:
    """Return True if a grader gave token probabilities when asked with reasoning effort none."""
    with store.read() as connection:
        for table in (grades, attacked_grades):
            effort = table.c.provenance["settings", "reasoning_effort"].as_string()
            gave = sa.select(table.c.event_id).where(
                table.c.rater_id == rater_id, table.c.prob_method == "logprobs", effort == "none"
            )
            if connection.execute(gave.limit(1)).first():
                return True
    return False


def asked_by(store: Store, rater_id: str) -> str:
    """Return how the grader's latest label that was not read from token probabilities was asked
    for; "" if there is none yet.
    """
    facts = grades.c.provenance["asked_by"].as_string()
    query = (
        sa.select(facts)
        .where(grades.c.rater_id == rater_id, grades.c.label != "", facts != "")
        .where(grades.c.prob_method != "logprobs")
        .order_by(grades.c.event_id.desc())
    )
    with store.read() as connection:
        return connection.execute(query.limit(1)).scalar() or ""


def raw_replies(
    store: Store, wanted: Sequence[About], accepted: Mapping[str, Collection[str]]
) -> dict[About, list[str]]:
    """Return the latest reply to every order and draw of each grade wanted, by (rubric, unit id,
    grader).

    Only replies under a text that `accepted` (rubric -> hashes) names; a reply that was given
    several times stands once, and one without words not at all. Of a reply with a reason that alone
    is shown, and whether the sides were exchanged, which a reason speaks of.
    """
    keys, latest = set(wanted), dict[tuple[About, str, int], str]()
    units = list(dict.fromkeys(unit for _, unit, _ in wanted))
    columns = [
        grades.c[name]
        for name in ("rubric", "unit_id", "rater_id", "order", "draw", "rubric_hash", "raw")
    ]
    columns.append(grades.c.provenance["reason"].as_string())
    query = sa.select(*columns).order_by(grades.c.event_id)
    with store.read() as connection:
        for start in range(0, len(units), _AT_ONCE):
            some = grades.c.unit_id.in_(units[start : start + _AT_ONCE])
            for row in connection.execute(query.where(some)):
                rubric, unit, grader, order, draw, digest, raw, reason = row
                key = (rubric, unit, grader)
                if key in keys and digest in accepted.get(rubric, ()):
                    latest[key, order, draw] = _with_reason(reason, order) if reason else raw
    found: dict[About, list[str]] = {}
    for (key, _, _), raw in sorted(latest.items()):
        if raw.strip() and raw not in found.setdefault(key, []):
            found[key].append(raw)
    return {key: said for key, said in found.items() if said}


def _with_reason(reason: str, order: str) -> str:
    exchanged = order == "ba"
    return written("disagreement.reason_ba" if exchanged else "disagreement.reason", reason=reason)
