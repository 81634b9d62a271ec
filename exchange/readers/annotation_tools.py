"""Labels of people and models: exports of Argilla, Label Studio, Potato, Prodigy and doccano;
votes between two models' answers as they are published; and datasets of Hugging Face.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import (
    LONGEST_LABEL,
    RESPONSES,
    Export,
    ItemRows,
    ItemTable,
    Reader,
    Rows,
    has_fields,
    one_line,
    plain_kind,
    users_fields,
)
from evenhand.exchange.readers.source import (
    MOST_BYTES,
    TOOLS,
    Record,
    Source,
    Text,
    Written,
    as_written,
    fields_in,
    inside,
    label_cell,
    messages_in,
    objects,
    only,
    parsed,
    readable,
    records_in,
    text_in,
    text_of,
)
from evenhand.lazy import pa, pd, pq
from evenhand.study.tables.formats import FIRST_ROW, check_arrow, check_parquet, read_table
from evenhand.texts import written

# ---- Argilla ------------------------------------------------------------------------------------
# Records as `Dataset.records.to_json` and `Dataset.to_disk` write them.
_NO_AGENT = "suggestion"
_RECORDS = "records.json"


def _read_argilla(rows: Rows, source: Source) -> Export:
    """Read responses as people's labels and suggestions as models'; a question is a rubric."""
    records = _argilla_records(source)
    for record in records:
        _add_record(rows, record)
    taken = written("exchange.argilla")
    responses = [response for record in records for _, response in _responses(record)]
    drafts_known = all("status" in response for response in responses)
    return rows.export(taken if drafts_known else f"{taken} {written('exchange.argilla_drafts')}")


def _argilla_items(rows: ItemRows, source: Source) -> ItemTable:
    """A record is an item, and raters read all of its fields."""
    shown: dict[str, None] = {}
    for record in _argilla_records(source):
        fields = users_fields(record.get("fields"))
        shown |= dict.fromkeys(fields)
        rows.add(_unit(record), fields, about=record.get("metadata"))
    return rows.items(written("exchange.argilla_items"), show=list(shown))


def _argilla_records(source: Source) -> list[Record]:
    inner = Source(source.path / _RECORDS) if source.path.is_dir() else source
    if inner.path.stat().st_size > MOST_BYTES:
        raise InputError(f"{source.name} is too large; export fewer records")
    return inner.records()


def _unit(record: Record) -> object:
    return record.get("id") or record.get("external_id") or record.get("_server_id")


def _add_record(rows: Rows, record: Record) -> None:
    """Add the answers to a record."""
    unit = _unit(record)
    rows.describe(unit, record.get("metadata"))
    for question, response in _responses(record):
        status = text_of(response.get("status")) or "submitted"
        if status == "submitted":
            answer = only(response.get("value"))
            rows.add(unit, response.get("user_id"), "human", answer, question)
        else:
            reason = "drafts" if status == "draft" else "discarded"
            rows.leave_out(written(f"left_out.{reason}"))
    given = record.get("suggestions")
    if isinstance(given, dict):
        given = [fields_in(part) | {"question_name": name} for name, part in given.items()]
    for suggestion in objects(given):
        if (value := suggestion.get("value")) is not None:
            agent, asked = text_of(suggestion.get("agent")), suggestion.get("question_name")
            rows.add(unit, agent or _NO_AGENT, "model", only(value), text_of(asked))


def _responses(record: Record) -> list[tuple[str, Record]]:
    """List each response with its question. In Argilla 1 a record holds a list of them."""
    given = record.get("responses")
    if isinstance(given, dict):
        return [(name, answer) for name, answers in given.items() for answer in objects(answers)]
    return [
        (name, {**response, "value": inside(value, "value")})
        for response in objects(given)
        if isinstance(response.get("values"), dict)
        for name, value in response["values"].items()
    ]


# ---- Label Studio -------------------------------------------------------------------------------
# The export JSON (labelstud.io/guide/export); the others do not tell labels from a task's data.
_LABEL_STUDIO = TOOLS["label_studio"]


def _is_label_studio(source: Source) -> bool:
    return _is_task(source.first) or source.first.keys() >= {*_LABEL_STUDIO["ratings"]}


def _read_label_studio(rows: Rows, source: Source) -> None:
    """Read annotations as people's labels and predictions as models'; a control is a rubric."""
    if source.header or not _is_task(source.first):
        raise InputError(
            f"{source.name} is a table of Label Studio, which does not say which columns are "
            "labels; export the project as JSON, or name a column of labels: --format table "
            "--columns unit=id,rater=annotator,label=COLUMN --human NAME,..."
        )
    records = source.records()
    addresses, named = {}, []
    for record in records:
        for annotation in objects(record.get("annotations") or record.get("completions")):
            person = fields_in(annotation.get("completed_by"))
            if person.get("email"):  # exports of one project may name a person by either
                addresses[text_of(person.get("id"))] = person["email"]
        # Tasks of several projects may have one id.
        data = record["data"]
        unit = data.get("unit_id") or record.get("id") or record.get("inner_id")
        named.append((one_line(unit), data))
    for record, unit in zip(records, rows.units(named), strict=True):
        _add_task(rows, unit, record, addresses)


def _has_label_studio_items(source: Source) -> bool:
    is_export = _is_label_studio(source)
    if is_export and not _is_task(source.first):
        raise InputError(
            f"{source.name} is a table of Label Studio, with a row for each annotation; export the "
            "project as JSON"
        )
    first = source.first
    plain = isinstance(first.get("data"), dict) and first.keys() <= {*_LABEL_STUDIO["plain"]}
    return plain or is_export


def _label_studio_items(rows: ItemRows, source: Source) -> None:
    """A task is an item, its data are texts or facts by the names that they have there."""
    for record in source.records():
        data = fields_in(record.get("data"))
        task = text_of(record.get("id") or record.get("inner_id"))
        unit, ids = text_of(data.get("unit_id")) or task, {"task_id": task} if task else {}
        rows.add(unit, users_fields(data), item_id=task, ids=ids)


def _is_task(record: Record) -> bool:
    return isinstance(record.get("data"), dict) and (
        "annotations" in record or "completions" in record or "predictions" in record
    )


def _add_task(rows: Rows, unit: str, task: Record, addresses: Mapping[str, object]) -> None:
    rows.describe(unit, task["data"])
    for annotation in objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled") is True:
            rows.leave_out(written("left_out.cancelled"))
            continue
        person = annotation.get("completed_by")
        if isinstance(person, dict):
            person = person.get("email") or person.get("id")
        person = addresses.get(text_of(person), person)
        time = annotation.get("updated_at") or annotation.get("created_at")
        more = {"seconds": annotation.get("lead_time"), "created_at": time}
        _add_results(rows, unit, person, "human", annotation, more)
    if drafts := objects(task.get("drafts")):
        rows.leave_out(written("left_out.drafts"), len(drafts))
    predictions = task.get("predictions")
    for prediction in predictions if isinstance(predictions, list) else []:
        if not isinstance(prediction, dict):
            rows.leave_out(written("left_out.only_id"))
            continue
        more = {"created_at": prediction.get("created_at")}
        _add_results(rows, unit, prediction.get("model_version"), "model", prediction, more)


def _add_results(
    rows: Rows, unit: object, rater: object, kind: str, annotation: Record, more: Record
) -> None:
    given: dict[str, list[object]] = {}
    if annotation.get("result") == []:
        rows.leave_out(written("left_out.empty"))
    for result in objects(annotation.get("result")):
        form = text_of(result.get("type"))
        if form == "textarea":
            rows.leave_out(written("left_out.free_text"))
        elif form not in _LABEL_STUDIO["answers"]:
            rows.leave_out(written("left_out.regions"))
        else:
            answer = inside(result, "value", _LABEL_STUDIO["answers"][form])
            given.setdefault(text_of(result.get("from_name")), []).append(only(answer))
    for rubric, answers in given.items():
        rows.add(unit, rater, kind, only(answers), rubric, **more)


# ---- Potato -------------------------------------------------------------------------------------
# Its export (JSONL, CSV, TSV), and the folder with each annotator's answers.
_STATE, _OLD = "user_state.json", "annotated_instances.jsonl"
_POTATO = TOOLS["potato"]
_UNCHOSEN = (False, None, "", "false")
_KINDS = {"llm": "model", "tool": "model"}
_HEAD = {*_POTATO["ratings"]}
_FORMS = ({*_HEAD, "labels"}, {"user_id", "instance_id_to_label_to_value"})


def _is_potato(source: Source) -> bool:
    if source.path.is_dir():
        return next(_answers(source.path), None) is not None
    return {*source.header[:2]} == _HEAD or any(form <= source.first.keys() for form in _FORMS)


def _read_potato(rows: Rows, source: Source) -> None:
    """An instance is a unit, a scheme a rubric, a user a person, where the file says no other. The
    table that studies with Potato publish has a column for each question, beside columns about the
    instance and about the user, which say one thing for each of them.
    """
    if source.path.is_dir():
        for file in _answers(source.path):
            if file.stat().st_size <= MOST_BYTES:
                _add_file(rows, file)
        return
    records = source.records()
    for record in () if source.header else records:
        (_potato_add if "labels" in record else _add_state)(rows, record)
    for record in records if _is_dotted(source.header) else ():  # columns are `scheme.label`
        labels: dict[str, dict[str, str]] = {}
        for name, cell in record.items():
            scheme, dot, label = name.partition(".")
            if dot and cell and not label.startswith("_"):
                labels.setdefault(scheme, {})[label] = cell
        origin = {"kind": record.get("annotator_origin", "")}
        _potato_add(rows, record | {"labels": labels, "annotator_origin": origin})
    if not source.header or _is_dotted(source.header):
        return
    texts, questions = _columns(records)
    if not questions:
        raise InputError(
            f"{source.name} has a row for each user and instance of Potato, and no column tells "
            "users apart; name the column of labels: --format table --columns "
            f"unit=instance_id,rater=user_id,label={next(iter(records[0].keys() - _HEAD), 'label')}"
        )
    for record in records:
        unit, user = record["instance_id"], record["user_id"]
        rows.describe(unit, {name: record[name] for name in texts})
        for name in questions:
            rubric = name if len(questions) > 1 else ""
            rows.add(unit, user, plain_kind(user) or "human", record[name], rubric)
    rows.notes.append(written("exchange.potato_flat", questions=", ".join(questions)))


def _potato_items(rows: ItemRows, source: Source) -> None:
    """Read the texts of the published table; Potato's other files have answers without texts."""
    records = source.records() if source.header and not _is_dotted(source.header) else []
    texts, _ = _columns(records)
    if not texts:
        raise InputError(
            f"{source.name} holds answers of Potato without the texts that they are about; name "
            "the data file of the project (data_files in its configuration), which has them"
        )
    for record in records:
        rows.add(record["instance_id"], users_fields({name: record[name] for name in texts}))


def _is_dotted(header: Sequence[str]) -> bool:
    """Return True if a column is called after a scheme and a label, as the tool exports it."""
    return any("." in name.strip(".") for name in header)


def _columns(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """The columns that say one thing of each instance, and the answers: those that differ."""
    names = [name for name in (records[0] if records else {}) if name not in _HEAD]

    def constant(name: str, key: str) -> bool:
        first: Record = {}
        return all(row[name] == first.setdefault(row[key], row[name]) for row in records)

    of_unit = {name for name in names if constant(name, "instance_id")}
    of_user = {name for name in names if constant(name, "user_id")}
    short = [
        name
        for name in names
        if name not in of_unit | of_user
        and all(len(text_of(record[name])) <= LONGEST_LABEL for record in records)
    ]
    return [name for name in names if name in of_unit - of_user], short


def _answers(folder: Path) -> Iterator[Path]:
    """The answers of each annotator, who has a folder of their own."""
    for annotator in sorted(folder.iterdir()):
        files = [annotator / name for name in (_STATE, _OLD)] if annotator.is_dir() else []
        yield from [file for file in files if file.is_file()][:1]


def _add_file(rows: Rows, file: Path) -> None:
    content, user = file.read_bytes(), file.parent.name
    if file.name == _STATE:
        _add_state(rows, fields_in(parsed(content, f"{user}/{file.name}")))
        return
    for record in records_in(content, f"{user}/{file.name}"):
        given = {"instance_id": record.get("id"), "labels": record.get("label_annotations")}
        _potato_add(rows, given | {"user_id": user})


def _add_state(rows: Rows, state: Record) -> None:
    """A user's state: labels by instance, in newer ones as a list of scheme, label and value."""
    for unit, given in fields_in(state.get("instance_id_to_label_to_value")).items():
        labels = fields_in(given)
        for pair in given if isinstance(given, list) else ():
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict):
                of_scheme = labels.setdefault(text_of(pair[0].get("schema")), {})
                of_scheme[text_of(pair[0].get("name"))] = pair[1]
        _potato_add(rows, {"user_id": state.get("user_id"), "instance_id": unit, "labels": labels})


def _potato_add(rows: Rows, record: Record) -> None:
    kind = _KINDS.get(text_of(inside(record, "annotator_origin", "kind")), "human")
    for scheme, given in fields_in(record.get("labels")).items():
        nested = inside(given, "labels")  # some keep the answer one layer down
        given = nested if isinstance(nested, (dict, list)) else given
        if isinstance(given, list):
            given = {text_of(part): True for part in given}
        kept = given if isinstance(given, dict) else {"": given}
        kept = {name: value for name, value in kept.items() if value not in _UNCHOSEN}
        labels = [_label(name, kept[name]) for name in kept if name not in _POTATO["texts"]]
        if len(labels) < len(kept):
            rows.leave_out(written("left_out.free_text"))
        if labels or not kept:
            unit, user = record.get("instance_id"), record.get("user_id")
            rows.add(unit, user, kind, only(labels or None), scheme)


def _label(name: str, value: object) -> object:
    """The label chosen: mostly the name of the option; of a scale or a slider its value.

    >>> _label("yes", "yes"), _label("scale_3", "3"), _label("positive", True)
    ('yes', '3', 'positive')
    """
    is_value = name in _POTATO["values"] or name.startswith("scale_") or not name
    return Written(value) if is_value and isinstance(value, str) else name


# ---- Prodigy ------------------------------------------------------------------------------------
# The JSONL of `prodigy db-out`, choices and labels (prodi.gy/docs/api-interfaces).


def _read_prodigy(rows: Rows, source: Source) -> None:
    """An input is a unit, an annotator's session a person. Of a choice the label is the option, of
    one label to accept or reject it is the answer, and the label is the rubric.
    """
    for record in source.records():
        if (answer := text_of(record.get("answer"))) not in ("accept", "reject"):
            rows.leave_out(written("left_out.ignored"))
            continue
        value: object = record["answer"]
        accepted, rubric = record.get("accept"), text_of(record.get("label"))
        if isinstance(accepted, list) and record.get("options"):
            value, rubric = only((accepted if answer == "accept" else []) or None), ""
        elif "spans" in record and "label" not in record:
            value, rubric = [], ""
        unit, when = record.get("_input_hash"), record.get("_timestamp")
        rater = record.get("_annotator_id") or record.get("_session_id")
        rows.describe(unit, record.get("meta"))
        rows.add(unit, rater, "human", value, rubric, created_at=when)


def _prodigy_items(rows: ItemRows, source: Source) -> None:
    """An input is an item: the texts of the task by the names that they have there."""
    for record in source.records():
        names = [name for name in record if name not in ("answer", "label") and name[:1] != "_"]
        texts = users_fields({name: record[name] for name in names if type(record[name]) is str})
        rows.add(record.get("_input_hash"), texts, about=record.get("meta"))


# ---- doccano ------------------------------------------------------------------------------------
# The JSONL export, a ZIP archive with a file for each annotator.
_DOCCANO = TOOLS["doccano"]


def _is_doccano(source: Source) -> bool:
    if source.archive:
        names = source.archive.names
        return bool(names) and all(name.endswith(".jsonl") for name in names)
    first = source.first
    return (
        "id" in first
        and any(name in first for name in _DOCCANO["texts"])
        and (
            isinstance(first.get("label"), list)
            or any("user" in record for record in objects(first.get("annotations")))
        )
    )


def _read_doccano(rows: Rows, source: Source) -> Export:
    """An example is a unit, an annotator's file a rater. A shared set of labels names no rater."""
    for rater, record in _doccano_records(source):
        unit = record.get("id")
        rows.describe(unit, {name: record[name] for name in record if name not in ("id", "label")})
        by_user: dict[str, list[object]] = {}
        if isinstance(record.get("label"), list):
            by_user[rater.removesuffix(".jsonl")] = record["label"]
        for annotation in objects(record.get("annotations")):
            by_user.setdefault(text_of(annotation.get("user")), []).append(annotation.get("label"))
        for user, labels in by_user.items():
            label = only(labels or None)
            if user in _DOCCANO["together"] and not inside(record, "annotations"):
                rows.leave_out(written("left_out.shared"))
            elif isinstance(label, list) and label and isinstance(label[0], (list, dict)):
                rows.leave_out(written("left_out.regions"))
            else:
                rows.add(unit, user, "human", label)
    try:
        return rows.export(written("exchange.doccano"))
    except InputError as fault:
        if written("left_out.shared") not in str(fault):
            raise
        raise InputError(
            f"{source.name} comes from a project with shared annotation, whose export has lost who "
            "labelled what; turn shared annotation off, or rename its file after the one annotator"
        ) from None


def _doccano_items(rows: ItemRows, source: Source) -> None:
    """An example is an item, and raters read its text. A table with responses, too, is none."""
    read = ("id", "label", *_DOCCANO["texts"])
    for _, record in _doccano_records(source):
        text = next((record[name] for name in _DOCCANO["texts"] if name in record), None)
        about = {name: record[name] for name in record if name not in read}
        rows.add(record.get("id"), users_fields({"text": text}), about=about)


def _doccano_records(source: Source) -> Iterator[tuple[str, Record]]:
    """The annotator after whom a file is named, and each of its examples."""
    if source.archive is None:
        yield from ((source.path.stem, record) for record in source.records())
        return
    for name in source.archive.names:
        for record in records_in(source.archive.read(name), f"{source.name}, {name}"):
            yield PurePosixPath(name).stem, record


# ---- votes between two models' answers ----------------------------------------------------------
# As MT-Bench and Chatbot Arena publish them: a JSON line each. Zheng, L., Chiang, W.-L., Sheng, Y.
# et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot Arena.
_VOTES = TOOLS["pair_votes"]
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")
_VOTER = "arena_user"


def are_votes(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes."""
    return all(name in names for name in _VOTES["names"])


def have_answers(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes with the answers beside them."""
    return are_votes(names) and {"conversation_a", "conversation_b"} <= set(names)


def votes(rows: Rows, source: Source, records: list[Record]) -> Export:
    """Read votes. A question, its turn and two models make a unit, the question a cluster. Labels
    are a, b and tie, where a is the model whose name comes first (`subject_a`), whichever was shown
    first.
    """
    if any("g1_winner" in vote for vote in records):
        raise InputError(
            f"{source.name} holds two votes in a row, g1_winner and g2_winner; write each to a "
            "row of its own, with model_a, model_b, winner (model_a, model_b or tie) and judge"
        )
    for vote in records:
        _add(rows, vote)
    if bad := sum(text_of(vote.get("winner")) in _VOTES["both_bad"] for vote in records):
        rows.notes.append(written("exchange.both_bad", count=bad))
    if records and not any(_voter(vote) for vote in records):
        rows.notes.append(written("exchange.one_voter", name=_VOTER))
    return rows.export(written("exchange.pair_votes"))


def answers(rows: ItemRows, source: Source, records: list[Record]) -> ItemTable:
    """Read the answers that were compared: each model's to a question at one turn is an item, the
    question a cluster. Raises InputError where votes have none.
    """
    for unit, question, texts in _compared(records):
        for model, answer in texts.items():
            turn, cluster = unit.rsplit("/", 2)[0], unit.partition("/")[0]
            shown = {"prompt": question, "response": answer}
            rows.add(f"{turn}/{model}", shown, subject=model, cluster=cluster)
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
        shown = {"question": question, "answer_a": first, "answer_b": second}
        about = {"model_a": one, "model_b": two}
        rows.add(unit, shown, cluster=unit.partition("/")[0], about=about)
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
    """Yield the unit of each vote, the question and the answers by model, in order of name."""
    for vote in records:
        question, turn = _question(vote)
        end = 2 * (int(turn) if turn.isdecimal() and len(turn) < 3 else 1)
        sides = {side: messages_in(vote.get(f"conversation_{side}")) or [] for side in ("a", "b")}
        talks = {text_of(vote.get(f"model_{side}")): talk for side, talk in sides.items()}
        one, two = min(talks), max(talks)
        asked = text_in(talks[one][:1], ())
        texts = {name: text_in(talks[name][1:end], ()) for name in (one, two) if talks[name][1:]}
        if question and len(texts) == 2 and isinstance(asked, str):
            yield f"{question}/{turn}/{one}/{two}", asked, texts


def _question(vote: Record) -> tuple[str, str]:
    """The id of the question, and its turn."""
    question = text_of(vote.get("question_id") or vote.get("conversation_id") or vote.get("id"))
    return question, text_of(vote.get("turn")) or "1"


def _add(rows: Rows, vote: Record) -> None:
    """Add a vote; a person's, unless `judge` names a model. Arena's columns name its visitors."""
    winner = text_of(vote.get("winner"))
    first, second = (text_of(vote.get(f"model_{side}")) for side in "ab")
    one, two = sorted((first, second))
    won = {"model_a": first, "model_b": second}
    value, reason = {one: "a", two: "b"}.get(won.get(winner, "")), ""
    if winner.startswith("tie (inconsistent"):  # two orders, two answers: no one label
        reason = "order_disagreement"
    elif winner == "error":
        reason = "error"
    elif winner.startswith("tie") or winner in _VOTES["both_bad"]:
        value = "tie"
    question, turn = _question(vote)
    unit = f"{question}/{turn}/{one}/{two}" if question and one != two else ""
    rows.describe(unit, {"subject_a": one, "subject_b": two})
    order = "ab" if first == one else "ba"
    rater, time = _voter(vote) or _VOTER, vote.get("tstamp") or vote.get("timestamp")
    is_person = not vote.get("judge") or _PERSON.fullmatch(rater)
    kind = "human" if is_person else plain_kind(rater)
    about = {"order": order, "unscored_reason": reason, "cluster_id": question}
    rows.add(unit, rater, kind, value, **about, created_at=time)


def _voter(vote: Record) -> str:
    """The name of who voted, if any."""
    named = next((vote[name] for name in _VOTES["voters"] if vote.get(name)), None)
    parts = named if isinstance(named, list) else [named]
    return ":".join(filter(None, map(text_of, parts)))


# ---- datasets of Hugging Face -------------------------------------------------------------------
# The folder of `save_to_disk`, or of a repository with Parquet files, and a single Parquet or Arrow
# file of votes between two models.
_SUFFIXES = (".arrow", ".parquet")
_OURS = "ratings.parquet"
"""The one of several tables that has ratings, in a folder that evenhand wrote."""
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")


def _is_hugging_face(source: Source) -> bool:
    if source.path.is_dir():
        return bool(_files(source.path))
    if source.path.suffix.casefold() == ".arrow":
        return source.head.startswith(_ARROW)
    return are_votes(source.columns) or _of_argilla(source.columns)


def _of_argilla(columns: Collection[str]) -> bool:
    return any(f"{name}.users" in columns for name in columns if name.endswith(".responses"))


def _read_hugging_face(rows: Rows, source: Source) -> Export:
    """A table, long or wide, as in a CSV file, labels by name."""
    columns, records, files = _dataset(source)
    if are_votes(columns):
        return votes(rows, source, records)
    return Export(_frame(columns, records), [written("exchange.hugging_face", files=files)])


def _hugging_face_items(rows: ItemRows, source: Source) -> ItemTable:
    """A row is an item, as in a CSV file; or answers that were compared."""
    columns, records, files = _dataset(source)
    if have_answers(columns):
        return answers(rows, source, records)
    notes = [written("exchange.hugging_face", files=files)]
    return ItemTable(_frame(columns, records), notes)


def _frame(columns: list[str], records: list[dict[str, Any]]) -> pd.DataFrame:
    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    cells = {name: [label_cell(record[name]) for record in records] for name in columns}
    return pd.DataFrame(cells, index=index, dtype=str)


def _dataset(source: Source) -> tuple[list[str], list[dict[str, Any]], int]:
    """The columns and rows of the largest table among the files, and how many files there are."""
    files = _files(source.path) if source.path.is_dir() else [source.path]
    if not files:
        raise InputError(f"{source.name} holds no Arrow and no Parquet file")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    tables: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for file in files:
        with readable(f"{source.name}: {file.name}"):
            table = _table(file)
            tables[tuple(table.column_names)].append(_records(table, file))
    columns, parts = max(tables.items(), key=lambda table: sum(map(len, table[1])))
    if _of_argilla(columns):
        raise InputError(
            f"{source.name} holds Argilla's records as a Hugging Face dataset; write them with "
            "`dataset.records.to_json(FILE)` and name that file"
        )
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
    if file.suffix.casefold() != ".arrow":
        check_parquet(file)
        return pq.read_table(file)
    with pa.memory_map(str(file)) as stream:
        is_file = Source(file).head.startswith(_ARROW[0])
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream).read_all()
        check_arrow(table, file.name)
        return table


def _records(table: Any, file: Path) -> list[dict[str, Any]]:
    """The rows as Python has them, numbers as texts, class labels by the names that are noted."""
    noted = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    features = inside(json.loads(noted), "info", "features")
    info = file.parent / "dataset_info.json"
    if features is None and info.is_file():
        features = inside(json.loads(info.read_text("utf-8")), "features")
    classes = {
        name: [str(part) for part in feature["names"]]
        for name, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }

    def cell(column: str, value: Any) -> Any:
        if column not in classes or not isinstance(value, int):
            return as_written(value)
        names = classes[column]
        return Written(names[value]) if 0 <= value < len(names) else None

    return [{name: cell(name, value) for name, value in row.items()} for row in table.to_pylist()]


READERS = {
    "argilla": Reader(
        lambda source: (
            (source.path / _RECORDS).is_file()
            if source.path.is_dir()
            else has_fields("argilla")(source)
        ),
        _read_argilla,
        _argilla_items,
    ),
    "label_studio": Reader(
        _is_label_studio, _read_label_studio, _label_studio_items, _has_label_studio_items
    ),
    "potato": Reader(_is_potato, _read_potato, _potato_items),
    "prodigy": Reader(has_fields("prodigy"), _read_prodigy, _prodigy_items),
    "doccano": Reader(
        _is_doccano,
        _read_doccano,
        _doccano_items,
        lambda source: _is_doccano(source) and not RESPONSES & source.first.keys(),
    ),
    "pair_votes": Reader(
        lambda source: are_votes(source.first) or "g1_winner" in source.first,
        lambda rows, source: votes(rows, source, source.records()),
        lambda rows, source: answers(rows, source, source.records()),
        # Where the answers go by other names it is a table.
        lambda source: have_answers(source.first) or "g1_winner" in source.first,
    ),
    "hugging_face": Reader(_is_hugging_face, _read_hugging_face, _hugging_face_items),
}
