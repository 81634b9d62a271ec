"""Writers of ratings in the formats of other tools: each turns a `Material` into files (`Output`).
A unit is what gets a label: a response, or a pair of responses to two opposing prompts.

First come functions that writers share, then a section for each tool; tools that take JSON lines
have a function that makes one of a rating and its unit (`_lines`). At the end `FORMATS` has the
writers by name, and `save` writes their files.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from evenhand.errors import InputError, did_you_mean
from evenhand.lazy import jinja2, pd
from evenhand.study.tables.columns import folded
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.study.tables.formats import csv_bytes
from evenhand.study.tables.ratings import instant_of
from evenhand.texts import written

TEXTS = {
    "prompt": "Prompt", "response": "Response", "prompt_a": "Prompt A", "response_a": "Response A",
    "prompt_b": "Prompt B", "response_b": "Response B",
}  # fmt: skip
"""Columns of units with the rated texts, and their headings where they are shown."""
_COMBINED_COLUMNS = ("draw", "order")  # a grader's repetitions, and orders of a pair's responses
_METADATA_COLUMNS = ("p_positive", "prob_method", "draw", "order", "seconds", "rubric_hash")
_ID_NAMESPACE = uuid.UUID("d1c0b6f0-6f0c-4c39-9f2e-3d2f6d3f6a51")  # changing it changes all ids


@dataclass(frozen=True)
class Scale:
    """A rubric as other tools show it: its title, and the name of each label in their order."""

    title: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Material:
    """Ratings to be written for another tool, as a validated table (`ratings`). `combined` has the
    same columns, with one row for each rater, unit and rubric: repeated draws and both orders are
    combined as in the analysis. `units` has a row for each `unit_id`, with the `TEXTS` if known,
    and perhaps the tool's ids of the unit, such as `trace_id`. `scales` are by rubric. `synthetic`
    ratings are of made-up data. `notes` tell how a file of ratings was interpreted.
    """

    name: str
    ratings: pd.DataFrame
    combined: pd.DataFrame
    units: pd.DataFrame
    scales: Mapping[str, Scale]
    synthetic: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Output:
    """A writer's `files` by name, the `count` of records in them, and notes on what was left out.
    If the format is a folder, the names are paths in it. Otherwise "" is the file itself, and any
    other name is the ending of a file next to it.
    """

    files: Mapping[str, bytes]
    count: int
    left_out: list[str]


def rubric_name(rubric: str) -> str:
    """Return the name of a rubric for a tool, in which it must have one."""
    return rubric or "label"


def labelled_rows(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows that have a label, and a sentence on the number of others, if any."""
    has_label = rows["label"] != ""
    n_unscored = int((~has_label).sum())
    return rows[has_label], [written("writers.unscored", count=n_unscored)] if n_unscored else []


def lost_note(material: Material, tool: str, carried: Collection[str]) -> list[str]:
    """Return a sentence on filled columns that are not `carried` in a tool's format, if any."""
    names = {"unit_id", "rubric", "rater_id", "rater_kind", "label", *_COMBINED_COLUMNS, *carried}
    rows = material.ratings
    others = [name for name in rows if name not in names]
    lost = [name for name in others if (rows[name].notna() & (rows[name] != "")).any()]
    columns = ", ".join(map(str, lost))
    return [written("writers.columns", tool=tool, columns=columns)] if lost else []


def combined_note(material: Material) -> list[str]:
    """Return a sentence that ratings were combined to one for each rater and unit, if they were."""
    rows, count = len(material.ratings), len(material.combined)
    return [written("writers.combined", rows=rows, count=count)] if rows > count else []


def facts_of(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the filled cells of a row of ratings among these names: neither NaN nor ""."""
    return {name: row[name] for name in names if row[name] == row[name] and row[name] != ""}


def tool_id(row: Mapping[Any, Any], unit: Mapping[str, Any], column: str) -> str:
    """Return the id of a unit in a tool: its cell in this column, else the item's or the unit's id.

    >>> tool_id({"unit_id": "p1|m|a"}, {"item_id": "tr-1"}, "trace_id")
    'tr-1'
    """
    return str(unit.get(column, unit.get("item_id", row["unit_id"])))


def rating_metadata(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the filled columns of a rating that a tool stores as metadata, such as the rater."""
    facts = facts_of(row, ("rater_id", "rater_kind", *_METADATA_COLUMNS))
    if row["probabilities"]:
        facts["probabilities"] = json.loads(row["probabilities"])
    return facts


def stable_rating_id(row: Mapping[Any, Any]) -> str:
    """Return an id of a rating that is the same each time the rating is written."""
    key = [row[name] for name in ("unit_id", "rubric", "rater_id", "order", "draw")]
    return str(uuid.uuid5(_ID_NAMESPACE, json.dumps(key)))


def unit_rows(units: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the filled cells of each unit by id, as texts and numbers that JSON has."""
    return {
        str(row["unit_id"]): {
            str(name): cell.item() if hasattr(cell, "item") else cell
            for name, cell in row.items()
            if not pd.isna(cell) and cell != ""
        }
        for row in units.to_dict("records")
    }


def unit_text(cells: Mapping[str, Any]) -> str:
    """Return the rated texts of a unit as one text; if they are not known, its `text`, else its id.

    >>> unit_text({"unit_id": "p1", "prompt": "Why?", "response": "So."})
    'Prompt\\n\\nWhy?\\n\\nResponse\\n\\nSo.'
    """
    # A unit of one response has the prompts of its pair, too, which are not rated with it.
    is_pair = "response" not in cells  # so that it has response_a and response_b
    names = [name for name in TEXTS if name in cells and (is_pair or "_" not in name)]
    if not any(name.startswith("response") for name in names):
        return str(cells.get(TEXT) or cells["unit_id"])
    return "\n\n".join(f"{TEXTS[name]}\n\n{cells[name]}" for name in names)


def utc_time(created_at: str) -> str:
    """Return a time in UTC in ISO 8601; the current time if the text is not a time.

    >>> utc_time("2026-11-22T13:24:39.123456+01:00")
    '2026-11-22T12:24:39.123Z'
    """
    time = instant_of(created_at) or datetime.now(UTC)
    time = time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    precision = "milliseconds" if time.microsecond >= 1000 else "seconds"
    return time.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _rows_by_unit(
    material: Material, rows: pd.DataFrame
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield each unit's filled cells and its rows among these ratings, sorted by `unit_id`."""
    units = unit_rows(material.units)
    for unit, unit_ratings in rows.groupby("unit_id", sort=True):
        yield units.get(str(unit), {"unit_id": unit}), unit_ratings


def _grades(material: Material, tool: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of models' labels, and notes on the others. Raises InputError without any."""
    rows = material.combined
    models = rows["rater_kind"] == "model"
    if not models.any():
        raise InputError(f"{tool} is given what models said, and there are no grades yet")
    n_others = int((~models).sum())
    people_note = [written("writers.people", count=n_others, tool=tool)] if n_others else []
    grades, unscored_note = labelled_rows(rows[models])
    lost = lost_note(material, tool, ("unscored_reason",))
    return grades, [*combined_note(material), *people_note, *unscored_note, *lost]


# ---- Argilla ------------------------------------------------------------------------------------
# https://docs.argilla.io/latest/how_to_guides/import_export/

TEXT = "text"  # the field with the rated text in Argilla and Label Studio


def argilla(material: Material) -> Output:
    """Make `records.json`, in which each unit has its text and a suggestion for every rubric, and
    settings in `.argilla` with a label question for each rubric. Raises InputError if there are
    several graders: Argilla has one suggestion for each question.
    """
    models = material.combined["rater_kind"] == "model"
    raters = sorted(material.combined[models]["rater_id"].unique())
    if len(raters) > 1:
        raise InputError(
            "Argilla holds one suggestion for each item and rubric; name one grader with --rater: "
            + ", ".join(raters)
        )
    grades, left_out = _grades(material, "Argilla")
    settings = json.loads(files("evenhand.exchange").joinpath("argilla.json").read_text("utf-8"))
    rubrics = sorted(grades["rubric"].unique())
    settings["questions"] += [_argilla_question(name, material.scales[name]) for name in rubrics]
    values = {
        ".argilla/dataset.json": {"name": material.name},
        ".argilla/settings.json": settings,
        "records.json": [_argilla_record(*rated) for rated in _rows_by_unit(material, grades)],
    }
    contents = {name: json.dumps(value, ensure_ascii=False) for name, value in values.items()}
    return Output({name: text.encode() for name, text in contents.items()}, len(grades), left_out)


def _argilla_record(unit: dict[str, Any], rows: pd.DataFrame) -> dict[str, Any]:
    """Return the record of a unit, with a suggestion for each of its rows."""
    suggestions = {
        rubric_name(row["rubric"]): {
            "value": row["label"],
            "score": json.loads(row["probabilities"] or "{}").get(row["label"]),
            "agent": row["rater_id"],
        }
        for row in rows.to_dict("records")
    }
    texts, metadata = {TEXT: unit_text(unit)}, {"unit_id": unit["unit_id"]}
    record = {"id": tool_id(unit, unit, "record_id"), "fields": texts, "metadata": metadata}
    return {**record, "suggestions": suggestions, "responses": {}, "vectors": {}}


def _argilla_question(rubric: str, scale: Scale) -> dict[str, Any]:
    """Return the settings of the label question for a rubric."""
    options = [{"value": key, "text": name} for key, name in scale.labels.items()]
    return {
        "name": rubric_name(rubric),
        "title": scale.title,
        "required": True,
        "type": "label_selection",
        "settings": {"type": "label_selection", "options": options, "visible_options": None},
    }


# ---- Label Studio -------------------------------------------------------------------------------
# https://labelstud.io/guide/predictions
def label_studio(material: Material) -> Output:
    """Make a JSON list of tasks to import, and `NAME.config.xml` for the project next to it. A
    task's `text` is the rated text; an item that came from Label Studio keeps its task's `id`. A
    grader's prediction has the grader's id as `model_version`, a choice for every rubric and, with
    just one rubric, the probability of its label as score.
    """
    grades, left_out = _grades(material, "Label Studio")
    tasks = []
    for unit, rows in _rows_by_unit(material, grades):
        data = unit | {TEXT: unit_text(unit)}
        task_id = {"id": unit["task_id"]} if "task_id" in unit else {}
        tasks.append({**task_id, "data": data, "predictions": _predictions(rows)})
    count = sum(len(task["predictions"]) for task in tasks)
    lines = ["<View>", f'  <Text name="{TEXT}" value="${TEXT}"/>']  # "$text": the task's field
    choice = "    <Choice value={} hint={}/>".format
    for rubric in grades["rubric"].unique():
        scale = material.scales[rubric]
        lines += [
            f"  <Header value={quoteattr(scale.title)}/>",
            f'  <Choices name={quoteattr(rubric_name(rubric))} toName="{TEXT}">',
            *(choice(quoteattr(key), quoteattr(name)) for key, name in scale.labels.items()),
            "  </Choices>",
        ]
    files = {
        "": json.dumps(tasks, ensure_ascii=False, indent=1).encode(),
        ".config.xml": "\n".join([*lines, "</View>", ""]).encode(),
    }
    return Output(files, count, left_out)


def _predictions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the predictions of each grader on a unit, from their rows."""
    predictions = []
    for rater, labels in rows.groupby("rater_id", sort=True):
        first_row = labels.iloc[0]
        probabilities = json.loads(first_row["probabilities"] or "{}") if len(labels) == 1 else {}
        results = [
            {
                "from_name": rubric_name(rubric),
                "to_name": TEXT,
                "type": "choices",
                "value": {"choices": [label]},
            }
            for rubric, label in zip(labels["rubric"], labels["label"], strict=True)
        ]
        score = {"score": probabilities[first_row["label"]]} if probabilities else {}
        predictions.append({"model_version": rater, **score, "result": results})
    return predictions


# ---- datasets of Hugging Face -------------------------------------------------------------------
# https://huggingface.co/docs/hub/datasets-cards
def hugging_face(material: Material) -> Output:
    """Make a dataset of both tables in full, as Parquet files with a `README.md`."""
    files = {
        "README.md": _card(material).encode(),
        "ratings.parquet": material.ratings.to_parquet(index=False),
        "units.parquet": material.units.to_parquet(index=False),
    }
    return Output(files, len(material.ratings), [written("writers.agreed")])


def _card(material: Material) -> str:
    """Return the dataset card, with JSON texts and lists in its YAML header."""

    def flat(text: str) -> str:
        """Return a text on one line, without backticks, which would end its field."""
        return " ".join(text.replace("`", "'").split())

    ratings = material.ratings
    people = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    models = sorted(ratings.loc[ratings["rater_kind"] == "model", "rater_id"].unique())
    units = ratings["unit_id"].nunique()
    counts = {"ratings": len(ratings), "units": units, "people": people, "models": len(models)}
    card: str = jinja2.Template(
        files("evenhand.exchange").joinpath("card.md.j2").read_text("utf-8"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    ).render(
        material=material,
        models=models,
        scales=sorted(material.scales.items()),
        summary=written("writers.card", **counts),
        flat=flat,
        json=partial(json.dumps, ensure_ascii=False),
        synthetic=written("writers.card_synthetic"),
        tables=[written("writers.card_ratings"), written("writers.card_units")],
        made=written("writers.card_made"),
    )
    return card


# ---- Inspect ------------------------------------------------------------------------------------
# https://inspect.aisi.org.uk/reference/inspect_ai.scorer.html

_INSPECT_FACTS = ("rater_id", "rater_kind", "p_positive", "unscored_reason")


def inspect_scores(material: Material) -> Output:
    """Make a JSON list with a record for each unit: `value` has every rater's label or None, and
    `metadata` describes each rater. If there are several rubrics, a rater is named RUBRIC/RATER.

    A record's `id`, of a sample of Inspect, is the unit's `tool_id` (column `sample_id`). It is for
    the `epoch` in the units' table, or else for every epoch.
    """
    rows = material.combined
    has_rubrics = rows["rubric"].nunique() > 1
    names = (rows["rubric"].map(rubric_name) + "/" if has_rubrics else "") + rows["rater_id"]
    no_labels = dict.fromkeys(sorted(names.unique()))  # None, by rater
    records = []
    for unit, unit_ratings in _rows_by_unit(material, rows.assign(name=names)):
        unit_labels: list[dict[Any, Any]] = unit_ratings.to_dict("records")
        raters = []
        for row in unit_labels:
            rater = {"name": row["name"], "rubric": rubric_name(row["rubric"])}
            raters.append(rater | facts_of(row, _INSPECT_FACTS))
        record = {
            "id": tool_id(unit, unit, "sample_id"),
            "value": no_labels | {row["name"]: row["label"] or None for row in unit_labels},
            "metadata": {"unit_id": unit["unit_id"], "raters": raters},
        }
        epoch = folded(str(unit.get("epoch", "")))  # "1.0" is 1
        records.append(record | ({"epoch": int(epoch)} if epoch.isdecimal() else {}))
    content = json.dumps(records, ensure_ascii=False, indent=1)
    lost = lost_note(material, "Inspect", _INSPECT_FACTS)
    return Output({"": content.encode()}, len(records), [*combined_note(material), *lost])


def _lines(
    to_json: Callable[[dict[Any, Any], dict[str, Any]], dict[str, Any]], *, labelled: bool = True
) -> Callable[[Material], Output]:
    """Return a writer of JSON lines, each `to_json(row of ratings, cells of its unit)`; with
    `labelled`, rows without a label are left out.
    """

    def make(material: Material) -> Output:
        rows, left_out = labelled_rows(material.ratings) if labelled else (material.ratings, [])
        units = unit_rows(material.units)
        records = [to_json(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
        lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        return Output({"": lines.encode()}, len(records), left_out)

    return make


# ---- Langfuse -----------------------------------------------------------------------------------
# https://langfuse.com/docs/evaluation/evaluation-methods/custom-scores

_IDS = {"trace_id": "traceId", "observation_id": "observationId", "session_id": "sessionId"}
"""Langfuse's fields for the id of what is scored, by columns of units; without these: `tool_id`."""


def langfuse_score(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Return a categorical score, named after the rubric, with `stable_rating_id` as its id."""
    ids = {name: str(unit[column]) for column, name in _IDS.items() if column in unit}
    return {
        "id": stable_rating_id(row),
        **(ids or {"traceId": tool_id(row, unit, "trace_id")}),
        "name": rubric_name(row["rubric"]),
        "value": row["label"],
        "dataType": "CATEGORICAL",
        "metadata": rating_metadata(row),
    } | ({"timestamp": utc_time(row["created_at"])} if row["created_at"] else {})


# ---- LangSmith ----------------------------------------------------------------------------------
# https://docs.langchain.com/langsmith/feedback-data-format
def langsmith_feedback(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Return feedback on the run whose id is `tool_id` (column `run_id`), with the rubric as its
    key and the rater in the source's metadata. Sent twice, a rating is one piece of feedback.
    """
    metadata = {name: str(value) for name, value in rating_metadata(row).items()}
    kind = "model" if row["rater_kind"] == "model" else "api"  # people labelled outside of its app
    run = tool_id(row, unit, "run_id")
    feedback = {
        "id": stable_rating_id(row),
        "run_id": run,
        "trace_id": str(unit.get("trace_id", run)),  # an uppermost run is its own trace
        "key": rubric_name(row["rubric"]),
        "value": row["label"],
        "feedback_source": {"type": kind, "metadata": metadata},
    }
    time = utc_time(row["created_at"]) if row["created_at"] else ""
    return feedback | ({"created_at": time, "modified_at": time} if time else {})


# ---- Phoenix ------------------------------------------------------------------------------------
# https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/spans/create-span-annotations
def phoenix_annotation(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Return an annotation of the span whose id is `tool_id` (column `span_id`). It is named after
    the rubric, with the rater in its metadata. Sent twice, a rating is one annotation.
    """
    order_and_draw = [str(row[name]) for name in ("order", "draw") if row[name]]
    return {
        "span_id": tool_id(row, unit, "span_id"),
        "name": rubric_name(row["rubric"]),
        "annotator_kind": "LLM" if row["rater_kind"] == "model" else "HUMAN",
        "result": {"label": row["label"]},
        "metadata": rating_metadata(row),
        "identifier": "/".join([row["rater_id"], row["unit_id"], *order_and_draw]),
    }


# ---- MLflow -------------------------------------------------------------------------------------
# https://mlflow.org/docs/latest/genai/assessments/feedback/

_MLFLOW_FACTS = (
    "rater_kind", "p_positive", "probabilities", "prob_method", "draw", "order", "seconds",
    "rubric_hash",
)  # fmt: skip


def mlflow_assessment(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Return feedback, named after the rubric, on the trace whose id is `tool_id` (column
    `trace_id`), and on the span in the column `span_id`, if any. A rating without a label is
    feedback with an error, whose code is the reason.
    """
    source = "HUMAN"
    if row["rater_kind"] == "model":
        source = "CODE" if row["rater_id"].startswith("baseline:") else "LLM_JUDGE"
    feedback: dict[str, Any] = {"value": row["label"] or None}
    if not row["label"]:
        feedback["error"] = {"error_code": row["unscored_reason"] or "no_label"}
    time = utc_time(row["created_at"])
    return {
        "assessment_name": rubric_name(row["rubric"]),
        "trace_id": tool_id(row, unit, "trace_id"),
        "source": {"source_type": source, "source_id": row["rater_id"]},
        "create_time": time,
        "last_update_time": time,
        "feedback": feedback,
        "metadata": {name: str(value) for name, value in facts_of(row, _MLFLOW_FACTS).items()},
        "valid": True,
    } | ({"span_id": str(unit["span_id"])} if "span_id" in unit else {})


# ---- R and spreadsheets -------------------------------------------------------------------------

MISSING = "NA"
_ORDER_OF_KINDS = ("human", "adjudicator", "model")


def wide(material: Material) -> Output:
    """Make a CSV file with `unit_id`, `rubric` if there are several, the units' columns without the
    rated texts, and a column for each rater, people first. Cells that a spreadsheet would run are
    guarded. In R, read it with `read.csv(FILE, check.names = FALSE)`.
    """
    rows = material.combined
    if (rows["label"] == MISSING).any():
        raise InputError(f"a label is {MISSING!r}, which R reads as missing; rename it before")
    keys = ["unit_id", "rubric"] if rows["rubric"].nunique() > 1 else ["unit_id"]
    kinds = rows.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"].to_dict()
    raters = sorted(map(str, kinds), key=lambda rater: (_ORDER_OF_KINDS.index(kinds[rater]), rater))
    units = material.units.drop(columns=[*TEXTS], errors="ignore")
    if repeated := [name for name in (*units.columns, "rubric") if name in raters]:
        raise InputError(f"a rater and a column of the units are both called {repeated[0]!r}")
    table = rows.pivot(index=keys, columns="rater_id", values="label")[raters].reset_index()
    table = units.merge(table, on="unit_id", how="right")
    table = table[[*keys, *(name for name in table if name not in keys)]]  # keys first
    table = table.astype(object).where(table.notna() & (table != ""), MISSING)
    lost = lost_note(material, "A wide table", carried=())
    return Output({"": csv_bytes(table)}, len(table), [*combined_note(material), *lost])


# ---- the formats by name, and writing their files -----------------------------------------------
class Format(NamedTuple):
    """A format: names of the tool and its records, the file's suffix ("": a folder), the writer."""

    tool: str
    rows: str
    suffix: str
    make: Callable[[Material], Output]


FORMATS = {
    "argilla": Format("Argilla", "suggestions", "", argilla),
    "hugging-face": Format("Hugging Face datasets", "ratings", "", hugging_face),
    "inspect": Format("Inspect", "precomputed scores", ".json", inspect_scores),
    "label-studio": Format("Label Studio", "predictions", ".json", label_studio),
    "langfuse": Format("Langfuse", "scores", ".jsonl", _lines(langfuse_score)),
    "langsmith": Format("LangSmith", "feedback", ".jsonl", _lines(langsmith_feedback)),
    "mlflow": Format("MLflow", "assessments", ".jsonl", _lines(mlflow_assessment, labelled=False)),
    "phoenix": Format("Phoenix", "span annotations", ".jsonl", _lines(phoenix_annotation)),
    "wide": Format("R and spreadsheets", "rows", ".csv", wide),
}
"""Formats by the name for `evenhand export --format`."""


def format_of(name: str) -> Format:
    """Return the format of this name. Raises InputError with the nearest name if there is none."""
    if name not in FORMATS:
        names = ", ".join(FORMATS)
        raise InputError(f"--format is {name!r}; write one of {names}{did_you_mean(name, FORMATS)}")
    return FORMATS[name]


def check_out(out: Path, target: Format) -> None:
    """Raise InputError if a format cannot be written to this path."""
    if target.suffix:
        if out.suffix.casefold() != target.suffix:
            raise InputError(f"{out.name}: the extension must be {target.suffix} for {target.tool}")
    elif out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise InputError(f"{out} is there already; name a new folder for {target.tool}")


def save(output: Output, out: Path, target: Format) -> list[Path]:
    """Write an output, readable by its owner alone; return the paths of its files or its folder."""
    if target.suffix:
        paths = []
        for ending, content in output.files.items():
            paths.append(out.with_name(out.stem + ending) if ending else out)
            atomic_write(paths[-1], content)
        return paths
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}; make it first")
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as temporary:
        folder = Path(temporary) / out.name
        new_folder(folder)
        for name, content in output.files.items():
            new_folder((folder / name).parent)
            atomic_write(folder / name, content)
        os.replace(folder, out)  # which may be an empty folder
    return [out]
