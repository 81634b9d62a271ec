"""The columns of a table that others made: which are items, raters and labels, and which of the
raters are annotators and which graders. Declared, or inferred where names and cells leave one
sensible reading; where a column of ratings is missing, messages propose what to declare.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import plain_kind
from evenhand.lazy import np, pd
from evenhand.reporting.ratings_file.declared import EVERYBODY
from evenhand.reporting.ratings_file.labels import MAX_LABELS, pattern_of
from evenhand.rubrics.options import options_in
from evenhand.study.tables.columns import (
    MAX_NAMED,
    columns_option,
    folded,
    likely_columns,
    listed,
    names_items,
    people_column,
    sure_columns,
    unit_columns,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, TRUTH, texts

if TYPE_CHECKING:
    from evenhand.exchange.readers.rows import Export
    from evenhand.reporting.ratings_file.declared import ScaleOptions

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
_FACT = rf"(^|[_\W])({pattern_of('fact')})([_\W]|$)|(Id|At|Date|Time)$|^(is|has|was)[_ ]"
_CRITERION = re.compile(rf"(is_?)?({pattern_of('criterion')})([ _-]?(score|rating|label))?", re.I)
_RESPONDENT = re.compile(pattern_of("respondent"), re.I)
_RATERS = re.compile(r"annotator|worker|coder|rater|labell?er|turker|participant", re.I)
_ID = re.compile(r"(^|[_\W])ids?$|Ids?$")
_TRUTH = {word: TRUTH[0][place] for pair in TRUTH for place, word in enumerate(pair)}
"""Words for yes and no, each as one of them."""
_FEWEST_ROWS = 5
_MOST_RATERS = 200
_MARKS = ("__", " - ", ": ", "::", ".", "/", "|", ":", "_", "-", " ")
_AROUND = ((" [", "]"), ("[", "]"), (" (", ")"), ("(", ")"))


def fits(table: pd.DataFrame, ours: str, column: str) -> bool:
    """Return True if the cells of a column may be what our column of this name holds, or where the
    table has no rows to tell by.
    """
    if table.empty:
        return True
    given = texts(table[column]).unique()
    cells = [cell for text in given[:_MOST_CELLS] if (cell := str(text).strip())]
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
    largest = next(members for _, members in groups if len(members) == sizes[0])
    return [] if are_counts(table, largest) else [column for column in columns if column in largest]


def _scores_alike(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns of many different numbers, where there are several and their ranges overlap."""
    ends = {}
    for column in _able(table, columns):
        cells = [cell for cell in texts(table[column]).unique() if cell.strip()]
        if not names_items(column) and all(map(_NUMBER.fullmatch, map(str.strip, cells))):
            values = [float(cell) for cell in cells]
            ends[column] = min(values), max(values)
    if len(ends) < 2:
        return []
    lows, highs = zip(*ends.values(), strict=True)
    return list(ends) if max(lows) <= min(highs) else []


def are_counts(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return True if the columns hold how many annotators gave each label: whole numbers from 0
    with one sum in all rows, of which rows differ.
    """
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
    words_by_kind = (("human", _PEOPLE_WORD), ("model", _MODEL_WORD))
    kinds = {kind for kind, word in words_by_kind if any(map(word.fullmatch, words))}
    return kinds.pop() if len(kinds) == 1 else ""


def is_fact(column: str) -> bool:
    """Return True if a column's name is that of a fact about a unit or its labels, or a measure."""
    return bool(re.search(_FACT, column, re.I) or _MEASURE.search(column))


def criteria(columns: Iterable[str]) -> list[str]:
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


def ratings_columns(table: pd.DataFrame, columns: list[str], absent: list[str]) -> dict[str, str]:
    """Return which columns of a table with a row for each rating are the `absent` ones, `{ours:
    theirs}`, as far as usual names or cells leave no doubt.

    By its cells a column is that of items if it has each value once for each rater, and that of
    labels if it alone has a few values that vary within items and within raters.
    """
    theirs = sure_columns(columns, absent, partial(fits, table))

    def left(ours: str) -> list[str]:
        return [name for name in columns if name not in theirs.values() and fits(table, ours, name)]

    if "rater_id" in absent and "rater_id" not in theirs:
        people = [column for column in left("rater_id") if _RATERS.search(column)]
        theirs |= {"rater_id": people[0]} if len(people) == 1 else {}
    rater = theirs.get("rater_id", "rater_id")
    if rater not in table:
        return theirs
    if "unit_id" in absent and "unit_id" not in theirs:
        items = [
            column
            for column in left("unit_id")
            if not table.duplicated([column, rater]).any()
            and not is_fact(column.removesuffix("s").removesuffix("id").rstrip("_ "))
            and not (texts(table[column]) == "").any()
        ]
        named = [column for column in items if _ID.search(column)] or items
        same = {tuple(table.groupby(name, sort=False).ngroup()) for name in named}
        theirs |= {"unit_id": named[0]} if len(same) == 1 else {}
    unit = theirs.get("unit_id", "unit_id")
    if "label" in absent and "label" not in theirs and unit in table:
        vary = [
            column
            for column in left("label")
            if len(_labels(table, column)) <= MAX_LABELS
            and all((table.groupby(key)[column].nunique() > 1).any() for key in (unit, rater))
        ]
        labels = [column for column in vary if not is_fact(column)] or vary
        theirs |= {"label": labels[0]} if len(labels) == 1 else {}
    return theirs


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
    labels, others = {}, []
    for column, choices in _splits(columns, parts[0], parts[2], parts[4]).items():
        pairs = [pair[::-1] if turned else pair for pair in choices]
        able_pairs = [pair for pair in pairs if pair[0] in raters]
        if able_pairs and column in able:
            labels[column] = max(able_pairs, key=lambda pair: len(pair[0]))
        elif able_pairs:
            others.append(column)
    return Grid(pattern, labels, others=tuple(others))


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
        split = _product(_splits(able, "", mark, after))
        if len(split) > len(best):
            best, around = split, (mark, after)
    if not best or (not raters and all(map(plain_kind, best))):
        return None
    turned, sure = _turned(table, best, raters)
    sides = zip(*best.values(), strict=True)
    sure = sure and not any(all(map(str.isdecimal, side)) for side in sides)
    first, second = (RUBRIC, RATER) if turned else (RATER, RUBRIC)
    pattern = f"{first}{around[0]}{second}{around[1]}"
    grid = Grid(pattern, {c: p[::-1] if turned else p for c, p in best.items()}, sure)
    if not raters:
        return grid
    of_raters = {column: pair for column, pair in grid.columns.items() if pair[0] in raters}
    return Grid(pattern, of_raters) if set(raters) <= set(grid.raters) else None


def _able(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """The columns that may hold labels, also many different numbers, by their cells and names."""
    return [column for column in columns if fits(table, "label", column) and not is_fact(column)]


def _splits(
    columns: Sequence[str], before: str, mark: str, after: str
) -> dict[str, list[tuple[str, str]]]:
    """All ways to part each column at a mark, by column."""
    ways = {}
    for column in columns:
        if not (column.startswith(before) and column.endswith(after)):
            continue
        name = column[len(before) : len(column) - len(after)]
        places = [at for at in range(1, len(name)) if name.startswith(mark, at)]
        parts = [(name[:at], name[at + len(mark) :]) for at in places]
        filled = [(one, other) for one, other in parts if one.strip() and other.strip()]
        if filled:
            ways[column] = filled
    return ways


def _product(splits: Mapping[str, list[tuple[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the largest set of columns that combines two or more first and second parts."""
    seconds: dict[str, dict[str, str]] = {}
    for column, pairs in splits.items():
        for one, other in pairs:
            seconds.setdefault(one, {})[other] = column
    groups: dict[frozenset[str], list[str]] = {}
    for one, others in seconds.items():
        groups.setdefault(frozenset(others), []).append(one)

    def worth(group: tuple[frozenset[str], list[str]]) -> tuple[int, int, int]:
        tail, firsts = group
        numbers = sum(other[:1].isdecimal() for other in tail)  # of human_1, not of a rubric
        return len(tail) * len(firsts), -numbers, -sum(map(len, firsts))

    whole = [(tail, firsts) for tail, firsts in groups.items() if min(len(tail), len(firsts)) >= 2]
    if not whole:
        return {}
    both, firsts = max(whole, key=worth)
    product = {seconds[one][other]: (one, other) for one in firsts for other in both}
    return {column: product[column] for column in splits if column in product}


def _turned(
    table: pd.DataFrame, parts: Mapping[str, tuple[str, str]], raters: Collection[str]
) -> tuple[bool, bool]:
    """Return whether the second part of the names is the rater, and whether that is sure."""
    firsts, seconds = (set(side) for side in zip(*parts.values(), strict=True))
    if raters:
        return not set(raters) & firsts, True
    by_model = [any(map(MODEL_NAME.search, side)) for side in (firsts, seconds)]
    by_question = [any(criteria(side)) for side in (seconds, firsts)]
    by_label = [_same_labels(table, parts, side) for side in (1, 0)]
    for first, second in (by_model, by_question, by_label):
        if first != second:
            return second, True
    return False, False


def _same_labels(table: pd.DataFrame, parts: Mapping[str, tuple[str, str]], side: int) -> bool:
    """Return True if columns share labels where this side of their names is one, and only there."""
    labels: dict[str, list[set[str]]] = {}
    for column, pair in parts.items():
        labels.setdefault(pair[side], []).append(_labels(table, column))
    within = all(one & other for sets in labels.values() for one in sets for other in sets)
    unions = [set().union(*sets) for sets in labels.values()]
    apart = all(not one & other for at, one in enumerate(unions) for other in unions[:at])
    return within and apart


# ---- what is missing, and how to declare it ------------------------------------------------------


def refuse_missing(table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError where a table cannot be read as long, with the options that name its columns
    or raters, as far as its cells do not show that they would be wrong.
    """
    needed = ["unit_id", "rater_id", *([] if options.kinds else ["rater_kind"]), "label"]
    absent = [column for column in needed if column not in table]
    if not absent:
        return
    names = [str(column) for column in table]
    others = [column for column in names if column not in RATINGS_COLUMNS]
    likely = likely_columns(others, absent, partial(fits, table))
    if len(table):
        by_cells = ratings_columns(table, others, absent)
        for ours, theirs in by_cells.items():
            if theirs not in likely.values():
                likely.setdefault(ours, theirs)
    spaced = [column for column in names if column not in absent and column.strip() in absent]
    spaced += [column for column in likely.values() if column != column.strip()]
    if spaced:
        raise InputError(
            f"{name}: the column name {spaced[0]!r} begins or ends with a space; remove spaces "
            "next to the commas"
        )
    if "rater_id" in absent and len(table):
        # A column called label may be one of several raters'.
        wide = [column for column in names if column in others or column == "label"]
        _refuse_wide(table, name, wide, likely.get("rater_id"), options)
    what = f"{name}: the column {absent[0]!r} is missing (it has {listed(table.columns)})"
    if absent == ["rater_kind"]:
        what = f"{name} has no column 'rater_kind'"
    raise InputError(f"{what}; {', and '.join(_mends(table, absent, likely, options))}")


def _refuse_wide(
    table: pd.DataFrame, name: str, columns: list[str], rater: str | None, options: ScaleOptions
) -> None:
    """Raise InputError where columns seem to be raters' labels, unless one names the `rater`."""
    labels = alike(table, columns)
    if rater not in (None, *labels):
        return
    counted = label_columns(table, columns)
    if not labels and are_counts(table, counted):
        raise InputError(
            f"{name}: the columns {listed(counted)} hold how many annotators gave each label; "
            "agreement takes the label of each annotator: give a table with these"
        )
    if grid := guessed_grid(table, columns):
        parts = f"({listed(grid.raters)}; {listed(grid.rubrics)})"
        if not grid.sure:
            raise InputError(
                f"{name} has a column for each pair of two names {parts}; say which of them is the "
                f"annotator, with {options.spelled('wide', 'PATTERN')} such as "
                f"{RATER}_{RUBRIC}, or "
                "name the raters' columns with --human and --model"
            )
        raise InputError(
            f"{name} has a column for each rater and rubric {parts}; read them with "
            f"{options.spelled('wide', grid.pattern)}{', ' if options.in_python else ' '}"
            f"{kinds_spelled(grid.raters, options)}"
        )
    if asked := criteria(labels or label_columns(table, columns)):
        raise InputError(
            f"{name} has labels by question ({listed(asked)}), and no column says who gave them; "
            f"add one, and {_naming({'rater_id': 'COLUMN'}, options)}"
        )
    # A survey names people so, or its rows are fewer than the columns of labels.
    few_rows = len(labels) > max(len(table), _MOST_RATERS)
    is_survey = "criterion" not in table and any(map(_RESPONDENT.search, columns))
    if labels and (few_rows or is_survey):
        raise InputError(
            f"{name} seems to have a row for each person and a column for each unit; write a row "
            "for each rating, with the columns unit_id, rater_id, rater_kind and label"
        )
    if options.in_python or len(labels) > 1:
        raise InputError(
            f"{name} has no column 'rater_id'; name the columns of the raters' labels with "
            + kinds_spelled(labels, options)
        )


def _mends(
    table: pd.DataFrame, absent: Sequence[str], likely: dict[str, str], options: ScaleOptions
) -> list[str]:
    """Return remedies for absent columns: other names, the raters' kinds, or adding the columns."""
    first = ""
    if len(table) and "rater_id" not in {*absent} - likely.keys():
        others = [str(name) for name in table if name not in (*RATINGS_COLUMNS, *likely.values())]
        able, unit = label_columns(table, others), likely.get("unit_id", "unit_id")
        if unit in table:  # what is the same for each item is no label
            able = [column for column in able if (table.groupby(unit)[column].nunique() > 1).any()]
        asked = criteria(able) or able
        if "label" in {*absent} - likely.keys() and asked:
            likely = {**likely, "label": asked[0]}
            first = f" (one question at a time: {listed(asked)})" if len(asked) > 1 else ""
        key = [likely.get(column, column) for column in ("unit_id", "rater_id")]
        if "rubric" not in table and {*key} <= {*table} and table.duplicated(key).any():
            # A column may tell apart several ratings of one unit by one rater.
            apart = [column for column in others if not table.duplicated([*key, column]).any()]
            few = [column for column in apart if texts(table[column]).nunique() <= MAX_LABELS]
            likely |= likely_columns(few, ["rubric"], lambda _, name: fits(table, "label", name))
    left = [column for column in absent if column not in likely]
    mends = [_naming(likely, options) + first] if likely else []
    raters = likely.get("rater_id", "rater_id")
    if "rater_kind" in left and raters in table:
        named = [name for name in texts(table[raters]).unique() if name]
        mends.append(f"say who the raters are with {kinds_spelled(named, options)}")
        left.remove("rater_kind")
    if left and likely:
        mends.append(f"add {', '.join(left)}")
    elif left:
        called = _naming(dict.fromkeys(left, "COLUMN"), options)
        wide = "if each rater has a column of labels, name these with --human and --model"
        mends.append(f"{called}, or {wide}" if "rater_id" in left else called)
    return mends


def _naming(columns: dict[str, str], options: ScaleOptions) -> str:
    if options.in_python:
        pairs = ", ".join(f"{theirs!r}: {ours!r}" for ours, theirs in columns.items())
        return f"rename what you have with .rename(columns={{{pairs}}})"
    return f"say what they are called with {columns_option(columns)}"


def kinds_spelled(
    raters: Iterable[str], options: ScaleOptions, kind_of: Mapping[str, str] | None = None
) -> str:
    """Return the options that name the raters, many of one kind as all the others, by the kinds
    that are `known`, and else with a guess at which are models.
    """
    kinds = {}
    for rater in raters:
        guess = kind_by_word(rater) or ("model" if MODEL_NAME.search(rater) else "human")
        kinds[rater] = (kind_of or {}).get(rater, guess)
    people = [name for name, kind in kinds.items() if kind == "human"]
    models = [name for name, kind in kinds.items() if kind == "model"]
    if len(people) > MAX_NAMED:
        people = ["*"]
    elif len(models) > MAX_NAMED:
        models = ["*"]
    named = {"human": people, "model": models}
    given = [options.spelled(kind, *names) for kind, names in named.items() if names]
    if options.in_python:
        return "human=[...] and model=[...]" + (f", such as {', '.join(given)}" if given else "")
    return " ".join(given)


_NOBODY = ("API", "sdk")
"""Names in tools' exports for a score that was sent by an API."""
_NO_PERSON = re.compile(pattern_of("no_person"), re.I)
"""Words that name a column, and no person."""
_PERSON = re.compile(r"[^\W\d_]{2,20}|[^\s@,]+@[^\s@,]+\.[a-z]+", re.I)
_FEWEST_PEOPLE = 2


def roles_in(
    table: pd.DataFrame, name: str, options: ScaleOptions, export: Export | None = None
) -> tuple[pd.DataFrame, ScaleOptions, str]:
    """Return a table, which messages call `name`, under our names of columns; the options with the
    kinds of its raters; and the name of the column of items, "" where items are rows.

    What cannot be inferred is left open. Raises InputError where an `export` leaves a rater's kind
    open and a name does not show it.
    """
    table, columns = _as_long(table, options)
    items = options.columns.get("unit_id") or columns.get("unit_id", "")
    if "rater_id" not in table:
        table, items = _with_items(table, options, items)
        return table, _kinds_of_columns(table, options), items
    items = items or next((column for column in ("unit_id", "item_id") if column in table), "")
    strict = export is not None and export.by_unit
    options = everybody_of(options, texts(table["rater_id"]))
    if options.kinds or ("rater_kind" in table and not strict):
        return table, options, items
    given = table["rater_kind"] if strict else texts(table["rater_id"]).map(lambda _: "")
    unknown = list(dict.fromkeys(texts(table["rater_id"])[given == ""]))
    rater_column = options.columns.get("rater_id") or columns.get("rater_id", "")
    kinds = _kinds_by_name(unknown, are_people=people_column(rater_column))
    if len(kinds) < len(unknown) and export is not None and strict:
        left = [rater for rater in unknown if rater not in kinds]
        raise InputError(
            f"{name} does not say which raters are annotators and which are graders "
            f"({listed(left)}); say so with "
            + _unknown_spelled(table, left, options, by_score=export.by_score)
        )
    if len(kinds) < len(unknown) or not unknown:
        return table, options, items
    rater_kinds = given.where(given != "", texts(table["rater_id"]).map(kinds))
    return table.assign(rater_kind=rater_kinds), options, items


# ---- columns ------------------------------------------------------------------------------------


def _as_long(table: pd.DataFrame, options: ScaleOptions) -> tuple[pd.DataFrame, dict[str, str]]:
    """Rename columns of ratings whose names and cells leave no doubt; return their old names."""
    absent = [column for column in ("unit_id", "rater_id", "label") if column not in table]
    if "item_id" in table:
        absent = [column for column in absent if column != "unit_id"]
    names = [str(column) for column in table]
    if "rater_id" not in absent or options.wide or {*options.kinds} & {*names} or not len(table):
        return table, {}
    others = [column for column in names if column not in RATINGS_COLUMNS]
    called = ratings_columns(table, others, absent)
    if called.keys() != {*absent} or alike(table, [c for c in others if c not in called.values()]):
        return table, {}
    key = [called.get(column, column) for column in ("unit_id", "rater_id")]
    key = [column if column in table else "item_id" for column in key]
    if table.duplicated([*key, *(["rubric"] if "rubric" in table else [])]).any():
        return table, {}
    if "rater_kind" not in table:
        left = [column for column in others if column not in called.values()]
        called |= sure_columns(left, ["rater_kind"], partial(fits, table))
    return table.rename(columns={theirs: ours for ours, theirs in called.items()}), called


def _with_items(table: pd.DataFrame, options: ScaleOptions, items: str) -> tuple[pd.DataFrame, str]:
    """Return a wide table whose column of unique ids is `unit_id`, and what that was called."""
    for column_of_ids in ("unit_id", "item_id"):
        if column_of_ids in table:
            return table, items or column_of_ids
    settings: set[str] = set()
    for value in options.settings.values():
        settings.update(map(str, value if isinstance(value, (tuple, list)) else (value,)))
    for column in unit_columns(map(str, table)):
        cells = texts(table[column])
        short = cells.str.len().max() <= LONGEST_KEY if len(cells) else False
        is_rater = column in options.kinds or column in settings
        if short and cells.is_unique and (cells != "").all() and not is_rater:
            return table.rename(columns={column: "unit_id"}), column
    return table, ""


# ---- kinds --------------------------------------------------------------------------------------


def _kinds_of_columns(table: pd.DataFrame, options: ScaleOptions) -> ScaleOptions:
    """Return the options with the kinds of raters that have columns, as far as inferred."""
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    if EVERYBODY in options.kinds:
        named = [rater for rater in options.kinds if rater != EVERYBODY]
        absent = [name for name in named if name not in table]
        grid = grid_in(table, columns, replace(options, kinds=dict.fromkeys(named, "human")))
        if grid and absent:
            return everybody_of(options, grid.raters)
        able, group = label_columns(table, columns), alike(table, columns)
        return everybody_of(options, group if group and {*named} <= {*group} else able)
    if options.kinds:
        return options
    grid = grid_in(table, columns, options)
    if grid:
        kinds = _kinds_by_name(grid.raters)
        is_known = len(kinds) == len(grid.raters)
    else:
        able = label_columns(table, columns)
        group = alike(table, columns)
        kinds = _kinds_by_name(group)
        others = [column for column in able if column not in group and kind_by_word(column)]
        is_known = len(kinds) == len(group) > 1 and not others
    has_people = "human" in kinds.values()
    return replace(options, kinds=kinds, inferred=True) if is_known and has_people else options


def everybody_of(options: ScaleOptions, raters: Collection[str]) -> ScaleOptions:
    """Return the options with all raters that are not named in place of `*`."""
    kind = options.kinds.get(EVERYBODY)
    if kind is None:
        return options
    named = {rater: which for rater, which in options.kinds.items() if rater != EVERYBODY}
    others = dict.fromkeys((rater for rater in dict.fromkeys(raters) if rater not in named), kind)
    return replace(options, kinds={**named, **others}, inferred=True)


def _kinds_by_name(names: Sequence[str], *, are_people: bool = False) -> dict[str, str]:
    """Return the kinds of raters that a word shows, or that are persons' names next to a model."""
    kinds = {name: kind for name in names if (kind := kind_by_word(name))}
    others = [name for name in names if name not in kinds]
    if are_people:
        return {**kinds, **dict.fromkeys(others, "human")}
    people = [col for col in others if _PERSON.fullmatch(col) and not _NO_PERSON.fullmatch(col)]
    enough = len(people) >= _FEWEST_PEOPLE or "human" in kinds.values()
    if "model" in kinds.values() and enough and len(people) == len(others):
        kinds |= dict.fromkeys(people, "human")
    return kinds


def _unknown_spelled(
    table: pd.DataFrame, unknown: list[str], options: ScaleOptions, *, by_score: bool
) -> str:
    """Return options that name an export's raters, as people only where they seem to be persons."""
    raters = texts(table["rater_id"])
    kind_of = dict(zip(raters, table["rater_kind"], strict=True))
    names = [rater for rater in raters.unique() if kind_of[rater] in ("human", "model", "")]
    models = [name for name in names if kind_of[name] == "model" or MODEL_NAME.search(name)]
    if models and not by_score and not {*_NOBODY} & {*unknown} and not criteria(unknown):
        return kinds_spelled(names, options, {name: kind for name, kind in kind_of.items() if kind})
    return "human=[...] and model=[...]" if options.in_python else "--human NAME,... --model NAME"


def grid_in(table: pd.DataFrame, columns: Sequence[str], options: ScaleOptions) -> Grid | None:
    """The columns of labels for each rater and rubric: by the pattern declared, or as their names
    show. None where there are none.
    """
    if options.wide:
        return named_grid(table, options.wide, columns, options.kinds)
    if not {*options.kinds} - {*columns} and options.kinds:
        return None
    grid = guessed_grid(table, columns, options.kinds)
    return grid if grid and grid.sure else None
