"""The two tables that all parts exchange, `ratings` and `units`: their columns and their rules. And
what comes with ratings: the words that decided an answer, and grades under attack.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
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
RATER_KINDS = ("human", "model", "adjudicator")
PROB_METHODS = ("", "logprobs", "draws", "verbalised")
RATER_CODE = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""Pattern of valid names of people who rate, and of their accounts."""
RESERVED_RATERS = ("humans", "models", "all", "baseline:constant", "baseline:random")
"""Names of groups and baselines in results."""
TRUTH = (("yes", "no"), ("true", "false"), ("y", "n"), ("t", "f"), ("1", "0"), ("met", "not met"))
"""Words for yes and for no, as people and their tools write labels; the usual ones first."""
_REQUIRED = ("unit_id", "rater_id", "rater_kind", "label")
_NUMBERS = ("p_positive", "seconds")
_ABSENT = {"p_positive": math.nan, "seconds": math.nan, "draw": 0}
"""Values of columns that a file lacks, where these are not text."""


def split_ratings(frame: pd.DataFrame, source: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Split the rows of a ratings file into the `ratings` table and the units columns that came
    with it, a row per unit.

    `item_id` is accepted for `unit_id`. Columns that `ratings` does not know are units columns, as
    text. One that differs between the rows of one unit describes the rating or the rater, not the
    unit, and is left out - but a unit cannot be in two clusters. `source` names the rows in
    messages.
    """
    frame = with_unit_id(frame)
    ratings = validate_ratings(frame, source)
    extra = [str(column) for column in frame if column not in RATINGS_COLUMNS]
    units = _constant_columns(frame, "unit_id", extra)
    if "cluster_id" in extra and "cluster_id" not in units:
        first = frame.groupby("unit_id", sort=False)["cluster_id"].transform("first")
        at = int((frame["cluster_id"] != first).to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(frame, at)}: item {frame['unit_id'].iloc[at]!r} has "
            f"cluster_id {frame['cluster_id'].iloc[at]!r} here and {first.iloc[at]!r} further up; "
            "an item lies in one cluster"
        )
    return ratings, units


def columns_in(text: str | None) -> dict[str, str]:
    """`{ours: theirs}` as `--columns unit=item,rater=who` has it. Raises InputError where a part
    says something else.

    >>> columns_in("unit=item,p_positive=score")
    {'unit_id': 'item', 'p_positive': 'score'}
    """
    columns: dict[str, str] = {}
    for part in (text or "").split(",") if text is not None else ():
        name, _, theirs = (word.strip() for word in part.partition("="))
        ours = SHORT.get(name, name)
        if not theirs or ours not in (*RATINGS_COLUMNS, "cluster_id"):
            raise InputError(
                f"--columns: {part.strip()!r} is not valid; write OURS=THEIRS, such as unit=item, "
                f"where OURS is one of {', '.join((*SHORT, *RATINGS_COLUMNS[5:]))}"
            )
        columns[ours] = theirs
    return columns


def with_unit_id(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose column `item_id`, where it has no other, is its `unit_id`."""
    return frame if "unit_id" in frame else frame.rename(columns={"item_id": "unit_id"})


def rater_columns(frame: pd.DataFrame, most: int | None = None) -> pd.DataFrame:
    """`rater_id` and the columns that say the same in all rows of each rater, a row for each; of
    those with at `most` so many values, where that is given.
    """
    extra = [str(name) for name in frame if name not in (*RATINGS_COLUMNS, "item_id")]
    if most is not None:
        extra = [name for name in extra if 1 < frame[name].nunique() <= most]
    return _constant_columns(frame, "rater_id", extra)


def _constant_columns(frame: pd.DataFrame, key: str, columns: list[str]) -> pd.DataFrame:
    """A row for each value of the key, with those of the columns that differ in none."""
    first = frame.groupby(key, sort=False)[columns].transform("first")
    constant = [column for column in columns if (frame[column] == first[column]).all()]
    return frame[[key, *constant]].drop_duplicates(key).reset_index(drop=True)


def validate_ratings(frame: pd.DataFrame, source: str = "ratings") -> pd.DataFrame:
    """Return the rows with every `ratings` column, in the contract's types and order.

    Text columns hold "" where empty, `p_positive` and `seconds` hold NaN, `draw` is an integer from
    0. Raises InputError naming the first row that breaks a rule: a missing id, an unknown rater
    kind, an invalid number, probabilities that are not a JSON object, a repeated key, or a rater of
    two kinds.
    """
    columns = ", ".join(str(name) for name in frame) or "no columns"
    hint = f" (it has {columns}); {', '.join(_REQUIRED)} are required"
    require_columns(frame, _REQUIRED, source, hint)
    if not (pd.api.types.is_integer_dtype(frame.index) and frame.index.is_unique):
        frame = frame.reset_index(drop=True)
    table = pd.DataFrame(index=frame.index)
    for column in RATINGS_COLUMNS:
        if column not in frame:  # most files have few of them: nothing to read
            kind = None if column in _ABSENT else "str"
            table[column] = pd.Series(_ABSENT.get(column, ""), index=frame.index, dtype=kind)
            continue
        given = frame[column]
        if column in _NUMBERS:
            table[column] = _numbers(given, column, source)
        elif column == "draw":
            whole = pd.api.types.is_integer_dtype(given) and bool(given.notna().all())
            if not (whole and given.between(0, 999_999_999).all()):
                given = texts(given).replace("", "0")
                different = given.drop_duplicates()
                bad = ~different.str.fullmatch(r"\d{1,9}")
                _refuse(bad, different, "draw", source, "a whole number from 0")
            table[column] = given.astype("int64")
        elif column == "created_at":
            times = texts(given)
            others = [time for time in times.unique() if not time.endswith("+00:00")]
            utc = {time: kept for time in others if (kept := stored_instant(time))}
            table[column] = times.replace(utc)
        else:
            table[column] = texts(given)
    _check_rows(table, source)
    return table


def texts(given: pd.Series) -> pd.Series:
    """A column as files have it: text, "" where a cell is missing."""
    # Most tables were read as text already: a million cells need no second look.
    if given.dtype == "str":
        return given.fillna("")
    if pd.api.types.infer_dtype(given, skipna=False) == "string":
        return given.astype(str)
    return given.map(cell_text).astype(str)


def _numbers(given: pd.Series, column: str, source: str) -> pd.Series:
    if pd.api.types.is_numeric_dtype(given):
        numbers = given.astype(float)
    else:
        cells = texts(given)
        numbers = pd.to_numeric(cells.where(cells != ""), errors="coerce").astype(float)
        _refuse(numbers.isna() & (cells != ""), cells, column, source, "a number")
    bad = ~numbers.between(0, 1) if column == "p_positive" else numbers < 0
    wanted = "between 0 and 1" if column == "p_positive" else "0 or more"
    _refuse(bad & numbers.notna(), numbers.astype(str), column, source, wanted)
    return numbers


def _refuse(bad: pd.Series, values: pd.Series, column: str, source: str, wanted: str) -> None:
    if bad.any():
        at = int(bad.to_numpy().argmax())
        raise InputError(
            f"{source}, row {row_number(values, at)}: {column} is {values.iloc[at]!r}; "
            f"it must be {wanted}"
        )


def _check_rows(table: pd.DataFrame, source: str) -> None:
    for column in ("unit_id", "rater_id"):
        _refuse(table[column] == "", table[column], column, source, "filled in")
        has_nul = table[column].str.contains("\0", regex=False)
        _refuse(has_nul, table[column], column, source, "free of NUL characters")
    another = "another name: this one stands for a group or a baseline in results"
    methods = "logprobs, draws, verbalised or empty"
    for column, bad, wanted in (
        ("rater_id", table["rater_id"].isin(RESERVED_RATERS), another),
        ("rater_kind", ~table["rater_kind"].isin(RATER_KINDS), "human, model or adjudicator"),
        ("order", ~table["order"].isin(("", "ab", "ba")), "ab or ba"),
        ("prob_method", ~table["prob_method"].isin(PROB_METHODS), methods),
    ):
        _refuse(bad, table[column], column, source, wanted)
    filled = table.loc[table["probabilities"] != "", "probabilities"]

    def is_object(text: str) -> bool:
        try:
            return isinstance(json.loads(text), dict)
        except ValueError:
            return False

    _refuse(~filled.map(is_object).astype(bool), filled, "probabilities", source, "a JSON object")
    if again := first_repeat(table, RATING_KEY):
        at, first = again
        raise InputError(
            f"{source}, row {row_number(table, at)}: rater {table['rater_id'].iloc[at]!r} has "
            f"already rated item {table['unit_id'].iloc[at]!r} in row {row_number(table, first)}; "
            "keep one of the two, or number repeats in a column 'draw'"
        )
    kinds = table[["rater_id", "rater_kind"]].drop_duplicates()
    if again := first_repeat(kinds, ["rater_id"]):
        at, first = again
        rater, kind = kinds.iloc[at]
        raise InputError(
            f"{source}, row {row_number(kinds, at)}: rater {rater!r} is {kind} here and "
            f"{kinds['rater_kind'].iloc[first]} in row {row_number(kinds, first)}; give the two "
            "raters different ids"
        )


# Times as tools write them, in one form: UTC, ISO 8601, as the tables keep them

_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:[.,](\d+))?\s?(Z|UTC|[+-]\d\d(?::?\d\d)?)?", re.I
)
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_EPOCH = re.compile(r"\d{9,10}(\.\d+)?|\d{12,13}(\.\d+)?|\d{15,16}|\d{18,19}")
"""Seconds since 1970, or thousandths, millionths and billionths of them, from 1973 on."""
_UNITS = {10: 1, 13: 1_000, 16: 1_000_000, 19: 1_000_000_000}
_ZONES = timedelta(hours=26)  # so far apart may two clocks be that show the same time


def instant_of(text: str) -> datetime | None:
    """The moment that a text names, without a zone where it names none; None if it is no time.

    >>> instant_of("2026-05-01T10:30:00+02:00") == instant_of("2026-05-01 08:30Z")
    True
    >>> instant_of("1777624200000").isoformat(), instant_of("soon")
    ('2026-05-01T08:30:00+00:00', None)
    """
    text = text.strip()
    try:
        if _EPOCH.fullmatch(text):
            whole = text.partition(".")[0]
            unit = _UNITS[math.ceil((len(whole) - 1) / 3) * 3 + 1]
            seconds, rest = divmod(int(whole), unit)
            fraction = float(f"0{text[len(whole) :]}") if "." in text else 0.0
            past = timedelta(seconds=seconds, microseconds=(rest + fraction) * 1_000_000 / unit)
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
    """The moment as the tables keep it, fractions of a second included; one without a zone is taken
    for UTC, and "" is what no time gives.

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


def is_later(one: str, other: str) -> bool | None:
    """Return True if the first text names a later moment than the second; None where nothing tells:
    one is no time, both are one moment, or one has no zone and may be before or after.

    >>> is_later("2026-05-01T10:30+02:00", "2026-05-01T09:00Z")
    False
    >>> is_later("2026-05-01T10:30", "2026-05-01T09:00Z"), is_later("", "2026-05-01")
    (None, None)
    """
    first, second = instant_of(one), instant_of(other)
    if first is None or second is None:
        return None
    if (first.tzinfo is None) == (second.tzinfo is None):
        return None if first == second else first > second
    apart = first.replace(tzinfo=None) - second.replace(tzinfo=None)
    return None if abs(apart) <= _ZONES else apart > timedelta()


# The words that decided an answer: ranges of the texts that a person read. A range counts Unicode
# code points of the text as it is stored, from 0, its end not included.

MOST_MARKS = 50
"""In one answer."""


@dataclass(frozen=True, order=True)
class Mark:
    """`text` is the variable that the rubric calls it by: response, response_a or response_b."""

    text: str
    start: int
    end: int


def read_marks(given: Any) -> tuple[Mark, ...] | None:
    """Read the marks that a browser sent or a table holds, in their order; None where it is not a
    list of ranges that are not empty and do not overlap, or there are too many.
    """
    if not isinstance(given, list) or len(given) > MOST_MARKS:
        return None
    marks = []
    for mark in given:
        match mark:
            case {"text": str(text), "start": int(start), "end": int(end)} if (
                len(mark) == 3 and bool not in (type(start), type(end)) and 0 <= start < end
            ):
                marks.append(Mark(text, start, end))
            case _:
                return None
    marks.sort()
    overlap = any(a.text == b.text and b.start < a.end for a, b in pairwise(marks))
    return None if overlap else tuple(marks)


def written_marks(marks: Iterable[Mark]) -> list[dict[str, Any]]:
    """The marks in their order, as `read_marks` reads them."""
    return [asdict(mark) for mark in sorted(marks)]


def lie_within(marks: Iterable[Mark], texts: Mapping[str, str]) -> bool:
    """Return True if each of the marks is on one of the responses among `texts`, and inside it."""
    return all(
        mark.text.startswith("response")
        and mark.text in texts
        and mark.end <= len(texts[mark.text])
        for mark in marks
    )


def other_way_round(marks: Iterable[Mark]) -> tuple[Mark, ...]:
    """Return the marks with the two sides exchanged."""
    turned = {"response_a": "response_b", "response_b": "response_a"}
    other = (Mark(turned.get(mark.text, mark.text), mark.start, mark.end) for mark in marks)
    return tuple(sorted(other))


def pieces(text: str, marked: Iterable[tuple[str, Mark]]) -> list[tuple[str, tuple[str, ...]]]:
    """The text cut where a mark begins or ends: each piece with those who marked it, in the order
    in which they are named.

    >>> pieces("It is so.", [("ann", Mark("response", 0, 5)), ("ben", Mark("response", 3, 8))])
    [('It ', ('ann',)), ('is', ('ann', 'ben')), (' so', ('ben',)), ('.', ())]
    """
    marked = list(marked)
    ends = {0, len(text), *(end for _, mark in marked for end in (mark.start, mark.end))}
    cut = []
    for start, end in pairwise(sorted(end for end in ends if end <= len(text))):
        raters = (who for who, mark in marked if mark.start <= start and end <= mark.end)
        cut.append((text[start:end], tuple(dict.fromkeys(raters))))
    return cut


# The attacks of the injection audit by name, and the rules for reading the grades under attack

CLEAN = "clean"
"""The text as it is; asked twice, so that a grader's own flips are known."""
PLACEBO, LONG_PLACEBO = "placebo", "placebo_long"
"""A harmless text, as long as the attacks, or as the long one."""

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
"""Every attack of the package, with the placebo that is as long; a user's own have PLACEBO or say
so (`graders/attacks.toml`).
"""
_OWN = re.compile("[a-z][a-z0-9_]{0,39}")
REPEATS = 2
"""Times the clean text is asked about, each time for as many draws as any other text."""

ATTACKED_COLUMNS = (
    "rubric", "rater_id", "unit_id", "attack", "target", "side", "draw", "label", "probabilities",
)  # fmt: skip
"""Columns of the table of grades under attack."""


def is_own(name: str) -> bool:
    """Return True if a user's own attack may have this name.

    >>> is_own("my_attack"), is_own("flattery"), is_own("My attack")
    (True, False, False)
    """
    return bool(_OWN.fullmatch(name)) and name not in {CLEAN, PLACEBO, LONG_PLACEBO, *ATTACKS}


def label_of_draws(labels: Iterable[str]) -> str:
    """Return the label that a grader's draws gave most often, of several the first; "" where no
    draw has one.

    >>> label_of_draws(["2", "", "5", "5"]), label_of_draws(["2", "5"]), label_of_draws([""])
    ('5', '2', '')
    """
    counts = Counter(label for label in labels if label)
    return counts.most_common(1)[0][0] if counts else ""


def attacked_text(attacked: pd.DataFrame) -> pd.DataFrame:
    """The table as a file has it: probabilities as a JSON object, "" where there are none."""
    written = [json.dumps(shares) if shares else "" for shares in attacked["probabilities"]]
    return attacked.assign(probabilities=written)[list(ATTACKED_COLUMNS)]


def read_attacked(path: Path) -> pd.DataFrame:
    """The table from a file. Raises InputError, one sentence, where it is none."""
    table = read_table(path)
    for name in ATTACKED_COLUMNS:
        if name not in table:
            raise InputError(f"{path.name} has no column {name!r}; export the study again")
    known = {CLEAN, PLACEBO, LONG_PLACEBO, *ATTACKS}
    probabilities = []
    cells = zip(table["attack"], table["draw"], table["probabilities"], strict=True)
    for at, (attack, draw, stated) in enumerate(cells):
        is_sound = attack in known or is_own(attack)
        try:
            shares = json.loads(stated) if stated else None
            is_sound &= shares is None or all(0 <= p <= 1 for p in shares.values())
        except (ValueError, TypeError, AttributeError, RecursionError):
            is_sound = False
        if not is_sound or not re.fullmatch("[0-9]{1,6}", draw):
            row = row_number(table, at)
            raise InputError(
                f"{path.name}, row {row}: attack, draw or probabilities are none that evenhand "
                "writes; export the study again"
            )
        probabilities.append(shares)
    table = table[list(ATTACKED_COLUMNS)].reset_index(drop=True)
    table["probabilities"] = pd.Series(probabilities, dtype=object)
    return table.astype({"draw": int})
