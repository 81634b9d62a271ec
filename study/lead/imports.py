"""Ratings that come from elsewhere: checked against the study, then appended like any other."""

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
    """Append a checked `ratings` table to the study; return (new rows, rows already there).

    All rows go in or none. Raises InputError naming the first row that has a unit, rubric or
    category that the study does not have, or that has neither a label nor a reason; a model's row
    may have `p_positive` alone. `cost_usd` is what each grade has cost, by model rater.
    """
    if (unnamed := (ratings["rubric"] == "").to_numpy()).any():
        if len(study.rubrics) > 1:
            row = row_number(ratings, int(unnamed.argmax()))
            raise InputError(
                f"{source}, row {row}: the rubric is empty and the study has several "
                f"({', '.join(study.rubrics)}); fill in the column 'rubric'"
            )
        ratings = ratings.assign(rubric=next(iter(study.rubrics)))
    # Where ratings name no hash, importing them declares that they were given under the present
    # text. Without one they would be pooled with whatever text comes later.
    hashes = ratings["rubric"].map({name: r.hash for name, r in study.rubrics.items()}).fillna("")
    given = ratings["rubric_hash"]
    ratings = ratings.assign(rubric_hash=given.where(given != "", hashes))
    _check(study, ratings, source)
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
        stored = _events(study.ratings())
        known = {(row["rater_id"], _fingerprint(row)) for row in stored}
        new = [row for row in _events(ratings) if (row["rater_id"], _fingerprint(row)) not in known]
        human = [row for row in new if row["rater_kind"] != "model"]
        model = [row for row in new if row["rater_kind"] == "model"]
        if human:
            insert = conflict_free_insert(connection, labels).on_conflict_do_nothing()
            connection.execute(insert, [row | {"submit_id": _new_id()} for row in human])
        _take_places(connection, [row for row in human if row["rater_kind"] == "human"])
        if model:
            paid = {rater: {"cost_usd": usd} for rater, usd in (cost_usd or {}).items()}
            for event in model:
                event["provenance"] = {"imported_from": source, **paid.get(event["rater_id"], {})}
            connection.execute(sa.insert(grades), model)
        renew_statistics(connection)
    return len(new), len(ratings) - len(new)


def names_of_study(study: Study, ratings: pd.DataFrame, joins: bool | None) -> pd.DataFrame:
    """Return ratings under the study's own spelling of its items and, where it `joins` names that
    look alike, of its raters. Raises InputError for a new rater whose name looks like that of one
    of the study, unless it is said whether they are the same.
    """
    units = {folded(unit): unit for ids in study.units_by_kind("all").values() for unit in ids}
    with study.store.read() as connection:
        kinds = rater_kinds(connection)
    known, meant = {look(rater): rater for rater in kinds}, {}
    for rater in ratings["rater_id"].unique():
        usual = known.get(look(rater), rater)
        if rater in kinds or usual == rater or joins is False:
            continue
        if joins is None:
            raise InputError(
                f"the rater {spelled_out(rater)} looks like {spelled_out(usual)} of the study; say "
                "--normalise if they are the same, or --no-normalise if not"
            )
        meant[rater] = usual
    ids = ratings["unit_id"]
    return ratings.assign(
        unit_id=ids.map(lambda unit: units.get(unit, unit)),
        rater_id=ratings["rater_id"].replace(meant),
    )


def _take_places(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Take places at the desk for labels given elsewhere: their units need fewer raters there."""
    tasks = {}
    for row in rows:
        task = {name: row[name] for name in ONE_TASK}
        times = {"order": row["order"], "claimed_at": row["created_at"]}
        tasks[tuple(task.values())] = task | times | {"task_id": _new_id(), "state": "labelled"}
    if tasks:
        version = last_version(connection)
        numbered = [task | {"version": version + n} for n, task in enumerate(tasks.values(), 1)]
        insert = conflict_free_insert(connection, claims)
        insert = insert.on_conflict_do_update(
            index_elements=ONE_TASK, set_={"state": "labelled", "version": insert.excluded.version}
        )
        connection.execute(insert, numbered)


def _check(study: Study, ratings: pd.DataFrame, source: str) -> None:
    """Raises InputError for the first row that the study cannot take."""
    units = {kind: set(ids) for kind, ids in study.units_by_kind("all").items()}
    # A row has a label, a reason for none or, by a model, a probability.
    probable = (ratings["rater_kind"] == "model") & (ratings["p_positive"] >= 0)
    says = (ratings["label"] != "") | (ratings["unscored_reason"] != "") | probable
    fits = pd.Series(data=False, index=ratings.index)
    for name, rows in ratings.groupby("rubric"):
        if rubric := study.rubrics.get(str(name)):
            known = rows["unit_id"].isin(units[rubric.unit])
            fit = {label: not label or rubric.kind.takes(label) for label in rows["label"].unique()}
            fits[rows.index] = known & rows["label"].map(fit).astype(bool) & says[rows.index]
    if fits.all():
        return
    at = int((~fits).to_numpy().argmax())
    where = f"{source}, row {row_number(ratings, at)}"
    raise InputError(f"{where}: {_fault(study, ratings.iloc[at], units)}")


def _fault(study: Study, row: pd.Series, units: Mapping[str, set[str]]) -> str:
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


def _events(ratings: pd.DataFrame) -> list[dict[str, Any]]:
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
