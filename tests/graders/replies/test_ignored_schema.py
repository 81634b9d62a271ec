"""Servers that ignore the schema they are sent give their labels in words: none is read wrong."""

from __future__ import annotations

import pytest

from evenhand.rubrics.loading import parse_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, message
from harness.studies import MarkedStudy
from tests.graders.grading import grade

PASSES = parse_rubric(
    """
name = "passes"
title = "Passes"
unit = "response"
level = "nominal"
question = "Does it name a source?"
instructions = "Read it."
variables = ["response"]

[[options]]
key = "pass"
name = "Names a source"

[[options]]
key = "fail"
name = "Names none"
""",
    "passes.toml",
)
REPLIES = {
    "pass: no": "fail",
    '{"pass": false, "reason": "no source"}': "fail",
    "pass - false": "",
    "**Pass:**\n\nnever": "fail",
    "pass? no": "fail",
    '{"pass": true}': "pass",
    "PASS \u2705": "pass",
    "Names none (fail)": "fail",
    "pass: maybe": "",
    "Response 1: pass\nResponse 2: fail": "",
}


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_no_label_is_read_wrong(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy, provider: str
) -> None:
    given: dict[str, str] = {}

    def script(call: Call) -> Reply:
        text = given.setdefault(call.unit, [*REPLIES][len(given) % len(REPLIES)])
        return message(text) if provider == "anthropic" else completion(text)

    server.script = script
    study = marked_study(pairs=5, rubrics=(PASSES,))
    grade(study, [claude if provider == "anthropic" else server.openai])
    labels = study.ratings().set_index("unit_id")["label"].to_dict()
    assert len(labels) == len(REPLIES)
    by_reply = {given[unit.replace(":", "|")]: label for unit, label in labels.items()}
    assert by_reply == REPLIES
