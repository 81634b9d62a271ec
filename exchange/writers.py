"""Ratings in the formats of other tools: a function for each."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from xml.sax.saxutils import quoteattr

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.tables.files import atomic_write, new_folder
from evenhand.study.tables.formats import csv_bytes, guarded, parquet_bytes
from evenhand.study.tables.ratings import instant_of
from evenhand.texts import written

TEXTS = {
    "prompt": "Prompt", "response": "Response", "prompt_a": "Prompt A", "response_a": "Response A",
    "prompt_b": "Prompt B", "response_b": "Response B",
}  # fmt: skip
"""Columns of units with the rated texts, and their headings where they are shown."""
_COMBINED = ("draw", "order")
_FACTS = ("p_positive", "prob_method", "draw", "order", "seconds", "rubric_hash")
_NAMESPACE = uuid.UUID("d1c0b6f0-6f0c-4c39-9f2e-3d2f6d3f6a51")


@dataclass(frozen=True)
class Scale:
    """A rubric as other tools show it: its title, and the name of each label in their order."""

    title: str
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Material:
    """Ratings on their way to another tool.

    `ratings` is the table of this name, validated. `combined` has its columns too, but one row for
    each rater, unit and rubric: repeated draws and both orders as the analysis takes them. `units`
    has a row for each `unit_id`, the `TEXTS` among its columns where they are known, and perhaps
    the ids by which the tool knows the unit, such as `trace_id` or `item_id`. `scales` are by
    rubric. `notes` hold the assumptions made about a file.
    """

    name: str
    ratings: pd.DataFrame
    combined: pd.DataFrame
    units: pd.DataFrame
    scales: Mapping[str, Scale]
    synthetic: bool = False
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Made:
    """Output of a writer: `files` by name, `count` of the records that the tool will see, and
    sentences on what could not be carried.

    The files of a format that is a folder have their names in it. Elsewhere "" is the file asked
    for, and any other name is the end of the name of a file next to it.
    """

    files: Mapping[str, bytes]
    count: int
    left_out: list[str]


def rubric_name(rubric: str) -> str:
    """Return the name of a question; tools want a name where a ratings file needs none."""
    return rubric or "label"


def with_label(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows that have a label, and the number without."""
    has = rows["label"] != ""
    left = int((~has).sum())
    return rows[has], [written("writers.unscored", count=left)] if left else []


def not_carried(material: Material, tool: str, carried: Collection[str]) -> list[str]:
    """A sentence on the filled columns of ratings for which the tool has no place."""
    held = {"unit_id", "rubric", "rater_id", "rater_kind", "label", *_COMBINED, *carried}
    rows = material.ratings
    others = [name for name in rows if name not in held]
    lost = [name for name in others if (rows[name].notna() & (rows[name] != "")).any()]
    columns = ", ".join(map(str, lost))
    return [written("writers.columns", tool=tool, columns=columns)] if lost else []


def combined(material: Material) -> list[str]:
    """A sentence for a tool that holds one label for each rater and unit, if there were more."""
    rows, count = len(material.ratings), len(material.combined)
    return [written("writers.combined", rows=rows, count=count)] if rows > count else []


def facts_of(row: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """The filled cells among these of a row of ratings."""
    return {name: row[name] for name in names if row[name] == row[name] and row[name] != ""}


def tool_id(row: Mapping[Any, Any], unit: Mapping[str, Any], column: str) -> str:
    """Return the id by which a tool knows what was rated: its column of the units, the item's own
    id, or the unit's.

    >>> tool_id({"unit_id": "p1|m|a"}, {"item_id": "tr-1"}, "trace_id")
    'tr-1'
    """
    return str(unit.get(column, unit.get("item_id", row["unit_id"])))


def about_rating(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return who gave a rating, and the facts about it that a tool keeps as metadata."""
    facts = facts_of(row, ("rater_id", "rater_kind", *_FACTS))
    if row["probabilities"]:
        facts["probabilities"] = json.loads(row["probabilities"])
    return facts


def always_same_id(row: Mapping[Any, Any]) -> str:
    """Return an id that a rating has however often it is written."""
    key = [row[name] for name in ("unit_id", "rubric", "rater_id", "order", "draw")]
    return str(uuid.uuid5(_NAMESPACE, json.dumps(key)))


def unit_rows(units: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Map each unit id to its filled cells, as texts and numbers that JSON knows."""
    return {
        str(row["unit_id"]): {
            str(name): cell.item() if hasattr(cell, "item") else cell
            for name, cell in row.items()
            if not pd.isna(cell) and cell != ""
        }
        for row in units.to_dict("records")
    }


def unit_text(cells: Mapping[str, Any]) -> str:
    """Return the rated material as one text; the unit's id where nothing else is known.

    >>> unit_text({"unit_id": "p1", "prompt": "Why?", "response": "So."})
    'Prompt\\n\\nWhy?\\n\\nResponse\\n\\nSo.'
    """
    # A response unit also carries the prompts of its pair.
    is_pair = "response" not in cells
    ours = [name for name in TEXTS if name in cells and (is_pair or "_" not in name)]
    if not any(name.startswith("response") for name in ours):
        return str(cells["unit_id"])
    return "\n\n".join(f"{TEXTS[name]}\n\n{cells[name]}" for name in ours)


def moment(created_at: str) -> str:
    """A time as other tools read it, in UTC; now, where it is not known or cannot be read.

    >>> moment("2026-11-22T13:24:39.123456+01:00")
    '2026-11-22T12:24:39.123Z'
    """
    at = instant_of(created_at) or datetime.now(UTC)
    at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    how = "milliseconds" if at.microsecond >= 1000 else "seconds"
    return at.replace(tzinfo=None).isoformat(timespec=how) + "Z"


# ---- Argilla ------------------------------------------------------------------------------------
# https://docs.argilla.io/latest/how_to_guides/import_export/
TEXT = "text"
_ARGILLA = files("evenhand.exchange").joinpath("argilla.json")


def argilla(material: Material) -> Made:
    """`records.json` with a record for each unit, its text and a suggestion for every rubric; the
    settings in `.argilla` ask one label question a rubric.

    Raises InputError where there are several graders: Argilla holds one suggestion a question.
    """
    models = material.combined["rater_kind"] == "model"
    raters = sorted(material.combined[models]["rater_id"].unique())
    if len(raters) > 1:
        raise InputError(
            "Argilla holds one suggestion for each item and rubric; name one grader with --rater: "
            + ", ".join(raters)
        )
    grades, left_out = _grades(material, "Argilla")
    records = []
    for unit, rows in _by_unit(material, grades):
        suggestions = {
            rubric_name(row["rubric"]): {
                "value": row["label"],
                "score": json.loads(row["probabilities"] or "{}").get(row["label"]),
                "agent": row["rater_id"],
            }
            for row in rows.to_dict("records")
        }
        texts, about = {TEXT: unit_text(unit)}, {"unit_id": unit["unit_id"]}
        record = {"id": tool_id(unit, unit, "record_id"), "fields": texts, "metadata": about}
        records.append({**record, "suggestions": suggestions, "responses": {}, "vectors": {}})
    settings = json.loads(_ARGILLA.read_text("utf-8"))  # those of every dataset
    for rubric in sorted(grades["rubric"].unique()):
        labels, kind = material.scales[rubric].labels, "label_selection"
        options = [{"value": key, "text": name} for key, name in labels.items()]
        question = {
            "name": rubric_name(rubric),
            "title": material.scales[rubric].title,
            "required": True,
            "type": kind,
            "settings": {"type": kind, "options": options, "visible_options": None},
        }
        settings["questions"].append(question)
    files = {
        ".argilla/dataset.json": {"name": material.name},
        ".argilla/settings.json": settings,
        "records.json": records,
    }
    contents = {name: json.dumps(content, ensure_ascii=False) for name, content in files.items()}
    return Made({name: text.encode() for name, text in contents.items()}, len(grades), left_out)


def _by_unit(
    material: Material, rows: pd.DataFrame
) -> Iterator[tuple[dict[str, Any], pd.DataFrame]]:
    """Yield what is known of each unit, with its rows."""
    units = unit_rows(material.units)
    for unit, of_unit in rows.groupby("unit_id", sort=True):
        yield units.get(str(unit), {"unit_id": unit}), of_unit


# ---- Label Studio -------------------------------------------------------------------------------
# https://labelstud.io/guide/predictions


def label_studio(material: Material) -> Made:
    """A JSON list of tasks to import, and `NAME.config.xml` for the project in the same folder.

    A task's `text` is what was rated; an item that came from Label Studio keeps its task's `id`.
    Each grader's prediction has its id as `model_version`, a choice for every rubric, and as score
    the probability of its label, where there is one rubric.
    """
    grades, left_out = _grades(material, "Label Studio")
    tasks = []
    for about, rows in _by_unit(material, grades):
        data = about | {TEXT: unit_text(about)}
        task_id = {"id": about["task_id"]} if "task_id" in about else {}
        tasks.append({**task_id, "data": data, "predictions": _predictions(rows)})
    count = sum(len(task["predictions"]) for task in tasks)
    lines = ["<View>", f'  <Text name="{TEXT}" value="${TEXT}"/>']
    for rubric in grades["rubric"].unique():
        scale = material.scales[rubric]
        lines += [
            f"  <Header value={quoteattr(scale.title)}/>",
            f'  <Choices name={quoteattr(rubric_name(rubric))} toName="{TEXT}">',
            *(
                f"    <Choice value={quoteattr(key)} hint={quoteattr(name)}/>"
                for key, name in scale.labels.items()
            ),
            "  </Choices>",
        ]
    files = {
        "": json.dumps(tasks, ensure_ascii=False, indent=1).encode(),
        ".config.xml": "\n".join([*lines, "</View>", ""]).encode(),
    }
    return Made(files, count, left_out)


def _grades(material: Material, tool: str) -> tuple[pd.DataFrame, list[str]]:
    """Return models' labels and notes on what is left out. Raises InputError if there are none."""
    rows = material.combined
    models = rows["rater_kind"] == "model"
    if not models.any():
        raise InputError(f"{tool} is given what models said, and there are no grades yet")
    left = int((~models).sum())
    people = [written("writers.people", count=left, tool=tool)] if left else []
    grades, unscored = with_label(rows[models])
    lost = not_carried(material, tool, ("unscored_reason",))
    return grades, [*combined(material), *people, *unscored, *lost]


def _predictions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    predictions = []
    for rater, labels in rows.groupby("rater_id", sort=True):
        first = labels.iloc[0]
        stated = json.loads(first["probabilities"] or "{}") if len(labels) == 1 else {}
        results = [
            {
                "from_name": rubric_name(rubric),
                "to_name": TEXT,
                "type": "choices",
                "value": {"choices": [label]},
            }
            for rubric, label in zip(labels["rubric"], labels["label"], strict=True)
        ]
        score = {"score": stated[first["label"]]} if stated else {}
        predictions.append({"model_version": rater, **score, "result": results})
    return predictions


# ---- datasets of Hugging Face -------------------------------------------------------------------
# https://huggingface.co/docs/hub/datasets-cards
_TABLES = ("ratings", "units")


def hugging_face(material: Material) -> Made:
    """`README.md`, `ratings.parquet` and `units.parquet`: every column of both tables, read by
    `datasets.load_dataset(FOLDER, "ratings")`.
    """
    files = {
        "README.md": _card(material).encode(),
        "ratings.parquet": parquet_bytes(material.ratings),
        "units.parquet": parquet_bytes(material.units),
    }
    return Made(files, len(material.ratings), [written("writers.agreed")])


def _card(material: Material) -> str:
    """The card; JSON texts and lists are YAML."""
    ratings = material.ratings
    people = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    models = sorted(ratings.loc[ratings["rater_kind"] == "model", "rater_id"].unique())
    units = ratings["unit_id"].nunique()
    counts = {"ratings": len(ratings), "units": units, "people": people, "models": len(models)}
    rubrics = []
    for rubric, scale in sorted(material.scales.items()):
        labels = ", ".join(f"`{_line(key)}` {_line(name)}" for key, name in scale.labels.items())
        rubrics.append(f"- **{_line(scale.title)}** (`{_line(rubric)}`): {labels}")
    tags = ["evenhand", *(["synthetic"] if material.synthetic else [])]
    head = [
        "---",
        f"pretty_name: {json.dumps(material.name, ensure_ascii=False)}",
        f"tags: {json.dumps(tags)}",
        "configs:",
        *(f"- {{config_name: {name}, data_files: {name}.parquet}}" for name in _TABLES),
        "---",
    ]
    body = [
        f"# {_line(material.name)}",
        written("writers.card", **counts),
        *([written("writers.card_synthetic")] if material.synthetic else []),
        "## Rubrics",
        "\n".join(rubrics),
        *(["## Models", "\n".join(f"- `{_line(model)}`" for model in models)] if models else []),
        "## Tables",
        written("writers.card_ratings"),
        written("writers.card_units"),
        written("writers.card_made"),
    ]
    return "\n".join(head) + "\n\n" + "\n\n".join(body) + "\n"


def _line(text: str) -> str:
    """A text on one line, without characters that would end its field."""
    return " ".join(text.replace("`", "'").split())


# ---- Inspect ------------------------------------------------------------------------------------
# https://inspect.aisi.org.uk/reference/inspect_ai.scorer.html
_INSPECT_FACTS = ("rater_id", "rater_kind", "p_positive", "unscored_reason")


def inspect_scores(material: Material) -> Made:
    """A JSON list with a record for each unit: `value` maps every rater to the label, None where
    there is none, and `metadata` describes each rater.

    Where there are several rubrics a rater is named RUBRIC/RATER. The sample's `id` and `epoch`
    are the units' columns `sample_id` and `epoch`, else the item's own id, or the unit's, and every
    epoch.
    """
    rows = material.combined
    several = rows["rubric"].nunique() > 1
    names = (rows["rubric"].map(rubric_name) + "/" if several else "") + rows["rater_id"]
    everyone = dict.fromkeys(sorted(names.unique()))
    records = []
    for unit, of_unit in _by_unit(material, rows.assign(name=names)):
        given: list[dict[Any, Any]] = of_unit.to_dict("records")
        raters = []
        for row in given:
            rater = {"name": row["name"], "rubric": rubric_name(row["rubric"])}
            raters.append(rater | facts_of(row, _INSPECT_FACTS))
        record = {
            "id": tool_id(unit, unit, "sample_id"),
            "value": everyone | {row["name"]: row["label"] or None for row in given},
            "metadata": {"unit_id": unit["unit_id"], "raters": raters},
        }
        records.append(record | ({"epoch": int(unit["epoch"])} if "epoch" in unit else {}))
    content = json.dumps(records, ensure_ascii=False, indent=1)
    lost = not_carried(material, "Inspect", _INSPECT_FACTS)
    return Made({"": content.encode()}, len(records), [*combined(material), *lost])


def _lines(
    record: Callable[[dict[Any, Any], dict[str, Any]], dict[str, Any]], *, labelled: bool = True
) -> Callable[[Material], Made]:
    """Return a writer of JSON lines: a `record` of each row that is `labelled` and of its unit."""

    def make(material: Material) -> Made:
        rows, left_out = with_label(material.ratings) if labelled else (material.ratings, [])
        units = unit_rows(material.units)
        records = [record(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
        lines = "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in records)
        return Made({"": lines.encode()}, len(records), left_out)

    return make


# ---- Langfuse -----------------------------------------------------------------------------------
# https://langfuse.com/docs/evaluation/evaluation-methods/custom-scores
_IDS = {"trace_id": "traceId", "observation_id": "observationId", "session_id": "sessionId"}
"""Columns of the units that say what is scored; without any the item's id, or the unit's, is the
trace's.
"""


def langfuse_score(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """A categorical score named by the rubric. The rater is in the metadata.

    A rating always has the same score id: sent twice, it is one score.
    """
    ids = {theirs: str(unit[ours]) for ours, theirs in _IDS.items() if ours in unit}
    score = {
        "id": always_same_id(row),
        **(ids or {"traceId": tool_id(row, unit, "trace_id")}),
        "name": rubric_name(row["rubric"]),
        "value": row["label"],
        "dataType": "CATEGORICAL",
        "metadata": about_rating(row),
    }
    return score | ({"timestamp": moment(row["created_at"])} if row["created_at"] else {})


# ---- LangSmith ----------------------------------------------------------------------------------
# https://docs.langchain.com/langsmith/feedback-data-format


def langsmith_feedback(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Feedback whose key is the rubric, on the run that the column `run_id` of the units names,
    else on the item's own id. The rater is in the source's metadata.

    A rating always has the same feedback id: sent twice, it is one piece of feedback.
    """
    metadata = {name: str(value) for name, value in about_rating(row).items()}
    kind = "model" if row["rater_kind"] == "model" else "api"
    run = tool_id(row, unit, "run_id")
    feedback = {
        "id": always_same_id(row),
        "run_id": run,
        "trace_id": str(unit.get("trace_id", run)),  # of an uppermost run its own id
        "key": rubric_name(row["rubric"]),
        "value": row["label"],
        "feedback_source": {"type": kind, "metadata": metadata},
    }
    at = moment(row["created_at"]) if row["created_at"] else ""
    return feedback | ({"created_at": at, "modified_at": at} if at else {})


# ---- Phoenix ------------------------------------------------------------------------------------
# https://arize.com/docs/phoenix/sdk-api-reference/rest-api/api-reference/spans/create-span-annotations


def phoenix_annotation(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """An annotation named by the rubric, on the span that the column `span_id` of the units names,
    else on the item's own id. The rater is in the metadata.

    A rating always has the same identifier: sent twice, it is one annotation.
    """
    drawn = [str(row[name]) for name in ("order", "draw") if row[name]]
    return {
        "span_id": tool_id(row, unit, "span_id"),
        "name": rubric_name(row["rubric"]),
        "annotator_kind": "LLM" if row["rater_kind"] == "model" else "HUMAN",
        "result": {"label": row["label"]},
        "metadata": about_rating(row),
        "identifier": "/".join([row["rater_id"], *drawn]),
    }


# ---- MLflow -------------------------------------------------------------------------------------
# https://mlflow.org/docs/latest/genai/assessments/feedback/
_MLFLOW_FACTS = (
    "rater_kind", "p_positive", "probabilities", "prob_method", "draw", "order", "seconds",
    "rubric_hash",
)  # fmt: skip


def mlflow_assessment(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    """Feedback named by the rubric, on the trace (and span) that the columns `trace_id` and
    `span_id` of the units name, else on the item's own id, or the unit's.

    A rating without a label is feedback with an error, whose code is the reason.
    """
    source = "HUMAN"
    if row["rater_kind"] == "model":
        source = "CODE" if row["rater_id"].startswith("baseline:") else "LLM_JUDGE"
    feedback: dict[str, Any] = {"value": row["label"] or None}
    if not row["label"]:
        feedback["error"] = {"error_code": row["unscored_reason"] or "no_label"}
    at = moment(row["created_at"])
    record = {
        "assessment_name": rubric_name(row["rubric"]),
        "trace_id": tool_id(row, unit, "trace_id"),
        "source": {"source_type": source, "source_id": row["rater_id"]},
        "create_time": at,
        "last_update_time": at,
        "feedback": feedback,
        "metadata": {name: str(value) for name, value in facts_of(row, _MLFLOW_FACTS).items()},
        "valid": True,
    }
    return record | ({"span_id": str(unit["span_id"])} if "span_id" in unit else {})


# ---- R and spreadsheets -------------------------------------------------------------------------
MISSING = "NA"
_ORDER = ("human", "adjudicator", "model")


def wide(material: Material) -> Made:
    """Make a CSV: `unit_id`, `rubric` where there are several, the units' columns, then the raters,
    people first. Texts that were rated are left out; a cell that a spreadsheet would run is
    guarded.

    Read it in R with `read.csv(FILE, check.names = FALSE)`.
    """
    rows = material.combined
    if (rows["label"] == MISSING).any():
        raise InputError(f"a label is {MISSING!r}, which R reads as missing; rename it before")
    keys = ["unit_id", "rubric"] if rows["rubric"].nunique() > 1 else ["unit_id"]
    kinds = rows.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"].to_dict()
    raters = sorted(map(str, kinds), key=lambda rater: (_ORDER.index(kinds[rater]), rater))
    about = material.units.drop(columns=[name for name in TEXTS if name in material.units])
    if again := [name for name in (*about.columns, "rubric") if name in raters]:
        raise InputError(f"a rater and a column of the units are both called {again[0]!r}")
    table = rows.pivot(index=keys, columns="rater_id", values="label")[raters].reset_index()
    table = about.merge(table, on="unit_id", how="right")
    table = table[[*keys, *(name for name in table if name not in keys)]]
    table = table.astype(object).where(table.notna() & (table != ""), MISSING)
    table.columns = pd.Index([guarded(str(name)) for name in table])
    lost = not_carried(material, "A wide table", ())
    return Made({"": csv_bytes(table)}, len(table), [*combined(material), *lost])


# ---- all of them, and how their files are written -----------------------------------------------


class Format(NamedTuple):
    """A format to write: `tool` and `rows` are the words for the tool and its records in sentences;
    a format without a `suffix` is a folder.
    """

    tool: str
    rows: str
    suffix: str
    make: Callable[[Material], Made]


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
    """The format of a name. Raises InputError that suggests the nearest where there is none."""
    plain = name.casefold().replace("_", "-")
    for format_name, how in FORMATS.items():
        if plain.replace("-", "") == format_name.replace("-", ""):
            return how
    near = get_close_matches(plain, FORMATS, n=1, cutoff=0.5)
    meant = f" (did you mean {near[0]}?)" if near else ""
    raise InputError(f"--format is {name!r}{meant}; write one of {', '.join(FORMATS)}")


def check_out(out: Path, how: Format) -> None:
    """Raises InputError where a format cannot go to this path."""
    if how.suffix:
        if out.suffix.casefold() != how.suffix:
            raise InputError(f"{out.name}: the extension must be {how.suffix} for {how.tool}")
    elif out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise InputError(f"{out} is there already; name a new folder for {how.tool}")


def save(made: Made, out: Path, how: Format) -> list[Path]:
    """Write the files of a writer, readable by the owner only; a folder whole or not at all."""
    if how.suffix:
        paths = {out.with_name(out.stem + end) if end else out: c for end, c in made.files.items()}
        for path, content in paths.items():
            atomic_write(path, content)
        return list(paths)
    if not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}; make it first")
    with TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as around:
        whole = Path(around) / out.name
        new_folder(whole)
        for name, content in made.files.items():
            new_folder((whole / name).parent)
            atomic_write(whole / name, content)
        os.replace(whole, out)  # an empty folder gives way
    return [out]
