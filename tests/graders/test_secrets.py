"""A marked key, sent back by the server in every way a reply can be: none of it may be kept; and what
servers say when they refuse, as it was recorded, means what the table says it does.
"""

import base64
import logging
import re
from collections.abc import Callable

import pytest

from evenhand.graders.providers import Scrubber, key_from_environment, key_variable
from evenhand.graders.replies import Refusal, refusal_of, refusals
from harness.replies import Call, Reply, error
from harness.studies import with_settings
from tests.cases import refused
from tests.graders.bench import Bench, replied
from tests.graders.grading import grade

KEY = "sk-ant-MARKED0KEY-abcdefgh-0123456789"
MARK = "MARKED0KEY"
TEAM = f"team-token-{MARK}-0123456789"
ENCODED = base64.b64encode(KEY.encode()).decode()[:24]
LAB = """
[providers.lab]
base_url = "{root}/v1"
key_env = "EVENHAND_LAB_SECRET"

[providers.lab.headers]
x-team = "${{EVENHAND_TEAM_SECRET}}"
"""


def _echo(call: Call) -> str:
    """What a careless server says: the header, the key, and the key encoded."""
    sent = call.headers["authorization"]
    key = sent.removeprefix("Bearer ")
    encoded = base64.b64encode(key.encode())
    return f"bad header {sent!r} ({key}, {encoded!r}) {call.headers.get('x-team')}"


WAYS = {
    "rejected key": lambda call: error(401, _echo(call)),
    "unknown model": lambda call: error(404, _echo(call)),
    "rejected request": lambda call: error(400, _echo(call)),
    "server error": lambda call: error(500, _echo(call)),
    "too busy": lambda call: error(429, _echo(call)),
    "error page": lambda call: Reply(502, f"<html>{_echo(call)}</html>"),
    "half a reply": lambda call: Reply(200, '{"id": "' + _echo(call)),
    "no HTTP": lambda call: Reply(raw=f"{_echo(call)}\r\n\r\n".encode()),
    "error as reply": lambda call: Reply(200, {"error": {"message": _echo(call)}}),
    "another shape": lambda call: Reply(200,
        {"content": _echo(call), call.headers["authorization"]: 1}),
    "long reply": lambda call: Reply(200, {"x": "y" * 19_980 + call.headers["authorization"]}),
    "no label": lambda call: replied(call, _echo(call)),
    "a label": lambda call: replied(call, f"Answer: 1\n{_echo(call)}"),
    "starred": lambda call: error(401, f"Incorrect API key provided: sk-ant-{MARK}***6789."),
    "in headers": lambda call: Reply(200, replied(call, "1").body,
        {"request-id": call.headers["authorization"],
        "x-request-id": call.headers["authorization"]}),
}  # fmt: skip


@pytest.fixture(params=["anthropic", "openai", "lab"])
def leaks(request, bench, monkeypatch, caplog, capfd):
    """Grades a study with the marked key; gives the forms of it that were kept, logged or shown."""
    for name in ("ANTHROPIC_API_KEY", key_variable(bench.root), "EVENHAND_LAB_SECRET"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("EVENHAND_TEAM_SECRET", TEAM)
    caplog.set_level(logging.DEBUG)
    grader = {"anthropic": bench.claude, "openai": bench.openai, "lab": "lab:m"}[request.param]

    def run(**options: bool) -> list[str]:
        study = with_settings(bench.study(pairs=2), LAB.format(root=bench.root))
        summary = grade(study, [grader], **options)
        study.close()
        files = [path.read_bytes() for path in study.folder.rglob("*") if path.is_file()]
        written = b"".join(files).decode("latin-1") + repr(summary) + "".join(summary.stopped)
        assert "A plain answer." in written, "a key would be found so too"
        told = caplog.text + "".join(capfd.readouterr())
        return [form for form in (MARK, ENCODED) if form in written + told]

    return run


BATCH_WAYS = {
    "every line failed": {"fate": lambda call: "errored"},
    "every line rejected": {"fate": lambda call: "invalid"},
    "an answer": {},
    "refused": {"refuse": f"not with {KEY}"},
    "not found": {"get_replies": [error(404, f"nothing for {KEY}")] * 2},
    "no batches": {"get_replies": [Reply(status, f"<html>{KEY}</html>")
        for status in (200, *[502] * 9)]},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", [*WAYS, *BATCH_WAYS])
def test_the_key_is_nowhere(bench: Bench, leaks: Callable[..., list[str]], way: str) -> None:
    bench.script = WAYS.get(way, WAYS["a label"])
    for name, value in BATCH_WAYS.get(way, {}).items():
        setattr(bench.batches, name, [*value] if isinstance(value, list) else value)
    assert leaks(batch=way in BATCH_WAYS) == []
    sent = bench.batches.headers if way in BATCH_WAYS else [call.headers for call in bench.calls]
    assert any(MARK in headers["authorization"] for headers in sent)


def test_a_key_with_a_line_break_is_cut_and_a_broken_one_named_but_not_shown(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    assert key_from_environment("OPENAI_API_KEY") == KEY
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert key_from_environment("OPENAI_API_KEY") is None
    monkeypatch.setenv("OPENAI_API_KEY", f"{MARK} ü")
    assert MARK not in refused("OPENAI_API_KEY", key_from_environment, "OPENAI_API_KEY")


def test_headers_are_secrets_too_and_no_key_is_taken_for_a_model(marked_study, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"x-gateway: {MARK}-1\nx-team: research")
    tree = {"a": [f"see {MARK}-1", 1, "research"], f"{MARK}-1": {"b": True}}
    clean = {"a": ["see [removed]", 1, "research"], "[removed]": {"b": True}}
    assert Scrubber.from_environment().tree(tree) == clean
    assert Scrubber.from_environment().message("no research") == "no [removed]"
    scrubber, signed = Scrubber([]), f"AWS4-HMAC-SHA256 Credential={MARK}-2"
    scrubber.learn_from({"authorization": f"Bearer {MARK}-1", "x-api-key": signed, "x": "harmless"})
    assert scrubber.text(f"{MARK}-1, harmless, {signed}") == f"[removed], harmless, {signed}"
    monkeypatch.setenv("OPENAI_API_KEY", f"token-{MARK}")
    assert MARK not in refused("", grade, marked_study(), [f"openai:token-{MARK}"])
    # A short placeholder does not tear holes into words.
    assert Scrubber(["none"]).text("none of the options") == "none of the options"


# ruff: noqa: E501 - servers' sentences stand as they came


MEANS = {"passing", "credit", "key", "permission", "model", "path", "redirect", "filter", "unit"}


def test_every_row_is_whole() -> None:
    for row in refusals():
        assert row.means in MEANS
        assert row.source.startswith("https://")
        assert row.status or row.words
        re.compile(row.words)
        assert row.recorded or not row.words


@pytest.mark.parametrize("row", [row for row in refusals() if row.words], ids=lambda row: row.who)
def test_a_recorded_refusal_is_known_by_its_own_row(row: Refusal) -> None:
    for status in [each for each in row.status if isinstance(each, int)] or [400, 403, 422, 429]:
        assert refusal_of(status, row.recorded) is row


# Passing refusals as providers write them, none of which stands in the table.
PASSING = [
    (429, "rate_limit_error This request would exceed your organization's rate limit of 50,000 input tokens per minute"),
    (429, "rate_limit_exceeded Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try again in 1s."),
    (429, "requests rate_limit_exceeded Rate limit reached for gpt-4o on requests per day (RPD): Limit 200, Used 200. Please try again in 7m12s."),
    (429, "429 Requests to the ChatCompletions_Create Operation have exceeded call rate limit of your current pricing tier. Please retry after 6 seconds."),
    (429, "Rate limit exceeded: free-models-per-min."),
    (429, "Provider returned error"),
    (529, "overloaded_error Overloaded"),
    (503, "The model is overloaded. Please try again later."),
    (503, "Model meta-llama/Llama-3 is currently loading"),
    (500, "api_error Internal server error"),
    (408, "Request timed out"),
    (524, "error code: 524"),
]  # fmt: skip


UNITS = [
    (400, "invalid_request_error messages: text content blocks must be non-empty"),
    (400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
    (400, "context_length_exceeded This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
    (422, "Input should be less than or equal to 5"),
    (413, "request_too_large Request exceeds the maximum size"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "said", "means"),
    [*((*each, "passing") for each in PASSING), *((*each, "unit") for each in UNITS)],
)
def test_what_passes_is_asked_again_and_a_requests_fault_is_not_the_accounts(status, said, means):
    assert refusal_of(status, said).means == means
