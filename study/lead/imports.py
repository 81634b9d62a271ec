"""Import of ratings from elsewhere: checked against the study, then appended like any other."""

from __future__ import annotations

import json
import math
import shlex
import uuid
from collections.abc import Iterator, Mapping
from operator import itemgetter
from typing import Any

import sqlalchemy as sa

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.desk.claims import TASK_COLUMNS, last_version
from evenhand.study.prompts.items import ITEM_ID
from evenhand.study.store.database import conflict_free_insert, renew_statistics
from evenhand.study.store.grades import utc_now
from evenhand.study.store.schema import claims, grades, labels
from evenhand.study.store.store import rater_kinds
from evenhand.study.tables.columns import fold, folded, loose, shortened, spelled_out
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import LABEL_KEY, RATINGS_COLUMNS, refuse_repeats, stored_instant
from evenhand.study.workspace import Study


def import_ratings(
    study: Study, ratings: pd.DataFrame, source: str, cost_usd: Mapping[str, float] | None = None
) -> tuple[int, int]:
    """Append a checked `ratings` table to the study, all rows or none; return the numbers of new
    rows, and of rows that the study has already. Raises InputError naming the first row that has a
    unit, rubric or label that the study does not have, or that has neither a label nor a reason; a
    model's row may have `p_positive` alone. `cost_usd` is the cost of each grade, by grader.
    """
    ratings = _with_rubrics(study, ratings, source)
    _check_rows(study, ratings, source)
    raters = ratings.drop_duplicates("rater_id")
    rows = raters.index + FIRST_ROW  # their numbers in the file
    with study.store.write() as connection:
        stored_kinds = rater_kinds(connection)
        for row, rater, kind in zip(rows, raters["rater_id"], raters["rater_kind"], strict=True):
            if (stored_kind := stored_kinds.get(rater, kind)) != kind:
                raise InputError(
                    f"{source}, row {row}: rater {rater!r} is {kind} here and {stored_kind} in "
                    "the study; give the two raters different ids"
                )
        stored_prints = {_fingerprint(row) for row in _event_rows(study.ratings())}
        # A label that its rater revised here stays when the older one is imported again.
        key = itemgetter(*LABEL_KEY)
        events = connection.execute(sa.select(labels).order_by(labels.c.event_id)).mappings().all()
        imported = {key(event): event["submit_id"].startswith("import-") for event in events}
        stored_prints |= {_fingerprint(event) for event in events if not imported[key(event)]}
        new_rows = [row for row in _event_rows(ratings) if _fingerprint(row) not in stored_prints]
        people_rows = (row for row in new_rows if row["rater_kind"] != "model")
        label_rows = [row | {"submit_id": f"import-{uuid.uuid4().hex}"} for row in people_rows]
        grade_rows = [row for row in new_rows if row["rater_kind"] == "model"]
        if label_rows:
            connection.execute(sa.insert(labels), label_rows)
        _add_claims(connection, [row for row in label_rows if row["rater_kind"] == "human"])
        if grade_rows:
            costs = {rater: {"cost_usd": usd} for rater, usd in (cost_usd or {}).items()}
            for grade in grade_rows:
                grade["provenance"] = {"imported_from": source} | costs.get(grade["rater_id"], {})
            connection.execute(sa.insert(grades), grade_rows)
        renew_statistics(connection)
    return len(new_rows), len(ratings) - len(new_rows)


def _with_rubrics(study: Study, ratings: pd.DataFrame, source: str) -> pd.DataFrame:
    """Return ratings that all have a rubric, by default the study's only one, and its hash."""
    if (has_no_rubric := (ratings["rubric"] == "").to_numpy()).any():
        if len(study.rubrics) > 1:
            row = row_number(ratings, int(has_no_rubric.argmax()))
            raise InputError(
                f"{source}, row {row}: the rubric is empty and the study has several "
                f"({', '.join(study.rubrics)}); fill in the column 'rubric'"
            )
        only_rubric = next(iter(study.rubrics))
        ratings = ratings.assign(rubric=ratings["rubric"].where(~has_no_rubric, only_rubric))
    # Without a hash ratings would count under any later text as well: they get the present one.
    present_hashes = {name: rubric.hash for name, rubric in study.rubrics.items()}
    default_hashes = ratings["rubric"].map(present_hashes).fillna("")
    hashes = ratings["rubric_hash"]
    return ratings.assign(rubric_hash=hashes.where(hashes != "", default_hashes))


def with_study_names(study: Study, ratings: pd.DataFrame, unify: bool | None) -> pd.DataFrame:
    """Return ratings with the study's ids of units instead of `folded` ones, and of the items' own
    that one unit has. A rater whose name looks like one of the study's gets that name if `unify` is
    True; None raises InputError for it.
    """
    units = study.units("all")
    unit_by_form = {folded(unit): unit for unit in units["unit_id"]}
    if ITEM_ID in units:
        unique = units.assign(form=fold(units[ITEM_ID])).drop_duplicates("form", keep=False)
        unit_by_form = dict(zip(unique["form"], unique["unit_id"], strict=True)) | unit_by_form
    with study.store.read() as connection:
        kinds = rater_kinds(connection)
    rater_by_form = {loose(rater): rater for rater in kinds}
    renamed: dict[str, str] = {}
    for rater in ratings["rater_id"].unique():
        study_rater = rater_by_form.get(loose(rater), rater)
        if rater in kinds or study_rater == rater or unify is False:
            continue
        if unify is None:
            raise InputError(
                f"the rater {spelled_out(rater)} looks like {spelled_out(study_rater)} of the "
                "study; say --normalise if they are the same, or --no-normalise if not"
            )
        if study_rater in {*renamed.values(), *ratings["rater_id"]}:
            study_rater = spelled_out(study_rater)
            raise InputError(f"two raters look like {study_rater} of the study; rename one of them")
        renamed[rater] = study_rater
    return ratings.assign(
        unit_id=ratings["unit_id"].map(lambda unit: unit_by_form.get(unit, unit)),
        rater_id=ratings["rater_id"].replace(renamed),
    )


def _add_claims(connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
    """Add answered claims for labels given elsewhere, so that their units get fewer raters here."""
    tasks = {}  # by their `TASK_COLUMNS`: of several labels of a task the last one counts
    for row in rows:
        task = {name: row[name] for name in TASK_COLUMNS}
        columns = {"order": row["order"], "claimed_at": row["created_at"], "state": "labelled"}
        tasks[tuple(task.values())] = task | columns | {"task_id": f"import-{uuid.uuid4().hex}"}
    if tasks:
        versions = enumerate(tasks.values(), start=last_version(connection) + 1)
        insert = conflict_free_insert(connection, claims)
        insert = insert.on_conflict_do_update(
            index_elements=TASK_COLUMNS,
            set_={"state": "labelled", "version": insert.excluded.version},
        )
        connection.execute(insert, [task | {"version": version} for version, task in versions])


def _check_rows(study: Study, ratings: pd.DataFrame, source: str) -> None:
    """Raise InputError for the first row that does not fit the study."""
    refuse_repeats(ratings[ratings["rater_kind"] != "model"], LABEL_KEY, source)
    units = {kind: set(ids) for kind, ids in study.units_by_kind("all").items()}
    # A row has a label, a reason for having none, or (by a model) a probability.
    has_probability = (ratings["rater_kind"] == "model") & ratings["p_positive"].notna()
    has_result = (ratings["label"] != "") | (ratings["unscored_reason"] != "") | has_probability
    has_time = (ratings["created_at"] == "") | (ratings["created_at"].map(stored_instant) != "")
    is_valid = pd.Series(data=False, index=ratings.index)
    for name, rows in ratings.groupby("rubric"):
        if rubric := study.rubrics.get(str(name)):
            has_unit = rows["unit_id"].isin(units[rubric.unit])
            options = rows["label"].unique()
            permitted = {label: not label or rubric.kind.takes(label) for label in options}
            has_option = rows["label"].map(permitted).astype(bool)
            is_valid[rows.index] = has_unit & has_option & (has_result & has_time)[rows.index]
    if is_valid.all():
        return
    index = int((~is_valid).to_numpy().argmax())
    row, number = ratings.iloc[index], row_number(ratings, index)
    raise InputError(f"{source}, row {number}: {_fault(study, row, units)}")


def _fault(study: Study, row: pd.Series, units: Mapping[str, set[str]]) -> str:
    """Return the fault of a row that does not fit the study."""
    if (rubric := study.rubrics.get(row["rubric"])) is None:
        return f"the study has no rubric {row['rubric']!r}; it has {', '.join(study.rubrics)}"
    if row["unit_id"] not in units[rubric.unit]:
        return (
            f"the study has no {rubric.unit} item {row['unit_id']!r} with a response; `evenhand "
            f"export {shlex.quote(str(study.folder))} --units units.csv` lists the items: give the "
            "unit_id or the item_id of one"
        )
    if row["label"] and not rubric.kind.takes(row["label"]):
        return f"label {shortened(row['label'])!r} is {rubric.kind.none_of}; correct the label"
    if (time := row["created_at"]) and not stored_instant(time):
        return f"created_at is {shortened(time)!r}; write a time as 2026-05-01T10:30, or nothing"
    probability = ", nor a p_positive" if row["rater_kind"] == "model" else ""
    return f"neither a label nor an unscored_reason{probability}; give one of them"


def _event_rows(ratings: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the ratings as rows of the store's tables, without NaN, and with JSON parsed."""
    now = utc_now()
    for record in ratings[list(RATINGS_COLUMNS)].astype(object).to_dict("records"):
        event: dict[str, Any] = {str(key): value for key, value in record.items()}
        for column in ("p_positive", "seconds"):
            event[column] = None if math.isnan(event[column]) else event[column]
        event["probabilities"] = json.loads(event["probabilities"] or "null")
        event["created_at"] = event["created_at"] or now
        yield event


def _fingerprint(row: Mapping[Any, Any]) -> str:
    """Return a text that is equal for rows with the same content; times do not count."""
    content = {key: row[key] for key in RATINGS_COLUMNS if key not in ("created_at", "seconds")}
    return json.dumps(content, sort_keys=True)
