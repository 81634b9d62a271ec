"""Labels that were meant to be another label, or none: reported, or corrected if asked."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.errors import InputError
from evenhand.study.tables.columns import shortened
from evenhand.study.tables.formats import FIRST_ROW
from evenhand.study.tables.ratings import TRUTH

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.reporting.ratings_file.declared import ScaleOptions

MAX_LENGTH = 200
_MISSING = frozenset(("", "nan", "none", "null", "na", "n/a", "#n/a", "<na>", "nat"))
_WHOLE = re.compile(r"[+-]?\d+")
_POINT_ZERO = re.compile(r"([+-]?\d+)\.0+")


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


def cleaned(
    ratings: pd.DataFrame, permitted: Sequence[str], options: ScaleOptions, places: Places
) -> tuple[pd.DataFrame, int]:
    """Return the ratings of one rubric, with labels corrected where `options` ask for it; and how
    many.

    `permitted` are the labels of a known scale, or () to take the labels seen. Raises InputError
    naming the first label that is a variant of another one, reads as missing, or is not on the
    scale.
    """
    seen = ratings["label"].value_counts(sort=False).drop("", errors="ignore")
    counts = {str(label): int(count) for label, count in seen.items()}
    doubtful = [label for label in counts if label not in permitted]
    readings, known = _readings(counts, doubtful, permitted), {*counts, *permitted}
    for label in doubtful:
        meant = None if options.normalise else readings.get(label)
        fault = _fault_of(label)
        if not fault and meant is not None and (why := _difference(label, meant, known)):
            fault = f"{why}; {_mend(options, permitted, meant, readings, counts)}"
        if not fault and permitted and label not in readings:
            fault = (
                f"is not one of the declared categories ({', '.join(permitted)}); correct it "
                "or declare it"
            )
        if fault:
            at = int((ratings["label"] == label).to_numpy().argmax())
            place = places.of(int(ratings.index[at]), ratings["rater_id"].iloc[at], label)
            raise InputError(f"{place} {fault}")
    changed = sum(counts[label] for label in readings) if options.normalise else 0
    if changed:
        ratings = _with_readings(ratings, readings)
    return ratings, changed


def with_numbers(ratings: pd.DataFrame, permitted: Sequence[str], places: Places) -> pd.DataFrame:
    """Return the ratings of one rubric with each number in its shortest form, 0.5 for 0.50, or as
    one of the `permitted`, if there are any.

    Raises InputError naming the first label that is no number, or none of the permitted.
    """
    from evenhand.rubrics.options import plain_number

    known = {plain_number(label): label for label in permitted}
    meant = {}
    for label in ratings["label"].unique():
        plain = plain_number(label)
        if not label or _plain(label).casefold() in _MISSING:
            continue
        if not plain or (known and plain not in known):
            at = int((ratings["label"] == label).to_numpy().argmax())
            place = places.of(int(ratings.index[at]), ratings["rater_id"].iloc[at], label)
            if not plain:
                raise InputError(f"{place} is not a number; correct it, or leave it empty")
            ends = f"from {permitted[0]} to {permitted[-1]}"
            raise InputError(
                f"{place} is none of the {len(permitted)} numbers {ends}; round or correct it"
            )
        if label != known.get(plain, plain):
            meant[label] = known.get(plain, plain)
    return _with_readings(ratings, meant) if meant else ratings


def _fault_of(label: str) -> str:
    """Why this is a label of no scale; "" where it may be."""
    if len(label) > MAX_LENGTH:
        return f"has {len(label):,} characters; a label has at most {MAX_LENGTH}"
    if "\0" in label:
        return "contains a NUL character; remove it"
    if "\n" in label or "\r" in label:
        return "contains a line break; remove it, and close the quote if one is left open"
    if label.lstrip()[:1] in ("{", "[") and _is_nested(label):
        return "is nested JSON; write only the label, or, if several may apply, declare that"
    return ""


def _is_nested(label: str) -> bool:
    try:
        return isinstance(json.loads(label), (dict, list))
    except ValueError:
        return False


def _readings(
    counts: Mapping[str, int], doubtful: Sequence[str], permitted: Collection[str]
) -> dict[str, str]:
    """Return how labels are read that are not taken literally: as the category that differs only in
    case, outer space and `.0`, where there is one; as its plainest, then commonest form among the
    labels seen, where none are `permitted`; as "" where they read as missing; as the commonest
    words for yes and no, where all labels are such words.

    >>> _readings({"yes": 9, "Yes ": 1, "NaN": 2, "2.0": 4}, ["yes", "Yes ", "NaN", "2.0"], ())
    {'Yes ': 'yes', 'NaN': '', '2.0': '2'}
    >>> _readings({"yes": 9, "no": 8, "TRUE": 1, "0": 2}, ["yes", "no", "TRUE", "0"], ())
    {'TRUE': 'yes', '0': 'no'}
    """
    forms: dict[str, Counter[str]] = defaultdict(Counter)
    for label in permitted or counts:
        form = label if permitted else _plain(label)
        forms[_plain(label).casefold()][form] += counts.get(label, 0)
    words = Counter({_plain(label).casefold(): 0 for label in permitted})
    for label, count in counts.items():
        words[_plain(label).casefold()] += count
    usual = _usual_truth(words, [_plain(label).casefold() for label in permitted])
    found = {}
    for label in doubtful:
        key = _plain(label).casefold()
        ways = forms[usual.get(key, key)]
        if key in _MISSING:
            found[label] = ""
        elif ways and (len(ways) == 1 or not permitted):
            found[label] = max(sorted(ways), key=ways.__getitem__)
    return {label: meant for label, meant in found.items() if meant != label}


def _usual_truth(counts: Mapping[str, int], permitted: Collection[str]) -> dict[str, str]:
    """Return the usual word for every word for yes or no among plain labels: the `permitted` one,
    or the commonest. Empty where a label is no such word, or where all are of one kind.
    """
    of_word = {word: (pair, place) for pair in TRUTH for place, word in enumerate(pair)}
    words = [word for word in counts if word not in _MISSING]
    if not all(word in of_word for word in words):
        return {}
    kinds = [pair for pair in TRUTH if any(of_word[word][0] == pair for word in words)]
    known = permitted or counts
    whole = [pair for pair in kinds if all(word in known for word in pair)]
    if len(kinds) < 2 or not whole:
        return {}
    usual = max(whole, key=lambda pair: sum(counts[word] for word in pair))
    return {word: usual[of_word[word][1]] for word in words}


def _plain(label: str) -> str:
    """
    >>> _plain(" Yes"), _plain("4.0"), _plain("v2.0")
    ('Yes', '4', 'v2.0')
    """
    whole = _POINT_ZERO.fullmatch(label.strip())
    return whole[1] if whole else label.strip()


def _difference(label: str, meant: str, known: Collection[str]) -> str:
    """Return what is doubtful about a label; "" if nothing is, as on a scale of 1.0, 2.0 and 3.0.

    `known` are all labels, seen or permitted.
    """
    if not meant:
        return "reads as a missing value"
    if label != label.strip():
        return "has a space around it"
    if label.casefold() == meant.casefold():
        return f"differs from {meant!r} only by case"
    if _plain(label).casefold() != _plain(meant).casefold():
        return f"says in another word what {meant!r} says"
    are_mixed = any(_WHOLE.fullmatch(other) for other in known)
    return f"differs from {meant!r} only by '.0'" if are_mixed else ""


def _mend(
    options: ScaleOptions,
    permitted: Collection[str],
    meant: str,
    readings: Mapping[str, str],
    counts: Mapping[str, int],
) -> str:
    cells = sum(counts[label] for label in readings)
    declare = "declare it among" if permitted else "declare all labels with"
    return (
        f"{options.normalise_option} reads it as {repr(meant) if meant else 'no label'} "
        f"({cells:,} {'cell' if cells == 1 else 'cells'} would change), or {declare} "
        f"{options.spelled('categories')}"
    )


def _with_readings(ratings: pd.DataFrame, readings: Mapping[str, str]) -> pd.DataFrame:
    """Labels, and the categories that probabilities name, as they are read."""
    shares = ratings["probabilities"]
    renamed = shares.where(shares == "", shares.map(lambda text: _renamed(text, readings)))
    return ratings.assign(label=ratings["label"].replace(dict(readings)), probabilities=renamed)


def _renamed(text: str, readings: Mapping[str, str]) -> str:
    given = json.loads(text) if text else {}
    renamed = {readings.get(key) or key: share for key, share in given.items()}
    if renamed.keys() == given.keys() or len(renamed) < len(given):
        return text  # two shares of one category are not ours to add up
    return json.dumps(renamed)
