"""The real SDKs against servers that nobody here wrote: aimock from npm, mock-ai-api and LiteLLM's
proxy from PyPI, and llama.cpp's own server, which answers with a model of random weights.
"""

import json
import math
import os
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import playwright
import pytest

from evenhand.rubrics import Rubric
from evenhand.study import Study
from evenhand.study.prompts.units import Question
from harness.installing import installed, npm_command, pip_command
from harness.ports import free_port
from harness.protocol_server import ProtocolServer
from harness.replies import Call, Reply, answer, completion, error
from harness.served import holds
from harness.studies import MarkedStudy, response_rubric
from tests.conftest import ROOT
from tests.graders.grading import grade, rows


@contextmanager
def running(command, port, cwd, environment=None):
    log = cwd / "server.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=cwd, stdout=file, stderr=file, env=os.environ | (environment or {})
        )

    def is_open() -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    try:
        assert holds(lambda: process.poll() is not None or is_open(), 30)
        assert process.poll() is None, log.read_text("utf-8", "replace")
        yield
    finally:
        process.terminate()
        process.wait(timeout=10)


@pytest.mark.slow
def test_chat_messages_and_batches_of_aimock(tmp_path, marked_study, monkeypatch) -> None:
    folder, port = installed("aimock-1.43.0", npm_command("@copilotkit/aimock@1.43.0")), free_port()
    # It wants a newer Node than some systems have; Playwright brings its own.
    node = Path(playwright.__file__).parent / "driver" / "node"
    answer = {"match": {"userMessage": "[["}, "response": {"content": "2"}}
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "all.json").write_text(json.dumps({"fixtures": [answer]}))
    command = [str(node), str(folder / "node_modules" / ".bin" / "llmock"), "-p", str(port)]
    command += ["-h", "127.0.0.1", "-f", str(tmp_path / "fixtures")]
    for name in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{name}_API_KEY", "key-for-loopback")
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    with running(command, port, tmp_path):
        study = marked_study(pairs=5)
        summary = grade(study, [f"openai:gpt-4o@{address}/v1", "anthropic:claude-opus-5"])
        assert (summary.scored, summary.unscored, summary.stopped) == (20, 0, ())
        assert set(study.ratings()["label"]) == {"2"}
        study = marked_study(pairs=5, name="batch")
        batch = grade(study, [f"openai:gpt-4o@{address}/v1"], batch=True, wait_scale=0.005)
    # Its batches answer everything with the same words, which name no option; live it gives labels
    # without probabilities, so that two are asked live.
    assert (batch.scored, batch.graders[0].unscored) == (2, {"unparseable": 8})
    assert batch.stopped == ()


@pytest.mark.slow
def test_claude_batches(tmp_path, marked_study, monkeypatch):
    port, package = free_port(), installed("mock-ai-api-0.1.1", pip_command("mock-ai-api==0.1.1"))
    address = f"http://127.0.0.1:{port}"
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-for-loopback")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    # Its own command leaves the servers that it starts behind when it ends.
    command = [sys.executable, "-P", "-m", "uvicorn", "app.anthropic_app:app"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    done = threading.Event()

    def fetch_results() -> None:
        """This server ends a batch only when somebody fetches its results."""
        url = f"http://127.0.0.1:{port}/v1/messages/batches"
        while not done.wait(0.1):
            with suppress(OSError):
                with urllib.request.urlopen(url) as reply:
                    batches = json.load(reply)["data"]
                for batch in batches:
                    urllib.request.urlopen(f"{url}/{batch['id']}/results").close()  # noqa: S310

    with running(command, port, tmp_path, {"PYTHONPATH": str(package)}):
        threading.Thread(target=fetch_results, daemon=True).start()
        study = marked_study(pairs=3)
        summary = grade(study, ["anthropic:claude-opus-5"], batch=True, wait_scale=0.02)
        done.set()
    # What it says is no label; that every reply of the batch is kept is what counts.
    assert (summary.stopped, len(study.ratings())) == ((), 6)
    assert "request_failed" not in set(study.ratings()["unscored_reason"])


VERSION = "1.106.2"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, ProtocolServer]]:
    """LiteLLM's own proxy and the server to which it passes requests on. It caches replies, and
    falls back on a model without probabilities.
    """
    server = ProtocolServer()
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
        yield f"http://127.0.0.1:{port}", server
    server.close()


@pytest.mark.load
def test_a_gateways_probabilities_cost_draws_and_fallback(gateway, marked_study, monkeypatch):
    def falling(call: Call) -> Reply:
        if call.body["model"] == "gpt-4o-mini":
            return completion(call.choice)
        return error(500) if call.unit == "p0002|m|a" else answer(call)

    address, server = gateway
    grader, server.script = f"openai:grader@{address}/v1", answer
    study = marked_study(pairs=3)
    assert grade(study, [grader]).scored == 6
    assert set(study.ratings()["prob_method"]) == {"logprobs"}
    assert study.grade_totals()["cost_usd"].sum() == pytest.approx(6 * (900 * 2.5 + 10) / 1e6)
    server.calls.clear()
    assert grade(marked_study(pairs=2, name="draws"), [grader], draws=5).scored == 20
    assert len(server.calls) == 20, "none is taken out of its cache"
    # What declines the cache stays at the gateway.
    assert not [call for call in server.calls if "cache" in call.body]
    # What a fallback answers has no probabilities and is counted.
    server.script, study = falling, marked_study(pairs=3, name="fallback")
    (summary,) = grade(study, [grader], method="logprobs").graders
    assert (summary.scored, summary.without_probabilities) == (6, 1)
    server.script = answer
    assert grade(study, [grader], retry_unscored=True).graders[0].planned == 1
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-key-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", address)
    for method in ("", "verbalised"):
        study = marked_study(pairs=2, name=f"claude{method}")
        assert grade(study, ["anthropic:claude-opus-5", grader], method=method).scored == 8
    # Its cache is noticed where it is not declined.
    for declined in ("LITELLM_NO_CACHE", "NO_CACHE_HEADERS"):
        monkeypatch.setattr(f"evenhand.graders.clients.{declined}", {})
    server.calls.clear()
    study = marked_study(pairs=4, rubrics=("refusal",), name="cached")
    (summary,) = grade(study, [grader], draws=6, concurrency=2).graders
    assert summary.scored == len(server.calls) < 48
    assert summary.unscored == {"repeated_reply": 48 - summary.scored}


CLOSE = 0.005
"""Of the tokens at a place only the 20 likeliest are listed."""
SERVER, GGUF = "xllamacpp==2026.10.11549", "gguf==0.19.0"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The server's address."""
    folder = installed("xllamacpp-2026.10.11549", pip_command("--no-deps", SERVER, GGUF))
    place, port = tmp_path_factory.mktemp("llama"), free_port()
    script = ROOT / "harness" / "llama_server.py"
    command = [sys.executable, "-P", str(script), str(place / "random.gguf"), str(port)]
    with running(command, port, place, {"PYTHONPATH": str(folder)}):
        yield f"http://127.0.0.1:{port}"


def posted(address: str, **body: Any) -> Any:
    request = urllib.request.Request(  # noqa: S310
        address, json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310
        return json.load(reply)


class Truth:
    """What the model does with a study's prompts, by the server's native API, token by token."""

    def __init__(self, llama: str, study: Study, rubric: Rubric) -> None:
        self._llama, self._study, self._rubric = llama, study, rubric

    def after(self, unit: str, begun: str = "") -> dict[str, float]:
        """The probability of every token of the vocabulary after a unit's prompt and what the
        answer has begun with.
        """
        (values,) = self._study.values_of([Question(unit, self._rubric, "")])
        prompt = self._rubric.for_prompt(values)
        said = (("system", prompt.system), ("user", prompt.user))
        turns = [{"role": role, "content": text} for role, text in said]
        shown = posted(f"{self._llama}/apply-template", messages=turns)["prompt"]
        asked = {"prompt": shown + begun, "n_predict": 1, "n_probs": 1_000, "temperature": 1}
        (place,) = posted(f"{self._llama}/completion", **asked)["completion_probabilities"]
        found: dict[str, float] = defaultdict(float)
        for each in place["top_logprobs"]:  # a character is a token, and so is its byte
            found[each["token"]] += math.exp(each["logprob"])
        assert math.fsum(found.values()) == pytest.approx(1, abs=1e-3)
        return found


def words(after_key: Mapping[str, float]) -> float:
    """The probability that a key goes on: 10 and 1st are no 1."""
    return math.fsum(p for token, p in after_key.items() if token.isascii() and token.isalnum())


@pytest.mark.load
def test_probabilities_are_those_of_the_model(llama: str, marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=6)
    summary = grade(study, [f"openai:random@{llama}/v1"])
    assert (summary.scored, summary.stopped) == (12, ())
    truth = Truth(llama, study, study.rubrics["hedging"])
    for row in rows(study):
        assert row["prob_method"] == "logprobs"
        known = truth.after(row["unit_id"])
        said = row["provenance"]["text_label"]
        known[said] *= 1 - words(truth.after(row["unit_id"], said))
        total = math.fsum(known[key] for key in "12345")
        assert row["provenance"]["in_option_mass"] == pytest.approx(total, abs=CLOSE)
        for key, p in row["probabilities"].items():
            assert p == pytest.approx(known[key] / total, abs=CLOSE)


@pytest.mark.load
def test_one_and_ten_are_told_apart_or_not_claimed(llama: str, marked_study: MarkedStudy) -> None:
    """One key begins another, and this tokenizer splits digits."""
    ten = response_rubric({str(n): f"{n} points" for n in range(1, 11)}, level="ordinal")
    study = marked_study(pairs=40, rubrics=(ten,))
    summary = grade(study, [f"openai:random@{llama}/v1"])
    assert (summary.scored, summary.stopped) == (80, ())
    truth, seen = Truth(llama, study, ten), set()
    for row in rows(study):
        said = row["provenance"]["text_label"]
        if said not in ("1", "10"):  # what its 1 would have become is not known
            assert row["provenance"]["no_probabilities"] == "key_begins_another"
            continue
        first, second = truth.after(row["unit_id"]), truth.after(row["unit_id"], "1")
        known = {key: first[key] for key in "23456789"}
        known |= {"1": first["1"] * (1 - words(second)), "10": first["1"] * second["0"]}
        total = math.fsum(known.values())
        for key, p in row["probabilities"].items():
            assert p == pytest.approx(known[key] / total, abs=CLOSE)
        seen.add(said)
    assert seen == {"1", "10"}


@pytest.mark.load
@pytest.mark.parametrize("draws", [1, 4])
def test_labels_and_draws_are_held_to_a_schema(llama, marked_study, draws):
    study = marked_study(pairs=5)
    asking = {"draws": draws} if draws > 1 else {"method": "label"}
    summary = grade(study, [f"openai:random@{llama}/v1"], **asking)
    assert (summary.scored, summary.unscored, summary.stopped) == (10 * draws, 0, ())
    assert {row["provenance"]["asked_by"] for row in rows(study)} == {"json_schema"}
