"""OpenAI's Chat Completions, and every server that speaks them: requests, what a refusal teaches,
and replies with one token's probabilities. OpenAI's client also carries the requests of providers
with a form of their own (`providers/forms`).

Which parameters a server takes differs between models and servers, and none says so beforehand. A
request therefore has a shape that a rejection can teach: a parameter is renamed or dropped, and
what was learnt holds for all later requests of this grader.

A server that gave no probabilities may be asked for them again. One refusal may be of the moment,
and a gateway may drop the wish for them without a word where the model reasons. So before a run is
settled on labels another unit is asked: after a refusal as the run began, after a reply without any
with reasoning off.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from evenhand.graders.clients import (
    PLAIN,
    TOOL,
    WAYS,
    Access,
    Ask,
    BatchService,
    BeforeSending,
    Grader,
    OpenAIBatches,
    Reply,
    headers_for,
    key_for,
    pooled,
    refuses_constraint,
    told_by_study,
    way_of,
    ways_from,
)
from evenhand.graders.failures import (
    CONNECT,
    FILTERED,
    SPARE,
    GraderFailure,
    Rejected,
    Stopped,
    Transient,
    failure_of,
    json_object,
)
from evenhand.graders.money import charged_by
from evenhand.graders.options import GraderSettings, about_retirement, probabilities_need_no_effort
from evenhand.graders.providers import GraderSpec
from evenhand.graders.providers.forms import Question, form_of
from evenhand.graders.replies import (
    DECLINED,
    LITELLM_DECLINED,
    NOT_LOGPROBS,
    OrNone,
    Outcome,
    Position,
    asked,
    outcome_of,
)
from evenhand.graders.scrub import Scrubber
from evenhand.rubrics import PromptText, Rubric
from evenhand.texts import written

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

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
    if not shape.formats or prompt.verbatim:
        return request
    if (way := shape.formats[0]) == "tool":
        function = {"name": TOOL, "strict": True, "parameters": schema}
        chosen = {"type": "function", "function": {"name": TOOL}}
        tools = [{"type": "function", "function": function}]
        return request | {"tools": tools, "tool_choice": chosen}
    named = {"name": "options", "strict": True, "schema": schema}
    return request | {"response_format": {"type": way, "json_schema": named}}


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
        efforts = shape.efforts[1:]
        return replace(shape, efforts=efforts) if efforts else replace(shape, **HARD_LABEL)
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
    """Return the shape of a grader's first request: with token probabilities for "logprobs"; else
    without them and, except for "text", with the answer constrained to the keys in the first of
    `ways` that the server takes. For probabilities reasoning is switched off at once with
    `no_reasoning` and for models that are known by name to give them only without it, behind a
    gateway too; for others only after they have given none.
    """
    shape = Shape() if is_openai(spec) else Shape.for_server()
    if settings.method != "logprobs":
        formats = {"verbalised": ways[:1], "text": ()}.get(settings.method, ways)
        return replace(shape, **HARD_LABEL, formats=formats)
    if settings.effort:
        return replace(shape, efforts=())  # the user's choice holds, with probabilities or without
    off = no_reasoning or probabilities_need_no_effort(spec)
    return replace(shape, efforts=("none",) if off else Shape().efforts)


def is_openai(spec: GraderSpec) -> bool:
    """Return True if requests go to OpenAI, or to the address the environment sets instead."""
    return spec.provider == "openai" and spec.at.is_own


class _Message(BaseModel):
    content: str | list[dict[str, Any]] | None = None
    refusal: OrNone[str] = None
    tool_calls: OrNone[list[dict[str, Any]]] = None

    @property
    def text(self) -> str:
        """The answer: the content, joined where a server sends it in parts, or the arguments of a
        single tool call.
        """
        called = [call.get("function") for call in self.tool_calls or ()]
        calls = [each.get("arguments") for each in called if isinstance(each, dict)]
        if len(calls) == 1 and calls[0] and isinstance(calls[0], str):
            return calls[0]
        if isinstance(self.content, list):
            texts = (part.get("text") for part in self.content)
            return "".join(text for text in texts if isinstance(text, str))
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
    stopped = (choice.finish_reason or "").casefold()
    unscored = "truncated" if stopped == "length" else ""
    unscored = FILTERED if stopped.startswith(_FILTERED) else unscored
    unscored = "refusal" if choice.message.refusal else unscored
    text = choice.message.text
    return outcome_of(
        text or ((choice.message.refusal or "") if unscored else ""),
        rubric,
        method,
        evidence,
        unscored=unscored,
        positions=(choice.logprobs and choice.logprobs.content) or (),
        whole_numbers=whole_numbers,
    )


# ---- the client ---------------------------------------------------------------------------------
_TIMES_AS_LATE = 4  # each next time; a server that refuses them always is asked 6 times in 1,000
_PUT_OFF = 3  # so often a trial may fail for another reason
INSISTENCE = 2  # times that a refused prompt is tried again before the refusal is believed
_PLACEHOLDER_KEY = "none"  # servers without keys still want the header
_TEACHING = (400, 403, 422)  # what servers answer to a parameter that they do not take
_NOT_ITS_FAULT = (None, 408, 409, 429)  # what has nothing to do with a request's parameters


def chat_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncOpenAI:
    """Return a client of OpenAI's SDK for the grader's server. Raises InputError where its key is
    missing.
    """
    import openai

    place = spec.at
    headers = headers_for(place, scrubber, "OPENAI_CUSTOM_HEADERS", openai.Omit())
    if not (is_openai(spec) and place.has_account):  # the account's names are OpenAI's business
        headers |= dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), openai.Omit())
    return openai.AsyncOpenAI(
        api_key=key_for(spec) or _PLACEHOLDER_KEY,
        base_url=place.address,
        default_headers=headers,
        max_retries=0,
        timeout=openai.Timeout(timeout + SPARE, connect=CONNECT),
        http_client=pooled(openai.DefaultAioHttpClient, scrubber),
    )


class OpenAIGrader(Grader):
    """Asks one model at OpenAI or a compatible server."""

    _client: AsyncOpenAI
    _path = "/chat/completions"

    def __init__(self, access: Access) -> None:
        import openai

        client = chat_client(access.spec, access.scrubber, access.timeout)
        form = {"endpoint": "chat/completions", "api_version": "v1"}
        sdk = f"openai {openai.__version__}"
        super().__init__(access, client, openai.OpenAIError, **form, sdk=sdk)
        self._ways, off = ways_from(access.way), access.no_reasoning
        first = first_shape(self.spec, self.settings, self._ways, no_reasoning=off)
        self._probing = Probing(first)
        self._refused: Counter[str] = Counter()
        self._litellm = False

    def constrains(self, request: Mapping[str, Any]) -> bool:
        return bool(self._ways) and way_of(request) == PLAIN

    async def ask(self, ask: Ask, before: BeforeSending) -> Reply:
        """Ask one prompt and return the reply, with several draws at once where the server takes
        that. After a rejected parameter the request is changed and sent again.
        """
        if ask.constrained:  # to the keys, whatever the method; refused ways are remembered
            shape = replace(self._probing.usual, **HARD_LABEL, formats=self._ways)
            raw, request, ended = await self._answered(shape, None, ask, before)
            self._ways = ended.formats
            return self._reply(raw, request, ask.rubric)
        usual, trial = self._probing.usual, self._probing.take()
        began, instead = (trial, usual) if trial else (usual, None)
        try:
            raw, request, ended = await self._answered(began, instead, ask, before)
            reply = json_object(raw.text, self.spec, self._scrubber)
        except GraderFailure as failure:
            if trial and failure.status in _NOT_ITS_FAULT:
                self._probing.failed(trial)
            raise
        self._litellm |= any(name.lower().startswith("x-litellm-") for name in raw.headers)
        asked = request.get("n", 1)
        outcome, *more = self.read(reply, ask.rubric, asked)
        fault = outcome.evidence.get(NOT_LOGPROBS)
        if fault and self.settings.method == "logprobs" and not self._probing.gave:
            sentence = written("provider.not_logprobs", server=self.spec.at.host, fault=fault)
            raise Stopped(sentence, may_be_billed=True)
        if 1 + len(more) < asked:
            ended = replace(ended, draws=(1 + len(more),))  # the server gives no more at once
        self._probing.replied(began, ended, outcome, tried=trial is not None)
        request_id = raw.headers.get("x-request-id") or ""
        return Reply(request, request_id, outcome, tuple(more), charged_by(raw.headers))

    async def _answered(
        self, shape: Shape, instead: Shape | None, ask: Ask, before: BeforeSending
    ) -> tuple[httpx2.Response, dict[str, Any], Shape]:
        """Return the server's answer, the request that it answers, and the shape of that request.
        A shape on trial is replaced by `instead` where the server does not take it.
        """
        from openai import APIStatusError

        while True:
            request = build_request(self.spec.model, ask.prompt, shape, self.settings)
            if (n := min(ask.draws, shape.at_once)) > 1:
                request["n"] = n
            await before(request)
            try:
                return await self._post(request, options=self._no_replay()), request, shape
            except APIStatusError as error:
                failure = failure_of(error, self.spec, self._scrubber)
                taught = _lesson(failure, f"{error} {error.body}", shape)
                # A trial ends where probabilities are refused, or a rejection teaches nothing.
                is_over = not taught.top_logprobs if taught else isinstance(failure, Rejected)
                if instead and is_over:
                    taught, instead = instead, None
                elif taught is None:
                    raise failure from None
                elif self._probing.gave and (
                    (shape.top_logprobs, shape.efforts) != (taught.top_logprobs, taught.efforts)
                ):
                    self._insist(ask.prompt, failure)
                    taught = replace(taught, **HARD_LABEL)
                shape = taught
            except self._errors as error:
                raise failure_of(error, self.spec, self._scrubber) from None

    def _insist(self, prompt: PromptText, refusal: GraderFailure) -> None:
        """Raise Transient, so that a server that gave probabilities and now refuses them is asked
        again after a pause. After `INSISTENCE` more refusals of the same prompt, return instead:
        the prompt is then asked for a label alone.
        """
        self._refused[prompt.user] += 1
        if self._refused[prompt.user] <= INSISTENCE:
            raise Transient(str(refusal), status=refusal.status) from None

    def _no_replay(self) -> RequestOptions:
        """Return options that decline answers from caches: a repeated answer is no new draw."""
        if is_openai(self.spec) and not self.spec.at.in_name:
            return {}
        declined: RequestOptions = {"headers": DECLINED}
        if self._litellm:
            declined["extra_json"] = LITELLM_DECLINED
        return declined

    @property
    def draws_at_once(self) -> int:
        """The most draws that one request may ask for; 1 at servers that may take no `n`."""
        draws = is_openai(self.spec) and self.settings.method == "draws"
        return self._probing.usual.at_once if draws else 1

    @property
    def settled(self) -> bool:
        return self._probing.settled

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_request(self.spec.model, prompt, self._probing.usual, self.settings)

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        choices = reply.get("choices")
        came = min(len(choices), draws) if isinstance(choices, list) else 0
        method = self.settings.reading
        # OpenAI's tokenizers have one for every number up to 999.
        whole = is_openai(self.spec) and not self.spec.at.in_name
        return [
            parse_reply(reply, rubric, method, nth, whole_numbers=whole)
            for nth in range(max(came, 1))
        ]

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        return OpenAIBatches(self._client, self.spec, self._scrubber)

    async def lifecycle(self) -> list[str]:
        # The API says nothing about a model's life.
        return told_by_study(self.spec) + about_retirement(self.spec)


def _lesson(failure: GraderFailure, complaint: str, shape: Shape) -> Shape | None:
    """Return the shape to try instead, or None if the refusal is not about parameters."""
    # A 500 is one where the table of refusals says that the request is at fault, as llama.cpp's is.
    at_fault = failure.status == 500 and isinstance(failure, Rejected)
    about_account = failure.means in ("credit", "key", "model", "path")
    teaches = (failure.status in _TEACHING or at_fault) and not about_account
    return learn(shape, complaint) if teaches else None


class Probing:
    """The choice of shape for a grader's next request: `usual`, or for a single request a shape on
    trial that asks for probabilities and becomes the usual one only if it brings some.
    """

    def __init__(self, shape: Shape) -> None:
        self.usual = shape
        self.gave = False
        """True once probabilities have come."""
        self._first = shape
        self._trial: Shape | None = None
        self._replies = self._refusals = self._failed = 0
        self._due = math.inf
        self._tried_effort = False

    @property
    def settled(self) -> bool:
        """True if the next request has the usual shape."""
        return self._trial is None

    def take(self) -> Shape | None:
        """Return the shape on trial, if any, for the next request alone."""
        trial, self._trial = self._trial, None
        return trial

    def failed(self, trial: Shape | None) -> None:
        """Put a shape back on trial after a request without a reply, at most 3 times."""
        self._failed += 1
        if self._failed <= _PUT_OFF:
            self._trial = trial

    def replied(self, began: Shape, ended: Shape, outcome: Outcome, *, tried: bool) -> None:
        """Learn from a reply to a request that began with one shape and ended with another."""
        self._replies += 1
        if outcome.prob_method == "logprobs":
            self.gave, self.usual = True, ended
            self._trial, self._due = None, math.inf
            return
        if self.gave:
            if ended.top_logprobs and not tried:
                self.usual = ended
            return
        refused = bool(began.top_logprobs and not ended.top_logprobs)
        if refused and (tried or self.usual.top_logprobs):  # of many at once the first counts
            self._due = _TIMES_AS_LATE**self._refusals
            self._refusals += 1
        if not tried:
            self.usual = ended
            bare = bool(outcome.label) and "unseen" not in outcome.evidence
            if bare and ended.top_logprobs and ended.efforts[1:] and not self._tried_effort:
                self._tried_effort = True  # the next one, once
                self._trial = replace(ended, efforts=ended.efforts[1:])
        if self._replies >= self._due:
            self._due = math.inf
            asked = {name: getattr(self._first, name) for name in HARD_LABEL}
            self._trial = replace(self.usual, **asked)


# ---- providers whose requests have a form of their own ------------------------------------------
_NOT_AS_PROMISED = (LookupError, TypeError, ValueError, AttributeError, RecursionError)


def build_form_request(
    spec: GraderSpec, prompt: PromptText, settings: GraderSettings
) -> dict[str, Any]:
    """Return the request in the provider's form."""
    prompt, schema = asked(prompt, settings)
    question = Question(
        model=spec.model,
        system=prompt.system,
        user=prompt.user,
        max_tokens=settings.max_tokens or LONG_ANSWER,
        schema=schema if settings.method == "verbalised" else None,
    )
    return form_of(spec.speaks).request(question)


def parse_form_reply(
    speaks: str, reply: Mapping[str, Any], rubric: Rubric | None, method: str
) -> Outcome:
    """Return the outcome in a reply; without a rubric, its text."""
    try:
        answer = form_of(speaks).read(reply)
        text, usage = str(answer.text), dict(answer.usage)
    except _NOT_AS_PROMISED:
        return Outcome.unreadable(reply)
    evidence = {"model": str(answer.model), "id": str(answer.id), "usage": usage}
    return outcome_of(text, rubric, method, evidence, unscored=answer.unscored)


class OtherGrader(Grader):
    """Asks one model in its provider's own form. OpenAI's client carries the requests, since keys,
    connections and errors do not depend on the form.
    """

    _client: AsyncOpenAI

    def __init__(self, access: Access) -> None:
        from openai import OpenAIError

        self._path = form_of(access.spec.speaks).PATH
        client = chat_client(access.spec, access.scrubber, access.timeout)
        form = {"endpoint": self._path.strip("/"), "api_version": "", "sdk": access.spec.speaks}
        super().__init__(access, client, OpenAIError, **form)

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_form_request(self.spec, prompt, self.settings)

    def read(
        self, reply: Mapping[str, Any], rubric: Rubric | None, draws: int = 1
    ) -> list[Outcome]:
        return [parse_form_reply(self.spec.speaks, reply, rubric, self.settings.reading)]

    async def _post(self, request: Mapping[str, Any], **more: Any) -> httpx2.Response:
        return await super()._post(request, options={"headers": DECLINED}, **more)
