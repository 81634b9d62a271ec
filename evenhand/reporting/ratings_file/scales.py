"""The scales of a ratings file's labels: as declared, from a known rubric, or from the labels seen;
and labels that are sets of options, read as a yes or no to each option.

A cell of the latter is a list, as JSON or Python writes it, or options with a mark between them,
which is one for all cells; `none`, or an empty list, says that no option applies, and an empty cell
that there is no label.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.cleaning import (
    MAX_LENGTH,
    NO_LABEL,
    Places,
    cleaned,
    with_numbers,
)
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.rubrics import load_rubric, named_rubrics, shipped_rubrics
from evenhand.rubrics.options import (
    MOST_SEVERAL,
    NONE,
    SEPARATORS,
    in_a_row,
    options_in,
    plain_number,
    separators_in,
    span_of,
    whole_numbers_in_a_row,
)
from evenhand.study.tables.columns import listed, shortened
from evenhand.texts import written

if TYPE_CHECKING:
    from evenhand.analysis.dataset import Dataset
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
    if (sides := options.sides) is not None:
        if len(set(sides)) != 2:
            raise InputError(
                f"{options.spelled('sides')} is {','.join(sides)!r}; name two labels, the one that "
                "favours side a, then side b"
            )
        scale = replace(scale, favours=dict(zip(sides, ("a", "b"), strict=True)))
    if options.affirmative is not None:
        scale = replace(scale, affirmative=frozenset(options.affirmative))
    thresholds = {**scale.thresholds, **options.thresholds}
    # A declared threshold counts as not tuned.
    tunings = {key: each for key, each in scale.tunings.items() if key not in options.thresholds}
    return replace(scale, thresholds=thresholds, tunings=tunings), remarks


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
    about = {"rubric": name, "categories": options.spelled("categories")}
    if ordered and options.level != "nominal":
        note = written("reading.ends_rubric" if name else "reading.ends", **about)
        return Scale(name, ordered), [note]
    scale = Scale(name, tuple(each for each in ordered if each in labels) or tuple(sorted(labels)))
    seen, level = ", ".join(scale.categories), options.spelled("level")
    note = "nominal_rubric" if name else "nominal"
    return scale, [written(f"reading.{note}", labels=seen, level=level, **about)]


def read_as_ordered(categories: Sequence[str], options: ScaleOptions, rubric: str = "") -> str:
    """A sentence on whole numbers in a row whose level is not declared, and how to change it."""
    note, nominal = "ordered_rubric" if rubric else "ordered", options.spelled("level", "nominal")
    return written(f"reading.{note}", rubric=rubric, labels=span_of(categories), nominal=nominal)


# ---- labels that are sets of options -------------------------------------------------------------

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
            parts = {each for cell in cells for each in options_in(cell, SEPARATORS) or ()}
            either = " or ".join(mark for mark in SEPARATORS if any(mark in each for each in cells))
            raise InputError(
                f"{places.source}: it cannot be told whether {either} stands between options or "
                "within their names; write JSON lists, or declare the options, such as "
                f"{options.spelled('categories', *sorted(parts))}"
            )
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
    """How to keep labels that look like sets as they are; "" where that is too long to type."""
    if all(map(_DECIMAL_COMMA.fullmatch, joined)):
        return "; if the labels are numbers, write a decimal point, as in 1.5"
    declare = options.spelled("categories", *sorted(cells))
    can_be_typed = options.in_python or not any("," in cell for cell in cells)
    if not can_be_typed or len(declare) > _MOST_TYPED:
        return ""
    return f", or {declare} to take every label as one category"


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
    parts = []
    for name, options in several.items():
        rows = dataset.ratings[dataset.ratings["rubric"] == name]
        sets = {label: options_in(label) or () for label in rows["label"].unique()}
        for option, part in zip(options, names_of(name, options), strict=True):
            answers = {label: YES if option in chosen else NO for label, chosen in sets.items()}
            answers[""] = ""
            label = rows["label"].map(answers)
            parts.append(rows.assign(rubric=part, label=label, probabilities="", p_positive=np.nan))
    scales = {name: scale for name, scale in dataset.scales.items() if name not in several}
    for name, options in several.items():
        for each in names_of(name, options):
            affirmative = frozenset({YES})
            scales[each] = Scale(each, (YES, NO), affirmative=affirmative, part_of=name)
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
