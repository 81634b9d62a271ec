"""A marked key, sent back by the server in every way a reply can be: none of it may be kept."""

import base64
import json
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.graders.providers import Scrubber, key_from_environment, key_variable
from harness.replies import Call, Reply, completion, error, message
from harness.studies import MarkedStudy, with_settings
from tests.graders.bench import Bench
from tests.graders.grading import grade

KEY = "sk-ant-MARKED0KEY-abcdefgh-0123456789"
MARK = "MARKED0KEY"
ENCODED = base64.b64encode(KEY.encode()).decode()[:24]


def _echo(call: Call) -> str:
    """What a careless server says: the header, the key, and the key encoded."""
    key = call.headers["authorization"].removeprefix("Bearer ")
    return (
        f"bad header {call.headers['authorization']!r} ({key}, {base64.b64encode(key.encode())!r})"
        f" {call.headers.get('x-team')}"
    )


def _reply(call: Call, text: str) -> Reply:
    return message(text) if call.path.endswith("/messages") else completion(text)


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
    "no label": lambda call: _reply(call, _echo(call)),
    "a label": lambda call: _reply(call, f"Answer: 1\n{_echo(call)}"),
    "starred": lambda call: error(401, f"Incorrect API key provided: sk-ant-{MARK}***6789."),
    "in headers": lambda call: Reply(200, _reply(call, "1").body,
        {"request-id": call.headers["authorization"],
        "x-request-id": call.headers["authorization"]}),
}  # fmt: skip


LAB = """
[providers.lab]
base_url = "{root}/v1"
key_env = "EVENHAND_LAB_SECRET"

[providers.lab.headers]
x-team = "${{EVENHAND_TEAM_SECRET}}"
"""
TEAM = "team-token-MARKED0KEY-0123456789"


@pytest.fixture(params=["anthropic", "openai", "lab"])
def leaks(request, bench, monkeypatch, caplog, capfd):
    """Grades a study with the marked key; gives the forms of it that were kept, logged or shown."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv(key_variable(bench.root), KEY)
    monkeypatch.setenv("EVENHAND_LAB_SECRET", KEY)
    monkeypatch.setenv("EVENHAND_TEAM_SECRET", TEAM)
    caplog.set_level(logging.DEBUG)
    grader = {"anthropic": bench.claude, "openai": bench.openai, "lab": "lab:m"}[request.param]

    def run(**options: bool) -> list[str]:
        study = with_settings(bench.study(pairs=2), LAB.format(root=bench.root))
        summary = grade(study, [grader], **options)  # type: ignore[arg-type]
        study.close()
        written = _files(study.folder) + repr(summary) + "".join(summary.stopped)
        told = caplog.text + "".join(capfd.readouterr())
        return [form for form in (MARK, ENCODED) if form in written + told]

    return run


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_the_key_is_nowhere(bench: Bench, leaks: Callable[..., list[str]], way: str) -> None:
    bench.script = WAYS[way]
    assert leaks() == []
    assert any(MARK in call.headers["authorization"] for call in bench.calls)


BATCH_WAYS = {
    "every line failed": lambda server: setattr(server.batches, "fate", lambda call: "errored"),
    "every line rejected": lambda server: setattr(server.batches, "fate", lambda call: "invalid"),
    "an answer": lambda server: setattr(server, "script",
        lambda call: _reply(call, f"Answer: 1\n{_echo(call)}")),
    "refused": lambda server: setattr(server.batches, "refuse", f"not with {KEY}"),
    "not found": lambda server: server.batches.get_replies.extend([error(404,
        f"nothing for {KEY}"), error(404, f"nothing for {KEY}")]),
    "no batches": lambda server: server.batches.get_replies.extend([Reply(200,
        f"<html>{KEY}</html>"), *[Reply(502, f"<html>{KEY}</html>")] * 9]),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("way", BATCH_WAYS)
def test_the_key_is_nowhere_after_a_batch(bench, leaks, way):
    BATCH_WAYS[way](bench)
    assert leaks(batch=True) == []
    assert any(MARK in headers["authorization"] for headers in bench.batches.headers)


def _files(folder: Path) -> str:
    return "".join(p.read_bytes().decode("latin-1") for p in folder.rglob("*") if p.is_file())


def test_the_search_would_find_a_key(marked_study: MarkedStudy) -> None:
    study = marked_study(pairs=1, response=lambda pair, side: MARK)
    study.close()
    assert MARK in _files(study.folder)


def test_a_key_is_not_taken_for_a_model(marked_study: MarkedStudy, monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "token-MARKED0KEY")
    with pytest.raises(InputError) as caught:
        grade(marked_study(), ["openai:token-MARKED0KEY"])
    assert MARK not in str(caught.value)


def test_a_key_with_a_line_break_is_cut_and_a_broken_one_named_but_not_shown(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    assert key_from_environment("OPENAI_API_KEY") == KEY
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    assert key_from_environment("OPENAI_API_KEY") is None
    monkeypatch.setenv("OPENAI_API_KEY", f"{MARK} ü")
    with pytest.raises(InputError, match="OPENAI_API_KEY") as caught:
        key_from_environment("OPENAI_API_KEY")
    assert MARK not in str(caught.value)


def test_a_short_placeholder_does_not_tear_holes_into_words() -> None:
    assert Scrubber(["none"]).text("none of the options") == "none of the options"


def test_custom_headers_are_secrets_too(monkeypatch) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"x-gateway: {MARK}-1\nx-other: v")
    tree = {"a": [f"see {MARK}-1", 1, None], f"{MARK}-1": {"b": True}}
    assert MARK not in json.dumps(Scrubber.from_environment().tree(tree))
