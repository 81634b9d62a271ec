"""Facts that evenhand's own writers and scorer store in the metadata of other tools' files."""

from __future__ import annotations

import json

from evenhand.exchange.readers.source import Record, text_of
from evenhand.study.tables.ratings import RATER_KINDS

_CARRIED = (
    "p_positive", "prob_method", "order", "draw", "seconds", "unscored_reason", "rubric_hash",
)  # fmt: skip


def claimed(metadata: object) -> Record:
    """The columns of a rating in it, and `rater_id`, `rubric` and a known `rater_kind`.

    >>> claimed({"rater_id": "ann", "rater_kind": "robot", "topic": "tax"})
    {'rater_id': 'ann'}
    """
    if not isinstance(metadata, dict):
        return {}
    names = ("rater_id", "rubric", *_CARRIED)
    found = {name: text for name in names if (text := text_of(metadata.get(name)))}
    if (kind := text_of(metadata.get("rater_kind"))) in RATER_KINDS:
        found["rater_kind"] = kind
    if isinstance(shares := metadata.get("probabilities"), dict):
        found["probabilities"] = json.dumps({name: _number(each) for name, each in shares.items()})
    return found


def _number(share: object) -> float | None:
    try:
        return float(text_of(share))
    except ValueError:
        return None
