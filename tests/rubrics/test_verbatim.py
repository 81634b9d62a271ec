"""A rubric's own prompt is sent word for word, and its texts stay texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.rubrics import Rubric, dump_rubric, load_rubric
from evenhand.rubrics.loading import parse_rubric, read_rubric
from evenhand.rubrics.model import PromptTemplate

TEMPLATE = (
    '{"like": "this"} {{kept}} for {group_a}.\n<a>\n{response_a}</a>{response_b}\n\n'
    'Begin with "(".\n'
)


def pair(template: str = TEMPLATE, **more: object) -> Rubric:
    fields = {
        "name": "mine",
        "title": "Mine",
        "unit": "pair",
        "level": "nominal",
        "question": "Which?",
        "instructions": "Judge.",
        "variables": ["response_a", "response_b", "group_a"],
        "options": [{"key": "A", "name": "First"}, {"key": "B", "name": "Second"}],
        "prompt": {"template": template},
    }
    return Rubric.model_validate(fields | more)


VALUES = {"response_a": "One.", "response_b": "Two.", "group_a": "left"}


def test_the_template_is_sent_as_it_is() -> None:
    prompt = pair().for_prompt(VALUES)
    assert prompt.user == (
        '{"like": "this"} {{kept}} for left.\n<a>\nOne.</a>Two.\n\nBegin with "(".\n'
    )
    assert (prompt.system, prompt.keys, prompt.verbatim) == ("", ("A", "B"), True)


@pytest.mark.slow
@given(st.text(), st.text())
def test_no_text_is_read_for_fields_whatever_it_holds(one: str, other: str) -> None:
    hostile = one + "{response_b} {0.__class__} {group_a!r:>{x}} %s {{" + other
    prompt = pair().for_prompt(VALUES | {"response_a": hostile})
    assert prompt.user.count(hostile) >= 1
    head, tail = TEMPLATE.split("{response_a}")
    assert prompt.user == head.replace("{group_a}", "left") + hostile + tail.replace(
        "{response_b}", "Two."
    )


def test_what_stays_the_same_is_cut_off_for_the_cache() -> None:
    first = pair().for_prompt(VALUES)
    same_group = pair().for_prompt(VALUES | {"response_a": "Another.", "response_b": "x"})
    other_group = pair().for_prompt(VALUES | {"group_a": "right of centre"})
    everybody, group = first.cuts
    assert (
        first.user[:everybody] == other_group.user[:everybody] == '{"like": "this"} {{kept}} for '
    )
    assert first.user[:group] == same_group.user[:group] != other_group.user[:group]
    assert first.user[group:].startswith("One.")


def test_a_template_that_begins_with_a_text_has_nothing_to_cache() -> None:
    assert pair("{response_a}{response_b}{group_a}").for_prompt(VALUES).cuts == ()


@given(st.text(alphabet=st.sampled_from(" \n\r\t\"'\\{}#ab\u00e9")))
def test_a_template_survives_its_file(text: str) -> None:
    rubric = pair(f"{text}{{response_a}}{{response_b}}{{group_a}}{text}")
    assert parse_rubric(dump_rubric(rubric), "mine.toml") == rubric


def test_the_template_is_a_part_of_what_is_asked() -> None:
    assert pair().hash != pair(TEMPLATE + ".").hash
    assert pair().hash != pair(prompt=None, instructions="Judge {group_a}.").hash
    assert load_rubric("refusal").hash == "fc84998dc4579b44"  # as before there were prompts


@pytest.mark.parametrize(
    ("prompt", "sentence"),
    [
        ({"template": "{response_a} {group_a}"}, "has no {response_b}, which people see"),
        ({"template": TEMPLATE, "system": "For {group_a}."}, "fields belong in"),
        ({"template": TEMPLATE, "user": "x"}, "unknown field 'prompt.user'"),
        ({"template": ""}, "prompt.template"),
    ],
)
def test_what_is_no_prompt_is_one_sentence(prompt: dict[str, str], sentence: str) -> None:
    text = dump_rubric(pair()).partition("[prompt]")[0]
    lines = "\n".join(f"{key} = {value!r}" for key, value in prompt.items())
    with pytest.raises(InputError) as caught:
        parse_rubric(f"{text}[prompt]\n{lines}\n", "mine.toml")
    assert sentence in str(caught.value)


def test_a_column_that_the_template_alone_names_is_declared_like_any_other() -> None:
    assert PromptTemplate(template="{response_a} {response_b}").fault(pair().variables) == ""
    with pytest.raises(ValueError, match="`variables` lists 'group_a', which no text uses"):
        pair("{response_a} {response_b}")


def test_every_fault_is_found_at_once() -> None:
    text = dump_rubric(pair()).replace('"group_a"', '"group_a", "nothing"')
    rubric, faults = read_rubric(text.replace("title", 'affirmative = ["Z"]\ntitle'))
    assert rubric is None
    assert [fault.partition(",")[0] for fault in faults] == [
        "affirmative names 'Z'",
        "`variables` lists 'nothing'",
    ]


def test_a_group_that_the_instructions_name_stands_with_the_unit() -> None:
    """The system part is the same for all units, so that a provider can cache it."""
    words = "Judge both.\n\nThe first is for {group_a}.\n\nBe fair."
    rubric = pair(prompt=None, instructions=words)
    prompts = [rubric.for_prompt(VALUES | {"group_a": group}) for group in ("left", "right")]
    assert prompts[0].system == prompts[1].system
    assert prompts[0].system.startswith("Judge both.\n\nBe fair.")
    assert [prompt.user.partition("\n\n")[0] for prompt in prompts] == [
        "The first is for left.",
        "The first is for right.",
    ]
    assert rubric.for_people(VALUES).instructions == words.replace("{group_a}", "left")
