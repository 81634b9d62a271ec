"""Votes between two models' answers, as MT-Bench and Chatbot Arena publish them: a JSON line each.

Zheng, L., Chiang, W.-L., Sheng, Y. et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot
Arena. FastChat writes the votes of a model that saw both orders as `g1_winner` and `g2_winner`.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, plain_kind
from evenhand.exchange.readers.source import Record, Source, objects, text_of
from evenhand.exchange.readers.texts import said
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
    tie, where a is the model whose name comes first, whichever was shown first.
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


def items(source: Source) -> ItemTable | None:
    """Each model's answer to a question at one turn is an item, the question a cluster."""
    return answers(source, source.records()) if recognises(source) else None


def answers(source: Source, records: list[Record]) -> ItemTable:
    """Read the answers that were compared, each once. Raises InputError where votes have none."""
    rows = ItemRows(source)
    for pair in comparisons(records):
        for side in ("a", "b"):
            rows.add(
                f"{pair['item_id']}/{pair[f'model_{side}']}",
                {"prompt": pair["question"], "response": pair[f"answer_{side}"]},
                subject=pair[f"model_{side}"],
                cluster=pair["question_id"],
            )
    try:
        return rows.items(written("exchange.pair_votes_items"), "question_id")
    except InputError:
        raise InputError(
            f"{source.name} holds votes without the answers that were compared; name a file with "
            "conversation_a and conversation_b, as lmsys/mt_bench_human_judgments has them"
        ) from None


def comparisons(records: list[Record]) -> list[dict[str, str]]:
    """Return what was compared, each pair of answers once: `item_id`, `question_id`, `question`,
    `answer_a`, `answer_b`, `model_a` and `model_b`. Model a is the one whose name comes first, as
    in the ratings of `read`.
    """
    found: dict[str, dict[str, str]] = {}
    for vote in records:
        question, turn = _question(vote)
        at = 2 * (int(turn) if turn.isdecimal() and len(turn) < 3 else 1) - 2
        both = {
            text_of(vote.get(f"model_{side}")): objects(vote.get(f"conversation_{side}"))
            for side in ("a", "b")
        }
        one, two = min(both), max(both)
        key = f"{question}/{turn}/{one}/{two}"
        asked, first, second = (
            _cell(both[name][place : place + 1])
            for name, place in ((one, at), (one, at + 1), (two, at + 1))
        )
        if question and one != two and first and second:
            pair = {"question_id": question, "question": asked, "answer_a": first}
            pair |= {"answer_b": second, "model_a": one, "model_b": two}
            found.setdefault(key, {"item_id": f"{question}/{turn}", **pair})
    return list(found.values())


def _cell(messages: list[Record]) -> str:
    text = said(messages, ()) if messages else ""
    return text if isinstance(text, str) else ""


def _question(vote: Record) -> tuple[str, str]:
    """The id of the question, and its turn."""
    question = text_of(vote.get("question_id") or vote.get("conversation_id"))
    return question, text_of(vote.get("turn")) or "1"


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
    question, turn = _question(vote)
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
    shown = models[::-1] if swapped else models
    rows.add(
        f"{question}/{turn}/{one}/{two}" if question and one != two else "",
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
