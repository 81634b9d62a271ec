"""Clients of the graders behind a network: from a prompt to the outcome of the model's reply.

A run asks each model through a `Grader`: `ask` builds the request for a prompt, sends it and reads
the reply. By the form of the provider's API it is a `ClaudeGrader`, an `OpenAIGrader`, also for
compatible servers, or an `OtherGrader`. This file has the interface, connections, constraints, the
three kinds of graders, and the two batch services. The words that they share:

- *method*: how a model is asked for its label. A reply is read by `settings.reading`, which is the
  same unless a reason was asked for as well.
- *constraint*: the part of a request that holds the answer to the rubric's keys.
- *shape*: the parameters that a compatible server takes, which is found out by trying.
- *refusal*: a model declines to answer. *Rejection*: a server does not take a request, a parameter
  or a constraint; `Rejected` is raised if nothing else can be tried.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import socket
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote
from urllib.request import getproxies

from pydantic import BaseModel, ValidationError

from evenhand.errors import InputError
from evenhand.graders import replies
from evenhand.graders.money import charged_by
from evenhand.graders.options import GraderSettings, needs_effort_none, retirement_warnings
from evenhand.graders.providers import filled_from_environment, key_from_environment
from evenhand.graders.providers.forms import Question, form_of
from evenhand.graders.replies import GraderFailure, Json, OrNone, Outcome, Rejected, Transient
from evenhand.lazy import httpx2
from evenhand.rubrics import PromptText, Rubric
from evenhand.study.settings.study_toml import REFERENCE
from evenhand.study.store.logs.replies import Chunk
from evenhand.texts import table_of, written

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

    from evenhand.graders.providers import GraderSpec, Scrubber

    SdkClient = AsyncAnthropic | AsyncOpenAI

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError)
"""Errors that the SDKs, or the reading of a reply, raise if a proxy answers 200 with a page."""
_PARAMETER_STATUSES = (400, 403, 422)  # with which servers reject a parameter
_NO_KEY = "none"  # servers without keys still want the header


# ---- the interface of a grader ------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Reply:
    """An answered request."""

    request: Json  # as finally sent
    request_id: str
    outcomes: Sequence[Outcome]  # one for each draw (answer) that came
    charged: float | None = None  # US dollars, if a gateway reported the cost

    @property
    def outcome(self) -> Outcome:
        """The first outcome."""
        return self.outcomes[0]


@dataclass(frozen=True, slots=True)
class Ask:
    """A prompt to send."""

    prompt: PromptText
    rubric: Rubric | None = None  # None: the reply is read as a text
    draws: int = 1  # as far as `Grader.draws_at_once` allows several
    constrained: bool = False  # asks the server to restrict the answer to the rubric's keys


BeforeSending = Callable[[dict[str, Any]], Awaitable[None]]
"""Awaited with every request just before it is sent. It may lower the request's limit on output,
and raises an exception if the request must not be sent."""


@dataclass(frozen=True, slots=True)
class Access:
    """The arguments of `open_grader`."""

    spec: GraderSpec  # the model
    settings: GraderSettings
    scrubber: Scrubber
    timeout: float  # seconds that a request may take
    no_reasoning: bool = False  # True if the model gives probabilities only without reasoning


class Grader:
    """One model behind a network. `ask` raises a `GraderFailure` if no reply comes."""

    _id_header = "x-request-id"
    _path = ""  # the path of requests behind the client's address

    def __init__(
        self, access: Access, client: SdkClient, errors: type[Exception], **identity: str
    ) -> None:
        self._errors = errors
        self.spec, self.settings = access.spec, access.settings
        self._client, self._scrubber, self._timeout = client, access.scrubber, access.timeout
        address = str(client.base_url.copy_with(username=None, password=None))
        self.identity = {"provider": self.spec.provider, "base_url": address, **identity}
        """The service that answers, with its `endpoint`, `api_version` and `sdk`: a part of every
        grade's key and provenance."""

    @property
    def draws_at_once(self) -> int:
        """The most draws of one prompt that a request may ask for."""
        return 1

    @property
    def settled(self) -> bool:
        """False if the next request is to try another shape: questions then go one at a time."""
        return True

    def request(self, prompt: PromptText) -> dict[str, Any]:
        """Return the request as `ask` would send it now."""
        raise NotImplementedError

    def read(self, reply: Json, rubric: Rubric | None, draws: int = 1) -> list[Outcome]:
        """Return the outcomes in a reply, live or from a batch: one for each draw that came, at
        most `draws`. Without a rubric the outcome is the reply's text.
        """
        raise NotImplementedError

    def batches(self, pause: Pause) -> BatchService:
        """Return the provider's batch service. Raises InputError if it has none."""
        raise InputError(written("provider.no_batches", provider=self.spec.provider))

    async def lifecycle(self) -> list[str]:
        """Return warnings about the model's retirement, from our own table since most APIs do not
        report it, and about secrets that study.toml sends; never raises.
        """
        return warnings_about_secrets(self.spec) + retirement_warnings(self.spec)

    def can_constrain(self, request: Json) -> bool:
        """Return True if the prompt of a request can be asked again with a constrained answer."""
        return False

    async def ask(self, asked: Ask, before_sending: BeforeSending) -> Reply:
        """Ask one prompt and return the reply."""
        request = self.request(asked.prompt)
        await before_sending(request)
        try:
            response = await self._post(request)
        except self._errors as error:
            raise replies.failure_of(error, self.spec, self._scrubber) from None
        return self._reply(response, request, asked.rubric)

    async def _post(self, request: Json, **options: Any) -> httpx2.Response:
        """Return the server's response. The request is posted as it was built, since the SDKs' own
        methods would copy it by its types, which takes a third of a request's time.
        """
        post: Any = self._client.post
        try:
            async with asyncio.timeout(self._timeout):
                arguments = {"body": request, "cast_to": httpx2.Response, **options}
                response: httpx2.Response = await post(self._path, **arguments)
        except TimeoutError:
            raise Transient(f"no answer within {self._timeout:g} s", is_timeout=True) from None
        return response

    async def close(self) -> None:
        await self._client.close()

    def _reply(self, response: httpx2.Response, request: Json, rubric: Rubric | None) -> Reply:
        """Return the reply in a response with one answer."""
        outcomes = self.read(replies.json_object(response.text, self.spec, self._scrubber), rubric)
        request_id = response.headers.get(self._id_header) or ""
        return Reply(request, request_id, outcomes, charged_by(response.headers))


# ---- connections --------------------------------------------------------------------------------
# What may be sent to an address depends on who chose it. The fields of `spec.endpoint` that hold:
#   the provider's own, by `providers.toml`    is_own, has_account
#   set by the environment in its place        is_own, has_account
#   set by study.toml in its place             is_own, provider.by_study
#   typed after the @ in a grader's name       (none)
# `address_in_name` is "" for the first, if it is public. Any other address is a part of a grader's
# name, since the same name may be another model there.
def client_options(
    spec: GraderSpec, scrubber: Scrubber, timeout: float, sdk: Any, variable: str
) -> dict[str, Any]:
    """Return the keyword arguments of both SDKs' clients, without the key. Every request has the
    headers that study.toml names for this address. The SDK itself adds the headers in the
    environment's `variable`, such as ANTHROPIC_CUSTOM_HEADERS, to requests to any address. They are
    meant for the address of the SDK's own provider; for any other they are left out, by `Omit`.
    """
    endpoint, omit = spec.endpoint, sdk.Omit()
    headers: dict[str, Any] = {}
    sdk_provider = variable.partition("_")[0].lower()  # "anthropic" or "openai"
    if endpoint.provider.name != sdk_provider or not endpoint.has_account:
        lines = os.environ.get(variable, "").splitlines()
        headers |= {line.partition(":")[0].strip(): omit for line in lines if ":" in line}
    for name, text in endpoint.headers.items():
        headers[name] = filled_from_environment(text, f"the header {name!r} in study.toml")
        scrubber.learn([os.environ[secret].strip() for secret in REFERENCE.findall(text)])
    return {
        "base_url": endpoint.address,
        "max_retries": 0,
        "timeout": sdk.Timeout(timeout + replies.SPARE, connect=replies.CONNECT),
        "http_client": http_client(sdk.DefaultAioHttpClient, scrubber),
        "default_headers": headers,
    }


def key_for(spec: GraderSpec) -> str | None:
    """Return the key for the grader's address, or None. Raises InputError if one is required."""
    endpoint = spec.endpoint
    key = key_from_environment(endpoint.key_env) if endpoint.key_env else None
    if key is None and endpoint.needs_key:
        names = {"grader": spec.text, "host": endpoint.host, "variable": endpoint.key_env}
        raise InputError(written("provider.needs_key", **names))
    return key


def warnings_about_secrets(spec: GraderSpec) -> list[str]:
    """Return one sentence for each secret that study.toml, perhaps by a stranger, sends."""
    endpoint, grader_names = spec.endpoint, {"grader": spec.text, "host": spec.endpoint.host}
    sentences = []
    if endpoint.is_own and endpoint.provider.by_study and os.environ.get(endpoint.key_env):
        sentences.append(written("provider.key_goes", variable=endpoint.key_env, **grader_names))
    names = {name for text in endpoint.headers.values() for name in REFERENCE.findall(text)}
    return sentences + [
        written("provider.header_goes", variable=name, **grader_names) for name in sorted(names)
    ]


def http_client(client_class: type[httpx2.AsyncClient], scrubber: Scrubber) -> httpx2.AsyncClient:
    """Return an SDK's `DefaultAioHttpClient`, by which a request takes a third less time, that
    raises every connection error as httpx2's. The SDKs' own translation misses some, such as a
    reply that is not HTTP, and each would end the whole run. Redirects are not followed: they would
    take keys and prompts to a host that the user did not name. `scrubber` learns the credentials
    that requests carry. Raises InputError if the environment names a SOCKS proxy.
    """
    import aiohttp

    if any(proxy.startswith("socks") for proxy in getproxies().values()):
        raise InputError(
            "the environment names a SOCKS proxy, which cannot be used; name an HTTP proxy in "
            "HTTPS_PROXY, or unset ALL_PROXY"
        )

    class Resolver(aiohttp.ThreadedResolver):
        """A resolver with a time limit, since no other limit covers the lookup of a name."""

        async def resolve(self, *arguments: Any, **options: Any) -> Any:
            try:
                async with asyncio.timeout(replies.CONNECT):
                    return await super().resolve(*arguments, **options)
            except TimeoutError:
                raise socket.gaierror(socket.EAI_AGAIN, "no answer about this name") from None

    class Client(client_class):  # type: ignore[misc, valid-type]
        """The SDK's client with this resolver, keep-alive probes and httpx2's errors."""

        def _init_transport(self, *arguments: Any, **options: Any) -> Any:
            transport = super()._init_transport(*arguments, **options)
            transport.client = lambda: aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=Resolver(),
                    limit=transport.limits.max_connections or 0,  # 0: no limit
                    keepalive_timeout=transport.limits.keepalive_expiry,
                    ssl=transport.ssl_context,
                    socket_factory=_keep_alive_socket,
                )
            )
            return transport

        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            options["follow_redirects"] = False
            scrubber.learn_from(request.headers)
            url = request.url
            if url.userinfo:  # aiohttp takes credentials in the header only
                scrubber.learn([url.password, f"{url.username}:{url.password}"])
                request.url = url.copy_with(username=None, password=None)
                options.setdefault("auth", httpx2.BasicAuth(url.username, url.password))
            try:
                response: httpx2.Response = await super().send(request, **options)
            except (aiohttp.ClientError, ValueError) as error:
                # The error's own text has the address, which may hold secrets.
                message = getattr(error, "message", type(error).__name__)
                raise httpx2.RemoteProtocolError(message, request=request) from None
            return response

    return Client()


def _keep_alive_socket(address: tuple[Any, ...]) -> socket.socket:
    """Return a socket that sends a keep-alive probe every minute."""
    # Routers drop idle connections, and a long answer would then be billed but never come.
    family, socket_type, protocol, *_ = address
    connection = socket.socket(family, socket_type, protocol)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return connection


# ---- constraints of an answer to the rubric's keys ----------------------------------------------
CONSTRAINTS: tuple[str, ...] = ("json_schema", "tool")
"""Tried in this order: a strict JSON schema whose field is an enumeration, then a forced tool."""
FREE_TEXT = "plain"  # no constraint: the answer is read as free text

TOOL = "rate"  # the name of the tool whose input is the answer
_ABOUT_CONSTRAINT = re.compile(
    r"response_format|output_config|output_format|json_?schema|structured|schema|guided|grammar|"
    r"tool|function|enum\b"
)


def constraint_of(request: Json) -> str:
    """Return the constraint that a request, to any provider, puts on its answer, or "plain".

    >>> [constraint_of(request) for request in ({"response_format": {}}, {"tools": []}, {})]
    ['json_schema', 'tool', 'plain']
    """
    output = request.get("output_config")
    if "response_format" in request or (isinstance(output, Mapping) and "format" in output):
        return CONSTRAINTS[0]
    return CONSTRAINTS[1] if "tools" in request else FREE_TEXT


def rejects_constraint(complaint: str) -> bool:
    """Return True if a server's complaint is about the constraint on the answer."""
    return bool(_ABOUT_CONSTRAINT.search(complaint.casefold()))


# ---- Claude -------------------------------------------------------------------------------------
_CLAUDE_TOKENS = 16_000  # far above what a label needs: thinking before the answer counts, too
_LOOKUP_SECONDS = 2.0  # to look up when a model retires, which a run can do without
_CLAUDE_DEFAULTS = GraderSettings("label")
_UNSCORED_BY_STOP_REASON = {
    "refusal": "refusal",
    "content_filtered": replies.FILTERED,  # this and the next by the clouds that serve Claude
    "guardrail_intervened": replies.FILTERED,
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}
_CLOUD_LIBRARIES = {"bedrock": "boto3", "vertex": "google.auth"}  # to find credentials


def build_claude_request(
    model: str,
    prompt: PromptText,
    settings: GraderSettings = _CLAUDE_DEFAULTS,
    constraint: str = "json_schema",
) -> dict[str, Any]:
    """Return the arguments of `messages.create`, with the rubric first, marked for caching, and the
    unit last. `constraint` is one of `CONSTRAINTS`, or "plain".
    """
    request: dict[str, Any] = {
        "model": model,
        "max_tokens": settings.max_tokens or _CLAUDE_TOKENS,
        "messages": [{"role": "user", "content": _claude_content(prompt)}],
    }
    if settings.thinking.isdecimal():  # a number of tokens, in addition to those of the answer
        tokens = int(settings.thinking)
        thinking = {"type": "enabled", "budget_tokens": tokens}
        request |= {"thinking": thinking, "max_tokens": _CLAUDE_TOKENS + tokens}
    elif settings.thinking:
        request["thinking"] = {"type": "disabled" if settings.thinking == "off" else "adaptive"}
    if settings.service_tier:
        request["service_tier"] = settings.service_tier
    if settings.temperature:
        request["temperature"] = float(settings.temperature)
    output: dict[str, Any] = {}
    if settings.method == "text" or prompt.verbatim:  # nothing but the prompt itself
        request |= {"system": [_cached(prompt.system)]} if prompt.system else {}
    else:
        prompt, schema = replies.prompt_for_method(prompt, settings)
        request["system"] = [_cached(prompt.system)]
        if constraint == "json_schema":
            output["format"] = {"type": "json_schema", "schema": schema}
        elif constraint == "tool":
            tool = {"name": TOOL, "description": "Takes the answer.", "input_schema": schema}
            request |= {"tools": [tool], "tool_choice": {"type": "tool", "name": TOOL}}
    if settings.effort:
        output["effort"] = settings.effort
    return request | ({"output_config": output} if output else {})


def _cached(text: str) -> dict[str, Any]:
    """Return a block of text that is marked for Anthropic's prompt cache."""
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}


def _claude_content(prompt: PromptText) -> str | list[dict[str, Any]]:
    """Return the unit's part of the prompt: its images, and its text cut into cacheable parts."""
    if not prompt.cuts and not prompt.images:
        return prompt.user
    parts: list[dict[str, Any]] = []
    for name, image in prompt.images:  # each after its tag
        source = {"type": "base64", "media_type": image.media, "data": image.data}
        parts += [{"type": "text", "text": f"<{name}>:"}, {"type": "image", "source": source}]
    cuts = (0, *prompt.cuts)
    parts += [_cached(prompt.user[start:end]) for start, end in pairwise(cuts)]
    return [*parts, {"type": "text", "text": prompt.user[cuts[-1] :]}]


class _ClaudeBlock(BaseModel):
    """A part of a message: a text, or the call of a tool with its `input`."""

    type: str
    text: str = ""
    input: dict[str, Any] | None = None


class _ClaudeMessage(BaseModel):
    """The fields of a Messages API reply that are read; odd values of optional ones are ignored."""

    id: OrNone[str | int] = None
    model: OrNone[str] = None
    content: list[_ClaudeBlock]
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


def parse_claude_reply(reply: Json, rubric: Rubric | None, method: str = "label") -> Outcome:
    """Return the outcome in a reply (a message as JSON), with its text unchanged. Without a rubric
    the text is a subject's response, whatever it says, even a refusal.

    >>> reply = {"content": [{"type": "text", "text": "Yes."}], "stop_reason": "refusal"}
    >>> parse_claude_reply(reply, None).raw
    'Yes.'
    """
    try:
        message = _ClaudeMessage.model_validate(reply)
    except ValidationError:
        return Outcome.unreadable(reply)
    evidence = message.model_dump(include={"model", "stop_reason", "stop_details", "usage"})
    evidence |= {"id": str(message.id or ""), "model": message.model or ""}
    unscored = _UNSCORED_BY_STOP_REASON.get(message.stop_reason or "", "")
    return replies.outcome_of(message.text, rubric, method, evidence, unscored=unscored)


def claude_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncAnthropic:
    """Return Anthropic's client. Raises InputError if a key, region or library is missing."""
    import anthropic

    options = client_options(spec, scrubber, timeout, anthropic, "ANTHROPIC_CUSTOM_HEADERS")
    cloud = spec.endpoint.provider.client
    key = key_for(spec)
    if key is None and not (cloud in _CLOUD_LIBRARIES and spec.endpoint.has_account):
        key = _NO_KEY  # else the SDK would send one of the environment, meant for another address
    if key is None:  # the cloud's library finds the credentials
        try:  # without the library the SDK would fail only at the first request
            import_module(_CLOUD_LIBRARIES[cloud])
        except ImportError:
            sentence = written("provider.no_library", grader=spec.text, extra=cloud)
            raise InputError(sentence) from None
    options["access_token" if cloud == "vertex" else "api_key"] = key
    client_class: Any = getattr(anthropic, f"AsyncAnthropic{cloud.title()}")  # cloud may be ""
    try:
        client: AsyncAnthropic = client_class(**options)
    except ValueError as error:  # for example a missing region
        raise InputError(f"grader {spec.text!r}: {scrubber.message(str(error))}") from None
    if cloud == "vertex" and not getattr(client, "project_id", None):
        raise InputError(written("provider.no_project", grader=spec.text))
    return client


class ClaudeGrader(Grader):
    """Asks one Claude model through the Messages API, at Anthropic itself or on Bedrock, Vertex and
    Foundry, for a hard label or a stated distribution. The API gives no token probabilities, and
    current models refuse temperature, prefill and a forced tool: the options are an enum of a JSON
    schema instead. A cloud's credentials are those that its own tools use - a profile or a role
    with AWS, the application default with Google - unless the environment holds a token.
    """

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
        self._constraints = CONSTRAINTS  # those that the server has not rejected

    def request(self, prompt: PromptText) -> dict[str, Any]:
        constraint = self._constraints[0] if self._constraints else FREE_TEXT
        return build_claude_request(self.spec.model, prompt, self.settings, constraint)

    def read(self, reply: Json, rubric: Rubric | None, draws: int = 1) -> list[Outcome]:
        return [parse_claude_reply(reply, rubric, self.settings.reading)]

    async def ask(self, asked: Ask, before_sending: BeforeSending) -> Reply:
        """Ask one prompt and return the reply. If the server rejects the constraint on the answer,
        drop it for all later requests, and ask again with the next one or without any.
        """
        while True:
            constraints = self._constraints  # the first is that of the request
            is_constrained = constraint_of(self.request(asked.prompt)) != FREE_TEXT
            try:
                return await super().ask(asked, before_sending)
            except Rejected as error:
                is_at_fault = error.status in _PARAMETER_STATUSES and rejects_constraint(str(error))
                if not (is_constrained and is_at_fault):
                    raise
                # A concurrent request may have dropped the same constraint meanwhile.
                if self._constraints == constraints:
                    self._constraints = constraints[1:]

    async def _post(self, request: Json, **options: Any) -> httpx2.Response:
        try:
            return await super()._post(request, **options)
        except (self._errors, GraderFailure):
            raise
        except Exception as error:
            if not self.spec.endpoint.provider.client:
                raise
            # The clouds' own libraries look for credentials at the first request.
            message, provider = self._scrubber.message(str(error)), self.spec.provider
            sentence = written("provider.no_credentials", provider=provider, why=message)
            raise replies.Stopped(sentence) from None

    def batches(self, pause: Pause) -> BatchService:
        if self.spec.endpoint.provider.client:  # the clouds' clients have no batches
            return super().batches(pause)
        return ClaudeBatches(self._client, self.spec, self._scrubber, pause)

    async def lifecycle(self) -> list[str]:
        """Return warnings as `Grader` does, but ask the provider first when the model retires."""
        model, warnings = self.spec.model, warnings_about_secrets(self.spec)
        try:
            info = await self._client.models.retrieve(model, timeout=_LOOKUP_SECONDS)
            if info.lifecycle == "retired":  # a server's own text is never quoted
                return [*warnings, written("grade.retired", model=model)]
            if isinstance(info.retires_at, datetime):
                day = info.retires_at.date()
                return [*warnings, written("grade.retires_on", model=model, day=day)]
            if info.lifecycle == "deprecated":
                return [*warnings, written("grade.deprecated", model=model)]
            return warnings
        except Exception:  # a warning that cannot be had must not stop a run
            return warnings + retirement_warnings(self.spec)


# ---- chat servers -------------------------------------------------------------------------------
_CHAT_TOKENS = 4_096  # one token is needed, but thinking counts, too
LONG_ANSWER = 16_000
_CHAT_DEFAULTS = GraderSettings("logprobs")
_ABOUT_DRAWS = re.compile(r"[`'\"]n[`'\"]")  # the parameter n, in quotes
_EXCESS = re.compile(r"too (?:large|many|long|high)|at most|less than|maximum|exceed|<=|between")
_FILTER_REASONS = (
    "content_filter", "guardrail_intervened",
    "safety", "prohibited_content", "recitation", "blocklist", "spii",
)  # fmt: skip
"""Beginnings of stop reasons: of OpenAI and Azure, of Bedrock, and in the second row of Gemini."""
_EVIDENCE_FIELDS = {"model", "id", "created", "system_fingerprint", "service_tier", "usage"}


@dataclass(frozen=True, slots=True)
class Shape:
    """The parameters of a chat request that servers may reject. Each field lists the values left to
    try: a request has the first, and a rejection removes it. With none left, the parameter is left
    out. So `top_logprobs=(20, 5)` asks for 20, once these are too many for 5, and then for none.

    Three parameters are for token probabilities: `top_logprobs`; effort "none", as some models give
    them only without reasoning; and temperature 1, which keeps them the model's own everywhere.
    """

    limit_names: tuple[str, ...] = ("max_completion_tokens", "max_tokens")  # of the output
    top_logprobs: tuple[int, ...] = (20, 5)
    efforts: tuple[str, ...] = ("", "none")  # "" is not sent: the model's default comes first
    temperatures: tuple[int, ...] = (1,)
    constraints: tuple[str, ...] = ()  # of `CONSTRAINTS`
    draws: tuple[int, ...] = (128, 8)  # the parameter n, at most; with none left, 1

    def without_probabilities(self) -> Shape:
        """Return this shape for a label alone."""
        return replace(self, top_logprobs=(), efforts=(), temperatures=())

    def with_probabilities_as(self, other: Shape) -> Shape:
        names = ("top_logprobs", "efforts", "temperatures")  # on which probabilities depend
        return replace(self, **{name: getattr(other, name) for name in names})

    def without_reasoning(self) -> Shape | None:
        """Return this shape with effort "none", or None if that is not left to try."""
        return replace(self, efforts=("none",)) if "none" in self.efforts[1:] else None

    @property
    def max_draws(self) -> int:
        """The most draws that one request may ask for."""
        return self.draws[0] if self.draws else 1

    @classmethod
    def for_server(cls) -> Shape:
        """Return the first shape for a compatible server: an older limit name, no effort."""
        return cls(limit_names=("max_tokens", "max_completion_tokens"), efforts=())


def _chat_content(prompt: PromptText) -> str | list[dict[str, Any]]:
    """Return the unit's part of the prompt: its images, each after its tag, and then its text."""
    parts: list[dict[str, Any]] = []
    for name, image in prompt.images:
        parts.append({"type": "text", "text": f"<{name}>:"})
        parts.append({"type": "image_url", "image_url": {"url": image.uri}})
    return [*parts, {"type": "text", "text": prompt.user}] if parts else prompt.user


def build_chat_request(
    model: str, prompt: PromptText, shape: Shape, settings: GraderSettings = _CHAT_DEFAULTS
) -> dict[str, Any]:
    """Return the arguments of `chat.completions.create`."""
    prompt, schema = replies.prompt_for_method(prompt, settings)
    system = [{"role": "system", "content": prompt.system}] if prompt.system else []
    request: dict[str, Any] = {
        "model": model,
        "messages": [*system, {"role": "user", "content": _chat_content(prompt)}],
    }
    if shape.limit_names:
        default_limit = LONG_ANSWER if settings.method == "text" else _CHAT_TOKENS
        request[shape.limit_names[0]] = settings.max_tokens or default_limit
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
    if not shape.constraints or prompt.verbatim:
        return request
    if (constraint := shape.constraints[0]) == "tool":
        function = {"name": TOOL, "strict": True, "parameters": schema}
        tool_choice = {"type": "function", "function": {"name": TOOL}}
        tools = [{"type": "function", "function": function}]
        return request | {"tools": tools, "tool_choice": tool_choice}
    json_schema = {"name": "options", "strict": True, "schema": schema}
    return request | {"response_format": {"type": constraint, "json_schema": json_schema}}


def adapt(shape: Shape, complaint: str) -> Shape | None:
    """Return the shape to try after a server's complaint, or None if it is not about the shape.

    >>> adapt(Shape(), "Unsupported parameter: 'max_completion_tokens'").limit_names
    ('max_tokens',)
    >>> adapt(Shape(), "Invalid 'top_logprobs': must be less than or equal to 5").top_logprobs
    (5,)
    >>> shape = adapt(Shape(), "'logprobs' is not supported with this model")
    >>> shape.efforts, adapt(shape, "'reasoning_effort' does not support 'none'").top_logprobs
    (('none',), ())
    """
    complaint = complaint.casefold()
    exceeds_limit = bool(_EXCESS.search(complaint))  # the value is rejected, not the parameter
    # The first test that applies counts: too many `top_logprobs` before logprobs as such, and these
    # before the effort that prevents them, since another effort may keep probabilities.
    if shape.draws and _ABOUT_DRAWS.search(complaint):
        return replace(shape, draws=shape.draws[1:] if exceeds_limit else ())
    if shape.top_logprobs and "top_logprobs" in complaint and exceeds_limit:
        smaller = shape.top_logprobs[1:]
        return replace(shape, top_logprobs=smaller) if smaller else shape.without_probabilities()
    if shape.top_logprobs and re.search(r"log_?prob", complaint):
        return shape.without_reasoning() or shape.without_probabilities()
    if shape.efforts and re.search(r"reasoning|effort", complaint):  # effort "none" is rejected
        return shape.without_probabilities()
    if shape.constraints and rejects_constraint(complaint):
        return replace(shape, constraints=shape.constraints[1:])
    if shape.temperatures and "temperature" in complaint:
        return replace(shape, temperatures=shape.temperatures[1:])
    if shape.limit_names and re.search(r"max_(?:completion_)?tokens|context length", complaint):
        # A limit that does not fit together with the prompt is left to the server, not renamed.
        return replace(shape, limit_names=() if exceeds_limit else shape.limit_names[1:])
    return None


def _suggested_shape(failure: GraderFailure, complaint: str, shape: Shape) -> Shape | None:
    """Return the shape that a failure suggests, or None if it is not about parameters."""
    if failure.means in ("credit", "key", "model", "path"):
        return None
    # llama.cpp answers 500 to a wrong parameter; `refusals.toml` then says that it is a rejection.
    is_rejected_500 = failure.status == 500 and isinstance(failure, Rejected)
    is_about_request = failure.status in _PARAMETER_STATUSES or is_rejected_500
    return adapt(shape, complaint) if is_about_request else None


def first_shape(spec: GraderSpec, settings: GraderSettings, *, no_reasoning: bool = False) -> Shape:
    """Return the shape of a grader's first request. It asks for token probabilities with the method
    "logprobs"; else it constrains the answer to the keys ("verbalised": by a schema only, "text":
    not at all). Reasoning is switched off from the start for models that are known to give
    probabilities only without it, by `no_reasoning` or by name; else after they gave none.
    """
    shape = Shape() if is_openai(spec) else Shape.for_server()
    if settings.method != "logprobs":
        constraints = {"verbalised": CONSTRAINTS[:1], "text": ()}.get(settings.method, CONSTRAINTS)
        return replace(shape.without_probabilities(), constraints=constraints)
    if settings.effort:
        return replace(shape, efforts=())  # the user's choice holds, with probabilities or without
    # Also on a compatible server, whose other requests name no effort: "none" may be needed.
    is_reasoning_off = no_reasoning or needs_effort_none(spec)
    return replace(shape, efforts=("none",) if is_reasoning_off else Shape().efforts)


def is_openai(spec: GraderSpec) -> bool:
    """Return True if requests go to OpenAI, or to the address that is set in its place."""
    return spec.provider == "openai" and spec.endpoint.is_own


_TRIAL_FACTOR = 4  # trials come after reply 1, 4, 16, ...: at most 6 in 1,000 requests
_MAX_POSTPONED = 3  # times that a trial may fail for a reason unrelated to its shape


class Probing:
    """Chooses the shape of a grader's requests: `shape`, the usual one, or for a single request a
    shape on trial. A trial asks for probabilities that the usual shape does not get, and becomes
    the usual shape if its reply has some. Then there are no more trials. There are two kinds:

    - No probabilities came, and no complaint, perhaps because the model reasoned. The next request
      is a trial without reasoning, the only one.
    - A server rejected probabilities, perhaps for a time, and the usual shape now asks for a label
      alone. The request after reply 1 is a trial that asks for them as at first; if it is rejected,
      too, the next trial follows reply 4, then 16, and so on.
    """

    def __init__(self, shape: Shape) -> None:
        self.shape = self._first_shape = shape
        self.has_probabilities = False  # True once a reply had some
        self._trial: Shape | None = None  # for the next request
        self._n_postponed = 0  # trials that failed for an unrelated reason
        self._tried_without_reasoning = False  # by the trial of the first kind
        self._n_replies = self._n_rejections = 0
        self._trial_due = math.inf  # number of replies after which one of the second kind comes

    @property
    def settled(self) -> bool:
        """True if the next request is not a trial."""
        return self._trial is None

    def take_trial(self) -> Shape | None:
        """Return the shape on trial, if any, for the next request alone."""
        trial, self._trial = self._trial, None
        return trial

    def postpone(self, trial: Shape | None) -> None:
        """Put a shape back on trial after a request without a reply, a few times."""
        self._n_postponed += 1
        if self._n_postponed <= _MAX_POSTPONED:
            self._trial = trial

    def learn_from_reply(
        self, sent_shape: Shape, final_shape: Shape, outcome: Outcome, *, is_trial: bool
    ) -> None:
        """Choose the next shapes after a reply to `final_shape`; `sent_shape` was sent first."""
        self._n_replies += 1
        if outcome.prob_method == "logprobs":
            self.has_probabilities, self.shape = True, final_shape
            self._trial, self._trial_due = None, math.inf
            return
        if self.has_probabilities:  # then one reply without them is no reason to give them up
            if final_shape.top_logprobs and not is_trial:
                self.shape = final_shape
            return
        is_rejected = bool(sent_shape.top_logprobs and not final_shape.top_logprobs)
        # Of concurrent requests only the first rejection counts: after it `shape` asks for none.
        if is_rejected and (is_trial or self.shape.top_logprobs):
            self._trial_due = _TRIAL_FACTOR**self._n_rejections
            self._n_rejections += 1
        if not is_trial:
            self.shape = final_shape
            # With "unseen" the reply had probabilities, but too uncertain ones to be kept.
            has_label_only = bool(outcome.label) and "unseen" not in outcome.evidence
            trial = final_shape.without_reasoning() if final_shape.top_logprobs else None
            if has_label_only and trial and not self._tried_without_reasoning:
                self._tried_without_reasoning, self._trial = True, trial
        if self._n_replies >= self._trial_due:
            self._trial_due = math.inf  # until the next rejection
            self._trial = self.shape.with_probabilities_as(self._first_shape)


class _ChatMessage(BaseModel):
    """The message of a chat completion's choice, with the fields that are read."""

    content: str | list[dict[str, Any]] | None = None
    refusal: OrNone[str] = None
    tool_calls: OrNone[list[dict[str, Any]]] = None

    @property
    def text(self) -> str:
        """The content, of which some servers send parts; or the arguments of a single tool call."""
        functions = [call.get("function") for call in self.tool_calls or ()]
        inputs = [call.get("arguments") for call in functions if isinstance(call, dict)]
        if len(inputs) == 1 and inputs[0] and isinstance(inputs[0], str):
            return inputs[0]
        if isinstance(self.content, list):
            texts = (part.get("text") for part in self.content)
            return "".join(text for text in texts if isinstance(text, str))
        return self.content or ""


class _ChatLogprobs(BaseModel):
    content: OrNone[list[replies.Position]] = None


class _ChatChoice(BaseModel):
    message: _ChatMessage
    finish_reason: OrNone[str] = None
    logprobs: OrNone[_ChatLogprobs] = None


class _ChatCompletion(BaseModel):
    id: OrNone[str | int] = None
    created: OrNone[float] = None
    model: OrNone[str] = None
    system_fingerprint: OrNone[str] = None
    service_tier: OrNone[str] = None
    choices: list[Any]
    usage: OrNone[dict[str, Any]] = None


def parse_chat_reply(
    reply: Json,
    rubric: Rubric | None,
    method: str = "logprobs",
    index: int = 0,
    *,
    unsplit_numbers: bool = False,
) -> Outcome:
    """Return the outcome in a reply (a chat completion as JSON), with its text unchanged; `index`
    selects one of several draws in the reply, `unsplit_numbers` says that a number is one token.
    Without a rubric the text is a subject's response, whatever it says, even a refusal.

    >>> parse_chat_reply({"choices": [{"message": {"content": None, "refusal": "No."}}]}, None).raw
    'No.'
    """
    try:
        completion = _ChatCompletion.model_validate(reply)
        choice = _ChatChoice.model_validate(completion.choices[index])
    except (ValidationError, IndexError):
        return Outcome.unreadable(reply)
    evidence = completion.model_dump(include=_EVIDENCE_FIELDS)
    evidence |= {"id": str(completion.id or ""), "stop_reason": choice.finish_reason}
    if index:
        evidence["choice"] = index
    stop_reason = (choice.finish_reason or "").casefold()
    unscored = "truncated" if stop_reason == "length" else ""  # the last that applies counts
    unscored = replies.FILTERED if stop_reason.startswith(_FILTER_REASONS) else unscored
    unscored = "refusal" if choice.message.refusal else unscored
    return replies.outcome_of(
        choice.message.text or choice.message.refusal or "",
        rubric,
        method,
        evidence,
        unscored=unscored,
        positions=(choice.logprobs and choice.logprobs.content) or (),
        unsplit_numbers=unsplit_numbers,
    )


def chat_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncOpenAI:
    """Return OpenAI's client for a grader's server. Raises InputError if its key is missing."""
    import openai

    options = client_options(spec, scrubber, timeout, openai, "OPENAI_CUSTOM_HEADERS")
    if not (is_openai(spec) and spec.endpoint.has_account):  # the account's names are for OpenAI
        names = ("OpenAI-Organization", "OpenAI-Project")
        options["default_headers"] |= dict.fromkeys(names, openai.Omit())
    return openai.AsyncOpenAI(api_key=key_for(spec) or _NO_KEY, **options)


_MAX_LOST = 2  # times that a prompt is asked again after a rejection of its probabilities
_UNRELATED_STATUSES = (None, 408, 409, 429)  # not due to parameters; None: no response came


class _Accepted(NamedTuple):
    """A request that a server has taken, its shape, and the response."""

    request: dict[str, Any]
    shape: Shape
    response: httpx2.Response


class OpenAIGrader(Grader):
    """Asks one model at OpenAI or a compatible server. Which parameters it takes differs between
    models and servers, and cannot be looked up: after a rejection one is renamed or dropped, for
    all later requests. `Probing` chooses the shape, and tries again for lost probabilities.
    """

    _client: AsyncOpenAI
    _path = "/chat/completions"

    def __init__(self, access: Access) -> None:
        import openai

        client = chat_client(access.spec, access.scrubber, access.timeout)
        form = {"endpoint": "chat/completions", "api_version": "v1"}
        sdk = f"openai {openai.__version__}"
        super().__init__(access, client, openai.OpenAIError, **form, sdk=sdk)
        shape = first_shape(self.spec, self.settings, no_reasoning=access.no_reasoning)
        self._probing = Probing(shape)
        self._constraints = CONSTRAINTS  # for `Ask.constrained`: those that were not rejected
        self._n_lost_by_prompt: Counter[str] = Counter()  # rejections of its probabilities
        self._is_openai_itself = is_openai(self.spec) and not self.spec.endpoint.address_in_name
        self._is_litellm = False

    def can_constrain(self, request: Json) -> bool:
        return bool(self._constraints) and constraint_of(request) == FREE_TEXT

    async def ask(self, asked: Ask, before_sending: BeforeSending) -> Reply:
        """Ask one prompt and return the reply, with several draws at once if the server allows it.
        After a rejected parameter the request is changed and sent again.
        """
        if asked.constrained:  # whatever the method
            return await self._ask_constrained(asked, before_sending)
        trial, usual_shape = self._probing.take_trial(), self._probing.shape
        sent_shape, fallback = (trial, usual_shape) if trial else (usual_shape, None)
        try:
            accepted = await self._post_until_accepted(sent_shape, fallback, asked, before_sending)
            reply = replies.json_object(accepted.response.text, self.spec, self._scrubber)
        except GraderFailure as failure:
            if trial and failure.status in _UNRELATED_STATUSES:
                self._probing.postpone(trial)
            raise
        request, final_shape, headers = accepted.request, accepted.shape, accepted.response.headers
        self._is_litellm |= any(name.lower().startswith("x-litellm-") for name in headers)
        n_requested = request.get("n", 1)
        outcomes = self.read(reply, asked.rubric, n_requested)
        fault = outcomes[0].evidence.get(replies.NOT_LOGPROBS)  # why the values are no logprobs
        if fault and self.settings.method == "logprobs" and not self._probing.has_probabilities:
            sentence = written("provider.not_logprobs", server=self.spec.endpoint.host, fault=fault)
            raise replies.Stopped(sentence, may_be_billed=True)
        if len(outcomes) < n_requested:  # the server gives no more at once
            final_shape = replace(final_shape, draws=(len(outcomes),))
        self._probing.learn_from_reply(sent_shape, final_shape, outcomes[0], is_trial=bool(trial))
        return Reply(request, headers.get(self._id_header) or "", outcomes, charged_by(headers))

    async def _ask_constrained(self, asked: Ask, before_sending: BeforeSending) -> Reply:
        """Ask for a label alone, with a constraint; constraints that are rejected are dropped."""
        shape = replace(self._probing.shape.without_probabilities(), constraints=self._constraints)
        accepted = await self._post_until_accepted(shape, None, asked, before_sending)
        self._constraints = accepted.shape.constraints
        return self._reply(accepted.response, accepted.request, asked.rubric)

    async def _post_until_accepted(
        self, shape: Shape, fallback: Shape | None, asked: Ask, before_sending: BeforeSending
    ) -> _Accepted:
        """Send a request until the server takes it. What follows a complaint depends on the shape
        that it suggests, and on whether the shape sent was on trial, which then has a `fallback`:

        1. suggests a shape with probabilities  send it (see `_shape_after`)
        2. suggests one without                 after a trial send the fallback, else as 1
        3. suggests none, but is a rejection    after a trial send the fallback, else as 4
        4. suggests none otherwise              raise the failure
        """
        from openai import APIStatusError

        while True:
            request = build_chat_request(self.spec.model, asked.prompt, shape, self.settings)
            if (n_draws := min(asked.draws, shape.max_draws)) > 1:
                request["n"] = n_draws
            await before_sending(request)
            try:
                response = await self._post(request, options=self._no_cache_options())
                return _Accepted(request, shape, response)
            except APIStatusError as error:
                failure = replies.failure_of(error, self.spec, self._scrubber)
                suggested = _suggested_shape(failure, f"{error} {error.body}", shape)
                asks_for_none = suggested is not None and not suggested.top_logprobs
                is_last = suggested is None and isinstance(failure, Rejected)
                if fallback and (asks_for_none or is_last):  # cases 2 and 3
                    shape, fallback = fallback, None
                elif suggested is None:
                    raise failure from None
                else:
                    shape = self._shape_after(failure, shape, suggested, asked.prompt)
            except self._errors as error:
                raise replies.failure_of(error, self.spec, self._scrubber) from None

    def _shape_after(
        self, failure: GraderFailure, shape: Shape, suggested: Shape, prompt: PromptText
    ) -> Shape:
        """Return the shape to send after a rejected one: the suggested shape, unless it would give
        up probabilities that other prompts had, or ask for them in another way. Then the rejection
        may be temporary: for the prompt's first `_MAX_LOST` rejections raise Transient, so that the
        prompt is asked again after a pause; after that return the shape for a label alone.
        """
        way, suggested_way = ((one.top_logprobs, one.efforts) for one in (shape, suggested))
        if suggested_way == way or not self._probing.has_probabilities:
            return suggested
        self._n_lost_by_prompt[prompt.user] += 1
        if self._n_lost_by_prompt[prompt.user] <= _MAX_LOST:
            raise Transient(str(failure), status=failure.status) from None
        return suggested.without_probabilities()

    def _no_cache_options(self) -> RequestOptions:
        """Return options that decline answers from caches: a cached answer is no new draw."""
        if self._is_openai_itself:
            return {}
        options: RequestOptions = {"headers": replies.NO_CACHE_HEADERS}
        if self._is_litellm:
            options["extra_json"] = replies.LITELLM_NO_CACHE
        return options

    @property
    def draws_at_once(self) -> int:
        """The most draws that one request may ask for; 1 at servers that may take no `n`."""
        sends_n = is_openai(self.spec) and self.settings.method == "draws"
        return self._probing.shape.max_draws if sends_n else 1

    @property
    def settled(self) -> bool:
        return self._probing.settled

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_chat_request(self.spec.model, prompt, self._probing.shape, self.settings)

    def read(self, reply: Json, rubric: Rubric | None, draws: int = 1) -> list[Outcome]:
        choices, method = reply.get("choices"), self.settings.reading
        n_choices = min(len(choices), draws) if isinstance(choices, list) else 0
        unsplit_numbers = self._is_openai_itself  # one token for each up to 999
        parse = partial(parse_chat_reply, reply, rubric, method, unsplit_numbers=unsplit_numbers)
        return [parse(index=index) for index in range(max(n_choices, 1))]

    def batches(self, pause: Pause) -> BatchService:
        return OpenAIBatches(self._client, self.spec, self._scrubber)


# ---- providers whose requests have a form of their own ------------------------------------------
def build_form_request(
    spec: GraderSpec, prompt: PromptText, settings: GraderSettings
) -> dict[str, Any]:
    """Return the body of a request in the form of the provider's API."""
    prompt, schema = replies.prompt_for_method(prompt, settings)
    question = Question(
        model=spec.model,
        system=prompt.system,
        user=prompt.user,
        max_tokens=settings.max_tokens or LONG_ANSWER,
        schema=schema if settings.method == "verbalised" else None,
    )
    return form_of(spec.api_format).request(question)


class OtherGrader(Grader):
    """Asks one model in its provider's own form. OpenAI's client carries the requests, since keys,
    connections and errors do not depend on the form.
    """

    _client: AsyncOpenAI

    def __init__(self, access: Access) -> None:
        from openai import OpenAIError

        self._path = form_of(access.spec.api_format).PATH
        client = chat_client(access.spec, access.scrubber, access.timeout)
        form = {"endpoint": self._path.strip("/"), "api_version": "", "sdk": access.spec.api_format}
        super().__init__(access, client, OpenAIError, **form)

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_form_request(self.spec, prompt, self.settings)

    def read(self, reply: Json, rubric: Rubric | None, draws: int = 1) -> list[Outcome]:
        try:
            answer = form_of(self.spec.api_format).read(reply)
            text, usage = str(answer.text), dict(answer.usage)
        except (*UNREADABLE, RecursionError):
            return [Outcome.unreadable(reply)]
        evidence = {"model": str(answer.model), "id": str(answer.id), "usage": usage}
        method, unscored = self.settings.reading, answer.unscored
        return [replies.outcome_of(text, rubric, method, evidence, unscored=unscored)]

    async def _post(self, request: Json, **others: Any) -> httpx2.Response:
        return await super()._post(request, options={"headers": replies.NO_CACHE_HEADERS}, **others)


# ---- batch services -----------------------------------------------------------------------------
_CLOCK_TOLERANCE = timedelta(minutes=10)  # between the provider's clock and this machine's
_CHAT_ENDPOINT: Final = "/v1/chat/completions"
_CHUNK_NAME = "evenhand_chunk"  # the name under which a batch at OpenAI keeps that of its chunk
_ENDED_STATUSES = ("completed", "expired", "cancelled", "failed")  # of OpenAI's batches
Pause = Callable[[], Awaitable[None]]  # awaited between two queries for a batch's state


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch, in requests; one that the provider no longer has is at its end."""

    ended: bool
    done: int = 0
    total: int = 0
    failed: str = ""  # why the provider rejected the batch as a whole, if it did


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """A line of a batch's results: a reply or a failure."""

    custom_id: str
    body: Json | None = None  # the reply
    request_id: str = ""
    failure: GraderFailure | None = None  # as a live request; expired or canceled: Transient


class _Batches:
    """A provider's batch service, whose calls raise a `GraderFailure` when they fail. The study's
    journal calls a batch a chunk. The largest batch is below the providers' own limits: its
    replies are held in memory, and little should be lost if it expires or exceeds a budget. The
    `scrubber` takes secrets out of texts that servers send.
    """

    most_requests = 10_000
    most_bytes = 150_000_000

    def __init__(
        self, spec: GraderSpec, scrubber: Scrubber, gone: type[Exception], *errors: type[Exception]
    ) -> None:
        self._spec, self._scrubber = spec, scrubber
        self._gone = gone  # the SDK's error for status 404
        self._errors: tuple[type[Exception], ...] = (*errors, *UNREADABLE)

    @contextmanager
    def _failures(self) -> Iterator[None]:
        """Raise the SDK's errors in the block as a GraderFailure."""
        try:
            yield
        except self._errors as error:
            raise replies.failure_of(error, self._spec, self._scrubber) from None


class ClaudeBatches(_Batches):
    """Anthropic's batch service. A batch cannot be given a name, such as that of its chunk: one
    whose id was not noted is recognised by its time, size and, once it has ended, custom ids.
    """

    most_bytes = 200_000_000

    def __init__(
        self, client: AsyncAnthropic, spec: GraderSpec, scrubber: Scrubber, pause: Pause
    ) -> None:
        from anthropic import AnthropicError, NotFoundError

        super().__init__(spec, scrubber, NotFoundError, AnthropicError, httpx2.HTTPError)
        self._client, self._batches = client, client.messages.batches
        self._pause = pause

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Json]]) -> str:
        """Send (custom_id, request) pairs as one batch; return the batch's id."""
        lines: Any = [{"custom_id": name, "params": params} for name, params in requests]
        with self._failures():
            return (await self._batches.create(requests=lines)).id

    async def find(self, chunk: Chunk, known_ids: set[str]) -> str | None:
        """Return the id of the batch that a chunk without an id was sent as, or None."""
        chunk_ids = {request.custom_id for request in chunk.requests}
        earliest = datetime.fromisoformat(chunk.created_at) - _CLOCK_TOLERANCE
        candidates = []
        with self._failures():
            async for batch in self._batches.list(limit=100):  # newest first
                if batch.created_at < earliest:
                    break
                total = sum(batch.request_counts.model_dump().values())
                if batch.id not in known_ids and total == len(chunk.requests):
                    candidates.append(batch.id)
        for batch_id in candidates:
            while not (await self.state(batch_id)).ended:
                await self._pause()  # custom ids are readable only in the results
            results = await self.results(batch_id)
            result_ids = {result.custom_id for result in results or ()}
            # Unreadable lines name no request. Results that are gone may have been the chunk's.
            if results is None or (result_ids and result_ids <= chunk_ids):
                return batch_id
        return None

    async def state(self, batch_id: str) -> BatchState:
        """Return the progress of a batch."""
        with self._failures(), suppress(self._gone):
            batch = await self._batches.retrieve(batch_id)
            counts = batch.request_counts
            total = sum(counts.model_dump().values())
            ended = batch.processing_status == "ended"
            return BatchState(ended=ended, done=total - counts.processing, total=total)
        return BatchState(ended=True)

    async def results(self, batch_id: str) -> list[BatchResult] | None:
        """Return the results of a batch that has ended, or None if the provider no longer has them.
        The SDK's own method would send the key to whichever host the reply names, and end at the
        first line that is not JSON.
        """
        path = f"/v1/messages/batches/{quote(batch_id, safe='')}/results"
        with self._failures(), suppress(self._gone):
            if (await self._batches.retrieve(batch_id)).archived_at:
                return None
            reply = await self._client.get(
                path, cast_to=httpx2.Response, options={"headers": {"Accept": "application/binary"}}
            )
            return _read_lines(reply.content, self._read)
        return None

    async def cancel(self, batch_id: str) -> None:
        """Cancel a batch; its results so far can be collected."""
        with self._failures():
            await self._batches.cancel(batch_id)

    def _read(self, line: Json) -> BatchResult:
        """Return the result in a line, with the failure that a live request would have raised."""
        custom_id, result = str(line["custom_id"]), line["result"]
        if result["type"] == "succeeded":
            return BatchResult(custom_id=custom_id, body={**self._scrubber.tree(result["message"])})
        if result["type"] != "errored":  # expired or canceled
            return BatchResult(custom_id=custom_id, failure=Transient(result["type"]))
        codes, message = replies.error_words(result.get("error"))
        statuses = table_of("evenhand.graders", "refusals.toml")["claude_status"]
        status = next((statuses[code] for code in codes.split() if code in statuses), None)
        failure = replies.refused(status, codes, message or codes, self._spec, self._scrubber)
        return BatchResult(custom_id=custom_id, failure=failure)


class OpenAIBatches(_Batches):
    """OpenAI's batch service, with the methods of `ClaudeBatches`. A batch has a file of requests,
    one of replies and one of errors, and is named after its chunk.
    """

    def __init__(self, client: AsyncOpenAI, spec: GraderSpec, scrubber: Scrubber) -> None:
        from openai import NotFoundError, OpenAIError

        super().__init__(spec, scrubber, NotFoundError, OpenAIError)
        self._files, self._batches = client.files, client.batches

    async def submit(self, chunk: str, requests: Sequence[tuple[str, Json]]) -> str:
        lines = [
            {"custom_id": name, "method": "POST", "url": _CHAT_ENDPOINT, "body": body}
            for name, body in requests
        ]
        content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
        with self._failures():
            file = await self._files.create(file=(f"{chunk}.jsonl", content), purpose="batch")
            batch = await self._batches.create(
                input_file_id=file.id,
                endpoint=_CHAT_ENDPOINT,
                completion_window="24h",
                metadata={_CHUNK_NAME: chunk},
            )
            return batch.id

    async def find(self, chunk: Chunk, known_ids: set[str]) -> str | None:
        with self._failures():
            async for batch in self._batches.list(limit=100):
                if (batch.metadata or {}).get(_CHUNK_NAME) == chunk.chunk:
                    return batch.id
        return None

    async def state(self, batch_id: str) -> BatchState:
        with self._failures(), suppress(self._gone):
            batch = await self._batches.retrieve(batch_id)
            counts, failed = batch.request_counts, ""
            if batch.status == "failed":
                errors = (batch.errors and batch.errors.data) or []
                words = "; ".join(error.message or "" for error in errors)
                failed = self._scrubber.message(words) or "no reason given"
            done, total = (counts.completed + counts.failed, counts.total) if counts else (0, 0)
            return BatchState(batch.status in _ENDED_STATUSES, done, total, failed)
        return BatchState(ended=True)

    async def results(self, batch_id: str) -> list[BatchResult] | None:
        results = []
        with self._failures(), suppress(self._gone):
            batch = await self._batches.retrieve(batch_id)
            for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
                results += _read_lines((await self._files.content(file_id)).content, self._read)
            return results
        return None

    async def cancel(self, batch_id: str) -> None:
        with self._failures():
            await self._batches.cancel(batch_id)

    def _read(self, line: Json) -> BatchResult:
        line = self._scrubber.tree(line)
        custom_id, response = str(line["custom_id"]), line.get("response")
        response = response if isinstance(response, Mapping) else {}
        status, body = response.get("status_code"), response.get("body")
        if status == 200 and isinstance(body, Mapping):
            request_id = str(response.get("request_id") or "")
            return BatchResult(custom_id=custom_id, body=body, request_id=request_id)
        codes, message = replies.error_words(line.get("error") or body)
        status = status if isinstance(status, int) else None
        reason = message or "no reason given"
        failure = replies.refused(status, codes, reason, self._spec, self._scrubber)
        return BatchResult(custom_id=custom_id, failure=failure)


BatchService = ClaudeBatches | OpenAIBatches


def _read_lines(content: bytes, read: Callable[[Json], BatchResult]) -> list[BatchResult]:
    r"""Return the results in a file of JSON lines. Lines that cannot be read are left out: their
    requests count as not answered. Only a line feed ends a line, since texts may hold U+2028.

    Raises Transient if no line has a custom id, as in a page that a proxy sent instead.

    >>> lines = '{"custom_id": "a\u2028"}\n{"custom_id": "b", \n'.encode()
    >>> [result.custom_id for result in _read_lines(lines, lambda line: BatchResult(**line))]
    ['a\u2028']
    """
    results = []
    for line in filter(bytes.strip, content.split(b"\n")):
        with suppress(*UNREADABLE, RecursionError):
            results.append(read(json.loads(line.decode("utf-8", "replace"), strict=False)))
    if content.strip() and not results and b"custom_id" not in content:
        raise Transient("the results of the batch cannot be read")
    return results


# ---- any grader ---------------------------------------------------------------------------------
def open_grader(access: Access) -> Grader:
    """Return a client for one model. Raises InputError if its key is missing."""
    classes = {"messages": ClaudeGrader, "chat": OpenAIGrader}
    return classes.get(access.spec.api_format, OtherGrader)(access)


def first_request(spec: GraderSpec, settings: GraderSettings, prompt: PromptText) -> Json:
    """Return the request that a model would be sent first."""
    if spec.api_format == "messages":
        return build_claude_request(spec.model, prompt, settings)
    if spec.api_format == "chat":
        return build_chat_request(spec.model, prompt, first_shape(spec, settings), settings)
    return build_form_request(spec, prompt, settings)
