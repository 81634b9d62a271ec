"""Shapes of files that no tool alone writes."""

import csv
import datetime
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export, read_items
from evenhand.exchange.readers.rows import Export
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions
from evenhand.study.tables.formats import read_table
from evenhand.study.tables.ratings import is_later, stored_instant
from tests.commands import Run
from tests.exchange.conftest import Wrote

Reading = Callable[[str], Export]


@pytest.fixture
def reading(shared_data: Path) -> Reading:
    """Reads a small file of known meaning."""
    if not (shared_data / "reading").is_dir():
        pytest.skip("the small files of known meaning are not here (set EVENHAND_SHARED)")
    return lambda name: read_export(shared_data / "reading" / name)


def labels(export: Export, rater: str) -> str:
    own = export.table[export.table["rater_id"] == rater]
    return "".join(label[:1] for label in own["label"])


# ---- times and ids ------------------------------------------------------------------------------


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


def test_times_are_kept_in_utc_with_their_fractions() -> None:
    given = ["2026-05-01T10:30:00.123456+02:00", "2026-05-01T08:30:00.123Z", "1777624200123", "x"]
    assert [stored_instant(each) for each in given] == [
        "2026-05-01T08:30:00.123456+00:00",
        "2026-05-01T08:30:00.123+00:00",
        "2026-05-01T08:30:00.123+00:00",
        "",
    ]


def annotation(who: object, label: str | None, **more: object) -> dict:
    result = {"from_name": "fair", "type": "choices", "value": {"choices": [label]}}
    named = {} if who is None else {"completed_by": who}
    return {"result": [] if label is None else [result], **named, **more}


def task(*annotations: dict, text: str = "t") -> dict:
    return {"id": 1, "data": {"text": text}, "annotations": annotations}


def test_two_answers_without_a_time_are_asked_about(wrote: Wrote) -> None:
    given = wrote([task(annotation(7, "yes"), annotation(7, "no"))])
    with pytest.raises(InputError, match=r"7 gave item 1 \(fair\) two answers, yes and no, and no"):
        read_export(given)
    export = read_export(wrote([task(annotation(7, "yes"), annotation(7, "yes"))]))
    assert (labels(export, "7"), dict(export.left_out)) == ("y", {"repeats of the same answer": 1})


@pytest.mark.parametrize("turned", [False, True])
def test_the_later_answer_counts_in_any_order(wrote: Wrote, turned: bool) -> None:
    given = [
        annotation(7, "no", created_at="2026-05-01T10:30:00+02:00"),
        annotation(7, "yes", created_at="2026-05-01T09:00:00Z"),
    ]
    assert labels(read_export(wrote([task(*given[:: -1 if turned else 1])])), "7") == "y"


def test_tasks_of_two_projects_with_one_id_are_two_items(wrote: Wrote) -> None:
    north, south = task(annotation(7, "yes"), text="north"), task(annotation(7, "no"), text="south")
    export = read_export(wrote([north, south]))
    assert export.table["unit_id"].nunique() == 2
    assert any("kept apart" in note for note in export.notes)


def test_cases_of_deepeval_with_one_name_are_two_items(wrote: Wrote) -> None:
    metric = {"name": "Fair", "evaluationModel": "gpt-4o"}
    cases = [
        {"name": "case", "input": text, "actualOutput": "x",
         "metricsData": [{**metric, "success": ok}]}
        for text, ok in (("a", True), ("b", False))
    ]  # fmt: skip
    assert labels(read_export(wrote({"testCases": cases})), "gpt-4o") == "tf"


def test_a_judge_s_metric_is_kept_by_filter(wrote: Wrote) -> None:
    samples = [
        {"doc_id": 0, "doc": {"q": "x"}, "target": "y", "arguments": [["p", {}]], "resps": [["r"]],
         "filtered_resps": ["r"], "filter": how, "metrics": ["llm_judge"], "llm_judge": score}
        for how, score in (("strict", 1), ("flexible", 0))
    ]  # fmt: skip
    table = read_export(wrote(samples, "samples_x.jsonl")).table
    judged = table[table["rater_id"] == "llm_judge"].set_index("rubric")["label"]
    assert judged.to_dict() == {"llm_judge, strict": "1", "llm_judge, flexible": "0"}


def test_small_label_studio_files_are_read_rightly(reading: Reading) -> None:
    zones = reading("02_ls_timezones.json")
    assert labels(zones, "1") == labels(zones, "2")
    merged = reading("05_ls_merged.json").table
    assert merged["unit_id"].nunique() == 12
    unnamed = " ".join(reading("06_ls_noauthor.json").notes)
    assert "6 ratings do not say who gave them. Add the name" in unnamed
    empty = reading("07_ls_empty.json")
    assert dict(empty.left_out) == {"submitted answers that are empty": 3}


# ---- votes, scores, Potato, promptfoo, doccano --------------------------------------------------


def test_bad_answers_both_are_a_tie_and_voters_go_by_session(wrote: Wrote) -> None:
    votes = [
        {"id": f"c{n}", "model_a": "m1", "model_b": "m2", "winner": winner,
         "evaluation_session_id": f"s{n}", "timestamp": 1777624200 + n}
        for n, winner in enumerate(("model_a", "both_bad", "tie (bothbad)", "tie"))
    ]  # fmt: skip
    export = read_export(wrote(votes, "votes.jsonl"))
    assert export.table["label"].tolist() == ["a", "tie", "tie", "tie"]
    assert export.table["rater_id"].tolist() == ["s0", "s1", "s2", "s3"]
    assert "Votes that both answers are bad (2) count as ties." in export.notes
    for vote in votes:
        del vote["evaluation_session_id"]
    unnamed = read_export(wrote(votes, "votes.jsonl"))
    assert set(unnamed.table["rater_id"]) == {"arena_user"}
    assert any("does not say who voted" in note for note in unnamed.notes)


def potato(folder: Path, *questions: str) -> Path:
    file = folder / "raw_data.csv"
    with file.open("w", newline="") as out:
        rows = csv.writer(out)
        rows.writerow(["instance_id", "user_id", "text", *questions, "age"])
        for unit in range(4):
            for user in range(3):
                given = [1 + (unit * user + at) % 3 for at in range(len(questions))]
                rows.writerow([unit, user, f"Text {unit}", *given, f"{20 + user}-{30 + user}"])
    return file


def test_potato_s_published_table_has_questions_and_facts(tmp_path: Path, run: Run) -> None:
    one = read_export(potato(tmp_path, "offensive")).table
    assert (len(one), set(one["rubric"]), set(one["label"])) == (12, {""}, {"1", "2", "3"})
    two = read_export(potato(tmp_path, "offensive", "polite")).table
    assert (len(two), set(two["rubric"])) == (24, {"offensive", "polite"})
    texts = read_items(potato(tmp_path, "offensive")).table["text"]
    assert texts.tolist() == [f"Text {unit}" for unit in range(4)]
    told = "--format table --columns unit=instance_id,rater=user_id,label="
    assert told in run.refused("check", potato(tmp_path))


def test_a_grader_of_promptfoo_that_failed_gave_no_label(wrote: Wrote) -> None:
    def part(passed: bool, **more: object) -> dict:
        return {"pass": passed, "assertion": {"type": "llm-rubric", "value": "polite"}, **more}

    failed = part(False, metadata={"graderError": True})
    older = part(False, reason="Could not extract JSON from llm-rubric response")
    parts = [[failed], [older], [part(False)], [part(True), failed], [part(False), failed]]
    results = [
        {"testIdx": at, "promptIdx": 0, "gradingResult": {"componentResults": given}}
        for at, given in enumerate(parts)
    ]
    table = read_export(wrote({"results": {"results": results}})).table
    whole = table[table["rubric"] == ""]
    assert whole["label"].tolist() == ["", "", "false", "", "false"]
    assert whole["unscored_reason"].tolist() == ["error", "error", "", "error", ""]


@pytest.mark.parametrize("text", ["text", "data"])
def test_a_file_of_doccano_is_its_annotator_s(wrote: Wrote, text: str) -> None:
    records = [{"id": n, text: f"t{n}", "label": [label]} for n, label in enumerate("ynyn")]
    assert labels(read_export(wrote(records, "ann.jsonl")), "ann") == "ynyn"


def test_other_small_files_are_read_rightly(reading: Reading) -> None:
    votes = reading("10_votes_bothbad.jsonl").table
    assert votes["unit_id"].nunique() == 8
    graded = reading("11_promptfoo_gradererror.json").table
    said = graded.pivot(index="unit_id", columns="rater_id", values="label")
    scored = said[said["llm-rubric"] != ""]
    assert (len(said) - len(scored), (scored["human"] == scored["llm-rubric"]).sum()) == (3, 9)
    flat = reading("shape_07_potato_flat.csv").table
    assert (flat["unit_id"].nunique(), flat["rater_id"].nunique()) == (60, 3)
    numbers = reading("shape_05_numbers.jsonl").table
    assert set(numbers["rater_id"]) == {"Ann1", "Ann2", "Ann3", "Ann4"}
    for name, people in (("shape_13_dict_of_items.json", 2), ("shape_13_instances.json", 3)):
        nested = reading(name).table
        assert (nested["unit_id"].nunique(), nested["rater_id"].nunique()) == (40, people)
    with pytest.raises(InputError, match=r"formulas without stored values, by column 'ben' \(60\)"):
        reading("95_formula.xlsx")
    with pytest.raises(InputError, match="its first row \\(w0, item0, P\\) holds data"):
        reading("shape_09_no_header.tsv")


# ---- tables -------------------------------------------------------------------------------------

LONG = [[f"w{w}", f"item{n}", "PG"[(n * w) % 2]] for n in range(12) for w in range(3)]


@pytest.mark.parametrize(("name", "mark"), [("f.tsv", "\t"), ("f.txt", ","), ("f.csv", ";")])
def test_a_table_without_a_header_is_read_by_what_it_proposes(tmp_path, name, mark, run):
    file = tmp_path / name
    file.write_text("".join(mark.join(row) + "\n" for row in LONG))
    said = run.refused("check", file)
    proposed = said[said.index("--format") :].split()
    kinds = {f"w{n}": "human" for n in range(3)}
    columns = {"unit_id": "column2", "rater_id": "column1", "label": "column3"}
    assert proposed[2:] == ["--columns", "unit=column2,rater=column1,label=column3"]
    options = ScaleOptions(format=proposed[1], columns=columns, kinds=kinds)
    rows = rows_of_file(file, options)[0]
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


def book(folder: Path, rows: list[list[object]]) -> Path:
    made = openpyxl.Workbook()
    for row in rows:
        made.active.append(row)
    made.save(folder / "f.xlsx")
    return folder / "f.xlsx"


def test_formulas_without_values_are_named(tmp_path: Path) -> None:
    rows = [["item", "ann", "ben"], *([n, "yes", f'=IF(B{n + 2}="yes","no","")'] for n in range(5))]
    with pytest.raises(InputError, match=r"formulas without stored values, by column 'ben' \(5\)"):
        read_export(book(tmp_path, rows))


def test_labels_that_became_dates_are_named(tmp_path: Path) -> None:
    day = datetime.datetime(2026, 2, 1)
    labels = ["5-6", day, "5-6", day]
    with pytest.raises(InputError, match="column 'ben': B3, B5 are dates, and other cells are not"):
        read_export(book(tmp_path, [["item", "ben"], *([n, x] for n, x in enumerate(labels))]))
    whole = [["item", "made"], *([n, day] for n in range(4))]
    mixed = [["item", "created_at"], *([n, x] for n, x in enumerate(["soon", day]))]
    for rows in (whole, mixed):
        assert len(read_export(book(tmp_path, rows)).table) == len(rows) - 1


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
    found = {
        (each["unit_id"], each["rater_id"], each["rater_kind"], each["label"])
        for each in table.to_dict("records")
    }
    assert found == {(f"i{n}", who, "human", said(n)[who]) for n in ITEMS for who in NAMES}


@pytest.mark.parametrize(
    ("record", "right"),
    [
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
    ],
)  # fmt: skip
def test_answers_in_an_item(record: dict, right: set, wrote: Wrote) -> None:
    content = [{"id": f"i{n}", **record} for n in ITEMS]
    table = read_export(wrote(content)).table
    own = table[table["unit_id"] == "i1"]
    assert {(r["rubric"], r["rater_id"], r["label"]) for r in own.to_dict("records")} == right


def test_parts_of_an_item_are_units_and_the_item_their_cluster(wrote: Wrote) -> None:
    content = [
        {"id": f"i{n}", "sentences": [{"sentence": "S", "responses": listed(n)}] * 2} for n in ITEMS
    ]
    content = json.loads(json.dumps(content))
    table = read_export(wrote(content)).table
    assert table["unit_id"].unique().tolist() == [f"i{n}/{k}" for n in ITEMS for k in (1, 2)]


def test_a_model_s_labels_beside_those_of_people(wrote: Wrote) -> None:
    content = [item(n, annotations=said(n), judge=BEN[n], judge_reason="so") for n in ITEMS]
    export = read_export(wrote(content))
    models = export.table[export.table["rater_kind"] == "model"]
    assert (set(models["rater_id"]), "".join(models["label"])) == ({"judge"}, BEN)
    assert "Graders, by their names and labels: judge" in " ".join(export.notes)


def test_raters_whose_names_show_nothing_are_asked_for(wrote: Wrote) -> None:
    names = {"ann": ANN, "ben": BEN, "gpt-4o": BEN}
    content = [item(n, annotations={who: x[n] for who, x in names.items()}) for n in ITEMS]
    with pytest.raises(InputError, match="--human ann,ben --model gpt-4o"):
        rows_of_file(wrote(content), ScaleOptions())
    kinds = {"ann": "human", "ben": "human", "gpt-4o": "model"}
    rows, _ = rows_of_file(wrote(content), ScaleOptions(kinds=kinds))
    assert set(rows["rater_id"]) == {*names}


def test_flat_objects_are_a_table_in_every_wrapping(tmp_path: Path, wrote: Wrote) -> None:
    flat = [
        {"item": f"i{n}", "human_1": ANN[n], "human_2": BEN[n], "gpt-4o": BEN[n]} for n in ITEMS
    ]
    wrote(flat, "list.json")
    wrote({"rows": flat}, "wrapped.json")
    shutil.copy(wrote(flat, "lines.jsonl"), tmp_path / "lines.json")
    tables = [read_export(file).table.to_dict("records") for file in sorted(tmp_path.iterdir())]
    assert all(table == tables[0] for table in tables)
    assert tables[0][1] == {"item": "i1", "human_1": "y", "human_2": "n", "gpt-4o": "n"}


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
    with pytest.raises(InputError, match=says):
        rows_of_file(wrote(content), ScaleOptions())


def test_items_in_a_wrapper_are_items_to_rate(wrote: Wrote) -> None:
    table = read_items(wrote({"instances": INSIDE})).table
    assert table["text"].tolist() == [f"Text {n}" for n in ITEMS]
