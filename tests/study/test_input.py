"""Bad rows are named with the mend, and nothing half-imported stays."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import load_rubric
from evenhand.study import create_study
from evenhand.study.creation import StudyPlan
from evenhand.study.prompts.pairs import read_pairs, read_responses
from evenhand.study.tables.formats import read_table, write_table
from tests.ratings_files import read_ratings

HEADER = "prompt_a,prompt_b\n"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "its first row is blank"),
        (b"prompt_a\nx\n", "the column 'prompt_b' is missing"),
        (b"prompt_a,prompt_b\n", "no pairs"),
        (b"prompt_a,prompt_b\nx,y\n ,z\n", "row 3: prompt_a is empty"),
        (b"prompt_a,prompt_b\nx,y\nu,v\nx,y\n", "row 4: the same pair stands in row 2"),
        (b"prompt_a,prompt_b\nx,x\n", "row 2: prompt_a and prompt_b are the same"),
        (b"prompt_a,prompt_b\nx,y,z\n", "row 2: 3 cells where the header has 2"),
        (b"prompt_a,prompt_b\nx,\xff\n", "line 2: not UTF-8"),
        (b"prompt_a,prompt_a\nx,y\n", "two columns are called 'prompt_a'"),
        (b'prompt_a,prompt_b\n"x,y\n', "row 2: a quoted cell does not end before a comma"),
        (b"pair_id,prompt_a,prompt_b\np1,x,y\np1,u,v\n", "row 3: pair_id 'p1' stands in row 2"),
    ],
)
def test_a_bad_pairs_file_is_named_by_row(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"pairs\.csv") as raised:
        read_pairs(path)
    assert says in str(raised.value)


@pytest.mark.parametrize("column", ["sample_position", "subject", "side", "unit_id"])
def test_a_column_with_a_meaning_of_its_own_is_refused(tmp_path: Path, column: str) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"prompt_a,prompt_b,{column}\nx,y,1\n")
    with pytest.raises(InputError, match=f"the column '{column}' means something else"):
        read_pairs(path)


def test_a_response_may_be_long(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(f"prompt_a,prompt_b\n{'x' * 300_000},y\n")
    assert len(read_pairs(path)["prompt_a"][0]) == 300_000


def test_two_rubrics_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(HEADER + "x,y\n")
    rubric = load_rubric("refusal")
    with pytest.raises(InputError, match="two rubrics are called 'refusal'"):
        create_study(tmp_path / "s", StudyPlan(pairs=tmp_path / "pairs.csv", rubrics=[rubric] * 2))


def test_parquet_as_other_tools_write_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"label": pd.array([1, None], dtype="Int64"), "tags": [["a"], None]})
    frame.to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").to_dict("list") == {
        "label": ["1", ""],
        "tags": ['["a"]', ""],
    }


def test_half_a_surrogate_pair_is_named(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text('{"subject": "s"}\n{"subject": "\\ud800"}\n')
    with pytest.raises(InputError, match=r"r\.jsonl, line 2: half a surrogate pair"):
        read_table(tmp_path / "r.jsonl")


def test_a_byte_order_mark_and_line_breaks_in_cells_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_bytes(b'\xef\xbb\xbfprompt_a,prompt_b\r\n"one\ntwo",y\r\n')
    assert read_pairs(path)["prompt_a"].tolist() == ["one\ntwo"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"subject": "s", "prompt": "nobody asked", "response": "r"}', "row 1: no pair has"),
        ('{"subject": "s", "prompt": "x", "response": "r"}', "answers side a of p0001 but not"),
        ('{"subject": "", "prompt": "x", "response": "r"}', "row 1: subject ''"),
        ('{"subject": "s", "prompt": "x"}', "the column 'response' is missing"),
        ('{"subject": "s", "response": "r"}', "say what was answered"),
        ('{"subject": "s", "pair_id": "p9", "side": "a", "response": "r"}', "no pair 'p9'"),
        ('{"subject": "s", "pair_id": "p0001", "side": "c", "response": "r"}', "side is 'c'"),
        ("[1]", "line 1: each line must be a JSON object"),
        ("{", "line 1: not valid JSON"),
    ],
)
def test_a_bad_responses_file_is_named_by_row(tmp_path: Path, line: str, says: str) -> None:
    pairs = pd.DataFrame({"pair_id": ["p0001"], "prompt_a": ["x"], "prompt_b": ["y"]})
    path = tmp_path / "responses.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=r"responses\.jsonl") as raised:
        read_responses(path, pairs)
    assert says in str(raised.value)


def test_a_second_response_to_a_prompt_is_refused(tmp_path: Path) -> None:
    pairs = pd.DataFrame({"pair_id": ["p0001"], "prompt_a": ["x"], "prompt_b": ["y"]})
    path = tmp_path / "r.csv"
    path.write_text("subject,prompt,response\ns,x,1\n\ns,y,2\ns,x,3\n")  # a blank line counts
    with pytest.raises(
        InputError, match="row 5: subject 's' has answered side a of p0001 in row 2"
    ):
        read_responses(path, pairs)


def test_nothing_half_made_stays(tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(HEADER + "x,y\n")
    (tmp_path / "r.csv").write_text("subject,prompt,response\ns,x,1\n")
    plan = StudyPlan(
        pairs=tmp_path / "pairs.csv",
        responses=tmp_path / "r.csv",
        rubrics=[load_rubric("refusal")],
    )
    with pytest.raises(InputError):
        create_study(tmp_path / "study", plan)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.csv", "r.csv"]


def test_a_folder_in_use_is_left_alone(make_study) -> None:
    study = make_study()
    plan = StudyPlan(pairs=study.folder.parent / "pairs.csv", rubrics=[load_rubric("refusal")])
    with pytest.raises(InputError, match="is not empty"):
        create_study(study.folder, plan)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_tables_survive_every_format(tmp_path: Path, suffix: str) -> None:
    frame = pd.DataFrame(
        {"unit_id": ["u1", "u2"], "label": ["01", ""], "text": ['a "b",\nc', "=1"]}
    )
    write_table(frame, tmp_path / f"t.{suffix}")
    back = read_table(tmp_path / f"t.{suffix}").reset_index(drop=True)
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("u1,r1,person,A,", "row 2: rater_kind is 'person'; it must be human, model or"),
        (
            "u1,r1,human,A,\nu1,r1,human,B,",
            "row 3: rater 'r1' has already rated unit 'u1' in row 2",
        ),
        ("u1,r1,human,A,\nu2,r1,model,B,", "row 3: rater 'r1' is model here"),
        ("u1,r1,model,A,1.2", "row 2: p_positive is '1.2'; it must be between 0 and 1"),
        ("u1,r1,model,A,much", "row 2: p_positive is 'much'; it must be a number"),
        ("u1,humans,human,A,", "row 2: rater_id is 'humans'; it must be another name"),
        (",r1,model,A,0.5", "row 2: unit_id is ''; it must be filled in"),
    ],
)
def test_bad_ratings_are_named_by_row(tmp_path: Path, rows: str, says: str) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text("item_id,rater_id,rater_kind,label,p_positive\n" + rows + "\n")
    with pytest.raises(InputError) as raised:
        read_ratings(path)
    assert says in str(raised.value)


def test_unknown_columns_are_units_columns_unless_they_vary(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(
        "unit_id,rater_id,rater_kind,label,topic,comment\n"
        "u1,r1,human,A,tax,fine\nu1,r2,human,B,tax,odd\nu2,r1,human,A,war,\n"
    )
    _, units = read_ratings(path)
    assert units.to_dict("records") == [
        {"unit_id": "u1", "topic": "tax"},
        {"unit_id": "u2", "topic": "war"},
    ]


def test_a_unit_in_two_clusters_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    path.write_text(
        "unit_id,rater_id,rater_kind,label,cluster_id\nu1,r1,human,A,c1\nu1,r2,human,B,c2\n"
    )
    with pytest.raises(InputError, match="row 3: unit 'u1' has cluster_id 'c2' here and 'c1'"):
        read_ratings(path)
