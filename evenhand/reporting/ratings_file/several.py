"""Labels that are sets of options, read as a yes or no to each option.

A cell is a JSON list, or keys with semicolons between them; `none`, or an empty list, says that no
option applies, and an empty cell that there is no label.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import Places
from evenhand.study.tables.columns import shortened

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.analysis import Scale

EMPTY, YES, NO = "none", "yes", "no"
MOST_OPTIONS = 30
UNNAMED = "labels"


def by_option(
    ratings: pd.DataFrame, categories: Sequence[str], places: Places
) -> tuple[pd.DataFrame, dict[str, Scale]]:
    """Return a row for each option of each rating, and the scale of each option, by `NAME/OPTION`.

    `categories` are all options, or () to take those seen. Raises InputError naming the row of a
    cell that is no set of options.
    """
    import pandas as pd

    from evenhand.analysis import Scale

    parts, scales = [], {}
    for name, own in ratings.groupby("rubric", sort=True):
        whole = str(name) or UNNAMED
        sets = {label: options_in(label) for label in own["label"].unique()}
        seen = sorted({option for found in sets.values() for option in found or ()})
        options = list(categories) or seen
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
                f"{place} is no set of options; write a;b, a JSON list of texts, or {EMPTY}"
            )
        if len(options) < 2:
            raise InputError(
                f"{places.source}: labels that are sets need two options or more; the labels name "
                f"{', '.join(options) or 'none'}"
            )
        if len(options) > MOST_OPTIONS:
            raise InputError(
                f"{places.source}: {len(options)} options, more than {MOST_OPTIONS}; group them"
            )
        for option in options:
            rubric = f"{whole}/{option}"
            said = {label: YES if option in (found or ()) else NO for label, found in sets.items()}
            said[""] = ""
            parts.append(
                own.assign(
                    rubric=rubric,
                    label=own["label"].map(said),
                    probabilities="",
                    p_positive=float("nan"),
                )
            )
            scales[rubric] = Scale(rubric, (YES, NO), affirmative=frozenset({YES}), part_of=whole)
    return pd.concat(parts), scales


def options_in(label: str) -> tuple[str, ...] | None:
    """Return the options that a cell names; None where it is no set of them.

    >>> [options_in(text) for text in ("a; b", '["b", "a"]', "none", "[]", "", '{"a": 1}', "a;;b")]
    [('a', 'b'), ('b', 'a'), (), (), (), None, None]
    """
    text = label.strip()
    if text in ("", EMPTY):
        return ()
    if text[0] in "[{":
        try:
            found = json.loads(text)
        except ValueError:
            return None
        if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
            return None
    else:
        found = text.split(";")
    named = tuple(each.strip() for each in found)
    return named if all(named) and len(set(named)) == len(named) else None
