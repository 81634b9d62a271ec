"""The labels of a ratings file: the corrections with which they are read, and their scales, as
declared, from a known rubric, or from the labels seen.

A label, an item or a rater that was perhaps meant to be another one, or none, is reported, or
corrected if asked, by one step after the other: `TABLE_STEPS`, then `LABEL_STEPS` of each rubric.

A label may be a set of options, read as a yes or no to each. Its cell is a list, as JSON or Python
writes it, or options with a mark between them, which is one for all cells; `none`, or an empty
list, says that no option applies, and an empty cell that there is no label.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pandas as pd

from evenhand.analysis import Scale
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.declared import EVERYBODY, ScaleOptions
from evenhand.rubrics import load_rubric, named_rubrics, shipped_rubrics
from evenhand.rubrics.options import (
    MOST_SEVERAL,
    NONE,
    SEPARATORS,
    options_in,
    ordered_scale,
    plain_number,
    separators_in,
    span_of,
    whole_numbers_in_a_row,
)
from evenhand.study.tables.columns import (
    commonest,
    fold,
    folded,
    listed,
    look,
    lookalikes,
    shortened,
    spelled_out,
)
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import TRUTH, texts
from evenhand.texts import number_of, table_of, written

if TYPE_CHECKING:
    from evenhand.analysis import StudyFacts
    from evenhand.analysis.dataset import Dataset
    from evenhand.reporting.ratings_file.declared import Sidecar
    from evenhand.rubrics import Rubric

T = TypeVar("T")
_WORDS = table_of("evenhand.reporting.ratings_file", "words.toml")
"""Words by which tables that others made are recognised."""


def pattern_of(name: str) -> str:
    """Return the pattern of any of the words in a list of `words.toml`."""
    return "|".join(_WORDS[name])


MAX_LABELS = 20
"""A scale with more different labels than this has to be declared."""
MAX_LENGTH = 200
NO_LABEL = frozenset(("", "nan", "null", "na", "n/a", "#n/a", "<na>", "nat"))
"""Words of programs for a missing value, in lower case."""
_PERHAPS_NO_LABEL = frozenset(_WORDS["perhaps_no_label"])
_FEWEST_LABELS = 10
"""A rater with fewer labels shows no way of spelling, and what only they use is no code."""
_MOST_ALONE, _SHARE_ALONE = 2, 0.02
"""A label that one rater alone uses so often, or on such a share of items, is left as it is."""


Scales = Mapping[str, Scale]
"""Scales by rubric."""


@dataclass(frozen=True)
class RatingsInput:
    """A ratings file or table while it is read: its name in messages (`source`), what is declared
    for it, the places of its labels, the name of the column of `items`, "" where items are rows,
    and notes on how it was read.

    `rows` are the row numbers of a wide table by the index of its long form, `columns` the names of
    its columns; the index of a long table has the rows itself. `units` are those of the rows of an
    export, which has no such rows. `permitted` are the labels of a known scale, () to take those
    seen, and with `numbers` labels are numbers. `changed` counts cells by what they hold.
    """

    source: str
    options: ScaleOptions
    rows: Sequence[int] | None = None
    columns: Sequence[str] | None = None
    units: Sequence[str] | None = None
    permitted: Sequence[str] = ()
    numbers: bool = False
    items: str = ""
    notes: list[str] = field(default_factory=list)
    changed: Counter[str] = field(default_factory=Counter)

    def place_of(self, label: str, ratings: pd.DataFrame) -> str:
        """Return the subject of a sentence about the first rating with a label."""
        first = int((ratings["label"] == label).to_numpy().argmax())
        at, rater = int(ratings.index[first]), ratings["rater_id"].iloc[first]
        shown = f"the label {shortened(label)!r}"
        if self.units is not None:
            unit = shortened(self.units[at])
            return f"{self.source}, item {unit!r}: {shown} of rater {rater!r}"
        if self.rows is None:
            return f"{self.source}, row {at + FIRST_ROW}: {shown} of rater {rater!r}"
        column = rater if self.columns is None else self.columns[at]
        return f"{self.source}, row {self.rows[at]}, column {column!r}: {shown}"


# ---- steps for all rows: items and raters -------------------------------------------------------
# A step returns the ratings as it corrects them and adds its note to those of the input, or raises
# InputError where it must be asked for or the ratings are refused.


def fold_spellings(table: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Write items, raters and labels in one spelling where nobody sees a difference."""
    changed = {}
    for column, what in (("unit_id", "items"), ("rater_id", "raters"), ("label", "labels")):
        cells = texts(table[column])
        meant = fold(cells)
        if meant is not cells:
            changed[what] = int((meant != cells).sum())
        table = table.assign(**{column: meant})
    if changed:
        counts = ", ".join(f"{what} {count:,}" for what, count in changed.items())
        given.notes.append(written("reading.folded", counts=counts))
    return table


def join_names(table: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Give items, and raters of one kind, that look alike one name, where that is asked for.

    Items that one rater labelled both, and raters who labelled one item both, are different, and so
    are raters who are named one by one. Raises InputError naming two others that look alike, unless
    it is declared whether they are the same.
    """
    options = given.options
    if options.normalise is False:
        return table
    for column, other in (("rater_id", "unit_id"), ("unit_id", "rater_id")):
        meant = _same(table, column, other, options)
        if not meant:
            continue
        if not options.normalise:
            name, usual = next(iter(meant.items()))
            what, shared = "item", "annotator who labelled both"
            if column == "rater_id":
                what, shared = "rater", "item labelled by both"
            row = row_number(table, int((table[column] == name).to_numpy().argmax()))
            more = f" ({len(meant):,} such {what}s)" if len(meant) > 1 else ""
            raise InputError(
                f"{given.source}, row {row}: the {what} {spelled_out(name)} looks like "
                f"{spelled_out(usual)}, and there is no {shared}{more}; say "
                f"{options.spelled('normalise')} if they are the same, or "
                f"{options.spelled('no-normalise')} if not"
            )
        table = table.assign(**{column: table[column].replace(meant)})
        first = ", ".join(f"{name} as {usual}" for name, usual in [*meant.items()][:3])
        note = written("reading.joined", what=column[:-3], count=len(meant), first=first)
        given.notes.append(note)
    return table


def _same(table: pd.DataFrame, column: str, other: str, options: ScaleOptions) -> dict[str, str]:
    """Return names that may be another one: alike, with no value of `other` in common."""
    named = options.kinds if column == "rater_id" and not options.inferred else {}
    names = lookalikes(table[column].unique())
    groups = [[name for name in group if name not in named] for group in names]
    alike = [name for group in groups for name in group if len(group) > 1]
    if not alike:
        return {}
    kinds: dict[str, str] = {}
    if column == "rater_id" and "rater_kind" in table:
        kinds = dict(zip(table[column], table["rater_kind"], strict=True))
    rows = table[table[column].isin(alike)]
    counts = {str(name): int(count) for name, count in rows[column].value_counts().items()}
    keys = [other, "rubric"] if "rubric" in rows else [other]
    by_name = rows.groupby(column)[keys]
    met = {str(name): set(pairs.itertuples(index=False, name=None)) for name, pairs in by_name}
    meant: dict[str, str] = {}
    for group in groups:
        if len(group) < 2 or len({kinds.get(name) for name in group}) > 1:
            continue
        together = set[object]().union(*(met[name] for name in group))
        if sum(len(met[name]) for name in group) == len(together):
            usual = commonest(group, counts)
            meant |= {name: usual for name in group if name != usual}
    return meant


def keep_named_raters(table: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Leave out the rows of a long table whose raters are not among those named, if any are."""
    name, options = given.source, given.options
    kinds = options.kinds
    if not kinds or given.rows is not None:  # the columns of a wide table are the raters named
        return table
    raters = texts(table["rater_id"])
    for rater in kinds:
        if not (raters == rater).any():
            every = options.spelled(kinds[rater], EVERYBODY)
            raise InputError(
                f"{name} has no rater {rater!r}; it has {listed(raters.unique())} ({every} is all)"
            )
    named = raters.map(kinds)
    stated = texts(table["rater_kind"]) if "rater_kind" in table else named.fillna("")
    stated = stated.where(stated != "", named.fillna(""))
    clash = named.notna() & (stated != named)
    if clash.any():
        at = int(clash.to_numpy().argmax())
        raise InputError(
            f"{name}: {options.spelled(named.iloc[at])} names {raters.iloc[at]!r}, whose "
            f"rater_kind is {stated.iloc[at]!r}; correct one of the two"
        )
    counts = named.notna() | ~stated.isin(["", *kinds.values()])
    others = raters[~counts].unique()
    if len(others):
        given.notes.append(written("reading.raters_left_out", names=listed(others)))
    return table[counts].assign(rater_kind=stated[counts])


TABLE_STEPS = (fold_spellings, join_names, keep_named_raters)
"""Corrections of all rows, in order; then come those of the labels of each rubric."""


# ---- steps for the labels of one rubric ---------------------------------------------------------


def shorten_numbers(ratings: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Write each number in its shortest form, 0.5 for 0.50, or as one of the permitted ones, where
    labels are numbers.

    Raises InputError naming the first label that is no number, or none of the permitted.
    """
    if not given.numbers:
        return ratings
    permitted = given.permitted
    by_number = {plain_number(label): label for label in permitted}
    missing = {folded(word) for word in given.options.missing}
    meant = {}
    for label in ratings["label"].unique():
        plain = plain_number(label)
        if label in missing or label.casefold() in NO_LABEL:
            continue
        if not plain or (by_number and plain not in by_number):
            fault = "is not a number; correct it"
            if plain:
                ends = f"from {permitted[0]} to {permitted[-1]}"
                fault = f"is none of the {len(permitted)} numbers {ends}; round or correct it"
            raise InputError(
                f"{given.place_of(label, ratings)} {fault}, or read it as no label with "
                f"{given.options.spelled('missing', label)}"
            )
        if label != by_number.get(plain, plain):
            meant[label] = by_number.get(plain, plain)
    return _with_readings(ratings, meant)


def read_missing(ratings: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Read labels as no label where they are declared so or are a program's word for it, and the
    others as the permitted ones that nobody can tell them from.
    """
    kept = {folded(label): label for label in given.permitted}
    missing = {folded(word) for word in given.options.missing}
    counts = _counts(ratings)
    readings = {
        label: ""
        for label in counts
        if label in missing or (label not in kept and label.casefold() in NO_LABEL)
    }
    if readings:
        labels = ", ".join(f"{label} ({counts[label]:,})" for label in readings)
        given.notes.append(written("reading.no_label", labels=labels))
    readings |= {label: kept[label] for label in counts if kept.get(label, label) != label}
    return _with_readings(ratings, readings)


def join_labels(ratings: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Read labels that look like another one as that one, where that is asked for.

    Raises InputError naming the first label that is such a variant, unless it is declared whether
    they are the same; that is no label of any scale; or that is not on the known one.
    """
    options, permitted = given.options, given.permitted
    counts = _counts(ratings)
    doubtful = [label for label in counts if label not in permitted]
    variants = {} if options.normalise is False else _variants(counts, doubtful, permitted)
    changed = sum(counts[label] for label in variants)
    for label in doubtful:
        fault, meant = _fault_of(label), variants.get(label)
        if not fault and meant is not None and not options.normalise:
            alike = f"says in another word what {meant!r} says"
            if label.casefold() == meant.casefold():
                alike = f"differs from {meant!r} only by case"
            elif look(label) == look(meant):
                alike = f"looks like {spelled_out(meant)}, and is {spelled_out(label)}"
            apart = f"{options.spelled('no-normalise')} keeps them apart"
            if permitted:
                apart = f"or declare it among {options.spelled('categories')}"
            fault = (
                f"{alike}; {options.spelled('normalise')} reads them as one "
                f"({number_of(changed, 'cell')} would change), {apart}"
            )
        if not fault and permitted and meant is None:
            fault = (
                f"is not one of the declared categories ({', '.join(permitted)}); correct it, "
                f"declare it, or read it as no label with {options.spelled('missing', label)}"
            )
            if rubric := str(ratings["rubric"].iloc[0]):  # all are of one
                alone = options.spelled("rubric", rubric)
                fault += f"; if rubric {rubric!r} has a scale of its own, analyse it with {alone}"
        if fault:
            raise InputError(f"{given.place_of(label, ratings)} {fault}")
    given.changed["labels"] += changed
    return _with_readings(ratings, variants)


def refuse_codes(ratings: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Raise InputError for a label that may mean that there is none: a word such as skip that not
    all kinds of raters use, or a number apart from all others.
    """
    options = given.options
    if given.permitted or options.normalise is False:
        return ratings
    counts = _counts(ratings)
    kinds = ratings[ratings["label"] != ""].groupby("label")["rater_kind"].unique()
    every = set(ratings["rater_kind"])
    codes = [
        label
        for label in counts
        if label.casefold() in _PERHAPS_NO_LABEL
        and not (label == "-" and "+" in counts)
        and not (label[:1].isalpha() and len(every) > 1 and set(kinds[label]) == every)
    ]
    codes += _numbers_apart([label for label in counts if label not in codes])
    if not codes:
        return ratings
    more = f" (as may {', '.join(map(repr, codes[1:4]))})" if codes[1:] else ""
    kept = options.spelled("no-normalise")
    if len(counts) <= MAX_LABELS:
        kept = options.spelled("categories", *_in_order([*counts]))
    raise InputError(
        f"{given.place_of(codes[0], ratings)} may mean that there is no label{more} "
        f"({number_of(counts[codes[0]], 'cell')}); say so with "
        f"{options.spelled('missing', *codes)}, or keep it as a label with {kept}"
    )


def refuse_lone_labels(ratings: pd.DataFrame, given: RatingsInput) -> pd.DataFrame:
    """Note labels of an unordered scale that no annotator, or only one rater, uses.

    Raises InputError where they are used so often that they would change what is found.
    """
    options = given.options
    if given.permitted or options.normalise is False:
        return ratings
    labelled = ratings[ratings["label"] != ""]
    counts = _counts(ratings)
    are_numbers = all(map(plain_number, counts)) and min(map(float, counts), default=0) >= 0
    if "unit_id" not in ratings or not 2 <= len(counts) <= MAX_LABELS or are_numbers:
        return ratings
    times = labelled.value_counts(["label", "rater_kind", "rater_id"]).reset_index(name="times")
    numbers = labelled["rater_id"].value_counts()
    many = numbers[numbers >= _FEWEST_LABELS].index
    if len(many) < 2:
        return ratings
    by_rater = labelled.groupby("rater_id")["label"].agg(set)
    if sum(map(len, by_rater)) == len(counts):
        first, second = by_rater.index[:2]
        raise InputError(
            f"{given.source}: no two raters have a label in common (such as {first!r} and "
            f"{second!r}), so that none agree; are these answers to one question?"
        )
    has_people = (labelled["rater_kind"] == "human").any()
    for label, count in counts.items():
        users = times[times["label"] == label]
        raters = users["rater_id"].tolist()
        only_graders = has_people and set(users["rater_kind"]) == {"model"}
        if (len(raters) > 1 and not only_graders) or raters[0] not in many:
            continue
        most = int(users["times"].max())
        if most <= _MOST_ALONE or most <= _SHARE_ALONE * numbers[raters[0]]:
            note = written("reading.alone", label=label, raters=", ".join(raters))
            given.notes.append(note)
            continue
        meant = "" if only_graders else _stands_for(labelled, raters[0], label)
        who = "no annotator uses" if only_graders else "no other rater uses"
        where = f"; others label {meant!r} there" if meant else ""
        raise InputError(
            f"{given.place_of(label, ratings)} is one that {who} "
            f"({number_of(count, 'cell')}{where}); correct it if it stands for "
            f"another label, read it as no label with {options.spelled('missing', label)}, or keep "
            f"it with {options.spelled('categories', *_in_order([*counts]))}"
        )
    return ratings


LABEL_STEPS = (shorten_numbers, read_missing, join_labels, refuse_codes, refuse_lone_labels)


def _counts(ratings: pd.DataFrame) -> dict[str, int]:
    seen = ratings["label"].value_counts(sort=False).drop("", errors="ignore")
    return {str(label): int(count) for label, count in seen.items()}


def _with_readings(ratings: pd.DataFrame, readings: Mapping[str, str]) -> pd.DataFrame:
    """Return ratings with labels, and the categories that probabilities name, as they are read."""
    if not readings:
        return ratings

    def renamed(text: str) -> str:
        shares = json.loads(text) if text else {}
        meant = {readings.get(key) or key: share for key, share in shares.items()}
        if meant.keys() == shares.keys() or len(meant) < len(shares):
            return text  # two shares of one category are not ours to add up
        return json.dumps(meant)

    shares = ratings["probabilities"]
    shares = shares.where(shares == "", shares.map(renamed))
    return ratings.assign(label=ratings["label"].replace(dict(readings)), probabilities=shares)


def _in_order(labels: Sequence[str]) -> list[str]:
    """Return labels as a scale would have them: numbers in their order, then words."""
    numbers = [label for label in labels if plain_number(label)]
    words = sorted(label for label in labels if not plain_number(label))
    return [*sorted(numbers, key=float), *words]


def _numbers_apart(labels: Sequence[str]) -> list[str]:
    """Return the numbers, where all labels are numbers, that are no part of the others' scale: one
    or two beyond a gap that is longer than all others together, or the only one below zero.

    >>> [_numbers_apart(each.split()) for each in ("1 2 3 99", "0 1 -1 2", "1 2 3 4 5 9")]
    [['99'], ['-1'], ['9']]
    >>> [_numbers_apart(each.split()) for each in ("-1 0 1", "1 5 10", "0 50 100", "0 1")]
    [[], [], [], []]
    """
    if len(labels) < 3 or not all(map(plain_number, labels)):
        return []
    ordered = sorted(labels, key=float)
    values = [float(label) for label in ordered]
    if values[0] < 0 <= values[1] and values[0] != -values[-1]:
        return [ordered[0], *_numbers_apart(ordered[1:])]
    if whole_numbers_in_a_row(labels):
        return []
    gaps = [after - before for before, after in pairwise(values)]
    at = gaps.index(max(gaps))
    low, high = ordered[: at + 1], ordered[at + 1 :]
    rest, codes = (low, high) if len(high) <= len(low) else (high, low)
    inner = max((gaps[:at] if rest is low else gaps[at + 1 :]), default=gaps[at])
    is_far = gaps[at] >= max(3 * inner, 3) and 2 * gaps[at] >= values[-1] - values[0]
    return codes if is_far and len(codes) <= 2 else []


def _stands_for(labelled: pd.DataFrame, rater: str, label: str) -> str:
    """Return the label that others nearly always give there and this rater never; "" for none."""
    by_rater = labelled[labelled["rater_id"] == rater]
    units = set(by_rater.loc[by_rater["label"] == label, "unit_id"])
    others = labelled[labelled["unit_id"].isin(units) & (labelled["rater_id"] != rater)]
    if others.empty:
        return ""
    share = others["label"].value_counts(normalize=True)
    is_it = share.iloc[0] >= 0.8 and share.index[0] not in set(by_rater["label"])
    return str(share.index[0]) if is_it else ""


def _fault_of(label: str) -> str:
    """Return why this is a label of no scale; "" where it may be one."""
    if len(label) > MAX_LENGTH:
        return f"has {len(label):,} characters; a label has at most {MAX_LENGTH}"
    if "\0" in label:
        return "contains a NUL character; remove it"
    if "\n" in label or "\r" in label:
        return "contains a line break; remove it, and close the quote if one is left open"
    if label.lstrip()[:1] in ("{", "["):
        with suppress(ValueError):
            json.loads(label)
            return "is nested JSON; write only the label, or, if several may apply, declare that"
    return ""


def _variants(
    counts: Mapping[str, int], doubtful: Sequence[str], permitted: Collection[str]
) -> dict[str, str]:
    """Return the labels that look like another one, with the one they are read as: the permitted
    one, where there is just one, or the commonest of those seen; as the commonest words for yes and
    no, where all labels are such words.

    >>> _variants({"yes": 9, "Yes": 1, "yes.": 4}, ["yes", "Yes", "yes."], ())
    {'Yes': 'yes', 'yes.': 'yes'}
    >>> _variants({"yes": 9, "no": 8, "TRUE": 1, "0": 2}, ["yes", "no", "TRUE", "0"], ())
    {'TRUE': 'yes', '0': 'no'}
    """
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for label in permitted or counts:
        forms[look(label)][label] += counts.get(label, 0)
    words = Counter({look(label): 0 for label in permitted})
    for label, count in counts.items():
        words[look(label)] += count
    usual = _usual_truth(words, [look(label) for label in permitted])
    readings = {}
    for label in doubtful:
        key = look(label)
        ways = forms.get(usual.get(key, key), Counter())
        if ways and (len(ways) == 1 or not permitted):
            readings[label] = commonest(ways, ways)
    return {label: meant for label, meant in readings.items() if meant != label}


def _usual_truth(counts: Mapping[str, int], permitted: Collection[str]) -> dict[str, str]:
    """Return the usual word for each word for yes or no; {} where not all are such words."""
    of_word = {word: (pair, place) for pair in TRUTH for place, word in enumerate(pair)}
    words = list(counts)
    if not all(word in of_word for word in words):
        return {}
    kinds = [pair for pair in TRUTH if any(of_word[word][0] == pair for word in words)]
    given = permitted or counts
    whole = [pair for pair in kinds if all(word in given for word in pair)]
    if len(kinds) < 2 or not whole:
        return {}
    usual = max(whole, key=lambda pair: sum(counts[word] for word in pair))
    return {word: usual[of_word[word][1]] for word in words}


# ---- scales -------------------------------------------------------------------------------------


def scales_of(
    ratings: pd.DataFrame, given: RatingsInput, known: Sidecar, scales: Scales | None
) -> tuple[pd.DataFrame, dict[str, Scale], dict[str, Sequence[str]]]:
    """Return the ratings with clean labels, the scales of those that are one option each, and the
    options by rubric of those that are sets of them. `scales` replace those of the `known` sidecar.
    """
    options = given.options
    if options.several:
        for name in ("level", "affirmative", "sides"):
            if getattr(options, name):
                raise InputError(
                    f"{options.spelled(name)} does not go with {options.spelled('several')}, which "
                    "takes each option as a yes or no of its own"
                )
        ratings = ratings if options.rubric is None else _rows_of(ratings, options, {})
        ratings, several = _declared_sets(ratings, {"": options.categories}, given)
        return ratings, {}, several
    of_sets: dict[str, Sequence[str]] = {}
    if (rubric := _known_rubric(options.rubric)) and not rubric.kind.is_single:
        ratings = _rows_of(ratings, options, {}).assign(rubric=rubric.name)
        of_sets[rubric.name] = rubric.categories
    without_level: set[str] = set()
    if scales is None:
        scales = known.known_scales()
        without_level = {name for name, scale in known.scales.items() if scale.level is None}
        of_sets |= {name: scale.categories for name, scale in known.scales.items() if scale.several}
    in_sets, sets, several = ratings["rubric"].isin(list(of_sets)), [], {}
    if in_sets.any():
        silent = replace(given, notes=[])
        labelled, several = _declared_sets(ratings[in_sets], of_sets, silent)
        if in_sets.all() or options.rubric in of_sets:
            return labelled, {}, several
        ratings, sets = ratings[~in_sets], [labelled]
        scales = {name: scale for name, scale in scales.items() if name not in of_sets}
    refuse_sets(ratings, scales, given)
    ratings, declared = declared_scales(ratings, given, scales, without_level)
    return pd.concat([ratings, *sets]) if sets else ratings, declared, several


def declared_scales(
    ratings: pd.DataFrame, given: RatingsInput, known: Scales, without_level: Collection[str] = ()
) -> tuple[pd.DataFrame, dict[str, Scale]]:
    """Return the rows asked for, with clean labels, and their scales.

    `known` are the scales of the file's sidecar, by rubric, some of them `without_level`; what is
    declared overrides them.
    """
    options, noted = given.options, len(given.notes)
    if (options.rubric or "").endswith(".toml"):
        known = {}
    if options.rubric is not None:
        ratings = _rows_of(ratings, options, known)
        wanted = set(ratings["rubric"].unique())
        known = {name: scale for name, scale in known.items() if name in wanted}
    elif len(known) == 1 and (ratings["rubric"] == "").all():
        ratings = ratings.assign(rubric=next(iter(known)))
    parts, scales, respelled = [], {}, False
    names = sorted({*ratings["rubric"].unique(), *known})
    for name in names:
        rows = ratings[ratings["rubric"] == name] if len(names) > 1 else ratings
        rubric, scale = _known_rubric(options.rubric, name), known.get(name)
        if scale is not None:
            numbers = scale.is_number
        elif rubric is not None:
            scale, numbers = replace(Scale.from_rubric(rubric), name=name), not rubric.kind.listed
        else:
            numbers = options.level == "interval"
        permitted = options.categories or (() if scale is None else scale.categories)
        numbers = numbers and not options.categories
        cleaned, of_rubric = rows, replace(given, permitted=permitted, numbers=numbers)
        for step in LABEL_STEPS:
            cleaned = step(cleaned, of_rubric)
        respelled = respelled or cleaned is not rows
        labels = set(cleaned["label"].unique()) - {""}
        scales[name] = _scale(name, labels, scale, name in without_level, given)
        parts.append(cleaned)
    if options.normalise:
        counts = {"changed": given.changed["labels"], "labels": len(ratings)}
        given.notes.insert(noted, written("reading.normalised", **counts))
    return pd.concat(parts).loc[ratings.index] if respelled else ratings, scales


def _known_rubric(asked: str | None, name: str = "") -> Rubric | None:
    """Return the rubric `asked` for, if it comes along or has a file; else that called `name` in a
    file of ratings, if it is a shipped one: a common word may be anybody's rubric there.
    """
    names = named_rubrics() if asked else shipped_rubrics()
    wanted = asked or name
    if wanted and (wanted.replace("_", "-") in names or wanted.endswith(".toml")):
        return load_rubric(wanted)
    return None


def _rows_of(ratings: pd.DataFrame, options: ScaleOptions, known: Scales) -> pd.DataFrame:
    """Return the rows of the rubric asked for and of its wordings; all where no rubric is named."""
    wanted = str(options.rubric)
    rubric = _known_rubric(wanted)
    name = wanted if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not options.categories and name not in known:
            load_rubric(wanted)  # says that there is no such rubric, and which there are
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    family = {name, *(scale.name for scale in known.values() if scale.variant_of == name)}
    if not (names == name).any():
        every = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {every}")
    return ratings[names.isin(family)]


def _scale(
    name: str, labels: Collection[str], scale: Scale | None, is_open: bool, given: RatingsInput
) -> Scale:
    """Return the scale as declared, else the known one, else one of the labels seen."""
    options, notes = given.options, list[str]()
    if options.categories:
        scale, is_open = Scale(name, options.categories), True
    elif scale is None:
        scale, notes = _scale_seen(name, labels, given)
        is_open = True
    if options.level:
        scale = replace(scale, level=options.level)
    elif is_open and (ordered := ordered_scale(scale.categories)):
        scale = replace(scale, categories=ordered, level="ordinal")
        notes = [read_as_ordered(ordered, options, name), *notes]
    given.notes.extend(notes)
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
    tunings = {key: tuned for key, tuned in scale.tunings.items() if key not in options.thresholds}
    return replace(scale, thresholds=thresholds, tunings=tunings)


def _scale_seen(name: str, labels: Collection[str], given: RatingsInput) -> tuple[Scale, list[str]]:
    """Return a scale of the labels seen, and notes. Raises InputError where they make none."""
    options = given.options
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
            f"{given.source}: there are {len(labels)} different labels{on} ({first} and so on), "
            f"too many for an undeclared scale; group them into at most {MAX_LABELS}, or declare "
            f"all of them with {options.spelled('categories')}{other}"
        )
    about = {"rubric": name, "categories": options.spelled("categories")}
    if ordered and options.level != "nominal":
        note = written("reading.ends_rubric" if name else "reading.ends", **about)
        return Scale(name, ordered), [note]
    scale = Scale(name, tuple(key for key in ordered if key in labels) or tuple(sorted(labels)))
    seen, level = ", ".join(scale.categories), options.spelled("level")
    note = "nominal_rubric" if name else "nominal"
    return scale, [written(f"reading.{note}", labels=seen, level=level, **about)]


def read_as_ordered(categories: Sequence[str], options: ScaleOptions, rubric: str = "") -> str:
    """Return a sentence on whole numbers in a row whose level is not declared, and how to change
    it.
    """
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


def _declared_sets(
    ratings: pd.DataFrame, options_of: Mapping[str, Sequence[str]], given: RatingsInput
) -> tuple[pd.DataFrame, dict[str, Sequence[str]]]:
    """Return ratings whose labels are sets of options, as JSON lists under a rubric's name; and all
    options by rubric: the `known` ones, under "" those of any other rubric, or else those seen. How
    sets were told from names is noted.

    Raises InputError naming the row of a cell that is no set of options.
    """
    options = given.options
    ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", UNNAMED))
    several: dict[str, Sequence[str]] = {}
    ratings = read_missing(ratings, given)
    labels = ratings["label"].copy()
    for name, rows in ratings.groupby("rubric", sort=True):
        cells = [str(label) for label in rows["label"].unique()]
        fixed = options_of.get(str(name), options_of.get("", ()))
        separators = separators_in(cells, fixed)
        if separators is None:
            parts = {value for cell in cells for value in options_in(cell, SEPARATORS) or ()}
            either = " or ".join(mark for mark in SEPARATORS if any(mark in cell for cell in cells))
            raise InputError(
                f"{given.source}: it cannot be told whether {either} stands between options or "
                "within their names; write JSON lists, or declare the options, such as "
                f"{options.spelled('categories', *sorted(parts))}"
            )
        sets = {cell: options_in(cell, separators) for cell in cells}
        seen = sorted({option for named in sets.values() for option in named or ()})
        several[str(name)] = permitted = fixed or seen
        for label, named in sets.items():
            unknown = next((value for value in named or () if value not in permitted), "")
            if named is not None and not unknown:
                continue
            fault = f"is no set of options; write a;b, a JSON list of texts, or {NONE}"
            if unknown:
                fault = f"names {shortened(unknown)!r}, none of {', '.join(permitted)}"
            raise InputError(f"{given.place_of(label, rows)} {fault}")
        if not 2 <= len(permitted) <= MOST_SEVERAL:
            raise InputError(
                f"{given.source}: labels that are sets need 2 to {MOST_SEVERAL} options; these "
                f"name {len(permitted)}"
            )
        whole = {cell: json.dumps(named) if cell else "" for cell, named in sets.items()}
        labels.loc[rows.index] = rows["label"].map(whole)
        if options.several:
            joined = [cell for cell in cells if not _is_list(cell)]
            marks = [mark for mark in separators if any(mark in cell for cell in joined)]
            about = {"rubric": name, "count": len(permitted), "options": listed(permitted)}
            if marks:
                note = written("reading.sets_joined", marks=" or ".join(marks), **about)
            else:
                note = written("reading.sets", **about)
            given.notes.append(note)
    return ratings.assign(label=labels), several


def refuse_sets(ratings: pd.DataFrame, known: Scales, given: RatingsInput) -> None:
    """Raise InputError naming the first label that looks like a set of options where every label
    would become a category, as no scale is declared or `known`: a list, or options with a mark
    between them that come in two orders, or most of which are labels themselves.
    """
    options = given.options
    is_known = len(known) == 1 and (ratings["rubric"] == "").all()
    if options.categories or options.level == "interval" or is_known:
        return
    if not any(_MARKED.search(label) for label in ratings["label"].unique()):
        return
    if options.rubric is not None:
        ratings = _rows_of(ratings, options, known)
    ratings = ratings[~ratings["rubric"].isin(list(known))]
    for _, rows in ratings.groupby("rubric", sort=True):
        cells = [str(label) for label in rows["label"].unique() if label]
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
        # One label in each JSON list is nested rather than a set: `join_labels` refuses it.
        are_lists = any(len(joined[cell]) > 1 or "'" in cell for cell in lists)
        most_alone = not lists and 2 * len(parts & alone) > len(parts)
        if (in_orders or are_lists or most_alone) and 2 <= len(parts | alone) <= MOST_SEVERAL:
            names = sorted(parts | alone)
            declared = [options.spelled("categories", *names)] if separators is None else []
            between = ", " if options.in_python else " "
            remedy = between.join([options.spelled("several"), *declared])
            # How to keep these labels as they are, where that is not too long to type.
            otherwise, keep = "", options.spelled("categories", *sorted(cells))
            if all(map(_DECIMAL_COMMA.fullmatch, joined)):
                otherwise = "; if the labels are numbers, write a decimal point, as in 1.5"
            elif len(keep) <= _MOST_TYPED and (options.in_python or "," not in "".join(cells)):
                otherwise = f", or {keep} to take every label as one category"
            raise InputError(
                f"{given.place_of(next(iter(joined)), rows)} looks like a set of options "
                f"({listed(map(shortened, names))}); add {remedy} to read sets{otherwise}"
            )


def _is_list(cell: str) -> bool:
    return cell.lstrip()[:1] in ("[", "{")


def with_parts(dataset: Dataset, several: Mapping[str, Sequence[str]]) -> Dataset:
    """Return a dataset in which every rubric that asks for several options, with these options, is
    a rubric for each of them. What is known of a rubric is known of each.
    """
    if not several:
        return dataset
    ratings, facts = dataset.ratings, dataset.facts
    rubrics = several.items()
    parts = {name: {option: f"{name}/{option}" for option in options} for name, options in rubrics}
    tables = [ratings[~ratings["rubric"].isin(list(parts))]]
    scales = {name: scale for name, scale in dataset.scales.items() if name not in parts}
    prices, titles = dict(facts.prices), dict(dataset.titles)
    for name, names in parts.items():
        rows = ratings[ratings["rubric"] == name]
        sets = {label: options_in(label) or () for label in rows["label"].unique()}
        for option, part in names.items():
            answers = {label: YES if option in chosen else NO for label, chosen in sets.items()}
            of_part = rows.assign(rubric=part, probabilities="", p_positive=np.nan)
            tables.append(of_part.assign(label=rows["label"].map(answers | {"": ""})))
            scales[part] = Scale(part, (YES, NO), affirmative=frozenset({YES}), part_of=name)
            called = dataset.names.get(name, {}).get(option, option)
            titles[part] = f"{dataset.titles.get(name, name)}: {called}"
            for (rubric, grader), price in facts.prices.items():
                if rubric == name:
                    prices[part, grader] = price

    of_parts = {part: name for name, names in parts.items() for part in names.values()}
    facts = replace(sharing(facts, of_parts), prices=prices)
    return replace(dataset, ratings=pd.concat(tables), scales=scales, facts=facts, titles=titles)


def sharing(facts: StudyFacts, of: Mapping[str, str]) -> StudyFacts:
    """Return facts in which rubrics made of others have the hashes and the look of these, `of`
    which each is made.
    """

    def shared(known: Mapping[str, T]) -> dict[str, T]:
        return {**known, **{item: known[name] for item, name in of.items() if name in known}}

    hashes = facts.rubric_hashes and shared(facts.rubric_hashes)
    return replace(facts, looks=shared(facts.looks), rubric_hashes=hashes)
