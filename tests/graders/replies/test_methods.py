"""Draws, stated distributions, both orders: each its own rater, each mapped back."""

from __future__ import annotations

import json

import pytest

from evenhand.errors import InputError
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, completion, labelled, message
from harness.studies import MarkedStudy
from tests.graders.grading import grade


def test_draws_are_rows_whose_mean_is_the_share(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: labelled("C" if call.nth <= 7 else "A")
    study = marked_study(pairs=2, rubrics=("even-handedness",))
    summary = grade(study, [claude], draws=10, concurrency=1, orders=("ab",))
    assert summary.scored == 20
    table = study.ratings()
    assert table["draw"].tolist() == [*range(10), *range(10)]
    assert set(table["prob_method"]) == {"draws"}
    assert set(table["rater_id"]) == {summary.graders[0].rater_id} != {claude}
    first = table[table["unit_id"] == "p0001|m"]
    rubric = study.rubrics["even-handedness"]
    affirmative = "C" in rubric.affirmative
    assert first["p_positive"].mean() == pytest.approx(0.7 if affirmative else 0.3)
    assert first["label"].value_counts().to_dict() == {"A": 3, "C": 7}


def test_more_draws_add_to_those_there(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    study = marked_study(pairs=1)
    grade(study, [claude], draws=2)
    again = grade(study, [claude], draws=5)
    assert (again.graders[0].already, again.scored) == (4, 6)


def test_methods_are_never_in_one_column(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    def script(call: Call) -> Reply:
        if "in percent" not in call.system:
            return labelled("1") if "output_config" in call.body else completion("1")
        text = json.dumps({"1": 60, "2": 20, "3": 10, "4": 10, "5": 0})
        return message(text) if "output_config" in call.body else completion(text)

    server.script = script
    study = marked_study(pairs=1)
    for options in ({}, {"draws": 2}, {"method": "verbalised"}):
        grade(study, [claude, server.openai], **options)
    table = study.ratings()
    assert table.groupby("rater_id")["prob_method"].nunique().eq(1).all()
    assert table["rater_id"].nunique() == 6
    stated = table[table["prob_method"] == "verbalised"]
    assert len(stated) == 4
    assert json.loads(stated["probabilities"].iloc[0])["1"] == pytest.approx(0.6)
    body = next(c.body for c in server.calls if "response_format" in c.body)
    assert body["response_format"]["json_schema"]["strict"] is True
    assert "logprobs" not in body


def test_a_server_without_schemas_is_asked_without(
    server: ProtocolServer, marked_study: MarkedStudy
) -> None:
    def script(call: Call) -> Reply:
        if "response_format" in call.body:
            return Reply(400, {"error": {"message": "response_format is not supported"}})
        return completion('{"1": 10, "2": 20, "3": 30, "4": 40, "5": 0}')

    server.script = script
    assert grade(marked_study(pairs=2), [server.openai], method="verbalised").scored == 4
    assert len(server.calls) == 5


def test_claude_has_no_token_probabilities(claude: str, marked_study: MarkedStudy) -> None:
    with pytest.raises(InputError, match="no token probabilities"):
        grade(marked_study(), [claude], method="logprobs")


def test_both_orders_are_asked_and_mapped_back(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: labelled("A")  # whatever stands first
    study = marked_study(pairs=2, rubrics=("even-handedness", "hedging"))
    server.script = lambda call: labelled("A" if "A" in call.keys else "2")
    assert grade(study, [claude], orders=("ab", "ba")).scored == 8
    table = study.ratings()
    pairs = table[table["rubric"] == "even-handedness"]
    swap = study.rubrics["even-handedness"].swap
    assert set(zip(pairs["order"], pairs["label"], strict=True)) == {("ab", "A"), ("ba", swap("A"))}
    assert swap("A") != "A"
    assert set(table[table["rubric"] == "hedging"]["order"]) == {""}
    shown = {
        call.user.index("[[p0001|m|a]]") < call.user.index("[[p0001|m|b]]")
        for call in server.calls
        if "[[p0001|m|b]]" in call.user and "A" in call.keys
    }
    assert shown == {True, False}


def test_what_brought_no_label_is_asked_again_on_request_only(
    server: ProtocolServer, claude: str, marked_study: MarkedStudy
) -> None:
    server.script = lambda call: (
        message("", stop_reason="refusal")
        if call.unit == "p0001|m|a" and call.nth == 1
        else labelled("2")
    )
    study = marked_study(pairs=2)
    grade(study, [claude])
    assert grade(study, [claude]).graders[0].planned == 0
    again = grade(study, [claude], retry_unscored=True)
    assert (again.graders[0].planned, again.scored) == (1, 1)
    assert set(study.ratings()["label"]) == {"2"}
