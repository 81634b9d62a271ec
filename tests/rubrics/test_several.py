"""A rubric of which several options may apply: its file, its labels, and replies to it."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, asked_rubric, dump_rubric
from evenhand.rubrics.loading import parse_rubric, read_rubric
from evenhand.rubrics.options import Block
from harness.studies import TOPICS_HEAD

OPTIONS = """
[[options]]
key = "billing"
name = "Billing"

[[options]]
key = "bug"
name = "A bug"

[[options]]
key = "x"
name = "Praise, thanks"
"""


def topics(head: str = TOPICS_HEAD) -> Rubric:
    return parse_rubric(head + OPTIONS, "topics.toml")


def test_a_label_is_a_set_in_the_rubrics_order() -> None:
    rubric = topics()
    given = ("bug;billing", '["x", "bug"]', "none", "[]", "bug", "", "spam", "bug;none", "bug;bug")
    assert [rubric.label_of(text) for text in given] == [
        "billing;bug", "bug;x", "none", "none", "bug", None, None, None, None,
    ]  # fmt: skip
    assert rubric.takes("billing;bug")
    assert not rubric.takes("bug;billing")
    assert rubric.name_of("billing;x") == "Billing, Praise, thanks"
    assert (rubric.name_of("none", "None of these"), rubric.name_of("")) == ("None of these", "")


def test_it_is_written_and_hashed() -> None:
    rubric = topics()
    assert parse_rubric(dump_rubric(rubric), "topics.toml") == rubric
    assert topics(TOPICS_HEAD.replace("several = true\n", "")).hash != rubric.hash


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ('affirmative = ["bug"]\n', "`affirmative` does not go with `several`"),
        ('unclear = ["bug"]\n', "`unclear` does not go with `several`"),
        ('level = "ordinal"\n', "options of which several apply have no order"),
        ('unit = "pair"\n', '`several` does not go with unit = "pair"'),
    ],
)
def test_what_does_not_go_with_it(more: str, fault: str) -> None:
    name = more.split(" =")[0]
    head = "".join(
        line + "\n" for line in TOPICS_HEAD.splitlines() if not line.startswith(f"{name} =")
    )
    if 'unit = "pair"' in more:
        head = head.replace('["response"]', '["response_a", "response_b"]')
    _, faults = read_rubric(head + more + OPTIONS)
    assert fault in " ".join(faults)


def test_no_option_is_called_none() -> None:
    _, faults = read_rubric(TOPICS_HEAD + OPTIONS.replace('"x"', '"None"'))
    assert "'none' says that no option applies" in " ".join(faults)


def test_graders_are_asked_for_all_that_apply() -> None:
    prompt = topics().for_prompt({"response": "It broke."})
    assert "(bug) A bug" in prompt.system
    assert prompt.system.endswith(
        "Answer with the keys of all options that apply, separated by commas (the word none if "
        "there is none) and nothing else; the keys are billing, bug, x."
    )
    assert prompt.several


@pytest.mark.parametrize(
    ("reply", "label"),
    [
        ("billing, bug", "billing;bug"),
        ("bug; billing", "billing;bug"),
        ("- bug\n- billing", "billing;bug"),
        ("**bug**, **x**", "bug;x"),
        ("A bug and Billing", "billing;bug"),
        ("none", "none"),
        ("None of these.", "none"),
        ("[]", "none"),
        ('["bug"]', "bug"),
        ('{"label": ["x", "billing"]}', "billing;x"),
        ('{"labels": []}', "none"),
        ("It mentions an invoice.\nLabels: billing", "billing"),
        ("<think>bug? x?</think>\nbilling", "billing"),
        ("billing, perhaps bug", None),
        ("It is about a bug.", None),
        ("not bug", None),
        ("billing or bug", None),
        ("spam", None),
        ('{"labels": ["spam"]}', None),
        ('{"labels": ["bug"], "answer": ["x"]}', None),
        ('I say {"labels": ["bug"]}', None),
        ("bug\nUser: and x?", None),
        ("", None),
    ],
)
def test_replies(reply: str, label: str | None) -> None:
    assert topics().parser().label(reply) == label


def test_a_question_on_the_command_line_takes_several() -> None:
    blocks = [Block(column="response", label="Response")]
    rubric = asked_rubric("About what?", blocks, options=["Billing", "A bug"], several=True)
    assert (rubric.several, rubric.affirmative) == (True, ())
    assert rubric.label_of("a-bug;billing") == "billing;a-bug"
    for more, told in (
        ({"scale": "1-5"}, "--several goes with --options"),
        ({"options": ["a", "none"]}, "leave none out"),
        ({"options": [f"o{n}" for n in range(31)]}, "31 options, more than 30"),
    ):
        with pytest.raises(InputError, match=told):
            asked_rubric("About what?", blocks, several=True, **more)
