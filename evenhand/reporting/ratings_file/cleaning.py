"""Labels that were meant to be another label, or none: reported, or corrected if asked."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.rubrics.options import plain_number, whole_numbers_in_a_row
from evenhand.study.tables.columns import (
    commonest,
    folded,
    look,
    lookalikes,
    shortened,
    spelled_out,
)
from evenhand.study.tables.formats import FIRST_ROW, row_number
from evenhand.study.tables.ratings import TRUTH
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from evenhand.reporting.ratings_file.declared import ScaleOptions


_WORDS = table_of("evenhand.reporting.ratings_file", "words.toml")
"""Words by which tables that others made are recognised."""


def pattern_of(name: str) -> str:
    """Return the pattern of any of the words in a list of `words.toml`."""
    return "|".join(_WORDS[name])


MAX_LENGTH = 200
NO_LABEL = frozenset(("", "nan", "null", "na", "n/a", "#n/a", "<na>", "nat"))
"""Words of programs for a missing value, in lower case."""
_PERHAPS_NO_LABEL = frozenset(_WORDS["perhaps_no_label"])
_MOST_LABELS = 20
"""With more different labels a scale has to be declared anyway."""
_FEWEST_LABELS = 10
"""A rater with fewer labels shows no way of spelling, and what only they use is no code."""
_MOST_ALONE, _SHARE_ALONE = 2, 0.02
"""A label that one rater alone uses so often, or on such a share of items, is left as it is."""


@dataclass(frozen=True)
class Places:
    """The places of labels in the input, for messages.

    `rows` are the row numbers of a wide table by the index of its long form, `columns` the names of
    its columns; the index of a long table has the rows itself. `units` are those of the rows of an
    export, which has no such rows.
    """

    source: str
    rows: Sequence[int] | None = None
    units: Sequence[str] | None = None
    columns: Sequence[str] | None = None

    def of(self, at: int, rater: str, label: str) -> str:
        """The subject of a sentence about the label in the row with index `at`."""
        shown = shortened(label)
        if self.units is not None:
            unit = shortened(self.units[at])
            return f"{self.source}, unit {unit!r}: the label {shown!r} of rater {rater!r}"
        if self.rows is None:
            return f"{self.source}, row {at + FIRST_ROW}: the label {shown!r} of rater {rater!r}"
        column = rater if self.columns is None else self.columns[at]
        return f"{self.source}, row {self.rows[at]}, column {column!r}: the label {shown!r}"

    def first(self, label: str, ratings: pd.DataFrame) -> str:
        """The subject of a sentence about the first rating with a label."""
        at = int((ratings["label"] == label).to_numpy().argmax())
        return self.of(int(ratings.index[at]), ratings["rater_id"].iloc[at], label)


def cleaned(
    ratings: pd.DataFrame, permitted: Sequence[str], options: ScaleOptions, places: Places
) -> tuple[pd.DataFrame, int, list[str]]:
    """Return the ratings of one rubric, with labels read as no label where they are declared so or
    are a program's word for it, and corrected where `options` ask for it; how many were corrected;
    and notes.

    `permitted` are the labels of a known scale, or () to take the labels seen. Raises InputError
    naming the first label that is a variant of another one, may mean a missing label, or is not on
    the scale.
    """
    kept = {folded(label): label for label in permitted}
    counts = _counts(ratings)
    missing = {folded(each) for each in options.missing}
    readings = {
        label: ""
        for label in counts
        if label in missing or (label not in kept and label.casefold() in NO_LABEL)
    }
    notes = []
    if readings:
        listed = ", ".join(f"{label} ({counts[label]:,})" for label in readings)
        notes.append(written("reading.no_label", labels=listed))
    readings |= {label: kept[label] for label in counts if kept.get(label, label) != label}
    ratings = _with_readings(ratings, readings)
    counts = _counts(ratings)
    doubtful = [label for label in counts if label not in permitted]
    variants = {} if options.normalise is False else _variants(counts, doubtful, permitted)
    for label in doubtful:
        fault = _fault_of(label)
        if not fault and label in variants and not options.normalise:
            cells = sum(counts[label] for label in variants)
            fault = _mismatch(label, variants[label], cells, options, is_known=bool(permitted))
        if not fault and permitted and label not in variants:
            fault = (
                f"is not one of the declared categories ({', '.join(permitted)}); correct it, "
                f"declare it, or read it as no label with {options.spelled('missing', label)}"
            )
        if fault:
            raise InputError(f"{places.first(label, ratings)} {fault}")
    ratings = _with_readings(ratings, variants)
    if not permitted and options.normalise is not False:
        _refuse_codes(ratings, options, places)
        notes += _used_by_one_rater(ratings, options, places)
    return ratings, sum(counts[label] for label in variants), notes


def _counts(ratings: pd.DataFrame) -> dict[str, int]:
    seen = ratings["label"].value_counts(sort=False).drop("", errors="ignore")
    return {str(label): int(count) for label, count in seen.items()}


def with_numbers(
    ratings: pd.DataFrame, permitted: Sequence[str], options: ScaleOptions, places: Places
) -> pd.DataFrame:
    """Return the ratings of one rubric with each number in its shortest form, 0.5 for 0.50, or as
    one of the `permitted`, if there are any.

    Raises InputError naming the first label that is no number, or none of the permitted.
    """
    known = {plain_number(label): label for label in permitted}
    missing = {folded(each) for each in options.missing}
    meant = {}
    for label in ratings["label"].unique():
        plain = plain_number(label)
        if label in missing or label.casefold() in NO_LABEL:
            continue
        if not plain or (known and plain not in known):
            fault = "is not a number; correct it"
            if plain:
                ends = f"from {permitted[0]} to {permitted[-1]}"
                fault = f"is none of the {len(permitted)} numbers {ends}; round or correct it"
            raise InputError(
                f"{places.first(label, ratings)} {fault}, or read it as no label with "
                f"{options.spelled('missing', label)}"
            )
        if label != known.get(plain, plain):
            meant[label] = known.get(plain, plain)
    return _with_readings(ratings, meant)


# ---- labels that may be none --------------------------------------------------------------------


def _refuse_codes(ratings: pd.DataFrame, options: ScaleOptions, places: Places) -> None:
    """Raise InputError for a label that may mean that there is none: a word such as skip that not
    all kinds of raters use, or a number apart from all others.
    """
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
        return
    first, others = codes[0], len(codes) - 1
    more = f" (as may {', '.join(map(repr, codes[1:4]))})" if others else ""
    kept = (
        options.spelled("categories", *_in_order([*counts]))
        if len(counts) <= _MOST_LABELS
        else options.spelled("no-normalise")
    )
    raise InputError(
        f"{places.first(first, ratings)} may mean that there is no label{more} "
        f"({counts[first]:,} {'cell' if counts[first] == 1 else 'cells'}); say so with "
        f"{options.spelled('missing', *codes)}, or keep it as a label with {kept}"
    )


def _in_order(labels: Sequence[str]) -> list[str]:
    """Labels as a scale would have them: numbers in their order, then words."""
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


def _used_by_one_rater(ratings: pd.DataFrame, options: ScaleOptions, places: Places) -> list[str]:
    """Return notes on labels of an unordered scale that no annotator, or only one rater, uses.

    Raises InputError where they are used so often that they would change what is found.
    """
    labelled = ratings[ratings["label"] != ""]
    counts = _counts(ratings)
    are_numbers = all(map(plain_number, counts)) and min(map(float, counts), default=0) >= 0
    if "unit_id" not in ratings or len(counts) < 2 or len(counts) > _MOST_LABELS or are_numbers:
        return []
    times = labelled.value_counts(["label", "rater_kind", "rater_id"]).reset_index(name="times")
    numbers = labelled["rater_id"].value_counts()
    many = numbers[numbers >= _FEWEST_LABELS].index
    if len(many) < 2:
        return []
    notes: list[str] = []
    by_rater = labelled.groupby("rater_id")["label"].agg(set)
    if sum(map(len, by_rater)) == len(counts):
        first, second = by_rater.index[:2]
        raise InputError(
            f"{places.source}: no two raters have a label in common (such as {first!r} and "
            f"{second!r}), so that none agree; are these answers to one question?"
        )
    has_people = (labelled["rater_kind"] == "human").any()
    for label, count in counts.items():
        users = times[times["label"] == label]
        kinds, raters = set(users["rater_kind"]), users["rater_id"].tolist()
        only_graders = has_people and kinds == {"model"}
        if (len(raters) > 1 and not only_graders) or raters[0] not in many:
            continue
        most = int(users["times"].max())
        if most <= _MOST_ALONE or most <= _SHARE_ALONE * numbers[raters[0]]:
            notes.append(written("reading.alone", label=label, raters=", ".join(raters)))
            continue
        meant = "" if only_graders else _stands_for(labelled, raters[0], label)
        who = "no annotator uses" if only_graders else "no other rater uses"
        where = f"; others label {meant!r} there" if meant else ""
        categories = options.spelled("categories", *_in_order([*counts]))
        raise InputError(
            f"{places.first(label, ratings)} is one that {who} ({count:,} "
            f"{'cell' if count == 1 else 'cells'}{where}); correct it if it stands for another "
            f"label, read it as no label with {options.spelled('missing', label)}, or "
            f"keep it with {categories}"
        )
    return notes


def _stands_for(labelled: pd.DataFrame, rater: str, label: str) -> str:
    """Return the label that others give nearly always where a rater gives a label of their own, and
    that this rater never gives; "" where there is none.
    """
    own = labelled[labelled["rater_id"] == rater]
    units = set(own.loc[own["label"] == label, "unit_id"])
    others = labelled[labelled["unit_id"].isin(units) & (labelled["rater_id"] != rater)]
    if others.empty:
        return ""
    share = others["label"].value_counts(normalize=True)
    is_it = share.iloc[0] >= 0.8 and share.index[0] not in set(own["label"])
    return str(share.index[0]) if is_it else ""


# ---- labels spelled in several ways -------------------------------------------------------------


def _fault_of(label: str) -> str:
    """Why this is a label of no scale; "" where it may be."""
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
    found = {}
    for label in doubtful:
        key = look(label)
        ways = forms.get(usual.get(key, key), Counter())
        if ways and (len(ways) == 1 or not permitted):
            found[label] = commonest(ways, ways)
    return {label: meant for label, meant in found.items() if meant != label}


def _usual_truth(counts: Mapping[str, int], permitted: Collection[str]) -> dict[str, str]:
    """Return the usual word for every word for yes or no among plain labels: the `permitted` one,
    or the commonest. Empty where a label is no such word, or where all are of one kind.
    """
    of_word = {word: (pair, place) for pair in TRUTH for place, word in enumerate(pair)}
    words = list(counts)
    if not all(word in of_word for word in words):
        return {}
    kinds = [pair for pair in TRUTH if any(of_word[word][0] == pair for word in words)]
    known = permitted or counts
    whole = [pair for pair in kinds if all(word in known for word in pair)]
    if len(kinds) < 2 or not whole:
        return {}
    usual = max(whole, key=lambda pair: sum(counts[word] for word in pair))
    return {word: usual[of_word[word][1]] for word in words}


def _mismatch(label: str, meant: str, cells: int, options: ScaleOptions, *, is_known: bool) -> str:
    """Return how a label differs from the one it looks like, and the options that settle it."""
    alike = f"says in another word what {meant!r} says"
    if label.casefold() == meant.casefold():
        alike = f"differs from {meant!r} only by case"
    elif look(label) == look(meant):
        alike = f"looks like {spelled_out(meant)}, and is {spelled_out(label)}"
    apart = f"{options.spelled('no-normalise')} keeps them apart"
    if is_known:
        apart = f"or declare it among {options.spelled('categories')}"
    return (
        f"{alike}; {options.spelled('normalise')} reads them as one "
        f"({cells:,} {'cell' if cells == 1 else 'cells'} would change), {apart}"
    )


def _with_readings(ratings: pd.DataFrame, readings: Mapping[str, str]) -> pd.DataFrame:
    """Labels, and the categories that probabilities name, as they are read."""
    if not readings:
        return ratings
    shares = ratings["probabilities"]
    renamed = shares.where(shares == "", shares.map(lambda text: _renamed(text, readings)))
    return ratings.assign(label=ratings["label"].replace(dict(readings)), probabilities=renamed)


def _renamed(text: str, readings: Mapping[str, str]) -> str:
    given = json.loads(text) if text else {}
    renamed = {readings.get(key) or key: share for key, share in given.items()}
    if renamed.keys() == given.keys() or len(renamed) < len(given):
        return text  # two shares of one category are not ours to add up
    return json.dumps(renamed)


# ---- items and raters that look alike -----------------------------------------------------------


def joined_names(
    table: pd.DataFrame, options: ScaleOptions, source: str
) -> tuple[pd.DataFrame, list[str]]:
    """Return ratings whose items, and raters of one kind, that look alike go by one name, where
    `options` ask for it; and a note.

    Items that one rater labelled both, and raters who labelled one item both, are different, and so
    are raters who are named one by one. Raises InputError naming two others that look alike, unless
    it is declared whether they are the same.
    """
    if options.normalise is False:
        return table, []
    notes = []
    for column, other in (("rater_id", "unit_id"), ("unit_id", "rater_id")):
        meant = dict(_same(table, column, other, options))
        if not meant:
            continue
        if not options.normalise:
            name, usual = next(iter(meant.items()))
            what = "rater" if column == "rater_id" else "item"
            row = row_number(table, int((table[column] == name).to_numpy().argmax()))
            more = f" ({len(meant):,} such {what}s)" if len(meant) > 1 else ""
            shared = "labelled by both" if column == "rater_id" else "who labelled both"
            raise InputError(
                f"{source}, row {row}: the {what} {spelled_out(name)} looks like "
                f"{spelled_out(usual)}, and there is no {'item' if what == 'rater' else 'rater'} "
                f"{shared}{more}; say {options.spelled('normalise')} if they are the same, or "
                f"{options.spelled('no-normalise')} if not"
            )
        table = table.assign(**{column: table[column].replace(meant)})
        first = ", ".join(f"{name} as {usual}" for name, usual in [*meant.items()][:3])
        notes.append(written("reading.joined", what=column[:-3], count=len(meant), first=first))
    return table, notes


def _same(
    table: pd.DataFrame, column: str, other: str, options: ScaleOptions
) -> Iterator[tuple[str, str]]:
    """Yield names in a column that may be the same as another, with that one: those that look alike
    and have nothing in common in the `other` column under one rubric.
    """
    kinds = table["rater_kind"] if column == "rater_id" and "rater_kind" in table else None
    is_named = column == "rater_id" and not options.inferred
    named = options.kinds if is_named else {}
    groups = [
        [name for name in group if name not in named]
        for group in lookalikes(table[column].unique())
    ]
    alike = [name for group in groups for name in group if len(group) > 1]
    if not alike:
        return
    rows = table[table[column].isin(alike)]
    counts = {str(name): int(count) for name, count in rows[column].value_counts().items()}
    keys = [other, "rubric"] if "rubric" in rows else [other]
    met = {
        str(name): set(own[keys].itertuples(index=False, name=None))
        for name, own in rows.groupby(column)
    }
    kind_of = {} if kinds is None else dict(zip(table[column], kinds, strict=True))
    for group in groups:
        if len(group) < 2 or len({kind_of.get(name) for name in group}) > 1:
            continue
        if sum(len(met[name]) for name in group) == len(
            set[object]().union(*(met[name] for name in group))
        ):
            usual = commonest(group, counts)
            yield from ((name, usual) for name in group if name != usual)
