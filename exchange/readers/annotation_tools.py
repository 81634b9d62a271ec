"""Readers of exports of annotation tools: Argilla, Label Studio, Potato, Prodigy and doccano.

Published votes between two models' answers and datasets of Hugging Face are read here, too. Each
format has a section with functions that recognise a file, add its ratings to `Rows`, and add its
items to `ItemRows`. `READERS`, at the end, has these functions by format.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

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
    user_texts,
)
from evenhand.exchange.readers.source import (
    MOST_BYTES,
    TOOLS,
    Numeral,
    Record,
    Source,
    Text,
    fields_in,
    get_in,
    label_cell,
    messages_in,
    number_as_text,
    objects,
    parse_json,
    readable,
    records_in,
    text_in,
    text_of,
    unwrap,
)
from evenhand.lazy import pa, pd, pq
from evenhand.study.tables.formats import FIRST_ROW, check_arrow, check_parquet, read_table
from evenhand.texts import written

# ---- Argilla ------------------------------------------------------------------------------------
# Records as `Dataset.records.to_json` and `Dataset.to_disk` write them.
_UNNAMED_AGENT = "suggestion"  # the rater of suggestions that do not name the agent
_RECORDS_FILE = "records.json"  # the file of records in the folder of a dataset


def _is_argilla(source: Source) -> bool:
    return (source.path / _RECORDS_FILE).is_file() or has_fields("argilla")(source)


def _read_argilla(rows: Rows, source: Source) -> Export:
    """Read responses as people's labels, suggestions as models' labels, a question as a rubric."""
    records = _argilla_records(source)
    for record in records:
        _add_argilla_record(rows, record)
    how_read = written("exchange.argilla")
    responses = [response for record in records for _, response in _argilla_responses(record)]
    if not all("status" in response for response in responses):
        how_read += f" {written('exchange.argilla_drafts')}"
    return rows.export(how_read)


def _argilla_items(rows: ItemRows, source: Source) -> ItemTable:
    """Read a record as an item, with all of its fields as texts."""
    field_names: dict[str, None] = {}
    for record in _argilla_records(source):
        texts = user_texts(record.get("fields"))
        field_names |= dict.fromkeys(texts)
        rows.add(_argilla_id(record), texts, about=record.get("metadata"))
    return rows.items(written("exchange.argilla_items"), show=list(field_names))


def _argilla_records(source: Source) -> list[Record]:
    file = Source(source.path / _RECORDS_FILE) if source.path.is_dir() else source
    if file.path.stat().st_size > MOST_BYTES:
        raise InputError(f"{source.name} is too large; export fewer records")
    return file.records()


def _argilla_id(record: Record) -> object:
    return record.get("id") or record.get("external_id") or record.get("_server_id")


def _add_argilla_record(rows: Rows, record: Record) -> None:
    unit = _argilla_id(record)
    rows.describe(unit, record.get("metadata"))
    for question, response in _argilla_responses(record):
        status = text_of(response.get("status")) or "submitted"
        if status == "submitted":
            answer = unwrap(response.get("value"))
            rows.add(unit, response.get("user_id"), "human", answer, question)
        else:
            reason = "drafts" if status == "draft" else "discarded"
            rows.leave_out(written(f"left_out.{reason}"))
    suggestions = record.get("suggestions")
    if isinstance(suggestions, dict):  # by question
        suggestions = [fields_in(suggestions[key]) | {"question_name": key} for key in suggestions]
    for suggestion in objects(suggestions):
        if (value := suggestion.get("value")) is not None:
            agent = text_of(suggestion.get("agent")) or _UNNAMED_AGENT
            question = text_of(suggestion.get("question_name"))
            rows.add(unit, agent, "model", unwrap(value), question)


def _argilla_responses(record: Record) -> list[tuple[str, Record]]:
    """Return the responses of a record, each with its question, in the form of Argilla 2."""
    responses = record.get("responses")
    if isinstance(responses, dict):
        return [(question, part) for question in responses for part in objects(responses[question])]
    return [  # Argilla 1 has a user's answers to all questions in one response
        (question, {**response, "value": get_in(value, "value")})
        for response in objects(responses)
        if isinstance(response.get("values"), dict)
        for question, value in response["values"].items()
    ]


# ---- Label Studio -------------------------------------------------------------------------------
# The JSON export (labelstud.io/guide/export); other exports do not tell labels from a task's data.
_LABEL_STUDIO = TOOLS["label_studio"]


def _is_label_studio(source: Source) -> bool:
    record = source.first_record
    return _is_task(record) or record.keys() >= {*_LABEL_STUDIO["ratings"]}


def _read_label_studio(rows: Rows, source: Source) -> None:
    """Read annotations as people's labels, predictions as models' labels, a control as a rubric."""
    if source.csv_columns or not _is_task(source.first_record):
        raise InputError(
            f"{source.name} is a table of Label Studio, which does not say which columns are "
            "labels; export the project as JSON, or name a column of labels: --format table "
            "--columns unit=id,rater=annotator,label=COLUMN --human NAME,..."
        )
    tasks = source.records()
    email_by_id: dict[str, object] = {}  # exports of one project may name a person by either
    for task in tasks:
        for annotation in objects(task.get("annotations") or task.get("completions")):
            person = fields_in(annotation.get("completed_by"))
            if person.get("email"):
                email_by_id[text_of(person.get("id"))] = person["email"]
    ids = [one_line(task["data"].get("unit_id") or _task_id(task)) for task in tasks]
    # Tasks of several projects may share an id.
    units = rows.distinct_units(ids, (task["data"] for task in tasks))
    for task, unit in zip(tasks, units, strict=True):
        _add_task(rows, unit, task, email_by_id)


def _has_label_studio_items(source: Source) -> bool:
    """Return True for tasks, with or without answers. Raises InputError for a table."""
    first = source.first_record
    is_export = _is_label_studio(source)
    if is_export and not _is_task(first):
        raise InputError(
            f"{source.name} is a table of Label Studio, with a row for each annotation; export the "
            "project as JSON"
        )
    fields = {*_LABEL_STUDIO["import_fields"]}
    return is_export or (isinstance(first.get("data"), dict) and first.keys() <= fields)


def _label_studio_items(rows: ItemRows, source: Source) -> None:
    """Read a task as an item, with its data as texts under the same names."""
    for task in source.records():
        data = fields_in(task.get("data"))
        task_id = text_of(_task_id(task))
        unit = text_of(data.get("unit_id")) or task_id
        ids = {"task_id": task_id} if task_id else {}
        rows.add(unit, user_texts(data), item_id=task_id, ids=ids)


def _task_id(task: Record) -> object:
    return task.get("id") or task.get("inner_id")


def _is_task(record: Record) -> bool:
    """Return True for a task of the JSON export, which has a field for answers, even if empty."""
    has_answers = not record.keys().isdisjoint(("annotations", "completions", "predictions"))
    return isinstance(record.get("data"), dict) and has_answers


def _add_task(rows: Rows, unit: str, task: Record, email_by_id: Mapping[str, object]) -> None:
    rows.describe(unit, task["data"])
    for annotation in objects(task.get("annotations") or task.get("completions")):
        if annotation.get("was_cancelled") is True:
            rows.leave_out(written("left_out.cancelled"))
            continue
        person = annotation.get("completed_by")
        if isinstance(person, dict):
            person = person.get("email") or person.get("id")
        person = email_by_id.get(text_of(person), person)
        time = annotation.get("updated_at") or annotation.get("created_at")
        columns = {"seconds": annotation.get("lead_time"), "created_at": time}
        _add_results(rows, unit, person, "human", annotation, columns)
    if drafts := objects(task.get("drafts")):
        rows.leave_out(written("left_out.drafts"), len(drafts))
    predictions = task.get("predictions")
    for prediction in predictions if isinstance(predictions, list) else []:
        if not isinstance(prediction, dict):
            rows.leave_out(written("left_out.only_id"))
            continue
        columns = {"created_at": prediction.get("created_at")}
        _add_results(rows, unit, prediction.get("model_version"), "model", prediction, columns)


def _add_results(
    rows: Rows, unit: object, rater: object, kind: str, annotation: Record, columns: Record
) -> None:
    """Add the answers of an annotation or prediction, one for each control of the page."""
    answers_by_control: dict[str, list[object]] = {}
    if annotation.get("result") == []:
        rows.leave_out(written("left_out.empty"))
    for result in objects(annotation.get("result")):
        result_type = text_of(result.get("type"))
        if result_type == "textarea":
            rows.leave_out(written("left_out.free_text"))
        elif result_type not in _LABEL_STUDIO["label_fields"]:
            rows.leave_out(written("left_out.regions"))
        else:
            answer = get_in(result, "value", _LABEL_STUDIO["label_fields"][result_type])
            control = text_of(result.get("from_name"))
            answers_by_control.setdefault(control, []).append(unwrap(answer))
    for control, answers in answers_by_control.items():
        rows.add(unit, rater, kind, unwrap(answers), control, **columns)


# ---- Potato -------------------------------------------------------------------------------------
# Its export (JSONL, CSV, TSV), with labels by scheme, in tables as columns SCHEME.LABEL; tables
# of studies, with a column for each question; and the folder with a folder for each annotator.
_STATE_FILE, _OLD_ANSWERS_FILE = "user_state.json", "annotated_instances.jsonl"
_POTATO = TOOLS["potato"]
_VALUES_IF_NOT_CHOSEN = (False, None, "", "false")
_KIND_BY_ORIGIN = {"llm": "model", "tool": "model"}  # raters of other origins are people
_KEY_COLUMNS = {*_POTATO["ratings"]}
_STATE_FIELDS = {"user_id", "instance_id_to_label_to_value"}


def _is_potato(source: Source) -> bool:
    if source.path.is_dir():
        return next(_answer_files(source.path), None) is not None
    is_table = {*source.csv_columns[:2]} == _KEY_COLUMNS
    fields = source.first_record.keys()
    return is_table or fields >= {*_KEY_COLUMNS, "labels"} or fields >= _STATE_FIELDS


def _read_potato(rows: Rows, source: Source) -> None:
    """Read an instance as a unit, a scheme as a rubric, and a user as a person by default."""
    if source.path.is_dir():
        for file in _answer_files(source.path):
            if file.stat().st_size <= MOST_BYTES:
                _add_answer_file(rows, file)
    elif source.csv_columns and not _has_scheme_columns(source):
        _add_flat_table(rows, source)
    else:
        for record in source.records():
            if source.csv_columns:
                _add_export_row(rows, record)
            elif "labels" in record:
                _add_schemes(rows, record)
            else:
                _add_user_state(rows, record)


def _has_scheme_columns(source: Source) -> bool:
    """Return True if a column is called SCHEME.LABEL, as the tool exports tables."""
    return any("." in name.strip(".") for name in source.csv_columns)


def _add_export_row(rows: Rows, record: Record) -> None:
    """Add the labels in a row with columns called SCHEME.LABEL."""
    labels: dict[str, dict[str, str]] = {}
    for name, cell in record.items():
        scheme, dot, label = name.partition(".")
        if dot and cell and not label.startswith("_"):
            labels.setdefault(scheme, {})[label] = cell
    origin = {"kind": record.get("annotator_origin", "")}
    _add_schemes(rows, record | {"labels": labels, "annotator_origin": origin})


def _add_flat_table(rows: Rows, source: Source) -> None:
    """Add a table with a column for each question. Raises InputError if it has no such column."""
    records = source.records()
    texts, questions = _text_and_question_columns(records)
    if not questions:
        label = next(iter(records[0].keys() - _KEY_COLUMNS), "label")
        raise InputError(
            f"{source.name} has a row for each user and instance of Potato, and no column tells "
            "users apart; name the column of labels: --format table --columns "
            f"unit=instance_id,rater=user_id,label={label}"
        )
    for record in records:
        unit, user = record["instance_id"], record["user_id"]
        rows.describe(unit, {name: record[name] for name in texts})
        for name in questions:
            rubric = name if len(questions) > 1 else ""
            rows.add(unit, user, plain_kind(user) or "human", record[name], rubric)
    rows.notes.append(written("exchange.potato_flat", questions=", ".join(questions)))


def _potato_items(rows: ItemRows, source: Source) -> None:
    """Read the texts of a flat table; Potato's other files have answers without texts."""
    is_flat_table = source.csv_columns and not _has_scheme_columns(source)
    records = source.records() if is_flat_table else []
    texts, _ = _text_and_question_columns(records)
    if not texts:
        raise InputError(
            f"{source.name} holds answers of Potato without the texts that they are about; name "
            "the data file of the project (data_files in its configuration), which has them"
        )
    for record in records:
        rows.add(record["instance_id"], user_texts({name: record[name] for name in texts}))


def _text_and_question_columns(records: Sequence[Record]) -> tuple[list[str], list[str]]:
    """Return the columns of texts, which depend on the instance, and of answers to questions, which
    are short and depend on the instance and the user.
    """
    names = [name for name in (records[0] if records else {}) if name not in _KEY_COLUMNS]

    def is_constant(name: str, key: str) -> bool:
        """Return True if a column has one value in all rows with the same value of `key`."""
        first_value: Record = {}
        return all(row[name] == first_value.setdefault(row[key], row[name]) for row in records)

    by_instance = {name for name in names if is_constant(name, "instance_id")}
    by_user = {name for name in names if is_constant(name, "user_id")}
    texts = [name for name in names if name in by_instance - by_user]
    others = [name for name in names if name not in by_instance | by_user]
    values = {name: [text_of(record[name]) for record in records] for name in others}
    return texts, [name for name in others if max(map(len, values[name])) <= LONGEST_LABEL]


def _answer_files(folder: Path) -> Iterator[Path]:
    """Yield the file of each annotator's answers, in a folder named after the annotator."""
    for annotator in sorted(folder.iterdir()):
        for file in (annotator / _STATE_FILE, annotator / _OLD_ANSWERS_FILE):
            if annotator.is_dir() and file.is_file():
                yield file
                break


def _add_answer_file(rows: Rows, file: Path) -> None:
    """Add the answers in an annotator's file of either version."""
    content, user = file.read_bytes(), file.parent.name
    if file.name == _STATE_FILE:
        _add_user_state(rows, fields_in(parse_json(content, f"{user}/{file.name}")))
        return
    for record in records_in(content, f"{user}/{file.name}"):
        labels = record.get("label_annotations")
        _add_schemes(rows, {"instance_id": record.get("id"), "labels": labels, "user_id": user})


def _add_user_state(rows: Rows, state: Record) -> None:
    """Add a user's labels on all instances, by scheme or as a list of pairs of option and value."""
    user = state.get("user_id")
    for unit, answers in fields_in(state.get("instance_id_to_label_to_value")).items():
        labels = fields_in(answers)
        for pair in answers if isinstance(answers, list) else ():
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict):
                option, value = pair
                values = labels.setdefault(text_of(option.get("schema")), {})
                values[text_of(option.get("name"))] = value
        _add_schemes(rows, {"user_id": user, "instance_id": unit, "labels": labels})


def _add_schemes(rows: Rows, record: Record) -> None:
    """Add a user's labels on an instance, by scheme; free texts are left out."""
    unit, user = record.get("instance_id"), record.get("user_id")
    kind = _KIND_BY_ORIGIN.get(text_of(get_in(record, "annotator_origin", "kind")), "human")
    for scheme, answer in fields_in(record.get("labels")).items():
        values = _values_by_option(answer)
        options = [option for option in values if option not in _POTATO["text_options"]]
        if len(options) < len(values):
            rows.leave_out(written("left_out.free_text"))
        if options or not values:
            labels = [_potato_label(option, values[option]) for option in options]
            rows.add(unit, user, kind, unwrap(labels or None), scheme)


def _values_by_option(answer: object) -> Record:
    """Return an answer's values by option, without options that were not chosen."""
    labels = get_in(answer, "labels")  # some versions store the answer one layer down
    if isinstance(labels, (dict, list)):
        answer = labels
    if isinstance(answer, list):
        answer = {text_of(option): True for option in answer}
    values = answer if isinstance(answer, dict) else {"": answer}
    return {name: value for name, value in values.items() if value not in _VALUES_IF_NOT_CHOSEN}


def _potato_label(option: str, value: object) -> object:
    """Return the label that was chosen: the name of the option, or the value of a scale or slider.

    >>> _potato_label("yes", "yes"), _potato_label("scale_3", "3"), _potato_label("positive", True)
    ('yes', '3', 'positive')
    """
    has_value = option in _POTATO["value_options"] or option.startswith("scale_") or not option
    return Numeral(value) if has_value and isinstance(value, str) else option


# ---- Prodigy ------------------------------------------------------------------------------------
# The JSONL of `prodigy db-out`, choices and labels (prodi.gy/docs/api-interfaces).


def _read_prodigy(rows: Rows, source: Source) -> None:
    """Read a chosen option as the label, or accept and reject, with the task's label as rubric."""
    for record in source.records():
        answer = text_of(record.get("answer"))
        if answer not in ("accept", "reject"):
            rows.leave_out(written("left_out.ignored"))
            continue
        label: object = answer
        options, rubric = record.get("accept"), text_of(record.get("label"))
        if isinstance(options, list) and record.get("options"):
            label, rubric = unwrap(options or None) if answer == "accept" else None, ""
        elif "spans" in record and "label" not in record:
            label = []  # spans of the text, which are no one label
        unit, time = record.get("_input_hash"), record.get("_timestamp")
        rater = record.get("_annotator_id") or record.get("_session_id")
        rows.describe(unit, record.get("meta"))
        rows.add(unit, rater, "human", label, rubric, created_at=time)


def _prodigy_items(rows: ItemRows, source: Source) -> None:
    """Read an input as an item, with the texts of the task under the same names."""
    for record in source.records():
        names = [name for name in record if name not in ("answer", "label") and name[:1] != "_"]
        texts = user_texts({name: record[name] for name in names if type(record[name]) is str})
        rows.add(record.get("_input_hash"), texts, about=record.get("meta"))


# ---- doccano ------------------------------------------------------------------------------------
# The JSONL export, a ZIP archive with a file for each annotator.
_DOCCANO = TOOLS["doccano"]


def _is_doccano(source: Source) -> bool:
    if source.archive:
        names = source.archive.names
        return bool(names) and all(name.endswith(".jsonl") for name in names)
    example = source.first_record
    has_text = any(name in example for name in _DOCCANO["text_fields"])
    has_labels = isinstance(example.get("label"), list)
    has_users = any("user" in annotation for annotation in objects(example.get("annotations")))
    return "id" in example and has_text and (has_labels or has_users)


def _read_doccano(rows: Rows, source: Source) -> Export:
    """Read an example as a unit, and the annotator after whom a file is named as a rater."""
    for annotator, record in _doccano_records(source):
        unit = record.get("id")
        rows.describe(unit, {name: record[name] for name in record if name not in ("id", "label")})
        labels_by_user: dict[str, list[object]] = {}
        if isinstance(record.get("label"), list):
            labels_by_user[annotator.removesuffix(".jsonl")] = record["label"]
        for annotation in objects(record.get("annotations")):
            user = text_of(annotation.get("user"))
            labels_by_user.setdefault(user, []).append(annotation.get("label"))
        for user, labels in labels_by_user.items():
            label = unwrap(labels or None)
            if user in _DOCCANO["shared_files"] and not get_in(record, "annotations"):
                rows.leave_out(written("left_out.shared"))
            elif isinstance(label, list) and label and isinstance(label[0], (list, dict)):
                rows.leave_out(written("left_out.regions"))
            else:
                rows.add(unit, user, "human", label)
    try:
        return rows.export(written("exchange.doccano"))
    except InputError as error:
        if written("left_out.shared") not in str(error):
            raise
        raise InputError(
            f"{source.name} comes from a project with shared annotation, whose export has lost who "
            "labelled what; turn shared annotation off, or rename its file after the one annotator"
        ) from None


def _doccano_items(rows: ItemRows, source: Source) -> None:
    """Read an example as an item, with its text."""
    text_fields = _DOCCANO["text_fields"]
    for _, record in _doccano_records(source):
        text = next((record[name] for name in text_fields if name in record), None)
        doccano_fields = ("id", "label", *text_fields)
        about = {name: record[name] for name in record if name not in doccano_fields}
        rows.add(record.get("id"), user_texts({"text": text}), about=about)


def _doccano_records(source: Source) -> Iterator[tuple[str, Record]]:
    """Yield the annotator after whom a file is named, with each example in the file."""
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
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")  # names of people in the column `judge`
_UNNAMED_VOTER = "arena_user"
_MOST_TURN_DIGITS = 2  # digits of the number of a turn; a longer one is not a number of turns


def are_votes(names: Collection[str]) -> bool:
    """Return True if there are the columns of votes among these names."""
    return all(name in names for name in _VOTES["columns"])


def have_answers(names: Collection[str]) -> bool:
    """Return True if there are the columns of votes and of the compared answers."""
    return are_votes(names) and {"conversation_a", "conversation_b"} <= set(names)


def vote_ratings(rows: Rows, source: Source, records: list[Record]) -> Export:
    """Return votes as ratings: a question, its turn and two models are a unit. The question is the
    cluster. Labels are a, b and tie; a is the model whose name is first in alphabetical order
    (`subject_a`), whichever was shown first. Raises InputError for rows with two votes each.
    """
    if any("g1_winner" in vote for vote in records):
        raise InputError(
            f"{source.name} holds two votes in a row, g1_winner and g2_winner; write each to a "
            "row of its own, with model_a, model_b, winner (model_a, model_b or tie) and judge"
        )
    for vote in records:
        _add_vote(rows, vote)
    if n_both_bad := sum(text_of(vote.get("winner")) in _VOTES["both_bad"] for vote in records):
        rows.notes.append(written("exchange.both_bad", count=n_both_bad))
    if records and not any(_voter(vote) for vote in records):
        rows.notes.append(written("exchange.one_voter", name=_UNNAMED_VOTER))
    return rows.export(written("exchange.pair_votes"))


def answer_items(rows: ItemRows, source: Source, records: list[Record]) -> ItemTable:
    """Return the answers that were compared as items: one for each question, turn and model. The
    question is the cluster. Raises InputError if the votes have no answers.
    """
    for comparison in _comparisons(records):
        for model, answer in comparison.answers.items():
            question_and_turn = comparison.unit.rsplit("/", 2)[0]  # without the two models
            cluster = comparison.unit.partition("/")[0]
            texts = {"prompt": comparison.question, "response": answer}
            rows.add(f"{question_and_turn}/{model}", texts, subject=model, cluster=cluster)
    return _compared_items(rows, written("exchange.pair_votes_items"), source)


def comparison_items(source: Source) -> ItemTable | None:
    """Return the comparisons of votes as items; None for a file without votes and answers. The
    columns are `question`, `answer_a`, `answer_b`, `model_a` and `model_b`, with models in the
    order of `vote_ratings`. A table that has each comparison once is returned as it is.
    """
    if not have_answers(source.parquet_columns or source.first_record):
        return None
    records = source.records(source.parquet_columns)
    comparisons = list(_comparisons(records))
    units = {comparison.unit for comparison in comparisons}
    if len(units) == len(records) and source.document is None:
        return ItemTable(read_table(source.path))
    rows = ItemRows(source, user_fields=True)
    for unit, question, answers in comparisons:
        (model_a, answer_a), (model_b, answer_b) = answers.items()
        texts = {"question": question, "answer_a": answer_a, "answer_b": answer_b}
        models = {"model_a": model_a, "model_b": model_b}
        rows.add(unit, texts, cluster=unit.partition("/")[0], about=models)
    return _compared_items(rows, written("exchange.pair_votes_pairs"), source)


def _compared_items(rows: ItemRows, note: str, source: Source) -> ItemTable:
    """Return the items that were added, by question. Raises InputError if there are none."""
    try:
        return rows.items(note, "question_id")
    except InputError:
        raise InputError(
            f"{source.name} holds votes without the answers that were compared; name a file with "
            "conversation_a and conversation_b, as lmsys/mt_bench_human_judgments has them"
        ) from None


class _Comparison(NamedTuple):
    """Two answers to a question at one turn, by model, with models in alphabetical order."""

    unit: str
    question: str
    answers: dict[str, Text]


def _comparisons(records: list[Record]) -> Iterator[_Comparison]:
    """Yield the comparison that each vote is about; votes without both answers have none."""
    for vote in records:
        question_id, turn = _question_id(vote), _turn(vote)
        n_turns = int(turn) if turn.isdecimal() and len(turn) <= _MOST_TURN_DIGITS else 1
        conversations = {
            text_of(vote.get(f"model_{side}")): messages_in(vote.get(f"conversation_{side}")) or []
            for side in ("a", "b")
        }
        models = sorted(conversations)
        question = text_in(conversations[models[0]][:1], ())
        answers = {
            model: text_in(conversations[model][1 : 2 * n_turns], ())  # without the question
            for model in models
            if conversations[model][1:]
        }
        if question_id and len(answers) == 2 and isinstance(question, str):
            unit = "/".join([question_id, turn, *models])
            yield _Comparison(unit, question, answers)


def _question_id(vote: Record) -> str:
    return text_of(vote.get("question_id") or vote.get("conversation_id") or vote.get("id"))


def _turn(vote: Record) -> str:
    return text_of(vote.get("turn")) or "1"


def _add_vote(rows: Rows, vote: Record) -> None:
    """Add a vote; it is a person's unless `judge` names a model."""
    winner = text_of(vote.get("winner"))
    first, second = (text_of(vote.get(f"model_{side}")) for side in "ab")
    subject_a, subject_b = sorted((first, second))
    winning_model = {"model_a": first, "model_b": second}.get(winner, "")
    label, unscored_reason = {subject_a: "a", subject_b: "b"}.get(winning_model), ""
    if winner.startswith("tie (inconsistent"):  # the two orders have different answers
        unscored_reason = "order_disagreement"
    elif winner == "error":
        unscored_reason = "error"
    elif winner.startswith("tie") or winner in _VOTES["both_bad"]:
        label = "tie"
    question_id = _question_id(vote)
    is_comparison = question_id and subject_a != subject_b
    unit = f"{question_id}/{_turn(vote)}/{subject_a}/{subject_b}" if is_comparison else ""
    rows.describe(unit, {"subject_a": subject_a, "subject_b": subject_b})
    rater, time = _voter(vote) or _UNNAMED_VOTER, vote.get("tstamp") or vote.get("timestamp")
    is_person = not vote.get("judge") or _PERSON.fullmatch(rater)
    kind, order = "human" if is_person else plain_kind(rater), "ab" if first == subject_a else "ba"
    columns = {"order": order, "unscored_reason": unscored_reason, "cluster_id": question_id}
    rows.add(unit, rater, kind, label, **columns, created_at=time)


def _voter(vote: Record) -> str:
    """Return the name of the voter; "" if the vote does not name one."""
    voter = next((vote[name] for name in _VOTES["voters"] if vote.get(name)), None)
    parts = voter if isinstance(voter, list) else [voter]
    return ":".join(filter(None, map(text_of, parts)))


# ---- datasets of Hugging Face -------------------------------------------------------------------
# The folder of `save_to_disk`, or of a repository with Parquet files; and a single Arrow file, or
# Parquet file of votes between two models.
_SUFFIXES = (".arrow", ".parquet")
_EVENHAND_RATINGS = "ratings.parquet"
"""The file of ratings in a folder that evenhand wrote."""
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"
"""The first bytes of the two formats of Arrow."""


class _Dataset(NamedTuple):
    """The largest table in a dataset's files, by its columns and rows."""

    columns: list[str]
    records: list[Record]
    n_files: int


def _is_hugging_face(source: Source) -> bool:
    if source.path.is_dir():
        return bool(_data_files(source.path))
    if source.path.suffix.casefold() == ".arrow":
        return source.head.startswith((_ARROW_FILE, _ARROW_STREAM))
    return are_votes(source.parquet_columns) or _are_argilla(source.parquet_columns)


def _are_argilla(columns: Collection[str]) -> bool:
    """Return True for the columns of a dataset that Argilla wrote."""
    return any(f"{name}.users" in columns for name in columns if name.endswith(".responses"))


def _read_hugging_face(rows: Rows, source: Source) -> Export:
    """Read the largest table as a CSV file is read, with class labels by name; or votes."""
    dataset = _dataset(source)
    if are_votes(dataset.columns):
        return vote_ratings(rows, source, dataset.records)
    return Export(_frame(dataset), [written("exchange.hugging_face", files=dataset.n_files)])


def _hugging_face_items(rows: ItemRows, source: Source) -> ItemTable:
    """Read a row as an item, as in a CSV file; or answers that were compared."""
    dataset = _dataset(source)
    if have_answers(dataset.columns):
        return answer_items(rows, source, dataset.records)
    return ItemTable(_frame(dataset), [written("exchange.hugging_face", files=dataset.n_files)])


def _frame(dataset: _Dataset) -> pd.DataFrame:
    records = dataset.records
    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)
    cells = {name: [label_cell(row[name]) for row in records] for name in dataset.columns}
    return pd.DataFrame(cells, index=index, dtype=str)


def _dataset(source: Source) -> _Dataset:
    """Return the largest table in the files. Raises InputError if there is none, or too much."""
    files = _data_files(source.path) if source.path.is_dir() else [source.path]
    if not files:
        raise InputError(f"{source.name} holds no Arrow and no Parquet file")
    if sum(file.stat().st_size for file in files) > MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    tables: dict[tuple[str, ...], list[Record]] = defaultdict(list)  # rows by columns
    for file in files:
        with readable(f"{source.name}: {file.name}"):
            table = _arrow_table(file)
            tables[tuple(table.column_names)] += _records(table, file)
    columns = max(tables, key=lambda names: len(tables[names]))
    if _are_argilla(columns):
        raise InputError(
            f"{source.name} holds Argilla's records as a Hugging Face dataset; write them with "
            "`dataset.records.to_json(FILE)` and name that file"
        )
    return _Dataset(list(columns), tables[columns], len(files))


def _data_files(folder: Path) -> list[Path]:
    """Return the files with data in a folder, in `data`, or in folders of splits."""
    if (folder / _EVENHAND_RATINGS).is_file():
        return [folder / _EVENHAND_RATINGS]
    return [
        path
        for depth in ("*", "*/*", "*/*/*")
        for path in sorted(folder.glob(depth))
        if path.suffix.casefold() in _SUFFIXES and path.is_file() and "cache-" not in path.name
    ]


def _arrow_table(file: Path) -> Any:
    if file.suffix.casefold() != ".arrow":
        check_parquet(file)
        return pq.read_table(file)
    with pa.memory_map(str(file)) as stream:
        is_file = Source(file).head.startswith(_ARROW_FILE)
        table = (pa.ipc.open_file if is_file else pa.ipc.open_stream)(stream).read_all()
        check_arrow(table, file.name)
        return table


def _records(table: Any, file: Path) -> list[Record]:
    """Return an Arrow table's rows, with numbers as texts and class labels by name."""
    metadata = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    features = get_in(json.loads(metadata), "info", "features")
    info = file.parent / "dataset_info.json"
    if features is None and info.is_file():
        features = get_in(json.loads(info.read_text("utf-8")), "features")
    class_names = {
        name: [str(class_name) for class_name in feature["names"]]
        for name, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }

    def cell(column: str, value: Any) -> Any:
        if column not in class_names or not isinstance(value, int):
            return number_as_text(value)
        names = class_names[column]
        return Numeral(names[value]) if 0 <= value < len(names) else None

    return [{name: cell(name, value) for name, value in row.items()} for row in table.to_pylist()]


READERS = {
    "argilla": Reader(_is_argilla, _read_argilla, _argilla_items),
    "label_studio": Reader(
        _is_label_studio, _read_label_studio, _label_studio_items, _has_label_studio_items
    ),
    "potato": Reader(_is_potato, _read_potato, _potato_items),
    "prodigy": Reader(has_fields("prodigy"), _read_prodigy, _prodigy_items),
    "doccano": Reader(
        _is_doccano,
        _read_doccano,
        _doccano_items,
        lambda source: _is_doccano(source) and not RESPONSES & source.first_record.keys(),
    ),
    "pair_votes": Reader(
        lambda source: are_votes(source.first_record) or "g1_winner" in source.first_record,
        lambda rows, source: vote_ratings(rows, source, source.records()),
        lambda rows, source: answer_items(rows, source, source.records()),
        # With answers in other columns it is a table.
        lambda source: have_answers(source.first_record) or "g1_winner" in source.first_record,
    ),
    "hugging_face": Reader(_is_hugging_face, _read_hugging_face, _hugging_face_items),
}
