"""OpenAI's Chat Completions, and every server that speaks them: token probabilities of one token.

Which parameters a server takes differs between models and servers, and none says so beforehand. A
request therefore has a shape that a rejection can teach: a parameter is renamed or dropped, and
what was learnt holds for all later requests of this grader.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.graders.batch_service import BatchService
from evenhand.graders.capabilities import about_retirement, probabilities_need_no_effort
from evenhand.graders.chat_replies import parse_reply, read_text
from evenhand.graders.failures import (
    SPARE,
    GraderFailure,
    Transient,
    answered_within,
    failure_of,
    json_object,
)
from evenhand.graders.grader_settings import GraderSettings
from evenhand.graders.keys import headers_for, key_for, told_by_study
from evenhand.graders.money import charged_by
from evenhand.graders.outcome import BeforeSending, Identity, Outcome, Reply
from evenhand.graders.replay import DECLINED, LITELLM_DECLINED, by_litellm
from evenhand.graders.scrub import Scrubber
from evenhand.graders.spec import GraderSpec
from evenhand.graders.transport import pooled
from evenhand.graders.verbalised import asking_for_percent, percent_schema
from evenhand.rubrics import PromptText, Rubric

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai._types import RequestOptions

MAX_TOKENS = 4_096  # one token is wanted, but thinking counts too
INSISTENCE = 2  # so many more times a refusal is not believed

LONG_ANSWER = 16_000

_USUAL = GraderSettings("logprobs")
_PLACEHOLDER_KEY = "none"  # servers without keys still want the header
_TEACHING = (400, 403, 422)  # what servers answer to a parameter that they do not take
_ABOUT_N = re.compile(r"[`'\"]n[`'\"]")
_TOO_MUCH = re.compile(r"too (?:large|many|long|high)|at most|less than|maximum|exceed|<=|between")


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parameters a request carries besides the model and the messages.

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

    @classmethod
    def for_server(cls) -> Shape:
        """What to begin with on a compatible server: the older name, and no reasoning effort."""
        return cls(limit_names=("max_tokens", "max_completion_tokens"), efforts=())

    def for_method(self, method: str) -> Shape:
        """Token probabilities only where they are the method, a schema where it is a statement."""
        if method == "logprobs":
            return self
        formats = ("json_schema",) if method == "verbalised" else ()
        return replace(self, **_HARD_LABEL, formats=formats)


_HARD_LABEL = {"top_logprobs": (), "efforts": (), "temperatures": ()}


def build_request(
    model: str, prompt: PromptText, shape: Shape, settings: GraderSettings = _USUAL
) -> dict[str, Any]:
    """The arguments of `chat.completions.create`."""
    method = settings.method
    if method == "verbalised":
        prompt = asking_for_percent(prompt)
    turns = [{"role": "system", "content": prompt.system}] if prompt.system else []
    request: dict[str, Any] = {
        "model": model,
        "messages": [*turns, {"role": "user", "content": prompt.user}],
    }
    if shape.limit_names:
        usual = LONG_ANSWER if method == "text" else MAX_TOKENS
        request[shape.limit_names[0]] = settings.max_tokens or usual
    if shape.top_logprobs:
        request |= {"logprobs": True, "top_logprobs": shape.top_logprobs[0]}
    if shape.temperatures:
        request["temperature"] = shape.temperatures[0]
    if effort := settings.effort or next(iter(shape.efforts), ""):
        request["reasoning_effort"] = effort
    if settings.service_tier:
        request["service_tier"] = settings.service_tier
    if method == "verbalised" and shape.formats:
        schema = {"name": "options", "strict": True, "schema": percent_schema(prompt.keys)}
        request["response_format"] = {"type": shape.formats[0], "json_schema": schema}
    return request


def learn(shape: Shape, complaint: str) -> Shape | None:
    """The shape to try after a server's complaint, or None where it says nothing about the shape.

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
        return replace(shape, top_logprobs=rest) if rest else replace(shape, **_HARD_LABEL)
    if shape.top_logprobs and re.search(r"log_?prob", complaint):
        rest_efforts = shape.efforts[1:]
        return (
            replace(shape, efforts=rest_efforts) if rest_efforts else replace(shape, **_HARD_LABEL)
        )
    if shape.efforts and re.search(r"reasoning|effort", complaint):
        return replace(shape, **_HARD_LABEL)
    if shape.formats and re.search(r"response_format|json_schema|structured", complaint):
        return replace(shape, formats=())
    if shape.temperatures and "temperature" in complaint:
        return replace(shape, temperatures=shape.temperatures[1:])
    if shape.limit_names and re.search(r"max_(?:completion_)?tokens|context length", complaint):
        # A limit that does not fit beside the prompt is left to the server, not renamed.
        return replace(shape, limit_names=() if too_much else shape.limit_names[1:])
    return None


def first_shape(spec: GraderSpec, settings: GraderSettings) -> Shape:
    """What the first request looks like. A model that gives probabilities only without reasoning is
    asked so at once, by its name behind a gateway too; others once they refuse probabilities.
    """
    shape = Shape() if _is_openai(spec) else Shape.for_server()
    efforts = ("none",) if probabilities_need_no_effort(spec) else Shape().efforts
    if settings.effort:
        efforts = ()  # the user's word stands, with or without probabilities
    return replace(shape, efforts=efforts).for_method(settings.method)


def _is_openai(spec: GraderSpec) -> bool:
    """Whether it is OpenAI that is asked, or what the environment puts in its place."""
    return spec.provider == "openai" and spec.at.is_own


def chat_client(spec: GraderSpec, scrubber: Scrubber, timeout: float) -> AsyncOpenAI:
    """A client of OpenAI's SDK for whatever server the grader names. Raises InputError where its
    key is missing.
    """
    import openai

    place = spec.at
    headers = headers_for(place, scrubber, "OPENAI_CUSTOM_HEADERS", openai.Omit())
    if not _is_openai(spec):  # the account's names are OpenAI's business
        headers |= dict.fromkeys(("OpenAI-Organization", "OpenAI-Project"), openai.Omit())
    return openai.AsyncOpenAI(
        api_key=key_for(spec) or _PLACEHOLDER_KEY,
        base_url=place.address,
        default_headers=headers,
        max_retries=0,
        timeout=openai.Timeout(timeout + SPARE, connect=10.0),
        http_client=pooled(openai.DefaultAioHttpClient, scrubber),
    )


class OpenAIGrader:
    """Asks one model at OpenAI or a compatible server, with one client for all requests."""

    def __init__(
        self, spec: GraderSpec, settings: GraderSettings, scrubber: Scrubber, *, timeout: float
    ) -> None:
        import openai

        self.spec = spec
        self.settings = settings
        self._scrubber = scrubber
        self._timeout = timeout
        self._shape = first_shape(spec, settings)
        self._client = chat_client(spec, scrubber, timeout)
        self._gave_probabilities = False
        self._refused: Counter[str] = Counter()
        self._litellm = False
        self.identity = Identity(
            provider=spec.provider,
            base_url=str(self._client.base_url.copy_with(username=None, password=None)),
            endpoint="chat/completions",
            api_version="v1",
            sdk=f"openai {openai.__version__}",
        )

    async def ask(
        self, rubric: Rubric | None, prompt: PromptText, before: BeforeSending, draws: int = 1
    ) -> Reply:
        """One answered request, for several draws at once where the server takes that; a rejection
        of a parameter is learnt from and asked anew.

        The request goes out as it was built: `chat.completions.create` would copy it by its types,
        which takes a third of a request's time.
        """
        import httpx2
        from openai import APIStatusError, OpenAIError

        shape = self._shape
        while True:
            request = build_request(self.spec.model, prompt, shape, self.settings)
            if draws > 1 and shape.draws:
                request["n"] = min(draws, shape.draws[0])
            await before(request)
            try:
                async with answered_within(self._timeout):
                    raw = await self._client.post(
                        "/chat/completions",
                        body=request,
                        cast_to=httpx2.Response,
                        options=self._no_replay(),
                    )
            except APIStatusError as error:
                taught = _lesson(error.status_code, f"{error} {error.body}", shape)
                if taught is None:
                    raise failure_of(error, self.spec, self._scrubber) from None
                if self._gave_probabilities and _about_probabilities(shape, taught):
                    self._insist(prompt, failure_of(error, self.spec, self._scrubber))
                    taught = replace(taught, **_HARD_LABEL)
                shape = taught
            except OpenAIError as error:
                raise failure_of(error, self.spec, self._scrubber) from None
            else:
                break
        reply = json_object(raw.text, self._scrubber)
        self._litellm = self._litellm or by_litellm(raw.headers)
        if shape.top_logprobs or not self._gave_probabilities:
            self._shape = shape  # only what led to a reply is remembered
        outcome, *more = self._outcomes(reply, rubric, request.get("n", 1))
        self._gave_probabilities |= outcome.prob_method == "logprobs"
        request_id = raw.headers.get("x-request-id") or ""
        return Reply(request, request_id, outcome, tuple(more), charged_by(raw.headers))

    def _insist(self, prompt: PromptText, refusal: GraderFailure) -> None:
        """A server that gave probabilities and now refuses them is asked again, after a pause.

        Only where it refuses the same prompt again and again is that one asked for a label alone.
        """
        self._refused[prompt.user] += 1
        if self._refused[prompt.user] <= INSISTENCE:
            raise Transient(str(refusal), status=refusal.status) from None

    def _no_replay(self) -> RequestOptions:
        """An answer out of a cache between us and the model is no new one, so it is declined."""
        if _is_openai(self.spec) and not self.spec.at.in_name:
            return {}
        declined: RequestOptions = {"headers": DECLINED}
        if self._litellm:
            declined["extra_json"] = LITELLM_DECLINED
        return declined

    def _outcomes(
        self, reply: Mapping[str, Any], rubric: Rubric | None, asked: int
    ) -> list[Outcome]:
        """One outcome, or those of all draws that came, of at most so many."""
        if asked == 1 or rubric is None:
            return [self.parse(reply, rubric)]
        choices = reply.get("choices")
        came = min(len(choices), asked) if isinstance(choices, list) else 0
        method = self.settings.method
        return [parse_reply(reply, rubric, method, nth) for nth in range(max(came, 1))]

    @property
    def draws_at_once(self) -> int:
        """For how many draws one request may ask; other servers than OpenAI may take no `n`."""
        if not _is_openai(self.spec) or self.settings.method != "draws" or not self._shape.draws:
            return 1
        return self._shape.draws[0]

    def request(self, prompt: PromptText) -> dict[str, Any]:
        return build_request(self.spec.model, prompt, self._shape, self.settings)

    def parse(self, reply: Mapping[str, Any], rubric: Rubric | None) -> Outcome:
        if rubric is None:
            return read_text(reply)
        return parse_reply(reply, rubric, self.settings.method)

    def batches(self, pause: Callable[[], Awaitable[None]]) -> BatchService:
        from evenhand.graders.openai_batch import OpenAIBatches

        return OpenAIBatches(self._client, self.spec, self._scrubber)

    async def lifecycle(self) -> list[str]:
        # The API says nothing about a model's life.
        return told_by_study(self.spec) + about_retirement(self.spec)

    async def close(self) -> None:
        await self._client.close()


def _about_probabilities(before: Shape, after: Shape) -> bool:
    return (before.top_logprobs, before.efforts) != (after.top_logprobs, after.efforts)


def _lesson(status: int, complaint: str, shape: Shape) -> Shape | None:
    return learn(shape, complaint) if status in _TEACHING else None
