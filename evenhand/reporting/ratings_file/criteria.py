"""Weighted criteria: tables whose rows hold one criterion of a response, and the points that it
gives, as of HealthBench (Arora et al. 2025, section 3) and others like it.

Each criterion of a response is an item, met or not. Who labelled all criteria of a response gave it
a score: the points of those met over the sum of the positive ones, clipped to 0-1. The scores are a
rubric of their own, of numbers. HealthBench divides alike, and clips only the mean.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.analysis.labels.scale import MAX_NUMBERS
from evenhand.analysis.labels.units import MAX_VALUES
from evenhand.errors import InputError
from evenhand.study.prompts.items import PROMPT_ID
from evenhand.study.prompts.pairs import RESPONSE_ID
from evenhand.study.tables.columns import USUAL_NAMES, fold, listed, look, shortened, unit_columns
from evenhand.study.tables.formats import row_number
from evenhand.study.tables.ratings import TRUTH, texts
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.dataset import Dataset

CRITERION, POINTS, SIGN = "criterion", "points", "points_sign"
COLUMNS = (RESPONSE_ID, CRITERION, POINTS)
"""Columns of units that are criteria."""
CRITERIA, SCORE = "criteria", "score"
"""Names of the two rubrics of a file that names none."""
_KNOWN = USUAL_NAMES["items"]
_IDS = frozenset((*_KNOWN["id"], "unit_id"))
_RESPONSES = (RESPONSE_ID, "completion_id")
_KINDS = (
    *("axis", "criterion_kind", "criterion_type", "criterion_category", "dimension"),
    *("kind", "type", "category", "tags", "tag"),
)
"""Columns that may say of what kind a criterion is, the likeliest first."""
_AXIS = re.compile(r"axis:\s*([\w -]+)")
_GIVEN = ["rater_id", "rater_kind", "order", "draw"]


def rubric_read(rubric: str | None) -> str | None:
    """Return the rubric whose labels a rubric is computed of.

    >>> rubric_read("score"), rubric_read("rating-score"), rubric_read("rating")
    (None, 'rating', 'rating')
    """
    return None if rubric in (CRITERIA, SCORE) else rubric and rubric.removesuffix(f"-{SCORE}")


def with_criteria(
    table: pd.DataFrame, name: str, rows: pd.DataFrame | None = None, *, rated: bool = True
) -> pd.DataFrame:
    """Return a table of criteria with an id for each (`unit_id`), the id of its response, its text
    and its points in columns called so; any other table as it is. `rows` has the index by which
    messages call rows, where it is another one.

    Raises InputError naming the first row with points and no criterion, without a number of points,
    with other points than before, or of a response without positive points; or where no column
    tells the responses apart, or ratings (`rated`) have points and no criteria.
    """
    by_name = {str(column).strip().casefold(): str(column) for column in table}
    criterion = next((by_name[each] for each in _KNOWN["criterion"] if each in by_name), "")
    points = by_name.get(POINTS, "")
    if not points or (not criterion and (not rated or not _is_beside_labels(table, points))):
        return table
    if not criterion:
        raise InputError(
            f"{name} has points ({points!r}) and no column of criteria; add one called "
            f"{CRITERION!r}, or rename {points!r} if it has no points of criteria"
        )
    table = table.assign(**{criterion: fold(texts(table[criterion])), points: texts(table[points])})
    columns = _response_columns(table, criterion, by_name)
    if not columns:
        raise InputError(
            f"{name} has criteria ({criterion!r}), and no column says which of them are of one "
            f"response; add one called {RESPONSE_ID!r}"
        )
    codes = table.groupby(columns, sort=False, dropna=False).ngroup()
    ids = texts(table[columns[0]]).str.cat([texts(table[each]) for each in columns[1:]], sep="-")
    if ids.nunique() <= codes.max() or (ids.str.len() > 50).any() or (ids == "").any():
        ids = "r" + (codes + 1).astype(str)
    alone = [each for each in columns if len(columns) == 1 and not _is_text(each)]
    shared = {each: PROMPT_ID for each in columns[:1] if len(columns) > 1 and each in _IDS}
    gone = {"unit_id", "item_id", *alone} - shared.keys()
    table = table.drop(columns=[each for each in table if each in gone])
    table = table.rename(columns={criterion: CRITERION, points: POINTS, **shared})
    table[RESPONSE_ID] = ids
    _check(table, name, table if rows is None else rows)
    numbers = table.drop_duplicates([RESPONSE_ID, CRITERION]).groupby(RESPONSE_ID).cumcount() + 1
    first = table.loc[numbers.index, [RESPONSE_ID, CRITERION]].assign(number=numbers.astype(str))
    numbered = table[[RESPONSE_ID, CRITERION]].merge(first, how="left")["number"]
    table.insert(0, "unit_id", (ids + "-c").str.cat(numbered.set_axis(table.index)))
    value = table[POINTS].astype(float)
    if (value < 0).any():
        table[SIGN] = np.select([value > 0, value < 0], ["positive", "negative"], "")
    for column in [by_name[each] for each in _KNOWN["subject"] if by_name.get(each) in table][:1]:
        if rated and (table.groupby(RESPONSE_ID)[column].nunique() == 1).all():
            table = table.rename(columns={column: "subject"})
    for column in [each for each in ("tags", "tag") if each in table and "axis" not in table]:
        table["axis"] = texts(table[column]).str.extract(_AXIS, expand=False).fillna("")
    return table


def _is_text(column: str) -> bool:
    return column.strip().casefold() in (*_KNOWN["prompt"], *_KNOWN["response"], *_KNOWN["subject"])


def _is_beside_labels(table: pd.DataFrame, points: str) -> bool:
    """Return True if a column of numbers stands next to one of labels, without a rubric."""
    numbers = pd.to_numeric(texts(table[points]), errors="coerce")
    others = {"label", *USUAL_NAMES["ratings"]["label"]} & set(table)
    return bool(others) and "rubric" not in table and bool(numbers.notna().all())


def _response_columns(table: pd.DataFrame, criterion: str, names: Mapping[str, str]) -> list[str]:
    """Return the columns that together name a response: an id that several criteria share, with the
    model or the text where these differ; or else the texts.
    """
    likely = [names[each] for each in (*_RESPONSES, "unit_id", "item_id") if each in names]
    likely += [each for each in unit_columns(map(str, table)) if each not in (criterion, *likely)]
    roles = ("subject", "response", "prompt")
    subject, shown, prompt = ([names[e] for e in _KNOWN[role] if e in names][:1] for role in roles)
    for column in likely:
        by_value = table.groupby(column)
        if (by_value[criterion].nunique() > 1).any():
            others = [each for each in (*subject, *shown) if each != column]
            return [column, *(each for each in others if (by_value[each].nunique() > 1).any())]
    return [*prompt, *shown, *subject] if shown else []


def _check(table: pd.DataFrame, name: str, rows: pd.DataFrame) -> None:
    """Raise InputError for the first row whose criterion or points cannot be."""
    value = pd.to_numeric(table[POINTS], errors="coerce")
    first = table.groupby([RESPONSE_ID, CRITERION], sort=False)[POINTS].transform("first")
    positive = value.clip(lower=0).groupby(table[RESPONSE_ID]).transform("sum")
    faults = (
        (table[CRITERION].str.strip() == "", "has {points} points and no criterion; fill it in"),
        (
            ~np.isfinite(value),
            "points is {points!r}; give the number of points of the criterion",
        ),
        (
            value != pd.to_numeric(first, errors="coerce"),
            "criterion {criterion!r} of response {response!r} has {points} points here and "
            "{first} further up; correct one of the two",
        ),
        (
            positive <= 0,
            "response {response!r} has no criterion with positive points, so it has no score; "
            "correct the points or leave the response out",
        ),
    )
    for wrong, fault in faults:
        if wrong.any():
            at = int(wrong.to_numpy().argmax())
            row = table.iloc[at]
            cells = {"points": shortened(row[POINTS]), "response": shortened(row[RESPONSE_ID])}
            cells |= {"criterion": shortened(row[CRITERION]), "first": first.iloc[at]}
            raise InputError(f"{name}, row {row_number(rows, at)}: {fault.format(**cells)}")


def with_scores(dataset: Dataset, only: str | None = None) -> Dataset:
    """Return a dataset of criteria with the responses' scores as a further rubric of numbers, by
    all who labelled every criterion of a response, and sliced by kind of criterion; any other one
    as it is. With `only`, the name of one of the two rubrics, the other one is left out.

    Raises InputError where no rubric's labels say whether a criterion is met.
    """
    units = dataset.units
    if not {*COLUMNS} <= set(units) or dataset.ratings.empty:
        return dataset
    of_criteria = units[texts(units[CRITERION]).str.strip() != ""]
    value = pd.to_numeric(of_criteria[POINTS], errors="coerce").set_axis(of_criteria["unit_id"])
    response = of_criteria[RESPONSE_ID].astype(str).set_axis(of_criteria["unit_id"])
    positive, size = value.clip(lower=0).groupby(response).sum(), response.groupby(response).size()
    if of_criteria.empty:
        return dataset
    wrong = ~np.isfinite(value) | (response.map(positive) <= 0)
    if wrong.any():  # of a table of units: those of a file of criteria were checked
        raise InputError(
            f"{dataset.name}: the points of item {value.index[int(wrong.to_numpy().argmax())]!r} "
            "are no number, or no criterion of its response has positive points; correct the units"
        )
    if list(dataset.scales) == [""]:
        scales = {CRITERIA: replace(dataset.scales[""], name=CRITERIA)}
        ratings = dataset.ratings.assign(rubric=CRITERIA)
        dataset = replace(dataset, scales=scales, ratings=ratings)
    scales, tables, titles, notes = dict(dataset.scales), [], dict(dataset.titles), list[str]()
    derived: dict[str, str] = {}
    for name, scale in dataset.scales.items():
        rows = dataset.ratings[dataset.ratings["rubric"] == name]
        rows = rows[rows["unit_id"].isin(value.index)]
        if rows.empty or len(scale.categories) > 2 or scale.part_of or scale.variant_of:
            continue
        said = {look(each): each for each in scale.categories}
        words = next((pair for pair in TRUTH if said.keys() <= {*pair}), ("",))
        met = scale.affirmative or frozenset({said.get(words[0], "")} - {""})
        if not (met or words[0]):
            continue
        scored, missing, clipped = _scores(rows, response, value, positive, size, met)
        score = SCORE if name == CRITERIA else f"{name}-{SCORE}"
        derived[score] = name
        titles.setdefault(name, written("criteria.unnamed") if name == CRITERIA else name)
        tables.append(scored.assign(rubric=score))
        labels = sorted({*scored["label"]} - {""} | {"0", "1"}, key=float)
        scales[name] = replace(scale, affirmative=met)
        scales[score] = Scale(score, tuple(labels), "interval", unit=scale.unit, number=True)
        titles[score] = written("criteria.title", rubric=titles[name])
        counts = {"criteria": len(response), "responses": len(size)}
        notes.append(written("criteria.read", score=score, **counts))
        if missing:
            notes.append(written("criteria.missing", score=score, count=missing))
        if clipped:
            notes.append(written("criteria.clipped", score=score, count=clipped))
    if not derived:
        raise InputError(
            f"{dataset.name}: criteria have two labels, such as met and not met, and these have "
            f"{listed(each for scale in dataset.scales.values() for each in scale.categories)}; "
            "name the label of a criterion that is met as the affirmative one"
        )
    facts = dataset.facts
    hashes = facts.rubric_hashes
    facts = replace(
        facts,
        looks=facts.looks | {s: facts.looks[n] for s, n in derived.items() if n in facts.looks},
        rubric_hashes=hashes
        and {**hashes, **{s: hashes[n] for s, n in derived.items() if n in hashes}},
    )
    others = [each for each in shared_columns(of_criteria) if each not in (CRITERION, POINTS, SIGN)]
    responses = of_criteria[others].drop_duplicates(RESPONSE_ID)
    ids = {each: responses[RESPONSE_ID] for each in ("unit_id", "cluster_id") if each in units}
    kinds = [each for each in _KINDS if each in units and _is_of_criteria(of_criteria, each)][:1]
    kinds += [SIGN] if SIGN in units and of_criteria[SIGN].nunique() > 1 else []
    slices = tuple(dict.fromkeys((*dataset.settings.slices, *kinds)))
    dataset = replace(
        dataset,
        ratings=pd.concat([dataset.ratings, *tables], ignore_index=True),
        units=pd.concat([units, responses.assign(**ids)], ignore_index=True).fillna(""),
        scales=scales,
        titles=titles,
        facts=facts,
        notes=(*dataset.notes, *notes),
    ).changed(slices=slices)
    if only is None:
        return dataset
    if only not in scales:
        raise InputError(f"{dataset.name} has no rubric {only!r}; it has {listed(scales)}")
    kept = dataset.ratings[dataset.ratings["rubric"] == only]
    return replace(dataset, ratings=kept, scales={only: dataset.scales[only]})


def _scores(
    rows: pd.DataFrame,
    response: pd.Series,
    value: pd.Series,
    positive: pd.Series,
    size: pd.Series,
    met: frozenset[str],
) -> tuple[pd.DataFrame, int, int]:
    """Return the ratings of responses, without a label where a criterion has none; how many labels
    of criteria are missing there; and how many scores were clipped.
    """
    points = rows["unit_id"].map(value) * rows["label"].isin(met)
    keyed = rows.assign(
        met=points, given=rows["label"] != "", unit_id=rows["unit_id"].map(response)
    )
    by_rating = keyed.groupby(["unit_id", *_GIVEN], sort=False, as_index=False)
    aggregates: dict[str, Any] = {
        "met": ("met", "sum"),
        "given": ("given", "sum"),
        "hashes": ("rubric_hash", "nunique"),
        "rubric_hash": ("rubric_hash", "first"),
        "created_at": ("created_at", "max"),
        "seconds": ("seconds", lambda seconds: seconds.sum(min_count=1)),
    }
    scored = by_rating.agg(**aggregates)
    whole = scored["unit_id"].map(size) - scored["given"]
    score = scored["met"] / scored["unit_id"].map(positive)
    is_whole, within = (whole == 0) & (scored["hashes"] == 1), score.clip(0, 1)
    rounded = within.round(6)
    if rounded.nunique() > MAX_NUMBERS - 2:
        rounded = within.round(3)
    label = rounded.map(lambda each: f"{each + 0:.6g}").where(is_whole, "")
    scored = scored.assign(label=label, unscored_reason=np.where(is_whole, "", "incomplete"))
    scored = scored.drop(columns=["met", "given", "hashes"])
    scored = scored.assign(p_positive=np.nan, probabilities="", prob_method="")
    return scored, int(whole.sum()), int((is_whole & (within != score)).sum())


def _is_of_criteria(units: pd.DataFrame, column: str) -> bool:
    """Return True if a column tells kinds of criteria apart, also of one response."""
    cells = texts(units[column])
    is_few = 2 <= cells[cells != ""].nunique() <= MAX_VALUES
    return is_few and bool((cells.groupby(units[RESPONSE_ID]).nunique() > 1).any())


def shared_columns(units: pd.DataFrame) -> list[str]:
    """Return the columns of units that are the same for all criteria of a response, and `unit_id`;
    all where there are no criteria.
    """
    if not {*COLUMNS} <= set(units):
        return list(units)
    values = units.groupby(RESPONSE_ID).nunique().reindex(columns=units.columns, fill_value=1)
    return [each for each in units if each == "unit_id" or (values[each] <= 1).all()]
