"""Ratings as other tools read them: a function for each."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

from evenhand.errors import InputError
from evenhand.exchange.writers.material import (
    TEXTS,
    Made,
    Material,
    about_rating,
    always_same_id,
    combined,
    facts_of,
    grades_only,
    lines_of,
    moment,
    not_carried,
    rubric_name,
    tool_id,
    unit_rows,
    unit_text,
    with_label,
)
from evenhand.study.tables.formats import csv_bytes, guarded
from evenhand.texts import written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas as pd

# ---- Argilla ------------------------------------------------------------------------------------
# https://docs.argilla.io/latest/how_to_guides/import_export/
TEXT = "text"
_ARGILLA = files("evenhand.exchange.writers").joinpath("argilla.json")


def argilla(material: Material) -> Made:
    """`records.json` with a record for each unit, its text and a suggestion for every rubric; the
    settings in `.argilla` ask one label question a rubric.

    Raises InputError where there are several graders: Argilla holds one suggestion a question.
    """
    models = material.combined["rater_kind"] == "model"
    raters = sorted(material.combined[models]["rater_id"].unique())
    if len(raters) > 1:
        raise InputError(
            "Argilla holds one suggestion for each unit and rubric; name one grader with --rater: "
            + ", ".join(raters)
        )
    grades, left_out = _grades(material, "Argilla")
    units = unit_rows(material.units)
    records = [
        _argilla_record(units.get(str(unit), {"unit_id": unit}), own)
        for unit, own in grades.groupby("unit_id", sort=True)
    ]
    rubrics = sorted(grades["rubric"].unique())
    files = {
        ".argilla/dataset.json": {"name": material.name},
        ".argilla/settings.json": _settings(material, rubrics),
        "records.json": records,
    }
    contents = {name: json.dumps(each, ensure_ascii=False) for name, each in files.items()}
    return Made({name: each.encode() for name, each in contents.items()}, len(grades), left_out)


def _argilla_record(unit: dict[str, Any], rows: pd.DataFrame) -> dict[str, Any]:
    return {
        "id": tool_id(unit, unit, "record_id"),
        "fields": {TEXT: unit_text(unit)},
        "metadata": {"unit_id": unit["unit_id"]},
        "suggestions": {
            rubric_name(row["rubric"]): {
                "value": row["label"],
                "score": json.loads(row["probabilities"] or "{}").get(row["label"]),
                "agent": row["rater_id"],
            }
            for row in rows.to_dict("records")
        },
        "responses": {},
        "vectors": {},
    }


def _settings(material: Material, rubrics: list[str]) -> dict[str, Any]:
    """The dataset's settings: those of every one, and a question for each rubric."""
    settings: dict[str, Any] = json.loads(_ARGILLA.read_text("utf-8"))
    for rubric in rubrics:
        labels = material.scales[rubric].labels
        options = [{"value": key, "text": name} for key, name in labels.items()]
        kind = "label_selection"
        question = {
            "name": rubric_name(rubric),
            "title": material.scales[rubric].title,
            "required": True,
            "type": kind,
            "settings": {"type": kind, "options": options, "visible_options": None},
        }
        settings["questions"].append(question)
    return settings


# ---- Label Studio -------------------------------------------------------------------------------
# https://labelstud.io/guide/predictions


def label_studio(material: Material) -> Made:
    """A JSON list of tasks to import, and `NAME.config.xml` for the project in the same folder.

    A task's `text` is what was rated; an item that came from Label Studio keeps its task's `id`.
    Each grader's prediction has its id as `model_version`, a choice for every rubric, and as score
    the probability of its label, where there is one rubric.
    """
    grades, left_out = _grades(material, "Label Studio")
    units = unit_rows(material.units)
    tasks = []
    for unit, own in grades.groupby("unit_id", sort=True):
        about = units.get(str(unit), {"unit_id": unit})
        data = about | {TEXT: unit_text(about)}
        known = {"id": about["task_id"]} if "task_id" in about else {}
        tasks.append({**known, "data": data, "predictions": _predictions(own)})
    count = sum(len(task["predictions"]) for task in tasks)
    files = {
        "": json.dumps(tasks, ensure_ascii=False, indent=1).encode(),
        ".config.xml": _config(material, grades["rubric"].unique()).encode(),
    }
    return Made(files, count, left_out)


def _grades(material: Material, tool: str) -> tuple[pd.DataFrame, list[str]]:
    """Return the labels by models, and sentences on what cannot be carried with them."""
    grades, people = grades_only(material.combined, tool)
    grades, unscored = with_label(grades)
    lost = not_carried(material, tool, ("unscored_reason",))
    return grades, [*combined(material), *people, *unscored, *lost]


def _predictions(rows: pd.DataFrame) -> list[dict[str, Any]]:
    return [
        {
            "model_version": rater,
            **_label_studio_score(own.to_dict("records")),
            "result": [
                {
                    "from_name": rubric_name(rubric),
                    "to_name": TEXT,
                    "type": "choices",
                    "value": {"choices": [label]},
                }
                for rubric, label in zip(own["rubric"], own["label"], strict=True)
            ],
        }
        for rater, own in rows.groupby("rater_id", sort=True)
    ]


def _label_studio_score(rows: list[dict[Any, Any]]) -> dict[str, float]:
    if len(rows) > 1 or not rows[0]["probabilities"]:
        return {}
    return {"score": json.loads(rows[0]["probabilities"])[rows[0]["label"]]}


def _config(material: Material, rubrics: Iterable[str]) -> str:
    lines = ["<View>", f'  <Text name="{TEXT}" value="${TEXT}"/>']
    for rubric in rubrics:
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
    return "\n".join([*lines, "</View>", ""])


# ---- datasets of Hugging Face -------------------------------------------------------------------
# https://huggingface.co/docs/hub/datasets-cards
_TABLES = ("ratings", "units")


def hugging_face(material: Material) -> Made:
    """`README.md`, `ratings.parquet` and `units.parquet`: every column of both tables, read by
    `datasets.load_dataset(FOLDER, "ratings")`.
    """
    files = {
        "README.md": _card(material).encode(),
        "ratings.parquet": _parquet(material.ratings),
        "units.parquet": _parquet(material.units),
    }
    return Made(files, len(material.ratings), [written("writers.agreed")])


def _parquet(frame: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _card(material: Material) -> str:
    """The card; JSON texts and lists are YAML."""
    ratings = material.ratings
    people = ratings.loc[ratings["rater_kind"] == "human", "rater_id"].nunique()
    models = sorted(ratings.loc[ratings["rater_kind"] == "model", "rater_id"].unique())
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
        written(
            "writers.card",
            ratings=len(ratings),
            units=ratings["unit_id"].nunique(),
            people=people,
            models=len(models),
        ),
        *([written("writers.card_synthetic")] if material.synthetic else []),
        "## Rubrics",
        "\n".join(_rubric_line(material, rubric) for rubric in sorted(material.scales)),
        *(["## Models", "\n".join(f"- `{_line(each)}`" for each in models)] if models else []),
        "## Tables",
        written("writers.card_ratings"),
        written("writers.card_units"),
        written("writers.card_made"),
    ]
    return "\n".join(head) + "\n\n" + "\n\n".join(body) + "\n"


def _rubric_line(material: Material, rubric: str) -> str:
    scale = material.scales[rubric]
    labels = ", ".join(f"`{_line(key)}` {_line(name)}" for key, name in scale.labels.items())
    return f"- **{_line(scale.title)}** (`{_line(rubric)}`): {labels}"


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
    rows, units = material.combined, unit_rows(material.units)
    several = rows["rubric"].nunique() > 1
    names = (rows["rubric"].map(rubric_name) + "/" if several else "") + rows["rater_id"]
    everyone = dict.fromkeys(sorted(names.unique()))
    rows = rows.assign(name=names)
    records = [
        _inspect_record(units.get(str(unit), {"unit_id": unit}), own.to_dict("records"), everyone)
        for unit, own in rows.groupby("unit_id", sort=True)
    ]
    content = json.dumps(records, ensure_ascii=False, indent=1)
    lost = not_carried(material, "Inspect", _INSPECT_FACTS)
    return Made({"": content.encode()}, len(records), [*combined(material), *lost])


def _inspect_record(
    unit: dict[str, Any], rows: list[dict[Any, Any]], everyone: dict[str, None]
) -> dict[str, Any]:
    raters = [
        {"name": row["name"], "rubric": rubric_name(row["rubric"]), **facts_of(row, _INSPECT_FACTS)}
        for row in rows
    ]
    record = {
        "id": tool_id(unit, unit, "sample_id"),
        "value": everyone | {row["name"]: row["label"] or None for row in rows},
        "metadata": {"unit_id": unit["unit_id"], "raters": raters},
    }
    return record | ({"epoch": int(unit["epoch"])} if "epoch" in unit else {})


def _lines(
    material: Material, rows: pd.DataFrame, left_out: list[str], record: Callable[..., Any]
) -> Made:
    """Make JSON lines, a `record` of each row and of its unit."""
    units = unit_rows(material.units)
    records = [record(row, units.get(row["unit_id"], {})) for row in rows.to_dict("records")]
    return Made({"": lines_of(records)}, len(records), left_out)


# ---- Langfuse -----------------------------------------------------------------------------------
# https://langfuse.com/docs/evaluation/evaluation-methods/custom-scores
_IDS = {"trace_id": "traceId", "observation_id": "observationId", "session_id": "sessionId"}
"""Columns of the units that say what is scored; without any the item's id, or the unit's, is the
trace's.
"""


def langfuse(material: Material) -> Made:
    """JSON lines of categorical scores named by the rubric. The rater is in the metadata.

    A rating always has the same score id: sent twice, it is one score.
    """
    return _lines(material, *with_label(material.ratings), _langfuse_score)


def _langfuse_score(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
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


def langsmith(material: Material) -> Made:
    """JSON lines of feedback whose key is the rubric, on the run that the column `run_id` of the
    units names, else on the item's own id. The rater is in the source's metadata.

    A rating always has the same feedback id: sent twice, it is one piece of feedback.
    """
    return _lines(material, *with_label(material.ratings), _langsmith_feedback)


def _langsmith_feedback(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
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


def phoenix(material: Material) -> Made:
    """JSON lines of annotations named by the rubric, on the span that the column `span_id` of the
    units names, else on the item's own id. The rater is in the metadata.

    A rating always has the same identifier: sent twice, it is one annotation.
    """
    return _lines(material, *with_label(material.ratings), _annotation)


def _annotation(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
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


def mlflow(material: Material) -> Made:
    """JSON lines of feedback named by the rubric, on the trace (and span) that the columns
    `trace_id` and `span_id` of the units name, else on the item's own id, or the unit's.

    A rating without a label is feedback with an error, whose code is the reason.
    """
    return _lines(material, material.ratings, [], _assessment)


def _assessment(row: dict[Any, Any], unit: dict[str, Any]) -> dict[str, Any]:
    at = moment(row["created_at"])
    record = {
        "assessment_name": rubric_name(row["rubric"]),
        "trace_id": tool_id(row, unit, "trace_id"),
        "source": {"source_type": _source_type(row), "source_id": row["rater_id"]},
        "create_time": at,
        "last_update_time": at,
        "feedback": _mlflow_feedback(row),
        "metadata": {name: str(value) for name, value in facts_of(row, _MLFLOW_FACTS).items()},
        "valid": True,
    }
    return record | ({"span_id": str(unit["span_id"])} if "span_id" in unit else {})


def _mlflow_feedback(row: dict[Any, Any]) -> dict[str, Any]:
    if row["label"]:
        return {"value": row["label"]}
    return {"value": None, "error": {"error_code": row["unscored_reason"] or "no_label"}}


def _source_type(row: dict[Any, Any]) -> str:
    if row["rater_kind"] != "model":
        return "HUMAN"
    return "CODE" if row["rater_id"].startswith("baseline:") else "LLM_JUDGE"


# ---- R and spreadsheets -------------------------------------------------------------------------
MISSING = "NA"
_ORDER = ("human", "adjudicator", "model")


def wide(material: Material) -> Made:
    """Make a CSV: `unit_id`, `rubric` where there are several, the units' columns, then the raters,
    people first. Texts that were rated are left out; a cell that a spreadsheet would run is
    guarded.

    Read it in R with `read.csv(FILE, check.names = FALSE)`.
    """
    import pandas as pd

    rows = material.combined
    if (rows["label"] == MISSING).any():
        raise InputError(f"a label is {MISSING!r}, which R reads as missing; rename it before")
    keys = ["unit_id", "rubric"] if rows["rubric"].nunique() > 1 else ["unit_id"]
    raters = _raters(rows)
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


def _raters(rows: pd.DataFrame) -> list[str]:
    kinds = rows.drop_duplicates("rater_id").set_index("rater_id")["rater_kind"].to_dict()
    return sorted(map(str, kinds), key=lambda rater: (_ORDER.index(kinds[rater]), rater))
