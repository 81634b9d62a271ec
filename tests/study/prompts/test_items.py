"""Rows of a file become items: what each column is, and what is refused, naming file and row."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pandas as pd
import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, asked_rubric, load_rubric
from evenhand.rubrics.content import turns_of
from evenhand.study import create_study, open_study
from evenhand.study.creation import StudyPlan
from evenhand.study.lead.imports import import_ratings
from evenhand.study.prompts.items import (
    MOST_CHARACTERS,
    Items,
    check_items_table,
    each_turn,
    item_columns,
    judge_ratings,
    make_items,
)
from evenhand.study.tables.formats import read_table

RAG = {
    "id": ["x1", "x2", "x3"],
    "Question": ["Where?", "Where?", "When?"],
    "retrieved_contexts": ["In Basel.", "In Basel.", "In </context> May."],
    "output": ["Basel", "Bern", "May"],
    "model": ["m1", "m2", "m1"],
    "judge": ["Yes", "no", "1.0"],
    "topic": ["t", "t", "u"],
}


def made(rows: dict[str, list[str]], judge: str = "", show: Sequence[str] = ()) -> Items:
    frame = pd.DataFrame(rows)
    return make_items(frame, item_columns(frame, "f.csv", judge=judge, show=show), "f.csv")


def asked(items: Items) -> Rubric:
    return asked_rubric("Faithful?", items.blocks, options=["yes", "no"])


def test_columns_are_known_by_their_names():
    columns = item_columns(pd.DataFrame(RAG), "f.csv", judge="judge")
    assert columns.show == ("Question", "retrieved_contexts", "output")
    assert (columns.prompt, columns.response) == ("Question", "output")
    assert (columns.context, columns.reference) == ("retrieved_contexts", "")
    assert (columns.subject, columns.id, columns.judge) == ("model", "id", "judge")


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (
            ("context.span_id", "attributes.llm.model_name", "attributes.input.value"),
            ("context.span_id", "attributes.llm.model_name", "attributes.input.value"),
        ),
        (("id", "model", "inputs"), ("id", "model", "inputs")),
        (("trace", "kind", "request"), ("", "", "request")),
    ],
)
def test_the_names_of_tracing_tools_are_known(names, known):
    frame = pd.DataFrame({name: ["x", "y"] for name in (*names, "attributes.output.value")})
    columns = item_columns(frame, "f.jsonl")
    assert (columns.id, columns.subject, columns.prompt) == known
    assert columns.response == "attributes.output.value"


def test_raters_and_graders_read_the_same_blocks_and_the_judge_stays_hidden(tmp_path):
    items = made(RAG, judge="judge")
    rubric = asked(items)
    create_study(tmp_path / "s", StudyPlan(items=items, rubrics=[rubric], sample=3))
    with open_study(tmp_path / "s") as study:
        (kept,) = study.rubrics.values()
        assert kept == rubric
        assert kept.hash == rubric.hash
        ratings = judge_ratings(items, rubric, "judge", "f.csv")
        assert import_ratings(study, ratings, "f.csv") == (3, 0)
        values = study.values(rubric, "x3|m1|a")
        shown = rubric.for_people(values)
        assert [(block.label, block.text) for block in shown.blocks] == [
            ("Question", "When?"),
            ("Retrieved contexts", "In </context> May."),
            ("Output", "May"),
        ]
        prompt = rubric.for_prompt(values).user
        assert prompt.count("</context>") == 1
        assert "In &lt;/context> May." in prompt
        assert "judge" not in prompt
        stored = study.ratings().set_index("unit_id")
        assert stored["label"].to_dict() == {"x1|m1|a": "yes", "x2|m2|a": "no", "x3|m1|a": "yes"}
        assert set(stored["rater_kind"]) == {"model"}
        assert study.config.analysis.cluster == "prompt_id"
        units = study.units().set_index("unit_id")
        assert units["item_id"].to_dict() == {
            f"{x}|{m}|a": x for x, m in zip(RAG["id"], RAG["model"], strict=True)
        }
        assert units["prompt_id"].nunique() == 2
        assert "judge" not in units


def test_a_text_cannot_leave_its_fence_not_even_by_the_tag_of_a_block_of_its_own():
    items = made(
        {"My notes": ["In </my_notes> May."], "output": ["x"]}, show=["My notes", "output"]
    )
    values = {"my_notes": "In </my_notes> May.", "response": "x"}
    prompt = asked(items).for_prompt(values).user
    assert prompt.count("</my_notes>") == 1
    assert "In &lt; /my_notes > May." in prompt


def test_context_and_reference_are_kept_under_the_names_that_rubrics_use():
    items = made({"input": ["a"], "passage": ["b"], "gold": ["c"], "answer": ["d"], "note": ["e"]})
    assert [block.column for block in items.blocks] == [
        "prompt",
        "context",
        "reference",
        "response",
    ]
    assert [block.label for block in items.blocks] == ["Input", "Passage", "Gold", "Answer"]
    kept = {"pair_id", "prompt_a", "context", "reference", "note", "item_id"}
    assert set(items.pairs) == kept


def test_two_columns_cannot_both_be_the_context():
    rows = {"passage": ["b"], "context": ["c"], "answer": ["d"]}
    with pytest.raises(InputError, match=r"f\.csv: two columns would be called 'context'; rename"):
        made(rows, show=["passage", "answer"])


def test_other_words_in_a_block_are_another_text():
    rubric = asked(made(RAG))
    block = rubric.blocks[0].model_copy(update={"label": "Asked"})
    other = Rubric.model_validate(rubric.model_dump() | {"blocks": (block, *rubric.blocks[1:])})
    assert other.hash != rubric.hash


def test_ids_that_cannot_be_unit_ids_are_kept_beside():
    items = made(RAG | {"id": ["a b", "a|c", "d"]})
    assert items.pairs["pair_id"].tolist() == ["p0001", "p0002", "p0003"]
    assert items.pairs["item_id"].tolist() == ["a b", "a|c", "d"]


def test_rows_on_prompts_of_their_own_are_their_own_clusters():
    items = made({"prompt": ["a", "b"], "response": ["x", "y"]})
    assert items.cluster == ""
    assert set(items.responses["subject"]) == {"responses"}


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ({"q": ["x"]}, "none of the columns q is called response"),
        ({"output": ["x"], "answer": ["y"]}, "'output' and 'answer' could both be the response"),
        ({"output": ["x", " "]}, "f.csv, row 3: output is empty"),
        ({"id": ["a", "a"], "output": ["x", "y"]}, "f.csv, row 3: the id 'a' stands in row 2 too"),
        ({"id": ["a", ""], "output": ["x", "y"]}, "f.csv, row 3: id is empty"),
        ({"output": ["x", "y"], "model": ["m", ""]}, "f.csv, row 3: model is ''"),
        (
            {"messages": ['[{"role": "user", "content": "x"}]', '[{"role": "judge"}]']},
            "f.csv, row 3: messages: turn 1 has the role 'judge'",
        ),
        ({"output": ["x"], "pair_id": ["l"]}, "the column 'pair_id' means something else here"),
    ],
)
def test_bad_rows_are_named(rows, told):
    with pytest.raises(InputError, match="(?s).*" + told.replace("(", r"\(")):
        made(rows)


def test_names_with_a_meaning_here_are_kept_under_others():
    items = made({"output": ["x", "y"], "side": ["left", "right"], "prompt_id": ["p1", "p2"]})
    assert items.pairs["file_side"].tolist() == ["left", "right"]
    assert items.pairs["file_prompt_id"].tolist() == ["p1", "p2"]


def test_who_answered_is_not_shown():
    with pytest.raises(InputError, match="'model' says who answered, which raters may not see"):
        made(RAG, show=["output", "model"])
    # The column by which an answer is told apart may be shown where another one names who answered.
    frame = pd.DataFrame(RAG | {"system": ["x", "y", "z"]})
    columns = item_columns(frame, "f.csv", show=["output", "model"], subject="system")
    assert columns.subject == "system"


def test_who_answered_is_no_cluster():
    with pytest.raises(InputError, match="'model' says who answered; name another one with"):
        item_columns(pd.DataFrame(RAG), "f.csv", subject="model", cluster="model")


def test_truth_values_of_a_judge_are_yes_and_no():
    items = made(RAG | {"judge": ["TRUE", "f", "0.0"]}, judge="judge")
    labels = judge_ratings(items, asked(items), "judge", "f.csv")["label"]
    assert labels.tolist() == ["yes", "no", "no"]


def test_a_judge_is_neither_shown_nor_guessed_at():
    with pytest.raises(InputError, match="which raters may not see"):
        made(RAG, judge="judge", show=["output", "judge"])
    with pytest.raises(InputError, match="the column 'verdict' is missing"):
        made(RAG, judge="verdict")
    items = made(RAG | {"judge": ["yes", "maybe", "no"]}, judge="judge")
    with pytest.raises(InputError, match=r"f\.csv, row 3: judge is 'maybe', which is no option"):
        judge_ratings(items, asked(items), "judge", "f.csv")
    items = made(RAG | {"judge": ["", "", ""]}, judge="judge")
    with pytest.raises(InputError, match="the column 'judge' has no labels"):
        judge_ratings(items, asked(items), "judge", "f.csv")


def test_a_cell_beyond_all_bounds_is_named(tmp_path):
    file = tmp_path / "f.csv"
    file.write_text("output\nshort\n" + "x" * (MOST_CHARACTERS + 1) + "\n")
    with pytest.raises(InputError, match=r"f.csv, row 3: output has 1,000,001 characters"):
        check_items_table(read_table(file), file.name)


@pytest.mark.parametrize(
    ("options", "scale", "told"),
    [
        ([], "", "one of the two"),
        (["a", "b"], "1-5", "one of the two"),
        (["a"], "", "name two options at least"),
        (["Yes", "yes"], "", "two options are called like"),
        ([], "5", "write its ends"),
        ([], "0-2000", "must have 2 to 1,001 points"),
        (["!", "?"], "", "needs a letter or a digit"),
    ],
)
def test_what_cannot_be_asked_is_said(options, scale, told):
    with pytest.raises(InputError, match=told):
        asked_rubric("Is it?", made(RAG).blocks, options=options, scale=scale)


TALK = [
    {"role": "user", "content": "Where?"},
    {"role": "assistant", "content": "In Basel."},
    {"role": "user", "content": "When?"},
    {"role": "assistant", "content": "In May."},
]


def by_turn(rows: dict[str, list[str]], judge: str = "") -> Items:
    frame = pd.DataFrame(rows)
    columns = item_columns(frame, "f.jsonl", judge=judge)
    return make_items(*each_turn(frame, columns, "f.jsonl"), "f.jsonl")


def test_each_turn_of_the_assistant_is_an_item_after_what_was_said_before(tmp_path):
    rows = {
        "id": ["c1", "c2"],
        "messages": [json.dumps(TALK), json.dumps(TALK[1:2])],
        "model": ["m1", "m2"],
        "judge": ['["yes", "no"]', '["yes"]'],
    }
    items = by_turn(rows, "judge")
    assert items.pairs["item_id"].tolist() == ["c1-t2", "c1-t4", "c2-t1"]
    assert items.pairs["conversation_id"].tolist() == ["c1", "c1", "c2"]
    assert items.cluster == "conversation_id"
    assert items.responses["response"].tolist() == ["In Basel.", "In May.", "In Basel."]
    said = [[t.text for t in turns_of(c)] if c else [] for c in items.pairs["prompt_a"]]
    assert said == [["Where?"], ["Where?", "In Basel.", "When?"], []]
    assert [block.kind for block in items.blocks] == ["conversation", ""]
    rubric = asked(items)
    assert judge_ratings(items, rubric, "judge", "f.jsonl")["label"].tolist() == [
        "yes",
        "no",
        "yes",
    ]
    # A rubric by name shows the conversation so far in place of the prompt.
    helpful = load_rubric("helpfulness").with_kinds({b.column: b.kind for b in items.blocks})
    create_study(tmp_path / "study", StudyPlan(items=items, rubrics=[helpful]))
    with open_study(tmp_path / "study") as study:
        (unit, *_) = study.rubric_units(helpful)
        prompt = helpful.for_prompt(study.values(helpful, unit))
    assert '<prompt>\n<turn by="user">' in prompt.user


def test_turns_and_labels_are_as_many(tmp_path):
    chat = json.dumps(TALK)
    rows = {"messages": [chat], "judge": ['["yes"]']}
    with pytest.raises(InputError, match=r"row 2: judge is .* write a JSON list of 2"):
        by_turn(rows, "judge")
    with pytest.raises(InputError, match="needs one shown column of conversations; it has none"):
        by_turn({"output": ["plain"]})
    with pytest.raises(InputError, match="no conversation has a turn of the assistant"):
        by_turn({"messages": [json.dumps(TALK[:1])]})
