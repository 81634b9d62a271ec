"""Votes between two models' answers, as MT-Bench and Chatbot Arena publish them: a JSON line each.

Zheng, L., Chiang, W.-L., Sheng, Y. et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot
Arena. FastChat writes the votes of a model that saw both orders as `g1_winner` and `g2_winner`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from evenhand.errors import InputError
from evenhand.exchange.readers.items import ItemRows, ItemTable
from evenhand.exchange.readers.rows import Export, Rows, plain_kind
from evenhand.exchange.readers.source import Record, Source, columns_of, records_of, text_of
from evenhand.exchange.readers.texts import Text, messages_in, said
from evenhand.study.tables.formats import read_table
from evenhand.texts import written

_NAMES = (("model_a", "model_b", "winner"), ("model_1", "model_2", "g1_winner"))
_SCORES = ("question_id", "model", "judge", "score")
"""Columns of FastChat's scores of single answers."""
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")
_VOTERS = ("judge", "judge_hash", "user_id", "evaluation_session_id")
"""Columns that say who voted; Arena has kept several."""
_VOTER = "arena_user"
_BOTH_BAD = ("both_bad", "bothbad", "tie (bothbad)", "tie (both bad)")


def recognises(source: Source) -> bool:
    return are_votes(source.first)


def are_votes(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes, or of scores of single answers."""
    return any(all(name in names for name in each) for each in (*_NAMES, _SCORES))


def have_answers(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes with the answers beside them."""
    return are_votes(names) and {"conversation_a", "conversation_b"} <= set(names)


def read(source: Source) -> Export:
    """A question, its turn and two models make a unit, the question a cluster. Labels are a, b and
    tie, where a is the model whose name comes first (`subject_a`), whichever was shown first. In a
    file of scores a question, its turn and one model make a unit.
    """
    return votes(source, source.records())


def votes(source: Source, records: list[Record]) -> Export:
    """Read votes from records, in whatever file they were stored."""
    rows = Rows(source)
    if records and all(name in records[0] for name in _SCORES):
        for score in records:
            _add_score(rows, score)
        return rows.export(written("exchange.single_scores"))
    for vote in records:
        if "g1_winner" in vote:
            models = text_of(vote.get("model_1")), text_of(vote.get("model_2"))
            _add(rows, vote, models, vote.get("g1_winner"))
            _add(rows, vote, models, vote.get("g2_winner"), swapped=True)
        else:
            models = text_of(vote.get("model_a")), text_of(vote.get("model_b"))
            _add(rows, vote, models, vote.get("winner"))
    if bad := sum(text_of(vote.get("winner")) in _BOTH_BAD for vote in records):
        rows.note(written("exchange.both_bad", count=bad))
    if records and not any(_voter(vote) for vote in records):
        rows.note(written("exchange.one_voter", name=_VOTER))
    return rows.export(written("exchange.pair_votes"))


def items(source: Source) -> ItemTable | None:
    """Each model's answer to a question at one turn is an item, the question a cluster."""
    if not have_answers(source.first) and "g1_winner" not in source.first:
        return None  # the answers go by other names: a table
    return answers(source, source.records())


def answers(source: Source, records: list[Record]) -> ItemTable:
    """Read the answers that were compared, each once. Raises InputError where votes have none."""
    rows = ItemRows(source)
    for unit, question, texts in _compared(records):
        for model, answer in texts.items():
            rows.add(
                f"{unit.rpartition('/')[0].rpartition('/')[0]}/{model}",
                {"prompt": question, "response": answer},
                subject=model,
                cluster=unit.partition("/")[0],
            )
    return _found(rows, written("exchange.pair_votes_items"), source)


def pairs(source: Source) -> ItemTable | None:
    """Read what was compared, a row for each two answers: `question`, `answer_a`, `answer_b`,
    `model_a` and `model_b`, where model a is the one whose name comes first, as in ratings. A file
    with each two answers once is that table already. None for another kind of file.
    """
    columns = columns_of(source)
    if not have_answers(columns or source.first):
        return None
    records = records_of(source, columns) if columns else source.records()
    compared = list(_compared(records))
    if len({unit for unit, *_ in compared}) == len(records) and source.document is None:
        return ItemTable(read_table(source.path))
    rows = ItemRows(source, fields=True)
    for unit, question, texts in compared:
        (one, first), (two, second) = texts.items()
        rows.add(
            unit,
            {"question": question, "answer_a": first, "answer_b": second},
            cluster=unit.partition("/")[0],
            about={"model_a": one, "model_b": two},
        )
    return _found(rows, written("exchange.pair_votes_pairs"), source)


def _found(rows: ItemRows, taken: str, source: Source) -> ItemTable:
    try:
        return rows.items(taken, "question_id")
    except InputError:
        raise InputError(
            f"{source.name} holds votes without the answers that were compared; name a file with "
            "conversation_a and conversation_b, as lmsys/mt_bench_human_judgments has them"
        ) from None


def _compared(records: list[Record]) -> Iterator[tuple[str, str, dict[str, Text]]]:
    """The unit of each vote, the question and the answers by model, in the order of their names. An
    answer at a later turn is all that followed the question.
    """
    for vote in records:
        question, turn = _question(vote)
        end = 2 * (int(turn) if turn.isdecimal() and len(turn) < 3 else 1)
        talks = {
            text_of(vote.get(f"model_{side}")): messages_in(vote.get(f"conversation_{side}")) or []
            for side in ("a", "b")
        }
        one, two = min(talks), max(talks)
        asked = said(talks[one][:1], ())
        texts = {model: said(talks[model][1:end], ()) for model in (one, two) if talks[model][1:]}
        if question and len(texts) == 2 and isinstance(asked, str):
            yield f"{question}/{turn}/{one}/{two}", asked, texts


def _question(vote: Record) -> tuple[str, str]:
    """The id of the question, and its turn."""
    question = text_of(vote.get("question_id") or vote.get("conversation_id") or vote.get("id"))
    return question, text_of(vote.get("turn")) or "1"


def _add(
    rows: Rows,
    vote: Record,
    models: tuple[str, str],
    winner: object,
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
    elif said.startswith("tie") or said in _BOTH_BAD:
        value, reason = "tie", ""
    else:
        value, reason = {one: "a", two: "b"}.get(won.get(said, "")), ""
    rater = _voter(vote) or _VOTER
    unit = f"{question}/{turn}/{one}/{two}" if question and one != two else ""
    rows.describe(unit, {"subject_a": one, "subject_b": two})
    shown = models[::-1] if swapped else models
    rows.add(
        unit,
        rater,
        _kind(vote, rater),
        value,
        order="ab" if shown == (one, two) else "ba",
        unscored_reason=reason,
        cluster_id=question,
        created_at=_time(vote),
    )


def _add_score(rows: Rows, score: Record) -> None:
    """Add a judge's score of one answer; -1 stands for an answer of the judge without a score."""
    question, turn = _question(score)
    model, rater = text_of(score.get("model")), _voter(score)
    failed = text_of(score.get("score")) in ("-1", "-1.0")
    rows.add(
        f"{question}/{turn}/{model}" if question and model else "",
        rater,
        _kind(score, rater),
        None if failed else score.get("score"),
        unscored_reason="error" if failed else "",
        cluster_id=question,
        subject=model,
        created_at=_time(score),
    )


def _voter(vote: Record) -> str:
    """The name of who voted; "" where a vote has none. FastChat has a list of the judge and the
    kind of prompt.
    """
    named = next((vote[name] for name in _VOTERS if vote.get(name)), None)
    parts = named if isinstance(named, list) else [named]
    return ":".join(filter(None, map(text_of, parts)))


def _kind(vote: Record, rater: str) -> str:
    """The kind of who voted: Arena's columns but `judge` name its visitors."""
    if not vote.get("judge") or _PERSON.fullmatch(rater):
        return "human"
    return plain_kind(rater)


def _time(vote: Record) -> object:
    return vote.get("tstamp") or vote.get("timestamp")
