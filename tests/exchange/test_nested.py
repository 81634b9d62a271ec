"""JSON of no tool is read by general shapes, or refused with the path of the key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.exchange.readers.reading import read_export, read_items
from evenhand.reporting.ratings_file.dataframes import rows_of_file
from evenhand.reporting.ratings_file.declared import ScaleOptions

ANN, BEN = "yynnyn", "ynnyyn"
"""What two people said, item by item."""
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


def written(folder: Path, content: object, name: str = "f.json") -> Path:
    file = folder / name
    file.write_text(json.dumps(content))
    return file


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_read_as_what_it_holds(shape: str, tmp_path: Path) -> None:
    table = read_export(written(tmp_path, SHAPES[shape])).table
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
def test_answers_in_an_item(record: dict, right: set, tmp_path: Path) -> None:
    content = [{"id": f"i{n}", **record} for n in ITEMS]
    table = read_export(written(tmp_path, content)).table
    own = table[table["unit_id"] == "i1"]
    assert {(r["rubric"], r["rater_id"], r["label"]) for r in own.to_dict("records")} == right


def test_parts_of_an_item_are_units_and_the_item_their_cluster(tmp_path: Path) -> None:
    content = [
        {"id": f"i{n}", "sentences": [{"sentence": "S", "responses": listed(n)}] * 2} for n in ITEMS
    ]
    content = json.loads(json.dumps(content))
    table = read_export(written(tmp_path, content)).table
    assert table["unit_id"].unique().tolist() == [f"i{n}/{k}" for n in ITEMS for k in (1, 2)]


def test_a_model_s_labels_beside_those_of_people(tmp_path: Path) -> None:
    content = [item(n, annotations=said(n), judge=BEN[n], judge_reason="so") for n in ITEMS]
    export = read_export(written(tmp_path, content))
    models = export.table[export.table["rater_kind"] == "model"]
    assert (set(models["rater_id"]), "".join(models["label"])) == ({"judge"}, BEN)
    assert "Graders, by their names and labels: judge" in " ".join(export.notes)


def test_raters_whose_names_show_nothing_are_asked_for(tmp_path: Path) -> None:
    names = {"ann": ANN, "ben": BEN, "gpt-4o": BEN}
    content = [item(n, annotations={who: x[n] for who, x in names.items()}) for n in ITEMS]
    with pytest.raises(InputError, match="--human ann,ben --model gpt-4o"):
        rows_of_file(written(tmp_path, content), ScaleOptions())
    kinds = {"ann": "human", "ben": "human", "gpt-4o": "model"}
    rows = rows_of_file(written(tmp_path, content), ScaleOptions(kinds=kinds))
    assert set(rows.table["rater_id"]) == {*names}


def test_flat_objects_are_a_table_in_every_wrapping(tmp_path: Path) -> None:
    flat = [
        {"item": f"i{n}", "human_1": ANN[n], "human_2": BEN[n], "gpt-4o": BEN[n]} for n in ITEMS
    ]
    lines = "".join(json.dumps(each) + "\n" for each in flat)
    (tmp_path / "lines.json").write_text(lines)
    (tmp_path / "lines.jsonl").write_text(lines)
    written(tmp_path, flat, "list.json")
    written(tmp_path, {"rows": flat}, "wrapped.json")
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
def test_what_cannot_be_told_is_refused_by_its_path(
    content: object, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says):
        rows_of_file(written(tmp_path, content), ScaleOptions())


def test_items_in_a_wrapper_are_items_to_rate(tmp_path: Path) -> None:
    table = read_items(written(tmp_path, {"instances": INSIDE})).table
    assert table["text"].tolist() == [f"Text {n}" for n in ITEMS]
