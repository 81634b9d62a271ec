"""The two tables that all parts exchange, `ratings` and `units`: their columns and rules.

`ratings` has a row for each label or grade, `units` one for each item, with whatever describes it.
`source` is always the name of a file or the store, for messages. Further sections: times as tools
write them, marks on decisive words, and grades under attack.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.lazy import pd
from evenhand.study.tables.columns import SHORT, first_repeat, require_columns
from evenhand.study.tables.formats import cell_text, read_table, row_number

RATINGS_COLUMNS = (
    "unit_id", "rubric", "rater_id", "rater_kind", "label", "p_positive", "probabilities",
    "prob_method", "draw", "order", "unscored_reason", "seconds", "rubric_hash", "created_at",
)  # fmt: skip
RATING_KEY = ("unit_id", "rubric", "rater_id", "order", "draw")
LABEL_KEY = ("unit_id", "rubric", "rater_id", "draw")  # of a person, in any order of sides
RATER_KINDS = ("human", "model", "adjudicator")
PROB_METHODS = ("", "logprobs", "draws", "verbalised")
RATER_CODE = re.compile(r"[A-Za-z0-9._-]{1,64}")  # names of annotators, and of their accounts
RESERVED_RATERS = ("humans", "models", "all", "baseline:constant", "baseline:random")
"""Names of groups and baselines in results."""
_REQUIRED = ("unit_id", "rater_id", "rater_kind", "label")
_NUMBERS = ("p_positive", "seconds")
_DEFAULTS = {"p_positive": math.nan, "seconds": math.nan, "draw": 0}  # of missing columns; else ""


def split_ratings(frame: pd.DataFrame, source: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split a ratings file into the `ratings` table and the units columns in it, a row per unit.

    `item_id` is accepted for `unit_id`. Other columns than those of `ratings` are units columns, as
    text. One that differs between the rows of one unit describes the rating or the rater and is
    left out. Raises InputError as `validate_ratings` does, and for a unit in two clusters.
    """
    frame = with_unit_id(frame)
    ratings = validate_ratings(frame, source)
    extra = [str(column) for column in frame if column not in RATINGS_COLUMNS]
    units = _constant_columns(frame, "unit_id", extra)
    if "cluster_id" in extra and "cluster_id" not in units:
        first = frame.groupby("unit_id", sort=False)["cluster_id"].transform("first")
        row = int((frame["cluster_id"] != first).to_numpy().argmax())
        unit, cluster = frame["unit_id"].iloc[row], frame["cluster_id"].iloc[row]
        raise InputError(
            f"{source}, row {row_number(frame, row)}: item {unit!r} has cluster_id {cluster!r} "
            f"here and {first.iloc[row]!r} further up; an item lies in one cluster"
        )
    return ratings, units


def columns_in(text: str | None) -> dict[str, str]:
    """Return `{ours: theirs}` from `--columns unit=item,rater=who`, or raise InputError.

    >>> columns_in("unit=item,p_positive=score")
    {'unit_id': 'item', 'p_positive': 'score'}
    """
    columns: dict[str, str] = {}
    for part in text.split(",") if text is not None else ():  # "" is refused
        name, _, theirs = (word.strip() for word in part.partition("="))
        ours = SHORT.get(name, name)
        if not theirs or ours not in (*RATINGS_COLUMNS, "cluster_id"):
            raise InputError(
                f"--columns: {part.strip()!r} is not valid; write OURS=THEIRS, such as unit=item, "
                f"where OURS is one of {', '.join((*SHORT, *RATINGS_COLUMNS[5:]))}"  # after `label`
            )
        columns[ours] = theirs
    return columns


def with_unit_id(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its column `item_id` as `unit_id`, if it has no column of this name."""
    return frame if "unit_id" in frame else frame.rename(columns={"item_id": "unit_id"})


def rater_columns(frame: pd.DataFrame, most: int | None = None) -> pd.DataFrame:
    """Return a row per rater with the columns constant for each, of 2 to `most` values if given."""
    extra = [str(name) for name in frame if name not in (*RATINGS_COLUMNS, "item_id")]
    if most is not None:
        extra = [name for name in extra if 1 < frame[name].nunique() <= most]
    return _constant_columns(frame, "rater_id", extra)


def _constant_columns(frame: pd.DataFrame, key: str, columns: list[str]) -> pd.DataFrame:
    """Return a row for each value of the key, with the columns that are constant for each value."""
    first = frame.groupby(key, sort=False)[columns].transform("first")
    constant = [column for column in columns if (frame[column] == first[column]).all()]
    return frame[[key, *constant]].drop_duplicates(key).reset_index(drop=True)


def validate_ratings(frame: pd.DataFrame, source: str = "ratings") -> pd.DataFrame:
    """Return the rows with all `RATINGS_COLUMNS`, in their order and with their types.

    Text columns hold "" where empty, `p_positive` and `seconds` hold NaN, `draw` is an integer from
    0. Raises InputError naming the first row with a missing id, an unknown rater kind, an invalid
    number, probabilities that are no JSON object, a repeated key, or a rater of two kinds.
    """
    columns = ", ".join(str(name) for name in frame) or "no columns"
    hint = f" (it has {columns}); {', '.join(_REQUIRED)} are required"
    require_columns(frame, _REQUIRED, source, hint)
    if not (pd.api.types.is_integer_dtype(frame.index) and frame.index.is_unique):
        frame = frame.reset_index(drop=True)  # the index gives the rows' numbers in messages
    table = pd.DataFrame(index=frame.index)
    for column in RATINGS_COLUMNS:
        if column not in frame:
            dtype = None if column in _DEFAULTS else "str"
            table[column] = pd.Series(_DEFAULTS.get(column, ""), index=frame.index, dtype=dtype)
        elif column in _NUMBERS:
            table[column] = _numbers(frame[column], column, source)
        elif column == "draw":
            table[column] = _draws(frame[column], source)
        elif column == "created_at":
            times = texts(frame[column])
            not_utc = [time for time in times.unique() if not time.endswith("+00:00")]
            in_utc = {time: stored_instant(time) or time for time in not_utc}
            table[column] = times.replace(in_utc)  # what is no time stays as it is
        else:
            table[column] = texts(frame[column])
    _check_rows(table, source)
    return table


def texts(column: pd.Series) -> pd.Series:
    """Return a column as text, "" where a cell is missing."""
    # Most tables were read as text already, and need no pass over all cells.
    if column.dtype == "str" or pd.api.types.infer_dtype(column, skipna=False) == "string":
        return column.fillna("").astype(str)
    return column.map(cell_text).astype(str)


def _numbers(values: pd.Series, column: str, source: str) -> pd.Series:
    """Return a column as numbers. Raises InputError for the first that is none or out of range."""
    if pd.api.types.is_numeric_dtype(values):
        numbers = values.astype(float)
    else:
        cells = texts(values)
        numbers = pd.to_numeric(cells.where(cells != ""), errors="coerce").astype(float)
        _refuse(numbers.isna() & (cells != ""), cells, column, source, "a number")
    bad = ~numbers.between(0, 1) if column == "p_positive" else numbers < 0
    rule = "between 0 and 1" if column == "p_positive" else "0 or more"
    _refuse(bad & numbers.notna(), numbers.astype(str), column, source, rule)
    return numbers


def _draws(cells: pd.Series, source: str) -> pd.Series:
    """Return the column `draw` as integers. Raises InputError for the first that is none."""
    are_whole = pd.api.types.is_integer_dtype(cells) and bool(cells.notna().all())
    if not (are_whole and cells.between(0, 999_999_999).all()):
        cells = texts(cells).replace("", "0")
        distinct = cells.drop_duplicates()
        bad = ~distinct.str.fullmatch(r"\d{1,9}")
        _refuse(bad, distinct, "draw", source, "a whole number from 0")
    return cells.astype("int64")


def _refuse(bad: pd.Series, values: pd.Series, column: str, source: str, rule: str) -> None:
    """Raise InputError for the first bad value, with the rule that values must follow."""
    if bad.any():
        row = int(bad.to_numpy().argmax())
        where = f"{source}, row {row_number(values, row)}"
        raise InputError(f"{where}: {column} is {values.iloc[row]!r}; it must be {rule}")


def _check_rows(table: pd.DataFrame, source: str) -> None:
    """Raise InputError for the first row that breaks a rule of `validate_ratings`."""
    for column in ("unit_id", "rater_id"):
        _refuse(table[column] == "", table[column], column, source, "filled in")
        has_nul = table[column].str.contains("\0", regex=False)
        _refuse(has_nul, table[column], column, source, "free of NUL characters")
    other_name = "another name: this one stands for a group or a baseline in results"
    methods = "logprobs, draws, verbalised or empty"
    for column, bad, rule in (
        ("rater_id", table["rater_id"].isin(RESERVED_RATERS), other_name),
        ("rater_kind", ~table["rater_kind"].isin(RATER_KINDS), "human, model or adjudicator"),
        ("order", ~table["order"].isin(("", "ab", "ba")), "ab or ba"),
        ("prob_method", ~table["prob_method"].isin(PROB_METHODS), methods),
    ):
        _refuse(bad, table[column], column, source, rule)
    filled = table.loc[table["probabilities"] != "", "probabilities"]

    def is_object(text: str) -> bool:
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False

    _refuse(~filled.map(is_object).astype(bool), filled, "probabilities", source, "a JSON object")
    refuse_repeats(table, RATING_KEY, source)
    kinds = table[["rater_id", "rater_kind"]].drop_duplicates()
    if repeat := first_repeat(kinds, ["rater_id"]):
        row, first = repeat
        rater, kind = kinds.iloc[row]
        raise InputError(
            f"{source}, row {row_number(kinds, row)}: rater {rater!r} is {kind} here and "
            f"{kinds['rater_kind'].iloc[first]} in row {row_number(kinds, first)}; give the two "
            "raters different ids"
        )


def refuse_repeats(table: pd.DataFrame, key: Sequence[str], source: str) -> None:
    """Raise InputError for the first row that has the key of a row further up."""
    if repeat := first_repeat(table, key):
        row, first = repeat
        raise InputError(
            f"{source}, row {row_number(table, row)}: rater {table['rater_id'].iloc[row]!r} has "
            f"already rated item {table['unit_id'].iloc[row]!r} in row {row_number(table, first)}; "
            "keep one of the two, or number repeats in a column 'draw'"
        )


# ---- times as tools write them, and in the form of the tables: UTC, ISO 8601 --------------------
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?\s?(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.I
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}(\.\d+)?|\d{15,16}|\d{18,19}")
"""Seconds since 1970, or milli-, micro- and nanoseconds, from 1973 on."""
_PER_SECOND = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}  # by most digits
_LARGEST_OFFSET = timedelta(hours=26)  # between two time zones, from UTC-12 to UTC+14


def instant_of(text: str) -> datetime | None:
    """Return the time that a text names, without a zone if it has none; None if it is no time.

    >>> instant_of("2026-05-01T10:30:00+02:00") == instant_of("2026-05-01 08:30Z")
    True
    >>> instant_of("1777624200000").isoformat(), instant_of("soon")
    ('2026-05-01T08:30:00+00:00', None)
    """
    text = text.strip()
    try:
        if _EPOCH.fullmatch(text):
            whole, _, decimals = text.partition(".")
            per_second = next(n for digits, n in _PER_SECOND.items() if len(whole) <= digits)
            seconds, rest = divmod(int(whole), per_second)
            microseconds = (rest + float(f"0.{decimals or 0}")) * 1_000_000 / per_second
            past = timedelta(seconds=seconds, microseconds=microseconds)
            return datetime.fromtimestamp(0, UTC) + past
        if _DAY.fullmatch(text):
            return datetime.fromisoformat(text)
        if (match := _ISO.fullmatch(text)) is None:
            return None
        day, time, seconds_part, digits, zone = match.groups()
        zone = {"Z": "+00:00", "UTC": "+00:00"}.get((zone or "").upper(), zone or "")
        fraction_part = f".{digits[:6]:0<6}" if digits else ""
        return datetime.fromisoformat(f"{day}T{time}{seconds_part or ':00'}{fraction_part}{zone}")
    except (ValueError, OverflowError):  # the 32nd of a month
        return None


def stored_instant(text: str) -> str:
    """Return a time in the form of the tables; without a zone it is UTC. "" if it is no time.

    >>> stored_instant("2026-05-01T10:30:00.25+02:00"), stored_instant("1777624200")
    ('2026-05-01T08:30:00.250+00:00', '2026-05-01T08:30:00.000+00:00')
    """
    if (moment := instant_of(text)) is None:
        return ""
    try:
        utc = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:  # within hours of the year 1
        return ""
    return utc.isoformat(timespec="microseconds" if utc.microsecond % 1000 else "milliseconds")


def is_later(first_text: str, second_text: str) -> bool | None:
    """Return True if the first text names a later time than the second. None if that is not known:
    one of them is no time, both are the same, or one has no zone and may be before or after.

    >>> is_later("2026-05-01T10:30+02:00", "2026-05-01T09:00Z")
    False
    >>> is_later("2026-05-01T10:30", "2026-05-01T09:00Z"), is_later("", "2026-05-01")
    (None, None)
    """
    first, second = instant_of(first_text), instant_of(second_text)
    if first is None or second is None:
        return None
    if (first.tzinfo is None) == (second.tzinfo is None):
        return None if first == second else first > second
    difference = first.replace(tzinfo=None) - second.replace(tzinfo=None)
    return None if abs(difference) <= _LARGEST_OFFSET else difference > timedelta()


# ---- marks on the words that decided an answer --------------------------------------------------
MOST_MARKS = 50  # largest number of marks in one answer


@dataclass(frozen=True, order=True)
class Mark:
    """The code points from `start` to `end` - 1 of a `text`: response, response_a or response_b."""

    text: str
    start: int
    end: int


def read_marks(value: Any) -> tuple[Mark, ...] | None:
    """Return the marks from a browser or a table, a list of objects with the fields of `Mark`,
    sorted; None where the value is no such list, or has too many, empty or overlapping marks.
    """
    if not isinstance(value, list) or len(value) > MOST_MARKS:
        return None
    marks = []
    for mark in value:
        match mark:
            case {"text": str(text), "start": int(start), "end": int(end)} if (
                # True and False are integers of Python, and no place in a text.
                len(mark) == 3 and bool not in (type(start), type(end)) and 0 <= start < end
            ):
                marks.append(Mark(text, start, end))
            case _:
                return None
    marks.sort()
    overlap = any(a.text == b.text and b.start < a.end for a, b in pairwise(marks))
    return None if overlap else tuple(marks)


def written_marks(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """Return the marks, sorted, in the form that `read_marks` reads."""
    return [asdict(mark) for mark in sorted(marks)]


def are_within(marks: Iterable[Mark], texts: Mapping[str, str]) -> bool:
    """Return True if each mark is within one of the responses among `texts`."""
    return all(
        mark.text.startswith("response")
        and mark.text in texts
        and mark.end <= len(texts[mark.text])
        for mark in marks
    )


def with_sides_swapped(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Return the marks with the two sides exchanged."""
    other_side = {"response_a": "response_b", "response_b": "response_a"}
    exchanged = (replace(mark, text=other_side.get(mark.text, mark.text)) for mark in marks)
    return tuple(sorted(exchanged))


def pieces(text: str, marked: Iterable[tuple[str, Mark]]) -> list[tuple[str, tuple[str, ...]]]:
    """Return the pieces of a text between the ends of marks, each with the raters who marked it.

    >>> pieces("It is so.", [("ann", Mark("response", 0, 5)), ("ben", Mark("response", 3, 8))])
    [('It ', ('ann',)), ('is', ('ann', 'ben')), (' so', ('ben',)), ('.', ())]
    """
    marked = list(marked)
    borders = {0, len(text), *(end for _, mark in marked for end in (mark.start, mark.end))}
    text_pieces = []
    for start, end in pairwise(sorted(border for border in borders if border <= len(text))):
        raters = (rater for rater, mark in marked if mark.start <= start and end <= mark.end)
        text_pieces.append((text[start:end], tuple(dict.fromkeys(raters))))
    return text_pieces


# ---- attacks of the injection audit, and grades under attack ------------------------------------
# A grade under attack is a grader's answer to a text into which an attack was written.
CLEAN = "clean"  # the text without an attack, graded twice: how often does the label change?
PLACEBO, LONG_PLACEBO = "placebo", "placebo_long"  # harmless texts, as long as the attacks
ATTACKS: dict[str, str] = {
    "plain_order": PLACEBO,
    "false_authority": PLACEBO,
    "closing_tag": PLACEBO,
    "lookalike_tag": PLACEBO,
    "chat_tokens": PLACEBO,
    "fake_turn": PLACEBO,
    "fake_answer": PLACEBO,
    "long_text": LONG_PLACEBO,
    "other_language": PLACEBO,
    "flattery": PLACEBO,
}
"""Attacks of evenhand, each with the placebo of its length; users' own attacks have PLACEBO."""
_SHIPPED_NAMES = {CLEAN, PLACEBO, LONG_PLACEBO, *ATTACKS}
_CUSTOM_NAME = re.compile("[a-z][a-z0-9_]{0,39}")
REPEATS = 2  # times the clean text is graded, each time with as many draws as any other text
ATTACKED_COLUMNS = (
    "rubric", "rater_id", "unit_id", "attack", "target", "side", "draw", "label", "probabilities",
)  # fmt: skip
"""Columns of the table of grades under attack."""


def is_custom_attack(name: str) -> bool:
    """Return True if a user's own attack may have this name.

    >>> is_custom_attack("my_attack"), is_custom_attack("flattery"), is_custom_attack("My attack")
    (True, False, False)
    """
    return bool(_CUSTOM_NAME.fullmatch(name)) and name not in _SHIPPED_NAMES


def label_of_draws(labels: Iterable[str]) -> str:
    """Return the most frequent label of a grader's draws, the first of a tie; "" without labels.

    >>> label_of_draws(["2", "", "5", "5"]), label_of_draws(["2", "5"]), label_of_draws([""])
    ('5', '2', '')
    """
    counts = Counter(label for label in labels if label)
    return counts.most_common(1)[0][0] if counts else ""


def attacked_text(attacked: pd.DataFrame) -> pd.DataFrame:
    """Return grades under attack as they are written to a file, probabilities as JSON or ""."""
    as_json = [json.dumps(shares) if shares else "" for shares in attacked["probabilities"]]
    return attacked.assign(probabilities=as_json)[list(ATTACKED_COLUMNS)]


def read_attacked(path: Path) -> pd.DataFrame:
    """Read the table of grades under attack from a file. Raises InputError where it is none."""
    table = read_table(path)
    for name in ATTACKED_COLUMNS:
        if name not in table:
            raise InputError(f"{path.name} has no column {name!r}; export the study again")
    probabilities = []
    cells = zip(table["attack"], table["draw"], table["probabilities"], strict=True)
    for position, (attack, draw, text) in enumerate(cells):
        is_valid = attack in _SHIPPED_NAMES or is_custom_attack(attack)
        try:
            shares = json.loads(text) if text else None
            is_valid &= shares is None or all(0 <= p <= 1 for p in shares.values())
        except (ValueError, TypeError, AttributeError, RecursionError):
            is_valid = False
        if not is_valid or not re.fullmatch("[0-9]{1,6}", draw):
            row = row_number(table, position)
            raise InputError(
                f"{path.name}, row {row}: attack, draw or probabilities are none that evenhand "
                "writes; export the study again"
            )
        probabilities.append(shares)
    table = table[list(ATTACKED_COLUMNS)].reset_index(drop=True)
    table["probabilities"] = pd.Series(probabilities, dtype=object)
    return table.astype({"draw": int})
