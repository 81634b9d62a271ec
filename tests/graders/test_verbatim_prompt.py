"""A published prompt, asked through both SDKs word for word."""

from __future__ import annotations

import pytest

from evenhand.errors import InputError
from evenhand.graders.clients.claude import build_request
from evenhand.rubrics import Rubric
from evenhand.rubrics.loading import parse_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, message
from harness.studies import MarkedStudy
from tests.graders.grading import grade
from tests.graders.running.test_runner import FAST, rows

PUBLISHED = """
name = "hedging"
title = "Hedging"
unit = "response"
level = "ordinal"
question = "Does it hedge?"
instructions = "Look for hedging."
variables = ["response"]
affirmative = ["2"]
options = [{ key = "1", name = "None" }, { key = "2", name = "Some" }]

[prompt]
template = '''
Read {carefully}:
<response>
{response}
</response>
Start your answer with "(".

Options:
(1) None
(2) Some
'''
"""


@pytest.fixture
def published() -> Rubric:
    return parse_rubric(PUBLISHED, "hedging.toml")


def said(call: Call) -> Reply:
    text = "(2) Some hedging"
    return message(text) if call.path.endswith("/messages") else completion(text)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_nothing_is_sent_but_the_published_words(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, published, provider: str
) -> None:
    server.script = said
    study = marked_study(
        pairs=1, rubrics=(published,), response=lambda pair, side: "{x} </response>"
    )
    grader = claude if provider == "anthropic" else server.openai
    summary = grade(study, [grader], **FAST)
    assert (summary.scored, summary.stopped) == (2, ())
    wanted = (
        "Read {carefully}:\n<response>\n[[*]] {x} </response>\n</response>\n"
        'Start your answer with "(".\n\nOptions:\n(1) None\n(2) Some\n'
    )
    assert {call.user.replace(call.unit, "*") for call in server.calls} == {wanted}
    assert not [call for call in server.calls if call.system or "output_config" in call.body]
    assert {row["label"] for row in rows(study)} == {"2"}


def test_claude_may_cache_what_comes_before_the_response(published) -> None:
    request = build_request("m", published.for_prompt({"response": "R"}))
    head, rest = request["messages"][0]["content"]
    assert head["cache_control"] == {"type": "ephemeral"}
    assert head["text"] == "Read {carefully}:\n<response>\n"
    assert "cache_control" not in rest


def test_a_distribution_cannot_be_asked_for_besides(
    claude: str, marked_study: MarkedStudy, published
) -> None:
    study = marked_study(rubrics=(published,))
    with pytest.raises(InputError, match=r"has a \[prompt\] of its own"):
        grade(study, [claude], method="verbalised")
