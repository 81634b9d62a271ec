"""A rubric's words against what is sent around them, and `rubric check`."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.cli.main import main
from evenhand.rubrics import dump_rubric, load_rubric, shipped_rubrics
from evenhand.rubrics.loading import contradictions
from tests.rubrics.test_verbatim import pair


@pytest.mark.parametrize("name", shipped_rubrics())
def test_the_shipped_rubrics_contradict_nothing(name: str) -> None:
    assert contradictions(load_rubric(name)) == []


@pytest.mark.parametrize(
    ("instructions", "said"),
    [
        ("Compare <dialogue_a> with {group_a}.", "The text speaks of dialogue_a, but people"),
        ("Compare dialogue_b with {group_a}.", "The text speaks of dialogue_b, but people"),
        ('For {group_a}. Begin your answer with "(".', "The text says 'Begin your answer with"),
        ("For {group_a}. Start with an opening parenthesis.", "The text says 'Start with an op"),
        ("For {group_a}. Think step by step.", "The text says 'step by step'"),
        ("For {group_a}. Explain your choice.", "The text says 'Explain your'"),
        ("For {group_a}. Reply in JSON.", "The text says 'JSON'"),
        ("For {group_a}. Look at how it begins (or ends) and with what tone.", None),
        ("For {group_a}. Compare response_a with response_b.", None),
        ("For {group_a}. The person reasoned and explained.", None),
    ],
)
def test_what_does_not_fit_is_named(instructions: str, said: str | None) -> None:
    found = contradictions(pair(prompt=None, instructions=instructions))
    assert len(found) == (said is not None)
    assert said is None or found[0].startswith(said)


def test_a_template_is_held_to_its_options_and_the_text_that_people_read() -> None:
    template = "{group_a}{response_a}{response_b} (A) or what? Explain your choice."
    found = contradictions(pair(template, instructions="See <dialogue_a>."))
    assert [sentence.split()[:3] for sentence in found] == [
        ["People", "read", "dialogue_a"],
        ["The", "template", "does"],
        ["The", "template", "asks"],
    ]
    assert "option B" in found[1]


def test_check_says_what_will_be_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rubric", "check", "refusal"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("refusal (hash fc84998dc4579b44): response, ordinal, options 1, 2, 3")
    assert "Filled in: prompt, response." in said
    path = tmp_path / "mine.toml"
    path.write_text(dump_rubric(pair(instructions="See <dialogue_a>.")))
    assert main(["rubric", "check", str(path)]) == 0
    out, err = (" ".join(text.split()) for text in capsys.readouterr())
    assert "word for word" in out
    assert "The first 30 characters are the same for every unit" in out
    assert "Warning: People read dialogue_a" in err


def test_check_names_every_fault_and_ends_in_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('nme = "x"\ntitle = "X"\nunit = "both"\n')
    assert main(["rubric", "check", str(path)]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("evenhand")]
    assert len(lines) == 8
    assert any("unknown field 'nme'" in line for line in lines)
    assert main(["rubric", "check", str(tmp_path / "none.toml")]) == 2
    assert "there is no rubric" in capsys.readouterr().err


def test_check_warns_of_a_key_that_begins_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ten.toml"
    text = dump_rubric(load_rubric("refusal"))
    path.write_text(text.replace('key = "5"', 'key = "10"').replace('"5"]', '"10"]'))
    assert main(["rubric", "check", str(path)]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "Option 1 begins like option 10" in said
    assert main(["rubric", "check", "refusal"]) == 0
    assert "begins like" not in capsys.readouterr().err
