"""Labels that are sets of options, read as a yes or no to each option.

A cell is a list, as JSON or Python writes it, or options with a mark between them, which is one for
all cells; `none`, or an empty list, says that no option applies, and an empty cell that there is no
label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import MAX_LENGTH, NO_LABEL, Places
from evenhand.reporting.ratings_file.roles import listed
from evenhand.reporting.ratings_file.scales import rows_of
from evenhand.rubrics.options import MOST_SEVERAL, NONE, SEPARATORS, options_in, separators_in
from evenhand.study.tables.columns import shortened
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.dataset import Dataset
    from evenhand.reporting.ratings_file.declared import ScaleOptions

YES, NO = "yes", "no"
UNNAMED = "labels"
_MARKED = re.compile(r"[;,#|\[{]")
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_MOST_CELLS = 10_000
"""Different labels that are looked at: a scale has far fewer."""
_MOST_TYPED = 200
"""Characters of an option that is proposed."""


def declared_sets(
    ratings: pd.DataFrame, known: Mapping[str, Sequence[str]], places: Places, options: ScaleOptions
) -> tuple[pd.DataFrame, dict[str, Sequence[str]], list[str]]:
    """Return ratings whose labels are sets of options, as JSON lists under a rubric's name; all
    options by rubric: the `known` ones, under "" those of any other rubric, or else those seen; and
    how sets were told from names.

    Raises InputError naming the row of a cell that is no set of options.
    """
    ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", UNNAMED))
    several: dict[str, Sequence[str]] = {}
    is_none = [
        label
        for label in ratings["label"].unique()
        if label in options.missing or label.casefold() in NO_LABEL
    ]
    ratings = ratings.assign(label=ratings["label"].replace(is_none, ""))
    labels, notes = ratings["label"].copy(), []
    if any(is_none):
        notes.append(written("reading.no_label", labels=", ".join(filter(None, is_none))))
    for name, own in ratings.groupby("rubric", sort=True):
        cells = [str(label) for label in own["label"].unique()]
        fixed = known.get(str(name), known.get("", ()))
        separators = separators_in(cells, fixed)
        if separators is None:
            raise InputError(_undecided(cells, places, options))
        sets = {cell: options_in(cell, separators) for cell in cells}
        seen = sorted({option for named in sets.values() for option in named or ()})
        several[str(name)] = permitted = fixed or seen
        for label, named in sets.items():
            unknown = next((each for each in named or () if each not in permitted), "")
            if named is not None and not unknown:
                continue
            place = places.first(label, own)
            if unknown:
                declared = ", ".join(permitted)
                raise InputError(f"{place} names {shortened(unknown)!r}, none of {declared}")
            raise InputError(
                f"{place} is no set of options; write a;b, a JSON list of texts, or {NONE}"
            )
        if not 2 <= len(permitted) <= MOST_SEVERAL:
            raise InputError(
                f"{places.source}: labels that are sets need 2 to {MOST_SEVERAL} options; these "
                f"name {len(permitted)}"
            )
        whole = {cell: json.dumps(named) if cell else "" for cell, named in sets.items()}
        labels.loc[own.index] = own["label"].map(whole)
        if options.several:
            joined = [cell for cell in cells if not _is_list(cell)]
            marks = [mark for mark in separators if any(mark in cell for cell in joined)]
            about = {"rubric": name, "count": len(permitted), "options": listed(permitted)}
            if marks:
                notes.append(written("reading.sets_joined", marks=" or ".join(marks), **about))
            else:
                notes.append(written("reading.sets", **about))
    return ratings.assign(label=labels), several, notes


def refuse_sets(
    ratings: pd.DataFrame, known: Mapping[str, Scale], places: Places, options: ScaleOptions
) -> None:
    """Raise InputError naming the first label that looks like a set of options where every label
    would become a category, as no scale is declared or `known`: a list, or options with a mark
    between them that come in two orders, or most of which are labels themselves.
    """
    is_known = len(known) == 1 and (ratings["rubric"] == "").all()
    if options.categories or options.level == "interval" or is_known:
        return
    if not any(_MARKED.search(label) for label in ratings["label"].unique()):
        return
    if options.rubric is not None:
        ratings = rows_of(ratings, options, known)
    ratings = ratings[~ratings["rubric"].isin(list(known))]
    for _, own in ratings.groupby("rubric", sort=True):
        cells = [str(label) for label in own["label"].unique() if label]
        if len(cells) > _MOST_CELLS or max(map(len, cells), default=0) > MAX_LENGTH:
            continue  # no categories either
        separators = separators_in(cells)
        marks = SEPARATORS if separators is None else separators
        sets = {cell: named for cell in cells if (named := options_in(cell, marks))}
        joined = {cell: named for cell, named in sets.items() if len(named) > 1 or _is_list(cell)}
        parts = {option for named in joined.values() for option in named}
        alone = {named[0] for cell, named in sets.items() if cell not in joined}
        in_orders = len({frozenset(named) for named in joined.values()}) < len(joined)
        lists = [cell for cell in joined if _is_list(cell)]
        # One label in each JSON list is nested rather than a set: `cleaned` says so.
        are_lists = any(len(joined[cell]) > 1 or "'" in cell for cell in lists)
        most_alone = not lists and 2 * len(parts & alone) > len(parts)
        if (in_orders or are_lists or most_alone) and 2 <= len(parts | alone) <= MOST_SEVERAL:
            place = places.first(next(iter(joined)), own)
            names = sorted(parts | alone)
            declared = [options.spelled("categories", *names)] if separators is None else []
            between = ", " if options.in_python else " "
            mend = between.join([options.spelled("several"), *declared])
            seen = listed(map(shortened, names))
            raise InputError(
                f"{place} looks like a set of options ({seen}); add {mend} to read sets"
                + _otherwise(cells, joined, options)
            )


def _otherwise(cells: Sequence[str], joined: Iterable[str], options: ScaleOptions) -> str:
    """How to keep labels that look like sets as categories, or as numbers; "" where that is too
    long to type.
    """
    if all(map(_DECIMAL_COMMA.fullmatch, joined)):
        return "; if the labels are numbers, write a decimal point, as in 1.5"
    declare = options.spelled("categories", *sorted(cells))
    can_be_typed = options.in_python or not any("," in cell for cell in cells)
    if not can_be_typed or len(declare) > _MOST_TYPED:
        return ""
    return f", or {declare} to take every label as one category"


def _undecided(cells: Sequence[str], places: Places, options: ScaleOptions) -> str:
    named = {each for cell in cells for each in options_in(cell, SEPARATORS) or ()}
    marks = " or ".join(mark for mark in SEPARATORS if any(mark in cell for cell in cells))
    declare = options.spelled("categories", *sorted(named))
    return (
        f"{places.source}: it cannot be told whether {marks} stands between options or within "
        f"their names; write JSON lists, or declare the options, such as {declare}"
    )


def _is_list(cell: str) -> bool:
    return cell.lstrip()[:1] in ("[", "{")


def names_of(whole: str, options: Iterable[str]) -> list[str]:
    """The names of the rubrics that the options of one become."""
    return [f"{whole}/{option}" for option in options]


def with_parts(dataset: Dataset, several: Mapping[str, Sequence[str]]) -> Dataset:
    """Return a dataset in which every rubric that asks for several options, with these options, is
    a rubric for each of them. What is known of a rubric is known of each.
    """
    if not several:
        return dataset
    own = dataset.ratings["rubric"].isin(list(several))
    parts = [
        _each_option(dataset.ratings[dataset.ratings["rubric"] == name], name, options)
        for name, options in several.items()
    ]
    scales = {name: scale for name, scale in dataset.scales.items() if name not in several}
    for name, options in several.items():
        scales |= {each: _scale(each, name) for each in names_of(name, options)}
    facts = dataset.facts
    hashes = facts.rubric_hashes

    def shared(known: Mapping[str, Any]) -> dict[str, Any]:
        more = {
            each: known[name]
            for name, options in several.items()
            if name in known
            for each in names_of(name, options)
        }
        return {**known, **more}

    prices = {
        (each, grader): price
        for (name, grader), price in facts.prices.items()
        for each in names_of(name, several.get(name, ()))
    }
    titles = {
        each: f"{dataset.titles.get(name, name)}: {dataset.names.get(name, {}).get(key, key)}"
        for name, options in several.items()
        for key, each in zip(options, names_of(name, options), strict=True)
    }
    return replace(
        dataset,
        ratings=pd.concat([dataset.ratings[~own], *parts]),
        scales=scales,
        facts=replace(
            facts,
            rubric_hashes=None if hashes is None else shared(hashes),
            looks=shared(facts.looks),
            prices={**facts.prices, **prices},
        ),
        titles={**dataset.titles, **titles},
    )


def _each_option(ratings: pd.DataFrame, whole: str, options: Sequence[str]) -> pd.DataFrame:
    """Return the ratings of a rubric once for each of its options, as a yes or no."""
    sets = {label: options_in(label) or () for label in ratings["label"].unique()}
    parts = []
    for option, name in zip(options, names_of(whole, options), strict=True):
        said = {label: YES if option in found else NO for label, found in sets.items()}
        said[""] = ""
        answer = ratings["label"].map(said)
        parts.append(ratings.assign(rubric=name, label=answer, probabilities="", p_positive=np.nan))
    return pd.concat(parts)


def _scale(name: str, whole: str) -> Scale:
    return Scale(name, (YES, NO), affirmative=frozenset({YES}), part_of=whole)
