"""Votes between two models' answers, as MT-Bench and Chatbot Arena publish them: a JSON line each.

Zheng, L., Chiang, W.-L., Sheng, Y. et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot
Arena. FastChat writes the votes of a model that saw both orders as `g1_winner` and `g2_winner`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from evenhand.exchange.readers.rows import Export, Rows, plain_kind
from evenhand.exchange.readers.source import Record, Source, text_of
from evenhand.texts import written

_NAMES = (("model_a", "model_b", "winner"), ("model_1", "model_2", "g1_winner"))
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")


def recognises(source: Source) -> bool:
    return are_votes(source.first)


def are_votes(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes."""
    return any(all(name in names for name in each) for each in _NAMES)


def read(source: Source) -> Export:
    """A question, its turn and two models make a unit, the question a cluster. Labels are a, b and
    tie, where a is the model whose name comes first (`subject_a`), whichever was shown first.
    """
    return votes(source, source.records())


def votes(source: Source, records: list[Record]) -> Export:
    """Read votes from records, in whatever file they were stored."""
    rows = Rows(source)
    for vote in records:
        if "g1_winner" in vote:
            models = text_of(vote.get("model_1")), text_of(vote.get("model_2"))
            _add(rows, vote, models, vote.get("g1_winner"), vote.get("judge"))
            _add(rows, vote, models, vote.get("g2_winner"), vote.get("judge"), swapped=True)
        else:
            models = text_of(vote.get("model_a")), text_of(vote.get("model_b"))
            _add(rows, vote, models, vote.get("winner"), vote.get("judge"))
    return rows.export(written("exchange.pair_votes"))


def _add(
    rows: Rows,
    vote: Record,
    models: tuple[str, str],
    winner: object,
    judge: object,
    *,
    swapped: bool = False,
) -> None:
    """`models` are called a and b, or 1 and 2, in the vote; where `swapped`, the second was shown
    first.
    """
    one, two = sorted(models)
    question = text_of(vote.get("question_id") or vote.get("conversation_id"))
    turn = text_of(vote.get("turn")) or "1"
    won = {"model_a": models[0], "model_1": models[0], "model_b": models[1], "model_2": models[1]}
    said = text_of(winner)
    if said.startswith("tie (inconsistent"):  # two orders, two answers: no one label
        value, reason = None, "order_disagreement"
    elif said == "error":
        value, reason = None, "error"
    elif said.startswith("tie"):
        value, reason = "tie", ""
    else:
        value, reason = {one: "a", two: "b"}.get(won.get(said, "")), ""
    rater = _judge(judge)
    unit = f"{question}/{turn}/{one}/{two}" if question and one != two else ""
    rows.describe(unit, {"subject_a": one, "subject_b": two})
    shown = models[::-1] if swapped else models
    rows.add(
        unit,
        rater,
        "human" if _PERSON.fullmatch(rater) else plain_kind(rater),
        value,
        order="ab" if shown == (one, two) else "ba",
        unscored_reason=reason,
        cluster_id=question,
    )


def _judge(judge: object) -> str:
    """The judge's name; FastChat has a list of the model and the kind of prompt."""
    parts = judge if isinstance(judge, list) else [judge]
    return ":".join(filter(None, map(text_of, parts)))
