"""Foreign files as people bring them, each with what is right: what three raters said of twelve
units. Each is read, and refused with options that are then obeyed as they stand, until it is read
or no option is named. Synthetic.
"""

import csv
import io
import json
import random
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand.cli.main import Parser, build_parser, scale_options
from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export
from evenhand.reporting.load import from_file

ANN, BEN, GPT = "yyyynnnnyyny", "yyynnnnyyyny", "yyyynnynyyyy"
"""What two annotators and a model said, unit by unit."""
TONE = {"ann": "aabbaabbaabb", "ben": "aabbaabbabab", "gpt-4o": "aabbabbbaabb"}
UNITS = [f"u{number:02}" for number in range(1, 13)]
WORDS = {"y": "yes", "n": "no", "a": "warm", "b": "cold"}
SAID = {"ann": ANN, "ben": BEN, "gpt-4o": GPT}
HUMANS = ("ann", "ben")
Rating = tuple[str, str, str, str, str]
"""A unit, a rubric, a rater, the rater's kind and the label."""


def ratings(
    said: Mapping[str, str] = SAID,
    rubric: str = "",
    words: Mapping[str, str] = WORDS,
    names: Mapping[str, str] | None = None,
    units: Sequence[str] = UNITS,
) -> set[Rating]:
    """All ratings of a question; `names` are what the file calls the raters."""
    return {
        (unit, rubric, (names or {}).get(who, who), kind_of(who), words[letter])
        for who, letters in said.items()
        for unit, letter in zip(units, letters, strict=True)
    }


def kind_of(who: str) -> str:
    return "human" if who in HUMANS else "model"


TWO = ratings(rubric="clarity") | ratings(TONE, "tone")
"""Ratings of two questions."""


@dataclass(frozen=True)
class Foreign:
    """A file's name, how it is written, and its ratings; none where nobody could tell.

    Units of a table without names for them go by row, if `by_row`.
    """

    file: str
    write: Callable[[Path], object]
    right: frozenset[Rating]
    by_row: bool = False


FOREIGN: list[Foreign] = []


def foreign(
    file: str,
    content: str | bytes | Callable[[Path], object],
    right: Iterable[Rating] = (),
    *,
    by_row: bool = False,
) -> None:
    """Enter a file into the list."""
    if isinstance(content, str):
        content = content.encode()
    write = content if callable(content) else lambda path, own=content: path.write_bytes(own)
    FOREIGN.append(Foreign(file, write, frozenset(right), by_row))


def table(rows: Sequence[Sequence[object]], mark: str = ",") -> str:
    """Rows, the first with the names of the columns, as CSV."""
    text = io.StringIO()
    csv.writer(text, delimiter=mark, lineterminator="\n").writerows(rows)
    return text.getvalue()


Row = list[object]


def long(
    names: Sequence[str] = ("item", "annotator", "rating"),
    more: Callable[[int, int], Row] = lambda at, who: [],
    extra: Sequence[str] = (),
    order: Sequence[int] | None = None,
    words: Mapping[str, str] = WORDS,
) -> list[Row]:
    """A row for each rating, with other columns behind, in another order of columns if asked."""
    rows: list[Row] = [[*names, *extra]]
    for at, unit in enumerate(UNITS):
        for place, (who, letters) in enumerate(SAID.items()):
            rows.append([unit, who, words[letters[at]], *more(at, place)])
    return [[row[each] for each in order] for row in rows] if order else rows


def wide(
    names: Mapping[str, str] | None = None,
    more: Mapping[str, Callable[[int], object]] | None = None,
    words: Mapping[str, Mapping[str, str]] | None = None,
    first: str = "item",
) -> list[Row]:
    """A row for each unit and a column for each annotator, with other columns behind."""
    names, more, words = names or {}, more or {}, words or {}
    rows: list[Row] = [[first, *(names.get(who, who) for who in SAID), *more]]
    for at, unit in enumerate(UNITS):
        own = [words.get(who, WORDS)[letters[at]] for who, letters in SAID.items()]
        rows.append([unit, *own, *(make(at) for make in more.values())])
    return rows


def grid(pattern: str, by_rubric: bool = False) -> list[Row]:
    """A row for each unit and a column for each rater and question, called as the pattern says."""
    asked = {"clarity": SAID, "tone": TONE}
    pairs = [(who, of) for who in SAID for of in asked]
    if by_rubric:
        pairs.sort(key=lambda pair: pair[1])
    rows: list[Row] = [["item", *(pattern.format(rater=who, rubric=of) for who, of in pairs)]]
    for at, unit in enumerate(UNITS):
        rows.append([unit, *(WORDS[asked[of][who][at]] for who, of in pairs)])
    return rows


def jsonl(records: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def records(rows: list[Row]) -> list[dict[str, Any]]:
    names = [str(name) for name in rows[0]]
    return [dict(zip(names, row, strict=True)) for row in rows[1:]]


def sheets(**made: list[Row]) -> Callable[[Path], object]:
    """A workbook of these sheets."""

    def write(path: Path) -> None:
        import openpyxl

        book = openpyxl.Workbook()
        book.remove(book.active)
        for name, rows in made.items():
            sheet = book.create_sheet(name.replace("_", " "))
            for row in rows:
                sheet.append(row)
        book.save(path)

    return write


def day(at: int) -> str:
    return f"2026-01-{1 + at % 5:02}"


def clock(at: int) -> str:
    return f"2026-01-01T12:{at % 4:02}:00Z"


# fmt: off
# ---- tables with a row for each rating ----------------------------------------------------------

ALL = ratings()
foreign("commas.csv", table(long()), ALL)
foreign("semicolons.csv", table(long(), ";"), ALL)
foreign("tabs.tsv", table(long(), "\t"), ALL)
foreign("bars.csv", table(long(), "|"), ALL)
foreign("signed.csv", b"\xef\xbb\xbf" + table(long()).encode(), ALL)
foreign("utf16.csv", table(long()).encode("utf-16"))
foreign("latin.csv", table(long(("item", "annotatör", "rating"))).encode("latin-1"))
foreign("crlf.csv", table(long()).replace("\n", "\r\n"), ALL)
foreign("order.csv", table(long(order=(2, 0, 1))), ALL)
foreign("capitals.csv", table(long(("Item ID", "Annotator", "Rating"))), ALL)
foreign("camel.csv", table(long(("itemId", "workerId", "answer"))), ALL)
foreign("spaces.csv", table(long()).replace("item,annotator,", "item, annotator,"), ALL)
foreign("row_id.csv", table([["id", "created_at", *long()[0]], *([f"r{n}", clock(n), *row] for n,
        row in enumerate(long()[1:]))]), ALL)
foreign("row_id_named.csv", table([["id", "item_id", "user", "score"], *([f"r{n}", *row] for n, row
        in enumerate(long()[1:]))]), ALL)
foreign("measured.csv", table(long(more=lambda at, who: [1.5 * at, 0.02, 100 + at % 3],
        extra=("latency", "cost", "tokens"))), ALL)
foreign("comments.csv", table(long(more=lambda at, who: [f"I think so, {at}.", ""],
        extra=("comment", "flag"))), ALL)
foreign("nested_input.csv", table([["input", "annotator", "score"], *([json.dumps({"q": row[0]}),
        *row[1:]] for row in long()[1:])]))
foreign("doubled.csv", table([*long(), *long()[1:]]))
foreign("blank_lines.csv", table(long()).replace("\nu05", "\n\nu05"), ALL)
foreign("unshared.csv", table([["id", "annotator", "label"], *([f"r{n}", *row[1:]] for n, row in
        enumerate(long()[1:]))]))
foreign("two_asked.csv", table([["item", "annotator", "clarity", "tone"], *([unit, who,
        WORDS[SAID[who][at]], WORDS[TONE[who][at]]] for at, unit in enumerate(UNITS) for who in
        SAID)]), ALL)
foreign("criterion.csv", table([["item", "annotator", "criterion", "score"], *([unit, who, of,
        WORDS[said[who][at]]] for at, unit in enumerate(UNITS) for of, said in (("clarity", SAID),
        ("tone", TONE)) for who in SAID)]), TWO)
foreign("kinds.csv", table(long(more=lambda at, who: ["expert" if who < 2 else "ai"],
        extra=("type",))), ALL)
foreign("known_kinds.csv", table(long(more=lambda at, who: ["human" if who < 2 else "model"],
        extra=("type",))), ALL)
foreign("lines.jsonl", jsonl(records(long())), ALL)
foreign("list.json", json.dumps(records(long())), ALL)
foreign("nested.jsonl", jsonl({**each, "rating": {"value": each["rating"]}} for each in
        records(long())))
foreign("nested_rater.jsonl", jsonl({**each, "annotator": {"name": each["annotator"]}} for each in
        records(long())))
foreign("long.parquet", lambda path: pd.DataFrame(records(long())).to_parquet(path), ALL)
foreign("numbers.csv", table(long(words={"y": "0.9", "n": "0.1"})), ratings(words={"y": "0.9", "n":
        "0.1"}))
foreign("timed_raters.csv", table([["trace_id", "timestamp", "score"], *([row[0], clock(n), row[2]]
        for n, row in enumerate(long()[1:]))]))
foreign("metrics.csv", table([["item", "metric", "value"], *([unit, name, value] for n, unit in
        enumerate(UNITS) for name, value in (("latency", n / 7), ("tokens", 90 + n), ("bleu", n /
        13)))]))
foreign("disjoint.csv", table([["item", "annotator", "label"], *([unit, who, f"{who}-{n % 2}"] for
        n, unit in enumerate(UNITS) for who in SAID)]))

# ---- tables with a column for each rater --------------------------------------------------------

foreign("wide.csv", table(wide()), ALL, by_row=True)
foreign("wide_semicolons.csv", table(wide(), ";"), ALL, by_row=True)
foreign("wide_units.csv", table(wide(first="unit_id")), ALL)
foreign("wide_plain.csv", table(wide({"ann": "human_1", "ben": "human_2"})), ratings(names={"ann":
        "human_1", "ben": "human_2"}), by_row=True)
foreign("wide_times.csv", table(wide(more={"created": day, "updated": day, "topic": lambda at:
        ["tax", "rent"][at % 2], "lang": lambda at: "en", "locale": lambda at: "en"})), ALL,
        by_row=True)
foreign("wide_measured.csv", table(wide(more={"latency_ms": lambda at: 100 + at % 3, "tokens":
        lambda at: 100 + at % 4, "cost": lambda at: 0.5, "sec": lambda at: at % 4})), ALL,
        by_row=True)
foreign("wide_seconds.csv", table(wide(more={"seconds": lambda at: at % 4})), ALL, by_row=True)
foreign("wide_epochs.csv", table(wide(more={"begun": lambda at: 1767225600 + at % 3, "sent": lambda
        at: 1767225600 + at % 3})), ALL, by_row=True)
foreign("wide_texts.csv", table(wide(more={"prompt": lambda at:
        f"Question {at % 3}, with some words to it", "answer": lambda at: "I do not know. " * 9,
        "comment": lambda at: "fine"})), ALL, by_row=True)
foreign("wide_nested.csv", table(wide(more={"metadata": lambda at: json.dumps({"a": 1}), "tags":
        lambda at: json.dumps(["x"]), "config": lambda at: json.dumps({"a": 1})})), ALL,
        by_row=True)
foreign("wide_empty.csv", table(wide(more={"flag": lambda at: "", "other": lambda at: ""})), ALL,
        by_row=True)
foreign("wide_flags.csv", table(wide(more={"is_gold": lambda at: "yes", "has_image": lambda at:
        "no", "finished": lambda at: "yes"})), ALL, by_row=True)
foreign("wide_gaps.csv", table([[*row[:2], "" if n == 3 else row[2], *row[3:]] for n, row in
        enumerate(wide())]), ALL - {("u03", "", "ben", "human", "yes")}, by_row=True)
foreign("wide_mixed.csv", table(wide(words={"ben": {"y": "TRUE", "n": "FALSE"}, "gpt-4o": {"y": "1",
        "n": "0"}})), ALL, by_row=True)
foreign("wide.jsonl", jsonl(records(wide())), ALL, by_row=True)
foreign("wide.parquet", lambda path: pd.DataFrame(records(wide())).to_parquet(path), ALL,
        by_row=True)
COMMAS = {"ann": "Doe, Jane", "ben": "Roe, Bo"}
foreign("commas_in_names.csv", table(wide(COMMAS)), {
        (unit, rubric, COMMAS.get(who, who), kind, label)
        for unit, rubric, who, kind, label in ALL})
foreign("disjoint_wide.csv", table([["item", "ann", "gpt-4o", "split", "lang"], *([u, WORDS[a],
        {"y": "good", "n": "bad"}[g], "test", "en"] for u, a, g in zip(UNITS, ANN, GPT,
        strict=True))]))
foreign("questions.csv", table([["item", "accuracy", "helpfulness", "safety"], *([u, WORDS[a],
        WORDS[b], WORDS[g]] for u, a, b, g in zip(UNITS, ANN, BEN, GPT, strict=True))]))
foreign("facts.csv", table([["timestamp", "model", "latency", "input_tokens", "output_tokens",
        "status"], *([clock(n), "gpt-4o", n / 7, 100 + n % 3, 100 + n % 2, "ok"] for n in
        range(12))]))
foreign("survey.csv", table([["StartDate", "EndDate", "ResponseId", "Duration (in seconds)",
        *UNITS], *([day(n), day(n), f"R_{n}", 300 + n, *(WORDS[x] for x in letters)] for n, letters
        in enumerate(SAID.values()))]))
foreign("model_columns.csv", table([["item", "answer_a", "answer_b", "ann", "ben", "gpt-4o"], *([u,
        f"Text {n} of one", f"Text {n} of other", *row] for n, (u, *row) in
        enumerate(wide()[1:]))]), ALL, by_row=True)

for mark, suffix in ((",", "csv"), ("\t", "tsv")):
    foreign(f"label_studio.{suffix}", table([["annotation_id", "annotator", "clear", "created_at",
            "id", "lead_time", "x"], *([n, row[1], row[2], clock(n), row[0], 3.2, "tax"] for n, row
            in enumerate(long()[1:]))], mark))

# ---- a column for each rater and question -------------------------------------------------------

for name, pattern in {
    "underscore": "{rater}_{rubric}", "turned": "{rubric}_{rater}", "dot": "{rater}.{rubric}",
    "colon": "{rubric}: {rater}", "dash": "{rater} - {rubric}", "slash": "{rater}/{rubric}",
    "bracket": "{rubric} [{rater}]", "paren": "{rater} ({rubric})", "double": "{rater}__{rubric}",
    "space": "{rater} {rubric}",
}.items():
    foreign(f"grid_{name}.csv", table(grid(pattern)), TWO, by_row=True)
foreign("grid_sorted.csv", table(grid("{rater}_{rubric}", by_rubric=True)), TWO, by_row=True)
foreign("grid.jsonl", jsonl(records(grid("{rater}_{rubric}"))), TWO, by_row=True)
foreign("grid_more.csv", table([[*row, *([f"{who}_{what}" for who in SAID for what in ("seconds",
        "comment")] if n == 0 else [n % 5, "fine"] * 3)] for n, row in
        enumerate(grid("{rater}_{rubric}"))]), TWO, by_row=True)
foreign("grid_plain.csv", table([[str(cell).replace("ann_", "human_1_").replace("ben_", "human_2_")
        if n == 0 else cell for cell in row] for n, row in enumerate(grid("{rater}_{rubric}"))]),
        {(u, of, {"ann": "human_1", "ben": "human_2"}.get(who, who), kind, said) for u, of, who,
        kind, said in TWO}, by_row=True)
foreign("rounds.csv", table([["item", *(f"{who}_{n}" for who in ("ann", "ben") for n in (1, 2))],
        *([u, WORDS[a], WORDS[b], WORDS[g], WORDS[a]] for u, a, b, g in zip(UNITS, ANN, BEN, GPT,
        strict=True))]))
foreign("unknown_grid.csv", table([["item", "x_k", "x_l", "y_k", "y_l"], *([u, WORDS[a], WORDS[b],
        WORDS[g], WORDS[a]] for u, a, b, g in zip(UNITS, ANN, BEN, GPT, strict=True))]))

# ---- workbooks ----------------------------------------------------------------------------------

foreign("one.xlsx", sheets(Ratings=long()), ALL)
foreign("wide.xlsx", sheets(Ratings=wide()), ALL, by_row=True)
foreign("notes.xlsx", sheets(Read_me=[["Ratings of the pilot"], ["by ann and ben"]],
        Ratings=long()), ALL)
foreign("several.xlsx", sheets(Ratings=long(), Costs=[["item", "usd"], ["u01", 1]]))
foreign("titled.xlsx", sheets(Ratings=[["Ratings"], *long()]))

# ---- drawn at random: raters, labels, a shape, and columns of other things ----------------------

# fmt: on
_NAMES = (
    ("ann", "ben", "gpt-4o"),
    ("Ann Lee", "Ben Roe", "GPT-4"),
    ("r1", "r2", "claude-3-5-sonnet"),
    ("annotator_a", "annotator_b", "llm_judge"),
    ("expert 1", "expert 2", "gemini-1.5-pro"),
    ("alice", "bob", "model_output_label"),
    ("Coder_X", "Coder_Y", "openai/gpt-5-mini"),
)  # fmt: skip
_LABELS = (
    {"y": "yes", "n": "no"}, {"y": "5", "n": "2"}, {"y": "good", "n": "bad"},
    {"y": "TRUE", "n": "FALSE"}, {"y": "1", "n": "0"}, {"y": "A", "n": "B"},
)  # fmt: skip
_OTHERS: dict[str, Callable[[int], object]] = {
    "created_at": lambda at: day(at), "Timestamp": lambda at: f"{1 + at % 3}/11/2026 10:0{at % 2}",
    "updatedAt": lambda at: clock(at), "begun": lambda at: 1767225600000 + at % 2,
    "date": lambda at: f"0{1 + at % 5}.11.2026", "latency": lambda at: round(at / 7, 2),
    "latency_ms": lambda at: 1 + at % 5, "total_tokens": lambda at: 1 + at % 5,
    "cost_usd": lambda at: 5, "n_words": lambda at: 2 + at % 4, "turn": lambda at: at % 2,
    "temperature": lambda at: 1, "topic": lambda at: ["A", "B"][at % 2], "lang": lambda at: "en",
    "is_gold": lambda at: ["yes", "no"][at % 2], "has_link": lambda at: ["TRUE", "FALSE"][at % 2],
    "majority": lambda at: "yes", "final_label": lambda at: ["good", "bad"][at % 2],
    "consensus": lambda at: "5", "difficulty": lambda at: 1 + at % 5, "split": lambda at: "test",
    "confidence": lambda at: 1 + at % 5, "prompt": lambda at: f"Question {at} in some words",
    "response": lambda at: "A long answer. " * 20, "metadata": lambda at: '{"a": 1}',
    "tags": lambda at: '["x", "y"]', "empty": lambda at: "", "Unnamed: 0": lambda at: at,
    "reason": lambda at: "because", "url": lambda at: f"https://example.org/{at}",
    "gpt_reason": lambda at: "It reads well.", "version": lambda at: "2", "seed": lambda at: 1,
}  # fmt: skip
MIXED = 90


def _mixed(seed: int) -> None:
    """A table of random raters, labels, shape, separator, and other columns in random places."""
    drawn = random.Random(seed)
    names = dict(zip(SAID, drawn.choice(_NAMES), strict=True))
    words = {**drawn.choice(_LABELS), "a": "warm", "b": "cold"}
    extra = drawn.sample(sorted(_OTHERS), drawn.randint(2, 7))
    shape = drawn.choice(("long", "wide", "grid"))
    unit = drawn.choice(("item", "question_id", "sample_id", "doc"))
    rater = drawn.choice(("annotator", "worker_id", "coder"))
    asked = {"clarity": SAID, "tone": TONE} if shape == "grid" else {"": SAID}
    rows: list[dict[str, object]] = []
    for at, name in enumerate(UNITS):
        more = {each: _OTHERS[each](at) for each in extra}
        said = {(names[w], of): words[a[w][at]] for of, a in asked.items() for w in SAID}
        if shape == "long":
            rows += [{unit: name, rater: w, "score": got, **more} for (w, _), got in said.items()]
        else:
            mark = "_" if shape == "grid" else ""
            rows.append(
                {unit: name, **more} | {f"{w}{mark}{of}": got for (w, of), got in said.items()}
            )
    order = list(rows[0])
    drawn.shuffle(order)
    if shape != "long":  # whose order decides nothing
        drawn.shuffle(rows)
    content = table([order, *([row[name] for name in order] for row in rows)], drawn.choice(",;\t"))
    right = set().union(*(ratings(a, of, words, names) for of, a in asked.items()))
    foreign(f"mixed_{seed:02}.csv", content, right)


for number in range(MIXED):
    _mixed(number)


# ---- files of other tools, in other forms -------------------------------------------------------


def labelled(table: pd.DataFrame) -> frozenset[Rating]:
    own = table.loc[table["label"] != "", ["unit_id", "rubric", "rater_id", "rater_kind", "label"]]
    return frozenset(own.itertuples(index=False, name=None))


def exported(path: Path) -> frozenset[Rating]:
    """The ratings of a tool's file, which test_readers.py holds to what the tool was told."""
    rows = read_export(path).table
    if (rows["rater_id"] == "sdk").any():  # a score from an interface may be anybody's
        return frozenset()
    return labelled(rows.assign(rater_kind=rows["rater_kind"].replace("", "model")))


def _content(path: Path) -> Any:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return json.loads(path.read_text("utf-8"))


def enter_tools_files(files: Iterable[Path]) -> None:
    """Enter the files of tools into the list, as they are and in the other form of JSON."""
    for file in files:
        if file.suffix not in (".json", ".jsonl"):
            continue
        content, right = _content(file), exported(file)
        stem = f"tool_{file.stem}_{file.parent.name}"
        if isinstance(content, list):
            foreign(f"{stem}.jsonl", jsonl(content), right)
            foreign(f"{stem}.json", json.dumps(content), right)
        else:
            foreign(f"{stem}.json", json.dumps(content), right)


# ---- reading, and obeying what is said ----------------------------------------------------------

_PLACEHOLDER = re.compile(r"COLUMN|NAME|PATTERN|LABEL|\.\.\.")
_MOST_STEPS = 5


READ, ADVISED, REFUSED = "read at once", "read with the options named", "refused with a mend"


@dataclass(frozen=True)
class Outcome:
    """Whether a file was read at last, the options that were obeyed, and what was said where it was
    refused.
    """

    read: bool
    obeyed: tuple[str, ...]
    said: str

    @property
    def how(self) -> str:
        if not self.read:
            return REFUSED
        return ADVISED if self.obeyed else READ


class MisreadError(AssertionError):
    """A table that is not what the file holds."""


@cache
def _parser() -> Parser:
    return build_parser()


def read(path: Path, words: Sequence[str]) -> frozenset[Rating]:
    """The labelled ratings of a file as `evenhand check FILE OPTIONS` takes them. Raises InputError
    where it is refused.
    """
    arguments = _parser().parse_args(["check", str(path), *words])
    return labelled(from_file(path, scale_options(arguments)).ratings)


def advised(said: str) -> Iterator[list[str]]:
    """The options that a sentence names, as they stand: each alternative with no place left for the
    reader to fill in, but for those that keep spellings or codes as they are.
    """
    for part in re.split(r",? or (?=[^()]*--)|; |, (?=--no-)", said):
        if part.startswith("keep ") or "--no-" in part:
            continue
        words: list[str] = []
        for found in re.finditer(
            r"(--[a-z-]+)((?: (?!--)(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+))?)", part
        ):
            option, value = found[1], found[2].strip().rstrip(",;.")
            takes = _parser().verbs["check"]._option_string_actions.get(option)
            if takes is None:
                continue
            if takes.nargs != 0 and (not value or _PLACEHOLDER.search(value)):
                words = []
                break
            words += [option] if takes.nargs == 0 else [option, *shlex.split(value)[:1]]
        if words:
            yield words


def outcome(file: Foreign, folder: Path) -> Outcome:
    """Read a file, and obey all that is said. Raises MisreadError where a table is not the right
    one.
    """
    path = folder / file.file
    file.write(path)
    waiting: list[list[str]] = [[]]
    last, reached, seen = Outcome(False, (), ""), None, set()
    while waiting:
        words = waiting.pop(0)
        if tuple(words) in seen or len(words) > 2 * _MOST_STEPS:
            continue
        seen.add(tuple(words))
        try:
            found = read(path, words)
        except InputError as fault:
            said = str(fault)
            if "\n" in said:
                raise MisreadError(f"{file.file} {words}: {said!r}") from None
            last = last if last.said else Outcome(False, tuple(words), said)
            waiting += [_with(words, more) for more in advised(said)]
            continue
        if _by_name(found, file) != file.right:
            wrong = sorted(_by_name(found, file) ^ file.right)[:4]
            raise MisreadError(f"{file.file} {shlex.join(words)}: {len(found)} ratings; {wrong}")
        reached = reached or Outcome(True, tuple(words), "")
    return reached or last


def _with(words: list[str], more: list[str]) -> list[str]:
    """The words with further options, which take the place of earlier ones of the same name."""
    given: dict[str, list[str]] = {}
    for word in [*words, *more]:
        if word.startswith("--"):
            own = given[word] = [word]
        else:
            own.append(word)
    return [word for each in given.values() for word in each]


def _by_name(found: frozenset[Rating], file: Foreign) -> frozenset[Rating]:
    """Ratings with the names of items that a wide table without such names numbers by row."""
    if not file.by_row or {unit for unit, *_ in found} <= {*UNITS}:
        return found
    rows = sorted({int(unit) for unit, *_ in found})
    return frozenset(
        (UNITS[rows.index(int(unit))], rubric, rater, kind, label)
        for unit, rubric, rater, kind, label in found
    )
