"""Shapes of files that no tool alone writes; and whatever bytes a file holds, it is read or refused
in one sentence, within bounds.
"""

import datetime
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.exchange.readers import source
from evenhand.exchange.readers.reading import FORMATS, read_export, read_items
from evenhand.exchange.readers.rows import Export
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import is_later
from tests.cases import refused
from tests.commands import Run
from tests.exchange.conftest import Wrote, packed
from tests.exchange.test_items import ITEMS as ITEM_FILES
from tests.exchange.test_readers import FILES


def labels(export: Export, rater: str) -> str:
    own = export.table[export.table["rater_id"] == rater]
    return "".join(label[:1] for label in own["label"])


@pytest.mark.parametrize(
    ("one", "other", "later"),
    [
        ("2026-05-01T09:00:00Z", "2026-05-01T10:30:00+02:00", True),
        ("2026-05-01T09:00:00.001Z", "2026-05-01T09:00:00Z", True),
        ("2026-05-01 09:00:00.5+0000", "2026-05-01T09:00:00,4Z", True),
        ("1777624200001", "1777624200", True),
        ("1777624200.25", "1777624200000", True),
        ("2026-05-01T09:00:00Z", "1777624200", True),
        ("2026-05-01T09:00", "2026-05-01T08:00", True),
        ("2026-05-01T09:00", "2026-05-01T08:00Z", None),
        ("2026-05-03T09:00", "2026-05-01T08:00Z", True),
        ("2026-05-01T09:00Z", "2026-05-01T11:00+02:00", None),
        ("yesterday", "2026-05-01T09:00Z", None),
    ],
)
def test_times_are_compared_as_instants(one: str, other: str, later: bool | None) -> None:
    assert is_later(one, other) is later
    assert is_later(other, one) is (None if later is None else not later)


def annotation(who: object, label: str | None, **more: object) -> dict:
    result = {"from_name": "fair", "type": "choices", "value": {"choices": [label]}}
    named = {} if who is None else {"completed_by": who}
    return {"result": [] if label is None else [result], **named, **more}


def task(*annotations: dict, text: str = "t") -> dict:
    return {"id": 1, "data": {"text": text}, "annotations": annotations}


def test_answers_of_label_studio_by_time_person_and_task(wrote: Wrote) -> None:
    yes, no = annotation(7, "yes"), annotation(7, "no")
    told = r"7 gave item 1 \(fair\) two answers, yes and no, and no"
    refused(told, read_export, wrote([task(yes, no)]))
    export = read_export(wrote([task(yes, yes)]))
    assert (labels(export, "7"), dict(export.left_out)) == ("y", {"repeats of the same answer": 1})
    timed = [
        annotation(7, "no", created_at="2026-05-01T10:30:00+02:00"),
        annotation(7, "yes", created_at="2026-05-01T09:00:00Z"),
    ]
    for both in (timed, timed[::-1]):
        assert labels(read_export(wrote([task(*both)])), "7") == "y", "the later one counts"
    export = read_export(wrote([task(yes, text="north"), task(no, text="south")]))
    assert export.table["unit_id"].nunique() == 2, "tasks of two projects"
    assert any("kept apart" in note for note in export.notes)
    assert labels(read_export(wrote([task(yes), task(no) | {"id": 2, "data": None}])), "7") == "yn"
    export = read_export(wrote([task(yes, annotation(None, "no"), annotation(8, None))]))
    assert "not say who gave" in " ".join(export.notes)
    assert export.left_out["submitted answers that are empty"] == 1
    cases = [
        {"name": "case", "input": text, "actualOutput": "x",
         "metricsData": [{"name": "Fair", "evaluationModel": "gpt-4o", "success": ok}]}
        for text, ok in (("a", True), ("b", False))
    ]  # fmt: skip
    assert labels(read_export(wrote({"testCases": cases})), "gpt-4o") == "tf", "cases of one name"


def test_a_table_of_potato_without_its_columns_is_refused(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "raw_data.csv"
    file.write_text("instance_id,user_id,text,offensive\n0,ann,So.,1\n0,ben,So.,2\n")
    told = "--format table --columns unit=instance_id,rater=user_id,label=COLUMN"
    assert told in run.refused("check", file)
    refused("an item once for each annotator", read_items, file)


LONG = [[f"w{w}", f"item{n}", "PG"[(n * w) % 2]] for n in range(12) for w in range(3)]


@pytest.mark.parametrize(("name", "mark"), [("f.tsv", "\t"), ("f.txt", ","), ("f.csv", ";")])
def test_a_table_without_a_header_is_read_as_headless(tmp_path, name, mark, run):
    file = tmp_path / name
    file.write_text("".join(mark.join(row) + "\n" for row in LONG))
    assert run.refused("check", file).rstrip().endswith("--format headless")
    kinds = {f"w{n}": "human" for n in range(3)}
    columns = {"unit_id": "column2", "rater_id": "column1", "label": "column3"}
    rows = rows_of_file(file, ScaleOptions(format="headless", columns=columns, kinds=kinds))[0]
    assert rows[["rater_id", "unit_id", "label"]].to_numpy().tolist() == LONG


@pytest.mark.parametrize(
    "text",
    [
        "item,1,2,3\nu1,1,2,3\nu2,2,2,1\nu3,3,3,3\nu4,1,1,2\n",
        "1,2,3\n1,2,3\n2,2,1\n3,3,3\n1,1,2\n",
        "id,ann,ben\n1,yes,no\n2,no,no\n3,yes,yes\n",
    ],
)
def test_names_of_columns_are_no_data(tmp_path: Path, text: str) -> None:
    (tmp_path / "f.csv").write_text(text)
    assert read_table(tmp_path / "f.csv").columns.tolist() == text.split("\n")[0].split(",")


def book(folder: Path, rows: list[Any]) -> Path:
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    made.save(folder / "f.xlsx")
    return folder / "f.xlsx"


def test_formulas_without_values_and_labels_that_became_dates_are_named(tmp_path: Path) -> None:
    rows = [["item", "ann", "ben"], *([n, "yes", f'=IF(B{n + 2}="yes","no","")'] for n in range(5))]
    told = r"formulas without stored values, by column 'ben' \(5\)"
    refused(told, read_export, book(tmp_path, rows))
    day = datetime.datetime(2026, 2, 1)
    rows = [["item", "ben"], *enumerate(["5-6", day, "5-6", day])]
    told = "column 'ben': B3, B5 are dates, and other cells are not"
    refused(told, read_export, book(tmp_path, rows))
    for name, cells in (("made", [day] * 4), ("created_at", ["soon", day])):
        export = read_export(book(tmp_path, [["item", name, " "], *enumerate(cells)]))
        assert export.table.columns.tolist() == ["item", name]


ANN, BEN = "yynnyn", "ynnyyn"
"""What two annotators said, item by item."""
ITEMS = range(6)
NAMES = ("Ann1", "Ann2")


def said(number: int) -> dict[str, str]:
    return dict(zip(NAMES, (ANN[number], BEN[number]), strict=True))


def listed(number: int) -> list[dict[str, str]]:
    return [{"annotator_id": who, "label": label} for who, label in said(number).items()]


def item(number: int, **more: Any) -> dict[str, Any]:
    return {"id": f"i{number}", "text": f"Text {number}", **more}


INSIDE = [item(n, annotations=said(n)) for n in ITEMS]
SHAPES: dict[str, Any] = {
    "a list": INSIDE,
    "items by id": {each["id"]: {"annotations": each["annotations"]} for each in INSIDE},
    "a wrapper": {"dataset": "made up", "annotations": [{"metric": "x"}], "instances": INSIDE},
    "two wrappers": {"data": {"version": 1, "items": INSIDE}},
    "lists of objects": [item(n, annotators=listed(n)) for n in ITEMS],
    "another name": [item(n, opinions=listed(n)) for n in ITEMS],
    "objects by rater": [
        item(n, annotations={who: {"label": x, "comment": "so"} for who, x in said(n).items()})
        for n in ITEMS
    ],
    "lists side by side": [
        item(n, annotators=[*NAMES], annotations=[*said(n).values()]) for n in ITEMS
    ],
    "commas": [
        item(n, annotators="Ann1,Ann2", annotations=",".join(said(n).values())) for n in ITEMS
    ],
    "raters outside": {who: {f"i{n}": said(n)[who] for n in ITEMS} for who in NAMES},
    "objects of raters outside": {
        who: {f"i{n}": {"label": said(n)[who], "seconds": 3} for n in ITEMS} for who in NAMES
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_as_what_it_holds(shape: str, wrote: Wrote) -> None:
    table = read_export(wrote(SHAPES[shape])).table
    found = table[["unit_id", "rater_id", "rater_kind", "label"]].to_numpy().tolist()
    assert sorted(found) == [[f"i{n}", who, "human", said(n)[who]] for n in ITEMS for who in NAMES]
    if shape == "a wrapper":
        texts = read_items(wrote(SHAPES[shape])).table["text"]
        assert texts.tolist() == [f"Text {n}" for n in ITEMS]


@pytest.mark.parametrize(("record", "right"), [
    ({"annotator_labels": ["y", "n", "y"]},
     {("", "annotator_1", "y"), ("", "annotator_2", "n"), ("", "annotator_3", "y")}),
    ({"expert_annotations": [{"fluency": 2, "relevance": 5}, {"fluency": 3, "relevance": 4}]},
     {("fluency", "expert_1", "2"), ("relevance", "expert_1", "5"),
      ("fluency", "expert_2", "3"), ("relevance", "expert_2", "4")}),
    ({"annotations": {"fluency": {"mean_human": 2.5, "individual_human_scores": [2, 3]}}},
     {("fluency", "human_1", "2"), ("fluency", "human_2", "3")}),
    ({"annotations": {"fluency": {"w1": 2, "w2": 3}}},
     {("fluency", "w1", "2"), ("fluency", "w2", "3")}),
    ({"annotations": {"w1": {"fluency": 2, "tone": 3}}},
     {("fluency", "w1", "2"), ("tone", "w1", "3")}),
])  # fmt: skip
def test_answers_in_an_item(record: dict, right: set, wrote: Wrote) -> None:
    table = read_export(wrote([{"id": f"i{n}", **record} for n in ITEMS])).table
    own = table[table["unit_id"] == "i1"]
    assert {(r["rubric"], r["rater_id"], r["label"]) for r in own.to_dict("records")} == right


def test_items_keep_what_several_share(wrote: Wrote) -> None:
    shared = {"cluster_id": "c", "prompt": "Long.\n" * 50}
    content = [
        {"question_id": f"q{n // 3}", "response": str(n), "annotations": said(n), **shared}
        for n in ITEMS
    ]
    found = read_export(wrote(content)).table[["question_id", *shared]].drop_duplicates()
    assert found.to_dict("records") == [{"question_id": name, **shared} for name in ("q0", "q1")]


def test_parts_of_an_item_are_units_and_a_model_s_labels_stand_beside_those_of_people(
    wrote: Wrote,
) -> None:
    parts = [[{"sentence": "S", "responses": listed(n)}] * 2 for n in ITEMS]
    content = [{"id": f"i{n}", "sentences": own} for n, own in enumerate(parts)]
    table = read_export(wrote(content)).table
    assert table["unit_id"].unique().tolist() == [f"i{n}/{k}" for n in ITEMS for k in (1, 2)]
    assert (table["cluster_id"] == table["unit_id"].str[:2]).all()
    content = [item(n, annotations=said(n), judge=BEN[n], judge_reason="so") for n in ITEMS]
    export = read_export(wrote(content))
    models = export.table[export.table["rater_kind"] == "model"]
    assert (set(models["rater_id"]), "".join(models["label"])) == ({"judge"}, BEN)
    assert "Graders, by their names and labels: judge" in " ".join(export.notes)
    for people, model in (
        ([True, False], [False, True]), ([1, 2], [2.0, 1.0]), (["n", "y"], ["n", "y", "unsure"]),
    ):  # fmt: skip
        content = [item(n, annotations={"Ann1": people[n % len(people)]}) for n in ITEMS]
        content = [each | {"gpt-4o": model[n % len(model)]} for n, each in enumerate(content)]
        content[0].pop("gpt-4o")
        assert "gpt-4o" in set(read_export(wrote(content)).table["rater_id"])


def test_raters_are_asked_for_and_what_is_said_of_them_counts(wrote: Wrote) -> None:
    people, models = ("a1", "B2C4E6G8I0"), ("gpt-4o", "prometheus", "palm2", "r1")
    content = wrote([item(n, annotations=dict.fromkeys((*people, *models), "y")) for n in ITEMS])
    told = "say so with --human a1,B2C4E6G8I0,palm2,r1 --model gpt-4o,prometheus"
    told = f"(prometheus, palm2, r1); {told}"  # who may be R1, of DeepSeek
    refused(re.escape(told), rows_of_file, content, ScaleOptions())
    rows, _ = rows_of_file(content, ScaleOptions(kinds=dict.fromkeys(models, "model")))
    kinds = dict(zip(rows["rater_id"], rows["rater_kind"], strict=True))
    assert kinds == dict.fromkeys(people, "human") | dict.fromkeys(models, "model")


def test_a_person_and_a_model_of_one_name_are_two_raters(wrote: Wrote) -> None:
    feedback = {"run_id": "r", "key": "fair", "score": None, "modified_at": "2026-01-01T00:00:00Z"}
    sources = {kind: {"type": kind, "user_name": "Ann"} for kind in ("app", "model")}
    content = [{**feedback, "id": k, "value": k, "feedback_source": sources[k]} for k in sources]
    table = read_export(wrote(content, "f.jsonl")).table[["rater_id", "rater_kind", "label"]]
    assert table.to_numpy().tolist() == [["Ann", "human", "app"], ["Ann (model)", "model", "model"]]


def test_long_assertions_that_begin_alike_are_rubrics_of_their_own(wrote: Wrote) -> None:
    checks = [f"{'The whole answer of the assistant is ' * 3}{word}." for word in ("kind", "true")]
    asked = [{"type": "llm-rubric", "value": text} for text in checks]
    parts = [{"pass": "true" in text["value"], "assertion": text} for text in asked]
    content = {"testIdx": 1, "promptIdx": 0, "gradingResult": {"componentResults": parts}}
    table = read_export(wrote({"results": [content]})).table
    found = table[table["rubric"] != ""].set_index("rubric")["label"]
    assert found.tolist() == ["false", "true"]
    assert found.index.is_unique


def test_flat_objects_are_a_table_in_every_wrapping(tmp_path: Path, wrote: Wrote) -> None:
    flat = [
        {"item": f"i{n}", "human_1": ANN[n], "human_2": BEN[n], "gpt-4o": BEN[n]} for n in ITEMS
    ]
    files = [wrote(flat, "list.json"), wrote({"rows": flat}, "wrapped.json")]
    files.append(wrote(flat, "lines.jsonl").rename(tmp_path / "lines.json"))
    assert [read_export(file).table.to_dict("records") for file in files] == [flat] * 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([item(0, annotations={"w1": [[1, 2]]})], "annotations.w1"),
        ([item(0, annotations=[[1, 2]])], r"annotations\[0\]"),
        ({"a": [{"x": 1}], "b": [{"y": 1}], "c": 1}, "several lists of the same length"),
        ({"a": {"b": {"c": 1}}}, "JSON without a list of items"),
    ],
)
def test_what_cannot_be_told_is_refused_by_its_path(content, says, wrote):
    refused(says, rows_of_file, wrote(content), ScaleOptions())


ALL = [path for folder in (FILES, ITEM_FILES) for path in sorted(folder.glob("*.*"))]
SMALL = [path.read_bytes() for path in ALL if path.stat().st_size]
WORDS = st.text(max_size=5)
NESTED = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


def fault(read: Callable[[], object]) -> str:
    """What is said of a file that is not read; "" where it is read."""
    said = ""
    try:
        read()
    except InputError as refusal:
        said = str(refusal)
    assert "\n" not in said
    return said


def rows_fault(path: Path, form: str | None = None) -> str:
    return fault(lambda: rows_of_file(path, ScaleOptions(format=form)))


def refused_as_items(path: Path) -> str:
    def read() -> None:
        for cell in read_items(path).table.to_numpy().ravel():
            cell.encode()  # what a store can keep
            assert "\0" not in cell

    return fault(read)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_no_bytes_make_a_traceback(data, tmp_path_factory):
    content = data.draw(st.sampled_from(SMALL))
    at = data.draw(st.integers(0, len(content)))
    cut = data.draw(st.integers(0, 40))
    content = content[:at] + data.draw(st.binary(max_size=20)) + content[at + cut :]
    path = tmp_path_factory.getbasetemp() / f"file.{data.draw(st.sampled_from(('csv', 'json')))}"
    path.write_bytes(content)
    rows_fault(path)
    refused_as_items(path)
    rows_fault(path, data.draw(st.sampled_from(FORMATS)))


def leaves(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    """The places of everything in a JSON value."""
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    return [path, *(place for key, each in items for place in leaves(each, (*path, key)))]


FIRST = {
    f"{path.parent.name}/{path.name}": json.loads(text.splitlines()[0])
    if path.suffix == ".jsonl"
    else json.loads(text)
    for path in ALL
    if path.suffix in (".json", ".jsonl")
    for text in [path.read_text()]
}
"""Each as what it holds, of records the first."""


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_another_value_anywhere_makes_no_traceback(data, tmp_path_factory):
    content = json.loads(json.dumps(FIRST[data.draw(st.sampled_from(sorted(FIRST)))]))
    *path, last = data.draw(st.sampled_from(leaves(content)[1:]))
    within = content
    for key in path:
        within = within[key]
    within[last] = data.draw(NESTED)
    file = tmp_path_factory.getbasetemp() / "changed.json"
    file.write_text(json.dumps(content))
    rows_fault(file)
    refused_as_items(file)


@pytest.mark.parametrize("name", ["ann.jsonl", "header.json"])
def test_an_archive_that_unpacks_without_end_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MOST_UNPACKED", 1024**2)
    large, file = b" " * 3 * 1024**2, tmp_path / "f.zip"
    several = {name: b"{}", f"samples/{name}": large, "b.jsonl": b" " * 2**22}
    bomb = packed({name: large} if name == "ann.jsonl" else several)
    file.write_bytes(bomb)
    assert "f.zip unpacks to more than 1 MB" in rows_fault(file)
    assert "f.zip unpacks to more than 1 MB" in refused_as_items(file)
    # What a member claims of its size is not believed.
    claimed = bomb.replace((3 * 1024**2).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert claimed != bomb
    file.write_bytes(claimed)
    assert "unpacks to more than 1 MB" in rows_fault(file)


def test_a_damaged_member_a_broken_line_and_another_archive_are_named(tmp_path: Path) -> None:
    content = bytearray((FILES / "inspect.eval").read_bytes())
    start = content.find(b"samples/u1_epoch_1.json") + 40
    content[start : start + 60] = b"x" * 60
    first = (FILES / "langsmith.jsonl").read_text().splitlines()[0]
    broken = f'{first}\n{{"key": 1,,}}\n'.encode()
    for name, held, said in (
        ("f.eval", bytes(content), "samples/u1_epoch_1.json is damaged"),
        ("f.csv", packed({"a.txt": b"x"}), "f.csv is a ZIP archive; unpack it first"),
        ("f.jsonl", broken, "f.jsonl, line 2 cannot be read as JSON"),
    ):
        (tmp_path / name).write_bytes(held)
        assert said in rows_fault(tmp_path / name)
        assert name != "f.eval" or said in refused_as_items(tmp_path / name)


@pytest.mark.slow
def test_a_workbook_that_claims_a_million_columns_is_bounded(tmp_path: Path) -> None:
    with zipfile.ZipFile(FILES / "wide.xlsx") as made:
        members = {name: made.read(name) for name in made.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    far = b'<row r="1048576"><c r="XFD1048576" t="inlineStr"><is><t>x</t></is></c></row>'
    members[sheet] = members[sheet].replace(b"</sheetData>", far + b"</sheetData>")
    (tmp_path / "f.xlsx").write_bytes(packed(members))
    assert "more than 2,500 columns" in rows_fault(tmp_path / "f.xlsx")


def test_deep_json_and_a_large_file_are_no_export(tmp_path: Path, monkeypatch) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text('{"results": ' + "[" * 50_000)
    assert "deep.json holds JSON; write one JSON object a line" in rows_fault(deep)
    monkeypatch.setattr(source, "MOST_BYTES", 1_000)
    assert "langfuse.json" in rows_fault(FILES / "langfuse.json")
    # A line is enough to know a tool's file, so that it is not taken for a table.
    for file in ("langsmith_runs.jsonl", "openinference.jsonl", "samples_office.jsonl"):
        said = refused_as_items(ITEM_FILES / file)
        assert said.startswith(f"{file} is too large for an export of a tool (at most 0 MB)")


def test_an_export_without_a_rating_says_what_was_left_out(wrote: Wrote) -> None:
    task = {"id": 1, "data": {}, "annotations": [{"was_cancelled": True}], "predictions": [7]}
    said = rows_fault(wrote([task]))
    assert said.startswith("f.json holds no rating. Read as a Label Studio export.")
    assert "cancelled annotations (1), predictions exported by id only (1)" in said
    # What no table can hold is taken out.
    result = {"type": "choices", "from_name": "q", "value": {"choices": ["y\ud800\0"]}}
    task = {"id": 1, "data": {}, "annotations": [{"completed_by": 1, "result": [result]}]}
    assert read_export(wrote([task])).table["label"].tolist() == ["y\ufffd\ufffd"]
    items = {"data": [{"id": f"u{n}", "text": "cut \ud83d", "label": "y"} for n in range(2)]}
    assert "'rater_id' is missing" in rows_fault(wrote(items))
