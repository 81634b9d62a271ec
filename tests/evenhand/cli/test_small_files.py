"""Small files as people bring them, and what evenhand says of each; also in the shapes that people
had trouble with: read right without a word of help, or refused with a proposal that works
(`reading/README.md` of the shared data says which is right).
"""

import contextlib
import json
import shlex
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from tests.cases import one_in
from tests.commands import Done, Run, proposals, python
from tests.exchange.conftest import packed

pytestmark = pytest.mark.journey

ANSWERS = Path(__file__).with_name("answers.txt")
"""All that is said: `python -m tests.evenhand.cli.test_small_files` writes it down anew."""
HEADER = ("unit_id", "rater_id", "rater_kind", "label")
Label = Callable[[int], str]


@dataclass(frozen=True)
class Case:
    """One file and what evenhand says of it. `command` (`check`, if none is given) is as typed in
    the folder of `file`. `mend` are options that it advises, word for word, and that help.
    """

    name: str
    content: str | bytes
    says: tuple[str, ...]
    code: int = 2
    file: str = "r.csv"
    command: str = ""
    mend: str = ""


def yes_no(unit: int) -> str:
    """Three units of four are a yes."""
    return "no" if unit % 4 == 0 else "yes"


def rank(unit: int) -> str:
    """1 to 4 in turn."""
    return str(1 + unit % 4)


def rows(
    gpt: Label = yes_no, people: Label = yes_no, units: int = 12
) -> list[tuple[str, str, str, str]]:
    """Ann and ben, who agree, and the grader gpt."""
    return [
        (f"u{unit}", rater, "model" if rater == "gpt" else "human", label(unit))
        for unit in range(units)
        for rater, label in (("ann", people), ("ben", people), ("gpt", gpt))
    ]


def csv(
    table: Iterable[Iterable[str]], header: Iterable[str] = HEADER, delimiter: str = ","
) -> str:
    """The rows below a header, quoted nowhere."""
    return "".join(delimiter.join(row) + "\n" for row in (header, *table))


def jsonl(records: Iterable[Mapping[str, object]]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def record(label: object, **more: object) -> dict[str, object]:
    return {"unit_id": "u1", "rater_id": "ann", "rater_kind": "human", "label": label, **more}


def every(share: int, odd: Label, label: Label = yes_no) -> Label:
    """The label, but the odd one on every so-many-th unit."""
    return lambda unit: odd(unit) if unit % share == 0 else label(unit)


PLAIN = csv(rows())
WIDE = csv(
    ((f"u{n}", yes_no(n), yes_no(n), yes_no(n)) for n in range(12)), ("id", "ann", "ben", "gpt-5")
)
TOPICS = csv([(*row, "tax") for row in rows()], (*HEADER, "topic"))
NO_KIND = ("unit_id", "rater_id", "label")
AGES = csv([(*row, "old" if row[1] == "ben" else "young") for row in rows()], (*HEADER, "age"))
COMMENTS = csv([(*row, f"{row[1]} says") for row in rows()], (*HEADER, "comment"))

PLACE = {"plain": PLAIN, "wide": WIDE, "topics": TOPICS, "ages": AGES, "comments": COMMENTS}
"""Files about which much is asked that is refused: refusals.toml."""

LABELS = [
    Case("case", csv(rows(gpt=lambda n: yes_no(n).title())),
         ("r.csv, row 4: the label 'No' of rater 'gpt' differs from 'no' only by case",
         "12 cells would change", "--no-normalise"), mend="--normalise"),
    Case("outer space", csv(rows(gpt=every(3, lambda n: yes_no(n) + " "))),
         ("invisible characters, spaces or .0: labels 4", "labels no, yes, unordered"), code=0),
    Case("no-break space", csv(rows(gpt=every(4, lambda n: "\u00a0no"))), ("labels no, yes",), 0),
    Case("point zero", csv(rows(lambda n: rank(n) + ".0", rank)), ("labels 1-4, ordered",), code=0),
    Case("point zero on a rubric", csv(rows(lambda n: "5.0", rank)), ("labels 1-5, ordered",),
         code=0, command="check r.csv --rubric refusal"),
    Case("point zero everywhere", csv(rows(lambda n: rank(n) + ".0", lambda n: rank(n) + ".0")),
         ("Labels 1-4 are read as ordered",), code=0),
    Case("decimals", csv(rows(every(3, lambda n: ".50", lambda n: "0"), lambda n: str(n % 3 / 2))),
         ("the label '.50' of rater 'gpt' looks like '0.5', and is '.50'",), mend="--normalise"),
    Case("nan", csv(rows(gpt=every(3, lambda n: "nan"))), ("Read as no label: nan (4)",), code=0),
    Case("None", csv(rows(gpt=every(5, lambda n: "None"))),
         ("row 4: the label 'None' of rater 'gpt' may mean",), mend="--missing None"),
    Case("a code", csv(rows(rank, every(5, lambda n: "99", rank))),
         ("row 2: the label '99' of rater 'ann' may mean", "(6 cells)"), mend="--missing 99"),
    Case("none is meant",
         csv(rows(gpt=every(5, lambda n: "none"), people=every(5, lambda n: "none"))),
         ("Annotators with one another",), code=0, command="check r.csv --categories yes,no,none"),
    Case("several at once", csv(rows(gpt=lambda n: ("No", "yes.", "NaN", "yes")[n % 4])),
         ("6 cells",), mend="--normalise"),
    Case("normalised", csv(rows(gpt=lambda n: ("No", "yes.", "NaN", "yes")[n % 4])),
         ("Normalised: 6 of 36 labels were changed", "labels seen (no, yes)"), code=0,
         command="check r.csv --normalise"),
    Case("kept apart", csv(rows(gpt=lambda n: yes_no(n).title())),
         ("labels No, Yes, no, yes, unordered",), code=0, command="check r.csv --no-normalise"),
    Case("two spellings declared", csv(rows(gpt=lambda n: "Yes")), ("Annotators with one another",),
         code=0, command="check r.csv --categories yes,Yes,no"),
    Case("another label", csv(rows(gpt=every(5, lambda n: "maybe"))),
         ("row 4: the label 'maybe' of rater 'gpt' is not one of the declared categories",),
         command="check r.csv --categories yes,no", mend="--missing maybe"),
    Case("nested", jsonl([record({"value": "yes"}), record("no", unit_id="u2")]),
         ("""the label '{"value": "yes"}' of rater 'ann' is nested JSON""",), file="r.jsonl"),
    Case("a mark in a name",
         csv([(*row[:3], '"yes, but"' if row[3] == "yes" else "no") for row in rows()]),
         ("the labels seen (no, yes, but) are taken as nominal",), code=0),
    Case("nested in a cell", csv([("u1", "ann", "human", '"[""yes""]"')]), ("is nested JSON",)),
    Case("twenty-one labels", csv(rows(gpt=lambda n: f"{n / 40:.3f}", units=21)),
         ("r.csv: there are 23 different labels (0, 0.025, 0.050 and so on)",)),
    Case("twenty labels", csv(rows(*[lambda n: f"topic{n % 20}"] * 2, units=40)), ("topic19",), 0),
    Case("a text for a label", csv(rows(gpt=every(5, lambda n: "x" * 201))),
         ("row 4: the label 'xxxxxxxxxxxx", "xxx...' of rater 'gpt' has 201 characters")),
    Case("NUL", csv(rows(gpt=every(5, lambda n: "y\0es"))), ("line 4: the file holds a NUL byte",)),
    Case("swallowed rows", csv([("u1", "ann", "human", '"yes'), ("u2", "ann", "human", 'no"')]),
         ("row 2: ", "contains a line break", "close the quote")),
    Case("TRUE beside yes", csv(rows(gpt=lambda n: "TRUE" if yes_no(n) == "yes" else "FALSE")),
         ("says in another word what 'no' says",), mend="--normalise"),
    Case("a gate on dirty labels", csv(rows(gpt=lambda n: yes_no(n).title())),
         ("differs from 'no' only by case",),
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5'", mend="--normalise"),
]  # fmt: skip

FILES = [
    Case("semicolons", csv(rows(), delimiter=";"), ("Annotators with one another",), code=0),
    Case("tabs", csv(rows(), delimiter="\t"), ("Annotators with one another",), code=0),
    Case("wide", WIDE, ("items `id`; annotators `ann`, `ben`; grader `gpt-5`",), code=0),
    Case("wide, names that end as fields do", WIDE.replace("ann", "pat").replace("ben", "david"),
         ("items `id`; annotators `pat`, `david`; grader `gpt-5`",), code=0),
    Case("wide, other names", WIDE.replace("gpt-5", "dan"),
         ("r.csv has no column 'rater_id'; name the columns",), mend="--human ann,ben,dan"),
    Case("wide, named", WIDE, ("Annotators with one another",), code=0,
         command="check r.csv --human ann,ben --model gpt-5"),
    Case("raters by rubrics",
         csv([f"{n}{n % 3}{n % 2}{n % 3}{n % 2}" for n in range(10)],
             ("unit_id", "r1_tone", "r1_facts", "r2_tone", "r2_facts")),
         ("r.csv has a column for each rater and rubric (r1, r2; tone, facts)", "read them with"),
         mend="--wide '{rater}_{rubric}' --human r1,r2"),
    Case("a rater without a rubric",
         csv([f"{n}{n % 3}{n % 2}{n % 3}{n % 2}{n % 3}" for n in range(10)],
             ("unit_id", "ann_tone", "ann_facts", "gpt-5_tone", "gpt-5_facts", "ben_tone")),
         ("annotators `ann`, `ben`; grader `gpt-5`",), code=0),
    Case("a rubric of one annotator",
         csv([f"{n}{n % 3}{n % 3}{n % 3}{n % 2}" for n in range(10)],
             ("unit_id", "ann_tone", "ben_tone", "gpt-5_tone", "ann_facts")),
         ("for some pairs of rater and rubric (ann, ben, gpt-5; tone, facts); read them with",),
         mend="--wide '{rater}_{rubric}' --human ann,ben --model gpt-5"),
    Case("a rubric of a grader alone",
         csv([f"{n}{n % 3}{n % 2}{n % 3}{n % 2}{n % 3}" for n in range(10)],
             ("unit_id", "ann_tone", "ann_facts", "gpt-5_tone", "gpt-5_facts", "gpt-5_care")),
         ("for some pairs of rater and rubric (ann, gpt-5; tone, facts, care); read them",),
         mend="--wide '{rater}_{rubric}' --human ann --model gpt-5"),
    Case("raters within names",
         "unit_id,ann_label,gpt4_label\n" + "".join(f"u{n},{n % 3},{n % 3}\n" for n in range(12)),
         ("r.csv has no column 'ann'; it has ann_label", "columns such as ann_label are read with"),
         command="check r.csv --human ann --model gpt4", mend="--wide '{rater}_{rubric}'"),
    Case("wide, dirty", WIDE.replace("yes\n", "Yes\n"),
         ("r.csv, row 3, column 'gpt-5': the label 'Yes' differs from 'yes' only by case",),
         command="check r.csv --human ann,ben --model gpt-5", mend="--normalise"),
    Case("other names", csv(rows(), ("item", "annotator", "type", "rating")),
         ("Read as: items `item`; annotators `ann`, `ben`; grader `gpt`",), code=0),
    Case("other names, twice",
         csv(([*row, "x"] for row in rows()), ("item", "annotator", "type", "rating", "worker")),
         ("the column 'unit_id' is missing (it has item, annotator, type, rating, worker)",),
         mend="--columns unit=item,rater=annotator,kind=type,label=rating"),
    Case("a usual name for groups of items",
         csv(((row[0], f"d{n // 9}", row[1], row[3]) for n, row in enumerate(rows())),
             ("claim", "document", "coder", "verdict")),
         ("unit_id' is missing",), mend="--columns unit=claim,rater=coder,label=verdict"),
    Case("names with spaces", csv(rows(), ("Unit ID", "raterId", "rater_kind", "Label")),
         ("it has Unit ID, raterId",), mend="--columns 'unit=Unit ID,rater=raterId,label=Label'"),
    Case("no kind", csv([(unit, rater, label) for unit, rater, _, label in rows()], NO_KIND),
         ("annotators `ann`, `ben`; grader `gpt`",), code=0),
    Case("no kind, no names",
         csv([(f"u{n}", f"r{who}", yes_no(n)) for n in range(12) for who in "123"], NO_KIND),
         ("has no column 'rater_kind'; say who the raters are",), mend="--human r1,r2,r3"),
    Case("names with commas", csv([(f"u{n}", f'"{who}, Al"', yes_no(n)) for n in range(12)
                                   for who in ("Doe", "Roe", "gpt")], NO_KIND),
         ("say who the raters are",), mend="""--human '"Doe, Al","Roe, Al"' --model '"gpt, Al"'"""),
    Case("unknown names", "a,b\n1,x\n2,y\n", ("the column 'unit_id' is missing (it has a, b)",)),
    Case("spaces in the header", csv(rows(), ("unit_id", " rater_id", " rater_kind", " label")),
         ("the column name ' rater_id' begins or ends with a space",)),
    Case("workbook named CSV", packed({"[Content_Types].xml": b"<Types/>"}),
         ("r.csv is a workbook of Excel",)),
    Case("Parquet named CSV", pd.DataFrame(rows(), columns=[*HEADER]).to_parquet(),
         ("r.csv is a Parquet file",)),
    Case("UTF-16", PLAIN.encode("utf-16"), ("r.csv, line 1: the file is UTF-16",)),
    Case("open quote",
         csv([*rows()[:1], ("u0", "ben", "human", '"yes'), ("u2", "ann", "human", "no")]),
         ("r.csv, row 3: a quoted cell does not end", "close the quote")),
    Case("quote within a quote", csv([("u1", "ann", "human", '"he said "yes""')]),
         ("r.csv, row 2: a quoted cell does not end", "inside a quoted cell twice")),
    Case("broken JSON", jsonl([record("yes")]) + '{"unit_id": "u2" "label": "no"}\n',
         ("r.jsonl, line 2: not valid JSON (expecting ',' delimiter",), file="r.jsonl"),
    Case("JSON over lines", json.dumps(record("yes"), indent=1),
         ("line 1: not valid JSON (it goes on over several lines)",), file="r.jsonl"),
    Case("JSON list", json.dumps([record("yes")]), ("No verdict",), 0, "r.json"),
    Case("JSON too deep", "[" * 100_000, ("JSON with too long a number",), file="r.jsonl"),
    Case("JSONL named CSV", jsonl([record("yes")]), ("r.csv holds JSON", "the extension .jsonl")),
    Case("a header alone", csv([]), ("has a header but no ratings",)),
    Case("no label at all", csv(rows(*[lambda n: ""] * 2)), ("no rating has a label",)),
    Case("person and model", csv([*rows(), ("u99", "ann", "model", "yes")]),
         ("r.csv, row 38: rater 'ann' is model here and human in row 2", "different ids")),
    Case("kind with a capital", PLAIN.replace("human", "Human"), ("rater_kind is 'Human'",)),
]  # fmt: skip

GATES = [
    Case("binary kappa", csv(rows(units=40)), ("met      cohen_kappa, binary label",), code=0,
         command="gate r.csv --grader gpt --affirmative yes --require 'cohen_kappa|binary > 0.5'"),
    Case("undefined", csv(rows(gpt=lambda n: "yes", people=lambda n: "yes")),
         ("inconclusive  cohen_kappa, estimate: undefined (no_variation;",), code=3,
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5' --categories yes,no"),
    Case("undefined and not met", csv(rows(gpt=lambda n: "yes", people=lambda n: "yes")),
         ("inconclusive  cohen_kappa", "not met  coverage"), code=1,
         command="gate r.csv --grader gpt --require cohen_kappa>0,coverage>1 --categories no,yes"),
    Case("gate on a broken file", csv([*rows(), ("u99", "ann", "human", "yes", "?")]),
         ("row 38: 5 cells",), command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5'"),
]  # fmt: skip

# Files whose verdict a careful reader sees at once. All labels are made by fixed patterns; ann, ben
# and cem agree on about nine of ten units.

N = 240


def truth(unit: int) -> str:
    """1 to 5, with no order that any pattern below follows."""
    return "12345"[(unit * 7 + unit // 5) % 5]


def with_slips(offset: int) -> Label:
    """Right but on one unit in ten, where the label is that of another unit."""
    return lambda unit: truth(unit + 1) if unit % 10 == offset else truth(unit)


PEOPLE = {"ann": with_slips(0), "ben": with_slips(3), "cem": with_slips(7)}
GOOD, ONE = with_slips(5), {"ann": truth}


def labels(gpt: Label, people: dict[str, Label] = PEOPLE, units: int = N) -> list[tuple[str, ...]]:
    """Everybody's rows, but for those of "-"."""
    return [
        (f"u{unit}", rater, "model" if rater == "gpt" else "human", label(unit))
        for unit in range(units)
        for rater, label in (people | {"gpt": gpt}).items()
        if label(unit) != "-"
    ]


def verdict(name: str, table: list[tuple[str, ...]], *says: str, more: str = "") -> Case:
    """A case whose verdict is printed, and which ends well."""
    scale = "check r.csv --level ordinal --categories 1,2,3,4,5"
    return Case(name, csv(table), says, 0, command=f"{scale} {more}".strip())


def reverse(unit: int) -> str:
    """The scale the other way round."""
    return str(6 - int(GOOD(unit)))


def only(at: int) -> Label:
    """One unit in three."""
    return lambda unit: truth(unit) if unit % 3 == at else "-"


def unrelated(unit: int) -> str:
    """Half and half, on no unit as `truth` would have it."""
    return "12"[(unit * unit // 3) % 2]


VERDICTS = (
    verdict("good", labels(GOOD), "gpt can replace an annotator"),
    verdict("inverted", labels(reverse), "It looks inverted", "reversed"),
    verdict("one answer", labels(lambda unit: "3"), "Do not use gpt", "no better than a baseline"),
    verdict("rows are missing", labels(lambda unit: "-" if unit % 5 < 2 else GOOD(unit)),
            "no label on 40% of 240 items", "absent 96"),
    verdict("a copy of ben", labels(PEOPLE["ben"]), "Its labels are those of ben on 100% of items",
            "compared with the other annotators only"),
    verdict("a copy of one of two",
            labels(PEOPLE["ben"], {name: PEOPLE[name] for name in ("ann", "ben")}), "Inconclusive",
            "only one other annotator labelled", "perhaps a copy of ben",
            "further annotators' labels would show which"),
    verdict("one expert", labels(GOOD, ONE), "Only one annotator labelled", "--reference"),
    verdict("one expert, declared", labels(GOOD, ONE), "gpt agrees with ann well enough",
            "this does not show that it can replace annotators", more="--reference ann"),
    verdict("one expert, declared, and a bad grader", labels(reverse, ONE),
            "gpt does not agree with ann", more="--reference ann"),
    verdict("human agreement too low",
            labels(GOOD, {"ann": truth, "ben": unrelated, "cem": lambda unit: truth(unit * 3 + 1)}),
            "is too low to evaluate any grader", "Make the rubric or its instructions clearer"),
    verdict("an annotator upside down", labels(GOOD, PEOPLE | {"ben": reverse}),
            "ben seems to label the other way round", "first check the labels of ben"),
    verdict("one annotator an item",
            labels(GOOD, {who: only(at) for at, who in enumerate(PEOPLE)}, units=40),
            "No item has labels of two annotators",
            "Have a second annotator label 40 items drawn at random"),
    verdict("few items", labels(GOOD, units=25), "Inconclusive", "label 5 more items"),
    verdict("only two annotators, for annotators like them",
            labels(GOOD, {name: PEOPLE[name] for name in ("ann", "ben")}), "needs three",
            more="--set scope=like_these"),
)  # fmt: skip


CASES = [*LABELS, *FILES, *GATES]


def answer(run: Callable[..., Done], case: Case, options: str = "") -> Done:
    """What evenhand says of the file, typed in its folder."""
    content = case.content if isinstance(case.content, bytes) else case.content.encode()
    Path(case.file).write_bytes(content)
    command = case.command or f"check {case.file}"
    return run(*shlex.split(f"{command} {options}"), "--resamples", "20")


def answered(case: Case, done: Done) -> str:
    return f"# {case.name}\n{done.stdout}{done.stderr}exit {done.returncode}\n\n"


CORE = ("good", "inverted", "one answer", "rows are missing", "one annotator an item")
OTHERS = [
    pytest.param(each, marks=[] if each.name in CORE else pytest.mark.slow) for each in VERDICTS
]


@pytest.mark.parametrize("case", [*CASES, *OTHERS], ids=lambda case: case.name)
@pytest.mark.usefixtures("here")
def test_a_small_file_gets_its_answer(run: Run, case: Case) -> None:
    done = answer(run, case)
    said = done.stdout + done.stderr
    assert done.returncode == case.code, said
    for words in (*case.says, case.mend):
        assert words in said
    assert answered(case, done) in ANSWERS.read_text("utf-8")
    if case.code == 2:
        assert "kappa" not in done.stdout  # no figures before the fault
        assert len(done.stderr.splitlines()) == 1
        assert len(done.stderr) < 500
        assert "['" not in done.stderr  # no lists of Python


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", one_in(2, [case for case in CASES if case.code == 2]), ids=lambda case: case.name
)
@pytest.mark.usefixtures("here")
def test_every_option_that_is_proposed_leads_on(run: Run, case: Case) -> None:
    """What is advised helps. The rest is read, or another fault is named: nobody is sent round in
    a circle.
    """
    first = answer(run, case)
    if case.mend:
        done = answer(run, case, case.mend)
        assert (done.returncode, done.stderr) == (0, "")
    for each in proposals(first.stderr):
        again = answer(run, case, each)
        assert again.returncode == 0 or again.stderr != first.stderr, each
        assert "Traceback" not in again.stderr
        assert "unrecognized" not in again.stderr


THREE = "--human ann,ben --model gpt"
SIX = "--human Ann1,Ann2,Ann3,Ann4,Ann5 --model Ann6"
READ = {
    "28c_zw_clean.csv": (THREE, "kappa 0.62 vs 0.77"),
    "28b_zw.csv": (THREE, "kappa 0.62 vs 0.77", "labels 29"),
    "28d_nfd.csv": (THREE, "kappa 0.62 vs 0.77", "labels no, sí"),
    "32b_rater_one.csv": ("", "annotators `ann@x.org`, `ben@x.org`; grader `gpt`"),
    "68_space_ids.csv": ("", "items 40", "Annotators · gpt", "40"),
    "26_nfd_ids.csv": ("", "items 40"),
    "31_float_ids.csv": ("", "items 40"),
    "shape_00_pandas_gap.csv": ("", "items `id`; annotator `human`; grader `judge`", "0, 1"),
    "shape_01_label_column.csv": ("--human label --model prediction",
        "annotator `label`; grader `prediction`"),
    "shape_02_other_info.jsonl": (SIX, "0.59 vs 0.57", "400 items, 5 annotators"),
    "shape_02_soft_label.jsonl": ("--human Ann1,Ann2,Ann3 --model Ann4", "400 items, 3 annotators",
        "labels -5 to 5, ordered"),
    "shape_08_crowd.csv": ("--human '*'", "and 64 more", "74 raters"),
    "shape_12_empty_input.csv": ("--human annotator1,annotator2 --model judge",
        "600 items in 100 clusters (column `instruction`)"),
}  # fmt: skip
REFUSED = {
    "28e_dash.csv": (THREE, "'off-topic'", "U+2010"),
    "28i_point.csv": (THREE, "'very good.'", "'very good'"),
    "93_apostrophe.csv": (THREE, "U+2019"),
    "32_rater_case.csv": ("", "'Ann@x.org'", "'ann@x.org'"),
    "71_model_case.csv": ("", "'GPT-4o'", "'gpt-4o'"),
    "shape_01_label_column.csv": ("", "--human label --model prediction"),
    "shape_11_missing_99.csv": ("--human ann,ben --model judge", "'99'", "--missing 99"),
    "shape_11_missing_dash.csv": ("--human ann,ben --model judge", "'-'", "--missing=-"),
}


@pytest.fixture
def check(run: Run, shared_data: Path, monkeypatch):
    """check(file, options): what evenhand says of a shared file."""
    monkeypatch.chdir(shared_data / "reading")

    def check(file: str, options: str = "") -> Done:
        return run("check", file, *shlex.split(options), "--resamples", "50")

    return check


@pytest.mark.slow
@pytest.mark.parametrize("file", READ)
def test_a_file_is_read_right(check, file: str) -> None:
    options, *expected = READ[file]
    done = check(file, options)
    assert done.returncode == 0, done.stderr
    for words in expected:
        assert words in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("file", REFUSED)
def test_what_a_refusal_proposes_works(check, file: str) -> None:
    options, *expected = REFUSED[file]
    done = check(file, options)
    assert done.returncode == 2
    for words in (file, *expected):
        assert words in done.stderr
    proposed = proposals(done.stderr)
    assert proposed
    for each in proposed:
        again = check(file, f"{options} {each}")
        assert (again.returncode, again.stderr) == (0, ""), each


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        said = (
            answered(case, answer(partial(python, "-m", "evenhand"), case))
            for case in [*CASES, *VERDICTS]
        )
        ANSWERS.write_text("".join(said), "utf-8")
