"""Two answers in a row become comparisons: what each column is, what raters and graders read, which
side is which, and what is refused, naming file and row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image as Pictures

from evenhand.annotate_app.payload import page_data
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.rubrics import asked_comparison, load_rubric
from evenhand.rubrics.content import image_of
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.desk.answers import Answer
from evenhand.study.desk.claims import KnownUnits
from evenhand.study.desk.desk import AnnotationDesk
from evenhand.study.lead.imports import import_ratings
from evenhand.study.prompts.items import (
    ComparisonColumns,
    Items,
    answer_columns,
    comparison_columns,
    comparison_judge,
    golden_comparisons,
    item_columns,
    make_comparisons,
    paired_rows,
)
from evenhand.study.questions import AttackedQuestion

VOTES = {
    "Question": ["Where?", "Where?", "When?", "Who?"],
    "output_1": ["Basel", "Basel", "May", ""],
    "output_2": ["Bern", "Geneva", "March", "Nobody"],
    "generator_1": ["secret-one", "secret-one", "secret-two", "secret-three"],
    "generator_2": ["secret-two", "secret-three", "secret-one", "secret-one"],
    "winner": ["secret-one", "1", "model_b", "Tie"],
    "topic": ["t", "t", "u", "u"],
}


def made(
    rows: dict[str, list[str]], judge: str = "", show: Sequence[str] = ()
) -> tuple[Items, ComparisonColumns]:
    frame = pd.DataFrame(rows)
    first, second = answer_columns(frame, "f.csv", show)
    columns = comparison_columns(frame, "f.csv", (first, second), show=show, judge=judge)
    return make_comparisons(frame, columns, "f.csv"), columns


def test_columns_are_known_by_their_names() -> None:
    _, columns = made(VOTES, "winner")
    assert columns.answers == ("output_1", "output_2")
    assert columns.subjects == ("generator_1", "generator_2")
    assert dict(columns.said()) == {
        "shown": "Question, output_1, output_2",
        "answers": "output_1, output_2",
        "subjects": "generator_1, generator_2",
        "prompt": "Question",
        "judge": "winner",
    }


@pytest.mark.parametrize(
    ("names", "show", "known"),
    [
        (("response_a", "response_b"), (), ("response_a", "response_b")),
        (("answerA", "answerB"), (), ("answerA", "answerB")),
        (("Output 1", "Output 2"), (), ("Output 1", "Output 2")),
        (("model_a_response", "model_b_response"), (), ("model_a_response", "model_b_response")),
        (("first-a", "first-b"), ("first-a", "first-b"), ("first-a", "first-b")),
        (("first-a", "first-b"), (), ()),
        (("response_a", "response_b"), ("response_a",), ()),
        (("response_a", "response_c"), (), ()),
    ],
)
def test_two_answers_are_known_by_their_names(
    names: tuple[str, str], show: tuple[str, ...], known: tuple[str, ...]
) -> None:
    frame = pd.DataFrame({name: ["x"] for name in ("prompt", *names)})
    assert answer_columns(frame, "f.csv", show) == known


@pytest.mark.slow
def test_one_prompt_is_shown_with_two_answers_and_never_who_gave_them(tmp_path: Path) -> None:
    items, columns = made(VOTES, "winner")
    rubric = load_rubric("preference").showing(items.blocks)
    assert rubric == load_rubric("preference")
    create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[rubric], sample=4))
    with open_study(tmp_path / "s") as study:
        assert import_ratings(study, comparison_judge(items, columns, rubric, "f.csv"), "f") == (
            4,
            0,
        )
        judged = study.ratings().set_index("unit_id")["label"]
        assert [judged[unit] for unit in items.unit_ids] == ["A", "A", "B", "tie"]
        units = study.units().set_index("unit_id").loc[items.unit_ids]
        assert units["subject_b"].tolist() == VOTES["generator_2"]
        assert study.config.analysis.cluster == "prompt_id"
        assert units["prompt_id"].tolist() == ["q1", "q1", "q2", "q3"]
        for order, first, second in (("ab", "Basel", "Bern"), ("ba", "Bern", "Basel")):
            values = study.values(rubric, items.unit_ids[0], order)
            shown = rubric.for_people(values)
            assert [(b.label, b.side, b.text) for b in shown.blocks] == [
                ("Prompt", "", "Where?"),
                ("Answer A", "a", first),
                ("Answer B", "b", second),
            ]
            prompt = rubric.for_prompt(values)
            assert prompt.user.count("Where?") == 1
            assert prompt.user.index(first) < prompt.user.index(second)
            assert "secret" not in prompt.user + prompt.system


@pytest.mark.slow
def test_sides_are_balanced_for_each_rater_and_stored_as_the_file_has_them(tmp_path: Path) -> None:
    count = 20
    rows = {
        "prompt": [f"What is {n}?" for n in range(count)],
        "response_a": [f"right {n}" for n in range(count)],
        "response_b": [f"wrong {n}" for n in range(count)],
        "model_a": ["secret-one"] * count,
        "model_b": ["secret-two"] * count,
    }
    items, _ = made(rows)
    rubric = load_rubric("preference")
    create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[rubric], raters_per_unit=2))
    with open_study(tmp_path / "s") as study:
        desk = AnnotationDesk(study)
        for rater in ("ann", "ben"):
            lefts = []
            while sheet := desk.next_sheet(rater):
                sent = page_data(desk, rater)
                assert "secret" not in json.dumps(sent)
                blocks = {block["name"]: block["text"] for block in sent["sheet"]["blocks"]}
                left = blocks["response_a"].startswith("right")
                lefts.append(left)
                task = sheet.tasks[0].task_id
                answer = Answer(
                    submit_id=task, task_id=task, option_key="A" if left else "B", skip_reason="",
                    seconds=1.0, edit=False, confidence=None, rationale="",
                )  # fmt: skip
                desk.submit_all(rater, [answer])
            assert (len(lefts), sum(lefts)) == (count, count // 2)
        ratings = study.ratings()
    assert ratings["label"].tolist() == ["A"] * 2 * count
    assert ratings.groupby("rater_id")["order"].value_counts().tolist() == [count // 2] * 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "ask", "shown"),
    [
        (
            "question,answer_a,answer_b,response",
            ("--question", "Right?", "--options", "yes,no"),
            "shown: question, response;",
        ),
        (
            "question,answer_a,answer_b,response",
            ("--rubric", "helpfulness"),
            "shown: question, response;",
        ),
        ("question,answer,response_a,response_b", (), "answers: response_a, response_b;"),
        ("question,output,output_a,output_b", (), "answers: output_a, output_b;"),
    ],
)
def test_one_answer_beside_two(
    names: str,
    ask: tuple[str, ...],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The options of a question of a quiz are no answers to compare, nor is the right answer."""
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"Where is {n}?,Basel,Bern,Zug\n" for n in range(3))
    Path("quiz.csv").write_text(f"{names}\n{rows}")
    assert main(["new", "s", "--items", "quiz.csv", *ask]) == 0
    assert shown in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_a_rubric_that_shows_a_prompt_needs_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("f.csv").write_text("output_1,output_2\nx,y\nv,w\n")
    assert main(["new", "s", "--items", "f.csv", "--rubric", "preference"]) == 2
    assert "shows a prompt, and no column is taken for it" in capsys.readouterr().err
    assert main(["new", "s", "--items", "f.csv"]) == 0


@pytest.mark.parametrize(
    ("steps", "keys"),
    [(2, ("A", "B")), (3, ("A", "tie", "B")), (5, ("A2", "A1", "tie", "B1", "B2"))],
)
def test_a_question_has_two_three_or_five_steps(steps: int, keys: tuple[str, ...]) -> None:
    items, _ = made(VOTES)
    rubric = asked_comparison("Which is kinder?", items.blocks, steps)
    assert rubric.categories == keys
    assert tuple(rubric.swap(key) for key in keys) == keys[::-1]
    assert [option.favours for option in rubric.options][:: steps - 1] == ["a", "b"]
    values = {"prompt": "p", "response_a": "x", "response_b": "y"}
    labels = [block.label for block in rubric.for_people(values).blocks]
    assert labels == ["Question", "Output A", "Output B"]


def test_a_file_without_prompts_shows_conversations() -> None:
    chats = [json.dumps([{"role": "assistant", "content": text}]) for text in ("Hi", "Hello")]
    items, columns = made(
        {"question_id": ["81", "82"], "conversation_a": chats, "conversation_b": chats[::-1]}
    )
    assert items.cluster == "question_id"
    assert columns.subjects == ()
    rubric = load_rubric("preference").showing(items.blocks)
    values = {"response_a": chats[0], "response_b": chats[1]}
    shown = rubric.for_people(values).blocks
    assert [(block.label, block.turns[0].text) for block in shown] == [
        ("Answer A", "Hi"),
        ("Answer B", "Hello"),
    ]


def test_single_answers_to_a_prompt_are_compared_two_by_two() -> None:
    frame = pd.DataFrame(
        {
            "prompt": ["p", "p", "p", "q", "q", "r"],
            "response": ["1", "2", "3", "4", "5", "6"],
            "model": ["x", "z", "y", "y", "x", "x"],
            "topic": ["t", "t", "t", "u", "u", "u"],
            "score": ["1", "2", "3", "4", "5", "6"],
        }
    )
    columns = item_columns(frame, "f.csv")
    rows = paired_rows(frame, columns, "f.csv")
    assert list(rows) == ["prompt", "topic", "response_a", "response_b", "subject_a", "subject_b"]
    assert rows["subject_a"].tolist() == ["x", "x", "y", "x"]
    assert rows["response_b"].tolist() == ["3", "2", "2", "4"]
    again = pd.concat([frame, frame.iloc[:1]], ignore_index=True)
    with pytest.raises(InputError, match=r"f.csv, row 8: 'x' has answered this prompt"):
        paired_rows(again, columns, "f.csv")
    with pytest.raises(InputError, match="no two subjects answer the same prompt"):
        paired_rows(frame.iloc[[0, 3]], columns, "f.csv")
    with pytest.raises(InputError, match="no column is taken for the subject"):
        paired_rows(frame, item_columns(frame.drop(columns="model"), "f.csv"), "f.csv")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"generator_2": ["secret-one"] * 4}, "row 2: 'secret-one' gave both answers"),
        ({"generator_2": ["x", "", "x", "x"]}, "row 3: generator_2 is ''"),
        ({"response_a": ["x"] * 4, "response_b": ["x"] * 4}, "could be response_a, response_b or"),
        ({"prompt_b": ["x"] * 4}, "the column 'prompt_b' means something else here"),
    ],
)
def test_bad_files_are_named(change: dict[str, list[str]], told: str) -> None:
    with pytest.raises(InputError, match=told):
        made(VOTES | change)


def test_a_judges_word_that_is_no_option_is_named() -> None:
    items, columns = made(VOTES | {"winner": ["A", "secret-three", "B", "5"]}, "winner")
    with pytest.raises(InputError, match=r"f.csv, row 5: winner is '5', which is no option"):
        comparison_judge(items, columns, load_rubric("preference"), "f.csv")
    items, columns = made(VOTES | {"winner": ["A", "A1", "B2", "tie"]}, "winner")
    five = asked_comparison("Which?", items.blocks, 5)
    # Of several options for a side a bare side does not say which.
    with pytest.raises(InputError, match="row 2: winner is 'A', which is no option"):
        comparison_judge(items, columns, five, "f.csv")


def test_other_rubrics_are_refused(tmp_path: Path) -> None:
    items, _ = made(VOTES)
    for name in ("helpfulness", "even-handedness"):
        with pytest.raises(InputError, match="two answers to one prompt, and nothing else"):
            create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[load_rubric(name)]))


@pytest.mark.slow
def test_checks_and_other_tools_show_one_prompt_too(tmp_path: Path) -> None:
    items, columns = made(VOTES, "winner")
    rubric = load_rubric("preference")
    folder = tmp_path / "s"
    create_study(folder, StudyPlan(items=items, rubrics=[rubric], sample=4))
    (folder / "attention.toml").write_text(
        '[[unit]]\nname = "plain"\nexpected = { preference = "A" }\n'
        'values = { prompt = "Which sea?", response_a = "The North Sea", response_b = "No" }\n'
    )
    with open_study(folder) as study:
        known = KnownUnits(study, "attention.toml", "check")
        (key,) = known.questions
        assert known.values(key, "ba") == {
            "prompt": "Which sea?",
            "response_a": "No",
            "response_b": "The North Sea",
        }
        import_ratings(study, comparison_judge(items, columns, rubric, "f.csv"), "f")
    out = tmp_path / "out.json"
    assert main(["export", str(folder), "--format", "label-studio", "--out", str(out)]) == 0
    texts = [each["data"]["text"] for each in json.loads(out.read_text("utf-8"))]
    assert "Prompt\n\nWhere?\n\nResponse A\n\nBasel\n\nResponse B\n\nBern" in texts
    assert not any("secret" in text for text in texts)


def test_golden_answers_are_comparisons() -> None:
    rubric = load_rubric("preference")
    items = golden_comparisons(rubric)
    assert len(items.unit_ids) == len(rubric.golden)
    assert items.responses["response"].tolist()[:: len(rubric.golden)] == [
        rubric.golden[0].texts["response_a"],
        rubric.golden[0].texts["response_b"],
    ]


def test_two_images_are_compared_and_so_attacked(tmp_path: Path) -> None:
    for name, colour in (("a", "red"), ("b", "blue")):
        Pictures.new("RGB", (64, 48), colour).save(tmp_path / f"{name}.png")
    frame = pd.DataFrame(
        {
            "prompt": ["A red field"],
            "response_a": ["a.png"],
            "response_a_alt": ["red"],
            "response_b": ["b.png"],
            "response_b_alt": ["blue"],
        }
    )
    columns = comparison_columns(frame, "f.csv", ("response_a", "response_b"))
    items = make_comparisons(frame, columns, "f.csv", tmp_path)
    images = [image_of(cell) for cell in items.responses["response"]]
    assert [image.alt for image in images if image] == ["red", "blue"]
    rubric = load_rubric("preference").showing(items.blocks)
    rubric = rubric.with_kinds({block.column: block.kind for block in items.blocks if block.kind})
    create_study(tmp_path / "study", StudyPlan(items=items, rubrics=[rubric]))
    with open_study(tmp_path / "study") as study:
        (unit,) = study.rubric_units(rubric)
        values = study.values(rubric, unit)
    prompt = rubric.for_prompt(values)
    assert [name for name, _ in prompt.images] == ["response_a", "response_b"]
    attacked = AttackedQuestion(unit, rubric, "ab", attack="x", side="b", suffix=" ATTACK")
    assert "[image: blue ATTACK]" in rubric.for_prompt(attacked.presented(values)).user
