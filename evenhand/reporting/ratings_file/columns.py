"""Find the columns of items, raters and labels in a table that others made, and tell annotators
from graders: as declared, or inferred if names and cells allow one interpretation only.

A table is *long*, with a row for each rating and columns of items, raters and labels, or *wide*,
with a row for each item and a column of labels for each rater. A wide table with a column for each
rater and rubric, such as `ann_clarity`, is a *grid*. `roles_in` decides on a table in three steps:

1. It is long if it has columns of items, raters and labels beyond doubt; these get our names.
2. Any other without a column of raters may be wide. Its items are named by a column of unique ids;
   its raters are the declared columns, those of a grid, or the largest group that shares labels.
3. Raters are annotators or graders as declared, where `*` is all that are not named; as a tool
   says; or as their names show.

What is in doubt stays as it is, and `refuse_missing` proposes options that decide it. In names of
variables, `ours` is a column of `study.tables.ratings`, and `theirs` the table's column for it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from evenhand.errors import InputError
from evenhand.exchange.readers.rows import Export, plain_kind
from evenhand.lazy import np, pd
from evenhand.reporting.ratings_file.declared import EVERYBODY, ScaleOptions
from evenhand.reporting.ratings_file.labels import MAX_LABELS, pattern_of
from evenhand.rubrics.options import TRUTH, options_in
from evenhand.study.tables.columns import (
    MAX_LISTED,
    columns_option,
    folded,
    likely_columns,
    listed,
    names_annotators,
    names_items,
    sure_columns,
    unit_columns,
)
from evenhand.study.tables.ratings import RATINGS_COLUMNS, texts

RATER, RUBRIC = "{rater}", "{rubric}"  # fields of a pattern of column names (`Grid`)
MODEL_NAME = re.compile(pattern_of("model_name"), re.I)
"""Names that a model may have; `plain_kind` recognises those that only a model has."""
_MODEL_WORD = re.compile(pattern_of("model_word"))  # "judge", "pred"
_PEOPLE_WORD = re.compile(pattern_of("people_word"))  # "expert", "worker"
LONGEST_KEY = 60  # characters; a longer cell is a text, even if it is repeated
_MOST_CELLS = 2_000  # different cells of a column that are checked
_DATE = re.compile(pattern_of("date"))
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.I)
_MEASURE = re.compile(pattern_of("measure"), re.I)  # "latency", "cost"
_FACT = re.compile(
    rf"(?i:(^|[_\W])({pattern_of('fact')})([_\W]|$)|^(is|has|was)[_ ])"
    r"|(?<=[a-z]) At$"  # "createdAt", not "threat"
)
"""Names of columns that describe a unit or its labels, such as `created_at` or `is_long`."""
_WHICH_RATER = re.compile(rf"(?i:(^|[_\W])({pattern_of('which_rater')})(?=[_\W]|$))")
_CRITERION = re.compile(rf"(is_?)?({pattern_of('criterion')})([ _-]?(score|rating|label))?", re.I)
_RESPONDENT = re.compile(pattern_of("respondent"), re.I)  # "response_id", of a survey
_RATERS = re.compile(r"annotator|worker|coder|rater|labell?er|turker|participant", re.I)
_spaced = partial(re.compile(r"(?<=[a-z])(?=[A-Z])").sub, " ")  # "humanScore" as "human Score"
_ID = re.compile(r"(^|[_\W])ids?$|Ids?$")
_YES_OR_NO = {word: usual for pair in TRUTH for word, usual in zip(pair, TRUTH[0], strict=True)}
"""Yes or no by each word that means the same, such as "true" or "f"."""
_FEWEST_ROWS = 5  # with fewer rows, equal sums of columns are no sign that these count annotators
_MOST_RATERS = 200  # with more columns of labels, a table has one for each unit, not each rater


def roles_in(
    table: pd.DataFrame, name: str, options: ScaleOptions, export: Export | None = None
) -> tuple[pd.DataFrame, ScaleOptions, str]:
    """Return the table with our names of columns; the options with the kinds of its raters; and the
    name that the column of items had, "" if items are rows. What cannot be inferred stays as it is.
    Messages call the table `name`. Raises InputError if a tool's `export`, with ratings by unit,
    has raters whose kind neither the export nor their names show.
    """
    table, roles = _as_long(table, options)
    usual_id = next((column for column in ("unit_id", "item_id") if column in table), "")
    id_column = options.columns.get("unit_id") or roles.get("unit_id") or usual_id
    if "rater_id" not in table:
        if not id_column:
            table, id_column = _with_ids(table, options)
        return table, _kinds_of_columns(table, options), id_column
    rater_column = options.columns.get("rater_id") or roles.get("rater_id", "")
    return *_with_rater_kinds(table, name, options, rater_column, export), id_column


def _as_long(table: pd.DataFrame, options: ScaleOptions) -> tuple[pd.DataFrame, dict[str, str]]:
    """Return a long table with our names for columns that are recognised beyond doubt, and
    `{ours: theirs}`; the table as it is, and {}, if one is in doubt or the table may be wide.
    """
    names = [str(column) for column in table]
    is_declared_wide = options.wide or {*options.kinds} & {*names}  # raters are columns
    if "rater_id" in table or is_declared_wide or not len(table):
        return table, {}
    id_column = next((column for column in ("unit_id", "item_id") if column in table), "")
    needed = ["rater_id", "label"] if id_column else ["unit_id", "rater_id", "label"]
    absent = [column for column in needed if column not in table]
    foreign = [column for column in names if column not in RATINGS_COLUMNS]
    roles = ratings_columns(table, foreign, absent)
    unassigned = [column for column in foreign if column not in roles.values()]
    if roles.keys() != {*absent} or rater_label_columns(table, unassigned):
        return table, {}
    key = [id_column or roles["unit_id"], roles["rater_id"]]
    if table.duplicated([*key, *(["rubric"] if "rubric" in table else [])]).any():
        return table, {}  # a rater rates an item once
    if "rater_kind" not in table:
        roles |= sure_columns(unassigned, ["rater_kind"], partial(fits, table))
    return table.rename(columns={theirs: ours for ours, theirs in roles.items()}), roles


def _with_ids(table: pd.DataFrame, options: ScaleOptions) -> tuple[pd.DataFrame, str]:
    """Return a wide table with its column of unique ids, if any, as `unit_id`, and its old name."""
    in_settings: set[str] = set()  # all values, of which some name columns that describe units
    for value in options.settings.values():
        in_settings.update(map(str, value if isinstance(value, (tuple, list)) else (value,)))
    for column in unit_columns(map(str, table)):
        cells = texts(table[column])
        are_short = len(cells) and cells.str.len().max() <= LONGEST_KEY
        is_declared = column in options.kinds or column in in_settings
        if are_short and cells.is_unique and (cells != "").all() and not is_declared:
            return table.rename(columns={column: "unit_id"}), column
    return table, ""


# ---- the cells and the name of a column ---------------------------------------------------------


def fits(table: pd.DataFrame, ours: str, column: str) -> bool:
    """Return True if a column's cells are possible in our column `ours`, or a table has no rows."""
    if table.empty:
        return True
    values = texts(table[column]).unique()
    cells = list(filter(None, (str(value).strip() for value in values[:_MOST_CELLS])))
    if not cells:
        return False
    is_tiny = len(table) < 3  # two rows do not show whether items and raters have several
    are_numbers = all(map(_NUMBER.fullmatch, cells))
    are_nested = all(map(is_nested, cells))
    are_short = all(len(cell) <= LONGEST_KEY and "\n" not in cell for cell in cells)
    if ours == "rater_kind":
        return set(cells) <= {"human", "model", "adjudicator"}
    if ours == "label" and are_nested:  # a list of options is a label
        return all(options_in(cell) for cell in cells)
    if are_nested or all(map(_DATE.fullmatch, cells)):
        return False
    if ours == "unit_id":  # of a long table, in which items have several rows; a text may be one
        return is_tiny or len(values) < len(table)
    if ours == "rater_id":
        has_fractions = are_numbers and any("." in cell for cell in cells)
        has_several = is_tiny or 2 * len(values) <= len(table)  # two ratings by each rater
        return are_short and not has_fractions and has_several
    if ours == "label":
        is_measure = _MEASURE.search(column) and not _may_be_rater(column)
        return are_short and (len(cells) <= MAX_LABELS or (are_numbers and not is_measure))
    return are_short


def label_columns(
    table: pd.DataFrame, columns: Sequence[str], *, or_doubtful: bool = False
) -> list[str]:
    """Return the columns of few short cells that are no dates, nested values or facts by name."""
    possible = _possible_labels(table, columns, or_doubtful=or_doubtful)
    possible = [column for column in possible if not names_items(column)]
    return [column for column in possible if len(_distinct_labels(table, column)) <= MAX_LABELS]


def _possible_labels(
    table: pd.DataFrame, columns: Sequence[str], *, or_doubtful: bool = False
) -> list[str]:
    """Return the columns that may hold labels, or many different scores, by cells and names."""
    possible = [column for column in columns if fits(table, "label", column)]
    return [col for col in possible if not is_fact(col) or (or_doubtful and _may_be_rater(col))]


def rater_label_columns(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns that may be several raters' labels on one question: the largest group that
    shares labels, else columns of scores; [] if two groups are largest, or if the cells are counts.
    Facts by name whose labels are shared are among them if they may be raters' ("human_type_a").
    """
    groups: list[tuple[list[str], set[str]]] = []  # columns, and the labels of any of them
    for column in label_columns(table, columns, or_doubtful=True):
        group, labels = [column], _distinct_labels(table, column)
        for other, other_labels in [*groups]:
            if labels & other_labels:  # the two become one group
                groups.remove((other, other_labels))
                group, labels = [*other, *group], labels | other_labels
        groups.append((group, labels))
    groups = [group for group in groups if not all(map(is_fact, group[0]))]
    if not groups:
        return _score_columns(table, columns)
    largest, *smaller = sorted((group for group, _ in groups), key=len, reverse=True)
    if len(largest) < 2 or (smaller and len(smaller[0]) == len(largest)):
        return []
    return [] if are_counts(table, largest) else [column for column in columns if column in largest]


def _graders_of_scores(
    table: pd.DataFrame, columns: Sequence[str], raters: Sequence[str]
) -> list[str]:
    """Return columns of many different scores named like graders, if no rater is named so."""
    if "model" in map(kind_by_word, raters):
        return []
    possible = _possible_labels(table, columns)
    return [name for name in possible if name not in raters and kind_by_word(name) == "model"]


def _score_columns(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return the columns of many different numbers if there are several with overlapping ranges."""
    ranges = {}
    for column in _possible_labels(table, columns, or_doubtful=True):
        cells = [cell for cell in texts(table[column]).unique() if cell.strip()]
        if not names_items(column) and all(map(_NUMBER.fullmatch, map(str.strip, cells))):
            values = [float(cell) for cell in cells]
            ranges[column] = min(values), max(values)
    sure = [limits for column, limits in ranges.items() if not is_fact(column)]
    if len(sure) < 2:
        return []
    low, high = max(low for low, _ in sure), min(high for _, high in sure)
    sharing = [name for name, (start, end) in ranges.items() if start <= high and end >= low]
    return sharing if low <= high else []


def are_counts(table: pd.DataFrame, columns: Sequence[str]) -> bool:
    """Return True if columns count the annotators who gave each label: all rows have one sum."""
    if len(columns) < 2 or len(table) < _FEWEST_ROWS:
        return False
    cells = [texts(table[column]) for column in columns]
    if not all(column.str.fullmatch("[0-9]{1,9}").all() for column in cells):
        return False
    counts = np.array([column.astype(int) for column in cells])
    sums = counts.sum(axis=0)
    return bool((sums == sums[0]).all() and sums[0] > 1 and (counts == 0).any())


def kind_by_word(name: str) -> str:
    """Return the kind of rater that a word in a name shows: human or model; "" if none does.

    >>> [kind_by_word(name) for name in ("annotator1", "judge", "LLM_label", "human score", "Ann1")]
    ['human', 'model', 'model', 'human', 'human']
    >>> [kind_by_word(name) for name in ("human_vs_model", "topic", "ann")]
    ['', '', '']
    """
    if kind := plain_kind(name):
        return kind
    spaced = re.sub(r"(?i)^ann(?=[ _.-]?\d)", "annot", _spaced(name))  # "ann1" is no first name
    words = re.findall(r"[a-z]+", spaced.casefold())
    is_human, is_model = (any(map(w.fullmatch, words)) for w in (_PEOPLE_WORD, _MODEL_WORD))
    if is_human == is_model:
        return ""
    return "human" if is_human else "model"


def is_fact(column: str) -> bool:
    """Return True if a column's name is that of a fact about a unit or its labels, or a measure."""
    return any(word.search(_spaced(column)) for word in (_FACT, _MEASURE))


def _may_be_rater(column: str) -> bool:
    """Return True if the name of a fact may also say which annotator or grader a rater is.

    >>> [_may_be_rater(name) for name in ("annotator_num_1", "expert_final", "gpt_cost", "type")]
    [True, True, False, False]
    """
    rest = _WHICH_RATER.sub("", _spaced(column))
    return kind_by_word(rest) != "" and not is_fact(rest)


def criteria(columns: Iterable[str]) -> list[str]:
    """Return the columns whose names are those of questions rather than of raters."""
    return [column for column in columns if _CRITERION.fullmatch(column.strip())]


def _distinct_labels(table: pd.DataFrame, column: str) -> set[str]:
    """Return the different labels of a column in lower case, with one word each for yes and no."""
    cells = {folded(str(cell)).casefold() for cell in texts(table[column]).unique()[:_MOST_CELLS]}
    cells -= {""}
    return {_YES_OR_NO[cell] for cell in cells} if cells <= _YES_OR_NO.keys() else cells


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
    """Return the table's columns for the `absent` ones, `{ours: theirs}`, if usual names or cells
    leave no doubt. In a long table a column has items if it has each value once for each rater,
    and labels if it alone has a few values that vary within items and within raters.
    """
    roles = sure_columns(columns, absent, partial(fits, table))

    def possible_columns(ours: str) -> list[str]:
        unassigned = (column for column in columns if column not in roles.values())
        return [column for column in unassigned if fits(table, ours, column)]

    if "rater_id" in absent and "rater_id" not in roles:
        raters = [column for column in possible_columns("rater_id") if _RATERS.search(column)]
        if len(raters) == 1:
            roles["rater_id"] = raters[0]
    rater = roles.get("rater_id", "rater_id")
    if rater not in table:
        return roles
    if "unit_id" in absent and "unit_id" not in roles:
        items = [
            column
            for column in possible_columns("unit_id")
            if not table.duplicated([column, rater]).any()
            # Any id is a fact by name, so the rest of the name decides: "session" in "session_ids".
            and not is_fact(column.removesuffix("s").removesuffix("id").rstrip("_ "))
            and not (texts(table[column]) == "").any()
        ]
        items = [column for column in items if _ID.search(column)] or items
        partitions = {tuple(table.groupby(name, sort=False).ngroup()) for name in items}
        if len(partitions) == 1:  # several columns may number the same items
            roles["unit_id"] = items[0]
    unit = roles.get("unit_id", "unit_id")
    if "label" in absent and "label" not in roles and unit in table:
        labels = [
            column
            for column in possible_columns("label")
            if len(_distinct_labels(table, column)) <= MAX_LABELS
            and all((table.groupby(key)[column].nunique() > 1).any() for key in (unit, rater))
        ]
        labels = [column for column in labels if not is_fact(column)] or labels
        if len(labels) == 1:
            roles["label"] = labels[0]
    return roles


# ---- columns for each rater and rubric ----------------------------------------------------------
_SEPARATORS = ("__", " - ", ": ", "::", ".", "/", "|", ":", "_", "-", " ")  # of parts of a name
_BRACKETS = ((" [", "]"), ("[", "]"), (" (", ")"), ("(", ")"))  # around the second part of a name
NameParts = tuple[str, str]  # the first and second part of a column's name
Splits = dict[str, list[NameParts]]  # by column: of a_b_c, ("a", "b_c") and ("a_b", "c")


class RaterAndRubric(NamedTuple):
    """The rater and the rubric of a column of labels."""

    rater: str
    rubric: str


@dataclass(frozen=True)
class Grid:
    """Columns of labels, each of one rater on one rubric, whose names follow a pattern."""

    pattern: str  # such as `{rater}_{rubric}`
    columns: Mapping[str, RaterAndRubric]
    is_sure: bool = True  # names show which part of a name is the rater
    is_complete: bool = True  # several raters have all of the rubrics, and none has more
    unlabelled: tuple[str, ...] = ()  # columns whose names follow the pattern, without labels

    @property
    def raters(self) -> list[str]:
        """The names of the raters."""
        return list(dict.fromkeys(column.rater for column in self.columns.values()))

    @property
    def rubrics(self) -> list[str]:
        """The names of the rubrics."""
        return list(dict.fromkeys(column.rubric for column in self.columns.values()))


def grid_in(table: pd.DataFrame, columns: Sequence[str], options: ScaleOptions) -> Grid | None:
    """Return the grid of the declared pattern, or one beyond doubt by names; else None."""
    if options.wide:
        return named_grid(table, options.wide, columns, options.kinds)
    if options.kinds and {*options.kinds} <= {*columns}:
        return None  # every declared rater is itself a column
    grid = guessed_grid(table, columns, options.kinds)
    return grid if grid and grid.is_sure and grid.is_complete else None


def named_grid(
    table: pd.DataFrame, pattern: str, columns: Sequence[str], raters: Collection[str]
) -> Grid:
    """Return the columns of labels whose names follow a pattern: those of these raters, or, with
    `*` among them or with none, of all. Raises InputError if the pattern is not valid.
    """
    # Texts and fields in turn: the text before, a field, the mark between, a field, the text after.
    pieces = re.split(r"(\{rater\}|\{rubric\})", pattern)
    if sorted(pieces[1::2]) != [RATER, RUBRIC] or not pieces[2]:
        raise InputError(
            f"--wide is {pattern!r}; write {RATER} and {RUBRIC} once each with a mark between "
            f"them, such as {RATER}_{RUBRIC}"
        )
    before, first_field, separator, _, after = pieces
    as_pair = partial(_rater_and_rubric, is_rater_last=first_field == RUBRIC)
    splits_of = _splits(columns, before, separator, after)
    pairs_of = {column: [*map(as_pair, splits)] for column, splits in splits_of.items()}
    possible = [column for column in _possible_labels(table, columns) if column in pairs_of]
    if not raters or EVERYBODY in raters:
        # Sure are the pairs in which several raters are combined with several rubrics, and those of
        # declared raters. The pair of any other column is its first one with a rubric of these.
        largest = _largest_product({column: splits_of[column] for column in possible})
        sure = [as_pair(parts) for parts in largest.values()]
        sure += [pair for name in possible for pair in pairs_of[name] if pair.rater in raters]
        rubrics = {pair.rubric for pair in sure}
        raters = {pair.rater for pair in sure}
        for column in {*possible} - largest.keys():
            raters.update([pair.rater for pair in pairs_of[column] if pair.rubric in rubrics][:1])
    pairs, unlabelled = {}, []
    for column, column_pairs in pairs_of.items():
        of_raters = [pair for pair in column_pairs if pair.rater in raters]
        if of_raters and column in possible:
            pairs[column] = max(of_raters, key=lambda pair: len(pair.rater))  # "gpt_4", not "gpt"
        elif of_raters:
            unlabelled.append(column)
    return Grid(pattern, pairs, unlabelled=tuple(unlabelled))


def guessed_grid(
    table: pd.DataFrame, columns: Sequence[str], raters: Collection[str] = ()
) -> Grid | None:
    """Return the grid of the columns of labels whose names combine raters, of whom several have the
    same rubrics, or these `raters` with rubrics; None if there is none, or a rater has no column.
    """
    possible = _possible_labels(table, columns)
    # The mark between the parts of a name and the one after them, such as "_" and "", or "[", "]".
    marks = (*_BRACKETS, *((separator, "") for separator in _SEPARATORS))
    splits = {mark: _splits(possible, "", *mark) for mark in marks}
    products = {mark: _largest_product(splits[mark]) for mark in marks}
    if not (has_product := any(products.values())):
        products = {mark: _incomplete_product(splits[mark]) for mark in marks}
    (separator, after), parts_of = max(products.items(), key=lambda item: len(item[1]))
    # A whole name such as "gpt-4" is a rater's, and no part of it a rubric.
    if not parts_of or (not raters and all(map(plain_kind, parts_of))):
        return None
    is_rater_last = _is_rater_last(parts_of, raters)  # None if not known
    first, second = (RUBRIC, RATER) if is_rater_last else (RATER, RUBRIC)
    pattern = f"{first}{separator}{second}{after}"
    pairs = [_rater_and_rubric(parts, is_rater_last) for parts in parts_of.values()]
    rubrics = {pair.rubric for pair in pairs}
    named_raters = raters or ([] if has_product else {pair.rater for pair in pairs})
    named = named_grid(table, pattern, columns, named_raters).columns.items()
    # Among them are columns of raters who lack some of the rubrics.
    grid = Grid(pattern, {name: pair for name, pair in named if pair.rubric in rubrics})
    if raters:  # declared ones, which leave no doubt
        return grid if {*raters} <= {*grid.raters} else None
    others = named_grid(table, pattern, columns, grid.raters).columns.keys() - grid.columns.keys()
    is_complete = has_product and not label_columns(table, [*others])
    # Numbers may count anything: raters, rubrics or repeats.
    columns_of_parts = zip(*parts_of.values(), strict=True)  # all first parts, all second parts
    has_numbers = any(all(map(str.isdecimal, parts)) for parts in columns_of_parts)
    is_sure = is_rater_last is not None and not has_numbers
    return replace(grid, is_sure=is_sure, is_complete=is_complete)


def _splits(columns: Sequence[str], before: str, separator: str, after: str) -> Splits:
    """Return by column the parts of its name, for each place where the separator can split it."""
    splits = {}
    for column in columns:
        if not (column.startswith(before) and column.endswith(after)):
            continue
        name = column[len(before) : len(column) - len(after)]
        starts = [start for start in range(1, len(name)) if name.startswith(separator, start)]
        both_parts = [(name[:start], name[start + len(separator) :]) for start in starts]
        splits[column] = [parts for parts in both_parts if all(part.strip() for part in parts)]
    return splits


def _largest_product(splits: Splits) -> dict[str, NameParts]:
    """Return by column the parts of its name, for the largest set of columns that combine each of
    two or more first parts with each of two or more second parts; {} for none. In a tie few second
    parts are numbers (1 of human_1 is no rubric), then the first parts are short.
    """
    columns_of: dict[str, dict[str, str]] = {}  # by the first part, then the second
    for column, column_splits in splits.items():
        for first, second in column_splits:
            columns_of.setdefault(first, {})[second] = column
    firsts_by_seconds: dict[frozenset[str], list[str]] = {}
    for first, by_second in columns_of.items():
        firsts_by_seconds.setdefault(frozenset(by_second), []).append(first)

    def preference(candidate: tuple[frozenset[str], list[str]]) -> tuple[int, int, int]:
        seconds, firsts = candidate
        n_numbers = sum(second[:1].isdecimal() for second in seconds)
        return len(seconds) * len(firsts), -n_numbers, -sum(map(len, firsts))

    products = [pair for pair in firsts_by_seconds.items() if min(map(len, pair)) >= 2]
    if not products:
        return {}
    seconds, firsts = max(products, key=preference)
    parts = {columns_of[first][second]: (first, second) for first in firsts for second in seconds}
    return {column: parts[column] for column in splits if column in parts}


def _incomplete_product(splits: Splits) -> dict[str, NameParts]:
    """Return by column the parts of its name, for columns that share one with another, if some
    column shares both, and questions are among the parts; {} for none.
    """
    column_of = {parts: name for name, all_parts in splits.items() for parts in all_parts}
    firsts, seconds = (Counter(parts[position] for parts in column_of) for position in (0, 1))
    if not any(firsts[first] > 1 and seconds[second] > 1 for first, second in column_of):
        return {}
    shared = {
        column: parts
        for parts, column in column_of.items()
        if firsts[parts[0]] > 1 or seconds[parts[1]] > 1
    }
    return shared if criteria({part for parts in shared.values() for part in parts}) else {}


def _rater_and_rubric(parts: NameParts, is_rater_last: bool | None) -> RaterAndRubric:
    """Return the rater and rubric that are the two parts of a column's name."""
    first, second = parts
    return RaterAndRubric(second, first) if is_rater_last else RaterAndRubric(first, second)


def _is_rater_last(parts_of: Mapping[str, NameParts], raters: Collection[str]) -> bool | None:
    """Return True if the second part of the names is the rater; None if that is not known."""
    firsts, seconds = map(set, zip(*parts_of.values(), strict=True))
    if raters:
        return not set(raters) & firsts
    # Signs of rubrics, the surest first: if only the first or only the second parts have a sign,
    # these are the rubrics, and the other parts are the raters.
    has_no_model = [not any(map(MODEL_NAME.search, names)) for names in (firsts, seconds)]
    has_questions = [bool(criteria(names)) for names in (firsts, seconds)]
    signs = (has_no_model, has_questions)
    return next((of_firsts for of_firsts, of_seconds in signs if of_firsts != of_seconds), None)


# ---- messages on missing columns -----------------------------------------------------------------


def refuse_missing(table: pd.DataFrame, name: str, options: ScaleOptions) -> None:
    """Raise InputError if a table lacks columns of a long table, proposing options that name its
    columns or raters and that its cells do not contradict.
    """
    needed = ["unit_id", "rater_id", *([] if options.kinds else ["rater_kind"]), "label"]
    absent = [column for column in needed if column not in table]
    if not absent:
        return
    names = [str(column) for column in table]
    foreign = [column for column in names if column not in RATINGS_COLUMNS]
    likely = likely_columns(foreign, absent, partial(fits, table))
    if len(table):
        for ours, theirs in ratings_columns(table, foreign, absent).items():
            if theirs not in likely.values():
                likely.setdefault(ours, theirs)
    spaced = [column for column in names if column.strip() in absent]
    spaced += [column for column in likely.values() if column != column.strip()]
    if spaced:
        raise InputError(
            f"{name}: the column name {spaced[0]!r} begins or ends with a space; remove spaces "
            "next to the commas"
        )
    if "rater_id" in absent and len(table):
        # A column called label may be one of several raters'.
        wide = [column for column in names if column in foreign or column == "label"]
        labels = rater_label_columns(table, wide)
        if likely.get("rater_id") in (None, *labels):  # else it has raters' names: a long table
            _refuse_wide(table, name, wide, labels, options)
    fault = f"{name}: the column {absent[0]!r} is missing (it has {listed(table.columns)})"
    if absent == ["rater_kind"]:
        fault = f"{name} has no column 'rater_kind'"
    raise InputError(f"{fault}; {', and '.join(_remedies(table, absent, likely, options))}")


def _refuse_wide(
    table: pd.DataFrame, name: str, columns: list[str], labels: list[str], options: ScaleOptions
) -> None:
    """Raise InputError if columns seem to be raters' labels (`labels`), or counts of them."""
    possible = label_columns(table, columns)
    if not labels and are_counts(table, possible):
        raise InputError(
            f"{name}: the columns {listed(possible)} hold how many annotators gave each label; "
            "agreement takes the label of each annotator: give a table with these"
        )
    if grid := guessed_grid(table, columns):
        names = f"({listed(grid.raters)}; {listed(grid.rubrics)})"
        if not grid.is_sure:
            raise InputError(
                f"{name} has a column for each pair of two names {names}; say which of them is the "
                f"annotator, with {options.spelled('wide', 'PATTERN')} such as "
                f"{RATER}_{RUBRIC}, or name the raters' columns with --human and --model"
            )
        which = "each" if grid.is_complete else "some pairs of"
        raise InputError(
            f"{name} has a column for {which} rater and rubric {names}; read them with "
            f"{options.spelled('wide', grid.pattern)}{', ' if options.in_python else ' '}"
            f"{kinds_spelled(grid.raters, options)}"
        )
    questions = criteria(labels or possible)
    if questions and not any(map(kind_by_word, labels)):
        raise InputError(
            f"{name} has labels by question ({listed(questions)}), and no column says who gave "
            f"them; add one, and {_naming({'rater_id': 'COLUMN'}, options)}"
        )
    # A survey has a column of respondents, or fewer rows than columns of labels.
    has_few_rows = len(labels) > max(len(table), _MOST_RATERS)
    is_survey = "criterion" not in table and any(map(_RESPONDENT.search, columns))
    if labels and (has_few_rows or is_survey):
        raise InputError(
            f"{name} seems to have a row for each person and a column for each unit; write a row "
            "for each rating, with the columns unit_id, rater_id, rater_kind and label"
        )
    raters = [*labels, *_graders_of_scores(table, columns, labels)]
    if options.in_python or labels:  # without labels, `_remedies` proposes it for a command line
        raise InputError(
            f"{name} has no column 'rater_id'; name the columns of the raters' labels with "
            + kinds_spelled((column for column in raters if column not in questions), options)
        )


def _remedies(
    table: pd.DataFrame, absent: Sequence[str], likely: dict[str, str], options: ScaleOptions
) -> list[str]:
    """Return advice on absent columns: name the `likely` ones ({ours: theirs}), add the others."""
    hint = ""
    if len(table) and ("rater_id" in likely or "rater_id" not in absent):
        likely, questions = _with_guesses(table, absent, likely)
        hint = f" (one question at a time: {listed(questions)})" if len(questions) > 1 else ""
    unnamed = [column for column in absent if column not in likely]
    remedies = [_naming(likely, options) + hint] if likely else []
    rater_column = likely.get("rater_id", "rater_id")
    if "rater_kind" in unnamed and rater_column in table:
        raters = [name for name in texts(table[rater_column]).unique() if name]
        remedies.append(f"say who the raters are with {kinds_spelled(raters, options)}")
        unnamed.remove("rater_kind")
    if unnamed and likely:
        remedies.append(f"add {', '.join(unnamed)}")
    elif unnamed:
        remedy = _naming(dict.fromkeys(unnamed, "COLUMN"), options)
        if "rater_id" in unnamed:
            wide = "if each rater has a column of labels, name these with --human and --model"
            remedy += f", or {wide}"
        remedies.append(remedy)
    return remedies


def _with_guesses(
    table: pd.DataFrame, absent: Sequence[str], likely: dict[str, str]
) -> tuple[dict[str, str], list[str]]:
    """Return the `likely` columns with those of labels and rubrics that the cells of a long table
    suggest; and, if labels are guessed, all columns that may hold some, each for one question.
    """
    free = [str(name) for name in table if name not in (*RATINGS_COLUMNS, *likely.values())]
    key = [likely.get(column, column) for column in ("unit_id", "rater_id")]
    if "rubric" not in table and {*key} <= {*table} and table.duplicated(key).any():
        # A column of rubrics distinguishes ratings of one unit by one rater.
        unique = [column for column in free if not table.duplicated([*key, column]).any()]
        rubrics = [name for name in unique if texts(table[name]).nunique() <= MAX_LABELS]
        likely |= likely_columns(rubrics, ["rubric"], lambda _, col: fits(table, "label", col))
        # Without one, what has a usual name of items may be their groups: documents of claims.
        if "unit_id" in likely and "rubric" not in likely:
            roles = ratings_columns(table.rename(columns={key[1]: "rater_id"}), unique, ["unit_id"])
            likely, key[0] = likely | roles, roles.get("unit_id", key[0])
    labels, questions = label_columns(table, free), list[str]()
    if key[0] in table:  # a column with one value for each item has no labels
        by_unit = table.groupby(key[0])
        labels = [column for column in labels if (by_unit[column].nunique() > 1).any()]
    if labels and "label" in absent and "label" not in likely:
        questions = criteria(labels) or labels
        likely = {**likely, "label": questions[0]}
    return likely, questions


def _naming(columns: dict[str, str], options: ScaleOptions) -> str:
    """Return the advice to name columns, `{ours: theirs}`, in Python or by an option."""
    if options.in_python:
        pairs = ", ".join(f"{theirs!r}: {ours!r}" for ours, theirs in columns.items())
        return f"rename what you have with .rename(columns={{{pairs}}})"
    return f"say what they are called with {columns_option(columns)}"


def kinds_spelled(
    raters: Iterable[str], options: ScaleOptions, kind_of: Mapping[str, str] | None = None
) -> str:
    """Return options that declare raters' kinds (`kind_of`, else guessed by name)."""
    by_kind: dict[str, list[str]] = {"human": [], "model": []}
    for rater in dict.fromkeys(raters):
        guess = kind_by_word(rater) or ("model" if MODEL_NAME.search(rater) else "human")
        by_kind[(kind_of or {}).get(rater, guess)].append(rater)
    too_many = [kind for kind, names in by_kind.items() if len(names) > MAX_LISTED]
    if too_many:  # then it is `*`, all raters that are not named, which only one kind can be
        by_kind[too_many[0]] = [EVERYBODY]
    declared = [options.spelled(kind, *names) for kind, names in by_kind.items() if names]
    if options.in_python:
        example = f", such as {', '.join(declared)}" if declared else ""
        return f"human=[...] and model=[...]{example}"
    return " ".join(declared)


# ---- kinds of raters ----------------------------------------------------------------------------
_API_NAMES = ("API", "sdk")  # names in tools' exports for a score that was sent by an API
_NO_PERSON = re.compile(pattern_of("no_person"), re.I)  # names of columns rather than persons
_PERSON = re.compile(r"[^\W\d_]{2,20}|[^\s@,]+@[^\s@,]+\.[a-z]+", re.I)  # a first name, an e-mail
_FEWEST_PEOPLE = 2  # the fewest raters with names of persons who are taken for annotators


def _with_rater_kinds(
    table: pd.DataFrame, name: str, options: ScaleOptions, rater_column: str, export: Export | None
) -> tuple[pd.DataFrame, ScaleOptions]:
    """Return a long table and options, one of which has the kinds of all raters if these are known:
    as declared, with names in place of `*`; as the table says; or as a tool says, and as names
    show. `rater_column` was the name of the column of raters.
    """
    raters = texts(table["rater_id"])
    if export is not None and export.guessed_kinds:  # what the user says of a rater counts more
        table = table.assign(rater_kind=table["rater_kind"].mask(raters.isin([*options.kinds]), ""))
    options = with_everybody_named(options, raters)
    if options.kinds:
        return table, options
    # A tool's records, unlike a table, name units; their reader fills in the kinds that it knows.
    tool_export = export if export is not None and export.by_unit else None
    if "rater_kind" in table and tool_export is None:
        return table, options
    rater_kinds = raters.map(lambda _: "") if tool_export is None else table["rater_kind"]
    without_kind = list(dict.fromkeys(raters[rater_kinds == ""]))
    kinds = _kinds_by_name(without_kind, are_people=names_annotators(rater_column))
    unknown = [rater for rater in without_kind if rater not in kinds]
    if unknown and tool_export is not None:
        raise InputError(
            f"{name} does not say which raters are annotators and which are graders "
            f"({listed(unknown)}); say so with "
            + _unknown_spelled(table, unknown, options, by_score=tool_export.by_score)
        )
    if unknown or not without_kind:
        return table, options
    rater_kinds = rater_kinds.where(rater_kinds != "", raters.map(kinds))
    return table.assign(rater_kind=rater_kinds), options


def _unknown_spelled(
    table: pd.DataFrame, unknown: list[str], options: ScaleOptions, *, by_score: bool
) -> str:
    """Return options for the kinds of a tool's raters: with names if one seems to be a model's,
    unless they are names of scores (`by_score`, or by those of the raters of an `unknown` kind).
    """
    raters = texts(table["rater_id"])
    kind_of = dict(zip(raters, table["rater_kind"], strict=True))
    names = [rater for rater in raters.unique() if kind_of[rater] in ("human", "model", "")]
    models = [name for name in names if kind_of[name] == "model" or MODEL_NAME.search(name)]
    are_scores = by_score or {*_API_NAMES} & {*unknown} or criteria(unknown)
    if models and not are_scores:
        return kinds_spelled(names, options, {name: kind for name, kind in kind_of.items() if kind})
    return "human=[...] and model=[...]" if options.in_python else "--human NAME,... --model NAME"


def _kinds_of_columns(table: pd.DataFrame, options: ScaleOptions) -> ScaleOptions:
    """Return the options with the kinds of the raters whose labels are columns: of all in place of
    `*`, or, if none is declared, as their names show beyond doubt.
    """
    columns = [str(column) for column in table if column not in RATINGS_COLUMNS]
    if EVERYBODY in options.kinds:
        return _everybody_in(table, columns, options)
    if options.kinds:
        return options
    grid = grid_in(table, columns, options)
    raters = grid.raters if grid else rater_label_columns(table, columns)
    kinds = _kinds_by_name(raters)
    # Without a grid, a column that seems a rater's only by its name, or its labels, leaves a doubt;
    # and so do columns of a grid with gaps.
    guess = None if grid else guessed_grid(table, columns)
    others = [*label_columns(table, columns), *_graders_of_scores(table, columns, raters)]
    others = [column for column in others if column not in raters]
    is_doubtful = any(map(kind_by_word, others)) or any(map(is_fact, raters))
    is_doubtful |= guess is not None and not guess.is_complete
    is_known = len(kinds) == len(raters) > 1 and (grid is not None or not is_doubtful)
    has_people = "human" in kinds.values()
    return replace(options, kinds=kinds, inferred=True) if is_known and has_people else options


def _everybody_in(table: pd.DataFrame, columns: list[str], options: ScaleOptions) -> ScaleOptions:
    """Return the options with raters in place of `*`, such as `--model gpt --human '*'`. If gpt is
    no column, but a part of one such as gpt_clarity, these are the raters of the grid. Otherwise
    they are the columns that share labels if gpt is one of these, else all columns of labels.
    """
    declared = [rater for rater in options.kinds if rater != EVERYBODY]
    named = dict.fromkeys(declared, "human")  # for `grid_in`, which uses no kind and no "*"
    grid = grid_in(table, columns, replace(options, kinds=named))
    if grid and (options.wide or not {*declared} <= {*table}):
        everybody = named_grid(table, grid.pattern, columns, [*declared, EVERYBODY])
        return with_everybody_named(replace(options, wide=grid.pattern), everybody.raters)
    raters = rater_label_columns(table, columns)
    if not raters or not {*declared} <= {*raters}:
        raters = label_columns(table, columns)
    return with_everybody_named(options, raters)


def with_everybody_named(options: ScaleOptions, raters: Collection[str]) -> ScaleOptions:
    """Return the options with the `raters` that they do not name in place of `*`."""
    if EVERYBODY not in options.kinds:
        return options
    kinds = {rater: options.kinds.get(rater, options.kinds[EVERYBODY]) for rater in raters}
    declared = {rater: kind for rater, kind in options.kinds.items() if rater != EVERYBODY}
    return replace(options, kinds={**declared, **kinds}, inferred=True)


def _kinds_by_name(names: Sequence[str], *, are_people: bool = False) -> dict[str, str]:
    """Return the kinds of raters whose names show it by a word. The others are annotators if they
    are called so (`are_people`), or if all have names of persons, none that of a question, and
    there are a model and several annotators, of whom not several are known by a word.
    """
    kinds = {name: kind for name in names if (kind := kind_by_word(name))}
    unknown = [name for name in names if name not in kinds]
    if are_people:
        return {**kinds, **dict.fromkeys(unknown, "human")}
    is_person = [_PERSON.fullmatch(name) and not _NO_PERSON.fullmatch(name) for name in unknown]
    n_known = list(kinds.values()).count("human")
    have_names = n_known < _FEWEST_PEOPLE <= n_known + len(unknown) and all(is_person)
    if "model" in kinds.values() and have_names and not criteria(unknown):
        kinds |= dict.fromkeys(unknown, "human")
    return kinds
