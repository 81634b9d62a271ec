"""Graders of a rubric that asks for a number: what they are asked, and what becomes of replies."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from evenhand.analysis.labels.combine import combine_readings
from evenhand.errors import InputError
from evenhand.reporting.load import from_study
from evenhand.rubrics import Rubric
from evenhand.rubrics.loading import parse_rubric
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, labelled, message
from tests.graders.grading import grade

SCORE = """
name = "score"
title = "Score"
unit = "response"
question = "How good is it?"
instructions = "Read it."
variables = ["response"]

[number]
low = 0
high = {high}
"""


def score(high: int = 100) -> Rubric:
    return parse_rubric(SCORE.format(high=high), "score.toml")


def test_a_number_is_asked_for_and_read(
    server: ProtocolServer, claude: str, marked_study: Callable
) -> None:
    replies, said = ["73", "Score: 8/100", "Fine, 7/10", "100"], {}

    def script(call: Call) -> Reply:
        if "output_config" in call.body:
            return labelled("42")
        return completion(said.setdefault(call.unit, replies[len(said) % 4]))

    server.script = script
    study = marked_study(pairs=2, rubrics=(score(),))
    summary = grade(study, [claude, server.openai])
    assert summary.scored == 7
    table = study.ratings().set_index("rater_id")
    assert set(table.loc[claude, "label"]) == {"42"}
    assert sorted(table.loc[server.openai, "label"]) == ["", "100", "73", "8"]
    assert (table["probabilities"] == "").all()
    system = server.calls[0].system
    assert "Answer with a whole number from 0 to 100 and nothing else." in system
    assert "Options:" not in system
    schema = next(c.body for c in server.calls if "output_config" in c.body)["output_config"]
    label = schema["format"]["schema"]["properties"]["label"]
    assert (label["enum"][0], label["enum"][-1], len(label["enum"])) == ("0", "100", 101)


def test_many_numbers_are_a_number_in_the_schema(
    server: ProtocolServer, claude: str, marked_study: Callable
) -> None:
    replies = iter([417, 1001, 1000, 2.5])
    server.script = lambda call: message(json.dumps({"label": next(replies)}))
    study = marked_study(pairs=2, rubrics=(score(1000),))
    grade(study, [claude])
    assert sorted(study.ratings()["label"]) == ["", "", "1000", "417"]
    schema = server.calls[0].body["output_config"]["format"]["schema"]
    assert schema["properties"]["label"] == {"type": "number"}


def test_a_reason_before_a_number(
    server: ProtocolServer, claude: str, marked_study: Callable
) -> None:
    said = {"reason": "Two of 30 claims fail.", "label": 88}
    server.script = lambda call: message(json.dumps(said))
    study = marked_study(pairs=1, rubrics=(score(1000),))
    assert grade(study, [claude], method="reason-then-label").scored == 2
    assert "Then give a whole number from 0 to 1000" in server.calls[0].system
    assert set(study.ratings()["label"]) == {"88"}


def test_of_several_draws_the_median_counts(
    server: ProtocolServer, claude: str, marked_study: Callable
) -> None:
    replies: dict[str, list[str]] = {}
    server.script = lambda call: labelled(replies.setdefault(call.unit, ["10", "90", "80"]).pop())
    study = marked_study(pairs=1, rubrics=(score(),))
    grade(study, [claude], draws=3)
    assert (study.ratings()["probabilities"] == "").all()
    dataset = from_study(study)
    readings = combine_readings(dataset.ratings, dataset.scales["score"])
    assert [dataset.scales["score"].categories[code] for code in readings.code] == ["80", "80"]


def test_probabilities_of_numbers_are_not_asked_for(claude: str, marked_study: Callable) -> None:
    with pytest.raises(InputError, match="asks for a number, and not for the probability"):
        grade(marked_study(rubrics=(score(),)), [claude], method="verbalised")
