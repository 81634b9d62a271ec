"""Published data: votes between two models' answers, and datasets of Hugging Face."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.exchange.readers.annotation_tools import (
    items_of_dataset,
    questions_in,
    rows_of_dataset,
)
from evenhand.exchange.readers.rows import Export, ItemRows, ItemTable, Reader, Rows, plain_kind
from evenhand.exchange.readers.source import (
    MOST_BYTES,
    TOOLS,
    Record,
    Source,
    Written,
    as_written,
    inside,
    label_cell,
    text_of,
)
from evenhand.exchange.readers.texts import Text, messages_in, said
from evenhand.study.tables.formats import FIRST_ROW, read_table
from evenhand.study.tables.limits import check_arrow, check_parquet
from evenhand.texts import written

if TYPE_CHECKING:
    import pandas as pd

# ---- votes between two models' answers ----------------------------------------------------------
# As MT-Bench and Chatbot Arena publish them: a JSON line each. Zheng, L., Chiang, W.-L., Sheng, Y.
# et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot Arena. FastChat writes the votes
# of a model that saw both orders as `g1_winner` and `g2_winner`.
_VOTES = TOOLS["pair_votes"]
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")
_VOTER = "arena_user"


def are_votes(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes, or of scores of single answers."""
    return any(all(name in names for name in each) for each in (*_VOTES["names"], _VOTES["scores"]))


def have_answers(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes with the answers beside them."""
    return are_votes(names) and {"conversation_a", "conversation_b"} <= set(names)


def votes(rows: Rows, records: list[Record]) -> Export:
    """Read votes. A question, its turn and two models make a unit, the question a cluster. Labels
    are a, b and tie, where a is the model whose name comes first (`subject_a`), whichever was shown
    first. In a file of scores a question, its turn and one model make a unit.
    """
    if records and all(name in records[0] for name in _VOTES["scores"]):
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
    if bad := sum(text_of(vote.get("winner")) in _VOTES["both_bad"] for vote in records):
        rows.note(written("exchange.both_bad", count=bad))
    if records and not any(_voter(vote) for vote in records):
        rows.note(written("exchange.one_voter", name=_VOTER))
    return rows.export(written("exchange.pair_votes"))


def answers(rows: ItemRows, source: Source, records: list[Record]) -> ItemTable:
    """Read the answers that were compared: each model's to a question at one turn is an item, the
    question a cluster. Raises InputError where votes have none.
    """
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
    if not have_answers(source.columns or source.first):
        return None
    records = source.records(source.columns)
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
    rows: Rows, vote: Record, models: tuple[str, str], winner: object, *, swapped: bool = False
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
    elif said.startswith("tie") or said in _VOTES["both_bad"]:
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
    named = next((vote[name] for name in _VOTES["voters"] if vote.get(name)), None)
    parts = named if isinstance(named, list) else [named]
    return ":".join(filter(None, map(text_of, parts)))


def _kind(vote: Record, rater: str) -> str:
    """The kind of who voted: Arena's columns but `judge` name its visitors."""
    if not vote.get("judge") or _PERSON.fullmatch(rater):
        return "human"
    return plain_kind(rater)


def _time(vote: Record) -> object:
    return vote.get("tstamp") or vote.get("timestamp")


# ---- datasets of Hugging Face -------------------------------------------------------------------
# The folder of `save_to_disk`, or of a repository with Parquet files, and a single Parquet or Arrow
# file of Argilla, or of votes between two models.
_SUFFIXES = (".arrow", ".parquet")
_OURS = "ratings.parquet"
"""The one of several tables that has ratings, in a folder that evenhand wrote."""
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")


def _is_hugging_face(source: Source) -> bool:
    if source.path.is_dir():
        return bool(_files(source.path))
    if source.path.suffix.casefold() == ".arrow":
        return source.head.startswith(_ARROW)
    names = source.columns
    return bool(questions_in(names)) or are_votes(names)


def _read_hugging_face(rows: Rows, source: Source) -> Export:
    """A table, long or wide, as in a CSV file, labels by name; or Argilla's records."""
    columns, records, files = _dataset(source)
    if questions := questions_in(columns):
        return rows_of_dataset(source, records, questions)
    if are_votes(columns):
        return votes(rows, records)
    return Export(_frame(columns, records), [written("exchange.hugging_face", files=files)])


def _hugging_face_items(rows: ItemRows, source: Source) -> ItemTable:
    """A row is an item, with the columns of a CSV file; or Argilla's records, or answers that were
    compared.
    """
    columns, records, files = _dataset(source)
    if questions_in(columns):
        return items_of_dataset(source, records)
    if have_answers(columns):
        return answers(rows, source, records)
    notes = [written("exchange.hugging_face", files=files)]
    return ItemTable(_frame(columns, records), notes)


def _frame(columns: list[str], records: list[dict[str, Any]]) -> pd.DataFrame:
    import pandas as pd

    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    cells = {name: [label_cell(each[name]) for each in records] for name in columns}
    return pd.DataFrame(cells, index=index, dtype=str)


def _dataset(source: Source) -> tuple[list[str], list[dict[str, Any]], int]:
    """The columns and rows of the largest table among the files, and how many files there are."""
    files = _files(source.path) if source.path.is_dir() else [source.path]
    if not files:
        raise InputError(f"{source.name} holds no Arrow and no Parquet file")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    tables: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    try:
        for file in files:
            table = _table(file)
            tables[tuple(table.column_names)].append(_records(table, file))
    except InputError:
        raise
    except Exception as fault:  # pyarrow raises many kinds for a file that is damaged
        kind = type(fault).__name__
        raise InputError(f"{source.name}: {file.name} cannot be read ({kind})") from None
    columns, parts = max(tables.items(), key=lambda each: sum(map(len, each[1])))
    return list(columns), [record for part in parts for record in part], len(files)


def _files(folder: Path) -> list[Path]:
    """The data of a folder: in it, in `data`, or in a folder for each split or configuration."""
    if (folder / _OURS).is_file():
        return [folder / _OURS]
    return [
        path
        for pattern in ("*", "*/*", "*/*/*")
        for path in sorted(folder.glob(pattern))
        if path.suffix.casefold() in _SUFFIXES and path.is_file() and "cache-" not in path.name
    ]


def _table(file: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as parquet

    if file.suffix.casefold() != ".arrow":
        check_parquet(file)
        return parquet.read_table(file)
    with pa.memory_map(str(file)) as stream:
        is_file = file.read_bytes()[:6] == b"ARROW1"
        opened = pa.ipc.open_file(stream) if is_file else pa.ipc.open_stream(stream)
        table = opened.read_all()
        check_arrow(table, file.name)
        return table


def _records(table: Any, file: Path) -> list[dict[str, Any]]:
    """The rows as Python has them, numbers as texts, class labels by name."""
    names = _class_names(table, file)
    return [
        {
            name: _named(value, names[name]) if name in names else as_written(value)
            for name, value in row.items()
        }
        for row in table.to_pylist()
    ]


def _class_names(table: Any, file: Path) -> dict[str, list[str]]:
    """The names of a class label's numbers, by column, as `datasets` notes them."""
    noted = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    features = inside(json.loads(noted), "info", "features")
    beside = file.parent / "dataset_info.json"
    if features is None and beside.is_file():
        features = inside(json.loads(beside.read_text("utf-8")), "features")
    return {
        name: [str(each) for each in feature["names"]]
        for name, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }


def _named(value: Any, names: list[str]) -> Any:
    if isinstance(value, int):
        return Written(names[value]) if 0 <= value < len(names) else None
    return as_written(value)


PAIR_VOTES = Reader(
    lambda source: are_votes(source.first),
    lambda rows, source: votes(rows, source.records()),
    lambda rows, source: answers(rows, source, source.records()),
    # Where the answers go by other names it is a table.
    lambda source: have_answers(source.first) or "g1_winner" in source.first,
)
HUGGING_FACE = Reader(_is_hugging_face, _read_hugging_face, _hugging_face_items)
