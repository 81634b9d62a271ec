"""Columns of a table: checks that they are there, the names that other tools' files have for them,
and spellings of names and labels that differ only in form.
"""

from __future__ import annotations

import html
import re
import shlex
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.texts import table_of

INCLUSION = "inclusion_probability"  # units column: probability of being sampled for annotators
MAX_LISTED = 10  # number of names that a message lists


def require_columns(frame: pd.DataFrame, names: Iterable[str], source: str, hint: str = "") -> None:
    """Raise InputError for the first of these columns that is missing; `hint` ends the message."""
    for name in names:
        if name not in frame:
            raise InputError(f"{source}: the column {name!r} is missing{hint}")


def refuse_columns(frame: pd.DataFrame, reserved: Collection[str], source: str) -> None:
    """Raise InputError for the first column whose name is reserved."""
    for name in map(str, frame.columns):
        if name in reserved:
            raise InputError(f"{source}: the column {name!r} means something else here; rename it")


def require_rows(frame: pd.DataFrame, source: str, noun: str) -> None:
    """Raise InputError where a table has no rows; `noun` names the rows."""
    if frame.empty:
        raise InputError(f"{source} has a header but no {noun}; add at least one row")


def first_repeat(frame: pd.DataFrame, columns: Sequence[str]) -> tuple[int, int] | None:
    """Return the positions of the first row that repeats another, and of that other; or None."""
    keys = frame[list(columns)]
    is_repeat = keys.duplicated().to_numpy()
    if not is_repeat.any():
        return None
    row = int(is_repeat.argmax())
    return row, int((keys == keys.iloc[row]).all(axis=1).to_numpy().argmax())


def shortened(text: str, most: int = 40) -> str:
    """Return a text as messages quote it, with at most so many characters.

    >>> shortened("yes"), len(shortened("x" * 1000))
    ('yes', 40)
    """
    return text if len(text) <= most else f"{text[: most - 3]}..."


def listed(names: Iterable[object]) -> str:
    """Return the first few names on one line, and the number of the others."""
    printable = [name if name.isprintable() else repr(name) for name in map(str, names)]
    n_others = len(printable) - MAX_LISTED
    first = ", ".join(printable[:MAX_LISTED])
    return f"{first} and {n_others} more" if n_others > 0 else first


# ---- names of columns in other tools' files -----------------------------------------------------
# `{ours: theirs}` maps evenhand's names of columns to those of a file.
SHORT = {
    "unit": "unit_id", "rater": "rater_id", "kind": "rater_kind", "label": "label",
    "cluster": "cluster_id",
}  # fmt: skip
"""Short names in `--columns` of the columns that most files have; others keep their names."""
USUAL_NAMES: dict[str, dict[str, list[str]]] = {
    kind: {column: names.split() for column, names in columns.items()}
    for kind, columns in table_of("evenhand.study.tables", "column_names.toml").items()
}
"""Names of columns in other tools' files, by kind of file and by evenhand's name of the column."""
_RATINGS_NAMES = USUAL_NAMES["ratings"]
_ANNOTATORS = re.compile(
    r"(^|_)(annotator|worker|coder|labell?er|participant|turker)(_?ids?)?$|^(annotated_by|expert)$"
)
_ITEMS = {*_RATINGS_NAMES["unit_id"], *USUAL_NAMES["names_items"]["unit_id"]} - {"task", "sample"}
"""Names of columns of items. Two usual ones are left out: "task" may mean a kind of item, "sample"
a part of the data or the number of a draw."""


def renamed(frame: pd.DataFrame, columns: Mapping[str, str], source: str) -> pd.DataFrame:
    """Return a table with the columns `{ours: theirs}` under our names, or raise InputError."""
    for ours, theirs in columns.items():
        if theirs not in frame:
            names = ", ".join(map(str, frame.columns))
            raise InputError(f"{source} has no column {theirs!r}; it has {names}")
        if ours in frame and ours != theirs:
            raise InputError(
                f"{source} has a column {ours!r} already; rename it, or leave {theirs!r} as it is"
            )
    return frame.rename(columns={theirs: ours for ours, theirs in columns.items()})


def columns_option(columns: Mapping[str, str]) -> str:
    """Return the command-line option for `{ours: theirs}`.

    >>> columns_option({"unit_id": "item", "p_positive": "P yes"})
    "--columns 'unit=item,p_positive=P yes'"
    """
    short = {ours: name for name, ours in SHORT.items()}
    parts = [f"{short.get(ours, ours)}={theirs}" for ours, theirs in columns.items()]
    return f"--columns {shlex.quote(','.join(parts))}"


def likely_columns(
    columns: Iterable[str],
    missing: Iterable[str],
    fits: Callable[[str, str], bool] = lambda ours, theirs: True,
) -> dict[str, str]:
    """Return those of a table's columns that are probably the `missing` ones, `{ours: theirs}`, by
    usual or similar names. `fits(ours, theirs)` is False where the cells show that it is not.

    >>> likely_columns(["Item", "topic", "rateri_d"], ["unit_id", "rater_id", "label"])
    {'unit_id': 'Item', 'rater_id': 'rateri_d'}
    """
    unused = {_plain(name): name for name in columns if "," not in name}  # commas separate names
    likely: dict[str, str] = {}
    for ours in missing:
        usual = [ours, *_RATINGS_NAMES.get(ours, ())]
        fitting = [plain for plain, theirs in unused.items() if fits(ours, theirs)]
        usual_matches = [plain for plain in usual if plain in fitting]
        if matches := usual_matches or get_close_matches(ours, fitting, n=1, cutoff=0.8):
            likely[ours] = unused.pop(matches[0])
    return likely


def sure_columns(
    columns: Iterable[str], missing: Iterable[str], fits: Callable[[str, str], bool]
) -> dict[str, str]:
    """Return those of a table's columns that are surely the `missing` ones, `{ours: theirs}`: the
    only one with a usual name that `fits`; for items the one with the most usual name.

    >>> sure_columns(["item", "id", "worker", "rating", "score"],
    ...              ["unit_id", "rater_id", "label"], lambda ours, theirs: True)
    {'unit_id': 'item', 'rater_id': 'worker'}
    """
    unused, sure = list(columns), {}
    for ours in missing:
        matches = [name for name in unused if _plain(name) in _RATINGS_NAMES[ours]]
        matches = [name for name in matches if fits(ours, name)]
        if ours == "unit_id":
            matches = unit_columns(matches)[:1]
        if len(matches) == 1:
            sure[ours] = matches[0]
            unused.remove(matches[0])
    return sure


def unit_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns with a usual name for items, the most usual first."""
    usual = _RATINGS_NAMES["unit_id"]
    matches = [name for name in columns if _plain(name) in usual]
    return sorted(matches, key=lambda name: usual.index(_plain(name)))


def names_annotators(column: str) -> bool:
    """Return True if a column of raters has a usual name for a column of annotators."""
    return bool(_ANNOTATORS.search(_plain(column)))


def names_items(column: str) -> bool:
    """Return True if a column has a usual name for a column of items.

    >>> [names_items(column) for column in ("Prompt ID", "item", "topic")]
    [True, True, False]
    """
    return _plain(column) in _ITEMS


def _plain(name: str) -> str:
    """Return a name in lower case, with single underscores between words.

    >>> _plain(" Unit ID "), _plain("raterId")
    ('unit_id', 'rater_id')
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^0-9a-z]+", "_", words.casefold()).strip("_")


# ---- spellings of names and labels --------------------------------------------------------------
# Texts with one folded form are the same to a reader: they differ in the composition of letters,
# invisible characters, outer or doubled spaces, or 2.0 for 2. Texts with one loose form look alike:
# they differ by case, punctuation, underscores or leading zeros, and users are asked about them.
_WHOLE = re.compile(r"([+-]?\d+)\.0+")  # 2.0
_SPACES = re.compile("[ \t\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_UNSEEN = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]")  # variation selectors
_PLAIN = re.compile(r"[!-~]+(?: [!-~]+)*")  # ASCII with single spaces: it is folded
_MARKS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-")
    | dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u2033\u00ab\u00bb", '"')
)
_UNUSUAL = frozenset(map(chr, _MARKS)) - {"`"}  # marks that are not on every keyboard
_BETWEEN = re.compile(r"(?<=\w)[\s_-]+(?=\w)|_")  # separators between words, and any underscore
_AT_THE_ENDS = " \t\"'()[].,;:!"
_LEADING_ZEROS = re.compile(r"(?<![\d.])0+(?=\d)")


def folded(text: str) -> str:
    """Return the folded form of a text: composed (NFC), without format characters, variation
    selectors and outer spaces, with single inner spaces, and whole numbers without `.0`.

    >>> [folded(text) for text in ("yes\\u200b", " very  good", "si\\u0301", "2.0", "v2.0")]
    ['yes', 'very good', 'sí', '2', 'v2.0']
    """
    if not _PLAIN.fullmatch(text):
        composed = _UNSEEN.sub("", unicodedata.normalize("NFC", text))
        visible = "".join(letter for letter in composed if unicodedata.category(letter) != "Cf")
        text = _SPACES.sub(" ", visible).strip(" ")
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else text


def fold(column: pd.Series) -> pd.Series:
    """Return a column of texts, folded; the column itself where nothing changes."""
    changed = {text: folded(text) for text in column.unique() if folded(text) != text}
    return column.replace(changed) if changed else column


def loose(text: str) -> str:
    """Return the loose form of a text: without case, typographic marks, HTML entities, punctuation
    at its ends, separators between words, and leading zeros; the text itself if nothing is left.

    >>> [loose(word) for word in ("Off-topic.", "off\\u2010topic", "off_topic", "Q&amp;A", "07")]
    ['off topic', 'off topic', 'off topic', 'q&a', '7']
    >>> [loose(text) for text in ("A-", "-1", "1.10", "+", "?")]
    ['a-', '-1', '1.10', '+', '?']
    """
    plain = unicodedata.normalize("NFKC", html.unescape(text).translate(_MARKS)).casefold()
    return _LEADING_ZEROS.sub("", _BETWEEN.sub(" ", plain).strip(_AT_THE_ENDS)) or text


def lookalikes(texts: Iterable[str]) -> list[list[str]]:
    """Return the groups of two or more different texts that look alike, in the order given."""
    groups: dict[str, list[str]] = {}
    for text in dict.fromkeys(texts):
        groups.setdefault(loose(text), []).append(text)
    return [group for group in groups.values() if len(group) > 1]


def spelled_out(text: str) -> str:
    """Return a text in quotation marks, with the numbers of characters that are not on every
    keyboard, so that two spellings can be told apart.

    >>> spelled_out("off\\u2010topic"), spelled_out("ok ")
    ("'off‐topic' (with U+2010)", "'ok '")
    """
    letters = dict.fromkeys(letter for letter in text if letter in _UNUSUAL)
    numbers = ", ".join(f"U+{ord(letter):04X}" for letter in letters)
    return f"{text!r} (with {numbers})" if numbers else repr(text)


def commonest(group: Iterable[str], counts: Mapping[str, int]) -> str:
    """Return the spelling of a group that occurs most often, the first by name of several."""
    return max(sorted(group), key=lambda text: counts.get(text, 0))
