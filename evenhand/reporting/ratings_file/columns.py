"""Columns of a table that others made, by what their cells and names show: which may hold labels,
which of those are of several raters, and which name a rater and a rubric each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import plain_kind
from evenhand.reporting.ratings_file.cleaning import pattern_of
from evenhand.reporting.ratings_file.scales import MAX_LABELS
from evenhand.rubrics.options import options_in
from evenhand.study.tables.columns import folded, names_items, sure_columns
from evenhand.study.tables.ratings import TRUTH, texts

if TYPE_CHECKING:
    import pandas as pd

RATER, RUBRIC = "{rater}", "{rubric}"
MODEL_NAME = re.compile(pattern_of("model_name"), re.I)
"""Names that a model may have; `plain_kind` knows those that only a model has."""
_MODEL_WORD = re.compile(pattern_of("model_word"))
_PEOPLE_WORD = re.compile(pattern_of("people_word"))
LONGEST_KEY = 60
"""Characters; a longer cell is a text, though it may come again."""
_MOST_CELLS = 2_000
"""Different cells of a column that are looked at."""
_DATE = re.compile(pattern_of("date"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I)
_MEASURE = re.compile(pattern_of("measure"), re.I)
_FACT = re.compile(
    rf"(^|[_\W])({pattern_of('fact')})([_\W]|$)|(Id|At|Date|Time)$|^(is|has|was)[_ ]", re.I
)
_CRITERION = re.compile(rf"(is_?)?({pattern_of('criterion')})([ _-]?(score|rating|label))?", re.I)
_RESPONDENT = re.compile(pattern_of("respondent"), re.I)
_RATERS = re.compile(r"annotator|worker|coder|rater|labell?er|turker|participant", re.I)
_ID = re.compile(r"(^|[_\W])ids?$|Ids?$")
_TRUTH = {word: TRUTH[0][place] for pair in TRUTH for place, word in enumerate(pair)}
"""Words for yes and no, each as one of them."""
_FEWEST_ROWS = 5
_MOST_RATERS = 5
_MARKS = ("__", " - ", ": ", "::", ".", "/", "|", ":", "_", "-", " ")
_AROUND = ((" [", "]"), ("[", "]"), (" (", ")"), ("(", ")"))


def fits(table: pd.DataFrame, ours: str, column: str) -> bool:
    """Return True if the cells of a column may be what our column of this name holds, or where the
    table has no rows to tell by.
    """
    if table.empty:
        return True
    given = texts(table[column]).unique()
    cells = [cell for each in given[:_MOST_CELLS] if (cell := str(each).strip())]
    if not cells or all(map(is_nested, cells)):
        return bool(cells) and ours == "label" and all(options_in(cell) for cell in cells)
    if ours == "rater_kind":
        return set(cells) <= {"human", "model", "adjudicator"}
    if all(map(_DATE.fullmatch, cells)):
        return False
    if ours == "unit_id":  # of a long table: of units that nobody shares nothing can be told
        return len(table) < 3 or len(given) < len(table)
    if any(len(cell) > LONGEST_KEY or "\n" in cell for cell in cells):
        return False
    numbers = all(map(_NUMBER.fullmatch, cells))
    if ours == "rater_id":
        fractions = numbers and any("." in cell for cell in cells)
        return not fractions and (len(table) < 3 or 2 * len(given) <= len(table))
    if ours == "label":
        return len(cells) <= MAX_LABELS or (numbers and not _MEASURE.search(column))
    return True


def label_columns(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that may be one rater's labels: few different short cells, which are no dates,
    nested values, measures or facts by name.
    """
    return [
        column
        for column in columns
        if not (names_items(column) or is_fact(column))
        and fits(table, "label", column)
        and len(_labels(table, column)) <= MAX_LABELS
    ]


def alike(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that may be the labels of several raters of one question: those of `columns` that
    share labels, directly or by way of others, where one such group is the largest.
    """
    groups: list[tuple[set[str], list[str]]] = []
    for column in label_columns(table, columns):
        labels, members = _labels(table, column), [column]
        for other in [group for group in groups if group[0] & labels]:
            groups.remove(other)
            labels, members = labels | other[0], other[1] + members
        groups.append((labels, members))
    sizes = sorted((len(members) for _, members in groups), reverse=True)
    if not sizes and (scores := _scores_alike(table, columns)):
        return scores
    if not sizes or sizes[0] < 2 or sizes[0] == next(iter(sizes[1:]), 0):
        return []
    found = next(members for _, members in groups if len(members) == sizes[0])
    return [] if are_counts(table, found) else [column for column in columns if column in found]


def _scores_alike(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns of many different numbers, where there are several and their ranges overlap."""
    ends = {}
    for column in _able(table, columns):
        cells = [cell for cell in texts(table[column]).unique() if cell.strip()]
        if not names_items(column) and all(map(_NUMBER.fullmatch, map(str.strip, cells))):
            values = [float(cell) for cell in cells]
            ends[column] = min(values), max(values)
    if len(ends) < 2 or max(low for low, _ in ends.values()) > min(
        high for _, high in ends.values()
    ):
        return []
    return list(ends)


def are_counts(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return True if the columns hold how many annotators gave each label: whole numbers from 0
    with one sum in all rows, of which rows differ.
    """
    import numpy as np

    if len(columns) < 2 or len(table) < _FEWEST_ROWS:
        return False
    sums, has_zero = np.zeros(len(table), dtype=int), False
    for column in columns:
        cells = texts(table[column])
        if not cells.str.fullmatch("[0-9]{1,9}").all():
            return False
        counts = cells.astype(int).to_numpy()
        sums += counts
        has_zero |= bool((counts == 0).any())
    return bool((sums == sums[0]).all() and sums[0] > 1 and has_zero)


def by_person(table: pd.DataFrame, columns: Sequence[str], labels: Sequence[str]) -> bool:
    """Return True if a table seems to have a row for each person and a column for each unit: the
    rows are named as a survey names people, or are fewer than the columns of labels.
    """
    few = len(labels) > max(len(table), _MOST_RATERS)
    return few or any(map(_RESPONDENT.search, columns))


def kind_by_word(name: str) -> str:
    """Return the kind of rater that a word in a name shows: human or model; "" where none does.

    >>> [kind_by_word(name) for name in ("annotator1", "judge", "LLM_label", "human score", "Ann1")]
    ['human', 'model', 'model', 'human', 'human']
    >>> [kind_by_word(name) for name in ("human_vs_model", "topic", "ann")]
    ['', '', '']
    """
    if kind := plain_kind(name):
        return kind
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = re.findall(r"[a-z]+", re.sub(r"(?i)^ann(?=[ _.-]?\d)", "annot", split).casefold())
    known = (("human", _PEOPLE_WORD), ("model", _MODEL_WORD))
    kinds = {kind for kind, word in known if any(map(word.fullmatch, words))}
    return kinds.pop() if len(kinds) == 1 else ""


def is_fact(column: str) -> bool:
    """Return True if a column's name is that of a fact about a unit or its labels, or a measure."""
    return bool(_FACT.search(column) or _MEASURE.search(column))


def criteria(columns: Sequence[str]) -> list[str]:
    """The columns whose names are those of questions rather than of raters."""
    return [column for column in columns if _CRITERION.fullmatch(column.strip())]


def _labels(table: pd.DataFrame, column: str) -> set[str]:
    """The different labels of a column in one case, words for yes and no as one of them."""
    cells = {folded(str(cell)).casefold() for cell in texts(table[column]).unique()[:_MOST_CELLS]}
    cells -= {""}
    return {_TRUTH[cell] for cell in cells} if cells <= _TRUTH.keys() else cells


def is_nested(cell: str) -> bool:
    """Return True if a cell holds a list or a nested value, as JSON or as Python writes it."""
    if not cell.startswith(("{", "[")):
        return False
    try:
        return isinstance(json.loads(cell.replace("'", '"')), (dict, list))
    except ValueError:
        return cell.endswith(("}", "]"))


# ---- a row for each rating ----------------------------------------------------------------------


def columns_of_ratings(
    table: pd.DataFrame, columns: Sequence[str], absent: Sequence[str]
) -> dict[str, str]:
    """Return which columns of a table with a row for each rating are the `absent` ones, `{ours:
    theirs}`, as far as usual names or cells leave no doubt.

    By its cells a column is that of items if it has each value once for each rater, and that of
    labels if it alone has a few values that vary within items and within raters.
    """
    found = sure_columns(columns, absent, partial(fits, table))

    def left(ours: str) -> list[str]:
        return [each for each in columns if each not in found.values() and fits(table, ours, each)]

    if "rater_id" in absent and "rater_id" not in found:
        people = [each for each in left("rater_id") if _RATERS.search(each)]
        found |= {"rater_id": people[0]} if len(people) == 1 else {}
    rater = found.get("rater_id", "rater_id")
    if rater not in table:
        return found
    if "unit_id" in absent and "unit_id" not in found:
        items = [
            each
            for each in left("unit_id")
            if not table.duplicated([each, rater]).any()
            and not is_fact(each.removesuffix("s").removesuffix("id").rstrip("_ "))
            and not (texts(table[each]) == "").any()
        ]
        named = [each for each in items if _ID.search(each)] or items
        same = {tuple(table.groupby(each, sort=False).ngroup()) for each in named}
        found |= {"unit_id": named[0]} if len(same) == 1 else {}
    unit = found.get("unit_id", "unit_id")
    if "label" in absent and "label" not in found and unit in table:
        vary = [
            each
            for each in left("label")
            if len(_labels(table, each)) <= MAX_LABELS
            and all((table.groupby(key)[each].nunique() > 1).any() for key in (unit, rater))
        ]
        labels = [each for each in vary if not is_fact(each)] or vary
        found |= {"label": labels[0]} if len(labels) == 1 else {}
    return found


# ---- columns for each rater and rubric ----------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Columns of labels by rater and rubric, and the pattern of their names: `{rater}_{rubric}`.

    It is `sure` where names or labels show which part of a name is the rater. `others` follow the
    pattern, too, and hold no labels.
    """

    pattern: str
    columns: Mapping[str, tuple[str, str]]
    sure: bool = True
    others: tuple[str, ...] = ()

    @property
    def raters(self) -> list[str]:
        return list(dict.fromkeys(rater for rater, _ in self.columns.values()))

    @property
    def rubrics(self) -> list[str]:
        return list(dict.fromkeys(rubric for _, rubric in self.columns.values()))


def named_grid(
    table: pd.DataFrame, pattern: str, columns: Sequence[str], raters: Collection[str]
) -> Grid:
    """The columns of labels whose names follow a pattern: those of these raters, or, where none are
    named, of the raters that share their rubrics. Raises InputError where the pattern is not valid.
    """
    parts = re.split(r"(\{rater\}|\{rubric\})", pattern)
    if sorted(parts[1::2]) != [RATER, RUBRIC] or not parts[2]:
        raise InputError(
            f"--wide is {pattern!r}; write {RATER} and {RUBRIC} once each with a mark between "
            f"them, such as {RATER}_{RUBRIC}"
        )
    turned = parts[1] == RUBRIC
    able = _able(table, columns)
    if not raters:
        whole = _product(_splits(able, parts[0], parts[2], parts[4]))
        return Grid(pattern, {c: p[::-1] if turned else p for c, p in whole.items()})
    found, others = {}, []
    for column, choices in _splits(columns, parts[0], parts[2], parts[4]).items():
        pairs = [pair[::-1] if turned else pair for pair in choices]
        own = [pair for pair in pairs if pair[0] in raters]
        if own and column in able:
            found[column] = max(own, key=lambda pair: len(pair[0]))
        elif own:
            others.append(column)
    return Grid(pattern, found, others=tuple(others))


def guessed_grid(
    table: pd.DataFrame, columns: Sequence[str], raters: Collection[str] = ()
) -> Grid | None:
    """The grid that the names of columns of labels form: every rater has each rubric. None where
    they form none; with `raters`, one of these raters alone.
    """
    able = _able(table, columns)
    best: dict[str, tuple[str, str]] = {}
    around = ("", "")
    for mark, after in [*_AROUND, *((mark, "") for mark in _MARKS)]:
        found = _product(_splits(able, "", mark, after))
        if len(found) > len(best):
            best, around = found, (mark, after)
    if not best or (not raters and all(map(plain_kind, best))):
        return None
    turned, sure = _turned(table, best, raters)
    sure = sure and not any(
        all(map(str.isdecimal, side)) for side in zip(*best.values(), strict=True)
    )
    first, second = (RUBRIC, RATER) if turned else (RATER, RUBRIC)
    pattern = f"{first}{around[0]}{second}{around[1]}"
    grid = Grid(pattern, {c: p[::-1] if turned else p for c, p in best.items()}, sure)
    if not raters:
        return grid
    own = {column: pair for column, pair in grid.columns.items() if pair[0] in raters}
    return Grid(pattern, own) if set(raters) <= set(grid.raters) else None


def _able(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that may hold labels, also many different numbers, by their cells and names."""
    return [column for column in columns if fits(table, "label", column) and not is_fact(column)]


def _splits(
    columns: Sequence[str], before: str, mark: str, after: str
) -> dict[str, list[tuple[str, str]]]:
    """All ways to part each column at a mark, by column."""
    found = {}
    for column in columns:
        if not (column.startswith(before) and column.endswith(after)):
            continue
        name = column[len(before) : len(column) - len(after)]
        places = [at for at in range(1, len(name)) if name.startswith(mark, at)]
        parts = [(name[:at], name[at + len(mark) :]) for at in places]
        own = [(one, other) for one, other in parts if one.strip() and other.strip()]
        if own:
            found[column] = own
    return found


def _product(splits: Mapping[str, list[tuple[str, str]]]) -> dict[str, tuple[str, str]]:
    """The largest set of columns whose names are all combinations of two or more first parts with
    two or more second parts; of equally large ones that with the shortest first parts.
    """
    seconds: dict[str, dict[str, str]] = {}
    for column, pairs in splits.items():
        for one, other in pairs:
            seconds.setdefault(one, {})[other] = column
    groups: dict[frozenset[str], list[str]] = {}
    for one, others in seconds.items():
        groups.setdefault(frozenset(others), []).append(one)

    def worth(group: tuple[frozenset[str], list[str]]) -> tuple[int, int, int]:
        own, firsts = group
        numbers = sum(other[:1].isdecimal() for other in own)  # of human_1, not of a rubric
        return len(own) * len(firsts), -numbers, -sum(map(len, firsts))

    whole = [(own, firsts) for own, firsts in groups.items() if min(len(own), len(firsts)) >= 2]
    if not whole:
        return {}
    both, firsts = max(whole, key=worth)
    found = {seconds[one][other]: (one, other) for one in firsts for other in both}
    return {column: found[column] for column in splits if column in found}


def _turned(
    table: pd.DataFrame, parts: Mapping[str, tuple[str, str]], raters: Collection[str]
) -> tuple[bool, bool]:
    """Return whether the second part of the names is the rater, and whether that is sure: raters
    are given, one part names models or the other questions, or labels differ by one part alone.
    """
    firsts, seconds = (set(side) for side in zip(*parts.values(), strict=True))
    if raters:
        return not set(raters) & firsts, True
    by_model = [any(map(MODEL_NAME.search, side)) for side in (firsts, seconds)]
    by_question = [any(criteria(list(side))) for side in (seconds, firsts)]
    by_label = [_same_labels(table, parts, side) for side in (1, 0)]
    for first, second in (by_model, by_question, by_label):
        if first != second:
            return second, True
    return False, False


def _same_labels(table: pd.DataFrame, parts: Mapping[str, tuple[str, str]], side: int) -> bool:
    """Return True if columns with the same part of their name on this side share labels, and those
    with another do not.
    """
    labels: dict[str, list[set[str]]] = {}
    for column, pair in parts.items():
        labels.setdefault(pair[side], []).append(_labels(table, column))
    within = all(one & other for own in labels.values() for one in own for other in own)
    unions = [set().union(*own) for own in labels.values()]
    apart = all(not one & other for at, one in enumerate(unions) for other in unions[:at])
    return within and apart
