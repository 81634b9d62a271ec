"""Replies as providers' APIs give them: shown as their text, never with the model or its usage."""

from __future__ import annotations

import json

import pytest

from evenhand.exchange.readers.texts import reply_text

U = {"input_tokens": 1}
FORMS: list[object] = [
    {
        "candidates": [
            {
                "content": {
                    "parts": [{"text": "plan", "thought": True}, {"text": "Hi."}],
                    "role": "model",
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1},
        "modelVersion": "gemini-2.5-pro",
        "responseId": "x",
    },
    {"candidates": [{"content": {"parts": [{"text": "Hi."}]}}], "modelVersion": "g"},
    [{"candidates": [{"content": {"parts": [{"text": "Hi."}]}}], "modelVersion": "g"}],
    {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "hm"}}},
                    {"text": "Hi."},
                ],
            }
        },
        "stopReason": "end_turn",
        "usage": U,
        "metrics": {"latencyMs": 1},
    },
    {
        "id": "c",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Hi."}]},
        "finish_reason": "COMPLETE",
        "usage": U,
    },
    {
        "text": "Hi.",
        "generation_id": "g",
        "chat_history": [{"role": "USER", "message": "q"}],
        "finish_reason": "COMPLETE",
        "meta": {"api_version": {}},
    },
    {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-5",
        "output": [
            {"type": "reasoning", "summary": []},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hi.", "annotations": []}],
            },
        ],
        "usage": U,
    },
    {
        "model": "gpt-5",
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Hi."}],
            }
        ],
    },
    {
        "model": "llama3",
        "created_at": "2025",
        "message": {"role": "assistant", "content": "Hi."},
        "done": True,
        "total_duration": 1,
    },
    {
        "model": "llama3",
        "created_at": "2025",
        "response": "Hi.",
        "done": True,
        "context": [1, 2],
        "eval_count": 3,
    },
    {"generated_text": "Hi.", "details": {"finish_reason": "length", "tokens": []}},
    [{"generated_text": "Hi.", "details": {"finish_reason": "length"}}],
    {
        "results": [{"outputText": "Hi.", "tokenCount": 2, "completionReason": "FINISH"}],
        "inputTextTokenCount": 3,
    },
    {
        "generation": "Hi.",
        "prompt_token_count": 1,
        "generation_token_count": 2,
        "stop_reason": "stop",
    },
    {"outputs": [{"text": "Hi.", "stop_reason": "stop"}]},
    {"completion": "Hi.", "stop_reason": "stop_sequence", "model": "claude-2", "stop": "x"},
    {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hi."}],
        "usage": U,
        "stop_reason": "end_turn",
    },
    {
        "role": "assistant",
        "model": "claude",
        "content": [{"type": "text", "text": "Hi."}],
        "usage": U,
    },
    {
        "id": "x",
        "object": "chat.completion",
        "model": "gpt-4o",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hi."},
                "finish_reason": "stop",
            }
        ],
        "usage": U,
    },
    {"object": "text_completion", "model": "m", "choices": [{"text": "Hi.", "index": 0}]},
    {"request_id": "r", "output": {"text": "Hi.", "finish_reason": "stop"}, "usage": U},
    {
        "request_id": "r",
        "output": {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]},
        "usage": U,
    },
    {"generations": [{"id": "a", "text": "Hi."}], "meta": {}},
    {"text": "Hi.", "model": "gpt-4o"},
]
OTHERS = [
    "plain", '{"name": "Ann", "age": 3}', '{"model": "T", "wheels": 4}', '{"text": "x"}',
    '{"answer": "yes", "why": "x"}', '{"type": "refund", "text": "T"}', "[1, 2]",
    '{"title": "A", "message": {"role": "user", "content": "b"}}', '{"outputs": [{"a": 1}]}',
    '{"candidates": [{"name": "Ann", "score": 3}]}', '{"results": [true, false]}',
    '{"question": "Capital?", "choices": [{"text": "Paris"}, {"text": "Lyon"}]}',
    '{"model": "Model 3", "text": "A red car", "provider": "Tesla"}',
    '[{"provider": "Vodafone", "result": "approved"}]', '{"choices": [{"label": "A"}], "q": "?"}',
    '{"results": [{"stop_reason": "x", "station": "Main St"}]}',
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: json.dumps(form)[:40])
def test_the_text_of_a_reply_is_what_is_shown(form: object) -> None:
    assert reply_text(json.dumps(form)) == "Hi."


def test_other_json_stays_as_it_is() -> None:
    assert [reply_text(cell) for cell in OTHERS] == OTHERS
