"""Labels that are sets of options, read as a yes or no to each option.

A cell is a JSON list, or keys with semicolons between them; `none`, or an empty list, says that no
option applies, and an empty cell that there is no label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import Places
from evenhand.rubrics.options import MOST_SEVERAL, NONE, options_in
from evenhand.study.tables.columns import shortened

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Scale
    from evenhand.analysis.dataset import Dataset

YES, NO = "yes", "no"
UNNAMED = "labels"


def declared_sets(
    ratings: pd.DataFrame, known: Mapping[str, Sequence[str]], places: Places
) -> tuple[pd.DataFrame, dict[str, Sequence[str]]]:
    """Return ratings whose labels are sets of options, under a rubric's name, and all options by
    rubric: the `known` ones, under "" those of any other rubric, or else those seen.

    Raises InputError naming the row of a cell that is no set of options.
    """
    ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", UNNAMED))
    several: dict[str, Sequence[str]] = {}
    for name, own in ratings.groupby("rubric", sort=True):
        sets = {label: options_in(label) for label in own["label"].unique()}
        seen = sorted({option for found in sets.values() for option in found or ()})
        several[str(name)] = options = known.get(str(name), known.get("", ())) or seen
        for label, found in sets.items():
            unknown = next((each for each in found or () if each not in options), "")
            if found is not None and not unknown:
                continue
            at = int((own["label"] == label).to_numpy().argmax())
            place = places.of(int(own.index[at]), own["rater_id"].iloc[at], label)
            if unknown:
                declared = ", ".join(options)
                raise InputError(f"{place} names {shortened(unknown)!r}, none of {declared}")
            raise InputError(
                f"{place} is no set of options; write a;b, a JSON list of texts, or {NONE}"
            )
        if not 2 <= len(options) <= MOST_SEVERAL:
            raise InputError(
                f"{places.source}: labels that are sets need 2 to {MOST_SEVERAL} options; these "
                f"name {len(options)}"
            )
    return ratings, several


def names_of(whole: str, options: Iterable[str]) -> list[str]:
    """The names of the rubrics that the options of one become."""
    return [f"{whole}/{option}" for option in options]


def with_parts(dataset: Dataset, several: Mapping[str, Sequence[str]]) -> Dataset:
    """Return a dataset in which every rubric that asks for several options, with these options, is
    a rubric for each of them. What is known of a rubric is known of each.
    """
    if not several:
        return dataset
    import pandas as pd

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
    import pandas as pd

    sets = {label: options_in(label) or () for label in ratings["label"].unique()}
    parts = []
    for option, name in zip(options, names_of(whole, options), strict=True):
        said = {label: YES if option in found else NO for label, found in sets.items()}
        said[""] = ""
        answer = ratings["label"].map(said)
        parts.append(ratings.assign(rubric=name, label=answer, probabilities="", p_positive=np.nan))
    return pd.concat(parts)


def _scale(name: str, whole: str) -> Scale:
    from evenhand.analysis import Scale

    return Scale(name, (YES, NO), affirmative=frozenset({YES}), part_of=whole)
