"""The page New study: it offers what `evenhand label` does, under names of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evenhand.annotate_app.lead.new_study_page import _FIELDS, _ROLES, _in_page, _taken_for
from evenhand.cli.main import main
from evenhand.errors import InputError
from evenhand.reporting.new_study import ItemOptions, item_study, look_at_items

ASKED = ItemOptions(question="Is it right?", options=("yes", "no"))
OF_THE_MACHINE = {"help", "port", "url", "host", "no-browser"}
HAS_ANOTHER_NAME = {"sample"}
"""Items to label."""


def test_every_option_of_label_has_a_field(capsys):
    main(["label", "--help"])
    options = set(re.findall(r"--([a-z][a-z-]+)", capsys.readouterr().out))
    assert options - OF_THE_MACHINE - HAS_ANOTHER_NAME <= set(_FIELDS)


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows))
    return path


def test_each_column_is_told_before_anything_is_asked(tmp_path):
    file = write(tmp_path / "items.csv", "prompt,output,model,tone", "Hi,Hello,m1,warm")
    found = look_at_items(file, ASKED)
    assert found.columns == [
        ("prompt", "Hi"), ("output", "Hello"), ("model", "m1"), ("tone", "warm"),
    ]  # fmt: skip
    assert found.show == ["prompt", "output"]
    assert [_taken_for(name, found) for name, _ in found.columns] == [
        "read by raters, the prompt", "read by raters, the response", "who answered",
        "kept as a fact",
    ]  # fmt: skip
    assert found.taken == item_study(file, ASKED).taken


def test_two_answers_are_told_as_such(tmp_path):
    file = write(tmp_path / "items.csv", "prompt,answer_a,answer_b", "Hi,Hello,Hey", "Ho,Hi,Oh")
    found = look_at_items(file, ItemOptions())
    assert found.show == ["prompt", "answer_a", "answer_b"]
    assert found.taken == item_study(file, ItemOptions()).taken
    assert {role for role, _ in found.taken} <= set(_ROLES)


def test_what_is_not_clear_is_said_beside_the_columns(tmp_path):
    file = write(tmp_path / "items.csv", "task,said", "Hi,Hello")
    found = look_at_items(file, ASKED)
    assert [name for name, _ in found.columns] == ["task", "said"]
    assert "--" not in _in_page(found.fault)
    assert "“What raters read, in this order”" in _in_page(found.fault)
    assert _taken_for("task", found) == ""


def test_complaints_name_fields_for_options(tmp_path):
    chat = write(tmp_path / "items.csv", "response", "Hello")
    for options in (
        ItemOptions(),
        ItemOptions(question="?"),
        ItemOptions(question="?", scale="1-x"),
        ItemOptions(question="?", options=("yes",)),
        ItemOptions(question="?", scale="1-5", several=True),
        ItemOptions(question="?", options=("a", "b"), each_turn=True),
        ItemOptions(question="?", options=("a", "b"), steps=3),
        ItemOptions(options=("a", "b")),
    ):
        with pytest.raises(InputError) as complaint:
            item_study(chat, options)
        said = _in_page(str(complaint.value))
        assert "--" not in said
        assert "yes,no" not in said
