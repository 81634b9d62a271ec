"""Graders behind LiteLLM's own proxy, which passes requests on to the protocol server."""

import json
import sys
from collections.abc import Iterator

import pytest

from evenhand.study.store.store import grade_totals
from harness.installing import installed, pip_command
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, completion, error
from tests.graders.clients.test_other_servers import running
from tests.graders.grading import grade

pytestmark = pytest.mark.load

VERSION = "1.106.2"


@pytest.fixture(scope="module")
def server() -> Iterator[ProtocolServer]:
    server = ProtocolServer()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def _anew(server: ProtocolServer) -> None:
    server.script = answer
    server.calls.clear()


@pytest.fixture(scope="module")
def litellm(server: ProtocolServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The proxy's address. It caches replies, and falls back on a model without probabilities."""
    folder = installed(f"litellm-{VERSION}", pip_command(f"litellm[proxy]=={VERSION}"))
    place, port = tmp_path_factory.mktemp("litellm"), free_port()
    models = {
        name: {"model": model, "api_base": server.root + end, "api_key": "none"}
        for name, model, end in (
            ("grader", "openai/gpt-4o", "/v1"),
            ("other", "openai/gpt-4o-mini", "/v1"),
            ("claude-opus-5", "anthropic/claude-opus-5", ""),
        )
    }
    cache = {"cache": True, "cache_params": {"type": "local"}}
    config = {
        "model_list": [{"model_name": n, "litellm_params": p} for n, p in models.items()],
        "litellm_settings": {**cache, "num_retries": 0, "fallbacks": [{"grader": ["other"]}]},
    }
    (place / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    command = [sys.executable, "-P", "-c", "from litellm import run_server; run_server()"]
    command += ["--config", str(place / "config.yaml"), "--port", str(port), "--host", "127.0.0.1"]
    environment = {
        "PYTHONPATH": str(folder),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # it asks nobody for prices
        "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",  # on loopback, for a minute
    }
    with running(command, port, place, environment):
        yield f"http://127.0.0.1:{port}"


def test_token_probabilities_and_the_gateways_own_cost(litellm, marked_study):
    study = marked_study(pairs=3)
    assert grade(study, [f"openai:grader@{litellm}/v1"]).scored == 6
    assert set(study.ratings()["prob_method"]) == {"logprobs"}
    cost = grade_totals(study.store)["cost_usd"].sum()
    assert cost == pytest.approx(6 * (900 * 2.5 + 10) / 1e6)


def test_draws_are_not_taken_out_of_its_cache(litellm, server, marked_study):
    study = marked_study(pairs=2)
    assert grade(study, [f"openai:grader@{litellm}/v1"], draws=5).scored == 20
    assert len(server.calls) == 20
    keys = {"cache"} & {name for call in server.calls for name in call.body}
    assert keys == set()  # what declines the cache stays at the gateway


def test_what_a_fallback_answers_has_no_probabilities_and_is_counted(litellm, server, marked_study):
    def script(call: Call) -> Reply:
        if call.body["model"] == "gpt-4o-mini":
            return completion(call.choice)
        return error(500) if call.unit == "p0002|m|a" else answer(call)

    server.script = script
    study = marked_study(pairs=3, name="fallback")
    grader = f"openai:grader@{litellm}/v1"
    (summary,) = grade(study, [grader], method="logprobs").graders
    assert (summary.scored, summary.without_probabilities) == (6, 1)
    server.script = answer
    assert grade(study, [grader], retry_unscored=True).graders[0].planned == 1


@pytest.mark.parametrize("method", ["", "verbalised"])
def test_claude_and_stated_distributions(litellm, marked_study, monkeypatch, method):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-key-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", litellm)
    graders = ["anthropic:claude-opus-5", f"openai:grader@{litellm}/v1"]
    study = marked_study(pairs=2)
    assert grade(study, graders, method=method).scored == 8


def test_its_cache_is_noticed_where_it_is_not_declined(litellm, server, marked_study, monkeypatch):
    monkeypatch.setattr("evenhand.graders.clients.LITELLM_DECLINED", {})
    monkeypatch.setattr("evenhand.graders.clients.DECLINED", {})
    study = marked_study(pairs=4, rubrics=("refusal",))
    (summary,) = grade(study, [f"openai:grader@{litellm}/v1"], draws=6, concurrency=2).graders
    assert summary.scored == len(server.calls) < 48
    assert summary.unscored == {"repeated_reply": 48 - summary.scored}
