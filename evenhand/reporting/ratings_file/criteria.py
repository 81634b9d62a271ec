"""Read weighted criteria: tables with one criterion of a response in a row, and its points, as in
HealthBench (Arora et al. 2025, section 3), and compute the responses' scores (`with_scores`).

Each criterion of a response is an item, met or not. A rater who labelled all criteria of a response
gave it a score: the points of those met over the sum of the positive ones, clipped to 0-1 unless
`clip_scores` is false (HealthBench clips only the mean). Scores are a further rubric, of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.labels.matrix import MAX_VALUES
from evenhand.analysis.labels.scale import MAX_NUMBERS
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.labels import sharing
from evenhand.study.prompts.items import PROMPT_ID
from evenhand.study.prompts.pairs import CRITERIA as CRITERIA_COLUMNS
from evenhand.study.prompts.pairs import RESPONSE_ID
from evenhand.study.tables.columns import USUAL_NAMES, fold, listed, loose, shortened, unit_columns
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import TRUTH, texts, validate_ratings
from evenhand.texts import written

CRITERION, POINTS, SIGN = "criterion", "points", "points_sign"  # columns of units
CRITERIA, SCORE = "criteria", "score"  # names of the two rubrics of a file that names none
_ITEM_NAMES, _RATER_NAMES = USUAL_NAMES["items"], USUAL_NAMES["ratings"]["rater_id"]
_ID_NAMES = (RESPONSE_ID, "completion_id", "unit_id", "item_id")  # of responses, likeliest first
_MOST_CHARACTERS = 50  # a longer text does not serve as a response's id
_KINDS = (
    "axis", "criterion_kind", "criterion_type", "criterion_category", "dimension",
    "kind", "type", "category",
)  # fmt: skip
"""Columns that may hold the kind of a criterion, the likeliest first."""


def rubric_scored(rubric: str | None) -> str | None:
    """Return the rubric of criteria from which a rubric of scores is computed, None for one without
    a name. A rubric that is not one of scores is returned as it is.

    >>> rubric_scored("score"), rubric_scored("rating-score"), rubric_scored("rating")
    (None, 'rating', 'rating')
    """
    return None if rubric in (None, CRITERIA, SCORE) else rubric.removesuffix(f"-{SCORE}")


def with_criteria(table: pd.DataFrame, name: str, *, rated: bool = True) -> pd.DataFrame:
    """Return a table of criteria with an id for each (`unit_id`), the id of its response, its text
    and its points in our columns; any other table as it is. Raises InputError if ratings (`rated`)
    have points and no criteria, no column identifies responses, or a row is invalid.
    """
    by_name = {str(column).strip().casefold(): str(column) for column in table}  # as in the table
    criterion = next((by_name[key] for key in _ITEM_NAMES["criterion"] if key in by_name), "")
    points = by_name.get(POINTS, "")
    if not points:
        return table
    if not criterion:
        id_columns = [by_name[key] for key in _ID_NAMES if key in by_name]
        rater_columns = [by_name[key] for key in ("rater_id", *_RATER_NAMES) if key in by_name]
        # Without a column of rubrics, several ratings of a unit by a rater must be of criteria.
        could_show_criteria = rated and "rubric" not in table and id_columns and rater_columns
        if not could_show_criteria or not table.duplicated([id_columns[0], rater_columns[0]]).any():
            return table
        raise InputError(
            f"{name} has points ({points!r}) and no column of criteria; add one called "
            f"{CRITERION!r}, or rename {points!r} if it has no points of criteria"
        )
    table = table.assign(**{criterion: fold(texts(table[criterion])), points: texts(table[points])})
    table = _with_response_ids(table, name, criterion, by_name)
    table = table.rename(columns={criterion: CRITERION, points: POINTS})
    _check_criteria(table, name, by_row=True)
    response_ids = table[RESPONSE_ID]
    criteria = table.groupby([RESPONSE_ID, CRITERION], sort=False).ngroup()
    number_in_response = criteria.groupby(response_ids).rank("dense").astype(int).astype(str)
    table.insert(0, "unit_id", response_ids + "-c" + number_in_response)
    points_of_row = table[POINTS].astype(float)
    if (points_of_row < 0).any():
        is_sign = [points_of_row > 0, points_of_row < 0]
        table[SIGN] = np.select(is_sign, ["positive", "negative"], "")
    # The model is a fact about the response, so a column of it must have one value for each.
    models = [by_name[key] for key in _ITEM_NAMES["subject"] if by_name.get(key) in table]
    if rated and models and (table.groupby(RESPONSE_ID)[models[0]].nunique() == 1).all():
        table = table.rename(columns={models[0]: "subject"})
    return table


def _with_response_ids(
    table: pd.DataFrame, name: str, criterion: str, by_name: Mapping[str, str]
) -> pd.DataFrame:
    """Return a table of criteria with the id of each row's response in `RESPONSE_ID`, and without
    ids of units. Raises InputError if no column says which criteria are of one response.
    """
    columns = _response_columns(table, criterion, by_name)
    if not columns:
        raise InputError(
            f"{name} has criteria ({criterion!r}), and no column says which of them are of one "
            f"response; add one called {RESPONSE_ID!r}"
        )
    first, is_single = columns[0], len(columns) == 1
    ids = texts(table[first])
    if not is_single or ids.str.len().max() > _MOST_CHARACTERS:
        ids = "r" + (table.groupby(columns, sort=False).ngroup() + 1).astype(str)
    omitted = ["unit_id", "item_id"]  # a criterion gets a `unit_id` of its own
    is_text = first.strip().casefold() in (*_ITEM_NAMES["prompt"], *_ITEM_NAMES["response"])
    if not is_text and not is_single and PROMPT_ID not in table:
        table = table.rename(columns={first: PROMPT_ID})  # responses to a prompt share this id
    elif not is_text:
        omitted.append(first)  # RESPONSE_ID, or else PROMPT_ID, has this id now
    return table.drop(columns=omitted, errors="ignore").assign(**{RESPONSE_ID: ids})


def _response_columns(table: pd.DataFrame, criterion: str, by_name: Mapping[str, str]) -> list[str]:
    """Return the columns that identify a response: an id that several criteria share, with columns
    of the model and the text if these differ within it; else the texts.
    """
    likely_ids = [by_name[key] for key in _ID_NAMES if key in by_name]
    likely_ids += [name for name in unit_columns(map(str, table)) if name != criterion]
    subject, response, prompt = (  # each a list of one column, or [] if the table has none
        [by_name[key] for key in _ITEM_NAMES[role] if key in by_name][:1]
        for role in ("subject", "response", "prompt")
    )
    for column in likely_ids:
        by_id = table.groupby(column)
        if (by_id[criterion].nunique() > 1).any():
            further = [name for name in (*subject, *response) if name != column]
            return [column, *(name for name in further if (by_id[name].nunique() > 1).any())]
    return [*prompt, *response, *subject] if response else []


def _check_criteria(table: pd.DataFrame, name: str, *, by_row: bool = False) -> None:
    """Raise InputError for the first item without a response, criterion or number of points, with
    two different points, or of a response without positive points; it names the row or the id.
    """
    points = pd.to_numeric(table[POINTS], errors="coerce")
    first = table.groupby([RESPONSE_ID, CRITERION], sort=False)[POINTS].transform("first")
    positive = points.clip(lower=0).groupby(table[RESPONSE_ID]).transform("sum")
    differs = "{criterion} of response {response} has {points} points here, and {first} further up"
    no_positive = "response {response} has no criterion with positive points, so it has no score"
    faults = (  # where rows are faulty, and the fault, with `quoted` values for the braces
        (table[RESPONSE_ID] == "", "no response is named; fill in the id of the response"),
        (table[CRITERION].str.strip() == "", "has {points} points and no criterion; fill it in"),
        (~np.isfinite(points), "points is {points}; give the number of points of the criterion"),
        (points != pd.to_numeric(first, errors="coerce"), f"{differs}; correct one of the two"),
        (positive <= 0, f"{no_positive}; correct the points or leave the response out"),
    )
    for is_faulty, fault in faults:
        if is_faulty.any():
            position = int(is_faulty.to_numpy().argmax())
            row = table.iloc[position].to_dict() | {"first": first.iloc[position]}
            subject = f"row {row_number(table, position)}" if by_row else f"item {row['unit_id']!r}"
            quoted = {col: repr(shortened(str(row[col]))) for col in (CRITERION, POINTS, "first")}
            quoted["response"] = repr(shortened(row[RESPONSE_ID]))
            raise InputError(f"{name}, {subject}: {fault.format(**quoted)}")


def with_scores(dataset: Dataset) -> Dataset:
    """Return a dataset of criteria with the responses' scores as a further rubric of numbers, and
    slices by kind of criterion; any other dataset as it is. Raises InputError if no rubric has two
    labels, met and not met.
    """
    units = dataset.units
    if not {*CRITERIA_COLUMNS} <= {*units} or dataset.ratings.empty:
        return dataset
    units = units[units[CRITERION] != ""]
    _check_criteria(units, dataset.name)
    criteria = _criteria_of(units)
    if list(dataset.scales) == [""]:  # the file names no rubric
        scales = {CRITERIA: replace(dataset.scales[""], name=CRITERIA)}
        ratings = dataset.ratings.assign(rubric=CRITERIA)
        titles = {CRITERIA: written("criteria.unnamed")}
        dataset = replace(dataset, scales=scales, ratings=ratings, titles=titles)
    scales, titles, tables = dict(dataset.scales), dict(dataset.titles), [dataset.ratings]
    rubric_by_score, notes = dict[str, str](), [*dataset.notes]
    for name, scale in dataset.scales.items():
        rows = dataset.ratings[dataset.ratings["rubric"] == name].join(criteria, on="unit_id")
        rows = rows[rows["response"].notna()]  # other units are no criteria
        met = _met_labels(scale)
        has_base = scale.part_of or scale.variant_of  # another rubric, which gives the score
        if rows.empty or met is None or has_base:
            continue
        score = SCORE if name == CRITERIA else f"{name}-{SCORE}"
        rows = rows.assign(rubric=score, is_met=rows["label"].isin(met))
        scored = _scores(rows, clip=dataset.settings.clip_scores)
        tables.append(validate_ratings(scored))
        rubric_by_score[score] = name
        labels = sorted({*scored["label"]} - {""} | {"0", "1"}, key=float)  # 0 and 1 are the ends
        scales[name] = replace(scale, affirmative=met)
        scales[score] = Scale(score, tuple(labels), "interval", unit=scale.unit, number=True)
        titles[score] = written("criteria.title", rubric=titles.get(name, name))
        counts = {"criteria": len(criteria), "responses": criteria["response"].nunique()}
        notes.append(written("criteria.read", score=score, **counts))
        for note in ("missing", "clipped"):
            if count := int(scored[note].sum()):
                notes.append(written(f"criteria.{note}", score=score, count=count))
    if not rubric_by_score:
        raise InputError(
            f"{dataset.name}: criteria have two labels, such as met and not met, and these have "
            f"{listed(column for scale in scales.values() for column in scale.categories)}; "
            "name the label of a met criterion as the affirmative one, and read a third as no label"
        )
    of_criteria = ("unit_id", CRITERION, POINTS, SIGN)  # columns that no response has
    columns = [column for column in shared_columns(units) if column not in of_criteria]
    responses = units[columns].drop_duplicates(RESPONSE_ID)
    # A response is in the cluster that its criteria share, else it is a cluster of its own.
    replaced = {"unit_id", "cluster_id"} & ({*units} - {*columns})
    ids = dict.fromkeys(replaced, responses[RESPONSE_ID])
    return replace(
        dataset,
        ratings=pd.concat(tables, ignore_index=True),
        units=pd.concat([dataset.units, responses.assign(**ids)], ignore_index=True).fillna(""),
        scales=scales,
        titles=titles,
        facts=sharing(dataset.facts, rubric_by_score),
        notes=tuple(notes),
    ).changed(slices=(*dataset.settings.slices, *_kind_columns(units)))


def _criteria_of(units: pd.DataFrame) -> pd.DataFrame:
    """Return by unit its `response`, `points`, the response's `positive` sum and `n_criteria`."""
    points, response = units[POINTS].astype(float), units[RESPONSE_ID]
    table = pd.DataFrame({"response": response, "points": points})
    table["positive"] = points.clip(lower=0).groupby(response).transform("sum")
    table["n_criteria"] = points.groupby(response).transform("size")
    return table.set_axis(units["unit_id"])


def _met_labels(scale: Scale) -> frozenset[str] | None:
    """Return a met criterion's labels: affirmative, or a word for yes; None for other scales."""
    label_of = {loose(label): label for label in scale.categories}
    yes = next((yes for yes, no in TRUTH if label_of.keys() <= {yes, no}), "")
    if len(label_of) > 2 or not (scale.affirmative or yes):
        return None
    return scale.affirmative or frozenset(label for word, label in label_of.items() if word == yes)


def _kind_columns(units: pd.DataFrame) -> list[str]:
    """Return the columns that vary within responses to slice by: the likeliest kind, and `SIGN`."""
    n_values = units.groupby(RESPONSE_ID).nunique()
    varying = [col for col in (*_KINDS, SIGN) if col in n_values and (n_values[col] > 1).any()]
    columns = [column for column in varying if units[column].nunique() <= MAX_VALUES]
    return [column for column in columns if column in (columns[0], SIGN)]  # the likeliest is first


def _scores(rows: pd.DataFrame, *, clip: bool) -> pd.DataFrame:
    """Return the ratings of responses from those of criteria, `rows`: the score as the label, "" if
    a criterion has none; the number of `missing` labels; and True if the score was `clipped`.
    """
    points, has_label = rows["points"] * rows["is_met"], rows["label"] != ""
    by_rating = rows.assign(points=points, has_label=has_label, unit_id=rows["response"]).groupby(
        ["unit_id", "rubric", "rater_id", "rater_kind", "order", "draw"], as_index=False, sort=False
    )
    scored = by_rating.agg(
        points=("points", "sum"),
        n_labels=("has_label", "sum"),
        positive=("positive", "first"),
        n_criteria=("n_criteria", "first"),
        rubric_hash=("rubric_hash", "first"),
        n_hashes=("rubric_hash", "nunique"),
        created_at=("created_at", "max"),
    )
    raw_score = scored["points"] / scored["positive"]
    n_missing = scored["n_criteria"] - scored["n_labels"]
    is_complete = (n_missing == 0) & (scored["n_hashes"] == 1)  # under one text of the rubric
    score = raw_score.clip(0, 1) if clip else raw_score
    # Fewer places if there were too many categories: of at most MAX_NUMBERS, 0 and 1 may be added.
    places = 6 if score.round(6).nunique() < MAX_NUMBERS - 1 else 3
    label = score.round(places).map("{:.6g}".format).where(is_complete, "")
    reason = np.where(is_complete, "", "incomplete")
    clipped = is_complete & (score != raw_score)
    return scored.assign(label=label, unscored_reason=reason, missing=n_missing, clipped=clipped)


def shared_columns(units: pd.DataFrame) -> list[str]:
    """Return `unit_id` and the columns that a response's criteria share; all if there are none."""
    names = list(map(str, units))
    if not {*CRITERIA_COLUMNS} <= {*names}:
        return names
    differs = units.groupby(RESPONSE_ID).nunique() > 1
    return [name for name in names if name not in differs or not differs[name].any()] + ["unit_id"]
