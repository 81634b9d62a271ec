"""Labels are asked for by the server's own means, which is learnt once, remembered and said."""

import json
from itertools import count
from typing import Any

import pytest

from evenhand.graders.clients import constraint_of, parse_chat_reply, parse_claude_reply
from evenhand.rubrics import load_rubric
from evenhand.study import Study
from harness.replies import Call, Reply, answer, completion, error, message
from tests.graders.bench import Bench
from tests.graders.grading import grade, rows

RUBRIC = load_rubric("refusal")


def ways_of(bench: Bench) -> list[str]:
    return [constraint_of(call.body) for call in bench.calls]


def attempts(study: Study) -> list[tuple[str, str, str, str]]:
    """Of each grade its unit, label, reply and how it was asked for."""
    return [
        (row["unit_id"], row["label"], row["raw"], row["provenance"]["asked_by"])
        for row in rows(study)
    ]


def held(call: Call) -> Reply:
    """An answer as a server gives it that holds models to a schema or a tool."""
    label, way = json.dumps({"label": call.choice}), constraint_of(call.body)
    make = message if call.path.endswith("/messages") else completion
    if way != "tool":
        return make(label if way == "json_schema" else call.choice)
    if make is message:
        block = {"type": "tool_use", "id": "t", "name": "rate", "input": {"label": call.choice}}
        return Reply(body=message("").body | {"content": [block], "stop_reason": "tool_use"})
    reply = completion(None, finish_reason="tool_calls")
    function = {"id": "t", "type": "function", "function": {"name": "rate", "arguments": label}}
    reply.body["choices"][0]["message"]["tool_calls"] = [function]
    return reply


def refusing(*refused: str) -> Any:
    complaints = {
        "json_schema": "response_format and output_config are not supported",
        "tool": "tool_choice is not supported",
    }

    def script(call: Call) -> Reply:
        way = constraint_of(call.body)
        return error(400, complaints[way]) if way in refused else held(call)

    return script


@pytest.mark.parametrize(
    ("refused", "way"),
    [((), "json_schema"), (("json_schema",), "tool"), (("json_schema", "tool"), "plain")],
)
def test_the_way_is_learnt_once_a_run_and_kept_with_every_grade(bench, refused, way, grader):
    bench.script = refusing(*refused)
    study = bench.study(pairs=1, rubrics=("hedging", "refusal"))
    assert grade(study, [grader], ["hedging"], method="label").scored == 2
    first = bench.calls[0]
    if not refused and grader == bench.openai:
        schema = first.body["response_format"]["json_schema"]
        assert schema["strict"] is True
        assert schema["schema"]["properties"]["label"]["enum"] == first.keys
        assert schema["schema"]["additionalProperties"] is False
    assert ways_of(bench) == [*refused, way, way]
    bench.calls.clear()
    assert grade(study, [grader], ["refusal"], method="label").scored == 2
    assert ways_of(bench) == [*refused, way, way]  # a run asks anew
    assert {asked_by for *_, asked_by in attempts(study)} == {way}


UNKNOWN = "Failed to deserialize the JSON body into the target type: response_format"
REFUSALS = {
    # https://github.com/ikawrakow/ik_llama.cpp/issues/778, and llama.cpp before its #9527
    "llama.cpp": error(500,
        'response_format type must be one of "text" or "json_object", but got: json_schema'),
    # https://github.com/ggml-org/llama.cpp/issues/23463, by llama_cpp/server/errors.py
    "llama-cpp-python": error(500,
        "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', "
        "'ChatCompletionRequestResponseFormat', 'type'), 'msg': \"Input should be 'text' or "
        "'json_object'\", 'input': 'json_schema'}"),
    # https://github.com/huggingface/text-generation-inference/issues/2899 and pull request 3276
    "TGI": error(422, f"{UNKNOWN}: missing field `value` at line 1 column 168"),
    # https://github.com/BerriAI/litellm/issues/7580, https://github.com/khoj-ai/khoj/issues/1336
    "DeepSeek, before": error(422,
        f"{UNKNOWN}: response_format.type `json_schema` is unavailable now at line 1"),
    "DeepSeek": error(400, "This response_format type is unavailable now"),
}  # fmt: skip


@pytest.mark.parametrize("who", REFUSALS)
def test_a_server_without_schemas_is_asked_by_a_tool(bench: Bench, who: str) -> None:
    refused = {"json_schema": REFUSALS[who]}
    bench.script = lambda call: refused.get(constraint_of(call.body)) or held(call)
    assert grade(bench.study(pairs=1), [bench.openai], method="label", concurrency=1).scored == 2
    assert ways_of(bench) == ["json_schema", "tool", "tool"]


def test_draws_are_held_to_the_keys_too(bench: Bench) -> None:
    calls = count()
    bench.script = lambda call: Reply(body=held(call).body | {"id": f"c-{next(calls)}"})
    assert grade(bench.study(pairs=1), [bench.openai], draws=3).scored == 6
    assert set(ways_of(bench)) == {"json_schema"}


@pytest.mark.parametrize("mended", [True, False])
def test_an_answer_that_cannot_be_read_is_asked_for_once_more_held_to_the_keys(bench, mended):
    def script(call: Call) -> Reply:
        if call.unit != "p0001|m|a":
            return answer(call)
        is_held = mended and constraint_of(call.body) != "plain"
        return held(call) if is_held else completion("2 or 3")

    bench.script = script
    study = bench.study(pairs=2)
    summary = grade(study, [bench.openai], concurrency=1)
    assert (summary.scored, summary.unscored) == ((4, 0) if mended else (3, 1))
    assert sorted(ways_of(bench)) == ["json_schema", *["plain"] * 4]
    first, second = (each for each in attempts(study) if each[0] == "p0001|m|a")
    assert (*first[2:], second[3]) == ("2 or 3", "plain", "json_schema")
    assert bool(second[1]) is mended
    assert grade(study, [bench.openai]).graders[0].planned == 0


@pytest.mark.parametrize(
    ("figures", "fault"),
    [
        ((0.6, 0.2, 0.1), "above zero"),  # probabilities, or logits
        ((-0.3, -0.5, -1.0), "more than one in all"),
        ((-3.0, -3.0, -3.0), "all the same"),
    ],
)
def test_figures_that_are_no_log_probabilities_refuse_the_server(bench, run, figures, fault):
    """Point 2: all were clipped to 1, and each reply became A at a third each."""
    top = [{"token": key, "logprob": at} for key, at in zip("312", figures, strict=True)]
    reply = completion("3", positions=[{"3": 1.0}])
    reply.body["choices"][0]["logprobs"]["content"] = [{**top[0], "top_logprobs": top}]
    bench.script, study = lambda call: reply, bench.study(pairs=2)
    done = run("grade", study.folder, "--grader", bench.openai)
    told = " ".join((done.stdout + done.stderr).split())
    assert done.returncode != 0
    assert f"figures that cannot be log-probabilities ({fault})" in told
    assert "--method label" in told
    assert len(bench.calls) == 1
    assert study.ratings().empty
    assert grade(study, [bench.openai], method="label").scored == 4


def test_an_odd_field_costs_no_label() -> None:
    for name, odd in (
        ("created", "yesterday"), ("usage", []), ("id", 17), ("model", ["m"]), ("usage", None),
        ("system_fingerprint", 4), ("service_tier", {}), ("created", None),
    ):  # fmt: skip
        reply = completion("2", positions=[{"2": 0.9, "3": 0.1}]).body
        chat = parse_chat_reply(reply | {name: odd}, RUBRIC)
        assert (chat.label, chat.prob_method) == ("2", "logprobs")
        named = {name: odd} if name in ("id", "model", "usage") else {}
        assert parse_claude_reply(message("2").body | named, RUBRIC).label == "2"


@pytest.mark.parametrize("odd", [None, "high", {}, [None], float("nan")])
def test_an_odd_log_probability_costs_no_label(odd: Any) -> None:
    reply = completion("2", positions=[{"2": 0.9, "3": 0.1}]).body
    place = reply["choices"][0]["logprobs"]["content"][0]
    place["top_logprobs"][1]["logprob"] = odd
    assert parse_chat_reply(reply, RUBRIC).label == "2"
    place["logprob"] = odd
    assert parse_chat_reply(reply, RUBRIC).label == "2"
    reply["choices"][0]["logprobs"] = odd
    assert parse_chat_reply(reply, RUBRIC).label == "2"
