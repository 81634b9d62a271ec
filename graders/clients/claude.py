"""Claude through the Messages API: a hard label or a stated distribution, as structured output.

The API gives no token probabilities, and current models refuse temperature, prefill and a forced
tool. The options are an enum of a JSON schema instead. Some models think before they answer and
thinking counts towards `max_tokens`, so the limit is far above what a label needs.

Claude is asked at Anthropic itself, or on Bedrock, Vertex and Foundry. A cloud's credentials are
those that its own tools use - a profile or a role with AWS, the application default with Google -
unless the environment holds a token.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from evenhand.errors import InputError
from evenhand.graders.clients import (
    PLAIN,
    TOOL,
    Access,
    Ask,
    BatchService,
    BeforeSending,
    ClaudeBatches,
    Grader,
    Reply,
    headers_for,
    key_for,
    pooled,
    refuses_constraint,
    told_by_study,
    way_of,
    ways_from,
)
from evenhand.graders.failures import CONNECT, FILTERED, SPARE, GraderFailure, Rejected, Stopped
from evenhand.graders.options import GraderSettings, about_retirement
from evenhand.graders.providers import GraderSpec
from evenhand.graders.replies import OrNone, Outcome, asked, outcome_of
from evenhand.graders.scrub import Scrubber
from evenhand.rubrics import PromptText, Rubric
from evenhand.texts import written

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic

MAX_TOKENS = 16_000
_LOOKING_UP = 2.0  # seconds for what a run can do without
_USUAL = GraderSettings("label")
_TOOL_IS_FOR = "Takes the answer."
_WHY = {
    "refusal": "refusal",
    **dict.fromkeys(("content_filtered", "guardrail_intervened"), FILTERED),  # served by others
    **dict.fromkeys(("max_tokens", "model_context_window_exceeded"), "truncated"),
}
_TEACHING = (400, 403, 422)
_NO_KEY = "none"  # servers without keys still want the header
_LIBRARIES = {"bedrock": "boto3", "vertex": "google.auth"}


def build_request(
    model: str, prompt: PromptText, settings: GraderSettings = _USUAL, way: str = "json_schema"
) -> dict[str, Any]:
    """Return the arguments of `messages.create`: the rubric first, marked for caching; unit last.
    `way` is one of `constraint.WAYS`, or plain.
    """
    common: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.max_tokens or MAX_TOKENS,
        "messages": [{"role": "user", "content": _content(prompt)}],
    }
    if settings.thinking.isdecimal():  # such tokens raise the limit on output
        tokens = int(settings.thinking)
        thinking = {"type": "enabled", "budget_tokens": tokens}
        common |= {"thinking": thinking, "max_tokens": MAX_TOKENS + tokens}
    elif settings.thinking:
        common["thinking"] = {"type": "disabled" if settings.thinking == "off" else "adaptive"}
    if settings.service_tier:
        common["service_tier"] = settings.service_tier
    if settings.temperature:
        common["temperature"] = float(settings.temperature)
    output: dict[str, Any] = {}
    if settings.method == "text" or prompt.verbatim:  # nothing but the prompt itself
        common |= {"system": [_cached(prompt.system)]} if prompt.system else {}
    else:
        prompt, schema = asked(prompt, settings)
        common["system"] = [_cached(prompt.system)]
        if way == "json_schema":
            output["format"] = {"type": "json_schema", "schema": schema}
        elif way == "tool":
            common["tools"] = [{"name": TOOL, "description": _TOOL_IS_FOR, "input_schema": schema}]
            common["tool_choice"] = {"type": "tool", "name": TOOL}
    if settings.effort:
        output["effort"] = settings.effort
    return common | ({"output_config": output} if output else {})


def _cached(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def _content(prompt: PromptText) -> str | list[dict[str, Any]]:
    """Return the unit's part of the prompt, in one piece or cut where a part may be cached."""
    if not prompt.cuts and not prompt.images:
        return prompt.user
    parts: list[dict[str, Any]] = []
    for name, image in prompt.images:  # each after the tag that it belongs to
        source = {"type": "base64", "media_type": image.media, "data": image.data}
        parts += [{"type": "text", "text": f"<{name}>:"}, {"type": "image", "source": source}]
    ends = (0, *prompt.cuts)
    parts += [_cached(prompt.user[a:b]) for a, b in pairwise(ends)]
    return [*parts, {"type": "text", "text": prompt.user[ends[-1] :]}]


class _ContentBlock(BaseModel):
    type: str
    text: str = ""
    input: dict[str, Any] | None = None


class _Message(BaseModel):
    id: OrNone[str | int] = None
    model: OrNone[str] = None
    content: list[_ContentBlock]
    stop_reason: OrNone[str] = None
    stop_details: OrNone[dict[str, Any]] = None
    usage: OrNone[dict[str, Any]] = None

    @property
    def text(self) -> str:
        """The answer: the input of a single tool call as JSON, else the text blocks joined."""
        calls = [block.input for block in self.content if block.type == "tool_use"]
        if len(calls) == 1 and calls[0]:
            return json.dumps(calls[0])
        return "".join(block.text for block in self.content if block.type == "text")


def parse_reply(reply: Mapping[str, Any], rubric: Rubric | None, method: str = "label") -> Outcome:
    """Return the outcome in a reply (a message as JSON), with its text unchanged. Without a rubric
    the text is a subject's response, whatever it says, even a refusal.

    >>> said = {"content": [{"type": "text", "text": "Yes."}], "stop_reason": "refusal"}
    >>> parse_reply(said, None).raw
    'Yes.'
    """
    try:
        message = _Message.model_validate(reply)
    except ValidationError:
        return Outcome.unreadable(reply)
    evidence = message.model_dump(include={"model", "stop_reason", "stop_details", "usage"})
    evidence |= {"id": str(message.id or ""), "model": message.model or ""}
    unscored = _WHY.get(message.stop_reason or "", "")
    return outcome_of(message.text, rubric, method, evidence, unscored=unscored)


def claude_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncAnthropic:
    """Return the SDK client for a grader's address. Raises InputError where a key, a region, a
    project or the cloud's own library is missing.
    """
    import anthropic

    place = spec.at
    options: dict[str, Any] = {
        "base_url": place.address,
        "max_retries": 0,
        "timeout": anthropic.Timeout(timeout + SPARE, connect=CONNECT),
        "http_client": pooled(anthropic.DefaultAioHttpClient, scrubber),
        "default_headers": headers_for(
            place, scrubber, "ANTHROPIC_CUSTOM_HEADERS", anthropic.Omit()
        ),
    }
    cloud = place.provider.client
    key = key_for(spec)
    if key is None and not (cloud in _LIBRARIES and place.has_account):
        key = _NO_KEY  # the SDK must not look for one itself, which would be for another address
    if key is None:
        try:  # now: the SDK would fail only at the first request
            import_module(_LIBRARIES[cloud])
        except ImportError:
            sentence = written("provider.no_library", grader=spec.text, extra=cloud)
            raise InputError(sentence) from None
    options["access_token" if cloud == "vertex" else "api_key"] = key
    client_class: Any = {
        "": anthropic.AsyncAnthropic,
        "bedrock": anthropic.AsyncAnthropicBedrock,
        "vertex": anthropic.AsyncAnthropicVertex,
        "foundry": anthropic.AsyncAnthropicFoundry,
    }[cloud]
    try:
        client: AsyncAnthropic = client_class(**options)
    except ValueError as error:  # such as a region that nothing names
        raise InputError(f"grader {spec.text!r}: {scrubber.message(str(error))}") from None
    if cloud == "vertex" and not getattr(client, "project_id", None):
        raise InputError(written("provider.no_project", grader=spec.text))
    return client


class ClaudeGrader(Grader):
    """Asks one Claude model."""

    _client: AsyncAnthropic
    _id_header = "request-id"
    _path = "/v1/messages"

    def __init__(self, access: Access) -> None:
        import anthropic

        client = claude_client(access.spec, access.scrubber, access.timeout)
        version = str(client.default_headers.get("anthropic-version", ""))
        form = {"endpoint": "messages", "api_version": version}
        sdk = f"anthropic {anthropic.__version__}"
        super().__init__(access, client, anthropic.AnthropicError, **form, sdk=sdk)
        self._ways = ways_from(access.way)

    def request(self, prompt: PromptText) -> dict[str, Any]:
        way = self._ways[0] if self._ways else PLAIN
        return build_request(self.spec.model, prompt, self.settings, way)

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        return [parse_reply(reply, rubric, self.settings.reading)]

    async def ask(self, ask: Ask, before: BeforeSending) -> Reply:
        while True:
            ways = self._ways
            try:
                return await super().ask(ask, before)
            except Rejected as failure:
                taught = failure.status in _TEACHING and refuses_constraint(str(failure))
                if not (ways and taught and way_of(self.request(ask.prompt)) != PLAIN):
                    raise
                if self._ways == ways:  # else another request has learnt it meanwhile
                    self._ways = ways[1:]

    async def _post(self, request: Mapping[str, Any], **more: Any) -> httpx2.Response:
        try:
            return await super()._post(request, **more)
        except (self._errors, GraderFailure):
            raise
        except Exception as error:
            if not self.spec.at.provider.client:
                raise
            # The clouds' own libraries look for credentials at the first request.
            why = self._scrubber.message(str(error))
            said = {"provider": self.spec.provider, "why": why}
            raise Stopped(written("provider.no_credentials", **said)) from None

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        if self.spec.at.provider.client:  # no cloud's client offers them
            return super().batches(pause)
        return ClaudeBatches(self._client, self.spec, self._scrubber, pause)

    async def lifecycle(self) -> list[str]:
        """Return warnings about the model's retirement, from the provider if it answers, else from
        our own table, and about what study.toml sends.
        """
        model, warnings = self.spec.model, told_by_study(self.spec)
        try:
            info = await self._client.models.retrieve(model, timeout=_LOOKING_UP)
            if info.lifecycle == "retired":  # its words are never quoted: they are a server's text
                return [*warnings, written("grade.retired", model=model)]
            if isinstance(info.retires_at, datetime):
                day = info.retires_at.date()
                return [*warnings, written("grade.retires_on", model=model, day=day)]
            if info.lifecycle == "deprecated":
                return [*warnings, written("grade.deprecated", model=model)]
            return warnings
        except Exception:  # a warning that cannot be had must not stop a run
            return warnings + about_retirement(self.spec)
