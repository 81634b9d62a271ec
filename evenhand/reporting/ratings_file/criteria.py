"""Read weighted criteria, as in HealthBench (Arora et al. 2025, section 3), and compute scores.

A response has several criteria, each with points, and a rater says of each if it is met. While a
file is read, `with_criteria` makes each criterion of a response an item, with an id of its own:

    response_id  criterion       points  rater_id  label      unit_id
    r1           Names a source  5       ann       met        r1-c1
    r1           Is rude         -4      ann       met        r1-c2

When all labels are read, `with_scores` makes the responses items, too, on a further rubric, that of
scores. Here ann gives the item r1 the label 0.2: the points of the criteria that are met over the
sum of the positive points, (5 - 4) / 5. A score needs labels of all criteria of the response, and
is clipped to 0-1 unless `clip_scores` is false (HealthBench clips only the mean).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.dataset import Dataset
from evenhand.analysis.labels.matrix import MAX_VALUES
from evenhand.analysis.labels.scale import MAX_NUMBERS
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.labels import Scales, sets_in, sharing
from evenhand.rubrics.options import TRUTH
from evenhand.study.prompts.items import PROMPT_ID
from evenhand.study.prompts.pairs import CRITERIA as CRITERIA_COLUMNS
from evenhand.study.prompts.pairs import RESPONSE_ID
from evenhand.study.tables.columns import USUAL_NAMES, fold, listed, loose, shortened, unit_columns
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import texts, validate_ratings
from evenhand.texts import written

CRITERION, POINTS, SIGN = "criterion", "points", "points_sign"  # columns of units
CRITERIA, SCORE = "criteria", "score"  # names of the two rubrics of a file that names none
_ITEM_NAMES, _RATER_NAMES = USUAL_NAMES["items"], USUAL_NAMES["ratings"]["rater_id"]
_ID_NAMES = (RESPONSE_ID, "completion_id", "unit_id", "item_id")  # of responses, likeliest first
_MOST_CHARACTERS = 50  # a longer text does not serve as a response's id
_KINDS = ("axis", "criterion_kind", "criterion_type", "criterion_category", "dimension", "kind",
    "type", "category")  # fmt: skip
"""Columns that may hold the kind of a criterion, the likeliest first."""


def rubric_scored(rubric: str | None) -> str | None:
    """Return the rubric of criteria from which a rubric of scores is computed, None for one without
    a name. A rubric that is not one of scores is returned as it is.

    >>> rubric_scored("score"), rubric_scored("rating-score"), rubric_scored("rating")
    (None, 'rating', 'rating')
    """
    return None if rubric in (None, CRITERIA, SCORE) else rubric.removesuffix(f"-{SCORE}")


def rubrics_of(
    scales: Scales, rubrics: Collection[str], *, has_criteria: bool
) -> tuple[set[str], Scales]:
    """Return the names of the rubrics that the `scales` of a dataset had in its file, where parts
    of sets and scores have none, and the scales without those of scores; `rubrics` are the file's.
    """
    names = {*scales, *sets_in(scales, rubrics)}
    if not has_criteria:
        return names, scales
    names |= {rubric_scored(name) or name for name in scales}
    own = {name: scales[name] for name in scales if rubric_scored(name) == name}
    if CRITERIA in scales:  # the file may name no rubric
        name = "" if {*rubrics} == {""} else CRITERIA
        own[name] = replace(scales[CRITERIA], name=name)
    return names, own


def with_criteria(table: pd.DataFrame, name: str, *, has_ratings: bool = True) -> pd.DataFrame:
    """Return a table of criteria with an id for each (`unit_id`), the id of its response, its text
    and its points in our columns; any other table as it is. Raises InputError if no column
    identifies responses, a row is invalid, or ratings (`has_ratings`) have points and no criteria.
    """
    by_name = {str(column).strip().casefold(): str(column) for column in table}  # as spelled here
    criterion = next((by_name[key] for key in _ITEM_NAMES["criterion"] if key in by_name), "")
    points = by_name.get(POINTS, "")
    if points and not criterion and has_ratings:
        _refuse_points(table, name, points, by_name)
    if not points or not criterion:
        return table
    table = table.assign(**{criterion: fold(texts(table[criterion])), points: texts(table[points])})
    table = _with_response_ids(table, name, criterion, by_name)
    table = table.rename(columns={criterion: CRITERION, points: POINTS})
    _check_criteria(table, name, by_row=True)
    response_ids = table[RESPONSE_ID]
    criteria = table.groupby([RESPONSE_ID, CRITERION], sort=False).ngroup()
    number_in_response = criteria.groupby(response_ids).rank("dense").astype(int).astype(str)
    table.insert(0, "unit_id", response_ids + "-c" + number_in_response)
    row_points = table[POINTS].astype(float)
    if (row_points < 0).any():
        table[SIGN] = np.select([row_points > 0, row_points < 0], ["positive", "negative"], "")
    # A column called "model" may hold graders, unless all rows of a response have the same model.
    # In a file of items it can only be the subject; `item_columns` recognises it later.
    models = [by_name[key] for key in _ITEM_NAMES["subject"] if by_name.get(key) in table]
    if has_ratings and models and (table.groupby(RESPONSE_ID)[models[0]].nunique() == 1).all():
        table = table.rename(columns={models[0]: "subject"})
    return table


def _refuse_points(table: pd.DataFrame, name: str, points: str, by_name: Mapping[str, str]) -> None:
    """Raise InputError if a rater rated an item several times on one rubric: its `points` are then
    of criteria that no column names. Other points, such as a game's, may describe an item.
    """
    ids = [by_name[key] for key in _ID_NAMES if key in by_name][:1]
    raters = [by_name[key] for key in ("rater_id", *_RATER_NAMES) if key in by_name][:1]
    if ids and raters and "rubric" not in table and table.duplicated([*ids, *raters]).any():
        raise InputError(
            f"{name} has points ({points!r}) and no column of criteria; add one called "
            f"{CRITERION!r}, or rename {points!r} if it has no points of criteria"
        )


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
    first, *others = columns
    response_ids = texts(table[first])
    if others or response_ids.str.len().max() > _MOST_CHARACTERS:
        numbers = table[columns].apply(texts).groupby(columns, sort=False).ngroup() + 1
        response_ids = "r" + numbers.astype(str)
    replaced = ["unit_id", "item_id"]  # a criterion gets a `unit_id` of its own
    if first.strip().casefold() not in (*_ITEM_NAMES["prompt"], *_ITEM_NAMES["response"]):
        # The first column has ids and not texts, which raters read: ids of prompts or responses.
        if others and PROMPT_ID not in table:
            table = table.rename(columns={first: PROMPT_ID})
        else:
            replaced.append(first)
    return table.drop(columns=replaced, errors="ignore").assign(**{RESPONSE_ID: response_ids})


def _response_columns(table: pd.DataFrame, criterion: str, by_name: Mapping[str, str]) -> list[str]:
    """Return the columns whose values together identify a response, or [] if there are none:

    - `[id]`, an id of responses, if several criteria share one, with one model and response;
    - `[id, model, response]`, an id of prompts, with those of the other two that differ within it;
    - `[prompt, response, model]` if no id is shared: those that there are, if responses are.
    """
    ids = [by_name[key] for key in _ID_NAMES if key in by_name]
    ids += [column for column in unit_columns(map(str, table)) if column != criterion]
    model, response, prompt = (  # each a list of one column, or [] if the table has none
        [by_name[key] for key in _ITEM_NAMES[role] if key in by_name][:1]
        for role in ("subject", "response", "prompt")
    )
    for column in ids:
        by_id = table.groupby(column)
        if (by_id[criterion].nunique() > 1).any():
            others = [name for name in (*model, *response) if name != column]
            return [column, *(name for name in others if (by_id[name].nunique() > 1).any())]
    return [*prompt, *response, *model] if response else []


def _check_criteria(table: pd.DataFrame, name: str, *, by_row: bool = False) -> None:
    """Raise InputError for the first item without a response, criterion or number of points, with
    two different points, or of a response without positive points; it names the row or the id.
    """
    points = pd.to_numeric(table[POINTS], errors="coerce")
    first = table.groupby([RESPONSE_ID, CRITERION], sort=False)[POINTS].transform("first")
    positive = points.clip(lower=0).groupby(table[RESPONSE_ID]).transform("sum")
    differs = "{criterion} of response {response} has {points} points here, and {first} further up"
    no_positive = "response {response} has no criterion with positive points, so it has no score"
    faults = (  # the rows with a fault, and a sentence on the first, whose fields `quoted` fills
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
    """Return a dataset of criteria with the responses' scores, on a further rubric of numbers for
    each rubric of criteria, and with slices by kind of criterion; any other dataset as it is.
    Raises InputError if no rubric has two labels, met and not met.
    """
    units = dataset.units
    if not {*CRITERIA_COLUMNS} <= {*units} or dataset.ratings.empty:
        return dataset
    units = units[units[CRITERION] != ""]
    _check_criteria(units, dataset.name)
    criteria = _criteria_of(units)
    if list(dataset.scales) == [""]:  # the file names no rubric
        ratings, title = dataset.ratings.assign(rubric=CRITERIA), written("criteria.unnamed")
        scales = {CRITERIA: replace(dataset.scales[""], name=CRITERIA)}
        dataset = replace(dataset, scales=scales, ratings=ratings, titles={CRITERIA: title})
    scales, titles, tables = dict(dataset.scales), dict(dataset.titles), [dataset.ratings]
    rubric_by_score, notes = dict[str, str](), [*dataset.notes]
    for rubric, scale in dataset.scales.items():
        rows = dataset.ratings[dataset.ratings["rubric"] == rubric].join(criteria, on="unit_id")
        rows = rows[rows["response"].notna()]  # other units are no criteria
        met = _met_labels(scale)
        # A rubric that this one is a part or another wording of gets the scores itself.
        if rows.empty or met is None or scale.part_of or scale.variant_of:
            continue
        score_rubric = SCORE if rubric == CRITERIA else f"{rubric}-{SCORE}"
        rubric_by_score[score_rubric] = rubric
        scores = _scores(rows, score_rubric, met, clip=dataset.settings.clip_scores)
        tables.append(validate_ratings(scores))
        labels = tuple(sorted({*scores["label"], "0", "1"} - {""}, key=float))  # 0, 1: the ends
        scales[rubric] = replace(scale, affirmative=met)
        scales[score_rubric] = Scale(score_rubric, labels, "interval", unit=scale.unit, number=True)
        titles[score_rubric] = written("criteria.title", rubric=titles.get(rubric, rubric))
        counts = {"criteria": len(criteria), "responses": criteria["response"].nunique()}
        notes.append(written("criteria.read", score=score_rubric, **counts))
        for key in ("missing", "clipped"):
            if count := int(scores[key].sum()):
                notes.append(written(f"criteria.{key}", score=score_rubric, count=count))
    if not rubric_by_score:
        raise InputError(
            f"{dataset.name}: criteria have two labels, such as met and not met, and these have "
            f"{listed(column for scale in scales.values() for column in scale.categories)}; "
            "name the one that means met with --affirmative, and any third with --missing"
        )
    return replace(
        dataset,
        ratings=pd.concat(tables, ignore_index=True),
        units=pd.concat([dataset.units, _responses_of(units)], ignore_index=True).fillna(""),
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
    by_word = {loose(label): label for label in scale.categories}  # such as {"yes": "Yes"}
    yes_words = [yes for yes, no in TRUTH if by_word.keys() <= {yes, no}]
    if len(by_word) > 2 or not (scale.affirmative or yes_words):
        return None
    return scale.affirmative or frozenset(by_word[word] for word in by_word if word in yes_words)


def _scores(rows: pd.DataFrame, rubric: str, met: Collection[str], *, clip: bool) -> pd.DataFrame:
    """Return ratings of responses on the `rubric` of scores. `rows` are those of criteria with the
    columns of `_criteria_of`; `met` are the labels of a criterion that is met. A label is a score,
    "" if labels of criteria are `missing` (their number). The score may be `clipped` (True).
    """
    points = rows["points"] * rows["label"].isin(met)
    rows = rows.assign(points=points, has_label=rows["label"] != "")
    by_rating = rows.assign(unit_id=rows["response"], rubric=rubric).groupby(
        ["unit_id", "rubric", "rater_id", "rater_kind", "order", "draw"], as_index=False, sort=False
    )
    scores = by_rating.agg(
        points=("points", "sum"),
        n_labels=("has_label", "sum"),
        positive=("positive", "first"),
        n_criteria=("n_criteria", "first"),
        rubric_hash=("rubric_hash", "first"),
        n_hashes=("rubric_hash", "nunique"),
        created_at=("created_at", "max"),
    )
    raw_score = scores["points"] / scores["positive"]
    n_missing = scores["n_criteria"] - scores["n_labels"]
    is_complete = (n_missing == 0) & (scores["n_hashes"] == 1)  # under one text of the rubric
    score = raw_score.clip(0, 1) if clip else raw_score
    # A scale has at most MAX_NUMBERS labels; 0 and 1, its ends, may be two more than the scores.
    places = 6 if score.round(6).nunique() < MAX_NUMBERS - 1 else 3
    label = score.round(places).map("{:.6g}".format).where(is_complete, "")
    reason = np.where(is_complete, "", "incomplete")
    clipped = is_complete & (score != raw_score)
    return scores.assign(label=label, unscored_reason=reason, missing=n_missing, clipped=clipped)


def _responses_of(units: pd.DataFrame) -> pd.DataFrame:
    """Return the responses as units, with the columns that their criteria share."""
    of_criteria = ("unit_id", CRITERION, POINTS, SIGN)  # columns that no response has
    columns = [column for column in shared_columns(units) if column not in of_criteria]
    responses = units[columns].drop_duplicates(RESPONSE_ID)
    # A response is in the cluster that its criteria share, else it is a cluster of its own.
    replaced = {"unit_id", "cluster_id"} & ({*units} - {*columns})
    return responses.assign(**dict.fromkeys(replaced, responses[RESPONSE_ID]))


def shared_columns(units: pd.DataFrame) -> list[str]:
    """Return `unit_id` and the columns that a response's criteria share; all if there are none."""
    names = list(map(str, units))
    if not {*CRITERIA_COLUMNS} <= {*names}:
        return names
    differs = units.groupby(RESPONSE_ID).nunique() > 1
    return [name for name in names if name not in differs or not differs[name].any()] + ["unit_id"]


def _kind_columns(units: pd.DataFrame) -> list[str]:
    """Return the columns to slice by, which differ within responses: the likeliest kind; `SIGN`."""
    n_values = units.groupby(RESPONSE_ID).nunique()
    varying = [col for col in (*_KINDS, SIGN) if col in n_values and (n_values[col] > 1).any()]
    columns = [column for column in varying if units[column].nunique() <= MAX_VALUES]
    kinds = [column for column in columns if column != SIGN]
    return [*kinds[:1], *([SIGN] if SIGN in columns else [])]
