"""Small files as people bring them: what a careful reader says of each, and what evenhand says.

A row of the table is a `Case`; `test_small_files.py` writes its file, runs its command and looks
for its words.
"""

import gzip
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

HEADER = ("unit_id", "rater_id", "rater_kind", "label")
Label = Callable[[int], str]


@dataclass(frozen=True)
class Case:
    """One file, what its reader would say, and the words of evenhand that must be the same.

    `command` is as typed, in the folder of `file`. `mend` are options that evenhand advises, word
    for word; with them the command must go well.
    """

    name: str
    reader: str
    content: str | bytes
    says: tuple[str, ...]
    code: int = 2
    file: str = "r.csv"
    command: str = "check r.csv"
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
        (f"u{unit}", rater, kind, label(unit))
        for unit in range(units)
        for rater, kind, label in (
            ("ann", "human", people),
            ("ben", "human", people),
            ("gpt", "model", gpt),
        )
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


def workbook() -> bytes:
    """The first bytes of an Excel file are a ZIP archive's."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("[Content_Types].xml", "<Types/>")
    return buffer.getvalue()


def parquet() -> bytes:
    buffer = io.BytesIO()
    pd.DataFrame(rows(), columns=list(HEADER)).to_parquet(buffer)
    return buffer.getvalue()


PLAIN = csv(rows())
WIDE = csv(
    ((f"u{n}", yes_no(n), yes_no(n), yes_no(n)) for n in range(12)), ("id", "ann", "ben", "gpt-5")
)
TOPICS = csv([(*row, "tax") for row in rows()], (*HEADER, "topic"))
AGES = csv([(*row, "old" if row[1] == "ben" else "young") for row in rows()], (*HEADER, "age"))
COMMENTS = csv([(*row, f"{row[1]} says") for row in rows()], (*HEADER, "comment"))

LABELS = [
    Case("case", "gpt writes its labels with a capital; they are the same labels",
         csv(rows(gpt=lambda n: yes_no(n).title())),
         ("r.csv, row 4: the label 'No' of rater 'gpt' differs from 'no' only by case",
          "12 cells would change", "--no-normalise"), mend="--normalise"),
    Case("case, declared", "the same, and no and yes are declared",
         csv(rows(gpt=lambda n: yes_no(n).upper())),
         ("row 4: the label 'NO' of rater 'gpt' differs from 'no' only by case",),
         command="check r.csv --categories yes,no", mend="--normalise"),
    Case("outer space", "a space slipped in behind some of gpt's labels, which nobody sees",
         csv(rows(gpt=every(3, lambda n: yes_no(n) + " "))),
         ("invisible characters, spaces or .0: labels 4", "labels no, yes, unordered"), code=0),
    Case("no-break space", "it may be any space, in front too",
         csv(rows(gpt=every(4, lambda n: "\u00a0no"))), ("labels no, yes, unordered",), code=0),
    Case("point zero", "gpt's column went through a program that made it numbers with decimals",
         csv(rows(lambda n: rank(n) + ".0", rank)), ("labels 1-4, ordered",), code=0),
    Case("point zero, declared", "1 to 4 are declared, and 1.0 is 1",
         csv(rows(lambda n: rank(n) + ".0", rank)), ("labels 1-4, ordered",), code=0,
         command="check r.csv --level ordinal --categories 1,2,3,4"),
    Case("point zero on a rubric", "refusal goes from 1 to 5", csv(rows(lambda n: "5.0", rank)),
         ("labels 1-5, ordered",), code=0, command="check r.csv --rubric refusal"),
    Case("point zero everywhere", "all labels have decimals, so they are one set of labels",
         csv(rows(lambda n: rank(n) + ".0", lambda n: rank(n) + ".0")),
         ("Labels 1-4 are read as ordered",), code=0),
    Case("nan", "nan is how a program writes that there is nothing",
         csv(rows(gpt=every(3, lambda n: "nan"))), ("Read as no label: nan (4)",), code=0),
    Case("None", "None may be a program's word for nothing, or a label",
         csv(rows(gpt=every(5, lambda n: "None"))),
         ("row 4: the label 'None' of rater 'gpt' may mean that there is no label",),
         mend="--missing None"),
    Case("null", "so is null, though yes and no are declared",
         csv(rows(gpt=every(5, lambda n: "null"))), ("Read as no label: null (3)",), code=0,
         command="check r.csv --categories yes,no"),
    Case("a code", "99 stands where people gave no answer",
         csv(rows(rank, every(5, lambda n: "99", rank))),
         ("row 2: the label '99' of rater 'ann' may mean that there is no label (6 cells)",
          "keep it as a label with --categories 1,2,3,4,99"), mend="--missing 99"),
    Case("none is meant", "here none is a label, as whoever asks says",
         csv(rows(gpt=every(5, lambda n: "none"), people=every(5, lambda n: "none"))),
         ("Annotators with one another",), code=0, command="check r.csv --categories yes,no,none"),
    Case("several at once", "case, a full stop, a missing value",
         csv(rows(gpt=lambda n: ("No", "yes.", "NaN", "yes")[n % 4])), ("6 cells",),
         mend="--normalise"),
    Case("normalised", "the mends are counted",
         csv(rows(gpt=lambda n: ("No", "yes.", "NaN", "yes")[n % 4])),
         ("Normalised: 6 of 36 labels were changed", "labels seen (no, yes)"), code=0,
         command="check r.csv --normalise"),
    Case("kept apart", "whoever says so has two labels", csv(rows(gpt=lambda n: yes_no(n).title())),
         ("labels No, Yes, no, yes, unordered",), code=0, command="check r.csv --no-normalise"),
    Case("two spellings declared", "whoever declares Yes and yes wants both",
         csv(rows(gpt=lambda n: "Yes")), ("Annotators with one another",), code=0,
         command="check r.csv --categories yes,Yes,no"),
    Case("another label", "maybe is no spelling of yes or no",
         csv(rows(gpt=every(5, lambda n: "maybe"))),
         ("row 4: the label 'maybe' of rater 'gpt' is not one of the declared categories (yes, no)",
          "correct it, declare it, or read it as no label with --missing maybe"),
         command="check r.csv --categories yes,no", mend="--missing maybe"),
    Case("nested", "the label is wrapped in another object",
         jsonl([record({"value": "yes"}), record("no", unit_id="u2")]),
         ("""r.jsonl, row 1: the label '{"value": "yes"}' of rater 'ann' is nested JSON""",
          "write only the label"), file="r.jsonl", command="check r.jsonl"),
    Case("sets, as categories", "ann ticks one or two of four topics, and their order is chance",
         csv(rows(*[lambda n: ("tax", "health;tax", "tax;health", "health", "war")[n % 5]] * 2)),
         ("row 5: the label 'health;tax' of rater 'ann' looks like a set of options (health, tax, "
          "war)", "to take every label as one category"), mend="--several"),
    Case("a mark in a name", "the comma belongs to the name",
         csv([(*row[:3], '"yes, but"' if row[3] == "yes" else "no") for row in rows()]),
         ("the labels seen (no, yes, but) are taken as nominal",), code=0),
    Case("nested in a cell", "a list was written into the cell",
         csv([("u1", "ann", "human", '"[""yes""]"')]), ("row 2: ", "is nested JSON")),
    Case("twenty-one labels", "these are scores, no categories",
         csv(rows(gpt=lambda n: f"{n / 40:.3f}", units=21)),
         ("r.csv: there are 23 different labels (0, 0.025, 0.050 and so on)", "at most 20",
          "--categories")),
    Case("twenty labels", "many, but it may be a scale",
         csv(rows(*[lambda n: f"topic{n % 20}"] * 2, units=40)), ("topic19",), code=0),
    Case("a text for a label", "that is the answer, not its label",
         csv(rows(gpt=every(5, lambda n: "x" * 201))),
         ("row 4: the label 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' of rater 'gpt' has 201 "
          "characters", "at most 200")),
    Case("a cell of 300,000", "and this is a whole file in a cell",
         csv(rows(gpt=every(5, lambda n: "x" * 300_000))), ("has 300,000 characters",)),
    Case("NUL", "the file was damaged, or is UTF-16", csv(rows(gpt=every(5, lambda n: "y\0es"))),
         ("r.csv, line 4: the file holds a NUL byte",)),
    Case("NUL in JSON", "written as an escape", jsonl([record("y\0es")]),
         ("r.jsonl, line 1: a cell holds a NUL",), file="r.jsonl", command="check r.jsonl"),
    Case("swallowed rows", "a quote stands open from one row to another",
         csv([("u1", "ann", "human", '"yes'), ("u2", "ann", "human", 'no"')]),
         ("row 2: ", "contains a line break", "close the quote")),
    Case("TRUE beside yes", "a spreadsheet writes truth values, a model 1 and 0",
         csv(rows(gpt=lambda n: "TRUE" if yes_no(n) == "yes" else "FALSE")),
         ("says in another word what 'no' says; --normalise reads them as one",),
         mend="--normalise"),
    Case("TRUE where yes is declared", "the same on a declared scale",
         csv(rows(gpt=lambda n: "1" if yes_no(n) == "yes" else "0")),
         ("says in another word what 'no' says",), command="check r.csv --categories yes,no",
         mend="--normalise"),
    Case("a gate on dirty labels", "a gate must not fail a grader for a capital letter",
         csv(rows(gpt=lambda n: yes_no(n).title())), ("differs from 'no' only by case",),
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5'", mend="--normalise"),
    Case("select on dirty labels", "nor a ranking", csv(rows(gpt=lambda n: yes_no(n).title())),
         ("differs from 'no' only by case",), command="select r.csv", mend="--normalise"),
]  # fmt: skip

FILES = [
    Case("semicolons", "a spreadsheet in Europe wrote this", csv(rows(), delimiter=";"),
         ("Annotators with one another",), code=0),
    Case("tabs", "tabs, though it is called CSV", csv(rows(), delimiter="\t"),
         ("Annotators with one another",), code=0),
    Case("a TSV file", "tabs, and called so", csv(rows(), delimiter="\t"),
         ("Annotators with one another",), code=0, file="r.tsv", command="check r.tsv"),
    Case("wide", "a column for each rater, and names that say who is who", WIDE,
         ("items `id`; annotators `ann`, `ben`; grader `gpt-5`",), code=0),
    Case("wide, other names", "names that do not", WIDE.replace("gpt-5", "dan"),
         ("r.csv has no column 'rater_id'; name the columns of the raters' labels",),
         mend="--human ann,ben,dan"),
    Case("wide, named", "with who is who said, it is read", WIDE, ("Annotators with one another",),
         code=0, command="check r.csv --human ann,ben --model gpt-5"),
    Case("raters by rubrics", "four columns of two raters are not four raters",
         "unit_id,r1_tone,r1_facts,r2_tone,r2_facts\n"
         + "".join(f"u{n},{n % 3},{n % 2},{n % 3},{n % 2}\n" for n in range(12)),
         ("r.csv has a column for each rater and rubric (r1, r2; tone, facts)",
          "read them with"), mend="--wide '{rater}_{rubric}' --human r1,r2"),
    Case("raters within names", "ann and gpt4 are in the columns' names",
         "unit_id,ann_label,gpt4_label\n" + "".join(f"u{n},{n % 3},{n % 3}\n" for n in range(12)),
         ("r.csv has no column 'ann'; it has", "columns such as ann_label are read with"),
         command="check r.csv --human ann --model gpt4", mend="--wide '{rater}_{rubric}'"),
    Case("wide, streamed", "a column for each rater, to be read in parts", WIDE,
         ("r.csv has no column 'rater_id': with --engine a row is a rating",),
         command="check r.csv --engine dask --categories no,yes --human ann,ben --model gpt-5"),
    Case("wide, dirty", "the cell is named by its row and column", WIDE.replace("yes\n", "Yes\n"),
         ("r.csv, row 3, column 'gpt-5': the label 'Yes' differs from 'yes' only by case",),
         command="check r.csv --human ann,ben --model gpt-5", mend="--normalise"),
    Case("wide, one missing", "there is no dan", WIDE,
         ("r.csv has no column 'dan'; it has unit_id, ann, ben, gpt-5",),
         command="check r.csv --columns unit=id --human ann,dan"),
    Case("wide, twice named", "one cannot be both", WIDE, ("human and model both name 'ann'",),
         command="check r.csv --human ann,ben --model ann"),
    Case("other names", "the columns are there under other names",
         csv(rows(), ("item", "annotator", "type", "rating")),
         ("Read as: items `item`; annotators `ann`, `ben`; grader `gpt`",), code=0),
    Case("other names, twice", "two columns may be the raters'",
         csv(([*row, "x"] for row in rows()), ("item", "annotator", "type", "rating", "worker")),
         ("the column 'unit_id' is missing (it has item, annotator, type, rating, worker)",),
         mend="--columns unit=item,rater=annotator,kind=type,label=rating"),
    Case("names with spaces", "and with spaces and capitals",
         csv(rows(), ("Unit ID", "raterId", "rater_kind", "Label")), ("it has Unit ID, raterId",),
         mend="--columns 'unit=Unit ID,rater=raterId,label=Label'"),
    Case("no kind", "nobody says who is a person, but the names do",
         csv([(unit, rater, label) for unit, rater, _, label in rows()],
             ("unit_id", "rater_id", "label")),
         ("annotators `ann`, `ben`; grader `gpt`",), code=0),
    Case("no kind, other names", "both at once",
         csv([(unit, rater, label) for unit, rater, _, label in rows()], ("item", "who", "score")),
         ("items `item`; annotators `ann`, `ben`; grader `gpt`",), code=0),
    Case("no kind, no names", "r1 to r3 may be anybody",
         csv([(unit, {"ann": "r1", "ben": "r2", "gpt": "r3"}[rater], label)
              for unit, rater, _, label in rows()], ("unit_id", "rater_id", "label")),
         ("has no column 'rater_kind'; say who the raters are",), mend="--human r1,r2,r3"),
    Case("unknown names", "nothing here looks like ratings", "a,b\n1,x\n2,y\n",
         ("the column 'unit_id' is missing (it has a, b)", "--columns unit=COLUMN,rater=COLUMN",
          "if each rater has a column of labels, name these with --human and --model")),
    Case("columns that are not there", "who is no column", PLAIN,
         ("r.csv has no column 'who'; it has unit_id, rater_id, rater_kind, label",),
         command="check r.csv --columns rater=who"),
    Case("columns mistyped", "rather is no column of ratings", PLAIN,
         ("--columns: 'rather=who' is not valid", "unit, rater, kind, label"),
         command="check r.csv --columns rather=who"),
    Case("spaces in the header", "a space behind each comma",
         csv(rows(), ("unit_id", " rater_id", " rater_kind", " label")),
         ("the column name ' rater_id' begins or ends with a space",)),
    Case("workbook", "an Excel file", workbook(),
         ("r.xlsx is a workbook of Excel", "CSV UTF-8 (Comma delimited)"), file="r.xlsx",
         command="check r.xlsx"),
    Case("workbook named CSV", "an Excel file that was only renamed", workbook(),
         ("r.csv is a workbook of Excel", "CSV UTF-8 (Comma delimited)")),
    Case("Parquet named CSV", "the wrong extension", parquet(),
         ("r.csv is a Parquet file; give it the extension .parquet",)),
    Case("compressed", "packed", gzip.compress(PLAIN.encode()), ("r.csv is compressed", "gunzip")),
    Case("UTF-16", "a spreadsheet's 'Unicode text'", PLAIN.encode("utf-16"),
         ("r.csv, line 1: the file is UTF-16; save the file as UTF-8",)),
    Case("open quote", "the quote of row 3 never ends",
         csv([("u1", "ann", "human", "yes"), ("u1", "ben", "human", '"yes'),
              ("u2", "ann", "human", "no")]),
         ("r.csv, row 3: a quoted cell does not end", "close the quote")),
    Case("quote within a quote", "a quote in a quoted cell is written twice",
         csv([("u1", "ann", "human", '"he said "yes""')]),
         ("r.csv, row 2: a quoted cell does not end", "inside a quoted cell twice")),
    Case("broken JSON", "a comma is missing in the second line",
         jsonl([record("yes")]) + '{"unit_id": "u2" "label": "no"}\n',
         ("r.jsonl, line 2: not valid JSON (expecting ',' delimiter at character 18)",),
         file="r.jsonl", command="check r.jsonl"),
    Case("JSON over lines", "one object, nicely laid out", json.dumps(record("yes"), indent=1),
         ("r.jsonl, line 1: not valid JSON (it goes on over several lines)", "on one line"),
         file="r.jsonl", command="check r.jsonl"),
    Case("JSON list", "one list of objects", json.dumps([record("yes")]),
         ("No verdict: there is no grader to evaluate.",), code=0, file="r.json",
         command="check r.json"),
    Case("JSON too deep", "brackets without end", "[" * 100_000,
         ("r.jsonl, line 1: JSON that cannot be read",), file="r.jsonl", command="check r.jsonl"),
    Case("JSONL named CSV", "the wrong extension", jsonl([record("yes")]),
         ("r.csv holds JSON", "the extension .jsonl")),
    Case("person and model", "two raters have one name",
         csv([*rows(), ("u99", "ann", "model", "yes")]),
         ("r.csv, row 38: rater 'ann' is model here and human in row 2", "different ids")),
    Case("kind with a capital", "only three kinds are known", PLAIN.replace("human", "Human"),
         ("row 2: rater_kind is 'Human'", "human, model or adjudicator")),
    Case("folder", "a folder is no file", PLAIN, (". is a folder; name a file in it",),
         command="check ."),
    Case("unknown slice", "there is topic, no tpic", TOPICS,
         ("r.csv has no column 'tpic' to slice by; it has topic",),
         command="check r.csv --slice tpic"),
    Case("unknown group", "the same", TOPICS,
         ("r.csv has no column 'tpic' to group by; it has topic",),
         command="check r.csv --set groups=tpic"),
    Case("unknown cluster", "the same", TOPICS,
         ("r.csv has no column 'tpic' to cluster by; it has topic",),
         command="check r.csv --cluster tpic"),
    Case("unknown rater slice", "nothing is known of the raters", PLAIN,
         ("raters has no column 'age' to slice by; it has none",),
         command="check r.csv --set rater_slices=age"),
    Case("side of one annotator", "only one is old", AGES,
         ("r.csv, row 3: age 'old' has only the annotator 'ben', and a side needs two; add",),
         command="check r.csv --set rater_slices=age"),
    Case("nothing to slice by", "no column describes units", PLAIN,
         ("r.csv has no column 'topic' to slice by; it has no columns that describe units",),
         command="check r.csv --slice topic"),
    Case("slice of a rating", "comments differ from rater to rater", COMMENTS,
         ("r.csv: the column 'comment' differs between ratings of item 'u0'",),
         command="check r.csv --slice comment"),
    Case("report into a file", "a report is a folder; said before the work is done", PLAIN,
         ("r.csv is a file; name a folder",), command="check r.csv --out r.csv"),
    Case("report below a file", "nor is there a folder in a file", PLAIN,
         ("r.csv is a file; name a folder",), command="check r.csv --out r.csv/report"),
    Case("categories twice", "a category stands once", PLAIN,
         ("the categories must be at least one and all different, not yes, no, yes",),
         command="check r.csv --categories yes,no,yes"),
    Case("nowhere", "there is no such file", PLAIN, ("there is no file nowhere.csv in",),
         command="check nowhere.csv"),
]  # fmt: skip

GATES = [
    Case("rule met", "they agree", csv(rows(units=40)), ("met      cohen_kappa, low",), code=0,
         command="gate r.csv --grader gpt --require 'cohen_kappa.low > 0.5'"),
    Case("rule not met", "they do not", csv(rows(gpt=lambda n: yes_no(n // 2), units=40)),
         ("not met  cohen_kappa, low",), code=1,
         command="gate r.csv --grader gpt --require 'cohen_kappa.low > 0.5'"),
    Case("binary kappa without a yes", "nobody said which label is a yes", PLAIN,
         ("there is no cohen_kappa|binary here, as no labels count as yes", "--affirmative"),
         command="gate r.csv --grader gpt --require 'cohen_kappa|binary.low > 0.5'"),
    Case("binary kappa", "the rule of the documentation", csv(rows(units=40)),
         ("met      cohen_kappa, binary label, low",), code=0,
         command="gate r.csv --grader gpt --affirmative yes "
                 "--require 'cohen_kappa|binary.low > 0.5'"),
    Case("a statistic of nobody", "a person has no kappa with people in general", PLAIN,
         ("--require: 'ann' has no cohen_kappa here",),
         command="gate r.csv --grader ann --require 'cohen_kappa > 0.5'"),
    Case("undefined", "all say yes: there is no kappa, so the rule is neither met nor broken",
         csv(rows(gpt=lambda n: "yes", people=lambda n: "yes")),
         ("inconclusive  cohen_kappa, estimate: undefined (no_variation;",), code=3,
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5' --categories yes,no"),
    Case("undefined and not met", "what is known is not met, whatever the rest",
         csv(rows(gpt=lambda n: "yes", people=lambda n: "yes")),
         ("inconclusive  cohen_kappa", "not met  coverage"), code=1,
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5, coverage > 1' "
                 "--categories yes,no"),
    Case("gate on a broken file", "no grader falls short by a cell too many",
         csv([*rows(), ("u99", "ann", "human", "yes", "?")]), ("row 38: 5 cells",),
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5'"),
    Case("gate on an empty label", "nobody labelled anything", csv(rows(*[lambda n: ""] * 2)),
         ("no rating has a label",),
         command="gate r.csv --grader gpt --require 'cohen_kappa > 0.5'"),
]  # fmt: skip

CASES = [*LABELS, *FILES, *GATES]
