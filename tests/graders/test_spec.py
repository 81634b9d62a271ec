from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.graders import GraderSpec, parse_spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("anthropic:claude-x", ("anthropic", "claude-x", "")),
        ("openai:gpt-x", ("openai", "gpt-x", "")),
        (
            "openai:llama3:8b@http://localhost:11434/v1",
            ("openai", "llama3:8b", "http://localhost:11434/v1"),
        ),
        ("openai:org/model@https://h/v1", ("openai", "org/model", "https://h/v1")),
        ("baseline:lexical", ("baseline", "lexical", "")),
    ],
)
def test_names_of_graders(text: str, expected: tuple[str, str, str]) -> None:
    assert parse_spec(text) == GraderSpec(text, *expected)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("claude-x", "is not a valid grader"),
        ("nobody:x", "is not a valid grader"),
        ("azure:x", "AZURE_OPENAI_ENDPOINT"),
        ("anthropic:", "does not name a model"),
        ("anthropic: claude", "does not name a model"),
        ("baseline:random", "no baseline"),
        ("openai:m@localhost:8000/v1", "must begin with http"),
        ("openai:m@http://h:port/v1", "not a valid address"),
        ("openai:m@http:///v1", "not a valid address"),
    ],
)
def test_what_is_no_grader_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parse_spec(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "openai:m@http://user:SECRETVALUE@h/v1",
        "openai:m@http://SECRETVALUE@h/v1",
        "openai:m@https://h/v1?api_key=SECRETVALUE",
        "openai:m@user:SECRETVALUE@h/v1",
        "anthropic:sk-SECRETVALUE-0123456789",
        "openai:m@https://h/sk-SECRETVALUE-0123456789/v1",
    ],
)
def test_credentials_in_a_name_are_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_spec(text)
    assert "SECRETVALUE" not in str(caught.value)
