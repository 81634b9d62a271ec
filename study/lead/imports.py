"""Import of ratings from elsewhere: checked against the study, then appended like any other."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.desk.claims import ONE_TASK, last_version
from evenhand.study.store.database import conflict_free_insert, renew_statistics
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import claims, grades, labels
from evenhand.study.store.store import rater_kinds
from evenhand.study.tables.columns import folded, look, shortened, spelled_out
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import RATINGS_COLUMNS
from evenhand.study.workspace import Study


def import_ratings(
    study: Study, ratings: pd.DataFrame, source: str, cost_usd: Mapping[str, float] | None = None
) -> tuple[int, int]:
    """Append a checked `ratings` table to the study, all rows or none; return the numbers of new
    and of known rows. Raises InputError naming the first row that has a unit, rubric or label that
    the study does not have, or that has neither a label nor a reason; a model's row may have
    `p_positive` alone. `cost_usd` is the cost of each grade, by model rater.
    """
    if (has_no_rubric := (ratings["rubric"] == "").to_numpy()).any():
        if len(study.rubrics) > 1:
            row = row_number(ratings, int(has_no_rubric.argmax()))
            raise InputError(
                f"{source}, row {row}: the rubric is empty and the study has several "
                f"({', '.join(study.rubrics)}); fill in the column 'rubric'"
            )
        ratings = ratings.assign(rubric=next(iter(study.rubrics)))
    # Ratings without a hash count as given under the present text. Without one they would be pooled
    # with any later text.
    present = {name: rubric.hash for name, rubric in study.rubrics.items()}
    hashes = ratings["rubric"].map(present).fillna("")
    named_hashes = ratings["rubric_hash"]
    ratings = ratings.assign(rubric_hash=named_hashes.where(named_hashes != "", hashes))
    _check_rows(study, ratings, source)
    raters = ratings.drop_duplicates("rater_id")
    rows = zip(raters.index + FIRST_ROW, raters["rater_id"], raters["rater_kind"], strict=True)
    with study.store.write() as connection:
        kinds = rater_kinds(connection)
        for row, rater, kind in rows:
            if kinds.get(rater, kind) != kind:
                raise InputError(
                    f"{source}, row {row}: rater {rater!r} is {kind} here and {kinds[rater]} in "
                    "the study; give the two raters different ids"
                )
        stored_events = _event_rows(study.ratings())
        stored = {(row["rater_id"], _fingerprint(row)) for row in stored_events}
        rows_by_key = [((row["rater_id"], _fingerprint(row)), row) for row in _event_rows(ratings)]
        new = [row for key, row in rows_by_key if key not in stored]
        human = [row for row in new if row["rater_kind"] != "model"]
        model = [row for row in new if row["rater_kind"] == "model"]
        if human:
            insert = conflict_free_insert(connection, labels).on_conflict_do_nothing()
            connection.execute(insert, [row | {"submit_id": _new_id()} for row in human])
        _claim_places(connection, [row for row in human if row["rater_kind"] == "human"])
        if model:
            cost_by_rater = {rater: {"cost_usd": usd} for rater, usd in (cost_usd or {}).items()}
            for event in model:
                cost = cost_by_rater.get(event["rater_id"], {})
                event["provenance"] = {"imported_from": source, **cost}
            connection.execute(sa.insert(grades), model)
        renew_statistics(connection)
    return len(new), len(ratings) - len(new)


def names_of_study(study: Study, ratings: pd.DataFrame, joins: bool | None) -> pd.DataFrame:
    """Return ratings with the study's spelling of its items and, if `joins`, of raters whose names
    look alike. Raises InputError for a new rater with such a name while `joins` is None.
    """
    units = {folded(unit): unit for ids in study.units_by_kind("all").values() for unit in ids}
    with study.store.read() as connection:
        kinds = rater_kinds(connection)
    rater_by_look, renamed = {look(rater): rater for rater in kinds}, {}
    for rater in ratings["rater_id"].unique():
        alike = rater_by_look.get(look(rater), rater)
        if rater in kinds or alike == rater or joins is False:
            continue
        if joins is None:
            raise InputError(
                f"the rater {spelled_out(rater)} looks like {spelled_out(alike)} of the study; say "
                "--normalise if they are the same, or --no-normalise if not"
            )
        renamed[rater] = alike
    ids = ratings["unit_id"]
    return ratings.assign(
        unit_id=ids.map(lambda unit: units.get(unit, unit)),
        rater_id=ratings["rater_id"].replace(renamed),
    )


def _claim_places(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Claim the places of labels given elsewhere: their units need fewer raters at the desk."""
    tasks = {}
    for row in rows:
        task = {name: row[name] for name in ONE_TASK}
        columns = {"order": row["order"], "claimed_at": row["created_at"]}
        tasks[tuple(task.values())] = task | columns | {"task_id": _new_id(), "state": "labelled"}
    if tasks:
        versions = enumerate(tasks.values(), last_version(connection) + 1)
        numbered = [task | {"version": version} for version, task in versions]
        insert = conflict_free_insert(connection, claims)
        insert = insert.on_conflict_do_update(
            index_elements=ONE_TASK, set_={"state": "labelled", "version": insert.excluded.version}
        )
        connection.execute(insert, numbered)


def _check_rows(study: Study, ratings: pd.DataFrame, source: str) -> None:
    """Raise InputError for the first row that does not fit the study."""
    units = {kind: set(ids) for kind, ids in study.units_by_kind("all").items()}
    # A row has a label, a reason for none or, by a model, a probability.
    has_probability = (ratings["rater_kind"] == "model") & (ratings["p_positive"] >= 0)
    has_result = (ratings["label"] != "") | (ratings["unscored_reason"] != "") | has_probability
    is_valid = pd.Series(data=False, index=ratings.index)
    for name, rows in ratings.groupby("rubric"):
        if rubric := study.rubrics.get(str(name)):
            has_unit = rows["unit_id"].isin(units[rubric.unit])
            options = rows["label"].unique()
            permitted = {label: not label or rubric.kind.takes(label) for label in options}
            has_option = rows["label"].map(permitted).astype(bool)
            is_valid[rows.index] = has_unit & has_option & has_result[rows.index]
    if is_valid.all():
        return
    index = int((~is_valid).to_numpy().argmax())
    where = f"{source}, row {row_number(ratings, index)}"
    raise InputError(f"{where}: {_fault(study, ratings.iloc[index], units)}")


def _fault(study: Study, row: pd.Series, units: Mapping[str, set[str]]) -> str:
    """Return the fault of a row that does not fit the study."""
    if (rubric := study.rubrics.get(row["rubric"])) is None:
        return f"the study has no rubric {row['rubric']!r}; it has {', '.join(study.rubrics)}"
    if row["unit_id"] not in units[rubric.unit]:
        return (
            f"the study has no {rubric.unit} item {row['unit_id']!r} with a response; "
            "`evenhand export --units` lists the items"
        )
    if row["label"] and not rubric.kind.takes(row["label"]):
        return f"label {shortened(row['label'])!r} is {rubric.kind.none_of}; correct the label"
    probability = ", nor a p_positive" if row["rater_kind"] == "model" else ""
    return f"neither a label nor an unscored_reason{probability}; give one of them"


def _event_rows(ratings: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the ratings as rows of the store's tables."""
    now = utc_now()
    events = []
    for record in ratings[list(RATINGS_COLUMNS)].astype(object).to_dict("records"):
        event: dict[str, Any] = {str(key): value for key, value in record.items()}
        for column in ("p_positive", "seconds"):
            event[column] = None if event[column] != event[column] else event[column]
        event["probabilities"] = json.loads(event["probabilities"] or "null")
        event["created_at"] = event["created_at"] or now
        events.append(event)
    return events


def _fingerprint(row: dict[str, Any]) -> str:
    """Return a text that is equal for rows with the same content; the time does not count."""
    content = {key: row[key] for key in RATINGS_COLUMNS if key not in ("created_at", "seconds")}
    return json.dumps(content, sort_keys=True)


def _new_id() -> str:
    return f"import-{uuid.uuid4().hex}"
