"""The scales of a ratings file's labels: as declared, from a known rubric, or from the labels
seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from evenhand.analysis import Scale
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import Places, cleaned, with_numbers
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.rubrics import load_rubric, named_rubrics, shipped_rubrics
from evenhand.rubrics.options import in_a_row, plain_number, span_of, whole_numbers_in_a_row
from evenhand.study.tables.columns import shortened
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.rubrics import Rubric

MAX_LABELS = 20
"""A scale with more different labels than this has to be declared."""


def declared_scales(
    options: ScaleOptions,
    ratings: pd.DataFrame,
    places: Places,
    known: Mapping[str, Scale] | None = None,
    without_level: Collection[str] = (),
) -> tuple[pd.DataFrame, dict[str, Scale], list[str]]:
    """Return the rows asked for, with clean labels; their scales; and what was changed and assumed.

    `known` are the scales of the file's sidecar, by rubric, some of them `without_level`; what is
    declared overrides them.
    """
    from_file = (options.rubric or "").endswith(".toml")
    known = {} if known is None or from_file else known
    if options.rubric is not None:
        ratings = rows_of(ratings, options, known)
        wanted = set(ratings["rubric"].unique())
        known = {name: scale for name, scale in known.items() if name in wanted}
    elif len(known) == 1 and (ratings["rubric"] == "").all():
        ratings = ratings.assign(rubric=next(iter(known)))
    parts, scales, remarks, changed, respelled = [], {}, [], 0, False
    names = sorted({*ratings["rubric"].unique(), *known})
    for name in names:
        rows = ratings[ratings["rubric"] == name] if len(names) > 1 else ratings
        rubric = _known_rubric(options.rubric, name)
        permitted = options.categories
        if not permitted and (declared := known.get(name) or rubric):
            permitted = declared.categories
        own = rows
        if _are_numbers(options, rubric, known.get(name)):
            own = with_numbers(rows, permitted, options, places)
        own, cells, notes = cleaned(own, permitted, options, places)
        respelled = respelled or own is not rows
        remarks += notes
        labels = set(own["label"].unique()) - {""}
        is_open = name in without_level
        scales[name], said = _scale(options, name, labels, known.get(name), is_open, places.source)
        remarks += said
        parts.append(own)
        changed += cells
    if options.normalise:
        remarks.insert(0, written("reading.normalised", changed=changed, labels=len(ratings)))
    whole = pd.concat(parts).loc[ratings.index] if respelled else ratings
    return whole, scales, remarks


def _are_numbers(options: ScaleOptions, rubric: Rubric | None, known: Scale | None) -> bool:
    """Return True if labels are numbers: a rubric asks for one, or the level is interval and no
    categories are declared.
    """
    if options.categories:
        return False
    if known is not None:
        return known.is_number
    return options.level == "interval" if rubric is None else not rubric.kind.listed


def _known_rubric(asked: str | None, name: str = "") -> Rubric | None:
    """The rubric `asked` for, if it comes along or has a file; else that called `name` in a file of
    ratings, if it is a shipped one: a common word may be anybody's rubric there.
    """
    known = named_rubrics() if asked else shipped_rubrics()
    wanted = asked or name
    if wanted and (wanted.replace("_", "-") in known or wanted.endswith(".toml")):
        return load_rubric(wanted)
    return None


def rubric_of_sets(
    options: ScaleOptions, ratings: pd.DataFrame
) -> tuple[pd.DataFrame, dict[str, Sequence[str]]]:
    """Return the options of the rubric asked for, by its name, if several of them may apply, and
    its ratings; nothing, and all ratings, for any other.
    """
    rubric = _known_rubric(options.rubric)
    if rubric is None or rubric.kind.is_single:
        return ratings, {}
    return rows_of(ratings, options, {}).assign(rubric=rubric.name), {
        rubric.name: rubric.categories
    }


def rows_of(
    ratings: pd.DataFrame, options: ScaleOptions, known: Mapping[str, Scale]
) -> pd.DataFrame:
    """The rows of one rubric and of its known wordings; a file without rubrics is all of the one
    that is named.
    """
    wanted = str(options.rubric)
    rubric = _known_rubric(wanted)
    name = wanted if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not options.categories and name not in known:
            load_rubric(wanted)  # says that there is no such rubric, and which there are
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    family = {name, *(each.name for each in known.values() if each.variant_of == name)}
    if not (names == name).any():
        listed = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {listed}")
    return ratings[names.isin(family)]


def _scale(
    options: ScaleOptions,
    name: str,
    labels: Collection[str],
    known: Scale | None,
    is_open: bool,
    source: str,
) -> tuple[Scale, list[str]]:
    """Return the scale as declared, else the known one, whose level may be open, else by the
    rubric, else by the labels seen; and what was assumed.
    """
    remarks: list[str] = []
    rubric = _known_rubric(options.rubric, name)
    if options.categories:
        scale, is_open = Scale(name, options.categories), True
    elif known is not None:
        scale = known
    elif rubric is not None:
        scale = replace(Scale.from_rubric(rubric), name=name)
    else:
        scale, remarks = _scale_seen(options, name, labels, source)
        is_open = True
    if options.level:
        scale = replace(scale, level=options.level)
    elif is_open and (ordered := in_a_row(scale.categories)):
        scale = replace(scale, categories=ordered, level="ordinal")
        remarks = [read_as_ordered(ordered, options, name), *remarks]
    if options.sides is not None:
        scale = replace(scale, favours=_favours(options, options.sides))
    if options.affirmative is not None:
        scale = replace(scale, affirmative=frozenset(options.affirmative))
    return _with_thresholds(scale, options.thresholds), remarks


def _scale_seen(
    options: ScaleOptions, name: str, labels: Collection[str], source: str
) -> tuple[Scale, list[str]]:
    """Return a scale of the labels seen, and a sentence on it. Raises InputError where there are
    none, or too many, or where their order is asked for and cannot be seen.
    """
    ordered = whole_numbers_in_a_row(labels) if len(labels) <= MAX_LABELS else ()
    if options.level == "ordinal" and not ordered:
        raise InputError(
            f"the order of an {options.level} scale cannot be seen from the labels; give all "
            f"permitted labels in order, for example {options.spelled('categories', *'12345')}"
        )
    if options.level == "interval" and labels:
        return Scale(name, tuple(sorted(labels, key=float)), "interval", number=True), []
    if not labels:
        raise InputError(
            "no rating has a label; give labels, or declare a scale with "
            f"{options.spelled('categories')}"
        )
    if len(labels) > MAX_LABELS:
        first = ", ".join(shortened(label) for label in sorted(labels)[:3])
        on = f" on rubric {name!r}" if name else ""
        other = f", or name another rubric with {options.spelled('rubric')}" if name else ""
        if all(plain_number(label) for label in labels):
            other += f", or, as they are numbers, say {options.spelled('level', 'interval')}"
        raise InputError(
            f"{source}: there are {len(labels)} different labels{on} ({first} and so on), too many "
            f"for an undeclared scale; group them into at most {MAX_LABELS}, or declare all "
            f"of them with {options.spelled('categories')}{other}"
        )
    categories = options.spelled("categories")
    if ordered and options.level != "nominal":
        if name:
            return Scale(name, ordered), [
                written("reading.ends_rubric", rubric=name, categories=categories)
            ]
        return Scale(name, ordered), [written("reading.ends", categories=categories)]
    scale = Scale(name, tuple(each for each in ordered if each in labels) or tuple(sorted(labels)))
    seen = {
        "labels": ", ".join(scale.categories),
        "level": options.spelled("level"),
        "categories": categories,
    }
    if name:
        return scale, [written("reading.nominal_rubric", rubric=name, **seen)]
    return scale, [written("reading.nominal", **seen)]


def read_as_ordered(categories: Sequence[str], options: ScaleOptions, rubric: str = "") -> str:
    """A sentence on whole numbers in a row whose level is not declared, and how to change it."""
    fields = {"labels": span_of(categories), "nominal": options.spelled("level", "nominal")}
    if rubric:
        return written("reading.ordered_rubric", rubric=rubric, **fields)
    return written("reading.ordered", **fields)


def _with_thresholds(scale: Scale, declared: Mapping[str, float]) -> Scale:
    """Return the scale with other thresholds for some graders; a declared one counts as not
    tuned.
    """
    tunings = {grader: each for grader, each in scale.tunings.items() if grader not in declared}
    return replace(scale, thresholds={**scale.thresholds, **declared}, tunings=tunings)


def _favours(options: ScaleOptions, sides: tuple[str, ...]) -> dict[str, str]:
    if len(set(sides)) != 2:
        raise InputError(
            f"{options.spelled('sides')} is {','.join(sides)!r}; name two labels, the one that "
            "favours side a, then side b"
        )
    return dict(zip(sides, ("a", "b"), strict=True))
