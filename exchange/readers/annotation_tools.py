"""Readers of exports of Argilla, Label Studio, Potato, Prodigy and doccano, of published votes
between two models' answers, and of datasets of Hugging Face.

Each kind of file has a section of functions that recognise it (`_is_...`), add its ratings to
`Rows` (`_read_...`) and its items to `ItemRows` (`..._items`); `READERS`, at the end, names them.
`Rows.add` adds a rating of a unit (what a rating is about), and `describe` facts about the unit.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers import source as src
from evenhand.exchange.readers.rows import (
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
from evenhand.lazy import pa, pd, pq
from evenhand.study.tables.formats import FIRST_ROW, check_arrow, check_parquet, read_table
from evenhand.texts import written

# ---- Argilla ------------------------------------------------------------------------------------
# Records as `Dataset.records.to_json` and `Dataset.to_disk` write them.

_UNNAMED_AGENT = "suggestion"  # the rater of suggestions whose agent has no name
_RECORDS = "records.json"


def _is_argilla(source: src.Source) -> bool:
    return (source.path / _RECORDS).is_file() or has_fields("argilla")(source)


def _read_argilla(rows: Rows, source: src.Source) -> Export:
    """Read responses as people's labels and suggestions as models'; a question is a rubric."""
    records = _argilla_records(source)
    for record in records:
        _add_argilla_record(rows, record)
    how_read = written("exchange.argilla")
    responses = [response for record in records for _, response in _argilla_responses(record)]
    if not all("status" in response for response in responses):
        how_read += f" {written('exchange.argilla_drafts')}"
    return rows.export(how_read)


def _argilla_items(rows: ItemRows, source: src.Source) -> ItemTable:
    """Read a record as an item, with all of its fields as texts."""
    shown: dict[str, None] = {}  # names of all fields, in their order
    for record in _argilla_records(source):
        fields = users_fields(record.get("fields"))
        shown |= dict.fromkeys(fields)
        rows.add(_argilla_id(record), fields, about=record.get("metadata"))
    return rows.items(written("exchange.argilla_items"), show=list(shown))


def _argilla_records(source: src.Source) -> list[src.Record]:
    """Return the records of a file, or of the file in a folder."""
    inner = src.Source(source.path / _RECORDS) if source.path.is_dir() else source
    if inner.path.stat().st_size > src.MOST_BYTES:
        raise InputError(f"{source.name} is too large; export fewer records")
    return inner.records()


def _argilla_id(record: src.Record) -> object:
    return record.get("id") or record.get("external_id") or record.get("_server_id")


def _add_argilla_record(rows: Rows, record: src.Record) -> None:
    """Add the submitted responses and the suggestions of a record."""
    unit = _argilla_id(record)
    rows.describe(unit, record.get("metadata"))
    for question, response in _argilla_responses(record):
        status = src.text_of(response.get("status")) or "submitted"
        if status == "submitted":
            answer = src.unwrap(response.get("value"))
            rows.add(unit, response.get("user_id"), "human", answer, question)
        else:
            reason = "drafts" if status == "draft" else "discarded"
            rows.leave_out(written(f"left_out.{reason}"))
    suggestions = record.get("suggestions")
    if isinstance(suggestions, dict):
        suggestions = [src.fields_in(suggestions[n]) | {"question_name": n} for n in suggestions]
    for suggestion in src.objects(suggestions):
        if (value := suggestion.get("value")) is not None:
            agent = src.text_of(suggestion.get("agent")) or _UNNAMED_AGENT
            question = src.text_of(suggestion.get("question_name"))
            rows.add(unit, agent, "model", src.unwrap(value), question)


def _argilla_responses(record: src.Record) -> list[tuple[str, src.Record]]:
    """Return each response of a record, after the name of its question."""
    responses = record.get("responses")
    if isinstance(responses, dict):  # by question, as Argilla 2 writes them
        return [(name, part) for name in responses for part in src.objects(responses[name])]
    return [  # Argilla 1: by user, each with values by question
        (question, {**response, "value": src.get_in(value, "value")})
        for response in src.objects(responses)
        if isinstance(response.get("values"), dict)
        for question, value in response["values"].items()
    ]


# ---- Label Studio -------------------------------------------------------------------------------
# The JSON export (labelstud.io/guide/export); others do not separate labels from a task's data.

_LABEL_STUDIO = src.TOOLS["label_studio"]


def _is_label_studio(source: src.Source) -> bool:
    return _is_task(source.first) or source.first.keys() >= {*_LABEL_STUDIO["ratings"]}


def _read_label_studio(rows: Rows, source: src.Source) -> None:
    """Read annotations as people's labels and predictions as models'; a control is a rubric."""
    if source.header or not _is_task(source.first):
        raise InputError(
            f"{source.name} is a table of Label Studio, which does not say which columns are "
            "labels; export the project as JSON, or name a column of labels: --format table "
            "--columns unit=id,rater=annotator,label=COLUMN --human NAME,..."
        )
    tasks = [task | {"data": src.fields_in(task.get("data"))} for task in source.records()]
    annotations = [annotation for task in tasks for annotation in _annotations(task)]
    people = [src.fields_in(annotation.get("completed_by")) for annotation in annotations]
    # Exports of one project may name a person by id or by e-mail.
    email_by_id = {src.text_of(p.get("id")): p["email"] for p in people if p.get("email")}
    ids = (task["data"].get("unit_id") or task.get("id") or task.get("inner_id") for task in tasks)
    # The texts tell tasks of several projects apart that share an id.
    contents = [(one_line(unit), task["data"]) for unit, task in zip(ids, tasks, strict=True)]
    for task, unit in zip(tasks, rows.units(contents), strict=True):
        _add_task(rows, unit, task, email_by_id)


def _has_tasks(source: src.Source) -> bool:
    """Return True for tasks with or without answers. Raises InputError for a table of answers."""
    is_export = _is_label_studio(source)
    if is_export and not _is_task(source.first):
        raise InputError(
            f"{source.name} is a table of Label Studio, with a row for each annotation; export the "
            "project as JSON"
        )
    first = source.first
    is_import = isinstance(first.get("data"), dict) and first.keys() <= {*_LABEL_STUDIO["plain"]}
    return is_import or is_export


def _label_studio_items(rows: ItemRows, source: src.Source) -> None:
    """Read a task as an item, with its data as texts under the same names."""
    for task in source.records():
        data = src.fields_in(task.get("data"))
        task_id = src.text_of(task.get("id") or task.get("inner_id"))
        unit = src.text_of(data.get("unit_id")) or task_id
        ids = {"task_id": task_id} if task_id else {}
        rows.add(unit, users_fields(data), item_id=task_id, ids=ids)


def _annotations(task: src.Record) -> list[src.Record]:
    """Return the annotations of a task, which older exports call completions."""
    return src.objects(task.get("annotations") or task.get("completions"))


def _is_task(record: src.Record) -> bool:
    has_answers = not record.keys().isdisjoint(("annotations", "completions", "predictions"))
    return isinstance(record.get("data"), dict) and has_answers


def _add_task(rows: Rows, unit: str, task: src.Record, email_by_id: Mapping[str, object]) -> None:
    """Add the annotations of a task as people's labels, and its predictions as models'."""
    rows.describe(unit, task["data"])
    for annotation in _annotations(task):
        if annotation.get("was_cancelled") is True:
            rows.leave_out(written("left_out.cancelled"))
            continue
        person = annotation.get("completed_by")
        if isinstance(person, dict):
            person = person.get("email") or person.get("id")
        person = email_by_id.get(src.text_of(person), person)
        time = annotation.get("updated_at") or annotation.get("created_at")
        columns = {"seconds": annotation.get("lead_time"), "created_at": time}
        _add_results(rows, unit, person, "human", annotation, columns)
    if drafts := src.objects(task.get("drafts")):
        rows.leave_out(written("left_out.drafts"), len(drafts))
    predictions = task.get("predictions")
    for prediction in predictions if isinstance(predictions, list) else []:
        if not isinstance(prediction, dict):  # some exports have the id alone
            rows.leave_out(written("left_out.only_id"))
            continue
        columns = {"created_at": prediction.get("created_at")}
        _add_results(rows, unit, prediction.get("model_version"), "model", prediction, columns)


def _add_results(
    rows: Rows, unit: object, rater: object, kind: str, annotation: src.Record, columns: src.Record
) -> None:
    """Add the results of an annotation or a prediction, by the control that they come from."""
    answers_by_control: dict[str, list[object]] = {}
    if annotation.get("result") == []:
        rows.leave_out(written("left_out.empty"))
    for result in src.objects(annotation.get("result")):
        form = src.text_of(result.get("type"))
        if form == "textarea":
            rows.leave_out(written("left_out.free_text"))
        elif form not in _LABEL_STUDIO["answers"]:
            rows.leave_out(written("left_out.regions"))
        else:
            answer = src.get_in(result, "value", _LABEL_STUDIO["answers"][form])
            control = src.text_of(result.get("from_name"))
            answers_by_control.setdefault(control, []).append(src.unwrap(answer))
    for control, answers in answers_by_control.items():
        rows.add(unit, rater, kind, src.unwrap(answers), control, **columns)


# ---- Potato -------------------------------------------------------------------------------------
# Its export (JSONL, CSV, TSV), by scheme, as in the columns `SCHEME.LABEL`; and the folder with a
# folder for each annotator. Studies publish tables with other columns, which are refused here.

_STATE_FILE, _OLD_ANSWERS_FILE = "user_state.json", "annotated_instances.jsonl"
_POTATO = src.TOOLS["potato"]
_UNCHOSEN = (False, None, "", "false")  # values of options that were not chosen
_KIND_OF_ORIGIN = {"llm": "model", "tool": "model"}  # of annotators; others are people
_KEY_COLUMNS = {*_POTATO["ratings"]}
_RECORD_FIELDS = ({*_KEY_COLUMNS, "labels"}, {"user_id", "instance_id_to_label_to_value"})


def _is_potato(source: src.Source) -> bool:
    if source.path.is_dir():
        return next(_answer_files(source.path), None) is not None
    is_table = {*source.header[:2]} == _KEY_COLUMNS  # its export begins with them
    return is_table or any(names <= source.first.keys() for names in _RECORD_FIELDS)


def _read_potato(rows: Rows, source: src.Source) -> None:
    """Read an instance as a unit, a scheme as a rubric, and a user as a person by default."""
    if source.path.is_dir():
        for file in _answer_files(source.path):
            if file.stat().st_size <= src.MOST_BYTES:
                _add_answer_file(rows, file)
    elif source.header and not any("." in name.strip(".") for name in source.header):
        raise InputError(
            f"{source.name} is a table of Potato without the columns SCHEME.LABEL of its export; "
            "name the column of labels: --format table --columns "
            "unit=instance_id,rater=user_id,label=COLUMN"
        )
    else:
        for record in source.records():
            if source.header:
                _add_dotted_row(rows, record)
            elif "labels" in record:
                _add_schemes(rows, record)
            else:
                _add_user_state(rows, record)


def _add_dotted_row(rows: Rows, row: src.Record) -> None:
    """Add a row of the table that Potato exports, with a column SCHEME.LABEL for each label."""
    labels: dict[str, dict[str, str]] = {}
    for name, cell in row.items():
        scheme, dot, label = name.partition(".")
        if dot and cell and not label.startswith("_"):
            labels.setdefault(scheme, {})[label] = cell
    origin = {"kind": row.get("annotator_origin", "")}
    _add_schemes(rows, row | {"labels": labels, "annotator_origin": origin})


def _potato_items(_: ItemRows, source: src.Source) -> None:
    """Raise InputError, as there is a row for each answer, mostly without the text."""
    raise InputError(
        f"{source.name} holds answers of Potato, an item once for each annotator; name the data "
        "file of the project (data_files in its configuration), which has the texts"
    )


def _answer_files(folder: Path) -> Iterator[Path]:
    """Yield the file of each annotator's answers, in a folder named after the annotator."""
    for annotator in sorted(folder.iterdir()):
        names = (_STATE_FILE, _OLD_ANSWERS_FILE) if annotator.is_dir() else ()
        yield from [annotator / name for name in names if (annotator / name).is_file()][:1]


def _add_answer_file(rows: Rows, file: Path) -> None:
    """Add an annotator's file of answers, of a present or an older version of Potato."""
    content, user = file.read_bytes(), file.parent.name
    if file.name == _STATE_FILE:
        _add_user_state(rows, src.fields_in(src.parse_json(content, f"{user}/{file.name}")))
        return
    for record in src.records_in(content, f"{user}/{file.name}"):
        labels = record.get("label_annotations")
        _add_schemes(rows, {"instance_id": record.get("id"), "labels": labels, "user_id": user})


def _add_user_state(rows: Rows, state: src.Record) -> None:
    """Add a user's labels by instance and scheme; newer files have lists of them."""
    for unit, recorded in src.fields_in(state.get("instance_id_to_label_to_value")).items():
        labels = src.fields_in(recorded)
        for pair in recorded if isinstance(recorded, list) else ():  # [{"schema", "name"}, value]
            if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], dict):
                values = labels.setdefault(src.text_of(pair[0].get("schema")), {})
                values[src.text_of(pair[0].get("name"))] = pair[1]
        _add_schemes(rows, {"user_id": state.get("user_id"), "instance_id": unit, "labels": labels})


def _add_schemes(rows: Rows, record: src.Record) -> None:
    """Add a user's labels on an instance, by scheme; free texts are left out."""
    kind = _KIND_OF_ORIGIN.get(src.text_of(src.get_in(record, "annotator_origin", "kind")), "human")
    for scheme, answer in src.fields_in(record.get("labels")).items():
        nested = src.get_in(answer, "labels")  # some keep the answer one layer down
        answer = nested if isinstance(nested, (dict, list)) else answer
        if isinstance(answer, list):  # of the options that were chosen
            answer = {src.text_of(option): True for option in answer}
        values = answer if isinstance(answer, dict) else {"": answer}  # by option
        chosen = {name: value for name, value in values.items() if value not in _UNCHOSEN}
        labels = [_label(name, chosen[name]) for name in chosen if name not in _POTATO["texts"]]
        if len(labels) < len(chosen):
            rows.leave_out(written("left_out.free_text"))
        if labels or not chosen:  # and not free texts alone
            unit, user = record.get("instance_id"), record.get("user_id")
            rows.add(unit, user, kind, src.unwrap(labels or None), scheme)


def _label(name: str, value: object) -> object:
    """Return the label that was chosen: the name of the option, or the value of a scale or slider.

    >>> _label("yes", "yes"), _label("scale_3", "3"), _label("positive", True)
    ('yes', '3', 'positive')
    """
    is_on_scale = name in _POTATO["values"] or name.startswith("scale_") or not name
    return src.Numeral(value) if is_on_scale and isinstance(value, str) else name


# ---- Prodigy ------------------------------------------------------------------------------------
# The JSONL of `prodigy db-out`, choices and labels (prodi.gy/docs/api-interfaces).
def _read_prodigy(rows: Rows, source: src.Source) -> None:
    """Read a choice's option as the label, or the answer on a label, which is then the rubric."""
    for record in source.records():
        if (answer := src.text_of(record.get("answer"))) not in ("accept", "reject"):
            rows.leave_out(written("left_out.ignored"))
            continue
        value: object = record["answer"]
        chosen, rubric = record.get("accept"), src.text_of(record.get("label"))
        if isinstance(chosen, list) and record.get("options"):
            rubric = ""
            value = src.unwrap(chosen or None) if answer == "accept" else None
        elif "spans" in record and "label" not in record:
            rows.leave_out(written("left_out.regions"))
            continue
        unit, when = record.get("_input_hash"), record.get("_timestamp")
        rater = record.get("_annotator_id") or record.get("_session_id")
        rows.describe(unit, record.get("meta"))
        rows.add(unit, rater, "human", value, rubric, created_at=when)


def _prodigy_items(rows: ItemRows, source: src.Source) -> None:
    """Read an input as an item, with the texts of the task under the same names."""
    for record in source.records():
        names = [name for name in record if name not in ("answer", "label") and name[:1] != "_"]
        texts = users_fields({name: record[name] for name in names if type(record[name]) is str})
        rows.add(record.get("_input_hash"), texts, about=record.get("meta"))


# ---- doccano ------------------------------------------------------------------------------------
# The JSONL export, a ZIP archive with a file for each annotator.

_DOCCANO = src.TOOLS["doccano"]


def _is_doccano(source: src.Source) -> bool:
    if source.archive:
        names = source.archive.names
        return bool(names) and all(name.endswith(".jsonl") for name in names)
    first = source.first
    users = ["user" in annotation for annotation in src.objects(first.get("annotations"))]
    is_labelled = isinstance(first.get("label"), list) or any(users)
    return "id" in first and is_labelled and any(name in first for name in _DOCCANO["texts"])


def _has_doccano_items(source: src.Source) -> bool:
    return _is_doccano(source) and not RESPONSES & source.first.keys()


def _read_doccano(rows: Rows, source: src.Source) -> None:
    """Read an example as a unit, and the annotator of a file, unless it is shared, as a rater."""
    for rater, record in _doccano_records(source):
        unit = record.get("id")
        rows.describe(unit, {name: record[name] for name in record if name not in ("id", "label")})
        labels_by_user: dict[str, list[object]] = {}
        if isinstance(record.get("label"), list):
            labels_by_user[rater.removesuffix(".jsonl")] = record["label"]
        for annotation in src.objects(record.get("annotations")):
            user = src.text_of(annotation.get("user"))
            labels_by_user.setdefault(user, []).append(annotation.get("label"))
        for user, labels in labels_by_user.items():
            label = src.unwrap(labels or None)
            if user in _DOCCANO["together"] and not src.get_in(record, "annotations"):  # "all"
                rows.leave_out(written("left_out.shared"))
            elif isinstance(label, list) and label and isinstance(label[0], (list, dict)):
                rows.leave_out(written("left_out.regions"))
            else:
                rows.add(unit, user, "human", label)


def _doccano_items(rows: ItemRows, source: src.Source) -> None:
    """Read an example as an item, with its text."""
    tool_fields = ("id", "label", *_DOCCANO["texts"])
    for _, record in _doccano_records(source):
        text = next((record[name] for name in _DOCCANO["texts"] if name in record), None)
        about = {name: record[name] for name in record if name not in tool_fields}
        rows.add(record.get("id"), users_fields({"text": text}), about=about)


def _doccano_records(source: src.Source) -> Iterator[tuple[str, src.Record]]:
    """Yield each example of each file, after the annotator's name, which is that of the file."""
    if source.archive is None:
        yield from ((source.path.stem, record) for record in source.records())
        return
    for name in source.archive.names:
        for record in src.records_in(source.archive.read(name), f"{source.name}, {name}"):
            yield PurePosixPath(name).stem, record


# ---- votes between two models' answers ----------------------------------------------------------
# As MT-Bench and Chatbot Arena publish them: a JSON line each. Zheng, L., Chiang, W.-L., Sheng, Y.
# et al. (2023). Judging LLM-as-a-judge with MT-Bench and Chatbot Arena.

_VOTES = src.TOOLS["pair_votes"]
_PERSON = re.compile(r"(author|expert|arena_user)_\w+")  # names of people who voted
_UNNAMED_VOTER = "arena_user"


def are_votes(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes."""
    return all(name in names for name in _VOTES["names"])


def have_answers(names: Collection[str]) -> bool:
    """Return True if these column names are those of votes together with the answers."""
    return are_votes(names) and {"conversation_a", "conversation_b"} <= set(names)


def votes(rows: Rows, source: src.Source, records: list[src.Record]) -> Export:
    """Return the ratings of votes: a question, its turn and two models are a unit, the question is
    its cluster. Labels are a, b and tie, where a is the model whose name is first in alphabetical
    order (`subject_a`), whichever was shown first.
    """
    if any("g1_winner" in vote for vote in records):
        raise InputError(
            f"{source.name} holds two votes in a row, g1_winner and g2_winner; write each to a "
            "row of its own, with model_a, model_b, winner (model_a, model_b or tie) and judge"
        )
    for vote in records:
        _add_vote(rows, vote)
    if bad := sum(src.text_of(vote.get("winner")) in _VOTES["both_bad"] for vote in records):
        rows.notes.append(written("exchange.both_bad", count=bad))
    if records and not any(_voter(vote) for vote in records):
        rows.notes.append(written("exchange.one_voter", name=_UNNAMED_VOTER))
    return rows.export(written("exchange.pair_votes"))


def answers(rows: ItemRows, source: src.Source, records: list[src.Record]) -> ItemTable:
    """Return the compared answers as items: a model's answer to a question at one turn is an item,
    called QUESTION/TURN/MODEL, in the question's cluster. Raises InputError without any answers.
    """
    for pair in _comparisons(records):
        for model, answer in pair.answers.items():
            texts = {"prompt": pair.question, "response": answer}
            unit = f"{pair.question_id}/{pair.turn}/{model}"
            rows.add(unit, texts, subject=model, cluster=pair.question_id)
    return _compared_items(rows, written("exchange.pair_votes_items"), source)


def pairs(source: src.Source) -> ItemTable | None:
    """Return the comparisons that votes are about as items, with the columns `question`,
    `answer_a`, `answer_b`, `model_a` and `model_b`, models in alphabetical order as in `votes`.
    A file with each comparison once is that table already. None for another kind of file.
    """
    if not have_answers(source.columns or source.first):
        return None
    records = source.records(source.columns)
    comparisons = list(_comparisons(records))
    units = ["/".join((pair.question_id, pair.turn, *pair.answers)) for pair in comparisons]
    if len({*units}) == len(records) and source.document is None:
        return ItemTable(read_table(source.path))
    rows = ItemRows(source, users_fields=True)
    for unit, pair in zip(units, comparisons, strict=True):
        (model_a, answer_a), (model_b, answer_b) = pair.answers.items()
        texts = {"question": pair.question, "answer_a": answer_a, "answer_b": answer_b}
        models = {"model_a": model_a, "model_b": model_b}
        rows.add(unit, texts, cluster=pair.question_id, about=models)
    return _compared_items(rows, written("exchange.pair_votes_pairs"), source)


def _compared_items(rows: ItemRows, note: str, source: src.Source) -> ItemTable:
    """Return the collected items. Raises InputError where there are none."""
    try:
        return rows.items(note, "question_id")
    except InputError:
        raise InputError(
            f"{source.name} holds votes without the answers that were compared; name a file with "
            "conversation_a and conversation_b, as lmsys/mt_bench_human_judgments has them"
        ) from None


class _Comparison(NamedTuple):
    """Answers by model, in alphabetical order, to a question."""

    question_id: str
    turn: str
    question: str
    answers: dict[str, src.Text]


def _comparisons(records: list[src.Record]) -> Iterator[_Comparison]:
    """Yield the comparison that each vote is about; votes without both answers have none."""
    for vote in records:
        question_id, turn = _question_and_turn(vote)
        n_messages = 2 * int(turn) if turn.isdecimal() and len(turn) < 3 else 2  # two for each turn
        conversations: dict[str, list[src.Record]] = {}
        for side in "ab":
            messages = src.messages_in(vote.get(f"conversation_{side}")) or []
            conversations[src.text_of(vote.get(f"model_{side}"))] = messages
        models = min(conversations), max(conversations)  # in alphabetical order
        question = src.text_in(conversations[models[0]][:1], ())  # the same first message for both
        replies = {m: conversations[m][1:n_messages] for m in models if conversations[m][1:]}
        answers = {model: src.text_in(reply, ()) for model, reply in replies.items()}
        if question_id and len(answers) == 2 and isinstance(question, str):
            yield _Comparison(question_id, turn, question, answers)


def _question_and_turn(vote: src.Record) -> tuple[str, str]:
    """Return the id of the question, and the turn that was voted on."""
    question = src.text_of(vote.get("question_id") or vote.get("conversation_id") or vote.get("id"))
    return question, src.text_of(vote.get("turn")) or "1"


def _add_vote(rows: Rows, vote: src.Record) -> None:
    """Add a vote; a person's, unless `judge` names a model. Arena's columns name its visitors."""
    winner = src.text_of(vote.get("winner"))
    first, second = (src.text_of(vote.get(f"model_{side}")) for side in "ab")  # as shown
    subject_a, subject_b = sorted((first, second))  # in alphabetical order
    order = "ab" if first == subject_a else "ba"  # the subjects' letters, as the models were shown
    label, reason = {"model_a": order[0], "model_b": order[1]}.get(winner), ""
    if winner.startswith("tie (inconsistent"):  # two orders, two answers: no one label
        reason = "order_disagreement"
    elif winner == "error":
        reason = "error"
    elif winner.startswith("tie") or winner in _VOTES["both_bad"]:
        label = "tie"
    question, turn = _question_and_turn(vote)
    can_be_compared = question and subject_a != subject_b
    unit = f"{question}/{turn}/{subject_a}/{subject_b}" if can_be_compared else ""
    rows.describe(unit, {"subject_a": subject_a, "subject_b": subject_b})
    rater, time = _voter(vote) or _UNNAMED_VOTER, vote.get("tstamp") or vote.get("timestamp")
    kind = "human" if not vote.get("judge") or _PERSON.fullmatch(rater) else plain_kind(rater)
    columns = {"order": order, "unscored_reason": reason, "cluster_id": question}
    rows.add(unit, rater, kind, label, **columns, created_at=time)


def _voter(vote: src.Record) -> str:
    """Return the name of the voter, or "" if the vote has none."""
    voter = next((vote[name] for name in _VOTES["voters"] if vote.get(name)), None)
    return ":".join(filter(None, map(src.text_of, voter if isinstance(voter, list) else [voter])))


# ---- datasets of Hugging Face -------------------------------------------------------------------
# The folder of `save_to_disk`, or of a repository with Parquet files, and a single Parquet or Arrow
# file of votes between two models.

_SUFFIXES = (".arrow", ".parquet")
_EVENHAND_RATINGS = "ratings.parquet"  # the file of ratings in a folder that evenhand wrote
_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"  # first bytes of two formats


def _is_hugging_face(source: src.Source) -> bool:
    if source.path.is_dir():
        return bool(_data_files(source.path))
    if source.path.suffix.casefold() == ".arrow":
        return source.head.startswith((_ARROW_FILE, _ARROW_STREAM))
    return are_votes(source.columns) or _are_argilla(source.columns)


def _are_argilla(columns: Collection[str]) -> bool:
    """Return True if these are the columns of a dataset that Argilla wrote."""
    return any(f"{name}.users" in columns for name in columns if name.endswith(".responses"))


def _read_hugging_face(rows: Rows, source: src.Source) -> Export:
    """Read the largest table, long or wide as in a CSV file, with labels by name; or votes."""
    columns, records, n_files = _dataset(source)
    if are_votes(columns):
        return votes(rows, source, records)
    return Export(_frame(columns, records), [written("exchange.hugging_face", files=n_files)])


def _hugging_face_items(rows: ItemRows, source: src.Source) -> ItemTable:
    """Read a row as an item, as in a CSV file; or answers that were compared."""
    columns, records, n_files = _dataset(source)
    if have_answers(columns):
        return answers(rows, source, records)
    return ItemTable(_frame(columns, records), [written("exchange.hugging_face", files=n_files)])


def _frame(columns: list[str], records: list[src.Record]) -> pd.DataFrame:
    """Return records as a table of texts, with the index of a table read from a CSV file."""
    index = range(1 - FIRST_ROW, len(records) + 1 - FIRST_ROW)  # messages add FIRST_ROW
    cells = {name: [src.label_text(record[name]) for record in records] for name in columns}
    return pd.DataFrame(cells, index=index, dtype=str)


def _dataset(source: src.Source) -> tuple[list[str], list[src.Record], int]:
    """Return the columns and rows of the largest table in the files, and the number of files."""
    files = _data_files(source.path) if source.path.is_dir() else [source.path]
    if not files:
        raise InputError(f"{source.name} holds no Arrow and no Parquet file")
    if sum(file.stat().st_size for file in files) > src.MOST_BYTES:
        raise InputError(f"{source.name} is too large; write the columns that count to a CSV file")
    tables: dict[tuple[str, ...], list[src.Record]] = defaultdict(list)  # rows by columns
    for file in files:
        with src.readable(f"{source.name}: {file.name}"):
            table = _arrow_table(file)
            tables[tuple(table.column_names)] += _rows_of(table, file)
    columns = max(tables, key=lambda columns: len(tables[columns]))
    if _are_argilla(columns):
        raise InputError(
            f"{source.name} holds Argilla's records as a Hugging Face dataset; write them with "
            "`dataset.records.to_json(FILE)` and name that file"
        )
    return list(columns), tables[columns], len(files)


def _data_files(folder: Path) -> list[Path]:
    """Return the files with data in a folder, in `data`, or in folders of splits."""
    if (folder / _EVENHAND_RATINGS).is_file():  # not its table of units
        return [folder / _EVENHAND_RATINGS]
    return [
        path
        for pattern in ("*", "*/*", "*/*/*")
        for path in sorted(folder.glob(pattern))
        if path.suffix.casefold() in _SUFFIXES and path.is_file() and "cache-" not in path.name
    ]


def _arrow_table(file: Path) -> Any:
    """Return the table of a Parquet or Arrow file. Raises an error of pyarrow if it is damaged."""
    if file.suffix.casefold() != ".arrow":
        check_parquet(file)
        return pq.read_table(file)
    with pa.memory_map(str(file)) as stream:
        is_file_format = src.Source(file).head.startswith(_ARROW_FILE)
        table = (pa.ipc.open_file if is_file_format else pa.ipc.open_stream)(stream).read_all()
        check_arrow(table, file.name)
        return table


def _rows_of(table: Any, file: Path) -> list[src.Record]:
    """Return a table's rows, with numbers as texts and class labels by name."""
    metadata = (table.schema.metadata or {}).get(b"huggingface", b"{}")
    features = src.get_in(json.loads(metadata), "info", "features")
    info = file.parent / "dataset_info.json"
    if features is None and info.is_file():
        features = src.get_in(json.loads(info.read_text("utf-8")), "features")
    classes = {
        name: [str(class_name) for class_name in feature["names"]]
        for name, feature in (features or {}).items()
        if isinstance(feature, dict) and feature.get("_type") == "ClassLabel"
    }

    def cell(column: str, value: Any) -> Any:
        if column not in classes or not isinstance(value, int):
            return src.number_as_text(value)
        names = classes[column]
        return src.Numeral(names[value]) if 0 <= value < len(names) else None  # -1: no label

    return [{name: cell(name, value) for name, value in row.items()} for row in table.to_pylist()]


READERS = {  # the fields of `Reader`: recognises, ratings, items, and at times has_items
    "argilla": Reader(_is_argilla, _read_argilla, _argilla_items),
    "label_studio": Reader(_is_label_studio, _read_label_studio, _label_studio_items, _has_tasks),
    "potato": Reader(_is_potato, _read_potato, _potato_items),
    "prodigy": Reader(has_fields("prodigy"), _read_prodigy, _prodigy_items),
    "doccano": Reader(_is_doccano, _read_doccano, _doccano_items, _has_doccano_items),
    "pair_votes": Reader(
        lambda source: are_votes(source.first) or "g1_winner" in source.first,
        lambda rows, source: votes(rows, source, source.records()),
        lambda rows, source: answers(rows, source, source.records()),
        # Other votes are read as a table with answers in other columns; g1_winner is an error.
        lambda source: have_answers(source.first) or "g1_winner" in source.first,
    ),
    "hugging_face": Reader(_is_hugging_face, _read_hugging_face, _hugging_face_items),
}
