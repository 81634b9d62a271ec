"""Chat Completions as servers take and give them: requests, what a refusal teaches, and replies.

Which parameters a server takes differs between models and servers, and none says so beforehand. A
request therefore has a shape that a rejection can teach: a parameter is renamed or dropped, and
what was learnt holds for all later requests of this grader.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ValidationError

from evenhand.graders.clients.grader import TOOL, WAYS, asked, refuses_constraint
from evenhand.graders.failures import FILTERED
from evenhand.graders.options import GraderSettings, probabilities_need_no_effort
from evenhand.graders.replies import Outcome, Said, outcome_of
from evenhand.graders.spec import GraderSpec
from evenhand.graders.token_probabilities import OrNone, Position
from evenhand.rubrics import PromptText, Rubric

MAX_TOKENS = 4_096  # one token is wanted, but thinking counts too
LONG_ANSWER = 16_000
_USUAL = GraderSettings("logprobs")
_ABOUT_N = re.compile(r"[`'\"]n[`'\"]")
_TOO_MUCH = re.compile(r"too (?:large|many|long|high)|at most|less than|maximum|exceed|<=|between")
_FILTERED = (  # OpenAI's and Azure's word, then Gemini's and Bedrock's
    "content_filter",
    *("safety", "prohibited_content", "recitation", "blocklist", "spii"),
    "guardrail_intervened",
)
_KEPT = {"model", "id", "created", "system_fingerprint", "service_tier", "usage"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters that a request carries besides the model and the messages.

    Each field is what is left to try, the present choice first; empty means the parameter is left
    out. Temperature 1 keeps reported probabilities the model's own, even on servers that report
    them after temperature. Some models give probabilities only with effort "none".
    """

    limit_names: tuple[str, ...] = ("max_completion_tokens", "max_tokens")
    top_logprobs: tuple[int, ...] = (20, 5)
    efforts: tuple[str, ...] = ("", "none")
    temperatures: tuple[int, ...] = (1,)
    formats: tuple[str, ...] = ()
    draws: tuple[int, ...] = (128, 8)

    @property
    def at_once(self) -> int:
        """The most draws that one request may ask for."""
        return self.draws[0] if self.draws else 1

    @classmethod
    def for_server(cls) -> Shape:
        """Return the first shape to try on a compatible server: the older name of the token limit
        first, and no reasoning effort.
        """
        return cls(limit_names=("max_tokens", "max_completion_tokens"), efforts=())

    def for_method(self, method: str, ways: tuple[str, ...] = WAYS) -> Shape:
        """Return the shape for a method: with token probabilities for "logprobs"; else without them
        and, except for "text", with the answer constrained to the keys in the first of `ways` that
        the server takes.
        """
        if method == "logprobs":
            return self
        formats = {"verbalised": ways[:1], "text": ()}.get(method, ways)
        return replace(self, **HARD_LABEL, formats=formats)


def _content(prompt: PromptText) -> str | list[dict[str, Any]]:
    """Return the unit's part of the prompt, after its images and the tags that they belong to."""
    parts: list[dict[str, Any]] = []
    for name, image in prompt.images:
        parts.append({"type": "text", "text": f"<{name}>:"})
        parts.append({"type": "image_url", "image_url": {"url": image.uri}})
    return [*parts, {"type": "text", "text": prompt.user}] if parts else prompt.user


HARD_LABEL = {"top_logprobs": (), "efforts": (), "temperatures": ()}


def build_request(
    model: str, prompt: PromptText, shape: Shape, settings: GraderSettings = _USUAL
) -> dict[str, Any]:
    """Return the arguments of `chat.completions.create`."""
    method = settings.method
    prompt, schema = asked(prompt, settings)
    turns = [{"role": "system", "content": prompt.system}] if prompt.system else []
    request: dict[str, Any] = {
        "model": model,
        "messages": [*turns, {"role": "user", "content": _content(prompt)}],
    }
    if shape.limit_names:
        usual = LONG_ANSWER if method == "text" else MAX_TOKENS
        request[shape.limit_names[0]] = settings.max_tokens or usual
    if shape.top_logprobs:
        request |= {"logprobs": True, "top_logprobs": shape.top_logprobs[0]}
    if settings.temperature:
        request["temperature"] = float(settings.temperature)
    elif shape.temperatures:
        request["temperature"] = shape.temperatures[0]
    if settings.seed:
        request["seed"] = int(settings.seed)
    if effort := settings.effort or next(iter(shape.efforts), ""):
        request["reasoning_effort"] = effort
    if settings.service_tier:
        request["service_tier"] = settings.service_tier
    if shape.formats and not prompt.verbatim:
        request |= _held_to(schema, shape.formats[0])
    return request


def _held_to(schema: dict[str, Any], way: str) -> dict[str, Any]:
    if way == "tool":
        function = {"name": TOOL, "strict": True, "parameters": schema}
        chosen = {"type": "function", "function": {"name": TOOL}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": chosen}
    named = {"name": "options", "strict": True, "schema": schema}
    return {"response_format": {"type": way, "json_schema": named}}


def learn(shape: Shape, complaint: str) -> Shape | None:
    """Return the shape to try after a server's complaint, or None if it is not about the shape.

    >>> learn(Shape(), "Unsupported parameter: 'max_completion_tokens'").limit_names
    ('max_tokens',)
    >>> learn(Shape(), "Invalid 'top_logprobs': must be less than or equal to 5").top_logprobs
    (5,)
    >>> refused = learn(Shape(), "'logprobs' is not supported with this model")
    >>> refused.efforts, learn(refused, "'reasoning_effort' does not support 'none'").top_logprobs
    (('none',), ())
    """
    complaint = complaint.casefold()
    too_much = bool(_TOO_MUCH.search(complaint))
    if shape.draws and _ABOUT_N.search(complaint):
        return replace(shape, draws=shape.draws[1:] if too_much else ())
    if shape.top_logprobs and "top_logprobs" in complaint and too_much:
        rest = shape.top_logprobs[1:]
        return replace(shape, top_logprobs=rest) if rest else replace(shape, **HARD_LABEL)
    if shape.top_logprobs and re.search(r"log_?prob", complaint):
        rest_efforts = shape.efforts[1:]
        return (
            replace(shape, efforts=rest_efforts) if rest_efforts else replace(shape, **HARD_LABEL)
        )
    if shape.efforts and re.search(r"reasoning|effort", complaint):
        return replace(shape, **HARD_LABEL)
    if shape.formats and refuses_constraint(complaint):
        return replace(shape, formats=shape.formats[1:])
    if shape.temperatures and "temperature" in complaint:
        return replace(shape, temperatures=shape.temperatures[1:])
    if shape.limit_names and re.search(r"max_(?:completion_)?tokens|context length", complaint):
        # A limit that does not fit together with the prompt is left to the server, not renamed.
        return replace(shape, limit_names=() if too_much else shape.limit_names[1:])
    return None


def first_shape(
    spec: GraderSpec,
    settings: GraderSettings,
    ways: tuple[str, ...] = WAYS,
    *,
    no_reasoning: bool = False,
) -> Shape:
    """Return the shape of a grader's first request. Reasoning is switched off at once with
    `no_reasoning` and for models that are known by name to give probabilities only without it,
    behind a gateway too; for others only after they have given no probabilities.
    """
    shape = Shape() if is_openai(spec) else Shape.for_server()
    off = no_reasoning or probabilities_need_no_effort(spec)
    efforts = ("none",) if off else Shape().efforts
    if settings.effort:
        efforts = ()  # the user's choice holds, with or without probabilities
    return replace(shape, efforts=efforts).for_method(settings.method, ways)


def is_openai(spec: GraderSpec) -> bool:
    """Return True if requests go to OpenAI, or to the address the environment sets instead."""
    return spec.provider == "openai" and spec.at.is_own


class _Part(BaseModel):
    text: OrNone[str] = None


class _Function(BaseModel):
    arguments: OrNone[str] = None


class _ToolCall(BaseModel):
    function: OrNone[_Function] = None


class _Message(BaseModel):
    content: str | list[_Part] | None = None
    refusal: OrNone[str] = None
    tool_calls: OrNone[list[_ToolCall]] = None

    @property
    def text(self) -> str:
        """The answer: the content, joined where a server sends it in parts, or the arguments of a
        single tool call.
        """
        calls = [each.function.arguments for each in self.tool_calls or () if each.function]
        if len(calls) == 1 and calls[0]:
            return calls[0]
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Logprobs(BaseModel):
    content: OrNone[list[Position]] = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: OrNone[str] = None
    logprobs: OrNone[_Logprobs] = None


class _Completion(BaseModel):
    id: OrNone[str | int] = None
    created: OrNone[float] = None
    model: OrNone[str] = None
    system_fingerprint: OrNone[str] = None
    service_tier: OrNone[str] = None
    choices: list[Any]
    usage: OrNone[dict[str, Any]] = None


def parse_reply(
    reply: Mapping[str, Any],
    rubric: Rubric | None,
    method: str = "logprobs",
    nth: int = 0,
    *,
    whole_numbers: bool = False,
) -> Outcome:
    """Return the outcome in a reply (a chat completion as JSON), with its text unchanged; `nth`
    selects one of several draws in the reply. Without a rubric the text is a subject's response,
    whatever it says, even a refusal.

    >>> parse_reply({"choices": [{"message": {"content": None, "refusal": "No."}}]}, None).raw
    'No.'
    """
    try:
        completion = _Completion.model_validate(reply)
        choice = _Choice.model_validate(completion.choices[nth])
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    evidence = completion.model_dump(include=_KEPT)
    evidence |= {"id": str(completion.id or ""), "stop_reason": choice.finish_reason}
    if nth:
        evidence["choice"] = nth
    unscored = _why_unscored(choice)
    text = choice.message.text
    said = Said(
        text=text or ((choice.message.refusal or "") if unscored else ""),
        unscored=unscored,
        evidence=evidence,
        positions=(choice.logprobs and choice.logprobs.content) or (),
        whole_numbers=whole_numbers,
    )
    return outcome_of(said, rubric, method)


def _why_unscored(choice: _Choice) -> str:
    if choice.message.refusal:
        return "refusal"
    why = (choice.finish_reason or "").casefold()
    if why.startswith(_FILTERED):
        return FILTERED
    return "truncated" if why == "length" else ""
