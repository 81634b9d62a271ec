"""Correct the labels of a ratings file, and find their scales: declared, of a known rubric, or made
of the labels in the file.

The parts in order: what is known of the file while it is read (`RatingsInput`); `TABLE_STEPS`,
which correct items and raters of all rows; corrections and checks of the labels of one rubric; the
scales (`scales_of`, which runs the latter); and labels that are sets of options. What may be
misspelled or a code for "no label" is reported, or corrected if declared. A label that looks like
another one, its *main label*, is a *variant* of it.

A label is single, or a *set* of options, read as a yes or no to each. The cell of a set is a list,
as JSON or Python writes it, or options separated by a mark, the same in all cells; `none`, or an
empty list, says that no option applies, and an empty cell that there is no label. In names of
variables, `options` are what the user declared, and `set_options` those that sets are made of.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from evenhand.analysis import Scale, StudyFacts
from evenhand.analysis.dataset import Dataset
from evenhand.errors import InputError
from evenhand.reporting.ratings_file.declared import EVERYBODY, ScaleOptions, Sidecar
from evenhand.rubrics import Rubric, load_rubric, named_rubrics, shipped_rubrics
from evenhand.rubrics.options import (
    MOST_SEVERAL,
    NONE,
    SEPARATORS,
    TRUTH,
    LabelKind,
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
    lookalikes,
    loose,
    shortened,
    spelled_out,
)
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import texts
from evenhand.texts import number_of, table_of, written

_WORDS = table_of("evenhand.reporting.ratings_file", "words.toml")  # of tables that others made


def pattern_of(name: str) -> str:
    """Return the pattern of any of the words in a list of `words.toml`."""
    return "|".join(_WORDS[name])


MAX_LABELS = 20  # a scale with more different labels than this has to be declared
MAX_LENGTH = 200  # characters of a label
NO_LABEL = frozenset(("", "nan", "null", "na", "n/a", "#n/a", "<na>", "nat"))
"""Words of programs for a missing value, in lower case."""
_PERHAPS_NO_LABEL = frozenset(_WORDS["perhaps_no_label"])
_FEWEST_LABELS = 10  # with fewer by a rater, a label of theirs alone need not be misspelled
_MOST_ALONE, _SHARE_ALONE = 2, 0.02
"""A label that only one rater uses is accepted up to this count, or this share of their labels."""

Scales = Mapping[str, Scale]  # scales by rubric
SetOptions = Mapping[str, Sequence[str]]  # by rubric, the options of labels that are sets
RatingsAndNotes = tuple[pd.DataFrame, list[str]]  # corrected ratings, and notes on the changes


@dataclass(frozen=True)
class RatingsInput:
    """A ratings file or table while it is read.

    Messages name the place of a rating: in a wide table by `rows` and `columns`, in a tool's export
    by its item, in a long table by its row, the index.
    """

    source: str  # the name of the file or table in messages
    options: ScaleOptions  # that the user declared
    rows: Sequence[int] | None = None  # of a wide table, by rating: the row number
    columns: Sequence[str] | None = None  # the column likewise, if it is not the rater
    units: Sequence[str] | None = None  # of a tool's export, by rating: the item
    permitted: Sequence[str] = ()  # the labels of a known scale, () to take those in the file
    numbers: bool = False  # labels are numbers
    items: str = ""  # the column that names the items, "" if each row is one
    can_join: bool = True  # `normalise` may be declared
    notes: Sequence[str] = ()  # sentences on how the file was read

    def subject_of(self, label: str, ratings: pd.DataFrame) -> str:
        """Return the subject of a sentence on the first rating with a label: file, row, label."""
        first = int((ratings["label"] == label).to_numpy().argmax())
        index, rater = int(ratings.index[first]), ratings["rater_id"].iloc[first]
        quoted = f"the label {shortened(label)!r}"
        if self.units is not None:
            unit = shortened(self.units[index])
            return f"{self.source}, item {unit!r}: {quoted} of rater {rater!r}"
        if self.rows is None:
            return f"{self.source}, row {index + FIRST_ROW}: {quoted} of rater {rater!r}"
        column = rater if self.columns is None else self.columns[index]
        return f"{self.source}, row {self.rows[index]}, column {column!r}: {quoted}"


# ---- steps for all rows: items and raters -------------------------------------------------------
# A step returns the corrected ratings and notes on that. It raises InputError if the ratings are
# invalid, or if only the user can decide on a correction.


def fold_spellings(table: pd.DataFrame, reading: RatingsInput) -> RatingsAndNotes:
    """Give items, rubrics, raters and labels one spelling where the difference is invisible."""
    n_changed = {}
    nouns = {"unit_id": "items", "rubric": "rubrics", "rater_id": "raters", "label": "labels"}
    for column, noun in nouns.items():
        if column not in table:
            continue
        cells = texts(table[column])
        folded_cells = fold(cells)
        if folded_cells is not cells:  # the same object, if nothing changes
            n_changed[noun] = int((folded_cells != cells).sum())
        table = table.assign(**{column: folded_cells})
    counts = ", ".join(f"{noun} {count:,}" for noun, count in n_changed.items())
    return table, [written("reading.folded", counts=counts)] if n_changed else []


def join_names(table: pd.DataFrame, reading: RatingsInput) -> RatingsAndNotes:
    """Give items, and raters of one kind, that look alike one name, if `normalise` is declared. Two
    items stay apart if one rater labelled both, and two raters if both labelled one item or both
    are named in the options. If `normalise` is not declared either way, two that would get one name
    raise InputError.
    """
    options = reading.options
    if options.normalise is False:
        return table, []
    notes = []
    for column, partner in (("rater_id", "unit_id"), ("unit_id", "rater_id")):
        renamed = _lookalike_names(table, column, partner, options)
        if not renamed:
            continue
        if not options.normalise:
            name, new_name = next(iter(renamed.items()))
            noun, shared = "item", "annotator who labelled both"
            if column == "rater_id":
                noun, shared = "rater", "item labelled by both"
            row = row_number(table, int((table[column] == name).to_numpy().argmax()))
            count = f" ({len(renamed):,} such {noun}s)" if len(renamed) > 1 else ""
            join, keep = options.spelled("normalise"), options.spelled("no-normalise")
            remedy = f"say {join} if they are the same, or {keep} if not"
            if not reading.can_join:
                remedy = f"write them alike if they are the same, or say {keep} if not"
            raise InputError(
                f"{reading.source}, row {row}: the {noun} {spelled_out(name)} looks like "
                f"{spelled_out(new_name)}, and there is no {shared}{count}; {remedy}"
            )
        table = table.assign(**{column: table[column].replace(renamed)})
        examples = ", ".join(f"{name} as {new}" for name, new in [*renamed.items()][:3])
        what = column.removesuffix("_id")
        notes.append(written("reading.joined", what=what, count=len(renamed), first=examples))
    return table, notes


def _lookalike_names(
    table: pd.DataFrame, column: str, partner: str, options: ScaleOptions
) -> dict[str, str]:
    """Return names in a column that look like a more frequent one, with that one, if no value of
    the column `partner` (items for raters, raters for items) occurs with both.
    """
    are_declared = column == "rater_id" and not options.inferred
    declared = options.kinds if are_declared else {}  # the user names each rater by one name
    similar = lookalikes(table[column].unique())
    groups = [[name for name in group if name not in declared] for group in similar]
    groups = [group for group in groups if len(group) > 1]
    if not groups:
        return {}
    kinds: dict[str, str] = {}
    if column == "rater_id" and "rater_kind" in table:
        kinds = dict(zip(table[column], table["rater_kind"], strict=True))
    rows = table[table[column].isin([name for group in groups for name in group])]
    counts = {str(name): int(count) for name, count in rows[column].value_counts().items()}
    by_name = rows.groupby(column)[[partner, "rubric"] if "rubric" in rows else [partner]]
    partners = {str(name): set(pairs.itertuples(index=False, name=None)) for name, pairs in by_name}
    renamed: dict[str, str] = {}
    for group in groups:
        if len({kinds.get(name) for name in group}) > 1:
            continue
        union = set[object]().union(*(partners[name] for name in group))
        if sum(len(partners[name]) for name in group) == len(union):  # none in common
            new_name = commonest(group, counts)
            renamed |= {name: new_name for name in group if name != new_name}
    return renamed


def keep_named_raters(table: pd.DataFrame, reading: RatingsInput) -> RatingsAndNotes:
    """Keep the rows of raters named in the options, and all rows of a kind of which no rater is
    named; a wide table as it is. Raises InputError if a named rater has no row or another kind.
    """
    source, options, declared_kinds = reading.source, reading.options, reading.options.kinds
    if not declared_kinds or reading.rows is not None:  # a wide table
        return table, []
    raters = texts(table["rater_id"])
    for rater, kind in declared_kinds.items():
        if not (raters == rater).any():
            raise InputError(
                f"{source} has no rater {rater!r}; it has {listed(raters.unique())} "
                f"({options.spelled(kind, EVERYBODY)} is all)"
            )
    declared = raters.map(declared_kinds)  # the kind of each row's rater, NaN if not named
    kinds = texts(table["rater_kind"]) if "rater_kind" in table else declared.fillna("")
    kinds = kinds.where(kinds != "", declared.fillna(""))
    is_conflict = declared.notna() & (kinds != declared)
    if is_conflict.any():
        first = int(is_conflict.to_numpy().argmax())
        raise InputError(
            f"{source}: {options.spelled(declared.iloc[first])} names {raters.iloc[first]!r}, "
            f"whose rater_kind is {kinds.iloc[first]!r}; correct one of the two"
        )
    is_kept = declared.notna() | ~kinds.isin(["", *declared_kinds.values()])
    omitted = raters[~is_kept].unique()
    notes = [written("reading.raters_left_out", names=listed(omitted))] if len(omitted) else []
    return table[is_kept].assign(rater_kind=kinds[is_kept]), notes


TABLE_STEPS = (fold_spellings, join_names, keep_named_raters)
"""Corrections of all rows, in order, before those of the labels of each rubric."""


# ---- steps for the labels of one rubric ---------------------------------------------------------


def shorten_numbers(ratings: pd.DataFrame, reading: RatingsInput) -> pd.DataFrame:
    """Write labels that are numbers in their shortest form, 0.5 for 0.50, or as the permitted label
    of this value. Raises InputError naming the first label that is no number, or not permitted.
    """
    if not reading.numbers:
        return ratings
    permitted = reading.permitted
    by_number = {plain_number(label): label for label in permitted}
    missing = {folded(word) for word in reading.options.missing}
    corrected = {}
    for label in ratings["label"].unique():
        number = plain_number(label)
        if label in missing or label.casefold() in NO_LABEL:
            continue
        if not number or (by_number and number not in by_number):
            fault = "is not a number; correct it"
            if number:
                ends = f"from {permitted[0]} to {permitted[-1]}"
                fault = f"is none of the {len(permitted)} numbers {ends}; round or correct it"
            raise InputError(
                f"{reading.subject_of(label, ratings)} {fault}, or read it as no label with "
                f"{reading.options.spelled('missing', label)}"
            )
        if label != by_number.get(number, number):
            corrected[label] = by_number.get(number, number)
    return _with_corrected(ratings, corrected)


def read_missing(ratings: pd.DataFrame, reading: RatingsInput) -> RatingsAndNotes:
    """Empty the labels that are declared `missing` or are a program's word for a missing value, and
    write the others as the permitted label that differs only invisibly.
    """
    permitted = {folded(label): label for label in reading.permitted}
    missing = {folded(word) for word in reading.options.missing}
    counts = _label_counts(ratings)
    words = {label for label in counts if label.casefold() in NO_LABEL and label not in permitted}
    corrected = {label: "" for label in counts if label in missing or label in words}
    labels = ", ".join(f"{label} ({counts[label]:,})" for label in corrected)
    notes = [written("reading.no_label", labels=labels)] if corrected else []
    corrected |= {text: permitted[text] for text in counts if permitted.get(text, text) != text}
    return _with_corrected(ratings, corrected), notes


def join_labels(ratings: pd.DataFrame, reading: RatingsInput) -> tuple[pd.DataFrame, int]:
    """Replace variants by their main labels, if `normalise` is declared; return the ratings and the
    number of cells changed. Raises InputError naming the first label that is a variant, unless
    `normalise` is declared either way; that cannot be a label of any scale; or that is not on the
    known scale.
    """
    options, permitted = reading.options, reading.permitted
    normalise, counts = options.normalise, _label_counts(ratings)
    unknown = [label for label in counts if label not in permitted]
    variants = {} if normalise is False else _variants(counts, unknown, permitted)
    n_changed = sum(counts[label] for label in variants)
    for label in unknown:
        fault = _label_fault(label)
        if not fault and label in variants and not normalise:
            fault = _variant_fault(label, variants[label], n_changed, reading)
        if not fault and label not in variants and permitted:
            fault = (
                f"is not one of the declared categories ({', '.join(permitted)}); correct it, "
                f"declare it, or read it as no label with {options.spelled('missing', label)}"
            )
            rubric = str(ratings["rubric"].iloc[0])  # the same in all rows
            if rubric not in ("", options.rubric):
                alone = options.spelled("rubric", rubric)
                fault += f"; if rubric {rubric!r} has a scale of its own, analyse it with {alone}"
        if fault:
            raise InputError(f"{reading.subject_of(label, ratings)} {fault}")
    return _with_corrected(ratings, variants), n_changed


def _variant_fault(label: str, main_label: str, n_changed: int, reading: RatingsInput) -> str:
    """Return the fault of a variant of `main_label`; `n_changed` cells would change."""
    options = reading.options
    relation = f"says in another word what {main_label!r} says"
    if label.casefold() == main_label.casefold():
        relation = f"differs from {main_label!r} only by case"
    elif _common_form(label) == _common_form(main_label):
        relation = f"looks like {spelled_out(main_label)}, and is {spelled_out(label)}"
    alternative = f"{options.spelled('no-normalise')} keeps them apart"
    if reading.permitted:
        alternative = f"or declare it among {options.spelled('categories')}"
    join = f"{options.spelled('normalise')} reads them as one"
    join = join if reading.can_join else "write them alike"
    return f"{relation}; {join} ({number_of(n_changed, 'cell')} would change), {alternative}"


def refuse_codes(ratings: pd.DataFrame, reading: RatingsInput) -> None:
    """Raise InputError for a label that may be a code for "no label": a word such as skip that not
    all kinds of raters use, or a number far from all others.
    """
    options, counts = reading.options, _label_counts(ratings)
    kinds = ratings[ratings["label"] != ""].groupby("label")["rater_kind"].unique()
    all_kinds = set(ratings["rater_kind"])
    codes = []
    for label in counts:
        is_sign = label == "-" and "+" in counts  # a minus, opposed to plus
        is_word = label[:1].isalpha()
        is_used_by_all = is_word and len(all_kinds) > 1 and set(kinds[label]) == all_kinds
        if label.casefold() in _PERHAPS_NO_LABEL and not is_sign and not is_used_by_all:
            codes.append(label)
    codes += _numbers_apart([label for label in counts if label not in codes])
    if not codes:
        return
    more_codes = f" (as may {', '.join(map(repr, codes[1:4]))})" if codes[1:] else ""
    raise InputError(
        f"{reading.subject_of(codes[0], ratings)} may mean that there is no label{more_codes} "
        f"({number_of(counts[codes[0]], 'cell')}); say so with "
        f"{options.spelled('missing', *codes)}, or keep it as a label with "
        f"{_keeping(counts, options)}"
    )


def _keeping(labels: Collection[str], options: ScaleOptions) -> str:
    """Return the option that keeps all labels: numbers by value, then words by the alphabet."""
    if len(labels) > MAX_LABELS:
        return options.spelled("no-normalise")
    numbers = whole_numbers_in_a_row(labels) or sorted(filter(plain_number, labels), key=float)
    return options.spelled("categories", *numbers, *sorted({*labels} - {*numbers}))


def notes_on_lone_numbers(ratings: pd.DataFrame, reading: RatingsInput) -> list[str]:
    """Return a note on each grader's numbers beyond those of annotators, if all labels are numbers.
    Raises InputError if they are so far beyond, or so many, that its scale seems another one.
    """
    counts = _label_counts(ratings)
    labelled = ratings[ratings["label"] != ""]
    if len(counts) < 2 or not all(map(plain_number, counts)):
        return []
    numbers = labelled["label"].astype(float)
    people = numbers[labelled["rater_kind"] == "human"]
    if len(people) < _FEWEST_LABELS:
        return []  # which show no scale
    low, high, steps = people.min(), people.max(), np.diff(np.unique(people))
    farthest = max(steps.min(initial=high - low or 1), (high - low) / 2)
    graders = labelled["rater_id"][labelled["rater_kind"] == "model"]
    notes = []
    for grader, given in numbers[graders.index].groupby(graders):
        beyond = given[~given.between(low, high)]
        alone = labelled["label"][beyond.index].unique()
        is_majority = len(alone) > 1 and 2 * len(beyond) > len(given)
        if is_majority or max(low - given.min(), given.max() - high) > farthest:
            raise InputError(
                f"{reading.subject_of(alone[0], ratings)} lies beyond annotators' labels, {low:g} "
                f"to {high:g}, as do {number_of(len(beyond), 'cell')} of this grader; if its scale "
                "is another one, convert its labels; if not, keep them with "
                f"{_keeping(counts, reading.options)}"
            )
        if len(alone) and len(counts) <= MAX_LABELS:
            notes.append(written("reading.alone", label=", ".join(alone), raters=grader))
    return notes


def notes_on_lone_labels(ratings: pd.DataFrame, reading: RatingsInput) -> list[str]:
    """Return notes on labels of an unordered scale that no annotator, or only one rater, uses.
    Raises InputError if such a label is frequent enough to change the results, or if no two raters
    have a label in common.
    """
    labelled = ratings[ratings["label"] != ""]
    options, counts = reading.options, _label_counts(ratings)
    if "unit_id" not in ratings or not 2 <= len(counts) <= MAX_LABELS:
        return []  # with Dask there are no units
    if all(map(plain_number, counts)) and min(map(float, counts)) >= 0:
        return []  # a number of a scale may be rare
    n_labels = labelled["rater_id"].value_counts()
    frequent_raters = n_labels[n_labels >= _FEWEST_LABELS].index
    if len(frequent_raters) < 2:
        return []
    by_rater = labelled.groupby("rater_id")["label"].agg(set)
    if sum(map(len, by_rater)) == len(counts):  # each label is one rater's
        first, second = by_rater.index[:2]
        raise InputError(
            f"{reading.source}: no two raters have a label in common (such as {first!r} and "
            f"{second!r}), so that none agree; are these answers to one question?"
        )
    uses = labelled.value_counts(["label", "rater_kind", "rater_id"]).reset_index(name="times")
    has_people, notes = (labelled["rater_kind"] == "human").any(), []
    for label in counts:
        users = uses[uses["label"] == label]
        raters = users["rater_id"].tolist()  # the most frequent user first
        only_graders = has_people and set(users["rater_kind"]) == {"model"}
        if (len(raters) > 1 and not only_graders) or raters[0] not in frequent_raters:
            continue
        times = int(users["times"].max())
        if times > _MOST_ALONE and times > _SHARE_ALONE * n_labels[raters[0]]:
            missing_users = "no annotator uses" if only_graders else "no other rater uses"
            raise InputError(
                f"{reading.subject_of(label, ratings)} is one that {missing_users} "
                f"({number_of(counts[label], 'cell')}); correct it if it stands for another label, "
                f"read it as no label with {options.spelled('missing', label)}, or keep it with "
                f"{_keeping(counts, options)}"
            )
        notes.append(written("reading.alone", label=label, raters=", ".join(raters)))
    return notes


def _label_counts(ratings: pd.DataFrame) -> dict[str, int]:
    """Return the number of ratings with each label, without that of no label."""
    counts = ratings["label"].value_counts(sort=False).drop("", errors="ignore")
    return {str(label): int(count) for label, count in counts.items()}


def _with_corrected(ratings: pd.DataFrame, corrected: Mapping[str, str]) -> pd.DataFrame:
    """Return ratings with labels replaced by `corrected`; in probabilities, too, except by ""."""
    if not corrected:
        return ratings

    def with_corrected_keys(text: str) -> str:
        shares = json.loads(text) if text else {}
        new_shares = {corrected.get(key) or key: share for key, share in shares.items()}
        if new_shares.keys() == shares.keys() or len(new_shares) < len(shares):
            return text  # unchanged, or two spellings of a category, which are not added up
        return json.dumps(new_shares)

    shares = ratings["probabilities"]
    shares = shares.where(shares == "", shares.map(with_corrected_keys))
    return ratings.assign(label=ratings["label"].replace(dict(corrected)), probabilities=shares)


def _numbers_apart(labels: Sequence[str]) -> list[str]:
    """Return the labels that are no part of the scale of the others, if all labels are numbers: one
    or two beyond a wide gap, or the only one below zero.

    >>> [_numbers_apart(labels.split()) for labels in ("1 2 98 99", "0 1 -1 2", "1 2 3 4 5 9")]
    [['98', '99'], ['-1'], ['9']]
    >>> [_numbers_apart(labels.split()) for labels in ("-1 0 1", "1 5 10", "0 50 100", "0 1")]
    [[], [], [], []]
    """
    if len(labels) < 3 or not all(map(plain_number, labels)):
        return []
    ordered = sorted(labels, key=float)
    values = [float(label) for label in ordered]
    if values[0] < 0 <= values[1] and values[0] != -values[-1]:  # -1 to 1 is a symmetric scale
        return [ordered[0], *_numbers_apart(ordered[1:])]
    if whole_numbers_in_a_row(labels):
        return []
    gaps = [after - before for before, after in pairwise(values)]
    widest = max(gaps)
    n_below = gaps.index(widest) + 1
    # The fewer numbers, the higher if equally many, may be codes, and the others are the scale.
    codes, scale = ordered[n_below:], values[:n_below]
    if n_below < len(ordered) - n_below:
        codes, scale = ordered[:n_below], values[n_below:]
    if len(scale) < 2 or len(codes) > 2:  # one number alone shows no scale
        return []
    widest_in_scale = max(after - before for before, after in pairwise(scale))
    is_far = widest >= max(3 * widest_in_scale, 3) and 2 * widest >= values[-1] - values[0]
    return codes if is_far else []


def _label_fault(label: str) -> str:
    """Return the reason that a text cannot be a label of any scale; "" if it can."""
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
    counts: Mapping[str, int], unknown: Sequence[str], permitted: Collection[str]
) -> dict[str, str]:
    """Return the variants among the `unknown` labels, with the main label of each: the `permitted`
    one that it looks like, if this is the only one, or without permitted labels the most frequent.
    If all labels are words for yes and no, the most frequent pair of words has the main labels.

    >>> _variants({"yes": 9, "Yes": 1, "yes.": 4}, ["yes", "Yes", "yes."], ())
    {'Yes': 'yes', 'yes.': 'yes'}
    >>> _variants({"yes": 9, "no": 8, "TRUE": 1, "0": 2}, ["yes", "no", "TRUE", "0"], ())
    {'TRUE': 'yes', '0': 'no'}
    """
    spellings_by_form: dict[str, Counter[str]] = defaultdict(Counter)
    for label in permitted or counts:
        spellings_by_form[_common_form(label)][label] += counts.get(label, 0)
    counts_by_form = Counter({_common_form(label): 0 for label in permitted})
    for label, count in counts.items():
        counts_by_form[_common_form(label)] += count
    truth_words = _usual_truth_words(counts_by_form, [_common_form(label) for label in permitted])
    variants = {}
    for label in unknown:
        form = _common_form(label)
        spellings = spellings_by_form.get(truth_words.get(form, form), Counter())
        if spellings and (len(spellings) == 1 or not permitted):  # permitted ones may look alike
            main_label = commonest(spellings, spellings)
            if main_label != label:
                variants[label] = main_label
    return variants


def _common_form(label: str) -> str:
    """Return what labels that look alike have in common: their number, or else their loose form."""
    return plain_number(label) or loose(label)


def _usual_truth_words(counts: Mapping[str, int], permitted: Collection[str]) -> dict[str, str]:
    """Return, for each word for yes or no, that of the most frequent pair of such words ("yes" for
    "true"); {} unless all words are of these and there are several pairs.
    """
    is_no = {word: word == no for yes, no in TRUTH for word in (yes, no)}
    if not counts.keys() <= is_no.keys():
        return {}
    pairs = [pair for pair in TRUTH if counts.keys() & {*pair}]
    complete_pairs = [pair for pair in pairs if all(word in (permitted or counts) for word in pair)]
    if len(pairs) < 2 or not complete_pairs:
        return {}
    yes, no = max(complete_pairs, key=lambda pair: sum(counts[word] for word in pair))
    return {word: no if is_no[word] else yes for word in counts}


# ---- scales -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScaledRatings:
    """Ratings with corrected labels, and how these were read."""

    ratings: pd.DataFrame
    scales: Scales = field(default_factory=dict)  # of rubrics with single labels
    set_options: SetOptions = field(default_factory=dict)  # of the other rubrics
    notes: Sequence[str] = ()  # sentences


def scales_of(
    ratings: pd.DataFrame, reading: RatingsInput, sidecar: Sidecar, scales: Scales | None
) -> ScaledRatings:
    """Return the ratings with corrected labels, and the scales or options of their rubrics. With
    `several` all labels are sets. Otherwise a rubric has sets if the user's rubric or the sidecar
    says so, and any other has single labels. `scales`, if given, take the place of the sidecar's.
    """
    options = reading.options
    set_options = sets_in(scales or {}, ratings["rubric"].unique())
    if options.several:
        for name in ("level", "affirmative", "sides"):
            if getattr(options, name):
                raise InputError(
                    f"{options.spelled(name)} does not go with {options.spelled('several')}, which "
                    "takes each option as a yes or no of its own"
                )
        ratings = ratings if options.rubric is None else _rubric_rows(ratings, options, stored={})
        set_options[""] = options.categories  # of every other rubric
        return _read_sets(ratings, set_options, reading)
    if (rubric := _known_rubric(options.rubric)) and not options.categories:
        ratings = _with_corrected(ratings, _stored_labels(_label_counts(ratings), rubric.kind))
    if rubric and not rubric.kind.is_single:
        ratings = _rubric_rows(ratings, options, stored={}).assign(rubric=rubric.name)
        set_options[rubric.name] = rubric.categories
    without_level: set[str] = set()  # rubrics whose scale in the sidecar has no declared level
    if scales is None:
        scales, stored = sidecar.known_scales(), sidecar.scales.items()
        without_level = {name for name, section in stored if section.level is None}
        set_options |= {name: section.categories for name, section in stored if section.several}
    is_set = ratings["rubric"].isin(list(set_options))
    sets = _read_sets(ratings[is_set], set_options, reading) if is_set.any() else None
    if sets is not None:
        if is_set.all() or options.rubric in set_options:  # single labels are not asked for
            return sets
        ratings = ratings[~is_set]
        parts = sets_in(scales, set_options)
        made = {f"{name or UNNAMED}/{key}" for name, keys in parts.items() for key in keys}
        scales = {name: scales[name] for name in scales if name not in {*set_options, *made}}
    refuse_sets(ratings, scales, reading)
    singles = declared_scales(ratings, reading, scales, without_level)
    has_probability = (ratings["probabilities"] != "") | ratings["p_positive"].notna()
    check_thresholds(options, set(ratings.loc[has_probability, "rater_id"]))
    if sets is None:
        return singles
    ratings = pd.concat([singles.ratings, sets.ratings])
    notes = [*sets.notes, *singles.notes]
    return replace(singles, ratings=ratings, set_options=sets.set_options, notes=notes)


def check_thresholds(options: ScaleOptions, with_probabilities: Collection[str]) -> None:
    """Raise InputError for a declared threshold of a rater who is not among these."""
    for grader in sorted(options.thresholds.keys() - {*with_probabilities}):
        others = f"raters with probabilities: {listed(sorted(with_probabilities)) or 'none'}"
        raise InputError(f"no rating of {grader!r} has a probability for its threshold; {others}")


def declared_scales(
    ratings: pd.DataFrame,
    reading: RatingsInput,
    stored_scales: Scales,
    without_level: Collection[str] = (),
) -> ScaledRatings:
    """Return the rows of the rubrics that the options ask for, with corrected labels, and scales by
    rubric. `stored_scales` are those of the file's sidecar, by rubric; options override them. Those
    of the rubrics `without_level` are there without a declared level.
    """
    options = reading.options
    if (options.rubric or "").endswith(".toml"):
        stored_scales = {}  # the rubric's file has the scale
    if options.rubric is not None:
        ratings = _rubric_rows(ratings, options, stored_scales)
        rubrics = set(ratings["rubric"].unique())
        stored_scales = {name: stored_scales[name] for name in stored_scales if name in rubrics}
    elif len(stored_scales) == 1 and (ratings["rubric"] == "").all():
        ratings = ratings.assign(rubric=next(iter(stored_scales)))
    corrected_tables, scales, is_corrected = [], {}, False
    notes, n_joined = list[str](), 0
    names = sorted({*ratings["rubric"].unique(), *stored_scales})
    for name in names:
        rows = ratings[ratings["rubric"] == name] if len(names) > 1 else ratings
        scale = stored_scales.get(name)
        if scale is None and (rubric := _known_rubric(options.rubric, name)):
            scale = replace(Scale.from_rubric(rubric), name=name)
        corrected, n_changed, label_notes = _correct_labels(rows, scale, reading)
        is_corrected = is_corrected or corrected is not rows
        n_joined += n_changed
        labels = set(corrected["label"].unique()) - {""}
        may_order = scale is None or name in without_level
        scales[name], scale_notes = _scale(name, labels, scale, may_order, reading)
        notes += [*label_notes, *scale_notes]
        corrected_tables.append(corrected)
    if options.normalise:
        notes = [written("reading.normalised", changed=n_joined, labels=len(ratings)), *notes]
    if is_corrected:
        ratings = pd.concat(corrected_tables).loc[ratings.index]  # in their first order
    return ScaledRatings(ratings, scales, notes=notes)


def _correct_labels(
    rows: pd.DataFrame, scale: Scale | None, reading: RatingsInput
) -> tuple[pd.DataFrame, int, list[str]]:
    """Return the rows of one rubric with corrected labels, the same object if none is changed; the
    number of labels joined with others; and notes. `scale` is the known one; options override it.
    """
    options = reading.options
    if options.categories:
        permitted, are_numbers = options.categories, False
    elif scale is not None:
        permitted = () if scale.number else scale.categories
        are_numbers = scale.is_number
    else:
        permitted, are_numbers = (), options.level == "interval"
    rubric_reading = replace(reading, permitted=permitted, numbers=are_numbers)
    rows = shorten_numbers(rows, rubric_reading)
    rows, notes = read_missing(rows, rubric_reading)
    rows, n_joined = join_labels(rows, rubric_reading)
    if not permitted and options.normalise is not False:
        refuse_codes(rows, rubric_reading)
        notes += notes_on_lone_labels(rows, rubric_reading)
        notes += notes_on_lone_numbers(rows, rubric_reading) if scale is None else []
    return rows, n_joined, notes


def labels_of_rubrics(
    ratings: pd.DataFrame, reading: RatingsInput, rubrics: Mapping[str, Rubric]
) -> RatingsAndNotes:
    """Return ratings with labels as the rubrics of a study store them, and notes; those without any
    result are left out. Labels that no rubric has stay as they are.
    """
    only_rubric = next(iter(rubrics)) if len(rubrics) == 1 else ""
    tables, notes = [ratings[:0]], list[str]()
    for name, rows in ratings.groupby("rubric", sort=False):
        if rubric := rubrics.get(str(name) or only_rubric):
            kind = rubric.kind
            rows, missing_notes = read_missing(rows, replace(reading, permitted=[*kind.spellings]))
            notes += missing_notes
            counts = _label_counts(rows)
            stored = _stored_labels(counts, kind)
            unknown = [label for label in counts if label not in stored]
            variants = _variants(counts, unknown, kind.keys) if kind.is_choice else {}
            if variants and reading.options.normalise is None:
                label, key = next(iter(variants.items()))
                fault = f"looks like {key!r}; {reading.options.spelled('normalise')} reads it so"
                raise InputError(f"{reading.subject_of(label, rows)} {fault}, or correct it")
            rows = _with_corrected(rows, stored | variants if reading.options.normalise else stored)
        tables.append(rows)
    ratings = pd.concat(tables).loc[ratings.index]
    has_probability = (ratings["rater_kind"] == "model") & ratings["p_positive"].notna()
    has_result = (ratings["label"] != "") | (ratings["unscored_reason"] != "") | has_probability
    if n_empty := int((~has_result).sum()):
        reasons = f"{written('left_out.no_label')} ({n_empty:,})"
        notes.append(written("exchange.left_out", reasons=reasons))
    return ratings[has_result], notes


def _stored_labels(labels: Iterable[str], kind: LabelKind) -> dict[str, str]:
    """Return the labels as the kind stores them, by label; without those that it does not have."""
    return {label: stored for label in labels if (stored := kind.label_of(label))}


def _known_rubric(declared: str | None, name_in_file: str = "") -> Rubric | None:
    """Return the rubric that the user `declared` (shipped, installed or a file), else the shipped
    one with this `name_in_file`, if any: an installed one of the name may be another rubric.
    """
    names = named_rubrics() if declared else shipped_rubrics()
    name = declared or name_in_file
    if name and (name.replace("_", "-") in names or name.endswith(".toml")):
        return load_rubric(name)
    return None


def _rubric_rows(ratings: pd.DataFrame, options: ScaleOptions, stored: Scales) -> pd.DataFrame:
    """Return the rows of the options' rubric, named if they were not, and of its other wordings."""
    declared = str(options.rubric)
    rubric = _known_rubric(declared)
    name = declared if rubric is None else rubric.name
    if (ratings["rubric"] == "").all():
        if rubric is None and not options.categories and name not in stored:
            load_rubric(declared)  # raises: there is no such rubric
        return ratings.assign(rubric=name)
    names = ratings["rubric"].str.replace("_", "-") if rubric else ratings["rubric"]
    wordings = {scale.name for scale in stored.values() if scale.variant_of == name}
    if not (names == name).any():
        rubrics = ", ".join(sorted(set(ratings["rubric"])))
        raise InputError(f"no rating is on rubric {name!r}; the file has {rubrics}")
    return ratings[names.isin({name, *wordings})]


def _scale(
    name: str, labels: Collection[str], scale: Scale | None, may_order: bool, reading: RatingsInput
) -> tuple[Scale, list[str]]:
    """Return the scale of a rubric, and notes on how it was read: of declared categories, else the
    known `scale`, else of the `labels`. Unless a level is declared, consecutive whole numbers are
    read as ordered; on a known scale only with `may_order`, if it has no declared level either.
    """
    options = reading.options
    notes: list[str] = []
    if options.categories:  # a new scale, without the level of the known one
        scale, may_order = Scale(name, options.categories), True
    elif scale is None:
        scale = _scale_from_labels(name, labels, reading)
        notes = [] if scale.number else [_note_on(scale, options)]
    scale = scale.including(labels)
    if options.level:
        scale = replace(scale, level=options.level)
    elif may_order and (ordered := ordered_scale(scale.categories)):
        scale = replace(scale, categories=ordered, level="ordinal")
        notes.insert(0, note_on_order(ordered, options, name))
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
    return replace(scale, thresholds=thresholds, tunings=tunings), notes


def _scale_from_labels(name: str, labels: Collection[str], reading: RatingsInput) -> Scale:
    """Return a scale made of the labels in the file, with unused numbers in between if they are
    ordered. Raises InputError if there are none, too many, or their order is unknown although the
    level is declared.
    """
    options = reading.options
    ordered = whole_numbers_in_a_row(labels) if len(labels) <= MAX_LABELS else ()
    if options.level == "ordinal" and not ordered:
        raise InputError(
            f"the order of an {options.level} scale cannot be seen from the labels; give all "
            f"permitted labels in order, for example {options.spelled('categories', *'12345')}"
        )
    if options.level == "interval" and labels:
        return Scale(name, tuple(sorted(labels, key=float)), "interval", number=True)
    if not labels:
        raise InputError(
            "no rating has a label; give labels, or declare a scale with "
            f"{options.spelled('categories')}"
        )
    if len(labels) > MAX_LABELS:
        first = ", ".join(shortened(label) for label in sorted(labels)[:3])
        on_rubric = f" on rubric {name!r}" if name else ""
        fixes = f", or name another rubric with {options.spelled('rubric')}" if name else ""
        if all(plain_number(label) for label in labels):
            fixes += f", or, as they are numbers, say {options.spelled('level', 'interval')}"
        raise InputError(
            f"{reading.source}: there are {len(labels)} different labels{on_rubric} ({first} and "
            f"so on), too many for an undeclared scale; group them into at most {MAX_LABELS}, or "
            f"declare all of them with {options.spelled('categories')}{fixes}"
        )
    if options.level == "nominal":
        ordered = tuple(key for key in ordered if key in labels)
    return Scale(name, ordered or tuple(sorted(labels)))


def _note_on(scale: Scale, options: ScaleOptions) -> str:
    """Return a note on a scale of the labels in the file: it is nominal, or its ends are unsure."""
    key = "ends_rubric" if scale.name else "ends"
    if options.level == "nominal" or not ordered_scale(scale.categories):
        key = "nominal_rubric" if scale.name else "nominal"
    fields = {"rubric": scale.name, "labels": ", ".join(scale.categories)}
    fields |= {name: options.spelled(name) for name in ("categories", "level")}
    return written(f"reading.{key}", **fields)


def note_on_order(categories: Sequence[str], options: ScaleOptions, rubric: str = "") -> str:
    """Return a note that consecutive whole numbers are read as ordered, and how to change that."""
    key, nominal = "ordered_rubric" if rubric else "ordered", options.spelled("level", "nominal")
    return written(f"reading.{key}", rubric=rubric, labels=span_of(categories), nominal=nominal)


# ---- labels that are sets of options -------------------------------------------------------------
YES, NO = "yes", "no"
UNNAMED = "labels"  # the name of a rubric of sets without one
_MARKED = re.compile(r"[;,#|\[{]")  # a mark between options, or of a list
_DECIMAL_COMMA = re.compile(r"-?\d+,\d+")
_MOST_CELLS = 10_000  # different labels beyond which no sets are looked for: a scale has far fewer
_MOST_TYPED = 200  # characters beyond which a command-line option is not proposed in a message


def _read_sets(
    ratings: pd.DataFrame, set_options: SetOptions, reading: RatingsInput
) -> ScaledRatings:
    """Return ratings whose labels are sets, as JSON lists and with a rubric name, and the options
    by rubric: the declared `set_options` (under "" for any other rubric), else those in the labels.
    A note says how options are separated. Raises InputError naming the row of a cell that is no
    set of options.
    """
    ratings = ratings.assign(rubric=ratings["rubric"].where(ratings["rubric"] != "", UNNAMED))
    notes: list[str] = []
    options_of: dict[str, Sequence[str]] = {}
    labels = ratings["label"].copy()
    for rubric, rows in ratings.groupby("rubric", sort=True):
        name = str(rubric)
        permitted = set_options.get(name, set_options.get("", ()))
        rows, missing_notes = read_missing(rows, replace(reading, permitted=permitted))
        notes += missing_notes
        cells = [str(label) for label in rows["label"].unique()]
        sets, separators = _sets_by_cell(cells, permitted, reading)
        permitted = permitted or _options_in_sets(sets)
        for cell, chosen in sets.items():
            if fault := _set_fault(chosen, permitted):
                raise InputError(f"{reading.subject_of(cell, rows)} {fault}")
        if not 2 <= len(permitted) <= MOST_SEVERAL:
            raise InputError(
                f"{reading.source}: labels that are sets need 2 to {MOST_SEVERAL} options; these "
                f"name {len(permitted)}"
            )
        options_of[name] = permitted
        lists = {cell: json.dumps(chosen) if cell else "" for cell, chosen in sets.items()}
        labels.loc[rows.index] = rows["label"].map(lists)
        if reading.options.several:
            joined = [cell for cell in cells if not _is_list(cell)]
            used = [mark for mark in separators if any(mark in cell for cell in joined)]
            key = "sets_joined" if used else "sets"
            fields = {"rubric": name, "count": len(permitted), "options": listed(permitted)}
            notes.append(written(f"reading.{key}", marks=" or ".join(used), **fields))
    return ScaledRatings(ratings.assign(label=labels), set_options=options_of, notes=notes)


def sets_in(scales: Scales, rubrics: Collection[str]) -> dict[str, Sequence[str]]:
    """Return the options of those of a file's rubrics whose parts, made of sets, have `scales`."""
    options: dict[str, Sequence[str]] = {}
    for rubric in {*rubrics} - scales.keys():
        stem = f"{rubric or UNNAMED}/"
        if parts := [name for name in scales if name.startswith(stem)]:
            options[rubric] = [part.removeprefix(stem) for part in parts]
    return options


def _sets_by_cell(
    cells: Sequence[str], permitted: Sequence[str], reading: RatingsInput
) -> tuple[dict[str, tuple[str, ...] | None], str]:
    """Return the options that each cell names, None if it is no set of options, and the marks that
    separate options. Raises InputError if a mark may as well be a part of options' names.
    """
    separators = separators_in(cells, permitted)
    if separators is not None:
        return {cell: options_in(cell, separators) for cell in cells}, separators
    marked = [mark for mark in SEPARATORS if any(mark in cell for cell in cells)]
    names = _options_in_sets({cell: options_in(cell, SEPARATORS) for cell in cells})
    raise InputError(
        f"{reading.source}: it cannot be told whether {' or '.join(marked)} stands between "
        "options or within their names; write JSON lists, or declare the options, such as "
        f"{reading.options.spelled('categories', *names)}"
    )


def _options_in_sets(sets: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return all options that cells name, sorted; `sets` are by cell, None for no set."""
    return sorted({option for chosen in sets.values() for option in chosen or ()})


def _set_fault(chosen: Sequence[str] | None, permitted: Sequence[str]) -> str:
    """Return the fault of a cell that names the options `chosen`, None for no set; "" for none."""
    if chosen is None:
        return f"is no set of options; write a;b, a JSON list of texts, or {NONE}"
    unknown = next((option for option in chosen if option not in permitted), "")
    return f"names {shortened(unknown)!r}, none of {', '.join(permitted)}" if unknown else ""


def refuse_sets(ratings: pd.DataFrame, stored_scales: Scales, reading: RatingsInput) -> None:
    """Raise InputError naming the first label that looks like a set of options although no scale is
    declared or stored, so that every set would become a category (`_joined_in`).
    """
    options = reading.options
    is_stored = len(stored_scales) == 1 and (ratings["rubric"] == "").all()
    if options.categories or options.level == "interval" or is_stored:
        return
    if not any(_MARKED.search(label) for label in ratings["label"].unique()):
        return  # quickly, as for most labels
    if options.rubric is not None:
        ratings = _rubric_rows(ratings, options, stored_scales)
    ratings = ratings[~ratings["rubric"].isin(list(stored_scales))]
    for _, rows in ratings.groupby("rubric", sort=True):
        cells = [str(label) for label in rows["label"].unique() if label]
        if len(cells) > _MOST_CELLS or max(map(len, cells), default=0) > MAX_LENGTH:
            continue  # too many or too long for categories, which another check refuses
        separators = separators_in(cells)
        marks = SEPARATORS if separators is None else separators
        sets = {cell: chosen for cell in cells if (chosen := options_in(cell, marks))}
        joined = _joined_in(sets)
        names = _options_in_sets(sets)
        if not joined or not 2 <= len(names) <= MOST_SEVERAL:
            continue
        declared = [options.spelled("categories", *names)] if separators is None else []
        remedy = (", " if options.in_python else " ").join([options.spelled("several"), *declared])
        alternative, keep = "", options.spelled("categories", *sorted(cells))
        if all(map(_DECIMAL_COMMA.fullmatch, joined)):
            alternative = "; if the labels are numbers, write a decimal point, as in 1.5"
        elif len(keep) <= _MOST_TYPED:
            alternative = f", or {keep} to take every label as one category"
        raise InputError(
            f"{reading.subject_of(joined[0], rows)} looks like a set of options "
            f"({listed(map(shortened, names))}); add {remedy} to read sets{alternative}"
        )


def _joined_in(sets: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the cells that are lists or join several options; [] unless these look like sets. For
    that they are lists, or occur in two orders (a;b and b;a), or most of their options are labels
    themselves (a;b, a and b). `sets` are the options by cell.
    """
    lists = {cell for cell in sets if _is_list(cell)}
    joined = {cell: chosen for cell, chosen in sets.items() if len(chosen) > 1 or cell in lists}
    in_sets = {option for chosen in joined.values() for option in chosen}
    singles = {chosen[0] for cell, chosen in sets.items() if cell not in joined}
    has_two_orders = len({frozenset(chosen) for chosen in joined.values()}) < len(joined)
    # A list of one option shows sets if Python wrote it (with '); JSON may be for nested records.
    are_lists = any(len(joined[cell]) > 1 or "'" in cell for cell in lists)
    are_mostly_labels = not lists and 2 * len(in_sets & singles) > len(in_sets)
    return [*joined] if has_two_orders or are_lists or are_mostly_labels else []


def _is_list(cell: str) -> bool:
    """Return True if a cell seems to be a list or a mapping."""
    return cell.lstrip()[:1] in ("[", "{")


def with_parts(dataset: Dataset, set_options: SetOptions) -> Dataset:
    """Return a dataset in which each rubric of `set_options`, whose labels are sets of these
    options, is replaced by a yes/no rubric for each option, "rubric/option" (a part). The parts
    have the rubric's facts, such as prices.
    """
    if not set_options:
        return dataset
    ratings, facts = dataset.ratings, dataset.facts
    tables = [ratings[~ratings["rubric"].isin(list(set_options))]]
    scales = {name: scale for name, scale in dataset.scales.items() if name not in set_options}
    prices, titles, origins = dict(facts.prices), dict(dataset.titles), {}
    for name, permitted in set_options.items():
        rows = ratings[ratings["rubric"] == name]
        withheld = dataset.scales[name].withheld if name in dataset.scales else {}
        sets = {label: options_in(label) or () for label in rows["label"].unique()}
        for option in permitted:
            part = f"{name}/{option}"
            origins[part] = name
            answers = {label: YES if option in chosen else NO for label, chosen in sets.items()}
            labels = rows["label"].map(answers | {"": ""})
            tables.append(
                rows.assign(rubric=part, label=labels, probabilities="", p_positive=np.nan)
            )
            binary = Scale(part, (YES, NO), affirmative=frozenset({YES}), part_of=name)
            scales[part] = replace(binary, withheld=withheld)
            option_name = dataset.names.get(name, {}).get(option, option)
            titles[part] = f"{dataset.titles.get(name, name)}: {option_name}"
            prices |= {(part, who): usd for (key, who), usd in facts.prices.items() if key == name}
    facts = replace(sharing(facts, origins), prices=prices)
    return replace(dataset, ratings=pd.concat(tables), scales=scales, facts=facts, titles=titles)


def sharing(facts: StudyFacts, origins: Mapping[str, str]) -> StudyFacts:
    """Return facts in which derived rubrics have their origin's hashes and interim analyses."""
    fields: dict[str, Any] = {"looks": facts.looks, "rubric_hashes": facts.rubric_hashes}
    for name, values in fields.items():
        if values:
            derived = {part: values[origin] for part, origin in origins.items() if origin in values}
            fields[name] = {**values, **derived}
    return replace(facts, **fields)
